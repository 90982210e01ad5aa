import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Decision from "effect-compaction/Decision"
import * as Ladder from "effect-compaction/Ladder"
import * as Marks from "effect-compaction/Marks"
import * as Rung from "effect-compaction/Rung"
import type * as Settings from "effect-compaction/Settings"
import * as SpillStore from "effect-compaction/SpillStore"
import * as Stage from "effect-compaction/Stage"
import * as View from "effect-compaction/View"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { answers, assistant, bytesOf, calls, prompt, result, session, user, words } from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"

const call = (id: string, name: string, params: unknown) =>
  Prompt.makePart("tool-call", { id, name, params, providerExecuted: false })

const calling = (...parts: ReadonlyArray<Prompt.ToolCallPart>) => Prompt.makeMessage("assistant", { content: parts })

const named = (id: string, name: string, value: unknown, isFailure = false) =>
  Prompt.makePart("tool-result", { id, name, isFailure, result: value, providerExecuted: false })

/** Runs a rung alone, as far as it goes; the decisions it came to, and its view. */
const run = Effect.fnUntraced(function*(
  rung: Rung.Rung,
  content: Prompt.Prompt,
  options: { readonly settings?: Settings.Input; readonly target?: number } = {}
) {
  const pass = yield* Stage.fromPrompt(content, { settings: seed(options.settings ?? {}), budget: 100_000 })
  const sizes = { ...pass.sizes, target: options.target ?? 0 }
  const after = yield* Rung.stage(rung)({ ...pass, sizes })
  const fresh = View.make(after.view.transcript, after.view.decisions)
  assert.strictEqual(after.view.price, fresh.price, "the running price is that of the view made anew")
  assert.strictEqual(bytesOf(View.toPrompt(after.view)), bytesOf(View.toPrompt(fresh)))
  return { before: pass.view, view: after.view, decisions: after.view.decisions }
})

const seqs = (decisions: ReadonlyArray<Decision.Decision>, tag: Decision.Decision["_tag"]) =>
  decisions.flatMap((decision) => decision._tag === tag && "seq" in decision ? [decision.seq] : [])

const textAt = (view: View.View, seq: number): string => {
  const message = view.items.find((item) => item.seq === seq)?.message
  const part = message?.role === "tool" ? message.content[0] : undefined
  return part?.type === "tool-result" ? String(part.result) : ""
}

/** Six groups of one call and one result each (results at 2, 4, … 12), of 10,000 characters but for the third. */
const reads = prompt(
  user("look around"),
  ...Arr.range(0, 5).flatMap((n) => [
    calling(call(`c${n}`, n === 4 ? "skill" : "read", { path: `f${n % 2}`, line: n })),
    answers(named(`c${n}`, n === 4 ? "skill" : "read", words(`r${n}`, n === 2 ? 8_000 : 10_000)))
  ]),
  user("and now?")
)

const pin = (content: Prompt.Prompt, at: number) =>
  Prompt.fromMessages(content.content.map((message, n) => n === at ? Marks.set(message, { pinned: true }) : message))

