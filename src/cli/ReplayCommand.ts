/**
 * `replay`: what the ladder does to recorded sessions.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Format from "../format/Format.ts"
import type * as Session from "../format/Session.ts"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Failed from "./Failed.ts"
import * as Paint from "./Paint.ts"
import * as PolicyInput from "./PolicyInput.ts"
import * as Progress from "./Progress.ts"
import * as Replay from "./Replay.ts"
import * as ReplayText from "./ReplayText.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"
import * as SummarizerInput from "./SummarizerInput.ts"
import * as Table from "./Table.ts"

interface Options {
  readonly format: Option.Option<Session.FormatName>
  readonly strict: boolean
  readonly json: boolean
}

/** Replays one file under each policy and prints it; returns the exit code it asks for. */
const one = Effect.fnUntraced(function*<E, R>(
  file: string,
  policies: ReadonlyArray<Replay.Named<E, R>>,
  summarizer: Summarizer.Service | undefined,
  options: Options
) {
  const session = yield* Format.read(file, SessionInput.readOptions(options.format))
  const paint = yield* Paint.detect
  const replays: Array<Replay.Replay> = []
  for (const policy of policies) {
    const progress = yield* Progress.make
    const counted = summarizer === undefined ? undefined : SummarizerInput.counted(summarizer)
    const replay = yield* Effect.orDie(Replay.play(session, {
      policy,
      onRequest: (request, of) =>
        progress.update(`${session.file}: request ${Table.number(request)} of ${Table.number(of)}`)
    })).pipe(Effect.provideService(Summarizer.Summarizer, counted?.service), Effect.ensuring(progress.end))
    const said = counted?.said()
    if (!options.json && replays.length > 0) yield* Console.log("")
    yield* Console.log(options.json ? Shown.json(replay.report) : ReplayText.render(replay, { session, paint }))
    if (!options.json && said !== undefined) yield* Console.log(Shown.line(said))
    replays.push(replay)
  }
  if (!options.json && replays.length > 1) yield* Console.log(`\n${ReplayText.compare(replays, paint)}`)
  return options.strict && replays.some(({ report }) => report.totals.infeasible > 0) ? Failed.infeasible : 0
})

/** The command, for policies whose ladder is written in these kinds. */
export const make = <Kinds extends ReadonlyArray<Kind.Any>>(known: Policy.Policies<Kinds>) =>
  Command.make("replay", {
    files: SessionInput.files,
    format: SessionInput.format,
    strict: SessionInput.strict,
    json: SessionInput.json,
    policies: PolicyInput.flag,
    summarizer: SummarizerInput.flag,
    settings: SettingsFlags.flags
  }, ({ files, policies: names, settings: values, summarizer: choice, ...options }) =>
    Effect.gen(function*() {
      const settings = SummarizerInput.withSummaries(choice, SettingsFlags.given(values))
      const policies = Option.isNone(names)
        ? [Replay.standardPolicy(SummarizerInput.withSummaries(choice, yield* SettingsFlags.decode(values)))]
        : yield* Effect.forEach(names.value, (name) => PolicyInput.read(name, settings, known))
      const summarizer = yield* SummarizerInput.make(choice)
      let code = 0
      for (const [at, file] of files.entries()) {
        if (at > 0 && !options.json) yield* Console.log("")
        code = Failed.worse(code, yield* Failed.codeOf(one(file, policies, summarizer, options)))
      }
      return code
    }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))).pipe(
      Command.withDescription(
        "Plays recorded agent sessions request by request, one request before each message of the assistant, and prints "
          + "where the ladder shortened the view, what it freed and what it protected. All sizes are estimated tokens: "
          + "four characters each, images by their size.\n\n"
          + "Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 something was infeasible and --strict was given. A file that "
          + "cannot be read does not stop the others."
      ),
      Command.withShortDescription("Play sessions through the ladder and print what it does"),
      Command.withExamples([
        {
          command: "effect-compaction replay --window 32000 session.jsonl",
          description: "What a window of 32,000 tokens would have done to a session"
        },
        {
          command: "effect-compaction replay --json --window 200000 --clear-at-least 20000 *.jsonl",
          description: "Several sessions as JSON lines, with a clear floor"
        },
        {
          command: "effect-compaction replay --window 200000 --policy contextSimple --policy ./ours.json session.jsonl",
          description: "Two policies side by side"
        },
        {
          command:
            "effect-compaction replay --window 32000 --summarizer extractive --summary trigger=0.7 session.jsonl",
          description: "With summaries, written by an extract that needs no model"
        },
        { command: "cat session.jsonl | effect-compaction replay -", description: "A session from standard input" }
      ])
    )
