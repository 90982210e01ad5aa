/**
 * One conversation, and what the model sees of it.
 *
 * A manager owns a transcript that only grows, the decisions taken about it, and the view that follows from both. It is
 * scoped: one manager for each conversation. One view is built at a time.
 *
 * **Gotchas**
 *
 * Either this library owns the history ({@link ContextManager.append} and {@link ContextManager.request}) or the caller
 * does ({@link ContextManager.sync} with the whole prompt each time); one session uses one of the two.
 *
 * **Example** (Requesting a view)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ContextManager from "effect-compaction/ContextManager"
 *
 * const program = Effect.gen(function*() {
 *   const manager = yield* ContextManager.make({ settings: { window: 200_000 } })
 *   yield* manager.append("Find out why the build fails.")
 *   const { prompt, count } = yield* manager.request
 *   return [prompt.content.length, count.kind] // => [1, "estimated"]
 * })
 *
 * Effect.runPromise(Effect.scoped(program))
 * ```
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { pipe } from "effect/Function"
import * as Layer from "effect/Layer"
import * as PubSub from "effect/PubSub"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Budget from "./Budget.ts"
import * as CompactionEvent from "./CompactionEvent.ts"
import * as Decision from "./Decision.ts"
import * as Estimator from "./Estimator.ts"
import * as Gate from "./Gate.ts"
import * as Guard from "./Guard.ts"
import * as Ingress from "./internal/ingress.ts"
import * as Live from "./internal/live.ts"
import { sameMessage } from "./internal/sameMessage.ts"
import * as Spills from "./internal/spills.ts"
import * as Ladder from "./Ladder.ts"
import * as Media from "./Media.ts"
import * as Reasoning from "./Reasoning.ts"
import * as Settings from "./Settings.ts"
import * as SpillStore from "./SpillStore.ts"
import * as Stage from "./Stage.ts"
import * as Tail from "./Tail.ts"
import * as TokenMeter from "./TokenMeter.ts"
import * as Transcript from "./Transcript.ts"
import * as View from "./View.ts"
import * as Wire from "./Wire.ts"

/**
 * What is sent next.
 *
 * **Details**
 *
 * - `prompt`: the view, as the wire needs it. `stableLength`: how many of its messages are no ephemeral tail.
 * - `count`: the tokens it occupies, with their provenance.
 * - `generation`: how many boundaries there were.
 * - `prefixChanged`: why the stable part does not extend that of the request before, or `null` when it does. A provider
 *   that chains requests on its server must then be sent everything.
 * - `events`: what this request published.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly prompt: Prompt.Prompt
  readonly stableLength: number
  readonly count: TokenMeter.TokenCount
  readonly generation: number
  readonly prefixChanged: "boundary" | "repair" | "system" | null
  readonly events: ReadonlyArray<CompactionEvent.CompactionEvent>
}

/**
 * What is particular to one call.
 *
 * **Details**
 *
 * - `budget`: the budget of this call, in tokens, in place of what the settings say; `maxTokens` caps it still.
 * - `overhead`: what of the request is not in the prompt, such as the definitions of tools, in tokens.
 * - `route`: the provider and the model; a reading of another route is no anchor.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly budget?: number
  readonly overhead?: number
  readonly route?: string
}

/**
 * Where a session stands.
 *
 * **Details**
 *
 * - `entries`: of the transcript. `counts`: how many of them are removed, truncated and stubbed.
 * - `level`: the highest rung a committed pass reached. `streak`, `overrides`: of the clear floor. `refusals`: of the
 *   provenance gate.
 * - `reading`, `budget`: of the last request that was not the same one again; `null` before the first.
 *
 * @category models
 * @since 0.1.0
 */
export interface Status {
  readonly entries: number
  readonly counts: Decision.Counts
  readonly level: number
  readonly generation: number
  readonly streak: number
  readonly overrides: number
  readonly refusals: number
  readonly reading: TokenMeter.Reading | null
  readonly budget: Budget.Budget | null
  readonly lastBoundary: typeof CompactionEvent.Compacted.Type | null
  readonly lastSkip: typeof CompactionEvent.CompactionSkipped.Type | null
  readonly lastInfeasible: typeof CompactionEvent.Infeasible.Type | null
}

