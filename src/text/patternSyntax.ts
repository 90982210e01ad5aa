/** What a regular expression is written of: read into nodes, without a feature that asks to go back in the text. */
import * as Fold from "./fold.ts"

/** Why a pattern is refused: it is none, or it has what cannot be matched in linear time. `at`: where in it. */
export interface Fault {
  readonly reason: "syntax" | "unsafe"
  readonly at: number
  readonly what: string
}

/** Ends of lines, and borders of words and none. */
export type Assertion = "start" | "end" | "boundary" | "inside"

export type Node =
  | { readonly _tag: "Set"; readonly has: (code: number) => boolean }
  | { readonly _tag: "Assert"; readonly kind: Assertion }
  | { readonly _tag: "Sequence"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Either"; readonly nodes: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly node: Node; readonly min: number; readonly max: number | null }

/** Code points from one to another, both among them. */
type Range = readonly [number, number]

const inRanges = (ranges: ReadonlyArray<Range>, code: number): boolean =>
  ranges.some(([from, to]) => code >= from && code <= to)

const last = 0x10ffff
const digits: ReadonlyArray<Range> = [[48, 57]]
const wordRanges: ReadonlyArray<Range> = [[48, 57], [65, 90], [95, 95], [97, 122]]
const spaces: ReadonlyArray<Range> = [[9, 13], [32, 32], [160, 160], [0x2000, 0x200a], [0x2028, 0x2029], [
  0x3000,
  0x3000
]]

/** Whether a code point is of a word, as `\w` has it. */
export const isWord = (code: number): boolean => inRanges(wordRanges, code)

const without = (ranges: ReadonlyArray<Range>): ReadonlyArray<Range> => {
  const out: Array<Range> = []
  let from = 0
  for (const [first, to] of ranges) {
    if (first > from) out.push([from, first - 1])
    from = to + 1
  }
  return [...out, [from, last]]
}

const classes: { readonly [letter: string]: ReadonlyArray<Range> } = {
  d: digits,
  D: without(digits),
  w: wordRanges,
  W: without(wordRanges),
  s: spaces,
  S: without(spaces)
}

const controls: { readonly [letter: string]: number } = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 }

const assertions: { readonly [letter: string]: Assertion } = { b: "boundary", B: "inside" }

const setOf = (ranges: ReadonlyArray<Range>, negated = false): Node => ({
  _tag: "Set",
  has: (code) => (inRanges(ranges, code) || Fold.casesOf(code).some((other) => inRanges(ranges, other))) !== negated
})

/** A reading that is under way: where it is, and the first fault, after which nothing is read any more. */
interface Reader {
  readonly source: string
  at: number
  fault: Fault | undefined
}

const nothing: Node = { _tag: "Sequence", nodes: [] }

const failed = (self: Reader, what: string, reason: Fault["reason"] = "syntax", at = self.at): Node => {
  self.fault ??= { reason, at, what }
  self.at = self.source.length
  return nothing
}

const isNext = (self: Reader, text: string): boolean => self.source.startsWith(text, self.at)

const taken = (self: Reader, text: string): boolean => {
  if (!isNext(self, text)) return false
  self.at += text.length
  return true
}

/** The code point that stands next; there is one. */
const next = (self: Reader): number => {
  const code = self.source.codePointAt(self.at)!
  self.at += code > 0xffff ? 2 : 1
  return code
}

const matched = (self: Reader, sticky: RegExp): RegExpExecArray | null => {
  sticky.lastIndex = self.at
  const found = sticky.exec(self.source)
  if (found !== null) self.at += found[0].length
  return found
}

/** What an escape stands for, behind its backslash. */
const escaped = (self: Reader): ReadonlyArray<Range> | undefined => {
  const hex = matched(self, /x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}/y)
  if (hex !== null) {
    const code = Number.parseInt(hex[1] ?? hex[2] ?? hex[3]!, 16)
    return [[code, code]]
  }
  if (self.at >= self.source.length) return undefined
  const letter = String.fromCodePoint(next(self))
  if (Object.hasOwn(classes, letter)) return classes[letter]
  if (Object.hasOwn(controls, letter)) return [[controls[letter]!, controls[letter]!]]
  if (/[A-Za-z0-9]/.test(letter)) return undefined
  const code = letter.codePointAt(0)!
  return [[code, code]]
}

/** The code point that ranges come to, where it is one. */
const single = (ranges: ReadonlyArray<Range> | undefined): number | undefined => {
  const [from, to] = ranges?.[0] ?? [0, 1]
  return ranges?.length === 1 && from === to ? from : undefined
}

