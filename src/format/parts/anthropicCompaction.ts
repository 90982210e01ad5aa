/**
 * The bodies of Anthropic's own compaction.
 *
 * On demand, beta `compact-2026-09-04`: a request with `compaction: { type: "summarize" }` gives one signed block and no reply.
 * https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand
 *
 * At a threshold, beta `compact-2026-01-12`: the edit `compact_20260112` of `context_management`, of at least 50,000 tokens, for
 * platforms without the other one. It pauses behind the block, and is declared again wherever the block goes.
 * https://platform.claude.com/docs/en/build-with-claude/compaction-threshold
 *
 * Context editing, beta `context-management-2025-06-27`: the server clears old results or thinking at each request, and gives
 * nothing back that would have to be sent.
 * https://platform.claude.com/docs/en/build-with-claude/context-editing
 */
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Owned from "../../policy/owned.ts"
import * as Summarizer from "../../Summarizer.ts"
import * as Wire from "../../Wire.ts"
import * as Compaction from "./compaction.ts"
import * as Json from "./json.ts"

const provider = "anthropic"

const betaHeader = "anthropic-beta"

const betas = {
  demand: "compact-2026-09-04",
  threshold: "compact-2026-01-12",
  editing: "context-management-2025-06-27"
}

/** The cap is of the whole call, thinking included. */
const leastTokens = 4_096

/** The least trigger that the API takes, and one that no window reaches. */
const leastTrigger = 50_000
const unreachable = 10_000_000

const thresholdEdit = (value: number, pauses: boolean): Schema.JsonObject => ({
  type: "compact_20260112",
  trigger: { type: "input_tokens", value },
  ...(pauses ? { pause_after_compaction: true } : undefined)
})

/** Its own prompt is replaced whole by instructions, so there are some only where a person asks for something. */
const instructionsOf = (focus: string | undefined): Schema.JsonObject =>
  focus === undefined ? {} : { instructions: `${Summarizer.directive}\n\nKeep an eye on: ${focus}` }

/** The tools are read and never run. What a provider runs by itself has another shape, which nobody here knows. */
const toolOf = (tool: Tool.Any): ReadonlyArray<Schema.JsonObject> => {
  if (!Tool.isUserDefined(tool)) return []
  const description = Tool.getDescription(tool)
  return [{
    // The name of any tool is typed as anything; it is a text.
    name: String(tool.name),
    ...(description === undefined ? undefined : { description }),
    // A JSON Schema is JSON.
    input_schema: Tool.getJsonSchema(tool) as Schema.JsonObject
  }]
}

const bodyOf = (write: Compaction.Write, asked: Compaction.Asked, more: Schema.JsonObject): Schema.JsonObject => {
  const tools = asked.tools.flatMap(toolOf)
  return {
    ...write(asked.messages, { model: asked.model }).value,
    max_tokens: Math.max(leastTokens, asked.maxTokens),
    ...(tools.length === 0 ? undefined : { tools }),
    ...more
  }
}

const count = (value: Schema.Json | undefined): number => typeof value === "number" && value > 0 ? value : 0

/** What the call was billed: the entries of `iterations`, since the top level is of the reply alone, of which there is none. */
const usageOf = (usage: Schema.Json | undefined): Compaction.Made["usage"] => {
  if (!Json.isObject(usage)) return null
  const all = Json.isArray(usage.iterations) ? usage.iterations.filter(Json.isObject) : [usage]
  const sum = (key: string) => all.reduce((total, each) => total + count(each[key]), 0)
  return {
    inputTokens: {
      uncached: sum("input_tokens"),
      cacheRead: sum("cache_read_input_tokens"),
      cacheWrite: sum("cache_creation_input_tokens")
    },
    outputTokens: sum("output_tokens")
  }
}

