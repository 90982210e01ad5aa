/**
 * Comparisons as one page that needs nothing else: no network, no file beside it.
 *
 * For each session it has a table of totals, and for each policy what every request occupies, what it is billed, what the
 * session has cost so far and what is retained; for any request the list of its entries, what has become of them and why.
 *
 * @since 0.1.0
 */
import type * as Compare from "../Compare.ts"
import * as CompareText from "../CompareText.ts"
import * as Shown from "../Shown.ts"
import * as Table from "../Table.ts"
import type * as Trace from "../Trace.ts"
import * as Chart from "./Chart.ts"
import * as Html from "./Html.ts"
import * as Script from "./Script.ts"
import * as Style from "./Style.ts"

/** What the comparisons were made under, as it was asked for. */
export interface World {
  readonly cache: string
  readonly price: string
  readonly summarizer: string
  readonly probes: number
}

type Played = Compare.Report["policies"][number]
type Row = Played["rows"][number]

const short = (value: number): string => value >= 1_000 ? `${Table.number(value / 1_000)}k` : Table.number(value)

const dollars = (value: number): string => `$${value < 10 ? value.toFixed(2) : Table.number(Math.round(value))}`

/** What a request did, in words. */
const whatOf = ({ boundary, error, infeasible, skipped }: Row): string => {
  const words: Array<string> = []
  if (boundary !== null) {
    const { freed, level, removed, stubbed, truncated } = boundary
    words.push(
      `boundary at rung ${level}: freed ${Table.count(freed, "token")}; ${Table.number(removed)} removed, `
        + `${Table.number(truncated)} truncated, ${Table.number(stubbed)} stubbed`
    )
  }
  if (skipped !== null) {
    words.push(`refused: would free ${Table.number(skipped.freed)} of the ${Table.number(skipped.required)} asked for`)
  }
  if (infeasible !== null) words.push(`${Table.count(infeasible.over, "token")} over the budget`)
  if (error !== undefined) words.push(`not sent: ${error.message}`)
  return words.join("; ")
}

/** The cost of the session up to each request, summaries included. */
const soFar = (rows: ReadonlyArray<Row>): ReadonlyArray<number> => {
  let sum = 0
  return rows.map(({ cost, summaryCost }) => sum += cost + summaryCost)
}

const charts = ({ budget, rows }: Played): string => {
  const marks = rows.filter(({ boundary }) => boundary !== null).map(({ request }) => request)
  const retained = rows.flatMap(({ retention }) => retention === null ? [] : [retention.retained])
  return [
    Chart.render({
      title: "Occupied tokens",
      kind: "lines",
      series: [{ name: "view", colour: "line-key", values: rows.map(({ viewTokens }) => viewTokens) }],
      limit: { name: "budget", value: budget },
      marks,
      text: short
    }),
    Chart.render({
      title: "Billed input tokens",
      kind: "areas",
      series: [
        { name: "cached", colour: "read", values: rows.map(({ cached }) => cached) },
        { name: "written", colour: "write", values: rows.map(({ written }) => written) },
        { name: "fresh", colour: "fresh", values: rows.map(({ fresh }) => fresh) }
      ],
      marks,
      text: short
    }),
    Chart.render({
      title: "Cost so far",
      kind: "lines",
      series: [{ name: "dollars", colour: "line-key", values: soFar(rows) }],
      marks,
      text: dollars
    }),
    retained.length < rows.length
      ? `<figure><figcaption><b>Retained facts</b></figcaption><p>Not measured: ${
        retained.length === 0 ? "no facts were planted (--probes)." : "not every request was sent."
      }</p></figure>`
      : Chart.render({
        title: "Retained facts",
        kind: "lines",
        series: [{ name: "share in view", colour: "line-key", values: retained }],
        marks,
        max: 1,
        text: (value) => `${Math.round(100 * value)}%`
      })
  ].join("")
}

/** What the script of the page reads. */
const dataOf = ({ rows }: Played, { changes, entries }: Trace.Trace): string => {
  const sums = soFar(rows)
  return Html.json({
    rows: rows.map((row, at) => ({
      viewTokens: row.viewTokens,
      cached: row.cached,
      written: row.written,
      fresh: row.fresh,
      output: row.output,
      waste: row.waste,
      cost: row.cost,
      costSoFar: sums[at],
      retained: row.retention?.retained ?? null,
      what: Shown.line(whatOf(row))
    })),
    entries: entries.map(({ role, seq, tokens, what }) => [seq, role, Shown.line(what), tokens]),
    changes: changes.map(({ request, seq, state, tokens, why }) => [seq, request, state, tokens, Shown.line(why)])
  })
}

