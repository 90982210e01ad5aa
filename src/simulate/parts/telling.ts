import * as Prompt from "effect/ai/Prompt"
import type * as Retention from "../Retention.ts"

/** A result has a body when no way of cutting it that keeps an end would keep its middle. */
const bodyChars = 1_600

/** A text with a line more: at its end, or in its middle, behind the line that is there. */
const lineIn = (text: string, line: string, source: Retention.Source): string => {
  if (source === "end") return `${text}\n${line}`
  const middle = Math.floor(text.length / 2)
  const end = text.indexOf("\n", middle)
  // A text of one line is cut in its middle.
  const at = end < 0 || end > 0.7 * text.length ? middle : end
  return `${text.slice(0, at)}\n${line}\n${text.slice(at)}`
}

/** A result with a line of text more; `undefined` when the message holds no result that is a text, or none with a body. */
export const withLine = (
  message: Prompt.Message,
  line: string,
  source: Retention.Source
): Prompt.Message | undefined => {
  if (message.role !== "tool") return undefined
  const content: ReadonlyArray<Prompt.ToolMessagePart> = message.content
  const at = content.findIndex((part) =>
    part.type === "tool-result" && typeof part.result === "string"
    && (source === "end" || part.result.length >= bodyChars)
  )
  const part = content[at]
  if (part === undefined || part.type !== "tool-result") return undefined
  return { ...message, content: content.with(at, { ...part, result: lineIn(String(part.result), line, source) }) }
}

/** A message of the assistant that says more before it calls: reasoning stays first, as its provider wants it. */
export const withWords = (message: Prompt.AssistantMessage, text: string): Prompt.AssistantMessage => {
  const call = message.content.findIndex((part) => part.type === "tool-call")
  const at = call === -1 ? message.content.length : call
  return { ...message, content: message.content.toSpliced(at, 0, Prompt.makePart("text", { text })) }
}
