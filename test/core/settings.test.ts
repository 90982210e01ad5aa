import { assert, describe, it } from "@effect/vitest"
import * as Budget from "effect-compaction/Budget"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Settings from "effect-compaction/Settings"
import * as Effect from "effect/Effect"
import { seed, seeded } from "../seed.ts"

const decoded = (input: { readonly [key: string]: unknown }) =>
  // A configuration file holds anything: what the type refuses is what is tested here.
  Effect.result(Settings.decode(seed(input as Settings.Input)))

/** The key, the value that is refused, and what the message says beside the path. */
const rejected: ReadonlyArray<readonly [key: string, value: unknown, says: string]> = [
  ["window", 0, "context window of the model in tokens"],
  ["window", -200_000, "context window of the model in tokens"],
  ["window", 200_000.5, "integer"],
  ["window", "200k", "Expected number"],
  ["window", null, "Expected number"],
  ["window", Number.NaN, "integer"],
  ["maxOutput", -1, "longest answer in tokens"],
  ["maxOutput", 0.5, "integer"],
  ["outputReserve", 1.01, "ratio from 0 to 1"],
  ["outputReserve", -0.1, "ratio from 0 to 1"],
  ["outputReserve", "0.5", "Expected number"],
  ["maxTokens", 0, "at least 1 token"],
  ["maxTokens", -5, "at least 1 token"],
  ["maxTokens", 1.5, "integer"],
  ["maxTokens", Number.POSITIVE_INFINITY, "integer"],
  ["notice", "yes", "Expected boolean"],
  ["noticeReserve", -1, "reserve for the notice in tokens"],
  ["compactThreshold", 0, "ratio above 0 and up to 1"],
  ["compactThreshold", 92, "ratio above 0 and up to 1"],
  ["compactThreshold", Number.NaN, "finite"],
  ["targetUsage", -0.1, "ratio from 0"],
  ["targetUsage", 50, "ratio from 0"],
  ["targetUsage", 0.92, "below compactThreshold (0.92)"],
  ["protectedRecent", 30, "ratio from 0 to 1"],
  ["protectedToolResults", 2.5, "integer"],
  ["truncateChars", -250, "number of characters"],
  ["truncateChars", Number.NaN, "integer"],
  ["shape", "tail", "\"head\" | \"headTail\""],
  ["budgetTokens", -1, "number of tokens"],
  ["exemptTools", "read", "Expected array"],
  ["exemptTools", [1], "exemptTools"],
  ["clearAtLeast", 0, "write null to turn it off"],
  ["clearAtLeast", -20_000, "write null to turn it off"],
  ["clearAtLeast", Number.NaN, "finite"],
  ["maxConsecutiveSkips", 1.5, "integer"],
  ["countSkips", "never", "\"every\" | \"whenGrown\""],
  ["clearFloorWhenOverBudget", "ignore", "\"refuse\" | \"override\""],
  ["whenInfeasible", "throw", "\"send\" | \"fail\""],
  ["meter", "guess", "\"hybrid\""],
  ["strict", "no", "Expected boolean"],
  ["maxMessages", 0, "maxMessages"],
  ["compactTreshold", 0.9, "compactTreshold"],
  ["toString", 1, "toString"]
]