const Saved = Schema.toCodecJson(Schema.Struct({
  version: Schema.Literal(1),
  messages: Schema.Array(Schema.Struct({
    message: Prompt.Message,
    origin: Schema.Literals(["caller", "library"])
  })),
  decisions: Schema.Array(Decision.Decision),
  asked: Schema.NullOr(Schema.Struct({ entries: Schema.Natural, limit: Schema.Finite })),
  memory: Stage.PassMemory,
  meter: TokenMeter.State,
  tail: Tail.Memory
}))

/**
 * A session as plain JSON: the transcript, the decisions, and the memory of its passes, its meter and its tail. Restored
 * in another process it gives the same bytes.
 *
 * @category models
 * @since 0.1.0
 */
export type SessionState = typeof Saved.Encoded

/**
 * A conversation and its view. Requests fail with the errors of the pass, nothing else.
 *
 * @category models
 * @since 0.1.0
 */
export interface ContextManager<out E = never> {
  /** Adds messages to the history. Fails when raw messages do not decode; then nothing is added. */
  readonly append: (input: Prompt.RawInput) => Effect.Effect<void, Schema.SchemaError>
  /** The view for the next call. The same request again returns the same view and decides nothing. */
  readonly request: Effect.Effect<Request, E>
  /** The view for the next call under what is particular to it. */
  readonly requestWith: (call: Call) => Effect.Effect<Request, E>
  /**
   * The view of a prompt that the caller keeps and passes whole: what is new is taken in. Where it is not the one seen
   * before (edited, rewound), the rest is taken anew, and the decisions taken since are dropped.
   */
  readonly sync: (prompt: Prompt.Prompt, call?: Call) => Effect.Effect<Request, E>
  /**
   * What the provider billed for the last request. Only usage of this conversation's own requests counts: a title, a
   * judge or a summary bills elsewhere. Missing or malformed numbers leave the last reading in place, as stale.
   */
  readonly observe: (usage: { readonly inputTokens: TokenMeter.Usage }) => Effect.Effect<void>
  /** The whole history, as it was appended. */
  readonly history: Effect.Effect<Prompt.Prompt>
  /** The view as it is now, under the decisions taken so far. */
  readonly view: Effect.Effect<View.View>
  readonly export: Effect.Effect<SessionState>
  /** Continues a saved session in place of this one. Fails when the state does not decode; then nothing changes. */
  readonly restore: (state: SessionState) => Effect.Effect<void, Schema.SchemaError>
  /** Forgets the conversation, its decisions and the memory of its passes. */
  readonly reset: Effect.Effect<void>
  readonly status: Effect.Effect<Status>
  /** What happens from now on. A subscriber that falls 1,024 events behind misses the oldest. */
  readonly events: Stream.Stream<CompactionEvent.CompactionEvent>
}

/**
 * Builds the pass of a manager from a ladder: the gates, the limits of media, the ladder, the clear floor, and the end of
 * signed reasoning whose prefix they changed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const passOf = <E, R>(
  ladder: Ladder.Ladder<E, R>
): Stage.Stage<E | PassError, R> =>
  pipe(
    Stage.pipeline(
      Stage.when(Gate.provenance, (pass) => Settings.isGated(pass.settings)),
      Stage.guard(ladder, Guard.clearAtLeast)
    ),
    Stage.skipOn("ProvenanceRefused"),
    Stage.when(Gate.threshold),
    (compaction) => Stage.pipeline(Media.limit, compaction),
    Reasoning.strip,
    Stage.when((pass) => !Reasoning.isHeld(pass)),
    (compaction) => Stage.pipeline(Gate.overhead, compaction)
  )

/**
 * What the standard pass may fail with. Each of them takes a setting that is off by default: `clearAtLeast`,
 * `whenInfeasible: "fail"`, `strict`.
 *
 * @category errors
 * @since 0.1.0
 */
