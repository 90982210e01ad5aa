/** What stands at the very end of a request, and what is remembered of it. */
import { assert, describe, it } from "@effect/vitest"
import * as Decision from "effect-compaction/Decision"
import * as Marks from "effect-compaction/Marks"
import * as Settings from "effect-compaction/Settings"
import * as Transcript from "effect-compaction/Transcript"
import * as View from "effect-compaction/View"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Tail from "../../src/session/tail.ts"
import { answers, assistant, calls, prompt, result, user, words } from "../core/conversation.ts"
import { seed } from "../seed.ts"

const price = () => 10

const sources = (messages: ReadonlyArray<Prompt.Message>) => messages.map((message) => Marks.of(message).source)

const settings = Settings.decode(seed({ replayLastUser: true, noticeMinLevel: 3 }))

const input = Effect.fnUntraced(function*(
  messages: ReadonlyArray<Prompt.Message>,
  more: Partial<Tail.Input> = {},
  decisions: ReadonlyArray<Decision.Decision> = []
): Effect.fn.Return<Tail.Input, unknown> {
  const transcript = Transcript.fromPrompt(prompt(...messages), price)
  const view = View.make(transcript, decisions)
  const lastHuman = view.items.find((item) => item.seq === transcript.lastHuman)
  return {
    transcript,
    settings: yield* settings,
    room: 1_000,
    isBoundary: true,
    level: 3,
    generation: 1,
    counts: () => ({ ...Decision.noCounts, removed: 2 }),
    lastHuman,
    isLast: lastHuman !== undefined && lastHuman === view.items.at(-1),
    isPaused: false,
    recalls: false,
    ...more
  }
})

const spoken = [user("find it"), assistant("looking"), user("the other one"), assistant("so")]

describe("the notice", () => {
  it.effect("is there from the level on that the settings name", () =>
    Effect.gen(function*() {
      for (const [level, is] of [[2, false], [3, true], [4, true]] as const) {
        const { messages } = Tail.make(Tail.noMemory, yield* input(spoken, { level, isBoundary: false }))
        assert.deepStrictEqual(sources(messages), is ? ["context-compaction"] : [], `level ${level}`)
      }
    }))

  it.effect("that found no room was not shown: the next one is in full", () =>
    Effect.gen(function*() {
      const tight = Tail.make(Tail.noMemory, yield* input(spoken, { room: 9 }))
      assert.deepStrictEqual(tight.messages, [])
      assert.strictEqual(tight.memory.announced, 0)
      const next = Tail.make(tight.memory, yield* input(spoken, { isBoundary: false }))
      assert.include(JSON.stringify(next.messages), "2 messages left out")
      assert.strictEqual(next.memory.announced, 1)
      const after = Tail.make(next.memory, yield* input(spoken, { isBoundary: false }))
      assert.include(JSON.stringify(after.messages), "Nothing new happened since")
      // Exactly what is left is enough.
      const exact = Tail.make(Tail.noMemory, yield* input(spoken, { room: 10, isBoundary: false }))
      assert.deepStrictEqual([exact.price, exact.memory.announced], [10, 1])
    }))

  it.effect("comes anew with each boundary", () =>
    Effect.gen(function*() {
      const { memory } = Tail.make(Tail.noMemory, yield* input(spoken))
      const second = Tail.make(memory, yield* input(spoken, { generation: 2 }))
      assert.include(JSON.stringify(second.messages), "2 messages left out")
      assert.strictEqual(second.memory.announced, 2)
    }))
})

