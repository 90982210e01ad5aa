/**
 * What has left the view, given back to the model when it asks: two tools that search and read the whole history.
 *
 * Nothing is written, and nothing of a view changes: an answer is an ordinary tool result that ages like the others. The
 * history is never modified, so what was removed, shortened, cleared, summarised or spilled is found as it was.
 *
 * **Example** (Giving the tools to a model)
 *
 * ```ts
 * import * as Conversations from "effect-compaction/Conversations"
 * import * as Recall from "effect-compaction/Recall"
 * import * as Effect from "effect/Effect"
 *
 * const turn = (conversations: Conversations.Conversations, said: string) =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const chat = yield* conversations.chat("one")
 *     return yield* chat.generateText({ prompt: said, toolkit: Recall.toolkit })
 *   })).pipe(Effect.provide(Recall.layerCurrent))
 * ```
 *
 * @since 0.1.0
 */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Calls from "./app/calls.ts"
import * as ContextManager from "./ContextManager.ts"
import * as SpillStore from "./SpillStore.ts"
import * as Look from "./text/look.ts"
import * as Recalled from "./text/recalled.ts"
import * as Text from "./text/text.ts"
import * as Transcript from "./Transcript.ts"
import * as View from "./View.ts"

/** How many entries one search names. */
const most = 10

/** How many characters one page of a reading has. */
const pageLength = 8_000

const origin = {
  seq: Schema.Natural,
  role: Schema.String,
  tool: Schema.NullOr(Schema.String),
  fate: Schema.Literals(["Kept", "Waiting", "Altered", "Covered", "Lost", "Dropped"]),
  age: Schema.Natural,
  behind: Schema.Natural
}

/**
 * Where an entry that is not in the view as it was can be found again.
 *
 * **Details**
 *
 * - `seq`: its number, to read it by. `role` and `tool`: who said it, or which tool returned it.
 * - `fate`: what became of it; see `View.Receipt`.
 * - `age`: how many turns ago it was, which begin with a message of a person each. `behind`: how many entries came after it.
 * - `excerpt`: at most 300 characters around the word that is rarest in it, the longest of those; or up to where the pattern
 *   matched.
 *
 * @category models
 * @since 0.1.0
 */
export const Found = Schema.Struct({ ...origin, excerpt: Schema.String })

/**
 * @category models
 * @since 0.1.0
 */
export type Found = typeof Found.Type

/**
 * What a search found, newest first, at most ten entries. `more`: how many others it does not name. `before`: what to ask for
 * to have those named, `null` where there are none.
 *
 * @category models
 * @since 0.1.0
 */
export const Matches = Schema.Struct({
  found: Schema.Array(Found),
  more: Schema.Natural,
  before: Schema.NullOr(Schema.Natural)
})

/**
 * One page of an entry, or of a range of entries up to `to`. What it says beside the text is of the entry `seq`; in a range each
 * entry stands behind a line of its own that says the same. `next` is the page behind it, `null` after the last.
 *
 * @category models
 * @since 0.1.0
 */
export const Page = Schema.Struct({
  ...origin,
  to: Schema.Natural,
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
    if (this.entries === 0) return `There is no entry ${this.seq}: the conversation has none yet.`
    return this.pages === 0
      ? `There is no entry ${this.seq}: the entries are numbered from 0 to ${this.entries - 1}.`
      : `Entry ${this.seq} has no page ${this.page}: its pages are numbered from 0 to ${this.pages - 1}.`
  }
}

/**
 * A query that is not looked for: it is too long, no regular expression, or one that cannot be matched in a time that is linear
 * in the text. `given` is how many words, characters or steps it has, or the place of what is wrong in it; `most` how many there
 * may be, 0 where nothing is counted.
 *
 * @category errors
 * @since 0.1.0
 */
export class QueryRefused extends Schema.TaggedError<QueryRefused>("effect-compaction/QueryRefused")("QueryRefused", {
  reason: Schema.Literals(["words", "length", "syntax", "unsafe", "size"]),
  what: Schema.String,
  given: Schema.Natural,
  most: Schema.Natural
}) {
  override get message(): string {
    const { given, most: allowed, what } = this
    switch (this.reason) {
      case "words":
        return `The query has ${given} words and may have ${allowed}: leave out the commonest, or search twice.`
      case "length":
        return `The query has ${given} characters and may have ${allowed}: look for a shorter part of it.`
      case "syntax":
        return `The query is no regular expression: ${what}, at character ${given}. Write it anew, or leave regex out.`
      case "unsafe":
        return `The query has ${what}, at character ${given}, which may take for ever: write it without.`
      case "size":
        return `The query repeats too much: it comes to ${given} steps and may have ${allowed}. Write smaller numbers.`
    }
  }
}

