import { assert, describe, it } from "@effect/vitest"
import { document, fails, reads, sessionOf } from "./reading.ts"

const exit = { role: "exit", content: "done", extra: { exit_status: "Submitted" } }
const start = [{ role: "system", content: "You build." }, { role: "user", content: "go" }]

describe("mini-swe-agent", () => {
  reads(
    "mini-swe-agent",
    "a bare list in text: the next message answers the one command",
    document([
      ...start,
      { role: "assistant", content: "THOUGHT: I look.\n\n```bash\nls -a\n```" },
      { role: "user", content: "<returncode>0</returncode>\n<output>\nMakefile\n</output>" },
      { role: "assistant", content: "Two:\n```bash\nls\n```\n```bash\npwd\n```" },
      { role: "user", content: "Please give exactly one action." },
      { role: "assistant", content: "```mswea_bash_command\nsubmit\n```", extra: { actions: [{ command: "submit" }] } },
      exit
    ]),
    [
      "system You build.",
      "user go",
      "assistant THOUGHT: I look. + call(action_2 bash)",
      "tool result(action_2 bash: \"<returncode>0</returncode>\\n<output>\\nMakefile\\n</output>\")",
      "assistant Two:\n```bash\nls\n```\n```bash\npwd\n```",
      "user Please give exactly one action.",
      "assistant ```mswea_bash_command\nsubmit\n```"
    ],
    ["0 exit"]
  )

  it("the command of a text is the params of the call", () => {
    const session = sessionOf(
      document([
        ...start,
        { role: "assistant", content: "```bash\nls -a\n```" },
        { role: "user", content: "<returncode>0</returncode>" },
        exit
      ]),
      "mini-swe-agent"
    )
    const [, , answer] = session.messages
    const calls = answer?.role === "assistant" ? answer.content.filter((part) => part.type === "tool-call") : []
    assert.deepStrictEqual(calls.map((call) => call.params), [{ command: "ls -a" }])
  })

  it("items of the Responses API", () => {
    const response = (output: ReadonlyArray<unknown>) => ({
      object: "response",
      output,
      usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 60 }, output_tokens: 5 },
      extra: { actions: [] }
    })
    const session = sessionOf(
      document({
        trajectory_format: "mini-swe-agent-1.1",
        info: {},
        messages: [
          ...start,
          response([
            { type: "reasoning", id: "rs", summary: [], encrypted_content: "e" },
            { type: "function_call", call_id: "1", name: "bash", arguments: "{}" }
          ]),
          { type: "function_call_output", call_id: "1", output: "ok", extra: { raw_output: "ok" } },
          response([{ type: "message", role: "assistant", content: [{ type: "output_text", text: "done" }] }]),
          exit
        ]
      }),
      "mini-swe-agent"
    )
    assert.deepStrictEqual(session.messages.map((message) => message.role), [
      "system",
      "user",
      "assistant",
      "tool",
      "assistant"
    ])
    const usage = { fresh: 40, cacheRead: 60, output: 5 }
    assert.deepStrictEqual(Array.from(session.usage), [[2, usage], [4, usage]])
  })

  describe("errors name the field", () => {
    const bad = (message: unknown) => document({ trajectory_format: "mini-swe-agent-1", messages: [start[1], message] })
    fails("mini-swe-agent", [
      [
        "an unknown role",
        bad({ role: "wizard", content: "x" }),
        "f: messages[1].role: unknown role \"wizard\", expected system, developer, user, assistant, tool or function"
      ],
      ["a number", bad(5), "f: messages[1]: expected an object, got a number"],
      [
        "a call without a name",
        bad({ role: "assistant", tool_calls: [{ id: "1", function: { arguments: "{}" } }] }),
        "f: messages[1].tool_calls[0].function.name: expected a string, got nothing"
      ],
      [
        "a broken usage",
        bad({ role: "assistant", content: "x", extra: { response: { usage: { prompt_tokens: "x" } } } }),
        "f: messages[1].extra.response.usage.prompt_tokens: expected a number, got a string"
      ],
      ["no messages", document({ info: {} }), "f: messages: expected an array, got nothing"],
      ["nothing but the end", document([exit]), "f: no message of the format mini-swe-agent in the file"]
    ])
  })
})
