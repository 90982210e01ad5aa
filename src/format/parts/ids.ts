/**
 * Ids that a reader makes for calls whose file has none.
 *
 * They are legal under the rule of every provider: Anthropic takes letters, digits, `_` and `-`; OpenAI takes 64
 * characters. They follow from the file alone, so that reading it again makes the same.
 */

const refused = /[^a-zA-Z0-9_-]+/g
const longest = 64

/** An id from a word that tells a person what it is, and from a number that no other made id of the file has. */
export const make = (word: string, number: number): string => {
  const tail = `_${number}`
  const head = word.replace(refused, "_").slice(0, longest - tail.length)
  return (head === "" ? "call" : head) + tail
}
