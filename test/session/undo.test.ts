import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import type * as Policy from "effect-compaction/Policy"
import * as Session from "effect-compaction/Session"
import * as SessionLog from "effect-compaction/SessionLog"
import type * as SessionStore from "effect-compaction/SessionStore"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { bytesOf, session, turn, user } from "../core/conversation.ts"
import * as Random from "../properties/Random.ts"
import * as Script from "../properties/Script.ts"
import * as Trace from "../properties/Trace.ts"
import * as OneLog from "./oneLog.ts"

type Manager = ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>

/** What a view shows, and what was decided of it but for what is cut when it comes in. */
const viewOf = (manager: Manager) =>
  Effect.map(manager.view, ({ decisions, items, price }) => ({
    decisions: decisions.filter(({ _tag }) => _tag !== "Cap"),
    shown: { price, items: items.map(({ message }) => Trace.written(message)) }
  }))

type Shown = Effect.Success<ReturnType<typeof viewOf>>

const open = (
  { settings: { maxTokens: _, window: __, ...settings }, ...script }: Script.Script,
  store: SessionStore.Log
) =>
  ContextManager.open("session", {
    settings: { ...settings, ...(script.seed % 3 === 0 ? { summary: { mode: "between" } } : {}) },
    wire: Trace.rulesOf({ settings, ...script })
  }).pipe(
    Effect.provideService(Estimator.Estimator, Estimator.make(Trace.estimators[script.estimator].price)),
    Effect.provideService(Summarizer.Summarizer, Summarizer.extractive),
    OneLog.provide(store)
  )

/** What is saved of a session that was read: all but what opening it marks. */
const savedOf = (state: Session.State) => Schema.encodeSync(Session.SavedJson)(Session.save(state))

const large = { budget: 10_000_000 }

/**
 * Plays a script, with snapshots and openings in between. After a boundary the session is taken back to before it: now and
 * then live, now and then opened again, and always in a fork, in a restored session and as its log says.
 */
const play = Effect.fnUntraced(function*(script: Script.Script) {
  const random = Random.make(script.seed + 7)
  const store = yield* OneLog.memory
  let scope = yield* Scope.make()
  let manager: Manager = yield* Scope.provide(open(script, store), scope)
  const reopen = Effect.gen(function*() {
    yield* Scope.close(scope, Exit.void)
    if (random.chance(0.6)) yield* SessionLog.snapshot(store)
    scope = yield* Scope.make()
    manager = yield* Scope.provide(open(script, store), scope)
  })
  const stand: Array<{ readonly generation: number; readonly before: Shown; readonly entries: number }> = []
  const seen = { undone: 0, reopened: 0, several: 0 }
  for (const operation of script.operations) {
    if (operation._tag === "append") {
      yield* Effect.result(manager.append(Prompt.fromMessages(operation.messages)))
      continue
    }
    if (operation._tag !== "request") continue
    const before = yield* viewOf(manager)
    const { entries, generation } = yield* manager.status
    if (random.chance(0.2)) yield* Effect.result(manager.compactNow())
    else yield* Effect.result(manager.requestWith({ budget: 600 + random.below(3_000) }))
    if (random.chance(0.5)) yield* Effect.result(manager.abandon())
    const now = yield* manager.status
    if (now.generation === generation) continue
    if (now.generation > generation + 1) {
      stand.length = 0
      continue
    }
    stand.push({ generation: now.generation, before, entries })
    if (random.chance(0.5)) continue
    const isReopened = random.chance(0.5)
    if (isReopened) yield* reopen
    // Everything fits from here on.
    yield* Effect.result(manager.requestWith(large))
    const { generation: last } = yield* manager.status
    const at = random.below(stand.length)
    const { before: expected, entries: known, generation: from } = stand[at]!
    const where = `seed ${script.seed}, generation ${from} of ${last}`
    const isSame = known === (yield* manager.status).entries
    const fork = yield* manager.fork
    yield* fork.undo(from)
    const saved = yield* manager.export
    yield* fork.restore(saved)
    yield* fork.undo(from)
    const { boundaries } = yield* manager.undo(from)
    const found = yield* viewOf(manager)
    assert.deepStrictEqual(found.decisions, expected.decisions, where)
    if (isSame) assert.deepStrictEqual(found.shown, expected.shown, where)
    assert.deepStrictEqual(yield* viewOf(fork), found, `${where}: forked and restored`)
    const { state } = yield* SessionLog.read(store)
    assert.deepStrictEqual(savedOf(state), yield* manager.export, `${where}: log`)
    yield* reopen
    assert.deepStrictEqual(yield* viewOf(manager), found, `${where}: opened`)
    stand.length = at
    seen.undone++
    if (isReopened) seen.reopened++
    if (boundaries > 1) seen.several++
  }
  yield* Scope.close(scope, Exit.void)
  return seen
})

