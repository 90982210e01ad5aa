import { assert, describe, it } from "@effect/vitest"
import * as Kind from "effect-compaction/Kind"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const window = { window: 200_000 }

/** What is written, the path that must be named, and what the message must say to write instead. */
const rejected: ReadonlyArray<readonly [input: unknown, path: string, says: string]> = [
  // The policy as a whole.
  [5, "", "write an object in braces"],
  [null, "", "write an object in braces"],
  [[], "", "write an object in braces"],
  ["codex", "", "write an object in braces"],

  // Each key by itself.
  [{ window: "200k" }, "window", "write a number"],
  [{ window: 0 }, "window", "write the context window of the model in tokens, for example 200000"],
  [{ window: 200_000.5 }, "window", "write an integer"],
  [{ maxOutput: -1 }, "maxOutput", "write the longest answer in tokens, 0 or more"],
  [{ outputReserve: 50 }, "outputReserve", "as a ratio from 0 to 1, for example 0.5"],
  [{ maxTokens: 0 }, "maxTokens", "write a budget of at least 1 token, or leave the key out"],
  [{ notice: "yes" }, "notice", "write true or false"],
  [{ noticeReserve: -800 }, "noticeReserve", "0 or more, for example 800"],
  [{ compactThreshold: 92 }, "compactThreshold", "write a ratio above 0 and up to 1, for example 0.95"],
  [{ compactThreshold: 0 }, "compactThreshold", "write a ratio above 0"],
  [{ compactThreshold: Number.NaN }, "compactThreshold", "write a finite number"],
  [{ targetUsage: -0.1 }, "targetUsage", "write a ratio from 0 to below compactThreshold"],
  [{ protectedRecent: 30 }, "protectedRecent", "write a ratio from 0 to 1, for example 0.3"],
  [{ protectedToolResults: 2.5 }, "protectedToolResults", "write an integer"],
  [{ truncateChars: -1 }, "truncateChars", "write a number of characters, 0 or more, for example 250"],
  [{ shape: "tail" }, "shape", "write \"head\" or \"headTail\""],
  [{ budgetTokens: -1 }, "budgetTokens", "write a number of tokens, 0 or more"],
  [{ budgetByTool: { grep: "many" } }, "budgetByTool.grep", "write a number"],
  [{ budgetByTool: { "read file": -1 } }, "budgetByTool[\"read file\"]", "write a number of tokens, 0 or more"],
  [{ budgetByTool: [] }, "budgetByTool", "write an object in braces"],
  [{ exemptTools: "grep" }, "exemptTools", "write a list in brackets"],
  [{ exemptTools: ["grep", 1] }, "exemptTools[1]", "write a text in quotes"],
  [{ clearAtLeast: -1 }, "clearAtLeast", "write null to turn it off, \"auto\", a ratio below 1, or a number of tokens"],
  [{ clearAtLeast: "20k" }, "clearAtLeast", "write null, \"auto\" or a number"],
  [{ maxConsecutiveSkips: "3" }, "maxConsecutiveSkips", "write a number"],
  [{ countSkips: "never" }, "countSkips", "write \"every\" or \"whenGrown\""],
  [{ clearFloorWhenOverBudget: "ignore" }, "clearFloorWhenOverBudget", "write \"refuse\" or \"override\""],
  [{ whenInfeasible: "throw" }, "whenInfeasible", "write \"send\" or \"fail\""],
  [{ meter: "guess" }, "meter", "write \"estimate\", \"actual\", \"hybrid\" or \"calibrated\""],
  [{ sizing: "tokens" }, "sizing", "write \"price\" or \"provider\""],
  [{ provenanceGate: 1 }, "provenanceGate", "write true or false"],
  [{ strict: null }, "strict", "write true or false"],
  [{ maxMessages: 0 }, "maxMessages", "at least 1, or leave the key out"],
  [{ maxToolResultBytes: 10 }, "maxToolResultBytes", "write null to turn it off, or at least 128 bytes"],
  [{ maxImages: -1 }, "maxImages", "write null to turn it off, or a number of images"],
  [{ maxRequestBytes: 0 }, "maxRequestBytes", "write null to turn it off, or a number of bytes"],
  [{ noticeVerbosity: "loud" }, "noticeVerbosity", "write \"minimal\" or \"normal\""],
  [{ noticeMinLevel: -1 }, "noticeMinLevel", "write a level of the ladder, 0 or more"],
  [{ replayLastUser: "once" }, "replayLastUser", "write true or false"],
  [{ signedReasoning: "drop" }, "signedReasoning", "write \"strip\" or \"keep\""],

  // Keys that do not exist.
  [{ compactTreshold: 0.9 }, "compactTreshold", "there is no such key: write \"compactThreshold\""],
  [{ compact_threshold: 0.9 }, "compact_threshold", "there is no such key: write \"compactThreshold\""],
  [{ "protected-recent": 0.3 }, "[\"protected-recent\"]", "there is no such key: write \"protectedRecent\""],
  [{ temperature: 0.3 }, "temperature", "there is no such key: take it out, or write \"window\", \"maxOutput\""],
  [{ toString: 1 }, "toString", "there is no such key"],

  // The ladder.
  [{ ladder: "progressive" }, "ladder", "write a list in brackets"],
  [{ ladder: [5] }, "ladder[0]", "write an object in braces"],
  [{ ladder: [{}] }, "ladder[0]._tag", "is missing: write the kind of the rung, \"truncateToolResults\", \"remove\""],
  [{ ladder: [{ _tag: "trim" }] }, "ladder[0]._tag", "write the kind of the rung, \"truncateToolResults\", \"remove\""],
  [{ ladder: [{ _tag: "removes", relax: 1 }] }, "ladder[0]._tag", "write the kind of the rung, \"remove\""],
  [{ ladder: [{ _tag: "last_resort", relax: 1 }] }, "ladder[0]._tag", "write the kind of the rung, \"lastResort\""],
  [{ ladder: [{ _tag: 3 }] }, "ladder[0]._tag", "write the kind of the rung"],
  [
    {
      ladder: [
        { _tag: "truncateToolResults", fraction: 0.25 },
        { _tag: "remove", relax: 1 },
        { _tag: "truncateToolResults", fraction: 0.5 },
        { _tag: "truncateToolResults", fraction: 75 }
      ]
    },
    "ladder[3].fraction",
    "as a ratio above 0 and up to 1, for example 0.25"
  ],
  [
    { ladder: [{ _tag: "truncateToolResults" }] },
    "ladder[0].fraction",
    "is missing: write the share of the tool results"
  ],
  [{ ladder: [{ _tag: "truncateToolResults", fraction: 0 }] }, "ladder[0].fraction", "a ratio above 0"],
  [{ ladder: [{ _tag: "truncateToolResults", fraction: "all" }] }, "ladder[0].fraction", "write a number"],
  [{ ladder: [{ _tag: "remove" }] }, "ladder[0].relax", "is missing: write how much of protectedRecent still holds"],
  [{ ladder: [{ _tag: "remove", relax: 2 }] }, "ladder[0].relax", "a ratio from 0 to 1, for example 0.6"],
  [{ ladder: [{ _tag: "lastResort", relax: -1 }] }, "ladder[0].relax", "a ratio from 0 to 1"],
  [
    { ladder: [{ _tag: "remove", relax: 1, relaxed: 1 }] },
    "ladder[0].relaxed",
    "there is no such key: write \"relax\""
  ],
  [{ ladder: [{ _tag: "remove", relax: 1, keep: 3 }] }, "ladder[0].keep", "take it out, or write \"relax\""],

  [{ ladder: [{ _tag: "pruneToolResults", headChars: -1 }] }, "ladder[0].headChars", "write"],
  [{ ladder: [{ _tag: "pruneToolResults", thresholdChars: 4_000 }] }, "ladder[0].thresholdChars", "write at least"],
  [{ ladder: [{ _tag: "clearToolResults", keep: 1.5 }] }, "ladder[0].keep", "write an integer"],
  [{ ladder: [{ _tag: "clearToolResults", exclude: "read" }] }, "ladder[0].exclude", "write a list in brackets"],
  [{ ladder: [{ _tag: "dedupeReads", tool: "", key: "path" }] }, "ladder[0].tool", "write"],
  [{ ladder: [{ _tag: "clearReasoning", keepTurns: -1 }] }, "ladder[0].keepTurns", "0 or more, for example 1"],

  // The pass.
  [{ pass: "standard" }, "pass", "write a list in brackets"],
  [{ pass: [{ _tag: "presure" }, { _tag: "ladder" }] }, "pass[0]._tag", "write the kind of the stage, \"pressure\""],
  [{ pass: [{ _tag: "remove", relax: 1 }] }, "pass[0]._tag", "write the kind of the stage, \"overhead\""],
  [{ pass: [{ _tag: "pressure", at: 1 }] }, "pass[0].at", "there is no such key: take it out"],
  [{ pass: [{ _tag: "overhead" }, { _tag: "ladder" }] }, "pass[1]", "write { \"_tag\": \"pressure\" }, or a gate"],
  [{ pass: [{ _tag: "ladder" }, { _tag: "pressure" }] }, "pass[0]", "it would shorten every request"],

  // The summary.
  [{ summary: true }, "summary", "write an object in braces"],
  [{ summary: { mode: "later" } }, "summary.mode", "write \"background\" or \"between\""],
  [{ summary: { timeout: "soon" } }, "summary.timeout", "write"],
  [{ summary: { trigger: 0.4 } }, "summary.disarm", "write a ratio below trigger (0.4), or turn hysteresis off"],
  [{ summary: { trigger: 60 } }, "summary.trigger", "write a ratio from 0 to 1, for example 0.6"],
  [{ summary: { model: "small" } }, "summary.model", "there is no such key"],

  // Between keys.
  [{ targetUsage: 0.95 }, "targetUsage", "write a ratio below compactThreshold (0.95)"],
  [{ targetUsage: 0.5, compactThreshold: 0.4 }, "targetUsage", "write a ratio below compactThreshold (0.4)"],
  [{ maxTokens: 800 }, "noticeReserve", "write less than the budget of 800 tokens (window, maxTokens)"],
  [{ ...window, noticeReserve: 200_000 }, "noticeReserve", "or set notice to false"],
  [{ maxTokens: 10_000, budgetTokens: 9_200 }, "budgetTokens", "write less than the budget of 9200 tokens"],
  [
    { maxTokens: 10_000, budgetByTool: { bash: 20_000 } },
    "budgetByTool.bash",
    "write less than the budget of 9200 tokens"
  ],
  [
    { exemptTools: ["read", "bash"], budgetByTool: { bash: 10 } },
    "exemptTools[1]",
    "take \"bash\" out here or in budgetByTool"
  ],
  [{ meter: "estimate", provenanceGate: true }, "provenanceGate", "write false, or set meter to \"hybrid\""],
  [{ meter: "estimate", sizing: "provider" }, "sizing", "write \"price\", or set meter to \"calibrated\""],
  [
    { clearAtLeast: 0.53 },
    "clearAtLeast",
    "write at most 0.52, or set clearFloorWhenOverBudget to \"override\": a pass begins"
  ],
  [
    { extends: "contextSimple", maxTokens: 100_000, clearAtLeast: 41_665 },
    "clearAtLeast",
    "write at most 41664 tokens"
  ],
  [{ maxMessages: 1 }, "maxMessages", "write at least 3: it aims at maxMessages × targetUsage"],
  [{ maxMessages: 100, targetUsage: 0 }, "maxMessages", "leave the key out, or raise targetUsage above 0"],
  [{ noticeMinLevel: 9 }, "noticeMinLevel", "write at most 8, the number of rungs in ladder"],
  [
    { maxRequestBytes: 131_072, maxToolResultBytes: 131_072 },
    "maxRequestBytes",
    "write more than maxToolResultBytes (131072)"
  ],
  [
    { ladder: [{ _tag: "remove", relax: 1 }, { _tag: "remove", relax: 1 }] },
    "ladder[1]",
    "take it out, or change it: it repeats ladder[0]"
  ]
]

