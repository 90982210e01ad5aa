import * as Prompt from "effect/ai/Prompt"
import type * as Decision from "../Decision.ts"
import * as Alter from "../ladder/alter.ts"
import * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import * as Wire from "../Wire.ts"
import * as Names from "../wire/names.ts"
import * as Pairing from "../wire/pairing.ts"
import * as Payload from "../wire/payload.ts"
import { sameMessage } from "../wire/sameMessage.ts"
import * as WireSend from "../wire/send.ts"

/**
 * The view of a session that grows: what a request costs is what came since the last one.
 *
 * What is sent before the *anchor*, the last entry of the assistant or of a human at the previous request, is final: it
 * was laid out, priced and rendered then. Only what came since the anchor is laid out again. Two things reach behind it:
 * a result that comes late, and a boundary; both make the view start from nothing again.
 */
export interface Live {
  readonly transcript: Transcript.Transcript
  readonly rules: Wire.Rules
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
  readonly messages: Array<Prompt.Message>
  readonly seqs: Array<number>
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
  /**
   * The last prompt that was sent, how many system messages it has, whether it was opened for the wire, and how many
   * messages of it are final.
   */
  sent: ReadonlyArray<Prompt.Message>
  sentHead: number
  opened: boolean
  sure: number
  /** The seq of the first entry of each message that was sent, and how many entries there were then. */
  sentSeqOf: (at: number) => number
  sentEntries: number
  /** How far the entries beyond those that were looked at are priced, and what they come to, for what people are told. */
  priced: number
  aheadPrice: number
  aheadSystem: number
}

export const make = (transcript: Transcript.Transcript, rules: Wire.Rules, index: Decision.Index): Live => ({
  transcript,
  rules,
  index,
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
  sent: [],
  sentHead: 0,
  opened: false,
  sure: 0,
  sentSeqOf: () => -1,
  sentEntries: 0,
  priced: 0,
  aheadPrice: 0,
  aheadSystem: 0
})

/** Forgets what was final; the last prompt is kept, to be compared with the next one. */
const restart = (self: Live): void => {
  self.anchor = 0
  self.messages.length = 0
  self.seqs.length = 0
  self.names = Names.make(self.rules.ids)
  self.price = 0
  self.entries = 0
  self.payload = Payload.nothing
  self.weighed = 0
  self.sure = 0
}

/** What the repair made of the entries that came since, by seq. */
export interface Repairs {
  readonly orphans: Array<number>
  readonly duplicates: Array<number>
  readonly synthetic: Array<number>
  readonly moved: Array<number>
}

/** Notes what the repair does because of an entry: an orphan, a second result, a call given up, a result out of place. */
const note = (self: Live, entry: Transcript.Entry, repairs: Repairs): void => {
  if (entry.kind === "result") {
    if (entry.answers === undefined) repairs.orphans.push(entry.seq)
    else if (entry.supersedes >= 0) repairs.duplicates.push(entry.supersedes)
    else if (self.follows !== entry.group) repairs.moved.push(entry.seq)
  }
  if (entry.role === "assistant" || entry.human) {
    const { actor, transcript } = self
    if (actor >= 0 && !Pairing.isSettled(transcript.pairing, actor) && isGivenUp(self, actor, entry.seq)) {
      repairs.synthetic.push(actor)
    }
    self.actor = entry.seq
  }
  if (entry.role !== "system") self.follows = entry.group
}

/** Whether a call of the entry had no result when `next` came, and waits for no approval. */
const isGivenUp = (self: Live, actor: number, next: number): boolean =>
  self.transcript.entries[actor]!.calls.some((call, index) => {
    const result = Pairing.resultOf(self.transcript.pairing, { seq: actor, index })
    return !call.approval && (result < 0 || result > next)
  })