/** The members of a class, up to its bracket. */
const classOf = (self: Reader): Node => {
  const negated = taken(self, "^")
  const ranges: Array<Range> = []
  const member = (): ReadonlyArray<Range> | undefined => {
    if (taken(self, "\\")) return taken(self, "b") ? [[8, 8]] : escaped(self)
    const code = next(self)
    return [[code, code]]
  }
  while (!taken(self, "]")) {
    if (self.at >= self.source.length) return failed(self, "a class is not closed: write its ]")
    const first = member()
    if (first === undefined) return failed(self, "an escape that is not known")
    const isRange = isNext(self, "-") && !isNext(self, "-]") && self.at + 1 < self.source.length
    if (!isRange) {
      ranges.push(...first)
      continue
    }
    self.at++
    const from = single(first)
    const to = single(member())
    if (from === undefined || to === undefined || to < from) {
      return failed(self, "a range of a class that is out of order")
    }
    ranges.push([from, to])
  }
  return setOf(ranges, negated)
}

const groupOf = (self: Reader): Node => {
  const start = self.at - 1
  if (matched(self, /\?<?[=!]/y) !== null) return failed(self, "a look ahead or behind", "unsafe", start)
  if (matched(self, /\?:|\?P?<[A-Za-z_]\w*>/y) === null && isNext(self, "?")) {
    return failed(self, "a kind of group that is not known")
  }
  const node = either(self)
  return taken(self, ")") || self.fault !== undefined ? node : failed(self, "a group is not closed: write its )")
}

const escapeOf = (self: Reader): Node => {
  const start = self.at - 1
  if (matched(self, /[1-9]|k</y) !== null) return failed(self, "a reference to a group", "unsafe", start)
  const letter = self.source[self.at]
  if (letter !== undefined && Object.hasOwn(assertions, letter)) {
    self.at++
    return { _tag: "Assert", kind: assertions[letter]! }
  }
  const ranges = escaped(self)
  return ranges === undefined ? failed(self, "an escape that is not known") : setOf(ranges)
}

const atom = (self: Reader): Node => {
  if (taken(self, "(")) return groupOf(self)
  if (taken(self, "[")) return classOf(self)
  if (taken(self, "\\")) return escapeOf(self)
  if (taken(self, "^")) return { _tag: "Assert", kind: "start" }
  if (taken(self, "$")) return { _tag: "Assert", kind: "end" }
  if (taken(self, ".")) return setOf(without([[10, 10], [13, 13]]))
  if (matched(self, /[*+?]|\{\d+(?:,\d*)?\}/y) !== null) return failed(self, "a repeat of nothing")
  const code = next(self)
  return setOf([[code, code]])
}

/** How often the atom before is repeated, where it is; a lazy repeat finds the same texts. */
const repeated = (self: Reader, node: Node): Node => {
  const found = matched(self, /([*+?])\??|\{(\d{1,4})(?:(,)(\d{1,4})?)?\}\??/y)
  if (found === null) {
    return isNext(self, "{") && /^\{\d/.test(self.source.slice(self.at))
      ? failed(self, "a repeat that cannot be read")
      : node
  }
  if (/^[*+?{]/.test(self.source.slice(self.at))) {
    // A possessive repeat, or a repeat of a repeat.
    if (isNext(self, "+")) return failed(self, "a possessive repeat", "unsafe")
    if (matched(self, /[*?]|\{\d/y) !== null) return failed(self, "a repeat of a repeat")
  }
  const [, sign, least, comma, most] = found
  if (sign !== undefined) return { _tag: "Repeat", node, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : null }
  const min = Number(least)
  const max = comma === undefined ? min : most === undefined ? null : Number(most)
  return max !== null && max < min ? failed(self, "a repeat that is out of order") : { _tag: "Repeat", node, min, max }
}

const sequence = (self: Reader): Node => {
  const nodes: Array<Node> = []
  while (self.at < self.source.length && !isNext(self, "|") && !isNext(self, ")")) {
    nodes.push(repeated(self, atom(self)))
  }
  return nodes.length === 1 ? nodes[0]! : { _tag: "Sequence", nodes }
}

const either = (self: Reader): Node => {
  const nodes = [sequence(self)]
  while (taken(self, "|")) nodes.push(sequence(self))
  return nodes.length === 1 ? nodes[0]! : { _tag: "Either", nodes }
}

/** Reads a pattern, or says what is wrong with it. */
export const parse = (source: string): Node | Fault => {
  const self: Reader = { source, at: source.startsWith("(?i)") ? 4 : 0, fault: undefined }
  const node = either(self)
  if (self.fault === undefined && self.at < source.length) failed(self, "a ) that closes nothing")
  return self.fault ?? node
}
