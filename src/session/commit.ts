import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as PubSub from "effect/PubSub"
import * as Schedule from "effect/Schedule"
import type * as CompactionEvent from "../CompactionEvent.ts"
import type * as Session from "../Session.ts"
import type * as SessionStore from "../SessionStore.ts"
import * as Runtime from "./runtime.ts"
import * as Telemetry from "./telemetry.ts"

/** Publishes an event now. */
export const publish = (self: Runtime.Runtime, event: CompactionEvent.CompactionEvent): Effect.Effect<void> =>
  Effect.andThen(Telemetry.record(event), Effect.asVoid(PubSub.publish(self.hub, event)))

/**
 * Writes the events that wait. The append runs in a fiber of its own that nobody interrupts: whoever waits for it may be
 * interrupted and come back, and finds it under way or done, so that nothing is written twice.
 */
export const write = (self: Runtime.Runtime): Effect.Effect<void, SessionStore.WriteError> =>
  Effect.suspend(() => {
    const { log, writing } = self
    if (log === undefined || (writing === undefined && self.pending.length === 0)) return Effect.void
    if (writing !== undefined) return Effect.andThen(Effect.exit(Fiber.join(writing.fiber)), write(self))
    const batch = self.pending.slice()
    const append = log.append(batch).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          self.writing = undefined
          if (Exit.isSuccess(exit)) self.pending.splice(0, batch.length)
        })
      ),
      Effect.uninterruptible
    )
    return Effect.flatMap(Effect.forkDetach(append), (fiber) => {
      // A store that needs no time is done already.
      if (fiber.pollUnsafe() === undefined) self.writing = { fiber }
      return Fiber.join(fiber)
    })
  })

/** How a turn waits for a store that fails, where it is asked to: longer each time, and at most half a minute at once. */
const patience = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("30 seconds")])

/** What is written, what the state is then, and what is published once it is. */
export interface Change {
  readonly state: Session.State
  readonly events: ReadonlyArray<Session.Event>
  readonly told: ReadonlyArray<CompactionEvent.CompactionEvent>
}

const install = (self: Runtime.Runtime, { state, told }: Change): Effect.Effect<void> => {
  self.state = state
  return Effect.andThen(Effect.forEach(told, (event) => publish(self, event), { discard: true }), Runtime.changed(self))
}

const lose = (self: Runtime.Runtime, error: SessionStore.SessionLost): SessionStore.SessionLost => {
  self.lost = error
  self.pending.length = 0
  return error
}

/**
 * Appends events to the log, then the state is what follows from them, then subscribers are told. Nothing can come between.
 *
 * While a store fails the turn goes on, and what could not be written waits in order; or it waits for the store. A session
 * that another process has taken over changes no more.
 */
export const commit = (self: Runtime.Runtime, change: Change): Effect.Effect<void, SessionStore.SessionLost> =>
  Effect.uninterruptible(Effect.suspend(() => {
    const { codec } = self
    if (codec === undefined) return install(self, change)
    for (const event of change.events) self.pending.push(codec.encode(event))
    const waiting = self.whenStoreFails === "wait"
      ? Effect.retry(write(self), { schedule: patience, while: (error) => error._tag !== "SessionLost" })
      : write(self)
    return Effect.matchEffect(waiting, {
      onSuccess: () => install(self, change),
      onFailure: (error) =>
        error._tag === "SessionLost"
          ? Effect.fail(lose(self, error))
          : Effect.andThen(
            install(self, change),
            publish(self, { _tag: "SessionNotStored", events: self.pending.length, reason: error.reason })
          )
    })
  }))

/** Appends events, or changes nothing: what cannot be written does not wait. */
export const commitNow = (self: Runtime.Runtime, change: Change): Effect.Effect<void, SessionStore.WriteError> =>
  Effect.uninterruptible(Effect.suspend(() => {
    const { codec } = self
    if (codec === undefined) return install(self, change)
    const before = self.pending.length
    for (const event of change.events) self.pending.push(codec.encode(event))
    return Effect.matchEffect(write(self), {
      onSuccess: () => install(self, change),
      onFailure: (error) => {
        if (error._tag !== "SessionLost") self.pending.length = before
        return Effect.fail(error._tag === "SessionLost" ? lose(self, error) : error)
      }
    })
  }))
