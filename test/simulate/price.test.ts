import { assert, describe, it } from "@effect/vitest"
import * as Price from "effect-compaction/simulate/Price"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Random from "../../src/simulate/parts/random.ts"

describe("Price", () => {
  it("bills each bucket at its own price, in dollars", () => {
    const price: Price.Price = { input: 1, cacheWrite: 10, cacheRead: 100, output: 1_000 }
    const million = 1_000_000
    assert.strictEqual(
      Price.cost(price, { fresh: 2 * million, written: 3 * million, read: 4 * million, output: 5 * million }),
      5_432
    )
  })

  it("takes the price of an hour for entries that live for one", () => {
    const price = Price.presets["claude-opus-4-5"]
    assert.strictEqual(Price.under(price, PromptCache.anthropic).cacheWrite, 6.25)
    assert.strictEqual(Price.under(price, PromptCache.anthropicHour).cacheWrite, 10)
    assert.strictEqual(Price.under(price, PromptCache.openai).cacheWrite, 6.25)
    const { cacheWriteHour: _, ...without } = price
    assert.strictEqual(Price.under(without, PromptCache.anthropicHour).cacheWrite, 6.25)
  })

  it("adds up: what is billed together costs what is billed apart", () => {
    const random = Random.make(7)
    const some = () => ({
      fresh: Random.whole(random, 0, 200_000),
      written: Random.whole(random, 0, 200_000),
      read: Random.whole(random, 0, 200_000),
      output: Random.whole(random, 0, 9_000)
    })
    for (const price of Object.values(Price.presets)) {
      for (let time = 0; time < 50; time++) {
        const a = some()
        const b = some()
        const both = {
          fresh: a.fresh + b.fresh,
          written: a.written + b.written,
          read: a.read + b.read,
          output: a.output + b.output
        }
        assert.approximately(Price.cost(price, both), Price.cost(price, a) + Price.cost(price, b), 1e-9)
      }
    }
  })

  for (const [model, preset] of Object.entries(Price.presets)) {
    it(`${model}: reading is cheaper than sending, writing is not, and it says from when and where it is`, () => {
      assert.isBelow(preset.cacheRead, preset.input)
      assert.isAtLeast(preset.cacheWrite, preset.input)
      assert.match(preset.date, /^\d{4}-\d{2}-\d{2}$/)
      assert.match(preset.source, /^https:\/\//)
    })
  }
})
