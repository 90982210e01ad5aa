import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../../Marks.ts"

/** The blocks of a message as a prompt cache sees them: a hash of each one, its share of the price, and a hash of all. */
export interface Blocks {
  readonly hashes: ReadonlyArray<number>
  readonly shares: ReadonlyArray<number>
  readonly content: number
}

/** A hash of 53 bits; two rounds with other multipliers, since one of 32 bits collides among a million prefixes. */
export const hash = (text: string): number => {
  let low = 0x9e3779b9
  let high = 0x85ebca6b
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    low = Math.imul(low ^ unit, 0x01000193)
    high = Math.imul(high ^ unit, 0x5bd1e995)
    high ^= high >>> 15
  }
  low ^= low >>> 16
  return (high >>> 0) * 0x200000 + ((Math.imul(low, 0x27d4eb2f) >>> 0) & 0x1fffff)
}

/** The prefix that ends with a block. */
export const extend = (prefix: number, block: number): number => hash(`${prefix},${block}`)

/** Options reach the wire (a signature, an item id), marks of this library do not, but for what `raw` stands for. */
const wireOptions = (part: Prompt.Part): object => {
  const { [Marks.key]: _, ...options } = part.options
  const { raw } = Marks.of(part)
  return raw === undefined ? options : { ...options, raw }
}

const textOf = (part: Prompt.Part): string => JSON.stringify({ ...part, options: wireOptions(part) })

const known = new WeakMap<Prompt.Message, Blocks>()

const make = (message: Prompt.Message): Blocks => {
  const parts: ReadonlyArray<Prompt.Part> = message.role === "system" ? [] : message.content
  // A message without content still has a price, and so at least one block.
  const texts = message.role === "system" || parts.length === 0
    ? [message.role === "system" ? message.content : ""]
    : parts.map(textOf)
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  const hashes = texts.map((text) => hash(`${message.role}:${text}`))
  return {
    hashes,
    content: hashes.reduce(extend, 0),
    shares: texts.map((text) => length === 0 ? 1 / texts.length : text.length / length)
  }
}

/** The blocks of a message. A message is hashed once, however many requests it is part of: it never changes. */
export const of = (message: Prompt.Message): Blocks => {
  let blocks = known.get(message)
  if (blocks === undefined) known.set(message, blocks = make(message))
  return blocks
}

/** What is equal for messages of the same content. */
export const contentOf = (message: Prompt.Message): number => of(message).content
