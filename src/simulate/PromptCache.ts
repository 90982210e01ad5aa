/**
 * A provider's prompt cache, as far as the bill shows it: what of a request is read from it, written to it, and neither.
 *
 * A cache knows prefixes of requests by their content, block by block: a block is a tool definition, a system prompt, or a
 * part of a message. Its rules are data; {@link anthropic}, {@link anthropicHour}, {@link openai} and {@link none} are
 * those of providers.
 *
 * **Details**
 *
 * With *explicit* breakpoints an entry ends at a breakpoint and nowhere else. A later request reads the longest entry that
 * it begins with, if the entry ends within the look-back of one of its own breakpoints: a repeat and a pure append hit, a
 * strict prefix of what was cached misses, and an edit misses from there on. With *automatic* caching every prefix of an
 * earlier request can be read, in steps.
 *
 * What was used is kept for its whole life from then on; time comes from `Clock`. An entry that has been idle for exactly
 * its life is gone.
 *
 * **Gotchas**
 *
 * Real providers also lose entries before their time (a request that is routed to another machine), and share the head of
 * requests among sessions. Neither is simulated.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Blocks from "./parts/blocks.ts"

/**
 * Rules of a cache with explicit breakpoints.
 *
 * **Details**
 *
 * - `tools`, `system`: whether there is a breakpoint behind the tools and behind the system prompt. `turns`: how many of
 *   the newest user turns end with one; consecutive user and tool messages are one turn. Providers allow four in all.
 * - `lookBack`: how many blocks before a breakpoint are tried, the one at the breakpoint included.
 * - `minimum`: a shorter prefix is not cached, in tokens. `life`: how long an entry is kept since it was last used, in
 *   milliseconds.
 *
 * @category models
 * @since 0.1.0
 */
export interface Explicit {
  readonly _tag: "explicit"
  readonly tools: boolean
  readonly system: boolean
  readonly turns: number
  readonly lookBack: number
  readonly minimum: number
  readonly life: number
}

/**
 * Rules of a cache that needs no breakpoints: prefixes from `minimum` tokens on are read in multiples of `step` tokens,
 * for `life` milliseconds since they were last sent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Automatic {
  readonly _tag: "automatic"
  readonly minimum: number
  readonly step: number
  readonly life: number
}

/**
 * No cache.
 *
 * @category models
 * @since 0.1.0
 */
export interface None {
  readonly _tag: "none"
}

/**
 * @category models
 * @since 0.1.0
 */
export type Rules = Explicit | Automatic | None

const minute = 60_000

/**
 * Anthropic's rules, with the four breakpoints where agents place them: behind the tools, behind the system prompt, and
 * behind the last two user turns.
 *
 * @see https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 * @category rules
 * @since 0.1.0
 */
export const anthropic: Explicit = {
  _tag: "explicit",
  tools: true,
  system: true,
  turns: 2,
  lookBack: 20,
  minimum: 1_024,
  life: 5 * minute
}

/**
 * {@link anthropic} with entries that are kept for an hour; writing them costs more, see `Price`.
 *
 * @category rules
 * @since 0.1.0
 */
export const anthropicHour: Explicit = { ...anthropic, life: 60 * minute }

/**
 * OpenAI's rules. Entries are cleared after 5 to 10 minutes without use; recorded bills agree best with 10.
 *
 * @see https://developers.openai.com/api/docs/guides/prompt-caching
 * @category rules
 * @since 0.1.0
 */
export const openai: Automatic = { _tag: "automatic", minimum: 1_024, step: 128, life: 10 * minute }

/**
 * A provider without a cache.
 *
 * @category rules
 * @since 0.1.0
 */
export const none: None = { _tag: "none" }

/**
 * A request.
 *
 * **Details**
 *
 * - `prices`: of each message, in tokens. `stableLength`: how many messages are no ephemeral tail; breakpoints are only
 *   placed among them.
 * - `tools`: what stands before the messages, the definitions of tools and the like, in tokens; 0 when left out. Two
 *   requests with the same number have the same tools.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly prices: ReadonlyArray<number>
  readonly stableLength: number
  readonly tools?: number
}

/**
 * What became of the tokens of a request: each is in one bucket. `written` are new in the cache, `fresh` in none.
 *
 * @category models
 * @since 0.1.0
 */
