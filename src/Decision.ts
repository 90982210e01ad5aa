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
 * A unit that left the view: a whole call group, or one entry. `seqs` are the entries that stood in the view then. `needed`
 * is the probability, from 0 to 1, that a model which was asked gave for its being needed still.
 *
 * @category models
 * @since 0.1.0
 */
export const Remove = Schema.TaggedStruct("Remove", {
  seqs: Schema.Array(Schema.Natural),
  at: Schema.Natural,
  needed: Schema.optionalKey(Schema.Finite)
})

/**
 * A person's message that keeps its first `k` characters (UTF-16 code units).
 *
 * @category models
 * @since 0.1.0
 */
export const Stub = Schema.TaggedStruct("Stub", { seq: Schema.Natural, at: Schema.Natural, k: Schema.Natural })

/**
 * A person's message of which only `text` is left: what it keeps word for word, in an envelope that says so.
 *
 * @category models
 * @since 0.1.0
 */
export const Excerpt = Schema.TaggedStruct("Excerpt", {
  seq: Schema.Natural,
  at: Schema.Natural,
  text: Schema.String
})

/**
 * A tool result that keeps the first `head` and the last `tail` characters (code points) of its text around a marker.
 *
 * @category models
 * @since 0.1.0
 */
export const Prune = Schema.TaggedStruct("Prune", {
  seq: Schema.Natural,
  at: Schema.Natural,
  head: Schema.Natural,
  tail: Schema.Natural
})

/**
 * A tool result that was cut to `bytes` bytes (UTF-8) when it came in. `locator` names the place of the full text.
 *
 * @category models
 * @since 0.1.0
 */
export const Cap = Schema.TaggedStruct("Cap", {
  seq: Schema.Natural,
  at: Schema.Natural,
  bytes: Schema.Natural,
  locator: Schema.optionalKey(Schema.String)
})

/**
 * A tool result whose whole content became `text`, in which `locator` names the place of the full text.
 *
 * @category models
 * @since 0.1.0
 */
export const Clear = Schema.TaggedStruct("Clear", {
  seq: Schema.Natural,
  at: Schema.Natural,
  text: Schema.String,
  locator: Schema.optionalKey(Schema.String)
})

/**
 * An entry of the assistant that lost its reasoning, or the inputs of its calls, or both.
 *
 * @category models
 * @since 0.1.0
 */
export const Trim = Schema.TaggedStruct("Trim", {
  seq: Schema.Natural,
  at: Schema.Natural,
  reasoning: Schema.Boolean,
  inputs: Schema.Boolean
})

/**
 * An entry whose images, files and other media became words.
 *
 * @category models
 * @since 0.1.0
 */
export const Placeholder = Schema.TaggedStruct("Placeholder", { seq: Schema.Natural, at: Schema.Natural })

/**
 * A span that a checkpoint stands for: `seqs` in the order of the view, and the entry that holds the checkpoint. With
 * `inPlace` the checkpoint stands where the span began, else where it was appended.
 *
 * @category models
 * @since 0.1.0
 */
export const Absorb = Schema.TaggedStruct("Absorb", {
  seqs: Schema.Array(Schema.Natural),
  at: Schema.Natural,
  checkpoint: Schema.Natural,
  inPlace: Schema.Boolean
})

/**
 * A decision that leaves its entry in the view, as something else.
 *
 * @category models
 * @since 0.1.0
 */
export const Alteration = Schema.Union([Truncate, Stub, Excerpt, Prune, Cap, Clear, Trim, Placeholder])

/**
 * @category models
 * @since 0.1.0
 */
export type Alteration = typeof Alteration.Type

/**
 * @category models
 * @since 0.1.0
 */
export const Decision = Schema.Union([
  Remove,
  Absorb,
  Truncate,
  Stub,
  Excerpt,
  Prune,
  Cap,
  Clear,
  Trim,
  Placeholder
]).pipe(
  Schema.toTaggedUnion("_tag")
)

/**
 * @category models
 * @since 0.1.0
 */
export type Decision = typeof Decision.Type

/**
 * A decision that a rung may propose; absorbing a span is not one, since it takes a checkpoint.
 *
 * @category models
 * @since 0.1.0
 */
export type Edit = Remove | Alteration

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
 * @category models
 * @since 0.1.0
 */
