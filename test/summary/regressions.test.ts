/** Faults that others shipped, each as the smallest input that shows its kind. The numbers are those of spec and issue. */
import { assert, describe, it } from "@effect/vitest"
import * as Checkpoint from "effect-compaction/Checkpoint"
import * as Estimator from "effect-compaction/Estimator"
import * as Marks from "effect-compaction/Marks"
import * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as View from "effect-compaction/View"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { answers, assistant, bytesOf, calls, prompt, result, turn, user, words } from "../core/conversation.ts"
import { seed } from "../seed.ts"
import * as Audit from "./Audit.ts"
import * as Sessions from "./Sessions.ts"

const { short, withSummary } = Sessions
const byHand = withSummary({ trigger: 1 })

const checkpointsOf = (manager: Sessions.Manager) =>
  Effect.map(manager.view, ({ items }) => items.filter(({ entry }) => entry?.origin === "library"))

/** What an absorbed span is, in bytes. */
const absorbedOf = (manager: Sessions.Manager) =>
  Effect.map(
    manager.view,
    ({ decisions, transcript }) =>
      decisions.flatMap((each) =>
        each._tag === "Absorb" ? [bytesOf(prompt(...each.seqs.map((seq) => transcript.entries[seq]!.message)))] : []
      )
  )

/** A reasoning part, then a text, as two messages whose items refer to each other. */
const reasoned = (n: number): ReadonlyArray<Prompt.Message> => [
  Prompt.makeMessage("assistant", {
    content: [
      Prompt.makePart("reasoning", { text: words(`r${n}`, 300), options: { openai: { itemId: `rs_${n}` } } }),
      Prompt.makePart("text", { text: words(`m${n}`, 300), options: { openai: { itemId: `msg_${n}` } } })
    ]
  }),
  user(`next ${n}`)
]

