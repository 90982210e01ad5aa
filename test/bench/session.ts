import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionLog from "effect-compaction/SessionLog"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/**
 * What a session with a log costs: an append when the log has 1,000, 10,000 and 100,000 events, and opening one with and
 * without a snapshot. `node .ci/ts.mjs test/bench/session.ts`
 */
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "session-bench-"))

const message = (at: number) =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: `${at}: ${"a line of text ".repeat(8)}` })] })

const event = (at: number) =>
  SessionLog.encode({ _tag: "Appended", messages: [{ message: message(at), origin: "caller" }] })

const since = (start: number) => performance.now() - start

const median = (values: ReadonlyArray<number>) => [...values].sort((a, b) => a - b)[values.length >> 1]!

const appends = Effect.gen(function*() {
  const store = yield* SessionStore.makeFile(path.join(folder, "appends"))
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

const settings = { window: 100_000_000 }

const opening = Effect.gen(function*() {
  for (const turns of [1_000, 10_000]) {
    const directory = path.join(folder, `opening-${turns}`)
    const visit = <A>(use: (store: SessionStore.Service) => Effect.Effect<A, unknown>) =>
      Effect.scoped(Effect.flatMap(SessionStore.makeFile(directory, { fsync: "never" }), use))
    const open = (store: SessionStore.Service) =>
      ContextManager.open({ settings }).pipe(Effect.provideService(SessionStore.SessionStore, store))
    yield* visit((store) =>
      Effect.scoped(Effect.gen(function*() {
        const manager = yield* open(store)
        const rounds: Array<number> = []
        for (let at = 0; at < turns; at++) {
          const start = performance.now()
          yield* manager.append(Prompt.fromMessages([message(at)]))
          yield* manager.request
          yield* manager.observe({ inputTokens: { total: 100 * at + 100 } })
          rounds.push(since(start))
        }
        const { events } = yield* store.read({ whole: true })
        console.log(
          `${turns} turns, ${events.length} events: ${
            (1_000 * median(rounds.slice(-200))).toFixed(0)
          } µs a turn at the end`
        )
      }))
    )
    const timed = Effect.fnUntraced(function*(what: string) {
      const rounds: Array<number> = []
      for (let round = 0; round < 3; round++) {
        const start = performance.now()
        yield* visit((store) => Effect.scoped(Effect.flatMap(open(store), (manager) => manager.status)))
        rounds.push(since(start))
      }
      console.log(`open after ${turns} turns, ${what}: ${median(rounds).toFixed(0)} ms`)
    })
    yield* timed("no snapshot")
    yield* visit(SessionLog.snapshot)
    yield* timed("with a snapshot")
  }
})

await Effect.runPromise(
  Effect.scoped(Effect.andThen(appends, opening)).pipe(Effect.provide(NodeServices.layer))
)
fs.rmSync(folder, { recursive: true })
