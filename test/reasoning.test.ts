import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Marks from "effect-compaction/Marks"
import type * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as View from "effect-compaction/View"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Reasoning from "../src/ladder/reasoning.ts"
import { answers, prompt, result, system, user, words } from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"

const signed = (text: string) =>
  Prompt.makePart("reasoning", {
    text,
    options: { anthropic: { info: { type: "thinking", signature: `sig ${text}` } } }
  })

const call = (id: string, options: Prompt.ProviderOptions = {}) =>
  Prompt.makePart("tool-call", { id, name: "read", params: { path: id }, providerExecuted: false, options })

const thinking = (id: string, ...parts: ReadonlyArray<Prompt.AssistantMessagePart>) =>
  Prompt.makeMessage("assistant", { content: [signed(`thought ${id}`), ...parts] })

/** A turn of the model that thinks, calls a tool, and reads `length` characters. */
const step = (id: string, length: number) => [thinking(id, call(id)), answers(result(id, words(id, length)))]

const settings: Settings.Input = { notice: false, protectedToolResults: 1, targetUsage: 0.7 }

/** Whose reasoning is in a prompt, by id. */
const thoughtsOf = ({ prompt }: ContextManager.Request): ReadonlyArray<string> =>
  prompt.content.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((part) => part.type === "reasoning" ? [part.text.replace("thought ", "")] : [])
      : []
  )

const seqsOf = (view: View.View, tag: "Trim" | "Truncate", from = 0): ReadonlyArray<number> =>
  view.decisions.slice(from).flatMap((decision) => decision._tag === tag ? [decision.seq] : [])

const ids = Arr.range(0, 9).map((n) => `c${n}`)

/** Ten steps: too much for a budget of 5,600 tokens. */
const long = prompt(user("go"), ...ids.flatMap((id) => step(id, 2_000)))

const managing = (more: Settings.Input = {}) => ContextManager.make(seeded({ settings: { ...settings, ...more } }))

describe("signedReasoning: strip", () => {
  it.effect("an untouched prefix keeps it, the same objects", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      yield* manager.append(long)
      const request = yield* manager.requestWith({ budget: 100_000 })
      assert.strictEqual(request.prompt.content.length, long.content.length)
      for (const [at, message] of request.prompt.content.entries()) assert.strictEqual(message, long.content[at])
    }).pipe(Effect.scoped))

  it.effect("at a boundary what stands behind the first change goes, whole, in the same boundary", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      yield* manager.append(prompt(...long.content, user("and now?")))
      const request = yield* manager.requestWith({ budget: 5_600 })
      const view = yield* manager.view
      assert.strictEqual(seqsOf(view, "Truncate")[0], 2)
      assert.deepStrictEqual(thoughtsOf(request), ["c0"], "the first thought stands before the first truncated result")
      assert.deepStrictEqual(seqsOf(view, "Trim"), Arr.range(1, 9).map((n) => 1 + 2 * n))
      assert.strictEqual(request.generation, 1)
      assert.strictEqual((yield* manager.status).lastBoundary!.after, view.price)
      const calls = request.prompt.content.filter((message) => message.role === "assistant")
      assert.strictEqual(calls.length, 10, "nothing but the reasoning went")
    }).pipe(Effect.scoped))

  it.effect("what is born after the boundary stays, until another one", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      yield* manager.append(prompt(...long.content, user("and now?")))
      yield* manager.requestWith({ budget: 5_600 })
      yield* manager.append(prompt(...step("new", 100), user("more")))
      assert.deepStrictEqual(thoughtsOf(yield* manager.requestWith({ budget: 5_600 })), ["c0", "new"])
      yield* manager.append(prompt(...step("newer", 8_000), user("more")))
      const later = yield* manager.requestWith({ budget: 5_600 })
      assert.strictEqual(later.prefixChanged, "boundary")
      assert.notInclude(thoughtsOf(later), "new")
    }).pipe(Effect.scoped))

  it.effect("keep: nothing is dropped, and an open turn is compacted", () =>
    Effect.gen(function*() {
      const manager = yield* managing({ signedReasoning: "keep" })
      yield* manager.append(
        prompt(...long.content, thinking("open", call("x"), call("y")), answers(result("x", "one")))
      )
      const request = yield* manager.requestWith({ budget: 5_600 })
      assert.strictEqual(request.generation, 1)
      assert.deepStrictEqual(thoughtsOf(request), [...ids, "open"])
    }).pipe(Effect.scoped))

  it.effect("a boundary that was refused drops nothing", () =>
    Effect.gen(function*() {
      const manager = yield* managing({ clearAtLeast: 50_000, maxConsecutiveSkips: 9 })
      yield* manager.append(prompt(...long.content, user("and now?")))
      const request = yield* manager.requestWith({ budget: 5_600 })
      assert.strictEqual(request.generation, 0)
      assert.deepStrictEqual(thoughtsOf(request), ids)
    }).pipe(Effect.scoped))

  it.effect("a pinned entry keeps its own", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      const content = long.content.map((message, at) => at === 7 ? Marks.set(message, { pinned: true }) : message)
      yield* manager.append(Prompt.fromMessages([...content, user("and now?")]))
      assert.deepStrictEqual(thoughtsOf(yield* manager.requestWith({ budget: 5_600 })), ["c0", "c3"])
    }).pipe(Effect.scoped))
})

