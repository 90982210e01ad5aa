/**
 * How many tokens the next request occupies, and where that number comes from.
 *
 * A *price* is what the estimator says one entry costs, and prices add up; a *count* is what a request occupies, with its
 * provenance. Gates act on counts, the ladder does its arithmetic in prices.
 *
 * **Details**
 *
 * Four meters are read on every request, and one of them drives:
 *
 * | meter | count | kind |
 * |---|---|---|
 * | `estimate` | the price of the view | estimated |
 * | `actual` | what the provider billed for the last request | usage |
 * | `hybrid` | that, plus what the view has gained in price since that request was sent (or less what it lost) | usage |
 * | `calibrated` | the price times a moving average of billed over priced, without the overhead | usage |
 *
 * Each falls back to the price, kind `estimated`, while it has nothing better. `actual` is late by one call and, like
 * `hybrid`, says nothing about the size of a smaller view: it anchors the gate, and the amount is sized in prices.
 *
 * - What was sent is remembered when it is sent, not when the turn began, and a usage belongs to the request it answers.
 * - An anchor that is less than the price of what it billed is no floor to stand on: it is rejected, and the larger
 *   price is the count. An anchor holds only for the same system prompt, tools and route.
 * - Missing or malformed usage leaves the old reading in place and marks it stale.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * Where a count comes from: anchored on what the provider billed, estimated, or nothing to count yet.
 *
 * @category models
 * @since 0.1.0
 */
export const Kind = Schema.Literals(["usage", "estimated", "none"])

/**
 * @category models
 * @since 0.1.0
 */
export type Kind = typeof Kind.Type

/**
 * A count, in tokens, with its provenance.
 *
 * @category models
 * @since 0.1.0
 */
export interface TokenCount {
  readonly tokens: number
  readonly kind: Kind
}

/**
 * Which meter drives the gates.
 *
 * @category models
 * @since 0.1.0
 */
export const Mode = Schema.Literals(["estimate", "actual", "hybrid", "calibrated"])

/**
 * @category models
 * @since 0.1.0
 */
export type Mode = typeof Mode.Type

/**
 * What was billed for the input of one request, in tokens: the parts that were fresh, read from the cache and written to
 * it, and the total where the provider states one. All of them may be missing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Usage {
  readonly total?: number | undefined
  readonly uncached?: number | undefined
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/**
 * What surrounds the view in a request: `key` is equal for equal system prompts, tools and routes, `price` is what of it
 * is not in the view, in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Envelope {
  readonly key: string
  readonly price: number
}

const Sent = Schema.Struct({
  envelope: Schema.String,
  envelopePrice: Schema.Natural,
  price: Schema.Natural,
  entries: Schema.Natural,
  generation: Schema.Natural
})

/**
 * What a meter remembers: the request in flight, the last reading with the request it answers, what was billed of the
 * first one beyond its price (the system prompt and the tools that are not in the view), the ratio of the rest of each
 * bill to its price, and what the cache did so far. Plain data, part of an exported session.
 *
 * @category models
 * @since 0.1.0
 */
export const State = Schema.Struct({
  inFlight: Schema.NullOr(Sent),
  anchor: Schema.NullOr(Schema.Struct({ used: Schema.Natural, sent: Sent })),
  overhead: Schema.NullOr(Schema.Natural),
  ratio: Schema.NullOr(Schema.Finite),
  stale: Schema.Boolean,
  readings: Schema.Natural,
  cache: Schema.Struct({
    isComplete: Schema.Boolean,
    uncached: Schema.Natural,
    cacheRead: Schema.Natural,
    cacheWrite: Schema.Natural
  })
})

/**
 * @category models
 * @since 0.1.0
 */
export type State = typeof State.Type

/**
 * A meter that has seen nothing yet.
 *
 * @category constants
 * @since 0.1.0
 */
export const empty: State = {
  inFlight: null,
  anchor: null,
  overhead: null,
  ratio: null,
  stale: false,
  readings: 0,
  cache: { isComplete: true, uncached: 0, cacheRead: 0, cacheWrite: 0 }
}

