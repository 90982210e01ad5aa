/** Whether the prefix of a request is cold anyway, so that a boundary costs nothing. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Session from "../Session.ts"
import type * as Stage from "../Stage.ts"
import { sameMessage } from "../wire/sameMessage.ts"
import type * as Layout from "./layout.ts"
import * as Sent from "./sent.ts"
import type * as Turn from "./turn.ts"

/** Whether what stands at the head is what was sent there. */
const hasHead = ({ runtime, state }: Turn.Turn, { head }: Layout.Layout): boolean => {
  const sent = Sent.known(runtime.caches.sent, state, runtime.rules)
  return sent.head === head.length && head.every((message, at) => sameMessage(message, sent.messages[at]!))
}

/** Why the prefix of a request is cold, where the policy says how long a provider keeps one; `null` where it is warm. */
export const of = (
  turn: Turn.Turn,
  call: Session.State["call"],
  layout: Layout.Layout
): Effect.Effect<Stage.Cold | null> => {
  const { runtime: { settings: { cacheLife } }, state } = turn
  if (cacheLife === undefined) return Effect.succeed(null)
  return Effect.map(Clock.currentTimeMillis, (now) => {
    if (state.sent === null || state.sentAt === null) return "notSent"
    if (now - state.sentAt > Duration.toMillis(cacheLife)) return "idle"
    if ((call.route ?? "") !== (state.call.route ?? "")) return "route"
    // Tools stand before everything else in a prefix.
    if ((call.overhead ?? 0) !== (state.call.overhead ?? 0)) return "tools"
    return hasHead(turn, layout) ? null : "system"
  })
}

/** When a request is sent, for the next one; nothing where the policy does not ask. */
export const now = ({ runtime: { settings } }: Turn.Turn): Effect.Effect<{ readonly at?: number }> =>
  settings.cacheLife === undefined
    ? Effect.succeed({})
    : Effect.map(Clock.currentTimeMillis, (at) => ({ at: Math.max(0, Math.floor(at)) }))
