/**
 * What the model sees: the entries of a transcript after the decisions are applied, repaired, with their running price.
 *
 * A view is a pure function of transcript and decisions. It is repaired before it is priced, because the view that is
 * priced is the view that is sent:
 *
 * - system entries go first, in their order;
 * - a result whose call is not in the view is dropped, and of several results of one call the last stands;
 * - results stand directly after the entry that makes the calls, in call order; what stood between moves behind them;
 * - a call that was abandoned gets a synthetic result, which has a price but no seq.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Decision from "./Decision.ts"
import * as Alter from "./ladder/alter.ts"
import * as Transcript from "./Transcript.ts"
import * as Pairing from "./wire/pairing.ts"
import * as WireSend from "./wire/send.ts"

/**
 * @category models
 * @since 0.1.0
 */
export type Item = Transcript.Item

/**
 * A view of the first `length` entries of a transcript.
 *
 * **Details**
 *
 * - `decisions`: those recorded before, oldest first, then those of the pass that made this view.
 * - `items`: in the order in which they are sent.
 * - `price`: the sum of the prices of the items, in tokens, exactly.
 *
 * @category models
 * @since 0.1.0
 */
export interface View {
  readonly transcript: Transcript.Transcript
  readonly length: number
  readonly decisions: ReadonlyArray<Decision.Decision>
  readonly items: ReadonlyArray<Item>
  readonly price: number
}

/** The synthetic results that were made, by the entry that makes the call, then by call and by what became of it. */
const synthetic = new WeakMap<Transcript.Entry, Map<string, Item>>()

const syntheticOf = (
  transcript: Transcript.Transcript,
  entry: Transcript.Entry,
  index: number,
  status: "abandoned" | "running"
): Item => {
  let known = synthetic.get(entry)
  if (known === undefined) synthetic.set(entry, known = new Map())
  const made = known.get(`${status}${index}`)
  if (made !== undefined) return made
  const part = status === "abandoned"
    ? WireSend.abandonedResult(entry.calls, index)
    : WireSend.runningResult(entry.calls, index)
  const message = Prompt.makeMessage("tool", { content: [part] })
  const price = transcript.priceOf(message)
  const item: Item = {
    seq: -1,
    entry: undefined,
    group: entry.seq,
    message,
    price,
    state: "synthetic",
    alterations: Transcript.unaltered
  }
  known.set(`${status}${index}`, item)
  return item
}

/**
 * Lays out the conversation entries from `from` on, under the decisions of the index, in the order in which they are
 * sent. `from` is the seq of an entry of the assistant or of a human: everything that is sent before such an entry also
 * came before it, but for late results. With `running`, calls that are running have a synthetic result too, as they must
 * have when they are sent.
 *
 * @internal
 */
export const layout = (
  transcript: Transcript.Transcript,
  index: Decision.Index,
  from: number,
  to: number,
  out: Array<Item>,
  running = false
): void => {
  const { entries, items, pairing } = transcript
  const place = (seq: number): void => {
    if (index.removed.has(seq)) return
    const alterations = index.altered.get(seq)
    out.push(alterations === undefined ? items[seq]! : Alter.item(transcript, entries[seq]!, alterations))
  }
  for (let seq = from; seq < to; seq++) {
    const entry = entries[seq]!
    const checkpoint = index.slots.get(seq)
    if (checkpoint !== undefined && !index.removed.has(checkpoint)) out.push(items[checkpoint]!)
    // A checkpoint stands in its slot and nowhere else; one that was never absorbed into the view is not in it.
    if (entry.origin === "library") continue
    // Results and approval responses stand with their group; one without a group is an orphan and is dropped.
    if (entry.role === "system" || entry.kind !== "message") continue
    if (entry.calls.length === 0) {
      place(seq)
      continue
    }
    if (index.removed.has(seq)) continue
    place(seq)
    for (const response of transcript.responses.get(seq) ?? noSeqs) if (response < to) place(response)
    for (let call = 0; call < entry.calls.length; call++) {
      const ref = { seq, index: call }
      const result = Pairing.resultOf(pairing, ref)
      if (result >= 0 && result < to && !index.removed.has(result)) {
        place(result)
        continue
      }
      const status = Transcript.statusOf(transcript, ref)
      // A stage may have removed a result alone; its call cannot stay without one.
      if (status === "abandoned" || status === "settled") out.push(syntheticOf(transcript, entry, call, "abandoned"))
      else if (status === "running" && running) out.push(syntheticOf(transcript, entry, call, "running"))
    }
  }
}

