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
import * as Building from "./parts/building.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Responses from "./parts/responses.ts"
import * as Time from "./parts/time.ts"
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

/** A user message that begins like an injected text, until it is known whether a person typed it. */
interface Suspect {
  readonly index: number
  readonly text: string
  readonly source: string
}

/** What was read so far. */
interface Reading {
  readonly session: Building.Building
  readonly suspects: Array<Suspect>
  /** The messages of people, by number: where turns begin. */
  readonly asked: Array<number>
  /** Texts that an event says a person typed. */
  readonly typed: Set<string>
  /** Texts that messages of this file say, each with the first that does. */
  readonly shown: Map<string, number>
  response: { readonly index: number; readonly parts: Array<Prompt.AssistantMessagePart> } | undefined
  answered: boolean
  total: string | undefined
  /** The head of the file is its own; a second one is that of the thread it was forked from, whose items follow it. */
  head: { readonly time: number } | undefined
  copied: string | undefined
}

/** Where a line stands, and when it was written. */
interface At extends Json.Place {
  readonly time: number | undefined
}

const start = (file: string, why: string): Reader.Parse => {
  const self: Reading = {
    session: Building.make(file, "codex", why),
    suspects: [],
    asked: [],
    typed: new Set(),
    shown: new Map(),
    response: undefined,
    answered: false,
    total: undefined,
    head: undefined,
    copied: undefined
  }
  return {
    record: (value, line) => record(self, value, { file, line, field: "" }),
    end: () => Result.succeed(end(self))
  }
}

const record = (self: Reading, value: Schema.Json, root: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const entry = yield* Json.object(value, root)
    const time = Time.ofText(entry.timestamp)
    if (!Json.isObject(entry.payload)) return yield* readBare(self, entry, { ...root, time })
    const { payload } = entry
    const place: At = { ...Json.at(root, "payload"), time }
    switch (entry.type) {
      case "session_meta":
        return yield* readMeta(self, payload, place)
      case "turn_context":
        self.session.model = (yield* Json.optionalStringAt(payload, "model", place)) ?? self.session.model
        return
      case "response_item":
        return yield* readItem(self, payload, place)
      case "compacted":
        return yield* readCompaction(self, payload, place)
      case "event_msg":
        if (payload.type === "token_count") return yield* readTokens(self, payload, place)
        if (payload.type === "thread_rolled_back") return yield* readRollback(self, payload, place)
        if (payload.type === "user_message" && typeof payload.message === "string") {
          if (sourceOf(payload.message) !== undefined) self.typed.add(payload.message)
        }
        return
      default:
        Building.notice(self.session, "unknown-line", root.line, typeOf(entry))
    }
  })

/** A line of a rollout from before the autumn of 2025: an item, the head, or a note on the state. */
const readBare = (self: Reading, entry: Schema.JsonObject, place: At): Json.Read<void> => {
  if (entry.payload !== undefined || lineTypes.has(typeOf(entry))) {
    return Result.map(Json.objectAt(entry, "payload", place), () => undefined)
  }
  if (typeof entry.record_type === "string") return Result.succeed(undefined)
  if (entry.type === undefined && entry.role === undefined) {
    if (entry.id === undefined) Building.notice(self.session, "unknown-line", place.line)
    return readMeta(self, entry, place)
  }
  return readItem(self, entry, place)
}

const readMeta = (self: Reading, payload: Schema.JsonObject, place: At): Json.Read<void> =>
  Result.gen(function*() {
    if (self.head !== undefined) {
      self.copied ??= typeof payload.id === "string" ? payload.id : "another thread"
      return
    }
    self.head = { time: place.time ?? 0 }
    if (!Json.isObject(payload.base_instructions)) return
    const within = Json.at(place, "base_instructions")
    const text = yield* Json.optionalStringAt(payload.base_instructions, "text", within)
    if (text !== undefined) Building.push(self.session, Message.system(text), place.line, place.time)
  })

// ---------------------------------------------------------------------------------------------------------------------
// Items
// ---------------------------------------------------------------------------------------------------------------------

const readItem = (self: Reading, item: Schema.JsonObject, place: At): Json.Read<void> =>
  Result.gen(function*() {
    const { session } = self
    if (item.type === "ghost_snapshot") return Building.notice(session, "ghost-snapshot", place.line)
    const read = yield* Responses.item(item, place, session.messages)
    switch (read.kind) {
      case "assistant":
        return addParts(self, read.parts, place)
      case "provisional":
        return Building.notice(session, "provisional", place.line)
      case "result":
        self.response = undefined
        Building.push(session, Message.tool([read.part]), place.line, place.time)
        return
      case "message":
        addUser(self, read.role, read.parts, place)
    }
  })

const addParts = (self: Reading, parts: ReadonlyArray<Prompt.AssistantMessagePart>, place: At): void => {
  if (self.response === undefined) {
    const all: Array<Prompt.AssistantMessagePart> = []
    self.response = { index: Building.push(self.session, Message.assistant(all), place.line, place.time), parts: all }
    self.answered = true
  }
  self.response.parts.push(...parts)
}

const show = (self: Reading, text: string, index: number): void => {
  if (!self.shown.has(text)) self.shown.set(text, index)
}

