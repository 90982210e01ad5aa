import * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import * as ResponseIdTracker from "effect/ai/ResponseIdTracker"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { PassErrorPolicy } from "../CompactedModel.ts"
import type { Call, ContextManager } from "../ContextManager.ts"
import * as Owned from "../policy/owned.ts"
import * as Refusal from "./refusal.ts"

type Manager = ContextManager<unknown>

/**
 * The request of a call. A typed failure of the pass fails the call, unless the options say otherwise; a stage that dies is a
 * bug, for which no call fails: the last good view is sent.
 */
export const requestOf = Effect.fnUntraced(function*(
  manager: Manager,
  prompt: Prompt.Prompt,
  call: Call,
  onPassError: PassErrorPolicy | ((error: unknown) => PassErrorPolicy)
) {
  const exit = yield* Effect.exit(manager.sync(prompt, call))
  if (Exit.isSuccess(exit)) return exit.value
  if (Cause.hasInterrupts(exit.cause)) return yield* Effect.interrupt
  const typed = Cause.findErrorOption(exit.cause)
  const isOfSession = Option.isSome(typed) && ofSession.has(Refusal.taggedOf(typed.value)._tag)
  const decided = Option.isNone(typed)
    ? "sendUndecided"
    : typeof onPassError === "function"
    ? onPassError(typed.value)
    : onPassError
  if (Option.isSome(typed) && (isOfSession || decided === "fail")) return yield* Refusal.refuse(typed.value)
  const failure = Cause.squash(exit.cause)
  // That it failed is an event, and told with it; this is for whoever looks for the bug.
  yield* Effect.logDebug("compaction failed", failure)
  return yield* Effect.mapError(manager.undecided(call, failure), (error) => Refusal.refuse(error))
})

/** Failures after which there is no good view: of messages that cannot be sent, and of a session that another process has. */
const ofSession: ReadonlySet<string> = new Set(["InvalidMessages", "SessionLost"])

/** What a stream says went wrong, in a part of its own, as the failure that it is. */
export const errorOf = (error: unknown): AiError.AiError =>
  AiError.isAiError(error) ? error : AiError.make({
    module: "CompactedModel",
    method: "streamText",
    reason: new AiError.UnknownError({
      description: error instanceof Error ? error.message : typeof error === "string" ? error : JSON.stringify(error)
    })
  })

/** Whether an approved call has no result yet: a tool runs before the request is sent, each time it is sent. */
export const runsTools = ({ content }: Prompt.Prompt): boolean => {
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

/** The manager whose call is running: what a tool handler asks of a model is no part of the conversation it serves. */
export const Within = Context.Reference<Manager | undefined>("effect-compaction/CompactedModel/Within", {
  defaultValue: () => undefined
})

/** What holds while a call runs: whose it is, and what it has for the owner of its route, for the client of the adapter. */
export const within = (
  { call, manager, prompt }: { readonly call: Call; readonly manager: Manager; readonly prompt: Prompt.Prompt }
): Context.Context<never> =>
  Context.add(Context.make(Owned.Carried, Owned.of(prompt.content, call.route)), Within, manager)

/** A provider that chains responses on its server would hide a changed prefix from it. */
export const forgetSent = Effect.map(
  Effect.serviceOption(ResponseIdTracker.ResponseIdTracker),
  Option.match({ onNone: () => undefined, onSome: (tracker) => tracker.clearUnsafe() })
)
