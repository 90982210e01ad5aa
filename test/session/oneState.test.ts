/** What a session got wrong while its fields were listed in many places; of one state and one fold none of it can be. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { answers, calls, prompt, result, session, turn, user, words } from "../core/conversation.ts"
import * as Trace from "../properties/Trace.ts"
import { seed, seeded } from "../seed.ts"
import * as Sessions from "../summary/Sessions.ts"
import * as OneLog from "./oneLog.ts"

const settings = seed({ maxTokens: 10_000 })

const tagsOf = Effect.fnUntraced(function*(manager: Sessions.Manager) {
  return [...new Set((yield* manager.view).decisions.map(({ _tag }) => _tag))]
})

const clearing = Effect.gen(function*() {
  const manager = yield* ContextManager.make({ settings, ladder: Ladder.make(Rung.clearToolResults({ keep: 3 })) })
  yield* manager.append(session)
  return manager
})

describe("one state", () => {
  it.effect("by hand and after an overflow the rungs of the policy are climbed, and no other", () =>
    Effect.gen(function*() {
      const byHand = yield* clearing
      assert.isTrue(Option.isSome(yield* byHand.compactNow()))
      assert.deepStrictEqual(yield* tagsOf(byHand), ["Clear"])
      const refused = yield* clearing
      yield* refused.request
      yield* refused.recover({ tokens: 9_000, maximum: 8_000 })
      assert.deepStrictEqual(yield* tagsOf(refused), ["Clear"])

      const none = yield* ContextManager.make({ ...Policy.options(Policy.none), settings })
      yield* none.append(session)
      assert.isTrue(Option.isNone(yield* none.compactNow()))
      yield* none.request
      const failed = yield* Effect.flip(none.recover({ tokens: 9_000, maximum: 8_000 }))
      assert.strictEqual(failed._tag, "ContextCannotFit")
      assert.deepStrictEqual(yield* tagsOf(none), [])
    }))

  it.effect("a restored session has its own figures, and one that was reset has none", () =>
    Effect.gen(function*() {
      const billed = Effect.fnUntraced(function*(total: number) {
        const manager = yield* ContextManager.make({ settings })
        yield* manager.append(user(words("long", 6_000)))
        yield* manager.request
        yield* manager.observe({ inputTokens: { total } })
        return manager
      })
      const one = yield* billed(1_000)
      const other = yield* billed(7_777)
      yield* other.restore(yield* one.export)
      assert.deepStrictEqual(yield* other.figures, yield* one.figures)
      assert.strictEqual((yield* other.figures).pressure.billed, 1_000)
      yield* other.reset
      assert.deepStrictEqual(yield* other.figures, yield* (yield* ContextManager.make({ settings })).figures)
    }))

  it.effect("a pass that fails remembers what it told", () =>
    Effect.gen(function*() {
      const { events, manager } = yield* Sessions.watched({ ...settings, whenInfeasible: "fail" })
      yield* manager.append(prompt(Prompt.makeMessage("system", { content: words("rules", 60_000) }), user("go")))
      for (let at = 0; at < 5; at++) {
        yield* manager.append(Prompt.fromMessages(turn(`c${at}`, 200)))
        assert.strictEqual((yield* Effect.result(manager.request))._tag, "Failure")
      }
      yield* Sessions.settle
      assert.strictEqual(events.filter(({ _tag }) => _tag === "OverheadAboveTarget").length, 1)
    }))

  it.effect("an export has all that the log has: after an abandoned request the notice is given again", () =>
    Effect.gen(function*() {
      const log = yield* OneLog.memory
      const open = ContextManager.open("session", seeded({ settings: { maxTokens: 10_000 } })).pipe(OneLog.provide(log))
      const given = Effect.fnUntraced(function*(manager: Sessions.Manager) {
        const { prompt: sent, stableLength } = yield* manager.request
        return sent.content.slice(stableLength)
      })
      const live = yield* open
      yield* live.append(session)
      for (let at = 0; at < 12; at++) yield* live.append(Prompt.fromMessages(turn(`more-${at}`, 2_000)))
      const first = yield* given(live)
      assert.strictEqual(first.length, 1)
      yield* live.abandon()
      const restored = yield* ContextManager.make(seeded({ settings: { maxTokens: 10_000 } }))
      yield* restored.restore(yield* live.export)
      yield* live.flush
      const reopened = yield* given(yield* open)
      assert.deepStrictEqual(reopened, first)
      assert.deepStrictEqual(yield* given(restored), reopened)
    }))

  it.effect("what JSON cannot hold is made JSON at the door: live and reopened are the same bytes", () =>
    Effect.gen(function*() {
      const values: ReadonlyArray<unknown> = [NaN, Infinity, -0, undefined, new Date(0), { a: [undefined, NaN] }]
      const log = yield* OneLog.memory
      const open = ContextManager.open("session", { settings }).pipe(OneLog.provide(log))
      const live = yield* open
      for (const [at, value] of values.entries()) {
        yield* live.append(prompt(calls(`c${at}`), answers(result(`c${at}`, value))))
      }
      const loop: Record<string, unknown> = {}
      loop["again"] = loop
      const before = yield* live.export
      for (const value of [1n, loop]) {
        const refused = yield* Effect.flip(live.append(prompt(calls("x"), answers(result("x", value)))))
        assert.strictEqual(refused._tag, "InvalidMessages")
      }
      assert.deepStrictEqual(yield* live.export, before)
      yield* live.flush
      const again = yield* open
      assert.strictEqual(JSON.stringify(yield* again.export), JSON.stringify(before))
      const bytes = (manager: Sessions.Manager) =>
        Effect.map(manager.request, ({ prompt }) => prompt.content.map(Trace.written))
      assert.deepStrictEqual(yield* bytes(again), yield* bytes(live))
    }))

  it.effect("a store that is in reach is used", () =>
    Effect.gen(function*() {
      class App extends ContextManager.Service<App>()("one/App", { settings }) {}
      const store = yield* SessionStore.makeMemory
      yield* Effect.flatMap(App, (manager) => Effect.andThen(manager.append("hello"), manager.flush)).pipe(
        Effect.provide(App.layer),
        Effect.provideService(SessionStore.SessionStore, store)
      )
      assert.deepStrictEqual(yield* store.list, ["one/App"])
      assert.isAbove((yield* store.read("one/App")).events.length, 0)
    }))

  it.effect("the events of a request are all that it published, a summary within it too", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying(Sessions.short)
      const { events, manager } = yield* Sessions.watched(
        Sessions.withSummary({ mode: "between" }),
        { summarizer: service }
      )
      const requests = yield* Sessions.playToTrigger(manager)
      const more = yield* Sessions.play(manager, 12, 8)
      const returned = [...requests, ...more].flatMap((request) => request.events)
      yield* Sessions.settle
      assert.isTrue(returned.some(({ _tag }) => _tag === "SummaryAbsorbed"))
      // A summary that begins is told of at once, before the request that waits for it has anything to say.
      assert.sameMembers(returned.map(({ _tag }) => _tag), events.map(({ _tag }) => _tag))
    }))

  it.effect("a report by hand counts every entry that left the view, and what it saved apart", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying(Sessions.short)
      const { manager } = yield* Sessions.watched(Sessions.withSummary(), { summarizer: service })
      yield* Sessions.playToTrigger(manager)
      const before = yield* manager.view
      const report = Option.getOrThrow(yield* manager.compactNow())
      const after = yield* manager.view
      const left = before.items.filter(({ seq }) => after.items.every((item) => item.seq !== seq))
      assert.strictEqual(report.entries, left.length)
      assert.strictEqual(report.shadowed, left.reduce((sum, { price }) => sum + price, 0))
      assert.strictEqual(report.freed, before.price - after.price)
      assert.isAbove(report.shadowed, report.freed)
    }))
})
