import type * as Prompt from "effect/ai/Prompt"
import * as Text from "../../text/text.ts"

/** What a token of a text is made of; everything else separates two of them. */
const token = /[\w@./\\:#$~-]+/g

/** A word without what a sentence puts around a name and is no part of it. */
const withoutEdges = (word: string): string => {
  let from = 0
  let to = word.length
  while (from < to && ".:#-".includes(word[from]!)) from++
  while (to > from && ".:/-".includes(word[to - 1]!)) to--
  return word.slice(from, to)
}

const isDigit = (unit: string | undefined): boolean => unit !== undefined && unit >= "0" && unit <= "9"

/** A word without the lines at its end: `a.ts:12:3`, `a.ts#L12`. */
const withoutLine = (word: string): string => {
  let end = word.length
  for (;;) {
    let at = end
    while (isDigit(word[at - 1])) at--
    const hasDigits = at < end
    if (word[at - 1] === "L") at--
    if (!hasDigits || (word[at - 1] !== ":" && word[at - 1] !== "#")) return word.slice(0, end)
    end = at - 1
  }
}

const longest = 120

const isNumber = (word: string): boolean => /^\d{3,}$/.test(word)
const isHash = (word: string): boolean => /^[0-9a-f]{7,64}$/.test(word) && /\d/.test(word) && /[a-f]/.test(word)
const isPath = (word: string): boolean => /[/\\]/.test(word) && /[A-Za-z]/.test(word) && word.length >= 5
const isFile = (word: string): boolean => /^[\w@-][\w@.-]*\.[a-z]{1,5}$/i.test(word) && word.length >= 5
const isSymbol = (word: string): boolean =>
  word.length >= 5 && /^[A-Za-z_$][\w$]*$/.test(word)
  && (/[a-z][A-Z]/.test(word) || /[A-Za-z0-9]_[A-Za-z0-9]/.test(word) || /[A-Za-z]\d/.test(word))

const isIdentifier = (word: string): boolean =>
  word.length <= longest && (isNumber(word) || isHash(word) || isPath(word) || isFile(word) || isSymbol(word))

/** Strings between straight quotes or backticks on one line: exact words, which a paraphrase loses. */
const quoted = /(["'`])([^"'`\n]{4,60})\1/g

/** The identifiers of a text: paths, symbols, hashes, quoted strings, and numbers of three digits or more. */
export const ofText = (text: string, into: Set<string> = new Set()): Set<string> => {
  for (const [found] of text.matchAll(token)) {
    // A place in a file is that file; the line is another matter.
    const word = withoutLine(withoutEdges(found))
    if (isIdentifier(word)) into.add(word)
    else if (/[:#]/.test(word)) { for (const part of word.split(/[:#]/)) if (isIdentifier(part)) into.add(part) }
  }
  for (const [, , inner = ""] of text.matchAll(quoted)) if (/[A-Za-z]/.test(inner)) into.add(inner.trim())
  return into
}

const stringsOf = (value: unknown, into: Array<string>): ReadonlyArray<string> => {
  if (typeof value === "string") into.push(value)
  else if (typeof value === "number") into.push(String(value))
  else if (typeof value === "object" && value !== null) {
    for (const each of Object.values(value)) {
      stringsOf(each, into)
    }
  }
  return into
}

/** What is said in a call: the strings among its inputs. */
const inputsOf = (part: Prompt.ToolCallPart): ReadonlyArray<string> => stringsOf(part.params, [])

const known = new WeakMap<Prompt.Message, ReadonlySet<string>>()

/** The identifiers of a message, of what it says and of what its calls ask for; each message is read once. */
export const of = (message: Prompt.Message): ReadonlySet<string> => {
  const before = known.get(message)
  if (before !== undefined) return before
  const found = ofText(Text.ofMessage(message))
  if (message.role === "assistant") {
    for (const part of message.content) {
      if (part.type === "tool-call") { for (const text of inputsOf(part)) ofText(text, found) }
    }
  }
  known.set(message, found)
  return found
}

const edits = /edit|write|patch|replace|create|update/i

/** The files that a message changes: paths among the inputs of calls of tools that are named after changing. */
export const editedIn = (message: Prompt.Message): ReadonlySet<string> => {
  const found = new Set<string>()
  if (message.role !== "assistant") return found
  for (const part of message.content) {
    if (part.type !== "tool-call") continue
    const texts = inputsOf(part)
    const patches = texts.filter((text) => text.includes("*** Begin Patch"))
    // A patch names its files in lines of their own.
    for (const patch of patches) {
      for (const [, path = ""] of patch.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (\S+)/gm)) found.add(path)
    }
    if (patches.length > 0 || !edits.test(part.name)) continue
    for (const text of texts) if (text.length < longest && (isPath(text) || isFile(text))) found.add(text)
  }
  return found
}
