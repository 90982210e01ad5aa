/**
 * A rung of one's own in the default ladder: test output that was followed by a green run says nothing any more, so it is
 * shortened before anything else is.
 */
import * as ContextManager from "effect-compaction/ContextManager"
import * as Ladder from "effect-compaction/Ladder"
import * as Rung from "effect-compaction/Rung"
import * as Transcript from "effect-compaction/Transcript"
import * as Prompt from "effect/ai/Prompt"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"

const isGreen = (text: string) => text.includes("0 failed")

/** Proposes one decision after the other; the ladder stops as soon as its target is reached. */
const oldRuns = Rung.propose("old-test-runs", function*(draft) {
  const runs = draft.items.filter((item) => item?.entry?.tool === "test")
  const lastGreen = runs.findLastIndex((item) => item?.entry !== undefined && isGreen(Transcript.textOf(item.entry)))
  for (const item of runs.slice(0, Math.max(0, lastGreen))) {
    if (item === undefined) continue
    yield { _tag: "Truncate", seq: item.seq, at: draft.at, k: 40, shape: "head", bytes: 0 }
  }
})

const run = (id: string, output: string): ReadonlyArray<Prompt.Message> => [
  Prompt.makeMessage("assistant", {
    content: [Prompt.makePart("tool-call", { id, name: "test", params: {}, providerExecuted: false })]
  }),
  Prompt.makeMessage("tool", {
    content: [
      Prompt.makePart("tool-result", { id, name: "test", isFailure: false, result: output, providerExecuted: false })
    ]
  })
]

const program = Effect.gen(function*() {
  const manager = yield* ContextManager.make({
    settings: { maxTokens: 3_000, notice: false, protectedToolResults: 1 },
    ladder: Ladder.progressive.pipe(Ladder.insertBefore("truncate-50", oldRuns))
  })
  yield* manager.append("Make the tests pass.")
  for (let n = 0; n < 4; n++) yield* manager.append(run(`red-${n}`, `12 failed\n${"at line 1\n".repeat(250)}`))
  yield* manager.append(run("green", "240 passed, 0 failed"))
  const { events } = yield* manager.request
  const boundary = events.find((event) => event._tag === "Compacted")
  yield* Console.log(`truncated ${boundary?.truncated ?? 0}, removed ${boundary?.removed ?? 0}`)
})

Effect.runPromise(Effect.scoped(program)).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
