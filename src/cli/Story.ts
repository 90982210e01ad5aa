/**
 * A conversation over its requests: what each of its entries became and when, what each boundary cost, and what it saved.
 *
 * It is what a page shows, and knows nothing of where it comes from: a replay makes one, and so can a session from its log.
 *
 * @since 0.1.0
 */
import * as Price from "../simulate/Price.ts"
import type * as Replay from "./Replay.ts"
import * as Table from "./Table.ts"
import type * as Trace from "./Trace.ts"

/** One request: what its view costs, what the conversation costs whole, in tokens, and what happened there, in words. */
interface Moment {
  readonly request: number
  readonly tokens: number
  readonly whole: number
  readonly said: string
}

/**
 * A boundary.
 *
 * **Details**
 *
 * - `rung`: the last that decided something. `before`, `after`, `freed`: of the view, in tokens.
 * - `rewritten`: tokens behind the first change, which the provider's cache does not have and must be paid again.
 * - `saved`: the tokens that are not sent from here to the next boundary, over all requests.
 * - `cost`, `spared`: of both in dollars, see {@link basis}.
 */
interface Boundary {
  readonly request: number
  readonly rung: string
  readonly before: number
  readonly after: number
  readonly freed: number
  readonly rewritten: number
  readonly saved: number
  readonly cost: number
  readonly spared: number
}

/** The story of one conversation; `limit` is its budget, in tokens. */
export interface Story {
  readonly file: string
  readonly policy: string
  readonly limit: number
  readonly moments: ReadonlyArray<Moment>
  readonly boundaries: ReadonlyArray<Boundary>
  readonly trace: Trace.Trace
}

const priced = "claude-opus-4-5"

/** What the dollars of a story rest on. */
export const basis =
  `Dollars at the list price of ${priced} with a warm cache: what a boundary changes is paid as a write `
  + "where it would have been a read, and what it leaves out is not read again up to the next boundary."

/** What a request did, in words. */
export const saidOf = (
  { boundary, error, infeasible, skipped }: Pick<Replay.Row, "boundary" | "error" | "infeasible" | "skipped">
): string => {
  const words: Array<string> = []
  if (boundary !== null) {
    const { absorbed, freed, level, removed, stubbed, truncated } = boundary
    words.push(
      `boundary at rung ${level}: freed ${Table.count(freed, "token")}; ${Table.number(removed)} removed, `
        + `${Table.number(truncated)} truncated, ${Table.number(stubbed)} stubbed`
        + (absorbed === 0 ? "" : `, ${Table.number(absorbed)} summarised`)
    )
  }
  if (skipped !== null) {
    words.push(`refused: would free ${Table.number(skipped.freed)} of the ${Table.number(skipped.required)} asked for`)
  }
  if (infeasible !== null) words.push(`${Table.count(infeasible.over, "token")} over the budget`)
  if (error !== undefined) words.push(`not sent: ${error.message}`)
  return words.join("; ")
}

/** A boundary, before it is known how long it lasts. */
export type Made = Pick<Boundary, "request" | "rung" | "before" | "after" | "freed" | "rewritten">

/** What a story is made of; the moments without what the conversation costs whole. */
interface Parts extends Pick<Story, "file" | "policy" | "limit" | "trace"> {
  readonly moments: ReadonlyArray<Omit<Moment, "whole">>
  readonly boundaries: ReadonlyArray<Made>
}

/** The boundaries, with what each saves up to the next one. */
const lasting = (made: ReadonlyArray<Made>, requests: number): ReadonlyArray<Boundary> =>
  made.map((each, at) => {
    const { freed, request, rewritten } = each
    const saved = freed * ((made[at + 1]?.request ?? requests + 1) - request)
    return { ...each, saved, ...Price.ofBoundary(Price.presets[priced], { rewritten, freed: saved }) }
  })

/** The story of a conversation that was traced. */
export const make = ({ boundaries, moments, trace, ...rest }: Parts): Story => {
  const added = moments.map(() => 0)
  const known = new Set<number>()
  for (const { request, seq } of trace.changes) {
    if (known.has(seq)) continue
    known.add(seq)
    const entry = trace.entries[seq]
    if (entry !== undefined && entry.isSaid) added[request - 1] = (added[request - 1] ?? 0) + entry.tokens
  }
  let whole = 0
  return {
    ...rest,
    moments: moments.map((moment, index) => ({ ...moment, whole: whole += added[index] ?? 0 })),
    boundaries: lasting(boundaries, moments.length),
    trace
  }
}

const madeIn = ({ report: { rows }, rungs }: Replay.Replay): ReadonlyArray<Made> =>
  rows.flatMap(({ boundary, prefixKept, request }) => {
    if (boundary === null) return []
    const { after, before, freed, level } = boundary
    const kept = prefixKept * (rows[request - 2]?.viewTokens ?? 0)
    const rewritten = Math.max(0, Math.round(after - kept))
    return [{ request, rung: rungs[level - 1] ?? String(level), before, after, freed, rewritten }]
  })

/** The story of a replay that was traced. */
export const ofReplay = (replay: Replay.Replay, trace: Trace.Trace): Story => {
  const { budget, file, policy, rows } = replay.report
  return make({
    file,
    policy,
    limit: budget,
    moments: rows.map((row) => ({ request: row.request, tokens: row.viewTokens, said: saidOf(row) })),
    boundaries: madeIn(replay),
    trace
  })
}

/** The data of a page. */
export const dataOf = (
  { boundaries, trace: { changes, entries } }: Story
): Pick<Story, "boundaries"> & Trace.Trace => ({ boundaries, entries, changes })
