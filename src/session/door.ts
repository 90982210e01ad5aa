import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../text/json.ts"

/**
 * Fails when messages cannot be taken in, and nothing was: the place of each fault and what is wrong there. A message must
 * be one of `effect/ai`, and what its tools take and return must be JSON, since that is what providers and logs hold.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidMessages extends Schema.TaggedError<InvalidMessages>("effect-compaction/InvalidMessages")(
  "InvalidMessages",
  { problems: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String })) }
) {
  override get message() {
    const problems = this.problems.map(({ path, reason }) => path === "" ? reason : `${path}: ${reason}`)
    return `These messages cannot be taken in, and nothing was. ${problems.join("; ")}`
  }
}

/** What is taken in: a text, messages, one message, or a prompt. */
export type Input = Prompt.RawInput | Prompt.Message | Prompt.MessageEncoded

/** The messages that were made JSON already, and what became of them: Chats and callers pass the same ones again. */
const known = new WeakMap<Prompt.Message, Prompt.Message>()

interface Walk {
  fault: Json.Fault | undefined
}

const json = (walk: Walk, value: unknown, path: ReadonlyArray<string | number>): Schema.Json => {
  const made = Json.normalise(value, path)
  if (Result.isSuccess(made)) return made.success
  walk.fault ??= made.failure
  return null
}

/** What of a part is JSON by its nature; the rest of a part is of types that hold nothing else. */
const partOf = (walk: Walk, part: Prompt.Part, path: ReadonlyArray<string | number>): Prompt.Part => {
  const options = json(walk, part.options, [...path, "options"])
  const isSame = options === part.options
  if (part.type === "tool-call") {
    const params = json(walk, part.params, [...path, "params"])
    // Options were an object of JSON and are one.
    return isSame && params === part.params ? part : { ...part, params, options } as Prompt.ToolCallPart
  }
  if (part.type === "tool-result") {
    const result = json(walk, part.result, [...path, "result"])
    // As above.
    return isSame && result === part.result ? part : { ...part, result, options } as Prompt.ToolResultPart
  }
  // As above.
  return isSame ? part : { ...part, options } as Prompt.Part
}

/** A message whose values are JSON: the same object where they are already. */
const messageOf = (walk: Walk, message: Prompt.Message, at: number): Prompt.Message => {
  const made = known.get(message)
  if (made !== undefined) return made
  const path = ["messages", at]
  const options = json(walk, message.options, [...path, "options"])
  let isSame = options === message.options
  let content: string | ReadonlyArray<Prompt.Part> = message.content
  if (typeof content !== "string") {
    content = content.map((part, index) => partOf(walk, part, [...path, "content", index]))
    const before: ReadonlyArray<Prompt.Part> | string = message.content
    isSame &&= content.every((part, index) => part === before[index])
  }
  // Roles and parts are those of the message.
  const next = isSame ? message : { ...message, content, options } as Prompt.Message
  if (walk.fault === undefined) {
    known.set(message, next)
    known.set(next, next)
  }
  return next
}

/** Messages as they are taken in: what JSON has no words for is made JSON as a wire would, or refused. */
export const admit = (
  messages: ReadonlyArray<Prompt.Message>
): Effect.Effect<ReadonlyArray<Prompt.Message>, InvalidMessages> =>
  Effect.suspend(() => {
    const walk: Walk = { fault: undefined }
    const admitted = messages.map((message, at) => messageOf(walk, message, at))
    if (walk.fault === undefined) return Effect.succeed(admitted)
    return Effect.fail(new InvalidMessages({ problems: [{ path: "", reason: walk.fault.message }] }))
  })

const decodeMessages = Schema.decodeUnknownEffect(Schema.Array(Prompt.Message))

const isMessage = (input: Input): input is Prompt.Message | Prompt.MessageEncoded =>
  typeof input === "object" && "role" in input

/** The messages of an input, each of them admitted. */
export const messagesOf = (input: Input): Effect.Effect<ReadonlyArray<Prompt.Message>, InvalidMessages> => {
  if (typeof input === "string" || Prompt.isPrompt(input)) return admit(Prompt.make(input).content)
  const given = isMessage(input) ? [input] : Array.from(input)
  return Effect.flatMap(
    Effect.mapError(
      decodeMessages(given, { errors: "all" }),
      (error) => new InvalidMessages({ problems: [{ path: "messages", reason: error.message }] })
    ),
    admit
  )
}
