/**
 * From the window of a model to the numbers a pass goes by: budget, trigger, target.
 *
 * @since 0.1.0
 */
import * as Settings from "./Settings.ts"

/**
 * What a model is taken to hold when nothing says how much, in tokens.
 *
 * @category constants
 * @since 0.1.0
 */
export const fallback = 200_000

/**
 * The budget of one request. All numbers but `trigger` are whole tokens.
 *
 * **Details**
 *
 * - `total`: what a request may occupy; `source` says where that comes from.
 * - `overhead`: what of a request is not in the view, such as the definitions of tools; it comes off the total.
 * - `limit`: the rest less the notice reserve, which is taken off when it is the smaller of the two. The ladder's `B`.
 * - `trigger`: `compactThreshold × limit`, not rounded: a pass runs when the count reaches it.
 * - `target`: `floor(limit × targetUsage)`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Budget extends Sizes {
  readonly total: number
  readonly source: "given" | "window" | "fallback" | "maxTokens" | "provider"
  readonly overhead: number
}

/**
 * The numbers a pass goes by.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sizes {
  readonly limit: number
  readonly trigger: number
  readonly target: number
}

/**
 * The sizes of a budget in prices, when a token of the provider's costs `1 / scale` of a price; rounded down.
 *
 * @category converting
 * @since 0.1.0
 */
export const inPrices = (self: Sizes, scale: number): Sizes =>
  scale === 1 ? self : {
    limit: Math.floor(self.limit / scale),
    trigger: Math.floor(self.trigger / scale),
    target: Math.floor(self.target / scale)
  }

/**
 * Resolves the budget of a request.
 *
 * **Details**
 *
 * `given` is a budget that the caller names for this request, rounded down; else the window less half of the longest answer
 * (`outputReserve`) and 4,096 tokens; else the fallback. `maxTokens` caps each of them, and so does the
 * `maximum` that a provider named when it refused a request.
 *
 * @category constructors
 * @since 0.1.0
 */
export const resolve = (
  settings: Settings.Settings,
  given?: number,
  overhead = 0,
  maximum: number | null = null
): Budget => {
  let total = fallback
  let source: Budget["source"] = "fallback"
  if (given !== undefined) {
    total = Math.floor(given)
    source = "given"
  } else if (settings.window !== undefined) {
    total = settings.window - Math.floor(settings.maxOutput * settings.outputReserve) - Settings.windowMargin
    source = "window"
  }
  if (settings.maxTokens !== undefined && settings.maxTokens < total) {
    total = settings.maxTokens
    source = "maxTokens"
  }
  if (maximum !== null && maximum < total) {
    total = maximum
    source = "provider"
  }
  const room = total - overhead
  const limit = settings.notice && settings.noticeReserve < room ? room - settings.noticeReserve : room
  return {
    total,
    source,
    overhead,
    limit,
    trigger: settings.compactThreshold * limit,
    target: Math.floor(limit * settings.targetUsage)
  }
}
