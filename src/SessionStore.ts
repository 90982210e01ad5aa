/**
 * Where the log of a session is kept.
 *
 * A store appends events, all of one call or none, and gives them back in the order in which they came. It knows nothing
 * of what they mean; `SessionLog` does. Without a layer a session is kept in memory, as long as its manager lives.
 *
 * **Details**
 *
 * A directory of {@link layerFile} holds `log.jsonl`, `lock`, and `snapshot.json` once there is one. Each line of the log
 * is one append: `{"seq":12,"sum":"0f3a5c77","events":[…]}`, the seq of its first event, the CRC-32 of the text of
 * `events`, and the events. A line that does not end, or whose sum does not hold, was torn: at the end of the file it is cut
 * off when the session is opened, and reported. Anywhere else it is damage, and the session is not opened.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import type { PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Lines from "./session/logLines.ts"

/**
 * Fails when a store cannot do what it was asked for; nothing of an append that failed is kept.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionStoreError extends Schema.TaggedError<SessionStoreError>("effect-compaction/SessionStoreError")(
  "SessionStoreError",
  {
    operation: Schema.Literals(["open", "read", "append", "flush", "snapshot"]),
    path: Schema.String,
    reason: Schema.String
  }
) {
  override get message() {
    return `The session in ${this.path} cannot ${this.operation}: ${this.reason}. See to that place, or give `
      + "SessionStore another one."
  }
}

/**
 * Fails when a session is open already. `pid`, `host` and `since` tell by whom.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionLocked extends Schema.TaggedError<SessionLocked>("effect-compaction/SessionLocked")(
  "SessionLocked",
  { path: Schema.String, pid: Schema.Int, host: Schema.String, since: Schema.String }
) {
  override get message() {
    return `The session is open in process ${this.pid} on ${this.host} since ${this.since}. Close it there; if that process `
      + `is gone, remove ${this.path}.`
  }
}

/**
 * Fails when a log is damaged in its middle: the line, from 1, and what is wrong with it. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class SessionCorrupt extends Schema.TaggedError<SessionCorrupt>("effect-compaction/SessionCorrupt")(
  "SessionCorrupt",
  { path: Schema.String, line: Schema.Natural, reason: Schema.String }
) {
  override get message() {
    return `${this.path}, line ${this.line}: ${this.reason}. Restore the file from a copy, or cut it before this line.`
  }
}

/**
 * @category errors
 * @since 0.1.0
 */
export type OpenError = SessionStoreError | SessionLocked | SessionCorrupt

/**
 * What was cut off the end of a log when it was opened: from which line, how many bytes, and the file that keeps them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Repair {
  readonly path: string
  readonly line: number
  readonly bytes: number
  readonly kept: string | null
}

/**
 * The state of a session after its first `events` events, as `SessionLog` makes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Snapshot {
  readonly events: number
  readonly state: Schema.Json
}

/**
 * What a store holds: the newest snapshot that agrees with the log, if there is one, and the events after it, or all.
 * `lines` are where each of them lies, from 1, for what is said of them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Contents {
  readonly snapshot: Snapshot | null
  readonly events: ReadonlyArray<Schema.Json>
  readonly lines: ReadonlyArray<number>
}

/**
 * **Details**
 *
 * - `name`: what is said of this store in an error. `repair`: what was cut off when it was opened.
 * - `append`: adds events, all or none. When it returns they are in the log; {@link Service.flush} makes them outlive the
 *   machine. An empty list does nothing.
 * - `read`: from the newest snapshot on; `whole` reads the log from its start.
 * - `snapshot`: keeps a state beside the log. It is a shortcut: the log alone says what holds.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  readonly name: string
  readonly repair: Repair | null
  readonly append: (events: ReadonlyArray<Schema.Json>) => Effect.Effect<void, SessionStoreError>
  readonly read: (options?: { readonly whole?: boolean }) => Effect.Effect<Contents, SessionStoreError | SessionCorrupt>
  readonly flush: Effect.Effect<void, SessionStoreError>
  readonly snapshot: (snapshot: Snapshot) => Effect.Effect<void, SessionStoreError>
}

/**
 * The store of a session; `undefined` where none is provided, and then it is kept in memory alone.
 *
 * @category services
 * @since 0.1.0
 */
