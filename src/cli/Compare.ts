/**
 * What policies make of one session, side by side: what each of them costs and keeps, request by request.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Session from "../format/Session.ts"
import * as Simulation from "../simulate/Simulation.ts"
import type * as Replay from "./Replay.ts"
import * as Trace from "./Trace.ts"

/** A policy that was played; `budget` is the limit that its ladder goes by, in tokens. */
interface Played extends Simulation.Result {
  readonly policy: string
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
 * with the name of the policy. Fails when the settings of a policy do not decode.
 */
export const play = Effect.fnUntraced(function*<E, R>(
  file: Session.Session["file"],
  recording: Simulation.Recording,
  options: {
    readonly policies: ReadonlyArray<Replay.Policy<E, R>>
    readonly world: Simulation.World
    readonly isTraced: boolean
    readonly onRequest: (policy: string, request: number, of: number) => Effect.Effect<void>
  }
): Effect.fn.Return<Comparison, Schema.SchemaError, R> {
  const { isTraced, onRequest, policies, world } = options
  const played: Array<Played> = []
  const traces: Array<Trace.Trace> = []
  for (const { name, pass, settings } of policies) {
    const tracing = Trace.make(pass)
    const result = yield* Simulation.run(recording, { settings, pass: isTraced ? tracing.pass : pass }, {
      ...world,
      onRequest: (request, of) =>
        Effect.andThen(isTraced ? tracing.take(request) : Effect.void, onRequest(name, request, of))
    })
    played.push({ policy: name, ...result })
    if (isTraced) traces.push(tracing.trace)
  }
  return {
    report: { file, window: world.window ?? null, requests: played[0]?.rows.length ?? 0, policies: played },
    traces
  }
})
