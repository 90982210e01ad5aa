/**
 * Where an entry has gone: in the view as it was, in it as something else, covered by a checkpoint, or lost.
 *
 * Every entry of a transcript has exactly one receipt, and the receipts follow from the decisions alone: what has left a
 * view without a record does not exist.
 *
 * @since 0.1.0
 */
import * as Decision from "./Decision.ts"
import type * as Transcript from "./Transcript.ts"
import type * as View from "./View.ts"

/**
 * What has become of the entry `seq`.
 *
 * **Details**
 *
 * - `Kept`: it is in the view as it was appended. `Altered`: it is there as these decisions made it, oldest first.
 * - `Covered`: the checkpoint that is the entry `checkpoint` stands for it. When that checkpoint was merged into a later
 *   one, it is the later one: the one that is in the view.
 * - `Lost`: it was removed, or the checkpoint that stood for it was; `at` is the length of the transcript then.
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
  | { readonly _tag: "Lost"; readonly seq: number; readonly at: number }
  | { readonly _tag: "Dropped"; readonly seq: number }
  | { readonly _tag: "Waiting"; readonly seq: number }
  | { readonly _tag: "Unknown"; readonly seq: number }

/**
 * What is asked of a view for each receipt: its entries by seq, what was decided of them, and the decision that took each of
 * the others. An item remembers who first made it so; when it was taken back and decided again, only the decisions tell.
 */
interface Known {
  readonly transcript: Transcript.Transcript
  readonly items: ReadonlyMap<number, View.Item>
  readonly altered: ReadonlyMap<number, ReadonlyArray<Decision.Alteration>>
  readonly taken: ReadonlyMap<number, Decision.Remove | Decision.Absorb>
}

const knownOf = ({ decisions, items, transcript }: View.View): Known => {
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
  return decision._tag === "Absorb"
    ? { _tag: "Covered", seq, checkpoint: decision.checkpoint }
    : { _tag: "Lost", seq, at: decision.at }
}

/**
 * What has become of one entry of a view's transcript.
 *
 * @category getters
 * @since 0.1.0
 */
export const of = (view: View.View, seq: number): Receipt => receiptOf(knownOf(view), seq)

/**
 * The receipts of every entry of a view's transcript, by seq.
 *
 * @category getters
 * @since 0.1.0
 */
export const all = (view: View.View): ReadonlyArray<Receipt> => {
  const known = knownOf(view)
  return view.transcript.entries.slice(0, view.length).map((entry) => receiptOf(known, entry.seq))
}
