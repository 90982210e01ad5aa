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
