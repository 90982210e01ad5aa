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
import * as Building from "./parts/building.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Responses from "./parts/responses.ts"
import * as Time from "./parts/time.ts"
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

/** What was read so far. */
interface Reading {
  readonly session: Building.Building
  /** The answer that is open: calls of one response are events of their own, before or between the results. */
  response: { readonly id: string; readonly parts: Array<Prompt.AssistantMessagePart> } | undefined
  /** A result names its action; ids of calls are used again, so that an open one may be named twice. */
  readonly calls: Map<string, { readonly id: string; readonly name: string }>
  readonly open: Map<string, string>
  readonly answered: Set<string>
  /** When the event that is being read was written. */
  time: number | undefined
}

const start = (file: string, why: string): Reader.Parse => {
  const self: Reading = {
    session: Building.make(file, format, why),
    response: undefined,
    calls: new Map(),
    open: new Map(),
    answered: new Set(),
    time: undefined
  }
  return {
    record: (value, line) => record(self, value, { file, line, field: "" }),
    end: () =>
      Result.succeed(
        Building.end(
          self.session,
          (_, count, what) => `${count} events of the unknown kind ${JSON.stringify(what)} left out`
        )
      )
  }
}

const record = (self: Reading, value: Schema.Json, root: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    if (isTask(value)) {
      const history = Json.isArray(value.history) ? value.history : []
      for (const [index, item] of history.entries()) yield* one(self, item, Json.at(Json.at(root, "history"), index))
      return
    }
    if (!Json.isArray(value)) return yield* one(self, value, root)
    for (const [index, item] of value.entries()) yield* one(self, item, Json.at(root, index))
  })

const push = (self: Reading, message: Prompt.Message, line: number): void => {
  Building.push(self.session, message, line, self.time)
}

const answering = (self: Reading, id: string | undefined, line: number): Array<Prompt.AssistantMessagePart> => {
  if (id !== undefined && self.response?.id === id) return self.response.parts
  const parts: Array<Prompt.AssistantMessagePart> = []
  self.response = { id: id ?? "", parts }
  push(self, Message.assistant(parts), line)
  return parts
}

/** The id of a call: the wire's own, unless a call with the same id has no result yet. */
const openCall = (self: Reading, action: string, id: string, name: string): string => {
  const before = self.open.get(id)
  const own = before === undefined || self.answered.has(before) ? id : Building.makeId(self.session, id)
  self.open.set(id, action)
  self.calls.set(action, { id: own, name })
  return own
}

const answer = (
  self: Reading,
  action: string | undefined,
  id: string | undefined,
  name: string | undefined,
  content: Schema.Json,
  failed: boolean,
  line: number
): void => {
  const key = action ?? (id === undefined ? undefined : self.open.get(id))
  const call = key === undefined ? undefined : self.calls.get(key)
  if (key !== undefined) self.answered.add(key)
  const own = call?.id ?? id ?? Building.makeId(self.session, name ?? "result")
  const result = Message.result(own, call?.name ?? name ?? "", content, failed)
  push(self, Message.tool([result]), line)
}

// -------------------------------------------------------------------------------------------------------------------
// Version 1
// -------------------------------------------------------------------------------------------------------------------

const event = (self: Reading, wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
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
          push(self, Message.system(text), line)
        }
        return
      }
      case "MessageEvent": {
        const message = yield* Json.objectAt(wire, "llm_message", place)
        const within = Json.at(Json.at(place, "llm_message"), "content")
        const parts = yield* contentParts(message.content, within)
        if (wire.source === "agent") {
          const own = answering(self, yield* Json.optionalStringAt(wire, "llm_response_id", place), line)
          own.push(...(yield* reasoningParts(message, Json.at(place, "llm_message"))), ...parts)
          return
        }
        push(self, Message.user(parts, wire.source === "user" ? undefined : "hook"), line)
        if (Json.isArray(wire.extended_content) && wire.extended_content.length > 0) {
          const added = yield* contentParts(wire.extended_content, Json.at(place, "extended_content"))
          push(self, Message.user(added, "runtime-context"), line)
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
        const parts = answering(self, yield* Json.optionalStringAt(wire, "llm_response_id", place), line)
        parts.push(...(yield* reasoningParts(wire, place)))
        if (Json.isArray(wire.thought)) parts.push(...(yield* contentParts(wire.thought, Json.at(place, "thought"))))
        parts.push(Message.callOfText(openCall(self, action, id, name), name, text))
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
          answer(self, action, id, name, value, failed, line)
        } else {
          const key = kind === "AgentErrorEvent" ? "error" : "rejection_reason"
          answer(self, action, id, name, (yield* Json.optionalStringAt(wire, key, place)) ?? "", true, line)
        }
        return
      }
      case "Condensation": {
        const forgotten = Json.isArray(wire.forgotten_event_ids) ? wire.forgotten_event_ids.length : 0
        const summary = yield* Json.optionalStringAt(wire, "summary", place)
        condensed(self, summary, forgotten, line)
        return
      }
    }
    if (!kinds.has(kind)) Building.notice(self.session, "unknown-event", line, kind)
  })

