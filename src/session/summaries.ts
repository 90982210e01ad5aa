import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberHandle from "effect/FiberHandle"
import * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as CompactionEvent from "../CompactionEvent.ts"
import type * as Guard from "../Guard.ts"
import type * as Settings from "../Settings.ts"
import type * as Stage from "../Stage.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Transcript from "../Transcript.ts"
import * as Refire from "./refire.ts"
import * as Summarise from "./summarise.ts"

type Publish = (event: CompactionEvent.CompactionEvent) => Effect.Effect<void>

/** Why a summary came to nothing. */
export type Failure = Summarizer.SummaryError | Guard.SummaryNotSmaller

/**
 * The summaries of one session: at most one is being written, and at most one waits for a boundary.
 *
 * `made` is accepted and not yet in the transcript, `ready` is in it and waits.
 */
export interface Summaries {
  readonly service: Summarizer.Service
  readonly summary: Settings.Summary
  readonly retry: Schedule.Schedule<unknown, Failure> | undefined
  readonly handle: FiberHandle.FiberHandle<unknown>
  readonly publish: Publish
  /** Those that the conversation was last sent with. */
  tools: Summarizer.ToolSet | undefined
  refire: Refire.State
  isRunning: boolean
  made: Summarise.Made | undefined
  ready: Stage.Ready | undefined
  /** What the last request counted, in tokens: what a cooldown is measured from. */
  count: number
  /** What a request must count before a span is looked for again, after there was none. */
  notBefore: number
  /** How many requests go by without a call after summaries inside a request did not bring it below the trigger. */
  backoff: number
  /** How many summaries were asked for inside the current request, and until when it may wait for them, in ms of the clock. */
  asked: number
  deadline: number
}

/** Requests without a call after one whose summaries did not converge. */
const backoffRequests = 5

export const phaseOf = (self: Summaries): "idle" | "running" | "ready" | "stopped" =>
  self.refire.isOpen
    ? "stopped"
    : self.isRunning
    ? "running"
    : self.made !== undefined || self.ready !== undefined
    ? "ready"
    : "idle"

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
      return Exit.fail(new Summarizer.SummaryTimedOut({ milliseconds: Duration.toMillis(summary.timeout) }))
    })
  )

/** A summary that was written and judged is not written again for the same span; one that could not be may be. */
const isTransient = (error: Failure): boolean => error._tag === "SummarizerFailed" && !error.isOverflow

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

const fail = Effect.fnUntraced(function*(
  self: Summaries,
  cause: typeof CompactionEvent.SummaryFailed.Type["cause"],
  reason: string,
  milliseconds: number
) {
  const wasOpen = self.refire.isOpen
  self.refire = Refire.failed(self.refire, self.summary, self.count)
  const { failures, isOpen } = self.refire
  yield* self.publish({ _tag: "SummaryFailed", cause, reason, milliseconds, failures })
  if (isOpen && !wasOpen) yield* self.publish({ _tag: "SummariesStopped", failures })
})

const refuse = (
  self: Summaries,
  cause: typeof CompactionEvent.SummaryRefused.Type["cause"],
  reason: string
): Effect.Effect<void> => {
  self.refire = Refire.refused(self.refire, self.count)
  return self.publish({ _tag: "SummaryRefused", cause, reason })
}

/** Publishes that a run was ended from outside; that is no failure of the model. */
const interrupted = (self: Summaries, milliseconds: number): Effect.Effect<void> => {
  self.isRunning = false
  return self.publish({
    _tag: "SummaryFailed",
    cause: "interrupted",
    reason: "it was not wanted any more: the session was closed or set anew, or the caller was interrupted",
    milliseconds,
    failures: self.refire.failures
  })
}

/** Takes the exit of a run, whatever it is, and publishes it. */
const take = Effect.fnUntraced(function*(
  self: Summaries,
  exit: Exit.Exit<Summarise.Made, Failure>,
  milliseconds: number
) {
  self.isRunning = false
  if (Exit.isSuccess(exit)) return yield* self.publish(readyEvent(exit.value, milliseconds))
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return yield* fail(self, "interrupted", "the summariser interrupted itself", milliseconds)
  }
  const error = Cause.findErrorOption(exit.cause)
  if (error._tag === "None") return yield* fail(self, "defect", String(Cause.squash(exit.cause)), milliseconds)
  switch (error.value._tag) {
    case "SummaryNotSmaller":
      return yield* refuse(self, "notSmaller", error.value.message)
    case "SummaryUnfaithful":
      return yield* refuse(self, "unfaithful", error.value.message)
    case "NotASummary":
      return yield* refuse(self, "notSummary", error.value.message)
    default:
      return yield* fail(self, causes[error.value._tag], error.value.message, milliseconds)
  }
})

