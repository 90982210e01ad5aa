import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { type Browser, chromium, type Page } from "playwright-core"
import * as Chart from "../../src/cli/report/Chart.ts"
import * as Html from "../../src/cli/report/Html.ts"
import * as Program from "./program.ts"
import { openAiChat } from "./sessions.ts"

const executablePath = "/usr/bin/chromium"
const isInstalled = existsSync(executablePath)
if (!isInstalled) console.log(`${executablePath} is not there: the report is not checked in a browser`)

describe("what stands in a page", () => {
  it("is never taken for markup", () => {
    assert.strictEqual(Html.text(`<a href="x">'&`), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;")
    const value = { tool: "</script><script>alert(1)" }
    assert.notInclude(Html.json(value), "<")
    assert.deepStrictEqual(JSON.parse(Html.json(value)), value)
  })
})

describe("charts", () => {
  const drawn = (values: ReadonlyArray<ReadonlyArray<number>>, options: Partial<Chart.Chart> = {}) =>
    Chart.render({
      title: "T",
      kind: "areas",
      series: values.map((each, at) => ({ name: `s${at}`, colour: "read", values: each })),
      marks: [],
      text: String,
      ...options
    })
  const paths = (svg: string) =>
    Array.from(svg.matchAll(/<path class="(?:area|line)[^"]*" d="([^"]+)"/g), (match) => match[1])

  it("stand on one another", () => {
    // From 58 to 632 across for two requests, from 148 up to 14 for values of 0 to 10.
    const [below, above] = paths(drawn([[5, 5], [5, 0]]))
    assert.strictEqual(below, "M58 81H345L345 81H632V148H58Z")
    assert.strictEqual(above, "M58 14H345L345 81H632L632 81H345L345 81H58Z")
  })

  it("mark boundaries, draw the limit, and end at a round number", () => {
    const svg = drawn([[1, 23]], { marks: [2], limit: { name: "budget", value: 41 } })
    assert.include(svg, "boundary at request 2")
    assert.include(svg, ">50<")
    assert.include(svg, "class=\"limit\"")
    assert.notInclude(drawn([[1, 23]]), "boundary")
  })

  it("are drawn where there is nothing", () => {
    assert.notMatch(drawn([[]]), /NaN|Infinity/)
    assert.notMatch(drawn([[0, 0]]), /NaN|Infinity/)
  })
})

describe.skipIf(!isInstalled)("the report in a browser", () => {
  let program: Program.Program
  let browser: Browser
  let report: {
    readonly requests: number
    readonly policies: ReadonlyArray<{
      readonly policy: string
      readonly rows: ReadonlyArray<Record<string, number> & { readonly boundary: object | null }>
      readonly totals: Record<string, number | null>
    }>
  }
  const said: Array<string> = []

  beforeAll(async () => {
    program = await Program.make()
    const session = openAiChat({ count: 60, characters: 2_000 }).replaceAll("grep", "grep</script><b>")
    program.write("a&b.json", session)
    const args = ["compare", "a&b.json", "--json", "--html", "report.html", "--max-tokens", "12000", "--probes", "12"]
    const { code, stderr, stdout } = await program.run([...args, "--policy", "contextSimple", "--policy", "none"])
    assert.strictEqual(code, 0, stderr)
    report = JSON.parse(stdout)
    browser = await chromium.launch({
      executablePath,
      args: [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync"
      ]
    })
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    program.remove()
  })

  const open = async (
    options: { readonly colorScheme?: "light" | "dark"; readonly file?: string } = {}
  ): Promise<Page> => {
    const page = await browser.newPage({ colorScheme: options.colorScheme ?? "light" })
    page.on("console", (message) => said.push(message.text()))
    page.on("pageerror", (error) => said.push(error.message))
    page.on("request", (request) => {
      if (!/^(?:file|data):/.test(request.url())) said.push(`asked for ${request.url()}`)
    })
    await page.goto(pathToFileURL(options.file ?? join(program.folder, "report.html")).href)
    return page
  }

  const reading = async (page: Page, policy: string, key: string): Promise<string | null> =>
    page.locator(`section[data-policy=${policy}] output [data-key=${key}]`).getAttribute("value")

  it("says nothing on the console and asks for nothing, and a fault in it would be heard", async () => {
    said.length = 0
    const page = await open()
    assert.strictEqual(await page.locator("section[data-policy]").count(), 2)
    assert.strictEqual(await page.locator("svg").count(), 8)
    assert.deepStrictEqual(said, [])
    const broken = join(program.folder, "broken.html")
    const text = readFileSync(join(program.folder, "report.html"), "utf8")
    writeFileSync(broken, text.replace("\"use strict\"", "\"use strict\"; missing()"))
    await open({ file: broken })
    assert.match(said.join(), /missing is not defined/)
  })

  it("has the numbers of the JSON in its totals", async () => {
    const page = await open()
    for (const { policy, totals } of report.policies) {
      const cells = page.locator(`table.totals tr[data-policy=${policy}] data`)
      const shown = await cells.evaluateAll((all) =>
        all.map((each) => [each.getAttribute("data-key"), Number(each.getAttribute("value"))])
      )
      assert.isAbove(shown.length, 9)
      for (const [key, value] of shown) assert.strictEqual(value, totals[String(key)], `${policy} ${key}`)
    }
    const cost = await page.locator("table.totals tr[data-policy=none] [data-key=cost]").textContent()
    assert.match(cost!, /^\$\d+\.\d+$/)
  })

  it("is led by the keyboard from request to request, with the numbers of the JSON", async () => {
    const page = await open()
    const { policy, rows } = report.policies[0]!
    const focused = page.locator(`section[data-policy=${policy}] input[type=range]:focus`)
    // Reached by the tabulator key alone.
    for (let at = 0; at < 20 && await focused.count() === 0; at++) await page.keyboard.press("Tab")
    const cursor = page.locator(`section[data-policy=${policy}] .cursor`).first()
    const places = new Set<string | null>()
    const check = async (request: number) => {
      assert.strictEqual(await reading(page, policy, "request"), String(request))
      for (const key of ["viewTokens", "cached", "written", "fresh", "output", "waste", "cost"]) {
        assert.strictEqual(await reading(page, policy, key), String(rows[request - 1]![key]), `${request} ${key}`)
      }
      places.add(await cursor.getAttribute("x1"))
    }
    await check(report.requests)
    await page.keyboard.press("Home")
    await check(1)
    for (let request = 2; request <= 6; request++) {
      await page.keyboard.press("ArrowRight")
      await check(request)
    }
    await page.keyboard.press("End")
    await check(report.requests)
    assert.strictEqual(places.size, 7)
    assert.strictEqual(await reading(page, "none", "request"), String(report.requests))
  })

  it("lists the entries of the chosen request with their state and why", async () => {
    const page = await open()
    const { policy, rows } = report.policies[0]!
    const section = page.locator(`section[data-policy=${policy}]`)
    await section.locator("summary").focus()
    await page.keyboard.press("Enter")
    const listed = section.locator("tbody.list tr")
    const first = rows.findIndex(({ boundary }) => boundary !== null) + 1
    const choose = async (request: number) => {
      await section.locator("input[type=range]").fill(String(request))
      return listed.evaluateAll((all) =>
        all.map((line) =>
          Array.from<{ readonly textContent: string }, string>(line.children, (each) => each.textContent)
        )
      )
    }
    const before = await choose(first - 1)
    assert.isTrue(before.every(([, , , whole, now, state]) => state === "whole" && whole === now))
    assert.deepInclude(before[0]!, "system prompts are never changed")
    assert.isTrue(before.some(([, , what]) => what === "result of grep</script><b>"))
    const after = await choose(first)
    assert.isAbove(after.length, before.length)
    const changed = after.filter(([, , , , , state]) => state !== "whole")
    assert.isAbove(changed.length, 0)
    for (const [, , , , , , why] of changed) assert.include(why, `at request ${first}`)
    const tokens = after.reduce((sum, [, , , , now]) => sum + Number(now!.replaceAll(",", "")), 0)
    assert.strictEqual(tokens, rows[first - 1]!["viewTokens"])
    await section.locator("input[type=checkbox]").press("Space")
    assert.strictEqual(await listed.count(), changed.length)
  })

  it("is chosen by a click in a chart", async () => {
    const page = await open()
    const chart = page.locator("section[data-policy=none] svg").first()
    const box = (await chart.boundingBox())!
    await chart.click({ position: { x: box.width * 0.5, y: box.height / 2 } })
    const request = Number(await reading(page, "none", "request"))
    assert.closeTo(request, report.requests * (320 - 58) / (632 - 58), 1)
  })

  it("is dark where that is asked for, and readable in both", async () => {
    const colours = async (colorScheme: "light" | "dark") => {
      const page = await open({ colorScheme })
      return page.evaluate<{ readonly page: number; readonly ink: number; readonly soft: number }>(`(() => {
        const style = getComputedStyle(document.body)
        const light = (colour) => {
          const [r, g, b] = colour.match(/\\d+/g).map((each) => (each / 255) ** 2.2)
          return 0.2126 * r + 0.7152 * g + 0.0722 * b
        }
        const soft = light(getComputedStyle(document.querySelector("p")).color)
        return { page: light(style.backgroundColor), ink: light(style.color), soft }
      })()`)
    }
    const contrast = (a: number, b: number) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    const light = await colours("light")
    const dark = await colours("dark")
    assert.isAbove(light.page, 0.8)
    assert.isBelow(dark.page, 0.1)
    for (const { ink, page, soft } of [light, dark]) {
      assert.isAbove(contrast(ink, page), 7)
      assert.isAbove(contrast(soft, page), 4.5)
    }
  })
})
