import * as Estimator from "effect-compaction/Estimator"
import * as Marks from "effect-compaction/Marks"
import type * as Stage from "effect-compaction/Stage"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Schema from "effect/Schema"

/** A text of `length` code units that says where it comes from. */
export const words = (name: string, length: number): string => `${name} ${"lorem ".repeat(length)}`.slice(0, length)

export const system = (content: string): Prompt.Message => Prompt.makeMessage("system", { content })

export const user = (text: string, marks: Marks.Marks = {}): Prompt.Message =>
  Marks.set(Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] }), marks)

export const assistant = (text: string): Prompt.Message =>
  Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text })] })

export const calls = (...ids: ReadonlyArray<string>): Prompt.Message =>
  Prompt.makeMessage("assistant", {
    content: ids.map((id) =>
      Prompt.makePart("tool-call", { id, name: "read", params: { path: id }, providerExecuted: false })
    )
  })

export const result = (id: string, value: unknown): Prompt.ToolResultPart =>
  Prompt.makePart("tool-result", { id, name: "read", isFailure: false, result: value, providerExecuted: false })

export const answers = (...parts: ReadonlyArray<Prompt.ToolResultPart>): Prompt.Message =>
  Prompt.makeMessage("tool", { content: parts })

export const prompt = (...messages: ReadonlyArray<Prompt.Message>): Prompt.Prompt => Prompt.fromMessages(messages)

/** One turn: a call of a tool and its result of `length` code units. */
export const turn = (id: string, length: number): ReadonlyArray<Prompt.Message> => [
  calls(id),
  answers(result(id, words(id, length)))
]

/**
 * A session with something for each rung, by seq: 0 system · 1 a long first human · 2 a short human · 3 to 26 twelve turns
 * (calls odd, results even) · 27 a long human · 28 an answer · 29 a short human · 30 an answer · 31 the last human.
 */
export const session: Prompt.Prompt = prompt(
  system("You are a careful engineer."),
  user(words("first", 400)),
  user("go on"),
  ...Arr.range(0, 11).flatMap((n) => turn(`call-${n}`, 2_000)),
  user(words("later", 300)),
  assistant(words("answer", 300)),
  user("and now?"),
  assistant(words("answer", 40)),
  user("finish it")
)

/** The seqs that a view has lost, and those it shows truncated or stubbed. */
export const changesOf = ({ view }: Stage.Pass) => {
  const seqs = new Set(view.items.map((item) => item.seq))
  const inState = (state: string) => view.items.filter((item) => item.state === state).map((item) => item.seq)
  return {
    removed: view.transcript.entries.map((entry) => entry.seq).filter((seq) => !seqs.has(seq)),
    truncated: inState("truncated"),
    stubbed: inState("stubbed")
  }
}

/** An estimator that notes every message it prices. */
export const counting = () => {
  const priced: Array<Prompt.Message> = []
  const service = Estimator.make((message) => {
    priced.push(message)
    return Estimator.chars.price(message)
  })
  return { priced, service }
}

const encode = Schema.encodeSync(Prompt.Prompt)

/** What a prompt says, each field in its place: a decoded message has its keys in another order than one made here. */
export const bytesOf = (self: Prompt.Prompt): string => JSON.stringify(encode(self).content)

/** E4: a token for four UTF-16 code units of the text, and of the names and the compact arguments of calls. */
export const e4 = Estimator.layer(Estimator.make((message) => {
  if (message.role === "system") return Math.floor(message.content.length / 4)
  let chars = 0
  for (const part of message.content) {
    if (part.type === "text") chars += part.text.length
    else if (part.type === "tool-call") chars += part.name.length + JSON.stringify(part.params).length
    else if (part.type === "tool-result") chars += String(part.result).length
  }
  return Math.floor(chars / 4)
}))
