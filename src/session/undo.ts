import * as Effect from "effect/Effect"
import type * as CompactionEvent from "../CompactionEvent.ts"
import { BoundaryNotFound, UndoCannotFit } from "./errors.ts"
import * as History from "./history.ts"
import * as Layout from "./layout.ts"
import * as Passes from "./passes.ts"
import * as Turn from "./turn.ts"

/**
 * Takes back a boundary and all later ones: the view is what it was before the first of them, with what came since. What a
 * snapshot left out was decided about, so the whole log is read first.
 */
export const run = Effect.fnUntraced(function*(
  turn: Turn.Turn,
  generation: number
): Effect.fn.Return<typeof CompactionEvent.CompactionUndone.Type, BoundaryNotFound | UndoCannotFit> {
  yield* Turn.whole(turn)
  const { boundaries } = turn.state
  if (!boundaries.some((each) => each.generation === generation)) {
    return yield* new BoundaryNotFound({
      // Nobody means anything by another number, and JSON has no word for it.
      generation: Number.isFinite(generation) ? generation : -1,
      generations: boundaries.map((each) => each.generation)
    })
  }
  const before = Layout.priceOf(Passes.measure(turn, turn.state.call).layout)
  const decisions = turn.state.decisions.length
  Turn.take(turn, { _tag: "Undone", generation, memory: History.afterDrop(turn.state.memory) })
  const { budget, layout, reading } = Passes.measure(turn, turn.state.call)
  if (reading.tokens > budget.limit) {
    return yield* new UndoCannotFit({ generation, tokens: reading.tokens, budget: budget.limit })
  }
  // A text that an entry points at which is in the view again may not have been written.
  turn.runtime.caches.spills = undefined
  Passes.hold(turn, layout, turn.state.figures.breakdown.tools)
  const told = {
    _tag: "CompactionUndone",
    from: generation,
    boundaries: boundaries.length - turn.state.boundaries.length,
    decisions: decisions - turn.state.decisions.length,
    before,
    after: Layout.priceOf(layout),
    generation: turn.state.generation
  } as const
  Turn.tell(turn, told)
  return told
})
