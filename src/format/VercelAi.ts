/**
 * Reads messages of the Vercel AI SDK: UI messages, model messages (`CoreMessage` in version 4), and the log of its
 * devtools (`.devtools/generations.json`).
 *
 * What is read and what is lost is in `docs/formats/vercel-ai.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AiSdk from "./parts/aiSdk.ts"
import * as Building from "./parts/building.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import * as Parts from "./parts/vercelParts.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"

const format = "vercel-ai"

/** The messages of a document, and the name of the member that holds them. */
const messagesOf = (
  value: Schema.Json | undefined
): { readonly key: string; readonly list: Schema.Json | undefined } => {
  if (!Json.isObject(value)) return { key: "", list: value }
  const key = value.messages === undefined && value.prompt !== undefined ? "prompt" : "messages"
  return { key, list: value[key] }
}

const isUi = (message: Schema.JsonObject): boolean =>
  Json.isArray(message.parts) && message.parts.every((part) => Json.isObject(part) && typeof part.type === "string") ||
  Json.isArray(message.toolInvocations)

const modelParts = new Set(["tool-call", "tool-result", "reasoning", "redacted-reasoning"])

const isModel = (message: Schema.JsonObject): boolean =>
  Json.isArray(message.content) &&
  message.content.some((part) => Json.isObject(part) && typeof part.type === "string" && modelParts.has(part.type))

const isLog = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  Json.isObject(value) && Json.isArray(value.runs) && Json.isArray(value.steps)

/**
 * Reads UI messages and model messages. A log of the devtools is a pool: a conversation for each of its runs.
 *
 * @see https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    if (kind !== "document") return undefined
    if (isLog(first[0])) return "a log with runs and steps"
    const { list } = messagesOf(first[0])
    if (!Json.isArray(list)) return undefined
    const messages = list.filter(Json.isObject).filter(({ role }) => typeof role === "string")
    return messages.some(isUi)
      ? "a list of messages with parts"
      : messages.some(isModel)
      ? "a list of messages with tool-call, tool-result or reasoning parts"
      : undefined
  },
  split: (value) => {
    if (!isLog(value) || !Json.isArray(value.steps)) return undefined
    const runs = new Map<Schema.Json, Array<Schema.JsonObject>>()
    for (const step of value.steps) {
      if (!Json.isObject(step)) continue
      const run = step.run_id ?? step.runId ?? null
      const known = runs.get(run)
      if (known === undefined) runs.set(run, [step])
      else known.push(step)
    }
    return Array.from(runs.values(), (steps) => ({ steps }))
  },
  start: (file, why) => start(file, why)
}

const start = (file: string, why: string): Reader.Parse => {
  const session = Building.make(file, format, why)
  return {
    record: (value, line) => record(session, value, { file, line, field: "" }),
    end: () => Result.succeed(Building.end(session, say))
  }
}

const record = (session: Building.Building, value: Schema.Json, root: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    if (Json.isObject(value) && Json.isArray(value.steps)) return yield* run(session, value.steps, root)
    const { key, list } = messagesOf(value)
    const place = key === "" ? root : Json.at(root, key)
    if (Json.isObject(value) && typeof value.system === "string") {
      Building.push(session, Message.system(value.system), root.line)
    }
    for (const [index, one] of (yield* Json.array(list, place)).entries()) {
      yield* message(session, one, Json.at(place, index))
    }
  })

const say = (kind: string, count: number, what: string): string =>
  kind === "provisional"
    ? Findings.provisional(count)
    : `${count} parts of type ${what} left out: no model is sent them`

const message = (session: Building.Building, value: Schema.Json, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const role = yield* Json.stringAt(wire, "role", place)
    if (role === "tool") return yield* toolMessage(session, wire, place)
    if (role !== "system" && role !== "user" && role !== "assistant" && role !== "data") {
      return yield* Json.fail(
        Json.at(place, "role"),
        `unknown role ${JSON.stringify(role)}, expected system, user, assistant or tool`
      )
    }
    if (role === "data") {
      Building.notice(session, "not-sent", place.line, "data")
      return
    }
    if (role === "assistant") return yield* assistantMessage(session, wire, place)
    const { at, parts } = yield* Parts.contentOf(wire, place)
    if (role === "system") {
      const texts = parts.map((part) => typeof part.text === "string" ? part.text : "")
      Building.push(session, Message.system(texts.join("\n\n")), place.line, timeOf(wire))
      return
    }
    const own: Array<Prompt.UserMessagePart> = []
    for (const [index, part] of parts.entries()) {
      const read = yield* sharedPart(session, part, Json.at(at, index))
      if (read !== undefined) own.push(read)
    }
    Building.push(session, Message.user(own), place.line, timeOf(wire))
  })

/** A part that any message may hold; `undefined` for what is never sent to a model. */
const sharedPart = (
  session: Building.Building,
  wire: Schema.JsonObject,
  place: Json.Place
): Json.Read<Prompt.TextPart | Prompt.FilePart | undefined> =>
  Result.gen(function*() {
    const type = yield* Json.stringAt(wire, "type", place)
    const metadata = wire.providerOptions ?? wire.providerMetadata
    if (type === "text") {
      return AiSdk.withProviders(Message.text(yield* Json.stringAt(wire, "text", place)), metadata)
    }
    if (type === "image" || type === "file") {
      const part = AiSdk.filePart(
        wire.image ?? wire.url ?? wire.data,
        wire.mediaType ?? wire.mimeType ?? (type === "image" ? "image/*" : undefined),
        wire.filename
      )
      return part === undefined ? Message.opaque(wire) : AiSdk.withProviders(part, metadata)
    }
    if (type.startsWith("source") || type.startsWith("data-") || type === "step-start") {
      Building.notice(session, "not-sent", place.line, type.startsWith("data-") ? "data" : type)
      return undefined
    }
    return Message.opaque(wire)
  })

