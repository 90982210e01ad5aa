import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Rung from "effect-compaction/Rung"
import type * as Settings from "effect-compaction/Settings"
import * as SpillStore from "effect-compaction/SpillStore"
import * as Stage from "effect-compaction/Stage"
import * as Transcript from "effect-compaction/Transcript"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as PlatformError from "effect/PlatformError"
import * as Stream from "effect/Stream"
import { createHash, randomBytes } from "node:crypto"
import * as Sha256 from "../src/text/sha256.ts"
import { answers, bytesOf, calls, prompt, result, turn, user, words } from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"

const files = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)

const settings: Settings.Input = { notice: false, protectedToolResults: 1, targetUsage: 0.7 }

/** Twelve turns of which the oldest are truncated under a budget of 6,500 tokens. */
const conversation = prompt(
  user("find out why the build fails"),
  ...Arr.range(0, 11).flatMap((n) => turn(`call-${n}`, 2_000)),
  user("and now?")
)

const budget = { budget: 6_500 }

/** A store that notes every text it was given, and fails the first `failures` times. */
const failing = (failures: number) => {
  const texts = new Map<string, string>()
  let asked = 0
  const service: SpillStore.Service = {
    put: (key, text) =>
      Effect.suspend(() => {
        asked++
        if (asked <= failures) return Effect.fail(new SpillStore.SpillError({ key, reason: "no space left on device" }))
        texts.set(key, text)
        return Effect.void
      }),
    get: (key) => Effect.sync(() => texts.get(key)),
    locate: (key) => `/spill/${key}`
  }
  return { texts, service, asked: () => asked }
}

const providing = (service: SpillStore.Service) => Effect.provideService(SpillStore.SpillStore, service)

const failures = (events: ReadonlyArray<CompactionEvent.CompactionEvent>) =>
  events.filter((event) => event._tag === "SpillFailed")

describe("sha256", () => {
  it("is that of node:crypto", () => {
    const texts = [
      "",
      "abc",
      "\u{1f600}é\0",
      "half \ud83d",
      ...Arr.range(0, 200).map((length) => "x".repeat(length)),
      ...Arr.range(0, 50).map((n) => randomBytes(n * 13).toString("latin1")),
      "long ".repeat(300_000)
    ]
    for (const text of texts) {
      const expected = createHash("sha256").update(new TextEncoder().encode(text)).digest("hex")
      assert.strictEqual(Sha256.hex(text), expected, `of ${text.length} units`)
    }
  })
})

describe("keys", () => {
  it("hold the seq and the start of the hash of the full text, nothing of the conversation", () => {
    const text = "../../etc/passwd\n" + "x".repeat(9_000)
    const transcript = Transcript.fromPrompt(prompt(calls("a"), answers(result("a", text))), () => 1)
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 16)
    assert.strictEqual(SpillStore.keyOf(transcript.entries[1]!), `tool-result-000001-${hash}.txt`)
  })
})

