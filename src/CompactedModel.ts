/**
 * A language model whose prompts are compacted: every `generateText`, `generateObject` and `streamText` of an app goes
 * through the manager of its conversation, also those of `Chat` and of tool loops.
 *
 * **Details**
 *
 * Each call looks for `ContextManager.Current` in the caller's context; without one it goes through untouched. With one,
 * the prompt is synchronised with the manager, its view is sent, and the usage of the response is observed. When the
 * provider refuses the view because it does not fit, a smaller one is sent in the same call.
 *
 * **Gotchas**
 *
 * - The error channel of a language model is `AiError`. A pass that fails with anything but `BudgetInfeasible` does not
 *   fail the call: the last good view is sent. `BudgetInfeasible` and a conversation that cannot be made to fit become an
 *   `InvalidRequestError` with the numbers in its metadata, under `"effect-compaction"`.
 * - A summariser must be given the model that is not decorated.
 * - An `Effect.provide(model)` inside a decorated effect brings the plain model back: decorate the layers of models.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as ResponseIdTracker from "effect/ai/ResponseIdTracker"
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as ContextManager from "./ContextManager.ts"
import * as ModelTable from "./ModelTable.ts"
import * as Overflow from "./Overflow.ts"

/**
 * How a model is decorated.
 *
 * **Details**
 *
 * - `isContextOverflow`: which errors are the refusal of a request that does not fit.
 * - `maxOverflowRetries`: how many smaller views are sent after refusals in a row, over all calls of a conversation; a
 *   successful answer begins anew. 1 by default.
 * - `windowOf`: the window and the longest answer of a model, in tokens, by provider and name; the table of known models
 *   by default. Where it says nothing the settings of the manager hold.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly isContextOverflow?: (error: unknown) => error is AiError.AiError
  readonly maxOverflowRetries?: number
  readonly windowOf?: (
    provider: string,
    model: string
  ) => { readonly window: number; readonly maxOutput: number } | undefined
}

type Manager = ContextManager.ContextManager<unknown>

/** What one call sends, and the conversation it belongs to. */
interface Prepared {
  readonly prompt: Prompt.Prompt
  readonly manager: Manager
  readonly call: ContextManager.Call
}

