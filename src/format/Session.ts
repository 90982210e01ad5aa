/**
 * A recorded agent session, as every reader returns it.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"

/**
 * The formats that can be read.
 *
 * @category models
 * @since 0.1.0
 */
export const FormatName = Schema.Literals([
  "claude-code",
  "openai-chat",
  "openai-responses",
  "anthropic-messages",
  "codex",
  "amplifier",
  "amplifier-events",
  "prompt",
  "gemini",
  "gemini-cli",
  "pi",
  "vercel-ai",
  "swe-agent",
  "mini-swe-agent",
  "openhands",
  "tau-bench",
  "deepseek-harness",
  "opencode",
  "cline"
])

/**
 * @category models
 * @since 0.1.0
 */
export type FormatName = typeof FormatName.Type

/**
 * What a provider billed for one response, in tokens, in four disjoint buckets: input that was not cached, input read
 * from the cache, input written to it, and output.
 *
 * A bucket is absent when the file does not say; nothing is guessed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Usage {
  readonly fresh?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  readonly output?: number
}

/**
 * Something a reader noticed that a person may want to know: a torn line, a duplicate, an orphan, what was left out.
 *
 * `line` counts from 1 and is 0 where the file is one JSON document.
 *
 * @category models
 * @since 0.1.0
 */
export interface Finding {
  readonly kind: string
  readonly line: number
  readonly detail: string
}

/**
 * What a writer leaves out or changes, for its format has no place for it: the message and the part of it by their
 * numbers, `part` undefined for the message itself, and `what` it is in words.
 *
 * @category models
 * @since 0.1.0
 */
export interface Loss extends Finding {
  readonly message: number
  readonly part: number | undefined
  readonly what: string
}

/**
 * A session in order, oldest message first; nothing the model was shown is left out silently.
 *
 * **Details**
 *
 * - `messages`: one `Prompt` message for each message of the wire. A response that was recorded in several lines is one
 *   message. Results keep their position; those of calls that ran in parallel may share one tool message.
 * - `usage`: by index into `messages`, of answers only: what the request answered by it was billed.
 * - `times`: by index into `messages`, when each was written, in milliseconds since the epoch, as the file says: of a
 *   response in several lines the first. A message whose time the file does not say has none. Clocks go back, so that a
 *   later message may have an earlier time; {@link gaps} takes care of that.
 * - `findings`: in the order of the file.
 *
 * @category models
 * @since 0.1.0
 */
export interface Session {
  readonly file: string
  readonly format: FormatName
  readonly why: string
  readonly model: string | undefined
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly usage: ReadonlyMap<number, Usage>
  readonly times: ReadonlyMap<number, number>
  readonly findings: ReadonlyArray<Finding>
}

/**
 * Whether a message is the answer to a request: it is of the assistant, and a model wrote it. What the client wrote in the
 * model's place has the source `hook`.
 *
 * @category getters
 * @since 0.1.0
 */
export const isAnswer = (message: Prompt.Message): boolean =>
  message.role === "assistant" && Marks.of(message).source !== "hook"

/**
 * How long before each message nothing was written, in milliseconds, by index into `messages`: from the last time before it
 * that the file says to its own. It is 0 where the clock went back; the first message with a time, and those without one,
 * have none.
 *
 * @category getters
 * @since 0.1.0
 */
export const gaps = (self: Pick<Session, "messages" | "times">): ReadonlyMap<number, number> => {
  const found = new Map<number, number>()
  let before: number | undefined
  for (const index of self.messages.keys()) {
    const time = self.times.get(index)
    if (time === undefined) continue
    if (before !== undefined) found.set(index, Math.max(0, time - before))
    before = time
  }
  return found
}

/**
 * Fails when a file cannot be read as a session: where it went wrong, and what was expected there.
 *
 * `line` counts from 1; 0 means the whole file. `field` is the path of the bad value, empty when there is none.
 *
 * @category errors
 * @since 0.1.0
 */
export class FormatError extends Schema.TaggedError<FormatError>("effect-compaction/FormatError")("FormatError", {
  file: Schema.String,
  line: Schema.Natural,
  field: Schema.String,
  expected: Schema.String
}) {
  override get message() {
    const place = this.line === 0 ? this.file : `${this.file}:${this.line}`
    return this.field === "" ? `${place}: ${this.expected}` : `${place}: ${this.field}: ${this.expected}`
  }
}
