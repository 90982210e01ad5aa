/**
 * What a policy may name as plain data: the rungs of its ladder, and the gates, stages and guards of its pass.
 *
 * A kind names the Schema of its options and says what to build of them. A list of kinds decodes what a policy is written
 * in, gives its JSON Schema, and knows the union of errors and services of all of them. {@link rung}, {@link gate},
 * {@link stage} and {@link guard} make kinds, and `Policy.withKinds` takes them all. The rungs of this library are in
 * {@link builtIn}.
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
 * **Example** (A rung of one's own as data)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Kind from "effect-compaction/Kind"
 * import * as Rung from "effect-compaction/Rung"
 *
 * class Refused extends Schema.TaggedError<Refused>("app/Refused")("Refused", {}) {}
 *
 * const Redact = Kind.rung("app/redact", {
 *   options: Schema.Struct({ word: Schema.NonEmptyString }),
 *   build: ({ word }) => Rung.make("redact", (pass) => word === "all" ? Effect.fail(new Refused()) : Effect.succeed(pass))
 * })
 *
 * const catalog = Kind.catalog(...Kind.builtIn.kinds, Redact)
 * const ladder = catalog.build([{ _tag: "remove", relax: 1 }, { _tag: "app/redact", word: "secret" }])
 * ladder.rungs.map((rung) => rung.name) // => ["remove", "redact"]
 * ```
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Ladder from "./Ladder.ts"
import * as Options from "./ladder/options.ts"
import * as Rung from "./Rung.ts"
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

const make = <As extends Role>(role: As) =>
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

/**
 * A kind of rung.
 *
 * @category models
 * @since 0.1.0
 */
export type RungKind<Tag extends string, F extends Schema.Struct.Fields, E = never, R = never> = Kind<
  "rung",
  Tag,
  F,
  Rung.Rung<E, R>
>

/**
 * @category utility types
 * @since 0.1.0
 */
export interface AnyRung extends Any {
  readonly role: "rung"
  // A method, as above.
  build(options: unknown): Rung.Rung<unknown, unknown>
}

/**
 * Makes a kind of rung. The checks of its options, those over several keys too, are kept.
 *
 * @category constructors
 * @since 0.1.0
 */
export const rung = <const Tag extends string, F extends Schema.Struct.Fields, E, R>(
  tag: Tag,
  parts: Parts<F, Rung.Rung<E, R>>
): RungKind<Tag, F, E, R> => make("rung")(tag, parts)

/**
 * The closed set of kinds that a ladder may be written in.
 *
 * @category models
 * @since 0.1.0
 */
export interface Catalog<Kinds extends ReadonlyArray<AnyRung>> {
  readonly kinds: Kinds
  /** The ladder of a policy: a list of rungs, each of one of the kinds. */
  readonly schema: Schema.Codec<ReadonlyArray<Spec<Kinds[number]>>, ReadonlyArray<SpecInput<Kinds[number]>>>
  readonly build: (
    specs: ReadonlyArray<Spec<Kinds[number]>>
  ) => Ladder.Ladder<Error<Kinds[number]>, Services<Kinds[number]>>
}

/**
 * Makes a catalog. Of two kinds with the same tag the later one counts.
 *
 * @category constructors
 * @since 0.1.0
 */
export const catalog = <const Kinds extends ReadonlyArray<AnyRung>>(...kinds: Kinds): Catalog<Kinds> => {
  const byTag = new Map<string, AnyRung>(kinds.map((kind) => [kind.tag, kind]))
  const schemas = Array.from(byTag.values(), ({ schema }) => schema)
  return {
    kinds,
    // What the union of the kinds decodes is, by construction, one of their specs.
    schema: Schema.Array(Schema.Union(schemas)) as Catalog<Kinds>["schema"],
    build: (specs) => {
      const rungs = specs.flatMap((spec) => {
        const kind = byTag.get(spec._tag)
        return kind === undefined ? [] : [kind.build(spec)]
      })
      // Each rung was built by one of the kinds, so its errors and services are among theirs.
      return Ladder.make(...rungs) as ReturnType<Catalog<Kinds>["build"]>
    }
  }
}

const relaxed = Schema.Struct({ relax: Options.relax })

const truncateToolResults = rung("truncateToolResults", {
  options: Schema.Struct({
    fraction: Schema.Finite.check(
      Schema.isBetween({ minimum: 0, maximum: 1, exclusiveMinimum: true }, {
        message: "write the share of the tool results, oldest first, as a ratio above 0 and up to 1, for example 0.25"
      })
    ).pipe(Schema.annotateKey({
      description: "The share of the view's tool results that is truncated, oldest first",
      messageMissingKey:
        "is missing: write the share of the tool results, oldest first, as a ratio above 0 and up to 1, for example 0.25"
    }))
  }),
  build: Rung.truncateToolResults
})

const remove = rung("remove", { options: relaxed, build: Rung.remove })

const lastResort = rung("lastResort", { options: relaxed, build: Rung.lastResort })

const truncateLarge = rung("truncateLarge", { options: Rung.TruncateLarge, build: Rung.truncateLarge })

const removeOthers = rung("removeOthers", { options: Rung.RemoveOthers, build: Rung.removeOthers })

const shortenPeople = rung("shortenPeople", { options: Rung.ShortenPeople, build: Rung.shortenPeople })

const pruneToolResults = rung("pruneToolResults", { options: Rung.PruneToolResults, build: Rung.pruneToolResults })

const clearToolResults = rung("clearToolResults", { options: Rung.ClearToolResults, build: Rung.clearToolResults })

const dedupeReads = rung("dedupeReads", { options: Rung.DedupeReads, build: Rung.dedupeReads })

const clearReasoning = rung("clearReasoning", { options: Rung.ClearReasoning, build: Rung.clearReasoning })

/**
 * The kind of `Rung.decide`. It needs a `DecisionModel`, so it is no part of {@link builtIn}: an app that has one adds it,
 * `Policy.withKinds(Kind.decide)`.
 *
 * @category constants
 * @since 0.1.0
 */
export const decide = rung("decide", { options: Rung.Decide, build: (options) => Rung.decide(options) })

/**
 * The kinds of this library, each named after the constructor in `Rung` that it calls.
 *
 * @category constants
 * @since 0.1.0
 */
export const builtIn = catalog(
  truncateToolResults,
  remove,
  lastResort,
  truncateLarge,
  removeOthers,
  shortenPeople,
  pruneToolResults,
  clearToolResults,
  dedupeReads,
  clearReasoning
)
