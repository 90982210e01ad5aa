import { assert, describe, it } from "@effect/vitest"
import type * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/** A store, and one session of it: `open` opens it, each time anew, and the scope closes it. */
export interface Place {
  readonly store: SessionStore.SessionStore["Service"]
  readonly open: Effect.Effect<SessionStore.Log, unknown, Scope.Scope>
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

const ids: ReadonlyArray<string> = [
  "one",
  "",
  ".",
  "..",
  "../one",
  "a/b",
  "A/B",
  "user-42",
  "USER-42",
  "User-42",
  "%41",
  "a\\b",
  "con",
  "CON",
  "nul.txt",
  "tool. ",
  "line\nbreak\u0000",
  "Grüße",
  "日本語 👩‍👩‍👧",
  "a half of a pair: \ud83d",
  "another half: \ud83e",
  "x".repeat(1_000),
  `${"x".repeat(999)}y`,
  "X".repeat(1_000)
]

/** What every store promises. `make` makes a new, empty place. */
export const suite = (name: string, make: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  describe(`a store of sessions: ${name}`, () => {
    const each = (
      what: string,
      test: (place: Place) => Effect.Effect<void, unknown, Scope.Scope>
    ) => it.effect(what, () => Effect.scoped(Effect.flatMap(make, test)))

    const eventsOf = (store: SessionStore.Log) => Effect.map(store.read({ whole: true }), ({ events }) => events)

    const read = (store: SessionStore.Log, whole = false) =>
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

    each("goes on where it was closed", ({ open }) =>
      Effect.gen(function*() {
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

    each("keeps the sessions of all ids apart, whatever they are", ({ store }) =>
      Effect.gen(function*() {
        for (const id of ids) yield* Effect.scoped(Effect.flatMap(store.open(id), (log) => log.append([`of ${id}`])))
        for (const id of ids) {
          assert.deepStrictEqual((yield* store.read(id)).events, [`of ${id}`])
          const log = yield* store.open(id)
          assert.deepStrictEqual(yield* eventsOf(log), [`of ${id}`])
        }
        const listed = yield* Effect.result(store.list)
        // A kind of store that cannot tell them says so.
        if (listed._tag === "Failure") assert.strictEqual(listed.failure.operation, "list")
        else assert.deepStrictEqual([...listed.success].sort(), [...ids].sort())
      }))

    each(
      "is read without being opened, and without taking it from whoever has it open",
      ({ open, store }) =>
        Effect.gen(function*() {
          assert.strictEqual((yield* Effect.flip(store.read("one")))._tag, "SessionNotFound")
          const log = yield* open
          yield* log.append([1])
          yield* log.snapshot({ events: 1, state: 1 })
          yield* log.append([2])
          const { events, snapshot, torn } = yield* store.read("one")
          assert.deepStrictEqual({ events, snapshot, torn }, { events: [1, 2], snapshot: null, torn: 0 })
          yield* log.append([3])
          assert.deepStrictEqual(yield* eventsOf(log), [1, 2, 3])
        })
    )

    each(
      "has one writer: a second opening is refused, or takes it from the first",
      ({ open }) =>
        Effect.gen(function*() {
          const first = yield* open
          yield* first.append([1])
          const opened = yield* Effect.result(open)
          if (opened._tag === "Failure") {
            assert.propertyVal(opened.failure, "_tag", "SessionLocked")
            yield* first.append([2])
            return assert.deepStrictEqual(yield* eventsOf(first), [1, 2])
          }
          const second = opened.success
          yield* second.append([2])
          for (
            const late of [
              first.append([3]),
              first.flush,
              first.snapshot({ events: 1, state: 1 }),
              first.snapshot({ events: 2, state: 1 })
            ]
          ) assert.strictEqual((yield* Effect.flip(late))._tag, "SessionLost")
          yield* second.append([4])
          assert.deepStrictEqual(yield* read(second), { snapshot: null, events: [1, 2, 4] })
        })
    )

    each("does nothing any more once its scope was closed, and says so", ({ open }) =>
      Effect.gen(function*() {
        const log = yield* Effect.scoped(open)
        for (
          const late of [log.append([1]), log.flush, log.snapshot({ events: 0, state: 1 }), Effect.asVoid(log.read())]
        ) {
          const error = yield* Effect.flip<void, SessionStore.WriteError | SessionStore.SessionCorrupt, never>(late)
          assert.strictEqual(error._tag, "SessionStoreError")
          assert.include(error.message, "closed")
        }
        assert.deepStrictEqual(yield* eventsOf(yield* open), [])
      }))

    each("what is no JSON is refused, typed, and leaves nothing", ({ open }) =>
      Effect.gen(function*() {
        const log = yield* open
        yield* log.append([1])
        const circle: Record<string, unknown> = {}
        circle["self"] = circle
        let deep: unknown = 1
        for (let at = 0; at < 100_000; at++) deep = [deep]
        for (const value of [circle, 1n, deep]) {
          // Not JSON, against its type.
          const given = value as Schema.Json
          assert.propertyVal(yield* Effect.flip(log.append([2, given])), "operation", "append")
          assert.propertyVal(yield* Effect.flip(log.snapshot({ events: 1, state: given })), "operation", "snapshot")
        }
        yield* log.append([3])
        assert.deepStrictEqual(yield* read(log), { snapshot: null, events: [1, 3] })
      }))

    each("a snapshot of an earlier moment, or of a later one, is not kept", ({ open }) =>
      Effect.gen(function*() {
        const log = yield* open
        yield* log.append([1, 2])
        for (const events of [0, 1, 3]) yield* log.snapshot({ events, state: "wrong" })
        assert.deepStrictEqual(yield* read(log), { snapshot: null, events: [1, 2] })
      }))
  })
}
