/** What has left a view is found again, and reading it changes nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Conversations from "effect-compaction/Conversations"
import * as Marks from "effect-compaction/Marks"
import * as Policy from "effect-compaction/Policy"
import * as Recall from "effect-compaction/Recall"
import * as SessionLog from "effect-compaction/SessionLog"
import * as SpillStore from "effect-compaction/SpillStore"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Chat from "effect/ai/Chat"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Fake from "./app/fake.ts"
import { answers, assistant, calls, prompt, result, session, system, user, words } from "./core/conversation.ts"
import * as OneLog from "./session/oneLog.ts"
import * as Sessions from "./summary/Sessions.ts"

/** A fact in each kind of entry, 60 of them; each is one word that stands nowhere else. */
const facts = Array.from({ length: 60 }, (_, at) => `fact-${at}-${(at * 7_919 + 104_729).toString(36)}`)

const said = (fact: string, at: number): ReadonlyArray<Prompt.Message> => {
  const text = `${words("before", 900)} ${fact} ${words("after", 900)}`
  if (at % 3 === 0) return [user(text)]
  if (at % 3 === 1) return [assistant(text)]
  return [calls(`c${at}`), answers(result(`c${at}`, text))]
}

const using = (id: string, name: string, params: unknown = {}): Prompt.Message =>
  Prompt.makeMessage("assistant", {
    content: [Prompt.makePart("tool-call", { id, name, params, providerExecuted: false })]
  })

const resultOf = (id: string, name: string, value: unknown): Prompt.ToolResultPart =>
  Prompt.makePart("tool-result", { id, name, isFailure: false, result: value, providerExecuted: false })

const isFound = (fact: string, { found }: typeof Recall.Matches.Type): boolean =>
  found.some(({ excerpt }) => excerpt.includes(fact))

const missedIn = Effect.fnUntraced(function*<E>(manager: ContextManager.ContextManager<E>) {
  const view = yield* manager.view
  const sent = JSON.stringify(view.items.map(({ message }) => message))
  const hidden = facts.filter((fact) => !sent.includes(fact))
  const missed = yield* Effect.filter(hidden, (fact) =>
    Effect.zipWith(
      Recall.search(view, fact),
      Recall.search(view, `${fact.slice(0, -1)}[a-z\\d]\\b`, { regex: true }),
      (byWord, byPattern) => !isFound(fact, byWord) || !isFound(fact, byPattern)
    ))
  return { hidden, missed }
})

describe("planted facts", () => {
  for (const spill of [false, true]) {
    for (const [name, policy] of Object.entries(Policy.presets)) {
      it.effect(`${name}: each is in the view, or one search finds it${spill ? ", spilled too" : ""}`, () =>
        Effect.gen(function*() {
          const options = Policy.options(policy)
          const manager = yield* ContextManager.make({
            ...options,
            settings: { ...options.settings, maxTokens: 8_000, clearAtLeast: null, whenInfeasible: "send" }
          }).pipe(Effect.provideService(Summarizer.Summarizer, Summarizer.extractive))
          yield* manager.append(prompt(system("You are careful."), user("Begin.")))
          for (const [at, fact] of facts.entries()) {
            yield* manager.append(prompt(...said(fact, at)))
            yield* Effect.result(manager.requestWith({ recall: true }))
            yield* Sessions.settle
          }
          const before = yield* manager.export
          const { hidden, missed } = yield* missedIn(manager)
          assert.deepStrictEqual(missed, [])
          assert.deepStrictEqual(yield* manager.export, before)
          if (name !== "none") assert.isAbove(hidden.length, 0)
        }).pipe(Effect.provide(spill ? SpillStore.layerMemory : SpillStore.layerNone)))
    }
  }
})

const filler = Array.from({ length: 30 }, (_, at) => assistant(`${at} ${"done ".repeat(150)}`))

