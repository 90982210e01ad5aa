/**
 * What a log of events shows: the entries that stand now, in order, after every replacement.
 *
 * The surface is a pure fold. A replacement cites every entry it shadows and advances the *generation*; the generation,
 * not a return value, is the proof that something was compacted.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * An entry on the surface: its seq in the log, the calls it makes and those it answers, by id, and its price in tokens.
 * `checkpoint` tells that it stands for others.
 *
 * @category models
 * @since 0.1.0
 */
export interface Node {
  readonly seq: number
  readonly role: "user" | "assistant" | "tool"
  readonly calls: ReadonlyArray<string>
  readonly answers: ReadonlyArray<string>
  readonly price: number
  readonly checkpoint?: boolean
}

/**
 * Which cuts through a surface part no call from its answers. Cut *k* parts the first *k* nodes from the rest.
 *
 * **Details**
 *
 * An answer belongs to every call of its id that is still open when it comes; when none is open, to the nearest earlier
 * call of its id; when there is none, to nothing, and then it forbids no cut. Ids may be used again once answered.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cuts {
  /** By node, and by call of it: the position of the last answer, −1 while there is none. */
  readonly answered: Array<Array<number>>
  /** The open calls of an id, and the last call that had it. */
  readonly open: Map<string, Array<readonly [node: number, call: number]>>
  readonly latest: Map<string, readonly [node: number, call: number]>
  /** The generation of the surface that was read, and how many of its nodes were. */
  generation: number
  read: number
}

/**
 * Makes the cuts of a surface that nothing was read of.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeCuts = (): Cuts => ({ answered: [], open: new Map(), latest: new Map(), generation: 0, read: 0 })

/**
 * Reads the nodes that were appended since; all of them only after a replacement.
 *
 * @category combining
 * @since 0.1.0
 */
export const readCuts = (self: Cuts, nodes: ReadonlyArray<Node>, generation: number): void => {
  if (generation !== self.generation || nodes.length < self.read) {
    self.answered.length = 0
    self.open.clear()
    self.latest.clear()
    self.read = 0
    self.generation = generation
  }
  for (; self.read < nodes.length; self.read++) readNode(self, nodes[self.read]!, self.read)
}

const readNode = (self: Cuts, node: Node, at: number): void => {
  self.answered.push(node.calls.map(() => -1))
  node.calls.forEach((id, call) => {
    const open = self.open.get(id)
    if (open === undefined) self.open.set(id, [[at, call]])
    else open.push([at, call])
    self.latest.set(id, [at, call])
  })
  for (const id of node.answers) {
    const open = self.open.get(id)
    const latest = self.latest.get(id)
    const belongs = open !== undefined && open.length > 0 ? open : latest === undefined ? [] : [latest]
    for (const [maker, call] of belongs) self.answered[maker]![call] = at
    self.open.delete(id)
  }
}

/**
 * Whether each cut is legal, from cut 0 before the first node to the last one behind all of them.
 *
 * @category getters
 * @since 0.1.0
 */
export const legalCuts = (self: Cuts): ReadonlyArray<boolean> => {
  const legal = [true]
  // Up to which cut the calls that were read forbid a cut.
  let forbidden = 0
  self.answered.forEach((answers, at) => {
    for (const answer of answers) forbidden = Math.max(forbidden, answer < 0 ? Infinity : answer)
    legal.push(at + 1 > forbidden)
  })
  return legal
}

/**
 * Selects the region that a summary may replace: from the first node to the latest legal cut behind which the rest costs
 * `retain` tokens or more; at least one node stays. `undefined` when there is none.
 *
 * @category running
 * @since 0.1.0
 */
export const region = (
  nodes: ReadonlyArray<Node>,
  legal: ReadonlyArray<boolean>,
  retain: number
): { readonly first: number; readonly last: number } | undefined => {
  let tail = 0
  for (let cut = nodes.length - 1; cut >= 1; cut--) {
    tail += nodes[cut]!.price
    if (tail >= retain && legal[cut] === true) return { first: 0, last: cut - 1 }
  }
  return undefined
}

/**
 * Why an event is not taken into a log. Nothing changes then, and it takes no seq.
 *
 * **Details**
 *
 * - `not-on-surface`, `reversed`: a range whose ends do not stand on the surface, or stand the other way round.
 * - `bad-citation`: an entry that is cited is not an earlier one, or is cited twice, or nothing is cited where something
 *   must be. `missing-citation`: an entry that is replaced is not cited.
 * - `tool-rewrite`: a result may replace one result of the same calls, and nothing else.
 * - `claim-mismatch`: the price that was claimed is that of another range.
 *
 * @category models
 * @since 0.1.0
 */
export const Refusal = Schema.Literals([
  "not-on-surface",
  "reversed",
  "bad-citation",
  "missing-citation",
  "tool-rewrite",
  "claim-mismatch"
])

