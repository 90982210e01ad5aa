/**
 * Where sessions are kept, each by the id of its conversation.
 *
 * A store keeps a log for each session. It appends events, all of one call or none, and gives them back in the order in
 * which they came. It knows nothing of what they mean; `SessionLog` does.
 *
 * **Details**
 *
 * A session of {@link layerFile} is a directory with `log.jsonl`, `lock`, and `snapshot.json` once there is one. Each line
 * of the log is one append: `{"seq":12,"sum":"0f3a5c77","events":[…]}`, the seq of its first event, the CRC-32 of the text
 * of `events`, and the events. A line that does not end, or whose sum does not hold, was torn: at the end of the file it is
 * cut off when the session is opened, and reported. Anywhere else it is damage, and the session is not opened.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type * as KeyValueStore from "effect/persistence/KeyValueStore"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import * as File from "./store/file.ts"
import type { FileOptions } from "./store/file.ts"
import * as KeyValue from "./store/keyValue.ts"
import {
  type Log,
  type OpenError,
  type Reading,
  type SessionCorrupt,
  type SessionNotFound,
  SessionStore,
  type SessionStoreError
} from "./store/log.ts"
import * as Memory from "./store/memory.ts"

export type { FileOptions } from "./store/file.ts"
export { CurrentHolder, type Holder } from "./store/holder.ts"
export {
  type Contents,
  type Log,
  type OpenError,
  type Reading,
  type Repair,
  SessionCorrupt,
  SessionLocked,
  SessionLost,
  SessionNotFound,
  SessionStore,
  SessionStoreError,
  type Snapshot,
  type WriteError
} from "./store/log.ts"

/**
 * Makes a store in memory, which keeps every session as long as it lives. Opening a session again takes it from whoever
 * has it open.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<SessionStore["Service"]> = Memory.make

/**
 * Keeps sessions in memory, as long as the layer lives; see {@link makeMemory}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<SessionStore> = Layer.effect(SessionStore, makeMemory)

/**
 * Keeps sessions in a directory, each in one of its own, for one process at a time; see {@link openDirectory}.
 *
 * **Details**
 *
 * The name of a session's directory is its id: small letters, digits, `-` and `_` as they are, everything else by its
 * number, so that two ids never share a directory, on no file system. Of an id of more than about 120 characters it is the
 * beginning and a digest.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeFile = (
  directory: string,
  options?: FileOptions
): Effect.Effect<SessionStore["Service"], never, FileSystem.FileSystem | Path.Path> => File.make(directory, options)

/**
 * Keeps sessions in a directory; see {@link makeFile}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (
  directory: string,
  options?: FileOptions
): Layer.Layer<SessionStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(SessionStore, makeFile(directory, options))

/**
 * Keeps sessions in a `KeyValueStore`: each append under a key of its own, and under `head` how many there are, which is
 * written last. All keys begin with `prefix` (`session/` by default).
 *
 * **Gotchas**
 *
 * A key-value store has no lock and cannot compare before it writes: that one process at a time has a session is up to the
 * app. One that was opened elsewhere since is found out before most writes ({@link SessionLost}), not before each. It does
 * not tell its keys, so `list` fails.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeKeyValueStore = (options?: {
  readonly prefix?: string
}): Effect.Effect<SessionStore["Service"], never, KeyValueStore.KeyValueStore> =>
  KeyValue.make(options?.prefix ?? "session/")

/**
 * Keeps sessions in a `KeyValueStore`; see {@link makeKeyValueStore}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerKeyValueStore = (options?: {
  readonly prefix?: string
}): Layer.Layer<SessionStore, never, KeyValueStore.KeyValueStore> =>
  Layer.effect(SessionStore, makeKeyValueStore(options))

/**
 * Keeps sessions in a database, through the `SqlClient` of the context, whatever driver made it.
 *
 * **Details**
 *
 * The tables are made where they are not, and brought up to date where they are; their names begin with `prefix`
 * (`compaction_` by default). Events are text, so that the order of keys stays. An append is one statement, and carries the
 * epoch under which the session was opened: opening it anew, anywhere, raises that, and an append of an older one fails with
 * {@link SessionLost}. It never takes part in a transaction of the caller's. Appended is kept; `flush` has nothing to add.
 *
 * The dialects are those of PostgreSQL and SQLite.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSql = (options?: {
  readonly prefix?: string
}): Layer.Layer<SessionStore, SessionStoreError, SqlClient.SqlClient> =>
  Layer.effect(
    SessionStore,
    // Loaded where it is used: whoever keeps sessions in files has no need of databases.
    Effect.flatMap(Effect.promise(() => import("./store/sql.ts")), ({ make }) => make(options?.prefix ?? "compaction_"))
  )

/**
 * Opens one session in a directory of its own, for one process at a time; the scope closes it.
 *
 * **Details**
 *
 * The directory is made for its owner alone (0700), the files too (0600). Refused: a directory that is a link or is open to
 * others, and anything but a file where a file should be.
 *
 * The lock names its holder. One whose process is gone is taken over; where nothing here can tell, it is not, and
 * `SessionLocked` says so. What was torn is cut off the log, kept in `torn-<position>`, and reported as `repair`. A lock
 * that was taken away makes every later write fail with `SessionLost`.
 *
 * @category running
 * @since 0.1.0
 */
export const openDirectory = (
  directory: string,
  options?: FileOptions
): Effect.Effect<Log, OpenError, FileSystem.FileSystem | Path.Path | Scope.Scope> => File.open(directory, options)

/**
 * Reads a session in a directory without opening it: no lock is taken and nothing is repaired. `torn` is how many bytes at
 * its end count for nothing.
 *
 * @category running
 * @since 0.1.0
 */
export const readDirectory = (
  directory: string
): Effect.Effect<
  Reading,
  SessionStoreError | SessionCorrupt | SessionNotFound,
  FileSystem.FileSystem | Path.Path
> => File.readDirectory(directory)
