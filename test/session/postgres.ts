import * as PgClient from "@effect/sql-pg/PgClient"
import * as Redacted from "effect/Redacted"

/** Where the PostgreSQL of the tests is: a URL. `.ci/run` starts one; without it, what needs one is skipped. */
export const url = process.env["POSTGRES_URL"]

/** The name of tests that need one: it says why they are skipped. */
export const title = (name: string) => url === undefined ? `${name} (no POSTGRES_URL: see docs/scale.md)` : name

/** A pool of connections to it. */
export const layer = (options: Omit<PgClient.PgPoolConfig, "url"> = {}) =>
  PgClient.layer({ url: Redacted.make(url ?? ""), ...options })
