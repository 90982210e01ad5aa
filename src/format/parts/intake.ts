/** Takes the text of a file in pieces, and finds out whether it is one JSON document or has a record in each line. */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { errorAt } from "../../text/syntax.ts"
import type * as Reader from "../Reader.ts"
import * as Session from "../Session.ts"
import * as Detect from "./detect.ts"
import * as Feed from "./feed.ts"
import * as Findings from "./findings.ts"
import * as Json from "./json.ts"
import * as JsonLines from "./jsonLines.ts"

// Records that are held back until the format is known. Claude Code may begin with dozens of lines on old branches.
const sampleSize = 50

interface Line {
  readonly text: string
  readonly line: number
}

interface Held {
  readonly value: Schema.Json
  readonly line: number
}

/** A file that is being read; used once. */
export interface Intake {
  readonly wanted: Feed.Wanted
  /** The longest line, and the longest document, in UTF-16 code units. */
  readonly longest: number
  readonly lines: JsonLines.Lines
  /** The first keys of records, and what was told of lines that are none. */
  readonly keys: Set<string>
  readonly findings: Array<Session.Finding>
  number: number
  asLines: boolean
  /** All lines so far, until it is known that they are records; for a document that is the whole of it. */
  held: Array<Line>
  size: number
  /** How many of the last held lines are records, and whether the first is one. */
  records: number
  firstIsRecord: boolean
  /** Records that wait until the format is known. */
  waiting: Array<Held>
  feed: Feed.Feed | undefined
  failure: Session.FormatError | undefined
}

export const make = (wanted: Feed.Wanted, longest: number = JsonLines.maxLength): Intake => ({
  wanted,
  longest,
  lines: JsonLines.lines(),
  keys: new Set(),
  findings: [],
  number: 0,
  asLines: false,
  held: [],
  size: 0,
  records: 0,
  firstIsRecord: false,
  waiting: [],
  feed: undefined,
  failure: undefined
})

const placeOf = (self: Intake, line: number): Json.Place => ({ file: self.wanted.file, line, field: "" })

const check = (self: Intake, result: Json.Read<unknown>): void => {
  if (Result.isFailure(result)) self.failure ??= result.failure
}

const tooLong = (self: Intake, what: string, line: number): Json.Read<never> =>
  Json.fail(placeOf(self, line), `expected a ${what} of at most ${self.longest} characters`)

export const push = (self: Intake, text: string): void => {
  if (self.failure !== undefined) return
  JsonLines.push(self.lines, text, (line) => take(self, line), self.longest)
  if (self.lines.isOver) check(self, tooLong(self, "line", self.number + 1))
}

/** Whether the file failed so far, so that the rest of it need not be read. */
export const state = ({ failure }: Intake): Json.Read<void> =>
  failure === undefined ? Result.void : Result.fail(failure)

const take = (self: Intake, text: string): void => {
  const number = ++self.number
  if (self.failure !== undefined || text.trim() === "") return
  if (self.asLines) return check(self, takeRecord(self, text, number))
  self.size += text.length + 1
  self.held.push({ text, line: number })
  const first = self.held.length === 1
  self.records = isRecord(text) ? self.records + 1 : 0
  // Two objects in lines after one another cannot stand in a JSON document, which would have a comma between them.
  if (self.records > 1 || (!first && self.firstIsRecord)) {
    self.asLines = true
    takeHeld(self)
  } else if (first) {
    self.firstIsRecord = self.records === 1
  } else if (self.size > self.longest) {
    check(self, tooLong(self, "document", 0))
  }
}

const takeHeld = (self: Intake): void => {
  for (const { line, text } of self.held) if (self.failure === undefined) check(self, takeRecord(self, text, line))
  self.held = []
}

/** A record that is nested too deep is one all the same: the error is its own. */
const isRecord = (text: string): boolean => {
  if (!text.trimStart().startsWith("{") || !text.trimEnd().endsWith("}")) return false
  const read = Json.decode(text)
  return Result.isSuccess(read) ? Json.isObject(read.success) : read.failure.reason === "deep"
}

// ---------------------------------------------------------------------------------------------------------------------
// Lines
// ---------------------------------------------------------------------------------------------------------------------

const takeRecord = (self: Intake, text: string, line: number): Json.Read<void> => {
  const read = Json.decode(text)
  if (Result.isSuccess(read)) {
    const value = read.success
    // A few dozen keys tell records of any format; a file that begins each with another key is none.
    if (self.keys.size < 32 && Json.isObject(value)) {
      for (const key in value) {
        self.keys.add(key)
        break
      }
    }
    return record(self, value, line)
  }
  if (read.failure.reason === "deep") {
    return Json.fail({ ...placeOf(self, line), field: read.failure.path }, Json.notDeep)
  }
  const { lost, values } = JsonLines.recover(text, self.keys)
  const what = values.length === 1 ? "1 record read" : `${values.length} records read`
  self.findings.push({
    kind: "torn-line",
    line,
    detail: lost === 0 ? `${values.length} records run together, all read` : `${what}, ${lost} characters lost`
  })
  for (const value of values) {
    const result = record(self, value, line)
    if (Result.isFailure(result)) return result
  }
  return Result.void
}

