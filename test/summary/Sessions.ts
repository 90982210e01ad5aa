import * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Guard from "effect-compaction/Guard"
import type * as Policy from "effect-compaction/Policy"
import type * as SessionStore from "effect-compaction/SessionStore"
import type * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { bytesOf, system, turn, user } from "../core/conversation.ts"
import { seeded } from "../seed.ts"

/** A summary in the sections that are asked for. */
export const short = "## Request\n\n- read the files\n\n## Next\n\n- read the next one"

/** What all sessions here go by: a budget of 10,000 tokens, the pass at 9,200, a summary from 6,000 on, in 30 seconds, at any size. */
export const base: Settings.Input = { maxTokens: 10_000, notice: false }

export const withSummary = (summary: Settings.Input["summary"] = {}, rest: Settings.Input = {}): Settings.Input => ({
  ...base,
  ...rest,
  summary: { timeout: "30 seconds", maxSizes: null, ...summary }
})

/** The beginning of a session: a system prompt and the first human. */
export const opening: ReadonlyArray<Prompt.Message> = [
  system("You are a careful engineer."),
  user("Read all the files. You must never delete one.")
]

/** A turn of about 510 tokens: a call, and its result of 2,000 characters. */
export const turnOf = (n: number): ReadonlyArray<Prompt.Message> => turn(`file-${n}`, 2_000)

export type Manager = ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>

interface Given {
  readonly summarizer?: Summarizer.Service | undefined
  readonly retry?: Schedule.Schedule<unknown, Summarizer.SummaryError | Guard.SummaryNotSmaller>
}

export const manager = (settings: Settings.Input, { retry, summarizer }: Given = {}) =>
  ContextManager.make(seeded({ settings, ...(retry === undefined ? undefined : { summaryRetry: retry }) })).pipe(
    Effect.provideService(Summarizer.Summarizer, summarizer)
  )

/** A manager, with all that it publishes. */
export const watched = Effect.fnUntraced(function*(settings: Settings.Input, given: Given = {}) {
  const made = yield* manager(settings, given)
  const events: Array<CompactionEvent.CompactionEvent> = []
  yield* Stream.runForEach(made.events, (event) => Effect.sync(() => events.push(event))).pipe(
    Effect.forkScoped({ startImmediately: true })
  )
  return {
    manager: made,
    events,
    /** The events of summaries, after everything that was begun went on as far as it can. */
    told: Effect.map(settle, () => events.filter(isOfSummary)),
    tags: Effect.map(settle, () => events.filter(isOfSummary).map((event) => event._tag))
  }
})

const isOfSummary = CompactionEvent.CompactionEvent.isAnyOf([
  "SummaryStarted",
  "SummaryReady",
  "SummaryFailed",
  "SummaryRefused",
  "SummaryAbsorbed",
  "SummariesStopped"
])

/** Lets every other fiber go on until it waits. */
export const settle = Effect.forEach(Array.from({ length: 40 }), () => Effect.yieldNow, { discard: true })

/** Appends messages and asks for the next view. */
export const ask = (self: Manager, ...messages: ReadonlyArray<Prompt.Message>) =>
  Effect.andThen(self.append(Prompt.fromMessages(messages)), self.request)

/** The same, and then everything beside the session goes on as far as it can: between two requests there is a model. */
export const step = (self: Manager, ...messages: ReadonlyArray<Prompt.Message>) =>
  Effect.tap(ask(self, ...messages), () => settle)

/** Appends turns from one number on, with a request after each; returns the requests. */
export const play = (self: Manager, from: number, count: number) =>
  Effect.forEach(Array.from({ length: count }, (_, at) => from + at), (n) => step(self, ...turnOf(n)))

/** Opens a session and plays it until a summary is due: at the end of the turn 11 the count is above 6,000. */
export const playToTrigger = (self: Manager) =>
  Effect.andThen(self.append(Prompt.fromMessages(opening)), play(self, 0, 12))

export const reply = (text: string): Summarizer.Reply => ({ text, model: null, usage: null, isTruncated: false })

/** A summariser that answers with a function of the request, and notes every request. */
export const answering = (
  answer: (request: Summarizer.Request, call: number) => Effect.Effect<
    Summarizer.Reply,
    Summarizer.SummarizerFailed | Summarizer.SummaryTruncated | Summarizer.SummaryEmpty
  >,
  cache: Summarizer.Service["cache"] = "shared"
) => {
  const requests: Array<Summarizer.Request> = []
  const service: Summarizer.Service = {
    cache,
    summarize: (request) => Effect.suspend(() => answer(request, requests.push(request)))
  }
  return { requests, service }
}

export const saying = (text: string, cache?: Summarizer.Service["cache"]) =>
  answering(() => Effect.succeed(reply(text)), cache)

export const failing = answering(() =>
  Effect.fail(new Summarizer.SummarizerFailed({ reason: "429 Too Many Requests", isOverflow: false }))
)

/** The stable messages of a request, as bytes. */
export const stable = (request: ContextManager.Request): ReadonlyArray<string> =>
  request.prompt.content.slice(0, request.stableLength).map((message) => bytesOf(Prompt.fromMessages([message])))
