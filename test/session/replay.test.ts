import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import type * as Policy from "effect-compaction/Policy"
import * as Session from "effect-compaction/Session"
import * as SessionLog from "effect-compaction/SessionLog"
import type * as SessionStore from "effect-compaction/SessionStore"
import type * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import type * as View from "effect-compaction/View"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Runtime from "../../src/session/runtime.ts"
import * as Random from "../properties/Random.ts"
import * as Script from "../properties/Script.ts"
import * as Trace from "../properties/Trace.ts"
import { seeded } from "../seed.ts"
import * as OneLog from "./oneLog.ts"

const minutes = 60_000

const settingsOf = (script: Script.Script): Settings.Input => ({
  ...script.settings,
  ...(script.seed % 2 === 0 ? { summary: { mode: script.seed % 4 === 0 ? "between" : "background" } } : {})
})

const open = (script: Script.Script, store: SessionStore.Log) =>
  ContextManager.open("session", seeded({ settings: settingsOf(script), wire: Trace.rulesOf(script) })).pipe(
    Effect.provideService(Estimator.Estimator, Estimator.make(Trace.estimators[script.estimator].price)),
    Effect.provideService(Summarizer.Summarizer, Summarizer.extractive),
    OneLog.provide(store)
  )

/** A store of its own that holds the same events. */
const copied = Effect.fnUntraced(function*(store: SessionStore.Log) {
  const copy = yield* OneLog.memory
  yield* copy.append((yield* store.read({ whole: true })).events)
  return copy
})

type Manager = ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>

const shown = (view: View.View) => view.items.map(({ message, seq }) => [seq, Trace.written(message)])

/** What is sent, or the failure's name. */
const sentBy = (manager: Manager, budget: number | undefined) =>
  Effect.map(
    Effect.result(budget === undefined ? manager.request : manager.requestWith({ budget })),
    (result) => result._tag === "Success" ? result.success.prompt.content.map(Trace.written) : result.failure._tag
  )

const check = Effect.fnUntraced(
  function*(script: Script.Script, store: SessionStore.Log, live: Manager, at: string) {
    // What a summary beside the session came to meanwhile is written with what happens next.
    const exported = yield* live.export
    // Looked at before anything else runs: a summary that comes in later is in none of them.
    const view = yield* live.view
    const receipts = yield* live.receipts
    // From the snapshot on, from the first event on, and as they are kept along the way.
    const figures = yield* live.figures
    assert.deepStrictEqual((yield* SessionLog.read(store)).state.figures, figures, at)
    const log = yield* copied(store)
    assert.deepStrictEqual((yield* SessionLog.read(log)).state.figures, figures, at)
    yield* Effect.scoped(Effect.gen(function*() {
      const replayed = yield* open(script, log)
      assert.deepStrictEqual(shown(yield* replayed.view), shown(view), at)
      assert.deepStrictEqual(yield* replayed.export, exported, at)
      assert.deepStrictEqual(yield* replayed.receipts, receipts, at)
    }))
  }
)

/** What is looked at while a script is played. */
interface Watch {
  /** Before a request is made of the session. */
  readonly asked: (script: Script.Script, store: SessionStore.Log, budget: number | undefined) => Effect.Effect<unknown>
  /** After each operation. */
  readonly done: (
    script: Script.Script,
    store: SessionStore.Log,
    live: Manager,
    at: string
  ) => Effect.Effect<void, never, Scope.Scope>
}

/** Whatever happens, the log says all of it: a session that is read from it sends the same and is the same. */
const replaying: Watch = {
  asked: (script, store, budget) =>
    Effect.scoped(
      Effect.gen(function*() {
        return yield* sentBy(yield* open(script, yield* copied(store)), budget)
      }).pipe(Effect.orDie)
    ),
  done: (script, store, live, at) => Effect.orDie(check(script, store, live, at))
}

