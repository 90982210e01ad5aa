import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import type * as Settings from "effect-compaction/Settings"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { messages } from "../bench/transcript.ts"
import { seeded } from "../seed.ts"
import { assistant, counting, prompt, session } from "./conversation.ts"

const history = Prompt.fromMessages(messages(600, 7))
const roomy = { budget: 10_000_000 }
const tight = { budget: 12_000 }

const counted = (settings: Settings.Input = {}) =>
  Effect.gen(function*() {
    const { priced, service } = counting()
    const manager = yield* ContextManager.make(seeded({ settings })).pipe(Effect.provide(Estimator.layer(service)))
    /** What was priced since it was asked last. */
    const taken = () => priced.splice(0)
    return { manager, taken }
  })

const distinct = (all: ReadonlyArray<Prompt.Message>): number =>
  new Set(all.map((message) => JSON.stringify(message))).size

/** Refuses every pass and never fails: each request runs all of it again. */
const refusing: Settings.Input = { clearAtLeast: 1e9, maxConsecutiveSkips: 1e9 }

describe("how often the estimator is asked", () => {
  it.effect("once for each entry, at append, and never again below the trigger", () =>
    Effect.gen(function*() {
      const { manager, taken } = yield* counted()
      yield* manager.append(history)
      assert.strictEqual(taken().length, history.content.length)
      for (let n = 0; n < 5; n++) {
        yield* manager.requestWith(roomy)
        assert.strictEqual(taken().length, 0)
        yield* manager.append(prompt(assistant(`more ${n}`)))
        assert.strictEqual(taken().length, 1)
      }
      yield* manager.view
      yield* manager.status
      assert.strictEqual(taken().length, 0)
    }))

  it.effect("once for each distinct replacement, cold; only for what is new, warm", () =>
    Effect.gen(function*() {
      const { manager, taken } = yield* counted(refusing)
      yield* manager.append(history)
      taken()
      const { events } = yield* manager.requestWith(tight)
      assert.isTrue(events.some((event) => event._tag === "CompactionSkipped"))
      const cold = taken()
      assert.isAbove(cold.length, 50)
      assert.strictEqual(cold.length, distinct(cold))
      for (let n = 0; n < 5; n++) {
        const next = assistant(`more ${n}`)
        yield* manager.append(prompt(next))
        assert.deepStrictEqual(taken(), [next])
        yield* manager.requestWith(tight)
        const warm = taken()
        // The recent share has moved by one: at most one human more has become old enough for a stub.
        assert.isAtMost(warm.length, 1)
        assert.strictEqual(distinct([...cold, ...warm]), cold.length + warm.length)
        cold.push(...warm)
      }
    }))

  it.effect("a boundary is replayed without asking again", () =>
    Effect.gen(function*() {
      const { manager, taken } = yield* counted({ notice: false })
      yield* manager.append(history)
      yield* manager.requestWith(tight)
      assert.strictEqual((yield* manager.status).generation, 1)
      taken()
      yield* manager.requestWith(roomy)
      yield* manager.view
      assert.strictEqual(taken().length, 0)
    }))

  it.effect("the notice of a boundary costs one call for each of its texts", () =>
    Effect.gen(function*() {
      const { manager, taken } = yield* counted()
      yield* manager.append(history)
      const [full] = (yield* manager.requestWith(tight)).prompt.content.slice(-1)
      assert.isDefined(full)
      assert.include(JSON.stringify(taken()), JSON.stringify(full), "the new one")
      let standing = 0
      for (let n = 0; n < 6; n++) {
        // Budgets by turns, bills, an answer that never came: the notice stands at the end of each of these requests.
        if (n % 2 === 1) yield* manager.abandon()
        yield* manager.append(prompt(assistant(`more ${n}`)))
        taken()
        const { prompt: sent } = yield* manager.requestWith(n % 3 === 0 ? { budget: 500_000 } : roomy)
        assert.include(JSON.stringify(sent.content.at(-1)), "context-compaction")
        standing += taken().length
      }
      assert.isAtMost(standing, 1)
    }))

  it.effect("a restored session prices each entry and each replacement once", () =>
    Effect.gen(function*() {
      const { manager, taken } = yield* counted({ protectedToolResults: 1, notice: false })
      yield* manager.append(session)
      yield* manager.requestWith({ budget: 4_000 })
      const { decisions } = yield* manager.view
      const state = yield* manager.export
      taken()
      yield* manager.restore(state)
      yield* manager.requestWith(roomy)
      const standing = (yield* manager.view).items.filter((item) => item.state !== "kept").length
      assert.isAbove(decisions.length, standing, "some were truncated, then removed")
      assert.strictEqual(taken().length, 32 + standing)
    }))
})
