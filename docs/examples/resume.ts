/**
 * A session that goes on in another process: the first one compacts and exports, the second one restores and asks for the
 * next view. Both must come to the same bytes.
 */
import * as ContextManager from "effect-compaction/ContextManager"
import * as Prompt from "effect/ai/Prompt"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const make = ContextManager.make({ settings: { maxTokens: 4_000, protectedToolResults: 1 } })

const turn = (id: string): ReadonlyArray<Prompt.Message> => [
  Prompt.makeMessage("assistant", {
    content: [Prompt.makePart("tool-call", { id, name: "read", params: { id }, providerExecuted: false })]
  }),
  Prompt.makeMessage("tool", {
    content: [
      Prompt.makePart("tool-result", {
        id,
        name: "read",
        isFailure: false,
        result: `${id} ${"word ".repeat(400)}`,
        providerExecuted: false
      })
    ]
  })
]

const encode = Schema.encodeEffect(Prompt.Prompt)

/** What the next request would send, as a digest. */
const next = Effect.fnUntraced(function*<E>(manager: ContextManager.ContextManager<E>) {
  yield* manager.append("And now?")
  const { generation, prompt } = yield* manager.request
  const bytes = JSON.stringify(yield* encode(prompt))
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 16)
  return `${prompt.content.length} messages, generation ${generation}, ${digest}`
})

const second = (file: string) =>
  Effect.gen(function*() {
    const manager = yield* make
    // The file was written by `export`; `restore` decodes it.
    yield* manager.restore(JSON.parse(readFileSync(file, "utf8")) as ContextManager.SessionState)
    yield* Console.log(yield* next(manager))
  })

const first = Effect.gen(function*() {
  const manager = yield* make
  yield* manager.append("Read them all.")
  for (let n = 0; n < 12; n++) {
    yield* manager.append(turn(`call-${n}`))
    yield* manager.request
  }
  const folder = mkdtempSync(join(tmpdir(), "effect-compaction-"))
  const file = join(folder, "session.json")
  writeFileSync(file, JSON.stringify(yield* manager.export))
  const here = yield* next(manager)
  const there = execFileSync(process.execPath, [fileURLToPath(import.meta.url), file], { encoding: "utf8" }).trim()
  rmSync(folder, { recursive: true })
  yield* Console.log(`this process:  ${here}\nother process: ${there}`)
  if (here !== there) process.exitCode = 1
})

// The program that runs this file may stand before it in the arguments; a saved session is the last one.
const saved = process.argv.at(-1)

Effect.runPromise(Effect.scoped(saved?.endsWith("session.json") ? second(saved) : first)).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
