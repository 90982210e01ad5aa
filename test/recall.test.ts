/** What has left a view is found again, and reading it changes nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Policy from "effect-compaction/Policy"
import * as Recall from "effect-compaction/Recall"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Chat from "effect/ai/Chat"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Fake from "./app/fake.ts"
import { answers, assistant, calls, prompt, result, session, system, user, words } from "./core/conversation.ts"
import * as Sessions from "./summary/Sessions.ts"

/** A fact in each kind of entry, 60 of them; each is one word that stands nowhere else. */
const facts = Array.from({ length: 60 }, (_, at) => `fact-${at}-${(at * 7_919 + 104_729).toString(36)}`)

const said = (fact: string, at: number): ReadonlyArray<Prompt.Message> => {
  const text = `${words("before", 900)} ${fact} ${words("after", 900)}`
  if (at % 3 === 0) return [user(text)]
  if (at % 3 === 1) return [assistant(text)]
  return [calls(`c${at}`), answers(result(`c${at}`, text))]
}

const isFound = (fact: string, sent: string, { found }: typeof Recall.Matches.Type): boolean =>
  sent.includes(fact) || found.some(({ excerpt }) => excerpt.includes(fact))

describe("planted facts", () => {
  for (const [name, policy] of Object.entries(Policy.presets)) {
    it.effect(`${name}: each is in the view, or one search finds it`, () =>
      Effect.gen(function*() {
        const options = Policy.options(policy)
        const manager = yield* ContextManager.make({
          ...options,
          settings: { ...options.settings, maxTokens: 8_000, clearAtLeast: null, whenInfeasible: "send" }
        }).pipe(Effect.provideService(Summarizer.Summarizer, Summarizer.extractive))
        yield* manager.append(prompt(system("You are careful."), user("Begin.")))
        for (const [at, fact] of facts.entries()) {
          yield* manager.append(prompt(...said(fact, at)))
          yield* Effect.result(manager.request)
          yield* Sessions.settle
        }
        const before = yield* manager.export
        const view = yield* manager.view
        const sent = JSON.stringify(view.items.map(({ message }) => message))
        const missed = facts.filter((fact) => !isFound(fact, sent, Recall.search(view, fact)))
        assert.deepStrictEqual(missed, [])
        assert.deepStrictEqual(yield* manager.export, before)
        if (name !== "none") assert.isTrue(facts.some((fact) => !sent.includes(fact)))
      }))
  }
})

const compacted = Effect.gen(function*() {
  const manager = yield* ContextManager.make({ settings: { maxTokens: 5_000, notice: false } })
  yield* manager.append(session)
  yield* manager.request
  return manager
})

describe("search", () => {
  it.effect("names at most ten entries, newest first, says what became of them, and shows 300 characters", () =>
    Effect.gen(function*() {
      const manager = yield* compacted
      const view = yield* manager.view
      const { found, more } = Recall.search(view, "LOREM call")
      assert.isAtMost(found.length, 10)
      assert.isAbove(found.length, 0)
      assert.deepStrictEqual(found.map(({ seq }) => seq), found.map(({ seq }) => seq).toSorted((a, b) => b - a))
      for (const { age, excerpt, fate, seq, tool } of found) {
        assert.isAtMost(excerpt.length, 300)
        assert.strictEqual(age, view.transcript.entries.length - 1 - seq)
        assert.strictEqual(tool, "read")
        assert.notStrictEqual(fate, "Kept")
      }
      assert.isAtLeast(more, 0)
      for (const query of ["", "  ", "stands-nowhere"]) assert.deepStrictEqual(Recall.search(view, query).found, [])
    }))
})

describe("read", () => {
  it.effect("gives an entry back whole, in pages that do not cut a character", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({ settings: { maxTokens: 5_000, notice: false } })
      const text = "👩".repeat(10_001)
      yield* manager.append(prompt(user("go"), calls("c"), answers(result("c", `x${text}`))))
      const view = yield* manager.view
      let whole = ""
      let next: number | null = 0
      for (let pages = 0; next !== null; pages++) {
        assert.isBelow(pages, 4)
        const page: typeof Recall.Page.Type = yield* Recall.read(view, 2, next)
        assert.isAtMost(page.text.length, 8_001)
        whole += page.text
        next = page.next
      }
      assert.strictEqual(whole, `x${text}`)
    }))

  it.effect("names the entries and the pages there are", () =>
    Effect.gen(function*() {
      const view = yield* (yield* compacted).view
      const messages = yield* Effect.forEach([[99, 0], [-1, 0], [1, 7], [1, 0.5]] as const, ([seq, page]) =>
        Effect.map(Effect.flip(Recall.read(view, seq, page)), ({ message }) => message))
      assert.deepStrictEqual(messages, [
        "There is no entry 99: the entries are numbered from 0 to 31.",
        "There is no entry -1: the entries are numbered from 0 to 31.",
        "Entry 1 has no page 7: its pages are numbered from 0 to 0.",
        "Entry 1 has no page 0.5: its pages are numbered from 0 to 0."
      ])
    }))
})

describe("the toolkit", () => {
  it.effect("answers in the call of a decorated model, and a wrong seq is an answer too", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({ settings: { maxTokens: 5_000, notice: false } })
      const chat = yield* Chat.fromPrompt(session)
      const asked = (id: string, name: string, params: unknown) => Fake.call(id, 1, name, params)
      const script = [
        asked("s", "recall_search", { query: "call-0" }),
        asked("r", "recall_read", { seq: 4 }),
        asked("w", "recall_read", { seq: 99 })
      ]
      const seen = Fake.nothingSeen()
      const model = CompactedModel.withCompaction(Fake.model(seen, (n) => Effect.succeed(script[n - 1]!)))
      const results = yield* Effect.forEach(script, () =>
        Effect.map(chat.generateText({ prompt: "on", toolkit: Recall.toolkit }), ({ toolResults }) =>
          toolResults.map(({ result }) =>
            JSON.stringify(result)
          ).join())).pipe(
          Effect.provideService(ContextManager.Current, manager),
          Effect.provide([Recall.layer(manager), model])
        )
      assert.include(results[0], "call-0")
      assert.include(results[1], "lorem")
      assert.include(results[2], "EntryNotFound")
    }))
})
