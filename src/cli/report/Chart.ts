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

/** The width of a chart that takes the whole page. */
const wide = 1_240

/** What the script of the page must know to place the cursor. */
export const geometry = { width, wide, height, left, right, top, bottom }

/** One value a request; areas stand on one another, in their order. */
interface Series {
  readonly name: string
  /** The class of its colour. */
  readonly colour: string
  readonly values: ReadonlyArray<number>
  /** What the script of a page knows it by, to show or hide it; its own boundaries go with it. */
  readonly tag?: string
  readonly marks?: ReadonlyArray<number>
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
  /** What its values are, for a script that gives it another scale. */
  readonly unit?: "tokens" | "dollars" | "share"
  /** Whether it takes the whole width of the page. */
  readonly isWide?: boolean
  /** Whether the page shows elsewhere which colour is which. */
  readonly hasNoLegend?: boolean
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

/** What a script needs to know of a path. */
const tagOf = ({ marks = [], tag, values }: Series): string =>
  tag === undefined
    ? ""
    : ` data-tag="${tag}" data-most="${values.reduce((a, b) => Math.max(a, b), 0)}" data-marks="${marks.join(" ")}"`

/** Renders a chart with its legend. */
export const render = (chart: Chart): string => {
  const { hasNoLegend = false, isWide = false, kind, limit, marks, series, text, title, unit } = chart
  const requests = series[0]?.values.length ?? 0
  const across = isWide ? wide : width
  const tops = kind === "areas" ? sumsOf(series) : series.map(({ values }) => values)
  const most = tops.reduce((value, each) => each.reduce((a, b) => Math.max(a, b), value), limit?.value ?? 0)
  const max = chart.max ?? roundUp(most)
  const x = (request: number): number => left + ((across - left - right) * request) / Math.max(1, requests)
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
      `<line class="grid" x1="${left}" x2="${across - right}" y1="${point(y(value))}" y2="${point(y(value))}"/>`
      + `<text class="tick level" x="${left - 6}" y="${point(y(value) + 4)}" text-anchor="end">${
        Html.text(text(value))
      }</text>`
    ),
    ...[1, Math.ceil(requests / 2), requests].filter((at, index, all) => at > 0 && all.indexOf(at) === index).map((
      at
    ) =>
      `<text class="tick" x="${point(at === requests ? x(at) : x(at - 0.5))}" y="${height - 6}" text-anchor="${
        at === requests ? "end" : "middle"
      }">${at}</text>`
    ),
    "<g class=\"plot\">",
    ...tops.map((values, at) =>
      kind === "areas"
        ? `<path class="area ${series[at]?.colour}" d="${steps(values)}${backwards(tops[at - 1])}"/>`
        : `<path class="line ${series[at]?.colour}"${series[at] && tagOf(series[at])} d="${steps(values)}"/>`
    ),
    ...marks.map((at) =>
      `<path class="mark" d="M${point(x(at - 1) - 4)} ${top - 8}h8l-4 6zm4 6V${
        height - bottom
      }"><title>boundary at request ${at}</title></path>`
    ),
    ...(limit === undefined ? [] : [
      `<line class="limit" x1="${left}" x2="${across - right}" y1="${point(y(limit.value))}" y2="${
        point(y(limit.value))
      }"/>`
    ]),
    "</g>",
    "<g class=\"own-marks\"></g>",
    `<line class="cursor" x1="${left}" x2="${left}" y1="${top}" y2="${height - bottom}"/>`
  ]
  const legend = [
    ...(hasNoLegend ? [] : series).map(({ colour, name }) =>
      `<span><i class="key ${colour}"></i>${Html.text(name)}</span>`
    ),
    ...(limit === undefined ? [] : [`<span><i class="key limit-key"></i>${Html.text(limit.name)}</span>`]),
    ...(marks.length === 0 ? [] : [`<span><i class="key mark-key"></i>boundary</span>`])
  ]
  return `<figure><figcaption><b>${Html.text(title)}</b>${legend.join("")}</figcaption>`
    + `<svg viewBox="0 0 ${across} ${height}"${
      unit === undefined ? "" : ` data-unit="${unit}" data-max="${max}" data-limit="${limit?.value ?? 0}"`
    } role="img" aria-label="${Html.text(title)}, over ${requests} requests">${pieces.join("")}</svg></figure>`
}

/** A point of a scatter. */
interface Dot {
  readonly name: string
  readonly colour: string
  readonly tag: string
  readonly x: number
  readonly y: number
}

/** Renders points over two scales that begin at 0; `y` is a share. */
export const scatter = (
  { dots, title, x: across, y: up }: {
    readonly title: string
    readonly x: { readonly name: string; readonly text: (value: number) => string }
    readonly y: { readonly name: string }
    readonly dots: ReadonlyArray<Dot>
  }
): string => {
  const maxX = roundUp(dots.reduce((most, dot) => Math.max(most, dot.x), 0))
  // The scale begins at the quarter below the lowest point.
  const least = Math.floor(4 * dots.reduce((low, dot) => Math.min(low, dot.y), 0.75)) / 4
  const floor = height - bottom - 12
  const x = (value: number): number => left + (width - left - right - 90) * value / maxX
  const y = (value: number): number => floor - (floor - top) * (value - least) / (1 - least)
  const shares = [0, 0.25, 0.5, 0.75, 1]
  // A name that would lie on another moves down.
  const placed: Array<{ readonly x: number; readonly y: number }> = []
  const nameAt = (dot: Dot): { readonly x: number; readonly y: number } => {
    const at = { x: x(dot.x) + 8, y: y(dot.y) + 4 }
    while (placed.some((other) => Math.abs(other.x - at.x) < 110 && Math.abs(other.y - at.y) < 11)) at.y += 3
    placed.push(at)
    return at
  }
  const pieces = [
    ...shares.map((share) => {
      const level = y(least + share * (1 - least))
      return `<line class="grid" x1="${left}" x2="${width - right}" y1="${point(level)}" y2="${point(level)}"/>`
        + `<text class="tick" x="${left - 6}" y="${point(level + 4)}" text-anchor="end">${
          Math.round(100 * (least + share * (1 - least)))
        }%</text><text class="tick" x="${point(x(share * maxX))}" y="${floor + 14}" text-anchor="middle">${
          Html.text(across.text(share * maxX))
        }</text>`
    }),
    `<text class="tick" x="${width - right}" y="${height - 3}" text-anchor="end">${Html.text(across.name)} →</text>`,
    ...dots.map((dot) => {
      const name = nameAt(dot)
      return `<g class="dot" data-tag="${dot.tag}" data-x="${dot.x}" data-y="${dot.y}"><title>${
        Html.text(`${dot.name}: ${across.text(dot.x)}, ${Math.round(1000 * dot.y) / 10}% ${up.name}`)
      }</title><circle class="${dot.colour}" cx="${point(x(dot.x))}" cy="${point(y(dot.y))}" r="5"/>`
        + `<text class="tick" x="${point(name.x)}" y="${point(name.y)}">${Html.text(dot.name)}</text></g>`
    })
  ]
  return `<figure class="scatter"><figcaption><b>${Html.text(title)}</b></figcaption>`
    + `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${Html.text(title)}">${
      pieces.join("")
    }</svg></figure>`
}
