import type * as Prompt from "effect/ai/Prompt"
import * as Decision from "../Decision.ts"
import type * as Session from "../Session.ts"
import * as Transcript from "../Transcript.ts"
import * as Pairing from "../wire/pairing.ts"
import * as Reasoning from "../wire/reasoning.ts"
import * as Growing from "./growing.ts"

/** What a snapshot left out; see `Session.State`. */
type Abridged = Session.State["abridged"]

/** The transcript of messages that stay, where runs of others were left out. */
export const transcriptOf = (
  abridged: Abridged,
  messages: ReadonlyArray<Session.Message>,
  priceOf: Transcript.PriceOf
): Transcript.Transcript => {
  const transcript = Transcript.make(priceOf)
  const runs = abridged?.runs ?? []
  let next = 0
  for (let at = 0; at <= messages.length; at++) {
    for (; runs[next]?.before === at; next++) Transcript.skip(transcript, runs[next]!.messages, runs[next]!.entries)
    const each = messages[at]
    if (each !== undefined) Transcript.append(transcript, each.message, each.origin)
  }
  return transcript
}

/** Whether a request was laid out from all that is decided now, so that what no view shows any more was not in it. */
const isLaidOutNow = (self: Session.State, sent: Session.SentRequest | null): boolean =>
  sent === null || (sent.messages.all === self.messages.all && sent.decisions.all === self.decisions.all
    && sent.decisions.length === self.decisions.length)

/**
 * What a session is without the messages that have left its view for good: its next views, and what is decided of them, are
 * the same. Decisions are never taken back but by what drops messages, and that asks for the whole log.
 *
 * What stays: all that is in the view, system entries and the words of people (a summary is judged by them), calls without a
 * result and their groups, and the newest entries of each kind that later ones are measured by.
 */
export const make = (self: Session.State): Session.State => {
  const { abridged, sent, unsent } = self
  if (!isLaidOutNow(self, sent) || !isLaidOutNow(self, unsent?.sent ?? null)) return self
  const messages = Growing.toArray(self.messages)
  const decisions = Growing.toArray(self.decisions)
  const transcript = transcriptOf(abridged, messages, () => 0)
  const all = abridged === null
    ? decisions.length
    : abridged.decisions.all + decisions.length - abridged.decisions.kept
  // Whether a loose part may be sent depends on messages anywhere before it.
  if (transcript.isLoose) {
    return abridged === null
      ? self
      : { ...self, abridged: { ...abridged, kept: messages.length, decisions: { kept: decisions.length, all } } }
  }
  const index = Decision.index(decisions)
  const stays = staying(self, transcript, index)
  const { at, kept, runs } = without(self, messages, stays)
  if (runs.length === 0) return self
  const left = decisions.flatMap((decision) => about(decision, stays, index))
  const counts = Decision.addCounts(
    Decision.addCounts(abridged?.counts ?? Decision.noCounts, Decision.counts(index)),
    Decision.counts(Decision.index(left)),
    -1
  )
  const next = {
    messages: Growing.from(kept),
    decisions: Growing.from(left)
  }
  const shortened = (request: Session.SentRequest | null): Session.SentRequest | null =>
    request === null ? null : {
      ...request,
      messages: Growing.take(next.messages, at[request.messages.length]!),
      decisions: next.decisions
    }
  return {
    ...self,
    ...next,
    sent: shortened(sent),
    unsent: unsent === null ? null : { ...unsent, sent: shortened(unsent.sent) },
    abridged: { runs, kept: kept.length, decisions: { kept: left.length, all }, counts }
  }
}

/**
 * Puts back what a snapshot left out: `whole` is the session that was abridged, with whatever came before `self` went on from
 * it.
 */
export const undo = (self: Session.State, whole: Session.State): Session.State => {
  const { abridged } = self
  if (abridged === null) return self
  const before = (length: number) =>
    length + abridged.runs.reduce((sum, run) => run.before <= length ? sum + run.messages : sum, 0)
  const messages = Growing.append(
    Growing.take(whole.messages, before(abridged.kept)),
    Growing.after(self.messages, abridged.kept)
  )
  const decisions = Growing.append(
    Growing.take(whole.decisions, abridged.decisions.all),
    Growing.after(self.decisions, abridged.decisions.kept)
  )
  const added = abridged.decisions.all - abridged.decisions.kept
  const lengthened = (request: Session.SentRequest | null): Session.SentRequest | null =>
    request === null ? null : {
      ...request,
      messages: Growing.take(messages, before(request.messages.length)),
      decisions: Growing.take(decisions, request.decisions.length + added)
    }
  return {
    ...self,
    messages,
    decisions,
    sent: lengthened(self.sent),
    unsent: self.unsent === null ? null : { ...self.unsent, sent: lengthened(self.unsent.sent) },
    abridged: null
  }
}

/** Whether what came after a snapshot belongs to what it left out. */
export const isReachedBack = ({ abridged, messages }: Session.State): boolean => {
  if (abridged === null) return false
  const all = Growing.toArray(messages)
  const transcript = transcriptOf(abridged, all.slice(0, abridged.kept), () => 0)
  return all.slice(abridged.kept).some(({ message, origin }) => {
    if (reachesBack(transcript, message)) return true
    Transcript.append(transcript, message, origin)
    return false
  })
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
  { ready }: Session.State,
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

/**
 * The messages that stay, how many go between them, and for each number of messages how many of those that stay are among
 * them.
 */
const without = (
  { abridged }: Session.State,
  messages: ReadonlyArray<Session.Message>,
  stays: Uint8Array
): {
  readonly kept: ReadonlyArray<Session.Message>
  readonly runs: NonNullable<Abridged>["runs"]
  readonly at: ReadonlyArray<number>
} => {
  const kept: Array<Session.Message> = []
  const at: Array<number> = [0]
  const runs: Array<NonNullable<Abridged>["runs"][number]> = []
  const known = abridged?.runs ?? []
  let seq = 0
  const drop = (count: number, entries: number) => {
    const last = runs.at(-1)
    if (last?.before === kept.length) {
      runs[runs.length - 1] = { ...last, messages: last.messages + count, entries: last.entries + entries }
    } else runs.push({ before: kept.length, messages: count, entries })
    seq += entries
  }
  let next = 0
  for (let place = 0; place <= messages.length; place++) {
    for (; known[next]?.before === place; next++) drop(known[next]!.messages, known[next]!.entries)
    const each = messages[place]
    if (each === undefined) break
    const entries = Transcript.entriesOf(each.message)
    if (entries > 0 && stays[seq] === 0) drop(1, entries)
    else {
      kept.push(each)
      seq += entries
    }
    at.push(kept.length)
  }
  return { kept, runs, at }
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
  if (seqs.length === 0) return []
  return [decision._tag === "Remove" ? { ...decision, seqs } : { _tag: "Remove", seqs, at: decision.at }]
}
