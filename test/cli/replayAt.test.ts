import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Program from "./program.ts"
import { openAiChat } from "./sessions.ts"

let program: Program.Program
beforeAll(async () => {
  program = await Program.make()
  program.write("long.json", openAiChat({ count: 60, characters: 2_000 }))
})
afterAll(() => program.remove())

const replay = (...args: ReadonlyArray<string>) =>
  program.run(["replay", "--max-tokens", "12000", "--policy", "contextSimple", ...args, "long.json"])

describe("replay --at", () => {
  it("says of a message what the request there does", async () => {
    const { rows } = JSON.parse((await replay("--json")).stdout)
    // Two messages a turn behind the first two: request n is made after 2n of them.
    const first = rows.find(({ boundary }: { readonly boundary: object | null }) => boundary !== null)
    assert.isAbove(first.request, 1)
    const at = await replay("--json", "--at", String(2 * first.request))
    assert.strictEqual(at.code, 0, at.stderr)
    const ahead = JSON.parse(at.stdout)
    const { after, before, freed, removed, truncated } = first.boundary
    assert.deepInclude(ahead, {
      file: "long.json",
      at: 2 * first.request,
      policy: "contextSimple",
      outcome: "compact",
      after,
      before,
      freed
    })
    assert.strictEqual(ahead.entries.removed.length, removed)
    assert.isAtLeast(ahead.entries.shortened.length, truncated)
    assert.notMatch(ahead.rungs.join(), /rung/)
    assert.isAbove(ahead.cost, 0)
    const early = JSON.parse((await replay("--json", "--at", String(2 * first.request - 2))).stdout)
    assert.deepInclude(early, { outcome: "nothing", reason: "below the trigger", freed: 0, cost: 0 })
    const text = await replay("--at", String(2 * first.request))
    assert.include(text.stdout, `long.json, after ${2 * first.request} messages`)
    assert.match(text.stdout, /^pass +for pressure: compacts$/m)
  }, 120_000)

  it("refuses a message that is not there", async () => {
    const far = await replay("--at", "1000")
    assert.deepInclude(far, { code: 1, stdout: "", stderr: "long.json: --at 1000: it has 123 messages\n" })
    assert.strictEqual((await replay("--at", "0")).code, 2)
  }, 60_000)
})
