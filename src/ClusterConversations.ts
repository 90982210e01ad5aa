/**
 * Conversations that live on the runners of an Effect Cluster: each on one of them at a time, found by its id from
 * anywhere, and opened again from its log wherever it goes.
 *
 * **Details**
 *
 * A conversation is an entity, its id the entity's. It does one call at a time. It ends when it was idle for a while, or its
 * runner stops, and comes back from its log at the next call. A runner that dies takes nothing along: what was acknowledged
 * is in the `SessionStore`, and a call that it had not answered is done by the runner that has the conversation next.
 *
 * The module loads `effect/cluster`, so it is no part of the index.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type * as ClusterError from "effect/cluster/ClusterError"
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import type * as Sharding from "effect/cluster/Sharding"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Rpc from "effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ContextManager from "./ContextManager.ts"
import type * as Policy from "./Policy.ts"
import type * as SessionStore from "./SessionStore.ts"
import { reasonOf } from "./text/reason.ts"

/**
 * Fails when a call came to its conversation and could not be answered there. `error` is the tag of what it failed with.
 *
 * @category errors
 * @since 0.1.0
 */
export class ConversationFailed extends Schema.TaggedError<ConversationFailed>("effect-compaction/ConversationFailed")(
  "ConversationFailed",
  { id: Schema.String, error: Schema.String, reason: Schema.String }
) {
  override get message() {
    return `The conversation ${this.id} could not answer (${this.error}): ${this.reason} What was said is kept where it was `
      + "written: call again, by stream with the same key, and it is not said twice."
  }
}

const failedIn = (id: string) => (error: unknown): ConversationFailed =>
  new ConversationFailed({
    id,
    // What has a tag has one that is a text, by convention.
    error: (error as { readonly _tag?: string } | undefined)?._tag ?? "Error",
    reason: reasonOf(error)
  })

/** A prompt as text: a binary layout cannot tell the kinds of its parts apart. */
const PromptText = Schema.fromJsonString(Schema.toCodecJson(Prompt.Prompt))

const Given = { prompt: PromptText, key: Schema.String }

const keyed = ({ key }: { readonly key: string }): string => key

/** The protocol. What changes a conversation is persisted and has a key; a read is neither. */
const Conversation = Entity.make("effect-compaction/Conversation", [
  Rpc.make("Say", { payload: Given, success: Schema.String, error: ConversationFailed, primaryKey: keyed })
    .annotate(ClusterSchema.Persisted, true),
  Rpc.make("Append", { payload: Given, error: ConversationFailed, primaryKey: keyed })
    .annotate(ClusterSchema.Persisted, true),
  Rpc.make("Stream", { payload: Given, success: Schema.String, error: ConversationFailed, stream: true }),
  Rpc.make("History", { success: PromptText, error: ConversationFailed })
])

/** What marks the messages of a call in the log, so that a call that comes again is known. */
const mark = "effect-compaction/call"

/** Which call a message came with. */
const callOf = (message: Prompt.Message): string | undefined => {
  const value = message.options[mark]
  return typeof value === "string" ? value : undefined
}

const marked = (prompt: Prompt.Prompt, key: string): Prompt.Prompt =>
  Prompt.fromMessages(prompt.content.map((message) => {
    const options = { ...message.options, [mark]: key }
    return { ...message, options }
  }))

const textOf = (message: Prompt.Message): string =>
  message.role === "assistant"
    ? message.content.map((part) => part.type === "text" ? part.text : "").join("")
    : ""

/**
 * How conversations are kept, and what they answer.
 *
 * **Details**
 *
 * - `answer`: what a conversation says to what was appended to it last: as text, piece by piece. It appends the answer to
 *   the manager itself. {@link fromModel} is one; an app with tools writes its own loop.
 * - `policy`: of every conversation. `maxIdleTime`: how long one stays after its last call (5 minutes).
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<E, R, P, E2, R2> {
  readonly policy?: Policy.Options<E, R, P>
  readonly answer: (
    manager: ContextManager.ContextManager<E | P | SessionStore.SessionLost>
  ) => Stream.Stream<string, E2, R2>
  readonly maxIdleTime?: Duration.Input
}

/**
 * Answers with the language model of the context, without tools.
 *
 * @category answers
 * @since 0.1.0
 */
