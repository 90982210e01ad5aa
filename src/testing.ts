/**
 * What a store of your own must promise, as effects that fail where it does not; for whatever runs your tests.
 *
 * **Example** (All of them, under `@effect/vitest`)
 *
 * ```ts
 * import * as SessionStore from "effect-compaction/SessionStore"
 * import * as Testing from "effect-compaction/testing"
 * import * as Effect from "effect/Effect"
 *
 * // With a test runner: it.effect(name, () => Effect.provide(check, SessionStore.layerMemory))
 * const kept = Effect.forEach(Testing.sessionStore, ({ check, name }) =>
 *   Effect.as(Effect.provide(check, SessionStore.layerMemory), name))
 *
 * const names = await Effect.runPromise(kept)
 * names[0] // => "a new session is empty"
 * ```
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as SessionStore from "./SessionStore.ts"

/**
 * Fails when a store does not do what every store must: what was looked at, what must be, and what is.
 *
 * @category errors
 * @since 0.1.0
 */
export class PromiseBroken extends Schema.TaggedError<PromiseBroken>("effect-compaction/PromiseBroken")(
  "PromiseBroken",
  { what: Schema.String, expected: Schema.String, found: Schema.String }
) {
  override get message() {
    return `${this.what}: this must be ${this.expected}, and is ${this.found}. See SessionStore for what a store promises.`
  }
}

/**
 * One promise of a store: its name, and a check for a new, empty store. Provide the layer to
 * each of them anew. None waits for a clock.
 *
 * @category models
 * @since 0.1.0
 */
export interface Promised {
  readonly name: string
  readonly check: Effect.Effect<void, PromiseBroken | CheckError, SessionStore.SessionStore>
}

/**
 * What a store failed with where it must not.
 *
 * @category errors
 * @since 0.1.0
 */
export type CheckError = SessionStore.OpenError | SessionStore.WriteError | SessionStore.SessionNotFound

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "undefined"
  return text.length <= 300 ? text : `${text.slice(0, 300)}… (${text.length} characters)`
}

/** Compares by the text of both, the order of keys included. */
const same = (what: string, found: unknown, expected: unknown): Effect.Effect<void, PromiseBroken> =>
  JSON.stringify(found) === JSON.stringify(expected)
    ? Effect.void
    : Effect.fail(new PromiseBroken({ what, expected: shown(expected), found: shown(found) }))

const holds = (what: string, condition: boolean, expected: string): Effect.Effect<void, PromiseBroken> =>
  condition ? Effect.void : Effect.fail(new PromiseBroken({ what, expected, found: "not so" }))

/** The tag of the error that something fails with. */
const failing = <E extends { readonly _tag: string }, R>(
  what: string,
  self: Effect.Effect<unknown, E, R>,
  tag: E["_tag"]
): Effect.Effect<E, PromiseBroken, R> =>
  Effect.matchEffect(self, {
    onFailure: (error) => Effect.as(same(what, error._tag, tag), error),
    onSuccess: () => Effect.fail(new PromiseBroken({ what, expected: `a failure, ${tag}`, found: "a success" }))
  })

const open = Effect.flatMap(SessionStore.SessionStore, (store) => store.open("one"))

const eventsOf = (log: SessionStore.Log) => Effect.map(log.read({ whole: true }), ({ events }) => events)

const read = (log: SessionStore.Log, whole = false) =>
  Effect.flatMap(
    log.read({ whole }),
    ({ events, lines, snapshot }) =>
      Effect.as(same("how many lines were told", lines.length, events.length), { snapshot, events })
  )

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
  { z: 1, a: { y: [null, true, "\"},{\""], b: 2 } },
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

const promised = (
  name: string,
  check: Effect.Effect<void, PromiseBroken | CheckError, SessionStore.SessionStore | Scope.Scope>
): Promised => ({ name, check: Effect.scoped(check) })

