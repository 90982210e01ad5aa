import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import type * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import type * as View from "effect-compaction/View"
import type * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Standing from "../src/text/standing.ts"
import { answers, assistant, calls, changesOf, prompt, result, system, turn, user, words } from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"

const start = (messages: ReadonlyArray<Prompt.Message>, budget: number, settings: Settings.Input = {}) =>
  Stage.fromPrompt(prompt(...messages), {
    settings: seed({ protectedToolResults: 3, targetUsage: 0.4, ...settings }),
    budget
  })

const textOf = (view: View.View, seq: number): string => {
  const message = view.items.find((item) => item.seq === seq)?.message
  return message?.role === "user" ? message.content.map((part) => part.type === "text" ? part.text : "").join("") : ""
}

/** A chat: each question of a person is short, each answer long. */
const chat = (turns: number) =>
  Arr.range(0, turns - 1).flatMap((n) => [user(words(`question ${n}`, 200)), assistant(words(`answer ${n}`, 2_000))])

const recommended = Policy.options(Policy.recommended)
const ladder = recommended.ladder

/** What a session under a policy sends at the end, and what it published. */
const played = (policy: Policy.Policy, messages: ReadonlyArray<Prompt.Message>, maxTokens: number) =>
  Effect.gen(function*() {
    const manager = yield* ContextManager.make(seeded(Policy.options({ ...policy, maxTokens, notice: false })))
    const events: Array<CompactionEvent.CompactionEvent> = []
    let text = ""
    for (const message of messages) {
      yield* manager.append(prompt(message))
      if (message.role === "assistant") continue
      const request = yield* manager.request
      events.push(...request.events)
      text = JSON.stringify(request.prompt.content)
    }
    return { events, text }
  }).pipe(Effect.scoped)

describe("the large one is shortened before messages go", () => {
  const sizes: ReadonlyArray<readonly [name: string, chars: ReadonlyArray<number>]> = [
    ["the last of three", [100, 100, 100_000]],
    ["the first of three", [100_000, 100, 100]],
    ["in the middle", [100, 90_000, 100]]
  ]
  for (const [name, chars] of sizes) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const turns = chars.flatMap((length, n) => turn(`t${n}`, length))
        const messages = [user("go"), ...turns, assistant("kept?"), user("b"), assistant("c"), user("d")]
        const { events } = yield* played(Policy.recommended, messages, 20_000)
        const removed = events.flatMap((event) => event._tag === "Compacted" ? [[event.removed, event.truncated]] : [])
        assert.deepStrictEqual(removed, [[0, 1]])
      }))
  }

  it.effect("what is not large stays, and so do pinned ones, exempt tools and the last human", () =>
    Effect.gen(function*() {
      const rung = Rung.stage(Rung.truncateLarge())
      const big = words("big", 8_000)
      const messages = [user("go"), ...turn("small", 1_900), calls("x"), answers(result("x", big)), user(big)]
      const exempt = yield* start(messages, 4_000, { exemptTools: ["read"], targetUsage: 0 })
      assert.isTrue((yield* rung(exempt)).view === exempt.view)
      const after = yield* rung(yield* start(messages, 4_000, { targetUsage: 0 }))
      assert.deepStrictEqual(changesOf(after), { removed: [], truncated: [4], stubbed: [] })
      const pinned = [user("go"), calls("x"), answers(result("x", big)), user("end")]
      const mark = { ...pinned[2]!, options: { "effect-compaction": { pinned: true } } }
      const pass = yield* start([pinned[0]!, pinned[1]!, mark, pinned[3]!], 3_000, { targetUsage: 0 })
      assert.isTrue((yield* rung(pass)).view === pass.view)
    }))

  it.effect("a paste of a person keeps both ends", () =>
    Effect.gen(function*() {
      const paste = `Look at this log. ${words("line", 12_000)} Find the fault in it.`
      const pass = yield* start([user("go"), user(paste), assistant("yes"), user("now")], 8_000, { targetUsage: 0 })
      const { view } = yield* Rung.stage(Rung.truncateLarge())(pass)
      assert.match(textOf(view, 1), /^Look at this log\./)
      assert.match(textOf(view, 1), /characters of this message left out/)
      assert.match(textOf(view, 1), /Find the fault in it\.$/)
      assert.isBelow(textOf(view, 1).length, 6_000)
    }))
})

