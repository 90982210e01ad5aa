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
import * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "./CompactionEvent.ts"
import * as Decision from "./Decision.ts"
import * as Figure from "./session/figures.ts"
import * as Growing from "./session/growing.ts"
import * as Refire from "./session/refire.ts"
import * as Tail from "./session/tail.ts"
import * as Stage from "./Stage.ts"
import * as Summarizer from "./Summarizer.ts"
import * as TokenMeter from "./TokenMeter.ts"
import * as Transcript from "./Transcript.ts"

/**
 * The version of the events and of the saved state that this library writes and reads.
 *
 * @category constants
 * @since 0.1.0
 */
export const version = 2

/**
 * A message of a session, and who put it there.
 *
 * @category models
 * @since 0.1.0
 */
export const Message = Schema.Struct({
  message: Prompt.Message,
  origin: Schema.Literals(["caller", "library", "runtime"])
})

/**
 * @category models
 * @since 0.1.0
 */
export type Message = typeof Message.Type

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

const Ready = Schema.NullOr(Schema.Struct({
  checkpoint: Schema.Natural,
  seqs: Schema.Array(Schema.Natural),
  inPlace: Schema.Boolean
}))

const Call = Schema.Struct({
  budget: Schema.optionalKey(Schema.Finite),
  window: Schema.optionalKey(Schema.Finite),
  maxOutput: Schema.optionalKey(Schema.Finite),
  overhead: Schema.optionalKey(Schema.Finite),
  route: Schema.optionalKey(Schema.String)
})

const Asked = Schema.NullOr(Schema.Struct({ entries: Schema.Natural, limit: Schema.Finite }))

/** A run of messages that a snapshot left out: before which of those it holds, how many, and how many entries they made. */
const Run = Schema.Struct({ before: Schema.Natural, messages: Schema.Natural, entries: Schema.Natural })

const Abridged = Schema.NullOr(Schema.Struct({
  runs: Schema.Array(Run),
  kept: Schema.Natural,
  decisions: Schema.Struct({ kept: Schema.Natural, all: Schema.Natural }),
  counts: Decision.Counts
}))

/**
 * A request that was sent: the messages and the decisions it was laid out from, how many entries they made, and its
 * generation.
 *
 * @category models
 * @since 0.1.0
 */
export interface SentRequest {
  readonly messages: Growing.Growing<Message>
  readonly decisions: Growing.Growing<Decision.Decision>
  readonly entries: number
  readonly generation: number
}

/** The fields of a state that are saved as they are. */
export const fields = {
  abridged: Abridged,
  entries: Schema.Natural,
  checkpoints: Schema.Natural,
  repaired: Schema.Natural,
  requests: Schema.Natural,
  asked: Asked,
  call: Call,
  counted: Schema.NullOr(CompactionEvent.TokenCounted),
  resolved: Schema.NullOr(CompactionEvent.BudgetResolved),
  maximum: Schema.NullOr(Schema.Natural),
  maximumRoute: Schema.String,
  level: Schema.Natural,
  generation: Schema.Natural,
  memory: Stage.Memory,
  meter: TokenMeter.State,
  tail: Tail.Memory,
  pace: Refire.Pace,
  ready: Ready,
  isCompacting: Schema.Boolean,
  lastBoundary: Schema.NullOr(CompactionEvent.Compacted),
  lastSkip: Schema.NullOr(CompactionEvent.CompactionSkipped),
  lastInfeasible: Schema.NullOr(CompactionEvent.Infeasible),
  figures: Figure.Figures
}

const Fields = Schema.Struct(fields)

type FieldsType = typeof Fields.Type

/**
 * A session.
 *
 * **Details**
 *
 * - `messages`, `decisions`: those that stand, oldest first. `entries`: how many entries the messages make, `checkpoints` of
 *   them this library's own. `abridged`: what a snapshot left out since no view shows it any more.
 * - `call`: what was particular to the last request. `asked`: what it asked for, `null` when something came of it. `sent`: the
 *   request that counts as sent. `unsent`: what held before it, until something comes of it. `requests`: how many there were.
 *   `counted`, `resolved`: what the last request counted, and of which budget. `repaired`: up to which entry repairs were told.
 * - `meter`: what was billed, and what is in flight. `maximum`, `maximumRoute`: the most that a provider takes, in tokens, and
 *   the route on which it said so.
 * - `generation`: how many boundaries there were. `level`: the highest rung of one. `memory`: what stages remember. `tail`: what
 *   the notice announced.
 * - `pace`, `ready`: when the next summary is due, and the one that waits for a boundary. `isCompacting`: whether a compaction
 *   was begun by hand and has not ended.
 * - `lastBoundary`, `lastSkip`, `lastInfeasible`: the newest event of each kind.
 *
 * @category models
 * @since 0.1.0
 */
