/**
 * Reads and writes the input of OpenAI's Responses API: a list of items, or a request body.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Items from "./parts/responses.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "openai-responses"

// ---------------------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------------------

const ownItem = /^(reasoning|item_reference|compaction|message|mcp_.*)$|_call$|_call_output$/
const ownPart = /^(input|output)_/

const isOwn = (value: Schema.Json): boolean =>
  Json.isObject(value) && (
    (typeof value.type === "string" && ownItem.test(value.type)) ||
    (Json.isArray(value.content) &&
      value.content.some((part) => Json.isObject(part) && typeof part.type === "string" && ownPart.test(part.type)))
  )

const detect = (sample: Reader.Sample): string | undefined => {
  if (sample.kind !== "document") return undefined
  const value = sample.first[0]
  if (Json.isArray(value)) {
    return value.length > 0 && value.every(Json.isObject) && value.some(isOwn)
      ? "a list of items of the Responses API"
      : undefined
  }
  if (!Json.isObject(value) || value.messages !== undefined) return undefined
  return Json.isArray(value.input) || (typeof value.input === "string" && typeof value.model === "string")
    ? "a body with the input of the Responses API"
    : undefined
}

/**
 * Reads a list of items, or a body with `input` and `instructions`.
 *
 * **Details**
 *
 * - What one response gave, up to the next message or output, is one assistant message: reasoning, answers, calls and
 *   opaque items in order. Each output is a tool message.
 * - A developer message before the conversation is a system message; a later one is a user message with the source
 *   `runtime-context`, and is written back as a developer's.
 * - The id of an item is kept in `options.openai.itemId`, encrypted reasoning in `options.openai.encryptedContent`, what
 *   else has no place in `options["openai-responses"]`.
 * - A body that continues a stored response or conversation holds only the last items: a finding says so.
 * - Fails on an unknown role and on fields of a wrong type.
 *
 * @see https://platform.openai.com/docs/api-reference/responses/create
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect,
  start: (file, why) =>
    Wire.document({ file, format, why, what: "input" }, (value, place, session) =>
      Result.gen(function*() {
        const { line } = place
        if (Json.isArray(value)) return yield* readItems(value, place, session)
        const body = yield* Json.object(value, place)
        session.model = yield* Json.optionalStringAt(body, "model", place)
        for (const key of ["previous_response_id", "conversation"]) {
          if (body[key] === undefined || body[key] === null) continue
          session.findings.push({ kind: "continuation", line, detail: `${key}: earlier items are not in the file` })
        }
        const instructions = yield* Json.optionalStringAt(body, "instructions", place)
        if (instructions !== undefined) {
          session.push(Wire.annotate(Message.system(instructions), format, { instructions: true }), line)
        }
        if (typeof body.input === "string") session.push(Message.user([Message.text(body.input)]), line)
        else yield* readItems(yield* Json.arrayAt(body, "input", place), Json.at(place, "input"), session)
        if (Json.isObject(body.usage)) session.bill(Items.usage(body.usage, Json.at(place, "usage")), line)
      }))
}

const readItems = (values: Schema.JsonArray, place: Json.Place, session: Wire.Builder): Json.Read<void> =>
  Result.gen(function*() {
    // The parts of the response being read; calls must be known before their outputs are.
    let response: Array<Prompt.AssistantMessagePart> | undefined
    const flush = () => {
      if (response !== undefined) session.push(Message.assistant(response), place.line)
      response = undefined
    }
    for (const [index, value] of values.entries()) {
      const within = Json.at(place, index)
      const wire = yield* Json.object(value, within)
      if (typeof wire.type === "string" && wire.type.endsWith("_call_output")) flush()
      const item = yield* Items.item(wire, within, session.nameOf, session.messages)
      switch (item.kind) {
        case "assistant":
          if (item.parts.length === 0 && response !== undefined) {
            session.findings.push({ kind: "left-out", line: place.line, detail: `${within.field}: an empty message` })
          }
          response ??= []
          response.push(...annotateAnswer(item.parts, wire, response))
          break
        case "result":
          session.push(Message.tool([annotateResult(item.part, wire)]), place.line)
          break
        case "message":
          flush()
          session.push(yield* inputMessage(item, wire, within, session), place.line)
      }
    }
    flush()
  })

const messageFields: ReadonlySet<string> = new Set(["type", "role", "content"])

const inputMessage = (
  item: Extract<Items.Item, { kind: "message" }>,
  wire: Schema.JsonObject,
  place: Json.Place,
  session: Wire.Builder
): Json.Read<Prompt.SystemMessage | Prompt.UserMessage> => {
  const { parts, role } = item
  const texts = parts.every((part) => part.type === "text" && Wire.rawOf(part) === undefined)
  const note = { fields: Wire.fieldsOf(wire, messageFields) }
  const early = session.messages.every((message) => message.role === "system")
  if (role === "user" || (role === "developer" && !(early && texts))) {
    const message = Message.user(annotateParts(parts, wire.content))
    const developer = role === "developer"
      ? Wire.annotate(Marks.set(message, { source: "runtime-context" }), "openai", { role })
      : Wire.sourced(message)
    return Result.succeed(Wire.annotate(developer, format, note))
  }
  if (!texts) return Json.fail(Json.at(place, "content"), "expected text only in a system message")
  const content = textOf(parts)
  const system = Wire.annotate(Message.system(content), format, { ...note, content: shapeOf(wire.content) })
  return Result.succeed(role === "developer" ? Wire.annotate(system, "openai", { role }) : system)
}

/** Several parts are put together with an empty line between them. */
const textOf = (parts: ReadonlyArray<Prompt.TextPart | Prompt.FilePart>): string =>
  parts.map((part) => part.type === "text" ? part.text : "").join("\n\n")

