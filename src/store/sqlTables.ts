import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"

/** The names of the tables. */
export interface Tables {
  readonly sessions: string
  readonly log: string
  readonly snapshots: string
  readonly migrations: string
}

export const named = (prefix: string): Tables => ({
  sessions: `${prefix}sessions`,
  log: `${prefix}log`,
  snapshots: `${prefix}snapshots`,
  migrations: `${prefix}migrations`
})

/** A number as drivers give it: those of 64 bits are a text or a bigint for some. */
type Numeric = number | bigint | string

export interface SessionRow {
  readonly name: string
  readonly epoch: Numeric
  readonly holder: string
  readonly opened: string
}

export interface LogRow {
  readonly seq: Numeric
  readonly part: Numeric
  readonly count: Numeric
  readonly events: string
}

export interface SnapshotRow {
  readonly state: string
}

/**
 * The tables as they were made, one step after the other; a step that was released is never changed.
 *
 * All that is JSON is text: a type that knows JSON would give keys in another order, and another order is another prefix
 * for the cache of a provider.
 */
const steps = (tables: Tables): ReadonlyArray<Migrator.ResolvedMigration> => [
  [
    1,
    "sessions",
    Effect.succeed(Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE ${sql(tables.sessions)} (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, epoch BIGINT NOT NULL, holder TEXT NOT NULL, opened TEXT NOT NULL)`
      yield* sql`CREATE TABLE ${sql(tables.log)} (
        session TEXT NOT NULL, seq BIGINT NOT NULL, part INTEGER NOT NULL, count INTEGER NOT NULL, events TEXT NOT NULL,
        PRIMARY KEY (session, seq, part))`
      yield* sql`CREATE TABLE ${sql(tables.snapshots)} (
        session TEXT NOT NULL, part INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (session, part))`
    }))
  ]
]

/** Makes the tables where they are not, and brings them up to date where they are. */
export const migrate = (tables: Tables) =>
  Migrator.make({})({ loader: Effect.succeed(steps(tables)), table: tables.migrations })
