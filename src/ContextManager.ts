/**
 * One conversation, and what the model sees of it.
 *
 * A manager owns a transcript that only grows, the decisions taken about it, and the view that follows from both. It is
 * scoped: one manager for each conversation. One view is built at a time.
 *
 * **Gotchas**
 *
 * Either this library owns the history ({@link ContextManager.append} and {@link ContextManager.request}) or the caller
 * does ({@link ContextManager.sync} with the whole prompt each time); one session uses one of the two.
 *
 * **Example** (Requesting a view)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ContextManager from "effect-compaction/ContextManager"
 *
 * const program = Effect.gen(function*() {
 *   const manager = yield* ContextManager.make({ settings: { window: 200_000 } })
 *   yield* manager.append("Find out why the build fails.")
 *   const { prompt, count } = yield* manager.request
 *   return [prompt.content.length, count.kind] // => [1, "estimated"]
 * })
 *
 * Effect.runPromise(Effect.scoped(program))
 * ```
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type * as Budget from "./Budget.ts"
import type * as CompactionEvent from "./CompactionEvent.ts"
import type * as Decision from "./Decision.ts"
import type * as Guard from "./Guard.ts"
import type * as Overflow from "./Overflow.ts"
import type * as Policy from "./Policy.ts"
import * as Prepare from "./policy/prepare.ts"
import type * as RuntimeContext from "./RuntimeContext.ts"
import type * as Session from "./Session.ts"
import type { CompactionReport, ManualOptions } from "./session/byHand.ts"
import type * as Door from "./session/door.ts"
import type * as Errors from "./session/errors.ts"
import * as Manager from "./session/manager.ts"
import * as Opened from "./session/opened.ts"
import type * as SessionLog from "./SessionLog.ts"
import * as SessionStore from "./SessionStore.ts"
import type * as Stage from "./Stage.ts"
import type * as Summarizer from "./Summarizer.ts"
import type * as TokenMeter from "./TokenMeter.ts"
import type * as View from "./View.ts"

/**
 * What is sent next.
 *
 * **Details**
 *
 * - `id`: which request of the session it is, from 1; the same request once more has the same.
 * - `prompt`: the view, as the wire needs it. `stableLength`: how many of its messages are no ephemeral tail.
 * - `count`: the tokens it occupies, what is not in the prompt included where it is known, with their provenance.
 * - `generation`: how many boundaries there were.
 * - `prefixChanged`: why the stable part does not extend that of the request before, or `null` when it does. A provider
 *   that chains requests on its server must then be sent everything.
 * - `events`: what this request published.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly id: number
  readonly prompt: Prompt.Prompt
  readonly stableLength: number
  readonly count: TokenMeter.TokenCount
  readonly generation: number
  readonly prefixChanged: "boundary" | "repair" | "system" | null
  readonly events: ReadonlyArray<CompactionEvent.CompactionEvent>
}

/**
 * What is particular to one call.
 *
 * **Details**
 *
 * - `budget`: the budget of this call, in tokens, in place of what the settings say; `maxTokens` caps it still.
 * - `window`, `maxOutput`: of the model of this call, in tokens, in place of those in the settings.
 * - `overhead`: what of the request is not in the prompt, such as the definitions of tools, in tokens.
 * - `route`: the provider and the model; a reading of another route is no anchor.
 * - `runtimeContext`: what the app knows now, see `RuntimeContext`.
 * - `recall`: whether the model has the tools of `Recall`; then the notice and shortened results name them. What one call said
 *   holds for those after it that do not say.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly budget?: number
  readonly window?: number
  readonly maxOutput?: number
  readonly overhead?: number
  readonly route?: string
  readonly runtimeContext?: RuntimeContext.Input
  readonly recall?: boolean
}

/**
 * Where a session stands.
 *
 * **Details**
 *
 * - `entries`: of the transcript. `counts`: how many of them are removed, truncated and stubbed.
 * - `level`: the highest rung a committed pass reached. `streak`, `overrides`: of the clear floor. `refusals`: of the
 *   provenance gate.
 * - `policy`: which policy the last call went by: the pattern of its route, `default` where none fits.
 * - `reading`, `budget`: of the last request that was not the same one again; `null` before the first.
 * - `summary`: whether a summary is being written or waits for a boundary; `stopped` after too many failures, `null` where
 *   there are none.
 *
 * @category models
 * @since 0.1.0
 */
