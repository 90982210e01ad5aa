/** Reads messages of OpenAI's chat completions, which harnesses keep among notes of their own. */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../../Marks.ts"
import type * as Session from "../Session.ts"
import * as Building from "./building.ts"
import * as Ids from "./ids.ts"
import * as Json from "./json.ts"
import * as Message from "./message.ts"
import * as Usage from "./usage.ts"
import * as Wire from "./wire.ts"

const format = "openai-chat"

/** A call of the older kind, which has no id on the wire. */
export interface FunctionCall {
  readonly id: string
  readonly name: string
  answered: boolean
}

/** Reads one message, adds it and what was billed for it; `time` is when it was written, where the file says. */
export const push = (
  session: Building.Building,
  functions: Array<FunctionCall>,
  value: Schema.Json,
  place: Json.Place,
  time?: number
): Json.Read<void> =>
  Result.map(message(value, place, session, functions), (message) => {
    Building.push(session, message, place.line, time)
    const usage = usageOf(value, place)
    if (usage !== undefined) Building.bill(session, usage, place.line)
  })

const message = (
  value: Schema.Json,
  place: Json.Place,
  session: Building.Building,
  functions: Array<FunctionCall>
): Json.Read<Prompt.Message> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const role = yield* Json.stringAt(wire, "role", place)
    switch (role) {
      case "system":
      case "developer": {
        const { content, shape } = yield* systemContent(wire.content, Json.at(place, "content"))
        const system = Wire.annotate(Message.system(content), format, { content: shape })
        return finish(role === "developer" ? Wire.annotate(system, "openai", { role }) : system, wire, systemFields)
      }
      case "user":
        return finish(Message.user(yield* userParts(wire.content, Json.at(place, "content"))), wire, systemFields)
      case "assistant": {
        const parts = yield* assistantParts(wire, place, session, functions)
        return finish(Message.assistant(parts), wire, assistantFields)
      }
      case "tool": {
        const id = yield* Json.stringAt(wire, "tool_call_id", place)
        const given = yield* Json.optionalStringAt(wire, "name", place)
        const content = yield* resultContent(wire.content, Json.at(place, "content"))
        return finish(Message.tool([Message.result(id, given ?? "", content)]), wire, toolFields)
      }
      case "function": {
        const name = yield* Json.stringAt(wire, "name", place)
        const content = yield* resultContent(wire.content, Json.at(place, "content"))
        const call = functions.findLast((call) => !call.answered && call.name === name)
        if (call !== undefined) call.answered = true
        const id = call?.id ?? functionId(session.messages.length)
        const result = Wire.annotate(Message.result(id, name, content), format, { legacy: true })
        return finish(Message.tool([result]), wire, toolFields)
      }
    }
    return yield* Json.fail(
      Json.at(place, "role"),
      `unknown role ${JSON.stringify(role)}, expected system, developer, user, assistant, tool or function`
    )
  })

/** The id of a call that has none on the wire, from the position of its message. */
const functionId = (position: number): string => Ids.make("function_call", position)

const systemFields: ReadonlySet<string> = new Set(["role", "content", "metadata"])
const assistantFields: ReadonlySet<string> = new Set([
  "role",
  "content",
  "metadata",
  "reasoning_content",
  "refusal",
  "tool_calls",
  "function_call"
])
const toolFields: ReadonlySet<string> = new Set(["role", "content", "metadata", "tool_call_id", "name"])

/** Puts the marks and the fields without a place onto a message. */
const finish = <A extends Prompt.Message>(
  message: A,
  wire: Schema.JsonObject,
  held: ReadonlySet<string>
): A => {
  const { marks, rest } = marksOf(wire.metadata)
  const fields = { ...Wire.fieldsOf(wire, held), ...(rest === undefined ? undefined : { metadata: rest }) }
  const noted = Object.keys(fields).length === 0 ? message : Wire.annotate(message, format, { fields })
  return marks === undefined ? noted : Marks.set(noted, marks)
}

const marksOf = (
  metadata: Schema.Json | undefined
): { readonly marks?: Marks.Marks; readonly rest?: Schema.Json } => {
  if (!Json.isObject(metadata)) return metadata === undefined || metadata === null ? {} : { rest: metadata }
  const { ephemeral, pinned, source, ...rest } = metadata
  const marks: Marks.Marks = {
    ...(typeof source === "string" ? { source } : undefined),
    ...(ephemeral === true ? { ephemeral } : undefined),
    ...(pinned === true ? { pinned } : undefined)
  }
  return {
    ...(Object.keys(marks).length === 0 ? undefined : { marks }),
    ...(Object.keys(rest).length === 0 ? undefined : { rest })
  }
}

