/**
 * The sessions of a PostgreSQL. This file is loaded only where one is asked for.
 *
 * @since 0.1.0
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SessionStore from "../SessionStore.ts"
import * as Sql from "../store/sql.ts"

/** Reads a session of the tables that begin with a prefix; a database that cannot be reached is a store that cannot read. */
export const read = (url: string, prefix: string, id: string) =>
  Sql.readOf(prefix, id).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1, connectTimeout: "10 seconds" })),
    // The URL holds a password, and is not said.
    Effect.catchTag("SqlError", ({ message }) =>
      Effect.fail(new SessionStore.SessionStoreError({ operation: "read", path: "the database", reason: message })))
  )
