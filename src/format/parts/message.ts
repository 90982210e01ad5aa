/** Builds `Prompt` messages and parts for the readers, without decoding them. */
import * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Marks from "../../Marks.ts"
import * as Json from "./json.ts"

export type Options = Prompt.ProviderOptions

export const text = (text: string, options: Options = {}): Prompt.TextPart => Prompt.makePart("text", { text, options })

export const reasoning = (text: string, options: Options = {}): Prompt.ReasoningPart =>
  Prompt.makePart("reasoning", { text, options })

/** An image or another file; `data` is base64, a `data:` URL or another URL. */
export const file = (mediaType: string, data: string, fileName?: string): Prompt.FilePart => {
  const inline = inlineData(data)
  return Prompt.makePart("file", {
    mediaType: inline?.mediaType ?? mediaType,
    data: inline?.data ?? (/^https?:/.test(data) && URL.canParse(data) ? new URL(data) : data),
    ...(fileName === undefined ? undefined : { fileName })
  })
}

/** The media type and the base64 of a `data:` URL. */
const inlineData = (url: string): { readonly mediaType: string; readonly data: string } | undefined => {
  if (!url.startsWith("data:")) return undefined
  const comma = url.indexOf(",")
  const head = url.slice(5, comma)
  if (comma < 0 || !head.endsWith(";base64")) return undefined
  return { mediaType: head.slice(0, head.indexOf(";")), data: url.slice(comma + 1) }
}

export const call = (
  id: string,
  name: string,
  params: Schema.Json,
  options: Options = {},
  providerExecuted = false
): Prompt.ToolCallPart => Prompt.makePart("tool-call", { id, name, params, options, providerExecuted })

/** A call whose arguments are JSON text. Text that is none, or is nested too deep, stays a text, in `params` and under `raw`. */
export const callOfText = (id: string, name: string, args: string, options: Options = {}): Prompt.ToolCallPart => {
  const params = Json.parse(args)
  return params === undefined
    ? Marks.set(call(id, name, args, options), { raw: args })
    : call(id, name, params, options)
}

export const result = (
  id: string,
  name: string,
  result: Schema.Json,
  isFailure = false,
  options: Options = {},
  providerExecuted = false
): Prompt.ToolResultPart => Prompt.makePart("tool-result", { id, name, isFailure, result, options, providerExecuted })

/** One block of a result that is not a single text. */
export const resultText = (text: string): Schema.JsonObject => ({ type: "text", text })

export const resultImage = (mediaType: string, data: string): Schema.JsonObject => {
  const inline = inlineData(data)
  return { type: "image", mediaType: inline?.mediaType ?? mediaType, data: inline?.data ?? data }
}

/** The value of a result made of blocks: the text itself where it is one text, no text where there is no block. */
export const resultOf = (blocks: ReadonlyArray<Schema.JsonObject>): Schema.Json => {
  if (blocks.length === 0) return ""
  const only = blocks.length === 1 ? blocks[0] : undefined
  return only !== undefined && only.type === "text" && typeof only.text === "string" ? only.text : blocks
}

/** What `Prompt` cannot hold: no text, the wire's item under `raw`. */
export const opaque = (raw: Schema.Json): Prompt.TextPart => Marks.set(text(""), { raw })

export const system = (content: string, options: Options = {}): Prompt.SystemMessage =>
  Prompt.makeMessage("system", { content, options })

/** A user message; `source` is absent for a person's. */
export const user = (content: ReadonlyArray<Prompt.UserMessagePart>, source?: string): Prompt.UserMessage => {
  const message = Prompt.makeMessage("user", { content })
  return source === undefined ? message : Marks.set(message, { source })
}

export const assistant = (content: ReadonlyArray<Prompt.AssistantMessagePart>): Prompt.AssistantMessage =>
  Prompt.makeMessage("assistant", { content })

export const tool = (content: ReadonlyArray<Prompt.ToolMessagePart>): Prompt.ToolMessage =>
  Prompt.makeMessage("tool", { content })
