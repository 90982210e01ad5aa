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
import * as TokenMeter from "../TokenMeter.ts"

const { defaults } = Settings

const flag = <A>(self: Flag.Flag<A>, metavar: string, description: string): Flag.Flag<Option.Option<A>> =>
  self.pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

const plain = <A>(self: Flag.Flag<A>, description: string): Flag.Flag<Option.Option<A>> =>
  self.pipe(Flag.withDescription(description), Flag.optional)

/** A number or a boolean as it is written, or the text itself. */
const valueOf = (text: string): unknown => {
  if (text === "true" || text === "false") return text === "true"
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text
}

/** A flag that is given once for each key of an object. */
const keys = (name: string) =>
  Flag.KeyValuePair(name).pipe(
    Flag.map((pairs): { readonly [key: string]: unknown } =>
      Object.fromEntries(Object.entries(pairs).map(([key, text]) => [key, valueOf(text)]))
    )
  )

/**
 * The flags, by the key that each of them sets.
 */
export const flags = {
  window: flag(
    Flag.Int("window"),
    "TOKENS",
    "Context window of the model, in tokens. The budget is the window less output-reserve × max-output and "
      + `${Settings.windowMargin} tokens, a small one less than that. Without it the budget is ${Budget.fallback} tokens`
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
  standingInstructions: flag(
    Flag.Finite("standing-instructions"),
    "RATIO",
    "Share of the budget in which what people want for good stays word for word; 0 turns it off "
      + `(default ${defaults.standingInstructions})`
  ),
  truncateChars: flag(
    Flag.Int("truncate-chars"),
    "CHARS",
    `What a truncated tool result keeps, in characters (default ${defaults.truncateChars})`
  ),
  shape: plain(
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
    Flag.String("clear-at-least").pipe(Flag.map(valueOf)),
    "FLOOR",
    "What a pass must free to be worth a cold prompt cache: below 1 a ratio of the budget, else tokens; auto, what pays for "
      + "the cache (default off)"
  ),
  cacheLife: flag(
    Flag.String("cache-life").pipe(Flag.map(valueOf)),
    "DURATION",
    "How long the provider keeps a prefix that nobody asks for, for example \"5 minutes\" (default unknown)"
  ),
  whenCold: flag(
    keys("when-cold"),
    "KEY=VALUE",
    "How a pass is made where the prefix is cold anyway, for example threshold=0.5 and target=0.3, both given"
  ),
  maxConsecutiveSkips: flag(
    Flag.Int("max-consecutive-skips"),
    "COUNT",
    `How many refusals by clear-at-least in a row become an error (default ${defaults.maxConsecutiveSkips})`
  ),
  countSkips: plain(
    Flag.Literals("count-skips", ["every", "whenGrown"]),
    "Count every refusal by clear-at-least, or only one that says something new: the view has grown so far that the pass "
      + "had to free enough "
      + `(default ${defaults.countSkips})`
  ),
  clearFloorWhenOverBudget: plain(
    Flag.Literals("clear-floor-when-over-budget", ["refuse", "override"]),
    "Whether clear-at-least also refuses a pass that brings a view over the budget back under it "
      + `(default ${defaults.clearFloorWhenOverBudget})`
  ),
  whenInfeasible: plain(
    Flag.Literals("when-infeasible", ["send", "fail"]),
    `When nothing legal fits the budget, send the smallest view or fail the request (default ${defaults.whenInfeasible})`
  ),
  meter: plain(
    Flag.Literals("meter", TokenMeter.Mode.literals),
    `Which count drives the gates (default ${defaults.meter})`
  ),
  sizing: plain(
    Flag.Literals("sizing", ["price", "provider"]),
    "Size the work of a pass in estimated prices or in tokens of the provider (default provider with the calibrated "
      + "meter, else price)"
  ),
  provenanceGate: plain(
    Flag.Boolean("provenance-gate"),
    "Decide nothing on an estimate before the budget is full (default on with the hybrid meter, else off)"
  ),
  strict: plain(
    Flag.Boolean("strict-target"),
    "Fail a request whose target lies below the system prompt and the tools (default off)"
  ),
  maxMessages: flag(
    Flag.Int("max-messages"),
    "COUNT",
    "A pass also runs when the view has more entries than this (default off)"
  ),
  maxToolResultBytes: flag(
    Flag.Int("max-tool-result-bytes"),
    "BYTES",
    "Caps each tool result when it comes in, in UTF-8 bytes (default off)"
  ),
  maxImages: flag(
    Flag.Int("max-images"),
    "COUNT",
    "How many images and other media a request may have; the oldest become words (default off)"
  ),
  maxRequestBytes: flag(
    Flag.Int("max-request-bytes"),
    "BYTES",
    "Caps the payload of a request, in bytes; the oldest media become words (default off)"
  ),
  signedReasoning: plain(
    Flag.Literals("signed-reasoning", ["strip", "keep"]),
    `What becomes of signed reasoning whose prefix was changed (default ${defaults.signedReasoning})`
  ),
  notice: plain(Flag.Boolean("notice"), "Tell the model after a boundary what was left out (default on)"),
  noticeReserve: flag(
    Flag.Int("notice-reserve"),
    "TOKENS",
    `Room for the compaction notice, in tokens (default ${defaults.noticeReserve})`
  ),
  noticeVerbosity: plain(
    Flag.Literals("notice-verbosity", ["minimal", "normal"]),
    `How much the notice says (default ${defaults.noticeVerbosity})`
  ),
  noticeMinLevel: flag(
    Flag.Int("notice-min-level"),
    "LEVEL",
    `The level of the ladder from which on the notice is given (default ${defaults.noticeMinLevel})`
  ),
  replayLastUser: plain(
    Flag.Boolean("replay-last-user"),
    "Repeat the last human message at the end after a boundary (default off)"
  ),
  summary: flag(
    keys("summary"),
    "KEY=VALUE",
    "How summaries are made, for example trigger=0.7; may be given several times (see --summarizer)"
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
  get lines() {
    return this.problems.map(({ expected, flag, key }) => `${flag}: ${key}: ${expected}`)
  }
  override get message() {
    return this.lines.join("\n")
  }
}

/** The flag of a key, by the key. */
const names: { readonly [key: string]: string } = {
  compactThreshold: "threshold",
  targetUsage: "target",
  strict: "strict-target",
  exemptTools: "exempt-tool"
}

const nameOf = (key: string): string =>
  `--${names[key] ?? key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** A flag as it was given; of one that takes a value for each tool, that of the tool. */
const shown = (key: string, tool: string | undefined, value: unknown): string => {
  if (value === undefined) return nameOf(key)
  const ofTool = typeof value === "object" ? Object.entries(value ?? {}).find(([name]) => name === tool) : undefined
  return `${nameOf(key)} ${ofTool === undefined ? JSON.stringify(value) : `${ofTool[0]}=${ofTool[1]}`}`
}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** What the flags say, as it was given. */
export const given = (values: Partial<Values>): { readonly [key: string]: unknown } => {
  const input: { [key: string]: unknown } = {}
  for (const [key, value] of Object.entries(values)) if (Option.isSome(value)) input[key] = value.value
  return input
}

/**
 * The settings that the flags say, as they are written. Fails with a `SettingsError` that has all problems.
 */
export const decode = (values: Partial<Values>): Effect.Effect<Settings.Input, SettingsError> => {
  const input = given(values)
  return Settings.decode(input).pipe(
    Effect.as(input),
    Effect.mapError(({ issue }) =>
      new SettingsError({
        problems: issuesOf(issue).issues.map(({ message, path = [] }) => {
          const keys = path.map((segment) => String(typeof segment === "object" ? segment.key : segment))
          const [key = "", tool] = keys
          return { flag: shown(key, tool, input[key]), key: keys.join("."), expected: message }
        })
      })
    )
  )
}
