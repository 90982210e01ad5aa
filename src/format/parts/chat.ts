/** Reads chat messages that other formats keep among notes of their own. */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as OpenAiChat from "../OpenAiChat.ts"
import * as Session from "../Session.ts"
import type * as Json from "./json.ts"

/**
 * The messages at `place` as a session of `format`: one message for each, in order. An empty list is an empty session.
 */
export const read = (
  messages: ReadonlyArray<Schema.JsonObject>,
  place: Json.Place,
  format: Session.FormatName,
  why: string
): Json.Read<Session.Session> => {
  const { file, line } = place
  if (messages.length === 0) {
    return Result.succeed({ file, format, why, model: undefined, messages: [], usage: new Map(), findings: [] })
  }
  const parse = OpenAiChat.reader.start(file, why)
  return Result.mapBoth(Result.flatMap(parse.record(messages, 0), parse.end), {
    onFailure: ({ expected, field }) => new Session.FormatError({ file, line, field: place.field + field, expected }),
    onSuccess: (session) => ({
      ...session,
      format,
      findings: session.findings.map((finding) => ({ ...finding, line }))
    })
  })
}

/** A call of a text mode, which stands in the text of an answer on the wire. */
export const textCall = (id: string, name: string, command: string): Schema.JsonObject => ({
  id,
  type: "function",
  function: { name, arguments: { command } }
})