const basic: ReadonlyArray<Promised> = [
  promised(
    "a new session is empty",
    Effect.gen(function*() {
      const log = yield* open
      yield* same("what a new session holds", yield* read(log), { snapshot: null, events: [] })
      yield* same("what was repaired in it", log.repair, null)
      yield* holds("the name of a log", log.name.length > 0, "there")
    })
  ),
  promised(
    "every kind of value comes back, in order",
    Effect.gen(function*() {
      const log = yield* open
      for (const value of values) yield* log.append([value])
      yield* log.append(values)
      yield* same("what was appended", yield* eventsOf(log), [...values, ...values])
    })
  ),
  promised(
    "an empty append does nothing",
    Effect.gen(function*() {
      const log = yield* open
      yield* log.append([])
      yield* log.append([1])
      yield* log.append([])
      yield* log.flush
      yield* same("what was appended", yield* eventsOf(log), [1])
    })
  ),
  promised(
    "what was given, or was read, can be changed without changing the session",
    Effect.gen(function*() {
      const log = yield* open
      const given = { list: [1] }
      yield* log.append([given])
      given.list.push(2)
      const [found] = yield* eventsOf(log)
      // Changed on purpose, against its type.
      const list = (found as { readonly list?: Array<number> } | undefined)?.list
      list?.push(3)
      yield* same("what was appended", yield* eventsOf(log), [{ list: [1] }])
    })
  ),
  promised(
    "what is no JSON is refused, and leaves nothing",
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
        yield* failing("an append of what is no JSON", log.append([2, given]), "SessionStoreError")
        yield* failing("such a snapshot", log.snapshot({ events: 1, state: given }), "SessionStoreError")
      }
      yield* log.append([3])
      yield* same("what was appended", yield* read(log), { snapshot: null, events: [1, 3] })
    })
  )
]

const together: ReadonlyArray<Promised> = [
  promised(
    "appends of many fibers stay whole, and each fiber's in order",
    Effect.gen(function*() {
      const log = yield* open
      yield* Effect.forEach(
        Array.from({ length: 10 }, (_, fiber) => fiber),
        (fiber) => Effect.forEach([0, 1, 2, 3, 4], (at) => log.append([[fiber, at, 0], [fiber, at, 1]])),
        { concurrency: "unbounded" }
      )
      const events = yield* eventsOf(log)
      yield* same("how many events there are", events.length, 100)
      const next = new Map<unknown, number>()
      for (let at = 0; at < events.length; at += 2) {
        // Appended above.
        const [fiber] = events[at] as readonly [number, number, number]
        const turn = next.get(fiber) ?? 0
        yield* same("a pair of events", events.slice(at, at + 2), [[fiber, turn, 0], [fiber, turn, 1]])
        next.set(fiber, turn + 1)
      }
    })
  ),
  promised(
    "an append that was interrupted is there whole, or not at all",
    Effect.gen(function*() {
      const log = yield* open
      for (let at = 0; at < 20; at++) {
        const fiber = yield* Effect.forkChild(log.append([at, at, at]), { startImmediately: true })
        if (at % 2 === 0) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
      }
      yield* log.append(["end"])
      const counts = new Map<unknown, number>()
      for (const event of yield* eventsOf(log)) counts.set(event, (counts.get(event) ?? 0) + 1)
      for (const [event, count] of counts) {
        yield* same(`how often ${shown(event)} is there`, count, event === "end" ? 1 : 3)
      }
      yield* holds("the append after them", counts.has("end"), "there")
    })
  ),
  promised(
    "a session has one writer: a second opening is refused, or takes it from the first",
    Effect.gen(function*() {
      const first = yield* open
      yield* first.append([1])
      const opened = yield* Effect.result(open)
      if (opened._tag === "Failure") {
        yield* same("why a second opening fails", opened.failure._tag, "SessionLocked")
        yield* first.append([2])
        return yield* same("what the first one wrote", yield* eventsOf(first), [1, 2])
      }
      const second = opened.success
      yield* second.append([2])
      yield* failing("an append of the first", first.append([3]), "SessionLost")
      yield* failing("a flush of the first", first.flush, "SessionLost")
      yield* failing("a snapshot of the first", first.snapshot({ events: 1, state: 1 }), "SessionLost")
      yield* second.append([4])
      yield* same("what the second one wrote", yield* read(second), { snapshot: null, events: [1, 2, 4] })
    })
  ),
  promised(
    "a log does nothing once its scope was closed, and says so",
    Effect.gen(function*() {
      const log = yield* Effect.scoped(open)
      const late: ReadonlyArray<Effect.Effect<unknown, CheckError>> = [
        log.append([1]),
        log.flush,
        log.snapshot({ events: 0, state: 1 }),
        log.read()
      ]
      for (const each of late) {
        const { message } = yield* failing("what is done after closing", each, "SessionStoreError")
        yield* holds("the message of it", message.includes("closed"), "that it was closed")
      }
      yield* same("what was written", yield* eventsOf(yield* open), [])
    })
  )
]

