import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Guard from "effect-compaction/Guard"
import * as Policy from "effect-compaction/Policy"
import type * as Settings from "effect-compaction/Settings"
import type * as Stage from "effect-compaction/Stage"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { prompt, system, turn, user } from "../core/conversation.ts"
import * as OneLog from "./oneLog.ts"

const settings: Settings.Input = {
  maxTokens: 20_000,
  notice: false,
  cacheLife: "5 minutes",
  whenCold: { threshold: 0.4, target: 0.2 }
}

/** About 500 tokens a turn. */
const turns = (from: number, to: number): ReadonlyArray<Prompt.Message> =>
  Array.from({ length: to - from }, (_, at) => turn(`call-${from + at}`, 2_000)).flat()

/** Half of the budget: above the threshold of a cold prefix, and far below the usual one. */
const half: Prompt.Prompt = prompt(system("You are careful."), user("fix it"), ...turns(0, 20))

const generationOf = <E>(self: ContextManager.ContextManager<E>) =>
  Effect.map(self.status, ({ generation }) => generation)

/** A session whose last request is at half of its budget, sent while the prefix was warm. */
const warm = Effect.fnUntraced(function*(more: Settings.Input = {}) {
  const self = yield* ContextManager.make({ settings: { ...settings, ...more } })
  yield* self.sync(prompt(...half.content.slice(0, 4)))
  yield* self.sync(half)
  assert.strictEqual(yield* generationOf(self), 0, "a warm prefix is left alone")
  return self
})

describe("a prefix that is cold anyway", () => {
  it.effect("after a pause that is longer than the provider keeps one", () =>
    Effect.gen(function*() {
      const self = yield* warm()
      yield* TestClock.adjust("5 minutes")
      yield* self.append("go on")
      yield* self.request
      assert.strictEqual(yield* generationOf(self), 0, "as long as it is kept it is warm")
      yield* TestClock.adjust("301 seconds")
      yield* self.append("and now?")
      assert.strictEqual((yield* self.preview()).outcome, "compact")
      const { count } = yield* self.request
      assert.strictEqual(yield* generationOf(self), 1)
      assert.isAtMost(count.tokens, 20_000 * 0.2)
      yield* self.append("and again?")
      yield* self.request
      assert.strictEqual(yield* generationOf(self), 1, "what was just sent is warm")
    }))

  it.effect("on another route, with other tools, and under another system prompt", () =>
    Effect.gen(function*() {
      const rows: ReadonlyArray<readonly [call: ContextManager.Call, head: string]> = [
        [{ route: "other" }, "You are careful."],
        [{ overhead: 100 }, "You are careful."],
        [{}, "You are bold, now."]
      ]
      for (const [call, head] of rows) {
        const self = yield* warm()
        yield* self.sync(prompt(system(head), ...half.content.slice(1), user("go on")), call)
        assert.strictEqual(yield* generationOf(self), 1, JSON.stringify([call, head]))
      }
      const self = yield* warm()
      yield* self.sync(prompt(...half.content, user("go on")))
      assert.strictEqual(yield* generationOf(self), 0)
    }))

  it.effect("when a session is opened again after its time, and not before", () =>
    Effect.gen(function*() {
      const log = yield* OneLog.memory
      const open = ContextManager.open("session", { settings }).pipe(OneLog.provide(log))
      yield* Effect.scoped(Effect.gen(function*() {
        const self = yield* open
        yield* self.append(prompt(...half.content.slice(0, 4)))
        yield* self.request
        yield* self.append(prompt(...half.content.slice(4)))
        yield* self.request
      }))
      yield* TestClock.adjust("1 minute")
      const again = Effect.scoped(Effect.gen(function*() {
        const self = yield* open
        yield* self.append("go on")
        yield* self.request
        return yield* generationOf(self)
      }))
      assert.strictEqual(yield* again, 0)
      yield* TestClock.adjust("6 minutes")
      assert.strictEqual(yield* again, 1)
    }))

  it.effect("before anything was sent: a history that is taken in comes down at once", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make({ settings })
      yield* self.sync(half)
      assert.strictEqual(yield* generationOf(self), 1)
    }))

  it.effect("needs no clear floor, and without cacheLife nothing is known to be cold", () =>
    Effect.gen(function*() {
      const floor = {
        clearAtLeast: 1_000_000,
        maxConsecutiveSkips: 1_000,
        clearFloorWhenOverBudget: "override"
      } as const
      const self = yield* warm(floor)
      yield* TestClock.adjust("6 minutes")
      yield* self.append("go on")
      yield* self.request
      assert.strictEqual(yield* generationOf(self), 1)
      const { cacheLife: _, whenCold: __, ...plain } = settings
      const other = yield* ContextManager.make({ settings: { ...plain, ...floor } })
      yield* other.sync(half)
      yield* TestClock.adjust("1 hour")
      yield* other.append(prompt(...turns(20, 60)))
      yield* other.request
      assert.strictEqual(yield* generationOf(other), 1, "over the budget it is overridden")
      assert.isUndefined(JSON.parse(JSON.stringify(yield* other.export)).sentAt ?? undefined)
    }))

  it.effect("a session that was saved before there were times opens, and counts as cold", () =>
    Effect.gen(function*() {
      const self = yield* warm()
      const { sentAt: _, ...saved } = JSON.parse(JSON.stringify(yield* self.export))
      const other = yield* ContextManager.make({ settings })
      yield* other.restore(saved)
      yield* other.append("go on")
      yield* other.request
      assert.strictEqual(yield* generationOf(other), 1)
    }))
})

