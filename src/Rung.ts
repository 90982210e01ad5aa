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
import type * as DecisionModel from "effect/ai/DecisionModel"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Decision from "./Decision.ts"
import * as Climb from "./ladder/climb.ts"
import * as Judging from "./ladder/decide.ts"
import type * as DraftInternal from "./ladder/draft.ts"
import * as Large from "./ladder/large.ts"
import * as People from "./ladder/people.ts"
import * as Protection from "./ladder/protection.ts"
import * as Results from "./ladder/results.ts"
import type * as RungOptions from "./ladder/rungOptions.ts"
import * as Units from "./ladder/units.ts"
import type * as Stage from "./Stage.ts"
import * as ToolResult from "./ToolResult.ts"

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
 * A proposer, and whether all that it proposes is applied, or only as much as it takes to reach the target.
 *
 * @category models
 * @since 0.1.0
 */
export interface Proposer {
  readonly _tag: "propose"
  readonly propose: Propose
  readonly isWhole: boolean
}

/**
 * A name, and what is run. `spec` is what a rung of this library was made of, with the tag of its kind: it is checked where
 * a policy is made, as the same in JSON is.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rung<out E = never, out R = never, out Name extends string = string> {
  readonly name: Name
  readonly run: Proposer | { readonly _tag: "stage"; readonly stage: Stage.Stage<E, R> }
  readonly spec?: { readonly _tag: string }
}

/**
 * @category utility types
 * @since 0.1.0
 */
export type Any = Rung<unknown, unknown>

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
 * @category utility types
 * @since 0.1.0
 */
export type Name<R> = R extends Rung<unknown, unknown, infer N> ? N : never

/**
 * Makes a rung of a stage.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E, R, const Name extends string>(name: Name, stage: Stage.Stage<E, R>): Rung<E, R, Name> => ({
  name,
  run: { _tag: "stage", stage }
})

/**
 * Makes a rung of a proposer. With `isWhole` it is not stopped at the target: once begun, all of it is applied.
 *
 * @category constructors
 * @since 0.1.0
 */
export const propose = <const Name extends string>(
  name: Name,
  propose: Propose,
  options: { readonly isWhole?: boolean } = {}
): Rung<never, never, Name> => ({
  name,
  run: { _tag: "propose", propose, isWhole: options.isWhole ?? false }
})

/** A rung of this library, with what it was made of. */
const ofKind = <const Name extends string>(
  tag: string,
  options: object,
  rung: Rung<never, never, Name>
): Rung<never, never, Name> => ({ ...rung, spec: { _tag: tag, ...options } })

/** The name of a rung that is named after how much of `protectedRecent` still holds; known where the number is. */
type Relaxed<Base extends string, X extends number> = number extends X ? string : X extends 1 ? Base : `${Base}-${X}`

/** The same at run time. */
const relaxedName = <Base extends string, X extends number>(base: Base, relax: X): Relaxed<Base, X> =>
  // What the type says of a literal number is what is done with any.
  (relax === 1 ? base : `${base}-${relax}`) as Relaxed<Base, X>

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
      report: {
        ...pass.report,
        level: climbed.level === 0 ? pass.report.level : climbed.level,
        levels: climbed.level === 0 ? pass.report.levels : [...pass.report.levels, climbed.level]
      }
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
export const truncateToolResults = (
  options: { readonly fraction: number }
): Rung<never, never, `truncate-${number}`> =>
  ofKind(
    "truncateToolResults",
    options,
    propose(
      `truncate-${Math.round(options.fraction * 100)}`,
      (draft) => Results.truncateOldest(draft, options.fraction)
    )
  )

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
export const remove = <const X extends number>(
  options: { readonly relax: X }
): Rung<never, never, Relaxed<"remove", X>> =>
  ofKind(
    "remove",
    options,
    propose(relaxedName("remove", options.relax), (draft) => Units.removeAndStub(draft, options.relax))
  )

