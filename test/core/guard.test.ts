import { assert, describe, it } from "@effect/vitest"
import * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Guard from "effect-compaction/Guard"
import * as Ladder from "effect-compaction/Ladder"
import type * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as TokenMeter from "effect-compaction/TokenMeter"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { seed, seeded } from "../seed.ts"
import { prompt, session, turn } from "./conversation.ts"

const required = 5_000

const settings: Settings.Input = {
  protectedToolResults: 1,
  notice: false,
  clearAtLeast: required
}

/** About 6,600 tokens under a budget of 7,000: above the trigger, and within the budget; a pass aims at 3,500. */
const start = Stage.fromPrompt(session, { settings: seed(settings), budget: 7_000 })

const until = 3_500 + required

const floorOf = (pass: Stage.Pass) => Stage.recall(pass, Guard.clearFloor)

const remembering = (pass: Stage.Pass, memory: Partial<ReturnType<typeof floorOf>>): Stage.Pass =>
  Stage.remember(pass, Guard.clearFloor, { ...floorOf(pass), ...memory })

const refused = { streak: 1, skipped: { limit: 7_000, until } }

describe("clearAtLeast counts refusals that say something new", () => {
  const cases: ReadonlyArray<readonly [name: string, counts: boolean, of: (pass: Stage.Pass) => Stage.Pass]> = [
    ["the first of a streak", true, (pass) => pass],
    ["one that repeats the one before", false, (pass) => remembering(pass, refused)],
    [
      "one of a view that has grown so far",
      true,
      (pass) => remembering(pass, { streak: 1, skipped: { limit: 7_000, until: pass.view.price } })
    ],
    [
      "one of a view that lacks a token",
      false,
      (pass) => remembering(pass, { streak: 1, skipped: { limit: 7_000, until: pass.view.price + 1 } })
    ],
    [
      "one under another budget",
      true,
      (pass) => remembering(pass, { streak: 1, skipped: { limit: 6_999, until } })
    ],
    ["one after the streak was cleared", true, (pass) => remembering(pass, { ...refused, streak: 0 })],
    [
      "one of a view whose price is over the budget",
      true,
      (pass) => remembering({ ...pass, sizes: { ...pass.sizes, limit: pass.view.price - 1 } }, refused)
    ],
    [
      "one of a view that fills the budget",
      false,
      (pass) => remembering({ ...pass, sizes: { ...pass.sizes, limit: pass.view.price } }, refused)
    ],
    [
      "one whose count is over the budget, whatever its price",
      true,
      (pass) => remembering({ ...pass, count: TokenMeter.estimate(7_001) }, refused)
    ],
    [
      "one that has grown so far in the provider's tokens",
      true,
      (pass) =>
        remembering({ ...pass, scale: 1.05, settings: { ...pass.settings, clearAtLeast: 50_000 } }, {
          streak: 1,
          skipped: { limit: 7_000, until: pass.view.price + 1 }
        })
    ],
    [
      "one that repeats the one before, when every one counts",
      true,
      (pass) => remembering({ ...pass, settings: { ...pass.settings, countSkips: "every" } }, refused)
    ]
  ]
  for (const [name, counts, of] of cases) {
    it.effect(`${name} ${counts ? "counts" : "does not count"}`, () =>
      Effect.gen(function*() {
        const before = of(yield* start)
        const after = yield* Ladder.climb(Ladder.progressive, before, { target: 3_500 })
        const events: Array<CompactionEvent.CompactionEvent> = []
        const judged = yield* Guard.clearAtLeast(before, after).pipe(
          Effect.provideService(CompactionEvent.Publisher, (event) => Effect.sync(() => events.push(event)))
        )
        assert.strictEqual(judged.view, before.view, "it is taken back")
        assert.strictEqual(floorOf(judged).streak, floorOf(before).streak + (counts ? 1 : 0))
        assert.deepStrictEqual(events.map(({ _tag }) => _tag), counts ? ["CompactionSkipped"] : [])
        if (!counts) assert.deepStrictEqual(judged.memory, before.memory)
      }))
  }

  it.effect("remembers from where on a pass to the same aim must free enough, in the provider's tokens", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const after = yield* Ladder.climb(Ladder.progressive, pass, { target: 3_500 })
      assert.isBelow(after.view.price, 3_500, "a pass rarely ends at its aim")
      const first = yield* Guard.clearAtLeast(pass, after)
      assert.deepStrictEqual(floorOf(first).skipped, { limit: 7_000, until })
      const dearer = { ...pass, scale: 1.25 }
      const scaled = yield* Guard.clearAtLeast(dearer, { ...after, scale: 1.25 })
      assert.deepStrictEqual(floorOf(scaled).skipped, { limit: 7_000, until: 4_375 + required })
      // Without an aim, what the pass came down to is all that is known.
      const aimless = yield* Guard.clearAtLeast(pass, { ...after, report: { ...after.report, target: null } })
      assert.deepStrictEqual(floorOf(aimless).skipped, { limit: 7_000, until: after.view.price + required })
    }))

  it.effect("judges what is freed in the provider's tokens, as what is required", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const after = yield* Ladder.climb(Ladder.progressive, pass, { target: 3_500 })
      const freed = pass.view.price - after.view.price
      const judged = (scale: number, clearAtLeast: number) =>
        Effect.map(
          Guard.clearAtLeast({ ...pass, scale, settings: { ...pass.settings, clearAtLeast } }, { ...after, scale }),
          ({ view }) => view === after.view
        )
      assert.deepStrictEqual([yield* judged(1, freed), yield* judged(1, freed + 1)], [true, false])
      assert.deepStrictEqual([yield* judged(2, 2 * freed), yield* judged(2, 2 * freed + 1)], [true, false])
      assert.deepStrictEqual([yield* judged(0.5, Math.floor(freed / 2)), yield* judged(0.5, freed)], [true, false])
    }))

  it.effect("forgets with the streak: when a pass is accepted, and when it is let through", () =>
    Effect.gen(function*() {
      const pass = remembering(yield* start, refused)
      const after = yield* Ladder.climb(Ladder.progressive, pass, { target: 3_500 })
      const enough = { ...pass, settings: { ...pass.settings, clearAtLeast: 100 } }
      const accepted = yield* Guard.clearAtLeast(enough, after)
      assert.strictEqual(accepted.view, after.view)
      assert.deepInclude(floorOf(accepted), { streak: 0, skipped: null })
      const over: Stage.Pass = {
        ...pass,
        sizes: { ...pass.sizes, limit: pass.view.price - 1 },
        settings: { ...pass.settings, clearFloorWhenOverBudget: "override" }
      }
      const through = yield* Guard.clearAtLeast(over, after)
      assert.strictEqual(through.view, after.view)
      assert.deepInclude(floorOf(through), { streak: 0, skipped: null, overrides: 1 })
    }))

  /** How a session that grows by about 70 tokens a request goes on, until it fails. */
  const grown = Effect.fnUntraced(function*(countSkips: "every" | "whenGrown", requests: number) {
    const manager = yield* ContextManager.make(seeded({ settings: { ...settings, countSkips } }))
    yield* manager.append(session)
    const streaks: Array<number> = []
    for (let at = 0; at < requests; at++) {
      const result = yield* Effect.result(manager.requestWith({ budget: 7_000 }))
      const { streak } = yield* manager.status
      streaks.push(streak)
      if (result._tag === "Failure") return { streaks, failed: result.failure._tag, manager }
      for (const message of turn(`more-${at}`, 200)) yield* manager.append(prompt(message))
    }
    return { streaks, failed: null, manager }
  })

  /** What is logged while a session goes on over a floor that refuses, is met, or fails. */
  const logged = Effect.fnUntraced(function*(more: Settings.Input, ratio?: number) {
    const said: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") said.push(String(message))
    })
    yield* Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({
        settings: { maxTokens: 7_000, notice: false, protectedToolResults: 1, ...more }
      }))
      for (let at = 0; at < 40; at++) {
        yield* manager.append(prompt(...turn(`t${at}`, 1_500)))
        yield* Effect.ignore(manager.request)
        const { price } = yield* manager.view
        if (ratio !== undefined) yield* manager.observe({ inputTokens: { total: Math.ceil(ratio * price) } })
      }
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
    return said.filter((each) => each.includes("judged by estimated prices"))
  })

  it.effect("says once that a floor is judged by estimates, and never where usage tells", () =>
    Effect.gen(function*() {
      for (const clearAtLeast of [1_000, 6_000]) {
        for (const maxConsecutiveSkips of [1, 3]) {
          const said = yield* logged({ clearAtLeast, maxConsecutiveSkips })
          assert.strictEqual(said.length, 1, `${clearAtLeast}, ${maxConsecutiveSkips}`)
          assert.include(said[0], "observe")
        }
      }
      assert.deepStrictEqual(yield* logged({}), [])
      assert.deepStrictEqual(yield* logged({ clearAtLeast: 1_000, meter: "hybrid" }, 1.1), [])
      assert.deepStrictEqual(yield* logged({ clearAtLeast: 1_000, meter: "calibrated" }, 1.1), [])
    }))

  it.effect("a floor that binds within the budget fails nobody's session by default", () =>
    Effect.gen(function*() {
      for (const clearAtLeast of [10_000, 20_000, 0.4]) {
        const manager = yield* ContextManager.make(seeded({
          settings: {
            maxTokens: 40_000,
            targetUsage: 0.85,
            notice: false,
            clearAtLeast,
            clearFloorWhenOverBudget: "override"
          }
        }))
        yield* manager.append("go")
        let boundaries = 0
        let skips = 0
        for (let at = 0; at < 120; at++) {
          for (const message of turn(`t${at}`, 3_000)) yield* manager.append(prompt(message))
          const { events } = yield* manager.request
          for (const { _tag } of events) {
            if (_tag === "Compacted") boundaries++
            if (_tag === "CompactionSkipped") skips++
          }
        }
        assert.isAbove(boundaries, 3, String(clearAtLeast))
        assert.isAtLeast(skips, 1, String(clearAtLeast))
      }
    }))

  it.effect("a session waits within its budget, and fails over it as loudly as ever", () =>
    Effect.gen(function*() {
      const every = yield* grown("every", 5)
      assert.deepStrictEqual([every.streaks, every.failed], [[1, 2, 3], "ClearFloorUnsatisfied"])
      const waiting = yield* grown("whenGrown", 5)
      assert.deepStrictEqual([waiting.streaks, waiting.failed], [[1, 1, 1, 1, 1], null])
      const over = yield* grown("whenGrown", 20)
      assert.deepStrictEqual([over.streaks.slice(-3), over.failed], [[1, 2, 3], "ClearFloorUnsatisfied"])
      const { price } = yield* over.manager.view
      assert.isAbove(price, 7_000)
      assert.isBelow(price, 7_300)
    }))
})
