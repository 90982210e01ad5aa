import * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Guard from "../Guard.ts"
import * as Kind from "../Kind.ts"
import * as Ladder from "../Ladder.ts"
import * as Settings from "../Settings.ts"
import type * as Summarizer from "../Summarizer.ts"
import * as Wire from "../Wire.ts"
import * as PolicyChecks from "./checks.ts"
import * as Pass from "./pass.ts"
import * as Problems from "./problems.ts"
import * as Route from "./route.ts"

/**
 * What makes a policy in code.
 *
 * **Details**
 *
 * - `settings`: what the ladder and its guards go by; see `Settings`.
 * - `ladder`: what is climbed inside the standard pass, see {@link passOf}; the default is `Ladder.recommended`. With no
 *   rung at all nothing is ever compacted.
 * - `pass`: a whole pass in place of the standard one, without a ladder beside it; see {@link passFrom}, and
 *   `Policy.beforeCommit` to be asked before it is committed.
 * - `wire`: the rules that every request satisfies; the default satisfies all providers' at once.
 * - `whenStoreFails`: whether a turn of a durable session goes on while its store fails, and what could not be written waits
 *   (`"goOn"`, the default), or waits for the store itself (`"wait"`).
 * - `summaryRetry`: when a summary that could not be written is tried again, within its timeout; not at all by default.
 * - `byRoute`: the policies of calls to certain models, each whole by itself; see {@link byRoute}.
 *
 * `E` and `R` are the errors and services of the rungs, or of the whole pass; `P` are the errors of the pass around a
 * ladder, and a whole pass has none beside its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out E = never, out R = never, out P = Pass.PassError> {
  readonly settings?: Settings.Input
  readonly ladder?: Ladder.Ladder<E, R>
  readonly pass?: Pass.Pass<P, R>
  readonly wire?: Wire.Rules
  readonly whenStoreFails?: "goOn" | "wait"
  readonly summaryRetry?: Schedule.Schedule<unknown, Summarizer.SummaryError | Guard.SummaryNotSmaller>
  readonly byRoute?: { readonly [pattern: string]: Options<E, R, P> }
}

type Given<O, Key extends keyof Options> = O extends { readonly [K in Key]?: infer Value } ? Value : never

/**
 * The errors of the rungs, or of the whole pass, of a policy in code, those of its routes included.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Failures<O> =
  | (Given<O, "ladder"> extends infer L ? L extends Ladder.Ladder<infer E, infer _R> ? E : never : never)
  | Ends<Given<O, "pass">>

/** The errors of a pass: where none is written those of the standard one. */
type Ends<P> = unknown extends P ? Pass.PassError
  : P extends Pass.Pass<infer E, infer _R> ? E
  : P extends undefined ? Pass.PassError
  : never

/**
 * What the rungs, or the whole pass, of a policy in code need.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Needs<O> =
  | (Given<O, "ladder"> extends infer L ? L extends Ladder.Ladder<infer _E, infer R> ? R : never : never)
  | (Given<O, "pass"> extends infer P ? P extends Pass.Pass<infer _E, infer R> ? R : never : never)

/** Any policy in code. */
export type AnyOptions = Options<unknown, unknown, unknown>

/** No key that a policy has not: a type that is inferred as a whole would let it through. */
type Exactly<O> = { readonly [K in Exclude<keyof O, keyof Options>]: never }