/** A conversation of which all but the newest entries are gone from the view, with so many others in front. */
const gone = Effect.fnUntraced(function*(
  messages: ReadonlyArray<Prompt.Message>,
  settings: Policy.Options["settings"] = {}
) {
  const manager = yield* ContextManager.make({
    settings: { maxTokens: 4_000, notice: false, standingInstructions: 0, ...settings }
  })
  yield* manager.append(prompt(user("Begin."), ...messages))
  yield* manager.append(prompt(...filler))
  yield* manager.request
  return yield* manager.view
})

describe("search", () => {
  it.effect("names at most ten entries, newest first, and the others on asking", () =>
    Effect.gen(function*() {
      const view = yield* gone(Array.from({ length: 34 }, (_, at) => assistant(`needle ${at} ${"x".repeat(400)}`)))
      const seen: Array<number> = []
      let before: number | null = Infinity
      for (const [named, more] of [[10, 24], [10, 14], [10, 4], [4, 0]] as const) {
        const answer: typeof Recall.Matches.Type = yield* Recall.search(view, "NEEDLE", { before: before ?? 0 })
        assert.deepStrictEqual([answer.found.length, answer.more], [named, more])
        for (const { behind, excerpt, fate, seq } of answer.found) {
          assert.strictEqual(excerpt.length, 300)
          assert.strictEqual(fate, "Lost")
          assert.strictEqual(behind, view.transcript.entries.length - 1 - seq)
        }
        seen.push(...answer.found.map(({ seq }) => seq))
        before = answer.before
      }
      assert.strictEqual(before, null)
      assert.deepStrictEqual(seen, Array.from({ length: 34 }, (_, at) => 34 - at))
      for (const query of ["", "  ", "stands-nowhere"]) {
        assert.deepStrictEqual(yield* Recall.search(view, query), { found: [], more: 0, before: null })
      }
      assert.deepStrictEqual(yield* Recall.search(view, "", { regex: true }), { found: [], more: 0, before: null })
      // What is in the view as it came is before the model already.
      assert.deepStrictEqual((yield* Recall.search(view, "29 done")).found, [])
    }))

  it.effect("says how many turns ago it was, and of which tool", () =>
    Effect.gen(function*() {
      const view = yield* gone([
        calls("a"),
        answers(result("a", `alpha ${"x".repeat(2_000)}`)),
        user("And then? beta"),
        assistant("gamma"),
        user("Go on.")
      ], { truncateChars: 0 })
      const of = (query: string) =>
        Effect.map(Recall.search(view, query), ({ found }) =>
          found.map(({ age, role, seq, tool }) => [seq, role, tool, age]))
      assert.deepStrictEqual(yield* of("alpha"), [[2, "tool", "read", 2]])
      assert.deepStrictEqual(yield* of("gamma"), [[4, "assistant", null, 1]])
    }))

  it.effect("shows the rarest word, the longest of those, wherever it stands and whatever stands before it", () =>
    Effect.gen(function*() {
      const far = (text: string) => assistant(`${"İ the ΣΟΦΟΣ ".repeat(200)}${text}${" the".repeat(500)}`)
      const view = yield* gone([far("the İSTANBUL needle-in-the-hay is"), far("ΟΔΟΣ")])
      const excerptOf = (query: string) =>
        Effect.map(Recall.search(view, query), ({ found }) => found[0]?.excerpt ?? "nothing")
      assert.include(yield* excerptOf("the NEEDLE-in-the-hay is"), "needle-in-the-hay")
      assert.include(yield* excerptOf("the i̇stanbul".normalize("NFC").replace("i̇", "İ")), "İSTANBUL")
      assert.include(yield* excerptOf("istanbul"), "İSTANBUL")
      assert.include(yield* excerptOf("οδος"), "ΟΔΟΣ")
      const pattern = yield* Recall.search(view, "hay\\s+is", { regex: true })
      assert.include(pattern.found[0]?.excerpt, "needle-in-the-hay is")
    }))

  it.effect("does not find what it returned, nor what was searched for", () =>
    Effect.gen(function*() {
      const returned = (id: string, tool: string) => [
        using(id, tool, { query: "needle" }),
        answers(resultOf(id, tool, `needle ${"x".repeat(2_000)}`))
      ]
      const view = yield* gone([
        assistant(`needle ${"y".repeat(800)}`),
        ...returned("a", "recall_search"),
        ...returned("b", "recall_read"),
        ...returned("c", "mcp__compaction__recall_read"),
        ...returned("d", SpillStore.retrieveToolName),
        ...returned("e", "not_recall_reader")
      ], { protectedToolResults: 0 })
      const { found } = yield* Recall.search(view, "needle")
      assert.deepStrictEqual(found.map(({ seq }) => seq), [11, 10, 1])
    }))

  it.effect("finds what a call was given, and what the model thought", () =>
    Effect.gen(function*() {
      const view = yield* gone([
        using("a", "grep", { pattern: "needle" }),
        answers(resultOf("a", "grep", "nothing")),
        Prompt.makeMessage("assistant", { content: [Prompt.makePart("reasoning", { text: "A hunch, perhaps." })] })
      ])
      assert.deepStrictEqual((yield* Recall.search(view, "hunch")).found.map(({ seq }) => seq), [3])
      assert.deepStrictEqual((yield* Recall.search(view, "grep needle")).found.map(({ seq }) => seq), [1])
    }))

  it.effect("refuses what it does not look for, and says how much it would", () =>
    Effect.gen(function*() {
      const view = yield* gone([])
      const some = Array.from({ length: 17 }, (_, at) => `w${at}`).join(" ")
      const refusals = yield* Effect.forEach(
        [
          [some, false],
          ["x".repeat(501), false],
          ["x".repeat(201), true],
          ["(a+", true],
          ["(a)\\1", true],
          ["a(?=b)", true],
          ["(a{40}){40}", true]
        ] as const,
        ([query, regex]) => Effect.map(Effect.flip(Recall.search(view, query, { regex })), ({ message }) => message)
      )
      assert.deepStrictEqual(refusals, [
        "The query has 17 words and may have 16: leave out the commonest, or search twice.",
        "The query has 501 characters and may have 500: look for a shorter part of it.",
        "The query has 201 characters and may have 200: look for a shorter part of it.",
        "The query is no regular expression: a group is not closed: write its ), at character 3. Write it anew, or leave regex out.",
        "The query has a reference to a group, at character 3, which may take for ever: write it without.",
        "The query has a look ahead or behind, at character 1, which may take for ever: write it without.",
        "The query repeats too much: it comes to 1642 steps and may have 256. Write smaller numbers."
      ])
      assert.deepStrictEqual((yield* Recall.search(view, `${some.slice(0, -4)}`)).found, [])
    }))
})

