import type * as SessionStore from "effect-compaction/SessionStore"

/** A process that opens sessions: one of Linux on its own, of which some may be another. */
export const holder = (given: Partial<SessionStore.Holder> = {}): SessionStore.Holder => ({
  pid: 1,
  host: "here",
  boot: null,
  machine: null,
  space: null,
  isAlive: () => true,
  begunAt: () => null,
  nonces: new Set(),
  ...given
})
