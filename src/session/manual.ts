import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { ManualCompactionError } from "../ContextManager.ts"
import * as Guard from "../Guard.ts"
import type * as SessionStore from "../SessionStore.ts"
import type * as Stage from "../Stage.ts"
import type * as View from "../View.ts"
import type { CompactionReport, ManualOptions } from "./byHand.ts"
import * as Commit from "./commit.ts"
import { CommitFailed, CompactionBusy, CompactionCancelled, PersistenceFailed, SpanChanged } from "./errors.ts"
import * as Passes from "./passes.ts"
import * as Runtime from "./runtime.ts"
import * as Spans from "./spans.ts"
import * as Spills from "./spills.ts"
import * as Summaries from "./summaries.ts"
import type * as Summarise from "./summarise.ts"
import * as Telemetry from "./telemetry.ts"
import * as Turn from "./turn.ts"

/**
 * Compacting by hand: the policy's own pass, made because a person asks for it.
 *
 * With summaries it is a transaction: a start is marked, a summary is written while turns go on, what it was to stand for is
 * looked at again, and what is decided is one append. A start that was marked is ended exactly once, however it ends.
 */

/** The view now, for a pass that somebody asked for. */
const measured = (turn: Turn.Turn) => Passes.measure(turn, turn.state.call)

const passOf = (turn: Turn.Turn, now: Passes.Measured): Stage.Pass =>
  Passes.passOf(turn, now, { cause: "manual", aim: null, summarise: null })

/**
 * Whether a request was sent, by this process, that nothing has come of yet: no usage, no failure, and no entry behind it.
 * Where nobody ever says what came of a request, nothing can be told from their silence.
 */
const isOpen = ({ runtime, state }: Turn.Turn): boolean => {
  const { inFlight, readings } = state.meter
  return inFlight !== null && readings > 0 && state.unsent !== null && state.requests > runtime.openedAt
    && inFlight.entries === state.entries
}

const leftBy = (before: View.View, after: View.View) => {
  const stays = new Set(after.items.map(({ seq }) => seq))
  const left = before.items.filter(({ entry, seq }) => entry !== undefined && !stays.has(seq))
  return { entries: left.length, shadowed: left.reduce((sum, { price }) => sum + price, 0) }
}

const reportOf = (
  turn: Turn.Turn,
  { after, given }: Passes.Outcome,
  checkpoint: number | null,
  commandId: string | null
): CompactionReport => ({
  ...leftBy(given.before, after.view),
  freed: given.before.price - after.view.price,
  generation: turn.state.generation,
  checkpoint,
  commandId
})

/** A turn that has written what it did, or fails and has done nothing. */
const written = (
  turn: Turn.Turn,
  event: CommitFailed["event"]
): Effect.Effect<void, CommitFailed | SessionStore.SessionLost> =>
  Effect.mapError(
    Commit.commitNow(turn.runtime, { state: turn.state, events: turn.events, told: turn.due.splice(0) }),
    (error) => error._tag === "SessionLost" ? error : new CommitFailed({ event, reason: error.reason })
  )

const mark = (
  runtime: Runtime.Runtime,
  event: { readonly _tag: "CompactionStarted"; readonly commandId: string | null } | {
    readonly _tag: "CompactionEnded"
    readonly commandId: string | null
    readonly reason: string | null
  }
) => {
  const turn = Turn.make(runtime)
  Turn.take(turn, event)
  return written(turn, event._tag === "CompactionStarted" ? "start" : "end")
}

/** Writes what was decided, as a boundary of its own; the next request carries it. */
const commit = Effect.fnUntraced(function*(turn: Turn.Turn) {
  const layout = Runtime.layoutOf(turn.runtime, turn.state)
  Passes.hold(turn, layout, turn.state.figures.breakdown.tools)
  const boundary = turn.due.find((event) => event._tag === "Compacted")
  const writing = Effect.andThen(written(turn, "replace"), Spills.writeOf(turn))
  yield* boundary === undefined ? writing : Telemetry.span(boundary)(writing)
})