/**
 * A policy for each route, the provider and the model of a call. In a pattern `*` stands for any text. Of the patterns that
 * fit a route the most exact one counts, the one that says most of its letters; `default` counts for what none fits.
 *
 * **Example** (A smaller budget for a smaller model)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Policy from "effect-compaction/Policy"
 *
 * const policy = Policy.byRoute({
 *   "anthropic/claude-haiku-*": { settings: { maxTokens: 60_000 } },
 *   "anthropic/*": { settings: { maxTokens: 120_000 } },
 *   default: { settings: { maxTokens: 90_000 } }
 * })
 *
 * const program = Effect.map(Policy.prepare(policy), (prepared) => {
 *   const { name, settings } = Policy.resolve(prepared, "anthropic/claude-haiku-4-5")
 *   return [name, settings.maxTokens] // => ["anthropic/claude-haiku-*", 60000]
 * })
 *
 * Effect.runPromise(program)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const byRoute = <
  const Routes extends { readonly default: AnyOptions; readonly [pattern: string]: AnyOptions }
>(
  routes: Routes & { readonly [K in keyof Routes]: Exactly<Routes[K]> }
): Options<Failures<Routes[keyof Routes]>, Needs<Routes[keyof Routes]>, Failures<Routes[keyof Routes]>> => {
  const { default: standard, ...others } = routes
  // Each of them is one of the routes, so its errors and services are among theirs; the union is not seen through.
  return { ...standard, byRoute: others } as Options<
    Failures<Routes[keyof Routes]>,
    Needs<Routes[keyof Routes]>,
    Failures<Routes[keyof Routes]>
  >
}

/**
 * What a manager goes by in a call: a policy that was checked. `name` is the pattern of the route that it is of, `default`
 * where no other fits.
 *
 * @category models
 * @since 0.1.0
 */
export interface Resolved<out E = never, out R = never> {
  readonly name: string
  readonly settings: Settings.Settings
  readonly pass: Pass.Pass<E, R>
  readonly wire: Wire.Rules
  readonly whenStoreFails: "goOn" | "wait"
  readonly summaryRetry: Options["summaryRetry"]
}

/**
 * A policy that was checked, with those of its routes. By itself it is the one of every call that no route fits.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prepared<out E = never, out R = never> extends Resolved<E, R> {
  readonly routes: ReadonlyMap<string, Resolved<E, R>>
}

/**
 * What a manager goes by in a call to a route, the provider and the model; see {@link byRoute}.
 *
 * @category getters
 * @since 0.1.0
 */
export const resolve = <E, R>(self: Prepared<E, R>, route: string | undefined): Resolved<E, R> => {
  if (route === undefined || self.routes.size === 0) return self
  const pattern = Route.mostExact(self.routes.keys(), route)
  return pattern === undefined ? self : self.routes.get(pattern) ?? self
}

const given = (isRight: (value: object) => boolean, message: string) =>
  Schema.optionalKey(
    Schema.Unknown.check(Schema.makeFilter((value) =>
      value === undefined || (Object(value) === value && isRight(Object(value))) ? undefined : message
    ))
  )

/** Options as they come from where types are erased. */
const Erased = Schema.Struct({
  settings: Schema.withDecodingDefaultKey<typeof Settings.Settings>(Effect.succeed({}))(Settings.Settings),
  ladder: given(
    (value) => "rungs" in value && typeof value === "function",
    "write what Ladder.make(…) gave"
  ),
  pass: given(
    Pass.isPass,
    "write the ladder as ladder: …, or make a whole pass of stages with Policy.passOf(…) or Policy.passFrom(…): a bare "
      + "ladder has no gate before it and would shorten every request"
  ),
  wire: Schema.optionalKey(Schema.Unknown),
  whenStoreFails: Schema.optionalKey(Schema.Literals(["goOn", "wait"])),
  summaryRetry: Schema.optionalKey(Schema.Unknown),
  byRoute: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}).check(
  Schema.makeFilter(({ ladder, pass }) =>
    ladder === undefined || pass === undefined || (Pass.isPass(pass) && pass.ladder === ladder) ? undefined : {
      path: ["ladder"],
      issue: "take it out, or put it into the pass: a whole pass is run alone, without the ladder beside it"
    }
  )
)

const names: Problems.Names = {
  tags: {},
  keysAt: (path) => {
    if (path.length === 0) return Object.keys(Erased.fields)
    if (path[0] !== "settings") return []
    return Object.keys(path.length === 1 ? Settings.Settings.fields : Settings.Summary.fields)
  },
  insteadOf: (path, name) =>
    path.length === 0 && Object.hasOwn(Settings.Settings.fields, name)
      ? `write it under settings, { settings: { ${name}: … } }`
      : undefined
}

