import { assert, describe, it } from "@effect/vitest"
import * as CompactionWorkflow from "effect-compaction/CompactionWorkflow"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import { spawnSync } from "node:child_process"
import * as Postgres from "../session/postgres.ts"
import { database } from "./database.ts"

const request = (text: string): Summarizer.Request => ({
  prompt: Prompt.empty,
  messages: [],
  text,
  layout: "standalone",
  fallback: null,
  focus: undefined,
  maxTokens: 100
})

const asking = (
  use: (service: Summarizer.Service) => Effect.Effect<void, unknown>,
  summarize: Summarizer.Service["summarize"]
) =>
  Effect.flatMap(Summarizer.Summarizer, (service) => use(service!)).pipe(
    Effect.provide(
      CompactionWorkflow.layer.pipe(
        Layer.provide(WorkflowEngine.layerMemory),
        Layer.provide(Layer.succeed(Summarizer.Summarizer, { cache: "other", summarize }))
      )
    )
  )

describe("a summary that a workflow writes", () => {
  it.effect("is written once, however often it is asked for; another one is another", () => {
    const calls: Array<string> = []
    return asking((service) =>
      Effect.gen(function*() {
        assert.strictEqual(service.cache, "other")
        const usage = { inputTokens: { total: 10, cacheRead: 3 }, outputTokens: 4 }
        for (const text of ["a", "a", "b", "a"]) {
          const reply = yield* service.summarize(request(text))
          assert.deepStrictEqual(reply, { text: `of ${text}`, model: "m", usage, isTruncated: false })
        }
        assert.deepStrictEqual(calls, ["a", "b"])
      }), ({ text }) =>
      Effect.sync(() => {
        calls.push(text)
        const usage = { inputTokens: { total: 10, cacheRead: 3 }, outputTokens: 4 }
        return { text: `of ${text}`, model: "m", usage, isTruncated: false }
      }))
  })

  it.effect("that failed is written anew when it is asked for again, and fails as it did", () => {
    let calls = 0
    return asking((service) =>
      Effect.gen(function*() {
        for (const tag of ["SummaryEmpty", "SummaryTruncated"]) {
          const error = yield* Effect.flip(service.summarize(request("a")))
          assert.strictEqual(error._tag, tag)
        }
        assert.strictEqual((yield* service.summarize(request("a"))).text, "at last")
        assert.strictEqual((yield* service.summarize(request("a"))).text, "at last")
        assert.strictEqual(calls, 3)
      }), () =>
      Effect.suspend((): ReturnType<Summarizer.Service["summarize"]> => {
        calls++
        if (calls === 1) return Effect.fail(new Summarizer.SummaryEmpty())
        if (calls === 2) return Effect.fail(new Summarizer.SummaryTruncated({ maxTokens: 100 }))
        return Effect.succeed({ text: "at last", model: null, usage: null, isTruncated: false })
      }))
  })

  it.live.skipIf(Postgres.url === undefined)(
    Postgres.title("is billed once, though its process died of it"),
    () =>
      Effect.gen(function*() {
        const { url } = yield* database
        const run = (mode: string) =>
          spawnSync(process.execPath, [".ci/ts.mjs", "test/cluster/billedOnce.ts", mode], {
            env: { ...process.env, POSTGRES_URL: url },
            encoding: "utf8",
            timeout: 60_000
          })
        const crashed = run("crash")
        assert.deepInclude(crashed, { signal: "SIGKILL", stdout: "billed\n" })
        assert.strictEqual(run("go").stdout, "summary of a long conversation\n")
      }).pipe(Effect.scoped, Effect.provide(Postgres.layer())),
    150_000
  )
})
