import { assert, describe, it } from "@effect/vitest"
import type * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/**
 * A place where a session lies: `open` opens it, each time anew, and the scope closes it. `isKept` tells whether what was
 * written is there when it is opened again.
 */
export interface Place {
  readonly open: Effect.Effect<SessionStore.Service, unknown, Scope.Scope>
  readonly isKept: boolean
}

const values: ReadonlyArray<Schema.Json> = [
  null,
  0,
  -1.5,
  "",
  "one\ntwo\r\u2028three",
  "Grüße 日本語 👩‍👩‍👧 \u0000",
  "a half of a pair: \ud83d",
  [],
  [[1], {}],
  { a: { b: [null, true, "\"},{\""] } },
  "x".repeat(200_000)
]

/** What every store promises. `make` makes a new, empty place. */
export const suite = (name: string, make: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  describe(`a store of sessions: ${name}`, () => {
    const each = (
      what: string,
      test: (place: Place) => Effect.Effect<void, unknown, Scope.Scope>
    ) => it.effect(what, () => Effect.scoped(Effect.flatMap(make, test)))

    const eventsOf = (store: SessionStore.Service) => Effect.map(store.read({ whole: true }), ({ events }) => events)

    const read = (store: SessionStore.Service, whole = false) =>
      Effect.map(store.read({ whole }), ({ events, lines, snapshot }) => {
        assert.strictEqual(lines.length, events.length)
        return { snapshot, events }
      })

    each("is empty at first", ({ open }) =>
      Effect.gen(function*() {
        const store = yield* open
        assert.deepStrictEqual(yield* read(store), { snapshot: null, events: [] })
        assert.strictEqual(store.repair, null)
        assert.isAbove(store.name.length, 0)
      }))

    each("gives back every kind of value, in order", ({ open }) =>
      Effect.gen(function*() {
        const store = yield* open
        for (const value of values) yield* store.append([value])
        yield* store.append(values)
        assert.deepStrictEqual(yield* eventsOf(store), [...values, ...values])
      }))

    each("an empty append does nothing", ({ open }) =>
      Effect.gen(function*() {
        const store = yield* open
        yield* store.append([])
        yield* store.append([1])
        yield* store.append([])
        yield* store.flush
        assert.deepStrictEqual(yield* eventsOf(store), [1])
      }))

    each("what was read is nobody else's", ({ open }) =>
      Effect.gen(function*() {
        const store = yield* open
        const given = { list: [1] }
        yield* store.append([given])
        given.list.push(2)
        const [read] = yield* eventsOf(store) // Changed on purpose, against its type.
        ;(read as { list: Array<number> }).list.push(3)
        assert.deepStrictEqual(yield* eventsOf(store), [{ list: [1] }])
      }))

    each("appends of many fibers stay whole, and each fiber's in order", ({ open }) =>
      Effect.gen(function*() {
        const store = yield* open
        yield* Effect.forEach(
          Array.from({ length: 10 }, (_, fiber) => fiber),
          (fiber) => Effect.forEach([0, 1, 2, 3, 4], (at) => store.append([[fiber, at, 0], [fiber, at, 1]])),
          { concurrency: "unbounded" }
        )
        const events = (yield* eventsOf(store)) as ReadonlyArray<readonly [number, number, number]>
        assert.strictEqual(events.length, 100)
        const next = new Map<number, number>()
        for (let at = 0; at < events.length; at += 2) {
          const [fiber, turn] = events[at]!
          assert.deepStrictEqual(events.slice(at, at + 2), [[fiber, turn, 0], [fiber, turn, 1]])
          assert.strictEqual(turn, next.get(fiber) ?? 0)
          next.set(fiber, turn + 1)
        }
      }))

    each("an append that was interrupted is there whole or not at all", ({ open }) =>
      Effect.gen(function*() {
        const store = yield* open
        for (let at = 0; at < 20; at++) {
          const fiber = yield* Effect.forkChild(store.append([at, at, at]), { startImmediately: true })
          if (at % 2 === 0) yield* Effect.yieldNow
          fiber.interruptUnsafe()
        }
        yield* store.append(["end"])
        const events = yield* eventsOf(store)
        const counts = new Map<unknown, number>()
        for (const event of events) counts.set(event, (counts.get(event) ?? 0) + 1)
        for (const [event, count] of counts) assert.strictEqual(count, event === "end" ? 1 : 3)
        assert.isTrue(counts.has("end"))
      }))

    each("is read from its newest snapshot on, or whole", ({ open }) =>
      Effect.gen(function*() {
        const store = yield* open
        yield* store.append([1, 2])
        yield* store.append([3])
        yield* store.snapshot({ events: 3, state: { sum: 6 } })
        assert.deepStrictEqual(yield* read(store), { snapshot: { events: 3, state: { sum: 6 } }, events: [] })
        yield* store.append([4, 5])
        assert.deepStrictEqual(yield* read(store), { snapshot: { events: 3, state: { sum: 6 } }, events: [4, 5] })
        yield* store.snapshot({ events: 5, state: { sum: 15 } })
        assert.deepStrictEqual(yield* read(store), { snapshot: { events: 5, state: { sum: 15 } }, events: [] })
        assert.deepStrictEqual(yield* read(store, true), { snapshot: null, events: [1, 2, 3, 4, 5] })
      }))

    each("goes on where it was closed", ({ isKept, open }) =>
      Effect.gen(function*() {
        if (!isKept) return
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* open
          yield* store.append([1, 2])
          yield* store.snapshot({ events: 2, state: 3 })
          yield* store.append([3])
        }))
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* open
          assert.deepStrictEqual(yield* read(store), { snapshot: { events: 2, state: 3 }, events: [3] })
          yield* store.append([4])
        }))
        assert.deepStrictEqual(yield* eventsOf(yield* open), [1, 2, 3, 4])
      }))
  })
}
