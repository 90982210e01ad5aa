/** Asks for one summary on a cluster of one: `crash` dies when it has it, before anything else has. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as CompactionWorkflow from "effect-compaction/CompactionWorkflow"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as ClusterWorkflowEngine from "effect/cluster/ClusterWorkflowEngine"
import * as SingleRunner from "effect/cluster/SingleRunner"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"

const [mode] = process.argv.slice(2)

const Model = Layer.succeed(Summarizer.Summarizer, {
  cache: "other",
  summarize: ({ text }) =>
    Effect.sync(() => {
      fs.writeSync(1, "billed\n")
      return { text: `summary of ${text}`, model: "m", usage: null, isTruncated: false }
    })
})

const Engine = ClusterWorkflowEngine.layer.pipe(
  Layer.provide(SingleRunner.layer({ runnerStorage: "memory" })),
  Layer.provide(PgClient.layer({ url: Redacted.make(process.env["POSTGRES_URL"] ?? "") })),
  Layer.provide(NodeCrypto.layer)
)

const program = Effect.gen(function*() {
  const service = yield* Summarizer.Summarizer
  const reply = yield* service!.summarize({
    prompt: Prompt.empty,
    messages: [],
    text: "a long conversation",
    layout: "standalone",
    fallback: null,
    focus: undefined,
    maxTokens: 100
  })
  if (mode === "crash") process.kill(process.pid, "SIGKILL")
  fs.writeSync(1, `${reply.text}\n`)
})

await Effect.runPromise(
  program.pipe(Effect.provide(CompactionWorkflow.layer.pipe(Layer.provide(Engine), Layer.provide(Model))))
)
process.exit(0)
