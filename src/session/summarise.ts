import * as Prompt from "effect/ai/Prompt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Checkpoint from "../Checkpoint.ts"
import * as Guard from "../Guard.ts"
import * as Marks from "../Marks.ts"
import * as Owned from "../policy/owned.ts"
import type * as Settings from "../Settings.ts"
import * as Summarizer from "../Summarizer.ts"
import * as Reply from "../text/reply.ts"
import * as Text from "../text/text.ts"
import * as TokenMeter from "../TokenMeter.ts"
import * as View from "../View.ts"

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
  readonly tools?: Summarizer.ToolSet | undefined
}

/**
 * What came of it: the checkpoint and the span it stands for, which may be shorter than the one that was asked for. `text`
 * is the summary, `raw` what the summariser answered.
 */
export interface Made {
  readonly span: Checkpoint.Span
  readonly message: Prompt.UserMessage
  readonly price: number
  readonly text: string
  readonly raw: string
  readonly evidence: Summarizer.Evidence
  readonly strays: Checkpoint.Strays
  readonly lost: ReadonlyArray<number>
}

const user = (text: string): Prompt.UserMessage =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

const directiveOf = (asked: string, focus: string | undefined, maxTokens: number): string => {
  const length = `Use at most about ${maxTokens} tokens.`
  return `${asked}\n\n${length}${focus === undefined ? "" : `\n\nKeep an eye on: ${focus}`}`
}

const hasCalls = (messages: ReadonlyArray<Prompt.Message>): boolean =>
  messages.some((message) =>
    message.role === "tool" ||
    (message.role === "assistant" && message.content.some(({ type }) => type === "tool-call"))
  )

/** A summary is asked to be short: this share of what it stands for, and never less than a few paragraphs. */
const replyShare = 0.15
const replyMinimum = 400

const requestOf = (
  service: Summarizer.Service,
  plan: Plan,
  span: Checkpoint.Span,
  summary: Settings.Summary,
  overflow: boolean
): Summarizer.Request => {
  const text = Checkpoint.render(plan.view, span, { resultChars: summary.resultChars })
  const seqs = new Set(span.seqs)
  const { focus, tools } = plan
  const maxTokens = Math.min(summary.maxTokens, Math.max(replyMinimum, Math.floor(span.price * replyShare)))
  const common = {
    messages: plan.view.items.filter((item) => seqs.has(item.seq)).map((item) => item.message),
    text,
    focus,
    maxTokens,
    ...(tools === undefined ? undefined : { tools })
  }
  if (service.reads === "conversation") {
    const { head, messages } = conversationOf(plan.view, span)
    return {
      ...common,
      prompt: Prompt.fromMessages([...head, ...messages]),
      layout: "conversation",
      fallback: overflow ? "overflow" : null
    }
  }
  const directive = directiveOf(summary.directive ?? Summarizer.directive, focus, maxTokens)
  const prefix = overflow ? "overflow" : prefixOf(service, plan, summary)
  return {
    ...common,
    prompt: Prompt.fromMessages(
      typeof prefix === "string" || prefix === null
        ? [user(`<conversation>\n${contained(text)}\n</conversation>\n\n${directive}`)]
        : [...prefix, user(directive)]
    ),
    layout: typeof prefix === "string" || prefix === null ? "standalone" : "suffix",
    fallback: typeof prefix === "string" ? prefix : null
  }
}

/**
 * The conversation up to the end of a span, as its messages and those before them. What stands among them and is no part of
 * the span stays behind the checkpoint, so it is left out.
 */
const conversationOf = (
  { items }: View.View,
  { seqs }: Checkpoint.Span
): { readonly head: ReadonlyArray<Prompt.Message>; readonly messages: ReadonlyArray<Prompt.Message> } => {
  const inSpan = new Set(seqs)
  const first = items.findIndex(({ seq }) => inSpan.has(seq))
  return { head: rendered(items.slice(0, first)), messages: rendered(items.filter(({ seq }) => inSpan.has(seq))) }
}

const rendered = (items: ReadonlyArray<View.Item>): ReadonlyArray<Prompt.Message> => {
  const messages: Array<Prompt.Message> = []
  View.render(items, messages, [])
  return messages
}

/** The messages that the directive is put behind, or why the span is put as text; `null` where the settings ask for text. */
const prefixOf = (
  service: Summarizer.Service,
  { prefix, tools }: Plan,
  summary: Settings.Summary
): Plan["prefix"] | null => {
  if (summary.layout === "standalone") return null
  if (service.cache === "other") return "otherModel"
  if (typeof prefix === "string" || service.needsTools !== true || tools !== undefined) return prefix
  return hasCalls(prefix) ? "noTools" : prefix
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
  let overflow = false
  for (let halved = 0;;) {
    const request = requestOf(service, plan, span, summary, overflow)
    const result = fits(plan, request)
      ? yield* Effect.result(service.summarize(request))
      : Result.fail(tooLong)
    if (result._tag === "Success") return { request, reply: result.success, span }
    const error = result.failure
    if (error._tag !== "SummarizerFailed" || !error.isOverflow) return yield* error
    // What stands on the messages that were sent is tried as text first.
    if (request.layout !== "suffix" && halved++ >= halvings) return yield* error
    if (request.layout !== "suffix") span = olderHalf(plan.view, span)
    overflow = true
  }
})

