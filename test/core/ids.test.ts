import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Transcript from "effect-compaction/Transcript"
import * as Wire from "effect-compaction/Wire"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as CacheMarks from "../../src/wire/cacheMarks.ts"
import * as Ids from "../../src/wire/ids.ts"
import { seeded } from "../seed.ts"
import { answers, assistant, bytesOf, calls, prompt, result, user } from "./conversation.ts"

const rules = [Wire.anthropic, Wire.openaiChat, Wire.openaiResponses, Wire.gemini, Wire.all]

/** Ids as they are found: of Gemini's and Moonshot's servers, of two formats of files, and what nobody should send. */
const found = [
  "",
  "a",
  "call_0",
  "ls:0",
  "ls.0",
  "ls_0",
  "functions.read_file:12",
  "call_AbC|fc_0123456789abcdef0123456789abcdef0123456789",
  "x".repeat(41),
  "x".repeat(65),
  "日本語",
  "__proto__",
  "-",
  "a b",
  "\ud83d"
]

describe("made ids", () => {
  it("are legal under every rule, and no two ids make the same", () => {
    const all = new Set<string>()
    for (const id of [...found, ...found.map((id) => `${id}_2`)]) {
      for (const nth of [1, 2, 99_999_999]) {
        const made = Ids.make(id, nth, Wire.all.ids)
        assert.match(made, /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/)
        for (const { ids } of rules) assert.isUndefined(Ids.faultOf(made, false, ids))
        assert.strictEqual(Ids.hashIn(made), Ids.hashOf(id))
        all.add(made)
      }
    }
    assert.strictEqual(all.size, 2 * found.length * 3)
  })

  it("keep within the length that is allowed", () => {
    const ids = { characters: "word", length: Ids.shortest } as const
    for (const id of found) assert.isAtMost(Ids.make(id, 99_999_999, ids).length, Ids.shortest)
  })

  const judged: ReadonlyArray<readonly [id: string, refusedBy: ReadonlyArray<string>]> = [
    ["call_0", []],
    ["toolu_01A09q90qw90lq917835lq9", []],
    ["", ["anthropic", "openaiChat", "openaiResponses", "gemini", "all"]],
    ["ls:0", ["anthropic", "all"]],
    ["日本語", ["anthropic", "all"]],
    ["x".repeat(40), []],
    ["x".repeat(41), ["openaiChat", "all"]],
    ["x".repeat(65), ["openaiChat", "openaiResponses", "all"]]
  ]
  for (const [id, refusedBy] of judged) {
    it(`an id like ${id.slice(0, 10)} (${id.length}) is refused by ${refusedBy.join(", ") || "nobody"}`, () => {
      const given = prompt(user("go"), calls(id), answers(result(id, "one")))
      for (const rule of rules) {
        const violations = Wire.check(given, rule)
        assert.deepStrictEqual(violations.map((each) => each.rule), refusedBy.includes(rule.name) ? ["ids"] : [])
        const repaired = Wire.repair(given, rule)
        assert.deepStrictEqual(Wire.check(repaired, rule), [])
        if (violations.length === 0) assert.strictEqual(repaired, given)
      }
    })
  }

  it("of a call that the provider ran: as long as the provider made it, but its own", () => {
    const id = "x".repeat(53)
    const call = Prompt.makePart("tool-call", { id, name: "search", params: {}, providerExecuted: true })
    const found = Prompt.makePart("tool-result", {
      id,
      name: "search",
      isFailure: false,
      result: "found",
      providerExecuted: true
    })
    const message = Prompt.makeMessage("assistant", { content: [call, found] })
    assert.deepStrictEqual(Wire.check(prompt(user("go"), message), Wire.all), [])
    const twice = prompt(user("go"), message, user("again"), { ...message })
    assert.deepStrictEqual(Wire.check(twice, Wire.all).map(({ index, rule }) => [rule, index]), [["ids", 3]])
    const repaired = Wire.repair(twice, Wire.all)
    assert.deepStrictEqual(Wire.check(repaired, Wire.all), [])
    assert.strictEqual(repaired.content[1], message)
  })

  it("a renamed call no longer refers to the item that the provider stored under its old id", () => {
    const options = { openai: { itemId: "fc_1", x: 1 } }
    const call = Prompt.makePart("tool-call", { id: "a:0", name: "t", params: {}, providerExecuted: false, options })
    const given = prompt(
      user("go"),
      Prompt.makeMessage("assistant", { content: [call] }),
      answers(result("a:0", "one"))
    )
    const message = Wire.repair(given, Wire.all).content[1]!
    assert.deepStrictEqual(message.role === "assistant" ? message.content[0]!.options : {}, { openai: { x: 1 } })
  })
})

const idsOf = (request: { readonly prompt: Prompt.Prompt }): ReadonlyArray<string> =>
  request.prompt.content.flatMap((message) =>
    message.role === "system"
      ? []
      : message.content.flatMap((part) =>
        part.type === "tool-call" || part.type === "tool-result"
          ? [part.id]
          : part.type === "tool-approval-request"
          ? [part.toolCallId]
          : []
      )
  )

