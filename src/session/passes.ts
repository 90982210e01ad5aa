import * as Effect from "effect/Effect"
import * as Budget from "../Budget.ts"
import * as CompactionEvent from "../CompactionEvent.ts"
import * as Decision from "../Decision.ts"
import * as Ladder from "../Ladder.ts"
import * as Reasoning from "../ladder/reasoning.ts"
import type * as Session from "../Session.ts"
import * as Settings from "../Settings.ts"
import type * as SpillStore from "../SpillStore.ts"
import * as Stage from "../Stage.ts"
import * as TokenMeter from "../TokenMeter.ts"
import type * as View from "../View.ts"
import * as Counting from "./counting.ts"
import * as Figure from "./figures.ts"
import * as Layout from "./layout.ts"
import * as Runtime from "./runtime.ts"
import * as Sending from "./sending.ts"
import * as Turn from "./turn.ts"

/** What was decided in a session, what a snapshot left out included. */
export const countsOf = ({ abridged }: Session.State, index: Decision.Index): Decision.Counts =>
  Decision.addCounts(Decision.counts(index), abridged?.counts ?? Decision.noCounts)

/**
 * The budget of a call. A maximum that the provider named wins over everything that was assumed. What the first bill
 * showed beyond its price comes off it where a meter reads bills, and never more than half: a first bill of a long view
 * holds the estimator's error too, and a budget of nothing would never be compacted to.
 */
export const budgetOf = (
  settings: Settings.Settings,
  state: Session.State,
  call: Session.State["call"]
): Budget.Budget => {
  const { overhead = 0 } = call
  // What one provider refused says nothing about the model of another route.
  const maximum = state.maximumRoute === (call.route ?? "") ? state.maximum : null
  if (settings.meter === "estimate") return Budget.resolve(settings, call.budget, overhead, maximum, call)
  const { total } = Budget.resolve(settings, call.budget, 0, maximum, call)
  const learned = Math.min(TokenMeter.overheadOf(state.meter), Math.floor(total / 2))
  return Budget.resolve(settings, call.budget, Math.max(overhead, learned), maximum, call)
}

/** What the meter counts of a view, but for the price. The envelope is the same for the same route, tools and system. */
export const countedOf = (
  { entries, generation }: Session.State,
  call: Session.State["call"],
  { systemPrice, systems }: Layout.Layout
): Omit<TokenMeter.Counted, "price"> => ({
  entries,
  generation,
  envelope: entries === 0 ? null : {
    key: JSON.stringify([call.route ?? "", call.overhead ?? 0, systems.length, systemPrice]),
    price: 0
  }
})

/** A view that was laid out and counted, before anything is decided about it. */
export interface Measured {
  readonly layout: Layout.Layout
  /** What would be sent of it, as long as the turn has not changed it. */
  readonly sending: () => Sending.Sending
  readonly repairs: Layout.Repairs
  readonly budget: Budget.Budget
  readonly reading: TokenMeter.Reading
  /** Where the full text of a result is found. */
  readonly locate: SpillStore.Locate
}

/** Lays out the view of a turn and counts it. */
export const measure = (turn: Turn.Turn, call: Session.State["call"]): Measured => {
  const { runtime: { settings }, state } = turn
  const layout = Runtime.layoutOf(turn.runtime, state)
  const repairs = Layout.update(layout, state.repaired)
  const { added, sending } = Sending.measure(layout)
  const budget = budgetOf(settings, state, call)
  const counted = {
    ...countedOf(state, call, layout),
    price: Layout.priceOf(layout) + added,
    overhead: budget.overhead
  }
  const reading = TokenMeter.read(state.meter, settings.meter, counted)
  return { layout, sending, repairs, budget, reading, locate: Runtime.locateOf(turn.runtime, call) }
}

/** What is particular to a pass: why it is made, what it comes down to, and how it may have a summary written. */
export interface Purpose {
  readonly cause: Stage.Cause
  readonly aim: number | null
  /** Why the prefix is cold, for a pass that decides by that whether it is worth a boundary. */
  readonly cold?: Stage.Cold | null
  readonly summarise: ((pass: Pick<Stage.Pass, "budget" | "scale" | "sizes">) => Stage.Pass["summarise"]) | null
}

/** The pass over a measured view. */
export const passOf = (turn: Turn.Turn, measured: Measured, purpose: Purpose): Stage.Pass => {
  const { aim, cause, cold = null, summarise } = purpose
  const { runtime: { settings }, state } = turn
  const { layout, locate, reading, sending } = measured
  const isDeep = cold !== null && settings.whenCold !== undefined
  const budget = isDeep ? Budget.whenCold(measured.budget, settings.whenCold) : measured.budget
  const before = Layout.lazyView(layout)
  const scale = Settings.isSizedByProvider(settings) && reading.kind === "usage" && before.price > 0
    ? reading.tokens / before.price
    : 1
  const sizes = Budget.inPrices(budget, scale)
  return {
    cause,
    aim,
    isPreview: false,
    closed: null,
    view: before,
    before,
    entries: Layout.conversationOf(layout),
    fixed: layout.systemPrice + budget.overhead,
    budget,
    sizes,
    scale,
    count: reading,
    settings,
    cold,
    served: {
      requests: state.requests,
      answers: state.figures.usage.answers,
      cacheRead: state.figures.usage.cacheRead
    },
    generation: state.generation,
    memory: state.memory,
    written: { memory: state.memory },
    report: Stage.noReport,
    payload: () => Sending.payloadOf(layout, sending()),
    locate,
    ready: state.ready,
    summarise: summarise === null ? null : summarise({ budget, scale, sizes }),
    counter: Counting.of(turn, budget)
  }
}

