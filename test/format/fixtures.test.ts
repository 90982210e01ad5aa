import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"
import { billed, kinds, outline } from "./recorded.ts"

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/format/${name}`, import.meta.url))

const image =
  "[{\"type\":\"text\",\"text\":\"an image\"},{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"iVBORw0KGgo=\"}]"
const ask = "Why does the build fail?"
const rule = "There is no rule for it."
const none = { responses: 0, fresh: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

interface Case {
  readonly file: string
  readonly format: string
  readonly why: string
  readonly model: string | undefined
  readonly messages: ReadonlyArray<string>
  readonly usage: object
  readonly found: ReadonlyArray<string>
}

const cases: ReadonlyArray<Case> = [
  {
    file: "gemini.json",
    format: "gemini",
    why: "a list of contents with roles and parts",
    model: "gemini-3-pro",
    messages: [
      "system You are a builder.",
      "user/context-summary <state_snapshot>\n<overall_goal>Build</overall_goal>\n</state_snapshot>",
      "assistant Got it. Thanks for the additional context!",
      `user ${ask} + file(image/png)`,
      "assistant reasoning(Look at it.) + call(read_0 read) + call(read_1 read) + call(run_2 run)",
      "tool result(run_2 run failed: \"make: *** no rule\") + result(read_0 read: \"all:\") + " +
      "result(read_1 read: \"{\\\"output\\\":\\\"int main\\\",\\\"lines\\\":1}\") + result(gone run: \"late\")",
      `assistant ${rule}`
    ],
    // Prompt 1000 with 600 of it cached; thoughts 30 beside the answer of 20.
    usage: { responses: 1, fresh: 400, cacheRead: 600, cacheWrite: 0, output: 50 },
    found: ["0 orphan-result"]
  },
  {
    file: "gemini-cli.jsonl",
    format: "gemini-cli",
    why: "a record has a sessionId and a projectHash",
    model: "gemini-2.5-flash",
    messages: [
      `user ${ask}`,
      "assistant reasoning(**Plan** Run make.) + I run it. + call(run-1 run) + call(read-1 read) + call(read-2 read)",
      `tool result(run-1 run failed: "make: *** no rule") + result(read-1 read: ${image})`,
      `assistant ${rule}`
    ],
    // Input 1000 with 600 cached, and 5 of tool use beside it; thoughts 30 beside the output of 20.
    usage: { responses: 1, fresh: 405, cacheRead: 600, cacheWrite: 0, output: 50 },
    found: ["4 abandoned-branch", "5 notice", "8 unanswered-call"]
  },
  {
    file: "pi.jsonl",
    format: "pi",
    why: "record 1 is the head of a session",
    model: "claude-opus-4-5",
    messages: [
      `user ${ask} + file(image/png)`,
      "assistant reasoning(Run it.) + I run it. + call(t1 bash) + call(t2 read)",
      "tool result(t1 bash failed: \"make: *** no rule\")",
      `tool result(t2 read: ${image})`,
      "user/hook Ran `ls`\n```\nMakefile\n```\n\nCommand exited with code 1",
      "user/context-summary What happened so far",
      "assistant call(t3 bash)",
      `assistant ${rule}`
    ],
    usage: { responses: 2, fresh: 6, cacheRead: 1800, cacheWrite: 200, output: 80 },
    found: ["3 abandoned-branch", "10 stopped", "10 unanswered-call", "11 torn-line"]
  },
  {
    file: "vercel-ai-ui.json",
    format: "vercel-ai",
    why: "a list of messages with parts",
    model: undefined,
    messages: [
      `user ${ask} + file(image/png)`,
      "assistant reasoning(Run it.) + call(c1 run) + call(c2 read) + call(c3 web_search) + " +
      "result(c3 web_search: \"found\")",
      "tool result(c1 run failed: \"make: *** no rule\") + result(c2 read: \"{\\\"text\\\":\\\"all:\\\"}\")",
      `assistant ${rule} + call(c4 run)`
    ],
    usage: none,
    found: ["0 not-sent", "0 unanswered-call"]
  },
  {
    file: "vercel-ai-model.json",
    format: "vercel-ai",
    why: "a list of messages with tool-call, tool-result or reasoning parts",
    model: undefined,
    messages: [
      "system You are a builder.",
      `user ${ask} + file(image/png)`,
      "assistant reasoning() + I run it. + call(c1 run) + call(c2 read)",
      `tool result(c1 run failed: "make: *** no rule") + result(c2 read: ${image})`,
      `assistant ${rule}`
    ],
    usage: none,
    found: []
  },
  {
    file: "swe-agent.json",
    format: "swe-agent",
    why: "a history with a trajectory",
    model: "gpt-4o",
    messages: [
      "system You are a builder.",
      "user/runtime-context Here is a demonstration.",
      `user ${ask}`,
      "assistant reasoning(Run it.) + I run it. + call(call_1 bash)",
      "tool result(call_1 bash: \"make: *** no rule\")",
      "assistant Again. + call(call_1 bash)",
      "tool result(call_1 bash: \"no rule, still\")",
      `assistant ${rule}`
    ],
    usage: none,
    found: []
  },
  {
    file: "mini-swe-agent.json",
    format: "mini-swe-agent",
    why: "the trajectory_format is mini-swe-agent-1.1",
    model: "deepseek/deepseek-chat",
    messages: [
      "system You are a builder.",
      `user ${ask}`,
      "assistant I run it. + call(c1 bash)",
      "tool result(c1 bash: \"<returncode>2</returncode>\\n<output>\\nmake: *** no rule\\n</output>\")",
      `assistant ${rule} + call(c2 bash)`
    ],
    // 2348 = 2304 hit + 44 missed, then 2500 of which nothing is said.
    usage: { responses: 2, fresh: 44 + 2500, cacheRead: 2304, cacheWrite: 0, output: 50 },
    found: ["0 exit", "0 unanswered-call"]
  },
  {
    file: "openhands.json",
    format: "openhands",
    why: "a list of events with a source",
    model: undefined,
    messages: [
      "system You are a builder.",
      `user ${ask} + file(image/png)`,
      "user/runtime-context A skill: make",
      "assistant reasoning(Run it.) + I run it. + call(functions.bash:0 bash) + call(functions_bash_0_0 bash)",
      "tool result(functions.bash:0 bash failed: \"make: *** no rule\")",
      `tool result(functions_bash_0_0 bash: ${image.replace("an image", "Makefile")})`,
      "user/context-summary What happened so far",
      "assistant call(functions.bash:0 bash)",
      "tool result(functions.bash:0 bash failed: \"No such tool\")",
      "assistant call(functions.bash:1 bash)",
      "tool result(functions.bash:1 bash failed: \"Not now\")",
      `assistant ${rule}`
    ],
    usage: none,
    found: []
  },
  {
    file: "deepseek-harness.jsonl",
    format: "deepseek-harness",
    why: "record 1 is the head of a session",
    model: "deepseek-v4",
    messages: [
      "system You are a builder.",
      `user ${ask}`,
      "user/runtime-context Current runtime context.",
      "assistant reasoning(Run it.) + I run it. + call(c1 bash)",
      "tool result(c1 bash failed: \"make: *** no rule\")",
      "user/runtime-context A note.",
      "user/context-summary This is a checkpoint: Sum",
      "user/hook <goal_round>",
      `assistant ${rule}`
    ],
    // The input leaves out the cache; what the summary cost is no answer's.
    usage: { responses: 2, fresh: 368, cacheRead: 8064, cacheWrite: 0, output: 56 },
    found: ["10 replaced"]
  },
  {
    file: "opencode.json",
    format: "opencode",
    why: "a session with an info",
    model: "claude-opus-4-5",
    messages: [
      `user ${ask} + file(image/png)`,
      "user/runtime-context Called the Read tool",
      "assistant reasoning(Run it.) + I run it. + call(c1 bash) + call(c2 read)",
      "tool result(c1 bash failed: \"make: *** no rule\") + result(c2 read: \"all:\")",
      "user/context-summary Context compacted",
      "assistant/context-summary What happened so far",
      `assistant ${rule} + call(c3 bash)`
    ],
    // The step repeats the count of its message; reasoning 10 beside the output of 20.
    usage: { responses: 2, fresh: 53, cacheRead: 900, cacheWrite: 100, output: 35 },
    found: ["0 not-sent", "0 pruned", "0 not-sent", "0 unanswered-call"]
  },
  {
    file: "cline.json",
    format: "cline",
    why: "a session with an agent",
    model: "anthropic/claude-opus-4.8",
    messages: [
      "system You are a builder.",
      `user ${ask} + <file_content path="Makefile">\nall:\n</file_content>`,
      "assistant reasoning(Run it.) + I run it. + call(t1 run_commands)",
      "tool result(t1 run_commands failed: " +
      "\"[{\\\"query\\\":\\\"make\\\",\\\"result\\\":\\\"make: *** no rule\\\",\\\"success\\\":false}]\")",
      "user Go on.",
      `assistant ${rule}`
    ],
    // Input 35 912, of which 34 332 read and 500 written.
    usage: { responses: 1, fresh: 1080, cacheRead: 34_332, cacheWrite: 500, output: 164 },
    found: []
  },
  {
    file: "amplifier-events.jsonl",
    format: "amplifier-events",
    why: "record 1 is an event of the schema amplifier.log",
    model: "claude-opus-4-8",
    messages: [
      "system You are a builder.",
      `user ${ask}`,
      "assistant reasoning(Run it.) + call(t1 bash)",
      "tool result(t1 bash: \"make: *** no rule\")",
      `assistant ${rule}`
    ],
    // Input 902 holds the 900 that were read, but not the 10 that were written.
    usage: { responses: 2, fresh: 4, cacheRead: 900, cacheWrite: 110, output: 49 },
    found: []
  }
]

describe("sessions made by hand", () => {
  for (const { file, format, found, messages, model, usage, why } of cases) {
    it.effect(file, () =>
      Effect.gen(function*() {
        const session = yield* Format.read(fixture(file))
        assert.strictEqual(session.format, format)
        assert.include(session.why, why)
        assert.strictEqual(session.model, model)
        assert.deepStrictEqual(outline(session), messages)
        assert.deepStrictEqual(billed(session), usage)
        assert.deepStrictEqual(kinds(session), found)
        assert.isTrue(Array.from(session.usage.keys()).every((index) => session.messages[index]?.role === "assistant"))
      }).pipe(Effect.provide(NodeServices.layer)))
  }
})
