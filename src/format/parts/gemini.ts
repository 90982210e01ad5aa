/** Reads the parts of Gemini contents, which the recordings of gemini-cli use too. */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./building.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"
import * as Wire from "./wire.ts"

/**
 * The calls of the last turn that have no result yet, and whether the model spoke last. Gives ids to calls that have none,
 * and finds the call of a result that has none: such results belong to the calls of the last turn by name, in order.
 */
export interface Pairing {
  readonly session: Building.Building
  open: Array<{ readonly id: string; readonly name: string }>
}

export const pairing = (session: Building.Building): Pairing => ({ session, open: [] })

/** A turn of the model after one of the user: results without an id belong to its calls. */
export const turn = (self: Pairing): void => {
  self.open = []
}

const callId = (self: Pairing, name: string, given: string | undefined): string => {
  const id = given ?? Building.makeId(self.session, name)
  self.open.push({ id, name })
  return id
}

const resultId = (self: Pairing, name: string, given: string | undefined): string => {
  const index = given === undefined
    ? self.open.findIndex((call) => call.name === name)
    : self.open.findLastIndex((call) => call.id === given)
  const [call] = index < 0 ? [] : self.open.splice(index, 1)
  return call?.id ?? given ?? Building.makeId(self.session, name)
}

/** A text, or the parts of a content; gemini-cli also writes a single part, and texts among parts. */
export const parts = (value: Schema.Json | undefined, place: Json.Place): Json.Read<ReadonlyArray<Schema.JsonObject>> =>
  Result.gen(function*() {
    if (typeof value === "string") return [{ text: value }]
    if (Json.isObject(value)) return [value]
    const all: Array<Schema.JsonObject> = []
    for (const [index, part] of (yield* Json.blocks(value, place)).entries()) {
      all.push(typeof part === "string" ? { text: part } : yield* Json.object(part, Json.at(place, index)))
    }
    return all
  })

/** A signature stands on a part of any kind, and has to come back on the same. */
const signed = <A extends Prompt.Part>(part: A, wire: Schema.JsonObject): A =>
  Wire.annotate(part, "google", {
    thoughtSignature: typeof wire.thoughtSignature === "string" ? wire.thoughtSignature : undefined
  })

