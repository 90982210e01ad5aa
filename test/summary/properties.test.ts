/** What must hold whatever a summariser does. */
import { assert, describe, it } from "@effect/vitest"
import type * as ContextManager from "effect-compaction/ContextManager"
import type * as Settings from "effect-compaction/Settings"
import type * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { bytesOf } from "../core/conversation.ts"
import * as Random from "../properties/Random.ts"
import * as Audit from "./Audit.ts"
import * as Chaos from "./Chaos.ts"
import * as Sessions from "./Sessions.ts"

const seeds = Array.from({ length: 16 }, (_, at) => at + 1)

const said = (request: ContextManager.Request): string => bytesOf(request.prompt)

/** A request of a mode that waits: it is over when the clock has gone on by the timeout, and has not failed. */
const waitedFor = Effect.fnUntraced(function*(self: Sessions.Manager) {
  const fiber = yield* Effect.forkChild(self.request, { startImmediately: true })
  yield* Sessions.settle
  yield* TestClock.adjust("10 seconds")
  yield* Sessions.settle
  const exit = fiber.pollUnsafe()
  assert.isDefined(exit, "the request waits for longer than the timeout")
  return yield* Fiber.join(fiber)
})

const chaos = Effect.fnUntraced(function*(seed: number, mode: "background" | "between") {
  const random = Random.make(seed)
  const settings = Chaos.settings(random)
  const { requests, service } = Chaos.summarizer(random)
  const made: Settings.Input = { ...settings, summary: { ...settings.summary, mode } }
  const { events, manager } = yield* Sessions.watched(made, { summarizer: service })
  const audit = Audit.make()
  const wrong: Array<string> = []
  let absorbed = 0
  let twin: Sessions.Manager | undefined
  for (let n = 0; n < 60; n++) {
    const messages = n === 0 ? Sessions.opening : Chaos.messages(random, n)
    yield* manager.append(Prompt.fromMessages(messages))
    if (random.chance(0.8)) yield* Sessions.settle
    const request = mode === "between" ? yield* waitedFor(manager) : yield* manager.request
    if (twin !== undefined) {
      const same = yield* Sessions.ask(twin, ...messages)
      if (said(same) !== said(request)) wrong.push(`request ${n}: another view after a restore`)
      yield* twin.reset
      twin = undefined
    }
    wrong.push(...(yield* audit(manager, request)).map((each) => `request ${n}: ${each}`))
    absorbed += request.events.filter((event) => event._tag === "Compacted" && event.absorbed > 0).length
    if (random.chance(0.3)) yield* TestClock.adjust(random.pick(["1 second", "5 seconds", "11 seconds"]))
    // What is being written is not saved; everything else decides the same in another process.
    if (mode === "background" && random.chance(0.2) && (yield* manager.status).summary !== "running") {
      const other = yield* Sessions.manager(made, { summarizer: service })
      yield* other.restore(JSON.parse(JSON.stringify(yield* manager.export)))
      const [here, there] = [yield* manager.request, yield* other.request]
      assert.deepStrictEqual(Sessions.stable(there), Sessions.stable(here))
      twin = other
    }
  }
  for (const asked of requests) {
    wrong.push(...Audit.refusals(asked.prompt.content).map((each) => `request of a summary: ${each}`))
  }
  return { wrong, absorbed, asked: requests.length, events }
})

describe("properties", () => {
  for (const mode of ["background", "between"] as const) {
    it.effect(
      `${mode}: valid, stable, nothing lost without a record, no turn waits or fails`,
      () =>
        Effect.gen(function*() {
          let absorbed = 0
          let asked = 0
          for (const seed of seeds) {
            const outcome = yield* Effect.scoped(chaos(seed, mode))
            assert.deepStrictEqual(outcome.wrong.slice(0, 3), [], `seed ${seed}`)
            absorbed += outcome.absorbed
            asked += outcome.asked
          }
          assert.isAbove(asked, 40)
          assert.isAbove(absorbed, 10)
        }),
      120_000
    )
  }
})

/** Every way in which no summary ever comes. */
const silent: ReadonlyArray<readonly [string, () => Summarizer.Service | undefined]> = [
  ["is absent", () => undefined],
  ["fails every time", () => Sessions.failing.service],
  ["dies every time", () => Sessions.answering(() => Effect.die("a bug")).service],
  ["times out every time", () => Sessions.answering(() => Effect.never).service],
  ["hangs every time", () => Sessions.answering(() => Effect.uninterruptible(Effect.never)).service],
  ["says nothing every time", () => Sessions.saying("").service],
  ["floods every time", () => Sessions.saying("x ".repeat(200_000)).service]
]

describe("without a summary", () => {
  for (const [name, service] of silent) {
    it.effect(`a summariser that ${name} changes no byte of any view`, () =>
      Effect.gen(function*() {
        for (const seed of seeds.slice(0, 6)) {
          const random = Random.make(seed)
          const { summary, ...settings } = Chaos.settings(random)
          const plain = yield* Sessions.manager(settings)
          const { manager } = yield* Sessions.watched(Sessions.withSummary(summary, settings), {
            summarizer: service()
          })
          for (let n = 0; n < 50; n++) {
            const messages = n === 0 ? Sessions.opening : Chaos.messages(random, n)
            const expected = yield* Sessions.ask(plain, ...messages)
            const actual = yield* Sessions.step(manager, ...messages)
            assert.strictEqual(said(actual), said(expected), `seed ${seed}, request ${n}`)
            assert.strictEqual(actual.generation, expected.generation)
            assert.deepStrictEqual(actual.count, expected.count)
            yield* TestClock.adjust("4 seconds")
          }
        }
      }), 120_000)
  }
})
