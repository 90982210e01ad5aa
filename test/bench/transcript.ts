/**
 * A long session as coding agents have them, made up anew from a seed: turns of one to three parallel calls, results with
 * the sizes that were measured over recorded sessions (half of them short, a tenth of them thousands of characters), what
 * the assistant says between them, and a person now and then. About 500 characters a message.
 */
import * as Prompt from "effect/ai/Prompt"

/** A linear congruential generator: the same numbers on every machine. */
const randomFrom = (seed: number) => {
  let state = seed >>> 0
  return (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const tools = ["read_file", "grep", "bash", "list", "edit"]

const pieces = [
  "  at Module._compile (node:internal/modules/cjs/loader:1358:14)\n",
  "src/server/routes/users.ts:214:  const user = await repository.find(request.params.id)\n",
  "{\"level\":\"info\",\"time\":1712345678901,\"msg\":\"request completed\",\"status\":200}\n",
  "✓ returns the last page when the cursor is past the end (12 ms)\n",
  "export const parse = (input: string): Result<Config, ParseError> => {\n",
  "\tif (!match) { throw new Error(`unexpected token \"${token}\"`) }\n",
  "+++ b/packages/core/src/index.ts\n@@ -41,7 +41,9 @@ export function create(options) {\n",
  "drwxr-xr-x  12 build build   4096 Nov 12 09:41 node_modules\n",
  "warning: unused variable `offset` at lib/decoder.rs:88:9\n",
  "The migration adds a column, so the index has to be rebuilt before the backfill runs. "
]

const textOf = (random: () => number, length: number): string => {
  let text = ""
  while (text.length < length) text += pieces[Math.floor(random() * pieces.length)]!
  return text.slice(0, length)
}

/** A length between two bounds, half of them in the lowest quarter of the logarithm. */
const lengthOf = (random: () => number, from: number, to: number): number =>
  Math.floor(from * (to / from) ** (random() ** 2))

const user = (text: string): Prompt.Message =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

/** The session that grows from a seed: `count` messages, and what completes its last turn. */
export const messages = (count: number, seed = 1): ReadonlyArray<Prompt.Message> => {
  const random = randomFrom(seed)
  const out: Array<Prompt.Message> = [
    Prompt.makeMessage("system", { content: textOf(random, 6_000) }),
    user(textOf(random, 900))
  ]
  for (let turn = 0; out.length < count; turn++) {
    if (random() < 0.04) {
      out.push(Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text: textOf(random, 600) })] }))
      out.push(user(`${turn}: ${textOf(random, lengthOf(random, 20, 900))}`))
    }
    const ids = Array.from(
      { length: random() < 0.25 ? 1 + Math.ceil(random() * 2) : 1 },
      (_, at) => `call_${turn}_${at}`
    )
    const names = ids.map(() => tools[Math.floor(random() * tools.length)]!)
    out.push(Prompt.makeMessage("assistant", {
      content: [
        ...(random() < 0.5 ? [Prompt.makePart("text", { text: textOf(random, lengthOf(random, 30, 400)) })] : []),
        ...ids.map((id, at) =>
          Prompt.makePart("tool-call", {
            id,
            name: names[at]!,
            params: { path: `src/module${turn % 97}/index.ts`, limit: 200, query: textOf(random, 40) },
            providerExecuted: false
          })
        )
      ]
    }))
    for (const [at, id] of ids.entries()) {
      const text = textOf(random, lengthOf(random, 40, 6_000))
      out.push(Prompt.makeMessage("tool", {
        content: [
          Prompt.makePart("tool-result", {
            id,
            name: names[at]!,
            isFailure: random() < 0.05,
            // Most tools return text, some a structure.
            result: random() < 0.8 ? text : { exitCode: 0, stdout: text, durationMs: Math.floor(random() * 9_000) },
            providerExecuted: false
          })
        ]
      }))
    }
  }
  return out
}

/** How many characters a prompt holds, as JSON. */
export const sizeOf = (all: ReadonlyArray<Prompt.Message>): number =>
  all.reduce((sum, message) => sum + JSON.stringify(message.content).length, 0)
