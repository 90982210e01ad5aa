/** What a minimal app with the one line carries with it; `npm run size` prints the figures of docs/getting-started.md. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

interface Bundle {
  readonly with: number
  readonly without: number
  readonly modules: ReadonlyArray<{ readonly path: string; readonly bytes: number }>
}

describe("the bundle of an app that opens no session", () => {
  it.effect(
    "has no log, no store, no policy file and no preset in it, and is as small as it was",
    () =>
      Effect.gen(function*() {
        const text = yield* Effect.promise(() =>
          new Promise<string>((resolve, reject) => {
            execFile(
              process.execPath,
              [".ci/bundle.mjs", "--json"],
              { cwd: root },
              (error, stdout) => error === null ? resolve(stdout) : reject(error)
            )
          })
        )
        const bundle = JSON.parse(text) as Bundle // What the program prints.
        const paths = bundle.modules.map(({ path }) => path)
        assert.include(paths, "src/CompactedModel.ts")
        const needless =
          /^src\/(store|format|simulate|cli)\/|^src\/(Session(Log|Store)|Conversations|Policy|Recall)\.ts$/
        assert.deepStrictEqual(
          paths.filter((path) => needless.test(path)),
          []
        )
        assert.deepStrictEqual(paths.filter((path) => /^src\/policy\/(presets|source|json|text)\.ts$/.test(path)), [])
        assert.isBelow(bundle.with - bundle.without, 265_000)
      }),
    60_000
  )
})
