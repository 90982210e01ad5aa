import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import type * as Settings from "effect-compaction/Settings"
import * as AiError from "effect/ai/AiError"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as ResponseIdTracker from "effect/ai/ResponseIdTracker"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as ExecutionPlan from "effect/ExecutionPlan"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Persistence from "effect/persistence/Persistence"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { assistant, prompt, session, system, user, words } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Fake from "./fake.ts"

const settings: Settings.Input = { protectedToolResults: 1, notice: false, maxTokens: 4_000 }

const manager = (more: Settings.Input = {}) => ContextManager.make(seeded({ settings: { ...settings, ...more } }))

const Read = Tool.make("read", {
  description: "Reads a file",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String
})
const Kit = Toolkit.make(Read)
const KitLayer = Kit.toLayer({ read: ({ path }) => Effect.succeed(words(path, 3_000)) })

const collect = Effect.fnUntraced(function*<E>(self: ContextManager.ContextManager<E>) {
  const events: Array<CompactionEvent.CompactionEvent> = []
  yield* Effect.forkScoped(
    Stream.runForEach(self.events, (event) => Effect.sync(() => events.push(event))),
    { startImmediately: true }
  )
  return events
})

const within = <E>(self: ContextManager.ContextManager<E>) => Effect.provideService(ContextManager.Current, self)

const answers = (total: number) => () => Effect.succeed(Fake.text(`{"a":1}`, total))

const drain = (options: { readonly prompt: Prompt.RawInput }) => Stream.runDrain(LanguageModel.streamText(options))

const methods: ReadonlyArray<
  readonly [
    string,
    (prompt: Prompt.RawInput) => Effect.Effect<unknown, AiError.AiError, LanguageModel.LanguageModel>
  ]
> = [
  ["generateText", (prompt) => LanguageModel.generateText({ prompt })],
  ["generateObject", (prompt) => LanguageModel.generateObject({ prompt, schema: Schema.Struct({ a: Schema.Int }) })],
  ["streamText", (prompt) => drain({ prompt })]
]

