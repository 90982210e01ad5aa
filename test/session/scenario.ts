import * as ContextManager from "effect-compaction/ContextManager"
import type * as Policy from "effect-compaction/Policy"
import * as SessionLog from "effect-compaction/SessionLog"
import type * as SessionStore from "effect-compaction/SessionStore"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Random from "../properties/Random.ts"
import * as Trace from "../properties/Trace.ts"
import { seeded } from "../seed.ts"
import * as OneLog from "./oneLog.ts"

/** How many operations a session has. */
export const length = 120

const settings = { maxTokens: 3_000, notice: false, summary: { mode: "between", trigger: 0.99 } } as const

export const open = (store: SessionStore.Log) =>
  ContextManager.open("session", seeded({ settings })).pipe(
    Effect.provideService(Summarizer.Summarizer, Summarizer.extractive),
    OneLog.provide(store)
  )

export type Manager = ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>

const turn = (random: Random.Random, at: number): Prompt.Prompt => {
  const id = `call_${at}`
  const words = (count: number) =>
    Array.from({ length: count }, () => random.pick(["alpha", "beta", "gamma\n", "Grüße"]))
  const text = (count: number) => `${at}: ${words(count).join(" ")}`
  return Prompt.fromMessages([
    Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: text(random.below(40)) })] }),
    Prompt.makeMessage("assistant", {
      content: [
        Prompt.makePart("tool-call", { id, name: "read", params: { at }, providerExecuted: false })
      ]
    }),
    Prompt.makeMessage("tool", {
      content: [
        Prompt.makePart("tool-result", {
          id,
          name: "read",
          isFailure: false,
          result: text(random.below(400)),
          providerExecuted: false
        })
      ]
    })
  ])
}

/** One operation of the session of a seed: each is told by its number alone, so that any process can go on. */
export const step = Effect.fnUntraced(function*(
  manager: Manager,
  store: SessionStore.Log,
  seed: number,
  at: number
) {
  const random = Random.make(seed * 1_000 + at)
  if (at % 12 === 3) return yield* SessionLog.snapshot(store)
  if (at % 12 === 0 && at > 0) return yield* Effect.asVoid(manager.compactNow({ commandId: `c${at}` }))
  if (at % 3 === 0) return yield* manager.append(turn(random, at))
  if (at % 3 === 1) return yield* Effect.asVoid(manager.request)
  yield* manager.observe({ inputTokens: { total: 500 + random.below(2_000) } })
})

/** What is compared of a log: not how often it was opened or how long a call took, nor which attempts to compact came to nothing. */
export const essence = (events: ReadonlyArray<Schema.Json>): ReadonlyArray<string> =>
  events.flatMap((event) => {
    // Every event is an object with a tag.
    const { _tag, layout: _, fallback: __, milliseconds: ___, ...rest } = event as {
      readonly [key: string]: Schema.Json
    }
    return _tag === "Opened" || _tag === "CompactionStarted" || _tag === "CompactionEnded"
      ? []
      : [JSON.stringify({ _tag, ...rest })]
  })

/** The state of a session as text: what the model sees, and all that is saved. */
export const shown = (manager: Manager) =>
  Effect.map(
    Effect.all([manager.view, manager.export]),
    ([view, state]) => JSON.stringify([view.items.map(({ message, seq }) => [seq, Trace.written(message)]), state])
  )

/** A session that nothing stopped: its events, and after each operation how many there were and what it showed. */
export const uninterrupted = Effect.fnUntraced(function*(seed: number) {
  const store = yield* OneLog.memory
  const manager = yield* open(store)
  const read = Effect.map(store.read({ whole: true }), ({ events }) => essence(events))
  const counts: Array<number> = []
  const views = new Map([[0, yield* shown(manager)]])
  for (let at = 0; at < length; at++) {
    yield* step(manager, store, seed, at)
    const { length: count } = yield* read
    counts.push(count)
    views.set(count, yield* shown(manager))
  }
  return { events: yield* read, counts, views }
})

export type Uninterrupted = Effect.Success<ReturnType<typeof uninterrupted>>

/**
 * What is wrong with a session that was stopped after `done` operations, or in the next one; and the operation that comes
 * next.
 */
export const verify = Effect.fnUntraced(function*(expected: Uninterrupted, store: SessionStore.Log, done: number) {
  const manager = yield* open(store)
  const events = essence((yield* store.read({ whole: true })).events)
  const wrong: Array<string> = []
  if (events.some((event, at) => event !== expected.events[at])) wrong.push("the log is not that of the same session")
  const view = expected.views.get(events.length)
  if (view === undefined) wrong.push(`${events.length} events are half of an operation`)
  else if (view !== (yield* shown(manager))) wrong.push("the view is another one")
  const before = done === 0 ? 0 : expected.counts[done - 1]!
  if (events.length < before) wrong.push(`${before} events were acknowledged, ${events.length} are there`)
  if (events.length > (expected.counts[done] ?? before)) wrong.push("there is more than was done")
  const next = expected.counts.findIndex((count, at) => at >= done && count > events.length)
  return { wrong, next: next < 0 ? length : next }
})
