import type * as Decision from "../Decision.ts"
import * as Standing from "../text/standing.ts"
import * as Text from "../text/text.ts"
import * as Transcript from "../Transcript.ts"
import * as Alter from "./alter.ts"
import type { Draft } from "./draft.ts"
import * as Instructions from "./instructions.ts"
import * as Protection from "./protection.ts"
import * as Units from "./units.ts"

/** Both ends of a pasted message, so many code units each; never less than where its own words may stand. */
export const ends = (draft: Draft, entry: Transcript.Entry, chars = 0): Decision.Excerpt => ({
  _tag: "Excerpt",
  seq: entry.seq,
  at: draft.at,
  text: Text.excerptOfEnds(Transcript.textOf(entry), Math.max(chars, Standing.endChars))
})

export const isPaste = (entry: Transcript.Entry): boolean => entry.human && entry.length > Standing.pasteChars

/** What is at work: so many entries at the end. */
const recentEntries = 12

type Person = readonly [at: number, entry: Transcript.Entry]

/** The words of people that may be given up, oldest first, but the first of all messages last. */
const candidates = (draft: Draft): ReadonlyArray<Person> => {
  const { firstHuman, lastHuman } = Protection.make(draft, 0)
  const people: Array<Person> = []
  const first: Array<Person> = []
  draft.items.forEach((item, at) => {
    const entry = item?.entry
    if (entry?.human !== true || entry.pinned || entry.seq === lastHuman) return
    if (entry.seq === firstHuman) first.push([at, entry])
    else people.push([at, entry])
  })
  return [...people, ...first]
}

/** What is given up of what people typed, first to last: long messages are shortened, then shortened and short ones leave. */
function* givenUp(
  draft: Draft,
  people: ReadonlyArray<Person>
): Generator<readonly [at: number, decision: Decision.Edit]> {
  const { firstHuman, recent } = Protection.make(draft, 0, { entries: recentEntries, checkpoints: true })
  const excerpts = Instructions.excerpts(draft)
  for (const [at, entry] of people) {
    if (recent[at] !== 1 && entry.length > Units.stubMinimum) yield [at, Units.shortening(draft, entry, excerpts)]
  }
  for (const [at, entry] of people) {
    if (recent[at] === 1 || entry.seq === firstHuman || excerpts.has(entry.seq)) continue
    yield [at, { _tag: "Remove", seqs: [entry.seq], at: draft.at }]
  }
}

/** What an item costs once a decision is made about it. */
const priceAfter = (draft: Draft, item: Transcript.Item, decision: Decision.Edit): number =>
  item.entry === undefined || decision._tag === "Remove"
    ? 0
    : Alter.applies(item, decision)
    ? Alter.item(draft.transcript, item.entry, [...item.alterations, decision]).price
    : item.price

/**
 * Pasted material first, then what people typed, down to `share` of the budget, and only while the view is above the share
 * `above` of it.
 */
export function* shorten(
  draft: Draft,
  options: { readonly share: number; readonly above: number }
): Generator<Decision.Edit> {
  const least = draft.limit * options.above
  const people = candidates(draft)
  for (const [, entry] of people) if (draft.price > least && isPaste(entry)) yield ends(draft, entry)
  const floor = draft.limit * options.share
  let price = draft.items.reduce((sum, item) => item?.entry?.human === true ? sum + item.price : sum, 0)
  for (const [at, decision] of givenUp(draft, people)) {
    const item = draft.items[at]
    if (item === undefined) continue
    // Of what is theirs the newest stays: a smaller one behind the first that is too large is newer.
    if (draft.price <= least || price - item.price + priceAfter(draft, item, decision) < floor) return
    yield decision
    price += (draft.items[at]?.price ?? 0) - item.price
  }
}
