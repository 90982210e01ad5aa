/**
 * `node .ci/ts.mjs test/bench/commandLine.ts`: what the command line costs, as ratios within one run.
 *
 * - help: the processor time of `--help`, of that of a process that loads `effect/cli` and prints nothing;
 * - replay: the processor time of a replay, of that of reading its session, 3.6 MB with few and with many requests;
 * - import: the most memory that `inspect` of 200 MB held, less that of `inspect` of a small file, of the size of the file.
 *
 * The best round of each counts, since noise only adds.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Format from "effect-compaction/format/Format"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { closeSync, openSync, statSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import * as Replay from "../../src/cli/Replay.ts"
import * as Program from "../cli/program.ts"
import { openAiChat } from "../cli/sessions.ts"

const program = await Program.make()
const at = (name: string): string => join(program.folder, name)

/** What a process used until its end: processor time in ms, and the most memory in bytes. */
const used = (args: ReadonlyArray<string>): { readonly time: number; readonly memory: number } => {
  const report = at("used.json")
  const hook = `import{writeFileSync}from'node:fs';process.on('exit',()=>{const u=process.resourceUsage();`
    + `writeFileSync(${JSON.stringify(report)},JSON.stringify(u))})`
  execFileSync(process.execPath, [`--import=data:text/javascript,${encodeURIComponent(hook)}`, ...args], {
    stdio: ["ignore", "ignore", "inherit"]
  })
  const { maxRSS, systemCPUTime, userCPUTime } = JSON.parse(execFileSync("cat", [report], { encoding: "utf8" }))
  return { time: (userCPUTime + systemCPUTime) / 1_000, memory: maxRSS * 1_024 }
}

const rows: Array<{ readonly figure: string; readonly bar: string; readonly measured: string }> = []
const ratio = (figure: string, bar: number, value: number, of: number, unit: string): void => {
  rows.push({
    figure,
    bar: `≤ ${bar}×`,
    measured: `${(value / of).toFixed(2)}×: ${Math.round(value)} of ${Math.round(of)} ${unit}`
  })
}

const best = (rounds: number, measure: () => number): number =>
  Math.min(...Array.from({ length: rounds }, () => measure()))

const load = `await import(${JSON.stringify(import.meta.resolve("effect/cli"))})`
const loading = best(7, () => used(["--input-type=module", "-e", load]).time)
ratio("--help", 1.5, best(7, () => used([program.bundle, "--help"]).time), loading, "ms")

const run = <A, E>(effect: Effect.Effect<A, E, NodeServices.NodeServices>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, NodeServices.layer))

const timed = async <A>(work: () => Promise<A>) => {
  const start = process.cpuUsage()
  const value = await work()
  const { system, user } = process.cpuUsage(start)
  return { value, time: (system + user) / 1_000 }
}

for (const [count, characters] of [[300, 12_000], [1_640, 2_000]] as const) {
  writeFileSync(at("session.json"), openAiChat({ count, characters }))
  let reading = Number.POSITIVE_INFINITY
  let playing = Number.POSITIVE_INFINITY
  for (let round = 0; round < 7; round++) {
    const read = await timed(() => run(Format.read(at("session.json"))))
    const policy = Replay.standardPolicy({ window: 200_000 })
    reading = Math.min(reading, read.time)
    playing = Math.min(playing, (await timed(() => run(Replay.play(read.value, { policy })))).time)
  }
  ratio(`replay, ${count} requests`, 2, reading + playing, reading, "ms")
}

const huge = openSync(at("huge.jsonl"), "w")
const text = "src/format/Reader.ts:42: every result is named after the latest earlier call with its id\n".repeat(220)
const line = (uuid: string, parentUuid: string | null, role: string, content: unknown) =>
  writeSync(huge, `${JSON.stringify({ type: role, uuid, parentUuid, sessionId: "s", message: { role, content } })}\n`)
line("r0", null, "user", "Go on.")
for (let n = 1; n <= 10_000; n++) {
  line(`a${n}`, `r${n - 1}`, "assistant", [{ type: "tool_use", id: `t${n}`, name: "Read", input: { n } }])
  line(`r${n}`, `a${n}`, "user", [{ type: "tool_result", tool_use_id: `t${n}`, content: `${n}${text}` }])
}
closeSync(huge)
const idle = best(3, () => used([program.bundle, "inspect", at("session.json")]).memory)
const most = best(3, () => used([program.bundle, "inspect", at("huge.jsonl")]).memory)
ratio("import of 200 MB", 2, (most - idle) / 1e6, statSync(at("huge.jsonl")).size / 1e6, "MB")

console.table(rows)
program.remove()
