import { assert, describe, it } from "@effect/vitest"
import { document, fails, options, reads, sessionOf } from "./reading.ts"

const user = { role: "user", content: "go" }
const call = (id: string) => ({ type: "tool-call", toolCallId: id, toolName: "run", input: {} })
const result = (id: string, output: unknown) => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId: id, toolName: "run", output }]
})

describe("Vercel AI SDK", () => {
  const outputs: ReadonlyArray<readonly [output: unknown, expected: string]> = [
    [{ type: "text", value: "ok" }, ": \"ok\""],
    [{ type: "json", value: { a: 1 } }, ": \"{\\\"a\\\":1}\""],
    [{ type: "json", value: "plain" }, ": \"plain\""],
    [{ type: "json", value: null }, ": \"\""],
    [{ type: "error-text", value: "no" }, " failed: \"no\""],
    [{ type: "error-json", value: { e: 1 } }, " failed: \"{\\\"e\\\":1}\""],
    [{ type: "execution-denied", reason: "not now" }, " failed: \"not now\""],
    [{ type: "execution-denied" }, " failed: \"Tool execution denied.\""],
    [{ type: "content", value: [{ type: "text", text: "one" }] }, ": \"one\""],
    [
      {
        type: "content",
        value: [{ type: "image-url", url: "https://x.test/a.png" }, { type: "file-id", fileId: "f" }]
      },
      ": [{\"type\":\"image\",\"mediaType\":\"image/*\",\"data\":\"https://x.test/a.png\"}," +
      "{\"type\":\"file-id\",\"fileId\":\"f\"}]"
    ],
    [{ type: "of the tool itself", a: 1 }, ": \"{\\\"type\\\":\\\"of the tool itself\\\",\\\"a\\\":1}\""]
  ]
  for (const [output, expected] of outputs) {
    reads(
      "vercel-ai",
      `an output ${JSON.stringify(output)}`,
      document([user, { role: "assistant", content: [call("1")] }, result("1", output)]),
      ["user go", "assistant call(1 run)", `tool result(1 run${expected})`]
    )
  }

  reads(
    "vercel-ai",
    "core messages of version 4",
    document([
      user,
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "think", signature: "sig" },
          { type: "redacted-reasoning", data: "blob" },
          { type: "tool-call", toolCallId: "1", toolName: "run", args: {} }
        ]
      },
      {
        role: "tool",
        content: [{ type: "tool-result", toolCallId: "1", toolName: "run", result: { a: 1 }, isError: true }]
      }
    ]),
    [
      "user go",
      "assistant reasoning(think) + reasoning() + call(1 run)",
      "tool result(1 run failed: \"{\\\"a\\\":1}\")"
    ]
  )

  reads(
    "vercel-ai",
    "UI messages of version 4: calls beside the text, and calls in parts",
    document([
      { id: "a", role: "user", content: "go" },
      {
        id: "b",
        role: "assistant",
        content: "done",
        toolInvocations: [{ state: "result", toolCallId: "1", toolName: "run", args: {}, result: "ok" }]
      },
      {
        id: "c",
        role: "assistant",
        content: "twice",
        parts: [
          { type: "reasoning", reasoning: "think" },
          { type: "tool-invocation", toolInvocation: { state: "call", toolCallId: "2", toolName: "run", args: {} } },
          { type: "text", text: "twice" }
        ]
      },
      { id: "d", role: "data", content: "x" }
    ]),
    [
      "user go",
      "assistant call(1 run) + done",
      "tool result(1 run: \"ok\")",
      "assistant reasoning(think) + call(2 run) + twice"
    ],
    ["0 not-sent", "0 unanswered-call"]
  )

  const state = (state: string, more: object = {}) => ({
    type: "tool-run",
    toolCallId: state,
    state,
    input: {},
    ...more
  })
  reads(
    "vercel-ai",
    "states of a call",
    document([
      { id: "a", role: "user", parts: [{ type: "text", text: "go" }, { type: "data-weather", data: {} }] },
      {
        id: "b",
        role: "assistant",
        parts: [
          state("output-denied", { approval: { id: "x", approved: false, reason: "not now" } }),
          state("approval-requested"),
          state("input-streaming"),
          state("output-available", { output: null, preliminary: true })
        ]
      }
    ]),
    [
      "user go",
      "assistant call(output-denied run) + call(approval-requested run) + call(input-streaming run) + " +
      "call(output-available run)",
      "tool result(output-denied run failed: \"not now\")"
    ],
    ["0 not-sent", "0 provisional", "0 unanswered-call", "0 unanswered-call", "0 unanswered-call"]
  )

  describe("a provisional output answers no call", () => {
    const go = { id: "1", role: "user", parts: [{ type: "text", text: "go" }] }
    const part = (more: object) => ({
      type: "tool-read",
      toolCallId: "c1",
      state: "output-available",
      input: {},
      ...more
    })
    const so = { output: "PARTIAL", preliminary: true }
    const ui = (...parts: ReadonlyArray<unknown>) => document([go, { id: "2", role: "assistant", parts }])

    reads("vercel-ai", "of a UI message", ui(part(so)), ["user go", "assistant call(c1 read)"], [
      "0 provisional",
      "0 unanswered-call"
    ])
    reads(
      "vercel-ai",
      "of a dynamic tool, and of one at the provider",
      ui(
        { ...part(so), type: "dynamic-tool", toolName: "read" },
        { ...part(so), toolCallId: "c2", providerExecuted: true }
      ),
      ["user go", "assistant call(c1 read) + call(c2 read)"],
      [
        "0 provisional",
        "0 unanswered-call",
        "0 unanswered-call"
      ]
    )
    reads("vercel-ai", "before the final one of the same call", ui(part(so), part(so), part({ output: "ALL" })), [
      "user go",
      "assistant call(c1 read)",
      "tool result(c1 read: \"ALL\")"
    ], ["0 provisional"])
    reads(
      "vercel-ai",
      "unless it failed: an error is final",
      ui(part({ ...so, state: "output-error", errorText: "no" })),
      [
        "user go",
        "assistant call(c1 read)",
        "tool result(c1 read failed: \"no\")"
      ]
    )
    const text = (value: string) => ({ type: "text", value })
    reads(
      "vercel-ai",
      "of model messages",
      document([
        user,
        { role: "assistant", content: [call("1"), { ...result("1", text("a")).content[0], preliminary: true }] },
        { role: "tool", content: [{ ...result("1", text("so far")).content[0], preliminary: true }] },
        result("1", text("all"))
      ]),
      ["user go", "assistant call(1 run)", "tool result(1 run: \"all\")"],
      ["0 provisional"]
    )
  })

  it("what providers noted is kept, where the Effect providers look for it", () => {
    const session = sessionOf(
      document([user, {
        role: "assistant",
        content: [
          { type: "reasoning", text: "", providerOptions: { anthropic: { signature: "sig" } } },
          { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "blob" } } },
          {
            type: "reasoning",
            text: "",
            providerOptions: { openai: { itemId: "rs", reasoningEncryptedContent: "e" } }
          },
          { ...call("1"), providerOptions: { google: { thoughtSignature: "g" }, openai: { itemId: "fc" } } },
          { type: "text", text: "x", providerOptions: { openai: { itemId: "msg" } } }
        ]
      }]),
      "vercel-ai"
    )
    assert.deepStrictEqual(options(session), [
      { anthropic: { info: { type: "thinking", signature: "sig" } } },
      { anthropic: { info: { type: "redacted_thinking", redactedData: "blob" } } },
      { openai: { itemId: "rs", encryptedContent: "e" } },
      { google: { thoughtSignature: "g" }, openai: { itemId: "fc" } },
      { openai: { itemId: "msg" } }
    ])
  })

  describe("a log of the devtools", () => {
    const prompt = [{ role: "system", content: "You build." }, {
      role: "user",
      content: [{ type: "text", text: "go" }]
    }]
    const answer = { role: "assistant", content: [call("1")] }
    const step = (run: string, prompt: ReadonlyArray<unknown>, output: unknown, usage: unknown) => ({
      run_id: run,
      model_id: "glm-4.7",
      input: JSON.stringify({ prompt }),
      output: JSON.stringify(output),
      usage: JSON.stringify(usage)
    })
    const last = {
      textParts: [{ text: "done" }],
      toolCalls: [{ toolCallId: "2", toolName: "run", input: "{\"a\":1}" }]
    }
    const later = [...prompt, answer, result("1", { type: "text", value: "ok" })]
    const one = [
      step("r", prompt, { content: [call("1")] }, {
        inputTokens: { total: 100, noCache: 30, cacheRead: 60, cacheWrite: 10 },
        outputTokens: { total: 9, reasoning: 5 }
      }),
      step("r", later, last, { inputTokens: 200, outputTokens: 7, cachedInputTokens: 150 })
    ]
    it("is read from the longest prompt of a run and the answer to it, with the bill of each step", () => {
      const session = sessionOf(document({ runs: [{}], steps: one }), "vercel-ai")
      assert.strictEqual(session.model, "glm-4.7")
      assert.deepStrictEqual(Array.from(session.usage), [
        [2, { fresh: 30, cacheRead: 60, cacheWrite: 10, output: 9 }],
        // Whether the input of version 5 holds the cached part depends on the provider.
        [4, { cacheRead: 150, output: 7 }]
      ])
      const [answer] = session.messages.slice(-1)
      const call = answer?.role === "assistant" ? answer.content[1] : undefined
      assert.deepStrictEqual(call?.type === "tool-call" ? call.params : undefined, { a: 1 })
    })
    it("is a pool of its runs", () => {
      const log = document({ runs: [{}, {}], steps: [...one, step("s", prompt, [], {})] })
      assert.throws(() => sessionOf(log, "vercel-ai"), /the file holds 2 conversations/)
    })
  })

  describe("errors name the field", () => {
    const bad = (message: unknown) => document({ messages: [user, message] })
    fails("vercel-ai", [
      [
        "an unknown role",
        bad({ role: "wizard", content: "x" }),
        "f: messages[1].role: unknown role \"wizard\", expected system, user, assistant or tool"
      ],
      [
        "a number for a part",
        bad({ role: "user", parts: [5] }),
        "f: messages[1].parts[0]: expected an object, got a number"
      ],
      [
        "a number for a text",
        bad({ role: "assistant", content: [{ type: "text", text: 5 }] }),
        "f: messages[1].content[0].text: expected a string, got a number"
      ],
      [
        "a call without an id",
        bad({ role: "assistant", content: [{ type: "tool-call", toolName: "x" }] }),
        "f: messages[1].content[0].toolCallId: expected a string, got nothing"
      ],
      [
        "a call of a UI message without a state",
        bad({ role: "assistant", parts: [{ type: "tool-x", toolCallId: "1" }] }),
        "f: messages[1].parts[0].state: expected a string, got nothing"
      ],
      [
        "a tool message in text",
        bad({ role: "tool", content: "x" }),
        "f: messages[1].content: expected an array, got a string"
      ],
      [
        "a text in a tool message",
        bad({ role: "tool", content: [{ type: "text", text: "x" }] }),
        "f: messages[1].content[0].type: a part of type \"text\" stands in a tool message"
      ],
      [
        "an output of content that is no list",
        bad(result("1", { type: "content", value: "x" })),
        "f: messages[1].content[0].output.value: expected an array, got a string"
      ],
      [
        "a step without a prompt",
        document({ runs: [], steps: [{ run_id: "r", input: "{}" }] }),
        "f#0: steps[0].input.prompt: expected an array, got nothing"
      ],
      [
        "a step whose input is no JSON",
        document({ runs: [], steps: [{ run_id: "r", input: "{" }] }),
        "f#0: steps[0].input: expected an object as JSON text"
      ],
      ["no steps", document({ runs: [], steps: [] }), "f: no message of the format vercel-ai in the file"]
    ])
  })
})