describe("Settings", () => {
  for (const [key, value, says] of rejected) {
    it.effect(`refuses ${key} ${JSON.stringify(value)}`, () =>
      Effect.gen(function*() {
        const result = yield* decoded({ [key]: value })
        assert.strictEqual(result._tag, "Failure")
        if (result._tag === "Success") return
        assert.include(result.failure.message, `["${key}"]`)
        assert.include(result.failure.message, says)
      }))
  }

  it.effect("names the key of a map, and every bad key at once", () =>
    Effect.gen(function*() {
      const result = yield* decoded({ budgetByTool: { read: -1 }, windows: 1, notice: 0 })
      assert.strictEqual(result._tag, "Failure")
      if (result._tag === "Success") return
      assert.include(result.failure.message, "[\"budgetByTool\"][\"read\"]")
      assert.include(result.failure.message, "[\"windows\"]")
      assert.include(result.failure.message, "[\"notice\"]")
    }))

  it.effect("every window has a budget, which grows with it and jumps nowhere", () =>
    Effect.gen(function*() {
      for (const outputReserve of [0, 0.5, 1]) {
        const settings = yield* Settings.decode(seed({ outputReserve }))
        let before = Budget.resolve({ ...settings, window: 1 })
        for (let window = 2; window <= 20_000; window++) {
          const budget = Budget.resolve({ ...settings, window })
          if (budget.limit < before.limit || budget.limit > before.limit + 1 || budget.total > before.total + 1) {
            assert.fail(`window ${window}: ${JSON.stringify([before, budget])}`)
          }
          before = budget
        }
        assert.isAtLeast(Budget.resolve({ ...settings, window: 1 }).limit, 1)
        assert.strictEqual(before.total, 20_000 - Math.floor(8_192 * outputReserve) - 4_096)
        assert.strictEqual(before.limit, before.total - 800)
      }
    }))

  it.effect("fills in the defaults", () =>
    Effect.gen(function*() {
      assert.deepInclude({ ...(yield* Settings.decode(seed({}))) }, {
        maxOutput: 8_192,
        outputReserve: 0.5,
        notice: true,
        noticeReserve: 800,
        compactThreshold: 0.92,
        targetUsage: 0.5,
        protectedRecent: 0.3,
        protectedToolResults: 5,
        truncateChars: 250,
        shape: "head",
        budgetByTool: {},
        exemptTools: [],
        clearAtLeast: null,
        maxConsecutiveSkips: 3,
        countSkips: "whenGrown",
        clearFloorWhenOverBudget: "refuse",
        whenInfeasible: "send",
        meter: "estimate",
        strict: false
      })
    }))

  it.effect("accepts the ends of every range", () =>
    Effect.gen(function*() {
      const ends: ReadonlyArray<Settings.Input> = [
        { compactThreshold: 1, targetUsage: 0, protectedRecent: 0, outputReserve: 0 },
        { protectedRecent: 1, outputReserve: 1, window: 12_289 },
        { protectedToolResults: -1, maxConsecutiveSkips: 0, truncateChars: 0, budgetTokens: 0, noticeReserve: 0 },
        { clearAtLeast: 0.000001 },
        { clearAtLeast: 1 },
        { maxTokens: 1 }
      ]
      for (const each of ends) yield* Settings.decode(seed(each))
    }))

  it.effect("a manager with bad settings is not made", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ContextManager.make(seeded({ settings: { window: -1 } })))
      assert.strictEqual(error._tag, "PolicyError")
      assert.include(error.message, "settings.window: write")
    }))
})

