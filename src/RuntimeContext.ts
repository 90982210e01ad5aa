/**
 * What an app knows now and the model should see: the mode, a policy, the working directory, the date.
 *
 * It is a user entry of the session that this library owns, and no part of the system prompt: a system prompt that changes
 * makes the whole prompt cache cold. A new entry is appended only when it says something else than the newest one that is
 * still in the view. When a compaction takes that one away, it is sent again. Which of both holds is found out *after* a
 * compaction, and again when a request is sent once more after an overflow, so that no request goes without it.
 *
 * **Example** (Telling the model where it is)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ContextManager from "effect-compaction/ContextManager"
 *
 * const program = Effect.gen(function*() {
 *   const manager = yield* ContextManager.make()
 *   yield* manager.append("What is in this folder?")
 *   const first = yield* manager.requestWith({ runtimeContext: "cwd: /home/me" })
 *   yield* manager.append("And now?")
 *   const second = yield* manager.requestWith({ runtimeContext: "cwd: /home/me" })
 *   return [first.prompt.content.length, second.prompt.content.length]
 * })
 *
 * Effect.runPromise(Effect.scoped(program)) // => [2, 3]
 * ```
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Decision from "./Decision.ts"
import * as Marks from "./Marks.ts"
import * as Reminder from "./text/reminder.ts"
import type * as Transcript from "./Transcript.ts"
import { sameMessage } from "./wire/sameMessage.ts"

/**
 * The source of runtime contexts, see `Marks`.
 *
 * @category constants
 * @since 0.1.0
 */
export const source = "runtime-context"

const none = "There is no runtime context now: what earlier ones said does not hold any more."

/**
 * What a runtime context may be given as: its text, or an effect that finds it out for each request.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = string | Effect.Effect<string>

/**
 * What is in a view: a transcript under its decisions.
 *
 * @category models
 * @since 0.1.0
 */
export interface Surface {
  readonly transcript: Transcript.Transcript
  readonly index: Pick<Decision.Index, "removed" | "altered">
}

/**
 * The entry that must be appended so that a view says `current`, or `undefined` when it says that already. An empty text
 * takes back what an earlier entry said.
 *
 * @category constructors
 * @since 0.1.0
 */
export const project = ({ index, transcript }: Surface, current: string): Prompt.UserMessage | undefined => {
  const isEmpty = current.trim() === ""
  const seq = transcript.lastRuntime
  if (seq < 0 && isEmpty) return undefined
  const text = Reminder.envelope(source, isEmpty ? none : current)
  const message = Marks.set(
    Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] }),
    { source }
  )
  // What was altered says something else than it said.
  const isShown = seq >= 0 && !index.removed.has(seq) && !index.altered.has(seq)
  return isShown && sameMessage(transcript.entries[seq]!.message, message) ? undefined : message
}

/**
 * The runtime context of the calls of a decorated model; none by default.
 *
 * @category services
 * @since 0.1.0
 */
export const Current = Context.Reference<Input | undefined>("effect-compaction/RuntimeContext/Current", {
  defaultValue: () => undefined
})

/**
 * Gives the calls of an effect a runtime context. An effect as `current` is run for each request, while the request is
 * built: it must not wait for the conversation's own manager.
 *
 * @category running
 * @since 0.1.0
 */
export const provide = (current: Input) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Current, current)