describe("pruneToolResults", () => {
  const rows: ReadonlyArray<
    readonly [
      name: string,
      options: Partial<Rung.PruneToolResults>,
      content: Prompt.Prompt,
      settings: Settings.Input,
      expected: ReadonlyArray<number>
    ]
  > = [
    ["what is long, but not in the newest group", {}, reads, {}, [2, 4, 8, 10]],
    ["the newest group too", { keepNewest: 0 }, reads, {}, [2, 4, 8, 10, 12]],
    ["three newest groups stay", { keepNewest: 3 }, reads, {}, [2, 4]],
    ["more groups stay than there are", { keepNewest: 99 }, reads, {}, []],
    ["exempt tools stay", {}, reads, { exemptTools: ["skill"] }, [2, 4, 8]],
    ["a pinned one stays", {}, pin(reads, 4), {}, [2, 8, 10]],
    ["another threshold", { thresholdChars: 7_000 }, reads, {}, [2, 4, 6, 8, 10]],
    ["protectedToolResults does not hold for it", {}, reads, { protectedToolResults: 99 }, [2, 4, 8, 10]]
  ]
  for (const [name, options, content, settings, expected] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { decisions, view } = yield* run(Rung.pruneToolResults(options), content, { settings })
        assert.deepStrictEqual(seqs(decisions, "Prune"), expected)
        for (const seq of expected) {
          assert.strictEqual(textAt(view, seq).length, 4_096 + 47 + 1_024)
          assert.strictEqual(view.items.find((item) => item.seq === seq)?.state, "pruned")
        }
        const again = yield* Rung.stage(Rung.pruneToolResults(options))({
          ...(yield* Stage.fromPrompt(View.toPrompt(view), { settings: seed(settings), budget: 1 }))
        })
        assert.deepStrictEqual(again.view.decisions, [], "what was pruned is not pruned again")
      }))
  }

  it.effect("stops at the target, or does not", () =>
    Effect.gen(function*() {
      const { before } = yield* run(Rung.pruneToolResults(), reads)
      const target = before.price - 1
      const stopping = yield* run(Rung.pruneToolResults(), reads, { target })
      assert.deepStrictEqual(seqs(stopping.decisions, "Prune"), [2])
      const whole = yield* run(Rung.pruneToolResults({ stopAtTarget: false }), reads, { target })
      assert.deepStrictEqual(seqs(whole.decisions, "Prune"), [2, 4, 8, 10])
      const none = yield* run(Rung.pruneToolResults({ stopAtTarget: false }), reads, { target: before.price })
      assert.deepStrictEqual(none.decisions, [])
    }))

  it.effect("all of it is taken or none when the aim is raised", () =>
    Effect.gen(function*() {
      // Nothing else can be shortened, so the target is out of reach and the ladder aims above the floor.
      const pass = yield* Stage.fromPrompt(reads, {
        settings: seed({ notice: false, targetUsage: 0.1 }),
        budget: 18_000
      })
      const full = { ...pass, count: { ...pass.count, tokens: 18_000 } }
      const stopping = yield* Ladder.make(Rung.pruneToolResults())(full)
      assert.isNotNull(stopping.report.floor)
      assert.deepStrictEqual(seqs(stopping.view.decisions, "Prune"), [2, 4, 8])
      const whole = yield* Ladder.make(Rung.pruneToolResults({ stopAtTarget: false }))(full)
      assert.deepStrictEqual(seqs(whole.view.decisions, "Prune"), [2, 4, 8, 10])
    }))

  const configs: ReadonlyArray<readonly [options: object, path: string | undefined]> = [
    [{}, undefined],
    [{ headChars: 7_121 }, undefined],
    [{ headChars: 7_122 }, "thresholdChars"],
    [{ thresholdChars: 60, headChars: 8, tailChars: 5 }, undefined],
    [{ keepNewest: -1 }, "keepNewest"],
    [{ keepNewest: 1.5 }, "keepNewest"],
    [{ stopAtTarget: 1 }, "stopAtTarget"],
    [{ tail: 5 }, "tail"]
  ]
  for (const [options, path] of configs) {
    it.effect(`options ${JSON.stringify(options)}`, () =>
      Effect.gen(function*() {
        const decode = Schema.decodeUnknownEffect(Rung.PruneToolResults, { onExcessProperty: "error" })
        const decoded = yield* Effect.result(decode(options))
        assert.strictEqual(decoded._tag, path === undefined ? "Success" : "Failure")
        if (decoded._tag === "Failure") assert.include(decoded.failure.message, `["${path}"]`)
      }))
  }

  it.effect("media in a result keep their place and are not counted", () =>
    Effect.gen(function*() {
      const image = { type: "image", mediaType: "image/png", data: "x".repeat(20_000) }
      const text = (value: string) => ({ type: "text", text: value })
      const content = prompt(
        user("look"),
        calls("a"),
        answers(result("a", [image, text("short")])),
        calls("b"),
        answers(result("b", [text("h".repeat(5_000)), image, text("t".repeat(5_000))])),
        calls("c"),
        answers(result("c", "newest"))
      )
      const { decisions, view } = yield* run(Rung.pruneToolResults(), content)
      assert.deepStrictEqual(seqs(decisions, "Prune"), [4])
      const message = view.items[4]!.message
      const part = message.role === "tool" ? message.content[0] : undefined
      const blocks = part?.type === "tool-result" ? part.result as ReadonlyArray<{ readonly type: string }> : []
      assert.deepStrictEqual(blocks.map((block) => block.type), ["text", "image", "text"])
      assert.strictEqual(blocks[1], image)
    }))
})

