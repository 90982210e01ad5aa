/** The time of a recording, as what plays it sees it. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** How long after the first one each request is sent, in milliseconds, in order. */
export const waitsOf = (
  requests: ReadonlyArray<number>,
  step: number,
  gaps: ReadonlyMap<number, number> | undefined
): ReadonlyArray<number> => {
  let waited = 0
  let looked = 0
  return requests.map((at, request) => {
    if (gaps === undefined) return request * step
    // A request is sent once the last message before its answer is there; the first one is the beginning.
    for (; looked < at; looked++) waited += request === 0 ? 0 : gaps.get(looked) ?? 0
    return waited
  })
}

/** A clock that is ahead of another one. */
export const later = (clock: Clock.Clock, by: () => number): Clock.Clock => {
  const nanos = () => BigInt(Math.round(by())) * 1_000_000n
  return {
    sleep: (duration) => clock.sleep(duration),
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + by(),
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (at) => at + by()),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + nanos(),
    currentTimeNanos: Effect.map(clock.currentTimeNanos, (at) => at + nanos()),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + nanos(),
    monotonicTimeNanos: Effect.map(clock.monotonicTimeNanos, (at) => at + nanos())
  }
}