/**
 * Truncates what alone takes a large share of the budget, dearest first, also where it is among the last results: the
 * results of tools, and material that a person pasted, of which both ends stay.
 *
 * **Details**
 *
 * One large result is a poor reason to remove many small messages. Pinned entries, exempt tools and the last human message
 * stay as they are.
 *
 * @category constructors
 * @since 0.1.0
 */
export const truncateLarge = (
  options: Partial<RungOptions.TruncateLarge> = {}
): Rung<never, never, "truncate-large"> => {
  const { keep = 0.2, over = 0.3 } = options
  return ofKind(
    "truncateLarge",
    options,
    propose("truncate-large", (draft) => Large.truncate(draft, { keep, over }))
  )
}

/**
 * Removes whole units that are no person's, oldest first: a call with its results, or a single entry of the assistant.
 *
 * **Details**
 *
 * The same units as {@link remove} are kept, the last `keep` entries too, and checkpoints always: they hold words of
 * people. Before {@link shortenPeople} in a ladder it makes the words of people the last to go.
 *
 * @category constructors
 * @since 0.1.0
 */
export const removeOthers = <const X extends number>(
  options: { readonly relax: X; readonly keep?: number }
): Rung<never, never, Relaxed<"remove-others", X>> => {
  const { keep = 12, relax } = options
  return ofKind(
    "removeOthers",
    options,
    propose(
      relaxedName("remove-others", relax),
      (draft) => Units.removals(draft, Protection.make(draft, relax, { entries: keep, checkpoints: true }))
    )
  )
}

/**
 * Gives up words of people, and of nobody else, down to their share of the budget.
 *
 * **Details**
 *
 * First what was pasted (more than 2,000 characters), of which both ends stay; then long messages become stubs, oldest
 * first, the first message last; then stubs and short messages leave. Pinned ones stay, the last one, and those among the
 * last 12 entries. A
 * message that states a lasting rule keeps the rule: see `standingInstructions` of the settings.
 *
 * @category constructors
 * @since 0.1.0
 */
export const shortenPeople = (
  options: Partial<RungOptions.ShortenPeople> = {}
): Rung<never, never, "shorten-people"> => {
  const { above = 0.5, share = 0.1 } = options
  return ofKind(
    "shortenPeople",
    options,
    propose("shorten-people", (draft) => People.shorten(draft, { above, share }))
  )
}

/**
 * Stubs the first human message unless it is also the last, then removes human messages that are stubbed, or too short
 * to be, oldest first and outside the recent ones; never the first, the last or a pinned one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const lastResort = (options: { readonly relax: number }): Rung<never, never, "last-resort"> =>
  ofKind("lastResort", options, propose("last-resort", (draft) => Units.lastResort(draft, options.relax)))

/**
 * The end of a ladder, for a view above the budget itself: removes with no recency, then truncates what is whole.
 *
 * The last results are truncated too, dearest first, of equals the older; never a pinned or an exempt one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fit: Rung = propose("fit", function*(draft) {
  yield* Units.removeAndStub(draft, 0)
  yield* Results.truncateDearest(draft)
})

/**
 * Prunes the middle of long tool results, oldest first.
 *
 * **Details**
 *
 * Pinned entries and exempt tools stay. The marker names no place: the texts that are kept say what was asked.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pruneToolResults = (options: Partial<RungOptions.PruneToolResults> = {}): Rung<never, never, "prune"> => {
  const { headChars, keepNewest = 1, stopAtTarget = true, tailChars, thresholdChars } = {
    ...ToolResult.pruneDefaults,
    ...options
  }
  return ofKind(
    "pruneToolResults",
    options,
    propose(
      "prune",
      (draft) => Results.prune(draft, { headChars, keepNewest, tailChars, thresholdChars }),
      { isWhole: !stopAtTarget }
    )
  )
}

/**
 * Leaves a sentence in the place of old tool results, oldest first, as Anthropic's context editing does
 * (`clear_tool_uses`). Pinned entries and exempt tools stay.
 *
 * @category constructors
 * @since 0.1.0
 */
