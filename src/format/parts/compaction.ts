/**
 * A provider's own compaction as a summariser, over `HttpClient`; and the clients that put what it made into the bodies that
 * an adapter wrote. The bodies themselves are of each provider.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import * as Overflow from "../../Overflow.ts"
import * as Owned from "../../policy/owned.ts"
import * as Summarizer from "../../Summarizer.ts"
import * as Extract from "../../text/extract.ts"
import { reasonOf } from "../../text/reason.ts"
import * as Wire from "../../Wire.ts"
import * as Json from "./json.ts"

export type Failure =
  | Summarizer.SummarizerFailed
  | Summarizer.SummaryTruncated
  | Summarizer.SummaryEmpty
  | Summarizer.NotASummary

/** What is asked of a provider: the conversation, as the provider takes it, and how long the answer may be. */
export interface Asked {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly model: string
  readonly maxTokens: number
  readonly tools: ReadonlyArray<Tool.Any>
  readonly focus: string | undefined
}

/** What a provider made: the items in its own words, and what it billed. */
export interface Made {
  readonly items: ReadonlyArray<Schema.JsonObject>
  readonly model: string | null
  readonly usage: Summarizer.Reply["usage"]
}

/** What is particular to one provider. */
export interface Api {
  readonly provider: string
  readonly rules: Wire.Rules
  /** Where the API is when nobody says, and the place of the endpoint there. */
  readonly url: string
  readonly path: string
  readonly headers: (apiKey: string | undefined) => { readonly [name: string]: string }
  readonly body: (asked: Asked) => Schema.JsonObject
  readonly read: (answer: Schema.Json, maxTokens: number) => Effect.Effect<Made, Failure>
}

/** A body as it goes out, and the headers that it needs beside its own. */
export interface Placed {
  readonly body: Schema.JsonObject
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  /** Whether items of the owner are in it. */
  readonly carries: boolean
}

/** Changes a body that an adapter wrote; `undefined` where it goes as it is. `owned` is what its owner is sent, if anything. */
export interface Place {
  (body: Schema.JsonObject, owned: Owned.Owned | undefined): Placed | undefined
}

export const failed = (reason: string, more: { readonly isOverflow?: boolean; readonly cause?: unknown } = {}) =>
  new Summarizer.SummarizerFailed({
    reason,
    isOverflow: more.isOverflow === true,
    ...(more.cause === undefined ? undefined : { cause: more.cause })
  })

export const malformed = (api: string, what: string) => failed(`the answer of ${api} is malformed: ${what}`)

/** How much of what a provider says about a refusal is repeated. */
const saidLength = 500

/** An answer as it came. */
interface Answer {
  readonly status: number
  readonly text: string
}

/** A refusal that is about items: of a key that changed, of another account, of a model or a server that knows none. */
const isAboutItems = ({ status, text }: Answer): boolean =>
  (status === 400 || status === 422) && /compaction|encrypted[ _]content/i.test(text)

/** The answer as JSON; a refusal says what the provider said. */
const jsonOf = ({ provider }: Api, { status, text }: Answer): Effect.Effect<Schema.Json, Failure> => {
  if (status < 200 || status > 299) {
    const reason = `${provider} answered ${status}: ${text.slice(0, saidLength)}`
    return Effect.fail(failed(reason, { isOverflow: status < 500 && Overflow.describes(text) }))
  }
  const json = Json.parse(text)
  return json === undefined ? Effect.fail(malformed(provider, "it is no JSON")) : Effect.succeed(json)
}

/** The summariser that a provider is: one call, whose answer is kept as it came beside an extract that anybody can read. */
const service = (
  api: Api,
  client: HttpClient.HttpClient,
  { apiKey, model, owner = `${api.provider}/${model}`, url = api.url }: Summarizer.NativeOptions
): Summarizer.Service => ({
  cache: "shared",
  reads: "conversation",
  headings: [],
  summarize: Effect.fnUntraced(function*({ focus, maxTokens, messages, prompt, tools }) {
    // Without one that can be read there is nothing for other routes, and nothing to ask for.
    const text = Extract.summary(messages, maxTokens)
    if (text === "") return yield* new Summarizer.SummaryEmpty()
    const send = (conversation: ReadonlyArray<Prompt.Message>): Effect.Effect<Answer, Failure> => {
      const body = api.body({
        messages: conversation,
        model,
        maxTokens,
        tools: Object.values(tools ?? {}),
        focus
      })
      const request = HttpClientRequest.post(`${url}${api.path}`).pipe(
        HttpClientRequest.setHeaders(api.headers(apiKey === undefined ? undefined : Redacted.value(apiKey))),
        HttpClientRequest.bodyJsonUnsafe(body)
      )
      return client.execute(request).pipe(
        Effect.flatMap(({ status, text }) => Effect.map(text, (said) => ({ status, text: said }))),
        Effect.mapError((cause) => failed(reasonOf(cause), { cause }))
      )
    }
    const { content } = Wire.repair(prompt, api.rules)
    // Behind the repair: what an item stands for is gone, and the rules would ask for a user in front of it.
    const own = Owned.forOwner(content, owner)
    const first = yield* send(own)
    // Items that are refused now are refused at each later compaction: the twin goes on without them.
    const answer = own !== content && isAboutItems(first) ? yield* send(content) : first
    const made = yield* api.read(yield* jsonOf(api, answer), maxTokens)
    return {
      text,
      model: made.model ?? model,
      provider: api.provider,
      usage: made.usage,
      isTruncated: false,
      native: { owner, items: made.items }
    }
  })
})

