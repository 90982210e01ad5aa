/**
 * The cheapest schedule of boundaries, found with hindsight: what no policy that respects the window can beat, in a model
 * that is simple enough to be solved.
 *
 * **The model**
 *
 * - A session is a head that every request begins with, and one segment a request: what it adds to the one before. A
 *   segment costs `tokens`, and `floor` once it is shortened (0 where it can be dropped).
 * - A cut at segment `c` shortens every segment before `c`; the rest is whole. Shortened stays shortened, so cuts only
 *   grow; each growth is a boundary. The segment that a request adds is whole in that request.
 * - A request fits when its view, `head + shortened + whole`, is at most `limit`. Where nothing fits, the smallest view is
 *   sent.
 * - A boundary leaves at least `retain` tokens, or all that fits: without that, dropping everything at every request would
 *   be the cheapest schedule, and one that no agent could work under.
 * - A request that only extends the one before reads all of that and writes its segment. At a boundary it reads what the
 *   cut did not change: with explicit breakpoints the head, with automatic caching also the segments that were short
 *   before, and nothing without a cache; the rest is written.
 * - No entry of the cache expires, minimum lengths are ignored, and the output, which is the same under all schedules, is
 *   left out.
 *
 * The schedule is found by dynamic programming over requests and cuts, in time and space quadratic in the requests.
 *
 * **Gotchas**
 *
 * A real ladder shortens some results of a segment and leaves others; it may beat this model where a few results hold most
 * of the tokens.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Session from "../format/Session.ts"
import * as Price from "./Price.ts"
import type * as PromptCache from "./PromptCache.ts"

/**
 * What one request adds to the one before, in tokens: whole, and once it is shortened.
 *
 * @category models
 * @since 0.1.0
 */
export interface Segment {
  readonly tokens: number
  readonly floor: number
}

/**
 * A session to be scheduled; tokens everywhere.
 *
 * @category models
 * @since 0.1.0
 */
export interface Problem {
  readonly head: number
  readonly segments: ReadonlyArray<Segment>
  readonly limit: number
  readonly retain: number
  readonly rules: PromptCache.Rules
  readonly price: Price.Price
}

/**
 * A schedule.
 *
 * **Details**
 *
 * - `cost`: of the input of all requests, in dollars. `views`: what each request occupies, in tokens.
 * - `boundaries`: the requests, from 1, at which the cut grows, and the first segment that is whole from then on, from 0.
 * - `overLimit`: how many requests do not fit whatever is done.
 *
 * @category models
 * @since 0.1.0
 */
export interface Schedule {
  readonly cost: number
  readonly views: ReadonlyArray<number>
  readonly boundaries: ReadonlyArray<{ readonly request: number; readonly cut: number }>
  readonly overLimit: number
}

/** Sums of the first n values. */
const sums = (values: ReadonlyArray<number>): Float64Array => {
  const out = new Float64Array(values.length + 1)
  for (let at = 0; at < values.length; at++) out[at + 1] = out[at]! + values[at]!
  return out
}

/**
 * Finds the cheapest schedule.
 *
 * @category running
 * @since 0.1.0
 */
export const solve = (problem: Problem): Schedule => {
  const { head, limit, retain, rules, segments } = problem
  const price = Price.under(problem.price, rules)
  const readPrice = rules._tag === "none" ? price.input : price.cacheRead
  const writePrice = rules._tag === "none" ? price.input : price.cacheWrite
  const requests = segments.length
  const whole = sums(segments.map((segment) => segment.tokens))
  const short = sums(segments.map((segment) => segment.floor))
  /** The view of a request under a cut. */
  const view = (request: number, cut: number): number => head + short[cut]! + whole[request + 1]! - whole[cut]!
  /** What a boundary that replaces a cut reads. */
  const kept = (cut: number): number =>
    rules._tag === "none" ? 0 : rules._tag === "explicit" ? head : head + short[cut]!

  // costs[cut]: the cheapest way to the request before, if it was sent under this cut. from[request][cut]: the cut before.
  let costs = new Float64Array(requests).fill(Infinity)
  const from: Array<Int32Array> = []
  let overLimit = 0
  for (let request = 0; request < requests; request++) {
    const next = new Float64Array(requests).fill(Infinity)
    const before = new Int32Array(request + 1)
    // The smallest cut that fits; cuts beyond it need leave no more than they must.
    let first = 0
    while (first < request && view(request, first) > limit) first++
    if (view(request, first) > limit) overLimit++
    let best = Infinity
    let bestCut = -1
    for (let cut = 0; cut <= request; cut++) {
      const tokens = view(request, cut)
      const previous = request === 0 ? 0 : costs[cut]!
      if (cut >= first && (request === 0 || previous < Infinity)) {
        const read = request === 0 ? 0 : view(request - 1, cut)
        next[cut] = previous + read * readPrice + (tokens - read) * writePrice
        before[cut] = cut
      }
      if (cut >= first && bestCut >= 0 && (cut === first || tokens >= retain)) {
        const boundary = best + tokens * writePrice
        if (boundary < next[cut]!) {
          next[cut] = boundary
          before[cut] = bestCut
        }
      }
      // Every smaller cut is behind us: what it would read is taken off its cost, so that the least of them is one number.
      const reach = previous - kept(cut) * (writePrice - readPrice)
      if (request > 0 && reach < best) {
        best = reach
        bestCut = cut
      }
    }
    costs = next
    from.push(before)
  }
  return trace(problem, costs, from, view, overLimit)
}

const trace = (
  { segments }: Problem,
  costs: Float64Array,
  from: ReadonlyArray<Int32Array>,
  view: (request: number, cut: number) => number,
  overLimit: number
): Schedule => {
  if (segments.length === 0) return { cost: 0, views: [], boundaries: [], overLimit }
  let cut = costs.indexOf(costs.reduce((least, cost) => Math.min(least, cost), Infinity))
  const cost = costs[cut]! / 1_000_000
  const views: Array<number> = []
  const boundaries: Array<{ readonly request: number; readonly cut: number }> = []
  for (let request = segments.length - 1; request >= 0; request--) {
    views.push(view(request, cut))
    const before = from[request]![cut]!
    if (before !== cut) boundaries.push({ request: request + 1, cut })
    cut = before
  }
  return { cost, views: views.reverse(), boundaries: boundaries.reverse(), overLimit }
}

/**
 * The head and the segments of a recorded session, one request before each message of the assistant: the head is what the
 * first request sends. `floor` says what is left of a message once it is shortened, in tokens; without it messages are
 * dropped.
 *
 * @category constructors
 * @since 0.1.0
 */
export const segmentsOf = (
  messages: ReadonlyArray<Prompt.Message>,
  price: (message: Prompt.Message) => number,
  floor: (message: Prompt.Message) => number = () => 0
): Pick<Problem, "head" | "segments"> => {
  const segments: Array<Segment> = []
  let head = 0
  let tokens = 0
  let least = 0
  messages.forEach((message, at) => {
    if (Session.isAnswer(message) && at > 0) {
      if (segments.length === 0) head = tokens
      segments.push(segments.length === 0 ? { tokens: 0, floor: 0 } : { tokens, floor: least })
      tokens = 0
      least = 0
    }
    tokens += price(message)
    least += floor(message)
  })
  return { head, segments }
}
