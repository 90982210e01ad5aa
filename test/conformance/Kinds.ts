import * as Effect from "effect/Effect"
import { isObject, type Kind, type Outcome } from "./Case.ts"
import * as Ladder from "./Ladder.ts"
import * as Meter from "./Meter.ts"
import * as Prune from "./Prune.ts"
import * as Retired from "./Retired.ts"

/** Every kind of case file there is. */
export const all: ReadonlyArray<Kind> = [
  Ladder.kind,
  Meter.kind,
  Prune.kind,
  ...Retired.kinds
]

/** Runs the cases of a file, one of a kind or several under keys of their own; none when no kind knows it. */
export const run = (file: unknown): Effect.Effect<ReadonlyArray<Outcome>> => {
  const kind = all.find((each) => each.recognises(file))
  if (kind !== undefined) return kind.run(file)
  const parts = isObject(file) ? Object.values(file) : []
  return Effect.map(Effect.forEach(parts, run), (outcomes) => outcomes.flat())
}
