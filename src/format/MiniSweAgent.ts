/**
 * Reads a trajectory of mini-swe-agent (`*.traj.json`), or a bare list of its messages.
 *
 * What is read and what is lost is in `docs/formats/mini-swe-agent.md`.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Building from "./parts/building.ts"
import * as Chat from "./parts/chatRead.ts"
import * as Findings from "./parts/findings.ts"
import * as Ids from "./parts/ids.ts"
import * as Json from "./parts/json.ts"
import * as Responses from "./parts/responses.ts"
import * as Items from "./parts/responsesRead.ts"
import * as Time from "./parts/time.ts"
import * as Usage from "./parts/usage.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "mini-swe-agent"

const isOwn = (message: Schema.Json): boolean =>
  Json.isObject(message) &&
  (message.role === "exit" ||
    (Json.isObject(message.extra) && (Json.isArray(message.extra.actions) || message.extra.raw_output !== undefined)))

/**
 * Reads trajectories of mini-swe-agent: with tool calls, in text, or with items of the Responses API.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect: ({ first, kind }) => {
    const document = first[0]
    if (kind !== "document") return undefined
    if (Json.isArray(document)) return document.some(isOwn) ? "messages with actions or the role \"exit\"" : undefined
    if (!Json.isObject(document) || !Json.isArray(document.messages)) return undefined
    if (typeof document.trajectory_format === "string" && document.trajectory_format.startsWith(format)) {
      return `the trajectory_format is ${document.trajectory_format}`
    }
    return Json.isObject(document.info) && document.info.mini_version !== undefined || document.messages.some(isOwn)
      ? "a trajectory with a mini_version, actions or the role \"exit\""
      : undefined
  },
  start: (file, why) => {
    const say: Findings.Say = (kind, count) =>
      kind === "exit" ? "the message that tells how the run ended is left out" : Findings.provisional(count)
    return Building.document({ file, format, why, what: "trajectory", mayBeEmpty: true, say }, trajectory)
  }
}

const trajectory = (value: Schema.Json, root: Json.Place, session: Building.Building): Json.Read<void> =>
  Result.gen(function*() {
    const document: Schema.JsonObject = Json.isArray(value) ? { messages: value } : yield* Json.object(value, root)
    const place = Json.isArray(value) ? root : Json.at(root, "messages")
    const messages: Array<Schema.JsonObject> = []
    for (const [index, one] of (yield* Json.arrayAt(document, "messages", root)).entries()) {
      messages.push(yield* Json.object(one, Json.at(place, index)))
    }
    session.model = modelOf(document.info)
    // How the run ended is told to a person, not to the model.
    const shown = messages.filter(({ role }) => role !== "exit")
    if (shown.length < messages.length) Building.notice(session, "exit", root.line)
    yield* shown.some(({ extra, output, type }) => type !== undefined || outputOf(output, extra) !== undefined)
      ? responses(session, shown, place)
      : chat(session, shown, place)
  })

const timeOf = (extra: Schema.Json | undefined): number | undefined =>
  Json.isObject(extra) ? Time.ofSeconds(extra.timestamp) : undefined

const responseOf = (extra: Schema.Json | undefined): Schema.JsonObject =>
  Json.isObject(extra) && Json.isObject(extra.response) ? extra.response : Wire.emptyObject

/** The items of an answer of the Responses API, beside the message or in the response that is kept of it. */
const outputOf = (output: Schema.Json | undefined, extra: Schema.Json | undefined): Schema.JsonArray | undefined => {
  if (Json.isArray(output)) return output
  const kept = responseOf(extra).output
  return Json.isArray(kept) ? kept : undefined
}

const chat = (
  session: Building.Building,
  messages: ReadonlyArray<Schema.JsonObject>,
  place: Json.Place
): Json.Read<void> =>
  Result.gen(function*() {
    const functions: Array<Chat.FunctionCall> = []
    for (const [index, wire] of asChat(messages).entries()) {
      const { extra } = messages[index] ?? Wire.emptyObject
      const at = Json.at(place, index)
      yield* Chat.push(session, functions, wire, at, timeOf(extra))
      const response = responseOf(extra)
      if (wire.role !== "assistant" || !Json.isObject(response.usage)) continue
      const within = Json.at(Json.at(Json.at(at, "extra"), "response"), "usage")
      Building.billAt(session, index, yield* Usage.read(response.usage, within, Usage.chat))
    }
  })

