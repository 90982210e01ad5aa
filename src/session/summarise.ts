import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Checkpoint from "../Checkpoint.ts"
import * as Guard from "../Guard.ts"
import * as Marks from "../Marks.ts"
import type * as Settings from "../Settings.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Text from "../text/text.ts"
import type * as View from "../View.ts"

/**
 * What is known when a summary is begun: the view and the span as they are then, and the messages that were really sent,
 * up to the end of the span, or why there are none to stand on. `generation` counts boundaries; `limit` is the budget,
 * `room` what a request may occupy with its reply, in prices.
 */
export interface Plan {
  readonly view: View.View
  readonly span: Checkpoint.Span
  readonly prefix: ReadonlyArray<Prompt.Message> | Summarizer.Fallback
  readonly generation: number
  readonly limit: number
  readonly room: number
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

const directiveOf = (focus: string | undefined, maxTokens: number): string => {
  const length = `Use at most about ${maxTokens} tokens.`
  return `${Summarizer.directive}\n\n${length}${focus === undefined ? "" : `\n\nKeep an eye on: ${focus}`}`
}

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
  const maxTokens = Math.min(summary.maxTokens, Math.max(replyMinimum, Math.floor(span.price * replyShare)))
  const directive = directiveOf(focus, maxTokens)
  const isSuffix = fallback === null && summary.layout === "suffix" && typeof plan.prefix !== "string"
  return {
    prompt: Prompt.fromMessages(
      isSuffix && typeof plan.prefix !== "string"
        ? [...plan.prefix, user(directive)]
        : [user(`<conversation>\n${contained(text)}\n</conversation>\n\n${directive}`)]
    ),
    messages: plan.view.items.filter((item) => seqs.has(item.seq)).map((item) => item.message),
    text,
    layout: isSuffix ? "suffix" : "standalone",
    fallback: isSuffix ? null : fallbackOf(plan, summary, fallback),
    focus,
    maxTokens
  }
}

/** Where text is what the settings ask for, it is no fallback, unless an overflow made it shorter than it would be. */
const fallbackOf = (
  plan: Plan,
  summary: Settings.Summary,
  fallback: Summarizer.Fallback | null
): Summarizer.Fallback | null => {
  if (fallback === "overflow") return fallback
  if (summary.layout === "standalone") return null
  return fallback ?? (typeof plan.prefix === "string" ? plan.prefix : null)
}

/** A text that cannot end the element it stands in. */
const contained = (text: string): string => text.replace(/<(\/?)conversation>/gi, "<$1 conversation>")

/** Whether a request with its reply has room. The text of a part is what a model reads of it, so that is what is priced. */
const fits = (plan: Plan, { maxTokens, prompt }: Summarizer.Request): boolean => {
  let price = maxTokens
  for (const message of prompt.content) price += plan.view.transcript.priceOf(message)
  return price <= plan.room
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

const tooLong = new Summarizer.SummarizerFailed({
  reason: "the span and the directive do not fit the window of the summariser",
  isOverflow: true
})

/**
 * Asks for a summary. When the request is too long for the summariser, by its price or by what the provider says, it is
 * asked again with the span as text, then with the older half of the span: never with less than what the summary is then
 * said to cover.
 */
const ask = Effect.fnUntraced(function*(service: Summarizer.Service, plan: Plan, summary: Settings.Summary) {
  let span = plan.span
  let fallback: Summarizer.Fallback | null = service.cache === "other" ? "otherModel" : null
  for (let halved = 0;;) {
    const request = requestOf(plan, span, summary, fallback)
    const result = fits(plan, request)
      ? yield* Effect.result(service.summarize(request))
      : Result.fail(tooLong)
    if (result._tag === "Success") return { request, reply: result.success, span }
    const error = result.failure
    if (error._tag !== "SummarizerFailed" || !error.isOverflow) return yield* error
    if (request.layout === "standalone" && halved++ >= halvings) return yield* error
    if (request.layout === "standalone") span = olderHalf(plan.view, span)
    fallback = "overflow"
  }
})

/** What people and the system have said, in the view or not: a rule may have its origin there, generations ago. */
const statedIn = ({ length, transcript }: View.View): ReadonlyArray<string> =>
  transcript.entries
    .slice(0, length)
    .filter((entry) => entry.human || entry.role === "system")
    .map((entry) => Text.ofMessage(entry.message))

/** Headings, and the words for an empty section. */
const nothingSaid = /^\s*(#.*|[-*]?\s*\(?(none|n\/a|nothing)\)?\.?|[^\p{L}\p{N}]*)$/iu

const saysNothing = (text: string): boolean => text.split("\n").every((line) => nothingSaid.test(line))

/** How an error begins that a framework handed on as if it were the answer. */
const errorStart =
  /^[\s"'[({<]*((\w+\.)*[A-Z]\w*(Error|Exception)\b|errors?\b|exception\b|traceback\b|rate.?limit|too many requests|(http |status )?[45]\d\d\b)/i

/** A short text that begins like an error and has none of the sections that were asked for. */
const isErrorText = (text: string): boolean => text.length < 500 && errorStart.test(text) && !/^#/m.test(text)

/** How many summaries lie in each other: one more than in the newest of those that a span takes in. */
const generationOf = ({ transcript }: View.View, span: Checkpoint.Span): number =>
  1 + span.seqs.reduce(
    (newest, seq) => Math.max(newest, Marks.of(transcript.entries[seq]!.message).checkpoint?.generation ?? 0),
    0
  )

/** Asks for a summary and judges it: nothing is written anywhere, so whatever fails leaves the session as it was. */
export const run = Effect.fnUntraced(function*(
  service: Summarizer.Service,
  plan: Plan,
  summary: Settings.Summary
): Effect.fn.Return<Made, Summarizer.SummaryError | Guard.SummaryNotSmaller> {
  const { reply, request, span } = yield* ask(service, plan, summary)
  if (reply.isTruncated) return yield* new Summarizer.SummaryTruncated({ maxTokens: request.maxTokens })
  if (saysNothing(reply.text)) return yield* new Summarizer.SummaryEmpty()
  if (isErrorText(reply.text)) {
    return yield* new Summarizer.SummarizerFailed({
      reason: `the summary is the text of an error: ${reply.text.trim().slice(0, 200)}`,
      isOverflow: false
    })
  }
  const { transcript } = plan.view
  const ledger = Checkpoint.ledger(transcript, span, Math.floor(plan.limit * summary.ledger))
  const message = Checkpoint.message(reply.text, {
    span,
    generation: generationOf(plan.view, span),
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
