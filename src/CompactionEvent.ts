/**
 * What a session tells about itself.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SummaryEvents from "./session/summaryEvents.ts"
import * as TokenMeter from "./TokenMeter.ts"

export * from "./session/summaryEvents.ts"

/**
 * One of the dearest entries of the smallest legal view: its seq and its price in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export const Holder = Schema.Struct({ seq: Schema.Natural, tokens: Schema.Natural })

/**
 * @category models
 * @since 0.1.0
 */
export type Holder = typeof Holder.Type

/**
 * A boundary: a pass was committed and the prefix changed. Prices in tokens, counts in entries; `removed`, `truncated`
 * and `stubbed` are of this pass, `session` of the whole session; `level` is the rung of the last decision.
 *
 * @category models
 * @since 0.1.0
 */
export const Compacted = Schema.TaggedStruct("Compacted", {
  before: Schema.Natural,
  after: Schema.Natural,
  freed: Schema.Int,
  messagesBefore: Schema.Natural,
  messagesAfter: Schema.Natural,
  removed: Schema.Natural,
  truncated: Schema.Natural,
  stubbed: Schema.Natural,
  absorbed: Schema.Natural,
  session: Schema.Struct({
    removed: Schema.Natural,
    truncated: Schema.Natural,
    stubbed: Schema.Natural,
    altered: Schema.Natural,
    absorbed: Schema.Natural
  }),
  level: Schema.Natural,
  count: Schema.Natural,
  kind: TokenMeter.Kind,
  budget: Schema.Int,
  target: Schema.NullOr(Schema.Int),
  generation: Schema.Natural,
  protectedRecent: Schema.Finite,
  protectedToolResults: Schema.Int
})

/**
 * The clear floor refused a pass: it would have freed `freed` tokens where `required` are asked for. `streak` counts the
 * refusals in a row, this one included.
 *
 * @category models
 * @since 0.1.0
 */
export const CompactionSkipped = Schema.TaggedStruct("CompactionSkipped", {
  freed: Schema.Int,
  required: Schema.Natural,
  level: Schema.Natural,
  streak: Schema.Natural,
  baseline: Schema.Natural,
  budget: Schema.Int,
  protectedRecent: Schema.Finite,
  protectedToolResults: Schema.Int
})

/**
 * Nothing legal fits the budget: the smallest view is `over` tokens too large, and these entries hold most of it.
 * Published when the holders change.
 *
 * @category models
 * @since 0.1.0
 */
export const Infeasible = Schema.TaggedStruct("Infeasible", {
  over: Schema.Natural,
  budget: Schema.Int,
  holders: Schema.Array(Holder)
})

/**
 * A boundary shortened or removed messages of people that state a lasting rule, and there was no room for the rule:
 * `standingInstructions` of the settings is how much there is. `seqs` are these messages.
 *
 * @category models
 * @since 0.1.0
 */
export const InstructionsDropped = Schema.TaggedStruct("InstructionsDropped", { seqs: Schema.Array(Schema.Natural) })

/**
 * A request carries more than a provider takes, and nothing that may become words is left: so many images, files and other
 * media, and so many bytes, where `maxImages` and `maxRequestBytes` (null, no limit) are allowed. The holders carry most of
 * what is too much. Published when they change.
 *
 * @category models
 * @since 0.1.0
 */
export const PayloadInfeasible = Schema.TaggedStruct("PayloadInfeasible", {
  media: Schema.Natural,
  maxImages: Schema.NullOr(Schema.Natural),
  bytes: Schema.Natural,
  maxRequestBytes: Schema.NullOr(Schema.Natural),
  holders: Schema.Array(Schema.Struct({ seq: Schema.Natural, media: Schema.Natural, bytes: Schema.Natural }))
})

/**
 * A pass was refused before it was committed, by what a policy asks first: the view stays at `before` tokens of price, and would
 * have come down to `after`. `refusals` counts those of the session.
 *
 * @category models
 * @since 0.1.0
 */
export const CompactionDeclined = Schema.TaggedStruct("CompactionDeclined", {
  before: Schema.Natural,
  after: Schema.Natural,
  reason: Schema.String,
  refusals: Schema.Natural
})

/**
 * Boundaries were taken back, from the one that made the generation `from` on: so many `boundaries`, with so many
 * `decisions`. `before` and `after` are the price of the view, in tokens, `generation` is the new one.
 *
 * @category models
 * @since 0.1.0
 */
export const CompactionUndone = Schema.TaggedStruct("CompactionUndone", {
  from: Schema.Natural,
  boundaries: Schema.Natural,
  decisions: Schema.Natural,
  before: Schema.Natural,
  after: Schema.Natural,
  generation: Schema.Natural
})

