import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as PlatformError from "effect/PlatformError"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { holder as holding } from "./holder.ts"
import * as Store from "./storeSuite.ts"

/** A directory of its own, removed with the scope. */
const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "session-"))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const place = Effect.map(temporary, (directory) => path.join(directory, "deep", "session"))

const openFile = (directory: string, options?: SessionStore.FileOptions) =>
  Effect.provide(SessionStore.openDirectory(directory, options), NodeServices.layer)

/** Where one session of a store lies. */
const session = (store: SessionStore.SessionStore["Service"]): Store.Place => ({ store, open: store.open("one") })

Store.suite("memory", Effect.map(SessionStore.makeMemory, session))

for (const fsync of ["flush", "append", "never"] as const) {
  Store.suite(
    `file, fsync ${fsync}`,
    Effect.flatMap(
      place,
      (directory) =>
        Effect.provide(Effect.map(SessionStore.makeFile(directory, { fsync }), session), NodeServices.layer)
    )
  )
}

Store.suite(
  "key-value store",
  Effect.flatMap(
    Layer.build(KeyValueStore.layerMemory),
    (context) => Effect.provideContext(Effect.map(SessionStore.makeKeyValueStore(), session), context)
  )
)

const logOf = (directory: string) => path.join(directory, "log.jsonl")

const write = (directory: string, batches: ReadonlyArray<ReadonlyArray<number>>) =>
  Effect.scoped(Effect.gen(function*() {
    const store = yield* openFile(directory, { fsync: "never" })
    for (const batch of batches) yield* store.append(batch)
  }))

const readBack = (directory: string) =>
  Effect.scoped(Effect.gen(function*() {
    const store = yield* openFile(directory, { fsync: "never" })
    return { events: (yield* store.read({ whole: true })).events, repair: store.repair }
  }))