const started = (self: Summaries, plan: Summarise.Plan): typeof CompactionEvent.SummaryStarted.Type => ({
  _tag: "SummaryStarted",
  first: plan.span.seqs[0] ?? 0,
  last: plan.span.seqs.at(-1) ?? 0,
  entries: plan.span.seqs.length,
  tokens: plan.span.price,
  count: self.count,
  generation: plan.generation
})

/** Begins a summary beside the session; one that is being written goes on instead. */
export const start = Effect.fnUntraced(function*(self: Summaries, plan: Summarise.Plan) {
  if (self.isRunning) return
  self.isRunning = true
  yield* self.publish(started(self, plan))
  const begun = yield* Clock.currentTimeMillis
  const since = Effect.map(Clock.currentTimeMillis, (now) => now - begun)
  // Its exit is taken from the first moment on, so it starts at once; what it does begins after the turn that began it.
  const run = Effect.uninterruptibleMask((restore) =>
    restore(Effect.andThen(Effect.yieldNow, bounded(self, plan, self.summary.timeout))).pipe(
      Effect.onInterrupt(() => Effect.flatMap(since, (milliseconds) => interrupted(self, milliseconds))),
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit)) self.made = exit.value
        return Effect.flatMap(since, (milliseconds) => take(self, exit, milliseconds))
      })
    )
  )
  yield* FiberHandle.run(self.handle, run, { startImmediately: true })
})

/**
 * Writes a summary while the caller waits, at most for the timeout, and at most until `deadline`, in milliseconds of the
 * clock. Fails as the writing fails; nothing is lost then. It is interrupted when the session is closed or set anew.
 */
export const now = (
  self: Summaries,
  plan: Summarise.Plan,
  deadline = Infinity
): Effect.Effect<Summarise.Made, Failure> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      self.isRunning = true
      yield* self.publish(started(self, plan))
      const begun = yield* Clock.currentTimeMillis
      const since = Effect.map(Clock.currentTimeMillis, (ended) => ended - begun)
      const timeout = Duration.min(self.summary.timeout, Duration.millis(Math.max(0, deadline - begun)))
      const fiber = yield* FiberHandle.run(self.handle, Effect.interruptible(bounded(self, plan, timeout)))
      const ended = yield* restore(Fiber.await(fiber)).pipe(
        Effect.onInterrupt(() =>
          Effect.andThen(
            Fiber.interrupt(fiber),
            Effect.flatMap(since, (milliseconds) => interrupted(self, milliseconds))
          )
        )
      )
      if (Exit.isFailure(ended)) {
        yield* interrupted(self, yield* since)
        return yield* Effect.interrupt
      }
      const exit = ended.value
      yield* take(self, exit, yield* since)
      return yield* Exit.isSuccess(exit) ? exit : Effect.fail(failureOf(exit.cause))
    })
  )

/** The same, for one who goes on without: whatever becomes of it, it does not fail. */
export const tried = (
  self: Summaries,
  plan: Summarise.Plan,
  deadline?: number
): Effect.Effect<Option.Option<Summarise.Made>> => Effect.map(Effect.exit(now(self, plan, deadline)), Exit.getSuccess)

/** Why a run came to nothing, for one who waits for it: a bug of the summariser is a failure, and never the caller's. */
const failureOf = (cause: Cause.Cause<Failure>): Failure => {
  const error = Cause.findErrorOption(cause)
  if (error._tag === "Some") return error.value
  const reason = Cause.hasInterruptsOnly(cause) ? "it interrupted itself" : `it died: ${String(Cause.squash(cause))}`
  return new Summarizer.SummarizerFailed({ reason, isOverflow: false, cause: Cause.squash(cause) })
}

/** Interrupts what is being written, and waits until that has been said. */
export const stop = (self: Summaries): Effect.Effect<void> => FiberHandle.clear(self.handle)

/** Whether a request may wait for a summary. */
export const mayAsk = (self: Summaries): boolean => self.backoff === 0 && !self.isRunning && !self.refire.isOpen

/** Writes a summary inside a request, which waits for all of them together no longer than the timeout. */
export const ask = Effect.fnUntraced(function*(self: Summaries, plan: Summarise.Plan) {
  const begun = yield* Clock.currentTimeMillis
  if (self.asked++ === 0) self.deadline = begun + Duration.toMillis(self.summary.timeout)
  return begun < self.deadline ? yield* tried(self, plan, self.deadline) : Option.none()
})

/** A request begins: what it asks for is counted from here. */
export const begin = (self: Summaries): void => {
  self.asked = 0
}

/** The pass of a request failed; summaries that it asked for did not help. */
export const gaveUp = (self: Summaries): void => {
  if (self.asked > 0) self.backoff = backoffRequests
}

