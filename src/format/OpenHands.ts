/**
 * Reads events of OpenHands: those of its SDK (version 1), the streams of version 0, and `output.jsonl` of its
 * benchmarks, which is a pool with a conversation in each line.
 *
 * What is read and what is lost is in `docs/formats/openhands.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Blocks from "./parts/anthropic.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Responses from "./parts/responses.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"

const format = "openhands"

const kinds = new Set([
  "SystemPromptEvent",
  "MessageEvent",
  "ActionEvent",
  "ObservationEvent",
  "AgentErrorEvent",
  "UserRejectObservation",
  "Condensation",
  "CondensationRequest",
  "CondensationSummaryEvent",
  "ConversationStateUpdateEvent",
  "PauseEvent"
])

const isEvent = (value: Schema.Json | undefined): boolean => {
  // In version 0 an action and what came of it may stand in a pair.
  if (Json.isArray(value)) return value.length === 2 && isEvent(value[0])
  if (!Json.isObject(value)) return false
  if (typeof value.kind === "string") return kinds.has(value.kind) && typeof value.source === "string"
  return typeof value.source === "string" && value.timestamp !== undefined && value.uuid === undefined &&
    (typeof value.action === "string" || typeof value.observation === "string")
}

const isTask = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  Json.isObject(value) && value.instance_id !== undefined && (Json.isArray(value.history) || value.history === null)

/**
 * Reads events of OpenHands.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    const value = first[0]
    if (isTask(value)) return "a task with an instance_id and a history"
    if (kind === "lines") return first.some(isEvent) ? "events with a source" : undefined
    return Json.isArray(value) && value.slice(0, 20).some(isEvent) ? "a list of events with a source" : undefined
  },
  split: (value) => isTask(value) ? [value] : undefined,
  start: (file, why) => start(file, why)
}

const start = (file: string, why: string): Reader.Parse => {
  const session = Wire.builder(file, format, why)
  const noticed = Findings.tally()
  // The answer that is open: calls of one response are events of their own, before or between the results.
  let response: { readonly id: string; readonly parts: Array<Prompt.AssistantMessagePart> } | undefined
  // A result names its action; ids of calls are used again, so that an open one may be named twice.
  const calls = new Map<string, { readonly id: string; readonly name: string }>()
  const open = new Map<string, string>()
  const answered = new Set<string>()

  const answering = (id: string | undefined, line: number): Array<Prompt.AssistantMessagePart> => {
    if (id !== undefined && response?.id === id) return response.parts
    const parts: Array<Prompt.AssistantMessagePart> = []
    response = { id: id ?? "", parts }
    session.push(Message.assistant(parts), line)
    return parts
  }

  /** The id of a call: the wire's own, unless a call with the same id has no result yet. */
  const openCall = (action: string, id: string, name: string): string => {
    const before = open.get(id)
    const own = before === undefined || answered.has(before) ? id : `${id}#${action}`
    open.set(id, action)
    calls.set(action, { id: own, name })
    return own
  }

  const answer = (
    action: string | undefined,
    id: string | undefined,
    name: string | undefined,
    content: Schema.Json,
    failed: boolean,
    line: number
  ) => {
    const key = action ?? (id === undefined ? undefined : open.get(id))
    const call = key === undefined ? undefined : calls.get(key)
    if (key !== undefined) answered.add(key)
    const result = Message.result(call?.id ?? id ?? action ?? "", call?.name ?? name ?? "", content, failed)
    session.push(Message.tool([result]), line)
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Version 1
  // -------------------------------------------------------------------------------------------------------------------

  const event = (wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      const kind = yield* Json.stringAt(wire, "kind", place)
      const { line } = place
      switch (kind) {
        case "SystemPromptEvent": {
          for (const key of ["system_prompt", "dynamic_context"]) {
            const prompt = wire[key]
            if (prompt === undefined || prompt === null) continue
            const text = typeof prompt === "string"
              ? prompt
              : yield* Json.stringAt(yield* Json.object(prompt, Json.at(place, key)), "text", Json.at(place, key))
            session.push(Message.system(text), line)
          }
          return
        }
        case "MessageEvent": {
          const message = yield* Json.objectAt(wire, "llm_message", place)
          const within = Json.at(Json.at(place, "llm_message"), "content")
          const parts = yield* contentParts(message.content, within)
          if (wire.source === "agent") {
            const own = answering(yield* Json.optionalStringAt(wire, "llm_response_id", place), line)
            own.push(...(yield* reasoningParts(message, Json.at(place, "llm_message"))), ...parts)
            return
          }
          session.push(Message.user(parts, wire.source === "user" ? undefined : "hook"), line)
          if (Json.isArray(wire.extended_content) && wire.extended_content.length > 0) {
            const added = yield* contentParts(wire.extended_content, Json.at(place, "extended_content"))
            session.push(Message.user(added, "runtime-context"), line)
          }
          return
        }
        case "ActionEvent": {
          const action = yield* Json.stringAt(wire, "id", place)
          const call = yield* Json.objectAt(wire, "tool_call", place)
          const at = Json.at(place, "tool_call")
          const name = yield* Json.stringAt(wire, "tool_name", place)
          const id = yield* Json.stringAt(wire, "tool_call_id", place)
          const text = yield* Json.stringAt(call, "arguments", at)
          const parts = answering(yield* Json.optionalStringAt(wire, "llm_response_id", place), line)
          parts.push(...(yield* reasoningParts(wire, place)))
          if (Json.isArray(wire.thought)) parts.push(...(yield* contentParts(wire.thought, Json.at(place, "thought"))))
          parts.push(Message.callOfText(openCall(action, id, name), name, text))
          return
        }
        case "ObservationEvent":
        case "UserRejectObservation":
        case "AgentErrorEvent": {
          const action = yield* Json.optionalStringAt(wire, "action_id", place)
          const id = yield* Json.optionalStringAt(wire, "tool_call_id", place)
          const name = yield* Json.optionalStringAt(wire, "tool_name", place)
          if (kind === "ObservationEvent") {
            const observation = yield* Json.objectAt(wire, "observation", place)
            const { failed, value } = yield* observed(observation, Json.at(place, "observation"))
            answer(action, id, name, value, failed, line)
          } else {
            const key = kind === "AgentErrorEvent" ? "error" : "rejection_reason"
            answer(action, id, name, (yield* Json.optionalStringAt(wire, key, place)) ?? "", true, line)
          }
          return
        }
        case "Condensation": {
          const forgotten = Json.isArray(wire.forgotten_event_ids) ? wire.forgotten_event_ids.length : 0
          const summary = yield* Json.optionalStringAt(wire, "summary", place)
          condensed(summary, forgotten, line)
          return
        }
      }
      if (!kinds.has(kind)) noticed.add("unknown-event", line, kind)
    })

  // The events that were forgotten stay: the session is read whole.
  const condensed = (summary: string | undefined, forgotten: number, line: number) => {
    response = undefined
    const text = summary === undefined || summary === "" ? `Context condensed: ${forgotten} events forgotten` : summary
    session.push(Message.user([Message.text(text)], "context-summary"), line)
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Version 0
  // -------------------------------------------------------------------------------------------------------------------

  const early = (wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    typeof wire.action === "string" ? action(wire, wire.action, place) : observation(wire, place)

  const action = (wire: Schema.JsonObject, kind: string, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      const { line } = place
      const within = Json.at(place, "args")
      const args = Json.isObject(wire.args) ? wire.args : Wire.emptyObject
      const key = keyOf(wire.id, place)
      switch (kind) {
        case "system":
          session.push(Message.system(yield* Json.stringAt(args, "content", within)), line)
          return
        case "message": {
          const text = yield* Json.stringAt(args, "content", within)
          const parts: Array<Prompt.TextPart | Prompt.FilePart> = [Message.text(text)]
          if (Json.isArray(args.image_urls)) {
            for (const url of args.image_urls) if (typeof url === "string") parts.push(Message.file("image/*", url))
          }
          if (wire.source === "user") session.push(Message.user(parts), line)
          else answering(undefined, line).push(...parts)
          return
        }
        case "condensation": {
          const forgotten = Json.isArray(args.forgotten_event_ids)
            ? args.forgotten_event_ids.length
            : typeof args.forgotten_events_start_id === "number" && typeof args.forgotten_events_end_id === "number"
            ? args.forgotten_events_end_id - args.forgotten_events_start_id + 1
            : 0
          condensed(yield* Json.optionalStringAt(args, "summary", within), forgotten, line)
          return
        }
        case "change_agent_state":
        case "condensation_request":
        case "recall":
        case "null":
          return
      }
      const note = wire.tool_call_metadata
      if (!Json.isObject(note)) {
        const { thought, ...params } = args
        const parts = answering(undefined, line)
        if (typeof thought === "string" && thought !== "") parts.push(Message.text(thought))
        // What a person or the runtime did has no answer of the model.
        parts.push(Message.call(openCall(key, `action:${key}`, kind), kind, params))
        return
      }
      const at = Json.at(place, "tool_call_metadata")
      const id = yield* Json.stringAt(note, "tool_call_id", at)
      const name = yield* Json.stringAt(note, "function_name", at)
      const answered = Json.isObject(note.model_response) ? note.model_response : Wire.emptyObject
      const choice = Json.isArray(answered.choices) ? answered.choices[0] : undefined
      const message = Json.isObject(choice) && Json.isObject(choice.message) ? choice.message : Wire.emptyObject
      const given = typeof answered.id === "string" ? answered.id : undefined
      const first = given === undefined || response?.id !== given
      const parts = answering(given, line)
      if (first) {
        parts.push(...(yield* reasoningParts(message, at)))
        const text = typeof message.content === "string" ? message.content : args.thought
        if (typeof text === "string" && text !== "") parts.push(Message.text(text))
        if (typeof answered.model === "string") session.model = answered.model
        if (Json.isObject(answered.usage)) {
          const usageAt = Json.at(Json.at(at, "model_response"), "usage")
          session.bill(Usage.read(answered.usage, usageAt, Usage.chat), line)
        }
      }
      const call = callsOf(message).find((call) => call.id === id)
      const { thought: _thought, ...params } = args
      parts.push(
        call === undefined
          ? Message.call(openCall(key, id, name), name, params)
          : Message.callOfText(openCall(key, id, name), name, call.text)
      )
    })

  const observation = (wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      const kind = yield* Json.stringAt(wire, "observation", place)
      const text = (yield* Json.optionalStringAt(wire, "content", place)) ?? ""
      if (kind === "agent_state_changed" || kind === "null") return
      if (kind === "recall") {
        if (text !== "") session.push(Message.user([Message.text(text)], "runtime-context"), place.line)
        return
      }
      const note = Json.isObject(wire.tool_call_metadata) ? wire.tool_call_metadata : Wire.emptyObject
      const id = typeof note.tool_call_id === "string" ? note.tool_call_id : undefined
      const name = typeof note.function_name === "string" ? note.function_name : undefined
      const cause = typeof wire.cause === "number" || typeof wire.cause === "string" ? String(wire.cause) : undefined
      if (id === undefined && (cause === undefined || !calls.has(cause))) {
        session.push(Message.user([Message.text(text)], "hook"), place.line)
        return
      }
      answer(cause !== undefined && calls.has(cause) ? cause : undefined, id, name, text, kind === "error", place.line)
    })

  const one = (value: Schema.Json, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      if (Json.isArray(value)) {
        for (const [index, half] of value.entries()) yield* one(half, Json.at(place, index))
        return
      }
      const wire = yield* Json.object(value, place)
      yield* (wire.kind === undefined ? early(wire, place) : event(wire, place))
    })

  return {
    record: (value, line) =>
      Result.gen(function*() {
        const root: Json.Place = { file, line, field: "" }
        if (isTask(value)) {
          const history = Json.isArray(value.history) ? value.history : []
          for (const [index, item] of history.entries()) yield* one(item, Json.at(Json.at(root, "history"), index))
          return
        }
        if (!Json.isArray(value)) return yield* one(value, root)
        for (const [index, item] of value.entries()) yield* one(item, Json.at(root, index))
      }),
    end: () => {
      session.findings.push(
        ...noticed.findings((_, count, what) => `${count} events of the unknown kind ${JSON.stringify(what)} left out`)
      )
      return Result.succeed(session.end())
    }
  }
}

