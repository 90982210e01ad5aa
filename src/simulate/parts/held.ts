import type * as Prompt from "effect/ai/Prompt"
import * as Text from "../../text/text.ts"
import * as Identifiers from "./identifiers.ts"
import type { Index } from "./recorded.ts"

/** What a view holds; `tokens` is its size. */
export interface Held {
  /** Whether it holds an identifier. */
  readonly has: (identifier: string) => boolean
  /** Whether a text of a person is whole in it. */
  readonly holds: (text: string, at: number) => boolean
  readonly tokens: number
}

/** The texts of a view that a person's words can be found in. */
export const ofView = (messages: ReadonlyArray<Prompt.Message>, tokens: number): Held => {
  const texts: Array<string> = []
  for (const message of messages) if (message.role === "user") texts.push(Text.ofMessage(message))
  const all = texts.join("\n\0\n")
  return {
    has: (identifier) => messages.some((message) => Identifiers.of(message).has(identifier)),
    holds: (text) => all.includes(text),
    tokens
  }
}

/** Whole messages of a session, by position. */
const ofEntries = ({ prices, said }: Index, chosen: (at: number) => boolean, told: number): Held => ({
  has: (identifier) => said.get(identifier)?.some((at) => at < told && chosen(at)) ?? false,
  holds: (_, at) => chosen(at),
  tokens: prices.reduce((sum, price, at) => at < told && chosen(at) ? sum + price : sum, 0)
})

/** The newest messages that together cost at most `tokens`; the system prompt is always among them. */
export const ofTail = (index: Index, told: number, tokens: number): Held => {
  const isSystem = (at: number): boolean => index.messages[at]!.role === "system"
  let left = tokens
  for (let at = 0; at < told; at++) if (isSystem(at)) left -= index.prices[at]!
  let from = told
  while (from > 0 && (isSystem(from - 1) || index.prices[from - 1]! <= left)) {
    from--
    if (!isSystem(from)) left -= index.prices[from]!
  }
  return ofEntries(index, (at) => at >= from, told)
}

/** Messages in a random order, each that still fits. */
export const ofRandom = (index: Index, told: number, tokens: number): Held => {
  const order = Array.from({ length: told }, (_, at) => at).sort((a, b) => index.ranks[a]! - index.ranks[b]!)
  const chosen = new Set<number>()
  let left = tokens
  for (const at of order) {
    if (index.prices[at]! > left) continue
    left -= index.prices[at]!
    chosen.add(at)
  }
  return ofEntries(index, (at) => chosen.has(at), told)
}
