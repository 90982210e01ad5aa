import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Settings from "effect-compaction/Settings"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as SettingsFlags from "../../src/cli/SettingsFlags.ts"

/** The settings that a command line says, through the parser. */
const parse = (args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    let settings: Settings.Input | undefined
    const command = Command.make("c", { flags: SettingsFlags.flags }, ({ flags }) =>
      Effect.map(SettingsFlags.decode(flags), (decoded) => {
        settings = decoded
      }))
    yield* Command.runWith(command, { version: "0" })(args)
    return settings
  }).pipe(Effect.provide(NodeServices.layer))

describe("SettingsFlags", () => {
  it("every setting has a flag, and every flag is a setting", () => {
    assert.deepStrictEqual(Object.keys(SettingsFlags.flags).sort(), Object.keys(Settings.Settings.fields).sort())
  })

  const cases: ReadonlyArray<readonly [args: ReadonlyArray<string>, input: Settings.Input]> = [
    [[], {}],
    [["--window", "32000"], { window: 32_000 }],
    [["--max-output", "0"], { maxOutput: 0 }],
    [["--standing-instructions", "0.02"], { standingInstructions: 0.02 }],
    [["--output-reserve", "0.25"], { outputReserve: 0.25 }],
    [["--max-tokens", "9000"], { maxTokens: 9_000 }],
    [["--threshold", "0.8"], { compactThreshold: 0.8 }],
    [["--target", "0.4"], { targetUsage: 0.4 }],
    [["--protected-recent", "0"], { protectedRecent: 0 }],
    [["--protected-tool-results", "-1"], { protectedToolResults: -1 }],
    [["--standing-instructions", "0"], { standingInstructions: 0 }],
    [["--truncate-chars", "600"], { truncateChars: 600 }],
    [["--shape", "headTail"], { shape: "headTail" }],
    [["--budget-tokens", "200"], { budgetTokens: 200 }],
    [["--budget-by-tool", "Read=900", "--budget-by-tool", "Bash=300"], { budgetByTool: { Read: 900, Bash: 300 } }],
    [["--exempt-tool", "Read", "--exempt-tool", "Bash"], { exemptTools: ["Read", "Bash"] }],
    [["--clear-at-least", "20000"], { clearAtLeast: 20_000 }],
    [["--clear-at-least", "auto"], { clearAtLeast: "auto" }],
    [
      ["--cache-life", "5 minutes", "--when-cold", "threshold=0.5", "--when-cold", "target=0.3"],
      { cacheLife: "5 minutes", whenCold: { threshold: 0.5, target: 0.3 } }
    ],
    [["--max-consecutive-skips", "5"], { maxConsecutiveSkips: 5 }],
    [["--count-skips", "whenGrown"], { countSkips: "whenGrown" }],
    [["--clear-floor-when-over-budget", "override"], { clearFloorWhenOverBudget: "override" }],
    [["--when-infeasible", "fail"], { whenInfeasible: "fail" }],
    [["--meter", "hybrid"], { meter: "hybrid" }],
    [["--sizing", "provider"], { sizing: "provider" }],
    [["--no-provenance-gate"], { provenanceGate: false }],
    [["--strict-target"], { strict: true }],
    [["--max-messages", "400"], { maxMessages: 400 }],
    [["--max-tool-result-bytes", "131072"], { maxToolResultBytes: 131_072 }],
    [["--max-images", "20"], { maxImages: 20 }],
    [["--max-request-bytes", "30000000"], { maxRequestBytes: 30_000_000 }],
    [["--signed-reasoning", "keep"], { signedReasoning: "keep" }],
    [["--no-notice"], { notice: false }],
    [["--notice-reserve", "100"], { noticeReserve: 100 }],
    [["--notice-verbosity", "minimal"], { noticeVerbosity: "minimal" }],
    [["--notice-min-level", "3"], { noticeMinLevel: 3 }],
    [
      [
        "--summary",
        "trigger=0.7",
        "--summary",
        "eager=true",
        "--summary",
        "mode=between",
        "--summary",
        "timeout=5 seconds"
      ],
      { summary: { trigger: 0.7, eager: true, mode: "between", timeout: "5 seconds" } }
    ],
    [["--replay-last-user"], { replayLastUser: true }]
  ]
  for (const [args, input] of cases) {
    it.effect(args.join(" ") || "no flag", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* parse(args), input)
      }))
  }

  it("every flag is in a case", () => {
    const said = new Set(cases.flatMap(([, input]) => Object.keys(input)))
    assert.deepStrictEqual(Object.keys(SettingsFlags.flags).filter((key) => !said.has(key)), [])
  })

  it.effect("an error names each flag as it was written", () =>
    Effect.gen(function*() {
      // A value that no schema accepts, for every flag at once.
      const values = Object.fromEntries(
        Object.keys(SettingsFlags.flags).map((key) => [key, Option.some(Symbol.iterator)])
      ) as unknown as SettingsFlags.Values
      const error = yield* Effect.flip(SettingsFlags.decode(values))
      const flags = new Set(error.problems.map(({ flag }) => flag.split(" ")[0]!))
      const written = new Set(
        cases.flatMap(([args]) => args.filter((arg) => arg.startsWith("--"))).map((arg) => arg.replace("--no-", "--"))
      )
      assert.deepStrictEqual([...flags].sort(), [...written].sort())
    }))
})
