/**
 * What of a session the formats of providers cannot hold: items that only one API has, files, flags, options.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Format from "../format/Format.ts"
import * as Shown from "./Shown.ts"
import * as Table from "./Table.ts"

/** One thing that a format has no place for: what it is, how often it stands in the session, and in which messages, from 0. */
interface Unheld {
  readonly kind: string
  readonly what: string
  readonly count: number
  readonly messages: ReadonlyArray<number>
}

/** What each format that can be written cannot hold, the same things together, in the order of the session. */
export type ByFormat = { readonly [T in Format.Target]: ReadonlyArray<Unheld> }

const unheldBy = (to: Format.Target, messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Unheld> => {
  const found = new Map<string, { kind: string; what: string; count: number; messages: Array<number> }>()
  for (const { kind, message, what } of Format.write(to, messages).losses) {
    const key = `${kind}\n${what}`
    const known = found.get(key)
    if (known === undefined) found.set(key, { kind, what, count: 1, messages: [message] })
    else {
      known.count++
      if (known.messages.at(-1) !== message) known.messages.push(message)
    }
  }
  return [...found.values()]
}

/** Names everything that the formats cannot hold. */
export const of = (messages: ReadonlyArray<Prompt.Message>): ByFormat => ({
  "openai-chat": unheldBy("openai-chat", messages),
  "openai-responses": unheldBy("openai-responses", messages),
  "anthropic-messages": unheldBy("anthropic-messages", messages),
  prompt: unheldBy("prompt", messages)
})

/** Whether every format holds all of it. */
export const isNothing = (unheld: ByFormat): boolean => Format.Target.literals.every((to) => unheld[to].length === 0)

// A line is for people; the JSON has all of them.
const shown = 12

/** The messages as ranges. */
const places = (messages: ReadonlyArray<number>): string => {
  const ranges: Array<{ readonly from: number; to: number }> = []
  for (const at of messages) {
    const last = ranges.at(-1)
    if (last !== undefined && last.to === at - 1) last.to = at
    else ranges.push({ from: at, to: at })
  }
  const words = ranges.slice(0, shown).map(({ from, to }) =>
    from === to ? Table.number(from) : `${Table.number(from)}–${Table.number(to)}`
  )
  const more = ranges.length > shown ? " and more, see --json" : ""
  return `${messages.length === 1 ? "message" : "messages"} ${words.join(", ")}${more}`
}

/** A line for each thing that a format cannot hold, below the name of the format; none for a format that holds all. */
export const lines = (unheld: ByFormat): ReadonlyArray<string> =>
  Format.Target.literals.flatMap((to) =>
    unheld[to].map(({ count, kind, messages, what }) =>
      Shown.line(`  ${to}: ${kind} ${Table.number(count)}: ${what}; ${places(messages)}`)
    )
  )
