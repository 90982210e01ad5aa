import { describe } from "@effect/vitest"
import { document, fails, reads } from "./reading.ts"

const user = { role: "user", content: "go" }
const use = { role: "assistant", content: [{ type: "tool_use", id: "1", name: "run", input: {} }] }
const result = (content: unknown) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: "1", content }] })

describe("Cline", () => {
  reads(
    "cline",
    "the history of the extension, a bare list",
    document([user, use, result("ok"), { role: "user", content: [] }]),
    [
      "user go",
      "assistant call(1 run)",
      "tool result(1 run: \"ok\")",
      "user "
    ]
  )
  reads(
    "cline",
    "blocks of a result, and an image",
    document([
      { role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }] },
      use,
      result([{ type: "text", text: "ok" }])
    ]),
    ["user file(image/png)", "assistant call(1 run)", "tool result(1 run: \"ok\")"]
  )

  describe("errors name the field", () => {
    const bad = (message: unknown) => document({ version: 1, sessionId: "s", agent: "lead", messages: [user, message] })
    fails("cline", [
      [
        "an unknown role",
        bad({ role: "wizard", content: "x" }),
        "f: messages[1].role: unknown role \"wizard\", expected user or assistant"
      ],
      [
        "a number for content",
        bad({ role: "user", content: 5 }),
        "f: messages[1].content: expected a string or an array, got a number"
      ],
      [
        "a call without a name",
        bad({ role: "assistant", content: [{ type: "tool_use", id: "1" }] }),
        "f: messages[1].content[0].name: expected a string, got nothing"
      ],
      ["a number", bad(5), "f: messages[1]: expected an object, got a number"],
      ["a list with a number", document([user, 5]), "f: [1]: expected an object, got a number"],
      ["no messages", document({ sessionId: "s" }), "f: messages: expected an array, got nothing"],
      ["an empty list", document([]), "f: no message of the format cline in the file"]
    ])
  })
})