describe("clearToolResults", () => {
  const rows: ReadonlyArray<
    readonly [
      name: string,
      options: Partial<Rung.ClearToolResults>,
      content: Prompt.Prompt,
      settings: Settings.Input,
      cleared: ReadonlyArray<number>,
      trimmed: ReadonlyArray<number>
    ]
  > = [
    ["all but three", {}, reads, {}, [2, 4, 6], []],
    ["all but one", { keep: 1 }, reads, {}, [2, 4, 6, 8, 10], []],
    ["all", { keep: 0 }, reads, {}, [2, 4, 6, 8, 10, 12], []],
    ["excluded tools stay", { keep: 0, exclude: ["skill"] }, reads, {}, [2, 4, 6, 8, 12], []],
    ["exempt tools stay", { keep: 0 }, reads, { exemptTools: ["skill"] }, [2, 4, 6, 8, 12], []],
    ["a pinned one stays", { keep: 0 }, pin(reads, 4), {}, [2, 6, 8, 10, 12], []],
    ["with inputs", { keep: 4, clearInputs: true }, reads, {}, [2, 4], [1, 3]],
    ["a pinned call keeps its inputs", { keep: 4, clearInputs: true }, pin(reads, 1), {}, [2, 4], [3]]
  ]
  for (const [name, options, content, settings, cleared, trimmed] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { decisions, view } = yield* run(Rung.clearToolResults(options), content, { settings })
        assert.deepStrictEqual(seqs(decisions, "Clear"), cleared)
        assert.deepStrictEqual(seqs(decisions, "Trim"), trimmed)
        for (const seq of cleared) assert.strictEqual(textAt(view, seq), "[old tool result left out]")
        for (const seq of trimmed) {
          const message = view.items[seq]!.message
          const part = message.role === "assistant" ? message.content[0] : undefined
          assert.deepStrictEqual(part?.type === "tool-call" ? part.params : undefined, {})
        }
      }))
  }

  it.effect("a call keeps its inputs while one of its results is whole, or missing", () =>
    Effect.gen(function*() {
      const rung = Rung.clearToolResults({ keep: 1, clearInputs: true })
      const long = words("long", 2_000)
      const input = { path: words("path", 200) }
      const both = calling(call("a", "read", input), call("b", "read", input))
      const first = yield* run(rung, prompt(user("go"), both, answers(result("a", long), result("b", long))))
      assert.deepStrictEqual(seqs(first.decisions, "Clear"), [2])
      assert.deepStrictEqual(seqs(first.decisions, "Trim"), [])
      const short = prompt(
        user("go"),
        both,
        answers(result("a", "ok"), result("b", long)),
        ...reads.content.slice(1, 3)
      )
      const dropped = yield* run(rung, short)
      assert.deepStrictEqual(seqs(dropped.decisions, "Clear"), [3], "what would not get cheaper stays")
      assert.deepStrictEqual(seqs(dropped.decisions, "Trim"), [])
      const running = prompt(user("go"), calls("z"), answers(result("z", long)), both, answers(result("a", long)))
      const second = yield* run(Rung.clearToolResults({ keep: 0, clearInputs: true }), running)
      assert.deepStrictEqual(seqs(second.decisions, "Clear"), [2, 4])
      assert.notInclude(seqs(second.decisions, "Trim"), 3)
    }))

  it.effect("names the place of the full text, and the manager writes it", () =>
    Effect.gen(function*() {
      const store = yield* SpillStore.SpillStore
      const manager = yield* ContextManager.make(seeded({
        settings: { notice: false },
        ladder: Ladder.make(Rung.clearToolResults({ keep: 1 }))
      }))
      yield* manager.append(reads)
      const request = yield* manager.requestWith({ budget: 15_000 })
      const { decisions, transcript } = yield* manager.view
      const [first] = decisions
      const key = SpillStore.keyOf(transcript.entries[2]!)
      assert.strictEqual(first?._tag === "Clear" ? first.locator : "", key)
      assert.include(bytesOf(request.prompt), `[old tool result left out; read ${key} for the full result]`)
      assert.strictEqual((yield* store.get(key))?.length, 10_000)
    }).pipe(Effect.scoped, Effect.provide(SpillStore.layerMemory)))
})

