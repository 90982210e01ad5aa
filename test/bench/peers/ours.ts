/**
 * Ours on one conversation, in a process of its own as the peers:
 * `node --expose-gc .ci/ts.mjs test/bench/peers/ours.ts POLICY FILE [OTHER]`. With OTHER, another conversation, it has
 * shortened that one before.
 */
import * as ContextManager from "effect-compaction/ContextManager"
import * as Policy from "effect-compaction/Policy"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { type Measured, type Message, plain, promptOf } from "./conversation.ts"

const [name, file = "", other] = process.argv.slice(2)
const policy = Object.entries<Policy.Policy>(Policy.presets).find(([each]) => each === name)?.[1] ?? Policy.recommended
const more = Prompt.fromMessages([
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "Go on." })] })
])

const read = (path: string): { readonly messages: ReadonlyArray<Message>; readonly target: number } =>
  JSON.parse(readFileSync(path, "utf8"))

/** The time of the processor since then, in milliseconds, garbage collection included: a busy machine changes it least. */
const since = (start: NodeJS.CpuUsage): number => {
  const { system, user } = process.cpuUsage(start)
  return (system + user) / 1_000
}

const shorten = Effect.fnUntraced(function*(path: string, rounds: number) {
  const { messages, target } = read(path)
  const prompt = promptOf(messages)
  const times: Array<number> = []
  // What was made to get here is no part of what is measured.
  globalThis.gc?.()
  let start = process.cpuUsage()
  const manager = yield* ContextManager.make(Policy.options({ ...policy, maxTokens: target }))
  yield* manager.append(prompt)
  const { prompt: sent } = yield* manager.request
  const cold = since(start)
  for (let round = 0; round < rounds; round++) {
    start = process.cpuUsage()
    yield* manager.append(more)
    yield* manager.request
    times.push(since(start))
  }
  const warm = times.toSorted((a, b) => a - b)[Math.floor(rounds / 2)] ?? null
  return { cold, warm, left: plain(sent.content) } satisfies Measured
}, Effect.scoped)

const measured = other === undefined ? shorten(file, 5) : Effect.andThen(shorten(other, 0), shorten(file, 0))
process.stdout.write(`${JSON.stringify(Effect.runSync(measured))}\n`)
