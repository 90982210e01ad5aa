/**
 * A list that only grows, as a value: all values that are a beginning of it share one array, so that adding to the newest
 * of them copies nothing.
 *
 * What lies in `all` beyond `length` belongs to another value, one that was taken back or one that came later.
 */
export interface Growing<out A> {
  readonly all: ReadonlyArray<A>
  readonly length: number
}

export const empty: Growing<never> = { all: [], length: 0 }

/** The list of these items, in an array of its own: they may belong to an event that is still to be written. */
export const from = <A>(items: ReadonlyArray<A>): Growing<A> => ({ all: items.slice(), length: items.length })

/** The list with more items. Where another value has grown beyond this one, the array is copied. */
export const append = <A>(self: Growing<A>, items: ReadonlyArray<A>): Growing<A> => {
  if (items.length === 0) return self
  // An empty list may be shared by all lists, so it is never written to.
  const isNewest = self.length > 0 && self.all.length === self.length
  // Nobody reads beyond the length of their own value, so writing there changes no other value.
  const all = isNewest ? self.all as Array<A> : self.all.slice(0, self.length)
  for (const item of items) all.push(item)
  return { all, length: all.length }
}

/** The first items. */
export const take = <A>(self: Growing<A>, length: number): Growing<A> =>
  length >= self.length ? self : { all: self.all, length }

/** The items, in an array that does not grow. */
export const toArray = <A>(self: Growing<A>): ReadonlyArray<A> => self.all.slice(0, self.length)

/** The items from a position on. */
export const after = <A>(self: Growing<A>, from: number): ReadonlyArray<A> => self.all.slice(from, self.length)

/** How many items at the beginning two lists have in common, the same objects. */
export const common = <A>(self: Growing<A>, that: Growing<A>): number => {
  const most = Math.min(self.length, that.length)
  if (self.all === that.all) return most
  let length = 0
  while (length < most && self.all[length] === that.all[length]) length++
  return length
}
