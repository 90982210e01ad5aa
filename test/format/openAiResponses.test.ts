import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as OpenAiResponses from "effect-compaction/format/OpenAiResponses"
import * as Marks from "effect-compaction/Marks"
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import { existsSync, readFileSync } from "node:fs"
import { count, itReads, outline, recorded } from "./recorded.ts"
import { failure, keeps, read, responses } from "./wireBodies.ts"

const message = (role: string, content: unknown, more: object = {}) => ({ type: "message", role, content, ...more })
const user = (text: string) => message("user", [{ type: "input_text", text }])
const said = (text: string, more: object = {}) => ({ type: "output_text", text, ...more })
const answer = (text: string, more: object = {}) => message("assistant", [said(text)], more)
const call = (call_id: string, more: object = {}) => ({
  type: "function_call",
  call_id,
  name: "ls",
  arguments: "{}",
  ...more
})
const output = (call_id: string, output: unknown, more: object = {}) => ({
  type: "function_call_output",
  call_id,
  output,
  ...more
})
const summary = (text: string) => ({ type: "summary_text", text })

// Each list stands as the writer puts it, so that reading and writing gives the same items again.
const inputs: ReadonlyArray<readonly [name: string, items: ReadonlyArray<object>, outline: ReadonlyArray<string>]> = [
  ["one response as one message", [
    user("u"),
    { type: "reasoning", id: "rs_1", summary: [summary("hm")], encrypted_content: "x" },
    answer("two", { id: "msg_1", phase: "commentary", status: "completed" }),
    call("a", { id: "fc_1", status: "completed" }),
    call("b"),
    output("b", "2"),
    output("a", "1", { id: "fco_1" }),
    answer("done")
  ], [
    "user u",
    "assistant reasoning(hm) + two + call(a ls) + call(b ls)",
    "tool result(b ls: \"2\")",
    "tool result(a ls: \"1\")",
    "assistant done"
  ]],
  ["reasoning in every shape", [
    user("u"),
    { type: "reasoning", summary: [] },
    { type: "reasoning", summary: [], encrypted_content: "x" },
    { type: "reasoning", summary: [summary("a"), summary("b")] },
    { type: "reasoning", summary: [summary("")] },
    { type: "reasoning", id: "rs", summary: [summary("short")], content: [{ type: "reasoning_text", text: "long" }] }
  ], ["user u", "assistant reasoning() + reasoning() + reasoning(a\n\nb) + reasoning() + reasoning(long)"]],
  ["system and developer messages", [
    message("developer", [{ type: "input_text", text: "d" }]),
    message("system", [{ type: "input_text", text: "a" }, { type: "input_text", text: "b" }], { id: "m" }),
    user("u"),
    message("developer", [{ type: "input_text", text: "now" }]),
    answer("a"),
    message("system", [{ type: "input_text", text: "late" }])
  ], ["system d", "system a\n\nb", "user u", "user/runtime-context now", "assistant a", "system late"]],
  ["answers in several items and several parts", [
    message("assistant", [said("a"), said("b")]),
    answer("c"),
    message("assistant", [{ type: "refusal", refusal: "no" }], { id: "m1" }),
    message("assistant", [said("d", { annotations: [{ type: "url_citation" }] }), said("e")], { id: "m2" }),
    message("assistant", [{ type: "input_text", text: "f" }]),
    message("assistant", [{ type: "output_audio", id: "x" }, said("g")], { id: "m3" })
  ], ["assistant a + b + c + no + d + e + f + opaque + g"]],
  ["free-form calls", [
    user("u"),
    { type: "custom_tool_call", call_id: "a", name: "patch", input: "*** Begin", status: "completed" },
    { type: "custom_tool_call_output", call_id: "a", output: "{\"output\":\"ok\"}" }
  ], ["user u", "assistant call(a patch)", "tool result(a patch: \"{\\\"output\\\":\\\"ok\\\"}\")"]],
  ["outputs of a local shell that name their call by an id alone", [
    user("u"),
    { type: "local_shell_call", id: "lsh_1", call_id: "a", action: { type: "exec" } },
    { type: "local_shell_call_output", output: "1", id: "lsh_1" },
    { type: "local_shell_call", id: "lsh_2", call_id: "b", action: { type: "exec" } },
    { type: "local_shell_call_output", output: "2", id: "b" },
    { type: "local_shell_call_output", id: "lsh_9", output: "3" }
  ], [
    "user u",
    "assistant call(a local_shell)",
    "tool result(a local_shell: \"1\")",
    "assistant call(b local_shell)",
    "tool result(b local_shell: \"2\")",
    "assistant opaque"
  ]],
  ["opaque items where they stood", [
    user("u"),
    { type: "item_reference", id: "x" },
    { type: "web_search_call", id: "ws", status: "completed", action: { type: "search", query: "q" } },
    answer("found"),
    { type: "compaction", id: "c", encrypted_content: "e" },
    user("v"),
    { type: "mcp_list_tools", server_label: "s", tools: [] },
    { type: "never_seen_before", a: { b: [1] } }
  ], ["user u", "assistant opaque + opaque + found + opaque", "user v", "assistant opaque + opaque"]],
  ["built-in tools that the client runs", [
    user("u"),
    {
      type: "local_shell_call",
      id: "ls1",
      call_id: "a",
      action: { type: "exec", command: ["ls"] },
      status: "completed"
    },
    { type: "local_shell_call_output", call_id: "a", output: "x" },
    { type: "shell_call", call_id: "b", action: { commands: ["ls"] } },
    {
      type: "shell_call_output",
      call_id: "b",
      output: [{ stdout: "x", stderr: "", outcome: { type: "exit", exit_code: 0 } }]
    },
    { type: "computer_call", call_id: "c", action: { type: "screenshot" }, pending_safety_checks: [{ id: "p" }] },
    {
      type: "computer_call_output",
      call_id: "c",
      output: { type: "computer_screenshot", image_url: "data:image/png;base64,AAAA" },
      acknowledged_safety_checks: [{ id: "p" }]
    }
  ], [
    "user u",
    "assistant call(a local_shell)",
    "tool result(a local_shell: \"x\")",
    "assistant call(b shell)",
    "tool result(b shell: [{\"stdout\":\"x\",\"stderr\":\"\",\"outcome\":{\"type\":\"exit\",\"exit_code\":0}}])",
    "assistant call(c computer)",
    "tool result(c computer: [{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"AAAA\"}])"
  ]],
  ["calls over MCP, which hold their own result", [
    user("u"),
    { type: "mcp_call", id: "m1", name: "echo", arguments: "{}", output: "1", server_label: "s" },
    { type: "mcp_call", id: "m2", name: "echo", arguments: "{\"a\":1.0}", error: { message: "no" }, server_label: "s" }
  ], [
    "user u",
    "assistant call(m1 echo) + result(m1 echo: \"1\") + call(m2 echo) + result(m2 echo failed: {\"message\":\"no\"})"
  ]],
  ["images and files", [
    message("user", [
      { type: "input_text", text: "see" },
      { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" },
      { type: "input_image", image_url: "https://x.test/a.png" },
      { type: "input_image", file_id: "f" },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" },
      { type: "input_file", file_url: "https://x.test/a.pdf" }
    ])
  ], ["user see + file(image/png) + file(image/*) + opaque + file(application/pdf) + opaque"]],
  ["blocks in outputs", [
    output("a", [
      { type: "input_text", text: "see" },
      { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "low" },
      { type: "input_file", file_id: "f" }
    ])
  ], [
    "tool result(a : [{\"type\":\"text\",\"text\":\"see\"}," +
    "{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"AAAA\",\"detail\":\"low\"},{\"type\":\"input_file\",\"file_id\":\"f\"}])"
  ]],
  ["arguments that are not JSON, or lose something", [
    user("u"),
    call("a", { arguments: "{\"a\":" }),
    call("b", { arguments: "" }),
    call("c", { arguments: "{\"n\":12345678901234567890}" })
  ], ["user u", "assistant call(a ls) + call(b ls) + call(c ls)"]],
  ["an empty answer", [user("u"), message("assistant", []), user("v")], ["user u", "assistant ", "user v"]]
]

describe("OpenAiResponses", () => {
  for (const [name, items, expected] of inputs) {
    it(`reads and writes ${name}`, () => {
      const session = read(responses, items)
      assert.deepStrictEqual(outline(session), expected)
      assert.deepStrictEqual<unknown>(keeps(responses, session.messages), { input: items })
    })
  }

  it("an output, or a call at a server, that is not there as a whole answers nothing", () => {
    const server = { type: "mcp_call", name: "f", arguments: "{}" }
    const session = read(responses, [
      user("u"),
      call("a"),
      output("a", "so far", { status: "in_progress" }),
      output("a", "all", { status: "completed" }),
      { ...server, id: "m1", status: "calling", output: null },
      { ...server, id: "m2", status: "completed", output: "ok" }
    ])
    assert.deepStrictEqual(outline(session), [
      "user u",
      "assistant call(a ls)",
      "tool result(a ls: \"all\")",
      "assistant call(m1 f) + call(m2 f) + result(m2 f: \"ok\")"
    ])
    assert.deepStrictEqual(session.findings.map(({ kind }) => kind), ["provisional", "unanswered-call"])
  })

  it("keeps ids and encrypted reasoning where the provider looks for them", () => {
    const [, message] = read(responses, [
      user("u"),
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" },
      call("a", { id: "fc_1" })
    ]).messages
    assert(message?.role === "assistant")
    assert.deepStrictEqual(message.content.map((part) => part.options.openai), [
      { itemId: "rs_1", encryptedContent: "x" },
      { itemId: "fc_1" }
    ])
  })

  it("keeps an opaque item whole under a mark", () => {
    const item = { type: "web_search_call", status: "completed" }
    const [message] = read(responses, [item]).messages
    assert(message?.role === "assistant")
    const [part] = message.content
    assert(part?.type === "text")
    assert.strictEqual(part.text, "")
    assert.deepStrictEqual(Marks.of(part).raw, item)
  })

  it("reads a body with instructions and a text, and messages without a type", () => {
    const body = { model: "gpt-5", instructions: "s", input: "u" }
    const session = read(responses, body)
    assert.deepStrictEqual([session.model, ...outline(session)], ["gpt-5", "system s", "user u"])
    assert.deepStrictEqual<unknown>(OpenAiResponses.write(session.messages, { model: "gpt-5" }).value, {
      ...body,
      input: [user("u")]
    })
    assert.deepStrictEqual(
      outline(read(responses, { input: [{ role: "user", content: "u" }, { role: "assistant", content: "a" }] })),
      ["user u", "assistant a"]
    )
  })

  it("writes edited reasoning and system text, not what they were read from", () => {
    const session = read(responses, [
      message("system", [{ type: "input_text", text: "a" }, { type: "input_text", text: "b" }]),
      { type: "reasoning", summary: [summary("a"), summary("b")] }
    ])
    const edited = session.messages.map((message) =>
      message.role === "system"
        ? { ...message, content: "new" }
        : message.role === "assistant"
        ? {
          ...message,
          content: message.content.map((part) => part.type === "reasoning" ? { ...part, text: "new" } : part)
        }
        : message
    )
    assert.deepStrictEqual<unknown>(OpenAiResponses.write(edited).value, {
      input: [message("system", [{ type: "input_text", text: "new" }]), {
        type: "reasoning",
        summary: [summary("new")]
      }]
    })
  })

  it("says that a body continues a stored response, and takes its usage", () => {
    const session = read(responses, {
      previous_response_id: "resp_1",
      input: [answer("a")],
      usage: { input_tokens: 10, input_tokens_details: { cached_tokens: 4 }, output_tokens: 3 }
    })
    assert.deepStrictEqual(session.findings.map(({ detail }) => detail), [
      "previous_response_id: earlier items are not in the file"
    ])
    assert.deepStrictEqual([...session.usage], [[0, { fresh: 6, cacheRead: 4, output: 3 }]])
  })

  it("is found by its items or its input", () => {
    const format = (body: unknown) =>
      Result.getOrThrow(Format.fromString(JSON.stringify(body), { file: "a.json" })).format
    assert.strictEqual(format([user("u")]), "openai-responses")
    assert.strictEqual(format([{ role: "user", content: "u" }, call("a")]), "openai-responses")
    assert.strictEqual(format({ model: "gpt-5", input: "u" }), "openai-responses")
    assert.strictEqual(format({ input: [{ role: "user", content: "u" }] }), "openai-responses")
    assert.strictEqual(format([{ role: "user", content: "u" }]), "openai-chat")
  })

  const bad: ReadonlyArray<readonly [document: unknown, field: string, expected: RegExp]> = [
    [{}, "input", /expected an array, got nothing/],
    [[], "", /at least one message/],
    ["u", "", /expected an object, got a string/],
    [{ input: 7 }, "input", /expected an array, got a number/],
    [{ input: [user("u")], instructions: 7 }, "instructions", /expected a string, got a number/],
    [[7], "[0]", /expected an object, got a number/],
    [[{ content: "u" }], "[0].type", /expected a string, got nothing/],
    [[message("tool", "u")], "[0].role", /unknown role "tool"/],
    [[message("user", 7)], "[0].content", /got a number/],
    [[message("user", [{ type: "input_text" }])], "[0].content[0].text", /expected a string, got nothing/],
    [[message("system", [{ type: "input_image", file_id: "f" }])], "[0].content", /expected text only/],
    [{ input: [user("u"), call("a", { name: 7 })] }, "input[1].name", /expected a string, got a number/],
    [[call("a", { arguments: {} })], "[0].arguments", /expected a string, got a.? object/],
    [[output("a", 7)], "[0].output", /got a number/],
    [[{ type: "function_call_output", output: "" }], "[0].call_id", /expected a string, got nothing/],
    [[{ type: "reasoning", summary: "hm" }], "[0].summary", /expected an array, got a string/]
  ]
  for (const [document, field, expected] of bad) {
    it(`fails at ${field === "" ? "the document" : field}: ${JSON.stringify(document).slice(0, 60)}`, () => {
      const found = failure(responses, [document, 0])
      assert(found !== "read")
      assert.deepStrictEqual([found.line, found.field], [0, field])
      assert.match(found.expected, expected)
    })
  }
})

describe("OpenAiResponses.write", () => {
  const reports = (name: string, message: Prompt.Message, kinds: ReadonlyArray<string>, input: unknown) =>
    it(name, () => {
      const { losses, value } = OpenAiResponses.write([message])
      assert.deepStrictEqual(losses.map(({ kind }) => kind), kinds)
      assert.deepStrictEqual<unknown>(value, { input })
    })
  reports(
    "a failure flag and a structured result",
    Prompt.toolMessage({
      content: [
        Prompt.toolResultPart({ id: "a", name: "f", isFailure: true, result: { a: 1 }, providerExecuted: false })
      ]
    }),
    ["failure-flag", "structured-result"],
    [output("a", "{\"a\":1}")]
  )
  reports(
    "what ran at another provider, a file, an approval, a signature, a block of another format",
    Prompt.assistantMessage({
      content: [
        Prompt.toolCallPart({ id: "a", name: "web_search", params: {}, providerExecuted: true }),
        Prompt.toolResultPart({ id: "a", name: "web_search", isFailure: false, result: [], providerExecuted: true }),
        Prompt.textPart({ text: "t" }),
        Prompt.filePart({ mediaType: "image/png", data: "AAAA" }),
        Prompt.toolApprovalRequestPart({ approvalId: "p", toolCallId: "a" }),
        Prompt.reasoningPart({ text: "hm", options: { anthropic: { info: { type: "thinking", signature: "s" } } } }),
        Marks.set(Prompt.textPart({ text: "" }), { raw: { type: "container_upload", file_id: "f" } })
      ]
    }),
    ["provider-executed", "provider-executed", "file", "approval", "options", "opaque-item"],
    [
      message("assistant", [said("t"), said("[image/png omitted]")]),
      { type: "reasoning", summary: [summary("hm")] }
    ]
  )
})

describe("recorded inputs", () => {
  // The index counts message items alone: 158 and 15. Here a response is one message, whatever its items, and each
  // output is a message; so the counts are of the items that begin one.
  const starts = (name: string): number => {
    const { input }: { readonly input: ReadonlyArray<{ readonly type: string; readonly role?: string }> } = JSON.parse(
      readFileSync(recorded(name), "utf8")
    )
    const side = input.map(({ role, type }) =>
      type.endsWith("_call_output") || role === "user" || role === "developer" ? "in" : "out"
    )
    return side.filter((one, i) => one === "in" || side[i - 1] !== "out").length
  }
  for (
    const [name, calls, images, reasoning, opaque] of [
      ["openai-responses/derived-codex-input-gpt54-591-calls-2-compactions.json", 79, 0, 59, 5],
      ["openai-responses/derived-codex-input-gpt55-image.json", 29, 1, 8, 0]
    ] as const
  ) {
    itReads(name, (session) => {
      assert.strictEqual(session.format, "openai-responses")
      const counted = count(session)
      assert.deepStrictEqual([counted.calls, counted.results, counted.images], [calls, calls, images])
      assert.strictEqual(session.messages.length, starts(name))
      const parts = session.messages.flatMap((message) => message.role === "assistant" ? message.content : [])
      assert.strictEqual(parts.filter(({ type }) => type === "reasoning").length, reasoning)
      assert.strictEqual(parts.filter((part) => Marks.of(part).raw !== undefined).length, opaque)
      assert.deepStrictEqual(session.findings, [])
      keeps(responses, session.messages)
    })
  }

  const cassette = recorded("openai-responses/vcr-responses-tools.yaml")
  if (!existsSync(cassette)) it.skip("the cassette is not on this machine", () => {})
  else {
    it("reads the request bodies of a cassette", () => {
      const yaml = readFileSync(cassette, "utf8")
      // Single-quoted YAML: two quotes are one, a line break is a space.
      const bodies = Array.from(
        yaml.matchAll(/^ +body: '((?:[^']|'')*)'$/gm),
        (match) => match[1]!.replaceAll("''", "'").replaceAll(/\n\s*/g, " ")
      )
        .filter((text) => text.startsWith("{\"input\""))
      // Three messages with a role over both requests, a call and its result. The empty one between them is real.
      const outlines = bodies.map((body) => {
        const session = read(responses, JSON.parse(body))
        keeps(responses, session.messages)
        return session.messages.map(({ role }) => role).join(" ")
      })
      assert.deepStrictEqual(outlines, ["user", "user assistant user tool"])
    })
  }
})
