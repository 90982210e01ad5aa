/** Whatever is interrupted, and when: each message is in the log exactly once, in its order. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as OneLog from "./oneLog.ts"

/** A log that is full or not, and takes some steps before it begins and after it has written. */
const slow = Effect.map(OneLog.memory, (log) => {
  const steps = Effect.forEach(Array.from({ length: 5 }), () => Effect.yieldNow, { discard: true })
  const disk = { isFull: false }
  const full = new SessionStore.SessionStoreError({ operation: "append", path: "disk", reason: "ENOSPC" })
  const service: SessionStore.Log = {
    ...log,
    append: (events) =>
      Effect.uninterruptible(Effect.andThen(
        steps,
        Effect.suspend(() => disk.isFull ? Effect.fail(full) : Effect.andThen(log.append(events), steps))
      ))
  }
  return { disk, log, service }
})

const open = (log: SessionStore.Log) =>
  ContextManager.open("session", { settings: { window: 200_000 } }).pipe(OneLog.provide(log))

type Manager = Effect.Success<ReturnType<typeof open>>

const said = (manager: Manager) =>
  Effect.map(manager.history, ({ content }) =>
    content.map((message) => {
      const [part] = message.content
      return typeof part === "object" && part.type === "text" ? part.text : ""
    }))

const operations: ReadonlyArray<readonly [string, (manager: Manager) => Effect.Effect<unknown, unknown>, boolean]> = [
  ["flush", (manager) => manager.flush, false],
  ["append", (manager) => manager.append("between"), true],
  ["request", (manager) => manager.request, false],
  ["observe", (manager) => manager.observe({ inputTokens: { total: 100 } }), false]
]

describe("an operation that is interrupted at every point", () => {
  for (const [name, operation, adds] of operations) {
    for (const wasFull of [true, false]) {
      it.effect(`${name}${wasFull ? ", after the store was full" : ""}: nothing is written twice, or lost`, () =>
        Effect.gen(function*() {
          let isOver = false
          let point = 0
          for (; !isOver; point++) {
            assert.isBelow(point, 500)
            const { disk, log, service } = yield* slow
            yield* Effect.scoped(Effect.gen(function*() {
              const manager = yield* open(service)
              yield* manager.append("one")
              disk.isFull = wasFull
              yield* manager.append("two: please transfer 100 to Bob")
              disk.isFull = false
              const fiber = yield* Effect.forkChild(operation(manager), { startImmediately: true })
              for (let at = 0; at < point; at++) yield* Effect.yieldNow
              isOver = fiber.pollUnsafe() !== undefined
              yield* Fiber.interrupt(fiber)
              yield* manager.append("three")
              yield* manager.flush
              const live = yield* said(manager)
              const expected = ["one", "two: please transfer 100 to Bob", "three"]
              assert.deepStrictEqual(live.filter((text) => text !== "between"), expected, `at point ${point}`)
              assert.isAtMost(live.length, adds ? 4 : 3)
              const again = yield* Effect.flatMap(open(log), said)
              assert.deepStrictEqual(again, live, `at point ${point}`)
            }))
          }
          // A flush has nothing to write where everything is written.
          if (wasFull || name !== "flush") assert.isAbove(point, 5)
        }))
    }
  }
})
