import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Kinds from "./conformance/Kinds.ts"

const folder = fileURLToPath(new URL("fixtures/conformance", import.meta.url))
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".json")).sort()

describe("conformance", () => {
  it("has case files", () => assert.isAbove(files.length, 0))

  for (const file of files) {
    it.effect(file, () =>
      Effect.gen(function*() {
        const outcomes = yield* Kinds.run(JSON.parse(readFileSync(join(folder, file), "utf8")))
        assert.isAbove(outcomes.length, 0, "no kind of case knows this file")
        assert.deepStrictEqual(outcomes.filter(({ failures }) => failures.length > 0), [])
      }))
  }
})
