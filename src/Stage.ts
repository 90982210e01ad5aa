/**
 * A stage turns a pass into a pass. Rungs, ladders, gates and guards are all stages or make stages of stages.
 *
 * Errors and requirements of a composition are the union of those of its parts, inferred from a rest tuple. A stage that
 * changes nothing returns a pass with the same view, the same object; that is how a refusal is told from a change.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Schema from "effect/Schema"
import * as Budget from "./Budget.ts"
import type * as CompactionEvent from "./CompactionEvent.ts"
import * as Estimator from "./Estimator.ts"
import { lasting, type Memory, noMemory } from "./ladder/memory.ts"
import * as Settings from "./Settings.ts"
import * as SpillStore from "./SpillStore.ts"
import * as TokenMeter from "./TokenMeter.ts"
import * as View from "./View.ts"
import * as PayloadInternal from "./wire/payload.ts"

// What stages remember, each in a slot of its own; and what a pass would do.
export * from "./ladder/memory.ts"
export * from "./ladder/preview.ts"

/**
 * Why nothing legal fits: the smallest view is `over` tokens above the budget, and these entries hold most of it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Infeasibility {
  readonly over: number
  readonly holders: ReadonlyArray<CompactionEvent.Holder>
}

/**
 * What the stages of one pass found out.
 *
 * **Details**
 *
 * - `level`: the rung of the last decision of this pass, 0 when there is none. `levels`: all the rungs that decided something,
 *   in their order.
 * - `floor`: the price after the whole ladder, in tokens, when it had to be climbed to its end.
 * - `target`: the price the pass aimed at; `null` when it did not run, or ran to its end.
 * - `checkpoint`: what became of the checkpoint that was ready: `absorbed`; `stale`, when a part of its span had left the
 *   view; `useless`, when it would have made the view no smaller; `null` when none was ready, or it was not tried.
 *
 * @category models
 * @since 0.1.0
 */
export interface Report {
  readonly level: number
  readonly levels: ReadonlyArray<number>
  readonly floor: number | null
  readonly target: number | null
  readonly infeasible: Infeasibility | null
  readonly checkpoint: "absorbed" | "stale" | "useless" | null
}

/**
 * Why a pass is made.
 *
 * **Details**
 *
 * - `pressure`: a request is built, and the pass decides whether anything is to be done. Gates and the clear floor judge.
 * - `manual`: a person asked for it. `overflow`: the provider refused the last request because it does not fit. Threshold,
 *   provenance and clear floor let both through: what they would ask for is known already.
 *
 * A stage of a team's own that forbids something forbids it whatever the cause.
 *
 * @category models
 * @since 0.1.0
 */
export type Cause = "pressure" | "manual" | "overflow"

/**
 * Why the prompt cache of the provider is cold anyway: nothing was sent yet, or nobody knows when (`notSent`); the last request
 * is older than a prefix is kept (`idle`); another `route`, other `tools` or another `system` prompt are sent.
 *
 * @category models
 * @since 0.1.0
 */
export type Cold = "notSent" | "idle" | "route" | "tools" | "system"

/**
 * What a session was billed so far, as far as a stage needs it: how many requests there were and how many answers, and how
 * many tokens of them were read from the provider's cache.
 *
 * @category models
 * @since 0.1.0
 */
export interface Served {
  readonly requests: number
  readonly answers: number
  readonly cacheRead: number
}

/**
 * One pass over one view.
 *
 * **Details**
 *
 * - `cause`: why the pass is made. `aim`: the price to come down to, in tokens, in place of the target; `null` for the target.
 * - `isPreview`: whether nothing of it will be committed; a stage that asks or writes elsewhere leaves that out then.
 * - `closed`: why a gate ended the pass, `null` while none did; see {@link close}.
 * - `before`: the view that the pass began with. `entries`: how many conversation entries it has. `fixed`: the price of
 *   its system entries and of what is not in the view, in tokens.
 * - `budget`: in the provider's tokens, as `count` is. `sizes`: the same in prices, for the arithmetic of the ladder;
 *   `scale` is the provider's tokens for one token of price, 1 unless the amount is sized in the provider's tokens.
 * - `cold`: why a boundary costs nothing now; `null` where it does, or where the policy has no `cacheLife`. `served`: what was
 *   billed so far.
 * - `generation`: how many boundaries the session has had. `memory`: what stages remember; see {@link memory}.
 * - `payload`: what the view `before` carries; measured when it is asked for.
 * - `locate`: where the full text of a result that is shortened will lie.
 * - `ready`: a checkpoint that was made beside the session and waits for a boundary. `summarise`: writes one of a view
 *   while the pass waits, if that may be done now; it never fails.
 * - `counter`: asks the provider how many tokens a request with a view is, without what is not in the view; `null` where
 *   nobody can be asked, and of a question that failed. See `TokenMeter.Counter`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pass {
  readonly cause: Cause
  readonly aim: number | null
  readonly isPreview: boolean
  readonly closed: string | null
  readonly view: View.View
  readonly before: View.View
  readonly entries: number
  readonly fixed: number
  readonly budget: Budget.Budget
  readonly sizes: Budget.Sizes
  readonly scale: number
  readonly count: TokenMeter.Reading
  readonly settings: Settings.Settings
  readonly cold: Cold | null
  readonly served: Served
  readonly generation: number
  readonly memory: Memory
  /** The memory that was written last in this pass, whether or not the stage that wrote it succeeded. */
  readonly written: { memory: Memory; lasting?: Memory }
  readonly report: Report
  readonly payload: () => Payload
  readonly locate: SpillStore.Locate
  readonly ready: Ready | null
  readonly summarise: ((view: View.View) => Effect.Effect<Ready | null>) | null
  readonly counter: ((view: View.View) => Effect.Effect<number | null>) | null
}

