import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import type * as Settings from "effect-compaction/Settings"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Persistence from "effect/persistence/Persistence"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { seeded } from "../seed.ts"
import { answers, assistant, bytesOf, calls, counting, prompt, result, session, user, words } from "./conversation.ts"

const settings: Settings.Input = { protectedToolResults: 1, notice: false, maxTokens: 4_000 }
const make = ContextManager.make(seeded({ settings }))

/** The same prompt as a store gives it back: new objects, the same content. */
const parsed = (self: Prompt.Prompt) =>
  Effect.orDie(
    Effect.map(Schema.encodeEffect(Prompt.Prompt)(self), (encoded) =>
      Schema.decodeUnknownSync(Prompt.Prompt)(JSON.parse(JSON.stringify(encoded))))
  )

const add = (self: Prompt.Prompt, ...messages: ReadonlyArray<Prompt.Message>): Prompt.Prompt =>
  Prompt.fromMessages([...self.content, ...messages])

const divergences = (events: ReadonlyArray<CompactionEvent.CompactionEvent>) =>
  events.filter((event) => event._tag === "TranscriptDiverged")

/** A session that was compacted once, and what was published while `then` went on with it. */
const compactedThen = <A, E>(
  then: (manager: ContextManager.ContextManager, priced: Array<Prompt.Message>) => Effect.Effect<A, E>
) =>
  Effect.gen(function*() {
    const { priced, service } = counting()
    const manager = yield* Effect.provide(make, Estimator.layer(service))
    const first = yield* manager.sync(session)
    assert.strictEqual(first.generation, 1)
    const events: Array<CompactionEvent.CompactionEvent> = []
    yield* Effect.forkChild(
      Stream.runForEach(manager.events, (event) => Effect.sync(() => events.push(event))),
      { startImmediately: true }
    )
    priced.length = 0
    // The errors of its pass are no part of what is checked here.
    const value = yield* then(manager as ContextManager.ContextManager<never>, priced)
    yield* Effect.yieldNow
    return { manager, first, events, value, priced }
  })

