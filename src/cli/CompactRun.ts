/**
 * Makes the view of `compact` and prints it.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as ContextManager from "../ContextManager.ts"
import * as Format from "../format/Format.ts"
import type * as Session from "../format/Session.ts"
import type * as Settings from "../Settings.ts"
import * as Failed from "./Failed.ts"
import * as Replay from "./Replay.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"

/** What `--json` prints: the body, and what is to be known about it. Sizes in tokens. */
interface Compaction {
  readonly file: string
  readonly format: Session.FormatName
  readonly to: Format.Target
  readonly messages: number
  readonly window: number | null
  readonly budget: number
  readonly count: number
  readonly viewMessages: number
  readonly boundary: Replay.Row["boundary"]
  readonly infeasible: Replay.Row["infeasible"]
  readonly losses: ReadonlyArray<Session.Loss>
  readonly body: Schema.JsonObject
}

const compact = Effect.fnUntraced(function*(session: Session.Session, settings: Settings.Input, to: Format.Target) {
  const manager = yield* ContextManager.make({ settings })
  yield* manager.append(Prompt.fromMessages(session.messages))
  const { count, events, prompt } = yield* manager.request
  // Of the request just made.
  const { budget } = yield* manager.status
  const { losses, value } = Format.write(to, prompt.content)
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

interface Values {
  readonly file: string
  readonly format: Option.Option<Session.FormatName>
  readonly json: boolean
  readonly settings: SettingsFlags.Values
  readonly strict: boolean
  readonly to: Format.Target
}

/** Prints the view of a session; fails with the exit code. */
export const run = ({ file, format, json, settings: values, strict, to }: Values) =>
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
  }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))
