/**
 * Callable parts of other systems beside ours, on the same conversations: `node .ci/ts.mjs test/bench/peers/main.ts`.
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

const names = process.argv.slice(2)
const subjects = [...Play.samples(), ...Play.recorded()].filter(({ name, session }) =>
  tokensOf(plain(session.messages)) > target && (names.length === 0 || names.some((part) => name.includes(part)))
)
for (const { name, session } of subjects) {
  const messages = plain(session.messages)
  const file = join(folder, "conversation.json")
  writeFileSync(file, JSON.stringify({ target, messages }))
  const images = imagesIn(messages)
  console.log(
    `\n**${name}**: ${messages.length} messages, ${tokensOf(messages).toLocaleString("en-US")} tokens, ${
      orphansIn(messages)
    } orphans, ${images} images; target ${target.toLocaleString("en-US")}\n`
  )
  console.log(
    "| | cold | warm | tokens left | orphans | kept | images left |\n|---|---:|---:|---:|---:|---|---:|"
  )
  const print = (who: string, { cold, left, warm }: Measured): void => {
    const tokens = tokensOf(left)
    console.log(
      `| ${who} | ${milliseconds(cold)} | ${milliseconds(warm)} | ${tokens.toLocaleString("en-US")}${
        tokens > target ? " (over)" : ""
      } | ${orphansIn(left)} | ${keptIn(left, messages)} | ${imagesIn(left)} |`
    )
  }
  for (const policy of ["recommended", "contextSimple"]) {
    const printed = runIn(process.cwd(), process.execPath, ".ci/ts.mjs", join(here, "ours.ts"), policy, file)
    print(`ours, ${policy}`, JSON.parse(printed))
  }
  const peers: ReadonlyArray<string> = JSON.parse(run(process.execPath, "run.mjs"))
  for (const peer of peers) {
    try {
      print(peer, JSON.parse(run(process.execPath, "run.mjs", peer, file)))
    } catch (error) {
      if (Object(error).code === "ETIMEDOUT") {
        console.error(`left out: ${peer} does not end within 30 seconds`)
        continue
      }
      const said = String(Object(error).stderr ?? error).split("\n").find((line) => /Error/.test(line)) ?? String(error)
      console.error(`left out: ${peer} does not run: ${said.trim().slice(0, 160)}`)
    }
  }
}
if (process.env["PEERS"] === undefined) rmSync(folder, { recursive: true, force: true })
