/** Reads items of the OpenAI Responses API, which several formats use. */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Session from "../Session.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"

/**
 * What an item is to the conversation: a part of the response it belongs to, the result of a call, an output that was not
 * there as a whole, or a message that no model wrote.
 */
export type Item =
  | { readonly kind: "assistant"; readonly parts: ReadonlyArray<Prompt.AssistantMessagePart> }
  | { readonly kind: "result"; readonly part: Prompt.ToolResultPart }
  | { readonly kind: "provisional" }
  | {
    readonly kind: "message"
    readonly role: "system" | "developer" | "user"
    readonly parts: ReadonlyArray<Prompt.UserMessagePart>
  }

/** Reads one item; `before` is what was read so far, which an output that names its call by the item needs. */
export const item = (
  value: Schema.Json | undefined,
  place: Json.Place,
  before: ReadonlyArray<Prompt.Message> = []
): Json.Read<Item> =>
  Result.gen(function*() {
    const item = yield* Json.object(value, place)
    // A message may leave its type out.
    const type = item.type === undefined && item.role !== undefined
      ? "message"
      : yield* Json.stringAt(item, "type", place)
    const options = itemOptions(item)
    switch (type) {
      case "message": {
        const role = yield* Json.stringAt(item, "role", place)
        const parts = yield* contentParts(item.content, Json.at(place, "content"), options)
        if (role === "assistant") return { kind: "assistant", parts }
        if (role === "system" || role === "developer" || role === "user") return { kind: "message", role, parts }
        return yield* Json.fail(
          Json.at(place, "role"),
          `unknown role ${JSON.stringify(role)}, expected system, developer, user or assistant`
        )
      }
      case "reasoning":
        return { kind: "assistant", parts: [yield* reasoning(item, place)] }
      case "function_call": {
        const call = Message.callOfText(
          yield* Json.stringAt(item, "call_id", place),
          yield* Json.stringAt(item, "name", place),
          yield* Json.stringAt(item, "arguments", place),
          options
        )
        return { kind: "assistant", parts: [call] }
      }
      case "custom_tool_call": {
        const call = Message.call(
          yield* Json.stringAt(item, "call_id", place),
          yield* Json.stringAt(item, "name", place),
          yield* Json.stringAt(item, "input", place),
          itemOptions(item, { custom: true })
        )
        return { kind: "assistant", parts: [call] }
      }
      case "mcp_call": {
        const id = yield* Json.stringAt(item, "id", place)
        const name = yield* Json.stringAt(item, "name", place)
        const call = Message.callOfText(id, name, yield* Json.stringAt(item, "arguments", place), options)
        const ran: Prompt.ToolCallPart = { ...call, providerExecuted: true }
        const failed = item.error !== undefined && item.error !== null
        const output = failed ? item.error : item.output
        if (running.has(item.status ?? null)) return { kind: "assistant", parts: [ran] }
        return { kind: "assistant", parts: [ran, Message.result(id, name, output ?? "", failed, {}, true)] }
      }
    }
    if (type.endsWith("_call_output")) {
      // The output of a local shell may name its call by the id alone, that of the item or that of the call.
      const byId = type === "local_shell_call_output" && item.call_id === undefined
      const given = yield* Json.stringAt(item, byId ? "id" : "call_id", place)
      const id = byId ? callOf(given, before) : given
      if (id === undefined) return { kind: "assistant", parts: [Message.opaque(item)] }
      if (item.status === "in_progress") return { kind: "provisional" }
      const result = yield* output(item.output, Json.at(place, "output"))
      return { kind: "result", part: Message.result(id, "", result) }
    }
    // Calls of built-in tools that the client runs (`local_shell_call`, `computer_call` …) are answered by `call_id`;
    // those that run at the provider (`web_search_call` …) have none and no output item.
    if (type.endsWith("_call") && typeof item.call_id === "string") {
      const name = type.slice(0, -"_call".length)
      const { call_id, id: _id, status: _status, type: _type, ...params } = item
      return { kind: "assistant", parts: [Message.call(item.call_id, name, params, options)] }
    }
    return { kind: "assistant", parts: [Message.opaque(item)] }
  })

// A call of the provider's that has no output yet.
const running: ReadonlySet<Schema.Json> = new Set(["in_progress", "calling"])

/** The id of the latest call that was an item with this id, or that has the id itself. */
const callOf = (itemId: string, messages: ReadonlyArray<Prompt.Message>): string | undefined => {
  for (const message of messages.toReversed()) {
    if (message.role !== "assistant") continue
    for (const part of message.content) {
      if (part.type !== "tool-call") continue
      const { openai } = part.options
      if (part.id === itemId || Json.isObject(openai) && openai.itemId === itemId) return part.id
    }
  }
  return undefined
}