export interface Status {
  readonly entries: number
  readonly counts: Decision.Counts
  readonly level: number
  readonly generation: number
  readonly streak: number
  readonly overrides: number
  readonly refusals: number
  readonly reading: TokenMeter.Reading | null
  readonly budget: Budget.Budget | null
  readonly policy: string
  readonly lastBoundary: typeof CompactionEvent.Compacted.Type | null
  readonly lastSkip: typeof CompactionEvent.CompactionSkipped.Type | null
  readonly lastInfeasible: typeof CompactionEvent.Infeasible.Type | null
  readonly summary: "idle" | "running" | "ready" | "stopped" | null
}

// What can go wrong, each error with its numbers and what to do in its message; and what is taken in.
export { type Input, InvalidMessages } from "./session/door.ts"
export * from "./session/errors.ts"
// What is asked for by hand, and what came of it.
export type * from "./session/byHand.ts"

/**
 * Why compacting by hand did nothing, beside the errors of the policy's own pass.
 *
 * @category errors
 * @since 0.1.0
 */
export type ManualCompactionError =
  | Errors.CompactionBusy
  | Errors.CompactionCancelled
  | Errors.SpanChanged
  | Errors.CommitFailed
  | Errors.PersistenceFailed
  | Summarizer.SummaryError
  | Guard.SummaryNotSmaller

/** The error of a durable session that another process has taken over, where the errors of a manager have it. */
export type Lost<E> = Extract<E, SessionStore.SessionLost>

/**
 * A session as plain JSON: everything of its state. Restored in another process it gives the same bytes, and is billed the
 * same.
 *
 * @category models
 * @since 0.1.0
 */
export type SessionState = Manager.SavedJson

/**
 * A conversation and its view. Requests fail with the errors of the pass, nothing else.
 *
 * @category models
 * @since 0.1.0
 */
