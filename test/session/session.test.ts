import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Policy from "effect-compaction/Policy"
import * as SessionLog from "effect-compaction/SessionLog"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Trace from "../properties/Trace.ts"
import { seeded } from "../seed.ts"
import * as OneLog from "./oneLog.ts"

const short: Summarizer.Reply = {
  text: "## State\nthe files were read",
  model: "small",
  usage: { inputTokens: { total: 900 }, outputTokens: 20 },
  isTruncated: false
}

/** Waits until the test lets it answer. */
const gated = Effect.gen(function*() {
  const asked = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const service: Summarizer.Service = {
    ...Summarizer.extractive,
    summarize: () => Deferred.succeed(asked, undefined).pipe(Effect.andThen(Deferred.await(gate)), Effect.as(short))
  }
  return { service, asked: Deferred.await(asked), open: Deferred.succeed(gate, undefined) }
})

const answering: Summarizer.Service = { ...Summarizer.extractive, summarize: () => Effect.succeed(short) }

const settings = { maxTokens: 50_000, summary: { trigger: 1 } } as const

const open = (store: SessionStore.Log, summarizer: Summarizer.Service | undefined = answering) =>
  ContextManager.open(
    "session",
    seeded({ settings: summarizer === undefined ? { maxTokens: 50_000 } : settings })
  )
    .pipe(
      OneLog.provide(store),
      Effect.provideService(Summarizer.Summarizer, summarizer)
    )

const turn = (at: number) =>
  Prompt.fromMessages([
    Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: `question ${at} ${"why ".repeat(50)}` })] }),
    Prompt.makeMessage("assistant", {
      content: [
        Prompt.makePart("tool-call", { id: `c${at}`, name: "read", params: {}, providerExecuted: false })
      ]
    }),
    Prompt.makeMessage("tool", {
      content: [
        Prompt.makePart("tool-result", {
          id: `c${at}`,
          name: "read",
          isFailure: false,
          result: `${at} ${"line ".repeat(800)}`,
          providerExecuted: false
        })
      ]
    })
  ])

const play = Effect.fnUntraced(
  function*(manager: ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>, turns = 4) {
    for (let at = 0; at < turns; at++) {
      yield* manager.append(turn(at))
      yield* manager.request
      yield* manager.observe({ inputTokens: { total: 5_000 } })
    }
  }
)

const tagOf = (event: Schema.Json) => (event as { readonly _tag: string })._tag

const eventsOf = (store: SessionStore.Log) => Effect.map(store.read({ whole: true }), ({ events }) => events)

const shown = (manager: ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>) =>
  Effect.map(manager.view, ({ items }) => items.map(({ message, seq }) => [seq, Trace.written(message)]))

/** A store in memory that fails where it is told to. */
const failing = Effect.map(OneLog.memory, (store) => {
  const fault = { append: (_: ReadonlyArray<string>) => false, flush: false, appends: 0 }
  const full = (operation: "append" | "flush") =>
    new SessionStore.SessionStoreError({ operation, path: "disk", reason: "ENOSPC" })
  const service: SessionStore.Log = {
    ...store,
    append: (events) =>
      Effect.suspend(() => {
        fault.appends++
        return fault.append(events.map(tagOf)) ? Effect.fail(full("append")) : store.append(events)
      }),
    flush: Effect.suspend(() => fault.flush ? Effect.fail(full("flush")) : store.flush)
  }
  return { service, fault }
})

