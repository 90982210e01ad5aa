/**
 * A whole policy as plain data: every key of {@link Settings.Settings}, and the ladder as a list of rungs.
 *
 * A policy is what a team keeps in a file and compares with another one. It decodes from JSON with the path of every
 * problem, has a JSON Schema for editors, and becomes the options of a manager in one call. What the ladder may be
 * written in is a catalog of rung kinds; {@link withKinds} takes another one, and everything here follows it.
 *
 * **Example** (Managing a conversation by a preset)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ContextManager from "effect-compaction/ContextManager"
 * import * as Policy from "effect-compaction/Policy"
 *
 * class AppContext extends ContextManager.Service<AppContext>()(
 *   "app/AppContext",
 *   Policy.options({ ...Policy.contextSimple, window: 200_000 })
 * ) {}
 *
 * const program = Effect.gen(function*() {
 *   const context = yield* AppContext
 *   yield* context.append("Find out why the build fails.")
 *   const { prompt } = yield* context.request
 *   return prompt.content.length
 * })
 *
 * Effect.runPromise(Effect.provide(program, AppContext.layer)) // => 1
 * ```
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import * as Ladder from "./Ladder.ts"
import * as PolicyChecks from "./policy/checks.ts"
import { isPass, type Pass, type PassError, passFrom, passOf } from "./policy/pass.ts"
import { type Options, prepare, type Prepared } from "./policy/prepare.ts"
import { contextSimple, progressive } from "./policy/presets.ts"
import * as Problems from "./policy/problems.ts"
import { PolicyError } from "./policy/problems.ts"
import { descriptions } from "./policy/text.ts"
import * as RungKind from "./RungKind.ts"
import * as Settings from "./Settings.ts"

export { isPass, type Options, type Pass, type PassError, passFrom, passOf, PolicyError, prepare, type Prepared }

/**
 * The pass of a manager that is given none. It is made of the stages that anyone composes: put others in their stead, and
 * the manager does something else.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pass: Pass<PassError> = passOf(Ladder.progressive)

/**
 * A policy whose ladder is written in the kinds of a catalog. The rungs of `ladder` are climbed first to last; with no
 * rung at all nothing is ever compacted.
 *
 * @category models
 * @since 0.1.0
 */
export type PolicyOf<Kinds extends ReadonlyArray<RungKind.Any>> =
  & Settings.Settings
  & { readonly ladder: ReadonlyArray<RungKind.Spec<Kinds>> }

/**
 * A policy as it is written: every key may be left out.
 *
 * @category models
 * @since 0.1.0
 */
export type InputOf<Kinds extends ReadonlyArray<RungKind.Any>> =
  & Settings.Input
  & { readonly ladder?: ReadonlyArray<RungKind.SpecInput<Kinds>> }

/**
 * What a policy that was written as data is in code: its settings and its ladder.
 *
 * @category models
 * @since 0.1.0
 */
export interface Written<out E = never, out R = never> extends Options<E, R> {
  readonly settings: Settings.Input
  readonly ladder: Ladder.Ladder<E, R>
}

/** The kinds of this library. */
type BuiltIn = typeof RungKind.builtIn.kinds

/**
 * A policy whose ladder is written in the kinds of this library.
 *
 * @category models
 * @since 0.1.0
 */
export type Policy = PolicyOf<BuiltIn>

/**
 * The same as it is written.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = InputOf<BuiltIn>

/**
 * The policies over one catalog of rung kinds, and what they become.
 *
 * @category models
 * @since 0.1.0
 */
export interface Policies<Kinds extends ReadonlyArray<RungKind.Any>> {
  readonly Schema: Schema.Codec<PolicyOf<Kinds>, InputOf<Kinds>>
  /** Decodes what was read from JSON. Fails with every problem at once; a key that does not exist is one. */
  readonly decode: (input: unknown) => Effect.Effect<PolicyOf<Kinds>, PolicyError>
  /** The policy in code. The errors and services of its ladder are those of all kinds of the catalog. */
  readonly options: (
    policy: PolicyOf<Kinds>
  ) => Written<RungKind.Error<Kinds[number]>, RungKind.Services<Kinds[number]>>
  /** The JSON Schema (draft 2020-12) of a policy as it is written. Checks over several keys are not in it. */
  readonly jsonSchema: JsonSchema.JsonSchema
}

const isKey = (key: string): key is keyof typeof descriptions => Object.hasOwn(descriptions, key)

/** Adds to a JSON Schema what editors show beside a key: what it means, and its default. */
const annotate = (
  document: JsonSchema.Document<"draft-2020-12">,
  defaults: Policy
): JsonSchema.JsonSchema => {
  const { properties, ...rest } = document.schema
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A policy of effect-compaction",
    ...rest,
    properties: Object.fromEntries(
      Object.entries(properties ?? {}).map(([key, value]) => [key, {
        ...(isKey(key) ? { description: descriptions[key], ...value, default: defaults[key] } : value)
      }])
    ),
    ...(Object.keys(document.definitions).length === 0 ? {} : { $defs: document.definitions })
  }
}

