// Checks the package as its users get it: packs it, installs the tarball beside nothing but `effect`, imports every
// public module, and starts the command line where not even `effect` is installed. Run it after a build.
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"

const root = fileURLToPath(new URL("..", import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
/** @type {string} */
const self = manifest.name
const work = mkdtempSync(join(tmpdir(), "package-check-"))

/** @type {(command: string, args: ReadonlyArray<string>, cwd: string) => string} */
const run = (command, args, cwd) => execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })

/** @type {(condition: boolean, message: string) => void} */
const check = (condition, message) => {
  if (condition) return
  console.error(`package:check: ${message}`)
  process.exitCode = 1
}

try {
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", work], root))
  const tarball = join(work, packed.filename)

  // The command line, with nothing beside it.
  const alone = join(work, "alone")
  mkdirSync(alone)
  run("tar", ["-xzf", tarball, "-C", alone], root)
  const version = run(process.execPath, [join(alone, "package", manifest.bin[self]), "--version"], alone)
  check(version.includes(manifest.version), `--version prints ${JSON.stringify(version)}, not ${manifest.version}`)

  for (
    const file of [
      "LICENSE",
      "README.md",
      "dist/cli/THIRD-PARTY-LICENSES.txt",
      "docs/AGENTS.md",
      "docs/changelog.md",
      "docs/getting-started.md",
      "docs/policy.schema.json"
    ]
  ) {
    check(existsSync(join(alone, "package", file)), `the package lacks ${file}`)
  }

  const installed = JSON.parse(readFileSync(join(alone, "package/package.json"), "utf8"))
  for (const field of ["description", "homepage", "repository", "bugs", "keywords", "license", "engines"]) {
    check(installed[field] !== undefined, `package.json lacks ${field}`)
  }
  for (const field of ["dependencies", "optionalDependencies", "bundledDependencies", "bundleDependencies"]) {
    check(installed[field] === undefined, `package.json has ${field}`)
  }
  const peers = Object.keys(installed.peerDependencies ?? {})
  check(peers.length === 1 && peers[0] === "effect", `peers are ${JSON.stringify(peers)}, not effect alone`)

  // The library, beside `effect` alone.
  const consumer = join(work, "consumer")
  mkdirSync(consumer)
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }))
  run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", tarball, `effect@${manifest.devDependencies.effect}`], consumer)

  const dist = join(consumer, "node_modules", self, "dist")
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"))
  const specifierOf = (/** @type {string} */ file) => file === "index.js" ? self : `${self}/${file.slice(0, -3)}`
  // Rooms hold private files; `format` and `simulate` are public, but for their parts.
  const isPrivate = (/** @type {string} */ file) => /^(?!(format|simulate)\/(?!parts\/))[^/]+\//.test(file)
  const publicModules = files.filter((file) => !isPrivate(file)).map(specifierOf).sort()
  const privateModules = files.filter(isPrivate).map(specifierOf).sort()
  check(publicModules.includes(self), "there is no index")
  for (const room of ["cli", "session", "format/parts"]) {
    check(privateModules.some((name) => name.startsWith(`${self}/${room}/`)), `no private module of ${room} to test`)
  }

  writeFileSync(join(consumer, "imports.js"), `
    const failures = []
    for (const name of ${JSON.stringify(publicModules)}) {
      try {
        await import(name)
      } catch (cause) { failures.push(name + " cannot be imported: " + cause) }
    }
    for (const name of ${JSON.stringify(privateModules)}) {
      try {
        failures.push(name + " is private and can be reached at " + import.meta.resolve(name))
      } catch (cause) {
        if (cause.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") failures.push(name + ": " + cause)
      }
    }
    console.log(JSON.stringify(failures))
  `)
  const failures = JSON.parse(run(process.execPath, ["imports.js"], consumer))
  for (const failure of failures) check(false, failure)

  // The declarations, checked in full, without the types of Node (those of `effect` itself need DOM or Node).
  writeFileSync(join(consumer, "imports.ts"), publicModules.map((name, index) => `export * as m${index} from "${name}"\n`).join(""))
  writeFileSync(join(consumer, "tsconfig.json"), JSON.stringify({
    files: ["imports.ts"],
    compilerOptions: { strict: true, noEmit: true, module: "NodeNext", target: "ES2022", lib: ["ES2023", "DOM"], types: [], skipLibCheck: false }
  }))
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "."], consumer)

  // What the one line costs an app when it starts, and when it is compiled.
  const app = `import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
export const of = [Chat.empty, LanguageModel.LanguageModel, Effect.void, Layer.empty]
`
  const line = `import * as CompactedModel from "${self}/CompactedModel"
export const model = CompactedModel.withCompaction(Layer.succeed(LanguageModel.LanguageModel, undefined as never))
`
  const milliseconds = (/** @type {() => void} */ act) => {
    const times = [0, 1, 2].map(() => {
      const begun = performance.now()
      act()
      return performance.now() - begun
    })
    return times.sort((a, b) => a - b)[1] ?? 0
  }
  const times = [["without", app], ["with", app + line]].map(([name, source]) => {
    writeFileSync(join(consumer, `${name}.ts`), source ?? "")
    writeFileSync(join(consumer, `${name}.js`), (source ?? "").replaceAll(" as never", ""))
    const compile = milliseconds(() => {
      const options = ["--noEmit", "--strict", "--ignoreConfig", "--skipLibCheck", "--module", "NodeNext", "--target", "ES2022"]
      run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...options, `${name}.ts`], consumer)
    })
    return { start: milliseconds(() => run(process.execPath, [`${name}.js`], consumer)), compile }
  })
  const shown = (/** @type {"start" | "compile"} */ key) => times.map((each) => Math.round(each[key])).join(" ms without, ")

  const size = (/** @type {ReadonlyArray<string>} */ names) => names.reduce((sum, name) => sum + statSync(join(dist, name)).size, 0)
  const kilobytes = (/** @type {number} */ bytes) => `${(bytes / 1024).toFixed(1)} kB`
  const bin = join(dist, "cli/main.js")
  console.log(`tarball           ${kilobytes(packed.size)} (${kilobytes(packed.unpackedSize)} unpacked, ${packed.entryCount} files)`)
  console.log(`library           ${kilobytes(size(files.filter((file) => !file.startsWith("cli/"))))} of JavaScript`)
  console.log(`command line      ${kilobytes(statSync(bin).size)} (${kilobytes(gzipSync(readFileSync(bin)).length)} compressed)`)
  console.log(`start of an app   ${shown("start")} ms with the one line`)
  console.log(`tsc of an app     ${shown("compile")} ms with the one line`)
  console.log(`public modules    ${publicModules.length}: ${publicModules.join(" ")}`)
  console.log(`private modules   ${privateModules.length}, none can be imported`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
