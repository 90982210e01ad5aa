/**
 * `node .ci/ts.mjs test/bench/decorated.ts`: what a decorated call costs beyond the same call undecorated, when there is no
 * boundary. Each call extends the conversation by one message, as an agent does. Both are measured in turn in the same
 * run; what is printed is the median and the best round, and the bar holds for the best one, since noise only adds.
 */
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { performance } from "node:perf_hooks"
import { messages } from "./transcript.ts"

const scope = Scope.makeUnsafe()
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): A => Effect.runSync(Scope.provide(effect, scope))

const inner = run(LanguageModel.make({
  generateText: () => Effect.succeed([{ type: "text" as const, text: "ok" }]),
  streamText: () => Stream.empty
}))
const decorated = CompactedModel.decorate(inner)

const callsPerRound = 20
const rounds = 15

/** Microseconds for each call of a round; the prompts are made before the clock starts. */
const roundOf = (model: LanguageModel.LanguageModel, count: number): () => number => {
  const manager = run(ContextManager.make({ settings: { window: 100_000_000 } }))
  let content: ReadonlyArray<Prompt.Message> = messages(count)
  const next = () => {
    content = [
      ...content,
      Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: `message ${content.length}` })] })
    ]
    return Prompt.fromMessages(content)
  }
  const call = (prompt: Prompt.Prompt) =>
    run(Effect.provideService(model.generateText({ prompt }), ContextManager.Current, manager))
  call(next())
  return () => {
    const prompts = Array.from({ length: callsPerRound }, next)
    const start = performance.now()
    for (const prompt of prompts) call(prompt)
    const time = (performance.now() - start) * 1_000 / callsPerRound
    // What is measured is a call without a boundary.
    return run(manager.status).generation === 0 ? time : Number.NaN
  }
}

const median = (times: ReadonlyArray<number>): number => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!

let isBelow = true
for (const [count, bar] of [[100, 8], [10_000, 2.5]] as const) {
  const [plain, own] = [roundOf(inner, count), roundOf(decorated, count)]
  const times: { readonly plain: Array<number>; readonly own: Array<number> } = { plain: [], own: [] }
  for (let round = -5; round < rounds; round++) {
    const [a, b] = [plain(), own()]
    if (round < 0) continue
    times.plain.push(a)
    times.own.push(b)
  }
  const ratio = Math.min(...times.own) / Math.min(...times.plain)
  isBelow &&= ratio <= bar
  console.log(
    `${count} messages: undecorated ${median(times.plain).toFixed(0)} µs, decorated ${
      median(times.own).toFixed(0)
    } µs, `
      + `best of ${rounds} rounds ${ratio.toFixed(2)} times the undecorated call (at most ${bar})`
  )
}
if (!isBelow) process.exitCode = 1
