/**
 * Callable parts of other systems beside ours, on the same conversations: `node .ci/ts.mjs test/bench/peers/main.ts`. With
 * `--write` the tables become docs/peers.md; other arguments are parts of names of sessions.
 *
 * The peers are installed in a folder of their own (`PEERS` names one that is kept), and each of them runs in a process of
 * its own on each conversation. What does not install or does not run is named and left out. Every peer is given the same
 * messages and asked for the same number of tokens; what is left is judged by the same code: an orphan is a call without a
 * result or a result without an earlier call, and the system prompt, the first and the last words of a person should be
 * there. Sizes are characters over four, for all of them.
 *
 * Each is run in several processes, by turns, so that a busy moment meets all of them; the median counts.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Play from "../../evidence/Play.ts"
import { imagesIn, keptIn, type Measured, type Message, orphansIn, plain, tokensOf } from "./conversation.ts"

const target = 45_000
const processes = 3

/** What one that is measured counts and what it does about pairs of call and result, and the function that shows it. */
interface Trait {
  /** `all`: the text, the calls and the results of the whole conversation. */
  readonly meters: string
  /** `checks`: of broken pairs none is left; `keeps`: it parts none; `no`: neither. */
  readonly pairs: string
  readonly source: string
}

const ours: Trait = { meters: "all", pairs: "checks", source: "`Estimator.price`; `Transcript.append`, `View.make`" }

/** Read in the source of the versions that are installed. */
const traits: { readonly [peer: string]: Trait } = {
  "ours, recommended": ours,
  "ours, contextSimple": ours,
  "ai pruneMessages": {
    meters: "no",
    pairs: "keeps",
    source: "`src/generate-text/prune-messages.ts`: `pruneMessages` counts messages, and removes by the id of the call"
  },
  "@langchain/core trimMessages": {
    meters: "all, by the caller's counter",
    pairs: "no",
    source: "`dist/messages/transformers.js`: `_firstMaxTokens` counts a shorter list until it fits, and knows no calls"
  },
  "langchain ClearToolUsesEdit": {
    meters: "all, by the caller's counter",
    pairs: "checks results, not calls",
    source: "`dist/agents/middleware/contextEditing.js`: `apply` drops results whose call it does not find, "
      + "and empties old results"
  },
  "@mastra/core TokenLimiterProcessor": {
    meters: "all",
    pairs: "keeps",
    source: "`TokenLimiterProcessor`: `countPromptMessageTokens`; `groupPromptMessages` puts calls and results together"
  },
  "@strands-agents/sdk SlidingWindow": {
    meters: "no",
    pairs: "keeps",
    source: "`sliding-window-conversation-manager.js`: `_reduceContext` goes by the number of messages; "
      + "`findValidTrimPoint` looks at where it cuts"
  },
  "@google/adk TruncatingContextCompactor": {
    meters: "no",
    pairs: "no",
    source: "`truncating_context_compactor.js`: `compact` goes by the number of events"
  },
  "@llamaindex/core ChatMemoryBuffer": {
    meters: "text and results, no calls",
    pairs: "no",
    source:
      "`memory/dist/index.js`: `_tokenCountForMessages` counts content; `getMessages` steps over the assistant's messages"
  },
  "@cline/core basic": {
    meters: "all, as JSON",
    pairs: "keeps",
    source: "`estimateRequestInputTokens`, `createTokenEstimator` (a third of the length of the JSON, whole messages); "
      + "`runBasicCompaction` keeps an end that begins with the assistant, and drops by the id of the call"
  },
  "@cline/core basic, in its session": {
    meters: "all, as JSON",
    pairs: "keeps",
    source:
      "`createCompactionStateAwarePrepareTurn` around the same: what was compacted is put in the place of what it was "
      + "made of, which a hash of that proves"
  },
  "pi findCutPoint": {
    meters: "what it keeps",
    pairs: "keeps",
    source: "`dist/core/compaction/compaction.js`: `estimateTokens` from the newest on until enough is kept; "
      + "`findValidCutPoints` leaves out results"
  },
  "effect Tokenizer.truncate": {
    meters: "all, by the caller's counter",
    pairs: "no",
    source: "`ai/Tokenizer.ts`: `truncate` counts a longer end until it does not fit"
  }
}

