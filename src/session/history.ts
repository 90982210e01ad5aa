/** What comes into a session from outside, and what is dropped of it. */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Guard from "../Guard.ts"
import * as Ladder from "../Ladder.ts"
import type * as Session from "../Session.ts"
import * as Stage from "../Stage.ts"
import * as Transcript from "../Transcript.ts"
import { sameMessage } from "../wire/sameMessage.ts"
import * as Traits from "../wire/traits.ts"
import * as Abridge from "./abridge.ts"
import * as Estimating from "./estimating.ts"
import * as Growing from "./growing.ts"
import * as Ingress from "./ingress.ts"
import * as Layout from "./layout.ts"
import * as Passes from "./passes.ts"
import * as Runtime from "./runtime.ts"
import * as Summaries from "./summaries.ts"
import * as Turn from "./turn.ts"

/** Cuts what is too large of the results from an entry on. Nothing of them was sent, so it is no boundary. */
const capsOf = (turn: Turn.Turn, from: number): ReadonlyArray<Ingress.Capped> => {
  const { settings } = turn.runtime
  const locate = Runtime.locateOf(turn.runtime, turn.state.call)
  const { index, transcript } = Runtime.layoutOf(turn.runtime, turn.state)
  return Ingress.capsOf(settings, transcript, index, locate, from)
}

const priceOf = (entries: ReadonlyArray<Transcript.Entry>, from: number) => {
  const price = { system: 0, messages: 0 }
  for (let at = from; at < entries.length; at++) {
    const entry = entries[at]!
    price[entry.role === "system" ? "system" : "messages"] += entry.price
  }
  return price
}

/**
 * Takes in messages: one event of them all, but that what is cut of one is decided before the next one comes, and what may
 * belong to messages that a snapshot left out is looked at once those are here.
 */
export const take = Effect.fnUntraced(function*(turn: Turn.Turn, messages: ReadonlyArray<Prompt.Message>) {
  for (let at = 0; at < messages.length;) {
    if (Abridge.reachesBack(Runtime.layoutOf(turn.runtime, turn.state).transcript, messages[at]!)) {
      yield* Turn.whole(turn)
    }
    at += takeSome(turn, messages, at)
  }
})

/** Takes in messages from one on, and says how many: at least one, up to the first of which something is cut. */
const takeSome = (turn: Turn.Turn, messages: ReadonlyArray<Prompt.Message>, from: number): number => {
  const { settings } = turn.runtime
  const locate = Runtime.locateOf(turn.runtime, turn.state.call)
  const { index, transcript } = Runtime.layoutOf(turn.runtime, turn.state)
  const first = transcript.entries.length
  const taken: Array<Session.Message> = []
  let capped: ReadonlyArray<Ingress.Capped> = []
  for (let at = from; at < messages.length && capped.length === 0; at++) {
    const message = messages[at]!
    if (at > from && Abridge.reachesBack(transcript, message)) break
    const seq = transcript.entries.length
    // The layout is ahead of the state until the event is taken in.
    Transcript.append(transcript, message)
    taken.push({ message, origin: "caller" })
    capped = Ingress.capsOf(settings, transcript, index, locate, seq)
  }
  Turn.take(turn, {
    _tag: "Appended",
    messages: taken,
    caps: capped.map(({ decision }) => decision),
    price: priceOf(transcript.entries, first)
  })
  for (const { event } of capped) Turn.tell(turn, event)
  Estimating.tell(turn)
  return taken.length
}

/** Cuts the results of a session that was opened or restored under a cap that it did not have. */
export const capAll = (turn: Turn.Turn): void => {
  const capped = capsOf(turn, 0)
  if (capped.length === 0) return
  const price = { system: 0, messages: 0 }
  Turn.take(turn, { _tag: "Appended", messages: [], caps: capped.map(({ decision }) => decision), price })
  for (const { event } of capped) Turn.tell(turn, event)
}

