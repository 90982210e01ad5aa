import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as CompactionEvent from "../CompactionEvent.ts"
import type { Call, Request } from "../ContextManager.ts"
import * as Gate from "../Gate.ts"
import * as RuntimeContext from "../RuntimeContext.ts"
import type * as Session from "../Session.ts"
import type * as SessionStore from "../SessionStore.ts"
import * as Stage from "../Stage.ts"
import * as Summarizer from "../Summarizer.ts"
import * as TokenMeter from "../TokenMeter.ts"
import * as Cold from "./cold.ts"
import * as Estimating from "./estimating.ts"
import * as Layout from "./layout.ts"
import * as Passes from "./passes.ts"
import * as Runtime from "./runtime.ts"
import * as Sending from "./sending.ts"
import * as Sent from "./sent.ts"
import * as Spills from "./spills.ts"
import * as Tail from "./tail.ts"
import * as Telemetry from "./telemetry.ts"
import * as Turn from "./turn.ts"
import * as Written from "./written.ts"

/**
 * A request, as a pipeline of named steps over one turn: take in, measure, decide, inform, address, close. Taking in comes
 * before it, in the operation that asks.
 */

/** What is particular to a call, as far as it is data. A tool that the model once had is named as long as nobody says no. */
export const dataOf = (
  { call }: Session.State,
  { budget, maxOutput, overhead, recall = call.recall, route, window }: Call
): Session.State["call"] => ({
  ...(budget === undefined ? undefined : { budget }),
  ...(window === undefined ? undefined : { window }),
  ...(maxOutput === undefined ? undefined : { maxOutput }),
  ...(overhead === undefined ? undefined : { overhead }),
  ...(route === undefined ? undefined : { route }),
  ...(recall === undefined ? undefined : { recall })
})

// ---------------------------------------------------------------------------------------------------------------------
// Whether it is the same request once more
// ---------------------------------------------------------------------------------------------------------------------

/** What a request asks for: two that agree in it are the same. A checkpoint that came meanwhile makes no other request. */
const askedOf = ({ checkpoints, entries }: Session.State, limit: number): NonNullable<Session.State["asked"]> => ({
  entries: entries - checkpoints,
  limit
})

/** The runtime context that the view of a turn lacks. */
const lacking = Effect.fnUntraced(function*(turn: Turn.Turn, { runtimeContext }: Call) {
  if (runtimeContext === undefined) return undefined
  const { index, transcript } = Runtime.layoutOf(turn.runtime, turn.state)
  // Nothing may stand between a call and its results, nor behind a turn that the provider is going to continue.
  if (Tail.hasOpenCalls(transcript)) return undefined
  const current = typeof runtimeContext === "string" ? runtimeContext : yield* runtimeContext
  return RuntimeContext.project({ index, transcript }, current)
})

const isAgain = Effect.fnUntraced(function*(turn: Turn.Turn, call: Call) {
  const { runtime: { settings }, state } = turn
  const now = askedOf(state, Passes.budgetOf(settings, state, dataOf(state, call)).limit)
  if (state.asked?.entries !== now.entries || state.asked.limit !== now.limit) return false
  return (yield* lacking(turn, call)) === undefined
})

// ---------------------------------------------------------------------------------------------------------------------
// Measure
// ---------------------------------------------------------------------------------------------------------------------

interface Measured extends Passes.Measured {
  readonly resolved: typeof CompactionEvent.BudgetResolved.Type
  readonly counted: typeof CompactionEvent.TokenCounted.Type
}

const resolvedOf = ({ limit, overhead, source, total }: Passes.Measured["budget"]): Measured["resolved"] => ({
  _tag: "BudgetResolved",
  total,
  source,
  overhead,
  limit,
  reserve: Math.max(0, total - overhead - limit)
})

const countedOf = (state: Session.State, { budget, reading }: Passes.Measured): Measured["counted"] => {
  const { readings: _, tokens, ...rest } = reading
  const { lapsed, noUsage, refusals, rejected } = Stage.recall(state, Gate.provenanceCounts)
  return {
    _tag: "TokenCounted",
    ...rest,
    used: tokens,
    overhead: budget.overhead,
    refusals,
    overrides: noUsage + rejected + lapsed,
    budget: budget.limit
  }
}

/** Lays the view out and counts it. */
const measure = (turn: Turn.Turn, call: Call): Measured => {
  const measured = Passes.measure(turn, dataOf(turn.state, call))
  return { ...measured, resolved: resolvedOf(measured.budget), counted: countedOf(turn.state, measured) }
}

