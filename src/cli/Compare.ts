/**
 * What policies make of one session, side by side: what each of them costs and keeps, request by request.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Session from "../format/Session.ts"
import * as Policy from "../Policy.ts"
import * as Simulation from "../simulate/Simulation.ts"
import type * as Replay from "./Replay.ts"
import * as Trace from "./Trace.ts"

/**
 * The totals, and the share of the facts that the last view keeps by the answer of a judge: `null` where none was asked, or
 * there was nothing to ask about.
 */
export interface Totals extends Simulation.Totals {
  readonly judged: number | null
}

/** A policy that was played; `budget` is the limit that its ladder goes by, in tokens. */
interface Played extends Simulation.Result {
  readonly policy: string
  readonly totals: Totals
}

/** One session, as `--json` prints it. `window` is `null` where none was given, in tokens. */
export interface Report {
  readonly file: string
  readonly window: number | null
  readonly requests: number
  readonly policies: ReadonlyArray<Played>
}

/** The report, and for each policy what became of every entry, where that was asked for. */
export interface Comparison {
  readonly report: Report
  readonly traces: ReadonlyArray<Trace.Trace>
}

/**
 * Plays a session under each policy. `world` says what surrounds them; its `onRequest` is not used, `onRequest` is run
 * with the name of the policy. `judge` is asked once for each policy, about the last view that was sent. Fails when the
 * settings of a policy do not decode, and when the judge does.
 */
export const play = Effect.fnUntraced(function*<E, R, JudgeE, JudgeR>(
  file: Session.Session["file"],
  recording: Simulation.Recording,
  options: {
    readonly policies: ReadonlyArray<Replay.Named<E, R>>
    readonly world: Simulation.World
    readonly isTraced: boolean
    readonly judge:
      | ((policy: string, sent: Simulation.Sent) => Effect.Effect<number | null, JudgeE, JudgeR>)
      | undefined
    readonly onRequest: (policy: string, request: number, of: number) => Effect.Effect<void>
  }
): Effect.fn.Return<Comparison, Policy.PolicyError | JudgeE, R | JudgeR> {
  const { isTraced, judge, onRequest, policies, world } = options
  const played: Array<Played> = []
  const traces: Array<Trace.Trace> = []
  for (const { ladder, name, settings } of policies) {
    const tracing = Trace.make(false)
    const watched = Trace.watching(tracing, Policy.passOf(ladder))
    let last: Simulation.Sent | undefined
    const result = yield* Simulation.run(recording, { settings, pass: watched.pass }, {
      ...world,
      onRequest: (request, of, sent) => {
        last = sent ?? last
        return Effect.andThen(isTraced ? watched.take(request) : Effect.void, onRequest(name, request, of))
      }
    })
    const judged = judge === undefined || last === undefined ? null : yield* judge(name, last)
    played.push({ policy: name, ...result, totals: { ...result.totals, judged } })
    if (isTraced) traces.push(tracing.trace)
  }
  return {
    report: { file, window: world.window ?? null, requests: played[0]?.rows.length ?? 0, policies: played },
    traces
  }
})