export interface State extends FieldsType {
  readonly messages: Growing.Growing<Message>
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
  counted: null,
  resolved: null,
  maximum: null,
  maximumRoute: "",
  level: 0,
  generation: 0,
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

/**
 * A session was opened: a compaction that was begun before and not ended will not be any more.
 *
 * @category events
 * @since 0.1.0
 */
export const Opened = Schema.TaggedStruct("Opened", { version: Schema.Natural })

/**
 * Messages came in, and some of their results were cut to size at once (`caps`). `price` is what they cost as they came, in
 * tokens.
 *
 * @category events
 * @since 0.1.0
 */
export const Appended = Schema.TaggedStruct("Appended", {
  messages: Schema.Array(Message),
  caps: Schema.Array(Decision.Cap),
  price: Schema.Struct({ system: Schema.Natural, messages: Schema.Natural })
})

/**
 * A boundary: decisions were taken. `told` is what was published of it, `memory` what its stages remember.
 *
 * @category events
 * @since 0.1.0
 */
export const Decided = Schema.TaggedStruct("Decided", {
  decisions: Schema.Array(Decision.Decision),
  memory: Stage.Memory,
  told: CompactionEvent.Compacted
})

/**
 * A pass decided nothing, or failed; its stages remember something else than before. `skipped` and `infeasible` are what was
 * published of it.
 *
 * @category events
 * @since 0.1.0
 */
export const Remembered = Schema.TaggedStruct("Remembered", {
  memory: Stage.Memory,
  skipped: Schema.NullOr(CompactionEvent.CompactionSkipped),
  infeasible: Schema.NullOr(CompactionEvent.Infeasible)
})

/**
 * A request was sent: what it asked for, what it counted, and the tail it had. `again`: it was the same request once more.
 *
 * @category events
 * @since 0.1.0
 */
export const Sent = Schema.TaggedStruct("Sent", {
  again: Schema.Boolean,
  asked: Asked,
  call: Call,
  counted: CompactionEvent.TokenCounted,
  resolved: CompactionEvent.BudgetResolved,
  tail: Tail.Memory,
  price: Schema.Natural,
  envelope: Schema.NullOr(Schema.Struct({ key: Schema.String, price: Schema.Natural }))
})

const used = Schema.optionalKey(Schema.Int)

/**
 * The provider billed an answer, in tokens as it said them; −1 stands for a number that is none. `beside`: it was not the
 * newest request that was answered. `window`: what the model is taken to hold; no more is believed.
 *
 * @category events
 * @since 0.1.0
 */
export const Billed = Schema.TaggedStruct("Billed", {
  usage: Schema.Struct({ total: used, uncached: used, cacheRead: used, cacheWrite: used }),
  output: Schema.Natural,
  beside: Schema.Boolean,
  window: Schema.Finite
})

/**
 * Nothing came of the last request: nothing of it counts as sent.
 *
 * @category events
 * @since 0.1.0
 */
export const Abandoned = Schema.TaggedStruct("Abandoned", {})

/**
 * The provider refused the last request because it does not fit: how many tokens it had and the most there may be, `null` for
 * what was not said or is not plausible. `window`: what the model is taken to hold.
 *
 * @category events
 * @since 0.1.0
 */
export const Refused = Schema.TaggedStruct("Refused", {
  tokens: Schema.NullOr(Schema.Natural),
  maximum: Schema.NullOr(Schema.Natural),
  window: Schema.Finite,
  call: Call
})

/**
 * The history was not the one seen before, or was rewound: its first `messages` messages stay, with what was decided before
 * the others came. `memory` is what the stages remember from here on.
 *
 * @category events
 * @since 0.1.0
 */
export const Dropped = Schema.TaggedStruct("Dropped", { messages: Schema.Natural, memory: Stage.Memory })

/**
 * A compaction that was asked for by hand began; `commandId` is of the command.
 *
 * @category events
 * @since 0.1.0
 */
export const CompactionStarted = Schema.TaggedStruct("CompactionStarted", { commandId: Schema.NullOr(Schema.String) })

/**
 * A summary was taken in, and waits for a boundary: its checkpoint, what it stands for, the text of the model, unframed,
 * and `raw`, as the model wrote it; and the evidence of the call.
 *
 * @category events
 * @since 0.1.0
 */
export const Summarised = Schema.TaggedStruct("Summarised", {
  checkpoint: Prompt.Message,
  seqs: Schema.Array(Schema.Natural),
  inPlace: Schema.Boolean,
  price: Schema.Natural,
  text: Schema.String,
  raw: Schema.String,
  ...Summarizer.Evidence.fields,
  commandId: Schema.NullOr(Schema.String)
})

/**
 * When the next summary is due has changed, or which one waits for a boundary.
 *
 * @category events
 * @since 0.1.0
 */
export const Paced = Schema.TaggedStruct("Paced", { pace: Refire.Pace, ready: Ready })

/**
 * A compaction that was asked for by hand ended; `reason` says why it did nothing, `null` where it did something.
 *
 * @category events
 * @since 0.1.0
 */
export const CompactionEnded = Schema.TaggedStruct("CompactionEnded", {
  commandId: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String)
})

