import { buildSync } from "esbuild"
import * as fs from "node:fs"
import * as path from "node:path"

// Found from where the tests are started, so that a bundle of this file finds it too.
const root = process.cwd()

/** Makes a file of a program in TypeScript, which a process of its own can run; the caller removes it. */
export const build = (program: string): string => {
  const folder = path.join(root, "node_modules", ".cache", "effect-compaction")
  fs.mkdirSync(folder, { recursive: true })
  const outfile = path.join(folder, `${path.basename(program, ".ts")}-${process.pid}.mjs`)
  buildSync({
    entryPoints: [path.join(root, program)],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    alias: Object.fromEntries(
      fs.readdirSync(path.join(root, "src")).filter((name) => name.endsWith(".ts")).map((name) => [
        `effect-compaction/${name.slice(0, -3)}`,
        path.join(root, "src", name)
      ])
    ),
    external: ["effect", "@effect/*"]
  })
  return outfile
}
