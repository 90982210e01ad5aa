import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Settings from "effect-compaction/Settings"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { seeded } from "../seed.ts"
import * as Check from "./Check.ts"
import * as Properties from "./Properties.ts"
import * as Random from "./Random.ts"
import * as Script from "./Script.ts"
import * as Trace from "./Trace.ts"

const minutes = 60_000

/** 1,000 scripts, each checked for each property: one script and one property are one case. */
const slices = Array.from({ length: 5 }, (_, slice) => ({ from: 1 + 200 * slice, count: 200 }))

describe("promises, over random sessions", () => {
  for (const { count, from } of slices) {
    it.effect(
      `${Properties.all.length} properties of the sessions ${from} to ${from + count - 1}`,
      () =>
        Effect.gen(function*() {
          const { failures } = yield* Check.seeds({ from, count, show: 1 })
          assert.strictEqual(failures.join("\n"), "")
        }),
      4 * minutes
    )
  }

  it.effect("the sessions reach every rung and every outcome", () =>
    Effect.gen(function*() {
      const seen = new Set<string>()
      for (let seed = 1; seed <= 300; seed++) {
        const { steps } = yield* Effect.scoped(Trace.run(Script.make(seed)))
        for (const { divergences, outcome, segment } of steps) {
          if (divergences > 0) seen.add("diverged")
          if (segment > 0) seen.add("restored")
          if (outcome === undefined) continue
          if (outcome.statusAfter.overrides > 0) seen.add("override")
          if (outcome.result._tag === "Failure") {
            seen.add(outcome.result.failure._tag)
            continue
          }
          const { events, prefixChanged, prompt, stableLength } = outcome.result.success
          if (prompt.content.length > stableLength) seen.add("tail")
          if (prefixChanged !== null) seen.add(prefixChanged)
          for (const event of events) seen.add(event._tag === "Compacted" ? `level ${event.level}` : event._tag)
        }
      }
      const levels = Array.from({ length: 8 }, (_, level) => `level ${level + 1}`)
      const outcomes = ["boundary", "repair", "system", "diverged", "restored", "override", "tail"]
      const tags = [
        "CompactionSkipped",
        "Infeasible",
        "BudgetInfeasible",
        "ClearFloorUnsatisfied",
        "TargetBelowOverhead"
      ]
      assert.deepStrictEqual([...levels, ...outcomes, ...tags].filter((each) => !seen.has(each)), [])
    }), minutes)
})

/** What the requests of a session sent and decided, and what each of them published of the clear floor. */
const floored = (seed: number, countSkips: "every" | "whenGrown") =>
  Effect.gen(function*() {
    const script = Script.make(seed)
    const settings: Settings.Input = {
      ...script.settings,
      // A pass begins far below the budget and frees a little, sometimes enough.
      compactThreshold: 0.4,
      targetUsage: 0.3,
      clearAtLeast: 0.15,
      // The error ends a request; it is the one thing that counting may change.
      maxConsecutiveSkips: Number.MAX_SAFE_INTEGER,
      countSkips
    }
    const { steps } = yield* Effect.scoped(Trace.run({ ...script, settings }))
    return steps.flatMap(({ outcome }) => {
      if (outcome === undefined) return []
      const { after, result, statusAfter } = outcome
      const sent = result._tag === "Failure"
        ? result.failure._tag
        : [Trace.bytesOf(result.success.prompt.content), result.success.prefixChanged, result.success.generation]
      const events = result._tag === "Failure" ? [] : result.success.events
      return [{
        seen: JSON.stringify([sent, after.decisions, after.price, statusAfter.counts, statusAfter.overrides]),
        skips: events.filter(({ _tag }) => _tag === "CompactionSkipped").length,
        streak: statusAfter.streak
      }]
    })
  })

describe("which refusals of the clear floor count", () => {
  it.effect(
    "changes no prompt and no decision of a random session, only how many there are",
    () =>
      Effect.gen(function*() {
        let quieter = 0
        for (let seed = 1; seed <= 500; seed++) {
          const every = yield* floored(seed, "every")
          const grown = yield* floored(seed, "whenGrown")
          assert.deepStrictEqual(grown.map(({ seen }) => seen), every.map(({ seen }) => seen), `session ${seed}`)
          for (const [at, { skips, streak }] of grown.entries()) {
            assert.isAtMost(skips, every[at]!.skips, `session ${seed}, request ${at}`)
            assert.isAtMost(streak, every[at]!.streak, `session ${seed}, request ${at}`)
            assert.strictEqual(streak > 0, every[at]!.streak > 0, `session ${seed}, request ${at}`)
            if (skips < every[at]!.skips) quieter++
          }
        }
        assert.isAbove(quieter, 20, "the sessions have refusals that say nothing new")
      }),
    minutes
  )
})