/** Several parts are put together with an empty line between them; `shape` keeps them where they were more than text. */
const systemContent = (
  content: Schema.Json | undefined,
  place: Json.Place
): Json.Read<{ readonly content: string; readonly shape: Schema.Json | undefined }> =>
  Result.gen(function*() {
    if (typeof content === "string") return { content, shape: undefined }
    const parts = yield* Json.blocks(content, place)
    const texts: Array<string> = []
    let plain = parts.length === 1
    for (const [index, value] of parts.entries()) {
      const within = Json.at(place, index)
      const part = yield* Json.object(value, within)
      texts.push(yield* Json.stringAt(part, "text", within))
      if (Wire.fieldsOf(part, textFields) !== undefined) plain = false
    }
    return { content: texts.join("\n\n"), shape: plain ? undefined : parts }
  })

const textFields: ReadonlySet<string> = new Set(["type", "text"])

const userParts = (
  content: Schema.Json | undefined,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.UserMessagePart>> =>
  typeof content === "string" ? Result.succeed([Message.text(content)]) : Json.eachBlock(content, place, userPart)

/** A part that is a text; what stands beside the text is kept. */
const textPart = (wire: Schema.JsonObject, place: Json.Place): Json.Read<Prompt.TextPart> =>
  Result.map(
    Json.stringAt(wire, "text", place),
    (text) => Wire.annotate(Message.text(text), format, { fields: Wire.fieldsOf(wire, textFields) })
  )

const userPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.UserMessagePart> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const type = yield* Json.stringAt(wire, "type", place)
    if (type === "text") return yield* textPart(wire, place)
    const part = yield* filePart(wire, type, place)
    return part === undefined
      ? Message.opaque(wire)
      : Wire.annotate(part, format, { fields: Wire.fieldsOf(wire, new Set(["type", type])) })
  })

/** A part with data of its own; `undefined` where it only names a stored file, or says more than a file part can. */
const filePart = (
  wire: Schema.JsonObject,
  type: string,
  place: Json.Place
): Json.Read<Prompt.FilePart | undefined> =>
  Result.gen(function*() {
    const within = Json.at(place, type)
    if (type === "image_url") {
      // Some clients give the URL alone.
      if (typeof wire.image_url === "string") return Message.file("image/*", wire.image_url)
      const image = yield* Json.objectAt(wire, "image_url", place)
      const url = yield* Json.stringAt(image, "url", within)
      if (Wire.fieldsOf(image, imageFields) !== undefined) return undefined
      const detail = yield* Json.optionalStringAt(image, "detail", within)
      return Wire.annotate(Message.file("image/*", url), "openai", { imageDetail: detail })
    }
    if (type === "input_audio") {
      const audio = yield* Json.objectAt(wire, "input_audio", place)
      const data = yield* Json.stringAt(audio, "data", within)
      const name = yield* Json.stringAt(audio, "format", within)
      return Wire.fieldsOf(audio, audioFields) === undefined ? Message.file(`audio/${name}`, data) : undefined
    }
    if (type === "file") {
      const file = yield* Json.objectAt(wire, "file", place)
      const data = yield* Json.optionalStringAt(file, "file_data", within)
      const name = yield* Json.optionalStringAt(file, "filename", within)
      return data === undefined || Wire.fieldsOf(file, fileFields) !== undefined
        ? undefined
        : Message.file("application/octet-stream", data, name)
    }
    return undefined
  })

const imageFields: ReadonlySet<string> = new Set(["url", "detail"])
const audioFields: ReadonlySet<string> = new Set(["data", "format"])
const fileFields: ReadonlySet<string> = new Set(["file_data", "filename"])

