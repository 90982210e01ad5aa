/**
 * What a policy would have cost in a recorded session: the session is played request by request, every request goes
 * through a simulated prompt cache, and what the cache says is billed. Nothing is sent anywhere.
 *
 * There is one request before each message of the assistant: the one that it answered. The manager is told what each
 * request was billed, bucket by bucket, so that every meter works as it would with a provider.
 *
 * **Details**
 *
 * - Prices of the `Estimator`, times `ratio`, stand for the provider's tokens.
 * - Time is that of `Clock` and `gap` for each request before; what a cache forgets follows from it.
 * - Every call of the summariser is billed. One that reads the session's cache (`suffix`) pays what it reads, what was not
 *   cached and the reply; any other pays all of its prompt as fresh input, and the reply. A reply is as long as it may be
 *   (15 % of the span, at least 400 tokens, by the default settings), whatever the text that stands for it: the text is
 *   filled up to that length. Nothing of such a call is written to the cache.
 *
 * **Gotchas**
 *
 * The recorded session does not change with the policy: an agent that saw less would have asked again. So a policy that
 * keeps too little looks cheap here; read the cost together with what is retained.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Budget from "../Budget.ts"
import type * as ContextManager from "../ContextManager.ts"
import type * as Decision from "../Decision.ts"
import * as Estimator from "../Estimator.ts"
import type * as Session from "../format/Session.ts"
import * as Policy from "../Policy.ts"
import type * as Settings from "../Settings.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Blocks from "./parts/blocks.ts"
import * as Fill from "./parts/fill.ts"
import * as Play from "./parts/play.ts"
import * as Time from "./parts/time.ts"
import * as Price from "./Price.ts"
import * as PromptCache from "./PromptCache.ts"
import * as Retention from "./Retention.ts"

/**
 * What is played: the messages, and what the answers were billed where that is known. A read session is one.
 *
 * @category models
 * @since 0.1.0
 */
export interface Recording {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly usage?: ReadonlyMap<number, Session.Usage>
}

/**
 * A view as it was sent, when `told` messages of the session were known.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sent {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly told: number
}

/**
 * What surrounds every policy that is played.
 *
 * **Details**
 *
 * - `window`, `maxTokens`: in place of the settings' own, in tokens.
 * - `cache`, `price`: the rules of the cache, and what tokens cost.
 * - `summarizer`: writes the summaries of policies that have them; without one they go on without.
 * - `tools`: the definitions of tools and whatever else of a request is not in the prompt, in tokens; 0 when left out.
 * - `ratio`: the provider's tokens for one token of price; 1 when left out.
 * - `gap`: how long a request is after the one before; nothing when left out. `gaps`: how long nothing was written before each
 *   message, in milliseconds, as `Session.gaps` says of a recording with times; in place of `gap`.
 * - `probes`: of a session in which facts were planted; see `Retention`.
 * - `onRequest`: run after each request, with its number, how many there will be, and what was sent; nothing was where the
 *   request failed.
 *
 * @category models
 * @since 0.1.0
 */
export interface World {
  readonly window?: number
  readonly maxTokens?: number
  readonly cache: PromptCache.Rules
  readonly price: Price.Price
  readonly summarizer?: Summarizer.Service
  readonly tools?: number
  readonly ratio?: number
  readonly gap?: Duration.Input
  readonly gaps?: ReadonlyMap<number, number>
  readonly probes?: ReadonlyArray<Retention.Probe>
  readonly onRequest?: (request: number, of: number, sent: Sent | undefined) => Effect.Effect<void>
}

