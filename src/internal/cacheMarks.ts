import type * as Prompt from "effect/ai/Prompt"
import { sameMessage } from "./sameMessage.ts"

/** Under which keys adapters read, in the options of their provider, that the prompt cache is to end at a part. */
const keys = ["cacheControl", "cache_control", "cachePoint"] as const

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
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

/** Whether a message, or a part of it, carries a mark. */
const has = (message: Prompt.Message): boolean => {
  if (isMarked(message.options)) return true
  if (message.role === "system") return false
  for (const part of message.content) if (isPartMarked(part)) return true
  return false
}

/** The options without their marks, and the marks alone. */
const split = (options: Prompt.ProviderOptions) => {
  const rest: { [provider: string]: Prompt.ProviderOptions[string] } = {}
  const marks: { [provider: string]: Prompt.ProviderOptions[string] } = {}
  for (const [provider, value] of Object.entries(options)) {
    if (!isObject(value)) {
      rest[provider] = value as Prompt.ProviderOptions[string]
      continue
    }
    const entries = Object.entries(value)
    const kept = entries.filter(([key]) => !keys.some((each) => each === key))
    const taken = entries.filter(([key, mark]) => keys.some((each) => each === key) && mark !== undefined)
    // Entries of a JSON object make a JSON object again.
    if (kept.length > 0) rest[provider] = Object.fromEntries(kept) as Prompt.ProviderOptions[string]
    if (taken.length > 0) marks[provider] = Object.fromEntries(taken) as Prompt.ProviderOptions[string]
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

/**
 * The messages of a view with the marks where the caller's prompt has them now.
 *
 * A caller that moves its mark to the newest message sends the same content with other options, and a history that knows
 * messages by their content keeps the old ones: what is marked in the view and no more in the prompt loses its mark, what
 * is newly marked gets it. The mark of the caller's last message ends the stable part, however that message stands in the
 * view, and so does a mark on a message of the tail: the next request has another tail, and would read nothing.
 */
export const place = (
  messages: ReadonlyArray<Prompt.Message>,
  stableLength: number,
  original: ReadonlyArray<Prompt.Message>
): ReadonlyArray<Prompt.Message> => {
  const wanted = original.filter(has)
  if (wanted.length === 0 && !messages.some(has)) return messages
  const left = new Set(wanted)
  const placed = messages.slice()
  let moved: Prompt.ProviderOptions | undefined
  for (let at = 0; at < placed.length; at++) {
    const message = placed[at]!
    if (!has(message)) continue
    const same = left.has(message) ? message : wanted.find((each) => left.has(each) && sameMessage(each, message))
    if (same !== undefined) left.delete(same)
    if (at >= stableLength) moved = marksOf(message)
    if (same === undefined || at >= stableLength) placed[at] = without(message)
    else if (same !== message) placed[at] = same
  }
  for (const each of left) {
    const at = placed.findLastIndex((message, index) => index < stableLength && sameMessage(each, message))
    if (at >= 0) placed[at] = withOptions(placed[at]!, join(placed[at]!.options, marksOf(each)))
    else if (each === original.at(-1)) moved = marksOf(each)
  }
  const last = placed[stableLength - 1]
  if (moved !== undefined && last !== undefined) {
    placed[stableLength - 1] = withOptions(last, join(last.options, moved))
  }
  return placed
}
