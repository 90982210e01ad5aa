import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Pass } from "../Stage.ts"

/**
 * What stages remember from pass to pass: the slots that were written, as JSON, by key. It is part of the session: saved,
 * restored and taken back with it.
 *
 * @category memory
 * @since 0.1.0
 */
export const Memory = Schema.Record(Schema.String, Schema.Json)

/**
 * @category memory
 * @since 0.1.0
 */
export type Memory = typeof Memory.Type

/**
 * The memory of a session in which no stage has written.
 *
 * @category memory
 * @since 0.1.0
 */
export const noMemory: Memory = {}

/**
 * A place in the memory that belongs to one stage; see {@link memory}.
 *
 * @category memory
 * @since 0.1.0
 */
export interface Slot<A> {
  readonly key: string
  readonly initial: A
  readonly encode: (value: A) => Schema.Json
  readonly decode: (value: Schema.Json) => Option.Option<A>
  /** Whether what is written stays where the pass that wrote it is taken back. */
  readonly isLasting: boolean
  /** What was read last. A value of the memory never changes, so what was read of it stays true. */
  readonly read: WeakMap<object, A>
}

/**
 * Gives a stage a slot of its own in the memory of a session.
 *
 * **Details**
 *
 * The value is saved with the session, restored with it, taken back with the pass that wrote it, and there after a pass
 * that failed. Read it with {@link recall}, write it with {@link remember}. A saved value that does not decode any more, of
 * an earlier version of the stage, counts as not written. With
 * `isLasting` it stays where a guard takes the pass back: what was paid for is not asked for again. `key` names the slot in the session: prefix it with the name of
 * your package.
 *
 * **Example** (At most three boundaries an hour)
 *
 * ```ts
 * import * as Clock from "effect/Clock"
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Stage from "effect-compaction/Stage"
 *
 * const hours = Stage.memory("my-app/boundaries", Schema.Array(Schema.Finite), [])
 *
 * const seldom: Stage.Stage = Effect.fnUntraced(function*(pass) {
 *   const now = yield* Clock.currentTimeMillis
 *   const recent = Stage.recall(pass, hours).filter((at) => now - at < 3_600_000)
 *   if (recent.length >= 3) return Stage.close(pass, "three boundaries in an hour")
 *   return Stage.remember(pass, hours, [...recent, now])
 * })
 *
 * console.log([hours.key, typeof seldom]) // => ["my-app/boundaries", "function"]
 * ```
 *
 * @category memory
 * @since 0.1.0
 */
export const memory = <A>(
  key: string,
  schema: Schema.Codec<A, Schema.Json>,
  initial: A,
  options: { readonly isLasting?: boolean } = {}
): Slot<A> => ({
  key,
  initial,
  encode: Schema.encodeSync(schema),
  decode: Schema.decodeUnknownOption(schema),
  isLasting: options.isLasting ?? false,
  read: new WeakMap()
})

/**
 * What a slot holds.
 *
 * @category memory
 * @since 0.1.0
 */
export const recall = <A>(self: { readonly memory: Memory }, slot: Slot<A>): A => {
  const value = self.memory[slot.key]
  if (value === undefined) return slot.initial
  if (typeof value !== "object" || value === null) return Option.getOrElse(slot.decode(value), () => slot.initial)
  const known = slot.read.get(value)
  if (known !== undefined) return known
  const read = Option.getOrElse(slot.decode(value), () => slot.initial)
  slot.read.set(value, read)
  return read
}

/** A memory with another value in a slot. @internal */
export const written = <A>(memory: Memory, slot: Slot<A>, value: A): Memory => ({
  ...memory,
  [slot.key]: slot.encode(value)
})

/**
 * The pass with another value in a slot.
 *
 * @category memory
 * @since 0.1.0
 */
export const remember = <A>(self: Pass, slot: Slot<A>, value: A): Pass => {
  const memory = written(self.memory, slot, value)
  // A stage that fails hands back no pass: what was written before it did is found here.
  self.written.memory = memory
  if (slot.isLasting) self.written.lasting = written(self.written.lasting ?? noMemory, slot, value)
  return { ...self, memory }
}

/** @internal A pass that was taken back, with what lasts all the same. */
export const lasting = (self: Pass): Pass =>
  self.written.lasting === undefined ? self : { ...self, memory: { ...self.memory, ...self.written.lasting } }