describe("a decorated model", () => {
  for (const [name, send] of methods) {
    it.effect(`${name} sends the view, and its usage is observed`, () =>
      Effect.gen(function*() {
        const seen = Fake.nothingSeen()
        const self = yield* manager({ meter: "actual" })
        yield* send(session).pipe(
          within(self),
          Effect.provide(CompactedModel.withCompaction(Fake.model(seen, answers(1_234))))
        )
        assert.isBelow(Fake.textsOf(seen.prompts[0]!).join("").length, Fake.textsOf(session).join("").length)
        assert.strictEqual((yield* self.status).generation, 1)
        const { count } = yield* self.sync(session)
        assert.deepStrictEqual(count, { tokens: 1_234, kind: "usage" })
      }))

    it.effect(`${name} is untouched without a manager, and sends the same prompt when nothing is to do`, () =>
      Effect.gen(function*() {
        const seen = Fake.nothingSeen()
        const model = CompactedModel.withCompaction(Fake.model(seen, answers(1)))
        yield* Effect.provide(send(session), model)
        const self = yield* ContextManager.make(seeded())
        yield* send(session).pipe(within(self), Effect.provide(model))
        assert.isTrue(seen.prompts[0] === session)
        assert.isTrue(seen.prompts[1] === session)
      }))
  }

  it.effect("a stream keeps its chunks", () =>
    Effect.gen(function*() {
      const chunks: ReadonlyArray<ReadonlyArray<string>> = [["a", "b", "c"], ["d", "e"]]
      const inner = yield* Effect.provide(
        LanguageModel.LanguageModel,
        Layer.effect(
          LanguageModel.LanguageModel,
          LanguageModel.make({
            generateText: () => Effect.succeed([]),
            streamText: () =>
              Stream.fromIterable(chunks).pipe(
                Stream.flatMap((ids) => Stream.fromIterable(ids.map((id) => ({ type: "text-start" as const, id }))))
              )
          })
        )
      )
      const lengths = (model: LanguageModel.LanguageModel) => {
        const sizes: Array<number> = []
        return model.streamText({ prompt: session }).pipe(
          Stream.mapArray((parts) => {
            sizes.push(parts.length)
            return parts
          }),
          Stream.runDrain,
          Effect.as(sizes)
        )
      }
      const self = yield* manager()
      assert.deepStrictEqual(yield* lengths(inner), [3, 2])
      assert.deepStrictEqual(yield* lengths(CompactedModel.decorate(inner)).pipe(within(self)), [3, 2])
    }))

  it.effect("a chat with a tool loop keeps its whole history, and the wire stays small", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(
        Model.make(
          "fake",
          "fake-1",
          Fake.model(seen, (n) => Effect.succeed(n < 12 ? Fake.call(`f${n}`, 1) : Fake.text("done", 1)))
        )
      )
      const self = yield* manager()
      const chat = yield* Chat.fromPrompt(prompt(system("S"), user("go")))
      const provider = yield* Effect.gen(function*() {
        for (let more = true; more;) {
          const response = yield* chat.generateText({ prompt: [], toolkit: Kit })
          more = response.toolCalls.length > 0
        }
        return yield* Model.ProviderName
      }).pipe(within(self), Effect.provide([KitLayer, model]))
      assert.strictEqual(provider, "fake")
      assert.strictEqual((yield* Ref.get(chat.history)).content.length, 25)
      assert.isAtLeast((yield* self.status).generation, 1)
      const sizes = seen.prompts.map((each) => JSON.stringify(each.content).length)
      assert.isBelow(Math.max(...sizes), 18_000)
      assert.isAbove(JSON.stringify((yield* Ref.get(chat.history)).content).length, 33_000)
    }))

  it.effect("each step of an execution plan, and a retry, is the same request once more, with its usage", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const plan = ExecutionPlan.make(
        {
          provide: CompactedModel.withCompaction(Model.make("a", "a1", Fake.model(seen, () => Effect.fail(Fake.down)))),
          attempts: 2
        },
        { provide: CompactedModel.withCompaction(Model.make("b", "b1", Fake.model(seen, answers(1_777)))) }
      )
      const self = yield* manager({ meter: "actual" })
      yield* LanguageModel.generateText({ prompt: session }).pipe(Effect.withExecutionPlan(plan), within(self))
      assert.strictEqual(seen.prompts.length, 3)
      assert.deepStrictEqual(seen.prompts[1], seen.prompts[0])
      assert.deepStrictEqual(seen.prompts[2], seen.prompts[0])
      assert.strictEqual((yield* self.status).generation, 1)
      assert.deepStrictEqual((yield* self.sync(session, { route: "b/b1" })).count, { tokens: 1_777, kind: "usage" })
    }))

  const finishes: ReadonlyArray<readonly [string, Fake.Answer, number | undefined]> = [
    ["length", [{ type: "text", text: "cut" }, Fake.finish(900, "length")], 900],
    ["unknown", [{ type: "text", text: "?" }, Fake.finish(900, "unknown")], 900],
    ["unknown, without usage", [{ type: "text", text: "?" }, Fake.finish(undefined, "unknown")], undefined],
    ["no finish part at all", [{ type: "text", text: "?" }], undefined]
  ]
  for (const [name, answer, total] of finishes) {
    for (const [method, send] of methods.filter(([each]) => each !== "generateObject")) {
      it.effect(`${method}, finish reason ${name}`, () =>
        Effect.gen(function*() {
          const self = yield* ContextManager.make(seeded({ settings: { meter: "actual" } }))
          const model = CompactedModel.withCompaction(Fake.model(Fake.nothingSeen(), () => Effect.succeed(answer)))
          yield* send(session).pipe(within(self), Effect.provide(model))
          const { count } = yield* self.sync(prompt(...session.content, user("next")))
          assert.strictEqual(count.kind, total === undefined ? "estimated" : "usage")
          if (total !== undefined) assert.strictEqual(count.tokens, total)
        }))
    }
  }

  it.effect("a stream that is interrupted leaves nothing behind: no anchor, and the notice comes again", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const started = yield* Deferred.make<void>()
      const endless = Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          generateText: ({ prompt }) => {
            seen.prompts.push(prompt)
            return Effect.succeed([...Fake.text("ok", 50)])
          },
          streamText: ({ prompt }) => {
            seen.prompts.push(prompt)
            return Stream.concat(
              Stream.fromIterable([{ type: "text-start" as const, id: "a" }]),
              Stream.fromEffectDrain(Effect.andThen(Deferred.succeed(started, undefined), Effect.never))
            )
          }
        })
      )
      const model = CompactedModel.withCompaction(endless)
      const self = yield* manager({ notice: true, meter: "actual" })
      const fiber = yield* Effect.forkChild(drain({ prompt: session }).pipe(within(self), Effect.provide(model)))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.isNull((yield* self.status).reading?.actual)
      const next = prompt(...session.content, user("again"))
      yield* LanguageModel.generateText({ prompt: next }).pipe(within(self), Effect.provide(model))
      const notices = seen.prompts.map((each) => Fake.textsOf(each).at(-1)!)
      assert.include(notices[0], "this conversation was compacted")
      assert.include(notices[1], "this conversation was compacted", "it was not shown")
      yield* LanguageModel.generateText({ prompt: prompt(...next.content, assistant("ok")) }).pipe(
        within(self),
        Effect.provide(model)
      )
      assert.include(Fake.textsOf(seen.prompts[2]!).at(-1), "Nothing new happened since")
    }))

  it.effect("usage belongs to the request it answers, when calls overlap", () =>
    Effect.gen(function*() {
      const [first, second] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const entered = yield* Deferred.make<void>()
      const model = CompactedModel.withCompaction(Fake.model(Fake.nothingSeen(), (n) =>
        Effect.gen(function*() {
          if (n === 2) yield* Deferred.succeed(entered, undefined)
          yield* Deferred.await(n === 1 ? first : second)
          return Fake.text("ok", n === 1 ? 111 : 222)
        })))
      const self = yield* ContextManager.make(seeded({ settings: { meter: "actual" } }))
      // One layer for both calls.
      const both = Effect.gen(function*() {
        const a = yield* Effect.forkChild(
          LanguageModel.generateText({ prompt: session }).pipe(within(self)),
          { startImmediately: true }
        )
        const b = yield* Effect.forkChild(
          LanguageModel.generateText({ prompt: prompt(...session.content, user("more")) }).pipe(within(self)),
          { startImmediately: true }
        )
        yield* Deferred.await(entered)
        yield* Deferred.succeed(first, undefined)
        yield* Fiber.join(a)
        yield* Deferred.succeed(second, undefined)
        yield* Fiber.join(b)
      })
      yield* Effect.provide(both, model)
      const { count } = yield* self.sync(prompt(...session.content, user("more"), assistant("ok")))
      assert.deepStrictEqual(count, { tokens: 222, kind: "usage" })
    }))

  it.effect("concurrent calls on one chat come one after the other, each on the history of the one before", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(
        Fake.model(seen, (n) => Effect.as(Effect.yieldNow, Fake.text(`r${n}`, n)))
      )
      const self = yield* ContextManager.make(seeded())
      const events = yield* collect(self)
      const chat = yield* Chat.empty
      yield* Effect.forEach([1, 2, 3, 4], (n) => chat.generateText({ prompt: `q${n}` }), { concurrency: 4 }).pipe(
        within(self),
        Effect.provide(model)
      )
      yield* Effect.yieldNow
      assert.deepStrictEqual(seen.prompts.map((each) => each.content.length), [1, 3, 5, 7])
      assert.deepStrictEqual(events.filter((event) => event._tag === "TranscriptDiverged"), [])
      assert.strictEqual((yield* self.status).entries, 7)
    }))

  it.effect("what a tool handler asks of a model is no part of the conversation", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(
        Fake.model(seen, (n) => Effect.succeed(n === 1 ? Fake.call("f1", 1) : Fake.text("ok", 1)))
      )
      const Ask = Tool.make("read", {
        parameters: Schema.Struct({ path: Schema.String }),
        success: Schema.String,
        dependencies: [LanguageModel.LanguageModel],
        failure: AiError.AiError
      })
      const AskKit = Toolkit.make(Ask)
      const handlers = AskKit.toLayer({
        read: ({ path }) =>
          Effect.map(LanguageModel.generateText({ prompt: `sub ${path}` }), (response) => response.text)
      })
      const self = yield* ContextManager.make(seeded())
      const events = yield* collect(self)
      const chat = yield* Chat.fromPrompt(session)
      yield* Effect.gen(function*() {
        yield* chat.generateText({ prompt: [], toolkit: AskKit })
        yield* chat.generateText({ prompt: [], toolkit: AskKit })
      }).pipe(within(self), Effect.provide([handlers, model]))
      yield* Effect.yieldNow
      assert.deepStrictEqual(Fake.textsOf(seen.prompts[1]!), ["sub f1"])
      assert.deepStrictEqual(events.filter((event) => event._tag === "TranscriptDiverged"), [])
    }))

  it.effect("the definitions of tools come off the budget", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(Fake.model(seen, () => Effect.succeed(Fake.text("ok", 1))))
      const self = yield* ContextManager.make(seeded({ settings: { window: 20_000 } }))
      yield* LanguageModel.generateText({ prompt: "hello", toolkit: Kit }).pipe(
        within(self),
        Effect.provide([KitLayer, model])
      )
      const schema = JSON.stringify(Tool.getJsonSchema(Read)).length
      const overhead = (yield* self.status).budget?.overhead ?? 0
      assert.strictEqual(overhead, Math.ceil(("read".length + "Reads a file".length + schema) / 4))
      yield* LanguageModel.generateText({ prompt: "hello" }).pipe(within(self), Effect.provide(model))
      assert.strictEqual((yield* self.status).budget?.overhead, 0)
    }))

  it.effect("a pass that fails does not fail the call where the app says so: the last good view is sent, and it is published", () =>
    Effect.gen(function*() {
      class Broken extends Schema.TaggedError<Broken>("test/Broken")("Broken", {}) {
        override get message() {
          return "the index is gone"
        }
      }
      const seen = Fake.nothingSeen()
      const self = yield* ContextManager.make(seeded({ pass: Policy.passFrom(() => Effect.fail(new Broken())) }))
      const events = yield* collect(self)
      yield* LanguageModel.generateText({ prompt: session }).pipe(
        within(self),
        Effect.provide(CompactedModel.withCompaction(Fake.model(seen, answers(1)), { onPassError: "sendUndecided" }))
      )
      yield* Effect.yieldNow
      assert.isTrue(seen.prompts[0] === session)
      assert.deepStrictEqual(events.filter((event) => event._tag === "PassFailed"), [
        { _tag: "PassFailed", error: "Broken", reason: "the index is gone" }
      ])
    }))

  it.effect("what cannot fit fails the call when the policy asks for that, with the numbers", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const self = yield* manager({ maxTokens: 20, whenInfeasible: "fail" })
      const error = yield* Effect.flip(
        LanguageModel.generateText({ prompt: session }).pipe(
          within(self),
          Effect.provide(CompactedModel.withCompaction(Fake.model(seen, answers(1))))
        )
      )
      assert.strictEqual(error.reason._tag, "InvalidRequestError")
      const metadata = "metadata" in error.reason ? error.reason.metadata["effect-compaction"] : undefined
      assert.strictEqual((metadata as { readonly _tag: string })._tag, "BudgetInfeasible")
      assert.strictEqual(seen.prompts.length, 0)
    }))
})

