import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import * as Sha256 from "../text/sha256.ts"
import * as Holder from "./holder.ts"
import * as Store from "./log.ts"
import * as SnapshotText from "./snapshotText.ts"
import * as Tables from "./sqlTables.ts"

/** One session in its tables. */
interface Session {
  readonly sql: SqlClient.SqlClient
  readonly tables: Tables.Tables
  readonly path: string
  readonly key: string
}

/** A session that is open: under which epoch, and how many events it has. */
interface Open extends Session {
  readonly epoch: number
  events: number
  /** Whether the outcome of the last append is not known: then its rows may be there. */
  isUnsure: boolean
}

/** How long the key of an id may be, so that an index can hold it. */
const limit = 400

/** How much text a row holds. Drivers read no row of any length: that of PostgreSQL ends at 16 MiB. */
const rowLength = 4_000_000

/**
 * The key of an id: its JSON, in which no character is that a database cannot hold, and no two ids are the same. Of a long
 * one it is the beginning and a digest, told apart by what JSON never holds.
 */
const keyOf = (id: string): string => {
  const text = JSON.stringify(id).slice(1, -1)
  return text.length <= limit ? text : `${text.slice(0, limit - 66)}\\.${Sha256.hex(text)}`
}

const failed = (path: string, operation: Store.SessionStoreError["operation"]) => (error: SqlError) => {
  const { message } = error
  // What a driver met is told by the error that it met.
  const cause = error.cause.cause
  const said = cause instanceof Error && cause.message !== message ? ` (${cause.message})` : ""
  return new Store.SessionStoreError({ operation, path, reason: `${message}${said}` })
}

/**
 * Runs statements on their own, even within a transaction of the caller's: what was acknowledged is not taken back when
 * that one is. A transaction whose connection is gone dies of its rollback, and that is no defect.
 */
const apart = <A, E>(sql: SqlClient.SqlClient, self: Effect.Effect<A, E>): Effect.Effect<A, E | SqlError> =>
  Effect.updateContext(self, (context: Context.Context<never>) => Context.omit(sql.transactionService)(context)).pipe(
    Effect.catchDefect((defect) => isSqlError(defect) ? Effect.fail(defect) : Effect.die(defect))
  )

/** Keeps a row of a session from being changed until the transaction ends; where one writer at a time is all there is, no. */
const shared = (sql: SqlClient.SqlClient) => sql.onDialectOrElse({ pg: () => sql`FOR SHARE`, orElse: () => sql`` })

/** Whoever has the session now, in words. */
const holderOf = ({ key, sql, tables }: Session): Effect.Effect<string, SqlError> =>
  Effect.map(
    sql<Tables.SessionRow>`SELECT epoch, holder, opened FROM ${sql(tables.sessions)} WHERE id = ${key}`
      .withoutTransform,
    ([row]) => row === undefined ? "whoever deleted it" : `${row.holder} since ${row.opened} (epoch ${row.epoch})`
  )

const lost = (self: Open): Effect.Effect<never, SqlError | Store.SessionLost> =>
  Effect.flatMap(holderOf(self), (by) => Effect.fail(new Store.SessionLost({ path: self.path, by })))

/** Fails where the epoch of the opening is over. */
const requireOwn = (self: Open, lock = self.sql``): Effect.Effect<void, SqlError | Store.SessionLost> => {
  const { epoch, key, sql, tables } = self
  const row = sql`SELECT epoch FROM ${sql(tables.sessions)} WHERE id = ${key} AND epoch = ${epoch} ${lock}`
  return Effect.flatMap(row.withoutTransform, ({ length }) => length === 0 ? lost(self) : Effect.void)
}

/** Runs a transaction that keeps the session in the epoch of its opening. */
const holding = <A, E>(self: Open, use: Effect.Effect<A, E>) =>
  self.sql.withTransaction(Effect.andThen(requireOwn(self, shared(self.sql)), use))

/**
 * Takes away what an append may have left whose outcome nobody told. Should it come through later still, the next append
 * finds its place taken, fails, and is here again.
 */
const restore = (self: Open) => {
  const { events, key, sql, tables } = self
  return Effect.map(
    holding(self, sql`DELETE FROM ${sql(tables.log)} WHERE session = ${key} AND seq >= ${events}`.withoutTransform),
    () => {
      self.isUnsure = false
    }
  )
}

/** A row of one append, if this is still the epoch of the session: whoever opens it anew waits for it, or is before it. */
const insert = (self: Open, count: number, part: number, text: string) => {
  const { epoch, events, key, sql, tables } = self
  return sql`INSERT INTO ${sql(tables.log)} (session, seq, part, count, events)
    SELECT id, CAST(${events} AS BIGINT), CAST(${part} AS INTEGER), CAST(${count} AS INTEGER), CAST(${text} AS TEXT)
    FROM ${sql(tables.sessions)} WHERE id = ${key} AND epoch = ${epoch} ${shared(sql)} RETURNING seq`.withoutTransform
}

