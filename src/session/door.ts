import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Json from "../text/json.ts"
import { normalMessage } from "../wire/normal.ts"

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

const messageOf = (message: Prompt.Message, at: number): Result.Result<Prompt.Message, Json.Fault> => {
  const made = known.get(message)
  if (made !== undefined) return Result.succeed(made)
  const normal = normalMessage(message, ["messages", at])
  if (Result.isSuccess(normal)) {
    known.set(message, normal.success)
    known.set(normal.success, normal.success)
  }
  return normal
}

/** Messages as they are taken in: what JSON has no words for is made JSON as a wire would, or refused. */
export const admit = (
  messages: ReadonlyArray<Prompt.Message>
): Effect.Effect<ReadonlyArray<Prompt.Message>, InvalidMessages> =>
  Effect.suspend(() => {
    const admitted: Array<Prompt.Message> = []
    for (let at = 0; at < messages.length; at++) {
      const message = messageOf(messages[at]!, at)
      if (Result.isFailure(message)) {
        return Effect.fail(new InvalidMessages({ problems: [{ path: "", reason: message.failure.message }] }))
      }
      admitted.push(message.success)
    }
    return Effect.succeed(admitted)
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