const noSeqs: ReadonlyArray<number> = []

/** @internal */
export const priceOf = (items: ReadonlyArray<Item>): number => {
  let price = 0
  for (const item of items) price += item.price
  return price
}

/**
 * Makes the view of a transcript under some decisions.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  transcript: Transcript.Transcript,
  decisions: ReadonlyArray<Decision.Decision> = []
): View => {
  const length = transcript.entries.length
  const items = transcript.items.filter((item) => item.entry?.role === "system")
  layout(transcript, Decision.index(decisions), 0, length, items)
  return { transcript, length, decisions, items, price: priceOf(items) }
}

/**
 * Makes the view of a prompt, priced by `priceOf`, with nothing decided.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPrompt = (prompt: Prompt.Prompt, priceOf: Transcript.PriceOf): View =>
  make(Transcript.fromPrompt(prompt, priceOf))

/**
 * The messages of some items. Results that came in one message and still stand together unchanged are sent as that
 * message, the same object; what is left of one, as one message too.
 *
 * @internal
 */
export const render = (items: ReadonlyArray<Item>, out: Array<Prompt.Message>, seqs: Array<number>): void => {
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!
    const carrier = item.entry?.carrier
    seqs.push(item.seq >= 0 ? item.seq : item.group)
    if (carrier === undefined || carrier.role !== "tool" || carrier.content.length === 1) {
      out.push(item.message)
      continue
    }
    let end = at + 1
    while (end < items.length && items[end]!.entry?.carrier === carrier) end++
    out.push(joined(carrier, items, at, end))
    at = end - 1
  }
}

const joined = (
  carrier: Prompt.ToolMessage,
  items: ReadonlyArray<Item>,
  from: number,
  to: number
): Prompt.Message => {
  let whole = to - from === carrier.content.length
  for (let at = from; whole && at < to; at++) {
    whole = items[at]!.state === "kept" && items[at]!.entry!.part === at - from
  }
  if (whole) return carrier
  if (to - from === 1) return items[from]!.message
  const content: Array<Prompt.ToolMessagePart> = []
  for (let at = from; at < to; at++) {
    const message = items[at]!.message
    if (message.role === "tool") content.push(...message.content)
  }
  return Prompt.makeMessage("tool", { content, options: carrier.options })
}

/**
 * The prompt of a view, without what the wire needs beyond the repair.
 *
 * @category converting
 * @since 0.1.0
 */
export const toPrompt = (self: View): Prompt.Prompt => {
  const messages: Array<Prompt.Message> = []
  render(self.items, messages, [])
  return Prompt.fromMessages(messages)
}

/**
 * How many entries the decisions of a view have removed, truncated and stubbed.
 *
 * @category getters
 * @since 0.1.0
 */
export const counts = (self: View): Decision.Counts => Decision.counts(Decision.index(self.decisions))

/**
 * How many conversation entries a view has: all but the system entries; synthetic results are none.
 *
 * @category getters
 * @since 0.1.0
 */
export const conversation = (self: View): number => {
  let count = 0
  for (const { entry } of self.items) if (entry !== undefined && entry.role !== "system") count++
  return count
}

/**
 * The price of the system entries of a view, in tokens.
 *
 * @category getters
 * @since 0.1.0
 */
export const systemPrice = (self: View): number => {
  let price = 0
  for (const item of self.items) if (item.entry?.role === "system") price += item.price
  return price
}

