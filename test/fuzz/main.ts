import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Check from "../properties/Check.ts"

const usage = "usage: npm run fuzz -- [--runs N] [--seed S] (whole numbers; the seeds are S, S + 1, …)"

/** The options as whole numbers, or `undefined` when one is not. */
const read = (args: ReadonlyArray<string>): { readonly runs: number; readonly seed: number } | undefined => {
  const options = { runs: 10_000, seed: 1 }
  for (let at = 0; at < args.length; at += 2) {
    const name = args[at]
    const value = Number(args[at + 1])
    if (!Number.isSafeInteger(value) || value < 0) return undefined
    if (name === "--runs") options.runs = value
    else if (name === "--seed") options.seed = value
    else return undefined
  }
  return options
}

const program = Effect.gen(function*() {
  const options = read(process.argv.slice(2))
  if (options === undefined) {
    console.error(usage)
    process.exitCode = 2
    return
  }
  let passed = 0
  let failed = 0
  const slice = 1_000
  for (let done = 0; done < options.runs; done += slice) {
    const outcome = yield* Check.seeds({
      from: options.seed + done,
      count: Math.min(slice, options.runs - done),
      show: failed < 10 ? 10 : 0
    })
    passed += outcome.passed
    failed += outcome.failed
    for (const failure of outcome.failures) console.log(`FAILED ${failure}`)
  }
  console.log(`${passed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
})

// Policies that contradict themselves are among what is tried, and told of.
void Effect.runPromise(Effect.provideService(program, References.MinimumLogLevel, "Error"))
