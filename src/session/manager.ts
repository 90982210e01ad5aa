import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as PubSub from "effect/PubSub"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Budget from "../Budget.ts"
import * as Checkpoint from "../Checkpoint.ts"
import * as CompactionEvent from "../CompactionEvent.ts"
import type {
  Call,
  CompactionReport,
  ContextManager,
  ManualCompactionError,
  ManualOptions,
  Request,
  Status
} from "../ContextManager.ts"
import * as Decision from "../Decision.ts"
import * as Estimator from "../Estimator.ts"
import * as Guard from "../Guard.ts"
import * as Ladder from "../Ladder.ts"
import type * as Overflow from "../Overflow.ts"
import type * as Policy from "../Policy.ts"
import * as Projection from "../Projection.ts"
import * as Reasoning from "../Reasoning.ts"
import * as Receipt from "../Receipt.ts"
import * as Rung from "../Rung.ts"
import * as RuntimeContext from "../RuntimeContext.ts"
import * as SessionLog from "../SessionLog.ts"
import type * as SessionStore from "../SessionStore.ts"
import * as Settings from "../Settings.ts"
import * as SpillStore from "../SpillStore.ts"
import * as Stage from "../Stage.ts"
import * as Summarizer from "../Summarizer.ts"
import { reasonOf } from "../text/reason.ts"
import * as TokenMeter from "../TokenMeter.ts"
import { CommitFailed, CompactionBusy, CompactionCancelled, PersistenceFailed, SurfaceChanged } from "../Transaction.ts"
import * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import { sameMessage } from "../wire/sameMessage.ts"
import * as Abridge from "./abridge.ts"
import { ContextCannotFit } from "./contextCannotFit.ts"
import * as Ingress from "./ingress.ts"
import * as Live from "./live.ts"
import * as Recorder from "./recorder.ts"
import * as Refire from "./refire.ts"
import * as Session from "./session.ts"
import * as Spills from "./spills.ts"
import * as Summaries from "./summaries.ts"
import type * as Summarise from "./summarise.ts"
import * as Tail from "./tail.ts"
import * as Telemetry from "./telemetry.ts"
import * as Attempt from "./transaction.ts"

/** A session as JSON. */
export const Saved = Schema.toCodecJson(Schema.Struct({
  version: Schema.Literal(1),
  messages: Schema.Array(Schema.Struct({
    message: Prompt.Message,
    origin: Schema.Literals(["caller", "library", "runtime"])
  })),
  decisions: Schema.Array(Decision.Decision),
  asked: Schema.NullOr(Schema.Struct({ entries: Schema.Natural, limit: Schema.Finite })),
  maximum: Schema.NullOr(Schema.Natural),
  maximumRoute: Schema.String,
  memory: Stage.PassMemory,
  meter: TokenMeter.State,
  tail: Tail.Memory,
  summaries: Schema.NullOr(Schema.Struct({
    pace: Summaries.Pace,
    ready: Schema.NullOr(Schema.Struct({
      checkpoint: Schema.Natural,
      seqs: Schema.Array(Schema.Natural),
      inPlace: Schema.Boolean
    }))
  }))
}))

/** A request that is not answered yet: how it was sent, and what holds again when it comes to nothing. */
interface Dispatched {
  readonly before: { readonly tail: Tail.Memory; readonly sent: number; readonly live: Live.Sent }
  readonly tail: Tail.Memory
  readonly sending: Live.Sending
  readonly counted: TokenMeter.Counted
  readonly isAbandoned: boolean
}

/** A view that is tried after an overflow is at most this share of what was refused, or of the maximum that was named. */
const recoverShare = 0.8

/** A session that goes on: where its log is kept, and what that says. */
export interface Opened {
  readonly store: SessionStore.Log
  readonly state: SessionLog.State
}

