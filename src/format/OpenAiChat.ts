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
import * as Marks from "../Marks.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "openai-chat"

// ---------------------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------------------

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
    const session = Wire.builder(file, format, why)
    const functions: Array<FunctionCall> = []
    let conversations = 0
    const one = (value: Schema.Json, place: Json.Place): Json.Read<void> =>
      Result.map(message(value, place, session, functions), (message) => {
        session.push(message, place.line)
        const usage = usageOf(value, place)
        if (usage !== undefined) session.bill(usage, place.line)
      })
    const many = (values: Schema.JsonArray, place: Json.Place): Json.Read<void> => {
      for (const [index, value] of values.entries()) {
        const read = one(value, Json.at(place, index))
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
          if (line !== 0 && body.messages === undefined) return yield* one(body, place)
          conversations += 1
          if (conversations > 1 || session.messages.length > 0) {
            return yield* Json.fail(place, "a second conversation; a session is one")
          }
          session.model = yield* Json.optionalStringAt(body, "model", place)
          yield* many(yield* Json.arrayAt(body, "messages", place), Json.at(place, "messages"))
          const usage = usageOf(body, place)
          if (usage !== undefined) session.bill(usage, line)
        }),
      end: () => Wire.ended(session, file)
    }
  }
}

interface FunctionCall {
  readonly id: string
  readonly name: string
  answered: boolean
}

const message = (
  value: Schema.Json,
  place: Json.Place,
  session: Wire.Builder,
  functions: Array<FunctionCall>
): Json.Read<Prompt.Message> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const role = yield* Json.stringAt(wire, "role", place)
    switch (role) {
      case "system":
      case "developer": {
        const { content, shape } = yield* systemContent(wire.content, Json.at(place, "content"))
        const system = Wire.annotate(Message.system(content), format, { content: shape })
        return finish(role === "developer" ? Wire.annotate(system, "openai", { role }) : system, wire, systemFields)
      }
      case "user":
        return finish(Message.user(yield* userParts(wire.content, Json.at(place, "content"))), wire, systemFields)
      case "assistant": {
        const parts = yield* assistantParts(wire, place, session, functions)
        return finish(Message.assistant(parts), wire, assistantFields)
      }
      case "tool": {
        const id = yield* Json.stringAt(wire, "tool_call_id", place)
        const given = yield* Json.optionalStringAt(wire, "name", place)
        const content = yield* resultContent(wire.content, Json.at(place, "content"))
        const name = session.nameOf(id)
        return finish(Message.tool([Message.result(id, given ?? name, content)]), wire, toolFields)
      }
      case "function": {
        const name = yield* Json.stringAt(wire, "name", place)
        const content = yield* resultContent(wire.content, Json.at(place, "content"))
        const call = functions.findLast((call) => !call.answered && call.name === name)
        if (call !== undefined) call.answered = true
        const id = call?.id ?? functionId(session.messages.length)
        const result = Wire.annotate(Message.result(id, name, content), format, { legacy: true })
        return finish(Message.tool([result]), wire, toolFields)
      }
    }
    return yield* Json.fail(
      Json.at(place, "role"),
      `unknown role ${JSON.stringify(role)}, expected system, developer, user, assistant, tool or function`
    )
  })

/** The id of a call that has none on the wire, from the position of its message. */
const functionId = (position: number): string => `function_call:${position}`

const systemFields: ReadonlySet<string> = new Set(["role", "content", "metadata"])
const assistantFields: ReadonlySet<string> = new Set([
  "role",
  "content",
  "metadata",
  "reasoning_content",
  "refusal",
  "tool_calls",
  "function_call"
])
const toolFields: ReadonlySet<string> = new Set(["role", "content", "metadata", "tool_call_id", "name"])

