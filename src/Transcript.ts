/**
 * The whole conversation: entries with a permanent number, in the order in which they came.
 *
 * An entry is one message, or one part of a tool message: of a tool message with several results each result is an entry
 * of its own. What the ladder needs to know about an entry (role, length, calls, marks, price) is read from its message
 * once, when it is appended, and kept beside it. Which result answers which call is settled then too.
 *
 * **Gotchas**
 *
 * A `Transcript` has one writer: {@link append} adds to it in place. Entries are never changed, renumbered or dropped,
 * so whatever holds a seq may keep it.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import type * as Decision from "./Decision.ts"
import * as Marks from "./Marks.ts"
import * as Text from "./text/text.ts"
import * as Blank from "./wire/blank.ts"
import * as Pairing from "./wire/pairing.ts"
import * as Traits from "./wire/traits.ts"

/**
 * A call of an assistant entry. `approval` tells that the entry asks for an approval of it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly id: string
  readonly name: string
  readonly approval: boolean
}

/**
 * Who put an entry here: the caller, or this library: a checkpoint, which stands where a decision puts it, or a runtime
 * context, which stands where it came.
 *
 * @category models
 * @since 0.1.0
 */
export type Origin = "caller" | "library" | "runtime"

/**
 * One entry.
 *
 * **Details**
 *
 * - `seq`: its permanent number, from 0. `ordinal`: the same count without system entries.
 * - `message`: the entry alone, as it would be sent. `carrier`: the message it came in, the same object when that holds
 *   nothing else; `part`: its place in the carrier.
 * - `price`: what the estimator says it costs, in tokens. `length`: of its text, in UTF-16 code units.
 * - `group`: the seq of the calling entry whose group it belongs to (its own, when it makes calls), else −1.
 * - `answers`: the call that a result belongs to; absent for orphans and for everything else. `supersedes`: the seq of
 *   the result of that call that it replaces, else −1.
 * - `tool`: the name of the tool of a result, its own if it has one, else the name in its call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  readonly seq: number
  readonly ordinal: number
  readonly role: Prompt.Message["role"]
  readonly kind: "message" | "result" | "approval"
  readonly message: Prompt.Message
  readonly carrier: Prompt.Message
  readonly part: number
  readonly origin: Origin
  readonly price: number
  readonly length: number
  readonly calls: ReadonlyArray<Call>
  readonly group: number
  readonly answers: Pairing.CallRef | undefined
  readonly supersedes: number
  readonly tool: string
  readonly human: boolean
  readonly pinned: boolean
}

/**
 * An entry as it stands in a view, or a synthetic result, which has no seq (−1) and no entry.
 *
 * **Details**
 *
 * `state` is what it became last, `alterations` are the decisions that made it so, oldest first.
 *
 * @category models
 * @since 0.1.0
 */
export interface Item {
  readonly seq: number
  readonly entry: Entry | undefined
  readonly group: number
  readonly message: Prompt.Message
  readonly price: number
  readonly state:
    | "kept"
    | "truncated"
    | "stubbed"
    | "pruned"
    | "capped"
    | "cleared"
    | "trimmed"
    | "placeholder"
    | "synthetic"
  readonly alterations: ReadonlyArray<Decision.Alteration>
}

/**
 * The price of a message, in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface PriceOf {
  (message: Prompt.Message): number
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Transcript {
  readonly priceOf: PriceOf
  readonly pairing: Pairing.Pairing
  /** The messages as they were appended, and who appended each of them. */
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly origins: ReadonlyArray<Origin>
  readonly entries: ReadonlyArray<Entry>
  /** Each entry as it stands in a view that changes nothing, by seq. */
  readonly items: ReadonlyArray<Item>
  /** The seqs of the approval responses of a group, by the seq of its calling entry; of one approval the last. */
  readonly responses: ReadonlyMap<number, ReadonlyArray<number>>
  /** How many entries are not system entries. */
  readonly conversation: number
  /** The seq of the last entry of the assistant or of a human, and of the last of a human; −1 when there is none. */
  readonly lastActor: number
  readonly lastHuman: number
  /** The seq of the newest runtime context; −1 when there is none. */
  readonly lastRuntime: number
  /**
   * Whether an entry of the assistant holds a part that belongs to another message or to nothing: a call that the
   * provider ran without its result beside it, such a result without its call, an approval request without its call.
   */
  readonly isLoose: boolean
  /** How many entries were left out by {@link skip}; what stands in their place belongs to no view. */
  readonly skipped: number
}

