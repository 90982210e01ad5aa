/**
 * Regular expressions that a model writes: matched by all their threads at once and never by going back, so that the time is
 * linear in the text whatever the pattern. What cannot be matched so is refused.
 *
 * Letters match in any case, `^` and `$` at the ends of lines, and `.` all but a line break.
 */
import * as Syntax from "./patternSyntax.ts"

/** How long a pattern may be, in characters, and of how many steps, what is repeated counted as often. */
export const mostCharacters = 200
export const mostSteps = 256

/** The moves that are remembered at once; beyond them all are found again. */
const mostMoves = 10_000

/** Why a pattern is refused. `at`: where in it. */
export type Fault = Syntax.Fault | { readonly reason: "length" | "size"; readonly given: number }

type Step =
  | { readonly _tag: "Take"; readonly has: (code: number) => boolean }
  | { readonly _tag: "Split"; readonly to: ReadonlyArray<number> }
  | { readonly _tag: "Assert"; readonly kind: Syntax.Assertion }
  | { readonly _tag: "Match" }

/** How many steps a node comes to; numbers, so that nothing is built that is too large. */
const sizeOf = (node: Syntax.Node): number => {
  switch (node._tag) {
    case "Set":
    case "Assert":
      return 1
    case "Sequence":
      return node.nodes.reduce((sum, each) => sum + sizeOf(each), 0)
    case "Either":
      return node.nodes.reduce((sum, each) => sum + sizeOf(each) + 2, 0)
    case "Repeat":
      return sizeOf(node.node) * Math.max(1, node.max ?? node.min + 1) + 2 * ((node.max ?? node.min + 1) - node.min) + 1
  }
}

const emit = (node: Syntax.Node, steps: Array<Step>): void => {
  switch (node._tag) {
    case "Set":
      steps.push({ _tag: "Take", has: node.has })
      return
    case "Assert":
      steps.push(node)
      return
    case "Sequence":
      for (const each of node.nodes) emit(each, steps)
      return
    case "Either": {
      const ends: Array<Array<number>> = []
      node.nodes.forEach((each, at) => {
        const isLast = at === node.nodes.length - 1
        const to: Array<number> = [steps.length + 1]
        if (!isLast) steps.push({ _tag: "Split", to })
        emit(each, steps)
        if (isLast) return
        const end: Array<number> = []
        steps.push({ _tag: "Split", to: end })
        ends.push(end)
        to.push(steps.length)
      })
      for (const end of ends) end.push(steps.length)
      return
    }
    case "Repeat": {
      for (let n = 0; n < node.min; n++) emit(node.node, steps)
      if (node.max === null) {
        const start = steps.length
        const to: Array<number> = [start + 1]
        steps.push({ _tag: "Split", to })
        emit(node.node, steps)
        steps.push({ _tag: "Split", to: [start] })
        to.push(steps.length)
        return
      }
      const skips: Array<Array<number>> = []
      for (let n = node.min; n < node.max; n++) {
        const to: Array<number> = [steps.length + 1]
        skips.push(to)
        steps.push({ _tag: "Split", to })
        emit(node.node, steps)
      }
      for (const to of skips) to.push(steps.length)
    }
  }
}

/** What stands at one side of a place: a letter of a word, the end of a line, or anything else. */
type Side = "word" | "line" | "other"

const lineBreak = 10

const sideOf = (code: number): Side =>
  code === lineBreak || code === -1 ? "line" : Syntax.isWord(code) ? "word" : "other"

const holds = (kind: Syntax.Assertion, before: Side, after: Side): boolean => {
  switch (kind) {
    case "start":
      return before === "line"
    case "end":
      return after === "line"
    case "boundary":
      return (before === "word") !== (after === "word")
    case "inside":
      return (before === "word") === (after === "word")
  }
}

/** Where all the threads stand behind a character, and where they stand after the next one, as far as that is known. */
interface State {
  readonly threads: ReadonlyArray<number>
  readonly before: Side
  readonly next: Map<number, State | null>
}

/**
 * A pattern that was compiled.
 *
 * - `find`: where in a text the first match ends, −1 where there is none.
 * - `work`: how many steps it has taken since it was compiled.
 */
export interface Pattern {
  readonly find: (text: string) => number
  readonly work: () => number
}

const over = (steps: ReadonlyArray<Step>): Pattern => {
  const states = new Map<string, State>()
  let work = 0
  let moves = 0

  const stateOf = (threads: ReadonlyArray<number>, before: Side): State => {
    const key = `${before}${threads.join()}`
    const known = states.get(key)
    if (known !== undefined) return known
    const state: State = { threads, before, next: new Map() }
    states.set(key, state)
    return state
  }

  /** The state after one more character, −1 for the end of the text; `null` where a match ends before it. */
  const after = ({ before, threads }: State, code: number): State | null => {
    const seen = new Uint8Array(steps.length)
    const open = [...threads, 0]
    const next: Array<number> = []
    const side = sideOf(code)
    while (open.length > 0) {
      const at = open.pop()!
      if (seen[at] === 1) continue
      seen[at] = 1
      work++
      const step = steps[at]!
      if (step._tag === "Match") return null
      if (step._tag === "Split") open.push(...step.to)
      else if (step._tag === "Assert") {
        if (holds(step.kind, before, side)) open.push(at + 1)
      } else if (code !== -1 && step.has(code)) next.push(at + 1)
    }
    return stateOf(next.toSorted((a, b) => a - b), side)
  }

  return {
    work: () => work,
    find: (text) => {
      let state = stateOf([], "line")
      for (let at = 0; at <= text.length;) {
        const code = text.codePointAt(at) ?? -1
        work++
        let next = state.next.get(code)
        if (next === undefined) {
          next = after(state, code)
          state.next.set(code, next)
          if (++moves > mostMoves) {
            moves = 0
            states.clear()
            if (next !== null) next = stateOf(next.threads, next.before)
          }
        }
        if (next === null) return at
        state = next
        at += code > 0xffff ? 2 : 1
      }
      return -1
    }
  }
}

/** Compiles a pattern, or says why not. */
export const compile = (source: string): Pattern | Fault => {
  if (source.length > mostCharacters) return { reason: "length", given: source.length }
  const node = Syntax.parse(source)
  if ("reason" in node) return node
  const size = sizeOf(node) + 1
  if (size > mostSteps) return { reason: "size", given: size }
  const steps: Array<Step> = []
  emit(node, steps)
  steps.push({ _tag: "Match" })
  return over(steps)
}
