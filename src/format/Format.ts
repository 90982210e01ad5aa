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
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as PlatformError from "effect/PlatformError"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { errorAt } from "../text/syntax.ts"
import * as Amplifier from "./Amplifier.ts"
import * as AmplifierEvents from "./AmplifierEvents.ts"
import * as AnthropicMessages from "./AnthropicMessages.ts"
import * as ClaudeCode from "./ClaudeCode.ts"
import * as Cline from "./Cline.ts"
import * as Codex from "./Codex.ts"
import * as DeepSeekHarness from "./DeepSeekHarness.ts"
import * as Gemini from "./Gemini.ts"
import * as GeminiCli from "./GeminiCli.ts"
import * as MiniSweAgent from "./MiniSweAgent.ts"
import * as OpenAiChat from "./OpenAiChat.ts"
import * as OpenAiResponses from "./OpenAiResponses.ts"
import * as OpenCode from "./OpenCode.ts"
import * as OpenHands from "./OpenHands.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as JsonLines from "./parts/jsonLines.ts"
import * as Message from "./parts/message.ts"
import * as Pi from "./Pi.ts"
import * as PromptJson from "./PromptJson.ts"
import type * as Reader from "./Reader.ts"
import * as Session from "./Session.ts"
import * as SweAgent from "./SweAgent.ts"
import * as TauBench from "./TauBench.ts"
import * as VercelAi from "./VercelAi.ts"

/**
 * All readers, in the order in which they are asked whether a file is theirs.
 *
 * @category constants
 * @since 0.1.0
 */
export const readers: ReadonlyArray<Reader.Reader> = [
  Codex.reader,
  ClaudeCode.reader,
  DeepSeekHarness.reader,
  Pi.reader,
  AmplifierEvents.reader,
  OpenHands.reader,
  GeminiCli.reader,
  OpenCode.reader,
  SweAgent.reader,
  TauBench.reader,
  MiniSweAgent.reader,
  Cline.reader,
  VercelAi.reader,
  Gemini.reader,
  Amplifier.reader,
  PromptJson.reader,
  OpenAiResponses.reader,
  AnthropicMessages.reader,
  OpenAiChat.reader
]

interface Detected {
  readonly reader: Reader.Reader
  readonly why: string
}

const claim = (sample: Reader.Sample): Detected | undefined => {
  for (const reader of readers) {
    const why = reader.detect(sample)
    if (why !== undefined) return { reader, why }
  }
  return undefined
}

/** How many records or items of a list a sample has, and the sample with the first of them alone. */
const listed = (
  sample: Reader.Sample
): { readonly length: number; readonly head: (length: number) => Reader.Sample } => {
  const { first, kind } = sample
  if (kind === "lines") return { length: first.length, head: (length) => ({ kind, first: first.slice(0, length) }) }
  const [document] = first
  if (Json.isArray(document)) {
    return { length: document.length, head: (length) => ({ kind, first: [document.slice(0, length)] }) }
  }
  if (Json.isObject(document)) {
    for (const key of ["messages", "input", "content", "contents", "history"]) {
      const items = document[key]
      if (!Json.isArray(items)) continue
      return {
        length: items.length,
        head: (length) => ({ kind, first: [{ ...document, [key]: items.slice(0, length) }] })
      }
    }
  }
  return { length: 0, head: () => sample }
}

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
export const detect = (sample: Reader.Sample): Detected | undefined => {
  const whole = claim(sample)
  if (whole !== undefined) return whole
  const { head, length } = listed(sample)
  let found: Detected | undefined
  for (let taken = 1; taken < length; taken *= 2) {
    const part = claim(head(taken))
    if (part === undefined && found !== undefined) break
    found = part ?? found
  }
  return found
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
  const input = intake(options)
  input.push(text)
  return Result.flatMap(input.end(), only)
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
): Effect.fn.Return<Contents, Session.FormatError, FileSystem.FileSystem | Stdio.Stdio> {
  const files = yield* FileSystem.FileSystem
  const [, path, number] = /^(.+)#(\d+)$/.exec(given) ?? []
  const chosen = path !== undefined && !(yield* Effect.orElseSucceed(files.exists(given), () => false))
  const file = chosen ? path : given
  const bytes = file === "-" ? (yield* Stdio.Stdio).stdin : files.stream(file, { chunkSize })
  const name = file === "-" ? "standard input" : file
  const input = intake({
    file: name,
    ...(format === undefined ? undefined : { format }),
    ...(chosen ? { conversation: Number(number) } : undefined)
  })
  const decoder = new TextDecoder()
  yield* bytes.pipe(
    Stream.mapError((error) => unreadable(name, error)),
    Stream.runForEachArray((chunks) => {
      for (const chunk of chunks) input.push(decoder.decode(chunk, { stream: true }))
      return Effect.fromResult(input.state())
    })
  )
  input.push(decoder.decode())
  return yield* Effect.fromResult(input.end())
})

