/**
 * What is written of a session, and what follows from it.
 *
 * Everything that changes a session is an event: messages that came, decisions, what was billed, how a request was sent,
 * what was dropped, what the window holds, and the start, the record and the end of a compaction. The state of a session is a fold of its events,
 * so that it is the same in the process that wrote them and in one that reads them.
 *
 * **Details**
 *
 * The first event after each opening is `Opened`, with the version of the format. An event of an unknown kind makes a log
 * unreadable, unless it says of itself that it may be skipped (`"optional":true`).
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Decision from "./Decision.ts"
import * as Projection from "./Projection.ts"
import * as Abridge from "./session/abridge.ts"
import * as Summaries from "./session/summaries.ts"
import * as Tail from "./session/tail.ts"
import type * as SessionStore from "./SessionStore.ts"
import * as Stage from "./Stage.ts"
import * as Summarizer from "./Summarizer.ts"
import * as TokenMeter from "./TokenMeter.ts"
import * as Transcript from "./Transcript.ts"

/**
 * The version of the events that this library writes, and the newest that it reads.
 *
 * @category constants
 * @since 0.1.0
 */
export const version = 1

/**
 * A session was opened: a compaction that was begun before and not ended will not be any more.
 *
 * @category events
 * @since 0.1.0
 */
export const Opened = Schema.TaggedStruct("Opened", { version: Schema.Natural })

const Message = Schema.Struct({
  message: Prompt.Message,
  origin: Schema.Literals(["caller", "library", "runtime"])
})

/**
 * Messages came in, each with who put it there.
 *
 * @category events
 * @since 0.1.0
 */
export const Appended = Schema.TaggedStruct("Appended", { messages: Schema.Array(Message) })

/**
 * Decisions were taken.
 *
 * @category events
 * @since 0.1.0
 */
export const Decided = Schema.TaggedStruct("Decided", { decisions: Schema.Array(Decision.Decision) })

const Asked = Schema.NullOr(Schema.Struct({ entries: Schema.Natural, limit: Schema.Finite }))

const Ready = Schema.NullOr(Schema.Struct({
  checkpoint: Schema.Natural,
  seqs: Schema.Array(Schema.Natural),
  inPlace: Schema.Boolean
}))

const requestFields = {
  asked: Asked,
  maximum: Schema.NullOr(Schema.Natural),
  maximumRoute: Schema.String,
  memory: Stage.PassMemory,
  meter: TokenMeter.State,
  tail: Tail.Memory,
  sent: Schema.Natural,
  unsent: Schema.NullOr(Schema.Struct({ tail: Tail.Memory, sent: Schema.Natural })),
  pace: Summaries.Pace,
  ready: Ready
}

/**
 * Some of what requests and bills left behind is another than before; what is not named is as it was.
 *
 * **Details**
 *
 * - `asked`: what the last request asked for. `sent`: its generation. `tail`: what its notice announced. `unsent`: both, as
 *   they were before it, until something comes of it.
 * - `meter`: what was billed, and what is in flight. `maximum`, `maximumRoute`: what a provider said it takes at most.
 * - `memory`: of the passes. `pace`, `ready`: when the next summary is due, and the one that waits for a boundary.
 *
 * @category events
 * @since 0.1.0
 */
export const Changed = Schema.TaggedStruct("Changed", {
  asked: Schema.optionalKey(requestFields.asked),
  maximum: Schema.optionalKey(requestFields.maximum),
  maximumRoute: Schema.optionalKey(requestFields.maximumRoute),
  memory: Schema.optionalKey(requestFields.memory),
  meter: Schema.optionalKey(requestFields.meter),
  tail: Schema.optionalKey(requestFields.tail),
  sent: Schema.optionalKey(requestFields.sent),
  unsent: Schema.optionalKey(requestFields.unsent),
  pace: Schema.optionalKey(requestFields.pace),
  ready: Schema.optionalKey(requestFields.ready)
})

/**
 * The history was not the one seen before, or was rewound, or forgotten: the first `messages` messages and the first
 * `decisions` decisions stay.
 *
 * @category events
 * @since 0.1.0
 */
export const Dropped = Schema.TaggedStruct("Dropped", { messages: Schema.Natural, decisions: Schema.Natural })

/**
 * A compaction that was asked for by hand began; `commandId` is of the command.
 *
 * @category events
 * @since 0.1.0
 */
export const CompactionStarted = Schema.TaggedStruct("CompactionStarted", { commandId: Schema.NullOr(Schema.String) })

/**
 * A summary was taken in: the text of the model, unframed, and `raw`, as the model wrote it; what it stands for, and the
 * evidence of the call. Its checkpoint is the message of the `Appended` that follows.
 *
 * @category events
 * @since 0.1.0
 */