describe("compactNow in a session with a log", () => {
  it.effect("start, record and end cite the command, and what is absorbed is one append", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const batches: Array<ReadonlyArray<string>> = []
      const manager = yield* open({
        ...store,
        append: (events) => Effect.andThen(Effect.sync(() => batches.push(events.map(tagOf))), store.append(events))
      })
      yield* play(manager)
      batches.length = 0
      const report = Option.getOrThrow(yield* manager.compactNow({ commandId: "c-1" }))
      assert.strictEqual(report.commandId, "c-1")
      assert.deepStrictEqual(batches.map((batch) => batch.filter((tag) => tag !== "Changed")), [
        ["CompactionStarted"],
        ["Summarised", "Decided", "Paced", "Held"],
        ["CompactionEnded"]
      ])
      const events = (yield* eventsOf(store)) as ReadonlyArray<{ readonly [key: string]: Schema.Json }>
      const cited = events.filter((event) => "commandId" in event)
      assert.deepStrictEqual(cited.map((event) => [event["_tag"]!, event["commandId"]!]), [
        ["CompactionStarted", "c-1"],
        ["Summarised", "c-1"],
        ["CompactionEnded", "c-1"]
      ])
      assert.deepInclude(cited[1], { text: short.text, model: "small", input: 900, output: 20 })
      assert.strictEqual(cited[2]!["reason"], null)
    }))

  it.effect("nothing useful is None, and nothing is written", () =>
    Effect.gen(function*() {
      const { fault, service } = yield* failing
      const manager = yield* open(service)
      yield* manager.append("hello")
      const { appends } = fault
      assert.isTrue(Option.isNone(yield* manager.compactNow()))
      assert.strictEqual(fault.appends, appends)
    }))

  it.effect("an open request is busy, one that was answered is not", () =>
    Effect.gen(function*() {
      const manager = yield* open(yield* OneLog.memory)
      yield* play(manager)
      yield* manager.append(turn(9))
      yield* manager.request
      assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "CompactionBusy")
      yield* manager.abandon()
      assert.isTrue(Option.isSome(yield* manager.compactNow()))
    }))

  for (const summarizer of [answering, undefined]) {
    const kind = summarizer === undefined ? "the ladder" : "a summary"
    const faults: ReadonlyArray<readonly [string, (tags: ReadonlyArray<string>) => boolean, "start" | "replace"]> = [
      ["the start", (tags) => tags.includes("CompactionStarted"), "start"],
      ["what is decided", (tags) => tags.includes("Decided"), "replace"]
    ]
    for (const [what, fault, event] of faults) {
      it.effect(`${kind}: ${what} cannot be written, so nothing was done`, () =>
        Effect.gen(function*() {
          const store = yield* failing
          const manager = yield* open(store.service, summarizer)
          yield* play(manager, 20)
          const before = yield* shown(manager)
          const { decisions } = yield* manager.view
          store.fault.append = fault
          const error = yield* Effect.flip(manager.compactNow())
          assert.deepInclude(error, { _tag: "CommitFailed", event })
          assert.deepStrictEqual(yield* shown(manager), before)
          store.fault.append = () => false
          assert.deepStrictEqual((yield* manager.view).decisions, decisions)
          const replayed = yield* open(yield* copied(store.service), summarizer)
          assert.deepStrictEqual(yield* shown(replayed), before)
          assert.deepStrictEqual(yield* replayed.export, yield* manager.export)
          assert.isTrue(Option.isSome(yield* manager.compactNow()))
        }))
    }

    it.effect(`${kind}: a flush that fails is PersistenceFailed, and what was done stands`, () =>
      Effect.gen(function*() {
        const store = yield* failing
        const manager = yield* open(store.service, summarizer)
        yield* play(manager, 20)
        store.fault.flush = true
        assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "PersistenceFailed")
        assert.strictEqual((yield* manager.status).generation, 1)
        assert.strictEqual((yield* Effect.flip(manager.flush))._tag, "SessionStoreError")
        store.fault.flush = false
        yield* manager.flush
      }))
  }

  it.effect("interrupted while the summary is written, it leaves a start and an end and nothing else", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const { asked, service } = yield* gated
      const manager = yield* open(store, service)
      yield* play(manager)
      const before = yield* shown(manager)
      const { length } = yield* eventsOf(store)
      const fiber = yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
      yield* asked
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* shown(manager), before)
      const events = (yield* eventsOf(store)).slice(length)
      assert.deepStrictEqual(events.map(tagOf).filter((tag) => tag !== "Changed"), [
        "CompactionStarted",
        "CompactionEnded"
      ])
      assert.deepInclude(events.find((event) => tagOf(event) === "CompactionEnded"), { reason: "cancelled" })
    }))

  it.effect("a session that is closed ends it, to its close and its flush, and refuses another", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const { asked, service } = yield* gated
      const scope = yield* Scope.make()
      const manager = yield* open(store, service).pipe(Scope.provide(scope))
      yield* play(manager)
      const before = yield* shown(manager)
      const fiber = yield* Effect.forkChild(Effect.flip(manager.compactNow()), { startImmediately: true })
      yield* asked
      yield* Scope.close(scope, Exit.void)
      const last = (yield* eventsOf(store)).findLast((event) => tagOf(event) !== "Changed")
      assert.deepInclude(last, { _tag: "CompactionEnded", reason: "cancelled" })
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "CompactionCancelled")
      assert.strictEqual((yield* Effect.flip(manager.compactNow()))._tag, "CompactionCancelled")
      assert.deepStrictEqual(yield* shown(yield* open(yield* copied(store))), before)
    }))
})