/**
 * The part of the view that stays does not extend the one sent before: `seq` is the first entry that is not where it was.
 *
 * @category models
 * @since 0.1.0
 */
export const PrefixChanged = Schema.TaggedStruct("PrefixChanged", {
  cause: Schema.Literals(["boundary", "repair", "system"]),
  seq: Schema.Int
})

/**
 * The caller's history is not the one seen before from this entry on (edited or rewound); decisions about it and all
 * that came after it were dropped.
 *
 * @category models
 * @since 0.1.0
 */
export const TranscriptDiverged = Schema.TaggedStruct("TranscriptDiverged", {
  seq: Schema.Natural,
  dropped: Schema.Natural
})

/**
 * What the meters say about a request, before it is decided whether to compact; see `TokenMeter.Reading`. Published on
 * every request but the same one again. Counts are of the view; `overhead` is what comes to it, in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export const TokenCounted = Schema.TaggedStruct("TokenCounted", {
  mode: TokenMeter.Mode,
  used: Schema.Natural,
  kind: TokenMeter.Kind,
  estimated: Schema.Natural,
  actual: Schema.NullOr(Schema.Natural),
  hybrid: Schema.Natural,
  calibrated: Schema.NullOr(Schema.Natural),
  anchor: Schema.NullOr(Schema.Natural),
  anchorRejected: Schema.Boolean,
  anchorLapsed: Schema.Boolean,
  tailTokens: Schema.Int,
  tailEntries: Schema.Natural,
  cacheAggregates: Schema.NullOr(Schema.Struct({
    uncached: Schema.Natural,
    cacheRead: Schema.Natural,
    cacheWrite: Schema.Natural
  })),
  stale: Schema.Boolean,
  ignored: Schema.Natural,
  overhead: Schema.Natural,
  refusals: Schema.Natural,
  overrides: Schema.Natural,
  budget: Schema.Int,
  ratio: Schema.NullOr(Schema.Finite)
})

/**
 * A pass failed, and the last good view was sent in the place of what it would have made: `error` is the tag of the error.
 *
 * @category models
 * @since 0.1.0
 */
export const PassFailed = Schema.TaggedStruct("PassFailed", { error: Schema.String, reason: Schema.String })

/**
 * The estimator could not read a message, which was priced by its characters: `reason` says why. Published once in a session.
 *
 * @category models
 * @since 0.1.0
 */
export const EstimatorFailed = Schema.TaggedStruct("EstimatorFailed", { reason: Schema.String })

/**
 * The provider was asked for a count at a boundary and gave none that can be: the pass went by prices.
 *
 * @category models
 * @since 0.1.0
 */
export const CountFailed = Schema.TaggedStruct("CountFailed", { reason: Schema.String })

/**
 * The budget of a request is another one than before, or comes from somewhere else; in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export const BudgetResolved = Schema.TaggedStruct("BudgetResolved", {
  total: Schema.Int,
  source: Schema.Literals(["given", "window", "model", "fallback", "maxTokens", "provider"]),
  overhead: Schema.Natural,
  limit: Schema.Int,
  reserve: Schema.Natural
})

/**
 * The system prompt and the tools cost more than the target: no pass can reach it. Published once.
 *
 * @category models
 * @since 0.1.0
 */
export const OverheadAboveTarget = Schema.TaggedStruct("OverheadAboveTarget", {
  fixed: Schema.Natural,
  target: Schema.Int,
  budget: Schema.Int
})

/**
 * The provenance gate refused a pass, because its count is not anchored on usage. `refusals` counts those of the session.
 *
 * @category models
 * @since 0.1.0
 */
export const PassRefused = Schema.TaggedStruct("PassRefused", {
  count: Schema.Natural,
  kind: TokenMeter.Kind,
  budget: Schema.Int,
  refusals: Schema.Natural
})

/**
 * The provenance gate let a pass through on an estimate, at the whole budget, because no usage ever came (`noUsage`), the
 * last in the same surroundings was below its own price (`rejected`), or all there was is of another system prompt, toolkit
 * or route, or older than the last boundary (`lapsed`). `overrides` counts those of the same cause.
 *
 * @category models
 * @since 0.1.0
 */
export const PassOverridden = Schema.TaggedStruct("PassOverridden", {
  count: Schema.Natural,
  budget: Schema.Int,
  cause: Schema.Literals(["noUsage", "rejected", "lapsed"]),
  overrides: Schema.Natural
})

/**
 * A pass was called for by a count above the price, and could decide nothing. Published once for each generation.
 *
 * @category models
 * @since 0.1.0
 */
