/** What the readers and writers of wire bodies share: wire notes, and what a target cannot hold. */
import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../../Marks.ts"
import * as Value from "../../text/json.ts"
import * as Opaque from "../../wire/opaque.ts"
import type * as Session from "../Session.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"

// ---------------------------------------------------------------------------------------------------------------------
// Notes: fields of the wire that `Prompt` has no place for and that are not content, kept under the format's own name
// in `options`. They are no marks: a noted message may be edited and removed like any other.
// ---------------------------------------------------------------------------------------------------------------------

export const emptyObject: Schema.JsonObject = {}

/** The object kept under `key` in the options of a message or part. */
export const optionsAt = (self: Prompt.Message | Prompt.Part, key: string): Schema.JsonObject => {
  const value = self.options[key]
  return Json.isObject(value) ? value : emptyObject
}

/** Adds `values` to the object kept under `key` in the options; absent values add nothing. */
export const annotate = <A extends Prompt.Message | Prompt.Part>(
  self: A,
  key: string,
  values: { readonly [key: string]: Schema.Json | undefined }
): A => {
  const added: Array<[string, Schema.Json]> = []
  for (const [name, value] of Object.entries(values)) if (value !== undefined) added.push([name, value])
  return added.length === 0
    ? self
    : { ...self, options: { ...self.options, [key]: { ...optionsAt(self, key), ...Object.fromEntries(added) } } }
}

const saysNothing = (value: Schema.Json): boolean => value === null || (Json.isArray(value) && value.length === 0)

/** The fields of `value` that are not in `held`; null and empty arrays say nothing. Absent when there are none. */
export const fieldsOf = (value: Schema.JsonObject, held: ReadonlySet<string>): Schema.JsonObject | undefined => {
  const rest = Object.entries(value).filter(([key, field]) => !held.has(key) && !saysNothing(field))
  return rest.length === 0 ? undefined : Object.fromEntries(rest)
}

/** The object at `key` of a note, to be spread into a wire object. */
export const objectOf = (note: Schema.JsonObject, key: string): Schema.JsonObject => {
  const value = note[key]
  return Json.isObject(value) ? value : emptyObject
}

// ---------------------------------------------------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------------------------------------------------

/** Whether two JSON values are equal, whatever the order of their keys. */
const same = (a: Schema.Json | undefined, b: Schema.Json | undefined): boolean => {
  if (a === b) return true
  if (Json.isArray(a)) return Json.isArray(b) && a.length === b.length && a.every((value, i) => same(value, b[i]))
  if (!Json.isObject(a) || !Json.isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]))
}

/** `value` as JSON; `exact` is false when something of it is not JSON. A value that is JSON comes back as it is. */
const jsonOf = (value: unknown): { readonly value: Schema.Json; readonly exact: boolean } => {
  const open = new Set<object>()
  let exact = true
  const lossy = (instead: Schema.Json): Schema.Json => {
    exact = false
    return instead
  }
  const convert = (value: unknown): Schema.Json => {
    if (value === null || typeof value === "string" || typeof value === "boolean") return value
    if (typeof value === "number") return Number.isFinite(value) ? value : lossy(null)
    if (typeof value === "bigint") return lossy(String(value))
    if (typeof value !== "object") return lossy(null)
    if (open.has(value)) return lossy("[circular]")
    open.add(value)
    const converted = Array.isArray(value) ? value.map(convert) : fromObject(value)
    open.delete(value)
    return converted
  }
  const fromObject = (value: object): Schema.Json => {
    if (value instanceof Date) return lossy(Number.isNaN(value.getTime()) ? null : value.toISOString())
    if (value instanceof URL) return lossy(value.href)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== null && prototype !== Object.prototype) exact = false
    return Object.fromEntries(
      Object.entries(value).filter((entry) => entry[1] !== undefined).map(([key, item]) => [key, convert(item)])
    )
  }
  const converted = convert(value)
  return { value: converted, exact }
}

const whitespace = /\s/

