/** What becomes of output that cannot be written, of signals, and of faults of the program itself; as processes. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as PlatformError from "effect/PlatformError"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as OutputFile from "../../src/cli/OutputFile.ts"
import * as Program from "./program.ts"
import * as Report from "./report.ts"
import { openAiChat } from "./sessions.ts"

let program: Program.Program
beforeAll(async () => {
  program = await Program.make()
  program.write("good.json", openAiChat({ count: 40, characters: 2_000 }))
  program.write("long.json", openAiChat({ count: 250, characters: 10, system: 200_000 }))
})
afterAll(() => program.remove())

const table = ["replay", "--window", "32000", "good.json"]
/** Writes 150 kB in one line, more than a pipe holds, and ends with exit code 3. */
const long = ["replay", "--json", "--strict", "--when-infeasible", "fail", "--window", "32000", "long.json"]
const page = (file: string) => ["compare", "--html", file, "--max-tokens", "12000", "--policy", "none", "good.json"]

const said = "; echo \"exit code $?\" >&2"

describe.skipIf(!existsSync("/dev/full"))("a device that is full", () => {
  const full = "it could not be written: no space is left on the device\n"
  for (const args of [table, long, ["inspect", "good.json"], ["compact", "--to", "prompt", "good.json"], ["--help"]]) {
    it(`${args.join(" ")} ends with 1 and one line`, async () => {
      const { stderr, stdout } = await program.shell(`"$@" > /dev/full${said}`, args)
      assert.strictEqual(stderr, `standard output: ${full}exit code 1\n`)
      assert.strictEqual(stdout, "")
    })
  }

  it("ends the work: what comes after is not played", async () => {
    const { stderr } = await program.shell(`"$@" > /dev/full${said}`, ["replay", "good.json", "nowhere.json"])
    assert.strictEqual(stderr, `standard output: ${full}exit code 1\n`)
  })

  it("a page is named", async () => {
    const { code, stderr } = await program.run(page("/dev/full"))
    assert.deepStrictEqual([code, stderr], [1, `/dev/full: ${full}`])
  })

  it("a full or a closed standard error changes no exit code", async () => {
    for (const to of ["2> /dev/full", "2>&-"]) {
      const { code, stdout } = await program.shell(`"$@" ${to}`, ["replay", "nowhere.json"])
      assert.deepStrictEqual([code, stdout], [1, ""])
      assert.strictEqual((await program.shell(`"$@" ${to}`, table)).code, 0)
    }
  })
})

describe("a file that may not grow", () => {
  const limited = (to: string) => `ulimit -f 8; "$@" > ${to}${said}`

  it("takes a part of a text, which is no success", async () => {
    const { stderr } = await program.shell(limited("part.json"), long)
    assert.strictEqual(
      stderr,
      "standard output: it could not be written: a file may not be so large here\nexit code 1\n"
    )
    assert.isAbove(readFileSync(join(program.folder, "part.json")).length, 0)
  })

  it("a page that does not fit leaves the one before, and nothing beside it", async () => {
    program.write("pages/page.html", "the page before")
    const { stderr } = await program.shell(limited("/dev/null"), page("pages/page.html"))
    assert.strictEqual(
      stderr,
      "pages/page.html: it could not be written: a file may not be so large here\nexit code 1\n"
    )
    assert.strictEqual(readFileSync(join(program.folder, "pages/page.html"), "utf8"), "the page before")
    await program.shell(limited("/dev/null"), page("pages/new.html"))
    assert.deepStrictEqual(readdirSync(join(program.folder, "pages")), ["page.html"])
    const { code } = await program.run(page("pages/page.html"))
    assert.strictEqual(code, 0)
    assert.match(readFileSync(join(program.folder, "pages/page.html"), "utf8"), /^<!doctype html>[^]*<\/html>\n$/)
  })
})

describe("a pipe", () => {
  it("takes all of a line that is longer than it when the program ends with an exit code", async () => {
    const { stderr, stdout } = await program.shell(`{ "$@"${said}; } | cat`, long)
    assert.strictEqual(stderr, "exit code 3\n")
    assert.isAbove(stdout.length, 140_000)
    assert.strictEqual(Report.decode(stdout).rows.length, 251)
  })

  it("that is closed ends it without a word, as the signal would", async () => {
    const { stderr, stdout } = await program.shell(`{ "$@"${said}; } | head -c 10`, long)
    assert.deepStrictEqual([stderr, stdout], ["exit code 141\n", "{\"file\":\"l"])
  })
})

