/**
 * What `session undo` does: a compaction is taken back by an event of the log.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as ContextManager from "../ContextManager.ts"
import * as SessionLog from "../SessionLog.ts"
import type * as Settings from "../Settings.ts"
import * as Failed from "./Failed.ts"
import * as SessionSource from "./SessionSource.ts"
import * as SettingsFlags from "./SettingsFlags.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

const undo = (settings: Settings.Input, generation: number) =>
  Effect.scoped(Effect.gen(function*() {
    // What came in stays as it came: nothing but the compaction is to change.
    const manager = yield* ContextManager.open("session", { settings: { ...settings, maxToolResultBytes: null } })
    const told = yield* manager.undo(generation)
    yield* manager.flush
    return told
  }))

interface Values extends SessionSource.Source {
  readonly generation: number
  readonly json: boolean
  readonly maxTokens: SettingsFlags.Values["maxTokens"]
}

/** Takes a boundary and all later ones back, and prints what that did; fails with the exit code. */
export const run = ({ generation, json, maxTokens, ...given }: Values) =>
  Effect.gen(function*() {
    const input = yield* SettingsFlags.decode({ maxTokens })
    const contents = yield* SessionSource.read(given)
    const { state } = yield* SessionLog.fold(contents.path, contents)
    const undoing = undo({ ...SessionSource.budgetOf(state), ...input }, generation)
    // Tried on what was read first: what is refused takes the session from nobody and writes nothing.
    yield* SessionSource.provideRead(contents)(undoing)
    const told = yield* SessionSource.writing(given, undoing)
    yield* Console.log(
      json
        ? Shown.json({ path: contents.path, ...told })
        : `${Shown.line(contents.path)}: ${Table.count(told.boundaries, "boundary", "boundaries")} from generation ${
          Table.number(told.from)
        } on taken back, with ${Table.count(told.decisions, "decision")}; the view is ${
          Table.count(told.after, "token")
        }, it was ${Table.number(told.before)}; generation ${Table.number(told.generation)}`
    )
    return 0
  }).pipe(
    Effect.catchTag("UndoCannotFit", (error) => Effect.as(Failed.say(error), Failed.infeasible)),
    Failed.codeOf,
    Effect.flatMap(Failed.end)
  )
