/** A whole number with its thousands set apart. */
export const thousands = (n: number): string => {
  const digits = String(n)
  const first = digits.length % 3
  const groups = Array.from(
    { length: Math.floor(digits.length / 3) },
    (_, at) => digits.slice(first + 3 * at, first + 3 * at + 3)
  )
  return [...(first === 0 ? [] : [digits.slice(0, first)]), ...groups].join(",")
}

/** What stands where a tool result was cut when it came in. */
export const capMarker = (bytes: number, locator?: string): string =>
  `\n\n[tool result cut: it had ${thousands(bytes)} bytes. `
  + (locator === undefined ? "" : `Read ${locator} for the full result. `)
  + "Ask for a narrower part of it; do not repeat a call that changes state.]"

/** The smallest cap that can be asked for, in bytes: it must hold the marker, which is ASCII, with the largest number. */
export const capMinimum = capMarker(Number.MAX_SAFE_INTEGER).length
