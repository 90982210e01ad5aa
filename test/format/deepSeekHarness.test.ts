import { describe } from "@effect/vitest"
import { fails, reads } from "./reading.ts"
import { lines } from "./recorded.ts"

const head = { type: "session", version: 0, id: "s", createdAt: 0, cwd: "/home/user" }
const shown = (type: string, data: unknown, surfaceOp: unknown = "append") => ({ type, data, surfaceOp })
const text = (text: string) => [{ type: "text", text }]
const user = (content: unknown, source: object = { kind: "user" }, op?: unknown) =>
  shown("user/message", { content, source }, op)
const assistant = (content: ReadonlyArray<unknown>, more: object = {}, op?: unknown) =>
  shown("assistant/message", { message: { content }, ...more }, op)
const result = (toolCallId: string, content: unknown) =>
  shown("tool/result", { message: { content: [{ type: "tool-result", toolCallId, content, isError: false }] } })

describe("DeepSeek Harness", () => {
  reads(
    "deepseek-harness",
    "what was replaced is read as it became, unless a checkpoint stands for it",
    lines([
      head,
      user(text("go")),
      assistant(text("half")),
      { type: "assistant/chunk", data: {} },
      assistant(text("whole"), {}, { op: "replace", start: 1, end: 1 }),
      user(text("later")),
      user(text("a checkpoint"), { kind: "plugin", plugin: "compact" }, { op: "replace", start: 0, end: 3 })
    ]),
    ["user go", "assistant whole", "user later", "user/context-summary a checkpoint"],
    ["5 replaced"]
  )

  reads(
    "deepseek-harness",
    "whose words they are",
    lines([
      head,
      user("go"),
      user(text("a skill"), { kind: "plugin", plugin: "tool-skill" }),
      user(text("complete"), { kind: "plugin", plugin: "tool-goal", form: "notice" }),
      user(text("round"), { kind: "goal" }),
      user([{ type: "image", mediaType: "image/png", data: "AA" }])
    ]),
    ["user go", "user/runtime-context a skill", "user/hook complete", "user/hook round", "user file(image/png)"]
  )

  reads(
    "deepseek-harness",
    "a call is read once, and an image in a result",
    lines([
      head,
      user("go"),
      assistant([{ type: "tool-call", id: "1", name: "read", arguments: "{\"cut" }, { type: "surprise" }]),
      { type: "tool/call", data: { id: "1" } },
      result("1", [...text("see"), { type: "image", mimeType: "image/png", data: "AA" }]),
      shown("surprise", {})
    ]),
    [
      "user go",
      "assistant call(1 read) + opaque",
      "tool result(1 read: [{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"AA\"}])"
    ],
    ["6 unknown-line"]
  )

  const header = (system: string) => ({ type: "request/header", data: { header: { config: { model: "m" }, system } } })
  reads("deepseek-harness", "a system prompt that changed", lines([head, user("go"), header("one"), header("two")]), [
    "system one",
    "user go"
  ], ["4 system-changed"])

  describe("errors name the line and the field", () => {
    fails("deepseek-harness", [
      ["no type", lines([head, { data: {} }]), "f:2: type: expected a string, got nothing"],
      [
        "no data",
        lines([head, { type: "user/message", surfaceOp: "append" }]),
        "f:2: data: expected an object, got nothing"
      ],
      [
        "a number for content",
        lines([head, user(5)]),
        "f:2: data.content: expected a string or an array, got a number"
      ],
      [
        "an answer without content",
        lines([head, shown("assistant/message", { message: {} })]),
        "f:2: data.message.content: expected an array, got nothing"
      ],
      [
        "a call whose arguments are no text",
        lines([head, assistant([{ type: "tool-call", id: "1", name: "x", arguments: {} }])]),
        "f:2: data.message.content[0].arguments: expected a string, got an object"
      ],
      [
        "a result without an id",
        lines([head, shown("tool/result", { message: { content: [{}] } })]),
        "f:2: data.message.content[0].toolCallId: expected a string, got nothing"
      ],
      [
        "a range that is none",
        lines([head, assistant([], {}, { op: "replace", start: -1 })]),
        "f:2: surfaceOp.start: expected a whole number of at least 0"
      ],
      [
        "nothing but a head",
        lines([head, { type: "turn/start", data: {} }]),
        "f: no message of the format deepseek-harness in the file"
      ]
    ])
  })
})
