import type * as Prompt from "effect/ai/Prompt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { ContextManager } from "../ContextManager.ts"
import { sameMessage } from "../wire/sameMessage.ts"

type Manager = ContextManager<unknown>

/**
 * A conversation of the pool: its manager, what it was given last, and when. `calls`: how many of its calls have not ended.
 * `isAnswered`: whether the last one was answered.
 */
interface Held {
  readonly manager: Manager
  readonly scope: Scope.Closeable
  messages: ReadonlyArray<Prompt.Message>
  usedAt: number
  calls: number
  isAnswered: boolean
}

/**
 * Conversations that are recognised as a prompt cache recognises them: by their prefix.
 *
 * `held` are in the order in which they were used, the last one last. There are at most `most` of them, and none that was
 * idle for longer than `idle` milliseconds. To lose one costs decisions, never words.
 */
export interface Pool {
  readonly begin: Effect.Effect<Manager, never, Scope.Scope>
  readonly most: number
  readonly idle: number
  readonly scope: Scope.Scope
  readonly lock: Semaphore.Semaphore
  /** The conversations by the last message that each was given: a chat that goes on is found by it. */
  readonly byLast: WeakMap<Prompt.Message, Held>
  held: Array<Held>
}

export const make = Effect.fnUntraced(function*(options: {
  readonly begin: Effect.Effect<Manager, never, Scope.Scope>
  readonly most: number
  readonly idle: number
}): Effect.fn.Return<Pool, never, Scope.Scope> {
  const scope = yield* Effect.scope
  return { ...options, scope, lock: yield* Semaphore.make(1), byLast: new WeakMap(), held: [] }
})

/** How many messages at the beginning of a prompt a conversation was given. */
const commonWith = ({ messages }: Held, incoming: ReadonlyArray<Prompt.Message>): number => {
  let at = 0
  while (at < messages.length && at < incoming.length && sameMessage(messages[at]!, incoming[at]!)) at++
  return at
}

/** A conversation, and how much of it a prompt goes on from. */
interface Found {
  readonly held: Held
  readonly common: number
}

/** The conversation that goes on: the newest message of it that the prompt has, at the place where it was. */
const goingOn = (self: Pool, incoming: ReadonlyArray<Prompt.Message>): Found | undefined => {
  for (let at = incoming.length - 1; at >= 0; at--) {
    const held = self.byLast.get(incoming[at]!)
    if (held?.messages.length === at + 1 && held.messages[at] === incoming[at] && self.held.includes(held)) {
      return { held, common: at + 1 }
    }
  }
  return undefined
}

/** The conversation that shares the longest beginning with a prompt, of two the one that was used last. */
const longest = (self: Pool, incoming: ReadonlyArray<Prompt.Message>): Found | undefined => {
  let found: Found | undefined
  for (const held of self.held) {
    const common = commonWith(held, incoming)
    if (common > 0 && common >= (found?.common ?? 0)) found = { held, common }
  }
  return found
}

/** Whether a beginning says which conversation it is of: system prompts alone are those of all. */
const tells = (incoming: ReadonlyArray<Prompt.Message>, common: number): boolean =>
  incoming.slice(0, common).some((message) => message.role !== "system")

const end = (self: Pool, held: Held): Effect.Effect<void> => {
  self.held = self.held.filter((each) => each !== held)
  return Scope.close(held.scope, Exit.void)
}

/** Ends those that were idle for too long, and as many of the oldest as there are too many. One that is at work stays. */
const sweep = (self: Pool, now: number): Effect.Effect<void> => {
  const resting = self.held.filter(({ calls }) => calls === 0)
  const lapsed = resting.filter(({ usedAt }) => now - usedAt > self.idle)
  const surplus = Math.max(0, self.held.length - lapsed.length - self.most)
  const oldest = resting.filter((held) => !lapsed.includes(held)).slice(0, surplus)
  return Effect.forEach([...lapsed, ...oldest], (held) => end(self, held), { discard: true })
}

const enter = Effect.fnUntraced(function*(self: Pool, begin: Effect.Effect<Manager, never, Scope.Scope>, now: number) {
  const scope = yield* Scope.fork(self.scope)
  const manager = yield* Scope.provide(begin, scope)
  const held: Held = { manager, scope, messages: [], usedAt: now, calls: 0, isAnswered: false }
  self.held.push(held)
  return held
})

/**
 * Whether the same words again are another conversation's: a call that is tried again has ended before, and was not answered.
 */
const isTwin = ({ calls, isAnswered, messages }: Held, incoming: ReadonlyArray<Prompt.Message>): boolean =>
  calls > 0 || (isAnswered && incoming.length === messages.length)

/**
 * The conversation of a prompt. One that goes on from all that it was given is that conversation; one that leaves an earlier
 * point of it is a fork, with the decisions before that point; any other one begins.
 */
const find = Effect.fnUntraced(function*(self: Pool, incoming: ReadonlyArray<Prompt.Message>) {
  const now = yield* Clock.currentTimeMillis
  const found = goingOn(self, incoming) ?? longest(self, incoming)
  const isTold = found !== undefined && tells(incoming, found.common)
  const goesOn = isTold && found.common === found.held.messages.length && !isTwin(found.held, incoming)
  const held = goesOn
    ? found.held
    : yield* enter(self, isTold ? found.held.manager.fork : self.begin, now)
  held.messages = incoming
  held.usedAt = now
  held.calls++
  held.isAnswered = false
  const last = incoming.at(-1)
  if (last !== undefined) self.byLast.set(last, held)
  self.held = [...self.held.filter((each) => each !== held), held]
  yield* sweep(self, now)
  return held
})

/** The manager of the conversation of a prompt, and what is done when the call has ended. */
export const take = (
  self: Pool,
  incoming: ReadonlyArray<Prompt.Message>
): Effect.Effect<{ readonly manager: Manager; readonly release: (isAnswered: boolean) => Effect.Effect<void> }> =>
  Effect.map(Semaphore.withPermit(self.lock, Effect.uninterruptible(find(self, incoming))), (held) => ({
    manager: held.manager,
    release: (isAnswered) =>
      Effect.sync(() => {
        held.calls = Math.max(0, held.calls - 1)
        held.isAnswered = isAnswered
      })
  }))
