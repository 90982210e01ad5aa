/**
 * `compare`: what policies cost and keep in recorded sessions.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
import * as PlayFlags from "./PlayFlags.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"

const cache = Flag.Literals("cache", PlayFlags.caches).pipe(
  Flag.withMetavar("RULES"),
  Flag.withDescription("Rules of the prompt cache: anthropic, openai or none (default anthropic)"),
  Flag.withDefault("anthropic" as const)
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

const reuse = Flag.Boolean("reuse").pipe(
  Flag.withDescription(
    "Also say what of the recording's own later use is in view, beside the newest messages and random ones of the same "
      + "size, and how many messages of people are whole"
  ),
  Flag.withDefault(false)
)

/** The command, for policies whose ladder is written in these kinds. */
export const make = <Kinds extends ReadonlyArray<Kind.Any>>(known: Effect.Effect<Policy.Policies<Kinds>>) =>
  Command.make(
    "compare",
    {
      files: SessionInput.files,
      format: SessionInput.format,
      strict: SessionInput.strict,
      json: SessionInput.json,
      policies: PlayFlags.policies,
      cache,
      price: PlayFlags.price,
      summarizer,
      probes,
      reuse,
      judge: PlayFlags.judge,
      html: PlayFlags.html("Write a report with charts and what became of every entry: one page that needs no network"),
      settings: SettingsFlags.flags
    },
    (values) =>
      Effect.flatMap(
        Effect.all([Effect.promise(() => import("./CompareRun.ts")), known]),
        ([{ run }, policies]) => run(policies, values)
      )
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
