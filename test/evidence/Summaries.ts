/** What summaries cost and keep, by the size of the view, and what is left of a first compaction after the next ones. */
import * as Marks from "effect-compaction/Marks"
import * as Policy from "effect-compaction/Policy"
import * as Settings from "effect-compaction/Settings"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Simulation from "effect-compaction/simulate/Simulation"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Keeping from "./Keeping.ts"
import * as Play from "./Play.ts"
import { dollars, type Lines, number, table, times } from "./Text.ts"

const { recommended } = Policy.presets

const withSummary = (given: NonNullable<Settings.Input["summary"]>): Policy.Policy => {
  const { summary } = Effect.runSync(Settings.decode({ summary: given }))
  return summary === undefined ? recommended : { ...recommended, summary }
}

/** A pass aims at half of the budget. */
const budgetOf = (sizes: number): number => Math.round((sizes * 3_000) / 0.5)

const sum = (values: ReadonlyArray<number>): number => values.reduce((all, value) => all + value, 0)

/** `recommended` with and without summaries, at views of so many sizes of a summary. */
export const bySize = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const sessions = subjects.map(Keeping.plant)
    const rows: Array<Lines> = []
    const differences: Array<Lines> = []
    for (const sizes of [1, 2, 4, 8]) {
      const world = { maxTokens: budgetOf(sizes) }
      const without = yield* Keeping.play(sessions, recommended, world)
      const cost = Keeping.costOf(without)
      const row = (name: string, all: typeof without, paid: number): Lines => [
        `${sizes}×, ${name}`,
        number(Keeping.view(all)),
        number(sum(all.map(({ totals }) => totals.summaries))),
        number(Keeping.boundariesOf(all)),
        dollars(paid),
        times(paid / cost),
        ...(["far", "near", "memory", "edited", "bodies", "words"] as const).map((key) =>
          Keeping.percent(Keeping.share(all, key))
        )
      ]
      rows.push(row("without", without, cost))
      const names = [["extract", {}], ["extract, `ledger` 0.1", { ledger: 0.1 }]] as const
      for (const [name, more] of names) {
        const all = yield* Keeping.play(sessions, withSummary({ maxSizes: null, ...more }), world)
        const calls = sum(all.map(({ totals }) => totals.summaryCost))
        const free = Keeping.costOf(all) - calls
        rows.push(row(name, all, free))
        if (name !== "extract") continue
        const far = Keeping.gained(all, without, "far")
        differences.push([
          `${sizes}×`,
          times(free / cost),
          times(Keeping.costOf(all) / cost),
          Keeping.interval(far),
          Keeping.interval(Keeping.gained(all, without, "near")),
          free <= 1.02 * cost && far.mean >= 0 ? "met" : "**missed**"
        ])
      }
    }
    const titles = ["view", "tokens", "summaries", "boundaries", "cost $", "of without"]
    return [
      ...table([...titles, "reuse", "near", "memory", "files edited", "bodies", "words"], rows),
      "The extract against none, session by session; *billed* is the same with each call paid as one of the model of the "
      + "conversation. The goal: free, at most 1.02 of the cost, and reuse not lower.",
      "",
      ...table(["view", "cost", "billed", "reuse", "near", "goal"], differences)
    ]
  })

/** The presets of systems that summarise, and ours with summaries on, with the ledger and without. */
const chained: ReadonlyArray<readonly [string, Policy.Policy]> = [
  ...(["contextSimpleSummary", "deepseekHarness", "codex", "claudeCode", "openCode"] as const).map(
    (name) => [name, Policy.presets[name]] as const
  ),
  ["recommended, summary", withSummary({ maxSizes: null })],
  ["recommended, summary, `ledger` 0", withSummary({ maxSizes: null, ledger: 0 })],
  ["recommended", recommended]
]

const textsOf = (messages: ReadonlyArray<Prompt.Message>): string =>
  messages.flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => part.type === "text" ? [part.text] : []) : []
  ).join("\n\0\n")

const isPersons = (message: Prompt.Message): boolean =>
  message.role === "user" && !Marks.machineSources.has(Marks.of(message).source ?? "")

/** Long pastes are no words. */
const longest = 2_000

interface Chain {
  readonly words: ReadonlyArray<readonly [held: number, of: number]>
  readonly facts: ReadonlyArray<readonly [held: number, of: number]>
}

/** What of the words and facts of people that were said before the first compaction stands in the view after each. */
const chainOf = Effect.fnUntraced(function*(session: ReturnType<typeof Keeping.plant>, policy: Policy.Policy) {
  const views: Array<Simulation.Sent | undefined> = []
  const { rows } = yield* Simulation.run({ messages: session.messages }, Policy.options(policy), {
    cache: PromptCache.anthropic,
    price: Play.price,
    summarizer: Play.summarizer,
    maxTokens: chainBudget,
    onRequest: (_, __, sent) => Effect.sync(() => views.push(sent))
  })
  const after = views.filter((sent, at) => sent !== undefined && rows[at]?.boundary !== null).slice(0, compactions)
  const told = after[0]?.told ?? 0
  const words = session.messages.slice(0, told).filter(isPersons).map((message) => textsOf([message]))
    .filter((text) => text.trim() !== "" && text.length <= longest)
  const facts = session.probes.filter(({ at, source }) => source === "person" && Math.max(...at) < told)
  const chain: Chain = {
    words: after.map((sent) => {
      const text = textsOf(sent?.messages ?? [])
      return [words.filter((each) => text.includes(each)).length, words.length]
    }),
    facts: after.map((sent) => {
      const text = textsOf(sent?.messages ?? [])
      return [facts.filter((probe) => probe.words.every((word) => text.includes(word))).length, facts.length]
    })
  }
  return chain
})

const compactions = 3
const chainBudget = 45_000

/** What each preset has left of the words of people at its first three compactions. */
export const chains = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const sessions = subjects.map(Keeping.plant)
    const rows: Array<Lines> = []
    for (const [name, policy] of chained) {
      const all = (yield* Effect.forEach(sessions, (session) => chainOf(session, policy)))
        .filter(({ words }) => words.length === compactions)
      const at = (of: (chain: Chain) => Chain["words"], nth: number): string => {
        const shares = all.map((chain) => of(chain)[nth]!)
        return Keeping.percent(sum(shares.map(([held]) => held)) / Math.max(1, sum(shares.map(([, known]) => known))))
      }
      rows.push([
        name,
        number(all.length),
        ...[0, 1, 2].map((nth) => at(({ words }) => words, nth)),
        ...[0, 1, 2].map((nth) => at(({ facts }) => facts, nth))
      ])
    }
    return table(["preset", "sessions", "words: 1st", "2nd", "3rd", "facts of people: 1st", "2nd", "3rd"], rows)
  }).pipe(Effect.orDie)
