/** Ours on one conversation, in a process of its own as the peers: `node .ci/ts.mjs test/bench/peers/ours.ts POLICY FILE`. */
import * as ContextManager from "effect-compaction/ContextManager"
import * as Policy from "effect-compaction/Policy"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { type Measured, plain, promptOf } from "./conversation.ts"

const [name, file = ""] = process.argv.slice(2)
const policy = Object.entries<Policy.Policy>(Policy.presets).find(([each]) => each === name)?.[1] ?? Policy.recommended
const { messages, target } = JSON.parse(readFileSync(file, "utf8"))
const { pass, settings } = Policy.options({ ...policy, maxTokens: target })
const more = Prompt.fromMessages([
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "Go on." })] })
])

/** The time of the processor since then, in milliseconds, garbage collection included: a busy machine changes it least. */
const since = (start: NodeJS.CpuUsage): number => {
  const { system, user } = process.cpuUsage(start)
  return (system + user) / 1_000
}

const measured = Effect.gen(function*() {
  const prompt = promptOf(messages)
  const times: Array<number> = []
  let start = process.cpuUsage()
  const manager = yield* ContextManager.make({ settings, pass })
  yield* manager.append(prompt)
  const { prompt: sent } = yield* manager.request
  const cold = since(start)
  for (let round = 0; round < 5; round++) {
    start = process.cpuUsage()
    yield* manager.append(more)
    yield* manager.request
    times.push(since(start))
  }
  return { cold, warm: times.toSorted((a, b) => a - b)[2] ?? 0, left: plain(sent.content) } satisfies Measured
}).pipe(Effect.scoped)

process.stdout.write(`${JSON.stringify(Effect.runSync(measured))}\n`)