describe("dedupeReads", () => {
  const rung = Rung.dedupeReads({ tool: "read", key: "path" })

  it.effect("leaves only the newest of the same thing whole", () =>
    Effect.gen(function*() {
      const { decisions, view } = yield* run(rung, reads)
      // Paths by group: f0 f1 f0 f1 (skill) f1, so of f0 the third and of f1 the last stay.
      assert.deepStrictEqual(seqs(decisions, "Clear"), [2, 4, 8])
      assert.strictEqual(textAt(view, 2), "[older result left out: the same was read again below]")
    }))

  const again = (params: ReadonlyArray<unknown>, failures: ReadonlyArray<boolean> = []) =>
    prompt(
      user("go"),
      ...params.flatMap((each, n) => [
        calling(call(`c${n}`, "read", each)),
        answers(named(`c${n}`, "read", words(`r${n}`, 900), failures[n] ?? false))
      ])
    )
  const rows: ReadonlyArray<
    readonly [name: string, content: Prompt.Prompt, settings: Settings.Input, expected: ReadonlyArray<number>]
  > = [
    ["other paths", again([{ path: "a" }, { path: "b" }]), {}, []],
    ["the other inputs do not matter", again([{ path: "a", line: 1 }, { path: "a", line: 2 }]), {}, [2]],
    ["structured values by value", again([{ path: ["a", 1] }, { path: ["a", 1] }]), {}, [2]],
    ["no such key", again([{ file: "a" }, { file: "a" }]), {}, []],
    ["no object", again(["a", "a"]), {}, []],
    ["an inherited key is none", again([{}, {}]), {}, []],
    ["a failed read makes none go", again([{ path: "a" }, { path: "a" }], [false, true]), {}, []],
    ["a failed read does not go", again([{ path: "a" }, { path: "a" }], [true, false]), {}, []],
    ["exempt", again([{ path: "a" }, { path: "a" }]), { exemptTools: ["read"] }, []],
    ["pinned", pin(again([{ path: "a" }, { path: "a" }]), 2), {}, []]
  ]
  for (const [name, content, settings, expected] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(seqs((yield* run(rung, content, { settings })).decisions, "Clear"), expected)
      }))
  }

  it.effect("what every object inherits is no input", () =>
    Effect.gen(function*() {
      const inherited = Rung.dedupeReads({ tool: "read", key: "__proto__" })
      assert.deepStrictEqual((yield* run(inherited, again([{ path: "a" }, { path: "b" }]))).decisions, [])
    }))

  it.effect("calls of one message, one id used twice", () =>
    Effect.gen(function*() {
      const content = prompt(
        user("go"),
        calling(call("x", "read", { path: "a" }), call("y", "read", { path: "b" })),
        answers(named("y", "read", words("b", 900)), named("x", "read", words("a", 900))),
        calling(call("x", "read", { path: "b" })),
        answers(named("x", "read", words("b again", 900)))
      )
      assert.deepStrictEqual(seqs((yield* run(rung, content)).decisions, "Clear"), [2])
    }))
})

