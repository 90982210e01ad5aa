/**
 * Says on a terminal how far a long replay is.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Shown from "./Shown.ts"

/** Nothing is shown before this; milliseconds. */
const patience = 500

/** The time between two updates; milliseconds. */
const interval = 100

/** Takes the line back to its start and empties it. */
const clear = "\r\u001b[2K"

/** A line on standard error that is written over again and again. */
export interface Progress {
  readonly update: (text: string) => Effect.Effect<void>
  /** Removes the line, if there is one. */
  readonly end: Effect.Effect<void>
}

const silent: Progress = { update: () => Effect.void, end: Effect.void }

/** Makes a progress line; it stays silent where standard error is no terminal, and for what takes no time. */
export const make: Effect.Effect<Progress, never, Stdio.Stdio> = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  if (!(yield* stdio.stderrIsTerminal)) return silent
  // A terminal that went away is no reason to stop.
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr()))
  let due = (yield* Clock.currentTimeMillis) + patience
  let shown = false
  return {
    update: (text) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (now < due) return Effect.void
        due = now + interval
        shown = true
        return write(`${clear}${Shown.line(text)}`)
      }),
    end: Effect.suspend(() => {
      if (!shown) return Effect.void
      shown = false
      return write(clear)
    })
  }
})