describe("sync with a chat", () => {
  const run = Effect.fnUntraced(function*(
    steps: (chat: Chat.Chat) => Effect.Effect<Chat.Chat, unknown, LanguageModel.LanguageModel | Chat.Persistence>
  ) {
    const seen = Fake.nothingSeen()
    const model = CompactedModel.withCompaction(Fake.model(seen, (n) => Effect.succeed(Fake.text(`answer ${n}`, n))))
    const self = yield* manager()
    const events = yield* collect(self)
    const chat = yield* Chat.fromPrompt(session)
    const chats = Chat.layerPersisted({ storeId: "chats" }).pipe(Layer.provide(Persistence.layerBackingMemory))
    const last = yield* steps(chat).pipe(within(self), Effect.provide([model, chats]))
    yield* Effect.yieldNow
    const history = yield* Ref.get(last.history)
    return {
      diverged: events.flatMap((event) => event._tag === "TranscriptDiverged" ? [event.dropped] : []),
      generation: (yield* self.status).generation,
      seen,
      lost: history.content.length - (yield* self.history).content.length
    }
  })

  it.effect("append: nothing is taken twice", () =>
    Effect.gen(function*() {
      const { diverged, generation, lost } = yield* run(Effect.fnUntraced(function*(chat) {
        yield* chat.generateText({ prompt: "one" })
        yield* chat.streamText({ prompt: "two" }).pipe(Stream.runDrain)
        yield* chat.generateText({ prompt: "three" })
        return chat
      }))
      assert.deepStrictEqual(diverged, [])
      assert.strictEqual(generation, 1)
      // The last answer comes with the next call.
      assert.strictEqual(lost, 1)
    }))

  it.effect("rewind and edit: what comes after is taken anew", () =>
    Effect.gen(function*() {
      const { diverged, lost } = yield* run(Effect.fnUntraced(function*(chat) {
        yield* chat.generateText({ prompt: "one" })
        yield* chat.generateText({ prompt: "two" })
        // The question and the answer before it go.
        yield* Ref.update(chat.history, (history) => Prompt.fromMessages(history.content.slice(0, -2)))
        yield* chat.generateText({ prompt: "two, put better" })
        yield* Ref.update(chat.history, (history) =>
          Prompt.fromMessages(history.content.map((each, at, all) =>
            at === all.length - 2 ? user("edited") : each
          )))
        yield* chat.generateText({ prompt: "three" })
        return chat
      }))
      assert.deepStrictEqual(diverged, [1, 1])
      assert.strictEqual(lost, 1)
    }))

  it.effect("export and import: every object is new, the place is found", () =>
    Effect.gen(function*() {
      const { diverged, generation, lost, seen } = yield* run(Effect.fnUntraced(function*(chat) {
        yield* chat.generateText({ prompt: "one" })
        const again = yield* Chat.fromJson(yield* chat.exportJson)
        yield* again.generateText({ prompt: "two" })
        return again
      }))
      assert.deepStrictEqual(diverged, [])
      assert.strictEqual(generation, 1)
      assert.strictEqual(lost, 1)
      assert.deepStrictEqual(
        Fake.textsOf(seen.prompts[1]!).slice(0, seen.prompts[0]!.content.length),
        Fake.textsOf(seen.prompts[0]!)
      )
    }))

  it.effect("a persisted chat writes into the options of its messages, which changes nothing", () =>
    Effect.gen(function*() {
      const { diverged, seen } = yield* run(Effect.fnUntraced(function*() {
        const store = yield* Chat.Persistence
        const chat = yield* store.getOrCreate("one")
        yield* chat.generateText({ prompt: "one" })
        yield* chat.generateText({ prompt: "two" })
        const again = yield* store.get("one")
        yield* again.generateText({ prompt: "three" })
        return again
      }))
      assert.deepStrictEqual(diverged, [])
      assert.deepStrictEqual(seen.prompts.map((each) => each.content.length), [1, 3, 5])
    }))
})

