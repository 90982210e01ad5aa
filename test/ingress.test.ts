import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Marks from "effect-compaction/Marks"
import type * as Policy from "effect-compaction/Policy"
import type * as Settings from "effect-compaction/Settings"
import * as SpillStore from "effect-compaction/SpillStore"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Text from "../src/text/text.ts"
import { answers, bytesOf, calls, prompt, result, turn, user, words } from "./core/conversation.ts"

const cap = 1_000
const settings: Settings.Input = { notice: false, maxToolResultBytes: cap }

/** Runs with a manager, and returns what it published beside what came of it. */
const published = <A>(
  options: Policy.Options,
  use: (manager: ContextManager.ContextManager<Policy.PassError>) => Effect.Effect<A, unknown>
) =>
  Effect.gen(function*() {
    const manager = yield* ContextManager.make(options)
    const events: Array<CompactionEvent.CompactionEvent> = []
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(manager.events, (event) => Effect.sync(() => events.push(event))),
      { startImmediately: true }
    )
    const value = yield* Effect.orDie(use(manager))
    yield* Effect.yieldNow
    yield* Effect.yieldNow
    yield* Fiber.interrupt(fiber)
    return { value, capped: events.filter((event) => event._tag === "ToolResultCapped"), events }
  }).pipe(Effect.scoped)

const asked = (value: unknown) => prompt(user("go"), calls("a"), answers(result("a", value)))

const resultIn = ({ prompt }: ContextManager.Request, id = "a"): unknown => {
  for (const message of prompt.content) {
    if (message.role !== "tool") continue
    for (const part of message.content) if (part.type === "tool-result" && part.id === id) return part.result
  }
  return undefined
}

