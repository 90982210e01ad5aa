/**
 * What sessions cost beyond one machine, beside files: an append of 1, 50 and 500 conversations at once, opening after 1,000
 * and 40,000 turns, and runners that are killed while conversations go on. `npm run bench:scale -- [append|open|kill] …`, with a
 * PostgreSQL in `POSTGRES_URL`. Times are those of this machine; what counts is one beside the other.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionLog from "effect-compaction/SessionLog"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { killing } from "../cluster/killing.ts"
import * as Postgres from "../session/postgres.ts"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "scale-bench-"))

const stores = {
  files: Layer.provide(SessionStore.layerFile(path.join(folder, "files")), NodeServices.layer),
  PostgreSQL: Layer.provide(SessionStore.layerSql({ prefix: `bench${process.pid}_` }), Postgres.layer())
}

const quantiles = (values: ReadonlyArray<number>): string => {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return `p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms`
}

const event: Schema.Json = { _tag: "Noted", text: "a line of text ".repeat(30) }

const append = Effect.gen(function*() {
  for (const [name, layer] of Object.entries(stores)) {
    for (const conversations of [1, 50, 500]) {
      yield* Effect.gen(function*() {
        const store = yield* SessionStore.SessionStore
        const logs = yield* Effect.forEach(
          Array.from({ length: conversations }, (_, at) => `append-${conversations}-${at}`),
          (id) => store.open(id),
          { concurrency: 8 }
        )
        const times: Array<number> = []
        const rounds = Math.max(4, 400 / conversations)
        const start = performance.now()
        yield* Effect.forEach(logs, (log) =>
          Effect.gen(function*() {
            for (let round = 0; round < rounds; round++) {
              const from = performance.now()
              yield* log.append([event])
              times.push(performance.now() - from)
            }
          }), { concurrency: "unbounded" })
        const seconds = (performance.now() - start) / 1_000
        console.log(
          `append, ${name}, ${conversations} at once: ${quantiles(times)}, ${
            (times.length / seconds).toFixed(0)
          } a second`
        )
      }).pipe(Effect.scoped, Effect.provide(layer))
    }
  }
})

const settings = { window: 200_000 }

const turn = (at: number) =>
  Prompt.fromMessages([
    Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: `${at}: ${"why ".repeat(20)}` })] }),
    Prompt.makeMessage("assistant", { content: [Prompt.makePart("text", { text: `${at}: ${"so ".repeat(120)}` })] })
  ])

/** The events of a session of so many turns. */
const eventsOf = (turns: number) =>
  Effect.scoped(Effect.gen(function*() {
    const store = yield* SessionStore.makeMemory
    const manager = yield* Effect.provideService(
      ContextManager.open("made", { settings }),
      SessionStore.SessionStore,
      store
    )
    for (let at = 0; at < turns; at++) {
      yield* manager.append(turn(at))
      if (at % 10 === 0) yield* manager.request
    }
    return (yield* store.read("made")).events
  }))

const open = Effect.gen(function*() {
  for (const turns of [1_000, 40_000]) {
    const events = yield* eventsOf(turns)
    for (const [name, layer] of Object.entries(stores)) {
      yield* Effect.gen(function*() {
        const id = `open-${turns}`
        const store = yield* SessionStore.SessionStore
        yield* Effect.scoped(Effect.flatMap(store.open(id), (log) =>
          Effect.gen(function*() {
            for (let at = 0; at < events.length; at += 100) yield* log.append(events.slice(at, at + 100))
          })))
        const timed = Effect.fnUntraced(function*(what: string) {
          const times: Array<number> = []
          for (let round = 0; round < 5; round++) {
            const start = performance.now()
            yield* Effect.scoped(Effect.flatMap(ContextManager.open(id, { settings }), (manager) => manager.request))
            times.push(performance.now() - start)
          }
          console.log(`open and request, ${name}, ${turns} turns, ${what}: ${quantiles(times)}`)
        })
        yield* timed("no snapshot")
        yield* Effect.scoped(Effect.flatMap(store.open(id), SessionLog.snapshot))
        yield* timed("with a snapshot")
      }).pipe(Effect.provide(layer))
    }
  }
})

const kill = Effect.gen(function*() {
  const seconds = Number(process.env["BENCH_SECONDS"] ?? 60)
  for (const runners of [2, 3]) {
    const { kills, moved, times, turns, wrong } = yield* killing({
      runners,
      conversations: 200,
      milliseconds: seconds * 1_000,
      every: 6_000
    })
    console.log(
      `${runners} runners, 200 conversations, ${seconds} s, ${kills} killed: ${turns} turns, wrong ${wrong.length}; `
        + `a turn ${quantiles(times)}; ${moved.length} moved, answered after the kill ${quantiles(moved)}`
    )
    for (const each of wrong.slice(0, 5)) console.log(`  ${each}`)
  }
}).pipe(Effect.scoped, Effect.provide(Postgres.layer()))

const all: Readonly<Record<string, Effect.Effect<void, unknown>>> = { append, open, kill }

const program = Effect.gen(function*() {
  const asked = process.argv.slice(2)
  for (const [name, bench] of Object.entries(all)) {
    if (asked.length === 0 || asked.includes(name)) yield* bench
  }
})

try {
  await Effect.runPromise(program)
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
