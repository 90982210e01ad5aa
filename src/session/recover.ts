import * as Effect from "effect/Effect"
import * as Budget from "../Budget.ts"
import type { Call, Request } from "../ContextManager.ts"
import * as Ladder from "../Ladder.ts"
import type * as Overflow from "../Overflow.ts"
import type * as SessionStore from "../SessionStore.ts"
import type * as Stage from "../Stage.ts"
import * as TokenMeter from "../TokenMeter.ts"
import { ContextCannotFit } from "./errors.ts"
import * as Layout from "./layout.ts"
import * as Passes from "./passes.ts"
import * as Requests from "./request.ts"
import * as Runtime from "./runtime.ts"
import * as Turn from "./turn.ts"
import * as Written from "./written.ts"

/** A view that is tried after an overflow is at most this share of what was refused, or of the maximum that was named. */
const share = 0.8

/** What the request that is refused costs, by price in tokens: the one in flight, or the view. */
export const refusedPriceOf = ({ runtime, state: { entries, meter, unsent }, state }: Turn.Turn): number => {
  const inFlight = unsent === null ? null : meter.inFlight
  if (inFlight !== null) return inFlight.price
  const layout = Runtime.layoutOf(runtime, state)
  // A session that was opened just now has laid out nothing yet. What is told of repairs is told with the request.
  Layout.update(layout, entries)
  return Layout.priceOf(layout)
}

/** What a pass after an overflow comes down to, where so much fits at most; in tokens of price. */
export const aimOf = (most: number): number => Math.floor(most * share)

/**
 * Makes a smaller view after the provider refused the last one: the policy's own pass with a lower aim, well below what was
 * refused. Nothing stands before it: the refusal is all the evidence there is.
 */
export const run = Effect.fnUntraced(function*<E, R>(
  turn: Turn.Turn,
  refused: Overflow.Refused,
  call: Call,
  stage: Stage.Stage<E, R>
): Effect.fn.Return<Request, E | ContextCannotFit | SessionStore.SessionLost, R> {
  const data = Requests.dataOf(turn.state, call)
  const window = Budget.windowOf(turn.runtime.settings, data)
  const refusedPrice = refusedPriceOf(turn)
  const { maximum = null, tokens = null } = TokenMeter.plausibleRefusal(refused, refusedPrice, window)
  Turn.take(turn, { _tag: "Refused", tokens, maximum, window, call: data })
  const measured = Passes.measure(turn, turn.state.call)
  const given = Passes.passOf(turn, measured, { cause: "overflow", aim: null, summarise: null })
  const scale = tokens === null || refusedPrice === 0 ? 1 : tokens / refusedPrice
  const most = Math.min(refusedPrice, maximum === null ? Infinity : maximum / scale)
  const aim = aimOf(most)
  const summarise = Written.inPass(turn, measured.sending, Written.spared(aim))
  const outcome = yield* Effect.tapError(
    Passes.decide(turn, Passes.passOf(turn, measured, { cause: "overflow", aim, summarise }), stage),
    () => Turn.commit(turn)
  )
  const { after } = outcome
  const isTooLarge = maximum !== null && after.view.price * scale > maximum
  if (outcome.boundary === null || after.view.price >= given.before.price || isTooLarge) {
    // What the provider said stays said, and a pass that decided nothing remembers what it told.
    if (outcome.boundary === null) Passes.accept(turn, outcome)
    yield* Turn.commit(turn)
    return yield* new ContextCannotFit({
      tokens: Math.ceil(after.view.price * scale),
      maximum,
      holders: Ladder.holdersOf(after.view)
    })
  }
  Passes.accept(turn, outcome)
  return yield* Requests.run(turn, call, { outcome })
})
