/**
 * Reads a session that opencode exported (`opencode export`).
 *
 * What is read and what is lost is in `docs/formats/opencode.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"
import * as AiSdk from "./parts/aiSdk.ts"
import * as Building from "./parts/building.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import * as Usage from "./parts/usage.ts"
import type * as Reader from "./Reader.ts"

const format = "opencode"

// Notes of the client on the state of files, on retries and on who is asked.
const bookkeeping = new Set(["snapshot", "patch", "retry", "agent", "subtask"])

/**
 * Reads exports of opencode.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    const document = first[0]
    if (kind !== "document" || !Json.isObject(document) || !Json.isArray(document.messages)) return undefined
    const head = document.messages[0]
    return Json.isObject(document.info) && Json.isObject(head) && Json.isObject(head.info) && Json.isArray(head.parts)
      ? "a session with an info, and messages with an info and parts"
      : undefined
  },
  start: (file, why) => start(file, why)
}

const start = (file: string, why: string): Reader.Parse => {
  const session = Building.make(file, format, why)
  return {
    record: (value, line) =>
      Result.gen(function*() {
        const place: Json.Place = { file, line, field: "" }
        const document = yield* Json.object(value, place)
        const within = Json.at(place, "messages")
        const messages = yield* Json.arrayAt(document, "messages", place)
        for (const [index, one] of beforeRevert(session, document, messages, line).entries()) {
          yield* message(session, one, Json.at(within, index))
        }
      }),
    end: () => Result.succeed(Building.end(session, say))
  }
}

/**
 * The messages that were not undone. A session that was reverted names the message, and the part of it, from which on it
 * was; they stay in the file until the next prompt.
 */
const beforeRevert = (
  session: Building.Building,
  document: Schema.JsonObject,
  messages: Schema.JsonArray,
  line: number
): Schema.JsonArray => {
  const revert = Json.isObject(document.info) ? document.info.revert : undefined
  if (!Json.isObject(revert) || typeof revert.messageID !== "string") return messages
  const isAt = (message: Schema.Json): message is Schema.JsonObject =>
    Json.isObject(message) && Json.isObject(message.info) && message.info.id === revert.messageID
  const at = messages.findIndex(isAt)
  const message = messages[at]
  if (message === undefined || !isAt(message)) return messages
  const parts = Json.isArray(message.parts) ? message.parts : []
  const cut = parts.findIndex((part) => Json.isObject(part) && part.id === revert.partID)
  const kept = cut > 0 ? [{ ...message, parts: parts.slice(0, cut) }] : []
  for (const _ of messages.slice(at)) Building.notice(session, "reverted", line)
  return [...messages.slice(0, at), ...kept]
}

const message = (session: Building.Building, value: Schema.Json, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const info = yield* Json.objectAt(wire, "info", place)
    const at = Json.at(place, "info")
    const role = yield* Json.stringAt(info, "role", at)
    const within = Json.at(place, "parts")
    const parts: Array<readonly [Schema.JsonObject, Json.Place]> = []
    for (const [index, part] of (yield* Json.arrayAt(wire, "parts", place)).entries()) {
      const partAt = Json.at(within, index)
      parts.push([yield* Json.object(part, partAt), partAt])
    }
    if (role === "user") return yield* user(session, info, parts, place)
    if (role === "assistant") return yield* assistant(session, info, parts, place)
    return yield* Json.fail(Json.at(at, "role"), `unknown role ${JSON.stringify(role)}, expected user or assistant`)
  })

const user = (
  session: Building.Building,
  info: Schema.JsonObject,
  parts: ReadonlyArray<readonly [Schema.JsonObject, Json.Place]>,
  place: Json.Place
): Json.Read<void> =>
  Result.gen(function*() {
    const own: Array<Prompt.UserMessagePart> = []
    const added: Array<Prompt.UserMessagePart> = []
    const time = timeOf(info.time, "created")
    let compaction = false
    for (const [part, at] of parts) {
      const type = yield* Json.stringAt(part, "type", at)
      if (type === "text") {
        if (part.ignored === true) Building.notice(session, "not-sent", place.line, "ignored text")
        else (part.synthetic === true ? added : own).push(Message.text(yield* Json.stringAt(part, "text", at)))
      } else if (type === "file") {
        const mime = yield* Json.stringAt(part, "mime", at)
        // The client writes a text file or a folder into a text beside it.
        if (mime === "text/plain" || mime === "application/x-directory") {
          Building.notice(session, "not-sent", place.line, mime)
        } else own.push(AiSdk.filePart(part.url, mime, part.filename) ?? Message.opaque(part))
      } else if (type === "compaction") {
        compaction = true
      } else if (bookkeeping.has(type)) {
        Building.notice(session, "not-sent", place.line, type)
      } else own.push(Message.opaque(part))
    }
    if (compaction) {
      Building.push(session, Message.user([Message.text("Context compacted")], "context-summary"), place.line, time)
    }
    if (own.length > 0) {
      Building.push(session, Message.user(own), place.line, time)
    }
    if (added.length > 0) {
      Building.push(session, Message.user(added, "runtime-context"), place.line, time)
    }
    if (!compaction && own.length + added.length === 0) {
      Building.push(session, Message.user([]), place.line, time)
    }
  })