describe("the repeat of the last human message", () => {
  it.effect("comes once for a boundary, before the notice", () =>
    Effect.gen(function*() {
      const first = Tail.make(Tail.noMemory, yield* input(spoken))
      assert.deepStrictEqual(sources(first.messages), ["context-replay", "context-compaction"])
      assert.include(JSON.stringify(first.messages[0]), "the other one")
      assert.strictEqual(first.price, 20)
      const second = Tail.make(first.memory, yield* input(spoken, { isBoundary: false }))
      assert.deepStrictEqual(sources(second.messages), ["context-compaction"])
    }))

  it.effect("waits while a call is open, and comes with the next request", () =>
    Effect.gen(function*() {
      const open = Tail.make(Tail.noMemory, yield* input([...spoken, calls("a")]))
      assert.deepStrictEqual([open.messages, open.memory.pending], [[], 1])
      const waiting = Tail.make(open.memory, yield* input([...spoken, calls("a")], { isBoundary: false }))
      assert.deepStrictEqual([waiting.messages, waiting.memory.pending], [[], 1])
      const closed = [...spoken, calls("a"), answers(result("a", "found"))]
      const later = Tail.make(waiting.memory, yield* input(closed, { isBoundary: false }))
      assert.deepStrictEqual(sources(later.messages), ["context-replay", "context-compaction"])
      assert.isNull(later.memory.pending)
      const again = Tail.make(later.memory, yield* input(closed, { isBoundary: false }))
      assert.deepStrictEqual(sources(again.messages), ["context-compaction"])
      // One that waits for an older boundary is not due any more.
      const other = Tail.make(waiting.memory, yield* input(closed, { isBoundary: false, generation: 2 }))
      assert.deepStrictEqual(sources(other.messages), ["context-compaction"])
    }))

  it.effect("is left out where a copy would say nothing, or not in the words of a person", () =>
    Effect.gen(function*() {
      const long = words("all of it", 2_000)
      const stub: Decision.Decision = { _tag: "Stub", seq: 0, at: 2, k: 1 }
      const excerpt: Decision.Decision = { _tag: "Excerpt", seq: 0, at: 2, text: "all" }
      const cases: ReadonlyArray<readonly [string, Effect.Effect<Tail.Input, unknown>]> = [
        ["nothing stands behind it", input([assistant("so"), user("go on")])],
        ["it is stubbed", input([user(long), assistant("so")], {}, [stub])],
        ["it is an excerpt", input([user(long), assistant("so")], {}, [excerpt])],
        ["it has no text", input([user(" \n"), assistant("so")])],
        ["it is a reminder", input([user("<system-reminder source=\"hook\">run</system-reminder>"), assistant("so")])],
        ["it begins with one", input([user("\n <system-reminder>x</system-reminder> and"), assistant("so")])],
        ["there is none", input([assistant("so")])]
      ]
      for (const [name, made] of cases) {
        const { memory, messages } = Tail.make(Tail.noMemory, yield* made)
        assert.deepStrictEqual(sources(messages), ["context-compaction"], name)
        assert.isNull(memory.pending, name)
      }
      const { messages } = Tail.make(Tail.noMemory, yield* input([user(`see <system-reminder>`), assistant("so")]))
      assert.deepStrictEqual(sources(messages), ["context-replay", "context-compaction"], "a word about one is a word")
    }))

  it.effect("that finds no room makes room for the notice", () =>
    Effect.gen(function*() {
      const long = Transcript.fromPrompt(prompt(...spoken), (message) => JSON.stringify(message).length)
      const made = yield* input(spoken)
      const notice = Tail.make(Tail.noMemory, { ...made, transcript: long, room: 100_000, isBoundary: false }).price
      const { messages } = Tail.make(Tail.noMemory, { ...made, transcript: long, room: notice })
      assert.deepStrictEqual(sources(messages).length, 1)
    }))

  it.effect("and the notice are left out before the first boundary, and behind a turn that goes on", () =>
    Effect.gen(function*() {
      const none = Tail.make(Tail.noMemory, yield* input(spoken, { generation: 0 }))
      assert.deepStrictEqual(none.messages, [])
      const paused = Tail.make(Tail.noMemory, yield* input(spoken, { isPaused: true }))
      assert.deepStrictEqual([paused.messages, paused.memory.pending, paused.price], [[], 1, 0])
    }))
})