/** The parts of a system message, where they are more than one text. */
const shapeOf = (content: Schema.Json | undefined): Schema.Json | undefined => {
  if (!Json.isArray(content)) return undefined
  const only = content.length === 1 ? content[0] : undefined
  return Json.isObject(only) && only.type === "input_text" && Wire.fieldsOf(only, partFields) === undefined
    ? undefined
    : content
}

const partFields: ReadonlySet<string> = new Set(["type", "text", "refusal"])
const imageFields: ReadonlySet<string> = new Set(["type", "image_url", "detail"])
const fileFields: ReadonlySet<string> = new Set(["type", "file_data", "filename"])

/** Puts the notes of content parts onto the parts made of them, one for one. */
const annotateParts = <A extends Prompt.TextPart | Prompt.FilePart | Prompt.AssistantMessagePart>(
  parts: ReadonlyArray<A>,
  content: Schema.Json | undefined,
  usual: "input_text" | "output_text" = "input_text"
): ReadonlyArray<A> =>
  parts.map((part, index) => {
    const wire = Json.isArray(content) ? content[index] : undefined
    if (!Json.isObject(wire)) return part
    if (Wire.rawOf(part) !== undefined) {
      // Among the parts of a response, a content part must be told from an item.
      return usual === "output_text" ? Wire.annotate(part, format, { within: true }) : part
    }
    if (part.type === "file") {
      const image = wire.type === "input_image"
      const noted = Wire.annotate(part, format, { fields: Wire.fieldsOf(wire, image ? imageFields : fileFields) })
      return image ? Wire.annotate(noted, "openai", { imageDetail: wire.detail ?? undefined }) : noted
    }
    const refusal = wire.type === "refusal"
    const noted = Wire.annotate(part, format, {
      type: refusal || wire.type === usual ? undefined : wire.type,
      fields: Wire.fieldsOf(wire, partFields)
    })
    return refusal ? Wire.annotate(noted, "openai", { refusal }) : noted
  })

const answerFields: ReadonlySet<string> = new Set(["type", "role", "content", "id"])
const reasoningFields: ReadonlySet<string> = new Set(["type", "id", "summary", "content", "encrypted_content"])
const functionFields: ReadonlySet<string> = new Set(["type", "id", "call_id", "name", "arguments"])
const customFields: ReadonlySet<string> = new Set(["type", "id", "call_id", "name", "input"])
const mcpFields: ReadonlySet<string> = new Set(["type", "id", "name", "arguments", "output", "error"])