// The events that were forgotten stay: the session is read whole.
const condensed = (self: Reading, summary: string | undefined, forgotten: number, line: number): void => {
  self.response = undefined
  const text = summary === undefined || summary === "" ? `Context condensed: ${forgotten} events forgotten` : summary
  push(self, Message.user([Message.text(text)], "context-summary"), line)
}

// -------------------------------------------------------------------------------------------------------------------
// Version 0
// -------------------------------------------------------------------------------------------------------------------

const early = (self: Reading, wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  typeof wire.action === "string" ? action(self, wire, wire.action, place) : observation(self, wire, place)

const action = (self: Reading, wire: Schema.JsonObject, kind: string, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const { line } = place
    const within = Json.at(place, "args")
    const args = Json.isObject(wire.args) ? wire.args : Wire.emptyObject
    const key = keyOf(wire.id, place)
    switch (kind) {
      case "system":
        push(self, Message.system(yield* Json.stringAt(args, "content", within)), line)
        return
      case "message": {
        const text = yield* Json.stringAt(args, "content", within)
        const parts: Array<Prompt.TextPart | Prompt.FilePart> = [Message.text(text)]
        if (Json.isArray(args.image_urls)) {
          for (const url of args.image_urls) if (typeof url === "string") parts.push(Message.file("image/*", url))
        }
        if (wire.source === "user") push(self, Message.user(parts), line)
        else answering(self, undefined, line).push(...parts)
        return
      }
      case "condensation": {
        const forgotten = Json.isArray(args.forgotten_event_ids)
          ? args.forgotten_event_ids.length
          : typeof args.forgotten_events_start_id === "number" && typeof args.forgotten_events_end_id === "number"
          ? args.forgotten_events_end_id - args.forgotten_events_start_id + 1
          : 0
        condensed(self, yield* Json.optionalStringAt(args, "summary", within), forgotten, line)
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
      const parts = answering(self, undefined, line)
      if (typeof thought === "string" && thought !== "") parts.push(Message.text(thought))
      // What a person or the runtime did has no answer of the model.
      parts.push(Message.call(openCall(self, key, Building.makeId(self.session, kind), kind), kind, params))
      return
    }
    const at = Json.at(place, "tool_call_metadata")
    const id = yield* Json.stringAt(note, "tool_call_id", at)
    const name = yield* Json.stringAt(note, "function_name", at)
    const reply = Json.isObject(note.model_response) ? note.model_response : Wire.emptyObject
    const choice = Json.isArray(reply.choices) ? reply.choices[0] : undefined
    const message = Json.isObject(choice) && Json.isObject(choice.message) ? choice.message : Wire.emptyObject
    const given = typeof reply.id === "string" ? reply.id : undefined
    const first = given === undefined || self.response?.id !== given
    const parts = answering(self, given, line)
    if (first) {
      parts.push(...(yield* reasoningParts(message, at)))
      const text = typeof message.content === "string" ? message.content : args.thought
      if (typeof text === "string" && text !== "") parts.push(Message.text(text))
      if (typeof reply.model === "string") self.session.model = reply.model
      if (Json.isObject(reply.usage)) {
        const usageAt = Json.at(Json.at(at, "model_response"), "usage")
        Building.bill(self.session, Usage.read(reply.usage, usageAt, Usage.chat), line)
      }
    }
    const call = callsOf(message).find((call) => call.id === id)
    const { thought: _thought, ...params } = args
    parts.push(
      call === undefined
        ? Message.call(openCall(self, key, id, name), name, params)
        : Message.callOfText(openCall(self, key, id, name), name, call.text)
    )
  })

const observation = (self: Reading, wire: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const kind = yield* Json.stringAt(wire, "observation", place)
    const text = (yield* Json.optionalStringAt(wire, "content", place)) ?? ""
    if (kind === "agent_state_changed" || kind === "null") return
    if (kind === "recall") {
      if (text !== "") push(self, Message.user([Message.text(text)], "runtime-context"), place.line)
      return
    }
    const note = Json.isObject(wire.tool_call_metadata) ? wire.tool_call_metadata : Wire.emptyObject
    const id = typeof note.tool_call_id === "string" ? note.tool_call_id : undefined
    const name = typeof note.function_name === "string" ? note.function_name : undefined
    const cause = typeof wire.cause === "number" || typeof wire.cause === "string" ? String(wire.cause) : undefined
    if (id === undefined && (cause === undefined || !self.calls.has(cause))) {
      push(self, Message.user([Message.text(text)], "hook"), place.line)
      return
    }
    answer(
      self,
      cause !== undefined && self.calls.has(cause) ? cause : undefined,
      id,
      name,
      text,
      kind === "error",
      place.line
    )
  })

const one = (self: Reading, value: Schema.Json, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    if (Json.isArray(value)) {
      for (const [index, half] of value.entries()) yield* one(self, half, Json.at(place, index))
      return
    }
    const wire = yield* Json.object(value, place)
    self.time = Time.ofText(wire.timestamp)
    yield* (wire.kind === undefined ? early(self, wire, place) : event(self, wire, place))
  })

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
      const read = yield* Responses.item(spelled, at)
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
