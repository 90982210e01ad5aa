/**
 * What a policy keeps of a recorded session, by what the session itself shows to have been needed, without a model.
 *
 * At each request the view that is sent is looked through for what the recorded answer goes on to use, and for the words of
 * people. Beside the policy stand two controls of the same size: the raw tail of the session, and random entries of it. A
 * policy that is no better than they are keeps nothing by judgement.
 *
 * **Details**
 *
 * An identifier is a path, a symbol, a hash, a quoted string or a number of three digits or more. It counts while it is
 * rare: said in few messages.
 *
 * **Gotchas**
 *
 * What is kept may only be compared at equal cost or equal size of view ({@link atCost}): who keeps everything wins here.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Estimator from "../Estimator.ts"
import type * as Policy from "../Policy.ts"
import * as Text from "../text/text.ts"
import * as Held from "./parts/held.ts"
import * as Identifiers from "./parts/identifiers.ts"
import * as Recorded from "./parts/recorded.ts"
import type * as Retention from "./Retention.ts"
import * as Simulation from "./Simulation.ts"

/**
 * How many of `of` things a view held.
 *
 * @category models
 * @since 0.1.0
 */
export interface Share {
  readonly held: number
  readonly of: number
}

/**
 * What one view after another held.
 *
 * **Details**
 *
 * - `far`: of the identifiers that a recorded answer uses and that were last said more than 20 messages before it, those
 *   that its request had in view. `near`: last said within 20 messages: what is at work.
 * - `edited`: of the files among the far ones that the answer changes. `named`: the same as `far` for what a person names
 *   again. `memory`: at every 25th request, what the agent will use later before anybody says it again.
 * - `bodies`: of the far ones, those that were said by results alone, inside them and not in their first or last lines.
 * - `after`: the same as `far`, after the first compaction of the recording itself, where the agent may only have used what
 *   it had been left; these are in none of the others.
 * - `words`: messages of people that are whole, in thirds of the session by where they were said, over all requests.
 *   `wordsAtEnd`: the same in the last view. Long pastes are no words.
 * - `instructions`: planted ones, verbatim in the last view, by third; see `Instructions`.
 * - `viewTokens`: the size of a view, on average.
 *
 * @category models
 * @since 0.1.0
 */
export interface Figures {
  readonly far: Share
  readonly near: Share
  readonly edited: Share
  readonly named: Share
  readonly memory: Share
  readonly bodies: Share
  readonly after: Share
  readonly words: Thirds
  readonly wordsAtEnd: Thirds
  readonly instructions: Thirds
  readonly viewTokens: number
}

/**
 * A share for each third of a session.
 *
 * @category models
 * @since 0.1.0
 */
export type Thirds = readonly [first: Share, middle: Share, last: Share]

/**
 * A policy beside its controls of the same size.
 *
 * @category models
 * @since 0.1.0
 */
export interface Kept {
  readonly policy: Figures
  readonly tail: Figures
  readonly random: Figures
}

/**
 * The ratio of a share; 1 where there was nothing to hold.
 *
 * @category getters
 * @since 0.1.0
 */
export const ratio = (...shares: ReadonlyArray<Share>): number => {
  const of = shares.reduce((sum, each) => sum + each.of, 0)
  return of === 0 ? 1 : shares.reduce((sum, each) => sum + each.held, 0) / of
}

/** Said within so many messages is near. */
const nearby = 20

/** Said in more messages than this, an identifier is no longer rare. */
const common = 8

/** At every so many requests it is asked what will be needed from memory. */
const memoryEvery = 25

type Tally = { -readonly [Key in keyof Share]: Share[Key] }

type Tallies = {
  readonly [Key in keyof Omit<Figures, "viewTokens">]: Figures[Key] extends Share ? Tally
    : readonly [Tally, Tally, Tally]
}

interface Counter {
  readonly tallies: Tallies
  tokens: number
  requests: number
}

const tally = (): Tally => ({ held: 0, of: 0 })
const thirds = (): readonly [Tally, Tally, Tally] => [tally(), tally(), tally()]

const counter = (): Counter => ({
  tallies: {
    far: tally(),
    near: tally(),
    edited: tally(),
    named: tally(),
    memory: tally(),
    bodies: tally(),
    after: tally(),
    words: thirds(),
    wordsAtEnd: thirds(),
    instructions: thirds()
  },
  tokens: 0,
  requests: 0
})

/**
 * Watches the views that are sent in one session, and counts.
 *
 * @category models
 * @since 0.1.0
 */
