/**
 * The end of every recovery: no view of a conversation fits.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as CompactionEvent from "../CompactionEvent.ts"

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