/** The parts of a text that a row holds: drivers and databases have their limits. */
const partsOf = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  for (let at = 0; at < text.length || at === 0;) {
    let end = at + rowLength
    // A pair of halves stays together: alone, neither is text.
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end--
    parts.push(text.slice(at, end))
    at = end
  }
  return parts
}

const append = Effect.fnUntraced(function*(self: Open, count: number, text: string) {
  if (self.isUnsure) yield* restore(self)
  const [first = "", ...more] = partsOf(text)
  const isThere = Effect.flatMap(insert(self, count, 0, first), ({ length }) => length === 0 ? lost(self) : Effect.void)
  self.isUnsure = true
  yield* more.length === 0
    ? isThere
    : self.sql.withTransaction(
      Effect.andThen(isThere, Effect.forEach(more, (part, at) => insert(self, count, at + 1, part), { discard: true }))
    )
  self.isUnsure = false
  self.events += count
})

const Events = Schema.fromJsonString(Schema.Array(Schema.Json))

/** The events from one on; each append is a line. */
const eventsFrom = Effect.fnUntraced(function*(self: Session, from: number) {
  const { key, path, sql, tables } = self
  const rows = yield* sql<Tables.LogRow>`SELECT seq, part, count, events FROM ${sql(tables.log)}
    WHERE session = ${key} AND seq >= ${from} ORDER BY seq, part`.withoutTransform
  const events: Array<Schema.Json> = []
  const lines: Array<number> = []
  for (let at = 0; at < rows.length;) {
    const { count, seq } = rows[at]!
    let text = ""
    for (let part = 0; at < rows.length && rows[at]!.seq === seq && Number(rows[at]!.part) === part; part++, at++) {
      text += rows[at]!.events
    }
    const found = Schema.decodeOption(Events)(text)
    const isNext = Number(seq) === from + events.length
    if (!isNext || Option.isNone(found) || found.value.length !== Number(count)) {
      const reason = isNext ? `the row of seq ${seq} is damaged` : `the row before seq ${seq} is gone`
      return yield* new Store.SessionCorrupt({ path, line: from + events.length + 1, reason })
    }
    for (const event of found.value) {
      events.push(event)
      lines.push(from + events.length)
    }
  }
  return { events, lines }
})

const Saved = Schema.Struct({ events: Schema.Natural, state: Schema.Json })

/** The newest snapshot, if it agrees with the log; of one that is there and does not, something is said. */
const newest = Effect.fnUntraced(function*({ key, path, sql, tables }: Session, events: number) {
  const rows = yield* sql<Tables.SnapshotRow>`SELECT state FROM ${sql(tables.snapshots)}
    WHERE session = ${key} ORDER BY part`.withoutTransform
  if (rows.length === 0) return undefined
  const text = rows.map(({ state }) => state).join("")
  const found = Schema.decodeUnknownOption(Saved)(SnapshotText.decode(new TextEncoder().encode(text)))
  if (Option.isSome(found) && found.value.events <= events) return found.value
  yield* Effect.logWarning("the snapshot of a session is damaged: it is read from its log", { path })
  return undefined
})

const read = Effect.fnUntraced(function*(self: Open, whole: boolean) {
  const saved = whole ? undefined : yield* newest(self, self.events)
  return { snapshot: saved ?? null, ...(yield* eventsFrom(self, saved?.events ?? 0)) }
})

const snapshot = Effect.fnUntraced(function*(self: Open, text: string) {
  const { key, sql, tables } = self
  const write = (state: string, part: number) =>
    sql`INSERT INTO ${sql(tables.snapshots)} (session, part, state) VALUES (${key}, ${part}, ${state})`.withoutTransform
  yield* holding(
    self,
    Effect.andThen(
      sql`DELETE FROM ${sql(tables.snapshots)} WHERE session = ${key}`.withoutTransform,
      Effect.forEach(partsOf(text), write, { discard: true })
    )
  )
})

const logOf = (self: Open): Store.Log => {
  const { path, sql } = self
  const failing = <A, E>(operation: Store.SessionStoreError["operation"], use: Effect.Effect<A, E | SqlError>) =>
    Effect.catchIf(apart(sql, use), isSqlError, (error) => Effect.fail(failed(path, operation)(error)))
  return {
    name: path,
    repair: null,
    append: (events) =>
      Effect.flatMap(
        Store.textOf("append", path, events),
        (text) => failing("append", append(self, events.length, text))
      ),
    read: ({ whole = false } = {}) => failing("read", read(self, whole)),
    // What was appended is kept by the database, as it keeps everything.
    flush: failing("flush", Effect.suspend(() => self.isUnsure ? restore(self) : requireOwn(self))),
    snapshot: (given) =>
      Effect.suspend(() => {
        // A state of an earlier moment has no place in the log from which to go on.
        if (given.events !== self.events || self.isUnsure) return Effect.void
        return Effect.flatMap(
          Store.textOf("snapshot", path, { events: given.events, state: given.state }),
          (text) => failing("snapshot", snapshot(self, SnapshotText.encode(text)))
        )
      })
  }
}

