/**
 * A replay as text: the budget, what is protected, a table of what happened, totals.
 *
 * @since 0.1.0
 */
import type * as Budget from "../Budget.ts"
import type * as Session from "../format/Session.ts"
import * as Settings from "../Settings.ts"
import * as TokenMeter from "../TokenMeter.ts"
import type * as Paint from "./Paint.ts"
import type * as Replay from "./Replay.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"
import * as Unheld from "./Unheld.ts"

const { count, number, percent } = Table

const sources: { readonly [S in Budget.Budget["source"]]: string } = {
  given: "given",
  window: "from the window",
  model: "from the window of the model",
  fallback: "no window given",
  maxTokens: "capped by max-tokens",
  provider: "named by the provider"
}

/** The window, and step by step the budget that follows from it. */
const budgetLine = (budget: Budget.Budget, settings: Settings.Settings): string => {
  const { maxOutput, outputReserve, window } = settings
  const shown = window === undefined ? [] : [
    `window ${number(window)} − ${outputReserve} × ${
      maxOutput <= window ? `max-output ${number(maxOutput)}` : number(window)
    } − ${number(Settings.reservesOf(settings, window).margin)}`
  ]
  const total = `budget ${number(budget.total)} tokens (${sources[budget.source]})`
  const limit = budget.limit === budget.total
    ? []
    : [`− notice reserve ${number(budget.total - budget.limit)} = ${number(budget.limit)}`]
  return [...shown, total, ...limit].join(" → ").replace(" → −", " −")
}

const triggerLine = (budget: Budget.Budget, settings: Settings.Settings): string =>
  `trigger ${number(Math.ceil(budget.trigger))} (${settings.compactThreshold}), target ${number(budget.target)} `
  + `(${settings.targetUsage})${floorOf(settings)}`

const floorOf = ({ clearAtLeast }: Settings.Settings): string => {
  if (clearAtLeast === null) return ""
  if (clearAtLeast === "auto") return ", a pass must free what pays for its cold cache"
  return clearAtLeast < 1
    ? `, a pass must free ${percent(clearAtLeast, 1)} of the budget`
    : `, a pass must free ${number(clearAtLeast)} tokens`
}

const protectedLine = ({ exemptTools, protectedRecent, protectedToolResults }: Settings.Settings): string => {
  const exempt = exemptTools.length === 0 ? "" : `; never truncated: ${Shown.line(exemptTools.join(", "))}`
  return `protected: the newest ${Math.max(0, protectedToolResults)} tool results, the last ${
    percent(protectedRecent, 1)
  } `
    + `of the conversation, the first and the last human message, open calls, what is pinned${exempt}`
}

const columns: ReadonlyArray<Table.Column> = [
  { title: "request", align: "right" },
  { title: "level", align: "left" },
  { title: "before → after", align: "right" },
  { title: "freed", align: "right" },
  { title: "removed", align: "right" },
  { title: "truncated", align: "right" },
  { title: "stubbed", align: "right" },
  { title: "protected results", align: "right" },
  { title: "protected entries", align: "right" },
  { title: "why", align: "left" }
]

const levelOf = (level: number, { rungs }: Replay.Replay): string => {
  const rung = rungs[level - 1]
  return rung === undefined ? String(level) : `${level} ${rung}`
}

const share = (of: Replay.Boundary["results"]): string => `${number(of.protected)} of ${number(of.of)}`

const aimOf = (boundary: Replay.Boundary, budget: Budget.Budget): string => {
  if (boundary.aim === null) return "whole ladder climbed"
  const aim = `aimed at ${number(boundary.aim)}`
  return boundary.aim === budget.target || boundary.floor === null
    ? aim
    : `${aim}, for no less than ${number(boundary.floor)} is possible`
}

const holdersOf = (infeasible: Replay.Row["infeasible"]): string =>
  (infeasible?.holders ?? []).map(({ seq, tokens }) => `entry ${number(seq)} (${number(tokens)})`).join(", ")