/** An answer of a UI message that is being read, step by step. */
interface Answer {
  parts: Array<Prompt.AssistantMessagePart>
  results: Array<Prompt.ToolResultPart>
  /** The calls whose output was provisional: the final one is of the same call. */
  readonly provisional: Set<string>
  pushed: number
}

/** When a message was made; version 5 leaves that to the app, which keeps it in the metadata. */
const timeOf = (wire: Schema.JsonObject): number | undefined => {
  const created = wire.createdAt ?? (Json.isObject(wire.metadata) ? wire.metadata.createdAt : undefined)
  return Time.ofText(created) ?? Time.ofMillis(created)
}

const assistantMessage = (session: Building.Building, wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const answer: Answer = { parts: [], results: [], provisional: new Set(), pushed: 0 }
    const time = timeOf(wire)
    const flush = () => {
      const { parts, results } = answer
      if (parts.length > 0 || results.length > 0) {
        Building.push(session, Message.assistant(parts), place.line, time)
        if (results.length > 0) Building.push(session, Message.tool(results), place.line, time)
        answer.pushed++
      }
      answer.parts = []
      answer.results = []
    }
    const content = yield* Parts.contentOf(wire, place)
    for (const [index, part] of content.parts.entries()) {
      const at = Json.at(content.at, index)
      const type = yield* Json.stringAt(part, "type", at)
      const metadata = part.providerOptions ?? part.providerMetadata ?? part.callProviderMetadata
      if (type === "step-start") {
        flush()
      } else if (type === "reasoning") {
        answer.parts.push(AiSdk.withProviders(yield* Parts.reasoningPart(part, at), metadata))
      } else if (type === "redacted-reasoning") {
        const redactedData = yield* Json.stringAt(part, "data", at)
        answer.parts.push(Message.reasoning("", { anthropic: { info: { type: "redacted_thinking", redactedData } } }))
      } else if (type === "tool-call") {
        answer.parts.push(AiSdk.withProviders(yield* Parts.callPart(part, at), metadata))
      } else if (type === "tool-result" && Parts.isProvisional(part)) {
        Building.notice(session, "provisional", place.line)
      } else if (type === "tool-result") {
        // In an answer stands what ran at the provider.
        answer.parts.push(AiSdk.withProviders(yield* Parts.resultPart(part, at, true), metadata))
      } else if (type === "tool-invocation") {
        const call = yield* Json.objectAt(part, "toolInvocation", at)
        yield* invocation(session, call, Json.at(at, "toolInvocation"), answer, undefined)
      } else if (type === "dynamic-tool" || (type.startsWith("tool-") && part.toolCallId !== undefined)) {
        yield* invocation(session, part, at, answer, metadata)
      } else {
        const read = yield* sharedPart(session, part, at)
        if (read !== undefined) answer.parts.push(read)
      }
    }
    flush()
    // An answer that says nothing is one all the same.
    if (answer.pushed === 0) Building.push(session, Message.assistant([]), place.line, time)
  })