describe("a manager with a store", () => {
  it.effect("names the place in each truncated result, and has written them when the request returns", () =>
    Effect.gen(function*() {
      const { service, texts } = failing(0)
      const manager = yield* Effect.provideService(
        ContextManager.make(seeded({ settings })),
        SpillStore.SpillStore,
        service
      )
      yield* manager.append(conversation)
      yield* manager.requestWith(budget)
      const { decisions, transcript } = yield* manager.view
      const truncated = decisions.filter((decision) => decision._tag === "Truncate")
      assert.isAbove(truncated.length, 2)
      for (const { locator, seq } of truncated) {
        const entry = transcript.entries[seq]!
        const key = SpillStore.keyOf(entry)
        assert.strictEqual(locator, `/spill/${key}`)
        assert.strictEqual(texts.get(key), Transcript.textOf(entry))
      }
      assert.strictEqual(texts.size, truncated.length)
    }).pipe(Effect.scoped))

  it.effect("writes nothing of what it truncated and removed in one pass", () =>
    Effect.gen(function*() {
      const { service, texts } = failing(0)
      const manager = yield* providing(service)(ContextManager.make(seeded({ settings })))
      yield* manager.append(conversation)
      yield* manager.requestWith({ budget: 3_000 })
      const { decisions, items } = yield* manager.view
      const seen = items.filter((item) => item.state === "truncated").map((item) => item.seq)
      const truncated = decisions.flatMap((decision) => decision._tag === "Truncate" ? [decision.seq] : [])
      assert.isAbove(truncated.length, seen.length)
      const written = [...texts.keys()].map((key) => Number(key.slice(12, 18)))
      assert.deepStrictEqual(written.sort((a, b) => a - b), seen)
    }).pipe(Effect.scoped))

  it.effect("without a store names no place", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings }))
      yield* manager.append(conversation)
      const request = yield* manager.requestWith(budget)
      assert.isAbove((yield* manager.status).counts.truncated, 2)
      assert.notInclude(bytesOf(request.prompt), "for the full result")
    }).pipe(Effect.scoped))

  it.effect("holds the texts after the next request when the disk failed once, and says so once", () =>
    Effect.gen(function*() {
      const { service, texts } = failing(1)
      const manager = yield* providing(service)(ContextManager.make(seeded({ settings })))
      yield* manager.append(conversation)
      const first = yield* manager.requestWith(budget)
      const truncated = (yield* manager.status).counts.truncated
      assert.strictEqual(texts.size, truncated - 1)
      const [failed] = failures(first.events)
      assert.strictEqual(failures(first.events).length, 1)
      assert.include(failed!.reason, "no space left on device")
      assert.isFalse(texts.has(failed!.key))
      yield* manager.append("go on")
      const second = yield* manager.requestWith(budget)
      assert.isTrue(texts.has(failed!.key))
      assert.deepStrictEqual(failures(second.events), [])
    }).pipe(Effect.scoped))

  it.effect("tries again at the same request too, which publishes nothing", () =>
    Effect.gen(function*() {
      const { service, texts } = failing(1)
      const manager = yield* providing(service)(ContextManager.make(seeded({ settings })))
      yield* manager.append(conversation)
      yield* manager.requestWith(budget)
      const again = yield* manager.requestWith(budget)
      assert.deepStrictEqual(again.events, [])
      assert.strictEqual(texts.size, (yield* manager.status).counts.truncated)
    }).pipe(Effect.scoped))

  it.effect("does not write again what it knows to be written", () =>
    Effect.gen(function*() {
      const { asked, service } = failing(0)
      const manager = yield* providing(service)(ContextManager.make(seeded({ settings })))
      yield* manager.append(conversation)
      yield* manager.requestWith(budget)
      const before = asked()
      yield* manager.append("go on")
      yield* manager.requestWith(budget)
      assert.strictEqual(asked(), before)
    }).pipe(Effect.scoped))

  it.effect("writes a text once, whatever is decided about it later", () =>
    Effect.gen(function*() {
      const { asked, service, texts } = failing(0)
      const ladder = Ladder.make(Rung.truncateToolResults({ fraction: 1 }), Rung.clearToolResults({ keep: 1 }))
      const manager = yield* providing(service)(
        ContextManager.make(seeded({ settings, ladder: ladder }))
      )
      yield* manager.append(conversation)
      yield* manager.requestWith(budget)
      yield* manager.append("go on")
      yield* manager.requestWith({ budget: 1_000 })
      const { decisions } = yield* manager.view
      const truncated = decisions.flatMap((decision) => decision._tag === "Truncate" ? [decision.seq] : [])
      assert.isAbove(
        decisions.filter((decision) => decision._tag === "Clear" && truncated.includes(decision.seq)).length,
        0
      )
      assert.strictEqual(asked(), texts.size)
    }).pipe(Effect.scoped))

  it.effect("a request that was interrupted while it wrote leaves its boundary to the next", () =>
    Effect.gen(function*() {
      const { service, texts } = failing(0)
      const writing = yield* Deferred.make<void>()
      let puts = 0
      const hanging: SpillStore.Service = {
        ...service,
        put: (key, text) =>
          puts++ === 0 ? Effect.andThen(Deferred.succeed(writing, undefined), Effect.never) : service.put(key, text)
      }
      const manager = yield* providing(hanging)(ContextManager.make(seeded({ settings })))
      yield* manager.append(prompt(...conversation.content.slice(0, 5)))
      const first = yield* manager.requestWith(budget)
      yield* manager.append(prompt(...conversation.content.slice(5)))
      const fiber = yield* Effect.forkChild(manager.requestWith(budget), { startImmediately: true })
      yield* Deferred.await(writing)
      yield* Fiber.interrupt(fiber)
      const request = yield* manager.requestWith(budget)
      assert.strictEqual(request.generation, 1)
      assert.strictEqual(request.prefixChanged, "boundary")
      assert.notDeepEqual(request.prompt.content.slice(0, first.prompt.content.length), first.prompt.content)
      assert.strictEqual(texts.size, (yield* manager.status).counts.truncated)
    }).pipe(Effect.scoped))

  it.effect("writes everything again after a restore, whatever the session before had written", () =>
    Effect.gen(function*() {
      const dead = failing(Infinity)
      const first = yield* providing(dead.service)(ContextManager.make(seeded({ settings })))
      yield* first.append(conversation)
      const request = yield* first.requestWith(budget)
      const live = failing(0)
      const second = yield* providing(live.service)(ContextManager.make(seeded({ settings })))
      yield* second.restore(yield* first.export)
      const restored = yield* second.requestWith(budget)
      assert.strictEqual(bytesOf(restored.prompt), bytesOf(request.prompt))
      assert.strictEqual(live.texts.size, (yield* second.status).counts.truncated)
    }).pipe(Effect.scoped))

  it.effect("restored without a store, keeps the bytes", () =>
    Effect.gen(function*() {
      const { service } = failing(0)
      const first = yield* providing(service)(ContextManager.make(seeded({ settings })))
      yield* first.append(conversation)
      const request = yield* first.requestWith(budget)
      const second = yield* ContextManager.make(seeded({ settings }))
      yield* second.restore(yield* first.export)
      assert.strictEqual(bytesOf((yield* second.requestWith(budget)).prompt), bytesOf(request.prompt))
    }).pipe(Effect.scoped))

  it.effect("a store that dies fails no turn", () =>
    Effect.gen(function*() {
      const { service } = failing(0)
      const dying: SpillStore.Service = { ...service, put: () => Effect.die("bug") }
      const manager = yield* providing(dying)(ContextManager.make(seeded({ settings })))
      yield* manager.append(conversation)
      const request = yield* manager.requestWith(budget)
      assert.isAbove(failures(request.events).length, 0)
    }).pipe(Effect.scoped))

  it.effect("views and decisions are the same bytes whether the disk fails at first, always or never", () =>
    Effect.gen(function*() {
      const run = Effect.fnUntraced(function*(service: SpillStore.Service) {
        const manager = yield* providing(service)(ContextManager.make(seeded({ settings })))
        const bytes: Array<string> = []
        for (let n = 0; n < 6; n++) {
          yield* manager.append(conversation)
          bytes.push(bytesOf((yield* manager.requestWith(budget)).prompt))
        }
        bytes.push(JSON.stringify((yield* manager.view).decisions))
        return bytes
      })
      const working = yield* run(failing(0).service)
      assert.isAbove(working.filter((bytes) => bytes.includes("for the full result")).length, 0)
      for (const times of [1, 3, Infinity]) assert.deepStrictEqual(yield* run(failing(times).service), working)
    }).pipe(Effect.scoped))
})

