import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Marks from "effect-compaction/Marks"
import * as Result from "effect/Result"
import { billed, count, itReads, kinds, lines, outline } from "./recorded.ts"
import { chance } from "./wireBodies.ts"

interface Extra {
  readonly [key: string]: unknown
}
const wrap = (type: string, payload: Extra, timestamp = "2026-01-01T00:01:00.000Z") => ({ timestamp, type, payload })
const item = (type: string, rest: Extra = {}) => wrap("response_item", { type, ...rest })
const message = (role: string, text: string) =>
  item("message", { role, content: [{ type: role === "assistant" ? "output_text" : "input_text", text }] })
const call = (id: string, args = "{\"cmd\":\"ls\"}") =>
  item("function_call", { call_id: id, name: "exec", arguments: args })
const output = (id: string, output: unknown) => item("function_call_output", { call_id: id, output })
const event = (type: string, rest: Extra = {}) => wrap("event_msg", { type, ...rest })
const tokens = (total: number, input: number, cached: number, output: number, timestamp?: string) =>
  wrap("event_msg", {
    type: "token_count",
    info: {
      total_token_usage: { input_tokens: total, output_tokens: output, total_tokens: total + output },
      last_token_usage: {
        input_tokens: input,
        cached_input_tokens: cached,
        output_tokens: output,
        total_tokens: input + output
      }
    }
  }, timestamp)
const meta = wrap("session_meta", {
  id: "t1",
  timestamp: "2026-01-01T00:00:00.000Z",
  base_instructions: { text: "You are a coder" }
}, "2026-01-01T00:00:00.000Z")

const session = (records: ReadonlyArray<unknown>) =>
  Result.getOrThrow(Format.fromString(lines(records), { file: "r.jsonl" }))
const reads = (
  name: string,
  records: ReadonlyArray<unknown>,
  expected: ReadonlyArray<string>,
  found: ReadonlyArray<string> = []
) =>
  it(name, () => {
    const read = session(records)
    assert.deepStrictEqual(outline(read), expected)
    assert.deepStrictEqual(kinds(read), found)
  })

