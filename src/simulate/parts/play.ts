import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as ContextManager from "../../ContextManager.ts"
import * as Estimator from "../../Estimator.ts"
import * as Session from "../../format/Session.ts"
import * as Guard from "../../Guard.ts"
import * as Ladder from "../../Ladder.ts"
import * as Policy from "../../Policy.ts"
import * as Telemetry from "../../session/telemetry.ts"
import type * as Stage from "../../Stage.ts"
import type * as TokenMeter from "../../TokenMeter.ts"
import * as View from "../../View.ts"
import { sameMessage } from "../../wire/sameMessage.ts"
import * as Watch from "./watch.ts"

/**
 * What every row of a played session says. Tokens everywhere but in `request` (from 1), `viewMessages`, `prefixKept` and
 * `violations`.
 *
 * **Details**
 *
 * - `count`: what the request occupies, by `kind`. `viewTokens`: the price of the view, which the ladder goes by.
 * - `infeasible`: also where no event said so, because the same entries held the view before.
 * - `prefixKept`: the share of the previous request's tokens that this one begins with, message by message; an ephemeral
 *   tail counts for neither.
 * - `violations`: of the rules `anthropic` and `openaiChat`, of both together.
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
    readonly absorbed: number
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
  readonly error?: { readonly tag: string; readonly message: string }
}

/**
 * One request that was played: its row, the request itself unless it failed, and the pass as it began and as it ended.
 * `at` is the position of the message that answers it, `of` how many requests there will be.
 */
export interface Turn<out E> {
  readonly row: Row
  readonly at: number
  readonly of: number
  readonly sent: ContextManager.Request | undefined
  readonly before: Stage.Pass
  readonly after: Stage.Pass | undefined
  readonly manager: ContextManager.ContextManager<E>
}

/** How many messages at the front of two prompts are the same. */
const commonLength = (a: ReadonlyArray<Prompt.Message>, b: ReadonlyArray<Prompt.Message>): number => {
  let at = 0
  while (at < a.length && at < b.length && sameMessage(a[at]!, b[at]!)) at++
  return at
}

/** Prices messages, each once: most of a prompt is the prompt before. */
export const pricing = (price: (message: Prompt.Message) => number): (message: Prompt.Message) => number => {
  const known = new WeakMap<Prompt.Message, number>()
  return (message) => {
    let tokens = known.get(message)
    if (tokens === undefined) known.set(message, tokens = price(message))
    return tokens
  }
}

/** What the events of a request say about it. */
export const happened = (events: ContextManager.Request["events"]): Pick<Row, "boundary" | "skipped"> => {
  let boundary: Row["boundary"] = null
  let skipped: Row["skipped"] = null
  for (const event of events) {
    if (event._tag === "Compacted") {
      const { absorbed, after, before, freed, level, removed, stubbed, truncated } = event
      boundary = { level, freed, before, after, removed, truncated, stubbed, absorbed }
    } else if (event._tag === "CompactionSkipped") {
      const { freed, level, required, streak } = event
      skipped = { freed, required, level, streak }
    }
  }
  return { boundary, skipped }
}

const isSkip = Schema.is(Guard.ClearFloorUnsatisfied)
const isInfeasible = Schema.is(Ladder.BudgetInfeasible)

/** A rung of one's own may fail with anything; what is no tagged error is shown as it is. */
const wordsOf = (failure: unknown): NonNullable<Row["error"]> => {
  const isTagged = Predicate.hasProperty(failure, "_tag") && typeof failure._tag === "string"
  const isError = Predicate.hasProperty(failure, "message") && typeof failure.message === "string"
  return {
    tag: isTagged ? String(failure._tag) : "Error",
    message: isError ? String(failure.message) : JSON.stringify(failure)
  }
}

