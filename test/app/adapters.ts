/**
 * Two thin adapters that put a prompt on the wire and read the answer, as the adapters of providers do. What they send is
 * judged by `server.ts`; a cache mark in the options of a message or a part is put on the block it is for.
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { fromResponse } from "./errors.ts"

interface CacheControl {
  readonly type: "ephemeral"
}

type Cached = { cache_control?: CacheControl }

export type AnthropicBlock =
  & (
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
    | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: unknown }
    | {
      readonly type: "tool_result"
      readonly tool_use_id: string
      readonly content: string
      readonly is_error: boolean
    }
  )
  & Cached

export interface AnthropicRequest {
  readonly model: string
  readonly max_tokens: number
  readonly thinking?: { readonly type: "enabled" }
  readonly system: ReadonlyArray<{ readonly type: "text"; readonly text: string } & Cached>
  readonly tools: ReadonlyArray<{ readonly name: string; readonly description: string; readonly input_schema: unknown }>
  readonly messages: ReadonlyArray<
    { readonly role: "user" | "assistant"; readonly content: ReadonlyArray<AnthropicBlock> }
  >
}

interface AnthropicAnswer {
  readonly id: string
  readonly content: ReadonlyArray<AnthropicBlock>
  readonly stop_reason: string
  readonly usage: {
    readonly input_tokens: number
    readonly cache_read_input_tokens: number
    readonly cache_creation_input_tokens: number
    readonly output_tokens: number
  }
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: string | null
  readonly tool_calls?: ReadonlyArray<{
    readonly id: string
    readonly type: "function"
    readonly function: { readonly name: string; readonly arguments: string }
  }>
  readonly tool_call_id?: string
}

export interface ChatRequest {
  readonly model: string
  readonly tools: ReadonlyArray<unknown>
  readonly messages: ReadonlyArray<ChatMessage>
}

interface ChatAnswer {
  readonly id: string
  readonly choices: ReadonlyArray<{ readonly message: ChatMessage; readonly finish_reason: string }>
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly prompt_tokens_details: { readonly cached_tokens: number }
  }
}

const stateOf = (options: Prompt.ProviderOptions, provider: string): { readonly [key: string]: unknown } => {
  const value = options[provider]
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as { [key: string]: unknown } : {}
}

const textOf = (part: Prompt.ToolResultPart): string =>
  part.modelOutput === undefined
    ? typeof part.result === "string" ? part.result : JSON.stringify(part.result)
    : part.modelOutput.map((each) => each.type === "text" ? each.text : "(file)").join("\n")

const mark = (options: Prompt.ProviderOptions): Cached => {
  const control = stateOf(options, "anthropic").cacheControl
  return control === undefined ? {} : { cache_control: control as CacheControl }
}

const toAnthropic = (options: LanguageModel.ProviderOptions, model: string): AnthropicRequest => {
  const system: Array<AnthropicRequest["system"][number]> = []
  const messages: Array<{ role: "user" | "assistant"; content: Array<AnthropicBlock> }> = []
  for (const message of options.prompt.content) {
    if (message.role === "system") {
      system.push({ type: "text", text: message.content, ...mark(message.options) })
      continue
    }
    const blocks: Array<AnthropicBlock> = []
    for (const part of message.content) {
      const cached = mark(part.options)
      switch (part.type) {
        case "text":
          blocks.push({ type: "text", text: part.text, ...cached })
          break
        case "reasoning": {
          const { signature } = stateOf(part.options, "anthropic")
          if (typeof signature === "string") blocks.push({ type: "thinking", thinking: part.text, signature })
          break
        }
        case "tool-call":
          blocks.push({ type: "tool_use", id: part.id, name: part.name, input: part.params, ...cached })
          break
        case "tool-result":
          blocks.push({
            type: "tool_result",
            tool_use_id: part.id,
            content: textOf(part),
            is_error: part.isFailure,
            ...cached
          })
          break
        // There are no files here, and approvals are resolved before a request gets here.
        case "file":
        case "tool-approval-request":
        case "tool-approval-response":
          break
      }
    }
    const last = blocks.at(-1)
    if (last !== undefined) Object.assign(last, mark(message.options))
    const role = message.role === "assistant" ? "assistant" : "user"
    const before = messages.at(-1)
    if (before?.role === role) before.content.push(...blocks)
    else messages.push({ role, content: blocks })
  }
  return {
    model,
    max_tokens: 1_000,
    thinking: { type: "enabled" },
    system,
    tools: options.tools.map((tool) => ({
      name: tool.name,
      description: tool.description ?? "",
      input_schema: Tool.getJsonSchema(tool)
    })),
    messages
  }
}

const anthropicReasons: { readonly [reason: string]: Response.FinishReason } = {
  end_turn: "stop",
  tool_use: "tool-calls",
  max_tokens: "length"
}

const fromAnthropic = ({ content, id, stop_reason, usage }: AnthropicAnswer): Array<Response.PartEncoded> => [
  { type: "response-metadata", id, modelId: undefined, timestamp: undefined },
  ...content.flatMap((block): ReadonlyArray<Response.PartEncoded> => {
    switch (block.type) {
      case "text":
        return [{ type: "text", text: block.text }]
      case "thinking":
        return [{ type: "reasoning", text: block.thinking, metadata: { anthropic: { signature: block.signature } } }]
      case "tool_use":
        return [{ type: "tool-call", id: block.id, name: block.name, params: block.input }]
      case "tool_result":
        return []
    }
  }),
  {
    type: "finish",
    reason: anthropicReasons[stop_reason] ?? "unknown",
    usage: {
      inputTokens: {
        uncached: usage.input_tokens,
        cacheRead: usage.cache_read_input_tokens,
        cacheWrite: usage.cache_creation_input_tokens,
        total: usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
      },
      outputTokens: { total: usage.output_tokens, text: undefined, reasoning: undefined }
    },
    response: undefined
  }
]

const toChat = (options: LanguageModel.ProviderOptions, model: string): ChatRequest => ({
  model,
  tools: options.tools.map((tool) => ({
    type: "function",
    function: { name: tool.name, description: tool.description ?? "", parameters: Tool.getJsonSchema(tool) }
  })),
  messages: options.prompt.content.flatMap((message): ReadonlyArray<ChatMessage> => {
    switch (message.role) {
      case "system":
        return [{ role: "system", content: message.content }]
      case "user":
        return [{
          role: "user",
          content: message.content.map((part) => part.type === "text" ? part.text : "(file)").join("\n")
        }]
      case "tool":
        return message.content.flatMap((part) =>
          part.type === "tool-result" ? [{ role: "tool" as const, content: textOf(part), tool_call_id: part.id }] : []
        )
      case "assistant": {
        const text = message.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n")
        const calls = message.content.flatMap((part) =>
          part.type === "tool-call"
            ? [{
              id: part.id,
              type: "function" as const,
              function: { name: part.name, arguments: JSON.stringify(part.params) }
            }]
            : []
        )
        return [{
          role: "assistant",
          content: text === "" ? null : text,
          ...(calls.length === 0 ? undefined : { tool_calls: calls })
        }]
      }
    }
  })
})

const chatReasons: { readonly [reason: string]: Response.FinishReason } = {
  stop: "stop",
  tool_calls: "tool-calls",
  length: "length"
}

const fromChat = ({ choices, id, usage }: ChatAnswer): Array<Response.PartEncoded> => {
  const { finish_reason, message } = choices[0]!
  const cached = usage.prompt_tokens_details.cached_tokens
  return [
    { type: "response-metadata", id, modelId: undefined, timestamp: undefined },
    ...(message.content === null ? [] : [{ type: "text" as const, text: message.content }]),
    ...(message.tool_calls ?? []).map((call) => ({
      type: "tool-call" as const,
      id: call.id,
      name: call.function.name,
      params: JSON.parse(call.function.arguments) as unknown
    })),
    {
      type: "finish",
      reason: chatReasons[finish_reason] ?? "unknown",
      usage: {
        inputTokens: {
          uncached: usage.prompt_tokens - cached,
          cacheRead: cached,
          cacheWrite: undefined,
          total: usage.prompt_tokens
        },
        outputTokens: { total: usage.completion_tokens, text: undefined, reasoning: undefined }
      },
      response: undefined
    }
  ]
}

/** The parts of an answer as a stream gives them. */
export const streamed = (parts: ReadonlyArray<Response.PartEncoded>): ReadonlyArray<Response.StreamPartEncoded> =>
  parts.flatMap((part, at): ReadonlyArray<Response.StreamPartEncoded> => {
    const id = `part-${at}`
    if (part.type === "text") {
      return [{ type: "text-start", id }, { type: "text-delta", id, delta: part.text }, { type: "text-end", id }]
    }
    if (part.type === "reasoning") {
      return [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: part.text },
        { type: "reasoning-end", id, ...(part.metadata === undefined ? undefined : { metadata: part.metadata }) }
      ]
    }
    // What is left of an answer is the same in both.
    return [part]
  })

