import * as Effect from "effect/Effect"
import type * as Rung from "../Rung.ts"
import type * as Stage from "../Stage.ts"
import type * as View from "../View.ts"
import * as Draft from "./draft.ts"

/** What came of a climb: the view, the rung of its last decision, what rungs remember, and the draft it was made on. */
export interface Climbed {
  readonly view: View.View
  readonly level: number
  readonly memory: Stage.Memory
  readonly draft: Draft.Writable
}

/** Runs the proposer of a rung until the draft is where it should come to or there is nothing more to propose. */
export const propose = (draft: Draft.Writable, rung: Rung.Proposer, level: number, aim: Draft.Aim): void => {
  if (Draft.reaches(draft, aim)) return
  for (const decision of rung.propose(draft)) {
    if (rung.isWhole) {
      Draft.apply(draft, level, decision, true)
      continue
    }
    if (Draft.reaches(draft, aim)) return
    // An entry that stays an entry brings nothing nearer once only their number is too large.
    if (draft.price > aim.price || decision._tag === "Remove") Draft.apply(draft, level, decision)
  }
}

/** Takes over what an effectful rung decided: the decisions it added to the view it was given. */
const adopt = (draft: Draft.Writable, level: number, view: View.View): Draft.Writable => {
  const next = Draft.make(view, draft)
  const known = draft.base.decisions.length + draft.edits.length
  const { entries, price } = next
  const edits = view.decisions.slice(known).map((decision) => ({
    level,
    isPartOfWhole: true,
    decision,
    price,
    entries
  }))
  return { ...next, base: draft.base, edits: [...draft.edits, ...edits] }
}

/**
 * Climbs rungs, level by level from 1, until the draft is where it should come to.
 *
 * Before every single edit it is compared with the aim, so the edits of a climb to a higher aim are a prefix of
 * those of a climb to a lower one.
 */
export const stage = <E, R>(
  rungs: ReadonlyArray<Rung.Rung<E, R>>
): (pass: Stage.Pass, aim: Draft.Aim) => Effect.Effect<Climbed, E, R> =>
  Effect.fnUntraced(function*(pass, aim) {
    let draft = Draft.make(pass.view, { settings: pass.settings, limit: pass.sizes.limit, locate: pass.locate })
    let { memory } = pass
    for (let at = 0; at < rungs.length && !Draft.reaches(draft, aim); at++) {
      const { run } = rungs[at]!
      if (run._tag === "propose") {
        propose(draft, run, at + 1, aim)
        continue
      }
      const view = Draft.toView(draft, draft.edits.length)
      const next = yield* run.stage({ ...pass, aim: aim.price, view, memory })
      memory = next.memory
      if (next.view !== view) draft = adopt(draft, at + 1, next.view)
    }
    const count = draft.edits.length
    return { view: Draft.toView(draft, count), level: Draft.levelOf(draft, count), memory, draft }
  })
