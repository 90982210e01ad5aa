/**
 * What a truncated tool result looks like, and how much of it is kept.
 *
 * For test runs, searches, logs and builds the answer stands in the last lines: a head alone loses it, the same number
 * of characters split between both ends keeps it. Characters before lines, always: a result may be two lines of ten
 * megabytes each.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as CutOf from "./ladder/cut.ts"
import type * as Settings from "./Settings.ts"
import type * as SpillStore from "./SpillStore.ts"
import * as Text from "./text/text.ts"
import type * as Transcript from "./Transcript.ts"

/**
 * How a text is cut: `k` is the number of characters kept (UTF-16 code units), `locator` the place of the full text.
 *
 * @category models
 * @since 0.1.0
 */
export type Cut = Text.Cut

/**
 * The text of a truncated result: a notice with the size of the whole in tokens, then the head, or both ends around a
 * line that says how many characters are missing. No cut splits a surrogate pair.
 *
 * @category running
 * @since 0.1.0
 */
export const truncate: (text: string, cut: Cut) => string = Text.truncated

/**
 * How a result is to be cut, or `undefined` when it is left alone: its tool is exempt, or it is short enough.
 *
 * **Details**
 *
 * The budget is the one of its tool (`budgetByTool`), else `budgetTokens`, else `truncateChars`. A budget in tokens is
 * four characters a token at most: it is cut once, in proportion, when the estimator prices the kept text above it.
 * `locate` names the place of the full text; without it none is named.
 *
 * @category running
 * @since 0.1.0
 */
export const cutOf: (
  settings: Settings.Settings,
  transcript: Transcript.Transcript,
  entry: Transcript.Entry,
  locate?: SpillStore.Locate
) => Cut | undefined = CutOf.of

/**
 * A content block of a tool result; one of type `text` holds its text under `text`.
 *
 * @category models
 * @since 0.1.0
 */
export type Block = Text.Block

const key = <S extends Schema.Constraint>(schema: S, value: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(schema)

const natural = Schema.Int.check(
  Schema.isGreaterThanOrEqualTo(0, { message: "write a number of characters, 0 or more, for example 1024" })
)

/** How much the marker adds to what is kept, in characters. */
const markerChars = Text.codePoints(Text.pruneMarker)

/** @internal */
export const pruneFields = {
  thresholdChars: key(
    Schema.Int.check(
      Schema.isGreaterThan(0, { message: "write a number of characters, 1 or more, for example 8192" })
    ),
    8_192
  ),
  headChars: key(natural, 4_096),
  tailChars: key(natural, 1_024)
}

/** @internal */
export const pruneCheck = Schema.makeFilter((options: PruneOptions) => {
  const { headChars, tailChars, thresholdChars } = options
  return headChars + markerChars + tailChars <= thresholdChars ? undefined : {
    path: ["thresholdChars"],
    issue:
      `write at least ${headChars + markerChars + tailChars}: headChars (${headChars}), the marker (${markerChars}) `
      + `and tailChars (${tailChars}) must fit, or what was pruned would be pruned again`
  }
})

/**
 * How the middle of a long result is pruned: one of more than `thresholdChars` characters keeps its first `headChars` and
 * its last `tailChars`, in Unicode code points.
 *
 * @category models
 * @since 0.1.0
 */
export const PruneOptions = Schema.Struct(pruneFields).check(pruneCheck)

/**
 * @category models
 * @since 0.1.0
 */
export interface PruneOptions {
  readonly thresholdChars: number
  readonly headChars: number
  readonly tailChars: number
}

/**
 * 8,192 characters become 4,096 and 1,024.
 *
 * @category constants
 * @since 0.1.0
 */
export const pruneDefaults: PruneOptions = { thresholdChars: 8_192, headChars: 4_096, tailChars: 1_024 }

/**
 * The size of a result's blocks in characters: Unicode code points over the text blocks, nothing for all others.
 *
 * @category getters
 * @since 0.1.0
 */
export const sizeOf: (blocks: ReadonlyArray<Block>) => number = Text.sizeOfBlocks

/**
 * Prunes the middle of a result's text: what is kept stands around one marker, text blocks that are left empty go, and
 * all others keep their place. `undefined` when it is small enough. What was pruned is small enough.
 *
 * @category running
 * @since 0.1.0
 */
export const prune = <A extends Block>(
  blocks: ReadonlyArray<A>,
  options: PruneOptions = pruneDefaults
): ReadonlyArray<A> | undefined =>
  sizeOf(blocks) > options.thresholdChars
    ? Text.pruneBlocks(blocks, { head: options.headChars, tail: options.tailChars })
    : undefined
