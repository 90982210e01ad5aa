/** A process that is killed when a call of a chat has returned: what was done in the call is not done again. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as child from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Program from "../session/program.ts"

const places = fs.mkdtempSync(path.join(os.tmpdir(), "app-killed-"))
let payer = ""

beforeAll(() => {
  payer = Program.build("test/app/payer.ts")
})

afterAll(() => {
  fs.rmSync(payer, { force: true })
  fs.rmSync(places, { recursive: true, force: true })
})

/** Runs it to its end, and tells by which signal it ended. */
const run = (directory: string, method: string) =>
  Effect.callback<string | null>((resume) => {
    child.spawn(process.execPath, [payer, directory, method], { stdio: ["ignore", "inherit", "inherit"] })
      .on("close", (code, signal) => resume(Effect.succeed(signal ?? `code ${code}`)))
  })

describe("a process that is killed by SIGKILL when a call has returned", () => {
  for (const method of ["generate", "stream"]) {
    it.live(`${method}: no tool runs again, and no answer is asked for again`, () =>
      Effect.gen(function*() {
        const directory = path.join(places, method)
        const ends = [yield* run(directory, method), yield* run(directory, method), yield* run(directory, method)]
        assert.deepStrictEqual(ends, ["SIGKILL", "SIGKILL", "code 0"])
        assert.deepStrictEqual(fs.readFileSync(`${directory}.journal`, "utf8").trim().split("\n"), [
          "opened with ",
          "asked",
          "paid",
          "opened with user, assistant, tool",
          "asked",
          "opened with user, assistant, tool, assistant"
        ])
      }), 60_000)
  }
})
