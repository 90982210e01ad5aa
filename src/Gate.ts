/**
 * What decides, before a pass, whether it runs at all.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Budget from "./Budget.ts"
import * as CompactionEvent from "./CompactionEvent.ts"
import * as Media from "./ladder/media.ts"
import * as Stage from "./Stage.ts"
import * as TokenMeter from "./TokenMeter.ts"
import * as Reasoning from "./wire/reasoning.ts"

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

/**
 * From which number of entries of the transcript on `maxMessages` may trigger again, after an aim that could not be reached.
 *
 * @category memory
 * @since 0.1.0
 */
export const messagesArmedAt = Stage.memory("Gate/messagesArmedAt", Schema.Natural, 0)

/**
 * What the provenance gate counted: passes that it refused, and passes that it let through all the same, at the whole budget,
 * because no usage had ever come, because the usage was below its own price, or because it was of other surroundings.
 *
 * @category memory
 * @since 0.1.0
 */
export const provenanceCounts = Stage.memory(
  "Gate/provenance",
  Schema.Struct({
    refusals: Schema.Natural,
    noUsage: Schema.Natural,
    rejected: Schema.Natural,
    lapsed: Schema.Natural
  }),
  { refusals: 0, noUsage: 0, rejected: 0, lapsed: 0 }
)

/** Whether a target below the fixed overhead was published. */
const overheadNamed = Stage.memory("Gate/overheadNamed", Schema.Boolean, false)

/** Whether the view has more entries than `maxMessages`, and may be asked about it again. */
const hasTooManyMessages = (pass: Stage.Pass): boolean =>
  pass.settings.maxMessages !== undefined && pass.entries > pass.settings.maxMessages
  && pass.view.length >= Stage.recall(pass, messagesArmedAt)

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
 * Closes a pass that nothing calls for: neither {@link threshold} nor {@link summary} holds, and nobody asked for it.
 *
 * @category stages
 * @since 0.1.0
 */
export const pressure: Stage.Stage = (pass) =>
  Effect.succeed(
    pass.cause !== "pressure" || threshold(pass) || summary(pass) ? pass : Stage.close(pass, "below the trigger")
  )

/**
 * Closes a pass inside an unfinished tool turn that carries signed reasoning: a call of the newest assistant entry waits for
 * its result. There nothing is decided unless `signedReasoning` is `"keep"`, or the request was refused for its length.
 *
 * @category stages
 * @since 0.1.0
 */
export const signedReasoning: Stage.Stage = (pass) =>
  Effect.succeed(
    pass.cause === "pressure" && pass.settings.signedReasoning === "strip" && Reasoning.isOpenTurn(pass.view.transcript)
      ? Stage.close(pass, "a tool turn with signed reasoning is open")
      : pass
  )

/** The last count of the provider's, of which view; without `tokens` where it gave none. */
const lastCount = Stage.memory(
  "Gate/counted",
  Schema.NullOr(
    Schema.Struct({ generation: Schema.Natural, price: Schema.Natural, tokens: Schema.NullOr(Schema.Natural) })
  ),
  null
)

/** How far a view may grow in price until it is counted again: a pass that is refused is tried at each request. */
const growth = 1.1

/**
 * Sizes a pass by the provider's own count of its view, where an app gave a `TokenMeter.Counter`. Of a view that has hardly
 * grown since the last count nothing is asked: that count holds, in proportion to the prices.
 *
 * @category stages
 * @since 0.1.0
 */
export const counted: Stage.Stage = Effect.fnUntraced(function*(pass: Stage.Pass) {
  const { budget, cause, counter, generation, isPreview, view: { price } } = pass
  // What a provider refused it has counted.
  if (counter === null || isPreview || cause === "overflow" || price === 0) return pass
  if (cause === "pressure" && !threshold(pass)) return pass
  const last = Stage.recall(pass, lastCount)
  const isKnown = last !== null && last.generation === generation && price >= last.price && price <= last.price * growth
  const counts = isKnown ? last : { generation, price, tokens: yield* counter(pass.view) }
  const next = isKnown ? pass : Stage.remember(pass, lastCount, counts)
  if (counts.tokens === null) return next
  const scale = counts.tokens / counts.price
  const tokens = Math.round(price * scale)
  return {
    ...next,
    count: { ...pass.count, tokens, kind: "usage" },
    scale,
    sizes: Budget.inPrices(budget, scale)
  }
})

/**
 * Lets a pass through only if its count is of kind `usage`: a boundary costs a cold prompt cache and decides for the rest
 * of the session, which is not done on a guess.
 *
 * **Details**
 *
 * Below the whole budget every other pass fails with `ProvenanceRefused`, counted. At the whole budget refusing would only
 * lead to an overflow: there a pass goes through, logged, published and counted by its cause: no usage has ever come, the
 * usage is below the price of what it billed, or it is of another system prompt, toolkit or route, or from before the last
 * boundary. A pass that somebody asked for goes through in any case.
 *
 * @category stages
 * @since 0.1.0
 */
export const provenance: Stage.Stage<ProvenanceRefused> = Effect.fnUntraced(function*(pass: Stage.Pass) {
  const { budget, cause, count } = pass
  if (cause !== "pressure" || count.kind === "usage") return pass
  const memory = Stage.recall(pass, provenanceCounts)
  const numbers = { count: count.tokens, budget: budget.limit }
  if (count.tokens >= budget.limit) {
    const reason = count.anchorRejected ? "rejected" : count.readings === 0 ? "noUsage" : "lapsed"
    const overrides = memory[reason] + 1
    yield* Effect.logWarning("compacting on an estimate: the count has reached the whole budget", {
      ...numbers,
      cause: reason
    })
    yield* CompactionEvent.publish({ _tag: "PassOverridden", ...numbers, cause: reason, overrides })
    return Stage.remember(pass, provenanceCounts, { ...memory, [reason]: overrides })
  }
  const refusal = { ...numbers, kind: count.kind, refusals: memory.refusals + 1 }
  Stage.remember(pass, provenanceCounts, { ...memory, refusals: refusal.refusals })
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
  const { budget, cause, fixed, settings } = pass
  // What is not in the view is off the limit already: a pass that aims at the target leaves the system entries alone.
  const isReachable = budget.limit > 0 && fixed - budget.overhead <= budget.target
  if (cause !== "pressure" || isReachable || budget.total <= 0) return pass
  const numbers = {
    fixed,
    target: Math.min(budget.target, budget.limit) + budget.overhead,
    budget: budget.limit + budget.overhead
  }
  if (settings.strict) return yield* new TargetBelowOverhead(numbers)
  if (Stage.recall(pass, overheadNamed)) return pass
  yield* CompactionEvent.publish({ _tag: "OverheadAboveTarget", ...numbers })
  return Stage.remember(pass, overheadNamed, true)
})

/**
 * Keeps a request within `maxImages` and `maxRequestBytes`: when one of them is exceeded, the oldest media become words
 * until half of it is left, so that the prefix is not rewritten at each request.
 *
 * **Details**
 *
 * Media of earlier turns go first. Where they are not enough, those go that tools returned in the turn in progress, from the
 * last human message on, the newest last of all. What a person showed in that message stays, and so do pinned entries: what
 * is above a limit all the same is sent, and named in `PayloadInfeasible`.
 *
 * Bytes are those of texts, inputs, results and media as they are sent (base64), without the frame around them.
 *
 * @category stages
 * @since 0.1.0
 */
export const media: Stage.Stage = Media.limit