export const fromModel = <E>(manager: ContextManager.ContextManager<E>) =>
  Stream.unwrap(Effect.map(manager.request, (request) => {
    const parts: Array<Response.AnyPart> = []
    const taken = Effect.gen(function*() {
      yield* manager.append(Prompt.fromResponseParts(parts))
      const finish = parts.find((part) => part.type === "finish")
      yield* finish === undefined ? manager.abandon(request) : manager.observe(finish.usage, request)
    })
    return LanguageModel.streamText({ prompt: request.prompt }).pipe(
      Stream.map((part) => {
        parts.push(part)
        return part.type === "text-delta" ? part.delta : ""
      }),
      Stream.filter((text) => text !== ""),
      Stream.concat(Stream.drain(Stream.fromEffect(taken)))
    )
  }))

/** One conversation on its runner. */
interface Live<E> {
  readonly id: string
  readonly manager: ContextManager.ContextManager<E | SessionStore.SessionLost>
  /** The call that came last, and what was answered to it, once that is in the log. */
  last: { readonly key: string; readonly answer: string | undefined } | undefined
}

/** The last call that a history tells of. */
const lastOf = (history: Prompt.Prompt): Live<never>["last"] => {
  const key = callOf(
    history.content.findLast((message) => callOf(message) !== undefined) ?? Prompt.systemMessage({ content: "" })
  )
  const end = history.content.at(-1)
  if (key === undefined || end === undefined) return undefined
  const isAnswered = end.role === "assistant" && !end.content.some(({ type }) => type === "tool-call")
  return { key, answer: isAnswered ? textOf(end) : undefined }
}

const append = <E>(self: Live<E>, key: string, prompt: Prompt.Prompt) =>
  Effect.suspend(() => {
    // A runner died after it had written this, and before it had said so.
    if (self.last?.key === key) return Effect.void
    return Effect.map(self.manager.append(marked(prompt, key)), () => {
      self.last = { key, answer: undefined }
    })
  })

/** The answer to a call, piece by piece: given once more where it is in the log already. */
const say = <E, E2, R2>(
  self: Live<E>,
  answer: (manager: Live<E>["manager"]) => Stream.Stream<string, E2, R2>,
  key: string,
  prompt: Prompt.Prompt
) =>
  Stream.unwrap(Effect.map(append(self, key, prompt), () => {
    const known = self.last?.answer
    if (known !== undefined) return Stream.succeed(known)
    const pieces: Array<string> = []
    const done = Effect.map(self.manager.flush, () => {
      self.last = { key, answer: pieces.join("") }
    })
    return answer(self.manager).pipe(
      Stream.map((piece) => {
        pieces.push(piece)
        return piece
      }),
      Stream.concat(Stream.drain(Stream.fromEffect(done)))
    )
  }))

