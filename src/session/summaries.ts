import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberHandle from "effect/FiberHandle"
import type * as Schedule from "effect/Schedule"
import type * as CompactionEvent from "../CompactionEvent.ts"
import type * as Guard from "../Guard.ts"
import type * as Session from "../Session.ts"
import * as Settings from "../Settings.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Commit from "./commit.ts"
import * as Refire from "./refire.ts"
import * as Runtime from "./runtime.ts"
import * as Summarise from "./summarise.ts"
import * as Turn from "./turn.ts"

/** Why a summary was not made. */
export type Failure = Summarizer.SummaryError | Guard.SummaryNotSmaller

/**
 * The summaries of one session: at most one is being written. What is known of them beside that is in the state of the
 * session; here are the service, its settings, and the pointer to the fiber that writes.
 */
export interface Summaries {
  readonly service: Summarizer.Service
  summary: Settings.Summary
  readonly retry: Schedule.Schedule<unknown, Failure> | undefined
  readonly handle: FiberHandle.FiberHandle<unknown>
  /** Those that the conversation was last sent with. */
  tools: Summarizer.ToolSet | undefined
  isRunning: boolean
}

/** Requests without a call after one whose summaries did not converge. */
const backoffRequests = 5

export const phaseOf = (
  { isRunning }: Summaries,
  { pace, ready }: Session.State
): "idle" | "running" | "ready" | "stopped" =>
  pace.refire.isOpen ? "stopped" : isRunning ? "running" : ready !== null ? "ready" : "idle"

/** Makes the summaries of a session; they end with its scope. */
export const make = (
  service: Summarizer.Service,
  summary: Settings.Summary,
  retry: Schedule.Schedule<unknown, Failure> | undefined
) =>
  Effect.map(
    FiberHandle.make<unknown>(),
    (handle): Summaries => ({ service, summary, retry, handle, tools: undefined, isRunning: false })
  )

// ---------------------------------------------------------------------------------------------------------------------
// Writing one
// ---------------------------------------------------------------------------------------------------------------------

/** A summary that was written and judged is not written again for the same span; one that could not be may be. */
const isTransient = (error: Failure): boolean => error._tag === "SummarizerFailed" && !error.isOverflow

/**
 * Writes a summary within `timeout`, exactly, and tells how it went. The writing runs in a fiber of its own: one that
 * cannot be interrupted is left behind when its time is up, and nobody waits for it.
 */
const bounded = (
  { retry, service, summary, tools }: Summaries,
  plan: Summarise.Plan,
  timeout: Duration.Duration
): Effect.Effect<Exit.Exit<Summarise.Made, Failure>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const once = Summarise.run(service, { ...plan, tools: (yield* Summarizer.Tools) ?? tools }, summary)
      const writing = retry === undefined ? once : Effect.retry(once, { schedule: retry, while: isTransient })
      const fiber = yield* Effect.forkDetach(restore(writing), { startImmediately: true })
      const abandon = Effect.sync(() => fiber.interruptUnsafe())
      const waiting = Effect.timeoutOption(Fiber.await(fiber), timeout)
      const exit = yield* restore(waiting).pipe(Effect.onInterrupt(() => abandon))
      if (exit._tag === "Some") return exit.value
      yield* abandon
      return Exit.fail(new Summarizer.SummaryTimedOut({ milliseconds: Duration.toMillis(Settings.timeoutOf(summary)) }))
    })
  )

/** Interrupts what is being written, and waits until that has been said. */
export const stop = (self: Summaries): Effect.Effect<void> => FiberHandle.clear(self.handle)

// ---------------------------------------------------------------------------------------------------------------------
// What is said of it
// ---------------------------------------------------------------------------------------------------------------------

const causes = {
  SummarizerFailed: "failed",
  SummaryTruncated: "truncated",
  SummaryEmpty: "empty",
  SummaryTimedOut: "timeout"
} as const

const readyEvent = (made: Summarise.Made, milliseconds: number): typeof CompactionEvent.SummaryReady.Type => ({
  _tag: "SummaryReady",
  ...made.evidence,
  milliseconds,
  before: made.span.price,
  after: made.price,
  claims: made.strays.claims,
  rules: made.strays.rules,
  lost: made.lost
})