export type PassError = Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied | Gate.TargetBelowOverhead

/**
 * The pass of a manager that is given none. It is made of the stages that anyone composes: put another in the place of
 * one, and the manager does something else.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pass: Stage.Stage<PassError> = passOf(Ladder.progressive)

/**
 * How a session is managed.
 *
 * **Details**
 *
 * - `settings`: what the ladder and its guards go by; see `Settings`.
 * - `pass`: what is run over the view of each request, below the trigger too; the default is {@link pass}.
 * - `wire`: the rules that every request satisfies; the default satisfies all providers' at once.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out E, out R> {
  readonly settings?: Settings.Input
  readonly pass?: Stage.Stage<E, R>
  readonly wire?: Wire.Rules
}

/** What tells one request from another. */
interface Asked {
  readonly entries: number
  readonly limit: number
}

const isSame = (a: Asked, b: Asked): boolean => a.entries === b.entries && a.limit === b.limit

/** All that changes in a session. Only one fiber at a time holds the lock that guards it. */
interface State {
  transcript: Transcript.Transcript
  decisions: ReadonlyArray<Decision.Decision>
  index: Decision.Index
  live: Live.Live
  memory: Stage.PassMemory
  meter: TokenMeter.State
  tail: Tail.Memory
  /** What the request before asked for, if it returned a view: with nothing billed since, the same again decides nothing. */
  asked: Asked | null
  /** What it returned; a session that was restored does not hold it. */
  request: Request | undefined
  reading: TokenMeter.Reading | null
  budget: Budget.Budget | null
  /** The generation of the request that was sent last. */
  sent: number
  lastBoundary: typeof CompactionEvent.Compacted.Type | null
  lastSkip: typeof CompactionEvent.CompactionSkipped.Type | null
  lastInfeasible: typeof CompactionEvent.Infeasible.Type | null
}

const fresh = (
  transcript: Transcript.Transcript,
  rules: Wire.Rules,
  decisions: ReadonlyArray<Decision.Decision> = [],
  memory: Stage.PassMemory = Stage.noMemory,
  meter: TokenMeter.State = TokenMeter.empty,
  tail: Tail.Memory = Tail.noMemory
): State => {
  const index = Decision.index(decisions)
  return {
    transcript,
    decisions,
    index,
    live: Live.make(transcript, rules, index),
    memory,
    meter,
    tail,
    asked: null,
    request: undefined,
    reading: null,
    budget: null,
    sent: memory.generation,
    lastBoundary: null,
    lastSkip: null,
    lastInfeasible: null
  }
}

/** The view of a request, whose items nobody needs below the trigger: they are laid out when they are first read. */
const lazyView = (state: State, price: number): View.View => {
  const { decisions, transcript } = state
  let made: View.View | undefined
  return {
    transcript,
    length: transcript.entries.length,
    decisions,
    price,
    get items() {
      return (made ??= View.make(transcript, decisions)).items
    }
  }
}

const decodeMessages = Schema.decodeUnknownEffect(Schema.Array(Prompt.Message))

const messagesOf = (input: Prompt.RawInput): Effect.Effect<ReadonlyArray<Prompt.Message>, Schema.SchemaError> => {
  if (typeof input === "string" || Prompt.isPrompt(input)) return Effect.succeed(Prompt.make(input).content)
  return decodeMessages(Array.from(input), { errors: "all" })
}

/** What a boundary did, for the event and the next status. */
const compacted = (state: State, before: View.View, after: Stage.Pass): typeof CompactionEvent.Compacted.Type => {
  const session = Decision.counts(state.index)
  const earlier = Decision.counts(Decision.index(before.decisions))
  return {
    _tag: "Compacted",
    before: before.price,
    after: after.view.price,
    freed: before.price - after.view.price,
    messagesBefore: before.items.length,
    messagesAfter: after.view.items.length,
    removed: session.removed - earlier.removed,
    truncated: Math.max(0, session.truncated - earlier.truncated),
    stubbed: Math.max(0, session.stubbed - earlier.stubbed),
    absorbed: session.absorbed - earlier.absorbed,
    session,
    level: after.report.level,
    count: after.count.tokens,
    kind: after.count.kind,
    budget: after.budget.limit,
    target: after.report.target,
    generation: state.memory.generation,
    protectedRecent: after.settings.protectedRecent,
    protectedToolResults: after.settings.protectedToolResults
  }
}

