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
 * - A summariser must be given the model that is not decorated. What a tool handler asks of a model while it runs is no part
 *   of the conversation and goes through untouched.
 * - Two conversations must not share a manager: a prompt of another one is taken for an edited history. A call that belongs
 *   to none, such as one for a title, is made with `ContextManager.Current` set to `undefined`.
 * - Marks for the provider's prompt cache stay where the caller's prompt has them now; that of its last message stands at
 *   the end of what stays, before the notice. An adapter that sets one by itself should leave out messages marked
 *   `ephemeral`, see `Marks`.
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
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Budget from "./Budget.ts"
import * as ContextManager from "./ContextManager.ts"
import * as Overflow from "./Overflow.ts"
import * as RuntimeContext from "./RuntimeContext.ts"
import * as Summarizer from "./Summarizer.ts"
import * as CacheMarks from "./wire/cacheMarks.ts"

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

/** The caller's prompt, and what was taken off it. */
interface Original {
  readonly prompt: Prompt.Prompt
  readonly taken: CacheMarks.Taken
}

/** What one call sends, and the conversation it belongs to. */
interface Prepared {
  readonly prompt: Prompt.Prompt
  readonly original: Original
  readonly request: ContextManager.Request
  readonly manager: Manager
  readonly call: ContextManager.Call
  readonly tools: Summarizer.ToolSet | undefined
}

/** The part of the options of every method that is read here; the rest goes to the model as it came. */
interface CallOptions {
  readonly prompt: Prompt.RawInput
  readonly toolkit?: unknown
}

/** The tools of a call, for a summary that is going to be asked for with the same ones; `undefined` where there are none. */
const toolsOf = (toolkit: unknown): Summarizer.ToolSet | undefined => {
  if (!isRecord(toolkit) || !isRecord(toolkit.tools)) return undefined
  const tools = Object.entries(toolkit.tools).flatMap(([name, tool]) => isTool(tool) ? [[name, tool] as const] : [])
  return tools.length === 0 ? undefined : Object.fromEntries(tools)
}

/** Whose model is decorated, where a layer names it. */
interface Names {
  readonly provider: string | undefined
  readonly model: string | undefined
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
    // The name of any tool is typed as anything; it is a text.
    chars += String(tool.name).length + (tool.description ?? "").length
    chars += JSON.stringify(Tool.getJsonSchema(tool)).length
  }
  const price = Math.ceil(chars / charsPerToken)
  priced.set(tools, price)
  return price
}

const isTool = (value: unknown): value is Tool.Any =>
  isRecord(value) && typeof value.name === "string" && "parametersSchema" in value

const byTable: NonNullable<Options["windowOf"]> = (_, model) => Budget.modelOf(model)

const namesInContext = Effect.gen(function*() {
  return {
    provider: Option.getOrUndefined(yield* Effect.serviceOption(Model.ProviderName)),
    model: Option.getOrUndefined(yield* Effect.serviceOption(Model.ModelName))
  }
})

/** The route of a call and what it says about the model. */
const routeOf = ({ model, provider = "" }: Names, windowOf: NonNullable<Options["windowOf"]>) => {
  if (model === undefined) return {}
  const known = windowOf(provider, model)
  const route = `${provider}/${model}`
  return known === undefined ? { route } : { route, window: known.window, maxOutput: known.maxOutput }
}

/** The manager whose call is running: what a tool handler asks of a model is no part of the conversation it serves. */
const Within = Context.Reference<Manager | undefined>("effect-compaction/CompactedModel/Within", {
  defaultValue: () => undefined
})

/** A provider that chains responses on its server would hide a changed prefix from it. */
const forgetSent = Effect.map(
  Effect.serviceOption(ResponseIdTracker.ResponseIdTracker),
  Option.match({ onNone: () => undefined, onSome: (tracker) => tracker.clearUnsafe() })
)

/** The failure as the error channel of a model has it; the refusal of the provider, if there was one, is its cause. */
const refusal = (error: { readonly _tag: string; readonly message: string }, original?: AiError.AiError) => {
  const { reason } = original ?? {}
  const known = reason !== undefined && "metadata" in reason ? reason.metadata : {}
  const http = reason !== undefined && "http" in reason ? reason.http : undefined
  const refused = original === undefined ? undefined : { refused: original.message }
  const invalid = new AiError.InvalidRequestError({
    description: error.message,
    metadata: { ...known, "effect-compaction": { ...plain(error), ...refused } },
    ...(http === undefined ? undefined : { http })
  })
  return AiError.make({
    module: "CompactedModel",
    method: original?.method ?? "request",
    // No field of a reason holds what it came from, so it is set as JavaScript has it.
    reason: Object.assign(invalid, { cause: original ?? error })
  })
}

/** The fields of a tagged error that are plain data, as metadata holds them. */
const plain = (error: object): { readonly [key: string]: string | number } => {
  const fields: { [key: string]: string | number } = {}
  for (const [key, value] of Object.entries(error)) {
    if (typeof value === "string" || typeof value === "number") fields[key] = value
  }
  return fields
}