describe("sync with the caller's history", () => {
  it.effect("the same prompt is the same request", () =>
    Effect.gen(function*() {
      const { events, first, priced, value } = yield* compactedThen((manager) => manager.sync(session))
      assert.isTrue(value.prompt === first.prompt)
      assert.deepStrictEqual(divergences(events), [])
      assert.strictEqual(priced.length, 0)
    }))

  it.effect("takes in what is new, and prices nothing else", () =>
    Effect.gen(function*() {
      const next = user("go on")
      const { events, first, priced, value } = yield* compactedThen((manager) => manager.sync(add(session, next)))
      assert.deepStrictEqual(priced, [next])
      assert.isNull(value.prefixChanged)
      assert.deepStrictEqual(value.prompt.content.slice(0, -1), [...first.prompt.content])
      assert.deepStrictEqual(divergences(events), [])
    }))

  it.effect("objects parsed anew are the same messages", () =>
    Effect.gen(function*() {
      const { events, first, priced, value } = yield* compactedThen((manager) =>
        Effect.flatMap(parsed(add(session, user("go on"))), manager.sync)
      )
      assert.deepStrictEqual(divergences(events), [])
      assert.strictEqual(priced.length, 1)
      assert.strictEqual(value.prompt.content.length, first.prompt.content.length + 1)
    }))

  it.effect("options that a store writes in place change nothing", () =>
    Effect.gen(function*() {
      const { events, priced } = yield* compactedThen((manager) => {
        const written = Prompt.fromMessages(session.content.map((message) => ({
          ...message,
          options: { ...message.options, "effect/ai/Chat/Persisted": { messageId: "m" } }
        })))
        return manager.sync(add(written, user("go on")))
      })
      assert.deepStrictEqual(divergences(events), [])
      assert.strictEqual(priced.length, 1)
    }))

  const last = session.content.length
  const edits: ReadonlyArray<
    readonly [name: string, edited: Prompt.Prompt, seq: number, dropped: number, priced: number]
  > = [
    ["rewound by one", Prompt.fromMessages(session.content.slice(0, -1)), last - 1, 1, 0],
    ["rewound by four", Prompt.fromMessages(session.content.slice(0, -4)), last - 4, 4, 0],
    ["rewound and answered anew", Prompt.fromMessages([...session.content.slice(0, -2), user("b")]), last - 2, 2, 1],
    ["the last message edited", Prompt.fromMessages([...session.content.slice(0, -1), user("other")]), last - 1, 1, 1],
    [
      "one in the middle edited: what follows is taken anew",
      Prompt.fromMessages(session.content.map((message, at) => at === 28 ? assistant("edited") : message)),
      28,
      last - 28,
      last - 28
    ],
    [
      "the role changed",
      Prompt.fromMessages([...session.content.slice(0, -1), assistant("finish it")]),
      last - 1,
      1,
      1
    ],
    ["emptied", Prompt.empty, 0, last, 0]
  ]
  for (const [name, edited, seq, dropped, expected] of edits) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { events, manager, priced, value } = yield* compactedThen((manager) => manager.sync(edited))
        assert.deepStrictEqual(divergences(events), [{ _tag: "TranscriptDiverged", seq, dropped }])
        assert.deepStrictEqual((yield* manager.history).content, [...edited.content])
        // All decisions were taken over the whole session, so they are dropped with its end.
        const { decisions, transcript } = yield* manager.view
        assert.isTrue(decisions.every((decision) => decision.at <= transcript.entries.length))
        const originals = priced.filter((message) => edited.content.includes(message))
        assert.strictEqual(originals.length, expected, "what was kept keeps its price")
        const fresh = yield* make
        assert.strictEqual(bytesOf(value.prompt), bytesOf((yield* fresh.sync(edited)).prompt))
      }))
  }

  it.effect("decisions taken before the divergence stay, those after it go", () =>
    Effect.gen(function*() {
      const manager = yield* make
      yield* manager.sync(session)
      const early = (yield* manager.view).decisions
      const longer = add(
        session,
        ...Array.from({ length: 8 }, (_, n) => [calls(`more-${n}`), answers(result(`more-${n}`, words("m", 1_600)))])
          .flat(),
        user("and?")
      )
      yield* manager.sync(longer)
      const both = (yield* manager.view).decisions
      assert.isAbove(both.length, early.length)
      const rewound = yield* manager.sync(add(session, assistant("a reply")))
      assert.deepStrictEqual((yield* manager.view).decisions, early)
      assert.strictEqual(rewound.prefixChanged, "repair")
      assert.deepStrictEqual((yield* manager.sync(longer)).prefixChanged, "boundary")
      assert.deepStrictEqual((yield* manager.view).decisions.slice(0, early.length), early)
    }))

  it.effect("a result that was edited diverges at its entry, within its message", () =>
    Effect.gen(function*() {
      const manager = yield* make
      const both = (second: string) =>
        prompt(user("go"), calls("a", "b"), answers(result("a", { n: 1 }), result("b", second)))
      yield* manager.sync(both("two"))
      yield* manager.sync(both("three"))
      assert.include(bytesOf((yield* manager.request).prompt), "three")
      assert.notInclude(bytesOf(yield* manager.history), "two")
    }))

  const values: ReadonlyArray<readonly [name: string, before: unknown, after: unknown, same: boolean]> = [
    ["an object in another order", { a: 1, b: [1, 2] }, { b: [1, 2], a: 1 }, true],
    ["a key that is undefined", { a: 1, b: undefined }, { a: 1 }, true],
    ["another number", { a: 1 }, { a: 2 }, false],
    ["another key", { a: 1 }, { b: 1 }, false],
    ["a longer array", [1], [1, 2], false],
    ["an array for an object", [], {}, false],
    ["a text for a number", 1, "1", false],
    ["another date", new Date(0), new Date(1), false],
    ["the same date", new Date(0), new Date(0), true],
    ["other bytes", new Uint8Array([1]), new Uint8Array([2]), false],
    ["the same bytes", new Uint8Array([1]), new Uint8Array([1]), true],
    ["another address", new URL("https://a.example"), new URL("https://b.example"), false],
    ["a date, saved", new Date(0), "1970-01-01T00:00:00.000Z", true],
    ["nothing, saved", undefined, null, true],
    ["nothing where there was something", "", null, false]
  ]
  for (const [name, before, after, same] of values) {
    it.effect(`a result that is ${name}: ${same ? "the same" : "another"}`, () =>
      Effect.gen(function*() {
        const manager = yield* make
        const of = (value: unknown) => prompt(user("go"), calls("a"), answers(result("a", value)))
        yield* manager.sync(of(before))
        const kept = (yield* manager.history).content[2]
        yield* manager.sync(of(after))
        assert.strictEqual((yield* manager.history).content[2] === kept, same)
      }))
  }

  it.effect("a persisted chat keeps its place, though the store writes into its messages", () =>
    Effect.gen(function*() {
      const sent: Array<number> = []
      const model = Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          generateText: ({ prompt }) =>
            Effect.sync(() => {
              sent.push(prompt.content.length)
              return [{ type: "text" as const, text: words("answer", 200) }]
            }),
          streamText: () => Stream.empty
        })
      )
      const chats = Chat.layerPersisted({ storeId: "chats" }).pipe(Layer.provide(Persistence.layerBackingMemory))
      yield* Effect.gen(function*() {
        const manager = yield* make
        const events: Array<CompactionEvent.CompactionEvent> = []
        yield* Effect.forkChild(
          Stream.runForEach(manager.events, (event) => Effect.sync(() => events.push(event))),
          { startImmediately: true }
        )
        const store = yield* Chat.Persistence
        const chat = yield* store.getOrCreate("one")
        for (let n = 0; n < 4; n++) {
          yield* chat.generateText({ prompt: `question ${n}` })
          yield* manager.sync(yield* Ref.get(chat.history))
        }
        const again = yield* store.get("one")
        yield* again.generateText({ prompt: "after a reload" })
        const { prompt: view } = yield* manager.sync(yield* Ref.get(again.history))
        yield* Effect.yieldNow
        assert.deepStrictEqual(divergences(events), [])
        assert.strictEqual(view.content.length, 10)
        assert.strictEqual((yield* manager.status).entries, 10)
        assert.strictEqual(sent.length, 5)
      }).pipe(Effect.provide(Layer.merge(model, chats)))
    }))
})