export interface Recorder {
  readonly index: Recorded.Index
  readonly counters: { readonly [Key in keyof Kept]: Counter }
  last: Simulation.Sent | undefined
  /** How many messages were known at the request before. */
  told: number
}

/**
 * Reads a session, of which `instructions` were planted.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (messages: ReadonlyArray<Prompt.Message>, options: Recorded.Options): Recorder => ({
  index: Recorded.index(messages, options),
  counters: { policy: counter(), tail: counter(), random: counter() },
  last: undefined,
  told: 0
})

/** The size of a view, in tokens. */
const sizeOf = ({ price }: Recorded.Index, messages: ReadonlyArray<Prompt.Message>): number =>
  messages.reduce((sum, message) => sum + price(message), 0)

const count = (into: Tally, isHeld: boolean): void => {
  into.of++
  if (isHeld) into.held++
}

/** The newest place before `at` where an identifier is said; −1 when there is none. */
const lastBefore = (places: ReadonlyArray<number>, at: number): number => {
  for (let each = places.length - 1; each >= 0; each--) if (places[each]! < at) return places[each]!
  return -1
}

const thirdOf = (at: number, length: number): 0 | 1 | 2 => at < length / 3 ? 0 : at < (2 * length) / 3 ? 1 : 2

/** Whether an identifier was said by results alone before `at`, and only inside them. */
const isInside = (
  { inside }: Recorded.Index,
  identifier: string,
  places: ReadonlyArray<number>,
  at: number
): boolean => {
  const within = inside.get(identifier)
  return within !== undefined && places.every((place) => place >= at || within.has(place))
}

/** Counts what an answer uses. */
const countUsed = (index: Recorded.Index, { tallies }: Counter, held: Held.Held, at: number): void => {
  const answer = index.messages[at]!
  const edited = Identifiers.editedIn(answer)
  for (const each of Identifiers.of(answer)) {
    const places = index.said.get(each) ?? []
    const last = lastBefore(places, at)
    if (last < 0 || places.filter((place) => place < at).length > common) continue
    const isHeld = held.has(each)
    if (at - last <= nearby) count(tallies.near, isHeld)
    else if (at > index.compacted) count(tallies.after, isHeld)
    else {
      count(tallies.far, isHeld)
      if (edited.has(each)) count(tallies.edited, isHeld)
      if (isInside(index, each, places, at)) count(tallies.bodies, isHeld)
    }
  }
}

/** Counts what people name again in the messages that came since the request before. */
const countNamed = (index: Recorded.Index, { tallies }: Counter, held: Held.Held, from: number, told: number): void => {
  for (let at = from; at < told; at++) {
    if (!Recorded.isPersons(index.messages[at]!) || at > index.compacted) continue
    for (const each of Identifiers.of(index.messages[at]!)) {
      const places = index.said.get(each) ?? []
      const last = lastBefore(places, at)
      if (last < 0 || at - last <= nearby || places.filter((place) => place < at).length > common) continue
      count(tallies.named, held.has(each))
    }
  }
}

/** Counts what the agent will use later before anybody says it again. */
const countMemory = (index: Recorded.Index, { tallies }: Counter, held: Held.Held, told: number): void => {
  if (told > index.compacted) return
  for (const [each, places] of index.said) {
    const next = places.find((place) => place >= told)
    const last = lastBefore(places, told)
    if (next === undefined || last < 0 || told - last <= nearby || next > index.compacted) continue
    if (places.filter((place) => place < told).length > common) continue
    if (index.messages[next]!.role === "assistant") count(tallies.memory, held.has(each))
  }
}

const countLines = (
  lines: ReadonlyArray<Recorded.Line>,
  into: readonly [Tally, Tally, Tally],
  held: Held.Held,
  told: number,
  length: number
): void => {
  for (const { at, text } of lines) if (at < told) count(into[thirdOf(at, length)], held.holds(text, at))
}

/**
 * Takes in a view that was sent when `told` messages were known.
 *
 * @category running
 * @since 0.1.0
 */
