import { assert, describe, it } from "@effect/vitest"
import * as Marks from "effect-compaction/Marks"
import * as Retention from "effect-compaction/simulate/Retention"
import * as Wire from "effect-compaction/Wire"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Extract from "../../src/text/extract.ts"
import * as Standing from "../../src/text/standing.ts"

const session = Retention.generate({ seed: 5, turns: 60, resultChars: 900 })
const planted = Retention.plant(session, { seed: 3, count: 24 })

const user = (text: string) => Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })
const checkpoint = (text: string) => Marks.set(user(text), { source: "context-summary" })

describe("Retention", () => {
  it("gives the same session and probes for a seed, and others for another", () => {
    const again = Retention.plant(Retention.generate({ seed: 5, turns: 60, resultChars: 900 }), { seed: 3, count: 24 })
    assert.deepStrictEqual(again, planted)
    assert.notDeepEqual(Retention.plant(session, { seed: 4, count: 24 }).probes, planted.probes)
    assert.notDeepEqual(Retention.generate({ seed: 6, turns: 60, resultChars: 900 }), session)
  })

  it("generates and plants what a provider accepts", () => {
    for (const rules of [Wire.anthropic, Wire.openaiChat]) {
      assert.deepStrictEqual(Wire.check(planted.messages, rules), [])
    }
  })

  it("plants all kinds over the whole session, restates some and corrects some", () => {
    const { probes } = planted
    const facts = probes.filter((probe) => probe.corrects === null)
    assert.strictEqual(facts.length, 24)
    for (const kind of ["constraint", "path", "number", "decision"]) {
      assert.strictEqual(facts.filter((probe) => probe.kind === kind).length, 6)
    }
    assert.isBelow(Math.min(...facts.map((probe) => probe.depth)), 0.1)
    assert.isAbove(Math.max(...facts.map((probe) => probe.depth)), 0.75)
    assert.isAbove(probes.filter((probe) => probe.at.length === 2).length, 2)
    assert.isAbove(probes.filter((probe) => probe.corrects !== null).length, 2)
    assert.strictEqual(new Set(probes.map((probe) => probe.text)).size, probes.length)
  })

  it("each kind is stated by a person, by the assistant, in the body of a result and at its end", () => {
    const { probes } = Retention.plant(
      Retention.generate({ seed: 5, turns: 90, resultChars: 4_000 }),
      { seed: 1, count: 64 }
    )
    const facts = probes.filter((probe) => probe.corrects === null)
    for (const kind of ["constraint", "path", "number", "decision"] as const) {
      for (const source of ["person", "assistant", "body", "end"] as const) {
        assert.strictEqual(facts.filter((each) => each.kind === kind && each.source === source).length, 4)
      }
    }
  })

  it("a line in a body is lost with the middle of its result, one at the end with its end", () => {
    const session = Retention.generate({ seed: 5, turns: 90, resultChars: 4_000 })
    const { messages, probes } = Retention.plant(session, { seed: 1, count: 64 })
    const cut = (keep: (text: string) => string) =>
      messages.map((message) =>
        message.role !== "tool" ? message : {
          ...message,
          content: message.content.map((part) =>
            part.type === "tool-result" && typeof part.result === "string"
              ? { ...part, result: keep(part.result) }
              : part
          )
        }
      )
    const checker = Retention.checker(probes)
    const ends = checker.score(cut((text) => text.slice(0, 500) + text.slice(-500)), messages.length)
    assert.deepStrictEqual([ends.sources.body.held, ends.sources.end.held], [0, ends.sources.end.known])
    const heads = checker.score(cut((text) => text.slice(0, 500)), messages.length)
    assert.strictEqual(heads.sources.end.held, 0)
    assert.strictEqual(heads.sources.person.held, heads.sources.person.known)
  })

  it("no rule of the library goes by the wording of a fact", () => {
    for (const seed of [1, 2, 3, 4]) {
      const { probes } = Retention.plant(session, { seed, count: 96 })
      for (const { text } of probes) {
        assert.isFalse(Standing.isRule(text), text)
        const said = Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text })] })
        // Where it is no decision, no plan and no error, the newest message is told by its beginning, and its files by name.
        const headings = Array.from(Extract.summary([said], 1_000).matchAll(/^## (.*)$/gm), ([, heading]) => heading)
        assert.includeMembers(["Files", "Said"], headings, text)
      }
    }
  })

  it("lets the assistant say it before it calls", () => {
    const said = planted.probes.filter((probe) => probe.source === "assistant").map((probe) =>
      planted.messages[probe.at[0]!]!
    )
    assert.isAbove(said.length, 0)
    for (const message of said) {
      assert.strictEqual(message.role, "assistant")
      const types = message.role === "assistant" ? message.content.map((part) => part.type) : []
      if (types.includes("tool-call")) assert.isBelow(types.lastIndexOf("text"), types.indexOf("tool-call"))
    }
  })

  it("says where each probe is told", () => {
    for (const probe of planted.probes) {
      for (const at of probe.at) {
        assert.include(JSON.stringify(planted.messages[at]), JSON.stringify(probe.text).slice(1, -1))
      }
    }
  })

  it("finds everything in the whole session, whenever it is asked", () => {
    const checker = Retention.checker(planted.probes)
    let known = 0
    for (let told = 0; told <= planted.messages.length; told += 7) {
      const score = checker.score(planted.messages.slice(0, told), told)
      assert.deepStrictEqual([score.lost, score.stale, score.retained], [0, 0, 1], `after ${told} messages`)
      assert.isAtLeast(score.known, known)
      known = score.known
    }
    assert.strictEqual(checker.score(planted.messages, planted.messages.length).known, 24)
  })

  const [fact, other] = [
    {
      id: 0,
      kind: "number",
      source: "end",
      text: "The limit of quartz is 41 bytes.",
      words: ["quartz", "41"],
      at: [2],
      depth: 0.2,
      corrects: null
    },
    {
      id: 1,
      kind: "number",
      source: "end",
      text: "Correction: the limit of quartz is 57 bytes.",
      words: ["quartz", "57"],
      at: [8],
      depth: 0.8,
      corrects: 0
    }
  ] satisfies ReadonlyArray<Retention.Probe>
  const cases: ReadonlyArray<
    readonly [name: string, view: ReadonlyArray<Prompt.Message>, told: number, score: Partial<Retention.Score>]
  > = [
    ["not told yet", [], 2, { known: 0, retained: 1 }],
    ["verbatim", [user(`Note. ${fact!.text}`)], 3, { known: 1, verbatim: 1, retained: 1 }],
    ["in the words of a checkpoint", [checkpoint("- quartz: 41 bytes at most")], 3, {
      known: 1,
      checkpoint: 1,
      retained: 1
    }],
    ["a paraphrase by anyone else does not count", [user("- quartz: 41 bytes at most")], 3, {
      known: 1,
      lost: 1,
      retained: 0
    }],
    ["half of it", [checkpoint("- quartz has a limit")], 3, { known: 1, lost: 1, retained: 0 }],
    ["corrected, both there", [user(fact!.text), user(other!.text)], 9, { known: 1, verbatim: 1, stale: 0 }],
    ["corrected, only the old one left", [user(fact!.text)], 9, { known: 1, lost: 1, stale: 1, retained: 0 }],
    ["corrected, the old one in a checkpoint", [checkpoint("quartz 41")], 9, { known: 1, lost: 1, stale: 1 }],
    ["corrected, both gone", [], 9, { known: 1, lost: 1, stale: 0, retained: 0 }]
  ]
  for (const [name, view, told, expected] of cases) {
    it(name, () => {
      const score = Retention.checker([fact!, other!]).score(view, told)
      assert.deepStrictEqual({ ...score, ...expected }, score)
    })
  }

  it("where there is no result or answer to plant in, a person says it", () => {
    const talk = [user("hello"), Prompt.makeMessage("assistant", { content: [] }), user("more")]
    const { messages, probes } = Retention.plant(talk, { seed: 1, count: 4 })
    assert.strictEqual(probes.length, 4)
    assert.strictEqual(Retention.checker(probes).score(messages, messages.length).lost, 0)
    assert.deepStrictEqual(Retention.plant([user("hello")], { seed: 1, count: 4 }).probes, [])
  })

  it.effect("refuses a scenario in which every policy keeps everything", () =>
    Effect.gen(function*() {
      yield* Retention.hasHeadroom([{ policy: "a", retained: 1 }, { policy: "b", retained: 0.9 }])
      const error = yield* Effect.flip(
        Retention.hasHeadroom([{ policy: "a", retained: 1 }, { policy: "b", retained: 1 }])
      )
      assert.strictEqual(error._tag, "ScenarioSaturated")
      assert.include(error.message, "a, b")
    }))
})
