/**
 * `session inspect`, `session verify`, `session explain` and `session export`: a session in its directory or
 * database, as its log tells. Nothing is opened, locked or repaired.
 *
 * @since 0.1.0
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as SessionInput from "./SessionInput.ts"
import * as SessionMcp from "./SessionMcp.ts"
import * as SessionSource from "./SessionSource.ts"

const seq = Argument.Int("seq").pipe(Argument.withDescription("The entry, from 0"))

const target = Argument.String("file").pipe(
  Argument.withDescription("The file to write, which must not be there; - writes standard output")
)

const runs = Effect.promise(() => import("./SessionRun.ts"))

const inspect = Command.make(
  "inspect",
  { ...SessionSource.source, json: SessionInput.json },
  (values) => Effect.flatMap(runs, (run) => run.inspect(values))
).pipe(
  Command.withDescription(
    "Prints what the log of a session says: its events by kind, entries and decisions, the view, what was billed, and "
      + "whether a request or a compaction was left open.\n\nExit codes: 0 fine, 1 bad input, 2 wrong usage."
  ),
  Command.withShortDescription("Print what a log says")
)

const verify = Command.make(
  "verify",
  SessionSource.source,
  (values) => Effect.flatMap(runs, (run) => run.verify(values))
)
  .pipe(
    Command.withDescription(
      "Reads the whole log of a session and says whether every line is as it was written and every event can follow the one "
        + "before. What is wrong is named with file and line.\n\nExit codes: 0 it holds, 1 it does not, or its end is torn, 2 "
        + "wrong usage."
    ),
    Command.withShortDescription("Check a log from its first line to its last")
  )

const explain = Command.make(
  "explain",
  { ...SessionSource.source, seq },
  (values) => Effect.flatMap(runs, (run) => run.explain(values))
).pipe(
  Command.withDescription(
    "Says what has become of an entry: in the view, altered, covered by a checkpoint, or lost, and when.\n\nExit codes: 0 "
      + "fine, 1 bad input or no such entry, 2 wrong usage."
  ),
  Command.withShortDescription("Say what has become of an entry")
)

const exported = Command.make(
  "export",
  { ...SessionSource.source, target },
  (values) => Effect.flatMap(runs, (run) => run.exportTo(values))
).pipe(
  Command.withDescription(
    "Writes the session as one line of JSON, as `manager.export` gives it and `manager.restore` takes it.\n\nExit codes: 0 "
      + "fine, 1 bad input or the file is there already, 2 wrong usage."
  ),
  Command.withShortDescription("Write a session as JSON")
)

/** The command. */
export const command = Command.make("session").pipe(
  Command.withDescription(
    "Looks into a session that is kept in a directory, or in a database (--sql). Nothing is opened, locked or repaired."
  ),
  Command.withShortDescription("Look into the log of a session"),
  Command.withSubcommands([inspect, verify, explain, exported, SessionMcp.command])
)