const filePart = (wire: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.FilePart | undefined> =>
  Result.gen(function*() {
    if (wire.inlineData !== undefined) {
      const inline = yield* Json.objectAt(wire, "inlineData", place)
      const within = Json.at(place, "inlineData")
      return Message.file(
        yield* Json.stringAt(inline, "mimeType", within),
        yield* Json.stringAt(inline, "data", within)
      )
    }
    if (wire.fileData !== undefined) {
      const stored = yield* Json.objectAt(wire, "fileData", place)
      const within = Json.at(place, "fileData")
      const mediaType = yield* Json.optionalStringAt(stored, "mimeType", within)
      return Message.file(mediaType ?? "application/octet-stream", yield* Json.stringAt(stored, "fileUri", within))
    }
    return undefined
  })

/** The parts of a content of the model. Code that ran at the provider is a call and its result. */
export const assistantParts = (
  wires: ReadonlyArray<Schema.JsonObject>,
  place: Json.Place,
  ids: Pairing
): Json.Read<ReadonlyArray<Prompt.AssistantMessagePart>> =>
  Result.gen(function*() {
    const all: Array<Prompt.AssistantMessagePart> = []
    let code = ""
    for (const [index, wire] of wires.entries()) {
      const within = Json.at(place, index)
      if (wire.text !== undefined) {
        const text = yield* Json.stringAt(wire, "text", within)
        all.push(signed(wire.thought === true ? Message.reasoning(text) : Message.text(text), wire))
      } else if (wire.functionCall !== undefined) {
        all.push(signed(yield* callPart(wire, within, ids), wire))
      } else if (Json.isObject(wire.executableCode)) {
        code = callId(ids, "code_execution", yield* Json.optionalStringAt(wire.executableCode, "id", within))
        all.push(signed(Message.call(code, "code_execution", wire.executableCode, {}, true), wire))
      } else if (Json.isObject(wire.codeExecutionResult)) {
        // A result that has no code before it is an orphan, with an id all the same.
        if (code === "") code = Building.makeId(ids.session, "code_execution")
        const failed = wire.codeExecutionResult.outcome !== "OUTCOME_OK"
        all.push(signed(Message.result(code, "code_execution", wire.codeExecutionResult, failed, {}, true), wire))
      } else {
        all.push(signed((yield* filePart(wire, within)) ?? Message.opaque(wire), wire))
      }
    }
    return all
  })

const callPart = (wire: Schema.JsonObject, place: Json.Place, ids: Pairing): Json.Read<Prompt.ToolCallPart> =>
  Result.gen(function*() {
    const call = yield* Json.objectAt(wire, "functionCall", place)
    const within = Json.at(place, "functionCall")
    const name = yield* Json.stringAt(call, "name", within)
    const id = yield* Json.optionalStringAt(call, "id", within)
    return Message.call(callId(ids, name, id), name, call.args ?? {})
  })

/** The parts of a content of the user, in order: results form tool messages, all else user messages. */
export const userMessages = (
  wires: ReadonlyArray<Schema.JsonObject>,
  place: Json.Place,
  ids: Pairing,
  source?: string
): Json.Read<ReadonlyArray<Prompt.UserMessage | Prompt.ToolMessage>> =>
  Result.gen(function*() {
    const messages: Array<Prompt.UserMessage | Prompt.ToolMessage> = []
    let own: Array<Prompt.UserMessagePart> = []
    let results: Array<Prompt.ToolResultPart> = []
    for (const [index, wire] of wires.entries()) {
      const within = Json.at(place, index)
      if (wire.functionResponse !== undefined) {
        if (own.length > 0) messages.push(Message.user(own, source))
        own = []
        results.push(yield* resultPart(wire, within, ids))
        continue
      }
      if (results.length > 0) messages.push(Message.tool(results))
      results = []
      if (wire.text !== undefined) own.push(Message.text(yield* Json.stringAt(wire, "text", within)))
      else own.push((yield* filePart(wire, within)) ?? Message.opaque(wire))
    }
    if (results.length > 0) messages.push(Message.tool(results))
    // A content without parts is one all the same.
    if (own.length > 0 || messages.length === 0) messages.push(Message.user(own, source))
    return messages
  })

const resultPart = (wire: Schema.JsonObject, place: Json.Place, ids: Pairing): Json.Read<Prompt.ToolResultPart> =>
  Result.gen(function*() {
    const answer = yield* Json.objectAt(wire, "functionResponse", place)
    const within = Json.at(place, "functionResponse")
    const name = yield* Json.stringAt(answer, "name", within)
    const id = resultId(ids, name, yield* Json.optionalStringAt(answer, "id", within))
    const { failed, value } = yield* response(answer, within)
    return Message.result(id, name, value, failed)
  })

const textKeys = ["output", "content", "result", "error"]

/**
 * What a function answered: its one text where that is all there is, else the object as JSON text; images beside it
 * make it blocks. A response of `error` alone is a failure.
 */
export const response = (
  answer: Schema.JsonObject,
  place: Json.Place
): Json.Read<{ readonly value: Schema.Json; readonly failed: boolean }> =>
  Result.gen(function*() {
    const object = answer.response === undefined || answer.response === null
      ? Wire.emptyObject
      : yield* Json.objectAt(answer, "response", place)
    const keys = Object.keys(object)
    const only = keys.length === 1 ? keys[0] : undefined
    const single = only !== undefined && textKeys.includes(only) ? object[only] : undefined
    const text = keys.length === 0 ? "" : typeof single === "string" ? single : JSON.stringify(object)
    const failed = only === "error"
    if (!Json.isArray(answer.parts) || answer.parts.length === 0) return { value: text, failed }
    const blocks: Array<Schema.JsonObject> = text === "" ? [] : [Message.resultText(text)]
    for (const [index, part] of answer.parts.entries()) {
      const within = Json.at(Json.at(place, "parts"), index)
      const wire = yield* Json.object(part, within)
      const inline = wire.inlineData
      blocks.push(
        Json.isObject(inline) && typeof inline.mimeType === "string" && typeof inline.data === "string" &&
          inline.mimeType.startsWith("image/")
          ? Message.resultImage(inline.mimeType, inline.data)
          : wire
      )
    }
    return { value: Message.resultOf(blocks), failed }
  })

/** How texts begin that gemini-cli writes into the user role, and whose they are. */
const injected: ReadonlyArray<readonly [start: string, source: string]> = [
  ["<state_snapshot>", "context-summary"],
  ["<session_context>", "runtime-context"],
  ["This is the Gemini CLI. We are setting up the context for our chat.", "runtime-context"]
]

/** Whose a content of the user is: `undefined` for a person. */
export const sourceOf = (wires: ReadonlyArray<Schema.JsonObject>): string | undefined => {
  const text = wires[0]?.text
  const begun = typeof text === "string" ? text.trimStart() : ""
  return injected.find(([start]) => begun.startsWith(start))?.[1]
}
