/** What a judgement would keep: `node .ci/ts.mjs test/bench/judged.ts` plays recorded sessions under `Rung.decide` with an oracle. */
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as Kept from "effect-compaction/simulate/Kept"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Statistics from "effect-compaction/simulate/Statistics"
import * as DecisionModel from "effect/ai/DecisionModel"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Identifiers from "../../src/simulate/parts/identifiers.ts"
import * as Play from "../evidence/Play.ts"
import * as Random from "../properties/Random.ts"

const { settings } = Policy.options(Policy.recommended)

const entriesOf = (message: Prompt.Message): number => message.role === "tool" ? message.content.length : 1

/** A model that knows what the recorded session goes on to use, and says the opposite in so many of a hundred cases. */
const oracle = (messages: ReadonlyArray<Prompt.Message>, wrong: number) => {
  const random = Random.make(7)
  const places = messages.flatMap((message, at) => Array.from({ length: entriesOf(message) }, () => at))
  const used = new Map<string, Array<number>>()
  messages.forEach((message, at) => {
    if (message.role !== "assistant") return
    for (const each of Identifiers.of(message)) used.set(each, [...(used.get(each) ?? []), at])
  })
  const now = { told: 0, calls: 0, asked: 0 }
  const neededOf = (seq: number): number => {
    let at = places[seq] ?? 0
    const unit = new Set(Identifiers.of(messages[at]!))
    while (messages[at + 1]?.role === "tool") for (const each of Identifiers.of(messages[++at]!)) unit.add(each)
    let uses = 0
    for (const each of unit) {
      const all = used.get(each) ?? []
      if (all.length <= 8) uses += all.filter((place) => place > now.told).length
    }
    return uses === 0 ? 0.05 : 0.5 + 0.49 * Math.tanh(uses / 5)
  }
  const model = DecisionModel.make({
    decide: ({ decisions }) =>
      Effect.sync(() => {
        const ids = Object.keys(decisions)
        now.calls++
        now.asked += ids.length
        const answers = Object.fromEntries(ids.map((id) => {
          const needed = neededOf(Number(id.slice(1)))
          const probability = random.below(100) < wrong ? 1 - needed : needed
          return [id, { _tag: "Probability", probability } as const]
        }))
        return { answers, usage: { inputTokens: undefined, outputTokens: undefined } }
      })
  })
  return { now, provide: Effect.provideServiceEffect(DecisionModel.DecisionModel, model) }
}

const judging = Ladder.insertBefore(Ladder.recommended, "remove-others", Rung.decide({ calls: 3 }))

const play = Effect.fnUntraced(function*({ session: { messages } }: Play.Subject, wrong: number | null) {
  const { now, provide } = oracle(messages, wrong ?? 0)
  const ladder: Ladder.Ladder<never, DecisionModel.DecisionModel> = wrong === null ? Ladder.recommended : judging
  const { kept, totals } = yield* provide(Kept.run({ messages }, { ladder, settings: { ...settings } }, {
    maxTokens: 45_000,
    cache: PromptCache.anthropic,
    price: Play.price,
    onRequest: (_, __, sent) => Effect.sync(() => void (now.told = sent?.told ?? now.told))
  }))
  return { ...now, kept, totals }
})

const half = Play.recorded().filter(({ name }) => Statistics.halfOf(name) === "reported")
for (const [title, wrong] of [["recommended", null], ["oracle", 0], ["right in 90 %", 10], ["in 80 %", 20]] as const) {
  const all = await Effect.runPromise(Effect.forEach(half, (subject) => play(subject, wrong)))
  const sum = (of: (one: (typeof all)[number]) => number): number => all.reduce((so, one) => so + of(one), 0)
  const share = (key: "far" | "near") => (100 * Kept.ratio(...all.map(({ kept }) => kept.policy[key]))).toFixed(1)
  console.log(
    `${title}: ${half.length} sessions, far ${share("far")} %, near ${share("near")} %, view ${
      Math.round(sum(({ kept }) => kept.policy.viewTokens) / all.length)
    } tokens, cost $${sum(({ totals }) => totals.cost).toFixed(2)}, ${
      sum(({ totals }) => totals.boundaries)
    } boundaries, ${sum(({ calls }) => calls)} calls about ${sum(({ asked }) => asked)} units`
  )
}
