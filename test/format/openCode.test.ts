import { assert, describe, it } from "@effect/vitest"
import { document, fails, options, reads, sessionOf } from "./reading.ts"

const message = (role: string, parts: unknown, info: object = {}) => ({ info: { role, ...info }, parts })
const session = (...messages: ReadonlyArray<unknown>) => document({ info: { id: "ses" }, messages })
const text = (text: string, more: object = {}) => ({ type: "text", text, ...more })
const go = message("user", [text("go")])
const tool = (callID: string, state: object) => ({ type: "tool", callID, tool: "bash", state })
const tokens = (output: number) => ({ input: 1, output, reasoning: 0, cache: { read: 0, write: 0 } })

describe("opencode", () => {
  const several = session(
    go,
    message("assistant", [
      { type: "step-start" },
      tool("1", {
        status: "completed",
        input: {},
        output: "ok",
        attachments: [{ mime: "image/png", url: "data:image/png;base64,AA" }]
      }),
      { type: "step-finish", tokens: tokens(5) },
      { type: "step-start" },
      text("done"),
      { type: "step-finish", tokens: tokens(7) }
    ], { tokens: tokens(7) })
  )
  reads("opencode", "several steps of one message, with an image in a result", several, [
    "user go",
    "assistant call(1 bash)",
    "tool result(1 bash: [{\"type\":\"text\",\"text\":\"ok\"},{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"AA\"}])",
    "assistant done"
  ])
  it("each step has its own bill", () => {
    const usage = (output: number) => ({ fresh: 1, cacheRead: 0, cacheWrite: 0, output })
    assert.deepStrictEqual(Array.from(sessionOf(several, "opencode").usage), [[1, usage(5)], [3, usage(7)]])
  })

  reads(
    "opencode",
    "texts that are not sent, calls without a result, an answer that says nothing",
    session(
      message("user", [text("go"), text("shown", { ignored: true }), { type: "agent", name: "x" }]),
      message("assistant", [tool("1", { status: "pending", input: {} }), { type: "surprise" }]),
      message("assistant", [], { error: { name: "aborted" } })
    ),
    ["user go", "assistant call(1 bash) + opaque", "assistant "],
    ["0 not-sent", "0 not-sent", "0 unanswered-call"]
  )

  it("what providers noted is kept", () => {
    const read = sessionOf(
      session(
        go,
        message("assistant", [
          { type: "reasoning", text: "", metadata: { anthropic: { signature: "s" } } },
          { type: "reasoning", text: "", metadata: { openai: { itemId: "rs", reasoningEncryptedContent: "e" } } },
          text("x", { metadata: { openai: { itemId: "msg" } } })
        ])
      ),
      "opencode"
    )
    assert.deepStrictEqual(options(read), [
      { anthropic: { info: { type: "thinking", signature: "s" } } },
      { openai: { itemId: "rs", encryptedContent: "e" } },
      { openai: { itemId: "msg" } }
    ])
  })

  const reverted = (revert: object, ...messages: ReadonlyArray<unknown>) =>
    document({ info: { id: "ses", revert }, messages })
  const turns = [
    message("user", [text("one")], { id: "m1" }),
    message("assistant", [text("one!")], { id: "m2" }),
    message("user", [text("two")], { id: "m3" }),
    message("assistant", [text("two!", { id: "p1" }), text("and more", { id: "p2" })], { id: "m4" })
  ]
  reads("opencode", "messages that a person took back", reverted({ messageID: "m3" }, ...turns), [
    "user one",
    "assistant one!"
  ], ["0 reverted"])
  reads("opencode", "from a part on", reverted({ messageID: "m4", partID: "p2" }, ...turns), [
    "user one",
    "assistant one!",
    "user two",
    "assistant two!"
  ], ["0 reverted"])
  reads("opencode", "from the first part on", reverted({ messageID: "m4", partID: "p1" }, ...turns), [
    "user one",
    "assistant one!",
    "user two"
  ], ["0 reverted"])
  reads(
    "opencode",
    "from a message that is not in the file: nothing is taken back",
    reverted({ messageID: "m9" }, ...turns),
    [
      "user one",
      "assistant one!",
      "user two",
      "assistant two! + and more"
    ]
  )

  describe("errors name the field", () => {
    fails("opencode", [
      [
        "an unknown role",
        session(go, message("wizard", [])),
        "f: messages[1].info.role: unknown role \"wizard\", expected user or assistant"
      ],
      ["no parts", session(go, message("user", null)), "f: messages[1].parts: expected an array, got null"],
      [
        "a number for a part",
        session(go, message("user", [5])),
        "f: messages[1].parts[0]: expected an object, got a number"
      ],
      [
        "a number for a text",
        session(message("user", [{ type: "text", text: 5 }])),
        "f: messages[0].parts[0].text: expected a string, got a number"
      ],
      [
        "a call without a state",
        session(go, message("assistant", [{ type: "tool", callID: "1", tool: "x" }])),
        "f: messages[1].parts[0].state: expected an object, got nothing"
      ],
      [
        "a result without an output",
        session(go, message("assistant", [tool("1", { status: "completed" })])),
        "f: messages[1].parts[0].state.output: expected a string, got nothing"
      ],
      [
        "a broken usage",
        session(go, message("assistant", [text("x")], { tokens: { input: 1.5 } })),
        "f: messages[1].info.tokens.input: expected a whole number of at least 0"
      ],
      ["no messages", document({ info: {} }), "f: messages: expected an array, got nothing"],
      ["an empty list", session(), "f: no message of the format opencode in the file"]
    ])
  })
})
