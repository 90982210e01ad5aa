import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Session from "effect-compaction/format/Session"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as PlatformError from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as JsonLines from "../../src/format/parts/jsonLines.ts"
import { errorAt } from "../../src/text/syntax.ts"
import { billed, kinds, outline, recorded } from "./recorded.ts"

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/format/${name}`, import.meta.url))

const messageOf = (read: Result.Result<Session.Session, Session.FormatError>): string =>
  Result.isFailure(read) ? read.failure.message : `read as ${read.success.format}`

const record = (uuid: string, content: string, parentUuid: string | null = null) =>
  JSON.stringify({ parentUuid, sessionId: "s", type: "user", uuid, message: { role: "user", content } })

describe("Format", () => {
  describe("reads files, and says why it took the format", () => {
    const cases: ReadonlyArray<readonly [string, string, ReadonlyArray<string>, object, ReadonlyArray<string>]> = [
      [
        "claude-code.jsonl",
        "record 3 has \"type\": \"user\", a uuid and a sessionId",
        [
          "user Why does the build fail?",
          "assistant reasoning() + call(toolu_1 Bash) + call(toolu_2 Read)",
          "tool result(toolu_1 Bash failed: \"make: *** no rule\")",
          "tool result(toolu_2 Read: \"all:\\n\\techo ok\")",
          "assistant There is no rule for it."
        ],
        { responses: 2, fresh: 5, cacheRead: 9000, cacheWrite: 9210, output: 97 },
        ["9 torn-line"]
      ],
      [
        "codex.jsonl",
        "record 1 has \"type\": \"session_meta\" and a payload",
        [
          "system You are Codex.",
          "system <permissions instructions>read only</permissions instructions>",
          "user/runtime-context <environment_context>\n  <cwd>/home/user</cwd>\n</environment_context>",
          "user Why does the build fail?",
          "assistant reasoning() + call(call_1 exec_command)",
          "tool result(call_1 exec_command: \"make: *** no rule\")",
          "assistant There is no rule for it."
        ],
        { responses: 2, fresh: 5100, cacheRead: 13_000, cacheWrite: 0, output: 72 },
        []
      ],
      [
        "amplifier.jsonl",
        "record 1 has a role and metadata with a timestamp",
        [
          "user Why does the build fail?",
          "assistant reasoning(Run it.) + call(toolu_1 bash)",
          "tool result(toolu_1 bash: \"{\\\"error\\\": null, \\\"output\\\": {\\\"returncode\\\": 2}, \\\"success\\\": true}\")",
          "assistant There is no rule for it."
        ],
        { responses: 0, fresh: 0, cacheRead: 0, cacheWrite: 0, output: 0 },
        []
      ]
    ]
    for (const [name, why, messages, usage, found] of cases) {
      it.effect(name, () =>
        Effect.gen(function*() {
          const session = yield* Format.read(fixture(name))
          assert.strictEqual(`${session.format}.jsonl`, name)
          assert.include(session.why, name === "claude-code.jsonl" ? "leafUuid" : why)
          assert.deepStrictEqual(outline(session), messages)
          assert.deepStrictEqual(billed(session), usage)
          assert.deepStrictEqual(kinds(session), found)
        }).pipe(Effect.provide(NodeServices.layer)))
    }

    it.effect("from standard input, in pieces that cut lines and characters", () =>
      Effect.gen(function*() {
        const bytes = new TextEncoder().encode(`\uFEFF${record("a", "für dich")}\r\n\r\n${record("b", "→", "a")}\r\n`)
        const session = yield* Format.read("-").pipe(Effect.provide([
          Stdio.layerTest({ stdin: Stream.fromIterable(Array.from(bytes, (byte) => Uint8Array.of(byte))) }),
          FileSystem.layerNoop({})
        ]))
        assert.strictEqual(session.file, "standard input")
        assert.deepStrictEqual(outline(session), ["user für dich", "user →"])
        assert.deepStrictEqual(session.findings, [])
      }))
  })

  describe("errors of files", () => {
    const read = (file: string) => Effect.map(Effect.result(Format.read(file)), messageOf)
    const failing = (tag: PlatformError.SystemErrorTag) =>
      Layer.mergeAll(
        Stdio.layerTest({}),
        FileSystem.layerNoop({
          stream: () =>
            Stream.fail(
              PlatformError.systemError({ _tag: tag, module: "FileSystem", method: "open", pathOrDescriptor: "x" })
            )
        })
      )
    it.effect("no such file, and a directory", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* read("/no/such/file.jsonl"), "/no/such/file.jsonl: no such file")
        const directory = fixture("")
        assert.strictEqual(
          yield* read(directory),
          `${directory}: not readable: expected a file, not a directory or a device`
        )
      }).pipe(Effect.provide(NodeServices.layer)))
    it.effect("permission", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* read("x"), "x: not readable: permission denied")
      }).pipe(Effect.provide(failing("PermissionDenied"))))
    it.effect("anything else", () =>
      Effect.gen(function*() {
        assert.include(yield* read("x"), "x: not readable: Busy")
      }).pipe(Effect.provide(failing("Busy"))))
  })

  describe("texts that are no session", () => {
    const known = Session.FormatName.literals.join(", ")
    const cases: ReadonlyArray<readonly [name: string, text: string, message: RegExp]> = [
      ["empty", "", /^f: the file is empty$/],
      ["blank", " \n\r\n\t", /^f: the file is empty$/],
      ["prose", "hello\nworld", /^f:1: expected JSON at column 1$/],
      ["lines that are all broken", "{\"a\":\n{\"b\":", /^f:2: expected more JSON, the text ends$/],
      ["a document that is cut off", "{\n \"messages\": [\n", /^f:2: expected more JSON, the text ends$/],
      ["a document with an error in line 3", "{\n\n \"a\": x\n}", /^f:3: expected JSON at column 7$/],
      [
        "a document that is cut off after an object",
        "[\n{\"role\":\"user\"}\n",
        /^f:2: expected more JSON, the text ends$/
      ],
      ["a number", "5", new RegExp(`^f: the format is not known; expected one of ${known}$`)],
      [
        "lines of something else",
        "{\"a\":1}\n{\"a\":2}",
        new RegExp(`^f: the format is not known; expected one of ${known}$`)
      ],
      [
        "a session with no message",
        "{\"type\":\"session_meta\",\"payload\":{}}\n{\"type\":\"event_msg\",\"payload\":{}}",
        /^f: no message of the format codex in the file$/
      ]
    ]
    for (const [name, text, expected] of cases) {
      it(name, () => assert.match(messageOf(Format.fromString(text, { file: "f" })), expected))
    }
    it("a named format is taken at its word", () => {
      const read = Format.fromString("{\"a\":1}\n{\"a\":2}", { file: "f", format: "amplifier" })
      assert.strictEqual(messageOf(read), "f:1: role: expected a string, got nothing")
      const document = Format.fromString("[]", { file: "f", format: "claude-code" })
      assert.strictEqual(messageOf(document), "f: expected an object, got an array")
    })
  })

  describe("lines or a document", () => {
    const reads = (name: string, text: string, expected: ReadonlyArray<string>, found: ReadonlyArray<string> = []) =>
      it(name, () => {
        const session = Result.getOrThrow(Format.fromString(text, { file: "f" }))
        assert.deepStrictEqual(outline(session), expected)
        assert.deepStrictEqual(kinds(session), found)
      })
    reads("one record alone is read as lines where no document is like it", record("a", "hi"), ["user hi"])
    reads("a torn first line", `{"parentUuid":null,"type":"us\n${record("a", "hi")}\n${record("b", "ho", "a")}`, [
      "user hi",
      "user ho"
    ], ["1 torn-line"])
    reads("a torn first line before a single one", `{"parentUuid":null,"type":"us\n${record("a", "hi")}`, ["user hi"], [
      "1 torn-line"
    ])
    reads("one line of two records", `${record("a", "hi")}${record("b", "ho", "a")}`, ["user hi", "user ho"], [
      "1 torn-line"
    ])
    reads(
      "half a record before a whole one, and half a record last",
      [
        record("a", "hi"),
        record("x", "lost {\"parentUuid\":1} \\\"").slice(0, 90) + record("b", "ho", "a"),
        record("c", "cut").slice(0, -9)
      ].join("\n"),
      ["user hi", "user ho"],
      ["2 torn-line", "3 torn-line"]
    )
  })

  describe("torn lines", () => {
    const keys = new Set(["parentUuid"])
    const whole = "{\"parentUuid\":\"}{\",\"a\":[{}]}"
    const cases: ReadonlyArray<readonly [name: string, line: string, records: number, lost: number]> = [
      ["together", whole + whole, 2, 0],
      ["together, with blanks between", `${whole}  ${whole} `, 2, 2],
      ["half before a whole one", `{"parentUuid":"x${whole}`, 1, 16],
      ["a whole one before half", `${whole}{"parentUuid":`, 1, 14],
      ["an object inside half a record is no record", "{\"parentUuid\":1,\"m\":{\"role\":\"user\"},", 0, 36],
      ["a quote that is escaped ends no text", "{\"parentUuid\":\"a\\\"}\\\\\"}{\"parentUuid\":\"b\\\"{\"}", 2, 0],
      ["a backslash that is escaped escapes nothing", "{\"parentUuid\":\"\\\\\"}{\"parentUuid\":1}", 2, 0],
      ["garbage", "}}]]\"\"", 0, 6]
    ]
    for (const [name, line, records, lost] of cases) {
      it(name, () => {
        const found = JsonLines.recover(line, keys)
        assert.deepStrictEqual([found.values.length, found.lost], [records, lost])
      })
    }
    // Counted, not timed: each broken start is read to the end of the line, and only so many of them are tried.
    for (const starts of [1, JsonLines.maxFailedStarts, 4 * JsonLines.maxFailedStarts]) {
      it(`${starts} broken starts cost at most ${JsonLines.maxFailedStarts} readings of the line and one`, () => {
        const line = "{\"parentUuid\":".repeat(starts)
        const found = JsonLines.recover(line, keys)
        assert.strictEqual(found.values.length, 0)
        assert.isAtMost(found.scanned, (JsonLines.maxFailedStarts + 1) * line.length)
      })
    }
    it("records that run together are read once each", () => {
      const line = whole.repeat(50)
      const found = JsonLines.recover(line, keys)
      assert.strictEqual(found.values.length, 50)
      assert.strictEqual(found.scanned, line.length)
    })
  })

  it("finds where text stops being JSON", () => {
    const cases: ReadonlyArray<readonly [text: string, at: number]> = [
      ["", 0],
      ["{\"a\": [1, -2.5e3, \"x\\n\\u00e9\", {}, [], true, null]", 50],
      ["{\"a\" 1}", 5],
      ["{\"a\":1,}", 7],
      ["[1,]", 3],
      ["[1}", 2],
      ["{a:1}", 1],
      ["\"\\x\"", 1],
      ["\"a\nb\"", 2],
      ["01", 1],
      ["{} {}", 3],
      ["[tru]", 1]
    ]
    for (const [text, at] of cases) {
      assert.isFalse(isJson(text))
      assert.strictEqual(errorAt(text), at, text)
    }
  })

  it("cuts lines at line feeds alone", () => {
    const lines: Array<string> = []
    const input = JsonLines.lines()
    const take = (line: string) => lines.push(line)
    for (const piece of ["a\u2028", "b\r", "\n\n", "c\rd", "\ne"]) JsonLines.push(input, piece, take)
    JsonLines.finish(input, take)
    assert.deepStrictEqual(lines, ["a\u2028b", "", "c\rd", "e"])
  })

  // A line is cut, torn, run together with another, or one of its values is of a wrong type. Whatever happens to it, the
  // answer is a session or a `FormatError` that names the file; a line that is no JSON any more is in the findings.
  describe("damaged lines", () => {
    const files = [
      ...["claude-code.jsonl", "codex.jsonl", "amplifier.jsonl"].map(fixture),
      ...[
        "claude-code/opus45-3-compactions.jsonl",
        "claude-code/opus45-image-compaction-orphan.jsonl",
        "claude-code/opus48-parallel-calls.jsonl",
        "codex/gpt54-591-calls-2-compactions.jsonl",
        "codex/gpt55-543-calls-compaction-item.jsonl",
        "amplifier/real-opus48-transcript.jsonl"
      ].map(recorded).filter((file) => existsSync(file))
    ]
    const random = randomOf(20_260_731)
    const pick = (n: number) => Math.floor(random() * n)
    const all = files.map((file) => readFileSync(file, "utf8").trimEnd().split("\n"))
    const damage: ReadonlyArray<readonly [name: string, apply: (line: string, other: string) => string]> = [
      ["cut", (line) => line.slice(0, pick(line.length))],
      ["beheaded", (line) => line.slice(pick(line.length))],
      ["two characters swapped", (line) => {
        const [a, b] = [pick(line.length), pick(line.length)].toSorted((x, y) => x - y) as [number, number]
        return line.slice(0, a) + line.charAt(b) + line.slice(a + 1, b) + line.charAt(a) + line.slice(b + 1)
      }],
      ["run together", (line, other) => line + other],
      ["half before another", (line, other) => line.slice(0, pick(line.length)) + other],
      ["wrong type", (line) => replaceOne(line, pick)]
    ]
    for (const [name, apply] of damage) {
      it(`${name}: 334 lines`, () => {
        const outcomes = { read: 0, failed: 0 }
        for (let i = 0; i < 334; i++) {
          const lines = all[i % all.length]!
          const line = lines[pick(lines.length)]!
          const other = lines[pick(lines.length)]!
          const damaged = apply(line, other)
          const before = lines.slice(0, 5)
          const text = [...before, damaged, ...lines.slice(5, 9)].join("\n")
          const read = Format.fromString(text, { file: "damaged.jsonl" })
          if (Result.isFailure(read)) {
            outcomes.failed++
            assert.strictEqual(read.failure._tag, "FormatError")
            assert.strictEqual(read.failure.file, "damaged.jsonl")
            assert.isAbove(read.failure.expected.length, 0)
          } else {
            outcomes.read++
            assert.isAbove(read.success.messages.length, 0)
            const torn = read.success.findings.some(({ kind, line }) =>
              kind === "torn-line" && line === before.length + 1
            )
            if (damaged.trim() !== "") assert.strictEqual(torn, !isJson(damaged))
          }
        }
        assert.isAbove(outcomes.read, 0)
        if (name === "wrong type") assert.isAbove(outcomes.failed, 0)
      })
    }
  })
})

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Numbers from 0 up to 1 that are the same in every run (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Puts a value of another type in the place of one value of a record. */
function replaceOne(line: string, pick: (n: number) => number): string {
  const root: unknown = isJson(line) ? JSON.parse(line) : {}
  const places: Array<readonly [parent: { [key: string]: unknown }, key: string]> = []
  const walk = (value: unknown) => {
    if (typeof value !== "object" || value === null) return
    for (const key of Object.keys(value)) {
      // Every object and array can be read by key here.
      const parent = value as { [key: string]: unknown }
      places.push([parent, key])
      walk(parent[key])
    }
  }
  walk(root)
  const place = places[pick(places.length)]
  if (place === undefined) return line
  const [parent, key] = place
  const others = [5, "text", null, true, [], {}, [5], { type: 5 }, -1].filter((value) =>
    typeof value !== typeof parent[key]
  )
  parent[key] = others[pick(others.length)]
  return JSON.stringify(root)
}
