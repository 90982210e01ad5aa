/**
 * Callable parts of other systems beside ours, on the same conversations: `node .ci/ts.mjs test/bench/peers/main.ts`. With
 * `--write` the tables become docs/peers.md; other arguments are parts of names of sessions.
 *
 * The peers are installed in a folder of their own (`PEERS` names one that is kept), and each of them runs in a process of
 * its own on each conversation. What does not install or does not run is named and left out. Every peer is given the same
 * messages and asked for the same number of tokens; what is left is judged by the same code: an orphan is a call without a
 * result or a result without an earlier call, and the system prompt, the first and the last words of a person should be
 * there. Sizes are characters over four, for all of them. *Cold* is the first call, *warm* the next one with a message more: of
 * ours within the same conversation, while the peers have none and begin anew.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Play from "../../evidence/Play.ts"
import { imagesIn, keptIn, type Measured, orphansIn, plain, tokensOf } from "./conversation.ts"

const target = 45_000

/**
 * Whether a peer counts tokens, and whether it sees to it that calls and results stay together; read in the source of the
 * version that is installed.
 */
const traits: { readonly [peer: string]: readonly [meters: string, validates: string] } = {
  "ours, recommended": ["yes", "yes"],
  "ours, contextSimple": ["yes", "yes"],
  "ai pruneMessages": ["no", "no"],
  "@langchain/core trimMessages": ["yes", "no"],
  "langchain ClearToolUsesEdit": ["yes", "removes nothing"],
  "@mastra/core TokenLimiterProcessor": ["yes", "no"],
  "@strands-agents/sdk SlidingWindow": ["no, messages", "yes"],
  "@google/adk TruncatingContextCompactor": ["no, events", "no"],
  "@llamaindex/core ChatMemoryBuffer": ["yes", "no"],
  "@cline/core basic": ["yes", "yes"],
  "pi findCutPoint": ["yes", "no"],
  "effect Tokenizer.truncate": ["yes", "no"]
}

const intro = `# Beside other systems

Parts of other systems that can be called, on the same conversations as ours, asked for the same number of tokens. Generated
by \`node .ci/ts.mjs test/bench/peers/main.ts --write\` on Node ${process.versions.node}, ${
  new Date().toISOString().slice(0, 10)
}; the versions are those
of [package.json](../test/bench/peers/package.json). The sessions are recordings that are not in this repository.

- *Cold* is the first call in a process that has done nothing else, what is made for it included; *warm* the next one with a
  message more. Both are milliseconds of the processor, garbage collection included: compare them within one table. Ours is warm
  within the same conversation; the others are given the whole of it again. A system that goes on from what it shortened, as
  that of Cline does, pays that only when it compacts.
- *Meters*: whether it counts tokens. *Validates*: whether it sees to it that calls and results stay together.
- Sizes are characters over four, for all of them. An orphan is a call without a result, or a result without an earlier call.
  *Kept* says whether the system prompt and the first and the last words of a person are left.

Beside ours, one of them both meters and validates: \`@cline/core\`. Warm, ours is ahead of it by far; of all that meter only
the cut finder of pi, which does nothing else, is as quick. Cold ours is behind: \`@cline/core\` counts the length of the JSON of
each message, which is native code, while ours decodes settings, prices parts and media, and keeps an index, in code that a
new process has yet to compile.
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
    timeout: command === "npm" ? 600_000 : 30_000,
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

const names = process.argv.slice(2).filter((name) => name !== "--write")
const subjects = [...Play.samples(), ...Play.recorded()].filter(({ name, session }) =>
  tokensOf(plain(session.messages)) > target && (names.length === 0 || names.some((part) => name.includes(part)))
)
for (const { name, session } of subjects) {
  const messages = plain(session.messages)
  const file = join(folder, "conversation.json")
  writeFileSync(file, JSON.stringify({ target, messages }))
  const images = imagesIn(messages)
  say(
    `\n**${name}**: ${messages.length} messages, ${tokensOf(messages).toLocaleString("en-US")} tokens, ${
      orphansIn(messages)
    } orphans, ${images} images; target ${target.toLocaleString("en-US")}\n`
  )
  say("| | meters | validates | cold | warm | tokens left | orphans | kept | images left |")
  say("|---|---|---|---:|---:|---:|---:|---|---:|")
  const print = (who: string, { cold, left, warm }: Measured): void => {
    const tokens = tokensOf(left)
    const [meters, validates] = traits[who] ?? ["–", "–"]
    say(
      `| ${who} | ${meters} | ${validates} | ${milliseconds(cold)} | ${milliseconds(warm)} | ${
        tokens.toLocaleString("en-US")
      }${tokens > target ? " (over)" : ""} | ${orphansIn(left)} | ${keptIn(left, messages)} | ${imagesIn(left)} |`
    )
  }
  for (const policy of ["recommended", "contextSimple"]) {
    const printed = runIn(process.cwd(), process.execPath, ".ci/ts.mjs", join(here, "ours.ts"), policy, file)
    print(`ours, ${policy}`, JSON.parse(printed))
  }
  const leftOut: Array<string> = []
  const peers: ReadonlyArray<string> = JSON.parse(run(process.execPath, "run.mjs"))
  for (const peer of peers) {
    try {
      print(peer, JSON.parse(run(process.execPath, "run.mjs", peer, file)))
    } catch (error) {
      if (Object(error).code === "ETIMEDOUT") {
        leftOut.push(`${peer} does not end within 30 seconds`)
        continue
      }
      const said = String(Object(error).stderr ?? error).split("\n").find((line) => /Error/.test(line)) ?? String(error)
      leftOut.push(`${peer} does not run: ${said.trim().slice(0, 160)}`)
    }
  }
  if (leftOut.length > 0) say(`\nLeft out: ${leftOut.join("; ")}.`)
}
if (process.argv.includes("--write")) writeFileSync("docs/peers.md", `${intro}${lines.join("\n")}\n`)
if (process.env["PEERS"] === undefined) rmSync(folder, { recursive: true, force: true })
