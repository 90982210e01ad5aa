/**
 * What a pass would do, as text and as data: of a session in its log, and of a recorded one at a message.
 *
 * @since 0.1.0
 */
import * as Price from "../simulate/Price.ts"
import type * as Stage from "../Stage.ts"
import * as CompareText from "./CompareText.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

/**
 * A preview with its price.
 *
 * **Details**
 *
 * - `policy`: the name or the file of the policy. `price`: the model whose list price dollars are of.
 * - `cost`: what it costs that `rebuilt` tokens are written to the cache and not read from it. `spared`: what each later
 *   request costs less, since `freed` tokens are not read. Both in dollars.
 */
export interface Answer extends Stage.Preview {
  readonly policy: string
  readonly price: Price.PresetName
  readonly cost: number
  readonly spared: number
}

/** What a preview costs. */
export const answer = (preview: Stage.Preview, policy: string, price: Price.PresetName): Answer => ({
  ...preview,
  policy,
  price,
  ...Price.ofBoundary(Price.presets[price], { rewritten: preview.rebuilt, freed: Math.max(0, preview.freed) })
})

/** So many runs of entries are named in a line. */
const named = 20

/** Numbers in order, in runs: `4–9, 12`. */
const runs = (numbers: ReadonlyArray<number>): string => {
  const found: Array<[from: number, to: number]> = []
  for (const number of numbers) {
    const last = found.at(-1)
    if (last !== undefined && last[1] + 1 === number) last[1] = number
    else found.push([number, number])
  }
  const shown = found.slice(0, named).map(([from, to]) => from === to ? String(from) : `${from}–${to}`)
  return `${shown.join(", ")}${found.length > named ? " …" : ""}`
}

const some = (name: string, seqs: ReadonlyArray<number>): ReadonlyArray<string> =>
  seqs.length === 0 ? [] : [`            ${Table.number(seqs.length)} ${name}: ${runs(seqs)}`]

const verdictOf = ({ outcome, reason, summary }: Answer): string => {
  switch (outcome) {
    case "compact":
      return "compacts"
    case "nothing":
      return `does nothing: ${reason ?? ""}`
    case "fail":
      return `fails: ${reason ?? ""}`
    case "summary":
      return summary === null
        ? "asks a model for a summary"
        : `asks a model to summarise ${Table.count(summary.entries.length, "entry", "entries")} of ${
          Table.count(summary.tokens, "token")
        }; without an answer it does what follows`
  }
}

/** A preview as text, under a title of a line. */
export const render = (title: string, self: Answer): string => {
  const { after, before, budget, cause, cost, count, entries, freed, kind, price, rebuilt, rungs, spared } = self
  const { covered, kept, removed, shortened } = entries
  return [
    Shown.line(title),
    `policy      ${Shown.line(self.policy)}`,
    `pass        for ${cause}: ${Shown.line(verdictOf(self))}`,
    `count       ${Table.count(count, "token")} (${kind}) of a budget of ${Table.number(budget)}; trigger ${
      Table.number(Math.floor(self.trigger))
    }, target ${Table.number(self.target)}`,
    `view        ${Table.number(before)} → ${Table.count(after, "token")}, ${Table.number(freed)} freed`,
    `rungs       ${rungs.length === 0 ? "none" : rungs.map(Shown.line).join(", ")}`,
    `entries     ${Table.number(kept)} kept`,
    ...some("shortened", shortened),
    ...some("removed", removed),
    ...some("covered by a checkpoint", covered),
    `rebuild     ${Table.count(rebuilt, "token")} written anew, ${
      CompareText.dollars(cost)
    } above reading them; each later `
    + `request costs ${CompareText.dollars(spared)} less (list price of ${price}, warm cache)`,
    `boundaries  ${Table.number(self.generation)} so far`
  ].join("\n")
}
