/**
 * Compaction as a transaction over a log: start, summary, revalidation, the summary record and the replacement, end.
 *
 * The mark of the start is the lock. Whoever dies between start and end leaves it; the mark that the next opening of the
 * session leaves makes it stale. Until the replacement is in the log nothing has happened to the surface, and the
 * replacement is one event: there is no half compaction.
 *
 * **Details**
 *
 * | owner | runs | must have stayed the same | flushes |
 * |---|---|---|---|
 * | `automatic` | inside the open turn | the whole surface | no |
 * | `manual` | between turns | the span | once, after the close |
 *
 * After the start one close is tried, whatever happens; a close that fails leaves the lock. When several things go wrong,
 * an interruption comes first, then an append that failed, then what stopped the attempt, then the flush.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Guard from "./Guard.ts"
import * as Attempt from "./session/transaction.ts"
import * as Summarizer from "./Summarizer.ts"
import * as Surface from "./Surface.ts"

/**
 * Fails when a compaction is asked for while one is running, or a summary is being written.
 *
 * @category errors
 * @since 0.1.0
 */
export class CompactionBusy extends Schema.TaggedError<CompactionBusy>("effect-compaction/CompactionBusy")(
  "CompactionBusy",
  {}
) {
  override get message() {
    return "A compaction is running in this session. Wait until statusChanges says that it is over, or leave this one out."
  }
}

/**
 * Fails when the session, and not the caller, ended what was running: it was closed, or put in the place of another.
 *
 * @category errors
 * @since 0.1.0
 */
export class CompactionCancelled
  extends Schema.TaggedError<CompactionCancelled>("effect-compaction/CompactionCancelled")(
    "CompactionCancelled",
    {}
  )
{
  override get message() {
    return "The session ended this compaction: it was closed or set anew. Call compactNow again for what it holds "
      + "now, if it is open."
  }
}

/**
 * Fails when the entries that were summarised were removed or absorbed while the summary was written. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class SurfaceChanged extends Schema.TaggedError<SurfaceChanged>("effect-compaction/SurfaceChanged")(
  "SurfaceChanged",
  { entries: Schema.Natural }
) {
  override get message() {
    return `Some of the ${this.entries} entries that were summarised left the view meanwhile: the summary was thrown away. `
      + "Call compactNow again when no request is running."
  }
}

/**
 * Fails when an event of a compaction could not be appended to the log. Where it was the mark of the end, the session is
 * locked until it is opened anew.
 *
 * @category errors
 * @since 0.1.0
 */
export class CommitFailed extends Schema.TaggedError<CommitFailed>("effect-compaction/CommitFailed")("CommitFailed", {
  event: Schema.Literals(["start", "summary", "replace", "end"]),
  reason: Schema.String
}) {
  override get message() {
    return `The ${this.event} of a compaction could not be appended to the log: ${this.reason}. `
      + `${
        this.event === "end"
          ? "Open the session anew to go on (ContextManager.open)."
          : "The view is as it was: see to the SessionStore and try again."
      }`
  }
}

/**
 * Fails when a compaction is in the log, and the log could not be flushed to where it is kept.
 *
 * @category errors
 * @since 0.1.0
 */
export class PersistenceFailed extends Schema.TaggedError<PersistenceFailed>("effect-compaction/PersistenceFailed")(
  "PersistenceFailed",
  { reason: Schema.String }
) {
  override get message() {
    return `The compaction was made and may not outlive this process: ${this.reason}. Call flush again.`
  }
}

/**
 * Fails when a span was named that does not stand on the surface, stands the other way round, or parts a call from its
 * answers. A bug of the caller; nothing was written.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidSpan extends Schema.TaggedError<InvalidSpan>("effect-compaction/InvalidSpan")("InvalidSpan", {
  first: Schema.Int,
  last: Schema.Int,
  fault: Schema.Literals(["not-on-surface", "reversed", "unpaired"])
}) {
  override get message() {
    return `The span from ${this.first} to ${this.last} cannot be replaced: ${this.fault}. Choose ends with Surface.region.`
  }
}

/**
 * Fails when an automatic compaction is run outside a turn. A bug of the caller; nothing was written.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoTurn extends Schema.TaggedError<NoTurn>("effect-compaction/NoTurn")("NoTurn", {}) {
  override get message() {
    return "An automatic compaction runs inside a turn, and none is open. Append the turn first, or run with owner \"manual\"."
  }
}

/**
 * What a transaction itself fails with, beside what the summariser does.
 *
 * @category errors
 * @since 0.1.0
 */