const assistantParts = (
  wire: Schema.JsonObject,
  place: Json.Place,
  session: Building.Building,
  functions: Array<FunctionCall>
): Json.Read<ReadonlyArray<Prompt.AssistantMessagePart>> =>
  Result.gen(function*() {
    const parts: Array<Prompt.AssistantMessagePart> = []
    const reasoning = yield* Json.optionalStringAt(wire, "reasoning_content", place)
    if (reasoning !== undefined) parts.push(Message.reasoning(reasoning))
    const { content } = wire
    if (typeof content === "string") {
      parts.push(Message.text(content))
    } else if (content !== undefined && content !== null) {
      parts.push(...yield* Json.eachBlock(content, Json.at(place, "content"), answerPart))
    }
    const refusal = yield* Json.optionalStringAt(wire, "refusal", place)
    if (refusal !== undefined) {
      const part = Wire.annotate(Message.text(refusal), "openai", { refusal: true })
      parts.push(Wire.annotate(part, format, { beside: true }))
    }
    if (wire.tool_calls !== undefined && wire.tool_calls !== null) {
      const within = Json.at(place, "tool_calls")
      for (const [index, value] of (yield* Json.arrayAt(wire, "tool_calls", place)).entries()) {
        parts.push(yield* callPart(value, Json.at(within, index)))
      }
    }
    if (wire.function_call !== undefined && wire.function_call !== null) {
      const within = Json.at(place, "function_call")
      const call = yield* Json.objectAt(wire, "function_call", place)
      const id = functionId(session.messages.length)
      const name = yield* Json.stringAt(call, "name", within)
      const part = yield* functionPart(call, id, within)
      functions.push({ id, name, answered: false })
      parts.push(Wire.annotate(part, format, { legacy: true }))
    }
    return parts
  })

const answerPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.TextPart> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const type = yield* Json.stringAt(wire, "type", place)
    if (type === "text") return yield* textPart(wire, place)
    if (type === "refusal") {
      return Wire.annotate(Message.text(yield* Json.stringAt(wire, "refusal", place)), "openai", { refusal: true })
    }
    return Message.opaque(wire)
  })

const callFields: ReadonlySet<string> = new Set(["id", "type", "function", "custom"])

const callPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.ToolCallPart> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const id = yield* Json.stringAt(wire, "id", place)
    const type = yield* Json.optionalStringAt(wire, "type", place)
    const fields = Wire.fieldsOf(wire, callFields)
    if (type === "custom") {
      const custom = yield* Json.objectAt(wire, "custom", place)
      const within = Json.at(place, "custom")
      const name = yield* Json.stringAt(custom, "name", within)
      const call = Message.call(id, name, yield* Json.stringAt(custom, "input", within))
      return Wire.annotate(Wire.annotate(call, "openai", { custom: true }), format, { fields })
    }
    if (type !== undefined && type !== "function") {
      return yield* Json.fail(
        Json.at(place, "type"),
        `unknown kind of call ${JSON.stringify(type)}, expected function or custom`
      )
    }
    const called = yield* Json.objectAt(wire, "function", place)
    return Wire.annotate(yield* functionPart(called, id, Json.at(place, "function")), format, { fields })
  })

const functionPart = (called: Schema.JsonObject, id: string, place: Json.Place): Json.Read<Prompt.ToolCallPart> =>
  Result.gen(function*() {
    const name = yield* Json.stringAt(called, "name", place)
    if (Json.isObject(called.arguments)) return Message.call(id, name, called.arguments)
    const text = yield* Json.stringAt(called, "arguments", place)
    return Wire.callOfText(format, Message.callOfText(id, name, text), text)
  })

const resultBlock = (value: Schema.Json, place: Json.Place): Json.Read<Schema.JsonObject> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    const type = yield* Json.stringAt(block, "type", place)
    if (type === "text") yield* Json.stringAt(block, "text", place)
    return block
  })

/** The content of a result: a string, or parts; a part with more than its text is kept whole. */
const resultContent = (content: Schema.Json | undefined, place: Json.Place): Json.Read<Schema.Json> =>
  Result.gen(function*() {
    if (content === undefined || content === null) return ""
    if (typeof content === "string") return content
    const blocks = yield* Json.eachBlock(content, place, resultBlock)
    const only = blocks.length === 1 ? blocks[0] : undefined
    return only !== undefined && Wire.fieldsOf(only, textFields) !== undefined ? blocks : Message.resultOf(blocks)
  })

/** The usage beside a message or in a body, or that of the response that a harness keeps beside a message. */
export const usageOf = (value: Schema.Json, place: Json.Place): Json.Read<Session.Usage> | undefined => {
  if (!Json.isObject(value)) return undefined
  if (Json.isObject(value.usage)) return Usage.read(value.usage, Json.at(place, "usage"), Usage.chat)
  const response = Json.isObject(value.extra) ? value.extra.response : undefined
  return Json.isObject(response) && Json.isObject(response.usage)
    ? Usage.read(response.usage, Json.at(Json.at(Json.at(place, "extra"), "response"), "usage"), Usage.chat)
    : undefined
}

/** A call of a text mode, which stands in the text of an answer on the wire. */
export const textCall = (id: string, name: string, command: string): Schema.JsonObject => ({
  id,
  type: "function",
  function: { name, arguments: { command } }
})
