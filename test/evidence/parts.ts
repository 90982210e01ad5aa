/** The parts of docs/evidence.md. Each of them says how it was measured, and is generated alone by its name. */
import * as Policy from "effect-compaction/Policy"
import * as Settings from "effect-compaction/Settings"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Play from "./Play.ts"

type Lines = ReadonlyArray<string>

/** A part by its name. `of`: on which sessions it is measured. */
export interface Part {
  readonly name: string
  readonly of: "samples" | "recorded"
  readonly lines: (subjects: ReadonlyArray<Play.Subject>) => Effect.Effect<Lines>
}

const number = (value: number): string => Math.round(value).toLocaleString("en-US")
const dollars = (value: number): string => value.toFixed(2)
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`
const times = (ratio: number): string => `${ratio.toFixed(3)}×`

const table = (titles: Lines, rows: ReadonlyArray<Lines>): Lines => [
  `| ${titles.join(" | ")} |`,
  `|${titles.map((_, at) => at === 0 ? "---" : "---:").join("|")}|`,
  ...rows.map((row) => `| ${row.join(" | ")} |`),
  ""
]

const command = (name: string): string => `Made by \`npm run evidence -- ${name}\`.`

const { contextSimple, contextSimpleSummary, recommended } = Policy.presets

const play = (subjects: ReadonlyArray<Play.Subject>, policy: Policy.Policy, world: Play.World) =>
  Effect.forEach(subjects, (subject) => Play.figures(subject, policy, world))

const titles = [
  "policy",
  "cost $",
  "of contextSimple",
  "boundaries",
  "waste",
  "read share",
  "retained",
  "words alone",
  "of the optimum"
]

const row = (name: string, all: Omit<Play.Figures, "budget">, base: Pick<Play.Figures, "cost">): Lines => [
  name,
  dollars(all.cost),
  times(all.cost / base.cost),
  number(all.boundaries),
  number(all.waste),
  percent(all.cacheReadShare),
  percent(all.retained ?? 1),
  percent(all.retainedWords),
  times(all.cost / all.optimum)
]

/** The three policies of the seed's comparison, session by session and together. */
const three = { contextSimple, contextSimpleSummary, recommended }

const side = (subjects: ReadonlyArray<Play.Subject>, world: Play.World): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const rows: Array<Lines> = []
    const base = yield* play(subjects, contextSimple, world)
    const all = { contextSimple: base, contextSimpleSummary: base, recommended: base }
    for (const name of ["contextSimpleSummary", "recommended"] as const) {
      all[name] = yield* play(subjects, three[name], world)
    }
    subjects.forEach((subject, at) => {
      rows.push([`**${subject.name}**, ${number(base[at]!.requests)} requests`, ...titles.slice(1).map(() => "")])
      for (const [name, each] of Object.entries(all)) rows.push(row(name, each[at]!, base[at]!))
    })
    if (subjects.length > 1) {
      rows.push(["**all of them**", ...titles.slice(1).map(() => "")])
      for (const [name, each] of Object.entries(all)) rows.push(row(name, Play.total(each), Play.total(base)))
    }
    return table(titles, rows)
  })

interface Goal {
  readonly text: string
  readonly value: string
  readonly isMet: boolean
}

const goalTable = (goals: ReadonlyArray<Goal>): Lines =>
  table(["goal", "measured", ""], goals.map(({ isMet, text, value }) => [text, value, isMet ? "met" : "**missed**"]))

const most = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.max(a, b), -Infinity)

/** The goals of a recommended policy, over all sessions and in the worst of them. */
const goals = (subjects: ReadonlyArray<Play.Subject>, world: Play.World): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const base = yield* play(subjects, contextSimple, world)
    const ours = yield* play(subjects, recommended, world)
    const [simple, better] = [Play.total(base), Play.total(ours)]
    const worst = (of: (a: Play.Figures, b: Play.Figures) => number): number =>
      most(ours.map((each, at) => of(each, base[at]!)))
    const goal = (text: string, all: number, each: number, limit: number, shown: (value: number) => string): Goal => ({
      text,
      value: `${shown(all)}, at worst ${shown(each)}`,
      isMet: all <= limit && each <= limit
    })
    const gained = (a: Play.Figures, b: Play.Figures): number => (b.retained ?? 1) - (a.retained ?? 1)
    const words = (a: Play.Figures, b: Play.Figures): number => b.retainedWords - a.retainedWords
    const points = (value: number): string => `${value > 0 ? "−" : "+"}${(100 * Math.abs(value)).toFixed(1)} points`
    return goalTable([
      goal("cost ≤ 1.0× contextSimple", better.cost / simple.cost, worst((a, b) => a.cost / b.cost), 1, times),
      goal(
        "boundaries ≤ 1.0× contextSimple",
        better.boundaries / simple.boundaries,
        worst((a, b) => b.boundaries === 0 ? 1 + a.boundaries : a.boundaries / b.boundaries),
        1,
        times
      ),
      goal(
        "retention strictly higher",
        (simple.retained ?? 1) - (better.retained ?? 1),
        worst(gained),
        -Number.MIN_VALUE,
        points
      ),
      goal(
        "the same for words of people and of the assistant alone",
        simple.retainedWords - better.retainedWords,
        worst(words),
        -Number.MIN_VALUE,
        points
      ),
      goal("cost ≤ 1.15× the optimum", better.cost / better.optimum, worst((a) => a.cost / a.optimum), 1.15, times),
      goal("no request over the budget, no violation", better.overBudget + better.violations, 0, 0, number)
    ])
  })