/** The same transcript, as its one writer sees it. */
interface Writable extends Transcript {
  readonly messages: Array<Prompt.Message>
  readonly origins: Array<Origin>
  readonly entries: Array<Entry>
  readonly items: Array<Item>
  /** The entry that asked for an approval, by approval id. */
  readonly approvals: Map<string, number>
  readonly responses: Map<number, ReadonlyArray<number>>
  conversation: number
  lastActor: number
  lastHuman: number
  lastRuntime: number
  isLoose: boolean
  skipped: number
}

/**
 * Makes an empty transcript whose entries are priced by `priceOf`, each exactly once.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (priceOf: PriceOf): Transcript => {
  const self: Writable = {
    priceOf,
    pairing: Pairing.make(),
    messages: [],
    origins: [],
    entries: [],
    items: [],
    approvals: new Map(),
    responses: new Map(),
    conversation: 0,
    lastActor: -1,
    lastHuman: -1,
    lastRuntime: -1,
    isLoose: false,
    skipped: 0
  }
  return self
}

/**
 * Makes a transcript of the messages of a prompt.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPrompt = (prompt: Prompt.Prompt, priceOf: PriceOf): Transcript => {
  const self = make(priceOf)
  for (const message of prompt.content) append(self, message)
  return self
}

const noCalls: ReadonlyArray<Call> = []

/** @internal */
export const unaltered: ReadonlyArray<Decision.Alteration> = []

type Made = Pick<
  Entry,
  "role" | "kind" | "message" | "carrier" | "part" | "origin" | "calls" | "group" | "answers" | "supersedes" | "tool"
>

const isSame = (known: Entry, made: Made, ordinal: number): boolean =>
  known.carrier === made.carrier
  && known.ordinal === ordinal
  && known.origin === made.origin
  && known.group === made.group
  && known.supersedes === made.supersedes
  && known.answers?.seq === made.answers?.seq
  && known.answers?.index === made.answers?.index

const add = (self: Writable, input: Made, known: Entry | undefined): void => {
  const seq = self.entries.length
  const { message, role } = input
  // An entry depends on its message and on what it belongs to: where both are the same it is the same entry.
  const entry: Entry = known !== undefined && isSame(known, input, self.conversation) ? known : {
    seq,
    ordinal: self.conversation,
    role,
    kind: input.kind,
    message,
    carrier: input.carrier,
    part: input.part,
    origin: input.origin,
    price: self.priceOf(message),
    length: Text.ofMessage(message).length,
    calls: input.calls,
    group: input.group,
    answers: input.answers,
    supersedes: input.supersedes,
    tool: input.tool,
    human: message.role === "user" && Traits.isHuman(message),
    pinned: Traits.isPinned(message)
  }
  self.entries.push(entry)
  const { group, price } = entry
  self.items.push({ seq, entry, group, message: entry.message, price, state: "kept", alterations: unaltered })
  if (role !== "system") self.conversation++
  if (role === "assistant" || entry.human) self.lastActor = seq
  if (entry.human) self.lastHuman = seq
  if (input.origin === "runtime") self.lastRuntime = seq
}

/**
 * Appends a message as one entry, or a tool message as one entry for each of its parts.
 *
 * @category combining
 * @since 0.1.0
 */
export const append = (self: Transcript, message: Prompt.Message, origin: Origin = "caller"): void =>
  // Every transcript is made here, as a `Writable`; the type that callers see is its read-only face.
  appendPriced(self as Writable, message, origin, [])

/**
 * The first messages of a transcript as a transcript of its own; no entry is priced again.
 *
 * @category combining
 * @since 0.1.0
 */
export const take = (self: Transcript, messages: number): Transcript => {
  // See `append`.
  const taken = make(self.priceOf) as Writable
  for (let at = 0; at < messages; at++) {
    appendPriced(taken, self.messages[at]!, self.origins[at]!, self.entries)
  }
  return taken
}

/** Appends a message as another transcript has it at this place, if it has; then nothing is priced again. @internal */
export const appendAs = (self: Transcript, message: Prompt.Message, origin: Origin, that: Transcript): void =>
  // See `append`.
  appendPriced(self as Writable, message, origin, that.entries)

/**
 * How many entries a message makes: one, or one for each part of a tool message.
 *
 * @category getters
 * @since 0.1.0
 */
export const entriesOf = (message: Prompt.Message): number => message.role === "tool" ? message.content.length : 1

/**
 * Counts messages that make some entries, none of the system, without holding them: whatever comes later has the seq it
 * would have behind them. For entries that have left the view and that nothing in it belongs to.
 *
 * @category combining
 * @since 0.1.0
 */