const post = Effect.fnUntraced(function*(client: HttpClient.HttpClient, provider: string, url: string, body: unknown) {
  const failed = (error: { readonly message: string }) =>
    AiError.make({
      module: provider,
      method: "generateText",
      reason: new AiError.InternalProviderError({ description: error.message })
    })
  const request = HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(url), body)
  const response = yield* Effect.mapError(client.execute(request), failed)
  const text = yield* Effect.mapError(response.text, failed)
  if (response.status !== 200) return yield* fromResponse(provider, response.status, JSON.parse(text))
  return JSON.parse(text) as unknown
})

const adapter = <Body, Answer>(provider: string, options: {
  readonly url: string
  readonly model: string
  readonly to: (options: LanguageModel.ProviderOptions, model: string) => Body
  readonly from: (answer: Answer) => Array<Response.PartEncoded>
}) =>
  Model.make(
    provider,
    options.model,
    Layer.effect(
      LanguageModel.LanguageModel,
      Effect.flatMap(HttpClient.HttpClient, (client) => {
        const ask = (given: LanguageModel.ProviderOptions) =>
          // The server answers in the shape of its wire.
          Effect.map(
            post(client, provider, options.url, options.to(given, options.model)),
            (answer) => options.from(answer as Answer)
          )
        return LanguageModel.make({
          generateText: ask,
          streamText: (given) => Stream.unwrap(Effect.map(ask(given), (parts) => Stream.fromIterable(streamed(parts))))
        })
      })
    )
  )

export const anthropic = (url: string, model: string) =>
  adapter("anthropic", { url: `${url}/v1/messages`, model, to: toAnthropic, from: fromAnthropic })

export const openai = (url: string, model: string) =>
  adapter("openai", { url: `${url}/v1/chat/completions`, model, to: toChat, from: fromChat })
