import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import type * as Settings from "effect-compaction/Settings"
import * as Wire from "effect-compaction/Wire"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { seeded } from "../seed.ts"
import {
  answers,
  assistant,
  bytesOf,
  calls,
  prompt,
  result,
  session,
  system,
  turn,
  user,
  words
} from "./conversation.ts"

const settings: Settings.Input = { protectedToolResults: 1, notice: false }
/** The session is about 6,600 tokens: this forces a pass, the other is below the trigger. */
const tight = { budget: 4_000 }
const roomy = { budget: 100_000 }

const make = (extra: Settings.Input = {}) => ContextManager.make(seeded({ settings: { ...settings, ...extra } }))

/** What a session is, as far as anyone can see, but for what the last request said. */
const stateOf = <E>(manager: ContextManager.ContextManager<E>) =>
  Effect.gen(function*() {
    const { entries, counts, generation, level, overrides, streak } = yield* manager.status
    const saved = yield* manager.export
    return JSON.stringify({ saved, status: { entries, counts, generation, level, overrides, streak } })
  })

/** The events of `program`, in order. */
const eventsOf = <A, E, E2>(manager: ContextManager.ContextManager<E>, program: Effect.Effect<A, E2>) =>
  Effect.gen(function*() {
    const events: Array<CompactionEvent.CompactionEvent> = []
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(manager.events, (event) => Effect.sync(() => events.push(event))),
      { startImmediately: true }
    )
    yield* Effect.exit(program)
    // One turn of the scheduler, so that the subscriber takes what was published.
    yield* Effect.yieldNow
    yield* Fiber.interrupt(fiber)
    return events
  })

const only = <Tag extends CompactionEvent.CompactionEvent["_tag"]>(
  events: ReadonlyArray<CompactionEvent.CompactionEvent>,
  tag: Tag
) =>
  events.filter((event): event is Extract<CompactionEvent.CompactionEvent, { readonly _tag: Tag }> =>
    event._tag === tag
  )

describe("append", () => {
  it.effect("takes a text, raw messages and a prompt", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      yield* manager.append("a text")
      yield* manager.append([
        {
          role: "assistant",
          content: [{ type: "tool-call", id: "a", name: "read", params: {}, providerExecuted: false }]
        },
        { role: "tool", content: [{ type: "tool-result", id: "a", name: "read", isFailure: false, result: "text" }] }
      ])
      const own = assistant("an answer")
      yield* manager.append(prompt(own))
      yield* manager.append([])
      const { content } = yield* manager.history
      assert.deepStrictEqual(content.map((message) => message.role), ["user", "assistant", "tool", "assistant"])
      assert.strictEqual(content[3], own)
      assert.strictEqual((yield* manager.status).entries, 4)
    }))

  const bad: ReadonlyArray<readonly [name: string, messages: ReadonlyArray<unknown>, says: string]> = [
    ["a role that does not exist", [{ role: "robot", content: "x" }], "role"],
    ["a number for a text", [{ role: "user", content: 7 }], "content"],
    ["a part that does not exist", [{ role: "user", content: [{ type: "smell", text: "x" }] }], "content"],
    ["a call without a name", [{ role: "assistant", content: [{ type: "tool-call", id: "a", params: {} }] }], "name"],
    ["no message at all", [null], "at [1]"]
  ]
  for (const [name, messages, says] of bad) {
    it.effect(`refuses ${name}, and then adds nothing`, () =>
      Effect.gen(function*() {
        const manager = yield* make()
        yield* manager.append("before")
        const input = [{ role: "user", content: "fine" }, ...messages]
        // What is tested is what the type does not allow.
        const error = yield* Effect.flip(manager.append(input as unknown as Prompt.RawInput))
        assert.strictEqual(error._tag, "InvalidMessages")
        assert.include(error.message, says)
        assert.strictEqual((yield* manager.history).content.length, 1)
      }))
  }
})

