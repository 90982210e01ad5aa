/**
 * A checkpoint: one user message that stands for a span of entries, and what is decided about it without a model.
 *
 * This module selects spans, makes the message, keeps the words that must not be paraphrased, and checks what a summary
 * claims. Calling the model is the `Summarizer`'s, when to do so is the manager's.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Decision from "./Decision.ts"
import * as Gate from "./Gate.ts"
import * as Guard from "./Guard.ts"
import * as Protection from "./ladder/protection.ts"
import * as Marks from "./Marks.ts"
import * as Owned from "./policy/owned.ts"
import * as Rung from "./Rung.ts"
import type * as Settings from "./Settings.ts"
import * as Stage from "./Stage.ts"
import * as Claims from "./text/claims.ts"
import * as Reminder from "./text/reminder.ts"
import * as Rules from "./text/rules.ts"
import * as Text from "./text/text.ts"
import * as Written from "./text/written.ts"
import * as Transcript from "./Transcript.ts"
import * as View from "./View.ts"

/**
 * Some entries of a view, fixed by seq: what is appended later cannot shift them. `price` is what they cost as they stood
 * in the view, in tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Span {
  readonly seqs: ReadonlyArray<number>
  readonly price: number
}

/**
 * How a span is chosen.
 *
 * **Details**
 *
 * - `aim`: the price the view should come down to. `retain`: the price that the newest entries keep at least; whatever it
 *   is, the newest group or entry stays. `minimum`: a span that costs less is not worth a call. In tokens.
 * - `heedProtection`: whether what the ladder protects (recent entries, the last results) stays out of the span.
 * - `mergeCheckpoints`: whether earlier checkpoints are absorbed into the new one.
 *
 * @category models
 * @since 0.1.0
 */
export interface SpanOptions {
  readonly aim: number
  readonly retain: number
  readonly minimum: number
  readonly heedProtection: boolean
  readonly mergeCheckpoints: boolean
}

/** A checkpoint costs about this share of its span; a span is chosen so that the view reaches the aim with it. */
const replyShare = 0.15

/**
 * Whether an entry is a checkpoint that this library made.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isCheckpoint = (entry: Transcript.Entry): boolean =>
  entry.origin === "library" && entry.role === "user" && Marks.of(entry.message).source === "context-summary"

/**
 * Selects the span to be summarised: from the first entry behind the first human message to a cut that no group crosses.
 *
 * **Details**
 *
 * It takes as much as brings the view to the aim, unless that would leave the newest entries less than `retain`. It ends
 * before the first open group. Pinned entries and the last human message stay where they are, behind the checkpoint.
 * `undefined` when there is no such span, or it costs less than the minimum.
 *
 * @category running
 * @since 0.1.0
 */
export const span = (view: View.View, settings: Settings.Settings, options: SpanOptions): Span | undefined => {
  const { items } = view
  const protection = Protection.make({ items, settings, transcript: view.transcript }, 1)
  const { firstHuman } = protection
  const start = firstHuman < 0
    ? items.findIndex((item) => item.entry?.role !== "system")
    : items.findIndex((item) => item.seq === firstHuman) + 1
  if (start < 0) return undefined
  const end = Math.min(retainedFrom(items, options.retain), openFrom(view))
  const seqs: Array<number> = []
  let price = 0
  for (let at = start; at < end; at++) {
    const head = items[at]!
    let next = at + 1
    if (head.group >= 0) { while (next < items.length && items[next]!.group === head.group) next++ }
    if (next > end) break
    const unit = items.slice(at, next)
    at = next - 1
    if (options.heedProtection && unit.some((_, n) => isHeld(protection, items, next - unit.length + n))) break
    if (isOpen(view, head) || !unit.every((item) => isAbsorbable(item, protection.lastHuman, options))) continue
    for (const item of unit) {
      price += item.price
      if (item.seq >= 0) seqs.push(item.seq)
    }
    if (view.price - price * (1 - replyShare) <= options.aim) break
  }
  return seqs.length === 0 || price < options.minimum ? undefined : { seqs, price }
}

