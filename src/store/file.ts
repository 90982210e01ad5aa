import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Files from "./files.ts"
import * as Holder from "./holder.ts"
import * as Lines from "./lines.ts"
import * as Lock from "./lock.ts"
import * as Store from "./log.ts"
import * as Name from "./name.ts"
import * as SnapshotText from "./snapshotText.ts"

/**
 * How a session is kept in files.
 *
 * **Details**
 *
 * - `fsync`: when the disk is told to keep what was written: at each `flush` (the default), at each `append`, or never. A
 *   process that dies loses nothing of what was appended; a machine that does may lose what was not flushed.
 *
 * @category models
 * @since 0.1.0
 */
export interface FileOptions {
  readonly fsync?: "flush" | "append" | "never"
}

type Fsync = NonNullable<FileOptions["fsync"]>

/** A log that is open: its file, and how much of it counts. */
interface Open {
  readonly directory: Files.Directory
  readonly lock: Lock.Lock
  readonly fsync: Fsync
  readonly pid: number
  readonly file: FileSystem.File
  readonly repair: Store.Repair | null
  length: number
  lines: number
  events: number
  /** The last line, as a snapshot names it. */
  newest: Uint8Array
  /** Whether the file may hold more than what counts. */
  isTorn: boolean
  /** What was read of the log to open it, until it is asked for or the log grows: nobody else writes to it meanwhile. */
  opened: Store.Contents | undefined
}

/** Cuts the end off a log that was torn, and keeps it. */
const mend = Effect.fnUntraced(function*(
  { fs, log, path, root }: Files.Directory,
  file: FileSystem.File,
  { bytes, found, start }: Effect.Success<ReturnType<typeof Files.read>>,
  options: { readonly pid: number; readonly fsync: Fsync }
) {
  if (found.fault === "none") return null
  const end = start + found.bytes
  const kept = path.join(root, `torn-${end}-${yield* Files.draw(options.pid)}`)
  yield* fs.writeFile(kept, bytes.subarray(found.bytes), { flag: "wx", mode: 0o600 })
  yield* file.truncate(end)
  if (options.fsync !== "never") yield* file.sync
  const repair: Store.Repair = { path: log, line: found.lines + 1, bytes: bytes.length - found.bytes, kept }
  yield* Effect.logWarning("the end of a session's log was torn and has been cut off", { ...repair })
  return repair
})

const contentsOf = ({ found, snapshot }: Effect.Success<ReturnType<typeof Files.read>>): Store.Contents => ({
  snapshot: snapshot === undefined ? null : { events: snapshot.events, state: snapshot.state },
  events: found.events,
  lines: found.places
})

const opening = Effect.fnUntraced(function*(directory: Files.Directory, fsync: Fsync) {
  const { fs, log, root } = directory
  if ((yield* Files.at(directory, root)) === undefined) yield* fs.makeDirectory(root, { recursive: true, mode: 0o700 })
  yield* Files.check(directory)
  const lock = yield* Lock.take(directory, fsync !== "never")
  const read = yield* Files.read(directory, false)
  const isNew = (yield* Files.at(directory, log)) === undefined
  const file = yield* fs.open(log, { flag: "a", mode: 0o600 })
  // A new name outlives the machine once its directory is kept; not every system can do that.
  if (isNew && fsync !== "never") {
    yield* Effect.ignore(Effect.scoped(Effect.flatMap(fs.open(root), (opened) => opened.sync)))
  }
  const { pid } = yield* Holder.CurrentHolder
  const repair = yield* mend(directory, file, read, { pid, fsync })
  const self: Open = {
    directory,
    lock,
    fsync,
    pid,
    file,
    repair,
    length: read.start + read.found.bytes,
    lines: read.found.lines,
    events: (read.snapshot?.events ?? 0) + read.found.events.length,
    newest: Files.lastLine(read.bytes.subarray(0, read.found.bytes)),
    isTorn: false,
    opened: contentsOf(read)
  }
  return self
})

/** Cuts off what an append that failed left behind. */
const restore = (self: Open): Effect.Effect<void, PlatformError> =>
  Effect.map(self.file.truncate(self.length), () => {
    self.isTorn = false
  })

const append = Effect.fnUntraced(function*(
  self: Open,
  count: number,
  text: string
): Effect.fn.Return<void, PlatformError | Store.SessionLost> {
  yield* Lock.requireOwn(self.lock)
  if (self.isTorn) yield* restore(self)
  const bytes = Lines.encode(self.events, text)
  self.opened = undefined
  self.isTorn = true
  const written = self.file.writeAll(bytes)
  yield* (self.fsync === "append" ? Effect.andThen(written, self.file.sync) : written).pipe(
    Effect.tapError(() => Effect.ignore(restore(self)))
  )
  self.isTorn = false
  self.length += bytes.length
  self.lines++
  self.events += count
  self.newest = bytes
})

const read = (self: Open, whole: boolean): Effect.Effect<Store.Contents, PlatformError | Store.SessionCorrupt> =>
  Effect.suspend(() => {
    const { opened } = self
    self.opened = undefined
    if (opened !== undefined && (!whole || opened.snapshot === null)) return Effect.succeed(opened)
    return Effect.map(Files.read(self.directory, whole), contentsOf)
  })

