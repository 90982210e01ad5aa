import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Wire from "effect-compaction/Wire"
import * as Result from "effect/Result"
import { kinds, lines, outline } from "./recorded.ts"

const read = (text: string) => Result.getOrThrow(Format.fromString(text, { file: "f" }))

// The same session in each format: the result of call `b` is in the file before the call.
const user = { role: "user", content: "go" }
const item = (payload: object) => ({ timestamp: "2026-01-01T00:00:00Z", type: "response_item", payload })
const pi = (message: object) => ({ type: "message", timestamp: "2026-01-01T00:00:00Z", message })
const gemini = (role: string, part: object) => ({ role, parts: [part] })
const cases: { readonly [format: string]: string } = {
  "openai-chat": JSON.stringify([
    user,
    { role: "tool", tool_call_id: "b", content: "B" },
    { role: "assistant", tool_calls: [{ id: "b", type: "function", function: { name: "run", arguments: "{}" } }] }
  ]),
  "openai-responses": JSON.stringify([
    { type: "message", role: "user", content: "go" },
    { type: "function_call_output", call_id: "b", output: "B" },
    { type: "function_call", call_id: "b", name: "run", arguments: "{}" }
  ]),
  "anthropic-messages": JSON.stringify({
    system: "x",
    messages: [
      { role: "user", content: [{ type: "tool_result", tool_use_id: "b", content: "B" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "b", name: "run", input: {} }] }
    ]
  }),
  codex: lines([
    item({ type: "message", role: "user", content: "go" }),
    item({ type: "function_call_output", call_id: "b", output: "B" }),
    item({ type: "function_call", call_id: "b", name: "run", arguments: "{}" })
  ]),
  amplifier: lines([
    { ...user, metadata: { timestamp: "2026-01-01T00:00:00Z" } },
    { role: "tool", tool_call_id: "b", content: "B" },
    { role: "assistant", content: [{ type: "tool_call", id: "b", name: "run", input: {} }] }
  ]),
  pi: lines([
    pi(user),
    pi({ role: "toolResult", toolCallId: "b", content: "B" }),
    pi({ role: "assistant", content: [{ type: "toolCall", id: "b", name: "run", arguments: {} }] })
  ]),
  gemini: JSON.stringify([
    gemini("user", { text: "go" }),
    gemini("user", { functionResponse: { id: "b", name: "run", response: { output: "B" } } }),
    gemini("model", { functionCall: { id: "b", name: "run", args: {} } })
  ]),
  "vercel-ai": JSON.stringify([
    user,
    { role: "tool", content: [{ type: "tool-result", toolCallId: "b", output: { type: "text", value: "B" } }] },
    { role: "assistant", content: [{ type: "tool-call", toolCallId: "b", toolName: "run", input: {} }] }
  ]),
  cline: JSON.stringify([
    user,
    { role: "user", content: [{ type: "tool_result", tool_use_id: "b", content: "B" }] },
    { role: "assistant", content: [{ type: "tool_use", id: "b", name: "run", input: {} }] }
  ])
}

describe("a result that stands before its call", () => {
  for (const [format, text] of Object.entries(cases)) {
    it(`${format}: has the name of the call and stands behind it, and is written so`, () => {
      const session = read(text)
      assert.strictEqual(session.format, format)
      assert.deepStrictEqual(outline(session).slice(-2), ["assistant call(b run)", "tool result(b run: \"B\")"])
      assert.deepStrictEqual(kinds(session).map((kind) => kind.split(" ")[1]), ["early-result"])
      assert.deepStrictEqual(Wire.check(session.messages, Wire.openaiResponses), [])
      for (const to of Format.Target.literals) {
        const once = JSON.stringify(Format.write(to, session.messages).value)
        const again = Result.getOrThrow(Format.fromString(once, { file: "f", format: to }))
        assert.strictEqual(JSON.stringify(Format.write(to, again.messages).value), once)
      }
    })
  }

  const call = (id: string, name: string) => ({
    role: "assistant",
    tool_calls: [{ id, type: "function", function: { name, arguments: "{}" } }]
  })
  const result = (id: string, content = id) => ({ role: "tool", tool_call_id: id, content })
  const table: ReadonlyArray<readonly [string, ReadonlyArray<object>, ReadonlyArray<string>, ReadonlyArray<string>]> = [
    ["a person spoke between: it is an orphan, and keeps its place", [user, result("b"), user, call("b", "run")], [
      "user go",
      "tool result(b : \"b\")",
      "user go",
      "assistant call(b run)"
    ], ["0 orphan-result", "0 unanswered-call"]],
    ["a call with the id is before: it answers that one a second time", [
      user,
      call("b", "old"),
      result("b", "1"),
      result("b", "2"),
      call("b", "new")
    ], [
      "user go",
      "assistant call(b old)",
      "tool result(b old: \"1\")",
      "tool result(b old: \"2\")",
      "assistant call(b new)"
    ], ["0 orphan-result", "0 unanswered-call"]],
    ["the call has a result of its own: the early one is an orphan", [
      user,
      result("b", "1"),
      call("b", "run"),
      result("b")
    ], [
      "user go",
      "tool result(b : \"1\")",
      "assistant call(b run)",
      "tool result(b run: \"b\")"
    ], ["0 orphan-result"]],
    ["several at once go behind their calls", [user, result("b"), result("a"), call("a", "one"), call("b", "two")], [
      "user go",
      "assistant call(a one)",
      "tool result(a one: \"a\")",
      "assistant call(b two)",
      "tool result(b two: \"b\")"
    ], ["0 early-result", "0 early-result"]]
  ]
  for (const [name, messages, expected, found] of table) {
    it(name, () => {
      const session = read(JSON.stringify(messages))
      assert.deepStrictEqual(outline(session), expected)
      assert.deepStrictEqual(kinds(session), found)
    })
  }

  it("what was billed and when it was written go with the messages", () => {
    const at = (seconds: number) => `2026-01-01T00:00:0${seconds}Z`
    const session = read(lines([
      { type: "message", timestamp: at(1), message: user },
      { type: "message", timestamp: at(2), message: { role: "toolResult", toolCallId: "b", content: "B" } },
      {
        type: "message",
        timestamp: at(3),
        message: {
          role: "assistant",
          content: [{ type: "toolCall", id: "b", name: "run", arguments: {} }],
          usage: { input: 7, output: 1 }
        }
      },
      { type: "message", timestamp: at(4), message: { role: "assistant", content: [], usage: { input: 8, output: 1 } } }
    ]))
    assert.deepStrictEqual(session.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"])
    assert.deepStrictEqual(Array.from(session.usage, ([index, { fresh }]) => [index, fresh]), [[1, 7], [3, 8]])
    const start = Date.UTC(2026, 0, 1)
    assert.deepStrictEqual(Array.from(session.times, ([index, time]) => [index, (time - start) / 1000]), [
      [0, 1],
      [1, 3],
      [2, 2],
      [3, 4]
    ])
  })
})
