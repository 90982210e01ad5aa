/** Reads the items of a body of OpenAI's Responses API, and notes on the parts what they have no place for. */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../../Marks.ts"
import * as Building from "./building.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"
import * as Items from "./responses.ts"
import * as Wire from "./wire.ts"

const format = "openai-responses"

/** Reads the items of a body, with the notes that give them back as they were. */
export const readItems = (values: Schema.JsonArray, place: Json.Place, session: Building.Building): Json.Read<void> =>
  Result.gen(function*() {
    // The parts of the response being read; calls must be known before their outputs are.
    let response: Array<Prompt.AssistantMessagePart> | undefined
    const flush = () => {
      if (response !== undefined) Building.push(session, Message.assistant(response), place.line)
      response = undefined
    }
    for (const [index, value] of values.entries()) {
      const within = Json.at(place, index)
      const wire = yield* Json.object(value, within)
      if (typeof wire.type === "string" && wire.type.endsWith("_call_output")) flush()
      const item = yield* Items.item(wire, within, session.messages)
      switch (item.kind) {
        case "assistant":
          if (item.parts.length === 0 && response !== undefined) {
            session.findings.push({ kind: "left-out", line: place.line, detail: `${within.field}: an empty message` })
          }
          response ??= []
          response.push(...annotateAnswer(item.parts, wire, response))
          break
        case "provisional":
          Building.notice(session, "provisional", place.line)
          break
        case "result":
          Building.push(session, Message.tool([annotateResult(item.part, wire)]), place.line)
          break
        case "message":
          flush()
          Building.push(session, yield* inputMessage(item, wire, within, session), place.line)
      }
    }
    flush()
  })

const messageFields: ReadonlySet<string> = new Set(["type", "role", "content"])

const inputMessage = (
  item: Extract<Items.Item, { kind: "message" }>,
  wire: Schema.JsonObject,
  place: Json.Place,
  session: Building.Building
): Json.Read<Prompt.SystemMessage | Prompt.UserMessage> => {
  const { parts, role } = item
  const texts = parts.every((part) => part.type === "text" && Wire.rawOf(part) === undefined)
  const note = { fields: Wire.fieldsOf(wire, messageFields) }
  const early = session.messages.every((message) => message.role === "system")
  if (role === "user" || (role === "developer" && !(early && texts))) {
    const message = Message.user(annotateParts(parts, wire.content))
    const developer = role === "developer"
      ? Wire.annotate(Marks.set(message, { source: "runtime-context" }), "openai", { role })
      : Building.sourced(message)
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

export const itemIdOf = (part: Prompt.Part): string | undefined => {
  const id = Wire.optionsAt(part, "openai").itemId
  return typeof id === "string" ? id : undefined
}

/** Whether a part belongs to a message item, so that the next text could belong to it too. */
export const joins = (part: Prompt.AssistantMessagePart): boolean =>
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