/**
 * What a request carries: how many images, files and other media, and how many bytes, without the frame around them.
 *
 * @category models
 * @since 0.1.0
 */
export type Payload = PayloadInternal.Payload

/**
 * A checkpoint that may be absorbed in this pass: its entry in the transcript, and the entries it stands for.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ready {
  readonly checkpoint: number
  readonly seqs: ReadonlyArray<number>
  readonly inPlace: boolean
}

/** @internal */
export const noReport: Report = {
  level: 0,
  levels: [],
  floor: null,
  target: null,
  infeasible: null,
  checkpoint: null
}

/**
 * Makes the pass over a prompt, with nothing decided yet, so that stages run without a manager.
 *
 * **Details**
 *
 * The budget follows from the settings; `budget` names it, in tokens. Prices come from the `Estimator`, places for full
 * texts from the `SpillStore`; nothing is written there, that is done by the manager that takes the decisions.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPrompt = Effect.fnUntraced(function*(
  prompt: Prompt.Prompt,
  options?: { readonly settings?: Settings.Input; readonly budget?: number }
): Effect.fn.Return<Pass, Schema.SchemaError> {
  const settings = yield* Settings.decode(options?.settings ?? {})
  const estimator = yield* Estimator.Estimator
  const store = yield* SpillStore.SpillStore
  const view = View.fromPrompt(prompt, estimator.price)
  const budget = Budget.resolve(settings, options?.budget)
  return {
    cause: "pressure",
    aim: null,
    isPreview: false,
    closed: null,
    view,
    before: view,
    entries: View.conversation(view),
    fixed: View.systemPrice(view),
    budget,
    sizes: budget,
    scale: 1,
    count: TokenMeter.estimate(view.price),
    settings,
    cold: null,
    served: { requests: 0, answers: 0, cacheRead: 0 },
    generation: 0,
    memory: noMemory,
    written: { memory: noMemory },
    report: noReport,
    payload: () => PayloadInternal.sum(view.items.map((item) => item.message)),
    locate: SpillStore.locateIn(store),
    ready: null,
    summarise: null,
    counter: null
  }
})

/**
 * What the view of a pass occupies, in prices: the count, less what the stages before have freed, and never less than the
 * price.
 *
 * @category getters
 * @since 0.1.0
 */
export const pressureOf = (pass: Pass): number =>
  Math.max(pass.view.price, pass.count.tokens / pass.scale - (pass.before.price - pass.view.price))

/**
 * What a pass is to come down to, as a price in tokens.
 *
 * @category getters
 * @since 0.1.0
 */
export const aimOf = (pass: Pass): number => pass.aim ?? pass.sizes.target

/**
 * Ends a pass: no later stage of a {@link pipeline} runs. What was done before stays done. `reason` says why, for whoever
 * asks what a pass did.
 *
 * @category filtering
 * @since 0.1.0
 */
export const close = (self: Pass, reason: string): Pass => ({ ...self, closed: reason })

/**
 * @category models
 * @since 0.1.0
 */
export interface Stage<out E = never, out R = never> {
  (pass: Pass): Effect.Effect<Pass, E, R>
}

/**
 * Judges what a stage made of a pass: returns the pass to go on with, `after` to accept it or `before` to refuse it
 * (either with another memory), or fails.
 *
 * @category models
 * @since 0.1.0
 */
export interface Check<out E = never, out R = never> {
  (before: Pass, after: Pass): Effect.Effect<Pass, E, R>
}

/**
 * @category utility types
 * @since 0.1.0
 */
export type Any = Stage<unknown, unknown>

/**
 * @category utility types
 * @since 0.1.0
 */
export type Error<S> = S extends Stage<infer E, infer _R> ? E : never

/**
 * @category utility types
 * @since 0.1.0
 */
export type Services<S> = S extends Stage<infer _E, infer R> ? R : never

/**
 * Runs stages one after the other, until one of them closes the pass.
 *
 * @category combining
 * @since 0.1.0
 */
export const pipeline = <const Stages extends ReadonlyArray<Any>>(
  ...stages: Stages
): Stage<Error<Stages[number]>, Services<Stages[number]>> => {
  type E = Error<Stages[number]>
  type R = Services<Stages[number]>
  // Each stage is one of the tuple, so its errors and requirements are among those of all; the union is not seen through.
  const all = stages as ReadonlyArray<unknown> as ReadonlyArray<Stage<E, R>>
  return (pass) =>
    Effect.reduce(
      all,
      () => pass,
      (current, stage) => current.closed === null ? stage(current) : Effect.succeed(current)
    )
}

