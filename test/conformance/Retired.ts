import * as Effect from "effect/Effect"
import { isObject, type Kind } from "./Case.ts"

/**
 * Cases that describe a surface beside the session: a second fold, with a rule of its own for regions and a transaction over
 * it. A session has one state, one log and one rule now, and these cannot be said to a `ContextManager`.
 */
const retired = (
  name: string,
  why: string,
  recognises: (each: { readonly [key: string]: unknown }) => boolean
): Kind => ({
  name,
  recognises: (file) =>
    isObject(file) && Array.isArray(file.cases) && file.cases.length > 0
    && file.cases.every((each) => isObject(each) && recognises(each)),
  run: (file) =>
    Effect.sync(() =>
      // The shape was recognised by its cases.
      (file as { readonly cases: ReadonlyArray<{ readonly name?: string }> }).cases.map(({ name: of = "?" }) => ({
        name: of,
        failures: [],
        skipped: `${name}: ${why}`
      }))
    )
})

export const kinds: ReadonlyArray<Kind> = [
  retired(
    "pairing",
    "an answer belongs to one call (view.md), and not to all open ones of its id",
    (each) => "legal" in each
  ),
  retired(
    "region",
    "a span ends where the target is reached, and not at what is retained",
    (each) => "retain" in each && "nodes" in each
  ),
  retired(
    "fold",
    "a view is not rewritten by events of its own",
    (each) => "after" in each && "events" in each && !("final" in each)
  ),
  retired(
    "transaction",
    "there is no surface beside the session to run it on",
    (each) => "steps" in each && "log" in each
  )
]
