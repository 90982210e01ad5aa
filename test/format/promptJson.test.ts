import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as PromptJson from "effect-compaction/format/PromptJson"
import * as Marks from "effect-compaction/Marks"
import * as Chat from "effect/ai/Chat"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { outline } from "./recorded.ts"
import { failure, keeps, plain, prompt, read } from "./wireBodies.ts"

const everything: ReadonlyArray<Prompt.Message> = [
  Prompt.systemMessage({ content: "s", options: { anthropic: { cacheControl: { type: "ephemeral" } } } }),
  Marks.set(Prompt.userMessage({ content: [Prompt.textPart({ text: "u" })] }), { source: "hook", pinned: true }),
  Prompt.userMessage({
    content: [
      Prompt.textPart({ text: "\ud83d\ude00 lone \ud800" }),
      Prompt.filePart({ mediaType: "image/png", data: "AAAA", fileName: "a.png" }),
      Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1, 2, 255]) }),
      Prompt.filePart({ mediaType: "image/png", data: new URL("https://x.test/a.png") })
    ]
  }),
  Prompt.assistantMessage({
    content: [
      Prompt.reasoningPart({ text: "", options: { anthropic: { info: { type: "thinking", signature: "s" } } } }),
      Prompt.textPart({ text: "" }),
      Marks.set(Prompt.textPart({ text: "" }), { raw: { type: "compaction" } }),
      Prompt.toolCallPart({ id: "a", name: "f", params: { deep: [1, null, { x: "y" }] }, providerExecuted: false }),
      Prompt.toolCallPart({ id: "w", name: "g", params: "text", providerExecuted: true }),
      Prompt.toolResultPart({ id: "w", name: "g", isFailure: true, result: [], providerExecuted: true }),
      Prompt.toolApprovalRequestPart({ approvalId: "p", toolCallId: "a" })
    ]
  }),
  Prompt.toolMessage({
    content: [
      Prompt.toolApprovalResponsePart({ approvalId: "p", approved: false, reason: "no" }),
      Prompt.toolApprovalResponsePart({ approvalId: "p", approved: true }),
      Prompt.toolResultPart({
        id: "a",
        name: "f",
        isFailure: false,
        result: { rows: [1] },
        modelOutput: [
          Prompt.textPart({ text: "one" }),
          Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1]) })
        ],
        providerExecuted: false
      })
    ]
  }),
  Prompt.userMessage({ content: [] })
]

