import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Kinds from "./conformance/Kinds.ts"

const folder = fileURLToPath(new URL("fixtures/conformance", import.meta.url))
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".json")).sort()

describe("conformance", () => {
  it("has case files", () => assert.isAbove(files.length, 0))

  for (const file of files) {
    it.effect(file, () =>
      Effect.gen(function*() {
        const outcomes = yield* Kinds.run(JSON.parse(readFileSync(join(folder, file), "utf8")))
        assert.isAbove(outcomes.length, 0, "no kind of case knows this file")
        assert.deepStrictEqual(outcomes.filter(({ failures }) => failures.length > 0), [])
      }))
  }
})

const read = (file: string): unknown => JSON.parse(readFileSync(join(folder, file), "utf8"))

describe("a file of several kinds", () => {
  const names = ["ladder/truncate.json", "surface/meter.json", "surface/prune.json", "surface/pairing.json"]

  it.effect("each under its own key, is run as each of them alone, deeper keys too", () =>
    Effect.gen(function*() {
      const alone = yield* Effect.forEach(names, (name) => Kinds.run(read(name)))
      const [ladder, meter, prune, pairing] = names.map(read)
      const together = yield* Kinds.run({ info: "four", ladder, surface: { meter, prune }, pairing })
      assert.deepStrictEqual(together, alone.flat())
      assert.isTrue(alone.every((outcomes) => outcomes.length > 0))
    }))

  it.effect("of no kind has no cases", () =>
    Effect.gen(function*() {
      for (const file of [{}, [], null, 5, { cases: [] }, { a: { b: "c" } }]) {
        assert.deepStrictEqual(yield* Kinds.run(file), [])
      }
    }))
})

/** Runs a program of this project as `npm run` does. */
const program = (main: string, args: ReadonlyArray<string>) =>
  Effect.callback<{ readonly code: number; readonly last: string; readonly out: string }>((resume) => {
    const root = fileURLToPath(new URL("..", import.meta.url))
    execFile(process.execPath, [".ci/ts.mjs", main, ...args], { cwd: root }, (error, out) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1
      resume(Effect.succeed({ code, last: out.trimEnd().split("\n").at(-1) ?? "", out }))
    })
  })

const minute = 60_000

describe("the commands", () => {
  it.effect(
    "conformance takes files and folders, lists what failed, and ends with the numbers",
    () =>
      Effect.gen(function*() {
        const temporary = mkdtempSync(join(tmpdir(), "conformance-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(temporary, { recursive: true, force: true })))
        const prune = join(folder, "surface/prune.json")
        const good = yield* program("test/conformance/main.ts", [prune, join(folder, "surface/meter.json")])
        assert.match(good.last, /^[1-9]\d* passed, 0 failed, \d+ skipped$/)
        assert.strictEqual(good.code, 0)
        writeFileSync(join(temporary, "unknown.json"), "{\"schema\":\"of the future\"}")
        writeFileSync(join(temporary, "both.json"), JSON.stringify({ prune: JSON.parse(readFileSync(prune, "utf8")) }))
        const bad = yield* program("test/conformance/main.ts", [temporary])
        assert.match(bad.last, /^[1-9]\d* passed, 1 failed, \d+ skipped$/)
        assert.include(bad.out, "unknown.json")
        assert.strictEqual(bad.code, 1)
      }),
    minute
  )

  it.effect("fuzz ends with the numbers", () =>
    Effect.gen(function*() {
      const { code, last } = yield* program("test/fuzz/main.ts", ["--runs", "3", "--seed", "7"])
      assert.strictEqual(last, "3 passed, 0 failed")
      assert.strictEqual(code, 0)
    }), minute)
})
