/** What a bill may say, what is learned from it, and what is read of it afterwards. */
import { assert, describe, it } from "@effect/vitest"
import * as Budget from "effect-compaction/Budget"
import * as Settings from "effect-compaction/Settings"
import * as TokenMeter from "effect-compaction/TokenMeter"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { seed } from "../seed.ts"

const window = 200_000

const counted = (price: number, key = "m", entries = 1): TokenMeter.Counted => ({
  price,
  entries,
  generation: 0,
  envelope: { key, price: 0 }
})

/** A request of this price, and its bill. */
const billed = (
  self: TokenMeter.State,
  price: number,
  usage: TokenMeter.Usage | number,
  key = "m"
): TokenMeter.State =>
  TokenMeter.observe(
    TokenMeter.dispatch(self, counted(price, key)),
    typeof usage === "number" ? { total: usage } : usage,
    window
  )

const read = (self: TokenMeter.State, price: number, mode: TokenMeter.Mode = "hybrid", key = "m") =>
  TokenMeter.read(self, mode, counted(price, key))

describe("a bill", () => {
  const known = billed(TokenMeter.empty, 40_000, 41_000)

  const impossible: ReadonlyArray<readonly [string, TokenMeter.Usage]> = [
    ["nothing for something", { total: 0 }],
    ["next to nothing", { total: 819 }],
    ["the part that was not cached", { uncached: 2 }],
    ["more than the window, many times the price", { total: 873_000 }],
    ["one token more than the window", { total: window + 1 }],
    ["parts that come to more", { total: 41_000, uncached: 2, cacheRead: 1e15, cacheWrite: 0 }],
    ["more than a number holds", { total: 1e300 }],
    ["no end", { total: Infinity }],
    ["no number", { total: NaN }],
    ["less than nothing", { total: -5 }],
    ["a fraction", { total: 41_000.5 }],
    ["one part below nothing", { total: 41_000, uncached: 41_000, cacheRead: -1 }],
    // As JSON may say it.
    ["a text", { total: "41000" } as unknown as TokenMeter.Usage],
    ["a null", { total: null } as unknown as TokenMeter.Usage]
  ]
  for (const [name, usage] of impossible) {
    it(`of ${name} changes nothing, is counted, and is told`, () => {
      const after = billed(known, 41_000, usage)
      assert.deepStrictEqual(after, { ...known, stale: true, ignored: 1 })
      const silent = billed(known, 41_000, {})
      const heard = read(after, 42_000)
      assert.deepStrictEqual(heard, { ...read(silent, 42_000), ignored: 1 })
      assert.deepStrictEqual(Schema.decodeSync(TokenMeter.State)(Schema.encodeSync(TokenMeter.State)(after)), after)
    })
  }

  const possible: ReadonlyArray<readonly [string, number, number]> = [
    ["a fiftieth of its price", 41_000, 820],
    ["the whole window", 1_000, window],
    ["more than the window, when the price says so too", 100_000, 250_000],
    ["nothing for nothing", 0, 0],
    ["something for nothing", 0, 3_000]
  ]
  for (const [name, price, used] of possible) {
    it(`of ${name} is believed`, () => {
      const after = billed(known, price, used)
      assert.deepInclude({ ...read(after, price) }, { anchor: used, stale: false, readings: 2, ignored: 0 })
    })
  }

  it("counts the larger of the total and the sum of the parts", () => {
    assert.strictEqual(TokenMeter.usedOf({ total: 2, uncached: 2, cacheRead: 0, cacheWrite: 161_165 }), 161_167)
    assert.strictEqual(TokenMeter.usedOf({ total: 500, uncached: 2, cacheRead: 3 }), 500)
    assert.strictEqual(TokenMeter.usedOf({ total: 500, cacheRead: 3 }), 500)
    assert.strictEqual(TokenMeter.usedOf({ uncached: 7, cacheWrite: 3 }), 10)
    assert.isUndefined(TokenMeter.usedOf({ cacheRead: 3 }))
  })

  it("that says nothing leaves no request in flight, and is not counted as a wrong one", () => {
    const after = billed(known, 41_000, {})
    assert.deepStrictEqual(after, { ...known, stale: true })
    // What comes next answers nothing.
    assert.deepStrictEqual(TokenMeter.observe(after, { total: 50_000 }, window), after)
    assert.isFalse(billed(after, 41_000, 42_000).stale)
  })

  it("sums what the cache did only while every one had all the fields", () => {
    const full = { uncached: 5, cacheRead: 900, cacheWrite: 95 }
    const two = billed(billed(TokenMeter.empty, 1_000, full), 1_000, full)
    assert.deepStrictEqual(read(two, 1_000).cacheAggregates, { uncached: 10, cacheRead: 1_800, cacheWrite: 190 })
    const gap = billed(two, 1_000, { uncached: 1_000, cacheRead: 0 })
    assert.isNull(read(gap, 1_000).cacheAggregates)
    assert.isNull(read(billed(gap, 1_000, full), 1_000).cacheAggregates, "a gap stays a gap")
    assert.isNull(read(TokenMeter.empty, 1_000).cacheAggregates)
  })
})

