/**
 * The same agent twice, as it is and with the one line: it reads 300 files in a window of 200,000 tokens. The model is a script
 * that refuses what is too long, and bills the rest by the rules of a prompt cache.
 */
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as Price from "effect-compaction/simulate/Price"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as AiError from "effect/ai/AiError"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const window = 200_000
const files = 300

const Read = Tool.make("read", { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String })
const Kit = Toolkit.make(Read)
const KitLayer = Kit.toLayer({
  read: ({ path }) => Effect.succeed(`${path}\n${"export const value = 1\n".repeat(350)}`)
})

interface Bill {
  requests: number
  boundaries: number
  dollars: number
  input: number
  cached: number
}

const tooLong = (tokens: number) =>
  AiError.make({
    module: "Script",
    method: "generateText",
    reason: new AiError.InvalidRequestError({
      description: `prompt is too long: ${tokens} tokens > ${window} maximum`
    })
  })

/** Reads one file after the other, a request every ten seconds. */
const script = (bill: Bill) => {
  const cache = PromptCache.make(PromptCache.anthropic)
  const price = Price.presets["claude-sonnet-4-5"]
  let before = 0
  const answer = Effect.fnUntraced(function*(prompt: Prompt.Prompt) {
    const { content } = prompt
    const prices = content.map((message) => Math.ceil(JSON.stringify(message).length / 4))
    const total = prices.reduce((sum, each) => sum + each, 0)
    if (total > window) return yield* tooLong(total)
    const buckets = PromptCache.sendAt(
      cache,
      { messages: content, prices, stableLength: content.length },
      bill.requests * 10_000
    )
    bill.requests++
    if (total < before) bill.boundaries++
    before = total
    bill.input += total
    bill.cached += buckets.read
    bill.dollars += Price.cost(price, { ...buckets, output: 60 })
    const { fresh: uncached, read: cacheRead, written: cacheWrite } = buckets
    const usage = {
      inputTokens: { total, uncached, cacheRead, cacheWrite },
      outputTokens: { total: 60, text: 60, reasoning: 0 }
    }
    const n = bill.requests
    return [
      { type: "tool-call" as const, id: `call-${n}`, name: "read", params: { path: `src/file-${n}.ts` } },
      { type: "finish" as const, reason: "tool-calls" as const, usage, response: undefined }
    ]
  })
  return Model.make(
    "anthropic",
    "claude-sonnet-4-5",
    Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({ generateText: ({ prompt }) => answer(prompt), streamText: () => Stream.empty })
    )
  )
}

const agent = Effect.gen(function*() {
  const chat = yield* Chat.fromPrompt([{ role: "user", content: "Read all the files." }])
  for (let n = 0; n < files; n++) yield* chat.generateText({ prompt: [], toolkit: Kit })
}).pipe(Effect.provide(KitLayer))

const nothing = (): Bill => ({ requests: 0, boundaries: 0, dollars: 0, input: 0, cached: 0 })

const program = Effect.gen(function*() {
  const before = nothing()
  const died = yield* Effect.flip(Effect.provide(agent, script(before)))
  console.log(
    `before: dies at request ${before.requests + 1}: ${died.message.match(/prompt is too long.*maximum/)?.[0]}`
  )

  const after = nothing()
  yield* Effect.provide(agent, CompactedModel.withCompaction(script(after)))
  const { boundaries, cached, dollars, input, requests } = after
  console.log(
    `after:  ${requests} of ${files} requests answered, ${boundaries} boundaries, $${dollars.toFixed(2)}, `
      + `${Math.round(100 * cached / input)} % of the input read from the prompt cache`
  )
})

Effect.runPromise(program).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