const startedEvent = (plan: Summarise.Plan, count: number): typeof CompactionEvent.SummaryStarted.Type => ({
  _tag: "SummaryStarted",
  first: plan.span.seqs[0] ?? 0,
  last: plan.span.seqs.at(-1) ?? 0,
  entries: plan.span.seqs.length,
  tokens: plan.span.price,
  count,
  generation: plan.generation
})

/** Changes when the next summary is due. */
const pace = (turn: Turn.Turn, change: Partial<Refire.Pace>, ready = turn.state.ready): void => {
  const { state } = turn
  const next = { ...state.pace, ...change }
  const isSame = ready === state.ready && JSON.stringify(next) === JSON.stringify(state.pace)
  if (!isSame) Turn.take(turn, { _tag: "Paced", pace: next, ready })
}

const failed = (
  turn: Turn.Turn,
  summary: Settings.Summary,
  failure: Pick<typeof CompactionEvent.SummaryFailed.Type, "cause" | "reason" | "milliseconds">
): void => {
  const before = turn.state.pace
  const refire = Refire.failed(before.refire, summary, before.count)
  pace(turn, { refire })
  const { failures, isOpen } = refire
  Turn.tell(turn, { _tag: "SummaryFailed", ...failure, failures })
  if (isOpen && !before.refire.isOpen) Turn.tell(turn, { _tag: "SummariesStopped", failures })
}

const refuse = (
  turn: Turn.Turn,
  cause: typeof CompactionEvent.SummaryRefused.Type["cause"],
  reason: string,
  ready = turn.state.ready
): void => {
  const { count, refire } = turn.state.pace
  pace(turn, { refire: Refire.refused(refire, count) }, ready)
  Turn.tell(turn, { _tag: "SummaryRefused", cause, reason })
}

/** That a run was ended from outside is no failure of the model. */
const interrupted = (runtime: Runtime.Runtime, begun: number): Effect.Effect<void> =>
  Effect.flatMap(elapsed(begun), (milliseconds) =>
    Commit.publish(runtime, {
      _tag: "SummaryFailed",
      cause: "interrupted",
      reason: "nobody wanted it any more: the session was closed or set anew, or the caller was interrupted",
      milliseconds,
      failures: runtime.state.pace.refire.failures
    }))

/** Takes into a turn how a run ended, when no summary came of it. */
const takeFailure = (
  turn: Turn.Turn,
  summary: Settings.Summary,
  cause: Cause.Cause<Failure>,
  milliseconds: number
): void => {
  if (Cause.hasInterruptsOnly(cause)) {
    return failed(turn, summary, { cause: "interrupted", reason: "the summariser interrupted itself", milliseconds })
  }
  const error = Cause.findErrorOption(cause)
  if (error._tag === "None") {
    return failed(turn, summary, { cause: "defect", reason: String(Cause.squash(cause)), milliseconds })
  }
  switch (error.value._tag) {
    case "SummaryNotSmaller":
      return refuse(turn, "notSmaller", error.value.message)
    case "SummaryUnfaithful":
      return refuse(turn, "unfaithful", error.value.message)
    case "NotASummary":
      return refuse(turn, "notSummary", error.value.message)
    default:
      return failed(turn, summary, { cause: causes[error.value._tag], reason: error.value.message, milliseconds })
  }
}

/** Takes a summary into a turn: its checkpoint is in the session from here on, and waits for a boundary. */
export const enter = (
  turn: Turn.Turn,
  { summary }: Summaries,
  made: Summarise.Made,
  commandId: string | null = null
): void => {
  const { evidence, message, raw, span: { price, seqs }, text } = made
  Turn.take(turn, {
    _tag: "Summarised",
    checkpoint: message,
    seqs,
    inPlace: summary.placement === "inPlace",
    price,
    text,
    raw,
    ...evidence,
    commandId
  })
  // A view that absorbs it is made of the transcript that the pass has.
  Runtime.layoutOf(turn.runtime, turn.state)
}

/** Takes into a turn how a run ended. */
const takeExit = (
  turn: Turn.Turn,
  self: Summaries,
  exit: Exit.Exit<Summarise.Made, Failure>,
  milliseconds: number
): void => {
  if (Exit.isFailure(exit)) return takeFailure(turn, self.summary, exit.cause, milliseconds)
  enter(turn, self, exit.value)
  Turn.tell(turn, readyEvent(exit.value, milliseconds))
}