describe("clearReasoning", () => {
  const thinking = (text: string, signature?: string) =>
    Prompt.makePart("reasoning", {
      text,
      options: signature === undefined ? {} : { anthropic: { info: { type: "thinking", signature } } }
    })
  const thought = (n: number, ...parts: ReadonlyArray<Prompt.AssistantMessagePart>) =>
    Prompt.makeMessage("assistant", {
      content: [
        thinking(words(`thought ${n}`, 400), `s${n}`),
        Prompt.makePart("text", { text: `answer ${n}` }),
        ...parts
      ]
    })
  const turns = prompt(user("1"), thought(1), user("2"), thought(2), user("3"), thought(3), user("4"))
  const rows: ReadonlyArray<
    readonly [name: string, keepTurns: number, content: Prompt.Prompt, expected: ReadonlyArray<number>]
  > = [
    ["one turn stays: the one that just began", 1, turns, [1, 3, 5]],
    ["two stay", 2, turns, [1, 3]],
    ["more stay than there are", 9, turns, []],
    ["none stays", 0, turns, [1, 3, 5]],
    ["a pinned one stays", 0, pin(turns, 3), [1, 5]],
    ["the tool turn in progress keeps its own", 0, prompt(user("1"), thought(1), user("2"), thought(2)), [1]],
    [
      "unsigned reasoning of the turn in progress goes",
      0,
      prompt(
        user("1"),
        Prompt.makeMessage("assistant", {
          content: [thinking(words("t", 90)), Prompt.makePart("text", { text: "answer" })]
        })
      ),
      [1]
    ]
  ]
  for (const [name, keepTurns, content, expected] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { decisions, view } = yield* run(Rung.clearReasoning({ keepTurns }), content)
        assert.deepStrictEqual(seqs(decisions, "Trim"), expected)
        for (const item of view.items) {
          if (item.message.role !== "assistant") continue
          const parts = item.message.content
          if (expected.includes(item.seq)) {
            assert.deepStrictEqual(parts.map((part) => part.type), ["text"])
          } else {
            assert.strictEqual(item.message, item.entry!.message, "kept whole, the same object")
          }
        }
      }))
  }
})

describe("the rungs together", () => {
  it.effect("none of them is in the default ladder", () =>
    Effect.sync(() => {
      const names = Ladder.progressive.rungs.map((rung) => rung.name)
      for (const name of ["prune", "clear", "dedupe", "clear-reasoning"]) assert.notInclude(names, name)
    }))

  it.effect("a pruned or capped result is truncated by fit when it must be (R18)", () =>
    Effect.gen(function*() {
      const ladder = Ladder.progressive.pipe(
        Ladder.insertBefore("truncate-25", Rung.pruneToolResults({ keepNewest: 0 }))
      )
      const huge = words("newest", 1_000_000)
      const content = prompt(user("go"), calls("a"), answers(result("a", huge)))
      const pass = yield* Stage.fromPrompt(content, { settings: seed({ notice: false }), budget: 500 })
      const after = yield* ladder(pass)
      assert.isNull(after.report.infeasible)
      assert.deepStrictEqual(after.view.decisions.map(({ _tag }) => _tag), ["Prune", "Truncate"])
      assert.isAtMost(after.view.price, 500)
    }))

  it.effect("what one removed, another leaves alone", () =>
    Effect.gen(function*() {
      const ladder = Ladder.make(
        Rung.remove({ relax: 1 }),
        Rung.pruneToolResults(),
        Rung.clearToolResults({ keep: 0, clearInputs: true }),
        Rung.dedupeReads({ tool: "read", key: "path" }),
        Rung.clearReasoning({ keepTurns: 0 })
      )
      const pass = yield* Stage.fromPrompt(session, {
        settings: seed({ protectedToolResults: 1, targetUsage: 0 }),
        budget: 1_000
      })
      const after = yield* ladder(pass)
      const fresh = View.make(after.view.transcript, after.view.decisions)
      assert.strictEqual(after.view.price, fresh.price)
      assert.strictEqual(bytesOf(View.toPrompt(after.view)), bytesOf(View.toPrompt(fresh)))
      assert.strictEqual(assistant("x").role, "assistant")
    }))
})
