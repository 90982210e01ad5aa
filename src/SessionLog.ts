/**
 * The log of a session: its events as JSON, and how they are read again.
 *
 * A `SessionStore` keeps the events and knows nothing of what they mean; `Session` says what they mean; this module reads and
 * writes them, keeps snapshots so that opening does not read everything, and forks.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Session from "./Session.ts"
import * as Abridge from "./session/abridge.ts"
import * as Growing from "./session/growing.ts"
import type * as SessionStore from "./SessionStore.ts"
import * as Transcript from "./Transcript.ts"

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
    return `${this.path}, line ${this.line}: ${this.reason}. It may be of another version of this library, or not of it.`
  }
}

/**
 * Why a log cannot be read: its store, its middle, or its meaning.
 *
 * @category errors
 * @since 0.1.0
 */
export type ReadError = SessionUnreadable | SessionStore.SessionStoreError | SessionStore.SessionCorrupt

const EventJson = Schema.toCodecJson(Session.Event)

const encodeEvent = Schema.encodeSync(EventJson)

/**
 * An event as JSON.
 *
 * @category converting
 * @since 0.1.0
 */
export const encode = (event: Session.Event): Schema.Json => encodeEvent(event)

const decodeEvent = Schema.decodeUnknownResult(EventJson)

const known: ReadonlySet<string> = new Set(Object.keys(Session.Event.cases))

/** Reads an event; `null` for one that may be skipped. */
const decode = (value: Schema.Json): Session.Event | null | string => {
  const tag = Predicate.hasProperty(value, "_tag") ? String(value._tag) : undefined
  if (tag === undefined) return "it is no event of a session"
  // Of another version nothing is known but this.
  if (tag === "Opened" && Predicate.hasProperty(value, "version") && value.version !== Session.version) {
    return `it is of version ${String(value.version)}, and only ${Session.version} is known here`
  }
  const decoded = decodeEvent(value)
  if (decoded._tag === "Success") return decoded.success
  if (known.has(tag)) return `the event ${tag} is not as it should be: ${decoded.failure.message}`
  return Predicate.hasProperty(value, "optional") && value.optional === true ? null : `the event ${tag} is unknown`
}

/**
 * A session that was read: its state, and how many events of its log were taken in.
 *
 * @category models
 * @since 0.1.0
 */
export interface Read {
  readonly state: Session.State
  readonly events: number
}

/**
 * Folds what a store holds. `onEvent` is called with each event and the state after it.
 *
 * @category running
 * @since 0.1.0
 */
export const fold = Effect.fnUntraced(function*(
  path: string,
  { events, lines, snapshot }: SessionStore.Contents,
  onEvent?: (event: Session.Event, state: Session.State) => void
): Effect.fn.Return<Read, SessionUnreadable> {
  const restored = snapshot === null
    ? Option.none()
    : yield* Effect.option(Schema.decodeEffect(Session.SavedJson)(snapshot.state))
  if (snapshot !== null && Option.isNone(restored)) {
    return yield* new SessionUnreadable({ path, line: 0, reason: "its snapshot cannot be read" })
  }
  let state = Option.isSome(restored) ? Session.load(restored.value) : Session.initial
  for (const [at, value] of events.entries()) {
    const event = decode(value)
    if (event === null) continue
    const fault = typeof event === "string" ? event : Session.faultOf(state, event)
    if (fault !== undefined || typeof event === "string") {
      return yield* new SessionUnreadable({ path, line: lines[at] ?? 0, reason: fault ?? "" })
    }
    state = Session.apply(state, event)
    onEvent?.(event, state)
  }
  return { state, events: (snapshot?.events ?? 0) + events.length }
})

/**
 * Reads a session. A snapshot that cannot be read, or that later events reach behind, is left out: the log is the truth.
 *
 * @category running
 * @since 0.1.0
 */
export const read = (log: SessionStore.Log): Effect.Effect<Read, ReadError> =>
  Effect.flatMap(log.read(), (contents) => {
    if (contents.snapshot === null) return fold(log.name, contents)
    return Effect.matchEffect(fold(log.name, contents), {
      onFailure: () => readWhole(log),
      onSuccess: (found) => Abridge.isReachedBack(found.state) ? readWhole(log) : Effect.succeed(found)
    })
  })

/**
 * Reads a whole session, or what it was after its first `events` events, whatever a snapshot leaves out.
 *
 * @category running
 * @since 0.1.0
 */
export const readWhole = (log: SessionStore.Log, events?: number): Effect.Effect<Read, ReadError> =>
  Effect.flatMap(
    log.read({ whole: true }),
    (contents) => fold(log.name, { ...contents, events: contents.events.slice(0, events) })
  )

/**
 * Keeps a snapshot of a session, so that the next opening reads only what comes after it.
 *
 * **Details**
 *
 * It holds what the next views and decisions follow from: what is in the view, what people said, and counts of the rest. So
 * it is as large as a view and not as the session. Whatever asks for the rest, such as the history or a receipt, reads the
 * log. Right after a compaction by hand, before the next request, a snapshot holds the whole session: the request that
 * counts as sent is in it still.
 *
 * @category running
 * @since 0.1.0
 */
export const snapshot = (log: SessionStore.Log): Effect.Effect<void, ReadError | SessionStore.SessionLost> =>
  Effect.flatMap(read(log), ({ events, state }) =>
    Effect.flatMap(
      Effect.orDie(Schema.encodeEffect(Session.SavedJson)(Session.save(Abridge.make(state)))),
      (encoded) => log.snapshot({ events, state: encoded })
    ))

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
  const events: Array<Session.Event> = []
  const states: Array<Session.State> = []
  const { state: { entries } } = yield* fold(path, contents, (event, state) => {
    events.push(event)
    states.push(state)
  })
  if (entry >= entries) return events.map(encode)
  // The last event before which the session had no more entries than that: later ones only add.
  let at = states.length - 1
  while (at >= 0 && states[at]!.entries > entry) at--
  const kept = events.slice(0, at + 1)
  const next = events[at + 1]
  if (next?._tag === "Appended") {
    const part = beginning(next, entry - (at < 0 ? 0 : states[at]!.entries))
    if (part !== undefined) kept.push(part)
  }
  return kept.map(encode)
})

/** What came in, up to a number of entries; `undefined` for nothing. */
const beginning = (
  { caps, messages, price }: typeof Session.Appended.Type,
  entries: number
): typeof Session.Appended.Type | undefined => {
  const kept: Array<Session.Message> = []
  let count = 0
  for (const each of messages) {
    count += Transcript.entriesOf(each.message)
    if (count > entries) break
    kept.push(each)
  }
  if (kept.length === 0) return undefined
  const before = caps.length === 0
    ? 0
    : caps[0]!.at - messages.reduce((sum, each) => sum + Transcript.entriesOf(each.message), 0)
  const most = before + kept.reduce((sum, each) => sum + Transcript.entriesOf(each.message), 0)
  return { _tag: "Appended", messages: kept, caps: caps.filter(({ seq }) => seq < most), price }
}

/**
 * The whole transcript of a state; what a snapshot left out is counted and not held.
 *
 * @category converting
 * @since 0.1.0
 */
export const transcriptOf = (
  { abridged, messages }: Pick<Session.State, "abridged" | "messages">,
  priceOf: Transcript.PriceOf
): Transcript.Transcript => Abridge.transcriptOf(abridged, Growing.toArray(messages), priceOf)