/** Checks the rungs of a ladder in code as those of one in JSON. */
const checkLadder = Effect.fnUntraced(function*(
  ladder: Ladder.Ladder<unknown, unknown>
): Effect.fn.Return<void, Problems.PolicyError> {
  for (const { message, name } of ladder.unknown) {
    return yield* Problems.one({ path: ["ladder"], expected: message, found: name })
  }
  // A rung of a team's own was made as the team says; one of this library has a kind.
  for (const [at, { spec }] of ladder.rungs.entries()) {
    const kind = [...Kind.builtIn.kinds, Kind.decide].find(({ tag }) => tag === spec?._tag)
    if (kind === undefined) continue
    const keys = Object.keys(kind.schema.fields).filter((key) => key !== "_tag")
    yield* Problems.decode<unknown, unknown>(kind.schema, spec, { tags: {}, keysAt: () => keys }).pipe(
      Problems.under(["ladder", at])
    )
  }
})

/**
 * What two keys of a policy in code say and cannot both hold is told, in the words in which a file is refused for it: a
 * manager serves all the same, by the options that say what then is to happen.
 */
const tell = (
  under: ReadonlyArray<PropertyKey>,
  { pass, settings }: Pick<Resolved<unknown, unknown>, "pass" | "settings">
): Effect.Effect<void> => {
  // A rung of a team's own has no data by which it could be another one's copy.
  const ladder = pass.ladder?.rungs.map(({ spec }, at) => spec ?? at) ?? []
  const checked = { ...settings, ladder }
  return Effect.forEach(
    PolicyChecks.problemsOf(checked),
    (problem) =>
      Effect.logWarning(`a policy contradicts itself: ${
        Problems.lineOf({
          path: problem.path[0] === "ladder" ? [...under, ...problem.path] : [...under, "settings", ...problem.path],
          expected: problem.issue,
          found: Problems.valueAt(checked, problem.path)
        })
      }`),
    { discard: true }
  )
}

const alone = Effect.fnUntraced(function*<E, R, P>(
  name: string,
  under: ReadonlyArray<string>,
  options: Options<E, R, P>
): Effect.fn.Return<Resolved<E | P, R>, Problems.PolicyError> {
  const { settings } = yield* Problems.decode(Erased, options, names)
  // Without a pass of the caller's, `P` are the errors of the standard one; without a ladder it needs nothing.
  const pass = options.pass ?? Pass.passOf(options.ladder ?? Ladder.recommended) as Pass.Pass<E | P, R>
  if (pass.ladder !== undefined) yield* checkLadder(pass.ladder)
  yield* tell(under, { pass, settings })
  return {
    name,
    settings,
    pass,
    wire: options.wire ?? Wire.all,
    whenStoreFails: options.whenStoreFails ?? "goOn",
    summaryRetry: options.summaryRetry
  }
})

/**
 * Checks a policy in code, and those of its routes, and gives what a manager goes by. Fails with all that is wrong: the path
 * of each bad key, what to write there instead, and what was found.
 *
 * @category converting
 * @since 0.1.0
 */
export const prepare = Effect.fnUntraced(function*<E = never, R = never, P = Pass.PassError>(
  options: Options<E, R, P>
): Effect.fn.Return<Prepared<E | P, R>, Problems.PolicyError> {
  const standard = yield* alone("default", [], options)
  const routes = new Map<string, Resolved<E | P, R>>()
  for (const [pattern, each] of Object.entries(options.byRoute ?? {})) {
    const { byRoute: nested, ...one } = each
    if (nested !== undefined) {
      return yield* Problems.one({
        path: ["byRoute", pattern, "byRoute"],
        expected: "take it out: a route has no routes of its own",
        found: undefined
      })
    }
    routes.set(pattern, yield* alone(pattern, ["byRoute", pattern], one).pipe(Problems.under(["byRoute", pattern])))
  }
  return { ...standard, routes }
})
