/** The compiler is the test: `npm run check` fails when an inferred type is not exactly what stands here. */
import { assert, describe, it } from "@effect/vitest"
import * as Checkpoint from "effect-compaction/Checkpoint"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Gate from "effect-compaction/Gate"
import * as Guard from "effect-compaction/Guard"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import type * as SessionStore from "effect-compaction/SessionStore"
import * as Stage from "effect-compaction/Stage"
import type * as Summarizer from "effect-compaction/Summarizer"
import type * as View from "effect-compaction/View"
import type * as DecisionModel from "effect/ai/DecisionModel"
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { pipe } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { session } from "./core/conversation.ts"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
const ok = <_T extends true>() => {}

// A team's own stage: an error and a service of its own.
class IndexLost extends Schema.TaggedError<IndexLost>("app/IndexLost")("IndexLost", {}) {}
class IndexStale extends Schema.TaggedError<IndexStale>("app/IndexStale")("IndexStale", {}) {}
class CodeIndex extends Context.Service<CodeIndex, {
  readonly shorten: (pass: Stage.Pass) => Effect.Effect<Stage.Pass, IndexLost | IndexStale>
}>()("app/CodeIndex") {}
class Clockwork extends Context.Service<Clockwork, { readonly ticks: number }>()("app/Clockwork") {}

const shorten = Effect.fnUntraced(function*(pass: Stage.Pass) {
  return yield* (yield* CodeIndex).shorten(pass)
})
const shrinks: Stage.Check<IndexStale, Clockwork> = (before, after) =>
  Effect.flatMap(
    Clockwork,
    ({ ticks }) => ticks === 0 ? Effect.fail(new IndexStale()) : Effect.succeed(ticks > 1 ? after : before)
  )

// A function that takes and gives a pass is a stage, as it is inferred.
ok<Equal<typeof shorten, (pass: Stage.Pass) => Effect.Effect<Stage.Pass, IndexLost | IndexStale, CodeIndex>>>()
const asStage: Stage.Stage<IndexLost | IndexStale, CodeIndex> = shorten

// ---- rungs -------------------------------------------------------------------------------------------------------
const own = Rung.make("own", shorten)
ok<Equal<typeof own, Rung.Rung<IndexLost | IndexStale, CodeIndex, "own">>>()
ok<Equal<Rung.Error<typeof own>, IndexLost | IndexStale>>()
ok<Equal<Rung.Services<typeof own>, CodeIndex>>()
const builtIn = Rung.truncateToolResults({ fraction: 0.5 })
ok<Equal<typeof builtIn, Rung.Rung<never, never, `truncate-${number}`>>>()
ok<Equal<Rung.Error<typeof builtIn>, never>>()
const alone = Rung.stage(own)
ok<Equal<typeof alone, Stage.Stage<IndexLost | IndexStale, CodeIndex>>>()

// ---- a rung that asks a model ---------------------------------------------------------------------------------------
const judged = Rung.decide({ calls: 2, timeout: "5 seconds" })
ok<Equal<typeof judged, Rung.Rung<never, DecisionModel.DecisionModel, "decide">>>()
const strictly = Rung.decide({ whenFailed: "fail" })
ok<Equal<typeof strictly, Rung.Rung<Rung.DecideFailed, DecisionModel.DecisionModel, "decide">>>()
const judging = Ladder.insertBefore(Ladder.recommended, "remove-others", strictly)
ok<Equal<Stage.Error<typeof judging>, Rung.DecideFailed | Ladder.BudgetInfeasible>>()
ok<Equal<Stage.Services<typeof judging>, DecisionModel.DecisionModel>>()
const judgingManager = ContextManager.make({ ladder: judging })
ok<
  Equal<
    typeof judgingManager,
    Effect.Effect<
      ContextManager.ContextManager<Rung.DecideFailed | Policy.PassError>,
      Policy.PolicyError,
      DecisionModel.DecisionModel | Scope.Scope
    >
  >
>()