/**
 * What has become of the entry `seq`: it is in the view as it was, in it as something else, covered by a checkpoint, or lost.
 *
 * Every entry of a transcript has exactly one receipt, and the receipts follow from the decisions alone: what has left a
 * view without a record does not exist.
 *
 * **Details**
 *
 * - `Kept`: it is in the view as it was appended. `Altered`: it is there as these decisions made it, oldest first.
 * - `Covered`: the checkpoint that is the entry `checkpoint` stands for it. When that checkpoint was merged into a later
 *   one, it is the later one: the one that is in the view.
 * - `Lost`: it was removed, or the checkpoint that stood for it was; `at` is the length of the transcript then. `needed` is
 *   the probability that a model gave for its being needed still, where one was asked.
 * - `Dropped`: it never was in a view: a result without a call, a result or an approval that a later one replaced.
 * - `Waiting`: it is a checkpoint that is not in the view, because it waits for a boundary or was not taken.
 * - `Unknown`: there is no such entry.
 *
 * @category models
 * @since 0.1.0
 */
export type Receipt =
  | { readonly _tag: "Kept"; readonly seq: number }
  | { readonly _tag: "Altered"; readonly seq: number; readonly decisions: ReadonlyArray<Decision.Alteration> }
  | { readonly _tag: "Covered"; readonly seq: number; readonly checkpoint: number }
  | { readonly _tag: "Lost"; readonly seq: number; readonly at: number; readonly needed?: number }
  | { readonly _tag: "Dropped"; readonly seq: number }
  | { readonly _tag: "Waiting"; readonly seq: number }
  | { readonly _tag: "Unknown"; readonly seq: number }

/**
 * What is asked of a view for each receipt: its entries by seq, what was decided of them, and the decision that took each of
 * the others. An item remembers who first made it so; when it was taken back and decided again, only the decisions tell.
 */
interface Known {
  readonly transcript: Transcript.Transcript
  readonly items: ReadonlyMap<number, Item>
  readonly altered: ReadonlyMap<number, ReadonlyArray<Decision.Alteration>>
  readonly taken: ReadonlyMap<number, Decision.Remove | Decision.Absorb>
}

const knownOf = ({ decisions, items, transcript }: View): Known => {
  const taken = new Map<number, Decision.Remove | Decision.Absorb>()
  for (const decision of decisions) {
    if (decision._tag === "Remove" || decision._tag === "Absorb") {
      for (const seq of decision.seqs) taken.set(seq, decision)
    }
  }
  const { altered } = Decision.index(decisions)
  return { transcript, items: new Map(items.map((item) => [item.seq, item])), altered, taken }
}

/** The call group that an entry was part of when it was taken, so that what came for it later has the same receipt. */
const takenOf = ({ taken, transcript }: Known, seq: number): Decision.Remove | Decision.Absorb | undefined => {
  const entry = transcript.entries[seq]!
  return taken.get(seq) ?? (entry.group >= 0 && entry.supersedes < 0 ? taken.get(entry.group) : undefined)
}

const receiptOf = (known: Known, seq: number): Receipt => {
  const { altered, items, transcript } = known
  const entry = transcript.entries[seq]
  if (entry === undefined) return { _tag: "Unknown", seq }
  if (items.has(seq)) {
    const decisions = altered.get(seq)
    return decisions === undefined ? { _tag: "Kept", seq } : { _tag: "Altered", seq, decisions }
  }
  let decision = takenOf(known, seq)
  if (decision === undefined) return { _tag: entry.origin === "library" ? "Waiting" : "Dropped", seq }
  // A checkpoint is always of a later entry than what it covers, so this ends.
  while (decision._tag === "Absorb" && !items.has(decision.checkpoint)) {
    const next = known.taken.get(decision.checkpoint)
    if (next === undefined) return { _tag: "Lost", seq, at: decision.at }
    decision = next
  }
  if (decision._tag === "Absorb") return { _tag: "Covered", seq, checkpoint: decision.checkpoint }
  const { at, needed } = decision
  return needed === undefined ? { _tag: "Lost", seq, at } : { _tag: "Lost", seq, at, needed }
}

/**
 * What has become of one entry of a view's transcript.
 *
 * @category getters
 * @since 0.1.0
 */
export const receipt = (view: View, seq: number): Receipt => receiptOf(knownOf(view), seq)

/**
 * The receipts of every entry of a view's transcript, by seq.
 *
 * @category getters
 * @since 0.1.0
 */
export const receipts = (view: View): ReadonlyArray<Receipt> => {
  const known = knownOf(view)
  return view.transcript.entries.slice(0, view.length).map((entry) => receiptOf(known, entry.seq))
}