const kinds: ReadonlyArray<readonly [string, () => Effect.Effect<void, unknown, Scope.Scope>]> = [
  ["R1 two figures that disagree: one scale, and no loop where nothing is to be gained", () =>
    Effect.gen(function*() {
      // Usage says nearly twice the estimate: all that decides must be on one scale.
      const { requests, service } = Sessions.saying(short)
      const { events, manager } = yield* Sessions.watched(
        withSummary({}, { meter: "hybrid", sizing: "provider", maxTokens: 20_000 }),
        { summarizer: service }
      )
      yield* Sessions.step(manager, ...Sessions.opening)
      const boundaries: Array<number> = []
      for (let n = 0; n < 40; n++) {
        const request = yield* Sessions.step(manager, ...Sessions.turnOf(n))
        const tokens = request.prompt.content.reduce((sum, each) => sum + Estimator.chars.price(each), 0)
        yield* manager.observe({ inputTokens: { total: Math.round(tokens * 1.95) } })
        if (request.events.some((event) => event._tag === "Compacted")) boundaries.push(n)
        assert.isAtMost(tokens * 1.95, 20_500)
      }
      // A boundary each few turns, never two in a row.
      boundaries.slice(1).forEach((n, at) => assert.isAtLeast(n - boundaries[at]!, 3))
      assert.isAtLeast(requests.length, 1)
      assert.strictEqual(events.filter((event) => event._tag === "Infeasible").length, 0)
    })],
  [
    "R2 covered range is the summarised range: the summariser reads two of three, and two are replaced",
    () =>
      Effect.gen(function*() {
        const tooLong = new Summarizer.SummarizerFailed({ reason: "too long", isOverflow: true })
        const { requests, service } = Sessions.answering((request) =>
          request.messages.length > 4 ? Effect.fail(tooLong) : Effect.succeed(Sessions.reply(short))
        )
        const { manager } = yield* Sessions.watched(byHand, { summarizer: service })
        yield* Sessions.step(manager, ...Sessions.opening)
        yield* Sessions.play(manager, 0, 4)
        yield* manager.compactNow()
        assert.deepStrictEqual(yield* absorbedOf(manager), [bytesOf(prompt(...requests.at(-1)!.messages))])
        assert.strictEqual(requests.at(-1)!.messages.length, 4)
      })
  ],
  ["R3 second compaction over a first: on the effective view, no orphan", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying(short)
      const { manager } = yield* Sessions.watched(byHand, { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 4)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      yield* Sessions.step(manager, ...turn("a", 2_000))
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      const request = yield* Sessions.step(manager, ...turn("b", 2_000))
      assert.deepStrictEqual(Audit.refusals(request.prompt.content), [])
      assert.strictEqual((yield* checkpointsOf(manager)).length, 1)
    })],
  ["R6 reasoning is not cut from what follows it", () =>
    Effect.gen(function*() {
      const view = View.fromPrompt(
        prompt(user("first"), ...Array.from({ length: 8 }, (_, n) => reasoned(n)).flat(), assistant("end")),
        Estimator.chars.price
      )
      const settings = yield* Settings.decode(seed({ protectedRecent: 0, protectedToolResults: 0 }))
      for (let aim = 0; aim < view.price; aim += 50) {
        const options = { aim, retain: 0, minimum: 0, heedProtection: false, mergeCheckpoints: true }
        const seqs = new Set(Checkpoint.span(view, settings, options)?.seqs)
        const kept = view.items.filter((item) => !seqs.has(item.seq)).map((item) => item.message)
        const ids = (prefix: string) => JSON.stringify(kept).match(new RegExp(`${prefix}_\\d+`, "g")) ?? []
        assert.deepStrictEqual(
          ids("rs").map((id) => id.slice(3)),
          ids("msg").map((id) => id.slice(4))
        )
      }
    })],
  ["R8 what is sent is measured; a summary that says nothing is refused", () =>
    Effect.gen(function*() {
      const huge = words("huge", 400_000)
      const { requests, service } = Sessions.saying("## State\n\n- none", "other")
      const { manager, told } = yield* Sessions.watched(
        withSummary({ trigger: 1, resultChars: 1_000 }, { maxTokens: 200_000 }),
        { summarizer: service }
      )
      yield* Sessions.step(manager, ...Sessions.opening, calls("a"), answers(result("a", huge)), ...turn("b", 100))
      assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "SummaryEmpty")
      const sent = bytesOf(requests[0]!.prompt)
      assert.isBelow(sent.length, 6_000)
      // The span costs what stands in the view, not what the summariser was shown of it.
      const started = (yield* told).find((event) => event._tag === "SummaryStarted")
      assert.isAtLeast(started!.tokens, 100_000)
    })],
  [
    "R9 images for a summariser that reads text: placeholders with the text that came with them",
    () =>
      Effect.gen(function*() {
        const { requests, service } = Sessions.saying(short, "other")
        const { manager } = yield* Sessions.watched(withSummary({ trigger: 1 }, { maxTokens: 100_000 }), {
          summarizer: service
        })
        const data = new Uint8Array(3_000).fill(7)
        yield* Sessions.step(
          manager,
          ...Sessions.opening,
          ...Array.from({ length: 10 }, (_, n) =>
            Prompt.makeMessage("user", {
              content: [
                Prompt.makePart("text", { text: `screen ${n}` }),
                Prompt.makePart("file", { mediaType: "image/png", data })
              ]
            })),
          user("go on"),
          assistant("yes")
        )
        yield* manager.compactNow()
        const { prompt: sent, text } = requests[0]!
        for (let n = 0; n < 10; n++) assert.isTrue(text.includes(`screen ${n}\n[image/png]`))
        assert.isBelow(bytesOf(sent).length, 5_000)
      })
  ],
  ["R13 the usage of the summary call is no pressure of the conversation", () =>
    Effect.gen(function*() {
      const dear = { ...Sessions.reply(short), usage: { inputTokens: { total: 190_000 }, outputTokens: 500 } }
      const { manager } = yield* Sessions.watched(withSummary({}, { meter: "actual" }), {
        summarizer: Sessions.answering(() => Effect.succeed(dear)).service
      })
      yield* Sessions.step(manager, ...Sessions.opening)
      for (let n = 0; n < 13; n++) {
        const request = yield* Sessions.step(manager, ...Sessions.turnOf(n))
        yield* manager.observe({ inputTokens: { total: request.count.tokens } })
        assert.isBelow(request.count.tokens, 9_000)
        assert.strictEqual(request.generation, 0)
      }
    })],
  ["R14 two compactions at once: one runs, the other is CompactionBusy", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { requests, service } = Sessions.answering(() => Effect.as(Deferred.await(gate), Sessions.reply(short)))
      const { manager } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 11)
      yield* manager.append(Prompt.fromMessages(Sessions.turnOf(11)))
      // In one tick: the request that begins one by itself, and the one by hand.
      const both = yield* Effect.all([manager.request, Effect.exit(manager.compactNow())], { concurrency: 2 }).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      yield* Sessions.settle
      assert.strictEqual(requests.length, 1)
      yield* Deferred.succeed(gate, undefined)
      const [, hand] = yield* Fiber.join(both)
      const phase = (yield* manager.status).summary
      assert.isTrue(hand._tag === "Failure" ? phase === "ready" : phase === "idle")
    })],
  [
    "R15 the watermark does not move before the summary lands: raw until then, then in one step",
    () =>
      Effect.gen(function*() {
        const gate = yield* Deferred.make<void>()
        const { service } = Sessions.answering(() => Effect.as(Deferred.await(gate), Sessions.reply(short)))
        const { manager } = yield* Sessions.watched(withSummary({ eager: true }), { summarizer: service })
        const audit = Audit.make()
        yield* Sessions.playToTrigger(manager)
        for (let n = 12; n < 15; n++) {
          const request = yield* Sessions.step(manager, ...Sessions.turnOf(n))
          assert.deepStrictEqual(yield* audit(manager, request), [])
          assert.strictEqual((yield* manager.view).decisions.length, 0)
        }
        yield* Deferred.succeed(gate, undefined)
        yield* Sessions.settle
        // Ready, and not a byte is another one before the boundary.
        assert.strictEqual((yield* manager.view).decisions.length, 0)
        const request = yield* Sessions.step(manager, ...Sessions.turnOf(15))
        assert.strictEqual(request.generation, 1)
        assert.deepStrictEqual((yield* manager.view).decisions.map((each) => each._tag), ["Absorb"])
        assert.deepStrictEqual(yield* audit(manager, request), [])
      })
  ],
  ["R19 the error does not become the summary", () =>
    Effect.gen(function*() {
      const texts = [
        "Error generating summary: 429 Too Many Requests",
        "429 {\"type\":\"error\"}",
        "RateLimitError: slow down",
        "openai.APIConnectionError: no route"
      ]
      for (const text of texts) {
        const { manager, told } = yield* Sessions.watched(byHand, { summarizer: Sessions.saying(text).service })
        yield* Sessions.playToTrigger(manager)
        const before = yield* manager.history
        assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "SummarizerFailed", text)
        assert.strictEqual((yield* told).at(-1)!._tag, "SummaryFailed")
        assert.strictEqual(bytesOf(yield* manager.history), bytesOf(before))
        assert.strictEqual((yield* manager.view).decisions.length, 0)
      }
      // A summary may speak of errors.
      const honest = "## Errors\n\n- Error: 429 Too Many Requests, fixed by waiting"
      const { manager } = yield* Sessions.watched(byHand, { summarizer: Sessions.saying(honest).service })
      yield* Sessions.playToTrigger(manager)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
    })],
  ["R22 room for the summary request at 99.9 % of the window", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(short)
      const { manager } = yield* Sessions.watched(
        withSummary({ trigger: 1, resultChars: 300 }, { compactThreshold: 1, targetUsage: 0.9 }),
        { summarizer: service }
      )
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 18)
      const { count } = yield* Sessions.step(manager, ...turn("z", 1_900))
      assert.isAbove(count.tokens, 9_900)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      for (const asked of requests) {
        const price = asked.prompt.content.reduce((sum, each) => sum + Estimator.chars.price(each), 0)
        assert.isAtMost(price + asked.maxTokens, 10_000)
      }
    })],
  [
    "R23 rules are not forgotten: the first human message and the ledger survive, word for word",
    () =>
      Effect.gen(function*() {
        const { manager } = yield* Sessions.watched(withSummary(), { summarizer: Sessions.saying(short).service })
        const rule = "Answer in French, and never touch the folder legacy/."
        yield* Sessions.step(manager, ...Sessions.opening, assistant("ok"), user(rule), assistant("d'accord"))
        for (let n = 0; n < 75; n++) {
          const request = yield* Sessions.step(
            manager,
            ...Sessions.turnOf(n),
            ...(n % 20 === 0 ? [user(`go on ${n}`)] : [])
          )
          const sent = bytesOf(request.prompt)
          assert.isTrue(sent.includes("You must never delete one."), `request ${n}`)
          assert.isTrue(sent.includes(rule), `request ${n}`)
        }
        const [checkpoint] = yield* checkpointsOf(manager)
        assert.isAtLeast(Marks.of(checkpoint!.message).checkpoint!.generation, 3)
      })
  ],
  ["R24 a rule that the summary invents is reported", () =>
    Effect.gen(function*() {
      const { manager, told } = yield* Sessions.watched(withSummary(), {
        summarizer: Sessions.saying("## Constraints\n\n- Never start the server").service
      })
      yield* Sessions.step(manager, ...Sessions.opening, user("Maybe avoid the cache."))
      yield* Sessions.play(manager, 0, 12)
      const ready = (yield* told).find((event) => event._tag === "SummaryReady")
      assert.deepStrictEqual(ready?.rules, ["- Never start the server"])
    })],
  ["R25 half a summary is not stored", () =>
    Effect.gen(function*() {
      const cut = { ...Sessions.reply("## Request\n\n- read the fi"), isTruncated: true }
      const { manager } = yield* Sessions.watched(byHand, {
        summarizer: Sessions.answering(() => Effect.succeed(cut)).service
      })
      yield* Sessions.playToTrigger(manager)
      assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "SummaryTruncated")
      const { entries } = (yield* manager.view).transcript
      assert.isFalse(entries.some((entry) => entry.origin === "library"))
    })],
  ["R27 empty output does not erase the history", () =>
    Effect.gen(function*() {
      for (const text of ["", "   ", "\n\n", "***", "## Request\n## State\n"]) {
        const { manager } = yield* Sessions.watched(byHand, { summarizer: Sessions.saying(text).service })
        yield* Sessions.playToTrigger(manager)
        const before = yield* manager.view
        assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "SummaryEmpty")
        assert.deepStrictEqual((yield* manager.view).items, before.items)
      }
    })]
]

describe("faults of others", () => {
  for (const [kind, check] of kinds) it.effect(kind, check)
})
