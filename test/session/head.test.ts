/** What the system says, and machines before anybody else, may be another text at each call: the conversation is the same. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Marks from "effect-compaction/Marks"
import * as Effect from "effect/Effect"
import { bytesOf, prompt, system, turn, user } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Sessions from "../summary/Sessions.ts"
import * as OneLog from "./oneLog.ts"

const clocks = {
  "of the system": (at: number) => system(`It is 10:${at}.`),
  "of a machine at the head": (at: number) => Marks.set(user(`It is 10:${at}.`), { source: "hook" })
}

describe("a head that changes", () => {
  for (const [name, clock] of Object.entries(clocks)) {
    it.effect(`${name}: no more boundaries than with one that stays, and all of it is kept when reopened`, () =>
      Effect.gen(function*() {
        const boundaries = Effect.fnUntraced(function*(timeOf: (at: number) => number) {
          const log = yield* OneLog.memory
          const open = ContextManager.open("session", seeded({ settings: { maxTokens: 10_000 } })).pipe(
            OneLog.provide(log)
          )
          const manager = yield* open
          const history = [user("go")]
          let count = 0
          let diverged = 0
          for (let at = 0; at < 60; at++) {
            history.push(...turn(`t${at}`, 1_000))
            const { events, prefixChanged } = yield* manager.sync(prompt(clock(timeOf(at)), ...history))
            // What a machine said may have left the view.
            if (at > 0 && at < 10 && timeOf(at) !== timeOf(at - 1)) assert.isNotNull(prefixChanged)
            count += events.filter(({ _tag }) => _tag === "Compacted").length
            diverged += events.filter(({ _tag }) => _tag === "TranscriptDiverged").length
          }
          yield* manager.flush
          const again = yield* open
          assert.deepStrictEqual(yield* again.export, yield* manager.export)
          assert.include(JSON.stringify((yield* again.history).content[0]), `10:${timeOf(59)}`)
          assert.strictEqual(diverged, 0)
          return count
        })
        const still = yield* boundaries(() => 0)
        assert.isAtMost(yield* boundaries((at) => at), still)
        assert.isAbove(still, 0)
      }))
  }

  it.effect("keeps a summary", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying("## Decisions\n- THE-DECISION")
      const { manager } = yield* Sessions.watched(
        Sessions.withSummary({ trigger: 1 }, { maxTokens: 20_000 }),
        { summarizer: service }
      )
      const history = [user("Read all."), ...Array.from({ length: 30 }, (_, at) => Sessions.turnOf(at)).flat()]
      yield* manager.sync(prompt(system("Plan."), ...history))
      yield* manager.compactNow()
      const before = yield* manager.sync(prompt(system("Plan."), ...history, user("go")))
      const after = yield* manager.sync(prompt(system("Build."), ...history, user("go")))
      assert.include(bytesOf(after.prompt), "THE-DECISION")
      assert.include(bytesOf(after.prompt), "Build.")
      assert.isAtMost(after.count.tokens, before.count.tokens + 10)
      assert.strictEqual(after.prefixChanged, "system")
    }))

  it.effect("is no excuse for words of a person, nor for a machine that speaks later", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { maxTokens: 10_000 } }))
      const hook = (text: string) => Marks.set(user(text), { source: "hook" })
      yield* manager.sync(prompt(user("one"), hook("at 1"), user("two")))
      const later = yield* manager.sync(prompt(user("one"), hook("at 2"), user("two")))
      assert.strictEqual(later.events.filter(({ _tag }) => _tag === "TranscriptDiverged").length, 1)
      const edited = yield* manager.sync(prompt(user("another"), hook("at 2"), user("two")))
      assert.strictEqual(edited.events.filter(({ _tag }) => _tag === "TranscriptDiverged").length, 1)
    }))
})
