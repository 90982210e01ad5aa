import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { isObject, type Kind, type Outcome } from "./Case.ts"
import * as Ladder from "./Ladder.ts"
import * as Meter from "./Meter.ts"

const kinds: ReadonlyArray<Kind> = [Ladder.kind, Meter.kind]

const filesOf = (given: string): ReadonlyArray<string> =>
  fs.statSync(given).isDirectory()
    ? fs.readdirSync(given).sort().flatMap((name) => filesOf(path.join(given, name)))
    : given.endsWith(".json")
    ? [given]
    : []

/** The case files in a file: the file itself, or those it holds under keys of their own. */
const partsOf = (content: unknown): ReadonlyArray<{ readonly kind: Kind; readonly content: unknown }> => {
  const kind = kinds.find((each) => each.recognises(content))
  if (kind !== undefined) return [{ kind, content }]
  return isObject(content) ? Object.values(content).flatMap(partsOf) : []
}

const runFile = (file: string): Effect.Effect<ReadonlyArray<Outcome>> => {
  const parts = partsOf(JSON.parse(fs.readFileSync(file, "utf8")))
  if (parts.length === 0) {
    const known = kinds.map((kind) => kind.name).join(", ")
    const failure = { where: file, expected: `a case file of a known kind (${known})`, actual: "none" }
    return Effect.succeed([{ name: "(file)", failures: [failure] }])
  }
  return Effect.map(Effect.forEach(parts, ({ content, kind }) => kind.run(content)), (outcomes) => outcomes.flat())
}

const short = (value: unknown): string => {
  const json = JSON.stringify(value) ?? "nothing"
  return json.length > 400 ? `${json.slice(0, 400)}…` : json
}

const program = Effect.gen(function*() {
  const given = process.argv.slice(2)
  const files = given.flatMap(filesOf)
  if (files.length === 0) {
    console.error("usage: npm run conformance -- PATH… (case files, or folders of them)")
    process.exitCode = 2
    return
  }
  let passed = 0
  let failed = 0
  for (const file of files) {
    const outcomes = yield* runFile(file)
    for (const { failures, name } of outcomes) {
      if (failures.length === 0) {
        passed++
        continue
      }
      failed++
      console.log(`FAILED ${file}: ${name}`)
      for (const { actual, expected, where } of failures) {
        console.log(`  ${where}\n    expected ${short(expected)}\n    actual   ${short(actual)}`)
      }
    }
  }
  console.log(`${passed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
})

await Effect.runPromise(program)
