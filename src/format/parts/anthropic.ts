/** Reads Anthropic content blocks, which several formats use. */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Session from "../Session.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"

/** A block of an assistant message. Blocks that `Prompt` has no part for are kept opaque. */
export const assistantPart = (
  value: Schema.Json | undefined,
  place: Json.Place
): Json.Read<Prompt.AssistantMessagePart> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    const type = yield* Json.stringAt(block, "type", place)
    switch (type) {
      case "text":
        return Message.text(yield* Json.stringAt(block, "text", place))
      case "thinking": {
        const text = yield* Json.stringAt(block, "thinking", place)
        const signature = yield* Json.optionalStringAt(block, "signature", place)
        return Message.reasoning(text, thinkingOptions(signature))
      }
      case "redacted_thinking": {
        const redactedData = yield* Json.stringAt(block, "data", place)
        return Message.reasoning("", { anthropic: { info: { type: "redacted_thinking", redactedData } } })
      }
      case "tool_use":
      case "server_tool_use":
      case "mcp_tool_use":
        return Message.call(
          yield* Json.stringAt(block, "id", place),
          yield* Json.stringAt(block, "name", place),
          block.input ?? {},
          type === "mcp_tool_use" && typeof block.server_name === "string"
            ? { anthropic: { serverName: block.server_name } }
            : {},
          type !== "tool_use"
        )
      case "image":
      case "document":
        return (yield* filePart(block, place)) ?? Message.opaque(block)
      case "tool_result":
        return yield* Json.fail(Json.at(place, "type"), "a tool_result stands in an assistant message")
    }
    // The result of a server tool stands beside its call: `web_search_tool_result`, `mcp_tool_result` …
    if (type.endsWith("_tool_result") && typeof block.tool_use_id === "string") {
      const name = type.slice(0, -"_tool_result".length)
      return Message.result(block.tool_use_id, name, block.content ?? "", block.is_error === true, {}, true)
    }
    return Message.opaque(block)
  })

const thinkingOptions = (signature: string | undefined): Message.Options =>
  signature === undefined ? {} : { anthropic: { info: { type: "thinking", signature } } }

/** A block of a user message that is not a tool result. */
const userPart = (value: Schema.Json | undefined, place: Json.Place): Json.Read<Prompt.UserMessagePart> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    const type = yield* Json.stringAt(block, "type", place)
    if (type === "text") return Message.text(yield* Json.stringAt(block, "text", place))
    return (yield* filePart(block, place)) ?? Message.opaque(block)
  })

/** An image or a document whose data stands in the block, or its URL; `undefined` for anything else. */
const filePart = (block: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.FilePart | undefined> =>
  Result.map(fileData(block, place), (found) =>
    found === undefined
      ? undefined
      : Message.file(found.mediaType, found.data, typeof block.title === "string" ? block.title : undefined))

const fileData = (
  block: Schema.JsonObject,
  place: Json.Place
): Json.Read<{ readonly mediaType: string; readonly data: string } | undefined> =>
  Result.gen(function*() {
    if (block.type !== "image" && block.type !== "document") return undefined
    const source = yield* Json.objectAt(block, "source", place)
    const within = Json.at(place, "source")
    if (source.type === "base64") {
      return {
        mediaType: yield* Json.stringAt(source, "media_type", within),
        data: yield* Json.stringAt(source, "data", within)
      }
    }
    if (source.type === "url") {
      return {
        mediaType: block.type === "image" ? "image/*" : "application/pdf",
        data: yield* Json.stringAt(source, "url", within)
      }
    }
    return undefined
  })

/** A `tool_result` block; the name comes from its call, once all calls are known. */
const toolResult = (block: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.ToolResultPart> =>
  Result.gen(function*() {
    const id = yield* Json.stringAt(block, "tool_use_id", place)
    const content = yield* resultContent(block.content, Json.at(place, "content"))
    return Message.result(id, "", content, block.is_error === true)
  })

/** The content of a tool result: absent, a string, or blocks. */
export const resultContent = (content: Schema.Json | undefined, place: Json.Place): Json.Read<Schema.Json> =>
  content === undefined || content === null
    ? Result.succeed("")
    : typeof content === "string"
    ? Result.succeed(content)
    : Result.map(Json.eachBlock(content, place, resultBlock), Message.resultOf)

const resultBlock = (value: Schema.Json, place: Json.Place): Json.Read<Schema.JsonObject> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    if (block.type === "text") return Message.resultText(yield* Json.stringAt(block, "text", place))
    if (block.type !== "image") return block
    const found = yield* fileData(block, place)
    return found === undefined ? block : Message.resultImage(found.mediaType, found.data)
  })

/**
 * The content of a user message as messages in order: results form tool messages, all else user messages, whose source
 * is `source`.
 */
export const userMessages = (
  content: Schema.Json | undefined,
  place: Json.Place,
  source?: string
): Json.Read<ReadonlyArray<Prompt.Message>> =>
  Result.gen(function*() {
    if (typeof content === "string") return [Message.user([Message.text(content)], source)]
    const messages: Array<Prompt.Message> = []
    let parts: Array<Prompt.UserMessagePart> = []
    let results: Array<Prompt.ToolResultPart> = []
    for (const [index, value] of (yield* Json.blocks(content, place)).entries()) {
      const within = Json.at(place, index)
      if (Json.isObject(value) && value.type === "tool_result") {
        if (parts.length > 0) messages.push(Message.user(parts, source))
        parts = []
        results.push(yield* toolResult(value, within))
      } else {
        if (results.length > 0) messages.push(Message.tool(results))
        results = []
        parts.push(yield* userPart(value, within))
      }
    }
    if (results.length > 0) messages.push(Message.tool(results))
    if (parts.length > 0) messages.push(Message.user(parts, source))
    return messages
  })

/**
 * The usage of a response: the input count leaves out what was read from the cache and written to it.
 *
 * Where the server made several calls for one response, the counts beside `iterations` are those of the last alone, and
 * the bill is their sum.
 */
export const usage = (value: Schema.JsonObject, place: Json.Place): Json.Read<Session.Usage> =>
  Result.gen(function*() {
    const iterations = value.iterations
    if (!Json.isArray(iterations) || iterations.length < 2) return yield* oneUsage(value, place)
    const sum: { -readonly [bucket in keyof Session.Usage]: number } = {}
    for (const [index, iteration] of iterations.entries()) {
      const within = Json.at(Json.at(place, "iterations"), index)
      const usage = yield* oneUsage(yield* Json.object(iteration, within), within)
      for (const bucket of buckets) {
        const tokens = usage[bucket]
        if (tokens !== undefined) sum[bucket] = (sum[bucket] ?? 0) + tokens
      }
    }
    return sum
  })

const buckets = ["fresh", "cacheRead", "cacheWrite", "output"] as const

const oneUsage = (value: Schema.JsonObject, place: Json.Place): Json.Read<Session.Usage> =>
  Result.gen(function*() {
    const fresh = yield* Json.optionalCountAt(value, "input_tokens", place)
    const cacheRead = yield* Json.optionalCountAt(value, "cache_read_input_tokens", place)
    const cacheWrite = yield* Json.optionalCountAt(value, "cache_creation_input_tokens", place)
    const output = yield* Json.optionalCountAt(value, "output_tokens", place)
    return {
      ...(fresh === undefined ? undefined : { fresh }),
      ...(cacheRead === undefined ? undefined : { cacheRead }),
      ...(cacheWrite === undefined ? undefined : { cacheWrite }),
      ...(output === undefined ? undefined : { output })
    }
  })
