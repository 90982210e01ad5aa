import type * as Prompt from "effect/ai/Prompt"
import * as Json from "../text/json.ts"
import * as Text from "../text/text.ts"

/** What a request carries: how many images, files and other media, and about how many bytes. */
export interface Payload {
  readonly media: number
  readonly bytes: number
}

export const nothing: Payload = { media: 0, bytes: 0 }

export const add = (a: Payload, b: Payload): Payload => ({ media: a.media + b.media, bytes: a.bytes + b.bytes })

/** What was measured already; a message never changes. */
const measured = new WeakMap<Prompt.Message, Payload>()

const bytesOfJson = (value: unknown): number => Text.bytesOf(typeof value === "string" ? value : Json.textOf(value))

/** The bytes of a file as it is sent: base64, or an address. */
const bytesOfData = (data: unknown): number => {
  if (data instanceof Uint8Array) return Math.ceil(data.length / 3) * 4
  if (data instanceof URL) return data.href.length
  return typeof data === "string" ? data.length : 0
}

const ofResult = (part: Prompt.ToolResultPart): Payload => {
  const { modelOutput } = part
  if (modelOutput === undefined) {
    const blocks = Text.blocksOf(part.result) ?? []
    return { media: blocks.filter(Text.isMedia).length, bytes: bytesOfJson(part.result) }
  }
  let media = 0
  let bytes = 0
  for (const each of modelOutput) {
    if (each.type === "file") media++
    bytes += each.type === "file" ? bytesOfData(each.data) : Text.bytesOf(each.text)
  }
  return { media, bytes }
}

const measure = (message: Prompt.Message): Payload => {
  if (message.role === "system") return { media: 0, bytes: Text.bytesOf(message.content) }
  let media = 0
  let bytes = 0
  for (const part of message.content) {
    if (part.type === "file") {
      media++
      bytes += bytesOfData(part.data)
    } else if (part.type === "text" || part.type === "reasoning") {
      bytes += Text.bytesOf(part.text)
    } else if (part.type === "tool-call") {
      bytes += bytesOfJson(part.params)
    } else if (part.type === "tool-result") {
      const result = ofResult(part)
      media += result.media
      bytes += result.bytes
    }
  }
  return { media, bytes }
}

/** What a message carries; measured once. */
export const of = (message: Prompt.Message): Payload => {
  let payload = measured.get(message)
  if (payload === undefined) measured.set(message, payload = measure(message))
  return payload
}

/** What messages carry together. */
export const sum = (messages: Iterable<Prompt.Message>): Payload => {
  let total = nothing
  for (const message of messages) total = add(total, of(message))
  return total
}
