import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as PlatformError from "effect/PlatformError"
import * as TestClock from "effect/testing/TestClock"
import * as TestConsole from "effect/testing/TestConsole"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Delegating from "./delegating.ts"
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

Store.suite("memory", SessionStore.layerMemory)

for (const fsync of ["flush", "append", "never"] as const) {
  Store.suite(
    `file, fsync ${fsync}`,
    Layer.unwrap(Effect.map(place, (directory) => SessionStore.layerFile(directory, { fsync }))).pipe(
      Layer.provide(NodeServices.layer)
    )
  )
}

Store.suite("key-value store", Layer.provide(SessionStore.layerKeyValueStore(), KeyValueStore.layerMemory))

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
            Effect.map(real.open(file, options), (opened) =>
              Delegating.file(opened, {
                readAlloc: (size, at) =>
                  Effect.tap(opened.readAlloc(size, at), (part) =>
                    Effect.sync(() =>
                      read.bytes += Option.match(part, { onNone: () => 0, onSome: (each) => each.length })
                    ))
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

describe("a snapshot that is damaged", () => {
  const warnings = Effect.map(
    TestConsole.logLines,
    (lines) => lines.filter((line) => JSON.stringify(line).includes("snapshot"))
  )

  /** A session of three events, of which two are before its snapshot. */
  const made = Effect.gen(function*() {
    const directory = yield* place
    yield* Effect.scoped(Effect.gen(function*() {
      const log = yield* openFile(directory, { fsync: "never" })
      yield* log.append([1])
      yield* log.append([2])
      yield* log.snapshot({ events: 2, state: { sum: 3, text: "Grüße 👋", list: [0, 1.5, null, true] } })
      yield* log.append([3])
    }))
    return { directory, file: path.join(directory, "snapshot.json") }
  })

  const readFrom = (directory: string) =>
    Effect.scoped(Effect.flatMap(openFile(directory, { fsync: "never" }), (log) => log.read()))

  it.effect(
    "by a single bit, or byte, anywhere, is not used: the log is, and that is said",
    () =>
      Effect.gen(function*() {
        const { directory, file } = yield* made
        assert.deepStrictEqual((yield* readFrom(directory)).events, [3])
        const bytes = fs.readFileSync(file)
        for (let at = 0; at < bytes.length; at++) {
          for (const changed of [bytes[at]! ^ (1 << at % 8), bytes[at] === 120 ? 121 : 120]) {
            const flipped = Buffer.from(bytes)
            flipped[at] = changed
            fs.writeFileSync(file, flipped)
            const before = (yield* warnings).length
            assert.deepInclude(yield* readFrom(directory), { snapshot: null, events: [1, 2, 3] }, `byte ${at}`)
            assert.isAbove((yield* warnings).length, before)
          }
        }
      }),
    60_000
  )

  it.effect("by its length is not used either, and the next one takes its place", () =>
    Effect.gen(function*() {
      const { directory, file } = yield* made
      const bytes = fs.readFileSync(file)
      const lengths = [...Array(bytes.length).keys()].filter((length) => length % 7 === 0 || length > bytes.length - 5)
      const others = [...lengths.map((length) => bytes.subarray(0, length)), Buffer.concat([bytes, Buffer.from("\n")])]
      for (const other of others) {
        fs.writeFileSync(file, other)
        assert.deepInclude(yield* readFrom(directory), { snapshot: null, events: [1, 2, 3] })
      }
      yield* Effect.scoped(
        Effect.flatMap(openFile(directory), (log) => log.snapshot({ events: 3, state: "whole" }))
      )
      assert.deepInclude(yield* readFrom(directory), { snapshot: { events: 3, state: "whole" }, events: [] })
    }))

  it.effect("in a key-value store is not used, nor one that is ahead of its log", () =>
    Effect.gen(function*() {
      const kv = yield* Effect.provide(KeyValueStore.KeyValueStore, KeyValueStore.layerMemory)
      const store = yield* Effect.provideService(SessionStore.makeKeyValueStore(), KeyValueStore.KeyValueStore, kv)
      const log = yield* store.open("one")
      yield* log.append([1])
      yield* log.snapshot({ events: 1, state: { sum: 1 } })
      const key = "session/one/snapshot"
      const text = (yield* kv.get(key))!
      yield* kv.set(key, text.replace("\"sum\":1}", "\"sum\":2}"))
      assert.deepInclude(yield* log.read(), { snapshot: null, events: [1] })
      yield* kv.set(key, text)
      assert.deepInclude(yield* log.read(), { snapshot: { events: 1, state: { sum: 1 } }, events: [] })
      yield* kv.set("session/one/head", "0 0 1")
      assert.deepInclude(yield* (yield* store.open("one")).read(), { snapshot: null, events: [] })
    }))
})

/** Who took a lock, who finds it, and what must come of it; both are the same process of one machine but for what is said. */
const here = { pid: 1, host: "here", boot: "boot 1", machine: "machine 1", space: "space 1", begun: "100" }

const situations: ReadonlyArray<
  readonly [
    what: string,
    taken: Partial<Omit<typeof here, "pid"> & { pid: number }> & { readonly own?: boolean },
    finder: Partial<SessionStore.Holder> & { readonly begins?: string | null },
    outcome: "taken over" | "certainly locked" | "refused"
  ]
> = [
  ["another process of this machine that runs", { pid: 2, begun: "50" }, { begins: "50" }, "certainly locked"],
  ["another process of this machine that is gone", { pid: 2 }, { isAlive: () => false }, "taken over"],
  ["a number that was given to another process since", { pid: 2, begun: "50" }, { begins: "60" }, "taken over"],
  ["a number that was reused, where the system tells no beginnings", { pid: 2 }, { begins: null }, "certainly locked"],
  ["this process itself, opening it twice", { own: true }, {}, "certainly locked"],
  ["this process, by another thread or another copy of the library", {}, { begins: "100" }, "certainly locked"],
  ["an earlier process of this number", {}, { begins: "200" }, "taken over"],
  ["a container that was started again, its number the same", { space: "space 0", begun: "50" }, {}, "taken over"],
  ["the same, where the system tells nothing but numbers", {}, { boot: null, space: null, begins: null }, "taken over"],
  ["a container beside this one, of the same name", { pid: 2, space: "space 2" }, { isAlive: () => false }, "refused"],
  ["another machine", { pid: 2, host: "there", boot: "boot 2", machine: "machine 2" }, {}, "refused"],
  ["another machine whose process has the number of this one", { host: "there", boot: "boot 2" }, {}, "refused"],
  ["another machine of the same name", { boot: "boot 2", machine: "machine 2" }, {}, "refused"],
  ["a machine of this name, where nothing tells machines apart", { boot: "boot 2" }, { machine: null }, "refused"],
  ["this machine, before it was started anew", { pid: 2, boot: "boot 0" }, {}, "taken over"],
  ["this machine under the name it had before", { pid: 2, host: "before" }, { isAlive: () => false }, "taken over"],
  ["a machine, where this one does not know its own name", { pid: 2, boot: "boot 2" }, { host: "" }, "refused"]
]

describe("who holds the lock of a session", () => {
  for (const [what, { own = false, ...taken }, { begins = "100", ...finder }, outcome] of situations) {
    it.effect(`${what}: ${outcome}`, () =>
      Effect.gen(function*() {
        const directory = yield* place
        yield* write(directory, [[1]])
        const { begun: _, ...me } = here
        const lock = path.join(directory, "lock")
        fs.writeFileSync(lock, JSON.stringify({ ...here, ...taken, since: "then", nonce: "a-nonce" }))
        const opened = yield* Effect.result(
          openFile(directory).pipe(
            Effect.provideService(
              SessionStore.CurrentHolder,
              holding({ ...me, begunAt: () => begins, nonces: new Set(own ? ["a-nonce"] : []), ...finder })
            )
          )
        )
        if (outcome === "taken over") return assert.strictEqual(opened._tag, "Success")
        if (opened._tag === "Success") return assert.fail("the lock was taken")
        assert.deepInclude(opened.failure, { _tag: "SessionLocked", isCertain: outcome === "certainly locked" })
        assert.include(opened.failure.message, `remove ${lock}`)
        assert.strictEqual(JSON.parse(fs.readFileSync(lock, "utf8")).nonce, "a-nonce")
      }))
  }

  it.effect("does not depend on the clock: one that goes back changes nothing", () =>
    Effect.gen(function*() {
      const directory = yield* place
      const one = holding({ pid: 1 })
      yield* TestClock.setTime(1_000_000)
      const log = yield* openFile(directory).pipe(Effect.provideService(SessionStore.CurrentHolder, one))
      yield* TestClock.setTime(0)
      const other = Effect.provideService(SessionStore.CurrentHolder, holding({ pid: 2 }))
      assert.strictEqual((yield* Effect.flip(openFile(directory).pipe(other)))._tag, "SessionLocked")
      yield* log.append([1])
      yield* log.snapshot({ events: 1, state: 1 })
    }))

  it("is known of this very process", () => {
    const holder = SessionStore.CurrentHolder.defaultValue()
    assert.deepInclude(holder, { pid: process.pid, host: os.hostname() })
    assert.isTrue(holder.isAlive(process.pid))
    assert.isFalse(holder.isAlive(2 ** 30))
    if (process.platform !== "linux") return
    for (const known of [holder.boot, holder.space, holder.begunAt(process.pid)]) assert.isAbove(known?.length ?? 0, 0)
    assert.isNull(holder.begunAt(2 ** 30))
    assert.strictEqual(holder.begunAt(process.pid), holder.begunAt(process.pid))
  })

  it.effect("a lock that was taken away ends the session, before anything is written", () =>
    Effect.gen(function*() {
      for (const isTaken of [false, true]) {
        const directory = yield* place
        const log = yield* openFile(directory)
        yield* log.append([1])
        fs.rmSync(path.join(directory, "lock"))
        const other = Effect.provideService(SessionStore.CurrentHolder, holding({ pid: 2, host: "there" }))
        const second = isTaken ? yield* openFile(directory).pipe(other) : log
        const error = yield* Effect.flip(log.append([2]))
        if (error._tag !== "SessionLost") return assert.fail(error._tag)
        assert.include(error.by, isTaken ? "process 2 on there" : "removed its lock")
        assert.strictEqual((yield* Effect.flip(log.flush))._tag, "SessionLost")
        if (isTaken) yield* second.append([3])
        assert.deepStrictEqual((yield* second.read({ whole: true })).events, isTaken ? [1, 3] : [1])
      }
    }))

  it.effect("a nonce that leads out of the directory is none: nothing outside is touched", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* write(directory, [[1]])
      const outside = path.join(directory, "..", "outside")
      fs.writeFileSync(outside, "mine")
      for (const nonce of ["../../outside", "/../outside", "a/b", "..", "", "x".repeat(101), "Ä"]) {
        const taken = { ...here, pid: 2, since: "then", nonce }
        fs.writeFileSync(path.join(directory, "lock"), JSON.stringify(taken))
        const dead = Effect.provideService(SessionStore.CurrentHolder, holding({ isAlive: () => false }))
        const error = yield* Effect.flip(openFile(directory).pipe(dead))
        assert.deepInclude(error, { _tag: "SessionLocked", isCertain: false })
        assert.strictEqual(fs.readFileSync(outside, "utf8"), "mine")
      }
      assert.deepStrictEqual(fs.readdirSync(directory).sort(), ["lock", "log.jsonl"])
    }))

  it.effect("what dead processes left is swept at the opening, and nothing else is", () =>
    Effect.gen(function*() {
      const directory = yield* place
      yield* write(directory, [[1]])
      const kept = ["notes.tmp", "torn-5-abc", "snapshot.json.backup", "lock.backup.txt"]
      const left = ["snapshot.json.1-a-b.tmp", "snapshot.json.zz.tmp", "lock.1-a.tmp", "lock.1-a.2-b.tmp", "lock.1-a"]
      for (const name of [...kept, ...left]) fs.writeFileSync(path.join(directory, name), "{}")
      yield* Effect.scoped(openFile(directory))
      assert.deepStrictEqual(fs.readdirSync(directory).sort(), [...kept, "log.jsonl"].sort())
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
            Effect.map(real.open(file, options), (opened) => {
              const guarded = <A>(method: string, self: Effect.Effect<A, PlatformError.PlatformError>) =>
                Effect.suspend(() => fault(calls++, method) === "none" ? self : Effect.fail(error(method)))
              return Delegating.file(opened, {
                writeAll: (bytes) =>
                  Effect.suspend(() => {
                    const what = fault(calls++, "write")
                    if (what === "none") return opened.writeAll(bytes)
                    const half = what === "half" ? bytes.subarray(0, bytes.length >> 1) : bytes.subarray(0, 0)
                    return Effect.andThen(opened.writeAll(half), Effect.fail(error("write")))
                  }),
                sync: guarded("sync", opened.sync),
                truncate: (length) => guarded("truncate", opened.truncate(length))
              })
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
