import { assert, describe, it } from "@effect/vitest"
import * as Policy from "effect-compaction/Policy"
import * as Chat from "effect-compaction/simulate/Chat"
import * as Instructions from "effect-compaction/simulate/Instructions"
import * as Kept from "effect-compaction/simulate/Kept"
import * as Price from "effect-compaction/simulate/Price"
import * as PromptCache from "effect-compaction/simulate/PromptCache"
import * as Retention from "effect-compaction/simulate/Retention"
import type * as Simulation from "effect-compaction/simulate/Simulation"
import * as Statistics from "effect-compaction/simulate/Statistics"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import * as Identifiers from "../../src/simulate/parts/identifiers.ts"
import * as Standing from "../../src/text/standing.ts"

const user = (text: string) => Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })
const assistant = (text: string) => Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text })] })
const price = (message: Prompt.Message) => JSON.stringify(message.content).length

const world: Simulation.World = { cache: PromptCache.anthropic, price: Price.presets["claude-opus-4-5"] }

/** A talk in which each answer uses the file that was named `distance` messages before it. */
const talk = (turns: number, distance: number): ReadonlyArray<Prompt.Message> =>
  Array.from({ length: turns }, (_, n) => n).flatMap((n) => [
    user(`Look at src/part${n}/file${n}.ts now.`),
    assistant(
      n * 2 + 1 >= distance ? `Then src/part${n - (distance - 1) / 2}/file${n - (distance - 1) / 2}.ts.` : "Yes."
    )
  ])

const seen = (messages: ReadonlyArray<Prompt.Message>, views: (told: number) => ReadonlyArray<Prompt.Message>) => {
  const recorder = Kept.make(messages, { price })
  messages.forEach((message, at) => {
    if (message.role === "assistant" && at > 0) Kept.see(recorder, { messages: views(at), told: at })
  })
  return Kept.figures(recorder)
}

describe("identifiers", () => {
  it("are paths, symbols, hashes, quoted strings and numbers of three digits or more", () => {
    const text =
      "See src/a/b.ts:12, parse_args and readFile in package.json, commit 9f86d08, `exact words` at 4711, not 42."
    assert.deepStrictEqual(Array.from(Identifiers.ofText(text)).toSorted(), [
      "4711",
      "9f86d08",
      "exact words",
      "package.json",
      "parse_args",
      "readFile",
      "src/a/b.ts"
    ])
  })

  it("of a message are also those its calls ask for, and the files it changes", () => {
    const call = (name: string, params: unknown) =>
      Prompt.makeMessage("assistant", {
        content: [Prompt.makePart("tool-call", { id: "a", name, params, providerExecuted: false })]
      })
    assert.isTrue(Identifiers.of(call("read", { path: "src/main.ts" })).has("src/main.ts"))
    assert.deepStrictEqual(Array.from(Identifiers.editedIn(call("read", { path: "src/main.ts" }))), [])
    assert.deepStrictEqual(Array.from(Identifiers.editedIn(call("edit_file", { path: "src/main.ts" }))), [
      "src/main.ts"
    ])
    const patch = "*** Begin Patch\n*** Update File: src/a.ts\n+x\n*** End Patch"
    assert.deepStrictEqual(Array.from(Identifiers.editedIn(call("shell", { command: patch }))), ["src/a.ts"])
  })
})