describe("a session that lasts", () => {
  it.effect("is searched whole, what a snapshot leaves out too", () =>
    Effect.gen(function*() {
      const log = yield* OneLog.memory
      let reads = 0
      const counting: typeof log = {
        ...log,
        read: (options) =>
          Effect.suspend(() => {
            if (options?.whole === true) reads++
            return log.read(options)
          })
      }
      const opened = ContextManager.open("session", {
        settings: { maxTokens: 4_000, notice: false, standingInstructions: 0 }
      }).pipe(OneLog.provide(counting))
      yield* Effect.scoped(Effect.gen(function*() {
        const manager = yield* opened
        yield* manager.append(prompt(user("Begin."), assistant(`needle ${"x".repeat(400)}`), ...filler))
        yield* manager.requestWith({ recall: true })
        yield* manager.flush
        yield* SessionLog.snapshot(counting)
      }))
      const manager = yield* opened
      // The request lays out nothing of what has left the view, and says what it said before.
      assert.match(textOf(yield* manager.request), /done/)
      const before = reads
      const { found } = yield* Recall.search(yield* manager.view, "needle")
      assert.deepStrictEqual(found.map(({ seq }) => seq), [1])
      assert.strictEqual(reads, before + 1)
      assert.include((yield* Recall.read(yield* manager.view, 1)).text, "needle")
    }))
})

