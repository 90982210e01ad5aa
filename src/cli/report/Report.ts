/**
 * Comparisons as one page that needs nothing else: no network, no file beside it.
 *
 * For each session it has a table of totals, cheapest first, in which policies are chosen, and one set of charts in which
 * those that are chosen lie over one another: what every request occupies, what of it is paid again, what the session has
 * cost so far and what is retained; and what is kept beside what it costs. For one policy and one request it has the list of
 * the entries, what has become of them and why.
 *
 * @since 0.1.0
 */
import type * as Compare from "../Compare.ts"
import * as CompareText from "../CompareText.ts"
import * as Shown from "../Shown.ts"
import * as Story from "../Story.ts"
import * as Table from "../Table.ts"
import type * as Trace from "../Trace.ts"
import * as Chart from "./Chart.ts"
import * as Html from "./Html.ts"
import * as Script from "./Script.ts"
import * as Style from "./Style.ts"
import * as Widgets from "./Widgets.ts"

/** What the comparisons were made under, as it was asked for. */
export interface World {
  readonly cache: string
  readonly price: string
  readonly summarizer: string
  readonly probes: number
}

/** A policy that was played, with its trace, the name it goes by in the page, and the number of its colour. */
interface Line {
  readonly played: Compare.Report["policies"][number]
  readonly trace: Trace.Trace
  readonly name: string
  readonly at: number
}

/** So many have a colour of their own; later ones begin again, with a broken line. */
const colours = 11

/** How many are drawn before anybody chooses. */
const drawn = 4

const short = (value: number): string => value >= 1_000 ? `${Table.number(value / 1_000)}k` : Table.number(value)

const dollars = (value: number): string => `$${value < 10 ? value.toFixed(2) : Table.number(Math.round(value))}`

const percent = (value: number): string => `${Math.round(100 * value)}%`

const colourOf = ({ at }: Line): string => `p${at % colours}${at >= colours ? " broken" : ""}`

/** The cost of the session up to each request, summaries included. */
const soFar = ({ played: { rows } }: Line): ReadonlyArray<number> => {
  let sum = 0
  return rows.map(({ cost, summaryCost }) => sum += cost + summaryCost)
}

/** The share of the facts in view, request by request; empty where it was not measured. */
const retained = ({ played: { rows } }: Line): ReadonlyArray<number> => {
  const shares = rows.flatMap(({ retention }) => retention === null ? [] : [retention.retained])
  return shares.length < rows.length ? [] : shares
}

/** The share of the facts that stays in view, or else of the conversation's tokens that the last view holds. */
const keptOf = ({ played: { rows, totals }, trace }: Line): number => {
  if (totals.retained !== null) return totals.retained
  const whole = trace.entries.reduce((sum, { isSaid, tokens }) => sum + (isSaid ? tokens : 0), 0)
  return whole === 0 ? 0 : Math.min(1, (rows.at(-1)?.viewTokens ?? 0) / whole)
}

const charts = (lines: ReadonlyArray<Line>): string => {
  const chart = (
    title: string,
    unit: NonNullable<Chart.Chart["unit"]>,
    text: Chart.Chart["text"],
    valuesOf: (line: Line) => ReadonlyArray<number>,
    limit?: Chart.Chart["limit"]
  ) =>
    Chart.render({
      title,
      kind: "lines",
      series: lines.map((line) => ({
        name: line.name,
        colour: colourOf(line),
        values: valuesOf(line),
        tag: String(line.at),
        marks: line.played.rows.filter(({ boundary }) => boundary !== null).map(({ request }) => request)
      })),
      marks: [],
      text,
      unit,
      hasNoLegend: true,
      ...(limit === undefined ? undefined : { limit })
    })
  const budgets = new Set(lines.map(({ played: { budget } }) => budget))
  const [budget] = budgets
  const isOne = budgets.size === 1 && budget !== undefined
  const isMeasured = lines.every((line) => retained(line).length > 0)
  return [
    chart(
      "Occupied tokens",
      "tokens",
      short,
      ({ played }) => played.rows.map(({ viewTokens }) => viewTokens),
      isOne ? { name: "budget", value: budget } : undefined
    ),
    chart(
      "Billed input that was not read from the cache",
      "tokens",
      short,
      ({ played }) => played.rows.map(({ fresh, written }) => fresh + written)
    ),
    chart("Cost so far", "dollars", dollars, soFar),
    ...(isMeasured ? [chart("Retained facts", "share", percent, retained)] : []),
    Chart.scatter({
      title: isMeasured ? "What is kept beside what it costs" : "What the last view holds beside what it costs",
      x: { name: "cost", text: dollars },
      y: { name: isMeasured ? "of the facts in view, on average" : "of the conversation" },
      dots: lines.map((line) => ({
        name: line.name,
        colour: colourOf(line),
        tag: String(line.at),
        x: line.played.totals.cost,
        y: keptOf(line)
      }))
    })
  ].join("")
}

