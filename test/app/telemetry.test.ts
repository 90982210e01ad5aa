import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Policy from "effect-compaction/Policy"
import * as SessionStore from "effect-compaction/SessionStore"
import type * as Settings from "effect-compaction/Settings"
import * as Price from "effect-compaction/simulate/Price"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Simulation from "effect-compaction/simulate/Simulation"
import * as Summarizer from "effect-compaction/Summarizer"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import * as Tracer from "effect/Tracer"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Telemetry from "../../src/session/telemetry.ts"
import { prompt, session, turn, user } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as OneLog from "../session/oneLog.ts"
import * as Fake from "./fake.ts"

const settings: Settings.Input = { protectedToolResults: 1, notice: false, maxTokens: 4_000 }

/** Runs with metrics and a tracer of its own; returns what was exported. */
const exported = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const spans: Array<Tracer.NativeSpan> = []
  const logs: Array<{
    readonly message: string
    readonly level: string
    readonly annotations: { readonly [key: string]: unknown }
  }> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  const logger = Logger.make(({ fiber, logLevel, message }) => {
    logs.push({
      message: String(message),
      level: logLevel,
      annotations: fiber.getRef(References.CurrentLogAnnotations)
    })
  })
  const metrics = yield* Effect.andThen(effect, Metric.snapshot).pipe(
    Effect.withTracer(tracer),
    Effect.provideService(Metric.MetricRegistry, new Map()),
    Effect.provide(Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Debug")))
  )
  const find = (id: string) => metrics.filter((metric) => metric.id === id)
  return {
    spans: spans.filter((span) => span.name === "compaction.boundary"),
    calls: spans.filter((span) => span.name.startsWith("LanguageModel.")),
    logs,
    find,
    count: (id: string) =>
      find(id).reduce((sum, metric) => sum + Number((metric.state as { readonly count: number | bigint }).count), 0)
  }
})

