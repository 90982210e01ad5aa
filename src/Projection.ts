/**
 * What a person reads of a log: what was billed, how full the window is, and with what.
 *
 * Each projection is a small record that one event at a time is folded into. It holds no price of any entry, so it is as large
 * after a million events as after one, is plain data, and goes on from wherever it was kept. A replacement is followed
 * through what the event right before it says: which range goes, what it costs, and how much of that is checkpoints. The
 * log of a `SessionLog` states instead what the window holds after each change.
 *
 * **Gotchas**
 *
 * These figures are for people. What decides is the meter. A replacement that no event announced changes no figure, so that
 * a log without such events can be read; its figures are too high from then on.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type * as Transaction from "./Transaction.ts"

/**
 * What is folded: the events of a log, and beside them what requests are made of and what they were billed, in tokens.
 *
 * **Details**
 *
 * - `header`: the system prompt and the definitions of tools as they are from now on. `window`: of the route, `null` when
 *   nothing says.
 * - `held`: what the messages and the checkpoints of the window come to from now on.
 * - `billed`: one answer; `input` is what was neither read from the cache nor written to it. One `beside` the conversation,
 *   such as a summary, says nothing about its window.
 *
 * @category models
 * @since 0.1.0
 */
export type Event =
  | Transaction.Event
  | { readonly op: "header"; readonly system: number; readonly tools: number }
  | { readonly op: "window"; readonly tokens: number | null }
  | {
    readonly op: "billed"
    readonly input: number
    readonly cacheRead: number
    readonly cacheWrite: number
    readonly output: number
    readonly beside?: boolean
  }
  | { readonly op: "held"; readonly messages: number; readonly checkpoints: number }

const Claim = Schema.NullOr(Schema.Struct({
  start: Schema.Int,
  end: Schema.Int,
  price: Schema.Natural,
  checkpoints: Schema.Natural
}))

/**
 * What was billed over the whole log, in tokens, and in how many answers, summaries included. A compaction takes nothing
 * of it away.
 *
 * @category models
 * @since 0.1.0
 */
export const Usage = Schema.Struct({
  input: Schema.Natural,
  cacheRead: Schema.Natural,
  cacheWrite: Schema.Natural,
  output: Schema.Natural,
  answers: Schema.Natural
})

/**
 * @category models
 * @since 0.1.0
 */
export type Usage = typeof Usage.Type

/**
 * How full the window is.
 *
 * **Details**
 *
 * - `billed`: the newest request by its bill, without its answer; `null` before the first. `moved`: what the surface and the
 *   header gained since (or lost). `estimated`: what they cost by price. `window`: of the newest route, `null` when unknown.
 *
 * @category models
 * @since 0.1.0
 */
export const Pressure = Schema.Struct({
  billed: Schema.NullOr(Schema.Natural),
  moved: Schema.Int,
  estimated: Schema.Int,
  header: Schema.Natural,
  window: Schema.NullOr(Schema.Natural),
  claim: Claim
})

/**
 * @category models
 * @since 0.1.0
 */
export type Pressure = typeof Pressure.Type

/**
 * What the window holds, by price in tokens. Checkpoints are no messages here.
 *
 * @category models
 * @since 0.1.0
 */
export const Breakdown = Schema.Struct({
  system: Schema.Natural,
  tools: Schema.Natural,
  messages: Schema.Int,
  checkpoints: Schema.Int,
  claim: Claim
})

/**
 * @category models
 * @since 0.1.0
 */
export type Breakdown = typeof Breakdown.Type

/**
 * A projection: where it begins, how an event moves it, and the Schema in which it is kept. An event that is none of its
 * business gives back the same object.
 *
 * @category models
 * @since 0.1.0
 */
export interface Projection<State> {
  readonly name: string
  readonly schema: Schema.Codec<State>
  readonly initial: State
  readonly apply: (state: State, event: Event) => State
}

/**
 * What was billed.
 *
 * @category projections
 * @since 0.1.0
 */
export const usage: Projection<Usage> = {
  name: "usage",
  schema: Usage,
  initial: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, answers: 0 },
  apply: (state, event) =>
    event.op !== "billed" ? state : {
      input: state.input + event.input,
      cacheRead: state.cacheRead + event.cacheRead,
      cacheWrite: state.cacheWrite + event.cacheWrite,
      output: state.output + event.output,
      answers: state.answers + 1
    }
}

type ClaimState = typeof Claim.Type

/** What an event announces of the next one. */
const claimOf = (event: Event): ClaimState => {
  if (event.op !== "claim" && event.op !== "summary") return null
  const { checkpoints = 0, end, price, start } = event
  return { start, end, price, checkpoints }
}

