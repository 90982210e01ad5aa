/**
 * The text in lower case, unit for unit as long as it was, so that a place in one is a place in the other. One capital is
 * longer in lower case (İ), and one has two small letters by where it stands (Σ).
 */
export const fold = (text: string): string => text.replaceAll("İ", "i").toLowerCase().replaceAll("ς", "σ")

/** The code points that are the same letter in another case. */
export const casesOf = (code: number): ReadonlyArray<number> => {
  const char = String.fromCodePoint(code)
  const folded = fold(char)
  return [folded, char.toUpperCase(), folded === "σ" ? "ς" : folded].flatMap((other) => {
    const at = other.codePointAt(0)
    return at === undefined || at === code || String.fromCodePoint(at) !== other ? [] : [at]
  })
}
