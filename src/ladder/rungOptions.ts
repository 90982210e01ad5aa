/** The options of the rungs, with their defaults. */
import * as Schema from "effect/Schema"
import * as ToolResult from "../ToolResult.ts"
import * as Options from "./options.ts"

/**
 * How {@link truncateLarge} goes about it, in shares of the budget: what costs more than `over` keeps about `keep`.
 *
 * @category models
 * @since 0.1.0
 */
export const TruncateLarge = Schema.Struct({
  over: Options.key(Options.budgetShare(0.3), 0.3),
  keep: Options.key(Options.budgetShare(0.2), 0.2)
}).check(
  Schema.makeFilter(({ keep, over }) =>
    keep < over
      ? undefined
      : { path: ["keep"], issue: `write a share below over (${over}), or nothing would be shortened` }
  )
)

/**
 * @category models
 * @since 0.1.0
 */
export type TruncateLarge = typeof TruncateLarge.Type

/**
 * How {@link removeOthers} goes about it: how much of `protectedRecent` still holds, and how many entries at the end stay
 * in any case.
 *
 * @category models
 * @since 0.1.0
 */
export const RemoveOthers = Schema.Struct({
  relax: Options.relax,
  keep: Options.key(Options.count(12), 12)
})

/**
 * @category models
 * @since 0.1.0
 */
export type RemoveOthers = typeof RemoveOthers.Type

/**
 * How {@link shortenPeople} goes about it: the share of the budget that is theirs in any case, and how full the budget may
 * be, a ratio, before any of their words are given up.
 *
 * @category models
 * @since 0.1.0
 */
export const ShortenPeople = Schema.Struct({
  share: Options.key(Options.budgetShare(0.1), 0.1),
  above: Options.key(Options.budgetShare(0.5), 0.5)
})

/**
 * @category models
 * @since 0.1.0
 */
export type ShortenPeople = typeof ShortenPeople.Type

/**
 * How {@link pruneToolResults} goes about it: see `ToolResult.PruneOptions`. `keepNewest` groups at the end stay, since
 * the model is about to read them; `stopAtTarget` leaves the rest alone once the target is reached.
 *
 * @category models
 * @since 0.1.0
 */
export const PruneToolResults = Schema.Struct({
  ...ToolResult.pruneFields,
  keepNewest: Options.key(Options.count(1), 1),
  stopAtTarget: Options.key(Schema.Boolean, true)
}).check(ToolResult.pruneCheck)

/**
 * @category models
 * @since 0.1.0
 */
export type PruneToolResults = typeof PruneToolResults.Type

/**
 * How {@link clearToolResults} goes about it: the newest `keep` results and those of the tools in `exclude` stay; with
 * `clearInputs` a call loses its inputs too once all its results are cleared.
 *
 * @category models
 * @since 0.1.0
 */
export const ClearToolResults = Schema.Struct({
  keep: Options.key(Options.count(3), 3),
  exclude: Options.key(Schema.Array(Schema.String), []),
  clearInputs: Options.key(Schema.Boolean, false)
})

/**
 * @category models
 * @since 0.1.0
 */
export type ClearToolResults = typeof ClearToolResults.Type

/**
 * How {@link dedupeReads} goes about it: the name of the tool, and the key of the input that says what is read, such as a
 * path.
 *
 * @category models
 * @since 0.1.0
 */
export const DedupeReads = Schema.Struct({ tool: Schema.NonEmptyString, key: Schema.NonEmptyString })

/**
 * @category models
 * @since 0.1.0
 */
export type DedupeReads = typeof DedupeReads.Type

/**
 * How {@link clearReasoning} goes about it: the newest `keepTurns` turns keep their reasoning. A turn begins with a human
 * message.
 *
 * @category models
 * @since 0.1.0
 */
export const ClearReasoning = Schema.Struct({ keepTurns: Options.key(Options.count(1), 1) })

/**
 * @category models
 * @since 0.1.0
 */
export type ClearReasoning = typeof ClearReasoning.Type
