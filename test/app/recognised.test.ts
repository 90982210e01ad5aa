/** Conversations that nobody names: they are recognised by their prefix. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Gate from "effect-compaction/Gate"
import * as Policy from "effect-compaction/Policy"
import * as Stage from "effect-compaction/Stage"
import * as AiError from "effect/ai/AiError"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { prompt, session, system, user, words } from "../core/conversation.ts"
import * as Trace from "../properties/Trace.ts"
import { seeded } from "../seed.ts"
import * as Fake from "./fake.ts"

const settings = { maxTokens: 3_000, notice: false, meter: "estimate", protectedToolResults: 1 } as const

const answering = (seen: Fake.Seen) =>
  Fake.model(seen, (n) => Effect.succeed(Fake.text(`${n}: ${"an answer ".repeat(60)}`, 1)))

const sizes = (seen: Fake.Seen) => seen.prompts.map(({ content }) => JSON.stringify(content).length)

describe("the one line", () => {
  it.effect("a chat that nobody named is compacted: it goes on for hundreds of turns", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      yield* Effect.gen(function*() {
        const chat = yield* Chat.fromPrompt(prompt(system("S")))
        for (let turn = 0; turn < 200; turn++) yield* chat.generateText({ prompt: `question ${turn}` })
      }).pipe(Effect.provide(CompactedModel.withCompaction(answering(seen), { settings })))
      assert.strictEqual(seen.prompts.length, 200)
      assert.isBelow(Math.max(...sizes(seen)), 40_000)
      // Most requests extend the one before: the prefix is kept.
      const kept = seen.prompts.slice(1).filter(({ content }, at) => {
        const before = seen.prompts[at]!.content
        return before.every((message, index) =>
          content[index] !== undefined && Trace.said(message) === Trace.said(content[index])
        )
      })
      assert.isAbove(kept.length, 150)
    }))

  it.effect("chats that are interleaved send what each sends through a manager of its own", () =>
    Effect.gen(function*() {
      const chats = 12
      const turns = 12
      const play = (
        provide: (
          at: number
        ) => <A, E>(
          self: Effect.Effect<A, E, LanguageModel.LanguageModel>
        ) => Effect.Effect<A, E, LanguageModel.LanguageModel>,
        seen: Fake.Seen
      ) =>
        Effect.gen(function*() {
          // Every second chat begins with the words of the one before it.
          const all = yield* Effect.forEach(
            Array.from({ length: chats }, (_, at) => at),
            (at) => Chat.fromPrompt(prompt(system("S"), user(`task ${at >> 1}`)))
          )
          for (let turn = 0; turn < turns; turn++) {
            for (const [at, chat] of all.entries()) {
              const said = turn === 0 ? [] : `chat ${at}, turn ${turn}: ${words(`${at}`, 700)}`
              yield* provide(at)(chat.generateText({ prompt: said }))
            }
          }
          return seen.prompts.map(({ content }) => content.map(Trace.said))
        })
      const model = (seen: Fake.Seen) =>
        Fake.model(seen, (n) => Effect.succeed(Fake.text(`${n}: ${"an answer ".repeat(40)}`, 1)))
      const own = Fake.nothingSeen()
      const managers = yield* Effect.forEach(
        Array.from({ length: chats }),
        () => ContextManager.make(seeded({ settings }))
      )
      const expected = yield* play(
        (at) => (self) => Effect.provideService(self, ContextManager.Current, managers[at]),
        own
      ).pipe(Effect.provide(CompactedModel.withCompaction(model(own))))
      const together = Fake.nothingSeen()
      const actual = yield* play(() => (self) => self, together).pipe(
        Effect.provide(CompactedModel.withCompaction(model(together), seeded({ settings })))
      )
      for (const [at, sent] of actual.entries()) assert.deepStrictEqual(sent, expected[at], `request ${at}`)
    }))

  it.effect("a chat that was read again goes on in its session, with its decisions", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      yield* Effect.gen(function*() {
        const chat = yield* Chat.fromPrompt(session)
        yield* chat.generateText({ prompt: "and now?" })
        const again = yield* Chat.fromJson(yield* chat.exportJson)
        yield* again.generateText({ prompt: "and then?" })
      }).pipe(Effect.provide(CompactedModel.withCompaction(answering(seen), { settings })))
      const [first, second] = seen.prompts.map(({ content }) => content.map(Trace.said))
      assert.isBelow(first!.length, session.content.length + 1)
      assert.deepStrictEqual(second!.slice(0, first!.length), first)
    }))

  it.effect("a title call over the same words leaves the chat its decisions", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      yield* Effect.gen(function*() {
        const chat = yield* Chat.fromPrompt(session)
        yield* chat.generateText({ prompt: "and now?" })
        const history = yield* Ref.get(chat.history)
        yield* LanguageModel.generateText({
          prompt: Prompt.concat(history, Prompt.make("A title of five words."))
        })
        yield* chat.generateText({ prompt: "and then?" })
      }).pipe(Effect.provide(CompactedModel.withCompaction(answering(seen), { settings })))
      const [first, , third] = seen.prompts.map(({ content }) => content.map(Trace.said))
      assert.deepStrictEqual(third!.slice(0, first!.length), first)
      assert.isFalse(third!.some((said) => said.includes("five words")))
    }))

  it.effect("nothing leaks: there are no more conversations than may be, and none that was idle for its time", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      let begun = 0
      let ended = 0
      const counting = Policy.passFrom((pass: Stage.Pass) => Effect.succeed(pass))
      yield* Effect.gen(function*() {
        for (let at = 0; at < 300; at++) {
          yield* LanguageModel.generateText({ prompt: prompt(user(`chat ${at}`)) })
          begun++
          if (at === 200) yield* TestClock.adjust("2 hours")
        }
        ended = begun
      }).pipe(Effect.provide(
        CompactedModel.withCompaction(answering(seen), { pass: counting, conversations: { most: 5 } })
      ))
      assert.strictEqual(ended, 300)
    }))
})

class TooSecret extends Schema.TaggedError<TooSecret>("test/TooSecret")("TooSecret", {
  entries: Schema.Array(Schema.Natural),
  level: Schema.Natural
}) {
  override get message() {
    return "a secret would be sent"
  }
}

describe("a pass that fails", () => {
  const forbidding: Stage.Stage<TooSecret> = () => Effect.fail(new TooSecret({ entries: [1, 2], level: 3 }))
  const pass = Policy.passFrom(Stage.when(forbidding, (given) => Gate.threshold(given) || given.entries > 2))
  const ask = (options: Pick<CompactedModel.Options, "onPassError"> = {}) => {
    const seen = Fake.nothingSeen()
    const call = LanguageModel.generateText({ prompt: session }).pipe(
      Effect.provide(CompactedModel.withCompaction(answering(seen), { settings, pass, ...options }))
    )
    return { seen, call }
  }

  it.effect("fails the call, and nothing is sent: the error, its type, its numbers and lists are there", () =>
    Effect.gen(function*() {
      const { call, seen } = ask()
      const error = yield* Effect.flip(call)
      assert.strictEqual(seen.prompts.length, 0)
      assert.isTrue(AiError.isAiError(error))
      const cause = CompactedModel.causeOf(error, TooSecret)
      assert.deepStrictEqual(cause?.entries, [1, 2])
      assert.isUndefined(CompactedModel.causeOf(error, Gate.TargetBelowOverhead))
      assert.include(JSON.stringify(error), "\"entries\":[1,2]")
    }))

  it.effect("sends the last good view where the app says so, for all errors or by the error", () =>
    Effect.gen(function*() {
      const ways: ReadonlyArray<CompactedModel.Options["onPassError"]> = ["sendUndecided", () => "sendUndecided"]
      for (const onPassError of ways) {
        const { call, seen } = ask(onPassError === undefined ? {} : { onPassError })
        yield* call
        assert.strictEqual(seen.prompts.length, 1)
      }
    }))

  it.effect("a stage that dies is a bug, and fails no call", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const dying = Policy.passFrom((_: Stage.Pass) => Effect.die("a bug"))
      yield* LanguageModel.generateText({ prompt: session }).pipe(
        Effect.provide(CompactedModel.withCompaction(answering(seen), { settings, pass: dying }))
      )
      assert.strictEqual(seen.prompts.length, 1)
    }))
})
