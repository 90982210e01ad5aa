import * as Effect from "effect/Effect"
import * as SessionLog from "../SessionLog.ts"
import type * as SessionStore from "../SessionStore.ts"
import type * as Manager from "./manager.ts"

/** Reads a session that goes on, and says how it is written from there. */
export const read = (log: SessionStore.Log): Effect.Effect<Manager.Begun, SessionLog.ReadError> =>
  Effect.map(SessionLog.read(log), ({ events, state }) => ({
    state,
    log,
    codec: {
      encode: SessionLog.encode,
      // The log was whole when it was opened: that it cannot be read any more is nobody's outcome to handle.
      whole: Effect.map(Effect.orDie(SessionLog.readWhole(log, events)), (read) => read.state)
    }
  }))
