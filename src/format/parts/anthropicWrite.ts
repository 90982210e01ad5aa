/** Writes blocks of Anthropic's Messages API. */
import type * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Json from "./json.ts"
import * as Message from "./message.ts"
import * as Wire from "./wire.ts"

const format = "anthropic-messages"

export const heldByPart: Wire.Held = { anthropic: new Set(["cacheControl", "info", "serverName"]), [format]: true }

export const cacheControlOf = (self: Prompt.Message | Prompt.Part): Schema.Json | undefined =>
  Wire.optionsAt(self, "anthropic").cacheControl ?? undefined

export const fieldsOf = (self: Prompt.Message | Prompt.Part): Schema.JsonObject => {
  const cacheControl = cacheControlOf(self)
  return {
    ...Wire.objectOf(Wire.optionsAt(self, format), "fields"),
    ...(cacheControl === undefined ? undefined : { cache_control: cacheControl })
  }
}

/** A part as a block; `undefined` where the format has no place for it. */
export const writePart = (part: Prompt.Part, losses: Wire.Losses): Schema.JsonObject | undefined => {
  switch (part.type) {
    case "text": {
      const raw = Wire.rawOf(part)
      if (raw === undefined) return { type: "text", text: part.text, ...fieldsOf(part) }
      return Wire.rawIn(losses, format, part, raw, Message.resultText)
    }
    case "reasoning":
      return writeReasoning(part, losses)
    case "file":
      return { ...writeFile(part, losses), ...fieldsOf(part) }
    case "tool-call": {
      const serverName = Wire.optionsAt(part, "anthropic").serverName
      const params = Wire.json(losses, part.params, "params")
      if (!Json.isObject(params)) {
        Wire.report(losses, "arguments", "arguments that are no object are written as `{ input }`")
      }
      return {
        type: !part.providerExecuted ? "tool_use" : serverName === undefined ? "server_tool_use" : "mcp_tool_use",
        id: part.id,
        name: part.name,
        input: Json.isObject(params) ? params : { input: params },
        ...(serverName === undefined ? undefined : { server_name: serverName }),
        ...fieldsOf(part)
      }
    }
    case "tool-result": {
      const failed = part.isFailure ? { is_error: true } : undefined
      return part.providerExecuted
        ? {
          type: `${part.name}_tool_result`,
          tool_use_id: part.id,
          content: Wire.json(losses, part.result, "result"),
          ...failed,
          ...fieldsOf(part)
        }
        : {
          type: "tool_result",
          tool_use_id: part.id,
          content: writeResult(part, losses),
          ...failed,
          ...fieldsOf(part)
        }
    }
    case "tool-approval-request":
    case "tool-approval-response":
      Wire.report(losses, "approval", "an approval has no place here")
      return undefined
  }
}

/** Reasoning goes back only as the API gave it: a block that it did not sign is refused. */
const writeReasoning = (part: Prompt.ReasoningPart, losses: Wire.Losses): Schema.JsonObject | undefined => {
  const info = Wire.objectOf(Wire.optionsAt(part, "anthropic"), "info")
  if (typeof info.redactedData === "string") {
    return { type: "redacted_thinking", data: info.redactedData, ...fieldsOf(part) }
  }
  if (typeof info.signature === "string") {
    return { type: "thinking", thinking: part.text, signature: info.signature, ...fieldsOf(part) }
  }
  if (Wire.optionsAt(part, format).unsigned === true) {
    return { type: "thinking", thinking: part.text, ...fieldsOf(part) }
  }
  Wire.report(losses, "reasoning", "reasoning that is not signed has no place here")
  return undefined
}

const writeFile = (part: Prompt.FilePart, losses: Wire.Losses): Schema.JsonObject => {
  const image = part.mediaType.startsWith("image/")
  if (!image && part.mediaType !== "application/pdf") {
    Wire.report(losses, "file", `no place for a file of this type (${part.mediaType})`)
    return Message.resultText(Wire.omitted(part.mediaType, part.fileName))
  }
  const data = Wire.fileData(part)
  const source = "url" in data
    ? { type: "url", url: data.url }
    : { type: "base64", media_type: part.mediaType, data: data.base64 }
  if (image) {
    if (part.fileName !== undefined) Wire.report(losses, "file", `no place for the name of an image (${part.fileName})`)
    return { type: "image", source }
  }
  return { type: "document", source, ...(part.fileName === undefined ? undefined : { title: part.fileName }) }
}

const writeResult = (part: Prompt.ToolResultPart, losses: Wire.Losses): Schema.Json => {
  const result = Wire.resultOf(part, losses)
  if (typeof result === "string") return result
  const blocks = result.map((block) => {
    const image = Wire.imageOf(block)
    if (image !== undefined) return { ...writeFile(image.file, losses), ...image.fields }
    if (block.type === "text" || Wire.holdsRaw(format, block)) return block
    Wire.report(losses, "result-block", `a block of another format has no place here (${Wire.typeOf(block)})`)
    return Message.resultText(Wire.omitted(Wire.typeOf(block)))
  })
  return Wire.onlyText(blocks) ?? blocks
}
