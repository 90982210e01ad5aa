/**
 * What a provider signed it checks: reasoning whose signature covers a prefix that is not the one sent any more may be
 * refused. It is dropped whole, at the boundary that changed its prefix; never edited.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Decision from "./Decision.ts"
import type * as Stage from "./Stage.ts"
import * as View from "./View.ts"
import * as Reasoning from "./wire/reasoning.ts"

/**
 * Holds inside an unfinished tool turn that carries signed reasoning: a call of the newest assistant entry waits for its
 * result. There nothing is decided, unless `signedReasoning` is `"keep"`.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isHeld = (pass: Stage.Pass): boolean =>
  pass.settings.signedReasoning === "strip" && Reasoning.isOpenTurn(pass.view.transcript)

/** The view with the signed reasoning dropped from the first item on that is not the one that stood there before. */
const stripped = (before: View.View, after: View.View): View.View => {
  const { items, transcript } = after
  let at = 0
  // Items are made once, so what did not change is the same object.
  while (at < items.length && items[at] === before.items[at]) at++
  const needed = Reasoning.neededBy(transcript)
  const decisions: Array<Decision.Trim> = []
  for (; at < items.length; at++) {
    const { entry, message } = items[at]!
    if (entry === undefined || entry.pinned || entry.seq === needed || !Reasoning.isSigned(message)) continue
    decisions.push({ _tag: "Trim", seq: entry.seq, at: after.length, reasoning: true, inputs: false })
  }
  return decisions.length === 0 ? after : View.make(transcript, [...after.decisions, ...decisions])
}

/**
 * Drops signed reasoning whose prefix the stage changed, in the same boundary, unless `signedReasoning` is `"keep"`.
 *
 * **Details**
 *
 * What stands before the first change stays, byte for byte, and so does what comes after the boundary. One entry keeps its
 * reasoning all the same: the newest that carries any since the last human message. A tool turn in progress needs it:
 * Anthropic refuses a request without it ("a final `assistant` message must start with a thinking block"). Where a
 * provider knows the items that follow reasoning by id, these references go too: they are refused without it.
 *
 * @category combining
 * @since 0.1.0
 */
export const strip = <E, R>(self: Stage.Stage<E, R>): Stage.Stage<E, R> => (pass) =>
  Effect.map(self(pass), (after) =>
    after.view === pass.view || pass.settings.signedReasoning === "keep"
      ? after
      : { ...after, view: stripped(pass.view, after.view) })
