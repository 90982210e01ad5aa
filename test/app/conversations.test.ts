import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Conversations from "effect-compaction/Conversations"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { session } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Fake from "./fake.ts"

class Chats extends Conversations.Service<Chats>()(
  "test/Chats",
  { ...seeded({ settings: { maxTokens: 4_000, notice: false } }), idleTimeToLive: "10 minutes" }
) {}

const entries = (id: string) =>
  Effect.scoped(Effect.gen(function*() {
    return (yield* (yield* (yield* Chats).get(id)).status).entries
  }))

describe("conversations", () => {
  it.effect("each id has its own manager, the same for everybody who holds it", () =>
    Effect.gen(function*() {
      const chats = yield* Chats
      const [a, again, b] = [yield* chats.get("a"), yield* chats.get("a"), yield* chats.get("b")]
      assert.isTrue(a === again)
      assert.isFalse((a as unknown) === b)
      yield* a.append("hello")
      assert.strictEqual((yield* again.status).entries, 1)
      assert.strictEqual((yield* b.status).entries, 0)
    }).pipe(Effect.provide(Chats.layer)))

  it.effect("a decorated model finds the conversation that it is provided with", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const chats = yield* Chats
      yield* LanguageModel.generateText({ prompt: session }).pipe(
        chats.provide("a"),
        Effect.provide(CompactedModel.withCompaction(Fake.model(seen, () => Effect.succeed(Fake.text("ok", 1)))))
      )
      assert.strictEqual(yield* entries("a"), session.content.length)
      assert.strictEqual(yield* entries("b"), 0)
      assert.isUndefined(yield* ContextManager.Current)
    }).pipe(Effect.provide(Chats.layer)))

  it.effect("one that is idle for its time is gone, one in use is not", () =>
    Effect.gen(function*() {
      const chats = yield* Chats
      const append = (id: string) => Effect.scoped(Effect.flatMap(chats.get(id), (self) => self.append("hello")))
      yield* append("a")
      yield* append("held")
      const held = yield* chats.get("held")
      yield* TestClock.adjust("9 minutes")
      assert.strictEqual(yield* entries("a"), 1)
      // It was used just now: its time begins anew.
      yield* TestClock.adjust("9 minutes")
      assert.strictEqual(yield* entries("a"), 1)
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* entries("a"), 0)
      assert.strictEqual((yield* held.status).entries, 1)
      assert.strictEqual(yield* entries("held"), 1)
    }).pipe(Effect.provide(Chats.layer)))

  it.effect("one that is idle is gone after five minutes where nothing else is said, and not before", () =>
    Effect.gen(function*() {
      const chats = yield* Conversations.make(seeded({ settings: { notice: false } }))
      const held = (id: string) => Effect.scoped(Effect.flatMap(chats.get(id), (self) => self.status))
      yield* Effect.scoped(Effect.flatMap(chats.get("a"), (self) => self.append("hello")))
      yield* TestClock.adjust("4 minutes")
      assert.strictEqual((yield* held("a")).entries, 1)
      yield* TestClock.adjust("6 minutes")
      assert.strictEqual((yield* held("a")).entries, 0)
    }))

  it.effect("dropped, it ends at once", () =>
    Effect.gen(function*() {
      const chats = yield* Chats
      yield* Effect.scoped(Effect.flatMap(chats.get("a"), (self) => self.append("hello")))
      yield* chats.drop("a")
      assert.strictEqual(yield* entries("a"), 0)
    }).pipe(Effect.provide(Chats.layer)))
})