/** Why a request is in the table; empty when it is not. */
const reasonsOf = (row: Replay.Row, before: Replay.Row | undefined, replay: Replay.Replay): ReadonlyArray<string> => {
  const reasons: Array<string> = []
  const boundary = replay.boundaries.get(row.request)
  if (boundary !== undefined) reasons.push(`count ${number(boundary.count)}, ${aimOf(boundary, replay.budget)}`)
  if (row.skipped !== null) {
    const { freed, required, streak } = row.skipped
    reasons.push(
      `refused: would free ${number(freed)} where clear-at-least asks for ${number(required)}, ${streak} in a row`
    )
  }
  // One line while the same entries hold the view: the totals say how many requests it were.
  if (
    row.infeasible !== null &&
    holdersOf(before?.infeasible ?? null) !== holdersOf(row.infeasible)
  ) {
    reasons.push(`infeasible: ${number(row.infeasible.over)} over the budget, held by ${holdersOf(row.infeasible)}`)
  }
  if (row.error !== undefined && (reasons.length > 0 || before?.error?.tag !== row.error.tag)) {
    reasons.push(`not sent: ${row.error.tag}`)
  }
  if (row.violations > 0) {
    reasons.push(count(row.violations, "violation of the wire rules", "violations of the wire rules"))
  }
  return reasons
}

const paintOf = (row: Replay.Row, paint: Paint.Paint): (line: string) => string => {
  if (row.infeasible !== null || row.error !== undefined || row.violations > 0) return paint.red
  return row.skipped === null ? (line) => line : paint.yellow
}

const tableOf = (replay: Replay.Replay, paint: Paint.Paint): ReadonlyArray<string> => {
  const { rows } = replay.report
  const cells: Array<ReadonlyArray<string>> = []
  const paints: Array<(line: string) => string> = [paint.bold]
  rows.forEach((row, at) => {
    const reasons = reasonsOf(row, rows[at - 1], replay)
    if (reasons.length === 0) return
    const { boundary, skipped } = row
    const shares = replay.boundaries.get(row.request)
    cells.push([
      number(row.request),
      boundary === null ? skipped === null ? "" : levelOf(skipped.level, replay) : levelOf(boundary.level, replay),
      boundary === null ? number(row.viewTokens) : `${number(boundary.before)} → ${number(boundary.after)}`,
      boundary === null ? "" : number(boundary.freed),
      boundary === null ? "" : number(boundary.removed),
      boundary === null ? "" : number(boundary.truncated),
      boundary === null ? "" : number(boundary.stubbed),
      shares === undefined ? "" : share(shares.results),
      shares === undefined ? "" : share(shares.entries),
      reasons.join("; ")
    ])
    paints.push(paintOf(row, paint))
  })
  if (cells.length === 0) return []
  return Table.lines(columns, cells).map((line, at) => paints[at]!(line))
}

const totalsOf = ({ budget, report }: Replay.Replay, paint: Paint.Paint): ReadonlyArray<string> => {
  const { totals } = report
  const bad = (amount: number, text: string): string => amount === 0 ? text : paint.red(text)
  const below = totals.maxViewTokens <= budget.limit
    ? `${percent(totals.maxViewTokens, budget.limit)} of the budget`
    : paint.red(`${number(totals.maxViewTokens - budget.limit)} over the budget`)
  return [
    `${count(totals.boundaries, "boundary", "boundaries")} freed ${count(totals.freedTokens, "token")}: `
    + `${count(totals.removed, "entry", "entries")} removed, ${number(totals.truncated)} truncated, `
    + `${number(totals.stubbed)} stubbed${totals.absorbed === 0 ? "" : `, ${number(totals.absorbed)} absorbed`}; `
    + `${number(totals.skips)} refused`,
    `largest view ${count(totals.maxViewTokens, "token")}, ${below}; `
    + bad(totals.overBudgetRequests, `${count(totals.overBudgetRequests, "request")} over the budget`) + ", "
    + bad(totals.infeasible, `${number(totals.infeasible)} infeasible`) + ", "
    + bad(totals.violations, count(totals.violations, "violation of the wire rules", "violations of the wire rules")),
    ...metersOf(totals.meters)
  ]
}

