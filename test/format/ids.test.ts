import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Result from "effect/Result"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Ids from "../../src/format/parts/ids.ts"
import { chance } from "./wireBodies.ts"

const folder = fileURLToPath(new URL("../fixtures/format/", import.meta.url))

// Anthropic's pattern, and the length that OpenAI takes.
const legal = /^[a-zA-Z0-9_-]{1,64}$/

const idsOf = (text: string): ReadonlyArray<string> => {
  const session = Result.getOrThrow(Format.fromString(text, { file: "f", conversation: 0 }))
  return session.messages.flatMap((message) =>
    message.role === "system"
      ? []
      : message.content.flatMap((part) => part.type === "tool-call" || part.type === "tool-result" ? [part.id] : [])
  )
}

const names = [
  "",
  "ls",
  "default_api:ls",
  "functions.bash:0",
  "työkalu",
  "a/b c",
  "x".repeat(200),
  "ns::" + "y".repeat(80)
]

describe("ids that readers make", () => {
  it("are legal for every provider, and no two words with a number each make the same", () => {
    const random = chance(40)
    for (let round = 0; round < 200; round++) {
      const made = Array.from({ length: 50 }, (_, number) => Ids.make(random.pick(names), number))
      for (const id of made) assert.match(id, legal)
      assert.strictEqual(new Set(made).size, made.length)
    }
    for (const name of names) assert.match(Ids.make(name, 123_456_789), legal)
  })

  // Whatever the file calls its calls is its own; what is not in the file was made.
  for (const file of readdirSync(folder)) {
    it(`${file}: are legal, and the same when it is read again`, () => {
      const text = readFileSync(folder + file, "utf8")
      const ids = idsOf(text)
      assert.isAbove(ids.length, 0)
      for (const id of ids) if (!text.includes(JSON.stringify(id))) assert.match(id, legal)
      assert.deepStrictEqual(idsOf(text), ids)
    })
  }

  const user = (content: unknown) => ({ role: "user", content })
  const anonymous: ReadonlyArray<readonly [format: string, of: (name: string) => unknown]> = [
    ["gemini", (name) => ({
      contents: [
        { role: "user", parts: [{ text: "go" }] },
        { role: "model", parts: [{ functionCall: { name, args: {} } }, { codeExecutionResult: { output: "1" } }] },
        { role: "user", parts: [{ functionResponse: { name: "other", response: {} } }] }
      ]
    })],
    ["openai-chat", (name) => [
      user("go"),
      { role: "assistant", content: null, function_call: { name, arguments: "{}" } },
      { role: "function", name: "other", content: "x" }
    ]],
    ["swe-agent", () => ({
      trajectory: [],
      history: [user("go"), { role: "assistant", content: "x", action: "ls" }, user("Makefile")]
    })],
    ["mini-swe-agent", () => [
      user("go"),
      { role: "assistant", content: "```bash\nls\n```", extra: { actions: [{ command: "ls" }] } },
      user("<returncode>0</returncode>")
    ]],
    ["openhands", (name) => [
      { id: 1, source: "user", timestamp: "t", action: "message", args: { content: "go" } },
      { id: 2, source: "agent", timestamp: "t", action: name, args: {} },
      { id: 3, source: "agent", timestamp: "t", observation: name, content: "x", cause: 2 }
    ]],
    ["openhands", (name) =>
      ["a", "b"].map((id) => ({
        id,
        kind: "ActionEvent",
        source: "agent",
        tool_name: "bash",
        tool_call_id: `functions.bash:${name}`,
        tool_call: { arguments: "{}" }
      }))],
    ["openhands", () => [
      { kind: "MessageEvent", source: "user", llm_message: { content: "go" } },
      { kind: "AgentErrorEvent", source: "agent", error: "x" }
    ]]
  ]
  for (const [format, of] of anonymous) {
    for (const name of names.filter((name) => name !== "" || format === "gemini")) {
      it(`${format}: a call without an id, of ${JSON.stringify(name.slice(0, 20))}`, () => {
        const text = JSON.stringify(of(name))
        const ids = idsOf(text)
        assert.isAbove(ids.length, 0)
        // The second call of one id gets another; the first keeps its own.
        for (const id of ids) if (id !== `functions.bash:${name}`) assert.match(id, legal)
        assert.isAtMost(ids.filter((id) => id === `functions.bash:${name}`).length, 1)
        assert.deepStrictEqual(idsOf(text), ids)
      })
    }
  }
})