/** The memory of a session in which a streak of refusals begins anew, since what was refused is not what comes next. */
export const withoutStreak = (memory: Stage.Memory): Stage.Memory => {
  const floor = Stage.recall({ memory }, Guard.clearFloor)
  if (floor.streak === 0) return memory
  return Stage.written(memory, Guard.clearFloor, { ...floor, streak: 0 })
}

/** The same of a session whose history was cut: nothing is known to be infeasible either. */
export const afterDrop = (memory: Stage.Memory): Stage.Memory => {
  const kept = withoutStreak(memory)
  if (Stage.recall({ memory: kept }, Ladder.infeasible) === null) return kept
  return Stage.written(kept, Ladder.infeasible, null)
}

/** What is being summarised is about a history that is no more. */
export const stopSummaries = ({ summaries }: Runtime.Runtime): Effect.Effect<void> =>
  summaries === undefined ? Effect.void : Summaries.stop(summaries)

/** Drops the messages from one on, with what was decided since they came. */
const dropFrom = Effect.fnUntraced(function*(turn: Turn.Turn, messages: number) {
  yield* stopSummaries(turn.runtime)
  const { entries } = turn.state
  Turn.take(turn, { _tag: "Dropped", messages, memory: afterDrop(turn.state.memory) })
  const layout = Runtime.layoutOf(turn.runtime, turn.state)
  Layout.update(layout, turn.state.entries)
  Passes.hold(turn, layout, turn.state.figures.breakdown.tools)
  Turn.tell(turn, { _tag: "TranscriptDiverged", seq: turn.state.entries, dropped: entries - turn.state.entries })
})

/** Drops the message of an entry and all that came after it. */
export const rewind = Effect.fnUntraced(function*(turn: Turn.Turn, entry: number) {
  yield* Turn.whole(turn)
  const { messages } = turn.state
  let entries = 0
  let at = 0
  for (; at < messages.length; at++) {
    entries += Transcript.entriesOf(messages.all[at]!.message)
    if (entries > entry) break
  }
  if (at < messages.length) yield* dropFrom(turn, at)
})

const isOfMachine = (message: Prompt.Message): boolean => message.role === "user" && !Traits.isHuman(message)

/**
 * Whether one message may take the place of another without a word of the conversation being another: both are of the
 * system, or of a machine before anybody else said anything. A clock in a system prompt is no edited history.
 */
const mayReplace = (before: Prompt.Message, now: Prompt.Message, isHead: boolean): boolean =>
  before.role === "system"
    ? now.role === "system"
    : isHead && isOfMachine(before) && isOfMachine(now)

/**
 * Takes in a caller's prompt: finds the first message that is not the one seen before, and takes in from there. What the
 * system says, and machines at the head, is put in place of what was there.
 */
export const reconcile = Effect.fnUntraced(function*(turn: Turn.Turn, incoming: ReadonlyArray<Prompt.Message>) {
  yield* Turn.whole(turn)
  const { messages } = turn.state
  const replaced: Array<{ readonly at: number; readonly message: Prompt.Message }> = []
  let isHead = true
  let known = 0
  let at = 0
  for (; at < messages.length; at++) {
    const { message, origin } = messages.all[at]!
    if (origin !== "caller") continue
    const now = incoming[known]
    if (now === undefined) break
    if (!sameMessage(message, now)) {
      if (!mayReplace(message, now, isHead)) break
      replaced.push({ at, message: now })
    }
    isHead &&= message.role === "system" || isOfMachine(message)
    known++
  }
  if (replaced.length > 0) {
    Turn.take(turn, { _tag: "Replaced", messages: replaced })
    const layout = Runtime.layoutOf(turn.runtime, turn.state)
    Layout.update(layout, turn.state.entries)
    Passes.hold(turn, layout, turn.state.figures.breakdown.tools)
  }
  if (at < messages.length) yield* dropFrom(turn, at)
  yield* take(turn, incoming.slice(known))
})

/** The messages that the caller appended; checkpoints are no part of the history. */
export const ofCaller = ({ messages }: Session.State): ReadonlyArray<Prompt.Message> =>
  Growing.toArray(messages).filter(({ origin }) => origin === "caller").map(({ message }) => message)