const sessionOf = (sql: SqlClient.SqlClient, tables: Tables.Tables, id: string): Session => ({
  sql,
  tables,
  path: `${tables.log}, ${JSON.stringify(id)}`,
  key: keyOf(id)
})

const open = Effect.fnUntraced(function*(
  session: Session,
  id: string
): Effect.fn.Return<Open, SqlError> {
  const { key, sql, tables } = session
  const { host, pid } = yield* Holder.CurrentHolder
  const opened = DateTime.formatIso(yield* DateTime.now)
  const holder = `process ${pid} on ${host === "" ? "an unknown host" : host}`
  const name = JSON.stringify(id)
  const [row] = yield* sql<Tables.SessionRow>`INSERT INTO ${sql(tables.sessions)} (id, name, epoch, holder, opened)
    VALUES (${key}, ${name}, 1, ${holder}, ${opened})
    ON CONFLICT (id) DO UPDATE SET epoch = ${sql(tables.sessions)}.epoch + 1, holder = ${holder}, opened = ${opened}
    RETURNING epoch`.withoutTransform
  // Read after the epoch is raised: nothing of an earlier one can come behind it.
  const [last] = yield* sql<Tables.LogRow>`SELECT seq, count FROM ${sql(tables.log)} WHERE session = ${key}
    ORDER BY seq DESC LIMIT 1`.withoutTransform
  const events = last === undefined ? 0 : Number(last.seq) + Number(last.count)
  return { ...session, epoch: Number(row?.epoch ?? 0), events, isUnsure: false }
})

const openId = (session: Session, id: string): Effect.Effect<Store.Log, Store.SessionStoreError, Scope.Scope> =>
  Effect.flatMap(
    Effect.mapError(apart(session.sql, open(session, id)), failed(session.path, "open")),
    (self) => Store.guarded(logOf(self))
  )

const readId = Effect.fnUntraced(function*(self: Session) {
  const { key, path, sql, tables } = self
  const found = yield* sql`SELECT id FROM ${sql(tables.sessions)} WHERE id = ${key}`.withoutTransform
  if (found.length === 0) return yield* new Store.SessionNotFound({ path })
  return { snapshot: null, ...(yield* eventsFrom(self, 0)), path, torn: 0 }
})

/** Reads a session where its tables are; nothing is made where they are not. */
export const readOf = (prefix: string, id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const session = sessionOf(sql, Tables.named(prefix), id)
    return Effect.catchIf(apart(sql, readId(session)), isSqlError, (error) =>
      Effect.fail(failed(session.path, "read")(error)))
  })

const list = (sql: SqlClient.SqlClient, tables: Tables.Tables): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    sql<Tables.SessionRow>`SELECT name FROM ${sql(tables.sessions)} ORDER BY name`.withoutTransform,
    // What was written as JSON of an id is one.
    (rows) => rows.map(({ name }) => JSON.parse(name) as string)
  )

/** A store of sessions in tables whose names begin with a prefix; they are made, or brought up to date, first. */
export const make = Effect.fnUntraced(function*(
  prefix: string
): Effect.fn.Return<Store.SessionStore["Service"], Store.SessionStoreError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const tables = Tables.named(prefix)
  const refused = (reason: string) => new Store.SessionStoreError({ operation: "open", path: tables.log, reason })
  const isKnown = sql.onDialectOrElse({ pg: () => true, sqlite: () => true, orElse: () => false })
  if (!isKnown) return yield* refused(`the dialect of ${sql.driver} is none of PostgreSQL and SQLite`)
  // PostgreSQL cuts a longer name off, without a word.
  if (prefix.length > 40) return yield* refused(`the prefix of its tables is longer than 40 characters (${prefix})`)
  yield* Effect.mapError(
    apart(sql, Effect.provideService(Tables.migrate(tables), SqlClient.SqlClient, sql)),
    (error) => refused(`its tables cannot be made: ${error.message}`)
  )
  return {
    open: (id) => openId(sessionOf(sql, tables, id), id),
    read: (id) => Effect.provideService(readOf(prefix, id), SqlClient.SqlClient, sql),
    list: Effect.mapError(apart(sql, list(sql, tables)), failed(tables.sessions, "list"))
  }
})
