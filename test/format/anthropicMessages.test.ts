import { assert, describe, it } from "@effect/vitest"
import * as AnthropicMessages from "effect-compaction/format/AnthropicMessages"
import * as Format from "effect-compaction/format/Format"
import * as Marks from "effect-compaction/Marks"
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import { count, itReads, outline } from "./recorded.ts"
import { anthropic, failure, keeps, read } from "./wireBodies.ts"

const text = (text: string, more: object = {}) => ({ type: "text", text, ...more })
const use = (id: string, more: object = {}) => ({ type: "tool_use", id, name: "ls", input: { path: id }, ...more })
const result = (tool_use_id: string, content: unknown, more: object = {}) => ({
  type: "tool_result",
  tool_use_id,
  content,
  ...more
})
const user = (content: unknown, more: object = {}) => ({ role: "user", content, ...more })
const assistant = (content: unknown, more: object = {}) => ({ role: "assistant", content, ...more })
const cache_control = { type: "ephemeral", ttl: "1h" }
const png = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }

// Each body stands as the writer puts it, so that reading and writing gives the same JSON again.
const bodies: ReadonlyArray<readonly [name: string, body: object, outline: ReadonlyArray<string>]> = [
  ["a system text", { system: "s", messages: [user("u")] }, ["system s", "user u"]],
  ["system blocks", { system: [text("a", { cache_control }), text("b")], messages: [user("u")] }, [
    "system a",
    "system b",
    "user u"
  ]],
  ["all results of a message and the text after them", {
    messages: [
      user("u"),
      assistant([text("two"), use("a"), use("b")]),
      user([result("b", "2"), result("a", "1", { is_error: true }), text("go on")]),
      assistant("done")
    ]
  }, [
    "user u",
    "assistant two + call(a ls) + call(b ls)",
    "tool result(b ls: \"2\") + result(a ls failed: \"1\")",
    "user go on",
    "assistant done"
  ]],
  ["marks for the cache, everywhere", {
    messages: [
      user([text("u", { cache_control })]),
      assistant([text("a", { cache_control }), use("a", { cache_control })]),
      user([result("a", [text("1"), text("2", { cache_control })], { cache_control }), { ...png, cache_control }])
    ]
  }, [
    "user u",
    "assistant a + call(a ls)",
    `tool result(a ls: ${JSON.stringify([text("1"), text("2", { cache_control })])})`,
    "user file(image/png)"
  ]],
  ["signed, redacted and unsigned thinking, empty ones too", {
    messages: [
      user("u"),
      assistant([
        { type: "thinking", thinking: "", signature: "s1" },
        { type: "thinking", thinking: "hm", signature: "s2" },
        { type: "redacted_thinking", data: "x" },
        { type: "thinking", thinking: "plain" },
        text("")
      ])
    ]
  }, ["user u", "assistant reasoning() + reasoning(hm) + reasoning() + reasoning(plain) + opaque"]],
  ["server tools, also paused before the result", {
    messages: [
      user("u"),
      assistant([
        { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "q" } },
        {
          type: "web_search_tool_result",
          tool_use_id: "s1",
          content: [{ type: "web_search_result", url: "https://x.test", title: "t", encrypted_content: "e" }]
        },
        { type: "mcp_tool_use", id: "m1", name: "echo", server_name: "srv", input: {} },
        { type: "mcp_tool_result", tool_use_id: "m1", is_error: true, content: [text("no")] },
        { type: "server_tool_use", id: "s2", name: "web_search", input: {} },
        {
          type: "web_search_tool_result",
          tool_use_id: "s3",
          content: { type: "web_search_tool_result_error", error_code: "unavailable" }
        },
        text("cited", { citations: [{ type: "char_location", start_char_index: 0 }] })
      ])
    ]
  }, [
    "user u",
    "assistant call(s1 web_search) + result(s1 web_search: [{\"type\":\"web_search_result\",\"url\":\"https://x.test\"," +
    "\"title\":\"t\",\"encrypted_content\":\"e\"}]) + call(m1 echo) + result(m1 mcp failed: [{\"type\":\"text\",\"text\":\"no\"}]) + " +
    "call(s2 web_search) + result(s3 web_search: {\"type\":\"web_search_tool_result_error\",\"error_code\":\"unavailable\"}) + cited"
  ]],
  ["a compaction block, and other blocks without a part", {
    messages: [
      user([
        text("u"),
        { type: "container_upload", file_id: "f" },
        { type: "search_result", source: "s", title: "t", content: [text("c")] },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "d" }, context: "c" }
      ]),
      assistant([{ type: "compaction", content: "so far" }, text("a")])
    ]
  }, ["user u + opaque + opaque + opaque", "assistant opaque + a"]],
  ["images and documents", {
    messages: [user([
      png,
      { type: "image", source: { type: "url", url: "https://x.test/a.png" } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "AAAA" }, title: "a.pdf" },
      { type: "document", source: { type: "url", url: "https://x.test/a.pdf" }, citations: { enabled: true } }
    ])]
  }, ["user file(image/png) + file(image/*) + file(application/pdf) + file(application/pdf)"]],
  ["images in results", {
    messages: [
      user("u"),
      assistant([use("a")]),
      user([result("a", [text("see"), png, { type: "tool_reference", tool_name: "x" }])])
    ]
  }, [
    "user u",
    "assistant call(a ls)",
    "tool result(a ls: [{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"AAAA\"}," +
    "{\"type\":\"tool_reference\",\"tool_name\":\"x\"}])"
  ]],
  ["a mark for the cache on an image in a result", {
    messages: [user([result("a", [{ ...png, cache_control }])])]
  }, [`tool result(a : ${JSON.stringify([{ type: "image", mediaType: "image/png", data: "AAAA", cache_control }])})`]],
  ["fields without a place", {
    messages: [
      user("u", { id: "m1" }),
      assistant([use("a", { caller: { type: "direct" } })], { stop_reason: "tool_use" })
    ]
  }, ["user u", "assistant call(a ls)"]],
  ["messages without content", { messages: [user([])] }, ["user "]]
]

