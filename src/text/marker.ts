/** A whole number with its thousands set apart. */
export const thousands = (n: number): string => {
  const digits = String(n)
  let text = digits.slice(0, digits.length % 3)
  for (let at = text.length; at < digits.length; at += 3) text += (text === "" ? "" : ",") + digits.slice(at, at + 3)
  return text
}

/** What stands where a tool result was cut when it came in. */
export const capMarker = (bytes: number, locator?: string): string =>
  `\n\n[tool result cut: it had ${thousands(bytes)} bytes. `
  + (locator === undefined ? "" : `Read ${locator} for the full result. `)
  + "Ask for a narrower part of it; do not repeat a call that changes state.]"

/** The smallest cap that can be asked for, in bytes: it must hold the marker, which is ASCII, with the largest number. */
export const capMinimum = capMarker(Number.MAX_SAFE_INTEGER).length
