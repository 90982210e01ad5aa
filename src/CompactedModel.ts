/**
 * A language model whose prompts are compacted: every `generateText`, `generateObject` and `streamText` of an app goes
 * through the manager of its conversation, also those of `Chat` and of tool loops.
 *
 * **Details**
 *
 * A call belongs to the conversation whose manager is `ContextManager.Current`. Without one its conversation is recognised as
 * a prompt cache recognises it, by its prefix: the next turn of a chat goes on in its session, a prompt that leaves an
 * earlier point of it is a fork with the decisions before that point, and an unknown prompt begins a session. The prompt is
 * synchronised with the session, its view is sent, and the usage of the response is observed. When the provider refuses the
 * view because it does not fit, a smaller one is sent in the same call.
 *
 * **Gotchas**
 *
 * - The error channel of a language model is `AiError`. A pass that fails with a typed error fails the call: {@link causeOf}
 *   gives that error back, and all its fields are in the metadata under `"effect-compaction"`. `onPassError` says otherwise.
 *   A defect in a stage sends the last good view, and is published.
 * - A summariser must be given the model that is not decorated. What a tool handler asks of a model while it runs is no part
 *   of the conversation and goes through untouched.
 * - Two conversations must not share a manager: a prompt of another one is taken for an edited history.
 * - Marks for the provider's prompt cache stay where the caller's prompt has them now; that of its last message stands at
 *   the end of what stays, before the notice. An adapter that sets one by itself should leave out messages marked
 *   `ephemeral`, see `Marks`.
 * - An `Effect.provide(model)` inside a decorated effect brings the plain model back: decorate the layers of models.
 *
 * @since 0.1.0
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type * as Tool from "effect/ai/Tool"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Calls from "./app/calls.ts"
import * as Pool from "./app/pool.ts"
import * as Refusal from "./app/refusal.ts"
import * as Route from "./app/route.ts"
import * as Span from "./app/span.ts"
import * as Tools from "./app/tools.ts"
import * as ContextManager from "./ContextManager.ts"
import * as Overflow from "./Overflow.ts"
import type * as Policy from "./Policy.ts"
import * as Prepare from "./policy/prepare.ts"
import * as RuntimeContext from "./RuntimeContext.ts"
import * as Summarizer from "./Summarizer.ts"
import * as CacheMarks from "./wire/cacheMarks.ts"

/**
 * How a model is decorated: a policy, and what is particular to its calls.
 *
 * **Details**
 *
 * - The keys of a policy, see `Policy.Options`: of the conversations that are recognised by their prefix.
 * - `onPassError`: what becomes of a call whose pass fails with a typed error: it fails with that error as its cause
 *   (`"fail"`, the default), or the view under the decisions taken so far is sent (`"sendUndecided"`); a function decides by
 *   the error.
 * - `isContextOverflow`: which errors are the refusal of a request that does not fit.
 * - `maxOverflowRetries`: how many smaller views are sent after refusals in a row, over all calls of a conversation; a
 *   successful answer begins anew. 1 by default.
 * - `windowOf`: the window and the longest answer of a model, in tokens, by provider and name; the table of known models
 *   by default. Where it says nothing the settings of the policy hold.
 * - `conversations`: how many conversations are recognised at most (64 by default), and how long one is kept that is idle
 *   (1 hour). To lose one costs decisions, never words.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out E = never, out R = never, out P = Policy.PassError> extends Policy.Options<E, R, P> {
  readonly onPassError?: PassErrorPolicy | ((error: unknown) => PassErrorPolicy)
  readonly isContextOverflow?: (error: unknown) => error is AiError.AiError
  readonly maxOverflowRetries?: number
  readonly windowOf?: (
    provider: string,
    model: string
  ) => { readonly window: number; readonly maxOutput: number } | undefined
  readonly conversations?: { readonly most?: number; readonly idleTimeToLive?: Duration.Input }
}

/**
 * What becomes of a call whose pass fails.
 *
 * @category models
 * @since 0.1.0
 */
export type PassErrorPolicy = "fail" | "sendUndecided"

/** What of the options is particular to calls. */
type CallsOptions = Pick<
  Options,
  "onPassError" | "isContextOverflow" | "maxOverflowRetries" | "windowOf" | "conversations"
>

/**
 * The error that a call failed with, where a policy, a session or the recovery from an overflow failed it; of a class, where
 * one is given, else `undefined`.
 *
 * **Example** (Telling why a call failed)
 *
 * ```ts
 * import * as CompactedModel from "effect-compaction/CompactedModel"
 * import * as Guard from "effect-compaction/Guard"
 *
 * const freedBy = (error: unknown) => CompactedModel.causeOf(error, Guard.ClearFloorUnsatisfied)?.freed
 *
 * console.log(freedBy(new Error("of something else"))) // => undefined
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const causeOf: {
  <Class extends abstract new(...args: never) => unknown>(error: unknown, of: Class): InstanceType<Class> | undefined
  (error: unknown): unknown
} = <Class extends abstract new(...args: never) => unknown>(error: unknown, of?: Class) => {
  const cause = Refusal.causeOf(error)
  // What is an instance of the class has the type of its instances.
  return (of === undefined || cause instanceof of ? cause : undefined) as InstanceType<Class> | undefined
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
  readonly release: Found["release"]
}

/** The part of the options of every method that is read here; the rest goes to the model as it came. */
interface CallOptions {
  readonly prompt: Prompt.RawInput
  readonly toolkit?: unknown
}

