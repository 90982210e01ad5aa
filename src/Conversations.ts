/**
 * The managers of many conversations, by id: each is made when it is first asked for and ends when it was idle for a
 * while.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import * as ContextManager from "./ContextManager.ts"
import type * as Policy from "./Policy.ts"

/**
 * A keyed map of managers.
 *
 * **Details**
 *
 * - `get`: the manager of a conversation, the same one for everybody who holds it; it is held until the scope closes.
 * - `provide`: runs an effect as part of a conversation: a decorated model finds its manager.
 * - `drop`: ends a conversation at once, unless somebody holds it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Conversations<out E = never> {
  readonly get: (
    id: string
  ) => Effect.Effect<ContextManager.ContextManager<E>, Policy.PolicyError, Scope.Scope>
  readonly provide: (
    id: string
  ) => <A, E2, R>(effect: Effect.Effect<A, E2, R>) => Effect.Effect<A, E2 | Policy.PolicyError, R>
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

/**
 * Makes a map of conversations, which end with its scope at the latest. A conversation that was idle for `idleTimeToLive`
 * (5 minutes by default) is gone, unless it was exported before.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*<E = never, R = never, P = Policy.PassError>(
  options: Options<E, R, P> = {}
): Effect.fn.Return<Conversations<E | P>, never, R | Scope.Scope> {
  const { idleTimeToLive = "5 minutes", ...managed } = options
  const managers = yield* RcMap.make({
    lookup: (_: string) => ContextManager.make(managed),
    idleTimeToLive
  })
  const get = (id: string) => RcMap.get(managers, id)
  return {
    get,
    provide: (id) => (effect) =>
      Effect.scoped(
        Effect.flatMap(get(id), (manager) => Effect.provideService(effect, ContextManager.Current, manager))
      ),
    drop: (id) => RcMap.invalidate(managers, id)
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
