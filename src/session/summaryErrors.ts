/** Why a summary could not be written, or was not taken. */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"

/**
 * Fails when a summary could not be written. `reason` is what went wrong in a sentence, `cause` the error itself;
 * `isOverflow` tells that the request was too long for the summariser.
 *
 * @category errors
 * @since 0.1.0
 */
export class SummarizerFailed extends Schema.TaggedError<SummarizerFailed>("effect-compaction/SummarizerFailed")(
  "SummarizerFailed",
  { reason: Schema.String, isOverflow: Schema.Boolean, cause: Schema.optionalKey(Schema.Defect()) }
) {
  override get message() {
    return `The summary could not be written: ${this.reason}. The conversation is unchanged; the ladder serves instead. `
      + "Check the model behind the Summarizer layer, or leave `summary` out of the policy."
  }
}

/**
 * Fails when a summary took longer than its timeout.
 *
 * @category errors
 * @since 0.1.0
 */
export class SummaryTimedOut extends Schema.TaggedError<SummaryTimedOut>("effect-compaction/SummaryTimedOut")(
  "SummaryTimedOut",
  { milliseconds: Schema.Finite }
) {
  override get message() {
    return `No summary after ${Duration.format(Duration.millis(this.milliseconds))}. Raise summary.timeout, or use a `
      + "faster model."
  }
}

/**
 * Fails when a summary was cut at the output limit: half a summary is worse than none.
 *
 * @category errors
 * @since 0.1.0
 */
export class SummaryTruncated extends Schema.TaggedError<SummaryTruncated>("effect-compaction/SummaryTruncated")(
  "SummaryTruncated",
  { maxTokens: Schema.Natural }
) {
  override get message() {
    return `The summary was cut at the output limit (asked for at most ${this.maxTokens} tokens). Raise summary.maxTokens `
      + "or the output limit of the model."
  }
}

/**
 * Fails when a summary says nothing: it is empty or blank, or holds no text.
 *
 * @category errors
 * @since 0.1.0
 */
export class SummaryEmpty
  extends Schema.TaggedError<SummaryEmpty>("effect-compaction/SummaryEmpty")("SummaryEmpty", {})
{
  override get message() {
    return "The summary is empty. Check the model behind the Summarizer layer, or leave `summary` out of the policy."
  }
}

/**
 * Fails when the reply is no summary: it calls a tool, declines, asks back, has none of the sections that were asked for, or
 * is far too short for its span. `reason` says which, in a sentence.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotASummary extends Schema.TaggedError<NotASummary>("effect-compaction/NotASummary")("NotASummary", {
  reason: Schema.String
}) {
  override get message() {
    return `The reply is no summary: ${this.reason}. The conversation is unchanged; the ladder serves instead. Use another `
      + "model behind the Summarizer layer, say what to write in summary.directive, or leave `summary` out of the policy."
  }
}

/**
 * Fails when a summary claims what is not in what it summarises, and the policy refuses that.
 *
 * @category errors
 * @since 0.1.0
 */
export class SummaryUnfaithful extends Schema.TaggedError<SummaryUnfaithful>("effect-compaction/SummaryUnfaithful")(
  "SummaryUnfaithful",
  { claims: Schema.Array(Schema.String), rules: Schema.Array(Schema.String) }
) {
  override get message() {
    const claims = this.claims.slice(0, 5).join(", ")
    const rules = this.rules.slice(0, 3).join(" / ")
    return `The summary claims what its span does not say${claims === "" ? "" : `: ${claims}`}`
      + `${rules === "" ? "" : `; rules that nobody stated: ${rules}`}. Set summary.faithful to "warn" to accept it.`
  }
}

/**
 * Why a summary was not accepted, or not written.
 *
 * @category errors
 * @since 0.1.0
 */
export type SummaryError =
  | SummarizerFailed
  | SummaryTimedOut
  | SummaryTruncated
  | SummaryEmpty
  | NotASummary
  | SummaryUnfaithful
