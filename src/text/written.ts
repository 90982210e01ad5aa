import type * as Prompt from "effect/ai/Prompt"
import * as Text from "./text.ts"

/** A message as a person reads it; `resultChars` cuts inputs, results and reasoning, in characters. */
export const message = (self: Prompt.Message, resultChars: number | undefined): string => {
  if (self.role === "system") return `[system]\n${self.content}`
  const parts: ReadonlyArray<Prompt.Part> = self.content
  const lines = parts.map((part): string => {
    switch (part.type) {
      case "text":
        return part.text
      case "file":
        return `[${part.mediaType}]`
      case "tool-call":
        return `[call ${part.name}]\n${clip(spelled(part.params), resultChars)}`
      case "tool-result":
        return `[result]\n${clip(Text.ofResult(part), resultChars)}`
      case "reasoning":
        return clip(part.text, resultChars)
      case "tool-approval-request":
      case "tool-approval-response":
        return ""
    }
  }).filter((line) => line !== "")
  return `[${self.role}]\n${lines.join("\n")}`
}

/** The arguments of a call as a person writes them: texts stay as they are, with their quotes and their lines. */
const spelled = (value: unknown): string => {
  if (typeof value === "string") return value
  if (typeof value !== "object" || value === null) return String(value)
  return Object.entries(value).map(([key, each]) => Array.isArray(value) ? spelled(each) : `${key}: ${spelled(each)}`)
    .join("\n")
}

const clip = (text: string, limit: number | undefined): string => {
  if (limit === undefined || text.length <= limit) return text
  const half = Math.floor(limit / 2)
  return `${text.slice(0, half)}\n...[${text.length - 2 * half} chars omitted]...\n${text.slice(text.length - half)}`
}