describe("what bills teach", () => {
  it("the first tells what stands around the view, the later ones how the estimator errs", () => {
    const one = billed(TokenMeter.empty, 1_000, 4_000)
    assert.strictEqual(TokenMeter.overheadOf(one), 3_000)
    assert.strictEqual(one.ratio, 1)
    const two = billed(one, 10_000, 15_000)
    assert.strictEqual(TokenMeter.overheadOf(two), 3_000)
    assert.closeTo(two.ratio ?? 0, 1 + 0.2 * 0.2, 1e-9)
    assert.strictEqual(read(two, 20_000, "calibrated").tokens, Math.ceil(20_000 * 1.04) + 3_000)
  })

  it("one that contradicts them is forgotten, unless the next agrees with it", () => {
    const learned = billed(billed(TokenMeter.empty, 40_000, 41_000), 40_500, 41_500)
    const odd = billed(learned, 41_000, 190_000)
    assert.deepInclude({ ...odd }, { ratio: learned.ratio })
    assert.strictEqual(TokenMeter.overheadOf(odd), 1_000)
    const back = billed(odd, 41_500, 42_500)
    assert.strictEqual(TokenMeter.overheadOf(back), 1_000)
    assert.closeTo(read(back, 42_000, "calibrated").tokens, 43_000, 10)
    // Two outliers with a good bill between them are two single ones.
    assert.strictEqual(TokenMeter.overheadOf(billed(back, 42_000, 190_500)), 1_000)
    const twice = billed(odd, 41_500, 190_500)
    assert.strictEqual(TokenMeter.overheadOf(twice), 149_000)
    assert.closeTo(read(twice, 42_000, "calibrated").tokens, 191_000, 100)
  })

  for (const first of [873_000, 190_000, 900, 15_000, 100_001]) {
    it(`a first one of ${first} for 41,000 is forgotten with the second, or the third`, () => {
      const wide = 1_000_000
      let self = TokenMeter.observe(TokenMeter.dispatch(TokenMeter.empty, counted(41_000)), { total: first }, wide)
      for (const price of [41_200, 41_400, 41_600]) {
        self = TokenMeter.observe(TokenMeter.dispatch(self, counted(price)), { total: price + 200 }, wide)
      }
      for (const price of [20_000, 42_000, 80_000]) {
        const { tokens } = read(self, price, "calibrated")
        assert.isAbove(tokens, price * 0.9)
        assert.isBelow(tokens, price * 1.1)
      }
    })
  }

  it("a first one takes no more of the count than came off the budget for it, until a second agrees", () => {
    const one = billed(TokenMeter.empty, 41_000, 190_000)
    const at = (self: TokenMeter.State, overhead: number) =>
      TokenMeter.read(self, "calibrated", { ...counted(41_000), overhead }).tokens
    assert.strictEqual(at(one, 98_000), 41_000)
    assert.strictEqual(at(billed(one, 41_000, 190_000), 98_000), 92_000)
    assert.strictEqual(at(one, 149_000), 41_000)
    // Where nothing came off a budget, the count is of the whole request.
    assert.strictEqual(at(one, 0), 190_000)
  })

  it("each system prompt, toolkit and route has its own surroundings, eight of them", () => {
    let self = billed(billed(TokenMeter.empty, 1_000, 4_000, "a"), 10_000, 17_000, "b")
    assert.strictEqual(TokenMeter.overheadOf(self, { key: "a", price: 0 }), 3_000)
    assert.strictEqual(TokenMeter.overheadOf(self, { key: "b", price: 0 }), 7_000)
    assert.strictEqual(TokenMeter.overheadOf(self, { key: "c", price: 0 }), 7_000, "else those that were billed last")
    self = billed(self, 20_000, 25_000, "a")
    assert.strictEqual(TokenMeter.overheadOf(self), 3_000, "what was learned there is not lost")
    assert.isAbove(self.ratio ?? 0, 1)
    for (let at = 0; at < 20; at++) self = billed(self, 1_000, 1_500 + at, `route ${at}`)
    assert.strictEqual(self.surroundings.length, 8)
    assert.strictEqual(TokenMeter.overheadOf(self), 519)
  })
})

