/** What a summariser answers: what is taken out of it, what is no summary, and what is known of who wrote it. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Summarizer from "effect-compaction/Summarizer"
import * as AiError from "effect/ai/AiError"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import * as Reply from "../../src/text/reply.ts"
import * as Fake from "../app/fake.ts"
import { seeded } from "../seed.ts"
import * as OneLog from "../session/oneLog.ts"
import * as Sessions from "./Sessions.ts"

const { short, withSummary } = Sessions

const byHand = withSummary({ trigger: 1 })

const textOf = (message: Prompt.Message): string =>
  typeof message.content === "string"
    ? message.content
    : (message.content as ReadonlyArray<Prompt.Part>).map((part) => part.type === "text" ? part.text : "").join("")

/** Compacts ten turns by hand: how that ends, the checkpoint in the next request, and the events. */
const compacted = Effect.fnUntraced(function*(service: Summarizer.Service) {
  const { manager, told } = yield* Sessions.watched(byHand, { summarizer: service })
  yield* Sessions.playToTrigger(manager)
  const exit = yield* Effect.exit(manager.compactNow())
  const { prompt } = yield* manager.request
  const checkpoint = prompt.content.map(textOf).find((text) => text.includes("source=\"context-summary\""))
  return { exit, checkpoint, events: yield* told, status: yield* manager.status }
})

const ofText = (text: string) => compacted(Sessions.saying(text).service)

const tagOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string =>
  Exit.isSuccess(exit)
    ? "Success"
    : exit.cause.reasons.map((each) => each._tag === "Fail" ? each.error._tag : each._tag)[0]!

describe("a reply that is no summary", () => {
  const replies: ReadonlyArray<readonly [string, string]> = [
    ["a refusal", "I'm sorry, but I can't help with that request."],
    ["a refusal with another apostrophe", "I’m sorry, I can’t assist with that."],
    ["a refusal in the sections", "## Request\n\n- I cannot summarise this conversation.\n\n## Next\n\n- none"],
    ["a refusal in another language", "Es tut mir leid, dabei kann ich nicht helfen."],
    ["a question back", "Sure! What would you like me to do next?"],
    ["the next step of the work", "Let me look at the remaining files."],
    ["an answer without the sections", "The parser is fixed and all of the tests pass now. ".repeat(20)],
    ["sections of something else", "## Ingredients\n\n- flour\n- two eggs\n\n## Steps\n\n- mix them"]
  ]
  for (const [name, text] of replies) {
    it.effect(`${name} is refused, and nothing is replaced`, () =>
      Effect.gen(function*() {
        const { checkpoint, events, exit, status } = yield* ofText(text)
        assert.strictEqual(tagOf(exit), "NotASummary")
        assert.isUndefined(checkpoint)
        const last = events.at(-1)!
        assert.deepStrictEqual(last._tag === "SummaryRefused" ? last.cause : last._tag, "notSummary")
        assert.strictEqual(status.summary, "idle")
      }))
  }

  it("three words for a very long span are too few", () => {
    const asked = { headings: ["state"], tokens: 200_000 }
    assert.include(Reply.faultOf("## State\n\n- all is done", asked) ?? "", "too few")
    assert.isUndefined(Reply.faultOf("## State\n\n- all is done", { ...asked, tokens: 20_000 }))
  })

  it.effect("the ladder serves a session whose summariser always declines", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying("I'm sorry, I can't.")
      const { events, manager } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      const requests = yield* Sessions.play(manager, 12, 20)
      assert.isTrue(events.some((event) => event._tag === "Compacted"))
      requests.forEach(({ count }) => assert.isAtMost(count.tokens, 10_000))
    }))

  const summaries: ReadonlyArray<readonly [string, string]> = [
    ["bold headings", "**Request**\n- read the files\n\n**Next step**\n- read the next one"],
    ["numbered headings", "## 1. Request\n- read the files\n\n## 2. State\n- half of them are read"],
    ["open questions in their section", "## Open\n\n- Which of the files should be read first?"],
    [
      "a state that speaks of being unable",
      "## State\n\n- The build was broken.\n- I cannot run the tests without a network."
    ]
  ]
  for (const [name, text] of summaries) {
    it.effect(`${name} are a summary`, () =>
      Effect.gen(function*() {
        assert.strictEqual(tagOf((yield* ofText(text)).exit), "Success")
      }))
  }

  it.effect("asks for the sections of a directive of one's own, and none of who has no form", () =>
    Effect.gen(function*() {
      const play = Effect.fnUntraced(function*(text: string, directive: string, headings?: ReadonlyArray<string>) {
        const { requests, service } = Sessions.saying(text)
        const settings = withSummary({ trigger: 1, directive })
        const { manager } = yield* Sessions.watched(settings, {
          summarizer: headings === undefined ? service : { ...service, headings }
        })
        yield* Sessions.playToTrigger(manager)
        const exit = yield* Effect.exit(manager.compactNow())
        assert.isTrue(textOf(requests[0]!.prompt.content.at(-1)!).startsWith(directive))
        return tagOf(exit)
      })
      const own = "Summarise.\n\n## Log\nWhat happened."
      assert.strictEqual(yield* play("## Log\n\n- the files were read", own), "Success")
      assert.strictEqual(yield* play("## State\n\n- the files were read", own), "NotASummary")
      assert.strictEqual(yield* play("The files were read.", "Summarise in a sentence."), "Success")
      assert.strictEqual(yield* play("The files were read.", own, []), "Success")
      assert.strictEqual(yield* play("I'm sorry, I can't.", own, []), "NotASummary")
    }))
})