/** The part of the options of every method that is read here; the rest goes to the model as it came. */
interface CallOptions {
  readonly prompt: Prompt.RawInput
  readonly toolkit?: unknown
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  (typeof value === "object" || typeof value === "function") && value !== null

const priced = new WeakMap<object, number>()

const charsPerToken = 4

/**
 * The price of the definitions of tools, in tokens: of their names, descriptions and parameters as JSON Schema. A toolkit
 * that has yet to be built, as an effect, says nothing.
 */
const priceOfTools = (toolkit: unknown): number => {
  if (!isRecord(toolkit) || !isRecord(toolkit.tools)) return 0
  const { tools } = toolkit
  const known = priced.get(tools)
  if (known !== undefined) return known
  let chars = 0
  for (const tool of Object.values(tools)) {
    if (!isTool(tool)) continue
    chars += tool.name.length + (tool.description?.length ?? 0) + JSON.stringify(Tool.getJsonSchema(tool)).length
  }
  const price = Math.ceil(chars / charsPerToken)
  priced.set(tools, price)
  return price
}

const isTool = (value: unknown): value is Tool.Any =>
  isRecord(value) && typeof value.name === "string" && "parametersSchema" in value

const byTable: NonNullable<Options["windowOf"]> = (_, model) => ModelTable.find(model)

/** The route of a call and what it says about the model, where a model layer names itself. */
const routeOf = Effect.fnUntraced(function*(windowOf: NonNullable<Options["windowOf"]>) {
  const provider = Option.getOrElse(yield* Effect.serviceOption(Model.ProviderName), () => "")
  const model = Option.getOrElse(yield* Effect.serviceOption(Model.ModelName), () => "")
  if (model === "") return {}
  const known = windowOf(provider, model)
  const route = `${provider}/${model}`
  return known === undefined ? { route } : { route, window: known.window, maxOutput: known.maxOutput }
})

/** A provider that chains responses on its server would hide a changed prefix from it. */
const forgetSent = Effect.map(
  Effect.serviceOption(ResponseIdTracker.ResponseIdTracker),
  Option.match({ onNone: () => undefined, onSome: (tracker) => tracker.clearUnsafe() })
)

const refusal = (error: { readonly _tag: string; readonly message: string }, original?: AiError.AiError) =>
  AiError.make({
    module: "CompactedModel",
    method: original?.method ?? "request",
    reason: new AiError.InvalidRequestError({
      description: error.message,
      metadata: {
        "effect-compaction": {
          ...plain(error),
          ...(original === undefined ? undefined : { refused: original.message })
        }
      }
    })
  })

/** The fields of a tagged error that are plain data, as metadata holds them. */
const plain = (error: object): { readonly [key: string]: string | number } => {
  const fields: { [key: string]: string | number } = {}
  for (const [key, value] of Object.entries(error)) {
    if (typeof value === "string" || typeof value === "number") fields[key] = value
  }
  return fields
}

const isInfeasible = (error: unknown): error is { readonly _tag: "BudgetInfeasible"; readonly message: string } =>
  isRecord(error) && error._tag === "BudgetInfeasible" && typeof error.message === "string"

/** The view as it goes out: the caller's own prompt when it says the same, and nothing chained when its prefix changed. */
const sending = Effect.fnUntraced(function*(original: Prompt.Prompt, request: ContextManager.Request) {
  if (request.prefixChanged !== null) yield* forgetSent
  const { content } = request.prompt
  const isSame = content.length === original.content.length &&
    content.every((each, at) => each === original.content[at])
  return isSame ? original : request.prompt
})

/** The view of the prompt of a call. What goes wrong in a pass does not fail the call, unless the policy asks for that. */
const viewOf = Effect.fnUntraced(function*(manager: Manager, prompt: Prompt.Prompt, call: ContextManager.Call) {
  const result = yield* Effect.result(manager.sync(prompt, call))
  if (result._tag === "Success") return yield* sending(prompt, result.success)
  if (isInfeasible(result.failure)) return yield* refusal(result.failure)
  yield* Effect.logWarning("compaction failed, the last good view is sent", result.failure)
  return yield* sending(prompt, yield* manager.undecided(call))
})

const refusedOf = (error: AiError.AiError): Overflow.Refused =>
  "description" in error.reason && typeof error.reason.description === "string"
    ? Overflow.refusedOf(error.reason.description)
    : {}

/**
 * Decorates a language model. Prefer {@link withCompaction}, which decorates a layer and keeps what else it provides.
 *
 * @category combining
 * @since 0.1.0
 */
export const decorate = (inner: LanguageModel.LanguageModel, options: Options = {}): LanguageModel.LanguageModel => {
  const { isContextOverflow = Overflow.isContextOverflow, maxOverflowRetries = 1, windowOf = byTable } = options
  /** Refusals in a row, by conversation. */
  const refusals = new WeakMap<Manager, number>()

  const prepare = Effect.fnUntraced(function*(given: CallOptions) {
    const prompt = Prompt.make(given.prompt)
    const manager = yield* ContextManager.Current
    if (manager === undefined) return undefined
    const overhead = priceOfTools(given.toolkit)
    const call: ContextManager.Call = { ...yield* routeOf(windowOf), ...(overhead === 0 ? undefined : { overhead }) }
    const prepared: Prepared = { prompt: yield* viewOf(manager, prompt, call), manager, call }
    return prepared
  })

  /** A smaller view after a refusal, or the refusal itself when there were too many or nothing smaller is left. */
  const smaller = Effect.fnUntraced(function*({ call, manager, prompt }: Prepared, error: AiError.AiError) {
    const count = refusals.get(manager) ?? 0
    if (count >= maxOverflowRetries) return yield* error
    refusals.set(manager, count + 1)
    const request = yield* manager.recover(refusedOf(error), call).pipe(
      Effect.catchTag("ContextCannotFit", (cannot) => refusal(cannot, error))
    )
    return { manager, call, prompt: yield* sending(prompt, request) }
  })

  const answered = (manager: Manager, usage: Response.Usage) => {
    refusals.delete(manager)
    return manager.observe(usage)
  }

  /** Calls until the provider takes the view. Whatever else fails leaves no request in flight behind. */
  const attempt = <A extends { readonly usage: Response.Usage }, R>(
    prepared: Prepared,
    send: (prompt: Prompt.Prompt) => Effect.Effect<A, unknown, R>
  ): Effect.Effect<A, unknown, R> =>
    Effect.tap(send(prepared.prompt), (response) => answered(prepared.manager, response.usage)).pipe(
      Effect.catch((error) =>
        isContextOverflow(error)
          ? Effect.flatMap(smaller(prepared, error), (next) => attempt(next, send))
          : Effect.andThen(prepared.manager.abandon, Effect.fail(error))
      ),
      Effect.onInterrupt(() => prepared.manager.abandon)
    )

  const once = (method: "generateText" | "generateObject") => (given: CallOptions) =>
    Effect.flatMap(prepare(given), (prepared) => {
      // The overloads of a model tie the options to its response; here they pass through as they came, with another prompt.
      const send = (prompt: Prompt.Prompt) => (inner[method] as unknown as Method)({ ...given, prompt })
      return prepared === undefined ? (inner[method] as unknown as Method)(given) : attempt(prepared, send)
    })

  const streamFrom = (
    prepared: Prepared,
    send: (prompt: Prompt.Prompt) => Stream.Stream<Part, unknown, unknown>
  ): Stream.Stream<Part, unknown, unknown> => {
    let isEmitting = false
    let usage: Response.Usage | undefined
    let isRetried = false
    // Arrays as they come: a tap would split them into single parts.
    return send(prepared.prompt).pipe(
      Stream.mapArray((parts) => {
        for (const part of parts) {
          isEmitting ||= part.type !== "response-metadata"
          if (part.type === "finish") usage = part.usage
        }
        return parts
      }),
      Stream.catch((error) => {
        // What was emitted cannot be taken back: a second attempt would say it twice.
        if (isEmitting || !isContextOverflow(error)) return Stream.fail(error)
        isRetried = true
        return Stream.unwrap(Effect.map(smaller(prepared, error), (next) => streamFrom(next, send)))
      }),
      Stream.ensuring(Effect.suspend(() => {
        if (isRetried) return Effect.void
        return usage === undefined ? prepared.manager.abandon : answered(prepared.manager, usage)
      }))
    )
  }

  const stream = (given: CallOptions) =>
    Stream.unwrap(Effect.map(prepare(given), (prepared) => {
      const send = (prompt: Prompt.Prompt) => (inner.streamText as unknown as StreamMethod)({ ...given, prompt })
      return prepared === undefined ? (inner.streamText as unknown as StreamMethod)(given) : streamFrom(prepared, send)
    }))

  return LanguageModel.LanguageModel.of({
    ...inner,
    // Each has the signature of the method it stands for, since it returns what that returns.
    generateText: once("generateText") as unknown as LanguageModel.LanguageModel["generateText"],
    generateObject: once("generateObject") as unknown as LanguageModel.LanguageModel["generateObject"],
    streamText: stream as unknown as LanguageModel.LanguageModel["streamText"]
  })
}

type Part = Response.StreamPart<Record<string, Tool.Any>>

type Method = (options: CallOptions) => Effect.Effect<{ readonly usage: Response.Usage }, unknown, unknown>

type StreamMethod = (options: CallOptions) => Stream.Stream<Part, unknown, unknown>

/**
 * Takes a language model and provides it decorated.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options?: Options
): Layer.Layer<LanguageModel.LanguageModel, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.map(LanguageModel.LanguageModel, (inner) => decorate(inner, options))
  )

/**
 * Decorates the model that a layer provides, and keeps what else it provides, such as the names of provider and model.
 *
 * **When to use**
 *
 * Around the layer of a provider's model, or around each step of an `ExecutionPlan`.
 *
 * @category layers
 * @since 0.1.0
 */
export const withCompaction = <ROut, E, RIn>(
  model: Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn>,
  options?: Options
): Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn> =>
  // `provideMerge` gives what both provide; that the model among it is the decorated one is no matter of types.
  Layer.provideMerge(layer(options), model) as Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn>
