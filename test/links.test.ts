/** What the documentation points at is there: every relative link with its anchor, and every check that a promise names. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Properties from "./properties/Properties.ts"

const root = fileURLToPath(new URL("..", import.meta.url))

const pagesBelow = (folder: string): ReadonlyArray<string> =>
  fs.readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(folder, entry.name)
    return entry.isDirectory() ? pagesBelow(name) : name.endsWith(".md") ? [name] : []
  })

const pages = [...fs.readdirSync(root).filter((name) => name.endsWith(".md")), ...pagesBelow("docs")]

/** The text without its code, in which brackets are no links. */
const prose = (text: string): string => text.replaceAll(/^```.*?^```$/gms, "").replaceAll(/`[^`\n]*`/g, "")

const linksOf = (text: string): ReadonlyArray<string> =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1]!)
    .filter((link) => !/^[a-z][a-z+.-]*:/i.test(link))

/** The anchors of a page, as the hosts of repositories make them from its headings. */
const anchorsOf = (text: string): ReadonlyArray<string> =>
  [...text.replaceAll(/^```.*?^```$/gms, "").matchAll(/^#{1,6} (.+)$/gm)].map((match) =>
    match[1]!.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-")
  )

const read = (name: string): string => fs.readFileSync(path.join(root, name), "utf8")

const isInside = (target: string): boolean => !path.relative(root, target).startsWith("..")

const brokenIn = (page: string, text: string): ReadonlyArray<string> =>
  linksOf(text).filter((link) => {
    const [file = "", anchor] = link.split("#")
    const target = file === "" ? path.join(root, page) : path.join(root, path.dirname(page), decodeURIComponent(file))
    if (!isInside(target) || !fs.existsSync(target)) return true
    if (anchor === undefined || !target.endsWith(".md")) return false
    return !anchorsOf(file === "" ? text : fs.readFileSync(target, "utf8")).includes(anchor)
  })

describe("links", () => {
  it("are found, and a wrong one is seen", () => {
    assert.isAtLeast(pages.length, 20)
    assert.isAtLeast(pages.flatMap((page) => linksOf(read(page))).length, 50)
    const text = "# A b\n[a](#a-b) [b](#c) [c](docs/cli.md) [d](docs/none.md) [e](https://a.b) `[f](none)` [g](../x)\n"
    assert.deepStrictEqual(brokenIn("README.md", text), ["#c", "docs/none.md", "../x"])
  })

  for (const page of pages) {
    it(page, () => assert.deepStrictEqual(brokenIn(page, read(page)), []))
  }
})

/** What a file of src exports by itself, and what it passes on of others. */
const exportsOf = (file: string): ReadonlyArray<string> => {
  const source = read(file).replaceAll(/\/\*\*.*?\*\//gs, "")
  const declared = source.matchAll(
    /^export (?:declare )?(?:const|function\*?|class|interface|type|namespace|enum) (\w+)/gm
  )
  const listed = source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)
  const passed = source.matchAll(/^export \* from "(.+)"/gm)
  // What a manager or an estimator can do is named after its module too.
  const served = source.matchAll(
    new RegExp(`^export interface (?:Service|${path.posix.basename(file, ".ts")})\\b.*?^}`, "gms")
  )
  return [
    ...Array.from(declared, ([, each]) => each!),
    ...Array.from(
      listed,
      ([, all]) => all!.split(",").map((each) => each.trim().replace(/^type /, "").split(/\s+as\s+/).at(-1)!)
    ).flat(),
    ...Array.from(served, ([body]) => Array.from(body.matchAll(/^  readonly (\w+)/gm), ([, each]) => each!)).flat(),
    ...Array.from(passed, ([, other]) => exportsOf(path.posix.join(path.posix.dirname(file), other!))).flat()
  ]
}

/** The public modules, and what each exports. */
const modules = new Map<string, Set<string>>()
for (const folder of ["", "format", "simulate"]) {
  for (const name of fs.readdirSync(path.join(root, "src", folder)).filter((each) => /^[A-Z]\w*\.ts$/.test(each))) {
    // Two folders may have a module of one name; and `Chat` is that of `effect/ai`.
    if (name === "Chat.ts") continue
    const known = modules.get(name.slice(0, -3)) ?? new Set()
    for (const each of exportsOf(path.posix.join("src", folder, name))) known.add(each)
    modules.set(name.slice(0, -3), known)
  }
}

/** Names of a public module and a member of it, in backticks, of which there is none; what `effect/ai` exports is not ours. */
const missingIn = (text: string): ReadonlyArray<string> =>
  Array.from(text.replaceAll(/^```.*?^```$/gms, "").matchAll(/`([A-Z]\w+)\.(\w+)/g)).flatMap(([, name, member]) => {
    const exported = modules.get(name!)
    return exported === undefined || exported.has(member!) ? [] : [`${name}.${member}`]
  })

describe("names of the public API", () => {
  it("that are not there are seen", () => {
    assert.isAtLeast(modules.size, 40)
    const text =
      "`Wire.check(prompt)` `Wire.none` `Stage.Pass` `Stage.pressureOf` `Prompt.none`\n```\n`Wire.other`\n```\n"
    assert.deepStrictEqual(missingIn(text), ["Wire.none"])
  })

  for (const page of pages) {
    it(page, () => assert.deepStrictEqual(missingIn(read(page)), []))
  }

  it("in the docstrings of src", () => {
    const missing = fs.readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .flatMap((name) =>
        Array.from(
          read(path.posix.join("src", name)).matchAll(/\/\*\*.*?\*\//gs),
          ([comment]) => missingIn(comment.replaceAll(/^ *\* ?/gm, "")).map((each) => `${name}: ${each}`)
        ).flat()
      )
    assert.deepStrictEqual(missing, [])
  })
})

describe("docs/promises.md", () => {
  /** The last column of the table. */
  const checks = read("docs/promises.md")
    .split("\n")
    .filter((line) => /^\| \d /.test(line))
    .map((line) => line.split("|").at(-2)!)

  it("names every property, and no other", () => {
    const named = checks.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!))
    assert.strictEqual(checks.length, 8)
    assert.deepStrictEqual([...new Set(named)].sort(), Properties.all.map(({ name }) => name).sort())
  })

  it("quotes titles of tests that stand in the files it links to", () => {
    const quoted = checks.flatMap((cell) => {
      const files = linksOf(cell)
      return [...cell.matchAll(/"([^"]+)"/g)].map((match) => ({ title: match[1]!, files }))
    })
    assert.isAtLeast(quoted.length, 1)
    for (const { files, title } of quoted) {
      const found = files.some((file) => {
        const target = path.join(root, "docs", file)
        return fs.statSync(target).isFile() && fs.readFileSync(target, "utf8").includes(title)
      })
      assert.isTrue(found, title)
    }
  })
})
