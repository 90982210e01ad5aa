/** The fiber that writes summaries beside the session: whatever becomes of it, no turn waits for it or fails. */
import { assert, describe, it } from "@effect/vitest"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Sessions from "./Sessions.ts"

const { short, withSummary } = Sessions

/** Without what paces them, a summary is begun at every request that is above the trigger. */
const eagerly = { cooldownRequests: 0, cooldownGrowth: 0, hysteresis: false } as const

const broken = new Summarizer.SummarizerFailed({ reason: "the model is gone", isOverflow: false })

const causes = (events: ReadonlyArray<{ readonly _tag: string }>) =>
  events.flatMap((event) => "cause" in event ? [event.cause] : [])

describe("the fiber", () => {
  it.effect("starts at the trigger, is ready beside the turns, and is absorbed at the next boundary", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(short)
      const { manager, tags } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 11)
      assert.strictEqual(requests.length, 0)
      assert.strictEqual((yield* manager.status).summary, "idle")
      const [started] = yield* Sessions.play(manager, 11, 1)
      assert.isAtLeast(started!.count.tokens, 6_000)
      assert.strictEqual(requests.length, 1)
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryReady"])
      assert.strictEqual((yield* manager.status).summary, "ready")
      const later = yield* Sessions.play(manager, 12, 6)
      const at = later.findIndex((request) => request.generation === 1)
      // It waits for the boundary that comes anyway: there is one, at the threshold.
      assert.deepStrictEqual(later.map((request) => request.generation), [0, 0, 0, 0, 0, 1])
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryReady", "SummaryAbsorbed"])
      assert.isTrue(later[at]!.prompt.content.some((message) => JSON.stringify(message).includes("read the next one")))
      assert.strictEqual((yield* manager.status).summary, "idle")
    }))

  it.effect("begins after the turn that began it", () =>
    Effect.gen(function*() {
      let isAsked = false
      const { service } = Sessions.answering(() =>
        Effect.sync(() => {
          isAsked = true
          return Sessions.reply(short)
        })
      )
      const { manager } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 11)
      yield* Sessions.ask(manager, ...Sessions.turnOf(11))
      assert.isFalse(isAsked)
      yield* Sessions.settle
      assert.isTrue(isAsked)
    }))

  it.effect("never makes a turn wait: the request completes while the summariser is blocked", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { requests, service } = Sessions.answering(() => Effect.as(Deferred.await(gate), Sessions.reply(short)))
      const { manager, tags } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      assert.strictEqual((yield* manager.status).summary, "running")
      // Nothing moves the clock and nothing opens the gate: these would hang.
      const turns = yield* Sessions.play(manager, 12, 10)
      assert.deepStrictEqual(turns.map((request) => request.generation), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
      assert.deepStrictEqual(yield* tags, ["SummaryStarted"])
      assert.strictEqual(requests.length, 1, "one at a time")
      yield* Deferred.succeed(gate, undefined)
      // The ladder took the span away meanwhile: stale, and not a part of it is replaced.
      yield* Sessions.play(manager, 22, 1)
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryReady", "SummaryRefused"])
      assert.isFalse((yield* manager.view).items.some(({ entry }) => entry?.origin === "library"))
    }))

  it.effect("times out at exactly the configured time", () =>
    Effect.gen(function*() {
      const { service } = Sessions.answering(() => Effect.never)
      const { manager, tags, told } = yield* Sessions.watched(withSummary({ timeout: "45 seconds" }), {
        summarizer: service
      })
      yield* Sessions.playToTrigger(manager)
      yield* TestClock.adjust("44999 millis")
      assert.deepStrictEqual(yield* tags, ["SummaryStarted"])
      assert.strictEqual((yield* manager.status).summary, "running")
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual((yield* told).at(-1), {
        _tag: "SummaryFailed",
        cause: "timeout",
        reason: new Summarizer.SummaryTimedOut({ milliseconds: 45_000 }).message,
        milliseconds: 45_000,
        failures: 1
      })
      assert.strictEqual((yield* manager.status).summary, "idle")
    }))

  it.effect("leaves behind a summariser that cannot be interrupted: at the timeout, and at the close", () =>
    Effect.gen(function*() {
      const release = yield* Deferred.make<void>()
      let ended = 0
      const stuck = Sessions.answering(() =>
        Effect.uninterruptible(Effect.andThen(
          Deferred.await(release),
          Effect.sync(() => {
            ended++
            return Sessions.reply(short)
          })
        ))
      )
      const scope = yield* Scope.make()
      const { manager, tags } = yield* Sessions.watched(withSummary(eagerly), { summarizer: stuck.service }).pipe(
        Scope.provide(scope)
      )
      yield* Sessions.playToTrigger(manager)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryFailed"])
      yield* Sessions.play(manager, 12, 1)
      assert.strictEqual(stuck.requests.length, 2, "the next one is begun")
      // Two hang now; the close waits for neither.
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      // What is said too late is not heard.
      yield* Deferred.succeed(release, undefined)
      yield* Sessions.settle
      assert.strictEqual(ended, 2)
    }))

  it.effect("publishes that it was interrupted when the scope closes, and starts nothing after", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      let interrupted = 0
      const { service } = Sessions.answering(() =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            interrupted++
          }))
      )
      const manager = yield* Sessions.manager(withSummary(), { summarizer: service }).pipe(Scope.provide(scope))
      const events = yield* Stream.runCollect(manager.events).pipe(Effect.forkChild({ startImmediately: true }))
      yield* Sessions.playToTrigger(manager)
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      const told = Array.from(yield* Fiber.join(events)).filter((event) => event._tag.startsWith("Summary"))
      assert.deepStrictEqual(told.map((event) => event._tag), ["SummaryStarted", "SummaryFailed"])
      assert.deepStrictEqual(causes(told), ["interrupted"])
      yield* Sessions.settle
      assert.strictEqual(interrupted, 1)
    }))

  it.effect("is interrupted by a reset and by a restore, which is published and is no failure", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.answering(() => Effect.never)
      const { manager, told } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      const saved = yield* manager.export
      yield* manager.reset
      assert.deepStrictEqual(causes(yield* told), ["interrupted"])
      assert.strictEqual((yield* manager.status).summary, "idle")
      yield* manager.restore(saved)
      yield* Sessions.play(manager, 12, 1)
      yield* manager.restore(saved)
      const events = yield* told
      assert.deepStrictEqual(causes(events), ["interrupted", "interrupted"])
      assert.isTrue(events.every((event) => event._tag !== "SummaryFailed" || event.failures === 0))
      assert.strictEqual(requests.length, 2)
    }))

  const ends: ReadonlyArray<
    readonly [
      string,
      () => Effect.Effect<Summarizer.Reply, Summarizer.SummarizerFailed | Summarizer.SummaryEmpty>,
      string
    ]
  > = [
    ["fails", () => Effect.fail(broken), "failed"],
    ["is empty by its own account", () => Effect.fail(new Summarizer.SummaryEmpty()), "empty"],
    ["is blank", () => Effect.succeed(Sessions.reply("  \n ")), "empty"],
    [
      "has nothing but headings",
      () => Effect.succeed(Sessions.reply("## Request\n\n- none\n\n## Next\nnone.")),
      "empty"
    ],
    ["is cut", () => Effect.succeed({ ...Sessions.reply(short), isTruncated: true }), "truncated"],
    ["dies", () => Effect.die(new Error("a bug")), "defect"],
    ["throws", () => Effect.sync(() => JSON.parse("{")), "defect"],
    ["interrupts itself", () => Effect.interrupt, "interrupted"],
    ["is the text of an error", () => Effect.succeed(Sessions.reply("RateLimitError: 429, try again")), "failed"]
  ]
  for (const [name, end, cause] of ends) {
    it.effect(`${name}: published with its cause, counted, and paced like any other`, () =>
      Effect.gen(function*() {
        const { requests, service } = Sessions.answering(end)
        const { manager, told } = yield* Sessions.watched(withSummary(), { summarizer: service })
        yield* Sessions.playToTrigger(manager)
        const events = yield* told
        assert.deepStrictEqual(causes(events), [cause])
        assert.deepStrictEqual(events.flatMap((event) => event._tag === "SummaryFailed" ? [event.failures] : []), [1])
        assert.strictEqual((yield* manager.status).summary, "idle")
        yield* Sessions.play(manager, 12, 7)
        assert.strictEqual(requests.length, 1, "not again before the cooldown")
      }))
  }

  it.effect("hears an answer once, when it is given twice", () =>
    Effect.gen(function*() {
      const resumes: Array<() => void> = []
      const { service } = Sessions.answering(() =>
        Effect.callback((resume) => {
          resumes.push(() => {
            resume(Effect.succeed(Sessions.reply(short)))
            resume(Effect.succeed(Sessions.reply(`${short}\n- again`)))
          })
        })
      )
      const { manager, tags } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      resumes[0]!()
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryReady"])
      resumes[0]!()
      yield* Sessions.play(manager, 12, 6)
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryReady", "SummaryAbsorbed"])
    }))

  it.effect("does not hear an answer that comes after its timeout", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { service } = Sessions.answering(() =>
        Effect.uninterruptible(Effect.as(Deferred.await(gate), Sessions.reply(short)))
      )
      const { manager, tags } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      yield* TestClock.adjust("30 seconds")
      yield* Deferred.succeed(gate, undefined)
      yield* Sessions.play(manager, 12, 6)
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryFailed"])
      assert.strictEqual((yield* manager.view).items.filter(({ entry }) => entry?.origin === "library").length, 0)
    }))

  it.effect("is tried again by a schedule, within the timeout, for a failure and for nothing else", () =>
    Effect.gen(function*() {
      const times: Array<number> = []
      const { service } = Sessions.answering((_, call) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          times.push(now)
          return call < 3 ? Effect.fail(broken) : Effect.succeed(Sessions.reply(short))
        })
      )
      const retry = Schedule.spaced("5 seconds")
      const { manager, tags } = yield* Sessions.watched(withSummary(), { summarizer: service, retry })
      yield* Sessions.playToTrigger(manager)
      yield* TestClock.adjust("5 seconds")
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryReady"])
      assert.deepStrictEqual(times.map((time) => time - times[0]!), [0, 5_000, 10_000])

      const hopeless = Sessions.answering(() => Effect.fail(broken))
      const other = yield* Sessions.watched(withSummary(), { summarizer: hopeless.service, retry })
      yield* Sessions.playToTrigger(other.manager)
      for (let n = 0; n < 6; n++) yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(causes(yield* other.told), ["timeout"])
      assert.isAtLeast(hopeless.requests.length, 6)

      const empty = Sessions.answering(() => Effect.fail(new Summarizer.SummaryEmpty()))
      const once = yield* Sessions.watched(withSummary(), { summarizer: empty.service, retry })
      yield* Sessions.playToTrigger(once.manager)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(empty.requests.length, 1)

      // What is too long stays too long: its span is halved instead, and not asked for again later.
      const tooLong = Sessions.answering(() =>
        Effect.fail(new Summarizer.SummarizerFailed({ reason: "too long", isOverflow: true }))
      )
      const asking = yield* Sessions.watched(withSummary(), { summarizer: tooLong.service, retry })
      yield* Sessions.playToTrigger(asking.manager)
      const { length } = tooLong.requests
      assert.isAtLeast(length, 1)
      assert.deepStrictEqual(causes(yield* asking.told), ["failed"])
      for (let n = 0; n < 5; n++) yield* TestClock.adjust("5 seconds")
      assert.strictEqual(tooLong.requests.length, length)
    }))

  it.effect("stops after three failures in a row until it is resumed; a refusal counts as none", () =>
    Effect.gen(function*() {
      let answer: Effect.Effect<Summarizer.Reply, Summarizer.SummarizerFailed> = Effect.fail(broken)
      const { requests, service } = Sessions.answering(() => answer)
      const { manager, tags, told } = yield* Sessions.watched(withSummary(eagerly, { maxTokens: 40_000 }), {
        summarizer: service
      })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 46)
      const twice = (yield* tags).filter((tag) => tag === "SummaryFailed").length
      assert.isAtLeast(requests.length, 1)
      // What is not smaller is refused, which ends no row of failures and adds none.
      answer = Effect.succeed(Sessions.reply("x ".repeat(200_000)))
      yield* Sessions.play(manager, 46, 1)
      assert.strictEqual((yield* told).at(-1)!._tag, "SummaryRefused")
      answer = Effect.fail(broken)
      yield* Sessions.play(manager, 47, 3)
      assert.strictEqual((yield* manager.status).summary, "stopped")
      const stopped = (yield* told).filter((event) => event._tag === "SummariesStopped")
      assert.deepStrictEqual(stopped, [{ _tag: "SummariesStopped", failures: 3 }])
      assert.isAtMost(twice, 3)
      const before = requests.length
      yield* Sessions.play(manager, 50, 5)
      assert.strictEqual(requests.length, before, "stopped")
      answer = Effect.succeed(Sessions.reply(short))
      yield* manager.resumeSummaries
      assert.strictEqual((yield* manager.status).summary, "idle")
      yield* Sessions.play(manager, 55, 1)
      assert.strictEqual(requests.length, before + 1)
      assert.strictEqual((yield* told).at(-1)!._tag, "SummaryReady")
    }))

  it.effect("an absorbed summary ends a row of failures", () =>
    Effect.gen(function*() {
      // Two failures, one that is absorbed at once, two failures: never three in a row.
      const { service } = Sessions.answering((_, call) =>
        call === 3 ? Effect.succeed(Sessions.reply(short)) : Effect.fail(broken)
      )
      const { manager, told } = yield* Sessions.watched(
        withSummary({ ...eagerly, eager: true }, { maxTokens: 40_000 }),
        {
          summarizer: service
        }
      )
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 49)
      let failures: ReadonlyArray<number> = []
      for (let n = 49; n < 110 && failures.length < 4; n++) {
        yield* Sessions.play(manager, n, 1)
        failures = (yield* told).flatMap((event) => event._tag === "SummaryFailed" ? [event.failures] : [])
      }
      assert.deepStrictEqual(failures, [1, 2, 1, 2])
    }))

  it.effect("shows its state as a stream of changes", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { service } = Sessions.answering(() => Effect.as(Deferred.await(gate), Sessions.reply(short)))
      const { manager } = yield* Sessions.watched(withSummary(), { summarizer: service })
      const seen: Array<string | null> = []
      yield* Stream.runForEach(manager.statusChanges, ({ summary }) =>
        Effect.sync(() => {
          if (seen.at(-1) !== summary) seen.push(summary)
        })).pipe(Effect.forkScoped({ startImmediately: true }))
      yield* Sessions.playToTrigger(manager)
      yield* Sessions.settle
      yield* Deferred.succeed(gate, undefined)
      yield* Sessions.settle
      yield* Sessions.play(manager, 12, 6)
      yield* Sessions.settle
      assert.deepStrictEqual(seen, ["idle", "running", "ready", "idle"])
    }))

  it.effect("without a summariser there is no state to show, and the session says so once", () =>
    Effect.gen(function*() {
      const { manager, tags } = yield* Sessions.watched(withSummary())
      yield* Sessions.playToTrigger(manager)
      assert.strictEqual((yield* manager.status).summary, null)
      assert.deepStrictEqual(yield* tags, [])
      yield* manager.resumeSummaries
    }))

  it.effect("never counts the bill of a summary as the conversation's", () =>
    Effect.gen(function*() {
      const dear = { ...Sessions.reply(short), usage: { inputTokens: { uncached: 190_000 }, outputTokens: 900 } }
      const { service } = Sessions.answering(() => Effect.succeed(dear))
      const { manager, told } = yield* Sessions.watched(withSummary(), { summarizer: service })
      const plain = yield* Sessions.manager(Sessions.base)
      yield* Sessions.playToTrigger(manager)
      yield* Sessions.playToTrigger(plain)
      const ready = (yield* told).find((event) => event._tag === "SummaryReady")
      assert.strictEqual(ready?.input, 190_000)
      assert.strictEqual(ready?.output, 900)
      const [next] = yield* Sessions.play(manager, 12, 1)
      const [same] = yield* Sessions.play(plain, 12, 1)
      assert.deepStrictEqual(next!.count, same!.count)
    }))
})
