/**
 * What stands at the very end of a request and belongs to that request only: the notice that something was left out, and
 * the last human message once more.
 *
 * Both are user messages in a reminder envelope, marked ephemeral, and come after everything that stays; nothing before
 * them moves, so they cost no cached prefix.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import type * as Decision from "../Decision.ts"
import * as Marks from "../Marks.ts"
import type * as Settings from "../Settings.ts"
import * as Recalled from "../text/recalled.ts"
import * as Reminder from "../text/reminder.ts"
import * as Transcript from "../Transcript.ts"

/**
 * What the tail remembers: the generations that were announced in full and repeated, and the one whose repeat waits for
 * open calls to be answered.
 *
 * @category models
 * @since 0.1.0
 */
export const Memory = Schema.Struct({
  announced: Schema.Natural,
  pending: Schema.NullOr(Schema.Natural)
})

/**
 * @category models
 * @since 0.1.0
 */
export type Memory = typeof Memory.Type

/**
 * A tail that has shown nothing yet.
 *
 * @category constants
 * @since 0.1.0
 */
export const noMemory: Memory = { announced: 0, pending: null }

/**
 * What the tail of a request is made of.
 *
 * **Details**
 *
 * - `room`: the tokens that are left in the budget, the reserve for the notice included.
 * - `isBoundary`: whether this request is one. `level`, `generation`, `counts`: of the session.
 * - `lastHuman`: the newest human message as it stands in the view. `isLast`: whether nothing stands behind it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Input {
  readonly transcript: Transcript.Transcript
  readonly settings: Settings.Settings
  readonly room: number
  readonly isBoundary: boolean
  readonly level: number
  readonly generation: number
  readonly counts: () => Decision.Counts
  readonly lastHuman: Transcript.Item | undefined
  readonly isLast: boolean
  /** Whether what is sent ends in a call that the provider runs. */
  readonly isPaused: boolean
  /** Whether the model has the tools that give back what has left the view. */
  readonly recalls: boolean
}

const message = (source: string, text: string): Prompt.UserMessage =>
  Marks.set(
    Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: Reminder.envelope(source, text) })] }),
    {
      source,
      ephemeral: true
    }
  )

const some = (count: number, one: string, many: string): ReadonlyArray<string> =>
  count === 0 ? [] : [count === 1 ? `1 ${one}` : `${count} ${many}`]

/** What a model that has the tools is told of them. */
const recalling = ` What is not here any more is found with ${Recalled.search} and read whole with ${Recalled.read}.`

const standing =
  "Parts of this conversation were shortened or left out earlier. Nothing new happened since: there is no "
  + "need to read or run anything again because of it."

/** The level whose rungs take what is protected below it: the last resort, and the end of `fit`. */
const lastResort = 8

/** What is as it was, in words; the newest human is, always. */
const kept = (settings: Settings.Settings, level: number): string => {
  if (level >= lastResort) return "The newest user message is as it was."
  const parts = [
    "The first and the newest user message",
    ...(settings.protectedRecent > 0 ? ["the newest messages"] : []),
    ...(settings.protectedToolResults > 0 ? ["the newest tool results"] : [])
  ]
  return `${parts.slice(0, -1).join(", ")}${parts.length > 1 ? " and " : ""}${parts.at(-1)} are as they were.`
}

const full = (
  counts: Decision.Counts,
  { level, recalls, settings }: Pick<Input, "level" | "recalls" | "settings">
): string => {
  const shortened = [
    ...some(counts.truncated + counts.altered, "tool result or message", "tool results or messages"),
    ...some(counts.stubbed, "user message", "user messages")
  ]
  const parts = [
    ...(shortened.length === 0 ? [] : [`${shortened.join(" and ")} shortened`]),
    ...some(counts.removed, "message left out", "messages left out"),
    ...some(counts.absorbed, "message summarised", "messages summarised")
  ]
  const what = `To fit the context window, this conversation was compacted: ${parts.join(", ")}.`
  const tools = recalls ? recalling : ""
  if (settings.noticeVerbosity === "minimal") return `${what}${tools}`
  return recalls
    ? `${what} ${kept(settings, level)}${tools}`
    : `${what} ${kept(settings, level)} What was shortened can be fetched again: run the call again with a narrower `
      + "question, unless it changes state."
}

