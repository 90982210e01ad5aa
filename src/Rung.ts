/**
 * The steps of a ladder.
 *
 * A rung is data: a name and either a proposer of edits or a stage. A proposer yields candidate decisions over a draft,
 * in order; the interpreter decides when to stop, prices each candidate, and drops those that save nothing, so none of
 * that leaks into rungs. Every built-in rung is a proposer. A custom rung may be a stage of its own, with its own errors
 * and services; it runs at most once a pass.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Decision from "./Decision.ts"
import * as Alter from "./ladder/alter.ts"
import * as Climb from "./ladder/climb.ts"
import type * as DraftInternal from "./ladder/draft.ts"
import * as Protection from "./ladder/protection.ts"
import type * as Stage from "./Stage.ts"
import * as Text from "./text/text.ts"
import * as ToolResult from "./ToolResult.ts"
import type * as Transcript from "./Transcript.ts"
import * as Reasoning from "./wire/reasoning.ts"

/**
 * The view that a proposer reads while it is being changed. Items that were removed are `undefined`.
 *
 * @category models
 * @since 0.1.0
 */
export type Draft = DraftInternal.Draft

/**
 * Yields candidate decisions over a draft, in the order in which they are to be tried. The draft changes under it: when
 * it goes on, the candidate before was applied or dropped.
 *
 * @category models
 * @since 0.1.0
 */
export interface Propose {
  (draft: Draft): Iterable<Decision.Edit>
}

/**
 * A proposer, and whether all that it proposes is applied, or only as much as it takes to reach the target.
 *
 * @category models
 * @since 0.1.0
 */
