import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Policy from "effect-compaction/Policy"
import * as Schema from "effect/Schema"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"
import { openAiChat } from "./sessions.ts"

/** Keeps each request beside it, and looks for the statements: outdated where only what a fact corrects is in the view. */
const judge = `
import { appendFileSync, readFileSync } from "node:fs"
const text = readFileSync(0, "utf8")
appendFileSync("asked.jsonl", text + "\\n")
const { facts, view } = JSON.parse(text)
const verdict = ({ corrects, statement }) =>
  view.includes(statement) ? "kept" : corrects !== undefined && view.includes(corrects) ? "stale" : "lost"
console.log(JSON.stringify(Object.fromEntries(facts.map((fact) => [fact.id, verdict(fact)]))))
`

let program: Program.Program
beforeAll(async () => {
  program = await Program.make()
  program.write("long.json", openAiChat({ count: 60, characters: 2_000 }))
  program.write("short.json", openAiChat({ count: 3, characters: 200 }))
  program.write("heavy.json", openAiChat({ count: 3, characters: 100, system: 200_000 }))
  program.write("torn.json", "{\"messages\": [")
  program.write("judge.mjs", judge)
  program.write("ours.json", JSON.stringify({ ladder: [{ _tag: "remove", relax: 1 }], summary: {} }))
})
afterAll(() => program.remove())

const Totals = Schema.Struct({
  cost: Schema.Finite,
  boundaries: Schema.Natural,
  cacheRead: Schema.Natural,
  cacheWrite: Schema.Natural,
  fresh: Schema.Natural,
  output: Schema.Natural,
  waste: Schema.Natural,
  cacheReadShare: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
  retained: Schema.NullOr(Schema.Finite),
  judged: Schema.NullOr(Schema.Finite),
  words: Schema.NullOr(Schema.Finite),
  violations: Schema.Natural
})

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({
  file: Schema.String,
  window: Schema.NullOr(Schema.Natural),
  requests: Schema.Natural,
  policies: Schema.Array(Schema.Struct({
    policy: Schema.String,
    rows: Schema.Array(Schema.Struct({
      request: Schema.Natural,
      cost: Schema.Finite,
      cached: Schema.Natural,
      written: Schema.Natural,
      fresh: Schema.Natural,
      summaryCost: Schema.Finite,
      boundary: Schema.NullOr(Schema.Struct({ freed: Schema.Int })),
      retention: Schema.NullOr(Schema.Struct({ known: Schema.Natural, verbatim: Schema.Natural }))
    })),
    totals: Totals,
    kept: Schema.optionalKey(Schema.Struct({ policy: Schema.Struct({ viewTokens: Schema.Finite }) }))
  }))
})))

const compare = (...args: ReadonlyArray<string>) => program.run(["compare", ...args])

const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")

