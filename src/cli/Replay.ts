/**
 * Plays a recorded session request by request through a manager, and keeps what each request showed.
 *
 * There is one request before each message of the assistant: the one that it answered. An assistant message with nothing
 * before it answered none.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Budget from "../Budget.ts"
import * as ContextManager from "../ContextManager.ts"
import * as Estimator from "../Estimator.ts"
import type * as Session from "../format/Session.ts"
import * as Guard from "../Guard.ts"
import * as Protection from "../internal/protection.ts"
import { sameMessage } from "../internal/sameMessage.ts"
import * as Ladder from "../Ladder.ts"
import * as Settings from "../Settings.ts"
import type * as Stage from "../Stage.ts"
import * as TokenMeter from "../TokenMeter.ts"
import * as View from "../View.ts"
import * as Wire from "../Wire.ts"

/**
 * One request. Tokens everywhere but in `request` (from 1), `viewMessages`, `prefixKept` and `violations`.
 *
 * **Details**
 *
 * - `count`: what the request occupies, by `kind`. `viewTokens`: the price of the view, which the ladder goes by.
 * - `infeasible`: also where no event said so, because the same entries held the view before.
 * - `prefixKept`: the share of the previous request's tokens that this one begins with, message by message; an ephemeral
 *   tail counts for neither.
 * - `violations`: of the rules `anthropic` and `openaiChat`, of both together.
 * - `estimate`: the price of the request as it stood before the pass. `billed`: what the recording says the provider
 *   billed for its input, `null` where it says nothing.
 * - `error`: why nothing was sent; the numbers are then those of the view that would have been.
 */
export interface Row {
  readonly request: number
  readonly count: number
  readonly kind: TokenMeter.Kind
  readonly viewTokens: number
  readonly viewMessages: number
  readonly boundary: {
    readonly level: number
    readonly freed: number
    readonly before: number
    readonly after: number
    readonly removed: number
    readonly truncated: number
    readonly stubbed: number
  } | null
  readonly skipped: {
    readonly freed: number
    readonly required: number
    readonly level: number
    readonly streak: number
  } | null
  readonly infeasible: Stage.Infeasibility | null
  readonly prefixKept: number
  readonly prefixChanged: ContextManager.Request["prefixChanged"]
  readonly violations: number
  readonly estimate: number
  readonly billed: number | null
  readonly error?: { readonly tag: string; readonly message: string }
}

/**
 * How far a meter was from what was billed, as a ratio of the bill: on the average and at worst, over so many requests.
 */
interface MeterError {
  readonly requests: number
  readonly mean: number
  readonly worst: number
}

/**
 * Sums over the rows; `skips` and `infeasible` count requests. `meters` compares each meter with the bills of the requests
 * that were sent as they were recorded; `null` for a meter that said nothing about any of them.
 */
export interface Totals {
  readonly boundaries: number
  readonly skips: number
  readonly infeasible: number
  readonly freedTokens: number
  readonly maxViewTokens: number
  readonly overBudgetRequests: number
  readonly violations: number
  readonly truncated: number
  readonly removed: number
  readonly stubbed: number
  readonly meters: { readonly [M in TokenMeter.Mode]: MeterError | null }
}

/**
 * One session, as `--json` prints it. `window` is `null` where none was given, `budget` the limit that the ladder goes
 * by, both in tokens.
 */
interface Report {
  readonly file: string
  readonly format: Session.FormatName
  readonly messages: number
  readonly requests: number
  readonly window: number | null
  readonly budget: number
  readonly policy: string
  readonly rows: ReadonlyArray<Row>
  readonly totals: Totals
}

/**
 * What a person wants to know about a boundary beyond its row.
 *
 * **Details**
 *
 * - `count`: what reached the trigger. `floor`, `aim`: see `Stage.Report`; in tokens.
 * - `results`, `entries`: how many of the view's tool results and entries there were when the pass began, and how many of
 *   them it was not to remove. Later rungs relax the share of recent entries.
 */
export interface Boundary {
  readonly count: number
  readonly floor: number | null
  readonly aim: number | null
  readonly results: { readonly protected: number; readonly of: number }
  readonly entries: { readonly protected: number; readonly of: number }
}

