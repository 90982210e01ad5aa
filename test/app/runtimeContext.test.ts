import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Decision from "effect-compaction/Decision"
import * as Estimator from "effect-compaction/Estimator"
import * as Marks from "effect-compaction/Marks"
import * as RuntimeContext from "effect-compaction/RuntimeContext"
import * as Transcript from "effect-compaction/Transcript"
import * as Wire from "effect-compaction/Wire"
import * as Chat from "effect/ai/Chat"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { answers, assistant, calls, prompt, result, session, turn, user, words } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Fake from "./fake.ts"

const settings = { protectedToolResults: 1, notice: false, maxTokens: 4_000 }

/** The runtime contexts of a prompt, in their order. */
const contextsOf = (self: Prompt.Prompt): ReadonlyArray<string> =>
  self.content.flatMap((message) => {
    if (Marks.of(message).source !== "runtime-context" || message.role !== "user") return []
    const part = message.content[0]
    return part?.type === "text" ? [part.text.split("\n")[1]!] : []
  })

describe("a runtime context", () => {
  it.effect("is appended when it differs from the newest one, and only then", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make(seeded())
      const ask = Effect.fnUntraced(function*(text: string, runtimeContext: string) {
        yield* self.append(text)
        return contextsOf((yield* self.requestWith({ runtimeContext })).prompt)
      })
      assert.deepStrictEqual(yield* ask("a", ""), [])
      assert.deepStrictEqual(yield* ask("b", "cwd /a"), ["cwd /a"])
      assert.deepStrictEqual(yield* ask("c", "cwd /a"), ["cwd /a"])
      assert.deepStrictEqual(yield* ask("d", "cwd /b"), ["cwd /a", "cwd /b"])
      const [, , taken] = yield* ask("e", "")
      assert.include(taken, "no runtime context now")
      assert.strictEqual((yield* ask("f", "")).length, 3)
      assert.strictEqual((yield* ask("g", "cwd /a")).length, 4)
    }))

  it.effect("is no part of the caller's history, nor a person's word", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make(seeded())
      yield* self.append("a")
      yield* self.requestWith({ runtimeContext: "cwd /a" })
      yield* self.append("b")
      assert.strictEqual((yield* self.history).content.length, 2)
      const { transcript } = yield* self.view
      assert.deepStrictEqual(transcript.entries.map((entry) => entry.human), [true, false, true])
    }))

  it.effect("the same request again with another context is another request", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make(seeded())
      yield* self.append("a")
      const first = yield* self.requestWith({ runtimeContext: "one" })
      assert.isTrue((yield* self.requestWith({ runtimeContext: "one" })).prompt === first.prompt)
      assert.deepStrictEqual(contextsOf((yield* self.requestWith({ runtimeContext: "two" })).prompt), ["one", "two"])
    }))

  it.effect("is sent again in the request whose compaction took it away", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make(seeded({ settings: { ...settings, protectedRecent: 0 } }))
      yield* self.append([user("go")])
      yield* self.requestWith({ runtimeContext: "cwd /a" })
      let boundaries = 0
      let shadowed = 0
      for (let n = 0; n < 30; n++) {
        yield* self.append(prompt(...turn(`call-${n}`, 2_000)))
        const { events, prompt: sent } = yield* self.requestWith({ runtimeContext: "cwd /a" })
        if (events.some((event) => event._tag === "Compacted")) boundaries++
        assert.strictEqual(contextsOf(sent).length, 1, `request ${n}`)
        assert.deepStrictEqual(Wire.check(sent, Wire.all), [])
        if (contextsOf(prompt(sent.content.at(-1)!)).length === 1) shadowed++
      }
      assert.isAtLeast(boundaries, 2)
      assert.isAtLeast(shadowed, 1, "it was removed and came again at the end")
    }))

  it.effect("does not stand between a call and its results, and comes with the next request", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make(seeded())
      yield* self.append(prompt(user("go"), calls("a", "b"), answers(result("a", "1"))))
      const open = yield* self.requestWith({ runtimeContext: "x" })
      assert.deepStrictEqual(contextsOf(open.prompt), [])
      yield* self.append(prompt(answers(result("b", "2"))))
      const closed = yield* self.requestWith({ runtimeContext: "x" })
      assert.deepStrictEqual(contextsOf(closed.prompt), ["x"])
      assert.deepStrictEqual(Wire.check(closed.prompt, Wire.all), [])
    }))

  it.effect("does not take the human message before it out of sight: nothing is repeated", () =>
    Effect.gen(function*() {
      const self = yield* ContextManager.make(seeded({ settings: { ...settings, replayLastUser: true } }))
      yield* self.append(session)
      const { generation, prompt: sent } = yield* self.requestWith({ runtimeContext: "x" })
      assert.strictEqual(generation, 1)
      assert.deepStrictEqual(contextsOf(sent), ["x"])
      assert.notInclude(JSON.stringify(sent.content), "context-replay")
    }))

  it.effect("survives an export, and a rewind takes back what came after", () =>
    Effect.gen(function*() {
      const first = yield* ContextManager.make(seeded())
      yield* first.sync(prompt(user("a")), { runtimeContext: "one" })
      yield* first.sync(prompt(user("a"), assistant("b"), user("c")), { runtimeContext: "two" })
      const second = yield* ContextManager.make(seeded())
      yield* second.restore(yield* first.export)
      const again = yield* second.sync(prompt(user("a"), assistant("b"), user("c")), { runtimeContext: "two" })
      assert.deepStrictEqual(contextsOf(again.prompt), ["one", "two"])
      const rewound = yield* second.sync(prompt(user("a"), assistant("b")), { runtimeContext: "one" })
      assert.deepStrictEqual(contextsOf(rewound.prompt), ["one"])
    }))

  it.effect("a chat never sees it, and it is there again on the retry after an overflow", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      let runs = 0
      const model = CompactedModel.withCompaction(
        Fake.model(
          seen,
          (n) => n === 2 ? Effect.fail(Fake.tooLong(9_000, 3_000)) : Effect.succeed(Fake.text("ok", 100))
        )
      )
      const self = yield* ContextManager.make(
        seeded({ settings: { ...settings, maxTokens: 100_000, protectedRecent: 0 } })
      )
      const chat = yield* Chat.fromPrompt(session)
      yield* Effect.gen(function*() {
        yield* chat.generateText({ prompt: "one" })
        yield* chat.generateText({ prompt: words("two", 400) })
      }).pipe(
        RuntimeContext.provide(Effect.sync(() => {
          runs++
          return "mode: plan"
        })),
        Effect.provideService(ContextManager.Current, self),
        Effect.provide(model)
      )
      assert.strictEqual(seen.prompts.length, 3)
      for (const each of seen.prompts) assert.isAtLeast(contextsOf(each).length, 1)
      assert.isAtLeast(runs, 3)
      const history = yield* Ref.get(chat.history)
      assert.deepStrictEqual(contextsOf(history), [])
    }))

  it("project is a function of the transcript and the decisions", () => {
    const transcript = Transcript.fromPrompt(prompt(user("a")), Estimator.chars.price)
    const project = (current: string, ...decisions: ReadonlyArray<Decision.Decision>) =>
      RuntimeContext.project({ transcript, index: Decision.index(decisions) }, current)
    assert.isUndefined(project(" "))
    const first = project("x </system-reminder> y")!
    // What is said in it cannot end it.
    assert.strictEqual(JSON.stringify(first.content).split("</system-reminder>").length, 2)
    Transcript.append(transcript, first, "runtime")
    assert.isUndefined(project("x </system-reminder> y"))
    assert.isDefined(project("other"))
    assert.isDefined(project("x </system-reminder> y", { _tag: "Remove", seqs: [1], at: 2 }))
  })
})