const isTagged = (error: unknown): error is { readonly _tag: string; readonly message: string } =>
  isRecord(error) && typeof error._tag === "string" && typeof error.message === "string"

const isInfeasible = (error: unknown): error is { readonly _tag: "BudgetInfeasible"; readonly message: string } =>
  isRecord(error) && error._tag === "BudgetInfeasible" && typeof error.message === "string"

/** The request of a call. What goes wrong in a pass does not fail the call, unless the policy asks for that. */
const requestOf = Effect.fnUntraced(function*(manager: Manager, prompt: Prompt.Prompt, call: ContextManager.Call) {
  const result = yield* Effect.result(manager.sync(prompt, call))
  if (result._tag === "Success") return result.success
  if (isInfeasible(result.failure)) return yield* refusal(result.failure)
  yield* Effect.logWarning("compaction failed, the last good view is sent", result.failure)
  return yield* manager.undecided(call, result.failure)
})

/** What a stream says went wrong, in a part of its own, as the failure that it is. */
const errorOf = (error: unknown): AiError.AiError =>
  AiError.isAiError(error) ? error : AiError.make({
    module: "CompactedModel",
    method: "streamText",
    reason: new AiError.UnknownError({
      description: error instanceof Error ? error.message : typeof error === "string" ? error : JSON.stringify(error)
    })
  })

/** Whether an approved call has no result yet: a tool runs before the request is sent, each time it is sent. */
const runsTools = ({ content }: Prompt.Prompt): boolean => {
  const asked = new Map<string, string>()
  const answered = new Set<string>()
  for (const message of content) {
    if (message.role === "assistant") {
      for (const part of message.content) {
        if (part.type === "tool-approval-request") asked.set(part.approvalId, part.toolCallId)
      }
    } else if (message.role === "tool") {
      for (const part of message.content) if (part.type === "tool-result") answered.add(part.id)
    }
  }
  if (asked.size === 0) return false
  return content.some((message) =>
    message.role === "tool" &&
    message.content.some((part) =>
      part.type === "tool-approval-response" && part.approved && !answered.has(asked.get(part.approvalId) ?? "")
    )
  )
}

/**
 * Decorates a language model. Prefer {@link withCompaction}, which decorates a layer and keeps what else it provides.
 *
 * @category combining
 * @since 0.1.0
 */
export const decorate = (inner: LanguageModel.LanguageModel, options: Options = {}): LanguageModel.LanguageModel =>
  decorateNamed(inner, options, { provider: undefined, model: undefined })

