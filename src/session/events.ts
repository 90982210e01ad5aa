/** What is written of a session: the schemas of its fields and of its events. */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "../CompactionEvent.ts"
import * as Decision from "../Decision.ts"
import * as Stage from "../Stage.ts"
import * as Summarizer from "../Summarizer.ts"
import * as TokenMeter from "../TokenMeter.ts"
import * as Figure from "./figures.ts"
import * as Refire from "./refire.ts"
import * as Tail from "./tail.ts"

/**
 * The version of the events and of the saved state that this library writes and reads.
 *
 * @category constants
 * @since 0.1.0
 */
export const version = 2

/**
 * A message of a session, and who put it there.
 *
 * @category models
 * @since 0.1.0
 */
export const Message = Schema.Struct({
  message: Prompt.Message,
  origin: Schema.Literals(["caller", "library", "runtime"])
})

/**
 * @category models
 * @since 0.1.0
 */
export type Message = typeof Message.Type

const Ready = Schema.NullOr(Schema.Struct({
  checkpoint: Schema.Natural,
  seqs: Schema.Array(Schema.Natural),
  inPlace: Schema.Boolean
}))

const Call = Schema.Struct({
  budget: Schema.optionalKey(Schema.Finite),
  window: Schema.optionalKey(Schema.Finite),
  maxOutput: Schema.optionalKey(Schema.Finite),
  overhead: Schema.optionalKey(Schema.Finite),
  route: Schema.optionalKey(Schema.String),
  recall: Schema.optionalKey(Schema.Boolean)
})

const Asked = Schema.NullOr(Schema.Struct({ entries: Schema.Natural, limit: Schema.Finite }))

/** A run of messages that a snapshot left out: before which of those it holds, how many, and how many entries they made. */
const Run = Schema.Struct({ before: Schema.Natural, messages: Schema.Natural, entries: Schema.Natural })

const Abridged = Schema.NullOr(Schema.Struct({
  runs: Schema.Array(Run),
  kept: Schema.Natural,
  decisions: Schema.Struct({ kept: Schema.Natural, all: Schema.Natural }),
  counts: Decision.Counts
}))

/** A boundary whose decisions stand: where they are among all that was decided, and its highest rung. */
const Boundary = Schema.Struct({
  generation: Schema.Natural,
  from: Schema.Natural,
  to: Schema.Natural,
  level: Schema.Natural
})

/** The fields of a state that are saved as they are. */
export const fields = {
  abridged: Abridged,
  entries: Schema.Natural,
  checkpoints: Schema.Natural,
  repaired: Schema.Natural,
  requests: Schema.Natural,
  asked: Asked,
  call: Call,
  // A session that was saved before there was one has none.
  sentAt: Schema.NullOr(Schema.Natural).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
  counted: Schema.NullOr(CompactionEvent.TokenCounted),
  resolved: Schema.NullOr(CompactionEvent.BudgetResolved),
  maximum: Schema.NullOr(Schema.Natural),
  maximumRoute: Schema.String,
  level: Schema.Natural,
  generation: Schema.Natural,
  boundaries: Schema.Array(Boundary),
  memory: Stage.Memory,
  meter: TokenMeter.State,
  tail: Tail.Memory,
  pace: Refire.Pace,
  ready: Ready,
  isCompacting: Schema.Boolean,
  lastBoundary: Schema.NullOr(CompactionEvent.Compacted),
  lastSkip: Schema.NullOr(CompactionEvent.CompactionSkipped),
  lastInfeasible: Schema.NullOr(CompactionEvent.Infeasible),
  figures: Figure.Figures
}

/**
 * A session was opened: a compaction that was begun before and not ended will not be any more.
 *
 * @category events
 * @since 0.1.0
 */
export const Opened = Schema.TaggedStruct("Opened", { version: Schema.Natural })

/**
 * Messages came in, and some of their results were cut to size at once (`caps`). `price` is what they cost as they came, in
 * tokens.
 *
 * @category events
 * @since 0.1.0
 */
export const Appended = Schema.TaggedStruct("Appended", {
  messages: Schema.Array(Message),
  caps: Schema.Array(Decision.Cap),
  price: Schema.Struct({ system: Schema.Natural, messages: Schema.Natural })
})

/**
 * A boundary: decisions were taken. `told` is what was published of it, `memory` what its stages remember.
 *
 * @category events
 * @since 0.1.0
 */
export const Decided = Schema.TaggedStruct("Decided", {
  decisions: Schema.Array(Decision.Decision),
  memory: Stage.Memory,
  told: CompactionEvent.Compacted
})

/**
 * A pass decided nothing, or failed; its stages remember something else than before. `skipped` and `infeasible` are what was
 * published of it.
 *
 * @category events
 * @since 0.1.0
 */
export const Remembered = Schema.TaggedStruct("Remembered", {
  memory: Stage.Memory,
  skipped: Schema.NullOr(CompactionEvent.CompactionSkipped),
  infeasible: Schema.NullOr(CompactionEvent.Infeasible)
})

/**
 * A request was sent: what it asked for, what it counted, and the tail it had. `again`: it was the same request once more.
 *
 * @category events
 * @since 0.1.0
 */
export const Sent = Schema.TaggedStruct("Sent", {
  again: Schema.Boolean,
  asked: Asked,
  call: Call,
  counted: CompactionEvent.TokenCounted,
  resolved: CompactionEvent.BudgetResolved,
  tail: Tail.Memory,
  price: Schema.Natural,
  /** When, in milliseconds of the clock, where the policy says how long a prefix is kept. */
  at: Schema.optionalKey(Schema.Natural),
  envelope: Schema.NullOr(Schema.Struct({ key: Schema.String, price: Schema.Natural }))
})

