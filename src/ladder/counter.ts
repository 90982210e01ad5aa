/** How an app lets the provider count; see `TokenMeter.Counter`. */
import type * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * Counts a request as the provider would bill it.
 *
 * **Details**
 *
 * - `count`: the input tokens of a request with these messages, those of its tools included. `Summarizer.Tools` of the context
 *   are the tools that the conversation is sent with.
 * - `timeout`: how long a pass waits for it. After that, and where it fails, the pass goes by prices.
 *
 * @category models
 * @since 0.1.0
 */
export interface CounterService {
  readonly count: (prompt: Prompt.Prompt) => Effect.Effect<number, unknown>
  readonly timeout: Duration.Duration
}

/**
 * The count endpoint of the provider, if the app gives one. It is asked at a boundary only: once before the pass is sized, and
 * once after it; a view that is above the aim by that count is shortened further.
 *
 * @category services
 * @since 0.1.0
 */
export const Counter = Context.Reference<CounterService | undefined>("effect-compaction/TokenMeter/Counter", {
  defaultValue: () => undefined
})

/**
 * Provides a count endpoint; `timeout` is 2 seconds when left out.
 *
 * **Example** (Anthropic's endpoint, with messages that the app writes as its adapter does)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as HttpClient from "effect/http/HttpClient"
 * import * as HttpClientRequest from "effect/http/HttpClientRequest"
 * import * as HttpClientResponse from "effect/http/HttpClientResponse"
 * import * as AnthropicMessages from "effect-compaction/format/AnthropicMessages"
 * import * as TokenMeter from "effect-compaction/TokenMeter"
 *
 * const Counted = Schema.Struct({ input_tokens: Schema.Natural })
 *
 * const Counter = TokenMeter.layerCounter((prompt) =>
 *   Effect.gen(function*() {
 *     const { value } = AnthropicMessages.write(prompt.content)
 *     const request = yield* HttpClientRequest.bodyJson(
 *       HttpClientRequest.post("https://api.anthropic.com/v1/messages/count_tokens"),
 *       { ...value, model: "claude-sonnet-4-5" }
 *     )
 *     const response = yield* HttpClient.execute(request)
 *     return (yield* HttpClientResponse.schemaBodyJson(Counted)(response)).input_tokens
 *   }), { timeout: "3 seconds" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCounter = <E, R>(
  count: (prompt: Prompt.Prompt) => Effect.Effect<number, E, R>,
  options: { readonly timeout?: Duration.Input } = {}
): Layer.Layer<never, never, R> =>
  Layer.effect(
    Counter,
    Effect.map(Effect.context<R>(), (context): CounterService => ({
      count: (prompt) => Effect.provideContext(count(prompt), context),
      timeout: Duration.fromInputUnsafe(options.timeout ?? "2 seconds")
    }))
  )
