import type * as Prompt from "effect/ai/Prompt"
import type * as Decision from "../Decision.ts"
import * as Text from "../text/text.ts"
import type * as Transcript from "../Transcript.ts"

/**
 * What was made of an entry already. The replacement is a pure function of the entry and the decisions, so a pass that
 * was refused, or a view that is built again, finds it here and nothing is priced twice.
 */
const made = new WeakMap<Transcript.Entry, Array<Transcript.Item>>()

/** Whether two alterations of one entry give the same bytes: everything but the time they were decided at. */
const same = (a: Decision.Alteration, b: Decision.Alteration): boolean => {
  if (a === b) return true
  // A pass makes thousands of these, and looking through keys takes longer than all else here.
  if (a._tag === "Clear" && b._tag === "Clear") return a.text === b.text && a.locator === b.locator && a.seq === b.seq
  if (a._tag !== b._tag) return false
  const left: { readonly [key: string]: unknown } = a
  const right: { readonly [key: string]: unknown } = b
  for (const key in left) if (key !== "at" && left[key] !== right[key]) return false
  return true
}

const sameAll = (a: ReadonlyArray<Decision.Alteration>, b: ReadonlyArray<Decision.Alteration>): boolean => {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (!same(a[at]!, b[at]!)) return false
  return true
}

/** The tool message with `change` made to its result. */
const withResult = (
  message: Prompt.Message,
  change: (part: Prompt.ToolResultPart) => Prompt.ToolResultPart
): Prompt.Message => {
  if (message.role !== "tool") return message
  const content: Array<Prompt.ToolMessagePart> = []
  for (const part of message.content) content.push(part.type === "tool-result" ? change(part) : part)
  // The quickest copy of a message there is: a pass makes thousands.
  return Object.assign({}, message, { content })
}

/** What stands for a text in a tool result; the last of these that was decided is made of the original text. */
const textRank = { Cap: 1, Prune: 2, Truncate: 3, Clear: 4 } as const

type TextAlteration = Extract<Decision.Alteration, { readonly _tag: keyof typeof textRank }>

const isTextAlteration = (self: Decision.Alteration): self is TextAlteration => self._tag in textRank

const alterText = (message: Prompt.Message, alteration: TextAlteration): Prompt.Message => {
  switch (alteration._tag) {
    case "Truncate":
      return withResult(message, (part) => Text.replaceResult(part, Text.truncated(Text.ofResult(part), alteration)))
    case "Prune":
      return withResult(message, (part) => Text.pruneResult(part, alteration))
    case "Cap":
      return withResult(message, (part) => Text.capResult(part, alteration))
    case "Clear":
      return withResult(message, (part) => Text.clearResult(part, alteration.text))
  }
}

/** What stands for the words of a person; the last of these is made of the original words. */
type WordAlteration = Decision.Stub | Decision.Excerpt

const isWordAlteration = (self: Decision.Alteration): self is WordAlteration =>
  self._tag === "Stub" || self._tag === "Excerpt"

const alterWords = (message: Prompt.Message, alteration: WordAlteration): Prompt.Message =>
  alteration._tag === "Stub"
    ? Text.stubMessage(message, alteration.k)
    : Text.excerptMessage(message, alteration.text)

const alter = (
  message: Prompt.Message,
  alteration: Exclude<Decision.Alteration, TextAlteration | WordAlteration>
): Prompt.Message => {
  switch (alteration._tag) {
    case "Trim":
      return Text.trimMessage(message, alteration)
    case "Placeholder":
      return Text.withoutMedia(message)
  }
}

const stateOf: { readonly [Tag in Decision.Alteration["_tag"]]: Transcript.Item["state"] } = {
  Truncate: "truncated",
  Stub: "stubbed",
  Excerpt: "stubbed",
  Prune: "pruned",
  Cap: "capped",
  Clear: "cleared",
  Trim: "trimmed",
  Placeholder: "placeholder"
}

const messageOf = (entry: Transcript.Entry, alterations: ReadonlyArray<Decision.Alteration>): Prompt.Message => {
  const text = alterations.findLast(isTextAlteration)
  const words = alterations.findLast(isWordAlteration)
  let message = text === undefined ? entry.message : alterText(entry.message, text)
  if (words !== undefined) message = alterWords(message, words)
  for (const alteration of alterations) {
    if (!isTextAlteration(alteration) && !isWordAlteration(alteration)) message = alter(message, alteration)
  }
  return message
}

/** The entry as it stands in a view under these decisions, oldest first; at least one. */
export const item = (
  transcript: Transcript.Transcript,
  entry: Transcript.Entry,
  alterations: ReadonlyArray<Decision.Alteration>
): Transcript.Item => {
  const known = made.get(entry)
  if (known !== undefined) { for (const each of known) if (sameAll(each.alterations, alterations)) return each }
  const message = messageOf(entry, alterations)
  const item: Transcript.Item = {
    seq: entry.seq,
    entry,
    group: entry.group,
    message,
    price: transcript.priceOf(message),
    state: stateOf[alterations[alterations.length - 1]!._tag],
    alterations
  }
  if (known === undefined) made.set(entry, [item])
  else known.push(item)
  return item
}

/** Forgets what was made of an entry. Made once more it is the same. */
export const forget = (entry: Transcript.Entry): void => {
  made.delete(entry)
  kept.delete(entry)
}

/**
 * Whether an alteration may still be made of an item: a text is only replaced by something that keeps less of it, and
 * anything else is done once. What was sent is not changed because the settings did.
 */
export const applies = (item: Transcript.Item, alteration: Decision.Alteration): boolean => {
  if (isTextAlteration(alteration)) {
    const rank = textRank[alteration._tag]
    return item.alterations.every((each) => !isTextAlteration(each) || textRank[each._tag] < rank)
  }
  if (alteration._tag === "Excerpt") {
    return item.alterations.every((each) =>
      each._tag !== "Stub" && (each._tag !== "Excerpt" || each.text.length > alteration.text.length)
    )
  }
  return item.alterations.every((each) => each._tag !== alteration._tag || each._tag === "Trim")
}

/** What the first characters of a result cost by themselves, by how many they are. */
const kept = new WeakMap<Transcript.Entry, Map<number, number>>()

/**
 * The price of the first `k` characters of a result by themselves: of the message that holds them, less the price of the
 * same message holding nothing.
 */
export const priceOfKept = (transcript: Transcript.Transcript, entry: Transcript.Entry, k: number): number => {
  if (k === 0) return 0
  let known = kept.get(entry)
  if (known === undefined) kept.set(entry, known = new Map())
  let price = known.get(k)
  if (price === undefined) {
    const priceWith = (keep: number) =>
      transcript.priceOf(
        withResult(entry.message, (part) => Text.replaceResult(part, Text.ofResult(part).slice(0, keep)))
      )
    known.set(k, price = priceWith(k) - priceWith(0))
  }
  return price
}