/** Why an attempt failed, in a few words, for the mark of its end. */
const reasonOf = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "cancelled"
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** What is decided between a start that was marked and its end, which is marked whatever happens. */
const between = <A, E, R>(
  runtime: Runtime.Runtime,
  commandId: string | null,
  exclusively: <B, E2>(self: Effect.Effect<B, E2>) => Effect.Effect<B, E2 | SessionStore.SessionLost>,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E | CommitFailed | SessionStore.SessionLost, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.exit(restore(self)), (exit) => {
      const reason = Exit.isSuccess(exit) ? null : reasonOf(exit.cause)
      return Effect.andThen(
        exclusively(mark(runtime, { _tag: "CompactionEnded", commandId, reason })),
        Exit.isSuccess(exit) ? Effect.succeed(exit.value) : Effect.failCause(exit.cause)
      )
    })
  )

const alone = <A, E>(self: Effect.Effect<A, E>): Effect.Effect<A, E> => self

/** Climbs the policy's ladder now: all in one turn. */
const byLadder = Effect.fnUntraced(function*<E, R>(
  turn: Turn.Turn,
  stage: Stage.Stage<E, R>,
  commandId: string | null
) {
  const { runtime } = turn
  const outcome = yield* Passes.decide(turn, passOf(turn, measured(turn)), stage)
  if (outcome.boundary === null) {
    Passes.accept(turn, outcome)
    yield* Turn.commit(turn)
    return Option.none<CompactionReport>()
  }
  return yield* Effect.uninterruptible(Effect.gen(function*() {
    yield* mark(runtime, { _tag: "CompactionStarted", commandId })
    // The start is in the session from here on; the decisions come behind it.
    const next = Turn.make(runtime)
    next.due.push(...turn.due)
    next.told.push(...turn.told)
    Passes.accept(next, outcome)
    return yield* between(
      runtime,
      commandId,
      alone,
      Effect.map(commit(next), () => Option.some(reportOf(next, outcome, null, commandId)))
    )
  }))
})

/** Absorbs a summary that was written meanwhile, if what it stands for is still there. */
const absorb = Effect.fnUntraced(function*<E, R>(
  turn: Turn.Turn,
  summaries: Summaries.Summaries,
  stage: Stage.Stage<E, R>,
  { made, plan }: { readonly made: Summarise.Made; readonly plan: Summarise.Plan },
  commandId: string | null
) {
  yield* Turn.whole(turn)
  const { seqs } = made.span
  const changed = () => new SpanChanged({ entries: seqs.length })
  const { transcript } = Runtime.layoutOf(turn.runtime, turn.state)
  // After a reset the same seqs are other entries.
  const isSame = seqs.every((seq) => transcript.entries[seq]?.carrier === plan.view.transcript.entries[seq]?.carrier)
  if (!isSame) return yield* changed()
  const waiting = turn.state.ready
  Summaries.enter(turn, summaries, made, commandId)
  const now = measured(turn)
  const outcome = yield* Passes.decide(turn, passOf(turn, now), stage)
  if (outcome.checkpoint === "stale") return yield* changed()
  if (outcome.boundary === null) {
    return yield* new Guard.SummaryNotSmaller({ before: made.span.price, after: made.price })
  }
  const checkpoint = turn.state.ready!
  Passes.accept(turn, outcome)
  Summaries.absorbed(turn, summaries, checkpoint, outcome.after.view.price, now.budget.limit)
  // A summary that waited for a boundary of its own is judged at the next request.
  Summaries.wait(turn, waiting)
  yield* commit(turn)
  return Option.some(reportOf(turn, outcome, checkpoint.checkpoint, commandId))
})

