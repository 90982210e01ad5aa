import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as OpenAiChat from "effect-compaction/format/OpenAiChat"
import * as Marks from "effect-compaction/Marks"
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import { existsSync, readFileSync } from "node:fs"
import { billed, count, itReads, outline, recorded } from "./recorded.ts"
import { chat, equal, failure, keeps, read } from "./wireBodies.ts"

const call = (id: string, args: string, more: object = {}) => ({
  id,
  type: "function",
  function: { name: "ls", arguments: args },
  ...more
})
const asks = (...calls: ReadonlyArray<object>) => ({ role: "assistant", content: null, tool_calls: calls })
const result = (id: string, content: unknown, more: object = {}) => ({
  role: "tool",
  tool_call_id: id,
  content,
  ...more
})
const user = (content: unknown, more: object = {}) => ({ role: "user", content, ...more })

describe("OpenAiChat.reader", () => {
  const cases: ReadonlyArray<readonly [name: string, messages: ReadonlyArray<object>, outline: ReadonlyArray<string>]> =
    [
      ["system and developer", [{ role: "system", content: "s" }, { role: "developer", content: "d" }, user("u")], [
        "system s",
        "system d",
        "user u"
      ]],
      ["system text in parts", [{
        role: "system",
        content: [{ type: "text", text: "a" }, { type: "text", text: "b" }]
      }], [
        "system a\n\nb"
      ]],
      ["parallel calls, results in another order, the name from the call", [
        user("u"),
        asks(call("a", "{}"), call("b", "{\"x\":1}")),
        result("b", "2"),
        result("a", [{ type: "text", text: "1" }])
      ], ["user u", "assistant call(a ls) + call(b ls)", "tool result(b ls: \"2\")", "tool result(a ls: \"1\")"]],
      ["a name on the result wins", [user("u"), asks(call("a", "{}")), result("a", "1", { name: "dir" })], [
        "user u",
        "assistant call(a ls)",
        "tool result(a dir: \"1\")"
      ]],
      ["several blocks in a result", [
        result("x", [{ type: "text", text: "1" }, { type: "text", text: "2" }])
      ], ["tool result(x : [{\"type\":\"text\",\"text\":\"1\"},{\"type\":\"text\",\"text\":\"2\"}])"]],
      ["an answer beside calls, reasoning first", [
        user("u"),
        { role: "assistant", content: "hi", reasoning_content: "hm", tool_calls: [call("a", "{}")] }
      ], ["user u", "assistant reasoning(hm) + hi + call(a ls)"]],
      ["a refusal", [user("u"), { role: "assistant", content: null, refusal: "no" }], ["user u", "assistant no"]],
      ["the old way of calling", [
        user("u"),
        { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
        { role: "function", name: "f", content: "1" }
      ], ["user u", "assistant call(function_call_1 f)", "tool result(function_call_1 f: \"1\")"]],
      ["images, audio, files, and what only names a file", [
        user([
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
          { type: "image_url", image_url: { url: "https://x.test/a.png" } },
          { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" } },
          { type: "file", file: { file_id: "file_1" } }
        ])
      ], ["user see + file(image/png) + file(image/*) + file(audio/wav) + file(application/pdf) + opaque"]],
      ["a free-form call", [
        user("u"),
        asks({ id: "a", type: "custom", custom: { name: "patch", input: "*** Begin" } })
      ], ["user u", "assistant call(a patch)"]]
    ]
  for (const [name, messages, expected] of cases) {
    it(`${name}, and back`, () => {
      const session = read(chat, messages)
      assert.deepStrictEqual(outline(session), expected)
      keeps(chat, session.messages)
    })
  }

  it("writes what it read, field by field", () => {
    // In the writer's own order of keys and with every name written, so that it is the same text again.
    const body = {
      messages: [
        { role: "system", content: [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }] },
        user("u", { name: "ann" }),
        {
          role: "assistant",
          content: null,
          reasoning_content: "hm",
          tool_calls: [{ index: 0, ...call("a", "{\"path\": \"/\", \"big\": 12345678901234567890}") }],
          reasoning_details: [{ type: "x", data: "y" }]
        },
        { role: "tool", tool_call_id: "a", name: "ls", content: "out", extra: { returncode: 0 } },
        { role: "assistant", content: "done", metadata: { run: 3 } }
      ]
    }
    assert.deepStrictEqual<unknown>(keeps(chat, read(chat, body).messages), body)
  })

  it("keeps arguments that are not JSON as text, and the text where parsing loses something", () => {
    const texts = [
      "",
      "{\"a\": ",
      "{\"a\":1}",
      "{ \"a\" : [1, 2] }",
      "{\"n\":1.0}",
      "{\"n\":1,\"n\":2}",
      "\"quoted\"",
      "\"\\u00e9\""
    ]
    const session = read(chat, [user("u"), asks(...texts.map((text, i) => call(`c${i}`, text)))])
    const parts = session.messages[1]
    assert(parts?.role === "assistant")
    assert.deepStrictEqual(
      parts.content.map((part) => part.type === "tool-call" ? [part.params, Marks.of(part).raw] : []),
      [
        ["", ""],
        ["{\"a\": ", "{\"a\": "],
        [{ a: 1 }, undefined],
        [{ a: [1, 2] }, undefined],
        [{ n: 1 }, undefined],
        [{ n: 2 }, undefined],
        ["quoted", undefined],
        ["é", undefined]
      ]
    )
    const { value } = OpenAiChat.write(session.messages)
    const written: ReadonlyArray<{ readonly function: { readonly arguments: string } }> = JSON.parse(
      JSON.stringify(value)
    ).messages[1].tool_calls
    const expected = texts.map((text) => text === "{ \"a\" : [1, 2] }" ? "{\"a\":[1,2]}" : text)
    assert.deepStrictEqual(written.map((_) => _.function.arguments), expected)
  })

  it("writes edited arguments, not the text they were read from", () => {
    const session = read(chat, [user("u"), asks(call("a", "{\"n\":1.0}"), call("b", "broken"))])
    const edited = session.messages.map((message) =>
      message.role === "assistant"
        ? {
          ...message,
          content: message.content.map((part) =>
            part.type === "tool-call" ? { ...part, params: { cleared: true } } : part
          )
        }
        : message
    )
    const text = JSON.stringify(OpenAiChat.write(edited).value)
    assert.notInclude(text, "broken")
    assert.notInclude(text, "1.0")
    assert.strictEqual(text.split("cleared").length, 3)
  })

  it("reads marks from metadata and writes them on request", () => {
    const messages = [
      user("a", { metadata: { source: "hook", run: 1 } }),
      user("b", { metadata: { ephemeral: true } }),
      user("c", { metadata: { pinned: true } }),
      user("d", { metadata: { pinned: false } }),
      user("<system-reminder>quoted</system-reminder>")
    ]
    const session = read(chat, messages)
    assert.deepStrictEqual(session.messages.map(Marks.of), [
      { source: "hook" },
      { ephemeral: true },
      { pinned: true },
      {},
      {}
    ])
    keeps(chat, session.messages)
    const unmarked = OpenAiChat.write(session.messages)
    assert.deepStrictEqual(unmarked.losses, [])
    assert.deepStrictEqual<unknown>(unmarked.value.messages, [
      user("a", { metadata: { run: 1 } }),
      user("b"),
      user("c"),
      user("d"),
      user("<system-reminder>quoted</system-reminder>")
    ])
  })

  it("normalises usage to disjoint buckets", () => {
    const answers = [
      { usage: { prompt_tokens: 10, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } } },
      { extra: { response: { usage: { prompt_tokens: 10, prompt_cache_hit_tokens: 9, completion_tokens: 1 } } } },
      { usage: { prompt_tokens: "many" } },
      {}
    ]
    const session = read(chat, answers.map((more) => ({ role: "assistant", content: "x", ...more })))
    assert.deepStrictEqual([...session.usage], [
      [0, { fresh: 6, cacheRead: 4, output: 3 }],
      [1, { fresh: 1, cacheRead: 9, output: 1 }]
    ])
    assert.deepStrictEqual(session.findings.map(({ detail, kind }) => [kind, detail]), [
      ["usage", "[2].usage.prompt_tokens: expected a number, got a string"]
    ])
  })

  it("reads one message in each line", () => {
    const text = [user("u"), asks(call("a", "{}")), result("a", "1")].map((_) => JSON.stringify(_)).join("\n")
    const session = Result.getOrThrow(Format.fromString(text, { file: "x.jsonl" }))
    assert.strictEqual(session.format, "openai-chat")
    assert.deepStrictEqual(outline(session), ["user u", "assistant call(a ls)", "tool result(a ls: \"1\")"])
  })

  it("reports orphans and open calls, and reads ids that are used again", () => {
    const session = read(chat, [
      result("gone", "0"),
      asks(call("a", "{}")),
      result("a", "1"),
      asks({ ...call("a", "{}"), function: { name: "cat", arguments: "{}" } }),
      result("a", "2"),
      asks(call("b", "{}"))
    ])
    assert.deepStrictEqual(outline(session).filter((line) => line.startsWith("tool")), [
      "tool result(gone : \"0\")",
      "tool result(a ls: \"1\")",
      "tool result(a cat: \"2\")"
    ])
    assert.deepStrictEqual(session.findings.map(({ kind }) => kind), ["orphan-result", "unanswered-call"])
  })

  const bad: ReadonlyArray<readonly [document: unknown, field: string, expected: RegExp]> = [
    [{}, "messages", /expected an array, got nothing/],
    [{ messages: {} }, "messages", /expected an array, got a.? object/],
    [[], "", /at least one message/],
    ["text", "", /expected an object, got a string/],
    [{ messages: [7] }, "messages[0]", /expected an object/],
    [{ messages: [user("u")], model: 4 }, "model", /expected a string, got a number/],
    [[{ role: "exit", content: "" }], "[0].role", /unknown role "exit"/],
    [[{ content: "" }], "[0].role", /expected a string, got nothing/],
    [[user(7)], "[0].content", /expected a string or an array, got a number/],
    [[user([{ type: "text", text: 7 }])], "[0].content[0].text", /expected a string, got a number/],
    [[user([{ type: "image_url", image_url: {} }])], "[0].content[0].image_url.url", /expected a string/],
    [
      { messages: [user("u"), user("u"), user("u"), asks({ id: "a", function: { name: 7, arguments: "" } })] },
      "messages[3].tool_calls[0].function.name",
      /expected a string, got a number/
    ],
    [[asks({ id: "a", type: "odd" })], "[0].tool_calls[0].type", /unknown kind of call "odd"/],
    [[asks({ id: 7 })], "[0].tool_calls[0].id", /expected a string/],
    [[asks({ id: "a", function: { name: "f", arguments: 7 } })], "[0].tool_calls[0].function.arguments", /a string/],
    [[{ role: "assistant", tool_calls: {} }], "[0].tool_calls", /expected an array/],
    [[{ role: "tool", content: "" }], "[0].tool_call_id", /expected a string, got nothing/],
    [[result("a", 7)], "[0].content", /expected a string or an array, got a number/]
  ]
  for (const [document, field, expected] of bad) {
    it(`fails at ${field === "" ? "the document" : field}: ${JSON.stringify(document).slice(0, 60)}`, () => {
      const found = failure(chat, [document, 0])
      assert(found !== "read")
      assert.deepStrictEqual([found.line, found.field], [0, field])
      assert.match(found.expected, expected)
    })
  }

  it("names the line", () => {
    assert.deepStrictEqual(failure(chat, [user("u"), 1], [{ role: "odd" }, 4]), {
      line: 4,
      field: "role",
      expected: "unknown role \"odd\", expected system, developer, user, assistant, tool or function"
    })
    assert.strictEqual(
      Result.getOrThrow(Result.flip(Format.fromString("[{\"role\":\"user\",\"content\":7}]", {
        file: "a.json",
        format: "openai-chat"
      }))).message,
      "a.json: [0].content: expected a string or an array, got a number"
    )
  })
})

