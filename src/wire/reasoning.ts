import type * as Prompt from "effect/ai/Prompt"
import * as Transcript from "../Transcript.ts"
import * as WireSend from "./send.ts"

/** Whether a message holds reasoning that its provider signed, or knows as an item of its own. */
export const isSigned = (message: Prompt.Message): boolean =>
  message.role === "assistant"
  && message.content.some((part) => part.type === "reasoning" && WireSend.hasProviderState(part))

/** Whether a message holds reasoning of any kind. */
export const has = (message: Prompt.Message): boolean =>
  message.role === "assistant" && message.content.some((part) => part.type === "reasoning")

/**
 * The seq of the entry whose signed reasoning the turn in progress needs, −1 when there is none: the newest one since the
 * last human message. Anthropic refuses a request whose last tool use has lost the thinking before it ("Expected
 * `thinking` or `redacted_thinking`, but found `tool_use`").
 */
export const neededBy = (transcript: Transcript.Transcript): number => {
  for (let seq = transcript.entries.length - 1; seq > transcript.lastHuman; seq--) {
    if (isSigned(transcript.entries[seq]!.message)) return seq
  }
  return -1
}

/** Whether a call of the newest assistant entry waits for its result, and the entry holds signed reasoning. */
export const isOpenTurn = (transcript: Transcript.Transcript): boolean => {
  const { entries, lastActor } = transcript
  return lastActor >= 0 && Transcript.isOpen(transcript, lastActor) && isSigned(entries[lastActor]!.message)
}
