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
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
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
  const session = Wire.builder(file, format, why)
  const noticed = Findings.tally()

  const message = (value: Schema.Json, place: Json.Place): Json.Read<void> =>
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
      if (role === "user") return yield* user(parts, place)
      if (role === "assistant") return yield* assistant(info, parts, place)
      return yield* Json.fail(Json.at(at, "role"), `unknown role ${JSON.stringify(role)}, expected user or assistant`)
    })

  const user = (
    parts: ReadonlyArray<readonly [Schema.JsonObject, Json.Place]>,
    place: Json.Place
  ): Json.Read<void> =>
    Result.gen(function*() {
      const own: Array<Prompt.UserMessagePart> = []
      const added: Array<Prompt.UserMessagePart> = []
      let compaction = false
      for (const [part, at] of parts) {
        const type = yield* Json.stringAt(part, "type", at)
        if (type === "text") {
          if (part.ignored === true) noticed.add("not-sent", place.line, "ignored text")
          else (part.synthetic === true ? added : own).push(Message.text(yield* Json.stringAt(part, "text", at)))
        } else if (type === "file") {
          const mime = yield* Json.stringAt(part, "mime", at)
          // The client writes a text file or a folder into a text beside it.
          if (mime === "text/plain" || mime === "application/x-directory") noticed.add("not-sent", place.line, mime)
          else own.push(AiSdk.filePart(part.url, mime, part.filename) ?? Message.opaque(part))
        } else if (type === "compaction") {
          compaction = true
        } else if (bookkeeping.has(type)) noticed.add("not-sent", place.line, type)
        else own.push(Message.opaque(part))
      }
      if (compaction) session.push(Message.user([Message.text("Context compacted")], "context-summary"), place.line)
      if (own.length > 0) session.push(Message.user(own), place.line)
      if (added.length > 0) session.push(Message.user(added, "runtime-context"), place.line)
      if (!compaction && own.length + added.length === 0) session.push(Message.user([]), place.line)
    })

  const assistant = (
    info: Schema.JsonObject,
    parts: ReadonlyArray<readonly [Schema.JsonObject, Json.Place]>,
    place: Json.Place
  ): Json.Read<void> =>
    Result.gen(function*() {
      let own: Array<Prompt.AssistantMessagePart> = []
      let results: Array<Prompt.ToolResultPart> = []
      const bills: Array<readonly [Schema.JsonObject, Json.Place]> = []
      const answers: Array<number> = []
      const flush = () => {
        if (own.length === 0 && results.length === 0) return
        answers.push(session.messages.length)
        const answer = Message.assistant(own)
        // A summary is the model's answer, and what it sees of all before from there on.
        session.push(info.summary === true ? Marks.set(answer, { source: "context-summary" }) : answer, place.line)
        if (results.length > 0) session.push(Message.tool(results), place.line)
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
            const { call, result } = yield* tool(part, at)
            own.push(AiSdk.withProviders(call, part.metadata))
            if (result !== undefined) results.push(result)
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
            if (bookkeeping.has(type)) noticed.add("not-sent", place.line, type)
            else own.push(Message.opaque(part))
        }
      }
      flush()
      if (answers.length === 0) {
        answers.push(session.messages.length)
        session.push(Message.assistant([]), place.line)
      }
      session.model = (yield* Json.optionalStringAt(info, "modelID", Json.at(place, "info"))) ?? session.model
      // A message is one call of the model, and its last step repeats the count. Older versions made several steps of one.
      const single = Json.isObject(info.tokens) && bills.length < 2
        ? [[info.tokens, Json.at(Json.at(place, "info"), "tokens")] as const]
        : bills
      for (const [index, [tokens, at]] of single.entries()) {
        const billed = yield* Usage.read(tokens, at, convention)
        const answer = answers[index]
        if (answer !== undefined && Object.keys(billed).length > 0) session.usage.set(answer, billed)
      }
    })

  const tool = (
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
      if (Json.isObject(state.time) && state.time.compacted !== undefined) noticed.add("pruned", place.line)
      const output = yield* Json.stringAt(state, "output", within)
      const images = Json.isArray(state.attachments) ? state.attachments.filter(Json.isObject) : []
      const blocks = images.map((file) =>
        typeof file.mime === "string" && file.mime.startsWith("image/") && typeof file.url === "string"
          ? Message.resultImage(file.mime, file.url)
          : file
      )
      return { call, result: Message.result(id, name, Message.resultOf([Message.resultText(output), ...blocks])) }
    })

  return {
    record: (value, line) =>
      Result.gen(function*() {
        const place: Json.Place = { file, line, field: "" }
        const document = yield* Json.object(value, place)
        const within = Json.at(place, "messages")
        for (const [index, one] of (yield* Json.arrayAt(document, "messages", place)).entries()) {
          yield* message(one, Json.at(within, index))
        }
      }),
    end: () => {
      session.findings.push(...noticed.findings(say))
      return Result.succeed(session.end())
    }
  }
}

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
    : `${count} parts of type ${what} left out: the model is not sent them`