/** Says what is new about a view that was measured. */
const tellMeasured = (turn: Turn.Turn, { counted, repairs, resolved }: Measured): void => {
  Estimating.tell(turn)
  if (Layout.hasRepairs(repairs)) Turn.tell(turn, { _tag: "TranscriptRepaired", ...repairs })
  const { resolved: before } = turn.state
  const isOther = before === null || before.total !== resolved.total || before.source !== resolved.source
    || before.overhead !== resolved.overhead
  if (isOther) Turn.tell(turn, resolved)
  Turn.tell(turn, counted)
}

// ---------------------------------------------------------------------------------------------------------------------
// Decide and inform
// ---------------------------------------------------------------------------------------------------------------------

/** Runs the policy's pass, and takes in what it did. A pass that fails leaves what its stages remembered, and is written. */
const decide = <E, R>(
  turn: Turn.Turn,
  call: Call,
  measured: Measured,
  stage: Stage.Stage<E, R>
): Effect.Effect<Passes.Outcome, E | SessionStore.SessionLost, R> =>
  Effect.flatMap(Cold.of(turn, dataOf(turn.state, call), measured.layout), (cold) => {
    const given = Passes.passOf(turn, measured, {
      cause: "pressure",
      aim: null,
      cold,
      summarise: Written.inPass(turn, measured.sending, Written.ahead)
    })
    return Effect.matchEffect(Passes.decide(turn, given, stage), {
      onFailure: (error) => {
        Written.gaveUp(turn)
        // It was laid out all the same, and that is what the window holds.
        Passes.hold(turn, measured.layout, measured.budget.overhead)
        return Effect.andThen(Turn.commit(turn), Effect.fail(error))
      },
      onSuccess: (outcome) => {
        Passes.accept(turn, outcome)
        return Effect.succeed(outcome)
      }
    })
  })

/** Puts in what the app knows now, where the view does not say it. */
const inform = Effect.fnUntraced(function*(turn: Turn.Turn, call: Call) {
  const context = yield* lacking(turn, call)
  if (context === undefined) return
  const messages = { system: 0, messages: turn.runtime.priceOf(context) }
  Turn.take(turn, { _tag: "Appended", messages: [{ message: context, origin: "runtime" }], caps: [], price: messages })
})

// ---------------------------------------------------------------------------------------------------------------------
// Address
// ---------------------------------------------------------------------------------------------------------------------

/** A view as the wire needs it, with its tail, and what it changes of the prefix that was sent. */
interface Addressed {
  readonly layout: Layout.Layout
  readonly sending: Sending.Sending
  readonly tail: ReturnType<typeof Tail.make>
  readonly prefixChanged: Request["prefixChanged"]
  readonly sent: TokenMeter.Counted
  readonly count: TokenMeter.TokenCount
}

const causeOf = (change: Sent.Change, isBoundary: boolean): NonNullable<Request["prefixChanged"]> =>
  isBoundary ? "boundary" : change.isSystem ? "system" : "repair"

const generationOf = (sent: Session.SentRequest | null): number => sent?.generation ?? 0

const address = (turn: Turn.Turn, call: Call, { budget }: Measured, again: boolean): Addressed => {
  const { runtime, state } = turn
  const { caches, rules, settings } = runtime
  const layout = Runtime.layoutOf(runtime, state)
  Layout.update(layout, state.entries)
  const sending = Sending.prepare(layout)
  const change = Sent.changeOf(Sent.known(caches.sent, state, rules), sending)
  const prefixChanged = change === undefined ? null : causeOf(change, state.generation !== generationOf(state.sent))
  if (change !== undefined && prefixChanged !== null && !again) {
    Turn.tell(turn, { _tag: "PrefixChanged", cause: prefixChanged, seq: change.seq })
  }
  // Sent once more, a request has the tail that it had.
  const before = again && state.unsent !== null ? state.unsent : state
  const price = Layout.priceOf(layout) + sending.added
  // Where every boundary was taken back there is nothing to tell the model of.
  const isShortened = state.boundaries.length > 0
  const tail = Tail.make(before.tail, {
    transcript: layout.transcript,
    settings,
    room: budget.total - budget.overhead - price,
    isBoundary: isShortened && state.generation !== generationOf(before.sent),
    level: state.level,
    generation: isShortened ? state.generation : 0,
    counts: () => Passes.countsOf(state, layout.index),
    isPaused: sending.isPaused,
    recalls: dataOf(state, call).recall === true,
    ...Layout.lastHumanOf(layout)
  })
  const sent = {
    ...Passes.countedOf(state, dataOf(state, call), layout),
    price: price + tail.price,
    overhead: budget.overhead
  }
  const { kind, tokens } = TokenMeter.read(state.meter, settings.meter, sent)
  return { layout, sending, tail, prefixChanged, sent, count: { tokens: tokens + budget.overhead, kind } }
}