export const SessionStore = Context.Reference<Service | undefined>("effect-compaction/SessionStore", {
  defaultValue: () => undefined
})

/** A copy that nobody else can change; what JSON leaves out is left out. */
const copy = (value: Schema.Json): Schema.Json => {
  // What was made of JSON is JSON.
  return JSON.parse(JSON.stringify(value)) as Schema.Json
}

/**
 * Makes a store in memory.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<Service> = Effect.sync(() => {
  const log: Array<Schema.Json> = []
  let newest: Snapshot | null = null
  return {
    name: "memory",
    repair: null,
    append: (events) =>
      Effect.sync(() => {
        for (const event of events) log.push(copy(event))
      }),
    read: ({ whole = false } = {}) =>
      Effect.sync(() => {
        const snapshot = whole ? null : newest
        const from = snapshot?.events ?? 0
        const events = log.slice(from).map(copy)
        return { snapshot, events, lines: events.map((_, at) => from + at + 1) }
      }),
    flush: Effect.void,
    snapshot: ({ events, state }) =>
      Effect.sync(() => {
        newest = { events, state: copy(state) }
      })
  }
})

/**
 * Keeps a session in memory, as long as the layer lives.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<never> = Layer.effect(SessionStore, makeMemory)

const Saved = Schema.fromJsonString(
  Schema.Struct({ events: Schema.Natural, batches: Schema.Natural, state: Schema.Json })
)

/**
 * Keeps a session in a `KeyValueStore`: each append under a key of its own, and under `head` how many there are, which is
 * written last. `prefix` tells the sessions of one store apart.
 *
 * **Gotchas**
 *
 * A key-value store has no lock: that one process at a time writes a session is up to the app.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerKeyValueStore = (options?: {
  readonly prefix?: string
}): Layer.Layer<never, SessionStoreError, KeyValueStore.KeyValueStore> =>
  Layer.effect(
    SessionStore,
    Effect.gen(function*() {
      const prefix = options?.prefix ?? "session/"
      const kv = KeyValueStore.prefix(yield* KeyValueStore.KeyValueStore, prefix)
      const lock = yield* Semaphore.make(1)
      const name = `key-value store, ${prefix}`
      const failed = (operation: SessionStoreError["operation"]) => (error: KeyValueStore.KeyValueStoreError) =>
        new SessionStoreError({ operation, path: name, reason: error.message })
      const keyOf = (batch: number) => `log/${String(batch).padStart(12, "0")}`
      const head = Effect.map(kv.get("head"), (text): readonly [batches: number, events: number] => {
        const [batches = 0, events = 0] = (text ?? "0 0").split(" ").map(Number)
        return [batches, events]
      })
      let [batches, count] = yield* Effect.mapError(head, failed("open"))
      const write = Effect.fnUntraced(function*(events: ReadonlyArray<Schema.Json>) {
        if (events.length === 0) return
        yield* kv.set(keyOf(batches), new TextDecoder().decode(Lines.encode(count, events)))
        yield* kv.set("head", `${batches + 1} ${count + events.length}`)
        batches++
        count += events.length
      })
      const readFrom = Effect.fnUntraced(function*(saved: typeof Saved.Type | null) {
        const events: Array<Schema.Json> = []
        const lines: Array<number> = []
        for (let batch = saved?.batches ?? 0; batch < batches; batch++) {
          const text = yield* Effect.mapError(kv.get(keyOf(batch)), failed("read"))
          const found = text === undefined ? undefined : Lines.decode(new TextEncoder().encode(text.trimEnd()))
          if (found === undefined) {
            return yield* new SessionCorrupt({
              path: name,
              line: batch + 1,
              reason: `${keyOf(batch)} is damaged or gone`
            })
          }
          found.events.forEach((event) => {
            events.push(event)
            lines.push(batch + 1)
          })
        }
        return { snapshot: saved === null ? null : { events: saved.events, state: saved.state }, events, lines }
      })
      const newest = Effect.flatMap(
        Effect.mapError(kv.get("snapshot"), failed("read")),
        (text) => Effect.option(Schema.decodeEffect(Saved)(text ?? ""))
      ).pipe(Effect.map((found) => Option.isSome(found) && found.value.events <= count ? found.value : null))
      return {
        name,
        repair: null,
        append: (events) =>
          Semaphore.withPermit(lock, Effect.uninterruptible(Effect.mapError(write(events), failed("append")))),
        read: ({ whole = false } = {}) =>
          Semaphore.withPermit(lock, Effect.flatMap(whole ? Effect.succeed(null) : newest, readFrom)),
        flush: Effect.void,
        snapshot: (snapshot) =>
          Semaphore.withPermit(
            lock,
            Effect.suspend(() => {
              // A state of an earlier moment has no place in the log from which to go on.
              if (snapshot.events !== count) return Effect.void
              return Effect.mapError(
                kv.set("snapshot", JSON.stringify({ ...snapshot, batches } satisfies typeof Saved.Type)),
                failed("snapshot")
              )
            })
          )
      }
    })
  )

/**
 * What is known of the process that opens sessions.
 *
 * **Details**
 *
 * - `pid`, `host`: what the lock of a session names. `isAlive`: whether a process of this host runs; a lock whose holder
 *   does not is stale, and is taken over.
 *
 * @category models
 * @since 0.1.0
 */
