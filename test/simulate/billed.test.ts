import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Result from "effect/Result"
import { existsSync, readFileSync } from "node:fs"
import { recorded } from "../format/recorded.ts"
import * as Billed from "./billed.ts"

/**
 * The least correlation, and the largest median error, with what was billed. The providers of the Codex sessions lost
 * entries at random (a request that follows seconds later reads the head alone), which no rule predicts.
 */
const sessions: ReadonlyArray<readonly [name: string, correlation: number, medianError: number]> = [
  ["claude-code/opus45-3-compactions.jsonl", 0.95, 0.001],
  ["claude-code/opus45-compact-plus-microcompact.jsonl", 0.95, 0.001],
  ["claude-code/opus45-image-compaction-orphan.jsonl", 0.9, 0.001],
  ["claude-code/opus45-malformed-line.jsonl", 0.99, 0.001],
  ["claude-code/opus48-parallel-calls.jsonl", 0.99, 0.001],
  ["codex/gpt54-591-calls-2-compactions.jsonl", 0.9, 0.01],
  ["codex/gpt54-reasoning-items.jsonl", 0.8, 0.02],
  ["codex/gpt55-543-calls-compaction-item.jsonl", 0.98, 0.01],
  ["codex/gpt55-image-orphan.jsonl", 0.9, 0.03]
]

describe("PromptCache against recorded bills", () => {
  for (const [name, correlation, medianError] of sessions) {
    const path = recorded(name)
    if (!existsSync(path)) {
      it.skip(`${name} (the recorded session is not on this machine)`, () => {})
      continue
    }
    it(name, () => {
      const text = readFileSync(path, "utf8")
      const found = Billed.agreement(Billed.predict(Result.getOrThrow(Format.fromString(text, { file: path })), text))
      assert.isAbove(found.requests, 40)
      assert.isAtLeast(found.correlation, correlation)
      assert.isAtMost(found.medianError, medianError)
    })
  }

  it("the agreement is one where all is predicted, and says which way it is off", () => {
    const pair = (billed: number, predicted: number) => ({ total: 1_000, billed, predicted, pause: 1 })
    const exact = Billed.agreement([pair(0, 500), pair(900, 900), pair(100, 100)])
    assert.deepStrictEqual({ ...exact, correlation: Math.round(exact.correlation * 1e9) / 1e9 }, {
      requests: 2,
      correlation: 1,
      meanError: 0,
      medianError: 0,
      ofBilled: 1,
      less: 0,
      more: 0
    })
    const off = Billed.agreement([pair(0, 0), pair(100, 900), pair(900, 100), pair(500, 500)])
    assert.isBelow(off.correlation, 0)
    assert.deepStrictEqual([off.less, off.more, off.medianError], [1, 1, 0.8])
  })
})