describe("AnthropicMessages", () => {
  for (const [name, body, expected] of bodies) {
    it(`reads and writes ${name}`, () => {
      const session = read(anthropic, body)
      assert.deepStrictEqual(outline(session), expected)
      assert.deepStrictEqual<unknown>(keeps(anthropic, session.messages), body)
    })
  }

  it("reads one text block of a result as the text, and nothing as an empty text", () => {
    const session = read(anthropic, {
      messages: [user([result("a", [text("1")]), { type: "tool_result", tool_use_id: "b" }])]
    })
    assert.deepStrictEqual(outline(session), ["tool result(a : \"1\") + result(b : \"\")"])
    keeps(anthropic, session.messages)
  })

  it("puts results that stand late back to the start", () => {
    const session = read(anthropic, { messages: [user([text("u"), result("a", "1")])] })
    assert.deepStrictEqual(outline(session), ["user u", "tool result(a : \"1\")"])
    assert.deepStrictEqual<unknown>(AnthropicMessages.write(session.messages).value, {
      messages: [user([result("a", "1"), text("u")])]
    })
  })

  it("takes messages of nothing but reminders for a machine's", () => {
    const reminder = (source: string) => `<system-reminder source="${source}">x</system-reminder>`
    const session = read(anthropic, {
      messages: [
        user("<system-reminder>x</system-reminder>"),
        user(reminder("context-summary")),
        user(reminder("a-person")),
        user([text("do it"), text("<system-reminder>x</system-reminder>")]),
        user([text("<system-reminder>x</system-reminder>"), text("do it")]),
        user([text("<system-reminder>x</system-reminder>"), png]),
        user([])
      ]
    })
    assert.deepStrictEqual(session.messages.map((message) => Marks.of(message).source), [
      "hook",
      "context-summary",
      "hook",
      undefined,
      undefined,
      undefined,
      undefined
    ])
  })

  it("keeps usage of messages and sums what server-side compaction took", () => {
    const usage = { input_tokens: 1, cache_read_input_tokens: 2, cache_creation_input_tokens: 3, output_tokens: 4 }
    const iterations = [
      { type: "compaction", input_tokens: 55196, output_tokens: 125 },
      { type: "message", input_tokens: 220, output_tokens: 9 }
    ]
    const session = read(anthropic, {
      messages: [assistant("a", { usage }), assistant("b")],
      usage: { input_tokens: 220, output_tokens: 9, iterations }
    })
    assert.deepStrictEqual([...session.usage], [
      [0, { fresh: 1, cacheRead: 2, cacheWrite: 3, output: 4 }],
      [1, { fresh: 55416, output: 134 }]
    ])
  })

  it("is found by its blocks, its system prompt or its model", () => {
    const format = (body: unknown) =>
      Result.getOrThrow(Format.fromString(JSON.stringify(body), { file: "a.json" })).format
    assert.strictEqual(format({ messages: [user([result("a", "1")])] }), "anthropic-messages")
    assert.strictEqual(format({ system: "s", messages: [user("u")] }), "anthropic-messages")
    assert.strictEqual(format({ model: "claude-x", messages: [user("u")] }), "anthropic-messages")
    assert.strictEqual(format({ model: "gpt-x", messages: [user("u")] }), "openai-chat")
    assert.strictEqual(
      format({ model: "claude-x", messages: [{ role: "system", content: "s" }, user("u")] }),
      "openai-chat"
    )
  })

  const bad: ReadonlyArray<readonly [document: unknown, field: string, expected: RegExp]> = [
    [{}, "messages", /expected an array, got nothing/],
    [[], "", /expected an object, got an array/],
    [{ messages: [] }, "", /at least one message/],
    [{ messages: "u" }, "messages", /expected an array, got a string/],
    [{ messages: [user("u")], system: 7 }, "system", /expected a string or an array, got a number/],
    [{ messages: [user("u")], system: [{ type: "text" }] }, "system[0].text", /expected a string, got nothing/],
    [{ messages: [{ role: "system", content: "s" }] }, "messages[0].role", /unknown role "system"/],
    [{ messages: [user(7)] }, "messages[0].content", /expected a string or an array, got a number/],
    [{ messages: [user("u"), assistant(null)] }, "messages[1].content", /expected a string or an array, got null/],
    [{ messages: [user([{ type: 7 }])] }, "messages[0].content[0].type", /expected a string, got a number/],
    [
      { messages: [user([result("a", 7)])] },
      "messages[0].content[0].content",
      /expected a string or an array, got a number/
    ],
    [{ messages: [user([{ type: "tool_result" }])] }, "messages[0].content[0].tool_use_id", /expected a string/],
    [
      { messages: [user([{ type: "image", source: { type: "base64", data: "" } }])] },
      "messages[0].content[0].source.media_type",
      /expected a string, got nothing/
    ],
    [
      { messages: [user("u"), assistant([text("t"), use("a", { name: 7 })])] },
      "messages[1].content[1].name",
      /expected a string, got a number/
    ],
    [{ messages: [assistant([result("a", "1")])] }, "messages[0].content[0].type", /a tool_result stands in/]
  ]
  for (const [document, field, expected] of bad) {
    it(`fails at ${field === "" ? "the document" : field}: ${JSON.stringify(document).slice(0, 60)}`, () => {
      const found = failure(anthropic, [document, 0])
      assert(found !== "read")
      assert.deepStrictEqual([found.line, found.field], [0, field])
      assert.match(found.expected, expected)
    })
  }
})

