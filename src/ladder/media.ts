/**
 * Images, files and other media are limited in number and in bytes by providers, whatever room is left in the window: the
 * oldest of them become words.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "../CompactionEvent.ts"
import type * as Decision from "../Decision.ts"
import * as Stage from "../Stage.ts"
import type * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import * as Payload from "../wire/payload.ts"
import * as Alter from "./alter.ts"

/** How far a limit that was exceeded is undercut, so that the next boundary is a while away. */
const share = 0.5

/** What to come down to: half of a limit that is exceeded, and any amount of what is not. */
const aimOf = (limit: number, amount: number): number => amount > limit ? Math.floor(limit * share) : Infinity

interface Media {
  readonly entry: Transcript.Entry
  readonly item: View.Item
  readonly payload: Stage.Payload
}

/** Whether words can stand for media of a message: what a tool of the provider's returned stays as the provider made it. */
const isReplaceable = (message: Prompt.Message): boolean =>
  message.role !== "assistant" || message.content.some((part) => part.type === "file")

/**
 * The media of a view that may become words, in the order in which they do: those of earlier turns, those of the turn in
 * progress, and the newest of that, which the model has asked for last. What a person showed in the turn in progress stays.
 */
const inOrder = (
  { items, transcript }: View.View
): readonly [earlier: Array<Media>, current: Array<Media>, newest: Array<Media>] => {
  const earlier: Array<Media> = []
  const current: Array<Media> = []
  for (const item of items) {
    const { entry, message } = item
    if (entry === undefined || entry.pinned || entry.seq === transcript.lastHuman) continue
    const payload = Payload.of(message)
    if (payload.media === 0 || !isReplaceable(message)) continue
    const of = entry.seq < transcript.lastHuman ? earlier : current
    of.push({ entry, item, payload })
  }
  return [earlier, current, current.splice(-1)]
}

const isWithin = (payload: Stage.Payload, most: Stage.Payload): boolean =>
  payload.media <= most.media && payload.bytes <= most.bytes

/** The decisions that bring the view to half of a limit that is exceeded, oldest media first, or as near as they can. */
const placeholders = (
  view: View.View,
  payload: Stage.Payload,
  limits: Stage.Payload
): { readonly decisions: ReadonlyArray<Decision.Placeholder>; readonly left: Stage.Payload } => {
  const aim = { media: aimOf(limits.media, payload.media), bytes: aimOf(limits.bytes, payload.bytes) }
  const decisions: Array<Decision.Placeholder> = []
  let left = payload
  for (const [phase, all] of inOrder(view).entries()) {
    // The turn in progress is touched only when it must be, its newest only when nothing else is left.
    if (phase > 0 && isWithin(left, limits)) break
    for (const { entry, item, payload: before } of all) {
      if (isWithin(left, aim)) break
      const decision: Decision.Placeholder = { _tag: "Placeholder", seq: entry.seq, at: view.length }
      const after = Payload.of(Alter.item(view.transcript, entry, [...item.alterations, decision]).message)
      left = { media: left.media - before.media + after.media, bytes: left.bytes - before.bytes + after.bytes }
      decisions.push(decision)
    }
  }
  return { decisions, left }
}

/**
 * The seqs of the entries that were named last because their media are too much and must stay; `null` when all was within
 * the limits.
 */
const infeasible = Stage.memory("Media/infeasible", Schema.NullOr(Schema.Array(Schema.Natural)), null)

/** How many entries are named. */
const shown = 3

/** The entries that carry most of what is above a limit. */
const holdersOf = (view: View.View, payload: Stage.Payload, limits: Stage.Payload) => {
  const all = view.items.map((item) => ({ seq: item.seq, ...Payload.of(item.message) })).filter(({ seq }) => seq >= 0)
  const holding = payload.media > limits.media ? all.filter(({ media }) => media > 0) : all
  return holding.sort((a, b) => b.bytes - a.bytes).slice(0, shown)
}

/** Says what is above a limit and must stay, once for the same entries. */
const named = Effect.fnUntraced(function*(pass: Stage.Pass, payload: Stage.Payload, limits: Stage.Payload) {
  const known = Stage.recall(pass, infeasible)
  if (isWithin(payload, limits)) return known === null ? pass : Stage.remember(pass, infeasible, null)
  const holders = holdersOf(pass.view, payload, limits)
  const seqs = holders.map(({ seq }) => seq)
  if (known !== null && known.length === seqs.length && known.every((seq, at) => seq === seqs[at])) return pass
  const { maxImages, maxRequestBytes } = pass.settings
  yield* CompactionEvent.publish({ _tag: "PayloadInfeasible", ...payload, maxImages, maxRequestBytes, holders })
  return Stage.remember(pass, infeasible, seqs)
})

/** See `Gate.media`. */
export const limit: Stage.Stage = Effect.fnUntraced(function*(pass: Stage.Pass) {
  const { maxImages, maxRequestBytes } = pass.settings
  if (maxImages === null && maxRequestBytes === null) return pass
  const payload = pass.view === pass.before ? pass.payload() : Payload.sum(pass.view.items.map((item) => item.message))
  const limits = { media: maxImages ?? Infinity, bytes: maxRequestBytes ?? Infinity }
  if (isWithin(payload, limits)) return yield* named(pass, payload, limits)
  const { decisions, left } = placeholders(pass.view, payload, limits)
  if (decisions.length === 0) return yield* named(pass, payload, limits)
  const view = View.make(pass.view.transcript, [...pass.view.decisions, ...decisions])
  // What was counted was counted with them.
  const freed = Math.floor((pass.view.price - view.price) * pass.scale)
  const count = { ...pass.count, tokens: Math.max(0, pass.count.tokens - freed) }
  return yield* named({ ...pass, view, count }, left, limits)
})