/** Puts the marks and the fields without a place onto a message. */
const finish = <A extends Prompt.Message>(
  message: A,
  wire: Schema.JsonObject,
  held: ReadonlySet<string>
): A => {
  const { marks, rest } = marksOf(wire.metadata)
  const fields = { ...Wire.fieldsOf(wire, held), ...(rest === undefined ? undefined : { metadata: rest }) }
  const noted = Object.keys(fields).length === 0 ? message : Wire.annotate(message, format, { fields })
  return marks === undefined ? noted : Marks.set(noted, marks)
}

const marksOf = (
  metadata: Schema.Json | undefined
): { readonly marks?: Marks.Marks; readonly rest?: Schema.Json } => {
  if (!Json.isObject(metadata)) return metadata === undefined || metadata === null ? {} : { rest: metadata }
  const { ephemeral, pinned, source, ...rest } = metadata
  const marks: Marks.Marks = {
    ...(typeof source === "string" ? { source } : undefined),
    ...(ephemeral === true ? { ephemeral } : undefined),
    ...(pinned === true ? { pinned } : undefined)
  }
  return {
    ...(Object.keys(marks).length === 0 ? undefined : { marks }),
    ...(Object.keys(rest).length === 0 ? undefined : { rest })
  }
}

/** Several parts are put together with an empty line between them; `shape` keeps them where they were more than text. */
const systemContent = (
  content: Schema.Json | undefined,
  place: Json.Place
): Json.Read<{ readonly content: string; readonly shape: Schema.Json | undefined }> =>
  Result.gen(function*() {
    if (typeof content === "string") return { content, shape: undefined }
    const parts = yield* Json.blocks(content, place)
    const texts: Array<string> = []
    let plain = parts.length === 1
    for (const [index, value] of parts.entries()) {
      const within = Json.at(place, index)
      const part = yield* Json.object(value, within)
      texts.push(yield* Json.stringAt(part, "text", within))
      if (Wire.fieldsOf(part, textFields) !== undefined) plain = false
    }
    return { content: texts.join("\n\n"), shape: plain ? undefined : parts }
  })

const textFields: ReadonlySet<string> = new Set(["type", "text"])

const userParts = (
  content: Schema.Json | undefined,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.UserMessagePart>> =>
  Result.gen(function*() {
    if (typeof content === "string") return [Message.text(content)]
    const parts: Array<Prompt.UserMessagePart> = []
    for (const [index, value] of (yield* Json.blocks(content, place)).entries()) {
      parts.push(yield* userPart(value, Json.at(place, index)))
    }
    return parts
  })

const userPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.UserMessagePart> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const type = yield* Json.stringAt(wire, "type", place)
    if (type === "text") {
      const text = Message.text(yield* Json.stringAt(wire, "text", place))
      return Wire.annotate(text, format, { fields: Wire.fieldsOf(wire, textFields) })
    }
    const part = yield* filePart(wire, type, place)
    return part === undefined
      ? Message.opaque(wire)
      : Wire.annotate(part, format, { fields: Wire.fieldsOf(wire, new Set(["type", type])) })
  })

/** A part with data of its own; `undefined` where it only names a stored file, or says more than a file part can. */
const filePart = (
  wire: Schema.JsonObject,
  type: string,
  place: Json.Place
): Json.Read<Prompt.FilePart | undefined> =>
  Result.gen(function*() {
    const within = Json.at(place, type)
    if (type === "image_url") {
      // Some clients give the URL alone.
      if (typeof wire.image_url === "string") return Message.file("image/*", wire.image_url)
      const image = yield* Json.objectAt(wire, "image_url", place)
      const url = yield* Json.stringAt(image, "url", within)
      if (Wire.fieldsOf(image, imageFields) !== undefined) return undefined
      const detail = yield* Json.optionalStringAt(image, "detail", within)
      return Wire.annotate(Message.file("image/*", url), "openai", { imageDetail: detail })
    }
    if (type === "input_audio") {
      const audio = yield* Json.objectAt(wire, "input_audio", place)
      const data = yield* Json.stringAt(audio, "data", within)
      const name = yield* Json.stringAt(audio, "format", within)
      return Wire.fieldsOf(audio, audioFields) === undefined ? Message.file(`audio/${name}`, data) : undefined
    }
    if (type === "file") {
      const file = yield* Json.objectAt(wire, "file", place)
      const data = yield* Json.optionalStringAt(file, "file_data", within)
      const name = yield* Json.optionalStringAt(file, "filename", within)
      return data === undefined || Wire.fieldsOf(file, fileFields) !== undefined
        ? undefined
        : Message.file("application/octet-stream", data, name)
    }
    return undefined
  })

