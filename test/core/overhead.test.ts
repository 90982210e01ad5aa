import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Settings from "effect-compaction/Settings"
import * as Effect from "effect/Effect"
import { seeded } from "../seed.ts"

/** The budget and the count of the second request, when the first was billed so much beyond its price. */
const afterBill = (settings: Settings.Input, beyond: number, overhead = 0) =>
  Effect.gen(function*() {
    const manager = yield* ContextManager.make(seeded({ settings: { maxTokens: 10_000, notice: false, ...settings } }))
    yield* manager.append("Find out why the build fails.")
    const first = yield* manager.requestWith({ overhead })
    const { reading } = yield* manager.status
    yield* manager.observe({ inputTokens: { total: (reading?.estimated ?? 0) + beyond } })
    yield* manager.append("And fix it.")
    const second = yield* manager.requestWith({ overhead })
    const { budget } = yield* manager.status
    return { limit: budget?.limit, grown: second.count.tokens - first.count.tokens, count: second.count }
  }).pipe(Effect.scoped)

describe("what is not in the view", () => {
  it.effect("is learned from the first bill, and comes off the budget once", () =>
    Effect.gen(function*() {
      for (const meter of ["actual", "hybrid", "calibrated"] as const) {
        const { count, limit } = yield* afterBill({ meter }, 3_000)
        assert.strictEqual(limit, 7_000, meter)
        // The whole request is counted for a person, what is around the view included.
        assert.isAtLeast(count.tokens, 3_000, meter)
        assert.isBelow(count.tokens, 3_100, meter)
      }
      assert.strictEqual((yield* afterBill({ meter: "estimate" }, 3_000)).limit, 10_000)
    }))

  it.effect("is what the call names when that is more, and is not counted twice", () =>
    Effect.gen(function*() {
      const named = yield* afterBill({ meter: "hybrid" }, 3_000, 4_000)
      assert.strictEqual(named.limit, 6_000)
      const less = yield* afterBill({ meter: "hybrid" }, 3_000, 1_000)
      assert.strictEqual(less.limit, 7_000)
    }))

  it.effect("takes no more than half of the budget, whatever the first bill was", () =>
    Effect.gen(function*() {
      for (const beyond of [5_000, 9_000, 50_000]) {
        assert.strictEqual((yield* afterBill({ meter: "calibrated" }, beyond)).limit, 5_000)
      }
    }))
})
