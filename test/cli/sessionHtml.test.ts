import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { chromium } from "playwright-core"
import * as Program from "./program.ts"

const executablePath = "/usr/bin/chromium"

let program: Program.Program
let directory = ""
const views: Array<{ readonly price: number; readonly seqs: ReadonlyArray<number> }> = []

/** A session of twenty requests: one boundary by hand, a rewind, and an undo at its end that nothing was sent of. */
const filled = Effect.gen(function*() {
  const settings = { maxTokens: 10_000, protectedRecent: 0, targetUsage: 0.1 }
  const manager = yield* ContextManager.open("one", { settings })
  yield* manager.append("Find out why the build fails.")
  const line = (at: number) =>
    manager.append([{ role: "assistant", content: `Line ${at}: ${"</script> ".repeat(80)}` }])
  const send = Effect.gen(function*() {
    yield* manager.request
    const { items, price } = yield* manager.view
    views.push({ price, seqs: items.map(({ seq }) => seq) })
  })
  for (let at = 0; at < 20; at++) {
    yield* line(at)
    if (at === 8) yield* manager.rewind(7)
    if (at === 15) yield* manager.compactNow()
    yield* send
  }
  yield* manager.undo(1)
  yield* manager.flush
}).pipe(Effect.scoped)

beforeAll(async () => {
  program = await Program.make()
  const root = join(program.folder, "sessions")
  directory = join(root, "one")
  await Effect.runPromise(
    filled.pipe(
      Effect.provide(Layer.provideMerge(SessionStore.layerFile(root, { fsync: "never" }), NodeServices.layer))
    )
  )
}, 60_000)
afterAll(() => program.remove())

interface Data {
  readonly moments: ReadonlyArray<{ readonly request: number; readonly tokens: number; readonly said: string }>
  readonly boundaries: ReadonlyArray<Record<string, number | string>>
  readonly entries: ReadonlyArray<{ readonly seq: number; readonly tokens: number; readonly text: string }>
  readonly changes: ReadonlyArray<
    { readonly seq: number; readonly request: number; readonly state: string; readonly tokens: number }
  >
}

describe("session html", () => {
  it("tells request by request what the log says, and changes nothing", async () => {
    const before = readdirSync(directory).map((name) => readFileSync(join(directory, name), "utf8"))
    const { code, stderr, stdout } = await program.run(["session", "html", directory, "story.html", "--json"])
    assert.strictEqual(code, 0, stderr)
    const story: Data = JSON.parse(stdout)
    assert.deepStrictEqual(readdirSync(directory).map((name) => readFileSync(join(directory, name), "utf8")), before)
    assert.strictEqual(story.moments.length, views.length + 1)
    // What stands at each request, by the changes up to it, is what the session showed there.
    for (const [index, { price, seqs }] of views.entries()) {
      const now = new Map<number, number>()
      for (const { request, seq, tokens } of story.changes) if (request <= index + 1) now.set(seq, tokens)
      assert.strictEqual(story.moments[index]?.tokens, price)
      assert.strictEqual(
        Array.from(now.values()).reduce((sum, tokens) => sum + tokens, 0),
        price,
        `request ${index + 1}`
      )
      assert.strictEqual(Array.from(now.values()).filter((tokens) => tokens > 0).length, seqs.length)
    }
    assert.deepStrictEqual(story.boundaries.map(({ request }) => request), [16])
    const [boundary] = story.boundaries
    assert.isAbove(Number(boundary?.["freed"]), 0)
    assert.strictEqual(boundary?.["saved"], Number(boundary?.["freed"]) * (story.moments.length + 1 - 16))
    assert.isAbove(Number(boundary?.["rewritten"]), 0)
    assert.include(story.moments[8]?.said, "the history was cut to 7 entries")
    assert.match(story.moments.at(-1)?.said ?? "", /boundaries from generation 1 on were taken back; not sent yet/)
    const page = await program.run(["session", "html", directory])
    assert.strictEqual(page.stdout.trim(), readFileSync(join(program.folder, "story.html"), "utf8").trim())
    assert.strictEqual((await program.run(["session", "html", join(program.folder, "nothing")])).code, 1)
  }, 60_000)

  it.skipIf(!existsSync(executablePath))("shows in a browser what is clicked, and asks for nothing", async () => {
    await program.run(["session", "html", directory, "story.html"])
    const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    const browser = await chromium.launch({ executablePath, args })
    try {
      const page = await browser.newPage()
      const said: Array<string> = []
      page.on("console", (message) => said.push(message.text()))
      page.on("pageerror", (error) => said.push(error.message))
      page.on("request", (request) => {
        if (!/^(?:file|data):/.test(request.url())) said.push(`asked for ${request.url()}`)
      })
      await page.goto(pathToFileURL(join(program.folder, "story.html")).href)
      assert.strictEqual(await page.locator("h2").textContent(), "one as it was sent")
      await page.locator(".boundaries tr[data-request=\"16\"]").click()
      assert.strictEqual(await page.locator("output [data-key=request]").getAttribute("value"), "16")
      assert.strictEqual(
        await page.locator("output [data-key=tokens]").getAttribute("value"),
        String(views[15]?.price)
      )
      const box = (await page.locator("canvas").boundingBox())!
      // The newest entries stand at the bottom, the first ones on the left.
      await page.locator("canvas").click({ position: { x: box.width * 0.85, y: box.height * 0.3 } })
      assert.match((await page.locator(".before").textContent()) ?? "", /^Line \d+: <\/script>/)
      assert.deepStrictEqual(said, [])
    } finally {
      await browser.close()
    }
  }, 120_000)
})
