import { assert, describe, it } from "@effect/vitest"
import type * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as ToolResult from "effect-compaction/ToolResult"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Text from "../../src/text/text.ts"
import { seed } from "../seed.ts"
import { answers, calls, prompt, result } from "./conversation.ts"

const digits = "0123456789"
const face = "\u{1f600}"

const cuts: ReadonlyArray<readonly [name: string, text: string, cut: ToolResult.Cut, expected: string]> = [
  ["head", digits, { k: 4, shape: "head" }, "[truncated: ~2 tokens] 0123..."],
  ["head of nothing", digits, { k: 0, shape: "head" }, "[truncated: ~2 tokens] ..."],
  ["head longer than the text", "abc", { k: 9, shape: "head" }, "[truncated: ~0 tokens] abc..."],
  ["head between a pair", `ab${face}cd`, { k: 3, shape: "head" }, "[truncated: ~1 tokens] ab..."],
  ["head behind a pair", `ab${face}cd`, { k: 4, shape: "head" }, `[truncated: ~1 tokens] ab${face}...`],
  ["head at a lone half", "ab\ud83dcd", { k: 3, shape: "head" }, "[truncated: ~1 tokens] ab\ud83d..."],
  ["both ends", digits, { k: 4, shape: "headTail" }, "[truncated: ~2 tokens] 01\n...[6 chars omitted]...\n89"],
  ["both ends, odd", digits, { k: 5, shape: "headTail" }, "[truncated: ~2 tokens] 01\n...[5 chars omitted]...\n789"],
  ["both ends of nothing", digits, { k: 0, shape: "headTail" }, "[truncated: ~2 tokens] \n...[10 chars omitted]...\n"],
  ["both ends, one unit", digits, { k: 1, shape: "headTail" }, "[truncated: ~2 tokens] \n...[9 chars omitted]...\n9"],
  [
    "both ends inside pairs: one unit earlier, the number stays",
    `a${face}bcd${face}e`,
    { k: 4, shape: "headTail" },
    `[truncated: ~2 tokens] a\n...[5 chars omitted]...\n${face}e`
  ],
  [
    "a place for the whole",
    digits,
    { k: 4, shape: "head", locator: "/tmp/full.txt" },
    "[truncated: ~2 tokens - read /tmp/full.txt for the full result] 0123..."
  ],
  [
    "a place for the whole, both ends",
    digits,
    { k: 2, shape: "headTail", locator: "x" },
    "[truncated: ~2 tokens - read x for the full result] 0\n...[8 chars omitted]...\n9"
  ],
  ["thousands of tokens", "x".repeat(3_999), { k: 1, shape: "head" }, "[truncated: ~999 tokens] x..."],
  ["one comma", "x".repeat(4_000), { k: 1, shape: "head" }, "[truncated: ~1,000 tokens] x..."],
  [
    "two commas and omitted thousands",
    "x".repeat(4_938_268),
    { k: 2, shape: "headTail" },
    "[truncated: ~1,234,567 tokens] x\n...[4,938,266 chars omitted]...\nx"
  ]
]

const stubs: ReadonlyArray<readonly [name: string, text: string, k: number, expected: string]> = [
  ["a head", "abcdef", 3, "[earlier user message, shortened: abc...]"],
  ["line feeds become spaces", "a\nb\n\nc", 6, "[earlier user message, shortened: a b  c...]"],
  ["trimmed after the cut", "  ab   cd", 6, "[earlier user message, shortened: ab...]"],
  ["a pair is left out whole", `ab${face}`, 3, "[earlier user message, shortened: ab...]"],
  ["nothing", "abc", 0, "[earlier user message, shortened: ...]"]
]

describe("cuts", () => {
  for (const [name, text, cut, expected] of cuts) {
    it(name, () => assert.strictEqual(ToolResult.truncate(text, cut), expected))
  }
  for (const [name, text, k, expected] of stubs) {
    it(`stub: ${name}`, () => assert.strictEqual(Text.stubbed(text, k), expected))
  }
})

