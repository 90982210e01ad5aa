/**
 * What `session preview` does: the pass of a policy over a session that is read and not opened.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as ContextManager from "../ContextManager.ts"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
import * as SessionLog from "../SessionLog.ts"
import type * as Settings from "../Settings.ts"
import type * as Price from "../simulate/Price.ts"
import type * as Stage from "../Stage.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Failed from "./Failed.ts"
import * as PolicyInput from "./PolicyInput.ts"
import * as PreviewText from "./PreviewText.ts"
import * as Replay from "./Replay.ts"
import * as SessionSource from "./SessionSource.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"

/** A policy with summaries needs somebody who writes them, and a preview asks nobody. */
const nobody: Summarizer.Service = {
  cache: "other",
  summarize: () => Effect.fail(new Summarizer.SummarizerFailed({ reason: "a preview asks nobody", isOverflow: false }))
}

const hasBudget = ({ maxTokens, window }: Settings.Input): boolean => window !== undefined || maxTokens !== undefined

/** The policy to look under: where nothing says a budget, it has that of the last request. */
const policyOf = <Kinds extends ReadonlyArray<Kind.Any>>(
  known: Policy.Policies<Kinds>,
  name: Option.Option<string>,
  given: Settings.Input,
  budget: Settings.Input
) => {
  if (Option.isNone(name)) {
    return Effect.succeed(Replay.standardPolicy(hasBudget(given) ? given : { ...budget, ...given }))
  }
  return Effect.filterOrElse(
    PolicyInput.read(name.value, given, known),
    ({ settings }) => hasBudget(settings),
    () => PolicyInput.read(name.value, { ...budget, ...given }, known)
  )
}

interface Values extends SessionSource.Source {
  readonly cause: Stage.Cause
  readonly json: boolean
  readonly policy: Option.Option<string>
  readonly price: Price.PresetName
  readonly settings: SettingsFlags.Values
  readonly strict: boolean
}

/** Prints what a pass would do; fails with the exit code. */
export const run = <Kinds extends ReadonlyArray<Kind.Any>>(
  known: Policy.Policies<Kinds>,
  { cause, json, policy: name, price, settings, strict, ...given }: Values
) =>
  Effect.gen(function*() {
    const input = yield* SettingsFlags.decode(settings)
    const contents = yield* SessionSource.read(given)
    const { state } = yield* SessionLog.fold(contents.path, contents)
    const { name: policy, ...options } = yield* policyOf(known, name, input, SessionSource.budgetOf(state))
    const preview = yield* ContextManager.open("session", options).pipe(
      Effect.flatMap((manager) => manager.preview(cause)),
      Effect.scoped,
      Effect.provideService(Summarizer.Summarizer, nobody),
      SessionSource.provideRead(contents)
    )
    const answer = PreviewText.answer(preview, policy, price)
    yield* Console.log(
      json ? Shown.json({ path: contents.path, ...answer }) : PreviewText.render(contents.path, answer)
    )
    return strict && preview.outcome === "fail" ? Failed.infeasible : 0
  }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))
