/**
 * `session …`: a session in its directory or database, as its log tells. But for `undo` nothing is opened, locked or repaired.
 *
 * @since 0.1.0
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Kind from "../Kind.ts"
import type * as Policy from "../Policy.ts"
import * as PlayFlags from "./PlayFlags.ts"
import * as SessionInput from "./SessionInput.ts"
import * as SessionMcp from "./SessionMcp.ts"
import * as SessionSource from "./SessionSource.ts"
import * as SettingsFlags from "./SettingsFlags.ts"

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

const page = Command.make(
  "html",
  {
    ...SessionSource.source,
    target: Argument.String("file").pipe(
      Argument.withDescription("The file to write; without it, or with -, standard output"),
      Argument.optional
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print the data of the page as one line of JSON"),
      Flag.withDefault(false)
    )
  },
  (values) => Effect.flatMap(Effect.promise(() => import("./SessionHtml.ts")), ({ run }) => run(values))
).pipe(
  Command.withDescription(
    "Writes what became of every entry of a session, request by request, and what each boundary cost and saved: one page that "
      + "needs no network, as that of replay --html.\n\nExit codes: 0 fine, 1 bad input, 2 wrong usage."
  ),
  Command.withShortDescription("Write a page that shows what became of a session")
)

const policy = Flag.String("policy").pipe(
  Flag.withMetavar("NAME|FILE"),
  Flag.withDescription("Policy of the pass: a preset, recommended by default, or a JSON file"),
  Flag.optional
)

const preview = <Kinds extends ReadonlyArray<Kind.Any>>(known: Effect.Effect<Policy.Policies<Kinds>>) =>
  Command.make(
    "preview",
    {
      ...SessionSource.source,
      cause: PlayFlags.cause,
      json: SessionInput.json,
      policy,
      price: PlayFlags.price,
      strict: Flag.Boolean("strict").pipe(
        Flag.withDescription("End with exit code 3 when the pass would fail"),
        Flag.withDefault(false)
      ),
      settings: SettingsFlags.flags
    },
    (values) =>
      Effect.flatMap(
        Effect.all([Effect.promise(() => import("./SessionPreview.ts")), known]),
        ([{ run }, policies]) => run(policies, values)
      )
  ).pipe(
    Command.withDescription(
      "Says what a pass would do now: what becomes of the entries of the view, its tokens before and after, the rungs that do "
        + "it, and what writing the cache anew costs. Nothing is decided or written, and no model is asked. The budget is "
        + "that of the last request, unless a flag or the policy says another.\n\n"
        + "Exit codes: 0 fine, 1 bad input, 2 wrong usage, 3 the pass would fail and --strict was given."
    ),
    Command.withShortDescription("Say what a compaction would do now")
  )

const undo = Command.make(
  "undo",
  {
    ...SessionSource.source,
    generation: Argument.Int("generation").pipe(
      Argument.withDescription(
        "The generation that the boundary made, from 1; session inspect prints that of the last one"
      )
    ),
    json: SessionInput.json,
    maxTokens: Flag.Int("max-tokens").pipe(
      Flag.withMetavar("TOKENS"),
      Flag.withDescription("The budget that the view must fit then, in place of that of the last request"),
      Flag.optional
    )
  },
  (values) => Effect.flatMap(Effect.promise(() => import("./SessionUndo.ts")), ({ run }) => run(values))
).pipe(
  Command.withDescription(
    "Takes back the boundary that made a generation, and all later ones, by one event of the log: the view is what it was "
      + "before, with what came since. The session is opened for it; one in a directory must be closed, and one in a "
      + "database is taken from whoever has it open. Nothing is written when it is refused.\n\nExit codes: 0 fine, 1 bad "
      + "input or no such boundary, 2 wrong usage, 3 the view would not fit the budget."
  ),
  Command.withShortDescription("Take a compaction back")
)

/** The command, for policies whose ladder is written in these kinds. */
export const make = <Kinds extends ReadonlyArray<Kind.Any>>(known: Effect.Effect<Policy.Policies<Kinds>>) =>
  Command.make("session").pipe(
    Command.withDescription(
      "Looks into a session that is kept in a directory, or in a database (--sql). But for undo nothing is opened, locked or "
        + "repaired."
    ),
    Command.withShortDescription("Look into the log of a session"),
    Command.withSubcommands([inspect, verify, explain, exported, preview(known), undo, page, SessionMcp.command])
  )
