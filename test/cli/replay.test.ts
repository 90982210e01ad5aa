import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Format from "effect-compaction/format/Format"
import type * as Session from "effect-compaction/format/Session"
import * as Ladder from "effect-compaction/Ladder"
import type * as Settings from "effect-compaction/Settings"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Paint from "../../src/cli/Paint.ts"
import * as Replay from "../../src/cli/Replay.ts"
import * as ReplayText from "../../src/cli/ReplayText.ts"
import { seed, seeded } from "../seed.ts"
import { openAiChat, type Turns } from "./sessions.ts"

const sessionOf = (text: string): Session.Session => Result.getOrThrow(Format.fromString(text, { file: "f" }))

const play = (session: Session.Session, settings: Settings.Input) =>
  Replay.play(session, { policy: { name: "default", settings: seed(settings), ladder: Ladder.progressive } })

const played = (turns: Turns, input: Settings.Input) => play(sessionOf(openAiChat(turns)), input)

const long: Turns = { count: 90, characters: 2_000 }

describe("Replay", () => {
  it.effect("asks once before each message of the assistant", () =>
    Effect.gen(function*() {
      const { report } = yield* played(long, { window: 200_000 })
      assert.deepStrictEqual(report.rows.map(({ request }) => request), Array.from({ length: 91 }, (_, at) => at + 1))
      // System and user, then a call and a result for each turn that is over.
      assert.deepStrictEqual(
        report.rows.map(({ viewMessages }) => viewMessages),
        report.rows.map((_, at) => 2 + 2 * at)
      )
      assert.strictEqual(report.requests, 91)
      assert.strictEqual(report.messages, 183)
      assert.strictEqual(report.totals.boundaries, 0)
      assert.isTrue(report.rows.every(({ prefixChanged, prefixKept }) => prefixChanged === null && prefixKept === 1))
    }))

  it.effect("nothing was asked before a session that begins with the assistant", () =>
    Effect.gen(function*() {
      const greeting = [
        { role: "assistant", content: "What can I do for you?" },
        { role: "user", content: "Run the tests." },
        { role: "assistant", content: "All of them passed." }
      ]
      const { report } = yield* play(sessionOf(JSON.stringify(greeting)), {})
      assert.deepStrictEqual(report.rows.map(({ violations }) => violations), [0])
    }))

  it.effect("tells where the view was shortened, and what was kept of the prefix", () =>
    Effect.gen(function*() {
      const session = sessionOf(openAiChat(long))
      const settings = { window: 32_000 }
      const { boundaries, report } = yield* play(session, settings)
      assert.isAbove(report.totals.boundaries, 1)

      // The same requests again, with the share of the prefix counted over JSON instead of objects.
      const manager = yield* ContextManager.make(seeded({ settings }))
      const price = (messages: ReadonlyArray<Prompt.Message>) =>
        messages.reduce((sum, message) => sum + Estimator.chars.price(message), 0)
      let before: ReadonlyArray<Prompt.Message> = []
      let next = 0
      const expected: Array<readonly [number, number | undefined]> = []
      for (const [at, message] of session.messages.entries()) {
        if (message.role !== "assistant") continue
        yield* manager.append(Prompt.fromMessages(session.messages.slice(next, at)))
        next = at
        const { events, prompt, stableLength } = yield* manager.request
        const now = prompt.content.slice(0, stableLength)
        const same = before.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(now[at]))
        const kept = before.length === 0 ? 1 : price(same < 0 ? before : before.slice(0, same)) / price(before)
        expected.push([kept, events.find((event) => event._tag === "Compacted")?.after])
        before = now
      }
      assert.deepStrictEqual(
        report.rows.map(({ boundary, prefixKept }) => [prefixKept, boundary?.after] as const),
        expected
      )

      for (const row of report.rows) {
        assert.strictEqual(row.prefixKept === 1, row.prefixChanged === null)
        assert.strictEqual(row.boundary !== null, boundaries.has(row.request))
        assert.isAtMost(row.viewTokens, report.budget)
        if (row.boundary === null) continue
        assert.strictEqual(row.prefixChanged, "boundary")
        assert.strictEqual(row.boundary.freed, row.boundary.before - row.boundary.after)
        assert.strictEqual(row.viewTokens, row.boundary.after)
      }
    }).pipe(Effect.scoped))

  it.effect("counts what a boundary was not to touch", () =>
    Effect.gen(function*() {
      const shares = ({ boundaries }: Replay.Replay) => [...boundaries.values()][0]!
      const usual = shares(yield* played(long, { window: 32_000 }))
      assert.deepStrictEqual(usual.results, { protected: 5, of: usual.results.of })
      assert.isAbove(usual.entries.protected, 0.3 * usual.entries.of)
      // The first human message is not among the recent ones, nor is anything else held before them.
      assert.strictEqual(usual.entries.protected, Math.ceil(0.3 * usual.entries.of) + 1)
      const settings = { window: 32_000, protectedToolResults: 0, protectedRecent: 0 }
      const bare = shares(yield* played(long, settings))
      assert.strictEqual(bare.results.protected, 0)
      assert.strictEqual(bare.entries.protected, 1)
      const session = sessionOf(openAiChat(long))
      const two = [...session.messages]
      for (const [at, text] of [[8, "In tests too."], [12, "And in examples."]] as const) {
        two.splice(at, 0, Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] }))
      }
      // Of three the first and the last.
      assert.strictEqual(shares(yield* play({ ...session, messages: two }, settings)).entries.protected, 2)
    }))

  it.effect("sums up its rows", () =>
    Effect.gen(function*() {
      const { report } = yield* played(long, { window: 32_000, clearAtLeast: 11_000, maxConsecutiveSkips: 100 })
      const { rows, totals } = report
      const sum = (of: (row: Replay.Row) => number) => rows.reduce((total, row) => total + of(row), 0)
      assert.deepStrictEqual(totals, {
        boundaries: sum(({ boundary }) => boundary === null ? 0 : 1),
        skips: sum(({ skipped }) => skipped === null ? 0 : 1),
        infeasible: sum(({ infeasible }) => infeasible === null ? 0 : 1),
        freedTokens: sum(({ boundary }) => boundary?.freed ?? 0),
        maxViewTokens: Math.max(...rows.map(({ viewTokens }) => viewTokens)),
        overBudgetRequests: sum(({ viewTokens }) => viewTokens > report.budget ? 1 : 0),
        violations: 0,
        truncated: sum(({ boundary }) => boundary?.truncated ?? 0),
        removed: sum(({ boundary }) => boundary?.removed ?? 0),
        stubbed: sum(({ boundary }) => boundary?.stubbed ?? 0),
        absorbed: 0,
        // Nothing was billed in this session.
        meters: { estimate: null, actual: null, hybrid: null, calibrated: null }
      })
      assert.isAbove(totals.skips, 0)
      assert.isAbove(totals.removed + totals.truncated, 0)
    }))

  const heavy: Turns = { count: 3, characters: 100, system: 200_000 }

  it.effect("names every infeasible request, also where no event does", () =>
    Effect.gen(function*() {
      const { report } = yield* played(heavy, { window: 32_000 })
      assert.strictEqual(report.totals.infeasible, 4)
      for (const { error, infeasible, viewTokens } of report.rows) {
        assert.isUndefined(error)
        assert.strictEqual(infeasible!.holders[0]!.seq, 0)
        assert.strictEqual(infeasible!.over, viewTokens - report.budget)
      }
    }))

  it.effect("a request that fails is a row, and the session goes on", () =>
    Effect.gen(function*() {
      const infeasible = yield* played(heavy, { window: 32_000, whenInfeasible: "fail" })
      assert.deepStrictEqual(
        infeasible.report.rows.map(({ error, infeasible }) => [error?.tag, infeasible!.holders[0]!.seq]),
        Array.from({ length: 4 }, () => ["BudgetInfeasible", 0])
      )
      assert.isAbove(infeasible.report.rows[0]!.viewTokens, 50_000)

      const { report } = yield* played(long, { window: 32_000, clearAtLeast: 0.9, maxConsecutiveSkips: 2 })
      const judged = report.rows.filter(({ skipped }) => skipped !== null)
      assert.deepStrictEqual(
        judged.slice(0, 3).map(({ error, skipped }) => [skipped!.streak, error?.tag]),
        [[1, undefined], [2, "ClearFloorUnsatisfied"], [3, "ClearFloorUnsatisfied"]]
      )
      assert.match(judged[1]!.error!.message, /clearAtLeast asks a pass to free/)
      assert.strictEqual(report.rows.length, 91)
    }))

  it("sees what breaks a rule of either provider", () => {
    const call = Prompt.makeMessage("assistant", {
      content: [Prompt.makePart("tool-call", { id: "a", name: "grep", params: {}, providerExecuted: false })]
    })
    const user = Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "Go on." })] })
    // Both want the result; Anthropic alone wants the user first.
    assert.strictEqual(Replay.violationsIn([user, call, user]), 2)
    assert.strictEqual(Replay.violationsIn([call, user]), 3)
    assert.strictEqual(Replay.violationsIn([user]), 0)
  })

  it.effect("tells each request that it has made", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      yield* Replay.play(sessionOf(openAiChat({ count: 2, characters: 10 })), {
        policy: Replay.standardPolicy({}),
        onRequest: (request, of) => Effect.sync(() => void told.push(`${request}/${of}`))
      })
      assert.deepStrictEqual(told, ["1/3", "2/3", "3/3"])
    }))
})