/** Writes messages in the way of a provider. */
export type Write = (
  messages: ReadonlyArray<Prompt.Message>,
  options: { readonly model: string }
) => { readonly value: Schema.JsonObject }

/** Provides the summariser that a provider is, with the bodies of the method that was chosen. */
export const layer = (
  apis: { readonly [Method in "demand" | "threshold"]: (write: Write) => Api },
  write: Write,
  options: Summarizer.NativeOptions
): Layer.Layer<never, never, HttpClient.HttpClient> =>
  Layer.effect(
    Summarizer.Summarizer,
    Effect.map(HttpClient.HttpClient, (client) => service(apis[options.method ?? "demand"](write), client, options))
  )

/**
 * Changes the bodies that an adapter writes: where there is something for the owner, or `always`. No JSON, no change. Where the
 * owner refuses its items, the twin goes in the same call and in all later ones of these items: it must never lose a session.
 */
export const carry = (client: HttpClient.HttpClient, place: Place, always: boolean): HttpClient.HttpClient => {
  const refused = new WeakSet<Owned.Owned["items"]>()
  return HttpClient.transform(client, (effect, request) =>
    Effect.gen(function*() {
      const carried = yield* Owned.Carried
      const owned = carried !== undefined && refused.has(carried.items) ? undefined : carried
      const body = owned === undefined && !always ? undefined : bodyOf(request)
      if (body === undefined) return yield* effect
      const send = (placed: Placed | undefined) =>
        placed === undefined ? effect : client.postprocess(Effect.succeed(changed(request, placed)))
      const placed = place(body, owned)
      if (owned === undefined || placed?.carries !== true) return yield* send(placed)
      // A client that fails on such a status has its response all the same.
      const result = yield* Effect.result(send(placed))
      const response = result._tag === "Success" ? result.success : result.failure.response
      // What was read of a response can be read again.
      const isItems = response !== undefined && response.status >= 400
        && isAboutItems({ status: response.status, text: yield* response.text })
      if (!isItems) return yield* Effect.fromResult(result)
      refused.add(owned.items)
      yield* Effect.logWarning(
        "the provider refused what its own compaction made: the summary that can be read is sent"
      )
      return yield* send(place(body, undefined))
    }))
}

const changed = (request: HttpClientRequest.HttpClientRequest, { body, headers }: Placed) =>
  headers.reduce(withHeader, HttpClientRequest.bodyJsonUnsafe(request, body))

/** Headers of this kind are lists. */
const withHeader = (
  request: HttpClientRequest.HttpClientRequest,
  [name, value]: readonly [string, string]
): HttpClientRequest.HttpClientRequest => {
  const before = request.headers[name]?.split(",") ?? []
  return before.includes(value)
    ? request
    : HttpClientRequest.setHeader(request, name, [...before, value].join())
}

const bodyOf = ({ body }: HttpClientRequest.HttpClientRequest): Schema.JsonObject | undefined => {
  if (body._tag !== "Uint8Array") return undefined
  const json = Json.parse(body.text ?? new TextDecoder().decode(body.body))
  return json !== undefined && Json.isObject(json) ? json : undefined
}

/** What stands behind a text in a list of messages: the rest of its own message, and those after it. */
export const after = (
  messages: ReadonlyArray<Schema.Json>,
  text: string
): { readonly at: number; readonly rest: ReadonlyArray<Schema.Json> } | undefined => {
  for (const [at, message] of messages.entries()) {
    if (!Json.isObject(message)) continue
    const { content } = message
    if (content === text) return { at, rest: messages.slice(at + 1) }
    if (content === undefined || !Json.isArray(content)) continue
    const block = content.findIndex((each) => Json.isObject(each) && each.text === text)
    if (block < 0) continue
    const behind = content.slice(block + 1)
    const own = behind.length === 0 ? [] : [{ ...message, content: behind }]
    return { at, rest: [...own, ...messages.slice(at + 1)] }
  }
  return undefined
}
