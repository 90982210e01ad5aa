/**
 * Reads a session of Claude Code (`~/.claude/projects/<project>/<session>.jsonl`), one JSON object in each line.
 *
 * What is read and what is lost is in `docs/formats/claude-code.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"
import * as Anthropic from "./parts/anthropic.ts"
import * as Building from "./parts/building.ts"
import * as Branches from "./parts/claudeCodeBranches.ts"
import * as Queue from "./parts/claudeCodeQueue.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

// Bookkeeping of the client, never shown to the model.
const ignored = new Set([
  "progress",
  "file-history-snapshot",
  "summary",
  "ai-title",
  "custom-title",
  "last-prompt",
  "mode",
  "permission-mode",
  "pr-link",
  "agent-name",
  "bridge-session",
  "tag"
])

// Texts that the client writes into a user line. Newer versions say so in `origin` or `promptSource`; in older ones
// the wrapper at the very start of a line is all there is.
const clientText = /^<(local-command-stdout|local-command-stderr|bash-stdout|bash-stderr|task-notification)>/

const interruption = /^\[Request interrupted by user(?: for tool use)?\]$/

/**
 * Reads sessions of Claude Code.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format: "claude-code",
  detect: ({ first, kind }) => {
    if (kind !== "lines") return undefined
    for (const [index, record] of first.entries()) {
      if (!Json.isObject(record)) continue
      const { leafUuid, sessionId, type, uuid } = record
      if (typeof type !== "string") continue
      if (typeof uuid === "string" && typeof sessionId === "string") {
        return `record ${index + 1} has "type": "${type}", a uuid and a sessionId`
      }
      if (type === "summary" && typeof leafUuid === "string") {
        return `record ${index + 1} has "type": "summary" and a leafUuid`
      }
    }
    return undefined
  },
  start: (file, why) => start(file, why)
}

/** What was read so far. A response is at once in `rows` and in `responses`, by its `message.id`. */
interface Reading {
  readonly session: Building.Building
  readonly rows: Array<Branches.Row>
  readonly responses: Map<string, Branches.Response>
  readonly tree: Branches.Tree
  readonly queue: Queue.Queue
  /** Rows that say again what a removal from the queue told before them, or were told by it. */
  readonly doubled: Set<object>
  leaf: string | undefined
}

const start = (file: string, why: string): Reader.Parse => {
  const self: Reading = {
    session: Building.make(file, "claude-code", why),
    rows: [],
    responses: new Map(),
    tree: Branches.tree(),
    queue: Queue.make(),
    doubled: new Set(),
    leaf: undefined
  }
  return {
    record: (value, line) => record(self, value, { file, line, field: "" }),
    end: () => Result.succeed(end(self))
  }
}

const record = (self: Reading, value: Schema.Json, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const entry = yield* Json.object(value, place)
    const { line } = place
    const type = typeof entry.type === "string" ? entry.type : ""
    const uuid = yield* Json.optionalStringAt(entry, "uuid", place)
    const sidechain = entry.isSidechain === true
    // A compaction starts a new root; the line it stands after is beside it.
    const parent = (yield* Json.optionalStringAt(entry, "parentUuid", place)) ??
      (yield* Json.optionalStringAt(entry, "logicalParentUuid", place))
    if (uuid !== undefined) {
      if (self.tree.nodes.has(uuid)) return Building.notice(self.session, "duplicate", line)
      Branches.add(self.tree, { uuid, line, parent, sidechain, weight: weightOf(entry, type) })
    }
    if (ignored.has(type)) return
    if (!read.has(type)) return Building.notice(self.session, "unknown-line", line, type)
    if (type === "queue-operation") return yield* queued(self, entry, place)
    if (!sidechain && uuid !== undefined) self.leaf = uuid
    const row = (content: Branches.Row["content"], hangs?: Branches.Row["hangs"]): void => {
      const id = uuid ?? `line ${line}`
      self.rows.push({ line, uuid: id, parent, time: Time.ofText(entry.timestamp), sidechain, hangs, content })
    }
    switch (type) {
      case "assistant": {
        const response = yield* assistant(self, entry, place, uuid ?? `line ${line}`)
        if (response !== undefined) row(response)
        return
      }
      case "user": {
        const message = yield* Json.objectAt(entry, "message", place)
        yield* expectRole(message, "user", Json.at(place, "message"))
        const source = sourceOf(entry, message)
        const within = Json.at(place, "message.content")
        const messages = yield* Anthropic.userMessages(message.content, within, source)
        doubles(self, messages, self.responses.size)
        return row(messages, entry.isMeta === true ? "link" : undefined)
      }
      case "attachment": {
        const messages = yield* attachment(self, yield* Json.objectAt(entry, "attachment", place), place)
        if (messages.length > 0) row(messages, "link")
        return
      }
      case "system": {
        const marker = readMarker(entry)
        if (marker !== undefined) row([Message.user([Message.text(marker)], "context-summary")])
      }
    }
  })