/** JSON text without the white space between its tokens. */
const compact = (text: string): string => {
  let out = ""
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i)
    if (quoted && character === "\\") {
      out += character + text.charAt(++i)
      continue
    }
    if (character === "\"") quoted = !quoted
    if (quoted || !whitespace.test(character)) out += character
  }
  return out
}

/**
 * A call whose arguments are JSON text. The text is noted where the parsed value does not give it back (numbers that
 * do not fit a double, keys twice, escapes), white space apart.
 */
export const callOfText = (
  format: Session.FormatName,
  part: Prompt.ToolCallPart,
  text: string
): Prompt.ToolCallPart =>
  Marks.of(part).raw === undefined && compact(text) !== JSON.stringify(part.params)
    ? annotate(part, format, { arguments: text })
    : part

/** The arguments of a call as JSON text: what was noted, as long as it still says the same. */
export const argumentsOf = (format: Session.FormatName, part: Prompt.ToolCallPart, losses: Losses): string => {
  const raw = Marks.of(part).raw
  if (typeof raw === "string" && part.params === raw) return raw
  const params = json(losses, part.params, "params")
  const noted = optionsAt(part, format).arguments
  return typeof noted === "string" && same(Json.parse(noted), params) ? noted : JSON.stringify(params)
}

// ---------------------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------------------

/** What a writer leaves out or changes, and where it stands. */
export interface Losses {
  readonly all: Array<Session.Loss>
  /** The message that is being written, and its part; `undefined` for the message itself. */
  message: number
  part: number | undefined
}

export const losses = (): Losses => ({ all: [], message: 0, part: undefined })

export const at = (self: Losses, message: number, part?: number): void => {
  self.message = message
  self.part = part
}

export const report = (self: Losses, kind: string, what: string): void => {
  const { message, part } = self
  const place = part === undefined ? `messages[${message}]` : `messages[${message}].content[${part}]`
  self.all.push({ kind, line: 0, detail: `${place}: ${what}`, message, part, what })
}

/** `value` as JSON; what is not JSON in it is reported. */
export const json = (self: Losses, value: unknown, what: string): Schema.Json => {
  const read = Value.normalise(value)
  if (Result.isFailure(read) && read.failure.reason === "deep") {
    report(self, "not-json", `${what} is nested more than ${Value.maxDepth} deep, and is left out`)
    return "[nested too deep]"
  }
  const converted = jsonOf(value)
  if (!converted.exact) report(self, "not-json", `${what} is not JSON, and is written as near to it as JSON can be`)
  return converted.value
}

/** Reports the options that the target has no place for. */
export const options = (self: Losses, subject: Prompt.Message | Prompt.Part, held: Held): void => {
  for (const [provider, value] of Object.entries(subject.options)) {
    if (provider === Marks.key || value === null) continue
    const keys = held[provider]
    if (keys === true) continue
    const lost = Json.isObject(value)
      ? Object.keys(value).filter((key) => keys?.has(key) !== true).map((key) => `${provider}.${key}`)
      : [provider]
    if (lost.length > 0) report(self, "options", `no place for the options ${lost.join(", ")}`)
  }
}

/**
 * An item that `Prompt` could not hold, as it came, where `format` can hold it. Else it is reported, and what is written is
 * the words that a request left in its place, as `text` makes them; nothing where there are none.
 */
export const rawIn = (
  self: Losses,
  format: Session.FormatName,
  part: Prompt.TextPart,
  raw: Schema.JsonObject,
  text: (words: string) => Schema.JsonObject
): Schema.JsonObject | undefined => {
  if (holdsRaw(format, raw)) return raw
  report(self, "opaque-item", `an item of another format has no place here (${typeOf(raw)})`)
  return part.text === "" ? undefined : text(part.text)
}

/** The keys that a target has a place for, by provider; `true` is any key. */
export type Held = { readonly [provider: string]: ReadonlySet<string> | true }

const responsesItem =
  /^(input_|output_|mcp_(call|list_tools|approval_)|refusal$|reasoning$|message$|item_reference$|ghost_snapshot$)|_call(_output)?$/
const anthropicBlock =
  /_tool_use$|_tool_result$|^(tool_use|tool_result|thinking|redacted_thinking|container_upload|search_result|tool_reference|image|document)$/
