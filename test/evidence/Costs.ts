/** What policies cost, by session, preset, window and meter: parts of docs/evidence.md. */
import * as Policy from "effect-compaction/Policy"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Effect from "effect/Effect"
import * as Play from "./Play.ts"
import { dollars, type Lines, number, percent, table, times } from "./Text.ts"

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
  "said",
  "in bodies",
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
  percent(all.said),
  percent(all.bodies),
  times(all.cost / all.optimum)
]

/** The three policies of the seed's comparison, session by session and together. */
const three = { contextSimple, contextSimpleSummary, recommended }

export const side = (subjects: ReadonlyArray<Play.Subject>, world: Play.World): Effect.Effect<Lines> =>
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

export const budget = { samples: { maxTokens: 16_000 }, recorded: { maxTokens: 45_000 } }

/** The presets over the same sessions. */
export const presets = (subjects: ReadonlyArray<Play.Subject>, world: Play.World): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const base = Play.total(yield* play(subjects, contextSimple, world))
    const rows: Array<Lines> = []
    for (const [name, preset] of Object.entries<Policy.Policy>(Policy.presets)) {
      const all = Play.total(yield* play(subjects, preset, world))
      rows.push([...row(name, all, base), dollars(all.summaryCost), number(all.overBudget), number(all.violations)])
    }
    return table([...titles, "summaries $", "over budget", "violations"], rows)
  })

export const windows = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
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

export const meters = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
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
        "cost $"
      ],
      rows
    )
  })

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** What was read from the cache by the first request, and by each that was billed a tenth less than the one before. */
export const heads = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
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
