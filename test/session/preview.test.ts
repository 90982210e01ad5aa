import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Ladder from "effect-compaction/Ladder"
import type * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import * as Stage from "effect-compaction/Stage"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { bytesOf, session, turn, user, words } from "../core/conversation.ts"
import * as Script from "../properties/Script.ts"
import * as Trace from "../properties/Trace.ts"

const causes = ["pressure", "manual", "overflow"] as const

/** What a session is: its state, what it looks like, what it counted, and where it stands. */
const snapshotOf = (manager: ContextManager.ContextManager<unknown>) =>
  Effect.gen(function*() {
    const { decisions, items } = yield* manager.view
    return JSON.stringify([
      yield* manager.export,
      decisions,
      items.map(({ message, seq }) => [seq, message]),
      yield* manager.status,
      yield* manager.figures
    ])
  })

/** A summariser that may not be asked. */
const silent: Summarizer.Service = {
  cache: "other",
  summarize: () => Effect.die(new Error("a preview asked a model"))
}

const settings = { protectedRecent: 0.25, protectedToolResults: 1, compactThreshold: 0.75, targetUsage: 0.5 }

describe("preview", () => {
  it.effect("says what the next request then does, and changes nothing", () =>
    Effect.gen(function*() {
      const seen = { compact: 0, nothing: 0, fail: 0, summary: 0 }
      for (let seed = 0; seed < 60; seed++) {
        const script = Script.make(seed)
        const budget = 1_000 + 400 * (seed % 7)
        const manager = yield* ContextManager.make({ settings: script.settings, wire: Trace.rulesOf(script) }).pipe(
          Effect.provideService(Estimator.Estimator, Estimator.make(Trace.estimators[script.estimator].price))
        )
        yield* Effect.result(manager.requestWith({ budget }))
        for (const operation of script.operations) {
          if (operation._tag !== "append") continue
          if ((yield* Effect.result(manager.append(Prompt.fromMessages(operation.messages))))._tag === "Failure") {
            continue
          }
          const before = yield* snapshotOf(manager)
          const previews = yield* Effect.forEach(causes, manager.preview)
          assert.strictEqual(yield* snapshotOf(manager), before, `seed ${seed}`)
          for (const each of previews) {
            assert.isTrue(Schema.is(Stage.Preview)(each))
            seen[each.outcome]++
          }
          const requested = yield* Effect.result(manager.requestWith({ budget }))
          const { after, before: price, level, outcome } = previews[0]
          if (requested._tag === "Failure") {
            assert.strictEqual(outcome, "fail")
            continue
          }
          const { events } = requested.success
          if (events.length === 0) continue
          const boundary = events.find((event) => event._tag === "Compacted")
          assert.deepStrictEqual(
            outcome === "compact" ? { before: price, after, level } : undefined,
            boundary && { before: boundary.before, after: boundary.after, level: boundary.level },
            `seed ${seed}`
          )
        }
      }
      assert.isAbove(seen.compact, 50)
      assert.isAbove(seen.nothing, 50)
    }), 60_000)

  it.effect("names the entries by fate, the rungs and what is to be written anew", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({ settings: { ...settings, maxTokens: 4_000 } })
      yield* manager.append(session)
      const preview = yield* manager.preview()
      assert.strictEqual(preview.outcome, "compact")
      assert.isNull(preview.reason)
      const { prompt } = yield* manager.request
      const { decisions, items, price } = yield* manager.view
      assert.strictEqual(preview.after, price)
      assert.strictEqual(preview.freed, preview.before - price)
      assert.isAbove(decisions.length, 0)
      const removed = new Set(preview.entries.removed)
      const shortened = new Set(preview.entries.shortened)
      assert.deepStrictEqual(
        items.filter(({ alterations }) => alterations.length > 0).map(({ seq }) => seq),
        Array.from(shortened)
      )
      assert.isTrue(items.every(({ seq }) => !removed.has(seq)))
      assert.strictEqual(preview.entries.kept + shortened.size, items.length)
      const at = items.findIndex(({ seq }, index) => shortened.has(seq) || removed.has(index) || seq !== index)
      assert.strictEqual(preview.rebuilt, items.slice(at).reduce((sum, item) => sum + item.price, 0))
      assert.include(preview.rungs, "truncate-100")
      assert.isAbove(prompt.content.length, 0)
    }))

  it.effect("says why nothing would be done", () =>
    Effect.gen(function*() {
      const reasonOf = (given: Policy.Options, cause: Stage.Cause) =>
        Effect.scoped(Effect.gen(function*() {
          const manager = yield* ContextManager.make(given)
          yield* manager.append(session)
          const { outcome, reason } = yield* manager.preview(cause)
          return [outcome, reason]
        }))
      assert.deepStrictEqual(yield* reasonOf({ settings: { ...settings, maxTokens: 90_000 } }, "pressure"), [
        "nothing",
        "below the trigger"
      ])
      const [refused, floor] = yield* reasonOf(
        { settings: { ...settings, maxTokens: 7_000, clearAtLeast: 6_000 } },
        "pressure"
      )
      assert.strictEqual(refused, "nothing")
      assert.match(String(floor), /^it would free \d+ tokens, and clearAtLeast asks for 6000$/)
      assert.deepStrictEqual(yield* reasonOf({ ladder: Ladder.make(), settings: { maxTokens: 4_000 } }, "overflow"), [
        "fail",
        "ContextCannotFit: the policy's rungs make no smaller view"
      ])
      const [failed, error] = yield* reasonOf(
        { settings: { ...settings, maxTokens: 20, whenInfeasible: "fail" } },
        "pressure"
      )
      assert.strictEqual(failed, "fail")
      assert.match(String(error), /^BudgetInfeasible: /)
    }))

  it.effect("asks no model, publishes nothing, and says what would be summarised", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({
        settings: { ...settings, maxTokens: 4_000, summary: { mode: "between" } }
      }).pipe(Effect.provideService(Summarizer.Summarizer, silent))
      yield* manager.append(session)
      const events: Array<unknown> = []
      yield* Effect.forkChild(Stream.runForEach(manager.events, (event) => Effect.sync(() => events.push(event))), {
        startImmediately: true
      })
      const pressure = yield* manager.preview("pressure")
      const manual = yield* manager.preview("manual")
      const overflow = yield* manager.preview("overflow")
      yield* Effect.yieldNow
      assert.deepStrictEqual(events, [])
      assert.strictEqual(manual.outcome, "summary")
      assert.isAbove(manual.summary?.entries.length ?? 0, 0)
      assert.isAbove(manual.summary?.tokens ?? 0, 0)
      assert.deepStrictEqual([pressure.outcome, overflow.outcome], ["summary", "summary"])
    }))

  it.effect("of a command is what the command then does, with a rung of one's own", () =>
    Effect.gen(function*() {
      const told: Array<boolean> = []
      const own = Rung.make("own", (pass) => Effect.sync(() => (told.push(pass.isPreview), pass)))
      const ladder = Ladder.make(own, Rung.truncateToolResults({ fraction: 1 }))
      const manager = yield* ContextManager.make({ ladder, settings: { ...settings, maxTokens: 20_000 } })
      yield* manager.append(Prompt.fromMessages([user("go"), ...turn("a", 44_000), ...turn("b", 900), user("on")]))
      yield* manager.append(user(words("more", 20)))
      const preview = yield* manager.preview("manual")
      assert.deepStrictEqual(told, [true])
      const bytes = bytesOf((yield* manager.request).prompt)
      assert.include(bytes, words("a", 8_000))
      const report = Option.getOrThrow(yield* manager.compactNow())
      assert.strictEqual(preview.freed, report.freed)
      assert.deepStrictEqual(preview.rungs, ["truncate-100"])
      assert.deepStrictEqual(told, [true, false])
    }))
})
