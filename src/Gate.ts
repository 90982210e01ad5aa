/**
 * What decides, before a pass, whether it runs at all.
 *
 * @since 0.1.0
 */
import type * as Stage from "./Stage.ts"

/**
 * Holds when the count has reached the trigger of the budget (`compactThreshold × limit`) and there is a budget at all.
 *
 * @category predicates
 * @since 0.1.0
 */
export const threshold = (pass: Stage.Pass): boolean =>
  pass.budget.limit > 0 && pass.count.tokens >= pass.budget.trigger