describe("ReplayText", () => {
  const textOf = Effect.fnUntraced(function*(turns: Turns, input: Settings.Input, paint = Paint.none) {
    const session = sessionOf(openAiChat(turns))
    const replay = yield* play(session, input)
    return { text: ReplayText.render(replay, { session, paint }), replay }
  })

  it.effect("a session that fits has no table", () =>
    Effect.gen(function*() {
      const { text } = yield* textOf({ count: 2, characters: 100 }, { exemptTools: ["grep"], clearAtLeast: 0.1 })
      assert.deepStrictEqual(text.split("\n"), [
        "f (openai-chat: a list of messages with roles)",
        "7 messages, 3 requests",
        "budget 200,000 tokens (no window given) − notice reserve 800 = 199,200",
        "trigger 183,264 (0.92), target 99,600 (0.5), a pass must free 10% of the budget",
        "protected: the newest 5 tool results, the last 30% of the conversation, the first and the last human message, "
        + "open calls, what is pinned; never truncated: grep",
        "0 boundaries freed 0 tokens: 0 entries removed, 0 truncated, 0 stubbed; 0 refused",
        "largest view 192 tokens, 0% of the budget; 0 requests over the budget, 0 infeasible, 0 violations of the wire rules"
      ])
    }))

  it.effect("one line for each boundary, one for those who hold an infeasible view", () =>
    Effect.gen(function*() {
      const { replay, text } = yield* textOf(long, { maxTokens: 20_000, notice: false })
      assert.include(text, "budget 20,000 tokens (capped by max-tokens)\n")
      const lines = text.split("\n").filter((line) => /^ +\d+ {2}\d \S+ /.test(line))
      assert.strictEqual(lines.length, replay.report.totals.boundaries)
      const heavy = yield* textOf({ count: 3, characters: 100, system: 200_000 }, { window: 32_000 }, Paint.ansi)
      assert.match(heavy.text, /infeasible: 27,\d{3} over the budget, held by entry 0 \(50,\d{3}\)/)
      assert.include(heavy.text, "\u001b[31m4 infeasible\u001b[0m")
    }))
})
