/**
 * What providers accept: their rules as data, a check that finds every violation, and the repair that removes them.
 *
 * A conversation that was interrupted, imported or compacted easily breaks a rule that a provider enforces with a 400:
 * a call without its result, a result behind a user message, an empty text. {@link check} says what and where,
 * {@link repair} returns a prompt that {@link check} finds nothing in, whatever it is given.
 *
 * **Details**
 *
 * - Both work on `effect/ai` prompts, before approvals are resolved: a call that waits for an approval keeps its request,
 *   is never given a result, and is no violation.
 * - The place of a result decides what it answers: in a tool message a call of the framework, in an assistant message a
 *   call that the provider ran. Ids may repeat: a result belongs to the nearest earlier call with its id that is still
 *   unanswered. A repair gives each call an id of its own.
 * - What is fine keeps its identity: a valid prompt comes back as the same object, an untouched message too.
 * - Signed reasoning is never edited; where nothing follows it, it is left out whole.
 *
 * **Gotchas**
 *
 * Nothing here knows what was said before the prompt was shortened: that reasoning signed over an earlier text no longer
 * matches, or that an item lost the reasoning it needs, cannot be seen in the messages alone.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import * as Check from "./wire/check.ts"
import * as Ids from "./wire/ids.ts"
import * as Repairing from "./wire/repair.ts"

/**
 * The rules of one provider as data. What all providers demand is no field: each call has an id that no other has and one
 * result after it, no result is without a call, no message is empty, an approval has its request and its call.
 *
 * **Details**
 *
 * - `results`: whether the results of an assistant message must stand `directly` after it, before any other message, or
 *   may come `later`.
 * - `resultOrder`: whether they must be in the order of the calls.
 * - `system`: where system messages may stand: `anywhere`, `first`, or `first` and only a `single` one.
 * - `first`: whether the conversation must exist and begin with a user message.
 * - `text`: which texts are refused: none (`any`), empty ones (`nonEmpty`), also those of white space only (`nonBlank`).
 * - `reasoning`: whether signed reasoning must be followed by something else in its message.
 * - `ids`: of which characters the ids of calls may be (`any`, or letters, digits, `_` and `-`: `word`), and how many there
 *   may be at most, 24 or more. An id that the provider made for a call it ran may be longer.
 *
 * @category models
 * @since 0.1.0
 */
export const Rules = Schema.Struct({
  name: Schema.String,
  results: Schema.Literals(["later", "directly"]),
  resultOrder: Schema.Literals(["any", "call"]),
  system: Schema.Literals(["anywhere", "first", "single"]),
  first: Schema.Literals(["any", "user"]),
  text: Schema.Literals(["any", "nonEmpty", "nonBlank"]),
  reasoning: Schema.Literals(["any", "followed"]),
  ids: Schema.Struct({
    characters: Schema.Literals(["any", "word"]),
    length: Schema.NullOr(Schema.Int.check(Schema.isGreaterThanOrEqualTo(Ids.shortest)))
  })
})

/**
 * @category models
 * @since 0.1.0
 */
export type Rules = typeof Rules.Type

/**
 * The Anthropic Messages API.
 *
 * **Details**
 *
 * - `results`: "each `tool_use` block must have a corresponding `tool_result` block in the next message" (error text; the
 *   tool use guide says the same). Consecutive messages of one role count as one.
 * - `system`: a field of the request, a list of blocks (API reference); a later system message has no place there.
 * - `first`: "first message must use the user role", "at least one message is required" (error texts).
 * - `text`: "text content blocks must contain non-whitespace text" (error text).
 * - `reasoning`: "the final block in an assistant message cannot be `thinking`" (error text). Reports differ on whether
 *   only the last message is meant; the stricter reading is taken.
 * - `ids`: "String should match pattern '^[a-zA-Z0-9_-]+$'", "`tool_use` ids must be unique" (error texts). Ids of 128
 *   characters are accepted.
 *
 * @category rules
 * @since 0.1.0
 */
export const anthropic: Rules = {
  name: "anthropic",
  results: "directly",
  resultOrder: "any",
  system: "first",
  first: "user",
  text: "nonBlank",
  reasoning: "followed",
  ids: { characters: "word", length: null }
}

/**
 * The OpenAI chat completions API.
 *
 * **Details**
 *
 * - `results`: "an assistant message with `tool_calls` must be followed by tool messages responding to each
 *   `tool_call_id`" (error text), in any order.
 * - `system`, `first`, `text`: system and developer messages may stand anywhere, any role may begin, a text may be empty
 *   (API reference: no such constraint).
 * - `reasoning`: is not part of this API's messages.
 * - `ids`: "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40" (error text).
 *
 * @category rules
 * @since 0.1.0
 */
export const openaiChat: Rules = {
  name: "openaiChat",
  results: "directly",
  resultOrder: "any",
  system: "anywhere",
  first: "any",
  text: "any",
  reasoning: "any",
  ids: { characters: "any", length: 40 }
}

/**
 * The OpenAI Responses API.
 *
 * **Details**
 *
 * - `results`: items are paired by `call_id`; "no tool output found for function call", "no tool call found for function
 *   call output" (error texts) are the only demands.
 * - `system`: developer messages are items and stay where they are; moving one would change the whole cached prefix.
 * - `reasoning`: "item of type `reasoning` was provided without its required following item" (error text).
 * - `ids`: "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64" (error text).
 *
 * @category rules
 * @since 0.1.0
 */