// ---- being asked before a pass is committed ----------------------------------------------------------------------------
const askedFirst = Policy.beforeCommit(Policy.passOf(Ladder.make(own)), {
  ask: () =>
    Effect.flatMap(
      Clockwork,
      ({ ticks }) => ticks === 0 ? Effect.fail(new IndexStale()) : Effect.succeed(Policy.accept)
    )
})
ok<Equal<typeof askedFirst, Policy.Pass<IndexLost | IndexStale | Policy.PassError, CodeIndex | Clockwork>>>()
const askedOnly = Policy.beforeCommit(Policy.passOf(Ladder.progressive), {
  ask: () => Effect.succeed(Policy.refuse("no"))
})
ok<Equal<typeof askedOnly, Policy.Pass<Policy.PassError, never>>>()
const askedManager = ContextManager.make({ pass: askedFirst })
ok<
  Equal<
    typeof askedManager,
    Effect.Effect<
      ContextManager.ContextManager<IndexLost | IndexStale | Policy.PassError>,
      Policy.PolicyError,
      CodeIndex | Clockwork | Scope.Scope
    >
  >
>()

// ---- summaries: gate, ladder, clear floor and shrink guard in one pipeline --------------------------------------------
const absorbing = Stage.guard(Checkpoint.absorb, Guard.shrinks)
ok<Equal<typeof absorbing, Stage.Stage<Guard.SummaryNotSmaller>>>()
const whole = Stage.pipeline(
  Gate.provenance,
  Stage.guard(Stage.pipeline(absorbing, Ladder.make(own)), Guard.clearAtLeast)
)
ok<
  Equal<
    Stage.Error<typeof whole>,
    | Gate.ProvenanceRefused
    | Guard.ClearFloorUnsatisfied
    | Guard.SummaryNotSmaller
    | Ladder.BudgetInfeasible
    | IndexLost
    | IndexStale
  >
>()
ok<Equal<Stage.Services<typeof whole>, CodeIndex>>()
const noRefusal = pipe(whole, Stage.skipOn("ProvenanceRefused"))
ok<Equal<Stage.Error<typeof noRefusal>, Exclude<Stage.Error<typeof whole>, Gate.ProvenanceRefused>>>()
const noFloor = pipe(whole, Stage.skipOn("ClearFloorUnsatisfied"))
ok<Equal<Stage.Error<typeof noFloor>, Exclude<Stage.Error<typeof whole>, Guard.ClearFloorUnsatisfied>>>()
const noLarger = pipe(whole, Stage.skipOn("SummaryNotSmaller"))
ok<Equal<Stage.Error<typeof noLarger>, Exclude<Stage.Error<typeof whole>, Guard.SummaryNotSmaller>>>()
const onlyLadder = pipe(whole, Stage.skipOn("ProvenanceRefused", "ClearFloorUnsatisfied", "SummaryNotSmaller"))
ok<Equal<Stage.Error<typeof onlyLadder>, Ladder.BudgetInfeasible | IndexLost | IndexStale>>()
const silent = pipe(
  onlyLadder,
  Stage.skipOn("BudgetInfeasible", "IndexLost", "IndexStale")
)
ok<Equal<typeof silent, Stage.Stage<never, CodeIndex>>>()
// The stages of the default pass that make summaries fail with nothing.
ok<Equal<typeof Checkpoint.absorbSmaller, Stage.Stage>>()
ok<Equal<typeof Checkpoint.write, Stage.Stage>>()
ok<
  Equal<
    ContextManager.ManualCompactionError,
    | ContextManager.CompactionBusy
    | ContextManager.CompactionCancelled
    | ContextManager.CommitFailed
    | ContextManager.PersistenceFailed
    | ContextManager.SpanChanged
    | Summarizer.SummarizerFailed
    | Summarizer.SummaryTimedOut
    | Summarizer.SummaryTruncated
    | Summarizer.SummaryEmpty
    | Summarizer.NotASummary
    | Summarizer.SummaryUnfaithful
    | Guard.SummaryNotSmaller
  >
>()

// ---- stages ------------------------------------------------------------------------------------------------------
const both = Stage.pipeline(asStage, Rung.stage(builtIn), Gate.overhead)
ok<Equal<typeof both, Stage.Stage<IndexLost | IndexStale | Gate.TargetBelowOverhead, CodeIndex>>>()
const nothing = Stage.pipeline()
ok<Equal<typeof nothing, Stage.Stage>>()

