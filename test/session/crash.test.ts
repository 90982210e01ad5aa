import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as child from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Delegating from "./delegating.ts"
import { holder } from "./holder.ts"
import * as Program from "./program.ts"
import * as Scenario from "./scenario.ts"

/** All of them: SESSION_CRASHES=full (see docs/sessions.md). */
const isFull = process.env["SESSION_CRASHES"] === "full"

const minutes = 60_000

const places = fs.mkdtempSync(path.join(os.tmpdir(), "session-crash-"))

let writer = ""

beforeAll(() => {
  writer = Program.build("test/session/writer.ts")
})

afterAll(() => {
  fs.rmSync(writer, { force: true })
  fs.rmSync(places, { recursive: true, force: true })
})

const start = (directory: string, seed: number, from: number) =>
  child.spawn(process.execPath, [writer, directory, String(seed), String(from)], {
    stdio: ["ignore", "pipe", "inherit"]
  })

/** Lets a writer run until it was open for some time, kills it, and tells what it said. */
const killed = (directory: string, seed: number, from: number, milliseconds: number) =>
  Effect.promise(() =>
    new Promise<ReadonlyArray<string>>((resolve) => {
      const process = start(directory, seed, from)
      let said = ""
      process.stdout.on("data", (bytes: Buffer) => {
        if (said === "") setTimeout(() => process.kill("SIGKILL"), milliseconds)
        said += bytes.toString()
      })
      process.on("close", () => resolve(said.trim().split("\n")))
    })
  )

const openFile = (directory: string) =>
  Effect.provide(SessionStore.openDirectory(directory, { fsync: "never" }), NodeServices.layer)

describe("a session whose writer dies", () => {
  const kills = isFull ? 250 : 12

  it.live(
    `${kills} times by SIGKILL at random moments`,
    () =>
      Effect.gen(function*() {
        let done = 0
        let seed = 1
        let from = 0
        let torn = 0
        const stopped = new Set<number>()
        let expected = yield* Effect.scoped(Scenario.uninterrupted(seed))
        while (done < kills) {
          const directory = path.join(places, `kill-${seed}`)
          // How long a writer takes for all of its operations, about, once it is open.
          const said = yield* killed(directory, seed, from, Math.random() * 250)
          done++
          assert.strictEqual(said[0], "open")
          const acknowledged = said.length === 1 ? from : Number(said.at(-1)) + 1
          const { next, repair, wrong } = yield* Effect.scoped(Effect.gen(function*() {
            const store = yield* openFile(directory)
            return { ...yield* Scenario.verify(expected, store, acknowledged), repair: store.repair }
          }))
          assert.deepStrictEqual(wrong, [], `seed ${seed}, from ${from}, acknowledged ${acknowledged}`)
          if (repair !== null) torn++
          stopped.add(acknowledged)
          from = next
          if (from >= Scenario.length) {
            seed++
            from = 0
            expected = yield* Effect.scoped(Scenario.uninterrupted(seed))
          }
        }
        yield* Effect.logInfo(
          `${done} kills over ${seed} sessions, after ${stopped.size} different operations, ${torn} torn`
        )
      }),
    10 * minutes
  )

  it.live("two processes: one gets the error that names the other", () =>
    Effect.gen(function*() {
      const directory = path.join(places, "two")
      yield* Effect.scoped(Effect.gen(function*() {
        yield* openFile(directory)
        const said = yield* killed(directory, 1, 0, 5_000)
        assert.match(said[0]!, new RegExp(`^failed The session is open in process ${process.pid} on .+ since \\d{4}-`))
      }))
      assert.deepStrictEqual(yield* killed(directory, 1, Scenario.length, 5_000), ["open"])
    }), minutes)
})

/** Calls of a file system that change something. */
const changing = ["makeDirectory", "open", "link", "rename", "remove", "writeFile"] as const

/**
 * The real files, until `stop` calls that change something were made: then the process is dead, and nothing it does has
 * an effect any more. The last call may be a write that is cut in its middle.
 */
