/**
 * Reads and writes `effect/ai` prompts as JSON: what the codec `Prompt.Prompt` encodes to, and what a `Chat` exports.
 *
 * It is the one format that holds every message whole, options and marks included.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import * as Building from "./parts/building.ts"
import * as Findings from "./parts/findings.ts"
import * as Json from "./parts/json.ts"
import * as Wire from "./parts/wire.ts"
import type * as Reader from "./Reader.ts"
import type * as Session from "./Session.ts"

const format = "prompt"

// ---------------------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------------------

const roles: ReadonlySet<string> = new Set(["system", "user", "assistant", "tool"])

const detect = (sample: Reader.Sample): string | undefined => {
  const value = sample.first[0]
  if (sample.kind !== "document" || !Json.isObject(value) || !Json.isArray(value.content)) return undefined
  return value.role === undefined &&
      value.content.every((message) =>
        Json.isObject(message) && typeof message.role === "string" && roles.has(message.role)
      )
    ? "a prompt of effect/ai"
    : undefined
}

/**
 * Reads a prompt `{ content: […] }`; an empty one is a session too.
 *
 * Fails where the codec does not accept a message, with the path of the first bad field.
 *
 * @category readers
 * @since 0.1.0
 */
export const reader: Reader.Reader = {
  format,
  detect,
  start: (file, why) =>
    Building.document(
      {
        file,
        format,
        why,
        what: "prompt",
        mayBeEmpty: true,
        asIs: true,
        say: (_, count) => Findings.provisional(count)
      },
      (value, place, session) =>
        Result.gen(function*() {
          const { line } = place
          const prompt = yield* Json.object(value, place)
          const within = Json.at(place, "content")
          for (const [index, encoded] of (yield* Json.arrayAt(prompt, "content", place)).entries()) {
            const whole = withoutProvisional(session, encoded, line)
            if (whole !== undefined) Building.push(session, yield* decode(whole, Json.at(within, index)), line)
          }
        })
    )
}

/** What a tool had given so far, as a stream of the framework notes it, settles no call; a message of nothing else is none. */
const withoutProvisional = (
  session: Building.Building,
  message: Schema.Json,
  line: number
): Schema.Json | undefined => {
  if (!Json.isObject(message) || !Json.isArray(message.content)) return message
  const kept = message.content.filter((part) =>
    !Json.isObject(part) || part.type !== "tool-result" || part.preliminary !== true
  )
  for (let count = message.content.length - kept.length; count > 0; count--) {
    Building.notice(session, "provisional", line)
  }
  if (kept.length === message.content.length) return message
  return kept.length === 0 ? undefined : { ...message, content: kept }
}

const decodeMessage = SchemaParser.decodeUnknownResult(Prompt.Message)
const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const decode = (encoded: Schema.Json, place: Json.Place): Json.Read<Prompt.Message> => {
  if (Json.isObject(encoded) && typeof encoded.role === "string" && !roles.has(encoded.role)) {
    return Json.fail(
      Json.at(place, "role"),
      `unknown role ${JSON.stringify(encoded.role)}, expected system, user, assistant or tool`
    )
  }
  const decoded = decodeMessage(encoded)
  if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
  const issue = issuesOf(decoded.failure).issues[0]
  let at = place
  let value: Schema.Json | undefined = encoded
  for (const segment of issue?.path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment
    at = Json.at(at, typeof key === "number" ? key : String(key))
    value = Json.isArray(value) ? value[Number(key)] : Json.isObject(value) ? value[String(key)] : undefined
  }
  // Where no member of a union fits, the issue spells out all of them.
  if (Json.isObject(value) && at.field !== place.field && typeof value.type === "string") {
    return Json.fail(Json.at(at, "type"), `no ${value.type} part may stand here`)
  }
  return at.field === place.field
    ? Json.fail(place, "expected a message with a role and content")
    : Json.fail(at, issue?.message ?? "does not fit")
}

// ---------------------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Writes messages as a prompt `{ content: […] }`, which the codec `Prompt.Prompt` decodes to the same messages.
 *
 * Only parameters and results that are not JSON (dates, big integers …) are changed, and listed in `losses`.
 *
 * @category writers
 * @since 0.1.0
 */
export const write = (
  messages: ReadonlyArray<Prompt.Message>
): { readonly value: Schema.JsonObject; readonly losses: ReadonlyArray<Session.Loss> } => {
  const losses = Wire.losses()
  const content = messages.map((message, index): Schema.JsonObject => {
    Wire.at(losses, index)
    const head = { role: message.role, ...optionsOf(message, losses) }
    if (message.role === "system") return { ...head, content: message.content }
    const parts: Array<Schema.JsonObject> = []
    for (const [position, part] of message.content.entries()) {
      Wire.at(losses, index, position)
      parts.push(encode(part, losses))
    }
    return { ...head, content: parts }
  })
  return { value: { content }, losses: losses.all }
}

const optionsOf = (self: Prompt.Message | Prompt.Part, losses: Wire.Losses): Schema.JsonObject =>
  Object.keys(self.options).length === 0 ? Wire.emptyObject : { options: Wire.json(losses, self.options, "options") }

const encode = (part: Prompt.Part, losses: Wire.Losses): Schema.JsonObject => {
  const head = { type: part.type, ...optionsOf(part, losses) }
  switch (part.type) {
    case "text":
    case "reasoning":
      return { ...head, text: part.text }
    case "file":
      return {
        ...head,
        mediaType: part.mediaType,
        ...(part.fileName === undefined ? undefined : { fileName: part.fileName }),
        data: encodeData(part.data)
      }
    case "tool-call":
      return {
        ...head,
        id: part.id,
        name: part.name,
        params: Wire.json(losses, part.params, "params"),
        providerExecuted: part.providerExecuted
      }
    case "tool-result":
      return {
        ...head,
        id: part.id,
        name: part.name,
        isFailure: part.isFailure,
        result: Wire.json(losses, part.result, "result"),
        ...(part.modelOutput === undefined
          ? undefined
          : { modelOutput: part.modelOutput.map((output) => encode(output, losses)) }),
        providerExecuted: part.providerExecuted
      }
    case "tool-approval-request":
      return { ...head, approvalId: part.approvalId, toolCallId: part.toolCallId }
    case "tool-approval-response":
      return {
        ...head,
        approvalId: part.approvalId,
        approved: part.approved,
        ...(part.reason === undefined ? undefined : { reason: part.reason })
      }
  }
}

/** As the codec encodes bytes and URLs. */
const encodeData = (data: Prompt.FilePart["data"]): Schema.Json =>
  typeof data === "string"
    ? data
    : data instanceof URL
    ? { _tag: "URL", href: data.href }
    : { _tag: "Uint8Array", base64: Base64.encode(data) }