export const Summarised = Schema.TaggedStruct("Summarised", {
  seqs: Schema.Array(Schema.Natural),
  price: Schema.Natural,
  text: Schema.String,
  raw: Schema.String,
  ...Summarizer.Evidence.fields,
  commandId: Schema.NullOr(Schema.String)
})

/**
 * A compaction that was asked for by hand ended; `reason` says why it came to nothing, `null` where it did not.
 *
 * @category events
 * @since 0.1.0
 */
export const CompactionEnded = Schema.TaggedStruct("CompactionEnded", {
  commandId: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String)
})

/**
 * What the provider billed for an answer, in tokens: `input` is what was neither read from the cache nor written to it.
 * `beside`: it was not the newest request that was answered.
 *
 * @category events
 * @since 0.1.0
 */
export const Billed = Schema.TaggedStruct("Billed", {
  input: Schema.Natural,
  cacheRead: Schema.Natural,
  cacheWrite: Schema.Natural,
  output: Schema.Natural,
  beside: Schema.Boolean
})

/**
 * What the window holds from now on, by price in tokens: `tools` is what of a request is not in the prompt, `window` what
 * the model takes, `null` when nothing says. After a request it is what was laid out; what came since counts as it came,
 * before any repair.
 *
 * @category events
 * @since 0.1.0
 */
export const Held = Schema.TaggedStruct("Held", {
  system: Schema.Natural,
  tools: Schema.Natural,
  messages: Schema.Natural,
  checkpoints: Schema.Natural,
  window: Schema.NullOr(Schema.Finite)
})

/**
 * @category events
 * @since 0.1.0
 */
export const Event = Schema.Union([
  Opened,
  Appended,
  Decided,
  Changed,
  Dropped,
  CompactionStarted,
  Summarised,
  CompactionEnded,
  Billed,
  Held
]).pipe(Schema.toTaggedUnion("_tag"))

/**
 * @category events
 * @since 0.1.0
 */
export type Event = typeof Event.Type

/**
 * Fails when a log cannot be read: the file, the line from 1, and what is wrong with it. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionUnreadable extends Schema.TaggedError<SessionUnreadable>("effect-compaction/SessionUnreadable")(
  "SessionUnreadable",
  { path: Schema.String, line: Schema.Natural, reason: Schema.String }
) {
  override get message() {
    return `${this.path}, line ${this.line}: ${this.reason}. It may be of a newer version of this library, or not of it.`
  }
}

/**
 * A run of messages that a snapshot left out: before which of those that it holds they stood, how many there were, and how
 * many entries they made.
 *
 * @category models
 * @since 0.1.0
 */
export const Run = Schema.Struct({ before: Schema.Natural, messages: Schema.Natural, entries: Schema.Natural })

/**
 * @category models
 * @since 0.1.0
 */
export type Run = typeof Run.Type

const Abridged = Schema.NullOr(
  Schema.Struct({ runs: Schema.Array(Run), kept: Schema.Natural, counts: Decision.Counts })
)

/**
 * What the events of a log come to. It has one writer: {@link apply} changes it in place.
 *
 * **Details**
 *
 * - `messages`, `decisions`: those that stand, oldest first. `entries`: how many entries the messages make.
 * - `events`: how many events were taken in. `isCompacting`: whether a compaction was begun, by this opening, and has not
 *   ended. `figures`: see `Projection`.
 * - `abridged`: what a snapshot left out, since it is in no view any more: messages, and the decisions about them, which
 *   `counts` counts; it `kept` so many messages. `null` when everything is there.
 * - The rest is what `Changed` says.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  readonly messages: Array<typeof Message.Type>
  readonly decisions: Array<Decision.Decision>
  entries: number
  events: number
  isCompacting: boolean
  figures: Projection.Figures
  readonly abridged: typeof Abridged.Type
  asked: typeof Asked.Type
  maximum: number | null
  maximumRoute: string
  memory: Stage.PassMemory
  meter: TokenMeter.State
  tail: Tail.Memory
  sent: number
  unsent: { readonly tail: Tail.Memory; readonly sent: number } | null
  pace: Summaries.Pace
  ready: typeof Ready.Type
}

/**
 * Makes the state of a log that has no events.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): State => ({
  messages: [],
  decisions: [],
  entries: 0,
  events: 0,
  isCompacting: false,
  figures: Projection.figures.initial,
  abridged: null,
  asked: null,
  maximum: null,
  maximumRoute: "",
  memory: Stage.noMemory,
  meter: TokenMeter.empty,
  tail: Tail.noMemory,
  sent: 0,
  unsent: null,
  pace: Summaries.initialPace,
  ready: null
})

/** Why an event cannot follow what came before it, or `undefined`. */
const faultOf = (self: State, event: Event): string | undefined => {
  switch (event._tag) {
    case "Opened":
      return event.version > version
        ? `it is of version ${event.version}, and ${version} is the newest known here`
        : undefined
    case "Dropped":
      if (self.abridged !== null) return "it reaches behind the snapshot"
      return event.messages > self.messages.length || event.decisions > self.decisions.length
        ? "it keeps more than there is"
        : undefined
    case "Decided": {
      const most = (decision: Decision.Decision): number =>
        "seqs" in decision ? Math.max(-1, ...decision.seqs) : decision.seq
      return event.decisions.some((decision) => most(decision) >= self.entries)
        ? "it decides about entries that are not there"
        : undefined
    }
    default:
      return undefined
  }
}