/**
 * One request.
 *
 * **Details**
 *
 * - `count`, `kind`: what it occupies by the meter that drives. `viewTokens`: the price of the view, which the ladder goes
 *   by; `viewMessages`: how many messages are sent.
 * - `cached`, `written`, `fresh`, `output`: the tokens it is billed, by bucket. `cost`: of these, in dollars.
 * - `waste`: tokens that were sent before and are billed again as written or fresh.
 * - `boundary`: what the pass did, or `null`; `prefixChanged`: why the prefix is not the one before, also without a
 *   boundary; `prefixKept`: the share of the previous request's tokens that this one begins with.
 * - `decisions`: how many entries are removed, altered or absorbed by now; `absorbed`: by a checkpoint, of them.
 * - `summaries`, `summaryCost`: calls of the summariser at or after this request, and what they cost, in dollars.
 * - `retention`: what of the planted facts is in the view; `null` without probes.
 * - `skipped`, `infeasible`, `violations`, `error`: of the clear floor, of the budget, of the wire rules `anthropic` and
 *   `openaiChat`; and why nothing was sent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Row extends Play.Row {
  readonly cached: number
  readonly written: number
  readonly fresh: number
  readonly output: number
  readonly cost: number
  readonly waste: number
  readonly decisions: number
  readonly absorbed: number
  readonly summaries: number
  readonly summaryCost: number
  readonly retention: Retention.Score | null
}

/**
 * Sums over the rows. Tokens and dollars.
 *
 * **Details**
 *
 * - `cost`: of everything, the summaries included. `summaryCost`, `summaryShare`: what of it the summaries are.
 * - `cacheRead`, `cacheWrite`, `fresh`, `output`, `waste`: of the session's own requests. `cacheReadShare`: of their input.
 * - `skips`, `infeasible`, `overBudget`, `failed`: how many requests were refused by the clear floor, could not fit, priced
 *   more than the budget, and were not sent.
 * - `retained`: the share of the facts known at a request that its view holds, on average over the requests, and
 *   `retainedAtEnd` in the last one; `stale` counts outdated statements over all requests. `null` without probes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Totals {
  readonly cost: number
  readonly boundaries: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly fresh: number
  readonly output: number
  readonly waste: number
  readonly cacheReadShare: number
  readonly summaries: number
  readonly summaryCost: number
  readonly summaryShare: number
  readonly retained: number | null
  readonly retainedAtEnd: number | null
  readonly stale: number | null
  readonly violations: number
  readonly skips: number
  readonly infeasible: number
  readonly overBudget: number
  readonly failed: number
  readonly freed: number
  readonly maxViewTokens: number
}

/**
 * A played policy. `budget` is the limit that its ladder goes by, in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Result {
  readonly budget: number
  readonly rows: ReadonlyArray<Row>
  readonly totals: Totals
}

/**
 * A policy with its name; what `Policy.options` returns is one without.
 *
 * @category models
 * @since 0.1.0
 */
export interface Named<out E = never, out R = never, out P = Policy.PassError> extends Policy.Options<E, R, P> {
  readonly policy: string
}

const textMessage = (text: string): Prompt.UserMessage =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

/** What a message costs in a view, where each result is an entry of its own. */
const priceOf = (price: (message: Prompt.Message) => number, message: Prompt.Message): number => {
  if (message.role !== "tool" || message.content.length < 2) return price(message)
  return message.content.reduce((sum, part) => sum + price({ ...message, content: [part] }), 0)
}

interface Billing {
  readonly cache: PromptCache.PromptCache
  readonly price: Price.Price
  readonly tools: number
  readonly ratio: number
  readonly tokensOf: (message: Prompt.Message) => number
  /** How often a content was in one request, at most. */
  readonly sent: Map<number, number>
  calls: number
  summaryCost: number
}

/**
 * How many tokens of a request are billed again although they were sent before: what is not read, of messages whose
 * content an earlier request held as often.
 */
const wasteOf = (
  { sent, tools }: Billing,
  messages: ReadonlyArray<Prompt.Message>,
  prices: ReadonlyArray<number>,
  read: number
): number => {
  let waste = sent.size === 0 ? 0 : Math.max(0, tools - read)
  let end = tools
  const here = new Map<number, number>()
  messages.forEach((message, at) => {
    const tokens = prices[at]!
    end += tokens
    const content = Blocks.contentOf(message)
    const times = (here.get(content) ?? 0) + 1
    here.set(content, times)
    if (end > read && (sent.get(content) ?? 0) >= times) waste += Math.min(tokens, end - read)
  })
  for (const [content, times] of here) if (times > (sent.get(content) ?? 0)) sent.set(content, times)
  return waste
}

/**
 * The tokens of each message of a request. Messages that the wire joins cost a few tokens less than the entries of the
 * view; these go to the first message, so that nobody is billed less than what the manager counts.
 */
