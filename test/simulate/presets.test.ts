import { assert, describe, it } from "@effect/vitest"
import * as Policy from "effect-compaction/Policy"
import * as Price from "effect-compaction/simulate/Price"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Retention from "effect-compaction/simulate/Retention"
import * as Simulation from "effect-compaction/simulate/Simulation"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Effect from "effect/Effect"

const play = (preset: Policy.Policy, seed: number) => {
  const { messages, probes } = Retention.plant(Retention.generate({ seed, turns: 160, resultChars: 2_500 }), {
    seed,
    count: 32
  })
  return Simulation.run({ messages }, Policy.options(preset), {
    maxTokens: 45_000,
    cache: PromptCache.anthropic,
    price: Price.presets["claude-opus-4-5"],
    summarizer: Summarizer.extractive,
    probes
  })
}

describe("the presets, played", () => {
  it.effect("recommended costs less than contextSimple, has fewer boundaries, and keeps more in each session", () =>
    Effect.gen(function*() {
      const sums = { simple: { cost: 0, boundaries: 0 }, recommended: { cost: 0, boundaries: 0 } }
      for (const seed of [1, 2, 3]) {
        const { totals: simple } = yield* play(Policy.contextSimple, seed)
        const { totals: recommended } = yield* play(Policy.recommended, seed)
        yield* Retention.hasHeadroom([
          { policy: "contextSimple", retained: simple.retained ?? 1 },
          { policy: "recommended", retained: recommended.retained ?? 1 }
        ])
        assert.isAbove(simple.boundaries, 2)
        assert.isAbove(recommended.retained ?? 0, simple.retained ?? 1)
        assert.deepStrictEqual([recommended.overBudget, recommended.violations, recommended.failed], [0, 0, 0])
        sums.simple.cost += simple.cost
        sums.simple.boundaries += simple.boundaries
        sums.recommended.cost += recommended.cost
        sums.recommended.boundaries += recommended.boundaries
      }
      assert.isBelow(sums.recommended.cost, sums.simple.cost)
      assert.isBelow(sums.recommended.boundaries, sums.simple.boundaries)
    }))

  for (const name of ["contextSimpleSummary", "deepseekHarness", "codex", "claudeCode", "openCode"] as const) {
    it.effect(`${name} summarises, and sends only what the wire takes`, () =>
      Effect.gen(function*() {
        const { rows, totals } = yield* play(Policy.presets[name], 1)
        assert.isAbove(totals.summaries, 0)
        assert.isAbove(totals.summaryCost, 0)
        assert.isAbove(rows.at(-1)!.absorbed, 0)
        assert.deepStrictEqual([totals.violations, totals.failed], [0, 0])
      }))
  }

  it.effect("recommended writes no summaries", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* play(Policy.recommended, 1)).totals.summaries, 0)
    }))
})
