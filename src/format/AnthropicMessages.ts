/**
 * Reads and writes Anthropic Messages request bodies.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Summarizer from "../Summarizer.ts"
import * as Blocks from "./parts/anthropic.ts"
import * as Native from "./parts/anthropicCompaction.ts"
import * as Writing from "./parts/anthropicWrite.ts"
import * as Building from "./parts/building.ts"
import * as Compaction from "./parts/compaction.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "anthropic-messages"

// ---------------------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------------------

const ownBlock =
  /^(tool_use|tool_result|thinking|redacted_thinking|document|container_upload|search_result|compaction)$|_tool_use$|_tool_result$/

/** Whether a message can be of this format, and whether it can be of no other. */
const shapeOf = (value: Schema.Json): "own" | "near" | "other" => {
  if (!Json.isObject(value) || (value.role !== "user" && value.role !== "assistant")) return "other"
  if (value.tool_calls !== undefined || value.function_call !== undefined) return "other"
  if (typeof value.content === "string") return "near"
  if (!Json.isArray(value.content)) return "other"
  let own = false
  for (const block of value.content) {
    if (!Json.isObject(block) || typeof block.type !== "string") return "other"
    if (ownBlock.test(block.type) || block.cache_control !== undefined || Json.isObject(block.source)) own = true
  }
  return own ? "own" : "near"
}

const detect = (sample: Reader.Sample): string | undefined => {
  const body = sample.first[0]
  if (sample.kind !== "document" || !Json.isObject(body) || !Json.isArray(body.messages)) return undefined
  const shapes = body.messages.map(shapeOf)
  if (shapes.length === 0 || shapes.includes("other")) return undefined
  return shapes.includes("own") || body.system !== undefined || body.anthropic_version !== undefined ||
      (typeof body.model === "string" && body.model.startsWith("claude"))
    ? "a body with the messages of Anthropic's API"
    : undefined
}

/**
 * Reads a body with `system` and `messages`.
 *
 * **Details**
 *
 * - Each block of `system` is a system message.
 * - The tool results of a user message form one tool message; what follows them is a user message.
 * - `cache_control` of a block is kept in `options.anthropic.cacheControl`, other fields without a place in
 *   `options["anthropic-messages"]`.
 * - Blocks that `Prompt` cannot hold (compaction, stored files, search results …) are opaque parts in their place.
 * - Fails on an unknown role and on fields of a wrong type.
 *
 * @see https://docs.claude.com/en/api/messages
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect,
  start: (file, why) =>
    Building.document({ file, format, why, what: "body" }, (value, place, session) =>
      Result.gen(function*() {
        const { line } = place
        const body = yield* Json.object(value, place)
        session.model = yield* Json.optionalStringAt(body, "model", place)
        for (const message of yield* systemMessages(body.system, Json.at(place, "system"))) {
          Building.push(session, message, line)
        }
        const within = Json.at(place, "messages")
        for (const [index, message] of (yield* Json.arrayAt(body, "messages", place)).entries()) {
          yield* pushMessage(message, Json.at(within, index), session)
        }
        if (Json.isObject(body.usage)) Building.bill(session, Blocks.usage(body.usage, Json.at(place, "usage")), line)
      }))
}

const systemMessages = (
  system: Schema.Json | undefined,
  place: Json.Place
): Json.Read<ReadonlyArray<Prompt.SystemMessage>> =>
  Result.gen(function*() {
    if (system === undefined || system === null) return []
    if (typeof system === "string") return [Message.system(system)]
    const messages: Array<Prompt.SystemMessage> = []
    for (const [index, value] of (yield* Json.blocks(system, place)).entries()) {
      const within = Json.at(place, index)
      const block = yield* Json.object(value, within)
      messages.push(annotateBlock(Message.system(yield* Json.stringAt(block, "text", within)), block, textFields))
    }
    return messages
  })

const messageFields: ReadonlySet<string> = new Set(["role", "content"])

const pushMessage = (value: Schema.Json, place: Json.Place, session: Building.Building): Json.Read<void> =>
  Result.gen(function*() {
    const wire = yield* Json.object(value, place)
    const role = yield* Json.stringAt(wire, "role", place)
    const within = Json.at(place, "content")
    const fields = Wire.fieldsOf(wire, messageFields)
    if (role === "user") {
      const messages = annotateAll(yield* Blocks.userMessages(wire.content, within), wire.content)
      // A message without content is one all the same.
      for (const [index, message] of (messages.length === 0 ? [Message.user([])] : messages).entries()) {
        Building.push(session, index === 0 ? Wire.annotate(message, format, { fields }) : message, place.line)
      }
      return
    }
    if (role !== "assistant") {
      return yield* Json.fail(
        Json.at(place, "role"),
        `unknown role ${JSON.stringify(role)}, expected user or assistant; the system prompt stands in \`system\``
      )
    }
    const parts: Array<Prompt.AssistantMessagePart> = []
    if (typeof wire.content === "string") {
      parts.push(Message.text(wire.content))
    } else {
      for (const [index, block] of (yield* Json.blocks(wire.content, within)).entries()) {
        const part = yield* Blocks.assistantPart(block, Json.at(within, index))
        parts.push(annotatePart(part, block))
      }
    }
    Building.push(session, Wire.annotate(Message.assistant(parts), format, { fields }), place.line)
    if (Json.isObject(wire.usage)) Building.bill(session, Blocks.usage(wire.usage, Json.at(place, "usage")), place.line)
  })

/** Puts the notes of the blocks onto the parts made of them; blocks and parts are in the same order, one for one. */
const annotateAll = (
  messages: ReadonlyArray<Prompt.Message>,
  content: Schema.Json | undefined
): ReadonlyArray<Prompt.Message> => {
  let next = 0
  const block = () => Json.isArray(content) ? content[next++] : undefined
  return messages.map((message) => {
    if (message.role === "tool") {
      return Message.tool(
        message.content.map((part) => part.type === "tool-result" ? annotatePart(part, block()) : part)
      )
    }
    return message.role === "user"
      ? Building.sourced(Message.user(message.content.map((part) => annotatePart(part, block()))))
      : message
  })
}