export const skip = (self: Transcript, messages: number, entries: number): void => {
  // See `append`.
  const skipping = self as Writable
  for (let at = 0; at < messages; at++) {
    skipping.messages.push(Blank.message)
    skipping.origins.push("library")
  }
  for (let at = 0; at < entries; at++) {
    skipping.entries.push(Blank.entry)
    skipping.items.push(Blank.item)
  }
  skipping.conversation += entries
  skipping.skipped += entries
}

/** The responses of a group without those to one approval: a later one replaces them, two would run the tool twice. */
const others = (self: Writable, group: number, approvalId: string): ReadonlyArray<number> =>
  (self.responses.get(group) ?? []).filter((seq) => {
    const message = self.entries[seq]!.message
    return message.role !== "tool"
      || !message.content.some((part) => part.type === "tool-approval-response" && part.approvalId === approvalId)
  })

/** Appends a message; an entry that is among `known`, by seq, is taken from there and not priced again. */
const appendPriced = (
  self: Writable,
  message: Prompt.Message,
  origin: Origin,
  known: ReadonlyArray<Entry>
): void => {
  self.messages.push(message)
  self.origins.push(origin)
  const role = message.role
  if (role === "tool") {
    const parts = message.content
    for (let part = 0; part < parts.length; part++) {
      const content = parts[part]!
      const seq = self.entries.length
      let group = -1
      let answers: Pairing.CallRef | undefined
      let supersedes = -1
      let tool = ""
      if (content.type === "tool-result") {
        const settled = Pairing.settle(self.pairing, seq, content.id, Marks.of(content).call)
        answers = settled?.call
        supersedes = settled?.before ?? -1
        group = answers?.seq ?? -1
        const call = answers === undefined ? undefined : self.entries[answers.seq]!.calls[answers.index]
        tool = content.name === "" ? call?.name ?? "" : content.name
      } else {
        group = self.approvals.get(content.approvalId) ?? -1
        if (group >= 0) self.responses.set(group, [...others(self, group, content.approvalId), seq])
      }
      add(self, {
        role,
        kind: content.type === "tool-result" ? "result" : "approval",
        message: parts.length === 1
          ? message
          : Prompt.makeMessage("tool", { content: [content], options: message.options }),
        carrier: message,
        part,
        origin,
        calls: noCalls,
        group,
        answers,
        supersedes,
        tool
      }, known[seq])
    }
    return
  }
  const seq = self.entries.length
  const calls = role === "assistant" ? Traits.callsOf(message) : noCalls
  if (calls.length > 0) {
    Pairing.addCalls(self.pairing, seq, calls.map((call) => call.id))
    for (const part of message.content) {
      if (typeof part !== "string" && part.type === "tool-approval-request") self.approvals.set(part.approvalId, seq)
    }
  }
  if (role === "assistant") self.isLoose ||= Traits.hasLoosePart(message)
  add(self, {
    role,
    kind: "message",
    message,
    carrier: message,
    part: 0,
    origin,
    calls,
    group: calls.length > 0 ? seq : -1,
    answers: undefined,
    supersedes: -1,
    tool: ""
  }, known[seq])
}

/**
 * What has become of a call.
 *
 * **Details**
 *
 * - `settled`: it has its result.
 * - `awaiting`: it has none, and an approval was asked for it; such a call is never given up.
 * - `running`: it has none, and neither the assistant nor a human has said anything since.
 * - `abandoned`: it has none, and the conversation has gone on. Removing what passed it by changes nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type CallStatus = "settled" | "awaiting" | "running" | "abandoned"

/**
 * Tells what has become of a call of this transcript.
 *
 * @category getters
 * @since 0.1.0
 */
export const statusOf = (self: Transcript, ref: Pairing.CallRef): CallStatus => {
  if (Pairing.resultOf(self.pairing, ref) >= 0) return "settled"
  if (self.entries[ref.seq]?.calls[ref.index]?.approval === true) return "awaiting"
  return self.lastActor > ref.seq ? "abandoned" : "running"
}

/**
 * Tells whether a group has a call that is running or awaits an approval; such a group is never removed.
 *
 * @category getters
 * @since 0.1.0
 */
export const isOpen = (self: Transcript, group: number): boolean => {
  if (Pairing.isSettled(self.pairing, group)) return false
  const calls = self.entries[group]?.calls ?? noCalls
  for (let index = 0; index < calls.length; index++) {
    const status = statusOf(self, { seq: group, index })
    if (status === "running" || status === "awaiting") return true
  }
  return false
}

/**
 * The text of an entry: of its text parts, or of its result. Calls and reasoning are not text.
 *
 * @category getters
 * @since 0.1.0
 */
export const textOf = (entry: Entry): string => Text.ofMessage(entry.message)