const imageFields: ReadonlySet<string> = new Set(["url", "detail"])
const audioFields: ReadonlySet<string> = new Set(["data", "format"])
const fileFields: ReadonlySet<string> = new Set(["file_data", "filename"])

const assistantParts = (
  wire: Schema.JsonObject,
  place: Json.Place,
  session: Wire.Builder,
  functions: Array<FunctionCall>
): Json.Read<ReadonlyArray<Prompt.AssistantMessagePart>> =>
  Result.gen(function*() {
    const parts: Array<Prompt.AssistantMessagePart> = []
    const reasoning = yield* Json.optionalStringAt(wire, "reasoning_content", place)
    if (reasoning !== undefined) parts.push(Message.reasoning(reasoning))
    const { content } = wire
    if (typeof content === "string") {
      parts.push(Message.text(content))
    } else if (content !== undefined && content !== null) {
      const within = Json.at(place, "content")
      for (const [index, value] of (yield* Json.blocks(content, within)).entries()) {
        parts.push(yield* answerPart(value, Json.at(within, index)))
      }
    }
    const refusal = yield* Json.optionalStringAt(wire, "refusal", place)
    if (refusal !== undefined) {
      const part = Wire.annotate(Message.text(refusal), "openai", { refusal: true })
      parts.push(Wire.annotate(part, format, { beside: true }))
    }
    if (wire.tool_calls !== undefined && wire.tool_calls !== null) {
      const within = Json.at(place, "tool_calls")
      for (const [index, value] of (yield* Json.arrayAt(wire, "tool_calls", place)).entries()) {
        parts.push(yield* callPart(value, Json.at(within, index)))
      }
    }
    if (wire.function_call !== undefined && wire.function_call !== null) {
      const within = Json.at(place, "function_call")
      const call = yield* Json.objectAt(wire, "function_call", place)
      const id = functionId(session.messages.length)
      const name = yield* Json.stringAt(call, "name", within)
      const part = yield* functionPart(call, id, within)
      functions.push({ id, name, answered: false })
      parts.push(Wire.annotate(part, format, { legacy: true }))
    }
    return parts
  })

const answerPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.TextPart> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const type = yield* Json.stringAt(wire, "type", place)
    if (type === "text") {
      const text = Message.text(yield* Json.stringAt(wire, "text", place))
      return Wire.annotate(text, format, { fields: Wire.fieldsOf(wire, textFields) })
    }
    if (type === "refusal") {
      return Wire.annotate(Message.text(yield* Json.stringAt(wire, "refusal", place)), "openai", { refusal: true })
    }
    return Message.opaque(wire)
  })

const callFields: ReadonlySet<string> = new Set(["id", "type", "function", "custom"])

const callPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.ToolCallPart> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const id = yield* Json.stringAt(wire, "id", place)
    const type = yield* Json.optionalStringAt(wire, "type", place)
    const fields = Wire.fieldsOf(wire, callFields)
    if (type === "custom") {
      const custom = yield* Json.objectAt(wire, "custom", place)
      const within = Json.at(place, "custom")
      const name = yield* Json.stringAt(custom, "name", within)
      const call = Message.call(id, name, yield* Json.stringAt(custom, "input", within))
      return Wire.annotate(Wire.annotate(call, "openai", { custom: true }), format, { fields })
    }
    if (type !== undefined && type !== "function") {
      return yield* Json.fail(
        Json.at(place, "type"),
        `unknown kind of call ${JSON.stringify(type)}, expected function or custom`
      )
    }
    const called = yield* Json.objectAt(wire, "function", place)
    return Wire.annotate(yield* functionPart(called, id, Json.at(place, "function")), format, { fields })
  })