describe("cutOf", () => {
  const rows: ReadonlyArray<
    readonly [name: string, settings: Settings.Input, text: string, expected: ToolResult.Cut | undefined]
  > = [
    ["characters", {}, "x".repeat(251), { k: 250, shape: "head" }],
    ["exactly short enough", {}, "x".repeat(250), undefined],
    ["the shape", { shape: "headTail" }, "x".repeat(251), { k: 250, shape: "headTail" }],
    ["exempt", { exemptTools: ["read"] }, "x".repeat(9_999), undefined],
    ["another tool is exempt", { exemptTools: ["grep"] }, "x".repeat(9_999), { k: 250, shape: "head" }],
    ["tokens: four characters each", { budgetTokens: 100 }, "x".repeat(401), { k: 400, shape: "head" }],
    ["tokens come before characters", { budgetTokens: 100, truncateChars: 1 }, "x".repeat(400), undefined],
    ["its own budget first", { budgetTokens: 1, budgetByTool: { read: 10 } }, "x".repeat(41), { k: 40, shape: "head" }],
    ["a tool named like a property", { budgetByTool: { constructor: 10 } }, "x".repeat(251), { k: 250, shape: "head" }],
    // 400 wide characters cost 400 tokens, four times the budget: a quarter of them is kept.
    ["tokens, where a character costs more", { budgetTokens: 100 }, "好".repeat(900), { k: 100, shape: "head" }],
    ["no characters", { truncateChars: 0 }, "x", { k: 0, shape: "head" }]
  ]
  for (const [name, settings, text, expected] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const pass = yield* Stage.fromPrompt(prompt(calls("a"), answers(result("a", text))), {
          settings: seed(settings)
        })
        const { transcript } = pass.view
        assert.deepStrictEqual(ToolResult.cutOf(pass.settings, transcript, transcript.entries[1]!), expected)
      }))
  }
})

describe("replaceResult", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }
  const other = { type: "reference", id: 7 }

  it("puts text in place of text", () => {
    const part = result("a", "long")
    const replaced = Text.replaceResult(part, "short")
    assert.deepStrictEqual({ ...replaced }, { ...part, result: "short" })
    assert.strictEqual(part.result, "long")
  })

  it("puts text in place of any structure", () => {
    assert.strictEqual(Text.replaceResult(result("a", { rows: [1, 2] }), "short").result, "short")
    assert.strictEqual(Text.replaceResult(result("a", [1, 2]), "short").result, "short")
    assert.strictEqual(Text.replaceResult(result("a", undefined), "short").result, "short")
  })

  it("keeps every block that is not text, the same object in the same order", () => {
    const blocks = [image, { type: "text", text: "one", cache: true }, other, { type: "text", text: "two" }]
    const replaced = Text.replaceResult(result("a", blocks), "short").result
    assert.isArray(replaced)
    const kept = replaced as ReadonlyArray<unknown>
    assert.strictEqual(kept.length, 3)
    assert.strictEqual(kept[0], image)
    assert.deepStrictEqual(kept[1], { type: "text", text: "short", cache: true })
    assert.strictEqual(kept[2], other)
  })

  it("puts the text first where there was none", () => {
    const replaced = Text.replaceResult(result("a", [image]), "short").result as ReadonlyArray<unknown>
    assert.deepStrictEqual(replaced[0], { type: "text", text: "short" })
    assert.strictEqual(replaced[1], image)
  })

  it("makes blocks that are all text one string", () => {
    const blocks = [{ type: "text", text: "one" }, { type: "text", text: "two" }]
    assert.strictEqual(Text.ofResult(result("a", blocks)), "onetwo")
    assert.strictEqual(Text.replaceResult(result("a", blocks), "short").result, "short")
  })

  it("replaces what the model reads too, since a provider may send either", () => {
    const text = Prompt.makePart("text", { text: "for the model" })
    const file = Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([1]) })
    const plain: Prompt.ToolResultPart = { ...result("a", { whole: "x" }), modelOutput: [text] }
    assert.strictEqual(Text.ofResult(plain), "for the model")
    const first = Text.replaceResult(plain, "short")
    assert.strictEqual(first.result, "short")
    assert.isUndefined(first.modelOutput)
    const second = Text.replaceResult({ ...plain, modelOutput: [file, text] }, "short")
    assert.strictEqual(second.modelOutput?.[0], file)
    assert.deepInclude(second.modelOutput?.[1], { type: "text", text: "short" })
  })

  it("strips the reference to the item a provider stored, and nothing else of the options", () => {
    const options = { openai: { itemId: "fc_1", status: "done" }, anthropic: { cacheControl: { type: "ephemeral" } } }
    const part = Prompt.makePart("tool-result", {
      id: "a",
      name: "read",
      isFailure: true,
      result: "long",
      providerExecuted: false,
      options
    })
    const replaced = Text.replaceResult(part, "short")
    assert.deepStrictEqual(replaced.options, { openai: { status: "done" }, anthropic: options.anthropic })
    assert.deepStrictEqual(part.options, options)
    assert.isTrue(replaced.isFailure)
  })
})
