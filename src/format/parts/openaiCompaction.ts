/**
 * The bodies of OpenAI's own compaction.
 *
 * `POST /responses/compact` takes a conversation and gives the next one: items that are kept, and one of type `compaction` that
 * only OpenAI reads. It goes back as it came, nothing pruned.
 * https://developers.openai.com/api/docs/guides/compaction
 * https://platform.openai.com/docs/api-reference/responses/compact
 *
 * At a threshold, `context_management` of an ordinary response: the item stands in its output, and all before it may be left
 * out. For servers without the endpoint; the reply behind the item is billed and not used.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Wire from "../../Wire.ts"
import * as Compaction from "./compaction.ts"
import * as Json from "./json.ts"

const provider = "openai"

/** The least threshold that the API takes: what is asked for here is over it. */
const leastThreshold = 1_000

/** System messages go as instructions: as items they would come back among those that are kept, beside those of the request. */
const bodyOf = (write: Compaction.Write, { messages, model }: Compaction.Asked): Schema.JsonObject => {
  const said = messages.flatMap((message) => message.role === "system" ? [message.content] : [])
  const { value } = write(messages.filter(({ role }) => role !== "system"), { model })
  return said.length === 0 ? value : { ...value, instructions: said.join("\n\n") }
}

const count = (value: Schema.Json | undefined): number | undefined => typeof value === "number" ? value : undefined

const usageOf = (usage: Schema.Json | undefined): Compaction.Made["usage"] => {
  if (!Json.isObject(usage)) return null
  const details = usage.input_tokens_details
  const total = count(usage.input_tokens)
  const cacheRead = Json.isObject(details) ? count(details.cached_tokens) : undefined
  return {
    inputTokens: {
      ...(total === undefined ? undefined : { total }),
      ...(cacheRead === undefined ? undefined : { cacheRead })
    },
    outputTokens: count(usage.output_tokens)
  }
}

const isCompaction = (item: Schema.Json): boolean =>
  Json.isObject(item) && item.type === "compaction" && typeof item.encrypted_content === "string"
  && item.encrypted_content !== ""

const readWith =
  (choose: (output: ReadonlyArray<Schema.JsonObject>) => ReadonlyArray<Schema.JsonObject>) =>
  (answer: Schema.Json): Effect.Effect<Compaction.Made, Compaction.Failure> => {
    if (!Json.isObject(answer) || answer.output === undefined || !Json.isArray(answer.output)) {
      return Effect.fail(Compaction.malformed(provider, "it has no output"))
    }
    const output = answer.output.filter(Json.isObject)
    if (output.length < answer.output.length) return Effect.fail(Compaction.malformed(provider, "an item is no object"))
    if (!output.some(isCompaction)) return Effect.fail(Compaction.malformed(provider, "it has no compaction item"))
    const { model, usage } = answer
    return Effect.succeed({
      items: choose(output),
      model: typeof model === "string" ? model : null,
      usage: usageOf(usage)
    })
  }

const isHead = (item: Schema.Json): boolean =>
  Json.isObject(item) && (item.role === "system" || item.role === "developer")

/** What the items stand for is left out; the instructions before the conversation are none of it. */
export const place: Compaction.Place = (body, owned) => {
  const { input } = body
  if (owned === undefined || input === undefined || !Json.isArray(input)) return undefined
  const found = Compaction.after(input, owned.text)
  return found === undefined
    ? undefined
    : {
      body: { ...body, input: [...input.slice(0, found.at).filter(isHead), ...owned.items, ...found.rest] },
      headers: [],
      carries: true
    }
}

const api: Omit<Compaction.Api, "path" | "body" | "read"> = {
  provider,
  rules: Wire.openaiResponses,
  url: "https://api.openai.com/v1",
  headers: (apiKey) => apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
}

export const demand = (write: Compaction.Write): Compaction.Api => ({
  ...api,
  path: "/responses/compact",
  body: (asked) => bodyOf(write, asked),
  read: readWith((output) => output)
})

export const threshold = (write: Compaction.Write): Compaction.Api => ({
  ...api,
  path: "/responses",
  body: (asked) => ({
    ...bodyOf(write, asked),
    store: false,
    context_management: [{ type: "compaction", compact_threshold: leastThreshold }]
  }),
  // The newest item carries all before it, and the reply behind it is no part of the conversation.
  read: readWith((output) => output.filter(isCompaction).slice(-1))
})
