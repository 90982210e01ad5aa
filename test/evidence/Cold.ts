/** What it is worth to know that a prefix is cold anyway: the part of docs/evidence.md about `cacheLife`. */
import * as Policy from "effect-compaction/Policy"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Play from "./Play.ts"
import { dollars, type Lines, percent, table, times } from "./Text.ts"

const { recommended } = Policy.presets

/** How long Anthropic keeps a prefix, in milliseconds. */
const life = 300_000

const policies: ReadonlyArray<readonly [name: string, policy: Policy.Policy]> = [
  ["`recommended`", recommended],
  ["`cacheLife`, `whenCold` 0.7 → 0.43", {
    ...recommended,
    cacheLife: Duration.minutes(5),
    whenCold: { threshold: 0.7, target: 0.43 }
  }],
  ["`whenCold` 0.5 → 0.3", {
    ...recommended,
    cacheLife: Duration.minutes(5),
    whenCold: { threshold: 0.5, target: 0.3 }
  }],
  ["`whenCold` 0.5 → 0.3, `\"auto\"`", {
    ...recommended,
    cacheLife: Duration.minutes(5),
    whenCold: { threshold: 0.5, target: 0.3 },
    clearAtLeast: "auto"
  }]
]

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** Sessions whose files say when what was written, and that paused for longer than a prefix is kept. */
const paused = (subjects: ReadonlyArray<Play.Subject>) =>
  subjects.filter((subject) => Array.from(Play.timesOf(subject).values()).some((gap) => gap > life))

export const sessions = (subjects: ReadonlyArray<Play.Subject>): Effect.Effect<Lines> =>
  Effect.gen(function*() {
    const rows: Array<Lines> = []
    const sums = policies.map(() => ({ cost: 0, optimum: 0, boundaries: 0, most: 0, retained: [] as Array<number> }))
    for (const subject of paused(subjects)) {
      const played = yield* Effect.forEach(policies, ([, policy]) =>
        Play.figures(subject, policy, { maxTokens: 45_000, isTimed: true }))
      const pauses = Array.from(Play.timesOf(subject).values()).filter((gap) =>
        gap > life
      ).length
      rows.push([
        subject.name,
        String(pauses),
        dollars(played[0]!.cost),
        ...played.slice(1).map(({ cost }) => times(cost / played[0]!.cost))
      ])
      for (const [at, each] of played.entries()) {
        const sum = sums[at]!
        sum.cost += each.cost
        sum.optimum += each.optimum
        sum.boundaries += each.boundaries
        sum.most = Math.max(sum.most, each.cost / played[0]!.cost)
        sum.retained.push(each.retained ?? 1)
      }
    }
    return [
      ...table(
        ["policy", "cost", "of `recommended`", "the worst session", "of the optimum", "boundaries", "facts"],
        policies.map(([name], at) => {
          const { boundaries, cost, most, optimum, retained } = sums[at]!
          return [
            name,
            dollars(cost),
            times(cost / sums[0]!.cost),
            times(most),
            times(cost / optimum),
            String(boundaries),
            percent(mean(retained))
          ]
        })
      ),
      ...table(["session", "pauses", "`recommended`, $", ...policies.slice(1).map(([name]) => name)], rows)
    ]
  })
