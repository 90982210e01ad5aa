/** What the readers report of a session. */
import type * as Session from "../Session.ts"

/** Things of one kind that were counted: a thousand of them are one finding, at the line of the first. */
interface Noticed {
  readonly kind: string
  readonly line: number
  readonly what: string
  count: number
}

/** What was counted, by kind and what it was. */
export type Tally = Map<string, Noticed>

export const notice = (self: Tally, kind: string, line: number, what = ""): void => {
  const key = `${kind}\n${what}`
  const found = self.get(key)
  if (found === undefined) self.set(key, { kind, line, what, count: 1 })
  else found.count++
}

/** Says in words what was counted of a kind. */
export interface Say {
  (kind: string, count: number, what: string): string
}

/** The findings of a tally, in the order in which each was noticed first. */
export const told = (self: Tally, say: Say): Array<Session.Finding> =>
  Array.from(self.values(), ({ count, kind, line, what }) => ({ kind, line, detail: say(kind, count, what) }))

/** Findings in the order of the file. */
export const ordered = (findings: ReadonlyArray<Session.Finding>): ReadonlyArray<Session.Finding> =>
  findings.toSorted((a, b) => a.line - b.line)

/** What is told of outputs that a tool had given so far: the call has no result yet. */
export const provisional = (count: number): string =>
  `${count} provisional outputs left out: the tool had not answered yet`