/**
 * What an event is for the projections.
 *
 * @category converting
 * @since 0.1.0
 */
export const projected = (event: Event): ReadonlyArray<Projection.Event> => {
  switch (event._tag) {
    case "Billed": {
      const { _tag: _, ...bill } = event
      return [{ op: "billed", ...bill }]
    }
    case "Summarised": {
      const { input, output } = event
      if (input === null && output === null) return []
      return [{ op: "billed", input: input ?? 0, cacheRead: 0, cacheWrite: 0, output: output ?? 0, beside: true }]
    }
    case "Held": {
      const { checkpoints, messages, system, tools, window } = event
      return [{ op: "window", tokens: window }, { op: "header", system, tools }, { op: "held", messages, checkpoints }]
    }
    default:
      return []
  }
}

/**
 * Takes an event into a state, or says why it cannot follow; then nothing changes.
 *
 * @category running
 * @since 0.1.0
 */
export const apply = (self: State, event: Event): string | undefined => {
  const fault = faultOf(self, event)
  if (fault !== undefined) return fault
  self.events++
  self.figures = Projection.fold(Projection.figures, projected(event), self.figures)
  switch (event._tag) {
    case "Opened":
      self.isCompacting = false
      break
    case "Appended":
      for (const each of event.messages) {
        self.messages.push(each)
        self.entries += Transcript.entriesOf(each.message)
      }
      break
    case "Decided":
      for (const decision of event.decisions) self.decisions.push(decision)
      break
    case "Changed": {
      const { _tag: _, ...changes } = event
      Object.assign(self, changes)
      break
    }
    case "Dropped":
      for (let at = event.messages; at < self.messages.length; at++) {
        self.entries -= Transcript.entriesOf(self.messages[at]!.message)
      }
      self.messages.length = event.messages
      self.decisions.length = event.decisions
      break
    case "CompactionStarted":
      self.isCompacting = true
      break
    case "CompactionEnded":
      self.isCompacting = false
      break
    case "Summarised":
    case "Billed":
    case "Held":
      break
  }
  return undefined
}

const EventJson = Schema.toCodecJson(Event)

const StateJson = Schema.toCodecJson(Schema.Struct({
  messages: Schema.mutable(Schema.Array(Message)),
  decisions: Schema.mutable(Schema.Array(Decision.Decision)),
  entries: Schema.Natural,
  events: Schema.Natural,
  isCompacting: Schema.Boolean,
  figures: Projection.Figures,
  abridged: Abridged,
  ...requestFields
}))

const encodeEvent = Schema.encodeSync(EventJson)

/**
 * An event as JSON.
 *
 * @category converting
 * @since 0.1.0
 */
export const encode = (event: Event): Schema.Json => encodeEvent(event)

const decodeEvent = Schema.decodeUnknownResult(EventJson)

const known: ReadonlySet<string> = new Set(Object.keys(Event.cases))

/** Reads an event; `null` for one that may be skipped. */
const decode = (value: Schema.Json): Event | null | string => {
  const decoded = decodeEvent(value)
  if (decoded._tag === "Success") return decoded.success
  const tag = Predicate.hasProperty(value, "_tag") ? String(value._tag) : undefined
  if (tag === undefined) return "it is no event of a session"
  if (known.has(tag)) return `the event ${tag} is not as it should be: ${decoded.failure.message}`
  return Predicate.hasProperty(value, "optional") && value.optional === true ? null : `the event ${tag} is unknown`
}

/**
 * Folds what a store holds. `upTo` is called with each event and the state after it.
 *
 * @category running
 * @since 0.1.0
 */
export const fold = Effect.fnUntraced(function*(
  path: string,
  { events, lines, snapshot }: SessionStore.Contents,
  onEvent?: (event: Event, state: State) => void
): Effect.fn.Return<State, SessionUnreadable> {
  const restored = snapshot === null
    ? Option.none()
    : yield* Effect.option(Schema.decodeEffect(StateJson)(snapshot.state))
  if (snapshot !== null && Option.isNone(restored)) {
    return yield* new SessionUnreadable({ path, line: 0, reason: "its snapshot cannot be read" })
  }
  const state: State = Option.isSome(restored) ? { ...restored.value } : make()
  for (const [at, value] of events.entries()) {
    const event = decode(value)
    const fault = event === null || typeof event === "string" ? event : apply(state, event) ?? null
    if (fault !== null) return yield* new SessionUnreadable({ path, line: lines[at] ?? 0, reason: fault })
    if (event === null) state.events++
    else if (typeof event !== "string") onEvent?.(event, state)
  }
  return state
})

