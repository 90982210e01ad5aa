/**
 * Plays a recorded session request by request through a manager, and keeps what each request showed.
 *
 * There is one request before each message of the assistant: the one that it answered. An assistant message with nothing
 * before it answered none.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Budget from "../Budget.ts"
import * as Estimator from "../Estimator.ts"
import type * as Session from "../format/Session.ts"
import * as Ladder from "../Ladder.ts"
import * as Protection from "../ladder/protection.ts"
import * as Policy from "../Policy.ts"
import type * as Settings from "../Settings.ts"
import * as Play from "../simulate/parts/play.ts"
import * as Watch from "../simulate/parts/watch.ts"
import type * as Stage from "../Stage.ts"
import * as TokenMeter from "../TokenMeter.ts"
import type * as View from "../View.ts"
import * as Unheld from "./Unheld.ts"

/**
 * One request, and what was billed for it: `estimate` is its price as it stood before the pass, `billed` what the recording
 * says the provider billed for its input, `null` where it says nothing.
 */
export interface Row extends Play.Row {
  readonly estimate: number
  readonly billed: number | null
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
  readonly absorbed: number
  readonly meters: { readonly [M in TokenMeter.Mode]: MeterError | null }
}

/**
 * One session, as `--json` prints it. `window` is `null` where none was given, `budget` the limit that the ladder goes
 * by, both in tokens. `unheld` names what of the session each format has no place for; absent where there is nothing.
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
  readonly unheld?: Unheld.ByFormat
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
  readonly preview: Stage.Preview | undefined
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

/** What the events of a request say about it. */
export const { happened } = Play

/** How often a prompt breaks the wire rules. */
export const { violationsIn } = Watch

/** A policy to play under, and the name it goes by. */
export interface Named<E, R> extends Policy.Written<E, R, unknown> {
  readonly name: string
}

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
    add: (reading: TokenMeter.Reading, billed: number, overhead: number): void => {
      const counts = { ...reading, estimate: reading.estimated }
      for (const mode of modes) {
        const count = counts[mode]
        // Without a bill to stand on a meter repeats the estimate, which is no figure of its own.
        if (count === null || billed === 0 || (mode === "hybrid" && reading.readings === 0)) continue
        // Counts that are made from bills are of the view; the bill holds the overhead too.
        const whole = mode === "estimate" ? count : count + overhead
        const error = Math.abs(whole - billed) / billed
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
  let absorbed = 0
  for (const row of rows) {
    if (row.boundary !== null) {
      boundaries++
      freedTokens += row.boundary.freed
      truncated += row.boundary.truncated
      removed += row.boundary.removed
      stubbed += row.boundary.stubbed
      absorbed += row.boundary.absorbed
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
    absorbed,
    meters
  }
}

/** The policy of a manager that is given none but settings. */
export const standardPolicy = (settings: Settings.Input): Named<never, never> => ({
  name: "default",
  settings,
  ladder: Ladder.recommended
})

/**
 * Plays a session. `onRequest` is run after each request with its number, how many there will be, and the view that the pass
 * left, unless it failed.
 *
 * A request that fails is a row with an `error`, and the session goes on. What was billed, or would have been, is reported to
 * the manager after each answer that the recording has a bill for. With a `cause` it ends with a preview of a pass after the
 * last message. Fails when the settings do not decode.
 */
export const play = Effect.fnUntraced(function*<E, R>(
  session: Session.Session,
  options: {
    readonly policy: Named<E, R>
    readonly onRequest?: (request: number, of: number, view: View.View | undefined) => Effect.Effect<void>
    readonly cause?: Stage.Cause
  }
): Effect.fn.Return<Replay, Policy.PolicyError, R | Scope.Scope> {
  const { cause, onRequest, policy } = options
  const { name, ...written } = policy
  const { settings } = yield* Policy.prepare(written)
  const price = Play.pricing((yield* Estimator.Estimator).price)
  const rows: Array<Row> = []
  const boundaries = new Map<number, Boundary>()
  const bills = billing()
  const meters = comparing()
  let isWhole = true
  const manager = yield* Play.play(
    session.messages,
    written,
    {},
    ({ after, at, before, manager, of, row, sent }) =>
      Effect.gen(function*() {
        const usage = usageAt(session, at)
        const billed = usage === undefined ? undefined : TokenMeter.usedOf(usage)
        isWhole &&= sent?.generation === 0
        rows.push({ ...row, estimate: before.count.estimated, billed: billed ?? null })
        if (row.boundary !== null) boundaries.set(row.request, boundaryOf(before, after!))
        if (sent !== undefined && usage !== undefined && billed !== undefined) {
          const tokens = sent.prompt.content.reduce((sum, message) => sum + price(message), 0)
          const bill = bills.of(billed, { price: tokens, isWhole })
          if (bill?.isRecorded === true) meters.add(before.count, bill.billed, before.budget.overhead)
          if (bill !== undefined) {
            yield* manager.observe({ inputTokens: bill.isRecorded ? usage : { total: bill.billed } })
          }
        }
        // Between two requests of a session a model answers, and tools run: a summary is written meanwhile.
        yield* Stream.runHead(Stream.filter(manager.statusChanges, ({ summary }) => summary !== "running"))
        if (onRequest !== undefined) yield* onRequest(row.request, of, after?.view)
      })
  )
  const preview = cause === undefined ? undefined : yield* manager.preview(cause)
  const budget = Budget.resolve(settings)
  const unheld = Unheld.of(session.messages)
  const report: Report = {
    file: session.file,
    format: session.format,
    messages: session.messages.length,
    requests: rows.length,
    window: settings.window ?? null,
    budget: budget.limit,
    policy: name,
    rows,
    totals: totalsOf(rows, budget.limit, meters.errors()),
    ...(Unheld.isNothing(unheld) ? undefined : { unheld })
  }
  return { report, rungs: policy.ladder.rungs.map(({ name }) => name), settings, budget, boundaries, preview }
}, Effect.scoped)