/** A store of its own that holds the same events. */
const copied = Effect.fnUntraced(function*(store: SessionStore.Log) {
  const copy = yield* OneLog.memory
  yield* copy.append(yield* eventsOf(store))
  return copy
})

describe("a store that fails", () => {
  it.effect("fails no turn, is told, and what waited is written in order", () =>
    Effect.gen(function*() {
      const { fault, service } = yield* failing
      const manager = yield* open(service)
      const told = yield* Effect.forkChild(
        Stream.runCollect(Stream.take(
          Stream.filter(manager.events, (event) => event._tag === "SessionNotStored"),
          2
        )),
        { startImmediately: true }
      )
      yield* play(manager, 1)
      fault.append = () => true
      yield* manager.append(turn(1))
      yield* manager.request
      assert.strictEqual((yield* Effect.flip(manager.flush))._tag, "SessionStoreError")
      assert.strictEqual((yield* Fiber.join(told)).length, 2)
      fault.append = () => false
      yield* manager.append(turn(2))
      yield* manager.flush
      const replayed = yield* open(yield* copied(service))
      assert.deepStrictEqual(yield* replayed.export, yield* manager.export)
    }))
})

describe("a request that nothing came of", () => {
  it.effect("is the same when another process makes it again, its notice included", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const small = (given: SessionStore.Log) =>
        ContextManager.open("session", seeded({ settings: { maxTokens: 4_000 } })).pipe(
          OneLog.provide(given)
        )
      const manager = yield* small(store)
      for (let at = 0; at < 6; at++) yield* manager.append(turn(at))
      const sent = (yield* manager.request).prompt.content.map(Trace.written)
      assert.include(sent.at(-1), "this conversation was compacted")
      for (let again = 0; again < 2; again++) {
        const replayed = yield* small(yield* copied(store))
        assert.deepStrictEqual((yield* replayed.request).prompt.content.map(Trace.written), sent)
      }
    }))
})

describe("forks and rewinds", () => {
  it.effect("a session is forked at any entry: its view is the one there was", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const manager = yield* open(store)
      const views = new Map<number, unknown>([[0, []]])
      for (let at = 0; at < 6; at++) {
        for (const message of turn(at).content) {
          yield* manager.append(Prompt.fromMessages([message]))
          yield* manager.request
          yield* manager.observe({ inputTokens: { total: 5_000 } })
          const { entries } = yield* manager.status
          views.set(entries, yield* shown(manager))
        }
        if (at === 3) {
          yield* manager.compactNow()
          views.set((yield* manager.status).entries, yield* shown(manager))
        }
      }
      const { entries } = yield* manager.status
      for (let entry = 0; entry <= entries; entry++) {
        const fork = yield* OneLog.memory
        yield* fork.append(yield* SessionLog.fork("memory", yield* store.read({ whole: true }), entry))
        const forked = yield* Effect.scoped(
          Effect.flatMap(open(fork), (opened) => Effect.all([shown(opened), opened.status]))
        )
        assert.strictEqual(forked[1].entries, entry)
        // What was absorbed before its checkpoint came was not yet absorbed in a view of so many entries.
        if (views.has(entry)) assert.deepStrictEqual(forked[0], views.get(entry), `entry ${entry}`)
      }
    }))

  it.effect("rewound past a compaction, its decisions are dropped, in the log too", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const manager = yield* open(store)
      yield* play(manager, 4)
      const before = yield* shown(manager)
      yield* manager.compactNow()
      yield* manager.append(turn(4))
      assert.notDeepEqual((yield* shown(manager)).slice(0, before.length), before)
      yield* manager.rewind(12)
      assert.deepStrictEqual(yield* shown(manager), before)
      const replayed = yield* open(yield* copied(store))
      assert.deepStrictEqual(yield* shown(replayed), before)
      assert.deepStrictEqual(yield* replayed.export, yield* manager.export)
    }))
})

/** A summary of some entries, as it is written. */
const summaryOf = (seqs: ReadonlyArray<number>): Schema.Json =>
  SessionLog.encode({
    _tag: "Summarised",
    checkpoint: Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "so far" })] }),
    seqs,
    inPlace: true,
    price: 1,
    text: "so far",
    raw: "so far",
    purpose: "compaction",
    provider: null,
    model: null,
    layout: "suffix",
    fallback: null,
    outputLimit: 400,
    input: null,
    cacheRead: null,
    cacheWrite: null,
    output: null,
    milliseconds: 0,
    commandId: null
  })