const pricesOf = (
  { ratio, tokensOf }: Billing,
  { prompt, stableLength }: ContextManager.Request,
  viewTokens: number
): ReadonlyArray<number> => {
  const prices = prompt.content.map(tokensOf)
  let missing = Math.ceil(viewTokens * ratio)
  for (let at = 0; at < stableLength; at++) missing -= prices[at]!
  if (missing > 0 && prices.length > 0) prices[0] = prices[0]! + missing
  return prices
}

/** Bills one request of the session. */
const bill = (self: Billing, request: ContextManager.Request, viewTokens: number, output: number, at: number) => {
  const { cache, price, tools } = self
  const { prompt: { content: messages }, stableLength } = request
  const prices = pricesOf(self, request, viewTokens)
  const buckets = PromptCache.sendAt(cache, { messages, prices, stableLength, tools }, at)
  const waste = wasteOf(self, messages, prices, buckets.read)
  return { ...buckets, output, waste, cost: Price.cost(price, { ...buckets, output }) }
}

/** A summariser that bills each call to the session, at the length its reply is allowed. */
const billed = (self: Billing, service: Summarizer.Service, now: Effect.Effect<number>): Summarizer.Service => ({
  ...service,
  summarize: Effect.fnUntraced(function*(request) {
    const at = yield* now
    const messages = request.prompt.content
    const prices = messages.map(self.tokensOf)
    // Behind the session's own messages stand its tools, which may not be called; a text needs none.
    const tools = request.layout === "suffix" ? self.tools : 0
    const total = prices.reduce((sum, tokens) => sum + tokens, tools)
    const read = request.layout === "suffix" && service.cache === "shared"
      ? PromptCache.readAt(self.cache, { messages, prices, stableLength: messages.length, tools }, at)
      : 0
    const output = request.maxTokens
    self.calls++
    self.summaryCost += Price.cost(self.price, { read, written: 0, fresh: total - read, output })
    const reply = yield* service.summarize(request)
    const text = Fill.fill(reply.text, output, (each) => self.tokensOf(textMessage(each)))
    return {
      ...reply,
      text,
      usage: {
        inputTokens: { total, uncached: total - read, cacheRead: read, cacheWrite: 0 },
        outputTokens: output
      }
    }
  })
})

const mean = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 1 : values.reduce((sum, value) => sum + value, 0) / values.length

/**
 * Sums up rows; `budget` is what `overBudget` is measured by.
 *
 * @category running
 * @since 0.1.0
 */
export const totals = (rows: ReadonlyArray<Row>, budget: number): Totals => {
  const sum = (value: (row: Row) => number): number => rows.reduce((total, row) => total + value(row), 0)
  const cacheRead = sum((row) => row.cached)
  const cacheWrite = sum((row) => row.written)
  const fresh = sum((row) => row.fresh)
  const input = cacheRead + cacheWrite + fresh
  const summaryCost = sum((row) => row.summaryCost)
  const cost = sum((row) => row.cost) + summaryCost
  const scores = rows.flatMap((row) => row.retention === null ? [] : [row.retention])
  const isScored = scores.length > 0
  return {
    cost,
    boundaries: sum((row) => row.boundary === null ? 0 : 1),
    cacheRead,
    cacheWrite,
    fresh,
    output: sum((row) => row.output),
    waste: sum((row) => row.waste),
    cacheReadShare: input === 0 ? 0 : cacheRead / input,
    summaries: sum((row) => row.summaries),
    summaryCost,
    summaryShare: cost === 0 ? 0 : summaryCost / cost,
    retained: isScored ? mean(scores.filter((score) => score.known > 0).map((score) => score.retained)) : null,
    retainedAtEnd: scores.at(-1)?.retained ?? null,
    stale: isScored ? scores.reduce((total, score) => total + score.stale, 0) : null,
    violations: sum((row) => row.violations),
    skips: sum((row) => row.skipped === null ? 0 : 1),
    infeasible: sum((row) => row.infeasible === null ? 0 : 1),
    overBudget: sum((row) => row.viewTokens > budget ? 1 : 0),
    failed: sum((row) => row.error === undefined ? 0 : 1),
    freed: sum((row) => row.boundary?.freed ?? 0),
    maxViewTokens: rows.reduce((most, row) => Math.max(most, row.viewTokens), 0)
  }
}

/** A summary that is written at once still takes its fibers a few steps to be taken in, between two requests. */
const summarySteps = 16

const decisionsOf = (index: Decision.Counts): number => index.removed + index.altered + index.absorbed