const chatPart = /^(image_url|input_audio|file)$/

/**
 * Whether an item that `Prompt` could not hold may be written in `format`: by its type it is of that format, or it is
 * known in none. What has no type, as the parts of Gemini, is of no format that is written here.
 */
export const holdsRaw = (format: Session.FormatName, raw: Schema.JsonObject): boolean => {
  if (typeof raw.type !== "string") return false
  const type = typeOf(raw)
  const owners: Array<Session.FormatName> = []
  // Both APIs have one; only that of OpenAI has nothing to read in it.
  if (type === "compaction") owners.push("content" in raw ? "anthropic-messages" : "openai-responses")
  if (responsesItem.test(type)) owners.push("openai-responses")
  if (anthropicBlock.test(type)) owners.push("anthropic-messages")
  if (chatPart.test(type)) owners.push("openai-chat")
  return owners.length === 0 || owners.includes(format)
}

/** What an item calls itself. */
export const typeOf = (item: Schema.JsonObject): string => typeof item.type === "string" ? item.type : "no type"

/** The wire's own item behind an opaque part, as long as nobody wrote there. */
export const rawOf = (part: Prompt.Part): Schema.JsonObject | undefined => {
  const item = Opaque.itemOf(part)
  return Json.isObject(item) ? item : undefined
}

const plainText: ReadonlySet<string> = new Set(["type", "text"])

/** The text of the only part or block, where that is all there is to it. */
export const onlyText = (parts: ReadonlyArray<Schema.JsonObject>): string | undefined => {
  const only = parts.length === 1 ? parts[0] : undefined
  return only !== undefined && only.type === "text" && typeof only.text === "string" &&
      fieldsOf(only, plainText) === undefined
    ? only.text
    : undefined
}

/** The data of a file: a URL, or base64. */
export const fileData = (part: Prompt.FilePart): { readonly url: string } | { readonly base64: string } => {
  if (part.data instanceof URL) return { url: part.data.href }
  if (typeof part.data !== "string") return { base64: Base64.encode(part.data) }
  // Base64 has no colon.
  return /^[a-z][a-z0-9+.-]*:/i.test(part.data) ? { url: part.data } : { base64: part.data }
}

/** The data of a file as a URL; base64 becomes a `data:` URL. */
export const fileUrl = (part: Prompt.FilePart): string => {
  const data = fileData(part)
  return "url" in data ? data.url : `data:${part.mediaType};base64,${data.base64}`
}

/** What stands in place of a file that the target cannot hold. */
export const omitted = (mediaType: string, fileName?: string): string =>
  `[${mediaType}${fileName === undefined ? "" : ` ${fileName}`} omitted]`

/** The content of a tool result as the model reads it: a text, or blocks. */
export const resultOf = (part: Prompt.ToolResultPart, losses: Losses): string | ReadonlyArray<Schema.JsonObject> => {
  if (part.modelOutput !== undefined) {
    report(losses, "structured-result", "only what the model reads of the result is written")
    return part.modelOutput.map((output) => {
      if (output.type === "text") return Message.resultText(output.text)
      const data = fileData(output)
      return Message.resultImage(output.mediaType, "url" in data ? data.url : data.base64)
    })
  }
  const result = json(losses, part.result, "result")
  if (typeof result === "string") return result
  if (Json.isArray(result) && result.length > 0 && result.every(isBlock)) return result
  report(losses, "structured-result", "the result is written as JSON text")
  return JSON.stringify(result)
}

const isBlock = (value: Schema.Json): value is Schema.JsonObject =>
  Json.isObject(value) && typeof value.type === "string"

/** An image block of a result, apart from its further fields; `data` as in a file part. */
export const imageOf = (
  block: Schema.JsonObject
): { readonly file: Prompt.FilePart; readonly fields: Schema.JsonObject } | undefined => {
  const { data, mediaType, type, ...fields } = block
  return type === "image" && typeof mediaType === "string" && typeof data === "string"
    ? { file: Message.file(mediaType, data), fields }
    : undefined
}