const failedRow = (request: number, failure: unknown, { count, view }: Stage.Pass): Row => ({
  request,
  count: count.tokens,
  kind: count.kind,
  viewTokens: view.price,
  viewMessages: View.toPrompt(view).content.length,
  boundary: null,
  skipped: isSkip(failure)
    ? { freed: failure.freed, required: failure.required, level: failure.level, streak: failure.streak }
    : null,
  infeasible: isInfeasible(failure) ? { over: failure.over, holders: failure.holders } : null,
  prefixKept: 1,
  prefixChanged: null,
  violations: 0,
  error: wordsOf(failure)
})

/** Where the requests of a recorded session are: one before each answer of a model but one that answered nothing. */
export const requestsOf = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<number> =>
  messages.flatMap((message, at) => Session.isAnswer(message) && at > 0 ? [at] : [])

/**
 * Plays a recorded session request by request through a manager, and hands on each request as it was. Returns the manager,
 * with all messages of the session.
 *
 * A request that fails is a row with an `error`, and the session goes on. Fails when the settings do not decode.
 */
export const play = Effect.fnUntraced(function*<E, R, P>(
  messages: ReadonlyArray<Prompt.Message>,
  policy: Policy.Options<E, R, P>,
  call: ContextManager.Call,
  onTurn: (turn: Turn<E | P>) => Effect.Effect<void>
): Effect.fn.Return<ContextManager.ContextManager<E | P>, Policy.PolicyError, R | Scope.Scope> {
  const price = pricing((yield* Estimator.Estimator).price)
  const { ladder: _, ...rest } = policy
  const { pass } = yield* Policy.prepare(policy)
  const seen: { pass: { readonly before: Stage.Pass; readonly after: Stage.Pass | undefined } | undefined } = {
    pass: undefined
  }
  const watched = Policy.passFrom((before) => {
    seen.pass = { before, after: undefined }
    return Effect.tap(pass(before), (after) =>
      Effect.sync(() => {
        seen.pass = { before, after }
      }))
  })
  const manager = yield* ContextManager.make({
    ...rest,
    pass: pass.ladder === undefined ? watched : Object.assign(watched, { ladder: pass.ladder })
  })
  const requests = requestsOf(messages)
  let sent: ReadonlyArray<Prompt.Message> = []
  /** What the first messages of `sent` cost, by how many they are. */
  const prices = [0]
  const watch = Watch.make()
  let next = 0
  for (const [index, at] of requests.entries()) {
    // Only what is raw is decoded, and messages are not.
    yield* Effect.orDie(manager.append(Prompt.fromMessages(messages.slice(next, at))))
    next = at
    const request = index + 1
    const result = yield* Effect.result(manager.requestWith(call))
    // The pass runs in every request that follows an append.
    const { after, before } = seen.pass!
    const turn = { at, of: requests.length, before, after, manager }
    if (result._tag === "Failure") {
      yield* onTurn({ ...turn, row: failedRow(request, result.failure, before), sent: undefined })
      continue
    }
    const { count, events, prefixChanged, prompt, stableLength } = result.success
    const stable = prompt.content.slice(0, stableLength)
    const whole = prices[sent.length] ?? 0
    const row: Row = {
      request,
      count: count.tokens,
      kind: count.kind,
      viewTokens: after!.view.price,
      viewMessages: prompt.content.length,
      ...happened(events),
      infeasible: after!.report.infeasible,
      prefixKept: whole === 0 ? 1 : (prices[commonLength(sent, stable)] ?? 0) / whole,
      prefixChanged,
      violations: Watch.count(watch, prompt.content)
    }
    prices.length = Watch.commonFront(sent, stable) + 1
    for (let at = prices.length - 1; at < stable.length; at++) prices.push(prices[at]! + price(stable[at]!))
    sent = stable
    yield* onTurn({ ...turn, row, sent: result.success })
  }
  yield* Effect.orDie(manager.append(Prompt.fromMessages(messages.slice(next))))
  return manager
}, Effect.provideService(Telemetry.IsRecorded, false))