describe("the words of people go last", () => {
  it.effect("before one of them is touched, everything else that may leave has left", () =>
    Effect.gen(function*() {
      const messages = [system("s"), ...chat(60), user("last")]
      for (const budget of [24_000, 12_000, 8_000, 6_000]) {
        const pass = yield* start(messages, budget)
        const { view } = yield* Ladder.climb(ladder, pass, { target: pass.sizes.target })
        const touched = view.items.some((item) => item.state === "stubbed")
          || view.items.filter((item) => item.entry?.human === true).length < 61
        const others = view.items.filter((item) => item.entry?.role === "assistant").length
        if (touched) assert.isAtMost(others, 6, `at a budget of ${budget}`)
        else assert.isAbove(others, 0)
      }
    }))

  it.effect("their share is theirs in any case, the newest of it", () =>
    Effect.gen(function*() {
      const pass = yield* start([...chat(100), user("last")], 10_000, { targetUsage: 0 })
      for (const share of [0.05, 0.1, 0.3]) {
        const rung = Rung.shortenPeople({ share, above: 0 })
        const { view } = yield* Rung.stage(rung)(pass)
        const people = view.items.filter((item) => item.entry?.human === true)
        const price = people.reduce((sum, item) => sum + item.price, 0)
        assert.isAtLeast(price, share * pass.sizes.limit)
        assert.isBelow(price, share * pass.sizes.limit + 100, `nothing more than its share of ${share}`)
        assert.isTrue(people.slice(-6).every((item) => item.state === "kept"))
      }
    }))

  it.effect("nothing of them is given up below so much of the budget", () =>
    Effect.gen(function*() {
      const pass = yield* start([...chat(40), user("last")], 60_000, { targetUsage: 0 })
      const below = yield* Rung.stage(Rung.shortenPeople({ above: 0.9, share: 0 }))(pass)
      assert.isTrue(below.view === pass.view)
      const above = yield* Rung.stage(Rung.shortenPeople({ above: 0.1, share: 0 }))(pass)
      assert.isFalse(above.view === pass.view)
    }))

  it.effect("what was pasted goes before short sentences", () =>
    Effect.gen(function*() {
      const paste = words("pasted", 6_000)
      const messages = [user("go"), user(words("early", 300)), assistant("a"), user(paste), ...chat(12), user("last")]
      const pass = yield* start(messages, 4_000, { targetUsage: 0 })
      const price = pass.view.price - 500
      const { view } = yield* Rung.stage(Rung.shortenPeople({ above: 0, share: 0 }))({
        ...pass,
        sizes: { ...pass.sizes, target: price }
      })
      assert.deepStrictEqual(changesOf({ ...pass, view }), { removed: [], truncated: [], stubbed: [3] })
    }))

  it.effect("the first message is the last to go, the last one never", () =>
    Effect.gen(function*() {
      const pass = yield* start([user(words("task", 400)), ...chat(30), user(words("now", 400))], 2_000, {
        targetUsage: 0
      })
      const { view } = yield* Rung.stage(Rung.shortenPeople({ above: 0, share: 0 }))(pass)
      const first = view.decisions.findIndex((each) => each._tag === "Stub" && each.seq === 0)
      const stubs = view.decisions.filter((each) => each._tag === "Stub").length
      assert.strictEqual(first, stubs - 1)
      assert.isFalse(view.decisions.some((each) => "seq" in each && each.seq === 61))
    }))

  it.effect("others go, checkpoints and the last twelve stay", () =>
    Effect.gen(function*() {
      const pass = yield* start([...chat(30), user("last")], 2_000, { targetUsage: 0 })
      const { view } = yield* Rung.stage(Rung.removeOthers({ relax: 0 }))(pass)
      const { removed } = changesOf({ ...pass, view })
      assert.deepStrictEqual(removed, Arr.range(0, 23).map((n) => 2 * n + 1))
    }))
})

