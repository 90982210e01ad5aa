// Whoever installs the package gets nothing but it; whoever develops it gets the same tools everywhere.
import { readFileSync } from "node:fs"

const read = (/** @type {string} */ name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), "utf8"))
const manifest = read("package.json")
const lock = read("package-lock.json")
/** @type {Array<string>} */
const wrong = []

for (const field of ["dependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"]) {
  if (manifest[field] !== undefined) wrong.push(`package.json has ${field}: ${JSON.stringify(manifest[field])}`)
}
if (JSON.stringify(Object.keys(manifest.peerDependencies)) !== `["effect"]`) {
  wrong.push(`peerDependencies must be effect alone: ${JSON.stringify(manifest.peerDependencies)}`)
}
for (const [name, version] of Object.entries(manifest.devDependencies)) {
  if (!/^\d+\.\d+\.\d+$/.test(version)) wrong.push(`${name} must have an exact version, not ${version}`)
}
for (const [path, { resolved, link }] of Object.entries(lock.packages)) {
  if (link || (resolved && !resolved.startsWith("https://registry.npmjs.org/"))) {
    wrong.push(`package-lock.json: ${path || "."} does not come from the npm registry: ${resolved ?? "a link"}`)
  }
}

for (const line of wrong) console.error(line)
if (wrong.length > 0) process.exit(1)
console.log(`no runtime dependency, one peer (effect ${manifest.peerDependencies.effect}), ${Object.keys(manifest.devDependencies).length} exact tools`)