/**
 * The view that is counted: its price, its entries, what surrounds it (`null` when nothing is known of that yet), and
 * the generation of its prefix. `overhead` is what a bill holds beyond the view, in tokens; it comes off every count that
 * is made from bills, as it comes off the budget.
 *
 * @category models
 * @since 0.1.0
 */
export interface Counted {
  readonly price: number
  readonly entries: number
  readonly generation: number
  readonly envelope: Envelope | null
  readonly overhead?: number
}

/**
 * Remembers what is sent now, in place of an earlier request that was not answered.
 *
 * @category running
 * @since 0.1.0
 */
export const dispatch = (self: State, counted: Counted): State => ({
  ...self,
  inFlight: {
    envelope: counted.envelope?.key ?? "",
    envelopePrice: counted.envelope?.price ?? 0,
    price: counted.price,
    entries: counted.entries,
    generation: counted.generation
  }
})

/**
 * Forgets the request in flight, which came to nothing.
 *
 * @category running
 * @since 0.1.0
 */
export const abandon = (self: State): State => ({ ...self, inFlight: null })

const isWhole = (value: number | undefined): value is number =>
  value !== undefined && Number.isInteger(value) && value >= 0

const isMalformed = (value: number | undefined): boolean => value !== undefined && !isWhole(value)

/**
 * What a request occupied by its bill: the stated total or the sum of the parts, the larger where both are known, since a
 * total may leave out what was written to the cache. `undefined` when the usage says nothing, or something malformed.
 *
 * @category getters
 * @since 0.1.0
 */
export const usedOf = (usage: Usage): number | undefined => {
  if (
    isMalformed(usage.total) || isMalformed(usage.uncached) || isMalformed(usage.cacheRead)
    || isMalformed(usage.cacheWrite)
  ) return undefined
  const parts = usage.uncached === undefined
    ? undefined
    : usage.uncached + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0)
  if (usage.total === undefined || parts === undefined) return usage.total ?? parts
  return Math.max(usage.total, parts)
}

/** The moving average moves a fifth of the way to each new reading, and no reading takes it outside these bounds. */
const ratioRate = 0.2
const ratioMinimum = 0.5
const ratioMaximum = 2.5

const clamp = (ratio: number): number => Math.min(ratioMaximum, Math.max(ratioMinimum, ratio))

const ratioOf = (before: number | null, used: number, priced: number): number | null => {
  if (priced === 0) return before
  const ratio = clamp(used / priced)
  return before === null ? ratio : clamp(before + ratioRate * (ratio - before))
}

const addCache = (cache: State["cache"], usage: Usage): State["cache"] => {
  const { cacheRead, cacheWrite, uncached } = usage
  if (!cache.isComplete || uncached === undefined || cacheRead === undefined || cacheWrite === undefined) {
    return { ...cache, isComplete: false }
  }
  return {
    isComplete: true,
    uncached: cache.uncached + uncached,
    cacheRead: cache.cacheRead + cacheRead,
    cacheWrite: cache.cacheWrite + cacheWrite
  }
}

/**
 * Takes in what was billed for the request in flight. Without one, or without a usable number, the reading stays as it
 * was and is stale.
 *
 * @category running
 * @since 0.1.0
 */
export const observe = (self: State, usage: Usage): State => {
  const used = usedOf(usage)
  const sent = self.inFlight
  if (used === undefined || sent === null) return { ...self, inFlight: null, stale: true }
  const priced = sent.envelopePrice + sent.price
  // The first bill in the same surroundings is of the shortest view: what it holds beyond the price is mostly what stands
  // around it. Later ones tell how the estimator errs, which grows with the view.
  const isKnown = self.overhead !== null && self.anchor?.sent.envelope === sent.envelope
  const overhead = isKnown ? self.overhead : Math.max(0, used - priced)
  return {
    inFlight: null,
    anchor: { used, sent },
    overhead,
    ratio: ratioOf(self.ratio, used - overhead, priced),
    stale: false,
    readings: self.readings + 1,
    cache: addCache(self.cache, usage)
  }
}