/** Has a summary written, and absorbs it. */
const bySummary = <E, R>(
  runtime: Runtime.Runtime,
  stage: Stage.Stage<E, R>,
  { plan, summaries }: { readonly plan: Summarise.Plan; readonly summaries: Summaries.Summaries },
  commandId: string | null
) =>
  Effect.flatMap(
    Summaries.byHand(runtime, summaries, plan),
    (made) => Turn.exclusively(runtime, (turn) => absorb(turn, summaries, stage, { made, plan }, commandId))
  )

/** What is to be done, after it was found that something may be done now. */
const begin = Effect.fnUntraced(function*(turn: Turn.Turn, manual: ManualOptions) {
  const { runtime, state } = turn
  if (runtime.isClosed) return yield* new CompactionCancelled()
  if (state.isCompacting || runtime.summaries?.isRunning === true || isOpen(turn)) return yield* new CompactionBusy()
  yield* Turn.whole(turn)
  const { summaries } = runtime
  if (summaries === undefined) return { _tag: "ladder" } as const
  const now = measured(turn)
  const pass = passOf(turn, now)
  const plan = Spans.planOf(turn, now.sending(), pass, {
    view: pass.view,
    span: Spans.spared(summaries, 0),
    fallback: null,
    focus: manual.focus
  })
  if (plan === undefined) return { _tag: "nothing" } as const
  yield* mark(runtime, { _tag: "CompactionStarted", commandId: manual.commandId ?? null })
  return { _tag: "summary", plan, summaries } as const
})

/** Makes sure that what was done outlives the process. */
const flushed = ({ log }: Runtime.Runtime): Effect.Effect<void, PersistenceFailed> =>
  log === undefined ? Effect.void : Effect.mapError(log.flush, ({ reason }) => new PersistenceFailed({ reason }))

type Intent = Effect.Success<ReturnType<typeof begin>>

/** Compacts now; `None` when there is nothing useful to do. */
export const compactNow = <E, R>(
  runtime: Runtime.Runtime,
  stage: Stage.Stage<E, R>,
  manual: ManualOptions
): Effect.Effect<Option.Option<CompactionReport>, E | ManualCompactionError | SessionStore.SessionLost, R> => {
  const commandId = manual.commandId ?? null
  const exclusively = <B, E2>(self: Effect.Effect<B, E2>) => Turn.exclusively(runtime, () => self)
  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      // Waiting for one's turn may be interrupted, what is done then may not: it is known before the mask is left.
      let intent: Intent | undefined
      const begun = yield* Effect.exit(restore(Turn.exclusively(runtime, (turn) =>
        Effect.uninterruptible(Effect.map(begin(turn, manual), (found) => {
          intent = found
        })))))
      if (intent === undefined) {
        return yield* failed(begun)
      }
      if (intent._tag === "nothing") {
        return Option.none<CompactionReport>()
      }
      const work = intent._tag === "ladder"
        ? restore(Turn.exclusively(runtime, (turn) =>
          byLadder(turn, stage, commandId)))
        : between(runtime, commandId, exclusively, restore(bySummary(runtime, stage, intent, commandId)))
      const exit = yield* Effect.exit(work)
      if (Exit.isSuccess(exit) && Option.isNone(exit.value)) return exit.value
      // The marks of an attempt that was interrupted are to be found again.
      const flush = Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
        ? yield* Effect.exit(flushed(runtime))
        : Exit.void
      // An interruption of the caller goes on from here.
      yield* restore(Effect.void)
      if (Exit.isFailure(exit)) return yield* failed(exit)
      if (Exit.isFailure(flush)) return yield* Effect.failCause(flush.cause)
      return exit.value
    })
  )
}

/** What was waited for was interrupted, and not who waits: the session ended it. Any other failure is what it is. */
const failed = <A, E>(exit: Exit.Exit<A, E>): Effect.Effect<never, E | CompactionCancelled> =>
  Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
    ? Effect.failCause(exit.cause)
    : Effect.fail(new CompactionCancelled())