describe("an overflow", () => {
  const refuseLong = (tokens: number) => (_: number, options: LanguageModel.ProviderOptions) => {
    const size = JSON.stringify(options.prompt.content).length / 4
    return size > tokens
      ? Effect.fail(Fake.tooLong(Math.ceil(size), tokens))
      : Effect.succeed(Fake.text(`{"a":1}`, Math.ceil(size)))
  }
  const roomy = ContextManager.make(seeded({ settings: { notice: false, protectedToolResults: 1 } }))

  for (const [name, send] of methods) {
    it.effect(`${name}: a smaller view is sent in the same call`, () =>
      Effect.gen(function*() {
        const seen = Fake.nothingSeen()
        const self = yield* roomy
        yield* send(session).pipe(
          within(self),
          Effect.provide(CompactedModel.withCompaction(Fake.model(seen, refuseLong(4_000))))
        )
        assert.strictEqual(seen.prompts.length, 2)
        const sizes = seen.prompts.map((each) => JSON.stringify(each.content).length)
        assert.isAtMost(sizes[1]!, 0.85 * sizes[0]!)
        assert.strictEqual((yield* self.status).generation, 1)
        // The maximum that the provider named holds from now on.
        yield* self.sync(session)
        assert.strictEqual((yield* self.status).budget?.total, 4_000)
      }))
  }

  it.effect("retries in a row are bounded, and a success begins anew", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      let refuse = 2
      const model = CompactedModel.withCompaction(Fake.model(seen, () =>
        refuse-- > 0 ? Effect.fail(Fake.tooLong(9_000, 8_000)) : Effect.succeed(Fake.text("ok", 100))))
      const self = yield* roomy
      const ask = LanguageModel.generateText({ prompt: session }).pipe(within(self))
      yield* Effect.gen(function*() {
        // Refused twice: the second refusal is the caller's.
        const error = yield* Effect.flip(ask)
        assert.include(error.message, "9000 tokens > 8000 maximum")
        assert.strictEqual(seen.prompts.length, 2)
        // No success since: the next refusal is not answered either.
        refuse = 1
        yield* Effect.flip(ask)
        assert.strictEqual(seen.prompts.length, 3)
        yield* ask
        refuse = 1
        yield* ask
        assert.strictEqual(seen.prompts.length, 6)
      }).pipe(Effect.provide(model))
    }))

  it.effect("each smaller view is strictly smaller, as often as retries are allowed", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(
        Fake.model(seen, () =>
          Effect.fail(Fake.failure(new AiError.InvalidRequestError({ description: "prompt is too long" })))),
        { maxOverflowRetries: 50 }
      )
      const self = yield* roomy
      const error = yield* Effect.flip(
        LanguageModel.generateText({ prompt: session }).pipe(within(self), Effect.provide(Layer.orDie(model)))
      )
      const sizes = seen.prompts.map((each) =>
        JSON.stringify(each.content).length
      )
      assert.isAtLeast(sizes.length, 3)
      assert.isBelow(sizes.length, 50)
      for (let at = 1; at < sizes.length; at++) assert.isBelow(sizes[at]!, sizes[at - 1]!)
      // The end of the ladder is named, and the provider's own words are kept.
      const { reason } = error
      assert.strictEqual(reason._tag, "InvalidRequestError")
      const metadata = "metadata" in reason
        ? reason.metadata["effect-compaction"] as { readonly _tag: string; readonly refused: string }
        : undefined
      assert.strictEqual(metadata?._tag, "ContextCannotFit")
      assert.include(metadata?.refused, "prompt is too long")
      assert.isTrue(AiError.isAiError((reason as { readonly cause?: unknown }).cause))
      assert.include(Cause.pretty(Cause.fail(error)), "prompt is too long")
    }))

  it.effect("nothing is sent again once a part was emitted", () =>
    Effect.gen(function*() {
      let calls = 0
      const broken = Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          generateText: () => Effect.succeed([]),
          streamText: () => {
            calls++
            return Stream.concat(
              Stream.fromIterable([{ type: "text-start" as const, id: "a" }]),
              Stream.fail(Fake.tooLong(2, 1))
            )
          }
        })
      )
      const self = yield* roomy
      const exit = yield* Effect.exit(
        drain({ prompt: session }).pipe(within(self), Effect.provide(CompactedModel.withCompaction(broken)))
      )
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(calls, 1)
      assert.strictEqual((yield* self.status).generation, 0)
    }))

  it.effect("a stream may say it in a part of its own, before any other", () =>
    Effect.gen(function*() {
      let calls = 0
      const error = {
        type: "error",
        error: { code: "context_length_exceeded", message: "Your input exceeds the context window of this model." }
      }
      const model = Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          generateText: () => Effect.succeed([]),
          streamText: () =>
            Stream.fromIterable<Response.StreamPartEncoded>(
              ++calls === 1
                ? [{ type: "response-metadata" as const, id: "r" }, { type: "error" as const, error }]
                : [{ type: "text-start" as const, id: "a" }, { type: "text-end" as const, id: "a" }, Fake.finish(9)]
            )
        })
      )
      const self = yield* roomy
      const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: session })).pipe(
        within(self),
        Effect.provide(CompactedModel.withCompaction(model))
      )
      assert.strictEqual(calls, 2)
      assert.isFalse(parts.some((part) => part.type === "error"))
      assert.strictEqual((yield* self.status).generation, 1)
    }))

  it.effect("a rate limit is not taken for one, and the predicate can be replaced", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const limited = Fake.failure(new AiError.RateLimitError({}))
      const self = yield* roomy
      const ask = (options: CompactedModel.Options = {}) =>
        Effect.flip(
          LanguageModel.generateText({ prompt: session }).pipe(
            within(self),
            Effect.provide(CompactedModel.withCompaction(Fake.model(seen, () => Effect.fail(limited)), options))
          )
        )
      yield* ask()
      assert.strictEqual(seen.prompts.length, 1)
      yield* ask({ isContextOverflow: (error): error is AiError.AiError => AiError.isAiError(error) })
      assert.strictEqual(seen.prompts.length, 3)
    }))

  it.effect("a tool that was approved is not run twice", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      let runs = 0
      const Write = Tool.make("write", {
        parameters: Schema.Struct({ path: Schema.String }),
        success: Schema.String,
        needsApproval: true
      })
      const WriteKit = Toolkit.make(Write)
      const handlers = WriteKit.toLayer({ write: () => Effect.sync(() => `written ${++runs}`) })
      const asked = Prompt.makeMessage("assistant", {
        content: [
          Prompt.makePart("tool-call", { id: "w", name: "write", params: { path: "a" }, providerExecuted: false }),
          Prompt.makePart("tool-approval-request", { approvalId: "ok", toolCallId: "w" })
        ]
      })
      const approved = Prompt.makeMessage("tool", {
        content: [Prompt.makePart("tool-approval-response", { approvalId: "ok", approved: true })]
      })
      const self = yield* roomy
      const error = yield* Effect.flip(
        LanguageModel.generateText({ prompt: prompt(...session.content, asked, approved), toolkit: WriteKit }).pipe(
          within(self),
          Effect.provide([
            handlers,
            CompactedModel.withCompaction(Fake.model(seen, () => Effect.fail(Fake.tooLong(9_000, 8_000))))
          ])
        )
      )
      assert.include(error.message, "9000 tokens > 8000 maximum")
      assert.strictEqual(runs, 1)
      assert.strictEqual(seen.prompts.length, 1)
      // The next attempt of the app is smaller.
      assert.strictEqual((yield* self.status).generation, 1)
    }))
})