// ---------------------------------------------------------------------------------------------------------------------
// Close
// ---------------------------------------------------------------------------------------------------------------------

const takeSent = Effect.fnUntraced(function*(
  turn: Turn.Turn,
  call: Call,
  measured: Measured,
  addressed: Addressed,
  again: boolean
) {
  if (again && turn.state.unsent !== null) return
  const when = yield* Cold.now(turn)
  const { counted, resolved } = measured
  const { sent: { envelope, price }, tail } = addressed
  Turn.take(turn, {
    _tag: "Sent",
    again,
    asked: askedOf(turn.state, measured.budget.limit),
    call: dataOf(turn.state, call),
    counted,
    resolved,
    tail: tail.memory,
    price,
    ...when,
    envelope
  })
  Passes.hold(turn, addressed.layout, measured.budget.overhead)
})

/** The prompt of a request. The copy of a long history is what a request below the trigger costs: there is one, not two. */
const promptOf = ({ runtime, state }: Turn.Turn, { sending, tail }: Addressed, again: boolean): Prompt.Prompt => {
  const { prompt: cached } = runtime.caches
  if (again && cached?.requests === state.requests) return cached.prompt
  const prompt = Prompt.fromMessages(
    tail.messages.length === 0 ? sending.messages : sending.messages.concat(tail.messages)
  )
  runtime.caches.prompt = { requests: state.requests, prompt }
  return prompt
}

const abandoned = (runtime: Runtime.Runtime): Effect.Effect<void> => {
  const turn = Turn.make(runtime)
  Turn.take(turn, { _tag: "Abandoned" })
  return Effect.ignore(Turn.commit(turn))
}

/**
 * Writes what the request did, and what its decisions point at; then a summary may begin beside it. What is published with
 * the commit is published under the span of the boundary, if there was one.
 */
const close = Effect.fnUntraced(function*(
  turn: Turn.Turn,
  call: Call,
  measured: Measured,
  addressed: Addressed,
  outcome: Passes.Outcome | null,
  again: boolean
) {
  const { runtime } = turn
  const { entries: sentBefore = 0 } = turn.state.sent ?? {}
  yield* takeSent(turn, call, measured, addressed, again)
  const { sent } = turn.state
  if (sent !== null) runtime.caches.sent = { of: sent, sending: addressed.sending }
  if (runtime.summaries !== undefined) {
    // A summary is asked for with the tools of the conversation, whoever asks.
    runtime.summaries.tools = (yield* Summarizer.Tools) ?? runtime.summaries.tools
  }
  const { limit } = measured.budget
  const { tokens } = addressed.count
  const count = tokens - measured.budget.overhead
  if (!again) Written.settle(turn, outcome, count, limit)
  const plan = again || outcome === null
    ? undefined
    : Written.due(turn, { outcome, addressed, count, kind: addressed.count.kind, sentBefore })
  const boundary = turn.due.find((event) => event._tag === "Compacted")
  // Interrupted while it writes texts, the request is in the log and was not sent.
  const writing = Effect.andThen(
    Turn.commit(turn),
    Effect.onInterrupt(Spills.writeOf(turn, again), () => abandoned(runtime))
  )
  yield* boundary === undefined ? writing : Telemetry.span(boundary)(writing)
  if (plan !== undefined) yield* Written.start(turn, plan)
})

/**
 * Makes a request of the session as it is in the turn. Without a stage nothing is decided: it is the view under the
 * decisions taken so far. `outcome` is what was decided in the turn before.
 */
export const run = Effect.fnUntraced(function*<E = never, R = never>(
  turn: Turn.Turn,
  call: Call,
  { outcome = null, stage }: { readonly stage?: Stage.Stage<E, R>; readonly outcome?: Passes.Outcome | null }
): Effect.fn.Return<Request, E | SessionStore.SessionLost, R> {
  const again = outcome === null && (yield* isAgain(turn, call))
  const measured = measure(turn, call)
  let decided = outcome
  if (!again) {
    tellMeasured(turn, measured)
    if (stage !== undefined) decided = yield* decide(turn, call, measured, stage)
    yield* inform(turn, call)
  }
  const addressed = address(turn, call, measured, again)
  yield* close(turn, call, measured, addressed, decided, again)
  const { generation, requests } = turn.state
  return {
    id: requests,
    prompt: promptOf(turn, addressed, again),
    stableLength: addressed.sending.messages.length,
    count: addressed.count,
    generation,
    prefixChanged: addressed.prefixChanged,
    events: again ? [] : turn.told
  }
})