const read: ReadonlySet<string> = new Set(["user", "assistant", "attachment", "system", "queue-operation"])

/** What a line is to the compactions of the session. */
const weightOf = (entry: Schema.JsonObject, type: string): Branches.Weight => {
  if (type === "system") return entry.subtype === "compact_boundary" ? "compaction" : "other"
  if (type === "assistant") return "turn"
  if (type !== "user") return "other"
  if (entry.isCompactSummary === true) return "compaction"
  return Json.isObject(entry.message) && sourceOf(entry, entry.message) !== undefined ? "other" : "turn"
}

/** The words of a row are told once: what a removal from the queue told before is left out there. */
const doubles = (self: Reading, messages: ReadonlyArray<Prompt.Message>, turn: number | undefined): void => {
  const told = Queue.again(self.queue, messages, turn)
  if (told !== undefined) self.doubled.add(told)
}

const queued = (self: Reading, entry: Schema.JsonObject, place: Json.Place): Json.Read<void> =>
  Result.gen(function*() {
    const { content, operation } = entry
    const { line } = place
    if (operation === "enqueue") {
      const source = typeof content === "string" && clientText.test(content) ? "hook" : undefined
      Queue.enqueue(self.queue, yield* Anthropic.userMessages(content, Json.at(place, "content"), source))
      return
    }
    if (operation === "dequeue" || operation === "popAll") return Queue.drop(self.queue, operation, content)
    if (operation !== "remove") return Building.notice(self.session, "unknown-line", line, "queue-operation")
    const messages = Queue.remove(self.queue, content)
    if (messages === undefined) return
    if (messages === "unknown") return Building.notice(self.session, "queued", line)
    const row: Branches.Row = {
      line,
      uuid: `line ${line}`,
      parent: undefined,
      time: Time.ofText(entry.timestamp),
      sidechain: entry.isSidechain === true,
      hangs: "before",
      content: messages
    }
    self.rows.push(row)
    Queue.tell(self.queue, messages, self.responses.size, row)
  })