const problemsOf = (input: unknown) =>
  Effect.map(Effect.flip(Policy.decode(input)), (error) => {
    assert.strictEqual(error._tag, "PolicyError")
    return error.problems
  })

describe("a policy that is not one", () => {
  it("is refused in at least 40 ways", () => assert.isAbove(rejected.length, 39))

  for (const [input, path, says] of rejected) {
    it.effect(`${JSON.stringify(input)}`.slice(0, 100), () =>
      Effect.gen(function*() {
        const problems = yield* problemsOf(input)
        assert.deepStrictEqual(problems.map((problem) => problem.path), [path])
        assert.include(problems[0]!.expected, says)
      }))
  }

  it.effect("what its message advises is accepted", () =>
    Effect.gen(function*() {
      const advised: ReadonlyArray<unknown> = [
        { compactThreshold: 0.5, targetUsage: 0.49 },
        { window: 8_193, notice: false },
        { maxTokens: 801 },
        { maxTokens: 800, notice: false },
        { maxTokens: 10_000, budgetTokens: 9_199 },
        { provenanceGate: true },
        { sizing: "provider" },
        { clearAtLeast: 0.52 },
        { extends: "contextSimple", maxTokens: 100_000, clearAtLeast: 41_664 },
        { maxTokens: 100_000, clearAtLeast: 60_000, clearFloorWhenOverBudget: "override" },
        // A budget that comes with the call may be any.
        { clearAtLeast: 500_000 },
        { maxMessages: 3 },
        { noticeMinLevel: 8 },
        { noticeMinLevel: 9, notice: false },
        { maxRequestBytes: 131_073, maxToolResultBytes: 131_072 },
        { ladder: [] },
        { pass: [{ _tag: "pressure" }, { _tag: "ladder" }] },
        { pass: [] }
      ]
      for (const each of advised) yield* Policy.decode(each)
    }))

  it.effect("is refused with every problem at once, those between keys among them", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Policy.decode({
        windows: 1,
        notice: 0,
        protectedRecent: 7,
        targetUsage: 0.95,
        budgetByTool: { read: -1 },
        ladder: [{ _tag: "remove", relax: 9 }, { _tag: "prune" }, { _tag: "truncateToolResults" }]
      }))
      assert.deepStrictEqual(error.problems.map(({ path }) => path), [
        "windows",
        "notice",
        "protectedRecent",
        "budgetByTool.read",
        "ladder[0].relax",
        "ladder[1]._tag",
        "ladder[2].fraction",
        "targetUsage"
      ])
      assert.strictEqual(error.message.split("\n").length, error.problems.length)
      assert.include(error.message, "protectedRecent: write a ratio from 0 to 1, for example 0.3 (found 7)\n")
    }))

  it.effect("is not blamed for what a bad key may have caused", () =>
    Effect.gen(function*() {
      // Without its threshold nobody knows whether that target is too high.
      const problems = yield* problemsOf({ compactThreshold: 2, targetUsage: 0.95 })
      assert.deepStrictEqual(problems.map(({ path }) => path), ["compactThreshold"])
    }))

  it.effect("shows the beginning of a long value", () =>
    Effect.gen(function*() {
      const [problem] = yield* problemsOf({ meter: "x".repeat(1_000) })
      assert.strictEqual(problem?.found?.length, 61)
    }))
})

