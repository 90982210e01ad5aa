import type * as Prompt from "effect/ai/Prompt"
import type * as Budget from "../Budget.ts"
import * as Checkpoint from "../Checkpoint.ts"
import * as Settings from "../Settings.ts"
import type * as Stage from "../Stage.ts"
import type * as Summarizer from "../Summarizer.ts"
import type * as View from "../View.ts"
import type * as Sending from "./sending.ts"
import * as Sent from "./sent.ts"
import type * as Summaries from "./summaries.ts"
import type * as Summarise from "./summarise.ts"
import type * as Turn from "./turn.ts"

/**
 * A summary that is begun early takes what will have to go at the trigger, when it is absorbed, not what must go now. Where
 * the view is too large for a summary to be worth its call, no span costs enough.
 */
export const ahead = (
  { summary }: Summaries.Summaries,
  sizes: Budget.Sizes,
  price: number
): Checkpoint.SpanOptions => ({
  aim: Math.min(sizes.target, price - (sizes.trigger - sizes.target)),
  retain: Settings.retainOf(summary, sizes.limit),
  minimum: Settings.isSummaryWorth(summary, sizes.target) ? Math.floor(summary.minSpan * sizes.limit) : Infinity,
  heedProtection: summary.heedProtection,
  mergeCheckpoints: summary.mergeCheckpoints
})

/** Everything that can be spared: what a person asks for, and what an overflow leaves no choice about. */
export const spared = ({ summary }: Summaries.Summaries, aim: number): Checkpoint.SpanOptions => ({
  aim,
  retain: 0,
  minimum: 0,
  heedProtection: false,
  mergeCheckpoints: summary.mergeCheckpoints
})

/** What a summary is to be made of: the view, the span, why it cannot stand on what was sent, and what to keep an eye on. */
export interface Wish {
  readonly view: View.View
  readonly span: Checkpoint.SpanOptions
  readonly fallback: Summarizer.Fallback | null
  readonly focus?: string | undefined
}

/** The messages that a summary can stand on, or why it cannot. */
const prefixOf = (
  { runtime, state }: Turn.Turn,
  sending: Sending.Sending,
  { seqs }: Checkpoint.Span,
  fallback: Summarizer.Fallback | null
): ReadonlyArray<Prompt.Message> | Summarizer.Fallback => {
  if (fallback !== null) return fallback
  const entries = state.sent?.entries ?? 0
  if (!seqs.every((seq) => seq < entries)) return "notSent"
  const known = Sent.known(runtime.caches.sent, state, runtime.rules)
  return Sent.upTo(known, new Set(seqs), sending) ?? "prefixChanged"
}

/** What a summary of a view is made of, or `undefined` when no span of it is worth one. */
export const planOf = (
  turn: Turn.Turn,
  sending: Sending.Sending,
  { budget, scale }: Pick<Stage.Pass, "budget" | "scale">,
  { fallback, focus, span, view }: Wish
): Summarise.Plan | undefined => {
  const { settings } = turn.runtime
  // A budget may be well below the window; a request for a summary may fill the window.
  const { window = 0 } = settings
  const whole = budget.source === "provider" ? 0 : window - Settings.reservesOf(settings, window).margin
  const room = Math.floor((Math.max(budget.total, whole) - budget.overhead) / scale)
  const found = Checkpoint.span(view, settings, span)
  if (found === undefined) return undefined
  return {
    view,
    span: found,
    prefix: prefixOf(turn, sending, found, fallback),
    generation: turn.state.generation,
    limit: budget.limit,
    room,
    focus
  }
}