const budget = { samples: { maxTokens: 16_000 }, recorded: { maxTokens: 45_000 } }

/** The presets over the same sessions. */
const presets = (subjects: ReadonlyArray<Play.Subject>, world: Play.World): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const base = Play.total(yield* play(subjects, contextSimple, world))
    const rows: Array<Lines> = []
    for (const [name, preset] of Object.entries<Policy.Policy>(Policy.presets)) {
      const all = Play.total(yield* play(subjects, preset, world))
      rows.push([...row(name, all, base), dollars(all.summaryCost), number(all.overBudget), number(all.violations)])
    }
    return table([...titles, "summaries $", "over budget", "violations"], rows)
  })

const summaryOf = (maxTokens: number): Settings.Summary => Schema.decodeSync(Settings.Summary)({ maxTokens })

const frontier = (subjects: ReadonlyArray<Play.Subject>, world: Play.World): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const base = Play.total(yield* play(subjects, contextSimple, world))
    const variants: Array<readonly [string, Policy.Policy]> = []
    for (const targetUsage of [0.3, 0.4, 0.5, 0.6]) {
      variants.push([`contextSimple, targetUsage ${targetUsage}`, { ...contextSimple, targetUsage }])
    }
    for (const targetUsage of [0.3, 0.4, 0.43, 0.5, 0.6]) {
      variants.push([`recommended, targetUsage ${targetUsage}`, { ...recommended, targetUsage }])
    }
    for (const compactThreshold of [0.85, 0.92]) {
      variants.push([`recommended, compactThreshold ${compactThreshold}`, { ...recommended, compactThreshold }])
    }
    variants.push(["recommended, shape head", { ...recommended, shape: "head" }])
    for (const protectedToolResults of [1, 5, 8]) {
      variants.push([
        `recommended, protectedToolResults ${protectedToolResults}`,
        { ...recommended, protectedToolResults }
      ])
    }
    variants.push(
      ["recommended with summaries of at most 1,000 tokens", { ...recommended, summary: summaryOf(1_000) }],
      ["the same, of at most 500, targetUsage 0.4", { ...recommended, targetUsage: 0.4, summary: summaryOf(500) }]
    )
    const rows: Array<{ readonly cost: number; readonly kept: number; readonly cells: Lines }> = []
    for (const [name, policy] of variants) {
      const all = Play.total(yield* play(subjects, policy, world))
      rows.push({ cost: all.cost, kept: all.retained ?? 1, cells: row(name, all, base) })
    }
    const isBest = (each: typeof rows[number]): boolean =>
      !rows.some((other) => other !== each && other.cost <= each.cost && other.kept >= each.kept)
    return table(
      [...titles, "on the frontier"],
      rows.toSorted((a, b) => a.cost - b.cost).map((each) => [...each.cells, isBest(each) ? "yes" : ""])
    )
  })

const windows = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const rows: Array<Lines> = []
    for (const [name, cache] of [["anthropic", PromptCache.anthropic], ["openai", PromptCache.openai]] as const) {
      for (const window of [32_000, 64_000, 200_000]) {
        const base = Play.total(yield* play(subjects, contextSimple, { window, cache }))
        for (const each of ["contextSimple", "recommended"] as const) {
          const all = Play.total(yield* play(subjects, Policy.presets[each], { window, cache }))
          rows.push([`${number(window)}, ${name}: ${each}`, ...row("", all, base).slice(1), number(all.overBudget)])
        }
      }
    }
    return table(["window, cache: policy", ...titles.slice(1), "over budget"], rows)
  })