/**
 * Runs conversations on this runner; give it to every one of them.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRunner = <E = never, R = never, P = Policy.PassError, E2 = never, R2 = never>(
  { answer, maxIdleTime = "5 minutes", policy = {} }: Options<E, R, P, E2, R2>
): Layer.Layer<
  never,
  never,
  Sharding.Sharding | SessionStore.SessionStore | Exclude<R | R2, Scope.Scope>
> =>
  Conversation.toLayer(
    Effect.gen(function*() {
      const id = (yield* Entity.CurrentAddress).entityId
      const scope = yield* Effect.scope
      const context = yield* Effect.context<R | R2 | SessionStore.SessionStore>()
      let live: Live<E | P> | undefined
      /** Opened by the first call, which can be told what is wrong; what cannot be opened is tried again by the next one. */
      const opened = Effect.suspend(() => {
        if (live !== undefined) return Effect.succeed(live)
        return Effect.gen(function*() {
          const manager = yield* ContextManager.open(id, policy)
          const made: Live<E | P> = { id, manager, last: lastOf(yield* manager.history) }
          live = made
          return made
        }).pipe(Effect.provideService(Scope.Scope, scope), Effect.provideContext(context))
      })
      const failed = failedIn(id)
      const saying = ({ key, prompt }: { readonly key: string; readonly prompt: Prompt.Prompt }) =>
        Stream.unwrap(Effect.map(opened, (self) => say(self, answer, key, prompt))).pipe(
          Stream.provideContext(context),
          Stream.mapError(failed)
        )
      return Conversation.of({
        Say: ({ payload }) => Stream.mkString(saying(payload)),
        Stream: ({ payload }) => saying(payload),
        Append: ({ payload: { key, prompt } }) =>
          Effect.flatMap(opened, (self) => Effect.andThen(append(self, key, prompt), self.manager.flush)).pipe(
            Effect.mapError(failed)
          ),
        History: () => Effect.mapError(Effect.flatMap(opened, ({ manager }) => manager.history), failed)
      })
    }),
    { concurrency: 1, maxIdleTime }
    // All that is needed within is taken from the context of the entity; the compiler cannot tell for types to come.
  ) as Layer.Layer<never, never, Sharding.Sharding | SessionStore.SessionStore | Exclude<R | R2, Scope.Scope>>

/**
 * Why a call failed on its way, or where it was answered.
 *
 * @category errors
 * @since 0.1.0
 */
export type CallError =
  | ConversationFailed
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner

/**
 * What tells a call from others. The same key again, from anywhere, is the same call: it is done once, and answered alike.
 * Without one each call is its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  readonly key?: string
}

/**
 * One conversation, from anywhere.
 *
 * **Details**
 *
 * - `say`: adds to the conversation, and gives the whole answer. It is persisted: a runner that dies leaves it to the next.
 * - `stream`: the same piece by piece; a runner that dies ends it with an error. With the same key, the call goes on.
 * - `append`: adds without an answer. `history`: all that was said.
 *
 * @category models
 * @since 0.1.0
 */
export interface Chat {
  readonly say: (input: Prompt.RawInput, options?: CallOptions) => Effect.Effect<string, CallError>
  readonly stream: (input: Prompt.RawInput, options?: CallOptions) => Stream.Stream<string, CallError>
  readonly append: (input: Prompt.RawInput, options?: CallOptions) => Effect.Effect<void, CallError>
  readonly history: Effect.Effect<Prompt.Prompt, CallError>
}

/**
 * The conversations of a cluster.
 *
 * @category services
 * @since 0.1.0
 */
export class ClusterConversations extends Context.Service<ClusterConversations, {
  readonly chat: (id: string) => Chat
}>()("effect-compaction/ClusterConversations") {}

const draw = Effect.map(
  Effect.all([
    Random.nextIntBetween(0, 0x7fff_ffff),
    Random.nextIntBetween(0, 0x7fff_ffff),
    Random.nextIntBetween(0, 0x7fff_ffff)
  ]),
  (numbers) => numbers.map((number) => number.toString(36)).join("-")
)

const keyOf = (options: CallOptions = {}): Effect.Effect<string> =>
  options.key === undefined ? draw : Effect.succeed(options.key)

/**
 * Reaches conversations, wherever they live.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<ClusterConversations, never, Sharding.Sharding> = Layer.effect(
  ClusterConversations,
  Effect.map(Conversation.client, (client) => ({
    chat: (id) => ({
      say: (input, options) =>
        Effect.flatMap(keyOf(options), (key) => client(id).Say({ prompt: Prompt.make(input), key })),
      stream: (input, options) =>
        Stream.unwrap(Effect.map(keyOf(options), (key) => client(id).Stream({ prompt: Prompt.make(input), key }))),
      append: (input, options) =>
        Effect.flatMap(keyOf(options), (key) => client(id).Append({ prompt: Prompt.make(input), key })),
      history: client(id).History()
    })
  }))
)