/** The parts of an item of a response with its notes; `before` is what the response has so far. */
const annotateAnswer = (
  parts: ReadonlyArray<Prompt.AssistantMessagePart>,
  wire: Schema.JsonObject,
  before: ReadonlyArray<Prompt.AssistantMessagePart>
): ReadonlyArray<Prompt.AssistantMessagePart> => {
  const [first, ...rest] = parts
  if (first === undefined) return parts
  const type = wire.type ?? "message"
  if (type === "message") {
    const [head, ...tail] = annotateParts(parts, wire.content, "output_text")
    if (head === undefined) return parts
    const id = itemIdOf(head) === undefined && typeof wire.id === "string" ? wire.id : undefined
    const message = { ...Wire.fieldsOf(wire, answerFields), ...(id === undefined ? undefined : { id }) }
    // Where the item could be taken for more of the one before.
    const last = before.at(-1)
    const joined = last !== undefined && joins(last) &&
      (itemIdOf(head) === undefined || itemIdOf(head) === itemIdOf(last))
    const begins = joined || Object.keys(message).length > 0
    return [Wire.annotate(head, format, { message: begins ? message : undefined }), ...tail]
  }
  if (first.type === "reasoning") {
    const note = { fields: Wire.fieldsOf(wire, reasoningFields), ...reasoningShape(wire) }
    return [Wire.annotate(first, format, note)]
  }
  if (first.type !== "tool-call") return parts
  if (type === "function_call") {
    const call = typeof wire.arguments === "string" ? Wire.callOfText(format, first, wire.arguments) : first
    return [Wire.annotate(call, format, { fields: Wire.fieldsOf(wire, functionFields) })]
  }
  if (type === "custom_tool_call") {
    return [Wire.annotate(first, format, { fields: Wire.fieldsOf(wire, customFields) })]
  }
  if (type === "mcp_call") {
    const call = typeof wire.arguments === "string" ? Wire.callOfText(format, first, wire.arguments) : first
    return [Wire.annotate(call, format, { type, fields: Wire.fieldsOf(wire, mcpFields) }), ...rest]
  }
  const status = wire.status ?? undefined
  return [Wire.annotate(first, format, { type, fields: status === undefined ? undefined : { status } })]
}

const itemIdOf = (part: Prompt.Part): string | undefined => {
  const id = Wire.optionsAt(part, "openai").itemId
  return typeof id === "string" ? id : undefined
}

/** Whether a part belongs to a message item, so that the next text could belong to it too. */
const joins = (part: Prompt.AssistantMessagePart): boolean =>
  part.type === "file" ||
  (part.type === "text" && (Wire.rawOf(part) === undefined || Wire.optionsAt(part, format).within === true))

/** Kept where a reasoning item is more than one text of its summary. */
const reasoningShape = (
  wire: Schema.JsonObject
): { readonly summary?: Schema.Json; readonly content?: Schema.Json } => {
  const summary = Json.isArray(wire.summary) ? wire.summary : []
  const content = Json.isArray(wire.content) ? wire.content : []
  const only = summary[0]
  const usual = content.length === 0 && (summary.length === 0 || (
    summary.length === 1 && Json.isObject(only) && only.type === "summary_text" && only.text !== "" &&
    Wire.fieldsOf(only, partFields) === undefined
  ))
  return usual ? {} : { summary, ...(content.length === 0 ? undefined : { content }) }
}

const outputFields: ReadonlySet<string> = new Set(["type", "call_id", "output"])

const annotateResult = (part: Prompt.ToolResultPart, wire: Schema.JsonObject): Prompt.ToolResultPart => {
  const noted = Wire.annotate(part, format, {
    type: wire.type === "function_call_output" ? undefined : wire.type,
    byId: wire.call_id === undefined ? true : undefined,
    fields: Wire.fieldsOf(wire, outputFields)
  })
  const output = Json.isObject(wire.output) ? [wire.output] : wire.output
  if (!Json.isArray(output)) return noted
  // A block with further fields keeps them beside its text or image; one of another kind is kept whole.
  let more = false
  const blocks = output.map((block) => {
    if (!Json.isObject(block)) return block
    const fields = Wire.fieldsOf(block, blockFields)
    if (fields !== undefined) more = true
    if (block.type === "input_text" && typeof block.text === "string") {
      return { ...Message.resultText(block.text), ...fields }
    }
    if (isImage(block) && typeof block.image_url === "string") {
      return { ...Message.resultImage("image/*", block.image_url), ...fields }
    }
    if (typeof block.text === "string") more = true
    return block
  })
  return more ? { ...noted, result: blocks } : noted
}

