import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import type * as Stage from "effect-compaction/Stage"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { session, user } from "../core/conversation.ts"

const settings = { compactThreshold: 0.75, targetUsage: 0.5, protectedRecent: 0.25, protectedToolResults: 1 }

const budget = 5_000

/** A session whose next request would compact, under a policy that asks first; and what it was asked about. */
const asking = Effect.fnUntraced(function*<E, R>(
  answer: Effect.Effect<Policy.Answer, E, R>,
  options: Omit<Policy.Asking, "ask"> = {}
) {
  const asked: Array<Stage.Preview> = []
  const pass = Policy.beforeCommit(Policy.passOf(Ladder.progressive), {
    ...options,
    ask: (preview) => Effect.andThen(Effect.sync(() => asked.push(preview)), answer)
  })
  const manager = yield* ContextManager.make({ pass, settings })
  yield* manager.append(session)
  return { asked, manager }
})

class Closed extends Schema.TaggedError<Closed>("app/Closed")("Closed", {}) {}
class Person extends Context.Service<Person, { readonly answer: Policy.Answer }>()("app/Person") {}

describe("beforeCommit", () => {
  it.effect("is given what the pass would do, and an accepted pass is the one there was", () =>
    Effect.gen(function*() {
      const { asked, manager } = yield* asking(Effect.succeed(Policy.accept))
      yield* manager.requestWith({ budget: 90_000 })
      yield* manager.preview("overflow")
      assert.strictEqual(asked.length, 0)
      const plain = yield* ContextManager.make({ ladder: Ladder.progressive, settings })
      yield* plain.append(session)
      yield* plain.requestWith({ budget: 90_000 })
      const expected = yield* plain.requestWith({ budget })
      const { events, generation, prompt } = yield* manager.requestWith({ budget })
      assert.deepStrictEqual(events, expected.events)
      assert.deepStrictEqual([generation, prompt.content.length], [1, expected.prompt.content.length])
      assert.strictEqual(asked.length, 1)
      const compacted = events.find((event) => event._tag === "Compacted")
      assert.strictEqual(asked[0]?.after, compacted?.after)
      assert.include(asked[0]?.rungs ?? [], "truncate-25")
      yield* manager.append(user("on"))
      yield* manager.requestWith({ budget })
      assert.strictEqual(asked.length, 1)
    }))

  it.effect("a refusal decides nothing, is published and counted, and asks again at the next request", () =>
    Effect.gen(function*() {
      const { asked, manager } = yield* asking(Effect.succeed(Policy.refuse("not now")))
      const before = yield* manager.view
      const { events, generation } = yield* manager.requestWith({ budget })
      const declined = events.filter(({ _tag }) => _tag === "CompactionDeclined")
      assert.deepStrictEqual(declined, [{
        _tag: "CompactionDeclined",
        before: before.price,
        after: asked[0]?.after ?? -1,
        reason: "not now",
        refusals: 1
      }])
      assert.strictEqual(generation, 0)
      assert.deepStrictEqual((yield* manager.view).decisions, [])
      // What is counted outlives the process.
      yield* manager.restore(yield* manager.export)
      yield* manager.append(user("on"))
      const next = yield* manager.requestWith({ budget })
      assert.strictEqual(next.events.find((event) => event._tag === "CompactionDeclined")?.refusals, 2)
      assert.isTrue(Option.isNone(yield* manager.compactNow()))
      assert.strictEqual(
        (yield* Effect.flip(manager.recover({ tokens: 9_000, maximum: 3_000 })))._tag,
        "ContextCannotFit"
      )
      assert.deepStrictEqual(asked.map(({ cause }) => cause), ["pressure", "pressure", "manual", "overflow"])
      yield* manager.append(user("and on"))
      const last = yield* manager.requestWith({ budget })
      assert.strictEqual(last.events.find((event) => event._tag === "CompactionDeclined")?.refusals, 5)
    }))

  it.effect("another aim is what the pass comes down to, whatever its cause", () =>
    Effect.gen(function*() {
      for (const cause of ["pressure", "manual"] as const) {
        const { asked, manager } = yield* asking(Effect.succeed(Policy.aimAt(1_200)))
        if (cause === "manual") {
          yield* manager.requestWith({ budget: 10_000 })
          yield* manager.compactNow()
        } else yield* manager.requestWith({ budget })
        const { price } = yield* manager.view
        assert.isAtMost(price, 1_200, cause)
        assert.deepStrictEqual(asked.map((each) => each.cause), [cause])
      }
      // No aim above the budget, and one that is no number is none.
      const { manager } = yield* asking(Effect.succeed(Policy.aimAt(Number.POSITIVE_INFINITY)))
      assert.strictEqual((yield* manager.requestWith({ budget })).generation, 1)
      const high = yield* asking(Effect.succeed(Policy.aimAt(1_000_000)))
      yield* high.manager.requestWith({ budget })
      assert.isAtMost((yield* high.manager.view).price, budget)
    }))

  it.effect("after the deadline the default counts", () =>
    Effect.gen(function*() {
      for (
        const [options, after, expected] of [
          [{}, "30 seconds", 1],
          [{ deadline: "5 seconds", otherwise: "refuse" }, "5 seconds", 0],
          [{ deadline: Duration.millis(10), otherwise: "accept" }, "10 millis", 1]
        ] as const
      ) {
        const { manager } = yield* asking(Effect.never, options)
        const fiber = yield* Effect.forkChild(manager.requestWith({ budget }), { startImmediately: true })
        yield* TestClock.adjust(Duration.subtract(Duration.fromInputUnsafe(after), Duration.millis(1)))
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        const { events, generation } = yield* Fiber.join(fiber)
        assert.strictEqual(generation, expected)
        const declined = events.find((event) => event._tag === "CompactionDeclined")
        assert.strictEqual(declined?.reason, expected === 0 ? "no answer within 5s" : undefined)
      }
    }))

  it.effect("its errors and services are the policy's", () =>
    Effect.gen(function*() {
      const failing = yield* asking(Effect.fail(new Closed()))
      const error = yield* Effect.flip(failing.manager.requestWith({ budget }))
      assert.strictEqual(error._tag, "Closed")
      assert.strictEqual((yield* failing.manager.undecided()).generation, 0)
      const person = Effect.map(Person, ({ answer }) => answer)
      const { manager } = yield* asking(person).pipe(
        Effect.provideService(Person, { answer: Policy.refuse("asleep") })
      )
      assert.strictEqual((yield* manager.requestWith({ budget })).generation, 0)
    }))
})