/** Makes the manager of one conversation. */
export const make = Effect.fnUntraced(function*<E, R>(
  policy: Policy.Prepared<E, R>,
  opened?: Opened
): Effect.fn.Return<ContextManager<E>, never, R | Scope.Scope> {
  const context = yield* Effect.context<R>()
  const estimator = yield* Estimator.Estimator
  const store = yield* SpillStore.SpillStore
  const summarizer = yield* Summarizer.Summarizer
  const locate = SpillStore.locateIn(store)
  const { settings, wire: rules } = policy
  const lock = yield* Semaphore.make(1)
  const hub = yield* Effect.acquireRelease(
    PubSub.sliding<CompactionEvent.CompactionEvent>(1_024),
    PubSub.shutdown
  )
  const changes = yield* SubscriptionRef.make(0)
  let state: Session.State = Session.fresh(Transcript.make(estimator.price), rules)
  let spills = Spills.make()
  /** What the last request returned; a session that was restored does not hold it. */
  let returned: Request | undefined
  /** The request that was made last; what it was sent as, and what held before it, until it is answered. */
  let last: Request | undefined
  let dispatched: Dispatched | undefined
  /** What was particular to the last request: what is done between requests is done for the same model. */
  let latest: Call = {}
  /** How often another session was put in the place of this one. */
  let epoch = 0
  let isCompacting = false
  let isClosed = false
  let recorder: Recorder.Recorder | undefined
  /** What is written of the session beside what can be seen of it, and what follows from it for those who look on. */
  let notes: Array<SessionLog.Event> = []
  let figures = opened?.state.figures ?? Projection.figures.initial

  const changed = SubscriptionRef.update(changes, (n) => n + 1)

  const publish = (event: CompactionEvent.CompactionEvent) => {
    if (event._tag === "CompactionSkipped") state.lastSkip = event
    if (event._tag === "Infeasible") state.lastInfeasible = event
    return Effect.andThen(Telemetry.record(event), Effect.asVoid(PubSub.publish(hub, event)))
  }

  const summaries = settings.summary === undefined || summarizer === undefined
    ? undefined
    : yield* Summaries.make(
      summarizer,
      settings.summary,
      (event) => Effect.andThen(publish(event), changed),
      policy.summaryRetry
    )
  if (settings.summary !== undefined && summarizer === undefined) {
    yield* Effect.logWarning("the settings ask for summaries and no Summarizer is provided: the ladder serves alone")
  }

  /** What the window holds now, if it is not what the figures say. */
  const heldNow = (): ReadonlyArray<SessionLog.Event> => {
    const window = latest.window ?? settings.window ?? null
    const tools = state.budget?.overhead ?? figures.breakdown.tools
    const held = { ...Live.held(state.live), tools }
    const { breakdown, pressure } = figures
    const isSame = window === pressure.window && held.system === breakdown.system && tools === breakdown.tools
      && held.messages === breakdown.messages && held.checkpoints === breakdown.checkpoints
    return isSame ? [] : [{ _tag: "Held", ...held, window }]
  }

  /** Writes down what has changed. Whatever it cannot write waits, and is told. */
  const recordNow = Effect.suspend((): Effect.Effect<void, SessionStore.WriteError> => {
    const written = notes
    const held = heldNow()
    notes = []
    figures = Projection.fold(Projection.figures, [...written, ...held].flatMap(SessionLog.projected), figures)
    if (recorder === undefined) return Effect.void
    const pace = summaries === undefined ? Summaries.initialPace : Summaries.paceOf(summaries)
    return Recorder.record(recorder, state, pace, summaries?.ready ?? null, written, held)
  })

  const record = Effect.catch(
    recordNow,
    (error) => publish({ _tag: "SessionNotStored", events: recorder?.pending.length ?? 0, reason: error.reason })
  )

  const locked = Semaphore.withPermit(lock)

  /** What may change the session: whatever it did, however it ended, is written down before anybody else sees it. */
  const recorded = <A, E2, R2>(self: Effect.Effect<A, E2, R2>) => locked(Effect.ensuring(self, record))

  /** Notes the evidence of a summary, whose checkpoint is appended next. */
  const noteSummary = (made: Summarise.Made, commandId: string | null = null) => {
    const { evidence, raw, span: { price, seqs }, text } = made
    notes.push({ _tag: "Summarised", seqs, price, text, raw, ...evidence, commandId })
  }

  /** Notes what was billed; what is malformed is no bill. */
  const noteBilled = (usage: TokenMeter.Usage, answered: number | undefined, beside: boolean) => {
    const total = TokenMeter.usedOf(usage)
    if (total === undefined) return
    const { cacheRead = 0, cacheWrite = 0 } = usage
    const input = Math.max(0, total - cacheRead - cacheWrite)
    const output = TokenMeter.usedOf({ total: answered }) ?? 0
    notes.push({ _tag: "Billed", input, cacheRead, cacheWrite, output, beside })
  }

  const enter = (self: Summaries.Summaries, made: Summarise.Made, commandId?: string) => {
    noteSummary(made, commandId)
    return Summaries.enter(self, state.transcript, made)
  }

  const land = (self: Summaries.Summaries) => {
    if (self.made !== undefined) noteSummary(self.made)
    Summaries.land(self, state.transcript)
  }

  /** Cuts what is too large of the results that came in from an entry on. Nothing of them was sent, so it is no boundary. */
  const capFrom = (from: number): ReadonlyArray<Ingress.Capped> => {
    const capped = Ingress.capsOf(settings, state.transcript, state.index, locate, from)
    if (capped.length === 0) return capped
    const decisions = capped.map(({ decision }) => decision)
    state.decisions = [...state.decisions, ...decisions]
    Decision.addTo(state.index, decisions)
    return capped
  }

  const tellCapped = Effect.fnUntraced(function*(capped: ReadonlyArray<Ingress.Capped>) {
    for (const { event } of capped) yield* publish(event)
    yield* spill(capped.map(({ decision }) => decision), publish)
  })

  /** Writes the texts that new decisions point at. */
  const spill = (decisions: ReadonlyArray<Decision.Decision>, tell: typeof publish) =>
    Spills.write(spills, store, Spills.add(spills, store, state.transcript, state.index, decisions), tell)

  /**
   * Reads what a snapshot left out, for whatever asks about more than the next view. The log that was opened was whole: that
   * it cannot be read any more is nobody's outcome to handle.
   */
  const whole = Effect.suspend((): Effect.Effect<void> => {
    if (opened === undefined || state.transcript.skipped === 0) return Effect.void
    const { abridged, decisions: first, events, messages } = opened.state
    const known = (abridged?.runs ?? []).reduce((sum, run) => sum + run.messages, messages.length)
    return Effect.map(Effect.orDie(SessionLog.readWhole(opened.store, events)), (read) => {
      const transcript = SessionLog.transcriptOf(read, estimator.price)
      for (let at = known; at < state.transcript.messages.length; at++) {
        Transcript.append(transcript, state.transcript.messages[at]!, state.transcript.origins[at])
      }
      const decisions = [...read.decisions, ...state.decisions.slice(first.length)]
      const index = Decision.index(decisions)
      const live = Live.over(state.live, transcript, index)
      state = { ...state, transcript, decisions, index, live, gone: Decision.noCounts }
      if (recorder !== undefined) Recorder.over(recorder, state)
    })
  })

  /** Takes in messages. Whatever is to be told or written comes after the last: an interruption leaves none of them out. */
  const take = Effect.fnUntraced(function*(messages: ReadonlyArray<Prompt.Message>) {
    const capped: Array<Ingress.Capped> = []
    for (const message of messages) {
      if (Abridge.reachesBack(state.transcript, message)) yield* whole
      const from = state.transcript.entries.length
      Transcript.append(state.transcript, message)
      capped.push(...capFrom(from))
    }
    yield* tellCapped(capped)
  })

  /**
   * The budget of a call. A maximum that the provider named wins over everything that was assumed. What the first bill
   * showed beyond its price comes off it where a meter reads bills, and never more than half: a first bill of a long view
   * holds the estimator's error too, and a budget of nothing would never be compacted to.
   */
  const budgetFor = (call: Call): Budget.Budget => {
    const { maxOutput = settings.maxOutput, overhead = 0, window } = call
    const resolved = window === undefined ? settings : { ...settings, window, maxOutput }
    // What one provider refused says nothing about the model of another route.
    const maximum = state.maximumRoute === (call.route ?? "") ? state.maximum : null
    if (settings.meter === "estimate") return Budget.resolve(resolved, call.budget, overhead, maximum)
    const { total } = Budget.resolve(resolved, call.budget, 0, maximum)
    const learned = Math.min(TokenMeter.overheadOf(state.meter), Math.floor(total / 2))
    return Budget.resolve(resolved, call.budget, Math.max(overhead, learned), maximum)
  }

  /** The pass over the view as it is now. */
  const passFor = (sending: () => Live.Sending, reading: TokenMeter.Reading, budget: Budget.Budget) => {
    const { live } = state
    const before = Session.lazyView(state, Live.priceOf(live))
    const scale = Settings.isSizedByProvider(settings) && reading.kind === "usage" && before.price > 0
      ? reading.tokens / before.price
      : 1
    const sizes = Budget.inPrices(budget, scale)
    const made: Stage.Pass = {
      view: before,
      before,
      entries: Live.conversationOf(live),
      fixed: live.systemPrice + budget.overhead,
      budget,
      sizes,
      scale,
      count: reading,
      settings,
      memory: state.memory,
      report: Stage.noReport,
      payload: () => Live.payloadOf(live, sending()),
      locate,
      ready: summaries?.ready ?? null,
      summarise: summaries === undefined || isCompacting || !Summaries.mayAsk(summaries)
        ? null
        : summariseIn(summaries, { budget, scale, sizes })
    }
    return made
  }

  /** What a summary of a view is made of, or `undefined` when no span of it is worth one. */
  const planOf = (
    view: View.View,
    { budget, scale }: Pick<Stage.Pass, "budget" | "scale">,
    span: Checkpoint.SpanOptions,
    fallback: Summarizer.Fallback | null,
    focus?: string
  ): Summarise.Plan | undefined => {
    // A budget may be well below the window; a request for a summary may fill the window.
    const { window = 0 } = settings
    const whole = budget.source === "provider" ? 0 : window - Settings.reservesOf(settings, window).margin
    const room = Math.floor((Math.max(budget.total, whole) - budget.overhead) / scale)
    const found = Checkpoint.span(view, settings, span)
    if (found === undefined) return undefined
    const { live } = state
    const isSent = found.seqs.every((seq) => seq < live.sentEntries)
    const prefix = fallback ?? (isSent ? Live.sentUpTo(live, new Set(found.seqs)) ?? "prefixChanged" : "notSent")
    return { view, span: found, prefix, generation: state.memory.generation, limit: budget.limit, room, focus }
  }

  /** A summary that is begun early takes what will have to go at the trigger, when it is absorbed, not what must go now. */
  const spanOptions = (self: Summaries.Summaries, sizes: Budget.Sizes, price: number): Checkpoint.SpanOptions => ({
    aim: Math.min(sizes.target, price - (sizes.trigger - sizes.target)),
    retain: Math.floor(self.summary.retain * sizes.limit),
    minimum: Math.floor(self.summary.minSpan * sizes.limit),
    heedProtection: self.summary.heedProtection,
    mergeCheckpoints: self.summary.mergeCheckpoints
  })

  /** Everything that can be spared: what a person asks for, and what an overflow leaves no choice about. */
  const spanOfAll = (self: Summaries.Summaries, aim: number): Checkpoint.SpanOptions => ({
    aim,
    retain: 0,
    minimum: 0,
    heedProtection: false,
    mergeCheckpoints: self.summary.mergeCheckpoints
  })

  /** Writes a summary while a pass waits. It fails with nothing: what went wrong is published, and the pass goes on. */
  const summariseIn =
    (self: Summaries.Summaries, pass: Pick<Stage.Pass, "budget" | "scale" | "sizes">) => (view: View.View) =>
      Effect.gen(function*() {
        const isPruned = view.decisions.length > state.decisions.length
        const plan = planOf(view, pass, spanOptions(self, pass.sizes, view.price), isPruned ? "pruned" : null)
        if (plan === undefined) return null
        const made = yield* Summaries.ask(self, plan)
        return made._tag === "None" ? null : enter(self, made.value)
      })

  /** Whether the summaries of a pass brought it below the trigger: the ladder, which came after them, is not counted. */
  const isConverged = (given: Stage.Pass, taken: ReadonlyArray<Decision.Decision>): boolean => {
    const last = taken.findLastIndex((decision) => decision._tag === "Absorb")
    if (last < 0) return false
    const view = View.make(state.transcript, [...given.before.decisions, ...taken.slice(0, last + 1)])
    return Stage.pressureOf({ ...given, view }) < given.sizes.trigger
  }

  /** Begins a summary beside the session, when it is time for one. It is about what was sent before this request. */
  const consider = Effect.fnUntraced(function*(
    self: Summaries.Summaries,
    after: Stage.Pass,
    count: TokenMeter.TokenCount,
    sentBefore: number,
    prefixChanged: Request["prefixChanged"]
  ) {
    const { limit } = after.budget
    if (isCompacting || !Summaries.isDue(self, count.tokens, limit)) return
    if (Settings.isGated(settings) && count.kind !== "usage") return
    const fallback = prefixChanged === null ? null : "prefixChanged"
    const plan = planOf(after.view, after, spanOptions(self, after.sizes, after.view.price), fallback)
    if (plan === undefined) return Summaries.foundNone(self, count.tokens, limit)
    const isSent = plan.span.seqs.every((seq) => seq < sentBefore)
    yield* Summaries.start(self, isSent ? plan : { ...plan, prefix: "notSent" })
  })

  /** The checkpoints that new decisions put into the view. */
  const absorbedBy = (decisions: ReadonlyArray<Decision.Decision>): ReadonlyArray<Decision.Absorb> =>
    decisions.filter((decision) => decision._tag === "Absorb")

  /** The runtime context that a view under the decisions taken so far lacks. */
  const lacking = Effect.fnUntraced(function*({ runtimeContext }: Call) {
    // Nothing may stand between a call and its results, nor behind a turn that the provider is going to continue.
    if (runtimeContext === undefined || Tail.hasOpenCalls(state.transcript)) return undefined
    const current = typeof runtimeContext === "string" ? runtimeContext : yield* runtimeContext
    return RuntimeContext.project(state, current)
  })

  /** Sends what came to nothing once more, as it was. */
  const dispatchAgain = (call: Call): Request["prefixChanged"] => {
    if (dispatched === undefined || returned === undefined || !dispatched.isAbandoned) return null
    dispatched = { ...dispatched, isAbandoned: false }
    state.tail = dispatched.tail
    state.sent = state.memory.generation
    Live.send(state.live, dispatched.sending)
    const { entries, generation, price } = dispatched.counted
    state.meter = TokenMeter.dispatch(state.meter, { ...Session.countedOf(state, call), price, entries, generation })
    return returned.prefixChanged
  }

  /** Takes back what a request left behind that came to nothing. */
  const takeBack = () => {
    if (dispatched === undefined) {
      // It was sent in another process.
      if (state.unsent !== null) {
        state.tail = state.unsent.tail
        state.sent = state.unsent.sent
      }
      return
    }
    if (dispatched.isAbandoned) return
    dispatched = { ...dispatched, isAbandoned: true }
    state.tail = dispatched.before.tail
    state.sent = dispatched.before.sent
    Live.putBack(state.live, dispatched.before.live)
  }

  /** Builds a request; undecided, it is the view under the decisions taken so far, and cannot fail. */
  const buildWith = <E2, R2>(decide: Stage.Stage<E2, R2>) =>
    Effect.fnUntraced(function*(call: Call) {
      latest = call
      const budget = budgetFor(call)
      const asked: Session.Asked = { entries: state.transcript.entries.length, limit: budget.limit }
      const isRepeated = state.asked !== null && Session.isSame(state.asked, asked)
        && (yield* lacking(call)) === undefined
      const unwritten = [...spills.pending.keys()]
      if (isRepeated && returned !== undefined) {
        yield* Spills.write(spills, store, unwritten, () => Effect.void)
        return last = { ...returned, prefixChanged: dispatchAgain(call), events: [] }
      }
      const events: Array<CompactionEvent.CompactionEvent> = []
      const tell = (event: CompactionEvent.CompactionEvent) => {
        events.push(event)
        return publish(event)
      }
      yield* Spills.write(spills, store, unwritten, tell)
      if (summaries !== undefined && !isRepeated) land(summaries)
      const { live } = state
      const repairs = Live.update(live)
      let sending = Live.prepare(live)
      const { overhead } = budget
      const counted = { ...Session.countedOf(state, call), price: Live.priceOf(live) + sending.added, overhead }
      const reading = TokenMeter.read(state.meter, settings.meter, counted)
      if (Session.hasRepairs(repairs)) yield* tell({ _tag: "TranscriptRepaired", ...repairs })
      if (Session.isOtherBudget(state.budget, budget)) yield* tell(Session.resolved(budget))
      yield* tell(Session.counting(reading, state.memory, budget))
      const given = passFor(() => sending, reading, budget)
      if (summaries !== undefined) Summaries.begin(summaries)
      const after = yield* (isRepeated ? Effect.succeed(given) : decide(given)).pipe(
        Effect.provideService(CompactionEvent.Publisher, tell),
        Effect.tapError(() =>
          Effect.sync(() => {
            state.memory = events.reduce(Session.remember, state.memory)
            state.asked = null
            if (summaries !== undefined) Summaries.gaveUp(summaries)
          })
        )
      )
      state.asked = null
      const { before } = given
      const boundary = Session.commit(state, before, {
        ...after,
        memory: events.reduce(Session.remember, after.memory)
      })
      const taken = state.decisions.slice(before.decisions.length)
      if (boundary !== undefined) {
        // What was appended in the pass, a checkpoint, is in the view already.
        Live.update(live)
        yield* Effect.andThen(tell(boundary), spill(taken, tell)).pipe(Telemetry.span(boundary))
        sending = Live.prepare(live)
      }
      let { price } = after.view
      const context = yield* lacking(call)
      if (context !== undefined) {
        Transcript.append(state.transcript, context, "runtime")
        price += state.transcript.entries.at(-1)!.price
        Live.update(live)
        sending = Live.prepare(live)
      }
      if (isRepeated && state.unsent !== null) {
        // The session went on in another process: the same request again says the same.
        state.tail = state.unsent.tail
        state.sent = state.unsent.sent
      }
      state.unsent = { tail: state.tail, sent: state.sent }
      const unsent: Dispatched["before"] = { tail: state.tail, sent: state.sent, live: Live.sentOf(live) }
      // A request that was interrupted while it wrote was not sent: its boundary is the next one's.
      const isBoundary = state.memory.generation !== state.sent
      state.sent = state.memory.generation
      const sentBefore = live.sentEntries
      const change = Live.send(live, sending)
      const prefixChanged = change === undefined ? null : Session.causeOf(change, isBoundary)
      if (change !== undefined && prefixChanged !== null) {
        yield* tell({ _tag: "PrefixChanged", cause: prefixChanged, seq: change.seq })
      }
      price += sending.added
      const tail = Tail.make(state.tail, {
        transcript: state.transcript,
        settings,
        room: budget.total - budget.overhead - price,
        isBoundary,
        level: state.memory.level,
        generation: state.memory.generation,
        counts: () => Session.countsOf(state),
        isPaused: sending.isPaused,
        ...Live.lastHumanOf(live)
      })
      state.tail = tail.memory
      const sent = { ...Session.countedOf(state, call), price: price + tail.price, overhead }
      const count = TokenMeter.read(state.meter, settings.meter, sent)
      state.meter = TokenMeter.dispatch(state.meter, sent)
      dispatched = { before: unsent, tail: tail.memory, sending, counted: sent, isAbandoned: false }
      state.reading = reading
      state.budget = budget
      if (summaries !== undefined && !isRepeated) {
        const { ready } = summaries
        const isAbsorbed = absorbedBy(taken).some((decision) => decision.checkpoint === ready?.checkpoint)
        for (const decision of absorbedBy(taken)) {
          if (decision.checkpoint !== ready?.checkpoint) {
            yield* Summaries.absorbed(summaries, decision, count.tokens, state.memory.generation, budget.limit)
          }
        }
        const isStale = ready !== undefined && !isAbsorbed && ready.seqs.some((seq) => state.index.removed.has(seq))
        // A boundary that had another reason than the count did not try the summary; it waits on.
        const isUseless = ready !== undefined && boundary !== undefined && !isAbsorbed && !isStale
          && !Checkpoint.shortens(after.view, ready)
        yield* Summaries.settle(summaries, {
          isAbsorbed,
          isUseless,
          isStale,
          count: count.tokens,
          isConverged: summaries.asked > 0 && isConverged(given, taken),
          generation: state.memory.generation
        }, budget.limit)
        yield* consider(summaries, after, count, sentBefore, prefixChanged)
      }
      const request: Request = {
        // The copy of a long history is what a request below the trigger costs: there is one, not two.
        prompt: Prompt.fromMessages(
          tail.messages.length === 0 ? sending.messages : sending.messages.concat(tail.messages)
        ),
        stableLength: sending.messages.length,
        count: { tokens: count.tokens + overhead, kind: count.kind },
        generation: state.memory.generation,
        prefixChanged,
        events
      }
      state.asked = { entries: state.transcript.entries.length, limit: budget.limit }
      returned = request
      last = request
      yield* changed
      return request
    })

  const decided = buildWith(policy.pass)
  const build = (call: Call) => Effect.provideContext(decided(call), context)
  const undecided = buildWith(Effect.succeed)

  const tellFailed = (failure: unknown) =>
    failure === undefined ? Effect.void : publish({
      _tag: "PassFailed",
      error: Predicate.hasProperty(failure, "_tag") && typeof failure._tag === "string" ? failure._tag : "unknown",
      reason: reasonOf(failure)
    })

  /** Puts another session in the place of this one; what was being summarised is about a transcript that is no more. */
  const become = Effect.fnUntraced(function*(next: Session.State, pace: Summaries.Pace) {
    state = next
    epoch++
    returned = undefined
    dispatched = undefined
    if (summaries !== undefined) yield* Summaries.clear(summaries, pace)
    yield* changed
  })

  /** Drops the messages from one on, with what was decided since they came. */
  const dropFrom = Effect.fnUntraced(function*(at: number) {
    const kept = Transcript.take(state.transcript, at)
    const length = kept.entries.length
    const dropped = state.transcript.entries.length - length
    // A checkpoint that came after the decision to absorb goes with what comes after.
    const decisions = state.decisions.filter((decision) =>
      decision.at <= length && !(decision._tag === "Absorb" && decision.checkpoint >= length)
    )
    // What was billed was billed for another history: it is no anchor, but what it says about prices holds.
    const meter = TokenMeter.forgetReading(state.meter)
    const memory = { ...state.memory, streak: 0, holders: null }
    const { live, maximum, maximumRoute, tail } = state
    const next = { ...Session.fresh(kept, rules, decisions, memory, meter, tail), maximum, maximumRoute }
    const refire = summaries?.refire ?? Refire.initial
    yield* become(next, { ...Summaries.initialPace, refire })
    Live.inherit(state.live, live)
    yield* publish({ _tag: "TranscriptDiverged", seq: length, dropped })
  })

  /** Drops the message of an entry and all that came after it. */
  const rewind = Effect.fnUntraced(function*(entry: number) {
    yield* whole
    let entries = 0
    let at = 0
    for (const message of state.transcript.messages) {
      entries += Transcript.entriesOf(message)
      if (entries > entry) break
      at++
    }
    if (at < state.transcript.messages.length) yield* dropFrom(at)
  })

  /** Takes in a caller's prompt: finds the first message that is not the one seen before, and appends from there. */
  const reconcile = Effect.fnUntraced(function*(prompt: Prompt.Prompt) {
    yield* whole
    const { messages, origins } = state.transcript
    const incoming = prompt.content
    let known = 0
    let at = 0
    for (; at < messages.length; at++) {
      if (origins[at] !== "caller") continue
      if (known >= incoming.length || !sameMessage(messages[at]!, incoming[known]!)) break
      known++
    }
    if (at < messages.length) yield* dropFrom(at)
    yield* take(incoming.slice(known))
  })

  /** The view as it is now, as a pass that nothing judges: for what a person asks for. */
  const manualPass = Effect.sync(() => {
    Live.update(state.live)
    const sending = Live.prepare(state.live)
    const budget = budgetFor(latest)
    const price = Live.priceOf(state.live) + sending.added
    const counted = { ...Session.countedOf(state, latest), price, overhead: budget.overhead }
    return passFor(() => sending, TokenMeter.read(state.meter, settings.meter, counted), budget)
  })

  /** Commits what a person asked for, as a boundary of its own; the next request carries it. */
  const commitManual = Effect.fnUntraced(function*(given: Stage.Pass, made: Stage.Pass) {
    const after = yield* Reasoning.strip(() => Effect.succeed(made))(given)
    const boundary = Session.commit(state, given.before, after)
    if (boundary === undefined) return
    state.asked = null
    Live.update(state.live)
    const taken = state.decisions.slice(given.before.decisions.length)
    yield* Effect.andThen(publish(boundary), spill(taken, publish)).pipe(Telemetry.span(boundary))
    yield* changed
  })

  const reportOf = (given: Stage.Pass, after: Stage.Pass, checkpoint: number | null, manual: ManualOptions) =>
    Option.some<CompactionReport>({
      entries: given.entries - View.conversation(after.view),
      tokens: given.before.price - after.view.price,
      generation: state.memory.generation,
      checkpoint,
      commandId: manual.commandId ?? null
    })

  /** What compacting by hand is going to do: climb the ladder, or absorb what is summarised meanwhile. */
  type Intent =
    | { readonly _tag: "ladder"; readonly given: Stage.Pass; readonly after: Stage.Pass }
    | {
      readonly _tag: "summary"
      readonly self: Summaries.Summaries
      readonly plan: Summarise.Plan
      readonly since: number
    }

  const intentOf = Effect.fnUntraced(function*(manual: ManualOptions): Effect.fn.Return<Intent | undefined> {
    const given = yield* manualPass
    if (summaries !== undefined) {
      const plan = planOf(given.view, given, spanOfAll(summaries, 0), null, manual.focus)
      return plan === undefined ? undefined : { _tag: "summary", self: summaries, plan, since: epoch }
    }
    const pruned = yield* Rung.stage(Rung.pruneToolResults())(given)
    const after = yield* Ladder.climb(Ladder.progressive, pruned, { target: given.sizes.target })
    return after.view.price >= given.view.price ? undefined : { _tag: "ladder", given, after }
  })

  const absorbNow = Effect.fnUntraced(function*(
    { self, since }: Extract<Intent, { readonly _tag: "summary" }>,
    made: Summarise.Made,
    manual: ManualOptions
  ) {
    const given = yield* manualPass
    // Of another transcript, after a reset, the same seqs are other entries.
    if (since !== epoch || !Checkpoint.holds(given.view, made.span.seqs)) {
      return yield* new SurfaceChanged({ entries: made.span.seqs.length })
    }
    const ready = enter(self, made, manual.commandId)
    const after = yield* Stage.guard(Checkpoint.absorb, Guard.shrinks)({ ...given, ready })
    yield* commitManual(given, after)
    yield* Summaries.absorbed(self, ready, after.view.price, state.memory.generation, given.budget.limit)
    return reportOf(given, after, ready.checkpoint, manual)
  })

  /** Takes back what was done since, when it cannot be written: the log says what holds. */
  const orTakeBack = <A, E>(self: Effect.Effect<A, E>): Effect.Effect<A, E | CommitFailed> =>
    Effect.suspend(() => {
      if (recorder === undefined) return self
      const recording = recorder
      const before = { ...state }
      const told = figures
      const messages = state.transcript.messages.length
      const to = Recorder.mark(recording)
      return Effect.tap(self, () =>
        Effect.catch(recordNow, (error) => {
          const kept = Transcript.take(state.transcript, messages)
          const { decisions, live: _, index: __, transcript: ___, ...rest } = before
          const { live } = state
          state = { ...Session.fresh(kept, rules, decisions), ...rest }
          Live.inherit(state.live, live)
          Recorder.takeBack(recording, to, kept)
          figures = told
          return Effect.fail(new CommitFailed({ event: "replace", reason: error.reason }))
        }))
    })

  /** The view of a pass with a checkpoint in the place of everything that can be spared, if one can be written. */
  const summarised = Effect.fnUntraced(function*(self: Summaries.Summaries, given: Stage.Pass, aim: number) {
    if (isCompacting || self.isRunning || self.refire.isOpen) return given
    const fallback = given.view === given.before ? null : "pruned"
    const plan = planOf(given.view, given, spanOfAll(self, aim), fallback)
    const made = plan === undefined ? Option.none() : yield* Summaries.tried(self, plan)
    if (made._tag === "None") return given
    const ready = enter(self, made.value)
    const after = yield* Checkpoint.absorbSmaller({ ...given, ready })
    if (after.view !== given.view) {
      yield* Summaries.absorbed(self, ready, after.view.price, state.memory.generation + 1, given.budget.limit)
    }
    return after
  })

  /**
   * Makes a smaller view after the provider refused the last one: step by step, each one smaller, until it is well below
   * what was refused. Nothing stands before it: the refusal is all the evidence there is.
   */
  const recover = Effect.fnUntraced(function*(named: Overflow.Refused, call: Call) {
    const refusedPrice = returned === undefined || state.meter.inFlight === null
      ? Live.priceOf(state.live)
      : state.meter.inFlight.price
    const window = Budget.windowOf(settings, call)
    const refused = TokenMeter.plausibleRefusal(named, refusedPrice, window)
    state.meter = refused.tokens === undefined
      ? TokenMeter.abandon(state.meter)
      : TokenMeter.observe(state.meter, { total: refused.tokens }, Math.max(window, refused.tokens))
    takeBack()
    if (refused.maximum !== undefined) {
      state.maximum = refused.maximum
      state.maximumRoute = call.route ?? ""
    }
    latest = call
    const given = yield* manualPass
    const scale = refused.tokens === undefined || refusedPrice === 0 ? 1 : refused.tokens / refusedPrice
    const most = Math.min(refusedPrice, refused.maximum === undefined ? Infinity : refused.maximum / scale)
    const target = Math.floor(most * recoverShare)
    const isDone = (pass: Stage.Pass) => pass.view.price <= target
    let after = given
    const steps: ReadonlyArray<(pass: Stage.Pass) => Effect.Effect<Stage.Pass>> = [
      Rung.stage(Rung.pruneToolResults({ keepNewest: 0, stopAtTarget: false })),
      (pass) => summaries === undefined ? Effect.succeed(pass) : summarised(summaries, pass, target),
      (pass) => Ladder.climb(Ladder.progressive, pass, { target }),
      (pass) => Ladder.climb(Ladder.make(Rung.fit), pass, { target })
    ]
    for (const step of steps) {
      if (isDone(after)) break
      const next = yield* step(after)
      if (next.view.price < after.view.price) after = next
    }
    const tooLarge = refused.maximum !== undefined && after.view.price * scale > refused.maximum
    if (after.view.price >= given.view.price || tooLarge) {
      return yield* new ContextCannotFit({
        tokens: Math.ceil(after.view.price * scale),
        maximum: refused.maximum ?? null,
        holders: Ladder.holdersOf(after.view)
      })
    }
    yield* commitManual(given, after)
    return yield* undecided(call)
  })

  /**
   * Whether a request was sent that nothing has come of yet: no usage, no failure, and no entry behind it. Where nobody ever
   * says what came of a request, nothing can be told from their silence.
   */
  const isOpen = () => {
    const { inFlight, readings } = state.meter
    return inFlight !== null && readings > 0 && dispatched?.isAbandoned === false
      && inFlight.entries === state.transcript.entries.length
  }

  /** Writes a mark of a compaction. */
  const writeMark = (event: "start" | "end") =>
    Effect.mapError(recordNow, (error) => new CommitFailed({ event, reason: error.reason }))

  const flush = recorded(
    Effect.suspend(() => recorder === undefined ? Effect.void : Effect.andThen(recordNow, recorder.store.flush))
  )

  const begin = Effect.fnUntraced(function*(manual: ManualOptions) {
    if (isClosed) return yield* new CompactionCancelled()
    if (isCompacting || summaries?.isRunning === true || isOpen()) return yield* new CompactionBusy()
    yield* whole
    const intent = yield* intentOf(manual)
    if (intent === undefined) return undefined
    notes.push({ _tag: "CompactionStarted", commandId: manual.commandId ?? null })
    yield* Effect.tapError(writeMark("start"), () =>
      Effect.sync(() => {
        notes.push({ _tag: "CompactionEnded", commandId: manual.commandId ?? null, reason: "it was not begun" })
      }))
    isCompacting = true
    return intent
  })

  const compactNow = Effect.fnUntraced(function*(
    manual: ManualOptions = {}
  ): Effect.fn.Return<Option.Option<CompactionReport>, ManualCompactionError> {
    const ended = yield* Attempt.run({
      exclusively: locked,
      begin: begin(manual),
      summarise: (intent): Effect.Effect<Summarise.Made | undefined, Summaries.Failure> =>
        intent._tag === "ladder" ? Effect.undefined : Summaries.now(intent.self, intent.plan),
      commit: (intent, made) =>
        orTakeBack(Effect.gen(function*() {
          if (intent._tag === "summary" && made !== undefined) return yield* absorbNow(intent, made, manual)
          // The ladder does not wait, but others may have been let in between.
          const now = yield* intentOf(manual)
          if (now?._tag !== "ladder") return Option.none<CompactionReport>()
          yield* commitManual(now.given, now.after)
          return reportOf(now.given, now.after, null, manual)
        })),
      close: (_, failure) =>
        Effect.suspend(() => {
          isCompacting = false
          const reason = failure === undefined ? null : Attempt.reasonOf(failure)
          notes.push({ _tag: "CompactionEnded", commandId: manual.commandId ?? null, reason })
          return writeMark("end")
        }),
      flush: recorder === undefined
        ? Effect.void
        : Effect.mapError(recorder.store.flush, ({ reason }) => new PersistenceFailed({ reason }))
    })
    if (ended._tag === "failed") {
      return yield* Attempt.isCancelled(ended.cause) ? new CompactionCancelled() : Effect.failCause(ended.cause)
    }
    return ended._tag === "done" ? ended.result : Option.none()
  })

  const viewNow = Effect.map(whole, () => View.make(state.transcript, state.decisions))

  const compacting = yield* Semaphore.make(1)

  /** Closing refuses new calls, ends the writing of a summary, and waits for the call that is running, to its flush. */
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isClosed = true
      const stop = summaries === undefined ? Effect.void : Summaries.stop(summaries)
      return Effect.andThen(stop, Semaphore.withPermit(compacting, Effect.ignore(flush)))
    })
  )

  const status = locked(Effect.sync((): Status => ({
    entries: state.transcript.entries.length,
    counts: Session.countsOf(state),
    level: state.memory.level,
    generation: state.memory.generation,
    streak: state.memory.streak,
    overrides: state.memory.overrides,
    refusals: state.memory.refusals,
    reading: state.reading,
    budget: state.budget,
    lastBoundary: state.lastBoundary,
    lastSkip: state.lastSkip,
    lastInfeasible: state.lastInfeasible,
    summary: summaries === undefined ? null : Summaries.phaseOf(summaries)
  })))

  if (opened !== undefined) {
    const { abridged, asked, decisions, maximum, maximumRoute, memory, meter, pace, ready, sent, tail, unsent } =
      opened.state
    const transcript = SessionLog.transcriptOf(opened.state, estimator.price)
    const next = Session.fresh(transcript, rules, [...decisions], memory, meter, tail)
    const gone = abridged?.counts ?? Decision.noCounts
    yield* become({ ...next, asked, maximum, maximumRoute, sent, unsent, gone }, pace)
    const { checkpoints, messages, system } = figures.breakdown
    Live.presume(state.live, messages + checkpoints, system)
    if (summaries !== undefined) summaries.ready = ready ?? undefined
    recorder = Recorder.make(opened.store, state, pace, ready)
    Spills.add(spills, store, transcript, state.index, state.decisions)
    const capped = capFrom(0)
    if (capped.length > 0) state.asked = null
    yield* recorded(tellCapped(capped))
  }

  return {
    append: (input) => recorded(Effect.flatMap(Session.messagesOf(input), take)),
    request: recorded(Effect.suspend(() => build({}))),
    requestWith: (call) => recorded(Effect.suspend(() => build(call))),
    sync: (prompt, call = {}) => recorded(Effect.flatMap(reconcile(prompt), () => build(call))),
    observe: ({ inputTokens, outputTokens }, request) =>
      recorded(Effect.sync(() => {
        noteBilled(inputTokens, outputTokens?.total, request !== undefined && request !== last)
        if (request !== undefined && request !== last) return
        state.meter = TokenMeter.observe(state.meter, inputTokens, Budget.windowOf(settings, latest))
        state.asked = null
        state.unsent = null
        dispatched = undefined
      })),
    abandon: (request) =>
      recorded(Effect.sync(() => {
        if (request !== undefined && request !== last) return
        state.meter = TokenMeter.abandon(state.meter)
        takeBack()
      })),
    undecided: (call = {}, failure) =>
      recorded(Effect.andThen(tellFailed(failure), Effect.suspend(() => undecided(call)))),
    recover: (refused, call = {}) => recorded(Effect.suspend(() => recover(refused, call))),
    compactNow: (manual) =>
      Effect.flatMap(
        Semaphore.withPermitsIfAvailable(compacting, 1)(compactNow(manual)),
        Option.match({ onNone: () => Effect.fail(new CompactionBusy()), onSome: Effect.succeed })
      ),
    rewind: (entry) => recorded(rewind(entry)),
    flush,
    resumeSummaries: recorded(Effect.suspend(() => {
      if (summaries === undefined) return Effect.void
      summaries.refire = { ...summaries.refire, failures: 0, isOpen: false }
      return changed
    })),
    history: locked(Effect.map(whole, () => Prompt.fromMessages(Session.historyOf(state.transcript)))),
    view: locked(viewNow),
    explain: (seq) => locked(Effect.map(viewNow, (view) => Receipt.of(view, seq))),
    receipts: locked(Effect.map(viewNow, Receipt.all)),
    export: recorded(Effect.flatMap(whole, () => {
      if (summaries?.made !== undefined) {
        const { length } = state.transcript.entries
        land(summaries)
        // The checkpoint makes no other request of the one that was asked for last.
        const isSame = state.asked?.entries === length
        if (state.asked !== null && isSame) state.asked = { ...state.asked, entries: state.transcript.entries.length }
      }
      const { asked, decisions, maximum, maximumRoute, memory, meter, tail, transcript } = state
      const messages = transcript.messages.map((message, at) => ({
        message: Session.savable(message),
        origin: transcript.origins[at]!
      }))
      const saved = summaries === undefined
        ? null
        : { pace: Summaries.paceOf(summaries), ready: summaries.ready ?? null }
      return Effect.orDie(
        Schema.encodeEffect(Saved)({
          version: 1,
          messages,
          decisions,
          asked,
          maximum,
          maximumRoute,
          memory,
          meter,
          tail,
          summaries: saved
        })
      )
    })),
    restore: (saved) =>
      recorded(
        Effect.flatMap(Schema.decodeEffect(Saved)(saved, { errors: "all" }), (decoded) =>
          Effect.gen(function*() {
            yield* whole
            const { messages } = decoded
            const transcript = SessionLog.transcriptOf({ messages, abridged: null }, estimator.price)
            const { asked, decisions, maximum, maximumRoute, memory, meter, tail } = decoded
            const next = Session.fresh(transcript, rules, decisions, { ...memory, streak: 0 }, meter, tail)
            const pace = decoded.summaries?.pace ?? Summaries.initialPace
            yield* become({ ...next, asked, maximum, maximumRoute }, pace)
            if (summaries !== undefined) summaries.ready = decoded.summaries?.ready ?? undefined
            spills = Spills.make()
            Spills.add(spills, store, transcript, state.index, decisions)
            const capped = capFrom(0)
            // What was cut only now makes another request than the one that was asked for last.
            if (capped.length > 0) state.asked = null
            yield* tellCapped(capped)
          }))
      ),
    reset: recorded(Effect.suspend(() => {
      spills = Spills.make()
      return become(Session.fresh(Transcript.make(estimator.price), rules), Summaries.initialPace)
    })),
    status,
    figures: locked(Effect.sync(() => figures)),
    statusChanges: Stream.mapEffect(SubscriptionRef.changes(changes), () => status),
    events: Stream.fromPubSub(hub)
  }
})
