/**
 * `compare`: what policies cost and keep in recorded sessions.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Format from "../format/Format.ts"
import type * as Session from "../format/Session.ts"
import type * as Kind from "../Kind.ts"
import * as Policy from "../Policy.ts"
import * as Price from "../simulate/Price.ts"
import * as PromptCache from "../simulate/PromptCache.ts"
import * as Retention from "../simulate/Retention.ts"
import type * as Simulation from "../simulate/Simulation.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Compare from "./Compare.ts"
import * as CompareText from "./CompareText.ts"
import * as Failed from "./Failed.ts"
import * as Judge from "./Judge.ts"
import * as OutputFile from "./OutputFile.ts"
import * as Paint from "./Paint.ts"
import * as PolicyInput from "./PolicyInput.ts"
import * as Progress from "./Progress.ts"
import type * as Replay from "./Replay.ts"
import * as Report from "./report/Report.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

const caches = { anthropic: PromptCache.anthropic, openai: PromptCache.openai, none: PromptCache.none }

// Literals want a tuple that is not empty, which no list of keys is known to be.
const keysOf = <K extends string>(record: { readonly [P in K]: unknown }): [K, ...Array<K>] =>
  Object.keys(record) as [K, ...Array<K>]

const cache = Flag.Literals("cache", keysOf(caches)).pipe(
  Flag.withMetavar("RULES"),
  Flag.withDescription("Rules of the prompt cache: anthropic, openai or none (default anthropic)"),
  Flag.withDefault("anthropic" as const)
)

const price = Flag.Literals("price", keysOf(Price.presets)).pipe(
  Flag.withMetavar("MODEL"),
  Flag.withDescription(
    `List price of tokens: ${Object.keys(Price.presets).join(", ")} (default claude-opus-4-5)`
  ),
  Flag.withDefault("claude-opus-4-5" as const)
)

const summarizer = Flag.Literals("summarizer", ["extractive", "none"]).pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription(
    "Who writes the summaries of policies that have them; extractive needs no model, and is billed like one "
      + "(default extractive)"
  ),
  Flag.withDefault("extractive" as const)
)

const probes = Flag.Int("probes").pipe(
  Flag.withMetavar("COUNT"),
  Flag.filter((count) => count >= 0, () => "write how many facts to plant, for example 32; 0 plants none"),
  Flag.withDescription("How many facts are planted in each session to see what is retained; 0 for none (default 0)"),
  Flag.withDefault(0)
)

const html = Flag.String("html").pipe(
  Flag.withMetavar("FILE"),
  Flag.withDescription("Write a report with charts and what became of every entry: one page that needs no network"),
  Flag.optional
)

interface Options {
  readonly format: Option.Option<Session.FormatName>
  readonly json: boolean
  readonly isTraced: boolean
  readonly judge: Option.Option<string>
  readonly probes: number
  readonly world: Simulation.World
}

/** The same session for the same flags, always. */
const seed = 1

/** What is played, with facts planted in it if that was asked for. What was billed is for a session without them. */
const plant = (session: Session.Session, count: number): Simulation.Recording & Pick<Simulation.World, "probes"> =>
  count === 0 ? session : Retention.plant(session.messages, { seed, count })

/** Plays one file under each policy and prints it. */
const one = Effect.fnUntraced(function*<E, R>(
  file: string,
  policies: ReadonlyArray<Replay.Named<E, R>>,
  { format, isTraced, json, judge: command, probes: count, world }: Options
) {
  const session = yield* Format.read(file, SessionInput.readOptions(format))
  const paint = yield* Paint.detect
  const progress = yield* Progress.make
  const recording = plant(session, count)
  const { probes } = recording
  const comparison = yield* Compare.play(session.file, recording, {
    policies,
    world: probes === undefined ? world : { ...world, probes },
    isTraced,
    judge: Option.isNone(command) || probes === undefined ? undefined : (policy, sent) =>
      Effect.andThen(
        progress.update(`${session.file}: ${policy}: asking the judge`),
        Judge.ask(command.value, { file: session.file, policy, probes, sent })
      ),
    onRequest: (policy, request, of) =>
      progress.update(`${session.file}: ${policy}: request ${Table.number(request)} of ${Table.number(of)}`)
  }).pipe(Effect.catchTag("PolicyError", Effect.die), Effect.ensuring(progress.end))
  yield* Console.log(json ? Shown.json(comparison.report) : CompareText.render(comparison, paint))
  return comparison
})