const intro = `# Beside other systems

Parts of other systems that can be called, on the same conversations as ours, asked for the same number of tokens. Generated
by \`node .ci/ts.mjs test/bench/peers/main.ts --write\` on Node ${process.versions.node}, ${
  new Date().toISOString().slice(0, 10)
}; the versions are those
of [package.json](../test/bench/peers/package.json). Sessions whose name ends in a format are
[samples](examples/sessions) of this repository, the others recordings that are not in it; all are longer than the target.

Of those that meter, ours alone leaves no broken pair: strictly, nothing else here both meters and validates. \`ClearToolUsesEdit\`
does half of it; Mastra, \`@cline/core\` and pi look at no pair that came broken, but part none that is whole. Beside those
(the table of times below):

- \`@cline/core\` as its session runs it, given a conversation that only grows, as ours is: about as quick at first, and many
  times slower at the next request, for it proves by a hash of the whole that what was compacted still stands for it.
- \`@cline/core\` alone is quicker than ours, at first in most sessions, next in all. It counts the JSON of messages, native code, and goes on
  from what it made; the conversation before that is gone.
- Mastra is slower. pi, which counts what it keeps and finds one cut, is far quicker at first; strands and ADK are
  too, and count no tokens.

Ours spends its first call mostly in code that a new process has yet to compile. Once it is compiled, a first call on two of
the recordings spent over four tenths of its time on the prices of entries, above all on the JSON of results.

- *Cold process* is the first call in a process that has done nothing else; *cold* the first call on this conversation in a
  process that has compacted another one, as a server has; *warm* the next request, with a message more. What is made for a
  call is timed with it. Numbers are milliseconds of the processor, all threads, the median of ${processes} processes: compare
  them within one table.
- At the next request \`@cline/core\` alone, \`ClearToolUsesEdit\`, strands, ADK and pi go on from what they made, which is
  short then. The others, and ours, are given the whole conversation again, or have it; so has \`@cline/core\` in its session.
- *Meters*: whose tokens it counts. *Pairs*: \`checks\`, if of broken pairs of call and result none is left; \`keeps\`, if it
  parts none that is whole; \`no\`, if neither.
- Sizes are characters over four, for all of them. An orphan is a call without a result, or a result without an earlier call.
  *Kept* says whether the system prompt and the first and the last words of a person are left.
`

const lines: Array<string> = []
const say = (line: string): void => {
  console.log(line)
  lines.push(line)
}

const here = "test/bench/peers"
const folder = process.env["PEERS"] ?? mkdtempSync(join(tmpdir(), "effect-compaction-peers-"))
mkdirSync(folder, { recursive: true })
for (const name of ["package.json", "run.mjs"]) copyFileSync(join(here, name), join(folder, name))

const runIn = (cwd: string, command: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(command, args, {
    cwd,
    encoding: "utf8",
    timeout: command === "npm" ? 600_000 : 20_000,
    maxBuffer: 2 ** 30,
    stdio: ["ignore", "pipe", "pipe"]
  })

const run = (command: string, ...args: ReadonlyArray<string>): string => runIn(folder, command, ...args)

const missing = (): ReadonlyArray<string> =>
  Object.keys(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).dependencies)
    .filter((name) => !existsSync(join(folder, "node_modules", name)))

// One that cannot be installed keeps none of the others out.
if (missing().length > 0) {
  for (const name of missing()) {
    const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    try {
      run("npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", `${name}@${dependencies[name]}`)
    } catch {
      console.error(`left out: ${name} does not install`)
    }
  }
}

const milliseconds = (value: number | null): string =>
  value === null ? "–" : value < 10 ? value.toFixed(2) : String(Math.round(value))

const median = (values: ReadonlyArray<number>): number | null =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? null

const policies = ["recommended", "contextSimple"]
const peers: ReadonlyArray<string> = JSON.parse(run(process.execPath, "run.mjs"))
const everyone = [...policies.map((policy) => `ours, ${policy}`), ...peers]

