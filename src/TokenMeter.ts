/**
 * How many tokens the next request occupies, and where that number comes from.
 *
 * A *price* is what the estimator says one entry costs, and prices add up; a *count* is what a request occupies, with its
 * provenance. Gates act on counts, the ladder does its arithmetic in prices.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * Where a count comes from: anchored on what the provider billed, estimated, or nothing to count yet.
 *
 * @category models
 * @since 0.1.0
 */
export const Kind = Schema.Literals(["usage", "estimated", "none"])

/**
 * @category models
 * @since 0.1.0
 */
export type Kind = typeof Kind.Type

/**
 * A count, in tokens, with its provenance.
 *
 * @category models
 * @since 0.1.0
 */
export interface TokenCount {
  readonly tokens: number
  readonly kind: Kind
}

/**
 * Takes the price of a view as its count.
 *
 * @category constructors
 * @since 0.1.0
 */
export const estimate = (price: number): TokenCount => ({ tokens: price, kind: "estimated" })
