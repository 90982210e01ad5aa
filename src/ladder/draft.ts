import type * as Decision from "../Decision.ts"
import type * as Settings from "../Settings.ts"
import type * as SpillStore from "../SpillStore.ts"
import type * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import * as Alter from "./alter.ts"

/**
 * A view that is being changed: what rungs read, and what only the interpreter writes to.
 *
 * `items` keeps its length through a pass: an item that was removed leaves `undefined`, so positions stay valid.
 */
export interface Draft {
  readonly transcript: Transcript.Transcript
  readonly settings: Settings.Settings
  /** The budget, in prices: what shares of it are taken of. */
  readonly limit: number
  /** Where the full text of a result will lie, for a decision that shortens it. */
  readonly locate: SpillStore.Locate
  /** The length of the transcript: what decisions taken now carry as `at`. */
  readonly at: number
  readonly items: ReadonlyArray<View.Item | undefined>
  readonly price: number
  /** How many conversation entries are left. */
  readonly entries: number
}

/** What a pass comes down to: a price in tokens, and a number of conversation entries. */
export interface Aim {
  readonly price: number
  readonly entries: number
}

/** One edit of a pass: the rung it came from, whether all edits of that rung are made or none, and what the view is after it. */
interface Edit extends Aim {
  readonly level: number
  readonly isPartOfWhole: boolean
  readonly decision: Decision.Decision
}

export interface Writable extends Draft {
  readonly base: View.View
  readonly items: Array<View.Item | undefined>
  readonly positions: Int32Array
  readonly edits: Array<Edit>
  price: number
  entries: number
}

const positionsOf = (view: View.View): Int32Array => {
  const positions = new Int32Array(view.length).fill(-1)
  view.items.forEach((item, at) => {
    if (item.seq >= 0) positions[item.seq] = at
  })
  return positions
}

export const make = (view: View.View, given: Pick<Draft, "settings" | "limit" | "locate">): Writable => ({
  transcript: view.transcript,
  settings: given.settings,
  limit: given.limit,
  locate: given.locate,
  at: view.length,
  base: view,
  items: view.items.slice(),
  positions: positionsOf(view),
  edits: [],
  price: view.price,
  entries: View.conversation(view)
})

/** Whether a draft, or an edit of one, is where it should come to. */
export const reaches = (self: Aim, aim: Aim): boolean => self.price <= aim.price && self.entries <= aim.entries

/** Applies a candidate; one that does not lower the price of its entry, or whose entry is not there, changes nothing. */
export const apply = (self: Writable, level: number, decision: Decision.Edit, isPartOfWhole = false): void => {
  if (decision._tag === "Remove") {
    const whole = wholeUnits(self, decision)
    if (whole.seqs.length === 0) return
    for (const seq of whole.seqs) remove(self, seq)
    self.edits.push({ level, isPartOfWhole, decision: whole, price: self.price, entries: self.entries })
    return
  } else {
    const position = self.positions[decision.seq] ?? -1
    const item = self.items[position]
    if (item === undefined || item.entry === undefined || !Alter.applies(item, decision)) return
    const altered = Alter.item(self.transcript, item.entry, [...item.alterations, decision])
    if (altered.price >= item.price) return
    self.items[position] = altered
    self.price += altered.price - item.price
  }
  self.edits.push({ level, isPartOfWhole, decision, price: self.price, entries: self.entries })
}

/**
 * The removal of whole units: a proposer that names one member of a group means the group, because neither a call nor a
 * result may stand alone. What is not there (any more) is left out.
 */
const wholeUnits = (self: Writable, decision: Decision.Remove): Decision.Remove => {
  const seqs = new Set<number>()
  for (const seq of decision.seqs) {
    const position = self.positions[seq] ?? -1
    const item = self.items[position]
    // System entries are always sent, so no view leaves them out.
    if (item === undefined || item.entry?.role === "system") continue
    seqs.add(seq)
    if (item.group < 0) continue
    for (let at = self.positions[item.group] ?? position; self.items[at]?.group === item.group; at++) {
      const member = self.items[at]!.seq
      if (member >= 0) seqs.add(member)
    }
  }
  return { ...decision, seqs: [...seqs] }
}

const remove = (self: Writable, seq: number): void => {
  const position = self.positions[seq] ?? -1
  const item = self.items[position]
  if (item === undefined) return
  self.items[position] = undefined
  self.price -= item.price
  self.entries--
  if (item.group !== seq) return
  // A synthetic result has no seq of its own: it goes with the entry that made the call.
  for (let at = position + 1; at < self.items.length; at++) {
    const member = self.items[at]
    if (member === undefined) continue
    if (member.group !== seq) break
    if (member.state !== "synthetic") continue
    self.items[at] = undefined
    self.price -= member.price
  }
}

/** The view after the first `count` edits. */
export const toView = (self: Writable, count: number): View.View => {
  if (count === 0) return self.base
  const decisions = [...self.base.decisions]
  for (let at = 0; at < count; at++) decisions.push(self.edits[at]!.decision)
  if (count < self.edits.length) return View.make(self.transcript, decisions)
  const items = self.items.filter((item) => item !== undefined)
  return { transcript: self.transcript, length: self.at, decisions, items, price: self.price }
}

/** The level of the first `count` edits: the rung of the last of them. */
export const levelOf = (self: Writable, count: number): number => count === 0 ? 0 : self.edits[count - 1]!.level

/** The levels of the first `count` edits, each once. */
export const levelsOf = (self: Writable, count: number): ReadonlyArray<number> =>
  Array.from(new Set(self.edits.slice(0, count).map(({ level }) => level)))

/** How many edits it takes to come down to a price: all of them when it is never reached. */
export const editsTo = (self: Writable, price: number): number => {
  if (self.base.price <= price) return 0
  const reached = self.edits.findIndex((edit) => edit.price <= price)
  if (reached < 0) return self.edits.length
  const { isPartOfWhole, level } = self.edits[reached]!
  let count = reached + 1
  if (isPartOfWhole) { while (self.edits[count]?.level === level) count++ }
  return count
}
