/**
 * Whether a reader of a view knows the planted facts, asked of a command instead of looked up.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Fill from "../simulate/parts/fill.ts"
import * as Retention from "../simulate/Retention.ts"
import type * as Simulation from "../simulate/Simulation.ts"
import * as Text from "../text/text.ts"
import * as ShellCommand from "./ShellCommand.ts"

/**
 * Fails when a judge cannot be asked, or does not answer for each fact.
 */
class JudgeFailed extends Schema.TaggedError<JudgeFailed>("effect-compaction/cli/JudgeFailed")("JudgeFailed", {
  file: Schema.String,
  policy: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.file}: --judge, asked about ${this.policy}: ${this.reason}`
  }
}

/** The text of a view as retention looks through it: calls and reasoning are not in it. */
const textOf = (messages: ReadonlyArray<Prompt.Message>): string =>
  messages.flatMap((message) => {
    const text = Fill.unfill(Text.ofMessage(message))
    return text === "" ? [] : [`[${message.role}]\n${text}`]
  }).join("\n\n")

const Verdict = Schema.Literals(["kept", "lost", "stale"])

/**
 * The share of the facts that a view keeps by the answer of a command; `null` where no fact is known yet. Fails, with the
 * file and the policy that it was asked about, when the command fails or does not answer for exactly these facts.
 */
export const ask = Effect.fnUntraced(
  function*(
    command: string,
    { probes, sent }: {
      readonly file: string
      readonly policy: string
      readonly probes: ReadonlyArray<Retention.Probe>
      readonly sent: Simulation.Sent
    }
  ) {
    const held = Retention.inForce(probes, sent.told)
    if (held.length === 0) return null
    const facts = held.map(({ corrects, id, text }) => {
      const before = probes.find((probe) => probe.id === corrects)
      return { id: String(id), statement: text, ...(before === undefined ? undefined : { corrects: before.text }) }
    })
    const printed = yield* ShellCommand.run(command, JSON.stringify({ facts, view: textOf(sent.messages) }))
    const Answer = Schema.fromJsonString(Schema.Struct(Object.fromEntries(facts.map(({ id }) => [id, Verdict]))))
    const answer = yield* Schema.decodeEffect(Answer)(printed, { onExcessProperty: "error" }).pipe(
      Effect.mapError(({ message }) => ({ message: `${command} printed a wrong answer: ${message}` }))
    )
    return Object.values(answer).filter((verdict) => verdict === "kept").length / facts.length
  },
  (self, _, { file, policy }) =>
    // One error is one line, whatever a command says on standard error.
    Effect.mapError(self, ({ message }) => new JudgeFailed({ file, policy, reason: message.replace(/\s+/g, " ") }))
)