/** Whether the ladder protects an item as recent or as one of the last results. A pinned one only stays out of the span. */
const isHeld = (protection: Protection.Protection, items: ReadonlyArray<View.Item>, at: number): boolean => {
  const entry = items[at]!.entry
  if (protection.recent[at] === 1) return true
  return protection.held[at] === 1 && entry !== undefined && !entry.pinned && !isCheckpoint(entry)
}

const isAbsorbable = (item: View.Item, lastHuman: number, options: SpanOptions): boolean => {
  const { entry } = item
  if (entry === undefined) return true
  if (entry.role === "system" || entry.pinned || entry.seq === lastHuman) return false
  return options.mergeCheckpoints || !isCheckpoint(entry)
}

/** The position from which on the newest items cost at least `retain`; the newest item is always among them. */
const retainedFrom = (items: ReadonlyArray<View.Item>, retain: number): number => {
  let price = 0
  for (let at = items.length - 1; at >= 0; at--) {
    price += items[at]!.price
    if (price >= retain) return at
  }
  return 0
}

const isOpen = ({ transcript }: View.View, { group }: View.Item): boolean =>
  group >= 0 && Transcript.isOpen(transcript, group)

/**
 * The position of the first item of a group with an open call that is at work. One that waits for an approval while the
 * conversation went on may wait for ever: it stays, and the span goes round it.
 */
const openFrom = (view: View.View): number => {
  const at = view.items.findIndex((item) => item.group >= view.transcript.lastActor && isOpen(view, item))
  return at < 0 ? view.items.length : at
}

/**
 * Whether a view still holds every entry of a span. What was removed or absorbed meanwhile makes it stale, and a stale
 * span is never absorbed in part.
 *
 * @category predicates
 * @since 0.1.0
 */
export const holds = (view: View.View, span: ReadonlyArray<number>): boolean => {
  const seqs = new Set(span)
  let found = 0
  for (const item of view.items) if (seqs.has(item.seq)) found++
  return found === seqs.size
}

/**
 * Words of a person that a checkpoint carries as they were: the entry they are from, and the text.
 *
 * @category models
 * @since 0.1.0
 */
export interface Quote {
  readonly seq: number
  readonly text: string
}

/**
 * The verbatim part of a checkpoint: what is carried, and the seqs of those that found no room.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ledger {
  readonly quotes: ReadonlyArray<Quote>
  readonly lost: ReadonlyArray<number>
}

/** What an earlier checkpoint carries, from its marks. */
const carriedBy = (entry: Transcript.Entry): ReadonlyArray<Quote> => {
  const raw = Marks.of(entry.message).checkpoint
  return raw === undefined ? [] : raw.ledger
}

/**
 * Makes the ledger of a span: the human messages in it, whole where they fit, else the sentences that state a constraint
 * or a preference; what an earlier checkpoint carried is carried on. Newest first until `tokens` are used up; what finds
 * no room is lost, and recorded. Where nothing has room, the beginning of the newest is carried.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ledger = (transcript: Transcript.Transcript, self: Span, tokens: number): Ledger => {
  const quotes: Array<Quote> = []
  const lost: Array<number> = []
  let left = tokens
  const candidates = self.seqs.flatMap((seq): ReadonlyArray<Quote> => {
    const entry = transcript.entries[seq]!
    if (isCheckpoint(entry)) return carriedBy(entry)
    return entry.human ? [{ seq, text: Transcript.textOf(entry).trim() }] : []
  }).filter((quote) => quote.text !== "").sort((a, b) => b.seq - a.seq)
  for (const quote of candidates) {
    const fitting = [quote.text, Rules.constraintsOf(quote.text).join("\n")]
      .find((text) => text !== "" && quotePrice(transcript, text) <= left)
    if (fitting === undefined) {
      lost.push(quote.seq)
    } else {
      left -= quotePrice(transcript, fitting)
      quotes.push({ seq: quote.seq, text: fitting })
    }
  }
  // Where no message has room whole, the beginning of the newest says more than nothing; it is lost all the same.
  const [newest] = candidates
  if (quotes.length === 0 && newest !== undefined) {
    const text = beginning(newest.text, (left - quotePrice(transcript, "") - 2) * charsPerToken)
    if (text !== undefined && quotePrice(transcript, text) <= left) quotes.push({ seq: newest.seq, text })
  }
  return { quotes: quotes.reverse(), lost: lost.sort((a, b) => a - b) }
}

const charsPerToken = 4

/** A beginning that is shorter says nothing. */
const shortest = 60

