import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Session from "effect-compaction/format/Session"
import * as Result from "effect/Result"
import { billed, count, itReads, kinds, lines, outline } from "./recorded.ts"
import { chance } from "./wireBodies.ts"

// A session in few words: each line hangs on the line before, unless it says otherwise.
interface Extra {
  readonly [key: string]: unknown
}
let last: string | null = null
let made = 0
const line = (type: string, rest: Extra): Extra => {
  const uuid = typeof rest.uuid === "string" ? rest.uuid : `u${++made}`
  const entry = { parentUuid: last, isSidechain: false, sessionId: "s1", version: "2.1.120", type, uuid, ...rest }
  if (entry.isSidechain === false) last = uuid
  return entry
}
const user = (content: unknown, rest: Extra = {}) => line("user", { message: { role: "user", content }, ...rest })
const result = (id: string, content: unknown, rest: Extra = {}) =>
  user(
    [{ type: "tool_result", tool_use_id: id, content, ...(rest.failed === true ? { is_error: true } : undefined) }],
    rest
  )
const reply = (id: string, block: unknown, rest: Extra = {}, message: Extra = {}) =>
  line("assistant", {
    message: { id, model: "claude-x", role: "assistant", content: [block], stop_reason: "end_turn", ...message },
    ...rest
  })
const text = (text: string) => ({ type: "text", text })
const call = (id: string) => ({ type: "tool_use", id, name: "Bash", input: { command: id } })
const usage = (input: number, read: number, write: number, output: number) => ({
  usage: {
    input_tokens: input,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: write,
    output_tokens: output
  }
})
/** What was typed while the model works goes through a queue; its lines have no uuid. */
const queue = (operation: string, content?: string): Extra => ({
  type: "queue-operation",
  operation,
  sessionId: "s1",
  ...(content === undefined ? undefined : { content })
})
const session = (records: ReadonlyArray<unknown>) => {
  last = null
  return Result.getOrThrow(Format.fromString(lines(records), { file: "s.jsonl" }))
}
const reads = (
  name: string,
  make: () => ReadonlyArray<unknown>,
  expected: ReadonlyArray<string>,
  found: ReadonlyArray<string> = []
) =>
  it(name, () => {
    last = null
    const read = session(make())
    assert.deepStrictEqual(outline(read), expected)
    assert.deepStrictEqual(kinds(read), found)
  })

