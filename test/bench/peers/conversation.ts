/** A conversation in plain terms, which all that is compared works on, and what is judged of what is left of one. */
import * as Prompt from "effect/ai/Prompt"

type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly args: unknown }
  | { readonly type: "result"; readonly id: string; readonly name: string; readonly text: string }

export interface Message {
  readonly role: string
  readonly parts: ReadonlyArray<Part>
}

const partsOf = (part: Prompt.Part): ReadonlyArray<Part> => {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ type: "text", text: part.text }]
    case "file":
      return [{ type: "image" }]
    case "tool-call":
      return [{ type: "call", id: part.id, name: part.name, args: part.params }]
    case "tool-result": {
      const text = typeof part.result === "string" ? part.result : JSON.stringify(part.result)
      return [{ type: "result", id: part.id, name: part.name, text }]
    }
    default:
      return []
  }
}

/** A conversation in plain terms. Reasoning is left out, for not every peer has a place for it. */
export const plain = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Message> =>
  messages.flatMap((message): ReadonlyArray<Message> => {
    if (message.role === "system") return [{ role: "system", parts: [{ type: "text", text: message.content }] }]
    const content: ReadonlyArray<Prompt.Part> = message.content
    const parts = content.flatMap(partsOf)
    return parts.length === 0 ? [] : [{ role: message.role, parts }]
  })

/** The same as a prompt, so that ours works on what the peers work on. */
export const promptOf = (messages: ReadonlyArray<Message>): Prompt.Prompt =>
  Prompt.make(messages.map(({ parts, role }) => ({
    role,
    content: role === "system" ?
      parts.map((part) => part.type === "text" ? part.text : "").join("\n") :
      parts.map((part) => {
        switch (part.type) {
          case "text":
            return part
          case "image":
            return { type: "file", mediaType: "image/png", data: "" }
          case "call":
            return { type: "tool-call", id: part.id, name: part.name, params: part.args, providerExecuted: false }
          case "result":
            return { ...part, type: "tool-result", isFailure: false, result: part.text, providerExecuted: false }
        }
      })
    // Plain messages have the parts of their role, which their type does not say.
  })) as Prompt.RawInput)

const sizeOf = (part: Part): number => {
  if (part.type === "image") return 6_400
  if (part.type === "call") return (JSON.stringify(part.args) ?? "").length + part.name.length
  return part.text.length
}

export const tokensOf = (messages: ReadonlyArray<Message>): number =>
  Math.ceil(messages.flatMap(({ parts }) => parts).reduce((sum, part) => sum + sizeOf(part), 0) / 4)

export const orphansIn = (messages: ReadonlyArray<Message>): number => {
  const open = new Set<string>()
  let orphans = 0
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type === "call") open.add(part.id)
      else if (part.type === "result" && !open.delete(part.id)) orphans++
    }
  }
  return orphans + open.size
}

export const imagesIn = (messages: ReadonlyArray<Message>): number =>
  messages.flatMap(({ parts }) => parts).filter(({ type }) => type === "image").length

const wordsIn = (message: Message | undefined): string =>
  message?.parts.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n") ?? ""

/** Which of what should stay did: the system prompt, and the first and the last words of a person. */
export const keptIn = (left: ReadonlyArray<Message>, all: ReadonlyArray<Message>): string => {
  const said = (role: string) => all.filter((message) => message.role === role && wordsIn(message) !== "")
  const text = left.map(wordsIn).join("\n")
  const wanted = { system: said("system")[0], first: said("user")[0], last: said("user").at(-1) }
  return Object.entries(wanted)
    .filter(([, message]) => message !== undefined)
    .map(([name, message]) => text.includes(wordsIn(message)) ? name : `no ${name}`)
    .join(", ")
}

export interface Measured {
  readonly cold: number
  /** `null` where one call took so long that it was not repeated. */
  readonly warm: number | null
  readonly left: ReadonlyArray<Message>
}
