import { assert, describe, it } from "@effect/vitest"
import * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Marks from "effect-compaction/Marks"
import type * as Policy from "effect-compaction/Policy"
import type * as Settings from "effect-compaction/Settings"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { seeded } from "../seed.ts"
import { answers, assistant, calls, prompt, result, session, system, turn, user, words } from "./conversation.ts"

type Event = CompactionEvent.CompactionEvent

const settings: Settings.Input = { protectedToolResults: 1, notice: false }

const encode = Schema.encodeSync(CompactionEvent.CompactionEvent)
const decode = Schema.decodeUnknownSync(CompactionEvent.CompactionEvent)

/** What the requests of `program` published; each event must be what its Schema says, through JSON and back. */
const published = (
  extra: Settings.Input,
  program: (
    manager: ContextManager.ContextManager<Policy.PassError>
  ) => Effect.Effect<ReadonlyArray<ContextManager.Request>, Policy.PassError | ContextManager.InvalidMessages>
) =>
  Effect.gen(function*() {
    const manager = yield* ContextManager.make(seeded({ settings: { ...settings, ...extra } }))
    const events = (yield* program(manager)).flatMap((request) => request.events)
    for (const event of events) assert.deepStrictEqual(decode(JSON.parse(JSON.stringify(encode(event)))), event)
    return events
  })

const only = <Tag extends Event["_tag"]>(events: ReadonlyArray<Event>, tag: Tag) =>
  events.filter((event): event is Extract<Event, { readonly _tag: Tag }> => event._tag === tag)