/** How far the meters were from what was billed, on the average and at worst; nothing where nothing was billed. */
const metersOf = (meters: Replay.Totals["meters"]): ReadonlyArray<string> => {
  const errors = TokenMeter.Mode.literals.flatMap((mode) => {
    const error = meters[mode]
    return error === null ? [] : [`${mode} ${percent(error.mean, 1)} (at worst ${percent(error.worst, 1)})`]
  })
  return errors.length === 0 ? [] : [
    `off the bill on average, over ${count(meters.estimate?.requests ?? 0, "request")} sent as recorded: ${
      errors.join(", ")
    }`
  ]
}

const sides: ReadonlyArray<readonly [Table.Column, (replay: Replay.Replay) => string]> = [
  [{ title: "policy", align: "left" }, ({ report }) => report.policy],
  [{ title: "budget", align: "right" }, ({ report }) => number(report.budget)],
  [{ title: "boundaries", align: "right" }, ({ report }) => number(report.totals.boundaries)],
  [{ title: "freed", align: "right" }, ({ report }) => number(report.totals.freedTokens)],
  [{ title: "removed", align: "right" }, ({ report }) => number(report.totals.removed)],
  [{ title: "truncated", align: "right" }, ({ report }) => number(report.totals.truncated)],
  [{ title: "stubbed", align: "right" }, ({ report }) => number(report.totals.stubbed)],
  [{ title: "absorbed", align: "right" }, ({ report }) => number(report.totals.absorbed)],
  [{ title: "refused", align: "right" }, ({ report }) => number(report.totals.skips)],
  [{ title: "largest view", align: "right" }, ({ report }) => number(report.totals.maxViewTokens)],
  [{ title: "over budget", align: "right" }, ({ report }) => number(report.totals.overBudgetRequests)],
  [{ title: "infeasible", align: "right" }, ({ report }) => number(report.totals.infeasible)]
]

/** The totals of one session under several policies, a line each. */
export const compare = (replays: ReadonlyArray<Replay.Replay>, paint: Paint.Paint): string => {
  const [heading = "", ...lines] = Table.lines(
    sides.map(([column]) => column),
    replays.map((replay) => sides.map(([, cell]) => cell(replay)))
  )
  return [paint.bold(heading), ...lines].join("\n")
}

/** Renders a replay, without a line break at its end. */
export const render = (
  replay: Replay.Replay,
  options: { readonly session: Session.Session; readonly paint: Paint.Paint }
): string => {
  const { paint, session } = options
  const { budget, report, settings } = replay
  const findings = session.findings.length === 0 ? "" : `; ${count(session.findings.length, "finding")} (see inspect)`
  const table = tableOf(replay, paint)
  const unheld = report.unheld === undefined ? [] : Unheld.lines(report.unheld)
  return [
    `${paint.bold(Shown.line(report.file))} ${paint.dim(`(${report.format}: ${Shown.line(session.why)})`)}`,
    `${count(report.messages, "message")}, ${count(report.requests, "request")}${findings}`,
    ...(report.policy === "default" ? [] : [`policy ${paint.bold(Shown.line(report.policy))}`]),
    budgetLine(budget, settings),
    triggerLine(budget, settings),
    protectedLine(settings),
    ...(table.length === 0 ? [] : ["", ...table, ""]),
    ...totalsOf(replay, paint),
    ...(unheld.length === 0 ? [] : ["what a format cannot hold, messages from 0", ...unheld])
  ].join("\n")
}
