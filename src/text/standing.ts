import type { Language } from "./standingWords.ts"
import { languages } from "./standingWords.ts"

/** A sentence, word for word, and where it begins in its text, in UTF-16 code units. */
interface Sentence {
  readonly from: number
  readonly text: string
}

/** A text of more code units than this is material that was pasted. */
export const pasteChars = 2_000

/** Of pasted material, so much at each end may be the person's own words. */
export const endChars = 500

/** No rule is stated in a longer sentence; it also bounds what one sentence costs to judge. */
const longest = 400

const isEnd = (unit: string): boolean => unit === "." || unit === "!" || unit === "?"
const isWideEnd = (unit: string): boolean => unit === "。" || unit === "！" || unit === "？"
const isSpace = (unit: string): boolean => unit === "" || unit === " " || unit === "\t" || unit === "\r"

/** The sentences of one line. A mark ends one where something else than a letter or a digit follows it. */
const inLine = (line: string, from: number, out: Array<Sentence>): void => {
  let start = 0
  const take = (end: number): void => {
    const raw = line.slice(start, end)
    const text = raw.trimStart().replace(/^(?:[-*+•]|\d{1,3}[.)])\s+/, "")
    const skipped = raw.length - text.length
    const trimmed = text.trimEnd()
    if (trimmed !== "" && trimmed.length <= longest) out.push({ from: from + start + skipped, text: trimmed })
    start = end
  }
  for (let at = 0; at < line.length; at++) {
    const unit = line.charAt(at)
    if (isWideEnd(unit)) {
      take(at + 1)
    } else if (
      isEnd(unit) && /["'”’)\]\s]|^$/.test(line.charAt(at + 1)) && !/^\s*\d{1,3}$/.test(line.slice(start, at))
    ) {
      // A closing quote belongs to its sentence.
      take(isSpace(line.charAt(at + 1)) ? at + 1 : at + 2)
    }
  }
  take(line.length)
}

/** The sentences of a text that are its writer's own: what stands in a fence or behind a quotation mark of a reply is not. */
const sentencesOf = (text: string): ReadonlyArray<Sentence> => {
  const out: Array<Sentence> = []
  let at = 0
  let isFenced = false
  for (const line of text.split("\n")) {
    const shown = line.trimStart()
    if (shown.startsWith("```") || shown.startsWith("~~~")) isFenced = !isFenced
    else if (!isFenced && !shown.startsWith(">")) inLine(line, at, out)
    at += line.length + 1
  }
  return out
}