/** What a replacement takes away, if the event before it said so. */
const takenBy = (
  claim: ClaimState,
  event: Extract<Event, { readonly op: "replace" }>
): NonNullable<ClaimState> | undefined =>
  claim !== null && claim.start === event.start && claim.end === event.end ? claim : undefined

/** How the price of the surface changes, in tokens. */
const deltaOf = (claim: ClaimState, event: Event): number => {
  if (event.op === "append") return event.node.price
  if (event.op !== "replace") return 0
  const taken = takenBy(claim, event)
  return taken === undefined ? 0 : event.node.price - taken.price
}

/**
 * How full the window is.
 *
 * @category projections
 * @since 0.1.0
 */
export const pressure: Projection<Pressure> = {
  name: "pressure",
  schema: Pressure,
  initial: { billed: null, moved: 0, estimated: 0, header: 0, window: null, claim: null },
  apply: (state, event) => {
    const claim = claimOf(event)
    switch (event.op) {
      case "billed":
        if (event.beside === true) return { ...state, claim }
        return { ...state, billed: event.input + event.cacheRead + event.cacheWrite, moved: 0, claim }
      case "window":
        return { ...state, window: event.tokens, claim }
      case "header": {
        const header = event.system + event.tools
        const delta = header - state.header
        return { ...state, header, moved: state.moved + delta, estimated: state.estimated + delta, claim }
      }
      case "held": {
        const estimated = state.header + event.messages + event.checkpoints
        return { ...state, moved: state.moved + estimated - state.estimated, estimated, claim }
      }
      default: {
        const delta = deltaOf(state.claim, event)
        if (delta === 0 && claim === null && state.claim === null) return state
        return { ...state, moved: state.moved + delta, estimated: state.estimated + delta, claim }
      }
    }
  }
}

/**
 * What the next request occupies, in tokens, and where the number comes from: a bill and what came since, or prices alone.
 *
 * @category getters
 * @since 0.1.0
 */
export const occupied = (
  { billed, estimated, moved }: Pressure
): { readonly tokens: number; readonly kind: "usage" | "estimated" } =>
  billed === null ? { tokens: Math.max(0, estimated), kind: "estimated" } : {
    tokens: Math.max(0, billed + moved),
    kind: "usage"
  }

/**
 * What the window holds.
 *
 * @category projections
 * @since 0.1.0
 */
export const breakdown: Projection<Breakdown> = {
  name: "breakdown",
  schema: Breakdown,
  initial: { system: 0, tools: 0, messages: 0, checkpoints: 0, claim: null },
  apply: (state, event) => {
    const claim = claimOf(event)
    switch (event.op) {
      case "header":
        return { ...state, system: event.system, tools: event.tools, claim }
      case "held":
        return { ...state, messages: event.messages, checkpoints: event.checkpoints, claim }
      case "append":
        return { ...state, messages: state.messages + event.node.price, claim }
      case "replace": {
        const taken = takenBy(state.claim, event)
        if (taken === undefined) return state.claim === null ? state : { ...state, claim }
        // What a transaction puts in the place of a range is a checkpoint; whatever else replaces is a message.
        const isCheckpoint = event.node.checkpoint === true
        return {
          ...state,
          messages: state.messages - (taken.price - taken.checkpoints) + (isCheckpoint ? 0 : event.node.price),
          checkpoints: state.checkpoints - taken.checkpoints + (isCheckpoint ? event.node.price : 0),
          claim
        }
      }
      default:
        return claim === null && state.claim === null ? state : { ...state, claim }
    }
  }
}

/**
 * All three.
 *
 * @category models
 * @since 0.1.0
 */
export const Figures = Schema.Struct({ usage: Usage, pressure: Pressure, breakdown: Breakdown })

/**
 * @category models
 * @since 0.1.0
 */
export type Figures = typeof Figures.Type

/**
 * All three at once.
 *
 * @category projections
 * @since 0.1.0
 */
export const figures: Projection<Figures> = {
  name: "figures",
  schema: Figures,
  initial: { usage: usage.initial, pressure: pressure.initial, breakdown: breakdown.initial },
  apply: (state, event) => {
    const next = {
      usage: usage.apply(state.usage, event),
      pressure: pressure.apply(state.pressure, event),
      breakdown: breakdown.apply(state.breakdown, event)
    }
    const isSame = next.usage === state.usage && next.pressure === state.pressure && next.breakdown === state.breakdown
    return isSame ? state : next
  }
}

/**
 * Folds events into a projection, from its beginning or from where it was kept.
 *
 * @category running
 * @since 0.1.0
 */
export const fold = <State>(
  self: Projection<State>,
  events: Iterable<Event>,
  from: State = self.initial
): State => {
  let state = from
  for (const event of events) state = self.apply(state, event)
  return state
}
