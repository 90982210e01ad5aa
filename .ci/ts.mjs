// Runs a TypeScript program of this project on Node 20 too: bundled with its own sources, packages left outside.
import { build } from "esbuild"
import { mkdirSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const entry = process.argv.splice(2, 1)[0] ?? ""
const folder = join(root, "node_modules", ".cache", "effect-compaction")
mkdirSync(folder, { recursive: true })
const outfile = join(folder, `${basename(entry, ".ts")}-${process.pid}.mjs`)

await build({
  absWorkingDir: root,
  entryPoints: [entry],
  outfile,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: "inline",
  logLevel: "warning",
  plugins: [{
    name: "own-sources",
    setup(bundler) {
      bundler.onResolve({ filter: /^effect-compaction(\/|$)/ }, ({ path }) => ({
        path: join(root, "src", `${path.replace(/^effect-compaction\/?/, "") || "index"}.ts`)
      }))
      bundler.onResolve({ filter: /^[^./]/ }, ({ kind }) => kind === "entry-point" ? undefined : { external: true })
    }
  }]
})
process.on("exit", () => rmSync(outfile, { force: true }))
await import(pathToFileURL(outfile).href)