// ---------------------------------------------------------------------------------------------------------------------
// Beside the session, and while somebody waits
// ---------------------------------------------------------------------------------------------------------------------

const elapsed = (begun: number): Effect.Effect<number> => Effect.map(Clock.currentTimeMillis, (now) => now - begun)

/**
 * Begins a summary beside the session; one that is being written goes on instead. How it ends is a turn of its own.
 *
 * Its exit is taken from the first moment on, so it starts at once; what it does begins after the turn that began it.
 */
export const start = Effect.fnUntraced(function*(turn: Turn.Turn, self: Summaries, plan: Summarise.Plan) {
  if (self.isRunning) return
  self.isRunning = true
  const { runtime } = turn
  yield* Turn.say(turn, startedEvent(plan, turn.state.pace.count))
  const begun = yield* Clock.currentTimeMillis
  const ended = Effect.sync(() => {
    self.isRunning = false
  })
  const finish = (exit: Exit.Exit<Summarise.Made, Failure>) =>
    Turn.changing(
      runtime,
      (ending) =>
        Effect.map(Effect.andThen(ended, elapsed(begun)), (milliseconds) => takeExit(ending, self, exit, milliseconds))
    )
  const run = Effect.uninterruptibleMask((restore) =>
    restore(
      Effect.andThen(Effect.yieldNow, Effect.flatMap(bounded(self, plan, Settings.timeoutOf(self.summary)), finish))
    ).pipe(
      Effect.onInterrupt(() => Effect.andThen(ended, interrupted(runtime, begun))),
      // A session that was lost meanwhile takes in no summary; its next caller is told.
      Effect.ignore
    )
  )
  yield* FiberHandle.run(self.handle, run, { startImmediately: true })
})

/**
 * Waits for a summary to be written. The writing is interrupted with whoever waits, and when the session is closed or set
 * anew, which interrupts whoever waits too.
 */
const awaited = (
  runtime: Runtime.Runtime,
  self: Summaries,
  plan: Summarise.Plan,
  timeout: Duration.Duration
): Effect.Effect<{ readonly exit: Exit.Exit<Summarise.Made, Failure>; readonly milliseconds: number }> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      self.isRunning = true
      const begun = yield* Clock.currentTimeMillis
      // What ends it must find it: it does nothing before the handle holds it, and a session that closed meanwhile ends it here.
      const writing = Effect.andThen(Effect.yieldNow, bounded(self, plan, timeout))
      const fiber = yield* FiberHandle.run(self.handle, Effect.interruptible(writing))
      if (runtime.isClosed) yield* stop(self)
      const exit = yield* restore(Fiber.await(fiber)).pipe(
        Effect.onInterrupt(() => Effect.andThen(Fiber.interrupt(fiber), interrupted(runtime, begun))),
        Effect.ensuring(Effect.sync(() => {
          self.isRunning = false
        }))
      )
      if (Exit.isSuccess(exit)) return { exit: exit.value, milliseconds: yield* elapsed(begun) }
      yield* interrupted(runtime, begun)
      return yield* Effect.interrupt
    })
  )

/** Why a run failed, for one who waits for it: a bug of the summariser is a failure, and never the caller's. */
const failureOf = (cause: Cause.Cause<Failure>): Failure => {
  const error = Cause.findErrorOption(cause)
  if (error._tag === "Some") return error.value
  const reason = Cause.hasInterruptsOnly(cause) ? "it interrupted itself" : `it died: ${String(Cause.squash(cause))}`
  return new Summarizer.SummarizerFailed({ reason, isOverflow: false, cause: Cause.squash(cause) })
}

/** Writes a summary that a person asked for, outside of any turn. It fails as the writing fails; nothing is lost then. */
export const byHand = Effect.fnUntraced(function*(runtime: Runtime.Runtime, self: Summaries, plan: Summarise.Plan) {
  yield* Commit.publish(runtime, startedEvent(plan, runtime.state.pace.count))
  const { exit, milliseconds } = yield* awaited(runtime, self, plan, Settings.timeoutOf(self.summary))
  if (Exit.isSuccess(exit)) {
    yield* Commit.publish(runtime, readyEvent(exit.value, milliseconds))
    return exit.value
  }
  yield* Turn.changing(runtime, (turn) => Effect.sync(() => takeFailure(turn, self.summary, exit.cause, milliseconds)))
  return yield* failureOf(exit.cause)
})

