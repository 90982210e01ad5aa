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
 * - `limit`: the total less the notice reserve, which is taken off when it is the smaller of the two. The ladder's `B`.
 * - `trigger`: `compactThreshold × limit`, not rounded: a pass runs when the count reaches it.
 * - `target`: `floor(limit × targetUsage)`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Budget {
  readonly total: number
  readonly source: "given" | "window" | "fallback" | "maxTokens"
  readonly limit: number
  readonly trigger: number
  readonly target: number
}

/**
 * Resolves the budget of a request.
 *
 * **Details**
 *
 * `given` is a budget that the caller names for this request; else the window less half of the longest answer
 * (`outputReserve`) and 4,096 tokens; else the fallback. `maxTokens` caps each of them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const resolve = (settings: Settings.Settings, given?: number): Budget => {
  let total = fallback
  let source: Budget["source"] = "fallback"
  if (given !== undefined) {
    total = given
    source = "given"
  } else if (settings.window !== undefined) {
    total = settings.window - Math.floor(settings.maxOutput * settings.outputReserve) - Settings.windowMargin
    source = "window"
  }
  if (settings.maxTokens !== undefined && settings.maxTokens < total) {
    total = settings.maxTokens
    source = "maxTokens"
  }
  const limit = settings.notice && settings.noticeReserve < total ? total - settings.noticeReserve : total
  return {
    total,
    source,
    limit,
    trigger: settings.compactThreshold * limit,
    target: Math.floor(limit * settings.targetUsage)
  }
}