describe("work that does not grow with the session", () => {
  /** How often the roles of the messages are read during one request below the trigger, after `turns` turns. */
  const readsOf = Effect.fnUntraced(function*(turns: number) {
    let reads = 0
    const counted = (message: Prompt.Message): Prompt.Message => {
      const { role } = message
      return Object.defineProperty({ ...message }, "role", { enumerable: true, get: () => (reads++, role) })
    }
    const manager = yield* ContextManager.make(seeded({ settings: { maxTokens: 100_000_000 } }))
    const turn = (at: number) => {
      const id = `call_${at % 3}`
      return Prompt.fromMessages([
        Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: `question ${at}` })] }),
        Prompt.makeMessage("assistant", {
          content: [Prompt.makePart("tool-call", { id, name: "look", params: {}, providerExecuted: false })]
        }),
        Prompt.makeMessage("tool", {
          content: [
            Prompt.makePart("tool-result", {
              id,
              name: "look",
              isFailure: false,
              result: "ok",
              providerExecuted: false
            })
          ]
        })
      ].map(counted))
    }
    for (let at = 0; at < turns; at++) {
      yield* manager.append(turn(at))
      if (at % 7 === 0) yield* manager.request
    }
    yield* manager.request
    yield* manager.append(turn(turns))
    reads = 0
    yield* manager.request
    return reads
  })

  it.effect(
    "a request below the trigger reads as many messages after 2,000 turns as after 20",
    () =>
      Effect.gen(function*() {
        const few = yield* readsOf(20)
        assert.isAbove(few, 0)
        assert.strictEqual(yield* readsOf(200), few)
        assert.strictEqual(yield* readsOf(2_000), few)
      }),
    minutes
  )
})

describe("settings", () => {
  it.effect("1,000 settings survive being written and read again", () =>
    Effect.gen(function*() {
      for (let seed = 1; seed <= 1_000; seed++) {
        const decoded = yield* Settings.decode(Script.settings(Random.make(seed)))
        const encoded = yield* Schema.encodeEffect(Settings.Settings)(decoded)
        assert.deepStrictEqual(yield* Settings.decode(JSON.parse(JSON.stringify(encoded))), decoded)
      }
    }))

  const bad: { readonly [key: string]: readonly [unknown, ...ReadonlyArray<unknown>] } = {
    window: [0, -1, 1.5, "200k"],
    maxOutput: [-1, 0.5, null],
    outputReserve: [-0.1, 1.1, NaN],
    maxTokens: [0, -5, 0.5, "1"],
    notice: ["yes", 1],
    noticeReserve: [-1, 0.5],
    compactThreshold: [0, 1.01, -1, NaN],
    targetUsage: [1, 1.2, -0.1, "half"],
    protectedRecent: [-0.01, 1.01],
    protectedToolResults: [0.5, "5"],
    truncateChars: [-1, 1.5],
    shape: ["tail", 1],
    budgetTokens: [-1, 0.1],
    budgetByTool: [{ read: -1 }, { read: "2000" }, 5],
    exemptTools: ["read", [1]],
    clearAtLeast: [0, -1, NaN, "0.5"],
    maxConsecutiveSkips: [0.5, "3"],
    countSkips: ["never", true],
    clearFloorWhenOverBudget: ["ignore"],
    whenInfeasible: ["retry"],
    maxMessages: [0, -1, 2.5],
    unknownKey: [1]
  }

  it.effect("1,000 settings with one bad key are refused, and the key is named", () =>
    Effect.gen(function*() {
      const keys = Object.keys(bad)
      for (let seed = 1; seed <= 1_000; seed++) {
        const random = Random.make(seed)
        const key = keys[seed % keys.length]!
        const value = random.pick(bad[key]!)
        // Bad on purpose.
        const input = { ...Script.settings(random), [key]: value } as Settings.Input
        const error = yield* Effect.flip(Settings.decode(input))
        assert.include(error.message, `["${key}"]`, `${key}: ${JSON.stringify(value)}`)
      }
    }))
})
