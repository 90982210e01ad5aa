import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../Marks.ts"
import * as Claims from "./claims.ts"
import * as Rules from "./rules.ts"
import * as Text from "./text.ts"

/** A section of an extract: its heading, the share of the room it may take, and its lines, the ones to be kept last. */
interface Section {
  readonly heading: string
  readonly share: number
  readonly lines: ReadonlyArray<string>
}

const charsPerToken = 4

/** What a text costs, in characters at four a token; a wide one costs a token. */
const costOf = (text: string): number =>
  text.length + (charsPerToken - 1) * (text.match(/[\u0800-\uffff]/g)?.length ?? 0)

/** A text on one line of so many characters; one that is longer ends with a whole word, so that no name is cut. */
const oneLine = (text: string, limit: number): string => {
  const line = text.slice(0, 2 * limit).replace(/\s+/g, " ").trim()
  if (line.length <= limit && text.length <= 2 * limit) return line
  const space = line.lastIndexOf(" ", limit - 1)
  return `${line.slice(0, space > limit / 2 ? space : Text.safeCut(line, limit - 1))}…`
}

const unique = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  // Of equal lines the newest place counts.
  const seen = new Set<string>()
  return lines.toReversed().filter((line) => line !== "" && !seen.has(line) && seen.add(line)).reverse()
}

const decision =
  /\b(decid\w{0,9}|because|instead|chose|choose|let's|i'?ll|i will|going to|the (fix|cause|problem|reason) (is|was)|fixed|changed|added|removed|renamed)\b/i

const failure =
  /\b(error|exception|fail(ed|ure|s)?|cannot|could not|not found|undefined|denied|refused|panic|traceback|assert\w{0,9}|expected)\b/i

const pending = /\b(next( step)?|todo|remaining|still (need|have|to)|not yet|left to do|later|follow.?up)\b/i

const editing = /edit|write|patch|replace|create|update|delete|remove|rename|move/i

/** How much of one text is read, from both ends of it. */
const readLength = 12_000

const read = (text: string): string =>
  text.length <= 2 * readLength ? text : `${text.slice(0, readLength)}\n${text.slice(-readLength)}`

/** The texts in a value, in their order; it may be as deep as one likes, and lead back to itself. */
const strings = (value: unknown): ReadonlyArray<string> => {
  const found: Array<string> = []
  const left: Array<unknown> = [value]
  const seen = new Set<unknown>()
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next === "string") found.push(next)
    else if (typeof next === "object" && next !== null && !seen.has(next)) {
      seen.add(next)
      const inner: ReadonlyArray<unknown> = Object.values(next)
      for (let at = inner.length - 1; at >= 0; at--) left.push(inner[at])
    }
  }
  return found
}

/** The lines of an earlier checkpoint, without its envelope, its headings and what a ledger carries on anyway. */
const earlier = (text: string): ReadonlyArray<string> => {
  const end = text.indexOf("## In the user's own words")
  return text.slice(0, end < 0 ? text.length : end).split("\n").flatMap((line) =>
    line.startsWith("- ") ? [line.slice(2)] : []
  )
}

const isPersons = (message: Prompt.UserMessage): boolean => {
  const { ephemeral, source } = Marks.of(message)
  return ephemeral !== true && (source === undefined || !Marks.machineSources.has(source))
}

/** How much each name was used: what is used often and late is what is used again. */
type Uses = Map<string, number>

const use = (self: Uses, name: string, weight: number): Uses => self.set(name, (self.get(name) ?? 0) + weight)

/** The names, the most used ones last. */
const ranked = (self: Uses): ReadonlyArray<string> => [...self].sort(([, a], [, b]) => a - b).map(([name]) => name)

/** An item of a plan that an agent keeps with a tool: what is to be done, and whether it is. */
const planOf = (params: unknown): ReadonlyArray<{ readonly text: string; readonly isDone: boolean }> => {
  const lists = typeof params === "object" && params !== null ? Object.values(params).filter(Array.isArray) : []
  return lists.flat().flatMap((item: unknown) => {
    if (typeof item !== "object" || item === null || !("status" in item) || typeof item.status !== "string") return []
    const text = Object.entries(item).find(([key, value]) =>
      key !== "status" && key !== "id" && typeof value === "string"
    )?.[1]
    return typeof text === "string" ? [{ text, isDone: /^(completed?|done)$/i.test(item.status) }] : []
  })
}

/** What is gathered of the messages of a span. */
interface Gathered {
  readonly before: Array<string>
  readonly asked: Array<string>
  readonly decided: Array<string>
  readonly done: Array<string>
  readonly open: Array<string>
  readonly errors: Array<string>
  readonly results: Array<string>
  readonly said: Array<string>
  readonly files: Uses
  readonly symbols: Uses
  plan: ReadonlyArray<{ readonly text: string; readonly isDone: boolean }>
}

/** Notes the names in a text. */
const note = ({ files, symbols }: Gathered, text: string, weight: number): void => {
  const names = Claims.namesIn(read(text))
  for (const file of names.files) use(files, file, weight)
  for (const symbol of names.symbols) use(symbols, symbol, weight)
}

/** How much each place of a name counts: what the agent acts on, what it says, and what it only saw. */
const weights = { edited: 4, called: 2, said: 1, shown: 0.15 }

