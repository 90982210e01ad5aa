/** What the readers report of a session. */
import type * as Prompt from "effect/ai/Prompt"
import type * as Session from "../Session.ts"

/** Counts things of one kind, so that a thousand of them are one finding, at the line of the first. */
export const tally = () => {
  const counted = new Map<string, { readonly kind: string; readonly line: number; count: number }>()
  return {
    add: (kind: string, line: number, what = "") => {
      const key = `${kind}\n${what}`
      const found = counted.get(key)
      if (found === undefined) counted.set(key, { kind, line, count: 1 })
      else found.count++
    },
    /** The findings; `say` makes the detail of a kind from how many there are and of what. */
    findings: (say: (kind: string, count: number, what: string) => string): Array<Session.Finding> =>
      Array.from(counted, ([key, { count, kind, line }]) => ({
        kind,
        line,
        detail: say(kind, count, key.slice(kind.length + 1))
      }))
  }
}

/**
 * Calls without a result and results without a call. A result belongs to the latest earlier call with its id that is
 * still unanswered, since ids are used again.
 *
 * `lineOf` gives the line of a message by its index.
 */
export const pairs = (
  messages: ReadonlyArray<Prompt.Message>,
  lineOf: (index: number) => number
): Array<Session.Finding> => {
  const open = new Map<string, Array<{ readonly line: number; readonly name: string }>>()
  const findings: Array<Session.Finding> = []
  for (const [index, message] of messages.entries()) {
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type === "tool-call") {
        const call = { line: lineOf(index), name: part.name }
        const same = open.get(part.id)
        if (same === undefined) open.set(part.id, [call])
        else same.push(call)
      } else if (part.type === "tool-result" && open.get(part.id)?.pop() === undefined) {
        findings.push({ kind: "orphan-result", line: lineOf(index), detail: `no call has the id ${part.id}` })
      }
    }
  }
  for (const [id, calls] of open) {
    for (const { line, name } of calls) {
      findings.push({ kind: "unanswered-call", line, detail: `${name} (${id}) has no result` })
    }
  }
  return findings
}

/** Findings in the order of the file. */
export const ordered = (findings: ReadonlyArray<Session.Finding>): ReadonlyArray<Session.Finding> =>
  findings.toSorted((a, b) => a.line - b.line)
