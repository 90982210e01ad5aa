import type * as ContextManager from "effect-compaction/ContextManager"
import * as Effect from "effect/Effect"
import { bytesOf, prompt, turn, user, words } from "./conversation.ts"

const text = <E>(manager: ContextManager.ContextManager<E>, budget: number) =>
  Effect.gen(function*() {
    const result = yield* Effect.result(manager.requestWith({ budget }))
    const { counts, generation, level, overrides, streak } = yield* manager.status
    return {
      // A failure is one of the answers too.
      request: result._tag === "Failure" ? String(result.failure) : bytesOf(result.success.prompt),
      count: result._tag === "Failure" ? null : result.success.count.tokens,
      status: { counts, generation, level, overrides, streak }
    }
  })

/** What a session answers from here on: as it stands, after more of it, and under a budget that forces another pass. */
export const answersOf = <E>(manager: ContextManager.ContextManager<E>) =>
  Effect.gen(function*() {
    const now = yield* text(manager, 100_000)
    yield* Effect.orDie(manager.append(prompt(user(words("more", 500)), ...turn("more", 3_000))))
    const later = yield* text(manager, 100_000)
    const forced = yield* text(manager, 2_500)
    return { now, later, forced, saved: yield* manager.export }
  })
