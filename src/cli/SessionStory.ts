/**
 * The story of a durable session, from its log: what was sent in each request, and what each boundary made of it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as CompactionEvent from "../CompactionEvent.ts"
import * as Estimator from "../Estimator.ts"
import * as Preview from "../ladder/preview.ts"
import type * as Session from "../Session.ts"
import * as Layout from "../session/layout.ts"
import * as SessionLog from "../SessionLog.ts"
import type * as SessionStore from "../SessionStore.ts"
import type * as View from "../View.ts"
import * as Wire from "../Wire.ts"
import * as Story from "./Story.ts"
import * as Table from "./Table.ts"
import * as Trace from "./Trace.ts"

type Compacted = typeof CompactionEvent.Compacted.Type

/** Several boundaries before one request are one for what is sent. */
const joined = (told: ReadonlyArray<Compacted>): Compacted | undefined =>
  told.length === 0 ? undefined : told.reduce((all, next) => ({
    ...next,
    before: all.before,
    freed: all.freed + next.freed,
    removed: all.removed + next.removed,
    truncated: all.truncated + next.truncated,
    stubbed: all.stubbed + next.stubbed,
    absorbed: all.absorbed + next.absorbed,
    level: Math.max(all.level, next.level)
  }))

/** A log names no rungs: it says how high the ladder was climbed. */
const rungOf = ({ absorbed, level }: Compacted): string => level > 0 || absorbed === 0 ? `rung ${level}` : "summary"

/** Gathers the parts of a story, event by event. */
const gathering = (priceOf: Estimator.Service["price"]) => {
  const tracing = Trace.make(true)
  const moments: Array<{ readonly request: number; readonly tokens: number; readonly said: string }> = []
  const boundaries: Array<Story.Made> = []
  let layout: Layout.Layout | undefined
  let seen: View.View | undefined
  let told: Array<Compacted> = []
  let words: Array<string> = []
  let isNew = false
  const request = (state: Session.State, says: ReadonlyArray<string>) => {
    const number = moments.length + 1
    layout = Layout.follow(layout, state, priceOf, Wire.all)
    const view = Layout.viewOf(layout)
    tracing.note(number, view)
    const boundary = joined(told)
    if (boundary !== undefined) {
      const { after, before, freed } = boundary
      const kept = seen === undefined ? 0 : Preview.keptOf(seen, view)
      const rewritten = Math.max(0, after - kept)
      boundaries.push({ request: number, rung: rungOf(boundary), before, after, freed, rewritten })
    }
    const made = Story.saidOf({ boundary: boundary ?? null, skipped: null, infeasible: null })
    moments.push({
      request: number,
      tokens: view.price,
      said: [...(made === "" ? [] : [made]), ...words, ...says].join("; ")
    })
    seen = view
    told = []
    words = []
    isNew = false
  }
  const drop = (from: number, why: string) => {
    tracing.drop(moments.length + 1, from)
    words.push(why)
  }
  const take = (event: Session.Event, state: Session.State): void => {
    switch (event._tag) {
      case "Sent":
        // The same request once more is none of its own.
        if (!event.again || moments.length === 0) request(state, [])
        return
      case "Decided":
        told.push(event.told)
        break
      case "Undone":
        // What is taken back before anything was sent of it was never a boundary of a request.
        told = told.filter(({ generation }) => generation < event.generation)
        words.push(`the boundaries from generation ${event.generation} on were taken back`)
        break
      case "Dropped":
        drop(state.entries, `the history was cut to ${Table.count(state.entries, "entry", "entries")}`)
        break
      case "Restored":
        drop(0, "another session was put in its place")
        break
      case "Appended":
      case "Replaced":
        break
      default:
        return
    }
    isNew = true
  }
  return {
    take,
    parts: (state: Session.State) => {
      // What came since the last request is in the next one.
      if (isNew) request(state, ["not sent yet"])
      return { moments, boundaries, trace: tracing.trace }
    }
  }
}

/** The story of a session that was read from its start. */
export const read = Effect.fnUntraced(function*(
  name: string,
  reading: SessionStore.Reading
): Effect.fn.Return<Story.Story, SessionLog.SessionUnreadable> {
  const gathered = gathering((yield* Estimator.Estimator).price)
  const { state } = yield* SessionLog.fold(reading.path, reading, gathered.take)
  return Story.make({
    file: name,
    policy: "as it was sent",
    limit: state.resolved?.limit ?? 0,
    ...gathered.parts(state)
  })
})
