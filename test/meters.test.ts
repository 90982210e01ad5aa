/** What holds for every meter, whatever is billed: the same views where the gate decides alike, and no way back to raw. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Settings from "effect-compaction/Settings"
import * as TokenMeter from "effect-compaction/TokenMeter"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { answers, assistant, bytesOf, calls, result, system, turn, user, words } from "./core/conversation.ts"
import * as Random from "./properties/Random.ts"
import { seeded } from "./seed.ts"

const modes = TokenMeter.Mode.literals

interface Played {
  readonly requests: ReadonlyArray<ContextManager.Request>
}

/** Plays a session: messages, a request, and the bill of that request, if there is one. */
const play = Effect.fnUntraced(function*(
  settings: Settings.Input,
  steps: ReadonlyArray<ReadonlyArray<Prompt.Message>>,
  billOf: (price: number, at: number) => TokenMeter.Usage | undefined
): Effect.fn.Return<Played, unknown, Scope.Scope> {
  const manager = yield* ContextManager.make(seeded({ settings: { notice: false, ...settings } }))
  const requests: Array<ContextManager.Request> = []
  for (const [at, messages] of steps.entries()) {
    yield* manager.append(Prompt.fromMessages(messages))
    const request = yield* manager.request
    const { price } = yield* manager.view
    const usage = billOf(price, at)
    if (usage !== undefined) yield* manager.observe({ inputTokens: usage }, request)
    requests.push(request)
  }
  return { requests }
})

const written = new WeakMap<Prompt.Message, string>()

/** What a message says; a message that is kept is the same object in each request. */
const said = (message: Prompt.Message): string => {
  const known = written.get(message) ?? bytesOf(Prompt.fromMessages([message]))
  written.set(message, known)
  return known
}

const stableOf = ({ prompt, stableLength }: ContextManager.Request) => prompt.content.slice(0, stableLength).map(said)

const boundaries = ({ requests }: Played): ReadonlyArray<number> =>
  requests.flatMap(({ events }, at) => events.some((event) => event._tag === "Compacted") ? [at] : [])

/** Nothing is put back: the next request begins with this one, or a boundary (or a repair) is named. */
const assertNoWayBack = ({ requests }: Played, label: string) => {
  for (const [at, request] of requests.entries()) {
    if (at === 0) continue
    const [before, after] = [stableOf(requests[at - 1]!), stableOf(request)]
    const extended = before.every((bytes, each) => bytes === after[each])
    assert.strictEqual(request.prefixChanged, extended ? null : "boundary", `${label}, request ${at}`)
    if (extended) continue
    assert.isTrue(request.events.some((event) => event._tag === "Compacted"), `${label}, request ${at}`)
  }
}

/** Turns of many sizes, with people in between. */
const session = (seed: number, length: number): ReadonlyArray<ReadonlyArray<Prompt.Message>> => {
  const random = Random.make(seed)
  return [
    [system("You are careful."), user("go")],
    ...Arr.range(1, length - 1).map((n) => {
      const size = random.pick([100, 400, 1_000, 4_000])
      if (n % 9 === 0) return [assistant(words(`answer ${n}`, 200)), user(words(`question ${n}`, 150))]
      if (n % 7 === 0) {
        return [calls(`a${n}`, `b${n}`), answers(result(`a${n}`, words("a", size)), result(`b${n}`, words("b", size)))]
      }
      return turn(`c${n}`, size)
    })
  ]
}

const runs = 12

