/** Numbers from 0 to below 1 that follow from a seed alone (mulberry32). */
export type Random = () => number

export const make = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A whole number from `from` to below `to`. */
export const whole = (random: Random, from: number, to: number): number => from + Math.floor(random() * (to - from))

export const pick = <A>(random: Random, from: readonly [A, ...ReadonlyArray<A>]): A =>
  from[whole(random, 0, from.length)] ?? from[0]
