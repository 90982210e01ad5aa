import { assert, describe, it } from "@effect/vitest"
import * as ClusterConversations from "effect-compaction/ClusterConversations"
import type * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import type * as Prompt from "effect/ai/Prompt"
import * as TestRunner from "effect/cluster/TestRunner"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"

const texts = ({ content }: Prompt.Prompt) =>
  content.map((message) =>
    typeof message.content === "string"
      ? message.content
      : message.content.map((part) => part.type === "text" ? part.text : "").join("")
  )

/** Counts model calls, and how many run at once; answers with what was said, in two pieces. */
const counting = () => {
  const seen = { calls: 0, running: 0, most: 0, fails: 0 }
  const answer = <E>(manager: ContextManager.ContextManager<E>) =>
    Stream.unwrap(Effect.gen(function*() {
      const { prompt } = yield* manager.request
      seen.calls++
      seen.running++
      seen.most = Math.max(seen.most, seen.running)
      yield* Effect.yieldNow
      seen.running--
      if (seen.fails > 0) {
        seen.fails--
        return yield* Effect.fail({ _tag: "Overloaded", message: "the model is busy." } as const)
      }
      const said = `heard ${texts(prompt).at(-1)}`
      yield* manager.append({ role: "assistant", content: said })
      return Stream.make(said.slice(0, 5), said.slice(5))
    }))
  return { seen, answer }
}

const running = (
  answer: ReturnType<typeof counting>["answer"],
  store: Layer.Layer<SessionStore.SessionStore> = SessionStore.layerMemory
) =>
  Layer.mergeAll(
    ClusterConversations.layer,
    ClusterConversations.layerRunner({ answer, policy: { settings: { window: 200_000 } }, maxIdleTime: "1 second" })
  ).pipe(Layer.provide(TestRunner.layer), Layer.provideMerge(store))

const chatOf = (id: string) => Effect.map(ClusterConversations.ClusterConversations, ({ chat }) => chat(id))

describe("conversations of a cluster", () => {
  it.live("answer, keep apart, and keep what was said", () => {
    const { answer, seen } = counting()
    return Effect.gen(function*() {
      const [a, b] = yield* Effect.all([chatOf("a"), chatOf("b")])
      assert.strictEqual(yield* a.say("one"), "heard one")
      assert.strictEqual(yield* b.say("two"), "heard two")
      yield* a.append("by the way")
      assert.deepStrictEqual(yield* Stream.runCollect(a.stream("three")), ["heard", " three"])
      assert.deepStrictEqual(texts(yield* a.history), ["one", "heard one", "by the way", "three", "heard three"])
      assert.strictEqual(seen.calls, 3)
    }).pipe(Effect.provide(running(answer)))
  })

  it.live("do one call at a time, and the same call once", () => {
    const { answer, seen } = counting()
    return Effect.gen(function*() {
      const chat = yield* chatOf("a")
      yield* Effect.all(Array.from({ length: 5 }, (_, at) => chat.say(`${at}`)), { concurrency: "unbounded" })
      assert.deepInclude(seen, { calls: 5, most: 1 })
      const twice = yield* Effect.all([chat.say("once", { key: "k" }), chat.say("once", { key: "k" })])
      assert.deepStrictEqual(twice, ["heard once", "heard once"])
      assert.strictEqual(yield* chat.say("once", { key: "k" }), "heard once")
      assert.deepStrictEqual(yield* Stream.runCollect(chat.stream("once", { key: "k" })), ["heard once"])
      assert.strictEqual(seen.calls, 6)
    }).pipe(Effect.provide(running(answer)))
  })

  it.live("fail typed, and the same call goes on where it failed", () => {
    const { answer, seen } = counting()
    seen.fails = 1
    return Effect.gen(function*() {
      const chat = yield* chatOf("a")
      const error = yield* Effect.flip(Stream.runCollect(chat.stream("one", { key: "k" })))
      assert.deepInclude(error, { _tag: "ConversationFailed", id: "a", error: "Overloaded" })
      assert.deepStrictEqual(yield* Stream.runCollect(chat.stream("one", { key: "k" })), ["heard", " one"])
      assert.deepStrictEqual(texts(yield* chat.history), ["one", "heard one"])
    }).pipe(Effect.provide(running(answer)))
  })

  it.live("end when they are idle, come back from their log, and know the call that came last", () => {
    const { answer, seen } = counting()
    let opened = 0
    const store = Layer.effect(
      SessionStore.SessionStore,
      Effect.map(SessionStore.makeMemory, (memory) => ({
        ...memory,
        open: (id: string) =>
          Effect.suspend(() => {
            opened++
            return memory.open(id)
          })
      }))
    )
    return Effect.gen(function*() {
      const chat = yield* chatOf("a")
      yield* Stream.runDrain(chat.stream("one", { key: "k" }))
      yield* Effect.sleep("6 seconds")
      assert.deepStrictEqual(texts(yield* chat.history), ["one", "heard one"])
      assert.strictEqual(opened, 2)
      assert.deepStrictEqual(yield* Stream.runCollect(chat.stream("one", { key: "k" })), ["heard one"])
      assert.strictEqual(seen.calls, 1)
    }).pipe(Effect.provide(running(answer, store)))
  }, 20_000)

  it.live("answer nothing on behalf of a session that somebody else has taken", () => {
    const { answer, seen } = counting()
    return Effect.gen(function*() {
      const chat = yield* chatOf("a")
      yield* chat.say("one")
      const store = yield* SessionStore.SessionStore
      yield* Effect.scoped(Effect.flatMap(store.open("a"), (log) => log.flush))
      const error = yield* Effect.flip(chat.say("two"))
      assert.deepInclude(error, { _tag: "ConversationFailed", error: "SessionLost" })
      assert.strictEqual(seen.calls, 1)
    }).pipe(Effect.provide(running(answer)))
  })
})
