/** `replay --summarizer`, as a process; what takes time, without one. */
import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Replay from "../../src/cli/Replay.ts"
import * as SummarizerInput from "../../src/cli/SummarizerInput.ts"
import * as Program from "./program.ts"
import { decode } from "./report.ts"
import { openAiChat } from "./sessions.ts"

describe("a command that does not answer", () => {
  it.effect("is killed when its time is over, each time, and the ladder serves alone", () =>
    Effect.gen(function*() {
      const ran = { started: 0, killed: 0 }
      const spawner = ChildProcessSpawner.make(() =>
        Effect.acquireRelease(
          Effect.sync(() => {
            ran.started++
            return ChildProcessSpawner.makeHandle({
              pid: ChildProcessSpawner.ProcessId(ran.started),
              exitCode: Effect.never,
              isRunning: Effect.succeed(true),
              kill: () => Effect.void,
              stdin: Sink.drain,
              stdout: Stream.never,
              stderr: Stream.never,
              all: Stream.never,
              getInputFd: () => Sink.drain,
              getOutputFd: () => Stream.never,
              unref: Effect.succeed(Effect.void)
            })
          }),
          () => Effect.sync(() => ran.killed++)
        )
      )
      const session = yield* Effect.fromResult(
        Format.fromString(openAiChat({ count: 60, characters: 2_000 }), { file: "s.json" })
      )
      const choice = { _tag: "command", command: "never" } as const
      const made = yield* SummarizerInput.make(choice).pipe(
        Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, spawner)
      )
      const counted = SummarizerInput.counted(made!)
      const settings = { window: 32_000, summary: { timeout: "1 hour", maxFailures: 2 } }
      const playing = yield* Effect.forkChild(
        Replay.play(session, { policy: Replay.standardPolicy(settings) }).pipe(
          Effect.provideService(Summarizer.Summarizer, counted.service)
        )
      )
      // Each wait of the replay is for one command; the time of the test goes on only here.
      for (let hours = 0; hours < 10 && playing.pollUnsafe() === undefined; hours++) yield* TestClock.adjust("1 hour")
      const { report } = yield* Fiber.join(playing)
      assert.deepStrictEqual(ran, { started: 2, killed: 2 })
      assert.strictEqual(
        counted.said(),
        "summaries: 2 asked for, 2 failed; the last reason: it took longer than summary.timeout"
      )
      const plain = yield* Replay.play(session, { policy: Replay.standardPolicy({ window: 32_000 }) })
      assert.deepStrictEqual(report.rows, plain.report.rows)
    }))
})

describe("replay --summarizer", () => {
  let program: Program.Program
  beforeAll(async () => {
    program = await Program.make()
    program.write("s.json", openAiChat({ count: 90, characters: 2_000 }))
  })
  afterAll(() => program.remove())

  const replay = (...args: ReadonlyArray<string>) => program.run(["replay", "--window", "32000", ...args, "s.json"])

  it("none is as if it were not given", async () => {
    const plain = await replay("--json")
    assert.deepStrictEqual(await replay("--json", "--summarizer", "none"), plain)
    assert.strictEqual(decode(plain.stdout).totals.absorbed, 0)
  })

  it("extractive absorbs, and says how often it was asked", async () => {
    const { totals } = decode((await replay("--json", "--summarizer", "extractive")).stdout)
    assert.isAbove(totals.absorbed, 20)
    assert.strictEqual(totals.violations, 0)
    const { code, stdout } = await replay("--summarizer", "extractive")
    assert.strictEqual(code, 0)
    assert.match(stdout, /, \d+ absorbed; /)
    assert.match(stdout, /^summaries: \d+ asked for, 0 failed$/m)
  })

  it("a command reads the span and the directive, and what it prints is the summary", async () => {
    const { stdout } = await replay("--summarizer", "command:tee asked.txt > /dev/null; echo '## State'; echo '- done'")
    assert.match(stdout, /^summaries: \d+ asked for, 0 failed$/m)
    assert.match(stdout, /, \d+ absorbed; /)
    const asked = readFileSync(join(program.folder, "asked.txt"), "utf8")
    assert.isTrue(asked.startsWith("<conversation>\n["))
    const [, behind = ""] = asked.split("</conversation>\n\n")
    assert.isTrue(behind.startsWith(Summarizer.directive))
  })

  const failures: ReadonlyArray<readonly [string, ReadonlyArray<string>, RegExp]> = [
    ["ends with another exit code than 0", ["command:echo no luck >&2; exit 3"], /ended with exit code 3: no luck/],
    ["does not exist", ["command:no-such-command-here"], /ended with exit code 127/]
  ]
  for (const [name, args, said] of failures) {
    it(`a command that ${name} is a summary that failed, and the ladder serves alone`, async () => {
      const { code, stdout } = await replay("--summarizer", ...args)
      assert.strictEqual(code, 0)
      assert.match(stdout, said)
      const plain = await replay()
      assert.strictEqual(stdout.replace(/^summaries: .*\n/m, ""), plain.stdout)
    })
  }

  it("a summarizer or a key that does not exist is refused", async () => {
    const wrong = await replay("--summarizer", "command:")
    assert.strictEqual(wrong.code, 2)
    assert.match(wrong.stderr, /write extractive, none, or command:/)
    const key = await replay("--summary", "trigge=0.7")
    assert.strictEqual(key.code, 1)
    assert.match(key.stderr, /--summary/)
    assert.match(key.stderr, /summary\.trigge/)
  })
})
