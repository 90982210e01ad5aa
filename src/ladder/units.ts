import type * as Decision from "../Decision.ts"
import type * as Transcript from "../Transcript.ts"
import * as Alter from "./alter.ts"
import type { Draft } from "./draft.ts"
import * as Instructions from "./instructions.ts"
import * as Protection from "./protection.ts"

/** A stub keeps this many code units; a text no longer than `stubMinimum` is not worth one. */
const stubLength = 50
export const stubMinimum = 80

/** The decision that shortens a person's message: to the rules it states, where these are to stay, else to its beginning. */
export const shortening = (
  draft: Draft,
  entry: Transcript.Entry,
  excerpts: ReadonlyMap<number, string>
): Decision.Stub | Decision.Excerpt => {
  const text = excerpts.get(entry.seq)
  return text === undefined
    ? { _tag: "Stub", seq: entry.seq, at: draft.at, k: stubLength }
    : { _tag: "Excerpt", seq: entry.seq, at: draft.at, text }
}

/** Whole groups and single entries, oldest first, none of whose members is held; humans are no candidates. */
export function* removals(draft: Draft, protection: Protection.Protection): Generator<Decision.Remove> {
  const { items } = draft
  for (let at = 0; at < items.length; at++) {
    const entry = items[at]?.entry
    if (entry === undefined || entry.role === "system" || entry.human) continue
    // A group stands together, its calling entry first.
    let held = protection.held[at] === 1
    const seqs = [entry.seq]
    if (entry.calls.length > 0) {
      while (at + 1 < items.length && items[at + 1]?.group === entry.seq) {
        at++
        const member = items[at]!
        held ||= protection.held[at] === 1
        if (member.seq >= 0) seqs.push(member.seq)
      }
    }
    if (!held) yield { _tag: "Remove", seqs, at: draft.at }
  }
}

function* stubs(draft: Draft, protection: Protection.Protection): Generator<Decision.Stub | Decision.Excerpt> {
  const excerpts = Instructions.excerpts(draft)
  for (let at = 0; at < draft.items.length; at++) {
    const entry = draft.items[at]?.entry
    if (entry === undefined || !entry.human || protection.held[at] === 1 || entry.length <= stubMinimum) continue
    if (entry.seq !== protection.firstHuman && entry.seq !== protection.lastHuman) {
      yield shortening(draft, entry, excerpts)
    }
  }
}

/** Units first, then the words of people, each oldest first. */
export function* removeAndStub(draft: Draft, relax: number): Generator<Decision.Edit> {
  const protection = Protection.make(draft, relax)
  yield* removals(draft, protection)
  yield* stubs(draft, protection)
}

/**
 * The first human message becomes a stub unless it is also the last, then human messages that are stubbed, or too short to
 * be, leave: oldest first and outside the recent ones; never the first, the last, a pinned one, or one whose rules stay.
 */
export function* lastResort(draft: Draft, relax: number): Generator<Decision.Edit> {
  const { firstHuman, lastHuman, recent } = Protection.make(draft, relax)
  const excerpts = Instructions.excerpts(draft)
  const first = firstHuman < 0 ? undefined : draft.transcript.entries[firstHuman]
  if (first !== undefined && firstHuman !== lastHuman && !first.pinned && first.length > stubMinimum) {
    yield shortening(draft, first, excerpts)
  }
  for (let at = 0; at < draft.items.length; at++) {
    const item = draft.items[at]
    const entry = item?.entry
    if (item === undefined || entry === undefined || !entry.human || entry.pinned || recent[at] === 1) continue
    if (entry.seq === firstHuman || entry.seq === lastHuman || excerpts.has(entry.seq)) continue
    const decision = shortening(draft, entry, excerpts)
    const stubbable = Alter.applies(item, decision) && entry.length > stubMinimum
      && Alter.item(draft.transcript, entry, [...item.alterations, decision]).price < item.price
    if (!stubbable) yield { _tag: "Remove", seqs: [entry.seq], at: draft.at }
  }
}
