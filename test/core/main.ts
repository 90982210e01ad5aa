/**
 * Goes on with a saved session in a process of its own: reads the state from a file, and prints what the next requests
 * are. `resume.test.ts` compares that with what the first process would have sent.
 */
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Policy from "effect-compaction/Policy"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { seeded } from "../seed.ts"
import { answersOf } from "./resume.ts"

const [file = ""] = process.argv.slice(2)

const program = Effect.gen(function*() {
  // The state comes from this project's own export; `restore` decodes it.
  const { settings, state } = JSON.parse(readFileSync(file, "utf8")) as {
    readonly settings: Policy.Options["settings"]
    readonly state: ContextManager.SessionState
  }
  const manager = yield* ContextManager.make(seeded(settings === undefined ? {} : { settings }))
  yield* manager.restore(state)
  console.log(JSON.stringify(yield* answersOf(manager)))
})

Effect.runPromise(Effect.scoped(program)).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