/** In lower case, with plain apostrophes, and one space between words. */
const plain = (text: string): string => text.toLowerCase().replaceAll(/[’‘`]/g, "'").replaceAll(/\s+/g, " ").trim()

const isLetter = (unit: string): boolean => /[\p{L}\p{N}']/u.test(unit)

/** Where a phrase stands in a text as whole words, from a place on; −1 where it does not. */
const find = (text: string, phrase: string, isSpaced: boolean, from = 0): number => {
  for (let at = text.indexOf(phrase, from); at >= 0; at = text.indexOf(phrase, at + 1)) {
    if (!isSpaced) return at
    const opens = !isLetter(phrase.charAt(0)) || !isLetter(text.charAt(at - 1) || " ")
    const closes = !isLetter(phrase.charAt(phrase.length - 1)) || phrase.endsWith("'")
      || !isLetter(text.charAt(at + phrase.length) || " ")
    if (opens && closes) return at
  }
  return -1
}

const holds = (text: string, phrases: ReadonlyArray<string>, isSpaced: boolean): boolean =>
  phrases.some((phrase) => find(text, phrase, isSpaced) >= 0)

/** Where clauses begin: behind a comma and its like, and behind what joins or softens. */
const clausesOf = (text: string): ReadonlyArray<string> =>
  text.split(/[,;:()—–]|\s-\s|\b(?:and|but|so|also|then|und|aber|et|mais|y|pero|e|ma|mas|en|maar|и|но)\s/u)
    .map((clause) => clause.trim().replace(/^(?:please|also|just|ok|okay|bitte|por favor|per favore)\s+/, ""))

const startsWith = (clause: string, phrase: string): boolean => find(clause, phrase, true) === 0

/** A word makes a rule unless it is said of somebody: "it never worked". */
const hasWord = (text: string, { subjects, words }: Language): boolean =>
  words.some((word) => {
    for (let at = find(text, word, true); at >= 0; at = find(text, word, true, at + 1)) {
      const before = text.slice(0, at).trimEnd().split(" ").at(-1) ?? ""
      if (!subjects.includes(before.replace(/^[^\p{L}]+/u, ""))) return true
    }
    return false
  })

const isRuleIn = (text: string, language: Language): boolean => {
  const { asks, begins, isSpaced } = language
  if (holds(text, language.unless, isSpaced)) return false
  if (text.endsWith("?") && !asks.some((phrase) => startsWith(text, phrase))) return false
  if (holds(text, language.holds, isSpaced)) return true
  if (!isSpaced) return false
  if (hasWord(text, language)) return true
  return clausesOf(text).some((clause) => begins.some((phrase) => startsWith(clause, phrase)))
}

/** Whether a sentence states what holds from then on, in one of the languages whose words are known. */
export const isRule = (sentence: string): boolean => {
  const text = plain(sentence)
  return languages.some((language) => isRuleIn(text, language))
}

/**
 * What is compared of two rules, in the first language that knows the sentence as one: what it is about, whether it
 * forbids, whether it puts one thing in the place of another, and with which words it says in what way to answer.
 */
export interface Rule extends Sentence {
  readonly language: Language
  readonly subject: ReadonlySet<string>
  readonly isNegative: boolean
  readonly isContrast: boolean
  readonly manner: string | undefined
}

/** What a rule is about: its words without those that every rule may have. */
const subjectOf = (text: string, { isSpaced, small }: Language): ReadonlySet<string> => {
  if (!isSpaced) return new Set(text.replaceAll(/[^\p{L}]/gu, ""))
  const words = text.match(/[\p{L}\p{N}'-]+/gu) ?? []
  return new Set(words.filter((word) => word.length > 2 && !small.includes(word)).map((word) => word.replace(/s$/, "")))
}

const ruleOf = (sentence: Sentence): Rule | undefined => {
  const text = plain(sentence.text)
  const language = languages.find((each) => isRuleIn(text, each))
  if (language === undefined) return undefined
  const { begins, contrast, isSpaced, negative } = language
  return {
    ...sentence,
    language,
    subject: subjectOf(text, language),
    isNegative: holds(text, negative, isSpaced),
    isContrast: holds(text, contrast, isSpaced),
    manner: begins.find((phrase) => / (?:in|as|with|me)$/.test(phrase) && startsWith(text, phrase))
  }
}

/**
 * The sentences of a person's text that state a lasting rule, in their order. Of pasted material only its ends are the
 * person's own words.
 */
export const rulesOf = (text: string): ReadonlyArray<Rule> => {
  const isPasted = text.length > pasteChars
  const tail = text.length - endChars
  const rules: Array<Rule> = []
  for (const sentence of sentencesOf(text)) {
    const { from, text: words } = sentence
    if (isPasted && from + words.length > endChars && from < tail) continue
    const rule = ruleOf(sentence)
    if (rule !== undefined) rules.push(rule)
  }
  return rules
}

/** How much of what two rules are about is the same, for one to be about the other. */
const same = 0.6

const overlap = (a: ReadonlySet<string>, b: ReadonlySet<string>): number => {
  const [fewer, more] = a.size <= b.size ? [a, b] : [b, a]
  let count = 0
  for (const each of fewer) if (more.has(each)) count++
  return fewer.size === 0 ? 0 : count / fewer.size
}

/**
 * Whether a later rule takes the place of an earlier one: about the same thing one of them forbids and the other does not,
 * or each puts something in the place of something else, or both say in what way to answer and do not say the same.
 */
export const supersedes = (later: Rule, earlier: Rule): boolean => {
  if (later.language !== earlier.language || later.text === earlier.text) return false
  if (later.manner !== undefined && later.manner === earlier.manner) return true
  if (later.isNegative === earlier.isNegative && !(later.isContrast && earlier.isContrast)) return false
  return overlap(later.subject, earlier.subject) >= same
}
