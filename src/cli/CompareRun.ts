/**
 * Plays the sessions of `compare` and prints what each policy costs and keeps.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Format from "../format/Format.ts"
import type * as Session from "../format/Session.ts"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
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
import * as PlayFlags from "./PlayFlags.ts"
import * as PolicyInput from "./PolicyInput.ts"
import * as Progress from "./Progress.ts"
import type * as Replay from "./Replay.ts"
import * as Report from "./report/Report.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

const caches = { anthropic: PromptCache.anthropic, openai: PromptCache.openai, none: PromptCache.none }

interface Options {
  readonly format: Option.Option<Session.FormatName>
  readonly json: boolean
  readonly isTraced: boolean
  readonly isLooked: boolean
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
  { format, isLooked, isTraced, json, judge: command, probes: count, world }: Options
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
    isLooked,
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

interface Values extends Pick<Options, "format" | "json" | "judge" | "probes"> {
  readonly cache: keyof typeof caches
  readonly files: ReadonlyArray<string>
  readonly html: Option.Option<string>
  readonly policies: Option.Option<ReadonlyArray<string>>
  readonly price: keyof typeof Price.presets
  readonly reuse: boolean
  readonly settings: SettingsFlags.Values
  readonly strict: boolean
  readonly summarizer: "extractive" | "none"
}

/** Compares the policies over every file; fails with the exit code. */
export const run = <Kinds extends ReadonlyArray<Kind.Any>>(
  known: Policy.Policies<Kinds>,
  {
    cache,
    files,
    format,
    html,
    json,
    judge,
    policies: names,
    price,
    probes,
    reuse,
    settings: values,
    strict,
    summarizer
  }: Values
) =>
  Effect.gen(function*() {
    if (Option.isSome(judge) && probes === 0) {
      yield* Console.error("--judge needs --probes COUNT: without planted facts there is nothing to ask about")
      return Failed.usage
    }
    const settings = yield* SettingsFlags.decode(values)
    const policies = yield* Effect.forEach(
      Option.getOrElse(names, () => PlayFlags.presets),
      (name) => PolicyInput.read(name, SettingsFlags.given(values), known)
    )
    const options: Options = {
      format,
      json,
      isTraced: Option.isSome(html),
      isLooked: reuse,
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
