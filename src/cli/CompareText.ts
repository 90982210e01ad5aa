/**
 * A comparison as text: a line of totals for each policy.
 *
 * @since 0.1.0
 */
import type * as Compare from "./Compare.ts"
import type * as Paint from "./Paint.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

const { count, number } = Table

/** Dollars, to a hundredth of a cent: sessions cost cents as well as hundreds of dollars. */
export const dollars = (value: number): string => `$${value.toFixed(value < 1 ? 4 : 2)}`

const percent = (share: number): string => `${(100 * share).toFixed(1)}%`

/** What of the totals is shown, here and in the report; all of it is in the JSON. */
export const columns: ReadonlyArray<{
  readonly key: keyof Compare.Totals
  readonly title: string
  readonly text: (value: number) => string
}> = [
  { key: "cost", title: "cost", text: dollars },
  { key: "boundaries", title: "boundaries", text: number },
  { key: "cacheRead", title: "cache read", text: number },
  { key: "cacheWrite", title: "cache write", text: number },
  { key: "fresh", title: "fresh", text: number },
  { key: "output", title: "output", text: number },
  { key: "waste", title: "waste", text: number },
  { key: "cacheReadShare", title: "read share", text: percent },
  { key: "retained", title: "retained", text: percent },
  { key: "judged", title: "judged", text: percent },
  { key: "summaryCost", title: "summaries", text: dollars },
  { key: "bodies", title: "in bodies", text: percent },
  { key: "reuse", title: "reuse", text: percent },
  { key: "reuseOfTail", title: "of the tail", text: percent },
  { key: "reuseOfRandom", title: "of random", text: percent },
  { key: "near", title: "near", text: percent },
  { key: "words", title: "words", text: percent },
  { key: "overBudget", title: "over budget", text: number },
  { key: "violations", title: "violations", text: number }
]

/** Renders a comparison, without a line break at its end. */
export const render = ({ report }: Compare.Comparison, paint: Paint.Paint): string => {
  const shown = columns.filter(({ key }) => report.policies.some(({ totals }) => totals[key] !== null))
  const [heading = "", ...lines] = Table.lines(
    [{ title: "policy", align: "left" }, ...shown.map(({ title }) => ({ title, align: "right" as const }))],
    report.policies.map(({ policy, totals }) => [
      policy,
      ...shown.map(({ key, text }) => {
        const value = totals[key]
        return value === null ? "" : text(value)
      })
    ])
  )
  return [
    `${paint.bold(Shown.line(report.file))}, ${count(report.requests, "request")}`,
    "",
    paint.bold(heading),
    ...lines
  ].join("\n")
}
