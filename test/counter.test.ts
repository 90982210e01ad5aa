import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as AnthropicMessages from "effect-compaction/format/AnthropicMessages"
import type * as Policy from "effect-compaction/Policy"
import type * as Settings from "effect-compaction/Settings"
import * as TokenMeter from "effect-compaction/TokenMeter"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { bytesOf, prompt, session, turn } from "./core/conversation.ts"

const settings: Settings.Input = { maxTokens: 6_000, notice: false, clearAtLeast: null }

/** What a pass aims at, in the provider's tokens. */
const aim = 6_000 * 0.43

const priceOf = ({ content }: Prompt.Prompt): number =>
  content.reduce((sum, message) => sum + Estimator.chars.price(message), 0)

/** A provider that counts so many tokens for one of price, and remembers what it was asked. */
const provider = (ratio: number) => {
  const asked: Array<Prompt.Prompt> = []
  const layer = TokenMeter.layerCounter((asking) =>
    Effect.sync(() => {
      asked.push(asking)
      return Math.ceil(ratio * priceOf(asking))
    })
  )
  return { asked, layer }
}

const failures = (events: ReadonlyArray<{ readonly _tag: string }>) =>
  events.filter(({ _tag }) => _tag === "CountFailed").length

/** The requests of a conversation of so many turns. */
const played = Effect.fnUntraced(function*(options: Policy.Options, turns = 12) {
  const manager = yield* ContextManager.make(options)
  yield* manager.append(session)
  const requests = [yield* manager.request]
  for (let at = 0; at < turns; at++) {
    yield* manager.append(prompt(...turn(`more-${at}`, 1_200)))
    requests.push(yield* manager.request)
  }
  return { manager, requests, status: yield* manager.status }
}, Effect.scoped)

