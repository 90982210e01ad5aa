/**
 * What judges a pass after it ran, and takes it back whole.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "./CompactionEvent.ts"
import * as Ladder from "./Ladder.ts"
import * as Settings from "./Settings.ts"
import * as Stage from "./Stage.ts"

/**
 * Fails when the clear floor has refused `streak` passes in a row: compaction is asked for again and again and never
 * frees enough to be worth a cold prompt cache. The refused pass was taken back.
 *
 * **Details**
 *
 * `freed` and `required` in tokens; `baseline` is the price of the view against the `budget`; `protectedResults` of
 * `results` tool results and `recentMessages` of `messages` are what the settings keep from the ladder.
 *
 * @category errors
 * @since 0.1.0
 */
export class ClearFloorUnsatisfied extends Schema.TaggedError<ClearFloorUnsatisfied>(
  "effect-compaction/ClearFloorUnsatisfied"
)("ClearFloorUnsatisfied", {
  freed: Schema.Int,
  required: Schema.Natural,
  level: Schema.Natural,
  streak: Schema.Natural,
  baseline: Schema.Natural,
  budget: Schema.Int,
  protectedRecent: Schema.Finite,
  protectedToolResults: Schema.Int,
  protectedResults: Schema.Natural,
  results: Schema.Natural,
  recentMessages: Schema.Natural,
  messages: Schema.Natural
}) {
  override get message() {
    return `clearAtLeast asks a pass to free ${this.required} tokens, and ${this.streak} in a row could not: the ladder `
      + `reached level ${this.level} and freed ${this.freed}. The view is ${this.baseline} tokens against a budget of `
      + `${this.budget}. Protected: ${this.protectedResults} of ${this.results} tool results (protectedToolResults), `
      + `${this.recentMessages} of ${this.messages} messages (protectedRecent ${this.protectedRecent}). Lower `
      + "clearAtLeast, protectedRecent or protectedToolResults, or raise the budget; compacting harder will not help."
  }
}

/**
 * What the clear floor remembers: refusals in a row (`streak`), passes committed against it (`overrides`), and of the last
 * refusal of a streak the limit, and the size of the view from which on a pass to the same aim must free enough, both in the
 * provider's tokens.
 *
 * @category memory
 * @since 0.1.0
 */
export const clearFloor = Stage.memory(
  "Guard/clearAtLeast",
  Schema.Struct({
    streak: Schema.Natural,
    skipped: Schema.NullOr(Schema.Struct({ limit: Schema.Int, until: Schema.Natural })),
    overrides: Schema.Natural
  }),
  { streak: 0, skipped: null, overrides: 0 }
)

/** Whether it was said that the floor is judged by estimates. */
const estimateNamed = Stage.memory("Guard/estimateNamed", Schema.Boolean, false)

/** Says once in a session that the floor is judged by estimates. */
const warned = Effect.fnUntraced(function*(pass: Stage.Pass) {
  if (pass.count.kind === "usage" || Stage.recall(pass, estimateNamed)) return pass
  yield* Effect.logWarning(
    "clearAtLeast is judged by estimated prices, which can be off by a factor of two: report the usage of each response "
      + "with observe, and set meter to \"calibrated\" or \"hybrid\""
  )
  return Stage.remember(pass, estimateNamed, true)
})

/**
 * What a pass must free, in tokens, under a budget of `limit` tokens: a `clearAtLeast` below 1 is a ratio of it, any
 * other a number of tokens; rounded down. 0 asks for nothing; `"auto"` is {@link worthOf} of the pass.
 *
 * @category getters
 * @since 0.1.0
 */
export const requiredOf = (settings: Settings.Settings, limit: number): number => {
  const floor = settings.clearAtLeast
  if (floor === null || floor === "auto") return 0
  return Math.max(0, Settings.amountOf(floor, limit))
}

/** What a token costs that is read from the provider's cache, and one that is written to it, for one that is neither. */
const cacheRead = 0.1
const cacheWrite = { short: 1.25, long: 2 }
/** A prefix that is kept as long costs more to write. */
const longLife = Duration.toMillis("1 hour")
/** After so many answers of which nothing was read from a cache there is none. */
const tellingAnswers = 5

