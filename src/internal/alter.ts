import * as Prompt from "effect/ai/Prompt"
import type * as Decision from "../Decision.ts"
import type * as Transcript from "../Transcript.ts"
import * as Text from "./text.ts"

type Alteration = Decision.Truncate | Decision.Stub

/**
 * What was made of an entry already. The replacement is a pure function of the entry and the decision, so a pass that was
 * refused, or a view that is built again, finds it here and nothing is priced twice.
 */
const made = new WeakMap<Transcript.Entry, Array<{ readonly decision: Alteration; readonly item: Transcript.Item }>>()

const same = (a: Alteration, b: Alteration): boolean =>
  a._tag === "Truncate"
    ? b._tag === "Truncate" && a.k === b.k && a.shape === b.shape && a.locator === b.locator
    : b._tag === "Stub" && a.k === b.k

/** The tool message of an entry with `text` in place of the text of its result. */
const withResult = (entry: Transcript.Entry, text: string): Prompt.Message => {
  const message = entry.message
  if (message.role !== "tool") return message
  return Prompt.makeMessage("tool", {
    content: message.content.map((part) => part.type === "tool-result" ? Text.replaceResult(part, text) : part),
    options: message.options
  })
}

const alter = (entry: Transcript.Entry, decision: Alteration): Prompt.Message => {
  const text = Text.ofMessage(entry.message)
  return decision._tag === "Truncate"
    ? withResult(entry, Text.truncated(text, decision))
    : Prompt.makeMessage("user", {
      content: [Prompt.makePart("text", { text: Text.stubbed(text, decision.k) })],
      options: entry.message.options
    })
}

/** The entry as it stands in a view under the decision. */
export const item = (
  transcript: Transcript.Transcript,
  entry: Transcript.Entry,
  decision: Alteration
): Transcript.Item => {
  const known = made.get(entry)
  if (known !== undefined) { for (const each of known) if (same(each.decision, decision)) return each.item }
  const message = alter(entry, decision)
  const item: Transcript.Item = {
    seq: entry.seq,
    entry,
    group: entry.group,
    message,
    price: transcript.priceOf(message),
    state: decision._tag === "Truncate" ? "truncated" : "stubbed"
  }
  if (known === undefined) made.set(entry, [{ decision, item }])
  else known.push({ decision, item })
  return item
}

/**
 * The price of the first `k` characters of a result by themselves: of the message that holds them, less the price of the
 * same message holding nothing.
 */
export const priceOfKept = (transcript: Transcript.Transcript, entry: Transcript.Entry, k: number): number =>
  transcript.priceOf(withResult(entry, Text.ofMessage(entry.message).slice(0, k)))
  - transcript.priceOf(withResult(entry, ""))