export type Excerpt = typeof Excerpt.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Prune = typeof Prune.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Cap = typeof Cap.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Clear = typeof Clear.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Trim = typeof Trim.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Placeholder = typeof Placeholder.Type

/**
 * @category models
 * @since 0.1.0
 */
export type Absorb = typeof Absorb.Type

/**
 * The decisions by the entries they are about.
 *
 * **Details**
 *
 * - `removed`: entries that are not in the view, and for those that were absorbed, the checkpoint that covers them.
 * - `altered`: what the others have become, oldest decision first. A removal covers what was decided before.
 * - `slots`: by the seq of an entry, the checkpoint that stands in its place. `placed`: the checkpoints that stand in the
 *   place of another entry, or at their own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Index {
  readonly removed: Map<number, number | undefined>
  readonly slots: Map<number, number>
  readonly placed: Map<number, number>
  readonly altered: Map<number, ReadonlyArray<Alteration>>
}

/**
 * Makes the index of some decisions, given oldest first.
 *
 * @category constructors
 * @since 0.1.0
 */
export const index = (decisions: ReadonlyArray<Decision>): Index => {
  const made: Index = { removed: new Map(), slots: new Map(), placed: new Map(), altered: new Map() }
  addTo(made, decisions)
  return made
}

/**
 * Adds decisions to an index in place, oldest first.
 *
 * @category combining
 * @since 0.1.0
 */
export const addTo = (self: Index, decisions: ReadonlyArray<Decision>): void => {
  for (const decision of decisions) {
    if (decision._tag === "Remove") {
      for (const seq of decision.seqs) self.removed.set(seq, undefined)
    } else if (decision._tag === "Absorb") {
      absorb(self, decision)
    } else {
      const before = self.altered.get(decision.seq)
      self.altered.set(decision.seq, before === undefined ? [decision] : [...before, decision])
    }
  }
}

const absorb = (self: Index, { checkpoint, inPlace, seqs }: Absorb): void => {
  const first = seqs[0]
  if (first === undefined) return
  // A checkpoint that is absorbed in turn hands its place on.
  const slot = inPlace ? self.placed.get(first) ?? first : checkpoint
  for (const seq of seqs) {
    self.removed.set(seq, checkpoint)
    const held = self.placed.get(seq)
    if (held !== undefined) self.slots.delete(held)
  }
  self.slots.set(slot, checkpoint)
  self.placed.set(checkpoint, slot)
}

/**
 * How many entries are now removed, truncated and stubbed, and how many are altered in any other way; how many
 * are covered by a checkpoint.
 *
 * @category models
 * @since 0.1.0
 */
export const Counts = Schema.Struct({
  removed: Schema.Int,
  truncated: Schema.Int,
  stubbed: Schema.Int,
  altered: Schema.Int,
  absorbed: Schema.Int
})

/**
 * @category models
 * @since 0.1.0
 */
export type Counts = typeof Counts.Type

/**
 * @category models
 * @since 0.1.0
 */
export const noCounts: Counts = { removed: 0, truncated: 0, stubbed: 0, altered: 0, absorbed: 0 }

/**
 * Adds counts, `sign` times.
 *
 * @category combining
 * @since 0.1.0
 */
export const addCounts = (self: Counts, other: Counts, sign: 1 | -1 = 1): Counts => ({
  removed: self.removed + sign * other.removed,
  truncated: self.truncated + sign * other.truncated,
  stubbed: self.stubbed + sign * other.stubbed,
  altered: self.altered + sign * other.altered,
  absorbed: self.absorbed + sign * other.absorbed
})

/**
 * Counts the entries of an index. One that was altered more than once counts as what it became last.
 *
 * @category getters
 * @since 0.1.0
 */
export const counts = (self: Index): Counts => {
  let truncated = 0
  let stubbed = 0
  let altered = 0
  for (const [seq, alterations] of self.altered) {
    if (self.removed.has(seq)) continue
    const tag = alterations[alterations.length - 1]!._tag
    if (tag === "Truncate") truncated++
    else if (tag === "Stub" || tag === "Excerpt") stubbed++
    else altered++
  }
  let absorbed = 0
  for (const checkpoint of self.removed.values()) if (checkpoint !== undefined) absorbed++
  return { removed: self.removed.size - absorbed, truncated, stubbed, altered, absorbed }
}
