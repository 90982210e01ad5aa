/** What an entry is, read from its message once. */
import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../Marks.ts"
import type * as Transcript from "../Transcript.ts"
import * as Pairing from "./pairing.ts"

const none: ReadonlyArray<Transcript.Call> = []

/** The calls that wait for a result in a tool message; what the provider executes itself is answered beside its call. */
export const callsOf = (message: Prompt.AssistantMessage): ReadonlyArray<Transcript.Call> => {
  const calls: Array<Prompt.ToolCallPart> = []
  const requests: Array<string> = []
  for (const part of message.content) {
    if (part.type === "tool-call") calls.push(part)
    else if (part.type === "tool-approval-request") requests.push(part.toolCallId)
  }
  if (calls.length === 0) return none
  const ids = requests.length === 0 ? requests : calls.map(({ id }) => id)
  const asked = Pairing.asked(ids, requests)
  return calls.flatMap(({ id, name, providerExecuted }, at) =>
    providerExecuted ? [] : [{ id, name, approval: asked.includes(at) }]
  )
}

/** Whether a part of the message belongs to another message, or to nothing. */
export const hasLoosePart = (message: Prompt.AssistantMessage): boolean => {
  const ran: Array<string> = []
  const asked: Array<string> = []
  for (const part of message.content) {
    if (part.type === "tool-call" && part.providerExecuted) ran.push(part.id)
    else if (part.type === "tool-result") {
      const call = ran.indexOf(part.id)
      if (call < 0) return true
      ran.splice(call, 1)
    } else if (part.type === "tool-approval-request") {
      const isOwn = message.content.some((call) =>
        call.type === "tool-call" && !call.providerExecuted && call.id === part.toolCallId
      )
      if (!isOwn || asked.includes(part.toolCallId)) return true
      asked.push(part.toolCallId)
    }
  }
  return ran.length > 0
}

/** Whether a message, or a part of it, is never to be changed. */
export const isPinned = (message: Prompt.Message): boolean => {
  if (Marks.key in message.options && Marks.of(message).pinned === true) return true
  if (message.role === "system") return false
  for (const part of message.content) if (Marks.key in part.options && Marks.of(part).pinned === true) return true
  return false
}

/** Whether a person wrote a message of role user: no machine did, and it is of more than one request. */
export const isHuman = (message: Prompt.UserMessage): boolean => {
  if (!(Marks.key in message.options)) return true
  const marks = Marks.of(message)
  return marks.ephemeral !== true && (marks.source === undefined || !Marks.machineSources.has(marks.source))
}
