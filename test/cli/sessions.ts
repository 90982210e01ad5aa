/** Sessions in the shape of OpenAI's chat messages. */

export interface Turns {
  /** How many calls with their results. */
  readonly count: number
  /** Characters of each result. */
  readonly characters: number
  /** Characters of the system message. */
  readonly system?: number
}

const line = "src/format/Reader.ts:42: every result is named after the latest earlier call with its id\n"

const textOf = (characters: number): string => line.repeat(Math.ceil(characters / line.length)).slice(0, characters)

/** A task, then calls with results, then an answer: two messages a turn and three around them. */
export const openAiChat = ({ characters, count, system = 200 }: Turns): string => {
  const messages: Array<unknown> = [
    { role: "system", content: textOf(system) },
    { role: "user", content: "Find every place where a result is named after its call." }
  ]
  for (let turn = 0; turn < count; turn++) {
    const id = `call_${turn}`
    messages.push({
      role: "assistant",
      content: `Searching file ${turn}.`,
      tool_calls: [{ id, type: "function", function: { name: "grep", arguments: JSON.stringify({ file: turn }) } }]
    })
    messages.push({ role: "tool", tool_call_id: id, content: `${turn}: ${textOf(characters)}` })
  }
  messages.push({ role: "assistant", content: "All of them are in the reader." })
  return JSON.stringify({ model: "gpt-4o", messages })
}
