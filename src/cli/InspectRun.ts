/**
 * Prints what a session holds, for `inspect`.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Estimator from "../Estimator.ts"
import * as Format from "../format/Format.ts"
import type * as Session from "../format/Session.ts"
import * as Failed from "./Failed.ts"
import * as Inspection from "./Inspection.ts"
import * as Paint from "./Paint.ts"
import * as SessionInput from "./SessionInput.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"
import * as Unheld from "./Unheld.ts"

const { number, percent } = Table

const toolColumns: ReadonlyArray<Table.Column> = [
  { title: "tool", align: "left" },
  { title: "results", align: "right" },
  { title: "characters", align: "right" },
  { title: "tokens", align: "right" }
]

const largestColumns: ReadonlyArray<Table.Column> = [
  { title: "entry", align: "right" },
  { title: "tool", align: "left" },
  { title: "characters", align: "right" },
  { title: "tokens", align: "right" }
]

const toolName = (tool: string): string => tool === "" ? "(unknown)" : tool

const usageLine = ({ usage }: Inspection.Inspection): string => {
  if (usage === null) return "usage       none recorded"
  const bucket = (tokens: number | null) => tokens === null ? "unknown" : number(tokens)
  return `usage       ${number(usage.responses)} responses: fresh input ${bucket(usage.fresh)}, cache read `
    + `${bucket(usage.cacheRead)}, cache write ${bucket(usage.cacheWrite)}, output ${bucket(usage.output)} tokens`
}

const violationLines = ({ violations }: Inspection.Inspection, paint: Paint.Paint): ReadonlyArray<string> =>
  Object.entries(violations).map(([provider, rules]) => {
    const found = Object.entries(rules).map(([rule, count]) => `${rule} ${number(count)}`)
    return `  ${provider}: ${found.length === 0 ? "none" : paint.yellow(found.join(", "))}`
  })

const findingLine = (finding: Inspection.Inspection["findings"][number]): string => {
  const place = finding.line === 0 ? "" : `line ${number(finding.line)}: `
  const first = finding.count === 1 ? "" : "first "
  return Shown.line(`  ${finding.kind} ${number(finding.count)} (${first}${place}${finding.detail})`)
}

const heading = (lines: ReadonlyArray<string>, paint: Paint.Paint): ReadonlyArray<string> =>
  lines.map((line, at) => `  ${at === 0 ? paint.bold(line) : line}`)

const render = (inspection: Inspection.Inspection, paint: Paint.Paint): string => {
  const { findings, reasoning, results, roles } = inspection
  const unheld = Unheld.lines(inspection.unheld)
  const byTool = results.byTool.map((each) => [
    toolName(each.tool),
    number(each.count),
    number(each.characters),
    number(each.tokens)
  ])
  const largest = results.largest.map((each) => [
    number(each.seq),
    toolName(each.tool),
    number(each.characters),
    number(each.tokens)
  ])
  return [
    paint.bold(Shown.line(inspection.file)),
    `format      ${inspection.format}: ${Shown.line(inspection.why)}`,
    `model       ${Shown.line(inspection.model ?? "unknown")}`,
    `messages    ${number(inspection.messages)}: ${number(roles.system)} system, ${number(roles.user)} user `
    + `(${number(roles.human)} human), ${number(roles.assistant)} assistant, ${number(roles.tool)} tool`,
    `entries     ${number(inspection.entries)}`,
    `size        ${number(inspection.tokens)} tokens (estimated), ${number(inspection.characters)} characters`,
    `calls       ${number(inspection.calls)}`,
    `results     ${number(results.count)} (${number(results.failures)} failed): ${number(results.tokens)} tokens, `
    + `${percent(results.ofTokens, 1)} of all; ${number(results.characters)} characters, ${
      percent(results.ofCharacters, 1)
    } of all`,
    `images      ${number(inspection.images)}`,
    `reasoning   ${number(reasoning.parts)}: ${number(reasoning.signed)} signed, ${
      number(reasoning.encrypted)
    } encrypted`,
    usageLine(inspection),
    ...(results.count === 0 ? [] : [
      "",
      "results by tool",
      ...heading(Table.lines(toolColumns, byTool), paint),
      "",
      "largest results",
      ...heading(Table.lines(largestColumns, largest), paint)
    ]),
    "",
    "findings",
    ...(findings.length === 0 ? ["  none"] : findings.map(findingLine)),
    "",
    "violations of the wire rules, as recorded",
    ...violationLines(inspection, paint),
    "",
    "what a format cannot hold, messages from 0",
    ...(unheld.length === 0 ? ["  none"] : unheld)
  ].join("\n")
}

interface Values {
  readonly file: string
  readonly format: Option.Option<Session.FormatName>
  readonly json: boolean
}

/** Prints what a session holds; fails with the exit code. */
export const run = ({ file, format, json }: Values) =>
  Effect.gen(function*() {
    const session = yield* Format.read(file, SessionInput.readOptions(format))
    const inspection = Inspection.make(session, yield* Estimator.Estimator)
    yield* Console.log(json ? Shown.json(inspection) : render(inspection, yield* Paint.detect))
    return 0
  }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))
