/**
 * Standing instructions to plant in a session: what a person says once and wants for good. They are looked for, word for
 * word, in the last view; see `Kept`.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"

/**
 * An instruction, and the position of the message that states it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Instruction {
  readonly at: number
  readonly text: string
}

/**
 * Instructions as people write them to coding agents.
 *
 * @category constants
 * @since 0.1.0
 */
export const samples: ReadonlyArray<string> = [
  "Never push to the main branch, I do that myself.",
  "From now on write commit messages without a prefix.",
  "Please don't touch anything under vendor.",
  "Use pnpm instead of npm in this repository.",
  "Always run the type checker before you say that you are done.",
  "Keep your answers under ten lines.",
  "Ask me before you delete a file.",
  "Reply in German, the code stays in English.",
  "No new dependencies without my consent."
]

/** What people say around an instruction: of three messages one holds it alone. */
const around: ReadonlyArray<readonly [before: string, after: string]> = [
  ["", ""],
  [
    "I looked through what came out of the last steps, and most of it reads well to me so far. ",
    " Then go on with the next point of the list that we had this morning."
  ],
  ["The second attempt looks closer to what I had in mind than the first one did. ", ""]
]

/**
 * Plants sentences in a session, each in a message of a person before an answer, spread over the thirds by turns: alone, or
 * between other words.
 *
 * @category constructors
 * @since 0.1.0
 */
export const plant = (
  messages: ReadonlyArray<Prompt.Message>,
  sentences: ReadonlyArray<string> = samples
): { readonly messages: ReadonlyArray<Prompt.Message>; readonly instructions: ReadonlyArray<Instruction> } => {
  // Before an answer nothing is open; the first answer follows what the person began with.
  const places = messages.flatMap((message, at) => message.role === "assistant" && at > 1 ? [at] : [])
  const perThird = Math.ceil(sentences.length / 3)
  const byPlace = new Map<number, Array<readonly [text: string, whole: string]>>()
  sentences.forEach((text, each) => {
    const within = (Math.floor(each / 3) + 0.5) / perThird
    const place = places[Math.floor((((each % 3) + within) / 3) * places.length)]
    if (place === undefined) return
    const [before, after] = around[Math.floor(each / 3) % around.length] ?? ["", ""]
    const known = byPlace.get(place)
    const said = [text, `${before}${text}${after}`] as const
    if (known === undefined) byPlace.set(place, [said])
    else known.push(said)
  })
  const out: Array<Prompt.Message> = []
  const instructions: Array<Instruction> = []
  messages.forEach((message, at) => {
    for (const [text, whole] of byPlace.get(at) ?? []) {
      instructions.push({ at: out.length, text })
      out.push(Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: whole })] }))
    }
    out.push(message)
  })
  return { messages: out, instructions }
}