/**
 * Takes the outcome of a pass into the session, and returns the event of the boundary if there was one.
 *
 * The decisions are those the new view has beyond the old one's; whatever stage made it, they are in force from now on.
 */
const commit = (
  state: State,
  before: View.View,
  after: Stage.Pass
): typeof CompactionEvent.Compacted.Type | undefined => {
  const holders = after.report.infeasible === null ? null : after.memory.holders
  if (after.view === before) {
    state.memory = { ...after.memory, holders }
    return undefined
  }
  state.memory = {
    ...after.memory,
    holders,
    level: Math.max(after.memory.level, after.report.level),
    generation: after.memory.generation + 1
  }
  state.decisions = after.view.decisions
  Decision.addTo(state.index, after.view.decisions.slice(before.decisions.length))
  Live.rebuild(state.live)
  return state.lastBoundary = compacted(state, before, after)
}

/**
 * What an event says that outlives its pass. A stage that fails, or is skipped for it, hands back no memory: what it
 * counted and named is taken from what it published.
 */
const remember = (memory: Stage.PassMemory, event: CompactionEvent.CompactionEvent): Stage.PassMemory => {
  switch (event._tag) {
    case "CompactionSkipped":
      return { ...memory, streak: event.streak, holders: null }
    case "Infeasible":
      return { ...memory, holders: event.holders.map((holder) => holder.seq) }
    case "PassRefused":
      return { ...memory, refusals: event.refusals }
    case "PassOverridden":
      return { ...memory, [event.isRejected ? "rejectedOverrides" : "estimateOverrides"]: event.overrides }
    default:
      return memory
  }
}

const causeOf = (change: Live.Change, isBoundary: boolean): "boundary" | "repair" | "system" =>
  isBoundary ? "boundary" : change.isSystem ? "system" : "repair"

/** What the meter counts of a session, but for the price. The envelope is the same for the same route, tools and system. */
const countedOf = (state: State, call: Call): Omit<TokenMeter.Counted, "price"> => ({
  entries: state.transcript.entries.length,
  generation: state.memory.generation,
  envelope: state.transcript.entries.length === 0 ? null : {
    key: JSON.stringify([call.route ?? "", call.overhead ?? 0, state.live.systems.length, state.live.systemPrice]),
    price: 0
  }
})

const hasRepairs = (repairs: Live.Repairs): boolean =>
  repairs.orphans.length + repairs.duplicates.length + repairs.synthetic.length + repairs.moved.length > 0

const isOtherBudget = (before: Budget.Budget | null, now: Budget.Budget): boolean =>
  before === null || before.total !== now.total || before.source !== now.source || before.overhead !== now.overhead

const resolved = (budget: Budget.Budget): typeof CompactionEvent.BudgetResolved.Type => ({
  _tag: "BudgetResolved",
  total: budget.total,
  source: budget.source,
  overhead: budget.overhead,
  limit: budget.limit,
  reserve: Math.max(0, budget.total - budget.overhead - budget.limit)
})

const counting = (
  reading: TokenMeter.Reading,
  memory: Stage.PassMemory,
  budget: Budget.Budget
): typeof CompactionEvent.TokenCounted.Type => {
  const { readings: _, tokens, ...rest } = reading
  return {
    _tag: "TokenCounted",
    ...rest,
    used: tokens,
    refusals: memory.refusals,
    overrides: memory.estimateOverrides + memory.rejectedOverrides,
    budget: budget.limit
  }
}

