import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Budget from "../Budget.ts"
import type * as CompactionEvent from "../CompactionEvent.ts"
import * as Decision from "../Decision.ts"
import * as Gate from "../Gate.ts"
import * as Stage from "../Stage.ts"
import * as TokenMeter from "../TokenMeter.ts"
import type * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import type * as Wire from "../Wire.ts"
import * as Live from "./live.ts"
import * as Tail from "./tail.ts"

/** What tells one request from another. */
export interface Asked {
  readonly entries: number
  readonly limit: number
}

export const isSame = (a: Asked, b: Asked): boolean => a.entries === b.entries && a.limit === b.limit

/** All that changes in a session. Only one fiber at a time holds the lock that guards it. */
export interface State {
  transcript: Transcript.Transcript
  decisions: ReadonlyArray<Decision.Decision>
  index: Decision.Index
  /** What was decided about entries that a snapshot left out. */
  gone: Decision.Counts
  live: Live.Live
  memory: Stage.PassMemory
  meter: TokenMeter.State
  tail: Tail.Memory
  /** What the request before asked for, if it returned a view: with nothing billed since, the same again decides nothing. */
  asked: Asked | null
  reading: TokenMeter.Reading | null
  budget: Budget.Budget | null
  /** The most that a provider takes, in tokens, once it said so, and the route on which it did. */
  maximum: number | null
  maximumRoute: string
  /** The generation of the request that was sent last. */
  sent: number
  /** What held before that request, while nothing is known to have come of it: sent anew, it is the same. */
  unsent: { readonly tail: Tail.Memory; readonly sent: number } | null
  lastBoundary: typeof CompactionEvent.Compacted.Type | null
  lastSkip: typeof CompactionEvent.CompactionSkipped.Type | null
  lastInfeasible: typeof CompactionEvent.Infeasible.Type | null
}

export const fresh = (
  transcript: Transcript.Transcript,
  rules: Wire.Rules,
  decisions: ReadonlyArray<Decision.Decision> = [],
  memory: Stage.PassMemory = Stage.noMemory,
  meter: TokenMeter.State = TokenMeter.empty,
  tail: Tail.Memory = Tail.noMemory
): State => {
  const index = Decision.index(decisions)
  return {
    transcript,
    decisions,
    index,
    gone: Decision.noCounts,
    live: Live.make(transcript, rules, index),
    memory,
    meter,
    tail,
    asked: null,
    reading: null,
    budget: null,
    maximum: null,
    maximumRoute: "",
    sent: memory.generation,
    unsent: null,
    lastBoundary: null,
    lastSkip: null,
    lastInfeasible: null
  }
}

/** What was decided in the session. */
export const countsOf = ({ gone, index }: State): Decision.Counts => Decision.addCounts(Decision.counts(index), gone)

/** The view of a request, whose items nobody needs below the trigger: they are laid out when they are first read. */
export const lazyView = (state: State, price: number): View.View => {
  const { decisions, transcript } = state
  let made: View.View | undefined
  return {
    transcript,
    length: transcript.entries.length,
    decisions,
    price,
    get items() {
      return (made ??= View.make(transcript, decisions)).items
    }
  }
}

const decodeMessages = Schema.decodeUnknownEffect(Schema.Array(Prompt.Message))

export const messagesOf = (
  input: Prompt.RawInput
): Effect.Effect<ReadonlyArray<Prompt.Message>, Schema.SchemaError> => {
  if (typeof input === "string" || Prompt.isPrompt(input)) return Effect.succeed(Prompt.make(input).content)
  return decodeMessages(Array.from(input), { errors: "all" })
}

/** What a boundary did, for the event and the next status. */
const compacted = (state: State, before: View.View, after: Stage.Pass): typeof CompactionEvent.Compacted.Type => {
  const session = countsOf(state)
  // Of this pass, and not what the session's counts moved by: an entry that was truncated before may be removed now.
  const own = Decision.counts(Decision.index(after.view.decisions.slice(before.decisions.length)))
  return {
    _tag: "Compacted",
    before: before.price,
    after: after.view.price,
    freed: before.price - after.view.price,
    messagesBefore: before.items.length,
    messagesAfter: after.view.items.length,
    removed: own.removed,
    truncated: own.truncated,
    stubbed: own.stubbed,
    absorbed: own.absorbed,
    session,
    level: after.report.level,
    count: after.count.tokens,
    kind: after.count.kind,
    budget: after.budget.limit,
    target: after.report.target,
    generation: state.memory.generation,
    protectedRecent: after.settings.protectedRecent,
    protectedToolResults: after.settings.protectedToolResults
  }
}

