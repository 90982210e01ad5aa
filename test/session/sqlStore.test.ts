import { assert, describe, it } from "@effect/vitest"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as Tracer from "effect/Tracer"
import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as os from "node:os"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import * as Postgres from "./postgres.ts"
import * as Store from "./storeSuite.ts"

/** A prefix that nobody else has; its tables go with the scope. */
const prefixed = Effect.acquireRelease(
  Effect.sync(() => `t${randomUUID().slice(0, 8)}_`),
  (prefix) =>
    Effect.orDie(Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      for (const name of ["sessions", "log", "snapshots", "migrations"]) {
        yield* sql`DROP TABLE IF EXISTS ${sql(prefix + name)}`
      }
    }))
)

const storeOf = (prefix: string) =>
  Effect.map(Layer.build(SessionStore.layerSql({ prefix })), Context.get(SessionStore.SessionStore))

/** The store of another process: it has connections of its own. */
const elsewhere = (prefix: string) =>
  Effect.flatMap(
    Layer.build(Postgres.layer({ applicationName: prefix, maxConnections: 3 })),
    (context) => Effect.provideContext(storeOf(prefix), context)
  )

/** Ends every connection of {@link elsewhere}, in the middle of whatever it does. */
const cut = (prefix: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ${prefix}`
  )

/** Starts the database again, as after a loss of power. */
const { POSTGRES_DIRECTORY: directory } = process.env
const restart = Effect.promise(() =>
  promisify(execFile)(fileURLToPath(new URL("../../.ci/postgres", import.meta.url)), ["restart", directory ?? ""])
)

/** Appends so many batches, each again until it is acknowledged. */
const writing = Effect.fnUntraced(function*(log: SessionStore.Log, count: number, pause: Duration.Input = 0) {
  const written: Array<Schema.Json> = []
  let failures = 0
  for (let at = 0; at < count; at++) {
    const batch = [{ at, part: 0 }, { at, part: 1, text: "x".repeat(2_000) }]
    while ((yield* Effect.result(log.append(batch)))._tag === "Failure") {
      failures++
      yield* Effect.sleep("5 millis")
    }
    written.push(...batch)
    yield* Effect.sleep(pause)
  }
  return { failures, written }
})

/** How many statements an effect runs. */
const counting = <A, E>(self: Effect.Effect<A, E>) =>
  Effect.suspend(() => {
    let count = 0
    const tracer = Tracer.make({
      span: (options) => {
        if (options.kind === "client") count++
        return new Tracer.NativeSpan(options)
      }
    })
    return Effect.map(Effect.withTracer(self, tracer), () => count)
  })

/** A test in real time, with tables of its own: what is waited for happens in another process. */
const live = (
  name: string,
  test: (given: { readonly prefix: string }) => Effect.Effect<void, unknown, SqlClient.SqlClient | Scope.Scope>
) =>
  it.live(
    name,
    () => Effect.flatMap(prefixed, (prefix) => test({ prefix })).pipe(Effect.scoped, Effect.provide(Postgres.layer())),
    60_000
  )

const eventsOf = (log: SessionStore.Log) => Effect.map(log.read({ whole: true }), ({ events }) => events)

it("there is a database where everything must be tested", () => {
  assert.isTrue(Postgres.url !== undefined || process.env["CI"] === undefined, "CI is set, and POSTGRES_URL is not")
})

describe.skipIf(Postgres.url === undefined)(Postgres.title("sessions in PostgreSQL"), () => {
  Store.suite(
    "PostgreSQL",
    Layer.unwrap(Effect.map(prefixed, (prefix) => SessionStore.layerSql({ prefix }))).pipe(
      Layer.provide(Postgres.layer())
    )
  )

  live("an append is one statement, and a read from a snapshot two", ({ prefix }) =>
    Effect.gen(function*() {
      const store = yield* storeOf(prefix)
      const log = yield* store.open("one")
      yield* log.append([1])
      yield* log.snapshot({ events: 1, state: 1 })
      const [appended, many] = yield* Effect.all([
        counting(log.append([2, 3])),
        counting(log.append(["x".repeat(100_000)]))
      ])
      assert.deepStrictEqual([appended, many], [1, 1])
      assert.strictEqual(yield* counting(log.read()), 2)
      assert.strictEqual(yield* counting(log.flush), 1)
    }))

  live("keeps the order of keys, and every text however long", ({ prefix }) =>
    Effect.gen(function*() {
      const store = yield* storeOf(prefix)
      const log = yield* store.open("one")
      const keys = { z: 1, a: { y: 2, b: [{ d: 1, c: 2 }] }, 10: 1, 9: 2 }
      // More than a driver reads in one row, with a pair of halves at every place.
      const long = `${"👋".repeat(5_000_000)}x`
      yield* log.append([keys, long])
      yield* log.append([1])
      yield* log.snapshot({ events: 3, state: { keys, long } })
      const again = yield* (yield* storeOf(prefix)).open("one")
      const { events, snapshot } = yield* again.read()
      assert.deepStrictEqual(events, [])
      assert.strictEqual(JSON.stringify(snapshot?.state), JSON.stringify({ keys, long }))
      assert.strictEqual(JSON.stringify(yield* eventsOf(again)), JSON.stringify([keys, long, 1]))
    }))

  live("the newest opening has it, wherever the others are", ({ prefix }) =>
    Effect.gen(function*() {
      const [here, there] = yield* Effect.all([elsewhere(prefix), elsewhere(prefix)])
      const zombie = yield* here.open("one")
      yield* zombie.append([1])
      const log = yield* there.open("one")
      yield* log.append([2])
      const error = yield* Effect.flip(zombie.append([3]))
      if (error._tag !== "SessionLost") return assert.fail(error._tag)
      assert.include(error.by, `process ${process.pid} on ${os.hostname()}`)
      assert.include(error.by, "epoch 2")
      assert.strictEqual((yield* Effect.flip(zombie.snapshot({ events: 1, state: 1 })))._tag, "SessionLost")
      assert.deepStrictEqual(yield* eventsOf(log), [1, 2])
    }))

  live(
    "of many that open and write at once, none overwrites, and no acknowledged event is lost",
    ({ prefix }) =>
      Effect.gen(function*() {
        const stores = yield* Effect.all(Array.from({ length: 4 }, () => elsewhere(prefix)))
        const acknowledged: Array<string> = []
        let lost = 0
        const visit = (store: SessionStore.SessionStore["Service"], name: string) =>
          Effect.scoped(Effect.gen(function*() {
            const log = yield* store.open("one")
            for (let at = 0; at < 5; at++) {
              const event = `${name}-${at}`
              const outcome = yield* Effect.result(log.append([event]))
              if (outcome._tag === "Success") acknowledged.push(event)
              else {
                assert.strictEqual(outcome.failure._tag, "SessionLost")
                lost++
                return
              }
            }
          }))
        yield* Effect.forEach(
          stores,
          (store, who) => Effect.forEach(Array.from({ length: 15 }), (_, round) => visit(store, `${who}-${round}`)),
          { concurrency: 4 }
        )
        const { events } = yield* stores[0]!.read("one")
        assert.sameMembers([...events], acknowledged)
        assert.strictEqual(events.length, acknowledged.length)
        assert.isAbove(lost, 0)
      })
  )

  live(
    "connections that are cut leave no half event, and every acknowledged one once",
    ({ prefix }) =>
      Effect.gen(function*() {
        const store = yield* elsewhere(prefix)
        const log = yield* store.open("one")
        let isOver = false
        const cutting = yield* Effect.forkChild(Effect.gen(function*() {
          while (!isOver) yield* Effect.andThen(cut(prefix), Effect.sleep("40 millis"))
        }))
        const { failures, written } = yield* writing(log, 300, "1 millis")
        isOver = true
        yield* Fiber.join(cutting)
        assert.isAbove(failures, 3)
        assert.deepStrictEqual(yield* eventsOf(yield* (yield* elsewhere(prefix)).open("one")), written)
      })
  )

  live(
    "an append whose answer was lost is not there twice, though it came through",
    ({ prefix }) =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const store = yield* storeOf(prefix)
        const log = yield* store.open("one")
        yield* log.append([1])
        // What another statement that came through late would have left.
        const late = (seq: number) =>
          sql`INSERT INTO ${
            sql(`${prefix}log`)
          } (session, seq, part, count, events) VALUES ('one', ${seq}, 0, 1, '["late"]')`
        yield* late(1)
        assert.strictEqual((yield* Effect.flip(log.append([2])))._tag, "SessionStoreError")
        yield* log.append([2])
        yield* late(2)
        assert.strictEqual((yield* Effect.flip(log.append([3])))._tag, "SessionStoreError")
        yield* log.flush
        yield* log.append([3])
        assert.deepStrictEqual(yield* eventsOf(yield* store.open("one")), [1, 2, 3])
      })
  )

  live("a database that is away fails typed, and all goes on when it is back", ({ prefix }) =>
    Effect.gen(function*() {
      if (directory === undefined) return
      const store = yield* elsewhere(prefix)
      const log = yield* store.open("one")
      const writer = yield* Effect.forkChild(writing(log, 400, "1 millis"))
      yield* Effect.sleep("30 millis")
      yield* restart
      const { failures, written } = yield* Fiber.join(writer)
      assert.isAbove(failures, 0)
      const again = yield* store.open("one")
      assert.deepStrictEqual(yield* eventsOf(again), written)
    }))

  live("takes no part in a transaction of the caller's", ({ prefix }) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* storeOf(prefix)
      yield* Effect.exit(sql.withTransaction(Effect.gen(function*() {
        const log = yield* store.open("one")
        yield* log.append([1])
        return yield* Effect.fail("no")
      })))
      assert.deepStrictEqual((yield* store.read("one")).events, [1])
    }))

  live("what is damaged in its tables is named, with its place", ({ prefix }) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* storeOf(prefix)
      const log = yield* store.open("one")
      for (const events of [[1, 2], [3], [4]]) yield* log.append(events)
      const table = sql(`${prefix}log`)
      const spoiled = [
        [sql`UPDATE ${table} SET events = '[3' WHERE seq = 2`, "seq 2 is damaged"],
        [sql`UPDATE ${table} SET events = '[3, 3]' WHERE seq = 2`, "seq 2 is damaged"],
        [sql`DELETE FROM ${table} WHERE seq = 2`, "before seq 3 is gone"]
      ] as const
      for (const [spoil, reason] of spoiled) {
        yield* spoil
        const error = yield* Effect.flip(store.read("one"))
        assert.deepInclude(error, { _tag: "SessionCorrupt", line: 3 })
        assert.include(error.message, reason)
      }
      const snapshots = sql(`${prefix}snapshots`)
      yield* sql`DELETE FROM ${table} WHERE seq > 0`
      const two = yield* store.open("one")
      yield* two.snapshot({ events: 2, state: { sum: 3 } })
      assert.deepInclude(yield* two.read(), { snapshot: { events: 2, state: { sum: 3 } } })
      yield* sql`UPDATE ${snapshots} SET state = replace(state, '3}', '4}')`
      assert.deepInclude(yield* two.read(), { snapshot: null, events: [1, 2] })
    }))

  live(
    "its tables are made once, by however many come at once, and a prefix that is too long is refused",
    ({ prefix }) =>
      Effect.gen(function*() {
        yield* Effect.all(Array.from({ length: 8 }, () => elsewhere(prefix)), { concurrency: 8 })
        const error = yield* Effect.flip(storeOf("x".repeat(41)))
        assert.include(error.message, "longer than 40 characters")
      })
  )
})