export type TransactionError =
  | CompactionBusy
  | CompactionCancelled
  | SurfaceChanged
  | CommitFailed
  | PersistenceFailed
  | InvalidSpan
  | NoTurn
  | Guard.SummaryNotSmaller
  | Summarizer.SummaryEmpty

/**
 * What a transaction appends.
 *
 * **Details**
 *
 * - `start`: the lock. `turn`: the turn it runs in, `null` between turns. `commandId`: of the command that asked for it.
 * - `summary`: the text of the model, unframed, what it replaces (ends and all seqs, in the order of the surface, and
 *   their price in tokens, and how much of it is checkpoints), and the evidence of the call. It is a claim: the next event replaces that range.
 * - `replace`: the framed checkpoint; it cites the start, the summary and every seq it shadows.
 * - `end`: the close. `reason`: why the attempt failed, `null` when it did not.
 *
 * @category models
 * @since 0.1.0
 */
export type Mark<Evidence> =
  | { readonly op: "start"; readonly turn: number | null; readonly commandId: string | null }
  | {
    readonly op: "summary"
    readonly start: number
    readonly end: number
    readonly seqs: ReadonlyArray<number>
    readonly price: number
    readonly checkpoints?: number
    readonly text: string
    readonly evidence: Evidence
    readonly commandId: string | null
  }
  | {
    readonly op: "replace"
    readonly node: Omit<Surface.Node, "seq">
    readonly text: string
    readonly start: number
    readonly end: number
    readonly cites: ReadonlyArray<number>
  }
  | {
    readonly op: "end"
    readonly turn: number | null
    readonly failed: boolean
    readonly reason: string | null
    readonly commandId: string | null
  }

/**
 * What may stand in a log: changes of the surface, the marks of a transaction, the ends of turns, and `opened`, which is
 * left whenever the log is read back.
 *
 * @category models
 * @since 0.1.0
 */
export type Event =
  | Surface.Change
  | Mark<unknown>
  | { readonly op: "turn" | "endTurn"; readonly turn: number }
  | { readonly op: "opened" }

/**
 * What a log says now.
 *
 * **Details**
 *
 * - `turn`: the open turn. `lock`: the start that nothing closed and no later opening made stale, by seq.
 * - `isFresh`: whether the last event is the mark of an opening, so that opening it again leaves none.
 *
 * @category models
 * @since 0.1.0
 */
export interface State {
  readonly surface: Surface.Surface
  readonly turn: number | null
  readonly lock: number | null
  readonly isFresh: boolean
}

/**
 * The state of an empty log.
 *
 * @category constants
 * @since 0.1.0
 */
export const empty: State = { surface: Surface.empty, turn: null, lock: null, isFresh: false }

const note: Surface.Change = { op: "note" }

const changeOf = (event: Event): Surface.Change => {
  switch (event.op) {
    case "append":
    case "replace":
    case "claim":
      return event
    case "summary":
      return { op: "claim", start: event.start, end: event.end, price: event.price }
    default:
      return note
  }
}

/**
 * Takes an event into a log, or says why not; then nothing changes.
 *
 * @category running
 * @since 0.1.0
 */
export const apply = (self: State, event: Event): State | Surface.Refusal => {
  const surface = Surface.apply(self.surface, changeOf(event))
  if (typeof surface === "string") return surface
  const next: State = { ...self, surface, isFresh: false }
  switch (event.op) {
    case "turn":
      return { ...next, turn: event.turn }
    case "endTurn":
      return { ...next, turn: null }
    case "start":
      return { ...next, lock: self.surface.next }
    case "end":
      return { ...next, lock: null }
    case "opened":
      return { ...next, lock: null, isFresh: true }
    default:
      return next
  }
}

