/**
 * The agent of `agent.ts` on a real provider: `ANTHROPIC_API_KEY=… node docs/examples/provider.ts`. Without a key it says
 * so and ends.
 *
 * No provider package of Effect works with effect 4.1 yet, so this brings a thin adapter to the Anthropic Messages API,
 * which knows texts and tools. With a package in its place nothing else changes: decorate the layer that it gives.
 */
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as AiError from "effect/ai/AiError"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { readFile } from "node:fs/promises"

const name = "claude-sonnet-4-5"

const Answer = Schema.Struct({
  content: Schema.Array(Schema.Union([
    Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literal("tool_use"), id: Schema.String, name: Schema.String, input: Schema.Unknown })
  ])),
  stop_reason: Schema.String,
  usage: Schema.Struct({ input_tokens: Schema.Natural, output_tokens: Schema.Natural })
})

const bodyOf = ({ prompt, tools }: LanguageModel.ProviderOptions) => {
  const messages: Array<{ role: "user" | "assistant"; content: Array<unknown> }> = []
  const add = (role: "user" | "assistant", content: Array<unknown>) => {
    const last = messages.at(-1)
    if (last?.role === role) last.content.push(...content)
    else messages.push({ role, content })
  }
  const system: Array<string> = []
  for (const message of prompt.content) {
    if (message.role === "system") {
      system.push(message.content)
      continue
    }
    const blocks: Array<unknown> = []
    for (const part of message.content) {
      if (part.type === "text") blocks.push({ type: "text", text: part.text })
      if (part.type === "tool-call") blocks.push({ type: "tool_use", id: part.id, name: part.name, input: part.params })
      if (part.type === "tool-result") {
        const content = typeof part.result === "string" ? part.result : JSON.stringify(part.result)
        blocks.push({ type: "tool_result", tool_use_id: part.id, content, is_error: part.isFailure })
      }
    }
    add(message.role === "assistant" ? "assistant" : "user", blocks)
  }
  return {
    model: name,
    max_tokens: 2_000,
    system: system.join("\n\n"),
    messages,
    tools: tools.map((tool) => ({
      name: tool.name,
      description: tool.description,
      input_schema: Tool.getJsonSchema(tool)
    }))
  }
}

const partsOf = ({ content, stop_reason, usage }: typeof Answer.Type): Array<Response.PartEncoded> => [
  ...content.map((block): Response.PartEncoded =>
    block.type === "text" ? block : { type: "tool-call", id: block.id, name: block.name, params: block.input }
  ),
  {
    type: "finish",
    reason: stop_reason === "tool_use" ? "tool-calls" : stop_reason === "max_tokens" ? "length" : "stop",
    usage: {
      inputTokens: { total: usage.input_tokens, uncached: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: usage.output_tokens, text: undefined, reasoning: undefined }
    },
    response: undefined
  }
]

const failed = (reason: AiError.AiErrorReason) => AiError.make({ module: "Anthropic", method: "generateText", reason })

const anthropic = (key: Redacted.Redacted) =>
  Model.make(
    "anthropic",
    name,
    Layer.effect(
      LanguageModel.LanguageModel,
      Effect.gen(function*() {
        const client = yield* HttpClient.HttpClient
        const ask = Effect.fnUntraced(
          function*(options: LanguageModel.ProviderOptions) {
            const request = HttpClientRequest.post("https://api.anthropic.com/v1/messages").pipe(
              HttpClientRequest.setHeader("x-api-key", Redacted.value(key)),
              HttpClientRequest.setHeader("anthropic-version", "2023-06-01"),
              HttpClientRequest.bodyJsonUnsafe(bodyOf(options))
            )
            const response = yield* client.execute(request)
            const text = yield* response.text
            if (response.status !== 200) {
              // The words of the refusal are what tells that a request was too long.
              return yield* failed(AiError.reasonFromHttpStatus({ status: response.status, description: text }))
            }
            return partsOf(yield* Schema.decodeEffect(Schema.fromJsonString(Answer))(text))
          },
          Effect.mapError((error) =>
            AiError.isAiError(error) ? error : failed(new AiError.UnknownError({ description: error.message }))
          )
        )
        return yield* LanguageModel.make({
          generateText: ask,
          streamText: () => Stream.die("this adapter does not stream")
        })
      })
    )
  )

const Read = Tool.make("read", {
  description: "Reads a file of this project",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String
})
const Kit = Toolkit.make(Read)
const KitLayer = Kit.toLayer({
  read: ({ path }) => Effect.promise(() => readFile(path, "utf8").catch((error: unknown) => String(error)))
})

class AppContext extends ContextManager.Service<AppContext>()("app/AppContext", {
  // The window comes from the table of known models; a small budget, to see boundaries soon.
  settings: { maxTokens: 20_000 }
}) {}

const program = Effect.gen(function*() {
  const chat = yield* Chat.fromPrompt([
    { role: "user", content: "Read README.md, package.json and the files in src they speak of. What is this project?" }
  ])
  while (true) {
    const response = yield* chat.generateText({ prompt: [], toolkit: Kit })
    if (response.toolCalls.length > 0) continue
    yield* Console.log(response.text)
    break
  }
  const { generation } = yield* (yield* AppContext).status
  yield* Console.log(`${generation} boundaries`)
})

const main = Effect.gen(function*() {
  const key = yield* Config.option(Config.Redacted("ANTHROPIC_API_KEY"))
  if (Option.isNone(key)) return yield* Console.log("Set ANTHROPIC_API_KEY to run this example.")
  const model = CompactedModel.withCompaction(anthropic(key.value)).pipe(Layer.provide(FetchHttpClient.layer))
  yield* program.pipe(Effect.provide([KitLayer, model, AppContext.layer]))
})

Effect.runPromise(main).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