const assistant = (
  self: Reading,
  entry: Schema.JsonObject,
  place: Json.Place,
  uuid: string
): Json.Read<Branches.Response | undefined> =>
  Result.gen(function*() {
    const { responses, session } = self
    const message = yield* Json.objectAt(entry, "message", place)
    const within = Json.at(place, "message")
    yield* expectRole(message, "assistant", within)
    const id = (yield* Json.optionalStringAt(message, "id", within)) ?? uuid
    const named = yield* Json.optionalStringAt(message, "model", within)
    const synthetic = named === "<synthetic>"
    if (synthetic) Building.notice(session, "synthetic", place.line)
    else if (named !== undefined) session.model = named
    const known = responses.get(id)
    const response: Branches.Response = known ??
      { uuids: [], parts: [], synthetic, usage: {}, stopped: false, version: undefined }
    response.uuids.push(uuid)
    const content = message.content
    const blocks = typeof content === "string"
      ? [{ type: "text", text: content }]
      : yield* Json.arrayAt(message, "content", within)
    for (const [index, block] of blocks.entries()) {
      const part = yield* Anthropic.assistantPart(block, Json.at(Json.at(within, "content"), index))
      // A session that was resumed holds copies of older lines under new uuids.
      if (known !== undefined && response.parts.some((other) => same(other, part))) {
        Building.notice(session, "duplicate", place.line)
      } else {
        response.parts.push(part)
      }
    }
    if (Json.isObject(message.usage)) {
      const usage = yield* Anthropic.usage(message.usage, Json.at(within, "usage"))
      const output = Math.max(usage.output ?? 0, response.usage.output ?? 0)
      response.usage = usage.output === undefined ? usage : { ...usage, output }
    }
    response.stopped = typeof message.stop_reason === "string"
    response.version = yield* Json.optionalStringAt(entry, "version", place)
    if (known !== undefined) return undefined
    responses.set(id, response)
    return response
  })