const only = ({ conversations, file, sessions }: Contents): Json.Read<Session.Session> => {
  const [first] = sessions
  if (first !== undefined && sessions.length === 1) return Result.succeed(first)
  return Json.fail(
    { file, line: 0, field: "" },
    `the file holds ${conversations} conversations; name one of them, from ${file}#0 to ${file}#${conversations - 1}`
  )
}

// Bytes; large enough that the cost of a piece does not matter, small beside any limit on memory.
const chunkSize = 256 * 1024

// Records that are held back until the format is known. Claude Code may begin with dozens of lines on old branches.
const sampleSize = 50

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

interface Line {
  readonly text: string
  readonly line: number
}

/** What a file holds: its sessions, one at least, and how many conversations there were in all. */
interface Contents {
  readonly file: string
  readonly sessions: ReadonlyArray<Session.Session>
  readonly conversations: number
}

/** Which reader a file is for, and which of its conversations is wanted; all where none is named. */
interface Wanted {
  readonly file: string
  readonly format?: Session.FormatName
  readonly conversation?: number
}

/** Takes the text of a file in pieces; `state` tells early whether it failed. */
interface Intake {
  readonly push: (text: string) => void
  readonly state: () => Json.Read<void>
  readonly end: () => Json.Read<Contents>
}

const intake = (wanted: Wanted): Intake => {
  const { file } = wanted
  const whole: Json.Place = { file, line: 0, field: "" }
  const lines = recordIntake(wanted)
  let failure: Session.FormatError | undefined
  let number = 0
  let asLines = false
  // All lines so far, until it is known that they are records; for a document that is the whole of it.
  let held: Array<Line> = []
  let objects = 0
  let firstIsRecord = false

  const check = (result: Json.Read<void>) => {
    if (Result.isFailure(result)) failure = result.failure
  }

  const feed = () => {
    for (const { line, text } of held) if (failure === undefined) check(lines.line(text, line))
    held = []
  }

  const splitter = JsonLines.splitter((text) => {
    number++
    if (failure !== undefined || text.trim() === "") return
    if (asLines) return check(lines.line(text, number))
    held.push({ text, line: number })
    const first = held.length === 1
    objects = isRecord(text) ? objects + 1 : 0
    // Two objects in lines after one another cannot stand in a JSON document, which would have a comma between them.
    if (objects > 1 || (!first && firstIsRecord)) {
      asLines = true
      feed()
    } else if (first) {
      firstIsRecord = objects === 1
    }
  })

  return {
    push: splitter.push,
    state: () => failure === undefined ? Result.succeed(undefined) : Result.fail(failure),
    end: () => {
      splitter.end()
      if (failure !== undefined) return Result.fail(failure)
      if (asLines) return lines.end()
      const first = held[0]
      if (first === undefined) return Json.fail(whole, "the file is empty")
      const text = held.map(({ text }) => text).join("\n")
      const parsed = parseDocument(text, file, held)
      if (Result.isSuccess(parsed)) return document(parsed.success, first, wanted)
      // A file too short for the rule above may still be lines: a torn one before a whole one, or two run together.
      const torn = first.text.trimStart().startsWith("{\"") &&
        (held.some(({ text }) => isRecord(text)) || JsonLines.recover(first.text, new Set()).values.length > 1)
      if (!torn) return Result.fail(parsed.failure)
      feed()
      return failure === undefined ? lines.end() : Result.fail(failure)
    }
  }
}

const isRecord = (text: string): boolean =>
  text.trimStart().startsWith("{") && text.trimEnd().endsWith("}") && Json.isObject(Message.parse(text))

const parseDocument = (text: string, file: string, held: ReadonlyArray<Line>): Json.Read<Schema.Json> => {
  const value = Message.parse(text)
  if (value !== undefined) return Result.succeed(value)
  const at = errorAt(text)
  const before = text.slice(0, at).split("\n")
  // Blank lines were left out of the text, so its lines are counted in those that were kept.
  const place = { file, line: held[before.length - 1]?.line ?? 0, field: "" }
  const column = (before.at(-1)?.length ?? 0) + 1
  return Json.fail(place, at >= text.length ? "expected more JSON, the text ends" : `expected JSON at column ${column}`)
}

const document = (value: Schema.Json, first: Line, wanted: Wanted): Json.Read<Contents> => {
  const named = readers.find((reader) => reader.format === wanted.format)
  // A file with a single record is a document by its shape, so it is tried as both.
  for (const kind of ["document", "lines"] as const) {
    const sample: Reader.Sample = { kind, first: [value] }
    const why = named?.detect(sample)
    const found = named === undefined ? detect(sample) : why === undefined ? undefined : { reader: named, why }
    if (found === undefined) continue
    return whole(found, wanted, value, kind === "document" ? 0 : first.line)
  }
  return named === undefined
    ? unknownFormat(wanted.file)
    : whole({ reader: named, why: "named by the caller" }, wanted, value, 0)
}

const whole = (detected: Detected, wanted: Wanted, value: Schema.Json, line: number): Json.Read<Contents> => {
  const feed = feeder(detected, wanted)
  return Result.flatMap(feed.record(value, line), feed.end)
}

