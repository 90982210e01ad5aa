/**
 * Reads the event log of a session of DeepSeek Harness (`session.jsonl`), one event in each line.
 *
 * What is read and what is lost is in `docs/formats/deepseek-harness.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./parts/building.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Usage from "./parts/usage.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "deepseek-harness"

/**
 * Reads session logs of DeepSeek Harness.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    if (kind !== "lines") return undefined
    for (const [index, record] of first.entries()) {
      if (!Json.isObject(record)) continue
      if (record.type === "session" && record.createdAt !== undefined && typeof record.id === "string") {
        return `record ${index + 1} is the head of a session with an id and createdAt`
      }
      if (record.surfaceOp !== undefined && typeof record.type === "string" && Json.isObject(record.data)) {
        return `record ${index + 1} is an event with a surfaceOp`
      }
    }
    return undefined
  },
  start: (file, why) => start(file, why)
}

/** A message of the surface: what the model is shown, in order. */
interface Shown {
  /** The position of the event in the log. */
  readonly seq: number
  readonly message: Prompt.Message
  readonly place: Json.Place
  readonly usage: Schema.JsonObject | undefined
}

const start = (file: string, why: string): Reader.Parse => {
  const self: Reading = {
    session: Building.make(file, format, why),
    shown: [],
    system: undefined,
    // The head of the file is no event; a torn line is one that is missing.
    seq: -1
  }
  return {
    record: (value, line) => record(self, value, { file, line, field: "" }),
    end: () => Result.succeed(end(self))
  }
}

/** What was read so far. */
interface Reading {
  readonly session: Building.Building
  shown: Array<Shown>
  system: string | undefined
  seq: number
}

const record = (self: Reading, value: Schema.Json, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const event = yield* Json.object(value, place)
    const type = yield* Json.stringAt(event, "type", place)
    if (type === "session") return
    self.seq++
    if (event.surfaceOp !== undefined && event.surfaceOp !== null) {
      return yield* show(self, event, yield* Json.objectAt(event, "data", place), place)
    }
    if (type === "request/header" && Json.isObject(event.data) && Json.isObject(event.data.header)) {
      const { header } = event.data
      const within = Json.at(Json.at(place, "data"), "header")
      const text = yield* Json.optionalStringAt(header, "system", within)
      if (self.system !== undefined && text !== undefined && text !== self.system) {
        Building.notice(self.session, "system-changed", place.line)
      }
      self.system ??= text
      if (Json.isObject(header.config) && typeof header.config.model === "string") {
        self.session.model ??= header.config.model
      }
    }
  })

const end = ({ session, shown, system }: Reading): Session.Session => {
  // The header is written when the first request is made, after the first message.
  const first = shown[0]
  if (system !== undefined && first !== undefined) Building.push(session, Message.system(system), first.place.line)
  for (const { message, place, usage } of shown) {
    Building.push(session, message, place.line)
    if (usage === undefined) continue
    Building.bill(session, Usage.read(usage, Json.at(Json.at(place, "data"), "usage"), convention), place.line)
  }
  return Building.end(session, say)
}

const show = (self: Reading, event: Schema.JsonObject, data: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const within = Json.at(place, "data")
    const operation = event.surfaceOp
    const summary = Json.isObject(operation)
    const message = yield* readMessage(self, event, data, within, summary)
    if (message === undefined) return
    const usage = Json.isObject(data.usage) ? data.usage : undefined
    const entry: Shown = { seq: self.seq, message, place, usage }
    // A checkpoint stands beside what it is instead of: the session is read whole. All else that is replaced was
    // edited, so that both would say the same thing twice.
    if (Json.isObject(operation) && message.role !== "user") {
      const at = Json.at(place, "surfaceOp")
      const from = (yield* Json.optionalCountAt(operation, "start", at)) ?? self.seq
      const to = (yield* Json.optionalCountAt(operation, "end", at)) ?? from
      const kept = self.shown.filter((other) => other.seq < from || other.seq > to)
      for (const _ of self.shown.slice(kept.length)) Building.notice(self.session, "replaced", place.line)
      const index = self.shown.findIndex((other) => other.seq >= from)
      kept.splice(index < 0 ? kept.length : index, 0, entry)
      self.shown = kept
    } else self.shown.push(entry)
  })

