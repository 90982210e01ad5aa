/** What is told of summaries. */
import * as Schema from "effect/Schema"

/**
 * A summary was begun: of `entries` entries that cost `tokens` tokens, put before the summariser as `layout` says.
 *
 * @category models
 * @since 0.1.0
 */
export const SummaryStarted = Schema.TaggedStruct("SummaryStarted", {
  first: Schema.Natural,
  last: Schema.Natural,
  entries: Schema.Natural,
  tokens: Schema.Natural,
  count: Schema.Natural,
  generation: Schema.Natural
})

/**
 * A summary was accepted and waits for a boundary. `milliseconds` is how long it took; `before` what its span costs and
 * `after` what the checkpoint costs, in tokens. `provider` and `model` are who wrote it, `outputLimit` how long it might be;
 * `input`, of it `cacheRead` and `cacheWrite`, and `output` what was billed for it, in tokens, `null` when nothing says.
 * `claims` and `rules` are what the summary says and its span does not; `lost` are entries whose words found no room.
 *
 * @category models
 * @since 0.1.0
 */
export const SummaryReady = Schema.TaggedStruct("SummaryReady", {
  purpose: Schema.Literal("compaction"),
  milliseconds: Schema.Finite,
  before: Schema.Natural,
  after: Schema.Natural,
  provider: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  layout: Schema.Literals(["suffix", "standalone", "conversation"]),
  fallback: Schema.NullOr(
    Schema.Literals(["notSent", "prefixChanged", "pruned", "otherModel", "noTools", "overflow"])
  ),
  outputLimit: Schema.Natural,
  input: Schema.NullOr(Schema.Finite),
  cacheRead: Schema.NullOr(Schema.Finite),
  cacheWrite: Schema.NullOr(Schema.Finite),
  output: Schema.NullOr(Schema.Finite),
  claims: Schema.Array(Schema.String),
  rules: Schema.Array(Schema.String),
  lost: Schema.Array(Schema.Natural)
})

/**
 * A summary could not be written: it failed, was cut, was empty, took too long, or its fiber was interrupted or died.
 *
 * @category models
 * @since 0.1.0
 */
export const SummaryFailed = Schema.TaggedStruct("SummaryFailed", {
  cause: Schema.Literals(["failed", "truncated", "empty", "timeout", "interrupted", "defect"]),
  reason: Schema.String,
  milliseconds: Schema.Finite,
  failures: Schema.Natural
})

/**
 * A summary was written and not taken: it is not smaller than its span, claims what its span does not say, is no summary
 * at all, or its span is no longer in the view.
 *
 * @category models
 * @since 0.1.0
 */
export const SummaryRefused = Schema.TaggedStruct("SummaryRefused", {
  cause: Schema.Literals(["notSmaller", "unfaithful", "notSummary", "stale"]),
  reason: Schema.String
})

/**
 * A checkpoint took the place of its span: `seq` is its entry, `entries` how many it stands for.
 *
 * @category models
 * @since 0.1.0
 */
export const SummaryAbsorbed = Schema.TaggedStruct("SummaryAbsorbed", {
  seq: Schema.Natural,
  entries: Schema.Natural,
  generation: Schema.Natural
})

/**
 * Too many summaries failed in a row: none is begun any more, until `resumeSummaries`.
 *
 * @category models
 * @since 0.1.0
 */
export const SummariesStopped = Schema.TaggedStruct("SummariesStopped", { failures: Schema.Natural })
