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
import type * as SchemaIssue from "effect/SchemaIssue"
import * as ContextManager from "./ContextManager.ts"
import type * as Ladder from "./Ladder.ts"
import * as PolicyChecks from "./policy/checks.ts"
import * as PolicyProblems from "./policy/problems.ts"
import { descriptions } from "./policy/text.ts"
import * as RungKind from "./RungKind.ts"
import * as Settings from "./Settings.ts"
import type * as Stage from "./Stage.ts"
import * as ToolResult from "./ToolResult.ts"

/**
 * Fails the decoding of a policy, with all that is wrong with it: the path of each bad key, what to write there instead,
 * and what was found.
 *
 * @category errors
 * @since 0.1.0
 */
export class PolicyError extends Schema.TaggedError<PolicyError>("effect-compaction/PolicyError")("PolicyError", {
  problems: Schema.Array(Schema.Struct({
    path: Schema.String,
    expected: Schema.String,
    found: Schema.optionalKey(Schema.String)
  }))
}) {
  override get message() {
    return this.problems
      .map(({ expected, found, path }) =>
        `${path === "" ? "" : `${path}: `}${expected}${found === undefined ? "" : ` (found ${found})`}`
      )
      .join("\n")
  }
}

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
 * What a policy stands for: the options of `ContextManager.make` and `ContextManager.Service`, and the ladder of its pass.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out E, out R> {
  readonly settings: Settings.Input
  readonly ladder: Ladder.Ladder<E, R>
  readonly pass: Stage.Stage<E | ContextManager.PassError, R>
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
  /** The options of a manager. The errors and services of its pass are those of all kinds of the catalog. */
  readonly options: (
    policy: PolicyOf<Kinds>
  ) => Options<RungKind.Error<Kinds[number]>, RungKind.Services<Kinds[number]>>
  /** The pass of a manager by itself, as a stage. */
  readonly pass: (
    policy: PolicyOf<Kinds>
  ) => Stage.Stage<RungKind.Error<Kinds[number]> | ContextManager.PassError, RungKind.Services<Kinds[number]>>
  /** The JSON Schema (draft 2020-12) of a policy as it is written. Checks over several keys are not in it. */
  readonly jsonSchema: JsonSchema.JsonSchema
}

/** The ladder of a policy that names none: the eight rungs of `Ladder.progressive`. */
const progressive: Policy["ladder"] = [
  { _tag: "truncateToolResults", fraction: 0.25 },
  { _tag: "truncateToolResults", fraction: 0.5 },
  { _tag: "remove", relax: 1 },
  { _tag: "truncateToolResults", fraction: 0.75 },
  { _tag: "remove", relax: 0.6 },
  { _tag: "truncateToolResults", fraction: 1 },
  { _tag: "remove", relax: 0.3 },
  { _tag: "lastResort", relax: 0.3 }
]

const parseOptions = { errors: "all", onExcessProperty: "error" } as const

