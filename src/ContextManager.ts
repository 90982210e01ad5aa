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
import * as Live from "./internal/live.ts"
import { sameMessage } from "./internal/sameMessage.ts"
import * as Ladder from "./Ladder.ts"
import * as Settings from "./Settings.ts"
import * as Stage from "./Stage.ts"
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
 * Where a session stands.
 *
 * **Details**
 *
 * - `entries`: of the transcript. `counts`: how many of them are removed, truncated and stubbed.
 * - `level`: the highest rung a committed pass reached. `streak`, `overrides`: of the clear floor.
 * - `count`, `budget`: of the last request that was not the same one again; `null` before the first.
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
  readonly count: TokenMeter.TokenCount | null
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
  memory: Stage.PassMemory
}))

/**
 * A session as plain JSON: the transcript, the decisions and the memory of its passes. Restored in another process it
 * gives the same bytes.
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
  /** The view for the next call under another budget, in tokens. */
  readonly requestWith: (options: { readonly budget: number }) => Effect.Effect<Request, E>
  /**
   * The view of a prompt that the caller keeps and passes whole: what is new is taken in. Where it is not the one seen
   * before (edited, rewound), the rest is taken anew, and the decisions taken since are dropped.
   */
  readonly sync: (prompt: Prompt.Prompt) => Effect.Effect<Request, E>
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
 * Builds the pass of a manager from a ladder: gate, ladder, clear floor.
 *
 * @category constructors
 * @since 0.1.0
 */
export const passOf = <E, R>(
  ladder: Ladder.Ladder<E, R>
): Stage.Stage<E | Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied, R> =>
  pipe(ladder, Stage.guard(Guard.clearAtLeast), Stage.when(Gate.threshold))

/**
 * The pass of a manager that is given none. It is made of the stages that anyone composes: put another in the place of
 * one, and the manager does something else.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pass: Stage.Stage<Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied> = passOf(Ladder.progressive)

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

/** All that changes in a session. Only one fiber at a time holds the lock that guards it. */
interface State {
  transcript: Transcript.Transcript
  decisions: ReadonlyArray<Decision.Decision>
  index: Decision.Index
  live: Live.Live
  memory: Stage.PassMemory
  /** The request before, if it returned a view: nothing appended since and the same limit make the next one the same. */
  last: { readonly request: Request; readonly entries: number; readonly limit: number } | undefined
  count: TokenMeter.TokenCount | null
  budget: Budget.Budget | null
  lastBoundary: typeof CompactionEvent.Compacted.Type | null
  lastSkip: typeof CompactionEvent.CompactionSkipped.Type | null
  lastInfeasible: typeof CompactionEvent.Infeasible.Type | null
}