const stopping = (stop: number, isHalf: boolean) => {
  let calls = 0
  const layer = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (real): FileSystem.FileSystem => {
      const dead = Effect.die("the process is dead")
      const alive = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
        Effect.suspend(() => calls++ < stop ? self : dead)
      const file = (opened: FileSystem.File): FileSystem.File =>
        Delegating.file(opened, {
          write: (bytes) => alive(opened.write(bytes)),
          writeAll: (bytes) =>
            Effect.suspend(() => {
              const isLast = calls === stop
              const part = alive(opened.writeAll(bytes))
              if (!isLast || !isHalf) return part
              return Effect.andThen(opened.writeAll(bytes.subarray(0, bytes.length >> 1)), part)
            }),
          sync: alive(opened.sync),
          truncate: (length) => alive(opened.truncate(length))
        })
      const guarded: Record<string, unknown> = {}
      for (const name of changing) {
        const call = real[name] as (...args: ReadonlyArray<never>) => Effect.Effect<unknown, unknown, Scope.Scope>
        guarded[name] = (...args: ReadonlyArray<never>) => {
          const made = alive(call(...args))
          return name === "open" ? Effect.map(made, (opened) => file(opened as FileSystem.File)) : made
        }
      }
      return { ...real, ...guarded }
    })
  ).pipe(Layer.provideMerge(NodeServices.layer))
  return { layer, calls: () => calls }
}

describe("a session that stops after a call of the file system", () => {
  const as = (pid: number) =>
    Effect.provideService(SessionStore.CurrentHolder, holder({ pid, isAlive: (each) => each !== 1 }))

  const length = isFull ? Scenario.length : 14

  for (const isHalf of [false, true]) {
    it.effect(
      `after each single one${isHalf ? ", the last write cut in its middle" : ""}`,
      () =>
        Effect.gen(function*() {
          const expected = yield* Effect.scoped(Scenario.uninterrupted(7))
          let isOver = false
          let stops = 0
          for (let stop = 0; !isOver; stop++) {
            const directory = path.join(places, `stop-${isHalf}-${stop}`)
            const { layer } = stopping(stop, isHalf)
            let acknowledged = 0
            const scope = yield* Scope.make()
            const exit = yield* Effect.exit(
              Effect.gen(function*() {
                const store = yield* SessionStore.openDirectory(directory)
                const manager = yield* Scenario.open(store)
                for (let at = 0; at < length; at++) {
                  yield* Scenario.step(manager, store, 7, at)
                  acknowledged = at + 1
                }
              }).pipe(Scope.provide(scope), Effect.provide(layer), as(1))
            )
            yield* Effect.exit(Scope.close(scope, Exit.void))
            isOver = Exit.isSuccess(exit)
            if (!isOver) stops++
            yield* Effect.scoped(Effect.gen(function*() {
              const store = yield* openFile(directory)
              const { next, wrong } = yield* Scenario.verify(expected, store, acknowledged)
              assert.deepStrictEqual(wrong, [], `stopped after call ${stop}, ${acknowledged} operations`)
              // And it goes on, in another process.
              const manager = yield* Scenario.open(store)
              for (let at = next; at < Math.min(length, next + 4); at++) yield* Scenario.step(manager, store, 7, at)
              const events = Scenario.essence((yield* store.read({ whole: true })).events)
              assert.deepStrictEqual(events, expected.events.slice(0, events.length))
            })).pipe(as(2))
            fs.rmSync(directory, { recursive: true, force: true })
          }
          assert.isAbove(stops, length)
        }),
      10 * minutes
    )
  }
})

describe("a log that lost its end", () => {
  const step = isFull ? 1 : 61

  it.effect(
    `cut at every ${step === 1 ? "byte" : `${step}th byte`} of its last 4 KB, it is what it was after some operation`,
    () =>
      Effect.gen(function*() {
        const directory = path.join(places, "cut")
        const expected = yield* Effect.scoped(Scenario.uninterrupted(5))
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* openFile(directory)
          const manager = yield* Scenario.open(store)
          for (let at = 0; at < Scenario.length; at++) yield* Scenario.step(manager, store, 5, at)
        }))
        const log = path.join(directory, "log.jsonl")
        const bytes = fs.readFileSync(log)
        assert.isAbove(bytes.length, 4_096)
        const counts = new Set<number>()
        for (let length = bytes.length - 4_096; length <= bytes.length; length += step) {
          fs.writeFileSync(log, bytes.subarray(0, length))
          yield* Effect.scoped(Effect.gen(function*() {
            const store = yield* openFile(directory)
            const isWhole = bytes[length - 1] === 0x0a
            assert.strictEqual(store.repair === null, isWhole, `cut at ${length}`)
            const events = Scenario.essence((yield* store.read({ whole: true })).events)
            assert.deepStrictEqual(events, expected.events.slice(0, events.length), `cut at ${length}`)
            const view = expected.views.get(events.length)
            assert.isDefined(view, `cut at ${length}: half of an operation`)
            assert.strictEqual(yield* Scenario.shown(yield* Scenario.open(store)), view, `cut at ${length}`)
            counts.add(events.length)
          }))
          for (const name of fs.readdirSync(directory)) {
            if (name.startsWith("torn-")) fs.rmSync(path.join(directory, name))
          }
        }
        assert.isAbove(counts.size, 1)
      }),
    10 * minutes
  )
})
