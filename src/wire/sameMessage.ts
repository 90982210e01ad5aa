import type * as Prompt from "effect/ai/Prompt"
import * as Json from "../text/json.ts"

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, at) => byte === b[at])

/** What is another value in JSON is what it is there: that is how it comes back from a store. */
const plain = (value: unknown): unknown => {
  if (typeof value === "number") return Number.isFinite(value) ? value : null
  return isObject(value) && !(value instanceof Uint8Array) && hasJson(value) ? value.toJSON() : value
}

const hasJson = (value: object): value is { readonly toJSON: () => unknown } =>
  "toJSON" in value && typeof value.toJSON === "function"

const sameValue = (left: unknown, right: unknown, depth: number): boolean => {
  const a = plain(left)
  const b = plain(right)
  if (a === b) return true
  // What lies deeper is in no session. Two messages that hold it count as two.
  if (!isObject(a) || !isObject(b) || depth > Json.maxDepth) return false
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    return a instanceof Uint8Array && b instanceof Uint8Array && sameBytes(a, b)
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && sameElements(a, b, depth + 1)
  }
  const keys = Object.keys(a).filter((key) => a[key] !== undefined)
  const others = Object.keys(b).filter((key) => b[key] !== undefined)
  return keys.length === others.length && keys.every((key) => sameValue(a[key], b[key], depth + 1))
}

const sameElements = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>, depth: number): boolean => {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) {
    // JSON has no `undefined` and no holes: in an array they come back as `null`.
    if (!sameValue(a[at] ?? null, b[at] ?? null, depth)) return false
  }
  return true
}

/** The content of a part. What a tool takes or returns may be `undefined`, which is `null` once it was saved. */
const contentOf = ({ options: _, ...content }: Prompt.Part): object => {
  if (content.type === "tool-result") return { ...content, result: content.result ?? null }
  return content.type === "tool-call" ? { ...content, params: content.params ?? null } : content
}

const samePart = (a: Prompt.Part, b: Prompt.Part): boolean => sameValue(contentOf(a), contentOf(b), 0)

/**
 * Whether two messages say the same. Options are no content: a persisted chat writes into them in place, and marks of
 * ours or of a provider do not change what was said.
 */
export const sameMessage = (a: Prompt.Message, b: Prompt.Message): boolean => {
  if (a === b) return true
  if (a.role !== b.role) return false
  if (a.role === "system" || b.role === "system") return a.content === b.content
  const left: ReadonlyArray<Prompt.Part> = a.content
  const right: ReadonlyArray<Prompt.Part> = b.content
  return left.length === right.length && left.every((part, at) => samePart(part, right[at]!))
}
