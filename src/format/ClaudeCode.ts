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
import * as Anthropic from "./parts/anthropic.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

/** One place in the order of the file: a response at its first line, or what a user line or a marker holds. */
interface Row {
  readonly line: number
  readonly uuid: string
  readonly parent: string | undefined
  readonly sidechain: boolean
  /** Attachments and text of the client hang on the line before them, and belong to it. */
  readonly hangs: boolean
  readonly content: Response | ReadonlyArray<Prompt.Message>
}

/** One response of the model: one or more lines with one `message.id`. */
interface Response {
  readonly uuids: Array<string>
  readonly parts: Array<Prompt.AssistantMessagePart>
  readonly synthetic: boolean
  usage: Session.Usage
  stopped: boolean
  version: string | undefined
}

const isResponse = (content: Row["content"]): content is Response => !Array.isArray(content)

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
  "queue-operation",
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

const start = (file: string, why: string): Reader.Parse => {
  const rows: Array<Row> = []
  const responses = new Map<string, Response>()
  const names = new Map<string, string>()
  const tree = new Map<string, { readonly index: number; readonly parent: string | undefined }>()
  const order: Array<string> = []
  const noticed = Findings.tally()
  let model: string | undefined
  let leaf: string | undefined

  const nameOf = (id: string) => names.get(id) ?? ""

  const record = (value: Schema.Json, line: number) =>
    Result.gen(function*() {
      const place: Json.Place = { file, line, field: "" }
      const entry = yield* Json.object(value, place)
      const type = typeof entry.type === "string" ? entry.type : ""
      const uuid = yield* Json.optionalStringAt(entry, "uuid", place)
      const sidechain = entry.isSidechain === true
      if (uuid !== undefined) {
        if (tree.has(uuid)) {
          noticed.add("duplicate", line)
          return
        }
        // A compaction starts a new root; the line it stands after is beside it.
        const parent = (yield* Json.optionalStringAt(entry, "parentUuid", place)) ??
          (yield* Json.optionalStringAt(entry, "logicalParentUuid", place))
        tree.set(uuid, { index: sidechain ? -1 : order.length, parent })
        if (!sidechain) order.push(uuid)
      }
      if (ignored.has(type)) return
      if (type !== "user" && type !== "assistant" && type !== "attachment" && type !== "system") {
        noticed.add("unknown-line", line, type)
        return
      }
      const id = uuid ?? `line ${line}`
      if (!sidechain && uuid !== undefined) leaf = uuid
      const row = (content: Row["content"], hangs = false) =>
        rows.push({ line, uuid: id, parent: tree.get(id)?.parent, sidechain, hangs, content })

      switch (type) {
        case "assistant": {
          const response = yield* readAssistant(entry, place, id)
          if (response !== undefined) row(response)
          return
        }
        case "user": {
          const message = yield* Json.objectAt(entry, "message", place)
          yield* expectRole(message, "user", Json.at(place, "message"))
          const source = sourceOf(entry, message)
          const messages = yield* Anthropic.userMessages(
            message.content,
            Json.at(place, "message.content"),
            nameOf,
            source
          )
          row(messages, entry.isMeta === true)
          return
        }
        case "attachment": {
          const messages = yield* readAttachment(yield* Json.objectAt(entry, "attachment", place), place)
          if (messages.length > 0) row(messages, true)
          return
        }
        case "system": {
          const marker = readMarker(entry)
          if (marker !== undefined) row([Message.user([Message.text(marker)], "context-summary")])
        }
      }
    })

  const readAssistant = (
    entry: Schema.JsonObject,
    place: Json.Place,
    uuid: string
  ): Json.Read<Response | undefined> =>
    Result.gen(function*() {
      const message = yield* Json.objectAt(entry, "message", place)
      const within = Json.at(place, "message")
      yield* expectRole(message, "assistant", within)
      const id = (yield* Json.optionalStringAt(message, "id", within)) ?? uuid
      const named = yield* Json.optionalStringAt(message, "model", within)
      const synthetic = named === "<synthetic>"
      if (synthetic) noticed.add("synthetic", place.line)
      else if (named !== undefined) model = named
      const known = responses.get(id)
      const response: Response = known ??
        { uuids: [], parts: [], synthetic, usage: {}, stopped: false, version: undefined }
      response.uuids.push(uuid)
      const content = message.content
      const blocks = typeof content === "string"
        ? [{ type: "text", text: content }]
        : yield* Json.arrayAt(message, "content", within)
      for (const [index, block] of blocks.entries()) {
        const part = yield* Anthropic.assistantPart(block, Json.at(Json.at(within, "content"), index))
        if (part.type === "tool-call") names.set(part.id, part.name)
        // A session that was resumed holds copies of older lines under new uuids.
        if (known !== undefined && response.parts.some((other) => same(other, part))) {
          noticed.add("duplicate", place.line)
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

  const readAttachment = (
    attachment: Schema.JsonObject,
    place: Json.Place
  ): Json.Read<ReadonlyArray<Prompt.Message>> =>
    Result.gen(function*() {
      const within = Json.at(place, "attachment")
      const type = yield* Json.stringAt(attachment, "type", within)
      if (type === "queued_command") {
        // What was typed, or reported by a task, while the model was busy.
        const mode = attachment.commandMode
        return yield* Anthropic.userMessages(
          attachment.prompt,
          Json.at(within, "prompt"),
          nameOf,
          mode === undefined || mode === "prompt" || mode === "bash" ? undefined : "hook"
        )
      }
      if (type === "hook_additional_context") {
        const content = attachment.content
        const texts = typeof content === "string" ? [content] : yield* Json.arrayAt(attachment, "content", within)
        const parts: Array<Prompt.TextPart> = []
        for (const [index, text] of texts.entries()) {
          parts.push(Message.text(yield* Json.string(text, Json.at(Json.at(within, "content"), index))))
        }
        return parts.length === 0 ? [] : [Message.user(parts, "hook")]
      }
      noticed.add("attachment", place.line, type)
      return []
    })

  const end = () => {
    // The file of a subagent holds nothing but side lines; there they are the conversation.
    const onlySide = rows.length > 0 && rows.every((row) => row.sidechain)
    const main: Array<Row> = []
    for (const row of rows) {
      if (row.sidechain && !onlySide) noticed.add("sidechain", row.line)
      else main.push(row)
    }
    const live = onlySide ? undefined : liveRows(main, chain(leaf, tree, order))
    const messages: Array<Prompt.Message> = []
    const lines: Array<number> = []
    const usage = new Map<number, Session.Usage>()
    for (const row of main) {
      if (live !== undefined && !live.has(row)) {
        noticed.add("abandoned-branch", row.line)
        continue
      }
      if (isResponse(row.content)) {
        const billed = billedFor(row.content)
        if (billed !== undefined) {
          if (billed.output === undefined) noticed.add("output-unknown", row.line)
          usage.set(messages.length, billed)
        }
        messages.push(Message.assistant(row.content.parts))
        lines.push(row.line)
      } else {
        for (const message of row.content) {
          messages.push(message)
          lines.push(row.line)
        }
      }
    }
    const findings = [...noticed.findings(say), ...Findings.pairs(messages, (index) => lines[index] ?? 0)]
    return Result.succeed<Session.Session>({
      file,
      format: "claude-code",
      why,
      model,
      messages,
      usage,
      findings: Findings.ordered(findings)
    })
  }

  return { record, end }
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

/** The uuids from the last line up to the root. */
const chain = (
  leaf: string | undefined,
  tree: ReadonlyMap<string, { readonly index: number; readonly parent: string | undefined }>,
  order: ReadonlyArray<string>
): ReadonlySet<string> => {
  const seen = new Set<string>()
  for (let uuid = leaf; uuid !== undefined && !seen.has(uuid);) {
    seen.add(uuid)
    const node = tree.get(uuid)
    if (node === undefined) break
    // A parent that is not in the file was cut off or torn: the line before is the best there is.
    uuid = node.parent === undefined || tree.has(node.parent) ? node.parent : order[node.index - 1]
  }
  return seen
}

/**
 * The rows that are no abandoned branch. Calls made in parallel fork the chain, so a row is live too when it is a line
 * of a live response, the result of a live call, or hangs on a row that is live for one of these reasons.
 */
const liveRows = (rows: ReadonlyArray<Row>, onChain: ReadonlySet<string>): ReadonlySet<Row> => {
  const live = new Set<Row>()
  const beside = new Set<string>()
  const calls = new Set<string>()
  const isLive = (row: Row): boolean => {
    if (onChain.has(row.uuid) || row.uuid.startsWith("line ")) return true
    if (isResponse(row.content)) return row.content.uuids.some((uuid) => onChain.has(uuid) || beside.has(uuid))
    return row.content.some((message) =>
      message.role === "tool" && message.content.some((part) => part.type === "tool-result" && calls.has(part.id))
    ) || (row.hangs && row.parent !== undefined && beside.has(row.parent))
  }
  for (let size = -1; size !== live.size;) {
    size = live.size
    for (const row of rows) {
      if (live.has(row) || !isLive(row)) continue
      live.add(row)
      if (!onChain.has(row.uuid)) beside.add(row.uuid)
      if (!isResponse(row.content)) continue
      for (const uuid of row.content.uuids) if (!onChain.has(uuid)) beside.add(uuid)
      for (const part of row.content.parts) if (part.type === "tool-call") calls.add(part.id)
    }
  }
  return live
}

/**
 * What a response was billed. Versions from 2.1.12 on leave the output count at its start value while `stop_reason` is
 * null, so the output is unknown there; the input counts are right in all versions.
 */
const billedFor = (response: Response): Session.Usage | undefined => {
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
    case "synthetic":
      return `${lines} of assistant text made by the client, not by a model`
    default:
      return `${count} responses without a usable output count`
  }
}
