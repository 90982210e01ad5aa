/** A policy from a JSON file: every number and the ladder itself are data, and a mistake is named with its path. */
import * as ContextManager from "effect-compaction/ContextManager"
import * as Policy from "effect-compaction/Policy"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"

const read = Effect.sync(() => JSON.parse(readFileSync("docs/examples/policy.json", "utf8")) as unknown)

const program = Effect.gen(function*() {
  const policy = yield* Effect.flatMap(read, Policy.decode)
  const manager = yield* ContextManager.make(Policy.options(policy))
  yield* manager.append("Find out why the build fails.")
  const { count } = yield* manager.request
  const { budget } = yield* manager.status
  yield* Console.log(`${count.tokens} tokens of ${budget?.limit}`)

  const problem = yield* Effect.flip(Policy.decode({ windov: 1, compactThreshold: 2 }))
  yield* Console.log(problem.message)
})

Effect.runPromise(Effect.scoped(program)).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
