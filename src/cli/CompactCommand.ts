/**
 * `compact`: the view that the model would get now.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as ContextManager from "../ContextManager.ts"
import * as AnthropicMessages from "../format/AnthropicMessages.ts"
import * as Format from "../format/Format.ts"
import * as OpenAiChat from "../format/OpenAiChat.ts"
import * as OpenAiResponses from "../format/OpenAiResponses.ts"
import * as PromptJson from "../format/PromptJson.ts"
import type * as Session from "../format/Session.ts"
import type * as Settings from "../Settings.ts"
import * as Failed from "./Failed.ts"
import * as Replay from "./Replay.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"

interface Written {
  readonly value: Schema.JsonObject
  readonly losses: ReadonlyArray<Session.Finding>
}

const targets = ["openai-chat", "openai-responses", "anthropic-messages", "prompt"] as const

type Target = typeof targets[number]

const write = (to: Target, messages: ReadonlyArray<Prompt.Message>): Written => {
  switch (to) {
    case "openai-chat":
      return OpenAiChat.write(messages)
    case "openai-responses":
      return OpenAiResponses.write(messages)
    case "anthropic-messages":
      return AnthropicMessages.write(messages)
    case "prompt":
      return PromptJson.write(messages)
  }
}

/** What `--json` prints: the body, and what is to be known about it. Sizes in tokens. */
interface Compaction {
  readonly file: string
  readonly format: Session.FormatName
  readonly to: Target
  readonly messages: number
  readonly window: number | null
  readonly budget: number
  readonly count: number
  readonly viewMessages: number
  readonly boundary: Replay.Row["boundary"]
  readonly infeasible: Replay.Row["infeasible"]
  readonly losses: ReadonlyArray<Session.Finding>
  readonly body: Schema.JsonObject
}

const compact = Effect.fnUntraced(function*(session: Session.Session, settings: Settings.Input, to: Target) {
  const manager = yield* ContextManager.make({ settings })
  yield* manager.append(Prompt.fromMessages(session.messages))
  const { count, events, prompt } = yield* manager.request
  // Of the request just made.
  const { budget } = yield* manager.status
  const { losses, value } = write(to, prompt.content)
  const infeasible = events.find((event) => event._tag === "Infeasible")
  return {
    file: session.file,
    format: session.format,
    to,
    messages: session.messages.length,
    window: settings.window ?? null,
    budget: budget?.limit ?? 0,
    count: count.tokens,
    viewMessages: prompt.content.length,
    boundary: Replay.happened(events).boundary,
    infeasible: infeasible === undefined ? null : { over: infeasible.over, holders: infeasible.holders },
    losses,
    body: value
  } satisfies Compaction
}, Effect.scoped)

/** Prints one compaction; returns the exit code it asks for. */
const print = Effect.fnUntraced(function*(
  compaction: Compaction,
  options: { readonly strict: boolean; readonly json: boolean }
) {
  const { infeasible, losses } = compaction
  for (const { detail, kind } of losses) yield* Failed.say({ message: `lost: ${kind}: ${detail}` })
  if (infeasible !== null) {
    const holders = infeasible.holders.map(({ seq, tokens }) => `entry ${seq} (${tokens} tokens)`).join(", ")
    yield* Console.error(`infeasible: ${infeasible.over} tokens over the budget, held by ${holders}`)
  }
  yield* Console.log(Shown.json(options.json ? compaction : compaction.body))
  return options.strict && infeasible !== null ? Failed.infeasible : 0
})

/** The command. */
export const command = Command.make("compact", {
  file: SessionInput.file,
  format: SessionInput.format,
  to: Flag.Literals("to", targets).pipe(Flag.withDescription("Format of the view")),
  strict: SessionInput.strict,
  json: Flag.Boolean("json").pipe(
    Flag.withDescription(
      "Print an object that holds the view as its body, beside its size, the boundary and what was lost"
    ),
    Flag.withDefault(false)
  ),
  settings: SettingsFlags.flags
}, ({ file, format, json, settings: values, strict, to }) =>
  Effect.gen(function*() {
    const settings = yield* SettingsFlags.decode(values)
    const session = yield* Format.read(file, SessionInput.readOptions(format))
    return yield* compact(session, settings, to).pipe(
      // The messages were read from a file and the settings decoded: neither can be refused here.
      Effect.catchTag(["InvalidMessages", "PolicyError"], Effect.die),
      Effect.flatMap((compaction) => print(compaction, { strict, json })),
      // The settings asked for the failure: `whenInfeasible` or the clear floor. Nothing is wrong with the input.
      Effect.catchTag(
        ["BudgetInfeasible", "ClearFloorUnsatisfied", "TargetBelowOverhead"],
        (error) => Effect.as(Failed.say(error), Failed.infeasible)
      )
    )
  }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))).pipe(
    Command.withDescription(
      "Prints the view of a session that the model would get now, as a JSON body of an API, without model and tools. What "
        + "the target cannot hold is listed on standard error.\n\n"
        + "Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 no view fits: the budget is infeasible and --strict was given, "
        + "or the settings fail the request."
    ),
    Command.withShortDescription("Print the view that the model would get now"),
    Command.withExamples([
      {
        command: "effect-compaction compact --window 200000 --to anthropic-messages session.jsonl",
        description: "The messages of the next request to Anthropic"
      }
    ])
  )