describe("TokenMeter.Counter", () => {
  it.effect("is asked at a boundary only: once before it is sized, and once after", () =>
    Effect.gen(function*() {
      const { asked, layer } = provider(1.2)
      const { requests, status } = yield* played({ settings }).pipe(Effect.provide(layer))
      assert.isAtLeast(status.generation, 2)
      assert.strictEqual(asked.length, 2 * status.generation)
      const boundaries = requests.filter(({ events }) => events.some(({ _tag }) => _tag === "Compacted"))
      assert.strictEqual(boundaries.length, status.generation)
      for (const [at, request] of boundaries.entries()) {
        // Before it is the view that was too large, behind it what the pass made, which the tail and a re-climb may change.
        assert.isAbove(priceOf(asked[2 * at]!), priceOf(asked[2 * at + 1]!))
        assert.isAtMost(1.2 * priceOf(request.prompt), at === 0 ? aim : 6_000, "in the provider's tokens")
      }
    }))

  it.effect("climbs on where the view is above the aim by the provider's count, once", () =>
    Effect.gen(function*() {
      // It counts results dearly and the words around them hardly: the smaller view costs more for its price.
      const asked: Array<number> = []
      const layer = TokenMeter.layerCounter((asking) =>
        Effect.sync(() => {
          const tokens = Math.ceil(priceOf(asking) * (asked.length % 2 === 0 ? 1 : 1.15))
          asked.push(tokens)
          return tokens
        })
      )
      const one = yield* played({ settings }, 0).pipe(Effect.provide(layer))
      const plain = yield* played({ settings }, 0)
      assert.strictEqual(asked.length, 2)
      const [price, other] = [one, plain].map(({ requests }) => priceOf(requests[0]!.prompt))
      assert.isBelow(price!, other!)
      assert.isAbove(1.15 * other!, aim)
      assert.isAtMost(1.15 * price!, aim)
    }))

  it.effect("is not asked below the trigger, of a preview, or where none is given", () =>
    Effect.gen(function*() {
      const { asked, layer } = provider(1)
      const counted = yield* played({ settings: { ...settings, maxTokens: 400_000 } }).pipe(Effect.provide(layer))
      assert.strictEqual(counted.status.generation, 0)
      yield* Effect.gen(function*() {
        const manager = yield* ContextManager.make({ settings })
        yield* manager.append(session)
        assert.strictEqual((yield* manager.preview()).outcome, "compact")
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.strictEqual(asked.length, 0)
    }))

  it.effect("a pass that is refused again and again asks once, until the view has grown", () =>
    Effect.gen(function*() {
      const { asked, layer } = provider(1)
      yield* Effect.gen(function*() {
        const manager = yield* ContextManager.make({
          settings: { ...settings, clearAtLeast: 1_000_000, maxConsecutiveSkips: 1_000 }
        })
        yield* manager.append(session)
        for (let at = 0; at < 10; at++) {
          yield* manager.append("and?")
          yield* manager.request
        }
        assert.strictEqual(asked.length, 1)
        yield* manager.append("word ".repeat(2_000))
        yield* manager.request
        assert.strictEqual(asked.length, 2)
      }).pipe(Effect.scoped, Effect.provide(layer))
    }))

  const faults: ReadonlyArray<readonly [name: string, layer: Layer.Layer<never>]> = [
    ["fails", TokenMeter.layerCounter(() => Effect.fail("down"))],
    ["dies", TokenMeter.layerCounter(() => Effect.die(new Error("bug")))],
    ["counts nothing", TokenMeter.layerCounter(() => Effect.succeed(0))],
    ["counts what cannot be", TokenMeter.layerCounter(() => Effect.succeed(1e15))],
    ["counts no number", TokenMeter.layerCounter(() => Effect.succeed(Number.NaN))]
  ]
  for (const [name, layer] of faults) {
    it.effect(`an endpoint that ${name} leaves the pass to prices, and is told`, () =>
      Effect.gen(function*() {
        const plain = yield* played({ settings })
        const { requests } = yield* played({ settings }).pipe(Effect.provide(layer))
        assert.deepStrictEqual(
          requests.map((request) => bytesOf(request.prompt)),
          plain.requests.map((request) => bytesOf(request.prompt))
        )
        assert.isAtLeast(failures(requests.flatMap((request) => request.events)), 1)
      }))
  }

  it.effect("one that does not answer is waited for as long as it may take", () =>
    Effect.gen(function*() {
      const plain = yield* played({ settings }, 0)
      const silent = TokenMeter.layerCounter(() => Effect.never, { timeout: "3 seconds" })
      const fiber = yield* Effect.forkChild(played({ settings }, 0).pipe(Effect.provide(silent)), {
        startImmediately: true
      })
      yield* TestClock.adjust("2999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      // Once before the pass, and once after it.
      yield* TestClock.adjust("1 millis")
      yield* TestClock.adjust("3 seconds")
      const { requests } = yield* Fiber.join(fiber)
      assert.strictEqual(bytesOf(requests[0]!.prompt), bytesOf(plain.requests[0]!.prompt))
      assert.strictEqual(failures(requests[0]!.events), 2)
    }))

  it.effect("speaks to an endpoint of the shape of Anthropic's", () =>
    Effect.gen(function*() {
      const bodies: Array<{ readonly url: string; readonly messages: number; readonly hasSystem: boolean }> = []
      const client = HttpClient.make((request, url) =>
        Effect.sync(() => {
          const { body } = request
          const text = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : "{}"
          const { messages, system } = JSON.parse(text) as {
            readonly messages: Array<unknown>
            readonly system?: unknown
          }
          bodies.push({ url: url.href, messages: messages.length, hasSystem: system !== undefined })
          return HttpClientResponse.fromWeb(
            request,
            new Response(JSON.stringify({ input_tokens: Math.ceil(text.length / 3) }))
          )
        })
      )
      const Answer = Schema.Struct({ input_tokens: Schema.Natural })
      const layer = TokenMeter.layerCounter((asking) =>
        Effect.gen(function*() {
          const { value } = AnthropicMessages.write(asking.content)
          const request = yield* HttpClientRequest.bodyJson(
            HttpClientRequest.post("https://api.anthropic.com/v1/messages/count_tokens"),
            { ...value, model: "claude-sonnet-4-5" }
          )
          const response = yield* HttpClient.execute(request)
          return (yield* HttpClientResponse.schemaBodyJson(Answer)(response)).input_tokens
        })
      ).pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, client)))
      const { status } = yield* played({ settings }, 0).pipe(Effect.provide(layer))
      assert.strictEqual(status.generation, 1)
      assert.strictEqual(bodies.length, 2)
      for (const { hasSystem, messages, url } of bodies) {
        assert.strictEqual(url, "https://api.anthropic.com/v1/messages/count_tokens")
        assert.isAbove(messages, 0)
        assert.isTrue(hasSystem)
      }
    }))
})
