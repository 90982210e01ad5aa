import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as PubSub from "effect/PubSub"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Budget from "../Budget.ts"
import type * as CompactionEvent from "../CompactionEvent.ts"
import type { Call, ContextManager, Status } from "../ContextManager.ts"
import * as Estimator from "../Estimator.ts"
import * as Gate from "../Gate.ts"
import * as Guard from "../Guard.ts"
import type * as Policy from "../Policy.ts"
import * as Prepare from "../policy/prepare.ts"
import * as Session from "../Session.ts"
import type * as SessionStore from "../SessionStore.ts"
import * as SpillStore from "../SpillStore.ts"
import * as Stage from "../Stage.ts"
import * as Summarizer from "../Summarizer.ts"
import { reasonOf } from "../text/reason.ts"
import * as TokenMeter from "../TokenMeter.ts"
import * as View from "../View.ts"
import * as Commit from "./commit.ts"
import * as Door from "./door.ts"
import { CompactionBusy } from "./errors.ts"
import * as Estimating from "./estimating.ts"
import * as History from "./history.ts"
import * as Layout from "./layout.ts"
import * as Manual from "./manual.ts"
import * as Passes from "./passes.ts"
import * as Preview from "./preview.ts"
import * as Recover from "./recover.ts"
import * as Requests from "./request.ts"
import * as Runtime from "./runtime.ts"
import * as Spills from "./spills.ts"
import * as Summaries from "./summaries.ts"
import * as Turn from "./turn.ts"
import * as Undo from "./undo.ts"

/** A session to go on from: where its log is kept and how it is written, or a state alone. */
export interface Begun {
  readonly state: Session.State
  readonly log?: SessionStore.Log
  readonly codec?: Runtime.Codec
}

/** A session in which nothing has happened. */
export const fresh: Begun = { state: Session.initial }

/** What writes the summaries of a session, under whichever of its policies has them. */
const makeWriter = Effect.fnUntraced(function*<E, R>(policy: Policy.Prepared<E, R>) {
  const first = [policy, ...policy.routes.values()].find(({ settings }) => settings.summary !== undefined)
  if (first?.settings.summary === undefined) return undefined
  const summarizer = yield* Summarizer.Summarizer
  if (summarizer !== undefined) return yield* Summaries.make(summarizer, first.settings.summary, first.summaryRetry)
  yield* Effect.logWarning("the settings ask for summaries and no Summarizer is provided: the ladder serves alone")
  return undefined
})

/** A session as JSON. */
export type SavedJson = typeof Session.SavedJson.Encoded

const makeRuntime = Effect.fnUntraced(function*<E, R>(
  { name, settings, whenStoreFails, wire }: Policy.Resolved<E, R>,
  begun: Begun
): Effect.fn.Return<Runtime.Runtime, never, Scope.Scope> {
  const spillStore = yield* SpillStore.SpillStore
  const hub = yield* Effect.acquireRelease(
    PubSub.sliding<CompactionEvent.CompactionEvent>(1_024),
    PubSub.shutdown
  )
  const { codec, log, state } = begun
  const met: Estimating.Met = { fault: undefined }
  return {
    policy: name,
    settings,
    rules: wire,
    priceOf: Estimating.noting(yield* Estimator.Estimator, met),
    met,
    counter: yield* TokenMeter.Counter,
    spillStore,
    locate: SpillStore.locateIn(spillStore),
    log,
    codec,
    whenStoreFails,
    keepsCaches: yield* Runtime.KeepCaches,
    openedAt: state.requests,
    lock: yield* Semaphore.make(1),
    compacting: yield* Semaphore.make(1),
    hub,
    changes: yield* SubscriptionRef.make(0),
    summaries: undefined,
    state,
    caches: Runtime.noCaches(),
    pending: [],
    writing: undefined,
    isClosed: false,
    lost: undefined
  }
})

/** Begins to write where a log ends; what came in under another cap is cut to this one. */
const resume = (runtime: Runtime.Runtime) =>
  Turn.changing(runtime, (turn) => {
    Turn.take(turn, { _tag: "Opened", version: Session.version })
    History.capAll(turn)
    return Spills.writeOf(turn, true)
  })

/** Closing refuses new calls, ends the writing of a summary, and waits for the call that is running, to its flush. */
const close = (runtime: Runtime.Runtime) =>
  Effect.suspend(() => {
    runtime.isClosed = true
    return Effect.andThen(
      History.stopSummaries(runtime),
      Semaphore.withPermit(runtime.compacting, Effect.ignore(flush(runtime)))
    )
  })

const flush = (runtime: Runtime.Runtime): Effect.Effect<void, SessionStore.WriteError> =>
  Semaphore.withPermit(
    runtime.lock,
    Effect.suspend(() => {
      if (runtime.lost !== undefined) return Effect.fail(runtime.lost)
      return runtime.log === undefined ? Effect.void : Effect.andThen(Commit.write(runtime), runtime.log.flush)
    })
  )

