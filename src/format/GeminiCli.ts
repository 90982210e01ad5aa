/**
 * Reads what gemini-cli records of a chat (`~/.gemini/tmp/<project>/chats/session-*.json`, in newer versions `.jsonl`)
 * and what it prints with `--output-format stream-json`.
 *
 * What is read and what is lost is in `docs/formats/gemini-cli.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./parts/building.ts"
import * as Findings from "./parts/findings.ts"
import * as Parts from "./parts/gemini.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import * as Usage from "./parts/usage.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "gemini-cli"

const notices = new Set(["info", "error", "warning"])

// What a call is before it has ended.
const pending: ReadonlySet<Schema.Json> = new Set(["validating", "scheduled", "awaiting_approval", "executing"])

const isMetadata = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  Json.isObject(value) && typeof value.sessionId === "string" && typeof value.projectHash === "string"

/**
 * Reads recordings of gemini-cli.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    const head = first[0]
    if (kind === "document") {
      return isMetadata(head) && Json.isArray(head.messages) ? "a session with a projectHash and messages" : undefined
    }
    if (first.some(isMetadata)) return "a record has a sessionId and a projectHash"
    return Json.isObject(head) && head.type === "init" && typeof head.session_id === "string" &&
        typeof head.model === "string"
      ? "record 1 is the \"init\" of a stream with a session_id and a model"
      : undefined
  },
  start: (file, why) => start(file, why)
}

interface Entry {
  readonly id: string | undefined
  readonly place: Json.Place
  readonly value: Schema.JsonObject
}

/** What was read so far. */
interface Reading {
  readonly session: Building.Building
  readonly ids: Parts.Pairing
  entries: Array<Entry>
  /** Where the entries with an id stand. */
  known: Map<string, number>
  streaming: boolean
  /** What a stream says in pieces, and the calls of a turn, until something else follows. */
  pieces: Pieces | undefined
  turn: { readonly parts: Array<Prompt.AssistantMessagePart> } | undefined
}

interface Pieces {
  readonly role: string
  readonly line: number
  readonly time: number | undefined
  text: string
}

const start = (file: string, why: string): Reader.Parse => {
  const session = Building.make(file, format, why)
  const self: Reading = {
    session,
    ids: Parts.pairing(session),
    entries: [],
    known: new Map(),
    streaming: false,
    pieces: undefined,
    turn: undefined
  }
  return { record: (value, line) => record(self, value, { file, line, field: "" }), end: () => end(self) }
}

const record = (self: Reading, value: Schema.Json, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    if (wire.type === "init") self.streaming = true
    if (self.streaming) return yield* streamed(self, wire, place)
    const set = wire.$set
    if (Json.isObject(set)) {
      if (set.messages === undefined) return
      self.entries = []
      self.known = new Map()
      const within = Json.at(place, "$set")
      return yield* addAll(self, yield* Json.arrayAt(set, "messages", within), Json.at(within, "messages"))
    }
    if (wire.$rewindTo !== undefined) {
      return rewind(self, yield* Json.stringAt(wire, "$rewindTo", place), place.line)
    }
    if (wire.type === undefined && wire.messages !== undefined) {
      return yield* addAll(self, yield* Json.arrayAt(wire, "messages", place), Json.at(place, "messages"))
    }
    if (wire.type === undefined && typeof wire.sessionId === "string") return
    yield* add(self, wire, place)
  })

const end = (self: Reading): Json.Read<Session.Session> =>
  Result.gen(function*() {
    flush(self)
    for (const entry of self.entries) yield* message(self, entry)
    return Building.end(self.session, say)
  })

const add = (self: Reading, value: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.map(Json.optionalStringAt(value, "id", place), (id) => {
    const known = id === undefined ? undefined : self.known.get(id)
    // A record is written again as it grows; the last one is whole.
    if (known !== undefined) self.entries[known] = { id, place, value }
    else put(self, { id, place, value })
  })

const put = (self: Reading, entry: Entry): void => {
  const index = self.entries.push(entry) - 1
  if (entry.id !== undefined && !self.known.has(entry.id)) self.known.set(entry.id, index)
}

const addAll = (self: Reading, values: Schema.JsonArray, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    for (const [index, given] of values.entries()) {
      const within = Json.at(place, index)
      const value = yield* Json.object(given, within)
      // All messages of a document are entries, whatever their ids.
      put(self, { id: typeof value.id === "string" ? value.id : undefined, place: within, value })
    }
  })

