/**
 * What has left the view, given back to the model when it asks: two tools that search and read the whole history.
 *
 * Nothing is written, and nothing of a view changes: an answer is an ordinary tool result that ages like the others. The
 * history is never modified, so what was removed, shortened, cleared, summarised or spilled is found as it was.
 *
 * @since 0.1.0
 */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as ContextManager from "./ContextManager.ts"
import * as Text from "./text/text.ts"
import * as Transcript from "./Transcript.ts"
import * as View from "./View.ts"

/** How many entries a search names, and how many characters of each it shows. */
const most = 10
const excerptLength = 300

/** How many characters one page of a reading has. */
const pageLength = 8_000

/** Words beyond these are not looked for. */
const mostWords = 16

/**
 * Where an entry that is not in the view as it was can be found again.
 *
 * **Details**
 *
 * - `seq`: its number, to read it by. `role` and `tool`: who said it, or which tool returned it.
 * - `fate`: what became of it; see `View.Receipt`. `age`: how many entries came after it.
 * - `excerpt`: at most 300 characters around the first word that was found.
 *
 * @category models
 * @since 0.1.0
 */
export const Found = Schema.Struct({
  seq: Schema.Natural,
  role: Schema.String,
  tool: Schema.NullOr(Schema.String),
  fate: Schema.Literals(["Altered", "Covered", "Lost", "Dropped"]),
  age: Schema.Natural,
  excerpt: Schema.String
})

/**
 * @category models
 * @since 0.1.0
 */
export type Found = typeof Found.Type

/**
 * What a search found, newest first; `more` is how many entries it does not name.
 *
 * @category models
 * @since 0.1.0
 */
export const Matches = Schema.Struct({ found: Schema.Array(Found), more: Schema.Natural })

/**
 * One page of an entry, at most 8,000 characters; `next` is the page behind it, `null` after the last.
 *
 * @category models
 * @since 0.1.0
 */
export const Page = Schema.Struct({
  seq: Schema.Natural,
  role: Schema.String,
  tool: Schema.NullOr(Schema.String),
  text: Schema.String,
  next: Schema.NullOr(Schema.Natural)
})

/**
 * There is no such entry, or it has no such page. The message says which there are.
 *
 * @category errors
 * @since 0.1.0
 */
export class EntryNotFound
  extends Schema.TaggedError<EntryNotFound>("effect-compaction/EntryNotFound")("EntryNotFound", {
    seq: Schema.Finite,
    page: Schema.Finite,
    entries: Schema.Natural,
    pages: Schema.Natural
  })
{
  override get message(): string {
    return this.pages === 0
      ? `There is no entry ${this.seq}: the entries are numbered from 0 to ${this.entries - 1}.`
      : `Entry ${this.seq} has no page ${this.page}: its pages are numbered from 0 to ${this.pages - 1}.`
  }
}

/** All that an entry says: its text, and what its calls were given. */
const whole = (entry: Transcript.Entry): string => {
  const inputs = entry.message.role === "assistant"
    ? entry.message.content.flatMap((part) =>
      part.type === "tool-call" ? [`${part.name} ${JSON.stringify(part.params) ?? ""}`] : []
    )
    : []
  return [Transcript.textOf(entry), ...inputs].filter((text) => text !== "").join("\n")
}

const toolOf = ({ tool }: Transcript.Entry): string | null => tool === "" ? null : tool

/** An excerpt around a place, cut between whole characters. */
const excerptAt = (text: string, at: number): string => {
  const from = Math.max(0, Math.min(at - 60, text.length - excerptLength))
  return text.slice(Text.safeCut(text, from), Text.safeCut(text, from + excerptLength))
}

/**
 * Finds the entries that hold every word, in any case, among those that are not in the view as they came. Linear in the text
 * of the history; at most ten entries are named, and at most sixteen words looked for. No word finds nothing.
 *
 * @category running
 * @since 0.1.0
 */
export const search = (view: View.View, query: string): typeof Matches.Type => {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "").slice(0, mostWords)
  const found: Array<Found> = []
  let more = 0
  if (words.length === 0) return { found, more }
  const { entries } = view.transcript
  const receipts = View.receipts(view)
  for (let seq = entries.length - 1; seq >= 0; seq--) {
    const entry = entries[seq]!
    const fate = receipts[seq]!._tag
    if (fate === "Kept" || fate === "Waiting" || fate === "Unknown" || entry.origin === "library") continue
    const text = whole(entry)
    const lower = text.toLowerCase()
    if (!words.every((word) => lower.includes(word))) continue
    if (found.length === most) {
      more++
      continue
    }
    const excerpt = excerptAt(text, lower.indexOf(words[0]!))
    found.push({ seq, role: entry.role, tool: toolOf(entry), fate, age: entries.length - 1 - seq, excerpt })
  }
  return { found, more }
}

/**
 * A page of an entry, whole as it came, whatever the view shows of it. Pages are numbered from 0.
 *
 * @category running
 * @since 0.1.0
 */
export const read = (view: View.View, seq: number, page = 0): Effect.Effect<typeof Page.Type, EntryNotFound> => {
  const { entries } = view.transcript
  const entry = entries[seq]
  if (entry === undefined) return Effect.fail(new EntryNotFound({ seq, page, entries: entries.length, pages: 0 }))
  const text = whole(entry)
  const pages = Math.max(1, Math.ceil(text.length / pageLength))
  if (!Number.isInteger(page) || page < 0 || page >= pages) {
    return Effect.fail(new EntryNotFound({ seq, page, entries: entries.length, pages }))
  }
  return Effect.succeed({
    seq,
    role: entry.role,
    tool: toolOf(entry),
    text: text.slice(Text.safeCut(text, page * pageLength), Text.safeCut(text, (page + 1) * pageLength)),
    next: page + 1 < pages ? page + 1 : null
  })
}

const Search = Tool.make("recall_search", {
  description:
    "Searches what was left out of this conversation or shortened in it, for entries that hold all of the words.",
  parameters: Schema.Struct({ query: Schema.String }),
  success: Matches
})

const Read = Tool.make("recall_read", {
  description:
    "Reads one entry of this conversation as it was, by the seq that recall_search gave, page by page from 0.",
  parameters: Schema.Struct({ seq: Schema.Natural, page: Schema.optionalKey(Schema.Natural) }),
  success: Page,
  failure: EntryNotFound,
  failureMode: "return"
})

/**
 * The tools for a model: `recall_search` and `recall_read`. A wrong seq is an answer to the model, not a failure of the call.
 *
 * @category tools
 * @since 0.1.0
 */
export const toolkit = Toolkit.make(Search, Read)

/**
 * The handlers of the tools, over one conversation.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E>(manager: ContextManager.ContextManager<E>) =>
  toolkit.toLayer({
    recall_search: ({ query }) => Effect.map(manager.view, (view) => search(view, query)),
    recall_read: ({ page, seq }) => Effect.flatMap(manager.view, (view) => read(view, seq, page))
  })
