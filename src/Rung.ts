/**
 * The steps of a ladder.
 *
 * A rung is data: a name and either a proposer of edits or a stage. A proposer yields candidate decisions over a draft,
 * in order; the interpreter decides when to stop, prices each candidate, and drops those that save nothing, so none of
 * that leaks into rungs. Every built-in rung is a proposer. A custom rung may be a stage of its own, with its own errors
 * and services; it runs at most once a pass.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Decision from "./Decision.ts"
import * as Alter from "./internal/alter.ts"
import * as Climb from "./internal/climb.ts"
import type * as DraftInternal from "./internal/draft.ts"
import * as Protection from "./internal/protection.ts"
import type * as Stage from "./Stage.ts"
import * as ToolResult from "./ToolResult.ts"
import type * as Transcript from "./Transcript.ts"

/**
 * The view that a proposer reads while it is being changed. Items that were removed are `undefined`.
 *
 * @category models
 * @since 0.1.0
 */
export type Draft = DraftInternal.Draft

/**
 * Yields candidate decisions over a draft, in the order in which they are to be tried. The draft changes under it: when
 * it goes on, the candidate before was applied or dropped.
 *
 * @category models
 * @since 0.1.0
 */
export interface Propose {
  (draft: Draft): Iterable<Decision.Edit>
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Rung<out E = never, out R = never> {
  readonly name: string
  readonly run:
    | { readonly _tag: "propose"; readonly propose: Propose }
    | { readonly _tag: "stage"; readonly stage: Stage.Stage<E, R> }
}

/**
 * @category utility types
 * @since 0.1.0
 */
// `any` accepts every error and requirement in a constraint; none of it reaches a result type.
export type Any = Rung<any, any>

/**
 * @category utility types
 * @since 0.1.0
 */
export type Error<R> = R extends Rung<infer E, infer _R> ? E : never

/**
 * @category utility types
 * @since 0.1.0
 */
export type Services<R> = R extends Rung<infer _E, infer S> ? S : never

/**
 * Makes a rung of a stage.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E, R>(name: string, stage: Stage.Stage<E, R>): Rung<E, R> => ({
  name,
  run: { _tag: "stage", stage }
})

/**
 * Makes a rung of a proposer.
 *
 * @category constructors
 * @since 0.1.0
 */
export const propose = (name: string, propose: Propose): Rung => ({ name, run: { _tag: "propose", propose } })

/**
 * Runs a rung alone: until the view is at most the target of the budget, or the rung has nothing more to propose.
 *
 * @category running
 * @since 0.1.0
 */
export const stage = <E, R>(self: Rung<E, R>): Stage.Stage<E, R> => {
  const climb = Climb.stage([self])
  return (pass) =>
    Effect.map(climb(pass, { price: pass.sizes.target, entries: Infinity }), (climbed) => ({
      ...pass,
      view: climbed.view,
      report: { ...pass.report, level: climbed.level === 0 ? pass.report.level : climbed.level }
    }))
}

/**
 * Truncates the oldest results of tools: the first `ceil(fraction × n)` of the `n` results in the view, oldest first.
 *
 * **Details**
 *
 * The last `protectedToolResults` results, pinned entries, exempt tools, and results that are short or truncated already
 * stay as they are. Neither recency nor a running call keeps a result from being truncated.
 *
 * @category constructors
 * @since 0.1.0
 */
export const truncateToolResults = (options: { readonly fraction: number }): Rung =>
  propose(`truncate-${Math.round(options.fraction * 100)}`, function*(draft) {
    const results: Array<number> = []
    for (let at = 0; at < draft.items.length; at++) if (draft.items[at]?.entry?.kind === "result") results.push(at)
    const last = new Set(Protection.lastResults(draft))
    const candidates = Math.ceil(options.fraction * results.length)
    for (let n = 0; n < candidates; n++) {
      const at = results[n]!
      if (last.has(at)) continue
      const decision = truncation(draft, draft.items[at]?.entry)
      if (decision !== undefined) yield decision
    }
  })

/** The decision to truncate a result, unless it is pinned, exempt, or short enough. */
const truncation = (draft: Draft, entry: Transcript.Entry | undefined): Decision.Truncate | undefined => {
  if (entry === undefined || entry.pinned) return undefined
  const cut = ToolResult.cutOf(draft.settings, draft.transcript, entry)
  return cut === undefined ? undefined : { _tag: "Truncate", seq: entry.seq, at: draft.at, ...cut }
}

/** Whole groups and single entries, oldest first, none of whose members is held; humans are no candidates. */
function* removals(draft: Draft, protection: Protection.Protection): Generator<Decision.Remove> {
  const { items } = draft
  for (let at = 0; at < items.length; at++) {
    const entry = items[at]?.entry
    if (entry === undefined || entry.role === "system" || entry.human) continue
    // A group stands together, its calling entry first.
    let held = protection.held[at] === 1
    const seqs = [entry.seq]
    if (entry.calls.length > 0) {
      while (at + 1 < items.length && items[at + 1]?.group === entry.seq) {
        at++
        const member = items[at]!
        held ||= protection.held[at] === 1
        if (member.seq >= 0) seqs.push(member.seq)
      }
    }
    if (!held) yield { _tag: "Remove", seqs, at: draft.at }
  }
}

/** A stub keeps this many code units; a text no longer than `stubMinimum` is not worth one. */
const stubLength = 50
const stubMinimum = 80

const stub = (draft: Draft, entry: Transcript.Entry): Decision.Stub => ({
  _tag: "Stub",
  seq: entry.seq,
  at: draft.at,
  k: stubLength
})

function* stubs(draft: Draft, protection: Protection.Protection): Generator<Decision.Stub> {
  for (let at = 0; at < draft.items.length; at++) {
    const entry = draft.items[at]?.entry
    if (entry === undefined || !entry.human || protection.held[at] === 1 || entry.length <= stubMinimum) continue
    if (entry.seq !== protection.firstHuman && entry.seq !== protection.lastHuman) yield stub(draft, entry)
  }
}

function* removeAndStub(draft: Draft, relax: number): Generator<Decision.Edit> {
  const protection = Protection.make(draft, relax)
  yield* removals(draft, protection)
  yield* stubs(draft, protection)
}

/**
 * Removes whole units, oldest first: a call with its results, or a single entry; then stubs long human messages.
 *
 * **Details**
 *
 * A unit is kept when one of its members is protected: recent (`protectedRecent × relax` of the entries, from the end),
 * one of the last results, in a group with a running call, or pinned. The first and the last human message are never
 * touched here, and no human message is removed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const remove = (options: { readonly relax: number }): Rung =>
  propose(options.relax === 1 ? "remove" : `remove-${options.relax}`, (draft) => removeAndStub(draft, options.relax))

/**
 * Stubs the first human message unless it is also the last, then removes human messages that are stubbed, or too short
 * to be, oldest first and outside the recent ones; never the first, the last or a pinned one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const lastResort = (options: { readonly relax: number }): Rung =>
  propose("last-resort", function*(draft) {
    const protection = Protection.make(draft, options.relax)
    const { firstHuman, lastHuman, recent } = protection
    const first = firstHuman < 0 ? undefined : draft.transcript.entries[firstHuman]
    if (first !== undefined && firstHuman !== lastHuman && !first.pinned && first.length > stubMinimum) {
      yield stub(draft, first)
    }
    for (let at = 0; at < draft.items.length; at++) {
      const item = draft.items[at]
      const entry = item?.entry
      if (item === undefined || entry === undefined || !entry.human || entry.pinned || recent[at] === 1) continue
      if (entry.seq === firstHuman || entry.seq === lastHuman) continue
      const decision = stub(draft, entry)
      const stubbable = Alter.applies(item, decision) && entry.length > stubMinimum
        && Alter.item(draft.transcript, entry, [...item.alterations, decision]).price < item.price
      if (!stubbable) yield { _tag: "Remove", seqs: [entry.seq], at: draft.at }
    }
  })

/**
 * The end of a ladder, for a view above the budget itself: removes with no recency, then truncates what is whole.
 *
 * The last results are truncated too, dearest first, of equals the older; never a pinned or an exempt one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fit: Rung = propose("fit", function*(draft) {
  yield* removeAndStub(draft, 0)
  const whole = draft.items.filter((item) => item?.entry?.kind === "result" && item.state === "kept")
  // The sort is stable: of equals the one that stands first in the view is the older.
  whole.sort((a, b) => b!.price - a!.price)
  for (const item of whole) {
    const decision = truncation(draft, item?.entry)
    if (decision !== undefined) yield decision
  }
})