const snapshot = Effect.fnUntraced(function*(
  self: Open,
  { events, state }: Store.Snapshot
): Effect.fn.Return<void, PlatformError | Store.WriteError> {
  // A state of an earlier moment has no place in the log that could be checked.
  if (events !== self.events || self.isTorn) return
  yield* Lock.requireOwn(self.lock)
  const saved: Files.Saved = {
    events,
    lines: self.lines,
    bytes: self.length,
    line: Files.startOf(self.newest),
    lineBytes: self.newest.length,
    state
  }
  const text = SnapshotText.encode(yield* Store.textOf("snapshot", self.directory.root, saved))
  const options = { unique: yield* Files.draw(self.pid), isSynced: self.fsync !== "never" }
  yield* Files.place(self.directory, "snapshot.json", text, options, self.directory.fs.rename)
})

const isPlatformError = (error: unknown): error is PlatformError => Predicate.isTagged(error, "PlatformError")

const logOf = (self: Open): Store.Log => {
  const { directory, repair } = self
  const failing = <A, E>(operation: Store.SessionStoreError["operation"], use: Effect.Effect<A, E | PlatformError>) =>
    Effect.catchIf(use, isPlatformError, Files.failed(directory, operation))
  return {
    name: directory.root,
    repair,
    append: (events) =>
      Effect.flatMap(
        Store.textOf("append", directory.root, events),
        (text) => failing("append", append(self, events.length, text))
      ),
    read: ({ whole = false } = {}) => failing("read", read(self, whole)),
    flush: failing(
      "flush",
      Effect.andThen(Lock.requireOwn(self.lock), self.fsync === "never" ? Effect.void : self.file.sync)
    ),
    snapshot: (given) => failing("snapshot", snapshot(self, given))
  }
}

/** Opens a session in a directory of its own. */
export const open = Effect.fnUntraced(function*(
  given: string,
  options?: FileOptions
): Effect.fn.Return<Store.Log, Store.OpenError, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const directory = yield* Files.of(given)
  const self = yield* Effect.catchTag(
    opening(directory, options?.fsync ?? "flush"),
    "PlatformError",
    Files.failed(directory, "open")
  )
  return yield* Store.guarded(logOf(self))
})

/** Reads a session in a directory without opening it. */
export const readDirectory = Effect.fnUntraced(function*(
  given: string
): Effect.fn.Return<
  Store.Reading,
  Store.SessionStoreError | Store.SessionCorrupt | Store.SessionNotFound,
  FileSystem.FileSystem | Path.Path
> {
  const directory = yield* Files.of(given)
  const { log, root } = directory
  const reading = Effect.gen(function*() {
    if ((yield* Files.at(directory, root)) === undefined) return yield* new Store.SessionNotFound({ path: root })
    yield* Files.check(directory)
    const { bytes, found } = yield* Files.read(directory, true)
    return { path: log, snapshot: null, events: found.events, lines: found.places, torn: bytes.length - found.bytes }
  })
  return yield* Effect.catchTag(reading, "PlatformError", Files.failed(directory, "read"))
})

/** The files of all sessions: where they lie, and what reads them. */
interface Root {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly root: string
  readonly options: FileOptions | undefined
}

const placeOf = ({ path, root }: Root, id: string): string => path.join(root, Name.ofId(id))

const within = <A, E, R>(
  { fs, path }: Root,
  self: Effect.Effect<A, E, FileSystem.FileSystem | Path.Path | R>
): Effect.Effect<A, E, Exclude<R, FileSystem.FileSystem | Path.Path>> =>
  Effect.provideContext(self, Context.make(FileSystem.FileSystem, fs).pipe(Context.add(Path.Path, path)))

const IdFile = Schema.fromJsonString(Schema.String)

/** Where an id is written down whose name holds a digest of it. */
const idFileOf = ({ path, root }: Root, name: string): string => path.join(root, name, "id.json")

const openId = Effect.fnUntraced(function*(
  self: Root,
  id: string
): Effect.fn.Return<Store.Log, Store.OpenError, Scope.Scope> {
  const directory = placeOf(self, id)
  const log = yield* within(self, open(directory, self.options))
  const name = Name.ofId(id)
  if (!Name.isDigest(name)) return log
  yield* Effect.mapError(
    self.fs.writeFileString(idFileOf(self, name), JSON.stringify(id), { mode: 0o600 }),
    (error) => new Store.SessionStoreError({ operation: "open", path: directory, reason: error.message })
  )
  return log
})

/** The id of what lies under a name, if that is a session. */
const idIn = Effect.fnUntraced(function*(self: Root, name: string) {
  const id = Name.isDigest(name)
    ? Option.getOrUndefined(
      yield* Effect.option(
        Effect.flatMap(self.fs.readFileString(idFileOf(self, name)), Schema.decodeEffect(IdFile))
      )
    )
    : Name.idOf(name)
  if (id === undefined) return []
  return (yield* self.fs.exists(self.path.join(self.root, name, "log.jsonl"))) ? [id] : []
})

const list = Effect.fnUntraced(function*(self: Root) {
  const names = yield* Effect.catchReason(
    self.fs.readDirectory(self.root),
    "PlatformError",
    "NotFound",
    () => Effect.succeed([])
  )
  return (yield* Effect.forEach(names, (name) => idIn(self, name), { concurrency: 16 })).flat()
})

/** A store of sessions in a directory, each in one of its own. */
export const make = Effect.fnUntraced(function*(
  directory: string,
  options?: FileOptions
): Effect.fn.Return<Store.SessionStore["Service"], never, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const self: Root = { fs: yield* FileSystem.FileSystem, path, root: path.resolve(directory), options }
  return {
    open: (id) => openId(self, id),
    read: (id) => within(self, readDirectory(placeOf(self, id))),
    list: Effect.mapError(
      list(self),
      (error) => new Store.SessionStoreError({ operation: "list", path: self.root, reason: error.message })
    )
  }
})