const attributesOf = ({ layout, maxTokens }: Summarizer.Request, reply: Summarizer.Reply) => {
  const { inputTokens = {}, outputTokens } = reply.usage ?? {}
  const known = {
    "gen_ai.provider.name": reply.provider,
    "gen_ai.response.model": reply.model,
    "gen_ai.request.max_tokens": maxTokens,
    "gen_ai.usage.input_tokens": inputOf(reply),
    "gen_ai.usage.output_tokens": outputTokens,
    "gen_ai.usage.cache_read.input_tokens": inputTokens.cacheRead,
    "gen_ai.usage.cache_creation.input_tokens": inputTokens.cacheWrite,
    "compaction.layout": layout
  }
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== null && value !== undefined))
}

/** All that the summariser read, in tokens as billed. */
const inputOf = ({ usage }: Summarizer.Reply): number | null =>
  usage === null ? null : TokenMeter.usedOf(usage.inputTokens) ?? null

/** The calls of one summary, in a span of their own: what they are for, and what is known of the one that answered. */
const traced = (service: Summarizer.Service, plan: Plan, summary: Settings.Summary) => {
  const answered = Effect.tap(
    ask(service, plan, summary),
    ({ reply, request }) => Effect.annotateCurrentSpan(attributesOf(request, reply))
  )
  const attributes = { purpose: "compaction", "gen_ai.operation.name": "chat" }
  return Effect.withSpan(answered, "compaction.summary", { attributes, captureStackTrace: false })
}

const evidenceOf = (
  request: Summarizer.Request,
  reply: Summarizer.Reply,
  milliseconds: number
): Summarizer.Evidence => {
  const { inputTokens = {}, outputTokens = null } = reply.usage ?? {}
  return {
    purpose: "compaction",
    provider: reply.provider ?? null,
    model: reply.model,
    layout: request.layout,
    fallback: request.fallback,
    outputLimit: request.maxTokens,
    input: inputOf(reply),
    cacheRead: inputTokens.cacheRead ?? null,
    cacheWrite: inputTokens.cacheWrite ?? null,
    output: outputTokens,
    milliseconds
  }
}

/** What people and the system have said, in the view or not: a rule may have its origin there, generations ago. */
const statedIn = ({ length, transcript }: View.View): ReadonlyArray<string> =>
  transcript.entries
    .slice(0, length)
    .filter((entry) => entry.human || entry.role === "system")
    .map((entry) => Text.ofMessage(entry.message))

/** How many summaries lie in each other: one more than in the newest of those that a span takes in. */
const generationOf = ({ transcript }: View.View, span: Checkpoint.Span): number =>
  1 + span.seqs.reduce(
    (newest, seq) => Math.max(newest, Marks.of(transcript.entries[seq]!.message).checkpoint?.generation ?? 0),
    0
  )

/** What the provider's own compaction made, for a checkpoint: it is of what stands before the span too. */
const nativeOf = (
  view: View.View,
  span: Checkpoint.Span,
  { native }: Summarizer.Reply
): Pick<Checkpoint.Origin, "native"> =>
  native === undefined ? {} : { native: { ...native, head: Owned.headOf(conversationOf(view, span).head) } }

/** Asks for a summary and judges it: nothing is written anywhere, so whatever fails leaves the session unchanged. */
export const run = Effect.fnUntraced(function*(
  service: Summarizer.Service,
  plan: Plan,
  summary: Settings.Summary
): Effect.fn.Return<Made, Summarizer.SummaryError | Guard.SummaryNotSmaller> {
  const begun = yield* Clock.currentTimeMillis
  const { reply, request, span } = yield* traced(service, plan, summary)
  const milliseconds = (yield* Clock.currentTimeMillis) - begun
  if (reply.isTruncated) return yield* new Summarizer.SummaryTruncated({ maxTokens: request.maxTokens })
  const text = Reply.said(reply.text)
  if (Reply.saysNothing(text)) return yield* new Summarizer.SummaryEmpty()
  if (Reply.isErrorText(text)) {
    return yield* new Summarizer.SummarizerFailed({
      reason: `the summary is the text of an error: ${text.slice(0, 200)}`,
      isOverflow: false
    })
  }
  const { transcript } = plan.view
  const ledger = Checkpoint.ledger(transcript, span, Math.floor(plan.limit * summary.ledger))
  const message = Checkpoint.message(text, {
    span,
    generation: generationOf(plan.view, span),
    model: reply.model,
    ledger,
    ...nativeOf(plan.view, span, reply)
  })
  const price = transcript.priceOf(message)
  const largest = reply.native === undefined
    ? price
    : Math.max(price, transcript.priceOf(Owned.messageOf(reply.native.items)))
  if (largest >= span.price) return yield* new Guard.SummaryNotSmaller({ before: span.price, after: largest })
  const fault = Reply.faultOf(text, {
    headings: service.headings ?? Reply.headingsOf(summary.directive ?? Summarizer.directive),
    tokens: span.price
  })
  if (fault !== undefined) return yield* new Summarizer.NotASummary({ reason: fault })
  const strays = summary.faithful === "off"
    ? { claims: [], rules: [] }
    : Checkpoint.strays(text, Checkpoint.render(plan.view, span), statedIn(plan.view))
  if (summary.faithful === "refuse" && strays.claims.length + strays.rules.length > 0) {
    return yield* new Summarizer.SummaryUnfaithful(strays)
  }
  return {
    span,
    message,
    price,
    text,
    raw: reply.text,
    evidence: evidenceOf(request, reply, milliseconds),
    strays,
    lost: ledger.lost
  }
})
