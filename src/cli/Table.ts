/**
 * Text in aligned columns, and numbers as people read them.
 *
 * @since 0.1.0
 */
import * as CliOutput from "effect/cli/CliOutput"
import * as Shown from "./Shown.ts"

/** The heading of a column; numbers end at its right edge. */
export interface Column {
  readonly title: string
  readonly align: "left" | "right"
}

const pad = (text: string, width: number, align: Column["align"]): string => {
  const space = " ".repeat(Math.max(0, width - CliOutput.displayWidth(text)))
  return align === "right" ? space + text : text + space
}

/**
 * Lays out rows under their headings, one line each, heading first. No line ends in spaces. Cells may be foreign text.
 */
export const lines = (
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): ReadonlyArray<string> => {
  const all = [columns.map(({ title }) => title), ...rows.map((row) => row.map(Shown.line))]
  const widths = columns.map((_, at) => Math.max(...all.map((row) => CliOutput.displayWidth(row[at] ?? ""))))
  return all.map((row) =>
    columns.map(({ align }, at) => pad(row[at] ?? "", widths[at] ?? 0, align)).join("  ").trimEnd()
  )
}

/** A whole number with its thousands set apart. */
export const number = (value: number): string => value.toLocaleString("en-US")

/** A number of things, named by one of them or by several. */
export const count = (value: number, one: string, several = `${one}s`): string =>
  `${number(value)} ${value === 1 ? one : several}`

/** A share as a percentage. */
export const percent = (part: number, whole: number): string =>
  whole === 0 ? "0%" : `${Math.round((100 * part) / whole)}%`
