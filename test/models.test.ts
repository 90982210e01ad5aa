import { assert, describe, it } from "@effect/vitest"
import * as Budget from "effect-compaction/Budget"
import * as Settings from "effect-compaction/Settings"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"

const own = (prefix: string, window: number): Budget.Model => ({ prefix, window, maxOutput: 1_000, source: "test" })

describe("Budget.models", () => {
  const known: ReadonlyArray<
    readonly [model: string, window: number | undefined, table?: ReadonlyArray<Budget.Model>]
  > = [
    ["claude-opus-4-5", 200_000],
    ["claude-opus-4-5-20251101", 200_000],
    ["anthropic/claude-opus-4-5", 200_000],
    ["Claude-Opus-4-6", 1_000_000],
    ["claude-opus-5-5", 1_000_000],
    ["claude-opus-4", undefined],
    ["gpt-5.4", 1_050_000],
    ["gpt-5.4-2026-03-05", 1_050_000],
    ["gpt-5.45", undefined],
    ["gemini-3-pro-preview", 1_048_576],
    ["someone-elses", undefined],
    ["", undefined],
    // One's own rows come first, and the longer prefix counts wherever it stands.
    ["claude-opus-4-5", 1_000_000, [own("claude-opus-4-5", 1_000_000), ...Budget.models]],
    ["m-large-1", 2, [own("m", 1), own("m-large", 2)]],
    ["m-large-1", 2, [own("m-large", 2), own("m", 1)]],
    ["m-small", 1, [own("m", 1), own("m-large", 2)]]
  ]
  for (const [model, window, table] of known) {
    it(`${model} among ${table?.length ?? "all"}: ${window}`, () =>
      assert.strictEqual(Budget.modelOf(model, table)?.window, window))
  }

  it("is dated, and says where each row is from", () => {
    assert.match(Budget.modelsAsOf, /^\d{4}-\d{2}-\d{2}$/)
    for (const row of Budget.models) {
      assert.match(row.source, /^https:/)
      assert.isAbove(row.window, row.maxOutput, row.prefix)
    }
    const prefixes = Budget.models.map(({ prefix }) => prefix)
    assert.deepStrictEqual(prefixes, Array.from(new Set(prefixes)))
  })

  it.effect("an unknown model falls back, and says so", () =>
    Effect.gen(function*() {
      const said: Array<string> = []
      const logger = Logger.make(({ message }) => {
        said.push(String(message))
      })
      const settingsOf = (model: string) =>
        Budget.settingsFor(model).pipe(
          Effect.flatMap(Settings.decode),
          Effect.provideService(Logger.CurrentLoggers, new Set([logger]))
        )
      const unknown = Budget.resolve(yield* settingsOf("someone-elses"))
      assert.deepStrictEqual([unknown.source, unknown.total], ["fallback", Budget.fallback])
      assert.strictEqual(said.length, 1)
      assert.include(said[0], "the window of someone-elses is not known: the budget is 200000 tokens")
      const budget = Budget.resolve(yield* settingsOf("claude-opus-4-5"))
      assert.deepStrictEqual([budget.source, budget.total], ["window", 200_000 - 32_000 - Settings.windowMargin])
      assert.strictEqual(said.length, 1)
    }))
})
