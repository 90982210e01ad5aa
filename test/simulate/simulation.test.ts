import { assert, describe, it } from "@effect/vitest"
import * as Estimator from "effect-compaction/Estimator"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Price from "effect-compaction/simulate/Price"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Retention from "effect-compaction/simulate/Retention"
import * as Simulation from "effect-compaction/simulate/Simulation"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Random from "../../src/simulate/parts/random.ts"

const planted = Retention.plant(Retention.generate({ seed: 11, turns: 90, resultChars: 1_500 }), { seed: 2, count: 24 })
const recording: Simulation.Recording = { messages: planted.messages }
const price = Price.presets["claude-opus-4-5"]
const world: Simulation.World = {
  maxTokens: 20_000,
  cache: PromptCache.anthropic,
  price,
  // More than the shortest prefix that is cached.
  tools: 2_000,
  probes: planted.probes
}
const progressive = Policy.options(Policy.contextSimple)
const unlimited = Policy.options(Policy.none)

const inputOf = (row: Simulation.Row) => row.cached + row.written + row.fresh

describe("Simulation", () => {
  it.effect("plays one request before each message of the assistant, and says what happened at each", () =>
    Effect.gen(function*() {
      const { budget, rows, totals } = yield* Simulation.run(recording, progressive, world)
      assert.strictEqual(rows.length, planted.messages.filter((message) => message.role === "assistant").length)
      assert.strictEqual(budget, 20_000 - 2_000 - 800)
      assert.isAbove(totals.boundaries, 2)
      assert.deepStrictEqual(
        [totals.violations, totals.failed, totals.infeasible, totals.overBudget],
        [0, 0, 0, 0]
      )
      let decisions = 0
      for (const row of rows) {
        assert.strictEqual(row.boundary === null, row.prefixChanged === null)
        if (row.boundary === null) {
          assert.deepStrictEqual([row.prefixKept, row.decisions], [1, decisions])
        } else {
          assert.isBelow(row.prefixKept, 1)
          assert.isAbove(row.decisions, decisions)
          assert.isAbove(row.waste, 0)
        }
        decisions = row.decisions
      }
      assert.strictEqual(totals.freed, rows.reduce((sum, row) => sum + (row.boundary?.freed ?? 0), 0))
    }))

  it.effect("puts every token of a request into one bucket: what is sent is what the manager counts", () =>
    Effect.gen(function*() {
      for (const cache of [PromptCache.anthropic, PromptCache.openai, PromptCache.none]) {
        const bare = yield* Simulation.run(recording, progressive, { ...world, cache, tools: 0 })
        for (const row of bare.rows) assert.strictEqual(inputOf(row), row.count, `request ${row.request}`)
        const more = { ...world, cache, tools: 3_000, maxTokens: 23_000 }
        const { rows } = yield* Simulation.run(recording, progressive, more)
        assert.deepStrictEqual(rows.map(inputOf), bare.rows.map((row) => inputOf(row) + 3_000))
      }
    }))

  it.effect("bills no less than the manager counts where the wire joins messages", () =>
    Effect.gen(function*() {
      const [system, ...rest] = planted.messages
      const messages = [system!, Prompt.makeMessage("system", { content: "Be brief." }), ...rest]
      const { rows } = yield* Simulation.run({ messages }, progressive, { ...world, tools: 0 })
      for (const row of rows) assert.strictEqual(inputOf(row), row.count, `request ${row.request}`)
      assert.strictEqual(rows[0]!.viewMessages, 2)
    }))

  it.effect("costs what its rows cost, and those what their buckets cost", () =>
    Effect.gen(function*() {
      const { rows, totals } = yield* Simulation.run(recording, progressive, world)
      const cost = (row: Simulation.Row) =>
        Price.cost(price, { read: row.cached, written: row.written, fresh: row.fresh, output: row.output })
      for (const row of rows) assert.approximately(row.cost, cost(row), 1e-12)
      assert.approximately(totals.cost, rows.reduce((sum, row) => sum + row.cost, 0), 1e-9)
      const all = { read: totals.cacheRead, written: totals.cacheWrite, fresh: totals.fresh, output: totals.output }
      assert.approximately(totals.cost, Price.cost(price, all), 1e-9)
      assert.strictEqual(
        totals.cacheReadShare,
        totals.cacheRead / (totals.cacheRead + totals.cacheWrite + totals.fresh)
      )
    }))

  it.effect("never reads without a cache, and costs more so", () =>
    Effect.gen(function*() {
      const { rows, totals } = yield* Simulation.run(recording, progressive, { ...world, cache: PromptCache.none })
      for (const row of rows) assert.deepStrictEqual([row.cached, row.written], [0, 0])
      const cached = yield* Simulation.run(recording, progressive, world)
      assert.isAbove(totals.cost, 2 * cached.totals.cost)
      assert.deepStrictEqual(rows.map((row) => row.boundary), cached.rows.map((row) => row.boundary))
    }))

  it.effect("keeps and reads everything where nothing is compacted: each request reads the one before", () =>
    Effect.gen(function*() {
      const { rows, totals } = yield* Simulation.run(recording, unlimited, world)
      assert.deepStrictEqual([totals.boundaries, totals.waste, totals.retained, totals.retainedAtEnd, totals.stale], [
        0,
        0,
        1,
        1,
        0
      ])
      for (let at = 1; at < rows.length; at++) assert.strictEqual(rows[at]!.cached, inputOf(rows[at - 1]!))
      assert.isAbove(totals.overBudget, 0)
    }))

  it.effect("wastes what a boundary made it send again, and nothing else", () =>
    Effect.gen(function*() {
      const { rows, totals } = yield* Simulation.run(recording, progressive, world)
      for (const row of rows) {
        assert.isAtMost(row.waste, row.written + row.fresh)
        // A notice that says the same as the one before is sent again with each request.
        if (row.boundary === null) assert.isAtMost(row.waste, row.fresh, `request ${row.request}`)
      }
      assert.isAbove(totals.waste, 0)
    }))

  it.effect("forgets the cache in a long pause, and then pays for all of it again", () =>
    Effect.gen(function*() {
      const short = yield* Simulation.run(recording, unlimited, { ...world, gap: "4 minutes" })
      const long = yield* Simulation.run(recording, unlimited, { ...world, gap: "6 minutes" })
      const hour = yield* Simulation.run(recording, unlimited, {
        ...world,
        cache: PromptCache.anthropicHour,
        gap: "6 minutes"
      })
      assert.strictEqual(long.totals.cacheRead, 0)
      assert.strictEqual(long.totals.waste, short.totals.cacheRead)
      assert.strictEqual(hour.totals.cacheRead, short.totals.cacheRead)
      // Written once, at the price of an hour.
      assert.isAbove(hour.totals.cost, short.totals.cost)
      assert.isBelow(hour.totals.cost, long.totals.cost)
    }))

  it.effect("reports what it bills to the meters", () =>
    Effect.gen(function*() {
      const hybrid = Policy.options({ ...Policy.contextSimple, meter: "hybrid" })
      const dear = yield* Simulation.run(recording, hybrid, { ...world, ratio: 1.5 })
      const [first, second] = dear.rows
      assert.deepStrictEqual([first!.kind, second!.kind], ["estimated", "usage"])
      // A usage of half as much again is known from the second request on; what came since is estimated still.
      const gained = second!.viewTokens - first!.viewTokens
      assert.strictEqual(second!.count, inputOf(first!) + gained)
      const cheap = yield* Simulation.run(recording, hybrid, world)
      assert.isAbove(dear.totals.boundaries, cheap.totals.boundaries)
    }))

  it.effect("averages what is retained over the requests by which something was told", () =>
    Effect.gen(function*() {
      const { rows, totals } = yield* Simulation.run(recording, progressive, world)
      const scores = rows.flatMap(({ retention }) => retention === null ? [] : [retention])
      const told = scores.filter(({ known }) => known > 0)
      assert.isBelow(told.length, scores.length, "nothing was told by the first")
      const mean = told.reduce((sum, { retained }) => sum + retained, 0) / told.length
      assert.closeTo(totals.retained ?? -1, mean, 1e-12)
      assert.isBelow(mean, 1)
    }))

  it.effect("bills the output that the recording states, and else its price", () =>
    Effect.gen(function*() {
      const at = planted.messages.findIndex((message) => message.role === "assistant")
      const stated = yield* Simulation.run({ ...recording, usage: new Map([[at, { output: 77 }]]) }, unlimited, world)
      const priced = yield* Simulation.run(recording, unlimited, world)
      assert.strictEqual(stated.rows[0]!.output, 77)
      assert.isAbove(priced.rows[0]!.output, 0)
      assert.deepStrictEqual(stated.rows.slice(1), priced.rows.slice(1))
    }))

  it.effect("goes on after a request that could not be sent, which costs nothing", () =>
    Effect.gen(function*() {
      const strict = Policy.options({ ...Policy.contextSimple, whenInfeasible: "fail" })
      const { rows, totals } = yield* Simulation.run(recording, strict, { ...world, maxTokens: 3_100 })
      assert.isAbove(totals.failed, 0)
      const failed = rows.find((row) => row.error !== undefined)!
      assert.deepStrictEqual([inputOf(failed), failed.output, failed.cost, failed.retention], [0, 0, 0, null])
      assert.strictEqual(failed.error?.tag, "BudgetInfeasible")
      assert.isNotNull(failed.infeasible)
      assert.strictEqual(rows.length, planted.messages.filter((message) => message.role === "assistant").length)
    }))

  it.effect("plays a pass of the caller's, with its errors as rows", () =>
    Effect.gen(function*() {
      const own = { pass: Policy.passFrom(Ladder.progressive), settings: { maxTokens: 20_000 } }
      const { totals } = yield* Simulation.run(recording, own, world)
      assert.isAbove(totals.boundaries, 0)
    }))

  it.effect("compares policies on the same session, and the scenario tells them apart", () =>
    Effect.gen(function*() {
      const policies = [
        { policy: "contextSimple", ...progressive },
        { policy: "slidingWindow", ...Policy.options(Policy.slidingWindow) },
        { policy: "none", ...unlimited }
      ]
      const compared = yield* Simulation.compare(recording, policies, world)
      assert.deepStrictEqual(compared.map((each) => each.policy), ["contextSimple", "slidingWindow", "none"])
      const { policy: _, ...first } = compared[0]!
      assert.deepStrictEqual(first, yield* Simulation.run(recording, progressive, world))
      yield* Retention.hasHeadroom(compared.map(({ policy, totals }) => ({ policy, retained: totals.retained! })))
      assert.isBelow(compared[0]!.totals.retained!, 1)
    }))

  describe("with summaries", () => {
    const summarised = Policy.decode({ ...Policy.contextSimple, summary: {} }).pipe(Effect.map(Policy.options))
    const shared: Summarizer.Service = { ...Summarizer.extractive, cache: "shared" }

    it.effect("bills every call, apart and in the whole", () =>
      Effect.gen(function*() {
        const requests: Array<Summarizer.Request> = []
        const noted: Summarizer.Service = {
          cache: "other",
          summarize: (request) => {
            requests.push(request)
            return Summarizer.extractive.summarize(request)
          }
        }
        const { rows, totals } = yield* Simulation.run(recording, yield* summarised, { ...world, summarizer: noted })
        assert.isAbove(totals.summaries, 1)
        assert.strictEqual(totals.summaries, requests.length)
        assert.strictEqual(totals.summaries, rows.reduce((sum, row) => sum + row.summaries, 0))
        assert.approximately(totals.cost, rows.reduce((sum, row) => sum + row.cost + row.summaryCost, 0), 1e-9)
        assert.strictEqual(totals.summaryShare, totals.summaryCost / totals.cost)
        // All of it fresh, and a reply as long as it may be.
        const expected = requests.reduce((sum, { maxTokens, prompt }) => {
          const fresh = prompt.content.reduce((tokens, message) => tokens + Estimator.chars.price(message), 0)
          return sum + Price.cost(price, { read: 0, written: 0, fresh, output: maxTokens })
        }, 0)
        assert.approximately(totals.summaryCost, expected, 1e-9)
        for (const { maxTokens } of requests) assert.isAtLeast(maxTokens, 400)
      }))

    it.effect("lets a checkpoint be as long as its reply is billed, whatever the text", () =>
      Effect.gen(function*() {
        const saying = (text: (tokens: number) => string): Summarizer.Service => ({
          cache: "shared",
          headings: [],
          summarize: ({ maxTokens }) =>
            Effect.succeed({ text: text(maxTokens), model: null, usage: null, isTruncated: false })
        })
        const policy = yield* summarised
        const firstAbsorbed = Effect.fnUntraced(function*(summarizer: Summarizer.Service) {
          const { rows } = yield* Simulation.run(recording, policy, { ...world, summarizer })
          return rows.find((row) => row.absorbed > 0)!
        })
        const short = yield* firstAbsorbed(saying(() => "a short one"))
        const long = yield* firstAbsorbed(saying((tokens) => "long".repeat(tokens - 8)))
        assert.strictEqual(short.absorbed, long.absorbed)
        assert.approximately(short.viewTokens, long.viewTokens, 4)
      }))

    it.effect("bills a suffix for what it reads from the session's cache, and writes nothing there", () =>
      Effect.gen(function*() {
        const policy = yield* summarised
        const suffix = yield* Simulation.run(recording, policy, { ...world, summarizer: shared })
        const uncached = yield* Simulation.run(recording, policy, {
          ...world,
          summarizer: shared,
          cache: PromptCache.none
        })
        assert.strictEqual(suffix.totals.summaries, uncached.totals.summaries)
        assert.isBelow(suffix.totals.summaryCost, 0.8 * uncached.totals.summaryCost)
        const other = yield* Simulation.run(recording, policy, { ...world, summarizer: Summarizer.extractive })
        const own = ({ rows }: Simulation.Result) => rows.map(({ cached, fresh, written }) => [cached, written, fresh])
        assert.deepStrictEqual(own(suffix), own(other))
      }))

    it.effect("takes summaries in at boundaries, and finds facts in them", () =>
      Effect.gen(function*() {
        const { rows } = yield* Simulation.run(recording, yield* summarised, { ...world, summarizer: shared })
        assert.isAbove(rows.at(-1)!.absorbed, 0)
        for (const [at, row] of rows.entries()) {
          if (row.boundary === null) assert.strictEqual(row.absorbed, rows[at - 1]?.absorbed ?? 0)
        }
        assert.isAbove(Math.max(...rows.map((row) => row.retention!.checkpoint)), 0)
      }))

    it.effect("goes on without a summariser, or with one that fails", () =>
      Effect.gen(function*() {
        const policy = yield* summarised
        const ladder = yield* Simulation.run(recording, progressive, world)
        const none = yield* Simulation.run(recording, policy, world)
        assert.deepStrictEqual(none.totals, ladder.totals)
        const broken: Summarizer.Service = {
          cache: "shared",
          summarize: () => Effect.fail(new Summarizer.SummaryEmpty())
        }
        const failing = yield* Simulation.run(recording, policy, { ...world, summarizer: broken })
        assert.strictEqual(failing.totals.boundaries, ladder.totals.boundaries)
        // What was asked in vain is billed too.
        assert.isAbove(failing.totals.summaryCost, 0)
      }))
  })

  it.effect("holds for sessions of any kind: buckets add up, reads are bounded, costs add up, and twice is the same", () =>
    Effect.gen(function*() {
      for (let seed = 1; seed <= 12; seed++) {
        const random = Random.make(seed)
        const messages = Retention.generate({
          seed,
          turns: Random.whole(random, 5, 40),
          resultChars: Random.whole(random, 50, 3_000)
        })
        const policy = Policy.options(Random.pick<Policy.Policy>(random, [
          Policy.contextSimple,
          Policy.contextSimpleHybrid,
          Policy.slidingWindow,
          Policy.codex
        ]))
        const some: Simulation.World = {
          maxTokens: Random.whole(random, 6_000, 30_000),
          cache: Random.pick<PromptCache.Rules>(random, [PromptCache.anthropic, PromptCache.openai, PromptCache.none]),
          price: Random.pick<Price.Price>(random, [price, Price.presets["gpt-5.4"]]),
          tools: Random.whole(random, 0, 2) * 2_000,
          gap: Random.whole(random, 0, 400_000)
        }
        const { rows, totals } = yield* Simulation.run({ messages }, policy, some)
        assert.deepStrictEqual((yield* Simulation.run({ messages }, policy, some)).rows, rows)
        let largest = 0
        for (const row of rows) {
          const input = inputOf(row)
          assert.isAtLeast(Math.min(row.cached, row.written, row.fresh, row.waste), 0)
          assert.isAtMost(row.cached, largest, `seed ${seed}, request ${row.request}`)
          assert.isAtMost(row.waste, row.written + row.fresh)
          largest = Math.max(largest, input)
        }
        assert.approximately(totals.cost, rows.reduce((sum, row) => sum + row.cost + row.summaryCost, 0), 1e-9)
      }
    }))

  it.effect("an empty session costs nothing", () =>
    Effect.gen(function*() {
      const { rows, totals } = yield* Simulation.run(
        { messages: [Prompt.makeMessage("user", { content: [] })] },
        progressive,
        world
      )
      assert.deepStrictEqual([rows, totals.cost, totals.cacheReadShare, totals.retained], [[], 0, 0, null])
    }))
})
