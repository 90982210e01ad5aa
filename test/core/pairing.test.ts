import { assert, describe, it } from "@effect/vitest"

import * as Stage from "effect-compaction/Stage"
import * as Transcript from "effect-compaction/Transcript"
import * as View from "effect-compaction/View"
import * as Effect from "effect/Effect"
import * as Pairing from "../../src/wire/pairing.ts"
import { seed } from "../seed.ts"
import { answers, assistant, bytesOf, calls, prompt, result, session, system, user } from "./conversation.ts"

/** The calls of each entry, by seq, then the results, by seq and id; and the call that each result belongs to. */
const rows: ReadonlyArray<{
  readonly name: string
  readonly steps: ReadonlyArray<ReadonlyArray<string> | string>
  readonly answered: ReadonlyArray<string | undefined>
}> = [
  { name: "a result of its call", steps: [["a"], "a"], answered: ["0.0"] },
  { name: "a result without a call", steps: ["a"], answered: [undefined] },
  { name: "a call that comes too late", steps: ["a", ["a"]], answered: [undefined] },
  { name: "parallel calls, results out of order", steps: [["a", "b"], "b", "a"], answered: ["0.1", "0.0"] },
  { name: "a reused id goes to the nearest open call", steps: [["a"], ["a"], "a", "a"], answered: ["1.0", "0.0"] },
  { name: "of several in one entry the first", steps: [["a", "a", "a"], "a", "a"], answered: ["0.0", "0.1"] },
  {
    name: "the nearest entry first, and in it the first call",
    steps: [["a", "a"], ["a", "a"], "a", "a", "a", "a"],
    answered: ["1.0", "1.1", "0.0", "0.1"]
  },
  {
    name: "a repetition belongs to the nearest call",
    steps: [["a"], "a", ["a"], "a", "a"],
    answered: ["0.0", "2.0", "2.0"]
  },
  {
    name: "a repetition of several in one entry: the last",
    steps: [["a", "a"], "a", "a", "a"],
    answered: ["0.0", "0.1", "0.1"]
  },
  { name: "the empty id is an id", steps: [[""], ""], answered: ["0.0"] },
  {
    name: "ids that name properties of objects",
    steps: [["__proto__"], "__proto__", "constructor"],
    answered: ["0.0", undefined]
  }
]

describe("Pairing", () => {
  for (const { answered, name, steps } of rows) {
    it(name, () => {
      const pairing = Pairing.make()
      const seen: Array<string | undefined> = []
      for (const [seq, step] of steps.entries()) {
        if (typeof step !== "string") {
          Pairing.addCalls(pairing, seq, step)
          continue
        }
        const answered = Pairing.settle(pairing, seq, step)
        seen.push(answered === undefined ? undefined : `${answered.call.seq}.${answered.call.index}`)
        if (answered !== undefined) assert.strictEqual(Pairing.resultOf(pairing, answered.call), seq)
      }
      assert.deepStrictEqual(seen, answered)
    })
  }

  it("tells which result a repetition replaces", () => {
    const pairing = Pairing.make()
    Pairing.addCalls(pairing, 0, ["a"])
    assert.deepStrictEqual(Pairing.settle(pairing, 1, "a"), { call: { seq: 0, index: 0 }, before: -1 })
    assert.deepStrictEqual(Pairing.settle(pairing, 2, "a"), { call: { seq: 0, index: 0 }, before: 1 })
    assert.isUndefined(Pairing.settle(pairing, 3, "b"))
  })

  it("knows what is settled", () => {
    const pairing = Pairing.make()
    Pairing.addCalls(pairing, 0, ["a", "b"])
    assert.isFalse(Pairing.isSettled(pairing, 0))
    Pairing.settle(pairing, 1, "b")
    assert.isFalse(Pairing.isSettled(pairing, 0))
    assert.strictEqual(Pairing.resultOf(pairing, { seq: 0, index: 0 }), -1)
    Pairing.settle(pairing, 2, "a")
    assert.isTrue(Pairing.isSettled(pairing, 0))
    assert.isTrue(Pairing.isSettled(pairing, 7), "an entry without calls waits for nothing")
  })
})

describe("Transcript", () => {
  const price = () => 1
  const statuses = (self: Transcript.Transcript, seq: number) =>
    self.entries[seq]!.calls.map((_, index) => Transcript.statusOf(self, { seq, index }))

  it("makes each part of a tool message an entry, and sends them as the same message again", () => {
    const both = answers(result("a", "one"), result("b", "two"))
    const self = Transcript.fromPrompt(prompt(calls("a", "b"), both), price)
    assert.deepStrictEqual(self.entries.map(({ group, kind, part, seq }) => [seq, kind, part, group]), [
      [0, "message", 0, 0],
      [1, "result", 0, 0],
      [2, "result", 1, 0]
    ])
    assert.strictEqual(View.toPrompt(View.make(self)).content[1], both)
  })

  it("tells what became of a call", () => {
    const self = Transcript.fromPrompt(prompt(calls("a", "b"), answers(result("a", "one"))), price)
    assert.deepStrictEqual(statuses(self, 0), ["settled", "running"])
    assert.isTrue(Transcript.isOpen(self, 0))
    Transcript.append(self, user("a hook speaks", { source: "hook" }))
    Transcript.append(self, system("a late instruction"))
    assert.deepStrictEqual(statuses(self, 0), ["settled", "running"], "machines and instructions pass nothing by")
    Transcript.append(self, user("never mind"))
    assert.deepStrictEqual(statuses(self, 0), ["settled", "abandoned"])
    assert.isFalse(Transcript.isOpen(self, 0))
    Transcript.append(self, answers(result("b", "late")))
    assert.deepStrictEqual(statuses(self, 0), ["settled", "settled"])
  })

  it("takes the name of a tool from the call where the result has none", () => {
    const named = { ...result("a", "one"), name: "" }
    const self = Transcript.fromPrompt(prompt(calls("a"), answers(named), answers(result("a", "two"))), price)
    assert.deepStrictEqual(self.entries.map((entry) => entry.tool), ["", "read", "read"])
  })

  it.effect("repairs the view, and repairs a repaired view to the same", () =>
    Effect.gen(function*() {
      const broken = prompt(
        answers(result("x", "orphan")),
        user("go"),
        calls("a", "b"),
        user("in between"),
        answers(result("b", "old")),
        answers(result("b", "new")),
        system("late"),
        assistant("on")
      )
      const { view } = yield* Stage.fromPrompt(broken, { settings: seed() })
      assert.deepStrictEqual(view.items.map((item) => item.seq), [6, 1, 2, -1, 5, 3, 7])
      assert.strictEqual(view.price, view.items.reduce((sum, item) => sum + item.price, 0))
      const repaired = View.toPrompt(view)
      const again = (yield* Stage.fromPrompt(repaired, { settings: seed() })).view
      assert.strictEqual(bytesOf(View.toPrompt(again)), bytesOf(repaired))
      assert.strictEqual(again.price, view.price)
    }))

  it.effect("leaves a valid prompt alone, message by message", () =>
    Effect.gen(function*() {
      const { view } = yield* Stage.fromPrompt(session, { settings: seed() })
      const { content } = View.toPrompt(view)
      assert.strictEqual(content.length, session.content.length)
      content.forEach((message, at) => assert.strictEqual(message, session.content[at]))
    }))
})
