/**
 * `inspect`: what a recorded session holds.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as SessionInput from "./SessionInput.ts"

/** The command. */
export const command = Command.make("inspect", {
  file: SessionInput.file,
  format: SessionInput.format,
  json: SessionInput.json
}, (values) => Effect.flatMap(Effect.promise(() => import("./InspectRun.ts")), ({ run }) => run(values))).pipe(
  Command.withDescription(
    "Prints what a recorded session holds: its format and why it was taken for it, messages and entries by role, tool "
      + "results and their share, the largest of them, what was billed, what the reader found, and where the session as "
      + "it was recorded breaks the rules of a provider, and what of it the formats of providers cannot hold. Tokens are "
      + "estimated; characters are UTF-16 code units.\n\n"
      + "Exit codes: 0 fine, 1 bad input, 2 wrong usage."
  ),
  Command.withShortDescription("Print what a session holds"),
  Command.withExamples([
    { command: "effect-compaction inspect session.jsonl", description: "What is in a session" },
    {
      command: "effect-compaction inspect --json --format openai-chat body.json",
      description: "The same as one line of JSON, of a file whose format is named"
    }
  ])
)