/**
 * Takes the outcome of a pass into the session, and returns the event of the boundary if there was one.
 *
 * The decisions are those the new view has beyond the old one's; whatever stage made it, they are in force from now on.
 */
export const commit = (
  state: State,
  before: View.View,
  after: Stage.Pass
): typeof CompactionEvent.Compacted.Type | undefined => {
  const holders = after.report.infeasible === null ? null : after.memory.holders
  if (after.view === before) {
    state.memory = { ...after.memory, holders }
    return undefined
  }
  state.memory = {
    ...after.memory,
    holders,
    level: Math.max(after.memory.level, after.report.level),
    generation: after.memory.generation + 1
  }
  state.decisions = after.view.decisions
  Decision.addTo(state.index, after.view.decisions.slice(before.decisions.length))
  Live.rebuild(state.live)
  return state.lastBoundary = compacted(state, before, after)
}

/**
 * What an event says that outlives its pass. A stage that fails, or is skipped for it, hands back no memory: what it
 * counted and named is taken from what it published.
 */
export const remember = (memory: Stage.PassMemory, event: CompactionEvent.CompactionEvent): Stage.PassMemory => {
  switch (event._tag) {
    case "CompactionSkipped":
      return { ...memory, streak: event.streak, holders: null }
    case "Infeasible":
      return { ...memory, holders: event.holders.map((holder) => holder.seq) }
    case "PassRefused":
      return { ...memory, refusals: event.refusals }
    case "PassOverridden":
      return { ...memory, [Gate.overridesOf[event.cause]]: event.overrides }
    default:
      return memory
  }
}

export const causeOf = (change: Live.Change, isBoundary: boolean): "boundary" | "repair" | "system" =>
  isBoundary ? "boundary" : change.isSystem ? "system" : "repair"

/** What the meter counts of a session, but for the price. The envelope is the same for the same route, tools and system. */
export const countedOf = (
  state: State,
  call: { readonly route?: string; readonly overhead?: number }
): Omit<TokenMeter.Counted, "price"> => ({
  entries: state.transcript.entries.length,
  generation: state.memory.generation,
  envelope: state.transcript.entries.length === 0 ? null : {
    key: JSON.stringify([call.route ?? "", call.overhead ?? 0, state.live.systems.length, state.live.systemPrice]),
    price: 0
  }
})

export const hasRepairs = (repairs: Live.Repairs): boolean =>
  repairs.orphans.length + repairs.duplicates.length + repairs.synthetic.length + repairs.moved.length > 0

export const isOtherBudget = (before: Budget.Budget | null, now: Budget.Budget): boolean =>
  before === null || before.total !== now.total || before.source !== now.source || before.overhead !== now.overhead

export const resolved = (budget: Budget.Budget): typeof CompactionEvent.BudgetResolved.Type => ({
  _tag: "BudgetResolved",
  total: budget.total,
  source: budget.source,
  overhead: budget.overhead,
  limit: budget.limit,
  reserve: Math.max(0, budget.total - budget.overhead - budget.limit)
})

export const counting = (
  reading: TokenMeter.Reading,
  memory: Stage.PassMemory,
  budget: Budget.Budget
): typeof CompactionEvent.TokenCounted.Type => {
  const { readings: _, tokens, ...rest } = reading
  return {
    _tag: "TokenCounted",
    ...rest,
    used: tokens,
    overhead: budget.overhead,
    refusals: memory.refusals,
    overrides: memory.estimateOverrides + memory.rejectedOverrides + memory.lapsedOverrides,
    budget: budget.limit
  }
}

/** The messages that the caller appended; checkpoints are no part of the history. */
export const historyOf = (transcript: Transcript.Transcript): ReadonlyArray<Prompt.Message> =>
  transcript.messages.filter((_, at) => transcript.origins[at] === "caller")

/** JSON for what a provider is sent as JSON anyway: without it a result that holds `undefined` could not be saved. */
const plain = (value: unknown): unknown =>
  typeof value === "object" && value !== null ? JSON.parse(JSON.stringify(value)) : value ?? null

export const savable = (message: Prompt.Message): Prompt.Message => {
  if (message.role !== "tool" && message.role !== "assistant") return message
  const content: ReadonlyArray<Prompt.Part> = message.content
  const saved = content.map((part) => {
    if (part.type === "tool-result") return { ...part, result: plain(part.result) }
    return part.type === "tool-call" ? { ...part, params: plain(part.params) } : part
  })
  // The parts are those of this message, in its order, each with the type it had; the union of roles loses that.
  return { ...message, content: saved } as Prompt.AssistantMessage
}
