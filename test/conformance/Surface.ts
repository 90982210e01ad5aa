import * as Surface from "effect-compaction/Surface"
import * as Effect from "effect/Effect"
import { differences, isObject, type Kind, type Outcome } from "./Case.ts"

interface RawNode {
  readonly seq?: number
  readonly role: Surface.Node["role"]
  readonly calls?: ReadonlyArray<string>
  readonly answers?: ReadonlyArray<string>
  readonly price?: number
}

const nodeOf = (raw: RawNode, at: number): Surface.Node => ({
  seq: raw.seq ?? at,
  role: raw.role,
  calls: raw.calls ?? [],
  answers: raw.answers ?? [],
  price: raw.price ?? 0
})

/** The legal cuts of some nodes, read one by one as they would come. */
const cutsOf = (nodes: ReadonlyArray<Surface.Node>): ReadonlyArray<boolean> => {
  const cuts = Surface.makeCuts()
  for (let read = 0; read <= nodes.length; read++) Surface.readCuts(cuts, nodes.slice(0, read), 0)
  return Surface.legalCuts(cuts)
}

const caseKind = <A extends { readonly name: string }>(
  name: string,
  recognises: (each: { readonly [key: string]: unknown }) => boolean,
  run: (self: A) => Outcome
): Kind => ({
  name,
  recognises: (file) =>
    isObject(file) && Array.isArray(file.cases) && file.cases.length > 0
    && file.cases.every((each) => isObject(each) && recognises(each)),
  // The shape was recognised by its cases; one that lies about it fails.
  run: (file) => Effect.sync(() => (file as { readonly cases: ReadonlyArray<A> }).cases.map(run))
})

/** Where a surface may be cut. */
export const pairing = caseKind<
  { readonly name: string; readonly nodes: ReadonlyArray<RawNode>; readonly legal: ReadonlyArray<boolean> }
>("pairing", (each) => "legal" in each, (self) => ({
  name: self.name,
  failures: differences("", { legal: self.legal }, { legal: cutsOf(self.nodes.map(nodeOf)) })
}))

interface RegionCase {
  readonly name: string
  readonly nodes: ReadonlyArray<RawNode>
  readonly retain: number
  readonly live?: ReadonlyArray<number>
  readonly cuts?: ReadonlyArray<boolean>
  readonly region?: unknown
  readonly seqs?: unknown
  readonly error?: string
}

/** Which region a summary may replace. */
export const region = caseKind<RegionCase>("region", (each) => "retain" in each && "nodes" in each, (self) => {
  const nodes = self.nodes.map(nodeOf)
  const seqs = nodes.map((node) => node.seq)
  const legal = cutsOf(nodes)
  const isStale = self.live !== undefined && JSON.stringify(self.live) !== JSON.stringify(seqs)
  const found = isStale ? undefined : Surface.region(nodes, legal, self.retain)
  const actual = isStale ? { error: "stale", region: null, seqs: null } : {
    cuts: legal,
    region: found === undefined ? null : [found.first, found.last],
    seqs: found === undefined ? null : [seqs[found.first], seqs[found.last]]
  }
  const { live: _, name, nodes: __, retain: ___, ...expected } = self
  return { name, failures: differences("", answersOf(expected), actual) }
})

/** The answers of a case, without what the origin of a case is said about. */
const answersOf = (fields: { readonly [key: string]: unknown }): { readonly [key: string]: unknown } => {
  const { upstream: _, why: __, ...answers } = fields
  return answers
}

type FoldEvent =
  | RawNode & { readonly op: "append"; readonly cites?: ReadonlyArray<number> }
  | RawNode & {
    readonly op: "replace"
    readonly start: number
    readonly end: number
    readonly cites?: ReadonlyArray<number>
  }
  | { readonly op: "claim"; readonly start: number; readonly end: number; readonly price: number }
  | { readonly op: "note" }

const changeOf = (event: FoldEvent): Surface.Change => {
  if (event.op === "note" || event.op === "claim") return event
  const { seq: _, ...node } = nodeOf(event, 0)
  if (event.op === "append") {
    return { op: "append", node, ...(event.cites === undefined ? undefined : { cites: event.cites }) }
  }
  return { op: "replace", node, start: event.start, end: event.end, cites: event.cites ?? null }
}

/** The fold of a log, event by event. */
export const fold = caseKind<
  { readonly name: string; readonly events: ReadonlyArray<FoldEvent>; readonly after: ReadonlyArray<unknown> }
>("fold", (each) => "after" in each && "events" in each && !("final" in each), (self) => {
  let surface = Surface.empty
  const rows = self.events.map((event, at) => {
    const next = Surface.apply(surface, changeOf(event))
    if (next === "claim-mismatch") {
      // The surface moves all the same; only its running price cannot be told any more, and the case ends.
      const moved = Surface.apply({ ...surface, claim: null }, changeOf(event))
      const expected = self.after[at]
      return typeof moved === "string" || !isObject(expected) ? { error: next } : {
        seq: surface.next,
        surface: moved.nodes.map((node) => node.seq),
        generation: moved.generation,
        error: next
      }
    }
    if (typeof next === "string") return { error: next }
    const seq = surface.next
    surface = next
    const { claim, generation, nodes, total } = next
    return {
      seq,
      surface: nodes.map((node) => node.seq),
      generation,
      total,
      claim: claim === null ? null : [claim.start, claim.end, claim.price],
      exact: Surface.priceOf(next)
    }
  })
  return { name: self.name, failures: differences("", { after: self.after }, { after: rows }) }
})
