import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Lines from "./lines.ts"
import * as Store from "./log.ts"
import * as SnapshotText from "./snapshotText.ts"

/** The directory of one session. */
export interface Directory {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly root: string
  readonly log: string
}

export const of = Effect.fnUntraced(function*(directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = path.resolve(directory)
  const self: Directory = { fs, path, root, log: path.join(root, "log.jsonl") }
  return self
})

/** The error of an operation that the file system refused. */
export const failed = (self: Directory, operation: Store.SessionStoreError["operation"]) => (error: PlatformError) =>
  Effect.fail(new Store.SessionStoreError({ operation, path: self.root, reason: error.message }))

/** What is at a path, links not followed; `undefined` for nothing. */
export const at = ({ fs }: Directory, file: string) =>
  Effect.catchReason(fs.lstat(file), "PlatformError", "NotFound", () => Effect.undefined)

/** The bits of a mode that let anybody but the owner in. */
const others = 0o077

/** Refuses a directory that others may look into, and everything that is a link or no file. */
export const check = Effect.fnUntraced(function*(self: Directory) {
  const refused = (reason: string, where = self.root) =>
    new Store.SessionStoreError({ operation: "open", path: where, reason })
  const info = yield* self.fs.lstat(self.root)
  if (info.type !== "Directory") {
    return yield* refused(`it is ${info.type === "SymbolicLink" ? "a link" : "no directory"}`)
  }
  // Windows knows no such bits: there a directory seems open to everybody.
  if (self.path.sep === "/" && (info.mode & others) !== 0) {
    return yield* refused("it is open to other users (chmod 700 it)")
  }
  for (const name of ["log.jsonl", "lock", "snapshot.json"]) {
    const file = self.path.join(self.root, name)
    const found = yield* at(self, file)
    if (found !== undefined && found.type !== "File") return yield* refused("it is a link, or no file", file)
  }
})

const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** The bytes of the log from a position on; none when it ends before that, or is not there. */
const bytesFrom = Effect.fnUntraced(function*(self: Directory, from: number) {
  const size = Number((yield* at(self, self.log))?.size ?? 0)
  if (size <= from) return new Uint8Array()
  if (from === 0) return yield* self.fs.readFile(self.log)
  return yield* Effect.scoped(Effect.gen(function*() {
    const file = yield* self.fs.open(self.log)
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

const Saved = Schema.Struct({
  events: Schema.Natural,
  lines: Schema.Natural,
  bytes: Schema.Natural,
  line: Schema.String,
  lineBytes: Schema.Natural,
  state: Schema.Json
})

/**
 * A snapshot, and its place in the log: behind how many lines and bytes, and how the line before it begins.
 */
export type Saved = typeof Saved.Type

/** How a line begins: its seq and its sum tell it from others. */
export const startOf = (line: Uint8Array): string => new TextDecoder().decode(line.subarray(0, 80))

/** The last line of these bytes, its break included. */
export const lastLine = (bytes: Uint8Array): Uint8Array =>
  bytes.subarray(bytes.length < 2 ? 0 : bytes.lastIndexOf(0x0a, bytes.length - 2) + 1)

/**
 * The snapshot, with what of the log is behind it, the line before its place included; if it is of this log. Of one that is
 * there and is not used, something is said.
 */
const snapshotNow = Effect.fnUntraced(function*(self: Directory) {
  const file = self.path.join(self.root, "snapshot.json")
  const bytes = yield* Effect.option(self.fs.readFile(file))
  if (Option.isNone(bytes)) return undefined
  const unused = (reason: string) =>
    Effect.as(
      Effect.logWarning(`the snapshot of a session ${reason}: it is read from its log`, { path: file }),
      undefined
    )
  const found = Schema.decodeUnknownOption(Saved)(SnapshotText.decode(bytes.value))
  if (Option.isNone(found) || found.value.lineBytes > found.value.bytes) return yield* unused("is damaged")
  const saved = found.value
  const behind = yield* bytesFrom(self, saved.bytes - saved.lineBytes)
  // The line before its place must be the one it was made behind: of another log it says nothing.
  const isOwn = saved.lineBytes <= behind.length && startOf(behind.subarray(0, saved.lineBytes)) === saved.line
  if (!isOwn) return yield* unused("does not belong to its log")
  return { saved, bytes: behind, start: saved.bytes - saved.lineBytes }
})

/** Reads the log as it is, from its snapshot on or whole, and changes nothing. `start` is where its bytes begin. */
export const read = Effect.fnUntraced(function*(self: Directory, whole: boolean) {
  const kept = whole ? undefined : yield* snapshotNow(self)
  const snapshot = kept?.saved
  const bytes = kept?.bytes ?? (yield* bytesFrom(self, 0))
  const start = kept?.start ?? 0
  const lineBytes = snapshot?.lineBytes ?? 0
  const found = Lines.read(bytes, lineBytes, snapshot?.events, snapshot?.lines)
  const { fault } = found
  if (fault === "damaged" || fault === "out-of-order") {
    const reason = fault === "damaged" ? "it is damaged, and lines that are not come after it" : "it is out of order"
    return yield* new Store.SessionCorrupt({ path: self.log, line: found.lines + 1, reason })
  }
  return { snapshot, found, bytes, start }
})

/** A name that no other process draws. */
export const draw = (pid: number): Effect.Effect<string> =>
  Effect.map(
    Effect.all([Random.nextIntBetween(0, 0x7fff_ffff), Random.nextIntBetween(0, 0x7fff_ffff), Clock.currentTimeMillis]),
    (numbers) => [pid, ...numbers].map((number) => number.toString(36)).join("-")
  )

/** Writes a file that is whole or not there: beside its place first, then brought there. */
export const place = Effect.fnUntraced(function*<A>(
  self: Directory,
  name: string,
  text: string,
  options: { readonly unique: string; readonly isSynced: boolean },
  bring: (temporary: string, target: string) => Effect.Effect<A, PlatformError>
): Effect.fn.Return<A, PlatformError> {
  const temporary = self.path.join(self.root, `${name}.${options.unique}.tmp`)
  const write = Effect.scoped(Effect.gen(function*() {
    const file = yield* self.fs.open(temporary, { flag: "wx", mode: 0o600 })
    yield* file.writeAll(new TextEncoder().encode(text))
    if (options.isSynced) yield* file.sync
  }))
  return yield* Effect.andThen(write, bring(temporary, self.path.join(self.root, name))).pipe(
    Effect.ensuring(Effect.ignore(self.fs.remove(temporary)))
  )
})
