import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Postgres from "../session/postgres.ts"
import { killing } from "./killing.ts"

describe.skipIf(Postgres.url === undefined)(Postgres.title("a cluster whose runners are killed"), () => {
  it.live("loses nothing that was acknowledged, and answers nothing twice", () =>
    Effect.gen(function*() {
      const { kills, moved, turns, wrong } = yield* killing({
        runners: 2,
        conversations: 20,
        milliseconds: 15_000,
        every: 5_000
      })
      assert.deepStrictEqual(wrong, [])
      assert.isAbove(kills, 0)
      assert.isAbove(turns, 20)
      assert.isAbove(moved.length, 0)
    }).pipe(Effect.scoped, Effect.provide(Postgres.layer())), 180_000)
})