const kept: ReadonlyArray<Promised> = [
  promised(
    "a session is read from its newest snapshot on, or whole",
    Effect.gen(function*() {
      const log = yield* open
      yield* log.append([1, 2])
      yield* log.append([3])
      const three = { events: 3, state: { sum: 6 } }
      yield* log.snapshot(three)
      yield* same("a read after a snapshot", yield* read(log), { snapshot: three, events: [] })
      yield* log.append([4, 5])
      yield* same("a read of what came later", yield* read(log), { snapshot: three, events: [4, 5] })
      const five = { events: 5, state: { sum: 15 } }
      yield* log.snapshot(five)
      yield* same("a read after another snapshot", yield* read(log), { snapshot: five, events: [] })
      yield* same("a read of all", yield* read(log, true), { snapshot: null, events: [1, 2, 3, 4, 5] })
    })
  ),
  promised(
    "a snapshot of an earlier moment, or of a later one, is not kept",
    Effect.gen(function*() {
      const log = yield* open
      yield* log.append([1, 2])
      for (const events of [0, 1, 3]) yield* log.snapshot({ events, state: "wrong" })
      yield* same("a read", yield* read(log), { snapshot: null, events: [1, 2] })
    })
  ),
  promised(
    "a session goes on where it was closed",
    Effect.gen(function*() {
      yield* Effect.scoped(Effect.gen(function*() {
        const log = yield* open
        yield* log.append([1, 2])
        yield* log.snapshot({ events: 2, state: 3 })
        yield* log.append([3])
      }))
      yield* Effect.scoped(Effect.gen(function*() {
        const log = yield* open
        yield* same("a read", yield* read(log), { snapshot: { events: 2, state: 3 }, events: [3] })
        yield* log.append([4])
      }))
      yield* same("what was appended", yield* eventsOf(yield* open), [1, 2, 3, 4])
    })
  ),
  promised(
    "a session is read without being opened, and without being taken from whoever has it open",
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      yield* failing("reading what was never opened", store.read("one"), "SessionNotFound")
      const log = yield* open
      yield* log.append([1])
      yield* log.snapshot({ events: 1, state: 1 })
      yield* log.append([2])
      const { events, snapshot, torn } = yield* store.read("one")
      yield* same("a read", { events, snapshot, torn }, { events: [1, 2], snapshot: null, torn: 0 })
      yield* log.append([3])
      yield* same("what was appended", yield* eventsOf(log), [1, 2, 3])
    })
  ),
  promised(
    "the sessions of all ids are apart, whatever the ids are",
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      for (const id of ids) yield* Effect.scoped(Effect.flatMap(store.open(id), (log) => log.append([`of ${id}`])))
      for (const id of ids) {
        yield* same(`what ${shown(id)} holds`, (yield* store.read(id)).events, [`of ${id}`])
        yield* same(`what ${shown(id)} opens`, yield* Effect.scoped(Effect.flatMap(store.open(id), eventsOf)), [
          `of ${id}`
        ])
      }
      // A kind of store that cannot tell them says so.
      const listed = yield* Effect.option(store.list)
      if (Option.isSome(listed)) yield* same("the list", [...listed.value].sort(), [...ids].sort())
    })
  )
]

/**
 * All that every `SessionStore` promises.
 *
 * @category testing
 * @since 0.1.0
 */
export const sessionStore: ReadonlyArray<Promised> = [...basic, ...together, ...kept]
