/**
 * The summaries of a session as a request sees them: one may be written inside its pass, one that waits is used or given up,
 * and one may begin when the request is sent.
 */
import * as Effect from "effect/Effect"
import * as Settings from "../Settings.ts"
import * as Stage from "../Stage.ts"
import type * as TokenMeter from "../TokenMeter.ts"
import * as View from "../View.ts"
import type * as Layout from "./layout.ts"
import type * as Passes from "./passes.ts"
import * as Runtime from "./runtime.ts"
import type * as Sending from "./sending.ts"
import * as Spans from "./spans.ts"
import * as Summaries from "./summaries.ts"
import type * as Summarise from "./summarise.ts"
import type * as Turn from "./turn.ts"

type Sized = Pick<Stage.Pass, "budget" | "scale" | "sizes">

/** How a span is chosen for a summary inside a pass. */
export interface Choice {
  (self: Summaries.Summaries, sized: Sized, view: View.View): ReturnType<typeof Spans.ahead>
}

/** What will have to go at the trigger. */
export const ahead: Choice = (self, { sizes }, { price }) => Spans.ahead(self, sizes, price)

/** All that can be spared, down to a price. */
export const spared = (aim: number): Choice => (self) => Spans.spared(self, aim)

/**
 * How a pass has a summary written while it waits; `null` where it may not. Whatever comes of it, the pass goes on. `ask` is
 * given what is to be summarised; by default a model is asked.
 */
export const inPass = (
  turn: Turn.Turn,
  sending: () => Sending.Sending,
  choice: Choice,
  ask?: (plan: Summarise.Plan) => Effect.Effect<Stage.Ready | null>
): Passes.Purpose["summarise"] => {
  const { runtime: { summaries }, state } = turn
  if (summaries === undefined || !Summaries.mayAsk(summaries, state)) return null
  const known = state.decisions.length
  return (sized) => (view) =>
    Effect.suspend(() => {
      const isPruned = view.decisions.length > known
      const span = choice(summaries, sized, view)
      const plan = Spans.planOf(turn, sending(), sized, { view, span, fallback: isPruned ? "pruned" : null })
      if (plan === undefined) return Effect.succeed(null)
      return ask === undefined ? Summaries.ask(turn, summaries, plan) : ask(plan)
    })
}

/** The pass of a request failed. */
export const gaveUp = (turn: Turn.Turn): void => Summaries.gaveUp(turn)

/** Whether the summaries of a pass brought it below the trigger: the ladder, which came after them, is not counted. */
const isConverged = ({ boundary, given }: Passes.Outcome): boolean => {
  const decisions = boundary?.decisions ?? []
  const last = decisions.findLastIndex((decision) => decision._tag === "Absorb")
  if (last < 0) return false
  const { before } = given
  const view = View.make(before.transcript, [...before.decisions, ...decisions.slice(0, last + 1)])
  return Stage.pressureOf({ ...given, view }) < given.sizes.trigger
}

/** Takes in how a request ended: whether the summary that waited is used, waits on, or is given up. */
export const settle = (turn: Turn.Turn, outcome: Passes.Outcome | null, count: number, limit: number): void => {
  const { summaries } = turn.runtime
  if (summaries === undefined) return
  const { ready } = turn.state
  const absorbed = outcome?.boundary?.absorbed ?? []
  const used = absorbed.find((decision) => decision.checkpoint === ready?.checkpoint)
  for (const each of absorbed) if (each !== used) Summaries.absorbed(turn, summaries, each, count, limit)
  Summaries.counted(turn, summaries, count, limit, outcome !== null && turn.summaries.asked > 0 && isConverged(outcome))
  if (ready === null) return
  const { index } = Runtime.layoutOf(turn.runtime, turn.state)
  if (used !== undefined) Summaries.absorbed(turn, summaries, ready, count, limit)
  else if (ready.seqs.some((seq) => index.removed.has(seq))) Summaries.giveUp(turn, "stale")
  else if (outcome?.checkpoint === "useless" && outcome.boundary !== null) Summaries.giveUp(turn, "useless")
}

/** What is looked at to tell whether a summary is to begin beside the session. */
export interface Look {
  readonly outcome: Passes.Outcome
  readonly addressed: {
    readonly layout: Layout.Layout
    readonly sending: Sending.Sending
    readonly prefixChanged: string | null
  }
  readonly count: number
  readonly kind: TokenMeter.Kind
  /** How many entries the request before this one had: a summary stands on what was sent then. */
  readonly sentBefore: number
}

/** The summary that is to begin beside the session, if it is time for one. It is about what was sent before this request. */
export const due = (turn: Turn.Turn, look: Look): Summarise.Plan | undefined => {
  const { runtime: { settings, summaries }, state } = turn
  const { addressed, count, kind, outcome: { after }, sentBefore } = look
  const { limit } = after.budget
  if (summaries === undefined || !Summaries.isDue(summaries, state, count, limit)) return undefined
  if (Settings.isGated(settings) && kind !== "usage") return undefined
  const span = Spans.ahead(summaries, after.sizes, after.view.price)
  const fallback = addressed.prefixChanged === null ? null : "prefixChanged"
  const plan = Spans.planOf(turn, addressed.sending, after, { view: after.view, span, fallback })
  if (plan === undefined) {
    Summaries.foundNone(turn, count, limit)
    return undefined
  }
  return plan.span.seqs.every((seq) => seq < sentBefore) ? plan : { ...plan, prefix: "notSent" }
}

/** Begins a summary beside the session. */
export const start = (turn: Turn.Turn, plan: Summarise.Plan): Effect.Effect<void> => {
  const { summaries } = turn.runtime
  return summaries === undefined ? Effect.void : Summaries.start(turn, summaries, plan)
}