describe("reuse", () => {
  it("is far behind 20 messages, else near; who sees nothing holds nothing, who sees all holds all", () => {
    const far = talk(40, 31)
    const all = seen(far, (told) => far.slice(0, told)).policy
    const none = seen(far, () => []).policy
    assert.deepStrictEqual([all.far, none.far], [{ held: 25, of: 25 }, { held: 0, of: 25 }])
    assert.deepStrictEqual([all.near.of, none.near.of], [0, 0])
    const near = talk(40, 11)
    assert.strictEqual(seen(near, (told) => near.slice(0, told)).policy.near.held, 35)
  })

  it("the tail of the same size holds what is as near as it is long, random messages some of it", () => {
    const messages = talk(60, 31)
    const tail = (told: number) => messages.slice(Math.max(0, told - 20), told)
    const kept = seen(messages, tail)
    assert.strictEqual(kept.policy.far.held, 0)
    assert.strictEqual(kept.tail.far.held, 0)
    assert.isAbove(kept.random.far.held, 0)
    assert.isAtMost(kept.random.viewTokens, kept.policy.viewTokens)
    assert.isAtMost(kept.tail.viewTokens, kept.policy.viewTokens)
    assert.isAbove(kept.tail.viewTokens, 0.9 * kept.policy.viewTokens)
    const old = seen(messages, (told) => messages.slice(0, told - 20))
    assert.isAbove(Kept.ratio(old.policy.far), 0.9)
    assert.isAbove(Kept.ratio(old.policy.far), Kept.ratio(old.random.far))
  })

  it("what is said everywhere is not rare, and what is new is no reuse", () => {
    const messages = Array.from(
      { length: 60 },
      (_, n) => n % 2 === 0 ? user("Read src/all.ts.") : assistant("src/all.ts")
    )
    const { far, near } = seen(messages, (told) => messages.slice(0, told)).policy
    assert.deepStrictEqual([far.of, near.of], [0, 4])
    const fresh = [user("go"), assistant("see src/new.ts")]
    assert.strictEqual(seen(fresh, () => fresh).policy.near.of, 0)
  })

  it("a person's own words are not where the person's name is looked for", () => {
    const messages = [user("src/old.ts"), ...talk(20, 999).slice(1), user("again src/old.ts"), assistant("yes")]
    const forgets = seen(messages, (told) => messages.slice(1, told)).policy
    const keeps = seen(messages, (told) => messages.slice(0, told)).policy
    assert.deepStrictEqual([forgets.named, keeps.named], [{ held: 0, of: 1 }, { held: 1, of: 1 }])
  })
})

describe("words of people and instructions", () => {
  it("are whole or not, by third", () => {
    const messages = talk(30, 999)
    const { words, wordsAtEnd } = seen(messages, (told) => messages.slice(Math.max(0, told - 20), told)).policy
    assert.deepStrictEqual(wordsAtEnd, [{ held: 0, of: 10 }, { held: 0, of: 10 }, { held: 10, of: 10 }])
    assert.isAbove(words[0].held, 0)
  })

  it("pastes and planted words are none", () => {
    const messages = [user("x ".repeat(1_500)), assistant("a"), user("short"), assistant("b")]
    const recorder = Kept.make(messages, { price, instructions: [{ at: 2, text: "short" }] })
    Kept.see(recorder, { messages: [], told: 3 })
    const { instructions, wordsAtEnd } = Kept.figures(recorder).policy
    assert.strictEqual(wordsAtEnd.reduce((sum, { of }) => sum + of, 0), 0)
    assert.deepStrictEqual(instructions[1], { held: 0, of: 1 })
  })

  it("are planted in each third, and our samples are rules", () => {
    const { instructions, messages } = Instructions.plant(talk(90, 999))
    assert.strictEqual(instructions.length, Instructions.samples.length)
    for (const third of [0, 1, 2]) {
      const within = instructions.filter(({ at }) => Math.floor((3 * at) / messages.length) === third)
      assert.strictEqual(within.length, 3)
    }
    for (const { at, text } of instructions) assert.include(JSON.stringify(messages[at]), text)
    for (const text of Instructions.samples) assert.isTrue(Standing.isRule(text), text)
  })

  const published = "../shared/benchmarks/constraints.json"
  it.skipIf(!existsSync(published))("the published constraints are rules (skipped where they are not at hand)", () => {
    const { constraints } = JSON.parse(readFileSync(published, "utf8")) as {
      readonly constraints: ReadonlyArray<string>
    }
    for (const text of constraints) assert.isTrue(Standing.isRule(text), text)
  })
})

