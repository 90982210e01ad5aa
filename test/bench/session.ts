import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Policy from "effect-compaction/Policy"
import * as SessionLog from "effect-compaction/SessionLog"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as OneLog from "../session/oneLog.ts"

/**
 * What a session with a log costs: an append when the log has 1,000, 10,000 and 100,000 events, and opening one with and
 * without a snapshot. `node .ci/ts.mjs test/bench/session.ts`
 */
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "session-bench-"))

const message = (at: number) =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: `${at}: ${"a line of text ".repeat(8)}` })] })

const event = (at: number) =>
  SessionLog.encode({
    _tag: "Appended",
    messages: [{ message: message(at), origin: "caller" }],
    caps: [],
    price: { system: 0, messages: 30 }
  })

const since = (start: number) => performance.now() - start

const median = (values: ReadonlyArray<number>) => [...values].sort((a, b) => a - b)[values.length >> 1]!

const appends = Effect.gen(function*() {
  const store = yield* SessionStore.openDirectory(path.join(folder, "appends"))
  let count = 0
  const fill = Effect.fnUntraced(function*(to: number) {
    while (count < to) {
      const batch = Array.from({ length: Math.min(500, to - count) }, (_, at) => event(count + at))
      yield* store.append(batch)
      count += batch.length
    }
  })
  for (const size of [1_000, 1_000, 10_000, 100_000]) {
    yield* fill(size)
    const rounds: Array<number> = []
    for (let round = 0; round < 9; round++) {
      const start = performance.now()
      for (let at = 0; at < 200; at++) yield* store.append([event(count++)])
      rounds.push(since(start) / 200)
    }
    console.log(`append at ${size} events: ${(1_000 * median(rounds)).toFixed(0)} µs`)
  }
})

const settings = { window: 200_000 }

/** A turn of an agent: what a person says now and then, a call, and its result. */
const turn = (at: number): ReadonlyArray<Prompt.Message> => [
  ...(at % 50 === 0 ? [message(at)] : []),
  Prompt.makeMessage("assistant", {
    content: [
      Prompt.makePart("text", { text: `I am going to look at file ${at}.` }),
      Prompt.makePart("tool-call", {
        id: `call_${at}`,
        name: "read",
        params: { path: `src/${at}.ts` },
        providerExecuted: false
      })
    ]
  }),
  Prompt.makeMessage("tool", {
    content: [Prompt.makePart("tool-result", {
      id: `call_${at}`,
      name: "read",
      isFailure: false,
      result: `${at}: ${"a line of text ".repeat(80)}`,
      providerExecuted: false
    })]
  })
]

const opening = Effect.gen(function*() {
  for (const turns of [1_000, 10_000, 40_000]) {
    const directory = path.join(folder, `opening-${turns}`)
    const visit = <A>(use: (store: SessionStore.Log) => Effect.Effect<A, unknown>) =>
      Effect.scoped(Effect.flatMap(SessionStore.openDirectory(directory, { fsync: "never" }), use))
    const open = (store: SessionStore.Log) => ContextManager.open("session", { settings }).pipe(OneLog.provide(store))
    const goOn = (
      manager: ContextManager.ContextManager<Policy.PassError | SessionStore.SessionLost>,
      from: number,
      to: number
    ) =>
      Effect.gen(function*() {
        const rounds: Array<number> = []
        for (let at = from; at < to; at++) {
          const start = performance.now()
          yield* manager.append(Prompt.fromMessages(turn(at)))
          const { count } = yield* manager.request
          yield* manager.observe({ inputTokens: { total: count.tokens } })
          rounds.push(since(start))
        }
        return rounds
      })
    yield* visit((store) =>
      Effect.scoped(Effect.gen(function*() {
        const rounds = yield* goOn(yield* open(store), 0, turns)
        const { events } = yield* store.read({ whole: true })
        const { size } = fs.statSync(path.join(directory, "log.jsonl"))
        console.log(
          `${turns} turns, ${events.length} events, ${(size / 2 ** 20).toFixed(0)} MB: ${
            (1_000 * median(rounds.slice(-200))).toFixed(0)
          } µs a turn at the end`
        )
      }))
    )
    const timed = Effect.fnUntraced(function*(what: string) {
      const rounds: Array<number> = []
      for (let round = 0; round < 5; round++) {
        const start = performance.now()
        yield* visit((store) => Effect.scoped(Effect.flatMap(open(store), (manager) => manager.request)))
        rounds.push(since(start))
      }
      console.log(`open and request after ${turns} turns, ${what}: ${median(rounds).toFixed(0)} ms`)
    })
    yield* timed("no snapshot")
    yield* visit(SessionLog.snapshot)
    const { size } = fs.statSync(path.join(directory, "snapshot.json"))
    yield* timed(`with a snapshot (${(size / 2 ** 10).toFixed(0)} KB)`)
    yield* visit((store) => Effect.scoped(Effect.flatMap(open(store), (manager) => goOn(manager, turns, turns + 200))))
    yield* timed("200 turns after the snapshot")
  }
})

await Effect.runPromise(
  Effect.scoped(Effect.andThen(appends, opening)).pipe(Effect.provide(NodeServices.layer))
)
fs.rmSync(folder, { recursive: true })