describe("meters", () => {
  it.effect("views are the same in all modes as long as the gate decides alike", () =>
    Effect.gen(function*() {
      let compacted = 0
      for (let seed = 1; seed <= runs; seed++) {
        const steps = session(seed, 60)
        const maxTokens = Random.make(seed ^ 0x2545).pick([4_000, 8_000, 16_000])
        // Each request is billed what it is priced: no meter is off, and so no gate decides otherwise.
        const views = yield* Effect.forEach(modes, (meter) =>
          Effect.map(
            play({ meter, provenanceGate: false, maxTokens }, steps, (price) => ({ total: price })),
            (played) => ({ views: played.requests.map(stableOf), boundaries: boundaries(played), played })
          ))
        const [estimate, actual, ...others] = views
        for (const other of others) {
          assert.deepStrictEqual(other.boundaries, estimate.boundaries, `seed ${seed}`)
          assert.deepStrictEqual(other.views, estimate.views, `seed ${seed}`)
        }
        // `actual` is late by one call: until the gates differ, so that they decide alike, the views are the same.
        const apart = Arr.range(0, steps.length - 1).find((at) =>
          actual!.boundaries.includes(at) !== estimate.boundaries.includes(at)
        ) ?? steps.length
        assert.deepStrictEqual(actual!.views.slice(0, apart), estimate.views.slice(0, apart), `seed ${seed}`)
        compacted += estimate.boundaries.length
        for (const { played } of views) {
          assertNoWayBack(played, `seed ${seed}`)
        }
      }
      assert.isAbove(compacted, runs)
    }))

  it.effect(
    "100 requests with fluctuating, missing and malformed bills never go back to what was compacted",
    () =>
      Effect.gen(function*() {
        for (const meter of modes) {
          for (const sizing of ["price", "provider"] as const) {
            for (let seed = 1; seed <= 5; seed++) {
              const random = Random.make(seed)
              const label = `${meter}, ${sizing}, seed ${seed}`
              const played = yield* play(
                { meter, sizing, maxTokens: 20_000 },
                session(seed, 100),
                (price) => {
                  const kind = random.below(10)
                  if (kind === 0) return undefined
                  // Written as JSON says it, which may be anything.
                  if (kind === 1) {
                    return random.pick<object>([{ total: -1 }, { total: "9" }, { total: 0.5 }, { total: NaN }, {}])
                  }
                  return { total: Math.round(price * (0.6 + random.below(801) / 1_000)) }
                }
              )
              assertNoWayBack(played, label)
              const at = boundaries(played)
              assert.isAtLeast(at.length, 2, label)
              assert.isAtMost(at.length, 6, `${label}: ${at.join()}`)
              for (const [a, b] of Arr.zip(at, at.slice(1))) assert.isAtLeast(b - a, 5, `${label}: ${at.join()}`)
            }
          }
        }
      }),
    240_000
  )

  it.effect("no second boundary from a reading that is older than the first", () =>
    Effect.gen(function*() {
      for (const meter of modes) {
        // One bill above the budget, and none after it; then malformed ones.
        const late: ReadonlyArray<TokenMeter.Usage | undefined> = [
          undefined,
          // As JSON says it.
          { total: "many" } as unknown as TokenMeter.Usage
        ]
        for (const usage of late) {
          const steps = [
            [user("go"), ...Arr.range(0, 14).flatMap((n) => turn(`c${n}`, 2_000))],
            ...Arr.range(0, 9).map((n) => turn(`d${n}`, 100))
          ]
          const played = yield* play(
            { meter, provenanceGate: false, maxTokens: 10_000, protectedToolResults: 1 },
            steps,
            (price, at) => at === 0 ? { total: price + 4_000 } : usage
          )
          assert.isAtMost(boundaries(played).length, 1, meter)
          if (meter === "actual" || meter === "hybrid") assert.deepStrictEqual(boundaries(played), [1], meter)
          assertNoWayBack(played, meter)
        }
      }
    }))

  it.effect("a reading outside plausible bounds changes nothing: it is as if the provider had said nothing", () =>
    Effect.gen(function*() {
      let wrong = 0
      for (const meter of modes) {
        for (let seed = 1; seed <= 4; seed++) {
          const maxTokens = 8_000
          const steps = session(seed, 60)
          const billsOf = (of: (random: Random.Random, price: number) => object) => {
            const random = Random.make(seed ^ 0x51ed)
            return (price: number): TokenMeter.Usage => {
              if (random.chance(0.6)) return { total: Math.round(price * (0.9 + random.below(301) / 1_000)) }
              wrong++
              return of(random, price)
            }
          }
          const lies = (random: Random.Random, price: number) =>
            // Written as JSON says it, which may be anything. Where nothing names the window it is 200,000 tokens.
            random.pick<object>([
              { total: 0 },
              { total: Math.floor(price / 51) },
              { total: -price },
              { total: NaN },
              { total: Infinity },
              { total: 873_000 },
              { total: 1e15 },
              { total: 1e300 },
              { total: String(price) },
              { total: price + 0.5 },
              { total: price, uncached: 1, cacheRead: 1e15, cacheWrite: 0 },
              { uncached: 0, cacheRead: 0, cacheWrite: 0 }
            ])
          const settings = { meter, maxTokens, provenanceGate: meter === "hybrid" }
          const lied = yield* play(settings, steps, billsOf(lies))
          const silent = yield* play(
            settings,
            steps,
            billsOf((random, price) => {
              lies(random, price)
              return {}
            })
          )
          const told = ({ requests }: Played) =>
            requests.map(({ events, ...request }) => [
              stableOf({ ...request, events }),
              request.count,
              request.generation,
              events.map((event) => event._tag === "TokenCounted" ? { ...event, ignored: 0 } : event)
            ])
          assert.deepStrictEqual(told(lied), told(silent), `${meter}, seed ${seed}`)
        }
      }
      assert.isAbove(wrong, 100)
    }))

  it.effect("one absurd bill empties no view, and what a refusal says without bounds harms no session", () =>
    Effect.gen(function*() {
      for (const [meter, first] of [["calibrated", 873_000], ["hybrid", 873_000], ["calibrated", 190_000]] as const) {
        const manager = yield* ContextManager.make(seeded({
          settings: { window: 200_000, meter, provenanceGate: false, notice: false }
        }))
        yield* manager.append(
          Prompt.fromMessages([user("go"), ...Arr.range(0, 39).flatMap((n) => turn(`c${n}`, 4_000))])
        )
        let request = yield* manager.request
        const { price } = yield* manager.view
        assert.isAbove(price, 40_000)
        yield* manager.observe({ inputTokens: { total: first } }, request)
        for (let at = 0; at < 4; at++) {
          yield* manager.append(Prompt.fromMessages([assistant("done"), user(`and ${at}?`)]))
          request = yield* manager.request
          const view = yield* manager.view
          assert.isAbove(view.price, price, `${meter}, ${first}, request ${at}`)
          yield* manager.observe({ inputTokens: { total: view.price + 200 } }, request)
        }
        yield* manager.append(Prompt.fromMessages([user("once more")]))
        assert.closeTo((yield* manager.request).count.tokens, price + 300, 300)
        const before = yield* manager.view
        const recovered = yield* manager.recover({ tokens: 1e40, maximum: 1e300 })
        assert.isAbove((yield* manager.view).price, before.price * 0.5)
        yield* manager.observe({ inputTokens: { total: 30_000 } }, recovered)
        const saved = JSON.parse(JSON.stringify(yield* manager.export))
        yield* manager.restore(saved)
        assert.strictEqual((yield* manager.status).generation, 1)
      }
    }))
})
