import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Store from "./log.ts"

/** A session in memory. Its events lie there as text, so that nobody else can change them. */
interface Session {
  readonly events: Array<string>
  snapshot: { readonly events: number; readonly state: string } | undefined
  /** How often it was opened: whoever opened it last may write. */
  epoch: number
}

type Sessions = Map<string, Session>

const nameOf = (id: string): string => `memory, ${id}`

// What was made of JSON is JSON.
const parsed = (text: string): Schema.Json => JSON.parse(text) as Schema.Json

const contentsOf = (self: Session, whole: boolean): Store.Contents => {
  const from = whole ? 0 : self.snapshot?.events ?? 0
  const events = self.events.slice(from).map(parsed)
  return {
    snapshot: whole || self.snapshot === undefined
      ? null
      : { events: self.snapshot.events, state: parsed(self.snapshot.state) },
    events,
    lines: events.map((_, at) => from + at + 1)
  }
}

const logOf = (id: string, self: Session): Store.Log => {
  const path = nameOf(id)
  const epoch = ++self.epoch
  const owned = <A>(use: Effect.Effect<A, Store.SessionStoreError>): Effect.Effect<A, Store.WriteError> =>
    Effect.suspend((): Effect.Effect<A, Store.WriteError> =>
      self.epoch === epoch ? use : Effect.fail(new Store.SessionLost({ path, by: "a later opening in this process" }))
    )
  return {
    name: path,
    repair: null,
    append: (events) =>
      owned(
        Effect.map(Effect.forEach(events, (event) => Store.textOf("append", path, event)), (texts) => {
          for (const text of texts) self.events.push(text)
        })
      ),
    read: ({ whole = false } = {}) => Effect.sync(() => contentsOf(self, whole)),
    flush: owned(Effect.void),
    snapshot: ({ events, state }) =>
      owned(
        Effect.map(Store.textOf("snapshot", path, state), (text) => {
          // A state of an earlier moment has no place in the log from which to go on.
          if (events === self.events.length) self.snapshot = { events, state: text }
        })
      )
  }
}

const open = (
  self: Sessions,
  id: string
): Effect.Effect<Store.Log, never, Scope.Scope> =>
  Effect.suspend(() => {
    const session = self.get(id) ?? { events: [], snapshot: undefined, epoch: 0 }
    self.set(id, session)
    return Store.guarded(logOf(id, session))
  })

export const make: Effect.Effect<Store.SessionStore["Service"]> = Effect.sync(() => {
  const self: Sessions = new Map()
  return {
    open: (id) => open(self, id),
    read: (id) =>
      Effect.suspend(() => {
        const session = self.get(id)
        return session === undefined
          ? Effect.fail(new Store.SessionNotFound({ path: nameOf(id) }))
          : Effect.succeed({ ...contentsOf(session, true), path: nameOf(id), torn: 0 })
      }),
    list: Effect.sync(() => [...self.keys()])
  }
})