const toolMessage = (session: Building.Building, wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const within = Json.at(place, "content")
    const results: Array<Prompt.ToolResultPart> = []
    for (const [index, value] of (yield* Json.array(wire.content, within)).entries()) {
      const at = Json.at(within, index)
      const part = yield* Json.object(value, at)
      const type = yield* Json.stringAt(part, "type", at)
      if (type === "tool-approval-response") {
        Building.notice(session, "not-sent", place.line, type)
        continue
      }
      if (type !== "tool-result") {
        return yield* Json.fail(
          Json.at(at, "type"),
          `a part of type ${JSON.stringify(type)} stands in a tool message`
        )
      }
      if (Parts.isProvisional(part)) {
        Building.notice(session, "provisional", place.line)
        continue
      }
      results.push(
        AiSdk.withProviders(yield* Parts.resultPart(part, at, false), part.providerOptions ?? part.providerMetadata)
      )
    }
    if (results.length > 0) Building.push(session, Message.tool(results), place.line, timeOf(wire))
  })

/** A call and its result in one part, of a UI message. */
const invocation = (
  session: Building.Building,
  wire: Schema.JsonObject,
  place: Json.Place,
  answer: Answer,
  metadata: Schema.Json | undefined
): Json.Read<void> =>
  Result.gen(function*() {
    const id = yield* Json.stringAt(wire, "toolCallId", place)
    const name = typeof wire.type === "string" && wire.type.startsWith("tool-")
      ? wire.type.slice("tool-".length)
      : yield* Json.stringAt(wire, "toolName", place)
    const state = yield* Json.stringAt(wire, "state", place)
    const atProvider = wire.providerExecuted === true
    // Input that the model did not get right is kept beside it.
    const input = wire.input ?? wire.args ?? wire.rawInput ?? {}
    if (!answer.provisional.has(id)) {
      answer.parts.push(AiSdk.withProviders(Message.call(id, name, input, {}, atProvider), metadata))
    }
    const result = Parts.outcome(wire, state)
    if (result === undefined) return
    if (!result.failed && Parts.isProvisional(wire)) {
      answer.provisional.add(id)
      return Building.notice(session, "provisional", place.line)
    }
    answer.provisional.delete(id)
    const part = Message.result(id, name, result.value, result.failed, {}, atProvider)
    if (atProvider) answer.parts.push(part)
    else answer.results.push(part)
  })

/** The steps of a run: the longest prompt repeats those before it, and the last answer stands beside it. */
const run = (session: Building.Building, steps: Schema.JsonArray, root: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const prompts: Array<{ readonly messages: Schema.JsonArray; readonly step: Schema.JsonObject }> = []
    for (const [index, value] of steps.entries()) {
      const place = Json.at(Json.at(root, "steps"), index)
      const step = yield* Json.object(value, place)
      const input = decoded(step.input)
      if (!Json.isObject(input)) return yield* Json.fail(Json.at(place, "input"), "expected an object as JSON text")
      prompts.push({ messages: yield* Json.arrayAt(input, "prompt", Json.at(place, "input")), step })
      session.model = (yield* Json.optionalStringAt(step, "model_id", place)) ?? session.model
    }
    const longest = prompts.reduce(
      (best, next) => next.messages.length >= best.messages.length ? next : best,
      { messages: [], step: Wire.emptyObject }
    )
    const place: Json.Place = { ...root, field: "prompt" }
    const starts: Array<number> = []
    for (const [index, value] of longest.messages.entries()) {
      starts.push(session.messages.length)
      yield* message(session, value, Json.at(place, index))
    }
    starts.push(session.messages.length)
    const answer = answerOf(decoded(longest.step.output))
    if (answer !== undefined) yield* message(session, { role: "assistant", content: answer }, Json.at(root, "output"))
    for (const { messages, step } of prompts) {
      const index = starts[messages.length]
      const usage = decoded(step.usage)
      if (index === undefined || session.messages[index]?.role !== "assistant" || !Json.isObject(usage)) continue
      const billed = yield* Parts.usageOf(usage, Json.at(root, "usage"))
      Building.billAt(session, index, billed)
    }
  })

const decoded = (value: Schema.Json | undefined): Schema.Json | undefined =>
  typeof value === "string" ? Json.parse(value) : value

/** The content of the last answer: a list of parts, or texts and calls apart, as a stream is noted. */
const answerOf = (output: Schema.Json | undefined): Schema.JsonArray | undefined => {
  if (Json.isArray(output)) return output
  if (!Json.isObject(output)) return undefined
  if (Json.isArray(output.content)) return output.content
  const parts: Array<Schema.Json> = []
  for (const key of ["reasoningParts", "textParts"]) {
    const texts = output[key]
    if (!Json.isArray(texts)) continue
    for (const one of texts) {
      if (Json.isObject(one)) parts.push({ ...one, type: key === "textParts" ? "text" : "reasoning" })
    }
  }
  if (Json.isArray(output.toolCalls)) {
    for (const call of output.toolCalls) if (Json.isObject(call)) parts.push({ ...call, type: "tool-call" })
  }
  return parts.length === 0 ? undefined : parts
}
