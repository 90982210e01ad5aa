/**
 * Reads a session of pi (`~/.pi/agent/sessions/…/*.jsonl`), one entry in each line.
 *
 * What is read and what is lost is in `docs/formats/pi.md`.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./parts/building.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Time from "./parts/time.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"

const format = "pi"

// Changes of settings and notes of extensions, never shown to the model.
const ignored = new Set([
  "session",
  "thinking_level_change",
  "model_change",
  "custom",
  "label",
  "session_info"
])

const roles = new Set([
  "user",
  "assistant",
  "toolResult",
  "bashExecution",
  "custom",
  "hookMessage",
  "branchSummary",
  "compactionSummary"
])

/**
 * Reads sessions of pi, of all versions.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    if (kind !== "lines") return undefined
    for (const [index, record] of first.entries()) {
      if (!Json.isObject(record)) continue
      if (
        record.type === "session" && typeof record.id === "string" && typeof record.timestamp === "string" &&
        typeof record.cwd === "string"
      ) {
        return `record ${index + 1} is the head of a session with an id, a timestamp and a cwd`
      }
      if (
        record.type === "message" && typeof record.timestamp === "string" && Json.isObject(record.message) &&
        typeof record.message.role === "string" && roles.has(record.message.role)
      ) {
        return `record ${index + 1} has "type": "message" and a message with a role`
      }
    }
    return undefined
  },
  start: (file, why) => start(file, why)
}

interface Entry {
  readonly id: string
  readonly parent: string | undefined
  readonly value: Schema.JsonObject
  readonly place: Json.Place
}

const start = (file: string, why: string): Reader.Parse => {
  const session = Building.make(file, format, why)
  const entries: Array<Entry> = []
  return {
    record: (value, line) =>
      Result.gen(function*() {
        const place: Json.Place = { file, line, field: "" }
        const entry = yield* Json.object(value, place)
        const id = yield* Json.optionalStringAt(entry, "id", place)
        const parent = yield* Json.optionalStringAt(entry, "parentId", place)
        entries.push({ id: entry.type === "session" ? "" : id ?? "", parent, value: entry, place })
      }),
    end: () =>
      Result.gen(function*() {
        const live = liveEntries(entries)
        for (const entry of entries) {
          if (live !== undefined && entry.id !== "" && !live.has(entry.id)) {
            Building.notice(session, "abandoned-branch", entry.place.line)
          } else yield* read(session, entry)
        }
        return Building.end(session, say)
      })
  }
}

const read = (session: Building.Building, { place, value }: Entry): Json.Read<void> =>
  Result.gen(function*() {
    const type = yield* Json.stringAt(value, "type", place)
    const time = Time.ofText(value.timestamp)
    if (ignored.has(type)) return
    switch (type) {
      case "message":
        return yield* message(session, yield* Json.objectAt(value, "message", place), Json.at(place, "message"), time)
      case "compaction":
      case "branch_summary": {
        const summary = yield* Json.stringAt(value, "summary", place)
        Building.push(session, Message.user([Message.text(summary)], "context-summary"), place.line, time)
        return
      }
      case "custom_message": {
        const parts = yield* userParts(value.content, Json.at(place, "content"))
        Building.push(session, Message.user(parts, "hook"), place.line, time)
        return
      }
    }
    Building.notice(session, "unknown-line", place.line, type)
  })

const message = (
  session: Building.Building,
  value: Schema.JsonObject,
  place: Json.Place,
  time: number | undefined
): Json.Read<void> =>
  Result.gen(function*() {
    const role = yield* Json.stringAt(value, "role", place)
    const within = Json.at(place, "content")
    switch (role) {
      case "user":
        Building.push(session, Message.user(yield* userParts(value.content, within)), place.line, time)
        return
      case "custom":
      case "hookMessage":
        Building.push(session, Message.user(yield* userParts(value.content, within), "hook"), place.line, time)
        return
      case "branchSummary":
      case "compactionSummary": {
        const summary = yield* Json.stringAt(value, "summary", place)
        Building.push(session, Message.user([Message.text(summary)], "context-summary"), place.line, time)
        return
      }
      case "bashExecution": {
        if (value.excludeFromContext === true) {
          Building.notice(session, "excluded", place.line)
          return
        }
        Building.push(session, Message.user([Message.text(yield* bashText(value, place))], "hook"), place.line, time)
        return
      }
      case "toolResult": {
        const id = yield* Json.stringAt(value, "toolCallId", place)
        const given = yield* Json.optionalStringAt(value, "toolName", place)
        const content = yield* resultContent(value.content, within)
        Building.push(
          session,
          Message.tool([Message.result(id, given ?? "", content, value.isError === true)]),
          place.line,
          time
        )
        return
      }
      case "assistant": {
        const api = typeof value.api === "string" ? value.api : ""
        const parts: Array<Prompt.AssistantMessagePart> = []
        const blocks = yield* Json.arrayAt(value, "content", place)
        for (const [index, block] of blocks.entries()) {
          const at = Json.at(within, index)
          parts.push(yield* assistantPart(yield* Json.object(block, at), at, api))
        }
        session.model = (yield* Json.optionalStringAt(value, "model", place)) ?? session.model
        Building.push(session, Message.assistant(parts), place.line, time)
        if (value.stopReason === "aborted" || value.stopReason === "error") {
          Building.notice(session, "stopped", place.line, value.stopReason)
        }
        if (Json.isObject(value.usage)) {
          Building.bill(session, Usage.read(value.usage, Json.at(place, "usage"), convention), place.line)
        }
        return
      }
    }
    return yield* Json.fail(
      Json.at(place, "role"),
      `unknown role ${JSON.stringify(role)}, expected ${Array.from(roles).join(", ")}`
    )
  })

/** The ids from the last entry up to the root; `undefined` in the first version, whose entries have no ids. */
const liveEntries = (entries: ReadonlyArray<Entry>): ReadonlySet<string> | undefined => {
  const tree = new Map(entries.map((entry, index) => [entry.id, { entry, index }]))
  const leaf = entries.at(-1)
  if (leaf === undefined || leaf.id === "") return undefined
  const live = new Set<string>()
  for (let id: string | undefined = leaf.id; id !== undefined && !live.has(id);) {
    live.add(id)
    const node = tree.get(id)
    if (node === undefined) break
    const { parent } = node.entry
    // A parent that is not in the file was torn: the entry before is the best there is.
    const before: string | undefined = entries[node.index - 1]?.id
    id = parent === undefined || tree.has(parent) ? parent : before
  }
  return live
}

