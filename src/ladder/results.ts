import type * as Prompt from "effect/ai/Prompt"
import type * as Decision from "../Decision.ts"
import * as Text from "../text/text.ts"
import type * as Transcript from "../Transcript.ts"
import * as Reasoning from "../wire/reasoning.ts"
import * as Cut from "./cut.ts"
import type { Draft } from "./draft.ts"
import * as Protection from "./protection.ts"

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

/** The decision to truncate a result, unless it is pinned, exempt, or short enough. */
const truncation = (draft: Draft, entry: Transcript.Entry | undefined): Decision.Truncate | undefined => {
  if (entry === undefined || entry.pinned) return undefined
  const cut = Cut.of(draft.settings, draft.transcript, entry, draft.locate)
  return cut === undefined ? undefined : { _tag: "Truncate", seq: entry.seq, at: draft.at, ...cut }
}

/** Truncates the first `ceil(fraction × n)` of the `n` results in the view, but for the last ones. */
export function* truncateOldest(draft: Draft, fraction: number): Generator<Decision.Truncate> {
  const results: Array<number> = []
  for (let at = 0; at < draft.items.length; at++) if (draft.items[at]?.entry?.kind === "result") results.push(at)
  const protectedOnes = new Set(Protection.lastResults(draft))
  const candidates = Math.ceil(fraction * results.length)
  for (let n = 0; n < candidates; n++) {
    const at = results[n]!
    if (protectedOnes.has(at)) continue
    const decision = truncation(draft, draft.items[at]?.entry)
    if (decision !== undefined) yield decision
  }
}

/** Truncates what is whole, dearest first, the last results too. */
export function* truncateDearest(draft: Draft): Generator<Decision.Truncate> {
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
}

/** Prunes the middle of results above a threshold, oldest first, but for the newest groups. */
export function* prune(
  draft: Draft,
  options: {
    readonly keepNewest: number
    readonly thresholdChars: number
    readonly headChars: number
    readonly tailChars: number
  }
): Generator<Decision.Prune> {
  const newest = new Set(last(groupsOf(draft), options.keepNewest))
  for (const { entry } of shortenable(draft)) {
    const part = newest.has(entry.group) ? undefined : resultOf(entry.message)
    if (part === undefined || Text.sizeOfResult(part) <= options.thresholdChars) continue
    yield { _tag: "Prune", seq: entry.seq, at: draft.at, head: options.headChars, tail: options.tailChars }
  }
}

/** The decision that leaves a sentence in the place of a result. */
const clearing = (draft: Draft, entry: Transcript.Entry, what: string): Decision.Clear => {
  const locator = draft.locate(entry)
  const { seq } = entry
  return locator === undefined
    ? { _tag: "Clear", seq, at: draft.at, text: `[${what}]` }
    : { _tag: "Clear", seq, at: draft.at, text: `[${what}; read ${locator} for the full result]`, locator }
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

/** Clears all but the newest `keep` results, oldest first; with `clearInputs` the inputs of calls without any result left. */
export function* clear(
  draft: Draft,
  options: { readonly keep: number; readonly exclude: ReadonlyArray<string>; readonly clearInputs: boolean }
): Generator<Decision.Edit> {
  const results = draft.items.filter((item) => item?.entry?.kind === "result")
  const newest = new Set(last(results, options.keep).map((item) => item?.seq))
  const whole = wholeResults(draft)
  for (const { at, entry } of shortenable(draft, options.exclude)) {
    if (newest.has(entry.seq)) continue
    yield clearing(draft, entry, "old tool result left out")
    const caller = draft.transcript.entries[entry.group]
    if (!options.clearInputs || caller === undefined || caller.pinned || draft.items[at]?.state !== "cleared") continue
    const left = (whole.get(entry.group) ?? 1) - 1
    whole.set(entry.group, left)
    if (left === 0) yield { _tag: "Trim", seq: entry.group, at: draft.at, reasoning: false, inputs: true }
  }
}

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

/** Of results of one tool that were asked for the same thing, clears all but the newest. */
export function* dedupe(
  draft: Draft,
  options: { readonly tool: string; readonly key: string }
): Generator<Decision.Clear> {
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
}

/** Drops the reasoning of all but the newest turns, each of which begins with a human message. */
export function* clearReasoning(draft: Draft, keepTurns: number): Generator<Decision.Trim> {
  const humans = draft.items.filter((item) => item?.entry?.human === true).map((item) => item!.seq)
  const kept = last(humans, keepTurns)
  const edge = humans.length < keepTurns ? -1 : kept[0] ?? Infinity
  const needed = Reasoning.neededBy(draft.transcript)
  for (const item of draft.items) {
    const entry = item?.entry
    if (item === undefined || entry === undefined || entry.pinned || entry.seq >= edge || entry.seq === needed) continue
    if (!Reasoning.has(item.message)) continue
    yield { _tag: "Trim", seq: entry.seq, at: draft.at, reasoning: true, inputs: false }
  }
}
