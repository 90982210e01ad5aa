/** What a clear floor is worth: the part of docs/evidence.md about `clearAtLeast`. */
import * as Policy from "effect-compaction/Policy"
import * as Effect from "effect/Effect"
import * as Play from "./Play.ts"
import { dollars, type Lines, number, table } from "./Text.ts"

const { contextSimple } = Policy.presets

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

export const floors = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
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
        dollars(off.cost),
        dollars(highest.cost)
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
          "over budget"
        ],
        rows
      ),
      ...table(["goal", "sessions"], [
        ...floorGoals.map(([text, isMet]) => [text, of(shown, isMet)]),
        ["all of these at once", of(shown, isAllMet)]
      ]),
      "The same at other targets, in sessions; cost $ over all of them:",
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