describe("ids of a session", () => {
  const turns = (n: number) =>
    Array.from({ length: n }, (_, at) => [
      user(`turn ${at}`),
      calls("call_0", "ls:0", "call_0"),
      answers(result("call_0", `a ${at}`), result("ls:0", `b ${at}`), result("call_0", `c ${at}`))
    ]).flat()

  it.effect("are unique, and stay what they are as the session grows, after a restore too", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      let before: ReadonlyArray<string> = []
      for (let at = 0; at < 12; at++) {
        yield* manager.append(prompt(...turns(12).slice(3 * at, 3 * at + 3)))
        const request = yield* manager.request
        assert.deepStrictEqual(Wire.check(request.prompt, Wire.all), [])
        assert.isNull(request.prefixChanged)
        const ids = idsOf(request)
        assert.deepStrictEqual(ids.slice(0, before.length), before)
        before = ids
      }
      assert.strictEqual(new Set(before).size, 36)
      const restored = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* restored.restore(JSON.parse(JSON.stringify(yield* manager.export)))
      assert.strictEqual(bytesOf((yield* restored.request).prompt), bytesOf((yield* manager.request).prompt))
      assert.deepStrictEqual((yield* manager.history).content.length, 36, "what was said stays as it was said")
    }).pipe(Effect.scoped))

  it.effect("an id that is made is not taken by a call that has it", () =>
    Effect.gen(function*() {
      const made = Ids.make("a", 1, Wire.all.ids)
      const manager = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* manager.append(
        prompt(user("go"), calls("a"), answers(result("a", "1")), calls("a"), answers(result("a", "2")))
      )
      assert.deepStrictEqual(idsOf(yield* manager.request), ["a", "a", made, made])
      yield* manager.append(prompt(calls(made), answers(result(made, "3"))))
      const other = Ids.make(made, 1, Wire.all.ids)
      assert.deepStrictEqual(idsOf(yield* manager.request), ["a", "a", made, made, other, other])
    }).pipe(Effect.scoped))

  it("a call of the same id that waits does not get the result that is made for another", () => {
    const ask = Prompt.makePart("tool-approval-request", { approvalId: "r", toolCallId: "a" })
    const [first, second] = [calls("a"), calls("a")].map((message) => message.content[0]!)
    const message = Prompt.makeMessage("assistant", { content: [first!, second!, ask] as never })
    const repaired = Wire.repair(prompt(user("go"), message, assistant("on")), Wire.all)
    const made = Ids.make("a", 1, Wire.all.ids)
    assert.deepStrictEqual(idsOf({ prompt: repaired }), ["a", made, "a", made])
    assert.strictEqual(Wire.repair(repaired, Wire.all), repaired)
  })
})

describe("cache marks", () => {
  it("are found again on a message that goes under other ids", () => {
    const options = { anthropic: { cacheControl: { type: "ephemeral" } } }
    const own = prompt(
      user("go"),
      calls("ls:0"),
      { ...answers(result("ls:0", "one")), options },
      assistant("so"),
      user("on")
    )
    const taken = CacheMarks.take(own)
    const { content } = Wire.repair(taken.prompt, Wire.all)
    const marked = CacheMarks.place(content, content.length, taken).map((each) => "anthropic" in each.options)
    assert.deepStrictEqual(marked, [false, false, true, false, false])
  })
})

describe("a call that is approved", () => {
  const Look = Tool.make("read", { success: Schema.String, needsApproval: true })

  const approved = Effect.fnUntraced(function*(id: string, before: ReadonlyArray<Prompt.Message>) {
    const runs = yield* Ref.make(0)
    const model = yield* LanguageModel.make({ generateText: () => Effect.succeed([]), streamText: () => Stream.empty })
    const toolkit = yield* Toolkit.make(Look).pipe((kit) =>
      Effect.provide(kit, kit.toLayer({ read: () => Ref.update(runs, (_) => _ + 1).pipe(Effect.as("seen")) }))
    )
    const call = Prompt.makePart("tool-call", { id, name: "read", params: {}, providerExecuted: false })
    const ask = Prompt.makePart("tool-approval-request", { approvalId: "r", toolCallId: id })
    const yes = Prompt.makePart("tool-approval-response", { approvalId: "r", approved: true })
    const history = [
      ...before,
      user("look"),
      Prompt.makeMessage("assistant", { content: [call, ask] }),
      Prompt.makeMessage("tool", { content: [yes] })
    ]
    const manager = yield* ContextManager.make(seeded({ settings: { notice: false } }))
    yield* manager.append(Prompt.fromMessages(history))
    const request = yield* manager.request
    const response = yield* model.generateText({ prompt: request.prompt, toolkit })
    assert.strictEqual(yield* Ref.get(runs), 1)
    const said = Prompt.fromResponseParts(response.content)
    yield* manager.append(said)
    const next = yield* manager.request
    assert.deepStrictEqual(Wire.check(next.prompt, Wire.all), [])
    yield* model.generateText({ prompt: next.prompt, toolkit })
    assert.strictEqual(yield* Ref.get(runs), 1, "it does not run again")
    // Who keeps the history hands over the same, in a new process.
    const other = yield* ContextManager.make(seeded({ settings: { notice: false } }))
    const synced = yield* other.sync(Prompt.fromMessages([...history, ...said.content]))
    assert.strictEqual(bytesOf(synced.prompt), bytesOf(next.prompt))
    const transcript = Transcript.fromPrompt(yield* manager.history, () => 1)
    assert.isFalse(transcript.entries.some((entry) => entry.kind === "result" && entry.answers === undefined))
  }, Effect.scoped)

  it.effect("under an id that is refused runs once", () => approved("ls:0", []))
  it.effect("without an id runs once", () => approved("", []))
  it.effect("under an id that was used before runs once", () =>
    approved("call_0", [user("go"), calls("call_0"), answers(result("call_0", "one")), assistant("so")]))
})
