/**
 * What a session holds in memory beside the messages themselves. Run with `--expose-gc`, in a process of its own: prints
 * bytes as JSON.
 */
import * as ContextManager from "effect-compaction/ContextManager"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { setTimeout } from "node:timers/promises"
import { messages } from "./transcript.ts"

const scope = Scope.makeUnsafe()
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): A => Effect.runSync(Scope.provide(effect, scope))

/** What is left once nothing more can be collected; what ran before gets the time to let go. */
const used = async (): Promise<number> => {
  for (let n = 0; n < 8; n++) {
    globalThis.gc?.()
    await setTimeout(20)
  }
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** The same code has run before, so that what it compiled and cached is not counted. */
const session = (history: Prompt.Prompt) => {
  const manager = run(ContextManager.make())
  run(manager.append(history))
  return manager
}
const warmUp = session(Prompt.fromMessages(messages(500, 3)))
run(warmUp.requestWith({ budget: 5_000 }))
// Parsed like a history that was read: each string is its own.
const json = JSON.stringify(messages(2_000))

const start = await used()
const parsed: ReadonlyArray<Prompt.Message> = JSON.parse(json)
const history = Prompt.fromMessages(parsed)
const transcript = await used() - start

const before = await used()
const manager = session(history)
const { price } = run(manager.view)
run(manager.requestWith({ budget: 100_000_000 }))
const managed = await used() - before
run(manager.requestWith({ budget: Math.floor(price / 8) }))
const afterBoundary = await used() - before

console.log(JSON.stringify({ transcript, manager: managed, afterBoundary }))
// All of them are held until here.
if (history.content.length === 0 || manager === warmUp || json === "") process.exitCode = 1