/** The problems of a policy; empty when there are none. */
const problemsOf = (
  schema: Schema.Codec<unknown, unknown>,
  names: PolicyProblems.Names,
  issue: SchemaIssue.Issue,
  input: unknown
): ReadonlyArray<PolicyProblems.Problem> => {
  const problems = PolicyProblems.fromIssue(issue, input, names)
  const bad = new Set(problems.map(({ key }) => key))
  if (typeof input !== "object" || input === null || bad.has("")) return problems
  // The checks over several keys ran only if each key is right by itself; they are made again without the bad ones.
  const rest = Object.fromEntries(Object.entries(input).filter(([key]) => !bad.has(key)))
  const again = Schema.decodeResult(schema)(rest, parseOptions)
  if (again._tag === "Success") return problems
  const more = PolicyProblems.fromIssue(again.failure.issue, rest, names).filter(({ expected, key }) =>
    !bad.has(key) && !Array.from(bad).some((each) => new RegExp(`\\b${each}\\b`).test(expected))
  )
  return [...problems, ...more]
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
  const names = (input: unknown): PolicyProblems.Names => ({
    tags: Array.from(byTag.keys()),
    keysAt: (path) => {
      if (path.length === 0) return Object.keys(schema.fields)
      const tag = path.length === 2 && path[0] === "ladder"
        ? PolicyProblems.valueAt(input, [...path, "_tag"])
        : undefined
      return Object.keys(byTag.get(String(tag))?.schema.fields ?? {}).filter((key) => key !== "_tag")
    }
  })
  const options = ({ ladder: specs, ...settings }: typeof schema.Type): Options<unknown, unknown> => {
    const built = catalog.build(specs)
    // The end of every ladder, what makes a view fit that no rung made fit, would still compact.
    return {
      settings: written(settings),
      ladder: built,
      pass: specs.length === 0 ? Effect.succeed : ContextManager.passOf(built)
    }
  }
  return {
    Schema: schema,
    decode: (input: unknown) =>
      Effect.mapError(
        Schema.decodeUnknownEffect(schema)(input, parseOptions),
        ({ issue }) => new PolicyError({ problems: problemsOf(schema, names(input), issue, input) })
      ),
    options,
    pass: (policy: typeof schema.Type) => options(policy).pass,
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

const defaults = Schema.decodeSync(Settings.Settings)({})

/**
 * The defaults, which are those of the Python module `context-simple`: its eight rungs, its numbers, the notice on, every
 * size estimated.
 *
 * **Details**
 *
 * Where this library decides otherwise than the module, on purpose, it does so here too: see `Ladder`.
 *
 * Source: `microsoft/amplifier-module-context-simple`, its README and its configuration keys.
 *
 * @category presets
 * @since 0.1.0
 */
export const contextSimple: Policy = { ...defaults, ladder: progressive }

/**
 * `context-simple` with its hybrid meter: what the provider billed last, and the price of what came since. The provenance
 * gate comes with the meter: before the first usage nothing is compacted below the whole budget.
 *
 * Source: `token_meter: hybrid` of `microsoft/amplifier-module-context-simple`.
 *
 * @category presets
 * @since 0.1.0
 */
export const contextSimpleHybrid: Policy = { ...contextSimple, meter: "hybrid" }

/** Among the presets of systems to which a floor that is not reached is no error. */
const neverAnError = 1_000_000_000

/** The summaries of systems that write them within the request, each time the limit is reached and with no guard of ours. */
const withinRequest: Settings.Summary = {
  ...Schema.decodeSync(Settings.Summary)({}),
  mode: "between",
  hysteresis: false,
  cooldownRequests: 0,
  cooldownGrowth: 0,
  minSpan: 0,
  heedProtection: false,
  ledger: 0,
  faithful: "off"
}

/**
 * `context-simple` with its summary strategy: at 60 % of the budget the span is summarised beside the session, and the
 * checkpoint is appended.
 *
 * **Details**
 *
 * - Models: no merging of checkpoints, protected entries stay out, the span as text, 30 seconds, and nothing that keeps the
 *   next summary from starting at once.
 * - Does not model: the module's wording of the request for the summary.
 *
 * Source: `summary_strategy` of `microsoft/amplifier-module-context-simple`.
 *
 * @category presets
 * @since 0.1.0
 */
export const contextSimpleSummary: Policy = {
  ...contextSimple,
  summary: {
    ...withinRequest,
    mode: "background",
    mergeCheckpoints: false,
    heedProtection: true,
    layout: "standalone",
    placement: "append"
  }
}

/**
 * The compaction of the DeepSeek harness: at 80 % of the window every long tool result loses its middle, and what is left is
 * summarised if that is not enough.
 *
 * **Details**
 *
 * - Models: pruning without exemptions before the summary, a summary within the request as a suffix of the cached messages,
 *   a tail of 16 % that is kept whatever it holds, one further round, no cooldown.
 * - Does not model: a summary by another model in the same shape (it is given the span as text here). Where there is no
 *   summariser, what is over the budget after the prune is made to fit by the end of the ladder.
 *
 * Source: `compaction` and `compaction-tool-result-pruner` of the DeepSeek harness.
 *
 * @category presets
 * @since 0.1.0
 */
export const deepseekHarness: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  compactThreshold: 0.8,
  ladder: [{
    _tag: "pruneToolResults",
    ...ToolResult.pruneDefaults,
    keepNewest: 0,
    stopAtTarget: false
  }],
  summary: withinRequest
}

/**
 * The compaction of Claude Code: when the effective window less 13,000 tokens is full, the whole conversation is replaced
 * by a summary.
 *
 * **Details**
 *
 * - Models: the limit, for a window of 200,000 tokens with 20,000 for the answer (93 %); a summary within the request, as a
 *   suffix of the cached messages, that keeps no tail.
 * - Does not model: files and plans that are read again after it, and edits of the API beside it. Where there is no
 *   summariser, the oldest calls are removed with their results.
 *
 * Source: anthropics/claude-code#31806, and sessions it recorded.
 *
 * @category presets
 * @since 0.1.0
 */
export const claudeCode: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  outputReserve: 1,
  compactThreshold: 0.93,
  ladder: [{ _tag: "remove", relax: 1 }],
  summary: { ...withinRequest, prune: false, retain: 0 }
}