const functionPart = (called: Schema.JsonObject, id: string, place: Json.Place): Json.Read<Prompt.ToolCallPart> =>
  Result.gen(function*() {
    const name = yield* Json.stringAt(called, "name", place)
    if (Json.isObject(called.arguments)) return Message.call(id, name, called.arguments)
    const text = yield* Json.stringAt(called, "arguments", place)
    return Wire.callOfText(format, Message.callOfText(id, name, text), text)
  })

/** The content of a result: a string, or parts; a part with more than its text is kept whole. */
const resultContent = (content: Schema.Json | undefined, place: Json.Place): Json.Read<Schema.Json> =>
  Result.gen(function*() {
    if (content === undefined || content === null) return ""
    if (typeof content === "string") return content
    const blocks: Array<Schema.JsonObject> = []
    for (const [index, value] of (yield* Json.blocks(content, place)).entries()) {
      const within = Json.at(place, index)
      const block = yield* Json.object(value, within)
      const type = yield* Json.stringAt(block, "type", within)
      if (type === "text") yield* Json.stringAt(block, "text", within)
      blocks.push(block)
    }
    const only = blocks.length === 1 ? blocks[0] : undefined
    return only !== undefined && Wire.fieldsOf(only, textFields) !== undefined ? blocks : Message.resultOf(blocks)
  })

/** The usage beside a message or in a body, or that of the response that a harness keeps beside a message. */
const usageOf = (value: Schema.Json, place: Json.Place): Json.Read<Session.Usage> | undefined => {
  if (!Json.isObject(value)) return undefined
  if (Json.isObject(value.usage)) return usage(value.usage, Json.at(place, "usage"))
  const response = Json.isObject(value.extra) ? value.extra.response : undefined
  return Json.isObject(response) && Json.isObject(response.usage)
    ? usage(response.usage, Json.at(Json.at(Json.at(place, "extra"), "response"), "usage"))
    : undefined
}