/**
 * Plays a session under a policy: the settings of a manager and its pass, as `Policy.options` gives them.
 *
 * A request that fails is a row with an `error`, costs nothing, and the session goes on. Fails when the settings do not
 * decode.
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fnUntraced(function*<E = never, R = never, P = Policy.PassError>(
  recording: Recording,
  policy: Policy.Options<E, R, P>,
  world: World
): Effect.fn.Return<Result, Policy.PolicyError, R> {
  const { cache: rules, gap = 0, onRequest, probes, ratio = 1, summarizer, tools = 0 } = world
  const { messages, usage } = recording
  const estimator = yield* Estimator.Estimator
  const input: Settings.Input = {
    ...policy.settings,
    ...(world.window === undefined ? {} : { window: world.window }),
    ...(world.maxTokens === undefined ? {} : { maxTokens: world.maxTokens })
  }
  const played = { ...policy, settings: input }
  const { settings } = yield* Policy.prepare(played)
  const budget = Budget.resolve(settings, undefined, tools).limit
  const price = Price.under(world.price, rules)
  const billing: Billing = {
    cache: PromptCache.make(rules),
    price,
    tools,
    ratio,
    tokensOf: Play.pricing((message) => Math.round(priceOf(estimator.price, message) * ratio)),
    sent: new Map(),
    calls: 0,
    summaryCost: 0
  }
  const waits = Time.waitsOf(Play.requestsOf(messages), Duration.toMillis(gap), world.gaps)
  const clock = yield* Clock.Clock
  let waited = 0
  const now = Effect.sync(() => clock.currentTimeMillisUnsafe() + waited)
  const checker = probes === undefined ? undefined : Retention.checker(probes)
  const rows: Array<Row> = []
  let summaries = 0
  let summaryCost = 0
  const onTurn = Effect.fnUntraced(function*({ at, manager, of, row, sent }: Play.Turn<E | P>) {
    const output = usage?.get(at)?.output ?? billing.tokensOf(messages[at]!)
    const paid = sent === undefined
      ? { read: 0, written: 0, fresh: 0, output: 0, waste: 0, cost: 0 }
      : bill(billing, sent, row.viewTokens, output, yield* now)
    const { counts } = yield* manager.status
    if (sent !== undefined) {
      const { fresh, read, written } = paid
      const total = read + written + fresh
      yield* manager.observe({ inputTokens: { total, uncached: fresh, cacheRead: read, cacheWrite: written } })
    }
    if (summarizer !== undefined) { for (let each = 0; each < summarySteps; each++) yield* Effect.yieldNow }
    waited = waits[rows.length + 1] ?? waited
    rows.push({
      ...row,
      cached: paid.read,
      written: paid.written,
      fresh: paid.fresh,
      output: paid.output,
      cost: paid.cost,
      waste: paid.waste,
      decisions: decisionsOf(counts),
      absorbed: counts.absorbed,
      summaries: billing.calls - summaries,
      summaryCost: billing.summaryCost - summaryCost,
      retention: sent === undefined || checker === undefined ? null : checker.score(sent.prompt.content, at)
    })
    summaries = billing.calls
    summaryCost = billing.summaryCost
    if (onRequest !== undefined) {
      yield* onRequest(rows.length, of, sent === undefined ? undefined : { messages: sent.prompt.content, told: at })
    }
  })
  yield* Play.play(messages, played, tools === 0 ? {} : { overhead: tools }, onTurn).pipe(
    Effect.scoped,
    // What a session knows of the time is that of the recording.
    Effect.provideService(Clock.Clock, Time.later(clock, () => waited)),
    Effect.provideService(
      Summarizer.Summarizer,
      summarizer === undefined ? undefined : billed(billing, summarizer, now)
    )
  )
  return { budget, rows, totals: totals(rows, budget) }
})

/**
 * Plays a session under several policies in one world, one after another; what is returned is in their order.
 *
 * @category running
 * @since 0.1.0
 */
export const compare = <E, R, P>(
  recording: Recording,
  policies: ReadonlyArray<Named<E, R, P>>,
  world: World
): Effect.Effect<ReadonlyArray<Result & { readonly policy: string }>, Policy.PolicyError, R> =>
  Effect.forEach(
    policies,
    ({ policy, ...options }) => Effect.map(run(recording, options, world), (result) => ({ policy, ...result }))
  )