const itemOptions = (item: Schema.JsonObject, more?: Schema.JsonObject): Message.Options =>
  typeof item.id === "string" ? { openai: { itemId: item.id, ...more } } : more === undefined ? {} : { openai: more }

/** The content of a message: a string or parts. */
export const contentParts = (
  content: Schema.Json | undefined,
  place: Json.Place,
  options: Message.Options = {}
): Json.Read<ReadonlyArray<Prompt.TextPart | Prompt.FilePart>> =>
  Result.gen(function*() {
    if (typeof content === "string") return [Message.text(content, options)]
    const parts: Array<Prompt.TextPart | Prompt.FilePart> = []
    for (const [index, value] of (yield* Json.blocks(content, place)).entries()) {
      const within = Json.at(place, index)
      const part = yield* Json.object(value, within)
      const type = yield* Json.stringAt(part, "type", within)
      if (type === "input_text" || type === "output_text" || type === "text") {
        parts.push(Message.text(yield* Json.stringAt(part, "text", within), options))
      } else if (type === "refusal") {
        parts.push(Message.text(yield* Json.stringAt(part, "refusal", within), options))
      } else if (type === "input_image" && typeof part.image_url === "string") {
        parts.push(Message.file("image/*", part.image_url))
      } else if (type === "input_image" && part.image_url !== undefined && part.image_url !== null) {
        return yield* Json.fail(Json.at(within, "image_url"), "expected a string")
      } else if (type === "input_file" && typeof part.file_data === "string") {
        parts.push(
          Message.file("application/pdf", part.file_data, typeof part.filename === "string" ? part.filename : undefined)
        )
      } else {
        parts.push(Message.opaque(part))
      }
    }
    return parts
  })

const reasoning = (item: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.ReasoningPart> =>
  Result.gen(function*() {
    // `content` is the reasoning itself where the provider shows it; else there is the summary of it, or nothing.
    const content = yield* texts(item.content, Json.at(place, "content"))
    const text = content !== "" ? content : yield* texts(item.summary, Json.at(place, "summary"))
    const encryptedContent = yield* Json.optionalStringAt(item, "encrypted_content", place)
    const openai: Schema.JsonObject = {
      ...(typeof item.id === "string" ? { itemId: item.id } : undefined),
      ...(encryptedContent === undefined ? undefined : { encryptedContent })
    }
    return Message.reasoning(text, Object.keys(openai).length === 0 ? {} : { openai })
  })

const texts = (value: Schema.Json | undefined, place: Json.Place): Json.Read<string> =>
  Result.gen(function*() {
    if (value === undefined || value === null) return ""
    const all: Array<string> = []
    for (const [index, part] of (yield* Json.array(value, place)).entries()) {
      const within = Json.at(place, index)
      all.push(yield* Json.stringAt(yield* Json.object(part, within), "text", within))
    }
    return all.join("\n\n")
  })

/** The output of a call: a string, or parts. */
const output = (value: Schema.Json | undefined, place: Json.Place): Json.Read<Schema.Json> =>
  Result.gen(function*() {
    if (value === undefined || value === null) return ""
    if (!Json.isArray(value)) {
      return Json.isObject(value) ? Message.resultOf([outputBlock(value)]) : yield* Json.string(value, place)
    }
    const blocks: Array<Schema.JsonObject> = []
    for (const [index, part] of value.entries()) {
      blocks.push(outputBlock(yield* Json.object(part, Json.at(place, index))))
    }
    return Message.resultOf(blocks)
  })

const outputBlock = (part: Schema.JsonObject): Schema.JsonObject => {
  if (typeof part.text === "string") return Message.resultText(part.text)
  // `computer_screenshot` is the output of a computer call.
  if ((part.type === "input_image" || part.type === "computer_screenshot") && typeof part.image_url === "string") {
    return Message.resultImage("image/*", part.image_url)
  }
  return part
}

/** The usage of a response: the input count holds what was read from the cache, and nothing is written to one. */
export const usage = (value: Schema.JsonObject, place: Json.Place): Json.Read<Session.Usage> =>
  Result.gen(function*() {
    const input = yield* Json.optionalCountAt(value, "input_tokens", place)
    const details = Json.isObject(value.input_tokens_details) ? value.input_tokens_details : undefined
    // Codex keeps the cached part beside the input, the API in the details.
    const cacheRead = details === undefined
      ? yield* Json.optionalCountAt(value, "cached_input_tokens", place)
      : yield* Json.optionalCountAt(details, "cached_tokens", Json.at(place, "input_tokens_details"))
    const output = yield* Json.optionalCountAt(value, "output_tokens", place)
    return {
      ...(input === undefined ? undefined : { fresh: Math.max(0, input - (cacheRead ?? 0)) }),
      ...(cacheRead === undefined ? undefined : { cacheRead }),
      ...(output === undefined ? undefined : { output })
    }
  })
