/**
 * `compact`: the view that the model would get now.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as SessionInput from "./SessionInput.ts"
import * as SettingsFlags from "./SettingsFlags.ts"

/** The command. */
export const command = Command.make("compact", {
  file: SessionInput.file,
  format: SessionInput.format,
  to: Flag.Literals("to", ["openai-chat", "openai-responses", "anthropic-messages", "prompt"]).pipe(
    Flag.withDescription("Format of the view")
  ),
  strict: SessionInput.strict,
  json: Flag.Boolean("json").pipe(
    Flag.withDescription(
      "Print an object that holds the view as its body, beside its size, the boundary and what was lost"
    ),
    Flag.withDefault(false)
  ),
  settings: SettingsFlags.flags
}, (values) => Effect.flatMap(Effect.promise(() => import("./CompactRun.ts")), ({ run }) => run(values))).pipe(
  Command.withDescription(
    "Prints the view of a session that the model would get now, as a JSON body of an API, without model and tools. What "
      + "the target cannot hold is listed on standard error.\n\n"
      + "Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 no view fits: the budget is infeasible and --strict was given, "
      + "or the settings fail the request."
  ),
  Command.withShortDescription("Print the view that the model would get now"),
  Command.withExamples([
    {
      command: "effect-compaction compact --window 200000 --to anthropic-messages session.jsonl",
      description: "The messages of the next request to Anthropic"
    }
  ])
)
