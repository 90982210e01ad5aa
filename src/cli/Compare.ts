/**
 * What policies make of one session, side by side: what each of them costs and keeps, request by request.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Estimator from "../Estimator.ts"
import type * as Session from "../format/Session.ts"
import * as Policy from "../Policy.ts"
import * as Kept from "../simulate/Kept.ts"
import * as Simulation from "../simulate/Simulation.ts"
import type * as Replay from "./Replay.ts"
import * as Trace from "./Trace.ts"

/**
 * The totals, and what was asked for beside them; each is `null` where it was not, or there was nothing to ask about.
 *
 * - `judged`: the share of the facts that the last view keeps by the answer of a judge.
 * - `bodies`: of the facts that the bodies of results state, the share that the last view holds.
 * - `reuse`: of what the recorded answers use and was last said more than 20 messages before, the share in view; `near`:
 *   last said within 20. `reuseOfTail`, `reuseOfRandom`: the same as `reuse`, of the controls of the same size. `words`: the
 *   messages of people that are whole. See `Kept`.
 */
export interface Totals extends Simulation.Totals {
  readonly judged: number | null
  readonly bodies: number | null
  readonly reuse: number | null
  readonly near: number | null
  readonly reuseOfTail: number | null
  readonly reuseOfRandom: number | null
  readonly words: number | null
}

/** A policy that was played; `budget` is the limit that its ladder goes by, in tokens. */
interface Played extends Simulation.Result {
  readonly policy: string
  readonly totals: Totals
  /** What it kept, where that was asked for. */
  readonly kept?: Kept.Kept
}

const shareOf = (of: Kept.Share): number | null => of.of === 0 ? null : Kept.ratio(of)

const totalsOf = (
  { rows, totals }: Simulation.Result,
  judged: number | null,
  kept: Kept.Kept | undefined
): Totals => {
  const bodies = rows.findLast(({ retention }) => retention !== null)?.retention?.sources.body
  return {
    ...totals,
    judged,
    bodies: bodies === undefined ? null : shareOf({ held: bodies.held, of: bodies.known }),
    reuse: kept === undefined ? null : shareOf(kept.policy.far),
    near: kept === undefined ? null : shareOf(kept.policy.near),
    reuseOfTail: kept === undefined ? null : shareOf(kept.tail.far),
    reuseOfRandom: kept === undefined ? null : shareOf(kept.random.far),
    words: kept === undefined ? null : Kept.ratio(...kept.policy.words)
  }
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
    /** Whether it is looked for what the recorded answers use, and for the words of people. */
    readonly isLooked: boolean
    readonly judge:
      | ((policy: string, sent: Simulation.Sent) => Effect.Effect<number | null, JudgeE, JudgeR>)
      | undefined
    readonly onRequest: (policy: string, request: number, of: number) => Effect.Effect<void>
  }
): Effect.fn.Return<Comparison, Policy.PolicyError | JudgeE, R | JudgeR> {
  const { isLooked, isTraced, judge, onRequest, policies, world } = options
  const { price } = yield* Estimator.Estimator
  const played: Array<Played> = []
  const traces: Array<Trace.Trace> = []
  for (const { ladder, name, pass, settings } of policies) {
    const tracing = Trace.make(false)
    const watched = Trace.watching(tracing, pass ?? Policy.passOf(ladder))
    let last: Simulation.Sent | undefined
    const recorder = isLooked
      ? Kept.make(recording.messages, { price, planted: Kept.plantedBy(world.probes) })
      : undefined
    const result = yield* Simulation.run(recording, { settings, pass: watched.pass }, {
      ...world,
      onRequest: (request, of, sent) => {
        last = sent ?? last
        if (sent !== undefined && recorder !== undefined) Kept.see(recorder, sent)
        return Effect.andThen(isTraced ? watched.take(request) : Effect.void, onRequest(name, request, of))
      }
    })
    const judged = judge === undefined || last === undefined ? null : yield* judge(name, last)
    const kept = recorder === undefined ? undefined : Kept.figures(recorder)
    const totals = totalsOf(result, judged, kept)
    played.push({ policy: name, ...result, totals, ...(kept === undefined ? undefined : { kept }) })
    if (isTraced) traces.push(tracing.trace)
  }
  return {
    report: { file, window: world.window ?? null, requests: played[0]?.rows.length ?? 0, policies: played },
    traces
  }
})