describe("OpenAiChat.write", () => {
  const reports = (name: string, message: Prompt.Message, kinds: ReadonlyArray<string>, written: unknown) =>
    it(name, () => {
      const { losses, value } = OpenAiChat.write([Prompt.userMessage({ content: [] }), message])
      assert.deepStrictEqual(losses.map(({ kind }) => kind), kinds)
      for (const { detail } of losses) assert.match(detail, /^messages\[1\](\.content\[\d\])?: /)
      assert(Array.isArray(value.messages))
      assert.deepStrictEqual<unknown>(value.messages.slice(1), written)
    })
  const assistant = (...content: ReadonlyArray<Prompt.AssistantMessagePart>) => Prompt.assistantMessage({ content })
  const tool = (part: Partial<Prompt.ToolResultPart>) =>
    Prompt.toolMessage({
      content: [
        Prompt.toolResultPart({ id: "a", name: "f", isFailure: false, result: "1", providerExecuted: false, ...part })
      ]
    })
  const written = (content: unknown) => [{ role: "tool", tool_call_id: "a", name: "f", content }]

  reports("a failure flag", tool({ isFailure: true }), ["failure-flag"], written("1"))
  reports("a structured result", tool({ result: { a: 1 } }), ["structured-result"], written("{\"a\":1}"))
  reports(
    "what the model reads of a result",
    tool({ result: { a: 1 }, modelOutput: [Prompt.textPart({ text: "one" })] }),
    ["structured-result"],
    written("one")
  )
  reports(
    "an image in a result",
    tool({ result: [{ type: "text", text: "see" }, { type: "image", mediaType: "image/png", data: "AAAA" }] }),
    ["result-block"],
    written([{ type: "text", text: "see" }, { type: "text", text: "[image/png omitted]" }])
  )
  reports(
    "a result that is not JSON",
    tool({ result: { at: 3n } }),
    ["not-json", "structured-result"],
    written("{\"at\":\"3\"}")
  )
  reports(
    "a signature",
    assistant(
      Prompt.reasoningPart({ text: "hm", options: { anthropic: { info: { type: "thinking", signature: "s" } } } })
    ),
    ["options"],
    [{ role: "assistant", content: null, reasoning_content: "hm" }]
  )
  reports(
    "what ran at the provider",
    assistant(
      Prompt.toolCallPart({ id: "a", name: "web_search", params: {}, providerExecuted: true }),
      Prompt.toolResultPart({ id: "a", name: "web_search", isFailure: false, result: [], providerExecuted: true }),
      Prompt.textPart({ text: "found" })
    ),
    ["provider-executed", "provider-executed"],
    [{ role: "assistant", content: "found" }]
  )
  reports(
    "text after a call, a file in an answer, an approval request, two reasonings",
    assistant(
      Prompt.reasoningPart({ text: "a" }),
      Prompt.reasoningPart({ text: "b" }),
      Prompt.toolCallPart({ id: "a", name: "f", params: {}, providerExecuted: false }),
      Prompt.textPart({ text: "t" }),
      Prompt.filePart({ mediaType: "image/png", data: "AAAA" }),
      Prompt.toolApprovalRequestPart({ approvalId: "p", toolCallId: "a" })
    ),
    ["order", "file", "approval", "reasoning"],
    [{
      role: "assistant",
      content: [{ type: "text", text: "t" }, { type: "text", text: "[image/png omitted]" }],
      reasoning_content: "a\n\nb",
      tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }]
    }]
  )
  reports(
    "an item of another format",
    assistant(Marks.set(Prompt.textPart({ text: "" }), { raw: { type: "web_search_call", status: "completed" } })),
    ["opaque-item"],
    [{ role: "assistant", content: null }]
  )
  reports("a tool message without results", Prompt.toolMessage({ content: [] }), ["empty-message"], [])

  it("writes bytes and a model, and one message for each result", () => {
    const part = (id: string) =>
      Prompt.toolResultPart({ id, name: "f", isFailure: false, result: "1", providerExecuted: false })
    const { value } = OpenAiChat.write([
      Prompt.userMessage({ content: [Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([0, 0, 0]) })] }),
      Prompt.toolMessage({ content: [part("a"), part("b")] })
    ], { model: "gpt-4o" })
    assert.deepStrictEqual<unknown>(value, {
      model: "gpt-4o",
      messages: [
        user([{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]),
        { role: "tool", tool_call_id: "a", name: "f", content: "1" },
        { role: "tool", tool_call_id: "b", name: "f", content: "1" }
      ]
    })
  })
})

