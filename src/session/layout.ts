import type * as Prompt from "effect/ai/Prompt"
import * as Decision from "../Decision.ts"
import * as Alter from "../ladder/alter.ts"
import type * as Session from "../Session.ts"
import * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import type * as Wire from "../Wire.ts"
import * as Names from "../wire/names.ts"
import * as Pairing from "../wire/pairing.ts"
import * as Payload from "../wire/payload.ts"
import * as WireSend from "../wire/send.ts"
import * as Abridge from "./abridge.ts"
import * as Growing from "./growing.ts"

/**
 * The view of a session, laid out as far as it cannot change any more: what a request costs is what came since the last one.
 *
 * It is a cache. It follows from a state and may be thrown away at any time. What is sent before the *anchor*, the last entry
 * of the assistant or of a human at the previous request, is final: it was laid out, priced and rendered then. Only what came
 * since is laid out again. Two things reach behind the anchor: a result that comes late, and a boundary; both make the layout
 * start from nothing.
 */
export interface Layout {
  readonly rules: Wire.Rules
  readonly abridged: Session.State["abridged"]
  /** The messages and decisions that were taken in, by the arrays they lie in. */
  source: ReadonlyArray<Session.Message>
  decided: Growing.Growing<Decision.Decision>
  readonly transcript: Transcript.Transcript
  readonly index: Decision.Index
  /** How many entries were looked at; the last entry of the assistant or of a human among them; the group of the last. */
  taken: number
  actor: number
  follows: number
  anchor: number
  readonly systems: Array<View.Item>
  systemPrice: number
  head: ReadonlyArray<Prompt.Message>
  /** The final messages, the seq of the first entry of each, and the price of their items. */
  messages: Array<Prompt.Message>
  seqs: Array<number>
  /** The ids under which their calls are sent. */
  names: Names.Names
  price: number
  entries: number
  /** What the first `weighed` of the final messages carry. */
  payload: Payload.Payload
  weighed: number
  /** The items from the anchor on. */
  region: ReadonlyArray<View.Item>
  regionPrice: number
  /** Another object when what was final is no longer. */
  epoch: object
}

const over = (
  state: Pick<Session.State, "abridged" | "decisions" | "messages">,
  transcript: Transcript.Transcript,
  rules: Wire.Rules
): Layout => ({
  rules,
  abridged: state.abridged,
  source: state.messages.all,
  decided: state.decisions,
  transcript,
  index: Decision.index(Growing.toArray(state.decisions)),
  taken: 0,
  actor: -1,
  follows: -1,
  anchor: 0,
  systems: [],
  systemPrice: 0,
  head: [],
  messages: [],
  seqs: [],
  names: Names.make(rules.ids),
  price: 0,
  entries: 0,
  payload: Payload.nothing,
  weighed: 0,
  region: [],
  regionPrice: 0,
  epoch: {}
})

/** The layout of a state from nothing. */
export const make = (
  state: Pick<Session.State, "abridged" | "decisions" | "messages">,
  priceOf: Transcript.PriceOf,
  rules: Wire.Rules
): Layout => over(state, Abridge.transcriptOf(state.abridged, Growing.toArray(state.messages), priceOf), rules)

/** How many messages of the transcript a snapshot left out before those of the state. */
const skippedBy = (abridged: Session.State["abridged"]): number =>
  abridged === null ? 0 : abridged.runs.reduce((sum, run) => sum + run.messages, 0)

/** How many messages of a state the transcript of a layout holds. */
const heldBy = (self: Layout): number => self.transcript.messages.length - skippedBy(self.abridged)

/** How many of the messages of a state a layout holds, the same ones. */
const commonWith = (self: Layout, messages: Session.State["messages"]): number => {
  const held = heldBy(self)
  const most = Math.min(held, messages.length)
  if (self.source === messages.all) return most
  const offset = self.transcript.messages.length - held
  let at = 0
  while (at < most && self.transcript.messages[offset + at] === messages.all[at]!.message) at++
  return at
}

/**
 * The layout of a state, made from the layout of another one. What both have in common is not looked at again; no entry is
 * priced twice.
 */
