import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Session from "effect-compaction/format/Session"
import * as Result from "effect/Result"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Time from "../../src/format/parts/time.ts"
import { itReads, lines } from "./recorded.ts"
import { chance } from "./wireBodies.ts"

const read = (text: string) => Result.getOrThrow(Format.fromString(text, { file: "f", conversation: 0 }))

const start = Date.UTC(2026, 0, 1)
const iso = (seconds: number, zone = "Z") => new Date(start + seconds * 1000).toISOString().slice(0, -1) + zone
/** The time of each message in seconds from the start of 2026, `undefined` where it has none. */
const secondsOf = (session: Session.Session) =>
  session.messages.map((_, index) => {
    const time = session.times.get(index)
    return time === undefined ? undefined : (time - start) / 1000
  })

const user = { role: "user", content: "go" }
const claude = (type: string, uuid: string, seconds: number, message: object) => ({
  type,
  uuid,
  parentUuid: uuid === "a" ? null : String.fromCharCode(uuid.charCodeAt(0) - 1),
  sessionId: "s",
  timestamp: iso(seconds),
  message
})
const codex = (seconds: number, payload: object) => ({ timestamp: iso(seconds), type: "response_item", payload })
const text = (text: string) => ({ type: "text", text })

// In each format four messages: a question, a call, its result, and an answer.
const cases: { readonly [format: string]: readonly [text: string, expected: ReadonlyArray<number | undefined>] } = {
  "claude-code": [
    lines([
      claude("user", "a", 1, user),
      claude("assistant", "b", 2, { id: "m", role: "assistant", content: [text("x")] }),
      claude("assistant", "c", 3, {
        id: "m",
        role: "assistant",
        content: [{ type: "tool_use", id: "t", name: "f", input: {} }]
      }),
      claude("user", "d", 4, { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "ok" }] }),
      claude("assistant", "e", 5, { id: "n", role: "assistant", content: [text("done")] })
    ]),
    [1, 2, 4, 5]
  ],
  codex: [
    lines([
      codex(1, { type: "message", ...user }),
      codex(2, { type: "reasoning", summary: [] }),
      codex(3, { type: "function_call", call_id: "t", name: "f", arguments: "{}" }),
      codex(4, { type: "function_call_output", call_id: "t", output: "ok" }),
      codex(5, { type: "message", role: "assistant", content: "done" })
    ]),
    [1, 2, 4, 5]
  ],
  pi: [
    lines([
      { type: "message", timestamp: iso(1), message: user },
      {
        type: "message",
        timestamp: iso(2),
        message: { role: "assistant", content: [{ type: "toolCall", id: "t", name: "f" }] }
      },
      { type: "message", timestamp: iso(3), message: { role: "toolResult", toolCallId: "t", content: "ok" } },
      { type: "message", timestamp: iso(4), message: { role: "assistant", content: [text("done")] } }
    ]),
    [1, 2, 3, 4]
  ],
  amplifier: [
    lines([
      { ...user, metadata: { timestamp: iso(1, "+00:00") } },
      {
        role: "assistant",
        content: [{ type: "tool_call", id: "t", name: "f" }],
        metadata: { timestamp: iso(2, "+02:00") }
      },
      { role: "tool", tool_call_id: "t", content: "ok" },
      { role: "assistant", content: "done", metadata: { timestamp: iso(4) } }
    ]),
    [1, 2 - 7200, undefined, 4]
  ],
  "gemini-cli": [
    JSON.stringify({
      sessionId: "s",
      projectHash: "h",
      messages: [
        { id: "1", type: "user", content: "go", timestamp: iso(1) },
        {
          id: "2",
          type: "gemini",
          content: "",
          timestamp: iso(2),
          toolCalls: [{ id: "t", name: "f", args: {}, result: [text("ok")], timestamp: iso(3) }]
        },
        { id: "3", type: "gemini", content: "done", timestamp: iso(4) }
      ]
    }),
    [1, 2, 3, 4]
  ],
  opencode: [
    JSON.stringify({
      info: {},
      messages: [
        { info: { role: "user", time: { created: start + 1000 } }, parts: [text("go")] },
        {
          info: { role: "assistant", time: { created: start + 2000, completed: start + 9000 } },
          parts: [
            {
              type: "tool",
              callID: "t",
              tool: "f",
              state: { status: "completed", output: "ok", time: { start: start + 2500, end: start + 3000 } }
            },
            { type: "step-start" },
            text("done")
          ]
        }
      ]
    }),
    [1, 2, 3, 2]
  ],
  openhands: [
    JSON.stringify([
      { kind: "MessageEvent", source: "user", timestamp: iso(1, ""), llm_message: { content: "go" } },
      {
        kind: "ActionEvent",
        id: "a",
        source: "agent",
        timestamp: iso(2, "123"),
        tool_name: "f",
        tool_call_id: "t",
        tool_call: { arguments: "{}" }
      },
      {
        kind: "ObservationEvent",
        source: "environment",
        timestamp: iso(3, ""),
        action_id: "a",
        observation: { content: "ok" }
      },
      { kind: "MessageEvent", source: "agent", timestamp: iso(4, ""), llm_message: { content: "done" } }
    ]),
    [1, 2, 3, 4]
  ],
  cline: [
    JSON.stringify([
      { ...user, ts: start + 1000 },
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }], ts: start + 2000 },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "ok" }], ts: start + 3000 },
      { role: "assistant", content: "done" }
    ]),
    [1, 2, 3, undefined]
  ],
  "vercel-ai": [
    JSON.stringify([
      { role: "user", parts: [text("go")], createdAt: iso(1) },
      {
        role: "assistant",
        parts: [{ type: "tool-f", toolCallId: "t", state: "output-available", output: "ok" }],
        metadata: { createdAt: start + 2000 }
      },
      { role: "assistant", parts: [text("done")] }
    ]),
    [1, 2, 2, undefined]
  ],
  "tau-bench": [
    JSON.stringify({
      termination_reason: "x",
      messages: [
        { role: "user", content: "go", timestamp: iso(1, "") },
        { role: "assistant", tool_calls: [{ id: "t", name: "f" }], timestamp: iso(2, "") },
        { role: "tool", id: "t", content: "ok", timestamp: iso(3, "") },
        { role: "assistant", content: "done", timestamp: iso(4, "") }
      ]
    }),
    [1, 2, 3, 4]
  ],
  "mini-swe-agent": [
    JSON.stringify([
      user,
      {
        role: "assistant",
        content: "```bash\nls\n```",
        extra: { actions: [{ command: "ls" }], timestamp: start / 1000 + 2.25 }
      },
      { role: "user", content: "<returncode>0", extra: { timestamp: start / 1000 + 3 } },
      { role: "assistant", content: "done", extra: { timestamp: start / 1000 + 4 } }
    ]),
    [undefined, 2.25, 3, 4]
  ],
  "amplifier-events": [
    (() => {
      const event = (seconds: number, event: string, raw: object) => ({
        ts: iso(seconds, "+00:00"),
        event,
        schema: { name: "amplifier.log" },
        data: { raw }
      })
      const call = { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] }
      const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "ok" }] }
      return lines([
        event(1, "llm:request", { model: "claude", messages: [user] }),
        event(2, "llm:response", { content: call.content }),
        event(3, "llm:request", { model: "claude", messages: [user, call, result] }),
        event(4, "llm:response", { content: [text("done")] })
      ])
    })(),
    [1, 2, 3, 4]
  ]
}