describe("a session in files", () => {
  it.effect("is the owner's alone", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const store = yield* openFile(directory)
      yield* store.append([1])
      yield* store.snapshot({ events: 1, state: 1 })
      const mode = (file: string) => fs.statSync(path.join(directory, file)).mode & 0o777
      assert.strictEqual(mode("."), 0o700)
      assert.deepStrictEqual(
        fs.readdirSync(directory).sort().map((file) => [file, mode(file)]),
        [["lock", 0o600], ["log.jsonl", 0o600], ["snapshot.json", 0o600]]
      )
    }))

  it.effect("one append is one line", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* write(directory, [[1], [2, 3]])
      assert.deepStrictEqual(fs.readFileSync(logOf(directory), "utf8").split("\n"), [
        "{\"seq\":0,\"sum\":\"4c2f32b8\",\"events\":[1]}",
        "{\"seq\":1,\"sum\":\"0325ce10\",\"events\":[2,3]}",
        ""
      ])
      assert.isFalse(fs.existsSync(path.join(directory, "lock")))
    }))

  const refusals: ReadonlyArray<readonly [string, (directory: string) => void, string]> = [
    ["a directory that is open to others", (directory) => fs.chmodSync(directory, 0o755), "open to other users"],
    ["a link in the place of the directory", (directory) => {
      fs.renameSync(directory, `${directory}.real`)
      fs.symlinkSync(`${directory}.real`, directory)
    }, "it is a link"],
    ["a file in the place of the directory", (directory) => {
      fs.rmSync(directory, { recursive: true })
      fs.writeFileSync(directory, "")
    }, "no directory"],
    ...["log.jsonl", "lock", "snapshot.json"].map((name) =>
      [`a link in the place of ${name}`, (directory: string) => {
        fs.rmSync(path.join(directory, name), { force: true })
        fs.symlinkSync("/etc/passwd", path.join(directory, name))
      }, "a link"] as const
    )
  ]
  for (const [what, spoil, reason] of refusals) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const directory = yield* place
        yield* write(directory, [[1]])
        spoil(directory)
        const error = yield* Effect.flip(readBack(directory))
        assert.strictEqual(error._tag, "SessionStoreError")
        assert.include(error.message, reason)
        assert.isFalse(fs.readFileSync("/etc/passwd", "utf8").includes("\"seq\""))
      }))
  }

  it.effect("cut at every byte, it is the appends that are whole, and goes on", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const batches = Array.from({ length: 4 }, (_, at) => Array.from({ length: at % 3 + 1 }, (_, n) => 10 * at + n))
      yield* write(directory, batches)
      const bytes = fs.readFileSync(logOf(directory))
      for (let length = 0; length <= bytes.length; length++) {
        fs.writeFileSync(logOf(directory), bytes.subarray(0, length))
        const whole = bytes.subarray(0, length).toString().split("\n").length - 1
        const isTorn = length > 0 && bytes[length - 1] !== 0x0a
        const { events, repair } = yield* readBack(directory)
        assert.deepStrictEqual(events, batches.slice(0, whole).flat())
        assert.strictEqual(repair !== null, isTorn)
        if (repair !== null) {
          assert.strictEqual(repair.line, whole + 1)
          assert.strictEqual(fs.readFileSync(repair.kept!).length, repair.bytes)
        }
        yield* write(directory, [[-1]])
        assert.deepStrictEqual((yield* readBack(directory)).events, [...batches.slice(0, whole).flat(), -1])
      }
    }), 30_000)

  const garbage: ReadonlyArray<readonly [string, string | Uint8Array]> = [
    ["half a line", "{\"seq\":3,\"su"],
    ["a line of another program", "{\"a\":1}\n"],
    ["a line whose sum is wrong", "{\"seq\":3,\"sum\":\"00000000\",\"events\":[1]}\n"],
    ["an empty line", "\n"],
    ["zeros", new Uint8Array(4_096)],
    ["bytes that are no text", new Uint8Array([0xff, 0xfe, 0x0a, 0x80, 0x0a])]
  ]
  for (const [what, bytes] of garbage) {
    it.effect(`${what} behind the log is cut off, kept and reported`, () =>
      Effect.gen(function*() {
        const directory = yield* place
        yield* write(directory, [[1], [2, 3]])
        fs.appendFileSync(logOf(directory), bytes)
        const { events, repair } = yield* readBack(directory)
        assert.deepStrictEqual(events, [1, 2, 3])
        if (repair === null) return assert.fail("nothing was repaired")
        assert.deepInclude(repair, { line: 3, bytes: Buffer.from(bytes).length })
        assert.deepStrictEqual(fs.readFileSync(repair.kept!), Buffer.from(bytes))
        assert.deepStrictEqual(yield* readBack(directory), { events: [1, 2, 3], repair: null })
      }))
  }

  it.effect("every flipped bit is repaired or refused, never read", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* write(directory, [[1], [2, 3], [4]])
      const bytes = fs.readFileSync(logOf(directory))
      for (let at = 0; at < bytes.length; at++) {
        const flipped = Buffer.from(bytes)
        flipped[at] = flipped[at]! ^ (1 << at % 8)
        fs.writeFileSync(logOf(directory), flipped)
        const exit = yield* Effect.result(readBack(directory))
        if (exit._tag === "Failure") {
          assert.strictEqual(exit.failure._tag, "SessionCorrupt")
          assert.include(exit.failure.message, "log.jsonl, line ")
        } else {
          assert.isNotNull(exit.success.repair)
          assert.deepStrictEqual(exit.success.events, [1, 2, 3])
        }
      }
    }), 30_000)

  it.effect("a line in the middle that is damaged is named", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* write(directory, [[1], [2], [3]])
      const lines = fs.readFileSync(logOf(directory), "utf8").split("\n")
      fs.writeFileSync(logOf(directory), [lines[0], "{}", lines[2], ""].join("\n"))
      const damaged = yield* Effect.flip(readBack(directory))
      assert.deepInclude(damaged, { _tag: "SessionCorrupt", line: 2 })
      fs.writeFileSync(logOf(directory), [lines[0], lines[2], ""].join("\n"))
      const missing = yield* Effect.flip(readBack(directory))
      assert.deepInclude(missing, { _tag: "SessionCorrupt", line: 2, reason: "it is out of order" })
    }))

  it.effect("a snapshot of another log is not used", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* openFile(directory)
        yield* store.append([1])
        yield* store.append([2])
        yield* store.snapshot({ events: 2, state: "old" })
      }))
      const snapshot = fs.readFileSync(path.join(directory, "snapshot.json"))
      fs.rmSync(logOf(directory))
      yield* write(directory, [[7], [8], [9]])
      fs.writeFileSync(path.join(directory, "snapshot.json"), snapshot)
      const store = yield* openFile(directory)
      assert.deepStrictEqual(yield* store.read(), { snapshot: null, events: [7, 8, 9], lines: [1, 2, 3] })
    }))

  it.effect("what a snapshot stands for is not read", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const long = Array.from({ length: 1_000 }, () => "a line of text")
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* openFile(directory)
        for (let at = 0; at < 20; at++) yield* store.append([...long, at])
        yield* store.snapshot({ events: 20 * 1_001, state: "old" })
        yield* store.append([7])
      }))
      const read = { bytes: 0 }
      const counted = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (real): FileSystem.FileSystem => ({
          ...real,
          readFile: (file) => Effect.tap(real.readFile(file), (bytes) => Effect.sync(() => read.bytes += bytes.length)),
          open: (file, options) =>
            Effect.map(real.open(file, options), (opened): FileSystem.File => ({
              [FileSystem.FileTypeId]: FileSystem.FileTypeId,
              stat: opened.stat,
              seek: (offset, from) => opened.seek(offset, from),
              sync: opened.sync,
              read: (buffer, at) => opened.read(buffer, at),
              readAlloc: (size, at) =>
                Effect.tap(opened.readAlloc(size, at), (part) =>
                  Effect.sync(() =>
                    read.bytes += Option.match(part, { onNone: () => 0, onSome: (each) => each.length })
                  )),
              truncate: (length) => opened.truncate(length),
              write: (buffer) => opened.write(buffer),
              writeAll: (buffer) => opened.writeAll(buffer)
            }))
        }))
      ).pipe(Layer.provideMerge(NodeServices.layer))
      const { size } = fs.statSync(logOf(directory))
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* SessionStore.openDirectory(directory)
        const { events, lines, snapshot } = yield* store.read()
        assert.deepStrictEqual({ events, lines, snapshot }, {
          events: [7],
          lines: [21],
          snapshot: { events: 20 * 1_001, state: "old" }
        })
        yield* store.append([8])
        assert.deepStrictEqual((yield* store.read({ whole: true })).events.slice(-3), [19, 7, 8])
      })).pipe(Effect.provide(counted))
      // The line before the snapshot's place, and what is behind it, at the opening and at the first read; then all of it.
      assert.isBelow(read.bytes, size + 2.5 * size / 20)
    }))

  it.effect("a log that was torn anywhere behind its snapshot, or before it, is what came whole", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* openFile(directory)
        for (const at of [1, 2, 3]) yield* store.append([at])
        yield* store.snapshot({ events: 3, state: 6 })
        for (const at of [4, 5]) yield* store.append([at])
      }))
      const bytes = fs.readFileSync(logOf(directory))
      for (let length = bytes.length; length >= 0; length--) {
        fs.writeFileSync(logOf(directory), bytes.subarray(0, length))
        const whole = bytes.subarray(0, length).toString().split("\n").length - 1
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* openFile(directory, { fsync: "never" })
          const kept = [1, 2, 3, 4, 5].slice(0, whole)
          assert.deepStrictEqual((yield* store.read({ whole: true })).events, kept, `cut to ${length}`)
          const { events, snapshot } = yield* store.read()
          assert.deepStrictEqual(events, whole < 3 ? kept : kept.slice(3), `cut to ${length}`)
          assert.deepStrictEqual(snapshot, whole < 3 ? null : { events: 3, state: 6 })
          const end = bytes.subarray(0, length).lastIndexOf(10) + 1
          assert.strictEqual(store.repair?.bytes, end === length ? undefined : length - end)
          yield* store.append([9])
          assert.deepStrictEqual((yield* store.read({ whole: true })).events, [...kept, 9])
        }))
      }
    }))
})