describe("maxToolResultBytes", () => {
  const text = (value: string) => ({ type: "text", text: value })
  const image = { type: "image", mediaType: "image/png", data: "iVBORw0KGgoA" }
  const rows: ReadonlyArray<readonly [name: string, value: unknown, bytes: number | null]> = [
    ["at the cap", "x".repeat(cap), null],
    ["one above", "x".repeat(cap + 1), cap + 1],
    ["two bytes a character", "é".repeat(501), 1_002],
    ["four bytes a character", "\u{1f600}".repeat(300), 1_200],
    ["half a pair counts three", "\ud83d".repeat(400), 1_200],
    ["blocks together", [text("a".repeat(600)), image, text("b".repeat(600))], 1_200],
    ["blocks within", [text("a".repeat(500)), image, text("b".repeat(500))], null],
    ["media count nothing", [{ ...image, data: "x".repeat(5_000) }, text("b")], null],
    ["structured", { lines: ["x".repeat(cap)] }, cap + 14]
  ]
  for (const [name, value, bytes] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const content = asked(value)
        const { capped, value: got } = yield* published({ settings }, (manager) =>
          Effect.gen(function*() {
            yield* manager.append(content)
            const request = yield* manager.request
            return {
              request,
              history: yield* manager.history,
              view: yield* manager.view,
              status: yield* manager.status
            }
          }))
        assert.strictEqual(got.history.content[2], content.content[2], "the history keeps the whole")
        assert.deepStrictEqual(
          capped,
          bytes === null ? [] : [{ _tag: "ToolResultCapped", seq: 2, tool: "read", bytes, cap }]
        )
        const part = got.request.prompt.content[2]
        if (bytes === null) {
          assert.strictEqual(part, content.content[2])
          assert.deepStrictEqual(got.view.decisions, [])
          return
        }
        assert.deepStrictEqual(got.view.decisions, [{ _tag: "Cap", seq: 2, at: 3, bytes: cap }])
        assert.strictEqual(got.status.generation, 0, "it is no boundary")
        assert.isNull(got.request.prefixChanged)
        const cut = Text.ofResult(
          part?.role === "tool" && part.content[0]?.type === "tool-result" ? part.content[0] : assert.fail()
        )
        assert.isAtMost(Text.bytesOf(cut), cap)
        assert.isAbove(Text.bytesOf(cut), cap - 4, "as much as fits")
        assert.strictEqual(cut.split("[tool result cut: it had").length, 2, "one marker")
        assert.include(cut, "do not repeat a call that changes state")
        assert.notMatch(cut, /[\ud800-\udbff](?![\udc00-\udfff])(?!\ud83d|\n)/, "no pair is split")
      }))
  }

  it.effect("blocks behind the cut are dropped, media stay", () =>
    Effect.gen(function*() {
      const { value: request } = yield* published({ settings }, (manager) =>
        Effect.andThen(manager.append(asked([text("a".repeat(2_000)), image, text("b")])), manager.request))
      const blocks = resultIn(request) as ReadonlyArray<{ readonly type: string }>
      assert.deepStrictEqual(
        blocks.map((block) =>
          block.type
        ),
        ["text", "image"]
      )
      assert.deepStrictEqual(blocks[1], image)
    }))

  const spared: ReadonlyArray<readonly [name: string, content: Prompt.Prompt, settings: Settings.Input]> = [
    ["a tool that is exempt", asked("x".repeat(5_000)), { exemptTools: ["read"] }],
    [
      "a pinned result",
      prompt(user("go"), calls("a"), Marks.set(answers(result("a", "x".repeat(5_000))), { pinned: true })),
      {}
    ],
    [
      "what was read back from the store",
      prompt(
        user("go"),
        calls("a"),
        answers({ ...result("a", "x".repeat(5_000)), name: SpillStore.retrieveToolName })
      ),
      {}
    ],
    ["a person's words", prompt(user("x".repeat(5_000))), {}]
  ]
  for (const [name, content, more] of spared) {
    it.effect(`spares ${name}`, () =>
      Effect.gen(function*() {
        const { capped, value: request } = yield* published({ settings: { ...settings, ...more } }, (manager) =>
          Effect.andThen(manager.append(content), manager.request))
        assert.deepStrictEqual(capped, [])
        assert.strictEqual(bytesOf(request.prompt), bytesOf(content))
      }))
  }

  it.effect("each result of one message by itself, late ones and those of sync too", () =>
    Effect.gen(function*() {
      const content = prompt(
        user("go"),
        calls("a", "b", "c"),
        answers(result("a", "x".repeat(2_000)), result("b", "short")),
        user("wait"),
        answers(result("c", "y".repeat(2_000)))
      )
      const { capped, value: view } = yield* published({ settings }, (manager) =>
        Effect.andThen(manager.sync(content), manager.view))
      assert.deepStrictEqual(
        capped.map(({ seq }) =>
          seq
        ),
        [2, 5]
      )
      assert.deepStrictEqual(view.decisions.map(({ at }) => at), [4, 6])
      assert.deepStrictEqual(view.items.filter((item) => item.state === "capped").map((item) => item.seq), [2, 5])
    }))

  it.effect("what was sent before is not touched: each request extends the one before", () =>
    Effect.gen(function*() {
      const { value: requests } = yield* published({ settings }, (manager) =>
        Effect.forEach(["a", "b", "c", "d"], (id) =>
          Effect.andThen(manager.append(prompt(...turn(id, 3_000), user(`after ${id}`))), manager.request)))
      for (let n = 1; n < requests.length; n++) {
        const [before, after] = [requests[n - 1]!, requests[n]!]
        assert.isNull(after.prefixChanged)
        assert.deepStrictEqual(after.prompt.content.slice(0, before.prompt.content.length), before.prompt.content)
      }
    }))

  it.effect("a restored session is cut where it was not, and a second restore changes nothing", () =>
    Effect.gen(function*() {
      const { value: saved } = yield* published(
        { settings: { notice: false } },
        (manager) => Effect.andThen(manager.append(asked("x".repeat(5_000))), manager.export)
      )
      const first = yield* published({ settings }, (manager) =>
        Effect.gen(function*() {
          yield* manager.restore(saved)
          return { request: yield* manager.request, saved: yield* manager.export }
        }))
      assert.strictEqual(first.capped.length, 1)
      const second = yield* published(
        { settings: { ...settings, maxToolResultBytes: 2_000 } },
        (manager) =>
          Effect.gen(function*() {
            yield* manager.restore(first.value.saved)
            return { request: yield* manager.request, saved: yield* manager.export }
          })
      )
      assert.deepStrictEqual(second.capped, [])
      assert.strictEqual(bytesOf(second.value.request.prompt), bytesOf(first.value.request.prompt))
      assert.deepStrictEqual(second.value.saved, first.value.saved)
    }))

  it.effect("a rewound conversation forgets the cuts of what is gone and keeps the others", () =>
    Effect.gen(function*() {
      const base = asked("x".repeat(5_000))
      const { capped, value: view } = yield* published({ settings }, (manager) =>
        Effect.gen(function*() {
          yield* manager.sync(prompt(...base.content, user("one"), ...turn("b", 3_000)))
          yield* manager.sync(prompt(...base.content, user("two"), ...turn("c", 4_000)))
          return yield* manager.view
        }))
      assert.deepStrictEqual(capped.map(({ bytes, seq }) => [seq, bytes]), [[2, 5_000], [5, 3_000], [5, 4_000]])
      assert.deepStrictEqual(view.decisions.map((decision) => "seq" in decision ? decision.seq : -1), [2, 5])
    }))

  it.effect("with a store the full text is there at once, and the cut names it", () =>
    Effect.gen(function*() {
      const huge = words("log", 200_000)
      const { value: request } = yield* published({ settings }, (manager) =>
        Effect.andThen(manager.append(asked(huge)), manager.request))
      const store = yield* SpillStore.SpillStore
      const key = /tool-result-\S+\.txt/.exec(String(resultIn(request)))?.[0]
      assert.strictEqual(yield* store.get(key ?? ""), huge)
      assert.isAtMost(Text.bytesOf(String(resultIn(request))), cap)
    }).pipe(Effect.provide(SpillStore.layerMemory)))

  it.effect("a place too long for the cap is left out, and the cap holds", () =>
    Effect.gen(function*() {
      const { value: request } = yield* published({ settings: { ...settings, maxToolResultBytes: 300 } }, (manager) =>
        Effect.andThen(manager.append(asked("x".repeat(5_000))), manager.request))
      assert.isAtMost(Text.bytesOf(String(resultIn(request))), 300)
      assert.notInclude(String(resultIn(request)), "/deep")
    }).pipe(Effect.provideService(SpillStore.SpillStore, {
      ...SpillStore.none,
      locate: (key) =>
        `${"/deep".repeat(100)}/${key}`
    })))

  it.effect("a 1 MB newest result fits after all: cut at the door, truncated at the end (R18)", () =>
    Effect.gen(function*() {
      const { events, value: request } = yield* published(
        { settings: { ...settings, maxToolResultBytes: 131_072 } },
        (manager) =>
          Effect.andThen(manager.append(asked(words("log", 1_048_576))), manager.requestWith({ budget: 2_000 }))
      )
      assert.isAtMost(request.count.tokens, 2_000)
      assert.deepStrictEqual(events.filter((event) => event._tag === "Infeasible"), [])
    }))
})