const floors = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const rows: Array<Lines> = []
    const verdicts = { monotonic: 0, fewer: 0, cheaper: 0, thriftier: 0, capped: 0 }
    const satisfied: Array<string> = []
    for (const subject of subjects) {
      const series: Array<Play.Figures> = []
      for (const clearAtLeast of [null, 10_000, 20_000, 40_000]) {
        const policy: Policy.Policy = {
          ...contextSimple,
          meter: "hybrid",
          targetUsage: 0.8,
          clearAtLeast,
          countSkips: "whenGrown",
          clearFloorWhenOverBudget: "override"
        }
        const measured = yield* Play.figures(subject, policy, { maxTokens: 100_000 })
        series.push(measured)
        const { boundaries, cost, longestStreak, overBudget, retained, skips, waste } = measured
        rows.push([
          `${subject.name}: ${clearAtLeast === null ? "off" : number(clearAtLeast)}`,
          number(boundaries),
          number(skips),
          number(longestStreak),
          dollars(cost),
          number(waste),
          percent(retained ?? 1),
          number(overBudget)
        ])
      }
      const [off] = series
      if (off === undefined) continue
      const isMonotonic = series.every((each, at) => at === 0 || each.boundaries <= series[at - 1]!.boundaries)
      const isCheaper = series.every(({ cost }) => cost <= off.cost * (1 + 1e-9))
      const isThriftier = series.every(({ waste }) => waste <= off.waste)
      const isUncapped = series.every(({ failed, longestStreak }) => longestStreak < 3 && failed === 0)
      const isFewer = series.at(-1)!.boundaries < off.boundaries
      if (isMonotonic) verdicts.monotonic++
      if (isFewer) verdicts.fewer++
      if (isCheaper) verdicts.cheaper++
      if (isThriftier) verdicts.thriftier++
      if (isUncapped) verdicts.capped++
      if (isMonotonic && isFewer && isCheaper && isThriftier && isUncapped) satisfied.push(subject.name)
    }
    const of = (count: number): string => `${count} of ${subjects.length} sessions`
    return [
      ...table(
        [
          "session: clearAtLeast",
          "boundaries",
          "refusals",
          "most in a row",
          "cost $",
          "waste",
          "retained",
          "over budget"
        ],
        rows
      ),
      ...table(["goal", "measured"], [
        ["boundaries never rise with the floor", of(verdicts.monotonic)],
        ["fewer boundaries at 40,000 than without a floor", of(verdicts.fewer)],
        ["no floor costs more than none", of(verdicts.cheaper)],
        ["no floor wastes more than none", of(verdicts.thriftier)],
        ["no streak reaches its cap, the default of 3", of(verdicts.capped)],
        ["all of these at once", of(satisfied.length)]
      ]),
      "",
      `All at once: ${
        satisfied.join(", ")
      }. Where a floor costs more, it is not the rebuilds: a pass that is refused leaves a `
      + "larger view to be read until the next one."
    ]
  })

const meters = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const rows: Array<Lines> = []
    const sized = [["actual", "provider"], ["hybrid", "provider"]] as const
    const byPrice = [["estimate"], ["actual"], ["hybrid"], ["calibrated"]] as const
    for (const ratio of [1, 1.3, 2]) {
      for (const [meter, sizing] of ratio === 1 ? byPrice : [...byPrice, ...sized]) {
        for (const compactThreshold of [0.85, 0.92, 0.97]) {
          const policy: Policy.Policy = {
            ...contextSimple,
            meter,
            compactThreshold,
            provenanceGate: false,
            ...(sizing === undefined ? undefined : { sizing })
          }
          const all = Play.total(yield* play(subjects, policy, { maxTokens: 45_000, ratio }))
          rows.push([
            `${ratio.toFixed(1)}: ${meter}${
              sizing === undefined ? "" : ", sized by the provider"
            }, ${compactThreshold}`,
            number(all.boundaries),
            number(all.billedOver),
            percent(all.retained ?? 1),
            dollars(all.cost)
          ])
        }
      }
    }
    return table(
      [
        "billed per estimated token: meter, threshold",
        "boundaries",
        "requests billed over the budget",
        "retained",
        "cost $"
      ],
      rows
    )
  })

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** What was read from the cache by the first request, and by each that was billed a tenth less than the one before. */
const heads = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const rows: Array<Lines> = []
    for (const subject of subjects) {
      const bills = Array.from(subject.session.usage).toSorted(([a], [b]) => a - b).map(([, usage]) => usage)
      const known = bills.filter(({ cacheRead }) => cacheRead !== undefined)
      if (known.length === 0) continue
      const inputOf = ({ cacheRead = 0, cacheWrite = 0, fresh = 0 }: typeof known[number]): number =>
        fresh + cacheRead + cacheWrite
      const cut = known.filter((bill, at) => at > 0 && inputOf(bill) < 0.9 * inputOf(known[at - 1]!))
      const survived = cut.map(({ cacheRead = 0 }) => cacheRead)
      const first = known[0]?.cacheRead ?? 0
      const head = survived.length === 0 ? first : median(survived)
      const ours = yield* Play.figures(subject, recommended, { window: 200_000 })
      const left = ours.boundaries === 0 ? 0.43 * ours.budget : ours.left
      const { cacheRead, cacheWrite } = Play.price
      const perBoundary = Math.max(1, ours.requests / Math.max(1, ours.boundaries))
      const suggested = (left * (cacheWrite - cacheRead)) / (cacheRead * perBoundary)
      rows.push([
        subject.name,
        number(known.length),
        number(first),
        survived.length === 0 ? "none" : survived.map(number).join(", "),
        number(head),
        number(perBoundary),
        number(left),
        number(suggested)
      ])
    }
    return table([
      "session",
      "bills",
      "read by the first request",
      "read after each cut of the agent's own",
      "pinned head",
      "requests a boundary",
      "left by a boundary",
      "clearAtLeast suggested"
    ], rows)
  })

