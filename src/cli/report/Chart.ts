/**
 * Charts over the requests of a session, as SVG. A request is a step as wide as any other.
 *
 * @since 0.1.0
 */
import * as Html from "./Html.ts"

/** The drawing and the room for its axes, in units of the picture. */
const width = 640
const height = 170
const left = 58
const right = 8
const top = 14
const bottom = 22

/** What the script of the page must know to place the cursor. */
export const geometry = { width, left, right }

/** One value a request; areas stand on one another, in their order. */
interface Series {
  readonly name: string
  /** The class of its colour. */
  readonly colour: string
  readonly values: ReadonlyArray<number>
}

export interface Chart {
  readonly title: string
  /** Stacked areas, or one line for each series. */
  readonly kind: "areas" | "lines"
  readonly series: ReadonlyArray<Series>
  /** The requests, from 1, that are marked. */
  readonly marks: ReadonlyArray<number>
  /** A level that is drawn across. */
  readonly limit?: { readonly name: string; readonly value: number }
  /** The top of the scale where it is not the largest value. */
  readonly max?: number
  readonly text: (value: number) => string
}

/** The next round number: 1, 2, 2.5 or 5 times a power of ten. */
const roundUp = (value: number): number => {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= value * (1 - 1e-9)) ?? 10
  return step * power
}

const point = (value: number): string => String(Math.round(value * 10) / 10)

const sumsOf = (series: ReadonlyArray<Series>): ReadonlyArray<ReadonlyArray<number>> => {
  let below: ReadonlyArray<number> = []
  return series.map(({ values }) => below = values.map((value, at) => value + (below[at] ?? 0)))
}

/** Renders a chart with its legend. */
export const render = (chart: Chart): string => {
  const { kind, limit, marks, series, text, title } = chart
  const requests = series[0]?.values.length ?? 0
  const tops = kind === "areas" ? sumsOf(series) : series.map(({ values }) => values)
  const most = tops.reduce((value, each) => each.reduce((a, b) => Math.max(a, b), value), limit?.value ?? 0)
  const max = chart.max ?? roundUp(most)
  const x = (request: number): number => left + ((width - left - right) * request) / Math.max(1, requests)
  const y = (value: number): number => height - bottom - ((height - top - bottom) * value) / max
  const steps = (values: ReadonlyArray<number>): string =>
    values.map((value, at) => `${at === 0 ? "M" : "L"}${point(x(at))} ${point(y(value))}H${point(x(at + 1))}`).join("")
  const backwards = (values: ReadonlyArray<number> | undefined): string =>
    values === undefined
      ? `V${point(y(0))}H${point(x(0))}Z`
      : `${values.map((value, at) => `L${point(x(at + 1))} ${point(y(value))}H${point(x(at))}`).reverse().join("")}Z`
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => share * max)
  const pieces = [
    ...ticks.map((value) =>
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${point(y(value))}" y2="${point(y(value))}"/>`
      + `<text class="tick" x="${left - 6}" y="${point(y(value) + 4)}" text-anchor="end">${
        Html.text(text(value))
      }</text>`
    ),
    ...[1, Math.ceil(requests / 2), requests].filter((at, index, all) => at > 0 && all.indexOf(at) === index).map((
      at
    ) => `<text class="tick" x="${point(x(at - 0.5))}" y="${height - 6}" text-anchor="middle">${at}</text>`),
    ...tops.map((values, at) =>
      kind === "areas"
        ? `<path class="area ${series[at]?.colour}" d="${steps(values)}${backwards(tops[at - 1])}"/>`
        : `<path class="line ${series[at]?.colour}" d="${steps(values)}"/>`
    ),
    ...marks.map((at) =>
      `<path class="mark" d="M${point(x(at - 1) - 4)} ${top - 8}h8l-4 6zm4 6V${
        height - bottom
      }"><title>boundary at request ${at}</title></path>`
    ),
    ...(limit === undefined ? [] : [
      `<line class="limit" x1="${left}" x2="${width - right}" y1="${point(y(limit.value))}" y2="${
        point(y(limit.value))
      }"/>`
    ]),
    `<line class="cursor" x1="${left}" x2="${left}" y1="${top}" y2="${height - bottom}"/>`
  ]
  const legend = [
    ...series.map(({ colour, name }) => `<span><i class="key ${colour}"></i>${Html.text(name)}</span>`),
    ...(limit === undefined ? [] : [`<span><i class="key limit-key"></i>${Html.text(limit.name)}</span>`]),
    ...(marks.length === 0 ? [] : [`<span><i class="key mark-key"></i>boundary</span>`])
  ]
  return `<figure><figcaption><b>${Html.text(title)}</b>${legend.join("")}</figcaption>`
    + `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${Html.text(title)}, over ${requests} requests">${
      pieces.join("")
    }</svg></figure>`
}
