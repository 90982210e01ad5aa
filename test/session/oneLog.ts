import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"

/** A new log in memory, open until the scope closes. */
export const memory = Effect.flatMap(SessionStore.makeMemory, (store) => store.open("session"))

/** A store that has one log, open already, whatever it is asked for. */
const storeOf = (log: SessionStore.Log): SessionStore.SessionStore["Service"] => ({
  open: () => Effect.succeed(log),
  read: () => Effect.map(log.read({ whole: true }), (contents) => ({ ...contents, path: log.name, torn: 0 })),
  list: Effect.succeed(["session"])
})

/** Provides a store that has this log alone, open already. */
export const provide = (log: SessionStore.Log) => Effect.provideService(SessionStore.SessionStore, storeOf(log))
