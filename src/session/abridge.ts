import type * as Prompt from "effect/ai/Prompt"
import * as Decision from "../Decision.ts"
import type * as SessionLog from "../SessionLog.ts"
import * as Transcript from "../Transcript.ts"
import * as Pairing from "../wire/pairing.ts"
import * as Reasoning from "../wire/reasoning.ts"

/**
 * What a session is without the messages that have left its view for good: its next views, and what is decided of them, are
 * the same. Decisions are never taken back but by what drops messages, and that asks for the whole log.
 *
 * What stays: all that is in the view, system entries and the words of people (a summary is judged by them), calls without a
 * result and their groups, and the newest entries of each kind that later ones are measured by.
 */
export const make = (state: SessionLog.State, transcript: Transcript.Transcript): SessionLog.State => {
  // Whether a loose part may be sent depends on messages anywhere before it.
  if (transcript.isLoose) {
    return state.abridged === null
      ? state
      : { ...state, abridged: { ...state.abridged, kept: state.messages.length } }
  }
  const index = Decision.index(state.decisions)
  const stays = staying(state, transcript, index)
  const { messages, runs } = without(state, stays)
  const decisions = state.decisions.flatMap((decision) => about(decision, stays, index))
  const gone = Decision.addCounts(
    Decision.addCounts(state.abridged?.counts ?? Decision.noCounts, Decision.counts(index)),
    Decision.counts(Decision.index(decisions)),
    -1
  )
  return runs.length === 0
    ? state
    : { ...state, messages, decisions, abridged: { runs, kept: messages.length, counts: gone } }
}

/**
 * Whether a message may belong to what was left out of a transcript. All calls that were left out had their results, so one
 * that answers a call of those that wait for theirs does not.
 */
export const reachesBack = (transcript: Transcript.Transcript, message: Prompt.Message): boolean => {
  if (transcript.skipped === 0 || message.role !== "tool") return false
  const answered: Array<string> = []
  return message.content.some((part) => {
    if (part.type !== "tool-result") return true
    answered.push(part.id)
    const calls = transcript.pairing.open.get(part.id) ?? []
    return answered.filter((id) => id === part.id).length > calls.length
  })
}

/** By seq: whether an entry stays. With one entry of a group, or of a message, all the others stay too. */
const staying = (
  { ready }: SessionLog.State,
  transcript: Transcript.Transcript,
  index: Decision.Index
): Uint8Array => {
  const { entries, lastActor, lastHuman, lastRuntime, pairing } = transcript
  const stays = new Uint8Array(entries.length)
  const marked = [lastActor, lastHuman, lastRuntime, Reasoning.neededBy(transcript)]
  for (const seq of [...marked, ...(ready === null ? [] : [ready.checkpoint, ...ready.seqs])]) {
    if (seq >= 0 && seq < entries.length) stays[seq] = 1
  }
  entries.forEach((entry, seq) => {
    if (entry.seq < 0) return
    const isOpen = entry.calls.length > 0 && !Pairing.isSettled(pairing, seq)
    if (isOpen || entry.role === "system" || entry.human || !index.removed.has(seq)) stays[seq] = 1
  })
  for (let isStable = false; !isStable;) {
    isStable = true
    const tie = (a: number, b: number) => {
      if (stays[a] === stays[b]) return
      stays[a] = stays[b] = 1
      isStable = false
    }
    entries.forEach((entry, seq) => {
      if (entry.seq < 0) return
      if (entry.group >= 0) tie(seq, entry.group)
      if (entry.part > 0) tie(seq, seq - 1)
    })
  }
  return stays
}

/** The messages that stay, and how many go between them. */
const without = (
  state: SessionLog.State,
  stays: Uint8Array
): { readonly messages: SessionLog.State["messages"]; readonly runs: ReadonlyArray<SessionLog.Run> } => {
  const messages: SessionLog.State["messages"] = []
  const runs: Array<SessionLog.Run> = []
  const known = state.abridged?.runs ?? []
  let seq = 0
  const drop = (count: number, entries: number) => {
    const last = runs.at(-1)
    if (last?.before === messages.length) {
      runs[runs.length - 1] = { ...last, messages: last.messages + count, entries: last.entries + entries }
    } else runs.push({ before: messages.length, messages: count, entries })
    seq += entries
  }
  let next = 0
  for (let at = 0; at <= state.messages.length; at++) {
    for (; known[next]?.before === at; next++) drop(known[next]!.messages, known[next]!.entries)
    const each = state.messages[at]
    if (each === undefined) break
    const entries = Transcript.entriesOf(each.message)
    if (entries > 0 && stays[seq] === 0) {
      drop(1, entries)
      continue
    }
    messages.push(each)
    seq += entries
  }
  return { messages, runs }
}

/** What a decision still says when only these entries are there. */
const about = (
  decision: Decision.Decision,
  stays: Uint8Array,
  index: Decision.Index
): ReadonlyArray<Decision.Decision> => {
  if (decision._tag !== "Absorb" && decision._tag !== "Remove") return stays[decision.seq] === 1 ? [decision] : []
  const seqs = decision.seqs.filter((seq) => stays[seq] === 1)
  const slot = decision._tag === "Absorb" ? index.placed.get(decision.checkpoint) : undefined
  if (
    decision._tag === "Absorb" && slot !== undefined && index.slots.get(slot) === decision.checkpoint
    && stays[decision.checkpoint] === 1
  ) {
    // The first entry says where the checkpoint stands, whether it is there or not.
    const first = decision.inPlace ? slot : decision.seqs[0]!
    return [{ ...decision, seqs: [first, ...seqs.filter((seq) => seq !== first)] }]
  }
  return seqs.length === 0 ? [] : [{ _tag: "Remove", seqs, at: decision.at }]
}
