import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Decision from "../Decision.ts"
import * as SpillStore from "../SpillStore.ts"
import * as Transcript from "../Transcript.ts"
import * as Commit from "./commit.ts"
import * as Growing from "./growing.ts"
import * as Runtime from "./runtime.ts"
import type * as Turn from "./turn.ts"

/**
 * The texts of a session that decisions point at, by key: those that have yet to be written, and those that are known to
 * be. It is a cache: writing is idempotent, so where nothing is known all are written again.
 */
export interface Spills {
  readonly pending: Map<string, Transcript.Entry>
  readonly written: Set<string>
}

/**
 * Takes note of the texts that decisions point at. A result that has left the view points at nothing.
 */
const add = (
  self: Spills,
  runtime: Runtime.Runtime,
  state: Turn.Turn["state"],
  decisions: ReadonlyArray<Decision.Decision>
): void => {
  const pointing = decisions.filter((decision) => "locator" in decision && decision.locator !== undefined)
  if (pointing.length === 0) return
  const { index, transcript } = Runtime.layoutOf(runtime, state)
  for (const decision of pointing) {
    if ("seqs" in decision || index.removed.has(decision.seq)) continue
    const entry = transcript.entries[decision.seq]
    // A session that had a store may be restored where there is none.
    if (entry === undefined || runtime.locate(entry) === undefined) continue
    const key = SpillStore.keyOf(entry)
    if (!self.written.has(key)) self.pending.set(key, entry)
  }
}

/** The texts of the session as it is in a turn. */
const of = (turn: Turn.Turn): Spills => {
  const { runtime, state } = turn
  const { caches } = runtime
  if (caches.spills === undefined) {
    caches.spills = { pending: new Map(), written: new Set() }
    add(caches.spills, runtime, state, Growing.toArray(state.decisions))
  } else {
    for (const event of turn.events) {
      if (event._tag === "Decided") add(caches.spills, runtime, state, event.decisions)
      else if (event._tag === "Appended") add(caches.spills, runtime, state, event.caps)
    }
  }
  return caches.spills
}

const reasonOf = (cause: Cause.Cause<SpillStore.SpillError>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/**
 * Writes the texts that are not written yet. One that cannot be written is named and tried again at the next request; nothing
 * fails. A request that is made again names nothing again.
 */
export const writeOf = (turn: Turn.Turn, isSilent = false): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { runtime } = turn
    const self = of(turn)
    return Effect.forEach(Array.from(self.pending), ([key, entry]) =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(runtime.spillStore.put(key, Transcript.textOf(entry)))
        if (Exit.isSuccess(exit)) {
          self.pending.delete(key)
          self.written.add(key)
          return
        }
        if (isSilent) return
        const reason = reasonOf(exit.cause)
        yield* Effect.logWarning("the full text of a tool result could not be stored", { key, reason })
        const event = { _tag: "SpillFailed", seq: entry.seq, key, reason } as const
        turn.told.push(event)
        yield* Commit.publish(runtime, event)
      }), { discard: true })
  })