export interface Buckets {
  readonly read: number
  readonly written: number
  readonly fresh: number
}

/** A stretch of requests each of which extends the one before: they are used together, so one time stands for all. */
interface Line {
  usedAt: number
}

/** Cached prefixes, and the request before, laid out by blocks: the next one shares most of it. */
interface State {
  readonly entries: Map<number, Line>
  readonly messages: Array<Prompt.Message>
  readonly prices: Array<number>
  /** By message: where its blocks end. By block: the prefix up to its end, and the tokens of that. */
  readonly ends: Array<number>
  readonly prefixes: Array<number>
  readonly tokens: Array<number>
  tools: number
  stableLength: number
  line: Line
}

/**
 * A cache and what it holds. It changes with each request that is sent.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptCache {
  readonly rules: Rules
  /** @internal */
  readonly state: State
}

/**
 * Makes an empty cache.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (rules: Rules): PromptCache => ({
  rules,
  state: {
    entries: new Map(),
    messages: [],
    prices: [],
    ends: [],
    prefixes: [],
    tokens: [],
    tools: 0,
    stableLength: 0,
    line: { usedAt: 0 }
  }
})

/** Lays out a request over the one before; returns how many of its messages were there already. */
const layOut = (state: State, request: Request): number => {
  const { ends, messages, prefixes, prices, tokens } = state
  const tools = request.tools ?? 0
  const head = tools === 0 ? 0 : 1
  let shared = 0
  if (tools === state.tools) {
    while (
      shared < messages.length && shared < request.messages.length
      && messages[shared] === request.messages[shared] && prices[shared] === request.prices[shared]
    ) shared++
  }
  state.tools = tools
  messages.length = shared
  prices.length = shared
  ends.length = shared
  const kept = shared === 0 ? 0 : ends[shared - 1]!
  prefixes.length = kept
  tokens.length = kept
  if (kept === 0 && head === 1) {
    prefixes.push(Blocks.hash(`tools:${tools}`))
    tokens.push(tools)
  }
  for (let at = shared; at < request.messages.length; at++) {
    const message = request.messages[at]!
    const price = request.prices[at]!
    const { hashes, shares } = Blocks.of(message)
    const before = tokens.at(-1) ?? 0
    let share = 0
    for (let block = 0; block < hashes.length; block++) {
      share += shares[block]!
      prefixes.push(Blocks.extend(prefixes.at(-1) ?? 0, hashes[block]!))
      tokens.push(block === hashes.length - 1 ? before + price : before + Math.floor(price * Math.min(1, share)))
    }
    messages.push(message)
    prices.push(price)
    ends.push(prefixes.length)
  }
  return shared
}

const totalOf = (state: State): number => state.tokens.at(-1) ?? 0

const isUserTurn = (message: Prompt.Message): boolean => message.role === "user" || message.role === "tool"

/** The last block before each breakpoint, the newest first; what is too short for the cache has none. */
const breakpoints = (rules: Explicit, state: State, stableLength: number): ReadonlyArray<number> => {
  const { ends, messages } = state
  const blocks: Array<number> = []
  let turns = rules.turns
  for (let at = stableLength - 1; at >= 0 && turns > 0; at--) {
    if (!isUserTurn(messages[at]!)) continue
    if (blocks.length === 0 || !isUserTurn(messages[at + 1]!)) {
      blocks.push(ends[at]! - 1)
      turns--
    }
  }
  let system = 0
  while (system < stableLength && messages[system]!.role === "system") system++
  if (rules.system && system > 0) blocks.push(ends[system - 1]! - 1)
  if (rules.tools && state.tools > 0) blocks.push(0)
  return blocks.filter((block) => state.tokens[block]! >= rules.minimum)
}

const isLive = (line: Line | undefined, life: number, at: number): boolean =>
  line !== undefined && at - line.usedAt < life

