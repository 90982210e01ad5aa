import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { reasonOf } from "../text/reason.ts"

const closed = "it was closed"

/**
 * Fails when a store cannot do what it was asked for; nothing of an append that failed is kept.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionStoreError extends Schema.TaggedError<SessionStoreError>("effect-compaction/SessionStoreError")(
  "SessionStoreError",
  {
    operation: Schema.Literals(["open", "read", "list", "append", "flush", "snapshot"]),
    path: Schema.String,
    reason: Schema.String
  }
) {
  override get message() {
    return `The session in ${this.path} cannot ${this.operation}: ${this.reason}. ${
      this.reason === closed
        ? "Keep the scope in which it was opened open for as long as it is used."
        : "See to that place, or give SessionStore another one."
    }`
  }
}

/**
 * Fails when a session is open already. `pid`, `host` and `since` tell by whom; `isCertain` is `false` where nothing here
 * can tell whether that process still runs, and then a person must.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionLocked extends Schema.TaggedError<SessionLocked>("effect-compaction/SessionLocked")(
  "SessionLocked",
  { path: Schema.String, pid: Schema.Int, host: Schema.String, since: Schema.String, isCertain: Schema.Boolean }
) {
  override get message() {
    const holder = `process ${this.pid} on ${this.host} since ${this.since}`
    return this.isCertain
      ? `The session is open in ${holder}. Close it there; if that process is gone, remove ${this.path}.`
      : `The session is open in ${holder}, and nothing here can tell whether that process still runs. Close it there, or `
        + `remove ${this.path} if you know that it is gone.`
  }
}

/**
 * Fails when a log is damaged in its middle: the line, from 1, and what is wrong with it. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionCorrupt extends Schema.TaggedError<SessionCorrupt>("effect-compaction/SessionCorrupt")(
  "SessionCorrupt",
  { path: Schema.String, line: Schema.Natural, reason: Schema.String }
) {
  override get message() {
    return `${this.path}, line ${this.line}: ${this.reason}. Restore the file from a copy, or cut it before this line.`
  }
}

/**
 * Fails when a session was opened by somebody else after it was opened here: it is theirs now, and nothing more of this
 * one is written. `by` says who has it, as far as the store can tell.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionLost extends Schema.TaggedError<SessionLost>("effect-compaction/SessionLost")("SessionLost", {
  path: Schema.String,
  by: Schema.String
}) {
  /** Beside the `reason` of a store that failed, for what tells of both. */
  get reason() {
    return `it is not this one's any more: ${this.by} has it`
  }
  override get message() {
    return `The session in ${this.path} cannot be written: ${this.reason}. Nothing of this call was written. `
      + "Go on there, or open the session again (ContextManager.open), which takes it back."
  }
}

/**
 * Fails when a session is read that was never opened.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionNotFound extends Schema.TaggedError<SessionNotFound>("effect-compaction/SessionNotFound")(
  "SessionNotFound",
  { path: Schema.String }
) {
  override get message() {
    return `There is no session in ${this.path}. Check the id and the place that SessionStore was given; opening makes it.`
  }
}

/**
 * Why a session cannot be opened.
 *
 * @category errors
 * @since 0.1.0
 */
export type OpenError = SessionStoreError | SessionLocked | SessionCorrupt

/**
 * Why nothing can be written to a session that is open.
 *
 * @category errors
 * @since 0.1.0
 */
export type WriteError = SessionStoreError | SessionLost

/**
 * What was cut off the end of a log when it was opened: from which line, how many bytes, and the file that keeps them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Repair {
  readonly path: string
  readonly line: number
  readonly bytes: number
  readonly kept: string | null
}

/**
 * The state of a session after its first `events` events, as `SessionLog` makes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Snapshot {
  readonly events: number
  readonly state: Schema.Json
}

/**
 * What a store holds: the newest snapshot that agrees with the log, if there is one, and the events after it, or all.
 * `lines` are where each of them lies, from 1, for what is said of them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Contents {
  readonly snapshot: Snapshot | null
  readonly events: ReadonlyArray<Schema.Json>
  readonly lines: ReadonlyArray<number>
}

/**
 * A session as it is read without being opened, from its start: `path` is what is said of it in an error, and `torn` how
 * many bytes at its end count for nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reading extends Contents {
  readonly path: string
  readonly torn: number
}

/**
 * The log of one session that is open.
 *
 * **Details**
 *
 * - `name`: what is said of it in an error. `repair`: what was cut off when it was opened.
 * - `append`: adds events, all or none. When it returns they are in the log; {@link Log.flush} makes them outlive the
 *   machine. An empty list does nothing. It runs to its end once it has begun, interrupted or not.
 * - `read`: from the newest snapshot on; `whole` reads the log from its start.
 * - `snapshot`: keeps a state beside the log. It is a shortcut: the log alone says what holds.
 *
 * @category models
 * @since 0.1.0
 */
