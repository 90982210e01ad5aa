import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import type * as Session from "effect-compaction/format/Session"
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import * as Intake from "../../src/format/parts/intake.ts"
import { maxDepth } from "../../src/text/json.ts"
import { lines } from "./recorded.ts"

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth)
/** A record or a document with `DEEP` in the place of one value, as the text of a file. */
const place = (value: unknown, deep: string): string => JSON.stringify(value).replaceAll("\"DEEP\"", deep)

const time = "2026-01-01T00:00:00Z"
const user = { role: "user", content: "go" }
const item = (payload: object) => ({ timestamp: time, type: "response_item", payload })
const claude = (type: string, uuid: string, message: object) => ({ type, uuid, sessionId: "s", message })
const pi = (message: object) => ({ type: "message", timestamp: time, message })

// In each format a value of a call, of a result or of a block is nested.
const documents: { readonly [name: string]: unknown } = {
  "openai-chat result": [user, { role: "tool", tool_call_id: "a", content: [{ type: "odd", x: "DEEP" }] }],
  "openai-responses output": [{ type: "function_call_output", call_id: "a", output: [{ type: "odd", x: "DEEP" }] }],
  "openai-responses opaque item": [{ type: "compaction", x: "DEEP" }, { type: "message", role: "user", content: "x" }],
  "anthropic-messages params": {
    system: "x",
    messages: [user, { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: { x: "DEEP" } }] }]
  },
  "anthropic-messages block": { system: "x", messages: [{ role: "user", content: [{ type: "odd", x: "DEEP" }] }] },
  "prompt params": {
    content: [{
      role: "assistant",
      content: [{ type: "tool-call", id: "a", name: "f", params: "DEEP", providerExecuted: false }]
    }]
  },
  "gemini args": [{ role: "model", parts: [{ functionCall: { name: "f", args: { x: "DEEP" } } }] }],
  "gemini-cli args": {
    sessionId: "s",
    projectHash: "h",
    messages: [{ id: "1", type: "gemini", content: "", toolCalls: [{ id: "a", name: "f", args: { x: "DEEP" } }] }]
  },
  "vercel-ai output": [{
    role: "assistant",
    parts: [{ type: "tool-f", toolCallId: "a", state: "output-available", output: "DEEP" }]
  }],
  "openhands action": [{ id: 1, source: "agent", timestamp: "t", action: "run", args: { x: "DEEP" } }],
  "opencode input": {
    info: {},
    messages: [{
      info: { role: "assistant" },
      parts: [{ type: "tool", callID: "a", tool: "f", state: { status: "running", input: "DEEP" } }]
    }]
  },
  "cline params": [{ role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: { x: "DEEP" } }] }],
  "tau-bench arguments": {
    simulations: [{
      termination_reason: "x",
      messages: [{ role: "assistant", tool_calls: [{ id: "a", name: "f", arguments: "DEEP" }] }]
    }]
  },
  "swe-agent block": { trajectory: [], history: [{ role: "user", content: [{ type: "odd", x: "DEEP" }] }] },
  "mini-swe-agent block": [{ role: "user", content: [{ type: "odd", x: "DEEP" }] }, { role: "exit" }]
}
const files: { readonly [name: string]: ReadonlyArray<unknown> } = {
  "claude-code params": [
    claude("user", "u", user),
    claude("assistant", "a", {
      role: "assistant",
      content: [{ type: "tool_use", id: "a", name: "f", input: { x: "DEEP" } }]
    })
  ],
  "claude-code result": [
    claude("user", "u", user),
    claude("user", "r", {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "a", content: [{ type: "odd", x: "DEEP" }] }]
    })
  ],
  "codex output": [
    item({ type: "message", ...user }),
    item({ type: "function_call_output", call_id: "a", output: [{ x: "DEEP" }] })
  ],
  "pi arguments": [
    pi(user),
    pi({ role: "assistant", content: [{ type: "toolCall", id: "a", name: "f", arguments: { x: "DEEP" } }] })
  ],
  "amplifier input": [
    { ...user, metadata: { timestamp: time } },
    { role: "assistant", content: [{ type: "tool_call", id: "a", name: "f", input: { x: "DEEP" } }] }
  ],
  "deepseek-harness content": [
    { type: "session", id: "s", createdAt: 1 },
    { type: "user/message", surfaceOp: "append", data: { content: [{ type: "odd", x: "DEEP" }] } }
  ]
}

const read = (text: string) => Format.fromString(text, { file: "f", conversation: 0 })

/** The session can be written in every format, and is read back as it is. */
const isWhole = (session: Session.Session) => {
  for (const to of Format.Target.literals) JSON.stringify(Format.write(to, session.messages).value)
}