describe("Codex", () => {
  reads("items up to the first output are one response; results are messages of their own", [
    meta,
    message("user", "go"),
    event("user_message", { message: "go" }),
    item("reasoning", { summary: [{ type: "summary_text", text: "think" }], encrypted_content: "blob" }),
    message("assistant", "two calls"),
    call("a"),
    call("b"),
    event("agent_message", { message: "two calls" }),
    output("b", "B"),
    output("a", [{ type: "input_text", text: "A" }]),
    message("assistant", "done")
  ], [
    "system You are a coder",
    "user go",
    "assistant reasoning(think) + two calls + call(a exec) + call(b exec)",
    "tool result(b exec: \"B\")",
    "tool result(a exec: \"A\")",
    "assistant done"
  ])

  reads("a new token total ends a response, so that two in a row are two", [
    meta,
    message("user", "go"),
    message("assistant", "one"),
    tokens(100, 100, 0, 5),
    message("assistant", "two"),
    tokens(300, 200, 100, 6)
  ], ["system You are a coder", "user go", "assistant one", "assistant two"])

  it("keeps what the provider needs back of reasoning, and opaque items where they stood", () => {
    const search = { type: "web_search_call", status: "completed", action: { type: "search", query: "q" } }
    const read = session([
      meta,
      message("user", "go"),
      item("reasoning", { id: "rs_1", summary: [], encrypted_content: "blob" }),
      wrap("response_item", search),
      message("assistant", "found")
    ])
    const last = read.messages[2]
    const parts = last?.role === "assistant" ? last.content : []
    assert.deepStrictEqual(parts.map((part) => part.type), ["reasoning", "text", "text"])
    assert.deepStrictEqual(parts[0]?.options, { openai: { itemId: "rs_1", encryptedContent: "blob" } })
    assert.deepStrictEqual(parts[1] === undefined ? undefined : Marks.of(parts[1]).raw, search)
  })

  it("reads arguments as JSON, keeps those that are not, and takes free text as it is", () => {
    const read = session([
      meta,
      message("user", "go"),
      call("a", "{\"cmd\":\"ls\"}"),
      call("b", "{\"cmd\":\"l"),
      item("custom_tool_call", { call_id: "c", name: "apply_patch", input: "*** Begin" })
    ])
    const last = read.messages[2]
    const parts = last?.role === "assistant" ? last.content : []
    assert.deepStrictEqual(
      parts.map((part) => [part.type === "tool-call" ? part.params : undefined, Marks.of(part)]),
      [[{ cmd: "ls" }, {}], ["{\"cmd\":\"l", { raw: "{\"cmd\":\"l" }], ["*** Begin", {}]]
    )
    assert.deepStrictEqual(parts.map((part) => part.options.openai), [undefined, undefined, { custom: true }])
  })

  const shell = (type: string, more: object) => item(type, { action: { type: "exec" }, ...more })
  reads("outputs of a local shell that name their call by an id alone, or none", [
    meta,
    message("user", "go"),
    shell("local_shell_call", { id: "lsh_1", call_id: "a" }),
    item("local_shell_call_output", { id: "lsh_1", output: "1" }),
    shell("local_shell_call", { id: "lsh_2", call_id: "b" }),
    item("local_shell_call_output", { id: "b", output: "2" }),
    item("local_shell_call_output", { id: "lsh_9", output: "3" })
  ], [
    "system You are a coder",
    "user go",
    "assistant call(a local_shell)",
    "tool result(a local_shell: \"1\")",
    "assistant call(b local_shell)",
    "tool result(b local_shell: \"2\")",
    "assistant opaque"
  ])

  reads("an output that is not there as a whole answers no call", [
    meta,
    message("user", "go"),
    call("a"),
    item("function_call_output", { call_id: "a", output: "so far", status: "in_progress" }),
    output("a", "all"),
    call("b"),
    item("function_call_output", { call_id: "b", output: "so far", status: "in_progress" })
  ], [
    "system You are a coder",
    "user go",
    "assistant call(a exec)",
    "tool result(a exec: \"all\")",
    "assistant call(b exec)"
  ], ["4 provisional", "6 unanswered-call"])

  reads("images in messages and outputs", [
    meta,
    item("message", {
      role: "user",
      content: [{ type: "input_image", image_url: "data:image/png;base64,AAAA" }, { type: "input_text", text: "see" }]
    }),
    call("a"),
    output("a", [{ type: "input_text", text: "shot" }, {
      type: "input_image",
      image_url: "data:image/gif;base64,BBBB"
    }])
  ], [
    "system You are a coder",
    "user file(image/png) + see",
    "assistant call(a exec)",
    "tool result(a exec: [{\"type\":\"text\",\"text\":\"shot\"},{\"type\":\"image\",\"mediaType\":\"image/gif\",\"data\":\"BBBB\"}])"
  ])

  reads("injected context is the machine's, unless a person typed it", [
    meta,
    message("developer", "<permissions instructions>…"),
    message("user", "# AGENTS.md instructions for here"),
    message("user", "<environment_context>…"),
    message("user", "go"),
    event("user_message", { message: "go" }),
    message("assistant", "ok"),
    message("developer", "Approved command prefix saved"),
    message("user", "<turn_aborted>\n…"),
    message("user", "<turn_aborted> what is that?"),
    event("user_message", { message: "<turn_aborted> what is that?" })
  ], [
    "system You are a coder",
    "system <permissions instructions>…",
    "user/runtime-context # AGENTS.md instructions for here",
    "user/runtime-context <environment_context>…",
    "user go",
    "assistant ok",
    "user/runtime-context Approved command prefix saved",
    "user/hook <turn_aborted>\n…",
    "user <turn_aborted> what is that?"
  ])

  describe("a compaction is read whole", () => {
    const before = [meta, message("user", "go"), message("assistant", "old")]
    reads("with the summary as text", [
      ...before,
      wrap("compacted", { message: "What happened" }),
      message("assistant", "new")
    ], [
      "system You are a coder",
      "user go",
      "assistant old",
      "user/context-summary What happened",
      "assistant new"
    ])

    reads("with a replacement: only what is new in it", [
      ...before,
      wrap("compacted", {
        message: "",
        replacement_history: [
          { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "old" }] },
          { type: "message", role: "user", content: [{ type: "input_text", text: "Summary of it" }] },
          { type: "message", role: "developer", content: [{ type: "input_text", text: "new permissions" }] }
        ]
      }),
      message("assistant", "new")
    ], [
      "system You are a coder",
      "user go",
      "assistant old",
      "user/context-summary Context compacted: replaced by 4 items",
      "user/context-summary Summary of it",
      "user/runtime-context new permissions",
      "assistant new"
    ])

    it("with an item that only the provider can read", () => {
      const blob = { type: "compaction", encrypted_content: "blob" }
      const read = session([...before, wrap("compacted", { message: "", replacement_history: [blob] })])
      const last = read.messages.at(-1)
      assert.strictEqual(last?.role, "user")
      const parts = last?.role === "user" ? last.content : []
      assert.deepStrictEqual(parts.map((part) => Marks.of(part).raw), [undefined, blob])
    })
  })

  describe("turns that a person undid", () => {
    const undo = (num_turns?: unknown) => event("thread_rolled_back", { num_turns })
    const turn = (name: string) => [message("user", name), message("assistant", `${name}!`)]
    const told = (...names: ReadonlyArray<string>) => names.flatMap((name) => [`user ${name}`, `assistant ${name}!`])
    const base = "system You are a coder"

    reads("the last one is left out", [meta, ...turn("one"), ...turn("two"), undo(1), ...turn("three")], [
      base,
      ...told("one", "three")
    ], ["6 rolled-back"])
    reads(
      "each event counts from what is left",
      [
        meta,
        ...turn("one"),
        ...turn("two"),
        ...turn("three"),
        undo(1),
        ...turn("four"),
        undo(2),
        ...turn("five")
      ],
      [base, ...told("one", "five")],
      ["8 rolled-back"]
    )
    reads(
      "more than there are: what the machine put first stays",
      [
        meta,
        message("user", "<environment_context>…"),
        ...turn("one"),
        undo(9),
        undo(1),
        ...turn("two")
      ],
      [base, "user/runtime-context <environment_context>…", ...told("two")],
      ["5 rolled-back"]
    )
    reads(
      "what the machine says is no turn, what a person typed like it is one",
      [
        meta,
        ...turn("one"),
        ...turn("<turn_aborted> why?"),
        event("user_message", { message: "<turn_aborted> why?" }),
        message("user", "<turn_aborted>\n…"),
        undo(1),
        ...turn("two")
      ],
      [base, ...told("one", "two")],
      ["8 rolled-back"]
    )
    reads("none, and no number", [meta, ...turn("one"), undo(0), undo(), ...turn("two")], [base, ...told("one", "two")])
    reads(
      "calls, results and a compaction of the turn go with it",
      [
        meta,
        ...turn("one"),
        message("user", "two"),
        call("a"),
        output("a", "A"),
        wrap("compacted", { message: "Sum" }),
        message("assistant", "done"),
        undo(1),
        ...turn("three")
      ],
      [base, ...told("one", "three")],
      ["9 rolled-back"]
    )
    reads(
      "what a compaction brings back of it is new",
      [
        meta,
        ...turn("one"),
        ...turn("two"),
        undo(1),
        wrap("compacted", {
          message: "Sum",
          replacement_history: [
            { type: "message", role: "user", content: [{ type: "input_text", text: "one" }] },
            { type: "message", role: "user", content: [{ type: "input_text", text: "two" }] }
          ]
        })
      ],
      [base, ...told("one"), "user/context-summary Sum", "user/context-summary two"],
      ["6 rolled-back"]
    )

    it("whatever is said and undone, what is left is what a stack of turns holds", () => {
      const random = chance(36)
      for (let round = 0; round < 200; round++) {
        const records: Array<unknown> = [meta]
        const held: Array<string> = []
        for (let step = 0; step < 20; step++) {
          if (random.maybe(0.6)) {
            const name = random.pick(["a", "b", "again"])
            records.push(...turn(name))
            if (random.maybe(0.3)) records.push(call(`c${step}`), output(`c${step}`, "x"))
            held.push(name)
          } else {
            const count = random.below(4)
            records.push(undo(count))
            held.splice(Math.max(0, held.length - count))
          }
        }
        // Something stands in every file, so that an empty one is no error.
        records.push(...turn("last"))
        const people = session(records).messages.filter(({ role }) => role === "user")
        assert.deepStrictEqual(people.map((message) => JSON.stringify(message.content).match(/"text":"(\w+)"/)?.[1]), [
          ...held,
          "last"
        ])
      }
    })

    it("what was billed for it goes with it", () => {
      const read = session([
        meta,
        ...turn("one"),
        tokens(100, 100, 0, 5),
        ...turn("two"),
        tokens(300, 200, 0, 6),
        undo(1),
        ...turn("three"),
        tokens(500, 200, 0, 7)
      ])
      assert.deepStrictEqual(Array.from(read.usage), [
        [2, { fresh: 100, cacheRead: 0, output: 5 }],
        [4, { fresh: 200, cacheRead: 0, output: 7 }]
      ])
    })

    it("a number that is none is an error with a place", () => {
      const read = Format.fromString(lines([meta, ...turn("one"), undo("two")]), { file: "r.jsonl" })
      assert.strictEqual(
        Result.isFailure(read) ? read.failure.message : "read",
        "r.jsonl:4: payload.num_turns: expected a number, got a string"
      )
    })
  })

  describe("usage", () => {
    it("counts a response once, by the total that moved, and no estimate after a compaction", () => {
      const read = session([
        meta,
        event("token_count", { info: null }),
        message("user", "go"),
        message("assistant", "one"),
        call("a"),
        tokens(100, 100, 0, 5),
        tokens(100, 100, 0, 5),
        output("a", "A"),
        message("assistant", "two"),
        tokens(300, 200, 90, 6),
        wrap("compacted", { message: "sum" }),
        tokens(301, 0, 0, 0),
        message("user", "again"),
        message("assistant", "three"),
        tokens(400, 99, 0, 7)
      ])
      assert.deepStrictEqual(outline(read).filter((line) => line.startsWith("assistant")), [
        "assistant one + call(a exec)",
        "assistant two",
        "assistant three"
      ])
      assert.deepStrictEqual(Array.from(read.usage), [
        [2, { fresh: 100, cacheRead: 0, output: 5 }],
        [4, { fresh: 110, cacheRead: 90, output: 6 }],
        [7, { fresh: 99, cacheRead: 0, output: 7 }]
      ])
      assert.deepStrictEqual(read.findings, [])
    })

    it("written after the output still belongs to the response; with no response at all it is noticed", () => {
      const read = session([
        meta,
        message("user", "go"),
        call("a"),
        output("a", "A"),
        tokens(100, 100, 0, 5),
        tokens(200, 100, 0, 6)
      ])
      assert.deepStrictEqual(Array.from(read.usage.keys()), [2])
      assert.deepStrictEqual(kinds(read), ["6 usage-without-response"])
    })
  })

  it("of a copied thread reads the messages but not the bill, and keeps its own head", () => {
    const at = "2026-01-01T00:00:00.400Z"
    const read = session([
      meta,
      wrap("session_meta", { id: "parent", base_instructions: { text: "Other" } }, at),
      { ...message("user", "go"), timestamp: at },
      { ...message("assistant", "in the parent"), timestamp: at },
      tokens(100, 100, 0, 5, at),
      message("user", "your task"),
      message("assistant", "mine"),
      tokens(300, 200, 0, 6)
    ])
    assert.deepStrictEqual(outline(read), [
      "system You are a coder",
      "user go",
      "assistant in the parent",
      "user your task",
      "assistant mine"
    ])
    assert.deepStrictEqual(Array.from(read.usage), [[4, { fresh: 200, cacheRead: 0, output: 6 }]])
    assert.deepStrictEqual(read.findings.map(({ detail, kind }) => [kind, detail.includes("parent")]), [[
      "copied",
      true
    ]])
  })

  reads(
    "rollouts from before the payloads",
    [
      { id: "t0", timestamp: "2025-07-01T00:00:00.000Z", instructions: null, git: {} },
      { record_type: "state" },
      { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
      { type: "function_call", call_id: "a", name: "shell", arguments: "{}" },
      { type: "function_call_output", call_id: "a", output: "A" },
      { type: "ghost_snapshot", ghost_commit: {} }
    ],
    ["user go", "assistant call(a shell)", "tool result(a shell: \"A\")"],
    ["6 ghost-snapshot"]
  )

  describe("errors name the line and the field", () => {
    const cases: ReadonlyArray<readonly [name: string, record: unknown, message: string]> = [
      [
        "unknown role",
        message("wizard", "x"),
        "r.jsonl:2: payload.role: unknown role \"wizard\", expected system, developer, user or assistant"
      ],
      [
        "number for text",
        item("message", { role: "user", content: [{ type: "input_text", text: 1 }] }),
        "r.jsonl:2: payload.content[0].text: expected a string, got a number"
      ],
      [
        "call without arguments",
        item("function_call", { call_id: "a", name: "x" }),
        "r.jsonl:2: payload.arguments: expected a string, got nothing"
      ],
      [
        "an output that names no call",
        item("function_call_output", { id: "a", output: "x" }),
        "r.jsonl:2: payload.call_id: expected a string, got nothing"
      ],
      ["no payload", { timestamp: "x", type: "response_item" }, "r.jsonl:2: payload: expected an object, got nothing"],
      [
        "broken usage",
        event("token_count", { info: { total_token_usage: {}, last_token_usage: { input_tokens: "x" } } }),
        "r.jsonl:2: payload.info.last_token_usage.input_tokens: expected a number, got a string"
      ]
    ]
    for (const [name, record, message] of cases) {
      it(name, () => {
        const read = Format.fromString(lines([meta, record]), { file: "r.jsonl" })
        assert.strictEqual(Result.isFailure(read) ? read.failure.message : "read", message)
      })
    }
  })

  // Lists of messages count `message` items alone; here a response of reasoning, text and calls is one message. The
  // buckets add up to the last cumulative total of each file: fresh + cacheRead = input_tokens.
  describe("recorded sessions", () => {
    const cases: ReadonlyArray<readonly [string, object, object, ReadonlyArray<string>]> = [
      [
        "gpt54-591-calls-2-compactions",
        {
          human: 54,
          machine: 17,
          assistant: 426,
          calls: 591,
          results: 591,
          images: 0,
          signatures: 0
        },
        { responses: 426, fresh: 56_537_769 - 52_562_560, cacheRead: 52_562_560, cacheWrite: 0, output: 191_844 },
        [
          "1837 torn-line"
        ]
      ],
      [
        "gpt54-aborted-small",
        {
          human: 4,
          machine: 2,
          assistant: 15,
          calls: 20,
          results: 20,
          images: 0,
          signatures: 0
        },
        { responses: 15, fresh: 283_738 - 235_648, cacheRead: 235_648, cacheWrite: 0, output: 3_765 },
        []
      ],
      [
        "gpt54-reasoning-items",
        {
          human: 20,
          machine: 10,
          assistant: 128,
          calls: 204,
          results: 204,
          images: 0,
          signatures: 0
        },
        { responses: 128, fresh: 10_333_834 - 10_044_416, cacheRead: 10_044_416, cacheWrite: 0, output: 48_994 },
        []
      ],
      [
        "gpt55-543-calls-compaction-item",
        {
          human: 58,
          machine: 3,
          assistant: 295,
          calls: 543,
          results: 543,
          images: 0,
          signatures: 0
        },
        { responses: 295, fresh: 38_143_388 - 37_468_800, cacheRead: 37_468_800, cacheWrite: 0, output: 102_082 },
        []
      ],
      [
        "gpt55-image-orphan",
        {
          human: 12,
          machine: 1,
          assistant: 110,
          calls: 153,
          results: 152,
          images: 1,
          signatures: 0
        },
        { responses: 110, fresh: 4_333_873 - 4_109_568, cacheRead: 4_109_568, cacheWrite: 0, output: 16_175 },
        [
          "741 unanswered-call"
        ]
      ]
    ]
    for (const [name, counts, usage, found] of cases) {
      itReads(`codex/${name}.jsonl`, (session) => {
        assert.strictEqual(session.format, "codex")
        assert.deepStrictEqual({ ...count(session) }, counts)
        assert.deepStrictEqual(billed(session), usage)
        assert.deepStrictEqual(kinds(session), found)
      })
    }
  })
})
