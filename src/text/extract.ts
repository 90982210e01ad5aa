import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../Marks.ts"
import * as Traits from "../wire/traits.ts"
import * as Text from "./text.ts"

/** A section of an extract: its heading, the share of the room it may take, and its lines, newest last. */
interface Section {
  readonly heading: string
  readonly share: number
  readonly lines: ReadonlyArray<string>
}

const charsPerToken = 4

const oneLine = (text: string, limit: number): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length <= limit ? line : `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "")}…`
}

const unique = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  // Of equal lines the newest place counts.
  const seen = new Set<string>()
  return [...lines].reverse().filter((line) => line !== "" && !seen.has(line) && seen.add(line)).reverse()
}

const path =
  /(?:\.{0,2}\/)?(?:[\w@.-]+\/)+[\w@.-]*\w|\b[\w-]+\.(?:[cm]?[jt]sx?|json|ya?ml|toml|md|py|rs|go|java|c|h|cpp|sh|sql|html|css)\b/g

const decision =
  /\b(decid\w*|because|instead|chose|choose|let's|i'?ll|i will|going to|the (fix|cause|problem|reason) (is|was)|fixed|changed|added|removed|renamed)\b/i

const failure =
  /\b(error|exception|fail(ed|ure|s)?|cannot|could not|not found|undefined|denied|refused|panic|traceback|assert\w*|expected)\b/i

const sentences = (text: string): ReadonlyArray<string> => text.split(/(?<=[.!?])\s+|\n+/)

/** The texts in a value, in their order, however deep; those of an object that stands in several places once. */
const strings = (value: unknown): ReadonlyArray<string> => {
  const found: Array<string> = []
  const seen = new Set<object>()
  const left: Array<unknown> = [value]
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next === "string") found.push(next)
    if (typeof next !== "object" || next === null || seen.has(next)) continue
    seen.add(next)
    const values: ReadonlyArray<unknown> = Object.values(next)
    for (let at = values.length - 1; at >= 0; at--) left.push(values[at])
  }
  return found
}

const commandOf = (part: Prompt.ToolCallPart): string => {
  const { params } = part
  const words = typeof params === "string" ? [params] : strings(params)
  return `${part.name}: ${oneLine(words.join(" "), 160)}`
}

/** The lines of an earlier checkpoint, without its envelope, its headings and what a ledger carries on anyway. */
const earlier = (text: string): ReadonlyArray<string> =>
  text
    .replace(/## In the user's own words[\s\S]*$/, "")
    .split("\n")
    .filter((line) => line.startsWith("- "))
    .map((line) => line.slice(2))

const gather = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Section> => {
  const before: Array<string> = []
  const asked: Array<string> = []
  const decided: Array<string> = []
  const paths: Array<string> = []
  const commands: Array<string> = []
  const errors: Array<string> = []
  const results: Array<string> = []
  for (const message of messages) {
    const text = Text.ofMessage(message)
    if (message.role === "user") {
      if (Traits.isHuman(message)) asked.push(oneLine(text, 400))
      else if (Marks.of(message).checkpoint !== undefined) before.push(...earlier(text))
    } else if (message.role === "assistant") {
      decided.push(...sentences(text).filter((sentence) => decision.test(sentence)).map((each) => oneLine(each, 240)))
      for (const part of message.content) {
        if (part.type !== "tool-call") continue
        commands.push(commandOf(part))
        paths.push(...strings(part.params).flatMap((each) => each.length < 400 ? each.match(path) ?? [] : []))
      }
    } else if (message.role === "tool") {
      errors.push(...text.split("\n").filter((line) => failure.test(line)).slice(-6).map((line) => oneLine(line, 200)))
      const tail = text.trimEnd().split("\n").slice(-3).join(" ")
      if (tail !== "") results.push(oneLine(tail.slice(-400), 300))
    }
  }
  return [
    { heading: "Earlier", share: 0.25, lines: unique(before) },
    { heading: "Request", share: 0.15, lines: unique(asked) },
    { heading: "Decisions", share: 0.2, lines: unique(decided) },
    { heading: "Files", share: 0.1, lines: unique(paths) },
    { heading: "Commands", share: 0.1, lines: unique(commands) },
    { heading: "Errors", share: 0.1, lines: unique(errors) },
    { heading: "Last results", share: 0.1, lines: unique(results).slice(-3) }
  ]
}

/** The newest lines that fit, in their order. */
const fitting = (lines: ReadonlyArray<string>, room: number): ReadonlyArray<string> => {
  let left = room
  const kept: Array<string> = []
  for (let at = lines.length - 1; at >= 0; at--) {
    const line = `- ${lines[at]!}`
    if (line.length + 1 > left) break
    left -= line.length + 1
    kept.push(line)
  }
  return kept.reverse()
}

/** What can be taken out of messages without a model, in at most about `maxTokens` tokens; empty when it is nothing. */
export const summary = (messages: ReadonlyArray<Prompt.Message>, maxTokens: number): string => {
  const room = maxTokens * charsPerToken
  const parts: Array<string> = []
  let spare = 0
  for (const section of gather(messages)) {
    const share = Math.floor(section.share * room) + spare
    const lines = fitting(section.lines, share - section.heading.length - 6)
    const text = lines.length === 0 ? "" : `## ${section.heading}\n\n${lines.join("\n")}`
    // What one section leaves, the next may use; a blank line stands between two.
    spare = share - (text === "" ? 0 : text.length + 2)
    if (text !== "") parts.push(text)
  }
  return parts.join("\n\n")
}
