/** What a bill, a refusal and a change of surroundings do to a session: its meter, its figures, and what is kept of them. */
import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import type * as Settings from "effect-compaction/Settings"
import * as Effect from "effect/Effect"
import { prompt, session, turn, user } from "../core/conversation.ts"
import { seeded } from "../seed.ts"

const settings: Settings.Input = { maxTokens: 20_000, notice: false, meter: "hybrid", provenanceGate: false }

const started = Effect.fnUntraced(function*(more: Settings.Input = {}) {
  const manager = yield* ContextManager.make(seeded({ settings: { ...settings, ...more } }))
  yield* manager.append(prompt(user("go"), ...turn("a", 2_000)))
  return manager
})

const counted = ({ events }: ContextManager.Request): typeof CompactionEvent.TokenCounted.Type => {
  const event = events.find((each) => each._tag === "TokenCounted")
  assert.isDefined(event)
  return event
}

describe("a reading", () => {
  const others: ReadonlyArray<readonly [string, ContextManager.Call, ReturnType<typeof prompt>]> = [
    ["another toolkit", { route: "a", overhead: 600 }, prompt(user("and?"))],
    ["another route", { route: "b", overhead: 500 }, prompt(user("and?"))]
  ]
  for (const [name, call, more] of others) {
    it.effect(`lapses with ${name}, and holds without`, () =>
      Effect.gen(function*() {
        for (const [next, kind] of [[{ route: "a", overhead: 500 }, "usage"], [call, "estimated"]] as const) {
          const manager = yield* started()
          const first = yield* manager.requestWith({ route: "a", overhead: 500 })
          yield* manager.observe({ inputTokens: { total: first.count.tokens + 100 } }, first)
          yield* manager.append(more)
          const event = counted(yield* manager.requestWith(next))
          assert.deepInclude({ ...event }, { kind, anchorLapsed: kind === "estimated", anchorRejected: false })
        }
      }))
  }

  it.effect("of a history that was rewound is no anchor any more", () =>
    Effect.gen(function*() {
      const manager = yield* started()
      yield* manager.append(prompt(user("the other way")))
      const first = yield* manager.request
      yield* manager.observe({ inputTokens: { total: first.count.tokens + 5_000 } }, first)
      yield* manager.rewind(3)
      const event = counted(yield* manager.request)
      assert.deepInclude({ ...event }, { kind: "estimated", anchor: null, used: event.estimated })
    }))

  it.effect("of a request beside the conversation is billed, and says nothing about its window", () =>
    Effect.gen(function*() {
      const manager = yield* started()
      const old = yield* manager.request
      yield* manager.append(prompt(user("and?")))
      const last = yield* manager.request
      yield* manager.observe({ inputTokens: { total: last.count.tokens + 10 } }, last)
      const before = yield* manager.figures
      yield* manager.observe({ inputTokens: { total: 90 }, outputTokens: { total: 7 } }, old)
      const after = yield* manager.figures
      assert.strictEqual(after.usage.input, before.usage.input + 90)
      assert.strictEqual(after.usage.output, before.usage.output + 7)
      assert.strictEqual(after.usage.answers, before.usage.answers + 1)
      assert.deepStrictEqual(after.pressure, before.pressure)
      yield* manager.append(prompt(user("so")))
      assert.strictEqual(counted(yield* manager.request).anchor, last.count.tokens + 10)
    }))

  it.effect("that cannot be is in no figure, and a durable session goes on and is opened again", () =>
    Effect.gen(function*() {
      const store = yield* SessionStore.makeMemory
      const open = ContextManager.open("one", seeded({ settings })).pipe(
        Effect.provideService(SessionStore.SessionStore, store)
      )
      const figures = yield* Effect.scoped(Effect.gen(function*() {
        const manager = yield* open
        yield* manager.append(prompt(user("go"), ...turn("a", 2_000)))
        const first = yield* manager.request
        yield* manager.observe({ inputTokens: { total: first.count.tokens + 100 }, outputTokens: { total: 5 } }, first)
        const before = yield* manager.figures
        for (const total of [0, 1, -1, NaN, Infinity, 0.5, 873_000, 1e15, 1e300]) {
          yield* manager.append(prompt(user(`again after ${total}`)))
          const request = yield* manager.request
          yield* manager.observe({ inputTokens: { total }, outputTokens: { total: 1e300 } }, request)
          assert.deepStrictEqual((yield* manager.figures).usage, before.usage, String(total))
          assert.strictEqual((yield* manager.figures).pressure.billed, before.pressure.billed, String(total))
        }
        yield* manager.append(prompt(user("and now")))
        assert.deepInclude({ ...counted(yield* manager.request) }, { ignored: 9, stale: true, kind: "usage" })
        yield* manager.recover({ tokens: 1e300, maximum: 1e300 }).pipe(Effect.ignore)
        yield* manager.recover({ tokens: 1e15, maximum: 12 }).pipe(Effect.ignore)
        yield* manager.flush
        return yield* manager.figures
      }))
      const again = yield* Effect.scoped(Effect.flatMap(open, (manager) => manager.figures))
      assert.deepStrictEqual(again.usage, figures.usage)
    }))
})

describe("a budget", () => {
  it.effect("is published when only its source is another", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* manager.append(prompt(user("go")))
      const sources: Array<string> = []
      for (const budget of [undefined, 200_000, undefined, 200_000, 200_000]) {
        yield* manager.append(prompt(user("and?")))
        const { events } = yield* manager.requestWith(budget === undefined ? {} : { budget })
        for (const event of events) if (event._tag === "BudgetResolved") sources.push(event.source)
      }
      assert.deepStrictEqual(sources, ["fallback", "given", "fallback", "given"])
    }))
})

describe("a refusal", () => {
  it.effect("fails where the smallest view is known to be too large, and sends it where it is not", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* manager.append(session)
      const request = yield* manager.request
      const error = yield* Effect.flip(manager.recover({ tokens: request.count.tokens, maximum: 300 }))
      assert.strictEqual(error._tag, "ContextCannotFit")
      if (error._tag !== "ContextCannotFit") return
      assert.strictEqual(error.maximum, 300)
      assert.isAbove(error.tokens, 300)
      const other = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* other.append(session)
      const first = yield* other.request
      const smaller = yield* other.recover({ tokens: first.count.tokens, maximum: 4_000 })
      assert.isAtMost(smaller.count.tokens, 4_000)
      assert.strictEqual((yield* other.status).budget?.source, "provider")
    }))
})