const isImage = (block: Schema.JsonObject): boolean =>
  block.type === "input_image" || block.type === "computer_screenshot"

const blockFields: ReadonlySet<string> = new Set(["type", "text", "image_url"])

// ---------------------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What {@link write} adds to the messages: the model of the body.
 *
 * @category models
 * @since 0.1.0
 */
export interface WriteOptions {
  readonly model?: string | undefined
}

const heldByMessage: Wire.Held = { openai: new Set(["role"]), [format]: true }
const heldByPart: Wire.Held = {
  openai: new Set(["itemId", "encryptedContent", "imageDetail", "custom", "refusal"]),
  [format]: true
}

/**
 * Writes messages as a body `{ model?, instructions?, input }`, one output for each result.
 *
 * **Details**
 *
 * - `instructions` is written only where they were read; any other system message is an item.
 * - What the format has no place for is listed in `losses`: failure flags, calls that ran at another provider, approvals,
 *   items of other formats, files in answers, and the options of other providers.
 *
 * @category writers
 * @since 0.1.0
 */
export const write = (
  messages: ReadonlyArray<Prompt.Message>,
  options?: WriteOptions
): { readonly value: Schema.JsonObject; readonly losses: ReadonlyArray<Session.Finding> } => {
  const losses = Wire.losses()
  const input: Array<Schema.JsonObject> = []
  let instructions: string | undefined
  for (const [index, message] of messages.entries()) {
    losses.place = `messages[${index}]`
    losses.options(message, heldByMessage)
    if (message.role === "system" && index === 0 && Wire.optionsAt(message, format).instructions === true) {
      instructions = message.content
    } else input.push(...writeMessage(message, losses, index))
  }
  return {
    value: {
      ...(options?.model === undefined ? undefined : { model: options.model }),
      ...(instructions === undefined ? undefined : { instructions }),
      input
    },
    losses: losses.all
  }
}

const roleOf = (message: Prompt.SystemMessage | Prompt.UserMessage): string =>
  Wire.optionsAt(message, "openai").role === "developer" ? "developer" : message.role

const fieldsOf = (self: Prompt.Message | Prompt.Part): Schema.JsonObject =>
  Wire.objectOf(Wire.optionsAt(self, format), "fields")

const writeMessage = (
  message: Prompt.Message,
  losses: Wire.Losses,
  index: number
): ReadonlyArray<Schema.JsonObject> => {
  switch (message.role) {
    case "system":
      return [{ type: "message", role: roleOf(message), content: writeSystem(message), ...fieldsOf(message) }]
    case "user": {
      const content: Array<Schema.JsonObject> = []
      for (const [position, part] of message.content.entries()) {
        losses.place = `messages[${index}].content[${position}]`
        losses.options(part, heldByPart)
        const written = part.type === "file" ? writeFile(part) : writeText(part, "input_text", losses)
        if (written !== undefined) content.push(written)
      }
      return [{ type: "message", role: roleOf(message), content, ...fieldsOf(message) }]
    }
    case "assistant":
      return writeAnswer(message, losses, index)
    case "tool": {
      const outputs: Array<Schema.JsonObject> = []
      for (const [position, part] of message.content.entries()) {
        losses.place = `messages[${index}].content[${position}]`
        if (part.type === "tool-result") {
          losses.options(part, heldByPart)
          if (part.isFailure) losses.report("failure-flag", "that the call failed has no place here")
          outputs.push(writeResult(part, losses))
        } else losses.report("approval", "an approval response has no place here")
      }
      if (outputs.length === 0) {
        losses.place = `messages[${index}]`
        losses.report("empty-message", "a tool message without a result has no place here")
      }
      return outputs
    }
  }
}

/** The parts as they were read, as long as they say what the message says. */
const writeSystem = (message: Prompt.SystemMessage): Schema.JsonArray => {
  const shape = Wire.optionsAt(message, format).content
  if (Json.isArray(shape) && textsOf(shape) === message.content) return shape
  return [{ type: "input_text", text: message.content }]
}

const textsOf = (parts: Schema.JsonArray): string =>
  parts.map((part) => Json.isObject(part) && typeof part.text === "string" ? part.text : "").join("\n\n")