/**
 * @category models
 * @since 0.1.0
 */
export type Refusal = typeof Refusal.Type

/**
 * What an event does to a surface.
 *
 * **Details**
 *
 * - `append`: a node joins at the end. `cites` names the events it is made of, if it says.
 * - `replace`: a node takes the place of the range from seq `start` to seq `end`, by position, and must cite all of it.
 * - `claim`: says what the next event is going to replace, and what that costs, so that a running price needs no list;
 *   `checkpoints` is how much of it is checkpoints.
 * - `note`: anything else; it is not on the surface.
 *
 * @category models
 * @since 0.1.0
 */
export type Change =
  | { readonly op: "append"; readonly node: Omit<Node, "seq">; readonly cites?: ReadonlyArray<number> }
  | {
    readonly op: "replace"
    readonly node: Omit<Node, "seq">
    readonly start: number
    readonly end: number
    readonly cites: ReadonlyArray<number> | null
  }
  | {
    readonly op: "claim"
    readonly start: number
    readonly end: number
    readonly price: number
    readonly checkpoints?: number
  }
  | { readonly op: "note" }

/**
 * A surface, and the number of the next event.
 *
 * **Details**
 *
 * - `total`: the running price, in tokens: an append adds, a replacement under a claim of its very range adds the
 *   difference, one without a claim changes nothing. It is exact wherever each replacement was claimed.
 * - `claim`: what the event before this one claimed; it lives for one event.
 *
 * @category models
 * @since 0.1.0
 */
export interface Surface {
  readonly nodes: ReadonlyArray<Node>
  readonly generation: number
  readonly total: number
  readonly claim: { readonly start: number; readonly end: number; readonly price: number } | null
  readonly next: number
}

/**
 * The surface of an empty log.
 *
 * @category constants
 * @since 0.1.0
 */
export const empty: Surface = { nodes: [], generation: 0, total: 0, claim: null, next: 0 }

const isCitable = (cites: ReadonlyArray<number>, next: number): boolean =>
  new Set(cites).size === cites.length && cites.every((seq) => Number.isInteger(seq) && seq >= 0 && seq < next)

/** Whether a node may cite these events: earlier ones, each once; only an entry of the assistant may cite none of a list. */
const isWellCited = (cites: ReadonlyArray<number>, role: Node["role"], next: number): boolean =>
  isCitable(cites, next) && (cites.length > 0 || role === "assistant")

const sameIds = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((id, at) => id === b[at])

/** A result may be shortened, and nothing else may be done to it by a result. */
const isRewrite = (node: Omit<Node, "seq">, replaced: ReadonlyArray<Node>): boolean =>
  node.role !== "tool"
  || (replaced.length === 1 && replaced[0]!.role === "tool" && sameIds(replaced[0]!.answers, node.answers))

/**
 * Takes an event into a surface, or says why not.
 *
 * @category running
 * @since 0.1.0
 */
export const apply = (self: Surface, change: Change): Surface | Refusal => {
  const { next } = self
  const after = { ...self, claim: null, next: next + 1 }
  switch (change.op) {
    case "note":
      return after
    case "claim":
      return { ...after, claim: { start: change.start, end: change.end, price: change.price } }
    case "append": {
      if (change.cites !== undefined && !isWellCited(change.cites, change.node.role, next)) return "bad-citation"
      const node: Node = { ...change.node, seq: next }
      return { ...after, nodes: [...self.nodes, node], total: self.total + node.price }
    }
    case "replace":
      return replace(self, change)
  }
}

const replace = (self: Surface, change: Extract<Change, { readonly op: "replace" }>): Surface | Refusal => {
  const { claim, next, nodes } = self
  const from = nodes.findIndex((node) => node.seq === change.start)
  const to = nodes.findIndex((node) => node.seq === change.end)
  if (from < 0 || to < 0) return "not-on-surface"
  if (from > to) return "reversed"
  if (change.cites !== null && !isWellCited(change.cites, change.node.role, next)) return "bad-citation"
  const replaced = nodes.slice(from, to + 1)
  const cited = new Set(change.cites ?? [])
  if (!replaced.every((node) => cited.has(node.seq))) return "missing-citation"
  if (!isRewrite(change.node, replaced)) return "tool-rewrite"
  if (claim !== null && (claim.start !== change.start || claim.end !== change.end)) return "claim-mismatch"
  const node: Node = { ...change.node, seq: next }
  return {
    nodes: [...nodes.slice(0, from), node, ...nodes.slice(to + 1)],
    generation: self.generation + 1,
    total: claim === null ? self.total : self.total + node.price - claim.price,
    claim: null,
    next: next + 1
  }
}

/**
 * The price of a surface by its nodes, in tokens.
 *
 * @category getters
 * @since 0.1.0
 */
export const priceOf = (self: Surface): number => self.nodes.reduce((sum, node) => sum + node.price, 0)
