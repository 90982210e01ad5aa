import type * as Schema from "effect/Schema"
import * as Crc32 from "../text/crc32.ts"

/**
 * The file of a log. Each line is one append: the seq of its first event, a checksum, and the events. A line counts when
 * it ends in a line break and its checksum holds, so an append that was torn is cut whole.
 */
export interface Batch {
  readonly seq: number
  readonly events: ReadonlyArray<Schema.Json>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })
const headDecoder = new TextDecoder()

const newline = 0x0a
const closingBrace = 0x7d

/** A line of the text of some events, its break included. */
export const line = (seq: number, text: string): string =>
  `{"seq":${seq},"sum":"${Crc32.hex(encoder.encode(text))}","events":${text}}\n`

/** The bytes of {@link line}. */
export const encode = (seq: number, text: string): Uint8Array => encoder.encode(line(seq, text))

const shape = /^\{"seq":(\d+),"sum":"([0-9a-f]{8})","events":\[/

/** The longest beginning of a line: everything before its first event. */
const longestHead = `{"seq":${Number.MAX_SAFE_INTEGER},"sum":"01234567","events":[`.length

/** Reads a line, its break excluded; `undefined` when it is no line of a log, or not as it was written. */
export const decode = (line: Uint8Array): Batch | undefined => {
  // A longer line may be cut within a character here; its head is ASCII.
  const match = shape.exec(headDecoder.decode(line.subarray(0, longestHead)))
  if (match === null || line[line.length - 1] !== closingBrace) return undefined
  const [head, seq, sum] = match
  // The sum is of the bytes as they lie there: nothing is encoded again to see that they are the ones that were written.
  const events = line.subarray(head.length - 1, line.length - 1)
  if (Crc32.hex(events) !== sum) return undefined
  try {
    // What bears the checksum was written by `encode`, so it is an array of JSON.
    return { seq: Number(seq), events: JSON.parse(decoder.decode(events)) as ReadonlyArray<Schema.Json> }
  } catch {
    return undefined
  }
}

/**
 * What a file holds: the events, how many lines and bytes of it count, and what is wrong behind them.
 *
 * - `torn`: nothing that counts comes after, so it is an append that did not end, or something foreign that was added.
 * - `damaged`: lines that count come after it: a part of the log is lost.
 */
export interface Contents {
  readonly events: Array<Schema.Json>
  /** The line of each event, from 1. */
  readonly places: Array<number>
  readonly lines: number
  readonly bytes: number
  readonly fault: "none" | "torn" | "damaged" | "out-of-order"
}

/** Reads the lines from a position on; `seq` is the seq that the first of them must have, `lines` how many come before. */
export const read = (bytes: Uint8Array, from = 0, seq = 0, lines = 0): Contents => {
  const events: Array<Schema.Json> = []
  const places: Array<number> = []
  let at = from
  for (; at < bytes.length; lines++) {
    const end = bytes.indexOf(newline, at)
    const batch = end < 0 ? undefined : decode(bytes.subarray(at, end))
    if (batch === undefined) {
      return { events, places, lines, bytes: at, fault: hasLines(bytes, at) ? "damaged" : "torn" }
    }
    if (batch.seq !== seq + events.length) return { events, places, lines, bytes: at, fault: "out-of-order" }
    for (const event of batch.events) {
      events.push(event)
      places.push(lines + 1)
    }
    at = end + 1
  }
  return { events, places, lines, bytes: at, fault: "none" }
}

const start = encoder.encode("{\"seq\":")

/** Whether a line that counts comes behind a position, even one whose beginning was joined to the line before it. */
const hasLines = (bytes: Uint8Array, from: number): boolean => {
  for (let at = from + 1; at < bytes.length; at++) {
    if (bytes[at] !== start[0] || !start.every((byte, offset) => bytes[at + offset] === byte)) continue
    const end = bytes.indexOf(newline, at)
    if (end >= 0 && decode(bytes.subarray(at, end)) !== undefined) return true
  }
  return false
}
