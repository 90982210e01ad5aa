import * as NodeServices from "@effect/platform-node/NodeServices"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as Scenario from "./scenario.ts"

/** Goes on with the session of a seed in a directory, from an operation on, and says when each one is done. */
const [directory = "", seed = "0", from = "0"] = process.argv.slice(2)

const program = Effect.gen(function*() {
  const store = yield* SessionStore.openDirectory(directory, { fsync: "never" })
  const manager = yield* Scenario.open(store)
  fs.writeSync(1, "open\n")
  for (let at = Number(from); at < Scenario.length; at++) {
    yield* Scenario.step(manager, store, Number(seed), at)
    fs.writeSync(1, `${at}\n`)
  }
})

await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(NodeServices.layer))).catch((error: unknown) => {
  fs.writeSync(1, `failed ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
