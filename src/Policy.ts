/**
 * A whole policy as plain data: every key of {@link Settings.Settings}, and the ladder as a list of rungs.
 *
 * A policy is what a team keeps in a file and compares with another one. It decodes from JSON with the path of every
 * problem, has a JSON Schema for editors, and becomes the options of a manager in one call. It may extend a preset or
 * another file, and differ for each route. What it may be written in are kinds; {@link withKinds} takes more of them, and
 * everything here follows.
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
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as JsonSchema from "effect/JsonSchema"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Kind from "./Kind.ts"
import * as Ladder from "./Ladder.ts"
import { accept, aimAt, type Answer, type Asking, beforeCommit, refusals, refuse } from "./policy/beforeCommit.ts"
import * as PolicyChecks from "./policy/checks.ts"
import * as PolicyJson from "./policy/json.ts"
import { isPass, type Pass, type PassError, passFrom, passOf } from "./policy/pass.ts"
import { byRoute, type Options, prepare, type Prepared, resolve, type Resolved } from "./policy/prepare.ts"
import { presets, standard } from "./policy/presets.ts"
import * as Problems from "./policy/problems.ts"
import { PolicyError } from "./policy/problems.ts"
import * as Source from "./policy/source.ts"
import * as Stages from "./policy/stages.ts"
import * as Settings from "./Settings.ts"

export {
  accept,
  aimAt,
  type Answer,
  type Asking,
  beforeCommit,
  byRoute,
  isPass,
  type Options,
  type Pass,
  type PassError,
  passFrom,
  passOf,
  PolicyError,
  prepare,
  type Prepared,
  refusals,
  refuse,
  resolve,
  type Resolved
}

/**
 * The pass of a manager that is given none. It is made of the stages that anyone composes: put others in their stead, and
 * the manager does something else.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pass: Pass<PassError> = passOf(Ladder.recommended)

/** A policy without its routes. */
type OneOf<Kinds extends ReadonlyArray<Kind.Any>> = Settings.Settings & {
  readonly ladder: ReadonlyArray<Kind.Spec<Kind.Rungs<Kinds>>>
  readonly pass?: ReadonlyArray<Kind.Spec<Kind.Stages<Kinds>>>
}

/** The same as it is written. */
type OneInputOf<Kinds extends ReadonlyArray<Kind.Any>> = Settings.Input & {
  readonly ladder?: ReadonlyArray<Kind.SpecInput<Kind.Rungs<Kinds>>>
  readonly pass?: ReadonlyArray<Kind.SpecInput<Kind.Stages<Kinds>>>
}

/**
 * A policy that is written in certain kinds.
 *
 * **Details**
 *
 * - `ladder`: the rungs, climbed first to last; with no rung at all nothing is ever compacted.
 * - `pass`: the gates, stages and guards around the ladder, in the order in which they are run, in place of the standard
 *   ones, which are `overhead`, `signedReasoning`, `media`, `pressure`, `provenance`, `absorb`, `summarise`, `ladder` and
 *   `clearAtLeast`. A guard judges the stages before it, back to a gate, or to a stage that another guard judged.
 * - `byRoute`: the policies of calls to certain models, by pattern, each in full; see {@link byRoute}.
 *
 * @category models
 * @since 0.1.0
 */
export type PolicyOf<Kinds extends ReadonlyArray<Kind.Any>> =
  & OneOf<Kinds>
  & { readonly byRoute?: { readonly [pattern: string]: OneOf<Kinds> } }

/**
 * A policy as it is written: every key may be left out.
 *
 * **Details**
 *
 * - `$schema`: where an editor finds the JSON Schema.
 * - `extends`: a preset by name, or a file, from where this one lies. What is written beside it comes before what is there;
 *   of `summary` key by key. `null` takes out what has no default.
 * - `byRoute`: policies by pattern, which extend the one that they stand in unless they say otherwise. `default` is for
 *   what no pattern fits.
 *
 * @category models
 * @since 0.1.0
 */
export type InputOf<Kinds extends ReadonlyArray<Kind.Any>> = OneInputOf<Kinds> & {
  readonly $schema?: string
  readonly extends?: string
  readonly byRoute?: {
    readonly [pattern: string]: OneInputOf<Kinds> & { readonly $schema?: string; readonly extends?: string }
  }
}

/**
 * What a policy that was written as data is in code: its settings, its ladder, and its pass where it is written.
 *
 * @category models
 * @since 0.1.0
 */
export interface Written<out E = never, out R = never, out P = PassError> extends Options<E, R, P> {
  readonly settings: Settings.Input
  readonly ladder: Ladder.Ladder<E, R>
}

/** The kinds of this library. */
type BuiltIn = [...typeof Kind.builtIn.kinds, ...typeof Stages.builtIn]

/**
 * A policy that is written in the kinds of this library.
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
 * The policies that are written in certain kinds, and what they become.
 *
 * @category models
 * @since 0.1.0
 */