/**
 * What the window holds from now on, by price in tokens: `tools` is what of a request is not in the prompt, `window` what the
 * model takes, `null` when nothing says.
 *
 * @category events
 * @since 0.1.0
 */
export const Held = Schema.TaggedStruct("Held", Figure.held)

/**
 * Of a request that was sent the beginnings it was laid out from are named; what of it the session has dropped since is kept
 * beside them.
 */
const SavedSent = Schema.NullOr(Schema.Struct({
  common: Schema.Struct({ messages: Schema.Natural, decisions: Schema.Natural }),
  messages: Schema.Array(Message),
  decisions: Schema.Array(Decision.Decision),
  entries: Schema.Natural,
  generation: Schema.Natural
}))

/**
 * A session that is saved: everything of its state.
 *
 * @category models
 * @since 0.1.0
 */
export const Saved = Schema.Struct({
  version: Schema.Literal(version),
  messages: Schema.Array(Message),
  decisions: Schema.Array(Decision.Decision),
  sent: SavedSent,
  unsent: Schema.NullOr(Schema.Struct({ tail: Tail.Memory, sent: SavedSent })),
  ...fields
})

/**
 * @category models
 * @since 0.1.0
 */
export type Saved = typeof Saved.Type

/**
 * The same as JSON.
 *
 * @category models
 * @since 0.1.0
 */
export const SavedJson = Schema.toCodecJson(Saved)

/**
 * Another session was put in place of this one.
 *
 * @category events
 * @since 0.1.0
 */
export const Restored = Schema.TaggedStruct("Restored", { session: Saved })

/**
 * @category events
 * @since 0.1.0
 */
export const Event = Schema.Union([
  Opened,
  Appended,
  Decided,
  Remembered,
  Sent,
  Billed,
  Abandoned,
  Refused,
  Dropped,
  Restored,
  CompactionStarted,
  Summarised,
  Paced,
  CompactionEnded,
  Held
]).pipe(Schema.toTaggedUnion("_tag"))

/**
 * @category events
 * @since 0.1.0
 */
export type Event = typeof Event.Type

const savedSent = (self: State, sent: SentRequest | null): typeof SavedSent.Type => {
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
export const save = (self: State): Saved => {
  const { decisions, messages, sent, unsent, ...rest } = self
  return {
    version,
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
export const load = (saved: Saved): State => {
  const { decisions: taken, messages: given, sent, unsent, version: _, ...rest } = saved
  const messages = Growing.from(given)
  const decisions = Growing.from(taken)
  const sentOf = (each: typeof SavedSent.Type): SentRequest | null =>
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

const entriesIn = (messages: ReadonlyArray<Message>): number =>
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

const send = (self: State, event: typeof Sent.Type): State => {
  const { entries, generation, tail } = self
  const { again, asked, call, counted, envelope, price, resolved } = event
  const isOpen = again && self.unsent !== null
  return {
    ...self,
    asked,
    call,
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

/** What stays of a session whose first messages stay. */
const drop = (self: State, { memory, messages: kept }: typeof Dropped.Type): State => {
  const dropped = Growing.after(self.messages, kept)
  const entries = self.entries - entriesIn(dropped)
  const isKept = (decision: Decision.Decision): boolean =>
    decision.at <= entries && !(decision._tag === "Absorb" && decision.checkpoint >= entries)
  const decisions = Growing.toArray(self.decisions)
  return {
    ...self,
    messages: Growing.take(self.messages, kept),
    decisions: decisions.every(isKept) ? self.decisions : Growing.from(decisions.filter(isKept)),
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

/**
 * The state after an event. It is total: an event that cannot follow is found by {@link faultOf} where a log is read.
 *
 * @category running
 * @since 0.1.0
 */
export const apply = (self: State, event: Event): State => {
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
    case "Decided":
      return {
        ...self,
        decisions: Growing.append(self.decisions, event.decisions),
        memory: event.memory,
        generation: self.generation + 1,
        level: Math.max(self.level, event.told.level),
        asked: null,
        lastBoundary: event.told
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
export const faultOf = (self: State, event: Event): string | undefined => {
  switch (event._tag) {
    case "Opened":
      return event.version === version
        ? undefined
        : `it is of version ${event.version}, and only ${version} is known here`
    case "Dropped":
      if (self.abridged !== null) return "it reaches behind the snapshot"
      return event.messages > self.messages.length ? "it keeps more than there is" : undefined
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