describe("standing instructions stay word for word", () => {
  const rule = "Never push to the main branch."
  const said =
    `I looked through the last steps and they read well to me so far. ${rule} Then go on with the next point.`

  const ladders = { contextSimple: Policy.contextSimple, recommended: Policy.recommended }
  for (const [name, policy] of Object.entries(ladders)) {
    it.effect(`under ${name}, from each third of a chat`, () =>
      Effect.gen(function*() {
        for (const at of [6, 40, 80]) {
          const messages = chat(60).toSpliced(at, 0, user(said), assistant("Understood."))
          const on = yield* played({ ...policy, standingInstructions: 0.02, protectedRecent: 0.1 }, messages, 4_000)
          assert.include(on.text, rule, `planted at ${at}`)
          const off = yield* played({ ...policy, standingInstructions: 0, protectedRecent: 0.1 }, messages, 4_000)
          assert.strictEqual(off.text.includes(rule), false, `planted at ${at}, without`)
        }
      }))
  }

  it.effect("in place, and of people alone", () =>
    Effect.gen(function*() {
      const messages = [user("go"), user(said), assistant(`${rule} I said.`), ...chat(20), user("last")]
      const pass = yield* start(messages, 2_500, { standingInstructions: 0.05, targetUsage: 0 })
      const { view } = yield* Ladder.climb(ladder, pass, { target: 0 })
      assert.strictEqual(textOf(view, 1), `[earlier user message, shortened to what it asks for good:\n${rule}]`)
      assert.strictEqual(view.items.findIndex((item) => item.seq === 1), 1)
      assert.isFalse(view.items.some((item) => item.seq === 2))
    }))

  it.effect("newest first within their share, and what finds no room is published", () =>
    Effect.gen(function*() {
      const asks = Arr.range(0, 39).flatMap((n) => [
        user(`${words(`about ${n}`, 120)}. Never touch folder-${n} in this project.`),
        assistant(words("yes", 900))
      ])
      const { events, text } = yield* played({ ...Policy.recommended, protectedRecent: 0.1 }, asks, 2_500)
      assert.include(text, "Never touch folder-39")
      assert.notInclude(text, "Never touch folder-0 ")
      const dropped = events.flatMap((event) => event._tag === "InstructionsDropped" ? event.seqs : [])
      assert.include(dropped, 0 + 2)
      assert.strictEqual(new Set(dropped).size, dropped.length, "each once")
    }))

  it.effect("of two rules about the same thing the newer is named as the newer", () =>
    Effect.gen(function*() {
      const messages = [
        user("go"),
        user(`${words("a", 400)}. Always run the linter before a commit.`),
        assistant("yes"),
        user(`${words("b", 400)}. Never run the linter before a commit.`),
        ...chat(20),
        user("last")
      ]
      const pass = yield* start(messages, 2_500, { standingInstructions: 0.1, targetUsage: 0 })
      const { view } = yield* Ladder.climb(ladder, pass, { target: 0 })
      assert.include(textOf(view, 1), "Always run the linter before a commit.]")
      assert.include(
        textOf(view, 3),
        "Never run the linter before a commit. (newer than: Always run the linter before a commit.)"
      )
    }))
})

describe("which sentences are standing instructions", () => {
  const rules = [
    "Don't ask me to confirm, just do it.",
    "Please don’t touch the vendor folder.",
    "Always answer in metric units.",
    "Before you answer, restate my question.",
    "Write every number as a word, not as digits.",
    "Reply in bullet points only, no paragraphs.",
    "From now on, call the client Falcon.",
    "Use pnpm instead of npm.",
    "Under no circumstances edit the lockfile.",
    "Could you please always add a test?",
    "Every function needs a docstring.",
    "Antworte ab jetzt auf Deutsch.",
    "Lösche niemals die Logs.",
    "Ne modifie jamais ce fichier.",
    "Nunca borres los tests.",
    "Non usare mai questa libreria.",
    "Nunca apague os testes.",
    "Verwijder nooit de logs.",
    "Никогда не трогай эту папку.",
    "以后都用中文回答。",
    "今後は日本語で答えて。",
    "앞으로 한국어로 답해 주세요."
  ]
  for (const rule of rules) it(rule, () => assert.isTrue(Standing.isRule(rule)))

  const others = [
    "I don't know why it fails.",
    "It never worked.",
    "Can you mend the parser?",
    "No, that is wrong.",
    "Why don't you see it?",
    "Mend the failing test.",
    "What does always mean here?",
    "We don't have that file.",
    "Never mind.",
    "Go on with the plan."
  ]
  for (const other of others) it(`not: ${other}`, () => assert.isFalse(Standing.isRule(other)))

  it("are found where they stand, word for word, but not in fences, quotations and the middle of a paste", () => {
    const text = "Hello. - Never push.\n```\nnever in code\n```\n> never quoted\n1. Always test!  And \"don't stop\"."
    for (const { from, text: words } of Standing.rulesOf(text)) {
      assert.strictEqual(text.slice(from, from + words.length), words)
    }
    assert.deepStrictEqual(Standing.rulesOf(text).map((rule) => rule.text), [
      "Never push.",
      "Always test!",
      "And \"don't stop\"."
    ])
    const paste = `Never a. ${words("x", 3_000)}\nNever b.\n${words("y", 3_000)}\nNever c.`
    assert.deepStrictEqual(Standing.rulesOf(paste).map((rule) => rule.text), ["Never a.", "Never c."])
  })

  it("cost is linear in the length of a text", () => {
    for (const text of ["a ".repeat(200_000), "- ".repeat(200_000), "never, ".repeat(60_000), ". ".repeat(200_000)]) {
      assert.isArray(Standing.rulesOf(text))
    }
  })
})
