/** The provenance gate: what it refuses, what it lets through at the whole budget, and that no session waits for ever. */
import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Gate from "effect-compaction/Gate"
import type * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as TokenMeter from "effect-compaction/TokenMeter"
import * as Effect from "effect/Effect"
import { seed, seeded } from "../seed.ts"
import { prompt, session, turn, user } from "./conversation.ts"

const budget = 7_000

const count = (tokens: number, reading: Partial<TokenMeter.Reading>): TokenMeter.Reading => ({
  ...TokenMeter.estimate(tokens),
  ...reading
})

describe("the gate of a pass", () => {
  const causes = [
    ["noUsage", {}],
    ["rejected", { readings: 1, anchorRejected: true }],
    ["lapsed", { readings: 1, anchorLapsed: true }],
    // The reading is older than the last boundary.
    ["lapsed", { readings: 3 }]
  ] as const
  for (const [cause, reading] of causes) {
    it.effect(`below the whole budget it refuses an estimate, at it it counts one as ${cause}`, () =>
      Effect.gen(function*() {
        const pass = yield* Stage.fromPrompt(session, { budget, settings: seed({ notice: false }) })
        const error = yield* Effect.flip(Gate.provenance({ ...pass, count: count(budget - 1, reading) }))
        assert.deepInclude({ ...error }, { _tag: "ProvenanceRefused", count: budget - 1, budget, refusals: 1 })
        const once = yield* Gate.provenance({ ...pass, count: count(budget, reading) })
        const twice = yield* Gate.provenance({ ...once, count: count(budget + 1, reading) })
        const none = { noUsage: 0, rejected: 0, lapsed: 0 }
        const counts = Stage.recall(twice, Gate.provenanceCounts)
        assert.deepStrictEqual(counts, { refusals: 0, ...none, [cause]: 2 })
        const billed = { ...pass, count: count(budget - 1, { ...reading, kind: "usage" }) }
        assert.strictEqual(yield* Gate.provenance(billed), billed)
      }))
  }
})

interface Turn {
  readonly call: ContextManager.Call
  /** What is billed for one token of price; no bill without. */
  readonly ratio?: number
}

const maxTokens = 4_000

/** Plays 60 turns of about 270 tokens each. */
const play = Effect.fnUntraced(function*(settings: Settings.Input, turnAt: (at: number) => Turn) {
  const manager = yield* ContextManager.make(seeded({
    settings: { maxTokens, notice: false, meter: "hybrid", protectedToolResults: 1, ...settings }
  }))
  yield* manager.append(prompt(user("go")))
  const events: Array<CompactionEvent.CompactionEvent> = []
  let largest = 0
  for (let at = 0; at < 60; at++) {
    const { call, ratio } = turnAt(at)
    yield* manager.append(prompt(...turn(`c${at}`, 1_000)))
    const request = yield* manager.requestWith(call)
    events.push(...request.events)
    const { price } = yield* manager.view
    largest = Math.max(largest, price + (call.overhead ?? 0))
    if (ratio !== undefined) {
      yield* manager.observe({ inputTokens: { total: Math.ceil((price + (call.overhead ?? 0)) * ratio) } }, request)
    }
  }
  const only = <T extends CompactionEvent.CompactionEvent["_tag"]>(tag: T) =>
    events.filter((event): event is Extract<CompactionEvent.CompactionEvent, { readonly _tag: T }> =>
      event._tag === tag
    )
  return { largest, boundaries: only("Compacted"), overridden: only("PassOverridden") }
}, Effect.scoped)

describe("a gated session does not outgrow its budget", () => {
  const lapsing: ReadonlyArray<readonly [string, (at: number) => Turn]> = [
    ["two toolkits by turns", (at) => ({ call: { overhead: at % 2 === 0 ? 500 : 600 }, ratio: 1.1 })],
    ["another toolkit each time", (at) => ({ call: { overhead: 500 + at }, ratio: 1.1 })],
    ["two routes by turns", (at) => ({ call: { route: at % 2 === 0 ? "a/x" : "b/y" }, ratio: 1.1 })],
    ["a route that bills, then one that does not", (at) => ({
      call: { route: at === 0 ? "a" : "b" },
      ...(at === 0 ? { ratio: 1.1 } : {})
    })],
    ["bills that end", (at) => ({ call: {}, ...(at === 0 ? { ratio: 1.1 } : {}) })],
    ["two routes of which one bills", (at) => ({
      call: { route: at % 2 === 0 ? "a" : "b" },
      ...(at % 2 === 0 ? { ratio: 1.1 } : {})
    })]
  ]
  for (const [name, turnAt] of lapsing) {
    for (const meter of ["hybrid", "actual"] as const) {
      it.effect(`${name}, ${meter}`, () =>
        Effect.gen(function*() {
          const { boundaries, largest, overridden } = yield* play({ meter, provenanceGate: true }, turnAt)
          assert.isAtLeast(boundaries.length, 4)
          assert.isAtMost(largest, maxTokens + 600)
          // Promise 5: what was decided on an estimate was let through at the whole budget, and counted.
          const guessed = boundaries.filter(({ kind }) => kind !== "usage")
          assert.strictEqual(overridden.length, guessed.length)
          for (const each of overridden) assert.isAtLeast(each.count, each.budget)
          assert.deepStrictEqual(
            overridden.filter(({ cause }) => cause === "lapsed").map(({ overrides }) => overrides),
            guessed.map((_, at) => at + 1)
          )
        }))
    }
  }

  it.effect("with no usage at all, and with usage below its own price, as before", () =>
    Effect.gen(function*() {
      for (const [ratio, cause] of [[undefined, "noUsage"], [0.9, "rejected"]] as const) {
        const played = yield* play({}, () => ({ call: {}, ...(ratio === undefined ? {} : { ratio }) }))
        assert.isAtLeast(played.boundaries.length, 4)
        assert.isAtMost(played.largest, maxTokens + 300)
        assert.deepStrictEqual([...new Set(played.overridden.map((each) => each.cause))], [cause])
      }
    }))

  it.effect("the status and a resumed session go on counting", () =>
    Effect.gen(function*() {
      const settings: Settings.Input = { maxTokens, notice: false, meter: "hybrid", protectedToolResults: 1 }
      const manager = yield* ContextManager.make(seeded({ settings }))
      yield* manager.append(prompt(user("go")))
      const first = yield* manager.requestWith({ route: "a" })
      yield* manager.observe({ inputTokens: { total: first.count.tokens } }, first)
      let resumed = manager
      const seen: Array<number> = []
      for (let at = 0; at < 40; at++) {
        yield* resumed.append(prompt(...turn(`c${at}`, 1_000)))
        const { events } = yield* resumed.requestWith({ route: "b" })
        for (const event of events) if (event._tag === "PassOverridden") seen.push(event.overrides)
        if (at % 10 !== 9) continue
        const saved = yield* resumed.export
        resumed = yield* ContextManager.make(seeded({ settings }))
        yield* resumed.restore(saved)
      }
      assert.isAtLeast(seen.length, 3)
      assert.deepStrictEqual(seen, seen.map((_, at) => at + 1))
    }))
})
