/**
 * What was typed while the model worked. The client puts it into a queue and notes each step: `enqueue` with the text, then
 * `dequeue` (the text follows as a line of the user), `popAll` (the person took it back), or `remove` (the model was told at
 * once; versions differ in whether an attachment says so too).
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Schema from "effect/Schema"

interface Queued {
  readonly text: string
  readonly messages: ReadonlyArray<Prompt.Message>
}

/** Words that were removed from the queue, until the file says them a second time; `turn` is when. */
interface Told {
  readonly text: string
  readonly turn: number
  readonly row: object
}

export interface Queue {
  waiting: Array<Queued>
  told: Array<Told>
  /** How many words an attachment told before their removal was noted. */
  early: number
}

export const make = (): Queue => ({ waiting: [], told: [], early: 0 })

/** The words of messages, by which a second telling is known. */
const textOf = (messages: ReadonlyArray<Prompt.Message>): string =>
  messages.flatMap((message) =>
    message.role === "user" ? message.content.map((part) => part.type === "text" ? part.text : "") : []
  ).join("\n")

export const enqueue = (self: Queue, messages: ReadonlyArray<Prompt.Message>): void => {
  self.waiting.push({ text: textOf(messages), messages })
}

/** Takes one out: the one with the text where it is named, else the oldest. */
const take = (self: Queue, content: Schema.Json | undefined): Queued | undefined => {
  const named = typeof content === "string" ? self.waiting.findIndex(({ text }) => text === content) : -1
  return self.waiting.splice(Math.max(0, named), 1)[0]
}

/** A step that takes words out of the queue without telling the model: they come again, or never. */
export const drop = (self: Queue, operation: string, content: Schema.Json | undefined): void => {
  if (operation === "popAll" && typeof content !== "string") self.waiting = []
  else take(self, content)
}

/**
 * The words that a removal tells the model; `undefined` where the file tells them elsewhere already, `"unknown"` where it
 * does not hold them.
 */
export const remove = (
  self: Queue,
  content: Schema.Json | undefined
): ReadonlyArray<Prompt.Message> | "unknown" | undefined => {
  const taken = take(self, content)
  if (taken !== undefined) return taken.messages
  if (self.early === 0) return "unknown"
  self.early--
  return undefined
}

/** Notes that a row tells words at their removal. */
export const tell = (self: Queue, messages: ReadonlyArray<Prompt.Message>, turn: number, row: object): void => {
  self.told.push({ text: textOf(messages), turn, row })
}

/**
 * The row that told these words at their removal, when the file says them again: in an attachment, or in a line of the user
 * before the model answered (`turn`).
 */
export const again = (
  self: Queue,
  messages: ReadonlyArray<Prompt.Message>,
  turn: number | undefined
): object | undefined => {
  const text = textOf(messages)
  const at = self.told.findIndex((told) => told.text === text && (turn === undefined || told.turn === turn))
  if (at >= 0) return self.told.splice(at, 1)[0]?.row
  const waiting = turn === undefined ? self.waiting.findIndex((queued) => queued.text === text) : -1
  if (waiting >= 0) {
    self.waiting.splice(waiting, 1)
    self.early++
  }
  return undefined
}
