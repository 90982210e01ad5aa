/**
 * What became of every entry of a session, request by request: taken down as changes, since most entries stay as they are.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Decision from "../Decision.ts"
import * as Policy from "../Policy.ts"
import * as Json from "../text/json.ts"
import * as Text from "../text/text.ts"
import type * as Transcript from "../Transcript.ts"
import * as View from "../View.ts"
import * as Table from "./Table.ts"

/**
 * From which request on an entry is in a state, and why. `tokens`: what it costs there, 0 when it is not in the view. `text`:
 * how it reads there; `null` where it is whole or gone, and where no texts were asked for.
 */
interface Change {
  readonly seq: number
  readonly request: number
  readonly state: "whole" | Transcript.Item["state"] | "summarised" | "removed" | "not sent"
  readonly tokens: number
  readonly why: string
  readonly text: string | null
}

/**
 * An entry, by its place in the trace, which is its seq in the session as long as nothing of that was dropped: who said it, what it is, and what it costs whole, in tokens. `isSaid`: it is of the conversation, not of the
 * library. `text`: how it reads, where texts were asked for.
 */
interface Entry {
  readonly seq: number
  readonly role: string
  readonly what: string
  readonly tokens: number
  readonly isSaid: boolean
  readonly text: string
}

/** The entries by seq, and the changes in the order in which they happened. */
export interface Trace {
  readonly entries: ReadonlyArray<Entry>
  readonly changes: ReadonlyArray<Change>
}

/** A trace that is being taken. */
export interface Tracing {
  readonly trace: Trace
  /** Takes down what a request has left. */
  readonly note: (request: number, view: View.View) => void
  /** Takes down that the entries from one on are of the session no more: those that come under their numbers are others. */
  readonly drop: (request: number, from: number) => void
}

/** The longest text of an entry that a page holds, in characters, and what of it is its end. */
const textChars = 3_000
const endChars = 1_000

/** A text as a page holds it: both ends of a long one. */
const excerpt = (text: string): string => {
  if (text.length <= textChars) return text
  const left = Text.safeCut(text, textChars - endChars)
  const right = Text.safeCut(text, text.length - endChars)
  return `${text.slice(0, left)}\n[… ${Table.count(right - left, "character")} not in this page …]\n${
    text.slice(right)
  }`
}

const textOfPart = (part: Prompt.Part): string => {
  switch (part.type) {
    case "text":
      return part.text
    case "reasoning":
      return `[reasoning] ${part.text}`
    case "file":
      return `[${part.mediaType}]`
    case "tool-call":
      return `${part.name}(${typeof part.params === "string" ? part.params : Json.textOf(part.params)})`
    case "tool-result":
      return Text.ofResult(part)
    case "tool-approval-request":
      return "[asks for approval]"
    case "tool-approval-response":
      return part.approved ? "[approved]" : "[refused]"
  }
}

/** A message as a person reads it. */
const textOf = ({ content }: Prompt.Message): string =>
  excerpt(typeof content === "string" ? content : content.map(textOfPart).join("\n"))

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
  receipt: View.Receipt,
  item: View.Item | undefined,
  entry: Transcript.Entry,
  firstHuman: number,
  places: ReadonlyArray<number>
): Omit<Change, "text"> => {
  const seq = places[receipt.seq] ?? receipt.seq
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
      return {
        seq,
        request,
        state: "summarised",
        tokens,
        why: `in the summary that is entry ${places[receipt.checkpoint]}`
      }
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
const keyOf = (receipt: View.Receipt): string => {
  if (receipt._tag === "Altered") return `Altered ${receipt.decisions.length} ${receipt.decisions.at(-1)?.at}`
  return receipt._tag === "Covered" ? `Covered ${receipt.checkpoint}` : receipt._tag
}

/** Begins a trace; with `hasTexts` it has what each entry reads, whole and as it stands after each change. */
export const make = (hasTexts: boolean): Tracing => {
  const entries: Array<Entry> = []
  const changes: Array<Change> = []
  const keys: Array<string> = []
  /** By seq: the place of an entry in the trace, and how it reads whole. */
  const places: Array<number> = []
  const messages: Array<{ readonly message: Prompt.Message; readonly text: string }> = []
  /** What an entry reads where it is another text than before: what a system says may be replaced. */
  const replacedBy = (seq: number, { message }: Transcript.Entry): string | undefined => {
    const known = messages[seq]
    if (!hasTexts || known === undefined || known.message === message) return undefined
    const text = textOf(message)
    messages[seq] = { message, text }
    return text === known.text ? undefined : text
  }
  return {
    trace: { entries, changes },
    note: (request, view) => {
      const { items, transcript } = view
      const bySeq = new Map(items.map((item) => [item.seq, item]))
      const firstHuman = transcript.entries.findIndex(({ human }) => human)
      for (let seq = places.length; seq < view.length; seq++) {
        const entry = transcript.entries[seq]!
        const text = hasTexts ? textOf(entry.message) : ""
        places.push(entries.length)
        messages.push({ message: entry.message, text })
        entries.push({
          seq: entries.length,
          role: entry.role,
          what: whatOf(entry),
          tokens: entry.price,
          isSaid: entry.origin === "caller",
          text
        })
      }
      for (const receipt of View.receipts(view)) {
        const { seq } = receipt
        const entry = transcript.entries[seq]!
        const key = keyOf(receipt)
        const replaced = replacedBy(seq, entry)
        if (keys[seq] === key && replaced === undefined) continue
        keys[seq] = key
        const item = bySeq.get(seq)
        const change = changeOf(request, receipt, item, entry, firstHuman, places)
        const isAltered = hasTexts && receipt._tag === "Altered" && item !== undefined
        changes.push(
          replaced === undefined
            ? { ...change, text: isAltered ? textOf(item.message) : null }
            : { ...change, why: `another text since request ${request}`, text: replaced }
        )
      }
    },
    drop: (request, from) => {
      for (const seq of places.slice(from)) {
        changes.push({ seq, request, state: "removed", tokens: 0, why: "taken back with its message", text: null })
      }
      for (const list of [keys, places, messages]) list.length = Math.min(list.length, from)
    }
  }
}

/** Watches a pass: the last view that it left is taken down by `take`, as that of a request. */
export const watching = <E, R>(self: Tracing, pass: Policy.Pass<E, R>): {
  readonly pass: Policy.Pass<E, R>
  readonly take: (request: number) => Effect.Effect<void>
} => {
  let left: View.View | undefined
  return {
    pass: Policy.passFrom((before) =>
      Effect.tap(pass(before), ({ view }) =>
        Effect.sync(() => {
          left = view
        }))
    ),
    take: (request) =>
      Effect.sync(() => {
        if (left !== undefined) self.note(request, left)
        left = undefined
      })
  }
}
