import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Checkpoint from "../Checkpoint.ts"
import * as Guard from "../Guard.ts"
import type * as Settings from "../Settings.ts"
import * as Summarizer from "../Summarizer.ts"
import type * as View from "../View.ts"
import * as Text from "./text.ts"

/**
 * What is known when a summary is begun: the view and the span as they are then, and the messages that were really sent,
 * up to the end of the span, or why there are none to stand on.
 */
export interface Plan {
  readonly view: View.View
  readonly span: Checkpoint.Span
  readonly prefix: ReadonlyArray<Prompt.Message> | Summarizer.Fallback
  readonly generation: number
  readonly limit: number
  readonly focus: string | undefined
}

/** What came of it: the checkpoint and the span it stands for, which may be shorter than the one that was asked for. */
export interface Made {
  readonly span: Checkpoint.Span
  readonly message: Prompt.UserMessage
  readonly price: number
  readonly text: string
  readonly reply: Summarizer.Reply
  readonly layout: Summarizer.Layout
  readonly fallback: Summarizer.Fallback | null
  readonly strays: Checkpoint.Strays
  readonly lost: ReadonlyArray<number>
}

const user = (text: string): Prompt.UserMessage =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

const directiveOf = (focus: string | undefined): string =>
  focus === undefined ? Summarizer.directive : `${Summarizer.directive}\n\nKeep an eye on: ${focus}`

/** A summary is asked to be short: this share of what it stands for, and never less than a few paragraphs. */
const replyShare = 0.15
const replyMinimum = 400

const requestOf = (
  plan: Plan,
  span: Checkpoint.Span,
  summary: Settings.Summary,
  fallback: Summarizer.Fallback | null
): Summarizer.Request => {
  const text = Checkpoint.render(plan.view, span, { resultChars: summary.resultChars })
  const seqs = new Set(span.seqs)
  const { focus } = plan
  const directive = directiveOf(focus)
  const isSuffix = fallback === null && summary.layout === "suffix" && typeof plan.prefix !== "string"
  return {
    prompt: Prompt.fromMessages(
      isSuffix && typeof plan.prefix !== "string"
        ? [...plan.prefix, user(directive)]
        : [user(`<conversation>\n${text}\n</conversation>\n\n${directive}`)]
    ),
    messages: plan.view.items.filter((item) => seqs.has(item.seq)).map((item) => item.message),
    text,
    layout: isSuffix ? "suffix" : "standalone",
    fallback: isSuffix ? null : fallback ?? (typeof plan.prefix === "string" ? plan.prefix : null),
    focus,
    maxTokens: Math.min(summary.maxTokens, Math.max(replyMinimum, Math.floor(span.price * replyShare)))
  }
}

/** How often a span is halved when even its text does not fit the summariser. */
const halvings = 3

/** The older half of a span, cut where no group is; what is left out stays in the view. */
const olderHalf = (view: View.View, span: Checkpoint.Span): Checkpoint.Span => {
  const inSpan = new Set(span.seqs)
  const items = view.items.filter((item) => inSpan.has(item.seq))
  const seqs: Array<number> = []
  let price = 0
  for (let at = 0; at < items.length && price < span.price / 2; at++) {
    const head = items[at]!
    do {
      price += items[at]!.price
      seqs.push(items[at]!.seq)
    } while (head.group >= 0 && items[at + 1]?.group === head.group && ++at)
  }
  return { seqs, price }
}

/**
 * Asks for a summary. When the request is too long for the summariser, it is asked again with the span as text, then with
 * the older half of the span: never with less than what the summary is then said to cover.
 */
const ask = Effect.fnUntraced(function*(service: Summarizer.Service, plan: Plan, summary: Settings.Summary) {
  let span = plan.span
  let fallback: Summarizer.Fallback | null = service.cache === "other" ? "otherModel" : null
  for (let halved = 0;;) {
    const request = requestOf(plan, span, summary, fallback)
    const result = yield* Effect.result(service.summarize(request))
    if (result._tag === "Success") return { request, reply: result.success, span }
    const error = result.failure
    if (error._tag !== "SummarizerFailed" || !error.isOverflow) return yield* error
    if (request.layout === "suffix") {
      fallback = "overflow"
      continue
    }
    if (halved++ >= halvings) return yield* error
    span = olderHalf(plan.view, span)
    if (span.seqs.length === 0) return yield* error
  }
})

/** The texts of people and of the system in a view, in which a rule may have its origin. */
const statedIn = (view: View.View): ReadonlyArray<string> =>
  view.items
    .filter((item) => item.entry !== undefined && (item.entry.human || item.entry.role === "system"))
    .map((item) => Text.ofMessage(item.entry!.message))

/** Asks for a summary and judges it: nothing is written anywhere, so whatever fails leaves the session as it was. */
export const run = Effect.fnUntraced(function*(
  service: Summarizer.Service,
  plan: Plan,
  summary: Settings.Summary
): Effect.fn.Return<Made, Summarizer.SummaryError | Guard.SummaryNotSmaller> {
  const { reply, request, span } = yield* ask(service, plan, summary)
  if (reply.isTruncated) return yield* new Summarizer.SummaryTruncated({ maxTokens: request.maxTokens })
  if (reply.text.trim() === "") return yield* new Summarizer.SummaryEmpty()
  const { transcript } = plan.view
  const ledger = Checkpoint.ledger(transcript, span, Math.floor(plan.limit * summary.ledger))
  const message = Checkpoint.message(reply.text, {
    span,
    generation: plan.generation + 1,
    model: reply.model,
    ledger
  })
  const price = transcript.priceOf(message)
  if (price >= span.price) return yield* new Guard.SummaryNotSmaller({ before: span.price, after: price })
  const strays = summary.faithful === "off"
    ? { claims: [], rules: [] }
    : Checkpoint.strays(reply.text, Checkpoint.render(plan.view, span), statedIn(plan.view))
  if (summary.faithful === "refuse" && strays.claims.length + strays.rules.length > 0) {
    return yield* new Summarizer.SummaryUnfaithful(strays)
  }
  return {
    span,
    message,
    price,
    text: reply.text,
    reply,
    layout: request.layout,
    fallback: request.fallback,
    strays,
    lost: ledger.lost
  }
})