const assistant = (
  session: Building.Building,
  info: Schema.JsonObject,
  parts: ReadonlyArray<readonly [Schema.JsonObject, Json.Place]>,
  place: Json.Place
): Json.Read<void> =>
  Result.gen(function*() {
    let own: Array<Prompt.AssistantMessagePart> = []
    let results: Array<Prompt.ToolResultPart> = []
    const created = timeOf(info.time, "created")
    let done: number | undefined
    const bills: Array<readonly [Schema.JsonObject, Json.Place]> = []
    const answers: Array<number> = []
    const flush = () => {
      if (own.length === 0 && results.length === 0) return
      answers.push(session.messages.length)
      const answer = Message.assistant(own)
      // A summary is the model's answer, and what it sees of all before from there on.
      Building.push(
        session,
        info.summary === true ? Marks.set(answer, { source: "context-summary" }) : answer,
        place.line,
        created
      )
      if (results.length > 0) Building.push(session, Message.tool(results), place.line, done)
      done = undefined
      own = []
      results = []
    }
    for (const [part, at] of parts) {
      const type = yield* Json.stringAt(part, "type", at)
      switch (type) {
        case "text":
          own.push(AiSdk.withProviders(Message.text(yield* Json.stringAt(part, "text", at)), part.metadata))
          break
        case "reasoning":
          own.push(AiSdk.withProviders(Message.reasoning(yield* Json.stringAt(part, "text", at)), part.metadata))
          break
        case "tool": {
          const { call, result } = yield* tool(session, part, at)
          own.push(AiSdk.withProviders(call, part.metadata))
          if (result !== undefined) {
            results.push(result)
            done = Json.isObject(part.state) ? timeOf(part.state.time, "end") ?? done : done
          }
          break
        }
        case "file":
          own.push(AiSdk.filePart(part.url, part.mime, part.filename) ?? Message.opaque(part))
          break
        case "step-start":
          flush()
          break
        case "step-finish":
          if (Json.isObject(part.tokens)) bills.push([part.tokens, Json.at(at, "tokens")])
          flush()
          break
        default:
          if (bookkeeping.has(type)) Building.notice(session, "not-sent", place.line, type)
          else own.push(Message.opaque(part))
      }
    }
    flush()
    if (answers.length === 0) {
      answers.push(session.messages.length)
      Building.push(session, Message.assistant([]), place.line, created)
    }
    session.model = (yield* Json.optionalStringAt(info, "modelID", Json.at(place, "info"))) ?? session.model
    // A message is one call of the model, and its last step repeats the count. Older versions made several steps of one.
    const single = Json.isObject(info.tokens) && bills.length < 2
      ? [[info.tokens, Json.at(Json.at(place, "info"), "tokens")] as const]
      : bills
    for (const [index, [tokens, at]] of single.entries()) {
      const billed = yield* Usage.read(tokens, at, convention)
      const answer = answers[index]
      if (answer !== undefined) Building.billAt(session, answer, billed)
    }
  })

const tool = (
  session: Building.Building,
  part: Schema.JsonObject,
  place: Json.Place
): Json.Read<{ readonly call: Prompt.ToolCallPart; readonly result: Prompt.ToolResultPart | undefined }> =>
  Result.gen(function*() {
    const id = yield* Json.stringAt(part, "callID", place)
    const name = yield* Json.stringAt(part, "tool", place)
    const state = yield* Json.objectAt(part, "state", place)
    const within = Json.at(place, "state")
    const status = yield* Json.stringAt(state, "status", within)
    const call = Message.call(id, name, state.input ?? {})
    if (status === "error") {
      return { call, result: Message.result(id, name, yield* Json.stringAt(state, "error", within), true) }
    }
    if (status !== "completed") return { call, result: undefined }
    if (Json.isObject(state.time) && state.time.compacted !== undefined) Building.notice(session, "pruned", place.line)
    const output = yield* Json.stringAt(state, "output", within)
    const images = Json.isArray(state.attachments) ? state.attachments.filter(Json.isObject) : []
    const blocks = images.map((file) =>
      typeof file.mime === "string" && file.mime.startsWith("image/") && typeof file.url === "string"
        ? Message.resultImage(file.mime, file.url)
        : file
    )
    return { call, result: Message.result(id, name, Message.resultOf([Message.resultText(output), ...blocks])) }
  })

const timeOf = (time: Schema.Json | undefined, key: string): number | undefined =>
  Json.isObject(time) ? Time.ofMillis(time[key]) : undefined

/** The input leaves out the cache, and the output leaves out the reasoning. */
const convention: Usage.Convention = {
  input: ["input"],
  inside: [],
  cacheRead: ["cache.read"],
  cacheWrite: ["cache.write"],
  output: ["output"],
  besideOutput: ["reasoning"]
}

const say = (kind: string, count: number, what: string): string =>
  kind === "pruned"
    ? `${count} results had been cleared from the request by the client; they are read whole`
    : kind === "reverted"
    ? `${count} messages that a person took back left out`
    : `${count} parts of type ${what} left out: the model is not sent them`
