import type * as Decision from "../Decision.ts"
import type * as Settings from "../Settings.ts"
import * as View from "../View.ts"
import * as Reasoning from "../wire/reasoning.ts"

/**
 * Drops signed reasoning from the first item on that is not the one that stood there before, unless `signedReasoning` is
 * `"keep"`. What a provider signed it checks: reasoning whose signature covers a prefix that is not the one sent any more may
 * be refused. It goes whole, at the boundary that changed its prefix; it is never edited.
 *
 * What stands before the first change stays, byte for byte, and so does what comes after the boundary. One entry keeps its
 * reasoning all the same: the newest that carries any since the last human message. A tool turn in progress needs it:
 * Anthropic refuses a request without it ("a final `assistant` message must start with a thinking block"). Where a
 * provider knows the items that follow reasoning by id, these references go too: they are refused without it.
 */
export const strip = (before: View.View, after: View.View, settings: Settings.Settings): View.View => {
  if (after === before || settings.signedReasoning === "keep") return after
  const { items, transcript } = after
  let at = 0
  // Items are made once, so what did not change is the same object.
  while (at < items.length && items[at] === before.items[at]) at++
  const needed = Reasoning.neededBy(transcript)
  const decisions: Array<Decision.Trim> = []
  for (; at < items.length; at++) {
    const { entry, message } = items[at]!
    if (entry === undefined || entry.pinned || entry.seq === needed || !Reasoning.isSigned(message)) continue
    decisions.push({ _tag: "Trim", seq: entry.seq, at: after.length, reasoning: true, inputs: false })
  }
  return decisions.length === 0 ? after : View.make(transcript, [...after.decisions, ...decisions])
}