describe("layerFileSystem", () => {
  /** Puts a text into a new directory that `prepare` was let loose on, and tells what came of it. */
  const attempt = Effect.fnUntraced(function*(
    prepare: (
      directory: string,
      outside: string
    ) => Effect.Effect<void, PlatformError.PlatformError, FileSystem.FileSystem>,
    change: (fs: FileSystem.FileSystem) => Partial<FileSystem.FileSystem> = () => ({})
  ) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const base = yield* fs.makeTempDirectoryScoped()
    const directory = path.join(base, "spill")
    const outside = path.join(base, "outside")
    yield* fs.makeDirectory(outside, { mode: 0o700 })
    yield* fs.writeFileString(path.join(outside, "secret"), "untouched")
    yield* prepare(directory, outside)
    const patched = Layer.succeed(FileSystem.FileSystem, { ...fs, ...change(fs) })
    const layer = Layer.provide(SpillStore.layerFileSystem(directory), Layer.merge(patched, NodePath.layer))
    const events: Array<CompactionEvent.CompactionEvent> = []
    const decisions = yield* Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings }))
      yield* manager.append(conversation)
      events.push(...(yield* manager.requestWith(budget)).events)
      return (yield* manager.view).decisions.filter((decision) => decision._tag === "Truncate")
    }).pipe(Effect.provide(layer))
    const written = yield* Effect.orElseSucceed(fs.readDirectory(directory), () => [])
    assert.deepStrictEqual(yield* fs.readDirectory(outside), ["secret"], "nothing is written elsewhere")
    assert.strictEqual(yield* fs.readFileString(path.join(outside, "secret")), "untouched")
    assert.deepStrictEqual((yield* fs.readDirectory(base)).filter((name) => !["spill", "outside"].includes(name)), [])
    return { decisions, directory, failed: failures(events), written }
  })

  const nothing = () => Effect.void

  it.effect("writes private files into a private directory, each whole", () =>
    Effect.gen(function*() {
      const { decisions, directory, failed, written } = yield* attempt(nothing)
      const fs = yield* FileSystem.FileSystem
      assert.deepStrictEqual(failed, [])
      assert.strictEqual(written.length, decisions.length)
      assert.strictEqual((yield* fs.stat(directory)).mode & 0o777, 0o700)
      for (const { locator } of decisions) {
        assert.strictEqual((yield* fs.stat(locator!)).mode & 0o777, 0o600)
        assert.match(locator!, /\/spill\/tool-result-\d{6}-[0-9a-f]{16}\.txt$/)
        assert.strictEqual((yield* fs.readFileString(locator!)).length, 2_000)
      }
    }).pipe(Effect.scoped, Effect.provide(files)))

  it.effect("takes a relative directory from the working directory, in whole paths", () =>
    Effect.gen(function*() {
      const store = yield* SpillStore.SpillStore
      assert.match(store.locate("tool-result-000001-0123456789abcdef.txt")!, /^\/.*\/some\/where\/tool-result/)
    }).pipe(Effect.provide(Layer.provide(SpillStore.layerFileSystem("some/where"), files))))

  type Prepare = Parameters<typeof attempt>[0]
  const withFs = (use: (fs: FileSystem.FileSystem) => Effect.Effect<void, PlatformError.PlatformError>) =>
    Effect.flatMap(FileSystem.FileSystem, use)

  const foreign = (info: FileSystem.File.Info): FileSystem.File.Info => ({ ...info, uid: Option.some(4_711) })

  const hostile: ReadonlyArray<
    readonly [
      name: string,
      reason: RegExp,
      prepare: Prepare,
      change?: (fs: FileSystem.FileSystem) => Partial<FileSystem.FileSystem>
    ]
  > = [
    [
      "a link as the directory",
      /symbolic link/,
      (directory, outside) => withFs((fs) => fs.symlink(outside, directory))
    ],
    ["a link to nowhere", /symbolic link/, (directory) => withFs((fs) => fs.symlink("/nowhere", directory))],
    ["a file as the directory", /no directory/, (directory) => withFs((fs) => fs.writeFileString(directory, "a file"))],
    [
      "a directory that others can read",
      /open to other users/,
      (directory) => withFs((fs) => Effect.andThen(fs.makeDirectory(directory), fs.chmod(directory, 0o755)))
    ],
    [
      "a directory of somebody else",
      /belongs to somebody else/,
      (directory) => withFs((fs) => fs.makeDirectory(directory, { mode: 0o700 })),
      (fs) => ({ lstat: (path) => Effect.map(fs.lstat(path), foreign) })
    ],
    [
      "a read-only directory",
      /PermissionDenied|permission denied/i,
      (directory) => withFs((fs) => fs.makeDirectory(directory, { mode: 0o500 })),
      () => ({
        open: (path) =>
          Effect.fail(PlatformError.systemError({
            _tag: "PermissionDenied",
            module: "FileSystem",
            method: "open",
            description: "permission denied",
            pathOrDescriptor: path
          }))
      })
    ]
  ]

  for (const [name, reason, prepare, change] of hostile) {
    it.effect(`${name}: refused, the turn goes on, nothing is written`, () =>
      Effect.gen(function*() {
        const { decisions, failed, written } = yield* attempt(prepare, change)
        assert.isAbove(decisions.length, 0)
        assert.strictEqual(failed.length, decisions.length)
        for (const event of failed) assert.match(event.reason, reason)
        assert.deepStrictEqual(written.filter((file) => file !== "secret"), [])
      }).pipe(Effect.scoped, Effect.provide(files)))
  }

  const keyOfFirst = SpillStore.keyOf(Transcript.fromPrompt(conversation, () => 1).entries[2]!)

  it.effect("a link where a text should lie is refused and not followed", () =>
    Effect.gen(function*() {
      const { failed, written } = yield* attempt((directory, outside) =>
        withFs((fs) =>
          Effect.andThen(
            fs.makeDirectory(directory, { mode: 0o700 }),
            fs.symlink(`${outside}/secret`, `${directory}/${keyOfFirst}`)
          )
        )
      )
      assert.deepStrictEqual(failed.map(({ key }) => key), [keyOfFirst])
      assert.include(failed[0]!.reason, "no file lies in its place")
      assert.isAbove(written.length, 1)
    }).pipe(Effect.scoped, Effect.provide(files)))

  it.effect("a file with that name is the text already", () =>
    Effect.gen(function*() {
      const { directory, failed } = yield* attempt((directory) =>
        withFs((fs) =>
          Effect.andThen(
            fs.makeDirectory(directory, { mode: 0o700 }),
            fs.writeFileString(`${directory}/${keyOfFirst}`, "as it was")
          )
        )
      )
      const fs = yield* FileSystem.FileSystem
      assert.deepStrictEqual(failed, [])
      assert.strictEqual(yield* fs.readFileString(`${directory}/${keyOfFirst}`), "as it was")
    }).pipe(Effect.scoped, Effect.provide(files)))

  it.effect("a write that breaks off leaves no part of a file", () =>
    Effect.gen(function*() {
      const { failed, written } = yield* attempt(nothing, (fs) => ({
        rename: (from) =>
          Effect.andThen(
            Effect.map(fs.stat(from), (info) => assert.strictEqual(info.mode & 0o777, 0o600)),
            Effect.fail(PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "rename" }))
          )
      }))
      assert.isAbove(failed.length, 0)
      assert.deepStrictEqual(written, [])
    }).pipe(Effect.scoped, Effect.provide(files)))

  it.effect("keys that are none of this library's are neither written nor read", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.makeTempDirectoryScoped()
      yield* fs.writeFileString(`${base}/secret`, "secret")
      yield* Effect.gen(function*() {
        const store = yield* SpillStore.SpillStore
        for (const key of ["../secret", "secret", "tool-result-000001-0123456789abcdef.txt/../../secret", "", "."]) {
          assert.strictEqual((yield* Effect.flip(store.put(key, "x"))).key, key)
          assert.isUndefined(yield* store.get(key))
        }
        const key = "tool-result-000001-0123456789abcdef.txt"
        assert.isUndefined(yield* store.get(key))
        yield* store.put(key, "a text \u{1f600}")
        assert.strictEqual(yield* store.get(key), "a text \u{1f600}")
      }).pipe(Effect.provide(SpillStore.layerFileSystem(`${base}/spill`)))
    }).pipe(Effect.scoped, Effect.provide(files)))

  it.effect("does not read through a directory that became a link", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.makeTempDirectoryScoped()
      const key = "tool-result-000001-0123456789abcdef.txt"
      yield* fs.makeDirectory(`${base}/other`, { mode: 0o700 })
      yield* fs.writeFileString(`${base}/other/${key}`, "somebody's")
      yield* fs.symlink(`${base}/other`, `${base}/spill`)
      const failure = yield* Effect.flip(Effect.flatMap(SpillStore.SpillStore, (store) => store.get(key))).pipe(
        Effect.provide(SpillStore.layerFileSystem(`${base}/spill`))
      )
      assert.include(failure.message, "symbolic link")
    }).pipe(Effect.scoped, Effect.provide(files)))
})

