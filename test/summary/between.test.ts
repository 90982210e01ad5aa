/** Summaries inside the request: prune, and only when that is not enough, a summary; bounded, and never a failure. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Policy from "effect-compaction/Policy"
import type * as Settings from "effect-compaction/Settings"
import type * as Stage from "effect-compaction/Stage"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { answers, assistant, calls, result, turn, user, words } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Audit from "./Audit.ts"
import * as Sessions from "./Sessions.ts"

const between = (summary: Settings.Input["summary"] = {}, rest: Settings.Input = {}) =>
  Sessions.withSummary({ mode: "between", ...summary }, { protectedToolResults: 0, ...rest })

/** Turns whose results are short enough not to be pruned. */
const thin = (n: number) => turn(`thin-${n}`, 2_000)

/** A result of 24,000 characters, which a prune takes most of. */
const fat = (id: string) => [calls(id), answers(result(id, words(id, 24_000)))]

const tagsOf = (request: ContextManager.Request) => request.events.map((event) => event._tag)

const decisionsOf = (manager: Sessions.Manager) =>
  Effect.map(manager.view, ({ decisions }) => [...new Set(decisions.map((decision) => decision._tag))])

describe("between", () => {
  it.effect("prunes, and calls no model when that is enough", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(Sessions.short)
      const { manager } = yield* Sessions.watched(between(), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening, ...fat("a"), ...turn("b", 2_000))
      const request = yield* Sessions.step(manager, ...turn("c", 12_000))
      assert.strictEqual(request.generation, 1)
      assert.strictEqual(requests.length, 0)
      assert.deepStrictEqual(yield* decisionsOf(manager), ["Prune"])
    }))

  it.effect("summarises what was pruned when pruning is not enough, as text, because it was never sent", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(Sessions.short)
      const { manager, told } = yield* Sessions.watched(between({ resultChars: 100_000 }), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening, ...turn("a", 9_000))
      for (let n = 0; n < 11; n++) yield* Sessions.step(manager, ...thin(n))
      assert.strictEqual(requests.length, 0)
      const request = yield* Sessions.step(manager, ...turn("z", 11_000))
      assert.strictEqual(request.generation, 1)
      assert.deepStrictEqual(tagsOf(request).filter((tag) => tag === "Compacted"), ["Compacted"])
      assert.strictEqual(requests.length, 1)
      const [asked] = requests
      assert.deepStrictEqual([asked!.layout, asked!.fallback], ["standalone", "pruned"])
      // The text is that of the pruned view: the whole result is not in it, its two ends are.
      assert.isFalse(asked!.text.includes(words("a", 9_000)))
      assert.isTrue(asked!.text.includes("[result]\na lorem"))
      const view = yield* manager.view
      const pruned = view.decisions.flatMap((each) => each._tag === "Prune" ? [each.seq] : [])
      const absorbed = view.decisions.flatMap((each) => each._tag === "Absorb" ? each.seqs : [])
      assert.includeMembers(absorbed, pruned)
      assert.deepStrictEqual((yield* told).map((event) => event._tag), [
        "SummaryStarted",
        "SummaryReady",
        "SummaryAbsorbed"
      ])
      assert.isBelow(request.count.tokens, 9_200)
    }))

  it.effect("without a pruner, summarises the whole text, on the messages that were sent", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(Sessions.short)
      const { manager } = yield* Sessions.watched(between({ prune: false }), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening, ...turn("a", 9_000))
      for (let n = 0; n < 11; n++) yield* Sessions.step(manager, ...thin(n))
      yield* Sessions.step(manager, ...turn("z", 8_000))
      const [asked] = requests
      assert.deepStrictEqual([asked!.layout, asked!.fallback], ["suffix", null])
      assert.isTrue(JSON.stringify(asked!.prompt.content).includes(words("a", 9_000)))
      assert.deepStrictEqual(yield* decisionsOf(manager), ["Absorb"])
    }))

  it.effect("takes further rounds while it is not below the trigger, and no more than it may", () =>
    Effect.gen(function*() {
      for (const [compactionRetries, calls] of [[0, 1], [2, 3]] as const) {
        // Each summary is smaller, and hardly: the request stays above the trigger.
        const { requests, service } = Sessions.answering(({ text }) =>
          Effect.succeed(Sessions.reply(`## State\n\n- ${"x".repeat(Math.floor(text.length * 0.97))}`))
        )
        const settings = between({ prune: false, compactionRetries, maxTokens: 1, minSpan: 0 }, { targetUsage: 0.85 })
        const { manager } = yield* Sessions.watched(settings, { summarizer: service })
        yield* Sessions.step(manager, ...Sessions.opening)
        for (let n = 0; n < 17; n++) yield* Sessions.step(manager, ...thin(n))
        yield* Sessions.step(manager, ...turn("z", 8_000))
        assert.strictEqual(requests.length, calls)
      }
    }))

  it.effect("calls no model at the next five requests after a run that did not converge", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.answering(() =>
        Effect.fail(new Summarizer.SummarizerFailed({ reason: "down", isOverflow: false }))
      )
      const { manager } = yield* Sessions.watched(between({ prune: false, maxFailures: 100 }), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      const asked: Array<number> = []
      // Every request is above the trigger: what comes is large, and the ladder can only just make room.
      for (let n = 0; n < 14; n++) {
        yield* Sessions.step(manager, ...turn(`n${n}`, 12_000), ...turn(`m${n}`, 12_000))
        asked.push(requests.length)
      }
      const first = asked.indexOf(1)
      assert.isAtLeast(first, 0)
      assert.deepStrictEqual(asked.slice(first, first + 7), [1, 1, 1, 1, 1, 1, 2])
    }))

  it.effect("keeps a prune that landed when the summary after it fails, and the ladder goes on from there", () =>
    Effect.gen(function*() {
      const { manager } = yield* Sessions.watched(between(), { summarizer: Sessions.failing.service })
      yield* Sessions.step(manager, ...Sessions.opening, ...turn("a", 9_000))
      for (let n = 0; n < 11; n++) yield* Sessions.step(manager, ...thin(n))
      const request = yield* Sessions.step(manager, ...turn("z", 11_000))
      assert.isBelow(request.count.tokens, 5_001)
      const tags = yield* decisionsOf(manager)
      assert.include(tags, "Prune")
      assert.notInclude(tags, "Absorb")
    }))

  it.effect("waits for the timeout at most, over all rounds, and goes on without", () =>
    Effect.gen(function*() {
      // Rounds that work take 20 seconds each: the second is cut at 30 seconds from the first.
      const { requests, service } = Sessions.answering(({ text }, call) =>
        Effect.delay(
          Effect.succeed(Sessions.reply(`## State\n\n- ${call} ${"x".repeat(Math.floor(text.length * 0.9))}`)),
          "20 seconds"
        )
      )
      const settings = between({ prune: false, compactionRetries: 5, minSpan: 0 }, { targetUsage: 0.85 })
      const { manager, told } = yield* Sessions.watched(settings, { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      for (let n = 0; n < 17; n++) yield* Sessions.step(manager, ...thin(n))
      yield* manager.append(Prompt.fromMessages(turn("z", 8_000)))
      const begun = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkChild(manager.request, { startImmediately: true })
      for (let n = 0; n < 29; n++) {
        yield* TestClock.adjust("1 second")
        yield* Sessions.settle
      }
      assert.isUndefined(fiber.pollUnsafe(), "it waits still")
      yield* TestClock.adjust("1 second")
      yield* Sessions.settle
      assert.isDefined(fiber.pollUnsafe(), "it waits no longer")
      const request = yield* Fiber.join(fiber)
      assert.strictEqual((yield* Clock.currentTimeMillis) - begun, 30_000)
      assert.strictEqual(requests.length, 2)
      assert.strictEqual(request.generation, 1)
      assert.deepStrictEqual(
        (yield* told).flatMap((event) => event._tag === "SummaryFailed" ? [event.cause] : []),
        ["timeout"]
      )
    }))

  const ends: ReadonlyArray<readonly [string, Effect.Effect<Summarizer.Reply, Summarizer.SummaryEmpty>]> = [
    ["dies", Effect.die("a bug")],
    ["interrupts itself", Effect.interrupt],
    ["is empty", Effect.fail(new Summarizer.SummaryEmpty())],
    ["floods", Effect.succeed(Sessions.reply("x ".repeat(100_000)))]
  ]
  for (const [name, end] of ends) {
    it.effect(`never fails: a summariser that ${name}`, () =>
      Effect.gen(function*() {
        const { manager } = yield* Sessions.watched(between({ prune: false }), {
          summarizer: Sessions.answering(() => end).service
        })
        const plain = yield* Sessions.manager({ ...Sessions.base, protectedToolResults: 0 })
        const audit = Audit.make()
        for (let n = 0; n < 30; n++) {
          const messages = n === 0 ? Sessions.opening : thin(n)
          const request = yield* Sessions.step(manager, ...messages)
          const expected = yield* Sessions.step(plain, ...messages)
          assert.deepStrictEqual(yield* audit(manager, request), [])
          assert.deepStrictEqual(Sessions.stable(request), Sessions.stable(expected))
        }
      }))
  }

  it.effect("asks no model while summaries are stopped, and again when they are resumed", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.answering(() => Effect.die("a bug"))
      const { manager } = yield* Sessions.watched(between({ prune: false, maxFailures: 1 }), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      for (let n = 0; n < 40; n++) yield* Sessions.step(manager, ...thin(n))
      assert.strictEqual(requests.length, 1)
      yield* manager.resumeSummaries
      for (let n = 40; n < 60; n++) yield* Sessions.step(manager, ...thin(n))
      assert.strictEqual(requests.length, 2)
    }))

  it.effect("a request that is interrupted while it waits leaves the session as it was", () =>
    Effect.gen(function*() {
      const { manager, told } = yield* Sessions.watched(between({ prune: false }), {
        summarizer: Sessions.answering(() => Effect.never).service
      })
      yield* Sessions.step(manager, ...Sessions.opening)
      for (let n = 0; n < 16; n++) yield* Sessions.step(manager, ...thin(n))
      yield* manager.append(Prompt.fromMessages([...thin(16), ...thin(17), assistant("a"), user("b")]))
      const before = (yield* manager.view).decisions
      const fiber = yield* Effect.forkChild(manager.request, { startImmediately: true })
      yield* Sessions.settle
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* Effect.map(told, (events) => events.map((event) => event._tag)), [
        "SummaryStarted",
        "SummaryFailed"
      ])
      assert.deepStrictEqual((yield* manager.view).decisions, before)
      assert.strictEqual((yield* manager.status).summary, "idle")
    }))

  it.effect("a run whose pass fails behind it backs off too", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(Sessions.short)
      const failing: Stage.Stage<"full"> = () => Effect.fail("full" as const)
      const manager = yield* ContextManager.make(seeded({
        settings: between({ prune: false }),
        pass: Policy.passFrom((pass) =>
          Effect.andThen(Policy.pass(pass), pass.count.tokens > 9_200 ? failing(pass) : Effect.succeed(pass))
        )
      })).pipe(Effect.provideService(Summarizer.Summarizer, service))
      yield* manager.append(Prompt.fromMessages(Sessions.opening))
      for (let n = 0; n < 24; n++) {
        yield* manager.append(Prompt.fromMessages(thin(n)))
        yield* Effect.ignore(manager.request)
      }
      // The requests 17, 23 …: one in six.
      assert.isAtMost(requests.length, 2)
      assert.isAtLeast(requests.length, 1)
    }))
})