describe("a log that cannot be read", () => {
  const cases: ReadonlyArray<readonly [string, Schema.Json, string]> = [
    ["an event of a kind that is not known", { _tag: "Dreamt", of: 1 }, "the event Dreamt is unknown"],
    ["what is no event", 7, "it is no event of a session"],
    [
      "an event with a bad field",
      { _tag: "Dropped", messages: -1, decisions: 0 },
      "the event Dropped is not as it should be"
    ],
    ["an event that cannot follow", { _tag: "Dropped", messages: 9, memory: {} }, "it keeps more than there is"],
    ["a summary of nothing", summaryOf([99]), "not there"],
    ["a newer version", { _tag: "Opened", version: 3 }, "it is of version 3, and only 2 is known here"],
    ["an older version", { _tag: "Opened", version: 1 }, "it is of version 1, and only 2 is known here"]
  ]
  for (const [what, event, reason] of cases) {
    it.effect(`${what} is named with its line`, () =>
      Effect.gen(function*() {
        const store = yield* OneLog.memory
        yield* play(yield* open(store), 1)
        const { length } = yield* eventsOf(store)
        yield* store.append([event])
        const error = yield* Effect.flip(open(store))
        assert.strictEqual(error._tag, "SessionUnreadable")
        assert.include(error.message, `memory, session, line ${length + 1}: `)
        assert.include(error.message, reason)
      }))
  }

  it.effect("an unknown event that may be skipped is skipped, before a snapshot and after", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const manager = yield* open(store)
      yield* play(manager, 1)
      yield* store.append([{ _tag: "Dreamt", optional: true }])
      const before = yield* manager.export
      assert.deepStrictEqual(yield* (yield* open(yield* copied(store))).export, before)
      yield* SessionLog.snapshot(store)
      const { events, snapshot } = yield* store.read()
      assert.strictEqual(events.length, 0)
      assert.isNotNull(snapshot)
      assert.deepStrictEqual(yield* (yield* open(store)).export, before)
    }))
})

describe("faults that others shipped", () => {
  it.effect("R14 two compactions at once: by hand and by a request in one tick, one runs, the other is CompactionBusy", () =>
    Effect.gen(function*() {
      const { asked, open: answer, service } = yield* gated
      const manager = yield* open(yield* OneLog.memory, service)
      yield* play(manager)
      const fibers = [
        yield* Effect.forkChild(Effect.result(manager.compactNow()), { startImmediately: true }),
        yield* Effect.forkChild(Effect.result(manager.compactNow()), { startImmediately: true })
      ]
      yield* asked
      yield* answer
      const results = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(
        results.map((result) => result._tag === "Failure" ? result.failure._tag : result.success._tag).sort(),
        ["CompactionBusy", "Some"]
      )
    }))

  it.effect("R15 the watermark moves with the summary, in one append, and messages are raw until then", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const { asked, open: answer, service } = yield* gated
      const manager = yield* open(store, service)
      yield* play(manager)
      const before = yield* shown(manager)
      const fiber = yield* Effect.forkChild(manager.compactNow(), { startImmediately: true })
      yield* asked
      // The next message, at once: of the session as it is, and as it is in the log.
      yield* manager.append(turn(9))
      const { prompt } = yield* manager.request
      assert.include(JSON.stringify(prompt.content), "question 1 ")
      const replayed = yield* open(yield* copied(store))
      assert.deepStrictEqual((yield* shown(replayed)).slice(0, before.length), before)
      yield* answer
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* shown(yield* open(yield* copied(store))), yield* shown(manager))
      assert.notDeepEqual((yield* shown(manager)).slice(0, before.length), before)
    }))

  it.effect("R17 every reduction is in the log: after a restart the view is the same", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const small = (given: SessionStore.Log) =>
        ContextManager.open("session", seeded({ settings: { maxTokens: 4_000, maxToolResultBytes: 3_000 } }))
          .pipe(
            OneLog.provide(given)
          )
      const manager = yield* small(store)
      for (let at = 0; at < 12; at++) {
        yield* manager.append(turn(at))
        yield* manager.request
        const replayed = yield* small(yield* copied(store))
        assert.deepStrictEqual(yield* shown(replayed), yield* shown(manager))
        assert.deepStrictEqual(yield* replayed.export, yield* manager.export)
      }
      const { decisions } = yield* manager.view
      assert.includeMembers(decisions.map(({ _tag }) => _tag), ["Cap", "Truncate"])
    }))
})
