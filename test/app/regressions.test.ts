/** Faults that others shipped, through a decorated model: the kind, the small input, and what must happen. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { answers, assistant, calls, prompt, result, session, turn, user, words } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Validators from "../wireValidators.ts"
import * as Fake from "./fake.ts"

const small: Settings.Input = { protectedToolResults: 1, notice: false, maxTokens: 4_000 }

/** Sends prompts one after the other through a decorated model that bills `usageOf` each. */
const app = Effect.fnUntraced(function*(
  settings: Settings.Input,
  prompts: ReadonlyArray<Prompt.Prompt>,
  usageOf: (sent: Prompt.Prompt) => number = () => 1
) {
  const seen = Fake.nothingSeen()
  const self = yield* ContextManager.make(seeded({ settings }))
  const events: Array<CompactionEvent.CompactionEvent> = []
  yield* Effect.forkScoped(
    Stream.runForEach(self.events, (event) => Effect.sync(() => events.push(event))),
    { startImmediately: true }
  )
  const model = CompactedModel.withCompaction(
    Fake.model(seen, (_, options) => Effect.succeed(Fake.text("ok", usageOf(options.prompt))))
  )
  const exits = yield* Effect.forEach(prompts, (each) => Effect.exit(LanguageModel.generateText({ prompt: each })))
    .pipe(
      Effect.provideService(ContextManager.Current, self),
      Effect.provide(model)
    )
  yield* Effect.yieldNow
  const of = <Tag extends CompactionEvent.CompactionEvent["_tag"]>(tag: Tag) =>
    events.filter((event): event is Extract<CompactionEvent.CompactionEvent, { readonly _tag: Tag }> =>
      event._tag === tag
    )
  return { seen, exits, of, status: yield* self.status }
})

const sizeOf = (sent: Prompt.Prompt) => JSON.stringify(sent.content).length

const growing = (first: Prompt.Prompt, count: number): ReadonlyArray<Prompt.Prompt> =>
  Array.from(
    { length: count },
    (_, n) =>
      prompt(...first.content, ...Array.from({ length: n }, (_, at) => [assistant(`a${at}`), user(`q${at}`)]).flat())
  )

