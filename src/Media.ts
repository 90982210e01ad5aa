/**
 * Images, files and other media are limited in number and in bytes by providers, whatever room is left in the window: the
 * oldest of them become words.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Decision from "./Decision.ts"
import * as Alter from "./ladder/alter.ts"
import type * as Stage from "./Stage.ts"
import * as View from "./View.ts"
import * as Payload from "./wire/payload.ts"

/** How far a limit that was exceeded is undercut, so that the next boundary is a while away. */
const share = 0.5

/** What to come down to: half of a limit that is exceeded, and any amount of what is not. */
const aimOf = (limit: number | null, amount: number): number =>
  limit !== null && amount > limit ? Math.floor(limit * share) : Infinity

/** The decisions that bring the view to half of the limit, oldest media first, or as near as they can. */
const placeholders = (
  pass: Stage.Pass,
  { bytes, media }: Stage.Payload,
  aim: Stage.Payload
): ReadonlyArray<Decision.Placeholder> => {
  const { transcript, items, length } = pass.view
  const decisions: Array<Decision.Placeholder> = []
  let left: Stage.Payload = { bytes, media }
  for (const { alterations, entry, message } of items) {
    if (left.media <= aim.media && left.bytes <= aim.bytes) break
    if (entry === undefined || entry.pinned || entry.seq >= transcript.lastHuman) continue
    const before = Payload.of(message)
    if (before.media === 0) continue
    const decision: Decision.Placeholder = { _tag: "Placeholder", seq: entry.seq, at: length }
    const after = Payload.of(Alter.item(transcript, entry, [...alterations, decision]).message)
    left = { media: left.media - before.media + after.media, bytes: left.bytes - before.bytes + after.bytes }
    decisions.push(decision)
  }
  return decisions
}

/**
 * Keeps a request within `maxImages` and `maxRequestBytes`: when one of them is exceeded, the oldest media become words
 * until half of it is left, so that the prefix is not rewritten at each request.
 *
 * **Details**
 *
 * The current turn, from the last human message on, stays, and so do pinned entries; what they carry above a limit is sent.
 * Bytes are those of texts, inputs, results and media as they are sent (base64), without the frame around them.
 *
 * @category stages
 * @since 0.1.0
 */
export const limit: Stage.Stage = (pass) => {
  const { maxImages, maxRequestBytes } = pass.settings
  if (maxImages === null && maxRequestBytes === null) return Effect.succeed(pass)
  const payload = pass.view === pass.before ? pass.payload() : Payload.sum(pass.view.items.map((item) => item.message))
  const aim = { media: aimOf(maxImages, payload.media), bytes: aimOf(maxRequestBytes, payload.bytes) }
  if (aim.media === Infinity && aim.bytes === Infinity) return Effect.succeed(pass)
  const decisions = placeholders(pass, payload, aim)
  if (decisions.length === 0) return Effect.succeed(pass)
  const view = View.make(pass.view.transcript, [...pass.view.decisions, ...decisions])
  // What was counted was counted with them.
  const freed = Math.floor((pass.view.price - view.price) * pass.scale)
  return Effect.succeed({ ...pass, view, count: { ...pass.count, tokens: Math.max(0, pass.count.tokens - freed) } })
}