const readMessage = (
  self: Reading,
  event: Schema.JsonObject,
  data: Schema.JsonObject,
  place: Json.Place,
  summary: boolean
): Json.Read<Prompt.Message | undefined> =>
  Result.gen(function*() {
    const type = typeof event.type === "string" ? event.type : ""
    switch (type) {
      case "user/message":
      case "context/message": {
        const wire = Json.isObject(data.message) ? data.message : data
        const within = wire === data ? place : Json.at(place, "message")
        const parts = yield* userParts(wire.content, Json.at(within, "content"))
        const source = type === "context/message"
          ? "runtime-context"
          : summary
          ? "context-summary"
          : sourceOf(wire.source)
        return Message.user(parts, source)
      }
      case "assistant/message": {
        const wire = yield* Json.objectAt(data, "message", place)
        const within = Json.at(place, "message")
        const parts: Array<Prompt.AssistantMessagePart> = []
        for (const [index, value] of (yield* Json.arrayAt(wire, "content", within)).entries()) {
          parts.push(yield* assistantPart(value, Json.at(Json.at(within, "content"), index)))
        }
        if (Json.isObject(wire.source) && typeof wire.source.model === "string") self.session.model = wire.source.model
        return Message.assistant(parts)
      }
      case "tool/result": {
        const wire = yield* Json.objectAt(data, "message", place)
        const within = Json.at(Json.at(place, "message"), "content")
        const results: Array<Prompt.ToolResultPart> = []
        for (const [index, value] of (yield* Json.array(wire.content, within)).entries()) {
          const at = Json.at(within, index)
          const block = yield* Json.object(value, at)
          const id = yield* Json.stringAt(block, "toolCallId", at)
          const content = yield* resultContent(block.content, Json.at(at, "content"))
          results.push(Message.result(id, "", content, block.isError === true))
        }
        return Message.tool(results)
      }
    }
    Building.notice(self.session, "unknown-line", place.line, type)
    return undefined
  })

/** Whose a message of the user is: snapshots are the runtime's, and notices and rounds of a goal are the harness's. */
const sourceOf = (source: Schema.Json | undefined): string | undefined => {
  if (!Json.isObject(source) || source.kind === "user") return undefined
  if (source.kind !== "plugin") return "hook"
  if (source.plugin === "compact") return "context-summary"
  return source.form === "notice" ? "hook" : "runtime-context"
}

const userParts = (
  content: Schema.Json | undefined,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.UserMessagePart>> =>
  typeof content === "string" ? Result.succeed([Message.text(content)]) : Json.eachBlock(content, place, userPart)

const userPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.UserMessagePart> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    return block.type === "text"
      ? Message.text(yield* Json.stringAt(block, "text", place))
      : imagePart(block) ?? Message.opaque(block)
  })

const mediaTypeOf = (block: Schema.JsonObject): string =>
  typeof block.mediaType === "string"
    ? block.mediaType
    : typeof block.mimeType === "string"
    ? block.mimeType
    : "image/*"

const imagePart = (block: Schema.JsonObject): Prompt.FilePart | undefined =>
  block.type === "image" && typeof block.data === "string" ? Message.file(mediaTypeOf(block), block.data) : undefined

const resultContent = (content: Schema.Json | undefined, place: Json.Place): Json.Read<Schema.Json> =>
  typeof content === "string"
    ? Result.succeed(content)
    : Result.map(Json.eachBlock(content, place, resultBlock), Message.resultOf)

const resultBlock = (value: Schema.Json, place: Json.Place): Json.Read<Schema.JsonObject> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    if (block.type === "text") return Message.resultText(yield* Json.stringAt(block, "text", place))
    return block.type === "image" && typeof block.data === "string"
      ? Message.resultImage(mediaTypeOf(block), block.data)
      : block
  })

const assistantPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.AssistantMessagePart> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    switch (yield* Json.stringAt(block, "type", place)) {
      case "text":
        return Message.text(yield* Json.stringAt(block, "text", place))
      case "reasoning":
        return Message.reasoning(yield* Json.stringAt(block, "text", place))
      case "tool-call": {
        const id = yield* Json.stringAt(block, "id", place)
        const name = yield* Json.stringAt(block, "name", place)
        return Message.callOfText(id, name, yield* Json.stringAt(block, "arguments", place))
      }
    }
    return Message.opaque(block)
  })

/** The input leaves out what was read from the cache. */
const convention: Usage.Convention = {
  input: ["inputTokens"],
  inside: [],
  cacheRead: ["cacheReadTokens"],
  cacheWrite: ["cacheWriteTokens"],
  output: ["outputTokens"]
}

const say = (kind: string, count: number, what: string): string => {
  switch (kind) {
    case "replaced":
      return `${count} messages that were edited later are read as they became`
    case "system-changed":
      return `the system prompt changed ${count} times; the first one is read`
    default:
      return `${count} events of the unknown type ${JSON.stringify(what)} left out`
  }
}