const with_ = (
  name: string,
  of: Part["of"],
  heading: string,
  text: string,
  measured: (subjects: ReadonlyArray<Play.Subject>) => Effect.Effect<Lines>
): Part => ({
  name,
  of,
  lines: (subjects) =>
    Effect.map(measured(subjects), (lines) => [`## ${heading}`, "", text, "", command(name), "", ...lines])
})

const counted = "The budget is 45,000 tokens (`maxTokens`), the cache Anthropic's, the prices those of Claude Opus 4.5."

/** All parts, in their order. */
export const parts: ReadonlyArray<Part> = [
  with_(
    "samples",
    "samples",
    "The sample sessions",
    "The sessions of [examples/sessions](examples/sessions/) under a budget of 16,000 tokens. They are short, so these "
      + "figures say less than those below; anybody can make them again.",
    (subjects) => side(subjects, budget.samples)
  ),
  with_(
    "goals",
    "recorded",
    "The recommended policy, and its goals",
    `Seven long sessions of coding agents. ${counted} Summaries are billed at 15 % of the span, at least 400 tokens; `
      + "`recommended` writes none.",
    (subjects) => goals(subjects, budget.recorded)
  ),
  with_(
    "sessions",
    "recorded",
    "Progressive, reference summary, recommended",
    `The same sessions, one by one. ${counted}`,
    (subjects) => side(subjects, budget.recorded)
  ),
  with_(
    "presets",
    "recorded",
    "All presets",
    `What each preset models of another system, and what not, is said in \`Policy\`. ${counted}`,
    (subjects) => presets(subjects, budget.recorded)
  ),
  with_(
    "frontier",
    "recorded",
    "The frontier of cost and retention",
    "Cheapest first. A policy is on the frontier when no other one here costs no more and keeps no less. With one whole "
      + "result instead of three `recommended` is cheaper and keeps more; it keeps three, because an agent works with its "
      + "newest results, and a recorded one cannot read again what it misses, so its need of them shows in no column. "
      + counted,
    (subjects) => frontier(subjects, budget.recorded)
  ),
  with_(
    "windows",
    "recorded",
    "Other windows, and automatic caching",
    "`window` instead of a budget: 8,192 tokens come off it, and 800 for the notice. Prices are those of Claude Opus 4.5 "
      + "under both caches, so that only the rules differ; with automatic caching a write costs as much as with explicit.",
    windows
  ),
  with_(
    "floors",
    "recorded",
    "Worth the rebuild: `clearAtLeast`",
    "Meter `hybrid`, a budget of 100,000 tokens and `targetUsage` 0.8, so that a pass frees little and the floors matter: "
      + "at the default 0.5 a pass frees 42,000 tokens and none of them refuses anything. A refused pass is tried again at "
      + "the next request. `countSkips` is `\"whenGrown\"`: only a refusal that says something new counts and is published; "
      + "with `\"every\"`, which sends the same views, up to 21 in a row would. Over the budget a pass is let through "
      + "(`clearFloorWhenOverBudget: \"override\"`).",
    floors
  ),
  with_(
    "meters",
    "recorded",
    "Meters and thresholds",
    "`contextSimple` with each meter, where the provider counts as the estimator does (1.0), where it counts 30 % more "
      + "(1.3), and where it counts twice as much (2.0). A budget of 45,000 tokens. What is freed is sized in prices, or, "
      + "where it says so and with `calibrated`, in the tokens of the provider.",
    meters
  ),
  with_(
    "heads",
    "recorded",
    "What survives a boundary",
    "What the recorded bills say was read from the cache by the first request, and by the first one after the agent cut "
      + "its own history: the system prompt and the tools, which no boundary changes. A boundary writes what it leaves anew; "
      + "it is worth that when reading what it frees would have cost more until the next one. `clearAtLeast` follows from "
      + "what `recommended` leaves at a window of 200,000 tokens and how many requests there are for each boundary: "
      + "left × (write − read) / (read × requests).",
    heads
  )
]
