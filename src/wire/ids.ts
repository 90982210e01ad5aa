/**
 * Ids of calls: what a provider takes, and the id that is made for a call whose own cannot be sent.
 *
 * An id is no identity where it comes from: servers number the calls of each turn, files repeat them. Where it goes it must
 * be one. A made id tells of which id it was made, so that a result that comes back under it finds its call.
 */
import * as Crc32 from "../text/crc32.ts"

/** Which ids a provider takes. */
export interface IdRules {
  readonly characters: "any" | "word"
  readonly length: number | null
}

const isWord = (id: string): boolean => /^[A-Za-z0-9_-]*$/.test(id)

/**
 * What is wrong with an id in itself, in words. One that the provider made for a call of its own may be as long as it
 * made it.
 */
export const faultOf = (id: string, isProviders: boolean, rules: IdRules): string | undefined => {
  if (id === "") return "the call has no id"
  if (rules.characters === "word" && !isWord(id)) return `the id ${id} has more than letters, digits, _ and - in it`
  if (rules.length !== null && !isProviders && id.length > rules.length) {
    return `the id ${id} has more than ${rules.length} characters`
  }
  return undefined
}

/** The longest id that every provider takes. */
const longest = 40

/** Of which id a made one was made, as eight hexadecimal digits. */
export const hashOf = (id: string): string => Crc32.hex(new TextEncoder().encode(id))

const made = /_ec([0-9a-f]{8})(?:_[0-9]{1,8})?$/

/** The hash in a made id; `undefined` for any other. */
export const hashIn = (id: string): string | undefined => made.exec(id)?.[1]

/** What a made id holds behind its readable part, at most: a hash and a number. */
const behind = "_ec01234567_12345678".length

/** The least length that leaves room for made ids. */
export const shortest = behind + 4

/** The id that is made of another, the first or a later one: legal everywhere, and within the length of `rules`. */
export const make = (id: string, nth: number, rules: IdRules): string => {
  const room = Math.min(longest, rules.length ?? longest) - behind
  const word = id.replaceAll(/[^A-Za-z0-9_-]/g, "_")
  const start = (/^[A-Za-z0-9]/.test(word) ? word : `call${word}`).slice(0, room)
  return `${start}_ec${hashOf(id)}${nth === 1 ? "" : `_${nth}`}`
}
