/** Writes items of OpenAI's Responses API. */
import type * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Json from "./json.ts"
import * as Items from "./responsesRead.ts"
import * as Wire from "./wire.ts"

const format = "openai-responses"

const heldByPart: Wire.Held = {
  openai: new Set(["itemId", "encryptedContent", "imageDetail", "custom", "refusal"]),
  [format]: true
}

const roleOf = (message: Prompt.SystemMessage | Prompt.UserMessage): string =>
  Wire.optionsAt(message, "openai").role === "developer" ? "developer" : message.role

const fieldsOf = (self: Prompt.Message | Prompt.Part): Schema.JsonObject =>
  Wire.objectOf(Wire.optionsAt(self, format), "fields")

/** One message as items of the wire; `index` is its place among those that are written. */
export const writeMessage = (
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
        Wire.at(losses, index, position)
        Wire.options(losses, part, heldByPart)
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
        Wire.at(losses, index, position)
        if (part.type === "tool-result") {
          Wire.options(losses, part, heldByPart)
          if (part.isFailure) Wire.report(losses, "failure-flag", "that the call failed has no place here")
          outputs.push(writeResult(part, losses))
        } else Wire.report(losses, "approval", "an approval response has no place here")
      }
      if (outputs.length === 0) {
        Wire.at(losses, index)
        Wire.report(losses, "empty-message", "a tool message without a result has no place here")
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
  if (raw !== undefined) return Wire.rawIn(losses, format, part, raw, (text) => ({ type: usual, text }))
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
    const id = Items.itemIdOf(part)
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
    Wire.at(losses, index, position)
    Wire.options(losses, part, heldByPart)
    switch (part.type) {
      case "text": {
        const written = writeText(part, "output_text", losses)
        if (written === undefined) break
        const raw = Wire.rawOf(part)
        // Words that stand for an item of another format are said in a message.
        if (Items.joins(part) || (raw !== undefined && !Wire.holdsRaw(format, raw))) answer(part, written)
        else item(written)
        break
      }
      case "file":
        Wire.report(losses, "file", `a file has no place in an answer (${part.mediaType})`)
        answer(part, { type: "output_text", text: Wire.omitted(part.mediaType, part.fileName) })
        break
      case "reasoning":
        item(writeReasoning(part))
        break
      case "tool-call":
        if (!part.providerExecuted) item(writeCall(part, losses))
        else if (Wire.optionsAt(part, format).type === "mcp_call") item(writeMcpCall(part, message, losses))
        else Wire.report(losses, "provider-executed", `another provider's call ${part.name} has no place here`)
        break
      case "tool-result":
        if (mcpCallOf(part, message) === undefined) {
          Wire.report(losses, "provider-executed", `another provider's result of ${part.name} has no place here`)
        }
        break
      case "tool-approval-request":
        Wire.report(losses, "approval", "an approval request has no place here")
    }
  }
  return message.content.length === 0 ? [{ type: "message", role: "assistant", content: [] }] : items
}

const idOf = (part: Prompt.Part): Schema.JsonObject => {
  const id = Items.itemIdOf(part)
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
    const params = Wire.json(losses, part.params, "params")
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
  const output = result?.type === "tool-result" ? Wire.json(losses, result.result, "result") : null
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
    const result = Wire.json(losses, part.result, "result")
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
    Wire.report(losses, "result-block", `a block of another format has no place here (${Wire.typeOf(block)})`)
    return { type: "input_text", text: Wire.omitted(Wire.typeOf(block)) }
  })
  // One text is a string, and the output of a computer call is one screenshot.
  const only = written.length === 1 ? written[0] : undefined
  if (only === undefined) return written
  if (screen) return only
  return only.type === "input_text" && Object.keys(only).length === 2 ? only.text ?? "" : written
}
