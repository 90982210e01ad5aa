// Mutation testing: changes src in one small way at a time and tells which changes no test notices.
//
//   npm run mutate -- --count 50 --seed 1 [--files src/Guard.ts --files src/session] [--seconds 120] [--json out.json]
//
// Works in a copy of the project, in the directory for temporary files: what is checked out here stays as it is. For each
// mutation the tests that import the changed file run, the nearest first, until one fails or the time is over. `--list`
// prints the mutations that would be tried. `--at-least 0.95` makes the exit code say whether so many were killed.
import { spawn, spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import * as Mutations from "./mutations.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))

const { values: flags } = parseArgs({
  options: {
    count: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    files: { type: "string", multiple: true, default: ["src"] },
    seconds: { type: "string", default: "120" },
    json: { type: "string" },
    list: { type: "boolean", default: false },
    "at-least": { type: "string" }
  }
})

/** @param {string} folder @returns {ReadonlyArray<string>} */
const sources = (folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name))
    .sort()

const [src, test] = [sources("src"), sources("test")]

/** Numbers from 0 to below 1, the same for the same seed. @param {number} seed */
const randomOf = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

/** The mutations that are tried: drawn from all of the files at once, so that each is as likely as any other. */
const drawn = () => {
  const wanted = src.filter((file) => flags.files.some((each) => file === each || file.startsWith(`${each.replace(/\/$/, "")}/`)))
  const all = wanted.flatMap((file) => Mutations.of(readFileSync(join(root, file), "utf8")).map((mutation) => ({ file, mutation })))
  const random = randomOf(Number(flags.seed))
  for (let at = all.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    const [one, two] = [all[at], all[other]]
    if (one !== undefined && two !== undefined) [all[at], all[other]] = [two, one]
  }
  /** @type {typeof all} */
  const tried = []
  for (const each of all) {
    if (tried.length >= Number(flags.count)) break
    if (Mutations.parses(readFileSync(join(root, each.file), "utf8"), each.mutation)) tried.push(each)
  }
  return { of: all.length, tried }
}

