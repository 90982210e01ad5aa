import { describe } from "@effect/vitest"
import { document, fails, reads } from "./reading.ts"

const history = (...history: ReadonlyArray<unknown>) => document({ trajectory: [], history })
const system = { role: "system", content: "You build.", message_type: "system_prompt" }
const task = { role: "user", content: "go", message_type: "observation" }

describe("SWE-agent", () => {
  reads(
    "swe-agent",
    "a text mode: the next observation answers the action",
    history(
      system,
      task,
      { role: "assistant", content: "I look.\n```\nls\n```", thought: "I look.", action: "ls", message_type: "action" },
      { role: "user", content: "Makefile", message_type: "observation" },
      { role: "assistant", content: "hm", thought: "hm", action: "", message_type: "action" },
      { role: "user", content: "Your command was malformed", message_type: "observation" },
      { role: "assistant", content: "submit", action: "submit", message_type: "action" }
    ),
    [
      "system You build.",
      "user go",
      "assistant I look. + call(action_2 bash)",
      "tool result(action_2 bash: \"Makefile\")",
      "assistant hm",
      "user Your command was malformed",
      "assistant submit"
    ]
  )

  reads(
    "swe-agent",
    "an old file, without types of messages",
    document({
      history: [
        { role: "system", content: "You build.", agent: "primary" },
        { role: "user", content: "a demonstration", agent: "primary", is_demo: true },
        { role: "user", content: "go", agent: "primary" },
        {
          role: "assistant",
          content: "DISCUSSION\nI look.\n```\nls\n```",
          action: "ls",
          thought: "I look.",
          agent: "primary"
        },
        { role: "user", content: "Makefile", agent: "primary" }
      ]
    }),
    [
      "system You build.",
      "user/runtime-context a demonstration",
      "user go",
      "assistant I look. + call(action_3 bash)",
      "tool result(action_3 bash: \"Makefile\")"
    ]
  )

  describe("errors name the field", () => {
    fails("swe-agent", [
      [
        "an unknown role",
        history(system, { role: "wizard", content: "x" }),
        "f: history[1].role: unknown role \"wizard\", expected system, developer, user, assistant, tool or function"
      ],
      [
        "a result without an id",
        history(task, { role: "tool", content: "x" }),
        "f: history[1].tool_call_id: expected a string, got null"
      ],
      ["a number", history(task, 5), "f: history[1]: expected an object, got a number"],
      [
        "a number for content",
        history(task, { role: "assistant", content: 5 }),
        "f: history[1].content: expected a string or an array, got a number"
      ],
      [
        "a thinking block without its text",
        history(task, { role: "assistant", content: "x", thinking_blocks: [{ type: "thinking" }] }),
        "f: history[1].thinking_blocks[0].thinking: expected a string, got nothing"
      ],
      ["no history", document({ trajectory: [] }), "f: history: expected an array, got nothing"],
      ["an empty history", history(), "f: no message of the format swe-agent in the file"]
    ])
  })
})
