/**
 * What was decided about an entry, once and for good.
 *
 * A decision names entries by seq and carries everything its text depends on, so the same bytes come back on every later
 * request and in another process, whatever the policy says by then. `at` is the length of the transcript when it was
 * taken.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * Which end of a long text is kept.
 *
 * @category models
 * @since 0.1.0
 */
export const Shape = Schema.Literals(["head", "headTail"])

/**
 * @category models
 * @since 0.1.0
 */
export type Shape = typeof Shape.Type

/**
 * A tool result that keeps `k` characters (UTF-16 code units) of its text, in the given shape. `locator` names the place
 * where the full text was put, if it was.
 *
 * @category models
 * @since 0.1.0
 */
export const Truncate = Schema.TaggedStruct("Truncate", {
  seq: Schema.Natural,
  at: Schema.Natural,
  k: Schema.Natural,
  shape: Shape,
  locator: Schema.optionalKey(Schema.String)
})

/**
 * A unit that left the view: a whole call group, or one entry. `seqs` are the entries that stood in the view then.
 *
 * @category models
 * @since 0.1.0
 */
export const Remove = Schema.TaggedStruct("Remove", { seqs: Schema.Array(Schema.Natural), at: Schema.Natural })

/**
 * A person's message that keeps its first `k` characters (UTF-16 code units).
 *
 * @category models
 * @since 0.1.0
 */
export const Stub = Schema.TaggedStruct("Stub", { seq: Schema.Natural, at: Schema.Natural, k: Schema.Natural })

/**
 * @category models
 * @since 0.1.0
 */
export const Decision = Schema.Union([Truncate, Remove, Stub]).pipe(Schema.toTaggedUnion("_tag"))

/**
 * @category models
 * @since 0.1.0
 */
export type Decision = typeof Decision.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Truncate = typeof Truncate.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Remove = typeof Remove.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Stub = typeof Stub.Type

/**
 * The decision in force for each entry, by seq. A removal covers what was decided about the entry before.
 *
 * @category models
 * @since 0.1.0
 */
export type Index = Map<number, Decision>

/**
 * Adds decisions to an index, oldest first; the index is changed in place and returned.
 *
 * @category combining
 * @since 0.1.0
 */
export const addTo = (index: Index, decisions: ReadonlyArray<Decision>): Index => {
  for (const decision of decisions) {
    if (decision._tag === "Remove") { for (const seq of decision.seqs) index.set(seq, decision) }
    else index.set(decision.seq, decision)
  }
  return index
}

/**
 * How many entries are now removed, truncated and stubbed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Counts {
  readonly removed: number
  readonly truncated: number
  readonly stubbed: number
}

/**
 * Counts the entries of an index by what was decided about them last.
 *
 * @category getters
 * @since 0.1.0
 */
export const counts = (index: Index): Counts => {
  let removed = 0
  let truncated = 0
  let stubbed = 0
  for (const decision of index.values()) {
    if (decision._tag === "Remove") removed++
    else if (decision._tag === "Truncate") truncated++
    else stubbed++
  }
  return { removed, truncated, stubbed }
}