const measure = (who: string, file: string, other: ReadonlyArray<string>): Measured => {
  const policy = policies.find((each) => who === `ours, ${each}`)
  const node = (cwd: string, ...args: ReadonlyArray<string>) => runIn(cwd, process.execPath, "--expose-gc", ...args)
  return JSON.parse(
    policy === undefined
      ? node(folder, "run.mjs", who, file, ...other)
      : node(process.cwd(), ".ci/ts.mjs", join(here, "ours.ts"), policy, file, ...other)
  )
}

/** Why one cannot be measured. */
const reasonOf = (error: unknown): string => {
  if (Object(error).code === "ETIMEDOUT") return "does not end in time"
  const said = String(Object(error).stderr ?? error).split("\n").find((line) => /Error/.test(line)) ?? String(error)
  return `does not run: ${said.trim().slice(0, 160)}`
}

const write = (name: string, messages: ReadonlyArray<Message>): string => {
  const file = join(folder, name)
  writeFileSync(file, JSON.stringify({ target, messages }))
  return file
}

interface Row {
  readonly process: number | null
  readonly cold: number | null
  readonly warm: number | null
  readonly left: ReadonlyArray<Message>
}

/** All that can be measured on a conversation, each in several processes, by turns. */
const rowsOf = (
  file: string,
  other: string
): { readonly rows: ReadonlyMap<string, Row>; readonly out: ReadonlyMap<string, string> } => {
  const first = new Map<string, Array<Measured>>()
  const second = new Map<string, Array<Measured>>()
  const out = new Map<string, string>()
  for (let turn = 0; turn < processes; turn++) {
    for (const who of everyone) {
      if (out.has(who)) continue
      try {
        first.set(who, [...first.get(who) ?? [], measure(who, file, [])])
        // One that takes so long is not run on another conversation before.
        if (first.get(who)?.[0]?.warm !== null) {
          second.set(who, [...second.get(who) ?? [], measure(who, file, [other])])
        }
      } catch (error) {
        out.set(who, reasonOf(error))
      }
    }
  }
  const rows = new Map<string, Row>()
  for (const [who, measured] of first) {
    if (out.has(who)) continue
    rows.set(who, {
      process: median(measured.map(({ cold }) => cold)),
      cold: median((second.get(who) ?? []).map(({ cold }) => cold)),
      warm: median(measured.flatMap(({ warm }) => warm === null ? [] : [warm])),
      left: measured[0]!.left
    })
  }
  return { rows, out }
}

/** A conversation whose newest turn has a result without a call and a call without a result, the two broken pairs. */
const broken = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const call = (id: string): Message => ({
    role: "assistant",
    parts: [{ type: "text", text: "Next." }, { type: "call", id, name: "probe", args: {} }]
  })
  const result = (id: string): Message => ({
    role: "tool",
    parts: [{ type: "result", id, name: "probe", text: "Done." }]
  })
  const go: Message = { role: "user", parts: [{ type: "text", text: "Go on." }] }
  return [
    ...messages,
    go,
    call("whole 1"),
    result("whole 1"),
    result("without a call"),
    call("without a result"),
    call("whole 2"),
    result("whole 2")
  ]
}

const brokenIn = (left: ReadonlyArray<Message>): number => {
  const ids = (type: "call" | "result") =>
    new Set(left.flatMap(({ parts }) => parts.flatMap((part) => part.type === type ? [part.id] : [])))
  const calls = ids("call")
  const results = ids("result")
  return Number(results.has("without a call") && !calls.has("without a call"))
    + Number(calls.has("without a result") && !results.has("without a result"))
}

const names = process.argv.slice(2).filter((name) => name !== "--write")
const samples = Play.samples()
const messagesOf = (name: string): ReadonlyArray<Message> =>
  plain(samples.find((sample) => sample.name.startsWith(name))?.session.messages ?? [])

