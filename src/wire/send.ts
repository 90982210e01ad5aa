/**
 * The sending half of the wire rules: small pure pieces, each O(1) or O(one message).
 *
 * The session core repairs pairing as entries arrive and needs only these when it sends; `Wire.repair` uses the same
 * ones, so that there is one implementation. What is fine comes back as the same object.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Marks from "../Marks.ts"
import * as Opaque from "./opaque.ts"

/** The part of `Wire.Rules` that is about single messages; structural, so that nothing imports upwards. */
export interface SendRules {
  readonly system: "anywhere" | "first" | "single"
  readonly text: "any" | "nonEmpty" | "nonBlank"
  readonly reasoning: "any" | "followed"
}

/** The text of the synthetic result of a call that nobody will answer any more. */
const abandonedText = "[no result: the call was interrupted]"

/** The text of the synthetic result of a call whose tool has not answered yet. */
export const runningText = "[no result yet: the tool is still running]"

/** The word that stands where something empty cannot be left out. */
export const placeholderText = "[empty]"

/** The text of the synthetic first user message. */
export const firstUserText = "<system-reminder source=\"context-compaction\">\n" +
  "Earlier messages of this conversation were left out. It continues below.\n" +
  "</system-reminder>"

const machine: Marks.Marks = { source: "context-compaction" }

/** Answers the call at `index` of its message. What its id says already is not said again. */
const synthetic = (
  calls: ReadonlyArray<Pick<Prompt.ToolCallPart, "id" | "name">>,
  index: number,
  result: string,
  isFailure: boolean
): Prompt.ToolResultPart => {
  const { id, name } = calls[index]!
  const isFirst = calls.findIndex((call) => call.id === id) === index
  return Marks.set(
    Prompt.makePart("tool-result", { id, name, isFailure, result, providerExecuted: false }),
    isFirst ? machine : { ...machine, call: index }
  )
}

/** Answers a call that a later assistant or human message has passed by: one of these, which one message makes. */
export const abandonedResult = (
  calls: ReadonlyArray<Pick<Prompt.ToolCallPart, "id" | "name">>,
  index: number
): Prompt.ToolResultPart => synthetic(calls, index, abandonedText, true)

/** Answers a call that is still running, so that the request is accepted; the real result takes its place later. */
export const runningResult = (
  calls: ReadonlyArray<Pick<Prompt.ToolCallPart, "id" | "name">>,
  index: number
): Prompt.ToolResultPart => synthetic(calls, index, runningText, false)

const firstUserMessage = Marks.set(
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: firstUserText })] }),
  { ...machine, ephemeral: true }
)

/** The user message that opens a conversation whose first messages are gone: always the same object. */
export const firstUser = (): Prompt.UserMessage => firstUserMessage

/** Whether a text part may not be sent with this text. A search, not `trim`: long texts are not copied. */
const refusesText = (text: string, rules: Pick<SendRules, "text">): boolean =>
  rules.text === "nonBlank" ? !/\S/.test(text) : rules.text === "nonEmpty" && text === ""

/** Whether a provider keeps state on the part (a signature, an item id): such a part is an item of its own for it. */
export const hasProviderState = (part: Prompt.Part): boolean => {
  for (const provider in part.options) {
    if (provider !== Marks.key && part.options[provider] !== null && part.options[provider] !== undefined) return true
  }
  return false
}

const isSigned = (part: Prompt.Part | undefined): boolean => part?.type === "reasoning" && hasProviderState(part)

/** One thing in a message that may not be sent, and what `fixMessage` does about it; `part` is undefined for the whole. */
export interface Fault {
  readonly rule: "text" | "reasoning" | "empty" | "opaque"
  readonly part: number | undefined
  readonly detail: string
  readonly fix: "drop" | "word" | "output" | "opaque"
}

const none: ReadonlyArray<Fault> = []
const whole: Fault = { rule: "empty", part: undefined, detail: "nothing is left that could be sent", fix: "drop" }
const wholeFaults: ReadonlyArray<Fault> = [whole]

const refusesOutput = (part: Prompt.ToolResultPart, rules: SendRules): boolean =>
  part.modelOutput !== undefined &&
  (part.modelOutput.length === 0 || part.modelOutput.some((_) => _.type === "text" && refusesText(_.text, rules)))

/**
 * Everything in one message that may not be sent, judged alone.
 *
 * Reasoning without provider state is no content: no provider accepts it back, adapters leave it out. An approval request
 * keeps its message, yet nothing of it reaches a provider.
 */
