import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Outcome } from "./Case.ts"
import * as Kinds from "./Kinds.ts"

const filesOf = (given: string): ReadonlyArray<string> =>
  fs.statSync(given).isDirectory()
    ? fs.readdirSync(given).sort().flatMap((name) => filesOf(path.join(given, name)))
    : given.endsWith(".json")
    ? [given]
    : []

const runFile = Effect.fnUntraced(function*(file: string): Effect.fn.Return<ReadonlyArray<Outcome>> {
  const outcomes = yield* Kinds.run(JSON.parse(fs.readFileSync(file, "utf8")))
  if (outcomes.length > 0) return outcomes
  const known = Kinds.all.map((kind) => kind.name).join(", ")
  return [{ name: "(file)", failures: [{ where: "kind", expected: known, actual: "no case of any of them" }] }]
})

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
  let skipped = 0
  for (const file of files) {
    const outcomes = yield* runFile(file)
    for (const { failures, name, skipped: why } of outcomes) {
      if (why !== undefined) {
        skipped++
        console.log(`skipped ${file}: ${name} (${why})`)
        continue
      }
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
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
  if (failed > 0) process.exitCode = 1
})

// Policies that contradict themselves are among what is tried, and told of.
await Effect.runPromise(Effect.provideService(program, References.MinimumLogLevel, "Error"))
