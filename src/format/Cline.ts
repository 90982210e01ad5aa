/**
 * Reads the messages of a session of Cline: `*.messages.json` of its SDK, or `api_conversation_history.json` of the
 * extension.
 *
 * What is read and what is lost is in `docs/formats/cline.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Blocks from "./parts/anthropic.ts"
import * as Building from "./parts/building.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import * as Usage from "./parts/usage.ts"
import type * as Reader from "./Reader.ts"

const format = "cline"

const ownBlocks = new Set(["tool_use", "tool_result", "thinking", "redacted_thinking"])

const hasOwnBlock = (message: Schema.Json): boolean =>
  Json.isObject(message) && (message.role === "user" || message.role === "assistant") &&
  Json.isArray(message.content) &&
  message.content.some((block) => Json.isObject(block) && typeof block.type === "string" && ownBlocks.has(block.type))

/**
 * Reads sessions of Cline.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    const document = first[0]
    if (kind !== "document") return undefined
    if (Json.isArray(document)) {
      return document.some(hasOwnBlock) ? "a list of messages with Anthropic's blocks, without a body" : undefined
    }
    if (!Json.isObject(document) || !Json.isArray(document.messages)) return undefined
    return typeof document.sessionId === "string" && document.projectHash === undefined &&
        (document.agent !== undefined || document.system_prompt !== undefined || document.version !== undefined)
      ? "a session with an agent or a version, and messages"
      : undefined
  },
  start: (file, why) => {
    const session = Building.make(file, format, why)

    const message = (value: Schema.Json, place: Json.Place): Json.Read<void> =>
      Result.gen(function*() {
        const wire = yield* Json.object(value, place)
        const role = yield* Json.stringAt(wire, "role", place)
        const within = Json.at(place, "content")
        if (role === "user") {
          const content = Json.isArray(wire.content) ? wire.content.map(plainBlock) : wire.content
          const messages = yield* Blocks.userMessages(content, within)
          for (const one of messages.length === 0 ? [Message.user([])] : messages) {
            Building.push(session, one, place.line, Time.ofMillis(wire.ts))
          }
          return
        }
        if (role !== "assistant") {
          return yield* Json.fail(
            Json.at(place, "role"),
            `unknown role ${JSON.stringify(role)}, expected user or assistant`
          )
        }
        const parts: Array<Prompt.AssistantMessagePart> = []
        if (typeof wire.content === "string") {
          parts.push(Message.text(wire.content))
        } else {
          for (const [index, block] of (yield* Json.blocks(wire.content, within)).entries()) {
            parts.push(yield* Blocks.assistantPart(block, Json.at(within, index)))
          }
        }
        Building.push(session, Message.assistant(parts), place.line, Time.ofMillis(wire.ts))
        if (Json.isObject(wire.modelInfo) && typeof wire.modelInfo.id === "string") {
          session.model = wire.modelInfo.id
        }
        if (Json.isObject(wire.metrics)) {
          Building.bill(session, Usage.read(wire.metrics, Json.at(place, "metrics"), convention), place.line)
        }
      })

    return {
      record: (value, line) =>
        Result.gen(function*() {
          const place: Json.Place = { file, line, field: "" }
          if (!Json.isArray(value)) {
            const document = yield* Json.object(value, place)
            const system = yield* Json.optionalStringAt(document, "system_prompt", place)
            if (system !== undefined) Building.push(session, Message.system(system), line)
            const within = Json.at(place, "messages")
            for (const [index, one] of (yield* Json.arrayAt(document, "messages", place)).entries()) {
              yield* message(one, Json.at(within, index))
            }
            return
          }
          for (const [index, one] of value.entries()) yield* message(one, Json.at(place, index))
        }),
      end: () => Result.succeed(Building.end(session))
    }
  }
}

/**
 * A block as Anthropic has it. The content of a file that was named becomes a text; a result that is a list of answers
 * without types is their JSON text, as a single answer is in the file already.
 */
const plainBlock = (block: Schema.Json): Schema.Json => {
  if (!Json.isObject(block)) return block
  if (block.type === "file" && typeof block.content === "string") {
    const path = typeof block.path === "string" ? block.path : ""
    return Message.resultText(`<file_content path="${path}">\n${block.content}\n</file_content>`)
  }
  const { content } = block
  return block.type === "tool_result" && Json.isArray(content) && content.length > 0 &&
      content.every((answer) => Json.isObject(answer) && answer.type === undefined)
    ? { ...block, content: JSON.stringify(content) }
    : block
}

/** The input holds what was read from the cache and written to it. */
const convention: Usage.Convention = {
  input: ["inputTokens"],
  inside: ["cacheRead", "cacheWrite"],
  cacheRead: ["cacheReadTokens"],
  cacheWrite: ["cacheWriteTokens"],
  output: ["outputTokens"]
}