describe("request", () => {
  it.effect("below the trigger: the whole history, message by message", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      yield* manager.append(session)
      const { count, generation, prefixChanged, prompt, stableLength } = yield* manager.requestWith(roomy)
      assert.strictEqual(prompt.content.length, session.content.length)
      assert.isTrue(prompt.content.every((message, at) => message === session.content[at]))
      assert.deepStrictEqual([count.kind, generation, prefixChanged, stableLength], ["estimated", 0, null, 32])
      assert.strictEqual(count.tokens, (yield* manager.view).price)
      assert.deepStrictEqual((yield* manager.view).decisions, [])
    }))

  it.effect("at the trigger: a boundary, sticky from then on; the history stays", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      yield* manager.append(session)
      const first = yield* manager.requestWith(tight)
      assert.isAtMost(first.count.tokens, 2_000)
      assert.strictEqual(first.generation, 1)
      assert.isNull(first.prefixChanged, "nothing was sent before")
      yield* manager.append(prompt(user("next")))
      const second = yield* manager.requestWith(roomy)
      assert.strictEqual(second.generation, 1)
      assert.isNull(second.prefixChanged)
      assert.strictEqual(
        bytesOf(Prompt.fromMessages(second.prompt.content.slice(0, first.stableLength))),
        bytesOf(first.prompt)
      )
      assert.strictEqual(second.prompt.content.length, first.prompt.content.length + 1)
      assert.deepStrictEqual((yield* manager.history).content.slice(0, 32), [...session.content])
    }))

  it.effect("the same request again returns the same view and decides nothing", () =>
    Effect.gen(function*() {
      const manager = yield* make({ clearAtLeast: 50_000 })
      yield* manager.append(session)
      const first = yield* manager.requestWith(tight)
      assert.strictEqual(only(first.events, "CompactionSkipped").length, 1)
      const again = yield* manager.requestWith(tight)
      assert.isTrue(again.prompt === first.prompt)
      assert.deepStrictEqual(again.events, [])
      assert.strictEqual((yield* manager.status).streak, 1)
      yield* manager.requestWith({ budget: 4_001 })
      assert.strictEqual((yield* manager.status).streak, 2, "another budget is another request")
      yield* manager.append("more")
      const error = yield* Effect.flip(manager.requestWith(tight))
      assert.strictEqual(error._tag, "ClearFloorUnsatisfied")
      const failed = yield* Effect.flip(manager.requestWith(tight))
      assert.strictEqual(failed._tag, "ClearFloorUnsatisfied", "after a failure it is never the same request")
      assert.strictEqual((yield* manager.status).streak, 4)
    }))

  it.effect("request takes the budget from the settings, requestWith names another one", () =>
    Effect.gen(function*() {
      const manager = yield* make({ maxTokens: 4_000 })
      yield* manager.append(session)
      yield* manager.request
      assert.deepInclude({ ...(yield* manager.status).budget }, { total: 4_000, source: "maxTokens" })
      yield* manager.requestWith({ budget: 3_000 })
      assert.deepInclude({ ...(yield* manager.status).budget }, { total: 3_000, source: "given" })
    }))

  it.effect("an empty conversation gives an empty prompt", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      assert.strictEqual((yield* manager.request).prompt.content.length, 0)
    }))

  it.effect("an infeasible request is sent, or fails and commits nothing", () =>
    Effect.gen(function*() {
      const held = prompt(user(words("x", 8_000)))
      const sending = yield* make()
      yield* sending.append(held)
      const sent = yield* sending.requestWith({ budget: 1_000 })
      assert.strictEqual(only(sent.events, "Infeasible").length, 1)
      assert.isTrue(sent.prompt.content[0] === held.content[0])
      const failing = yield* make({ whenInfeasible: "fail" })
      yield* failing.append(held)
      const error = yield* Effect.flip(failing.requestWith({ budget: 1_000 }))
      assert.strictEqual(error._tag, "BudgetInfeasible")
      assert.deepStrictEqual((yield* failing.view).decisions, [])
      yield* failing.requestWith(roomy)
    }))

  it.effect("a budget that is no whole number fails as any other, with the typed error", () =>
    Effect.gen(function*() {
      const failing = yield* make({ whenInfeasible: "fail" })
      yield* failing.append(prompt(user(words("x", 8_000))))
      const error = yield* Effect.flip(failing.requestWith({ budget: 1_000.5 }))
      assert.strictEqual(error._tag, "BudgetInfeasible")
      const floored = yield* make({ clearAtLeast: 50_000, maxConsecutiveSkips: 1 })
      yield* floored.append(session)
      assert.strictEqual((yield* Effect.flip(floored.requestWith({ budget: 4_000.5 })))._tag, "ClearFloorUnsatisfied")
    }))

  it.effect("a call that is still running is answered for the wire, and that answer is counted", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      yield* manager.append(prompt(user("go"), calls("a")))
      const waiting = yield* manager.request
      assert.strictEqual(waiting.prompt.content.length, 3)
      assert.deepStrictEqual(Wire.check(waiting.prompt, Wire.all), [])
      assert.isAbove(waiting.count.tokens, (yield* manager.view).price)
      yield* manager.append(prompt(answers(result("a", "the answer"))))
      const answered = yield* manager.request
      assert.strictEqual(answered.prefixChanged, "repair")
      assert.include(bytesOf(answered.prompt), "the answer")
    }))
})

