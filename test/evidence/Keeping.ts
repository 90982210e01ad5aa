/** What policies keep, at equal cost and on the reported half: the first parts of docs/evidence.md. */
import * as Policy from "effect-compaction/Policy"
import * as Chat from "effect-compaction/simulate/Chat"
import * as Instructions from "effect-compaction/simulate/Instructions"
import * as Kept from "effect-compaction/simulate/Kept"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Retention from "effect-compaction/simulate/Retention"
import * as Simulation from "effect-compaction/simulate/Simulation"
import * as Statistics from "effect-compaction/simulate/Statistics"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Play from "./Play.ts"
import { dollars, type Lines, number, table, times } from "./Text.ts"

const { contextSimple, contextSimpleHybrid, recommended } = Policy.presets

/** `recommended` as it was: words of people were cut before old answers left, and large results pushed messages out. */
const before: Policy.Policy = {
  ...recommended,
  standingInstructions: 0,
  ladder: [
    { _tag: "truncateToolResults", fraction: 1 },
    { _tag: "remove", relax: 1 },
    { _tag: "remove", relax: 0.6 },
    { _tag: "remove", relax: 0.3 },
    { _tag: "lastResort", relax: 0.3 }
  ]
}

const truncate = { _tag: "truncateToolResults", fraction: 1 } as const
const clear = { _tag: "clearToolResults", keep: 3, exclude: [], clearInputs: false } as const
const large = { _tag: "truncateLarge", over: 0.3, keep: 0.2 } as const
const others = [1, 0.6, 0.3, 0].map((relax) => ({ _tag: "removeOthers", relax, keep: 12 }) as const)
const people = { _tag: "shortenPeople", share: 0.1, above: 0.5 } as const

/** Keeps nothing of results but 120 characters, and is better for it in any measure that asks for what is far alone. */
const greedy: Policy.Policy = { ...before, protectedToolResults: 0, truncateChars: 120 }

const benchmarks = join(process.cwd(), "../shared/benchmarks")

/** Instructions to plant: ours, and where they are at hand those of a published benchmark. */
const sentences = (): ReadonlyArray<string> => {
  const file = join(benchmarks, "constraints.json")
  if (!existsSync(file)) return Instructions.samples
  // The file is one of those that the benchmark consists of; its README says what is in it.
  const { constraints } = JSON.parse(readFileSync(file, "utf8")) as { readonly constraints: ReadonlyArray<string> }
  return [...Instructions.samples, ...constraints]
}

/** A session with instructions and facts in it, by its name. */
export interface Planted extends Retention.Planted {
  readonly name: string
  readonly instructions: ReadonlyArray<Instructions.Instruction>
}

export const plant = ({ name, session }: Play.Subject): Planted => {
  const instructed = Instructions.plant(session.messages, sentences())
  const planted = Retention.plant(instructed.messages, { seed: 1, count: Play.probes })
  const instructions = instructed.instructions.map(({ at, text }) => ({
    text,
    // Facts are stated in messages of their own, which stand before it.
    at: planted.messages.indexOf(instructed.messages[at]!)
  }))
  return { ...planted, name, instructions }
}

export type Played = Simulation.Result & { readonly kept: Kept.Kept }

export const play = (
  sessions: ReadonlyArray<Planted>,
  policy: Policy.Policy,
  world: Play.World
): Effect.Effect<ReadonlyArray<Played>> =>
  Effect.forEach(
    sessions,
    ({ instructions, messages, probes }) =>
      Kept.run({ messages, instructions }, Policy.options(policy), {
        cache: PromptCache.anthropic,
        price: Play.price,
        summarizer: Play.summarizer,
        ...world,
        probes
      })
  ).pipe(Effect.orDie)

export const costOf = (all: ReadonlyArray<Played>): number => all.reduce((sum, { totals }) => sum + totals.cost, 0)
export const boundariesOf = (all: ReadonlyArray<Played>): number =>
  all.reduce((sum, { totals }) => sum + totals.boundaries, 0)

type Key = Exclude<keyof Kept.Figures, "viewTokens">