describe("statistics", () => {
  it("a name keeps its half, and both halves have some", () => {
    const halves = Array.from({ length: 40 }, (_, n) => Statistics.halfOf(`session-${n}`))
    assert.deepStrictEqual(halves, Array.from({ length: 40 }, (_, n) => Statistics.halfOf(`session-${n}`)))
    assert.isAbove(halves.filter((half) => half === "tuned").length, 10)
    assert.isAbove(halves.filter((half) => half === "reported").length, 10)
  })

  it("an interval holds its mean, is narrow where values agree, and is the same for a seed", () => {
    const sure = Statistics.summary([2, 2, 2, 2])
    assert.deepStrictEqual([sure.mean, sure.low, sure.high, sure.wins, sure.losses, sure.worst], [2, 2, 2, 4, 0, 2])
    const wide = Statistics.summary([-10, 12, 3, 4], { seed: 7 })
    assert.isTrue(wide.low < wide.mean && wide.mean < wide.high)
    assert.deepStrictEqual([wide.wins, wide.losses, wide.worst, wide.at], [3, 1, -10, 0])
    assert.deepStrictEqual(wide, Statistics.summary([-10, 12, 3, 4], { seed: 7 }))
    assert.deepStrictEqual([Statistics.summary([]).mean, Statistics.summary([]).of], [0, 0])
  })

  it.effect("a budget at which something costs as much is found", () =>
    Effect.gen(function*() {
      const found = yield* Kept.atCost((maxTokens) => Effect.succeed(maxTokens / 1_000), {
        cost: 31.4,
        of: (cost) => cost,
        low: 10_000,
        high: 90_000
      })
      assert.closeTo(found.played, 31.4, 0.32)
    }))
})

const chatFiles = {
  messages: JSON.stringify([
    { role: "user", content: "Hello." },
    { role: "assistant", content: "Hello." },
    { role: "user", content: "My gym opens at 6:00 pm." },
    { role: "assistant", content: "Noted, 6 pm." },
    { role: "user", content: "Which book was it?" },
    { role: "assistant", content: "It was Dune." }
  ]),
  meta: JSON.stringify({
    facts: [
      { fact_id: "a", question_type: "single-session-user", keywords: ["6:00"], message_start: 2, message_end: 4 },
      { fact_id: "b", question_type: "single-session-assistant", keywords: ["Dune"], message_start: 4, message_end: 6 },
      { fact_id: "c", question_type: "x", keywords: ["gone"], message_start: 0, message_end: 2, compacted: true },
      { fact_id: "d", question_type: "x", keywords: ["nowhere"], message_start: 0, message_end: 2 }
    ]
  })
}

describe("chats", () => {
  it.effect("evidence is what holds the keywords, of who tells it; a fact that is gone already is left out", () =>
    Effect.gen(function*() {
      const chat = yield* Chat.parse("chat", chatFiles)
      assert.deepStrictEqual(chat.facts.map(({ evidence, id }) => [id, evidence]), [["a", [2]], ["b", [5]]])
      assert.deepStrictEqual(Chat.score(chat, chat.messages), { whole: 1, people: 1, keywords: 1 })
      assert.deepStrictEqual(Chat.score(chat, chat.messages.slice(3)), { whole: 0.5, people: 0, keywords: 0.5 })
      assert.deepStrictEqual(Chat.score(chat, []), { whole: 0, people: 0, keywords: 0 })
    }))

  it.effect("a bad file is named, with the field", () =>
    Effect.gen(function*() {
      const bad = yield* Effect.flip(Chat.parse("chat.json", { ...chatFiles, messages: "[{\"role\": \"robot\"}]" }))
      assert.strictEqual(bad.file, "chat.json")
      assert.include(bad.message, "role")
      const none = yield* Effect.flip(Chat.parse("chat.json", { ...chatFiles, meta: "{}" }))
      assert.include(none.message, "chat.json, its facts")
      assert.include(none.message, "facts")
      const far = chatFiles.meta.replace("\"message_end\":4", "\"message_end\":40")
      const beyond = yield* Effect.flip(Chat.parse("chat.json", { ...chatFiles, meta: far }))
      assert.include(beyond.message, "messages 2 to 40 of 6")
    }))
})

