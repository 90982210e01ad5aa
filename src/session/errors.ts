import * as Schema from "effect/Schema"
import * as CompactionEvent from "../CompactionEvent.ts"

/**
 * Fails when a compaction is asked for while one is running, or a summary is being written.
 *
 * @category errors
 * @since 0.1.0
 */
export class CompactionBusy extends Schema.TaggedError<CompactionBusy>("effect-compaction/CompactionBusy")(
  "CompactionBusy",
  {}
) {
  override get message() {
    return "A compaction is running in this session. Wait until statusChanges says that it is over, or leave this one out."
  }
}

/**
 * Fails when the session, and not the caller, ended what was running: it was closed, or put in the place of another.
 *
 * @category errors
 * @since 0.1.0
 */
export class CompactionCancelled
  extends Schema.TaggedError<CompactionCancelled>("effect-compaction/CompactionCancelled")(
    "CompactionCancelled",
    {}
  )
{
  override get message() {
    return "The session ended this compaction: it was closed or set anew. Call compactNow again for what it holds "
      + "now, if it is open."
  }
}

/**
 * Fails when the entries that were summarised were removed or absorbed while the summary was written. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class SpanChanged extends Schema.TaggedError<SpanChanged>("effect-compaction/SpanChanged")(
  "SpanChanged",
  { entries: Schema.Natural }
) {
  override get message() {
    return `Some of the ${this.entries} entries that were summarised left the view meanwhile: the summary was thrown away. `
      + "Call compactNow again when no request is running."
  }
}

/**
 * Fails when an event of a compaction could not be appended to the log. Where it was the mark of the end, the session is
 * locked until it is opened anew.
 *
 * @category errors
 * @since 0.1.0
 */
export class CommitFailed extends Schema.TaggedError<CommitFailed>("effect-compaction/CommitFailed")("CommitFailed", {
  event: Schema.Literals(["start", "replace", "end"]),
  reason: Schema.String
}) {
  override get message() {
    return `The ${this.event} of a compaction could not be appended to the log: ${this.reason}. `
      + `${
        this.event === "end"
          ? "Open the session anew to go on (ContextManager.open)."
          : "The view has not changed: see to the SessionStore and try again."
      }`
  }
}

/**
 * Fails when a compaction is in the log, and the log could not be flushed to where it is kept.
 *
 * @category errors
 * @since 0.1.0
 */
export class PersistenceFailed extends Schema.TaggedError<PersistenceFailed>("effect-compaction/PersistenceFailed")(
  "PersistenceFailed",
  { reason: Schema.String }
) {
  override get message() {
    return `The compaction was made and may not outlive this process: ${this.reason}. Call flush again.`
  }
}

/**
 * Fails when no smaller view can be made of a conversation that the provider refused, or the smallest is too large still:
 * it is about `tokens` tokens, the provider allows `maximum` (`null` when it did not say), and `holders` are its dearest
 * entries. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContextCannotFit extends Schema.TaggedError<ContextCannotFit>("effect-compaction/ContextCannotFit")(
  "ContextCannotFit",
  {
    tokens: Schema.Natural,
    maximum: Schema.NullOr(Schema.Natural),
    holders: Schema.Array(CompactionEvent.Holder)
  }
) {
  override get message() {
    const holders = this.holders.map((holder) => `entry ${holder.seq} (${holder.tokens} tokens)`).join(", ")
    return `The smallest view of this conversation is about ${this.tokens} tokens`
      + `${
        this.maximum === null ? "" : `, and the model takes ${this.maximum}`
      }. It is held by ${holders}. Use a model `
      + "with a larger window, shorten what is pinned or the system prompt, or start anew."
  }
}

/**
 * Fails when a boundary is to be taken back that is not there: there was none of this generation, or nothing that it decided
 * stands any more. `generations` are those that can be taken back. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class BoundaryNotFound extends Schema.TaggedError<BoundaryNotFound>("effect-compaction/BoundaryNotFound")(
  "BoundaryNotFound",
  { generation: Schema.Finite, generations: Schema.Array(Schema.Natural) }
) {
  override get message() {
    const known = this.generations.length === 0 ?
      "no boundary stands in this session" :
      `write one of ${this.generations.join(", ")}`
    return `There is no boundary of generation ${this.generation} to take back: ${known}. The generation of a boundary is in `
      + "its report and in its Compacted event."
  }
}

/**
 * Fails when a view without a boundary would not fit: it is `tokens` tokens, and the budget of the last request is `budget`.
 * Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class UndoCannotFit extends Schema.TaggedError<UndoCannotFit>("effect-compaction/UndoCannotFit")(
  "UndoCannotFit",
  { generation: Schema.Natural, tokens: Schema.Natural, budget: Schema.Int }
) {
  override get message() {
    return `Without the boundaries from generation ${this.generation} on the view is ${this.tokens} tokens, and the budget is `
      + `${this.budget}. Take back a later boundary, or raise maxTokens or window in the settings, or the budget of the call.`
  }
}