const rewind = (self: Reading, id: string, line: number): void => {
  const from = self.known.get(id)
  if (from === undefined) return
  for (const entry of self.entries.splice(from)) {
    Building.notice(self.session, "abandoned-branch", line)
    if (entry.id !== undefined && (self.known.get(entry.id) ?? -1) >= from) self.known.delete(entry.id)
  }
}

const message = (self: Reading, { place, value }: Entry): Json.Read<void> =>
  Result.gen(function*() {
    const type = yield* Json.stringAt(value, "type", place)
    const time = Time.ofText(value.timestamp)
    if (notices.has(type)) {
      Building.notice(self.session, "notice", place.line)
      return
    }
    const within = Json.at(place, "content")
    const parts = value.content === undefined || value.content === null
      ? []
      : yield* Parts.parts(value.content, within)
    if (type === "user") {
      for (const one of yield* Parts.userMessages(parts, within, self.ids, Parts.sourceOf(parts))) {
        Building.push(self.session, one, place.line, time)
      }
      return
    }
    if (type !== "gemini") {
      return yield* Json.fail(
        Json.at(place, "type"),
        `unknown type ${JSON.stringify(type)}, expected user, gemini, info, warning or error`
      )
    }
    const said = parts.filter((part) => part.text !== "")
    const answer: Array<Prompt.AssistantMessagePart> = [
      ...(yield* thoughts(value, place)),
      ...(yield* Parts.assistantParts(said, within, self.ids))
    ]
    const results: Array<Prompt.ToolResultPart> = []
    let done: number | undefined
    const calls = value.toolCalls === undefined || value.toolCalls === null
      ? []
      : yield* Json.arrayAt(value, "toolCalls", place)
    for (const [index, call] of calls.entries()) {
      const at = Json.at(Json.at(place, "toolCalls"), index)
      const wire = yield* Json.object(call, at)
      const id = yield* Json.stringAt(wire, "id", at)
      const name = yield* Json.stringAt(wire, "name", at)
      answer.push(Message.call(id, name, wire.args ?? {}))
      if (pending.has(wire.status ?? null)) {
        if (wire.result !== undefined && wire.result !== null) {
          Building.notice(self.session, "provisional", place.line)
        }
        continue
      }
      const result = yield* resultOf(wire, id, name, at)
      if (result === undefined) continue
      results.push(result)
      done = Time.ofText(wire.timestamp) ?? done
    }
    self.session.model = (yield* Json.optionalStringAt(value, "model", place)) ?? self.session.model
    Building.push(self.session, Message.assistant(answer), place.line, time)
    if (Json.isObject(value.tokens)) {
      Building.bill(self.session, Usage.read(value.tokens, Json.at(place, "tokens"), convention), place.line)
    }
    if (results.length > 0) Building.push(self.session, Message.tool(results), place.line, done)
  })

const flush = (self: Reading): void => {
  if (self.pieces === undefined) return
  const { line, role, text, time } = self.pieces
  self.pieces = undefined
  if (role === "user") {
    self.turn = undefined
    Building.push(self.session, Message.user([Message.text(text)]), line, time)
  } else {
    answering(self, line, time).push(Message.text(text))
  }
}

const answering = (self: Reading, line: number, time: number | undefined): Array<Prompt.AssistantMessagePart> => {
  if (self.turn === undefined) {
    self.turn = { parts: [] }
    Building.push(self.session, Message.assistant(self.turn.parts), line, time)
  }
  return self.turn.parts
}