/** Settings as they are written, which is what a manager takes: a duration is the one value that is decoded. */
const written = ({ summary, ...settings }: Settings.Settings): Settings.Input =>
  summary === undefined
    ? settings
    : { ...settings, summary: { ...summary, timeout: Duration.toMillis(summary.timeout) } }

/** Everything but the types: the kinds of a catalog are values, so what decodes is known only from the catalog. */
const make = (kinds: ReadonlyArray<RungKind.Any>) => {
  const catalog = RungKind.catalog(...kinds)
  const ladder = Schema.withDecodingDefaultKey<typeof catalog.schema>(Effect.succeed(progressive))(catalog.schema)
  const schema = Settings.Settings
    .mapFields((fields) => ({ ...fields, ladder }), { unsafePreserveChecks: true })
    .check(PolicyChecks.all)
  const byTag = new Map(catalog.kinds.map((kind) => [kind.tag, kind]))
  const names = (input: unknown): Problems.Names => ({
    tags: Array.from(byTag.keys()),
    keysAt: (path) => {
      if (path.length === 0) return Object.keys(schema.fields)
      const tag = path.length === 2 && path[0] === "ladder"
        ? Problems.valueAt(input, [...path, "_tag"])
        : undefined
      return Object.keys(byTag.get(String(tag))?.schema.fields ?? {}).filter((key) => key !== "_tag")
    }
  })
  return {
    Schema: schema,
    decode: (input: unknown) => Problems.decode(schema, input, names(input)),
    options: ({ ladder: specs, ...settings }: typeof schema.Type): Written<unknown, unknown> => ({
      settings: written(settings),
      ladder: catalog.build(specs)
    }),
    get jsonSchema() {
      return annotate(Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }), contextSimple)
    }
  }
}

/**
 * The policies whose ladder may also be written in these kinds, beside those of this library.
 *
 * **Example** (Reading a policy with a rung of one's own)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Policy from "effect-compaction/Policy"
 * import * as Rung from "effect-compaction/Rung"
 * import * as RungKind from "effect-compaction/RungKind"
 *
 * const Redact = RungKind.make("app/redact", {
 *   options: Schema.Struct({ tool: Schema.String }),
 *   build: ({ tool }) =>
 *     Rung.propose("redact", function*(draft) {
 *       for (const item of draft.items) {
 *         const entry = item?.entry
 *         if (entry?.kind === "result" && entry.tool === tool) {
 *           yield { _tag: "Truncate", seq: entry.seq, at: draft.at, k: 0, shape: "head" }
 *         }
 *       }
 *     })
 * })
 *
 * const AppPolicy = Policy.withKinds(Redact)
 *
 * const program = AppPolicy.decode({ ladder: [{ _tag: "app/redact", tool: "vault" }, { _tag: "remove", relax: 1 }] }).pipe(
 *   Effect.map((policy) => AppPolicy.options(policy).ladder.rungs.map((rung) => rung.name))
 * )
 *
 * Effect.runPromise(program) // => ["redact", "remove"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const withKinds = <const Kinds extends ReadonlyArray<RungKind.Any>>(
  ...kinds: Kinds
): Policies<[...BuiltIn, ...Kinds]> =>
  // The types say of each kind what `RungKind.make` inferred of it; at run time they are all one.
  make([...RungKind.builtIn.kinds, ...kinds]) as unknown as Policies<[...BuiltIn, ...Kinds]>

export {
  anthropicContextEditing,
  claudeCode,
  codex,
  contextSimple,
  contextSimpleHybrid,
  contextSimpleSummary,
  deepseekHarness,
  none,
  openCode,
  presets,
  recommended,
  slidingWindow
} from "./policy/presets.ts"

/** The policies over the kinds of this library. */
const builtIn = withKinds()

const schema = builtIn.Schema

export {
  /**
   * The Schema of a policy.
   *
   * @category models
   * @since 0.1.0
   */
  schema as Schema
}

/**
 * Decodes what was read from JSON. Fails with every problem at once; a key that does not exist is one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const decode: (input: unknown) => Effect.Effect<Policy, PolicyError> = builtIn.decode

/**
 * The options of a manager, to be given to `ContextManager.make` or `ContextManager.Service`.
 *
 * @category converting
 * @since 0.1.0
 */
export const options = builtIn.options

/**
 * The JSON Schema (draft 2020-12) of a policy as it is written. Checks over several keys are not in it.
 *
 * @category converting
 * @since 0.1.0
 */
export const jsonSchema = (): JsonSchema.JsonSchema => builtIn.jsonSchema