/** The messages without the notes of the harness, and commands in text as calls with their results. */
const asChat = (messages: ReadonlyArray<Schema.JsonObject>): ReadonlyArray<Schema.JsonObject> => {
  let action: string | undefined
  return messages.map(({ extra, ...message }, index) => {
    const answered = action
    action = undefined
    if (message.role === "assistant" && !Json.isArray(message.tool_calls)) {
      const command = commandOf(message.content, extra)
      if (command === undefined || !isObservation(messages[index + 1])) return message
      action = Ids.make("action", index)
      return {
        ...message,
        content: withoutCommand(message.content, command),
        tool_calls: [Chat.textCall(action, "bash", command)]
      }
    }
    return answered === undefined ? message : { ...message, role: "tool", tool_call_id: answered }
  })
}

/** What a message of a text mode says that came of a command. */
const isObservation = (message: Schema.JsonObject | undefined): boolean =>
  message?.role === "user" &&
  (Json.isObject(message.extra) && message.extra.returncode !== undefined ||
    (typeof message.content === "string" && message.content.startsWith("<returncode>")))

/** A fenced block of a text: where it stands, and what is in it. */
interface Fence {
  readonly from: number
  readonly to: number
  readonly body: string
}

/** The fenced blocks of a text: from a line that ends with a fence, with or without a language, to a line that begins with one. */
const fencesOf = (text: string): ReadonlyArray<Fence> => {
  const found: Array<Fence> = []
  let opened: { readonly from: number; readonly body: number } | undefined
  let at = 0
  for (const line of text.split("\n")) {
    const fence = line.lastIndexOf("```")
    if (opened !== undefined && line.startsWith("```") && at > opened.body) {
      found.push({ from: opened.from, to: at + 3, body: text.slice(opened.body, at - 1) })
      opened = undefined
    } else if (opened === undefined && fence >= 0 && /^[\w-]*\s*$/.test(line.slice(fence + 3))) {
      opened = { from: at + fence, body: at + line.length + 1 }
    }
    at += line.length + 1
  }
  return found
}

/** The one command of an answer in text. */
const commandOf = (content: Schema.Json | undefined, extra: Schema.Json | undefined): string | undefined => {
  const actions = Json.isObject(extra) && Json.isArray(extra.actions) ? extra.actions : []
  const only = actions.length === 1 ? actions[0] : undefined
  if (Json.isObject(only) && typeof only.command === "string") return only.command
  if (typeof content !== "string") return undefined
  const blocks = fencesOf(content)
  return blocks.length === 1 ? blocks[0]?.body.trim() : undefined
}

const withoutCommand = (content: Schema.Json | undefined, command: string): Schema.Json => {
  if (typeof content !== "string") return content ?? null
  const own = fencesOf(content).filter(({ body }) => body.trim() === command.trim())
  const starts = [0, ...own.map(({ to }) => to)]
  return starts.map((start, n) => content.slice(start, own[n]?.from)).join("").trim()
}

const responses = (
  session: Building.Building,
  messages: ReadonlyArray<Schema.JsonObject>,
  place: Json.Place
): Json.Read<void> =>
  Result.gen(function*() {
    const input: Array<Schema.Json> = []
    const bills: Array<Session.Usage> = []
    for (const [index, { extra, output, ...message }] of messages.entries()) {
      const items = outputOf(output, extra)
      if (items === undefined) {
        input.push(
          message.type === undefined ? message : { ...message, ...(output === undefined ? undefined : { output }) }
        )
        continue
      }
      input.push(...items)
      const usage = message.usage ?? responseOf(extra).usage
      bills.push(
        Json.isObject(usage) ? yield* Responses.usage(usage, Json.at(Json.at(place, index), "usage")) : {}
      )
    }
    yield* Items.readItems(input, Json.at({ ...place, field: "" }, "input"), session)
    const answers = session.messages.flatMap(({ role }, index) => role === "assistant" ? [index] : [])
    // Answers that follow one another without an output between them are one message, and whose bill is whose is lost.
    if (answers.length !== bills.length) return
    for (const [nth, index] of answers.entries()) Building.billAt(session, index, bills[nth] ?? {})
  })

const modelOf = (info: Schema.Json | undefined): string | undefined => {
  const config = Json.isObject(info) ? info.config : undefined
  const model = Json.isObject(config) ? config.model : undefined
  return Json.isObject(model) && typeof model.model_name === "string" ? model.model_name : undefined
}