/** Takes in what was appended since, and returns what the repair made of it. */
export const update = (self: Live): Repairs => {
  const { entries, items } = self.transcript
  const repairs: Repairs = { orphans: [], duplicates: [], synthetic: [], moved: [] }
  let isLate = false
  let hasSystem = false
  for (; self.taken < entries.length; self.taken++) {
    const entry = entries[self.taken]!
    if (entry.origin === "library") continue
    note(self, entry, repairs)
    if (entry.role === "system") {
      self.systems.push(items[entry.seq]!)
      self.systemPrice += entry.price
      hasSystem = true
    } else if (entry.kind !== "message" && entry.group >= 0 && entry.group < self.anchor) {
      isLate ||= !self.index.removed.has(entry.group)
    }
  }
  if (isLate) restart(self)
  if (hasSystem) setHead(self)
  layRegion(self)
  self.priced = self.taken
  self.aheadPrice = 0
  self.aheadSystem = 0
  return repairs
}

/** Takes the figures of a log for what a view that was not laid out yet comes to. */
export const presume = (self: Live, price: number, system: number): void => {
  self.priced = self.transcript.entries.length
  self.aheadPrice = price
  self.aheadSystem = system
}

/**
 * What the view comes to, by price in tokens: its system entries, its checkpoints, and all the rest. What came since it was
 * laid out counts as it came; where nothing was laid out yet, the view is, once.
 */
export const held = (
  self: Live
): { readonly system: number; readonly messages: number; readonly checkpoints: number } => {
  const { entries, items } = self.transcript
  if (self.taken === 0 && self.priced === 0) {
    const laid: Array<View.Item> = []
    View.layout(self.transcript, self.index, 0, entries.length, laid)
    self.aheadPrice = View.priceOf(laid)
    for (const { price, role } of entries) if (role === "system") self.aheadSystem += price
    self.priced = entries.length
  }
  for (; self.priced < entries.length; self.priced++) {
    const { origin, price, role } = entries[self.priced]!
    if (role === "system") self.aheadSystem += price
    else if (origin !== "library") self.aheadPrice += price
  }
  let checkpoints = 0
  for (const seq of self.index.slots.values()) if (!self.index.removed.has(seq)) checkpoints += items[seq]!.price
  const conversation = self.price + self.regionPrice + self.aheadPrice
  return { system: self.systemPrice + self.aheadSystem, messages: conversation - checkpoints, checkpoints }
}

const setHead = (self: Live): void => {
  const systems: Array<Prompt.SystemMessage> = []
  for (const item of self.systems) if (item.message.role === "system") systems.push(item.message)
  self.head = WireSend.mergeSystem(systems, self.rules)
  self.sure = 0
}

const layRegion = (self: Live): void => {
  const region: Array<View.Item> = []
  View.layout(self.transcript, self.index, self.anchor, self.taken, region)
  self.region = region
  self.regionPrice = View.priceOf(region)
}

/** The price of the view, in tokens. */
export const priceOf = (self: Live): number => self.systemPrice + self.price + self.regionPrice

const entriesOf = (items: ReadonlyArray<View.Item>): number => {
  let count = 0
  for (const item of items) if (item.seq >= 0) count++
  return count
}

/** How many conversation entries the view has. */
export const conversationOf = (self: Live): number => self.entries + entriesOf(self.region)

/** Starts from nothing after a boundary; the decisions are in the index already. */
export const rebuild = (self: Live): void => {
  restart(self)
  layRegion(self)
}

/** The messages of a request, and what the wire needs beyond the view. */
export interface Sending {
  readonly messages: ReadonlyArray<Prompt.Message>
  /** The seq of the first entry of each message; −1 for one that was added for the wire. */
  readonly seqOf: (at: number) => number
  /** The price of what was added for the wire, in tokens. */
  readonly added: number
  /** How many messages at the front are final. */
  readonly final: number
  readonly opened: boolean
  /** Whether a call that the provider runs is still open at the end: a user message behind it would pass it by. */
  readonly isPaused: boolean
}