/**
 * The transcript of a state.
 *
 * @category converting
 * @since 0.1.0
 */
export const transcriptOf = (
  { abridged, messages }: Pick<State, "abridged"> & { readonly messages: ReadonlyArray<typeof Message.Type> },
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

/** Whether what came after a snapshot belongs to what it left out. */
const reachesBack = (state: State): boolean => {
  if (state.abridged === null) return false
  const { kept } = state.abridged
  const transcript = transcriptOf({ ...state, messages: state.messages.slice(0, kept) }, () => 0)
  return state.messages.slice(kept).some(({ message, origin }) => {
    if (Abridge.reachesBack(transcript, message)) return true
    Transcript.append(transcript, message, origin)
    return false
  })
}

/**
 * Reads the state of a session. A snapshot that cannot be read, or that later events reach behind, is left out: the log is
 * the truth.
 *
 * @category running
 * @since 0.1.0
 */
export const read = (
  store: SessionStore.Log
): Effect.Effect<State, SessionUnreadable | SessionStore.SessionStoreError | SessionStore.SessionCorrupt> =>
  Effect.flatMap(store.read(), (contents) => {
    if (contents.snapshot === null) return fold(store.name, contents)
    return Effect.matchEffect(fold(store.name, contents), {
      onFailure: () => readWhole(store),
      onSuccess: (state) => reachesBack(state) ? readWhole(store) : Effect.succeed(state)
    })
  })

/**
 * Reads the whole state of a session, or the one that it had after its first `events` events, whatever a snapshot leaves out.
 *
 * @category running
 * @since 0.1.0
 */
export const readWhole = (
  store: SessionStore.Log,
  events?: number
): Effect.Effect<State, SessionUnreadable | SessionStore.SessionStoreError | SessionStore.SessionCorrupt> =>
  Effect.flatMap(
    store.read({ whole: true }),
    (contents) => fold(store.name, { ...contents, events: contents.events.slice(0, events) })
  )

/**
 * Keeps a snapshot of a session, so that the next opening reads only what comes after it.
 *
 * **Details**
 *
 * It holds what the next views and decisions follow from: what is in the view, what people said, and counts of the rest. So
 * it is as large as a view and not as the session. Whatever asks for the rest, such as the history or a receipt, reads the
 * log.
 *
 * @category running
 * @since 0.1.0
 */
export const snapshot = (
  store: SessionStore.Log
): Effect.Effect<void, SessionUnreadable | SessionStore.WriteError | SessionStore.SessionCorrupt> =>
  Effect.flatMap(
    read(store),
    (state) =>
      Effect.flatMap(
        Effect.orDie(Schema.encodeEffect(StateJson)(Abridge.make(state, transcriptOf(state, () => 0)))),
        (encoded) => store.snapshot({ events: state.events, state: encoded })
      )
  )

/**
 * The events of a session up to entry `entry`, exclusive: a session of its own, whose view is the one that this one had
 * when that entry came. Entries that were dropped since are not counted.
 *
 * @category combining
 * @since 0.1.0
 */
export const fork = Effect.fnUntraced(function*(
  path: string,
  contents: SessionStore.Contents,
  entry: number
): Effect.fn.Return<ReadonlyArray<Schema.Json>, SessionUnreadable> {
  if (contents.snapshot !== null) {
    return yield* new SessionUnreadable({
      path,
      line: 0,
      reason: "what is before its snapshot was not read (whole: true)"
    })
  }
  const events: Array<Event> = []
  const counts: Array<number> = []
  const { entries } = yield* fold(path, contents, (event, state) => {
    events.push(event)
    counts.push(state.entries)
  })
  if (entry >= entries) return events.map(encode)
  // The last event before which the session had no more entries than that: later ones only add.
  let at = counts.length - 1
  while (at >= 0 && counts[at]! > entry) at--
  const kept = events.slice(0, at + 1)
  const next = events[at + 1]
  if (next?._tag === "Appended") {
    const messages: Array<typeof Message.Type> = []
    let count = at < 0 ? 0 : counts[at]!
    for (const each of next.messages) {
      count += Transcript.entriesOf(each.message)
      if (count > entry) break
      messages.push(each)
    }
    if (messages.length > 0) kept.push({ _tag: "Appended", messages })
  }
  return kept.map(encode)
})
