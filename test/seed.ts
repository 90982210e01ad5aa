/** The defaults of `context-simple`, for tests whose numbers were made for them; the default is `Policy.recommended`. */
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import type * as Settings from "effect-compaction/Settings"

const { settings: standard } = Policy.options(Policy.contextSimple)

/** Its settings, under others. With the hybrid meter comes its gate, with the calibrated one its size in the provider's tokens. */
export const seed = (settings: Settings.Input = {}): Settings.Input => ({
  ...standard,
  ...(settings.meter === "hybrid" ? { provenanceGate: true } : {}),
  ...(settings.meter === "calibrated" ? { sizing: "provider" } : {}),
  ...settings
})

/** Its settings and its ladder, under the options of a manager. */
export const seeded = <E = never, R = never, P = Policy.PassError>(
  options: Policy.Options<E, R, P> = {}
): Policy.Options<E, R, P> => ({
  ...(options.pass === undefined ? { ladder: Ladder.progressive } : {}),
  ...options,
  settings: seed(options.settings)
})