describe("compare", () => {
  const two = ["--policy", "contextSimple", "--policy", "none"]
  const tight = ["--max-tokens", "12000"]

  it("prints a line of totals for each policy", async () => {
    const { code, stderr, stdout } = await compare("long.json", ...tight, ...two)
    assert.strictEqual(code, 0, stderr)
    const [title, heading, simple, none, ...rest] = lines(stdout)
    assert.strictEqual(title, "long.json, 61 requests")
    assert.match(heading!, /^policy +cost +boundaries +cache read /)
    assert.notInclude(heading!, "retained")
    assert.match(simple!, /^contextSimple +\$\d/)
    assert.match(none!, /^none +\$\d/)
    assert.deepStrictEqual(rest, [])
  })

  it("prints one object a file as JSON, whose totals are those of its rows", async () => {
    const { code, stdout } = await compare("long.json", "short.json", "--json", ...tight, ...two)
    assert.strictEqual(code, 0)
    const [long, short] = lines(stdout).map((line) => decode(line))
    assert.deepStrictEqual([long!.file, long!.window, long!.requests], ["long.json", null, 61])
    assert.strictEqual(short!.file, "short.json")
    assert.deepStrictEqual(long!.policies.map(({ policy }) => policy), ["contextSimple", "none"])
    for (const { rows, totals } of long!.policies) {
      assert.strictEqual(rows.length, long!.requests)
      const sum = (value: (row: typeof rows[number]) => number) => rows.reduce((all, row) => all + value(row), 0)
      assert.strictEqual(totals.cacheRead, sum((row) => row.cached))
      assert.strictEqual(totals.cacheWrite, sum((row) => row.written))
      assert.closeTo(totals.cost, sum((row) => row.cost + row.summaryCost), 1e-9)
      assert.strictEqual(totals.retained, null)
      assert.strictEqual(totals.violations, 0)
    }
    const [simple, none] = long!.policies
    assert.isAbove(simple!.totals.boundaries, 0)
    assert.strictEqual(none!.totals.boundaries, 0)
    assert.isBelow(simple!.totals.cacheRead, none!.totals.cacheRead)
    assert.strictEqual(short!.policies[0]!.totals.boundaries, 0)
  })

  it("compares all presets when no policy is named", async () => {
    const { stdout } = await compare("short.json", "--json")
    assert.deepStrictEqual(decode(stdout).policies.map(({ policy }) => policy), Object.keys(Policy.presets))
  })

  it("says what is retained where facts are planted", async () => {
    const { stdout } = await compare("long.json", "--json", "--probes", "16", ...tight, ...two)
    const [simple, none] = decode(stdout).policies
    assert.strictEqual(none!.totals.retained, 1)
    assert.isBelow(simple!.totals.retained!, 1)
    assert.isAbove(simple!.totals.retained!, 0)
  })

  it("says what the recording used again is in view, beside two controls, and which words of people are whole", async () => {
    const { stdout } = await compare("long.json", "--reuse", ...tight, ...two)
    const [, heading, simple, none] = lines(stdout)
    assert.match(heading!, / words +over budget /)
    assert.match(none!, / 100\.0% +\d/)
    assert.match(simple!, / \d+\.\d% /)
    const json = await compare("long.json", "--reuse", "--json", ...tight, ...two)
    const [limited, whole] = decode(json.stdout).policies
    assert.strictEqual(whole!.totals.words, 1)
    assert.isAtMost(limited!.totals.words!, 1)
    assert.isAtLeast(whole!.kept!.policy.viewTokens, limited!.kept!.policy.viewTokens)
    const without = decode((await compare("long.json", "--json", ...tight, ...two)).stdout).policies[0]!
    assert.deepStrictEqual([without.totals.words, without.kept], [null, undefined])
  })

  it("bills by the cache and the price that are named", async () => {
    const costs = async (...args: ReadonlyArray<string>) =>
      decode((await compare("long.json", "--json", "--policy", "none", ...args)).stdout).policies[0]!.totals
    const cold = await costs("--cache", "none")
    assert.strictEqual(cold.cacheRead, 0)
    assert.isAbove(cold.cost, (await costs()).cost * 2)
    assert.closeTo((await costs("--price", "claude-haiku-4-5")).cost * 5, (await costs()).cost, 1e-6)
    assert.strictEqual((await costs("--cache", "openai")).cacheRead % 128, 0)
  })

  it("bills the summaries of a policy that has them, unless there is no summarizer", async () => {
    const summaries = async (...args: ReadonlyArray<string>) => {
      const { stdout } = await compare("long.json", "--json", ...tight, "--policy", "ours.json", ...args)
      return decode(stdout).policies[0]!.rows.reduce((sum, row) => sum + row.summaryCost, 0)
    }
    assert.isAbove(await summaries(), 0)
    assert.strictEqual(await summaries("--summarizer", "none"), 0)
  })

  describe("--judge", () => {
    const judged = (...args: ReadonlyArray<string>) => compare("long.json", "--probes", "16", ...tight, ...args)
    const Request = Schema.fromJsonString(Schema.Struct({
      facts: Schema.Array(Schema.Struct({
        id: Schema.String,
        statement: Schema.String,
        corrects: Schema.optionalKey(Schema.String)
      })),
      view: Schema.String
    }))

    it("asks a command once for each policy about its last view, and reports the share that is kept", async () => {
      const { code, stderr, stdout } = await judged("--json", ...two, "--judge", "command:node judge.mjs")
      assert.strictEqual(code, 0, stderr)
      const { policies } = decode(stdout)
      const asked = lines(readFileSync(join(program.folder, "asked.jsonl"), "utf8")).map((line) =>
        Schema.decodeSync(Request)(line)
      )
      assert.strictEqual(asked.length, 2)
      policies.forEach(({ rows, totals }, at) => {
        const { known, verbatim } = rows.at(-1)!.retention!
        assert.strictEqual(asked[at]!.facts.length, known)
        assert.strictEqual(totals.judged, verbatim / known)
      })
      const [simple, none] = policies
      assert.isBelow(simple!.totals.judged!, 1)
      assert.strictEqual(none!.totals.judged, 1)
      const [first] = asked
      assert.deepStrictEqual(asked.map(({ facts }) => facts), [first!.facts, first!.facts])
      // A corrected statement is no fact of its own any more: it stands with its correction.
      const corrections = first!.facts.filter(({ corrects }) => corrects !== undefined)
      assert.isAbove(corrections.length, 0)
      for (const { corrects } of corrections) {
        assert.isFalse(first!.facts.some(({ statement }) => statement === corrects))
      }
      assert.isAbove(asked[1]!.view.length, first!.view.length)
      assert.match(first!.view, /^\[(?:system|user)\]\n/)
    })

    it("is a column of the table, and what is outdated is not kept", async () => {
      const answer = (verdict: string) =>
        `command:sed 's/"id":"\\([0-9]*\\)"/\\n"\\1": "${verdict}"\\n/g'`
        + " | grep '^\"[0-9]*\": ' | paste -s -d, - | sed 's/^/{/; s/$/}/'"
      for (const [verdict, share] of [["kept", "100.0%"], ["stale", "0.0%"], ["lost", "0.0%"]] as const) {
        const { code, stderr, stdout } = await judged("--policy", "none", "--judge", answer(verdict))
        assert.strictEqual(code, 0, stderr)
        const [, heading, none] = lines(stdout)
        assert.match(heading!, / retained +judged +summaries /)
        assert.match(none!, new RegExp(` 100\\.0% +${share.replace(".", "\\.")} `))
      }
    })

    it("does not read what fills up a summary", async () => {
      const { code } = await judged("--policy", "ours.json", "--judge", "command:tee filled.json | node judge.mjs")
      assert.strictEqual(code, 0)
      const { view } = Schema.decodeSync(Request)(readFileSync(join(program.folder, "filled.json"), "utf8"))
      assert.notInclude(view, "·")
    })

    const failures: ReadonlyArray<readonly [string, string, RegExp]> = [
      [
        "ends with another exit code than 0",
        "echo no >&2; echo luck >&2; exit 3",
        / ended with exit code 3: no luck\n$/
      ],
      ["does not exist", "no-such-command-here", / ended with exit code 127/],
      ["prints no JSON", "cat > /dev/null; echo kept", / printed a wrong answer: .*JSON/],
      ["leaves a fact out", "cat > /dev/null; echo {}", / printed a wrong answer: .*\["0"\]/],
      [
        "says another word",
        "node judge.mjs | sed 's/\"0\":\"[a-z]*\"/\"0\":\"maybe\"/'",
        / printed a wrong answer: .*\["0"\]/
      ],
      [
        "answers for what is no fact",
        "node judge.mjs | sed 's/{/{\"x\":\"kept\",/'",
        / printed a wrong answer: .*\["x"\]/
      ]
    ]
    for (const [name, command, says] of failures) {
      it(`ends with 1 for a judge that ${name}`, async () => {
        const { code, stderr, stdout } = await judged("--policy", "none", "--judge", `command:${command}`)
        assert.deepStrictEqual([code, stdout], [1, ""])
        assert.isTrue(stderr.startsWith("long.json: --judge, asked about none: "), stderr)
        assert.strictEqual(lines(stderr).length, 1)
        assert.match(stderr, says)
      })
    }
  })

  const cases: ReadonlyArray<{
    readonly name: string
    readonly args: ReadonlyArray<string>
    readonly code: number
    readonly says: RegExp
  }> = [
    { name: "a window", args: ["--window", "32000", "short.json"], code: 0, says: /^$/ },
    { name: "no file", args: [], code: 2, says: /file/ },
    { name: "an unknown cache", args: ["--cache", "warm", "short.json"], code: 2, says: /warm/ },
    { name: "an unknown price", args: ["--price", "free", "short.json"], code: 2, says: /free/ },
    { name: "fewer than no probes", args: ["--probes=-1", "short.json"], code: 2, says: /how many facts/ },
    {
      name: "a judge that is no command",
      args: ["--judge", "model", "--probes", "4", "short.json"],
      code: 2,
      says: /write command: and a command, .*; not model/
    },
    {
      name: "a judge without facts",
      args: ["--judge", "command:cat", "short.json"],
      code: 2,
      says: /^--judge needs --probes /
    },
    {
      name: "an unknown policy",
      args: ["--policy", "best", "short.json"],
      code: 1,
      says: /^--policy best: write one of /
    },
    { name: "a window of 0", args: ["--window", "0", "short.json"], code: 1, says: /^--window 0: window: / },
    { name: "no such session", args: ["nowhere.json"], code: 1, says: /^nowhere\.json: no such file\n$/ },
    {
      name: "a bad session beside a good one",
      args: ["torn.json", "short.json", "--policy", "none"],
      code: 1,
      says: /^torn\.json:1: /
    },
    {
      name: "an infeasible request",
      args: ["--strict", "--window", "32000", "--policy", "contextSimple", "heavy.json"],
      code: 3,
      says: /^$/
    },
    {
      name: "a report that cannot be written",
      args: ["--html", "no/such/folder/report.html", "--policy", "none", "short.json"],
      code: 1,
      says: /^no\/such\/folder\/report\.html: it could not be written: there is no such directory\n$/
    }
  ]
  for (const { args, code, name, says } of cases) {
    it(`ends with ${code} for ${name}`, async () => {
      const ended = await compare(...args)
      assert.strictEqual(ended.code, code, ended.stderr)
      assert.match(ended.stderr, says)
    })
  }

  it("writes the report beside the JSON", async () => {
    const { code, stdout } = await compare("long.json", "--json", "--html", "report.html", ...tight, ...two)
    assert.strictEqual(code, 0)
    assert.strictEqual(decode(stdout).policies.length, 2)
    assert.isTrue(existsSync(join(program.folder, "report.html")))
    const page = readFileSync(join(program.folder, "report.html"), "utf8")
    // Nothing is fetched: no address but that of the SVG and HTML themselves.
    assert.notMatch(page, /(?:src|href)="(?!#|data:,")|url\(|https?:/)
  })
})
