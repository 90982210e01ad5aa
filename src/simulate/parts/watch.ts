/**
 * How often prompts that grow from one another break the rules of providers, in the time of what is new in each.
 *
 * What is known of a prompt is taken from its messages, by identity, and not from what a manager says did not change. A front
 * of it that breaks no rule, in which every call is answered, can make nothing wrong behind it but by an id that comes again.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Wire from "../../Wire.ts"

/** How often a prompt breaks the rules `anthropic` and `openaiChat`. */
export const violationsIn = (messages: ReadonlyArray<Prompt.Message>): number =>
  Wire.check(messages, Wire.anthropic).length + Wire.check(messages, Wire.openaiChat).length

/** The last prompt that was looked at; its first `closed` messages break no rule and leave no call open, `ids` are theirs. */
export interface Watch {
  messages: ReadonlyArray<Prompt.Message>
  closed: number
  readonly ids: Set<string>
}

export const make = (): Watch => ({ messages: [], closed: 0, ids: new Set() })

/** How many messages at the front of two prompts are the same objects. */
export const commonFront = (a: ReadonlyArray<Prompt.Message>, b: ReadonlyArray<Prompt.Message>): number => {
  const end = Math.min(a.length, b.length)
  let at = 0
  while (at < end && a[at] === b[at]) at++
  return at
}

/** The system messages and the user message behind them; 0 where something else comes first. */
const headOf = (messages: ReadonlyArray<Prompt.Message>): number => {
  let at = 0
  while (messages[at]?.role === "system") at++
  return messages[at]?.role === "user" ? at + 1 : 0
}

const partsOf = ({ content }: Prompt.Message): ReadonlyArray<Prompt.Part> => typeof content === "string" ? [] : content

/** Moves the closed front as far as calls are answered. */
const advance = (self: Watch): void => {
  const open = new Set<string>()
  const ids: Array<string> = []
  for (let at = self.closed; at < self.messages.length; at++) {
    const message = self.messages[at]!
    // A result may still come into a row of tool messages.
    if (open.size === 0 && message.role !== "tool") {
      self.closed = at
      for (const id of ids.splice(0)) self.ids.add(id)
    }
    for (const part of partsOf(message)) {
      // Who answers an approval is not followed here: nothing behind it is closed.
      if (part.type === "tool-approval-request" || part.type === "tool-approval-response") return
      if (part.type === "tool-call") {
        open.add(part.id)
        ids.push(part.id)
      } else if (part.type === "tool-result") open.delete(part.id)
    }
  }
}

const hasIdOf = (self: Watch, message: Prompt.Message): boolean =>
  partsOf(message).some((part) => (part.type === "tool-call" || part.type === "tool-result") && self.ids.has(part.id))

/** Whether what stands behind the closed front breaks no rule. */
const isCleanBehind = (self: Watch, messages: ReadonlyArray<Prompt.Message>): boolean => {
  const head = headOf(messages)
  if (head === 0 || self.closed < head) return false
  const behind = messages.slice(self.closed)
  return !behind.some((message) => hasIdOf(self, message))
    && violationsIn([...messages.slice(0, head), ...behind]) === 0
}

/** How often the next prompt breaks the rules: the same number as that of the whole. */
export const count = (self: Watch, messages: ReadonlyArray<Prompt.Message>): number => {
  if (commonFront(self.messages, messages) < self.closed) {
    self.closed = 0
    self.ids.clear()
  }
  self.messages = messages
  const found = isCleanBehind(self, messages) ? 0 : violationsIn(messages)
  if (found === 0) advance(self)
  else {
    self.closed = 0
    self.ids.clear()
  }
  return found
}