export interface Policies<Kinds extends ReadonlyArray<Kind.Any>> {
  /** The kinds that are not those of this library alone. */
  readonly kinds: Kinds
  /** Of a policy in full: what it extends is none of its keys. */
  readonly Schema: Schema.Codec<PolicyOf<Kinds>, Omit<InputOf<Kinds>, "$schema" | "extends">>
  /**
   * Decodes what was read from JSON. Fails with every problem at once; a key that does not exist is one. It may extend
   * presets; what lies in files is read by `load`.
   */
  readonly decode: (input: unknown) => Effect.Effect<PolicyOf<Kinds>, PolicyError>
  /** Reads a policy from a file, or a preset by its name, with other settings over it. */
  readonly load: (
    file: string,
    over?: Settings.Input
  ) => Effect.Effect<PolicyOf<Kinds>, PolicyError, FileSystem.FileSystem | Path.Path>
  /** The policy in code. Its errors and services are those of all kinds that it may be written in. */
  readonly options: (
    policy: PolicyOf<Kinds>
  ) => Written<
    Kind.Error<Kind.Rungs<Kinds>>,
    Kind.Services<Kinds[number]>,
    PassError | Kind.Error<Kind.Stages<Kinds>>
  >
  /** The JSON Schema (draft 2020-12) of a policy as it is written. Checks over several keys are not in it. */
  readonly jsonSchema: () => JsonSchema.JsonSchema
}

const builtInKinds = [...Kind.builtIn.kinds, ...Stages.builtIn] as const

/** Everything but the types: kinds are values, so what decodes is known only from them. */
const make = (kinds: ReadonlyArray<Kind.Any>) => {
  const catalog = Kind.catalog(...kinds.filter((kind): kind is Kind.AnyRung => kind.role === "rung"))
  const ladder = Schema.withDecodingDefaultKey<typeof catalog.schema>(Effect.succeed(standard))(catalog.schema)
  const byTag = new Map(kinds.map((kind) => [kind.tag, kind]))
  const stages = Array.from(byTag.values()).filter(({ role }) => role !== "rung").map(({ schema }) => schema)
  const passSchema = Schema.optionalKey(Schema.Array(Schema.Union(stages)))
  const one = Settings.Settings
    .mapFields((fields) => ({ ...fields, ladder, pass: passSchema }), { unsafePreserveChecks: true })
    .check(PolicyChecks.all, PolicyChecks.gated(byTag))
  const schema = one.mapFields(
    (fields) => ({ ...fields, byRoute: Schema.optionalKey(Schema.Record(Schema.String, one)) }),
    { unsafePreserveChecks: true }
  )
  const names = (input: unknown) => PolicyJson.names(kinds, Object.keys(schema.fields), input)
  const decodeFull = (input: unknown) => Problems.decode(schema, input, names(input))
  const written = PolicyJson.writtenPresets(presets)
  const inCode = ({ ladder: specs, pass: order, ...settings }: typeof one.Type): Written<unknown, unknown, unknown> => {
    const built = catalog.build(specs)
    return {
      settings: PolicyJson.written(settings),
      ladder: built,
      ...(order === undefined ? {} : { pass: Stages.passOf(order, byTag, built) })
    }
  }
  return {
    kinds,
    Schema: schema,
    decode: (input: unknown) => Effect.flatMap(Source.expand(input, written), decodeFull),
    load: (file: string, over: Settings.Input = {}) => {
      const full = Object.hasOwn(written, file)
        ? Source.expand({ extends: file }, written)
        : Source.read(file, written, decodeFull)
      return full.pipe(
        Effect.map((input) => Source.over(input, over)),
        Effect.flatMap(decodeFull),
        Source.inFile(file)
      )
    },
    options: ({ byRoute: routes, ...policy }: typeof schema.Type): Written<unknown, unknown, unknown> =>
      routes === undefined ? inCode(policy) : {
        ...inCode(policy),
        byRoute: Object.fromEntries(Object.entries(routes).map(([pattern, each]) => [pattern, inCode(each)]))
      },
    jsonSchema: () =>
      PolicyJson.schemaOf(
        one,
        { ...Settings.defaults, ladder: standard },
        kinds.length === builtInKinds.length
      )
  }
}

/**
 * The policies that may also be written in these kinds, beside those of this library.
 *
 * **Example** (Reading a policy with a rung of one's own)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Policy from "effect-compaction/Policy"
 * import * as Rung from "effect-compaction/Rung"
 * import * as Kind from "effect-compaction/Kind"
 *
 * const Redact = Kind.rung("app/redact", {
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
export const withKinds = <const Kinds extends ReadonlyArray<Kind.Any>>(
  ...kinds: Kinds
): Policies<[...BuiltIn, ...Kinds]> =>
  // The types say of each kind what its constructor inferred of it; at run time they are all one.
  make([...builtInKinds, ...kinds]) as unknown as Policies<[...BuiltIn, ...Kinds]>

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
 * Reads a policy from a file, or a preset by its name, with other settings over it. What the file extends, and the text of
 * `summary.directive`, are found from where it lies. Fails with the file and the path of every problem.
 *
 * @category constructors
 * @since 0.1.0
 */
export const load: (
  file: string,
  over?: Settings.Input
) => Effect.Effect<Policy, PolicyError, FileSystem.FileSystem | Path.Path> = builtIn.load

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
export const jsonSchema: () => JsonSchema.JsonSchema = builtIn.jsonSchema
