import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Kind from "effect-compaction/Kind"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Stage from "effect-compaction/Stage"
import * as TokenMeter from "effect-compaction/TokenMeter"
import * as AiError from "effect/ai/AiError"
import * as DecisionModel from "effect/ai/DecisionModel"
import type * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { prompt, turn, user } from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"

type Answer = number | "refused" | "missing"

/** What each call asked about, by seq. */
interface Asked {
  readonly calls: Array<ReadonlyArray<number>>
  readonly states: Array<string>
}

const failure = AiError.make({
  module: "DecisionModel",
  method: "decideSettled",
  reason: new AiError.InvalidOutputError({ description: "out of words" })
})

/** A model that answers by script; `before` runs at the start of each call, from 1. */
const scripted = (
  answer: (seq: number) => Answer,
  before: (call: number) => Effect.Effect<void, AiError.AiError> = () => Effect.void
) => {
  const asked: Asked = { calls: [], states: [] }
  const model = DecisionModel.make({
    decide: ({ decisions, state }) =>
      Effect.gen(function*() {
        const seqs = Object.keys(decisions).map((id) => Number(id.slice(1)))
        asked.calls.push(seqs)
        asked.states.push(JSON.stringify(state))
        yield* before(asked.calls.length)
        const answers: Record<string, DecisionModel.ProviderAnswer> = {}
        for (const seq of seqs) {
          const given = answer(seq)
          if (given === "refused") answers[`e${seq}`] = { _tag: "Refusal" }
          else if (given !== "missing") answers[`e${seq}`] = { _tag: "Probability", probability: given }
        }
        return { answers, usage: { inputTokens: 10, outputTokens: 1 } }
      })
  })
  return { asked, provide: Effect.provideServiceEffect(DecisionModel.DecisionModel, model) }
}

/** A person, then twenty turns (calls odd, results even) of about 510 tokens each, then a person. */
const history = prompt(user("begin"), ...Arr.range(0, 19).flatMap((n) => turn(`call-${n}`, 2_000)), user("finish it"))

const passOf = (options: { readonly target: number; readonly isPreview?: boolean }) =>
  Effect.map(
    Stage.fromPrompt(history, { settings: seed({ protectedToolResults: 0 }), budget: 100_000 }),
    (pass): Stage.Pass => ({
      ...pass,
      isPreview: options.isPreview ?? false,
      sizes: { ...pass.sizes, target: options.target }
    })
  )

const removed = ({ view }: Stage.Pass): ReadonlyArray<number> =>
  view.decisions.flatMap((decision) => decision._tag === "Remove" ? [decision.seqs[0]!] : [])

const evidence = ({ view }: Stage.Pass) =>
  view.decisions.map((decision) => decision._tag === "Remove" ? decision.needed : null)

/** All that one rung would remove, down to a price. */
const half = 6_000