/** What the script of the page reads. */
const dataOf = (lines: ReadonlyArray<Line>): string =>
  Html.json(lines.map((line) => {
    const { name, played: { policy, rows }, trace: { changes, entries } } = line
    const sums = soFar(line)
    return {
      policy,
      name: Shown.line(name),
      rows: rows.map((row, at) => [
        row.viewTokens,
        row.cached,
        row.written,
        row.fresh,
        row.output,
        row.waste,
        row.cost,
        sums[at],
        row.retention?.retained ?? null,
        Shown.line(Story.saidOf(row))
      ]),
      entries: entries.map(({ role, seq, tokens, what }) => [seq, role, Shown.line(what), tokens]),
      changes: changes.map(({ request, seq, state, tokens, why }) => [seq, request, state, tokens, Shown.line(why)])
    }
  }))

const totalsTable = (lines: ReadonlyArray<Line>, id: string): string => {
  const shown = CompareText.columns.filter(({ key }) => lines.some(({ played: { totals } }) => totals[key] !== null))
  return `<table class="totals"><thead><tr><th class="text">policy, cheapest first</th>${
    shown.map(({ title }) => `<th>${title}</th>`).join("")
  }</tr></thead><tbody>${
    lines.map((line, place) => {
      const { played: { policy, totals } } = line
      return `<tr data-policy="${Html.text(policy)}" data-tag="${line.at}"><th scope="row" title="${
        Html.text(policy)
      }">`
        + `<label><input type="checkbox" id="${id}-${line.at}"${place < drawn ? " checked" : ""}>`
        + `<i class="key ${colourOf(line)}"></i>${Html.text(line.name)}</label></th>${
          shown.map(({ key, text }) => {
            const value = totals[key]
            return `<td>${value === null ? "" : Html.data(key, value, text(value))}</td>`
          }).join("")
        }</tr>`
    }).join("")
  }</tbody></table>`
}

const readings = ["view", "cached", "written", "fresh", "output", "waste", "cost", "so far", "retained"]

const moment = (lines: ReadonlyArray<Line>, id: string): string => {
  const requests = lines[0]?.played.rows.length ?? 0
  return `<div class="chosen"><label for="${id}-request">Request</label>`
    + `<input type="range" id="${id}-request" min="1" max="${requests}" value="${requests}">`
    + `<output for="${id}-request"><span>request <data data-key="request" value=""></data></span></output></div>`
    + `<table class="readings"><thead><tr><th class="text">at this request</th>${
      readings.map((title) => `<th>${title}</th>`).join("")
    }<th class="text"></th></tr></thead><tbody></tbody></table>`
    + `<details><summary>Entries at this request</summary><p><label>under <select>${
      lines.map(({ at, name }) => `<option value="${at}">${Html.text(name)}</option>`).join("")
    }</select></label> <label><input type="checkbox" class="only"> only those that are not whole</label></p>${
      Widgets.list("Entries")
    }</details>`
}

const session = ({ report, traces }: Compare.Comparison, at: number, files: ReadonlyArray<string>): string => {
  const id = `s${at}`
  const policies = report.policies.map(({ policy }) => policy)
  const lines = report.policies
    .map((played, index): Line => ({
      played,
      trace: traces[index] ?? { entries: [], changes: [] },
      name: Html.nameOf(played.policy, policies),
      at: index
    }))
    .sort((a, b) => a.played.totals.cost - b.played.totals.cost)
  return `<article id="${id}" class="comparison" data-file="${Html.text(report.file)}"><h2 title="${
    Html.text(report.file)
  }">${Html.text(Html.nameOf(report.file, files))}</h2><p>${Table.count(report.requests, "request")}${
    report.window === null ? "" : `, window ${Table.count(report.window, "token")}`
  }. Choose what is drawn by its box.</p>${totalsTable(lines, id)}${
    report.requests === 0 ? "" : `<div class="charts">${charts(lines)}</div>${moment(lines, id)}`
      + `<script type="application/json">${dataOf([...lines].sort((a, b) => a.at - b.at))}</script>`
  }</article>`
}

/** Renders the page. */
export const render = (comparisons: ReadonlyArray<Compare.Comparison>, world: World): string => {
  const facts = world.probes === 0 ? "no facts planted" : `${world.probes} facts planted`
  const files = comparisons.map(({ report }) => report.file)
  return Html.page({
    title: "What policies cost and keep",
    intro:
      `Recorded sessions, played request by request; nothing was sent. Cache: ${world.cache}. Prices: ${world.price}. `
      + `Summaries: ${world.summarizer}. ${facts}.`,
    links: comparisons.length < 2
      ? []
      : files.map((file, at) => ({ to: `#s${at}`, text: Html.nameOf(file, files) })),
    body: comparisons.map((comparison, at) => session(comparison, at, files)).join("\n"),
    css: Style.css,
    script: `${Widgets.script}${Script.script}`
  })
}
