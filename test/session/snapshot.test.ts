import { assert, describe, it } from "@effect/vitest"
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
import * as Scope from "effect/Scope"
import { session as history } from "../core/conversation.ts"
import * as Random from "../properties/Random.ts"
import * as Script from "../properties/Script.ts"
import * as Trace from "../properties/Trace.ts"
import { seeded } from "../seed.ts"
import * as OneLog from "./oneLog.ts"

const minutes = 60_000

const open = (script: Script.Script, store: SessionStore.Log) =>
  ContextManager.open(
    "session",
    seeded({
      settings: { ...script.settings, ...(script.seed % 2 === 0 ? { summary: { mode: "between" } } : {}) },
      wire: Trace.rulesOf(script)
    })
  ).pipe(
    Effect.provideService(Estimator.Estimator, Estimator.make(Trace.estimators[script.estimator].price)),
    Effect.provideService(Summarizer.Summarizer, Summarizer.extractive),
    OneLog.provide(store)
  )

type Manager = ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>

/** What is sent, or the failure's name; and where the session stands. */
const sentBy = (manager: Manager, budget: number | undefined) =>
  Effect.gen(function*() {
    const result = yield* Effect.result(budget === undefined ? manager.request : manager.requestWith({ budget }))
    const { counts, entries, generation, level, streak } = yield* manager.status
    return {
      sent: result._tag === "Success" ? result.success.prompt.content.map(Trace.written) : result.failure._tag,
      count: result._tag === "Success" ? result.success.count : null,
      status: { counts, entries, generation, level, streak },
      figures: yield* manager.figures
    }
  })

const countingReads = (store: SessionStore.Log) => {
  const self = { whole: 0 }
  const service: SessionStore.Log = {
    ...store,
    read: (options) =>
      Effect.suspend(() => {
        if (options?.whole === true) self.whole++
        return store.read(options)
      })
  }
  return [service, self] as const
}

/**
 * Plays a script on two sessions. One stays open; the other is closed and opened again now and then, mostly from a snapshot,
 * so it lacks what has left its view. Nothing can tell them apart.
 */
const play = Effect.fnUntraced(function*(script: Script.Script) {
  const random = Random.make(script.seed)
  const live = yield* open(script, yield* OneLog.memory)
  const [store, reads] = countingReads(yield* OneLog.memory)
  let scope = yield* Scope.make()
  let hasSent = false
  let other = yield* Scope.provide(open(script, store), scope)
  const seen = { abridged: 0, wholeBefore: 0, wholeAfter: 0, skipped: 0 }
  const both = <A>(use: (manager: Manager) => Effect.Effect<A, unknown>) =>
    Effect.gen(function*() {
      yield* Effect.result(use(live))
      yield* Effect.result(use(other))
    })
  for (const [at, operation] of script.operations.entries()) {
    const where = `seed ${script.seed}, operation ${at} (${operation._tag})`
    switch (operation._tag) {
      case "append":
        yield* both((manager) => manager.append(Prompt.fromMessages(operation.messages)))
        break
      case "request":
        hasSent = true
        assert.deepStrictEqual(yield* sentBy(other, operation.budget), yield* sentBy(live, operation.budget), where)
        break
      case "reset":
        yield* both((manager) => manager.reset)
        break
      default:
        break
    }
    if (random.chance(0.3)) {
      const total = random.below(20_000)
      if (random.chance(0.8)) yield* both((manager) => manager.observe({ inputTokens: { total } }))
      else yield* both((manager) => manager.abandon())
    }
    // For which model a request was, and whether it is open, is known in the process that sent it.
    if (hasSent && random.chance(0.05)) {
      yield* both((manager) => Effect.andThen(manager.observe({ inputTokens: { total: 900 } }), manager.compactNow()))
    }
    if (random.chance(0.03)) {
      const entry = random.below(60)
      yield* both((manager) => manager.rewind(entry))
    }
    if (random.chance(0.05)) {
      const asked = random.below(40)
      assert.deepStrictEqual(yield* other.explain(asked), yield* live.explain(asked), where)
    }
    if (random.chance(0.3)) {
      yield* Scope.close(scope, Exit.void)
      const isKept = random.chance(0.8)
      if (isKept) yield* SessionLog.snapshot(store)
      const { state: { abridged } } = yield* SessionLog.read(store)
      if (abridged !== null) seen.abridged++
      seen.skipped += (abridged?.runs ?? []).reduce((sum, run) => sum + run.entries, 0)
      const before = reads.whole
      scope = yield* Scope.make()
      hasSent = false
      other = yield* Scope.provide(open(script, store), scope)
      if (isKept) assert.strictEqual(reads.whole, before, `${where}: opened from the snapshot`)
    }
  }
  assert.deepStrictEqual(yield* other.receipts, yield* live.receipts)
  // A log is JSON, which has no `undefined`.
  const plain = (prompt: Prompt.Prompt): unknown => JSON.parse(JSON.stringify(prompt))
  assert.deepStrictEqual(plain(yield* other.history), plain(yield* live.history))
  yield* Scope.close(scope, Exit.void)
  return { ...seen, whole: reads.whole }
})