const keyOf = (id: Schema.Json | undefined, place: Json.Place): string =>
  typeof id === "number" || typeof id === "string" ? String(id) : `${place.line}${place.field}`

/** Texts and images of a message; an image part may hold several URLs. */
const contentParts = (
  content: Schema.Json | undefined,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.TextPart | Prompt.FilePart>> =>
  Result.gen(function*() {
    if (typeof content === "string") return [Message.text(content)]
    const parts: Array<Prompt.TextPart | Prompt.FilePart> = []
    for (const [index, value] of (yield* Json.blocks(content, place)).entries()) {
      const within = Json.at(place, index)
      const block = yield* Json.object(value, within)
      if (block.type === "text" || block.type === undefined) {
        parts.push(Message.text(yield* Json.stringAt(block, "text", within)))
      } else if (block.type === "image") {
        for (const [position, url] of (yield* Json.arrayAt(block, "image_urls", within)).entries()) {
          parts.push(Message.file("image/*", yield* Json.string(url, Json.at(Json.at(within, "image_urls"), position))))
        }
      } else parts.push(Message.opaque(block))
    }
    return parts
  })

/** Reasoning of an answer: blocks that Anthropic signed, an item of OpenAI's, or a text. */
const reasoningParts = (
  wire: Schema.JsonObject,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.AssistantMessagePart>> =>
  Result.gen(function*() {
    const parts: Array<Prompt.AssistantMessagePart> = []
    // The text of the blocks is that of the reasoning beside them.
    if (Json.isArray(wire.thinking_blocks) && wire.thinking_blocks.length > 0) {
      for (const [index, block] of wire.thinking_blocks.entries()) {
        parts.push(yield* Blocks.assistantPart(block, Json.at(Json.at(place, "thinking_blocks"), index)))
      }
      return parts
    }
    if (Json.isObject(wire.responses_reasoning_item)) {
      const at = Json.at(place, "responses_reasoning_item")
      const { content, summary, ...item } = wire.responses_reasoning_item
      // The SDK keeps the texts of an item as texts.
      const spelled = { ...item, type: "reasoning", content: spell(content), summary: spell(summary) }
      const read = yield* Responses.item(spelled, at, () => "")
      return read.kind === "assistant" ? read.parts : parts
    }
    const text = yield* Json.optionalStringAt(wire, "reasoning_content", place)
    return text === undefined || text === "" ? parts : [Message.reasoning(text)]
  })

const spell = (texts: Schema.Json | undefined): Schema.Json =>
  Json.isArray(texts) ? texts.map((text) => typeof text === "string" ? { text } : text) : null

/** What the model is shown of an observation: its content, in older versions an output, an error and a screenshot. */
const observed = (
  wire: Schema.JsonObject,
  place: Json.Place
): Json.Read<{ readonly value: Schema.Json; readonly failed: boolean }> =>
  Result.gen(function*() {
    const failed = wire.is_error === true || (typeof wire.error === "string" && wire.error !== "") ||
      wire.error === true
    if (wire.content !== undefined && wire.content !== null) {
      const blocks: Array<Schema.JsonObject> = []
      for (const part of yield* contentParts(wire.content, Json.at(place, "content"))) {
        if (part.type === "text") blocks.push(Message.resultText(part.text))
        else {blocks.push(
            Message.resultImage(part.mediaType, part.data instanceof URL ? part.data.href : String(part.data))
          )}
      }
      return { value: Message.resultOf(blocks), failed }
    }
    const texts = [wire.output, wire.error].flatMap((text) => typeof text === "string" && text !== "" ? [text] : [])
    if (wire.output === undefined && wire.error === undefined) {
      const { kind: _kind, ...rest } = wire
      return { value: JSON.stringify(rest), failed }
    }
    const blocks = texts.length === 0 ? [] : [Message.resultText(texts.join("\n"))]
    if (typeof wire.screenshot_data === "string") blocks.push(Message.resultImage("image/png", wire.screenshot_data))
    return { value: Message.resultOf(blocks), failed }
  })

/** The calls of a response of the chat API, as ids and the text of their arguments. */
const callsOf = (message: Schema.JsonObject): ReadonlyArray<{ readonly id: string; readonly text: string }> => {
  const calls: Array<{ readonly id: string; readonly text: string }> = []
  if (!Json.isArray(message.tool_calls)) return calls
  for (const call of message.tool_calls) {
    if (!Json.isObject(call) || typeof call.id !== "string" || !Json.isObject(call.function)) continue
    if (typeof call.function.arguments === "string") calls.push({ id: call.id, text: call.function.arguments })
  }
  return calls
}