const unknownFormat = (file: string): Json.Read<never> =>
  Json.fail(
    { file, line: 0, field: "" },
    `the format is not known; expected one of ${Session.FormatName.literals.join(", ")}`
  )

const notEmpty = (session: Session.Session): Json.Read<Session.Session> =>
  session.messages.length > 0
    ? Result.succeed(session)
    : Json.fail({ file: session.file, line: 0, field: "" }, `no message of the format ${session.format} in the file`)

/** Feeds records to a reader: each conversation of a pool to one of its own, as it comes, and all others to one. */
const feeder = ({ reader, why }: Detected, { conversation, file }: Wanted) => {
  const pool: Array<Session.Session> = []
  let pooled: number | undefined
  let single: Reader.Parse | undefined

  const one = (value: Schema.Json, line: number): Json.Read<void> => {
    const number = pooled ?? 0
    pooled = number + 1
    if (conversation !== undefined && conversation !== number) return Result.void
    const parse = reader.start(`${file}#${number}`, why)
    return Result.map(Result.flatMap(parse.record(value, line), parse.end), (session) => {
      if (session.messages.length > 0) pool.push(session)
    })
  }

  return {
    record: (value: Schema.Json, line: number): Json.Read<void> => {
      const conversations = reader.split?.(value)
      if (conversations === undefined || single !== undefined) {
        if (pooled !== undefined) return Json.fail({ file, line, field: "" }, "expected a conversation, as before")
        single ??= reader.start(file, why)
        return single.record(value, line)
      }
      pooled ??= 0
      for (const value of conversations) {
        const read = one(value, line)
        if (Result.isFailure(read)) return read
      }
      return Result.void
    },
    end: (): Json.Read<Contents> =>
      Result.gen(function*() {
        const count = Math.max(1, pooled ?? 1)
        if (conversation !== undefined && conversation >= count) {
          return yield* Json.fail(
            { file, line: 0, field: "" },
            `no conversation ${conversation}; the file holds ${count}, from ${file}#0`
          )
        }
        if (pooled === undefined) {
          const session = yield* notEmpty(yield* (single ?? reader.start(file, why)).end())
          return { file, sessions: [session], conversations: 1 }
        }
        if (pool.length === 0) {
          const empty = conversation === undefined ? file : `${file}#${conversation}`
          return yield* Json.fail(
            { file: empty, line: 0, field: "" },
            `no message of the format ${reader.format} in the file`
          )
        }
        return { file, sessions: pool, conversations: pooled }
      })
  }
}

/** Takes lines; finds the records in them and feeds these to the reader, once the format is known. */
const recordIntake = (wanted: Wanted) => {
  const { file, format } = wanted
  const keys = new Set<string>()
  const findings: Array<Session.Finding> = []
  let waiting: Array<{ readonly value: Schema.Json; readonly line: number }> = []
  let feed: ReturnType<typeof feeder> | undefined

  const begin = (): Json.Read<ReturnType<typeof feeder>> => {
    const sample: Reader.Sample = { kind: "lines", first: waiting.map(({ value }) => value) }
    const named = readers.find((reader) => reader.format === format)
    const found = named === undefined
      ? detect(sample)
      : { reader: named, why: named.detect(sample) ?? "named by the caller" }
    if (found === undefined) return unknownFormat(file)
    const started = feeder(found, wanted)
    for (const { line, value } of waiting) {
      const read = started.record(value, line)
      if (Result.isFailure(read)) return Result.fail(read.failure)
    }
    waiting = []
    feed = started
    return Result.succeed(started)
  }

  const record = (value: Schema.Json, line: number): Json.Read<void> => {
    if (feed !== undefined) return feed.record(value, line)
    waiting.push({ value, line })
    return waiting.length < sampleSize ? Result.succeed(undefined) : Result.map(begin(), () => undefined)
  }

  return {
    line: (text: string, line: number): Json.Read<void> => {
      const value = Message.parse(text)
      if (value !== undefined) {
        // A few dozen keys tell records of any format; a file that begins each with another key is none.
        if (keys.size < 32 && Json.isObject(value)) {
          for (const key in value) {
            keys.add(key)
            break
          }
        }
        return record(value, line)
      }
      const { lost, values } = JsonLines.recover(text, keys)
      const read = values.length === 1 ? "1 record read" : `${values.length} records read`
      findings.push({
        kind: "torn-line",
        line,
        detail: lost === 0 ? `${values.length} records run together, all read` : `${read}, ${lost} characters lost`
      })
      for (const value of values) {
        const result = record(value, line)
        if (Result.isFailure(result)) return result
      }
      return Result.succeed(undefined)
    },
    end: (): Json.Read<Contents> =>
      Result.gen(function*() {
        const contents = yield* (feed ?? (yield* begin())).end()
        // A line that is torn belongs to the file, and so to each session of it.
        const sessions = contents.sessions.map((session) => ({
          ...session,
          findings: Findings.ordered([...findings, ...session.findings])
        }))
        return findings.length === 0 ? contents : { ...contents, sessions }
      })
  }
}
