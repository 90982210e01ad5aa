// Prints the two commands of README.md: those of its one `sh` block whose two lines each begin with `npm ci &&`.
import { readFileSync } from "node:fs"

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
const blocks = Array.from(readme.matchAll(/^```sh\n([^]*?)^```$/gm), (match) => (match[1] ?? "").trim().split("\n"))
const found = blocks.filter((lines) => lines.length === 2 && lines.every((line) => line.startsWith("npm ci && ")))
if (found.length !== 1) {
  console.error(`README.md has ${found.length} sh blocks of two lines that each begin with "npm ci && "; there must be one`)
  process.exit(1)
}
console.log(found.flat().join("\n"))
