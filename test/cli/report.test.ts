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

describe("names of files", () => {
  it("leave out the folders, but those that tell one from another", () => {
    assert.strictEqual(Html.nameOf("/a/b/c.jsonl"), "c.jsonl")
    assert.strictEqual(Html.nameOf("c.jsonl", ["c.jsonl", "/a/d.jsonl"]), "c.jsonl")
    const files = ["/x/one/log.jsonl", "/x/two/log.jsonl", "/y/two/log.jsonl"]
    assert.deepStrictEqual(files.map((file) => Html.nameOf(file, files)), [
      "one/log.jsonl",
      "x/two/log.jsonl",
      "y/two/log.jsonl"
    ])
    assert.strictEqual(Html.nameOf("contextSimple", ["contextSimple", "./contextSimple.json"]), "contextSimple")
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

  it("of a scatter lie where their numbers say, and each has its name", () => {
    const dots = [[0.5, 0.8], [1, 1], [1, 1]].map(([x = 0, y = 0], at) => ({
      name: `n${at}`,
      colour: `p${at}`,
      tag: `${at}`,
      x,
      y
    }))
    const svg = Chart.scatter({ title: "T", x: { name: "cost", text: String }, y: { name: "kept" }, dots })
    const circles = Array.from(svg.matchAll(/cx="([\d.]+)" cy="([\d.]+)"/g), ([, x, y]) => [Number(x), Number(y)])
    assert.deepStrictEqual(circles, [[300, 111.6], [542, 14], [542, 14]])
    const names = Array.from(svg.matchAll(/y="([\d.]+)">n\d</g), ([, y]) => Number(y))
    assert.isAtLeast(Math.abs(names[1]! - names[2]!), 11)
    assert.notMatch(
      Chart.scatter({ title: "T", x: { name: "", text: String }, y: { name: "" }, dots: [] }),
      /NaN|Infinity/
    )
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
  let story: {
    readonly requests: number
    readonly boundaries: ReadonlyArray<Record<string, number>>
    readonly entries: ReadonlyArray<{ readonly seq: number; readonly tokens: number; readonly text: string }>
    readonly changes: ReadonlyArray<
      { readonly seq: number; readonly request: number; readonly state: string; readonly text: string | null }
    >
    readonly rows: ReadonlyArray<{ readonly request: number; readonly viewTokens: number }>
  }
  const said: Array<string> = []

  beforeAll(async () => {
    program = await Program.make()
    const session = openAiChat({ count: 60, characters: 2_000 }).replaceAll("grep", "grep</script><b>")
    program.write("a&b.json", session)
    program.write("long/a&b.json", session)
    program.write("many.json", openAiChat({ count: 400, characters: 600 }))
    const args = ["compare", "a&b.json", "--json", "--html", "report.html", "--max-tokens", "12000", "--probes", "12"]
    const { code, stderr, stdout } = await program.run([...args, "--policy", "contextSimple", "--policy", "none"])
    assert.strictEqual(code, 0, stderr)
    report = JSON.parse(stdout)
    const told = await program.run([
      "replay",
      "--json",
      "--html",
      "story.html",
      "--max-tokens",
      "12000",
      "--policy",
      "contextSimple",
      "a&b.json"
    ])
    assert.strictEqual(told.code, 0, told.stderr)
    story = JSON.parse(told.stdout)
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
    page.locator(`.readings tr[data-policy=${policy}] [data-key=${key}]`).getAttribute("value")

  const requestOf = async (page: Page): Promise<number> =>
    Number(await page.locator("output [data-key=request]").getAttribute("value"))

  /** What the cells of every row of a list say that is in the page now. */
  const cellsOf = async (page: Page): Promise<ReadonlyArray<ReadonlyArray<string>>> =>
    page.locator(".entries tbody tr:not(.space)").evaluateAll((all) =>
      all.map((line) => Array.from<{ readonly textContent: string }, string>(line.children, (each) => each.textContent))
    )

  it("says nothing on the console and asks for nothing, and a fault in it would be heard", async () => {
    said.length = 0
    const page = await open()
    assert.strictEqual(await page.locator("article.comparison").count(), 1)
    assert.strictEqual(await page.locator("figure svg").count(), 5)
    await open({ file: join(program.folder, "story.html") })
    assert.deepStrictEqual(said, [])
    const broken = join(program.folder, "broken.html")
    const text = readFileSync(join(program.folder, "report.html"), "utf8")
    writeFileSync(broken, text.replace("\"use strict\"", "\"use strict\"; missing()"))
    await open({ file: broken })
    assert.match(said.join(), /missing is not defined/)
  })

  it("has the numbers of the JSON in its totals, cheapest first", async () => {
    const page = await open()
    for (const { policy, totals } of report.policies) {
      const cells = page.locator(`table.totals tr[data-policy=${policy}] data`)
      const shown = await cells.evaluateAll((all) =>
        all.map((each) => [each.getAttribute("data-key"), Number(each.getAttribute("value"))])
      )
      assert.isAbove(shown.length, 9)
      for (const [key, value] of shown) assert.strictEqual(value, totals[String(key)], `${policy} ${key}`)
    }
    const costs = await page.locator("table.totals [data-key=cost]").evaluateAll((all) =>
      all.map((each) => Number(each.getAttribute("value")))
    )
    assert.deepStrictEqual(costs, costs.toSorted((a, b) => a - b))
    const cost = await page.locator("table.totals tr[data-policy=none] [data-key=cost]").textContent()
    assert.match(cost!, /^\$\d+\.\d+$/)
  })

  it("fits a window of 1,280 pixels with every preset", async () => {
    const all = await program.run([
      "compare",
      "--html",
      "all.html",
      "--max-tokens",
      "12000",
      "--probes",
      "4",
      "long/a&b.json"
    ])
    assert.strictEqual(all.code, 0, all.stderr)
    const page = await open({ file: join(program.folder, "all.html") })
    await page.setViewportSize({ width: 1_280, height: 800 })
    assert.strictEqual(await page.locator("table.totals tbody tr").count(), 11)
    assert.isAtMost(Number(await page.evaluate("document.documentElement.scrollWidth")), 1_280)
    assert.strictEqual(await page.locator("h2").textContent(), "a&b.json")
  }, 60_000)

  it("lays policies over one another, chosen by a click, on a scale that fits them", async () => {
    const page = await open()
    const lines = page.locator("svg[aria-label^=Occupied] path.line")
    assert.strictEqual(await lines.count(), 2)
    const shown = () =>
      page.evaluate<number>(`[...document.querySelectorAll("svg[aria-label^=Occupied] path.line")]
        .filter((each) => each.style.display !== "none").length`)
    const top = () => page.locator("svg[aria-label^=Occupied]").getAttribute("data-top")
    assert.strictEqual(await shown(), 2)
    const both = Number(await top())
    await page.locator("table.totals tr[data-policy=none] input").click()
    assert.strictEqual(await shown(), 1)
    assert.isBelow(Number(await top()), both)
    const { rows } = report.policies.find(({ policy }) => policy === "contextSimple")!
    assert.isAtLeast(Number(await top()), Math.max(...rows.map((row) => row["viewTokens"]!)))
    assert.strictEqual(await page.locator(".readings tbody tr").count(), 1)
    assert.isTrue((await page.locator(".dot[data-tag=\"1\"]").getAttribute("class"))!.includes("off"))
    await page.locator(".dot[data-tag=\"1\"] circle").click()
    assert.strictEqual(await shown(), 2)
    assert.strictEqual(Number(await top()), both)
  })

  it("has each policy in the scatter at what it costs and keeps", async () => {
    const page = await open()
    for (const [at, { totals }] of report.policies.entries()) {
      const dot = page.locator(`.dot[data-tag="${at}"]`)
      assert.strictEqual(Number(await dot.getAttribute("data-x")), totals["cost"])
      assert.strictEqual(Number(await dot.getAttribute("data-y")), totals["retained"])
    }
  })

  it("is led by the keyboard from request to request, with the numbers of the JSON", async () => {
    const page = await open()
    const focused = page.locator("input[type=range]:focus")
    // Reached by the tabulator key alone.
    for (let at = 0; at < 20 && await focused.count() === 0; at++) await page.keyboard.press("Tab")
    const cursor = page.locator(".cursor").first()
    const places = new Set<string | null>()
    const check = async (request: number) => {
      assert.strictEqual(await requestOf(page), request)
      for (const { policy, rows } of report.policies) {
        for (const key of ["viewTokens", "cached", "written", "fresh", "output", "waste", "cost"]) {
          assert.strictEqual(await reading(page, policy, key), String(rows[request - 1]![key]), `${request} ${key}`)
        }
      }
      places.add(await cursor.getAttribute("x1"))
    }
    await check(report.requests)
    await page.keyboard.press("Home")
    await check(1)
    for (let request = 2; request <= 4; request++) {
      await page.keyboard.press("ArrowRight")
      await check(request)
    }
    await page.keyboard.press("End")
    await check(report.requests)
    assert.strictEqual(places.size, 5)
  })

  it("lists the entries of the chosen request with their state and why", async () => {
    const page = await open()
    const { rows } = report.policies[0]!
    await page.locator("summary").focus()
    await page.keyboard.press("Enter")
    await page.locator("select").selectOption("0")
    const first = rows.findIndex(({ boundary }) => boundary !== null) + 1
    const choose = async (request: number) => {
      await page.locator("input[type=range]").fill(String(request))
      // As high as the list: every row is made.
      await page.evaluate(`(() => {
        const list = document.querySelector(".entries")
        list.style.maxHeight = "none"
        list.style.height = "9000px"
        list.dispatchEvent(new Event("scroll"))
      })()`)
      return cellsOf(page)
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
    await page.locator(".only").press("Space")
    assert.strictEqual(Number(await page.locator(".entries").getAttribute("data-rows")), changed.length)
  })

  it("is chosen by a click in a chart", async () => {
    const page = await open()
    const chart = page.locator("figure svg").first()
    const box = (await chart.boundingBox())!
    await chart.click({ position: { x: box.width * 0.5, y: box.height / 2 } })
    assert.closeTo(await requestOf(page), report.requests * (320 - 58) / (632 - 58), 1)
  })

  describe("the story", () => {
    const openStory = () => open({ file: join(program.folder, "story.html") })

    it("has the boundaries of the JSON, with what they cost and saved", async () => {
      const page = await openStory()
      assert.isAbove(story.boundaries.length, 1)
      for (const boundary of story.boundaries) {
        const row = page.locator(`.boundaries tr[data-request="${boundary["request"]}"]`)
        for (const key of ["before", "after", "rewritten", "cost", "saved", "spared"]) {
          assert.strictEqual(Number(await row.locator(`[data-key=${key}]`).getAttribute("value")), boundary[key], key)
        }
        const row0 = story.rows[boundary["request"]! - 1]!
        assert.strictEqual(boundary["after"], row0.viewTokens)
        assert.isAtMost(boundary["rewritten"]!, boundary["after"]!)
        assert.strictEqual(boundary["saved"]! % boundary["freed"]!, 0)
      }
    })

    it("shows what changed at a boundary, and of what is clicked the text before and after", async () => {
      const page = await openStory()
      const { request = 0 } = story.boundaries[0]!
      await page.locator(`.boundaries tr[data-request="${request}"]`).click()
      assert.strictEqual(await requestOf(page), request)
      const changed = story.changes.filter((each) => each.request === request && each.state !== "whole")
      assert.isAbove(Number(await page.locator(".entries").getAttribute("data-rows")), changed.length - 1)
      const cut = changed.find(({ text }) => text !== null)!
      const row = page.locator(".entries tbody tr").filter({
        has: page.locator(`td:first-child:text-is("${cut.seq}")`)
      })
      await row.click()
      assert.strictEqual(await page.locator(".before").textContent(), story.entries[cut.seq]!.text)
      assert.strictEqual(await page.locator(".after").textContent(), cut.text)
      assert.include((await page.locator(".who").textContent())!, `at request ${request}`)
    })

    it("is read by a click in the strip, whose colours say what is whole and what left", async () => {
      const page = await openStory()
      const canvas = page.locator("canvas")
      const box = (await canvas.boundingBox())!
      const whole = story.entries.reduce((sum, { tokens }) => sum + tokens, 0)
      let above = 0
      const target = story.changes.find(({ seq, state }) => state === "removed" && story.entries[seq]!.tokens > 200)!
      for (const { seq, tokens } of story.entries) if (seq < target.seq) above += tokens
      const y = (above + story.entries[target.seq]!.tokens / 2) / whole * box.height
      const x = (request: number) => (58 + (1_240 - 58 - 8) * (request - 0.5) / story.requests) / 1_240 * box.width
      const colourAt = (request: number) =>
        page.evaluate<string>(
          `[...document.querySelector("canvas").getContext("2d").getImageData(${Math.round(x(request))}, ${
            Math.round(y)
          }, 1, 1).data].join()`
        )
      await canvas.click({ position: { x: x(story.requests), y } })
      assert.strictEqual(await requestOf(page), story.requests)
      assert.include((await page.locator(".who").textContent())!, `entry ${target.seq},`)
      assert.strictEqual(await page.locator(".after").textContent(), "(not in the view)")
      await page.locator("input[type=range]").fill("1")
      assert.notStrictEqual(await colourAt(target.request - 1), await colourAt(target.request + 1))
    })

    it("makes only the rows that are seen of 800 entries", async () => {
      const { code, stderr } = await program.run([
        "replay",
        "--html",
        "big.html",
        "--max-tokens",
        "100000",
        "many.json"
      ])
      assert.strictEqual(code, 0, stderr)
      const page = await open({ file: join(program.folder, "big.html") })
      await page.locator("article input[type=checkbox]").click()
      const list = page.locator(".entries")
      await page.locator("input[type=range]").fill("401")
      assert.isAbove(Number(await list.getAttribute("data-rows")), 800)
      const count = () => list.locator("tbody tr").count()
      assert.isBelow(await count(), 80)
      await page.evaluate(`(() => {
        const list = document.querySelector(".entries")
        list.scrollTop = 1e9
        list.dispatchEvent(new Event("scroll"))
      })()`)
      assert.isBelow(await count(), 80)
      assert.strictEqual((await cellsOf(page)).at(-1)![0], "801")
    }, 60_000)
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
