import * as Schema from "effect/Schema"
import type * as Settings from "../Settings.ts"

/**
 * What keeps summaries from firing again and again: absorbing a span pulls the count below the trigger, it grows back to
 * it, and without these the next summary begins at once.
 *
 * `armed` is false from an absorbed summary on until the count is below `disarm`, which the absorbing may bring about. `since` counts the requests since the
 * last summary was absorbed or refused, `from` is the count then; both are `null` before. `failures` counts failures in a
 * row, and `isOpen` tells that there were too many.
 */
export const State = Schema.Struct({
  armed: Schema.Boolean,
  since: Schema.NullOr(Schema.Natural),
  from: Schema.NullOr(Schema.Natural),
  failures: Schema.Natural,
  isOpen: Schema.Boolean
})

export type State = typeof State.Type

const initial: State = { armed: true, since: null, from: null, failures: 0, isOpen: false }

/** Takes in a request: how many tokens it counts, of which budget. */
export const request = (self: State, summary: Settings.Summary, count: number, limit: number): State => ({
  ...self,
  armed: self.armed || count < summary.disarm * limit,
  since: self.since === null ? null : self.since + 1
})

/** Whether a summary may be begun at a request. */
export const mayStart = (self: State, summary: Settings.Summary, count: number, limit: number): boolean => {
  if (self.isOpen || limit <= 0 || count < summary.trigger * limit) return false
  if (summary.hysteresis && !self.armed) return false
  if (self.since === null || self.from === null) return true
  return self.since >= summary.cooldownRequests && count - self.from >= summary.cooldownGrowth * limit
}

/** A summary was absorbed, and the request counts so many tokens now. */
export const absorbed = (self: State, summary: Settings.Summary, count: number, limit: number): State => ({
  ...self,
  armed: count < summary.disarm * limit,
  since: 0,
  from: count,
  failures: 0
})

/** A summary was refused for what it is; that is no failure of the model, but the next one waits too. */
export const refused = (self: State, count: number): State => ({ ...self, since: 0, from: count })

/** A summary could not be written. */
export const failed = (self: State, summary: Settings.Summary, count: number): State => ({
  ...self,
  since: 0,
  from: count,
  failures: self.failures + 1,
  isOpen: self.isOpen || self.failures + 1 >= summary.maxFailures
})

/**
 * What decides when the next summary begins, and is saved with a session: what keeps it from firing again, what the last
 * request counted, the count before which no span is looked for after there was none, and how many requests go by without a
 * call after summaries inside a request did not bring it below the trigger.
 */
export const Pace = Schema.Struct({
  refire: State,
  count: Schema.Natural,
  notBefore: Schema.Natural,
  backoff: Schema.Natural
})

export type Pace = typeof Pace.Type

export const initialPace: Pace = { refire: initial, count: 0, notBefore: 0, backoff: 0 }
