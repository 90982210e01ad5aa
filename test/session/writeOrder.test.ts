/** In which order what a store writes becomes durable: a crash between two steps may leave nothing half there. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Delegating from "./delegating.ts"

const place = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "order-"))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

/** What is done to files, by the names of the files without what makes them unique. */
const recording = (done: Array<string>) => {
  const nameOf = (file: string) => path.basename(file).replace(/\.[\w-]+\.tmp$/, ".tmp")
  const noted = <A, E>(what: string, self: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      done.push(what)
      return self
    })
  return Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (real): FileSystem.FileSystem => ({
      ...real,
      open: (file, options) =>
        Effect.map(real.open(file, options), (opened) =>
          Delegating.file(opened, {
            writeAll: (bytes) => noted(`write ${nameOf(file)}`, opened.writeAll(bytes)),
            sync: noted(`sync ${nameOf(file)}`, opened.sync)
          })),
      rename: (from, to) => noted(`rename ${nameOf(from)} ${nameOf(to)}`, real.rename(from, to)),
      link: (from, to) => noted(`link ${nameOf(from)} ${nameOf(to)}`, real.link(from, to))
    }))
  ).pipe(Layer.provideMerge(NodeServices.layer))
}

describe("a file that another one is replaced by", () => {
  it.effect("is on the disk before it has its name: the lock, and a snapshot", () =>
    Effect.gen(function*() {
      const directory = path.join(yield* place, "session")
      const done: Array<string> = []
      yield* Effect.scoped(Effect.gen(function*() {
        const log = yield* SessionStore.openDirectory(directory)
        yield* log.append([1])
        yield* log.snapshot({ events: 1, state: 1 })
      })).pipe(Effect.provide(recording(done)))
      const named = done.filter((each) => / \S+\.tmp /.test(each))
      assert.isAtLeast(named.length, 2, done.join(", "))
      for (const each of named) {
        const [, temporary] = each.split(" ")
        const at = done.indexOf(each)
        const written = done.lastIndexOf(`write ${temporary}`, at)
        const synced = done.lastIndexOf(`sync ${temporary}`, at)
        assert.isTrue(written >= 0 && written < synced && synced < at, done.join(", "))
      }
      assert.isTrue(named.some((each) => each.startsWith("rename snapshot.json")))
    }))
})

describe("an append in a key-value store", () => {
  it.effect("is there before the head counts it, and one that the head does not count is not there", () =>
    Effect.gen(function*() {
      const kv = yield* Effect.provide(KeyValueStore.KeyValueStore, KeyValueStore.layerMemory)
      const keys: Array<string> = []
      let stopsAt = ""
      const crashing: KeyValueStore.KeyValueStore = {
        ...kv,
        set: (key, value) => {
          keys.push(key)
          return stopsAt !== "" && key.endsWith(stopsAt) ? Effect.interrupt : kv.set(key, value)
        }
      }
      const store = yield* Effect.provideService(
        SessionStore.makeKeyValueStore(),
        KeyValueStore.KeyValueStore,
        crashing
      )
      yield* Effect.scoped(Effect.gen(function*() {
        const log = yield* store.open("one")
        yield* log.append([1])
        keys.length = 0
        yield* log.append([2])
        assert.strictEqual(keys.length, 2)
        assert.isFalse(keys[0]!.endsWith("head"))
        assert.isTrue(keys[1]!.endsWith("head"))
        stopsAt = "head"
        yield* Effect.exit(log.append([3]))
        stopsAt = ""
      }))
      assert.deepStrictEqual((yield* store.read("one")).events, [1, 2])
      yield* Effect.scoped(Effect.flatMap(store.open("one"), (log) => log.append([4])))
      assert.deepStrictEqual((yield* store.read("one")).events, [1, 2, 4])
    }))
})