/** Why there is no block, by how the call ended. */
const refusalOf = (ending: Schema.Json | undefined, maxTokens: number): Compaction.Failure => {
  switch (ending) {
    case "max_tokens":
      return new Summarizer.SummaryTruncated({ maxTokens: Math.max(leastTokens, maxTokens) })
    case "model_context_window_exceeded":
      return Compaction.failed("there was no room for the summary in the window", { isOverflow: true })
    case "tool_use":
      return new Summarizer.NotASummary({ reason: "it calls a tool" })
    case "refusal":
      return new Summarizer.NotASummary({ reason: "the model declined" })
    default:
      return new Summarizer.SummaryEmpty()
  }
}

const read: Compaction.Api["read"] = (answer, maxTokens) => {
  if (!Json.isObject(answer) || answer.content === undefined || !Json.isArray(answer.content)) {
    return Effect.fail(Compaction.malformed(provider, "it has no content"))
  }
  const block = answer.content.find((each) => Json.isObject(each) && each.type === "compaction")
  if (block === undefined || !Json.isObject(block) || block.content === null) {
    return Effect.fail(refusalOf(answer.stop_reason, maxTokens))
  }
  if (typeof block.content !== "string" || block.content === "") {
    return Effect.fail(Compaction.malformed(provider, "its block holds no text"))
  }
  const { model, usage } = answer
  return Effect.succeed({ items: [block], model: typeof model === "string" ? model : null, usage: usageOf(usage) })
}

const isSigned = (items: ReadonlyArray<Schema.Json>): boolean =>
  items.some((item) => Json.isObject(item) && typeof item.signature === "string")

/** The edits of a request, with one more. */
const withEdits = (body: Schema.JsonObject, more: ReadonlyArray<Schema.JsonObject>): Schema.JsonObject => {
  const management = Json.isObject(body.context_management) ? body.context_management : {}
  const edits = management.edits !== undefined && Json.isArray(management.edits) ? management.edits : []
  return { ...body, context_management: { ...management, edits: [...edits, ...more] } }
}

/** The block comes first, and what it stands for is gone: anything in front of it is refused (`compaction_block_misplaced`). */
const placeIn = (body: Schema.JsonObject, { items, text }: Owned.Owned): Compaction.Placed | undefined => {
  const found = body.messages !== undefined && Json.isArray(body.messages)
    ? Compaction.after(body.messages, text)
    : undefined
  if (found === undefined) return undefined
  const placed = { ...body, messages: [{ role: "assistant", content: items }, ...found.rest] }
  return isSigned(items)
    ? { body: placed, headers: [[betaHeader, betas.demand]], carries: true }
    : {
      body: withEdits(placed, [thresholdEdit(unreachable, false)]),
      headers: [[betaHeader, betas.threshold]],
      carries: true
    }
}

/** Puts the block in place, and has the server clear what the edits say in each request. */
export const placeWith = (edits: ReadonlyArray<Schema.JsonObject>): Compaction.Place => (body, owned) => {
  // A compaction that is asked for takes no edits beside it.
  if (!("messages" in body) || "compaction" in body) return undefined
  const placed = owned === undefined ? undefined : placeIn(body, owned)
  return edits.length === 0 ? placed : {
    body: withEdits(placed?.body ?? body, edits),
    headers: [...placed?.headers ?? [], [betaHeader, betas.editing]],
    carries: placed?.carries === true
  }
}

const apiOf = (beta: string, body: Compaction.Api["body"]): Compaction.Api => ({
  provider,
  rules: Wire.anthropic,
  url: "https://api.anthropic.com/v1",
  path: "/messages",
  headers: (apiKey) => ({
    "anthropic-version": "2023-06-01",
    [betaHeader]: beta,
    ...(apiKey === undefined ? undefined : { "x-api-key": apiKey })
  }),
  body,
  read
})

export const demand = (write: Compaction.Write): Compaction.Api =>
  apiOf(
    betas.demand,
    (asked) => bodyOf(write, asked, { compaction: { type: "summarize", ...instructionsOf(asked.focus) } })
  )

export const threshold = (write: Compaction.Write): Compaction.Api =>
  apiOf(betas.threshold, (asked) => {
    const edit = { ...thresholdEdit(leastTrigger, true), ...instructionsOf(asked.focus) }
    return bodyOf(write, asked, { context_management: { edits: [edit] } })
  })
