/** A session that is being read: a record, and the functions that readers fill it with. */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../../Marks.ts"
import type * as Reader from "../Reader.ts"
import type * as Session from "../Session.ts"
import * as Findings from "./findings.ts"
import * as Ids from "./ids.ts"
import * as Json from "./json.ts"
import * as Settle from "./settle.ts"

/**
 * What was read so far; used once.
 *
 * `lines` and `times` are those of the messages, by number. `made` counts the ids that were made.
 */
export interface Building {
  readonly file: string
  readonly format: Session.FormatName
  readonly why: string
  readonly messages: Array<Prompt.Message>
  readonly lines: Array<number>
  readonly times: Map<number, number>
  readonly usage: Map<number, Session.Usage>
  readonly findings: Array<Session.Finding>
  readonly noticed: Findings.Tally
  model: string | undefined
  made: number
}

export const make = (file: string, format: Session.FormatName, why: string): Building => ({
  file,
  format,
  why,
  messages: [],
  lines: [],
  times: new Map(),
  usage: new Map(),
  findings: [],
  noticed: new Map(),
  model: undefined,
  made: 0
})

/** Adds a message, and gives its number. `time` is when it was written, where the file says. */
export const push = (self: Building, message: Prompt.Message, line: number, time?: number): number => {
  const index = self.messages.push(message) - 1
  self.lines.push(line)
  if (time !== undefined) self.times.set(index, time)
  return index
}

/** Takes back all messages from this number on, with what was billed for them. */
export const cut = (self: Building, from: number): void => {
  for (let index = from; index < self.messages.length; index++) {
    self.times.delete(index)
    self.usage.delete(index)
  }
  self.messages.length = from
  self.lines.length = from
}

/** Something that is counted, and told at the end by the words given to {@link end}. */
export const notice = (self: Building, kind: string, line: number, what = ""): void =>
  Findings.notice(self.noticed, kind, line, what)

/** An id for a call that has none in the file. */
export const makeId = (self: Building, word: string): string => Ids.make(word, self.made++)

/** The usage of the last assistant message; a value that is no usage is a finding. */
export const bill = (self: Building, usage: Json.Read<Session.Usage>, line: number): void => {
  if (Result.isFailure(usage)) {
    self.findings.push({ kind: "usage", line, detail: `${usage.failure.field}: ${usage.failure.expected}` })
    return
  }
  const index = self.messages.findLastIndex((message) => message.role === "assistant")
  if (index >= 0) billAt(self, index, usage.success)
}

/** The usage of the message with this number; an empty one says nothing. */
export const billAt = (self: Building, index: number, usage: Session.Usage): void => {
  if (Object.keys(usage).length > 0) self.usage.set(index, usage)
}

const moved = <A>(values: ReadonlyMap<number, A>, from: ReadonlyArray<number>): ReadonlyMap<number, A> => {
  const all = new Map<number, A>()
  for (const [index, origin] of from.entries()) {
    const value = values.get(origin)
    if (value !== undefined) all.set(index, value)
  }
  return all
}

const nothing: Findings.Say = (kind) => kind

/**
 * The session that was read: each result behind its call and with the name of it. With `asIs` the messages stay as they
 * were read.
 */
export const end = (
  self: Building,
  say: Findings.Say = nothing,
  options: { readonly asIs?: boolean | undefined } = {}
): Session.Session => {
  const { file, findings, format, lines, model, noticed, why } = self
  const settled = Settle.settle(self.messages, (index) => lines[index] ?? 0)
  const pairs = settled.findings
  const placed = options.asIs === true
    ? self.messages.map((message, from) => ({ message, from }))
    : settled.placed
  const from = placed.map((one) => one.from)
  return {
    file,
    format,
    why,
    model,
    messages: placed.map(({ message }) => message),
    usage: moved(self.usage, from),
    times: moved(self.times, from),
    findings: Findings.ordered([...findings, ...Findings.told(noticed, say), ...pairs])
  }
}

const envelope = /^\s*<system-reminder(?:\s+source="([^"]*)")?/

/**
 * A user message of nothing but reminders is a machine's: a body without marks has only its text to tell. A message
 * with a person's words beside a reminder is the person's.
 */
export const sourced = (message: Prompt.UserMessage): Prompt.UserMessage => {
  let source: string | undefined
  for (const part of message.content) {
    if (part.type !== "text") return message
    const match = envelope.exec(part.text)
    if (match === null) return message
    source ??= match[1] !== undefined && Marks.machineSources.has(match[1]) ? match[1] : "hook"
  }
  return source === undefined ? message : Marks.set(message, { source })
}

/** Fails where a file holds no message. */
export const ended = (self: Building, say?: Findings.Say): Json.Read<Session.Session> =>
  self.messages.length === 0
    ? Json.fail({ file: self.file, line: 0, field: "" }, "expected at least one message")
    : Result.succeed(end(self, say))

/** A file that is one document: which, what it is called where a second one is refused, and whether it may say nothing. */
export interface Document {
  readonly file: string
  readonly format: Session.FormatName
  readonly why: string
  readonly what: string
  readonly mayBeEmpty?: boolean
  /** Whether the messages stay as they were read: see {@link end}. */
  readonly asIs?: boolean
  readonly say?: Findings.Say
}

/** Reads the one document of a file; a second is refused, since a session is one. */
export const document = (
  options: Document,
  read: (value: Schema.Json, place: Json.Place, self: Building) => Json.Read<void>
): Reader.Parse => {
  const { asIs, file, format, mayBeEmpty = false, say, what, why } = options
  const self = make(file, format, why)
  let isRead = false
  return {
    record: (value, line) => {
      const place: Json.Place = { file, line, field: "" }
      if (isRead) return Json.fail(place, `a second ${what}; a session is one`)
      isRead = true
      return read(value, place, self)
    },
    end: () => {
      if (!mayBeEmpty) return ended(self, say)
      return isRead
        ? Result.succeed(end(self, say, { asIs }))
        : Json.fail({ file, line: 0, field: "" }, `expected a ${what}, got nothing`)
    }
  }
}
