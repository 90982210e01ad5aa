import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import * as Program from "./program.ts"
import * as Report from "./report.ts"
import { openAiChat } from "./sessions.ts"

const version: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version

let program: Program.Program
beforeAll(async () => {
  program = await Program.make()
  program.write("good.json", openAiChat({ count: 40, characters: 2_000 }))
  program.write("heavy.json", openAiChat({ count: 3, characters: 100, system: 200_000 }))
})
afterAll(() => program.remove())

const escape = "\u001b"

describe("exit codes and messages", () => {
  const user = { role: "user", content: "Why does the build fail?" }
  const lines = (...records: ReadonlyArray<unknown>) =>
    records.map((record) => typeof record === "string" ? record : JSON.stringify(record)).join("\n")
  const claude = { type: "user", uuid: "u1", parentUuid: null, sessionId: "s1", message: user }

  const files: { readonly [name: string]: string } = {
    "empty.jsonl": "",
    "blank.jsonl": "\n\n",
    "document.json": "{\n  \"messages\": [\n    {\"role\": \"user\" \"content\": 1}\n  ]\n}\n",
    "role.json": JSON.stringify({ messages: [user, { role: "wizard", content: "?" }] }),
    "number.json": JSON.stringify({ messages: [user, { role: "assistant", content: 7 }] }),
    "line.jsonl": lines(claude, {
      ...claude,
      uuid: "u2",
      parentUuid: "u1",
      message: { role: "user", content: [{ type: "text", text: 7 }] }
    }),
    "small.json": openAiChat({ count: 40, characters: 100 }),
    "other.json": JSON.stringify({ recipe: "soup" })
  }
  const good = "good.json"

  const cases: ReadonlyArray<{
    readonly name: string
    readonly args: ReadonlyArray<string>
    readonly code: number
    /** What standard error must be, or contain. */
    readonly says: string | RegExp
  }> = [
    { name: "a good file", args: ["replay", good], code: 0, says: "" },
    { name: "no such file", args: ["replay", "nowhere.json"], code: 1, says: "nowhere.json: no such file\n" },
    {
      name: "a directory",
      args: ["replay", "."],
      code: 1,
      says: ".: not readable: expected a file, not a directory or a device\n"
    },
    { name: "an empty file", args: ["replay", "empty.jsonl"], code: 1, says: "empty.jsonl: the file is empty\n" },
    { name: "a blank file", args: ["replay", "blank.jsonl"], code: 1, says: "blank.jsonl: the file is empty\n" },
    {
      name: "wrong JSON",
      args: ["replay", "document.json"],
      code: 1,
      says: /^document\.json:3: expected JSON at column \d+\n$/
    },
    {
      name: "an unknown role",
      args: ["replay", "role.json"],
      code: 1,
      says: /^role\.json: messages\[1\]\.role: unknown role "wizard", expected .*\n$/
    },
    {
      name: "a number where a string belongs",
      args: ["replay", "number.json"],
      code: 1,
      says: /^number\.json: messages\[1\]\.content: expected .*\n$/
    },
    {
      name: "a number in a line",
      args: ["replay", "line.jsonl"],
      code: 1,
      says: /^line\.jsonl:2: message\.content\[0\]\.text: expected .*\n$/
    },
    {
      name: "no known format",
      args: ["inspect", "other.json"],
      code: 1,
      says: /^other\.json: the format is not known; expected one of /
    },
    {
      name: "another format than the one named",
      args: ["replay", "--format", "codex", good],
      code: 1,
      says: /^good\.json:?1?: /
    },
    {
      name: "a window of 0",
      args: ["replay", "--window", "0", good],
      code: 1,
      says: "--window 0: window: write the context window of the model in tokens, for example 200000\n"
    },
    {
      name: "a negative window",
      args: ["replay", "--window", "-5", good],
      code: 1,
      says: "--window -5: window: write the context window of the model in tokens, for example 200000\n"
    },
    { name: "a small window", args: ["compact", "--window=8000", "--to", "prompt", good], code: 0, says: "" },
    { name: "a tiny window", args: ["replay", "--window", "1000", "small.json"], code: 0, says: "" },
    {
      name: "a small window under every preset",
      args: ["compare", "--window", "2000", "small.json"],
      code: 0,
      says: ""
    },
    {
      name: "several settings at once",
      args: ["replay", "--threshold", "3", "--budget-by-tool", "grep=-1", good],
      code: 1,
      says: "--threshold 3: compactThreshold: write a ratio above 0 and up to 1, for example 0.95\n"
        + "--budget-by-tool grep=-1: budgetByTool.grep: write a number of tokens, 0 or more, for example 2000\n"
    },
    {
      name: "settings that contradict each other",
      args: ["replay", "--target", "0.96", good],
      code: 1,
      says: /^--target 0\.96: targetUsage: write a ratio below compactThreshold \(0\.95\)/
    },
    {
      name: "an unknown flag",
      args: ["replay", "--windw", "1", good],
      code: 2,
      says: /Unrecognized flag: --windw[^]*--window/
    },
    { name: "no file", args: ["replay"], code: 2, says: /Missing required argument: file/ },
    { name: "an unknown command", args: ["repaly", good], code: 2, says: /Unknown subcommand "repaly"[^]*replay/ },
    { name: "a word for a number", args: ["replay", "--window", "many", good], code: 2, says: /--window: "many"/ },
    { name: "an unknown format", args: ["replay", "--format", "telex", good], code: 2, says: /--format: "telex"/ },
    { name: "no target format", args: ["compact", good], code: 2, says: /Missing required flag: --to/ },
    {
      name: "a pair without a number",
      args: ["replay", "--budget-by-tool", "grep=many", good],
      code: 2,
      says: /write TOOL=TOKENS, for example Bash=2000/
    },
    { name: "infeasible, not strict", args: ["replay", "--window", "32000", "heavy.json"], code: 0, says: "" },
    { name: "infeasible, strict", args: ["replay", "--strict", "--window", "32000", "heavy.json"], code: 3, says: "" },
    {
      name: "an infeasible view, strict",
      args: ["compact", "--strict", "--to", "prompt", "--window", "32000", "heavy.json"],
      code: 3,
      says: /^infeasible: \d+ tokens over the budget, held by entry 0 \(50\d\d\d tokens\)/
    },
    {
      name: "an infeasible view that fails the request",
      args: ["compact", "--when-infeasible", "fail", "--to", "prompt", "--window", "32000", "heavy.json"],
      code: 3,
      says: /^The smallest view that keeps what must be kept is \d+ tokens above the budget/
    },
    {
      name: "bad input beside something infeasible",
      args: ["replay", "--strict", "--window", "32000", "nowhere.json", "heavy.json"],
      code: 1,
      says: "nowhere.json: no such file\n"
    }
  ]

  beforeAll(() => {
    for (const [name, text] of Object.entries(files)) program.write(name, text)
  })

  for (const { args, code, name, says } of cases) {
    it(`${code}: ${name}`, async () => {
      const ended = await program.run(args)
      assert.strictEqual(ended.code, code, ended.stderr)
      if (typeof says === "string") assert.strictEqual(ended.stderr, says)
      else assert.match(ended.stderr, says)
      // No line of a stack trace, and nothing on standard output where nothing was made.
      assert.notMatch(ended.stderr + ended.stdout, /^\s+at .*[:(]/m)
      if (code === 2) assert.strictEqual(ended.stdout, "")
    })
  }
})

describe("replay", () => {
  it("prints one object a file, a line each, and goes on after a bad file", async () => {
    const { code, stderr, stdout } = await program.run([
      "replay",
      "--json",
      "--window",
      "32000",
      "--policy",
      "contextSimple",
      "good.json",
      "nowhere.json",
      "heavy.json"
    ])
    assert.strictEqual(code, 1)
    assert.strictEqual(stderr, "nowhere.json: no such file\n")
    const reports = stdout.trimEnd().split("\n").map((line) => Report.decode(line))
    assert.deepStrictEqual(reports.map(({ file }) => file), ["good.json", "heavy.json"])
    const [good, heavy] = reports
    assert.deepStrictEqual(
      { ...good, rows: good!.rows.length, totals: 0 },
      {
        file: "good.json",
        format: "openai-chat",
        messages: 83,
        requests: 41,
        window: 32_000,
        budget: 23_008,
        policy: "contextSimple",
        rows: 41,
        totals: 0
      }
    )
    assert.isAbove(good!.totals.boundaries, 0)
    assert.strictEqual(good!.totals.infeasible, 0)
    assert.strictEqual(heavy!.totals.infeasible, 4)
  })

  it("reads standard input", async () => {
    const { code, stdout } = await program.run(["replay", "--json", "-"], {
      stdin: openAiChat({ count: 2, characters: 50 })
    })
    assert.strictEqual(code, 0)
    assert.strictEqual(Report.decode(stdout).file, "standard input")
    const bad = await program.run(["replay", "-"], { stdin: "{\"messages\": [" })
    assert.strictEqual(bad.code, 1)
    assert.strictEqual(bad.stderr, "standard input:1: expected more JSON, the text ends\n")
  })

  it("reads one conversation of a file of many, and says how to name it", async () => {
    const traj = [{ role: "user", content: "hi" }, { role: "assistant", content: "ho" }]
    program.write("pool.json", JSON.stringify([{ task_id: 0, traj }, { task_id: 1, traj }]))
    const { code, stdout } = await program.run(["replay", "--json", "pool.json#1"])
    assert.strictEqual(code, 0)
    assert.strictEqual(Report.decode(stdout).file, "pool.json#1")
    const whole = await program.run(["replay", "pool.json"])
    assert.strictEqual(whole.code, 1)
    assert.strictEqual(
      whole.stderr,
      "pool.json: the file holds 2 conversations; name one of them, from pool.json#0 to pool.json#1\n"
    )
  })

  it("is a table without colour on a pipe", async () => {
    const { stdout } = await program.run(["replay", "--policy", "contextSimple", "--window", "32000", "good.json"])
    assert.notInclude(stdout, escape)
    assert.include(
      stdout,
      "window 32,000 − 0.5 × max-output 8,192 − 4,096 → budget 23,808 tokens (from the window) − notice reserve 800 = 23,008"
    )
    assert.include(stdout, "trigger 21,168 (0.92), target 11,504 (0.5)")
    assert.include(stdout, "protected: the newest 5 tool results, the last 30% of the conversation")
    assert.match(stdout, /^request +level +before → after +freed +removed +truncated +stubbed .* why$/m)
    assert.match(stdout, /^ +\d+ +\d \S+ +21,\d{3} → \d+,\d{3} .* 5 of \d+ +\d+ of \d+ +count 21,\d{3}, aimed at/m)
  })

  it("colours what is asked to be coloured, unless NO_COLOR is set", async () => {
    const args = ["replay", "--window", "32000", "heavy.json"]
    const coloured = await program.run(args, { env: { FORCE_COLOR: "1" } })
    assert.include(coloured.stdout, `${escape}[31m`)
    const plain = await program.run(args, { env: { FORCE_COLOR: "1", NO_COLOR: "1" } })
    assert.notInclude(plain.stdout, escape)
  })

  it("keeps warnings of the library off standard output", async () => {
    const { stderr, stdout } = await program.run([
      "replay",
      "--json",
      "--policy",
      "contextSimpleHybrid",
      "--window",
      "24000",
      "good.json"
    ])
    Report.decode(stdout)
    assert.include(stderr, "compacting on an estimate")
  })
})

describe("inspect and compact", () => {
  it("inspect says what a session holds", async () => {
    const { code, stdout } = await program.run(["inspect", "good.json"])
    assert.strictEqual(code, 0)
    assert.match(stdout, /^format +openai-chat: /m)
    assert.match(stdout, /^messages +83: 1 system, 1 user \(1 human\), 41 assistant, 40 tool$/m)
    assert.match(stdout, /^results +40 \(0 failed\): 2\d,\d{3} tokens, 9\d% of all; 80,\d{3} characters, 9\d% of all$/m)
    assert.match(stdout, /^ +grep +40 +80,\d{3} +2\d,\d{3}$/m)
  })

  it("compact prints a view that can be read again and fits", async () => {
    for (const to of ["openai-chat", "openai-responses", "anthropic-messages", "prompt"]) {
      const { code, stdout } = await program.run(["compact", "--window", "16000", "--to", to, "good.json"])
      assert.strictEqual(code, 0)
      const { stdout: report } = await program.run(["inspect", "--json", "-"], { stdin: stdout })
      const inspection = JSON.parse(report)
      assert.strictEqual(inspection.format, to)
      assert.isBelow(inspection.tokens, 16_000 - 8_192)
      assert.isAbove(inspection.messages, 5)
      assert.deepStrictEqual(inspection.violations.anthropic, {})
    }
  })

  it("compact --json holds the view and what is to be known about it", async () => {
    const { stdout } = await program.run(["compact", "--json", "--window", "16000", "--to", "openai-chat", "good.json"])
    const { body, boundary, losses, ...rest } = JSON.parse(stdout)
    assert.isArray(body.messages)
    assert.isAbove(boundary.freed, 0)
    assert.deepStrictEqual(losses, [])
    assert.deepStrictEqual(
      { ...rest, count: 0 },
      {
        file: "good.json",
        format: "openai-chat",
        to: "openai-chat",
        messages: 83,
        window: 16_000,
        budget: 7_008,
        count: 0,
        viewMessages: body.messages.length,
        infeasible: null
      }
    )
    assert.isAtMost(rest.count, 7_808)
  })

  it("compact says on standard error what the target cannot hold", async () => {
    const body = {
      model: "claude-opus-4-5",
      messages: [
        { role: "user", content: "Look." },
        { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "grep", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "no such file", is_error: true }] }
      ]
    }
    const { code, stderr, stdout } = await program.run(["compact", "--to", "openai-chat", "-"], {
      stdin: JSON.stringify(body)
    })
    assert.strictEqual(code, 0)
    assert.match(stderr, /^lost: failure-flag: messages\[2\]\.content\[0\]: [^\n]*\n$/)
    assert.strictEqual(JSON.parse(stdout).messages.length, 3)
  })
})