describe("providers with a state of their own", () => {
  const tracked = Effect.fnUntraced(function*(more: Settings.Input, turns: number) {
    const seen = Fake.nothingSeen()
    const model = CompactedModel.withCompaction(
      Fake.model(seen, (n) => Effect.succeed([{ type: "response-metadata", id: `resp-${n}` }, ...Fake.text("ok", 1)]))
    )
    const self = yield* manager(more)
    const chat = yield* Chat.fromPrompt(prompt(system("S"), user("first")))
    yield* Effect.gen(function*() {
      for (let turn = 0; turn < turns; turn++) yield* chat.generateText({ prompt: words(`turn ${turn}`, 2_000) })
    }).pipe(
      within(self),
      Effect.provideService(ResponseIdTracker.ResponseIdTracker, yield* ResponseIdTracker.make),
      Effect.provide(model)
    )
    return { seen, boundaries: (yield* self.status).generation }
  })

  it.effect("a request that extends the one before is chained, one behind a boundary is not", () =>
    Effect.gen(function*() {
      const { boundaries, seen } = yield* tracked({ protectedRecent: 0 }, 24)
      assert.isAtLeast(boundaries, 1)
      const chained = seen.options.map((options) => options.previousResponseId !== undefined)
      assert.isTrue(chained[1])
      assert.strictEqual(chained.filter((each) => !each).length, 1 + boundaries)
    }))

  it.effect("a boundary that only drops messages is not hidden from the server", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(
        Fake.model(seen, (n) =>
          Effect.succeed([
            { type: "response-metadata", id: `resp-${n}` },
            ...Fake.text(words(`answer ${n}`, 2_000), 1)
          ]))
      )
      const self = yield* ContextManager.make(seeded({
        settings: { ...settings, protectedRecent: 0.3 },
        ladder: Ladder.make(Rung.remove({ relax: 1 }))
      }))
      const chat = yield* Chat.fromPrompt(prompt(system("S")))
      yield* Effect.gen(function*() {
        for (let turn = 0; turn < 14; turn++) yield* chat.generateText({ prompt: `question ${turn}` })
      }).pipe(
        within(self),
        Effect.provideService(ResponseIdTracker.ResponseIdTracker, yield* ResponseIdTracker.make),
        Effect.provide(model)
      )
      const { generation } = yield* self.status
      assert.isAtLeast(generation, 1)
      const history = yield* Ref.get(chat.history)
      for (const each of seen.prompts) for (const message of each.content) assert.include(history.content, message)
      const unchained = seen.options.filter((options) => options.previousResponseId === undefined)
      assert.strictEqual(unchained.length, 1 + generation)
    }))

  it.effect("nothing is chained to a request with a notice, which would stay on the server", () =>
    Effect.gen(function*() {
      const { seen } = yield* tracked({ protectedRecent: 0, notice: true, noticeReserve: 0 }, 24)
      const noticed = seen.prompts.findIndex((each) => Fake.textsOf(each).at(-1)!.includes("context-compaction"))
      assert.isAtLeast(noticed, 1)
      assert.isTrue(seen.options.slice(noticed).every((options) => options.previousResponseId === undefined))
    }))

  it.effect("a mark for the prompt cache stands where the caller has it now, before the notice", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(Fake.model(seen, () => Effect.succeed(Fake.text("ok", 1))))
      const self = yield* manager({ notice: true })
      const mark = { anthropic: { cacheControl: { type: "ephemeral" } } }
      const marked = (self: Prompt.Prompt) =>
        Prompt.fromMessages(
          self.content.map((each, at, all) =>
            at === all.length - 1 ? { ...each, options: { ...each.options, ...mark } } : each
          )
        )
      yield* Effect.gen(function*() {
        let history = session
        for (let turn = 0; turn < 4; turn++) {
          yield* LanguageModel.generateText({ prompt: marked(history) })
          history = prompt(...history.content, assistant(`a${turn}`), user(`q${turn}`))
        }
      }).pipe(within(self), Effect.provide(model))
      for (const [turn, each] of seen.prompts.entries()) {
        const at = each.content.flatMap((message, index) => "anthropic" in message.options ? [index] : [])
        assert.deepStrictEqual(at, [each.content.length - 2], `turn ${turn}`)
        assert.include(Fake.textsOf(each).at(-1), "context-compaction")
      }
    }))

  it.effect("a history that comes back with its keys in another order changes no byte, marked or not", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(Fake.model(seen, () => Effect.succeed(Fake.text("ok", 1))))
      const self = yield* ContextManager.make(seeded())
      const mark = { anthropic: { cacheControl: { type: "ephemeral" } } }
      const of = (params: unknown) =>
        prompt(
          user("go"),
          Prompt.makeMessage("assistant", {
            content: [Prompt.makePart("tool-call", { id: "a", name: "read", params, providerExecuted: false })],
            options: mark
          }),
          Prompt.makeMessage("tool", {
            content: [
              Prompt.makePart("tool-result", {
                id: "a",
                name: "read",
                isFailure: false,
                result: "x",
                providerExecuted: false,
                options: mark
              })
            ]
          })
        )
      yield* Effect.gen(function*() {
        yield* LanguageModel.generateText({ prompt: of({ first: 1, second: 2 }) })
        yield* LanguageModel.generateText({ prompt: of({ second: 2, first: 1 }) })
      }).pipe(within(self), Effect.provide(model))
      const bytes = seen.prompts.map((each) =>
        JSON.stringify(
          each.content.map((message) =>
            message.role === "system" ?
              [] :
              (message.content as ReadonlyArray<Prompt.Part>).map((part) =>
                part.type === "tool-call" ? [part.params, part.options] : part.options
              )
          )
        )
      )
      assert.include(bytes[0], "cacheControl")
      assert.strictEqual(bytes[1], bytes[0])
      assert.isTrue(seen.prompts.every((each) => each.content[1]!.options.anthropic !== undefined))
    }))

  it.effect("an altered last message gives its mark to the end of what stays", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(Fake.model(seen, () => Effect.succeed(Fake.text("ok", 1))))
      const self = yield* manager({ maxTokens: 1_500, protectedToolResults: 0 })
      const large = prompt(
        user("go"),
        Prompt.makeMessage("assistant", {
          content: [Prompt.makePart("tool-call", { id: "a", name: "read", params: {}, providerExecuted: false })]
        }),
        Prompt.makeMessage("tool", {
          content: [Prompt.makePart("tool-result", {
            id: "a",
            name: "read",
            isFailure: false,
            result: words("big", 40_000),
            providerExecuted: false
          })],
          options: { anthropic: { cacheControl: { type: "ephemeral" } } }
        })
      )
      yield* LanguageModel.generateText({ prompt: large }).pipe(within(self), Effect.provide(model))
      const last = seen.prompts[0]!.content.at(-1)!
      assert.isBelow(JSON.stringify(last).length, 10_000)
      assert.deepStrictEqual(last.options, { anthropic: { cacheControl: { type: "ephemeral" } } })
    }))
})
