/**
 * An agent with a tool loop that reads forty files in a window that holds a few of them. The model is a script, so it runs
 * without a network: `provider.ts` is the same agent on a real one.
 */
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const Read = Tool.make("read", {
  description: "Reads a file",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String
})
const Kit = Toolkit.make(Read)
const KitLayer = Kit.toLayer({
  read: ({ path }) => Effect.succeed(`${path}\n${"export const value = 1\n".repeat(100)}`)
})

/** Calls the tool forty times, then says that it is done; remembers the size of what it was sent. */
const script = (sizes: Array<number>) =>
  Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: ({ prompt }) =>
        Effect.sync(() => {
          sizes.push(JSON.stringify(prompt.content).length)
          const n = sizes.length
          return n > 40
            ? [{ type: "text" as const, text: "I have read them all." }]
            : [{ type: "tool-call" as const, id: `call-${n}`, name: "read", params: { path: `src/file-${n}.ts` } }]
        }),
      streamText: () => Stream.empty
    })
  )

class AppContext extends ContextManager.Service<AppContext>()("app/AppContext", {
  settings: { window: 16_000, maxOutput: 2_000 }
}) {}

const sizes: Array<number> = []

const program = Effect.gen(function*() {
  const chat = yield* Chat.fromPrompt([
    { role: "system", content: "You read files." },
    { role: "user", content: "Read all the files, and tell me what they export." }
  ])
  let answer = ""
  while (answer === "") {
    const response = yield* chat.generateText({ prompt: [], toolkit: Kit })
    if (response.toolCalls.length === 0) answer = response.text
  }
  const { generation } = yield* (yield* AppContext).status
  const history = yield* Ref.get(chat.history)
  yield* Console.log(answer)
  yield* Console.log(`${history.content.length} messages in the history, ${generation} boundaries`)
  yield* Console.log(`largest request: ${Math.max(...sizes)} characters of ${JSON.stringify(history.content).length}`)
})

const model = CompactedModel.withCompaction(script(sizes))

Effect.runPromise(program.pipe(Effect.provide([KitLayer, model, AppContext.layer]))).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
