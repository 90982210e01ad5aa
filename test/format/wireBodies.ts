/** Reading and writing of wire bodies in tests: the four formats, comparison, seeded chance, broken documents. */
import { assert } from "@effect/vitest"
import * as AnthropicMessages from "effect-compaction/format/AnthropicMessages"
import * as OpenAiChat from "effect-compaction/format/OpenAiChat"
import * as OpenAiResponses from "effect-compaction/format/OpenAiResponses"
import * as PromptJson from "effect-compaction/format/PromptJson"
import type * as Reader from "effect-compaction/format/Reader"
import type * as Session from "effect-compaction/format/Session"
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { isDeepStrictEqual } from "node:util"

export type Messages = ReadonlyArray<Prompt.Message>

export interface Format {
  readonly reader: Reader.Reader
  readonly write: (messages: Messages) => {
    readonly value: Schema.Json
    readonly losses: ReadonlyArray<Session.Finding>
  }
}

export const chat: Format = { reader: OpenAiChat.reader, write: (_) => OpenAiChat.write(_, { marks: true }) }
export const responses: Format = OpenAiResponses
export const anthropic: Format = AnthropicMessages
export const prompt: Format = PromptJson

export const parse = (
  { reader }: Format,
  ...records: ReadonlyArray<readonly [value: unknown, line: number]>
): Result.Result<Session.Session, Session.FormatError> => {
  const parse = reader.start("file.json", "test")
  for (const [value, line] of records) {
    // What a test passes is what `JSON.parse` made, or could have.
    const read = parse.record(value as Schema.Json, line)
    if (Result.isFailure(read)) return Result.fail(read.failure)
  }
  return parse.end()
}

export const read = (format: Format, document: unknown): Session.Session =>
  Result.getOrThrow(parse(format, [document, 0]))

/** Messages as plain data, with URLs told from texts. The codec of `effect/ai` would do the same a hundred times slower. */
export const plain = (messages: Messages): unknown =>
  JSON.parse(JSON.stringify(messages, function(this: Record<string, unknown>, key, value: unknown) {
    const original = this[key]
    return original instanceof URL ? { url: original.href } : value
  }))

/** Chai takes seconds to find large values equal; it is left to show where they differ. */
export const equal = (actual: unknown, expected: unknown, message?: string): void => {
  if (!isDeepStrictEqual(actual, expected)) assert.deepStrictEqual(actual, expected, message)
}

/** Writes and reads again, and holds that nothing changed on the way, also as JSON text. */
export const keeps = (format: Format, messages: Messages): Schema.Json => {
  const { losses, value } = format.write(messages)
  assert.deepStrictEqual(losses, [])
  const again = read(format, JSON.parse(JSON.stringify(value)))
  equal(plain(again.messages), plain(messages))
  return value
}

/** Where a document fails, and with what. */
export const failure = (format: Format, ...records: ReadonlyArray<readonly [value: unknown, line: number]>) => {
  const result = parse(format, ...records)
  return Result.isFailure(result)
    ? { line: result.failure.line, field: result.failure.field, expected: result.failure.expected }
    : "read"
}

/** A seeded source of chance (mulberry32). */
export const chance = (seed: number) => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (n: number): number => Math.floor(next() * n)
  return {
    below,
    maybe: (probability: number): boolean => next() < probability,
    pick: <A>(values: ReadonlyArray<A>): A => values[below(values.length)]!
  }
}

export type Chance = ReturnType<typeof chance>

const odd: ReadonlyArray<unknown> = [null, true, 7, -1.5, "", "odd", [], {}, [null], [{}], { type: "odd" }, { text: 1 }]

/** A copy of a document with one or two values at random paths replaced, removed or doubled. */
export const mutated = (document: unknown, random: Chance): unknown => {
  const copy: unknown = JSON.parse(JSON.stringify(document))
  for (let edits = 1 + random.below(2); edits > 0; edits--) {
    let at = copy
    while (typeof at === "object" && at !== null) {
      const within = at as Record<string, unknown>
      const keys = Object.keys(within)
      if (keys.length === 0) break
      const key = random.pick(keys)
      const inner = within[key]
      if (typeof inner !== "object" || inner === null || random.maybe(0.05)) {
        if (random.maybe(0.2) && !Array.isArray(within)) delete within[key]
        else if (random.maybe(0.2) && Array.isArray(within)) within.push(inner)
        else within[key] = JSON.parse(JSON.stringify(random.pick(odd)))
        break
      }
      at = inner
    }
  }
  return copy
}