describe("an anchor", () => {
  const one = billed(TokenMeter.empty, 1_000, 4_000)

  it("lapses in other surroundings, and does not come back once others have answered", () => {
    assert.deepInclude({ ...read(one, 1_500) }, { kind: "usage", tokens: 4_500, anchorLapsed: false })
    const other = read(one, 1_500, "hybrid", "n")
    assert.deepInclude({ ...other }, { kind: "estimated", tokens: 1_500, anchorLapsed: true, anchorRejected: false })
    const both = billed(one, 1_500, 6_000, "n")
    assert.deepInclude({ ...read(both, 2_000) }, { kind: "estimated", tokens: 2_000, anchorLapsed: true })
    assert.deepInclude({ ...read(TokenMeter.empty, 1_500) }, { kind: "estimated", anchorLapsed: false })
  })

  it("below the price of what it billed is rejected, in its own surroundings alone", () => {
    const low = billed(TokenMeter.empty, 1_000, 999)
    assert.deepInclude({ ...read(low, 1_500) }, { kind: "estimated", anchorRejected: true, anchorLapsed: false })
    const other = read(low, 1_500, "hybrid", "n")
    assert.deepInclude({ ...other }, { kind: "estimated", anchorRejected: false, anchorLapsed: true })
    assert.isFalse(read(billed(TokenMeter.empty, 1_000, 1_000), 1_500).anchorRejected)
  })

  it("of `actual` grows old when the last request was not billed", () => {
    assert.deepInclude({ ...read(one, 5_000, "actual") }, { kind: "usage", tokens: 4_000 })
    const sent = TokenMeter.dispatch(one, counted(2_000))
    const next = (self: TokenMeter.State, price: number) => TokenMeter.read(self, "actual", counted(price, "m", 2))
    for (const late of [sent, billed(one, 2_000, {}), billed(one, 2_000, 0)]) {
      assert.deepInclude({ ...next(late, 3_000) }, { kind: "estimated", tokens: 4_000 })
      assert.deepInclude({ ...next(late, 5_000) }, { kind: "estimated", tokens: 5_000 })
    }
    // The same request again is counted as it was, late or not.
    assert.deepInclude({ ...read(sent, 2_000, "actual") }, { kind: "usage", tokens: 4_000 })
    const later = TokenMeter.dispatch(sent, counted(5_000, "m", 2))
    assert.deepInclude({ ...next(later, 5_000) }, { kind: "estimated", tokens: 5_000 })
    // A bill makes an end of it.
    const again = TokenMeter.observe(later, { total: 8_000 }, window)
    assert.deepInclude({ ...next(again, 6_000) }, { kind: "usage", tokens: 8_000 })
    assert.deepInclude({ ...read(one, 5_000, "actual", "n") }, { kind: "estimated", tokens: 5_000, actual: 4_000 })
    const bounded = TokenMeter.read(one, "actual", { ...counted(5_000), generation: 1 })
    assert.deepInclude({ ...bounded }, { kind: "estimated", tokens: 5_000, actual: null, anchorRejected: false })
  })

  it("of a history that was given up is forgotten; what it said about prices is not", () => {
    const given = TokenMeter.forgetReading(TokenMeter.dispatch(one, counted(1_200)))
    assert.deepInclude({ ...read(given, 500) }, { kind: "estimated", tokens: 500, anchor: null, anchorLapsed: true })
    assert.strictEqual(TokenMeter.overheadOf(given), 3_000)
    assert.strictEqual(read(given, 500, "calibrated").tokens, 3_500)
    assert.isTrue(TokenMeter.observe(given, { total: 4_000 }, window).stale)
  })
})

