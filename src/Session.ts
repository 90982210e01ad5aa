/**
 * One conversation as a value, and the events it is made of.
 *
 * Everything that changes in a session is a field of its {@link State}, and every change is an {@link Event}. The state is a
 * fold of its events: the live session, one that is opened again, a fork, a rewind and an imported one are all the same
 * fold, so they cannot differ. A view, a receipt, a figure and a preview are functions of the state.
 *
 * **Details**
 *
 * In a log the first event after each opening is `Opened`, with the version of the format. An event of an unknown kind makes
 * a log unreadable, unless it says of itself that it may be skipped (`"optional":true`).
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type * as Decision from "./Decision.ts"
import * as Events from "./session/events.ts"
import * as Figure from "./session/figures.ts"
import * as Growing from "./session/growing.ts"
import * as Refire from "./session/refire.ts"
import * as Tail from "./session/tail.ts"
import * as Stage from "./Stage.ts"
import * as TokenMeter from "./TokenMeter.ts"
import * as Transcript from "./Transcript.ts"

// Each event is a Schema of its own, and `Event` is all of them.
export * from "./session/events.ts"

/**
 * What was billed, how full the window is, and with what, in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export type Figures = Figure.Figures

export {
  /**
   * What the next request occupies, in tokens, and where the number comes from: a bill and what came since, or prices alone.
   *
   * @category getters
   * @since 0.1.0
   */
  occupied
} from "./session/figures.ts"

/**
 * A request that was sent: the messages and the decisions it was laid out from, how many entries they made, and its
 * generation.
 *
 * @category models
 * @since 0.1.0
 */
export interface SentRequest {
  readonly messages: Growing.Growing<Events.Message>
  readonly decisions: Growing.Growing<Decision.Decision>
  readonly entries: number
  readonly generation: number
}

const Fields = Schema.Struct(Events.fields)

type FieldsType = typeof Fields.Type

/**
 * A session.
 *
 * **Details**
 *
 * - `messages`, `decisions`: those that stand, oldest first. `entries`: how many entries the messages make, `checkpoints` of
 *   them this library's own. `abridged`: what a snapshot left out since no view shows it any more.
 * - `call`: what was particular to the last request, `sentAt` when it was sent, where that is noted. `asked`: what it asked for, `null` when something came of it. `sent`: the
 *   request that counts as sent. `unsent`: what held before it, until something comes of it. `requests`: how many there were.
 *   `counted`, `resolved`: what the last request counted, and of which budget. `repaired`: up to which entry repairs were told.
 * - `meter`: what was billed, and what is in flight. `maximum`, `maximumRoute`: the most that a provider takes, in tokens, and
 *   the route on which it said so.
 * - `generation`: how many boundaries there were; taking some back counts as one. `boundaries`: those whose decisions stand,
 *   oldest first. `level`: the highest rung of one. `memory`: what stages remember. `tail`: what
 *   the notice announced.
 * - `pace`, `ready`: when the next summary is due, and the one that waits for a boundary. `isCompacting`: whether a compaction
 *   was begun by hand and has not ended.
 * - `lastBoundary`, `lastSkip`, `lastInfeasible`: the newest event of each kind.
 *
 * @category models
 * @since 0.1.0
 */
export interface State extends FieldsType {
  readonly messages: Growing.Growing<Events.Message>
  readonly decisions: Growing.Growing<Decision.Decision>
  readonly sent: SentRequest | null
  readonly unsent: { readonly tail: Tail.Memory; readonly sent: SentRequest | null } | null
}

/**
 * A session in which nothing has happened.
 *
 * @category constants
 * @since 0.1.0
 */
export const initial: State = {
  messages: Growing.empty,
  decisions: Growing.empty,
  sent: null,
  unsent: null,
  abridged: null,
  entries: 0,
  checkpoints: 0,
  repaired: 0,
  requests: 0,
  asked: null,
  call: {},
  sentAt: null,
  counted: null,
  resolved: null,
  maximum: null,
  maximumRoute: "",
  level: 0,
  generation: 0,
  boundaries: [],
  memory: Stage.noMemory,
  meter: TokenMeter.empty,
  tail: Tail.noMemory,
  pace: Refire.initialPace,
  ready: null,
  isCompacting: false,
  lastBoundary: null,
  lastSkip: null,
  lastInfeasible: null,
  figures: Figure.initial
}

const savedSent = (self: State, sent: SentRequest | null): typeof Events.SavedSent.Type => {
  if (sent === null) return null
  const messages = Growing.common(sent.messages, self.messages)
  const decisions = Growing.common(sent.decisions, self.decisions)
  return {
    common: { messages, decisions },
    messages: Growing.after(sent.messages, messages),
    decisions: Growing.after(sent.decisions, decisions),
    entries: sent.entries,
    generation: sent.generation
  }
}

/**
 * A session as it is saved.
 *
 * @category converting
 * @since 0.1.0
 */
export const save = (self: State): Events.Saved => {
  const { decisions, messages, sent, unsent, ...rest } = self
  return {
    version: Events.version,
    ...rest,
    messages: Growing.toArray(messages),
    decisions: Growing.toArray(decisions),
    sent: savedSent(self, sent),
    unsent: unsent === null ? null : { tail: unsent.tail, sent: savedSent(self, unsent.sent) }
  }
}