const record = (self: Intake, value: Schema.Json, line: number): Json.Read<void> => {
  if (self.feed !== undefined) return Feed.record(self.feed, value, line)
  self.waiting.push({ value, line })
  return self.waiting.length < sampleSize ? Result.void : Result.map(begin(self), () => undefined)
}

const unknownFormat = (self: Intake): Json.Read<never> =>
  Json.fail(
    placeOf(self, 0),
    `the format is not known; expected one of ${Session.FormatName.literals.join(", ")}`
  )

const namedReader = ({ wanted: { format } }: Intake): Reader.Reader | undefined =>
  Detect.readers.find((reader) => reader.format === format)

/** Finds the format of the records that wait, and feeds them. */
const begin = (self: Intake): Json.Read<Feed.Feed> => {
  const sample: Reader.Sample = { kind: "lines", first: self.waiting.map(({ value }) => value) }
  const named = namedReader(self)
  const found = named === undefined
    ? Detect.detect(sample)
    : { reader: named, why: named.detect(sample) ?? "named by the caller" }
  if (found === undefined) return unknownFormat(self)
  const feed = Feed.make(found, self.wanted)
  for (const { line, value } of self.waiting) {
    const read = Feed.record(feed, value, line)
    if (Result.isFailure(read)) return Result.fail(read.failure)
  }
  self.waiting = []
  self.feed = feed
  return Result.succeed(feed)
}

const endLines = (self: Intake): Json.Read<Feed.Contents> =>
  Result.gen(function*() {
    const { findings } = self
    const contents = yield* Feed.end(self.feed ?? (yield* begin(self)))
    if (findings.length === 0) return contents
    // A line that is torn belongs to the file, and so to each session of it.
    const sessions = contents.sessions.map((session) => ({
      ...session,
      findings: Findings.ordered([...findings, ...session.findings])
    }))
    return { ...contents, sessions }
  })

// ---------------------------------------------------------------------------------------------------------------------
// A document
// ---------------------------------------------------------------------------------------------------------------------

export const end = (self: Intake): Json.Read<Feed.Contents> => {
  if (self.failure === undefined) JsonLines.finish(self.lines, (line) => take(self, line))
  if (self.failure !== undefined) return Result.fail(self.failure)
  if (self.asLines) return endLines(self)
  const { held } = self
  const first = held[0]
  if (first === undefined) return Json.fail(placeOf(self, 0), "the file is empty")
  const text = held.map(({ text }) => text).join("\n")
  const read = Json.decode(text)
  if (Result.isSuccess(read)) return document(self, read.success, first)
  if (read.failure.reason === "deep") {
    return Json.fail({ ...placeOf(self, 0), field: read.failure.path }, Json.notDeep)
  }
  // A file too short for the rule above may still be lines: a torn one before a whole one, or two run together.
  const torn = first.text.trimStart().startsWith("{\"") &&
    (held.some(({ text }) => isRecord(text)) || JsonLines.recover(first.text, new Set()).values.length > 1)
  if (!torn) return noJson(self, text, held)
  takeHeld(self)
  return Result.flatMap(state(self), () => endLines(self))
}

const noJson = (self: Intake, text: string, held: ReadonlyArray<Line>): Json.Read<never> => {
  const at = errorAt(text)
  const before = text.slice(0, at).split("\n")
  // Blank lines were left out of the text, so its lines are counted in those that were kept.
  const place = placeOf(self, held[before.length - 1]?.line ?? 0)
  const column = (before.at(-1)?.length ?? 0) + 1
  return Json.fail(place, at >= text.length ? "expected more JSON, the text ends" : `expected JSON at column ${column}`)
}

const document = (self: Intake, value: Schema.Json, first: Line): Json.Read<Feed.Contents> => {
  const named = namedReader(self)
  // A file with a single record is a document by its shape, so it is tried as both.
  for (const kind of ["document", "lines"] as const) {
    const sample: Reader.Sample = { kind, first: [value] }
    const why = named?.detect(sample)
    const found = named === undefined ? Detect.detect(sample) : why === undefined ? undefined : { reader: named, why }
    if (found !== undefined) return whole(self, found, value, kind === "document" ? 0 : first.line)
  }
  return named === undefined
    ? unknownFormat(self)
    : whole(self, { reader: named, why: "named by the caller" }, value, 0)
}

const whole = (
  self: Intake,
  detected: Detect.Detected,
  value: Schema.Json,
  line: number
): Json.Read<Feed.Contents> => {
  const feed = Feed.make(detected, self.wanted)
  return Result.flatMap(Feed.record(feed, value, line), () => Feed.end(feed))
}