/**
 * Decorates a language model. Prefer {@link withCompaction}, which decorates a layer and keeps what else it provides.
 *
 * @category combining
 * @since 0.1.0
 */
export const decorate = (inner: LanguageModel.LanguageModel, options: CallsOptions = {}): LanguageModel.LanguageModel =>
  decorateNamed(inner, options, { provider: undefined, model: undefined }, undefined)

/** The conversation that a call belongs to, and what is done when the call has ended. */
interface Found {
  readonly manager: Manager
  readonly release: (isAnswered: boolean) => Effect.Effect<void>
}

/** The conversation of a call: the one in the caller's context, else the one that is recognised; none of a tool's own calls. */
const conversationOf = Effect.fnUntraced(function*(
  pool: Pool.Pool | undefined,
  { content }: Prompt.Prompt
): Effect.fn.Return<Found | undefined> {
  const current = yield* ContextManager.Current
  const within = yield* Calls.Within
  if (current !== undefined) {
    return current === within ? undefined : { manager: current, release: () => Effect.void }
  }
  return within !== undefined || pool === undefined ? undefined : yield* Pool.take(pool, content)
})

const decorateNamed = (
  inner: LanguageModel.LanguageModel,
  options: CallsOptions,
  names: Route.Names,
  pool: Pool.Pool | undefined
): LanguageModel.LanguageModel => {
  const {
    isContextOverflow = Overflow.isContextOverflow,
    maxOverflowRetries = 1,
    onPassError = "fail",
    windowOf = Route.byTable
  } = options
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
    if (request.prefixChanged !== null || tailed.has(manager)) yield* Calls.forgetSent
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
    const prompt = Prompt.make(given.prompt)
    const original: Original = { prompt, taken: CacheMarks.take(prompt) }
    const found = yield* conversationOf(pool, original.taken.prompt)
    if (found === undefined) return undefined
    const { manager, release } = found
    const overhead = Tools.priceOf(given.toolkit)
    const tools = Tools.setOf(given.toolkit)
    const runtimeContext = yield* RuntimeContext.Current
    const call: ContextManager.Call = {
      ...Route.of(names.model === undefined ? yield* Route.namesInContext : names, windowOf),
      ...(overhead === 0 ? undefined : { overhead }),
      ...(runtimeContext === undefined ? undefined : { runtimeContext }),
      ...Tools.recallOf(tools)
    }
    const request = yield* Effect.provideService(
      Calls.requestOf(manager, original.taken.prompt, call, onPassError),
      Summarizer.Tools,
      tools
    ).pipe(Effect.onError(() => release(false)))
    const prepared: Prepared = {
      prompt: yield* sending(manager, original, request),
      original,
      request,
      manager,
      call,
      tools,
      release
    }
    return prepared
  })

  /** What is answered is in a session that lasts before the call returns: nothing is asked for twice after a crash. */
  const answered = (
    { manager, release, request }: Prepared,
    usage: Response.Usage,
    parts: ReadonlyArray<Response.AnyPart>
  ) => {
    refusals.delete(manager)
    const said = manager.isDurable
      ? Effect.suspend(() => manager.append(Prompt.fromResponseParts(parts)))
      : Effect.void
    return manager.observe(usage, request).pipe(
      // What cannot be kept is refused at the next call, where there is an error channel for it.
      Effect.andThen(Effect.ignore(said)),
      Effect.andThen(release(true))
    )
  }

  const abandoned = ({ manager, release, request }: Prepared) =>
    Effect.andThen(manager.abandon(request), release(false))

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
      Effect.mapError((cannot) => Refusal.refuse(cannot, error)),
      Effect.onError(() => prepared.release(false))
    )
    if (Calls.runsTools(prepared.prompt)) {
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
      release: prepared.release,
      prompt: yield* sending(manager, original, request)
    }
    return next
  })

  /** Calls until the provider takes the view. Whatever else fails leaves no request in flight behind. */
  const attempt = <A extends Answer, R>(
    prepared: Prepared,
    send: (prompt: Prompt.Prompt) => Effect.Effect<A, unknown, R>
  ): Effect.Effect<A, unknown, R> =>
    Effect.provideContext(Span.mark(prepared.request, send(prepared.prompt)), Calls.within(prepared)).pipe(
      Effect.tap((response) => answered(prepared, response.usage, response.content)),
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
    const parts: Array<Response.AnyPart> = []
    let isRetried = false
    // Arrays as they come: a tap would split them into single parts.
    return Stream.provideContext(Span.markStream(prepared.request, send(prepared.prompt)), Calls.within(prepared)).pipe(
      Stream.mapArrayEffect((arrived) => {
        if (prepared.manager.isDurable) parts.push(...arrived)
        for (const part of arrived) {
          if (part.type === "error" && !isEmitting && mayRetry(prepared)) {
            const refused = Calls.errorOf(part.error)
            if (isContextOverflow(refused)) return Effect.fail(refused)
          }
          isEmitting ||= part.type !== "response-metadata"
          if (part.type === "finish") usage = part.usage
        }
        return Effect.succeed(arrived)
      }),
      Stream.catch((error) => {
        // What was emitted cannot be taken back: a second attempt would say it twice.
        if (isEmitting || !isContextOverflow(error)) return Stream.fail(error)
        isRetried = true
        return Stream.unwrap(Effect.map(smaller(prepared, error), (next) => streamFrom(next, send)))
      }),
      Stream.ensuring(Effect.suspend(() => {
        if (isRetried) return Effect.void
        return usage === undefined ? abandoned(prepared) : answered(prepared, usage, parts)
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
    generateObject: once(inner.generateObject as Method) as LanguageModel.LanguageModel["generateObject"],
    // As above.
    streamText: stream(inner.streamText) as LanguageModel.LanguageModel["streamText"]
  })
}

type Part = Response.StreamPart<Record<string, Tool.Any>>

/** What every answer has. */
interface Answer {
  readonly usage: Response.Usage
  readonly content: ReadonlyArray<Response.AnyPart>
}

type Method = (options: CallOptions) => Effect.Effect<Answer, unknown, unknown>

type StreamMethod = (options: CallOptions) => Stream.Stream<Part, unknown, unknown>

/**
 * Takes a language model and provides it decorated.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E = never, R = never, P = Policy.PassError>(
  options: Options<E, R, P> = {}
): Layer.Layer<LanguageModel.LanguageModel, Policy.PolicyError, LanguageModel.LanguageModel | R> =>
  Layer.effect(LanguageModel.LanguageModel, made(options))

const made = Effect.fnUntraced(function*<E, R, P>(options: Options<E, R, P>) {
  const { conversations = {}, isContextOverflow, maxOverflowRetries, onPassError, windowOf, ...policy } = options
  const inner = yield* LanguageModel.LanguageModel
  // The names beside the model are its own; those in the context of a call may be of another one.
  const names = yield* Route.namesInContext
  const unseen = yield* ContextManager.Current
  if (unseen !== undefined) {
    yield* Effect.logWarning(
      "a ContextManager was provided to the layer of the model, where no call sees it: provide its layer to the effect that "
        + "calls the model. Conversations are recognised by their prefix meanwhile."
    )
  }
  // A policy that is not right fails here, and not at the first call.
  const prepared = yield* Prepare.prepare(policy)
  const { idleTimeToLive = "1 hour", most = 64 } = conversations
  const context = yield* Effect.context<R>()
  const pool = yield* Pool.make({
    // A policy that was prepared once is right.
    begin: Effect.orDie(Effect.provideContext(ContextManager.makePrepared(prepared), context)),
    most,
    idle: Duration.toMillis(Duration.fromInputUnsafe(idleTimeToLive))
  })
  const calls: CallsOptions = {
    ...(isContextOverflow === undefined ? undefined : { isContextOverflow }),
    ...(maxOverflowRetries === undefined ? undefined : { maxOverflowRetries }),
    ...(onPassError === undefined ? undefined : { onPassError }),
    ...(windowOf === undefined ? undefined : { windowOf })
  }
  return decorateNamed(inner, calls, names, pool)
})

/**
 * Decorates the model that a layer provides, and keeps what else it provides, such as the names of provider and model: every
 * conversation that goes through it is compacted, with nothing else provided.
 *
 * **When to use**
 *
 * Around the layer of a provider's model, or around each step of an `ExecutionPlan`.
 *
 * @category layers
 * @since 0.1.0
 */
export const withCompaction: {
  <ROut, E, RIn>(
    model: Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn>
  ): Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn>
  <ROut, E, RIn, E2 = never, R2 = never, P = Policy.PassError>(
    model: Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn>,
    options: Options<E2, R2, P>
  ): Layer.Layer<ROut | LanguageModel.LanguageModel, E | Policy.PolicyError, RIn | R2>
} = <ROut, E, RIn, E2, R2, P>(
  model: Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn>,
  options?: Options<E2, R2, P>
) =>
  // `provideMerge` gives what both provide. Without options there is no policy that could be wrong.
  Layer.provideMerge(layer(options), model) as Layer.Layer<ROut | LanguageModel.LanguageModel, E, RIn>