export interface Holder {
  readonly pid: number
  readonly host: string
  readonly isAlive: (pid: number) => boolean
}

/** What of `process` is used; Bun and Deno have it too. */
interface ProcessLike {
  readonly pid: number
  readonly env: { readonly [name: string]: string | undefined }
  readonly kill: (pid: number, signal: 0) => unknown
}

/** The process that this runs in, as far as the runtime tells. */
const runtimeProcess = (): ProcessLike | undefined =>
  // The type of the global object says nothing of what runtimes add to it.
  (globalThis as { readonly process?: ProcessLike }).process

/**
 * The process that opens sessions; by default the one that this runs in.
 *
 * @category services
 * @since 0.1.0
 */
export const CurrentHolder = Context.Reference<Holder>("effect-compaction/SessionStore/CurrentHolder", {
  defaultValue: () => {
    const process = runtimeProcess()
    return {
      pid: process?.pid ?? 0,
      host: process?.env["HOSTNAME"] ?? process?.env["COMPUTERNAME"] ?? "localhost",
      isAlive: (pid) => {
        if (process === undefined) return true
        try {
          process.kill(pid, 0)
          return true
        } catch (error) {
          // EPERM: it runs, as somebody else's. What `kill` throws is an error of the system.
          return (error as { readonly code?: string }).code === "EPERM"
        }
      }
    }
  }
})

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

/** The bits of a mode that let anybody but the owner in. */
const others = 0o077

const LockFile = Schema.fromJsonString(Schema.Struct({
  pid: Schema.Int,
  host: Schema.String,
  since: Schema.String,
  nonce: Schema.String
}))

type LockFile = typeof LockFile.Type

const SnapshotFile = Schema.fromJsonString(Schema.Struct({
  version: Schema.Literal(2),
  events: Schema.Natural,
  lines: Schema.Natural,
  bytes: Schema.Natural,
  line: Schema.String,
  lineBytes: Schema.Natural,
  state: Schema.Json
}))

