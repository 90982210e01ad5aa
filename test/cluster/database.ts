import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { randomUUID } from "node:crypto"
import * as Postgres from "../session/postgres.ts"

/** A database that is empty; it goes with the scope. */
export const database = Effect.acquireRelease(
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const name = `cluster_${randomUUID().slice(0, 8)}`
    yield* sql`CREATE DATABASE ${sql(name)}`
    const url = new URL(Postgres.url ?? "")
    url.pathname = `/${name}`
    return { name, url: url.href }
  }),
  ({ name }) => Effect.orDie(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DROP DATABASE ${sql(name)} WITH (FORCE)`))
)