/** Whether a request may wait for a summary. */
export const mayAsk = ({ isRunning }: Summaries, { isCompacting, pace }: Session.State): boolean =>
  pace.backoff === 0 && !isRunning && !isCompacting && !pace.refire.isOpen

/**
 * Writes a summary inside a turn, which waits for all of them together no longer than the timeout; `null` when none came of
 * it.
 */
export const ask = Effect.fnUntraced(function*(
  turn: Turn.Turn,
  self: Summaries,
  plan: Summarise.Plan
): Effect.fn.Return<Session.State["ready"]> {
  const begun = yield* Clock.currentTimeMillis
  if (turn.summaries.asked++ === 0) {
    turn.summaries.deadline = begun + Duration.toMillis(Settings.timeoutOf(self.summary))
  }
  const left = turn.summaries.deadline - begun
  if (left <= 0) return null
  const before = turn.state.ready
  yield* Turn.say(turn, startedEvent(plan, turn.state.pace.count))
  const timeout = Duration.min(Settings.timeoutOf(self.summary), Duration.millis(left))
  const { exit, milliseconds } = yield* awaited(turn.runtime, self, plan, timeout)
  takeExit(turn, self, exit, milliseconds)
  if (Exit.isFailure(exit)) return null
  const made = turn.state.ready
  // The one that waited before waits on.
  pace(turn, {}, before)
  return made
})

/** Growth of the count, as a share of the budget, before a span is looked for again where there was none. */
const searchStep = 0.02

/** Whether a span is to be looked for at this request. */
export const isDue = (self: Summaries, state: Session.State, count: number, limit: number): boolean =>
  self.summary.mode === "background" && !state.isCompacting && phaseOf(self, state) === "idle"
  && count >= state.pace.notBefore && Refire.mayStart(state.pace.refire, self.summary, count, limit)

/** There was no span worth a call. */
export const foundNone = (turn: Turn.Turn, count: number, limit: number): void =>
  pace(turn, { notBefore: count + Math.ceil(searchStep * limit) })

/** Tells that a checkpoint stands for its span now. */
export const absorbed = (
  turn: Turn.Turn,
  { summary }: Summaries,
  checkpoint: { readonly checkpoint: number; readonly seqs: ReadonlyArray<number> },
  count: number,
  limit: number
): void => {
  const ready = checkpoint.checkpoint === turn.state.ready?.checkpoint ? null : turn.state.ready
  pace(turn, { refire: Refire.absorbed(turn.state.pace.refire, summary, count, limit), notBefore: 0 }, ready)
  Turn.tell(turn, {
    _tag: "SummaryAbsorbed",
    seq: checkpoint.checkpoint,
    entries: checkpoint.seqs.length,
    generation: turn.state.generation
  })
}

/** Takes in that a request counts so many tokens, and whether summaries that it waited for helped. */
export const counted = (
  turn: Turn.Turn,
  { summary }: Summaries,
  count: number,
  limit: number,
  isConverged: boolean
): void => {
  const { backoff, count: before, notBefore, refire } = turn.state.pace
  pace(turn, {
    // The view is another one after a boundary: what was no span in a fuller one may be one in it.
    notBefore: count < before ? 0 : notBefore,
    count,
    refire: Refire.request(refire, summary, count, limit),
    backoff: turn.summaries.asked > 0 ? isConverged ? 0 : backoffRequests : Math.max(0, backoff - 1)
  })
}

/** The pass of a request failed; summaries that it asked for did not help. */
export const gaveUp = (turn: Turn.Turn): void => {
  if (turn.summaries.asked > 0) pace(turn, { backoff: backoffRequests })
}

/** Gives up the summary that waits, which is of no use any more. */
export const giveUp = (turn: Turn.Turn, why: "stale" | "useless"): void =>
  why === "stale"
    ? refuse(turn, "stale", "a part of the span is no longer in the view", null)
    : refuse(turn, "notSmaller", "the span costs no more than the checkpoint as it stands in the view now", null)

/** Which summary waits for a boundary from here on. */
export const wait = (turn: Turn.Turn, ready: Session.State["ready"]): void => pace(turn, {}, ready)

/** Lets summaries be made again after too many failures in a row. */
export const resume = (turn: Turn.Turn): void =>
  pace(turn, { refire: { ...turn.state.pace.refire, failures: 0, isOpen: false } })