describe("ClaudeCode", () => {
  reads("one response in several lines is one message, and early results stand after it", () => [
    user("go"),
    reply("m1", { type: "thinking", thinking: "", signature: "sig" }),
    reply("m1", text("two calls")),
    reply("m1", call("a"), { uuid: "line-a" }),
    result("a", "A", { parentUuid: "line-a" }),
    reply("m1", call("b"), { uuid: "line-b", parentUuid: "line-a" }),
    result("b", [text("B")], { parentUuid: "line-b", failed: true }),
    reply("m2", text("done"))
  ], [
    "user go",
    "assistant reasoning() + two calls + call(a Bash) + call(b Bash)",
    "tool result(a Bash: \"A\")",
    "tool result(b Bash failed: \"B\")",
    "assistant done"
  ])

  it("keeps the signature of thinking with no text, and redacted thinking", () => {
    const read = session([
      user("go"),
      reply("m1", { type: "thinking", thinking: "", signature: "sig" }),
      reply("m1", { type: "redacted_thinking", data: "blob" })
    ])
    const message = read.messages[1]
    assert.deepStrictEqual(
      message?.role === "assistant" ? message.content.map((part) => part.options) : [],
      [
        { anthropic: { info: { type: "thinking", signature: "sig" } } },
        { anthropic: { info: { type: "redacted_thinking", redactedData: "blob" } } }
      ]
    )
  })

  reads("results of several blocks and images stay structured", () => [
    user([{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }, text("[Image #1]")]),
    reply("m1", call("a")),
    result("a", [text("shot"), { type: "image", source: { type: "base64", media_type: "image/png", data: "BBBB" } }]),
    reply("m2", call("b")),
    result("b", [{ type: "tool_reference", tool_name: "X" }])
  ], [
    "user file(image/png) + [Image #1]",
    "assistant call(a Bash)",
    "tool result(a Bash: [{\"type\":\"text\",\"text\":\"shot\"},{\"type\":\"image\",\"mediaType\":\"image/png\",\"data\":\"BBBB\"}])",
    "assistant call(b Bash)",
    "tool result(b Bash: [{\"type\":\"tool_reference\",\"tool_name\":\"X\"}])"
  ])

  reads("text beside a result in one line is a message after it", () => [
    user("go"),
    reply("m1", call("a")),
    user([{ type: "tool_result", tool_use_id: "a", content: "ok" }, text("but test it")])
  ], ["user go", "assistant call(a Bash)", "tool result(a Bash: \"ok\")", "user but test it"])

  reads("a compaction is read whole: what was before, the markers and the summary", () => [
    user("before"),
    reply("m1", text("old")),
    line("system", {
      subtype: "microcompact_boundary",
      content: "Context microcompacted",
      microcompactMetadata: { trigger: "auto", preTokens: 60 }
    }),
    user("more", { uuid: "last-before" }),
    line("system", {
      parentUuid: null,
      logicalParentUuid: "last-before",
      subtype: "compact_boundary",
      content: "Conversation compacted",
      compactMetadata: { trigger: "manual", preTokens: 155 }
    }),
    user("This session is being continued…", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
    reply("m2", text("new"))
  ], [
    "user before",
    "assistant old",
    "user/context-summary Context microcompacted (auto, 60 tokens before)",
    "user more",
    "user/context-summary Conversation compacted (manual, 155 tokens before)",
    "user/context-summary This session is being continued…",
    "assistant new"
  ])

  reads("a boundary whose parent is not in the file goes on with the line before it", () => [
    user("before"),
    line("system", { parentUuid: null, logicalParentUuid: "gone", subtype: "compact_boundary", content: "Cut" }),
    user("after")
  ], ["user before", "user/context-summary Cut", "user after"])

  reads("an abandoned branch is left out and counted; parallel results beside the chain are not", () => [
    user("first", { uuid: "first" }),
    reply("m1", text("kept"), { uuid: "kept" }),
    user("a wrong turn"),
    reply("m2", call("w")),
    result("w", "wrong"),
    user("rewound", { parentUuid: "kept" }),
    reply("m3", call("a"), { uuid: "call-a" }),
    reply("m3", call("b"), { uuid: "call-b" }),
    result("a", "A", { parentUuid: "call-a", uuid: "result-a" }),
    line("attachment", {
      parentUuid: "result-a",
      attachment: { type: "hook_additional_context", content: ["from a hook"] }
    }),
    result("b", "B", { parentUuid: "call-b" }),
    reply("m4", text("done"))
  ], [
    "user first",
    "assistant kept",
    "user rewound",
    "assistant call(a Bash) + call(b Bash)",
    "tool result(a Bash: \"A\")",
    "user/hook from a hook",
    "tool result(b Bash: \"B\")",
    "assistant done"
  ], ["3 abandoned-branch"])

  reads(
    "side lines are left out of the main order and counted",
    () => [
      user("go", { uuid: "go" }),
      user("side task", { isSidechain: true, parentUuid: null, agentId: "x" }),
      reply("s1", text("side answer"), { isSidechain: true, agentId: "x" }),
      reply("m1", text("main"))
    ],
    ["user go", "assistant main"],
    ["2 sidechain"]
  )

  reads("the file of a subagent is its conversation", () => [
    user("side task", { isSidechain: true, parentUuid: null }),
    reply("s1", call("a"), { isSidechain: true }),
    result("a", "A", { isSidechain: true, parentUuid: null })
  ], ["user side task", "assistant call(a Bash)", "tool result(a Bash: \"A\")"])

  describe("whose words a user line holds", () => {
    const cases: ReadonlyArray<readonly [name: string, make: () => unknown, source: string | undefined]> = [
      ["typed", () => user("hi"), undefined],
      ["typed, as newer versions say", () => user("hi", { promptSource: "typed" }), undefined],
      ["quotes a wrapper", () => user("why <task-notification>?"), undefined],
      [
        "pastes a wrapper in a version that says who typed",
        () => user("<task-notification>x", { promptSource: "typed" }),
        undefined
      ],
      ["quotes the interruption", () => user([text("[Request interrupted by user] is odd")]), undefined],
      ["slash command", () => user("<command-name>/exit</command-name>"), undefined],
      ["meta", () => user("Caveat: …", { isMeta: true }), "hook"],
      ["interruption", () => user([text("[Request interrupted by user for tool use]")]), "hook"],
      ["output of a local command", () => user("<local-command-stdout>Bye</local-command-stdout>"), "hook"],
      ["task notification", () => user("<task-notification>x</task-notification>"), "hook"],
      ["origin", () => user("x", { origin: { kind: "task-notification" }, promptSource: "system" }), "hook"],
      [
        "queued while busy",
        () => line("attachment", { attachment: { type: "queued_command", prompt: "hi" } }),
        undefined
      ],
      ["queued by a task", () =>
        line("attachment", {
          attachment: { type: "queued_command", prompt: "hi", commandMode: "task-notification" }
        }), "hook"]
    ]
    for (const [name, make, source] of cases) {
      it(name, () => {
        last = null
        const message = session([user("start"), make()]).messages[1]
        const marks = message?.options["effect-compaction"] ?? {}
        assert.deepStrictEqual(marks, source === undefined ? {} : { source })
      })
    }
  })

  reads(
    "other attachments are counted by type",
    () => [
      user("go"),
      line("attachment", { attachment: { type: "task_reminder", content: [] } }),
      line("attachment", { attachment: { type: "task_reminder", content: [] } }),
      queue("enqueue", "go")
    ],
    ["user go"],
    ["2 attachment"]
  )

  describe("what was typed while the model worked", () => {
    const typed = "and never force-push, please"
    reads("is told at the place of its removal from the queue", () => [
      user("Fix the build."),
      reply("m1", call("a")),
      queue("enqueue", typed),
      queue("remove"),
      result("a", "ok"),
      reply("m2", text("Done; no force-push from now on."))
    ], [
      "user Fix the build.",
      "assistant call(a Bash)",
      `user ${typed}`,
      "tool result(a Bash: \"ok\")",
      "assistant Done; no force-push from now on."
    ])
    reads("is left out where it was dequeued or taken back: it comes again, or never", () => [
      user("go"),
      queue("enqueue", "first"),
      queue("dequeue"),
      user("first"),
      queue("enqueue", "second"),
      queue("popAll", "second"),
      queue("enqueue", "third"),
      queue("enqueue", "fourth"),
      queue("popAll"),
      queue("enqueue", "fifth"),
      queue("remove"),
      reply("m1", text("done"))
    ], ["user go", "user first", "user fifth", "assistant done"])
    reads("is told once where an attachment or a line of the user says it too", () => [
      user("go"),
      reply("m1", call("a")),
      queue("enqueue", "one"),
      queue("enqueue", "two"),
      queue("remove"),
      queue("remove"),
      result("a", "ok"),
      line("attachment", { attachment: { type: "queued_command", prompt: "one" } }),
      line("attachment", { attachment: { type: "queued_command", prompt: [text("two")] } }),
      queue("enqueue", "three"),
      queue("remove"),
      user("three"),
      reply("m2", text("done"))
    ], [
      "user go",
      "assistant call(a Bash)",
      "tool result(a Bash: \"ok\")",
      "user one",
      "user two",
      "user three",
      "assistant done"
    ])
    reads("is told once where the attachment comes first", () => [
      user("go"),
      queue("enqueue", "one"),
      queue("enqueue", "two"),
      line("attachment", { attachment: { type: "queued_command", prompt: "one" } }),
      queue("remove"),
      queue("remove"),
      reply("m1", text("done"))
    ], ["user go", "user one", "user two", "assistant done"])
    reads("the same words again are another message", () => [
      user("go"),
      queue("enqueue", "yes"),
      queue("remove"),
      reply("m1", text("one")),
      user("yes"),
      reply("m2", text("two"))
    ], ["user go", "user yes", "assistant one", "user yes", "assistant two"])
    reads("a removal names its words where it has them", () => [
      user("go"),
      queue("enqueue", "one"),
      queue("enqueue", "two"),
      queue("remove", "two"),
      queue("remove"),
      reply("m1", text("done"))
    ], ["user go", "user two", "user one", "assistant done"])
    reads("a report of a task is no person's", () => [
      user("go"),
      queue("enqueue", "<task-notification>done</task-notification>"),
      queue("remove")
    ], ["user go", "user/hook <task-notification>done</task-notification>"])
    reads("words that are not in the file are noticed", () => [user("go"), queue("remove"), queue("cleared")], [
      "user go"
    ], ["2 queued", "3 unknown-line"])
    it("whatever the order, words that are removed are told once, and words that were taken back are not", () => {
      const random = chance(67)
      for (let round = 0; round < 200; round++) {
        last = null
        const records: Array<unknown> = [user("go")]
        const waiting: Array<string> = []
        const told: Array<string> = []
        for (let step = 0; step < 25; step++) {
          const kind = random.below(5)
          if (kind < 2) {
            waiting.push(`words ${step}`)
            records.push(queue("enqueue", `words ${step}`))
          } else if (kind === 2 && waiting.length > 0) {
            const words = waiting.shift()!
            records.push(queue("remove"))
            // Some versions say the same again in an attachment, at once or after an answer.
            if (random.maybe(0.5)) records.push(reply(`m${step}`, text("busy")))
            if (random.maybe(0.5)) {
              records.push(line("attachment", { attachment: { type: "queued_command", prompt: words } }))
            }
            told.push(words)
          } else if (kind === 3 && waiting.length > 0) {
            const words = waiting.shift()!
            records.push(queue("dequeue"), user(words))
            told.push(words)
          } else if (kind === 4 && random.maybe(0.3)) {
            waiting.length = 0
            records.push(queue("popAll"))
          } else records.push(reply(`n${step}`, text("busy")))
        }
        const read = outline(session(records)).filter((line) => line.startsWith("user words"))
        assert.deepStrictEqual(read, told.map((words) => `user ${words}`))
      }
    })
    reads(
      "is of the branch that it was typed in",
      () => [
        user("first", { uuid: "first" }),
        reply("m1", text("kept"), { uuid: "kept" }),
        user("a wrong turn"),
        queue("enqueue", "hurry"),
        queue("remove"),
        reply("m2", text("wrong")),
        user("rewound", { parentUuid: "kept" }),
        queue("enqueue", "slowly"),
        queue("remove"),
        reply("m3", text("right"))
      ],
      ["user first", "assistant kept", "user rewound", "user slowly", "assistant right"],
      ["3 abandoned-branch"]
    )
  })

  describe("two compactions in one file", () => {
    const boundary = (uuid: string, logicalParentUuid: string | null) =>
      line("system", { uuid, parentUuid: null, logicalParentUuid, subtype: "compact_boundary", content: "Compacted" })
    const summary = (uuid: string, rest: Extra = {}) =>
      user(`SUMMARY ${uuid}`, { uuid, isCompactSummary: true, ...rest })
    const turn = (name: string, rest: Extra = {}) => [
      user(name, { uuid: `${name}?`, ...rest }),
      reply(`m-${name}`, text(`${name}!`), { uuid: `${name}!` })
    ]
    const told = (...names: ReadonlyArray<string>) => names.flatMap((name) => [`user ${name}`, `assistant ${name}!`])
    const compacted = (name: string) => ["user/context-summary Compacted", `user/context-summary SUMMARY ${name}`]

    reads(
      "a turn behind the second that goes on from before the first: all is kept, and said",
      () => [
        ...turn("one"),
        ...turn("two"),
        boundary("b1", "two!"),
        summary("s1"),
        ...turn("three"),
        boundary("b2", "three!"),
        summary("s2"),
        ...turn("four", { parentUuid: "one!" }),
        ...turn("five")
      ],
      [...told("one", "two"), ...compacted("s1"), ...told("three"), ...compacted("s2"), ...told("four", "five")],
      [
        "11 compaction-kept"
      ]
    )
    reads("text of the client between the summary and the turn", () => [
      ...turn("one"),
      boundary("b1", "one!"),
      summary("s1"),
      user("Caveat", { isMeta: true }),
      line("attachment", { attachment: { type: "hook_additional_context", content: ["hook"] } }),
      ...turn("two", { parentUuid: "one?" })
    ], [
      ...told("one"),
      ...compacted("s1"),
      "user/hook Caveat",
      "user/hook hook",
      ...told("two")
    ], ["7 compaction-kept"])
    reads(
      "a second compaction that names a line before the first",
      () => [
        ...turn("one"),
        boundary("b1", "one!"),
        summary("s1"),
        ...turn("two"),
        boundary("b2", "one!"),
        summary("s2"),
        ...turn("three")
      ],
      [...told("one"), ...compacted("s1"), ...told("two"), ...compacted("s2"), ...told("three")],
      [
        "7 compaction-kept"
      ]
    )
    reads("a compaction that names no line at all", () => [
      ...turn("one"),
      boundary("b1", null),
      summary("s1"),
      ...turn("two"),
      summary("s2", { parentUuid: null }),
      ...turn("three")
    ], [...told("one"), ...compacted("s1"), ...told("two"), "user/context-summary SUMMARY s2", ...told("three")])
    reads(
      "turns between the compaction and the turn: a rewind, as ever",
      () => [
        ...turn("one"),
        ...turn("two"),
        boundary("b1", "two!"),
        summary("s1"),
        ...turn("three"),
        ...turn("four", { parentUuid: "one!" })
      ],
      [...told("one"), ...told("four")],
      ["3 abandoned-branch"]
    )
    reads(
      "a rewind to a line behind the compaction",
      () => [
        ...turn("one"),
        boundary("b1", "one!"),
        summary("s1"),
        ...turn("two"),
        ...turn("three", { parentUuid: "s1" })
      ],
      [...told("one"), ...compacted("s1"), ...told("three")],
      ["5 abandoned-branch"]
    )
  })

  reads("a result whose line is before that of its call has the name of it", () => [
    user("go"),
    reply("m1", call("a"), { uuid: "a1" }),
    result("b", "two", { parentUuid: "a2", uuid: "r2" }),
    reply("m1", { type: "tool_use", id: "b", name: "Write", input: {} }, { uuid: "a2", parentUuid: "a1" }),
    result("a", "one", { parentUuid: "a1" }),
    reply("m2", text("done"))
  ], [
    "user go",
    "assistant call(a Bash) + call(b Write)",
    "tool result(b Write: \"two\")",
    "tool result(a Bash: \"one\")",
    "assistant done"
  ])

  it("text that the client made is no answer to a request", () => {
    const read = session([
      user("go"),
      reply("m1", text("API Error"), { isApiErrorMessage: true }, { model: "<synthetic>" }),
      user("again"),
      reply("m2", text("done"))
    ])
    assert.deepStrictEqual(read.messages.map(Session.isAnswer), [false, false, false, true])
    assert.strictEqual(read.model, "claude-x")
  })

  // The largest output count stands in any of the lines: the last one may repeat the count of the stream's start.
  for (const outputs of [[1, 181], [181, 1], [1, 181, 1]]) {
    it(`of the output counts ${outputs.join(", ")} of one response the largest is billed`, () => {
      const read = session([
        user("go"),
        ...outputs.map((output, at) => reply("m1", text(`part ${at}`), {}, usage(2, 600, 30, output)))
      ])
      assert.strictEqual(read.usage.get(1)?.output, 181)
    })
  }

  reads(
    "duplicate lines, copied blocks, unknown lines and text of the client are noticed",
    () => [
      user("go", { uuid: "go" }),
      user("go", { uuid: "go", parentUuid: null }),
      reply("m1", call("a"), { uuid: "m1a", parentUuid: "go" }),
      reply("m1", call("a"), { uuid: "m1b", parentUuid: "m1a" }),
      line("brand-new", {}),
      reply("m2", text("API Error"), {}, { model: "<synthetic>", ...usage(0, 0, 0, 0) })
    ],
    ["user go", "assistant call(a Bash)", "assistant/hook API Error"],
    [
      "2 duplicate",
      "3 unanswered-call",
      "5 unknown-line",
      "6 synthetic"
    ]
  )

  describe("usage", () => {
    const version = (version: string, stop: string | null) => [
      user("go"),
      reply("m1", text("a"), { version }, { ...usage(2, 600, 30, 1), stop_reason: null }),
      reply("m1", text("b"), { version }, { ...usage(2, 600, 30, 181), stop_reason: stop })
    ]
    const buckets = { fresh: 2, cacheRead: 600, cacheWrite: 30 }
    const cases: ReadonlyArray<readonly [string, string | null, object]> = [
      ["2.1.7", null, { ...buckets, output: 181 }],
      ["2.0.64", null, { ...buckets, output: 181 }],
      ["2.1.12", null, buckets],
      ["2.1.29", null, buckets],
      ["2.1.78", null, buckets],
      ["2.1.78", "end_turn", { ...buckets, output: 181 }],
      ["2.2.0", null, buckets],
      ["3.0.1", null, buckets]
    ]
    for (const [name, stop, expected] of cases) {
      it(`version ${name}, stop_reason ${stop}: counted once, ${"output" in expected ? "with" : "without"} output`, () => {
        last = null
        assert.deepStrictEqual(Array.from(session(version(name, stop)).usage), [[1, expected]])
      })
    }

    it("of several internal calls is their sum", () => {
      const read = session([
        user("go"),
        reply("m1", text("a"), {}, {
          usage: {
            input_tokens: 220,
            output_tokens: 9,
            iterations: [
              { type: "compaction", input_tokens: 55_196, output_tokens: 125 },
              { type: "message", input_tokens: 220, output_tokens: 9 }
            ]
          }
        })
      ])
      assert.deepStrictEqual(Array.from(read.usage), [[1, { fresh: 55_416, output: 134 }]])
    })
  })

  describe("errors name the line and the field", () => {
    const cases: ReadonlyArray<readonly [name: string, make: () => unknown, message: string]> = [
      [
        "number for text",
        () => reply("m1", { type: "text", text: 5 }),
        "s.jsonl:2: message.content[0].text: expected a string, got a number"
      ],
      [
        "unknown role",
        () => user("x", { message: { role: "wizard", content: "x" } }),
        "s.jsonl:2: message.role: unknown role \"wizard\", expected \"user\""
      ],
      ["no message", () => line("user", {}), "s.jsonl:2: message: expected an object, got nothing"],
      [
        "result without id",
        () => user([{ type: "tool_result", content: "x" }]),
        "s.jsonl:2: message.content[0].tool_use_id: expected a string, got nothing"
      ],
      [
        "negative usage",
        () => reply("m1", text("x"), {}, usage(-1, 0, 0, 0)),
        "s.jsonl:2: message.usage.input_tokens: expected a whole number of at least 0"
      ],
      [
        "image without data",
        () => user([{ type: "image", source: { type: "base64", media_type: "image/png", data: 1 } }]),
        "s.jsonl:2: message.content[0].source.data: expected a string, got a number"
      ]
    ]
    for (const [name, make, message] of cases) {
      it(name, () => {
        last = null
        const read = Format.fromString(lines([user("start"), make()]), { file: "s.jsonl" })
        assert.strictEqual(Result.isFailure(read) ? read.failure.message : "read", message)
      })
    }
  })

  // Lists of lines count two messages for a response of text and call; here it is one, so `assistant` is the number of
  // distinct `message.id`. Calls, results, images and signatures are those of the lines.
  describe("recorded sessions", () => {
    const cases: ReadonlyArray<readonly [string, object, object]> = [
      ["opus45-3-compactions", {
        human: 43,
        machine: 14,
        assistant: 226,
        calls: 206,
        results: 206,
        images: 0,
        signatures: 225
      }, { responses: 225, fresh: 13_818, cacheRead: 24_013_662, cacheWrite: 1_618_146, output: 70_618 }],
      ["opus45-compact-plus-microcompact", {
        human: 22,
        machine: 5,
        assistant: 131,
        calls: 128,
        results: 128,
        images: 0,
        signatures: 131
      }, { responses: 131, fresh: 9_420, cacheRead: 13_942_651, cacheWrite: 485_489, output: 0 }],
      // Two of the 26 were typed while the model worked.
      ["opus45-image-compaction-orphan", {
        human: 26,
        machine: 10,
        assistant: 134,
        calls: 127,
        results: 126,
        images: 1,
        signatures: 28
      }, { responses: 134, fresh: 299, cacheRead: 15_576_859, cacheWrite: 637_373, output: 0 }],
      ["opus45-malformed-line", {
        human: 5,
        machine: 1,
        assistant: 42,
        calls: 41,
        results: 41,
        images: 0,
        signatures: 42
      }, { responses: 42, fresh: 346, cacheRead: 2_618_979, cacheWrite: 168_250, output: 7_024 }],
      ["opus45-orphan-result", {
        human: 0,
        machine: 2,
        assistant: 47,
        calls: 46,
        results: 47,
        images: 0,
        signatures: 0
      }, { responses: 47, fresh: 50, cacheRead: 3_466_970, cacheWrite: 60_597, output: 0 }],
      ["opus45-small-compaction-a", {
        human: 1,
        machine: 2,
        assistant: 20,
        calls: 23,
        results: 23,
        images: 0,
        signatures: 20
      }, { responses: 20, fresh: 164, cacheRead: 2_038_052, cacheWrite: 199_247, output: 3_653 }],
      ["opus47-image-in-tool-result", {
        human: 15,
        machine: 6,
        assistant: 82,
        calls: 68,
        results: 68,
        images: 1,
        signatures: 31
      }, { responses: 82, fresh: 170, cacheRead: 5_475_308, cacheWrite: 249_317, output: 44_042 }],
      ["opus48-parallel-calls", {
        human: 3,
        machine: 21,
        assistant: 318,
        calls: 365,
        results: 364,
        images: 0,
        signatures: 183
      }, { responses: 318, fresh: 110_223, cacheRead: 90_143_722, cacheWrite: 1_604_787, output: 221_221 }]
    ]
    for (const [name, counts, usage] of cases) {
      itReads(`claude-code/${name}.jsonl`, (session) => {
        assert.strictEqual(session.format, "claude-code")
        assert.deepStrictEqual({ ...count(session) }, counts)
        assert.deepStrictEqual(billed(session), usage)
      })
    }
  })
})