export interface ContextManager<out E = never> {
  /**
   * Adds messages to the history, one or many. What JSON has no word for is made JSON as a provider would be sent it, or
   * refused; then nothing is added.
   */
  readonly append: (input: Door.Input) => Effect.Effect<void, Door.InvalidMessages | Lost<E>>
  /** The view for the next call. The same request again returns the same view and decides nothing. */
  readonly request: Effect.Effect<Request, E>
  /** The view for the next call under what is particular to it. */
  readonly requestWith: (call: Call) => Effect.Effect<Request, E>
  /**
   * The view of a prompt that the caller keeps and passes whole: what is new is taken in. Where it is not the one seen
   * before (edited, rewound), the rest is taken anew, and the decisions taken since are dropped.
   */
  readonly sync: (prompt: Prompt.Prompt, call?: Call) => Effect.Effect<Request, E | Door.InvalidMessages>
  /**
   * What the provider billed for the last request. Only usage of this conversation's own requests counts: a title, a
   * judge or a summary bills elsewhere. Missing or malformed numbers leave the last reading in place, as stale. Where
   * requests overlap, `request` is the one that was billed: of another than the last nothing is taken.
   */
  readonly observe: (
    usage: {
      readonly inputTokens: TokenMeter.Usage
      readonly outputTokens?: { readonly total?: number | undefined }
    },
    request?: Pick<Request, "id">
  ) => Effect.Effect<void>
  /**
   * Nothing came of the last request: it failed or was interrupted, and no usage is going to answer it. Nothing of it
   * counts as sent: a notice is due again. Where requests overlap, `request` is the one that nothing came of.
   */
  readonly abandon: (request?: Pick<Request, "id">) => Effect.Effect<void>
  /**
   * Compacts now, whatever the count: the policy's own pass, with a summary where the settings have them, down to the target.
   * `None` when there is nothing useful to do. Turns go on while a summary is written; the next request carries what was done.
   */
  readonly compactNow: (
    options?: ManualOptions
  ) => Effect.Effect<Option.Option<CompactionReport>, E | ManualCompactionError>
  /**
   * What a pass for this cause would do now, under what was particular to the last call; `"pressure"` by default. Nothing is
   * committed or published, no model is asked, and the session is the same afterwards. The stages of a policy's own run.
   */
  readonly preview: (cause?: Stage.Cause) => Effect.Effect<Stage.Preview>
  /**
   * The view under the decisions taken so far: whatever the count, nothing is decided and nothing fails. For a caller that
   * would rather send the last good view than none; `failure`, what the pass failed with, is published.
   */
  readonly undecided: (call?: Call, failure?: unknown) => Effect.Effect<Request, Lost<E>>
  /**
   * A smaller view, after the provider refused the last request because it does not fit: the policy's own pass with a lower
   * aim. Neither threshold nor provenance nor clear floor stands before it. The maximum that the provider named caps every
   * budget from now on. A policy without rungs has nothing to recover with.
   */
  readonly recover: (refused: Overflow.Refused, call?: Call) => Effect.Effect<Request, E | Errors.ContextCannotFit>
  /** Whether the session is kept in a store: what was written there outlives the process. */
  readonly isDurable: boolean
  /**
   * A session of its own that begins where this one is now, with its decisions. It is kept in memory, whatever this one is
   * kept in, and ends with its scope.
   */
  readonly fork: Effect.Effect<ContextManager<E>, never, Scope.Scope>
  /**
   * Drops the message that an entry is of, by its seq, and all that came after it, with what was decided since. An entry
   * that is not there drops nothing.
   */
  readonly rewind: (entry: number) => Effect.Effect<void, Lost<E>>
  /**
   * Takes back the boundary that made a generation, and all later ones: the view is what it was before, with what came since.
   * It is one event of the session's log, and the next request carries it. Where that view occupies more than the trigger, the
   * next request compacts it again.
   */
  readonly undo: (
    generation: number
  ) => Effect.Effect<
    typeof CompactionEvent.CompactionUndone.Type,
    Errors.BoundaryNotFound | Errors.UndoCannotFit | Lost<E>
  >
  /** Makes sure that all of the session is in its store, and stays there. Does nothing where there is none. */
  readonly flush: Effect.Effect<void, SessionStore.WriteError>
  /** Lets summaries be made again after too many failures in a row. */
  readonly resumeSummaries: Effect.Effect<void>
  /** The whole history, as it was appended. */
  readonly history: Effect.Effect<Prompt.Prompt>
  /** The view as it is now, under the decisions taken so far. */
  readonly view: Effect.Effect<View.View>
  /** What has become of an entry, by its seq: whether it is in the view, what stands for it, or that it is lost. */
  readonly explain: (seq: number) => Effect.Effect<View.Receipt>
  /** What has become of every entry, by seq. */
  readonly receipts: Effect.Effect<ReadonlyArray<View.Receipt>>
  readonly export: Effect.Effect<SessionState>
  /** Continues a saved session in place of this one. Fails when the state does not decode; then nothing changes. */
  readonly restore: (state: SessionState) => Effect.Effect<void, Schema.SchemaError | Lost<E>>
  /** Forgets all of the session: the conversation, its decisions, what was billed and what is remembered. */
  readonly reset: Effect.Effect<void, Lost<E>>
  readonly status: Effect.Effect<Status>
  /**
   * What was billed, how full the window is, and with what. They go on where a session is opened again or restored.
   */
  readonly figures: Effect.Effect<Session.Figures>
  /** The status now, and again after each request and whenever a summary begins or ends. */
  readonly statusChanges: Stream.Stream<Status>
  /** What happens from now on. A subscriber that falls 1,024 events behind misses the oldest. */
  readonly events: Stream.Stream<CompactionEvent.CompactionEvent>
}

/**
 * Makes the manager of one conversation. It ends with its scope: a summary that is being written is interrupted then.
 *
 * Fails when the policy is not right, with the path of each bad key.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E = never, R = never, P = Policy.PassError>(
  options: Policy.Options<E, R, P> = {}
): Effect.Effect<ContextManager<E | P>, Policy.PolicyError, R | Scope.Scope> =>
  Effect.flatMap(Prepare.prepare(options), makePrepared)

/**
 * {@link make} of a policy that was checked already.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makePrepared = <E, R>(
  policy: Policy.Prepared<E, R>
): Effect.Effect<ContextManager<E>, never, R | Scope.Scope> =>
  // A session without a log is never lost to another process.
  Manager.make(policy, Manager.fresh) as Effect.Effect<ContextManager<E>, never, R | Scope.Scope>

/**
 * Makes the manager of a conversation whose session is kept in a `SessionStore`: it goes on where the log ends. What
 * changes the session is in the log before the call that changed it returns.
 *
 * **Gotchas**
 *
 * A turn does not fail because a disk is full: what cannot be written waits in order, `SessionNotStored` is published, and
 * `flush` fails until it is written. Only `compactNow` fails, and takes back what it did.
 *
 * @category constructors
 * @since 0.1.0
 */
