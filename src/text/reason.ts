import * as Inspectable from "effect/Inspectable"
import * as Predicate from "effect/Predicate"

/** What an error says, whatever was thrown or failed with. */
export const reasonOf = (error: unknown): string =>
  Predicate.hasProperty(error, "message") && typeof error.message === "string"
    ? error.message
    : Inspectable.toStringUnknown(error)
