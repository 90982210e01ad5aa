/**
 * The library's own notes on a message or on one of its parts.
 *
 * They live in `options["effect-compaction"]`, so they survive a `Chat` export and JSON, and providers ignore them.
 * Marks decide what an entry is; text never does: a person who quotes a reminder tag is still a person.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"

/**
 * The key under which marks are kept in `options`.
 *
 * @category constants
 * @since 0.1.0
 */
export const key = "effect-compaction"

/**
 * What can be noted on a message or a part.
 *
 * **Details**
 *
 * - `source`: who wrote a user message; one of {@link machineSources} makes it a machine's, anything else a person's.
 * - `ephemeral`: belongs to one request only, and is never a person's words.
 * - `pinned`: never truncated, removed or stubbed, because a provider needs it back as it is.
 * - `raw`: what `Prompt` cannot hold (an opaque provider item, arguments that are not JSON); priced, never edited.
 * - `checkpoint`: what a checkpoint of this library stands for; see `Checkpoint`.
 * - `call`: of a result that this library made: which call of its message it answers, from 0, where an earlier one has the
 *   same id.
 *
 * @category models
 * @since 0.1.0
 */
export interface Marks {
  readonly source?: string
  readonly ephemeral?: boolean
  readonly pinned?: boolean
  readonly raw?: Schema.Json
  readonly checkpoint?: Checkpoint
  readonly call?: number
}

/**
 * What a checkpoint stands for: the entries it covers and what they cost, in tokens; its generation, 1 for one that merged
 * no earlier checkpoint and else one more than the newest of those; the model that wrote
 * it, or `null`; the words it carries as they were, by the entry they are from, and the entries whose words found no room.
 * `native` is what the provider's own compaction made of the conversation up to it: the items, the routes that take them, and
 * a digest of the messages that stood before the span.
 *
 * @category models
 * @since 0.1.0
 */
export const Checkpoint = Schema.Struct({
  seqs: Schema.Array(Schema.Natural),
  price: Schema.Natural,
  generation: Schema.Natural,
  model: Schema.NullOr(Schema.String),
  ledger: Schema.Array(Schema.Struct({ seq: Schema.Natural, text: Schema.String })),
  lost: Schema.Array(Schema.Natural),
  native: Schema.optionalKey(
    Schema.Struct({ owner: Schema.String, items: Schema.Array(Schema.Json), head: Schema.String })
  )
})

/**
 * @category models
 * @since 0.1.0
 */
export type Checkpoint = typeof Checkpoint.Type

const isCheckpoint = Schema.is(Checkpoint)

/**
 * The closed list of sources that are machines. Every other source, or none, is a person.
 *
 * @category constants
 * @since 0.1.0
 */
export const machineSources: ReadonlySet<string> = new Set([
  "hook",
  "context-compaction",
  "context-replay",
  "context-summary",
  "runtime-context"
])

const none: Marks = {}

/**
 * Reads the marks of a message or a part; keys of a wrong type are ignored.
 *
 * @category getters
 * @since 0.1.0
 */
export const of = (self: Prompt.Message | Prompt.Part): Marks => {
  const value = self.options[key]
  if (typeof value !== "object" || value === null || Array.isArray(value)) return none
  // The value is a JSON object: `ProviderOptions` allows any JSON, and arrays and null are excluded above.
  const object = value as { readonly [key: string]: Schema.Json }
  return {
    ...(typeof object.source === "string" ? { source: object.source } : undefined),
    ...(object.ephemeral === true ? { ephemeral: true } : undefined),
    ...(object.pinned === true ? { pinned: true } : undefined),
    ...(object.raw !== undefined ? { raw: object.raw } : undefined),
    ...(isCheckpoint(object.checkpoint) ? { checkpoint: object.checkpoint } : undefined),
    ...(typeof object.call === "number" ? { call: object.call } : undefined)
  }
}

/**
 * Returns the same message or part with `marks` added to the marks it has.
 *
 * @category combining
 * @since 0.1.0
 */
export const set = <A extends Prompt.Message | Prompt.Part>(self: A, marks: Marks): A => ({
  ...self,
  options: { ...self.options, [key]: { ...of(self), ...marks } }
})
