/** What the formats of the Vercel AI SDK and of opencode, which is built on it, share. */
import type * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Json from "./json.ts"
import * as Message from "./message.ts"
import * as Wire from "./wire.ts"

/**
 * Keeps what providers noted on a part, provider by provider. What a provider needs back with reasoning stands where
 * the Effect providers look for it.
 */
export const withProviders = <A extends Prompt.Part>(part: A, metadata: Schema.Json | undefined): A => {
  if (!Json.isObject(metadata)) return part
  let noted = part
  for (const [provider, value] of Object.entries(metadata)) {
    if (Json.isObject(value)) {
      noted = Wire.annotate(noted, provider, part.type === "reasoning" ? named(provider, value) : value)
    }
  }
  return noted
}

const named = (provider: string, value: Schema.JsonObject): Schema.JsonObject => {
  if (provider === "anthropic") {
    const { redactedData, signature, ...rest } = value
    if (typeof signature === "string") return { ...rest, info: { type: "thinking", signature } }
    if (typeof redactedData === "string") return { ...rest, info: { type: "redacted_thinking", redactedData } }
  }
  if (provider === "openai" && typeof value.reasoningEncryptedContent === "string") {
    const { reasoningEncryptedContent, ...rest } = value
    return { ...rest, encryptedContent: reasoningEncryptedContent }
  }
  return value
}

/** A value that a tool gave back, as the text the model reads. */
export const textOf = (value: Schema.Json | undefined): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)

/** A file whose data is a text; `undefined` where the data is bytes in a shape of its own. */
export const filePart = (
  data: Schema.Json | undefined,
  mediaType: Schema.Json | undefined,
  name: Schema.Json | undefined
): Prompt.FilePart | undefined =>
  typeof data === "string"
    ? Message.file(
      typeof mediaType === "string" ? mediaType : "application/octet-stream",
      data,
      typeof name === "string" ? name : undefined
    )
    : undefined
