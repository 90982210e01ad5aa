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

/** Every floor that is compared, the first none. */
const clearFloors = [null, 10_000, 20_000, 40_000] as const

/** Where the floors are compared. At the first target a pass frees less than the lowest floor asks for, so all matter. */
const floorTargets = [0.85, 0.7, 0.75, 0.8, 0.9] as const

const floorBudget = 100_000

/** A session under each floor. */
const floorSeries = (subject: Play.Subject, targetUsage: number, own: Partial<Policy.Policy> = {}) =>
  Effect.forEach(clearFloors, (clearAtLeast) =>
    Play.figures(subject, {
      ...contextSimple,
      meter: "hybrid",
      targetUsage,
      clearAtLeast,
      countSkips: "whenGrown",
      clearFloorWhenOverBudget: "override",
      ...own
    }, { maxTokens: floorBudget }))

type Series = ReadonlyArray<Play.Figures>

/** No floor is worse in this than none. */
const isNoWorse = (series: Series, of: (each: Play.Figures) => number): boolean =>
  series.every((each) => of(each) <= of(series[0]!) * (1 + 1e-9))

const floorGoals: ReadonlyArray<readonly [text: string, isMet: (series: Series) => boolean]> = [
  [
    "boundaries never rise with the floor",
    (series) => series.every((each, at) => at === 0 || each.boundaries <= series[at - 1]!.boundaries)
  ],
  [
    "fewer boundaries at 40,000 than without a floor",
    (series) => series.at(-1)!.boundaries < series[0]!.boundaries
  ],
  ["no floor costs more than none", (series) => isNoWorse(series, ({ cost }) => cost)],
  ["no floor wastes more than none", (series) => isNoWorse(series, ({ waste }) => waste)],
  [
    "no streak reaches its cap, the default of 3",
    (series) => series.every(({ failed, longestStreak }) => longestStreak < 3 && failed === 0)
  ]
]

const isAllMet = (series: Series): boolean => floorGoals.every(([, isMet]) => isMet(series))

const floorName = (at: number): string => {
  const floor = clearFloors[at] ?? null
  return floor === null ? "off" : number(floor)
}

const signed = (value: number): string => `${value < 0 ? "−" : "+"}${dollars(Math.abs(value))}`

/** What a floor that costs more than none costs more for: reading the cache, or the rest, which is writing it. */
const dearer = (name: string, series: Series): ReadonlyArray<Lines> =>
  series.flatMap((each, at) => {
    const off = series[0]!
    if (each.cost <= off.cost * (1 + 1e-9)) return []
    const read = (each.cacheRead - off.cacheRead) * Play.price.cacheRead / 1_000_000
    const cost = each.cost - off.cost
    return [[
      `${name}: ${floorName(at)}`,
      `${number(off.boundaries)} → ${number(each.boundaries)}`,
      signed(cost),
      signed(read),
      signed(cost - read)
    ]]
  })

