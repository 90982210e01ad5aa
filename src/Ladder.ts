/**
 * An ordered list of rungs, climbed until the view fits, and no further.
 *
 * A ladder is a stage. It owns what rungs need not know: when to stop, what to aim at when the target cannot be reached,
 * and what to do when nothing legal fits.
 *
 * **Details**
 *
 * One run is enough. Climbing to the target either reaches it, which proves that the floor (the price after the whole
 * ladder) is not above it, or is the run to the end, whose price is the floor; a pass to a higher aim is then a prefix
 * of its edits. With `B` the limit of the budget:
 *
 * - floor at most the target: the pass aims at the target.
 * - floor between target and `B`: the pass aims a quarter of the way from the floor to the trigger (to `B`, when the
 *   floor is too close below the trigger), and acts only when the view is three quarters of the way there. Aiming lower
 *   would rewrite the cached prefix at every request: one real session compacted in 969 of 988 requests.
 * - floor `B` or more: the whole ladder, then {@link Rung.fit}. What is still above `B` is infeasible: it is published
 *   with the dearest entries, and sent or failed as the settings say.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import { type Pipeable, pipeArguments } from "effect/Pipeable"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "./CompactionEvent.ts"
import * as Gate from "./Gate.ts"
import * as Climb from "./ladder/climb.ts"
import * as Draft from "./ladder/draft.ts"
import * as Instructions from "./ladder/instructions.ts"
import * as Rung from "./Rung.ts"
import * as Stage from "./Stage.ts"
import type * as View from "./View.ts"

/**
 * Fails a request when nothing legal fits its budget and `whenInfeasible` is `"fail"`: the smallest view is `over` tokens
 * above the budget, and `holders` are its dearest entries. Nothing was committed.
 *
 * @category errors
 * @since 0.1.0
 */
