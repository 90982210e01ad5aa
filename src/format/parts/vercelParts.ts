/** Reads the parts of messages of the Vercel AI SDK that are no plain content: calls, results, reasoning, usage. */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Session from "../Session.ts"
import * as AiSdk from "./aiSdk.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"
import * as Usage from "./usage.ts"

/** The parts of a message: those of a UI message, or its content. */
export const contentOf = (
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

export const callPart = (wire: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.ToolCallPart> =>
  Result.gen(function*() {
    const id = yield* Json.stringAt(wire, "toolCallId", place)
    const name = yield* Json.stringAt(wire, "toolName", place)
    const input = wire.input ?? wire.args ?? {}
    const call = typeof input === "string" ? Message.callOfText(id, name, input) : Message.call(id, name, input)
    return wire.providerExecuted === true ? { ...call, providerExecuted: true } : call
  })

export const resultPart = (
  wire: Schema.JsonObject,
  place: Json.Place,
  atProvider: boolean
): Json.Read<Prompt.ToolResultPart> =>
  Result.gen(function*() {
    const id = yield* Json.stringAt(wire, "toolCallId", place)
    const given = yield* Json.optionalStringAt(wire, "toolName", place)
    const { failed, value } = Json.isObject(wire.output) && typeof wire.output.type === "string"
      ? yield* outputOf(wire.output, Json.at(place, "output"))
      : { value: AiSdk.textOf(wire.output ?? wire.result), failed: wire.isError === true }
    return Message.result(id, given ?? "", value, failed, {}, atProvider)
  })

export const reasoningPart = (wire: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.ReasoningPart> =>
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

/** Whether an output is what the tool had given so far: the call has no result yet. */
export const isProvisional = (wire: Schema.JsonObject): boolean => wire.preliminary === true

/** What came of a call, by the state of its part; `undefined` where nothing came yet. */
export const outcome = (wire: Schema.JsonObject, state: string): Outcome | undefined => {
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

/**
 * Version 6 tells the parts of the input apart. Before it the input holds the cached part or does not, by the provider,
 * so that what was not cached is known only where nothing was.
 */
export const usageOf = (usage: Schema.JsonObject, place: Json.Place): Json.Read<Session.Usage> =>
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