/** The files of one session, and what is asked of them before they are touched. */
const filesOf = Effect.fnUntraced(function*(directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = path.resolve(directory)
  const log = path.join(root, "log.jsonl")
  const failed = (operation: SessionStoreError["operation"]) => (error: PlatformError) =>
    Effect.fail(new SessionStoreError({ operation, path: root, reason: error.message }))
  const refused = (reason: string, where = root) => new SessionStoreError({ operation: "open", path: where, reason })

  /** What is at a path, links not followed; `undefined` for nothing. */
  const at = (file: string) => Effect.catchReason(fs.lstat(file), "PlatformError", "NotFound", () => Effect.undefined)

  /** Refuses a directory that others may look into, and everything that is a link or no file. */
  const check = Effect.gen(function*() {
    const info = yield* fs.lstat(root)
    if (info.type !== "Directory") {
      return yield* refused(`it is ${info.type === "SymbolicLink" ? "a link" : "no directory"}`)
    }
    // Windows knows no such bits: there a directory seems open to everybody.
    if (path.sep === "/" && (info.mode & others) !== 0) {
      return yield* refused("it is open to other users (chmod 700 it)")
    }
    for (const name of ["log.jsonl", "lock", "snapshot.json"]) {
      const file = path.join(root, name)
      const found = yield* at(file)
      if (found !== undefined && found.type !== "File") return yield* refused("it is a link, or no file", file)
    }
  })

  /** The bytes of the log from a position on; none when it ends before that, or is not there. */
  const bytesFrom = Effect.fnUntraced(function*(from: number) {
    const size = Number((yield* at(log))?.size ?? 0)
    if (size <= from) return new Uint8Array()
    if (from === 0) return yield* fs.readFile(log)
    return yield* Effect.scoped(Effect.gen(function*() {
      const file = yield* fs.open(log)
      yield* file.seek(BigInt(from), "start")
      const parts: Array<Uint8Array> = []
      // One read may give less than was asked for.
      for (let left = size - from; left > 0;) {
        const part = yield* file.readAlloc(left)
        if (Option.isNone(part)) break
        parts.push(part.value)
        left -= part.value.length
      }
      return parts.length === 1 ? parts[0]! : joined(parts)
    }))
  })

  /** The snapshot, with what of the log is behind it, the line before its place included; if it is of this log. */
  const snapshotNow = Effect.gen(function*() {
    const text = yield* Effect.option(fs.readFileString(path.join(root, "snapshot.json")))
    const saved = yield* Effect.option(Schema.decodeEffect(SnapshotFile)(Option.getOrElse(text, () => "")))
    if (Option.isNone(saved) || saved.value.lineBytes > saved.value.bytes) return undefined
    const { bytes: end, line, lineBytes } = saved.value
    const bytes = yield* bytesFrom(end - lineBytes)
    // The line before its place must be the one it was made behind: of another log it says nothing.
    const isOwn = lineBytes <= bytes.length && startOf(bytes.subarray(0, lineBytes)) === line
    return isOwn ? { saved: saved.value, bytes, start: end - lineBytes } : undefined
  })

  /** Reads the log as it is, from its snapshot on or whole, and changes nothing. `start` is where its bytes begin. */
  const read = Effect.fnUntraced(function*(whole: boolean) {
    const kept = whole ? undefined : yield* snapshotNow
    const snapshot = kept?.saved
    const bytes = kept?.bytes ?? (yield* bytesFrom(0))
    const start = kept?.start ?? 0
    const lineBytes = snapshot?.lineBytes ?? 0
    const found = Lines.read(bytes, lineBytes, snapshot?.events, snapshot?.lines)
    const { fault } = found
    if (fault === "damaged" || fault === "out-of-order") {
      const reason = fault === "damaged" ? "it is damaged, and lines that are not come after it" : "it is out of order"
      return yield* new SessionCorrupt({ path: log, line: found.lines + 1, reason })
    }
    return { snapshot, found, bytes, start }
  })

  return { fs, path, root, log, at, check, read, failed, refused }
})

/** The last line of these bytes, its break included. */
const lastLine = (bytes: Uint8Array): Uint8Array =>
  bytes.subarray(bytes.length < 2 ? 0 : bytes.lastIndexOf(0x0a, bytes.length - 2) + 1)

/** How a line begins: its seq and its sum tell it from others. */
const startOf = (line: Uint8Array): string => new TextDecoder().decode(line.subarray(0, 80))

const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

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
  Contents & { readonly path: string; readonly torn: number },
  SessionStoreError | SessionCorrupt,
  FileSystem.FileSystem | Path.Path
> =>
  Effect.flatMap(filesOf(directory), ({ check, failed, log, read }) =>
    Effect.catchTag(
      Effect.map(Effect.andThen(check, read(true)), ({ bytes, found }) => ({
        path: log,
        snapshot: null,
        events: found.events,
        lines: found.places,
        torn: bytes.length - found.bytes
      })),
      "PlatformError",
      failed("read")
    ))