describe("the events of a request", () => {
  it.effect("TokenCounted on every request but the same one again, BudgetResolved when the budget is another", () =>
    Effect.gen(function*() {
      const events = yield* published({ maxTokens: 50_000 }, (manager) =>
        Effect.gen(function*() {
          yield* manager.append(session)
          const first = yield* manager.request
          const again = yield* manager.request
          yield* manager.append("more")
          const second = yield* manager.request
          const other = yield* manager.requestWith({ budget: 40_000, overhead: 1_000 })
          return [first, again, second, other]
        }))
      const counted = only(events, "TokenCounted")
      assert.deepStrictEqual(counted.map((_) => _.budget), [50_000, 50_000, 39_000])
      assert.deepInclude({ ...counted[0] }, {
        mode: "estimate",
        kind: "estimated",
        actual: null,
        anchor: null,
        stale: false
      })
      assert.strictEqual(counted[0]?.used, counted[0]?.estimated)
      assert.deepStrictEqual(only(events, "BudgetResolved"), [
        { _tag: "BudgetResolved", total: 50_000, source: "maxTokens", overhead: 0, limit: 50_000, reserve: 0 },
        { _tag: "BudgetResolved", total: 40_000, source: "given", overhead: 1_000, limit: 39_000, reserve: 0 }
      ])
    }))

  it.effect("TranscriptRepaired, once for what was found", () =>
    Effect.gen(function*() {
      const events = yield* published({}, (manager) =>
        Effect.gen(function*() {
          yield* manager.append(prompt(
            user("go"),
            calls("a", "b"),
            user("in between"),
            answers(result("b", "old")),
            answers(result("b", "new")),
            answers(result("x", "orphan")),
            assistant("on")
          ))
          const first = yield* manager.request
          yield* manager.append("more")
          return [first, yield* manager.request]
        }))
      const repaired = only(events, "TranscriptRepaired")
      assert.strictEqual(repaired.length, 1)
      // 3 moved to its call, then 4 took its place.
      assert.deepInclude({ ...repaired[0] }, { orphans: [5], duplicates: [3], synthetic: [1], moved: [3] })
    }))

  it.effect("TranscriptRepaired names items that the provider cannot hold, once", () =>
    Effect.gen(function*() {
      const item = Marks.set(Prompt.makePart("text", { text: "" }), { raw: { type: "compaction" } })
      const events = yield* published({}, (manager) =>
        Effect.gen(function*() {
          yield* manager.append(prompt(user("go"), Prompt.makeMessage("assistant", { content: [item] }), user("on")))
          const first = yield* manager.request
          yield* manager.append("more")
          return [first, yield* manager.request]
        }))
      const repaired = only(events, "TranscriptRepaired")
      assert.deepStrictEqual(repaired.map((event) => event._tag === "TranscriptRepaired" ? event.opaque : []), [[1]])
    }))

  it.effect("OverheadAboveTarget, once, or an error when the settings are strict", () =>
    Effect.gen(function*() {
      const long = prompt(system(words("rules", 8_000)), user("go"), ...turn("a", 400))
      const events = yield* published({ maxTokens: 3_000 }, (manager) =>
        Effect.gen(function*() {
          yield* manager.append(long)
          const first = yield* manager.request
          yield* manager.append("more")
          return [first, yield* manager.request]
        }))
      assert.deepStrictEqual(only(events, "OverheadAboveTarget"), [
        { _tag: "OverheadAboveTarget", fixed: 2_008, target: 1_500, budget: 3_000 }
      ])
      const strict = yield* ContextManager.make(seeded({ settings: { ...settings, strict: true, maxTokens: 3_000 } }))
      yield* strict.append(long)
      const error = yield* Effect.flip(strict.request)
      assert.strictEqual(error._tag, "TargetBelowOverhead")
      for (const says of ["2008", "1500", "targetUsage", "strict"]) assert.include(error.message, says)
    }))

  it.effect("PassRefused below the budget without usage, PassOverridden at it", () =>
    Effect.gen(function*() {
      const of = (maxTokens: number) =>
        published({ provenanceGate: true, maxTokens }, (manager) =>
          Effect.gen(function*() {
            yield* manager.append(session)
            return [yield* manager.request]
          }))
      const refused = only(yield* of(6_900), "PassRefused")
      assert.strictEqual(refused.length, 1)
      assert.deepInclude({ ...refused[0] }, { kind: "estimated", budget: 6_900, refusals: 1 })
      const overridden = yield* of(6_000)
      const [passed] = only(overridden, "PassOverridden")
      assert.deepInclude({ ...passed }, { budget: 6_000, cause: "noUsage", overrides: 1 })
      assert.strictEqual(only(overridden, "Compacted").length, 1)
    }))

  it.effect("CompactionPowerless, when a count calls for what no price gives", () =>
    Effect.gen(function*() {
      const events = yield* published({ meter: "hybrid", provenanceGate: false, maxTokens: 4_000 }, (manager) =>
        Effect.gen(function*() {
          yield* manager.append(prompt(user("go")))
          const first = yield* manager.request
          // The first bill tells what stands around the view: nothing here. The second is far from its price.
          yield* manager.observe({ inputTokens: { total: first.count.tokens } })
          yield* manager.append("more")
          const second = yield* manager.request
          yield* manager.observe({ inputTokens: { total: 3_900 } })
          yield* manager.append("and more")
          const third = yield* manager.request
          yield* manager.append("and still more")
          return [first, second, third, yield* manager.request]
        }))
      const powerless = only(events, "CompactionPowerless")
      assert.strictEqual(powerless.length, 1, "once for each generation")
      assert.deepInclude({ ...powerless[0] }, { kind: "usage", target: 2_000, generation: 0 })
      assert.isAbove(powerless[0]?.count ?? 0, 3_900)
      assert.isBelow(powerless[0]?.price ?? Infinity, 100)
    }))

  it.effect("MessagesAboveAim, when the number of entries cannot come down that far", () =>
    Effect.gen(function*() {
      const humans = prompt(...Array.from({ length: 30 }, (_, n) => user(words(`question ${n}`, 200))))
      const events = yield* published({ maxMessages: 20, protectedRecent: 1 }, (manager) =>
        Effect.gen(function*() {
          yield* manager.append(humans)
          const first = yield* manager.request
          yield* manager.append("one more")
          return [first, yield* manager.request]
        }))
      assert.deepStrictEqual(only(events, "MessagesAboveAim"), [
        { _tag: "MessagesAboveAim", entries: 30, aim: 10, armedAt: 35 }
      ])
      assert.deepStrictEqual(only(events, "Compacted"), [])
    }))

  it.effect("maxMessages brings the number of entries down, below the trigger too", () =>
    Effect.gen(function*() {
      const events = yield* published({ maxMessages: 20 }, (manager) =>
        Effect.gen(function*() {
          yield* manager.append(session)
          return [yield* manager.requestWith({ budget: 100_000 })]
        }))
      const [compacted] = only(events, "Compacted")
      assert.isAbove(compacted?.removed ?? 0, 15)
      assert.strictEqual(compacted?.truncated, 0, "what is shortened does not bring the number down")
    }))
})
