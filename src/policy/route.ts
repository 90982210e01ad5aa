/** Whether a route fits a pattern, in which `*` stands for any text, none included. */
const fits = (pattern: string, route: string): boolean => {
  const [first = "", ...rest] = pattern.split("*")
  const last = rest.pop()
  if (last === undefined) return route === pattern
  if (!route.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = route.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return route.length - last.length >= at && route.endsWith(last)
}

const wildcards = (pattern: string): number => pattern.split("*").length - 1

/** How much of a route a pattern says: the letters that are no wildcard. */
const exactness = (pattern: string): number => pattern.length - wildcards(pattern)

/**
 * The most exact of the patterns that fit a route: the one that says most of its letters, and of two the one with fewer
 * wildcards; `undefined` when none fits.
 */
export const mostExact = (patterns: Iterable<string>, route: string): string | undefined => {
  let best: string | undefined
  for (const pattern of patterns) {
    if (!fits(pattern, route)) continue
    const gain = best === undefined ? 1 : exactness(pattern) - exactness(best)
    if (gain > 0 || (gain === 0 && wildcards(pattern) < wildcards(best ?? ""))) best = pattern
  }
  return best
}