describe("layers", () => {
  const key = "tool-result-000001-0123456789abcdef.txt"

  it.effect("none holds nothing and locates nothing", () =>
    Effect.gen(function*() {
      const store = yield* SpillStore.SpillStore
      yield* store.put(key, "text")
      assert.isUndefined(yield* store.get(key))
      assert.isUndefined(store.locate(key))
    }).pipe(Effect.provide(SpillStore.layerNone)))

  it.effect("memory", () =>
    Effect.gen(function*() {
      const store = yield* SpillStore.SpillStore
      assert.isUndefined(yield* store.get(key))
      yield* store.put(key, "text")
      assert.strictEqual(yield* store.get(key), "text")
      assert.strictEqual(store.locate(key), key)
    }).pipe(Effect.provide(SpillStore.layerMemory)))

  it.effect("a key-value store, under a prefix", () =>
    Effect.gen(function*() {
      const store = yield* SpillStore.SpillStore
      const kv = yield* KeyValueStore.KeyValueStore
      yield* store.put(key, "text")
      assert.strictEqual(yield* store.get(key), "text")
      assert.strictEqual(yield* kv.get(`session/${key}`), "text")
      assert.strictEqual(store.locate(key), key)
    }).pipe(
      Effect.provide(Layer.provideMerge(
        SpillStore.layerKeyValueStore({ prefix: "session/" }),
        KeyValueStore.layerMemory
      ))
    ))

  it.effect("a key-value store that fails is a SpillError", () =>
    Effect.gen(function*() {
      const store = yield* SpillStore.SpillStore
      const failure = yield* Effect.flip(store.put(key, "text"))
      assert.strictEqual(failure._tag, "SpillError")
      assert.include(failure.message, "down")
      assert.include(failure.message, "SpillStore")
    }).pipe(
      Effect.provide(Layer.provide(
        SpillStore.layerKeyValueStore(),
        Layer.succeed(
          KeyValueStore.KeyValueStore,
          KeyValueStore.makeStringOnly({
            get: () => Effect.undefined,
            set: (key) => Effect.fail(new KeyValueStore.KeyValueStoreError({ message: "down", method: "set", key })),
            remove: () => Effect.void,
            clear: Effect.void,
            size: Effect.succeed(0),
            keys: Effect.succeed([])
          })
        )
      ))
    ))
})