export const clearToolResults = (options: Partial<RungOptions.ClearToolResults> = {}): Rung<never, never, "clear"> => {
  const { clearInputs = false, exclude = [], keep = 3 } = options
  return ofKind(
    "clearToolResults",
    options,
    propose("clear", (draft) => Results.clear(draft, { clearInputs, exclude, keep }))
  )
}

/**
 * Of several results of one tool that were asked for the same thing, leaves only the newest whole. A failed result is no
 * read: it neither goes nor makes another go. Pinned entries and exempt tools stay.
 *
 * @category constructors
 * @since 0.1.0
 */
export const dedupeReads = (options: RungOptions.DedupeReads): Rung<never, never, "dedupe"> =>
  ofKind("dedupeReads", options, propose("dedupe", (draft) => Results.dedupe(draft, options)))

/**
 * Drops the reasoning of old turns, oldest first, each part whole: what a provider signed is sent back as it was or not at
 * all. Pinned entries keep theirs, and so does the entry that a tool turn in progress needs it of.
 *
 * @category constructors
 * @since 0.1.0
 */
export const clearReasoning = (
  options: Partial<RungOptions.ClearReasoning> = {}
): Rung<never, never, "clear-reasoning"> => {
  const { keepTurns = 1 } = options
  return ofKind(
    "clearReasoning",
    options,
    propose("clear-reasoning", (draft) => Results.clearReasoning(draft, keepTurns))
  )
}

export * from "./ladder/rungOptions.ts"

export { Decide, DecideFailed } from "./ladder/decide.ts"

/** What a rung that asks may fail with: nothing, unless it is to fail where the model does. */
type Asking<When extends Judging.Decide["whenFailed"]> = When extends "fail" ? Judging.DecideFailed : never

/**
 * Asks a model, in batches, whether old entries are still needed, and removes first what is needed least: whole units that
 * are no person's, as {@link removeOthers} does.
 *
 * **Details**
 *
 * It asks about the oldest first, and no more than it takes; the model is the `DecisionModel` that is provided. An answer is
 * remembered with the session, so that nothing is asked twice, and the decision has its probability (`needed`). What is not
 * answered, because the model failed or was late or the calls are used up, leaves oldest first, before what is needed. A
 * preview asks nothing. `EntriesJudged` says what was asked.
 *
 * **Example** (A judgement before age)
 *
 * ```ts
 * import * as Ladder from "effect-compaction/Ladder"
 * import * as Rung from "effect-compaction/Rung"
 *
 * // Ladder<never, DecisionModel, …>
 * const ladder = Ladder.recommended.pipe(Ladder.insertBefore("remove-others", Rung.decide({ calls: 2 })))
 *
 * ladder.rungs.map((rung) => rung.name)[3] // => "decide"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const decide = <When extends Judging.Decide["whenFailed"] = "fallBack">(
  options: Partial<Omit<Judging.Decide, "timeout" | "whenFailed">> & {
    readonly timeout?: Duration.Input
    readonly whenFailed?: When
  } = {}
): Rung<Asking<When>, DecisionModel.DecisionModel, "decide"> => {
  const { batch = 20, calls = 3, chars = 1_000, keep = 12, timeout = "20 seconds", whenFailed = "fallBack" } = options
  // What is no duration is refused where a policy is made, with the rest of the spec.
  const deadline = Option.getOrElse(Duration.fromInput(timeout), () => Duration.zero)
  const asked = Judging.stage({ batch, calls, chars, keep, timeout: deadline, whenFailed })
  const spec = { _tag: "decide", ...options, timeout: Duration.toMillis(deadline) }
  // It fails only where it was asked to, which is what the type says.
  return { ...make("decide", asked as Stage.Stage<Asking<When>, DecisionModel.DecisionModel>), spec }
}