export const faults = (message: Prompt.Message, rules: SendRules): ReadonlyArray<Fault> => {
  if (message.role === "system") return refusesText(message.content, rules) ? wholeFaults : none
  let found: Array<Fault> | undefined
  const add = (rule: Fault["rule"], part: number, detail: string, fix: Fault["fix"]) =>
    (found ??= []).push({ rule, part, detail, fix })
  const content: ReadonlyArray<Prompt.Part> = message.content
  let asks = false
  let signedSinceItem = false
  let hasSigned = false
  let isSent = false
  // Where the last part stands that can follow reasoning. The result of a provider's call cannot: it is of the call's item.
  let lastItem = -1
  let previous: Prompt.Part | undefined
  for (let i = 0; i < content.length; i++) {
    const part = content[i]!
    if (part.type === "text" && refusesText(part.text, rules) && Opaque.itemOf(part) !== undefined) {
      add("opaque", i, "the item that stands here cannot be held", "opaque")
    } else if (part.type === "text" && refusesText(part.text, rules)) {
      // The item that a signed reasoning led to cannot go without it.
      const follower = rules.reasoning === "followed" && isSigned(previous) && hasProviderState(part)
      add("text", i, part.text === "" ? "the text is empty" : "the text is blank", follower ? "word" : "drop")
      if (!follower) continue
    }
    if (part.type === "tool-result" && refusesOutput(part, rules)) {
      add("text", i, `the output for the model of the result ${part.id} is empty`, "output")
    }
    previous = part
    if (part.type === "tool-approval-request") asks = true
    else if (part.type !== "reasoning") {
      isSent = true
      if (part.type === "tool-result") continue
      lastItem = i
      signedSinceItem = false
    } else if (isSigned(part)) {
      signedSinceItem = true
      hasSigned = true
    }
  }
  const dropsReasoning = rules.reasoning === "followed" && signedSinceItem
  isSent ||= hasSigned && !dropsReasoning
  if (!isSent && !asks) return found === undefined ? wholeFaults : [...found, whole]
  if (dropsReasoning || !isSent) {
    for (let i = lastItem + 1; i < content.length; i++) {
      if (content[i]!.type !== "reasoning") continue
      if (dropsReasoning) add("reasoning", i, "nothing follows the signed reasoning", "drop")
      else add("empty", i, "the message holds nothing else that could be sent", "drop")
    }
  }
  return found ?? none
}

/** Whether words are sent for an item of the message, since the provider cannot hold it. */
export const leavesOut = (message: Prompt.Message, rules: Pick<SendRules, "text">): boolean => {
  if (message.role === "system" || message.role === "tool" || rules.text === "any") return false
  for (const part of message.content) if (Opaque.itemOf(part) !== undefined) return true
  return false
}

const word = (part: Prompt.Part): Prompt.Part => part.type === "text" ? { ...part, text: placeholderText } : part

const left = (part: Prompt.Part): Prompt.Part => {
  const item = Opaque.itemOf(part)
  return part.type === "text" && item !== undefined ? { ...part, text: Opaque.wordsFor(item) } : part
}

const output = (part: Prompt.Part, rules: SendRules): Prompt.Part => {
  if (part.type !== "tool-result" || part.modelOutput === undefined) return part
  const kept = part.modelOutput.filter((_) => _.type !== "text" || !refusesText(_.text, rules))
  return {
    ...part,
    modelOutput: kept.length > 0 ? kept : [Prompt.makePart("text", { text: placeholderText })]
  }
}

/**
 * Makes one message sendable: undefined when nothing of it can be sent, the same object when nothing is wrong.
 *
 * A message that holds a call, a result or an approval is never dropped: an empty output gets one word instead.
 */
export const fixMessage = (message: Prompt.Message, rules: SendRules): Prompt.Message | undefined => {
  const found = faults(message, rules)
  if (found.length === 0) return message
  if (found.includes(whole)) return undefined
  const fixes = new Map(found.map((fault) => [fault.part, fault.fix]))
  const content: Array<Prompt.Part> = []
  const parts: ReadonlyArray<Prompt.Part> = message.role === "system" ? [] : message.content
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!
    const fix = fixes.get(i)
    if (fix === "drop") continue
    content.push(
      fix === "word" ? word(part) : fix === "opaque" ? left(part) : fix === "output" ? output(part, rules) : part
    )
  }
  return withContent(message, content)
}

/** The message with these parts, a selection of its own ones or copies of them. */
export const withContent = (message: Prompt.Message, content: ReadonlyArray<Prompt.Part>): Prompt.Message =>
  // The parts come from this very message, so they are of the kinds its role allows; the union loses that.
  ({ ...message, content }) as Prompt.Message

/**
 * The system messages as they are sent, in their order: those without text left out, and one made of all where only one
 * is allowed. The texts are joined by an empty line; of options under one key the last wins. The same array comes back
 * when nothing is to do.
 */
export const mergeSystem = (
  systems: ReadonlyArray<Prompt.SystemMessage>,
  rules: SendRules
): ReadonlyArray<Prompt.SystemMessage> => {
  const kept = systems.some((_) => refusesText(_.content, rules))
    ? systems.filter((_) => !refusesText(_.content, rules))
    : systems
  if (rules.system !== "single" || kept.length < 2) return kept
  let options: Prompt.SystemMessageOptions = {}
  for (const system of kept) options = { ...options, ...system.options }
  return [Prompt.makeMessage("system", { content: kept.map((_) => _.content).join("\n\n"), options })]
}