export interface Proposer {
  readonly _tag: "propose"
  readonly propose: Propose
  readonly isWhole: boolean
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Rung<out E = never, out R = never> {
  readonly name: string
  readonly run: Proposer | { readonly _tag: "stage"; readonly stage: Stage.Stage<E, R> }
}

/**
 * @category utility types
 * @since 0.1.0
 */
export type Any = Rung<unknown, unknown>

/**
 * @category utility types
 * @since 0.1.0
 */
export type Error<R> = R extends Rung<infer E, infer _R> ? E : never

/**
 * @category utility types
 * @since 0.1.0
 */
export type Services<R> = R extends Rung<infer _E, infer S> ? S : never

/**
 * Makes a rung of a stage.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E, R>(name: string, stage: Stage.Stage<E, R>): Rung<E, R> => ({
  name,
  run: { _tag: "stage", stage }
})

/**
 * Makes a rung of a proposer. With `isWhole` it is not stopped at the target: once begun, all of it is applied.
 *
 * @category constructors
 * @since 0.1.0
 */
export const propose = (name: string, propose: Propose, options: { readonly isWhole?: boolean } = {}): Rung => ({
  name,
  run: { _tag: "propose", propose, isWhole: options.isWhole ?? false }
})

/**
 * Runs a rung alone: until the view is at most the target of the budget, or the rung has nothing more to propose.
 *
 * @category running
 * @since 0.1.0
 */
export const stage = <E, R>(self: Rung<E, R>): Stage.Stage<E, R> => {
  const climb = Climb.stage([self])
  return (pass) =>
    Effect.map(climb(pass, { price: pass.sizes.target, entries: Infinity }), (climbed) => ({
      ...pass,
      view: climbed.view,
      report: { ...pass.report, level: climbed.level === 0 ? pass.report.level : climbed.level }
    }))
}

/**
 * Truncates the oldest results of tools: the first `ceil(fraction × n)` of the `n` results in the view, oldest first.
 *
 * **Details**
 *
 * The last `protectedToolResults` results, pinned entries, exempt tools, and results that are short or truncated already
 * stay as they are. Neither recency nor a running call keeps a result from being truncated.
 *
 * @category constructors
 * @since 0.1.0
 */
export const truncateToolResults = (options: { readonly fraction: number }): Rung =>
  propose(`truncate-${Math.round(options.fraction * 100)}`, function*(draft) {
    const results: Array<number> = []
    for (let at = 0; at < draft.items.length; at++) if (draft.items[at]?.entry?.kind === "result") results.push(at)
    const last = new Set(Protection.lastResults(draft))
    const candidates = Math.ceil(options.fraction * results.length)
    for (let n = 0; n < candidates; n++) {
      const at = results[n]!
      if (last.has(at)) continue
      const decision = truncation(draft, draft.items[at]?.entry)
      if (decision !== undefined) yield decision
    }
  })

/** The decision to truncate a result, unless it is pinned, exempt, or short enough. */
const truncation = (draft: Draft, entry: Transcript.Entry | undefined): Decision.Truncate | undefined => {
  if (entry === undefined || entry.pinned) return undefined
  const cut = ToolResult.cutOf(draft.settings, draft.transcript, entry, draft.locate)
  return cut === undefined ? undefined : { _tag: "Truncate", seq: entry.seq, at: draft.at, ...cut }
}

/** Whole groups and single entries, oldest first, none of whose members is held; humans are no candidates. */
function* removals(draft: Draft, protection: Protection.Protection): Generator<Decision.Remove> {
  const { items } = draft
  for (let at = 0; at < items.length; at++) {
    const entry = items[at]?.entry
    if (entry === undefined || entry.role === "system" || entry.human) continue
    // A group stands together, its calling entry first.
    let held = protection.held[at] === 1
    const seqs = [entry.seq]
    if (entry.calls.length > 0) {
      while (at + 1 < items.length && items[at + 1]?.group === entry.seq) {
        at++
        const member = items[at]!
        held ||= protection.held[at] === 1
        if (member.seq >= 0) seqs.push(member.seq)
      }
    }
    if (!held) yield { _tag: "Remove", seqs, at: draft.at }
  }
}

/** A stub keeps this many code units; a text no longer than `stubMinimum` is not worth one. */
const stubLength = 50
const stubMinimum = 80

const stub = (draft: Draft, entry: Transcript.Entry): Decision.Stub => ({
  _tag: "Stub",
  seq: entry.seq,
  at: draft.at,
  k: stubLength
})

function* stubs(draft: Draft, protection: Protection.Protection): Generator<Decision.Stub> {
  for (let at = 0; at < draft.items.length; at++) {
    const entry = draft.items[at]?.entry
    if (entry === undefined || !entry.human || protection.held[at] === 1 || entry.length <= stubMinimum) continue
    if (entry.seq !== protection.firstHuman && entry.seq !== protection.lastHuman) yield stub(draft, entry)
  }
}

function* removeAndStub(draft: Draft, relax: number): Generator<Decision.Edit> {
  const protection = Protection.make(draft, relax)
  yield* removals(draft, protection)
  yield* stubs(draft, protection)
}

/**
 * Removes whole units, oldest first: a call with its results, or a single entry; then stubs long human messages.
 *
 * **Details**
 *
 * A unit is kept when one of its members is protected: recent (`protectedRecent × relax` of the entries, from the end),
 * one of the last results, in a group with a running call, or pinned. The first and the last human message are never
 * touched here, and no human message is removed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const remove = (options: { readonly relax: number }): Rung =>
  propose(options.relax === 1 ? "remove" : `remove-${options.relax}`, (draft) => removeAndStub(draft, options.relax))

/**
 * Stubs the first human message unless it is also the last, then removes human messages that are stubbed, or too short
 * to be, oldest first and outside the recent ones; never the first, the last or a pinned one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const lastResort = (options: { readonly relax: number }): Rung =>
  propose("last-resort", function*(draft) {
    const protection = Protection.make(draft, options.relax)
    const { firstHuman, lastHuman, recent } = protection
    const first = firstHuman < 0 ? undefined : draft.transcript.entries[firstHuman]
    if (first !== undefined && firstHuman !== lastHuman && !first.pinned && first.length > stubMinimum) {
      yield stub(draft, first)
    }
    for (let at = 0; at < draft.items.length; at++) {
      const item = draft.items[at]
      const entry = item?.entry
      if (item === undefined || entry === undefined || !entry.human || entry.pinned || recent[at] === 1) continue
      if (entry.seq === firstHuman || entry.seq === lastHuman) continue
      const decision = stub(draft, entry)
      const stubbable = Alter.applies(item, decision) && entry.length > stubMinimum
        && Alter.item(draft.transcript, entry, [...item.alterations, decision]).price < item.price
      if (!stubbable) yield { _tag: "Remove", seqs: [entry.seq], at: draft.at }
    }
  })

/**
 * The end of a ladder, for a view above the budget itself: removes with no recency, then truncates what is whole.
 *
 * The last results are truncated too, dearest first, of equals the older; never a pinned or an exempt one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fit: Rung = propose("fit", function*(draft) {
  yield* removeAndStub(draft, 0)
  // What was pruned or capped keeps enough to be cut further.
  const whole = draft.items.filter((item) =>
    item?.entry?.kind === "result" && item.state !== "truncated" && item.state !== "cleared"
  )
  // The sort is stable: of equals the one that stands first in the view is the older.
  whole.sort((a, b) => b!.price - a!.price)
  for (const item of whole) {
    const decision = truncation(draft, item?.entry)
    if (decision !== undefined) yield decision
  }
})

const key = <S extends Schema.Constraint>(schema: S, value: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(schema)

const count = (example: number) =>
  Schema.Int.check(
    Schema.isGreaterThanOrEqualTo(0, { message: `write a whole number, 0 or more, for example ${example}` })
  )

/** A result, and its place in the view. */
interface Result {
  readonly entry: Transcript.Entry
  readonly at: number
}

/** The results in the view that a rung may shorten, in their order: no pinned ones and none of an exempt tool. */
const shortenable = (draft: Draft, exclude: ReadonlyArray<string> = []): ReadonlyArray<Result> => {
  const results: Array<Result> = []
  for (let at = 0; at < draft.items.length; at++) {
    const entry = draft.items[at]?.entry
    if (entry === undefined || entry.kind !== "result" || entry.pinned) continue
    if (draft.settings.exemptTools.includes(entry.tool) || exclude.includes(entry.tool)) continue
    results.push({ entry, at })
  }
  return results
}

const resultOf = (message: Prompt.Message): Prompt.ToolResultPart | undefined =>
  message.role === "tool" ? message.content.find((part) => part.type === "tool-result") : undefined

/** The groups with a result in the view, newest last. */
const groupsOf = (draft: Draft): ReadonlyArray<number> => {
  const groups = new Set<number>()
  for (const item of draft.items) if (item?.entry?.kind === "result") groups.add(item.group)
  return [...groups]
}

/** The last `count` of a list; none for 0, where a negative index would mean all. */
const last = <A>(list: ReadonlyArray<A>, count: number): ReadonlyArray<A> =>
  list.slice(list.length - Math.min(count, list.length))

/**
 * How {@link pruneToolResults} goes about it: see `ToolResult.PruneOptions`. `keepNewest` groups at the end stay, since
 * the model is about to read them; `stopAtTarget` leaves the rest alone once the target is reached.
 *
 * @category models
 * @since 0.1.0
 */
export const PruneToolResults = Schema.Struct({
  ...ToolResult.pruneFields,
  keepNewest: key(count(1), 1),
  stopAtTarget: key(Schema.Boolean, true)
}).check(ToolResult.pruneCheck)

/**
 * @category models
 * @since 0.1.0
 */
export type PruneToolResults = typeof PruneToolResults.Type

/**
 * Prunes the middle of long tool results, oldest first.
 *
 * **Details**
 *
 * Pinned entries and exempt tools stay. The marker names no place: the texts that are kept say what was asked.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pruneToolResults = (options: Partial<PruneToolResults> = {}): Rung => {
  const { headChars, keepNewest = 1, stopAtTarget = true, tailChars, thresholdChars } = {
    ...ToolResult.pruneDefaults,
    ...options
  }
  return propose("prune", function*(draft) {
    const newest = new Set(last(groupsOf(draft), keepNewest))
    for (const { entry } of shortenable(draft)) {
      const part = newest.has(entry.group) ? undefined : resultOf(entry.message)
      if (part === undefined || Text.sizeOfResult(part) <= thresholdChars) continue
      yield { _tag: "Prune", seq: entry.seq, at: draft.at, head: headChars, tail: tailChars }
    }
  }, { isWhole: !stopAtTarget })
}

/** The decision that leaves a sentence in the place of a result. */
const clearing = (draft: Draft, entry: Transcript.Entry, what: string): Decision.Clear => {
  const locator = draft.locate(entry)
  const made = { _tag: "Clear", seq: entry.seq, at: draft.at } as const
  return locator === undefined
    ? { ...made, text: `[${what}]` }
    : { ...made, text: `[${what}; read ${locator} for the full result]`, locator }
}

/**
 * How {@link clearToolResults} goes about it: the newest `keep` results and those of the tools in `exclude` stay; with
 * `clearInputs` a call loses its inputs too once all its results are cleared.
 *
 * @category models
 * @since 0.1.0
 */
export const ClearToolResults = Schema.Struct({
  keep: key(count(3), 3),
  exclude: key(Schema.Array(Schema.String), []),
  clearInputs: key(Schema.Boolean, false)
})

/**
 * @category models
 * @since 0.1.0
 */
export type ClearToolResults = typeof ClearToolResults.Type

/**
 * Leaves a sentence in the place of old tool results, oldest first, as Anthropic's context editing does
 * (`clear_tool_uses`). Pinned entries and exempt tools stay.
 *
 * @category constructors
 * @since 0.1.0
 */
export const clearToolResults = (options: Partial<ClearToolResults> = {}): Rung => {
  const { clearInputs = false, exclude = [], keep = 3 } = options
  return propose("clear", function*(draft) {
    const results = draft.items.filter((item) => item?.entry?.kind === "result")
    const newest = new Set(last(results, keep).map((item) => item?.seq))
    const whole = wholeResults(draft)
    for (const { at, entry } of shortenable(draft, exclude)) {
      if (newest.has(entry.seq)) continue
      yield clearing(draft, entry, "old tool result left out")
      const caller = draft.transcript.entries[entry.group]
      if (!clearInputs || caller === undefined || caller.pinned || draft.items[at]?.state !== "cleared") continue
      const left = (whole.get(entry.group) ?? 1) - 1
      whole.set(entry.group, left)
      if (left === 0) yield { _tag: "Trim", seq: entry.group, at: draft.at, reasoning: false, inputs: true }
    }
  })
}

/** How many calls of each group have no cleared result in the view, those without a result among them. */
const wholeResults = (draft: Draft): Map<number, number> => {
  const whole = new Map<number, number>()
  for (const item of draft.items) {
    const entry = item?.entry
    if (entry === undefined) continue
    if (entry.calls.length > 0) whole.set(entry.seq, entry.calls.length)
    else if (item?.state === "cleared") whole.set(entry.group, (whole.get(entry.group) ?? 0) - 1)
  }
  return whole
}

/**
 * How {@link dedupeReads} goes about it: the name of the tool, and the key of the input that says what is read, such as a
 * path.
 *
 * @category models
 * @since 0.1.0
 */
export const DedupeReads = Schema.Struct({ tool: Schema.NonEmptyString, key: Schema.NonEmptyString })

/**
 * @category models
 * @since 0.1.0
 */
export type DedupeReads = typeof DedupeReads.Type

/** What a call of a result was asked for under a key, as JSON; `undefined` when it does not say. */
const askedFor = (draft: Draft, entry: Transcript.Entry, name: string): string | undefined => {
  const { answers } = entry
  const message = answers === undefined ? undefined : draft.transcript.entries[answers.seq]?.message
  if (answers === undefined || message?.role !== "assistant") return undefined
  const calls = message.content.filter((part) => part.type === "tool-call" && !part.providerExecuted)
  const call = calls[answers.index]
  const params: unknown = call?.type === "tool-call" ? call.params : undefined
  if (typeof params !== "object" || params === null || !Object.hasOwn(params, name)) return undefined
  // An object, with the key among its own: `hasOwn` does not narrow.
  return JSON.stringify((params as { readonly [key: string]: unknown })[name])
}

/**
 * Of several results of one tool that were asked for the same thing, leaves only the newest whole. A failed result is no
 * read: it neither goes nor makes another go. Pinned entries and exempt tools stay.
 *
 * @category constructors
 * @since 0.1.0
 */
export const dedupeReads = (options: DedupeReads): Rung =>
  propose("dedupe", function*(draft) {
    const reads = shortenable(draft).filter(({ entry }) =>
      entry.tool === options.tool && resultOf(entry.message)?.isFailure === false
    )
    const newest = new Map<string, number>()
    for (const { entry } of reads) {
      const asked = askedFor(draft, entry, options.key)
      if (asked !== undefined) newest.set(asked, entry.seq)
    }
    for (const { entry } of reads) {
      const asked = askedFor(draft, entry, options.key)
      if (asked === undefined || newest.get(asked) === entry.seq) continue
      yield clearing(draft, entry, "older result left out: the same was read again below")
    }
  })

/**
 * How {@link clearReasoning} goes about it: the newest `keepTurns` turns keep their reasoning. A turn begins with a human
 * message.
 *
 * @category models
 * @since 0.1.0
 */
export const ClearReasoning = Schema.Struct({ keepTurns: key(count(1), 1) })

/**
 * @category models
 * @since 0.1.0
 */
export type ClearReasoning = typeof ClearReasoning.Type

/**
 * Drops the reasoning of old turns, oldest first, each part whole: what a provider signed is sent back as it was or not at
 * all. Pinned entries keep theirs, and so does the entry that a tool turn in progress needs it of.
 *
 * @category constructors
 * @since 0.1.0
 */
export const clearReasoning = (options: Partial<ClearReasoning> = {}): Rung => {
  const { keepTurns = 1 } = options
  return propose("clear-reasoning", function*(draft) {
    const humans = draft.items.filter((item) => item?.entry?.human === true).map((item) => item!.seq)
    const kept = last(humans, keepTurns)
    const edge = humans.length < keepTurns ? -1 : kept[0] ?? Infinity
    const needed = Reasoning.neededBy(draft.transcript)
    for (const item of draft.items) {
      const entry = item?.entry
      if (item === undefined || entry === undefined || entry.pinned || entry.seq >= edge || entry.seq === needed) {
        continue
      }
      if (!Reasoning.has(item.message)) continue
      yield { _tag: "Trim", seq: entry.seq, at: draft.at, reasoning: true, inputs: false }
    }
  })
}