export class BudgetInfeasible extends Schema.TaggedError<BudgetInfeasible>("effect-compaction/BudgetInfeasible")(
  "BudgetInfeasible",
  {
    over: Schema.Natural,
    budget: Schema.Int,
    holders: Schema.Array(CompactionEvent.Holder)
  }
) {
  override get message() {
    const holders = this.holders.map((holder) => `entry ${holder.seq} (${holder.tokens} tokens)`).join(", ")
    return `The smallest view that keeps what must be kept is ${this.over} tokens above the budget of ${this.budget}. `
      + `It is held by ${holders}. Raise the budget (window, maxTokens), lower protectedToolResults, or set `
      + "whenInfeasible to \"send\"."
  }
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Ladder<out E = never, out R = never, out Names extends string = string>
  extends Stage.Stage<E | BudgetInfeasible, R>, Pipeable
{
  readonly rungs: ReadonlyArray<Rung.Rung<E, R, Names>>
  /** The names that a rung was to stand at, and that no rung has: such a ladder fails. */
  readonly unknown: ReadonlyArray<UnknownRung>
}

/**
 * Fails a ladder that was to be changed at a rung that is not in it. Where the names of the rungs are known to the compiler
 * a wrong one does not compile.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnknownRung extends Schema.TaggedError<UnknownRung>("effect-compaction/UnknownRung")("UnknownRung", {
  name: Schema.String,
  names: Schema.Array(Schema.String)
}) {
  override get message() {
    const names = this.names.map((name) => JSON.stringify(name)).join(", ")
    return `There is no rung ${JSON.stringify(this.name)} in the ladder: write ${
      this.names.length === 0 ? "a rung with Ladder.append, the ladder has none" : `one of ${names}`
    }.`
  }
}

/**
 * Climbs a ladder until the price of the view is at most `target`, in tokens, whatever the settings aim at.
 *
 * @category running
 * @since 0.1.0
 */
export const climb = <E, R>(
  self: Ladder<E, R>,
  pass: Stage.Pass,
  options: { readonly target: number }
): Effect.Effect<Stage.Pass, E, R> =>
  Effect.map(
    known(self, Climb.stage(self.rungs)(pass, { price: options.target, entries: Infinity })),
    ({ draft, level, memory, view }) => ({
      ...pass,
      view,
      memory,
      report: {
        ...pass.report,
        level,
        levels: Draft.levelsOf(draft, draft.edits.length),
        target: options.target
      }
    })
  )

/** A tenth of the budget: the least distance that is worth a boundary near the budget. */
const tenth = 0.1

/** The aim and the line to act at, for a floor between the target and the budget; in tokens. */
const between = (floor: number, sizes: Stage.Pass["sizes"]): { readonly aim: number; readonly line: number } => {
  const { limit, trigger } = sizes
  const nearTrigger = floor + tenth * limit <= trigger
  const top = nearTrigger ? trigger : limit
  return {
    aim: Math.floor(floor + 0.25 * (top - floor)),
    line: nearTrigger ? trigger : Math.floor(floor + 0.75 * (top - floor))
  }
}

const holderCount = 3

/**
 * The three dearest entries of a view, of equals the older first; synthetic results are none.
 *
 * @category getters
 * @since 0.1.0
 */
export const holdersOf = (view: View.View): ReadonlyArray<CompactionEvent.Holder> =>
  view.items
    .filter((item) => item.seq >= 0)
    .sort((a, b) => b.price - a.price || a.seq - b.seq)
    .slice(0, holderCount)
    .map((item) => ({ seq: item.seq, tokens: item.price }))

/**
 * The seqs of the holders of the last request that was infeasible; `null` when the last request was feasible.
 *
 * @category memory
 * @since 0.1.0
 */
export const infeasible = Stage.memory("Ladder/infeasible", Schema.NullOr(Schema.Array(Schema.Natural)), null)

/** The generation in which a pass that was called for could decide nothing. */
const powerlessIn = Stage.memory("Ladder/powerless", Schema.NullOr(Schema.Natural), null)

/** The pass with the first `count` edits of a draft; the same pass when they do not lower the price. */
const commit = (pass: Stage.Pass, draft: Draft.Writable, count: number, report: Partial<Stage.Report>): Stage.Pass => {
  const view = Draft.toView(draft, count)
  if (view.price >= pass.view.price) return { ...pass, report: { ...pass.report, ...report } }
  return {
    ...pass,
    view,
    report: { ...pass.report, level: Draft.levelOf(draft, count), levels: Draft.levelsOf(draft, count), ...report }
  }
}

/** The floor is `B` or more: the whole ladder was climbed; what is above `B` still is made to fit, if it can be. */
const fit = Effect.fnUntraced(function*(pass: Stage.Pass, draft: Draft.Writable, levels: number) {
  const { limit } = pass.sizes
  const floor = draft.price
  if (draft.price > limit && Rung.fit.run._tag === "propose") {
    Climb.propose(draft, Rung.fit.run, levels, { price: limit, entries: Infinity })
  }
  const count = draft.edits.length
  if (draft.price <= limit) return commit(pass, draft, count, { floor })
  const over = draft.price - limit
  const smallest = Draft.toView(draft, count)
  const holders = holdersOf(smallest)
  const seqs = holders.map((holder) => holder.seq)
  const known = Stage.recall(pass, infeasible)
  if (known === null || known.length !== seqs.length || known.some((seq, at) => seq !== seqs[at])) {
    yield* CompactionEvent.publish({ _tag: "Infeasible", over, budget: limit, holders })
  }
  const named = Stage.remember(pass, infeasible, seqs)
  if (pass.settings.whenInfeasible === "fail") {
    return yield* new BudgetInfeasible({ over, budget: limit, holders })
  }
  const worth = pass.view.price - draft.price >= tenth * limit
  return commit(named, draft, worth ? count : 0, { floor, infeasible: { over, holders } })
})

/** The number of entries a pass comes down to, when `maxMessages` called for it. */
const entriesAim = ({ entries, settings }: Stage.Pass): number =>
  settings.maxMessages !== undefined && entries > settings.maxMessages
    ? Math.floor(settings.maxMessages * settings.targetUsage)
    : Infinity

/** After an aim that could not be reached, so many new entries, as a share of `maxMessages`, until it is tried again. */
const rearm = 0.25

/** Publishes an aim in entries that could not be reached, once, until enough entries have come. */
const nameMessages = Effect.fnUntraced(function*(pass: Stage.Pass, entries: number, aim: number) {
  const armedAt = pass.view.length + Math.ceil((pass.settings.maxMessages ?? 0) * rearm)
  yield* CompactionEvent.publish({ _tag: "MessagesAboveAim", entries, aim, armedAt })
  return Stage.remember(pass, Gate.messagesArmedAt, armedAt)
})

/** Publishes, once for each generation, that a count above the price called for a pass that could decide nothing. */
const powerless = Effect.fnUntraced(function*(pass: Stage.Pass) {
  const { count, generation, sizes, view } = pass
  if (count.tokens <= view.price || Stage.recall(pass, powerlessIn) === generation) return pass
  yield* CompactionEvent.publish({
    _tag: "CompactionPowerless",
    count: count.tokens,
    kind: count.kind,
    price: view.price,
    target: sizes.target,
    ratio: count.ratio,
    generation
  })
  return Stage.remember(pass, powerlessIn, generation)
})

/** Publishes which messages a pass took the rules of people from, where rules are to stay. */
const nameDropped = (before: Stage.Pass, after: Stage.Pass): Effect.Effect<void> => {
  if (after.view === before.view || before.settings.standingInstructions === 0) return Effect.void
  const decided = after.view.decisions.slice(before.view.decisions.length)
  const seqs = Instructions.lostBy(before.view, decided)
  return seqs.length === 0 ? Effect.void : CompactionEvent.publish({ _tag: "InstructionsDropped", seqs })
}

/**
 * A pass that somebody asked for, or that an overflow left no choice about, comes down to its aim without asking whether a
 * boundary is worth it. After an overflow what the rungs leave above the aim is made to fit, where there are rungs at all.
 */
const climbAsked = <E, R>(rungs: ReadonlyArray<Rung.Rung<E, R>>) => {
  const climbTo = Climb.stage(rungs)
  return Effect.fnUntraced(function*(given: Stage.Pass) {
    const aim = { price: Stage.aimOf(given), entries: Infinity }
    const { draft, memory } = yield* climbTo(given, aim)
    const pass = { ...given, memory }
    if (given.cause === "overflow" && rungs.length > 0 && draft.price > aim.price && Rung.fit.run._tag === "propose") {
      Climb.propose(draft, Rung.fit.run, rungs.length, aim)
    }
    return commit(pass, draft, draft.edits.length, { target: aim.price })
  })
}

const run = <E, R>(rungs: ReadonlyArray<Rung.Rung<E, R>>): Stage.Stage<E | BudgetInfeasible, R> => {
  const climbTo = Climb.stage(rungs)
  const asked = climbAsked(rungs)
  return Effect.fnUntraced(function*(given: Stage.Pass) {
    if (given.cause !== "pressure") return yield* asked(given)
    let pass = given
    const { limit, target } = pass.sizes
    const entries = entriesAim(pass)
    // Called for by the number of entries alone: what the request occupies is no reason to shorten anything.
    const isCrowded = entries < Infinity && pass.count.tokens < pass.budget.trigger
    const { draft, memory } = yield* climbTo(pass, { price: isCrowded ? Infinity : target, entries })
    pass = { ...pass, memory }
    if (draft.entries > entries) pass = yield* nameMessages(pass, draft.entries, entries)
    if (isCrowded) return commit(pass, draft, draft.edits.length, {})
    const isFirst = pass.view === pass.before
    if (isFirst && draft.price >= pass.view.price && draft.price < limit) return yield* powerless(pass)
    if (draft.price <= target) return commit(pass, draft, draft.edits.length, { target })
    const floor = draft.price
    if (floor >= limit) return yield* fit(pass, draft, rungs.length)
    const { aim, line } = between(floor, pass.sizes)
    if (Stage.pressureOf(pass) < line) return commit(pass, draft, 0, { floor })
    return commit(pass, draft, Draft.editsTo(draft, aim), { floor, target: aim })
  })
}

const named = <E, R>(self: Stage.Stage<E, R>): Stage.Stage<E, R> => (pass) =>
  Effect.tap(self(pass), (after) => nameDropped(pass, after))

/** What a ladder does, unless it was to be changed at a rung that is not in it. */
const known = <A, E, R>(self: Pick<Ladder, "unknown">, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const [first] = self.unknown
  // It is among the errors of every ladder whose names are not all known to the compiler.
  return first === undefined ? effect : Effect.fail(first) as unknown as Effect.Effect<A, E, R>
}

const fromRungs = <E, R, Names extends string>(
  rungs: ReadonlyArray<Rung.Rung<E, R, Names>>,
  unknown: ReadonlyArray<UnknownRung> = []
): Ladder<E, R, Names> => {
  const climbing = named(run(rungs))
  return Object.assign((pass: Stage.Pass) => known({ unknown }, climbing(pass)), {
    rungs,
    unknown,
    pipe() {
      return pipeArguments(this, arguments)
    }
  })
}

/**
 * Makes a ladder of rungs, first to last. A level is the position of a rung, from 1.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <const Rungs extends ReadonlyArray<Rung.Any>>(
  ...rungs: Rungs
): Ladder<Rung.Error<Rungs[number]>, Rung.Services<Rungs[number]>, Rung.Name<Rungs[number]>> => {
  type E = Rung.Error<Rungs[number]>
  type R = Rung.Services<Rungs[number]>
  type Names = Rung.Name<Rungs[number]>
  // Each rung is one of the tuple, so its errors and requirements are among those of all; the union is not seen through.
  return fromRungs(rungs as ReadonlyArray<unknown> as ReadonlyArray<Rung.Rung<E, R, Names>>)
}

/**
 * The ladder of `context-simple`: eight rungs that only truncate at first, and remove more and more.
 *
 * @category constructors
 * @since 0.1.0
 */
export const progressive: Ladder<never, never, Progressive> = make(
  Rung.truncateToolResults({ fraction: 0.25 }),
  Rung.truncateToolResults({ fraction: 0.5 }),
  Rung.remove({ relax: 1 }),
  Rung.truncateToolResults({ fraction: 0.75 }),
  Rung.remove({ relax: 0.6 }),
  Rung.truncateToolResults({ fraction: 1 }),
  Rung.remove({ relax: 0.3 }),
  Rung.lastResort({ relax: 0.3 })
  // What the constructors name them, which no type says of a fraction.
) as Ladder<never, never, Progressive>

/** The names of its rungs. */
type Progressive =
  | "truncate-25"
  | "truncate-50"
  | "remove"
  | "truncate-75"
  | "remove-0.6"
  | "truncate-100"
  | "remove-0.3"
  | "last-resort"

/**
 * The ladder of a policy that names none: results go before messages do, and the words of people go last. See
 * `Policy.recommended`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const recommended: Ladder<never, never, Recommended> = make(
  Rung.truncateToolResults({ fraction: 1 }),
  Rung.clearToolResults({ keep: 3 }),
  Rung.truncateLarge({ over: 0.3, keep: 0.2 }),
  ...[1, 0.6, 0.3, 0].map((relax) => Rung.removeOthers({ relax, keep: 12 })),
  Rung.shortenPeople({ share: 0.1, above: 0.5 })
  // As above.
) as Ladder<never, never, Recommended>

/** The names of its rungs. */
type Recommended =
  | "truncate-100"
  | "clear"
  | "truncate-large"
  | `remove-others${"" | "-0.6" | "-0.3" | "-0"}`
  | "shorten-people"

/** The names among these that some rung has for certain: not those of which the compiler knows only a pattern. */
type Certain<Names extends string> = Names extends string ? {} extends Record<Names, 1> ? never : Names : never

/** What a change at a rung of that name may fail with. */
type Missing<Names extends string, Name extends string> = [Name] extends [Certain<Names>] ? never : UnknownRung

/** Refuses a name that none of the rungs has. */
type Has<Names extends string, Name extends string> = string extends Name ? unknown
  : [Name] extends [Names] ? unknown
  : { readonly "there is no rung of that name": Name }

const unknownIn = (self: Ladder<unknown, unknown>, name: string): ReadonlyArray<UnknownRung> =>
  self.rungs.some((each) => each.name === name)
    ? self.unknown
    : [...self.unknown, new UnknownRung({ name, names: self.rungs.map((each) => each.name) })]

/**
 * Adds a rung at the end.
 *
 * @category combining
 * @since 0.1.0
 */
export const append: {
  <E2, R2, N2 extends string>(
    rung: Rung.Rung<E2, R2, N2>
  ): <E, R, N extends string>(self: Ladder<E, R, N>) => Ladder<E | E2, R | R2, N | N2>
  <E, R, N extends string, E2, R2, N2 extends string>(
    self: Ladder<E, R, N>,
    rung: Rung.Rung<E2, R2, N2>
  ): Ladder<E | E2, R | R2, N | N2>
} = dual(
  2,
  <E, R, N extends string, E2, R2, N2 extends string>(
    self: Ladder<E, R, N>,
    rung: Rung.Rung<E2, R2, N2>
  ): Ladder<E | E2, R | R2, N | N2> => fromRungs<E | E2, R | R2, N | N2>([...self.rungs, rung], self.unknown)
)

/** Puts a rung somewhere at a rung of a name. */
interface At {
  <const Name extends string, E2, R2, N2 extends string>(
    name: Name,
    rung: Rung.Rung<E2, R2, N2>
  ): <E, R, N extends string>(
    self: Ladder<E, R, N> & Has<N, Name>
  ) => Ladder<E | E2 | Missing<N, Name>, R | R2, N | N2>
  <E, R, N extends string, const Name extends string, E2, R2, N2 extends string>(
    self: Ladder<E, R, N> & Has<N, Name>,
    name: Name,
    rung: Rung.Rung<E2, R2, N2>
  ): Ladder<E | E2 | Missing<N, Name>, R | R2, N | N2>
}

/**
 * Adds a rung before the first one of that name. A name that no rung has does not compile where the names are known, and
 * fails the ladder with {@link UnknownRung} where they are not.
 *
 * @category combining
 * @since 0.1.0
 */
export const insertBefore: At = dual(
  3,
  <E, R, E2, R2>(self: Ladder<E, R>, name: string, rung: Rung.Rung<E2, R2>): Ladder<E | E2, R | R2> => {
    const found = self.rungs.findIndex((each) => each.name === name)
    const at = found < 0 ? self.rungs.length : found
    const rungs = [...self.rungs.slice(0, at), rung, ...self.rungs.slice(at)]
    return fromRungs<E | E2, R | R2, string>(rungs, unknownIn(self, name))
  }
)

/**
 * Puts another rung in the place of every one of that name. Of a name that no rung has the same is true as in
 * {@link insertBefore}.
 *
 * @category combining
 * @since 0.1.0
 */
export const replace: At = dual(
  3,
  <E, R, E2, R2>(self: Ladder<E, R>, name: string, rung: Rung.Rung<E2, R2>): Ladder<E | E2, R | R2> =>
    fromRungs<E | E2, R | R2, string>(
      self.rungs.map((each) => each.name === name ? rung : each),
      unknownIn(self, name)
    )
)