describe("reasoning in a reply", () => {
  const secret = `PRIVATE ${"hm ".repeat(99)}`
  const replies: ReadonlyArray<readonly [string, string]> = [
    ["in an element before it", `<think>${secret}</think>\n${short}`],
    ["in upper case, with an attribute", `<THINKING type="x">${secret}</THINKING>\n\n${short}`],
    ["in several elements", `<think>${secret}</think>\n<reasoning>${secret}</reasoning>\n${short}`],
    ["in elements within each other", `<think>a<think>${secret}</think>${secret}</think>\n${short}`],
    ["in the midst of it", short.replace("## Next", `<think>${secret}</think>\n\n## Next`)],
    ["whose beginning stands in the prompt", `${secret}</think>\n${short}`],
    ["that was never ended, behind it", `${short}\n<think>${secret}`],
    ["in brackets", `[THINK]${secret}[/THINK]${short}`],
    ["in signs of its own", `◁think▷${secret}◁/think▷${short}`],
    [
      "in a channel of its own",
      `<|channel|>analysis<|message|>${secret}<|end|><|channel|>final<|message|>${short}<|return|>`
    ],
    ["before an element with the summary", `<analysis>${secret}</analysis>\n<summary>\n${short}\n</summary>`],
    ["before a fence with the summary", `<think>${secret}</think>\n\`\`\`markdown\n${short}\n\`\`\``]
  ]
  for (const [name, text] of replies) {
    it.effect(`${name} is left out`, () =>
      Effect.gen(function*() {
        const { checkpoint, exit } = yield* ofText(text)
        assert.strictEqual(tagOf(exit), "Success")
        assert.notInclude(checkpoint, "PRIVATE")
        assert.notMatch(checkpoint!, /think>|```|<\|/i)
        for (const line of short.split("\n")) assert.include(checkpoint, line)
      }))
  }

  it.effect("alone says nothing", () =>
    Effect.gen(function*() {
      for (const text of [`<think>${secret}</think>`, `<think>${secret}`, `<think>${secret}</think>\n\n## Request\n`]) {
        assert.strictEqual(tagOf((yield* ofText(text)).exit), "SummaryEmpty", text.slice(-20))
      }
    }))

  it.effect("a tag that a summary talks about stays", () =>
    Effect.gen(function*() {
      const text = `${short}\n- strip \`<think>\` and \`</think>\` from replies`
      assert.include((yield* ofText(text)).checkpoint, "- strip `<think>` and `</think>` from replies")
    }))
})

const Read = Tool.make("read", {
  description: "reads",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String
})
const Kit = Toolkit.make(Read)
const Handlers = Kit.toLayer({ read: ({ path }) => Effect.succeed(`${path}\n${"a line\n".repeat(150)}`) })

const plainModel = (seen: Fake.Seen, answer: Fake.Answer) =>
  LanguageModel.LanguageModel.pipe(Effect.provide(Fake.model(seen, () => Effect.succeed(answer))))

describe("a language model", () => {
  const asked = (parts: Fake.Answer) =>
    Effect.flatMap(plainModel(Fake.nothingSeen(), parts), (model) =>
      compacted(
        Summarizer.fromModel(model, {
          generate: (given, prompt) =>
            given.generateText({ prompt, toolkit: Kit, toolChoice: "none", disableToolCallResolution: true }).pipe(
              Effect.provide(Handlers)
            )
        })
      ))

  it.effect("that calls a tool writes no summary, whatever it says beside", () =>
    Effect.gen(function*() {
      const call = { type: "tool-call", id: "z", name: "read", params: { path: "a" } } as const
      for (const reason of ["tool-calls", "stop"] as const) {
        const { exit } = yield* asked([{ type: "text", text: short }, call, Fake.finish(10, reason)])
        assert.strictEqual(tagOf(exit), "NotASummary")
      }
    }))

  it.effect("that was ended early writes none", () =>
    Effect.gen(function*() {
      const ends: ReadonlyArray<readonly [Response.FinishReason, string]> = [
        ["length", "SummaryTruncated"],
        ["pause", "NotASummary"],
        ["error", "SummarizerFailed"],
        ["content-filter", "SummarizerFailed"],
        ["stop", "Success"],
        ["unknown", "Success"]
      ]
      for (const [reason, tag] of ends) {
        const { exit } = yield* asked([{ type: "text", text: short }, Fake.finish(10, reason)])
        assert.strictEqual(tagOf(exit), tag, reason)
      }
    }))

  it.effect("is recorded as its answer says, with what its call was billed", () =>
    Effect.gen(function*() {
      const answer: Fake.Answer = [
        { type: "response-metadata", id: "r", modelId: "small-2026-01-01" },
        { type: "text", text: `<think>hm</think>${short}` },
        {
          type: "finish",
          reason: "stop",
          usage: {
            inputTokens: { uncached: 10, cacheRead: 5_000, cacheWrite: 40, total: 5_050 },
            outputTokens: { total: 80, text: 80, reasoning: undefined }
          },
          response: undefined
        }
      ]
      const spans: Array<Tracer.Span> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const program = Effect.gen(function*() {
        const store = yield* OneLog.memory
        const manager = yield* ContextManager.open("s", seeded({ settings: byHand })).pipe(
          OneLog.provide(store)
        )
        yield* Sessions.playToTrigger(manager)
        assert.isTrue(Option.isSome(yield* manager.compactNow()))
        return (yield* store.read({ whole: true })).events
      })
      const named = Model.make("openai", "small", Fake.model(Fake.nothingSeen(), () => Effect.succeed(answer)))
      const log = yield* program.pipe(
        Effect.provide(Summarizer.layerModel().pipe(Layer.provide(named))),
        Effect.withTracer(tracer)
      )
      const noted = log.find((event) => (event as { readonly _tag: string })._tag === "Summarised")
      const evidence = {
        purpose: "compaction",
        provider: "openai",
        model: "small-2026-01-01",
        layout: "standalone",
        fallback: "noTools",
        input: 5_050,
        cacheRead: 5_000,
        cacheWrite: 40,
        output: 80,
        milliseconds: 0
      }
      assert.deepInclude(noted, { ...evidence, text: short, raw: `<think>hm</think>${short}` })
      assert.isAbove((noted as { readonly outputLimit: number }).outputLimit, 100)
      const span = spans.find(({ name }) => name === "compaction.summary")!
      const attributes = Object.fromEntries(span.attributes)
      assert.deepInclude(attributes, {
        purpose: "compaction",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.response.model": "small-2026-01-01",
        "gen_ai.usage.input_tokens": 5_050,
        "gen_ai.usage.output_tokens": 80,
        "gen_ai.usage.cache_read.input_tokens": 5_000
      })
    }))
})

describe("the tools of the conversation", () => {
  /** A provider that refuses calls in the messages without the tools, as Bedrock does. */
  const strict = (seen: Fake.Seen) =>
    Fake.model(seen, (n, options) => {
      const hasCalls = options.prompt.content.some((message) => message.role === "tool")
      if (hasCalls && options.tools.length === 0) {
        return Effect.fail(Fake.failure(new AiError.InvalidRequestError({ description: "toolConfig must be defined" })))
      }
      const isSummary = textOf(options.prompt.content.at(-1)!).includes("is going to be replaced by a summary")
      if (isSummary) return Effect.succeed(Fake.text(short, 10))
      return Effect.succeed(n > 40 ? Fake.text("done", 10) : Fake.call(`c${n}`, 10, "read", { path: `f${n}` }))
    })

  class App extends ContextManager.Service<App>()(
    "test/Tools",
    seeded({
      settings: { maxTokens: 5_000, notice: false, protectedToolResults: 2, summary: {} }
    })
  ) {}

  const isOfSummary = ({ prompt }: LanguageModel.ProviderOptions) =>
    textOf(prompt.content.at(-1)!).includes("is going to be replaced by a summary")

  for (const mode of ["generateText", "streamText"] as const) {
    it.effect(`go along with the call for a summary, and none may be called: ${mode}`, () =>
      Effect.gen(function*() {
        const seen = Fake.nothingSeen()
        const model = strict(seen)
        const ready = yield* Effect.gen(function*() {
          const chat = yield* Chat.fromPrompt("Read the files.")
          const manager = yield* App
          const told: Array<unknown> = []
          yield* manager.events.pipe(
            Stream.runForEach((event) =>
              Effect.sync(() => event._tag === "SummaryReady" && told.push([event.layout, event.fallback]))
            ),
            Effect.forkScoped({ startImmediately: true })
          )
          for (let calls = 1, n = 0; calls > 0 && n < 40; n++) {
            if (mode === "generateText") {
              calls = (yield* chat.generateText({ prompt: [], toolkit: Kit })).toolCalls.length
            } else {
              const parts = yield* Stream.runCollect(chat.streamText({ prompt: [], toolkit: Kit }))
              calls = parts.filter((part) => part.type === "tool-call").length
            }
            yield* Sessions.settle
          }
          return told
        }).pipe(
          Effect.provide([
            Handlers,
            CompactedModel.withCompaction(model),
            App.layer.pipe(Layer.provide(Summarizer.layerModel().pipe(Layer.provide(model))))
          ])
        )
        const summaries = seen.options.filter(isOfSummary)
        assert.isAtLeast(summaries.length, 1)
        for (const { toolChoice, tools } of summaries) {
          assert.deepStrictEqual([tools.map(({ name }) => name), toolChoice], [["read"], "none"])
        }
        assert.deepInclude(ready, ["suffix", null])
      }))
  }

  it.effect("that nobody knows make it text, and the event says so", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = yield* LanguageModel.LanguageModel.pipe(Effect.provide(strict(seen)))
      const { events, exit } = yield* compacted(Summarizer.fromModel(model))
      assert.strictEqual(tagOf(exit), "Success")
      const ready = events.find((event) => event._tag === "SummaryReady")!
      assert.deepStrictEqual([ready.layout, ready.fallback], ["standalone", "noTools"])
      assert.strictEqual(seen.prompts.length, 1)
    }))

  it.effect("that an app provides around its requests are kept for a summary by hand", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = yield* LanguageModel.LanguageModel.pipe(Effect.provide(strict(seen)))
      const { manager } = yield* Sessions.watched(byHand, { summarizer: Summarizer.fromModel(model) })
      yield* Effect.provideService(Sessions.playToTrigger(manager), Summarizer.Tools, Kit.tools)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      assert.deepStrictEqual(seen.options.map(({ tools }) => tools.length), [1])
    }))

  it.effect("are not needed where there are no calls", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = yield* LanguageModel.LanguageModel.pipe(Effect.provide(strict(seen)))
      const { manager, told } = yield* Sessions.watched(byHand, { summarizer: Summarizer.fromModel(model) })
      for (let n = 0; n < 8; n++) {
        yield* manager.append([
          { role: "user", content: `and ${n} ${"why ".repeat(300)}` },
          { role: "assistant", content: "because ".repeat(200) }
        ])
        yield* manager.request
      }
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      assert.deepStrictEqual((yield* told).flatMap((event) => event._tag === "SummaryReady" ? [event.layout] : []), [
        "suffix"
      ])
    }))
})