const guarded = pipe(asStage, Stage.guard(shrinks), Stage.guard(Guard.clearAtLeast))
ok<Equal<Stage.Error<typeof guarded>, IndexLost | IndexStale | Guard.ClearFloorUnsatisfied>>()
ok<Equal<Stage.Services<typeof guarded>, CodeIndex | Clockwork>>()
const guardedFirst = Stage.guard(asStage, Guard.clearAtLeast)
ok<Equal<Stage.Error<typeof guardedFirst>, IndexLost | IndexStale | Guard.ClearFloorUnsatisfied>>()
ok<Equal<Stage.Services<typeof guardedFirst>, CodeIndex>>()

const softened = pipe(guarded, Stage.skipOn("IndexStale", "ClearFloorUnsatisfied"))
ok<Equal<Stage.Error<typeof softened>, IndexLost>>()
ok<Equal<Stage.Services<typeof softened>, CodeIndex | Clockwork>>()
const untouched = pipe(asStage, Stage.skipOn("NoSuchTag"))
ok<Equal<Stage.Error<typeof untouched>, IndexLost | IndexStale>>()

const instead = pipe(asStage, Stage.orElse(Stage.guard(Rung.stage(builtIn), shrinks)))
ok<Equal<typeof instead, Stage.Stage<IndexStale, CodeIndex | Clockwork>>>()
const timed = pipe(asStage, Stage.timeoutOrElse({ duration: "30 seconds", orElse: Ladder.progressive }))
ok<Equal<typeof timed, Stage.Stage<IndexLost | IndexStale | Ladder.BudgetInfeasible, CodeIndex>>>()
const sometimes = pipe(asStage, Stage.when(Gate.threshold), Stage.untilTarget)
ok<Equal<typeof sometimes, Stage.Stage<IndexLost | IndexStale, CodeIndex>>>()

// ---- ladders -----------------------------------------------------------------------------------------------------
type Progressive =
  | "truncate-25"
  | "truncate-50"
  | "remove"
  | "truncate-75"
  | "remove-0.6"
  | "truncate-100"
  | "remove-0.3"
  | "last-resort"
ok<Equal<typeof Ladder.progressive, Ladder.Ladder<never, never, Progressive>>>()
ok<Equal<Stage.Error<typeof Ladder.progressive>, Ladder.BudgetInfeasible>>()
ok<Equal<Stage.Services<typeof Ladder.progressive>, never>>()

const ladder = Ladder.make(builtIn, own, Rung.make("softened", softened))
ok<
  Equal<
    typeof ladder,
    Ladder.Ladder<IndexLost | IndexStale, CodeIndex | Clockwork, "own" | "softened" | `truncate-${number}`>
  >
>()
ok<Equal<Stage.Error<typeof ladder>, IndexLost | IndexStale | Ladder.BudgetInfeasible>>()
ok<Equal<Stage.Services<typeof ladder>, CodeIndex | Clockwork>>()
const empty = Ladder.make()
ok<Equal<typeof empty, Ladder.Ladder<never, never, never>>>()

// A rung with an error and a service of its own joins the default ladder in three lines.
const withIndex = Ladder.progressive.pipe(
  Ladder.insertBefore("remove", Rung.make("index", shorten))
)
ok<Equal<typeof withIndex, Ladder.Ladder<IndexLost | IndexStale, CodeIndex, Progressive | "index">>>()
const appended = Ladder.progressive.pipe(Ladder.append(own), Ladder.replace("remove", Rung.make("softened", softened)))
ok<
  Equal<
    typeof appended,
    Ladder.Ladder<IndexLost | IndexStale, CodeIndex | Clockwork, Progressive | "own" | "softened">
  >
>()

// Where the compiler knows no name, or only a pattern of it, the ladder may fail with the name that is not there.
declare const anyName: string
declare const read: Ladder.Ladder
const dynamic = () => [
  Ladder.insertBefore(read, "remove", own),
  Ladder.replace(Ladder.progressive, anyName, own),
  Ladder.insertBefore(Ladder.make(builtIn), "truncate-50", own)
]
ok<
  Equal<Rung.Error<ReturnType<typeof dynamic>[number]["rungs"][number]>, IndexLost | IndexStale | Ladder.UnknownRung>
