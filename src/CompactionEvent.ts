/**
 * What a session tells about itself.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TokenMeter from "./TokenMeter.ts"

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
  session: Schema.Struct({
    removed: Schema.Natural,
    truncated: Schema.Natural,
    stubbed: Schema.Natural,
    altered: Schema.Natural
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
 * @category models
 * @since 0.1.0
 */
export const CompactionEvent = Schema.Union([
  Compacted,
  CompactionSkipped,
  Infeasible,
  PrefixChanged,
  TranscriptDiverged
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