const count = Number(process.env["SESSION_SCRIPTS"] ?? 60)
const first = Number(process.env["SESSION_SEED"] ?? 1)

describe("a session opened from snapshots", () => {
  it.effect(
    `cannot be told from one that stays open, in ${count} random sessions`,
    () =>
      Effect.gen(function*() {
        const seen = { abridged: 0, skipped: 0, whole: 0 }
        for (let seed = first, played = 0; played < count; seed++) {
          const script = Script.make(seed)
          if (script.owner !== "manager") continue
          played++
          const one = yield* Effect.scoped(play(script))
          seen.abridged += one.abridged
          seen.skipped += one.skipped
          seen.whole += one.whole
        }
        assert.isAbove(seen.abridged, count / 2)
        assert.isAbove(seen.skipped, seen.abridged)
        assert.isAbove(seen.whole, 0)
      }),
    4 * minutes
  )
})

describe("a caller's history after a snapshot that leaves some of it out", () => {
  const settings = { protectedToolResults: 1, notice: false, maxTokens: 4_000 }
  const reopened = (store: SessionStore.Log) =>
    ContextManager.open("session", seeded({ settings })).pipe(OneLog.provide(store))
  const plain = (self: Prompt.Prompt): unknown => JSON.parse(JSON.stringify(self))
  const said = (text: string) => Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

  /** A session that was compacted, kept in a snapshot and closed; and what it sent. */
  const compacted = Effect.gen(function*() {
    const store = yield* OneLog.memory
    const sent = yield* Effect.scoped(Effect.gen(function*() {
      const request = yield* (yield* reopened(store)).sync(history)
      assert.strictEqual(request.generation, 1)
      return request
    }))
    yield* SessionLog.snapshot(store)
    const { state: { abridged } } = yield* SessionLog.read(store)
    assert.isAbove(abridged?.runs.length ?? 0, 0, "the snapshot leaves something out")
    return { store, sent }
  })

  it.effect("is compared with all of it: the same history drops nothing", () =>
    Effect.gen(function*() {
      const { sent, store } = yield* compacted
      const manager = yield* reopened(store)
      const again = yield* manager.sync(history)
      assert.deepStrictEqual(plain(again.prompt), plain(sent.prompt))
      assert.strictEqual(again.generation, 1)
      const longer = yield* manager.sync(Prompt.fromMessages([...history.content, said("one more")]))
      assert.notInclude(longer.events.map(({ _tag }) => _tag), "TranscriptDiverged")
      const { entries } = yield* manager.status
      assert.strictEqual(entries, history.content.length + 1)
    }))

  it.effect("an edit among what was left out is found where it is", () =>
    Effect.gen(function*() {
      const { store } = yield* compacted
      const manager = yield* reopened(store)
      const at = 2
      const edited = history.content.map((message, index) => index === at ? said("go back") : message)
      const { events } = yield* manager.sync(Prompt.fromMessages(edited))
      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "TranscriptDiverged"), [
        { _tag: "TranscriptDiverged", seq: at, dropped: history.content.length - at }
      ])
    }))
})