describe("faults that others shipped", () => {
  it.effect("R1, two figures that disagree: one scale for trigger, target and re-check", () =>
    Effect.gen(function*() {
      // The provider bills more than the estimate says: the trigger is reached by usage, and the work is sized by it.
      const billed = (sent: Prompt.Prompt) => Math.ceil(sizeOf(sent) / 3)
      const { exits, of, seen, status } = yield* app(
        { ...small, maxTokens: 9_000, meter: "calibrated" },
        growing(session, 12),
        billed
      )
      assert.isTrue(exits.every((exit) => exit._tag === "Success"))
      const boundaries = of("Compacted")
      assert.isAtLeast(boundaries.length, 1)
      // Not a boundary at every request: each goes below the trigger by the figure that reached it.
      assert.isAtMost(boundaries.length, 2)
      assert.isBelow(billed(seen.prompts.at(-1)!), 9_000)
      assert.isBelow(status.reading!.tokens, 0.92 * 9_000)
    }))

  it.effect("R5, nothing can be removed: said once, not compacted for ever", () =>
    Effect.gen(function*() {
      const held = prompt(user(words("rules", 10_000)))
      const { exits, of, seen } = yield* app({ ...small, maxTokens: 1_000 }, growing(held, 6))
      assert.isTrue(exits.every((exit) => exit._tag === "Success"))
      assert.strictEqual(of("Infeasible").length, 1)
      assert.isAtMost(of("Compacted").length, 1)
      assert.strictEqual(seen.prompts.length, 6)
    }))

  it.effect("R6, reasoning cut from its follower: one unit, or the references are gone", () =>
    Effect.gen(function*() {
      const step = (n: number) => [
        Prompt.makeMessage("assistant", {
          content: [
            Prompt.makePart("reasoning", {
              text: `thought ${n}`,
              options: { openai: { itemId: `rs_${n}`, encryptedContent: "x" } }
            }),
            Prompt.makePart("tool-call", {
              id: `c${n}`,
              name: "read",
              params: {},
              providerExecuted: false,
              options: { openai: { itemId: `fc_${n}` } }
            })
          ]
        }),
        answers(result(`c${n}`, words(`r${n}`, 2_000)))
      ]
      const long = prompt(user("go"), ...Array.from({ length: 20 }, (_, n) => step(n)).flat())
      const { seen, status } = yield* app({ ...small, protectedRecent: 0 }, [long])
      assert.strictEqual(status.generation, 1)
      let references = 0
      for (const message of seen.prompts[0]!.content) {
        if (message.role !== "assistant") continue
        const item = (type: string) =>
          message.content.some((part) => part.type === type && "itemId" in ((part.options.openai ?? {}) as object))
        assert.strictEqual(item("tool-call"), item("reasoning"), "the follower is referred to with its reasoning only")
        if (item("tool-call")) references++
      }
      assert.isBelow(references, 20)
      assert.deepStrictEqual(Validators.responses(Validators.toResponses(seen.prompts[0]!.content)), [])
    }))

  it.effect("R6, after an overflow: signed reasoning whose prefix was changed is gone", () =>
    Effect.gen(function*() {
      const step = (n: number) => [
        Prompt.makeMessage("assistant", {
          content: [
            Prompt.makePart("reasoning", { text: `thought ${n}`, options: { anthropic: { signature: `s${n}` } } }),
            Prompt.makePart("tool-call", { id: `c${n}`, name: "read", params: {}, providerExecuted: false })
          ]
        }),
        answers(result(`c${n}`, words(`r${n}`, 4_000)))
      ]
      const long = prompt(user("go"), ...Array.from({ length: 20 }, (_, n) => step(n)).flat(), user("now"))
      const seen = Fake.nothingSeen()
      const self = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* LanguageModel.generateText({ prompt: long }).pipe(
        Effect.provideService(ContextManager.Current, self),
        Effect.provide(CompactedModel.withCompaction(
          Fake.model(seen, (n) =>
            n === 1 ? Effect.fail(Fake.tooLong(22_000, 16_000)) : Effect.succeed(Fake.text("ok", 1)))
        ))
      )
      const [before, after] = seen.prompts.map((each) =>
        JSON.stringify(each.content).split("signature").length - 1
      )
      assert.strictEqual(before, 20)
      assert.isBelow(after!, 2)
    }))

  it.effect("R7, compaction with open calls: their group stays", () =>
    Effect.gen(function*() {
      const open = prompt(...session.content, calls("open-1", "open-2"), answers(result("open-1", "first")))
      const { seen, status } = yield* app(small, [open])
      assert.strictEqual(status.generation, 1)
      const sent = JSON.stringify(seen.prompts[0]!.content)
      assert.include(sent, "open-1")
      assert.include(sent, "open-2")
      assert.deepStrictEqual(Validators.anthropic(Validators.toAnthropic(seen.prompts[0]!.content)), [])
    }))

  it.effect("R12, the kept tail alone is too large: it is truncated in the last step", () =>
    Effect.gen(function*() {
      const tail = prompt(user("go"), calls("a"), answers(result("a", words("big", 120_000))))
      const { exits, seen, status } = yield* app({ ...small, maxTokens: 20_000, protectedToolResults: 5 }, [tail])
      assert.strictEqual(exits[0]!._tag, "Success")
      assert.isBelow(sizeOf(seen.prompts[0]!), 80_000)
      assert.isNull(status.lastInfeasible)
    }))

  it.effect("R13, the summary call's usage is not this conversation's pressure", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const inner = Fake.model(seen, (_, options) => {
        const isSummary = JSON.stringify(options.prompt.content).includes("is going to be replaced by a summary")
        return Effect.succeed(Fake.text(isSummary ? "## Request\n- go on" : "ok", isSummary ? 190_000 : 3_000))
      })
      const self = yield* ContextManager.make(seeded({
        settings: { ...small, maxTokens: 8_500, meter: "actual", summary: {} }
      })).pipe(
        Effect.provide(Summarizer.layerModel().pipe(Layer.provide(inner)))
      )
      yield* Effect.forEach(
        growing(session, 3),
        (each) => Effect.andThen(LanguageModel.generateText({ prompt: each }), Effect.yieldNow)
      ).pipe(
        Effect.provideService(ContextManager.Current, self),
        Effect.provide(CompactedModel.withCompaction(inner))
      )
      assert.isAbove(seen.prompts.length, 3, "a summary was asked for")
      assert.strictEqual((yield* self.status).reading?.actual, 3_000)
      assert.strictEqual((yield* self.status).generation, 0)
    }))

  it.effect("R18, the newest entry is the problem: truncated, else named and typed on demand", () =>
    Effect.gen(function*() {
      const newest = prompt(user("go"), calls("a"), answers(result("a", words("huge", 1_000_000))))
      const { seen } = yield* app({ ...small, maxTokens: 10_000, protectedToolResults: 5 }, [newest])
      assert.isBelow(sizeOf(seen.prompts[0]!), 40_000)
      const pinned = prompt(user(words("huge", 1_000_000)))
      const sent = yield* app({ ...small, maxTokens: 10_000 }, [pinned])
      assert.strictEqual(sent.status.lastInfeasible?.holders[0]?.seq, 0)
      const failed = yield* app({ ...small, maxTokens: 10_000, whenInfeasible: "fail" }, [pinned])
      assert.strictEqual(failed.exits[0]!._tag, "Failure")
      assert.strictEqual(failed.seen.prompts.length, 0)
    }))

  it.effect("R21, limits of the other model: those of the target, before its first call", () =>
    Effect.gen(function*() {
      const seen = { large: Fake.nothingSeen(), small: Fake.nothingSeen() }
      const windows: { readonly [model: string]: number } = { large: 200_000, small: 16_000 }
      const of = (name: "large" | "small") =>
        CompactedModel.withCompaction(
          Model.make("house", name, Fake.model(seen[name], () => Effect.succeed(Fake.text("ok", 1)))),
          {
            windowOf: (provider, model) =>
              provider === "house" ? { window: windows[model]!, maxOutput: 1_000 } : undefined
          }
        )
      const long = prompt(user("go"), ...Array.from({ length: 60 }, (_, n) => turn(`c${n}`, 2_000)).flat())
      const self = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      const ask = (name: "large" | "small", given: Prompt.Prompt) =>
        LanguageModel.generateText({ prompt: given }).pipe(
          Effect.provideService(ContextManager.Current, self),
          Effect.provide(of(name))
        )
      yield* ask("large", long)
      assert.isTrue(seen.large.prompts[0] === long)
      assert.strictEqual((yield* self.status).budget?.total, 200_000 - 500 - 4_096)
      yield* ask("small", prompt(...long.content, user("now you")))
      assert.strictEqual((yield* self.status).budget?.total, 16_000 - 500 - 4_096)
      assert.isBelow(sizeOf(seen.small.prompts[0]!) / 4, 16_000)
      assert.strictEqual((yield* self.status).generation, 1)
      // Back on the large model its own limit holds again.
      yield* ask("large", prompt(...long.content, user("now you"), assistant("ok"), user("and you")))
      assert.strictEqual((yield* self.status).budget?.total, 200_000 - 500 - 4_096)
    }))

  it.effect("what one route refused is no limit of another", () =>
    Effect.gen(function*() {
      const of = (name: string, refuses: boolean) => {
        let refused = !refuses
        return CompactedModel.withCompaction(
          Model.make(
            "house",
            name,
            Fake.model(Fake.nothingSeen(), () => {
              if (refused) return Effect.succeed(Fake.text("ok", 1))
              refused = true
              return Effect.fail(Fake.tooLong(9_000, 3_000))
            })
          ),
          { windowOf: () => ({ window: 100_000, maxOutput: 0 }) }
        )
      }
      const self = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      const ask = (model: ReturnType<typeof of>) =>
        LanguageModel.generateText({ prompt: session }).pipe(
          Effect.provideService(ContextManager.Current, self),
          Effect.provide(model)
        )
      const first = of("first", true)
      yield* ask(first)
      assert.strictEqual((yield* self.status).budget?.total, 3_000)
      yield* ask(of("second", false))
      assert.strictEqual((yield* self.status).budget?.total, 100_000 - 4_096)
    }))
})
