/**
 * Reads and writes the input of OpenAI's Responses API: a list of items, or a request body.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Summarizer from "../Summarizer.ts"
import * as Building from "./parts/building.ts"
import * as Compaction from "./parts/compaction.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Message from "./parts/message.ts"
import * as Native from "./parts/openaiCompaction.ts"
import * as Items from "./parts/responses.ts"
import * as Reading from "./parts/responsesRead.ts"
import * as Writing from "./parts/responsesWrite.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "openai-responses"

const ownItem = /^(reasoning|item_reference|compaction|message|mcp_.*)$|_call$|_call_output$/
const ownPart = /^(input|output)_/

const isOwn = (value: Schema.Json): boolean =>
  Json.isObject(value) && (
    (typeof value.type === "string" && ownItem.test(value.type)) ||
    (Json.isArray(value.content) &&
      value.content.some((part) => Json.isObject(part) && typeof part.type === "string" && ownPart.test(part.type)))
  )

const detect = (sample: Reader.Sample): string | undefined => {
  if (sample.kind !== "document") return undefined
  const value = sample.first[0]
  if (Json.isArray(value)) {
    return value.length > 0 && value.every(Json.isObject) && value.some(isOwn)
      ? "a list of items of the Responses API"
      : undefined
  }
  if (!Json.isObject(value) || value.messages !== undefined) return undefined
  return Json.isArray(value.input) || (typeof value.input === "string" && typeof value.model === "string")
    ? "a body with the input of the Responses API"
    : undefined
}

/**
 * Reads a list of items, or a body with `input` and `instructions`.
 *
 * **Details**
 *
 * - What one response gave, up to the next message or output, is one assistant message: reasoning, answers, calls and
 *   opaque items in order. Each output is a tool message.
 * - A developer message before the conversation is a system message; a later one is a user message with the source
 *   `runtime-context`, and is written back as a developer's.
 * - The id of an item is kept in `options.openai.itemId`, encrypted reasoning in `options.openai.encryptedContent`, what
 *   else has no place in `options["openai-responses"]`.
 * - A body that continues a stored response or conversation holds only the last items: a finding says so.
 * - Fails on an unknown role and on fields of a wrong type.
 *
 * @see https://platform.openai.com/docs/api-reference/responses/create
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect,
  start: (file, why) =>
    Building.document(
      { file, format, why, what: "input", say: (_, count) => Findings.provisional(count) },
      (value, place, session) =>
        Result.gen(function*() {
          const { line } = place
          if (Json.isArray(value)) return yield* Reading.readItems(value, place, session)
          const body = yield* Json.object(value, place)
          session.model = yield* Json.optionalStringAt(body, "model", place)
          for (const key of ["previous_response_id", "conversation"]) {
            if (body[key] === undefined || body[key] === null) continue
            session.findings.push({ kind: "continuation", line, detail: `${key}: earlier items are not in the file` })
          }
          const instructions = yield* Json.optionalStringAt(body, "instructions", place)
          if (instructions !== undefined) {
            Building.push(session, Wire.annotate(Message.system(instructions), format, { instructions: true }), line)
          }
          if (typeof body.input === "string") Building.push(session, Message.user([Message.text(body.input)]), line)
          else yield* Reading.readItems(yield* Json.arrayAt(body, "input", place), Json.at(place, "input"), session)
          if (Json.isObject(body.usage)) Building.bill(session, Items.usage(body.usage, Json.at(place, "usage")), line)
        })
    )
}

/**
 * What {@link write} adds to the messages: the model of the body.
 *
 * @category models
 * @since 0.1.0
 */
export interface WriteOptions {
  readonly model?: string | undefined
}

const heldByMessage: Wire.Held = { openai: new Set(["role"]), [format]: true }

/**
 * Writes messages as a body `{ model?, instructions?, input }`, one output for each result.
 *
 * **Details**
 *
 * - `instructions` is written only where they were read; any other system message is an item.
 * - What the format has no place for is listed in `losses`: failure flags, calls that ran at another provider, approvals,
 *   items of other formats, files in answers, and the options of other providers.
 *
 * @category writers
 * @since 0.1.0
 */
export const write = (
  messages: ReadonlyArray<Prompt.Message>,
  options?: WriteOptions
): { readonly value: Schema.JsonObject; readonly losses: ReadonlyArray<Session.Loss> } => {
  const losses = Wire.losses()
  const input: Array<Schema.JsonObject> = []
  let instructions: string | undefined
  for (const [index, message] of messages.entries()) {
    Wire.at(losses, index)
    Wire.options(losses, message, heldByMessage)
    if (message.role === "system" && index === 0 && Wire.optionsAt(message, format).instructions === true) {
      instructions = message.content
    } else input.push(...Writing.writeMessage(message, losses, index))
  }
  return {
    value: {
      ...(options?.model === undefined ? undefined : { model: options.model }),
      ...(instructions === undefined ? undefined : { instructions }),
      input
    },
    losses: losses.all
  }
}

/**
 * Has OpenAI's own compaction make the summaries of a session: its owner is sent the items that it gave, every other route the
 * extract of the same messages.
 *
 * **When to use**
 *
 * Beside a model whose client goes through {@link carry}, or with bodies that are written of `Checkpoint.forOwner`.
 *
 * **Details**
 *
 * A refusal, a malformed answer and a missing item are failures of a summary like any other: the ladder serves.
 *
 * @see https://platform.openai.com/docs/api-reference/responses/compact
 * @category layers
 * @since 0.1.0
 */
export const layerCompaction = (
  options: Summarizer.NativeOptions
): Layer.Layer<never, never, HttpClient.HttpClient> =>
  Compaction.layer({ demand: Native.demand, threshold: Native.threshold }, write, options)

/**
 * A client for the adapter of a decorated model: requests to the owner of compaction items go out with them, in place of all that
 * they stand for. Everything else goes as it is.
 *
 * @category combining
 * @since 0.1.0
 */
export const carry = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  Compaction.carry(client, Native.place, false)
