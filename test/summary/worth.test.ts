/** What a summary costs and keeps where its gate lets it begin; on recorded sessions: docs/evidence.md, `summaries`. */
import { assert, describe, it } from "@effect/vitest"
import * as Policy from "effect-compaction/Policy"
import * as Settings from "effect-compaction/Settings"
import * as Effect from "effect/Effect"
import * as Keeping from "../evidence/Keeping.ts"
import * as Play from "../evidence/Play.ts"

const { recommended } = Policy.presets

const played = Effect.fnUntraced(function*(sizes: number) {
  const { summary } = yield* Settings.decode({ summary: {} })
  const sessions = Play.samples().map(Keeping.plant)
  const world = { maxTokens: sizes * 6_000 }
  const without = yield* Keeping.play(sessions, recommended, world)
  const all = yield* Keeping.play(sessions, summary === undefined ? recommended : { ...recommended, summary }, world)
  // The extract is free.
  const cost = all.reduce((sum, { totals }) => sum + totals.cost - totals.summaryCost, 0)
  const calls = all.reduce((sum, { totals }) => sum + totals.summaries, 0)
  return { all, without, calls, ratio: cost / Keeping.costOf(without) }
})

describe("recommended with a summary, on the sample sessions", () => {
  // They are short: one boundary more is a hundredth of the cost.
  for (const [sizes, most] of [[1, 1.06], [2, 1.03], [4, 1.02]] as const) {
    it.effect(
      `keeps more names in a view of ${sizes} summaries, for at most ${most} of the cost`,
      () =>
        Effect.gen(function*() {
          const { all, calls, ratio, without } = yield* played(sizes)
          assert.isAbove(calls, 0)
          assert.isAtMost(ratio, most)
          for (const key of ["far", "near", "memory"] as const) {
            assert.isAtLeast(Keeping.share(all, key), Keeping.share(without, key), key)
          }
        }),
      60_000
    )
  }

  it.effect("is the same as without, byte for byte, where the gate lets none begin", () =>
    Effect.gen(function*() {
      const { calls, ratio } = yield* played(5)
      assert.strictEqual(calls, 0)
      assert.strictEqual(ratio, 1)
    }), 60_000)
})
