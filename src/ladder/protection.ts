import * as Transcript from "../Transcript.ts"
import type { Draft } from "./draft.ts"

/**
 * What may not be removed or stubbed, computed once at the start of a rung from the draft as it then is. Seqs and
 * positions stay valid through the rung.
 */
export interface Protection {
  /** By position: whether the item is recent, one of the last results, in an open group, or pinned. */
  readonly held: Uint8Array
  /** By position: whether the item is among the recent ones. */
  readonly recent: Uint8Array
  /** The seqs of the first and the last human, −1 when there is none. */
  readonly firstHuman: number
  readonly lastHuman: number
}

/** What is held beside what the settings protect: so many entries at the end, and checkpoints whatever is relaxed. */
interface Also {
  readonly entries: number
  readonly checkpoints: boolean
}

/** What of a draft decides what is protected. */
type Protected = Pick<Draft, "items" | "settings" | "transcript">

/** How far from the end of the conversation a result may stand to be one of the last ones: 8 entries for each of them. */
const reach = 8

/** The positions of the last results: the newest N of the view's results that stand near the end of the conversation. */
export const lastResults = (draft: Protected): ReadonlyArray<number> => {
  const count = draft.settings.protectedToolResults
  const positions: Array<number> = []
  if (count <= 0) return positions
  const nearest = draft.transcript.conversation - reach * count
  for (let at = draft.items.length - 1; at >= 0 && positions.length < count; at--) {
    const entry = draft.items[at]?.entry
    if (entry?.kind === "result" && entry.ordinal >= nearest) positions.push(at)
  }
  return positions
}

/** The index from which on conversation entries are recent. The tolerance makes 0.9 of ten entries nine. */
const edgeOf = (length: number, fraction: number): number => length - Math.ceil(length * fraction - 1e-9)

/** Computes the protection with the recent share relaxed to `relax` of what the settings say. */
export const make = (draft: Protected, relax: number, also?: Also): Protection => {
  const { items, settings, transcript } = draft
  const held = new Uint8Array(items.length)
  const recent = new Uint8Array(items.length)
  let length = 0
  let firstHuman = -1
  let lastHuman = -1
  for (const item of items) {
    const entry = item?.entry
    if (entry === undefined || entry.role === "system") continue
    length++
    if (!entry.human) continue
    if (firstHuman < 0) firstHuman = entry.seq
    lastHuman = entry.seq
  }
  const edge = Math.min(edgeOf(length, settings.protectedRecent * relax), length - (also?.entries ?? 0))
  let index = 0
  for (let at = 0; at < items.length; at++) {
    const entry = items[at]?.entry
    if (entry === undefined || entry.role === "system") continue
    if (index++ >= edge) {
      recent[at] = 1
      held[at] = 1
    }
    // A checkpoint stands for much more than it costs: it goes only when nothing else can.
    if (entry.origin === "library" && (relax > 0 || also?.checkpoints === true)) held[at] = 1
    if (entry.pinned || (entry.calls.length > 0 && Transcript.isOpen(transcript, entry.seq))) held[at] = 1
  }
  for (const at of lastResults(draft)) held[at] = 1
  return { held, recent, firstHuman, lastHuman }
}