describe("a signal", () => {
  for (const [name, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    it(`${name} ends it with ${code}, after what was written`, async () => {
      const ended = await program.signal(name, ["replay", "--json", "good.json", "-"])
      assert.deepStrictEqual([ended.code, ended.stderr], [code, ""])
      assert.strictEqual(Report.decode(ended.stdout).file, "good.json")
    })
  }
})

describe("a fault of the program", () => {
  const broken = (script: string) => ({
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` }
  })
  const report =
    /^This is a fault of effect-compaction, not of its input\. .*\neffect-compaction \S+, Node v\S+, .*\narguments: \["inspect",.*"good\.json"\]\nTypeError: broken\n {4}at /

  it("is said on standard error with what to report, also into a pipe", async () => {
    const ended = await program.run(
      ["inspect", "good.json"],
      broken("Number.prototype.toLocaleString = () => { throw new TypeError('broken') }")
    )
    assert.strictEqual(ended.code, 70)
    assert.match(ended.stderr, report)
    assert.strictEqual(ended.stdout, "")
  })

  it("is said also where no fiber caught it", async () => {
    const later = "process.on('newListener', (name) => name === 'SIGTERM' && "
      + "queueMicrotask(() => { throw new TypeError('broken') }))"
    const ended = await program.run(["inspect", "--json", "good.json"], broken(later))
    assert.strictEqual(ended.code, 70)
    assert.match(ended.stderr, report)
  })
})

describe("names and texts of others", () => {
  const evil = "\u001b]0;pwned\u0007\u009b31m\u202egrep\nTotal: 0"
  const shown = "\\x1b]0;pwned\\x07\\x9b31m\\u202egrep\\nTotal: 0"

  it("are shown written out, in columns, errors and pages", async () => {
    program.write(
      `${evil.replace("\n", "")}.json`,
      openAiChat({ count: 40, characters: 2_000 }).replaceAll("grep", JSON.stringify(evil).slice(1, -1))
    )
    const file = `${evil.replace("\n", "")}.json`
    // All but the breaks of lines, and of each line the end.
    const obeyed = /[\p{Cc}\p{Cf}]/u
    const check = (text: string) => {
      for (const line of text.split("\n")) assert.notMatch(line, obeyed)
    }
    const all: ReadonlyArray<ReadonlyArray<string>> = [
      ["inspect", file],
      ["inspect", "--json", file],
      ["replay", "--window", "32000", "--exempt-tool", evil, file],
      ["compare", "--max-tokens", "12000", "--html", "evil.html", "--policy", "none", file],
      ["replay", "--max-tokens", "12000", "--html", "story.html", file],
      ["compact", "--to", "prompt", file],
      ["replay", `${evil}.jsonl`],
      ["replay", "--policy", evil, file],
      ["replay", "--format", evil, file],
      ["replay", `--${evil}`, file],
      [evil],
      ["replay", "--budget-by-tool", `${evil}=-1`, file],
      ["session", "inspect", evil],
      ["compare", "--max-tokens", "12000", "--html", `no/${evil}.html`, "--policy", "none", file],
      ["replay", "--window", "32000", "--summarizer", `command:printf '${evil}' >&2; exit 3`, file]
    ]
    for (const args of all) {
      const { stderr, stdout } = await program.run(args)
      check(stdout)
      check(stderr)
      assert.notMatch(stdout + stderr, /^Total: 0/m, args.join(" "))
    }
    assert.include((await program.run(["inspect", file])).stdout, ` ${shown} `)
    const html = readFileSync(join(program.folder, "evil.html"), "utf8")
    check(html)
    const story = readFileSync(join(program.folder, "story.html"), "utf8")
    check(story)
    assert.include(story, shown.replaceAll("\\", "\\\\"))
    assert.include(html, shown.replaceAll("\\", "\\\\"))
    const { stdout } = await program.run(["inspect", "--json", file])
    assert.strictEqual(JSON.parse(stdout).results.byTool[0].tool, evil)
    assert.strictEqual(JSON.parse(stdout).file, file)
  }, 60_000)
})

describe("a file that a command writes", () => {
  const inFolder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

  it.effect("is not written over where it must be new, and keeps its mode where it is not", () =>
    Effect.gen(function*() {
      const files = yield* FileSystem.FileSystem
      const file = join(yield* inFolder, "x.json")
      yield* OutputFile.write(file, "one", { isNew: true, mode: 0o600 })
      const { mode } = yield* files.stat(file)
      assert.strictEqual(mode & 0o777, 0o600)
      const error = yield* Effect.flip(OutputFile.write(file, "two", { isNew: true }))
      assert.strictEqual(error.message, `${file}: it could not be written: it is there already`)
      assert.strictEqual(yield* files.readFileString(file), "one")
      yield* OutputFile.write(file, "three")
      assert.strictEqual(yield* files.readFileString(file), "three")
      assert.strictEqual((yield* files.stat(file)).mode & 0o777, 0o600)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is the one that a link leads to", () =>
    Effect.gen(function*() {
      const files = yield* FileSystem.FileSystem
      const folder = yield* inFolder
      yield* files.writeFileString(join(folder, "x"), "one")
      yield* files.symlink(join(folder, "x"), join(folder, "link"))
      yield* OutputFile.write(join(folder, "link"), "two")
      assert.strictEqual(yield* files.readFileString(join(folder, "x")), "two")
      assert.strictEqual(yield* files.readLink(join(folder, "link")), join(folder, "x"))
    }).pipe(Effect.provide(NodeServices.layer)))

  for (const isNew of [true, false]) {
    it.effect(`leaves nothing behind when it fails, ${isNew ? "new" : "or takes a place"}`, () =>
      Effect.gen(function*() {
        const files = yield* FileSystem.FileSystem
        const folder = yield* inFolder
        if (!isNew) yield* files.writeFileString(join(folder, "x"), "before")
        const refused = PlatformError.systemError({
          _tag: "Unknown",
          module: "FileSystem",
          method: "rename",
          cause: { code: "EDQUOT" }
        })
        const error = yield* Effect.flip(OutputFile.write(join(folder, "x"), "text", { isNew })).pipe(
          Effect.provideService(FileSystem.FileSystem, { ...files, rename: () => Effect.fail(refused) })
        )
        assert.include(error.message, "the disk quota is used up")
        assert.deepStrictEqual(yield* files.readDirectory(folder), isNew ? [] : ["x"])
        if (!isNew) assert.strictEqual(yield* files.readFileString(join(folder, "x")), "before")
      }).pipe(Effect.provide(NodeServices.layer)))
  }
})
