/** Reads when something was written, in milliseconds since the epoch. */
import type * as Schema from "effect/Schema"

// A clock that was never set says 1970, and a count of another unit says a year far away: neither is a time.
const earliest = Date.UTC(2000, 0, 1)
const latest = Date.UTC(2100, 0, 1)

const plausible = (time: number): number | undefined => time >= earliest && time < latest ? Math.round(time) : undefined

const iso = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}/
const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i

/** A date and time as text. One without a zone is taken as UTC, so that a file reads alike on every machine. */
export const ofText = (value: Schema.Json | undefined): number | undefined => {
  if (typeof value !== "string" || !iso.test(value)) return undefined
  const text = value.replace(" ", "T")
  return plausible(Date.parse(zoned.test(text) ? text : `${text}Z`))
}

export const ofMillis = (value: Schema.Json | undefined): number | undefined =>
  typeof value === "number" ? plausible(value) : undefined

export const ofSeconds = (value: Schema.Json | undefined): number | undefined =>
  typeof value === "number" ? plausible(value * 1000) : undefined
