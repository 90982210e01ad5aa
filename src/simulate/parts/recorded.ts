import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../../Marks.ts"
import * as Standing from "../../text/standing.ts"
import * as Text from "../../text/text.ts"
import * as Identifiers from "./identifiers.ts"
import * as Random from "./random.ts"

/** Words of a person, and the position of the message that says them. */
export interface Line {
  readonly at: number
  readonly text: string
}

/** What of a session does not depend on a policy. */
export interface Index {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly price: (message: Prompt.Message) => number
  readonly prices: ReadonlyArray<number>
  /** Where each identifier is said, oldest first. */
  readonly said: ReadonlyMap<string, ReadonlyArray<number>>
  /** The same for those inside results, which no end of them says. */
  readonly inside: ReadonlyMap<string, ReadonlySet<number>>
  readonly people: ReadonlyArray<Line>
  readonly instructions: ReadonlyArray<Line>
  /** Where the recording was compacted first; behind its end when it never was. */
  readonly compacted: number
  /** The rank of each message in a random order. */
  readonly ranks: ReadonlyArray<number>
}

export const isPersons = (message: Prompt.Message): boolean => {
  if (message.role !== "user") return false
  const { ephemeral, source } = Marks.of(message)
  return ephemeral !== true && (source === undefined || !Marks.machineSources.has(source))
}

/** The ends of a result that every way of shortening keeps: its first and last lines, up to so many characters. */
const endChars = 400

const insideOf = (message: Prompt.Message): ReadonlySet<string> => {
  if (message.role !== "tool") return new Set()
  const inside = new Set<string>()
  for (const part of message.content) {
    if (part.type !== "tool-result") continue
    const text = Text.ofResult(part)
    if (text.length <= 2 * endChars) continue
    const ends = Identifiers.ofText(`${text.slice(0, endChars)}\n${text.slice(-endChars)}`)
    for (const each of Identifiers.ofText(text.slice(endChars, -endChars))) if (!ends.has(each)) inside.add(each)
  }
  return inside
}

const push = (map: Map<string, Array<number>>, key: string, at: number): void => {
  const known = map.get(key)
  if (known === undefined) map.set(key, [at])
  else known.push(at)
}

/**
 * What is known of a session beside its messages: what they cost, which instructions were planted, and at which other
 * positions words of people were. `seed` is that of the control of random messages.
 */
export interface Options {
  readonly price: (message: Prompt.Message) => number
  readonly seed?: number
  readonly instructions?: ReadonlyArray<Line>
  readonly planted?: ReadonlyArray<number>
}

/** Reads a session once, for all views of it. Planted words are no words of people. */
export const index = (messages: ReadonlyArray<Prompt.Message>, options: Options): Index => {
  const planted = new Set([...options.planted ?? [], ...(options.instructions ?? []).map(({ at }) => at)])
  const said = new Map<string, Array<number>>()
  const inside = new Map<string, Set<number>>()
  const people: Array<Line> = []
  messages.forEach((message, at) => {
    if (message.role === "system") return
    for (const each of Identifiers.of(message)) push(said, each, at)
    for (const each of insideOf(message)) {
      const known = inside.get(each)
      if (known === undefined) inside.set(each, new Set([at]))
      else known.add(at)
    }
    const text = isPersons(message) ? Text.ofMessage(message).trim() : ""
    if (text !== "" && text.length <= Standing.pasteChars && !planted.has(at)) people.push({ at, text })
  })
  const random = Random.make(options.seed ?? 1)
  const compacted = messages.findIndex((message) => Marks.of(message).source === "context-summary")
  return {
    messages,
    price: options.price,
    prices: messages.map(options.price),
    said,
    inside,
    people,
    instructions: options.instructions ?? [],
    compacted: compacted < 0 ? messages.length : compacted,
    ranks: messages.map(() => random())
  }
}