const writeText = (
  part: Prompt.TextPart,
  usual: "input_text" | "output_text",
  losses: Wire.Losses
): Schema.JsonObject | undefined => {
  const raw = Wire.rawOf(part)
  if (raw !== undefined) {
    if (Wire.holdsRaw(format, raw)) return raw
    losses.report("opaque-item", `an item of another format has no place here (${Wire.typeOf(raw)})`)
    return undefined
  }
  const note = Wire.optionsAt(part, format)
  return Wire.optionsAt(part, "openai").refusal === true
    ? { type: "refusal", refusal: part.text, ...fieldsOf(part) }
    : { type: typeof note.type === "string" ? note.type : usual, text: part.text, ...fieldsOf(part) }
}

const writeFile = (part: Prompt.FilePart): Schema.JsonObject => {
  if (part.mediaType.startsWith("image/") && part.fileName === undefined) {
    const detail = Wire.optionsAt(part, "openai").imageDetail
    return {
      type: "input_image",
      image_url: Wire.fileUrl(part),
      ...(detail === undefined ? undefined : { detail }),
      ...fieldsOf(part)
    }
  }
  const data = Wire.fileData(part)
  return {
    type: "input_file",
    ...(part.fileName === undefined ? undefined : { filename: part.fileName }),
    ...("url" in data && !data.url.startsWith("data:") ? { file_url: data.url } : { file_data: Wire.fileUrl(part) }),
    ...fieldsOf(part)
  }
}

const writeAnswer = (
  message: Prompt.AssistantMessage,
  losses: Wire.Losses,
  index: number
): ReadonlyArray<Schema.JsonObject> => {
  const items: Array<Schema.JsonObject> = []
  // The message item that the next text belongs to.
  let open: { readonly id: string | undefined; readonly content: Array<Schema.JsonObject> } | undefined
  const answer = (part: Prompt.AssistantMessagePart, content: Schema.JsonObject) => {
    const note = Wire.optionsAt(part, format).message
    const id = itemIdOf(part)
    if (open !== undefined && note === undefined && (id === undefined || id === open.id)) {
      open.content.push(content)
      return
    }
    open = { id: id ?? (Json.isObject(note) && typeof note.id === "string" ? note.id : undefined), content: [content] }
    items.push({
      type: "message",
      ...(id === undefined ? undefined : { id }),
      role: "assistant",
      content: open.content,
      ...(Json.isObject(note) ? note : undefined)
    })
  }
  const item = (value: Schema.JsonObject) => {
    open = undefined
    items.push(value)
  }
  for (const [position, part] of message.content.entries()) {
    losses.place = `messages[${index}].content[${position}]`
    losses.options(part, heldByPart)
    switch (part.type) {
      case "text": {
        const written = writeText(part, "output_text", losses)
        if (written === undefined) break
        if (joins(part)) answer(part, written)
        else item(written)
        break
      }
      case "file":
        losses.report("file", `a file has no place in an answer (${part.mediaType})`)
        answer(part, { type: "output_text", text: Wire.omitted(part.mediaType, part.fileName) })
        break
      case "reasoning":
        item(writeReasoning(part))
        break
      case "tool-call":
        if (!part.providerExecuted) item(writeCall(part, losses))
        else if (Wire.optionsAt(part, format).type === "mcp_call") item(writeMcpCall(part, message, losses))
        else losses.report("provider-executed", `another provider's call ${part.name} has no place here`)
        break
      case "tool-result":
        if (mcpCallOf(part, message) === undefined) {
          losses.report("provider-executed", `another provider's result of ${part.name} has no place here`)
        }
        break
      case "tool-approval-request":
        losses.report("approval", "an approval request has no place here")
    }
  }
  return message.content.length === 0 ? [{ type: "message", role: "assistant", content: [] }] : items
}

const idOf = (part: Prompt.Part): Schema.JsonObject => {
  const id = itemIdOf(part)
  return id === undefined ? Wire.emptyObject : { id }
}

