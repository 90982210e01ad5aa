import { assert, describe, it } from "@effect/vitest"
import { fails, sessionOf } from "./reading.ts"
import { lines, outline } from "./recorded.ts"

const event = (event: string, data: unknown) => ({ schema: { name: "amplifier.log" }, event, data })
const user = { role: "user", content: "go" }
const request = (...messages: ReadonlyArray<unknown>) => event("llm:request", { raw: { model: "claude-x", messages } })
const response = (text: string, usage: unknown = { input_tokens: 5, output_tokens: 2 }) =>
  event("llm:response", { raw: { content: [{ type: "text", text }] }, usage })

describe("Amplifier's log", () => {
  it("is read from the longest request, when the last one is shorter", () => {
    const session = sessionOf(
      lines([
        request(user),
        response("one"),
        request(user, { role: "assistant", content: "one" }, user),
        response("two"),
        request(user),
        response("a title")
      ]),
      "amplifier-events"
    )
    assert.deepStrictEqual(outline(session), ["user go", "assistant one", "user go", "assistant two"])
    assert.strictEqual(session.usage.size, 2)
  })

  it("also of a body of OpenAI", () => {
    const session = sessionOf(
      lines([
        event("session:start", {}),
        event("llm:request", { raw: { model: "gpt-5", input: [user, { type: "reasoning", summary: [] }] } })
      ]),
      "amplifier-events"
    )
    assert.deepStrictEqual(outline(session), ["user go", "assistant reasoning()"])
  })

  describe("errors name the line and the field", () => {
    fails("amplifier-events", [
      ["no request", lines([event("a", {}), event("b", {})]), "f: no request to a model in the log"],
      [
        "requests that are not whole",
        lines([event("llm:request", { message_count: 1 }), event("llm:response", {})]),
        "f: the requests are not logged whole; read the transcript.jsonl beside it"
      ],
      [
        "a body of another API",
        lines([event("a", {}), event("llm:request", { raw: { messages: [{ x: 1 }] } })]),
        "f:2: data.raw: expected the body of a request of a known API"
      ],
      [
        "a message that is none",
        lines([event("a", {}), request(user, { role: "assistant", content: [{ type: "thinking" }] })]),
        "f:2: data.raw.messages[1].content[0].thinking: expected a string, got nothing"
      ],
      [
        "a broken usage",
        lines([request(user), response("x", { input_tokens: "many" })]),
        "f:2: data.usage.input_tokens: expected a number, got a string"
      ]
    ])
  })
})
