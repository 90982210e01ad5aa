/**
 * What a policy may name as plain data: the rungs of its ladder, and the gates, stages and guards of its pass.
 *
 * A kind names the Schema of its options and says what to build of them. A list of kinds decodes what a policy is written
 * in, gives its JSON Schema, and knows the union of errors and services of all of them. `RungKind.make` makes a kind of
 * rung; {@link gate}, {@link stage} and {@link guard} make the others, and `Policy.withKinds` takes them all.
 *
 * **Example** (A gate of one's own in the pass of a policy)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Kind from "effect-compaction/Kind"
 * import * as Policy from "effect-compaction/Policy"
 *
 * class TooShort extends Schema.TaggedError<TooShort>("app/TooShort")("TooShort", { entries: Schema.Natural }) {}
 *
 * const AtLeast = Kind.gate("app/atLeast", {
 *   options: Schema.Struct({ entries: Schema.Natural }),
 *   build: ({ entries }) => (pass) =>
 *     pass.entries < entries ? Effect.fail(new TooShort({ entries: pass.entries })) : Effect.succeed(pass)
 * })
 *
 * const AppPolicy = Policy.withKinds(AtLeast)
 *
 * const program = AppPolicy.decode({
 *   pass: [{ _tag: "pressure" }, { _tag: "app/atLeast", entries: 20 }, { _tag: "ladder" }, { _tag: "clearAtLeast" }]
 * }).pipe(Effect.map((policy) => policy.pass?.length))
 *
 * Effect.runPromise(program) // => 4
 * ```
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type * as Rung from "./Rung.ts"
import type * as Stage from "./Stage.ts"

/**
 * What a kind builds. `rung`: a rung of the ladder. `gate`: a stage that lets a pass through, closes it or fails it.
 * `stage`: a stage that decides. `guard`: a check of what the stages before it decided.
 *
 * @category models
 * @since 0.1.0
 */
export type Role = "rung" | "gate" | "stage" | "guard"

/**
 * A kind: its tag, the Schema of its options, and what is built of them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Kind<out As extends Role, Tag extends string, F extends Schema.Struct.Fields, out Made> {
  readonly role: As
  readonly tag: Tag
  /** The options, with the tag beside them: one element of a list in a policy. */
  readonly schema: Schema.TaggedStruct<Tag, F>
  readonly build: (options: Schema.Struct<F>["Type"]) => Made
}

/**
 * @category utility types
 * @since 0.1.0
 */
export interface Any {
  readonly role: Role
  readonly tag: string
  readonly schema: Schema.Codec<{ readonly _tag: string }, { readonly _tag: string }> & {
    readonly fields: Schema.Struct.Fields
  }
  // A method, so that a kind with options of its own is one: what it builds from was decoded by its own Schema.
  build(options: unknown): unknown
}

/**
 * What is written in a policy, decoded: the tag of a kind and its options.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Spec<K extends Any> = K["schema"]["Type"]

/**
 * The same as it is written: options that have a default may be left out.
 *
 * @category utility types
 * @since 0.1.0
 */
export type SpecInput<K extends Any> = K["schema"]["Encoded"]

/**
 * The kinds of a list that are rungs.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Rungs<Kinds extends ReadonlyArray<Any>> = Extract<Kinds[number], { readonly role: "rung" }>

/**
 * The kinds of a list that stand in a pass.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Stages<Kinds extends ReadonlyArray<Any>> = Exclude<Kinds[number], { readonly role: "rung" }>

type Made<K> = K extends { readonly build: (options: never) => infer Out } ? Out : never

type Failing<Out> = Out extends Rung.Rung<infer E, infer _R> ? E
  : Out extends Stage.Stage<infer E, infer _R> ? E
  : Out extends Stage.Check<infer E, infer _R> ? E
  : never

type Needing<Out> = Out extends Rung.Rung<infer _E, infer R> ? R
  : Out extends Stage.Stage<infer _E, infer R> ? R
  : Out extends Stage.Check<infer _E, infer R> ? R
  : never

/**
 * What the rungs, stages and guards of kinds may fail with.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Error<K> = Failing<Made<K>>

/**
 * What the rungs, stages and guards of kinds need.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Services<K> = Needing<Made<K>>

/** The options of a kind, and what is built of them. */
interface Parts<F extends Schema.Struct.Fields, Out> {
  readonly options: Schema.Struct<F> & { readonly DecodingServices: never; readonly EncodingServices: never }
  readonly build: (options: Schema.Struct<F>["Type"]) => Out
}

/** @internal */
export const make = <As extends Role>(role: As) =>
<const Tag extends string, F extends Schema.Struct.Fields, Made>(
  tag: Tag,
  kind: Parts<F, Made>
): Kind<As, Tag, F, Made> => ({
  role,
  tag,
  // The checks of the options, those over several keys too, are kept.
  schema: kind.options.mapFields((fields: F) => ({ _tag: Schema.tag(tag), ...fields }), { unsafePreserveChecks: true }),
  build: kind.build
})

/**
 * Makes a kind of gate: a stage before those that decide. A gate returns the pass as it is, ends it, or fails it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const gate = <const Tag extends string, F extends Schema.Struct.Fields, E = never, R = never>(
  tag: Tag,
  parts: Parts<F, Stage.Stage<E, R>>
): Kind<"gate", Tag, F, Stage.Stage<E, R>> => make("gate")(tag, parts)

/**
 * Makes a kind of stage that decides something about the view, as a ladder does.
 *
 * @category constructors
 * @since 0.1.0
 */
export const stage = <const Tag extends string, F extends Schema.Struct.Fields, E = never, R = never>(
  tag: Tag,
  parts: Parts<F, Stage.Stage<E, R>>
): Kind<"stage", Tag, F, Stage.Stage<E, R>> => make("stage")(tag, parts)

/**
 * Makes a kind of guard: it judges what the stages before it decided, back to the gate or the guard before them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const guard = <const Tag extends string, F extends Schema.Struct.Fields, E = never, R = never>(
  tag: Tag,
  parts: Parts<F, Stage.Check<E, R>>
): Kind<"guard", Tag, F, Stage.Check<E, R>> => make("guard")(tag, parts)