/** A played session: the report, what it was played under, and its boundaries by request number. */
export interface Replay {
  readonly report: Report
  readonly rungs: ReadonlyArray<string>
  readonly settings: Settings.Settings
  readonly budget: Budget.Budget
  readonly boundaries: ReadonlyMap<number, Boundary>
}

/** The pass as it began, and as it ended unless it failed. */
interface Observed {
  readonly before: Stage.Pass
  readonly after: Stage.Pass | undefined
}

const boundaryOf = (before: Stage.Pass, after: Stage.Pass): Boundary => {
  const draft = { items: before.view.items, settings: before.settings, transcript: before.view.transcript }
  const { firstHuman, held, lastHuman } = Protection.make(draft, 1)
  let results = 0
  let entries = 0
  let heldEntries = 0
  draft.items.forEach(({ entry }, at) => {
    if (entry === undefined || entry.role === "system") return
    entries++
    if (entry.kind === "result") results++
    if (held[at] === 1 || entry.seq === firstHuman || entry.seq === lastHuman) heldEntries++
  })
  return {
    count: before.count.tokens,
    floor: after.report.floor,
    aim: after.report.target,
    results: { protected: Protection.lastResults(draft).length, of: results },
    entries: { protected: heldEntries, of: entries }
  }
}

/** How often a prompt breaks the rules `anthropic` and `openaiChat`. */
export const violationsIn = (messages: ReadonlyArray<Prompt.Message>): number =>
  Wire.check(messages, Wire.anthropic).length + Wire.check(messages, Wire.openaiChat).length

/** How many messages at the front of two prompts are the same. */
const commonLength = (a: ReadonlyArray<Prompt.Message>, b: ReadonlyArray<Prompt.Message>): number => {
  let at = 0
  while (at < a.length && at < b.length && sameMessage(a[at]!, b[at]!)) at++
  return at
}

/** Prices messages, each once: most of a prompt is the prompt before. */
const pricing = (price: (message: Prompt.Message) => number) => {
  const known = new WeakMap<Prompt.Message, number>()
  const of = (message: Prompt.Message): number => {
    let tokens = known.get(message)
    if (tokens === undefined) known.set(message, tokens = price(message))
    return tokens
  }
  return (messages: ReadonlyArray<Prompt.Message>, to: number): number => {
    let tokens = 0
    for (let at = 0; at < to; at++) tokens += of(messages[at]!)
    return tokens
  }
}

/** What the events of a request say about it. */
export const happened = (
  events: ContextManager.Request["events"]
): Pick<Row, "boundary" | "skipped"> => {
  let boundary: Row["boundary"] = null
  let skipped: Row["skipped"] = null
  for (const event of events) {
    if (event._tag === "Compacted") {
      const { after, before, freed, level, removed, stubbed, truncated } = event
      boundary = { level, freed, before, after, removed, truncated, stubbed }
    } else if (event._tag === "CompactionSkipped") {
      const { freed, level, required, streak } = event
      skipped = { freed, required, level, streak }
    }
  }
  return { boundary, skipped }
}

/** A policy to play under: the options of a manager, and the name it goes by. */
export interface Policy<E, R> {
  readonly name: string
  readonly settings: Settings.Input
  readonly ladder: Ladder.Ladder<E, R>
  readonly pass: Stage.Stage<E | ContextManager.PassError, R>
}

const failedRow = (
  request: number,
  failure: unknown,
  { count, view }: Stage.Pass,
  billed: number | undefined
): Row => ({
  request,
  count: count.tokens,
  kind: count.kind,
  viewTokens: view.price,
  viewMessages: View.toPrompt(view).content.length,
  boundary: null,
  skipped: isRefused(failure)
    ? { freed: failure.freed, required: failure.required, level: failure.level, streak: failure.streak }
    : null,
  infeasible: isInfeasible(failure) ? { over: failure.over, holders: failure.holders } : null,
  prefixKept: 1,
  prefixChanged: null,
  violations: 0,
  estimate: count.estimated,
  billed: billed ?? null,
  error: wordsOf(failure)
})

