import { assert, describe, it } from "@effect/vitest"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Prompt from "effect/ai/Prompt"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

const user = (text: string) => Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })
const assistant = (...texts: ReadonlyArray<string>) =>
  Prompt.makeMessage("assistant", { content: texts.map((text) => Prompt.makePart("text", { text })) })
const result = (id: string) =>
  Prompt.makeMessage("tool", {
    content: [
      Prompt.makePart("tool-result", { id, name: "read", isFailure: false, result: id, providerExecuted: false })
    ]
  })
const system = (content: string) => Prompt.makeMessage("system", { content })

type Sent = ReadonlyArray<readonly [Prompt.Message, number]>

const request = (sent: Sent, rest: { readonly tools?: number; readonly tail?: number } = {}): PromptCache.Request => ({
  messages: sent.map(([message]) => message),
  prices: sent.map(([, price]) => price),
  stableLength: sent.length - (rest.tail ?? 0),
  ...(rest.tools === undefined ? {} : { tools: rest.tools })
})

const sizes = ({ prices, tools = 0 }: PromptCache.Request) => prices.reduce((sum, price) => sum + price, tools)

describe("PromptCache", () => {
  describe("agrees with the probes that were made on an endpoint", () => {
    // One entry of 9,789 tokens. The breakpoint is at the end of the request, as in the probe.
    const oneBreakpoint: PromptCache.Rules = { ...PromptCache.anthropic, tools: false, system: false, turns: 1 }
    const talk: Sent = [
      [user("a"), 4_000],
      [assistant("b"), 100],
      [user("c"), 3_000],
      [assistant("d"), 89],
      [user("e"), 2_600]
    ]
    const probes: ReadonlyArray<readonly [name: string, sent: Sent, read: number]> = [
      ["identical repeat", talk, 9_789],
      ["pure append", [...talk, [assistant("f"), 50], [user("g"), 700]], 9_789],
      ["strict prefix", talk.slice(0, 3), 0],
      ["middle dropped", [...talk.slice(0, 1), ...talk.slice(3)], 0],
      ["first message edited", [[user("A"), 4_000], ...talk.slice(1)], 0]
    ]
    for (const [name, sent, read] of probes) {
      it(`${name}: ${read} read`, () => {
        const cache = PromptCache.make(oneBreakpoint)
        assert.deepStrictEqual(PromptCache.sendAt(cache, request(talk), 0), { read: 0, written: 9_789, fresh: 0 })
        const second = request(sent)
        assert.deepStrictEqual(PromptCache.sendAt(cache, second, 1_000), {
          read,
          written: sizes(second) - read,
          fresh: 0
        })
      })
    }

    it("copies of the messages count as the same: it is the content that is cached", () => {
      const cache = PromptCache.make(oneBreakpoint)
      PromptCache.sendAt(cache, request(talk), 0)
      const copy = structuredClone(talk)
      assert.strictEqual(PromptCache.sendAt(cache, request(copy), 1).read, 9_789)
    })
  })

  for (
    const [name, rules] of Object.entries({
      explicit: PromptCache.anthropic,
      automatic: PromptCache.openai
    })
  ) {
    it(`${name}: what would be read is asked without a trace: the next request is billed as if nobody had asked`, () => {
      const first = request([[system("s"), 3_000], [user("u"), 2_000]])
      const other = request([[system("s"), 3_000], [user("u"), 2_000], [user("summarise this"), 4_000]])
      const next = request([[system("s"), 3_000], [user("u"), 2_000], [assistant("a"), 1_500], [user("b"), 2_500]])
      const billed = (asks: boolean) => {
        const cache = PromptCache.make(rules)
        PromptCache.sendAt(cache, first, 0)
        if (asks) assert.isAbove(PromptCache.readAt(cache, other, 1), 0)
        const after = PromptCache.sendAt(cache, next, 2)
        return [after, PromptCache.sendAt(cache, next, 3), PromptCache.readAt(cache, other, 4)]
      }
      assert.deepStrictEqual(billed(true), billed(false))
    })
  }

  describe("with explicit breakpoints", () => {
    const head: Sent = [[system("s"), 2_000], [user("u"), 500]]

    it("reads the tools and the system prompt after a boundary", () => {
      const cache = PromptCache.make(PromptCache.anthropic)
      PromptCache.sendAt(cache, request([...head, [assistant("a"), 10], [user("b"), 900]], { tools: 1_500 }), 0)
      const after = request([head[0]!, [user("rest"), 700]], { tools: 1_500 })
      assert.deepStrictEqual(PromptCache.sendAt(cache, after, 1), { read: 3_500, written: 700, fresh: 0 })
      const others = request([[system("other"), 2_000], [user("rest"), 700]], { tools: 1_500 })
      assert.deepStrictEqual(PromptCache.sendAt(cache, others, 2), { read: 1_500, written: 2_700, fresh: 0 })
      assert.strictEqual(
        PromptCache.sendAt(cache, request(after.messages.map((m, at) => [m, after.prices[at]!]), { tools: 1_501 }), 3)
          .read,
        0
      )
    })

    it("does not cache what is shorter than the minimum", () => {
      const cache = PromptCache.make(PromptCache.anthropic)
      const short = request([[user("a"), 1_023]])
      assert.deepStrictEqual(PromptCache.sendAt(cache, short, 0), { read: 0, written: 0, fresh: 1_023 })
      assert.strictEqual(PromptCache.sendAt(cache, short, 1).read, 0)
      const enough = request([[user("b"), 1_024]])
      assert.deepStrictEqual(PromptCache.sendAt(cache, enough, 0), { read: 0, written: 1_024, fresh: 0 })
      assert.strictEqual(PromptCache.sendAt(cache, enough, 1).read, 1_024)
    })

    it("writes nothing of an ephemeral tail, which is fresh each time", () => {
      const cache = PromptCache.make(PromptCache.anthropic)
      const first = request([...head, [user("notice 1"), 40]], { tail: 1 })
      assert.deepStrictEqual(PromptCache.sendAt(cache, first, 0), { read: 0, written: 2_500, fresh: 40 })
      const second = request([...head, [assistant("a"), 10], [user("b"), 20], [user("notice 2"), 41]], { tail: 1 })
      assert.deepStrictEqual(PromptCache.sendAt(cache, second, 1), { read: 2_500, written: 30, fresh: 41 })
    })

    for (const [blocks, read] of [[18, 2_500], [19, 2_000]] as const) {
      it(`looks back over 20 blocks: ${blocks} between two breakpoints, ${read} read`, () => {
        const cache = PromptCache.make({ ...PromptCache.anthropic, turns: 1 })
        PromptCache.sendAt(cache, request(head), 0)
        const calls = assistant(...Array.from({ length: blocks }, (_, at) => `call ${at}`))
        assert.strictEqual(PromptCache.sendAt(cache, request([...head, [calls, 300], [user("r"), 30]]), 1).read, read)
      })
    }

    it("finds the turn before by its own breakpoint, however many blocks came since", () => {
      const cache = PromptCache.make(PromptCache.anthropic)
      PromptCache.sendAt(cache, request(head), 0)
      const calls = assistant(...Array.from({ length: 60 }, (_, at) => `call ${at}`))
      assert.strictEqual(PromptCache.sendAt(cache, request([...head, [calls, 300], [user("r"), 30]]), 1).read, 2_500)
    })

    it("takes results that stand together for one turn, as they are one on the wire", () => {
      const cache = PromptCache.make(PromptCache.anthropic)
      PromptCache.sendAt(cache, request(head), 0)
      const calls = assistant(...Array.from({ length: 60 }, (_, at) => `call ${at}`))
      const results: Sent = [[result("a"), 30], [result("b"), 40]]
      assert.strictEqual(PromptCache.sendAt(cache, request([...head, [calls, 300], ...results]), 1).read, 2_500)
    })

    it("renews what it read, wherever that ended", () => {
      const cache = PromptCache.make({ ...PromptCache.anthropic, turns: 1, system: false })
      PromptCache.sendAt(cache, request(head), 0)
      PromptCache.sendAt(cache, request([...head, [assistant("a"), 10], [user("b"), 20]]), 200_000)
      const other = request([...head, [assistant("c"), 10], [user("d"), 20]])
      assert.strictEqual(PromptCache.sendAt(cache, other, 400_000).read, 2_500)
    })

    it("bills the same message at the price it has this time", () => {
      const cache = PromptCache.make(PromptCache.anthropic)
      PromptCache.sendAt(cache, request(head), 0)
      const dearer: Sent = [[head[0]![0], 2_100], head[1]!]
      assert.deepStrictEqual(PromptCache.sendAt(cache, request(dearer), 1), { read: 2_600, written: 0, fresh: 0 })
    })

    it("reads nothing once the tools are others", () => {
      const cache = PromptCache.make(PromptCache.anthropic)
      PromptCache.sendAt(cache, request(head, { tools: 1_500 }), 0)
      assert.deepStrictEqual(PromptCache.sendAt(cache, request(head, { tools: 1_600 }), 1), {
        read: 0,
        written: 4_100,
        fresh: 0
      })
    })

    it("has four breakpoints at most", () => {
      const { system, tools, turns } = PromptCache.anthropic
      assert.isAtMost(Number(system) + Number(tools) + turns, 4)
    })
  })

  describe("automatic", () => {
    const talk: Sent = [[system("s"), 1_100], [user("u"), 300], [assistant("a"), 40], [user("b"), 60]]

    it("reads in steps of 128 tokens from 1,024 on", () => {
      const cache = PromptCache.make(PromptCache.openai)
      assert.deepStrictEqual(PromptCache.sendAt(cache, request(talk), 0), { read: 0, written: 1_408, fresh: 92 })
      const more = request([...talk, [user("c"), 200]])
      assert.deepStrictEqual(PromptCache.sendAt(cache, more, 1), { read: 1_408, written: 256, fresh: 36 })
    })

    it("reads every prefix of what was sent: a compacted session keeps its head", () => {
      const cache = PromptCache.make(PromptCache.openai)
      PromptCache.sendAt(cache, request(talk), 0)
      assert.strictEqual(PromptCache.sendAt(cache, request(talk.slice(0, 2)), 1).read, 1_280)
      assert.strictEqual(PromptCache.sendAt(cache, request([talk[0]!, talk[3]!]), 2).read, 1_024)
      assert.strictEqual(PromptCache.sendAt(cache, request([[system("t"), 1_100], ...talk.slice(1)]), 3).read, 0)
    })
  })

  it("keeps what is used, and forgets what another line of requests has left", () => {
    const cache = PromptCache.make(PromptCache.openai)
    const [left, used] = [request([[user("a"), 1_280]]), request([[user("b"), 1_280]])]
    PromptCache.sendAt(cache, left, 0)
    for (const minutes of [4, 8, 12]) PromptCache.sendAt(cache, used, minutes * 60_000)
    assert.strictEqual(PromptCache.readAt(cache, used, 13 * 60_000), 1_280)
    assert.strictEqual(PromptCache.readAt(cache, left, 13 * 60_000), 0)
  })

  it("a read beside the session does not break the line of its requests", () => {
    const cache = PromptCache.make(PromptCache.openai)
    const head: Sent = [[user("a"), 1_280], [assistant("b"), 1_280]]
    const withTail = request([...head, [user("tail"), 1_280]], { tail: 1 })
    PromptCache.sendAt(cache, withTail, 0)
    PromptCache.readAt(cache, request([[user("summarise"), 2_560]]), 60_000)
    // It extends what stayed of the request before, so all of that is in use.
    PromptCache.sendAt(cache, request([...head, [user("c"), 1_280]]), 8 * 60_000)
    assert.strictEqual(PromptCache.readAt(cache, withTail, 12 * 60_000), 3_840)
  })

  it("tells what would be read, and leaves nothing behind", () => {
    for (const rules of [PromptCache.anthropic, PromptCache.openai, PromptCache.none]) {
      const cache = PromptCache.make(rules)
      const talk = request([[system("s"), 1_280], [user("u"), 1_280]])
      assert.strictEqual(PromptCache.readAt(cache, talk, 0), 0)
      assert.strictEqual(PromptCache.readAt(cache, talk, 1), 0)
      PromptCache.sendAt(cache, talk, 2)
      const expected = rules._tag === "none" ? 0 : 2_560
      assert.strictEqual(PromptCache.readAt(cache, talk, 3), expected)
      assert.strictEqual(PromptCache.sendAt(cache, talk, 4).read, expected)
    }
  })

  const idle: ReadonlyArray<
    readonly [name: string, rules: PromptCache.Rules, kept: Duration.Input, gone: Duration.Input]
  > = [
    ["anthropic", PromptCache.anthropic, "299 seconds", "300 seconds"],
    ["anthropicHour", PromptCache.anthropicHour, "59 minutes", "60 minutes"],
    ["openai", PromptCache.openai, "599 seconds", "10 minutes"]
  ]
  for (const [name, rules, kept, gone] of idle) {
    it.effect(`${name} forgets what was idle, and a read renews it`, () =>
      Effect.gen(function*() {
        const cache = PromptCache.make(rules)
        const talk = request([[system("s"), 1_280], [user("u"), 1_280]])
        yield* PromptCache.send(cache, talk)
        for (let time = 0; time < 3; time++) {
          yield* TestClock.adjust(kept)
          assert.strictEqual((yield* PromptCache.send(cache, talk)).read, 2_560)
        }
        yield* TestClock.adjust(gone)
        assert.strictEqual((yield* PromptCache.send(cache, talk)).read, 0)
        assert.strictEqual((yield* PromptCache.send(cache, talk)).read, 2_560)
      }))
  }

  it("reads what has grown since, though the turn before it was renewed and not written again", () => {
    const cache = PromptCache.make(PromptCache.openai)
    const talk: Sent = [[system("s"), 1_280], [user("u"), 1_280]]
    PromptCache.sendAt(cache, request(talk), 0)
    PromptCache.sendAt(cache, request([...talk, [user("v"), 128]]), 500_000)
    assert.strictEqual(PromptCache.sendAt(cache, request([...talk, [user("w"), 128]]), 1_000_000).read, 2_560)
  })

  it("none reads and writes nothing", () => {
    const cache = PromptCache.make(PromptCache.none)
    const talk = request([[user("a"), 5_000], [user("b"), 70]], { tools: 30 })
    for (let time = 0; time < 2; time++) {
      assert.deepStrictEqual(PromptCache.sendAt(cache, talk, time), { read: 0, written: 0, fresh: 5_100 })
    }
  })
})
