/**
 * Which policies a replay compares: presets by name, or policies in files.
 *
 * @since 0.1.0
 */
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Budget from "../Budget.ts"
import { errorAt } from "../format/parts/jsonLines.ts"
import * as Policy from "../Policy.ts"
import type * as RungKind from "../RungKind.ts"
import * as Settings from "../Settings.ts"
import type * as Replay from "./Replay.ts"

const names = Object.keys(Policy.presets).join(", ")

/** The policies, in the order in which they are compared. */
export const flag = Flag.String("policy").pipe(
  Flag.withMetavar("NAME|FILE"),
  Flag.withDescription(
    `Policy to play under: a preset (${names}) or a JSON file; several are compared, and the flags of settings come before `
      + "what a policy says"
  ),
  Flag.atLeast(1),
  Flag.optional
)

/** Fails when a policy is no preset, cannot be read, or does not decode: one line for each problem. */
export class PolicyFailed extends Schema.TaggedError<PolicyFailed>("effect-compaction/cli/PolicyFailed")(
  "PolicyFailed",
  { problems: Schema.Array(Schema.String) }
) {
  get lines() {
    return this.problems
  }
  override get message() {
    return this.problems.join("\n")
  }
}

/**
 * A preset for the budget that it is played under: what it keeps of one result is no more than half of that. A person chose
 * the window, not the numbers of the preset.
 */
const fitted = <A extends Settings.Input>(preset: A, given: Settings.Input): A => {
  const { budgetTokens } = preset
  const settings: Option.Option<Settings.Settings> = Schema.decodeOption(Settings.Settings)({ ...preset, ...given })
  if (budgetTokens === undefined || Option.isNone(settings)) return preset
  const { limit } = Budget.resolve(settings.value)
  return budgetTokens < limit ? preset : { ...preset, budgetTokens: Math.floor(limit / 2) }
}

/** What a person wrote: a preset, or what the file of that name holds. */
const load = Effect.fnUntraced(function*(
  name: string,
  given: Settings.Input
): Effect.fn.Return<object, PolicyFailed, FileSystem.FileSystem> {
  const preset = Object.entries<Policy.Policy>(Policy.presets).find(([each]) => each === name)
  // As a file would write it: a duration of a preset is a value already.
  if (preset !== undefined) return fitted({ ...Policy.options(preset[1]).settings, ladder: preset[1].ladder }, given)
  const files = yield* FileSystem.FileSystem
  const text = yield* files.readFileString(name).pipe(
    Effect.mapError((error) => {
      const reason = error.reason._tag === "NotFound" ? "there is no such file either" : "the file cannot be read"
      return new PolicyFailed({ problems: [`--policy ${name}: write one of ${names}, or a JSON file: ${reason}`] })
    })
  )
  const value: unknown = yield* Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: () => {
      const line = text.slice(0, errorAt(text)).split("\n").length
      return new PolicyFailed({ problems: [`${name}:${line}: expected the JSON of a policy`] })
    }
  })
  // A value of another type has no keys to come before; its decoder says what it should be.
  return Object(value) === value ? value as object : yield* new PolicyFailed({
    problems: [`${name}:1: expected an object in braces, { … }`]
  })
})

/** A policy with settings in place of its own; of its summary, key by key. */
const merged = (written: { readonly summary?: unknown }, settings: Settings.Input): object => ({
  ...written,
  ...settings,
  ...(settings.summary === undefined
    ? undefined
    : { summary: { ...(typeof written.summary === "object" ? written.summary : undefined), ...settings.summary } })
})

/** Reads a policy, with the settings given beside it in place of its own. */
export const read = Effect.fnUntraced(function*<Kinds extends ReadonlyArray<RungKind.Any>>(
  name: string,
  settings: Settings.Input,
  policies: Policy.Policies<Kinds>
): Effect.fn.Return<
  Replay.Named<RungKind.Error<Kinds[number]>, RungKind.Services<Kinds[number]>>,
  PolicyFailed,
  FileSystem.FileSystem
> {
  const written = yield* load(name, settings)
  const policy = yield* policies.decode(Array.isArray(written) ? written : merged(written, settings)).pipe(
    Effect.mapError(({ message }) =>
      new PolicyFailed({ problems: message.split("\n").map((problem) => `${name}: ${problem}`) })
    )
  )
  return { name, ...policies.options(policy) }
})