/** A rung of one's own may fail with anything; what is no tagged error is shown as it is. */
const wordsOf = (failure: unknown): NonNullable<Row["error"]> => {
  const isTagged = Predicate.hasProperty(failure, "_tag") && typeof failure._tag === "string"
  const isError = Predicate.hasProperty(failure, "message") && typeof failure.message === "string"
  return {
    tag: isTagged ? String(failure._tag) : "Error",
    message: isError ? String(failure.message) : JSON.stringify(failure)
  }
}

const isInfeasible = Schema.is(Ladder.BudgetInfeasible)

const isRefused = Schema.is(Guard.ClearFloorUnsatisfied)

/** What was billed for the input of the request that the message at an index answers, by the recording. */
const usageAt = ({ usage }: Session.Session, at: number): TokenMeter.Usage | undefined => {
  const found = usage.get(at)
  return found && { uncached: found.fresh, cacheRead: found.cacheRead, cacheWrite: found.cacheWrite }
}

/** An agent's request extends the one before. One that was billed so much less had been shortened by the agent itself. */
const shortened = 0.9

/**
 * Tells the recorded bills that are for the requests of this replay from those that are for others: they are the ones up
 * to the first request that either side made shorter. What a later one would have been billed is taken to be the last bill
 * that counts and the difference in price since then, the sum that the hybrid meter makes.
 */
const billing = () => {
  let last = 0
  let isOver = false
  let anchor: { readonly billed: number; readonly price: number } | undefined
  return {
    /** The bill of a request that costs `price` as it is sent, and whether it is the recorded one; asked in order. */
    of: (
      recorded: number,
      sent: { readonly price: number; readonly isWhole: boolean }
    ): { readonly billed: number; readonly isRecorded: boolean } | undefined => {
      isOver ||= !sent.isWhole || recorded < shortened * last
      last = recorded
      if (!isOver) {
        anchor = { billed: recorded, price: sent.price }
        return { billed: recorded, isRecorded: true }
      }
      return anchor && { billed: Math.max(0, anchor.billed + sent.price - anchor.price), isRecorded: false }
    }
  }
}

/** Gathers how far each meter is from what was billed. */
const comparing = () => {
  const modes = TokenMeter.Mode.literals
  const sums = { estimate: [0, 0, 0], actual: [0, 0, 0], hybrid: [0, 0, 0], calibrated: [0, 0, 0] }
  return {
    add: (reading: TokenMeter.Reading, billed: number): void => {
      const counts = { ...reading, estimate: reading.estimated }
      for (const mode of modes) {
        const count = counts[mode]
        // Without a bill to stand on a meter repeats the estimate, which is no figure of its own.
        if (count === null || billed === 0 || (mode === "hybrid" && reading.readings === 0)) continue
        const error = Math.abs(count - billed) / billed
        const [requests = 0, sum = 0, worst = 0] = sums[mode]
        sums[mode] = [requests + 1, sum + error, Math.max(worst, error)]
      }
    },
    errors: (): Totals["meters"] => {
      const of = ([requests = 0, sum = 0, worst = 0]: ReadonlyArray<number>): MeterError | null =>
        requests === 0 ? null : { requests, mean: sum / requests, worst }
      return {
        estimate: of(sums.estimate),
        actual: of(sums.actual),
        hybrid: of(sums.hybrid),
        calibrated: of(sums.calibrated)
      }
    }
  }
}

const totalsOf = (rows: ReadonlyArray<Row>, limit: number, meters: Totals["meters"]): Totals => {
  let boundaries = 0
  let skips = 0
  let infeasible = 0
  let freedTokens = 0
  let maxViewTokens = 0
  let overBudgetRequests = 0
  let violations = 0
  let truncated = 0
  let removed = 0
  let stubbed = 0
  for (const row of rows) {
    if (row.boundary !== null) {
      boundaries++
      freedTokens += row.boundary.freed
      truncated += row.boundary.truncated
      removed += row.boundary.removed
      stubbed += row.boundary.stubbed
    }
    if (row.skipped !== null) skips++
    if (row.infeasible !== null) infeasible++
    maxViewTokens = Math.max(maxViewTokens, row.viewTokens)
    if (row.viewTokens > limit) overBudgetRequests++
    violations += row.violations
  }
  return {
    boundaries,
    skips,
    infeasible,
    freedTokens,
    maxViewTokens,
    overBudgetRequests,
    violations,
    truncated,
    removed,
    stubbed,
    meters
  }
}

