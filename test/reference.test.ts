/**
 * The rules that the reference implementation (context-simple) arrived at, or that its faults led to, each with the input
 * that shows it: counting (2), budget and trigger (3), what may be touched (4), the notice (5). E4 is the estimator, as there.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Budget from "effect-compaction/Budget"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Marks from "effect-compaction/Marks"
import * as Rung from "effect-compaction/Rung"
import * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as View from "effect-compaction/View"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import {
  answers,
  assistant,
  bytesOf,
  calls,
  changesOf,
  e4,
  prompt,
  result,
  system,
  turn,
  user,
  words
} from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"

interface Row {
  readonly section: string
  readonly rule: string
  readonly test: Effect.Effect<void, unknown, Scope.Scope>
}

const managing = (settings: Settings.Input) =>
  ContextManager.make(seeded({ settings: { notice: false, ...settings } })).pipe(Effect.provide(e4))

const passing = (content: Prompt.Prompt, budget: number, settings: Settings.Input = {}) =>
  Stage.fromPrompt(content, { settings: seed({ notice: false, ...settings }), budget }).pipe(Effect.provide(e4))

const compacted = (request: ContextManager.Request) =>
  request.events.flatMap((event) => event._tag === "Compacted" ? [event] : [])

const noticesOf = ({ prompt, stableLength }: ContextManager.Request): ReadonlyArray<Prompt.Message> =>
  prompt.content.filter((message, at) => {
    const isNotice = Marks.of(message).source === "context-compaction"
    if (isNotice) assert.isAtLeast(at, stableLength)
    return isNotice
  })

const textOf = (message: Prompt.Message | undefined): string =>
  message === undefined || message.role === "system" ? "" : (message.content as ReadonlyArray<Prompt.Part>)
    .map((part) => part.type === "text" ? part.text : "").join("")

const image = (size: number) => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: "A".repeat(size) }
})

/** A call to two tools. */
const group = [
  calls("old", "recent"),
  answers(result("old", words("old", 400)), result("recent", words("recent", 400)))
]