describe("status and reset", () => {
  it.effect("status tells where a session stands; reset forgets all of it", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      const empty = yield* manager.status
      assert.deepInclude({ ...empty }, {
        entries: 0,
        level: 0,
        generation: 0,
        reading: null,
        budget: null,
        lastBoundary: null
      })
      yield* manager.append(session)
      const { count } = yield* manager.requestWith(tight)
      const status = yield* manager.status
      assert.strictEqual(status.entries, 32)
      assert.strictEqual(status.generation, 1)
      assert.strictEqual(status.reading?.tokens, status.lastBoundary?.before)
      assert.strictEqual(status.lastBoundary?.after, count.tokens)
      assert.strictEqual(status.level, status.lastBoundary?.level)
      assert.isAbove(status.counts.truncated + status.counts.removed, 0)
      yield* manager.reset
      const { budget: _, ...after } = yield* manager.status
      const { budget: __, ...before } = empty
      assert.deepStrictEqual({ ...after }, { ...before })
      assert.strictEqual((yield* manager.history).content.length, 0)
      yield* manager.append("anew")
      const anew = yield* manager.request
      assert.isNull(anew.prefixChanged)
      assert.strictEqual(anew.prompt.content.length, 1)
    }))
})

describe("events", () => {
  it.effect("Compacted and PrefixChanged, of a boundary", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      yield* manager.append(session)
      const before = yield* manager.requestWith(roomy)
      let after = before
      const events = yield* eventsOf(
        manager,
        Effect.map(manager.requestWith(tight), (request) => {
          after = request
        })
      )
      const [compacted] = only(events, "Compacted")
      const counts = (yield* manager.status).counts
      assert.deepInclude({ ...compacted }, {
        before: before.count.tokens,
        after: after.count.tokens,
        freed: before.count.tokens - after.count.tokens,
        messagesBefore: 32,
        messagesAfter: (yield* manager.view).items.length,
        removed: counts.removed,
        truncated: counts.truncated,
        stubbed: counts.stubbed,
        count: before.count.tokens,
        kind: "estimated",
        budget: 4_000,
        target: 2_000,
        generation: 1,
        protectedRecent: 0.3,
        protectedToolResults: 1
      })
      assert.deepInclude({ ...compacted?.session }, { removed: counts.removed, truncated: counts.truncated })
      // Entries 3 to 20 left: 21 stands where 3 stood.
      assert.deepStrictEqual(only(events, "PrefixChanged"), [{ _tag: "PrefixChanged", cause: "boundary", seq: 21 }])
      assert.deepStrictEqual(after.events, events, "the request tells what it published")
      assert.strictEqual(after.prefixChanged, "boundary")
    }))

  it.effect("CompactionSkipped and Infeasible, each with its numbers", () =>
    Effect.gen(function*() {
      const manager = yield* make({ clearAtLeast: 50_000 })
      yield* manager.append(session)
      const skipped = only(yield* eventsOf(manager, manager.requestWith(tight)), "CompactionSkipped")
      assert.strictEqual(skipped.length, 1)
      assert.deepInclude({ ...skipped[0] }, { required: 50_000, streak: 1, budget: 4_000, protectedToolResults: 1 })
      assert.strictEqual(skipped[0]?.baseline, (yield* manager.view).price)
      yield* manager.append(prompt(user(words("huge", 40_000))))
      const infeasible = only(yield* eventsOf(manager, manager.requestWith(tight)), "Infeasible")
      assert.strictEqual(infeasible.length, 1)
      assert.strictEqual(infeasible[0]?.holders[0]?.seq, 32)
      assert.strictEqual(infeasible[0]?.holders[0]?.tokens, 4 + 4 + 10_000)
      assert.strictEqual(infeasible[0]?.budget, 4_000)
      yield* manager.append("and more")
      const again = only(yield* eventsOf(manager, manager.requestWith(tight)), "Infeasible")
      assert.deepStrictEqual(again, [], "the same holders are published once")
    }))

  it.effect("PrefixChanged by a late result, and by a system entry in mid-session", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      yield* manager.append(prompt(user("go"), calls("a", "b"), answers(result("b", "two")), user("never mind")))
      yield* manager.request
      yield* manager.append(prompt(assistant("fine"), answers(result("a", "late"))))
      const repaired = yield* manager.request
      assert.strictEqual(repaired.prefixChanged, "repair")
      assert.deepStrictEqual(only(repaired.events, "PrefixChanged").map((_) => _.cause), ["repair"])
      yield* manager.append(prompt(system("a new rule")))
      const instructed = yield* manager.request
      assert.deepStrictEqual(only(instructed.events, "PrefixChanged").map((_) => _.cause), ["system"])
      yield* manager.append("on")
      assert.isNull((yield* manager.request).prefixChanged)
    }))

  it.effect("TranscriptDiverged, of a history that was edited", () =>
    Effect.gen(function*() {
      const manager = yield* make()
      yield* manager.sync(session)
      const edited = Prompt.fromMessages(session.content.map((message, at) => at === 27 ? user("edited") : message))
      const events = yield* eventsOf(manager, manager.sync(edited))
      assert.deepStrictEqual(only(events, "TranscriptDiverged"), [{ _tag: "TranscriptDiverged", seq: 27, dropped: 5 }])
    }))

  it.effect("the stream ends with the scope of the manager", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const manager = yield* Scope.provide(make(), scope)
      const fiber = yield* Effect.forkChild(Stream.runCollect(manager.events), { startImmediately: true })
      yield* manager.append(session)
      yield* manager.requestWith(tight)
      yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      const exit = yield* Fiber.await(fiber)
      assert.isFalse(fiber.pollUnsafe() === undefined)
      if (Exit.isSuccess(exit)) assert.isTrue(Array.from(exit.value).some((event) => event._tag === "Compacted"))
      const late = yield* Effect.exit(Stream.runCollect(manager.events))
      assert.isTrue(Exit.isFailure(late) || Array.from(late.value).length === 0)
    }))
})