const addUser = (
  self: Reading,
  role: "system" | "developer" | "user",
  parts: ReadonlyArray<Prompt.TextPart | Prompt.FilePart>,
  place: At
): void => {
  const { session } = self
  self.response = undefined
  const first = parts[0]
  const text = first?.type === "text" ? first.text : ""
  const add = (message: Prompt.Message): number => Building.push(session, message, place.line, place.time)
  let index: number
  if (role === "user") {
    index = add(Message.user(parts))
    const source = sourceOf(text)
    if (source === undefined) self.asked.push(index)
    else self.suspects.push({ index, text, source })
  } else if (self.answered) {
    // A system message here would move to the head and change the prefix of every request.
    index = add(Message.user(parts, "runtime-context"))
  } else {
    index = add(Message.system(parts.map((part) => part.type === "text" ? part.text : "").join("\n\n")))
  }
  for (const part of parts) if (part.type === "text") show(self, part.text, index)
}

// The compaction is an entry of its own; what was there before it stays. Of the replacement only what is new is
// read: the rest repeats messages of this file.
const readCompaction = (self: Reading, payload: Schema.JsonObject, place: At): Json.Read<void> =>
  Result.gen(function*() {
    const { session, shown } = self
    self.response = undefined
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
      const next = session.messages.length + 1 + fresh.length
      for (const part of unseen) if (part.type === "text") show(self, part.text, next)
      fresh.push(Message.user(unseen, item.role === "user" ? "context-summary" : "runtime-context"))
    }
    const text = summary !== "" ? summary : `Context compacted: replaced by ${replacement.length} items`
    const message = Message.user([Message.text(text), ...opaque], "context-summary")
    for (const one of [message, ...fresh]) Building.push(session, one, place.line, place.time)
  })

// ---------------------------------------------------------------------------------------------------------------------
// Events
// ---------------------------------------------------------------------------------------------------------------------

/** The first message of the last turns, of which there may be fewer; it and what follows is no longer in `self`. */
const undo = (self: Reading, turns: number): number | undefined => {
  const notTyped: Array<Suspect> = []
  let cut: number | undefined
  for (let left = turns; left > 0;) {
    const asked = self.asked.at(-1) ?? -1
    const suspect = self.suspects.at(-1)
    if (suspect !== undefined && suspect.index > asked) {
      self.suspects.pop()
      if (!self.typed.has(suspect.text)) {
        notTyped.push(suspect)
        continue
      }
      cut = suspect.index
    } else if (asked >= 0) {
      self.asked.pop()
      cut = asked
    } else break
    left--
  }
  // What the machine put before the first of the turns stays.
  const from = cut ?? 0
  self.suspects.push(...notTyped.filter(({ index }) => cut === undefined || index < from).toReversed())
  return cut
}

/**
 * Turns that the person undid: the model is not sent them any more. A turn begins with a message of a person; where fewer
 * are left, all of them were undone, and what stands before the first stays.
 */
const readRollback = (self: Reading, payload: Schema.JsonObject, place: At): Json.Read<void> =>
  Result.map(Json.optionalCountAt(payload, "num_turns", place), (turns = 0) => {
    const { session, shown } = self
    const cut = undo(self, turns)
    if (cut === undefined) return
    for (let index = cut; index < session.messages.length; index++) {
      Building.notice(session, "rolled-back", place.line)
      const message = session.messages[index]
      if (message?.role !== "user") continue
      for (const part of message.content) {
        if (part.type === "text" && (shown.get(part.text) ?? 0) >= cut) shown.delete(part.text)
      }
    }
    Building.cut(session, cut)
    self.answered = session.messages.some(({ role }) => role === "assistant")
    self.response = undefined
  })

const readTokens = (self: Reading, payload: Schema.JsonObject, place: At): Json.Read<void> =>
  Result.gen(function*() {
    const { copied, head, session } = self
    if (!Json.isObject(payload.info)) return
    const within = Json.at(place, "info")
    const sum = yield* Json.objectAt(payload.info, "total_token_usage", within)
    const last = yield* Json.objectAt(payload.info, "last_token_usage", within)
    // The event is written again when nothing was asked; only a new total is a new response.
    const now = `${JSON.stringify(sum.input_tokens)} ${JSON.stringify(sum.output_tokens)}`
    if (now === self.total) return
    self.total = now
    const billed = yield* Responses.usage(last, Json.at(within, "last_token_usage"))
    const input = (billed.fresh ?? 0) + (billed.cacheRead ?? 0)
    // After a compaction all counts but the total are zero: an estimate, not a response.
    if (input === 0 && (billed.output ?? 0) === 0) return
    if (copied !== undefined && head !== undefined && (place.time ?? 0) <= head.time + 1000) {
      Building.notice(session, "copied", place.line)
      self.response = undefined
      return
    }
    const index = self.response?.index ?? session.messages.findLastIndex(({ role }) => role === "assistant")
    self.response = undefined
    if (index < 0 || session.usage.has(index)) Building.notice(session, "usage-without-response", place.line)
    else Building.billAt(session, index, billed)
  })

// ---------------------------------------------------------------------------------------------------------------------
// The end
// ---------------------------------------------------------------------------------------------------------------------

const end = ({ copied, session, suspects, typed }: Reading): Session.Session => {
  for (const { index, source, text } of suspects) {
    const message = session.messages[index]
    if (message !== undefined && !typed.has(text)) session.messages[index] = Marks.set(message, { source })
  }
  return Building.end(session, (kind, count, what) => {
    switch (kind) {
      case "copied":
        return `${count} responses were made and billed in ${
          copied ?? "another thread"
        }, from which this one was copied`
      case "usage-without-response":
        return `${count} usage records belong to no response in the file`
      case "ghost-snapshot":
        return `${count} snapshots of the working tree left out: the model never sees them`
      case "provisional":
        return Findings.provisional(count)
      case "rolled-back":
        return `${count} messages of turns that a person undid left out: the model was sent them only before that`
      default:
        return `${count} lines of the unknown type ${JSON.stringify(what)} left out`
    }
  })
}
