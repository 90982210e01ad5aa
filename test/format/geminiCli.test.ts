import { assert, describe, it } from "@effect/vitest"
import { document, fails, reads, sessionOf } from "./reading.ts"
import { billed, lines } from "./recorded.ts"

const head = { sessionId: "s", projectHash: "h" }
const user = (id: string, content: unknown) => ({ id, type: "user", content })
const gemini = (id: string, content: unknown, more: object = {}) => ({ id, type: "gemini", content, ...more })
const recording = (...messages: ReadonlyArray<unknown>) => document({ ...head, messages })

describe("gemini-cli", () => {
  reads(
    "gemini-cli",
    "a recording in one document; all its messages, whatever their ids",
    recording(
      user("a", "go"),
      gemini("a", "one"),
      { id: "b", type: "warning", content: "careful" },
      gemini("c", "two", { toolCalls: [{ id: "1", name: "run", args: {}, status: "cancelled", result: [] }] })
    ),
    ["user go", "assistant one", "assistant two + call(1 run)", "tool result(1 run failed: \"\")"],
    ["0 notice"]
  )

  reads(
    "gemini-cli",
    "a response of an error alone is a failure",
    recording(
      user("a", "go"),
      gemini("b", "", {
        toolCalls: [{ id: "1", name: "run", args: {}, result: { functionResponse: { response: { error: "no" } } } }]
      })
    ),
    ["user go", "assistant call(1 run)", "tool result(1 run failed: \"no\")"]
  )

  const called = (status: string) =>
    gemini("b", "", {
      toolCalls: [{
        id: "1",
        name: "run",
        args: {},
        status,
        result: { functionResponse: { response: { output: "so far" } } }
      }]
    })
  for (const status of ["validating", "scheduled", "awaiting_approval", "executing"]) {
    reads(
      "gemini-cli",
      `what a call that is ${status} gave so far answers nothing`,
      recording(user("a", "go"), called(status)),
      ["user go", "assistant call(1 run)"],
      ["0 provisional", "0 unanswered-call"]
    )
  }

  reads(
    "gemini-cli",
    "a rewind is to the first record with the id, and one to none is nothing",
    lines([head, user("a", "go"), gemini("b", "one"), { $rewindTo: "b" }, { $rewindTo: "z" }, gemini("b", "two")]),
    ["user go", "assistant two"],
    ["4 abandoned-branch"]
  )

  reads(
    "gemini-cli",
    "messages that are set anew replace those before",
    lines([
      head,
      user("a", "go"),
      gemini("b", "old"),
      { $set: { messages: [user("a", "go"), gemini("b", "new")] } },
      { $rewindTo: "nowhere" }
    ]),
    ["user go", "assistant new"]
  )

  reads(
    "gemini-cli",
    "a stream: pieces are put together, and a killed run ends with a call",
    lines([
      { type: "init", session_id: "s", model: "gemini-3-pro" },
      { type: "message", role: "user", content: "go" },
      { type: "message", role: "assistant", content: "I ", delta: true },
      { type: "message", role: "assistant", content: "run it.", delta: true },
      { type: "tool_use", tool_name: "run", tool_id: "1", parameters: {} },
      { type: "tool_use", tool_name: "read", tool_id: "2", parameters: {} },
      { type: "tool_result", tool_id: "1", status: "success", output: "ok" },
      { type: "tool_result", tool_id: "2", status: "error", error: { type: "x", message: "no file" } },
      { type: "message", role: "assistant", content: "Again.", delta: true },
      { type: "tool_use", tool_name: "run", tool_id: "3", parameters: {} },
      { type: "surprise" }
    ]),
    [
      "user go",
      "assistant I run it. + call(1 run) + call(2 read)",
      "tool result(1 run: \"ok\")",
      "tool result(2 read failed: \"no file\")",
      "assistant Again. + call(3 run)"
    ],
    ["9 unanswered-call", "11 unknown-line"]
  )

  it("a usage that is none is a finding, not a failure", () => {
    const session = sessionOf(recording(user("a", "go"), gemini("b", "x", { tokens: { input: -1 } })), "gemini-cli")
    assert.deepStrictEqual(billed(session).responses, 0)
    assert.deepStrictEqual(session.findings.map(({ detail }) => detail), [
      "messages[1].tokens.input: expected a whole number of at least 0"
    ])
  })

  describe("errors name the field", () => {
    fails("gemini-cli", [
      [
        "an unknown type",
        recording({ id: "a", type: "wizard", content: "x" }),
        "f: messages[0].type: unknown type \"wizard\", expected user, gemini, info, warning or error"
      ],
      [
        "a number for content",
        recording(user("a", 5)),
        "f: messages[0].content: expected a string or an array, got a number"
      ],
      [
        "calls that are no list",
        recording(gemini("a", "", { toolCalls: {} })),
        "f: messages[0].toolCalls: expected an array, got an object"
      ],
      [
        "a call without an id",
        recording(gemini("a", "", { toolCalls: [{ name: "run" }] })),
        "f: messages[0].toolCalls[0].id: expected a string, got nothing"
      ],
      ["a number for an id", lines([head, { id: 5, type: "user" }]), "f:2: id: expected a string, got a number"],
      [
        "a stream with a number for a text",
        lines([{ type: "init", session_id: "s", model: "m" }, { type: "message", role: "user", content: 5 }]),
        "f:2: content: expected a string, got a number"
      ],
      [
        "a message of a set that is none",
        lines([head, { $set: { messages: [5] } }]),
        "f:2: $set.messages[0]: expected an object, got a number"
      ],
      ["nothing but a head", lines([head, head]), "f: no message of the format gemini-cli in the file"]
    ])
  })
})
