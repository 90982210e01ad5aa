import * as Prompt from "effect/ai/Prompt"
import * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import * as Wire from "../Wire.ts"
import * as Names from "../wire/names.ts"
import * as Payload from "../wire/payload.ts"
import * as WireSend from "../wire/send.ts"
import type * as Layout from "./layout.ts"

/** The messages of a request, and what the wire needs beyond the view. */
export interface Sending {
  readonly messages: ReadonlyArray<Prompt.Message>
  /** The seq of the first entry of each message; −1 for one that was added for the wire. */
  readonly seqOf: (at: number) => number
  /** The price of what was added for the wire, in tokens. */
  readonly added: number
  /** How many messages at the front are final, and of these how many come before the conversation. */
  readonly final: number
  readonly head: number
  readonly opened: boolean
  /** Whether a call that the provider runs is still open at the end: a user message behind it would pass it by. */
  readonly isPaused: boolean
  /** The epoch of the layout: within one, what is final stays the same. */
  readonly epoch: object
}

const renderInto = (
  { rules }: Layout.Layout,
  items: ReadonlyArray<View.Item>,
  names: Names.Names,
  messages: Array<Prompt.Message>,
  seqs: Array<number>
): void => {
  const rendered: Array<Prompt.Message> = []
  const renderedSeqs: Array<number> = []
  View.render(items, rendered, renderedSeqs)
  for (let at = 0; at < rendered.length; at++) {
    const message = WireSend.fixMessage(rendered[at]!, rules)
    if (message === undefined) continue
    messages.push(Names.name(names, message))
    seqs.push(renderedSeqs[at]!)
  }
}

/** The seq of the entry at whose place an item is laid out: a checkpoint stands where its span began, not at its own. */
const placeOf = ({ index }: Layout.Layout, item: View.Item): number =>
  item.group >= 0 ? item.group : index.placed.get(item.seq) ?? item.seq

/** The first item of the region that does not become final now: that of the new anchor. */
const splitAt = (self: Layout.Layout, anchor: number): number => {
  const at = self.region.findIndex((item) => placeOf(self, item) >= anchor)
  return at < 0 ? self.region.length : at
}

/** Makes final what came before the last entry of the assistant or of a human. */
const settle = (self: Layout.Layout): void => {
  const anchor = Math.max(self.anchor, self.transcript.lastActor)
  const split = splitAt(self, anchor)
  const final = self.region.slice(0, split)
  const price = View.priceOf(final)
  renderInto(self, final, self.names, self.messages, self.seqs)
  self.price += price
  for (const item of final) if (item.seq >= 0) self.entries++
  self.anchor = anchor
  self.region = self.region.slice(split)
  self.regionPrice -= price
}

/**
 * Lays out the messages of the next request as the wire needs them. The copy of them is made when it is first read: a view
 * that is only measured needs none.
 */
export const prepare = (self: Layout.Layout): Sending => {
  settle(self)
  const { epoch, head, messages, seqs, systems, transcript } = self
  const region = withRunning(self)
  const tail: Array<Prompt.Message> = []
  const tailSeqs: Array<number> = []
  renderInto(self, region, Names.after(self.names), tail, tailSeqs)
  const running = View.priceOf(region) - self.regionPrice
  const opened = opens(self, messages[0] ?? tail[0])
  const opening = opened ? [WireSend.firstUser()] : []
  const front = head.length + opening.length
  const final = messages.length
  let whole: ReadonlyArray<Prompt.Message> | undefined
  const sending: Sending = {
    get messages() {
      return whole ??= head.concat(opening, messages.length === final ? messages : messages.slice(0, final), tail)
    },
    seqOf: (at) => {
      if (at < head.length) return systems[Math.min(at, systems.length - 1)]!.seq
      return at < front ? -1 : (at < front + final ? seqs[at - front] : tailSeqs[at - front - final]) ?? -1
    },
    added: running + priceOfOpening(self, opened),
    final: front + final,
    head: head.length,
    opened,
    isPaused: false,
    epoch
  }
  return transcript.isLoose ? paired(self, sending, running) : sending
}

/** Whether a conversation that begins with this message is sent behind one of a user. */
const opens = ({ head, rules, transcript }: Layout.Layout, first: Prompt.Message | undefined): boolean => {
  const isOpenable = rules.first === "user" ? first?.role !== "user" : first === undefined && head.length === 0
  return isOpenable && transcript.entries.length > 0 && !transcript.isLoose
}

/** The first message of the conversation as the wire needs it. */
const firstOf = ({ messages, region, rules }: Layout.Layout): Prompt.Message | undefined => {
  if (messages.length > 0) return messages[0]
  for (const { message } of region) {
    const fixed = WireSend.fixMessage(message, rules)
    if (fixed !== undefined) return fixed
  }
  return undefined
}

/** A view that was measured: what the wire adds to its price, in tokens, and what would be sent, made when it is asked for. */
export interface Measured {
  readonly added: number
  readonly sending: () => Sending
}

/** Measures what would be sent. A boundary changes most of a long view, so nothing is rendered that nobody asks for. */
export const measure = (self: Layout.Layout): Measured => {
  let made: Sending | undefined
  const sending = () => made ??= prepare(self)
  if (self.transcript.isLoose) return { added: sending().added, sending }
  const running = View.priceOf(withRunning(self)) - self.regionPrice
  return { added: running + priceOfOpening(self, opens(self, firstOf(self))), sending }
}

const priceOfOpening = (self: Layout.Layout, opened: boolean): number =>
  opened ? self.transcript.priceOf(WireSend.firstUser()) : 0

/**
 * What is sent of a session with loose parts. Whether such a part may be sent depends on messages before and behind it,
 * so the whole prompt is paired at every request; a session that a framework wrote has none.
 */
const paired = (self: Layout.Layout, sending: Sending, running: number): Sending => {
  // Ids are given to what is sent: a call that the repair drops takes none.
  const given = sending.messages.map(Names.originalOf)
  const { content } = Wire.repair(Prompt.fromMessages(given), self.rules)
  const opened = content.includes(WireSend.firstUser())
  return {
    ...sending,
    messages: content,
    seqOf: (at) => {
      const before = given.indexOf(Names.originalOf(content[at]!))
      return before < 0 ? -1 : sending.seqOf(before)
    },
    added: running + priceOfOpening(self, opened),
    final: 0,
    opened,
    isPaused: isPaused(content)
  }
}

/** What a request carries. Each message is weighed once: what was final before is in the running total. */
export const payloadOf = (self: Layout.Layout, sending: Sending): Payload.Payload => {
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
const withRunning = (self: Layout.Layout): ReadonlyArray<View.Item> => {
  const { lastActor } = self.transcript
  if (lastActor < 0 || !Transcript.isOpen(self.transcript, lastActor)) return self.region
  const region: Array<View.Item> = []
  View.layout(self.transcript, self.index, self.anchor, self.taken, region, true)
  return region
}