/**
 * Everything the meters say about one request.
 *
 * **Details**
 *
 * - `tokens`, `kind`: of the meter that drives. `estimated`, `actual`, `hybrid`, `calibrated`: of each, in tokens;
 *   `actual` and `calibrated` are `null` before the first usage.
 * - `anchor`: what was billed last. `anchorRejected`: whether it is less than the price of what it billed.
 * - `tailTokens`, `tailEntries`: what the view has gained since the anchor was sent.
 * - `ratio`: of billed to priced. `stale`: whether the last usage was missing or malformed.
 * - `readings`: how many usages there were. `cacheAggregates`: sums over them, only if every one had all the fields.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reading extends TokenCount {
  readonly mode: Mode
  readonly estimated: number
  readonly actual: number | null
  readonly hybrid: number
  readonly calibrated: number | null
  readonly anchor: number | null
  readonly anchorRejected: boolean
  readonly tailTokens: number
  readonly tailEntries: number
  readonly ratio: number | null
  readonly stale: boolean
  readonly readings: number
  readonly cacheAggregates:
    | { readonly uncached: number; readonly cacheRead: number; readonly cacheWrite: number }
    | null
}

/** The anchor, when it may be added to: made in the same surroundings, and not less than the price of what it billed. */
const believed = (self: State, envelope: Envelope | null) => {
  const { anchor } = self
  if (anchor === null || anchor.sent.envelope !== (envelope?.key ?? "")) return undefined
  return anchor.used >= anchor.sent.envelopePrice + anchor.sent.price ? anchor : undefined
}

/**
 * Reads all meters; `mode` names the one that drives.
 *
 * @category running
 * @since 0.1.0
 */
export const read = (self: State, mode: Mode, counted: Counted): Reading => {
  const { anchor, cache, ratio, readings, stale } = self
  const { envelope, generation, overhead = 0, price } = counted
  const estimated = (envelope?.price ?? 0) + price
  const stand = believed(self, envelope)
  const delta = stand === undefined ? 0 : price - stand.sent.price
  const hybrid = stand === undefined ? estimated : Math.max(0, stand.used + delta - overhead)
  // A bill older than the last boundary is about a view that is gone: it must not trigger the next boundary.
  const actual = anchor !== null && anchor.sent.generation === generation
    ? Math.max(0, anchor.used - overhead)
    : null
  const calibrated = ratio === null
    ? null
    : Math.max(0, Math.ceil(estimated * ratio) + (self.overhead ?? 0) - overhead)
  const unanchored: TokenCount = { tokens: estimated, kind: envelope === null && price === 0 ? "none" : "estimated" }
  const counts: Record<Mode, TokenCount> = {
    estimate: unanchored,
    actual: actual === null ? unanchored : { tokens: actual, kind: "usage" },
    hybrid: stand === undefined ? unanchored : { tokens: hybrid, kind: "usage" },
    calibrated: calibrated === null ? unanchored : { tokens: calibrated, kind: "usage" }
  }
  return {
    ...counts[mode],
    mode,
    estimated,
    actual,
    hybrid,
    calibrated,
    anchor: anchor?.used ?? null,
    anchorRejected: anchor !== null && stand === undefined && anchor.sent.envelope === (envelope?.key ?? ""),
    tailTokens: delta,
    tailEntries: stand === undefined ? 0 : Math.max(0, counted.entries - stand.sent.entries),
    ratio,
    stale,
    readings,
    cacheAggregates: readings > 0 && cache.isComplete
      ? { uncached: cache.uncached, cacheRead: cache.cacheRead, cacheWrite: cache.cacheWrite }
      : null
  }
}

/**
 * Takes the price of a view as its count.
 *
 * @category constructors
 * @since 0.1.0
 */
export const estimate = (price: number): Reading =>
  read(empty, "estimate", { price, entries: 0, generation: 0, envelope: null })
