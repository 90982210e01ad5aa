/**
 * Reads a recorded session of any known format, from a file, from standard input or from text.
 *
 * The file is read line by line and never kept whole, unless it is one JSON document. The format is found from what the
 * first records hold, or named.
 *
 * **Details**
 *
 * - A file has one JSON value in each line when its first line that is not blank is a JSON object and another line
 *   follows, or when two lines after one another are. Otherwise it is one JSON document.
 * - Some formats put many conversations into one file, a pool. Each of them is a session named `file#0`, `file#1` ….
 * - A line that is no JSON value is searched for records that run together or follow half a record. What was found and
 *   what was lost is a finding of kind `torn-line`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as PlatformError from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as AnthropicMessages from "./AnthropicMessages.ts"
import * as OpenAiChat from "./OpenAiChat.ts"
import * as OpenAiResponses from "./OpenAiResponses.ts"
import * as Detect from "./parts/detect.ts"
import type * as Feed from "./parts/feed.ts"
import * as Intake from "./parts/intake.ts"
import * as Json from "./parts/json.ts"
import * as PromptJson from "./PromptJson.ts"
import type * as Reader from "./Reader.ts"
import * as Session from "./Session.ts"

/**
 * All readers, in the order in which they are asked whether a file is theirs.
 *
 * @category constants
 * @since 0.1.0
 */
export const readers: ReadonlyArray<Reader.Reader> = Detect.readers

/**
 * Finds the reader of a sample, and why it is that one.
 *
 * **Details**
 *
 * What no reader takes as a whole belongs to the reader of what comes before the bad record: so that the error is that
 * of the record, which has a place, and not that the format is not known.
 *
 * @category detection
 * @since 0.1.0
 */
export const detect = (sample: Reader.Sample): { readonly reader: Reader.Reader; readonly why: string } | undefined =>
  Detect.detect(sample)

/**
 * The formats that can be written.
 *
 * @category models
 * @since 0.1.0
 */
export const Target = Schema.Literals(["openai-chat", "openai-responses", "anthropic-messages", "prompt"])

/**
 * @category models
 * @since 0.1.0
 */
export type Target = typeof Target.Type

/**
 * Writes messages in a format, without model and tools; what it has no place for is listed in `losses`.
 *
 * @category writing
 * @since 0.1.0
 */
export const write = (
  to: Target,
  messages: ReadonlyArray<Prompt.Message>
): { readonly value: Schema.JsonObject; readonly losses: ReadonlyArray<Session.Loss> } => {
  switch (to) {
    case "openai-chat":
      return OpenAiChat.write(messages)
    case "openai-responses":
      return OpenAiResponses.write(messages)
    case "anthropic-messages":
      return AnthropicMessages.write(messages)
    case "prompt":
      return PromptJson.write(messages)
  }
}

/**
 * Reads a session from text.
 *
 * `file` names the text in errors and in the session; `conversation` is the one to read of a pool. Fails with a
 * `FormatError`.
 *
 * @category reading
 * @since 0.1.0
 */
export const fromString = (
  text: string,
  options: { readonly file: string; readonly format?: Session.FormatName; readonly conversation?: number }
): Result.Result<Session.Session, Session.FormatError> => {
  const input = Intake.make(options)
  Intake.push(input, text)
  return Result.flatMap(Intake.end(input), only)
}

/**
 * Reads a session from a file, or from standard input where `file` is `"-"`.
 *
 * `file#0`, `file#1` … name one conversation of a pool, unless there is a file of that name. Fails with a `FormatError`,
 * also when the file cannot be read or is a pool of several.
 *
 * @category reading
 * @since 0.1.0
 */
export const read = Effect.fnUntraced(function*(
  file: string,
  options?: { readonly format?: Session.FormatName }
): Effect.fn.Return<Session.Session, Session.FormatError, FileSystem.FileSystem | Stdio.Stdio> {
  return yield* Effect.fromResult(only(yield* load(file, options?.format)))
})

/**
 * Reads all sessions of a file, as {@link read} reads one. Conversations of a pool without a message are left out; the
 * numbers in the names count them.
 *
 * @category reading
 * @since 0.1.0
 */
export const readAll = Effect.fnUntraced(function*(
  file: string,
  options?: { readonly format?: Session.FormatName }
): Effect.fn.Return<ReadonlyArray<Session.Session>, Session.FormatError, FileSystem.FileSystem | Stdio.Stdio> {
  return (yield* load(file, options?.format)).sessions
})

const load = Effect.fnUntraced(function*(
  given: string,
  format: Session.FormatName | undefined
): Effect.fn.Return<Feed.Contents, Session.FormatError, FileSystem.FileSystem | Stdio.Stdio> {
  const files = yield* FileSystem.FileSystem
  const [, path, number] = /^(.+)#(\d+)$/.exec(given) ?? []
  const chosen = path !== undefined && !(yield* Effect.orElseSucceed(files.exists(given), () => false))
  const file = chosen ? path : given
  const bytes = file === "-" ? (yield* Stdio.Stdio).stdin : files.stream(file, { chunkSize })
  const name = file === "-" ? "standard input" : file
  const input = Intake.make({
    file: name,
    ...(format === undefined ? undefined : { format }),
    ...(chosen ? { conversation: Number(number) } : undefined)
  })
  const decoder = new TextDecoder()
  yield* bytes.pipe(
    Stream.mapError((error) => unreadable(name, error)),
    Stream.runForEachArray((chunks) => {
      for (const chunk of chunks) Intake.push(input, decoder.decode(chunk, { stream: true }))
      return Effect.fromResult(Intake.state(input))
    })
  )
  Intake.push(input, decoder.decode())
  return yield* Effect.fromResult(Intake.end(input))
})

const only = ({ conversations, file, sessions }: Feed.Contents): Json.Read<Session.Session> => {
  const [first] = sessions
  if (first !== undefined && sessions.length === 1) return Result.succeed(first)
  return Json.fail(
    { file, line: 0, field: "" },
    `the file holds ${conversations} conversations; name one of them, from ${file}#0 to ${file}#${conversations - 1}`
  )
}

// Bytes; large enough that the cost of a piece does not matter, small beside any limit on memory.
const chunkSize = 256 * 1024

const unreadable = (file: string, error: PlatformError.PlatformError): Session.FormatError => {
  const reason = error.reason
  // Reading a directory fails as a bad resource.
  const expected = reason._tag === "NotFound"
    ? "no such file"
    : reason._tag === "PermissionDenied"
    ? "not readable: permission denied"
    : reason._tag === "BadResource"
    ? "not readable: expected a file, not a directory or a device"
    : `not readable: ${reason.message}`
  return new Session.FormatError({ file, line: 0, field: "", expected })
}