/** Plays a script on a session with a log; `lines` are what was sent, and the names of what failed. */
const play = Effect.fnUntraced(function*(script: Script.Script, watch: Watch, lines: Array<unknown> = []) {
  const random = Random.make(script.seed)
  const store = yield* OneLog.memory
  const live = yield* open(script, store)
  const seen = new Set<string>()
  const bills: Array<{ readonly input: number; readonly output: number }> = []
  let kept: ReadonlyArray<Prompt.Message> = []
  const owned = script.owner === "manager"
  for (const [at, operation] of script.operations.entries()) {
    const where = `seed ${script.seed}, operation ${at} (${operation._tag})`
    switch (operation._tag) {
      case "append":
        if (owned) yield* live.append(Prompt.fromMessages(operation.messages))
        else kept = [...kept, ...operation.messages]
        break
      case "request": {
        if (!owned) {
          if (random.chance(0.2)) {
            const now = Prompt.makeMessage("system", { content: `The time is ${at}.` })
            kept = kept.map((message) => message.role === "system" ? now : message)
          }
          yield* Effect.result(live.sync(Prompt.fromMessages(kept)))
          break
        }
        const expected = yield* watch.asked(script, store, operation.budget)
        const sent = yield* sentBy(live, operation.budget)
        lines.push(sent)
        if (expected !== undefined) assert.deepStrictEqual(sent, expected, where)
        const { breakdown, pressure } = yield* live.figures
        const { items, price } = yield* live.view
        const checkpoints = items.filter(({ entry }) => entry?.origin === "library")
        assert.strictEqual(breakdown.system + breakdown.messages + breakdown.checkpoints, price, where)
        assert.strictEqual(breakdown.checkpoints, checkpoints.reduce((sum, item) => sum + item.price, 0), where)
        assert.strictEqual(pressure.estimated, price + breakdown.tools, where)
        break
      }
      case "restore":
        yield* live.restore(yield* live.export)
        break
      case "reset":
        kept = []
        // It forgets what was billed too.
        bills.length = 0
        yield* live.reset
        break
      case "edit":
        kept = kept.map((message, index) => index === operation.at ? operation.message : message)
        break
      case "rewind":
        kept = kept.slice(0, operation.at)
        break
      default:
        break
    }
    yield* watch.done(script, store, live, where)
    if (random.chance(0.3)) {
      // What is next to nothing of its price is no bill: see the tests of the meter.
      const total = 1_000 + random.below(19_000)
      if (random.chance(0.8)) {
        const usage = {
          inputTokens: { total, cacheRead: Math.floor(total / 2) },
          outputTokens: { total: random.below(99) }
        }
        yield* live.observe(usage)
        const { pressure, usage: billed } = yield* live.figures
        assert.strictEqual(pressure.billed, total)
        bills.push({ input: total - usage.inputTokens.cacheRead, output: usage.outputTokens.total })
        if (script.settings["summary"] === undefined && script.seed % 2 === 1) {
          assert.strictEqual(billed.input, bills.reduce((sum, bill) => sum + bill.input, 0))
          assert.strictEqual(billed.output, bills.reduce((sum, bill) => sum + bill.output, 0))
        }
      } else yield* live.abandon()
      yield* watch.done(script, store, live, `${where}, observed`)
    }
    if (owned && random.chance(0.08)) {
      const maximum = 500 + random.below(4_000)
      yield* Effect.result(live.recover({ tokens: maximum + 1 + random.below(4_000), maximum }))
      yield* watch.done(script, store, live, `${where}, refused`)
    }
    if (random.chance(0.08)) {
      const done = yield* Effect.result(live.compactNow({ commandId: `c${at}` }))
      seen.add(`compactNow ${done._tag === "Failure" ? done.failure._tag : done.success._tag}`)
      yield* watch.done(script, store, live, `${where}, compacted`)
    }
    if (owned && random.chance(0.05)) {
      yield* live.rewind(random.below(40))
      yield* watch.done(script, store, live, `${where}, rewound`)
    }
    if (random.chance(0.1)) {
      yield* Effect.result(live.undo((yield* live.status).generation - random.below(2)))
      yield* check(script, store, live, `${where}, undone`)
    }
    if (random.chance(0.05)) yield* SessionLog.snapshot(store)
    yield* Effect.yieldNow
  }
  for (const event of (yield* store.read({ whole: true })).events) seen.add((event as { _tag: string })._tag)
  return seen
})

const count = Number(process.env["SESSION_SCRIPTS"] ?? 60)

describe("live state equals replayed state", () => {
  it.effect(
    `at every point of ${count} random sessions`,
    () =>
      Effect.gen(function*() {
        const seen = new Set<string>()
        for (let seed = 1; seed <= count; seed++) {
          for (const each of yield* Effect.scoped(play(Script.make(seed), replaying))) seen.add(each)
        }
        const expected = [
          ...Object.keys(Session.Event.cases),
          "compactNow Some",
          "compactNow None",
          "compactNow CompactionBusy"
        ]
        assert.deepStrictEqual(expected.filter((each) => !seen.has(each)), [])
      }),
    4 * minutes
  )
})

describe("what is kept from call to call is a cache", () => {
  const sessions = Number(process.env["SESSION_SCRIPTS"] ?? 60)

  /** All that a session sent, and its state after each operation. */
  const played = Effect.fnUntraced(function*(seed: number) {
    const lines: Array<unknown> = []
    const recording: Watch = {
      asked: () => Effect.void,
      done: (_script, _store, live, at) =>
        Effect.orDie(Effect.map(Effect.all([live.export, live.view]), ([state, view]) => {
          lines.push(at, JSON.stringify(state), shown(view))
        }))
    }
    yield* Effect.scoped(play(Script.make(seed), recording, lines))
    return lines
  })

  it.effect(
    `throwing every cache away before each call changes no byte of ${sessions} random sessions`,
    () =>
      Effect.gen(function*() {
        for (let seed = 1; seed <= sessions; seed++) {
          const kept = yield* played(seed)
          const thrown = yield* Effect.provideService(played(seed), Runtime.KeepCaches, false)
          assert.isAbove(kept.length, 0)
          assert.deepStrictEqual(thrown, kept, `seed ${seed}`)
        }
      }),
    (4 + sessions / 60) * minutes
  )
})