/** Looks at the session between two operations; one that was lost can be looked at still. */
const reading = <A>(runtime: Runtime.Runtime, look: (turn: Turn.Turn) => Effect.Effect<A>): Effect.Effect<A> =>
  Semaphore.withPermit(
    runtime.lock,
    Effect.suspend(() => {
      if (!runtime.keepsCaches) runtime.caches = Runtime.noCaches()
      return look(Turn.make(runtime))
    })
  )

const layoutIn = (turn: Turn.Turn): Effect.Effect<Layout.Layout> =>
  Effect.map(Turn.whole(turn), () => Runtime.layoutOf(turn.runtime, turn.state))

/** The budget of the last request, as it was resolved. */
const budgetOf = ({ settings }: Runtime.Runtime, { resolved }: Session.State): Budget.Budget | null => {
  if (resolved === null) return null
  const { limit, overhead, source, total } = resolved
  const target = Math.floor(limit * settings.targetUsage)
  return { total, source, overhead, limit, trigger: settings.compactThreshold * limit, target }
}

const readingOf = ({ counted, meter }: Session.State): TokenMeter.Reading | null => {
  if (counted === null) return null
  const { _tag: _, budget: __, overhead: ___, overrides: ____, refusals: _____, used, ...rest } = counted
  return { ...rest, tokens: used, readings: meter.readings }
}

const statusIn = ({ runtime, state }: Turn.Turn): Status => {
  const floor = Stage.recall(state, Guard.clearFloor)
  return {
    entries: state.entries,
    counts: Passes.countsOf(state, Runtime.layoutOf(runtime, state).index),
    level: state.level,
    generation: state.generation,
    streak: floor.streak,
    overrides: floor.overrides,
    refusals: Stage.recall(state, Gate.provenanceCounts).refusals,
    reading: readingOf(state),
    budget: budgetOf(runtime, state),
    lastBoundary: state.lastBoundary,
    lastSkip: state.lastSkip,
    lastInfeasible: state.lastInfeasible,
    policy: runtime.policy,
    summary: runtime.summaries === undefined ? null : Summaries.phaseOf(runtime.summaries, state)
  }
}

/** A number of a bill: −1 for what is no number of tokens. */
const whole = (value: number): number => Number.isSafeInteger(value) && value >= 0 ? value : -1

const billed = (
  { runtime, state }: Turn.Turn,
  { cacheRead, cacheWrite, total, uncached }: TokenMeter.Usage,
  output: number | undefined,
  beside: boolean
): typeof Session.Billed.Type => {
  return {
    _tag: "Billed",
    usage: {
      ...(total === undefined ? undefined : { total: whole(total) }),
      ...(uncached === undefined ? undefined : { uncached: whole(uncached) }),
      ...(cacheRead === undefined ? undefined : { cacheRead: whole(cacheRead) }),
      ...(cacheWrite === undefined ? undefined : { cacheWrite: whole(cacheWrite) })
    },
    output: output === undefined ? 0 : Math.max(0, whole(output)),
    beside,
    window: Budget.windowOf(runtime.settings, state.call)
  }
}

/** Whether a request is the newest one of the session; where none is named, it is. */
const isNewest = ({ state }: Turn.Turn, request: { readonly id: number } | undefined): boolean =>
  request === undefined || request.id === state.requests

const tellFailed = (turn: Turn.Turn, failure: unknown): void => {
  if (failure === undefined) return
  const error = Predicate.hasProperty(failure, "_tag") && typeof failure._tag === "string" ? failure._tag : "unknown"
  Turn.tell(turn, { _tag: "PassFailed", error, reason: reasonOf(failure) })
}

/** Puts another session in place of this one; what was being summarised is about a history that is no more. */
const become = Effect.fnUntraced(function*(turn: Turn.Turn, saved: Session.Saved) {
  const { runtime } = turn
  yield* Turn.whole(turn)
  yield* History.stopSummaries(runtime)
  const session = { ...saved, memory: History.withoutStreak(saved.memory) }
  Turn.take(turn, { _tag: "Restored", session })
  runtime.caches = Runtime.noCaches()
  // What was sent of it was sent by another process, or for another history.
  runtime.openedAt = session.requests
  History.capAll(turn)
  yield* Turn.commit(turn)
  yield* Spills.writeOf(turn)
})

/** Operations that nothing can be answered to do nothing once the session is lost. */
const orNothing = <R>(self: Effect.Effect<void, SessionStore.SessionLost, R>): Effect.Effect<void, never, R> =>
  Effect.ignore(self)

