import type * as Settings from "../Settings.ts"
import * as SpillStore from "../SpillStore.ts"
import type * as Text from "../text/text.ts"
import type * as Transcript from "../Transcript.ts"
import * as Alter from "./alter.ts"

const nowhere: SpillStore.Locate = SpillStore.locateIn(SpillStore.none)

/** How a result is to be cut, or `undefined` when it is left alone: its tool is exempt, or it is short enough. */
export const of = (
  settings: Settings.Settings,
  transcript: Transcript.Transcript,
  entry: Transcript.Entry,
  locate: SpillStore.Locate = nowhere
): Text.Cut | undefined => {
  if (settings.exemptTools.includes(entry.tool)) return undefined
  const budgets = settings.budgetByTool
  const tokens = Object.hasOwn(budgets, entry.tool) ? budgets[entry.tool] : settings.budgetTokens
  let k = tokens === undefined ? settings.truncateChars : tokens * 4
  if (entry.length <= k) return undefined
  if (tokens !== undefined) {
    const price = Alter.priceOfKept(transcript, entry, k)
    if (price > tokens) k = Math.floor((k * tokens) / price)
  }
  const locator = locate(entry)
  return locator === undefined ? { k, shape: settings.shape } : { k, shape: settings.shape, locator }
}