/** The policy of a manager that is given none but settings. */
export const standardPolicy = (settings: Settings.Input): Policy<never, never> => ({
  name: "default",
  settings,
  ladder: Ladder.progressive,
  pass: ContextManager.pass
})

/**
 * Plays a session. `onRequest` is run after each request with its number and how many there will be.
 *
 * A request that fails is a row with an `error`, and the session goes on. What was billed, or would have been, is reported to
 * the manager after each answer that the recording has a bill for. Fails when the settings do not decode.
 */
export const play = Effect.fnUntraced(function*<E, R>(
  session: Session.Session,
  options: {
    readonly policy: Policy<E, R>
    readonly onRequest?: (request: number, of: number) => Effect.Effect<void>
  }
): Effect.fn.Return<Replay, Schema.SchemaError, R | Scope.Scope> {
  const { onRequest, policy } = options
  const settings = yield* Settings.decode(policy.settings)
  const { messages } = session
  const price = pricing((yield* Estimator.Estimator).price)
  const seen: { pass: Observed | undefined } = { pass: undefined }
  const manager = yield* ContextManager.make<E | ContextManager.PassError, R>({
    settings: policy.settings,
    pass: (before) => {
      seen.pass = { before, after: undefined }
      return Effect.tap(policy.pass(before), (after) =>
        Effect.sync(() => {
          seen.pass = { before, after }
        }))
    }
  })
  const asked = messages.flatMap((message, at) => message.role === "assistant" && at > 0 ? [at] : [])
  const rows: Array<Row> = []
  const boundaries = new Map<number, Boundary>()
  const bills = billing()
  const meters = comparing()
  let sent: ReadonlyArray<Prompt.Message> = []
  let isWhole = true
  let next = 0
  for (const at of asked) {
    yield* manager.append(Prompt.fromMessages(messages.slice(next, at)))
    next = at
    const request = rows.length + 1
    const usage = usageAt(session, at)
    const billed = usage === undefined ? undefined : TokenMeter.usedOf(usage)
    const result = yield* Effect.result(manager.request)
    // The pass runs in every request that follows an append.
    const { after, before } = seen.pass!
    if (result._tag === "Failure") {
      isWhole = false
      rows.push(failedRow(request, result.failure, before, billed))
    } else {
      const { count, events, generation, prefixChanged, prompt, stableLength } = result.success
      isWhole &&= generation === 0
      const stable = prompt.content.slice(0, stableLength)
      const whole = price(sent, sent.length)
      const row: Row = {
        request,
        count: count.tokens,
        kind: count.kind,
        viewTokens: after!.view.price,
        viewMessages: prompt.content.length,
        ...happened(events),
        infeasible: after!.report.infeasible,
        prefixKept: whole === 0 ? 1 : price(sent, commonLength(sent, stable)) / whole,
        prefixChanged,
        // The whole prompt each time: this must not rest on what the manager says did not change.
        violations: violationsIn(prompt.content),
        estimate: before.count.estimated,
        billed: billed ?? null
      }
      if (row.boundary !== null) boundaries.set(request, boundaryOf(before, after!))
      rows.push(row)
      sent = stable
      const { content } = prompt
      const bill = billed === undefined
        ? undefined
        : bills.of(billed, { price: price(content, content.length), isWhole })
      if (bill?.isRecorded === true) meters.add(before.count, bill.billed)
      if (usage !== undefined && bill !== undefined) {
        yield* manager.observe({ inputTokens: bill.isRecorded ? usage : { total: bill.billed } })
      }
    }
    if (onRequest !== undefined) yield* onRequest(request, asked.length)
  }
  const budget = Budget.resolve(settings)
  const report: Report = {
    file: session.file,
    format: session.format,
    messages: messages.length,
    requests: rows.length,
    window: settings.window ?? null,
    budget: budget.limit,
    policy: policy.name,
    rows,
    totals: totalsOf(rows, budget.limit, meters.errors())
  }
  return { report, rungs: policy.ladder.rungs.map(({ name }) => name), settings, budget, boundaries }
}, Effect.scoped)