/** The longest entry that a request begins with: its last block, or -1. The newest breakpoint finds it, if any does. */
const hitOf = (rules: Explicit, state: State, points: ReadonlyArray<number>, at: number): number => {
  for (const point of points) {
    for (let block = point; block >= 0 && block > point - rules.lookBack; block--) {
      if (isLive(state.entries.get(state.prefixes[block]!), rules.life, at)) return block
    }
  }
  return -1
}

const sendExplicit = (rules: Explicit, state: State, request: Request, at: number): Buckets => {
  layOut(state, request)
  const { entries, prefixes, tokens } = state
  const points = breakpoints(rules, state, request.stableLength)
  const hit = hitOf(rules, state, points, at)
  const read = hit < 0 ? 0 : tokens[hit]!
  const end = points[0] === undefined ? 0 : tokens[points[0]]!
  if (hit >= 0) entries.set(prefixes[hit]!, { usedAt: at })
  for (const point of points) entries.set(prefixes[point]!, { usedAt: at })
  const written = Math.max(0, end - read)
  return { read, written, fresh: totalOf(state) - read - written }
}

const wholeSteps = (rules: Automatic, tokens: number): number =>
  tokens < rules.minimum ? 0 : Math.floor(tokens / rules.step) * rules.step

/** What of a request was sent before, in whole steps. */
const sharedOf = (rules: Automatic, { entries, prefixes, tokens }: State, at: number): number => {
  let hit = prefixes.length - 1
  while (hit >= 0 && !isLive(entries.get(prefixes[hit]!), rules.life, at)) hit--
  return hit < 0 ? 0 : wholeSteps(rules, tokens[hit]!)
}

const sendAutomatic = (rules: Automatic, state: State, request: Request, at: number): Buckets => {
  const isExtension = layOut(state, request) >= state.stableLength && state.stableLength > 0
  const { ends, entries, prefixes } = state
  const read = sharedOf(rules, state, at)
  const written = wholeSteps(rules, totalOf(state)) - read
  // What extends the request before joins its line; anything else is a new line, to which all of it now belongs.
  if (!isExtension) state.line = { usedAt: at }
  state.line.usedAt = at
  const first = isExtension ? ends[state.stableLength - 1]! : 0
  for (let block = first; block < prefixes.length; block++) entries.set(prefixes[block]!, state.line)
  state.stableLength = request.stableLength
  return { read, written, fresh: totalOf(state) - read - written }
}

/**
 * Sends a request at a time in milliseconds: says what becomes of its tokens, and remembers it.
 *
 * @category running
 * @since 0.1.0
 */
export const sendAt = (self: PromptCache, request: Request, at: number): Buckets => {
  const { rules, state } = self
  switch (rules._tag) {
    case "explicit":
      return sendExplicit(rules, state, request, at)
    case "automatic":
      return sendAutomatic(rules, state, request, at)
    case "none":
      return { read: 0, written: 0, fresh: request.prices.reduce((sum, price) => sum + price, request.tools ?? 0) }
  }
}

/**
 * What a request would read at a time in milliseconds, in tokens, if it were sent and nothing of it were kept.
 *
 * @category running
 * @since 0.1.0
 */
export const readAt = (self: PromptCache, request: Request, at: number): number => {
  const { rules, state } = self
  if (rules._tag === "none") return 0
  // Laid out apart, since a request that leaves nothing behind is not the one before of the next.
  const apart: State = { ...make(rules).state, entries: state.entries }
  layOut(apart, request)
  if (rules._tag === "automatic") return sharedOf(rules, apart, at)
  const hit = hitOf(rules, apart, breakpoints(rules, apart, request.stableLength), at)
  return hit < 0 ? 0 : apart.tokens[hit]!
}

/**
 * Sends a request now; see {@link sendAt}.
 *
 * @category running
 * @since 0.1.0
 */
export const send = (self: PromptCache, request: Request): Effect.Effect<Buckets> =>
  Effect.map(Clock.currentTimeMillis, (at) => sendAt(self, request, at))