/** A manager whose pass waits in the middle of its ladder, until it is let go. */
const waiting = Effect.gen(function*() {
  const reached = yield* Deferred.make<void>()
  const go = yield* Deferred.make<void>()
  const wait = Rung.make(
    "wait",
    (pass) => Deferred.succeed(reached, undefined).pipe(Effect.andThen(Deferred.await(go)), Effect.as(pass))
  )
  const pass = Policy.passOf(Ladder.progressive.pipe(Ladder.insertBefore("remove", wait)))
  const manager = yield* ContextManager.make(seeded({ settings, pass }))
  return { manager, reached, go }
})

describe("one view is built at a time", () => {
  it.effect("what comes during a request waits for its end", () =>
    Effect.gen(function*() {
      const { go, manager, reached } = yield* waiting
      yield* manager.append(session)
      const order: Array<string> = []
      const note = (name: string) => Effect.sync(() => order.push(name))
      const first = yield* Effect.forkChild(Effect.tap(manager.requestWith(tight), note("first")))
      yield* Deferred.await(reached)
      const fork = { startImmediately: true } as const
      const second = yield* Effect.forkChild(Effect.tap(manager.requestWith(tight), note("second")), fork)
      const append = yield* Effect.forkChild(Effect.tap(manager.append("more"), note("append")), fork)
      const history = yield* Effect.forkChild(Effect.tap(manager.history, note("history")), fork)
      yield* Effect.yieldNow
      assert.deepStrictEqual(order, [])
      yield* Deferred.succeed(go, undefined)
      const one = yield* Fiber.join(first)
      const two = yield* Fiber.join(second)
      yield* Fiber.join(append)
      assert.strictEqual((yield* Fiber.join(history)).content.length, 33)
      assert.deepStrictEqual(order, ["first", "second", "append", "history"])
      assert.isTrue(two.prompt === one.prompt, "the second was the same request")
      assert.strictEqual((yield* manager.status).generation, 1)
    }))

  it.effect("an interrupted request leaves the session as it was", () =>
    Effect.gen(function*() {
      const { go, manager, reached } = yield* waiting
      yield* manager.append(session)
      yield* manager.requestWith(roomy)
      const before = yield* stateOf(manager)
      const fiber = yield* Effect.forkChild(manager.requestWith(tight))
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* stateOf(manager), before)
      yield* Deferred.succeed(go, undefined)
      const { generation, prefixChanged } = yield* manager.requestWith(tight)
      assert.deepStrictEqual([generation, prefixChanged], [1, "boundary"])
      const plain = yield* make()
      yield* plain.append(session)
      yield* plain.requestWith(tight)
      assert.deepStrictEqual((yield* manager.view).decisions, (yield* plain.view).decisions)
    }))

  it.effect("a rung that fails commits nothing, and the session goes on", () =>
    Effect.gen(function*() {
      let fails = true
      const failing = Rung.make("failing", (pass) => fails ? Effect.fail("no" as const) : Effect.succeed(pass))
      const pass = Policy.passOf(Ladder.progressive.pipe(Ladder.insertBefore("remove", failing)))
      const manager = yield* ContextManager.make(seeded({ settings, pass }))
      yield* manager.append(session)
      const before = yield* stateOf(manager)
      assert.strictEqual(yield* Effect.flip(manager.requestWith(tight)), "no")
      assert.strictEqual(yield* stateOf(manager), before)
      fails = false
      assert.strictEqual((yield* manager.requestWith(tight)).generation, 1)
    }))
})