describe("the lock of a session", () => {
  const as = (given: Partial<SessionStore.Holder>) => Effect.provideService(SessionStore.CurrentHolder, holding(given))
  const holder = (pid: number, alive: ReadonlyArray<number>, host = "here") =>
    as({ pid, host, isAlive: (each) => alive.includes(each) })

  it.effect("names its holder", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const one = holder(1, [1, 2])
      yield* openFile(directory).pipe(one)
      const error = yield* Effect.flip(openFile(directory).pipe(holder(2, [1, 2])))
      assert.deepInclude(error, { _tag: "SessionLocked", pid: 1, host: "here", since: "1970-01-01T00:00:00.000Z" })
      assert.include(error.message, "process 1 on here")
      const same = yield* Effect.flip(openFile(directory).pipe(one))
      assert.strictEqual(same._tag, "SessionLocked")
    }))

  it.effect("is free again when its scope is closed", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* Effect.scoped(openFile(directory).pipe(holder(1, [1, 2])))
      yield* openFile(directory).pipe(holder(2, [1, 2]))
    }))

  it.effect("of a process that is gone is taken over, of another host it is not", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* openFile(directory).pipe(holder(1, [1]))
      const elsewhere = yield* Effect.flip(openFile(directory).pipe(holder(2, [2], "there")))
      assert.strictEqual(elsewhere._tag, "SessionLocked")
      yield* openFile(directory).pipe(holder(2, [2]))
      assert.strictEqual(JSON.parse(fs.readFileSync(path.join(directory, "lock"), "utf8")).pid, 2)
      assert.deepStrictEqual(fs.readdirSync(directory).sort(), ["lock", "log.jsonl"])
    }))

  it.effect("that was taken over is not given back by its old holder", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* Effect.scoped(Effect.gen(function*() {
        yield* openFile(directory).pipe(holder(1, [1]))
        fs.writeFileSync(
          path.join(directory, "lock"),
          JSON.stringify({ pid: 2, host: "here", since: "now", nonce: "other" })
        )
      }))
      assert.isTrue(fs.existsSync(path.join(directory, "lock")))
    }))

  it.effect("a claim whose maker died is taken over too", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* write(directory, [[1]])
      const lock = (name: string, pid: number, nonce: string) =>
        fs.writeFileSync(path.join(directory, name), JSON.stringify({ pid, host: "here", since: "then", nonce }))
      lock("lock", 1, "one")
      lock("lock.one", 2, "two")
      yield* openFile(directory).pipe(holder(3, [3]))
      assert.deepStrictEqual(fs.readdirSync(directory).sort(), ["lock", "log.jsonl"])
      lock("lock", 1, "one")
      lock("lock.one", 2, "two")
      const error = yield* Effect.flip(openFile(directory).pipe(holder(3, [2, 3])))
      assert.deepInclude(error, { _tag: "SessionLocked", pid: 2 })
    }))

  it.effect("that is none of ours holds", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* write(directory, [[1]])
      fs.writeFileSync(path.join(directory, "lock"), "mine")
      assert.strictEqual((yield* Effect.flip(readBack(directory)))._tag, "SessionLocked")
    }))
})