const floors = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const of = (all: ReadonlyArray<Series>, isMet: (series: Series) => boolean): string =>
      `${all.filter(isMet).length} of ${all.length}`
    const [main] = floorTargets
    const byTarget: Array<readonly [number, ReadonlyArray<Series>]> = []
    for (const target of floorTargets) {
      byTarget.push([target, yield* Effect.forEach(subjects, (subject) => floorSeries(subject, target))])
    }
    const shown = byTarget[0]![1]
    const every = yield* Effect.forEach(
      subjects,
      (subject) => floorSeries(subject, main, { countSkips: "every", maxConsecutiveSkips: 1_000 })
    )
    const rows = subjects.flatMap((subject, which) =>
      shown[which]!.map((each, at) => [
        `${subject.name}: ${floorName(at)}`,
        number(each.boundaries),
        number(each.skips),
        number(each.longestStreak),
        number(every[which]![at]!.longestStreak),
        dollars(each.cost),
        number(each.waste),
        percent(each.retained ?? 1),
        number(each.overBudget)
      ])
    )
    const sum = (all: ReadonlyArray<Series>, at: number) => Play.total(all.map((series) => series[at]!))
    const others = byTarget.toSorted(([a], [b]) => a - b).map(([target, all]) => {
      const [off, highest] = [sum(all, 0), sum(all, clearFloors.length - 1)]
      return [
        String(target),
        ...floorGoals.map(([, isMet]) => of(all, isMet)),
        of(all, isAllMet),
        `${dollars(off.cost)}, ${percent(off.retained ?? 1)}`,
        `${dollars(highest.cost)}, ${percent(highest.retained ?? 1)}`
      ]
    })
    const risen = byTarget.toSorted(([a], [b]) => a - b).flatMap(([target, all]) =>
      subjects.flatMap((subject, which) => dearer(`${target}, ${subject.name}`, all[which]!))
    )
    return [
      ...table(
        [
          "session: clearAtLeast",
          "boundaries",
          "refusals that count",
          "most in a row",
          "the same if every one counted",
          "cost $",
          "waste",
          "retained",
          "over budget"
        ],
        rows
      ),
      ...table(["goal", "sessions"], [
        ...floorGoals.map(([text, isMet]) => [text, of(shown, isMet)]),
        ["all of these at once", of(shown, isAllMet)]
      ]),
      "The same at other targets, in sessions; cost $ and retained over all of them:",
      "",
      ...table(
        [
          "targetUsage",
          "never rise",
          "fewer",
          "cost",
          "waste",
          "streak",
          "all at once",
          "no floor",
          "a floor of 40,000"
        ],
        others
      ),
      "A boundary that is refused comes later, and until then each request reads a longer view. Where few boundaries are "
      + "saved, that is more than their writes. Every floor that costs more than none:",
      "",
      ...table(["targetUsage, session: clearAtLeast", "boundaries", "cost $", "of it reads", "of it writes"], risen)
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
    for (const ratio of [1, 1.3, 2]) {
      for (const [name, sizing] of [["", "provider"], [", sized in prices", "price"]] as const) {
        const policy: Policy.Policy = { ...Policy.presets.recommended, sizing }
        const all = Play.total(yield* play(subjects, policy, { maxTokens: 45_000, ratio }))
        rows.push([
          `${ratio.toFixed(1)}: recommended${name}`,
          number(all.boundaries),
          number(all.billedOver),
          percent(all.retained ?? 1),
          dollars(all.cost)
        ])
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
    "Meter `hybrid`, a budget of 100,000 tokens, and over it a pass is let through (`clearFloorWhenOverBudget: "
      + "\"override\"`). The table is at `targetUsage` 0.85: a pass then frees about 7,000 tokens, less than each of the "
      + "floors, so that each of them matters; at 0.8 it frees 12,000 and the floor of 10,000 refuses nothing, at the "
      + "default 0.5 it frees 42,000 and none of them does. Floors of 20,000 and more are hardly met within the budget: the "
      + "pass waits until the view is over it, so the two highest differ little. `countSkips` is `\"whenGrown\"` and "
      + "`maxConsecutiveSkips` the default of 3; with `\"every\"` the views are the same, and each session ends in the "
      + "error under one of the floors. A floor mends a target that is too high and does not replace a lower one, which "
      + "costs less and retains less.",
    floors
  ),
  with_(
    "meters",
    "recorded",
    "Meters and thresholds",
    "`contextSimple` with each meter, where the provider counts as the estimator does (1.0), where it counts 30 % more "
      + "(1.3), and where it counts twice as much (2.0). A budget of 45,000 tokens. What is freed is sized in prices, or, "
      + "where it says so and with `calibrated` and `recommended`, in the tokens of the provider: then the target is what it "
      + "says, whatever the provider counts. A target in prices keeps more and rewrites more often.",
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