describe("recorded chats", () => {
  // The index counts wire messages, the system message included; so do we: 62 each.
  for (const [name, calls] of [["task2-trial1", 27], ["task33-trial0", 23]] as const) {
    itReads(`openai-chat/derived-tau-airline-${name}.json`, (session) => {
      assert.strictEqual(session.format, "openai-chat")
      assert.strictEqual(session.model, "gpt-4o")
      assert.strictEqual(session.messages.length, 62)
      const { calls: read, images, results, signatures } = count(session)
      assert.deepStrictEqual([read, results, images, signatures], [calls, calls, 0, 0])
      assert.deepStrictEqual(session.findings, [])
      keeps(chat, session.messages)
    })
  }

  const pool = recorded("openai-chat/tau-bench-gpt-4o-airline.json")
  if (!existsSync(pool)) it.skip("the pool of 200 conversations is not on this machine", () => {})
  else {
    it("reads and writes a pool of 200 conversations, to the same wire", () => {
      const runs: ReadonlyArray<{ readonly traj: unknown }> = JSON.parse(readFileSync(pool, "utf8"))
      const sum = { conversations: runs.length, messages: 0, calls: 0, results: 0 }
      for (const { traj } of runs) {
        const session = read(chat, traj)
        const { calls, results } = count(session)
        sum.messages += session.messages.length
        sum.calls += calls
        sum.results += results
        assert.deepStrictEqual(session.findings, [])
        const value = keeps(chat, session.messages)
        equal(value, { messages: compactArguments(traj) })
      }
      assert.deepStrictEqual(sum, { conversations: 200, messages: 5308, calls: 1164, results: 1164 })
    })
  }

  const trajectory = recorded("mini-swe-agent/sqlfluff-1733-316-messages.traj.json")
  if (!existsSync(trajectory)) it.skip("the mini-swe-agent trajectory is not on this machine", () => {})
  else {
    it("reads a mini-swe-agent trajectory with the usage beside its messages", () => {
      const { messages }: { readonly messages: ReadonlyArray<{ readonly role: string }> } = JSON.parse(
        readFileSync(trajectory, "utf8")
      )
      assert.match(JSON.stringify(failure(chat, [messages, 0])), /unknown role .*exit/)
      // The last message is the harness's own note ("exit"), so 315 of the 316 in the index are the model's.
      const session = read(chat, messages.filter(({ role }) => role !== "exit"))
      const { calls, results } = count(session)
      assert.deepStrictEqual([session.messages.length, calls, results], [315, 157, 156])
      assert.deepStrictEqual(session.findings.map(({ kind }) => kind), ["unanswered-call"])
      const { cacheRead, fresh, output, responses } = billed(session)
      const usages = messages.flatMap((message) =>
        JSON.stringify(message).match(/"usage":\{[^{}]*\{[^{}]*\}[^{}]*\}/g) ?? []
      )
        .map((text) => JSON.parse(text.slice(8)))
      assert.strictEqual(usages.length, 157)
      assert.strictEqual(responses, 157)
      assert.strictEqual(fresh + cacheRead, usages.reduce((sum, usage) => sum + usage.prompt_tokens, 0))
      assert.strictEqual(cacheRead, usages.reduce((sum, usage) => sum + usage.prompt_cache_hit_tokens, 0))
      assert.strictEqual(output, usages.reduce((sum, usage) => sum + usage.completion_tokens, 0))
      keeps(chat, session.messages)
    })
  }
})

/** The arguments without white space between tokens, which is all that writing changes in these files. */
const compactArguments = (messages: unknown): unknown =>
  JSON.parse(JSON.stringify(messages), (key, value) => {
    if (key !== "arguments" || typeof value !== "string") return value
    const compact = JSON.stringify(JSON.parse(value))
    // Escapes and decimals are kept as they were written.
    return compact.length <= value.length && value.replaceAll(/[\s]/g, "") === compact.replaceAll(/[\s]/g, "")
      ? compact
      : value
  })