export interface Log {
  readonly name: string
  readonly repair: Repair | null
  readonly append: (events: ReadonlyArray<Schema.Json>) => Effect.Effect<void, WriteError>
  readonly read: (options?: { readonly whole?: boolean }) => Effect.Effect<Contents, SessionStoreError | SessionCorrupt>
  readonly flush: Effect.Effect<void, WriteError>
  readonly snapshot: (snapshot: Snapshot) => Effect.Effect<void, WriteError>
}

/**
 * Where sessions are kept, each by the id of its conversation. Every string is an id.
 *
 * **Details**
 *
 * - `open`: opens a session for writing, and makes it where there is none; the scope closes it. A session has one writer:
 *   opening one that is open fails ({@link SessionLocked}), or takes it from whoever has it, whose next write then fails
 *   ({@link SessionLost}). Which of the two is up to the kind of store.
 * - `read`: reads one from its start without opening it: nothing is locked, taken or repaired.
 * - `list`: the ids of all sessions, in no order. A kind of store that cannot tell them fails.
 *
 * @category services
 * @since 0.1.0
 */
export class SessionStore extends Context.Service<SessionStore, {
  readonly open: (id: string) => Effect.Effect<Log, OpenError, Scope.Scope>
  readonly read: (id: string) => Effect.Effect<Reading, SessionStoreError | SessionCorrupt | SessionNotFound>
  readonly list: Effect.Effect<ReadonlyArray<string>, SessionStoreError>
}>()("effect-compaction/SessionStore") {}

interface Gate {
  readonly path: string
  readonly mutex: Semaphore.Semaphore
  isClosed: boolean
  lost: SessionLost | undefined
}

/** Runs an operation alone and to its end; never after the log was closed, nor after it was lost. */
const pass = <A, E>(
  self: Gate,
  operation: SessionStoreError["operation"],
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E | SessionStoreError> =>
  Semaphore.withPermit(
    self.mutex,
    Effect.uninterruptible(
      Effect.suspend((): Effect.Effect<A, E | SessionStoreError> =>
        self.isClosed ? Effect.fail(new SessionStoreError({ operation, path: self.path, reason: closed })) : effect
      )
    )
  )

const write = <A>(self: Gate, operation: SessionStoreError["operation"], effect: Effect.Effect<A, WriteError>) =>
  pass(
    self,
    operation,
    Effect.suspend((): Effect.Effect<A, WriteError> =>
      self.lost !== undefined ?
        Effect.fail(self.lost) :
        Effect.tapErrorTag(effect, "SessionLost", (lost) =>
          Effect.sync(() => {
            self.lost = lost
          }))
    )
  )

/**
 * A log whose operations run one at a time and to their end, that does nothing once its scope is closed, and writes nothing
 * more once it was lost.
 */
export const guarded = Effect.fnUntraced(function*(log: Log): Effect.fn.Return<Log, never, Scope.Scope> {
  const self: Gate = { path: log.name, mutex: yield* Semaphore.make(1), isClosed: false, lost: undefined }
  // Whatever runs ends first.
  yield* Effect.addFinalizer(() =>
    Semaphore.withPermit(
      self.mutex,
      Effect.sync(() => {
        self.isClosed = true
      })
    )
  )
  return {
    name: log.name,
    repair: log.repair,
    append: (events) => events.length === 0 ? Effect.void : write(self, "append", log.append(events)),
    read: (options) => pass(self, "read", log.read(options)),
    flush: write(self, "flush", log.flush),
    snapshot: (snapshot) => write(self, "snapshot", log.snapshot(snapshot))
  }
})

/** The text of what is to be written; what JSON cannot hold is refused before anything is. */
export const textOf = (
  operation: SessionStoreError["operation"],
  path: string,
  value: Schema.Json | ReadonlyArray<Schema.Json>
): Effect.Effect<string, SessionStoreError> =>
  Effect.try({
    try: () => JSON.stringify(value),
    catch: (error) =>
      new SessionStoreError({ operation, path, reason: `what was given is no JSON (${reasonOf(error)})` })
  })
