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
 * Each falls back to the price, kind `estimated`, while it has nothing better. `actual` is late by one call (where that was
 * not billed, it is the larger of the bill before and the price) and, like `hybrid`, says nothing about the size of a smaller
 * view: it anchors the gate, and the amount is sized in prices.
 *
 * - What was sent is remembered when it is sent, not when the turn began, and a usage belongs to the request it answers.
 * - An anchor that is less than the price of what it billed is no floor to stand on: it is rejected, and the larger
 *   price is the count. An anchor holds only for the same system prompt, tools and route, and lapses when others answer.
 * - Usage that is missing, malformed or implausible leaves the old readings in place and marks them stale.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Bills from "./ladder/bills.ts"

export * from "./ladder/counter.ts"

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
  generation: Schema.Natural,
  unbilled: Schema.Boolean
})

/**
 * What a meter remembers. Plain data, part of an exported session.
 *
 * **Details**
 *
 * - `inFlight`: the request that is not answered yet, and whether the one before it was `unbilled`. `anchor`: the last reading, with the request it answers.
 * - `surroundings`: of each system prompt, toolkit and route that were billed, the newest first: the bill from which was
 *   learned what stands around the view (`basis`), whether a second bill agreed with it (`isProven`), and the last bill
 *   that did not (`doubt`).
 * - `ratio`: of what was billed, without what stands around the view, to its price.
 * - `readings`: how many bills were taken in. `ignored`: how many said something that cannot be. `stale`: whether the
 *   last was missing or ignored. `cache`: what the cache did so far.
 *
 * @category models
 * @since 0.1.0
 */
export const State = Schema.Struct({
  inFlight: Schema.NullOr(Sent),
  anchor: Schema.NullOr(Schema.Struct({ used: Schema.Natural, sent: Sent })),
  surroundings: Schema.Array(Bills.Surroundings),
  ratio: Schema.NullOr(Schema.Finite),
  stale: Schema.Boolean,
  readings: Schema.Natural,
  ignored: Schema.Natural,
  cache: Bills.Cache
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
  surroundings: [],
  ratio: null,
  stale: false,
  readings: 0,
  ignored: 0,
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

/** Whether the request before this one was not billed. A request that is asked for once more is the one in flight. */
const isLate = ({ inFlight, stale }: State, { entries }: Counted): boolean =>
  inFlight === null ? stale : inFlight.unbilled || inFlight.entries < entries

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
    generation: counted.generation,
    unbilled: isLate(self, counted)
  }
})

/**
 * Forgets the request in flight, which nobody answered.
 *
 * @category running
 * @since 0.1.0
 */
export const abandon = (self: State): State => ({ ...self, inFlight: null })

/**
 * Forgets the last reading and the request in flight: they are of a history that was given up. What the bills said about
 * prices holds.
 *
 * @category running
 * @since 0.1.0
 */
export const forgetReading = (self: State): State => ({ ...self, inFlight: null, anchor: null })

const isWhole = (value: number | undefined): value is number =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0

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

/** No bill is so small a part of its price: an image that is priced at 1,600 tokens and billed at 85 is a nineteenth. */
const leastShare = 0.02

/** Of how many surroundings something is remembered. */
const surroundingsKept = 8

/**
 * What a model is taken to hold when nothing says how much, in tokens.
 *
 * @category constants
 * @since 0.1.0
 */
export const assumedWindow = 200_000

/**
 * What a request that is priced at `priced` occupied by its bill, if that can be: not next to nothing of its price, and
 * not more than the `window` of the model holds, unless the price says nearly as much. `undefined` for everything else,
 * and for usage that says nothing or is malformed.
 *
 * @category getters
 * @since 0.1.0
 */
export const plausibleOf = (usage: Usage, priced: number, window: number): number | undefined => {
  const used = usedOf(usage)
  if (used === undefined || used < leastShare * priced) return undefined
  return used > window && used > Bills.ratioMaximum * priced ? undefined : used
}

/** The least that a provider is believed to take, in tokens: a smaller number in a refusal counts something else. */
const leastMaximum = 256

/**
 * The numbers of a refusal that can be, of a request that is priced at `priced`: as many `tokens` as a view of this price
 * and a window full of tools could be, and a `maximum` that is below them and that something fits into. The others are
 * left out.
 *
 * @category getters
 * @since 0.1.0
 */
export const plausibleRefusal = (
  { maximum, tokens }: { readonly tokens?: number; readonly maximum?: number },
  priced: number,
  window: number
): { readonly tokens?: number; readonly maximum?: number } => {
  const isCounted = isWhole(tokens) && tokens >= leastShare * priced && tokens <= window + Bills.ratioMaximum * priced
  const isLimit = isWhole(maximum) && maximum >= leastMaximum && !(isCounted && maximum >= tokens)
  return { ...(isCounted ? { tokens } : undefined), ...(isLimit ? { maximum } : undefined) }
}

const isSilent = ({ cacheRead, cacheWrite, total, uncached }: Usage): boolean =>
  total === undefined && uncached === undefined && cacheRead === undefined && cacheWrite === undefined

/**
 * Takes in what was billed for the request in flight, of a model that holds `window` tokens. Without a request, or without
 * a number that can be (see {@link plausibleOf}), the readings stay and are stale; a number that cannot be is counted.
 *
 * @category running
 * @since 0.1.0
 */