const Redact = Kind.rung("app/redact", {
  options: Schema.Struct({
    words: Schema.Array(Schema.NonEmptyString),
    from: Schema.Natural,
    to: Schema.Natural
  }).check(
    Schema.makeFilter(({ from, to }) => from < to ? undefined : { path: ["to"], issue: "write more than from" })
  ),
  build: () => Rung.remove({ relax: 1 })
})

describe("a rung of one's own that is written wrong", () => {
  const { decode } = Policy.withKinds(Redact)
  const rows: ReadonlyArray<readonly [rung: object, path: string, says: string]> = [
    [{ words: ["a"], from: 0 }, "ladder[0].to", "is missing"],
    [{ words: [""], from: 0, to: 1 }, "ladder[0].words[0]", "write"],
    [{ words: "a", from: 0, to: 1 }, "ladder[0].words", "write a list in brackets"],
    [{ words: [], from: 2, to: 1 }, "ladder[0].to", "write more than from"],
    [{ words: [], from: 0, to: 1, wrods: 1 }, "ladder[0].wrods", "write \"words\""]
  ]
  for (const [rung, path, says] of rows) {
    it.effect(`${path}: ${says}`, () =>
      Effect.gen(function*() {
        const { problems } = yield* Effect.flip(decode({ ladder: [{ _tag: "app/redact", ...rung }] }))
        assert.deepStrictEqual(problems.map((problem) => problem.path), [path])
        assert.include(problems[0]!.expected, says)
      }))
  }

  it.effect("is one of the kinds that are offered", () =>
    Effect.gen(function*() {
      const { problems } = yield* Effect.flip(decode({ ladder: [{ _tag: "app/redacts" }] }))
      assert.deepStrictEqual(problems.map(({ expected }) => expected), ["write the kind of the rung, \"app/redact\""])
    }))
})
