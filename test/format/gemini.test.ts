import { assert, describe, it } from "@effect/vitest"
import { document, fails, options, reads, sessionOf } from "./reading.ts"

const user = (...parts: ReadonlyArray<unknown>) => ({ role: "user", parts })
const model = (...parts: ReadonlyArray<unknown>) => ({ role: "model", parts })
const call = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id === undefined ? {} : { id }) } })
const answer = (name: string, output: string, id?: string) => ({
  functionResponse: { name, response: { output }, ...(id === undefined ? {} : { id }) }
})
const go = user({ text: "go" })

describe("Gemini", () => {
  reads(
    "gemini",
    "a bare list, and results before and after a person's words",
    document([
      go,
      model(call("a", "1"), call("b", "2")),
      user({ text: "wait" }, answer("a", "A", "1"), answer("b", "B", "2"), { text: "now" })
    ]),
    [
      "user go",
      "assistant call(1 a) + call(2 b)",
      "user wait",
      "tool result(1 a: \"A\") + result(2 b: \"B\")",
      "user now"
    ]
  )

  reads("gemini", "a checkpoint of gemini-cli", document({ authType: "x", history: [go, model({ text: "ok" })] }), [
    "user go",
    "assistant ok"
  ])

  reads(
    "gemini",
    "results without an id belong to the turn before, not to an older call of that name",
    document([go, model(call("a")), go, model(call("a")), user(answer("a", "second"))]),
    ["user go", "assistant call(a_0 a)", "user go", "assistant call(a_1 a)", "tool result(a_1 a: \"second\")"],
    ["0 unanswered-call"]
  )

  reads(
    "gemini",
    "a call without an id is answered by a result with one of its own, and the other way round",
    document([go, model(call("a", "x")), user(answer("a", "A"))]),
    ["user go", "assistant call(x a)", "tool result(x a: \"A\")"]
  )

  reads(
    "gemini",
    "one turn may be several contents",
    document([go, model(call("a")), model(call("a")), user(answer("a", "1"), answer("a", "2"))]),
    [
      "user go",
      "assistant call(a_0 a)",
      "assistant call(a_1 a)",
      "tool result(a_0 a: \"1\") + result(a_1 a: \"2\")"
    ]
  )

  it("code that ran at the provider is a call and its result in the answer", () => {
    const session = sessionOf(
      document([
        go,
        model(
          { executableCode: { language: "PYTHON", code: "1+1" } },
          { codeExecutionResult: { outcome: "OUTCOME_OK", output: "2" } },
          { unheardOf: 1 }
        )
      ]),
      "gemini"
    )
    const [, message] = session.messages
    const parts = message?.role === "assistant" ? message.content : []
    assert.deepStrictEqual(parts.map((part) => part.type), ["tool-call", "tool-result", "text"])
    assert.isTrue(parts.every((part) => !("providerExecuted" in part) || part.providerExecuted))
    assert.deepStrictEqual(session.findings, [])
    assert.deepStrictEqual(options(session), [{ "effect-compaction": { raw: { unheardOf: 1 } } }])
  })

  it("signatures stay on their parts", () => {
    const session = sessionOf(
      document([
        go,
        model(
          { text: "think", thought: true, thoughtSignature: "a" },
          { ...call("x"), thoughtSignature: "b" },
          { text: "", thoughtSignature: "c" }
        )
      ]),
      "gemini"
    )
    assert.deepStrictEqual(
      options(session),
      ["a", "b", "c"].map((thoughtSignature) => ({ google: { thoughtSignature } }))
    )
  })

  reads(
    "gemini",
    "files, of the user and in a result",
    document([
      user({ fileData: { mimeType: "application/pdf", fileUri: "https://x.test/a.pdf" } }),
      model(call("a", "1")),
      user({
        functionResponse: {
          id: "1",
          name: "a",
          response: {},
          parts: [{ inlineData: { mimeType: "image/png", data: "AA" } }, { fileData: { fileUri: "x" } }]
        }
      })
    ]),
    [
      "user file(application/pdf)",
      "assistant call(1 a)",
      "tool result(1 a: [{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"AA\"},{\"fileData\":{\"fileUri\":\"x\"}}])"
    ]
  )

  describe("errors name the field", () => {
    const bad = (content: unknown) => document({ contents: [go, content] })
    fails("gemini", [
      [
        "an unknown role",
        bad({ role: "wizard", parts: [] }),
        "f: contents[1].role: unknown role \"wizard\", expected user or model; the system prompt is the systemInstruction"
      ],
      ["no parts", bad({ role: "user" }), "f: contents[1].parts: expected an array, got nothing"],
      ["a number for a part", bad(user(5)), "f: contents[1].parts[0]: expected an object, got a number"],
      ["a number for a text", bad(model({ text: 5 })), "f: contents[1].parts[0].text: expected a string, got a number"],
      [
        "a call without a name",
        bad(model({ functionCall: { args: {} } })),
        "f: contents[1].parts[0].functionCall.name: expected a string, got nothing"
      ],
      [
        "a response that is a text",
        bad(user({ functionResponse: { name: "a", response: "x" } })),
        "f: contents[1].parts[0].functionResponse.response: expected an object, got a string"
      ],
      [
        "an image without data",
        bad(user({ inlineData: { mimeType: "image/png" } })),
        "f: contents[1].parts[0].inlineData.data: expected a string, got nothing"
      ],
      ["no contents", document({ contents: {} }), "f: contents: expected an array, got an object"],
      ["an empty list", document([]), "f: no message of the format gemini in the file"]
    ])
  })
})
