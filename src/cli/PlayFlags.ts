/**
 * The flags of commands that play sessions. What they name is loaded only when it is played: the help needs the names alone.
 *
 * @since 0.1.0
 */
import * as Flag from "effect/cli/Flag"
import type * as Policy from "../Policy.ts"
import * as Price from "../simulate/Price.ts"
import * as ShellCommand from "./ShellCommand.ts"

// Literals want a tuple that is not empty, which no list of keys is known to be.
const keysOf = <K extends string>(record: { readonly [P in K]: unknown }): [K, ...Array<K>] =>
  Object.keys(record) as [K, ...Array<K>]

/** The names of the presets; a record, so that one that is missing does not compile. */
export const presets = keysOf<keyof typeof Policy.presets>({
  contextSimple: 0,
  contextSimpleHybrid: 0,
  contextSimpleSummary: 0,
  deepseekHarness: 0,
  codex: 0,
  claudeCode: 0,
  openCode: 0,
  anthropicContextEditing: 0,
  slidingWindow: 0,
  none: 0,
  recommended: 0
})

/** The rules of prompt caches, and no cache. */
export const caches = keysOf<"anthropic" | "openai" | "none">({
  anthropic: 0,
  openai: 0,
  none: 0
})

/** The policies to play under, in the order in which they are compared. */
export const policies = Flag.String("policy").pipe(
  Flag.withMetavar("NAME|FILE"),
  Flag.withDescription(
    `Policy to play under: a preset (${
      presets.join(", ")
    }) or a JSON file; several are compared, and the flags of settings come `
      + "before what a policy says"
  ),
  Flag.atLeast(1),
  Flag.optional
)

/** The list price that dollars rest on. */
export const price = Flag.Literals("price", keysOf(Price.presets)).pipe(
  Flag.withMetavar("MODEL"),
  Flag.withDescription(
    `List price of tokens: ${Object.keys(Price.presets).join(", ")} (default claude-opus-4-5)`
  ),
  Flag.withDefault("claude-opus-4-5" as const)
)

/** After which message a replay stops to look ahead. */
export const at = Flag.Int("at").pipe(
  Flag.withMetavar("COUNT"),
  Flag.filter((count) => count > 0, () => "write after how many messages, from 1"),
  Flag.withDescription(
    "Print what a pass would do after so many messages (--cause says which pass), in place of what every request did"
  ),
  Flag.optional
)

/** Why a pass is made that is looked at ahead. */
export const cause = Flag.Literals("cause", ["pressure", "manual", "overflow"]).pipe(
  Flag.withDescription(
    "Why the pass is made: pressure, as the next request would make it, manual, as a person would, or overflow, after the "
      + "provider refused the last request (default pressure)"
  ),
  Flag.withDefault("pressure" as const)
)

/** Nobody, the extract that needs no model, or a command. */
export type Choice =
  | { readonly _tag: "none" }
  | { readonly _tag: "extractive" }
  | { readonly _tag: "command"; readonly command: string }

const choiceOf = (text: string): Choice | undefined => {
  if (text === "none" || text === "extractive") return { _tag: text }
  const command = ShellCommand.read(text)
  return command === undefined ? undefined : { _tag: "command", command }
}

/** Who writes the summaries of a replay; without it nobody does, whatever a policy says. */
export const summarizer = Flag.String("summarizer").pipe(
  Flag.withMetavar("extractive|none|command:CMD"),
  Flag.withDescription(
    "Who writes summaries: an extract without a model, nobody (the default), or a command of the shell that reads the span "
      + "and the directive on standard input and prints the summary. It turns summaries on where a policy has none"
  ),
  Flag.withDefault("none"),
  Flag.filter(
    (text) => choiceOf(text) !== undefined,
    (text) => `write extractive, none, or command: and a command, for example "command:llm -m small"; not ${text}`
  ),
  Flag.map((text): Choice => choiceOf(text) ?? { _tag: "none" })
)

/** The command that is asked what a view still tells. */
export const judge = Flag.String("judge").pipe(
  Flag.withMetavar("command:CMD"),
  Flag.withDescription(
    "A command of the shell that says which of the planted facts the last view of a policy still tells: it reads "
      + "{ facts, view } on standard input and prints an object of \"kept\", \"lost\" or \"stale\" by id. Needs --probes"
  ),
  Flag.filter(
    (text) => ShellCommand.read(text) !== undefined,
    (text) => `write command: and a command, for example "command:node judge.mjs"; not ${text}`
  ),
  Flag.map((text) => ShellCommand.read(text) ?? ""),
  Flag.optional
)

/** The page that a command writes beside what it prints. */
export const html = (description: string) =>
  Flag.String("html").pipe(Flag.withMetavar("FILE"), Flag.withDescription(description), Flag.optional)