export const observe = (self: State, usage: Usage, window: number): State => {
  const sent = self.inFlight
  if (sent === null) return { ...self, stale: true }
  const priced = sent.envelopePrice + sent.price
  const used = plausibleOf(usage, priced, window)
  if (used === undefined) {
    return { ...self, inFlight: null, stale: true, ignored: self.ignored + (isSilent(usage) ? 0 : 1) }
  }
  const known = self.surroundings.find(Bills.isOf(sent.envelope))
  const { ratio, ...learned } = Bills.learn(known, self.ratio, { used, priced })
  const others = self.surroundings.filter((each) => each !== known)
  return {
    inFlight: null,
    anchor: { used, sent },
    surroundings: [{ key: sent.envelope, ...learned }, ...others].slice(0, surroundingsKept),
    ratio,
    stale: false,
    readings: self.readings + 1,
    ignored: self.ignored,
    cache: Bills.addCache(self.cache, usage)
  }
}

const keyOf = (envelope: Envelope | null): string => envelope?.key ?? ""

/** What was learned in these surroundings, or else in those that were billed last. */
const nearest = ({ surroundings }: State, envelope: Envelope | null): Bills.Surroundings | undefined =>
  surroundings.find(Bills.isOf(keyOf(envelope))) ?? surroundings[0]

/**
 * What stands around the view and is not in it, as far as bills have told, in tokens: in these surroundings, else in those
 * that were billed last.
 *
 * @category getters
 * @since 0.1.0
 */
export const overheadOf = (self: State, envelope: Envelope | null = null): number => {
  const found = nearest(self, envelope)
  return found === undefined ? 0 : Bills.beyond(found.basis)
}

/**
 * Everything the meters say about one request.
 *
 * **Details**
 *
 * - `tokens`, `kind`: of the meter that drives. `estimated`, `actual`, `hybrid`, `calibrated`: of each, in tokens;
 *   `actual` and `calibrated` are `null` before the first usage.
 * - `anchor`: what was billed last. `anchorRejected`: whether that was in the same surroundings and is less than the price of
 *   what it billed. `anchorLapsed`: whether there were bills, and the last was in other surroundings.
 * - `tailTokens`, `tailEntries`: what the view has gained since the anchor was sent.
 * - `ratio`: of billed to priced. `stale`: whether the last usage was missing, malformed or implausible.
 * - `readings`: how many usages were taken in. `ignored`: how many were malformed or implausible. `cacheAggregates`: sums
 *   over those that were taken in, only if every one had all the fields.
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
  readonly anchorLapsed: boolean
  readonly tailTokens: number
  readonly tailEntries: number
  readonly ratio: number | null
  readonly stale: boolean
  readonly readings: number
  readonly ignored: number
  readonly cacheAggregates:
    | { readonly uncached: number; readonly cacheRead: number; readonly cacheWrite: number }
    | null
}

/** The anchor, when it may be added to: it is not less than the price of what it billed. */
const believed = ({ anchor }: State) =>
  anchor !== null && anchor.used >= anchor.sent.envelopePrice + anchor.sent.price ? anchor : undefined

/**
 * Reads all meters; `mode` names the one that drives.
 *
 * @category running
 * @since 0.1.0
 */
export const read = (self: State, mode: Mode, counted: Counted): Reading => {
  const { anchor, cache, ignored, ratio, readings, stale } = self
  const { envelope, generation, overhead = 0, price } = counted
  const estimated = (envelope?.price ?? 0) + price
  const isOwn = anchor?.sent.envelope === keyOf(envelope)
  const stand = isOwn ? believed(self) : undefined
  const delta = stand === undefined ? 0 : price - stand.sent.price
  const hybrid = stand === undefined ? estimated : Math.max(0, stand.used + delta - overhead)
  // A bill older than the last boundary is about a view that is gone: it must not trigger the next boundary.
  const actual = anchor !== null && anchor.sent.generation === generation ? Math.max(0, anchor.used - overhead) : null
  const around = overheadOf(self, envelope)
  // Until a second bill says so, no more stands around the view than what came off the budget for it.
  const isBounded = overhead > 0 && nearest(self, envelope)?.isProven === false
  const calibrated = ratio === null
    ? null
    : Math.max(0, Math.ceil(estimated * ratio) + (isBounded ? Math.min(around, overhead) : around) - overhead)
  const unanchored: TokenCount = { tokens: estimated, kind: envelope === null && price === 0 ? "none" : "estimated" }
  const counts: Record<Mode, TokenCount> = {
    estimate: unanchored,
    actual: actual === null || !isOwn
      ? unanchored
      // Where the request before this one was not billed, the bill before that grows old while the view grows.
      : isLate(self, counted)
      ? { tokens: Math.max(actual, estimated), kind: "estimated" }
      : { tokens: actual, kind: "usage" },
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
    anchorRejected: isOwn && stand === undefined,
    anchorLapsed: readings > 0 && !isOwn,
    tailTokens: delta,
    tailEntries: stand === undefined ? 0 : Math.max(0, counted.entries - stand.sent.entries),
    ratio,
    stale,
    readings,
    ignored,
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
