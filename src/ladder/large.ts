import type * as Decision from "../Decision.ts"
import * as Cut from "./cut.ts"
import type { Draft } from "./draft.ts"
import * as People from "./people.ts"

/** What costs more than `over` of the budget keeps about `keep` of it, dearest first; never the last human message. */
export function* truncate(
  draft: Draft,
  options: { readonly over: number; readonly keep: number }
): Generator<Decision.Truncate | Decision.Excerpt> {
  const tokens = Math.floor(draft.limit * options.keep)
  const settings = { ...draft.settings, budgetTokens: tokens, budgetByTool: {} }
  const lastHuman = draft.items.findLast((item) => item?.entry?.human === true)?.seq
  const large = draft.items.filter((item) => item !== undefined && item.price > draft.limit * options.over)
  for (const item of large.sort((a, b) => b!.price - a!.price)) {
    const entry = item?.entry
    if (entry === undefined || entry.pinned) continue
    if (entry.kind === "result") {
      const cut = Cut.of(settings, draft.transcript, entry, draft.locate)
      if (cut !== undefined) yield { _tag: "Truncate", seq: entry.seq, at: draft.at, ...cut }
    } else if (People.isPaste(entry) && entry.seq !== lastHuman) {
      // Four characters a token, half of them from each end.
      yield People.ends(draft, entry, tokens * 2)
    }
  }
}