/** What a file imports of this project; a test that runs the bundled program names its entry. @param {string} file */
const importsOf = (file) => {
  const text = readFileSync(join(root, file), "utf8")
  return [...text.matchAll(/(?:from|import\(?) ?"(\.[^"]+|effect-compaction[^"]*)"|["'/]((?:src|test)\/[\w/.-]+\.ts)["']/g)]
    .map(([, name, path]) =>
      path ?? (name?.startsWith(".") === true
        ? relative(root, resolve(root, dirname(file), name))
        : `src/${name?.replace(/^effect-compaction\/?/, "") || "index"}.ts`)
    )
}

/** How many imports away from a file each test is that reaches it, nearest first. */
const testsFor = (() => {
  /** @type {Map<string, Array<string>>} */
  const importers = new Map()
  for (const file of [...src, ...test]) {
    for (const name of importsOf(file)) importers.set(name, [...importers.get(name) ?? [], file])
  }
  return (/** @type {string} */ changed) => {
    const distance = new Map([[changed, 0]])
    for (const [file, steps] of distance) {
      for (const importer of importers.get(file) ?? []) if (!distance.has(importer)) distance.set(importer, steps + 1)
    }
    const name = changed.replace(/^.*\/|\.ts$/g, "").toLowerCase()
    const score = (/** @type {string} */ file) =>
      (distance.get(file) ?? 0) - (file.toLowerCase().includes(name) ? 10 : 0) + (/propert|evidence|crash|process/.test(file) ? 5 : 0)
    return [...distance.keys()].filter((file) => file.endsWith(".test.ts")).sort((a, b) => score(a) - score(b))
  }
})()

/** The first test that failed, and its file, in a report. @param {string} report @param {string} copy */
const failureIn = (report, copy) => {
  /** @type {ReadonlyArray<{ status: string, name: string, assertionResults: ReadonlyArray<{ status: string, fullName: string }> }>} */
  let files = []
  try {
    files = JSON.parse(report).testResults
  } catch {
    // It was stopped, or never began.
  }
  const file = files.find(({ status }) => status === "failed")
  const failed = file?.assertionResults.find(({ status }) => status === "failed")?.fullName ?? null
  return { failed, file: file === undefined ? null : relative(copy, file.name) }
}

/**
 * Runs tests in the copy, at most so long; `undefined` when the time was over.
 *
 * @param {string} copy @param {ReadonlyArray<string>} files @param {number} seconds
 * @returns {Promise<{ readonly code: number | undefined, readonly failed: string | null, readonly file: string | null }>}
 */
const run = (copy, files, seconds) =>
  new Promise((done) => {
    const vitest = join(root, "node_modules", "vitest", "vitest.mjs")
    const child = spawn(process.execPath, [vitest, "run", "--bail", "1", "--reporter", "json", ...files], {
      cwd: copy,
      detached: true,
      stdio: ["ignore", "pipe", "ignore"]
    })
    let out = ""
    child.stdout.on("data", (bytes) => out += String(bytes))
    let isOver = false
    const stop = () => {
      // The whole group: vitest runs tests in processes of its own.
      if (child.pid !== undefined) {
        try {
          process.kill(-child.pid, "SIGKILL")
        } catch {
          // It has ended meanwhile.
        }
      }
    }
    const timer = setTimeout(() => {
      isOver = true
      stop()
    }, seconds * 1_000)
    child.on("close", (code) => {
      clearTimeout(timer)
      done({ code: isOver ? undefined : code ?? 1, ...failureIn(out, copy) })
    })
  })

/** So many of the nearest tests run one by one: most mutations fail one of them in seconds. */
const nearest = 3

const { of, tried } = drawn()

if (flags.list) {
  for (const { file, mutation } of tried) {
    const { line, text } = Mutations.diff(readFileSync(join(root, file), "utf8"), mutation)
    console.log(`${file}:${line} ${mutation.kind}\n${text}\n`)
  }
  console.log(`${tried.length} of ${of} mutations, seed ${flags.seed}`)
  process.exit(0)
}

const copy = mkdtempSync(join(tmpdir(), "mutate-"))
process.on("exit", () => rmSync(copy, { recursive: true, force: true }))
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) process.on(signal, () => process.exit(1))
const tracked = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" }).stdout
for (const file of tracked.split("\n").filter((name) => name !== "" && name !== "node_modules")) {
  cpSync(join(root, file), join(copy, file), { recursive: true })
}
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))

const seconds = Number(flags.seconds)

/** Whether tests pass in time without a mutation; asked only of those that failed with one. @type {Map<string, boolean>} */
const sound = new Map()

/** @param {string} file */
const isSound = async (file) => {
  const known = sound.get(file)
  if (known !== undefined) return known
  const passes = (await run(copy, [file], seconds)).code === 0
  sound.set(file, passes)
  return passes
}

/** @param {string} file @param {Mutations.Mutation} mutation */
const outcomeOf = async (file, mutation) => {
  const source = readFileSync(join(root, file), "utf8")
  const tests = testsFor(file).filter((each) => sound.get(each) !== false)
  /** @param {ReadonlyArray<string>} files */
  const mutated = async (files) => {
    writeFileSync(join(copy, file), Mutations.apply(source, mutation))
    const ended = await run(copy, files, seconds)
    writeFileSync(join(copy, file), source)
    return ended
  }
  for (const each of tests.slice(0, nearest)) {
    const { code, failed } = await mutated([each])
    // A test that has no end with the mutation, and one without it, has noticed.
    if (code !== 0 && await isSound(each)) return { outcome: "killed", by: failed ?? each }
  }
  let rest = tests.slice(nearest)
  while (rest.length > 0) {
    const { code, failed, file: at } = await mutated(rest)
    if (code === 0) break
    if (code === undefined) return { outcome: "survived", by: `no test failed in ${seconds} s` }
    if (at === null || await isSound(at)) return { outcome: "killed", by: failed ?? "a test that does not load" }
    rest = rest.filter((each) => each !== at)
  }
  return { outcome: tests.length === 0 ? "untested" : "survived", by: null }
}

/** @type {Array<{ file: string, line: number, kind: string, outcome: string, by: string | null, diff: string }>} */
const results = []
for (const { file, mutation } of tried) {
  const { line, text } = Mutations.diff(readFileSync(join(root, file), "utf8"), mutation)
  const { by, outcome } = await outcomeOf(file, mutation)
  results.push({ file, line, kind: mutation.kind, outcome, by, diff: text })
  console.log(`${results.length}/${tried.length} ${outcome.padEnd(8)} ${file}:${line} ${mutation.kind}${by === null ? "" : ` (${by})`}`)
  if (outcome !== "killed") console.log(`${text}\n`)
  if (flags.json !== undefined) {
    const killed = results.filter((each) => each.outcome === "killed").length
    writeFileSync(resolve(flags.json), JSON.stringify({ seed: Number(flags.seed), of, killed, tried: results.length, results }, null, 2))
  }
}
const killed = results.filter((each) => each.outcome === "killed").length
const unsound = [...sound].filter(([, isSound]) => !isSound).map(([file]) => file)
if (unsound.length > 0) console.log(`left out, for they fail without a mutation: ${unsound.join(" ")}`)
console.log(`${killed} of ${results.length} killed, drawn from ${of} by seed ${flags.seed}`)
if (flags["at-least"] !== undefined && killed < Number(flags["at-least"]) * results.length) process.exitCode = 1
