import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as CompactionEvent from "../CompactionEvent.ts"
import * as Session from "../Session.ts"
import type * as SessionStore from "../SessionStore.ts"
import * as Abridge from "./abridge.ts"
import * as Commit from "./commit.ts"
import * as Runtime from "./runtime.ts"

/**
 * One operation on a session, from its first change to its commit. Until then all of it is here: an operation that is
 * interrupted, or dies, has done nothing.
 *
 * - `state`: the session with the events of this turn. `told`: what is published of it, in order; `due`: what of that is
 *   published once the events are written. `summaries`: how many summaries were asked for inside this turn, and until when it
 *   may wait for them, in milliseconds of the clock.
 */
export interface Turn {
  readonly runtime: Runtime.Runtime
  readonly before: Session.State
  state: Session.State
  readonly events: Array<Session.Event>
  readonly told: Array<CompactionEvent.CompactionEvent>
  readonly due: Array<CompactionEvent.CompactionEvent>
  readonly summaries: { asked: number; deadline: number }
}

export const make = (runtime: Runtime.Runtime): Turn => ({
  runtime,
  before: runtime.state,
  state: runtime.state,
  events: [],
  told: [],
  due: [],
  summaries: { asked: 0, deadline: 0 }
})

/** Takes an event into the turn. */
export const take = (self: Turn, event: Session.Event): void => {
  self.state = Session.apply(self.state, event)
  self.events.push(event)
}

/** Notes what is published when the turn is committed. */
export const tell = (self: Turn, event: CompactionEvent.CompactionEvent): void => {
  self.told.push(event)
  self.due.push(event)
}

/** Publishes what cannot wait for the commit: that a summary is being written. */
export const say = (self: Turn, event: CompactionEvent.CompactionEvent): Effect.Effect<void> => {
  self.told.push(event)
  return Commit.publish(self.runtime, event)
}

/** Writes what the turn did. */
export const commit = (self: Turn): Effect.Effect<void, SessionStore.SessionLost> =>
  Effect.suspend(() => {
    if (self.events.length === 0 && self.due.length === 0 && self.runtime.pending.length === 0) return Effect.void
    return Commit.commit(self.runtime, { state: self.state, events: self.events, told: self.due.splice(0) })
  })

/**
 * Runs an operation on the session, alone. A session that another process has taken over does nothing any more.
 */
export const exclusively = <A, E, R>(
  runtime: Runtime.Runtime,
  operation: (turn: Turn) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | SessionStore.SessionLost, R> =>
  Semaphore.withPermit(
    runtime.lock,
    Effect.suspend((): Effect.Effect<A, E | SessionStore.SessionLost, R> => {
      if (runtime.lost !== undefined) return Effect.fail(runtime.lost)
      if (!runtime.keepsCaches) runtime.caches = Runtime.noCaches()
      return operation(make(runtime))
    })
  )

/** Runs an operation that changes the session, and commits what it did. */
export const changing = <A, E, R>(
  runtime: Runtime.Runtime,
  operation: (turn: Turn) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | SessionStore.SessionLost, R> =>
  exclusively(runtime, (turn) => Effect.tap(operation(turn), () => commit(turn)))

/**
 * Reads what a snapshot left out, for whatever asks about more than the next view. It says the same and more, so it is no
 * event.
 */
export const whole = (self: Turn): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { runtime } = self
    const { codec } = runtime
    if (codec === undefined || self.state.abridged === null) return Effect.void
    return Effect.map(codec.whole, (state) => {
      const isBegun = self.state !== runtime.state
      runtime.state = Abridge.undo(runtime.state, state)
      self.state = isBegun ? Abridge.undo(self.state, state) : runtime.state
      runtime.caches.layout = undefined
      runtime.caches.sent = undefined
    })
  })
