/**
 * The ids under which the calls of a request are sent: the own id of a call where the provider takes it and no earlier call
 * of the request has it, else one that is made of it. The results of a call and what asks about it go under the same id.
 *
 * Names follow from the messages before alone, so a message that stays where it was keeps its ids. They are given in one
 * walk in the order of the messages, which are paired and put in order already; each message costs its parts.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../Marks.ts"
import * as Text from "../text/text.ts"
import * as Ids from "./ids.ts"
import * as Pairing from "./pairing.ts"
import * as Send from "./send.ts"

interface Named extends Pairing.CallRef {
  readonly name: string
}

/** The names given so far, beyond those of `before`, which this walk goes on from and leaves as it is. */
export interface Names {
  readonly rules: Ids.IdRules
  readonly before: Names | undefined
  readonly used: Set<string>
  /** How many ids were made of an id. */
  readonly made: Map<string, number>
  /** The name of the last call with an id that was not always its name. */
  readonly last: Map<string, string>
  /** The calls of the framework, and those of the provider in its turn. */
  readonly local: Pairing.Calls<Named>
  remote: Pairing.Calls<Named>
  messages: number
}

const start = (rules: Ids.IdRules, before: Names | undefined): Names => ({
  rules,
  before,
  used: new Set(),
  made: new Map(),
  last: new Map(),
  local: Pairing.none(),
  remote: Pairing.none(),
  messages: before?.messages ?? 0
})

export const make = (rules: Ids.IdRules): Names => start(rules, undefined)

/** A walk that goes on behind what was named. Nothing in it may answer a call from before. */
export const after = (before: Names): Names => start(before.rules, before)

const isUsed = (self: Names, name: string): boolean =>
  self.used.has(name) || self.before !== undefined && isUsed(self.before, name)

const madeOf = (self: Names, id: string): number =>
  self.made.get(id) ?? (self.before === undefined ? 0 : madeOf(self.before, id))

/** The name of the last call with an id, for a request that stands in another message than its call. */
const lastOf = (self: Names, id: string): string =>
  self.last.get(id) ?? (self.before === undefined ? id : lastOf(self.before, id))

/** Gives a call its name. */
const give = (self: Names, { id, providerExecuted }: Prompt.ToolCallPart): string => {
  let name = id
  if (Ids.faultOf(id, providerExecuted, self.rules) !== undefined || isUsed(self, id)) {
    let nth = madeOf(self, id)
    do name = Ids.make(id, ++nth, self.rules)
    while (isUsed(self, name))
    self.made.set(id, nth)
  }
  if (name !== id || lastOf(self, id) !== id) self.last.set(id, name)
  self.used.add(name)
  return name
}

/** The ids of the calls, results and requests of a message, in their order, as they are sent. */
const ofAssistant = (self: Names, content: ReadonlyArray<Prompt.AssistantMessagePart>): ReadonlyArray<string> => {
  const seq = self.messages
  const names: Array<string> = []
  const own: Array<{ readonly id: string; readonly name: string }> = []
  const requests: Array<{ readonly at: number; readonly id: string }> = []
  let local = 0
  for (const part of content) {
    if (part.type === "tool-call") {
      const name = give(self, part)
      own.push({ id: part.id, name })
      names.push(name)
      if (part.providerExecuted) Pairing.add(self.remote, part.id, { seq, index: own.length, name })
      else Pairing.add(self.local, part.id, { seq, index: local++, name })
    } else if (part.type === "tool-result") {
      names.push(Pairing.answer(self.remote, part.id)?.call.name ?? part.id)
    } else if (part.type === "tool-approval-request") {
      requests.push({ at: names.length, id: part.toolCallId })
      names.push(part.toolCallId)
    }
  }
  if (requests.length > 0) {
    const meant = Pairing.asked(own.map(({ id }) => id), requests.map(({ id }) => id))
    for (const [nth, { at, id }] of requests.entries()) {
      names[at] = own[meant[nth]!]?.name ?? lastOf(self, id)
    }
  }
  return names
}

const ofTool = (self: Names, content: ReadonlyArray<Prompt.ToolMessagePart>): ReadonlyArray<string> => {
  const names: Array<string> = []
  for (const part of content) {
    if (part.type !== "tool-result") continue
    names.push(Pairing.answer(self.local, part.id, Marks.of(part).call)?.call.name ?? part.id)
  }
  return names
}

const idOf = (part: Prompt.Part): string | undefined =>
  part.type === "tool-call" || part.type === "tool-result"
    ? part.id
    : part.type === "tool-approval-request"
    ? part.toolCallId
    : undefined

/** The part under another id. A provider that stored the item would send it under its old one. */
const renamed = (part: Prompt.Part, name: string): Prompt.Part =>
  part.type === "tool-approval-request"
    ? { ...part, toolCallId: name }
    : part.type === "tool-call" || part.type === "tool-result"
    ? { ...part, id: name, options: Text.withoutItemReference(part.options) }
    : part

/** The renamed copies of messages, by their message: one that is sent again is the same object. */
const copies = new WeakMap<Prompt.Message, { readonly names: ReadonlyArray<string>; readonly copy: Prompt.Message }>()
const originals = new WeakMap<Prompt.Message, Prompt.Message>()

/** The message that a renamed one was, and any other itself. */
export const originalOf = (message: Prompt.Message): Prompt.Message => originals.get(message) ?? message

const withNames = (message: Prompt.Message, names: ReadonlyArray<string>): Prompt.Message => {
  if (message.role === "system") return message
  const parts: ReadonlyArray<Prompt.Part> = message.content
  let nth = 0
  if (parts.every((part) => idOf(part) === undefined || idOf(part) === names[nth++])) return message
  const known = copies.get(message)
  if (known !== undefined && known.names.every((name, at) => name === names[at])) return known.copy
  nth = 0
  const content = parts.map((part) => idOf(part) === undefined ? part : renamed(part, names[nth++]!))
  const copy = Send.withContent(message, content)
  copies.set(message, { names, copy })
  originals.set(copy, originalOf(message))
  return copy
}

/** The next message with its calls, results and requests under the ids that they are sent under. */
export const name = (self: Names, message: Prompt.Message): Prompt.Message => {
  self.messages++
  switch (message.role) {
    case "system":
      return message
    case "user":
      // It ends the turn of the provider.
      if (self.remote.latest.size > 0) self.remote = Pairing.none()
      return message
    case "assistant":
      return withNames(message, ofAssistant(self, message.content))
    case "tool":
      return withNames(message, ofTool(self, message.content))
  }
}

/** What was renamed in a message, in words. */
export const changeOf = (message: Prompt.Message, named: Prompt.Message): string => {
  const ids = (each: Prompt.Message) => each.role === "system" ? [] : each.content.map(idOf)
  const after = ids(named)
  const changes = ids(message).flatMap((id, at) => id === after[at] ? [] : [`the id ${id} is sent as ${after[at]}`])
  return [...new Set(changes)].join(", ")
}