class AppContext extends ContextManager.Service<AppContext>()(
  "test/AppContext",
  seeded({
    settings: { ...settings, maxTokens: 4_000 }
  })
) {}

describe("Service", () => {
  it.effect("is a class with a layer, one conversation for each layer that is built", () =>
    Effect.gen(function*() {
      const use = Effect.gen(function*() {
        const context = yield* AppContext
        yield* context.append(session)
        return (yield* context.request).generation
      })
      assert.strictEqual(yield* use.pipe(Effect.provide(AppContext.layer)), 1)
      assert.strictEqual(yield* use.pipe(Effect.provide(AppContext.layer)), 1, "nothing is left of the first")
      assert.strictEqual(AppContext.key, "test/AppContext")
    }))

  it.effect("its scope is that of the layer", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const services = yield* Layer.buildWithScope(AppContext.layer, scope)
      const context = yield* AppContext.pipe(Effect.provideContext(services))
      const fiber = yield* Effect.forkChild(Stream.runDrain(context.events), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isUndefined(fiber.pollUnsafe())
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.await(fiber)
    }))

  it.effect("bad settings fail the layer", () =>
    Effect.gen(function*() {
      class Bad extends ContextManager.Service<Bad>()("test/Bad", seeded({ settings: { window: -1 } })) {}
      const error = yield* Effect.flip(Effect.provide(Bad.use((_) => _.request), Bad.layer))
      assert.strictEqual(error._tag, "PolicyError")
    }))
})

describe("a system entry", () => {
  it.effect("is never left out, whatever the ladder does", () =>
    Effect.gen(function*() {
      const manager = yield* make({ protectedToolResults: 0, protectedRecent: 0 })
      yield* manager.append(prompt(system(words("rules", 4_000)), user("go"), ...turn("a", 8_000), user("end")))
      const { prompt: sent } = yield* manager.requestWith({ budget: 1_500 })
      assert.strictEqual(sent.content[0]?.role, "system")
    }))
})