/** A coding session whose answers go on to use what results said, near and far. */
const session = (): ReadonlyArray<Prompt.Message> => {
  const messages: Array<Prompt.Message> = [user("Mend the build. Never push to main, I do that.")]
  for (let n = 0; n < 120; n++) {
    const lines = Array.from({ length: 30 }, (_, at) => `src/dir${n}/unit${at}.ts:${at} calls step_${n}_${at}() here`)
    const near = n > 0 ? ` The last one was src/dir${n - 1}/unit15.ts.` : ""
    const far = n > 20 ? ` It is like step_${n - 20}_1.` : ""
    messages.push(
      Prompt.makeMessage("assistant", {
        content: [
          Prompt.makePart("text", { text: `I read the next part.${near}${far}` }),
          Prompt.makePart("tool-call", {
            id: `c${n}`,
            name: "read",
            params: { path: `src/dir${n}/index.ts` },
            providerExecuted: false
          })
        ]
      }),
      Prompt.makeMessage("tool", {
        content: [
          Prompt.makePart("tool-result", {
            id: `c${n}`,
            name: "read",
            isFailure: false,
            result: lines.join("\n"),
            providerExecuted: false
          })
        ]
      })
    )
    if (n % 15 === 14) {
      messages.push(assistant("One part is done."), user(`Go on with part ${n}. It looks good to me so far.`))
    }
  }
  return messages
}

describe("a measure that nobody can game", () => {
  const old: Policy.Policy["ladder"] = [
    { _tag: "truncateToolResults", fraction: 1 },
    { _tag: "remove", relax: 1 },
    { _tag: "lastResort", relax: 0.3 }
  ]
  const planted = Instructions.plant(session())
  const measure = (policy: Policy.Policy) => Kept.run(planted, Policy.options(policy), { ...world, maxTokens: 20_000 })

  it.effect(
    "who protects nothing and leaves 120 characters of a result loses what is near",
    () =>
      Effect.gen(function*() {
        const ours = (yield* measure(Policy.recommended)).kept.policy
        const greedy = yield* measure({
          ...Policy.recommended,
          standingInstructions: 0,
          ladder: old,
          protectedToolResults: 0,
          truncateChars: 120
        })
        const theirs = greedy.kept.policy
        assert.isBelow(Kept.ratio(theirs.near), Kept.ratio(ours.near), "near")
        assert.strictEqual(Kept.ratio(...ours.instructions), 1)
      }),
    60_000
  )

  it.effect(
    "a summariser that repeats the wording of the facts wins no column but theirs, and pays for it",
    () =>
      Effect.gen(function*() {
        const facts = Retention.plant(session(), { seed: 1, count: 48 })
        const parrot: Summarizer.Service = {
          ...Summarizer.extractive,
          summarize: (request) => {
            const text = JSON.stringify(request.prompt.content)
            const found = facts.probes.filter((probe) => text.includes(probe.text)).map((probe) => `- ${probe.text}`)
            return Effect.map(
              Summarizer.extractive.summarize(request),
              (reply) => ({ ...reply, text: `## Request\n\n${found.join("\n")}` })
            )
          }
        }
        const at = { ...world, maxTokens: 20_000, probes: facts.probes }
        const ladder = yield* Kept.run(facts, Policy.options(Policy.recommended), at)
        const copied = yield* Kept.run(facts, Policy.options(Policy.contextSimpleSummary), {
          ...at,
          summarizer: parrot
        })
        assert.isAbove(copied.totals.summaries, 0)
        const simple = yield* Kept.run(facts, Policy.options(Policy.contextSimple), at)
        assert.isAbove(copied.totals.cost, simple.totals.cost, "so it misses the goal of cost, which is 0.97")
        assert.isBelow(ladder.totals.cost, simple.totals.cost)
        assert.isAtMost(Kept.ratio(...copied.kept.policy.words), Kept.ratio(...ladder.kept.policy.words))
      }),
    60_000
  )
})
