import type * as Schema from "effect/Schema"
import * as Crc32 from "../text/crc32.ts"

const encoder = new TextEncoder()

/**
 * A snapshot as text, with a checksum over all of it. It is believed without being checked against the log, so each byte
 * that is not as it was written must be noticed.
 */
export const encode = (body: string): string =>
  `{"version":3,"sum":"${Crc32.hex(encoder.encode(body))}","snapshot":${body}}`

const shape = /^\{"version":3,"sum":"([0-9a-f]{8})","snapshot":(\{.*\})\}$/s

/** What was encoded; `undefined` for what was not, or is not as it was written. */
export const decode = (bytes: Uint8Array): Schema.Json | undefined => {
  try {
    const match = shape.exec(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))
    if (match === null || Crc32.hex(encoder.encode(match[2])) !== match[1]) return undefined
    // What bears the checksum was written as JSON.
    return JSON.parse(match[2]!) as Schema.Json
  } catch {
    return undefined
  }
}
