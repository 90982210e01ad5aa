/**
 * Runners of their own processes that are killed again and again while conversations go on, and what of it must not be seen:
 * by the example in docs/examples/cluster, against a database of its own.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as ClusterConversations from "effect-compaction/ClusterConversations"
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import { createServer } from "node:net"
import { cluster } from "../../docs/examples/cluster/conversations.ts"
import * as Program from "../session/program.ts"
import { database } from "./database.ts"

/** The runner of the example as one file. */
const bundled = Effect.acquireRelease(
  Effect.sync(() => Program.build("docs/examples/cluster/runner.ts")),
  (outfile) => Effect.sync(() => fs.rmSync(outfile, { force: true }))
)

const freePort = Effect.promise(() =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" ? address?.port ?? 0 : 0))
    })
  })
)

/** Starts a runner, and waits until it listens. */
const started = (outfile: string, url: string) =>
  Effect.flatMap(freePort, (port) =>
    Effect.promise(() =>
      new Promise<ChildProcess>((resolve, reject) => {
        const child = spawn(process.execPath, [outfile, String(port)], {
          env: { ...process.env, POSTGRES_URL: url },
          stdio: ["ignore", "pipe", "inherit"]
        })
        child.stdout.on("data", (bytes) => String(bytes).includes("Listening") ? resolve(child) : undefined)
        child.once("exit", (code) => reject(new Error(`a runner ended with ${code}`)))
      })
    ))

const texts = ({ content }: Prompt.Prompt) =>
  content.map(({ content }) =>
    typeof content === "string" ? content : content.map((part) => part.type === "text" ? part.text : "").join("")
  )

/** What was done, and what was wrong. */
interface Report {
  readonly turns: number
  readonly kills: number
  /** What a conversation holds that it must not, or lacks. */
  readonly wrong: ReadonlyArray<string>
  /** How long each call took, in milliseconds. */
  readonly times: ReadonlyArray<number>
  /** How long after a kill those calls were answered that were under way then and took more than a second. */
  readonly moved: ReadonlyArray<number>
}

/** Lets conversations go on for some time while a runner is killed every so often; then looks at all of them. */
export const killing = Effect.fnUntraced(function*(options: {
  readonly runners: number
  readonly conversations: number
  readonly milliseconds: number
  readonly every: number
}) {
  const outfile = yield* bundled
  const { url } = yield* database
  const runners: Array<ChildProcess> = []
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const runner of runners) runner.kill("SIGKILL")
    })
  )
  // One after the other: the first makes the tables.
  for (let at = 0; at < options.runners; at++) runners.push(yield* started(outfile, url))
  const Client = ClusterConversations.layer.pipe(
    Layer.provide(cluster({ runnerAddress: Option.none() }, true)),
    Layer.provide(PgClient.layer({ url: Redacted.make(url) }))
  )
  const kills: Array<number> = []
  const calls: Array<{ readonly from: number; readonly to: number }> = []
  const end = performance.now() + options.milliseconds
  const kill = Effect.gen(function*() {
    while (performance.now() + options.every < end) {
      yield* Effect.sleep(options.every)
      kills.push(performance.now())
      runners.shift()?.removeAllListeners("exit").kill("SIGKILL")
      runners.push(yield* started(outfile, url))
    }
  })
  const converse = Effect.fnUntraced(function*(id: string) {
    const chat = (yield* ClusterConversations.ClusterConversations).chat(id)
    let turns = 0
    const wrong: Array<string> = []
    while (performance.now() < end) {
      const from = performance.now()
      const said = yield* chat.say(`turn ${turns}`, { key: `${id}-${turns}` })
      calls.push({ from, to: performance.now() })
      if (said !== `I heard: turn ${turns}`) wrong.push(`${id}: ${said} to turn ${turns}`)
      turns++
    }
    const expected = Array.from({ length: turns }, (_, at) => [`turn ${at}`, `I heard: turn ${at}`]).flat()
    const found = texts(yield* chat.history)
    if (JSON.stringify(found) !== JSON.stringify(expected)) {
      wrong.push(`${id}: ${found.length} messages, not ${expected.length}; ${found.slice(-4).join(" | ")}`)
    }
    return { turns, wrong }
  })
  const ids = Array.from({ length: options.conversations }, (_, at) => `conversation-${at}`)
  const [ended] = yield* Effect.all([Effect.forEach(ids, converse, { concurrency: "unbounded" }), kill], {
    concurrency: 2
  }).pipe(Effect.provide(Client))
  const report: Report = {
    turns: ended.reduce((sum, { turns }) => sum + turns, 0),
    kills: kills.length,
    wrong: ended.flatMap(({ wrong }) => wrong),
    times: calls.map(({ from, to }) => to - from),
    moved: calls.flatMap(({ from, to }) => {
      const at = kills.findLast((at) => from < at && at < to)
      return at === undefined || to - from < 1_000 ? [] : [to - at]
    })
  }
  return report
})