/** JSON for what a provider is sent as JSON anyway: without it a result that holds `undefined` could not be saved. */
const plain = (value: unknown): unknown =>
  typeof value === "object" && value !== null ? JSON.parse(JSON.stringify(value)) : value ?? null

const savable = (message: Prompt.Message): Prompt.Message => {
  if (message.role !== "tool" && message.role !== "assistant") return message
  const content: ReadonlyArray<Prompt.Part> = message.content
  const saved = content.map((part) => {
    if (part.type === "tool-result") return { ...part, result: plain(part.result) }
    return part.type === "tool-call" ? { ...part, params: plain(part.params) } : part
  })
  // The parts are those of this message, in its order, each with the type it had; the union of roles loses that.
  return { ...message, content: saved } as Prompt.AssistantMessage
}

/**
 * Makes the manager of one conversation. It ends with its scope.
 *
 * Fails when the settings do not decode, with the path of each bad key.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*<
  E = PassError,
  R = never
>(
  options: Options<E, R> = {}
): Effect.fn.Return<ContextManager<E>, Schema.SchemaError, R | Scope.Scope> {
  const context = yield* Effect.context<R>()
  const estimator = yield* Estimator.Estimator
  const store = yield* SpillStore.SpillStore
  const locate = SpillStore.locateIn(store)
  const settings = yield* Settings.decode(options.settings ?? {})
  const rules = options.wire ?? Wire.all
  // Without a pass of the caller's, `E` is what the default one fails with, and it needs nothing.
  const stage = (options.pass ?? pass) as Stage.Stage<E, R>
  const lock = yield* Semaphore.make(1)
  const hub = yield* Effect.acquireRelease(
    PubSub.sliding<CompactionEvent.CompactionEvent>(1_024),
    PubSub.shutdown
  )
  let state = fresh(Transcript.make(estimator.price), rules)
  let spills = Spills.make()

  const publish = (event: CompactionEvent.CompactionEvent) => {
    if (event._tag === "CompactionSkipped") state.lastSkip = event
    if (event._tag === "Infeasible") state.lastInfeasible = event
    return Effect.asVoid(PubSub.publish(hub, event))
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

  /** Takes in messages. Whatever is to be told or written comes after the last: an interruption leaves none of them out. */
  const take = Effect.fnUntraced(function*(messages: ReadonlyArray<Prompt.Message>) {
    const capped: Array<Ingress.Capped> = []
    for (const message of messages) {
      const from = state.transcript.entries.length
      Transcript.append(state.transcript, message)
      capped.push(...capFrom(from))
    }
    yield* tellCapped(capped)
  })

  const build = Effect.fnUntraced(function*(call: Call) {
    const budget = Budget.resolve(settings, call.budget, call.overhead)
    const entries = state.transcript.entries.length
    const asked: Asked = { entries, limit: budget.limit }
    const isRepeated = state.asked !== null && isSame(state.asked, asked)
    const unwritten = [...spills.pending.keys()]
    if (isRepeated && state.request !== undefined) {
      yield* Spills.write(spills, store, unwritten, () => Effect.void)
      return { ...state.request, prefixChanged: null, events: [] }
    }
    const events: Array<CompactionEvent.CompactionEvent> = []
    const tell = (event: CompactionEvent.CompactionEvent) => {
      events.push(event)
      return publish(event)
    }
    yield* Spills.write(spills, store, unwritten, tell)
    const { live } = state
    const repairs = Live.update(live)
    let sending = Live.prepare(live)
    const before = lazyView(state, Live.priceOf(live))
    const counted = { ...countedOf(state, call), price: before.price + sending.added }
    const reading = TokenMeter.read(state.meter, settings.meter, counted)
    if (hasRepairs(repairs)) yield* tell({ _tag: "TranscriptRepaired", ...repairs })
    if (isOtherBudget(state.budget, budget)) yield* tell(resolved(budget))
    yield* tell(counting(reading, state.memory, budget))
    const scale = Settings.isSizedByProvider(settings) && reading.kind === "usage" && before.price > 0
      ? reading.tokens / before.price
      : 1
    const pass: Stage.Pass = {
      view: before,
      before,
      entries: Live.conversationOf(live),
      fixed: live.systemPrice + budget.overhead,
      budget,
      sizes: Budget.inPrices(budget, scale),
      scale,
      count: reading,
      settings,
      memory: state.memory,
      report: Stage.noReport,
      payload: () => Live.payloadOf(live, sending),
      locate,
      ready: null
    }
    const decide = isRepeated ? Effect.succeed(pass) : stage(pass)
    const after = yield* decide.pipe(
      Effect.provideService(CompactionEvent.Publisher, tell),
      Effect.tapError(() =>
        Effect.sync(() => {
          state.memory = events.reduce(remember, state.memory)
          state.asked = null
        })
      )
    )
    state.asked = null
    const boundary = commit(state, before, { ...after, memory: events.reduce(remember, after.memory) })
    if (boundary !== undefined) {
      yield* tell(boundary)
      yield* spill(state.decisions.slice(before.decisions.length), tell)
      sending = Live.prepare(live)
    }
    // A request that was interrupted while it wrote was not sent: its boundary is the next one's.
    const isBoundary = state.memory.generation !== state.sent
    state.sent = state.memory.generation
    const changed = Live.send(live, sending)
    const prefixChanged = changed === undefined ? null : causeOf(changed, isBoundary)
    if (changed !== undefined && prefixChanged !== null) {
      yield* tell({ _tag: "PrefixChanged", cause: prefixChanged, seq: changed.seq })
    }
    const price = after.view.price + sending.added
    const tail = Tail.make(state.tail, {
      transcript: state.transcript,
      settings,
      room: budget.total - budget.overhead - price,
      isBoundary,
      level: state.memory.level,
      generation: state.memory.generation,
      counts: () => Decision.counts(state.index),
      ...Live.lastHumanOf(live)
    })
    state.tail = tail.memory
    const sent = { ...countedOf(state, call), price: price + tail.price }
    const count = TokenMeter.read(state.meter, settings.meter, sent)
    state.meter = TokenMeter.dispatch(state.meter, sent)
    state.reading = reading
    state.budget = budget
    const request: Request = {
      // The copy of a long history is what a request below the trigger costs: there is one, not two.
      prompt: Prompt.fromMessages(
        tail.messages.length === 0 ? sending.messages : sending.messages.concat(tail.messages)
      ),
      stableLength: sending.messages.length,
      count: { tokens: count.tokens, kind: count.kind },
      generation: state.memory.generation,
      prefixChanged,
      events
    }
    state.asked = asked
    state.request = request
    return request
  }, Effect.provideContext(context))

  /** Takes in a caller's prompt: finds the first message that is not the one seen before, and appends from there. */
  const reconcile = Effect.fnUntraced(function*(prompt: Prompt.Prompt) {
    const { messages, origins } = state.transcript
    const incoming = prompt.content
    let next = 0
    let at = 0
    for (; at < messages.length; at++) {
      if (origins[at] === "library") continue
      if (next >= incoming.length || !sameMessage(messages[at]!, incoming[next]!)) break
      next++
    }
    if (at < messages.length) {
      const kept = Transcript.take(state.transcript, at)
      const length = kept.entries.length
      const dropped = state.transcript.entries.length - length
      const decisions = state.decisions.filter((decision) => decision.at <= length)
      const sent = state.live
      // What was billed was billed for another history: it is no anchor, but what it says about prices holds.
      const meter = { ...state.meter, anchor: null, inFlight: null }
      state = fresh(kept, rules, decisions, { ...state.memory, streak: 0, holders: null }, meter, state.tail)
      Live.inherit(state.live, sent)
      // A removal that was dropped brings back what it hid.
      Spills.add(spills, store, kept, state.index, decisions)
      yield* publish({ _tag: "TranscriptDiverged", seq: length, dropped })
    }
    yield* take(incoming.slice(next))
  })

  const locked = Semaphore.withPermit(lock)

  return {
    append: (input) => locked(Effect.flatMap(messagesOf(input), take)),
    request: locked(Effect.suspend(() => build({}))),
    requestWith: (call) => locked(Effect.suspend(() => build(call))),
    sync: (prompt, call = {}) => locked(Effect.flatMap(reconcile(prompt), () => build(call))),
    observe: ({ inputTokens }) =>
      locked(Effect.sync(() => {
        state.meter = TokenMeter.observe(state.meter, inputTokens)
        state.asked = null
      })),
    history: locked(Effect.sync(() => Prompt.fromMessages(state.transcript.messages.slice()))),
    view: locked(Effect.sync(() => View.make(state.transcript, state.decisions))),
    export: locked(Effect.suspend(() => {
      const { asked, decisions, memory, meter, tail, transcript } = state
      const messages = transcript.messages.map((message, at) => ({
        message: savable(message),
        origin: transcript.origins[at]!
      }))
      return Effect.orDie(Schema.encodeEffect(Saved)({ version: 1, messages, decisions, asked, memory, meter, tail }))
    })),
    restore: (saved) =>
      locked(Effect.flatMap(Schema.decodeUnknownEffect(Saved)(saved, { errors: "all" }), (decoded) => {
        const transcript = Transcript.make(estimator.price)
        for (const { message, origin } of decoded.messages) Transcript.append(transcript, message, origin)
        const { asked, decisions, memory, meter, tail } = decoded
        state = { ...fresh(transcript, rules, decisions, { ...memory, streak: 0 }, meter, tail), asked }
        spills = Spills.make()
        Spills.add(spills, store, transcript, state.index, decisions)
        const capped = capFrom(0)
        // What was cut only now makes another request than the one that was asked for last.
        if (capped.length > 0) state.asked = null
        return tellCapped(capped)
      })),
    reset: locked(Effect.sync(() => {
      state = fresh(Transcript.make(estimator.price), rules)
      spills = Spills.make()
    })),
    status: locked(Effect.sync(() => ({
      entries: state.transcript.entries.length,
      counts: Decision.counts(state.index),
      level: state.memory.level,
      generation: state.memory.generation,
      streak: state.memory.streak,
      overrides: state.memory.overrides,
      refusals: state.memory.refusals,
      reading: state.reading,
      budget: state.budget,
      lastBoundary: state.lastBoundary,
      lastSkip: state.lastSkip,
      lastInfeasible: state.lastInfeasible
    }))),
    events: Stream.fromPubSub(hub)
  }
})

