import { assert, describe, it } from "@effect/vitest"
import * as Rung from "effect-compaction/Rung"
import * as Stage from "effect-compaction/Stage"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { pipe } from "effect/Function"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { seed } from "../seed.ts"
import { changesOf, session } from "./conversation.ts"

class Refused extends Schema.TaggedError<Refused>("test/Refused")("Refused", { by: Schema.String }) {}
class Broken extends Schema.TaggedError<Broken>("test/Broken")("Broken", {}) {}

const truncate = Rung.stage(Rung.truncateToolResults({ fraction: 0.25 }))
const same: Stage.Stage = (pass) => Effect.succeed(pass)
const refuse = (by: string): Stage.Stage<Refused> => () => Effect.fail(new Refused({ by }))
const broken: Stage.Stage<Broken> = () => Effect.fail(new Broken())

/** A stage that notes the views it is given. */
const noting = (seen: Array<number>): Stage.Stage => (pass) =>
  Effect.sync(() => {
    seen.push(pass.view.price)
    return pass
  })

const start = Stage.fromPrompt(session, { settings: seed(), budget: 1_000 })

describe("Stage", () => {
  it.effect("fromPrompt: nothing decided, priced, counted as an estimate", () =>
    Effect.gen(function*() {
      const pass = yield* start
      assert.isTrue(pass.before === pass.view)
      assert.strictEqual(pass.view.length, 32)
      assert.deepStrictEqual(pass.view.decisions, [])
      assert.deepInclude({ ...pass.count }, { tokens: pass.view.price, kind: "estimated" })
      assert.deepStrictEqual(pass.memory, Stage.noMemory)
      assert.strictEqual(pass.budget.limit, 200)
      const error = yield* Effect.flip(Stage.fromPrompt(session, { settings: seed({ targetUsage: 2 }) }))
      assert.strictEqual(error._tag, "SchemaError")
    }))

  it.effect("pressure is what the count says in prices, less what was freed, and never less than the price", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const counted = (tokens: number, scale: number, given: Stage.Pass = pass) =>
        Stage.pressureOf({ ...given, scale, count: { ...given.count, tokens } })
      assert.strictEqual(counted(3 * pass.view.price, 1), 3 * pass.view.price)
      assert.strictEqual(counted(3 * pass.view.price, 2), 1.5 * pass.view.price)
      assert.strictEqual(counted(pass.view.price, 2), pass.view.price)
      const after = yield* truncate(pass)
      const freed = pass.view.price - after.view.price
      assert.strictEqual(counted(4 * pass.view.price, 2, after), 2 * pass.view.price - freed)
    }))

  it.effect("pipeline runs stages in order, each on the pass of the one before", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const seen: Array<number> = []
      const after = yield* Stage.pipeline(noting(seen), truncate, noting(seen))(pass)
      assert.deepStrictEqual(changesOf(after).truncated, [4, 6, 8])
      assert.deepStrictEqual(seen, [pass.view.price, after.view.price])
      assert.isBelow(after.view.price, pass.view.price)
      assert.isTrue(after.before === pass.before)
    }))

  it.effect("pipeline stops at the first failure; an empty one is the identity", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const seen: Array<number> = []
      const error = yield* Effect.flip(Stage.pipeline(truncate, refuse("a"), noting(seen))(pass))
      assert.strictEqual(error.by, "a")
      assert.deepStrictEqual(seen, [])
      assert.isTrue((yield* Stage.pipeline()(pass)) === pass)
    }))

  it.effect("what changes nothing keeps the view, the same object", () =>
    Effect.gen(function*() {
      const roomy = yield* Stage.fromPrompt(session, { settings: seed(), budget: 100_000 })
      const tight = yield* start
      const stages: ReadonlyArray<readonly [Stage.Stage, Stage.Pass]> = [
        [truncate, roomy],
        [Rung.stage(Rung.remove({ relax: 1 })), roomy],
        [Rung.stage(Rung.lastResort({ relax: 1 })), roomy],
        [Rung.stage(Rung.propose("none", () => [])), tight],
        [Rung.stage(Rung.make("none", same)), tight],
        [Stage.untilTarget(truncate), roomy],
        [Stage.when(truncate, () => false), tight],
        [Stage.skipOn("Refused")(refuse("a")), tight],
        [Stage.orElse(refuse("a"), same), tight]
      ]
      for (const [stage, pass] of stages) assert.isTrue((yield* stage(pass)).view === pass.view)
    }))

  it.effect("when: data first and data last", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const isLong = (_: Stage.Pass) => _.view.length > 10
      assert.deepStrictEqual(changesOf(yield* Stage.when(truncate, isLong)(pass)).truncated, [4, 6, 8])
      assert.deepStrictEqual(changesOf(yield* pipe(truncate, Stage.when(isLong))(pass)).truncated, [4, 6, 8])
      assert.isTrue((yield* Stage.when(truncate, (_) => _.view.length > 32)(pass)) === pass)
    }))

  it.effect("guard sees before and after, takes back, and is not asked when nothing changed", () =>
    Effect.gen(function*() {
      const pass = yield* start
      let asked = 0
      const takeBack: Stage.Check = (before, after) =>
        Effect.sync(() => {
          asked++
          assert.isTrue(before === pass)
          assert.isBelow(after.view.price, before.view.price)
          return before
        })
      assert.isTrue((yield* Stage.guard(truncate, takeBack)(pass)) === pass)
      assert.isTrue((yield* pipe(truncate, Stage.guard(takeBack))(pass)) === pass)
      assert.strictEqual(asked, 2)
      assert.isTrue((yield* Stage.guard(same, takeBack)(pass)) === pass)
      assert.strictEqual(asked, 2)
      const fail: Stage.Check<Refused> = () => Effect.fail(new Refused({ by: "guard" }))
      assert.strictEqual((yield* Effect.flip(Stage.guard(truncate, fail)(pass))).by, "guard")
    }))

  it.effect("skipOn leaves the pass as it was on these tags, and on no other", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const half = Stage.pipeline(truncate, refuse("a"))
      assert.isTrue((yield* Stage.skipOn("Refused")(half)(pass)) === pass)
      assert.isTrue((yield* Stage.skipOn("Broken", "Refused")(half)(pass)) === pass)
      const error = yield* Effect.flip(Stage.skipOn("Refused")(Stage.pipeline(truncate, broken))(pass))
      assert.strictEqual(error._tag, "Broken")
      const text: Stage.Stage<string> = () => Effect.fail("Refused")
      assert.strictEqual(yield* Effect.flip(Stage.skipOn("Refused")(text)(pass)), "Refused", "a text has no tag")
    }))

  it.effect("orElse runs the other stage on the pass as it was", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const seen: Array<number> = []
      const failing = Stage.pipeline(Rung.stage(Rung.remove({ relax: 1 })), refuse("a"))
      const after = yield* pipe(failing, Stage.orElse(Stage.pipeline(noting(seen), truncate)))(pass)
      assert.deepStrictEqual(seen, [pass.view.price])
      assert.deepStrictEqual(changesOf(after), { removed: [], truncated: [4, 6, 8], stubbed: [] })
      assert.isTrue((yield* Stage.orElse(same, broken)(pass)) === pass)
      assert.strictEqual((yield* Effect.flip(Stage.orElse(refuse("a"), refuse("b"))(pass))).by, "b")
    }))

  it.effect("timeoutOrElse interrupts a stage that takes too long", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const begun = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const never: Stage.Stage = () =>
        Deferred.succeed(begun, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        )
      const within = Stage.timeoutOrElse({ duration: "30 seconds", orElse: truncate })
      const fiber = yield* Effect.forkChild(within(never)(pass))
      yield* Deferred.await(begun)
      yield* TestClock.adjust("29 seconds")
      assert.isFalse(yield* Deferred.isDone(interrupted))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(changesOf(yield* Fiber.join(fiber)).truncated, [4, 6, 8])
      assert.isTrue(yield* Deferred.isDone(interrupted))
      assert.isTrue((yield* within(same)(pass)) === pass)
      assert.strictEqual((yield* Effect.flip(within(refuse("a"))(pass))).by, "a", "a failure is no timeout")
    }))

  it.effect("untilTarget runs a stage only above the target", () =>
    Effect.gen(function*() {
      const pass = yield* start
      const seen: Array<number> = []
      const stage = Stage.untilTarget(noting(seen))
      const at = (target: number): Stage.Pass => ({ ...pass, sizes: { ...pass.sizes, target } })
      yield* stage(at(pass.view.price))
      assert.strictEqual(seen.length, 0)
      yield* stage(at(pass.view.price - 1))
      assert.strictEqual(seen.length, 1)
    }))
})
