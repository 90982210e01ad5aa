/**
 * Reads a rollout of Codex (`~/.codex/sessions/…/rollout-*.jsonl`), one JSON object in each line.
 *
 * What is read and what is lost is in `docs/formats/codex.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Responses from "./parts/responses.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const lineTypes = new Set(["session_meta", "turn_context", "response_item", "event_msg", "compacted"])

// How texts begin that Codex puts into the user role, and whose they are.
const injected: ReadonlyArray<readonly [start: string, source: string]> = [
  ["<environment_context>", "runtime-context"],
  ["<user_instructions>", "runtime-context"],
  ["# AGENTS.md instructions", "runtime-context"],
  ["<permissions instructions>", "runtime-context"],
  ["<collaboration_mode>", "runtime-context"],
  ["<skill>", "runtime-context"],
  ["<model_switch>", "runtime-context"],
  ["<turn_aborted>", "hook"],
  ["<subagent_notification>", "hook"]
]

/** Whose a text is that begins like an injected one. */
const sourceOf = (text: string): string | undefined => {
  const begun = text.trimStart()
  return injected.find(([start]) => begun.startsWith(start))?.[1]
}

const typeOf = (entry: Schema.JsonObject): string => typeof entry.type === "string" ? entry.type : ""

/**
 * Reads Codex rollouts.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format: "codex",
  detect: ({ first, kind }) => {
    if (kind !== "lines") return undefined
    for (const [index, record] of first.entries()) {
      if (!Json.isObject(record)) continue
      if (typeof record.type === "string" && lineTypes.has(record.type) && Json.isObject(record.payload)) {
        return `record ${index + 1} has "type": "${record.type}" and a payload`
      }
    }
    // Before the autumn of 2025 the items stood in the lines themselves, after a line about the session.
    const head = first[0]
    return Json.isObject(head) && typeof head.id === "string" && typeof head.timestamp === "string" &&
        head.type === undefined && ("instructions" in head || "git" in head)
      ? "record 1 is the head of a rollout without payloads (id, timestamp, instructions)"
      : undefined
  },
  start: (file, why) => start(file, why)
}

const start = (file: string, why: string): Reader.Parse => {
  const messages: Array<Prompt.Message> = []
  const lines: Array<number> = []
  const usage = new Map<number, Session.Usage>()
  const names = new Map<string, string>()
  const noticed = Findings.tally()
  const findings: Array<Session.Finding> = []
  // User messages that begin like an injected text, until it is known whether a person typed them.
  const suspects: Array<{ readonly index: number; readonly text: string; readonly source: string }> = []
  const typed = new Set<string>()
  const shown = new Set<string>()
  let model: string | undefined
  let response: { readonly index: number; readonly parts: Array<Prompt.AssistantMessagePart> } | undefined
  let answered = false
  let total: string | undefined
  // The head of the file is its own; a second one is that of the thread it was forked from, whose items follow it.
  let head: { readonly time: number } | undefined
  let copied: string | undefined

  const nameOf = (id: string) => names.get(id) ?? ""

  const add = (message: Prompt.Message, line: number): number => {
    lines.push(line)
    return messages.push(message) - 1
  }

  const addParts = (parts: ReadonlyArray<Prompt.AssistantMessagePart>, line: number) => {
    if (response === undefined) {
      const all: Array<Prompt.AssistantMessagePart> = []
      response = { index: add(Message.assistant(all), line), parts: all }
      answered = true
    }
    for (const part of parts) {
      if (part.type === "tool-call") names.set(part.id, part.name)
      response.parts.push(part)
    }
  }

  const addUser = (
    role: "system" | "developer" | "user",
    parts: ReadonlyArray<Prompt.TextPart | Prompt.FilePart>,
    line: number
  ) => {
    response = undefined
    const first = parts[0]
    const text = first?.type === "text" ? first.text : ""
    for (const part of parts) if (part.type === "text") shown.add(part.text)
    if (role === "user") {
      const index = add(Message.user(parts), line)
      const source = sourceOf(text)
      if (source !== undefined) suspects.push({ index, text, source })
    } else if (answered) {
      // A system message here would move to the head and change the prefix of every request.
      add(Message.user(parts, "runtime-context"), line)
    } else {
      add(Message.system(parts.map((part) => part.type === "text" ? part.text : "").join("\n\n")), line)
    }
  }

  const readItem = (item: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      if (item.type === "ghost_snapshot") {
        noticed.add("ghost-snapshot", place.line)
        return
      }
      const read = yield* Responses.item(item, place, nameOf, messages)
      switch (read.kind) {
        case "assistant":
          addParts(read.parts, place.line)
          return
        case "result":
          response = undefined
          add(Message.tool([read.part]), place.line)
          return
        case "message":
          addUser(read.role, read.parts, place.line)
      }
    })

  const readMeta = (payload: Schema.JsonObject, place: Json.Place, time: number): Json.Read<void> =>
    Result.gen(function*() {
      if (head !== undefined) {
        copied ??= typeof payload.id === "string" ? payload.id : "another thread"
        return
      }
      head = { time }
      if (!Json.isObject(payload.base_instructions)) return
      const within = Json.at(place, "base_instructions")
      const text = yield* Json.optionalStringAt(payload.base_instructions, "text", within)
      if (text !== undefined) add(Message.system(text), place.line)
    })

  // The compaction is an entry of its own; what was there before it stays. Of the replacement only what is new is
  // read: the rest repeats messages of this file.
  const readCompaction = (payload: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
    Result.gen(function*() {
      response = undefined
      const summary = (yield* Json.optionalStringAt(payload, "message", place)) ?? ""
      const replacement = payload.replacement_history === undefined || payload.replacement_history === null
        ? []
        : yield* Json.arrayAt(payload, "replacement_history", place)
      const opaque: Array<Prompt.TextPart> = []
      const fresh: Array<Prompt.UserMessage> = []
      for (const [index, value] of replacement.entries()) {
        const within = Json.at(Json.at(place, "replacement_history"), index)
        const item = yield* Json.object(value, within)
        if (item.type !== "message") {
          opaque.push(Message.opaque(item))
          continue
        }
        const parts = yield* Responses.contentParts(item.content, Json.at(within, "content"))
        const unseen = parts.filter((part) => part.type === "text" && !shown.has(part.text))
        if (unseen.length === 0 || item.role === "assistant") continue
        for (const part of unseen) if (part.type === "text") shown.add(part.text)
        fresh.push(Message.user(unseen, item.role === "user" ? "context-summary" : "runtime-context"))
      }
      const text = summary !== "" ? summary : `Context compacted: replaced by ${replacement.length} items`
      add(Message.user([Message.text(text), ...opaque], "context-summary"), place.line)
      for (const message of fresh) add(message, place.line)
    })

  const readTokens = (payload: Schema.JsonObject, place: Json.Place, time: number): Json.Read<void> =>
    Result.gen(function*() {
      if (!Json.isObject(payload.info)) return
      const within = Json.at(place, "info")
      const sum = yield* Json.objectAt(payload.info, "total_token_usage", within)
      const last = yield* Json.objectAt(payload.info, "last_token_usage", within)
      // The event is written again when nothing was asked; only a new total is a new response.
      const now = `${JSON.stringify(sum.input_tokens)} ${JSON.stringify(sum.output_tokens)}`
      if (now === total) return
      total = now
      const billed = yield* Responses.usage(last, Json.at(within, "last_token_usage"))
      const input = (billed.fresh ?? 0) + (billed.cacheRead ?? 0)
      // After a compaction all counts but the total are zero: an estimate, not a response.
      if (input === 0 && (billed.output ?? 0) === 0) return
      if (copied !== undefined && head !== undefined && time <= head.time + 1000) {
        noticed.add("copied", place.line)
        response = undefined
        return
      }
      const index = response?.index ?? lastResponse(messages)
      response = undefined
      if (index === undefined || usage.has(index)) noticed.add("usage-without-response", place.line)
      else usage.set(index, billed)
    })

  const record = (value: Schema.Json, line: number) =>
    Result.gen(function*() {
      const root: Json.Place = { file, line, field: "" }
      const entry = yield* Json.object(value, root)
      const time = typeof entry.timestamp === "string" ? Date.parse(entry.timestamp) : 0
      if (!Json.isObject(entry.payload)) return yield* readBare(entry, root, time)
      const { payload } = entry
      const place = Json.at(root, "payload")
      switch (entry.type) {
        case "session_meta":
          return yield* readMeta(payload, place, time)
        case "turn_context":
          model = (yield* Json.optionalStringAt(payload, "model", place)) ?? model
          return
        case "response_item":
          return yield* readItem(payload, place)
        case "compacted":
          return yield* readCompaction(payload, place)
        case "event_msg":
          if (payload.type === "token_count") return yield* readTokens(payload, place, time)
          if (payload.type === "user_message" && typeof payload.message === "string") {
            if (sourceOf(payload.message) !== undefined) typed.add(payload.message)
          }
          return
        default:
          noticed.add("unknown-line", line, typeOf(entry))
      }
    })

  /** A line of a rollout from before the autumn of 2025: an item, the head, or a note on the state. */
  const readBare = (entry: Schema.JsonObject, place: Json.Place, time: number): Json.Read<void> => {
    if (entry.payload !== undefined || lineTypes.has(typeOf(entry))) {
      return Result.map(Json.objectAt(entry, "payload", place), () => undefined)
    }
    if (typeof entry.record_type === "string") return Result.succeed(undefined)
    if (entry.type === undefined && entry.role === undefined) {
      if (entry.id === undefined) noticed.add("unknown-line", place.line)
      return readMeta(entry, place, time)
    }
    return readItem(entry, place)
  }

  const end = () => {
    for (const { index, source, text } of suspects) {
      const message = messages[index]
      if (message !== undefined && !typed.has(text)) messages[index] = Marks.set(message, { source })
    }
    const say = (kind: string, count: number, what: string): string => {
      switch (kind) {
        case "copied":
          return `${count} responses were made and billed in ${
            copied ?? "another thread"
          }, from which this one was copied`
        case "usage-without-response":
          return `${count} usage records belong to no response in the file`
        case "ghost-snapshot":
          return `${count} snapshots of the working tree left out: the model never sees them`
        default:
          return `${count} lines of the unknown type ${JSON.stringify(what)} left out`
      }
    }
    findings.push(...noticed.findings(say), ...Findings.pairs(messages, (index) => lines[index] ?? 0))
    return Result.succeed<Session.Session>({
      file,
      format: "codex",
      why,
      model,
      messages,
      usage,
      findings: Findings.ordered(findings)
    })
  }

  return { record, end }
}

const lastResponse = (messages: ReadonlyArray<Prompt.Message>): number | undefined => {
  const index = messages.findLastIndex((message) => message.role === "assistant")
  return index < 0 ? undefined : index
}
