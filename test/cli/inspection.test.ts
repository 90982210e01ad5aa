import { assert, describe, it } from "@effect/vitest"
import * as Estimator from "effect-compaction/Estimator"
import * as Format from "effect-compaction/format/Format"
import type * as Session from "effect-compaction/format/Session"
import * as Result from "effect/Result"
import * as Inspection from "../../src/cli/Inspection.ts"
import { itReads } from "../format/recorded.ts"

const inspect = (session: Session.Session) => Inspection.make(session, Estimator.chars)

describe("Inspection", () => {
  it("counts a body by hand", () => {
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
    const body = {
      system: "Be brief.",
      messages: [
        { role: "user", content: [{ type: "text", text: "Look at this." }, image] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Which one?", signature: "c2ln" },
            { type: "redacted_thinking", data: "b3BhcXVl" },
            { type: "tool_use", id: "t1", name: "grep", input: { a: 1 } },
            { type: "tool_use", id: "t2", name: "view", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: "0123456789", is_error: true },
            { type: "tool_result", tool_use_id: "t2", content: [image, { type: "text", text: "0123456789abcdefghij" }] }
          ]
        },
        { role: "assistant", content: [{ type: "tool_use", id: "t3", name: "grep", input: {} }] },
        { role: "user", content: "Never mind." }
      ]
    }
    const inspection = inspect(Result.getOrThrow(Format.fromString(JSON.stringify(body), { file: "f" })))
    const { findings: _, results, tokens, violations, why: __, ...rest } = inspection
    assert.deepStrictEqual(rest, {
      file: "f",
      format: "anthropic-messages",
      model: null,
      messages: 6,
      entries: 7,
      roles: { system: 1, user: 2, human: 2, assistant: 2, tool: 1 },
      // Texts 9 + 13 + 11, reasoning 10, arguments 7 + 2 + 2, results 10 + 20.
      characters: 84,
      calls: 3,
      images: 2,
      reasoning: { parts: 2, signed: 1, encrypted: 1 },
      usage: null
    })
    const { byTool, largest, ofCharacters, ofTokens, ...size } = results
    assert.deepStrictEqual({ ...size, tokens: 0 }, { count: 2, failures: 1, characters: 30, tokens: 0 })
    assert.strictEqual(ofCharacters, 30 / 84)
    assert.strictEqual(ofTokens, size.tokens / tokens)
    assert.deepStrictEqual(largest.map(({ seq, tool }) => [seq, tool]), [[4, "view"], [3, "grep"]])
    assert.deepStrictEqual(byTool.map(({ count, tool }) => [tool, count]), [["view", 1], ["grep", 1]])
    assert.deepStrictEqual(violations, {
      anthropic: { pairing: 1 },
      openaiChat: { pairing: 1 },
      openaiResponses: { pairing: 1 },
      gemini: { pairing: 1 }
    })
  })

  // Calls, results, images and signatures as the index of the recorded sessions has them.
  itReads("claude-code/opus45-3-compactions.jsonl", (session) => {
    const { calls, images, reasoning, results, usage } = inspect(session)
    assert.deepStrictEqual([calls, results.count, images, reasoning.signed], [206, 206, 0, 225])
    assert.isAbove(usage!.cacheRead!, 1_000_000)
  })
  itReads("codex/gpt55-image-orphan.jsonl", (session) => {
    const { calls, images, results } = inspect(session)
    assert.deepStrictEqual([calls, results.count, images], [153, 152, 1])
  })
})