/** The command, for policies whose ladder is written in these kinds. */
export const make = <Kinds extends ReadonlyArray<Kind.Any>>(known: Policy.Policies<Kinds>) =>
  Command.make(
    "compare",
    {
      files: SessionInput.files,
      format: SessionInput.format,
      strict: SessionInput.strict,
      json: SessionInput.json,
      policies: PolicyInput.flag,
      cache,
      price,
      summarizer,
      probes,
      judge: Judge.flag,
      html,
      settings: SettingsFlags.flags
    },
    (
      { cache, files, format, html, json, judge, policies: names, price, probes, settings: values, strict, summarizer }
    ) =>
      Effect.gen(function*() {
        if (Option.isSome(judge) && probes === 0) {
          yield* Console.error("--judge needs --probes COUNT: without planted facts there is nothing to ask about")
          return Failed.usage
        }
        const settings = yield* SettingsFlags.decode(values)
        const policies = yield* Effect.forEach(
          Option.getOrElse(names, () => Object.keys(Policy.presets)),
          (name) => PolicyInput.read(name, SettingsFlags.given(values), known)
        )
        const options: Options = {
          format,
          json,
          isTraced: Option.isSome(html),
          judge,
          probes,
          world: {
            ...(settings.window === undefined ? {} : { window: settings.window }),
            ...(settings.maxTokens === undefined ? {} : { maxTokens: settings.maxTokens }),
            cache: caches[cache],
            price: Price.presets[price],
            ...(summarizer === "none" ? {} : { summarizer: Summarizer.extractive })
          }
        }
        const comparisons: Array<Compare.Comparison> = []
        let code = 0
        for (const [at, file] of files.entries()) {
          if (at > 0 && !json) yield* Console.log("")
          const ended = one(file, policies, options).pipe(
            Effect.map((comparison) => {
              comparisons.push(comparison)
              const { policies: played } = comparison.report
              return strict && played.some(({ totals }) => totals.infeasible > 0) ? Failed.infeasible : 0
            }),
            Failed.codeOf
          )
          code = Failed.worse(code, yield* ended)
        }
        if (Option.isSome(html)) {
          yield* OutputFile.write(html.value, Report.render(comparisons, { cache, price, probes, summarizer }))
        }
        return code
      }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))
  ).pipe(
    Command.withDescription(
      "Plays recorded agent sessions under several policies and bills every request by the rules of a prompt cache, "
        + "without sending anything. Each policy has a line of totals: what it costs in dollars, its boundaries, the "
        + "tokens read from the cache, written to it and billed fresh, the waste (sent before and billed again), and with "
        + "--probes the share of planted facts that is still in view, on average. With --judge a command is asked once for "
        + "each policy which of them its last view still tells. Without --policy all presets are "
        + "compared.\n\n"
        + "Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 something was infeasible and --strict was given. A file that "
        + "cannot be read does not stop the others."
    ),
    Command.withShortDescription("Play sessions under several policies and print what each costs and keeps"),
    Command.withExamples([
      {
        command: "effect-compaction compare --max-tokens 45000 --policy contextSimple --policy none session.jsonl",
        description: "What a session would have cost under two policies"
      },
      {
        command: "effect-compaction compare --window 200000 --cache openai --price gpt-5.4 --json *.jsonl",
        description: "All presets over several sessions as JSON lines, under OpenAI's cache and prices"
      },
      {
        command: "effect-compaction compare --max-tokens 45000 --probes 32 --html report.html session.jsonl",
        description: "A page with charts, and what of 32 planted facts is kept"
      }
    ])
  )