/**
 * What a pass did. A pass is a value: nothing of it holds before it is taken into a turn.
 *
 * - `closed`: why a gate ended it, `null` where none did. `boundary`: what it decided, `null` for nothing.
 * - `absorbed`: the checkpoints that stand in the view now and did not before.
 * - `checkpoint`: what became of the one that was ready.
 */
export interface Outcome {
  readonly given: Stage.Pass
  readonly after: Stage.Pass
  readonly closed: string | null
  readonly boundary: {
    readonly decisions: ReadonlyArray<Decision.Decision>
    readonly absorbed: ReadonlyArray<Decision.Absorb>
  } | null
  readonly checkpoint: Stage.Report["checkpoint"]
}

/** The memory of a pass that ended: whose request is feasible, nothing of an earlier one that was not is remembered. */
const settled = (pass: Stage.Pass): Stage.Memory =>
  pass.report.infeasible !== null || Stage.recall(pass, Ladder.infeasible) === null
    ? pass.memory
    : Stage.remember(pass, Ladder.infeasible, null).memory

/**
 * Runs a pass, the policy's own, whatever it is made for. A pass that fails leaves what its stages remembered.
 */
export const decide = <E, R>(
  turn: Turn.Turn,
  given: Stage.Pass,
  stage: Stage.Stage<E, R>
): Effect.Effect<Outcome, E, R> =>
  Effect.map(
    Effect.tapError(
      Effect.provideService(
        stage(given),
        CompactionEvent.Publisher,
        (event) => Effect.sync(() => Turn.tell(turn, event))
      ),
      () => Effect.sync(() => remember(turn, given.written.memory))
    ),
    (made): Outcome => {
      const after = { ...made, memory: settled(made), view: Reasoning.strip(given.before, made.view, made.settings) }
      const decisions = after.view === given.before ? [] : after.view.decisions.slice(given.before.decisions.length)
      const absorbed = decisions.filter((decision) => decision._tag === "Absorb")
      return {
        given,
        after,
        closed: after.closed,
        boundary: after.view === given.before ? null : { decisions, absorbed },
        checkpoint: after.report.checkpoint
      }
    }
  )

const lastOf = <Tag extends CompactionEvent.CompactionEvent["_tag"]>(
  turn: Turn.Turn,
  tag: Tag
): Extract<CompactionEvent.CompactionEvent, { readonly _tag: Tag }> | null => {
  const found = turn.told.findLast((event) => event._tag === tag)
  // It was found by its tag.
  return (found ?? null) as Extract<CompactionEvent.CompactionEvent, { readonly _tag: Tag }> | null
}

/** Takes into a turn what stages remember of a pass that decided nothing. */
const remember = (turn: Turn.Turn, memory: Stage.Memory): void => {
  Turn.take(turn, {
    _tag: "Remembered",
    memory,
    skipped: lastOf(turn, "CompactionSkipped"),
    infeasible: lastOf(turn, "Infeasible")
  })
}

/** What a boundary did, for the event and the next status. */
const compacted = (
  { abridged, decisions, generation }: Session.State,
  before: View.View,
  after: Stage.Pass,
  own: ReadonlyArray<Decision.Decision>
): typeof CompactionEvent.Compacted.Type => {
  const all = [...decisions.all.slice(0, decisions.length), ...own]
  // Of this pass, and not what the session's counts moved by: an entry that was truncated before may be removed now.
  const { absorbed, removed, stubbed, truncated } = Decision.counts(Decision.index(own))
  return {
    _tag: "Compacted",
    before: before.price,
    after: after.view.price,
    freed: before.price - after.view.price,
    messagesBefore: before.items.length,
    messagesAfter: after.view.items.length,
    removed,
    truncated,
    stubbed,
    absorbed,
    session: Decision.addCounts(Decision.counts(Decision.index(all)), abridged?.counts ?? Decision.noCounts),
    level: after.report.level,
    count: after.count.tokens,
    kind: after.count.kind,
    budget: after.budget.limit,
    target: after.report.target,
    generation: generation + 1,
    protectedRecent: after.settings.protectedRecent,
    protectedToolResults: after.settings.protectedToolResults
  }
}

/** Takes a pass into a turn: its decisions are in force from here on, whatever stage made them. */
export const accept = (turn: Turn.Turn, { after, boundary, given }: Outcome): void => {
  if (boundary === null) {
    const isNew = after.memory !== given.memory
    if (isNew || lastOf(turn, "CompactionSkipped") !== null) remember(turn, after.memory)
    return
  }
  const told = compacted(turn.state, given.before, after, boundary.decisions)
  Turn.take(turn, { _tag: "Decided", decisions: boundary.decisions, memory: after.memory, told })
  // An infeasible request may be cut down all the same; both are known of it.
  if (lastOf(turn, "Infeasible") !== null) remember(turn, after.memory)
  Turn.tell(turn, told)
}

/** Says what the window holds, where the figures do not say so already. */
export const hold = (turn: Turn.Turn, layout: Layout.Layout, tools: number): void => {
  const { runtime: { settings }, state } = turn
  const held = { ...Layout.held(layout), tools, window: Budget.smallerWindow(settings, state.call) ?? null }
  if (!Figure.says(state.figures, held)) Turn.take(turn, { _tag: "Held", ...held })
}