const used = Schema.optionalKey(Schema.Int)

/**
 * The provider billed an answer, in tokens as it said them; −1 stands for a number that is none. `beside`: it was not the
 * newest request that was answered. `window`: what the model is taken to hold; no more is believed.
 *
 * @category events
 * @since 0.1.0
 */
export const Billed = Schema.TaggedStruct("Billed", {
  usage: Schema.Struct({ total: used, uncached: used, cacheRead: used, cacheWrite: used }),
  output: Schema.Natural,
  beside: Schema.Boolean,
  window: Schema.Finite
})

/**
 * Nothing came of the last request: nothing of it counts as sent.
 *
 * @category events
 * @since 0.1.0
 */
export const Abandoned = Schema.TaggedStruct("Abandoned", {})

/**
 * The provider refused the last request because it does not fit: how many tokens it had and the most there may be, `null` for
 * what was not said or is not plausible. `window`: what the model is taken to hold.
 *
 * @category events
 * @since 0.1.0
 */
export const Refused = Schema.TaggedStruct("Refused", {
  tokens: Schema.NullOr(Schema.Natural),
  maximum: Schema.NullOr(Schema.Natural),
  window: Schema.Finite,
  call: Call
})

/**
 * The history was not the one seen before, or was rewound: its first `messages` messages stay, with what was decided before
 * the others came. `memory` is what the stages remember from here on.
 *
 * @category events
 * @since 0.1.0
 */
export const Dropped = Schema.TaggedStruct("Dropped", { messages: Schema.Natural, memory: Stage.Memory })

/**
 * What a system says, or a machine before anybody else says anything, is another text now: the messages at these places are
 * these, and all that was decided stays.
 *
 * @category events
 * @since 0.1.0
 */
export const Replaced = Schema.TaggedStruct("Replaced", {
  messages: Schema.Array(Schema.Struct({ at: Schema.Natural, message: Prompt.Message }))
})

/**
 * The decisions of the boundary that made `generation`, and of all later ones, were taken back. `memory` is what the stages
 * remember from here on.
 *
 * @category events
 * @since 0.1.0
 */
export const Undone = Schema.TaggedStruct("Undone", { generation: Schema.Natural, memory: Stage.Memory })

/**
 * A compaction that was asked for by hand began; `commandId` is of the command.
 *
 * @category events
 * @since 0.1.0
 */
export const CompactionStarted = Schema.TaggedStruct("CompactionStarted", { commandId: Schema.NullOr(Schema.String) })

/**
 * A summary was taken in, and waits for a boundary: its checkpoint, what it stands for, the text of the model, unframed,
 * and `raw`, as the model wrote it; and the evidence of the call.
 *
 * @category events
 * @since 0.1.0
 */
export const Summarised = Schema.TaggedStruct("Summarised", {
  checkpoint: Prompt.Message,
  seqs: Schema.Array(Schema.Natural),
  inPlace: Schema.Boolean,
  price: Schema.Natural,
  text: Schema.String,
  raw: Schema.String,
  ...Summarizer.Evidence.fields,
  commandId: Schema.NullOr(Schema.String)
})

/**
 * When the next summary is due has changed, or which one waits for a boundary.
 *
 * @category events
 * @since 0.1.0
 */
export const Paced = Schema.TaggedStruct("Paced", { pace: Refire.Pace, ready: Ready })

/**
 * A compaction that was asked for by hand ended; `reason` says why it did nothing, `null` where it did something.
 *
 * @category events
 * @since 0.1.0
 */
export const CompactionEnded = Schema.TaggedStruct("CompactionEnded", {
  commandId: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String)
})

/**
 * What the window holds from now on, by price in tokens: `tools` is what of a request is not in the prompt, `window` what the
 * model takes, `null` when nothing says.
 *
 * @category events
 * @since 0.1.0
 */
export const Held = Schema.TaggedStruct("Held", Figure.held)

/**
 * Of a request that was sent the beginnings it was laid out from are named; what of it the session has dropped since is kept
 * beside them.
 */
export const SavedSent = Schema.NullOr(Schema.Struct({
  common: Schema.Struct({ messages: Schema.Natural, decisions: Schema.Natural }),
  messages: Schema.Array(Message),
  decisions: Schema.Array(Decision.Decision),
  entries: Schema.Natural,
  generation: Schema.Natural
}))

/**
 * A session that is saved: everything of its state.
 *
 * @category models
 * @since 0.1.0
 */
export const Saved = Schema.Struct({
  version: Schema.Literal(version),
  messages: Schema.Array(Message),
  decisions: Schema.Array(Decision.Decision),
  sent: SavedSent,
  unsent: Schema.NullOr(Schema.Struct({ tail: Tail.Memory, sent: SavedSent })),
  ...fields
})

/**
 * @category models
 * @since 0.1.0
 */
export type Saved = typeof Saved.Type

/**
 * The same as JSON.
 *
 * @category models
 * @since 0.1.0
 */
export const SavedJson = Schema.toCodecJson(Saved)

/**
 * Another session was put in place of this one.
 *
 * @category events
 * @since 0.1.0
 */
export const Restored = Schema.TaggedStruct("Restored", { session: Saved })

/**
 * @category events
 * @since 0.1.0
 */
export const Event = Schema.Union([
  Opened,
  Appended,
  Decided,
  Remembered,
  Sent,
  Billed,
  Abandoned,
  Refused,
  Dropped,
  Replaced,
  Undone,
  Restored,
  CompactionStarted,
  Summarised,
  Paced,
  CompactionEnded,
  Held
]).pipe(Schema.toTaggedUnion("_tag"))

/**
 * @category events
 * @since 0.1.0
 */
export type Event = typeof Event.Type