/** Makes the manager of one conversation. */
export const make = Effect.fnUntraced(function*<E, R>(
  policy: Policy.Prepared<E, R>,
  begun: Begun
): Effect.fn.Return<ContextManager<E | SessionStore.SessionLost>, SessionStore.SessionLost, R | Scope.Scope> {
  const context = yield* Effect.context<R>()
  const runtime = yield* makeRuntime(Prepare.resolve(policy, begun.state.call.route), begun)
  const writer = yield* makeWriter(policy)
  const follow = (route: string | undefined) => Runtime.follow(runtime, Prepare.resolve(policy, route), writer)
  follow(begun.state.call.route)
  yield* Effect.addFinalizer(() => close(runtime))
  if (begun.log !== undefined) yield* resume(runtime)
  const policyNow = () => policy.routes.get(runtime.policy) ?? policy
  const pass: Stage.Stage<E> = (given) => Effect.provideContext(policyNow().pass(given), context)
  const request = (call: Call) =>
    Turn.exclusively(runtime, (turn) => {
      follow(call.route)
      return Requests.run(turn, call, { stage: pass })
    })
  const changing = <A, E2>(operation: (turn: Turn.Turn) => Effect.Effect<A, E2>) => Turn.changing(runtime, operation)
  const status = reading(runtime, (turn) => Effect.sync(() => statusIn(turn)))
  return {
    append: (input) =>
      Effect.flatMap(
        Door.messagesOf(input),
        (messages) =>
          Turn.exclusively(runtime, (turn) =>
            Effect.andThen(History.take(turn, messages), Effect.andThen(Turn.commit(turn), Spills.writeOf(turn))))
      ),
    request: request({}),
    requestWith: request,
    sync: (prompt, call = {}) =>
      Effect.flatMap(Door.admit(prompt.content), (messages) =>
        Turn.exclusively(runtime, (turn) => {
          follow(call.route)
          return Effect.andThen(History.reconcile(turn, messages), Requests.run(turn, call, { stage: pass }))
        })),
    observe: ({ inputTokens, outputTokens }, request) =>
      orNothing(changing((turn) =>
        Effect.sync(() => {
          Turn.take(turn, billed(turn, inputTokens, outputTokens?.total, !isNewest(turn, request)))
        })
      )),
    abandon: (request) =>
      orNothing(changing((turn) =>
        Effect.sync(() => {
          if (isNewest(turn, request)) Turn.take(turn, { _tag: "Abandoned" })
        })
      )),
    undecided: (call = {}, failure) =>
      Turn.exclusively(runtime, (turn) => {
        follow(call.route)
        tellFailed(turn, failure)
        return Requests.run(turn, call, {})
      }),
    recover: (refused, call = {}) =>
      Turn.exclusively(runtime, (turn) => {
        follow(call.route)
        return Recover.run(turn, refused, call, pass)
      }),
    compactNow: (manual = {}) =>
      Effect.flatMap(
        Semaphore.withPermitsIfAvailable(runtime.compacting, 1)(Manual.compactNow(runtime, pass, manual)),
        Effect.fromOption
      ).pipe(Effect.catchTag("NoSuchElementError", () => Effect.fail(new CompactionBusy()))),
    preview: (cause = "pressure") =>
      reading(runtime, (turn) => Preview.run(turn, cause, { stage: pass, rungs: policyNow().pass.ladder?.rungs })),
    isDurable: begun.log !== undefined,
    fork: Effect.flatMap(
      reading(runtime, (turn) => Effect.map(Turn.whole(turn), () => Session.settled(turn.state))),
      // A session in memory alone is lost to nobody.
      (state) => Effect.provideContext(Effect.orDie(make(policy, { state })), context)
    ),
    rewind: (entry) => changing((turn) => History.rewind(turn, entry)),
    undo: (generation) => changing((turn) => Undo.run(turn, generation)),
    flush: flush(runtime),
    resumeSummaries: orNothing(changing((turn) => Effect.sync(() => Summaries.resume(turn)))),
    history: reading(
      runtime,
      (turn) => Effect.map(Turn.whole(turn), () => Prompt.fromMessages(History.ofCaller(turn.state)))
    ),
    view: reading(runtime, (turn) => Effect.map(layoutIn(turn), Layout.copyOf)),
    explain: (seq) =>
      reading(runtime, (turn) => Effect.map(layoutIn(turn), (layout) => View.receipt(Layout.viewOf(layout), seq))),
    receipts: reading(runtime, (turn) => Effect.map(layoutIn(turn), (layout) => View.receipts(Layout.viewOf(layout)))),
    export: reading(
      runtime,
      (turn) =>
        Effect.flatMap(
          Turn.whole(turn),
          () => Effect.orDie(Schema.encodeEffect(Session.SavedJson)(Session.save(turn.state)))
        )
    ),
    restore: (saved) =>
      Effect.flatMap(
        Schema.decodeEffect(Session.SavedJson)(saved, { errors: "all" }),
        (session) => Turn.exclusively(runtime, (turn) => become(turn, session))
      ),
    reset: Turn.exclusively(runtime, (turn) => become(turn, Session.save(Session.initial))),
    status,
    figures: reading(runtime, (turn) => Effect.succeed(turn.state.figures)),
    statusChanges: Stream.mapEffect(SubscriptionRef.changes(runtime.changes), () => status),
    events: Stream.fromPubSub(runtime.hub)
  }
})
