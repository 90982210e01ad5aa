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
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

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
  const session = Wire.builder(file, format, why)
  const noticed = Findings.tally()

  const message = (value: Schema.Json, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      const wire = yield* Json.object(value, place)
      const role = yield* Json.stringAt(wire, "role", place)
      if (role === "tool") return yield* toolMessage(wire, place)
      if (role !== "system" && role !== "user" && role !== "assistant" && role !== "data") {
        return yield* Json.fail(
          Json.at(place, "role"),
          `unknown role ${JSON.stringify(role)}, expected system, user, assistant or tool`
        )
      }
      if (role === "data") {
        noticed.add("not-sent", place.line, "data")
        return
      }
      if (role === "assistant") return yield* assistantMessage(wire, place)
      const { at, parts } = yield* contentOf(wire, place)
      if (role === "system") {
        const texts = parts.map((part) => typeof part.text === "string" ? part.text : "")
        session.push(Message.system(texts.join("\n\n")), place.line)
        return
      }
      const own: Array<Prompt.UserMessagePart> = []
      for (const [index, part] of parts.entries()) {
        const read = yield* sharedPart(part, Json.at(at, index))
        if (read !== undefined) own.push(read)
      }
      session.push(Message.user(own), place.line)
    })

  /** The parts of a message: those of a UI message, or its content. */
  const contentOf = (
    wire: Schema.JsonObject,
    place: Json.Place
  ): Json.Read<{ readonly parts: ReadonlyArray<Schema.JsonObject>; readonly at: Json.Place }> =>
    Result.gen(function*() {
      const key = wire.parts !== undefined && wire.parts !== null ? "parts" : "content"
      const at = Json.at(place, key)
      const content = wire[key]
      const parts: Array<Schema.JsonObject> = []
      if (typeof content === "string") {
        if (content !== "" || wire.role !== "assistant") parts.push({ type: "text", text: content })
      } else {
        for (const [index, part] of (yield* Json.blocks(content, at)).entries()) {
          parts.push(yield* Json.object(part, Json.at(at, index)))
        }
      }
      // Version 4 keeps the calls beside the text; with parts they stand in both.
      if (key === "content" && Json.isArray(wire.toolInvocations)) {
        for (const toolInvocation of wire.toolInvocations) parts.unshift({ type: "tool-invocation", toolInvocation })
      }
      return { parts, at }
    })

  /** A part that any message may hold; `undefined` for what is never sent to a model. */
  const sharedPart = (
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
        noticed.add("not-sent", place.line, type.startsWith("data-") ? "data" : type)
        return undefined
      }
      return Message.opaque(wire)
    })

  const assistantMessage = (wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      let parts: Array<Prompt.AssistantMessagePart> = []
      let results: Array<Prompt.ToolResultPart> = []
      let pushed = 0
      const flush = () => {
        if (parts.length > 0 || results.length > 0) {
          session.push(Message.assistant(parts), place.line)
          if (results.length > 0) session.push(Message.tool(results), place.line)
          pushed++
        }
        parts = []
        results = []
      }
      const content = yield* contentOf(wire, place)
      for (const [index, part] of content.parts.entries()) {
        const at = Json.at(content.at, index)
        const type = yield* Json.stringAt(part, "type", at)
        const metadata = part.providerOptions ?? part.providerMetadata ?? part.callProviderMetadata
        if (type === "step-start") {
          flush()
        } else if (type === "reasoning") {
          parts.push(AiSdk.withProviders(yield* reasoningPart(part, at), metadata))
        } else if (type === "redacted-reasoning") {
          const redactedData = yield* Json.stringAt(part, "data", at)
          parts.push(Message.reasoning("", { anthropic: { info: { type: "redacted_thinking", redactedData } } }))
        } else if (type === "tool-call") {
          parts.push(AiSdk.withProviders(yield* callPart(part, at), metadata))
        } else if (type === "tool-result") {
          // In an answer stands what ran at the provider.
          parts.push(AiSdk.withProviders(yield* resultPart(part, at, true), metadata))
        } else if (type === "tool-invocation") {
          const call = yield* Json.objectAt(part, "toolInvocation", at)
          yield* invocation(call, Json.at(at, "toolInvocation"), parts, results, undefined)
        } else if (type === "dynamic-tool" || (type.startsWith("tool-") && part.toolCallId !== undefined)) {
          yield* invocation(part, at, parts, results, metadata)
        } else {
          const read = yield* sharedPart(part, at)
          if (read !== undefined) parts.push(read)
        }
      }
      flush()
      // An answer that says nothing is one all the same.
      if (pushed === 0) session.push(Message.assistant([]), place.line)
    })

  const toolMessage = (wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      const within = Json.at(place, "content")
      const results: Array<Prompt.ToolResultPart> = []
      for (const [index, value] of (yield* Json.array(wire.content, within)).entries()) {
        const at = Json.at(within, index)
        const part = yield* Json.object(value, at)
        const type = yield* Json.stringAt(part, "type", at)
        if (type === "tool-approval-response") {
          noticed.add("not-sent", place.line, type)
          continue
        }
        if (type !== "tool-result") {
          return yield* Json.fail(
            Json.at(at, "type"),
            `a part of type ${JSON.stringify(type)} stands in a tool message`
          )
        }
        results.push(
          AiSdk.withProviders(yield* resultPart(part, at, false), part.providerOptions ?? part.providerMetadata)
        )
      }
      if (results.length > 0) session.push(Message.tool(results), place.line)
    })

  /** A call and its result in one part, of a UI message. */
  const invocation = (
    wire: Schema.JsonObject,
    place: Json.Place,
    parts: Array<Prompt.AssistantMessagePart>,
    results: Array<Prompt.ToolResultPart>,
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
      parts.push(AiSdk.withProviders(Message.call(id, name, input, {}, atProvider), metadata))
      const result = outcome(wire, state)
      if (result === undefined) return
      const part = Message.result(id, name, result.value, result.failed, {}, atProvider)
      if (atProvider) parts.push(part)
      else results.push(part)
    })

  const callPart = (wire: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.ToolCallPart> =>
    Result.gen(function*() {
      const id = yield* Json.stringAt(wire, "toolCallId", place)
      const name = yield* Json.stringAt(wire, "toolName", place)
      const input = wire.input ?? wire.args ?? {}
      const call = typeof input === "string" ? Message.callOfText(id, name, input) : Message.call(id, name, input)
      return wire.providerExecuted === true ? { ...call, providerExecuted: true } : call
    })

  const resultPart = (
    wire: Schema.JsonObject,
    place: Json.Place,
    atProvider: boolean
  ): Json.Read<Prompt.ToolResultPart> =>
    Result.gen(function*() {
      const id = yield* Json.stringAt(wire, "toolCallId", place)
      const given = yield* Json.optionalStringAt(wire, "toolName", place)
      const name = given ?? session.nameOf(id)
      const { failed, value } = Json.isObject(wire.output) && typeof wire.output.type === "string"
        ? yield* outputOf(wire.output, Json.at(place, "output"))
        : { value: AiSdk.textOf(wire.output ?? wire.result), failed: wire.isError === true }
      return Message.result(id, name, value, failed, {}, atProvider)
    })

  /** The steps of a run: the longest prompt repeats those before it, and the last answer stands beside it. */
  const run = (steps: Schema.JsonArray, root: Json.Place): Json.Read<void> =>
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
        yield* message(value, Json.at(place, index))
      }
      starts.push(session.messages.length)
      const answer = answerOf(decoded(longest.step.output))
      if (answer !== undefined) yield* message({ role: "assistant", content: answer }, Json.at(root, "output"))
      for (const { messages, step } of prompts) {
        const index = starts[messages.length]
        const usage = decoded(step.usage)
        if (index === undefined || session.messages[index]?.role !== "assistant" || !Json.isObject(usage)) continue
        const billed = yield* usageOf(usage, Json.at(root, "usage"))
        if (Object.keys(billed).length > 0) session.usage.set(index, billed)
      }
    })

  return {
    record: (value, line) =>
      Result.gen(function*() {
        const root: Json.Place = { file, line, field: "" }
        if (Json.isObject(value) && Json.isArray(value.steps)) return yield* run(value.steps, root)
        const { key, list } = messagesOf(value)
        const place = key === "" ? root : Json.at(root, key)
        if (Json.isObject(value) && typeof value.system === "string") session.push(Message.system(value.system), line)
        for (const [index, one] of (yield* Json.array(list, place)).entries()) {
          yield* message(one, Json.at(place, index))
        }
      }),
    end: () => {
      session.findings.push(
        ...noticed.findings((_, count, what) => `${count} parts of type ${what} left out: no model is sent them`)
      )
      return Result.succeed(session.end())
    }
  }
}

