/**
 * What a JavaScript value is once it was sent as JSON: the one door for what tools take and return, options and imports.
 *
 * A provider, a store and a log hold JSON. A value that changes on the way (`NaN`, `-0`, a `Date`) is normalised before
 * anything is decided about it, so that a session in memory and the same session read again are equal; a value that JSON
 * has no word for is refused, with the place of it.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { reasonOf } from "./reason.ts"

/**
 * How many objects and arrays may stand within one another. Jackson's bound; engines write and read twice as much without
 * running out of stack, and no provider takes as much.
 */
export const maxDepth = 1_000

/** Why a value is no JSON, and where: the keys that lead to it. */
export interface Fault {
  readonly reason: "bigint" | "function" | "symbol" | "circular" | "deep" | "throws"
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}

/** The way to the value that is looked at: the keys, and the objects and arrays that hold it. */
interface Walk {
  readonly path: Array<string | number>
  readonly above: Array<object>
  fault: Fault | undefined
}

const words: { readonly [Reason in Exclude<Fault["reason"], "throws">]: string } = {
  bigint: "a BigInt",
  function: "a function",
  symbol: "a symbol",
  circular: "an object that contains itself",
  deep: `more than ${maxDepth} objects or arrays within one another`
}

const identifier = /^[A-Za-z_$][\w$]{0,63}$/
/** A path is for people: what leads to a place at the depth of the bound would fill their screen. */
const shown = 8

const textOfPath = (path: ReadonlyArray<string | number>): string => {
  let text = ""
  for (const key of path.slice(0, shown)) {
    if (typeof key === "number") text += `[${key}]`
    else if (identifier.test(key)) text += text === "" ? key : `.${key}`
    else text += `[${JSON.stringify(key.slice(0, 64))}]`
  }
  return path.length > shown ? `${text}…` : text
}

const faultOf = (reason: Fault["reason"], path: ReadonlyArray<string | number>, what: string): Fault => ({
  reason,
  path: [...path],
  message: path.length === 0 ? `it is ${what}` : `${textOfPath(path)} is ${what}`
})

const fail = (walk: Walk, reason: keyof typeof words): undefined => {
  walk.fault = faultOf(reason, walk.path, words[reason])
  return undefined
}

/** At the bound: an object that stands within itself has come round by then, and where it first did is said. */
const tooDeep = (walk: Walk): undefined => {
  const seen = new Set<object>()
  const at = walk.above.findIndex((object) => seen.size === seen.add(object).size)
  if (at < 0) return fail(walk, "deep")
  walk.path.length -= walk.above.length - at
  return fail(walk, "circular")
}

/** What `toJSON` makes of a value: of a date, an address, a class of the caller's. */
const serialised = (value: unknown, walk: Walk): unknown => {
  if (value === null || typeof value !== "object" && typeof value !== "bigint") return value
  // `toJSON` of BigInt is what applications define to have them written; JSON asks for it, and so does this.
  const json: unknown = "toJSON" in Object(value) ? Reflect.get(Object(value), "toJSON", value) : undefined
  if (typeof json !== "function") return value
  const key = walk.path[walk.path.length - 1]
  return Reflect.apply(json, value, [key === undefined ? "" : String(key)])
}

/** Numbers, texts and so on that were made with `new` are written as what they hold. */
const unboxed = (value: unknown): unknown =>
  value instanceof Number || value instanceof String || value instanceof Boolean || value instanceof BigInt
    ? value.valueOf()
    : value

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const put = (object: { [key: string]: unknown }, key: string, value: unknown): void => {
  // An assignment to this key would set the prototype.
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true })
  } else object[key] = value
}

const ofArray = (array: ReadonlyArray<unknown>, walk: Walk): ReadonlyArray<unknown> => {
  let copy: Array<unknown> | undefined
  for (let at = 0; at < array.length; at++) {
    const before = array[at]
    walk.path.push(at)
    const after = visit(before, walk) ?? null
    if (walk.fault !== undefined) return array
    walk.path.pop()
    if (copy === undefined && !Object.is(before, after)) copy = array.slice(0, at)
    copy?.push(after)
  }
  return copy ?? array
}

const ofObject = (object: { readonly [key: string]: unknown }, walk: Walk): object => {
  const keys = Object.keys(object)
  let copy: { [key: string]: unknown } | undefined = isPlain(object) ? undefined : {}
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at]!
    const before = object[key]
    walk.path.push(key)
    const after = visit(before, walk)
    if (walk.fault !== undefined) return object
    walk.path.pop()
    if (copy === undefined && (after === undefined || !Object.is(before, after))) {
      copy = {}
      for (const same of keys.slice(0, at)) put(copy, same, object[same])
    }
    if (copy !== undefined && after !== undefined) put(copy, key, after)
  }
  return copy ?? object
}

/** The value as JSON; `undefined` where JSON leaves it out, or where `walk` has a fault. */
const visit = (given: unknown, walk: Walk): unknown => {
  const value = unboxed(serialised(given, walk))
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return value
    case "number":
      return Number.isFinite(value) ? value + 0 : null
    case "bigint":
      return fail(walk, "bigint")
    case "function":
      return fail(walk, "function")
    case "symbol":
      return fail(walk, "symbol")
    case "object":
      break
  }
  if (value === null) return null
  if (walk.above.length === maxDepth) return tooDeep(walk)
  walk.above.push(value)
  // What is no array is read by its keys, as JSON reads it.
  const json = Array.isArray(value)
    ? ofArray(value, walk)
    : ofObject(value as { readonly [key: string]: unknown }, walk)
  walk.above.pop()
  return json
}

/**
 * The JSON of a value, as a value: what `JSON.parse(JSON.stringify(value))` is, in one walk; the same object where nothing
 * changes.
 *
 * **Details**
 *
 * `NaN` and infinite numbers are `null`, `-0` is 0, fields that are `undefined` are left out, `undefined` elsewhere is
 * `null`, `toJSON` is asked. What JSON would refuse or leave out in silence (a BigInt, a function, a symbol, a circle, more than
 * {@link maxDepth} levels, a getter that throws) is a fault, the first that is met. `path` is where the value itself stands.
 */
export const normalise = (
  value: unknown,
  path: ReadonlyArray<string | number> = []
): Result.Result<Schema.Json, Fault> => {
  if (typeof value === "string") return Result.succeed(value)
  const walk: Walk = { path: [...path], above: [], fault: undefined }
  let json: unknown
  try {
    json = visit(value, walk) ?? null
  } catch (error) {
    // Getters, proxies and `toJSON` are code of the caller's.
    walk.fault = faultOf("throws", walk.path, `a value that cannot be read: ${reasonOf(error)}`)
  }
  // Every leaf is null or of a type that JSON has, and every level an array or an object of such.
  return walk.fault === undefined ? Result.succeed(json as Schema.Json) : Result.fail(walk.fault)
}

/** The JSON text of a value, to be read and measured; what a value is that has none, in words. */
export const textOf = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? ""
  } catch (error) {
    const normal = normalise(value)
    return `[no JSON: ${Result.isFailure(normal) ? normal.failure.message : reasonOf(error)}]`
  }
}