describe("read", () => {
  const long = Effect.gen(function*() {
    const manager = yield* ContextManager.make({ settings: { maxTokens: 5_000, notice: false } })
    yield* manager.append(prompt(user("go"), calls("c"), answers(result("c", `x${"👩".repeat(10_001)}`))))
    return yield* manager.view
  })

  const pagesOf = Effect.fnUntraced(function*(
    view: Effect.Success<typeof long>,
    seq: number,
    options: Recall.ReadOptions
  ) {
    const pages: Array<typeof Recall.Page.Type> = []
    for (let page: number | null = 0; page !== null;) {
      const read: typeof Recall.Page.Type = yield* Recall.read(view, seq, { ...options, page })
      pages.push(read)
      page = read.next
    }
    return pages
  })

  it.effect("gives an entry back whole, in pages that do not cut a character and are as short as asked for", () =>
    Effect.gen(function*() {
      const view = yield* long
      for (const [length, count] of [[8_000, 3], [900, 23], [1e9, 3]] as const) {
        const pages = yield* pagesOf(view, 2, { length })
        assert.strictEqual(pages.length, count)
        for (const { text } of pages) assert.isAtMost(text.length, Math.min(length, 8_000) + 1)
        assert.strictEqual(pages.map(({ text }) => text).join(""), `x${"👩".repeat(10_001)}`)
      }
    }))

  it.effect("gives a range of entries, each behind a line that says where it comes from", () =>
    Effect.gen(function*() {
      const view = yield* gone([calls("a"), answers(result("a", "alpha")), user("Next."), assistant("beta")])
      const page = yield* Recall.read(view, 2, { to: 4 })
      assert.deepStrictEqual([page.seq, page.to, page.tool, page.age, page.next], [2, 4, "read", 1, null])
      assert.match(
        page.text,
        /^\[entry 2: result of read, 1 turn ago, \w+\]\nalpha\n\n\[entry 3: user, 0 turns ago, \w+\]\nNext\.\n\n\[entry 4: assistant, 0 turns ago, \w+\]\nbeta$/
      )
      assert.deepStrictEqual(yield* Recall.read(view, 4, { to: 2 }), page)
      const all = yield* pagesOf(view, 0, { to: 9_999 })
      assert.strictEqual(all[0]!.to, view.transcript.entries.length - 1)
      assert.isAbove(all.length, 2)
      for (const { text } of all) assert.isAtMost(text.length, 8_000)
    }))

  it.effect("names the entries and the pages there are", () =>
    Effect.gen(function*() {
      const view = yield* long
      const messages = yield* Effect.forEach(
        [[99, 0], [-1, 0], [1, 7], [1, 0.5]] as const,
        ([seq, page]) => Effect.map(Effect.flip(Recall.read(view, seq, { page })), ({ message }) => message)
      )
      assert.deepStrictEqual(messages, [
        "There is no entry 99: the entries are numbered from 0 to 2.",
        "There is no entry -1: the entries are numbered from 0 to 2.",
        "Entry 1 has no page 7: its pages are numbered from 0 to 0.",
        "Entry 1 has no page 0.5: its pages are numbered from 0 to 0."
      ])
      const empty = yield* (yield* ContextManager.make()).view
      assert.include((yield* Effect.flip(Recall.read(empty, 0))).message, "the conversation has none yet")
    }))
})

/** What a request says, as one text. */
const textOf = ({ prompt: { content } }: ContextManager.Request): string => JSON.stringify(content)

const named = /recall_(?:search|read)/

