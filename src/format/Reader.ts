/**
 * How one format is read: it says whether a file is its own, then takes the records of the file one by one and keeps
 * only what it needs of them.
 *
 * A reader does no I/O and never throws; `Format` reads the file and feeds it.
 *
 * **What every reader does alike**
 *
 * - A tool result holds the text itself where the wire has one text (a string, or one text block), else an array of
 *   `{ type: "text", text }`, `{ type: "image", mediaType, data }` and, for anything else, the wire's own block. `data`
 *   is base64 or a URL, as in a file part.
 * - A tool result is named after the call that it answers, the nearest earlier one with its id, and `""` where there is
 *   none; one that stands before its call is put behind it. Ids are the wire's own, and need not be unique; where the wire
 *   has none the reader makes one that every provider takes, the same at each reading.
 * - An output that was given while the tool was still at work is left out: it answers nothing.
 * - `Session.times` has the time of each message where the file says it.
 * - What `Prompt` cannot hold is an empty text part with the mark `raw` holding the wire's item, at the item's place.
 *   Call arguments that are not JSON are `params` as the text, with the same text under `raw`.
 * - Reasoning keeps what a provider needs back where the Effect providers look for it: `options.anthropic.info`
 *   (`{ type: "thinking", signature }` or `{ type: "redacted_thinking", redactedData }`), or `options.openai`
 *   (`itemId`, `encryptedContent`). Reasoning with an empty text is kept.
 * - What runs at the provider (server tools) is a call and a result with `providerExecuted`, both in the assistant
 *   message.
 * - A user message that no person wrote has a `source` of `Marks.machineSources`. An assistant message that no model wrote
 *   has the source `hook`.
 *
 * @since 0.1.0
 */
import type * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Session from "./Session.ts"

/**
 * Reads one format.
 *
 * **Details**
 *
 * - `detect` says in a few words why the sample is of this format, or returns `undefined`.
 * - `start` begins the reading of one conversation; `why` goes into the session as it is.
 * - `split`, of a reader whose files may be pools: the conversations that a record holds, each a record for a `start` of
 *   its own; `undefined` where the record belongs to the one conversation of the file.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reader {
  readonly format: Session.FormatName
  readonly detect: (sample: Sample) => string | undefined
  readonly split?: (record: Schema.Json) => ReadonlyArray<Schema.Json> | undefined
  readonly start: (file: string, why: string) => Parse
}

/**
 * One conversation being read; mutable inside, used once.
 *
 * **Details**
 *
 * - `record` takes the next JSON value: one for each line with its number, or the whole document once with line 0. After
 *   a failure nothing else is called.
 * - `end` is called once, after the last record.
 *
 * @category models
 * @since 0.1.0
 */
export interface Parse {
  readonly record: (value: Schema.Json, line: number) => Result.Result<void, Session.FormatError>
  readonly end: () => Result.Result<Session.Session, Session.FormatError>
}

/**
 * What detection sees: the first records of a file with one JSON value in each line, or the one JSON document.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sample {
  readonly kind: "lines" | "document"
  readonly first: ReadonlyArray<Schema.Json>
}