/**
 * The context editing of Anthropic's API, `clear_tool_uses_20250919` with its defaults: at 100,000 input tokens the old
 * tool results become a placeholder, all but those of the newest 3 uses.
 *
 * **Details**
 *
 * - Models: the trigger (half of a budget of 200,000 tokens; with another `window` or `maxTokens` it moves along), `keep` 3,
 *   a trigger that reads the tokens as the provider counts them. `clearAtLeast` is the `clear_at_least` of the API and off,
 *   as there; a pass that does not reach it is then no error. `exclude_tools` is `exclude`, `clear_tool_inputs`
 *   `clearInputs`, of the rung.
 * - Does not model: a trigger by the number of tool uses, the clearing of thinking (add the rung `clearReasoning`), and
 *   that the API clears all it may: the ladder stops a quarter of the way from the least possible to the trigger. The API
 *   leaves what is over the window to fail; here the end of the ladder makes it fit.
 *
 * Source: the public documentation of context editing, and the types of `@anthropic-ai/sdk` 1.14.0.
 *
 * @category presets
 * @since 0.1.0
 */
export const anthropicContextEditing: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  compactThreshold: 0.5,
  targetUsage: 0,
  protectedToolResults: 3,
  maxConsecutiveSkips: neverAnError,
  ladder: [{ _tag: "clearToolResults", keep: 3, exclude: [], clearInputs: false }]
}

/**
 * opencode: a summary when the window is full; its prune leaves old tool output out, and is not made when it frees less
 * than 20,000 tokens.
 *
 * **Details**
 *
 * - Models: the least gain of 20,000 tokens, refused without an error; the room of the longest answer kept free whole; a
 *   trigger that reads the last usage; a summary within the request, at most 4,096 tokens long, as a suffix of the cached
 *   messages, that keeps a quarter of the budget.
 * - Does not model: the protection of the newest 40,000 tokens of tool output and of two turns. The rung counts results: 86
 *   of them are 40,000 tokens at 464 each, the mean of 2,709 recorded ones. Nor the schedule: opencode prunes after
 *   every turn, here it is done when the threshold is reached; the summary comes first, and the prune serves where there is
 *   no summariser.
 *
 * Source: `session/compaction.ts` of opencode.
 *
 * @category presets
 * @since 0.1.0
 */
export const openCode: Policy = {
  ...contextSimple,
  notice: false,
  meter: "actual",
  outputReserve: 1,
  clearAtLeast: 20_000,
  maxConsecutiveSkips: neverAnError,
  clearFloorWhenOverBudget: "override",
  ladder: [{ _tag: "clearToolResults", keep: 86, exclude: ["skill"], clearInputs: false }],
  summary: { ...withinRequest, prune: false, maxTokens: 4_096, retain: 0.25 }
}

