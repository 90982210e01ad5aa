import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Session from "effect-compaction/format/Session"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import * as Replay from "../../src/cli/Replay.ts"
import { recorded } from "../format/recorded.ts"

const index = recorded("REPLAY.txt")
const names = existsSync(index)
  ? readFileSync(index, "utf8").split("\n").filter((line) => line !== "" && !line.startsWith("#"))
  : []

describe("recorded sessions", () => {
  if (names.length === 0) it.skip("the recorded sessions are not on this machine", () => {})
  for (const name of names) {
    it.effect(`${name}: each request fits or is named infeasible, and breaks no rule`, () =>
      Effect.gen(function*() {
        const session = yield* Format.read(recorded(name))
        const asked = session.messages.filter((message, at) => at > 0 && Session.isAnswer(message)).length
        for (const window of [32_000, 200_000]) {
          const { report } = yield* Replay.play(session, { policy: Replay.standardPolicy({ window }) })
          assert.strictEqual(report.requests, asked)
          assert.strictEqual(report.totals.violations, 0)
          for (const row of report.rows) {
            assert.isUndefined(row.error)
            assert.isTrue(row.viewTokens <= report.budget || row.infeasible !== null, `request ${row.request}`)
            assert.strictEqual(row.prefixKept === 1, row.prefixChanged === null, `request ${row.request}`)
          }
        }
      }).pipe(Effect.provide(NodeServices.layer)), 60_000)
  }
})
