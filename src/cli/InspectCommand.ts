/**
 * `inspect`: what a recorded session holds.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Estimator from "../Estimator.ts"
import * as Format from "../format/Format.ts"
import * as Failed from "./Failed.ts"
import * as Inspection from "./Inspection.ts"
import * as Paint from "./Paint.ts"
import * as SessionInput from "./SessionInput.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

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
    ...violationLines(inspection, paint)
  ].join("\n")
}

/** The command. */
export const command = Command.make("inspect", {
  file: SessionInput.file,
  format: SessionInput.format,
  json: SessionInput.json
}, ({ file, format, json }) =>
  Effect.gen(function*() {
    const session = yield* Format.read(file, SessionInput.readOptions(format))
    const inspection = Inspection.make(session, yield* Estimator.Estimator)
    yield* Console.log(json ? Shown.json(inspection) : render(inspection, yield* Paint.detect))
    return 0
  }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))).pipe(
    Command.withDescription(
      "Prints what a recorded session holds: its format and why it was taken for it, messages and entries by role, tool "
        + "results and their share, the largest of them, what was billed, what the reader found, and where the session as "
        + "it was recorded breaks the rules of a provider. Tokens are estimated; characters are UTF-16 code units.\n\n"
        + "Exit codes: 0 fine, 1 bad input, 2 wrong usage."
    ),
    Command.withShortDescription("Print what a session holds"),
    Command.withExamples([
      { command: "effect-compaction inspect session.jsonl", description: "What is in a session" },
      {
        command: "effect-compaction inspect --json --format openai-chat body.json",
        description: "The same as one line of JSON, of a file whose format is named"
      }
    ])
  )