export const open = Effect.fnUntraced(function*<E = never, R = never, P = Policy.PassError>(
  id: string,
  options: Policy.Options<E, R, P> = {}
): Effect.fn.Return<
  ContextManager<E | P | SessionStore.SessionLost>,
  OpenError,
  R | SessionStore.SessionStore | Scope.Scope
> {
  const policy = yield* Prepare.prepare(options)
  const log = yield* Effect.flatMap(SessionStore.SessionStore, ({ open }) => open(id))
  return yield* Manager.make(policy, yield* Opened.read(log))
})

/**
 * Why a session cannot be opened: its policy is not right, or its log cannot be read.
 *
 * @category errors
 * @since 0.1.0
 */
export type OpenError =
  | Policy.PolicyError
  | SessionLog.SessionUnreadable
  | SessionStore.OpenError
  | SessionStore.SessionLost

/**
 * The manager of the conversation that a call belongs to, whatever service it was declared as; this is where a decorated
 * model looks for it. There is none unless a layer of {@link Service} is provided, or one is put here.
 *
 * @category services
 * @since 0.1.0
 */
export const Current = Context.Reference<ContextManager<unknown> | undefined>(
  "effect-compaction/ContextManager/Current",
  {
    defaultValue: () => undefined
  }
)

/**
 * A context service whose shape carries the errors inferred from its pass, with the layer that makes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceClass<Self, Id extends string, E, R>
  extends Context.ServiceClass<Self, Id, ContextManager<E | SessionStore.SessionLost>>
{
  /**
   * Makes one manager; provide it once for each conversation. Needs what the stages of the pass need. Where a `SessionStore`
   * is in the context of the layer, the session is kept there, under the id of the service.
   */
  readonly layer: Layer.Layer<Self, OpenError, R>
}

/**
 * Declares the manager of an app as a service.
 *
 * **Example** (Declaring a service)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ContextManager from "effect-compaction/ContextManager"
 *
 * class AppContext extends ContextManager.Service<AppContext>()("app/AppContext", {
 *   settings: { window: 200_000, clearAtLeast: 20_000 }
 * }) {}
 *
 * const program = Effect.gen(function*() {
 *   const context = yield* AppContext
 *   yield* context.append("Find out why the build fails.")
 *   return yield* context.request
 * }).pipe(Effect.catchTag("ClearFloorUnsatisfied", (error) => Effect.die(error.message)))
 *
 * Effect.runPromise(program.pipe(Effect.provide(AppContext.layer), Effect.map((request) => request.prompt.content.length))) // => 1
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const Service = <Self>() =>
<const Id extends string, E = never, R = never, P = Policy.PassError>(
  id: Id,
  options: Policy.Options<E, R, P> = {}
): ServiceClass<Self, Id, E | P, R> => {
  const Tag = Context.Service<Self, ContextManager<E | P | SessionStore.SessionLost>>()(id)
  return Object.assign(Tag, {
    layer: Layer.effectContext(
      Effect.map(
        openWherever(id, options),
        (manager) => Context.add(Context.make(Tag, manager), Current, manager)
      )
    )
  })
}

/**
 * Makes the manager of a conversation: durable where a `SessionStore` is in the context, in memory where there is none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const openWherever = <E = never, R = never, P = Policy.PassError>(
  id: string,
  options: Policy.Options<E, R, P> = {}
): Effect.Effect<ContextManager<E | P | SessionStore.SessionLost>, OpenError, R | Scope.Scope> =>
  Effect.flatMap(
    Effect.serviceOption(SessionStore.SessionStore),
    Option.match({
      onNone: (): Effect.Effect<ContextManager<E | P | SessionStore.SessionLost>, OpenError, R | Scope.Scope> =>
        make(options),
      onSome: (store) => Effect.provideService(open(id, options), SessionStore.SessionStore, store)
    })
  )