say("\n## What they count, and what they do about pairs\n")
say(
  "*Broken left*: of a result without a call and a call without a result, both in the newest turn of a long sample, how many "
    + "are left as they were.\n"
)
say("| | meters | pairs | broken left | seen in |")
say("|---|---|---|---:|---|")
const probe = write("broken.json", broken(messagesOf("build-log")))
for (const who of everyone) {
  const { meters, pairs, source } = traits[who]!
  let left: string
  try {
    left = String(brokenIn(measure(who, probe, []).left))
  } catch (error) {
    left = reasonOf(error)
  }
  say(`| ${who} | ${meters} | ${pairs} | ${left} | ${source} |`)
}

const subjects = [...samples, ...Play.recorded()].filter(({ name, session }) =>
  tokensOf(plain(session.messages)) > target && (names.length === 0 || names.some((part) => name.includes(part)))
)
const tables: Array<string> = []
/** How many times the time of ours, with the recommended policy, each of the others took; by session. */
const ratios = new Map<string, Array<{ readonly [figure in "process" | "cold" | "warm"]: number | null }>>()
for (const { name, session } of subjects) {
  const messages = plain(session.messages)
  const file = write("conversation.json", messages)
  const other = write(
    "other.json",
    messagesOf(name.startsWith("search-and-refactor") ? "build-log" : "search-and-refactor")
  )
  const { out, rows } = rowsOf(file, other)
  tables.push(
    `\n### ${name}\n\n${messages.length} messages, ${tokensOf(messages).toLocaleString("en-US")} tokens, ${
      orphansIn(messages)
    } orphans, ${imagesIn(messages)} images; target ${target.toLocaleString("en-US")}.\n`,
    "| | meters | pairs | cold process | cold | warm | tokens left | orphans | kept | images left |",
    "|---|---|---|---:|---:|---:|---:|---:|---|---:|"
  )
  const base = rows.get("ours, recommended")
  for (const [who, row] of rows) {
    const { left } = row
    const tokens = tokensOf(left)
    const { meters, pairs } = traits[who]!
    tables.push(
      `| ${who} | ${meters} | ${pairs} | ${milliseconds(row.process)} | ${milliseconds(row.cold)} | ${
        milliseconds(row.warm)
      } | ${tokens.toLocaleString("en-US")}${tokens > target ? " (over)" : ""} | ${orphansIn(left)} | ${
        keptIn(left, messages)
      } | ${imagesIn(left)} |`
    )
    const over = (figure: "process" | "cold" | "warm"): number | null => {
      const own = base?.[figure] ?? null
      const theirs = row[figure]
      return own === null || theirs === null ? null : theirs / own
    }
    ratios.set(who, [...ratios.get(who) ?? [], { process: over("process"), cold: over("cold"), warm: over("warm") }])
  }
  if (out.size > 0) tables.push(`\nLeft out: ${[...out].map(([who, reason]) => `${who} ${reason}`).join("; ")}.`)
  console.log(tables.slice(tables.findLastIndex((line) => line.startsWith("\n### "))).join("\n"))
}

say("\n## How long they take\n")
say(
  "As a multiple of ours with the recommended policy: the median over the sessions, and in how many of them ours is ahead. "
    + "Above 1 the other is slower.\n"
)
say("| | pairs | cold process | cold | warm |")
say("|---|---|---:|---:|---:|")
for (const [who, all] of ratios) {
  if (who === "ours, recommended") continue
  const cell = (figure: "process" | "cold" | "warm"): string => {
    const values = all.flatMap((each) => each[figure] === null ? [] : [each[figure]])
    const middle = median(values)
    const ahead = values.filter((value) => value > 1).length
    return middle === null ? "–" : `${middle.toFixed(middle < 10 ? 2 : 0)} (${ahead} of ${values.length})`
  }
  say(`| ${who} | ${traits[who]!.pairs} | ${cell("process")} | ${cell("cold")} | ${cell("warm")} |`)
}
const page = `${intro}${lines.join("\n")}\n\n## Session by session\n${tables.join("\n")}\n`
if (process.argv.includes("--write")) writeFileSync("docs/peers.md", page)
if (process.env["PEERS"] === undefined) rmSync(folder, { recursive: true, force: true })
