import { assert, describe, it } from "@effect/vitest"
import * as Overflow from "effect-compaction/Overflow"
import * as AiError from "effect/ai/AiError"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { fromResponse } from "./errors.ts"

interface Row {
  readonly provider: string
  readonly case: string
  readonly status: number
  readonly overflow: boolean
  readonly tokens?: number
  readonly maximum?: number
  readonly source: string
  readonly body: unknown
}

// The file is this test's own.
const rows = JSON.parse(
  readFileSync(fileURLToPath(new URL("../fixtures/overflow/bodies.json", import.meta.url)), "utf8")
) as ReadonlyArray<Row>

describe("what providers answer", () => {
  it("is known of each of them, of both kinds", () => {
    const providers = (overflow: boolean) =>
      new Set(rows.flatMap((row) => row.overflow === overflow ? row.provider : []))
    const all = [
      "anthropic",
      "openai",
      "azure",
      "gemini",
      "bedrock",
      "mistral",
      "groq",
      "deepseek",
      "openrouter",
      "xai"
    ]
    for (const provider of all) {
      assert.isTrue(providers(true).has(provider), provider)
      assert.isTrue(providers(false).has(provider), provider)
    }
    assert.isTrue(rows.every((row) => row.source !== ""))
  })

  for (const { body, maximum, overflow, provider, status, tokens, ...row } of rows) {
    it(`${provider}, ${row.case}: ${overflow ? "does not fit" : "something else"}`, () => {
      const error = fromResponse(provider, status, body)
      assert.strictEqual(Overflow.isContextOverflow(error), overflow)
      if (!overflow) return
      assert.deepStrictEqual(Overflow.refusedOf(Overflow.textOf(error)), {
        ...(tokens === undefined ? undefined : { tokens }),
        ...(maximum === undefined ? undefined : { maximum })
      })
      // The words alone tell it too, where the adapter keeps neither codes nor the body.
      const { reason } = error
      const bare = AiError.make({
        module: provider,
        method: "generateText",
        reason: new AiError.InvalidRequestError({ description: "description" in reason ? reason.description : "" })
      })
      assert.isTrue(Overflow.isContextOverflow(bare))
    })
  }

  it("digits without end are no number of tokens, and a long error is read at both ends", () => {
    const endless = "1".repeat(400)
    const texts = [
      `prompt is too long: ${endless} tokens > 200000 maximum`,
      `This model's maximum context length is ${endless} tokens. However, your messages resulted in ${endless} tokens.`,
      `Range of input length should be [1, ${endless}]`,
      "prompt is too long: 9999999999999 tokens > 0 maximum"
    ]
    for (const text of texts) {
      assert.isTrue(Overflow.describes(text))
      for (const value of Object.values(Overflow.refusedOf(text))) assert.isAtMost(value, 1e9)
      assert.isUndefined(Overflow.refusedOf(text).tokens)
    }
    const words = "word ".repeat(20_000)
    const said = "prompt is too long: 210000 tokens > 200000 maximum"
    for (const text of [`${said} ${words}`, `${words} ${said}`]) {
      assert.deepStrictEqual(Overflow.refusedOf(text), { tokens: 210_000, maximum: 200_000 })
    }
  })

  it("a code in the metadata is enough, and is none under a reason of its own", () => {
    const metadata = { openai: { errorCode: "context_length_exceeded" } }
    const make = (reason: AiError.AiErrorReason) => AiError.make({ module: "a", method: "b", reason })
    assert.isTrue(Overflow.isContextOverflow(make(new AiError.InvalidRequestError({ metadata }))))
    assert.isFalse(Overflow.isContextOverflow(make(new AiError.RateLimitError({ metadata }))))
    assert.isFalse(Overflow.isContextOverflow(make(new AiError.QuotaExhaustedError({ metadata }))))
    assert.isFalse(Overflow.isContextOverflow(new Error("prompt is too long: 2 tokens > 1 maximum")))
    assert.isFalse(Overflow.isContextOverflow(undefined))
  })
})
