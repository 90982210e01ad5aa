// Builds dist: the library as separate modules (tsc), the command line as one file that needs nothing installed (esbuild).
import { build } from "esbuild"
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { annotate } from "./pure.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
process.chdir(root)

for (const entry of ["src/index.ts", "src/cli/main.ts"]) {
  if (!existsSync(entry)) {
    console.error(`build: ${entry} is missing`)
    process.exit(1)
  }
}

rmSync("dist", { recursive: true, force: true })
const { status } = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "src/tsconfig.json"], { stdio: "inherit" })
if (status !== 0) process.exit(1)
for (const name of readdirSync("dist", { recursive: true, encoding: "utf8" }).filter((each) => each.endsWith(".js"))) {
  writeFileSync(`dist/${name}`, annotate(readFileSync(`dist/${name}`, "utf8")))
}

// What most commands have no need of (a driver of a database) is a part of its own, loaded when it is asked for.
const outdir = "dist/cli"
const outfile = `${outdir}/main.js`
const { metafile } = await build({
  entryPoints: ["src/cli/main.ts"],
  outdir,
  splitting: true,
  chunkNames: "part-[hash]",
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  // Syntax only: a stack trace of a user still shows real names.
  minifySyntax: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
  logOverride: { "ignored-bare-import": "silent" },
  banner: { js: "#!/usr/bin/env node\n// Bundles other packages; their licences: THIRD-PARTY-LICENSES.txt beside this file." }
})
chmodSync(outfile, 0o755)

// Only what is really in the bundle: an input whose code was shaken out needs no notice.
const inputs = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs))
const used = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0)
const folders = new Set(used.flatMap(([path]) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? []))
const notices = [...folders].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"))
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "license"].find((name) => existsSync(`${folder}/${name}`))
  if (file === undefined) {
    console.error(`build: ${folder} is in the bundle and has no licence file`)
    process.exit(1)
  }
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`
})
writeFileSync("dist/cli/THIRD-PARTY-LICENSES.txt", notices.join(`\n${"-".repeat(80)}\n\n`))

const kilobytes = (/** @type {string} */ path) => `${Math.round(statSync(path).size / 1024)} kB`
console.log(`build: ${outfile} ${kilobytes(outfile)}, bundles ${[...folders].map((folder) => folder.replace("node_modules/", "")).join(", ")}`)
