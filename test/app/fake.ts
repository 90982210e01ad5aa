/** Models that answer by a script, and what they were sent. */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { streamed } from "./adapters.ts"

export type Answer = ReadonlyArray<Response.PartEncoded>

export interface Seen {
  readonly prompts: Array<Prompt.Prompt>
  readonly options: Array<LanguageModel.ProviderOptions>
}

export const nothingSeen = (): Seen => ({ prompts: [], options: [] })

export const finish = (
  total: number | undefined,
  reason: Response.FinishReason = "stop"
): Response.FinishPartEncoded => ({
  type: "finish",
  reason,
  usage: {
    inputTokens: { total, uncached: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: undefined, reasoning: undefined }
  },
  response: undefined
})

export const text = (words: string, total: number): Answer => [{ type: "text", text: words }, finish(total)]

export const call = (id: string, total: number, name = "read", params: unknown = { path: id }): Answer => [
  { type: "tool-call", id, name, params },
  finish(total, "tool-calls")
]

/** A model that asks the script for each answer, by the number of the request from 1. */
export const model = (
  seen: Seen,
  script: (request: number, options: LanguageModel.ProviderOptions) => Effect.Effect<Answer, AiError.AiError>
) => {
  const ask = (options: LanguageModel.ProviderOptions) =>
    Effect.suspend(() => {
      seen.prompts.push(options.prompt)
      seen.options.push(options)
      return script(seen.prompts.length, options)
    })
  return Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: (options) => Effect.map(ask(options), (answer) => [...answer]),
      streamText: (options) =>
        Stream.unwrap(Effect.map(ask(options), (answer) => Stream.fromIterable(streamed(answer))))
    })
  )
}

export const failure = (reason: AiError.AiErrorReason) =>
  AiError.make({ module: "Fake", method: "generateText", reason })

export const tooLong = (tokens: number, maximum: number) =>
  failure(
    new AiError.InvalidRequestError({ description: `prompt is too long: ${tokens} tokens > ${maximum} maximum` })
  )

export const down = failure(new AiError.InternalProviderError({ description: "down" }))

export const textsOf = (prompt: Prompt.Prompt): ReadonlyArray<string> =>
  prompt.content.map((message) =>
    message.role === "system"
      ? message.content
      : (message.content as ReadonlyArray<Prompt.Part>).map((part) => part.type === "text" ? part.text : part.type)
        .join()
  )