describe("an item that only one API has", () => {
  const body = JSON.stringify({
    model: "m",
    input: [
      { role: "user", content: "go" },
      { type: "compaction", id: "c", encrypted_content: "KEEPME" },
      { role: "user", content: "y" },
      { role: "assistant", content: "done" }
    ]
  })
  const run = (...args: ReadonlyArray<string>) => program.run([...args, "-"], { stdin: body })

  it("goes to the API that has it as it came, and is said to be lost elsewhere", async () => {
    const held = await run("compact", "--to", "openai-responses")
    assert.deepStrictEqual(JSON.parse(held.stdout).input[1], {
      type: "compaction",
      id: "c",
      encrypted_content: "KEEPME"
    })
    assert.strictEqual(held.stderr, "")
    assert.include((await run("compact", "--to", "prompt")).stdout, "KEEPME")
    for (const to of ["openai-chat", "anthropic-messages"]) {
      const { stderr, stdout } = await run("compact", "--to", to)
      assert.match(stderr, /^lost: opaque-item: messages\[1\]\.content\[0\]: [^\n]*\(compaction\)\n$/)
      assert.notInclude(stdout, "KEEPME")
      assert.include(stdout, "[left out: compaction]")
    }
  })

  it("is named by inspect and by replay, with its place", async () => {
    const line = /^ {2}(openai-chat|anthropic-messages): opaque-item 1: [^\n]*\(compaction\); message 1$/gm
    for (const command of ["inspect", "replay"]) {
      const { stdout } = await run(command)
      assert.strictEqual(stdout.match(line)?.length, 2, stdout)
      const { unheld } = JSON.parse((await run(command, "--json")).stdout)
      assert.deepStrictEqual(unheld["openai-responses"], [])
      assert.deepStrictEqual(unheld["openai-chat"].map(({ kind, messages }: typeof unheld) => [kind, messages]), [
        ["opaque-item", [1]]
      ])
    }
  })
})

describe("help, version, completions", () => {
  it("--version is that of the package", async () => {
    const { code, stdout } = await program.run(["--version"])
    assert.strictEqual(code, 0)
    assert.strictEqual(stdout, `effect-compaction v${String(version)}\n`)
  })

  it("help is no failure, and has no colour on a pipe", async () => {
    for (const args of [[], ["--help"], ["replay", "--help"], ["inspect", "--help"], ["compact", "--help"]]) {
      const { code, stderr, stdout } = await program.run(args)
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, "")
      assert.include(stdout, "USAGE\n  effect-compaction")
      assert.notInclude(stdout, escape)
    }
  })

  it("prints completions for each shell", async () => {
    for (const shell of ["bash", "zsh", "fish", "powershell"]) {
      const { code, stdout } = await program.run(["--completions", shell])
      assert.strictEqual(code, 0)
      assert.include(stdout, "protected-recent")
    }
  })
})
