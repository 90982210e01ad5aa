import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Files from "./files.ts"
import * as Holder from "./holder.ts"
import * as Store from "./log.ts"

/** A nonce becomes part of the name of a file, so it holds nothing that leads out of the directory. */
const Nonce = Schema.String.check(Schema.isPattern(/^[0-9a-z-]{1,100}$/))

const told = Schema.optionalKey(Schema.NullOr(Schema.String))

const Taken = Schema.Struct({
  pid: Schema.Int,
  host: Schema.String,
  boot: told,
  machine: told,
  space: told,
  begun: told,
  since: Schema.String,
  nonce: Nonce
})

type Taken = typeof Taken.Type

const TakenFile = Schema.fromJsonString(Taken)

/** Who wants the lock of a directory, and how: `isSynced` tells whether the disk is told to keep it. */
interface Taker {
  readonly directory: Files.Directory
  readonly holder: Holder.Holder
  readonly isSynced: boolean
}

/** A lock that was taken: the file that it is, which has no name any more once it is somebody else's. */
export interface Lock {
  readonly directory: Files.Directory
  readonly file: FileSystem.File
}

/** Tells what is no lock of ours from all others: it was put there by somebody, and holds until they take it away. */
const foreign = ""

const pathOf = ({ path, root }: Files.Directory, name = "lock") => path.join(root, name)

const takenIn = Effect.fnUntraced(function*(
  { fs }: Files.Directory,
  file: string
): Effect.fn.Return<Taken | undefined, PlatformError> {
  const text = yield* Effect.catchReason(fs.readFileString(file), "PlatformError", "NotFound", () => Effect.undefined)
  if (text === undefined) return undefined
  const found = yield* Effect.option(Schema.decodeEffect(TakenFile)(text))
  return Option.getOrElse(found, () => ({ pid: 0, host: "unknown", since: "unknown", nonce: foreign }))
})

const place = <A>(
  self: Taker,
  name: string,
  text: string,
  bring: (temporary: string, target: string) => Effect.Effect<A, PlatformError>
) =>
  Effect.flatMap(
    Files.draw(self.holder.pid),
    (unique) => Files.place(self.directory, name, text, { unique, isSynced: self.isSynced }, bring)
  )

/** Writes a file where none is; tells whether it did. */
const claim = (self: Taker, name: string, text: string): Effect.Effect<boolean, PlatformError> =>
  place(self, name, text, (temporary, target) =>
    self.directory.fs.link(temporary, target).pipe(
      Effect.as(true),
      Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false)),
      // Whoever has the lock may have swept the file away that was to become it.
      Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed(false))
    ))

const locked = ({ directory }: Taker, found: Taken, judged: "runs" | "unknown") =>
  new Store.SessionLocked({
    path: pathOf(directory),
    pid: found.pid,
    host: found.host,
    since: found.since,
    isCertain: judged === "runs"
  })

/** Whether it is gone; fails where it is not, or where nothing tells. */
const requireGone = (self: Taker, found: Taken): Effect.Effect<void, Store.SessionLocked> => {
  const judged = found.nonce === foreign ? "unknown" : Holder.judge(self.holder, found)
  return judged === "gone" ? Effect.void : Effect.fail(locked(self, found, judged))
}

/**
 * Takes over from one that is gone; tells whether it did. Whoever first makes the file named after it may, so that of two
 * that find it gone one wins; a claim whose maker is gone is replaced in the same way.
 */
const replace = Effect.fnUntraced(function*(
  self: Taker,
  found: Taken,
  text: string
): Effect.fn.Return<boolean, PlatformError | Store.SessionLocked> {
  const { fs } = self.directory
  const claims: Array<string> = []
  for (let dead = found;;) {
    const name = `lock.${dead.nonce}`
    if (yield* claim(self, name, text)) {
      claims.push(name)
      break
    }
    const other = yield* takenIn(self.directory, pathOf(self.directory, name))
    if (other === undefined) break
    yield* requireGone(self, other)
    claims.push(name)
    dead = other
  }
  // Behind the one who took it over, the lock is another one already.
  const isStill = claims.length > 0 && (yield* takenIn(self.directory, pathOf(self.directory)))?.nonce === found.nonce
  if (isStill) yield* place(self, "lock", text, fs.rename)
  for (const name of claims) yield* Effect.ignore(fs.remove(pathOf(self.directory, name)))
  return isStill
})