describe("Rung.decide", () => {
  it.effect("removes what is needed least, with its probability, and leaves what is needed", () =>
    Effect.gen(function*() {
      // Every other call of the oldest is needed.
      const { asked, provide } = scripted((seq) => seq % 4 === 1 ? 0.9 : seq === 3 ? 0.3 : 0.1)
      const pass = yield* passOf({ target: 8_500 })
      const after = yield* provide(Rung.stage(Rung.decide({ batch: 20 }))(pass))
      assert.deepStrictEqual(removed(after), [7, 11, 15, 19])
      assert.deepStrictEqual(evidence(after), [0.1, 0.1, 0.1, 0.1])
      assert.isAtMost(after.view.price, 8_500)
      assert.strictEqual(asked.calls.length, 1)
      // The last twelve entries and people are not asked about, and the model is told what goes on now.
      assert.isTrue(asked.calls[0]!.every((seq) => seq % 2 === 1 && seq < 30), String(asked.calls[0]))
      assert.include(asked.states[0]!, "finish it")
    }))

  it.effect("gives up what is needed last, the least of it first", () =>
    Effect.gen(function*() {
      const { provide } = scripted((seq) => 0.99 - seq / 100)
      const after = yield* provide(Rung.stage(Rung.decide({ batch: 40 }))(yield* passOf({ target: half })))
      const order = removed(after)
      assert.deepStrictEqual(order, [...order].sort((a, b) => b - a))
    }))

  it.effect("asks in batches, oldest first, no more calls than it may and no more than it takes", () =>
    Effect.gen(function*() {
      const none = scripted(() => 0.9)
      yield* none.provide(Rung.stage(Rung.decide({ batch: 4, calls: 2 }))(yield* passOf({ target: half })))
      assert.deepStrictEqual(none.asked.calls, [[1, 3, 5, 7], [9, 11, 13, 15]])
      const all = scripted(() => 0)
      yield* all.provide(Rung.stage(Rung.decide({ batch: 4, calls: 9 }))(yield* passOf({ target: 8_500 })))
      assert.strictEqual(all.asked.calls.length, 1)
    }))

  it.effect("falls back to the order of removeOthers when the model fails, and when it may make no call", () =>
    Effect.gen(function*() {
      const pass = yield* passOf({ target: half })
      const byAge = removed(yield* Rung.stage(Rung.removeOthers({ relax: 0 }))(pass))
      assert.isAbove(byAge.length, 5)
      const { asked, provide } = scripted(() => 1, () => Effect.fail(failure))
      assert.deepStrictEqual(removed(yield* provide(Rung.stage(Rung.decide())(pass))), byAge)
      assert.strictEqual(asked.calls.length, 1)
      const dying = scripted(() => 1, () => Effect.die("broken"))
      assert.deepStrictEqual(removed(yield* dying.provide(Rung.stage(Rung.decide())(pass))), byAge)
      const silent = scripted(() => 1)
      assert.deepStrictEqual(removed(yield* silent.provide(Rung.stage(Rung.decide({ calls: 0 }))(pass))), byAge)
      assert.deepStrictEqual(silent.asked.calls, [])
    }))

  it.effect("keeps the answers it had when a later call is late", () =>
    Effect.gen(function*() {
      const { asked, provide } = scripted(() => 0.9, (call) => call === 2 ? Effect.never : Effect.void)
      const fiber = yield* Effect.forkChild(
        provide(Rung.stage(Rung.decide({ batch: 3, timeout: "5 seconds" }))(yield* passOf({ target: half })))
      )
      yield* TestClock.adjust("4 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const after = yield* Fiber.join(fiber)
      assert.strictEqual(asked.calls.length, 2)
      // The three that were answered are needed: what nobody answered about leaves before them.
      assert.isTrue(removed(after).slice(0, 5).every((seq) => seq > 5))
      assert.strictEqual(removed(after)[0], 7)
    }))

  it.effect("fails where it is asked to, with what was done", () =>
    Effect.gen(function*() {
      const { provide } = scripted(() => 0.9, (call) => call === 2 ? Effect.fail(failure) : Effect.void)
      const rung = Rung.decide({ batch: 3, whenFailed: "fail" })
      const pass = yield* passOf({ target: half })
      const error = yield* Effect.flip(provide(Rung.stage(rung)(pass)))
      assert.deepInclude(error, { _tag: "DecideFailed", cause: "failed", calls: 2, answered: 3 })
      assert.include(error.reason, "out of words")
      // What was answered is remembered all the same.
      assert.strictEqual(Object.keys(pass.written.memory["Rung/decide"] ?? {}).length, 3)
    }))

  it.effect("asks nothing for a preview, and nothing where the view is small enough", () =>
    Effect.gen(function*() {
      const { asked, provide } = scripted(() => 0)
      const preview = yield* provide(Rung.stage(Rung.decide())(yield* passOf({ target: half, isPreview: true })))
      assert.isAbove(removed(preview).length, 5)
      const small = yield* passOf({ target: 100_000 })
      assert.strictEqual(
        (yield* provide(Rung.decide().run._tag === "stage" ? Rung.stage(Rung.decide())(small) : Effect.die(""))).view,
        small.view
      )
      assert.deepStrictEqual(asked.calls, [])
    }))
})

const settings = seed({ maxTokens: 8_000, notice: false, protectedToolResults: 0 })

/** What was asked twice. */
const repeated = ({ calls }: Asked): ReadonlyArray<number> => {
  const all = calls.flat()
  return all.filter((seq, at) => all.indexOf(seq) !== at)
}

const more = (from: number, count: number) =>
  prompt(...Arr.range(from, from + count - 1).flatMap((n) => turn(`call-${n}`, 2_000)))

describe("a session with Rung.decide", () => {
  const ladder = Ladder.make(Rung.decide({ batch: 4, calls: 2 }), Rung.removeOthers({ relax: 0 }))

  const odd = (seq: number): Answer => seq % 8 === 1 ? 0.9 : seq % 8 === 3 ? "refused" : 0.2

  it.effect("asks nothing twice, also after it was opened again, and says what it asked", () =>
    Effect.gen(function*() {
      const { asked, provide } = scripted(odd)
      const opening = ContextManager.open("chat", seeded({ settings, ladder }))
      const events = yield* provide(Effect.scoped(Effect.gen(function*() {
        const manager = yield* opening
        yield* manager.append(prompt(user("begin")))
        const told = []
        for (let n = 0; n < 40; n += 2) {
          yield* manager.append(more(n, 2))
          told.push(...(yield* manager.request).events)
        }
        return told
      })))
      const judged = events.filter(({ _tag }) => _tag === "EntriesJudged")
      assert.isAbove(judged.length, 1)
      assert.strictEqual(
        judged.reduce((sum, event) => sum + (event._tag === "EntriesJudged" ? event.asked : 0), 0),
        asked.calls.flat().length
      )
      const before = asked.calls.length
      yield* provide(Effect.scoped(Effect.gen(function*() {
        const manager = yield* opening
        for (let n = 40; n < 60; n += 2) {
          yield* manager.append(more(n, 2))
          yield* manager.request
        }
        const receipts = yield* manager.receipts
        assert.isTrue(receipts.some((receipt) => receipt._tag === "Lost" && receipt.needed === 0.2))
      })))
      assert.isAbove(asked.calls.length, before)
      assert.deepStrictEqual(repeated(asked), [])
    }).pipe(Effect.provide(SessionStore.layerMemory)))

  it.effect("asks nothing twice where the clear floor takes the pass back", () =>
    Effect.gen(function*() {
      const { asked, provide } = scripted(() => 0.9)
      const floor = { ...settings, clearAtLeast: 7_000, maxConsecutiveSkips: 99, countSkips: "every" as const }
      yield* provide(Effect.scoped(Effect.gen(function*() {
        const manager = yield* ContextManager.make(seeded({ settings: floor, ladder }))
        yield* manager.append(prompt(user("begin")))
        let skips = 0
        for (let n = 0; n < 20; n++) {
          yield* manager.append(more(n, 1))
          const { events } = yield* manager.request
          skips += events.filter(({ _tag }) => _tag === "CompactionSkipped").length
        }
        assert.isAbove(skips, 1)
      })))
      assert.isAbove(asked.calls.length, 1)
      assert.deepStrictEqual(repeated(asked), [])
    }))

  it.effect("asks anew about what stands in the place of an entry that was taken back", () =>
    Effect.gen(function*() {
      const { asked, provide } = scripted(() => 0.9)
      yield* provide(Effect.scoped(Effect.gen(function*() {
        const manager = yield* ContextManager.make(seeded({ settings, ladder }))
        yield* manager.append(prompt(user("begin"), ...more(0, 17).content))
        yield* manager.request
        assert.deepStrictEqual(asked.calls[0], [1, 3, 5, 7])
        yield* manager.rewind(3)
        yield* manager.append(more(100, 17))
        yield* manager.request
      })))
      assert.deepStrictEqual(asked.calls.slice(2).flat().slice(0, 3), [3, 5, 7])
      assert.deepStrictEqual(repeated(asked).slice(0, 3), [3, 5, 7])
    }))

  it.effect("makes no more calls a boundary where a count of the provider's has the ladder climbed twice", () =>
    Effect.gen(function*() {
      const { asked, provide } = scripted(() => 0.9)
      const price = (content: Prompt.Prompt) =>
        content.content.reduce((sum, message) => sum + Estimator.chars.price(message), 0)
      // The smaller the view the more it counts, so that the second count is above the aim.
      const layer = TokenMeter.layerCounter((content) => Effect.succeed(price(content) + 1_500))
      const request = yield* provide(Effect.scoped(Effect.gen(function*() {
        const manager = yield* ContextManager.make(seeded({ settings: { ...settings, maxTokens: 16_000 }, ladder }))
        yield* manager.append(prompt(user("begin"), ...more(0, 44).content))
        return yield* manager.request
      }))).pipe(Effect.provide(layer))
      assert.isTrue(request.events.some(({ _tag }) => _tag === "Compacted"))
      assert.strictEqual(asked.calls.length, 2)
    }))

  it.effect("is a kind that an app adds, checked as the others are", () =>
    Effect.gen(function*() {
      const policies = Policy.withKinds(Kind.decide)
      const policy = yield* policies.decode({ ladder: [{ _tag: "decide", timeout: "5 seconds" }] })
      assert.deepInclude(policy.ladder[0], { _tag: "decide", batch: 20, calls: 3, keep: 12, whenFailed: "fallBack" })
      for (
        const [rung, key] of [[Rung.decide({ batch: 0 }), "batch"], [Rung.decide({ timeout: 0 }), "timeout"]] as const
      ) {
        const error = yield* Effect.flip(Policy.prepare({ ladder: Ladder.make(rung) }))
        assert.include(error.message, key)
      }
    }))

  it.effect("goes on where the model fails", () =>
    Effect.gen(function*() {
      const { provide } = scripted(() => 0, () => Effect.fail(failure))
      const events = yield* provide(Effect.scoped(Effect.gen(function*() {
        const manager = yield* ContextManager.make(seeded({ settings, ladder }))
        yield* manager.append(prompt(user("begin"), ...more(0, 20).content))
        return (yield* manager.request).events
      })))
      const judged = events.find(({ _tag }) => _tag === "EntriesJudged")
      assert.deepInclude(judged, { calls: 1, asked: 4, answered: 0, failure: "failed" })
      assert.isTrue(events.some(({ _tag }) => _tag === "Compacted"))
    }))
})