/**
 * What a pass must free, in the provider's tokens, to save in the requests until the next boundary what its cold cache costs.
 *
 * **Details**
 *
 * What stays in the view is written to the cache once more instead of read from it; what left it is not read at each of the
 * requests to come. Of those there are as many as the view has room to grow, at the pace at which the session grew so far. A
 * prefix that is cold anyway, or that the provider's bills show is never read from a cache, costs nothing. Prices are those
 * that providers ask: a tenth for what is read, a quarter more for what is written, twice as much where it is kept for an hour.
 *
 * @category getters
 * @since 0.1.0
 */
export const worthOf = (before: Stage.Pass, after: Stage.Pass): number => {
  const { answers, cacheRead: read, requests } = before.served
  if (before.cold !== null || (answers >= tellingAnswers && read === 0)) return 0
  const stays = after.view.price * before.scale
  const came = before.view.transcript.entries.reduce((sum, { price }) => sum + price, 0) * before.scale
  const growth = Math.max(1, came / Math.max(1, requests))
  const left = Math.max(1, (before.budget.trigger - stays) / growth)
  const { cacheLife } = before.settings
  const write = cacheLife !== undefined && Duration.toMillis(cacheLife) >= longLife ? cacheWrite.long : cacheWrite.short
  return Math.ceil(stays * (write - cacheRead) / (cacheRead * left))
}

const unsatisfied = (
  event: typeof CompactionEvent.CompactionSkipped.Type,
  before: Stage.Pass
): ClearFloorUnsatisfied => {
  let results = 0
  let messages = 0
  for (const { entry } of before.view.items) {
    if (entry === undefined || entry.role === "system") continue
    messages++
    if (entry.kind === "result") results++
  }
  const { _tag: _, ...numbers } = event
  return new ClearFloorUnsatisfied({
    ...numbers,
    protectedResults: Math.min(results, Math.max(0, event.protectedToolResults)),
    results,
    recentMessages: Math.ceil(messages * event.protectedRecent - 1e-9),
    messages
  })
}

/**
 * Whether a refusal of this pass repeats the one before: same budget, and a view that has not grown to where a pass to the
 * same aim must free enough. Over the budget there is no room to wait in, so each refusal counts. The streak is what a
 * rewind, a reset and a restore clear; without one there is nothing to repeat.
 */
const saysNothingNew = (pass: Stage.Pass): boolean => {
  const { skipped, streak } = Stage.recall(pass, clearFloor)
  return streak > 0 && skipped !== null && skipped.limit === pass.budget.limit
    && pass.view.price * pass.scale < skipped.until && Stage.pressureOf(pass) <= pass.sizes.limit
}

/**
 * The worth-the-rebuild predicate: refuses a pass that frees less than `clearAtLeast`.
 *
 * **Details**
 *
 * Every boundary makes the provider's prompt cache cold, so a pass must free enough to be worth it. What is judged is
 * what this pass frees, not the distance from the whole history. A refusal takes the pass back, publishes
 * `CompactionSkipped` and counts; with `maxConsecutiveSkips` refusals in a row it fails. An infeasible pass is not judged.
 * Where the count is no usage, a warning says once in a session that the floor is judged by estimates.
 * Over the budget, `clearFloorWhenOverBudget: "override"` lets a pass through that comes down to it.
 *
 * A pass that was refused is tried again at the next request, and mostly frees as much again and what has come since. The
 * first refusal counts and is published, and then one of a view that stands so far above the aim of the first that it had
 * to free enough, or that occupies more than the budget. The others are taken back in silence; `countSkips: "every"` counts
 * them too. The setting changes no view.
 *
 * A prefix that is cold anyway (`cacheLife`) costs nothing, so nothing is asked of its pass. With `"auto"` a pass must free
 * what pays for its cold cache ({@link worthOf}); over the budget nothing is asked, and no refusal is an error.
 *
 * The parameter has the name and the meaning of the one in Anthropic's context editing.
 *
 * @category checks
 * @since 0.1.0
 */