const writeReasoning = (part: Prompt.ReasoningPart): Schema.JsonObject => {
  const { encryptedContent } = Wire.optionsAt(part, "openai")
  const note = Wire.optionsAt(part, format)
  const summary = Json.isArray(note.summary) ? note.summary : []
  const content = Json.isArray(note.content) ? note.content : []
  const noted = (content.length > 0 ? textsOf(content) : textsOf(summary)) === part.text
  const usual = part.text === "" ? [] : [{ type: "summary_text", text: part.text }]
  return {
    type: "reasoning",
    ...idOf(part),
    summary: noted ? summary : usual,
    ...(noted && content.length > 0 ? { content } : undefined),
    ...(typeof encryptedContent === "string" ? { encrypted_content: encryptedContent } : undefined),
    ...fieldsOf(part)
  }
}

const writeCall = (part: Prompt.ToolCallPart, losses: Wire.Losses): Schema.JsonObject => {
  const { type } = Wire.optionsAt(part, format)
  if (typeof type === "string") {
    const params = losses.json(part.params, "params")
    return { type, ...idOf(part), call_id: part.id, ...(Json.isObject(params) ? params : undefined), ...fieldsOf(part) }
  }
  const custom = Wire.optionsAt(part, "openai").custom === true && typeof part.params === "string"
  return {
    type: custom ? "custom_tool_call" : "function_call",
    ...idOf(part),
    call_id: part.id,
    name: part.name,
    ...(custom ? { input: part.params } : { arguments: Wire.argumentsOf(format, part, losses) }),
    ...fieldsOf(part)
  }
}

/** The call that a result at the provider belongs to, if it came from an `mcp_call` item. */
const mcpCallOf = (
  result: Prompt.ToolResultPart,
  message: Prompt.AssistantMessage
): Prompt.AssistantMessagePart | undefined =>
  message.content.find((part) =>
    part.type === "tool-call" && part.id === result.id && Wire.optionsAt(part, format).type === "mcp_call"
  )

/** One item is the call and what came of it. */
const writeMcpCall = (
  part: Prompt.ToolCallPart,
  message: Prompt.AssistantMessage,
  losses: Wire.Losses
): Schema.JsonObject => {
  const result = message.content.find((other) => other.type === "tool-result" && other.id === part.id)
  const output = result?.type === "tool-result" ? losses.json(result.result, "result") : null
  const failed = result?.type === "tool-result" && result.isFailure
  return {
    type: "mcp_call",
    id: part.id,
    name: part.name,
    arguments: Wire.argumentsOf(format, part, losses),
    ...(failed ? { error: output } : { output }),
    ...fieldsOf(part)
  }
}

const writeResult = (part: Prompt.ToolResultPart, losses: Wire.Losses): Schema.JsonObject => {
  const { byId, type } = Wire.optionsAt(part, format)
  return {
    type: typeof type === "string" ? type : "function_call_output",
    // An output that names its call by the id of the item keeps that among its fields.
    ...(byId === true ? undefined : { call_id: part.id }),
    output: writeOutput(part, type, losses),
    ...fieldsOf(part)
  }
}

const writeOutput = (part: Prompt.ToolResultPart, type: Schema.Json | undefined, losses: Wire.Losses): Schema.Json => {
  // The outputs of some built-in tools are lists of other things than blocks.
  if (typeof type === "string" && Array.isArray(part.result) && part.modelOutput === undefined) {
    const result = losses.json(part.result, "result")
    if (Json.isArray(result) && result.some((value) => !Json.isObject(value) || value.type === undefined)) return result
  }
  const result = Wire.resultOf(part, losses)
  if (typeof result === "string") return result
  const screen = type === "computer_call_output"
  const written = result.map((block) => {
    if (block.type === "text") return { ...block, type: "input_text" }
    const image = Wire.imageOf(block)
    if (image !== undefined) {
      const image_url = Wire.fileUrl(image.file)
      return { type: screen ? "computer_screenshot" : "input_image", image_url, ...image.fields }
    }
    if (Wire.holdsRaw(format, block)) return block
    losses.report("result-block", `a block of another format has no place here (${Wire.typeOf(block)})`)
    return { type: "input_text", text: Wire.omitted(Wire.typeOf(block)) }
  })
  // One text is a string, and the output of a computer call is one screenshot.
  const only = written.length === 1 ? written[0] : undefined
  if (only === undefined) return written
  if (screen) return only
  return only.type === "input_text" && Object.keys(only).length === 2 ? only.text ?? "" : written
}
