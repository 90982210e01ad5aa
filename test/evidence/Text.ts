/** How figures and tables are written, and what a part of docs/evidence.md is. */
import * as Effect from "effect/Effect"
import type * as Play from "./Play.ts"

export type Lines = ReadonlyArray<string>

/** A part by its name. `of`: on which sessions it is measured. */
export interface Part {
  readonly name: string
  readonly of: "samples" | "recorded" | "kept"
  readonly lines: (subjects: ReadonlyArray<Play.Subject>) => Effect.Effect<Lines>
}

export const number = (value: number): string => Math.round(value).toLocaleString("en-US")
export const dollars = (value: number): string => value.toFixed(2)
export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`
export const times = (ratio: number): string => `${ratio.toFixed(3)}×`

export const table = (titles: Lines, rows: ReadonlyArray<Lines>): Lines => [
  `| ${titles.join(" | ")} |`,
  `|${titles.map((_, at) => at === 0 ? "---" : "---:").join("|")}|`,
  ...rows.map((row) => `| ${row.join(" | ")} |`),
  ""
]

const command = (name: string): string => `Made by \`npm run evidence -- ${name}\`.`

/** A part, with its heading, what it says of itself, and the command that makes it. */
export const part = (
  name: string,
  of: Part["of"],
  heading: string,
  text: string,
  measured: (subjects: ReadonlyArray<Play.Subject>) => Effect.Effect<Lines>
): Part => ({
  name,
  of,
  lines: (subjects) =>
    Effect.map(measured(subjects), (lines) => [`## ${heading}`, "", text, "", command(name), "", ...lines])
})
