/**
 * The sessions of a PostgreSQL. This file is loaded only where one is asked for.
 *
 * @since 0.1.0
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SessionStore from "../SessionStore.ts"
import * as Sql from "../store/sql.ts"

const layer = (url: string) =>
  PgClient.layer({ url: Redacted.make(url), maxConnections: 1, connectTimeout: "10 seconds" })

// The URL holds a password, and is not said.
const unreachable = (operation: "open" | "read") => ({ message }: { readonly message: string }) =>
  Effect.fail(new SessionStore.SessionStoreError({ operation, path: "the database", reason: message }))

/** Reads a session of the tables that begin with a prefix; a database that cannot be reached is a store that cannot read. */
export const read = (url: string, prefix: string, id: string) =>
  Sql.readOf(prefix, id).pipe(
    Effect.provide(layer(url)),
    Effect.catchTag("SqlError", unreachable("read"))
  )

/**
 * Opens a session of the tables that begin with a prefix, until the scope closes. It is taken from whoever has it open.
 */
export const open = (url: string, prefix: string, id: string) =>
  Layer.build(layer(url)).pipe(
    Effect.flatMap((client) => Effect.provideContext(Sql.make(prefix), client)),
    Effect.flatMap((store) => store.open(id)),
    Effect.catchTag("SqlError", unreachable("open"))
  )
