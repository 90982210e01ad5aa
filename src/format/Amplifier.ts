/**
 * Reads a session of Amplifier (`transcript.jsonl`), one message in each line.
 *
 * What is read and what is lost is in `docs/formats/amplifier.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"
import * as Anthropic from "./parts/anthropic.ts"
import * as Building from "./parts/building.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import type * as Reader from "./Reader.ts"

const roles = new Set(["system", "developer", "user", "assistant", "tool"])

/**
 * Reads Amplifier transcripts.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format: "amplifier",
  detect: ({ first, kind }) => {
    if (kind !== "lines") return undefined
    for (const [index, record] of first.entries()) {
      if (!Json.isObject(record) || typeof record.role !== "string" || !roles.has(record.role)) return undefined
      if (record.role === "assistant" && Json.isArray(record.content)) {
        for (const block of record.content) {
          if (Json.isObject(block) && block.type === "tool_call") {
            return `record ${index + 1} has a role and a block of type "tool_call"`
          }
        }
      }
      if (Json.isObject(record.metadata) && typeof record.metadata.timestamp === "string") {
        return `record ${index + 1} has a role and metadata with a timestamp`
      }
      if (record.role === "tool" && typeof record.name === "string" && typeof record.tool_call_id === "string") {
        return `record ${index + 1} has the role "tool", a name and a tool_call_id`
      }
    }
    return undefined
  },
  start: (file, why) => start(file, why)
}

const start = (file: string, why: string): Reader.Parse => {
  const session = Building.make(file, "amplifier", why)
  return {
    record: (value, line) =>
      Result.gen(function*() {
        const place: Json.Place = { file, line, field: "" }
        const record = yield* Json.object(value, place)
        const time = Json.isObject(record.metadata) ? Time.ofText(record.metadata.timestamp) : undefined
        for (const message of yield* messagesOf(session, record, place)) Building.push(session, message, line, time)
      }),
    end: () => Result.succeed(Building.end(session))
  }
}

const messagesOf = (
  session: Building.Building,
  record: Schema.JsonObject,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.Message>> =>
  Result.gen(function*() {
    const role = yield* Json.stringAt(record, "role", place)
    switch (role) {
      case "system":
      case "developer":
        // A system message in the middle would move to the head and change the prefix of every request.
        return session.messages.some((message) => message.role === "assistant")
          ? yield* readUser(record, place, "runtime-context")
          : [Message.system(yield* plainText(record.content, Json.at(place, "content")))]
      case "user":
        return yield* readUser(record, place, undefined)
      case "assistant":
        return [Message.assistant(yield* readAssistant(record, place))]
      case "tool": {
        const id = yield* Json.stringAt(record, "tool_call_id", place)
        const content = yield* Anthropic.resultContent(record.content, Json.at(place, "content"))
        const named = yield* Json.optionalStringAt(record, "name", place)
        return [Message.tool([Message.result(id, named ?? "", content, failed(content))])]
      }
    }
    return yield* Json.fail(
      Json.at(place, "role"),
      `unknown role ${JSON.stringify(role)}, expected ${Array.from(roles).join(", ")}`
    )
  })

const readUser = (
  record: Schema.JsonObject,
  place: Json.Place,
  source: string | undefined
): Json.Read<ReadonlyArray<Prompt.Message>> => {
  const metadata = Json.isObject(record.metadata) ? record.metadata : {}
  const named = source ?? (typeof metadata.source === "string" ? metadata.source : undefined)
  return Result.map(
    Anthropic.userMessages(record.content, Json.at(place, "content"), named),
    (read) => metadata.ephemeral === true ? read.map((message) => Marks.set(message, { ephemeral: true })) : read
  )
}

const readAssistant = (
  record: Schema.JsonObject,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.AssistantMessagePart>> =>
  Result.gen(function*() {
    const content = record.content
    const parts: Array<Prompt.AssistantMessagePart> = []
    if (typeof content === "string") {
      if (content !== "") parts.push(Message.text(content))
    } else if (content !== undefined && content !== null) {
      for (const [index, block] of (yield* Json.blocks(content, Json.at(place, "content"))).entries()) {
        const within = Json.at(Json.at(place, "content"), index)
        parts.push(yield* isCall(block) ? readCall(block, within) : Anthropic.assistantPart(block, within))
      }
    }
    // Calls stand beside the blocks a second time; they are read where there is no block for them.
    const known = new Set(parts.flatMap((part) => part.type === "tool-call" ? [part.id] : []))
    if (record.tool_calls !== undefined && record.tool_calls !== null) {
      for (const [index, value] of (yield* Json.arrayAt(record, "tool_calls", place)).entries()) {
        const within = Json.at(Json.at(place, "tool_calls"), index)
        const call = yield* readCall(yield* Json.object(value, within), within)
        if (!known.has(call.id)) parts.push(call)
      }
    }
    return parts
  })

const isCall = (block: Schema.Json): block is Schema.JsonObject => Json.isObject(block) && block.type === "tool_call"

/** A call of either style: `{ id, name, input }` in a block, `{ id, tool, arguments }` or OpenAI's beside them. */
const readCall = (value: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.ToolCallPart> =>
  Result.gen(function*() {
    const id = yield* Json.stringAt(value, "id", place)
    const inner = Json.isObject(value.function) ? value.function : value
    const within = inner === value ? place : Json.at(place, "function")
    const key = typeof inner.tool === "string" ? "tool" : "name"
    const name = yield* Json.stringAt(inner, key, within)
    const params = inner.input ?? inner.arguments ?? {}
    return typeof params === "string" ? Message.callOfText(id, name, params) : Message.call(id, name, params)
  })

/** The text of a system message: a string, or text blocks. */
const plainText = (content: Schema.Json | undefined, place: Json.Place): Json.Read<string> =>
  Result.gen(function*() {
    if (typeof content === "string") return content
    const texts: Array<string> = []
    for (const [index, value] of (yield* Json.blocks(content, place)).entries()) {
      const within = Json.at(place, index)
      texts.push(yield* Json.stringAt(yield* Json.object(value, within), "text", within))
    }
    return texts.join("\n\n")
  })

/** Results are JSON text with a `success` member; the text itself is what the model saw. */
const failed = (content: Schema.Json): boolean => {
  if (typeof content !== "string" || !content.startsWith("{")) return false
  const value = Json.parse(content)
  return Json.isObject(value) && value.success === false
}