const reasoningPart = (wire: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.ReasoningPart> =>
  Result.gen(function*() {
    // Version 4 calls the text of a UI part after its type, and keeps the signature beside it.
    const text = yield* Json.stringAt(wire, wire.text === undefined ? "reasoning" : "text", place)
    const signature = yield* Json.optionalStringAt(wire, "signature", place)
    return Message.reasoning(
      text,
      signature === undefined ? {} : { anthropic: { info: { type: "thinking", signature } } }
    )
  })

interface Outcome {
  readonly value: Schema.Json
  readonly failed: boolean
}

/** What came of a call, by the state of its part; `undefined` where nothing came yet. */
const outcome = (wire: Schema.JsonObject, state: string): Outcome | undefined => {
  switch (state) {
    case "output-available":
      return { value: AiSdk.textOf(wire.output), failed: false }
    case "result":
      return { value: AiSdk.textOf(wire.result), failed: false }
    case "output-error":
      return { value: AiSdk.textOf(wire.errorText ?? wire.output), failed: true }
    case "output-denied": {
      const reason = Json.isObject(wire.approval) ? wire.approval.reason : undefined
      return { value: typeof reason === "string" ? reason : denied, failed: true }
    }
  }
  return undefined
}

const denied = "Tool execution denied."

const outputOf = (output: Schema.JsonObject, place: Json.Place): Json.Read<Outcome> =>
  Result.gen(function*() {
    switch (yield* Json.stringAt(output, "type", place)) {
      case "text":
      case "json":
        return { value: AiSdk.textOf(output.value), failed: false }
      case "error-text":
      case "error-json":
        return { value: AiSdk.textOf(output.value), failed: true }
      case "execution-denied":
        return { value: typeof output.reason === "string" ? output.reason : denied, failed: true }
      case "content": {
        const within = Json.at(place, "value")
        const blocks: Array<Schema.JsonObject> = []
        for (const [index, value] of (yield* Json.array(output.value, within)).entries()) {
          blocks.push(resultBlock(yield* Json.object(value, Json.at(within, index))))
        }
        return { value: Message.resultOf(blocks), failed: false }
      }
    }
    // A tool may give back an object with a type of its own.
    return { value: JSON.stringify(output), failed: false }
  })

const resultBlock = (wire: Schema.JsonObject): Schema.JsonObject => {
  if (wire.type === "text" && typeof wire.text === "string") return Message.resultText(wire.text)
  const data = wire.data ?? wire.url
  const image = wire.type === "image-data" || wire.type === "image-url" ||
    (typeof wire.mediaType === "string" && wire.mediaType.startsWith("image/"))
  return image && typeof data === "string"
    ? Message.resultImage(typeof wire.mediaType === "string" ? wire.mediaType : "image/*", data)
    : wire
}

const decoded = (value: Schema.Json | undefined): Schema.Json | undefined =>
  typeof value === "string" ? Message.parse(value) : value

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

/**
 * Version 6 tells the parts of the input apart. Before it the input holds the cached part or does not, by the provider,
 * so that what was not cached is known only where nothing was.
 */
const usageOf = (usage: Schema.JsonObject, place: Json.Place): Json.Read<Session.Usage> =>
  Result.gen(function*() {
    const read = yield* Usage.read(usage, place, {
      input: Json.isObject(usage.inputTokens)
        ? ["inputTokens.noCache"]
        : Json.isObject(usage.inputTokenDetails)
        ? ["inputTokenDetails.noCacheTokens"]
        : ["inputTokens"],
      inside: [],
      cacheRead: Json.isObject(usage.inputTokens)
        ? ["inputTokens.cacheRead"]
        : ["inputTokenDetails.cacheReadTokens", "cachedInputTokens"],
      cacheWrite: Json.isObject(usage.inputTokens)
        ? ["inputTokens.cacheWrite"]
        : ["inputTokenDetails.cacheWriteTokens"],
      output: Json.isObject(usage.outputTokens) ? ["outputTokens.total"] : ["outputTokens"]
    })
    const told = Json.isObject(usage.inputTokens) || Json.isObject(usage.inputTokenDetails)
    if (told || (read.cacheRead ?? 0) === 0) return read
    const { fresh: _fresh, ...known } = read
    return known
  })