const repeated = (text: string): string =>
  "The last message of the user once more, because the conversation before it was compacted. It is a repeat, not a new "
  + `request:\n\n${text}`

/**
 * Whether a call of the last assistant entry has no result yet: nothing may stand between a call and its results.
 *
 * @internal
 */
export const hasOpenCalls = (transcript: Transcript.Transcript): boolean => {
  const last = transcript.entries[transcript.lastActor]
  return last !== undefined && (Transcript.isOpen(transcript, last.seq) || isPaused(last.message))
}

/** Whether the provider stopped its turn while it runs a call itself, to be sent the same again and go on. */
const isPaused = (message: Prompt.Message): boolean =>
  message.role === "assistant" && message.content.some((call) =>
    call.type === "tool-call" && call.providerExecuted
    && !message.content.some((part) => part.type === "tool-result" && part.id === call.id)
  )

/** The prices of notices by their texts, which are few and stand in request after request; words of people are not kept. */
const prices = new WeakMap<Transcript.PriceOf, Map<string, number>>()

const mostPrices = 16

/** The price of a notice, which is found once for its text. */
const priceOfNotice = (priceOf: Transcript.PriceOf, text: string, notice: Prompt.Message): number => {
  const known = prices.get(priceOf) ?? new Map<string, number>()
  const price = known.get(text) ?? priceOf(notice)
  if (known.size >= mostPrices && !known.has(text)) known.clear()
  prices.set(priceOf, known.set(text, price))
  return price
}

/** Whether an alteration took words of a person. */
const isOfWords = ({ _tag }: Decision.Alteration): boolean => _tag === "Stub" || _tag === "Excerpt"

/** Why a last human message is not repeated: a copy would say nothing, or not in the user's words. */
const isRepeatable = (item: Transcript.Item | undefined, isLast: boolean): item is Transcript.Item => {
  if (item?.entry === undefined || isLast || item.alterations.some(isOfWords)) return false
  const text = Transcript.textOf(item.entry).trimStart()
  return text !== "" && !text.startsWith("<system-reminder")
}

/**
 * Makes the tail of a request, and what is remembered of it.
 *
 * **Details**
 *
 * - The notice is there after a boundary from level `noticeMinLevel` on: in full once for each boundary, one standing
 *   sentence afterwards. One that was left out does not count as shown.
 * - The repeat comes once for each boundary, before the notice; when calls are open, at the next request.
 * - Neither is there while a call is open, and neither when it does not fit.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  memory: Memory,
  input: Input
): { readonly messages: ReadonlyArray<Prompt.Message>; readonly price: number; readonly memory: Memory } => {
  const { generation, settings, transcript } = input
  const isDue = settings.replayLastUser && (input.isBoundary || memory.pending === generation)
  if (generation === 0 || input.isPaused || hasOpenCalls(transcript)) {
    return { messages: [], price: 0, memory: { ...memory, pending: isDue ? generation : memory.pending } }
  }
  const messages: Array<Prompt.Message> = []
  let price = 0
  const add = (each: Prompt.Message, cost: number): boolean => {
    if (price + cost > input.room) return false
    price += cost
    messages.push(each)
    return true
  }
  if (isDue && isRepeatable(input.lastHuman, input.isLast)) {
    const repeat = message("context-replay", repeated(Transcript.textOf(input.lastHuman.entry!)))
    add(repeat, transcript.priceOf(repeat))
  }
  let { announced } = memory
  if (settings.notice && input.level >= settings.noticeMinLevel) {
    const isNew = announced < generation
    const text = isNew ? full(input.counts(), input) : `${standing}${input.recalls ? recalling : ""}`
    const notice = message("context-compaction", text)
    if (add(notice, priceOfNotice(transcript.priceOf, text, notice)) && isNew) announced = generation
  }
  return { messages, price, memory: { announced, pending: null } }
}