>()
// The name of what is made of a number is known where the number is.
const relaxed = Ladder.make(Rung.remove({ relax: 1 }), Rung.remove({ relax: 0.6 }))
ok<Equal<typeof relaxed, Ladder.Ladder<never, never, "remove" | "remove-0.6">>>()

declare const pass: Stage.Pass
const climb = () => Ladder.climb(ladder, pass, { target: 0 })
ok<Equal<ReturnType<typeof climb>, Effect.Effect<Stage.Pass, IndexLost | IndexStale, CodeIndex | Clockwork>>>()
const handled = () => climb().pipe(Effect.catchTag("IndexLost", () => Effect.succeed(pass)))
ok<Equal<Effect.Error<ReturnType<typeof handled>>, IndexStale>>()

// ---- managers ----------------------------------------------------------------------------------------------------
ok<Equal<typeof Policy.pass, Policy.Pass<Policy.PassError>>>()
ok<
  Equal<
    Policy.PassError,
    Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied | Gate.TargetBelowOverhead
  >
>()
const standard = () => ContextManager.make()
ok<
  Equal<
    ReturnType<typeof standard>,
    Effect.Effect<ContextManager.ContextManager<Policy.PassError>, Policy.PolicyError, Scope.Scope>
  >
>()
const set = () => ContextManager.make({ settings: { window: 200_000 } })
ok<Equal<ReturnType<typeof set>, ReturnType<typeof standard>>>()

const indexed = Policy.passOf(withIndex)
ok<Equal<typeof indexed, Policy.Pass<IndexLost | IndexStale | Policy.PassError, CodeIndex>>>()
const custom = () => ContextManager.make({ pass: Policy.passFrom(softened) })
ok<
  Equal<
    ReturnType<typeof custom>,
    Effect.Effect<ContextManager.ContextManager<IndexLost>, Policy.PolicyError, CodeIndex | Clockwork | Scope.Scope>
  >
>()
const infallible = () => ContextManager.make({ pass: Policy.passFrom() })
ok<
  Equal<
    ReturnType<typeof infallible>,
    Effect.Effect<ContextManager.ContextManager, Policy.PolicyError, Scope.Scope>
  >
>()

// A ladder comes with the errors of the pass around it, a whole pass with its own alone.
const laddered = () => ContextManager.make({ ladder: withIndex })
ok<
  Equal<
    ReturnType<typeof laddered>,
    Effect.Effect<
      ContextManager.ContextManager<IndexLost | IndexStale | Policy.PassError>,
      Policy.PolicyError,
      CodeIndex | Scope.Scope
    >
  >
>()

/** Where a store is in the context, the session may be lost to another process. */
type Lasting = IndexLost | IndexStale | Policy.PassError | SessionStore.SessionLost

class AppContext extends ContextManager.Service<AppContext>()("app/AppContext", { pass: indexed }) {}
ok<Equal<AppContext["Service"], ContextManager.ContextManager<Lasting>>>()
ok<Equal<typeof AppContext.layer, Layer.Layer<AppContext, ContextManager.OpenError, CodeIndex>>>()
ok<Equal<typeof AppContext.key, "app/AppContext">>()

class PlainContext extends ContextManager.Service<PlainContext>()("app/PlainContext") {}
ok<Equal<PlainContext["Service"], ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>>>()
ok<Equal<typeof PlainContext.layer, Layer.Layer<PlainContext, ContextManager.OpenError>>>()

const use = Effect.gen(function*() {
  return yield* (yield* AppContext).request
})
ok<
  Equal<
    typeof use,
    Effect.Effect<ContextManager.Request, Lasting, AppContext>
  >
>()
const caught = use.pipe(Effect.catchTag(["IndexLost", "IndexStale"], () => Effect.succeed(null)))
ok<Equal<Effect.Error<typeof caught>, Policy.PassError | SessionStore.SessionLost>>()