export const follow = (
  self: Layout | undefined,
  state: Session.State,
  priceOf: Transcript.PriceOf,
  rules: Wire.Rules
): Layout => {
  if (self === undefined || self.rules !== rules || self.abridged !== state.abridged) {
    return make(state, priceOf, rules)
  }
  const common = commonWith(self, state.messages)
  if (common < heldBy(self)) {
    if (state.abridged !== null) return make(state, priceOf, rules)
    const cut = Transcript.take(self.transcript, common)
    for (const each of Growing.after(state.messages, common)) {
      Transcript.appendAs(cut, each.message, each.origin, self.transcript)
    }
    return over(state, cut, rules)
  }
  self.source = state.messages.all
  for (let at = common; at < state.messages.length; at++) {
    const { message, origin } = state.messages.all[at]!
    Transcript.append(self.transcript, message, origin)
  }
  const known = Growing.common(self.decided, state.decisions)
  if (known < self.decided.length) return over(state, self.transcript, rules)
  if (state.decisions.length > known) {
    const added = Growing.after(state.decisions, known)
    Decision.addTo(self.index, added)
    forget(self.transcript, added)
    if (added.some((decision) => reaches(decision, self.taken))) restart(self)
  }
  self.decided = state.decisions
  return self
}

/** Whether a decision is about an entry that was laid out. */
const reaches = (decision: Decision.Decision, taken: number): boolean =>
  "seqs" in decision ? decision.seqs.some((seq) => seq < taken) : decision.seq < taken

/** What was tried on the way to a boundary is of no use for entries that left the view. */
const forget = ({ entries }: Transcript.Transcript, added: ReadonlyArray<Decision.Decision>): void => {
  for (const decision of added) {
    if (decision._tag === "Remove") { for (const seq of decision.seqs) Alter.forget(entries[seq]!) }
  }
}

/** Forgets what was final. */
const restart = (self: Layout): void => {
  self.anchor = 0
  // New ones: a request that was laid out before holds the old ones.
  self.messages = []
  self.seqs = []
  self.names = Names.make(self.rules.ids)
  self.price = 0
  self.entries = 0
  self.payload = Payload.nothing
  self.weighed = 0
  self.epoch = {}
  layRegion(self)
}

/** What the repair made of the entries that came since, by seq. */
export interface Repairs {
  readonly orphans: Array<number>
  readonly duplicates: Array<number>
  readonly synthetic: Array<number>
  readonly moved: Array<number>
  readonly opaque: Array<number>
}

export const hasRepairs = ({ duplicates, moved, opaque, orphans, synthetic }: Repairs): boolean =>
  orphans.length + duplicates.length + synthetic.length + moved.length + opaque.length > 0

/** Notes what the repair does because of an entry: an orphan, a second result, a call given up, a result out of place. */
const note = (self: Layout, entry: Transcript.Entry, repairs: Repairs | undefined): void => {
  if (repairs !== undefined && WireSend.leavesOut(entry.message, self.rules)) repairs.opaque.push(entry.seq)
  if (entry.kind === "result" && repairs !== undefined) {
    if (entry.answers === undefined) repairs.orphans.push(entry.seq)
    else if (entry.supersedes >= 0) repairs.duplicates.push(entry.supersedes)
    else if (self.follows !== entry.group) repairs.moved.push(entry.seq)
  }
  if (entry.role === "assistant" || entry.human) {
    const { actor, transcript } = self
    if (
      repairs !== undefined && actor >= 0 && !Pairing.isSettled(transcript.pairing, actor)
      && isGivenUp(self, actor, entry.seq)
    ) repairs.synthetic.push(actor)
    self.actor = entry.seq
  }
  if (entry.role !== "system") self.follows = entry.group
}

/** Whether a call of the entry had no result when `next` came, and waits for no approval. */
const isGivenUp = (self: Layout, actor: number, next: number): boolean =>
  self.transcript.entries[actor]!.calls.some((call, index) => {
    const result = Pairing.resultOf(self.transcript.pairing, { seq: actor, index })
    return !call.approval && (result < 0 || result > next)
  })

/**
 * Lays out what was appended since, and returns what the repair made of the entries from `since` on.
 */
export const update = (self: Layout, since: number): Repairs => {
  const { entries, items } = self.transcript
  const repairs: Repairs = { orphans: [], duplicates: [], synthetic: [], moved: [], opaque: [] }
  if (self.taken > since) noteAgain(self, since, repairs)
  let isLate = false
  let hasSystem = false
  for (; self.taken < entries.length; self.taken++) {
    const entry = entries[self.taken]!
    // What a snapshot left out has the origin of the library too.
    if (entry.origin === "library") continue
    note(self, entry, self.taken >= since ? repairs : undefined)
    if (entry.role === "system") {
      self.systems.push(items[entry.seq]!)
      self.systemPrice += entry.price
      hasSystem = true
    } else if (entry.kind !== "message" && entry.group >= 0 && entry.group < self.anchor) {
      isLate ||= !self.index.removed.has(entry.group)
    }
  }
  if (hasSystem) setHead(self)
  if (isLate) restart(self)
  else layRegion(self)
  return repairs
}