describe("AnthropicMessages.write", () => {
  const part = (id: string, more: Partial<Prompt.ToolResultPart> = {}) =>
    Prompt.toolResultPart({ id, name: "ls", isFailure: false, result: id, providerExecuted: false, ...more })
  const person = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })

  it("merges neighbours and answers all calls of a message in the next one", () => {
    const call = (id: string) => Prompt.toolCallPart({ id, name: "ls", params: { path: id }, providerExecuted: false })
    const { losses, value } = AnthropicMessages.write([
      Prompt.systemMessage({ content: "a" }),
      Prompt.systemMessage({ content: "b" }),
      person("u"),
      Prompt.assistantMessage({ content: [call("a")] }),
      Prompt.assistantMessage({ content: [call("b")] }),
      Prompt.toolMessage({ content: [part("a")] }),
      person("meanwhile"),
      Prompt.toolMessage({ content: [part("b")] }),
      Prompt.systemMessage({ content: "late" })
    ], { model: "claude-x" })
    assert.deepStrictEqual(losses.map(({ detail, kind }) => `${kind} ${detail}`), [
      "order messages[8]: a later system message is moved to the start"
    ])
    assert.deepStrictEqual<unknown>(value, {
      model: "claude-x",
      system: [text("a"), text("b"), text("late")],
      messages: [
        user("u"),
        assistant([use("a"), use("b")]),
        user([result("a", "a"), result("b", "b"), text("meanwhile")])
      ]
    })
  })

  it("puts a message's mark for the cache on its last block", () => {
    const { losses, value } = AnthropicMessages.write([
      Prompt.toolMessage({
        content: [part("a"), part("b")],
        options: { anthropic: { cacheControl: { type: "ephemeral" } } }
      })
    ])
    assert.deepStrictEqual(losses, [])
    assert.deepStrictEqual<unknown>(value, {
      messages: [user([result("a", "a"), result("b", "b", { cache_control: { type: "ephemeral" } })])]
    })
  })

  const reports = (
    name: string,
    content: ReadonlyArray<Prompt.AssistantMessagePart>,
    kinds: ReadonlyArray<string>,
    written: unknown
  ) =>
    it(name, () => {
      const { losses, value } = AnthropicMessages.write([Prompt.assistantMessage({ content })])
      assert.deepStrictEqual(losses.map(({ kind }) => kind), kinds)
      assert.deepStrictEqual<unknown>(value, { messages: [assistant(written)] })
    })
  reports(
    "reasoning of another provider",
    [
      Prompt.reasoningPart({ text: "hm", options: { openai: { itemId: "rs" } } }),
      Prompt.reasoningPart({ text: "hm" })
    ],
    ["options", "reasoning", "reasoning"],
    []
  )
  reports(
    "arguments that are no object",
    [Prompt.toolCallPart({ id: "a", name: "patch", params: "*** Begin", providerExecuted: false })],
    ["arguments"],
    [{ type: "tool_use", id: "a", name: "patch", input: { input: "*** Begin" } }]
  )
  reports(
    "files it does not take, and the name of an image",
    [
      Prompt.filePart({ mediaType: "audio/wav", data: "AAAA" }),
      Prompt.filePart({ mediaType: "image/png", data: "AAAA", fileName: "a.png" })
    ],
    ["file", "file"],
    [text("[audio/wav omitted]"), png]
  )
  reports(
    "an item of another format, an approval",
    [
      Marks.set(Prompt.textPart({ text: "" }), { raw: { type: "compaction", id: "c", encrypted_content: "x" } }),
      Prompt.toolApprovalRequestPart({ approvalId: "p", toolCallId: "a" })
    ],
    ["opaque-item", "approval"],
    []
  )
})

describe("recorded bodies", () => {
  // The index counts messages of the body, where results and the text after them are one user message and the system
  // prompt is none: 17 and 27. Here each system block is a message, and so are the results and the text apart.
  itReads("anthropic-messages/derived-amplifier-last-request-body.json", (session) => {
    assert.strictEqual(session.format, "anthropic-messages")
    const { calls, images, results, signatures } = count(session)
    assert.deepStrictEqual([session.messages.length, calls, results, images, signatures], [17 + 1, 8, 8, 0, 8])
    assert.deepStrictEqual(session.findings, [])
    keeps(anthropic, session.messages)
  })
  itReads("anthropic-messages/derived-claude-trace-longest-body.json", (session) => {
    assert.strictEqual(session.format, "anthropic-messages")
    const { calls, images, results, signatures } = count(session)
    assert.deepStrictEqual([session.messages.length, calls, results, images, signatures], [27 + 2, 11, 11, 0, 0])
    assert.deepStrictEqual(session.findings, [])
    keeps(anthropic, session.messages)
  })
})
