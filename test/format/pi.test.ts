import { assert, describe, it } from "@effect/vitest"
import { fails, options, reads, sessionOf } from "./reading.ts"
import { lines } from "./recorded.ts"

const timestamp = "2026-01-01T00:00:00.000Z"
const head = { type: "session", id: "s", timestamp, cwd: "/home/user" }
const message = (message: object) => ({ type: "message", timestamp, message })
const user = (content: unknown) => message({ role: "user", content })
const assistant = (content: ReadonlyArray<unknown>, more: object = {}) =>
  message({ role: "assistant", content, stopReason: "stop", ...more })
const text = (text: string) => ({ type: "text", text })

describe("pi", () => {
  reads(
    "pi",
    "the first version: entries in order, two compactions after one another",
    lines([
      head,
      user("go"),
      assistant([text("one")]),
      { type: "compaction", timestamp, summary: "first", firstKeptEntryIndex: 2, tokensBefore: 9 },
      { type: "compaction", timestamp, summary: "second", firstKeptEntryIndex: 2, tokensBefore: 9 },
      { type: "thinking_level_change", timestamp, thinkingLevel: "off" },
      assistant([text("two")])
    ]),
    [
      "user go",
      "assistant one",
      "user/context-summary first",
      "user/context-summary second",
      "assistant two"
    ]
  )

  const entry = (id: string, parentId: string | null, value: object) => ({ ...value, id, parentId })
  reads(
    "pi",
    "a tree: the branch of the last entry, over a parent that was torn",
    lines([
      head,
      entry("a", null, user("go")),
      entry("b", "a", assistant([text("left")])),
      entry("c", "a", { type: "branch_summary", timestamp, summary: "It went wrong", fromId: "b" }),
      entry("e", "lost", assistant([text("kept")]))
    ]),
    ["user go", "user/context-summary It went wrong", "assistant kept"],
    ["3 abandoned-branch"]
  )

  reads(
    "pi",
    "texts that no person wrote, and what the model is not told",
    lines([
      head,
      user("go"),
      { type: "custom_message", timestamp, customType: "x", content: "from an extension", display: true },
      message({ role: "hookMessage", content: [text("from a hook")] }),
      message({ role: "compactionSummary", summary: "sum" }),
      message({ role: "bashExecution", command: "ls", output: "", cancelled: true }),
      message({ role: "bashExecution", command: "pwd", output: "/", excludeFromContext: true }),
      { type: "custom", timestamp, data: {} },
      { type: "surprise", timestamp }
    ]),
    [
      "user go",
      "user/hook from an extension",
      "user/hook from a hook",
      "user/context-summary sum",
      "user/hook Ran `ls`\n(no output)\n\n(command cancelled)"
    ],
    ["7 excluded", "9 unknown-line"]
  )

  it("signatures are told by the provider", () => {
    const think = (thinkingSignature: string, more: object = {}) => ({
      type: "thinking",
      thinking: "",
      thinkingSignature,
      ...more
    })
    const of = (api: string, ...blocks: ReadonlyArray<unknown>) => assistant(blocks, { api })
    const session = sessionOf(
      lines([
        head,
        user("go"),
        of("anthropic-messages", think("sig"), think("blob", { redacted: true }), think("")),
        of("openai-responses", think(JSON.stringify({ type: "reasoning", id: "rs", encrypted_content: "e" }))),
        of("google-generative-ai", think("g"), {
          type: "toolCall",
          id: "c",
          name: "x",
          arguments: {},
          thoughtSignature: "t"
        }),
        of("openai-completions", think("reasoning_content"), { type: "text", text: "x", textSignature: "msg_1" })
      ]),
      "pi"
    )
    assert.deepStrictEqual(options(session), [
      { anthropic: { info: { type: "thinking", signature: "sig" } } },
      { anthropic: { info: { type: "redacted_thinking", redactedData: "blob" } } },
      { openai: { itemId: "rs", encryptedContent: "e" } },
      { google: { thoughtSignature: "g" } },
      { google: { thoughtSignature: "t" } },
      { pi: { thinkingSignature: "reasoning_content" } },
      { pi: { textSignature: "msg_1" } }
    ])
  })

  describe("errors name the line and the field", () => {
    fails("pi", [
      [
        "an unknown role",
        lines([head, message({ role: "wizard" })]),
        "f:2: message.role: unknown role \"wizard\", expected user, assistant, toolResult, bashExecution, custom, " +
        "hookMessage, branchSummary, compactionSummary"
      ],
      ["no message", lines([head, { type: "message" }]), "f:2: message: expected an object, got nothing"],
      ["no type", lines([head, { id: "x" }]), "f:2: type: expected a string, got nothing"],
      [
        "a number for content",
        lines([head, user(5)]),
        "f:2: message.content: expected a string or an array, got a number"
      ],
      [
        "an answer in one text",
        lines([head, message({ role: "assistant", content: "x" })]),
        "f:2: message.content: expected an array, got a string"
      ],
      [
        "a call without a name",
        lines([head, assistant([{ type: "toolCall", id: "c" }])]),
        "f:2: message.content[0].name: expected a string, got nothing"
      ],
      [
        "an image without a type",
        lines([head, user([{ type: "image", data: "AA" }])]),
        "f:2: message.content[0].mimeType: expected a string, got nothing"
      ],
      [
        "a result without an id",
        lines([head, message({ role: "toolResult", content: [] })]),
        "f:2: message.toolCallId: expected a string, got nothing"
      ],
      [
        "a compaction without a summary",
        lines([head, { type: "compaction" }]),
        "f:2: summary: expected a string, got nothing"
      ],
      ["nothing but a head", lines([head, head]), "f: no message of the format pi in the file"]
    ])
  })
})