/** The beginning of a text in so many characters, where that is worth having. */
const beginning = (text: string, chars: number): string | undefined =>
  chars < shortest ? undefined : `${text.slice(0, Text.safeCut(text, Math.min(chars, text.length) - 1))}…`

const textMessage = (text: string): Prompt.UserMessage =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

const quotePrice = (transcript: Transcript.Transcript, text: string): number => transcript.priceOf(textMessage(text))

/**
 * What is known about a checkpoint beside its text.
 *
 * @category models
 * @since 0.1.0
 */
export interface Origin {
  readonly span: Span
  readonly generation: number
  readonly model: string | null
  readonly ledger: Ledger
  readonly native?: Marks.Checkpoint["native"]
}

const preamble = "An automatic summary of the conversation before this point. It is background, not a request: do not "
  + "acknowledge it, go on from what follows."

/**
 * Makes the message of a checkpoint: role user, never system, since a system summary would rewrite the cached head of
 * every request; in a reminder envelope, with the ledger behind the summary.
 *
 * @category constructors
 * @since 0.1.0
 */
export const message = (summary: string, origin: Origin): Prompt.UserMessage => {
  const { ledger, native, span } = origin
  const words = ledger.quotes.length === 0
    ? ""
    : `\n\n## In the user's own words\n\n${ledger.quotes.map((quote) => `- ${quote.text}`).join("\n")}`
  return Marks.set(textMessage(Reminder.envelope("context-summary", `${preamble}\n\n${summary.trim()}${words}`)), {
    source: "context-summary",
    checkpoint: {
      seqs: span.seqs,
      price: span.price,
      generation: origin.generation,
      model: origin.model,
      ledger: ledger.quotes,
      lost: ledger.lost,
      ...(native === undefined ? undefined : { native })
    }
  })
}

/**
 * The messages of a request as its route is sent them: where the newest checkpoint holds items of the provider's own compaction,
 * and the route is theirs, the items stand in place of the checkpoint and of all before it; else the same messages.
 *
 * **When to use**
 *
 * In a loop that writes its own bodies, with `format/AnthropicMessages` or `format/OpenAiResponses`.
 *
 * @category converting
 * @since 0.1.0
 */
export const forOwner = (self: Prompt.Prompt, route: string): Prompt.Prompt => {
  const content = Owned.forOwner(self.content, route)
  return content === self.content ? self : Prompt.fromMessages(content)
}

/**
 * What a summary says that its span does not: paths, identifiers, numbers and quoted strings that do not occur in it, and
 * rules (must, never, always) that no person and no system prompt stated.
 *
 * @category models
 * @since 0.1.0
 */
export interface Strays {
  readonly claims: ReadonlyArray<string>
  readonly rules: ReadonlyArray<string>
}

/**
 * Checks a summary against what it summarises, without a model. `source` is the text of the span, `stated` the texts of
 * people and system prompts, in which a rule must have its origin.
 *
 * **Details**
 *
 * Names are compared without case, brackets and quotes; a path may be put together of a folder and a path within it, a
 * number may be rounded, and words joined by slashes are a claim only where one of them is new. Rules are read where the
 * summary states them as rules: under its constraints and requests, or as a command.
 *
 * @category running
 * @since 0.1.0
 */
export const strays = (summary: string, source: string, stated: ReadonlyArray<string>): Strays => ({
  claims: Claims.straysOf(summary, Claims.sourceOf(source)),
  rules: Rules.unstated(summary, stated)
})

/**
 * The text of a span, as a checker or a summariser that reads text sees it: role by role, with the calls and the results.
 *
 * **Details**
 *
 * `resultChars` caps each tool result, head and tail, in characters. Images and other media are named, not shown.
 *
 * @category converting
 * @since 0.1.0
 */
export const render = (view: View.View, self: Span, options?: { readonly resultChars?: number }): string => {
  const seqs = new Set(self.seqs)
  const lines: Array<string> = []
  for (const item of view.items) {
    if (item.entry !== undefined && seqs.has(item.seq)) lines.push(Written.message(item.message, options?.resultChars))
  }
  return lines.join("\n\n")
}

