/**
 * `replay`: what the ladder does to recorded sessions.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
import * as PlayFlags from "./PlayFlags.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"

/** The command, for policies whose ladder is written in these kinds. */
export const make = <Kinds extends ReadonlyArray<Kind.Any>>(known: Effect.Effect<Policy.Policies<Kinds>>) =>
  Command.make("replay", {
    files: SessionInput.files,
    format: SessionInput.format,
    strict: SessionInput.strict,
    json: SessionInput.json,
    policies: PlayFlags.policies,
    summarizer: PlayFlags.summarizer,
    html: PlayFlags.html(
      "Write what became of every entry, and what each boundary cost: one page that needs no network"
    ),
    at: PlayFlags.at,
    cause: PlayFlags.cause,
    price: PlayFlags.price,
    settings: SettingsFlags.flags
  }, (values) =>
    Effect.flatMap(
      Effect.all([Effect.promise(() => import("./ReplayRun.ts")), known]),
      ([{ run }, policies]) => run(policies, values)
    )).pipe(
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
        {
          command: "effect-compaction replay --window 32000 --html story.html session.jsonl",
          description: "A page that shows what left the view, when and why, and reads it before and after"
        },
        {
          command: "effect-compaction replay --window 32000 --at 120 session.jsonl",
          description: "What a pass would do after the first 120 messages"
        },
        { command: "cat session.jsonl | effect-compaction replay -", description: "A session from standard input" }
      ])
    )
