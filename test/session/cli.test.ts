import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Program from "../cli/program.ts"
import { seeded } from "../seed.ts"
import * as Postgres from "./postgres.ts"
import * as Scenario from "./scenario.ts"

let program: Program.Program
let directory = ""

beforeAll(async () => {
  program = await Program.make()
  directory = path.join(program.folder, "session")
})

afterAll(() => program.remove())

const run = (...args: ReadonlyArray<string>) => Effect.promise(() => program.run(["session", ...args]))

const opened = <A>(
  use: (manager: Scenario.Manager, store: SessionStore.Log) => Effect.Effect<A, unknown>
) =>
  Effect.scoped(Effect.gen(function*() {
    const store = yield* SessionStore.openDirectory(directory, { fsync: "never" })
    return yield* use(yield* Scenario.open(store), store)
  })).pipe(Effect.provide(NodeServices.layer))

describe("the command session", () => {
  it.live("tells what a log says, and a session goes on from what it exports", () =>
    Effect.gen(function*() {
      const before = yield* opened((manager, store) =>
        Effect.gen(function*() {
          for (let at = 0; at < 40; at++) yield* Scenario.step(manager, store, 3, at)
          return { status: yield* manager.status, receipts: yield* manager.receipts, state: yield* manager.export }
        })
      )
      const inspected = yield* run("inspect", "--json", directory)
      assert.deepInclude(JSON.parse(inspected.stdout), {
        entries: before.status.entries,
        generation: before.status.generation,
        counts: before.status.counts,
        torn: 0,
        compacting: false
      })
      const shown = yield* run("inspect", directory)
      assert.match(shown.stdout, /^Appended +\d+$/m)
      assert.match(shown.stdout, new RegExp(`^entries +${before.status.entries} in`, "m"))

      const verified = yield* run("verify", directory)
      assert.deepInclude(verified, { code: 0, stderr: "" })

      for (
        const [tag, text] of [["Kept", "as it was appended"], ["Covered", "covered by the checkpoint at"]] as const
      ) {
        const receipt = before.receipts.find((each) => each._tag === tag)
        assert.isDefined(receipt)
        const { stdout } = yield* run("explain", directory, String(receipt?.seq))
        assert.include(stdout, text)
      }
      assert.deepInclude(yield* run("explain", directory, "9999"), {
        code: 1,
        stdout: "entry 9999 is no entry of this session\n"
      })

      const file = path.join(program.folder, "out.json")
      assert.strictEqual((yield* run("export", directory, file)).code, 0)
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
      assert.deepStrictEqual(JSON.parse(fs.readFileSync(file, "utf8")), before.state)
      const again = yield* run("export", directory, file)
      assert.strictEqual(again.code, 1)
      assert.include(again.stderr, "could not be written")
      const restored = yield* ContextManager.make(seeded({ settings: { maxTokens: 3_000 } }))
      yield* restored.restore(JSON.parse((yield* run("export", directory, "-")).stdout))
      assert.strictEqual((yield* restored.status).entries, before.status.entries)
    }), 60_000)

  it.live("says what is wrong, with file and line, and changes nothing", () =>
    Effect.gen(function*() {
      const log = path.join(directory, "log.jsonl")
      const bytes = fs.readFileSync(log)
      fs.writeFileSync(log, Buffer.concat([bytes, Buffer.from("{\"seq\":")]))
      const torn = yield* run("verify", directory)
      assert.strictEqual(torn.code, 1)
      assert.include(torn.stdout, "7 bytes at the end")
      assert.strictEqual(fs.readFileSync(log).length, bytes.length + 7)
      const lines = bytes.toString().split("\n")
      fs.writeFileSync(log, [lines[0], "{}", ...lines.slice(2)].join("\n"))
      for (const command of ["inspect", "verify"]) {
        const damaged = yield* run(command, directory)
        assert.strictEqual(damaged.code, 1)
        assert.include(damaged.stderr, "log.jsonl, line 2: ")
      }
      assert.strictEqual((yield* run("inspect", path.join(program.folder, "nothing"))).code, 1)
    }), 60_000)

  it.live.skipIf(Postgres.url === undefined)(
    Postgres.title("reads a session of a database, and makes nothing there"),
    () =>
      Effect.gen(function*() {
        const prefix = `cli${randomUUID().slice(0, 8)}_`
        const url = Postgres.url ?? ""
        const sql = ["--sql", url, "--sql-prefix", prefix]
        const none = yield* run("inspect", ...sql, "user 42")
        assert.deepInclude(none, { code: 1, stdout: "" })
        assert.include(none.stderr, `${prefix}log`)
        const state = yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* SessionStore.SessionStore
          const log = yield* store.open("user 42")
          const manager = yield* Scenario.open(log)
          for (let at = 0; at < 20; at++) yield* Scenario.step(manager, log, 3, at)
          return yield* manager.export
        })).pipe(Effect.provide(Layer.provide(SessionStore.layerSql({ prefix }), Postgres.layer())))
        assert.match((yield* run("inspect", ...sql, "user 42")).stdout, /^Appended +\d+$/m)
        assert.deepInclude(yield* run("verify", ...sql, "user 42"), { code: 0, stderr: "" })
        assert.include((yield* run("explain", ...sql, "user 42", "0")).stdout, "entry 0 (user")
        const exported = yield* run("export", ...sql, "user 42", "-")
        assert.deepStrictEqual(JSON.parse(exported.stdout), state)
        assert.include((yield* run("verify", ...sql, "nobody")).stderr, "There is no session in")
        const secret = "postgres://me:secret@127.0.0.1:1/none"
        const away = yield* run("inspect", "--sql", secret, "user 42")
        assert.strictEqual(away.code, 1)
        assert.include(away.stderr, "connect")
        assert.notInclude(away.stderr, "secret")
        yield* Effect.gen(function*() {
          const client = yield* SqlClient.SqlClient
          for (const name of ["sessions", "log", "snapshots", "migrations"]) {
            yield* client`DROP TABLE ${client(prefix + name)}`
          }
        }).pipe(Effect.provide(Postgres.layer()))
      }),
    60_000
  )
})
