/**
 * Rungs as plain data: a kind names the Schema of its options and says how to build the rung.
 *
 * A catalog is the closed set of kinds that a policy may name. It decodes the ladder of a policy, gives its JSON Schema,
 * and knows the union of errors and services of all its kinds. The kinds of this library are in {@link builtIn}; a team
 * adds its own beside them.
 *
 * **Example** (Registering a kind)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Rung from "effect-compaction/Rung"
 * import * as RungKind from "effect-compaction/RungKind"
 *
 * class Refused extends Schema.TaggedError<Refused>("app/Refused")("Refused", {}) {}
 *
 * const Redact = RungKind.make("app/redact", {
 *   options: Schema.Struct({ word: Schema.NonEmptyString }),
 *   build: ({ word }) => Rung.make("redact", (pass) => word === "all" ? Effect.fail(new Refused()) : Effect.succeed(pass))
 * })
 *
 * const catalog = RungKind.catalog(...RungKind.builtIn.kinds, Redact)
 * const ladder = catalog.build([{ _tag: "remove", relax: 1 }, { _tag: "app/redact", word: "secret" }])
 * ladder.rungs.map((rung) => rung.name) // => ["remove", "redact"]
 * ```
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Kind from "./Kind.ts"
import * as Ladder from "./Ladder.ts"
import * as Options from "./ladder/options.ts"
import * as Rung from "./Rung.ts"

/**
 * A kind of rung.
 *
 * @category models
 * @since 0.1.0
 */
export type RungKind<Tag extends string, F extends Schema.Struct.Fields, E = never, R = never> = Kind.Kind<
  "rung",
  Tag,
  F,
  Rung.Rung<E, R>
>

/**
 * @category utility types
 * @since 0.1.0
 */
export interface Any extends Kind.Any {
  readonly role: "rung"
  // A method, as there.
  build(options: unknown): Rung.Rung<unknown, unknown>
}

/**
 * A rung as data, decoded: the tag of its kind and its options.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Spec<Kinds extends ReadonlyArray<Any>> = Kind.Spec<Kinds[number]>

/**
 * A rung as it is written: options that have a default may be left out.
 *
 * @category utility types
 * @since 0.1.0
 */
export type SpecInput<Kinds extends ReadonlyArray<Any>> = Kind.SpecInput<Kinds[number]>

/**
 * Makes a kind. The checks of the options, those over several keys too, are kept.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: <const Tag extends string, F extends Schema.Struct.Fields, E, R>(
  tag: Tag,
  kind: {
    readonly options: Schema.Struct<F> & { readonly DecodingServices: never; readonly EncodingServices: never }
    readonly build: (options: Schema.Struct<F>["Type"]) => Rung.Rung<E, R>
  }
) => RungKind<Tag, F, E, R> = Kind.make("rung")

/**
 * The closed set of kinds that a ladder may be written in.
 *
 * @category models
 * @since 0.1.0
 */
export interface Catalog<Kinds extends ReadonlyArray<Any>> {
  readonly kinds: Kinds
  /** The ladder of a policy: a list of rungs, each of one of the kinds. */
  readonly schema: Schema.Codec<ReadonlyArray<Spec<Kinds>>, ReadonlyArray<SpecInput<Kinds>>>
  readonly build: (
    specs: ReadonlyArray<Spec<Kinds>>
  ) => Ladder.Ladder<Kind.Error<Kinds[number]>, Kind.Services<Kinds[number]>>
}

/**
 * Makes a catalog. Of two kinds with the same tag the later one counts.
 *
 * @category constructors
 * @since 0.1.0
 */
export const catalog = <const Kinds extends ReadonlyArray<Any>>(...kinds: Kinds): Catalog<Kinds> => {
  const byTag = new Map<string, Any>(kinds.map((kind) => [kind.tag, kind]))
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

const truncateToolResults = make("truncateToolResults", {
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

const remove = make("remove", { options: relaxed, build: Rung.remove })

const lastResort = make("lastResort", { options: relaxed, build: Rung.lastResort })

const truncateLarge = make("truncateLarge", { options: Rung.TruncateLarge, build: Rung.truncateLarge })

const removeOthers = make("removeOthers", { options: Rung.RemoveOthers, build: Rung.removeOthers })

const shortenPeople = make("shortenPeople", { options: Rung.ShortenPeople, build: Rung.shortenPeople })

const pruneToolResults = make("pruneToolResults", { options: Rung.PruneToolResults, build: Rung.pruneToolResults })

const clearToolResults = make("clearToolResults", { options: Rung.ClearToolResults, build: Rung.clearToolResults })

const dedupeReads = make("dedupeReads", { options: Rung.DedupeReads, build: Rung.dedupeReads })

const clearReasoning = make("clearReasoning", { options: Rung.ClearReasoning, build: Rung.clearReasoning })

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
