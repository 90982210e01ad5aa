import type * as Decision from "../Decision.ts"
import * as Standing from "../text/standing.ts"
import * as Text from "../text/text.ts"
import * as Transcript from "../Transcript.ts"
import type * as View from "../View.ts"
import type { Draft } from "./draft.ts"

/** The rules that a person states in an entry; each entry is read once, and only when a boundary asks. */
const known = new WeakMap<Transcript.Entry, ReadonlyArray<Standing.Rule>>()

const of = (entry: Transcript.Entry): ReadonlyArray<Standing.Rule> => {
  if (!entry.human) return []
  let rules = known.get(entry)
  if (rules === undefined) known.set(entry, rules = Standing.rulesOf(Transcript.textOf(entry)))
  return rules
}

/** More rules than this are not compared with one another: the comparison is of each with each. */
const comparable = 100

/** For each of the newest rules the newest of the earlier ones that it takes the place of. */
const superseded = (rules: ReadonlyArray<Standing.Rule>): ReadonlyMap<Standing.Rule, Standing.Rule> => {
  const found = new Map<Standing.Rule, Standing.Rule>()
  const compared = rules.slice(-comparable)
  compared.forEach((later, at) => {
    const earlier = compared.slice(0, at).findLast((each) => Standing.supersedes(later, each))
    if (earlier !== undefined) found.set(later, earlier)
  })
  return found
}

/**
 * What stands for each message of a person that states rules and is to be shortened, by its seq: the rules word for word.
 * The newest rules come first until their share of the budget is used up; a message of which none finds room has none.
 */
export const excerpts = (
  draft: Pick<Draft, "items" | "limit" | "settings" | "transcript">
): ReadonlyMap<number, string> => {
  const made = new Map<number, string>()
  let left = Math.floor(draft.limit * draft.settings.standingInstructions)
  if (left <= 0) return made
  const bySeq = new Map<number, ReadonlyArray<Standing.Rule>>()
  for (const item of draft.items) {
    const entry = item?.entry
    const rules = entry?.human === true ? of(entry) : []
    if (entry !== undefined && rules.length > 0) bySeq.set(entry.seq, rules)
  }
  const before = superseded(Array.from(bySeq.values()).flat())
  for (const [seq, those] of Array.from(bySeq).reverse()) {
    const said = those.map((rule) => {
      const older = before.get(rule)
      return older === undefined ? rule.text : `${rule.text} (newer than: ${older.text})`
    })
    // Of a message that states too many the later ones stay.
    for (let from = 0; from < said.length; from++) {
      const text = Text.excerpt(said.slice(from))
      const price = draft.transcript.priceOf(Text.textMessage(text))
      if (price > left) continue
      left -= price
      made.set(seq, text)
      break
    }
  }
  return made
}

/** The seqs of entries whose rules stood in a view and are lost by these decisions, in order. */
export const lostBy = (before: View.View, decisions: ReadonlyArray<Decision.Decision>): ReadonlyArray<number> => {
  const left = new Map<number, string>()
  for (const decision of decisions) {
    if (decision._tag === "Remove") { for (const seq of decision.seqs) left.set(seq, "") }
    else if (decision._tag === "Stub") left.set(decision.seq, "")
    else if (decision._tag === "Excerpt") left.set(decision.seq, decision.text)
  }
  return before.items.flatMap(({ entry, message, seq }) => {
    const text = left.get(seq)
    const rules = entry === undefined || text === undefined ? [] : of(entry)
    if (text === undefined || rules.length === 0) return []
    const stood = Text.ofMessage(message)
    return rules.some((rule) => stood.includes(rule.text) && !text.includes(rule.text)) ? [seq] : []
  }).sort((a, b) => a - b)
}