export const clearAtLeast: Stage.Check<ClearFloorUnsatisfied> = Effect.fnUntraced(function*(before, after) {
  const { budget, cause, settings } = before
  if (cause !== "pressure" || before.cold !== null || after.report.infeasible !== null) return after
  const isAuto = settings.clearAtLeast === "auto"
  const required = isAuto ? worthOf(before, after) : requiredOf(settings, budget.limit)
  // Over the budget the alternative is no warm cache but a refusal.
  if (required === 0 || isAuto && before.view.price > before.sizes.limit) return after
  const memory = Stage.recall(before, clearFloor)
  const baseline = before.view.price
  // In the provider's tokens, as what is required; the scale is 1 unless the amount is sized in them.
  const freed = Math.floor((baseline - after.view.price) * before.scale)
  if (freed >= required) {
    return yield* warned(Stage.remember(after, clearFloor, { ...memory, streak: 0, skipped: null }))
  }
  if (
    settings.clearFloorWhenOverBudget === "override" && baseline > before.sizes.limit &&
    after.view.price <= before.sizes.limit
  ) {
    return yield* warned(
      Stage.remember(after, clearFloor, { streak: 0, skipped: null, overrides: memory.overrides + 1 })
    )
  }
  if (settings.countSkips === "whenGrown" && saysNothingNew(before)) return before
  const streak = memory.streak + 1
  const event: typeof CompactionEvent.CompactionSkipped.Type = {
    _tag: "CompactionSkipped",
    freed,
    required,
    level: after.report.level,
    streak,
    baseline,
    budget: budget.limit,
    protectedRecent: settings.protectedRecent,
    protectedToolResults: settings.protectedToolResults
  }
  yield* CompactionEvent.publish(event)
  // That a pass is not worth it yet is no failure.
  if (!isAuto && streak >= Math.max(1, settings.maxConsecutiveSkips)) {
    yield* warned(Stage.remember(before, clearFloor, { ...memory, streak }))
    return yield* unsatisfied(event, before)
  }
  // A pass that comes down to the same aim from here on must free what is required.
  const aim = Math.max(after.report.target ?? 0, after.view.price)
  const until = Math.ceil(aim * before.scale) + required
  return yield* warned(
    Stage.remember(before, clearFloor, { ...memory, streak, skipped: { limit: budget.limit, until } })
  )
})

/**
 * Has the provider count what a pass made, where an app gave a `TokenMeter.Counter`, and climbs on once where that is above
 * the aim: a price is a guess of what is billed, and the smaller view has another mixture of texts.
 *
 * @category stages
 * @since 0.1.0
 */
export const recount = <E, R>(ladder: Ladder.Ladder<E, R>): Stage.Stage<E, R> =>
  Effect.fnUntraced(function*(pass: Stage.Pass) {
    const { before, cause, counter, isPreview, report, scale, view } = pass
    if (counter === null || isPreview || cause === "overflow" || view === before) return pass
    if (report.target === null || report.infeasible !== null) return pass
    const tokens = yield* counter(view)
    const aim = Math.floor(report.target * scale)
    if (tokens === null || tokens <= aim) return pass
    const after = yield* Ladder.climb(ladder, pass, { target: Math.floor(aim * view.price / tokens) })
    const levels = Array.from(new Set([...report.levels, ...after.report.levels])).sort((a, b) => a - b)
    return { ...after, report: { ...after.report, level: Math.max(report.level, after.report.level), levels } }
  })

/**
 * Fails when a summary would not make the view smaller: what it stands for costs `before` tokens as it stands in the
 * view, the checkpoint `after`. Equal is not smaller.
 *
 * @category errors
 * @since 0.1.0
 */
export class SummaryNotSmaller extends Schema.TaggedError<SummaryNotSmaller>("effect-compaction/SummaryNotSmaller")(
  "SummaryNotSmaller",
  { before: Schema.Natural, after: Schema.Natural }
) {
  override get message() {
    return `The summary costs ${this.after} tokens and stands for ${this.before}: it is not smaller, and a cold prompt `
      + "cache for nothing is a loss. Ask for a shorter one (summary.maxTokens), or let a larger span be summarised "
      + "(summary.minSpan)."
  }
}

/**
 * The shrink guard: refuses a stage that did not lower the price of the view. It has no option, because nobody wants a
 * summary that makes the context larger.
 *
 * @category checks
 * @since 0.1.0
 */
export const shrinks: Stage.Check<SummaryNotSmaller> = (before, after) =>
  after.view.price < before.view.price
    ? Effect.succeed(after)
    : Effect.fail(new SummaryNotSmaller({ before: before.view.price, after: after.view.price }))