describe("read_spilled", () => {
  const use = (params: { readonly key: string; readonly offset?: number; readonly limit?: number }) =>
    Effect.gen(function*() {
      const tools = yield* SpillStore.retrieveToolkit
      const results = yield* Stream.runCollect(yield* tools.handle("read_spilled", params))
      return results.at(-1)!
    })

  const key = "tool-result-000002-0123456789abcdef.txt"
  const text = `${"0123456789".repeat(5_000)}\u{1f600}end`

  const live = Layer.provideMerge(SpillStore.layerRetrieve, SpillStore.layerMemory)

  const reads: ReadonlyArray<readonly [name: string, params: Parameters<typeof use>[0], expected: string]> = [
    ["from the start", { key, limit: 4 }, "0123\n[characters 0 to 4 of 50005]"],
    ["by default 20,000", { key }, `${text.slice(0, 20_000)}\n[characters 0 to 20000 of 50005]`],
    ["from an offset", { key, offset: 49_998, limit: 2 }, "89\n[characters 49998 to 50000 of 50005]"],
    ["no half of a pair", { key, offset: 50_000, limit: 1 }, "\n[characters 50000 to 50000 of 50005]"],
    ["beyond the end", { key, offset: 60_000 }, "\n[characters 50005 to 50005 of 50005]"],
    ["whole", { key, limit: 1_000_000 }, text],
    ["a path that ends in the key", { key: `/tmp/a session/${key}`, limit: 2 }, "01\n[characters 0 to 2 of 50005]"]
  ]

  for (const [name, params, expected] of reads) {
    it.effect(name, () =>
      Effect.gen(function*() {
        yield* Effect.flatMap(SpillStore.SpillStore, (store) => store.put(key, text))
        const answer = yield* use(params)
        assert.isFalse(answer.isFailure)
        assert.strictEqual(answer.result, expected)
      }).pipe(Effect.provide(live)))
  }

  for (
    const forged of [
      "../../etc/passwd",
      "tool-result-1-zz.txt",
      `${key}/..`,
      "",
      "tool-result-000009-0123456789abcdef.txt"
    ]
  ) {
    it.effect(`no such text: ${JSON.stringify(forged)}`, () =>
      Effect.gen(function*() {
        const answer = yield* use({ key: forged })
        assert.isTrue(answer.isFailure)
        assert.include(JSON.stringify(answer.result), "tool-result-….txt")
      }).pipe(Effect.provide(live)))
  }

  it.effect("asks the store for no key that is none of this library's, and says what the store says", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const store: SpillStore.Service = {
        ...SpillStore.none,
        get: (key) =>
          Effect.suspend(() => {
            asked.push(key)
            return Effect.fail(new SpillStore.SpillError({ key, reason: "no such device" }))
          })
      }
      const ask = (given: string) =>
        use({ key: given }).pipe(Effect.provide(SpillStore.layerRetrieve), providing(store))
      for (const forged of ["/etc/passwd", `${key}.bak`, `x${key}`]) assert.isTrue((yield* ask(forged)).isFailure)
      assert.deepStrictEqual(asked, [])
      assert.include(JSON.stringify((yield* ask(`../${key}`)).result), "no such device")
      assert.deepStrictEqual(asked, [key])
    }))

  it.effect("a 1 MB result that was stored and read back in full adds no second text", () =>
    Effect.gen(function*() {
      const { service, texts } = failing(0)
      const manager = yield* providing(service)(
        ContextManager.make(seeded({ settings: { ...settings, protectedToolResults: 0, maxToolResultBytes: 131_072 } }))
      )
      const huge = words("build log", 1_000_000)
      yield* manager.append(prompt(user("build it"), calls("a"), answers(result("a", huge))))
      yield* manager.requestWith({ budget: 1_000_000 })
      const [stored] = [...texts.keys()]
      assert.strictEqual(texts.size, 1)
      const read = yield* use({ key: stored!, limit: 2_000_000 }).pipe(
        Effect.provide(SpillStore.layerRetrieve),
        providing(service)
      )
      const back = Prompt.makePart("tool-result", {
        id: "b",
        name: SpillStore.retrieveToolName,
        isFailure: false,
        result: read.encodedResult,
        providerExecuted: false
      })
      const call = Prompt.makePart("tool-call", {
        id: "b",
        name: SpillStore.retrieveToolName,
        params: { key: stored },
        providerExecuted: false
      })
      yield* manager.append(prompt(Prompt.makeMessage("assistant", { content: [call] }), answers(back)))
      const request = yield* manager.requestWith({ budget: 1_000_000 })
      assert.isTrue(bytesOf(request.prompt).includes(huge.slice(-2_000)), "it was read whole")
      yield* manager.append(prompt(user("go on"), ...turn("c", 4_000), user("and?")))
      yield* manager.requestWith({ budget: 8_000 })
      const decisions = (yield* manager.view).decisions.filter((decision) => decision._tag === "Truncate")
      assert.include(decisions.map(({ seq }) => seq), 4, "the ladder may still shorten it")
      assert.strictEqual([...texts.keys()].filter((each) => each.startsWith("tool-result-000004")).length, 0)
    }).pipe(Effect.scoped))
})

describe("a pass made of a prompt", () => {
  it.effect("reads the places from the store that is provided", () =>
    Effect.gen(function*() {
      const pass = yield* Stage.fromPrompt(conversation, { settings: seed(settings), budget: 5_000 })
      const after = yield* Ladder.make(Rung.truncateToolResults({ fraction: 1 }))(pass)
      const [decision] = after.view.decisions
      assert.match(decision?._tag === "Truncate" ? decision.locator ?? "" : "", /^\/spill\/tool-result-/)
    }).pipe(providing(failing(0).service)))
})
