/** Whatever is interrupted, and when: each message is in the log exactly once, in its order. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { prompt, turn } from "../core/conversation.ts"
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
  ContextManager.open("session", { settings: { window: 24_000 } }).pipe(OneLog.provide(log))

type Manager = Effect.Success<ReturnType<typeof open>>

const said = (manager: Manager) =>
  Effect.map(manager.history, ({ content }) =>
    content.flatMap((message) => {
      const [part] = message.content
      return typeof part === "object" && part.type === "text" ? [part.text] : []
    }))

/** Results that a pass can shorten. */
const results = prompt(...Array.from({ length: 12 }, (_, at) => turn(`call-${at}`, 4_000)).flat())

/** What an operation may do to the messages that were there before it. */
type Effects = "nothing" | "adds" | "takes away"

const operations: ReadonlyArray<
  readonly [string, (manager: Manager) => Effect.Effect<unknown, unknown>, Effects]
> = [
  ["flush", (manager) => manager.flush, "nothing"],
  ["append", (manager) => manager.append("between"), "adds"],
  ["request", (manager) => manager.request, "nothing"],
  ["sync", (manager) => Effect.flatMap(manager.history, manager.sync), "nothing"],
  ["observe", (manager) => manager.observe({ inputTokens: { total: 100 } }), "nothing"],
  ["abandon", (manager) => manager.abandon(), "nothing"],
  ["compactNow", (manager) => manager.compactNow(), "nothing"],
  ["recover", (manager) => manager.recover({ tokens: 3_000, maximum: 2_000 }), "nothing"],
  ["rewind", (manager) => manager.rewind(10), "takes away"],
  ["restore", (manager) => Effect.flatMap(manager.export, manager.restore), "nothing"],
  ["reset", (manager) => manager.reset, "takes away"]
]

describe("an operation that is interrupted at every point", () => {
  for (const [name, operation, does] of operations) {
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
              yield* manager.append(results)
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
              if (does === "takes away") assert.strictEqual(live.at(-1), "three", `at point ${point}`)
              else assert.deepStrictEqual(live.filter((text) => text !== "between"), expected, `at point ${point}`)
              assert.isAtMost(live.length, does === "adds" ? 4 : 3)
              assert.isAtMost(live.filter((text) => text === "between").length, 1)
              const again = yield* open(log)
              assert.deepStrictEqual(yield* said(again), live, `at point ${point}`)
              assert.deepStrictEqual(yield* again.export, yield* manager.export, `at point ${point}`)
            }))
          }
          // A flush has nothing to write where everything is written.
          if (wasFull || name !== "flush") assert.isAbove(point, 5)
        }))
    }
  }
})
