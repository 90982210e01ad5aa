/**
 * What may be said of a few sessions: which half of them something was chosen on, how sure a mean is, and who won.
 *
 * @since 0.1.0
 */
import * as Blocks from "./parts/blocks.ts"
import * as Random from "./parts/random.ts"

/**
 * The half that a session belongs to, by a hash of its name: what is tuned is tuned on `tuned` and reported on `reported`.
 * A name keeps its half whatever other sessions there are.
 *
 * @category getters
 * @since 0.1.0
 */
export const halfOf = (name: string): "tuned" | "reported" => Blocks.hash(name) % 2 === 0 ? "tuned" : "reported"

/**
 * A mean over sessions, and how it came about.
 *
 * **Details**
 *
 * - `low`, `high`: the bootstrap interval of the mean, 95 %: sessions are drawn again and again, with replacement.
 * - `wins`, `losses`: how many of the `of` values are above and below 0. `worst`: the lowest, and `at` its position.
 *
 * @category models
 * @since 0.1.0
 */
export interface Summary {
  readonly mean: number
  readonly low: number
  readonly high: number
  readonly wins: number
  readonly losses: number
  readonly of: number
  readonly worst: number
  readonly at: number
}

const meanOf = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

/**
 * Sums up one value a session, such as a difference of two policies. The same values and seed give the same interval.
 *
 * @category running
 * @since 0.1.0
 */
export const summary = (
  values: ReadonlyArray<number>,
  options: { readonly seed?: number; readonly draws?: number } = {}
): Summary => {
  const { draws = 2_000, seed = 1 } = options
  const random = Random.make(seed)
  const means = Array.from(
    { length: values.length === 0 ? 0 : draws },
    () => meanOf(values.map(() => values[Random.whole(random, 0, values.length)]!))
  ).sort((a, b) => a - b)
  const worst = values.length === 0 ? 0 : Math.min(...values)
  return {
    mean: meanOf(values),
    low: means[Math.floor(0.025 * means.length)] ?? 0,
    high: means[Math.ceil(0.975 * means.length) - 1] ?? 0,
    wins: values.filter((value) => value > 0).length,
    losses: values.filter((value) => value < 0).length,
    of: values.length,
    worst,
    at: values.indexOf(worst)
  }
}
