import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Decision from "../Decision.ts"
import * as SessionLog from "../SessionLog.ts"
import type * as SessionStore from "../SessionStore.ts"
import type * as Stage from "../Stage.ts"
import type * as Transcript from "../Transcript.ts"
import * as Session from "./session.ts"
import type * as Summaries from "./summaries.ts"

/** What of a session is in its log already. */
interface Known {
  transcript: Transcript.Transcript
  messages: number
  decisions: ReadonlyArray<Decision.Decision>
  request: Omit<typeof SessionLog.Changed.Type, "_tag">
}

/**
 * Writes down what has changed in a session since it did so last.
 *
 * The session has one writer and changes in place; what came since is told by how long its lists were, and by which of its
 * records are other objects. So nothing can change it and be forgotten here, and one that did not change costs nothing.
 *
 * `pending` are events that could not be written yet; they are written first, so a log has no holes.
 */
export interface Recorder {
  readonly store: SessionStore.Log
  pending: Array<Schema.Json>
  known: Known
}

type Request = Known["request"]

/** The parts of a session that are one record each. */
const requestOf = (
  state: Session.State,
  pace: Summaries.Pace,
  ready: Stage.Ready | null
): Required<Request> => {
  const { asked, maximum, maximumRoute, memory, meter, sent, tail, unsent } = state
  return { asked, maximum, maximumRoute, memory, meter, tail, sent, unsent, pace, ready }
}

export const make = (
  store: SessionStore.Log,
  state: Session.State,
  pace: Summaries.Pace,
  ready: Stage.Ready | null
): Recorder => ({
  store,
  pending: [SessionLog.encode({ _tag: "Opened", version: SessionLog.version })],
  known: {
    transcript: state.transcript,
    messages: state.transcript.messages.length,
    decisions: state.decisions,
    request: requestOf(state, pace, ready)
  }
})

/** Takes a transcript and decisions for those that are known, when they say the same and more beside it. */
export const over = (self: Recorder, { decisions, transcript }: Session.State): void => {
  self.known.transcript = transcript
  self.known.decisions = decisions
}

/** Records that are made anew each time are the same when they say the same. */
const isOther = (before: unknown, now: unknown): boolean =>
  before !== now && JSON.stringify(before) !== JSON.stringify(now)

const commonLength = <A>(a: ReadonlyArray<A>, b: ReadonlyArray<A>): number => {
  let length = 0
  while (length < a.length && length < b.length && a[length] === b[length]) length++
  return length
}

/** The events of what has changed, `notes` first and `after` last; they count as known from now on. */
const changesOf = (
  self: Recorder,
  state: Session.State,
  pace: Summaries.Pace,
  ready: Stage.Ready | null,
  notes: ReadonlyArray<SessionLog.Event>,
  after: ReadonlyArray<SessionLog.Event>
): ReadonlyArray<SessionLog.Event> => {
  const { known } = self
  const events: Array<SessionLog.Event> = []
  const { decisions, transcript } = state
  if (transcript !== known.transcript) {
    const messages = commonLength(known.transcript.messages.slice(0, known.messages), transcript.messages)
    const kept = known.decisions.slice(0, commonLength(known.decisions, decisions))
    if (messages < known.messages || kept.length < known.decisions.length) {
      events.push({ _tag: "Dropped", messages, decisions: kept.length })
    }
    known.transcript = transcript
    known.messages = messages
    known.decisions = kept
  }
  events.push(...notes)
  if (transcript.messages.length > known.messages) {
    const messages = transcript.messages.slice(known.messages).map((message, at) => ({
      message: Session.savable(message),
      origin: transcript.origins[known.messages + at]!
    }))
    events.push({ _tag: "Appended", messages })
    known.messages = transcript.messages.length
  }
  if (decisions.length > known.decisions.length) {
    events.push({ _tag: "Decided", decisions: decisions.slice(known.decisions.length) })
  }
  known.decisions = decisions
  const request = requestOf(state, pace, ready)
  const before = new Map(Object.entries(known.request))
  const entries = Object.entries(request).filter(([key, value]) => isOther(before.get(key), value))
  // The entries are those of a request, fewer of them.
  if (entries.length > 0) events.push({ _tag: "Changed", ...Object.fromEntries(entries) as Request })
  known.request = request
  events.push(...after)
  return events
}

/** Writes what has changed, in one append. What cannot be written stays pending. */
export const record = (
  self: Recorder,
  state: Session.State,
  pace: Summaries.Pace,
  ready: Stage.Ready | null,
  notes: ReadonlyArray<SessionLog.Event>,
  after: ReadonlyArray<SessionLog.Event>
): Effect.Effect<void, SessionStore.WriteError> =>
  // What was written is known to be: an interruption between the two would write it twice.
  Effect.uninterruptible(Effect.suspend(() => {
    const isBehind = self.pending.length > 1
    const events = changesOf(self, state, pace, ready, notes, after)
    if (events.length === 0 && !isBehind) return Effect.void
    for (const event of events) self.pending.push(SessionLog.encode(event))
    const { pending } = self
    return Effect.map(self.store.append(pending), () => {
      self.pending = []
    })
  }))

/** What is known and pending now, to be put back when what comes next is taken back. */
export const mark = (self: Recorder): { readonly known: Known; readonly pending: number } => ({
  known: { ...self.known },
  pending: self.pending.length
})

/** Takes back what was pending since a mark; `transcript` holds the messages that were known then. */
export const takeBack = (self: Recorder, to: ReturnType<typeof mark>, transcript: Transcript.Transcript): void => {
  self.known = { ...to.known, transcript }
  self.pending.length = to.pending
}