const readings: ReadonlyArray<readonly [key: string, title: string]> = [
  ["request", "request"],
  ["viewTokens", "view"],
  ["cached", "cached"],
  ["written", "written"],
  ["fresh", "fresh"],
  ["output", "output"],
  ["waste", "waste"],
  ["cost", "cost"],
  ["costSoFar", "so far"],
  ["retained", "retained"]
]

const policySection = (played: Played, trace: Trace.Trace, id: string): string => {
  const { policy, rows, totals } = played
  const shown = readings.filter(([key]) => key !== "retained" || totals.retained !== null)
  return `<section id="${id}" data-policy="${Html.text(policy)}"><h3>${Html.text(policy)}</h3>`
    + `<div class="charts">${charts(played)}</div>`
    + `<div class="chosen"><label for="${id}-request">Request</label>`
    + `<input type="range" id="${id}-request" min="1" max="${rows.length}" value="${rows.length}">`
    + `<output for="${id}-request">${
      shown.map(([key, title]) => `<span>${title} <data data-key="${key}" value=""></data></span>`).join("")
    }<b></b></output></div>`
    + `<details><summary>Entries at this request</summary>`
    + `<p><label><input type="checkbox"> only those that are not whole</label></p>`
    + `<div class="entries" tabindex="0" role="region" aria-label="Entries under ${Html.text(policy)}">`
    + `<table><thead><tr><th>entry</th><th class="text">role</th><th class="text">what</th><th>tokens whole</th>`
    + `<th>tokens now</th><th class="text">state</th><th class="text">why</th></tr></thead><tbody class="list"></tbody></table>`
    + `</div></details><script type="application/json">${dataOf(played, trace)}</script></section>`
}

const totalsTable = ({ policies }: Compare.Report, id: string): string => {
  const shown = CompareText.columns.filter(({ key }) => policies.some(({ totals }) => totals[key] !== null))
  return `<div class="wide"><table class="totals"><thead><tr><th class="text">policy</th>${
    shown.map(({ title }) => `<th>${title}</th>`).join("")
  }</tr></thead><tbody>${
    policies.map(({ policy, totals }, at) =>
      `<tr data-policy="${Html.text(policy)}"><th scope="row"><a href="#${id}p${at}">${Html.text(policy)}</a></th>${
        shown.map(({ key, text }) => {
          const value = totals[key]
          return `<td>${value === null ? "" : Html.data(key, value, text(value))}</td>`
        }).join("")
      }</tr>`
    ).join("")
  }</tbody></table></div>`
}

const session = ({ report, traces }: Compare.Comparison, at: number): string => {
  const id = `s${at}`
  return `<article id="${id}" data-file="${Html.text(report.file)}"><h2>${Html.text(report.file)}</h2><p>${
    Table.count(report.requests, "request")
  }${report.window === null ? "" : `, window ${Table.count(report.window, "token")}`}</p>${totalsTable(report, id)}${
    report.requests === 0 ? "" : report.policies.map((played, index) => {
      const trace = traces[index] ?? { entries: [], changes: [] }
      return policySection(played, trace, `${id}p${index}`)
    }).join("")
  }</article>`
}

/** Renders the page. */
export const render = (comparisons: ReadonlyArray<Compare.Comparison>, world: World): string => {
  const facts = world.probes === 0 ? "no facts planted" : `${world.probes} facts planted`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>What policies cost and keep</title><link rel="icon" href="data:,"><style>${Style.css}</style></head><body>
<h1>What policies cost and keep</h1>
<p>Recorded sessions, played request by request; nothing was sent. Cache: ${Html.text(world.cache)}. Prices: ${
    Html.text(world.price)
  }. Summaries: ${Html.text(world.summarizer)}. ${facts}.</p>
<nav aria-label="Sessions">${
    comparisons.map(({ report }, at) => `<a href="#s${at}">${Html.text(report.file)}</a>`).join("")
  }</nav>
${comparisons.map(session).join("\n")}
<script>${Script.script}</script></body></html>
`
}
