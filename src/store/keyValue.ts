import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Lines from "./lines.ts"
import * as Store from "./log.ts"
import * as Name from "./name.ts"
import * as SnapshotText from "./snapshotText.ts"

const Saved = Schema.Struct({ events: Schema.Natural, batches: Schema.Natural, state: Schema.Json })

/** How many batches and events there are, and how often the session was opened. */
interface Head {
  readonly batches: number
  readonly events: number
  readonly epoch: number
}

interface Session {
  readonly kv: KeyValueStore.KeyValueStore
  readonly path: string
}

type KvError = KeyValueStore.KeyValueStoreError

const failed = (self: Session, operation: Store.SessionStoreError["operation"]) => (error: KvError) =>
  new Store.SessionStoreError({ operation, path: self.path, reason: error.message })

const keyOf = (batch: number): string => `log/${String(batch).padStart(12, "0")}`

const headOf = ({ kv }: Session): Effect.Effect<Head | undefined, KvError> =>
  Effect.map(kv.get("head"), (text) => {
    if (text === undefined) return undefined
    const [batches = 0, events = 0, epoch = 0] = text.split(" ").map(Number)
    return { batches, events, epoch }
  })

const setHead = ({ kv }: Session, { batches, epoch, events }: Head): Effect.Effect<void, KvError> =>
  kv.set("head", `${batches} ${events} ${epoch}`)

/** The batches from one on; `line` is said of what is wrong. */
const readFrom = Effect.fnUntraced(function*(self: Session, from: number, head: Head) {
  const events: Array<Schema.Json> = []
  const lines: Array<number> = []
  for (let batch = from; batch < head.batches; batch++) {
    const text = yield* Effect.mapError(self.kv.get(keyOf(batch)), failed(self, "read"))
    const found = text === undefined ? undefined : Lines.decode(new TextEncoder().encode(text.trimEnd()))
    if (found === undefined) {
      return yield* new Store.SessionCorrupt({
        path: self.path,
        line: batch + 1,
        reason: `${keyOf(batch)} is damaged or gone`
      })
    }
    for (const event of found.events) {
      events.push(event)
      lines.push(batch + 1)
    }
  }
  return { events, lines }
})

/** The newest snapshot, if it agrees with the log; of one that is there and does not, something is said. */
const newest = Effect.fnUntraced(function*(self: Session, head: Head) {
  const text = yield* Effect.mapError(self.kv.get("snapshot"), failed(self, "read"))
  if (text === undefined) return undefined
  const found = Schema.decodeUnknownOption(Saved)(SnapshotText.decode(new TextEncoder().encode(text)))
  if (Option.isSome(found) && found.value.events <= head.events) return found.value
  yield* Effect.logWarning("the snapshot of a session is damaged: it is read from its log", { path: self.path })
  return undefined
})

const logOf = (self: Session, opened: Head): Store.Log => {
  const { kv, path } = self
  let known = opened
  /** The head is read before each write: it tells when somebody else opened the session. */
  const owned = <A>(operation: Store.SessionStoreError["operation"], use: Effect.Effect<A, KvError>) =>
    Effect.gen(function*() {
      const head = yield* Effect.mapError(headOf(self), failed(self, operation))
      if (head?.epoch !== known.epoch) {
        return yield* new Store.SessionLost({ path, by: `opening ${head?.epoch ?? 0} of it` })
      }
      return yield* Effect.mapError(use, failed(self, operation))
    })
  return {
    name: path,
    repair: null,
    append: (events) =>
      Effect.flatMap(Store.textOf("append", path, events), (text) =>
        owned(
          "append",
          Effect.gen(function*() {
            const next = { ...known, batches: known.batches + 1, events: known.events + events.length }
            yield* kv.set(keyOf(known.batches), Lines.line(known.events, text))
            yield* setHead(self, next)
            known = next
          })
        )),
    read: Effect.fnUntraced(function*({ whole = false } = {}) {
      const saved = whole ? undefined : yield* newest(self, known)
      const found = yield* readFrom(self, saved?.batches ?? 0, known)
      return { snapshot: saved === undefined ? null : { events: saved.events, state: saved.state }, ...found }
    }),
    flush: owned("flush", Effect.void),
    snapshot: (snapshot) =>
      Effect.suspend(() => {
        // A state of an earlier moment has no place in the log from which to go on.
        if (snapshot.events !== known.events) return Effect.void
        const saved: typeof Saved.Type = { ...snapshot, batches: known.batches }
        return Effect.flatMap(
          Store.textOf("snapshot", path, saved),
          (text) => owned("snapshot", kv.set("snapshot", SnapshotText.encode(text)))
        )
      })
  }
}

const open = Effect.fnUntraced(function*(
  self: Session
): Effect.fn.Return<Store.Log, Store.SessionStoreError, Scope.Scope> {
  const { batches, epoch, events } = (yield* Effect.mapError(headOf(self), failed(self, "open")))
    ?? { batches: 0, events: 0, epoch: 0 }
  const head = { batches, events, epoch: epoch + 1 }
  yield* Effect.mapError(setHead(self, head), failed(self, "open"))
  return yield* Store.guarded(logOf(self, head))
})

const read = Effect.fnUntraced(function*(self: Session) {
  const head = yield* Effect.mapError(headOf(self), failed(self, "read"))
  if (head === undefined) return yield* new Store.SessionNotFound({ path: self.path })
  return { snapshot: null, ...(yield* readFrom(self, 0, head)), path: self.path, torn: 0 }
})

export const make = (
  prefix: string
): Effect.Effect<Store.SessionStore["Service"], never, KeyValueStore.KeyValueStore> =>
  Effect.map(KeyValueStore.KeyValueStore, (all) => {
    const sessionOf = (id: string): Session => {
      const place = `${prefix}${Name.ofId(id)}/`
      return { kv: KeyValueStore.prefix(all, place), path: `key-value store, ${place}` }
    }
    return {
      open: (id) => open(sessionOf(id)),
      read: (id) => read(sessionOf(id)),
      list: Effect.fail(
        new Store.SessionStoreError({
          operation: "list",
          path: `key-value store, ${prefix}`,
          reason: "a key-value store does not tell its keys"
        })
      )
    }
  })