/**
 * A log that is written to while it is read.
 *
 * **Details**
 *
 * - `state`: what it says now. `append`: takes in one mark and returns its seq, or fails with the reason.
 * - `flush`: makes sure that what was appended stays; fails with the reason.
 * - `exclusively`: runs an effect while nobody else appends.
 *
 * @category models
 * @since 0.1.0
 */
export interface Log<in Evidence> {
  readonly state: Effect.Effect<State>
  readonly append: (mark: Mark<Evidence>) => Effect.Effect<number, string>
  readonly flush: Effect.Effect<void, string>
  readonly exclusively: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * What is to be summarised: its nodes in the order of the surface, and their price in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Span {
  readonly nodes: ReadonlyArray<Surface.Node>
  readonly price: number
}

/**
 * What a summariser made: its text, the checkpoint that is framed of it with its price in tokens, and the evidence of the
 * call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Made<out Evidence> {
  readonly text: string
  readonly framed: string
  readonly price: number
  readonly evidence: Evidence
}

/**
 * How a transaction is run.
 *
 * **Details**
 *
 * - `owner`: decides about the turn, and what `stability` and `flush` are where they are left out.
 * - `span`: the first and the last seq, given; else the region that leaves `retain` tokens (0) to the newest nodes.
 * - `isIdle`: whether nothing else is running; it is where left out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<Evidence, out E, out R> {
  readonly owner: "automatic" | "manual"
  readonly stability?: "surface" | "span"
  readonly flush?: boolean
  readonly retain?: number
  readonly span?: { readonly first: number; readonly last: number }
  readonly isIdle?: Effect.Effect<boolean>
  readonly commandId?: string
  readonly summarise: (span: Span) => Effect.Effect<Made<Evidence>, E, R>
}

/**
 * What a transaction did: the seqs of its marks, the ends and all seqs of what was replaced, its price in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Result {
  readonly start: number
  readonly summary: number
  readonly replacement: number
  readonly end: number
  readonly span: readonly [first: number, last: number]
  readonly seqs: ReadonlyArray<number>
  readonly price: number
}

const cutsOf = ({ generation, nodes }: Surface.Surface): ReadonlyArray<boolean> => {
  const cuts = Surface.makeCuts()
  Surface.readCuts(cuts, nodes, generation)
  return Surface.legalCuts(cuts)
}

/** The nodes of a span that was named, or what is wrong with it. */
const named = (
  surface: Surface.Surface,
  { first, last }: { readonly first: number; readonly last: number }
): ReadonlyArray<Surface.Node> | InvalidSpan["fault"] => {
  const from = surface.nodes.findIndex((node) => node.seq === first)
  const to = surface.nodes.findIndex((node) => node.seq === last)
  if (from < 0 || to < 0) return "not-on-surface"
  if (from > to) return "reversed"
  const legal = cutsOf(surface)
  return legal[from] === true && legal[to + 1] === true ? surface.nodes.slice(from, to + 1) : "unpaired"
}

const sameNodes = (a: ReadonlyArray<Surface.Node>, b: ReadonlyArray<Surface.Node>): boolean =>
  a.length === b.length && a.every((node, at) => node.seq === b[at]!.seq && node.price === b[at]!.price)

interface Plan {
  readonly surface: Surface.Surface
  readonly nodes: ReadonlyArray<Surface.Node>
  readonly first: number
  readonly last: number
  readonly price: number
  readonly turn: number | null
  readonly start: number
}

const priceOf = (nodes: ReadonlyArray<Surface.Node>): number => nodes.reduce((sum, node) => sum + node.price, 0)

/**
 * Compacts a log: `None` when there is nothing to replace, and then nothing was written.
 *
 * **Details**
 *
 * In this order: not idle; no region; the span that was named; the lock; the turn; start; summary; whether the checkpoint
 * is smaller than what it replaces; whether that is still the same; summary record and replacement, adjacent; end; flush.
 *
 * @category running
 * @since 0.1.0
 */
export const run = <Evidence, E, R>(
  log: Log<Evidence>,
  options: Options<Evidence, E, R>
): Effect.Effect<Option.Option<Result>, E | TransactionError, R> => {
  const { owner } = options
  const isManual = owner === "manual"
  const stability = options.stability ?? (isManual ? "span" : "surface")
  const commandId = options.commandId ?? null

  const append = (mark: Mark<Evidence>) =>
    Effect.mapError(log.append(mark), (reason) => new CommitFailed({ event: mark.op, reason }))

  const select = (surface: Surface.Surface): ReadonlyArray<Surface.Node> | InvalidSpan["fault"] | undefined => {
    if (options.span !== undefined) return named(surface, options.span)
    const found = Surface.region(surface.nodes, cutsOf(surface), options.retain ?? 0)
    return found === undefined ? undefined : surface.nodes.slice(found.first, found.last + 1)
  }

  const begin = Effect.gen(function*() {
    if (options.isIdle !== undefined && !(yield* options.isIdle)) return yield* new CompactionBusy()
    const { lock, surface, turn } = yield* log.state
    const nodes = select(surface)
    if (nodes === undefined) return undefined
    if (typeof nodes === "string") {
      return yield* new InvalidSpan({ first: options.span?.first ?? 0, last: options.span?.last ?? 0, fault: nodes })
    }
    if (lock !== null || (isManual && turn !== null)) return yield* new CompactionBusy()
    if (!isManual && turn === null) return yield* new NoTurn()
    const start = yield* append({ op: "start", turn, commandId })
    const plan: Plan = {
      surface,
      nodes,
      first: nodes[0]!.seq,
      last: nodes.at(-1)!.seq,
      price: priceOf(nodes),
      turn,
      start
    }
    return plan
  })

  const summarise = Effect.fnUntraced(function*({ nodes, price }: Plan) {
    const made = yield* options.summarise({ nodes, price })
    if (made.text.trim() === "") return yield* new Summarizer.SummaryEmpty()
    if (made.price >= price) return yield* new Guard.SummaryNotSmaller({ before: price, after: made.price })
    return made
  })

  const isSame = (plan: Plan, surface: Surface.Surface): boolean => {
    if (stability === "surface") return sameNodes(plan.surface.nodes, surface.nodes)
    const nodes = named(surface, plan)
    return typeof nodes !== "string" && sameNodes(plan.nodes, nodes)
  }

  const commit = Effect.fnUntraced(function*(plan: Plan, made: Made<Evidence>) {
    const { first, last, nodes, price } = plan
    const seqs = nodes.map((node) => node.seq)
    if (!isSame(plan, (yield* log.state).surface)) return yield* new SurfaceChanged({ entries: seqs.length })
    const { evidence, framed, text } = made
    const checkpoints = priceOf(nodes.filter((node) => node.checkpoint === true))
    const summary = yield* append({
      op: "summary",
      start: first,
      end: last,
      seqs,
      price,
      checkpoints,
      text,
      evidence,
      commandId
    })
    const replacement = yield* append({
      op: "replace",
      node: { role: "user", calls: [], answers: [], price: made.price, checkpoint: true },
      text: framed,
      start: first,
      end: last,
      cites: [plan.start, summary, ...seqs]
    })
    return { summary, replacement, seqs }
  })

  return Effect.gen(function*() {
    let end = -1
    let begun: Plan | undefined
    const ended = yield* Attempt.run({
      exclusively: log.exclusively,
      begin: Effect.tap(begin, (plan) =>
        Effect.sync(() => {
          begun = plan
        })),
      summarise,
      commit,
      close: Effect.fnUntraced(function*({ turn }, failure) {
        const reason = failure === undefined ? null : Attempt.reasonOf(failure)
        end = yield* append({ op: "end", turn, failed: failure !== undefined, reason, commandId })
      }),
      flush: options.flush ?? isManual
        ? Effect.mapError(log.flush, (reason) => new PersistenceFailed({ reason }))
        : Effect.void
    })
    if (ended._tag === "failed") {
      return yield* Attempt.isCancelled(ended.cause) ? new CompactionCancelled() : Effect.failCause(ended.cause)
    }
    if (ended._tag === "nothing" || begun === undefined) return Option.none()
    const { first, last, price, start } = begun
    return Option.some({ start, ...ended.result, end, span: [first, last], price })
  })
}
