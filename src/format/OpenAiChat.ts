/**
 * Reads and writes OpenAI chat-completions messages: a list of them, a request body, or one message in each line.
 *
 * What other providers add to this format is kept: `reasoning_content`, `name` on results, any other field.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./parts/building.ts"
import * as Chat from "./parts/chatRead.ts"
import * as Writing from "./parts/chatWrite.ts"
import * as Json from "./parts/json.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "openai-chat"

const roles: ReadonlySet<string> = new Set(["system", "developer", "user", "assistant", "tool", "function"])

/** Whether an object is shaped as a message of this format or of a near one, and whether it can be of no other. */
const shapeOf = (value: Schema.Json | undefined): "chat" | "near" | "other" => {
  if (!Json.isObject(value) || typeof value.role !== "string" || !roles.has(value.role)) return "other"
  if (value.type !== undefined) return "other"
  // Amplifier stamps every message and keeps calls among the blocks.
  if (Json.isObject(value.metadata) && value.metadata.timestamp !== undefined) return "other"
  const { content } = value
  if (Json.isArray(content)) {
    for (const part of content) {
      if (!Json.isObject(part)) return "other"
      const type = part.type
      if (type === "image_url" || type === "input_audio" || type === "refusal") return "chat"
      if (type === "file" && !Json.isObject(part.file)) return "other"
      if (type !== "text" && type !== "file") return "other"
    }
  } else if (content === undefined ? value.role === "user" : content !== null && typeof content !== "string") {
    return "other"
  }
  return value.role !== "user" && value.role !== "assistant" || value.tool_calls !== undefined ||
      value.function_call !== undefined || content === null || value.reasoning_content !== undefined
    ? "chat"
    : "near"
}

const detect = (sample: Reader.Sample): string | undefined => {
  const document = sample.first[0]
  const body = Json.isObject(document) && document.messages !== undefined ? document : undefined
  const messages = body !== undefined
    ? body.messages
    : sample.kind === "lines"
    ? sample.first
    : document
  if (!Json.isArray(messages) || messages.length === 0) return undefined
  // Anthropic's bodies hold the system prompt beside the messages.
  if (body !== undefined && body.system !== undefined) return undefined
  const shapes = messages.map(shapeOf)
  if (shapes.includes("other")) return undefined
  if (!shapes.includes("chat") && typeof body?.model === "string" && body.model.startsWith("claude")) return undefined
  return sample.kind === "lines" && body === undefined
    ? "each line is a message with a role"
    : "a list of messages with roles"
}

/**
 * Reads `messages` as a list, as a body, or line by line.
 *
 * **Details**
 *
 * - `metadata` with `source`, `ephemeral` or `pinned` is read as the library's marks.
 * - Fields that `Prompt` has no place for are kept in `options["openai-chat"]`, so that {@link write} gives them back.
 * - A developer message is a system message, wherever it stands.
 * - A user message is a person's unless its marks say otherwise; its text decides nothing.
 * - Arguments given as an object rather than as text are taken as they are.
 * - Fails on an unknown role and on fields of a wrong type.
 *
 * @see https://platform.openai.com/docs/api-reference/chat/create
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect,
  start: (file, why) => {
    const session = Building.make(file, format, why)
    const functions: Array<Chat.FunctionCall> = []
    let conversations = 0
    const many = (values: Schema.JsonArray, place: Json.Place): Json.Read<void> => {
      for (const [index, value] of values.entries()) {
        const read = Chat.push(session, functions, value, Json.at(place, index))
        if (Result.isFailure(read)) return read
      }
      return Result.void
    }
    return {
      record: (value, line) =>
        Result.gen(function*() {
          const place: Json.Place = { file, line, field: "" }
          if (line === 0 && Json.isArray(value)) return yield* many(value, place)
          const body = yield* Json.object(value, place)
          if (line !== 0 && body.messages === undefined) return yield* Chat.push(session, functions, body, place)
          conversations += 1
          if (conversations > 1 || session.messages.length > 0) {
            return yield* Json.fail(place, "a second conversation; a session is one")
          }
          session.model = yield* Json.optionalStringAt(body, "model", place)
          yield* many(yield* Json.arrayAt(body, "messages", place), Json.at(place, "messages"))
          const usage = Chat.usageOf(body, place)
          if (usage !== undefined) Building.bill(session, usage, line)
        }),
      end: () => Building.ended(session)
    }
  }
}

/**
 * What {@link write} adds to the messages.
 *
 * **Details**
 *
 * - `model`: put into the body.
 * - `marks`: writes the library's marks of a message as `metadata`. Off by default, since a provider may refuse it.
 *
 * @category models
 * @since 0.1.0
 */
export interface WriteOptions {
  readonly model?: string | undefined
  readonly marks?: boolean | undefined
}

/**
 * Writes messages as a body `{ model?, messages }`, one tool message for each result.
 *
 * **Details**
 *
 * What the format has no place for is listed in `losses`: reasoning signatures, failure flags, images in results and in
 * answers, calls that ran at the provider, approvals, items of other formats, text that follows a call, and the options
 * of other providers.
 *
 * @category writers
 * @since 0.1.0
 */
export const write = (
  messages: ReadonlyArray<Prompt.Message>,
  options?: WriteOptions
): { readonly value: Schema.JsonObject; readonly losses: ReadonlyArray<Session.Loss> } => {
  const losses = Wire.losses()
  const wire: Array<Schema.JsonObject> = []
  for (const [index, message] of messages.entries()) {
    Wire.at(losses, index)
    const metadata = options?.marks === true ? Writing.metadataOf(message) : undefined
    const added = Writing.writeMessage(message, losses, index)
    for (const [position, one] of added.entries()) {
      const fields = position === 0 ? Wire.objectOf(Wire.optionsAt(message, format), "fields") : Wire.emptyObject
      const kept = Json.isObject(fields.metadata) ? fields.metadata : undefined
      wire.push({
        ...one,
        ...fields,
        ...(metadata === undefined ? undefined : { metadata: { ...kept, ...metadata } })
      })
    }
  }
  return {
    value: { ...(options?.model === undefined ? undefined : { model: options.model }), messages: wire },
    losses: losses.all
  }
}
