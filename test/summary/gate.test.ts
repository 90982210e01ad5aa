/** When a summary begins by itself, how long it may take, and who writes it where nobody is named. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Policy from "effect-compaction/Policy"
import * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { seeded } from "../seed.ts"
import * as Sessions from "./Sessions.ts"

const { short } = Sessions

/** As an app writes it: what is left out is at its default. */
const withSummary = (
  summary: NonNullable<Settings.Input["summary"]> = {},
  rest: Settings.Input = {}
): Settings.Input => ({
  ...Sessions.base,
  ...rest,
  summary
})

const play = Effect.fnUntraced(function*(settings: Settings.Input, turns: number) {
  const { requests, service } = Sessions.saying(short)
  const { manager } = yield* Sessions.watched(settings, { summarizer: service })
  yield* Sessions.step(manager, ...Sessions.opening)
  yield* Sessions.play(manager, 0, turns)
  return { manager, requests }
})

describe("the gate by size", () => {
  // Passes aim at half of the budget; a summary is taken to be 3,000 tokens.
  const rows: ReadonlyArray<readonly [string, number, NonNullable<Settings.Input["summary"]>, boolean]> = [
    ["begins one up to four sizes", 23_000, {}, true],
    ["begins none above them", 26_000, {}, false],
    ["can be set", 26_000, { maxSizes: 5 }, true],
    ["can be set lower", 10_000, { maxSizes: 1 }, false],
    ["can be turned off", 60_000, { maxSizes: null }, true]
  ]
  for (const [name, maxTokens, summary, begins] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { requests } = yield* play(withSummary(summary, { maxTokens }), Math.ceil((maxTokens * 0.75) / 510))
        assert.strictEqual(requests.length > 0, begins)
      }))
  }

  it.effect("stands in the mode that waits, too", () =>
    Effect.gen(function*() {
      for (const [maxSizes, calls] of [[4, 0], [null, 1]] as const) {
        const { requests } = yield* play(
          withSummary({ mode: "between", maxSizes, prune: false }, { maxTokens: 26_000 }),
          52
        )
        assert.isAtLeast(requests.length, calls)
        if (calls === 0) assert.strictEqual(requests.length, 0)
      }
    }))

  it.effect("lets a person have one at any size", () =>
    Effect.gen(function*() {
      const { manager, requests } = yield* play(withSummary({}, { maxTokens: 60_000 }), 70)
      assert.strictEqual(requests.length, 0)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      assert.strictEqual(requests.length, 1)
    }))

  it("is off in the presets of systems that have none", () => {
    for (const [name, { summary }] of Object.entries(Policy.presets)) {
      if (summary !== undefined && name !== "recommended") assert.isNull(summary.maxSizes, name)
    }
  })

  it.effect("is refused where it means nothing", () =>
    Effect.gen(function*() {
      for (const maxSizes of [0, -1, Number.NaN]) {
        const exit = yield* Effect.exit(Settings.decode({ summary: { maxSizes } }))
        assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes("maxSizes"), String(maxSizes))
      }
    }))
})

describe("how long one may take", () => {
  it.effect("is two minutes beside the session, and half a minute where a turn waits", () =>
    Effect.gen(function*() {
      const seconds = (summary: NonNullable<Settings.Input["summary"]>) =>
        Effect.map(
          Settings.decode({ summary }),
          (settings) => Duration.toSeconds(Settings.timeoutOf(settings.summary!))
        )
      assert.strictEqual(yield* seconds({}), 120)
      assert.strictEqual(yield* seconds({ mode: "between" }), 30)
      assert.strictEqual(yield* seconds({ timeout: "45 seconds" }), 45)
      assert.strictEqual(yield* seconds({ mode: "between", timeout: 5_000 }), 5)
    }))
})

describe("what the newest entries keep", () => {
  it.effect("is a ratio of the budget, or tokens", () =>
    Effect.gen(function*() {
      const of = (retain: number) =>
        Effect.map(Settings.decode({ summary: { retain } }), ({ summary }) => Settings.retainOf(summary!, 10_000))
      assert.deepStrictEqual([yield* of(0.16), yield* of(0), yield* of(1), yield* of(2_500)], [1_600, 0, 1, 2_500])
    }))

  it.effect("stays out of a span in tokens as in a ratio", () =>
    Effect.gen(function*() {
      const spans = yield* Effect.forEach([0.4, 4_000], (retain) =>
        Effect.map(
          play(withSummary({ retain, heedProtection: false }), 13),
          ({ requests }) => requests[0]!.messages.length
        ))
      assert.strictEqual(spans[0], spans[1])
    }))
})

describe("where nobody is named", () => {
  it.effect("the extract writes the summary", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: withSummary() }))
      const models: Array<string | null> = []
      yield* Stream.runForEach(manager.events, (event) =>
        Effect.sync(() => event._tag === "SummaryReady" && models.push(event.model))).pipe(
          Effect.forkScoped({ startImmediately: true })
        )
      yield* Sessions.playToTrigger(manager)
      yield* Sessions.play(manager, 12, 6)
      assert.deepStrictEqual(models, [null])
      const checkpoint = (yield* manager.view).items.find(({ entry }) =>
        entry?.origin === "library"
      )
      assert.include(JSON.stringify(checkpoint?.message), "## Done")
    }))

  it.effect("and none where the service is undefined", () =>
    Effect.gen(function*() {
      const { manager, tags } = yield* Sessions.watched(withSummary(), { summarizer: undefined })
      yield* Sessions.playToTrigger(manager)
      assert.deepStrictEqual([yield* tags, (yield* manager.status).summary], [[], null])
    }))

  it.effect("is the one that the layer names", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Summarizer.Summarizer, Summarizer.extractive)
    }))
})