/**
 * A context service whose shape carries the errors inferred from its pass, with the layer that makes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceClass<Self, Id extends string, E, R> extends Context.ServiceClass<Self, Id, ContextManager<E>> {
  /** Makes one manager; provide it once for each conversation. Needs what the stages of the pass need. */
  readonly layer: Layer.Layer<Self, Schema.SchemaError, R>
}

/**
 * Declares the manager of an app as a service.
 *
 * **Example** (Declaring a service)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ContextManager from "effect-compaction/ContextManager"
 *
 * class AppContext extends ContextManager.Service<AppContext>()("app/AppContext", {
 *   settings: { window: 200_000, clearAtLeast: 20_000 }
 * }) {}
 *
 * const program = Effect.gen(function*() {
 *   const context = yield* AppContext
 *   yield* context.append("Find out why the build fails.")
 *   return yield* context.request
 * }).pipe(Effect.catchTag("ClearFloorUnsatisfied", (error) => Effect.die(error.message)))
 *
 * Effect.runPromise(program.pipe(Effect.provide(AppContext.layer), Effect.map((request) => request.prompt.content.length))) // => 1
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const Service = <Self>() =>
<const Id extends string, E = PassError, R = never>(
  id: Id,
  options: Options<E, R> = {}
): ServiceClass<Self, Id, E, R> => {
  const Tag = Context.Service<Self, ContextManager<E>>()(id)
  return Object.assign(Tag, { layer: Layer.effect(Tag, make(options)) })
}
