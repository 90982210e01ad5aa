import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type * as Session from "effect-compaction/format/Session"
import * as Kind from "effect-compaction/Kind"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as Prompt from "effect/ai/Prompt"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Cli from "../../src/cli/Cli.ts"
import * as Paint from "../../src/cli/Paint.ts"
import * as Replay from "../../src/cli/Replay.ts"
import * as ReplayText from "../../src/cli/ReplayText.ts"
import * as Report from "./report.ts"
import { openAiChat } from "./sessions.ts"

const folder = mkdtempSync(join(tmpdir(), "effect-compaction-"))
const inFolder = (name: string) => join(folder, name)
const write = (name: string, text: string) => writeFileSync(inFolder(name), text)
beforeAll(() => {
  write("session.json", openAiChat({ count: 90, characters: 2_000 }))
  write("window.json", JSON.stringify({ window: 32_000, notice: false, ladder: [{ _tag: "remove", relax: 1 }] }))
  write("bad.json", JSON.stringify({ windows: 32_000, ladder: [{ _tag: "remove" }, { _tag: "test/quiet" }] }))
  write("torn.json", "{\n  \"window\": 32000,\n  \"meter\"")
  write("list.json", "[]")
  write("number.json", "5")
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

class Silenced extends Schema.TaggedError<Silenced>("test/Silenced")("Silenced", { by: Schema.String }) {
  override get message() {
    return `silenced by ${this.by}`
  }
}
class Voice extends Context.Service<Voice, string>()("test/Voice") {}

/** A rung kind that nobody but this test knows. */
const Quiet = Kind.rung("test/quiet", {
  options: Schema.Struct({ after: Schema.Natural }),
  build: ({ after }) =>
    Rung.make(
      "quiet",
      (pass) =>
        Effect.flatMap(Voice, (by) => pass.entries > after ? Effect.fail(new Silenced({ by })) : Effect.succeed(pass))
    )
})

interface Ended {
  readonly code: number
  readonly out: ReadonlyArray<string>
  readonly err: ReadonlyArray<string>
}

/** Runs the command line in this process, with the rung kind of this test. */
const run = (...args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const out: Array<string> = []
    const err: Array<string> = []
    const console = Object.assign(Object.create(globalThis.console) as Console.Console, {
      log: (text: string) => void out.push(text),
      error: (text: string) => void err.push(text)
    })
    const code = yield* Cli.run(args, { version: "0", policies: Effect.succeed(Policy.withKinds(Quiet)) }).pipe(
      Effect.as(0),
      Effect.catchTag("Failed", ({ code }) => Effect.succeed(code)),
      Effect.provideService(Console.Console, console),
      Effect.provideService(Voice, "the test")
    )
    return { code, out, err } satisfies Ended
  }).pipe(Effect.provide(NodeServices.layer))

describe("replay --policy", () => {
  it.effect("plays under a preset, a policy in a file, and several, named in JSON", () =>
    Effect.gen(function*() {
      const policies = [...Object.keys(Policy.presets), inFolder("window.json")]
      const { code, out } = yield* run(
        "replay",
        "--json",
        "--window",
        "32000",
        ...policies.flatMap((name) => ["--policy", name]),
        inFolder("session.json")
      )
      assert.strictEqual(code, 0)
      const reports = out.map((line) => Report.decode(line))
      assert.deepStrictEqual(reports.map(({ policy }) => policy), policies)
      const byName = Object.fromEntries(reports.map((report) => [report.policy, report.totals]))
      assert.isAbove(byName.contextSimple!.boundaries, 0)
      assert.strictEqual(byName.none!.boundaries, 0)
      assert.isAbove(byName.none!.overBudgetRequests, 0)
      assert.strictEqual(byName.slidingWindow!.truncated, 0)
      assert.isAbove(byName.slidingWindow!.removed, 0)
    }))

  it.effect("a flag comes before what the policy says", () =>
    Effect.gen(function*() {
      const windowOf = (...flags: ReadonlyArray<string>) =>
        Effect.map(
          run("replay", "--json", ...flags, "--policy", inFolder("window.json"), inFolder("session.json")),
          ({ out }) => Report.decode(out[0]!).window
        )
      assert.deepStrictEqual([yield* windowOf(), yield* windowOf("--window", "64000")], [32_000, 64_000])
    }))

  it.effect("compares several in a table, a line each", () =>
    Effect.gen(function*() {
      const { out } = yield* run(
        "replay",
        "--window",
        "32000",
        "--policy",
        "contextSimple",
        "--policy",
        "none",
        inFolder("session.json")
      )
      const text = out.join("\n")
      assert.include(text, "policy contextSimple\n")
      assert.include(text, "policy none\n")
      const table = out.at(-1)!.trim().split("\n")
      assert.strictEqual(table.length, 3)
      assert.match(table[0]!, /^policy +budget +boundaries +freed/)
      assert.match(table[1]!, /^contextSimple +23,0/)
      assert.match(table[2]!, /^none +23,\d+ +0 +0 +0 +0 +0/)
    }))

  const refused: ReadonlyArray<readonly [policy: string, flags: ReadonlyArray<string>, says: ReadonlyArray<string>]> = [
    ["codes", [], [
      "codes: write one of contextSimple, contextSimpleHybrid, contextSimpleSummary, deepseekHarness, codex, claudeCode, "
      + "openCode, anthropicContextEditing, slidingWindow, none, recommended, or a JSON file: there is no such file"
    ]],
    ["toString", [], ["toString: write one of contextSimple"]],
    [folder, [], [`${folder}: write one of contextSimple`]],
    [inFolder("torn.json"), [], [`${inFolder("torn.json")}:3: expected the JSON of a policy`]],
    [inFolder("list.json"), [], [`${inFolder("list.json")}: write an object in braces, { … }, the policy as a whole`]],
    [inFolder("number.json"), [], [
      `${inFolder("number.json")}: write an object in braces, { … }, the policy as a whole (found 5)`
    ]],
    [inFolder("bad.json"), [], [
      `${inFolder("bad.json")}: windows: there is no such key: write "window" (found 32000)`,
      `${inFolder("bad.json")}: ladder[0].relax: is missing`,
      `${inFolder("bad.json")}: ladder[1].after: is missing`
    ]],
    ["codex", ["--target", "0.95"], ["codex: targetUsage: write a ratio below compactThreshold (0.9)"]]
  ]
  for (const [policy, flags, says] of refused) {
    it.effect(`${policy.replace(folder, "")} ${flags.join(" ")} ends with exit code 1`, () =>
      Effect.gen(function*() {
        const { code, err, out } = yield* run("replay", ...flags, "--policy", policy, inFolder("session.json"))
        assert.deepStrictEqual([code, out], [1, []])
        const lines = err.join("\n").split("\n")
        assert.strictEqual(lines.length, says.length)
        says.forEach((each, at) =>
          assert.isTrue(lines[at]!.startsWith(`--policy ${each}`), `${lines[at]} starts with --policy ${each}`)
        )
      }))
  }

  it.effect("a rung kind of one's own runs, with its services and its errors", () =>
    Effect.gen(function*() {
      write("quiet.json", JSON.stringify({ maxTokens: 20_000, ladder: [{ _tag: "test/quiet", after: 40 }] }))
      const { code, out } = yield* run("replay", "--json", "--policy", inFolder("quiet.json"), inFolder("session.json"))
      assert.strictEqual(code, 0)
      const { rows } = Report.decode(out[0]!)
      const failed = rows.filter(({ error }) => error !== undefined)
      assert.isAbove(failed.length, 0)
      assert.deepStrictEqual(failed[0]!.error, { tag: "Silenced", message: "silenced by the test" })
    }))
})

/** A session of so many requests, each of which was billed so much. */
const billed = (bills: ReadonlyArray<number | undefined>): Session.Session => {
  const text = (value: string) => [Prompt.makePart("text", { text: value })]
  return {
    file: "f",
    format: "prompt",
    why: "made here",
    model: undefined,
    messages: bills.flatMap((_, at) => [
      Prompt.makeMessage("user", { content: text(`${at} ${"x".repeat(3_966)}`) }),
      Prompt.makeMessage("assistant", { content: text("ok") })
    ]),
    usage: new Map(
      bills.flatMap((bill, at) => bill === undefined ? [] : [[2 * at + 1, { fresh: bill - 10, cacheRead: 10 }]])
    ),
    times: new Map(),
    findings: []
  }
}

describe("what a recording says was billed", () => {
  const play = (bills: ReadonlyArray<number | undefined>, policy: Policy.Policy = Policy.none) =>
    Effect.map(
      Replay.play(billed(bills), { policy: { name: "test", ...Policy.options(policy) } }),
      (replay) => ({ ...replay, ...replay.report })
    )

  it.effect("stands beside the estimate of each request, and each meter is compared with it", () =>
    Effect.gen(function*() {
      const { rows, totals } = yield* play([2_000, 4_000, undefined, 8_000])
      assert.deepStrictEqual(rows.map(({ billed }) => billed), [2_000, 4_000, null, 8_000])
      const [first = 0, second = 0, , fourth = 0] = rows.map(({ estimate }) => estimate)
      assert.isBelow(first, 1_010)
      const off = (count: number, bill: number) => Math.abs(count - bill) / bill
      const of = (...errors: ReadonlyArray<number>) => ({
        requests: errors.length,
        mean: errors.reduce((sum, error) => sum + error, 0) / errors.length,
        worst: Math.max(...errors)
      })
      assert.deepStrictEqual(totals.meters.estimate, of(off(first, 2_000), off(second, 4_000), off(fourth, 8_000)))
      assert.deepStrictEqual(totals.meters.actual, of(off(2_000, 4_000), off(4_000, 8_000)))
      assert.deepStrictEqual(
        totals.meters.hybrid,
        of(off(2_000 + second - first, 4_000), off(4_000 + fourth - second, 8_000))
      )
      // What the first bill holds beyond its price stands around every request; the ratio is of the rest.
      const overhead = 2_000 - first
      const next = 1 + 0.2 * ((4_000 - overhead) / second - 1)
      assert.deepStrictEqual(
        totals.meters.calibrated,
        of(off(second + overhead, 4_000), off(Math.ceil(fourth * next) + overhead, 8_000))
      )
    }))

  it.effect("drives the meter of the policy", () =>
    Effect.gen(function*() {
      const bills = Array.from({ length: 10 }, (_, at) => 5_000 * (at + 1))
      const trigger = { ...Policy.contextSimple, notice: false, maxTokens: 21_000 }
      const first = (rows: ReadonlyArray<Replay.Row>) => rows.find(({ boundary }) => boundary !== null)?.request
      assert.isUndefined(first((yield* play(bills, trigger)).rows))
      const { rows } = yield* play(bills, { ...trigger, meter: "calibrated" })
      // Priced at about 1,004 each and billed at 5,000 each, they reach the trigger long before their price would.
      assert.strictEqual(first(rows), 6)
    }))

  it.effect("does not count once the request is another one than was recorded", () =>
    Effect.gen(function*() {
      const grow = [2_000, 4_000, 6_000, 8_000, 10_000, 12_000]
      const whole = yield* play(grow)
      assert.strictEqual(whole.totals.meters.estimate?.requests, 6)
      // The agent had shortened its own history: the bill falls, and what it bills is unknown from then on.
      const fallen = yield* play([2_000, 4_000, 6_000, 3_000, 5_000, 7_000])
      assert.strictEqual(fallen.totals.meters.estimate?.requests, 3)
      assert.deepStrictEqual(fallen.rows.map(({ billed }) => billed), [2_000, 4_000, 6_000, 3_000, 5_000, 7_000])
      // A little less than before is no shortening: a tool was left out, or the estimate of a cache.
      assert.strictEqual((yield* play([2_000, 4_000, 3_900])).totals.meters.estimate?.requests, 3)
      // This policy shortened it.
      const { report } = yield* play(grow, { ...Policy.slidingWindow, maxTokens: 3_000, targetUsage: 0.1 })
      const before = report.rows.findIndex(({ boundary }) => boundary !== null)
      assert.isAbove(before, 0)
      assert.strictEqual(report.totals.meters.estimate?.requests, before)
    }))

  it.effect("goes on by price once the request is another one, so that no meter stands still", () =>
    Effect.gen(function*() {
      // Billed 1,000 above its price; the agent shortens its history, this replay does not.
      const bills = [2_000, 3_000, 4_000, 2_000, 3_000, 4_000, 5_000]
      const actual = { ...Policy.none, meter: "actual" } as const
      const { rows } = yield* play(bills, actual)
      assert.deepStrictEqual(rows.slice(1, 4).map(({ count }) => count), [2_000, 3_000, 4_000])
      const [third = 0, fourth = 0] = rows.slice(2, 4).map(({ estimate }) => estimate)
      assert.strictEqual(rows[4]!.count, 4_000 + fourth - third)
      assert.isAbove(rows[6]!.count, 6_000)
    }))

  it.effect("is summed up in a line of text", () =>
    Effect.gen(function*() {
      const session = billed([2_000, 4_000])
      const replay = yield* Replay.play(session, { policy: Replay.standardPolicy({}) })
      const text = ReplayText.render(replay, { session, paint: Paint.none })
      assert.match(
        text.split("\n").at(-1)!,
        /^off the bill on average, over 2 requests sent as recorded: estimate 50% \(at worst 50%\), actual 50%/
      )
    }))
})
