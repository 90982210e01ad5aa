/**
 * What a provider's own compaction made of a conversation, and who is sent it: its owner gets the items in place of all that
 * they stand for, everybody else the checkpoint that can be read.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import type * as Schema from "effect/Schema"
import * as Marks from "../Marks.ts"
import * as Crc32 from "../text/crc32.ts"
import * as Sha256 from "../text/sha256.ts"
import * as Opaque from "../wire/opaque.ts"
import * as Route from "./route.ts"

/** What the owner of a route is sent: the items, and the text of the checkpoint that they stand for, with all before it. */
export interface Owned {
  readonly items: ReadonlyArray<Schema.Json>
  readonly text: string
  readonly at: number
}

/** What the call that is being sent has for its owner: whoever writes the body of the request puts it in place. */
export const Carried = Context.Reference<Owned | undefined>("effect-compaction/Carried", {
  defaultValue: () => undefined
})

/** What was said, as it is after a restart too: options are none of it, and bytes are known by their digest. */
const digests = new WeakMap<Prompt.Message, string>()

const digestOf = (message: Prompt.Message): string => {
  const known = digests.get(message)
  if (known !== undefined) return known
  // A blank text is said by nobody, and some providers are not sent it.
  const content = message.role === "system"
    ? message.content
    : message.content.filter((part: Prompt.Part) => part.type !== "text" || /\S/.test(part.text))
  const text = JSON.stringify([message.role, content], (key, value: unknown) => {
    if (key === "options" || typeof value !== "object" || value === null || Array.isArray(value)) {
      return key === "options" ? undefined : value
    }
    if (value instanceof Uint8Array) return Crc32.hex(value)
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
  })
  const digest = Sha256.hex(text)
  digests.set(message, digest)
  return digest
}

/** A digest of the messages of a conversation; system messages are none of it. */
export const headOf = (messages: ReadonlyArray<Prompt.Message>): string =>
  Sha256.hex(messages.filter(({ role }) => role !== "system").map(digestOf).join())

/** Most messages have no marks: they are not looked at more closely. */
const isCheckpoint = (message: Prompt.Message): boolean =>
  message.role === "user" && Marks.key in message.options && Marks.of(message).checkpoint !== undefined

/**
 * What a route is sent of its own in a request: the items of the newest checkpoint, where it has some for this route, and
 * what stands before it is what they were made of.
 */
export const of = (messages: ReadonlyArray<Prompt.Message>, route: string | undefined): Owned | undefined => {
  const at = messages.findLastIndex(isCheckpoint)
  const message = messages[at]
  if (route === undefined || message?.role !== "user") return undefined
  const native = Marks.of(message).checkpoint?.native
  const part = message.content[0]
  if (native === undefined || part?.type !== "text") return undefined
  const isOwner = Route.mostExact([native.owner], route) !== undefined
  return isOwner && headOf(messages.slice(0, at)) === native.head
    ? { items: native.items, text: part.text, at }
    : undefined
}

/** The message that holds items. */
export const messageOf = (items: ReadonlyArray<Schema.Json>): Prompt.AssistantMessage =>
  Prompt.makeMessage("assistant", { content: items.map(Opaque.partOf) })

/** The messages as the owner of the route is sent them; the same ones where nothing in them is its own. */
export const forOwner = (
  messages: ReadonlyArray<Prompt.Message>,
  route: string | undefined
): ReadonlyArray<Prompt.Message> => {
  const owned = of(messages, route)
  return owned === undefined ? messages : [
    ...messages.slice(0, owned.at).filter(({ role }) => role === "system"),
    messageOf(owned.items),
    ...messages.slice(owned.at + 1)
  ]
}
