import * as Effect from "effect/Effect"
import * as Checkpoint from "../Checkpoint.ts"
import * as Gate from "../Gate.ts"
import * as Guard from "../Guard.ts"
import type * as Ladder from "../Ladder.ts"
import * as Settings from "../Settings.ts"
import * as Stage from "../Stage.ts"

const TypeId = "~effect-compaction/Policy/Pass"

/**
 * A whole pass: what is run over the view of each request, below the trigger too. {@link passOf} and {@link passFrom} make
 * one; no other stage is one, so that a bare ladder, which has no gate before it, cannot be taken for a pass.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pass<out E = never, out R = never> extends Stage.Stage<E, R> {
  readonly [TypeId]: typeof TypeId
  /** The ladder that the pass was made around, where it was made around one. */
  readonly ladder?: Ladder.Ladder<unknown, unknown>
}

/**
 * Makes a whole pass of one's own: the stages are run one after the other at every request, below the trigger too. The
 * gates are among the stages, or there are none.
 *
 * **Example** (Counting the passes that a trigger called for)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Gate from "effect-compaction/Gate"
 * import * as Ladder from "effect-compaction/Ladder"
 * import * as Policy from "effect-compaction/Policy"
 * import * as Stage from "effect-compaction/Stage"
 *
 * const counted = Stage.when(
 *   Stage.pipeline((pass) => Effect.as(Effect.logInfo("compacting"), pass), Ladder.progressive),
 *   Gate.threshold
 * )
 * Policy.isPass(Policy.passFrom(counted)) // => true
 * Policy.isPass(Ladder.progressive) // => false
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const passFrom = <const Stages extends ReadonlyArray<Stage.Any>>(
  ...stages: Stages
): Pass<Stage.Error<Stages[number]>, Stage.Services<Stages[number]>> => {
  const run = Stage.pipeline(...stages)
  return Object.assign((pass: Stage.Pass) => run(pass), { [TypeId]: TypeId } as const)
}

/**
 * Whether a value is a whole pass, where types are erased.
 *
 * @category guards
 * @since 0.1.0
 */
export const isPass = (value: unknown): value is Pass<unknown, unknown> =>
  typeof value === "function" && TypeId in value

/**
 * What the standard pass may fail with. Each of them takes a setting that is off by default: `clearAtLeast`,
 * `whenInfeasible: "fail"`, `strict`.
 *
 * @category errors
 * @since 0.1.0
 */
export type PassError = Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied | Gate.TargetBelowOverhead

/**
 * The standard pass around a ladder: the gates, the limits of media, the summaries, the ladder and the clear floor, in the
 * order in which they run. A gate that closes ends the pass. With no rung at all nothing is ever compacted.
 *
 * @category constructors
 * @since 0.1.0
 */
export const passOf = <E, R>(ladder: Ladder.Ladder<E, R>): Pass<E | PassError, R> =>
  Object.assign(around(ladder), { ladder })

const around = <E, R>(ladder: Ladder.Ladder<E, R>): Pass<E | PassError, R> =>
  // The end of every ladder, what makes a view fit that no rung made fit, would still compact.
  ladder.rungs.length === 0 ? passFrom((pass) => Effect.succeed(pass)) : passFrom(
    Gate.overhead,
    Gate.signedReasoning,
    Gate.media,
    Gate.pressure,
    Gate.counted,
    Stage.closeOn("ProvenanceRefused")(Stage.when(Gate.provenance, (pass) => Settings.isGated(pass.settings))),
    Stage.guard(
      Stage.pipeline(Checkpoint.absorbSmaller, Checkpoint.write, Stage.when(ladder, Checkpoint.needsLadder)),
      Guard.clearAtLeast
    ),
    Guard.recount(ladder)
  )
