/** What a query looks for in a text, and what it shows of it. */
import * as Fold from "./fold.ts"
import * as Pattern from "./pattern.ts"
import * as Text from "./text.ts"

/** How many characters are shown. */
const excerptLength = 300

/** How many words are looked for at once, and how long a query may be, in characters. */
const mostWords = 16
const mostCharacters = 500

/** An excerpt with a place in its middle, cut between whole characters; the place is in it, with what begins there. */
const excerptAt = (text: string, at: number, length: number): string => {
  const around = Math.max(0, Math.floor((excerptLength - length) / 2))
  const from = Text.safeCut(text, Math.max(0, Math.min(at - around, text.length - excerptLength)))
  return text.slice(from, Text.safeCut(text, from + excerptLength))
}

/** Why a query is not looked for; the fields of the error that says so. */
export interface Refusal {
  readonly reason: "words" | "length" | "syntax" | "unsafe" | "size"
  readonly what: string
  readonly given: number
  readonly most: number
}

const refused = (reason: Refusal["reason"], given: number, most: number, what = ""): Refusal => ({
  reason,
  what,
  given,
  most
})

/** Says of a text what to show of it, `undefined` where it is not what is looked for. */
export type Look = (text: string) => string | undefined

const countOf = (text: string, word: string): number => {
  let count = 0
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) count++
  return count
}

/** Looks for all of some words, in any case. */
export const forWords = (query: string): Look | Refusal => {
  const words = [...new Set(Fold.fold(query).split(/\s+/).filter((word) => word !== ""))]
  if (query.length > mostCharacters) return refused("length", query.length, mostCharacters)
  if (words.length > mostWords) return refused("words", words.length, mostWords)
  if (words.length === 0) return () => undefined
  return (text) => {
    const folded = Fold.fold(text)
    if (!words.every((word) => folded.includes(word))) return undefined
    const counted = words.map((word) => ({ word, count: countOf(folded, word) }))
    const { word } = counted.reduce((best, each) =>
      each.count < best.count || (each.count === best.count && each.word.length > best.word.length) ? each : best
    )
    return excerptAt(text, folded.indexOf(word), word.length)
  }
}

/** Looks for a match of a regular expression. */
export const forPattern = (query: string): Look | Refusal => {
  const pattern = Pattern.compile(query)
  if ("reason" in pattern) {
    switch (pattern.reason) {
      case "length":
        return refused("length", pattern.given, Pattern.mostCharacters)
      case "size":
        return refused("size", pattern.given, Pattern.mostSteps)
      case "syntax":
      case "unsafe":
        return refused(pattern.reason, pattern.at, 0, pattern.what)
    }
  }
  if (query === "") return () => undefined
  return (text) => {
    const end = pattern.find(text)
    return end === -1 ? undefined : excerptAt(text, Math.max(0, end - 1), 1)
  }
}