/** The prompt count holds what was read from the cache; DeepSeek gives that beside it, OpenAI in the details. */
const usage = (value: Schema.JsonObject, place: Json.Place): Json.Read<Session.Usage> =>
  Result.gen(function*() {
    const prompt = yield* Json.optionalCountAt(value, "prompt_tokens", place)
    const output = yield* Json.optionalCountAt(value, "completion_tokens", place)
    const details = Json.isObject(value.prompt_tokens_details) ? value.prompt_tokens_details : Wire.emptyObject
    const cacheRead = (yield* Json.optionalCountAt(value, "prompt_cache_hit_tokens", place)) ??
      (yield* Json.optionalCountAt(details, "cached_tokens", Json.at(place, "prompt_tokens_details")))
    return {
      ...(prompt === undefined ? undefined : { fresh: Math.max(0, prompt - (cacheRead ?? 0)) }),
      ...(cacheRead === undefined ? undefined : { cacheRead }),
      ...(output === undefined ? undefined : { output })
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------------------

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

const heldBySystem: Wire.Held = { openai: new Set(["role"]), [format]: true }
const heldByPart: Wire.Held = { openai: new Set(["refusal", "imageDetail", "custom"]), [format]: true }
const heldByMessage: Wire.Held = { openai: new Set(["role"]), [format]: true }

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
): { readonly value: Schema.JsonObject; readonly losses: ReadonlyArray<Session.Finding> } => {
  const losses = Wire.losses()
  const wire: Array<Schema.JsonObject> = []
  for (const [index, message] of messages.entries()) {
    losses.place = `messages[${index}]`
    const metadata = options?.marks === true ? metadataOf(message) : undefined
    const added = writeMessage(message, losses, index)
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

const metadataOf = (message: Prompt.Message): Schema.JsonObject | undefined => {
  const { ephemeral, pinned, source } = Marks.of(message)
  const metadata = {
    ...(source === undefined ? undefined : { source }),
    ...(ephemeral === undefined ? undefined : { ephemeral }),
    ...(pinned === undefined ? undefined : { pinned })
  }
  return Object.keys(metadata).length === 0 ? undefined : metadata
}

const roleOf = (message: Prompt.SystemMessage | Prompt.UserMessage): string =>
  Wire.optionsAt(message, "openai").role === "developer" ? "developer" : message.role

const writeMessage = (
  message: Prompt.Message,
  losses: Wire.Losses,
  index: number
): ReadonlyArray<Schema.JsonObject> => {
  losses.options(message, message.role === "system" ? heldBySystem : heldByMessage)
  switch (message.role) {
    case "system":
      return [{ role: roleOf(message), content: writeSystem(message) }]
    case "user": {
      const parts: Array<Schema.JsonObject> = []
      for (const [position, part] of message.content.entries()) {
        losses.place = `messages[${index}].content[${position}]`
        losses.options(part, heldByPart)
        const written = part.type === "text" ? writeText(part, losses) : writeFile(part, losses)
        if (written !== undefined) parts.push(written)
      }
      return [{ role: roleOf(message), content: Wire.onlyText(parts) ?? parts }]
    }
    case "assistant":
      return [writeAssistant(message, losses, index)]
    case "tool": {
      const results: Array<Schema.JsonObject> = []
      for (const [position, part] of message.content.entries()) {
        losses.place = `messages[${index}].content[${position}]`
        if (part.type !== "tool-result") {
          losses.report("approval", "an approval response has no place here")
          continue
        }
        losses.options(part, heldByPart)
        if (part.isFailure) losses.report("failure-flag", "that the call failed has no place here")
        const content = writeResult(part, losses)
        results.push(
          Wire.optionsAt(part, format).legacy === true
            ? { role: "function", name: part.name, content }
            : { role: "tool", tool_call_id: part.id, ...(part.name === "" ? undefined : { name: part.name }), content }
        )
      }
      if (results.length === 0) {
        losses.place = `messages[${index}]`
        losses.report("empty-message", "a tool message without a result has no place here")
      }
      return results
    }
  }
}

/** The parts as they were read, as long as they say what the message says. */
const writeSystem = (message: Prompt.SystemMessage): Schema.Json => {
  const shape = Wire.optionsAt(message, format).content
  if (!Json.isArray(shape)) return message.content
  const texts = shape.map((part) => Json.isObject(part) && typeof part.text === "string" ? part.text : "")
  return texts.join("\n\n") === message.content ? shape : message.content
}

const writeText = (part: Prompt.TextPart, losses: Wire.Losses): Schema.JsonObject | undefined => {
  const raw = Wire.rawOf(part)
  if (raw !== undefined) {
    if (Wire.holdsRaw(format, raw)) return raw
    losses.report("opaque-item", `an item of another format has no place here (${Wire.typeOf(raw)})`)
    return undefined
  }
  return Wire.optionsAt(part, "openai").refusal === true
    ? { type: "refusal", refusal: part.text }
    : { type: "text", text: part.text, ...Wire.objectOf(Wire.optionsAt(part, format), "fields") }
}

const writeFile = (part: Prompt.FilePart, losses: Wire.Losses): Schema.JsonObject => {
  const fields = Wire.objectOf(Wire.optionsAt(part, format), "fields")
  const data = Wire.fileData(part)
  if (part.mediaType.startsWith("image/") && part.fileName === undefined) {
    const detail = Wire.optionsAt(part, "openai").imageDetail
    const image = { url: Wire.fileUrl(part), ...(typeof detail === "string" ? { detail } : undefined) }
    return { type: "image_url", image_url: image, ...fields }
  }
  if ("url" in data && !data.url.startsWith("data:")) {
    losses.report("file", `a file behind a URL has no place here (${data.url})`)
    return { type: "text", text: Wire.omitted(part.mediaType, part.fileName) }
  }
  if (part.mediaType.startsWith("audio/") && part.fileName === undefined && "base64" in data) {
    return { type: "input_audio", input_audio: { data: data.base64, format: part.mediaType.slice(6) }, ...fields }
  }
  const name = part.fileName === undefined ? undefined : { filename: part.fileName }
  return { type: "file", file: { ...name, file_data: Wire.fileUrl(part) }, ...fields }
}

const writeAssistant = (message: Prompt.AssistantMessage, losses: Wire.Losses, index: number): Schema.JsonObject => {
  const reasoning: Array<string> = []
  const content: Array<Schema.JsonObject> = []
  const calls: Array<Schema.JsonObject> = []
  let legacy: Schema.JsonObject | undefined
  let refusal: string | undefined
  for (const [position, part] of message.content.entries()) {
    losses.place = `messages[${index}].content[${position}]`
    losses.options(part, heldByPart)
    switch (part.type) {
      case "reasoning":
        if (content.length > 0 || calls.length > 0) losses.report("order", "reasoning is written before all else")
        reasoning.push(part.text)
        break
      case "text": {
        if (calls.length > 0) losses.report("order", "text is written before the calls")
        // A message has one refusal beside its content.
        if (Wire.optionsAt(part, format).beside === true && refusal === undefined) {
          refusal = part.text
          break
        }
        const written = writeText(part, losses)
        if (written !== undefined) content.push(written)
        break
      }
      case "file":
        losses.report("file", `a file has no place in an answer (${part.mediaType})`)
        content.push({ type: "text", text: Wire.omitted(part.mediaType, part.fileName) })
        break
      case "tool-call":
        if (part.providerExecuted) {
          losses.report("provider-executed", `the provider's call ${part.name} has no place here`)
        } else if (Wire.optionsAt(part, format).legacy === true && legacy === undefined) {
          legacy = { name: part.name, arguments: Wire.argumentsOf(format, part, losses) }
        } else calls.push(writeCall(part, losses))
        break
      case "tool-result":
        losses.report("provider-executed", `the provider's result of ${part.name} has no place here`)
        break
      case "tool-approval-request":
        losses.report("approval", "an approval request has no place here")
    }
  }
  if (reasoning.length > 1) {
    losses.place = `messages[${index}]`
    losses.report("reasoning", `${reasoning.length} reasoning parts are written as one`)
  }
  return {
    role: "assistant",
    content: Wire.onlyText(content) ?? (content.length === 0 ? null : content),
    ...(reasoning.length === 0 ? undefined : { reasoning_content: reasoning.join("\n\n") }),
    ...(refusal === undefined ? undefined : { refusal }),
    ...(calls.length === 0 ? undefined : { tool_calls: calls }),
    ...(legacy === undefined ? undefined : { function_call: legacy })
  }
}

const writeCall = (part: Prompt.ToolCallPart, losses: Wire.Losses): Schema.JsonObject => {
  const fields = Wire.objectOf(Wire.optionsAt(part, format), "fields")
  return Wire.optionsAt(part, "openai").custom === true && typeof part.params === "string"
    ? { ...fields, id: part.id, type: "custom", custom: { name: part.name, input: part.params } }
    : {
      ...fields,
      id: part.id,
      type: "function",
      function: { name: part.name, arguments: Wire.argumentsOf(format, part, losses) }
    }
}

/** A result holds text only; other blocks are named, except those of this format's own. */
const writeResult = (part: Prompt.ToolResultPart, losses: Wire.Losses): Schema.Json => {
  const result = Wire.resultOf(part, losses)
  if (typeof result === "string") return result
  const blocks = result.map((block) => {
    if (block.type === "text") return block
    const image = Wire.imageOf(block)
    if (image === undefined && Wire.holdsRaw(format, block)) return block
    const mediaType = image?.file.mediaType ?? Wire.typeOf(block)
    losses.report("result-block", `a result holds text only (${mediaType})`)
    return Message.resultText(Wire.omitted(mediaType))
  })
  return Wire.onlyText(blocks) ?? blocks
}