describe("times", () => {
  for (const [format, [text, expected]] of Object.entries(cases)) {
    it(`${format}: when each message was written`, () => {
      const session = read(text)
      assert.strictEqual(session.format, format)
      assert.deepStrictEqual(secondsOf(session), expected)
    })
    it(`${format}: a time that is none is left out, and the messages stay`, () => {
      for (const odd of ["yesterday", 0, null, true, {}, "1970-01-01T00:00:00Z", 1e300, "2026-13-40T99:00:00Z"]) {
        const changed: unknown = text.split("\n").map((line) =>
          JSON.stringify(
            JSON.parse(line),
            (key, value: unknown) =>
              ["timestamp", "ts", "created", "end", "createdAt"].includes(key) && format !== "pi" &&
                format !== "amplifier"
                ? odd
                : value
          )
        ).join("\n")
        const session = read(String(changed))
        assert.strictEqual(session.messages.length, expected.length)
        if (format !== "pi" && format !== "amplifier") assert.deepStrictEqual(Array.from(session.times), [])
      }
    })
  }

  it("a time without a zone is that of UTC on every machine", () => {
    assert.strictEqual(Time.ofText("2026-01-01T00:00:00.123456"), start + 123)
    assert.strictEqual(Time.ofText("2026-01-01 00:00:00"), start)
    assert.strictEqual(Time.ofText("2026-01-01T02:00:00+0200"), start)
    for (const odd of ["", "2026-01-01", "1", "2026-01-01T00:00:00 or so", "+002026-01-01T00:00:00Z"]) {
      assert.isUndefined(Time.ofText(odd))
    }
  })

  it("gaps are never negative, and the message behind a clock that went back has its own again", () => {
    const message = (seconds: number | undefined) => ({
      type: "message",
      timestamp: seconds === undefined ? "unknown" : iso(seconds),
      message: user
    })
    const session = read(lines([undefined, 10, 40, 5, undefined, 25, 25].map(message)))
    assert.deepStrictEqual(Array.from(Session.gaps(session), ([index, gap]) => [index, gap / 1000]), [
      [2, 30],
      [3, 0],
      [5, 20],
      [6, 0]
    ])
  })

  it("of any times, there is one gap fewer than times, and none is below 0", () => {
    const random = chance(7)
    for (let round = 0; round < 300; round++) {
      const messages =
        read(lines(Array.from({ length: 9 }, () => ({ type: "message", timestamp: "x", message: user })))).messages
      const times = new Map<number, number>()
      for (const index of messages.keys()) {
        if (random.maybe(0.7)) times.set(index, start + random.below(100_000) - 50_000)
      }
      const gaps = Array.from(Session.gaps({ messages, times }))
      assert.strictEqual(gaps.length, Math.max(0, times.size - 1))
      for (const [index, gap] of gaps) assert.isTrue(gap >= 0 && times.has(index))
    }
  })

  const folder = fileURLToPath(new URL("../fixtures/format/", import.meta.url))
  it("stand at messages that there are, in every fixture", () => {
    for (const file of readdirSync(folder)) {
      const session = read(readFileSync(folder + file, "utf8"))
      for (const [index, time] of session.times) {
        assert.isTrue(index in session.messages, file)
        assert.isTrue(Number.isSafeInteger(time), file)
      }
    }
    assert.isTrue(existsSync(folder))
  })

  // Almost every message of these logs has a time, and the longest pause is a person's.
  for (
    const name of [
      "claude-code/opus45-3-compactions.jsonl",
      "codex/gpt54-reasoning-items.jsonl"
    ]
  ) {
    itReads(name, (session) => {
      assert.isAtLeast(session.times.size, session.messages.length - 1)
      const [longest] = Array.from(Session.gaps(session)).toSorted((a, b) => b[1] - a[1])
      assert.strictEqual(longest === undefined ? undefined : session.messages[longest[0]]?.role, "user")
    })
  }
})
