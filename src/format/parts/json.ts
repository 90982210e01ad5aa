/** Takes JSON apart; every failure names the file, the line and the path of the field. */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Value from "../../text/json.ts"
import * as Session from "../Session.ts"

/** Where a value stands: `field` is its path from the record, `""` for the record itself. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly field: string
}

export type Read<A> = Result.Result<A, Session.FormatError>

/** The place of a member of the object or array at `place`. */
export const at = (place: Place, key: string | number): Place => ({ ...place, field: pathTo(place.field, key) })

const pathTo = (field: string, key: string | number): string =>
  typeof key === "number" ? `${field}[${key}]` : field === "" ? key : `${field}.${key}`

export const fail = (place: Place, expected: string): Read<never> =>
  Result.fail(new Session.FormatError({ file: place.file, line: place.line, field: place.field, expected }))

/**
 * Why a text was not read: it is no JSON, or nested deeper than anything here can write again. The path leads to the value
 * that is too deep.
 */
export type Unread = { readonly reason: "syntax" } | { readonly reason: "deep"; readonly path: string }

/**
 * Whether a value of `JSON.parse` is one as it is: no deeper than `left` objects and arrays, and without a number that JSON
 * writes in another way (-0, and what is too large for a number). Most are, and are not walked a second time.
 */
const isPlain = (value: unknown, left: number): boolean => {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value !== "object" || value === null) return true
  if (left === 0) return false
  if (Array.isArray(value)) return value.every((item) => isPlain(item, left - 1))
  for (const key in value) if (!isPlain(Reflect.get(value, key), left - 1)) return false
  return true
}

/** Reads JSON text: the one door through which every value of a file comes, so that its depth is bounded here alone. */
export const decode = (text: string): Result.Result<Schema.Json, Unread> => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return Result.fail({ reason: "syntax" })
  }
  // `JSON.parse` makes JSON values, but for such numbers.
  if (isPlain(value, Value.maxDepth)) return Result.succeed(value as Schema.Json)
  return Result.mapError(Value.normalise(value), ({ path }) => ({
    reason: "deep",
    path: path.slice(0, shown).reduce<string>(pathTo, "")
  }))
}

// A path is for people; what leads to a place at the bound would fill their screen.
const shown = 8

/** As {@link decode}; `undefined` for a text that was not read. */
export const parse = (text: string): Schema.Json | undefined => Result.getOrUndefined(decode(text))

/** What is expected of a value that is nested too deep. */
export const notDeep = `expected at most ${Value.maxDepth} objects or arrays within one another`

export const isObject = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isArray = (value: Schema.Json | undefined): value is Schema.JsonArray => Array.isArray(value)

const kind = (value: Schema.Json | undefined): string =>
  value === undefined
    ? "nothing"
    : value === null
    ? "null"
    : Array.isArray(value)
    ? "an array"
    : typeof value === "object"
    ? "an object"
    : `a ${typeof value}`

const wrong = (place: Place, expected: string, value: Schema.Json | undefined): Read<never> =>
  fail(place, `expected ${expected}, got ${kind(value)}`)

export const object = (value: Schema.Json | undefined, place: Place): Read<Schema.JsonObject> =>
  isObject(value) ? Result.succeed(value) : wrong(place, "an object", value)

/** Content that may be a string instead, when it is not one. */
export const blocks = (value: Schema.Json | undefined, place: Place): Read<Schema.JsonArray> =>
  isArray(value) ? Result.succeed(value) : wrong(place, "a string or an array", value)

/** What `read` makes of each block of such content, in order; `within` is the place of the block. */
export const eachBlock = <A>(
  value: Schema.Json | undefined,
  place: Place,
  read: (block: Schema.Json, within: Place) => Read<A>
): Read<ReadonlyArray<A>> =>
  Result.gen(function*() {
    const all: Array<A> = []
    for (const [index, block] of (yield* blocks(value, place)).entries()) all.push(yield* read(block, at(place, index)))
    return all
  })

export const array = (value: Schema.Json | undefined, place: Place): Read<Schema.JsonArray> =>
  isArray(value) ? Result.succeed(value) : wrong(place, "an array", value)

export const string = (value: Schema.Json | undefined, place: Place): Read<string> =>
  typeof value === "string" ? Result.succeed(value) : wrong(place, "a string", value)

/** The member `key` as an object; `place` is that of the parent. */
export const objectAt = (parent: Schema.JsonObject, key: string, place: Place): Read<Schema.JsonObject> => {
  const value = parent[key]
  return isObject(value) ? Result.succeed(value) : wrong(at(place, key), "an object", value)
}

/** The member `key` as an array; `place` is that of the parent. */
export const arrayAt = (parent: Schema.JsonObject, key: string, place: Place): Read<Schema.JsonArray> => {
  const value = parent[key]
  return isArray(value) ? Result.succeed(value) : wrong(at(place, key), "an array", value)
}

/** The member `key` as a string; `place` is that of the parent. */
export const stringAt = (parent: Schema.JsonObject, key: string, place: Place): Read<string> => {
  const value = parent[key]
  return typeof value === "string" ? Result.succeed(value) : wrong(at(place, key), "a string", value)
}

/** As {@link stringAt}, with `undefined` where the member is absent or null. */
export const optionalStringAt = (parent: Schema.JsonObject, key: string, place: Place): Read<string | undefined> => {
  const value = parent[key]
  return value === undefined || value === null ? Result.succeed(undefined) : stringAt(parent, key, place)
}

/** The member `key` as a count of something, `undefined` where it is absent or null. */
export const optionalCountAt = (parent: Schema.JsonObject, key: string, place: Place): Read<number | undefined> => {
  const value = parent[key]
  if (value === undefined || value === null) return Result.succeed(undefined)
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0
    ? Result.succeed(value)
    : typeof value === "number"
    ? fail(at(place, key), "expected a whole number of at least 0")
    : wrong(at(place, key), "a number", value)
}
