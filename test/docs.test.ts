/**
 * Every `ts` example of README.md, of docs and of the docstrings of src compiles, runs, and gives the values it states.
 *
 * A value is stated at the end of a line: `expression // => value`. The line holds one whole expression, as a statement, in
 * a `return`, or as what a `const` is set to. The value is an expression too, compared deeply; of a promise it is what the
 * promise gives, and of what is printed (`console.log(expression)`, `promise.then(console.log, console.error)`) what is
 * printed. A line that is never reached is wrong like any other.
 *
 * Examples are written into a folder below `node_modules/.cache`, checked by one run of the compiler and run in one
 * process. The programs in docs/examples run in a process each, must print something and end with exit code 0.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = join(root, "node_modules", ".cache", "effect-compaction", `docs-${process.pid}`)

interface Example {
  /** File and line, from 1, of its first line. */
  readonly file: string
  readonly line: number
  readonly code: ReadonlyArray<string>
}

/** The examples of a text; `prefix` is what stands before each line in a docstring. */
const examplesOf = (file: string, text: string, prefix: RegExp): ReadonlyArray<Example> => {
  const examples: Array<Example> = []
  let code: Array<string> | undefined
  for (const [at, raw] of text.split("\n").entries()) {
    const line = raw.replace(prefix, "")
    if (code === undefined) {
      if (line === "```ts") code = []
    } else if (line === "```") {
      examples.push({ file, line: at + 1 - code.length, code })
      code = undefined
    } else code.push(line)
  }
  return examples
}

const stated = /^(\s*)((?:return|const \w+ =) )?(.+?) \/\/ => (.+)$/

const printed = [/^console\.log\((.+)\)$/, /^(.+)\.then\(console\.log(?:, console\.error)?\)$/]

/** The example as a module that tells `check` what each stated value came to, and how many there are. */
const moduleOf = (
  { code, file, line }: Example
): { readonly source: string; readonly values: ReadonlyArray<string> } => {
  const values: Array<string> = []
  const lines = code.map((text, at) => {
    const match = stated.exec(text)
    if (match === null) return text
    const [, indent = "", before = "", statement = "", value = ""] = match
    const expression = printed.reduce((inner, print) => inner.replace(print, "$1"), statement)
    const where = `${file}:${line + at}`
    values.push(where)
    return `${indent}${before}check(${JSON.stringify(where)}, ${expression}, () => (${value}))`
  })
  return { source: ["import { check } from \"./check.ts\"", ...lines, "export {}"].join("\n"), values }
}

/** Part of the same run, so that a wrong value and a line that is not reached are seen to fail. */
const wrong: Example = {
  file: "wrong",
  line: 1,
  code: [
    "console.log(1 + 1) // => 3",
    "const two = Promise.resolve(2) // => 3",
    "const never = () => {",
    "  return two // => 2",
    "}",
    "void never"
  ]
}

const check = `
import { isDeepStrictEqual } from "node:util"
export const outcomes: { [where: string]: string } = {}
const settle = (where: string, actual: unknown, expected: unknown) => {
  const same = isDeepStrictEqual(actual, expected)
  outcomes[where] = same ? outcomes[where] ?? "ok" : \`gave \${JSON.stringify(actual)}\`
}
export const check = <A>(where: string, actual: A, expected: () => unknown): A => {
  if (actual instanceof Promise) {
    actual.then((value) => settle(where, value, expected()), (error) => settle(where, String(error), expected()))
  } else settle(where, actual, expected())
  return actual
}
`

const runnerOf = (names: ReadonlyArray<string>): string => `
import { outcomes } from "./check.ts"
process.on("unhandledRejection", (error) => { outcomes["unhandled"] = String(error) })
process.on("beforeExit", () => { console.log("\\n" + JSON.stringify(outcomes)) })
const failed = (name: string) => (error: unknown) => { outcomes[name] = String(error) }
${names.map((name) => `await import("./${name}.ts").catch(failed("${name}"))`).join("\n")}
`

const tsconfig = {
  extends: "../../../../tsconfig.json",
  include: ["*.ts"],
  exclude: [],
  compilerOptions: {
    rootDir: "../../../..",
    noUnusedLocals: false,
    allowImportingTsExtensions: true,
    paths: {
      "effect-compaction": ["../../../../src/index.ts"],
      "effect-compaction/*": ["../../../../src/*.ts"]
    }
  }
}

const run = (command: string, ...args: ReadonlyArray<string>) =>
  Effect.callback<{ readonly code: number; readonly out: string }>((resume) => {
    const child = execFile(
      command,
      args,
      { cwd: root, maxBuffer: 1e8, timeout: 120_000 },
      (error, stdout, stderr) =>
        resume(Effect.succeed({ code: error === null ? 0 : Number(error.code ?? 1), out: `${stdout}${stderr}` }))
    )
    child.stdin?.end()
  })