const fresh = (
  transcript: Transcript.Transcript,
  rules: Wire.Rules,
  decisions: ReadonlyArray<Decision.Decision> = [],
  memory: Stage.PassMemory = Stage.noMemory
): State => {
  const index = Decision.index(decisions)
  return {
    transcript,
    decisions,
    index,
    live: Live.make(transcript, rules, index),
    memory,
    last: undefined,
    count: null,
    budget: null,
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

/** What a stage that failed leaves behind: the refusals it counted and the holders it named before it failed. */
const remember = (memory: Stage.PassMemory, event: CompactionEvent.CompactionEvent): Stage.PassMemory => {
  switch (event._tag) {
    case "CompactionSkipped":
      return { ...memory, streak: event.streak, holders: null }
    case "Infeasible":
      return { ...memory, holders: event.holders.map((holder) => holder.seq) }
    default:
      return memory
  }
}

const causeOf = (change: Live.Change, isBoundary: boolean): "boundary" | "repair" | "system" =>
  isBoundary ? "boundary" : change.isSystem ? "system" : "repair"

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
  E = Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied,
  R = never
>(
  options: Options<E, R> = {}
): Effect.fn.Return<ContextManager<E>, Schema.SchemaError, R | Scope.Scope> {
  const context = yield* Effect.context<R>()
  const estimator = yield* Estimator.Estimator
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

  const build = Effect.fnUntraced(function*(given: number | undefined) {
    const budget = Budget.resolve(settings, given)
    const entries = state.transcript.entries.length
    const { last } = state
    if (last !== undefined && last.entries === entries && last.limit === budget.limit) {
      return { ...last.request, prefixChanged: null, events: [] }
    }
    state.last = undefined
    const events: Array<CompactionEvent.CompactionEvent> = []
    const publish = (event: CompactionEvent.CompactionEvent) => {
      events.push(event)
      if (event._tag === "CompactionSkipped") state.lastSkip = event
      if (event._tag === "Infeasible") state.lastInfeasible = event
      return Effect.asVoid(PubSub.publish(hub, event))
    }
    const before = lazyView(state, Live.update(state.live))
    let sending = Live.prepare(state.live)
    const after = yield* stage({
      view: before,
      before,
      budget,
      count: TokenMeter.estimate(before.price + sending.added),
      settings,
      memory: state.memory,
      report: Stage.noReport
    }).pipe(
      Effect.provideService(CompactionEvent.Publisher, publish),
      Effect.tapError(() =>
        Effect.sync(() => {
          state.memory = events.reduce(remember, state.memory)
        })
      )
    )
    const boundary = commit(state, before, after)
    if (boundary !== undefined) {
      yield* publish(boundary)
      sending = Live.prepare(state.live)
    }
    const changed = Live.send(state.live, sending)
    const prefixChanged = changed === undefined ? null : causeOf(changed, boundary !== undefined)
    if (changed !== undefined && prefixChanged !== null) {
      yield* publish({ _tag: "PrefixChanged", cause: prefixChanged, seq: changed.seq })
    }
    state.count = TokenMeter.estimate(after.view.price + sending.added)
    state.budget = budget
    const request: Request = {
      prompt: Prompt.fromMessages(sending.messages),
      stableLength: sending.messages.length,
      count: state.count,
      generation: state.memory.generation,
      prefixChanged,
      events
    }
    state.last = { request, entries, limit: budget.limit }
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
      state = fresh(kept, rules, decisions, { ...state.memory, streak: 0, holders: null })
      Live.inherit(state.live, sent)
      yield* PubSub.publish(hub, { _tag: "TranscriptDiverged", seq: length, dropped })
    }
    for (; next < incoming.length; next++) Transcript.append(state.transcript, incoming[next]!)
  })

  const locked = Semaphore.withPermit(lock)

  return {
    append: (input) =>
      locked(Effect.map(messagesOf(input), (messages) => {
        for (const message of messages) Transcript.append(state.transcript, message)
      })),
    request: locked(Effect.suspend(() => build(undefined))),
    requestWith: ({ budget }) => locked(Effect.suspend(() => build(budget))),
    sync: (prompt) => locked(Effect.flatMap(reconcile(prompt), () => build(undefined))),
    history: locked(Effect.sync(() => Prompt.fromMessages(state.transcript.messages.slice()))),
    view: locked(Effect.sync(() => View.make(state.transcript, state.decisions))),
    export: locked(Effect.suspend(() => {
      const { decisions, memory, transcript } = state
      const messages = transcript.messages.map((message, at) => ({
        message: savable(message),
        origin: transcript.origins[at]!
      }))
      return Effect.orDie(Schema.encodeEffect(Saved)({ version: 1, messages, decisions, memory }))
    })),
    restore: (saved) =>
      locked(Effect.map(Schema.decodeUnknownEffect(Saved)(saved, { errors: "all" }), (decoded) => {
        const transcript = Transcript.make(estimator.price)
        for (const { message, origin } of decoded.messages) Transcript.append(transcript, message, origin)
        state = fresh(transcript, rules, decoded.decisions, { ...decoded.memory, streak: 0 })
      })),
    reset: locked(Effect.sync(() => {
      state = fresh(Transcript.make(estimator.price), rules)
    })),
    status: locked(Effect.sync(() => ({
      entries: state.transcript.entries.length,
      counts: Decision.counts(state.index),
      level: state.memory.level,
      generation: state.memory.generation,
      streak: state.memory.streak,
      overrides: state.memory.overrides,
      count: state.count,
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
export const Service =
  <Self>() =>
  <const Id extends string, E = Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied, R = never>(
    id: Id,
    options: Options<E, R> = {}
  ): ServiceClass<Self, Id, E, R> => {
    const Tag = Context.Service<Self, ContextManager<E>>()(id)
    return Object.assign(Tag, { layer: Layer.effect(Tag, make(options)) })
  }
