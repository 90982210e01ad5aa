import * as NodeServices from "@effect/platform-node/NodeServices"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as Conversations from "effect-compaction/Conversations"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as Fake from "./fake.ts"

/**
 * Goes on with the chat of a directory by one call of the model, writes into a journal beside it what was done to the world,
 * and kills its own process at the moment at which the call returns: nothing is closed, flushed or finalised after it.
 */
const [directory = "", method = "generate"] = process.argv.slice(2)

const journal = (line: string) => Effect.sync(() => fs.appendFileSync(`${directory}.journal`, `${line}\n`))

const Pay = Tool.make("pay", { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String })
const Kit = Toolkit.make(Pay)

const model = Fake.model(
  Fake.nothingSeen(),
  (_, { prompt }) =>
    Effect.as(
      journal("asked"),
      prompt.content.at(-1)?.role === "tool" ? Fake.text("It is paid.", 9) : Fake.call("c1", 9, "pay")
    )
)

const program = Effect.gen(function*() {
  const conversations = yield* Conversations.make({ settings: { maxTokens: 4_000 } })
  const chat = yield* conversations.chat("user-42")
  const { content } = yield* Ref.get(chat.history)
  yield* journal(`opened with ${content.map(({ role }) => role).join(", ")}`)
  const last = content.at(-1)?.role
  // As any agent: the person's words first, then on for as long as there are results that nobody answered.
  if (last === "assistant") return
  const call = { prompt: last === undefined ? "Pay the bill." : [], toolkit: Kit }
  yield* method === "stream" ? Stream.runDrain(chat.streamText(call)) : chat.generateText(call)
  process.kill(process.pid, "SIGKILL")
})

await program.pipe(
  Effect.provide([
    CompactedModel.withCompaction(model),
    Kit.toLayer({ pay: () => Effect.as(journal("paid"), "paid") }),
    SessionStore.layerFile(directory).pipe(Layer.provide(NodeServices.layer))
  ]),
  Effect.scoped,
  Effect.runPromise
)