describe("a tool turn in progress", () => {
  it.effect("one of two results: nothing is decided and nothing dropped, over the threshold too; the second: both", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      yield* manager.append(
        prompt(...long.content, thinking("open", call("x"), call("y")), answers(result("x", "one")))
      )
      const held = yield* manager.requestWith({ budget: 5_600 })
      assert.strictEqual(held.generation, 0)
      assert.deepStrictEqual((yield* manager.view).decisions, [])
      assert.deepStrictEqual(thoughtsOf(held), [...ids, "open"])
      yield* manager.append(prompt(answers(result("y", "two"))))
      const request = yield* manager.requestWith({ budget: 5_600 })
      assert.strictEqual(request.generation, 1)
      assert.deepStrictEqual(thoughtsOf(request), ["c0", "open"])
    }).pipe(Effect.scoped))

  it.effect("without signed reasoning it is compacted as ever", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      yield* manager.append(prompt(...long.content, Prompt.makeMessage("assistant", { content: [call("x")] })))
      assert.strictEqual((yield* manager.requestWith({ budget: 5_600 })).generation, 1)
    }).pipe(Effect.scoped))

  it.effect("the newest thought since the last human stays: Anthropic asks for it before a tool use", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      yield* manager.append(long)
      assert.deepStrictEqual(thoughtsOf(yield* manager.requestWith({ budget: 5_600 })), ["c0", "c9"])
      yield* manager.append(prompt(user("thank you"), ...step("c10", 9_000)))
      const later = yield* manager.requestWith({ budget: 5_600 })
      assert.strictEqual(later.prefixChanged, "boundary")
      assert.deepStrictEqual(thoughtsOf(later), ["c10"])
    }).pipe(Effect.scoped))

  it.effect("one thought for several calls: it stays with the first of them", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      const bare = [Prompt.makeMessage("assistant", { content: [call("u")] }), answers(result("u", words("u", 2_000)))]
      yield* manager.append(prompt(...long.content, user("go on"), ...step("t", 50), ...bare))
      assert.deepStrictEqual(thoughtsOf(yield* manager.requestWith({ budget: 5_600 })), ["c0", "t"])
    }).pipe(Effect.scoped))
})

describe("signed reasoning behind a change", () => {
  /** What is left of a view when the result at a seq is truncated, whatever the sizes. */
  const truncated = (view: View.View, seq: number, settings: Settings.Settings): View.View =>
    Reasoning.strip(
      view,
      View.make(view.transcript, [
        ...view.decisions,
        { _tag: "Truncate", seq, at: view.length, k: 10, shape: "head" }
      ]),
      settings
    )

  it.effect("goes, whatever stage made the change", () =>
    Effect.gen(function*() {
      const pass = yield* Stage.fromPrompt(prompt(system("s"), ...long.content, user("and?")), {
        settings: seed(),
        budget: 1_000_000
      })
      const after = truncated(pass.view, 9, pass.settings)
      assert.deepStrictEqual(seqsOf(after, "Trim"), [10, 12, 14, 16, 18, 20])
      for (const item of after.items.slice(0, 8)) assert.strictEqual(item.message, item.entry!.message)
      const again = truncated(after, 3, pass.settings)
      assert.deepStrictEqual(
        seqsOf(again, "Trim", after.decisions.length),
        [4, 6, 8],
        "what was dropped is not dropped again"
      )
    }))

  it.effect("what followed the reasoning as an item loses the reference to it (R6)", () =>
    Effect.gen(function*() {
      const item = (itemId: string) => ({ openai: { itemId } })
      const message = Prompt.makeMessage("assistant", {
        content: [
          Prompt.makePart("text", { text: "before", options: item("msg_1") }),
          Prompt.makePart("reasoning", { text: "", options: { openai: { itemId: "rs_1", encryptedContent: "…" } } }),
          Prompt.makePart("text", { text: "after", options: item("msg_2") }),
          call("x", item("fc_1"))
        ]
      })
      const content = prompt(user("go"), ...step("a", 900), message, answers(result("x", "y")), user("and?"))
      const pass = yield* Stage.fromPrompt(content, { settings: seed(), budget: 1_000_000 })
      const stripped = truncated(pass.view, 2, pass.settings).items[3]!.message
      assert.deepStrictEqual(
        stripped.role === "assistant" ? stripped.content.map((part) => [part.type, part.options]) : [],
        [["text", item("msg_1")], ["text", { openai: {} }], ["tool-call", { openai: {} }]]
      )
    }))

  it.effect("a message of nothing but reasoning is not sent empty", () =>
    Effect.gen(function*() {
      const manager = yield* managing()
      yield* manager.append(prompt(...long.content, thinking("alone"), user("and now?")))
      const request = yield* manager.requestWith({ budget: 5_600 })
      assert.strictEqual(request.generation, 1)
      for (const message of request.prompt.content) assert.isAbove(message.content.length, 0)
    }).pipe(Effect.scoped))
})
