/**
 * Items that `Prompt` has no part for: an empty text part that holds the provider's item under the mark `raw`. An exporter
 * of a format that has such items writes the item; where a text may be empty the part goes as it is; elsewhere words say
 * what was left out. The item stays under its mark in all cases.
 */
import * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"

const isObject = (value: Schema.Json): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What an item calls itself, where that is a word. */
const typeOf = (raw: Schema.Json): string =>
  isObject(raw) && typeof raw.type === "string" && /^[\w.:-]{1,64}$/.test(raw.type) ? raw.type : "an item"

/** The words that stand for an item where it cannot be held. */
export const wordsFor = (raw: Schema.Json): string => `[left out: ${typeOf(raw)}]`

/** The part that stands for an item, with words that every provider takes where nobody writes the item. */
export const partOf = (raw: Schema.Json): Prompt.TextPart =>
  Marks.set(Prompt.makePart("text", { text: wordsFor(raw) }), { raw })

/** The item that a part stands for, whether words were put there or not; `undefined` for any other part. */
export const itemOf = (part: Prompt.Part): Schema.Json | undefined => {
  if (part.type !== "text" || !(Marks.key in part.options)) return undefined
  const { raw } = Marks.of(part)
  return raw !== undefined && (part.text === "" || part.text === wordsFor(raw)) ? raw : undefined
}