const gatherCalls = (
  self: Gathered,
  message: Prompt.AssistantMessage,
  outcomes: ReadonlyMap<string, string>,
  recency: number
): void => {
  for (const part of message.content) {
    if (part.type !== "tool-call") continue
    const { id, name, params } = part
    const plan = planOf(params)
    if (plan.length > 0) {
      self.plan = plan
      continue
    }
    const words = typeof params === "string" ? [params] : strings(params)
    note(self, words.join("\n"), recency * (editing.test(name) ? weights.edited : weights.called))
    self.done.push(`${name}: ${oneLine(words.join(" "), 160)}${outcomes.get(id) ?? ""}`)
  }
}

/** How each call ended, where that was a failure: by the id of the call. */
const outcomesOf = (messages: ReadonlyArray<Prompt.Message>): ReadonlyMap<string, string> => {
  const outcomes = new Map<string, string>()
  for (const message of messages) {
    if (message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type === "tool-result" && part.isFailure) outcomes.set(part.id, ` (failed)`)
    }
  }
  return outcomes
}

const gatherMessage = (
  self: Gathered,
  message: Prompt.Message,
  outcomes: ReadonlyMap<string, string>,
  recency: number
) => {
  const text = Text.ofMessage(message)
  if (message.role === "user") {
    if (isPersons(message)) {
      note(self, text, recency * weights.called)
      self.asked.push(text)
    } else if (Marks.of(message).checkpoint !== undefined) {
      self.before.push(...earlier(text))
    }
  } else if (message.role === "assistant") {
    note(self, text, recency * weights.said)
    for (const sentence of Rules.sentencesOf(read(text))) {
      if (pending.test(sentence)) self.open.push(sentence)
      else if (decision.test(sentence)) self.decided.push(sentence)
      else self.said.push(sentence)
    }
    gatherCalls(self, message, outcomes, recency)
  } else if (message.role === "tool") {
    note(self, text, recency * weights.shown)
    const lines = read(text).split("\n")
    self.errors.push(...lines.filter((line) => failure.test(line)).slice(-6).map((line) => line.trim()))
    self.results.push(lines.filter((line) => line.trim() !== "").slice(-3).join(" "))
  }
}

/** The sections of an extract, in their order. `limit` is how long a line may be, in characters. */
const sectionsOf = (messages: ReadonlyArray<Prompt.Message>, limit: number): ReadonlyArray<Section> => {
  const self: Gathered = {
    before: [],
    asked: [],
    decided: [],
    done: [],
    open: [],
    errors: [],
    results: [],
    said: [],
    files: new Map(),
    symbols: new Map(),
    plan: []
  }
  const outcomes = outcomesOf(messages)
  messages.forEach((message, at) => gatherMessage(self, message, outcomes, 1 + (3 * (at + 1)) / messages.length))
  const cut = (lines: ReadonlyArray<string>, of = limit) => unique(lines.map((line) => oneLine(line, of)))
  const planned = (isDone: boolean) => self.plan.filter((item) => item.isDone === isDone).map(({ text }) => text)
  return [
    { heading: "Earlier", share: 0.2, lines: cut(self.before) },
    { heading: "Request", share: 0.15, lines: cut(self.asked, 2 * limit) },
    { heading: "Decisions", share: 0.15, lines: cut(self.decided) },
    { heading: "Done", share: 0.12, lines: cut([...self.done, ...planned(true)]) },
    { heading: "Pending", share: 0.06, lines: cut([...self.open, ...planned(false)]) },
    { heading: "Files", share: 0.12, lines: ranked(self.files) },
    { heading: "Names", share: 0.1, lines: ranked(self.symbols) },
    { heading: "Errors", share: 0.06, lines: cut(self.errors) },
    { heading: "Last results", share: 0.04, lines: cut(self.results, 2 * limit) },
    { heading: "Said", share: 0, lines: cut(self.said) }
  ]
}

/** What is kept of the lines of a section: those from its end that have room, in their order. */
interface Kept {
  readonly section: Section
  count: number
  cost: number
}

const headingCost = (heading: string): number => heading.length + 8

const lineCost = (line: string): number => costOf(line) + 3

/** Takes further lines of a section while there is room; returns how much room is left. */
const take = (kept: Kept, room: number): number => {
  const { lines } = kept.section
  let left = room
  while (kept.count < lines.length) {
    const cost = lineCost(lines[lines.length - 1 - kept.count]!) +
      (kept.count === 0 ? headingCost(kept.section.heading) : 0)
    if (cost > left) break
    left -= cost
    kept.cost += cost
    kept.count++
  }
  return left
}

/** The room of a summary of the usual length; with more of it lines are cut later. */
const usualRoom = 8_000
const usualLine = 240

/** What can be taken out of messages without a model, in at most about `maxTokens` tokens; empty when it is nothing. */
export const summary = (messages: ReadonlyArray<Prompt.Message>, maxTokens: number): string => {
  const room = maxTokens * charsPerToken
  const limit = Math.round(usualLine * Math.min(4, Math.max(0.5, room / usualRoom)))
  const all = sectionsOf(messages, limit).map((section): Kept => ({ section, count: 0, cost: 0 }))
  let left = room
  let spare = 0
  for (const kept of all) {
    // What one section leaves, the next may use.
    spare = take(kept, Math.floor(kept.section.share * room) + spare)
    left -= kept.cost
  }
  // And what all of them leave goes to those that had more to say.
  for (const kept of all) left = take(kept, left)
  return all.filter(({ count }) => count > 0).map(({ count, section: { heading, lines } }) =>
    `## ${heading}\n\n${lines.slice(-count).map((line) => `- ${line}`).join("\n")}`
  ).join("\n\n")
}