/**
 * How an entry is read.
 *
 * **Details**
 *
 * - `to`: the last entry of a range; the one entry alone by default. What lies behind the newest entry is not there.
 * - `page`: which page, from 0. `length`: how many characters a page has, at most 8,000, which is the default; as few as an
 *   answer that is pinned should have.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReadOptions {
  readonly to?: number
  readonly page?: number
  readonly length?: number
}

/**
 * What is searched for.
 *
 * **Details**
 *
 * - `regex`: whether the query is a regular expression. One of at most 200 characters is matched in any case, line by line at
 *   `^` and `$`, in a time that is linear in the text: references to groups and looking ahead or behind are refused.
 * - `before`: only entries before this one are named: `before` of the last answer gives the next ten.
 *
 * @category models
 * @since 0.1.0
 */
export interface SearchOptions {
  readonly regex?: boolean
  readonly before?: number
}

/** A result that is a copy of what stands elsewhere in the history. */
const isCopy = (tool: string): boolean => Recalled.isOurs(tool) || tool === SpillStore.retrieveToolName

/** All that an entry says: its text, its reasoning, and what its calls were given, but for what they looked for here. */
const whole = (entry: Transcript.Entry): string => {
  const { message } = entry
  const others = message.role === "assistant"
    ? message.content.flatMap((part) =>
      part.type === "reasoning"
        ? [part.text]
        : part.type === "tool-call" && !isCopy(part.name)
        ? [`${part.name} ${JSON.stringify(part.params) ?? ""}`]
        : []
    )
    : []
  return [Transcript.textOf(entry), ...others].filter((text) => text !== "").join("\n")
}

/** What is said of where an entry comes from. `turns`: how many messages of people came after it. */
const originOf = (view: View.View, { _tag, seq }: View.Receipt, turns: number): Omit<Found, "excerpt"> => {
  const { entries } = view.transcript
  const { role, tool } = entries[seq]!
  return {
    seq,
    role,
    tool: tool === "" ? null : tool,
    fate: _tag === "Unknown" ? "Dropped" : _tag,
    age: turns,
    behind: entries.length - 1 - seq
  }
}

/**
 * Finds the entries that hold every word, or a match of a regular expression, in any case, among those that are not in the view
 * as they came. Linear in the text of the history; ten entries are named at once. What this toolkit returned is not found: it
 * is a copy. Nothing finds nothing.
 *
 * @category running
 * @since 0.1.0
 */
export const search = Effect.fnUntraced(function*(
  view: View.View,
  query: string,
  { before = Infinity, regex = false }: SearchOptions = {}
): Effect.fn.Return<typeof Matches.Type, QueryRefused> {
  const look = regex ? Look.forPattern(query) : Look.forWords(query)
  if (typeof look !== "function") return yield* new QueryRefused(look)
  const { entries } = view.transcript
  const receipts = View.receipts(view)
  const found: Array<Found> = []
  let more = 0
  let turns = 0
  for (let seq = entries.length - 1; seq >= 0; seq--) {
    const entry = entries[seq]!
    const receipt = receipts[seq]!
    const age = turns
    if (entry.human) turns++
    if (seq >= before || receipt._tag === "Kept" || entry.origin === "library" || isCopy(entry.tool)) continue
    const excerpt = look(whole(entry))
    if (excerpt === undefined) continue
    if (found.length === most) more++
    else found.push({ ...originOf(view, receipt, age), excerpt })
  }
  return { found, more, before: more === 0 ? null : found.at(-1)!.seq }
})

const lineOf = ({ age, behind: _, fate, role, seq, tool }: Omit<Found, "excerpt">): string =>
  `[entry ${seq}: ${tool === null ? role : `result of ${tool}`}, ${age} ${age === 1 ? "turn" : "turns"} ago, ${fate}]`

/**
 * A page of an entry or of a range of entries, whole as it came, whatever the view shows of it. Pages are numbered from 0.
 *
 * @category running
 * @since 0.1.0
 */
