import { assert, describe, it } from "@effect/vitest"
import * as Optimum from "effect-compaction/simulate/Optimum"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Prompt from "effect/ai/Prompt"
import * as Random from "../../src/simulate/parts/random.ts"

const price = { input: 5, cacheWrite: 6.25, cacheRead: 0.5, output: 25 }

const problem = (rest: Partial<Optimum.Problem>): Optimum.Problem => ({
  head: 100,
  segments: [],
  limit: 1_000,
  retain: 0,
  rules: PromptCache.anthropic,
  price,
  ...rest
})

/** Every way in which cuts can grow, each priced request by request as the model says. */
const cheapest = ({ head, limit, price, retain, rules, segments }: Optimum.Problem): number => {
  const view = (request: number, cut: number) =>
    segments.slice(0, request + 1).reduce((sum, { floor, tokens }, at) => sum + (at < cut ? floor : tokens), head)
  const [read, write] = rules._tag === "none" ? [price.input, price.input] : [price.cacheRead, price.cacheWrite]
  const from = (request: number, before: number): number => {
    if (request === segments.length) return 0
    let least = Infinity
    const fitting = Array.from({ length: request + 1 }, (_, cut) => cut).filter((cut) => view(request, cut) <= limit)
    const first = fitting[0] ?? request
    for (let cut = before; cut <= request; cut++) {
      if (cut < first) continue
      const tokens = view(request, cut)
      if (cut > before && cut > first && tokens < retain) continue
      const prefix = request === 0
        ? 0
        : cut === before
        ? view(request - 1, cut)
        : rules._tag === "none"
        ? 0
        : rules._tag === "explicit"
        ? head
        : segments.slice(0, before).reduce((sum, { floor }) => sum + floor, head)
      least = Math.min(least, prefix * read + (tokens - prefix) * write + from(request + 1, cut))
    }
    return least
  }
  return from(0, 0) / 1_000_000
}

describe("Optimum", () => {
  it("agrees with trying every schedule, on small sessions", () => {
    const random = Random.make(1)
    let boundaries = 0
    let over = 0
    for (let time = 0; time < 400; time++) {
      const rules = Random.pick<PromptCache.Rules>(random, [
        PromptCache.anthropic,
        PromptCache.openai,
        PromptCache.none
      ])
      const small = problem({
        head: Random.whole(random, 0, 400),
        segments: Array.from({ length: Random.whole(random, 1, 9) }, () => {
          const tokens = Random.whole(random, 0, 500)
          return { tokens, floor: Random.whole(random, 0, 2) * Random.whole(random, 0, Math.min(tokens, 100) + 1) }
        }),
        limit: Random.whole(random, 300, 1_500),
        retain: Random.pick(random, [0, 200, 500]),
        rules
      })
      const schedule = Optimum.solve(small)
      assert.approximately(schedule.cost, cheapest(small), 1e-9, JSON.stringify(small))
      boundaries += schedule.boundaries.length
      over += schedule.overLimit
      assert.isAtMost(schedule.views.filter((tokens) => tokens > small.limit).length, schedule.overLimit)
    }
    assert.isAbove(boundaries, 100)
    assert.isAbove(over, 0)
  })

  it("makes no boundary where everything fits and what is retained is all there is", () => {
    const segments = Array.from({ length: 5 }, () => ({ tokens: 100, floor: 0 }))
    const schedule = Optimum.solve(problem({ segments, retain: 1_000 }))
    assert.deepStrictEqual(schedule.views, [200, 300, 400, 500, 600])
    assert.deepStrictEqual(schedule.boundaries, [])
    // Each request reads the one before and writes its own hundred.
    assert.approximately(schedule.cost, ((200 + 300 + 400 + 500) * 0.5 + (200 + 4 * 100) * 6.25) / 1e6, 1e-12)
  })

  it("cuts when it must, and sends what cannot fit", () => {
    const segments = [{ tokens: 700, floor: 50 }, { tokens: 300, floor: 0 }, { tokens: 2_000, floor: 0 }]
    const schedule = Optimum.solve(problem({ segments, retain: 1_000 }))
    assert.deepStrictEqual(schedule.boundaries, [{ request: 2, cut: 1 }, { request: 3, cut: 2 }])
    assert.deepStrictEqual(schedule.views, [800, 450, 2_150])
    assert.strictEqual(schedule.overLimit, 1)
  })

  it("takes a recorded session apart into a head and what each request adds", () => {
    const text = (role: "user" | "assistant", length: number) =>
      Prompt.makeMessage(role, { content: [Prompt.makePart("text", { text: "z".repeat(length) })] })
    const messages = [
      text("user", 7),
      text("assistant", 1),
      text("user", 2),
      text("user", 3),
      text("assistant", 4),
      text("user", 9)
    ]
    const lengthOf = (message: Prompt.Message) =>
      message.role === "system" ? 0 : JSON.stringify(message.content).match(/z/g)!.length
    assert.deepStrictEqual(Optimum.segmentsOf(messages, lengthOf, (message) => message.role === "user" ? 1 : 0), {
      head: 7,
      segments: [{ tokens: 0, floor: 0 }, { tokens: 6, floor: 2 }]
    })
  })
})