const rows: ReadonlyArray<Row> = [
  {
    section: "2.1",
    rule: "media are never priced by the length of their payload, and the total is said to be partial",
    test: Effect.sync(() => {
      const { isPartial, price } = Estimator.chars
      for (const type of ["image", "document", "file", "audio", "video"]) {
        const of = (size: number) => answers(result("a", [{ ...image(size), type }]))
        assert.strictEqual(price(of(2_000)), price(of(8_500_000)), type)
        assert.isBelow(price(of(8_500_000)), 10_000, type)
        assert.isTrue(isPartial(of(8_500_000)), type)
      }
      const quoted = user(JSON.stringify(image(4_000)))
      assert.isAbove(price(quoted), 1_000)
      assert.isFalse(isPartial(quoted))
    })
  },
  {
    section: "2.2",
    rule: "a list is the sum of its messages, and what one takes away is its own price",
    test: Effect.gen(function*() {
      const image = Prompt.makePart("file", { mediaType: "image/png", data: "A".repeat(100_000) })
      const shown = Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "look" }), image] })
      const mixed = [
        user(words("go", 90)),
        shown,
        calls("a"),
        answers(result("a", { b: words("c", 500) })),
        assistant("so")
      ]
      for (const estimate of [Estimator.layer(Estimator.chars), e4]) {
        const priceOf = (messages: ReadonlyArray<Prompt.Message>) =>
          Effect.map(
            Stage.fromPrompt(Prompt.fromMessages(messages), { settings: seed(), budget: 1 }).pipe(
              Effect.provide(estimate)
            ),
            ({ view }) => view.price
          )
        const whole = yield* priceOf([system("rules"), ...mixed])
        const single = yield* Effect.forEach(mixed, (message) => priceOf([message]))
        for (const [at, price] of single.entries()) {
          // A call and its result stand or go together: without one the other is repaired.
          if (at === 2 || at === 3) continue
          assert.strictEqual(
            yield* priceOf([system("rules"), ...mixed.filter((_, each) => each !== at)]),
            whole - price
          )
        }
      }
    })
  },
  {
    section: "2.2",
    rule: "the system entries are in the trigger, in the target and in what a level stops at",
    test: Effect.gen(function*() {
      const manager = yield* managing({ maxTokens: 10_000, compactThreshold: 0.8, protectedToolResults: 1 })
      yield* manager.append(prompt(
        system(words("rules", 24_000)),
        user("go"),
        ...Arr.range(0, 19).flatMap((n) => turn(`c${n}`, 600))
      ))
      const [boundary] = compacted(yield* manager.request)
      assert.isAbove(boundary!.before, 8_000)
      // The target of 5,000 is below the system entries alone: the aim is above them, and it is reached.
      assert.isAbove(boundary!.target!, 6_000)
      assert.isAtMost(boundary!.after, boundary!.target!)
      assert.isAbove(boundary!.after, 6_000)
      assert.isAbove(boundary!.level, 1)
    })
  },
  {
    section: "2.3",
    rule: "what is measured is what is sent: a reading below the trigger brings no raw history back",
    test: Effect.gen(function*() {
      const manager = yield* managing({ meter: "actual", provenanceGate: false, maxTokens: 10_000 })
      const block = (n: number) => assistant(words(`block ${n}`, 1_200))
      yield* manager.append(prompt(user("go"), ...Arr.range(0, 33).map(block)))
      const sent: Array<number> = []
      for (let n = 0; n < 15; n++) {
        const request = yield* manager.request
        const { view } = yield* passing(request.prompt, 1)
        sent.push(view.price)
        yield* manager.observe({ inputTokens: { total: view.price } })
        yield* manager.append(prompt(block(34 + n)))
      }
      assert.isAtMost(sent[0]!, 5_000)
      for (const [before, after] of Arr.zip(sent, sent.slice(1))) assert.strictEqual(after, before + 300)
    })
  },
  {
    section: "2.4",
    rule: "a reading is what was fresh and what was written; a malformed one leaves it, as stale",
    test: Effect.gen(function*() {
      const manager = yield* managing({ meter: "actual", maxTokens: 10_000 })
      const next = Effect.gen(function*() {
        yield* manager.append("more")
        const request = yield* manager.request
        const { reading } = yield* manager.status
        return { request, anchor: reading?.anchor, stale: reading?.stale }
      })
      yield* next
      yield* manager.observe({ inputTokens: { uncached: 20, cacheWrite: 3 } })
      const { request: old, ...first } = yield* next
      assert.deepStrictEqual(first, { anchor: 23, stale: false })
      // Written as JSON says it, which may be anything.
      const malformed: ReadonlyArray<object> = [
        { total: true },
        { total: "40" },
        { total: -1 },
        { total: 1.5 },
        { total: NaN },
        { total: 40, cacheWrite: "3" },
        {}
      ]
      for (const inputTokens of malformed) {
        yield* manager.observe({ inputTokens })
        const { request: _, ...kept } = yield* next
        assert.deepStrictEqual(kept, { anchor: 23, stale: true }, JSON.stringify(inputTokens))
      }
      // A bill of another request than the last is none of this one's.
      yield* manager.observe({ inputTokens: { total: 999 } }, old)
      assert.strictEqual((yield* next).anchor, 23)
    })
  },
  {
    section: "2.6",
    rule: "a notice reserve that would swallow the budget is ignored",
    test: Effect.gen(function*() {
      const settings = yield* Settings.decode(seed({}))
      const limits = [100, 800, 10_000].map((given) => Budget.resolve(settings, given).limit)
      assert.deepStrictEqual(limits, [100, 800, 9_200])
      for (const budget of [100, 800]) {
        const manager = yield* managing({ notice: true, protectedToolResults: 1 })
        yield* manager.append(prompt(user("go"), ...Arr.range(0, 19).flatMap((n) => turn(`c${n}`, 400)), user("on")))
        const request = yield* manager.requestWith({ budget })
        assert.strictEqual(compacted(request).length, 1)
        const total = (yield* passing(request.prompt, 1)).view.price
        assert.isTrue(noticesOf(request).length === 0 || total <= budget, "a notice that does not fit is left out")
      }
    })
  },
  {
    section: "3.1",
    rule: "the budget is capped on every path",
    test: Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [settings: Settings.Input, given: number | undefined, total: number]> = [
        [{ window: 1_048_576, maxOutput: 65_536 }, undefined, 1_011_712],
        [{ window: 1_048_576, maxOutput: 65_536, maxTokens: 500_000 }, undefined, 500_000],
        [{ window: 1_048_576, maxOutput: 65_536, maxTokens: 5_000_000 }, undefined, 1_011_712],
        [{ window: 200_000, maxOutput: 64_000 }, undefined, 163_904],
        [{}, undefined, 200_000],
        [{ maxTokens: 50_000 }, 70_000, 50_000]
      ]
      for (const [input, given, total] of cases) {
        assert.strictEqual(Budget.resolve(yield* Settings.decode(seed(input)), given).total, total)
      }
      const small = Budget.resolve(yield* Settings.decode(seed({ window: 200_000, maxOutput: 64_000 })))
      assert.closeTo(small.trigger, 150_055.68, 0.001)
      for (const maxTokens of [0, -1, true, "5"]) {
        // Bad on purpose.
        const error = yield* Effect.flip(Settings.decode(seed({ maxTokens } as Settings.Input)))
        assert.include(error.message, "[\"maxTokens\"]")
      }
    })
  },
  {
    section: "3.3",
    rule: "the budget is published when it changed, not on every request",
    test: Effect.gen(function*() {
      const manager = yield* managing({})
      const published: Array<number> = []
      for (const call of [{}, {}, {}, {}, {}, { window: 100_000 }, { window: 100_000 }]) {
        yield* manager.append("more")
        const { events } = yield* manager.requestWith(call)
        published.push(events.filter((event) => event._tag === "BudgetResolved").length)
      }
      assert.deepStrictEqual(published, [1, 0, 0, 0, 0, 1, 0])
    })
  },
  {
    section: "4.1",
    rule: "protectedToolResults 0 or less protects none, not all",
    test: Effect.gen(function*() {
      const content = prompt(...Arr.range(0, 7).flatMap((n) => [user(`ask ${n}`), ...turn(`c${n}`, 800)]))
      const truncated = [2, 5, 8, 11]
      for (const n of [0, -1, 4, 5, 8]) {
        const manager = yield* managing({
          maxTokens: 3_000,
          compactThreshold: 0.5,
          targetUsage: 0.32,
          protectedRecent: 0.5,
          truncateChars: 50,
          protectedToolResults: n
        })
        yield* manager.append(content)
        yield* manager.request
        const { counts, level } = yield* manager.status
        const { items } = yield* manager.view
        const seqs = items.filter((item) => item.state === "truncated").map((item) => item.seq)
        if (n === 8) assert.deepStrictEqual([counts.truncated, counts.removed], [0, 0])
        // Five of eight hold more than the target: the aim is above them, where the reference removes what is left.
        else if (n === 5) assert.deepStrictEqual([seqs, counts.removed], [truncated.slice(0, 3), 0])
        else assert.deepStrictEqual([seqs, level, counts.removed], [truncated, 2, 0], `protected ${n}`)
      }
    })
  },
  {
    section: "4.2",
    rule: "a protected result protects its call and its siblings from removal",
    test: Effect.gen(function*() {
      const content = prompt(user("first"), ...group, user("last"))
      for (const [protectedToolResults, removed] of [[1, []], [5, []], [0, [1, 2, 3]]] as const) {
        const pass = yield* passing(content, 1, { protectedToolResults, protectedRecent: 0, targetUsage: 0 })
        const after = yield* Rung.stage(Rung.remove({ relax: 1 }))(pass)
        assert.deepStrictEqual(changesOf(after).removed, [...removed])
      }
    })
  },
  {
    section: "4.3",
    rule: "a result far back is not protected for being one of few",
    test: Effect.gen(function*() {
      const content = prompt(
        user("go"),
        ...turn("a", 10_000),
        ...Arr.range(0, 56).map((n) => assistant(`answer ${n}`))
      )
      const pass = yield* passing(content, 1_000, { protectedToolResults: 5, protectedRecent: 0.3 })
      const after = yield* Rung.stage(Rung.truncateToolResults({ fraction: 1 }))(pass)
      assert.deepStrictEqual(changesOf(after).truncated, [2])
    })
  },
  {
    section: "4.5",
    rule: "a truncation that does not shrink is none: the same object stays, and nothing is counted",
    test: Effect.gen(function*() {
      const content = prompt(user("go"), calls("a"), answers(result("a", words("a", 390))), user("on"))
      const pass = yield* passing(content, 1, { truncateChars: 374, protectedToolResults: 0, targetUsage: 0 })
      const after = yield* Rung.stage(Rung.truncateToolResults({ fraction: 1 }))(pass)
      assert.deepStrictEqual(after.view.decisions, [])
      assert.strictEqual(after.view.items[2]!.message, pass.view.items[2]!.message)
      assert.strictEqual(View.counts(after.view).truncated, 0)
    })
  },
  {
    section: "4.8",
    rule: "a stub is of the joined text, and what is no text stays in its place",
    test: Effect.gen(function*() {
      const file = Prompt.makePart("file", { mediaType: "image/png", data: "AAAA" })
      const text = (length: number) => Prompt.makePart("text", { text: words("said", length) })
      const of = (...content: ReadonlyArray<Prompt.UserMessagePart>) => Prompt.makeMessage("user", { content })
      for (const [message, isStubbed] of [[of(text(210), file, text(18)), true], [of(text(4), file), false]] as const) {
        const pass = yield* passing(prompt(user("first"), message, assistant("so"), user("last")), 1, {
          protectedRecent: 0,
          targetUsage: 0
        })
        const after = yield* Rung.stage(Rung.remove({ relax: 1 }))(pass)
        const item = after.view.items.find((each) => each.seq === 1)!
        assert.strictEqual(item.state, isStubbed ? "stubbed" : "kept")
        if (!isStubbed) assert.strictEqual(item.message, message)
        else {
          const content = item.message.role === "user" ? item.message.content : []
          assert.deepStrictEqual(content.map((part) => part.type), ["text", "file"])
          assert.strictEqual(content[1], file)
          assert.match(textOf(item.message), /^\[earlier user message, shortened: said lorem/)
        }
      }
    })
  },
  {
    section: "4.9",
    rule: "a carrier of loaded tools that is pinned stays, whatever its age; one that is not goes",
    test: Effect.gen(function*() {
      for (const pinned of [true, false]) {
        const carrier = assistant(words("loaded tools", 400))
        const content = prompt(
          user("first"),
          pinned ? Marks.set(carrier, { pinned }) : carrier,
          assistant("so"),
          user("last")
        )
        const pass = yield* passing(content, 1, { protectedRecent: 0, targetUsage: 0 })
        const after = yield* Rung.stage(Rung.remove({ relax: 1 }))(pass)
        assert.deepStrictEqual(changesOf(after).removed, pinned ? [2] : [1, 2])
      }
    })
  },
  {
    section: "4.10",
    rule: "an assistant entry whose call has no result yet stays",
    test: Effect.gen(function*() {
      const content = prompt(user("first"), user("last"), ...turn("done", 400), calls("open"))
      const pass = yield* passing(content, 1, { protectedRecent: 0, protectedToolResults: 0, targetUsage: 0 })
      const after = yield* Rung.stage(Rung.remove({ relax: 1 }))(pass)
      assert.deepStrictEqual(changesOf(after).removed, [2, 3])
    })
  },
  {
    section: "4.11",
    rule: "marks say who is human, never the text: a reminder steals no protection, and a quoted one loses none",
    test: Effect.gen(function*() {
      const reminder = (n: number) =>
        user(`<system-reminder>${words(`reminder ${n}`, 400)}</system-reminder>`, { source: "hook" })
      const [a, b] = [user(words("human A", 600)), user(`<system-reminder>${words("human B", 600)}</system-reminder>`)]
      const manager = yield* managing({ maxTokens: 700, protectedRecent: 0 })
      yield* manager.append(prompt(
        reminder(1),
        a,
        ...Arr.range(0, 34).map((n) => assistant(words(`answer ${n}`, 400))),
        b,
        reminder(2)
      ))
      const request = yield* manager.request
      const texts = request.prompt.content.map(textOf)
      assert.include(texts, textOf(a))
      assert.include(texts, textOf(b))
      assert.isAbove((yield* manager.status).counts.removed, 30)
      assert.strictEqual(bytesOf((yield* manager.request).prompt), bytesOf(request.prompt))
    })
  },
  {
    section: "5",
    rule: "no notice while any call is open, then exactly one, at the end",
    test: Effect.gen(function*() {
      const manager = yield* managing({ notice: true, maxTokens: 6_000, protectedToolResults: 1 })
      yield* manager.append(prompt(user("go"), ...Arr.range(0, 19).flatMap((n) => turn(`c${n}`, 1_200))))
      yield* manager.append(prompt(calls("a", "b"), answers(result("a", "one"))))
      const open = yield* manager.request
      assert.strictEqual(open.generation, 1)
      assert.deepStrictEqual(noticesOf(open), [])
      yield* manager.append(prompt(answers(result("b", "two"))))
      const closed = yield* manager.request
      assert.strictEqual(noticesOf(closed).length, 1)
      assert.strictEqual(closed.prompt.content.at(-1), noticesOf(closed)[0])
    })
  },
  {
    section: "5",
    rule:
      "the full notice once for each boundary, a sentence afterwards, no figures of tokens, and none below the level",
    test: Effect.gen(function*() {
      const manager = yield* managing({ notice: true, maxTokens: 6_000, protectedToolResults: 1 })
      const silent = yield* managing({ notice: true, maxTokens: 6_000, protectedToolResults: 1, noticeMinLevel: 9 })
      const kinds: Array<string> = []
      const batch = (from: number, count: number) =>
        prompt(...Arr.range(from, from + count - 1).flatMap((n) => turn(`c${n}`, 1_200)))
      for (const messages of [prompt(user("go")), batch(0, 20), batch(20, 1), batch(21, 1), batch(22, 12)]) {
        yield* manager.append(messages)
        const request = yield* manager.request
        const [notice] = noticesOf(request)
        const text = textOf(notice)
        assert.notMatch(text, /token|~\d/)
        assert.strictEqual(request.events.some((event) => event._tag === "Compacted"), text.includes("was compacted"))
        kinds.push(notice === undefined ? "none" : text.includes("Nothing new") ? "standing" : "full")
        yield* silent.append(messages)
        assert.deepStrictEqual(noticesOf(yield* silent.request), [])
      }
      assert.deepStrictEqual(kinds, ["none", "full", "standing", "standing", "full"])
    })
  },
  {
    section: "5",
    rule: "the notice says nothing that is not so: what the last resort took is not called kept",
    test: Effect.gen(function*() {
      const manager = yield* managing({ notice: true, noticeReserve: 200, maxTokens: 1_100, protectedToolResults: 1 })
      yield* manager.append(prompt(user(words("first", 2_000)), ...turn("a", 6_000), user("last")))
      const request = yield* manager.request
      const texts = request.prompt.content.map(textOf)
      assert.match(texts[0]!, /^\[earlier user message, shortened/)
      assert.notInclude(texts.at(-1)!, "The first and the newest user message")
      assert.include(texts.at(-1)!, "The newest user message")
    })
  }
]

describe("rules of the reference", () => {
  for (const { rule, section, test } of rows) it.effect(`${section} ${rule}`, () => Effect.scoped(test))
})