const decorateNamed = (
  inner: LanguageModel.LanguageModel,
  options: Options,
  names: Names
): LanguageModel.LanguageModel => {
  const { isContextOverflow = Overflow.isContextOverflow, maxOverflowRetries = 1, windowOf = byTable } = options
  /** Refusals in a row, by conversation. */
  const refusals = new WeakMap<Manager, number>()
  /** The conversations whose last request had a tail: the next one does not extend it. */
  const tailed = new WeakSet<Manager>()

  /** The request as it goes out: the caller's own prompt when it says the same, and nothing chained to another prefix. */
  const sending = Effect.fnUntraced(function*(
    manager: Manager,
    { prompt: own, taken }: Original,
    request: ContextManager.Request
  ) {
    if (request.prefixChanged !== null || tailed.has(manager)) yield* forgetSent
    const { prompt, stableLength } = request
    if (stableLength < prompt.content.length) tailed.add(manager)
    else tailed.delete(manager)
    const isSame = prompt.content.length === own.content.length &&
      prompt.content.every((each, at) => each === own.content[at])
    if (isSame) return own
    const content = CacheMarks.place(prompt.content, stableLength, taken)
    return content === prompt.content ? prompt : Prompt.fromMessages(content)
  })

  const prepare = Effect.fnUntraced(function*(given: CallOptions) {
    const manager = yield* ContextManager.Current
    if (manager === undefined || manager === (yield* Within)) return undefined
    const prompt = Prompt.make(given.prompt)
    const original: Original = { prompt, taken: CacheMarks.take(prompt) }
    const overhead = priceOfTools(given.toolkit)
    const runtimeContext = yield* RuntimeContext.Current
    const call: ContextManager.Call = {
      ...routeOf(names.model === undefined ? yield* namesInContext : names, windowOf),
      ...(overhead === 0 ? undefined : { overhead }),
      ...(runtimeContext === undefined ? undefined : { runtimeContext })
    }
    const tools = toolsOf(given.toolkit)
    const request = yield* Effect.provideService(
      requestOf(manager, original.taken.prompt, call),
      Summarizer.Tools,
      tools
    )
    const prepared: Prepared = {
      prompt: yield* sending(manager, original, request),
      original,
      request,
      manager,
      call,
      tools
    }
    return prepared
  })

  const answered = ({ manager, request }: Prepared, usage: Response.Usage) => {
    refusals.delete(manager)
    return manager.observe(usage, request)
  }

  const abandoned = ({ manager, request }: Prepared) => manager.abandon(request)

  const mayRetry = ({ manager }: Prepared) => (refusals.get(manager) ?? 0) < maxOverflowRetries

  /** A smaller view after a refusal, or the refusal itself when there were too many or nothing smaller is left. */
  const smaller = Effect.fnUntraced(function*(prepared: Prepared, error: AiError.AiError) {
    const { call, manager, original, tools } = prepared
    if (!mayRetry(prepared)) {
      yield* abandoned(prepared)
      return yield* error
    }
    refusals.set(manager, (refusals.get(manager) ?? 0) + 1)
    const request = yield* manager.recover(Overflow.refusedOf(Overflow.textOf(error)), call).pipe(
      Effect.provideService(Summarizer.Tools, tools),
      // What fails beside `ContextCannotFit` is the policy's own pass; its types are erased here.
      Effect.catch((cannot) => refusal(isTagged(cannot) ? cannot : { _tag: "unknown", message: String(cannot) }, error))
    )
    if (runsTools(prepared.prompt)) {
      // The tool that was approved has run. Sent once more, the request would run it again.
      yield* manager.abandon(request)
      return yield* error
    }
    const next: Prepared = {
      manager,
      call,
      original,
      request,
      tools,
      prompt: yield* sending(manager, original, request)
    }
    return next
  })

  /** Calls until the provider takes the view. Whatever else fails leaves no request in flight behind. */
  const attempt = <A extends { readonly usage: Response.Usage }, R>(
    prepared: Prepared,
    send: (prompt: Prompt.Prompt) => Effect.Effect<A, unknown, R>
  ): Effect.Effect<A, unknown, R> =>
    Effect.provideService(send(prepared.prompt), Within, prepared.manager).pipe(
      Effect.tap((response) => answered(prepared, response.usage)),
      Effect.catch((error) =>
        isContextOverflow(error)
          ? Effect.flatMap(smaller(prepared, error), (next) => attempt(next, send))
          : Effect.andThen(abandoned(prepared), Effect.fail(error))
      ),
      Effect.onInterrupt(() => abandoned(prepared))
    )

  // The overloads of a model tie the options to its response; here they pass through as they came, with another prompt.
  const once = (method: Method) => (given: CallOptions) =>
    Effect.flatMap(
      prepare(given),
      (prepared) => prepared === undefined ? method(given) : attempt(prepared, (prompt) => method({ ...given, prompt }))
    )

  const streamFrom = (
    prepared: Prepared,
    send: (prompt: Prompt.Prompt) => Stream.Stream<Part, unknown, unknown>
  ): Stream.Stream<Part, unknown, unknown> => {
    let isEmitting = false
    let usage: Response.Usage | undefined
    let isRetried = false
    // Arrays as they come: a tap would split them into single parts.
    return Stream.provideService(send(prepared.prompt), Within, prepared.manager).pipe(
      Stream.mapArrayEffect((parts) => {
        for (const part of parts) {
          if (part.type === "error" && !isEmitting && mayRetry(prepared)) {
            const refused = errorOf(part.error)
            if (isContextOverflow(refused)) return Effect.fail(refused)
          }
          isEmitting ||= part.type !== "response-metadata"
          if (part.type === "finish") usage = part.usage
        }
        return Effect.succeed(parts)
      }),
      Stream.catch((error) => {
        // What was emitted cannot be taken back: a second attempt would say it twice.
        if (isEmitting || !isContextOverflow(error)) return Stream.fail(error)
        isRetried = true
        return Stream.unwrap(Effect.map(smaller(prepared, error), (next) => streamFrom(next, send)))
      }),
      Stream.ensuring(Effect.suspend(() => {
        if (isRetried) return Effect.void
        return usage === undefined ? abandoned(prepared) : answered(prepared, usage)
      }))
    )
  }

  const stream = (method: StreamMethod) => (given: CallOptions) =>
    Stream.unwrap(
      Effect.map(prepare(given), (prepared) =>
        prepared === undefined ? method(given) : streamFrom(prepared, (prompt) =>
          method({ ...given, prompt })))
    )

  return LanguageModel.LanguageModel.of({
    ...inner,
    // Each has the signature of the method it stands for, since it calls that one and returns what it returns.
    generateText: once(inner.generateText) as LanguageModel.LanguageModel["generateText"],
    // As above.
    generateObject: once(inner.generateObject as Method) as LanguageModel.LanguageModel["generateObject"],
    // As above.
    streamText: stream(inner.streamText) as LanguageModel.LanguageModel["streamText"]
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
    // The names beside the model are its own; those in the context of a call may be of another one.
    Effect.zipWith(
      LanguageModel.LanguageModel,
      namesInContext,
      (inner, names) => decorateNamed(inner, options ?? {}, names)
    )
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
