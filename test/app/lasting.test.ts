/** Chats that last: what was said is in the log when the call returns. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Conversations from "effect-compaction/Conversations"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { seeded } from "../seed.ts"
import * as Fake from "./fake.ts"

const Pay = Tool.make("pay", { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String })
const Kit = Toolkit.make(Pay)

const settings = { maxTokens: 4_000, notice: false } as const

const rolesOf = (history: { readonly content: ReadonlyArray<{ readonly role: string }> }) =>
  history.content.map(({ role }) => role)

describe("a chat of a conversation that is kept", () => {
  it.effect("has its answer and the results of its tools in the log when the call returns; no tool runs again", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      let paid = 0
      const handlers = Kit.toLayer({
        pay: () =>
          Effect.sync(() => {
            paid++
            return "paid"
          })
      })
      const model = CompactedModel.withCompaction(
        Fake.model(seen, (n) => Effect.succeed(n === 1 ? Fake.call("c1", 9, "pay") : Fake.text(`done ${n}`, 9)))
      )
      yield* Effect.gen(function*() {
        // The process ends right behind the call.
        yield* Effect.scoped(Effect.gen(function*() {
          const conversations = yield* Conversations.make(seeded({ settings }))
          const chat = yield* conversations.chat("user-42")
          yield* chat.generateText({ prompt: "pay the bill", toolkit: Kit })
        }))
        yield* Effect.scoped(Effect.gen(function*() {
          const conversations = yield* Conversations.make(seeded({ settings }))
          const chat = yield* conversations.chat("user-42")
          assert.deepStrictEqual(rolesOf(yield* Ref.get(chat.history)), ["user", "assistant", "tool"])
          const { text } = yield* chat.generateText({ prompt: [], toolkit: Kit })
          assert.strictEqual(text, "done 2")
          assert.isTrue(chat === (yield* conversations.chat("user-42")), "it is the same chat for everybody")
          const history = yield* (yield* conversations.get("user-42")).history
          assert.deepStrictEqual(rolesOf(history), ["user", "assistant", "tool", "assistant"])
        }))
        assert.strictEqual(paid, 1)
      }).pipe(Effect.provide([model, handlers, SessionStore.layerMemory]))
    }))

  it.effect("is whole after a stream, and another conversation knows nothing of it", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(Fake.model(seen, (n) => Effect.succeed(Fake.text(`said ${n}`, 9))))
      yield* Effect.gen(function*() {
        const conversations = yield* Conversations.make(seeded({ settings }))
        const chat = yield* conversations.chat("a")
        yield* Stream.runDrain(chat.streamText({ prompt: "hello" }))
        yield* Stream.runDrain(chat.streamText({ prompt: "and now?" }))
        const manager = yield* conversations.get("a")
        assert.isTrue(manager.isDurable)
        assert.deepStrictEqual(rolesOf(yield* manager.history), ["user", "assistant", "user", "assistant"])
        assert.strictEqual((yield* (yield* conversations.get("b")).history).content.length, 0)
      }).pipe(Effect.provide([model, SessionStore.layerMemory]))
    }).pipe(Effect.scoped))

  it.effect("in memory where there is no store, and the service finds the store too", () =>
    Effect.gen(function*() {
      class App extends ContextManager.Service<App>()("test/App", seeded({ settings })) {}
      const append = Effect.flatMap(App, (manager) => Effect.as(manager.append("hello"), manager.isDurable))
      assert.isFalse(yield* Effect.provide(append, App.layer))
      const store = yield* SessionStore.makeMemory
      const kept = append.pipe(
        Effect.provide(App.layer),
        Effect.provideService(SessionStore.SessionStore, store)
      )
      assert.isTrue(yield* kept)
      assert.deepStrictEqual(yield* store.list, ["test/App"])
    }))
})
