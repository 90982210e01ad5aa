/** What the cache simulator predicts for a recorded session, against what its provider billed. */
import * as Estimator from "effect-compaction/Estimator"
import type * as Session from "effect-compaction/format/Session"
import * as PromptCache from "effect-compaction/simulate/PromptCache"

/** One request: what was billed, what was predicted to be read, and the time since the one before, in seconds. */
export interface Pair {
  readonly total: number
  readonly billed: number
  readonly predicted: number
  readonly pause: number
}

interface Time {
  readonly read: number
  readonly rest: number
  readonly at: number
}

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const numberAt = (value: { readonly [key: string]: unknown }, key: string): number => Number(value[key] ?? 0)

/** The bills of a file with their times, which a session does not hold; those of Claude Code or of Codex. */
const timesOf = (text: string): ReadonlyArray<Time> => {
  const times: Array<Time> = []
  const seen = new Map<unknown, number>()
  for (const line of text.split("\n")) {
    let record: unknown
    try {
      record = JSON.parse(line)
    } catch {
      continue
    }
    if (!isObject(record)) continue
    const at = Date.parse(String(record.timestamp))
    if (record.type === "assistant" && isObject(record.message) && isObject(record.message.usage)) {
      const { id, usage } = record.message
      const time = {
        read: numberAt(usage, "cache_read_input_tokens"),
        rest: numberAt(usage, "input_tokens") + numberAt(usage, "cache_creation_input_tokens"),
        at
      }
      const before = seen.get(id)
      if (before === undefined) seen.set(id, times.push(time) - 1)
      else times[before] = { ...time, at: times[before]!.at }
    } else if (isObject(record.payload) && isObject(record.payload.info)) {
      const { last_token_usage: last, total_token_usage: total } = record.payload.info
      if (!isObject(last) || seen.has(JSON.stringify(total))) continue
      seen.set(JSON.stringify(total), 0)
      const read = numberAt(last, "cached_input_tokens")
      times.push({ read, rest: numberAt(last, "input_tokens") - read, at })
    }
  }
  return times
}

/** How long entries live, by the tokens that were written for either time. */
const rulesOf = (session: Session.Session, text: string): PromptCache.Rules => {
  if (session.format !== "claude-code") return PromptCache.openai
  const sum = (key: string) =>
    Array.from(text.matchAll(new RegExp(`"${key}":(\\d+)`, "g"))).reduce(
      (total, [, tokens]) => total + Number(tokens),
      0
    )
  return sum("ephemeral_1h_input_tokens") > sum("ephemeral_5m_input_tokens")
    ? PromptCache.anthropicHour
    : PromptCache.anthropic
}

/** An agent's request extends the one before; one that was billed so much less was shortened by the agent itself. */
const shortened = 0.9

/**
 * Predicts what each billed request reads.
 *
 * Sizes are those of the bill: what a request was billed beyond the one before is the size of the messages between them,
 * and what the first was billed beyond its messages is the head that the file does not hold. Where the agent shortened
 * its session, all but that head is taken to be new. So only the behaviour of the cache is predicted: what hits, where it
 * ends, what has expired.
 */
export const predict = (session: Session.Session, text: string): ReadonlyArray<Pair> => {
  const times = timesOf(text)
  const cache = PromptCache.make(rulesOf(session, text))
  const sizes: Array<number> = []
  const pairs: Array<Pair> = []
  let head = 0
  let from = 0
  let next = 0
  let last = 0
  let time = 0
  let lastAt = Number.NaN
  for (const [index, { cacheRead = 0, cacheWrite = 0, fresh = 0 }] of session.usage) {
    const total = fresh + cacheRead + cacheWrite
    const added = session.messages.slice(next, index).map(Estimator.chars.price)
    const price = added.reduce((sum, tokens) => sum + tokens, 0)
    if (pairs.length === 0) head = Math.max(0, total - price)
    if (total < shortened * last) {
      // Nothing of what was before is known to be there still.
      sizes.length = 0
      from = next
      last = Math.min(head, total)
    }
    const grown = Math.max(0, total - Math.max(last, pairs.length === 0 ? head : 0))
    let left = grown
    added.forEach((tokens, at) => {
      const size = at === added.length - 1 ? left : Math.min(left, Math.round(price === 0 ? 0 : grown * tokens / price))
      sizes.push(size)
      left -= size
    })
    next = index
    while (time < times.length && (times[time]!.read !== cacheRead || times[time]!.rest !== fresh + cacheWrite)) time++
    const at = times[time]?.at ?? lastAt
    const messages = session.messages.slice(from, index)
    const { read } = PromptCache.sendAt(cache, {
      messages,
      prices: sizes,
      stableLength: messages.length,
      tools: head
    }, at)
    pairs.push({ total, billed: cacheRead, predicted: Math.min(read, total), pause: (at - lastAt) / 1_000 })
    last = total
    lastAt = at
  }
  return pairs
}

/**
 * The agreement over the requests behind the first: the correlation of predicted and billed reads, and by how much they
 * differ, as a share of the input. `less`, `more`: requests that were billed a tenth of their input less, or more, than
 * predicted.
 */
export const agreement = (pairs: ReadonlyArray<Pair>) => {
  const rest = pairs.slice(1)
  const mean = (value: (pair: Pair) => number) => rest.reduce((sum, pair) => sum + value(pair), 0) / rest.length
  const [x, y] = [mean((pair) => pair.predicted), mean((pair) => pair.billed)]
  const covariance = mean((pair) => (pair.predicted - x) * (pair.billed - y))
  const spread = Math.sqrt(mean((pair) => (pair.predicted - x) ** 2) * mean((pair) => (pair.billed - y) ** 2))
  const off = (pair: Pair) => (pair.billed - pair.predicted) / pair.total
  const sorted = rest.map((pair) => Math.abs(off(pair))).sort((a, b) => a - b)
  return {
    requests: rest.length,
    correlation: covariance / spread,
    meanError: mean((pair) => Math.abs(off(pair))),
    medianError: sorted[Math.floor(sorted.length / 2)] ?? 0,
    ofBilled: x / y,
    less: rest.filter((pair) => off(pair) < -0.1).length,
    more: rest.filter((pair) => off(pair) > 0.1).length
  }
}
