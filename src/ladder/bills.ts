/** What the bills of a session teach: what stands around the view, and how the estimator errs. */
import * as Schema from "effect/Schema"

const Bill = Schema.Struct({ used: Schema.Natural, priced: Schema.Natural })

type Bill = typeof Bill.Type

export const Surroundings = Schema.Struct({
  key: Schema.String,
  basis: Bill,
  isProven: Schema.Boolean,
  doubt: Schema.NullOr(Bill)
})

export type Surroundings = typeof Surroundings.Type

/** What the cache of the provider did, over all bills. */
export const Cache = Schema.Struct({
  isComplete: Schema.Boolean,
  uncached: Schema.Natural,
  cacheRead: Schema.Natural,
  cacheWrite: Schema.Natural
})

type Cache = typeof Cache.Type

interface CacheUsage {
  readonly uncached?: number | undefined
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/** The moving average moves a fifth of the way to each new reading, and no reading takes it outside these bounds. */
const ratioRate = 0.2
const ratioMinimum = 0.5
export const ratioMaximum = 2.5

const clamp = (ratio: number): number => Math.min(ratioMaximum, Math.max(ratioMinimum, ratio))

const ratioOf = (before: number | null, { priced, used }: Bill, overhead: number): number | null => {
  if (priced === 0) return before
  const ratio = clamp((used - overhead) / priced)
  return before === null ? ratio : clamp(before + ratioRate * (ratio - before))
}

/** What a bill holds beyond its price: what stands around the view, where the estimator is right. */
export const beyond = ({ priced, used }: Bill): number => Math.max(0, used - priced)

/** Whether a bill is what it should be, about, when so much stands around the view. */
const agrees = ({ priced, used }: Bill, overhead: number): boolean => {
  const rest = used - overhead
  return priced === 0 || (rest >= ratioMinimum * priced && rest <= ratioMaximum * priced)
}

/** How far a bill is from its price, as a factor. */
const distance = ({ priced, used }: Bill): number => Math.max(used / priced, priced / used)

type Learned = Pick<Surroundings, "basis" | "isProven" | "doubt"> & { readonly ratio: number | null }

/**
 * What a bill teaches. The first in the same surroundings is of the shortest view: what it holds beyond the price is mostly
 * what stands around it. Later ones tell how the estimator errs, which grows with the view. One that contradicts what was
 * learned teaches nothing, unless the next one agrees with it; of a first and a second that contradict each other, the
 * one nearer to its price is believed.
 */
export const learn = (known: Surroundings | undefined, ratio: number | null, bill: Bill): Learned => {
  const from = (basis: Bill, isProven: boolean, before: number | null): Learned => ({
    basis,
    isProven,
    doubt: null,
    ratio: ratioOf(before, bill, beyond(basis))
  })
  if (known === undefined) return from(bill, false, ratio)
  const { basis, doubt, isProven } = known
  const isConfirmed = agrees(bill, beyond(basis))
  const isOdd = !isConfirmed || !agrees(basis, beyond(basis))
  if (!isProven && isOdd && distance(bill) < distance(basis)) return from(bill, false, null)
  if (isConfirmed) return from(basis, true, ratio)
  if (doubt !== null && agrees(bill, beyond(doubt))) return from(doubt, true, null)
  return { basis, isProven, doubt: bill, ratio }
}

export const isOf = (key: string) => (each: Surroundings): boolean => each.key === key

/** The sums with one more bill; they are complete as long as every bill says all of it. */
export const addCache = (cache: Cache, usage: CacheUsage): Cache => {
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