describe("PromptJson", () => {
  it("holds every message whole", () => {
    keeps(prompt, everything)
  })

  it("writes what the codec decodes, and reads what it encodes", () => {
    const { value } = PromptJson.write(everything)
    const decoded = Schema.decodeUnknownSync(Prompt.Prompt)(JSON.parse(JSON.stringify(value)))
    assert.deepStrictEqual(plain(decoded.content), plain(everything))
    const encoded = Schema.encodeUnknownSync(Prompt.Prompt)(Prompt.fromMessages(everything))
    assert.deepStrictEqual(plain(read(prompt, JSON.parse(JSON.stringify(encoded))).messages), plain(everything))
  })

  it.effect("reads what a chat exports", () =>
    Effect.gen(function*() {
      const chat = yield* Chat.fromPrompt(everything)
      const session = yield* Effect.fromResult(Format.fromString(yield* chat.exportJson, { file: "chat.json" }))
      assert.strictEqual(session.format, "prompt")
      assert.deepStrictEqual(plain(session.messages), plain(everything))
    }))

  it("reports calls without a result", () => {
    const session = read(prompt, PromptJson.write(everything.slice(0, 4)).value)
    assert.deepStrictEqual(session.findings.map(({ detail }) => detail), ["f (a) has no result"])
    assert.deepStrictEqual(read(prompt, PromptJson.write(everything).value).findings, [])
  })

  it("reads a prompt without messages", () => {
    assert.deepStrictEqual(outline(read(prompt, { content: [] })), [])
  })

  it("writes what is not JSON as near to it as can be, and says so", () => {
    const circular: { self?: unknown } = {}
    circular.self = circular
    const values: ReadonlyArray<readonly [unknown, unknown]> = [
      [3n, "3"],
      [Number.NaN, null],
      [undefined, null],
      [new Date(0), "1970-01-01T00:00:00.000Z"],
      [new Date(Number.NaN), null],
      [new URL("https://x.test/a"), "https://x.test/a"],
      [new Map([["a", 1]]), {}],
      [circular, { self: "[circular]" }],
      [{ a: undefined, b: () => 1 }, { b: null }]
    ]
    for (const [params, expected] of values) {
      const part = Prompt.toolCallPart({ id: "a", name: "f", params, providerExecuted: false })
      const { losses, value } = PromptJson.write([Prompt.assistantMessage({ content: [part] })])
      assert.deepStrictEqual(losses.map(({ detail }) => detail), [
        "messages[0].content[0]: params is not JSON, and is written as near to it as JSON can be"
      ])
      const written: unknown = JSON.parse(JSON.stringify(value)).content[0].content[0].params
      assert.deepStrictEqual(written, expected)
    }
    // Absent members are no loss, and one value may stand in several places.
    const shared = { x: 1 }
    const part = Prompt.toolCallPart({
      id: "a",
      name: "f",
      params: { a: undefined, b: shared, c: shared },
      providerExecuted: false
    })
    assert.deepStrictEqual(PromptJson.write([Prompt.assistantMessage({ content: [part] })]).losses, [])
  })

  const text = { type: "text", text: "t" }
  const bad: ReadonlyArray<readonly [document: unknown, field: string, expected: RegExp]> = [
    [{}, "content", /expected an array, got nothing/],
    [[], "", /expected an object, got an array/],
    [{ content: "t" }, "content", /expected an array, got a string/],
    [{ content: [7] }, "content[0]", /expected a message/],
    [{ content: [{ role: "developer", content: "t" }] }, "content[0].role", /unknown role "developer"/],
    [{ content: [{ role: "user", content: 7 }] }, "content[0].content", /Expected string/],
    [
      { content: [{ role: "user", content: [text, { type: "text", text: 7 }] }] },
      "content[0].content[1].text",
      /string/
    ],
    [{ content: [{ role: "user", content: [{ type: "odd" }] }] }, "content[0].content[0].type", /no odd part/],
    [
      { content: [{ role: "assistant", content: [{ type: "tool-call", id: "a", name: 7, params: {} }] }] },
      "content[0].content[0].name",
      /Expected string/
    ],
    [
      { content: [{ role: "tool", content: [{ type: "tool-result", id: "a", name: "f", result: 1 }] }] },
      "content[0].content[0].isFailure",
      /Missing key/
    ],
    [
      { content: [{ role: "user", content: [{ type: "file", mediaType: "x", data: 7 }] }] },
      "content[0].content[0].data",
      /Expected/
    ]
  ]
  for (const [document, field, expected] of bad) {
    it(`fails at ${field === "" ? "the document" : field}: ${JSON.stringify(document).slice(0, 60)}`, () => {
      const found = failure(prompt, [document, 0])
      assert(found !== "read")
      assert.deepStrictEqual([found.line, found.field], [0, field])
      assert.match(found.expected, expected)
    })
  }

  it("leaves out what a tool had given so far", () => {
    const part = (result: string, more: object = {}) => ({
      type: "tool-result",
      id: "a",
      name: "f",
      isFailure: false,
      providerExecuted: false,
      result,
      ...more
    })
    const session = read(prompt, {
      content: [
        { role: "user", content: "go" },
        {
          role: "assistant",
          content: [{ type: "tool-call", id: "a", name: "f", params: {}, providerExecuted: false }]
        },
        { role: "tool", content: [part("so far", { preliminary: true })] },
        { role: "tool", content: [part("more", { preliminary: true }), part("all", { preliminary: false })] }
      ]
    })
    assert.deepStrictEqual(outline(session), ["user go", "assistant call(a f)", "tool result(a f: \"all\")"])
    assert.deepStrictEqual(session.findings, [
      { kind: "provisional", line: 0, detail: "2 provisional outputs left out: the tool had not answered yet" }
    ])
  })

  it("is found by its shape, which a single message has not", () => {
    const format = (body: unknown) =>
      Result.map(Format.fromString(JSON.stringify(body), { file: "a.json" }), (_) => _.format)
    assert.deepStrictEqual(format({ content: [{ role: "user", content: "t" }] }), Result.succeed("prompt"))
    assert.deepStrictEqual(format({ role: "user", content: [text] }), Result.succeed("openai-chat"))
  })
})