describe("a disk that fails", () => {
  /** Files of the real disk; `allow` says what every call may do, by its number from 0. */
  const failing = (fault: (call: number, method: string) => "none" | "fail" | "half") =>
    Layer.effect(
      FileSystem.FileSystem,
      Effect.map(FileSystem.FileSystem, (real): FileSystem.FileSystem => {
        let calls = 0
        const error = (method: string) =>
          PlatformError.systemError({
            _tag: "Unknown",
            module: "FileSystem",
            method,
            description: "ENOSPC: no space left on device"
          })
        return {
          ...real,
          open: (file, options) =>
            Effect.map(real.open(file, options), (opened): FileSystem.File => {
              const guarded = <A>(method: string, self: Effect.Effect<A, PlatformError.PlatformError>) =>
                Effect.suspend(() => fault(calls++, method) === "none" ? self : Effect.fail(error(method)))
              return {
                [FileSystem.FileTypeId]: FileSystem.FileTypeId,
                stat: opened.stat,
                seek: (offset, from) => opened.seek(offset, from),
                read: (buffer, options) => opened.read(buffer, options),
                readAlloc: (size, options) => opened.readAlloc(size, options),
                write: (bytes) => opened.write(bytes),
                writeAll: (bytes) =>
                  Effect.suspend(() => {
                    const what = fault(calls++, "write")
                    if (what === "none") return opened.writeAll(bytes)
                    const half = what === "half" ? bytes.subarray(0, bytes.length >> 1) : bytes.subarray(0, 0)
                    return Effect.andThen(opened.writeAll(half), Effect.fail(error("write")))
                  }),
                sync: guarded("sync", opened.sync),
                truncate: (length) => guarded("truncate", opened.truncate(length))
              }
            })
        }
      })
    ).pipe(Layer.provideMerge(NodeServices.layer))

  for (const kind of ["fail", "half"] as const) {
    it.effect(`full, an append leaves nothing (${kind}), and goes on when there is room`, () =>
      Effect.gen(function*() {
        const directory = yield* place
        let isFull = false
        let mayCut = true
        const disk = failing((_, method) => isFull && (method === "write" || !mayCut) ? kind : "none")
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* SessionStore.openDirectory(directory)
          yield* store.append([1])
          isFull = true
          for (const cut of [true, false]) {
            mayCut = cut
            const error = yield* Effect.flip(store.append([2, 3]))
            assert.deepInclude(error, { _tag: "SessionStoreError", operation: "append" })
            assert.include(error.message, "no space left")
          }
          assert.deepStrictEqual((yield* store.read({ whole: true })).events, [1])
          isFull = false
          yield* store.append([4])
          assert.deepStrictEqual((yield* store.read({ whole: true })).events, [1, 4])
        })).pipe(Effect.provide(disk))
        assert.deepStrictEqual(yield* readBack(directory), { events: [1, 4], repair: null })
      }))
  }

  it.effect("that cannot sync fails the flush, or the append", () =>
    Effect.gen(function*() {
      for (const fsync of ["flush", "append", "never"] as const) {
        const directory = yield* place
        let isBroken = false
        const disk = failing((_, method) => isBroken && method === "sync" ? "fail" : "none")
        const outcome = yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* SessionStore.openDirectory(directory, { fsync })
          isBroken = true
          const appended = yield* Effect.result(store.append([1]))
          const flushed = yield* Effect.result(store.flush)
          return [appended._tag, flushed._tag]
        })).pipe(Effect.provide(disk))
        const expected = {
          flush: ["Success", "Failure"],
          append: ["Failure", "Failure"],
          never: ["Success", "Success"]
        }
        assert.deepStrictEqual(outcome, expected[fsync])
        assert.deepStrictEqual((yield* readBack(directory)).events, fsync === "append" ? [] : [1])
      }
    }))

  for (const tag of ["PermissionDenied", "ReadOnly"] as const) {
    for (const method of ["lstat", "makeDirectory", "open", "link", "readFile"] as const) {
      it.effect(`${tag} of ${method} is a typed error`, () =>
        Effect.gen(function*() {
          const directory = yield* place
          if (method === "readFile") yield* write(directory, [[1]])
          const error = PlatformError.systemError({
            _tag: "PermissionDenied",
            module: "FileSystem",
            method,
            description: tag === "ReadOnly" ? "EROFS: read-only file system" : "EACCES: permission denied"
          })
          const disk = Layer.effect(
            FileSystem.FileSystem,
            Effect.map(FileSystem.FileSystem, (real) => ({ ...real, [method]: () => Effect.fail(error) }))
          ).pipe(Layer.provideMerge(NodeServices.layer))
          const failure = yield* Effect.flip(Effect.scoped(Effect.provide(SessionStore.openDirectory(directory), disk)))
          assert.deepInclude(failure, { _tag: "SessionStoreError", operation: "open" })
          assert.include(failure.message, tag === "ReadOnly" ? "EROFS" : "EACCES")
        }))
    }
  }
})
