/**
 * What became of every entry of a session, request by request: taken down as changes, since most entries stay as they are.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Decision from "../Decision.ts"
import * as Policy from "../Policy.ts"
import * as Receipt from "../Receipt.ts"
import type * as Transcript from "../Transcript.ts"
import type * as View from "../View.ts"

/**
 * From which request on an entry is in a state, and why. `tokens`: what it costs there, 0 when it is not in the view.
 */
interface Change {
  readonly seq: number
  readonly request: number
  readonly state: "whole" | Transcript.Item["state"] | "summarised" | "removed" | "not sent"
  readonly tokens: number
  readonly why: string
}

/** An entry: who said it, what it is, and what it costs whole, in tokens. */
interface Entry {
  readonly seq: number
  readonly role: string
  readonly what: string
  readonly tokens: number
}

/** The entries by seq, and the changes in the order in which they happened. */
export interface Trace {
  readonly entries: ReadonlyArray<Entry>
  readonly changes: ReadonlyArray<Change>
}

/** Takes a trace of what a pass does. */
export interface Tracing<E, R> {
  readonly trace: Trace
  /** The pass, watched. */
  readonly pass: Policy.Pass<E, R>
  /** Takes down what the last pass left, as the request of this number. */
  readonly take: (request: number) => Effect.Effect<void>
}

const whatOf = ({ calls, kind, origin, tool }: Transcript.Entry): string => {
  if (origin !== "caller") return origin === "library" ? "summary" : "runtime context"
  if (kind === "result") return `result of ${tool}`
  if (kind === "approval") return "approval"
  return calls.length === 0 ? "text" : `calls ${calls.map(({ name }) => name).join(", ")}`
}

/** Why an entry stands whole. */
const heldBy = (entry: Transcript.Entry, firstHuman: number): string => {
  if (entry.role === "system") return "system prompts are never changed"
  if (entry.pinned) return "pinned"
  return entry.seq === firstHuman ? "the first human message stays" : ""
}

const wordsOf = (decision: Decision.Alteration): string => {
  switch (decision._tag) {
    case "Truncate":
      return `cut to ${decision.k} characters`
    case "Stub":
      return `a stub of ${decision.k} characters`
    case "Excerpt":
      return "shortened to what must stay of it"
    case "Prune":
      return "pruned"
    case "Cap":
      return "larger than a result may be"
    case "Clear":
      return "an old result, cleared"
    case "Trim":
      return "trimmed to fit"
    case "Placeholder":
      return "its media became words"
  }
}

const changeOf = (
  request: number,
  receipt: Receipt.Receipt,
  item: View.Item | undefined,
  entry: Transcript.Entry,
  firstHuman: number
): Change => {
  const { seq } = receipt
  const tokens = item?.price ?? 0
  switch (receipt._tag) {
    case "Kept":
      return { seq, request, state: "whole", tokens, why: heldBy(entry, firstHuman) }
    case "Altered":
      return {
        seq,
        request,
        state: item?.state ?? "whole",
        tokens,
        why: `${receipt.decisions.map(wordsOf).join(", then ")} at request ${request}`
      }
    case "Covered":
      return { seq, request, state: "summarised", tokens, why: `in the summary that is entry ${receipt.checkpoint}` }
    case "Lost":
      return { seq, request, state: "removed", tokens, why: `removed at request ${request}` }
    case "Waiting":
      return { seq, request, state: "not sent", tokens, why: "a summary that waits for a boundary" }
    case "Dropped":
    case "Unknown":
      return { seq, request, state: "not sent", tokens, why: "a result that answers no call of the view" }
  }
}

/** What tells two states of an entry apart. */
const keyOf = (receipt: Receipt.Receipt): string => {
  if (receipt._tag === "Altered") return `Altered ${receipt.decisions.length}`
  return receipt._tag === "Covered" ? `Covered ${receipt.checkpoint}` : receipt._tag
}

/** Watches a pass. */
export const make = <E, R>(pass: Policy.Pass<E, R>): Tracing<E, R> => {
  const entries: Array<Entry> = []
  const changes: Array<Change> = []
  const keys: Array<string> = []
  let left: View.View | undefined
  return {
    trace: { entries, changes },
    pass: Policy.passFrom((before) =>
      Effect.tap(pass(before), ({ view }) =>
        Effect.sync(() => {
          left = view
        }))
    ),
    take: (request) =>
      Effect.sync(() => {
        if (left === undefined) return
        const { items, transcript } = left
        const bySeq = new Map(items.map((item) => [item.seq, item]))
        const firstHuman = transcript.entries.findIndex(({ human }) => human)
        for (const receipt of Receipt.all(left)) {
          const { seq } = receipt
          const entry = transcript.entries[seq]
          const key = keyOf(receipt)
          if (entry === undefined || keys[seq] === key) continue
          if (keys[seq] === undefined) {
            entries[seq] = { seq, role: entry.role, what: whatOf(entry), tokens: entry.price }
          }
          keys[seq] = key
          changes.push(changeOf(request, receipt, bySeq.get(seq), entry, firstHuman))
        }
        left = undefined
      })
  }
}