describe("a snapshot leaves out what was removed, but for", () => {
  const text = (words: string) => Prompt.makePart("text", { text: words })
  const call = (id: string, options: { readonly providerExecuted?: boolean } = {}) =>
    Prompt.makePart("tool-call", { id, name: "read", params: {}, providerExecuted: false, ...options })
  const assistant = (...content: ReadonlyArray<Prompt.AssistantMessagePart>) =>
    Prompt.makeMessage("assistant", { content: [...content] })
  const user = (words: string) => Prompt.makeMessage("user", { content: [text(words)] })
  const result = (id: string) =>
    Prompt.makeMessage("tool", {
      content: [
        Prompt.makePart("tool-result", { id, name: "read", isFailure: false, result: "done", providerExecuted: false })
      ]
    })
  const signed = Prompt.makePart("reasoning", { text: "hm", options: { anthropic: { signature: "c2ln" } } })
  const done = [assistant(call("b")), result("b")]

  const boundary: typeof Session.Decided.Type["told"] = {
    _tag: "Compacted",
    before: 9,
    after: 3,
    freed: 6,
    messagesBefore: 9,
    messagesAfter: 3,
    removed: 6,
    truncated: 0,
    stubbed: 0,
    absorbed: 0,
    session: { removed: 6, truncated: 0, stubbed: 0, altered: 0, absorbed: 0 },
    level: 1,
    count: 9,
    kind: "estimated",
    budget: 10,
    target: 5,
    generation: 1,
    protectedRecent: 0,
    protectedToolResults: 0
  }

  const cases: ReadonlyArray<{
    readonly name: string
    readonly messages: ReadonlyArray<Prompt.Message>
    readonly stays: ReadonlyArray<number>
  }> = [
    { name: "nothing of a call and its result", messages: [...done, assistant(text("so"))], stays: [2] },
    {
      name: "the words of people",
      messages: [user("do it"), ...done, user("now"), assistant(text("so"))],
      stays: [0, 3, 4]
    },
    {
      name: "what a system said",
      messages: [Prompt.makeMessage("system", { content: "be brief" }), ...done, user("x")],
      stays: [0, 3]
    },
    {
      name: "the newest of the assistant",
      messages: [...done, assistant(text("old")), assistant(text("new"))],
      stays: [3]
    },
    { name: "a call without a result", messages: [assistant(call("a")), ...done, user("x")], stays: [0, 3] },
    {
      name: "the newest signed reasoning of the turn",
      messages: [user("x"), assistant(signed, call("a")), result("a"), ...done, assistant(text("new"))],
      stays: [0, 1, 2, 5]
    },
    {
      name: "everything where a part has lost its other half",
      messages: [assistant(call("a", { providerExecuted: true })), ...done, user("x")],
      stays: [0, 1, 2, 3]
    }
  ]
  for (const { messages, name, stays } of cases) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const store = yield* OneLog.memory
        const events: ReadonlyArray<Session.Event> = [
          { _tag: "Opened", version: Session.version },
          {
            _tag: "Appended",
            messages: messages.map((message) => ({ message, origin: "caller" })),
            caps: [],
            price: { system: 0, messages: 0 }
          },
          {
            _tag: "Decided",
            decisions: [{ _tag: "Remove", seqs: messages.map((_, at) => at), at: messages.length }],
            memory: {},
            told: boundary
          }
        ]
        yield* store.append(events.map(SessionLog.encode))
        yield* SessionLog.snapshot(store)
        const { state } = yield* SessionLog.read(store)
        const kept = state.messages.all.slice(0, state.messages.length)
        assert.deepStrictEqual(kept.map(({ message }) => message), stays.map((at) => messages[at]!))
        assert.strictEqual(state.entries, messages.length)
        assert.strictEqual((yield* SessionLog.readWhole(store, 3)).state.messages.length, messages.length)
      }))
  }
})
