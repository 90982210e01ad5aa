/**
 * Many conversations, by id: each is made when it is first asked for and ends when it was idle for a while. Where a
 * `SessionStore` is in the context each is kept there under its id, and goes on where it ended.
 *
 * @since 0.1.0
 */
import * as Chat from "effect/ai/Chat"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ContextManager from "./ContextManager.ts"
import type * as Policy from "./Policy.ts"
import * as SessionStore from "./SessionStore.ts"

/**
 * A keyed map of conversations.
 *
 * **Details**
 *
 * - `chat`: the chat of a conversation, with all that was said in it: each call of the chat goes through its session, where
 *   the model is decorated. It is the same chat for everybody who holds it.
 * - `get`: the manager of a conversation, the same one for everybody who holds it; it is held until the scope closes.
 * - `provide`: runs an effect as part of a conversation: a decorated model finds its manager.
 * - `drop`: ends a conversation at once, unless somebody holds it. What is in a store stays there.
 *
 * @category models
 * @since 0.1.0
 */
export interface Conversations<out E = never> {
  readonly chat: (id: string) => Effect.Effect<Chat.Chat, ContextManager.OpenError, Scope.Scope>
  readonly get: (
    id: string
  ) => Effect.Effect<
    ContextManager.ContextManager<E | SessionStore.SessionLost>,
    ContextManager.OpenError,
    Scope.Scope
  >
  readonly provide: (
    id: string
  ) => <A, E2, R>(effect: Effect.Effect<A, E2, R>) => Effect.Effect<A, E2 | ContextManager.OpenError, R>
  readonly drop: (id: string) => Effect.Effect<void>
}

/**
 * How conversations are kept: how each is managed, and how long one stays after nobody holds it any more.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out E = never, out R = never, out P = Policy.PassError> extends Policy.Options<E, R, P> {
  readonly idleTimeToLive?: Duration.Input
}

/** One conversation: its manager, and the chat that goes through it. */
const begin = Effect.fnUntraced(function*<E, R, P>(id: string, options: Policy.Options<E, R, P>) {
  const manager = yield* ContextManager.openWherever(id, options)
  const chat = yield* Chat.fromPrompt(yield* manager.history)
  const within = <A, E2, R2>(call: Effect.Effect<A, E2, R2>) =>
    Effect.provideService(call, ContextManager.Current, manager)
  // Each has the signature of the method it stands for, since it calls that one and returns what it returns.
  const bound: Chat.Chat = {
    ...chat,
    generateText: ((options: Parameters<typeof chat.generateText>[0]) =>
      within(chat.generateText(options))) as typeof chat.generateText,
    // As above.
    generateObject: ((options: Parameters<typeof chat.generateObject>[0]) =>
      within(chat.generateObject(options))) as typeof chat.generateObject,
    // As above.
    streamText: ((options: Parameters<typeof chat.streamText>[0]) =>
      Stream.provideService(chat.streamText(options), ContextManager.Current, manager)) as typeof chat.streamText
  }
  return { manager, chat: bound }
})

/**
 * Makes a map of conversations, which end with its scope at the latest. A conversation in memory that was idle for
 * `idleTimeToLive` (5 minutes by default) is gone, unless it was exported before; one in a store is only closed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*<E = never, R = never, P = Policy.PassError>(
  options: Options<E, R, P> = {}
): Effect.fn.Return<Conversations<E | P>, never, R | Scope.Scope> {
  const { idleTimeToLive = "5 minutes", ...managed } = options
  const store = yield* Effect.serviceOption(SessionStore.SessionStore)
  const held = yield* RcMap.make({
    lookup: (id: string) => {
      const begun = begin(id, managed)
      return Option.isNone(store) ? begun : Effect.provideService(begun, SessionStore.SessionStore, store.value)
    },
    idleTimeToLive
  })
  const get = (id: string) => Effect.map(RcMap.get(held, id), ({ manager }) => manager)
  return {
    chat: (id) => Effect.map(RcMap.get(held, id), ({ chat }) => chat),
    get,
    provide: (id) => (effect) =>
      Effect.scoped(
        Effect.flatMap(get(id), (manager) => Effect.provideService(effect, ContextManager.Current, manager))
      ),
    drop: (id) => RcMap.invalidate(held, id)
  }
})

/**
 * The conversations of an app, as a service with the errors inferred from its pass.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceClass<Self, Id extends string, E, R> extends Context.ServiceClass<Self, Id, Conversations<E>> {
  readonly layer: Layer.Layer<Self, never, R>
}

/**
 * Declares the conversations of an app as a service.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Service = <Self>() =>
<const Id extends string, E = never, R = never, P = Policy.PassError>(
  id: Id,
  options: Options<E, R, P> = {}
): ServiceClass<Self, Id, E | P, R> => {
  const Tag = Context.Service<Self, Conversations<E | P>>()(id)
  return Object.assign(Tag, { layer: Layer.effect(Tag, make(options)) })
}