describe("a refusal", () => {
  const cases: ReadonlyArray<readonly [string, object, object]> = [
    ["of what does not fit", { tokens: 210_000, maximum: 200_000 }, { tokens: 210_000, maximum: 200_000 }],
    ["of a maximum alone", { maximum: 8_000 }, { maximum: 8_000 }],
    ["of the tokens alone", { tokens: 150_001 }, { tokens: 150_001 }],
    ["of digits without end", { tokens: 1e40, maximum: 1e39 }, {}],
    ["of an infinite maximum", { tokens: 210_000, maximum: Infinity }, { tokens: 210_000 }],
    ["of more tokens than can be", { tokens: 350_001, maximum: 200_000 }, { maximum: 200_000 }],
    ["of as many as can be", { tokens: 350_000, maximum: 200_000 }, { tokens: 350_000, maximum: 200_000 }],
    ["of next to nothing", { tokens: 1_199, maximum: 1_000 }, { maximum: 1_000 }],
    ["whose maximum is not below it", { tokens: 60_000, maximum: 60_000 }, { tokens: 60_000 }],
    ["whose maximum counts something else", { tokens: 60_000, maximum: 255 }, { tokens: 60_000 }],
    ["whose maximum is small", { tokens: 60_000, maximum: 256 }, { tokens: 60_000, maximum: 256 }],
    ["whose numbers are none", { tokens: NaN, maximum: -1 }, {}],
    ["that names none", {}, {}]
  ]
  for (const [name, said, believed] of cases) {
    it(`${name} is believed as far as it can be`, () => {
      assert.deepStrictEqual(TokenMeter.plausibleRefusal(said, 60_000, window), believed)
    })
  }
})

describe("the window that bounds a bill", () => {
  it.effect("is the call's, else the settings', else what is assumed, and the budget that is named at least", () =>
    Effect.gen(function*() {
      const none = yield* Settings.decode(seed({}))
      const some = yield* Settings.decode(seed({ window: 64_000, maxTokens: 9_000 }))
      assert.strictEqual(Budget.windowOf(none), Budget.fallback)
      assert.strictEqual(Budget.windowOf(none, { budget: 500_000 }), 500_000)
      assert.strictEqual(Budget.windowOf(some), 64_000)
      assert.strictEqual(Budget.windowOf(some, { window: 32_000 }), 32_000)
      assert.strictEqual(Budget.windowOf(some, { budget: 1_000 }), 64_000)
    }))
})

describe("a budget", () => {
  it.effect("is capped by a maximum that a provider named, and never raised by it", () =>
    Effect.gen(function*() {
      const settings = yield* Settings.decode(seed({ window: 64_000, maxTokens: 9_000, notice: false }))
      assert.deepInclude({ ...Budget.resolve(settings, undefined, 0, 8_000) }, { total: 8_000, source: "provider" })
      for (const larger of [9_000, 50_000, 1e15]) {
        assert.deepInclude({ ...Budget.resolve(settings, undefined, 0, larger) }, { total: 9_000, source: "maxTokens" })
      }
    }))

  it("in prices is rounded down: what fits in prices fits in the provider's tokens", () => {
    const sizes = { limit: 1_000, trigger: 920.5, target: 500 }
    assert.deepStrictEqual(Budget.inPrices(sizes, 3), { limit: 333, trigger: 306, target: 166 })
    assert.deepStrictEqual(Budget.inPrices(sizes, 1), sizes)
  })
})