describe("Budget", () => {
  const rows: ReadonlyArray<
    readonly [
      name: string,
      settings: Settings.Input,
      given: number | undefined,
      expected: readonly [total: number, source: Budget.Budget["source"], limit: number, target: number]
    ]
  > = [
    ["nothing known", {}, undefined, [200_000, "fallback", 199_200, 99_600]],
    ["a window", { window: 200_000 }, undefined, [191_808, "window", 191_008, 95_504]],
    ["half of an odd output, rounded down", { window: 100_000, maxOutput: 8_193 }, undefined, [
      91_808,
      "window",
      91_008,
      45_504
    ]],
    ["the whole output", { window: 100_000, outputReserve: 1 }, undefined, [87_712, "window", 86_912, 43_456]],
    ["a small window", { window: 8_000 }, undefined, [2_000, "window", 1_500, 750]],
    ["a smaller one", { window: 1_000 }, undefined, [250, "window", 188, 94]],
    ["a small window and a short answer", { window: 8_000, maxOutput: 1_000 }, undefined, [
      3_750,
      "window",
      2_950,
      1_475
    ]],
    ["an answer as long as the window", { window: 8_000, maxOutput: 8_000, outputReserve: 1 }, undefined, [
      1_000,
      "window",
      750,
      375
    ]],
    ["the smallest with the whole margin", { window: 12_288 }, undefined, [4_096, "window", 3_296, 1_648]],
    ["no output", { window: 100_000, maxOutput: 0 }, undefined, [95_904, "window", 95_104, 47_552]],
    ["a cap", { window: 200_000, maxTokens: 50_000 }, undefined, [50_000, "maxTokens", 49_200, 24_600]],
    ["a cap above the window", { window: 100_000, maxTokens: 99_000 }, undefined, [91_808, "window", 91_008, 45_504]],
    ["a cap on the fallback", { maxTokens: 10_000 }, undefined, [10_000, "maxTokens", 9_200, 4_600]],
    ["given", { window: 200_000 }, 30_000, [30_000, "given", 29_200, 14_600]],
    ["given, rounded down", {}, 30_000.9, [30_000, "given", 29_200, 14_600]],
    ["given above the cap", { maxTokens: 20_000 }, 30_000, [20_000, "maxTokens", 19_200, 9_600]],
    ["no notice", { notice: false }, 30_000, [30_000, "given", 30_000, 15_000]],
    ["a reserve as large as the budget is ignored", {}, 800, [800, "given", 800, 400]],
    ["a reserve just below it is taken off", {}, 801, [801, "given", 1, 0]],
    ["another reserve", { noticeReserve: 100 }, 1_101, [1_101, "given", 1_001, 500]],
    ["a target of its own", { targetUsage: 0.7, notice: false }, 1_001, [1_001, "given", 1_001, 700]]
  ]
  for (const [name, settings, given, expected] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { limit, source, target, total, trigger } = Budget.resolve(yield* Settings.decode(seed(settings)), given)
        assert.deepStrictEqual([total, source, limit, target], [...expected])
        assert.strictEqual(trigger, 0.92 * limit)
      }))
  }

  const models: ReadonlyArray<
    readonly [
      name: string,
      window: number | undefined,
      model: { readonly window?: number; readonly maxOutput?: number },
      expected: readonly [total: number, source: Budget.Budget["source"]]
    ]
  > = [
    ["the table alone", undefined, { window: 100_000 }, [91_808, "model"]],
    ["a smaller window in the settings", 100_000, { window: 200_000 }, [91_808, "window"]],
    ["a smaller window of the model", 200_000, { window: 100_000 }, [91_808, "model"]],
    ["both the same", 100_000, { window: 100_000 }, [91_808, "window"]],
    ["the answer of the model", 200_000, { window: 100_000, maxOutput: 2_000 }, [94_904, "model"]],
    ["the answer of the model in the window of the settings", 100_000, { window: 200_000, maxOutput: 2_000 }, [
      94_904,
      "window"
    ]],
    ["neither", undefined, {}, [200_000, "fallback"]]
  ]
  for (const [name, window, model, expected] of models) {
    it.effect(`of two windows the smaller: ${name}`, () =>
      Effect.gen(function*() {
        const settings = yield* Settings.decode(seed(window === undefined ? {} : { window }))
        const { source, total } = Budget.resolve(settings, undefined, 0, null, model)
        assert.deepStrictEqual([total, source], [...expected])
        assert.strictEqual(Budget.windowOf(settings, model), expected[1] === "fallback" ? 200_000 : 100_000)
      }))
  }

  it("an amount is a ratio below 1, else tokens", () => {
    assert.deepStrictEqual(
      [0, 0.16, 0.999, 1, 20_000, 20_000.5].map((amount) => Settings.amountOf(amount, 1_000)),
      [0, 160, 999, 1, 20_000, 20_000]
    )
  })
})