const attachment = (
  self: Reading,
  value: Schema.JsonObject,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.Message>> =>
  Result.gen(function*() {
    const within = Json.at(place, "attachment")
    const type = yield* Json.stringAt(value, "type", within)
    if (type === "queued_command") {
      // What was typed, or reported by a task, while the model was busy.
      const mode = value.commandMode
      const source = mode === undefined || mode === "prompt" || mode === "bash" ? undefined : "hook"
      const messages = yield* Anthropic.userMessages(value.prompt, Json.at(within, "prompt"), source)
      doubles(self, messages, undefined)
      return messages
    }
    if (type === "hook_additional_context") {
      const content = value.content
      const texts = typeof content === "string" ? [content] : yield* Json.arrayAt(value, "content", within)
      const parts: Array<Prompt.TextPart> = []
      for (const [index, text] of texts.entries()) {
        parts.push(Message.text(yield* Json.string(text, Json.at(Json.at(within, "content"), index))))
      }
      return parts.length === 0 ? [] : [Message.user(parts, "hook")]
    }
    Building.notice(self.session, "attachment", place.line, type)
    return []
  })

const end = (self: Reading): Session.Session => {
  const { doubled, rows, session } = self
  // The file of a subagent holds nothing but side lines; there they are the conversation.
  const onlySide = rows.length > 0 && rows.every((row) => row.sidechain || row.hangs === "before")
  const main: Array<Branches.Row> = []
  for (const row of rows) {
    if (doubled.has(row)) continue
    if (row.sidechain && !onlySide) Building.notice(session, "sidechain", row.line)
    else main.push(row)
  }
  const { kept, uuids } = Branches.chain(self.tree, self.leaf)
  const live = onlySide ? undefined : Branches.liveRows(main, uuids)
  if (!onlySide) { for (const line of kept) Building.notice(session, "compaction-kept", line) }
  for (const row of main) {
    const { content, line, time } = row
    if (live !== undefined && !live.has(row)) Building.notice(session, "abandoned-branch", line)
    else if (!Branches.isResponse(content)) {
      for (const message of content) Building.push(session, message, line, time)
    } else {
      const answer = Message.assistant(content.parts)
      const index = Building.push(
        session,
        content.synthetic ? Marks.set(answer, { source: "hook" }) : answer,
        line,
        time
      )
      const billed = billedFor(content)
      if (billed === undefined) continue
      if (billed.output === undefined) Building.notice(session, "output-unknown", line)
      Building.billAt(session, index, billed)
    }
  }
  return Building.end(session, say)
}

const expectRole = (message: Schema.JsonObject, role: string, place: Json.Place): Json.Read<void> =>
  message.role === undefined || message.role === role
    ? Result.succeed(undefined)
    : Result.flatMap(
      Json.stringAt(message, "role", place),
      (found) => Json.fail(Json.at(place, "role"), `unknown role ${JSON.stringify(found)}, expected "${role}"`)
    )

/** Who wrote a user line: `undefined` for a person. */
const sourceOf = (entry: Schema.JsonObject, message: Schema.JsonObject): string | undefined => {
  if (entry.isCompactSummary === true) return "context-summary"
  if (entry.isMeta === true) return "hook"
  if (Json.isObject(entry.origin)) return entry.origin.kind === "human" ? undefined : "hook"
  if (typeof entry.promptSource === "string") return entry.promptSource === "system" ? "hook" : undefined
  const content = message.content
  if (typeof content === "string") return clientText.test(content) ? "hook" : undefined
  const only = Json.isArray(content) && content.length === 1 ? content[0] : undefined
  return Json.isObject(only) && typeof only.text === "string" && interruption.test(only.text) ? "hook" : undefined
}

/** The text of an entry for a compaction of the client; `undefined` for other system lines. */
const readMarker = (entry: Schema.JsonObject): string | undefined => {
  if (entry.subtype !== "compact_boundary" && entry.subtype !== "microcompact_boundary") return undefined
  const text = typeof entry.content === "string" ? entry.content : "Conversation compacted"
  const metadata = entry.subtype === "compact_boundary" ? entry.compactMetadata : entry.microcompactMetadata
  if (!Json.isObject(metadata) || typeof metadata.preTokens !== "number") return text
  return `${text} (${metadata.trigger === "manual" ? "manual" : "auto"}, ${metadata.preTokens} tokens before)`
}

/** Whether a block repeats one that its response already has. */
const same = (a: Prompt.AssistantMessagePart, b: Prompt.AssistantMessagePart): boolean => {
  if (a.type === "tool-call") return b.type === "tool-call" && a.id === b.id
  if (a.type === "text") return b.type === "text" && a.text === b.text && a.text !== ""
  return a.type === "reasoning" && b.type === "reasoning" && a.text === b.text &&
    JSON.stringify(a.options) === JSON.stringify(b.options)
}

/**
 * What a response was billed. Versions from 2.1.12 on leave the output count at its start value while `stop_reason` is
 * null, so the output is unknown there; the input counts are right in all versions.
 */
const billedFor = (response: Branches.Response): Session.Usage | undefined => {
  if (response.synthetic || Object.keys(response.usage).length === 0) return undefined
  if (response.stopped || countsOutput(response.version)) return response.usage
  const { output: _output, ...known } = response.usage
  return known
}

const countsOutput = (version: string | undefined): boolean => {
  const numbers = /^(\d+)\.(\d+)\.(\d+)/.exec(version ?? "")
  if (numbers === null) return false
  const [major = 0, minor = 0, patch = 0] = numbers.slice(1).map(Number)
  return major < 2 || (major === 2 && (minor < 1 || (minor === 1 && patch < 12)))
}

const say = (kind: string, count: number, what: string): string => {
  const lines = count === 1 ? "1 line" : `${count} lines`
  switch (kind) {
    case "duplicate":
      return `${lines} or blocks repeat earlier ones and are left out`
    case "unknown-line":
      return `${lines} of the unknown type ${JSON.stringify(what)} left out`
    case "attachment":
      return `${lines} with an attachment of type ${what} left out: the text the model saw is not in the file`
    case "sidechain":
      return `${lines} of subagents left out: they are conversations of their own`
    case "abandoned-branch":
      return `${lines} of branches that were left by a rewind or an edited prompt left out`
    case "compaction-kept":
      return `${lines} behind a compaction go on from before it: a file cannot tell whether it was taken back, so all is kept`
    case "queued":
      return `${lines} tell the model words that were typed while it worked and are not in the file`
    case "synthetic":
      return `${lines} of assistant text made by the client, not by a model`
    default:
      return `${count} responses without a usable output count`
  }
}