export const share = (all: ReadonlyArray<Played>, key: Key, who: keyof Kept.Kept = "policy"): number =>
  Kept.ratio(...all.flatMap(({ kept }): ReadonlyArray<Kept.Share> => {
    const of = kept[who][key]
    return "held" in of ? [of] : of
  }))

const middle = (all: ReadonlyArray<Played>): number => Kept.ratio(...all.map(({ kept }) => kept.policy.instructions[1]))

export const view = (all: ReadonlyArray<Played>, who: keyof Kept.Kept = "policy"): number =>
  all.reduce((sum, { kept }) => sum + kept[who].viewTokens, 0) / all.length

export const percent = (ratio: number): string => (100 * ratio).toFixed(1)

/** The difference of two policies in a share, session by session. */
export const gained = (
  all: ReadonlyArray<Played>,
  than: ReadonlyArray<Played>,
  key: "far" | "near"
): Statistics.Summary =>
  Statistics.summary(all.flatMap(({ kept }, at) => {
    const [a, b] = [kept.policy[key], than[at]!.kept.policy[key]]
    return a.of === 0 ? [] : [100 * (Kept.ratio(a) - Kept.ratio(b))]
  }))

const points = (value: number): string => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`

export const interval = ({ high, low, losses, mean, of, wins, worst }: Statistics.Summary): string =>
  `${points(mean)} [${points(low)}, ${points(high)}], better in ${wins}, worse in ${losses} of ${of}, worst ${
    points(worst)
  }`

const facts = (all: ReadonlyArray<Played>, source: Retention.Source): number => {
  const scores = all.flatMap(({ rows }) =>
    rows.flatMap(({ retention }) => retention === null ? [] : [retention.sources])
  )
  return Kept.ratio(...scores.map((sources) => ({ held: sources[source].held, of: sources[source].known })))
}

const titles = [
  "policy",
  "cost $",
  "boundaries",
  "view",
  "reuse",
  "near",
  "memory",
  "bodies",
  "words",
  "instructions",
  "facts: people",
  "assistant",
  "bodies",
  "ends"
]

const row = (name: string, all: ReadonlyArray<Played>): Lines => [
  name,
  dollars(costOf(all)),
  number(boundariesOf(all)),
  number(view(all)),
  ...(["far", "near", "memory", "bodies", "words"] as const).map((key) => percent(share(all, key))),
  percent(share(all, "instructions")),
  ...(["person", "assistant", "body", "end"] as const).map((source) => percent(facts(all, source)))
]

const control = (name: "tail" | "random", all: ReadonlyArray<Played>): Lines => [
  name === "tail" ? "control: the newest messages" : "control: random messages",
  "",
  "",
  number(view(all, name)),
  ...(["far", "near", "memory", "bodies", "words", "instructions"] as const).map((key) =>
    percent(share(all, key, name))
  ),
  "",
  "",
  "",
  ""
]

const chatFolder = join(benchmarks, "chat")

/** The public chats, where they are at hand. */
const chats = (): ReadonlyArray<Chat.Chat> =>
  ["d60_C2", "d80_C1"].filter((name) => existsSync(join(chatFolder, `${name}.json`))).map((name) =>
    Effect.runSync(Chat.parse(name, {
      messages: readFileSync(join(chatFolder, `${name}.json`), "utf8"),
      meta: readFileSync(join(chatFolder, `${name}_meta.json`), "utf8")
    }))
  )

/** What the chats cost without a budget, in estimated tokens. */
const chatTokens = 190_000

/** Of the messages with evidence, those whole in the last view; on average over the chats. */
const chatted = (policy: Policy.Policy, budget: number): Effect.Effect<Chat.Score & { readonly cost: number }> =>
  Effect.gen(function*() {
    const scores: Array<Chat.Score & { readonly cost: number }> = []
    for (const chat of chats()) {
      let last: Simulation.Sent | undefined
      const { totals } = yield* Simulation.run({ messages: chat.messages }, Policy.options(policy), {
        maxTokens: Math.round(budget * chatTokens),
        cache: PromptCache.anthropic,
        price: Play.price,
        onRequest: (_, __, sent) =>
          Effect.sync(() => {
            last = sent ?? last
          })
      })
      scores.push({ ...Chat.score(chat, last?.messages ?? []), cost: totals.cost })
    }
    const mean = (of: (score: typeof scores[number]) => number): number =>
      scores.reduce((sum, each) => sum + of(each), 0) / scores.length
    return {
      whole: mean(({ whole }) => whole),
      people: mean(({ people }) => people),
      keywords: mean(({ keywords }) => keywords),
      cost: mean(({ cost }) => cost)
    }
  }).pipe(Effect.orDie)

const budget = 45_000

const halfOf = (subjects: ReadonlyArray<Play.Subject>, half: "tuned" | "reported"): ReadonlyArray<Planted> =>
  subjects.filter(({ name }) => Statistics.halfOf(name) === half).map(plant)

/** A policy at the budget at which the sessions cost so much. */
const atCost = (sessions: ReadonlyArray<Planted>, policy: Policy.Policy, cost: number, low = 30_000, high = 60_000) =>
  Kept.atCost((maxTokens) => play(sessions, policy, { maxTokens }), { cost, of: costOf, low, high })

/** The goals of `recommended`. */
export const goals = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const sessions = halfOf(subjects, "reported")
    const world = { maxTokens: budget }
    const simple = yield* play(sessions, contextSimple, world)
    const ours = yield* play(sessions, recommended, world)
    const old = yield* play(sessions, before, world)
    const game = yield* play(sessions, greedy, world)
    const equal = (yield* atCost(sessions, before, costOf(ours), 40_000, 50_000)).played
    const ratios = ours.map(({ totals }, at) => totals.cost / simple[at]!.totals.cost)
    const worst = Math.max(...ratios)
    const [far, near] = [gained(ours, equal, "far"), gained(ours, equal, "near")]
    const dear = { ...world, ratio: 1.3 }
    const bills = boundariesOf(yield* play(sessions, recommended, dear))
      / boundariesOf(yield* play(sessions, contextSimpleHybrid, dear))
    const half = yield* chatted(recommended, 0.5)
    const quarter = yield* chatted(recommended, 0.25)
    const [oldHalf, oldQuarter] = [yield* chatted(before, 0.5), yield* chatted(before, 0.25)]
    const cost = costOf(ours) / costOf(simple)
    const ratioOf = (all: ReadonlyArray<Played>): string =>
      `${times(costOf(all) / costOf(simple))}, worst ${
        times(Math.max(...all.map(({ totals }, at) => totals.cost / simple[at]!.totals.cost)))
      }`
    const of = (all: ReadonlyArray<Played>, key: Key): string => percent(share(all, key))
    const chatRow = (a: Chat.Score, b: Chat.Score, of: "people" | "whole"): string =>
      `${percent(a[of])} / ${percent(b[of])}`
    const sure = (isMet: boolean): string => isMet ? "met" : "**missed**"
    const over = ours.reduce((sum, { totals }) => sum + totals.overBudget + totals.violations, 0)
    const gameNear = gained(game, equal, "near")
    return [
      ...table(["goal", "before", "recommended", "", "a policy that protects nothing, 120 characters a result"], [
        [
          "cost of `contextSimple` at most 0.97, no session above 1.01",
          ratioOf(old),
          ratioOf(ours),
          sure(cost <= 0.97 && worst <= 1.01),
          ratioOf(game)
        ],
        [
          "reuse after more than 20 messages, against before at equal cost: +2 points or more, interval above 0",
          "0",
          interval(far),
          sure(far.mean >= 2 && far.low > 0),
          interval(gained(game, equal, "far"))
        ],
        [
          "reuse within 20 messages not lower",
          "0",
          interval(near),
          sure(near.mean >= 0),
          `${interval(gameNear)} ${gameNear.mean < 0 ? "**lost**" : ""}`
        ],
        [
          "standing instructions of the middle third in view at the end: 95 % or more",
          percent(middle(old)),
          percent(middle(ours)),
          sure(middle(ours) >= 0.95),
          percent(middle(game))
        ],
        [
          "words of people whole: 97 % or more",
          of(old, "words"),
          of(ours, "words"),
          sure(share(ours, "words") >= 0.97),
          of(game, "words")
        ],
        [
          "bodies of results, of those used again: not below `contextSimple`",
          `${of(old, "bodies")} of ${of(simple, "bodies")}`,
          of(ours, "bodies"),
          sure(share(ours, "bodies") >= share(simple, "bodies")),
          of(game, "bodies")
        ],
        [
          "chat: evidence of people whole at 50 / 25 % of the tokens: 85 / 60 % or more",
          chatRow(oldHalf, oldQuarter, "people"),
          chatRow(half, quarter, "people"),
          sure(half.people >= 0.85 && quarter.people >= 0.6),
          ""
        ],
        [
          "the same with the evidence that the assistant stated",
          chatRow(oldHalf, oldQuarter, "whole"),
          chatRow(half, quarter, "whole"),
          "",
          ""
        ],
        ["bills of 1.3: boundaries of `contextSimpleHybrid` at most 0.65", "", times(bills), sure(bills <= 0.65), ""],
        ["no request over the budget, no violation", "0", number(over), sure(over === 0), ""]
      ]),
      `Sessions: ${sessions.map(({ name }) => name).join(", ")}. Cost of each: ${
        sessions.map(({ name }, at) => `${name} ${times(ratios[at]!)}`).join(", ")
      }.`,
      ""
    ]
  })

/** The presets whose budget can be set so that they cost so much. */
const comparable = [
  "contextSimple",
  "contextSimpleSummary",
  "deepseekHarness",
  "codex",
  "claudeCode",
  "openCode",
  "slidingWindow",
  "recommended"
] as const

export const equal = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const sessions = halfOf(subjects, "reported")
    const cost = costOf(yield* play(sessions, contextSimple, { maxTokens: budget }))
    const rows: Array<Lines> = []
    let ours: ReadonlyArray<Played> = []
    for (const name of comparable) {
      const { maxTokens, played } = yield* atCost(sessions, Policy.presets[name], cost)
      const [title = "", ...cells] = row(name, played)
      rows.push([title, number(maxTokens), ...cells])
      ours = played
    }
    for (const name of ["tail", "random"] as const) {
      const [title = "", ...cells] = control(name, ours)
      rows.push([title, "", ...cells])
    }
    const [first = "", ...rest] = titles
    return table([first, "budget", ...rest], rows)
  })

export const alone = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const sessions = subjects.map(plant)
    const old = before.ladder.slice(1)
    const variants: ReadonlyArray<readonly [string, Policy.Policy]> = [
      ["contextSimple", contextSimple],
      ["before", before],
      ["before, results cleared", { ...before, ladder: [truncate, clear, ...old] }],
      ["before, large ones first", { ...before, ladder: [truncate, large, ...old] }],
      ["before, words of people last", { ...before, ladder: [truncate, ...others, people] }],
      ["before, instructions kept", { ...before, standingInstructions: 0.02 }],
      ["recommended: all of these", recommended],
      ["recommended, one result whole instead of three", { ...recommended, protectedToolResults: 1 }],
      ["protects nothing, 120 characters a result", greedy]
    ]
    const rows: Array<Lines> = []
    const differences: Array<Lines> = []
    let first: ReadonlyArray<Played> = []
    for (const [name, policy] of variants) {
      const all = yield* play(sessions, policy, { maxTokens: budget })
      if (name === "before") first = all
      rows.push(row(name, all))
      if (name === "before" || name === "contextSimple") continue
      const [half, quarter] = [yield* chatted(policy, 0.5), yield* chatted(policy, 0.25)]
      differences.push([
        name,
        interval(gained(all, first, "far")),
        interval(gained(all, first, "near")),
        `${percent(half.whole)} / ${percent(quarter.whole)}`,
        `${percent(half.people)} / ${percent(quarter.people)}`
      ])
    }
    return [
      ...table(titles, rows),
      "Against before, in points, without setting the cost equal; and of the chats the evidence that is whole at 50 and 25 %:",
      "",
      ...table(["policy", "reuse", "near", "chat: all evidence", "of people"], differences)
    ]
  })
