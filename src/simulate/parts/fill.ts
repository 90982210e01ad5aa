/** Fills a text up to what it is billed as. Middle dots are no words, paths or numbers, and nothing trims them away. */
export const fill = (text: string, tokens: number, priceOf: (text: string) => number): string => {
  const missing = tokens - priceOf(text)
  return missing <= 0 ? text : `${text}\n\n${"·".repeat(missing * 4)}`
}

/** A text that holds filled ones, without what filled them: nobody who reads it should pay for that. */
export const unfill = (text: string): string => text.replaceAll(/\n\n·{4,}/g, "")