describe("telemetry", () => {
  it.effect("one span, count, histogram entry and log line for each boundary", () =>
    Effect.gen(function*() {
      let boundaries = 0
      let ratio = 0
      const { count, find, logs, spans } = yield* exported(Effect.gen(function*() {
        const self = yield* ContextManager.make(seeded({ settings }))
        yield* self.append(session)
        yield* self.request
        for (let n = 0; n < 8; n++) {
          yield* self.append(prompt(...turn(`more-${n}`, 2_000)))
          yield* self.request
        }
        yield* self.append(prompt(user("a small one")))
        yield* self.request
        const { budget, generation, reading } = yield* self.status
        boundaries = generation
        ratio = reading!.tokens / budget!.limit
      }))
      assert.isAtLeast(boundaries, 2)
      assert.strictEqual(spans.length, boundaries)
      assert.strictEqual(count("compaction_boundaries_total"), boundaries)
      assert.strictEqual(count("compaction_freed_tokens"), boundaries)
      assert.strictEqual(logs.filter((log) => log.message === "compacted").length, boundaries)
      for (const [at, span] of spans.entries()) {
        assert.strictEqual(span.status._tag, "Ended")
        assert.strictEqual(span.attributes.get("compaction.generation"), at + 1)
        const [before, after, freed] = ["before", "after", "freed"].map((key) =>
          Number(span.attributes.get(`compaction.${key}`))
        )
        assert.strictEqual(before! - after!, freed)
        assert.isAbove(Number(span.attributes.get("compaction.level")), 0)
        assert.strictEqual(span.attributes.get("compaction.kind"), "estimated")
      }
      assert.deepInclude(logs[0]?.annotations, { "compaction.generation": 1, "compaction.kind": "estimated" })
      const [occupancy] = find("compaction_occupancy_ratio")
      assert.strictEqual((occupancy!.state as { readonly value: number }).value, ratio)
      assert.isAbove(ratio, 0)
    }))

  it.effect("skips, by the clear floor", () =>
    Effect.gen(function*() {
      const { count, spans } = yield* exported(Effect.gen(function*() {
        const self = yield* ContextManager.make(seeded({ settings: { ...settings, clearAtLeast: 1_000_000 } }))
        yield* self.append(session)
        yield* Effect.exit(self.request)
        yield* self.append("more")
        yield* Effect.exit(self.request)
      }))
      assert.strictEqual(count("compaction_skips_total"), 2)
      assert.strictEqual(spans.length, 0)
    }))

  it.effect("summaries: how long they took, and what became of them", () =>
    Effect.gen(function*() {
      const slow = Summarizer.layerFromFunction(() => Effect.never)
      const { count, find } = yield* exported(
        Effect.gen(function*() {
          const self = yield* ContextManager.make(seeded({
            settings: { ...settings, maxTokens: 8_500, summary: { timeout: "2 seconds" } }
          }))
          yield* self.append(session)
          yield* self.request
          assert.strictEqual((yield* self.status).summary, "running")
          yield* TestClock.adjust("2 seconds")
        }).pipe(Effect.provide(slow))
      )
      assert.strictEqual(count("compaction_summary_failures_total"), 1)
      assert.deepStrictEqual(find("compaction_summary_failures_total")[0]?.attributes, { cause: "timeout" })
      assert.strictEqual(count("compaction_summary_milliseconds"), 1)
      const [duration] = find("compaction_summary_milliseconds")
      assert.strictEqual((duration!.state as { readonly sum: number }).sum, 2_000)
    }))

  it.effect("the span of a model's call says whether what is sent was shortened, and a tool's own call is another one", () =>
    Effect.gen(function*() {
      const Ask = Tool.make("ask", {
        parameters: Tool.EmptyParams,
        success: Schema.String,
        dependencies: [LanguageModel.LanguageModel]
      })
      const Kit = Toolkit.make(Ask)
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(
        Fake.model(seen, (_, { prompt }) =>
          Effect.succeed(
            Fake.textsOf(prompt).at(-1) === "ask" ? Fake.call("c", 1, "ask", {}) : Fake.text("done", 1)
          )),
        seeded({ settings })
      )
      const { calls } = yield* exported(
        Effect.gen(function*() {
          const self = yield* ContextManager.make(seeded({ settings }))
          const inIt = Effect.provideService(ContextManager.Current, self)
          yield* inIt(LanguageModel.generateText({ prompt: "hello" }))
          yield* inIt(LanguageModel.generateText({ prompt: session }))
          yield* inIt(Stream.runDrain(LanguageModel.streamText({ prompt: session })))
          yield* inIt(LanguageModel.generateText({ prompt: prompt(...session.content, user("ask")), toolkit: Kit }))
        }).pipe(
          Effect.provide([
            Kit.toLayer({
              ask: () => Effect.as(Effect.orDie(LanguageModel.generateText({ prompt: "of a tool" })), "asked")
            }),
            model
          ])
        )
      )
      assert.deepStrictEqual(
        calls.map((span) => [span.name, span.attributes.get("gen_ai.conversation.compacted")]),
        [
          ["LanguageModel.generateText", undefined],
          ["LanguageModel.generateText", true],
          ["LanguageModel.streamText", true],
          ["LanguageModel.generateText", true],
          ["LanguageModel.generateText", undefined]
        ]
      )
    }))

  it.effect("a pass that failed and a store that takes nothing are counted, and warned of", () =>
    Effect.gen(function*() {
      const { count, find, logs } = yield* exported(Effect.gen(function*() {
        const store = yield* OneLog.memory
        const full = Effect.fail(
          new SessionStore.SessionStoreError({ operation: "append", path: store.name, reason: "the disk is full" })
        )
        let isFull = false
        const service: SessionStore.Log = {
          ...store,
          append: (events) => Effect.suspend(() => isFull ? full : store.append(events))
        }
        const self = yield* ContextManager.open("session", seeded({ settings })).pipe(OneLog.provide(service))
        isFull = true
        yield* self.append("hello")
        yield* self.undecided({}, new Error("the index is gone"))
      }))
      assert.deepStrictEqual(find("compaction_pass_failures_total").map(({ attributes }) => attributes), [
        { error: "unknown" }
      ])
      assert.strictEqual(count("compaction_store_failures_total"), 2)
      assert.deepStrictEqual(
        logs.filter(({ level }) => level === "Warn").map(({ message }) => message).sort(),
        [
          "a pass failed, the last good view is sent",
          "the session could not be stored, and waits in memory",
          "the session could not be stored, and waits in memory"
        ]
      )
    }))

  it.effect("a session that is only played again says nothing of itself to the app", () =>
    Effect.gen(function*() {
      const { find, logs } = yield* exported(
        Simulation.run({ messages: session.content }, Policy.options(Policy.claudeCode), {
          maxTokens: 4_000,
          cache: PromptCache.none,
          price: Price.presets["claude-opus-4-5"],
          summarizer: Summarizer.extractive
        })
      )
      assert.deepStrictEqual([find("compaction_boundaries_total"), logs.filter(({ level }) => level === "Warn")], [
        [],
        []
      ])
    }))

  it("every name is documented", () => {
    const text = readFileSync(fileURLToPath(new URL("../../docs/telemetry.md", import.meta.url)), "utf8")
    const metrics = [
      Telemetry.boundaries,
      Telemetry.skips,
      Telemetry.freed,
      Telemetry.summaryDuration,
      Telemetry.summaryFailures,
      Telemetry.passFailures,
      Telemetry.storeFailures,
      Telemetry.occupancy
    ]
    for (const { id } of metrics) assert.include(text, `\`${id}\``)
    for (const name of ["boundary", "before", "after", "freed", "level", "generation", "kind"]) {
      assert.include(text, `\`compaction.${name}\``)
    }
  })
})