describe("what the model is told", () => {
  const opened = (settings: Policy.Options["settings"] = {}) =>
    Effect.tap(
      ContextManager.make({ settings: { maxTokens: 5_000, standingInstructions: 0, ...settings } }),
      (manager) => manager.append(session)
    )

  it.effect("neither notice nor pointer names the tools where there are none", () =>
    Effect.gen(function*() {
      const manager = yield* opened()
      const request = yield* manager.request
      assert.include(textOf(request), "[truncated: ~500 tokens]")
      assert.notMatch(textOf(request), named)
      yield* manager.append(prompt(assistant("so"), user("and?")))
      assert.notMatch(textOf(yield* manager.requestWith({ recall: false })), named)
    }))

  for (const verbosity of ["minimal", "normal"] as const) {
    it.effect(`notice and pointers name them from the call on that has them (${verbosity})`, () =>
      Effect.gen(function*() {
        const manager = yield* opened({ noticeVerbosity: verbosity })
        const request = yield* manager.requestWith({ recall: true })
        const text = textOf(request)
        const pointers = [...text.matchAll(/read entry (\d+) with recall_read for the full result/g)]
        assert.isAbove(pointers.length, 0)
        assert.include(text, "is found with recall_search and read whole with recall_read.")
        const view = yield* manager.view
        for (const [, seq] of pointers) {
          const { text, tool } = yield* Recall.read(view, Number(seq))
          assert.strictEqual(tool, "read")
          assert.strictEqual(text.length, 2_000)
        }
        // The same request again, and a call that says nothing of tools, say the same; whoever says no is told nothing new.
        assert.strictEqual(textOf(yield* manager.request), text)
        yield* manager.append(prompt(assistant("so"), user("and?")))
        const next = yield* manager.request
        assert.include(textOf(next), "Parts of this conversation were shortened")
        assert.include(textOf(next), "is found with recall_search")
        const without = yield* manager.requestWith({ recall: false })
        assert.deepStrictEqual(without.prompt.content.slice(0, -1), next.prompt.content.slice(0, -1))
      }))
  }

  it.effect("stays so where the session goes on elsewhere, and in what is compacted by hand", () =>
    Effect.gen(function*() {
      const manager = yield* opened({ maxTokens: 100_000 })
      yield* manager.requestWith({ recall: true })
      const other = yield* ContextManager.make({ settings: { maxTokens: 5_000, standingInstructions: 0 } })
      yield* other.restore(yield* manager.export)
      assert.match(textOf(yield* other.request), /entry \d+ with recall_read/)
      const small = yield* ContextManager.make({ settings: { maxTokens: 100_000, targetUsage: 0.01 } })
      yield* small.restore(yield* manager.export)
      yield* small.compactNow()
      assert.match(textOf(yield* small.request), named)
    }))

  it.effect("a result that is stored has both its places", () =>
    Effect.gen(function*() {
      const manager = yield* opened()
      assert.match(
        textOf(yield* manager.requestWith({ recall: true })),
        /read tool-result-\d{6}-[0-9a-f]{16}\.txt, or entry \d+ with recall_read, for the full result/
      )
    }).pipe(Effect.provide(SpillStore.layerMemory)))

  it.effect("what the tools returned is shortened like other results, and points nowhere", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({
        settings: { maxTokens: 4_000, protectedToolResults: 0, notice: false }
      })
      yield* manager.append(prompt(
        user("go"),
        using("a", "recall_read"),
        answers(resultOf("a", "recall_read", words("answer", 8_000)))
      ))
      yield* manager.append(prompt(...Array.from({ length: 5 }, () => assistant("done ".repeat(300)))))
      const text = textOf(yield* manager.requestWith({ recall: true }))
      assert.include(text, "[truncated: ~2,000 tokens] answer")
    }))
})