const textFields: ReadonlySet<string> = new Set(["type", "text", "cache_control"])
const thinkingFields: ReadonlySet<string> = new Set(["type", "thinking", "signature", "data", "cache_control"])
const callFields: ReadonlySet<string> = new Set(["type", "id", "name", "input", "server_name", "cache_control"])
const resultFields: ReadonlySet<string> = new Set(["type", "tool_use_id", "content", "is_error", "cache_control"])
const fileFields: ReadonlySet<string> = new Set(["type", "source", "title", "cache_control"])
const approvalFields: ReadonlySet<string> = new Set()

const heldBy: { readonly [type in Prompt.Part["type"]]: ReadonlySet<string> } = {
  "text": textFields,
  "reasoning": thinkingFields,
  "tool-call": callFields,
  "tool-result": resultFields,
  "file": fileFields,
  "tool-approval-request": approvalFields,
  "tool-approval-response": approvalFields
}

const annotatePart = <A extends Prompt.Part>(part: A, block: Schema.Json | undefined): A => {
  if (!Json.isObject(block) || Wire.rawOf(part) !== undefined) return part
  const noted = annotateBlock(part, block, heldBy[part.type])
  if (noted.type === "reasoning" && noted.options.anthropic === undefined) {
    // Some providers of this API sign nothing; without a note the block could not be told from another format's.
    return Wire.annotate(noted, format, { unsigned: true })
  }
  if (noted.type !== "tool-result" || !Json.isArray(block.content) || noted.providerExecuted) return noted
  const blocks = nestedBlocks(block.content)
  return blocks === undefined ? noted : { ...noted, result: blocks }
}

const annotateBlock = <A extends Prompt.Message | Prompt.Part>(
  self: A,
  block: Schema.JsonObject,
  held: ReadonlySet<string>
): A =>
  Wire.annotate(
    Wire.annotate(self, "anthropic", { cacheControl: block.cache_control ?? undefined }),
    format,
    { fields: Wire.fieldsOf(block, held) }
  )

/** The blocks of a result where one of them says more than its text or its image; `undefined` where none does. */
const nestedBlocks = (content: Schema.JsonArray): ReadonlyArray<Schema.JsonObject> | undefined => {
  let more = false
  const blocks: Array<Schema.JsonObject> = []
  for (const block of content) {
    if (!Json.isObject(block)) return undefined
    const source = block.source
    if (block.type === "text" && typeof block.text === "string") {
      if (Wire.fieldsOf(block, plainText) !== undefined) more = true
      blocks.push(block)
    } else if (block.type === "image" && Json.isObject(source)) {
      const data = source.type === "base64" ? source.data : source.type === "url" ? source.url : undefined
      const mediaType = source.type === "base64" ? source.media_type : "image/*"
      if (typeof data !== "string" || typeof mediaType !== "string") blocks.push(block)
      else {
        const fields = Wire.fieldsOf(block, plainImage)
        if (fields !== undefined) more = true
        blocks.push({ ...Message.resultImage(mediaType, data), ...fields })
      }
    } else blocks.push(block)
  }
  return more ? blocks : undefined
}

const plainText: ReadonlySet<string> = new Set(["type", "text"])
const plainImage: ReadonlySet<string> = new Set(["type", "source"])

// ---------------------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What {@link write} adds to the messages: the model of the body.
 *
 * @category models
 * @since 0.1.0
 */
export interface WriteOptions {
  readonly model?: string | undefined
}

const heldByMessage: Wire.Held = { anthropic: new Set(["cacheControl"]), [format]: true }