/** Puts an accepted summary into the transcript, where it waits for a boundary; its seq is its own from then on. */
export const land = (self: Summaries, transcript: Transcript.Transcript): Stage.Ready | null => {
  if (self.made !== undefined) {
    self.ready = enter(self, transcript, self.made)
    self.made = undefined
  }
  return self.ready ?? null
}

/** Appends the checkpoint of a summary to the transcript. */
export const enter = (
  self: Summaries,
  transcript: Transcript.Transcript,
  made: Summarise.Made
): Stage.Ready => {
  const checkpoint = transcript.entries.length
  Transcript.append(transcript, made.message, "library")
  return { checkpoint, seqs: made.span.seqs, inPlace: self.summary.placement === "inPlace" }
}

/** Growth of the count, as a share of the budget, before a span is looked for again where there was none. */
const searchStep = 0.02

/** Whether a span is to be looked for at this request. */
export const isDue = (self: Summaries, count: number, limit: number): boolean =>
  self.summary.mode === "background" && phaseOf(self) === "idle" && count >= self.notBefore
  && Refire.mayStart(self.refire, self.summary, count, limit)

/** There was no span worth a call. */
export const foundNone = (self: Summaries, count: number, limit: number): void => {
  self.notBefore = count + Math.ceil(searchStep * limit)
}

/** What a pass made of the summary that was ready. */
export interface Outcome {
  readonly isAbsorbed: boolean
  /** A boundary left the summary out because it would make the view no smaller. */
  readonly isUseless: boolean
  readonly isStale: boolean
  /** What the request counts now. */
  readonly count: number
  /** Whether the summaries that the request asked for brought it below the trigger, without the ladder. */
  readonly isConverged: boolean
  readonly generation: number
}

/** Takes in how a request ended: whether the summary that was ready is used, stays ready, or is given up. */
export const settle = Effect.fnUntraced(function*(self: Summaries, outcome: Outcome, limit: number) {
  const { ready } = self
  self.tools = (yield* Summarizer.Tools) ?? self.tools
  // The view is another one after a boundary: what was no span in a fuller one may be one in it.
  if (outcome.count < self.count) self.notBefore = 0
  self.count = outcome.count
  self.refire = Refire.request(self.refire, self.summary, outcome.count, limit)
  if (self.asked > 0) self.backoff = outcome.isConverged ? 0 : backoffRequests
  else if (self.backoff > 0) self.backoff--
  if (ready === undefined) return
  if (outcome.isAbsorbed) {
    self.ready = undefined
    yield* absorbed(self, ready, outcome.count, outcome.generation, limit)
  } else if (outcome.isStale) {
    self.ready = undefined
    yield* refuse(self, "stale", "a part of the span is no longer in the view")
  } else if (outcome.isUseless) {
    self.ready = undefined
    yield* refuse(self, "notSmaller", "the span costs no more than the checkpoint as it stands in the view now")
  }
})

/** Tells that a checkpoint stands for its span now. */
export const absorbed = (
  self: Summaries,
  ready: Stage.Ready,
  count: number,
  generation: number,
  limit: number
): Effect.Effect<void> => {
  self.refire = Refire.absorbed(self.refire, self.summary, count, limit)
  self.notBefore = 0
  return self.publish({ _tag: "SummaryAbsorbed", seq: ready.checkpoint, entries: ready.seqs.length, generation })
}

/** What of the summaries is saved with a session, beside the one that is ready: what decides when the next one begins. */
export const Pace = Schema.Struct({
  refire: Refire.State,
  count: Schema.Natural,
  notBefore: Schema.Natural,
  backoff: Schema.Natural
})

export type Pace = typeof Pace.Type

export const initialPace: Pace = { refire: Refire.initial, count: 0, notBefore: 0, backoff: 0 }

export const paceOf = ({ backoff, count, notBefore, refire }: Summaries): Pace => ({
  refire,
  count,
  notBefore,
  backoff
})

/** Gives up what is being written and what waits: they are about a transcript that is no more. */
export const clear = (self: Summaries, pace: Pace): Effect.Effect<void> =>
  Effect.andThen(
    FiberHandle.clear(self.handle),
    Effect.sync(() => {
      self.isRunning = false
      self.made = undefined
      self.ready = undefined
      self.asked = 0
      Object.assign(self, pace)
    })
  )

/** Makes the summaries of a session; they end with its scope. */
export const make = (
  service: Summarizer.Service,
  summary: Settings.Summary,
  publish: Publish,
  retry: Schedule.Schedule<unknown, Failure> | undefined
) =>
  Effect.map(FiberHandle.make<unknown>(), (handle): Summaries => ({
    service,
    summary,
    retry,
    handle,
    publish,
    tools: undefined,
    refire: Refire.initial,
    isRunning: false,
    made: undefined,
    ready: undefined,
    count: 0,
    notBefore: 0,
    backoff: 0,
    asked: 0,
    deadline: 0
  }))