// A manager that may fail in fewer ways stands for one that may fail in more, and not the other way round.
declare const certain: ContextManager.ContextManager
declare const uncertain: ContextManager.ContextManager<IndexLost>
const wider: () => ContextManager.ContextManager<IndexLost> = () => certain
// @ts-expect-error: the failure would be lost
const narrower: () => ContextManager.ContextManager = () => uncertain

// ---- what does not compile ------------------------------------------------------------------------------------------
const refused = [
  // @ts-expect-error: a setting that does not exist
  () => ContextManager.make({ settings: { windows: 1 } }),
  // @ts-expect-error: a setting of another type
  () => ContextManager.make({ settings: { window: "200k" } }),
  // @ts-expect-error: a shape that does not exist
  () => ContextManager.make({ settings: { shape: "tail" } }),
  // @ts-expect-error: a pass is made of stages
  () => Policy.passFrom((self: Stage.Pass) => self),
  // @ts-expect-error: a bare ladder is no pass
  () => ContextManager.make({ pass: Ladder.progressive }),
  // @ts-expect-error: nor is a rung as a stage
  () => ContextManager.make({ pass: Rung.stage(own) }),
  // @ts-expect-error: nor is a pipeline, which may have no gate
  () => ContextManager.make({ pass: Stage.pipeline(Ladder.progressive) }),
  // @ts-expect-error: a pass is no ladder
  () => ContextManager.make({ ladder: Policy.pass }),
  // @ts-expect-error: no rung of that name
  () => Ladder.progressive.pipe(Ladder.insertBefore("removee", own)),
  // @ts-expect-error: no rung of that number
  () => Ladder.progressive.pipe(Ladder.replace("truncate-51", own)),
  // @ts-expect-error: no rung of that name, the ladder first
  () => Ladder.replace(relaxed, "remove-0.5", own),
  // @ts-expect-error: a ladder without rungs has none of any name
  () => Ladder.insertBefore(empty, "remove", own),
  // @ts-expect-error: a rung of a stage needs one
  () => Rung.make("own"),
  // @ts-expect-error: a proposer proposes decisions
  () => Rung.propose("own", () => [{ _tag: "Forget", seq: 0 }]),
  // @ts-expect-error: what the builder of a draft returns is read-only
  () => Rung.propose("own", (draft) => (draft.items.push(undefined), [])),
  // @ts-expect-error: a stage that needs a service is not one that needs nothing
  (): Stage.Stage<IndexLost | IndexStale> => asStage,
  // @ts-expect-error: a stage that fails is not one that cannot
  (): Stage.Stage<never, CodeIndex> => asStage,
  // @ts-expect-error: a message is no prompt
  (manager: ContextManager.ContextManager) => manager.sync(Prompt.makeMessage("system", { content: "" })),
  // @ts-expect-error: a view is read-only
  (view: View.View) => (view.price = 0),
  // @ts-expect-error: at least one tag
  () => Stage.skipOn()(asStage),
  // @ts-expect-error: the events of a session are no effect
  (manager: ContextManager.ContextManager) => Effect.runSync(manager.events)
]

describe("types", () => {
  it.effect("what compiles runs too: the errors of a ladder come out with their tags", () =>
    Effect.gen(function*() {
      const start = yield* Stage.fromPrompt(session, { budget: 1_000 })
      const failing = Layer.succeed(CodeIndex, { shorten: () => Effect.fail(new IndexLost()) })
      const tag = yield* withIndex(start).pipe(
        Effect.provide(failing),
        Effect.map(() => "none"),
        Effect.catchTag("IndexLost", (error) => Effect.succeed(error._tag))
      )
      assert.strictEqual(tag, "IndexLost")
      const manager = yield* ContextManager.make({ pass: indexed }).pipe(
        Effect.provide(Layer.merge(failing, Estimator.layer(Estimator.chars)))
      )
      yield* manager.append(session)
      const error = yield* Effect.flip(manager.requestWith({ budget: 1_000 }))
      assert.strictEqual(error._tag, "IndexLost")
    }))

  it("what does not compile is listed", () => {
    assert.strictEqual(refused.length, 21)
    assert.isFunction(wider)
    assert.isFunction(narrower)
  })
})