const userParts = (
  content: Schema.Json | undefined,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.UserMessagePart>> =>
  typeof content === "string" ? Result.succeed([Message.text(content)]) : Json.eachBlock(content, place, userPart)

const userPart = (value: Schema.Json, place: Json.Place): Json.Read<Prompt.UserMessagePart> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    if (block.type === "text") return Message.text(yield* Json.stringAt(block, "text", place))
    if (block.type !== "image") return Message.opaque(block)
    const mediaType = yield* Json.stringAt(block, "mimeType", place)
    return Message.file(mediaType, yield* Json.stringAt(block, "data", place))
  })

const resultContent = (content: Schema.Json | undefined, place: Json.Place): Json.Read<Schema.Json> =>
  typeof content === "string"
    ? Result.succeed(content)
    : Result.map(Json.eachBlock(content, place, resultBlock), Message.resultOf)

const resultBlock = (value: Schema.Json, place: Json.Place): Json.Read<Schema.JsonObject> =>
  Result.gen(function*() {
    const block = yield* Json.object(value, place)
    if (block.type === "text") return Message.resultText(yield* Json.stringAt(block, "text", place))
    if (block.type !== "image") return block
    const mediaType = yield* Json.stringAt(block, "mimeType", place)
    return Message.resultImage(mediaType, yield* Json.stringAt(block, "data", place))
  })

const assistantPart = (
  block: Schema.JsonObject,
  place: Json.Place,
  api: string
): Json.Read<Prompt.AssistantMessagePart> =>
  Result.gen(function*() {
    switch (yield* Json.stringAt(block, "type", place)) {
      case "text": {
        const signature = yield* Json.optionalStringAt(block, "textSignature", place)
        return Wire.annotate(Message.text(yield* Json.stringAt(block, "text", place)), format, {
          textSignature: signature
        })
      }
      case "thinking": {
        const text = yield* Json.stringAt(block, "thinking", place)
        const signature = yield* Json.optionalStringAt(block, "thinkingSignature", place)
        return Message.reasoning(text, signature === undefined ? {} : signed(signature, api, block.redacted === true))
      }
      case "toolCall": {
        const id = yield* Json.stringAt(block, "id", place)
        const name = yield* Json.stringAt(block, "name", place)
        const signature = yield* Json.optionalStringAt(block, "thoughtSignature", place)
        return Wire.annotate(Message.call(id, name, block.arguments ?? {}), "google", { thoughtSignature: signature })
      }
    }
    return Message.opaque(block)
  })

/** What a signature is depends on the provider: Anthropic's, Google's, or the text of an item of OpenAI's. */
const signed = (signature: string, api: string, redacted: boolean): Message.Options => {
  if (signature === "") return {}
  const item = signature.startsWith("{") ? Json.parse(signature) : undefined
  if (Json.isObject(item) && item.type === "reasoning") {
    return {
      openai: {
        ...(typeof item.id === "string" ? { itemId: item.id } : undefined),
        ...(typeof item.encrypted_content === "string" ? { encryptedContent: item.encrypted_content } : undefined)
      }
    }
  }
  if (api.startsWith("google")) return { google: { thoughtSignature: signature } }
  if (api.startsWith("anthropic") || api.startsWith("bedrock")) {
    return {
      anthropic: {
        info: redacted ? { type: "redacted_thinking", redactedData: signature } : { type: "thinking", signature }
      }
    }
  }
  return { [format]: { thinkingSignature: signature } }
}

/** A command that a person ran, in the words in which the model is told. */
const bashText = (value: Schema.JsonObject, place: Json.Place): Json.Read<string> =>
  Result.gen(function*() {
    const command = yield* Json.stringAt(value, "command", place)
    const output = (yield* Json.optionalStringAt(value, "output", place)) ?? ""
    const ran = `Ran \`${command}\`\n${output === "" ? "(no output)" : `\`\`\`\n${output}\n\`\`\``}`
    const ended = value.cancelled === true
      ? "\n\n(command cancelled)"
      : typeof value.exitCode === "number" && value.exitCode !== 0
      ? `\n\nCommand exited with code ${value.exitCode}`
      : ""
    const cut = value.truncated === true && typeof value.fullOutputPath === "string"
      ? `\n\n[Output truncated. Full output: ${value.fullOutputPath}]`
      : ""
    return ran + ended + cut
  })

/** The input leaves out what was read from the cache and written to it. */
const convention: Usage.Convention = {
  input: ["input"],
  inside: [],
  cacheRead: ["cacheRead"],
  cacheWrite: ["cacheWrite"],
  output: ["output"]
}

const say = (kind: string, count: number, what: string): string => {
  switch (kind) {
    case "abandoned-branch":
      return `${count} entries of branches that were left are left out`
    case "excluded":
      return `${count} commands that a person ran outside the conversation left out`
    case "stopped":
      return `${count} answers ended with ${what}`
    default:
      return `${count} entries of the unknown type ${JSON.stringify(what)} left out`
  }
}
