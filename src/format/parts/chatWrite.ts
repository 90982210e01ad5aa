/** Writes messages of OpenAI's chat completions. */
import type * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Marks from "../../Marks.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"
import * as Wire from "./wire.ts"

const format = "openai-chat"

const heldBySystem: Wire.Held = { openai: new Set(["role"]), [format]: true }
const heldByPart: Wire.Held = { openai: new Set(["refusal", "imageDetail", "custom"]), [format]: true }
const heldByMessage: Wire.Held = { openai: new Set(["role"]), [format]: true }

/** The library's marks of a message, for its `metadata`. */
export const metadataOf = (message: Prompt.Message): Schema.JsonObject | undefined => {
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

/** One message as messages of the wire; `index` is its place among those that are written. */
export const writeMessage = (
  message: Prompt.Message,
  losses: Wire.Losses,
  index: number
): ReadonlyArray<Schema.JsonObject> => {
  Wire.options(losses, message, message.role === "system" ? heldBySystem : heldByMessage)
  switch (message.role) {
    case "system":
      return [{ role: roleOf(message), content: writeSystem(message) }]
    case "user": {
      const parts: Array<Schema.JsonObject> = []
      for (const [position, part] of message.content.entries()) {
        Wire.at(losses, index, position)
        Wire.options(losses, part, heldByPart)
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
        Wire.at(losses, index, position)
        if (part.type !== "tool-result") {
          Wire.report(losses, "approval", "an approval response has no place here")
          continue
        }
        Wire.options(losses, part, heldByPart)
        if (part.isFailure) Wire.report(losses, "failure-flag", "that the call failed has no place here")
        const content = writeResult(part, losses)
        results.push(
          Wire.optionsAt(part, format).legacy === true
            ? { role: "function", name: part.name, content }
            : { role: "tool", tool_call_id: part.id, ...(part.name === "" ? undefined : { name: part.name }), content }
        )
      }
      if (results.length === 0) {
        Wire.at(losses, index)
        Wire.report(losses, "empty-message", "a tool message without a result has no place here")
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
  if (raw !== undefined) return Wire.rawIn(losses, format, part, raw, Message.resultText)
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
    Wire.report(losses, "file", `a file behind a URL has no place here (${data.url})`)
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
    Wire.at(losses, index, position)
    Wire.options(losses, part, heldByPart)
    switch (part.type) {
      case "reasoning":
        if (content.length > 0 || calls.length > 0) Wire.report(losses, "order", "reasoning is written before all else")
        reasoning.push(part.text)
        break
      case "text": {
        if (calls.length > 0) Wire.report(losses, "order", "text is written before the calls")
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
        Wire.report(losses, "file", `a file has no place in an answer (${part.mediaType})`)
        content.push({ type: "text", text: Wire.omitted(part.mediaType, part.fileName) })
        break
      case "tool-call":
        if (part.providerExecuted) {
          Wire.report(losses, "provider-executed", `the provider's call ${part.name} has no place here`)
        } else if (Wire.optionsAt(part, format).legacy === true && legacy === undefined) {
          legacy = { name: part.name, arguments: Wire.argumentsOf(format, part, losses) }
        } else calls.push(writeCall(part, losses))
        break
      case "tool-result":
        Wire.report(losses, "provider-executed", `the provider's result of ${part.name} has no place here`)
        break
      case "tool-approval-request":
        Wire.report(losses, "approval", "an approval request has no place here")
    }
  }
  if (reasoning.length > 1) {
    Wire.at(losses, index)
    Wire.report(losses, "reasoning", `${reasoning.length} reasoning parts are written as one`)
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
    Wire.report(losses, "result-block", `a result holds text only (${mediaType})`)
    return Message.resultText(Wire.omitted(mediaType))
  })
  return Wire.onlyText(blocks) ?? blocks
}
