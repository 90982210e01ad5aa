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
import * as Findings from "./parts/findings.ts"
import * as Parts from "./parts/gemini.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"

const format = "gemini-cli"

const notices = new Set(["info", "error", "warning"])

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
  readonly id: string
  readonly place: Json.Place
  readonly value: Schema.JsonObject
}

const start = (file: string, why: string): Reader.Parse => {
  const session = Wire.builder(file, format, why)
  const noticed = Findings.tally()
  const ids = Parts.pairing()
  let entries: Array<Entry> = []
  let streaming = false
  // What a stream says in pieces, and the calls of a turn, until something else follows.
  let pieces: { readonly role: string; text: string; readonly line: number } | undefined
  let turn: { readonly parts: Array<Prompt.AssistantMessagePart> } | undefined

  const add = (value: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.map(Json.optionalStringAt(value, "id", place), (given) => {
      const entry: Entry = { id: given ?? `entry ${entries.length}`, place, value }
      const known = entries.findIndex(({ id }) => id === entry.id)
      if (given === undefined || known < 0) entries.push(entry)
      // A record is written again as it grows; the last one is whole.
      else entries[known] = entry
    })

  const addAll = (values: Schema.JsonArray, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      for (const [index, value] of values.entries()) {
        const within = Json.at(place, index)
        const entry = yield* Json.object(value, within)
        // All messages of a document are entries, whatever their ids.
        entries.push({ id: typeof entry.id === "string" ? entry.id : "", place: within, value: entry })
      }
    })

  const rewind = (id: string, line: number) => {
    const index = entries.findIndex((entry) => entry.id === id)
    if (index < 0) return
    for (const _ of entries.slice(index)) noticed.add("abandoned-branch", line)
    entries = entries.slice(0, index)
  }

  const message = ({ place, value }: Entry): Json.Read<void> =>
    Result.gen(function*() {
      const type = yield* Json.stringAt(value, "type", place)
      if (notices.has(type)) {
        noticed.add("notice", place.line)
        return
      }
      const within = Json.at(place, "content")
      const parts = value.content === undefined || value.content === null
        ? []
        : yield* Parts.parts(value.content, within)
      if (type === "user") {
        for (const one of yield* Parts.userMessages(parts, within, ids, Parts.sourceOf(parts))) {
          session.push(one, place.line)
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
        ...(yield* Parts.assistantParts(said, within, ids))
      ]
      const results: Array<Prompt.ToolResultPart> = []
      const calls = value.toolCalls === undefined || value.toolCalls === null
        ? []
        : yield* Json.arrayAt(value, "toolCalls", place)
      for (const [index, call] of calls.entries()) {
        const at = Json.at(Json.at(place, "toolCalls"), index)
        const wire = yield* Json.object(call, at)
        const id = yield* Json.stringAt(wire, "id", at)
        const name = yield* Json.stringAt(wire, "name", at)
        answer.push(Message.call(id, name, wire.args ?? {}))
        const result = yield* resultOf(wire, id, name, at)
        if (result !== undefined) results.push(result)
      }
      session.model = (yield* Json.optionalStringAt(value, "model", place)) ?? session.model
      session.push(Message.assistant(answer), place.line)
      if (Json.isObject(value.tokens)) {
        session.bill(Usage.read(value.tokens, Json.at(place, "tokens"), convention), place.line)
      }
      if (results.length > 0) session.push(Message.tool(results), place.line)
    })

  const flush = () => {
    if (pieces === undefined) return
    const { line, role, text } = pieces
    pieces = undefined
    if (role === "user") {
      turn = undefined
      session.push(Message.user([Message.text(text)]), line)
    } else {
      answering(line).push(Message.text(text))
    }
  }

  const answering = (line: number): Array<Prompt.AssistantMessagePart> => {
    if (turn === undefined) {
      turn = { parts: [] }
      session.push(Message.assistant(turn.parts), line)
    }
    return turn.parts
  }

  const streamed = (value: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      const type = yield* Json.stringAt(value, "type", place)
      if (type === "message") {
        const role = yield* Json.stringAt(value, "role", place)
        const text = yield* Json.stringAt(value, "content", place)
        if (value.delta !== true || pieces?.role !== role) flush()
        if (pieces === undefined) pieces = { role, text, line: place.line }
        else pieces.text += text
        return
      }
      flush()
      switch (type) {
        case "init":
          session.model = yield* Json.optionalStringAt(value, "model", place)
          return
        case "tool_use": {
          const id = yield* Json.stringAt(value, "tool_id", place)
          const name = yield* Json.stringAt(value, "tool_name", place)
          answering(place.line).push(Message.call(id, name, value.parameters ?? {}))
          return
        }
        case "tool_result": {
          turn = undefined
          const id = yield* Json.stringAt(value, "tool_id", place)
          const failed = value.status === "error"
          const error = Json.isObject(value.error) ? value.error.message : value.error
          const output = value.output ?? (failed ? error : undefined) ?? ""
          const text = typeof output === "string" ? output : JSON.stringify(output)
          session.push(Message.tool([Message.result(id, nameOf(id), text, failed)]), place.line)
          return
        }
        case "result":
        case "error":
          noticed.add("notice", place.line)
          return
      }
      noticed.add("unknown-line", place.line, type)
    })

  // The message of a turn grows after it was pushed, so the builder does not know its calls.
  const nameOf = (id: string): string => {
    const open = session.messages.findLast((message) =>
      message.role === "assistant" && message.content.some((part) => part.type === "tool-call" && part.id === id)
    )
    const call = open?.role === "assistant"
      ? open.content.find((part) => part.type === "tool-call" && part.id === id)
      : undefined
    return call?.type === "tool-call" ? call.name : ""
  }

  return {
    record: (value, line) =>
      Result.gen(function*() {
        const place: Json.Place = { file, line, field: "" }
        const wire = yield* Json.object(value, place)
        if (wire.type === "init") streaming = true
        if (streaming) return yield* streamed(wire, place)
        const set = wire.$set
        if (Json.isObject(set)) {
          if (set.messages === undefined) return
          entries = []
          return yield* addAll(yield* Json.arrayAt(set, "messages", Json.at(place, "$set")), {
            ...place,
            field: "$set.messages"
          })
        }
        if (wire.$rewindTo !== undefined) return rewind(yield* Json.stringAt(wire, "$rewindTo", place), line)
        if (wire.type === undefined && wire.messages !== undefined) {
          return yield* addAll(yield* Json.arrayAt(wire, "messages", place), Json.at(place, "messages"))
        }
        if (wire.type === undefined && typeof wire.sessionId === "string") return
        yield* add(wire, place)
      }),
    end: () =>
      Result.gen(function*() {
        flush()
        for (const entry of entries) yield* message(entry)
        session.findings.push(...noticed.findings(say))
        return session.end()
      })
  }
}

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
    case "abandoned-branch":
      return `${count} messages that a rewind took back left out`
    default:
      return `${count} lines of the unknown type ${JSON.stringify(what)} left out`
  }
}