export const see = (self: Recorder, sent: Simulation.Sent): void => {
  const { counters, index } = self
  const { messages, told } = sent
  const tokens = sizeOf(index, messages)
  // What a person names is looked for in what was said before it, so in a view without that message itself.
  const fresh = new Set(
    index.messages.slice(self.told, told).filter(Recorded.isPersons).map((each) => Text.ofMessage(each))
  )
  const before = messages.filter((each) => each.role !== "user" || !fresh.has(Text.ofMessage(each)))
  const views = {
    policy: [Held.ofView(messages, tokens), Held.ofView(before, tokens)],
    tail: [Held.ofTail(index, told, tokens), Held.ofTail(index, self.told, tokens)],
    random: [Held.ofRandom(index, told, tokens), Held.ofRandom(index, self.told, tokens)]
  } as const
  for (const name of ["policy", "tail", "random"] as const) {
    const [held, old] = views[name]
    const into = counters[name]
    into.requests++
    into.tokens += held.tokens
    countUsed(index, into, held, told)
    countNamed(index, into, old, self.told, told)
    countLines(index.people, into.tallies.words, held, told, index.messages.length)
    if (into.requests % memoryEvery === 0) countMemory(index, into, held, told)
  }
  self.last = sent
  self.told = told
}

/**
 * What was counted, with the last view looked through for what it still holds.
 *
 * @category getters
 * @since 0.1.0
 */
export const figures = (self: Recorder): Kept => {
  const { counters, index, last } = self
  const length = index.messages.length
  const tokens = sizeOf(index, last?.messages ?? [])
  const ends: { readonly [Key in keyof Kept]: Held.Held } = {
    policy: Held.ofView(last?.messages ?? [], tokens),
    tail: Held.ofTail(index, self.told, tokens),
    random: Held.ofRandom(index, self.told, tokens)
  }
  const of = (name: keyof Kept): Figures => {
    const { requests, tallies, tokens } = counters[name]
    const wordsAtEnd = thirds()
    const instructions = thirds()
    countLines(index.people, wordsAtEnd, ends[name], self.told, length)
    countLines(index.instructions, instructions, ends[name], self.told, length)
    return { ...tallies, wordsAtEnd, instructions, viewTokens: requests === 0 ? 0 : tokens / requests }
  }
  return { policy: of("policy"), tail: of("tail"), random: of("random") }
}

/**
 * The positions at which people state planted facts: these are no words of people.
 *
 * @category getters
 * @since 0.1.0
 */
export const plantedBy = (probes: ReadonlyArray<Retention.Probe> = []): ReadonlyArray<number> =>
  probes.flatMap((probe) => probe.source === "person" ? probe.at : [])

/**
 * Plays a session under a policy, and says what it cost and what it kept, beside its controls.
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fnUntraced(function*<E = never, R = never, P = Policy.PassError>(
  recording: Simulation.Recording & { readonly instructions?: ReadonlyArray<Recorded.Line> },
  policy: Policy.Options<E, R, P>,
  world: Simulation.World
): Effect.fn.Return<Simulation.Result & { readonly kept: Kept }, Policy.PolicyError, R> {
  const { price } = yield* Estimator.Estimator
  const { instructions } = recording
  const recorder = make(recording.messages, {
    price,
    planted: plantedBy(world.probes),
    ...(instructions === undefined ? {} : { instructions })
  })
  const result = yield* Simulation.run(recording, policy, {
    ...world,
    onRequest: (request, of, sent) =>
      Effect.andThen(
        Effect.sync(() => {
          if (sent !== undefined) see(recorder, sent)
        }),
        world.onRequest?.(request, of, sent) ?? Effect.void
      )
  })
  return { ...result, kept: figures(recorder) }
})

/** How near two costs must be to be equal, and how often a budget is tried. */
const costTolerance = 0.01
const costRounds = 10

/**
 * The budget (`maxTokens`, in tokens) at which something costs `cost`, to a hundredth, between `low` and `high`; of the
 * budgets that were tried the one whose cost is nearest.
 *
 * @category running
 * @since 0.1.0
 */
export const atCost = Effect.fnUntraced(function*<A, E, R>(
  at: (maxTokens: number) => Effect.Effect<A, E, R>,
  options: {
    readonly cost: number
    readonly of: (played: A) => number
    readonly low: number
    readonly high: number
  }
): Effect.fn.Return<{ readonly maxTokens: number; readonly played: A }, E, R> {
  let { high, low } = options
  let best: { readonly maxTokens: number; readonly played: A } | undefined
  const miss = (played: A): number => Math.abs(options.of(played) / options.cost - 1)
  for (let round = 0; round < costRounds; round++) {
    const maxTokens = Math.round((low + high) / 2)
    const played = yield* at(maxTokens)
    if (best === undefined || miss(played) < miss(best.played)) best = { maxTokens, played }
    if (miss(best.played) <= costTolerance || high - low < 2) break
    if (options.of(played) > options.cost) high = maxTokens
    else low = maxTokens
  }
  return best!
})
