/**
 * Long chats with questions about what was said in them: contexts of the public benchmark *lost-in-compaction*, which is
 * derived from LongMemEval. A chat is a list of messages, and beside it stands which facts it holds, by which keywords one
 * knows them, and between which messages their evidence lies. The data are not in this package.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Text from "../text/text.ts"

/**
 * Fails when a chat or what stands beside it is not what it should be; the reason names the field.
 *
 * @category errors
 * @since 0.1.0
 */
export class ChatError extends Schema.TaggedError<ChatError>("effect-compaction/simulate/ChatError")("ChatError", {
  file: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.file}: ${this.reason}`
  }
}

/**
 * A fact that a chat holds: the words it is known by, in lower case, and the positions of the messages that are its evidence.
 *
 * @category models
 * @since 0.1.0
 */
export interface Fact {
  readonly id: string
  readonly keywords: ReadonlyArray<string>
  readonly evidence: ReadonlyArray<number>
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Chat {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly facts: ReadonlyArray<Fact>
}

const Messages = Schema.fromJsonString(
  Schema.NonEmptyArray(Schema.Struct({ role: Schema.Literals(["user", "assistant"]), content: Schema.String }))
)

const Meta = Schema.fromJsonString(Schema.Struct({
  facts: Schema.Array(Schema.Struct({
    fact_id: Schema.String,
    question_type: Schema.String,
    keywords: Schema.Array(Schema.String),
    message_start: Schema.Natural,
    message_end: Schema.Natural,
    compacted: Schema.optionalKey(Schema.Boolean)
  }))
}))

const messageOf = ({ content, role }: { readonly role: "user" | "assistant"; readonly content: string }) =>
  Prompt.makeMessage(role, { content: [Prompt.makePart("text", { text: content })] })

/** How many of the keywords a message holds. */
const hits = (message: Prompt.Message, keywords: ReadonlyArray<string>): number => {
  const text = Text.ofMessage(message).toLowerCase()
  return keywords.filter((keyword) => text.includes(keyword)).length
}

/**
 * Reads a chat: its messages and what stands beside them, each as the text of its JSON file. `name` is what an error calls
 * it.
 *
 * **Details**
 *
 * The evidence of a fact is what holds most of its keywords among the messages of its range: those of the person, or of the
 * assistant where the benchmark says that the assistant told it. A fact whose messages the file itself has summarised away,
 * or that no message tells in its keywords, is left out.
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse = Effect.fnUntraced(function*(
  name: string,
  texts: { readonly messages: string; readonly meta: string }
): Effect.fn.Return<Chat, ChatError> {
  const fail = (file: string) => (error: Schema.SchemaError) => new ChatError({ file, reason: error.message })
  const raw = yield* Effect.mapError(Schema.decodeEffect(Messages)(texts.messages), fail(name))
  const { facts } = yield* Effect.mapError(Schema.decodeEffect(Meta)(texts.meta), fail(`${name}, its facts`))
  const messages = raw.map(messageOf)
  const found: Array<Fact> = []
  for (
    const { compacted, fact_id: id, keywords: written, message_end: to, message_start: from, question_type } of facts
  ) {
    if (to > messages.length || from >= to) {
      const reason = `facts ${id}: messages ${from} to ${to} of ${messages.length}`
      return yield* new ChatError({ file: `${name}, its facts`, reason })
    }
    if (compacted === true) continue
    const role = question_type.endsWith("assistant") ? "assistant" : "user"
    const keywords = written.map((keyword) => keyword.toLowerCase())
    const scores = messages.slice(from, to).map((each) => each.role === role ? hits(each, keywords) : 0)
    const best = Math.max(0, ...scores)
    if (best === 0) continue
    found.push({ id, keywords, evidence: scores.flatMap((score, at) => score === best ? [from + at] : []) })
  }
  return { messages, facts: found }
})

/**
 * What a view keeps of the facts of a chat, as shares: `whole`, of the messages with evidence, those that it holds word
 * for word, and `people` the same of those that the person wrote; `keywords`, of the facts, those whose keywords it has, as many in one message as their evidence has.
 *
 * @category models
 * @since 0.1.0
 */
export interface Score {
  readonly whole: number
  readonly people: number
  readonly keywords: number
}

/**
 * Looks for the facts of a chat in a view.
 *
 * @category running
 * @since 0.1.0
 */
export const score = ({ facts, messages }: Chat, view: ReadonlyArray<Prompt.Message>): Score => {
  const all = view.map(Text.ofMessage).join("\n\0\n")
  const evidence = Array.from(new Set(facts.flatMap((fact) => fact.evidence)))
  const isWhole = (at: number): boolean => all.includes(Text.ofMessage(messages[at]!))
  const people = evidence.filter((at) => messages[at]!.role === "user")
  const known = facts.filter(({ evidence, keywords }) => {
    const least = hits(messages[evidence[0]!]!, keywords)
    return view.some((message) => hits(message, keywords) >= least)
  })
  const share = (of: number, count: number): number => of === 0 ? 1 : count / of
  return {
    whole: share(evidence.length, evidence.filter(isWhole).length),
    people: share(people.length, people.filter(isWhole).length),
    keywords: share(facts.length, known.length)
  }
}