describe("the toolkit", () => {
  const asked = (id: string, name: string, params: unknown) => Fake.call(id, 1, name, params)

  const script = [
    asked("s", "recall_search", { query: "call-0" }),
    asked("x", "recall_search", { query: "call-\\d\\b", regex: true, before: 9 }),
    asked("r", "recall_read", { seq: 4, length: 30 }),
    asked("w", "recall_read", { seq: 99 }),
    asked("b", "recall_search", { query: "(a)\\1", regex: true })
  ]

  const expected = [
    /"found":\[\{"seq":\d+.*call-0/,
    /"more":\d+/,
    /lorem/,
    /"error":"EntryNotFound","message":"There is no entry 99/,
    /"error":"QueryRefused","message":"The query has a reference to a group/
  ]

  /** Asks a chat once for each answer of the script, and gives back the results of its tools. */
  const asking = (chat: Chat.Chat) =>
    Effect.forEach(script, () =>
      Effect.map(
        chat.generateText({ prompt: "on", toolkit: Recall.toolkit }),
        ({ toolResults }) => toolResults.map(({ result }) => JSON.stringify(result)).join()
      ))

  const check = (results: ReadonlyArray<string>, seen: Fake.Seen) => {
    assert.strictEqual(results.length, expected.length)
    results.forEach((text, at) => assert.match(text, expected[at]!))
    assert.match(JSON.stringify(seen.prompts.at(-1)!.content), /is found with recall_search/)
  }

  const settings = { maxTokens: 5_000, standingInstructions: 0 }

  const modelOf = (seen: Fake.Seen, options: CompactedModel.Options = {}) =>
    CompactedModel.withCompaction(Fake.model(seen, (n) => Effect.succeed(script[(n - 1) % script.length]!)), options)

  it.effect("answers in a chat of many conversations, each of its own history", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      yield* Effect.gen(function*() {
        const conversations = yield* Conversations.make({ settings })
        const chat = yield* conversations.chat("one")
        yield* Ref.set(chat.history, session)
        check(yield* asking(chat), seen)
        const other = yield* conversations.chat("two")
        assert.include((yield* asking(other))[0], "\"found\":[]")
      }).pipe(Effect.provide([Recall.layerCurrent, modelOf(seen)]))
    }))

  it.effect("answers where the model recognises the conversation", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const chat = yield* Chat.fromPrompt(session)
      check(yield* asking(chat).pipe(Effect.provide([Recall.layerCurrent, modelOf(seen, { settings })])), seen)
    }))

  it.effect("answers of one manager", () =>
    Effect.gen(function*() {
      const seen = Fake.nothingSeen()
      const manager = yield* ContextManager.make({ settings })
      const chat = yield* Chat.fromPrompt(session)
      check(
        yield* asking(chat).pipe(
          Effect.provideService(ContextManager.Current, manager),
          Effect.provide([Recall.layer(manager), modelOf(seen)])
        ),
        seen
      )
    }))

  it.effect("says so where there is no conversation", () =>
    Effect.gen(function*() {
      const chat = yield* Chat.fromPrompt(session)
      const plain = Fake.model(Fake.nothingSeen(), (n) => Effect.succeed(script[n - 1]!))
      const [first] = yield* asking(chat).pipe(Effect.provide([Recall.layerCurrent, plain]))
      assert.include(first, "CompactedModel.withCompaction")
    }))

  it.effect("a pinned answer stays as short as it was asked for", () =>
    Effect.gen(function*() {
      const view = yield* gone([assistant(`needle ${"x".repeat(4_000)}`)])
      const { text } = yield* Recall.read(view, 1, { length: 40 })
      const manager = yield* ContextManager.make({ settings: { maxTokens: 4_000, protectedToolResults: 0 } })
      yield* manager.append(prompt(user("go"), using("a", "recall_read")))
      yield* manager.append(prompt(Marks.set(answers(resultOf("a", "recall_read", text)), { pinned: true })))
      yield* manager.append(prompt(...Array.from({ length: 40 }, () => assistant("done ".repeat(150)))))
      assert.include(textOf(yield* manager.request), text)
      assert.strictEqual(text.length, 40)
    }))
})
