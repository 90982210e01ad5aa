/**
 * Which durable session a command looks into: one in a directory, or one of a database.
 *
 * @since 0.1.0
 */
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Session from "../Session.ts"
import * as SessionStore from "../SessionStore.ts"
import type * as Settings from "../Settings.ts"

/** The session, and where it lies. */
export const source = {
  session: Argument.String("session").pipe(
    Argument.withDescription("The directory of the session, with its log.jsonl; with --sql the id of its conversation")
  ),
  sql: Flag.String("sql").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("The PostgreSQL that holds it, as in postgres://user:password@host:5432/database"),
    Flag.optional
  ),
  prefix: Flag.String("sql-prefix").pipe(
    Flag.withMetavar("TEXT"),
    Flag.withDescription("How the names of its tables begin"),
    Flag.withDefault("compaction_")
  )
}

/** What a command was given. */
export interface Source {
  readonly session: string
  readonly sql: Option.Option<string>
  readonly prefix: string
}

/** Reads the session, without opening it. */
export const read = ({ prefix, session, sql }: Source) =>
  Option.isNone(sql)
    ? SessionStore.readDirectory(session)
    : Effect.flatMap(
      Effect.promise(() => import("./Database.ts")),
      (database) => database.read(sql.value, prefix, session)
    )

/** A store of one log, open already. */
const storeOf = (log: SessionStore.Log): SessionStore.SessionStore["Service"] => ({
  open: () => Effect.succeed(log),
  read: () => Effect.map(log.read({ whole: true }), (contents) => ({ ...contents, path: log.name, torn: 0 })),
  list: Effect.succeed([])
})

/** Provides a store that has this session as it was read. What is written to it is written nowhere. */
export const provideRead = (reading: SessionStore.Reading) =>
  Effect.provideService(
    SessionStore.SessionStore,
    storeOf({
      name: reading.path,
      repair: null,
      append: () => Effect.void,
      read: () => Effect.succeed(reading),
      flush: Effect.void,
      snapshot: () => Effect.void
    })
  )

/** Does something with a session that is opened for writing, and provided as the one of its store. */
export const writing = <A, E, R>({ prefix, session, sql }: Source, use: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.flatMap(
      Option.isNone(sql)
        ? SessionStore.openDirectory(session)
        : Effect.flatMap(
          Effect.promise(() => import("./Database.ts")),
          (database) => database.open(sql.value, prefix, session)
        ),
      (log) => Effect.provideService(use, SessionStore.SessionStore, storeOf(log))
    )
  )

/** A window that holds any budget and what is kept free beside it. */
const windowOver = (budget: number): number => 2 * budget + 100_000

/** Settings under which the budget is that of the last request of a session; none where there was none. */
export const budgetOf = ({ resolved }: Session.State): Settings.Input => {
  if (resolved === null) return {}
  const { limit, overhead, total } = resolved
  return { window: windowOver(total), maxTokens: total, noticeReserve: Math.max(0, total - overhead - limit) }
}
