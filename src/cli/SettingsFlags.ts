/**
 * A flag for every key of `Settings`, and the settings that the flags say.
 *
 * @since 0.1.0
 */
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Budget from "../Budget.ts"
import * as Settings from "../Settings.ts"

const defaults = Schema.decodeSync(Settings.Settings)({})

const flag = <A>(self: Flag.Flag<A>, metavar: string, description: string): Flag.Flag<Option.Option<A>> =>
  self.pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

const literal = <A extends string>(self: Flag.Flag<A>, description: string): Flag.Flag<Option.Option<A>> =>
  self.pipe(Flag.withDescription(description), Flag.optional)

/**
 * The flags, by the key that each of them sets.
 */
export const flags = {
  window: flag(
    Flag.Int("window"),
    "TOKENS",
    "Context window of the model, in tokens. The budget is the window less output-reserve × max-output and "
      + `${Settings.windowMargin} tokens. Without it the budget is ${Budget.fallback} tokens`
  ),
  maxOutput: flag(
    Flag.Int("max-output"),
    "TOKENS",
    `Longest answer of the model, in tokens (default ${defaults.maxOutput})`
  ),
  outputReserve: flag(
    Flag.Finite("output-reserve"),
    "RATIO",
    `Share of max-output that is kept free in the window, from 0 to 1 (default ${defaults.outputReserve})`
  ),
  maxTokens: flag(Flag.Int("max-tokens"), "TOKENS", "Caps the budget, in tokens"),
  compactThreshold: flag(
    Flag.Finite("threshold"),
    "RATIO",
    `A pass runs when a request reaches this ratio of the budget, above 0 and up to 1 (default ${defaults.compactThreshold})`
  ),
  targetUsage: flag(
    Flag.Finite("target"),
    "RATIO",
    `A pass aims at this ratio of the budget, from 0 to below the threshold (default ${defaults.targetUsage})`
  ),
  protectedRecent: flag(
    Flag.Finite("protected-recent"),
    "RATIO",
    `Share of the conversation, counted from its end, that is not removed, from 0 to 1 (default ${defaults.protectedRecent})`
  ),
  protectedToolResults: flag(
    Flag.Int("protected-tool-results"),
    "COUNT",
    "How many of the newest tool results are neither truncated nor removed; 0 protects none "
      + `(default ${defaults.protectedToolResults})`
  ),
  truncateChars: flag(
    Flag.Int("truncate-chars"),
    "CHARS",
    `What a truncated tool result keeps, in characters (default ${defaults.truncateChars})`
  ),
  shape: literal(
    Flag.Literals("shape", ["head", "headTail"]),
    `Keep the beginning of a truncated tool result, or both ends (default ${defaults.shape})`
  ),
  budgetTokens: flag(
    Flag.Int("budget-tokens"),
    "TOKENS",
    "What a truncated tool result keeps, in tokens; comes before truncate-chars"
  ),
  budgetByTool: flag(
    Flag.KeyValuePair("budget-by-tool").pipe(
      Flag.map((pairs) => Object.entries(pairs).map(([tool, tokens]) => [tool, Number(tokens)] as const)),
      Flag.filter(
        (pairs) => pairs.every(([, tokens]) => Number.isFinite(tokens)),
        () => "write TOOL=TOKENS, for example Bash=2000"
      ),
      Flag.map((pairs): { readonly [tool: string]: number } => Object.fromEntries(pairs))
    ),
    "TOOL=TOKENS",
    "What a truncated result of one tool keeps, in tokens; may be given several times"
  ),
  exemptTools: flag(
    Flag.String("exempt-tool").pipe(Flag.atLeast(1)),
    "TOOL",
    "Tool whose results are never truncated; may be given several times"
  ),
  clearAtLeast: flag(
    Flag.Finite("clear-at-least"),
    "FLOOR",
    "What a pass must free to be worth a cold prompt cache: below 1 a ratio of the budget, else tokens (default off)"
  ),
  maxConsecutiveSkips: flag(
    Flag.Int("max-consecutive-skips"),
    "COUNT",
    `How many refusals by clear-at-least in a row become an error (default ${defaults.maxConsecutiveSkips})`
  ),
  clearFloorWhenOverBudget: literal(
    Flag.Literals("clear-floor-when-over-budget", ["refuse", "override"]),
    "Whether clear-at-least also refuses a pass that brings a view over the budget back under it "
      + `(default ${defaults.clearFloorWhenOverBudget})`
  ),
  whenInfeasible: literal(
    Flag.Literals("when-infeasible", ["send", "fail"]),
    `When nothing legal fits the budget, send the smallest view or fail the request (default ${defaults.whenInfeasible})`
  ),
  notice: Flag.Boolean("notice").pipe(
    Flag.withDescription("Keep room for the compaction notice (the default)"),
    Flag.optional
  ),
  noticeReserve: flag(
    Flag.Int("notice-reserve"),
    "TOKENS",
    `Room for the compaction notice, in tokens (default ${defaults.noticeReserve})`
  )
}

/** The values of the flags as they were given. */
export type Values = { readonly [K in keyof typeof flags]: Option.Option<unknown> }

/**
 * Fails when a flag has a value that is no setting: which flag, and what to write instead.
 */
export class SettingsError extends Schema.TaggedError<SettingsError>("effect-compaction/cli/SettingsError")(
  "SettingsError",
  { problems: Schema.Array(Schema.Struct({ flag: Schema.String, key: Schema.String, expected: Schema.String })) }
) {
  override get message() {
    return this.problems.map(({ expected, flag, key }) => `${flag}: ${key}: ${expected}`).join("\n")
  }
}

/** The flag of a key, by the key. */
const names: { readonly [key: string]: string } = {
  compactThreshold: "threshold",
  targetUsage: "target",
  exemptTools: "exempt-tool"
}

const nameOf = (key: string): string =>
  `--${names[key] ?? key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** A flag as it was given; of one that takes a value for each tool, that of the tool. */
const given = (key: string, tool: string | undefined, value: unknown): string => {
  if (value === undefined) return nameOf(key)
  const ofTool = typeof value === "object" ? Object.entries(value ?? {}).find(([name]) => name === tool) : undefined
  return `${nameOf(key)} ${ofTool === undefined ? JSON.stringify(value) : `${ofTool[0]}=${ofTool[1]}`}`
}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * Decodes the settings that the flags say. Fails with a `SettingsError` that has all problems.
 */
export const decode = (values: Values): Effect.Effect<Settings.Settings, SettingsError> => {
  const input: { [key: string]: unknown } = {}
  for (const [key, value] of Object.entries(values)) if (Option.isSome(value)) input[key] = value.value
  return Settings.decode(input).pipe(
    Effect.mapError(({ issue }) =>
      new SettingsError({
        problems: issuesOf(issue).issues.map(({ message, path = [] }) => {
          const keys = path.map((segment) => String(typeof segment === "object" ? segment.key : segment))
          const [key = "", tool] = keys
          return { flag: given(key, tool, input[key]), key: keys.join("."), expected: message }
        })
      })
    )
  )
}
