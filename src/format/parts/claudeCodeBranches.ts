/** Which lines of a Claude Code session are its conversation, and which are of branches that were left. */
import type * as Prompt from "effect/ai/Prompt"
import type * as Session from "../Session.ts"

/** One response of the model: one or more lines with one `message.id`. */
export interface Response {
  readonly uuids: Array<string>
  readonly parts: Array<Prompt.AssistantMessagePart>
  readonly synthetic: boolean
  usage: Session.Usage
  stopped: boolean
  version: string | undefined
}

/** One place in the order of the file: a response at its first line, or what a user line or a marker holds. */
export interface Row {
  readonly line: number
  readonly uuid: string
  readonly parent: string | undefined
  readonly time: number | undefined
  readonly sidechain: boolean
  /**
   * What a row without a link of its own belongs to. Attachments and text of the client hang on the line they name
   * (`link`); what was typed while the model worked is live where the row before it is (`before`).
   */
  readonly hangs: "link" | "before" | undefined
  readonly content: Response | ReadonlyArray<Prompt.Message>
}

export const isResponse = (content: Row["content"]): content is Response => !Array.isArray(content)

/** What a line is to a compaction: one itself, a turn of the conversation, or anything else. */
export type Weight = "compaction" | "turn" | "other"

interface Node {
  readonly uuid: string
  readonly line: number
  readonly parent: string | undefined
  readonly weight: Weight
  /** The position in the main order; −1 for a line of a subagent. */
  readonly index: number
  /** The last compaction up to this line; −1 when there is none. */
  readonly last: number
  /** The last compaction up to this line with no turn behind it; −1 when there is none. */
  readonly near: number
}

/** The lines by uuid, and the main ones in the order of the file. */
export interface Tree {
  readonly nodes: Map<string, Node>
  readonly order: Array<Node>
}

export const tree = (): Tree => ({ nodes: new Map(), order: [] })

export const add = (
  self: Tree,
  given: Pick<Node, "uuid" | "line" | "parent" | "weight"> & { readonly sidechain: boolean }
): void => {
  const { line, parent, sidechain, uuid, weight } = given
  const before = self.order.at(-1)
  const index = sidechain ? -1 : self.order.length
  const isCompaction = weight === "compaction" && !sidechain
  const node: Node = {
    uuid,
    line,
    parent,
    weight,
    index,
    last: isCompaction ? index : before?.last ?? -1,
    near: isCompaction ? index : weight === "turn" ? -1 : before?.near ?? -1
  }
  self.nodes.set(uuid, node)
  if (!sidechain) self.order.push(node)
}

/**
 * The line that a line goes on from, and whether that is not what the file says.
 *
 * - A parent that is not in the file was cut off or torn, and a compaction may name none: the line before is the best there
 *   is.
 * - A parent before a compaction, of a line right behind it, says that the compaction was taken back, or is what a client
 *   wrote that lost its place. A file cannot tell these apart. The compaction is there, so what it stands for is kept.
 */
const before = (
  self: Tree,
  node: Node
): { readonly node: Node | undefined; readonly isKept: boolean } => {
  const previous = self.order[node.index - 1]
  const parent = node.parent === undefined ? undefined : self.nodes.get(node.parent)
  if (parent === undefined) {
    const isRoot = node.parent === undefined && node.weight !== "compaction"
    return { node: isRoot ? undefined : previous, isKept: false }
  }
  if (previous === undefined || parent.index < 0) return { node: parent, isKept: false }
  const compaction = node.weight === "compaction" ? previous.last : previous.near
  return parent.index < compaction ? { node: previous, isKept: true } : { node: parent, isKept: false }
}

/** The uuids from the last line up to the root, and the lines behind a compaction that the file would leave out. */
export const chain = (
  self: Tree,
  leaf: string | undefined
): { readonly uuids: ReadonlySet<string>; readonly kept: ReadonlyArray<number> } => {
  const uuids = new Set<string>()
  const kept: Array<number> = []
  let node = leaf === undefined ? undefined : self.nodes.get(leaf)
  while (node !== undefined && !uuids.has(node.uuid)) {
    uuids.add(node.uuid)
    const next = before(self, node)
    if (next.isKept) kept.push(node.line)
    node = next.node
  }
  return { uuids, kept }
}

/**
 * The rows that are no abandoned branch. Calls made in parallel fork the chain, so a row is live too when it is a line
 * of a live response, the result of a live call, or hangs on a row that is live for one of these reasons.
 */
export const liveRows = (rows: ReadonlyArray<Row>, onChain: ReadonlySet<string>): ReadonlySet<Row> => {
  const live = new Set<Row>()
  const beside = new Set<string>()
  const calls = new Set<string>()
  const isLive = (row: Row): boolean => {
    if (onChain.has(row.uuid) || (row.hangs === undefined && row.uuid.startsWith("line "))) return true
    if (isResponse(row.content)) return row.content.uuids.some((uuid) => onChain.has(uuid) || beside.has(uuid))
    return row.content.some((message) =>
      message.role === "tool" && message.content.some((part) => part.type === "tool-result" && calls.has(part.id))
    ) || (row.hangs === "link" && row.parent !== undefined && beside.has(row.parent))
  }
  for (let size = -1; size !== live.size;) {
    size = live.size
    for (const row of rows) {
      if (live.has(row) || !isLive(row)) continue
      live.add(row)
      if (!onChain.has(row.uuid)) beside.add(row.uuid)
      if (!isResponse(row.content)) continue
      for (const uuid of row.content.uuids) if (!onChain.has(uuid)) beside.add(uuid)
      for (const part of row.content.parts) if (part.type === "tool-call") calls.add(part.id)
    }
  }
  let isLast = true
  for (const row of rows) {
    if (row.hangs !== "before") isLast = live.has(row)
    else if (isLast) live.add(row)
  }
  return live
}
