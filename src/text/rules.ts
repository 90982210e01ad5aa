/** Words by which people state what must or must not be, or what they want instead. */
const constraint =
  /\b(must|never|always|don't|do not|doesn't|avoid|only|without|instead|prefer|require[sd]?|should(n't| not)?|make sure|ensure|keep|need(s)? to|no longer|not allowed|at (most|least)|no more than)\b/i

/** The sentences of a text: they end at a mark and a space, or with their line. */
export const sentencesOf = (text: string): ReadonlyArray<string> =>
  text.split(/(?<=[.!?])\s+|\n+/).map((sentence) => sentence.trim()).filter((sentence) => sentence !== "")

/** The sentences of a text that state a constraint or a preference. */
export const constraintsOf = (text: string): ReadonlyArray<string> =>
  sentencesOf(text).filter((sentence) => constraint.test(sentence))

/** Words by which a rule is stated. */
const rule = /\b(must|never|always|must not|do not|don't|forbidden|not allowed)\b/i

/** How a sentence begins that is a rule by itself, under whatever heading it stands. */
const command = /^(?:you must|never|always)\b/i

/** The sections in which a summary states what people asked for. */
const ruling = /constraint|rule|request|preference|requirement|instruction|guideline/i

const isHeading = (line: string): boolean => /^\s{0,3}(?:#{1,6}\s|\*\*[^*]{1,80}\*\*:?\s{0,9}$)/.test(line)

/** The sentences that a summary states as rules: those of its constraints and requests, and commands. */
const rulesOf = (summary: string): ReadonlyArray<string> => {
  let isRuling = false
  return summary.split("\n").flatMap((line) => {
    if (isHeading(line)) {
      isRuling = ruling.test(line)
      return []
    }
    return sentencesOf(line).filter((sentence) =>
      rule.test(sentence) && (isRuling || command.test(sentence.replace(/^[-*•>\s]{1,9}/, "")))
    )
  })
}

/** Words are compared by their beginning: the same one is often put in another form. */
const stemLength = 5

const stems = (text: string): ReadonlyArray<string> =>
  (text.toLowerCase().match(/[\p{L}\p{N}_]{4,}/gu) ?? []).map((word) => word.slice(0, stemLength))

/** How much of a summary is read, in characters. */
const judged = 60_000

/** How many rules of a summary are looked up. */
const rulesRead = 100

/** The rules that no sentence of those that were stated, with the one behind it, has at least half of the words of. */
export const unstated = (summary: string, stated: ReadonlyArray<string>): ReadonlyArray<string> => {
  const said = stated.flatMap((text) => sentencesOf(text).map((sentence) => new Set(stems(sentence))))
  return rulesOf(summary.slice(0, judged)).slice(0, rulesRead).filter((sentence) => {
    const content = stems(sentence.replace(rule, ""))
    return content.length > 0 &&
      !said.some((own, at) =>
        content.filter((word) => own.has(word) || said[at + 1]?.has(word) === true).length * 2 >= content.length
      )
  })
}