export const read = Effect.fnUntraced(function*(
  view: View.View,
  seq: number,
  { length = pageLength, page = 0, to = seq }: ReadOptions = {}
): Effect.fn.Return<typeof Page.Type, EntryNotFound> {
  const { entries } = view.transcript
  const first = Math.min(seq, to)
  const last = Math.min(Math.max(seq, to), entries.length - 1)
  if (entries[first] === undefined) {
    return yield* new EntryNotFound({ seq: first, page, entries: entries.length, pages: 0 })
  }
  const receipts = View.receipts(view)
  const origins: Array<Omit<Found, "excerpt">> = []
  let turns = 0
  for (let at = entries.length - 1; at >= first; at--) {
    if (at <= last) origins.unshift(originOf(view, receipts[at]!, turns))
    if (entries[at]!.human) turns++
  }
  const text = seq === to
    ? whole(entries[first])
    : origins.map((each) => `${lineOf(each)}\n${whole(entries[each.seq]!)}`).join("\n\n")
  const size = Math.max(1, Math.min(pageLength, Math.floor(length)))
  const pages = Math.max(1, Math.ceil(text.length / size))
  if (!Number.isInteger(page) || page < 0 || page >= pages) {
    return yield* new EntryNotFound({ seq: first, page, entries: entries.length, pages })
  }
  return {
    ...origins[0]!,
    to: last,
    text: text.slice(Text.safeCut(text, page * size), Text.safeCut(text, (page + 1) * size)),
    next: page + 1 < pages ? page + 1 : null
  }
})

/** What is told where the call of the model was not decorated, or the handlers run elsewhere. */
const nowhere = {
  _tag: "NoConversation",
  message:
    "No conversation is running here: call the model through CompactedModel.withCompaction, or give Recall.layer "
    + "the manager."
}

/** What a model is told where nothing is found or read, in words and by name. */
const Refusal = Schema.Struct({ error: Schema.String, message: Schema.String })

const told = (error: { readonly _tag: string; readonly message: string }): typeof Refusal.Type => ({
  error: error._tag,
  message: error.message
})

const Search = Tool.make(Recalled.search, {
  description: "Searches what was left out of this conversation, summarised or shortened in it: earlier messages, tool "
    + "results and calls, for entries that hold all of the words. Answers with an excerpt of each and its seq, newest first.",
  parameters: Schema.Struct({
    query: Schema.String.annotate({ description: "the words, at most 16; or a regular expression" }),
    regex: Schema.optionalKey(Schema.Boolean.annotate({ description: "whether the query is a regular expression" })),
    before: Schema.optionalKey(
      Schema.Natural.annotate({
        description: "only entries before this seq; the last answer says which for the next ones"
      })
    )
  }),
  success: Matches,
  failure: Refusal,
  failureMode: "return"
}).annotate(Tool.Readonly, true).annotate(Tool.Destructive, false).annotate(Tool.Idempotent, true).annotate(
  Tool.OpenWorld,
  false
)

const Read = Tool.make(Recalled.read, {
  description:
    "Reads one entry of this conversation as it was, by the seq that recall_search or a shortened result gave, or a "
    + "range of entries, page by page.",
  parameters: Schema.Struct({
    seq: Schema.Natural.annotate({ description: "the entry, or the first of a range" }),
    to: Schema.optionalKey(Schema.Natural.annotate({ description: "the last entry of a range" })),
    page: Schema.optionalKey(Schema.Natural.annotate({ description: "which page, from 0" })),
    length: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: pageLength })).annotate({
        description: "how many characters a page has, 8000 by default"
      })
    )
  }),
  success: Page,
  failure: Refusal,
  failureMode: "return"
}).annotate(Tool.Readonly, true).annotate(Tool.Destructive, false).annotate(Tool.Idempotent, true).annotate(
  Tool.OpenWorld,
  false
)

/**
 * The tools for a model: `recall_search` and `recall_read`. What is refused or not there is an answer to the model, not a
 * failure of the call. A decorated call that is given them is noted in its session: from then on the notice and the shortened
 * results of that conversation name them.
 *
 * @category tools
 * @since 0.1.0
 */
export const toolkit = Toolkit.make(Search, Read)

/**
 * The handlers of the tools, over whatever view is there when one is called.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerView = <E extends { readonly _tag: string; readonly message: string }>(
  view: Effect.Effect<View.View, E>
): Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> =>
  toolkit.toLayer({
    recall_search: ({ query, ...options }) =>
      Effect.mapError(Effect.flatMap(view, (seen) => search(seen, query, options)), told),
    recall_read: ({ seq, ...options }) =>
      Effect.mapError(Effect.flatMap(view, (seen) => read(seen, seq, options)), told)
  })

/**
 * The handlers of the tools, over one conversation.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E>(
  manager: ContextManager.ContextManager<E>
): Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> => layerView(manager.view)

/**
 * The handlers of the tools, over the conversation whose call is running: that of a chat of `Conversations`, of a manager in the
 * context, or the one that a decorated model has recognised. One layer serves all conversations of an app.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCurrent: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = layerView(
  Effect.gen(function*() {
    const manager = (yield* Calls.Within) ?? (yield* ContextManager.Current)
    return manager === undefined ? yield* Effect.fail(nowhere) : yield* manager.view
  })
)