/**
 * A session from what was saved.
 *
 * @category converting
 * @since 0.1.0
 */
export const load = (saved: Events.Saved): State => {
  const { decisions: taken, messages: given, sent, unsent, version: _, ...rest } = saved
  const messages = Growing.from(given)
  const decisions = Growing.from(taken)
  const sentOf = (each: typeof Events.SavedSent.Type): SentRequest | null =>
    each === null ? null : {
      messages: Growing.append(Growing.take(messages, each.common.messages), each.messages),
      decisions: Growing.append(Growing.take(decisions, each.common.decisions), each.decisions),
      entries: each.entries,
      generation: each.generation
    }
  return {
    ...rest,
    messages,
    decisions,
    sent: sentOf(sent),
    unsent: unsent === null ? null : { tail: unsent.tail, sent: sentOf(unsent.sent) }
  }
}

const entriesIn = (messages: ReadonlyArray<Events.Message>): number =>
  messages.reduce((sum, { message }) => sum + Transcript.entriesOf(message), 0)

/** Takes back what a request left behind that nothing came of. */
const takeBack = (self: State): State =>
  self.unsent === null ? self : { ...self, tail: self.unsent.tail, sent: self.unsent.sent, unsent: null }

/**
 * A session without the request that is in flight: nothing of it counts as sent. It is where another session may begin.
 *
 * @category converting
 * @since 0.1.0
 */
export const settled = (self: State): State => ({
  ...takeBack(self),
  meter: TokenMeter.abandon(self.meter),
  isCompacting: false
})

const send = (self: State, event: typeof Events.Sent.Type): State => {
  const { entries, generation, tail } = self
  const { again, asked, call, counted, envelope, price, resolved } = event
  const isOpen = again && self.unsent !== null
  return {
    ...self,
    asked,
    call,
    sentAt: event.at ?? null,
    counted,
    resolved,
    tail: event.tail,
    meter: TokenMeter.dispatch(self.meter, { price, entries, generation, envelope, overhead: resolved.overhead }),
    unsent: isOpen ? self.unsent : { tail, sent: self.sent },
    sent: { messages: self.messages, decisions: self.decisions, entries, generation },
    requests: again ? self.requests : self.requests + 1,
    repaired: entries
  }
}

/** How many decisions were taken in a session, those that a snapshot left out included. */
const decidedIn = ({ abridged, decisions }: State): number =>
  abridged === null ? decisions.length : abridged.decisions.all + decisions.length - abridged.decisions.kept

/** The decisions that stay, and the boundaries that they are of. */
const keep = (
  { boundaries, decisions }: State,
  isKept: (decision: Decision.Decision, at: number) => boolean
): Pick<State, "boundaries" | "decisions"> => {
  const taken = Growing.toArray(decisions)
  const left = taken.filter(isKept)
  if (left.length === taken.length) return { boundaries, decisions }
  // How many stay before each.
  const places = [0]
  for (const [at, decision] of taken.entries()) places.push(places[at]! + (isKept(decision, at) ? 1 : 0))
  const moved = boundaries.map((each) => ({ ...each, from: places[each.from]!, to: places[each.to]! }))
  return { boundaries: moved.filter(({ from, to }) => to > from), decisions: Growing.from(left) }
}

/** A session without the decisions of a boundary and of all later ones: what a cap decided meanwhile stays. */
const undo = (self: State, { generation, memory }: typeof Events.Undone.Type): State => {
  const gone = self.boundaries.filter((each) => each.generation >= generation)
  const kept = keep(self, (_, at) => !gone.some(({ from, to }) => at >= from && at < to))
  return {
    ...self,
    ...kept,
    memory,
    // The prefix changes, as at a boundary: what was billed before is of another view.
    generation: self.generation + 1,
    level: Math.max(0, ...kept.boundaries.map(({ level }) => level)),
    asked: null,
    lastBoundary: null
  }
}

/** What stays of a session whose first messages stay. */
const drop = (self: State, { memory, messages: kept }: typeof Events.Dropped.Type): State => {
  const dropped = Growing.after(self.messages, kept)
  const entries = self.entries - entriesIn(dropped)
  const isKept = (decision: Decision.Decision): boolean =>
    decision.at <= entries && !(decision._tag === "Absorb" && decision.checkpoint >= entries)
  return {
    ...self,
    ...keep(self, isKept),
    messages: Growing.take(self.messages, kept),
    entries,
    checkpoints: self.checkpoints - dropped.filter(({ origin }) => origin === "library").length,
    repaired: Math.min(self.repaired, entries),
    asked: null,
    unsent: null,
    counted: null,
    resolved: null,
    memory,
    // What was billed was billed for another history: it is no anchor, but what it says about prices holds.
    meter: TokenMeter.forgetReading(self.meter),
    pace: { ...Refire.initialPace, refire: self.pace.refire },
    ready: null,
    lastBoundary: null,
    lastSkip: null,
    lastInfeasible: null
  }
}