const streamed = (self: Reading, value: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const type = yield* Json.stringAt(value, "type", place)
    const time = Time.ofText(value.timestamp)
    if (type === "message") {
      const role = yield* Json.stringAt(value, "role", place)
      const text = yield* Json.stringAt(value, "content", place)
      if (value.delta !== true || self.pieces?.role !== role) flush(self)
      if (self.pieces === undefined) self.pieces = { role, text, line: place.line, time }
      else self.pieces.text += text
      return
    }
    flush(self)
    switch (type) {
      case "init":
        self.session.model = yield* Json.optionalStringAt(value, "model", place)
        return
      case "tool_use": {
        const id = yield* Json.stringAt(value, "tool_id", place)
        const name = yield* Json.stringAt(value, "tool_name", place)
        answering(self, place.line, time).push(Message.call(id, name, value.parameters ?? {}))
        return
      }
      case "tool_result": {
        self.turn = undefined
        const id = yield* Json.stringAt(value, "tool_id", place)
        const failed = value.status === "error"
        const error = Json.isObject(value.error) ? value.error.message : value.error
        const output = value.output ?? (failed ? error : undefined) ?? ""
        const text = typeof output === "string" ? output : JSON.stringify(output)
        Building.push(self.session, Message.tool([Message.result(id, "", text, failed)]), place.line, time)
        return
      }
      case "result":
      case "error":
        Building.notice(self.session, "notice", place.line)
        return
    }
    Building.notice(self.session, "unknown-line", place.line, type)
  })

const thoughts = (value: Schema.JsonObject, place: Json.Place): Json.Read<ReadonlyArray<Prompt.ReasoningPart>> =>
  Result.gen(function*() {
    const parts: Array<Prompt.ReasoningPart> = []
    if (!Json.isArray(value.thoughts)) return parts
    for (const [index, thought] of value.thoughts.entries()) {
      const within = Json.at(Json.at(place, "thoughts"), index)
      const wire = yield* Json.object(thought, within)
      const subject = yield* Json.optionalStringAt(wire, "subject", within)
      const description = (yield* Json.optionalStringAt(wire, "description", within)) ?? ""
      // As the model writes it, which the recording took apart.
      parts.push(Message.reasoning(subject === undefined ? description : `**${subject}** ${description}`))
    }
    return parts
  })

/** What was sent back of a call; what the screen showed of it is not content. */
const resultOf = (
  call: Schema.JsonObject,
  id: string,
  name: string,
  place: Json.Place
): Json.Read<Prompt.ToolResultPart | undefined> =>
  Result.gen(function*() {
    if (call.result === undefined || call.result === null) return undefined
    const failed = call.status === "error" || call.status === "cancelled"
    const within = Json.at(place, "result")
    const blocks: Array<Schema.JsonObject> = []
    let error = false
    for (const [index, part] of (yield* Parts.parts(call.result, within)).entries()) {
      const at = Json.at(within, index)
      if (part.functionResponse !== undefined) {
        const answer = yield* Parts.response(
          yield* Json.objectAt(part, "functionResponse", at),
          Json.at(at, "functionResponse")
        )
        if (answer.failed) error = true
        if (typeof answer.value === "string") blocks.push(Message.resultText(answer.value))
        else if (Json.isArray(answer.value)) blocks.push(...answer.value.filter(Json.isObject))
      } else if (typeof part.text === "string") {
        blocks.push(Message.resultText(part.text))
      } else if (
        Json.isObject(part.inlineData) && typeof part.inlineData.mimeType === "string" &&
        typeof part.inlineData.data === "string"
      ) {
        blocks.push(Message.resultImage(part.inlineData.mimeType, part.inlineData.data))
      } else blocks.push(part)
    }
    return Message.result(id, name, Message.resultOf(blocks), failed || error)
  })

/** The input holds what was cached; thoughts are beside the output, and the prompt of tool use beside the input. */
const convention: Usage.Convention = {
  input: ["input"],
  inside: ["cacheRead"],
  cacheRead: ["cached"],
  besideInput: ["tool"],
  output: ["output"],
  besideOutput: ["thoughts"]
}

const say = (kind: string, count: number, what: string): string => {
  switch (kind) {
    case "notice":
      return `${count} notices of the client left out: the model never saw them`
    case "provisional":
      return Findings.provisional(count)
    case "abandoned-branch":
      return `${count} messages that a rewind took back left out`
    default:
      return `${count} lines of the unknown type ${JSON.stringify(what)} left out`
  }
}
