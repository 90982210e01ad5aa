/** Compacting by hand. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { assistant, bytesOf } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Audit from "./Audit.ts"
import * as Sessions from "./Sessions.ts"

const { short, withSummary } = Sessions

/** Summaries, and none that begins by itself. */
const byHand = withSummary({ trigger: 1 })

const gated = Effect.gen(function*() {
  const gate = yield* Deferred.make<void>()
  const made = Sessions.answering(() => Effect.as(Deferred.await(gate), Sessions.reply(short)))
  return { ...made, open: Deferred.succeed(gate, undefined) }
})

const report = (self: Option.Option<ContextManager.CompactionReport>) => Option.getOrThrow(self)

describe("compactNow", () => {
  it.effect("puts a checkpoint in the place of all but the newest, whatever the count, and says what it did", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying(short)
      const { events, manager } = yield* Sessions.watched(byHand, { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 4)
      const before = yield* manager.view
      const done = report(yield* manager.compactNow({ focus: "names", commandId: "c-7" }))
      yield* Sessions.settle
      const after = yield* manager.view
      assert.deepStrictEqual(done, {
        // All but the opening and the newest group of four.
        entries: 6,
        shadowed: before.items.slice(2, 8).reduce((sum, item) => sum + item.price, 0),
        freed: before.price - after.price,
        generation: 1,
        checkpoint: 10,
        commandId: "c-7"
      })
      assert.deepStrictEqual(after.items.map((item) => item.seq), [0, 1, 10, 8, 9])
      assert.strictEqual(events.filter((event) => event._tag === "Compacted").length, 1)
      const audit = Audit.make()
      const request = yield* Sessions.step(manager, ...Sessions.turnOf(4))
      assert.strictEqual(request.prefixChanged, "boundary")
      assert.deepStrictEqual(yield* audit(manager, request), [])
    }))

  it.effect("is None when there is nothing useful to do, and calls nothing", () =>
    Effect.gen(function*() {
      const { requests, service } = Sessions.saying(short)
      for (const summarizer of [service, undefined]) {
        const { events, manager } = yield* Sessions.watched(byHand, { summarizer })
        yield* manager.append(Prompt.fromMessages([...Sessions.opening, assistant("ok")]))
        const before = yield* manager.export
        assert.isTrue(Option.isNone(yield* manager.compactNow()))
        yield* Sessions.settle
        assert.deepStrictEqual(events, [])
        assert.deepStrictEqual(yield* manager.export, before)
      }
      assert.strictEqual(requests.length, 0)
    }))

  it.effect("of an empty session is None", () =>
    Effect.gen(function*() {
      const { manager } = yield* Sessions.watched(byHand, { summarizer: Sessions.saying(short).service })
      assert.isTrue(Option.isNone(yield* manager.compactNow()))
    }))

  it.effect("works without a summariser: by the ladder", () =>
    Effect.gen(function*() {
      const { manager } = yield* Sessions.watched(Sessions.base)
      yield* Sessions.playToTrigger(manager)
      const before = yield* manager.view
      const done = report(yield* manager.compactNow({ commandId: "c" }))
      const after = yield* manager.view
      assert.deepStrictEqual([done.checkpoint, done.commandId, done.freed], [null, "c", before.price - after.price])
      assert.isAtMost(after.price, 5_000)
      const request = yield* Sessions.step(manager, ...Sessions.turnOf(12))
      assert.deepStrictEqual(Audit.refusals(request.prompt.content), [])
    }))

  it.effect("two at once: one runs, the other is CompactionBusy", () =>
    Effect.gen(function*() {
      const { open, requests, service } = yield* gated
      const { manager } = yield* Sessions.watched(byHand, { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      const first = yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
      const second = yield* Effect.flip(manager.compactNow())
      assert.strictEqual(second._tag, "CompactionBusy")
      yield* Sessions.settle
      yield* open
      assert.isTrue(Option.isSome(yield* Fiber.join(first)))
      assert.strictEqual(requests.length, 1)
      // Nothing is held after it.
      yield* Sessions.play(manager, 12, 3)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
    }))

  it.effect("is CompactionBusy while a summary is written beside the session; none is begun while it runs", () =>
    Effect.gen(function*() {
      const { open, requests, service } = yield* gated
      const { manager } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "CompactionBusy")
      yield* open
      yield* Sessions.settle

      const other = yield* gated
      const busy = yield* Sessions.watched(withSummary(), { summarizer: other.service })
      yield* Sessions.step(busy.manager, ...Sessions.opening)
      yield* Sessions.play(busy.manager, 0, 10)
      const run = yield* Effect.forkChild(busy.manager.compactNow(), { startImmediately: true })
      yield* Sessions.settle
      yield* Sessions.play(busy.manager, 10, 4)
      assert.strictEqual(other.requests.length, 1)
      yield* other.open
      assert.isTrue(Option.isSome(yield* Fiber.join(run)))
      assert.strictEqual(requests.length, 1)
    }))

  it.effect("turns go on meanwhile, and what they append stays behind the checkpoint", () =>
    Effect.gen(function*() {
      const { open, service } = yield* gated
      const { manager } = yield* Sessions.watched(byHand, { summarizer: service })
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 4)
      const run = yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
      yield* Sessions.settle
      const during = yield* Sessions.step(manager, ...Sessions.turnOf(4))
      assert.strictEqual(during.generation, 0)
      yield* open
      assert.isTrue(Option.isSome(yield* Fiber.join(run)))
      const view = yield* manager.view
      assert.deepStrictEqual(view.items.map((item) => item.seq), [0, 1, 12, 8, 9, 10, 11])
      assert.strictEqual((yield* manager.request).generation, 1)
    }))

  it.effect("a span that was taken apart meanwhile is SpanChanged, and nothing changes", () =>
    Effect.gen(function*() {
      const { open, service } = yield* gated
      const { manager } = yield* Sessions.watched(byHand, { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      const run = yield* Effect.forkChild(Effect.flip(manager.compactNow()), { startImmediately: true })
      yield* Sessions.settle
      // The ladder takes some of the span at the threshold.
      yield* Sessions.play(manager, 12, 6)
      const before = yield* manager.view
      assert.isAbove(before.decisions.length, 0)
      yield* open
      assert.strictEqual((yield* Fiber.join(run))._tag, "SpanChanged")
      assert.deepStrictEqual((yield* manager.view).items, before.items)
    }))

  it.effect("is cancelled by a close and by a reset, which wait for no summariser", () =>
    Effect.gen(function*() {
      for (const end of ["close", "reset"] as const) {
        const scope = yield* Scope.make()
        const { requests, service } = Sessions.answering(() => Effect.uninterruptible(Effect.never))
        const manager = yield* Sessions.manager(byHand, { summarizer: service }).pipe(Scope.provide(scope))
        yield* Sessions.playToTrigger(manager)
        const run = yield* Effect.forkChild(Effect.flip(manager.compactNow()), { startImmediately: true })
        yield* Sessions.settle
        assert.strictEqual(requests.length, 1)
        // Nothing moves the clock: these would hang.
        yield* end === "close" ? Scope.close(scope, Exit.void) : manager.reset
        assert.strictEqual((yield* Fiber.join(run))._tag, "CompactionCancelled")
        if (end === "reset") {
          assert.strictEqual((yield* manager.status).summary, "idle")
          yield* Scope.close(scope, Exit.void)
        }
      }
    }))

  it.effect("a request that was under way when it was asked for begins none beside it", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { requests, service } = Sessions.answering(() => Effect.never)
      let isSlow = false
      const manager = yield* ContextManager.make(seeded({
        settings: withSummary(),
        pass: Policy.passFrom((pass) => Effect.andThen(isSlow ? Deferred.await(gate) : Effect.void, Policy.pass(pass)))
      })).pipe(Effect.provideService(Summarizer.Summarizer, service))
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 11)
      isSlow = true
      yield* manager.append(Prompt.fromMessages(Sessions.turnOf(11)))
      yield* Effect.forkChild(manager.request, { startImmediately: true })
      yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
      yield* Deferred.succeed(gate, undefined)
      yield* Sessions.settle
      assert.strictEqual(requests.length, 1)
    }))

  const ends: ReadonlyArray<readonly [string, Effect.Effect<Summarizer.Reply, Summarizer.SummarizerFailed>, string]> = [
    ["fails", Effect.fail(new Summarizer.SummarizerFailed({ reason: "down", isOverflow: false })), "SummarizerFailed"],
    ["dies", Effect.die("a bug"), "SummarizerFailed"],
    ["interrupts itself", Effect.interrupt, "SummarizerFailed"],
    ["is empty", Effect.succeed(Sessions.reply("")), "SummaryEmpty"],
    ["is cut", Effect.succeed({ ...Sessions.reply(short), isTruncated: true }), "SummaryTruncated"],
    ["is not smaller", Effect.succeed(Sessions.reply("x ".repeat(90_000))), "SummaryNotSmaller"]
  ]
  for (const [name, end, tag] of ends) {
    it.effect(`says why it came to nothing: a summary that ${name}`, () =>
      Effect.gen(function*() {
        const { manager } = yield* Sessions.watched(byHand, { summarizer: Sessions.answering(() => end).service })
        yield* Sessions.playToTrigger(manager)
        const before = bytesOf((yield* manager.request).prompt)
        assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, tag)
        assert.strictEqual(bytesOf((yield* manager.request).prompt), before)
        assert.strictEqual((yield* manager.status).summary, "idle")
      }))
  }

  it.effect("refuses a summary that is larger than what its span became meanwhile", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      // About 630 tokens: less than the span of three whole turns, more than what a pass leaves of them.
      const long = `## Request\n\n- ${"read the file again ".repeat(120)}\n\n## Next\n\n- read the next one`
      const { service } = Sessions.answering(() => Effect.as(Deferred.await(gate), Sessions.reply(long)))
      const settings = withSummary({ trigger: 1 }, { truncateChars: 40, protectedToolResults: 0 })
      // A pass that shortens the results and takes none of the span away.
      const ladder = Ladder.make(Rung.truncateToolResults({ fraction: 1 }))
      const manager = yield* Effect.provideService(
        ContextManager.make(seeded({ settings, ladder })),
        Summarizer.Summarizer,
        service
      )
      yield* Sessions.step(manager, ...Sessions.opening)
      yield* Sessions.play(manager, 0, 4)
      const first = yield* manager.view
      const run = yield* Effect.forkChild(Effect.flip(manager.compactNow()), { startImmediately: true })
      yield* Sessions.settle
      yield* manager.requestWith({ budget: 2_100 })
      const before = yield* manager.view
      assert.isBelow(before.price, first.price)
      assert.deepStrictEqual(before.items.map(({ seq }) => seq), first.items.map(({ seq }) => seq))
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(run))._tag, "SummaryNotSmaller")
      const after = yield* manager.view
      assert.strictEqual(after.price, before.price)
      assert.isFalse(after.items.some(({ entry }) => entry?.origin === "library"))
      assert.strictEqual((yield* manager.status).summary, "idle")
    }))

  it.effect("waits no longer than the timeout, and can be interrupted", () =>
    Effect.gen(function*() {
      const { service } = Sessions.answering(() => Effect.uninterruptible(Effect.never))
      const { manager, told } = yield* Sessions.watched(byHand, { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      const run = yield* Effect.forkChild(Effect.flip(manager.compactNow()), { startImmediately: true })
      yield* Sessions.settle
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* Fiber.join(run))._tag, "SummaryTimedOut")
      const again = yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
      yield* Sessions.settle
      yield* Fiber.interrupt(again)
      const last = (yield* told).at(-1)
      assert.strictEqual(last?._tag === "SummaryFailed" ? last.cause : "", "interrupted")
      assert.strictEqual((yield* manager.status).summary, "idle")
    }))

  it.effect("a summary that waits is stale after it", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying(short)
      const { manager, tags } = yield* Sessions.watched(withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      assert.strictEqual((yield* manager.status).summary, "ready")
      yield* Sessions.play(manager, 12, 1)
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
      yield* Sessions.play(manager, 13, 1)
      assert.deepStrictEqual((yield* tags).at(-1), "SummaryRefused")
      const view = yield* manager.view
      assert.strictEqual(view.items.filter(({ entry }) => entry?.origin === "library").length, 1)
    }))
})