const renderInto = (
  self: Live,
  items: ReadonlyArray<View.Item>,
  names: Names.Names,
  messages: Array<Prompt.Message>,
  seqs: Array<number>
): void => {
  const rendered: Array<Prompt.Message> = []
  const renderedSeqs: Array<number> = []
  View.render(items, rendered, renderedSeqs)
  for (let at = 0; at < rendered.length; at++) {
    const message = WireSend.fixMessage(rendered[at]!, self.rules)
    if (message === undefined) continue
    messages.push(Names.name(names, message))
    seqs.push(renderedSeqs[at]!)
  }
}

/** The seq of the entry at whose place an item is laid out: a checkpoint stands where its span began, not at its own. */
const placeOf = ({ index }: Live, item: View.Item): number =>
  item.group >= 0 ? item.group : index.placed.get(item.seq) ?? item.seq

/** The first item of the region that does not become final now: that of the new anchor. */
const splitAt = (self: Live, anchor: number): number => {
  const at = self.region.findIndex((item) => placeOf(self, item) >= anchor)
  return at < 0 ? self.region.length : at
}

/** Makes final what came before the last entry of the assistant or of a human. */
const settle = (self: Live): void => {
  const anchor = Math.max(self.anchor, self.transcript.lastActor)
  const split = splitAt(self, anchor)
  const final = self.region.slice(0, split)
  const price = View.priceOf(final)
  renderInto(self, final, self.names, self.messages, self.seqs)
  self.price += price
  self.entries += entriesOf(final)
  self.anchor = anchor
  self.region = self.region.slice(split)
  self.regionPrice -= price
}

/** Lays out the messages of the next request as the wire needs them. */
export const prepare = (self: Live): Sending => {
  settle(self)
  const { head, rules, seqs, systems, transcript } = self
  const region = withRunning(self)
  const tail: Array<Prompt.Message> = []
  const tailSeqs: Array<number> = []
  renderInto(self, region, Names.after(self.names), tail, tailSeqs)
  const running = View.priceOf(region) - self.regionPrice
  const first = self.messages[0] ?? tail[0]
  const isOpenable = rules.first === "user" ? first?.role !== "user" : first === undefined && head.length === 0
  const opened = isOpenable && transcript.entries.length > 0 && !transcript.isLoose
  const opening = opened ? [WireSend.firstUser()] : []
  const front = head.length + opening.length
  const sending: Sending = {
    messages: head.concat(opening, self.messages, tail),
    seqOf: (at) => {
      if (at < head.length) return systems[Math.min(at, systems.length - 1)]!.seq
      return at < front ? -1 : seqs[at - front] ?? tailSeqs[at - front - seqs.length] ?? -1
    },
    added: running + priceOfOpening(self, opened),
    final: front + self.messages.length,
    opened,
    isPaused: false
  }
  return transcript.isLoose ? paired(self, sending, running) : sending
}

const priceOfOpening = (self: Live, opened: boolean): number =>
  opened ? self.transcript.priceOf(WireSend.firstUser()) : 0

/**
 * What is sent of a session with loose parts. Whether such a part may be sent depends on messages before and behind it,
 * so the whole prompt is paired at every request; a session that a framework wrote has none.
 */
const paired = (self: Live, sending: Sending, running: number): Sending => {
  const { content } = Wire.repair(Prompt.fromMessages(sending.messages), self.rules)
  const opened = content.includes(WireSend.firstUser())
  return {
    messages: content,
    seqOf: (at) => {
      const before = sending.messages.indexOf(content[at]!)
      return before < 0 ? -1 : sending.seqOf(before)
    },
    added: running + priceOfOpening(self, opened),
    final: 0,
    opened,
    isPaused: isPaused(content)
  }
}

/** What a request carries. Each message is weighed once: what was final before is in the running total. */
export const payloadOf = (self: Live, sending: Sending): Payload.Payload => {
  const front = sending.final - self.messages.length
  self.payload = Payload.add(self.payload, Payload.sum(self.messages.slice(self.weighed)))
  self.weighed = self.messages.length
  const rest = Payload.sum([...sending.messages.slice(0, front), ...sending.messages.slice(sending.final)])
  return Payload.add(self.payload, rest)
}

