/**
 * Which durable session a command looks into: one in a directory, or one of a database.
 *
 * @since 0.1.0
 */
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as SessionStore from "../SessionStore.ts"

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