describe("clearAtLeast: \"auto\"", () => {
  const auto: Settings.Input = { maxTokens: 20_000, notice: false, clearAtLeast: "auto" }

  it.effect("asks for what pays for the cold cache before the next boundary", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make({ settings: auto })
      let tokens = 0
      for (let at = 0; at < 120; at++) {
        yield* self.append(prompt(...turns(at, at + 1)))
        const { count, events } = yield* self.request
        yield* self.observe({
          inputTokens: { total: count.tokens, uncached: 0, cacheRead: count.tokens, cacheWrite: 0 }
        })
        tokens = Math.max(tokens, count.tokens)
        for (const event of events) {
          if (event._tag !== "Compacted") continue
          // What is written again costs 1.15 more than what is read; each request until the next boundary reads less.
          const left = (0.95 * 20_000 - event.after) / 520
          assert.isAtLeast(event.freed * 0.1 * left, event.after * 1.15 * 0.9)
        }
      }
      assert.isAbove(yield* generationOf(self), 1)
      assert.isAtMost(tokens, 20_000)
    }))

  it.effect("asks for nothing where the provider reads nothing from a cache, and never over the budget", () =>
    Effect.gen(function*() {
      const pass = (served: Stage.Served, over: Partial<Stage.Pass> = {}) => {
        const view = { price: 50_000, transcript: { entries: [{ price: 80_000 }] } }
        // As much of a pass as the worth is worked out of.
        return {
          view,
          scale: 1,
          served,
          cold: null,
          budget: { trigger: 60_000 },
          settings: {},
          ...over
        } as unknown as Stage.Pass
      }
      const after = pass({ requests: 40, answers: 40, cacheRead: 1 })
      assert.strictEqual(Guard.worthOf(pass({ requests: 40, answers: 40, cacheRead: 0 }), after), 0)
      assert.strictEqual(Guard.worthOf(pass({ requests: 40, answers: 4, cacheRead: 0 }), after), 115_000)
      assert.strictEqual(Guard.worthOf(pass({ requests: 40, answers: 40, cacheRead: 1 }), after), 115_000)
      assert.strictEqual(Guard.worthOf(pass({ requests: 40, answers: 40, cacheRead: 1 }, { cold: "idle" }), after), 0)
      const self = yield* ContextManager.make({ settings: auto })
      yield* self.sync(prompt(system("x"), user("y"), ...turns(0, 60)))
      assert.strictEqual(yield* generationOf(self), 1)
    }))

  it.effect("a pass that is not worth it is skipped, and is no error", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make({ settings: { ...auto, targetUsage: 0.9 } })
      let skipped = 0
      for (let at = 0; at < 80; at++) {
        yield* self.append(prompt(...turns(at, at + 1)))
        const { count, events } = yield* self.request
        yield* self.observe({
          inputTokens: { total: count.tokens, uncached: 0, cacheRead: count.tokens, cacheWrite: 0 }
        })
        skipped += events.filter(({ _tag }) => _tag === "CompactionSkipped").length
      }
      assert.isAbove(skipped, 0)
    }))
})

describe("cold moments that are not right", () => {
  const rows: ReadonlyArray<readonly [name: string, settings: object, path: string]> = [
    ["a life of nothing", { cacheLife: "0 minutes" }, "settings.cacheLife"],
    ["a life that is no duration", { cacheLife: "soon" }, "settings.cacheLife"],
    ["a cold prefix that is never known", { whenCold: { threshold: 0.5, target: 0.3 } }, "settings.whenCold"],
    [
      "a target above its threshold",
      { cacheLife: "5 minutes", whenCold: { threshold: 0.5, target: 0.5 } },
      "settings.whenCold.target"
    ],
    ["half of it", { cacheLife: "5 minutes", whenCold: { threshold: 0.5 } }, "settings.whenCold.target"],
    ["a floor of nothing", { clearAtLeast: 0 }, "settings.clearAtLeast"],
    ["another word", { clearAtLeast: "always" }, "settings.clearAtLeast"]
  ]
  for (const [name, given, path] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Policy.prepare({ settings: given }))
        assert.deepStrictEqual(error.problems.map((problem) => problem.path), [path])
      }))
  }
})