/**
 * Runs the stage only when the predicate holds.
 *
 * @category filtering
 * @since 0.1.0
 */
export const when: {
  (predicate: (pass: Pass) => boolean): <E, R>(self: Stage<E, R>) => Stage<E, R>
  <E, R>(self: Stage<E, R>, predicate: (pass: Pass) => boolean): Stage<E, R>
} = dual(
  2,
  <E, R>(self: Stage<E, R>, predicate: (pass: Pass) => boolean): Stage<E, R> => (pass) =>
    predicate(pass) ? self(pass) : Effect.succeed(pass)
)

/**
 * Judges the result of the stage; a pass that changed no view is not judged.
 *
 * @category filtering
 * @since 0.1.0
 */
export const guard: {
  <E2, R2 = never>(check: Check<E2, R2>): <E, R>(self: Stage<E, R>) => Stage<E | E2, R | R2>
  <E, R, E2, R2 = never>(self: Stage<E, R>, check: Check<E2, R2>): Stage<E | E2, R | R2>
} = dual(
  2,
  <E, R, E2, R2>(self: Stage<E, R>, check: Check<E2, R2>): Stage<E | E2, R | R2> => (pass) =>
    Effect.gen(function*() {
      const after = yield* self(pass)
      if (after.view === pass.view) return after
      const judged = lasting(yield* check(pass, after))
      // Of a pass that is taken back, what its stages wrote is taken back too; what the check wrote stays, and what lasts.
      pass.written.memory = judged.memory
      return judged
    })
)

/**
 * Leaves the pass as it was when the stage fails with one of the tags, and takes these errors out of the type.
 *
 * @category error handling
 * @since 0.1.0
 */
export const skipOn =
  <const Tags extends readonly [string, ...ReadonlyArray<string>]>(...tags: Tags) =>
  <E, R>(self: Stage<E, R>): Stage<Exclude<E, { readonly _tag: Tags[number] }>, R> => failing(self, tags, remembered)

/** The pass with what was remembered in it, whatever became of the stage that did. */
const remembered = (pass: Pass): Pass =>
  pass.written.memory === pass.memory ? pass : { ...pass, memory: pass.written.memory }

/** What a stage makes of a pass when it fails with one of the tags; any other failure stays one. */
const failing = <E, R, Tags extends ReadonlyArray<string>>(
  self: Stage<E, R>,
  tags: Tags,
  instead: (pass: Pass, tag: string) => Pass
): Stage<Exclude<E, { readonly _tag: Tags[number] }>, R> =>
(pass) =>
  Effect.catch(self(pass), (error): Effect.Effect<Pass, Exclude<E, { readonly _tag: Tags[number] }>> => {
    const tag = typeof error === "object" && error !== null && "_tag" in error ? error._tag : undefined
    if (typeof tag === "string" && tags.includes(tag)) return Effect.succeed(instead(pass, tag))
    // What is not one of the tags is in the rest of the union; TypeScript does not narrow generics by exclusion.
    return Effect.fail(error as Exclude<E, { readonly _tag: Tags[number] }>)
  })

/**
 * Ends the pass when the stage fails with one of the tags, and takes these errors out of the type: a gate that refuses closes
 * the pass, and does not fail it.
 *
 * @category error handling
 * @since 0.1.0
 */
export const closeOn =
  <const Tags extends readonly [string, ...ReadonlyArray<string>]>(...tags: Tags) =>
  <E, R>(self: Stage<E, R>): Stage<Exclude<E, { readonly _tag: Tags[number] }>, R> =>
    failing(self, tags, (pass, tag) => close(remembered(pass), tag))

/**
 * Runs another stage on the pass as it was when the stage fails.
 *
 * @category error handling
 * @since 0.1.0
 */
export const orElse: {
  <E2, R2>(that: Stage<E2, R2>): <E, R>(self: Stage<E, R>) => Stage<E2, R | R2>
  <E, R, E2, R2>(self: Stage<E, R>, that: Stage<E2, R2>): Stage<E2, R | R2>
} = dual(
  2,
  <E, R, E2, R2>(self: Stage<E, R>, that: Stage<E2, R2>): Stage<E2, R | R2> => (pass) =>
    Effect.catch(self(pass), (): Effect.Effect<Pass, E2, R2> => that(pass))
)

/**
 * Interrupts the stage after `duration` and runs `orElse` on the pass as it was.
 *
 * @category error handling
 * @since 0.1.0
 */
export const timeoutOrElse = <E2, R2>(options: {
  readonly duration: Duration.Input
  readonly orElse: Stage<E2, R2>
}) =>
<E, R>(self: Stage<E, R>): Stage<E | E2, R | R2> =>
(pass) => Effect.timeoutOrElse(self(pass), { duration: options.duration, orElse: () => options.orElse(pass) })

/**
 * Runs the stage only while the view is above the target.
 *
 * @category filtering
 * @since 0.1.0
 */
export const untilTarget = <E, R>(self: Stage<E, R>): Stage<E, R> => when(self, (pass) => pass.view.price > aimOf(pass))