export const openaiResponses: Rules = {
  name: "openaiResponses",
  results: "later",
  resultOrder: "any",
  system: "anywhere",
  first: "any",
  text: "any",
  reasoning: "followed",
  ids: { characters: "any", length: 64 }
}

/**
 * The Gemini `generateContent` API.
 *
 * **Details**
 *
 * - `results`: "function response turn comes immediately after a function call turn", with the same number of parts
 *   (error texts).
 * - `resultOrder`: calls without ids are paired by position (function calling guide).
 * - `system`: `systemInstruction` is one content (API reference).
 * - `first`: a conversation begins with a user turn (error text of the same family).
 * - `text`: "empty text parameter" (error text of Vertex AI).
 * - `ids`: any, or none at all (API reference).
 *
 * @category rules
 * @since 0.1.0
 */
export const gemini: Rules = {
  name: "gemini",
  results: "directly",
  resultOrder: "call",
  system: "single",
  first: "user",
  text: "nonEmpty",
  reasoning: "any",
  ids: { characters: "any", length: null }
}

/**
 * The strictest value of every rule: what satisfies it satisfies {@link anthropic}, {@link openaiChat},
 * {@link openaiResponses} and {@link gemini}.
 *
 * @category rules
 * @since 0.1.0
 */
export const all: Rules = {
  name: "all",
  results: "directly",
  resultOrder: "call",
  system: "single",
  first: "user",
  text: "nonBlank",
  reasoning: "followed",
  ids: { characters: "word", length: 40 }
}

/**
 * What can be violated: a field of {@link Rules}, or one of the rules that all providers share.
 *
 * @category models
 * @since 0.1.0
 */
export type RuleName =
  | Exclude<keyof Rules, "name">
  | "pairing"
  | "provider-executed"
  | "approval"
  | "empty"
  | "opaque"

/**
 * One violation: the rule, the index of the message, the index of the part in it (undefined for the whole message), and
 * what is wrong in words.
 *
 * @category models
 * @since 0.1.0
 */
export interface Violation {
  readonly rule: RuleName
  readonly index: number
  readonly part: number | undefined
  readonly detail: string
}

/**
 * One thing that {@link repairWithReport} did, with the indexes of the messages concerned in the prompt it was given.
 *
 * **Details**
 *
 * - `orphan`: a part was dropped because what it belongs to is missing.
 * - `duplicate`: a part was dropped because a later one replaces it.
 * - `synthetic`: a call was given a result that says why there is none.
 * - `moved`: results or approval responses were put after their call; a message they shared was split. What stood between
 *   comes behind them, unchanged, and is not named.
 * - `empty`: a message or text without content was dropped, or one word stands for it.
 * - `reasoning`: signed reasoning was dropped because nothing follows it.
 * - `opaque`: words stand for an item that `Prompt` has no part for (the mark `raw`), which stays under its mark. Where a text
 *   may be empty its part is fine.
 * - `first-user`: a user message was put before the conversation; the index is that of the message it stands before.
 * - `system-moved`: system messages were put first, or made one.
 * - `renamed`: the calls, results or approval requests of a message go under another id, since the provider refuses their
 *   own, or an earlier call has it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Repair {
  readonly kind:
    | "orphan"
    | "duplicate"
    | "synthetic"
    | "moved"
    | "empty"
    | "reasoning"
    | "opaque"
    | "first-user"
    | "system-moved"
    | "renamed"
  readonly messages: ReadonlyArray<number>
  readonly detail: string
}

/**
 * Finds every violation of `rules`, in the order of the messages.
 *
 * @category validation
 * @since 0.1.0
 */
export const check = (
  self: Prompt.Prompt | ReadonlyArray<Prompt.Message>,
  rules: Rules
): ReadonlyArray<Violation> => Check.check("content" in self ? self.content : self, rules)

/**
 * Repairs like {@link repair}, and says what was done.
 *
 * A message of the prompt that no repair names is the same object in the result.
 *
 * @category repairing
 * @since 0.1.0
 */
export const repairWithReport = (
  self: Prompt.Prompt,
  rules: Rules
): { readonly prompt: Prompt.Prompt; readonly repairs: ReadonlyArray<Repair> } => Repairing.repair(self, rules)

/**
 * Returns a prompt that violates none of `rules`: the same object when it is valid already.
 *
 * **Details**
 *
 * - A result belongs to the nearest earlier call with its id that is unanswered (of several in one message the first);
 *   without one it repeats the nearest call, and the last result wins. Results without a call are dropped.
 * - Results stand after their message in the order of its calls; what stood between moves behind them.
 * - A call without a result gets one that says that it was interrupted, or that the tool is still running when neither
 *   the assistant nor a human went on. A call with an approval request gets none: `LanguageModel` makes it.
 * - Messages and texts without content are dropped, or get one word where what depends on them would break.
 * - System messages are put first and made one where the rules say so.
 * - An id that a provider refuses, or that an earlier call has, is sent as one made of it. It follows from the messages
 *   before, and a result that comes back under it belongs to the same call.
 *
 * @category repairing
 * @since 0.1.0
 */
export const repair = (self: Prompt.Prompt, rules: Rules): Prompt.Prompt => repairWithReport(self, rules).prompt