const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts")
)
const examples = [
  ...sources.sort().flatMap((name) =>
    examplesOf(`src/${name}`, readFileSync(join(root, "src", name), "utf8"), /^\s*\* ?/)
  ),
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .map((name) => `docs/${name}`)
    .concat("README.md")
    .filter((name) => name.endsWith(".md") && existsSync(join(root, name)))
    .sort()
    .flatMap((name) => examplesOf(name, readFileSync(join(root, name), "utf8"), /^/))
]

const modules = [...examples, wrong].map((example, at) => ({ name: `example-${at}`, example, ...moduleOf(example) }))

mkdirSync(folder, { recursive: true })
afterAll(() => rmSync(folder, { recursive: true, force: true }))
writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig))
writeFileSync(join(folder, "check.ts"), check)
for (const { name, source } of modules) writeFileSync(join(folder, `${name}.ts`), source)
writeFileSync(join(folder, "runner.ts"), runnerOf(modules.map(({ name }) => name)))

let outcomes: { readonly [where: string]: string } | undefined

/** What each stated value came to; all examples run once. */
const outcomesOf = Effect.suspend(() =>
  outcomes !== undefined
    ? Effect.succeed(outcomes)
    : Effect.map(run(process.execPath, ".ci/ts.mjs", join(folder, "runner.ts")), ({ code, out }) => {
      assert.strictEqual(code, 0, out)
      const last = out.trimEnd().split("\n").findLast((line) => line.startsWith("{")) ?? "{}"
      return outcomes = JSON.parse(last) as { readonly [where: string]: string }
    })
)

describe("examples in the documentation", () => {
  it("are found", () => {
    assert.isAbove(examples.length, 0)
    assert.isAbove(modules.flatMap(({ values }) => values).length, 3)
  })

  it("of README.md and of docs all print something", () => {
    const silent = examples.filter(({ code, file }) =>
      !file.startsWith("src/") && !code.some((line) => /console\.(log|error)/.test(line))
    )
    assert.deepStrictEqual(silent.map(({ file, line }) => `${file}:${line}`), [])
  })

  it.effect("compile", () =>
    Effect.gen(function*() {
      const tsc = join(root, "node_modules", "typescript", "bin", "tsc")
      const { code, out } = yield* run(process.execPath, tsc, "--noEmit", "-p", join(folder, "tsconfig.json"))
      assert.include([0, 1, 2], code, out)
      // What is wrong in src itself is said by `npm run check`.
      const found = out.split("\n").filter((line) => line.includes("docs-"))
      const named = found.map((line) =>
        modules.reduce((text, { example, name }) =>
          text.replace(new RegExp(`^.*/${name}\\.ts`), `${example.file}, example at line ${example.line}: `), line)
      )
      assert.deepStrictEqual(named, [])
    }), 120_000)

  for (const { example, name, values } of modules) {
    if (example === wrong) continue
    it.effect(`${example.file}:${example.line} runs and gives what it states`, () =>
      Effect.gen(function*() {
        const all = yield* outcomesOf
        assert.isUndefined(all[name])
        assert.deepStrictEqual(
          values.map((where) => [where, all[where] ?? "not reached"]),
          values.map((where) => [where, "ok"])
        )
      }), 120_000)
  }

  it.effect("none leaves a failure unhandled", () =>
    Effect.gen(function*() {
      assert.isUndefined((yield* outcomesOf).unhandled)
    }), 120_000)

  it.effect("a wrong value, and one that is not reached, are seen", () =>
    Effect.gen(function*() {
      const all = yield* outcomesOf
      assert.deepStrictEqual(moduleOf(wrong).values.map((where) => all[where]), ["gave 2", "gave 2", undefined])
    }), 120_000)

  const programs = join(root, "docs", "examples")
  for (const name of existsSync(programs) ? readdirSync(programs).filter((name) => name.endsWith(".ts")).sort() : []) {
    it.effect(`docs/examples/${name} runs`, () =>
      Effect.gen(function*() {
        const { code, out } = yield* run(process.execPath, ".ci/ts.mjs", join("docs", "examples", name))
        assert.strictEqual(code, 0, out)
        assert.notStrictEqual(out.trim(), "", "it prints nothing")
        // README.md shows what this one prints.
        if (name === "before-after.ts") assert.include(readFileSync(join(root, "README.md"), "utf8"), out.trim())
      }), 120_000)
  }
})