/** A session in which some messages are others, each of one entry as before. */
const replace = (self: State, { messages }: typeof Events.Replaced.Type): State => {
  const all = Growing.toArray(self.messages).slice()
  for (const { at, message } of messages) all[at] = { message, origin: "caller" }
  return { ...self, messages: Growing.from(all), asked: null, counted: null }
}

/**
 * The state after an event. It is total: an event that cannot follow is found by {@link faultOf} where a log is read.
 *
 * @category running
 * @since 0.1.0
 */
export const apply = (self: State, event: Events.Event): State => {
  switch (event._tag) {
    case "Opened":
      return { ...self, isCompacting: false }
    case "Appended":
      return {
        ...self,
        messages: Growing.append(self.messages, event.messages),
        decisions: Growing.append<Decision.Decision>(self.decisions, event.caps),
        entries: self.entries + entriesIn(event.messages),
        // A request whose results were cut only now is not the one that was asked for.
        asked: event.messages.length === 0 ? null : self.asked,
        figures: Figure.appended(self.figures, event.price)
      }
    case "Decided": {
      const from = decidedIn(self)
      const { level } = event.told
      const generation = self.generation + 1
      return {
        ...self,
        decisions: Growing.append(self.decisions, event.decisions),
        memory: event.memory,
        generation,
        boundaries: [...self.boundaries, { generation, from, to: from + event.decisions.length, level }],
        level: Math.max(self.level, level),
        asked: null,
        lastBoundary: event.told
      }
    }
    case "Remembered":
      return {
        ...self,
        memory: event.memory,
        asked: null,
        lastSkip: event.skipped ?? self.lastSkip,
        lastInfeasible: event.infeasible ?? self.lastInfeasible
      }
    case "Sent":
      return send(self, event)
    case "Billed": {
      const { beside, output, usage, window } = event
      const meter = beside ? self.meter : TokenMeter.observe(self.meter, usage, window)
      // A bill that cannot be is no bill.
      const isBill = meter.ignored === self.meter.ignored
      const figures = isBill ? Figure.billed(self.figures, usage, output, beside) : self.figures
      return beside ? { ...self, figures } : { ...self, figures, meter, asked: null, unsent: null }
    }
    case "Abandoned":
      return { ...takeBack(self), meter: TokenMeter.abandon(self.meter) }
    case "Refused": {
      const { call, maximum, tokens } = event
      const meter = tokens === null
        ? TokenMeter.abandon(self.meter)
        : TokenMeter.observe(self.meter, { total: tokens }, Math.max(event.window, tokens))
      const refused = { ...takeBack(self), meter, call }
      return maximum === null ? refused : { ...refused, maximum, maximumRoute: call.route ?? "" }
    }
    case "Dropped":
      return drop(self, event)
    case "Replaced":
      return replace(self, event)
    case "Undone":
      return undo(self, event)
    case "Restored":
      return load(event.session)
    case "CompactionStarted":
      return { ...self, isCompacting: true }
    case "CompactionEnded":
      return { ...self, isCompacting: false }
    case "Summarised": {
      const { checkpoint, inPlace, input, output, seqs } = event
      const usage = { uncached: input ?? 0 }
      return {
        ...self,
        messages: Growing.append(self.messages, [{ message: checkpoint, origin: "library" as const }]),
        entries: self.entries + 1,
        checkpoints: self.checkpoints + 1,
        ready: { checkpoint: self.entries, seqs, inPlace },
        figures: input === null && output === null
          ? self.figures
          : Figure.billed(self.figures, usage, output ?? 0, true)
      }
    }
    case "Paced":
      return { ...self, pace: event.pace, ready: event.ready }
    case "Held":
      return { ...self, figures: Figure.holding(self.figures, event) }
  }
}

/**
 * Why an event cannot follow a state, or `undefined`.
 *
 * @category running
 * @since 0.1.0
 */
export const faultOf = (self: State, event: Events.Event): string | undefined => {
  switch (event._tag) {
    case "Opened":
      return event.version === Events.version
        ? undefined
        : `it is of version ${event.version}, and only ${Events.version} is known here`
    case "Dropped":
      if (self.abridged !== null) return "it reaches behind the snapshot"
      return event.messages > self.messages.length ? "it keeps more than there is" : undefined
    case "Replaced":
      if (self.abridged !== null) return "it reaches behind the snapshot"
      return event.messages.some(({ at }) => at >= self.messages.length)
        ? "it replaces more than there is"
        : undefined
    case "Undone":
      if (self.abridged !== null) return "it reaches behind the snapshot"
      return self.boundaries.some(({ generation }) => generation === event.generation)
        ? undefined
        : `there is no boundary ${event.generation} to take back`
    case "Decided": {
      const most = (decision: Decision.Decision): number =>
        "seqs" in decision ? Math.max(-1, ...decision.seqs) : decision.seq
      return event.decisions.some((decision) => most(decision) >= self.entries)
        ? "it decides about entries that are not there"
        : undefined
    }
    case "Summarised":
      return event.seqs.some((seq) => seq >= self.entries) ? "it is about entries that are not there" : undefined
    default:
      return undefined
  }
}