export const CompactionPowerless = Schema.TaggedStruct("CompactionPowerless", {
  count: Schema.Natural,
  kind: TokenMeter.Kind,
  price: Schema.Natural,
  target: Schema.Int,
  ratio: Schema.NullOr(Schema.Finite),
  generation: Schema.Natural
})

/**
 * `maxMessages` aims at `aim` entries and the ladder came down to `entries`. It may trigger again when the transcript has
 * `armedAt` entries.
 *
 * @category models
 * @since 0.1.0
 */
export const MessagesAboveAim = Schema.TaggedStruct("MessagesAboveAim", {
  entries: Schema.Natural,
  aim: Schema.Natural,
  armedAt: Schema.Natural
})

/**
 * What the repair of the transcript dropped or added, by seq: results without a call, results that a later one replaced,
 * calls that got a synthetic result, results that were moved to their call, and entries with an item that the provider cannot
 * hold, for which words stand.
 *
 * @category models
 * @since 0.1.0
 */
export const TranscriptRepaired = Schema.TaggedStruct("TranscriptRepaired", {
  orphans: Schema.Array(Schema.Natural),
  duplicates: Schema.Array(Schema.Natural),
  synthetic: Schema.Array(Schema.Natural),
  moved: Schema.Array(Schema.Natural),
  opaque: Schema.Array(Schema.Natural)
})

/**
 * The full text of a tool result could not be written to the spill store; it is tried again at the next request.
 *
 * @category models
 * @since 0.1.0
 */
export const SpillFailed = Schema.TaggedStruct("SpillFailed", {
  seq: Schema.Natural,
  key: Schema.String,
  reason: Schema.String
})

/**
 * What changed in a session could not be written to its store; `events` wait, and are tried again with the next ones.
 *
 * @category models
 * @since 0.1.0
 */
export const SessionNotStored = Schema.TaggedStruct("SessionNotStored", {
  events: Schema.Natural,
  reason: Schema.String
})

/**
 * A tool result was cut when it came in, from `bytes` to at most `cap` bytes.
 *
 * @category models
 * @since 0.1.0
 */
export const ToolResultCapped = Schema.TaggedStruct("ToolResultCapped", {
  seq: Schema.Natural,
  tool: Schema.String,
  bytes: Schema.Natural,
  cap: Schema.Natural
})

/**
 * A rung asked a model whether old entries are still needed: `asked` units (calls with their results, single entries) in
 * so many `calls`, of which `answered` were answered. `failure` says why it was not done, and what was not answered leaves
 * oldest first.
 *
 * @category models
 * @since 0.1.0
 */
export const EntriesJudged = Schema.TaggedStruct("EntriesJudged", {
  calls: Schema.Natural,
  asked: Schema.Natural,
  answered: Schema.Natural,
  failure: Schema.NullOr(Schema.Literals(["failed", "timedOut"])),
  reason: Schema.NullOr(Schema.String)
})

/**
 * @category models
 * @since 0.1.0
 */
export const CompactionEvent = Schema.Union([
  Compacted,
  CompactionSkipped,
  CompactionDeclined,
  CompactionUndone,
  Infeasible,
  PayloadInfeasible,
  PrefixChanged,
  TranscriptDiverged,
  TokenCounted,
  BudgetResolved,
  OverheadAboveTarget,
  PassRefused,
  PassOverridden,
  PassFailed,
  EstimatorFailed,
  CountFailed,
  CompactionPowerless,
  InstructionsDropped,
  MessagesAboveAim,
  EntriesJudged,
  TranscriptRepaired,
  SpillFailed,
  SessionNotStored,
  ToolResultCapped,
  SummaryEvents.SummaryStarted,
  SummaryEvents.SummaryReady,
  SummaryEvents.SummaryFailed,
  SummaryEvents.SummaryRefused,
  SummaryEvents.SummaryAbsorbed,
  SummaryEvents.SummariesStopped
]).pipe(Schema.toTaggedUnion("_tag"))

/**
 * @category models
 * @since 0.1.0
 */
export type CompactionEvent = typeof CompactionEvent.Type

/**
 * Where events go. Without a manager they go nowhere, so that a stage can run by itself.
 *
 * @category services
 * @since 0.1.0
 */
export const Publisher = Context.Reference<(event: CompactionEvent) => Effect.Effect<void>>(
  "effect-compaction/CompactionEvent/Publisher",
  { defaultValue: () => () => Effect.void }
)

/**
 * Publishes an event.
 *
 * @category running
 * @since 0.1.0
 */
export const publish = (event: CompactionEvent): Effect.Effect<void> => Effect.flatMap(Publisher, (send) => send(event))
