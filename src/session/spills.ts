import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as CompactionEvent from "../CompactionEvent.ts"
import type * as Decision from "../Decision.ts"
import * as SpillStore from "../SpillStore.ts"
import * as Transcript from "../Transcript.ts"

/**
 * The texts of a session that decisions point at, by key: those that have yet to be written, and those that are known to
 * be. It is no part of a saved session: writing is idempotent, so after a restore all are written again.
 */
export interface Spills {
  readonly pending: Map<string, Transcript.Entry>
  readonly written: Set<string>
}

export const make = (): Spills => ({ pending: new Map(), written: new Set() })

/**
 * Takes note of the texts that decisions point at, and returns the keys of those that are new. A result that has left the
 * view points at nothing.
 */
export const add = (
  self: Spills,
  store: SpillStore.Service,
  transcript: Transcript.Transcript,
  index: Decision.Index,
  decisions: ReadonlyArray<Decision.Decision>
): ReadonlyArray<string> => {
  const keys: Array<string> = []
  for (const decision of decisions) {
    if (!("locator" in decision) || decision.locator === undefined || index.removed.has(decision.seq)) continue
    const entry = transcript.entries[decision.seq]
    // A session that had a store may be restored where there is none.
    if (entry === undefined || SpillStore.locateIn(store)(entry) === undefined) continue
    const key = SpillStore.keyOf(entry)
    if (self.written.has(key) || self.pending.has(key)) continue
    self.pending.set(key, entry)
    keys.push(key)
  }
  return keys
}

const reasonOf = (cause: Cause.Cause<SpillStore.SpillError>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** Writes the texts of these keys. One that cannot be written is named and stays pending; nothing fails. */
export const write = (
  self: Spills,
  store: SpillStore.Service,
  keys: ReadonlyArray<string>,
  tell: (event: CompactionEvent.CompactionEvent) => Effect.Effect<void>
): Effect.Effect<void> =>
  Effect.forEach(keys, (key) =>
    Effect.gen(function*() {
      const entry = self.pending.get(key)
      if (entry === undefined) return
      const exit = yield* Effect.exit(store.put(key, Transcript.textOf(entry)))
      if (Exit.isSuccess(exit)) {
        self.pending.delete(key)
        self.written.add(key)
        return
      }
      const reason = reasonOf(exit.cause)
      yield* Effect.logWarning("the full text of a tool result could not be stored", { key, reason })
      yield* tell({ _tag: "SpillFailed", seq: entry.seq, key, reason })
    }), { discard: true })
