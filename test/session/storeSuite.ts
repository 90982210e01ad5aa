import { describe, it } from "@effect/vitest"
import type * as SessionStore from "effect-compaction/SessionStore"
import * as Testing from "effect-compaction/testing"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

/** What every store promises. `layer` is a new, empty one. */
export const suite = (name: string, layer: Layer.Layer<SessionStore.SessionStore, unknown>): void => {
  describe(`a store of sessions: ${name}`, () => {
    for (const { check, name } of Testing.sessionStore) {
      it.effect(name, () => Effect.provide(check, layer, { local: true }))
    }
  })
}