const settings = {
  compactThreshold: 0.9,
  targetUsage: 0.4,
  protectedRecent: 0.25,
  protectedToolResults: 1,
  replayLastUser: true
}

describe("undo", () => {
  it.effect(
    "after a compaction is the identity on views, live, opened again, restored and forked",
    () =>
      Effect.gen(function*() {
        const all = { undone: 0, reopened: 0, several: 0 }
        for (let seed = 0; seed < 80; seed++) {
          const seen = yield* Effect.scoped(play(Script.make(seed)))
          all.undone += seen.undone
          all.reopened += seen.reopened
          all.several += seen.several
        }
        assert.isAbove(all.undone, 60)
        assert.isAbove(all.reopened, 20)
        assert.isAbove(all.several, 20)
      }),
    120_000
  )

  it.effect("sends what was sent before, says so, and compacts anew", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({ settings })
      yield* manager.append(session)
      const { prompt } = yield* manager.requestWith({ budget: 10_000 })
      const events: Array<CompactionEvent.CompactionEvent> = []
      yield* Effect.forkChild(Stream.runForEach(manager.events, (event) => Effect.sync(() => events.push(event))), {
        startImmediately: true
      })
      yield* manager.abandon()
      const { freed, generation } = Option.getOrThrow(yield* manager.compactNow())
      yield* manager.requestWith({ budget: 10_000 })
      const undone = yield* manager.undo(generation)
      assert.strictEqual(undone.after - undone.before, freed)
      assert.strictEqual(undone.generation, generation + 1)
      yield* Effect.yieldNow
      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "CompactionUndone"), [undone])
      const again = yield* manager.requestWith({ budget: 10_000 })
      assert.strictEqual(bytesOf(again.prompt), bytesOf(prompt))
      assert.strictEqual(again.prefixChanged, "boundary")
      assert.strictEqual(again.generation, 2)
      assert.deepStrictEqual((yield* manager.status).counts.removed, 0)
      yield* manager.abandon()
      assert.strictEqual(Option.getOrThrow(yield* manager.compactNow()).freed, freed)
    }))

  it.effect("is refused where there is no such boundary, and where the view would not fit", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({ settings })
      yield* manager.append(session)
      const none = yield* Effect.flip(manager.undo(1))
      assert.deepStrictEqual([none._tag, "generations" in none && none.generations], ["BoundaryNotFound", []])
      yield* manager.requestWith({ budget: 3_000 })
      const before = yield* manager.export
      const { generation } = yield* manager.status
      const refused = yield* Effect.flip(manager.undo(generation))
      assert.strictEqual(refused._tag, "UndoCannotFit")
      assert.match(refused.message, /the view is \d+ tokens, and the budget is \d+\. .* raise maxTokens or window/)
      for (const wrong of [0, generation + 1, -1, 0.5, Number.NaN]) {
        const unknown = yield* Effect.flip(manager.undo(wrong))
        assert.strictEqual(unknown._tag, "BoundaryNotFound")
        assert.include(unknown.message, `write one of ${generation}`)
      }
      assert.deepStrictEqual(yield* manager.export, before)
      yield* manager.requestWith({ budget: 9_000 })
      yield* manager.undo(generation)
      assert.strictEqual((yield* Effect.flip(manager.undo(generation)))._tag, "BoundaryNotFound")
    }))

  it.effect("takes back later boundaries too, and nothing that was rewound before", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make({ settings })
      yield* manager.append(session)
      yield* manager.requestWith({ budget: 4_000 })
      yield* manager.append(Prompt.fromMessages([...turn("late", 9_000), user("on")]))
      yield* manager.requestWith({ budget: 4_000 })
      assert.strictEqual((yield* manager.status).generation, 2)
      yield* manager.requestWith({ budget: 90_000 })
      const fork = yield* manager.fork
      yield* fork.rewind(32)
      assert.deepStrictEqual(
        [(yield* Effect.flip(fork.undo(2)))._tag, (yield* fork.undo(1)).boundaries],
        ["BoundaryNotFound", 1]
      )
      const { boundaries, decisions } = yield* manager.undo(1)
      assert.strictEqual(boundaries, 2)
      assert.isAbove(decisions, 1)
      assert.deepStrictEqual((yield* manager.view).decisions, [])
      assert.isTrue((yield* manager.receipts).every(({ _tag }) => _tag === "Kept"))
    }))
})
