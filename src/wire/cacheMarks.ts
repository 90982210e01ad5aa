import * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"
import * as Names from "./names.ts"
import { sameMessage } from "./sameMessage.ts"

/** Under which keys adapters read, in the options of their provider, that the prompt cache is to end at a part. */
const keys = ["cacheControl", "cache_control", "cachePoint"] as const

const isObject = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isMarked = (options: Prompt.ProviderOptions): boolean => {
  for (const provider in options) {
    const value = options[provider]
    if (!isObject(value)) continue
    for (const key of keys) if (value[key] !== undefined && value[key] !== null) return true
  }
  return false
}

const isPartMarked = (part: Prompt.Part): boolean => isMarked(part.options)

/** The contents no part of which carries a mark: a history is looked through at every call. */
const unmarked = new WeakSet<object>()

/** Whether a message, or a part of it, carries a mark. */
const has = (message: Prompt.Message): boolean => {
  if (isMarked(message.options)) return true
  if (message.role === "system" || unmarked.has(message.content)) return false
  for (const part of message.content) if (isPartMarked(part)) return true
  unmarked.add(message.content)
  return false
}

/** The options without their marks, and the marks alone. */
const split = (options: Prompt.ProviderOptions) => {
  const rest: { [provider: string]: Prompt.ProviderOptions[string] } = {}
  const marks: { [provider: string]: Prompt.ProviderOptions[string] } = {}
  for (const provider of Object.keys(options)) {
    const value = options[provider]
    if (!isObject(value)) {
      rest[provider] = value ?? null
      continue
    }
    const entries = Object.entries(value)
    const kept = entries.filter(([key]) => !keys.some((each) => each === key))
    const taken = entries.filter(([key, mark]) => keys.some((each) => each === key) && mark !== undefined)
    if (kept.length > 0) rest[provider] = Object.fromEntries(kept)
    if (taken.length > 0) marks[provider] = Object.fromEntries(taken)
  }
  return { rest, marks }
}

const join = (options: Prompt.ProviderOptions, marks: Prompt.ProviderOptions): Prompt.ProviderOptions => {
  const joined: { [provider: string]: Prompt.ProviderOptions[string] } = { ...options }
  for (const [provider, mark] of Object.entries(marks)) {
    const before = options[provider]
    joined[provider] = { ...(isObject(before) ? before : undefined), ...(isObject(mark) ? mark : undefined) }
  }
  return joined
}

const withOptions = <A extends Prompt.Message | Prompt.Part>(self: A, options: Prompt.ProviderOptions): A => ({
  ...self,
  options
})

const without = (message: Prompt.Message): Prompt.Message => {
  const bare = withOptions(message, split(message.options).rest)
  if (bare.role === "system" || !bare.content.some(isPartMarked)) return bare
  const parts: ReadonlyArray<Prompt.Part> = bare.content
  const content = parts.map((part) => isPartMarked(part) ? withOptions(part, split(part.options).rest) : part)
  // The parts are those of this message, with other options; the union of roles loses that.
  return { ...bare, content } as Prompt.Message
}

/** The marks of a message, those of its last marked part before its own. */
const marksOf = (message: Prompt.Message): Prompt.ProviderOptions => {
  if (isMarked(message.options)) return split(message.options).marks
  const parts: ReadonlyArray<Prompt.Part> = message.role === "system" ? [] : message.content
  const part = parts.findLast(isPartMarked)
  return part === undefined ? {} : split(part.options).marks
}

/** The message with the marks that another one carries, which says the same: it keeps its own bytes. */
const withMarksOf = (message: Prompt.Message, other: Prompt.Message): Prompt.Message => {
  const marked = withOptions(message, join(message.options, split(other.options).marks))
  if (marked.role === "system" || other.role === "system" || !other.content.some(isPartMarked)) return marked
  const parts: ReadonlyArray<Prompt.Part> = marked.content
  const others: ReadonlyArray<Prompt.Part> = other.content
  const content = parts.map((part, at) => withOptions(part, join(part.options, split(others[at]!.options).marks)))
  // See `without`.
  return { ...marked, content } as Prompt.Message
}

/** A prompt without marks, and the messages that carried them. */
export interface Taken {
  readonly prompt: Prompt.Prompt
  readonly marked: ReadonlyArray<Prompt.Message>
}

/**
 * Takes the marks off a caller's prompt. A caller moves its mark to the newest message at each call, and a history that
 * knows messages by their content would keep all those that were there before.
 */
export const take = (prompt: Prompt.Prompt): Taken => {
  const marked = prompt.content.filter(has)
  return marked.length === 0
    ? { prompt, marked }
    : { prompt: Prompt.fromMessages(prompt.content.map((each) => has(each) ? without(each) : each)), marked }
}

/**
 * The messages of a view with the marks that were taken off the caller's prompt: each where its message stands still. That
 * of the caller's last message ends the stable part when that message is not there as it was, and so does a mark on a
 * message of the tail: the next request has another tail, and would read nothing.
 */
export const place = (
  messages: ReadonlyArray<Prompt.Message>,
  stableLength: number,
  { marked, prompt }: Taken
): ReadonlyArray<Prompt.Message> => {
  const inTail = messages.findLast((message, at) => at >= stableLength && has(message))
  if (marked.length === 0 && inTail === undefined) return messages
  const placed = messages.map((message, at) => at >= stableLength && has(message) ? without(message) : message)
  let moved = inTail === undefined ? undefined : marksOf(inTail)
  const newest = prompt.content.at(-1)
  for (const each of marked) {
    const at = placed.findLastIndex((message, index) =>
      index < stableLength && sameMessage(each, Names.originalOf(message))
    )
    if (at >= 0) placed[at] = withMarksOf(placed[at]!, each)
    else if (newest !== undefined && sameMessage(each, newest)) moved = marksOf(each)
  }
  const last = placed[stableLength - 1]
  if (moved !== undefined && last !== undefined) {
    placed[stableLength - 1] = withOptions(last, join(last.options, moved))
  }
  return placed
}