/**
 * Opens a session in a directory, for one writer at a time; the scope closes it.
 *
 * **Details**
 *
 * The directory is made for its owner alone (0700), the files too (0600). Refused: a directory that is a link or is open to
 * others, and anything but a file where a file should be.
 *
 * The lock names its holder. One whose process is gone is taken over; that of another host never is, since nothing can
 * tell. What was torn is cut off the log, kept in `torn-<position>`, and reported as `repair`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeFile = Effect.fnUntraced(function*(
  directory: string,
  options?: FileOptions
): Effect.fn.Return<Service, OpenError, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const files = yield* filesOf(directory)
  const { at, check, failed, fs, log, path, read, root } = files
  const holder = yield* CurrentHolder
  const fsync = options?.fsync ?? "flush"
  const mutex = yield* Semaphore.make(1)
  const lockPath = path.join(root, "lock")
  const draw = Effect.map(
    Effect.all([Random.nextIntBetween(0, 0x7fff_ffff), Random.nextIntBetween(0, 0x7fff_ffff), Clock.currentTimeMillis]),
    (numbers) => [holder.pid, ...numbers].map((number) => number.toString(36)).join("-")
  )

  /** Writes a file that is whole or not there: beside its place first, then brought there. */
  const place = Effect.fnUntraced(function*<A>(
    name: string,
    text: string,
    bring: (temporary: string, target: string) => Effect.Effect<A, PlatformError>
  ): Effect.fn.Return<A, PlatformError> {
    const temporary = path.join(root, `${name}.${yield* draw}.tmp`)
    const write = Effect.scoped(Effect.gen(function*() {
      const file = yield* fs.open(temporary, { flag: "wx", mode: 0o600 })
      yield* file.writeAll(new TextEncoder().encode(text))
      if (fsync !== "never") yield* file.sync
    }))
    return yield* Effect.andThen(write, bring(temporary, path.join(root, name))).pipe(
      Effect.ensuring(Effect.ignore(fs.remove(temporary)))
    )
  })

  /** Writes a file where none is; tells whether it did. */
  const claim = (name: string, text: string) =>
    place(name, text, (temporary, target) =>
      Effect.catchReason(
        Effect.as(fs.link(temporary, target), true),
        "PlatformError",
        "AlreadyExists",
        () => Effect.succeed(false)
      ))

  const holderIn = Effect.fnUntraced(function*(file: string): Effect.fn.Return<LockFile | undefined, PlatformError> {
    const text = yield* Effect.catchReason(fs.readFileString(file), "PlatformError", "NotFound", () => Effect.undefined)
    if (text === undefined) return undefined
    const found = yield* Effect.option(Schema.decodeEffect(LockFile)(text))
    // What is no lock of ours was put there by somebody: it holds until they take it away.
    return Option.getOrElse(found, () => ({ pid: 0, host: "unknown", since: "unknown", nonce: "" }))
  })

  const isStale = ({ host, nonce, pid }: LockFile): boolean =>
    nonce !== "" && host === holder.host && pid !== holder.pid && !holder.isAlive(pid)

  /**
   * Takes the lock. A stale one is replaced by whoever first makes the file named after it: nobody else may, so that of two
   * that find it stale one wins; and a claim that is stale itself is replaced in the same way.
   */
  const take = Effect.fnUntraced(function*(): Effect.fn.Return<string, PlatformError | SessionLocked> {
    const nonce = yield* draw
    const since = DateTime.formatIso(yield* DateTime.now)
    const text = JSON.stringify({ pid: holder.pid, host: holder.host, since, nonce } satisfies LockFile)
    for (;;) {
      if (yield* claim("lock", text)) return nonce
      const found = yield* holderIn(lockPath)
      if (found === undefined) continue
      if (!isStale(found)) return yield* new SessionLocked({ path: lockPath, ...found })
      const claims: Array<string> = []
      for (let dead: LockFile = found;;) {
        const name = `lock.${dead.nonce}`
        if (yield* claim(name, text)) {
          claims.push(name)
          break
        }
        const other = yield* holderIn(path.join(root, name))
        if (other === undefined) break
        if (!isStale(other)) return yield* new SessionLocked({ path: lockPath, ...other })
        claims.push(name)
        dead = other
      }
      // Behind the one who took it over, the lock is another one already.
      const isStill = (yield* holderIn(lockPath))?.nonce === found.nonce
      if (isStill && claims.length > 0) yield* place("lock", text, fs.rename)
      for (const name of claims) yield* Effect.ignore(fs.remove(path.join(root, name)))
      if (isStill && claims.length > 0) return nonce
    }
  })

  const release = Effect.fnUntraced(function*(nonce: string) {
    if ((yield* holderIn(lockPath))?.nonce === nonce) yield* fs.remove(lockPath)
  })

  const opening = Effect.gen(function*() {
    if ((yield* at(root)) === undefined) yield* fs.makeDirectory(root, { recursive: true, mode: 0o700 })
    yield* check
    yield* Effect.acquireRelease(take(), (nonce) => Effect.ignore(release(nonce)))
    const opened = yield* read(false)
    const { bytes, found, start } = opened
    const isNew = (yield* at(log)) === undefined
    const file = yield* fs.open(log, { flag: "a", mode: 0o600 })
    // A new name outlives the machine once its directory is kept; not every system can do that.
    if (isNew && fsync !== "never") {
      yield* Effect.ignore(Effect.scoped(Effect.flatMap(fs.open(root), (opened) => opened.sync)))
    }
    if (found.fault === "none") return { file, opened, repair: null }
    const kept = path.join(root, `torn-${start + found.bytes}-${yield* draw}`)
    yield* fs.writeFile(kept, bytes.subarray(found.bytes), { flag: "wx", mode: 0o600 })
    yield* file.truncate(start + found.bytes)
    if (fsync !== "never") yield* file.sync
    const repair: Repair = { path: log, line: found.lines + 1, bytes: bytes.length - found.bytes, kept }
    yield* Effect.logWarning("the end of a session's log was torn and has been cut off", { ...repair })
    return { file, opened, repair }
  })

  const { file, opened, repair } = yield* Effect.catchTag(opening, "PlatformError", failed("open"))
  let length = opened.start + opened.found.bytes
  let lines = opened.found.lines
  let count = (opened.snapshot?.events ?? 0) + opened.found.events.length
  /** The last line, as a snapshot names it; and whether the file may hold more than what counts. */
  let newest = lastLine(opened.bytes.subarray(0, opened.found.bytes))
  let isTorn = false

  /** Cuts off what an append that failed left behind. */
  const restore = Effect.suspend(() => file.truncate(length)).pipe(
    Effect.andThen(Effect.sync(() => {
      isTorn = false
    }))
  )

  const write = Effect.fnUntraced(function*(
    events: ReadonlyArray<Schema.Json>
  ): Effect.fn.Return<void, PlatformError> {
    if (events.length === 0) return
    if (isTorn) yield* restore
    const bytes = Lines.encode(count, events)
    isTorn = true
    const written = fsync === "append" ? Effect.andThen(file.writeAll(bytes), file.sync) : file.writeAll(bytes)
    yield* written.pipe(Effect.tapError(() => Effect.ignore(restore)))
    isTorn = false
    length += bytes.length
    lines++
    count += events.length
    newest = bytes
  })

  const alone = <A, E>(self: Effect.Effect<A, E>) => Semaphore.withPermit(mutex, Effect.uninterruptible(self))

  return {
    name: root,
    repair,
    append: (events) => alone(Effect.catchTag(write(events), "PlatformError", failed("append"))),
    read: ({ whole = false } = {}) =>
      alone(
        Effect.catchTag(
          Effect.map(read(whole), ({ found, snapshot }) => ({
            snapshot: snapshot === undefined ? null : { events: snapshot.events, state: snapshot.state },
            events: found.events,
            lines: found.places
          })),
          "PlatformError",
          failed("read")
        )
      ),
    flush: alone(fsync === "never" ? Effect.void : Effect.catchTag(file.sync, "PlatformError", failed("flush"))),
    snapshot: ({ events, state }) =>
      alone(Effect.suspend(() => {
        // A state of an earlier moment has no place in the log that could be checked.
        if (events !== count || isTorn) return Effect.void
        const saved: typeof SnapshotFile.Type = {
          version: 2,
          events,
          lines,
          bytes: length,
          line: startOf(newest),
          lineBytes: newest.length,
          state
        }
        const text = JSON.stringify(saved)
        return Effect.catchTag(place("snapshot.json", text, fs.rename), "PlatformError", failed("snapshot"))
      }))
  }
})

/**
 * Keeps a session in a directory; see {@link makeFile}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (
  directory: string,
  options?: FileOptions
): Layer.Layer<never, OpenError, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(SessionStore, makeFile(directory, options))
