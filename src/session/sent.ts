import type * as Prompt from "effect/ai/Prompt"
import type * as Session from "../Session.ts"
import type * as Wire from "../Wire.ts"
import { sameMessage } from "../wire/sameMessage.ts"
import * as Layout from "./layout.ts"
import * as Sending from "./sending.ts"

/**
 * The messages of the request that counts as sent. It is a cache: they follow from what `Session.State.sent` says.
 */
export interface Sent {
  readonly of: Session.SentRequest
  readonly sending: Sending.Sending
}

const nothing: Pick<Sending.Sending, "messages" | "seqOf" | "head" | "final" | "opened" | "epoch"> = {
  messages: [],
  seqOf: () => -1,
  head: 0,
  final: 0,
  opened: false,
  epoch: {}
}

type Known = typeof nothing

/** What was sent, from the cache or laid out again. */
export const known = (
  cache: Sent | undefined,
  { abridged, sent }: Session.State,
  rules: Wire.Rules
): Known => {
  if (sent === null) return nothing
  if (cache?.of === sent) return cache.sending
  // What it cost is asked by nobody.
  const layout = Layout.make({ abridged, messages: sent.messages, decisions: sent.decisions }, () => 0, rules)
  Layout.update(layout, layout.transcript.entries.length)
  return Sending.prepare(layout)
}

/** Where a prompt stops extending the one before, and whether nothing but its system messages changed. */
export interface Change {
  readonly seq: number
  readonly isSystem: boolean
}

/** Tells where the prompt that was sent is not a prefix of the one that is sent now. */
export const changeOf = (before: Known, sending: Sending.Sending): Change | undefined => {
  const { messages: sent } = before
  const { head, messages } = sending
  const isSame = sending.opened === before.opened && sending.epoch === before.epoch
  let at = isSame ? Math.min(before.final, sending.final) : 0
  while (at < sent.length && at < messages.length && sameMessage(sent[at]!, messages[at]!)) at++
  if (at === sent.length) return undefined
  // A system entry changes only what stands before the conversation; when that changed too, there was a repair as well.
  const isSystem = at < Math.max(head, before.head)
    && sent.slice(before.head).every((message, index) =>
      head + index < messages.length && sameMessage(message, messages[head + index]!)
    )
  return { seq: at < messages.length ? sending.seqOf(at) : -1, isSystem }
}

/**
 * The messages that were sent, up to the last one that holds an entry of a span; nothing when they are not those that the
 * view holds now.
 */
export const upTo = (
  before: Known,
  span: ReadonlySet<number>,
  now: Sending.Sending
): ReadonlyArray<Prompt.Message> | undefined => {
  let end = before.messages.length
  while (end > 0 && !span.has(before.seqOf(end - 1))) end--
  const prefix = before.messages.slice(0, end)
  const isHeld = prefix.every((message, at) => at < now.messages.length && sameMessage(message, now.messages[at]!))
  return end > 0 && isHeld ? prefix : undefined
}
