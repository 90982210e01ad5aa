import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as TestClock from "effect/testing/TestClock"
import * as Progress from "../../src/cli/Progress.ts"

const clear = "\r\u001b[2K"

/** What is written on standard error by five updates, 200 ms apart, the first of them at once. */
const written = (stderrIsTerminal: boolean, interval: number) =>
  Effect.gen(function*() {
    const out: Array<string> = []
    const stdio = Stdio.make({
      args: Effect.succeed([]),
      stdin: Effect.die("not read") as never,
      stdout: () => Sink.drain,
      stderr: () => Sink.forEach((chunk) => Effect.sync(() => void out.push(String(chunk)))),
      stderrIsTerminal: Effect.succeed(stderrIsTerminal)
    })
    const progress = yield* Effect.provideService(Progress.make, Stdio.Stdio, stdio)
    for (let at = 0; at < 8; at++) {
      yield* progress.update(String(at))
      yield* TestClock.adjust(interval)
    }
    yield* progress.end
    yield* progress.end
    return out
  })

describe("Progress", () => {
  it.effect("says nothing in the first half second, then at most every tenth of a second, and cleans up", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* written(true, 90),
        [`${clear}6`, clear]
      )
    }))
  it.effect("is silent for what takes no time", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* written(true, 10), [])
    }))
  it.effect("is silent where there is no terminal", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* written(false, 1_000), [])
    }))
})
