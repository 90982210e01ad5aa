/** What keeps summaries from firing again and again, each lever by itself, and all of them off. */
import { assert, describe, it } from "@effect/vitest"
import type * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Effect from "effect/Effect"
import { turn } from "../core/conversation.ts"
import * as Sessions from "./Sessions.ts"

/** The reference's strategy: absorbed as soon as it is ready, nothing paces the next one, and spans are small. */
const off = {
  cooldownRequests: 0,
  cooldownGrowth: 0,
  minSpan: 0,
  hysteresis: false,
  eager: true,
  // What the newest entries keep: nearly all, so that each summary takes little.
  retain: 0.55,
  heedProtection: false
} as const

const on = { eager: true, retain: 0.55, heedProtection: false } as const

/** Plays the same session under some summaries; prices in tokens. */
const play = Effect.fnUntraced(function*(summary: Settings.Input["summary"], turns = 120) {
  const settings = summary === undefined ? Sessions.base : Sessions.withSummary(summary)
  const { events, manager, told } = yield* Sessions.watched(settings, { summarizer: Summarizer.extractive })
  yield* Sessions.step(manager, ...Sessions.opening)
  yield* Sessions.play(manager, 0, turns)
  const boundaries = events.filter((event) => event._tag === "Compacted").length
  const starts = (yield* told).filter((event) => event._tag === "SummaryStarted")
  return { boundaries, starts }
})

describe("refire", () => {
  it.effect("with every lever off, an absorbed summary calls for the next: the loop of the reference", () =>
    Effect.gen(function*() {
      const ladder = yield* play(undefined)
      const loop = yield* play(off)
      const paced = yield* play(on)
      assert.isAtLeast(loop.boundaries, ladder.boundaries * 1.8)
      assert.isAtLeast(loop.starts.length, paced.starts.length * 2)
      // On the same session, with the levers on, there is no loop.
      assert.isAtMost(paced.boundaries, ladder.boundaries * 1.5)
    }))

  it.effect("by default summaries add no boundary", () =>
    Effect.gen(function*() {
      const ladder = yield* play(undefined)
      const summaries = yield* play({})
      assert.isAtMost(summaries.boundaries, ladder.boundaries)
      assert.isAtLeast(summaries.starts.length, 3)
    }))

  const levers: ReadonlyArray<readonly [string, Settings.Input["summary"]]> = [
    ["cooldownRequests", { cooldownRequests: 12 }],
    ["cooldownGrowth", { cooldownGrowth: 0.25 }],
    ["minSpan", { minSpan: 0.3, retain: 0.5 }],
    ["hysteresis", { hysteresis: true, disarm: 0.4 }]
  ]
  for (const [name, lever] of levers) {
    it.effect(`${name} alone makes it fewer`, () =>
      Effect.gen(function*() {
        const loop = yield* play(off)
        const paced = yield* play({ ...off, ...lever })
        assert.isBelow(paced.starts.length, loop.starts.length)
      }))
  }

  it.effect("cooldown: neither before so many requests nor before so much growth", () =>
    Effect.gen(function*() {
      const gap = Effect.fnUntraced(function*(summary: Settings.Input["summary"]) {
        const { requests, service } = Sessions.saying("")
        const { manager } = yield* Sessions.watched(
          Sessions.withSummary({ maxFailures: 100, ...summary }, { maxTokens: 40_000 }),
          {
            summarizer: service
          }
        )
        yield* Sessions.step(manager, ...Sessions.opening)
        const at: Array<number> = []
        for (let n = 0; n < 68; n++) {
          const before = requests.length
          yield* Sessions.play(manager, n, 1)
          if (requests.length > before) at.push(n)
        }
        return at.slice(1).map((each, index) => each - at[index]!)
      })
      // A turn is 1.3 % of the budget: growth by 10 % is 8 turns.
      assert.deepStrictEqual((yield* gap({ cooldownRequests: 5, cooldownGrowth: 0 })).slice(0, 3), [5, 5, 5])
      assert.deepStrictEqual((yield* gap({ cooldownRequests: 0, cooldownGrowth: 0.1 })).slice(0, 2), [8, 8])
      assert.deepStrictEqual((yield* gap({ cooldownRequests: 0, cooldownGrowth: 0 })).slice(0, 3), [1, 1, 1])
      assert.deepStrictEqual((yield* gap({ cooldownRequests: 12, cooldownGrowth: 0.1 })).slice(0, 1), [12])
    }))

  it.effect("a refusal starts the cooldown and is no failure", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying("x ".repeat(100_000))
      const { manager, told } = yield* Sessions.watched(Sessions.withSummary({}, { maxTokens: 40_000 }), {
        summarizer: service
      })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 60)
      const events = yield* told
      assert.isAtLeast(requests.length, 2)
      assert.isAtMost(requests.length, 3)
      assert.deepStrictEqual([...new Set(events.map((event) => event._tag))], ["SummaryStarted", "SummaryRefused"])
      assert.strictEqual((yield* manager.status).summary, "idle")
    }))

  it.effect("a span that is not worth a call is not looked for at every request", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(Sessions.short)
      const { manager } = yield* Sessions.watched(Sessions.withSummary({ minSpan: 0.9 }), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      yield* Sessions.play(manager, 12, 30)
      assert.strictEqual(requests.length, 0)
    }))

  it.effect("looks for a span again when a boundary made another view", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(Sessions.short)
      // Everything old is small at first: what is large is protected, until more has come.
      const settings = Sessions.withSummary({}, { protectedToolResults: 2 })
      const { manager } = yield* Sessions.watched(settings, { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening, ...turn("a", 18_000), ...turn("b", 17_000))
      assert.strictEqual(requests.length, 0)
      yield* Sessions.step(manager, ...turn("c", 300))
      yield* Sessions.step(manager, ...turn("d", 300))
      let generation = 0
      for (let n = 0; n < 12; n++) generation = (yield* Sessions.step(manager, ...Sessions.turnOf(n))).generation
      assert.isAtLeast(generation, 1)
      assert.isAtLeast(requests.length, 1)
    }))
})
