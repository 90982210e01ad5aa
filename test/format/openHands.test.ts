import { assert, describe, it } from "@effect/vitest"
import { document, fails, options, reads, sessionOf } from "./reading.ts"
import { lines } from "./recorded.ts"

const event = (kind: string, more: object) => ({ kind, id: kind, timestamp: "t", source: "agent", ...more })
const content = (text: string) => [{ type: "text", text }]
const user = event("MessageEvent", { source: "user", llm_message: { role: "user", content: content("go") } })
const action = (id: string, call: string, response: string, more: object = {}) =>
  event("ActionEvent", {
    id,
    tool_name: "bash",
    tool_call_id: call,
    tool_call: { id: call, name: "bash", arguments: "{}" },
    llm_response_id: response,
    thought: [],
    ...more
  })
const observation = (action_id: string, observation: object) =>
  event("ObservationEvent", { source: "environment", action_id, tool_name: "bash", tool_call_id: "c", observation })

const early = (id: number, source: string, more: object) => ({ id, timestamp: "t", source, ...more })

describe("OpenHands", () => {
  reads(
    "openhands",
    "results are paired by the action, whatever the order and the ids",
    lines([
      user,
      action("a", "c", "r"),
      action("b", "c", "r"),
      observation("b", { content: content("B") }),
      observation("a", { content: content("A") }),
      observation("lost", { content: content("L") })
    ]),
    [
      "user go",
      "assistant call(c bash) + call(c_0 bash)",
      "tool result(c_0 bash: \"B\")",
      "tool result(c bash: \"A\")",
      "tool result(c bash: \"L\")"
    ],
    ["6 orphan-result"]
  )

  const shapes: ReadonlyArray<readonly [observation: object, expected: string]> = [
    [{ output: "out", error: null }, ": \"out\""],
    [{ output: "", error: "no" }, " failed: \"no\""],
    [{ content: [], is_error: true }, " failed: \"\""],
    [{ kind: "X", task: 1 }, ": \"{\\\"task\\\":1}\""]
  ]
  for (const [shape, expected] of shapes) {
    reads(
      "openhands",
      `an observation ${JSON.stringify(shape)}`,
      document([user, action("a", "c", "r"), observation("a", shape)]),
      ["user go", "assistant call(c bash)", `tool result(c bash${expected})`]
    )
  }

  it("reasoning of each provider", () => {
    const session = sessionOf(
      document([
        user,
        action("a", "1", "r1", { thinking_blocks: [{ type: "thinking", thinking: "t", signature: "s" }] }),
        action("b", "2", "r2", { responses_reasoning_item: { id: "rs", summary: ["sum"], encrypted_content: "e" } }),
        action("c", "3", "r3", { reasoning_content: "plain" })
      ]),
      "openhands"
    )
    assert.deepStrictEqual(options(session), [
      { anthropic: { info: { type: "thinking", signature: "s" } } },
      { openai: { itemId: "rs", encryptedContent: "e" } }
    ])
    const texts = session.messages.flatMap((message) =>
      message.role === "assistant"
        ? message.content.flatMap((part) => part.type === "reasoning" ? [part.text] : [])
        : []
    )
    assert.deepStrictEqual(texts, ["t", "sum", "plain"])
  })

  reads(
    "openhands",
    "a condensation without a summary, and events that are none of the model's",
    document([
      user,
      event("Condensation", { forgotten_event_ids: ["x", "y"] }),
      event("PauseEvent", {}),
      event("Surprise", {})
    ]),
    ["user go", "user/context-summary Context condensed: 2 events forgotten"],
    ["0 unknown-event"]
  )

  const response = {
    id: "r1",
    model: "gpt-4o",
    usage: { prompt_tokens: 100, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 60 } },
    choices: [{
      message: {
        content: "I look.",
        tool_calls: [{ id: "c1", function: { name: "bash", arguments: "{\"command\":\"ls\"}" } }]
      }
    }]
  }
  const note = (tool_call_id: string) => ({ function_name: "bash", tool_call_id, model_response: response })
  const stream = [
    early(0, "agent", { action: "system", args: { content: "You build." } }),
    early(1, "user", { action: "message", args: { content: "go", image_urls: ["data:image/png;base64,AA"] } }),
    early(2, "agent", { action: "recall", args: { query: "go" } }),
    early(3, "environment", { observation: "recall", content: "A microagent", cause: 2 }),
    early(4, "environment", { observation: "agent_state_changed", content: "" }),
    early(5, "agent", { action: "run", args: { command: "ls", thought: "I look." }, tool_call_metadata: note("c1") }),
    early(6, "agent", { action: "run", args: { command: "pwd", thought: "" }, tool_call_metadata: note("c2") }),
    early(7, "environment", { observation: "run", content: "Makefile", cause: 5, tool_call_metadata: note("c1") }),
    early(8, "environment", { observation: "error", content: "no", cause: 6, tool_call_metadata: note("c2") }),
    early(9, "agent", { action: "condensation", args: { forgotten_events_start_id: 5, forgotten_events_end_id: 8 } }),
    early(10, "agent", { action: "browse", args: { url: "x", thought: "I browse." } }),
    early(11, "environment", { observation: "browse", content: "a page", cause: 10 }),
    early(12, "environment", { observation: "error", content: "no such agent" }),
    early(13, "agent", { action: "message", args: { content: "done" } })
  ]
  const expected = [
    "system You build.",
    "user go + file(image/png)",
    "user/runtime-context A microagent",
    "assistant I look. + call(c1 bash) + call(c2 bash)",
    "tool result(c1 bash: \"Makefile\")",
    "tool result(c2 bash failed: \"no\")",
    "user/context-summary Context condensed: 4 events forgotten",
    "assistant I browse. + call(browse_0 browse)",
    "tool result(browse_0 browse: \"a page\")",
    "user/hook no such agent",
    "assistant done"
  ]
  reads("openhands", "a stream of version 0", document(stream), expected)
  reads(
    "openhands",
    "a stream of version 0 in pairs",
    document({
      instance_id: "x",
      history: [stream.slice(0, 2), ...stream.slice(2).map((one) => [one])]
    }),
    expected
  )
  it("of version 0: the bill of a response is counted once", () => {
    const session = sessionOf(document(stream), "openhands")
    assert.deepStrictEqual(Array.from(session.usage), [[3, { fresh: 40, cacheRead: 60, output: 9 }]])
    assert.strictEqual(session.model, "gpt-4o")
  })

  describe("errors name the field", () => {
    const bad = (value: unknown) => document([user, value])
    fails("openhands", [
      ["a number", bad(5), "f: [1]: expected an object, got a number"],
      [
        "an action without a call",
        bad(event("ActionEvent", { id: "a" })),
        "f: [1].tool_call: expected an object, got nothing"
      ],
      [
        "arguments that are no text",
        bad(action("a", "c", "r", { tool_call: { arguments: {} } })),
        "f: [1].tool_call.arguments: expected a string, got an object"
      ],
      [
        "a message without content",
        bad(event("MessageEvent", { llm_message: {} })),
        "f: [1].llm_message.content: expected a string or an array, got nothing"
      ],
      [
        "an image without URLs",
        bad(event("MessageEvent", { llm_message: { content: [{ type: "image" }] } })),
        "f: [1].llm_message.content[0].image_urls: expected an array, got nothing"
      ],
      [
        "no observation",
        bad(event("ObservationEvent", { action_id: "a" })),
        "f: [1].observation: expected an object, got nothing"
      ],
      [
        "a message of version 0 without content",
        bad(early(1, "user", { action: "message", args: {} })),
        "f: [1].args.content: expected a string, got nothing"
      ],
      ["an event that is none", bad({ id: 1 }), "f: [1].observation: expected a string, got nothing"],
      [
        "a task without events",
        document({ instance_id: "x", history: [] }),
        "f: no message of the format openhands in the file"
      ]
    ])
  })
})