describe("values that are nested very deep", () => {
  for (const depth of [3_000, 5_000, 100_000]) {
    for (const [name, value] of Object.entries(documents)) {
      it(`${name}, ${depth} deep: refused with the path`, () => {
        const result = read(place(value, nested(depth)))
        assert(Result.isFailure(result))
        const { expected, field, file, line } = result.failure
        assert.deepStrictEqual([file, line, expected], [
          "f",
          0,
          `expected at most ${maxDepth} objects or arrays within one another`
        ])
        assert.isNotEmpty(field)
        assert.isBelow(field.length, 200)
      })
    }
    for (const [name, records] of Object.entries(files)) {
      it(`${name}, ${depth} deep: refused with the line`, () => {
        const text = records.map((record) => place(record, nested(depth))).join("\n")
        const result = read(text)
        assert(Result.isFailure(result))
        assert.strictEqual(result.failure.line, 2)
        assert.strictEqual(result.failure.expected, `expected at most ${maxDepth} objects or arrays within one another`)
      })
    }
  }

  for (const [name, value] of Object.entries({ ...documents, ...files })) {
    it(`${name}, 500 deep: read and written`, () => {
      const text = Array.isArray(value) && name in files
        ? value.map((record) => place(record, nested(500))).join("\n")
        : place(value, nested(500))
      isWhole(Result.getOrThrow(read(text)))
    })
  }

  const call = (args: string) => ({
    role: "assistant",
    tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: args } }]
  })
  const texts: { readonly [format: string]: (args: string) => string } = {
    "openai-chat": (args) => JSON.stringify([user, call(args)]),
    "openai-responses": (args) =>
      JSON.stringify([{ type: "message", role: "user", content: "x" }, {
        type: "function_call",
        call_id: "a",
        name: "f",
        arguments: args
      }]),
    codex: (args) =>
      lines([
        item({ type: "message", ...user }),
        item({ type: "function_call", call_id: "a", name: "f", arguments: args })
      ]),
    amplifier: (args) =>
      lines([{ ...user, metadata: { timestamp: time } }, {
        role: "assistant",
        tool_calls: [{ id: "a", tool: "f", arguments: args }]
      }])
  }
  for (const [format, of] of Object.entries(texts)) {
    for (const depth of [maxDepth + 1, 3_000, 100_000]) {
      it(`${format}: arguments in a text, ${depth} deep, stay that text`, () => {
        const args = nested(depth)
        const session = Result.getOrThrow(read(of(args)))
        assert.strictEqual(session.format, format)
        const message = session.messages.at(-1)
        assert(message?.role === "assistant")
        const part = message.content[0]
        assert(part?.type === "tool-call")
        assert.strictEqual(part.params, args)
        isWhole(session)
      })
    }
  }

  // A session of one's own may hold what no file can: it is named, and the rest is written.
  for (const to of Format.Target.literals) {
    it(`${to}: params and results that are deeper are left out of what is written, and named`, () => {
      const deep: unknown = JSON.parse(nested(100_000))
      const { losses, value } = Format.write(to, [
        Prompt.assistantMessage({
          content: [Prompt.toolCallPart({ id: "a", name: "f", params: { deep }, providerExecuted: false })]
        }),
        Prompt.toolMessage({
          content: [
            Prompt.toolResultPart({ id: "a", name: "f", isFailure: false, result: { deep }, providerExecuted: false })
          ]
        })
      ])
      assert.deepStrictEqual(
        losses.filter(({ kind }) => kind === "not-json").map(({ message, part }) => [message, part]),
        [
          [0, 0],
          [1, 0]
        ]
      )
      assert.include(JSON.stringify(value), "[nested too deep]")
    })
  }

  it("a number that is too large for one, and a zero below zero, are what JSON writes of them", () => {
    const session = Result.getOrThrow(read(
      `[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":[1e400,-0,-1.5]}}}]}]`
    ))
    const part = session.messages[0]?.role === "assistant" ? session.messages[0].content[0] : undefined
    assert.deepStrictEqual(part?.type === "tool-call" ? part.params : undefined, { x: [null, 0, -1.5] })
  })

  it("the bound itself is taken, and one more is not", () => {
    const of = (depth: number) =>
      read(`{"system":"x","messages":[{"role":"user","content":[{"type":"odd","x":${nested(depth - 5)}}]}]}`)
    assert.isTrue(Result.isSuccess(of(maxDepth)))
    assert.isTrue(Result.isFailure(of(maxDepth + 1)))
  })
})

describe("lines and documents that are very long", () => {
  const reads = (text: string, pieces: number, longest: number) => {
    const input = Intake.make({ file: "f" }, longest)
    for (let at = 0; at < text.length; at += pieces) Intake.push(input, text.slice(at, at + pieces))
    return Intake.end(input)
  }
  const record = (text: string) => JSON.stringify({ role: "user", content: text, metadata: { timestamp: time } })
  const text = [record("a"), record("b".repeat(500)), record("b".repeat(500)), record("c")].join("\n")
  for (const pieces of [1, 7, 10_000]) {
    it(`a line at the limit is read and a longer one refused, in pieces of ${pieces}`, () => {
      const longest = record("b".repeat(500)).length
      const whole = Result.getOrThrow(reads(text, pieces, longest))
      assert.strictEqual(whole.sessions[0]?.messages.length, 4)
      const refused = reads(text, pieces, longest - 1)
      assert.strictEqual(
        Result.isFailure(refused) ? refused.failure.message : "read",
        `f:2: expected a line of at most ${longest - 1} characters`
      )
    })
  }
  it("a document of many lines is refused as a whole, and nothing of it is kept", () => {
    const document = JSON.stringify([user, user, user], null, 1)
    const input = Intake.make({ file: "f" }, 60)
    Intake.push(input, document)
    const refused = Intake.end(input)
    assert.strictEqual(
      Result.isFailure(refused) ? refused.failure.message : "read",
      "f: expected a document of at most 60 characters"
    )
    assert.isTrue(Result.isSuccess(reads(document, 5, document.length + 1)))
  })
})
