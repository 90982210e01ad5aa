/** What a text names that can be looked up in another one: paths, files, addresses, symbols, hashes and numbers, and what it quotes. */
interface Claim {
  readonly kind: "address" | "path" | "file" | "joined" | "hash" | "symbol" | "number" | "place" | "quote" | "code"
  readonly text: string
}

/** A text that claims are looked up in. `lower` is the text, `folded` the same without brackets and quotes, all in lower case. */
export interface Source {
  readonly lower: string
  readonly folded: string
  /** Every run of letters, digits and underscores, and the parts of names in two cases or with underscores. */
  readonly words: ReadonlySet<string>
  /** Every token that may be a path, as it stands. */
  readonly tokens: ReadonlySet<string>
  /** Every number, with and without its separators, and what it is rounded. */
  readonly numbers: ReadonlySet<string>
  /** The numbers of lines, which say nothing about how many there are of anything. */
  readonly places: ReadonlySet<string>
}

/** Longer than this a token names nothing that a person reads: encoded data, a minified line. */
const tokenLength = 300

const wordRuns = /[\p{L}\p{N}_]+/gu
const tokenRuns = /[\w@~.$%+:*?=&#\\/-]+/g
const numberRuns = /\d[\d,._]*/g

const partsOf = (name: string): ReadonlyArray<string> =>
  name.replaceAll(/([a-z\d])([A-Z])/g, "$1_$2").replaceAll(/([A-Z])([A-Z][a-z])/g, "$1_$2").toLowerCase().split("_")
    .filter(
      (part) => part !== ""
    )

const fold = (lower: string): string => lower.replaceAll(/["'`“”‘’()[\]{}\\]/g, "").replaceAll(/\s+/g, " ")

const isDigits = (text: string): boolean => /^\d+$/.test(text)

/** A token without the punctuation around it, and without the line that may follow the name of a file. */
const bare = (token: string): string => {
  let from = 0
  let to = token.length
  while (to > from && ".,:;!?-*=&#".includes(token[to - 1]!)) to--
  while (from < to && ",:;!?*=&#+-".includes(token[from]!)) from++
  return token.slice(from, to).replace(/(?::\d{1,9}(?:-\d{1,9})?(?::\d{1,9})?|#L\d{1,9}(?:-L?\d{1,9})?)$/, "")
}

const withoutDot = (path: string): string => path.startsWith("./") ? path.slice(2) : path

/** What a number is also written as: without separators, rounded, in thousands and millions. */
const formsOf = (run: string): ReadonlyArray<string> => {
  let end = run.length
  while (end > 0 && ",._".includes(run[end - 1]!)) end--
  const number = run.slice(0, end)
  const joined = plain(number)
  const isOne = joined !== number || /^\d+\.\d+$/.test(number)
  const forms = isOne ? [number, joined] : [number, ...number.split(/[,._]/)]
  const value = joined.length < 16 && /^\d+(?:\.\d+)?$/.test(joined) ? Number(joined) : Number.NaN
  if (joined.includes(".")) forms.push(...[0, 1, 2, 3].map((digits) => value.toFixed(digits)))
  for (const [size, unit] of [[1e3, "k"], [1e6, "m"], [1e9, "b"]] as const) {
    if (value >= size) forms.push(`${Math.round(value / size)}${unit}`, `${(value / size).toFixed(1)}${unit}`)
  }
  return forms
}

/** How far back a line is read to tell what its number counts, in characters. */
const backLength = 40

/** Whether a number is that of a line: before a listing or a hit of a search, behind the name of a file, or in a patch. */
const isPlace = (text: string, at: number, length: number): boolean => {
  const before = text.slice(Math.max(0, at - backLength), at)
  const line = before.slice(before.lastIndexOf("\n") + 1)
  const after = text[at + length] ?? ""
  return (line.trim() === "" && /[→\t|:]/.test(after)) || (/\w:$/.test(line) && /[:\s-]/.test(after)) ||
    line.startsWith("@@ ")
    || /\b(?:lines?|l)[\s:.#~-]{1,3}$/i.test(line)
}

/** Reads a text that claims are going to be looked up in; one pass over it for each kind. */
export const sourceOf = (text: string): Source => {
  const lower = text.toLowerCase()
  const words = new Set<string>()
  for (const word of text.match(wordRuns) ?? []) {
    words.add(word.toLowerCase())
    if (word.length < tokenLength && /[a-z\d][A-Z]|_/.test(word)) { for (const part of partsOf(word)) words.add(part) }
  }
  const tokens = new Set<string>()
  for (const token of lower.match(tokenRuns) ?? []) if (token.length < tokenLength) tokens.add(withoutDot(bare(token)))
  const numbers = new Set<string>()
  const places = new Set<string>()
  for (const { 0: run, index } of text.matchAll(numberRuns)) {
    if (run.length >= tokenLength) continue
    const forms = isPlace(text, index, run.length) ? places : numbers
    for (const form of formsOf(run)) forms.add(form)
  }
  return { lower, folded: fold(lower), words, tokens, numbers, places }
}

/** How often a name is looked for before it is taken for absent, where it only stands within longer ones. */
const occurrences = 200

/** Whether a name stands in a text, not as a part of a longer one. */
const occurs = ({ lower }: Source, name: string): boolean => {
  let at = lower.indexOf(name)
  for (let n = 0; at >= 0 && n < occurrences; n++, at = lower.indexOf(name, at + 1)) {
    const before = lower[at - 1] ?? " "
    const after = lower[at + name.length] ?? " "
    if (!/[\w-]/.test(before) && !/[\w-]/.test(after)) return true
  }
  return false
}

const extension =
  /\.(?:[a-z][a-z0-9]{0,4}|lock|gradle|properties|snapshot|config|example|jsonl|ipynb|swift|proto|scala)$/i

const isFile = (token: string): boolean =>
  /^[\w@-][\w.@-]*\.(?:[cm]?[jt]sx?|jsonl?|ya?ml|toml|mdx?|py|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|sh|sql|html?|s?css|vue|lock|txt|log|csv|xml|proto|swift|ipynb|env|cfg|ini|png|svg|patch|snap)$/i
    .test(token)

const isHash = (word: string): boolean => /^[0-9a-f]{7,64}$/i.test(word) && /\d/.test(word) && /[a-f]/i.test(word)

const isSymbol = (word: string): boolean =>
  word.length >= 3 && (/[a-z\d][A-Z]|[A-Z][A-Z][a-z]/.test(word) || /[A-Za-z\d]_[A-Za-z\d]/.test(word))

/** What a token names. */
const claimsOfToken = (token: string): ReadonlyArray<Claim> => {
  const text = bare(token)
  if (text.length < 2 || token.length >= tokenLength || text.includes("*") || text.includes("...")) return []
  if (text.includes("://")) return [{ kind: "address", text }]
  if (text.includes("/")) {
    const segments = text.split("/").filter((segment) => segment !== "")
    if (segments.every(isDigits)) return []
    const isPath = /^(?:\/|~\/|\.{1,2}\/|@)/.test(text) || extension.test(text)
    if (segments.length === 1 && text.startsWith("/")) return [{ kind: "joined", text }]
    return [{ kind: isPath ? "path" : "joined", text }]
  }
  if (isFile(text)) return [{ kind: "file", text }]
  return text.split(/[^\w$]+/).flatMap((word): ReadonlyArray<Claim> =>
    isHash(word) ? [{ kind: "hash", text: word }] : isSymbol(word) ? [{ kind: "symbol", text: word }] : []
  )
}

/** The numbers of a text: not those that are part of a name, nor the number of an item in a list. */
const numbersOf = (text: string): ReadonlyArray<Claim> => {
  const claims: Array<Claim> = []
  for (const { 0: run, index } of text.matchAll(numberRuns)) {
    const before = text[index - 1] ?? "\n"
    const after = text.slice(index + run.length, index + run.length + 4)
    if (run.length >= tokenLength || /[\w.]/.test(before) || /^[A-Za-z_]{3}/.test(after)) continue
    const isItem = /^[.)]?\s/.test(after) && run.length <= 3 &&
      /(?:^|\n)[\s#*-]{0,9}$/.test(text.slice(Math.max(0, index - 10), index))
      && /[.]$|^[)]/.test(run + after[0])
    const unit = /^[kKmMbB](?!\w)/.exec(after)?.[0] ?? ""
    let end = run.length
    while (end > 1 && ",._".includes(run[end - 1]!)) end--
    const number = run.slice(0, end) + unit.toLowerCase()
    const kind = isPlace(text, index, run.length) || claims.at(-1)?.kind === "place" && before === "-"
      ? "place"
      : "number"
    if (!isItem && number.length > 1) {
      claims.push({ kind, text: number })
    }
  }
  return claims
}

/** How much of a summary is judged, in characters; the shrink guard has seen to it that few are longer. */
const judged = 60_000

/** What a summary names, in its order: nothing twice. */
const claimsOf = (summary: string): ReadonlyArray<Claim> => {
  const text = summary.slice(0, judged)
  const found = new Map<string, Claim>()
  const add = (claim: Claim) => found.has(claim.text) || found.set(claim.text, claim)
  for (const [token] of text.matchAll(tokenRuns)) claimsOfToken(token).forEach(add)
  numbersOf(text).forEach(add)
  for (const [quoted] of text.matchAll(/`[^`\n]{2,120}`|"[^"\n]{2,120}"/g)) {
    add({ kind: quoted.startsWith("`") ? "code" : "quote", text: quoted.slice(1, -1) })
  }
  return [...found.values()]
}

const wordsOf = (text: string): ReadonlyArray<string> =>
  (text.toLowerCase().match(wordRuns) ?? []).filter((word) => word.length > 1 && !isDigits(word))

const hasWord = ({ words }: Source, word: string): boolean =>
  words.has(word) || (word.endsWith("s") && words.has(word.slice(0, -1))) ||
  partsOf(word).every((part) => words.has(part))

const hasSymbol = (source: Source, name: string): boolean => {
  const lower = name.toLowerCase()
  if (source.words.has(lower) || (lower.endsWith("s") && source.words.has(lower.slice(0, -1)))) return true
  const parts = partsOf(name)
  return parts.length > 1 && ["", "_", "-", " ", "."].some((between) => occurs(source, parts.join(between)))
}

/** A path that stands there, or a folder that stands there and a path within it that stands there by itself. */
const hasPath = (source: Source, path: string): boolean => {
  const name = withoutDot(path.toLowerCase())
  const whole = name.endsWith("/") ? name.slice(0, -1) : name
  if (source.tokens.has(whole) || occurs(source, whole)) return true
  const segments = whole.split("/")
  return segments.some((_, at) =>
    at > 0 && source.tokens.has(segments.slice(at).join("/")) && segments.slice(0, at).join("/").length > 1
    && occurs(source, segments.slice(0, at).join("/"))
  )
}

const hasNumber = (numbers: ReadonlySet<string>, text: string): boolean => numbers.has(text) || numbers.has(plain(text))

/** A number without its separators; what is no number of thousands stays as it is. */
const plain = (text: string): string =>
  /^\d{1,3}(?:[,_]\d{3}){1,6}(?:\.\d{1,9})?$/.test(text) ? text.replaceAll(/[,_]/g, "") : text

/** Numbers that are listed with commas and no space between them; a number of thousands is one. */
const listed = (text: string): ReadonlyArray<string> => plain(text) === text ? text.split(/[,_]/) : [text]

const isFound = (source: Source, { kind, text }: Claim): boolean => {
  const lower = text.toLowerCase()
  switch (kind) {
    case "address":
      return source.lower.includes(lower)
    case "path":
      return hasPath(source, text)
    case "file":
      return source.tokens.has(lower) || occurs(source, lower)
    case "joined":
      return text.split("/").every((part) => wordsOf(part).every((word) => hasWord(source, word))) ||
        hasPath(source, text)
    case "hash":
      return source.words.has(lower) || source.lower.includes(lower)
    case "symbol":
      return hasSymbol(source, text)
    case "number":
      return listed(text).every((number) =>
        number.length < 3
          ? number.length < 2 || source.numbers.has(number) || source.places.has(number)
          : hasNumber(source.numbers, number)
      )
    case "place":
      return hasNumber(source.places, text) || hasNumber(source.numbers, text)
    case "quote":
    case "code":
      return isSaid(source, text, kind)
  }
}

/** The share of its words that a quotation in prose must have in the source. */
const quotedShare = 0.7

/** Whether what is quoted stands there, or all of its words do: code is put together of what was read. */
const isSaid = (source: Source, text: string, kind: "quote" | "code"): boolean => {
  const folded = fold(text.toLowerCase()).trim()
  if (folded === "" || source.folded.includes(folded)) return true
  const words = wordsOf(text)
  const known = words.filter((word) => hasWord(source, word)).length
  if (kind === "code") return known === words.length
  // One word in quotes is a word that the summary uses, not one that somebody said.
  return words.length < 2 || known >= words.length * quotedShare
}

/** How many claims are reported. */
const reported = 100

/** The claims of a summary that its source does not bear out, each within the longest that holds it. */
export const straysOf = (summary: string, source: Source): ReadonlyArray<string> => {
  const texts = claimsOf(summary).filter((claim) => !isFound(source, claim)).slice(0, reported).map(({ text }) => text)
  return texts.filter((text) => !texts.some((other) => other !== text && other.includes(text)))
}

/** What a text names, each as often as it stands there: files and folders, and symbols. */
export const namesIn = (
  text: string
): { readonly files: ReadonlyArray<string>; readonly symbols: ReadonlyArray<string> } => {
  const files: Array<string> = []
  const symbols: Array<string> = []
  for (const token of text.match(tokenRuns) ?? []) {
    for (const { kind, text: name } of claimsOfToken(token)) {
      if (kind === "path" || kind === "file") files.push(name)
      else if (kind === "symbol" || kind === "hash") symbols.push(name)
    }
  }
  return { files, symbols }
}