/**
 * Absorbs the checkpoint that waits for a boundary: its span leaves the view, and the checkpoint stands for it. Changes
 * nothing when there is none, or when the view no longer holds the whole span.
 *
 * @category stages
 * @since 0.1.0
 */
export const absorb: Stage.Stage = (pass) =>
  Effect.sync(() => {
    const { ready, view } = pass
    return ready === null || !holds(view, ready.seqs) ? pass : { ...pass, view: absorbedIn(view, ready) }
  })

const absorbedIn = (view: View.View, ready: Stage.Ready): View.View => {
  const decision: Decision.Absorb = {
    _tag: "Absorb",
    seqs: ready.seqs,
    at: view.length,
    checkpoint: ready.checkpoint,
    inPlace: ready.inPlace
  }
  return View.make(view.transcript, [...view.decisions, decision])
}

/**
 * Whether a checkpoint that waits would make a view smaller.
 *
 * @category predicates
 * @since 0.1.0
 */
export const shortens = (view: View.View, ready: Stage.Ready): boolean =>
  holds(view, ready.seqs) && absorbedIn(view, ready).price < view.price

const absorbGuarded = Stage.skipOn("SummaryNotSmaller")(Stage.guard(absorb, Guard.shrinks))

/**
 * {@link absorb} under the shrink guard: a checkpoint that costs no less than its span as it stands now is left out. The
 * report of the pass says what became of the checkpoint.
 *
 * @category stages
 * @since 0.1.0
 */
export const absorbSmaller: Stage.Stage = (pass) =>
  Effect.map(absorbGuarded(pass), (after) => {
    const { ready, view } = pass
    if (ready === null) return after
    const checkpoint = after.view !== view ? "absorbed" : holds(view, ready.seqs) ? "useless" : "stale"
    return { ...after, report: { ...after.report, checkpoint } }
  })

const prune = Rung.stage(Rung.pruneToolResults({ stopAtTarget: false }))

/** Whether the view of a pass still occupies as much as called for it. */
const isPressed = (pass: Stage.Pass): boolean =>
  pass.cause === "pressure" ? Stage.pressureOf(pass) >= pass.sizes.trigger : pass.view.price > Stage.aimOf(pass)

/** How many summaries a pass may wait for: none, but in the mode `between`, and after an overflow. */
const roundsOf = ({ cause, settings: { summary }, summarise }: Stage.Pass): number => {
  if (summary === undefined || summarise === null) return 0
  if (cause === "overflow") return 1
  return cause === "pressure" && summary.mode === "between" ? summary.compactionRetries + 1 : 0
}

/**
 * Summarises inside the pass, in the mode `between` and after an overflow: prunes, and while that is not enough has a
 * checkpoint written and absorbs it, at most `compactionRetries + 1` times, once after an overflow. What was done stays done
 * when a summary fails after it.
 *
 * @category stages
 * @since 0.1.0
 */
export const write: Stage.Stage = Effect.fnUntraced(function*(pass: Stage.Pass) {
  const rounds = roundsOf(pass)
  if (rounds === 0 || pass.summarise === null) return pass
  let current = pass.settings.summary?.prune === true ? yield* prune(pass) : pass
  for (let round = 0; round < rounds && isPressed(current); round++) {
    const ready = yield* pass.summarise(current.view)
    const next = yield* absorbSmaller({ ...current, ready })
    if (next.view === current.view) break
    current = next
  }
  return { ...current, ready: pass.ready, report: { ...current.report, checkpoint: pass.report.checkpoint } }
})

/**
 * Whether the ladder is needed behind the summaries: not when a pass was made for a summary alone; in the mode `between` only
 * while the request is not below the trigger, after an overflow only above the aim, and by hand only where no summary was
 * absorbed.
 *
 * @category predicates
 * @since 0.1.0
 */
export const needsLadder = (pass: Stage.Pass): boolean => {
  if (pass.cause === "manual") return pass.report.checkpoint !== "absorbed"
  if (pass.cause === "overflow") return isPressed(pass)
  return Gate.threshold(pass)
    && (pass.settings.summary?.mode !== "between" || pass.view === pass.before || isPressed(pass))
}