const isPaused = (messages: ReadonlyArray<Prompt.Message>): boolean => {
  const open = new Set<string>()
  for (let at = messages.findLastIndex((message) => message.role === "user") + 1; at < messages.length; at++) {
    const message = messages[at]!
    if (message.role !== "assistant") continue
    for (const part of message.content) {
      if (part.type === "tool-call" && part.providerExecuted) open.add(part.id)
      else if (part.type === "tool-result") open.delete(part.id)
    }
  }
  return open.size > 0
}

/** The region with a synthetic result for each call that is still running: no provider accepts a call left open. */
const withRunning = (self: Live): ReadonlyArray<View.Item> => {
  const { lastActor } = self.transcript
  if (lastActor < 0 || !Transcript.isOpen(self.transcript, lastActor)) return self.region
  const region: Array<View.Item> = []
  View.layout(self.transcript, self.index, self.anchor, self.taken, region, true)
  return region
}

/** Where a prompt stops extending the one before, and whether nothing but its system messages changed. */
export interface Change {
  readonly seq: number
  readonly isSystem: boolean
}

/** Records a prompt as sent, and tells where the one before is not a prefix of it. */
export const send = (self: Live, sending: Sending): Change | undefined => {
  const { sent, sentHead } = self
  const { messages } = sending
  const head = self.head.length
  let at = sending.opened === self.opened ? Math.min(self.sure, sending.final) : 0
  while (at < sent.length && at < messages.length && sameMessage(sent[at]!, messages[at]!)) at++
  self.sent = messages
  self.sentHead = head
  self.opened = sending.opened
  self.sure = sending.final
  self.sentSeqOf = sending.seqOf
  self.sentEntries = self.taken
  if (at === sent.length) return undefined
  // A system entry changes only what stands before the conversation; when that changed too, there was a repair as well.
  const isSystem = at < Math.max(head, sentHead)
    && sent.slice(sentHead).every((message, index) =>
      head + index < messages.length && sameMessage(message, messages[head + index]!)
    )
  return { seq: at < messages.length ? sending.seqOf(at) : -1, isSystem }
}

/** Goes on with a transcript and an index that say the same of the view, and more beside it. */
export const over = (self: Live, transcript: Transcript.Transcript, index: Decision.Index): Live => ({
  ...self,
  transcript,
  index
})

/** Takes over what was sent last, so that a view made anew is compared with it. */
export const inherit = (self: Live, from: Live): void => {
  self.sent = from.sent
  self.sentHead = from.sentHead
}

/** What was sent last, to be put back when what is sent next comes to nothing. */
export type Sent = Pick<Live, "sent" | "sentHead" | "opened" | "sentSeqOf" | "sentEntries">

export const sentOf = ({ opened, sent, sentEntries, sentHead, sentSeqOf }: Live): Sent => ({
  opened,
  sent,
  sentEntries,
  sentHead,
  sentSeqOf
})

/** Puts back what was sent before; how far the next view is the same is found out anew. */
export const putBack = (self: Live, sent: Sent): void => {
  Object.assign(self, sent)
  self.sure = 0
}

/** The newest human message as it stands in the view, and whether nothing stands behind it. */
export const lastHumanOf = (
  self: Live
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

/**
 * The messages that were sent last, up to the last one that holds an entry of a span; nothing when they are not those that
 * the view holds now.
 */
export const sentUpTo = (self: Live, span: ReadonlySet<number>): ReadonlyArray<Prompt.Message> | undefined => {
  let end = self.sent.length
  while (end > 0 && !span.has(self.sentSeqOf(end - 1))) end--
  const prefix = self.sent.slice(0, end)
  const { messages } = prepare(self)
  const isHeld = prefix.every((message, at) => at < messages.length && sameMessage(message, messages[at]!))
  return end > 0 && isHeld ? prefix : undefined
}
