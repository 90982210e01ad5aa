import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Marks from "effect-compaction/Marks"
import * as Result from "effect/Result"
import { count, itReads, kinds, lines, outline } from "./recorded.ts"

const metadata = { timestamp: "2026-07-08T17:03:36.396+00:00" }
const session = (records: ReadonlyArray<unknown>) =>
  Result.getOrThrow(Format.fromString(lines(records), { file: "transcript.jsonl" }))
const reads = (
  name: string,
  records: ReadonlyArray<unknown>,
  expected: ReadonlyArray<string>,
  found: ReadonlyArray<string> = []
) =>
  it(name, () => {
    const read = session(records)
    assert.deepStrictEqual(outline(read), expected)
    assert.deepStrictEqual(kinds(read), found)
  })

describe("Amplifier", () => {
  reads("calls doubled beside the blocks are read once; a failed result is one", [
    { role: "system", content: "Be brief" },
    { role: "user", content: "go", metadata },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "sig", visibility: "internal" },
        { type: "text", text: "calls" },
        { type: "tool_call", id: "a", name: "bash", input: { command: "ls" } }
      ],
      tool_calls: [{ id: "a", tool: "bash", arguments: { command: "ls" } }, { id: "b", tool: "todo", arguments: {} }],
      metadata
    },
    { role: "tool", name: "bash", tool_call_id: "a", content: "{\"success\": true, \"output\": 1}" },
    { role: "tool", name: "todo", tool_call_id: "b", content: "{\"success\": false, \"error\": \"no\"}" },
    { role: "assistant", content: "done" }
  ], [
    "system Be brief",
    "user go",
    "assistant reasoning(hm) + calls + call(a bash) + call(b todo)",
    "tool result(a bash: \"{\\\"success\\\": true, \\\"output\\\": 1}\")",
    "tool result(b todo failed: \"{\\\"success\\\": false, \\\"error\\\": \\\"no\\\"}\")",
    "assistant done"
  ])

  reads(
    "calls in the style of OpenAI, and a call and a result that stand alone",
    [
      { role: "user", content: "go", metadata },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", function: { name: "bash", arguments: "{\"x\":1}" } }]
      },
      { role: "tool", name: "grep", tool_call_id: "z", content: "lone" }
    ],
    ["user go", "assistant call(a bash)", "tool result(z grep: \"lone\")"],
    ["2 unanswered-call", "3 orphan-result"]
  )

  it("keeps who wrote a user message and that it belongs to one request", () => {
    const read = session([
      { role: "user", content: "go", metadata },
      { role: "user", content: "note", metadata: { ...metadata, source: "hook", ephemeral: true } },
      { role: "assistant", content: "ok" },
      { role: "developer", content: "later" }
    ])
    assert.deepStrictEqual(read.messages.map(Marks.of), [
      {},
      { source: "hook", ephemeral: true },
      {},
      { source: "runtime-context" }
    ])
  })

  describe("errors name the line and the field", () => {
    const cases: ReadonlyArray<readonly [name: string, record: unknown, message: string]> = [
      [
        "unknown role",
        { role: "wizard", content: "x" },
        "transcript.jsonl:2: role: unknown role \"wizard\", expected system, developer, user, assistant, tool"
      ],
      [
        "number for text",
        { role: "user", content: 5 },
        "transcript.jsonl:2: content: expected a string or an array, got a number"
      ],
      [
        "result without id",
        { role: "tool", content: "x" },
        "transcript.jsonl:2: tool_call_id: expected a string, got nothing"
      ],
      [
        "call without name",
        { role: "assistant", content: [{ type: "tool_call", id: "a" }] },
        "transcript.jsonl:2: content[0].name: expected a string, got nothing"
      ]
    ]
    for (const [name, record, message] of cases) {
      it(name, () => {
        const first = { role: "user", content: "go", metadata }
        const read = Format.fromString(lines([first, record]), { file: "transcript.jsonl", format: "amplifier" })
        assert.strictEqual(Result.isFailure(read) ? read.failure.message : "read", message)
      })
    }
  })

  // The list of recorded sessions counts the same 18 messages.
  describe("recorded sessions", () => {
    itReads("amplifier/real-opus48-transcript.jsonl", (session) => {
      assert.strictEqual(session.format, "amplifier")
      assert.strictEqual(session.messages.length, 18)
      assert.deepStrictEqual({ ...count(session) }, {
        human: 1,
        machine: 0,
        assistant: 9,
        calls: 8,
        results: 8,
        images: 0,
        signatures: 8
      })
      assert.deepStrictEqual(session.findings, [])
    })
  })
})