const contend = Effect.fnUntraced(function*(
  self: Taker,
  text: string
): Effect.fn.Return<void, PlatformError | Store.SessionLocked> {
  for (;;) {
    if (yield* claim(self, "lock", text)) return
    const found = yield* takenIn(self.directory, pathOf(self.directory))
    if (found === undefined) continue
    yield* requireGone(self, found)
    if (yield* replace(self, found, text)) return
  }
})

const acquire = Effect.fnUntraced(function*(
  self: Taker,
  nonce: string
): Effect.fn.Return<void, PlatformError | Store.SessionLocked> {
  const { holder } = self
  const { boot, host, machine, pid, space } = holder
  const since = DateTime.formatIso(yield* DateTime.now)
  const taken: Taken = { pid, host, boot, machine, space, begun: holder.begunAt(pid), since, nonce }
  const text = JSON.stringify(taken)
  // Known before it is there, so that another fiber of this process never takes it for that of a dead one.
  holder.nonces.add(nonce)
  yield* Effect.onError(
    contend(self, text),
    () => Effect.sync(() => holder.nonces.delete(nonce))
  )
})

const release = Effect.fnUntraced(function*({ directory, holder }: Taker, nonce: string) {
  holder.nonces.delete(nonce)
  if ((yield* takenIn(directory, pathOf(directory)))?.nonce === nonce) yield* directory.fs.remove(pathOf(directory))
})

/** Files that a process leaves behind which dies while it takes a lock or a snapshot; whoever has the lock may sweep them. */
const leftover = /^(?:lock|snapshot\.json)(?:\.[0-9a-z-]+)*\.tmp$|^lock\.[0-9a-z-]+$/

const sweep = Effect.fnUntraced(function*({ directory }: Taker, nonce: string) {
  for (const name of yield* directory.fs.readDirectory(directory.root)) {
    if (leftover.test(name) && name !== `lock.${nonce}`) {
      yield* Effect.ignore(directory.fs.remove(pathOf(directory, name)))
    }
  }
})

/** Takes the lock of a directory, which the scope gives back, and sweeps what dead processes left there. */
export const take = Effect.fnUntraced(function*(
  directory: Files.Directory,
  isSynced: boolean
): Effect.fn.Return<Lock, PlatformError | Store.SessionLocked, Scope.Scope> {
  const holder = yield* Holder.CurrentHolder
  const self: Taker = { directory, holder, isSynced }
  const nonce = yield* Files.draw(holder.pid)
  yield* Effect.acquireRelease(acquire(self, nonce), () => Effect.ignore(release(self, nonce)))
  yield* sweep(self, nonce)
  const file = yield* directory.fs.open(pathOf(directory))
  const found = yield* takenIn(directory, pathOf(directory))
  if (found !== undefined && found.nonce !== nonce) return yield* locked(self, found, "runs")
  return { directory, file }
})

/** Fails once the lock is another one, or was taken away: then somebody else may have the session. */
export const requireOwn = (self: Lock): Effect.Effect<void, PlatformError | Store.SessionLost> =>
  Effect.flatMap(self.file.stat, ({ nlink }) => {
    if (Option.getOrElse(nlink, () => 1n) > 0n) return Effect.void
    return Effect.flatMap(takenIn(self.directory, pathOf(self.directory)), (taken) =>
      Effect.fail(
        new Store.SessionLost({
          path: self.directory.root,
          by: taken === undefined
            ? "whoever removed its lock"
            : `process ${taken.pid} on ${taken.host} since ${taken.since}`
        })
      ))
  })
