import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Stage from "../Stage.ts"
import { reasonOf } from "../text/reason.ts"
import * as Cold from "./cold.ts"
import * as Passes from "./passes.ts"
import * as Recover from "./recover.ts"
import * as Spans from "./spans.ts"
import type * as Summarise from "./summarise.ts"
import type * as Turn from "./turn.ts"
import * as Written from "./written.ts"

/** What is previewed with: the policy's own pass, and the rungs of its ladder. */
export interface Previewing<E, R> {
  readonly stage: Stage.Stage<E, R>
  readonly rungs: Stage.Names
}

/** The span that a person who compacts by hand has summarised, where the policy writes summaries. */
const byHand = (turn: Turn.Turn, now: Passes.Measured, pass: Stage.Pass): Summarise.Plan | undefined => {
  const { summaries } = turn.runtime
  if (summaries === undefined) return undefined
  const span = Spans.spared(summaries, 0)
  return Spans.planOf(turn, now.sending(), pass, { view: pass.view, span, fallback: null })
}

const withSummary = (preview: Stage.Preview, plan: Summarise.Plan | undefined): Stage.Preview =>
  plan === undefined || preview.outcome === "fail" ? preview : {
    ...preview,
    outcome: "summary",
    summary: { entries: plan.span.seqs, tokens: plan.span.price }
  }

const failed = (given: Stage.Pass, error: unknown): Stage.Preview => {
  const tag = Predicate.hasProperty(error, "_tag") ? String(error._tag) : "unknown"
  return { ...Stage.previewOf(given), outcome: "fail", reason: `${tag}: ${reasonOf(error)}` }
}

/** Why a pass that decided nothing did so, where its stages published it. */
const toldBy = (turn: Turn.Turn): string | undefined => {
  for (const event of turn.told.toReversed()) {
    if (event._tag === "CompactionSkipped") {
      return `it would free ${event.freed} tokens, and clearAtLeast asks for ${event.required}`
    }
    if (event._tag === "Infeasible") return `the smallest view is ${event.over} tokens above the budget`
  }
  return undefined
}

const reasoned = (turn: Turn.Turn, preview: Stage.Preview): Stage.Preview => {
  if (preview.outcome !== "nothing") return preview
  return preview.cause === "overflow"
    ? { ...preview, outcome: "fail", reason: "ContextCannotFit: the policy's rungs make no smaller view" }
    : { ...preview, reason: toldBy(turn) ?? preview.reason }
}

/**
 * What a pass for a cause would do now: the policy's own pass, run in a turn that is never committed. Where the pass would
 * have a summary written, the preview says of what, and no model is asked.
 */
export const run = <E, R>(
  turn: Turn.Turn,
  cause: Stage.Cause,
  { rungs, stage }: Previewing<E, R>
): Effect.Effect<Stage.Preview, never, R> =>
  Effect.gen(function*() {
    const now = Passes.measure(turn, turn.state.call)
    const cold = cause === "pressure" ? yield* Cold.of(turn, turn.state.call, now.layout) : null
    const aim = cause === "overflow" ? Recover.aimOf(Recover.refusedPriceOf(turn)) : null
    let plan: Summarise.Plan | undefined
    const note = (asked: Summarise.Plan): Effect.Effect<null> =>
      Effect.sync(() => {
        plan ??= asked
        return null
      })
    const choice = aim === null ? Written.ahead : Written.spared(aim)
    const summarise = cause === "manual" ? null : Written.inPass(turn, now.sending, choice, note)
    const given = { ...Passes.passOf(turn, now, { cause, aim, cold, summarise }), isPreview: true }
    if (cause === "manual" && turn.runtime.summaries !== undefined) {
      // A person's command has a summary written, or does nothing: it climbs no ladder.
      const reason = "there is nothing to summarise"
      return withSummary({ ...Stage.previewOf(given), reason }, byHand(turn, now, given))
    }
    return yield* Effect.match(Passes.decide(turn, given, stage), {
      onFailure: (error) => withSummary(failed(given, error), plan),
      onSuccess: ({ after }) => withSummary(reasoned(turn, Stage.previewOf(after, rungs)), plan)
    })
  })
