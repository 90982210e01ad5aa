/** Cuts text into lines, and finds the JSON values in a line that is not one. */
import type * as Schema from "effect/Schema"
import * as Json from "./json.ts"

/** The longest line in UTF-16 code units, and the longest document: engines have no texts above 536,870,888. */
export const maxLength = 500_000_000

/** Text that comes in pieces of any size; only the unfinished line is kept. */
export interface Lines {
  rest: string
  /** Whether a line was longer than may be; nothing is taken after it. */
  isOver: boolean
}

export const lines = (): Lines => ({ rest: "", isOver: false })

/** Takes a piece and hands on the lines that it ends. */
export const push = (self: Lines, text: string, onLine: (line: string) => void, longest: number = maxLength): void => {
  let from = 0
  while (!self.isOver) {
    const end = text.indexOf("\n", from)
    const to = end < 0 ? text.length : end
    if (self.rest.length + to - from > longest) {
      self.isOver = true
      self.rest = ""
      return
    }
    const line = self.rest + text.slice(from, to)
    if (end < 0) {
      self.rest = line
      return
    }
    self.rest = ""
    from = end + 1
    onLine(line.endsWith("\r") ? line.slice(0, -1) : line)
  }
}

/** Hands on the last line, which no line feed ends. */
export const finish = (self: Lines, onLine: (line: string) => void): void => {
  const line = self.rest
  self.rest = ""
  if (line !== "") onLine(line)
}

/**
 * What could be read of a line that is not one JSON value, and how many characters could not. `scanned` is how many
 * characters were looked at in search of the ends of records: the work, in steps.
 */
export interface Recovered {
  readonly values: ReadonlyArray<Schema.JsonObject>
  readonly lost: number
  readonly scanned: number
}

// Every start that leads nowhere is read to the end of the line, so their number bounds the time: a line of one
// megabyte with broken starts everywhere must not take hours.
export const maxFailedStarts = 32

/**
 * Finds the records in a torn line: records that run together, or half a record before whole ones.
 *
 * A record starts at the start of the line, right after another record, or where an object begins with a key that
 * records of this file begin with; `keys` holds those. An object inside half a record therefore is no record.
 */
export const recover = (line: string, keys: ReadonlySet<string>): Recovered => {
  const values: Array<Schema.JsonObject> = []
  let read = 0
  let failed = 0
  let scanned = 0
  let start = line.search(/\S/)
  while (start >= 0 && start < line.length) {
    const end = line[start] === "{" ? objectEnd(line, start) : -1
    if (line[start] === "{") scanned += (end < 0 ? line.length : end) - start
    const value = end < 0 ? undefined : Json.parse(line.slice(start, end))
    if (Json.isObject(value)) {
      values.push(value)
      read += end - start
      start = end
      while (start < line.length && /\s/.test(line.charAt(start))) start++
      continue
    }
    failed++
    start = failed > maxFailedStarts ? -1 : nextStart(line, start + 1, keys)
  }
  return { values, lost: line.trim().length - read, scanned }
}

/** Where the object that begins at `start` ends, or -1. */
const objectEnd = (line: string, start: number): number => {
  let depth = 0
  let quoted = false
  for (let i = start; i < line.length; i++) {
    const code = line.charCodeAt(i)
    if (quoted) {
      if (code === 92) i++
      else if (code === 34) quoted = false
    } else if (code === 34) {
      quoted = true
    } else if (code === 123 || code === 91) {
      depth++
    } else if (code === 125 || code === 93) {
      depth--
      if (depth === 0) return i + 1
    }
  }
  return -1
}

const nextStart = (line: string, from: number, keys: ReadonlySet<string>): number => {
  for (let start = line.indexOf("{\"", from); start >= 0; start = line.indexOf("{\"", start + 1)) {
    const end = line.indexOf("\"", start + 2)
    if (end > 0 && keys.has(line.slice(start + 2, end))) return start
  }
  return -1
}
