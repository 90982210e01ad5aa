/**
 * What decides, before a pass, whether it runs at all.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "./CompactionEvent.ts"
import type * as Stage from "./Stage.ts"
import * as TokenMeter from "./TokenMeter.ts"

/**
 * Fails a pass whose count is not anchored on what a provider billed. `refusals` counts those of the session.
 *
 * @category errors
 * @since 0.1.0
 */
export class ProvenanceRefused extends Schema.TaggedError<ProvenanceRefused>("effect-compaction/ProvenanceRefused")(
  "ProvenanceRefused",
  { count: Schema.Natural, kind: TokenMeter.Kind, budget: Schema.Int, refusals: Schema.Natural }
) {
  override get message() {
    return `A count of ${this.count} tokens (kind ${this.kind}, budget ${this.budget}) is no ground for a decision that `
      + "cannot be taken back. Report the usage of each response with observe, or turn provenanceGate off."
  }
}

/**
 * Fails a request when the system prompt and the tools alone cost more than the target and the settings are strict.
 *
 * @category errors
 * @since 0.1.0
 */
export class TargetBelowOverhead extends Schema.TaggedError<TargetBelowOverhead>(
  "effect-compaction/TargetBelowOverhead"
)("TargetBelowOverhead", { fixed: Schema.Natural, target: Schema.Int, budget: Schema.Int }) {
  override get message() {
    return `The system prompt and the tools cost ${this.fixed} tokens, the target is ${this.target} of a budget of `
      + `${this.budget}: no pass can reach it. Raise targetUsage or the budget, shorten the system prompt, or turn strict `
      + "off."
  }
}

/** Whether the view has more entries than `maxMessages`, and may be asked about it again. */
const hasTooManyMessages = (pass: Stage.Pass): boolean =>
  pass.settings.maxMessages !== undefined && pass.entries > pass.settings.maxMessages
  && pass.view.length >= pass.memory.messagesArmedAt

/**
 * Holds when the count has reached the trigger of the budget (`compactThreshold × limit`) and there is a budget at all,
 * or when the view has more entries than `maxMessages`.
 *
 * @category predicates
 * @since 0.1.0
 */
export const threshold = (pass: Stage.Pass): boolean =>
  (pass.budget.limit > 0 && pass.count.tokens >= pass.budget.trigger) || hasTooManyMessages(pass)

/**
 * Holds when a summary is ready and the settings make that a reason for a boundary of its own.
 *
 * @category predicates
 * @since 0.1.0
 */
export const summary = (pass: Stage.Pass): boolean => pass.ready !== null && pass.settings.summary?.eager === true

/**
 * Which memory counts the passes that the provenance gate let through, by their cause.
 *
 * @internal
 */
export const overridesOf = {
  noUsage: "estimateOverrides",
  rejected: "rejectedOverrides",
  lapsed: "lapsedOverrides"
} as const

/**
 * Lets a pass through only if its count is of kind `usage`: a boundary costs a cold prompt cache and decides for the rest
 * of the session, which is not done on a guess.
 *
 * **Details**
 *
 * Below the whole budget every other pass fails with `ProvenanceRefused`, counted. At the whole budget refusing would only
 * lead to an overflow: there a pass goes through, logged, published and counted by its cause: no usage has ever come, the
 * usage is below the price of what it billed, or it is of another system prompt, toolkit or route, or from before the last
 * boundary.
 *
 * @category stages
 * @since 0.1.0
 */
export const provenance: Stage.Stage<ProvenanceRefused> = Effect.fnUntraced(function*(pass: Stage.Pass) {
  const { budget, count, memory } = pass
  if (count.kind === "usage") return pass
  const numbers = { count: count.tokens, budget: budget.limit }
  if (count.tokens >= budget.limit) {
    const cause = count.anchorRejected ? "rejected" : count.readings === 0 ? "noUsage" : "lapsed"
    const counter = overridesOf[cause]
    const overrides = memory[counter] + 1
    yield* Effect.logWarning("compacting on an estimate: the count has reached the whole budget", { ...numbers, cause })
    yield* CompactionEvent.publish({ _tag: "PassOverridden", ...numbers, cause, overrides })
    return { ...pass, memory: { ...memory, [counter]: overrides } }
  }
  const refusal = { ...numbers, kind: count.kind, refusals: memory.refusals + 1 }
  yield* CompactionEvent.publish({ _tag: "PassRefused", ...refusal })
  return yield* new ProvenanceRefused(refusal)
})

/**
 * Names a target that lies below what is in every request, the system prompt and the tools: once as an event, or, when
 * the settings are strict, as an error.
 *
 * @category stages
 * @since 0.1.0
 */
export const overhead: Stage.Stage<TargetBelowOverhead> = Effect.fnUntraced(function*(pass: Stage.Pass) {
  const { budget, fixed, memory, settings } = pass
  // What is not in the view is off the limit already: a pass that aims at the target leaves the system entries alone.
  const isReachable = budget.limit > 0 && fixed - budget.overhead <= budget.target
  if (isReachable || budget.total <= 0) return pass
  const numbers = {
    fixed,
    target: Math.min(budget.target, budget.limit) + budget.overhead,
    budget: budget.limit + budget.overhead
  }
  if (settings.strict) return yield* new TargetBelowOverhead(numbers)
  if (memory.overheadNamed) return pass
  yield* CompactionEvent.publish({ _tag: "OverheadAboveTarget", ...numbers })
  return { ...pass, memory: { ...memory, overheadNamed: true } }
})
