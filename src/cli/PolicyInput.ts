/**
 * Which policies a replay compares: presets by name, or policies in files.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Budget from "../Budget.ts"
import type * as Kind from "../Kind.ts"
import * as Policy from "../Policy.ts"
import * as Settings from "../Settings.ts"
import type * as Replay from "./Replay.ts"

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
 * Settings to put over a preset, for the budget that it is played under: what it keeps of one result is no more than half of
 * that. A person chose the window, not the numbers of the preset.
 */
const fitted = (name: string, given: Settings.Input): Settings.Input => {
  const preset = Object.entries<Policy.Policy>(Policy.presets).find(([each]) => each === name)?.[1]
  if (preset?.budgetTokens === undefined) return given
  const written = { ...Policy.options(preset).settings, ...given }
  const settings: Option.Option<Settings.Settings> = Schema.decodeOption(Settings.Settings)(written)
  if (Option.isNone(settings) || given.budgetTokens !== undefined) return given
  const { limit } = Budget.resolve(settings.value)
  return preset.budgetTokens < limit ? given : { ...given, budgetTokens: Math.floor(limit / 2) }
}

/** Reads a policy, with the settings given beside it in place of its own. */
export const read = <Kinds extends ReadonlyArray<Kind.Any>>(
  name: string,
  settings: Settings.Input,
  policies: Policy.Policies<Kinds>
): Effect.Effect<
  Replay.Named<Kind.Error<Kinds[number]>, Kind.Services<Kinds[number]>>,
  PolicyFailed,
  FileSystem.FileSystem | Path.Path
> =>
  policies.load(name, fitted(name, settings)).pipe(
    Effect.mapBoth({
      onFailure: ({ lines }) => new PolicyFailed({ problems: lines.map((line) => `--policy ${line}`) }),
      onSuccess: (policy) => ({ name, ...policies.options(policy) })
    })
  )
