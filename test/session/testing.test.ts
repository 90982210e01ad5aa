/** The checks for stores of others bite: each store that breaks a promise is found. */
import { assert, describe, it } from "@effect/vitest"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Testing from "effect-compaction/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"

type Service = SessionStore.SessionStore["Service"]

const spoiled = (spoil: (log: SessionStore.Log, store: Service) => SessionStore.Log, ids = (id: string) => id) =>
  Layer.effect(
    SessionStore.SessionStore,
    Effect.map(SessionStore.makeMemory, (store) => ({
      ...store,
      open: (id) => Effect.map(store.open(ids(id)), (log) => spoil(log, store)),
      read: (id) => store.read(ids(id))
    }))
  )

const unguarded = Layer.effect(
  SessionStore.SessionStore,
  Effect.map(SessionStore.makeMemory, (store) => ({
    ...store,
    // The scope of an opening never ends.
    open: (id) => Effect.scopedWith(() => Effect.flatMap(Scope.make(), (scope) => Scope.provide(store.open(id), scope)))
  } satisfies Service))
)

const stores: ReadonlyArray<readonly [string, Layer.Layer<SessionStore.SessionStore, unknown>, string]> = [
  [
    "loses the last event of a batch",
    spoiled((log) => ({ ...log, append: (events) => log.append(events.slice(0, -1)) })),
    "every kind"
  ],
  [
    "appends event by event",
    spoiled((log) => ({
      ...log,
      append: (events) =>
        Effect.forEach(events, (event) => Effect.andThen(Effect.yieldNow, log.append([event])), { discard: true })
    })),
    "many fibers"
  ],
  [
    "gives back another order of keys",
    spoiled((log) => ({
      ...log,
      read: (options) =>
        Effect.map(log.read(options), (contents) => ({
          ...contents,
          events: contents.events.map((event) =>
            event !== null && typeof event === "object" && !Array.isArray(event)
              ? Object.fromEntries(Object.entries(event).reverse())
              : event
          )
        }))
    })),
    "every kind"
  ],
  ["forgets its snapshots", spoiled((log) => ({ ...log, snapshot: () => Effect.void })), "newest snapshot"],
  [
    "reads from its start with a snapshot",
    spoiled((log) => ({
      ...log,
      read: (options) =>
        Effect.all([log.read(options), log.read({ whole: true })]).pipe(
          Effect.map(([{ snapshot }, { events, lines }]) => ({ snapshot, events, lines }))
        )
    })),
    "newest snapshot"
  ],
  ["takes capital letters for small ones", spoiled((log) => log, (id) => id.toLowerCase()), "all ids"],
  ["goes on after it was closed", unguarded, "log does nothing"],
  [
    "has two writers",
    Layer.effect(
      SessionStore.SessionStore,
      Effect.gen(function*() {
        const store = yield* SessionStore.makeMemory
        const scope = yield* Scope.make()
        const log = yield* Scope.provide(store.open("one"), scope)
        return { ...store, open: () => Effect.succeed(log) }
      })
    ),
    "one writer"
  ],
  [
    "takes what is no JSON",
    spoiled((log) => ({
      ...log,
      append: (events) => Effect.ignore(log.append(events))
    })),
    "no JSON"
  ],
  [
    "lists nothing",
    Layer.effect(
      SessionStore.SessionStore,
      Effect.map(SessionStore.makeMemory, (store) => ({ ...store, list: Effect.succeed([]) }))
    ),
    "all ids"
  ]
]

describe("the checks of a store", () => {
  for (const [name, layer, part] of stores) {
    it.effect(`find one that ${name}`, () =>
      Effect.gen(function*() {
        const promised = Testing.sessionStore.filter(({ name }) => name.includes(part))
        assert.strictEqual(promised.length, 1)
        const error = yield* Effect.flip(Effect.provide(promised[0]!.check, Layer.orDie(layer)))
        assert.include(["PromiseBroken", "SessionStoreError"], error._tag)
      }))
  }
})