/** Tells once more of entries that were laid out without a request: what was said of them then was heard by nobody. */
const noteAgain = (self: Layout, since: number, repairs: Repairs): void => {
  const { entries } = self.transcript
  const before = { actor: self.actor, follows: self.follows }
  self.actor = -1
  self.follows = -1
  for (let seq = since - 1, found = false; seq >= 0 && !found; seq--) {
    const entry = entries[seq]!
    if (entry.origin === "library") continue
    if (self.follows === -1 && entry.role !== "system") self.follows = entry.group
    found = entry.role === "assistant" || entry.human
    if (found) self.actor = seq
  }
  for (let seq = since; seq < self.taken; seq++) {
    if (entries[seq]!.origin !== "library") note(self, entries[seq]!, repairs)
  }
  self.actor = before.actor
  self.follows = before.follows
}

const setHead = (self: Layout): void => {
  const systems: Array<Prompt.SystemMessage> = []
  for (const item of self.systems) if (item.message.role === "system") systems.push(item.message)
  self.head = WireSend.mergeSystem(systems, self.rules)
  self.epoch = {}
}

const layRegion = (self: Layout): void => {
  const region: Array<View.Item> = []
  View.layout(self.transcript, self.index, self.anchor, self.taken, region)
  self.region = region
  self.regionPrice = View.priceOf(region)
}

/** The price of the view, in tokens. */
export const priceOf = (self: Layout): number => self.systemPrice + self.price + self.regionPrice

const entriesOf = (items: ReadonlyArray<View.Item>): number => {
  let count = 0
  for (const item of items) if (item.seq >= 0) count++
  return count
}

/** How many conversation entries the view has. */
export const conversationOf = (self: Layout): number => self.entries + entriesOf(self.region)

/** What the view comes to, by price in tokens: its system entries, its checkpoints, and all the rest. */
export const held = (
  self: Layout
): { readonly system: number; readonly messages: number; readonly checkpoints: number } => {
  const { index, transcript: { items } } = self
  let checkpoints = 0
  for (const seq of index.slots.values()) if (!index.removed.has(seq)) checkpoints += items[seq]!.price
  return { system: self.systemPrice, messages: self.price + self.regionPrice - checkpoints, checkpoints }
}

/** The view, whose items and decisions nobody needs below the trigger: each is made when it is first read. */
export const lazyView = (self: Layout): View.View => {
  const { decided, transcript } = self
  let decisions: View.View["decisions"] | undefined
  let made: View.View | undefined
  return {
    transcript,
    length: transcript.entries.length,
    price: priceOf(self),
    get decisions() {
      return decisions ??= Growing.toArray(decided)
    },
    get items() {
      return (made ??= View.make(transcript, this.decisions)).items
    }
  }
}

/** The view as it stands now: its transcript grows with the session. */
export const viewOf = ({ decided, transcript }: Layout): View.View => View.make(transcript, Growing.toArray(decided))

/** The view as a value of its own, for whoever keeps it. */
export const copyOf = ({ decided, transcript }: Layout): View.View =>
  View.make(Transcript.take(transcript, transcript.messages.length), Growing.toArray(decided))

/** The newest human message as it stands in the view, and whether nothing stands behind it. */
export const lastHumanOf = (
  self: Layout
): { readonly lastHuman: View.Item | undefined; readonly isLast: boolean } => {
  const { entries, lastHuman: seq } = self.transcript
  if (seq < 0 || self.index.removed.has(seq)) return { lastHuman: undefined, isLast: false }
  const alterations = self.index.altered.get(seq)
  const lastHuman = alterations === undefined
    ? self.transcript.items[seq]!
    : Alter.item(self.transcript, entries[seq]!, alterations)
  // A runtime context behind it says nothing that would take the human message out of sight.
  const last = self.region.findLast((item) => item.entry?.origin !== "runtime")
  return { lastHuman, isLast: last?.seq === seq }
}
