import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { randomUUID } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Postgres from "../session/postgres.ts"
import * as Program from "./program.ts"

let program: Program.Program
let root = ""
let directory = ""

const settings = { maxTokens: 10_000, protectedRecent: 0, targetUsage: 0.1 }

/** A session with one boundary, and what came since. */
const filled = Effect.fnUntraced(function*(since: number) {
  const manager = yield* ContextManager.open("one", { settings })
  yield* manager.append("Find out why the build fails.")
  const line = (at: number) => manager.append([{ role: "assistant", content: `Line ${at}: ${"warning ".repeat(80)}` }])
  for (let at = 0; at < 30; at++) yield* line(at)
  yield* manager.request
  const whole = yield* manager.view
  yield* manager.compactNow()
  yield* manager.request
  for (let at = 0; at < since; at++) yield* line(30 + at)
  yield* manager.flush
  return { whole, view: yield* manager.view, generation: (yield* manager.status).generation }
}, Effect.scoped)

const inFiles = <A, E>(use: Effect.Effect<A, E, SessionStore.SessionStore>) =>
  use.pipe(
    Effect.provide(Layer.provideMerge(SessionStore.layerFile(root, { fsync: "never" }), NodeServices.layer))
  )

beforeAll(async () => {
  program = await Program.make()
  root = join(program.folder, "sessions")
  directory = join(root, "one")
})
afterAll(() => program.remove())

const run = (...args: ReadonlyArray<string>) => Effect.promise(() => program.run(["session", ...args]))

const bytes = () => readdirSync(directory).toSorted().map((name) => [name, readFileSync(join(directory, name), "utf8")])

describe("session preview and session undo", () => {
  it.live(
    "say what a pass would do, write nothing, and take a compaction back by one event",
    () =>
      Effect.gen(function*() {
        const { generation, view, whole } = yield* inFiles(filled(20))
        assert.strictEqual(generation, 1)
        const before = bytes()

        const { code, stderr, stdout } = yield* run("preview", directory, "--json")
        assert.strictEqual(code, 0, stderr)
        const small = JSON.parse(stdout)
        // The budget is that of the last request, not the one of a session that nothing is known of.
        assert.deepInclude(small, {
          cause: "pressure",
          outcome: "nothing",
          before: view.price,
          after: view.price,
          generation
        })
        assert.strictEqual(small.budget, 10_000 - 800)
        assert.deepInclude(small, { price: "claude-opus-4-5", cost: 0, spared: 0, policy: "default" })

        const less = yield* run(
          "preview",
          directory,
          "--json",
          "--max-tokens",
          "2500",
          "--protected-recent",
          "0",
          "--policy",
          "recommended"
        )
        assert.strictEqual(less.code, 0, less.stderr)
        const large = JSON.parse(less.stdout)
        assert.strictEqual(large.outcome, "compact")
        assert.strictEqual(large.before, view.price)
        assert.isBelow(large.after, large.before)
        assert.isNotEmpty(large.rungs)
        const { covered, kept, removed, shortened } = large.entries
        assert.strictEqual(kept + shortened.length + removed.length + covered.length, view.items.length)
        // $6.25 to write and $0.50 to read a million tokens of claude-opus-4-5.
        assert.approximately(large.cost, large.rebuilt * 5.75e-6, 1e-12)
        assert.approximately(large.spared, large.freed * 0.5e-6, 1e-12)

        const shown = yield* run(
          "preview",
          directory,
          "--max-tokens",
          "2500",
          "--protected-recent",
          "0",
          "--price",
          "gpt-5.4"
        )
        assert.match(shown.stdout, /^pass +for pressure: compacts$/m)
        assert.match(shown.stdout, /^ +\d+ removed: \d+–\d+$/m)
        assert.match(shown.stdout, /^rebuild .*\$0\.\d+ .*list price of gpt-5\.4/m)
        const overflow = yield* run("preview", directory, "--cause", "overflow", "--policy", "none", "--strict")
        assert.strictEqual(overflow.code, 3)
        assert.include(overflow.stdout, "fails: ContextCannotFit")
        assert.deepStrictEqual(bytes(), before)

        const unknown = yield* run("undo", directory, "7")
        assert.deepInclude(unknown, { code: 1, stdout: "" })
        assert.include(unknown.stderr, "There is no boundary of generation 7 to take back: write one of 1")
        const tight = yield* run("undo", directory, "1", "--max-tokens", "2000")
        assert.deepInclude(tight, { code: 3, stdout: "" })
        assert.include(tight.stderr, "the budget is 1200")
        assert.deepStrictEqual(bytes(), before, "a refusal writes nothing")

        const undone = yield* run("undo", directory, "1", "--json")
        assert.strictEqual(undone.code, 0, undone.stderr)
        assert.deepInclude(JSON.parse(undone.stdout), { from: 1, boundaries: 1, before: view.price, generation: 2 })
        const events = readFileSync(join(directory, "log.jsonl"), "utf8")
        const log = before.find(([name]) => name === "log.jsonl")?.[1] ?? ""
        assert.isTrue(events.startsWith(log))
        const added = events.slice(log.length).trim().split("\n").flatMap((line) => JSON.parse(line).events)
        assert.deepStrictEqual(added.map(({ _tag }) => _tag).filter((tag) => tag !== "Opened" && tag !== "Held"), [
          "Undone"
        ])
        const again = yield* inFiles(Effect.scoped(Effect.gen(function*() {
          const manager = yield* ContextManager.open("one", { settings })
          return yield* manager.view
        })))
        assert.deepStrictEqual(
          again.items.slice(0, whole.items.length).map(({ message, seq }) => [seq, message]),
          whole.items.map(({ message, seq }) => [seq, message])
        )
        const gone = yield* run("undo", directory, "1")
        assert.strictEqual(gone.code, 1)
        assert.include(gone.stderr, "no boundary stands")
        const nothing = yield* run("undo", join(program.folder, "nothing"), "1")
        assert.deepInclude(nothing, { code: 1, stdout: "" })
        assert.notInclude(readdirSync(program.folder), "nothing")
      }),
    60_000
  )

  it.live.skipIf(Postgres.url === undefined)(Postgres.title("do so in a database"), () =>
    Effect.gen(function*() {
      const prefix = `acts${randomUUID().slice(0, 8)}_`
      const sql = ["--sql", Postgres.url ?? "", "--sql-prefix", prefix]
      const store = Layer.provide(SessionStore.layerSql({ prefix }), Postgres.layer())
      const { view } = yield* Effect.provide(filled(20), store)
      const seen = JSON.parse((yield* run("preview", ...sql, "one", "--json")).stdout)
      assert.deepInclude(seen, { outcome: "nothing", before: view.price })
      const refused = yield* run("undo", ...sql, "one", "7")
      assert.strictEqual(refused.code, 1)
      const undone = yield* run("undo", ...sql, "one", "1", "--json")
      assert.strictEqual(undone.code, 0, undone.stderr)
      const after = JSON.parse((yield* run("preview", ...sql, "one", "--json")).stdout)
      assert.strictEqual(after.before, JSON.parse(undone.stdout).after)
      assert.isAbove(after.before, view.price)
      yield* Effect.gen(function*() {
        const client = yield* SqlClient.SqlClient
        for (const name of ["sessions", "log", "snapshots", "migrations"]) {
          yield* client`DROP TABLE ${client(prefix + name)}`
        }
      }).pipe(Effect.provide(Postgres.layer()))
    }), 120_000)
})
