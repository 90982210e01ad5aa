/**
 * What a truncated tool result looks like, and how much of it is kept.
 *
 * For test runs, searches, logs and builds the answer stands in the last lines: a head alone loses it, the same number
 * of characters split between both ends keeps it. Characters before lines, always: a result may be two lines of ten
 * megabytes each.
 *
 * @since 0.1.0
 */
import * as Alter from "./internal/alter.ts"
import * as Text from "./internal/text.ts"
import type * as Settings from "./Settings.ts"
import type * as Transcript from "./Transcript.ts"

/**
 * How a text is cut: `k` is the number of characters kept (UTF-16 code units), `locator` the place of the full text.
 *
 * @category models
 * @since 0.1.0
 */
export type Cut = Text.Cut

/**
 * The text of a truncated result: a notice with the size of the whole in tokens, then the head, or both ends around a
 * line that says how many characters are missing. No cut splits a surrogate pair.
 *
 * @category running
 * @since 0.1.0
 */
export const truncate: (text: string, cut: Cut) => string = Text.truncated

/**
 * How a result is to be cut, or `undefined` when it is left alone: its tool is exempt, or it is short enough.
 *
 * **Details**
 *
 * The budget is the one of its tool (`budgetByTool`), else `budgetTokens`, else `truncateChars`. A budget in tokens is
 * four characters a token at most: it is cut once, in proportion, when the estimator prices the kept text above it.
 *
 * @category running
 * @since 0.1.0
 */
export const cutOf = (
  settings: Settings.Settings,
  transcript: Transcript.Transcript,
  entry: Transcript.Entry
): Cut | undefined => {
  if (settings.exemptTools.includes(entry.tool)) return undefined
  const budgets = settings.budgetByTool
  const tokens = Object.hasOwn(budgets, entry.tool) ? budgets[entry.tool] : settings.budgetTokens
  let k = tokens === undefined ? settings.truncateChars : tokens * 4
  if (entry.length <= k) return undefined
  if (tokens !== undefined) {
    const price = Alter.priceOfKept(transcript, entry, k)
    if (price > tokens) k = Math.floor((k * tokens) / price)
  }
  return { k, shape: settings.shape }
}