/**
 * The compaction of codex: a summary of everything at 90 % of the window, and tool outputs of at most 10,000 tokens.
 *
 * **Details**
 *
 * - Models: the size and the shape of a cut output, for every tool; the limit of 90 % of the window, whatever the answer
 *   may take; a count of the last usage and the price of what came since; a summary within the request, of everything, as
 *   a suffix of the cached messages, with the words of people beside it (20,000 tokens of a window of 258,400).
 * - Does not model: that codex cuts an output when it is recorded, whatever the window holds; here it is cut where there is
 *   no summariser. Nor that every message of a person stays a message of its own.
 *
 * Source: `history.rs` and `compact.rs` of openai/codex.
 *
 * @category presets
 * @since 0.1.0
 */
export const codex: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  outputReserve: 0,
  compactThreshold: 0.9,
  protectedToolResults: 0,
  shape: "headTail",
  budgetTokens: 10_000,
  ladder: [{ _tag: "truncateToolResults", fraction: 1 }],
  summary: { ...withinRequest, prune: false, retain: 0, ledger: 0.08 }
}

/**
 * Removes the oldest calls with their results, and the oldest words of the assistant, and does nothing else.
 *
 * **Details**
 *
 * - Models: a window that slides over the conversation, whole groups at a time. Nothing but its length protects an entry:
 *   `protectedRecent` and `protectedToolResults` are 0.
 * - Does not model: sliding at every request. A pass frees down to `targetUsage`, or the cached prefix would be lost each
 *   time. Messages of a person are not removed; long ones are cut, all but the first and the last.
 *
 * @category presets
 * @since 0.1.0
 */
export const slidingWindow: Policy = {
  ...contextSimple,
  notice: false,
  protectedRecent: 0,
  protectedToolResults: 0,
  ladder: [{ _tag: "remove", relax: 1 }]
}

/**
 * Never compacts: every request is the whole conversation, however long. What others are measured against.
 *
 * @category presets
 * @since 0.1.0
 */
export const none: Policy = { ...contextSimple, notice: false, ladder: [] }

/**
 * What to begin with: cheaper than `contextSimple`, with fewer boundaries, and more stays in view. No summaries.
 *
 * **Details**
 *
 * - A pass begins later and goes deeper (`compactThreshold`, `targetUsage`): each boundary is a rebuild of the cache, so
 *   few large ones are cheaper.
 * - All old tool results are cut, from both ends, before anything is removed: what a result began and ended with costs
 *   little. The newest 3 stay whole.
 * - The meter is the hybrid one, which falls back on prices where no usage is reported. What a pass frees is sized in the
 *   provider's tokens: where a provider counts more than the estimator, a target in prices is nearer to the trigger than it
 *   says, and there are more boundaries.
 *
 * The numbers were chosen by measurement; `docs/evidence.md` has it, beside the frontier of cost and retention.
 *
 * @category presets
 * @since 0.1.0
 */
export const recommended: Policy = {
  ...contextSimple,
  compactThreshold: 0.95,
  targetUsage: 0.43,
  protectedToolResults: 3,
  shape: "headTail",
  meter: "hybrid",
  sizing: "provider",
  provenanceGate: false,
  ladder: [
    { _tag: "truncateToolResults", fraction: 1 },
    { _tag: "remove", relax: 1 },
    { _tag: "remove", relax: 0.6 },
    { _tag: "remove", relax: 0.3 },
    { _tag: "lastResort", relax: 0.3 }
  ]
}

/**
 * The presets by name.
 *
 * @category presets
 * @since 0.1.0
 */
export const presets = {
  contextSimple,
  contextSimpleHybrid,
  contextSimpleSummary,
  deepseekHarness,
  codex,
  claudeCode,
  openCode,
  anthropicContextEditing,
  slidingWindow,
  none,
  recommended
} satisfies { readonly [name: string]: Policy }

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
 * The pass of a manager by itself, as a stage.
 *
 * @category converting
 * @since 0.1.0
 */
export const pass = builtIn.pass

/**
 * The JSON Schema (draft 2020-12) of a policy as it is written. Checks over several keys are not in it.
 *
 * @category converting
 * @since 0.1.0
 */
export const jsonSchema = (): JsonSchema.JsonSchema => builtIn.jsonSchema