interface Turn {
  readonly role: "user" | "assistant"
  readonly results: Array<Schema.JsonObject>
  readonly blocks: Array<Schema.JsonObject>
  readonly fields: Schema.JsonObject
}

/**
 * Writes messages as a body `{ model?, system?, messages }`.
 *
 * **Details**
 *
 * - System messages stand first, in order; a later one is moved there and listed.
 * - Roles alternate: neighbours of one role become one message, and tool results stand at its start.
 * - What the format has no place for is listed in `losses`: reasoning that Anthropic did not sign, files it does not
 *   take, approvals, items of other formats, arguments that are no object, and the options of other providers.
 *
 * @category writers
 * @since 0.1.0
 */
export const write = (
  messages: ReadonlyArray<Prompt.Message>,
  options?: WriteOptions
): { readonly value: Schema.JsonObject; readonly losses: ReadonlyArray<Session.Loss> } => {
  const losses = Wire.losses()
  const system: Array<Schema.JsonObject> = []
  const turns: Array<Turn> = []
  const turn = (role: Turn["role"], message: Prompt.Message): Turn => {
    const last = turns.at(-1)
    const fields = Wire.objectOf(Wire.optionsAt(message, format), "fields")
    if (last?.role === role) {
      if (Object.keys(fields).length > 0) {
        Wire.report(losses, "fields", "merged into the message before; its fields are left out")
      }
      return last
    }
    const next: Turn = { role, results: [], blocks: [], fields }
    turns.push(next)
    return next
  }
  for (const [index, message] of messages.entries()) {
    Wire.at(losses, index)
    Wire.options(losses, message, heldByMessage)
    if (message.role === "system") {
      if (turns.length > 0) Wire.report(losses, "order", "a later system message is moved to the start")
      system.push({ type: "text", text: message.content, ...Writing.fieldsOf(message) })
      continue
    }
    const current = turn(message.role === "assistant" ? "assistant" : "user", message)
    const marked = Writing.cacheControlOf(message)
    for (const [position, part] of message.content.entries()) {
      Wire.at(losses, index, position)
      Wire.options(losses, part, Writing.heldByPart)
      const written = Writing.writePart(part, losses)
      if (written === undefined) continue
      // A message's mark stands on its last block, as the Effect provider puts it.
      const block = marked !== undefined && position === message.content.length - 1
        ? { ...written, cache_control: written.cache_control ?? marked }
        : written
      if (part.type === "tool-result" && !part.providerExecuted) current.results.push(block)
      else current.blocks.push(block)
    }
  }
  return {
    value: {
      ...(options?.model === undefined ? undefined : { model: options.model }),
      ...(system.length === 0 ? undefined : { system: Wire.onlyText(system) ?? system }),
      messages: turns.map(({ blocks, fields, results, role }) => {
        const content = [...results, ...blocks]
        return { role, content: Wire.onlyText(content) ?? content, ...fields }
      })
    },
    losses: losses.all
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The provider's own compaction
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Has Anthropic's own compaction make the summaries of a session: its owner is sent the signed block, every other route the
 * extract of the same messages.
 *
 * **When to use**
 *
 * Beside a model whose client goes through {@link carry}, or with bodies that are written of `Checkpoint.forOwner`.
 *
 * **Details**
 *
 * A refusal, a malformed answer and a missing block are failures of a summary like any other: the ladder serves. The method
 * `threshold` needs a conversation of at least 50,000 tokens.
 *
 * @see https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand
 * @category layers
 * @since 0.1.0
 */
export const layerCompaction = (
  options: Summarizer.NativeOptions
): Layer.Layer<never, never, HttpClient.HttpClient> =>
  Compaction.layer({ demand: Native.demand, threshold: Native.threshold }, write, options)

/**
 * An edit that the server makes of each request before the model reads it; its fields are Anthropic's own.
 *
 * @see https://platform.claude.com/docs/en/build-with-claude/context-editing
 * @category models
 * @since 0.1.0
 */
export interface ContextEdit extends Schema.JsonObject {
  readonly type: "clear_tool_uses_20250919" | "clear_thinking_20251015"
}

/**
 * A client for the adapter of a decorated model: requests to the owner of a block go out with it, in place of all that it stands
 * for, and with the beta header that it needs. Everything else goes as it is.
 *
 * **Details**
 *
 * `edits` are added to each request. The server gives nothing back that would have to be sent; what it cleared shows in the bill,
 * by which the next request is counted.
 *
 * @category combining
 * @since 0.1.0
 */
export const carry = (
  client: HttpClient.HttpClient,
  options?: { readonly edits?: ReadonlyArray<ContextEdit> }
): HttpClient.HttpClient => {
  const edits = options?.edits ?? []
  return Compaction.carry(client, Native.placeWith(edits), edits.length > 0)
}
