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
 *   unanswered.
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
import * as Prompt from "effect/ai/Prompt"
import * as Schema from "effect/Schema"
import * as Pairing from "./wire/pairing.ts"
import * as Send from "./wire/send.ts"

/**
 * The rules of one provider as data. What all providers demand is no field: each call has one result after it, no result
 * is without a call, no message is empty, an approval has its request and its call.
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
  reasoning: Schema.Literals(["any", "followed"])
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
  reasoning: "followed"
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
  reasoning: "any"
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
  reasoning: "followed"
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
  reasoning: "any"
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
  reasoning: "followed"
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
 * - `first-user`: a user message was put before the conversation; the index is that of the message it stands before.
 * - `system-moved`: system messages were put first, or made one.
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
    | "first-user"
    | "system-moved"
  readonly messages: ReadonlyArray<number>
  readonly detail: string
}

/** A message with calls or approval requests, and what must stand after it. */
interface Group {
  readonly message: number
  readonly calls: Array<Pairing.Call>
  readonly requests: Array<Pairing.Request>
}

const groupsOf = (paired: Pairing.Paired): ReadonlyMap<number, Group> => {
  const groups = new Map<number, Group>()
  const of = (message: number): Group => {
    let group = groups.get(message)
    if (group === undefined) groups.set(message, group = { message, calls: [], requests: [] })
    return group
  }
  for (const call of paired.calls) if (!call.part.providerExecuted) of(call.at.message).calls.push(call)
  for (const request of paired.requests) of(request.at.message).requests.push(request)
  return groups
}

const lacksResult = (call: Pairing.Call): boolean => call.result === undefined && !call.asked

/** A paused turn may end with a call that the provider is still running: it is sent back to be continued. */
const isAbandonedByProvider = (call: Pairing.Call): boolean =>
  call.part.providerExecuted && call.passed && lacksResult(call)

/** What belongs after the message, and stands in the wrong place. */
const misplaced = (
  group: Group,
  messages: ReadonlyArray<Prompt.Message>,
  rules: Rules
): ReadonlyArray<{ readonly at: Pairing.Place; readonly rule: "results" | "resultOrder"; readonly detail: string }> => {
  const found: Array<{ at: Pairing.Place; rule: "results" | "resultOrder"; detail: string }> = []
  if (rules.results === "directly") {
    let end = group.message + 1
    while (end < messages.length && messages[end]!.role === "tool") end++
    for (const { part, result } of group.calls) {
      if (result === undefined || result.message < end) continue
      found.push({ at: result, rule: "results", detail: `the result ${part.id} does not directly follow its call` })
    }
    for (const { approvalId, response } of group.requests) {
      if (response === undefined || response.message < end) continue
      const detail = `the approval response ${approvalId} does not directly follow the message of its request`
      found.push({ at: response, rule: "results", detail })
    }
  }
  if (rules.resultOrder === "call") {
    let last: Pairing.Place | undefined
    for (const { part, result } of group.calls) {
      if (result === undefined) continue
      if (
        last !== undefined &&
        (result.message < last.message || result.message === last.message && result.part < last.part)
      ) {
        const detail = `the result ${part.id} stands before that of an earlier call`
        found.push({ at: result, rule: "resultOrder", detail })
      } else last = result
    }
  }
  return found
}

const messagesOf = (self: Prompt.Prompt | ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> =>
  "content" in self ? self.content : self

/**
 * Finds every violation of `rules`, in the order of the messages.
 *
 * @category validation
 * @since 0.1.0
 */
export const check = (
  self: Prompt.Prompt | ReadonlyArray<Prompt.Message>,
  rules: Rules
): ReadonlyArray<Violation> => {
  const messages = messagesOf(self)
  const found: Array<Violation> = []
  const add = (rule: RuleName, index: number, part: number | undefined, detail: string) => {
    found.push({ rule, index, part, detail })
  }

  let first: Prompt.Message | undefined
  let firstIndex = messages.length
  let systems = 0
  for (let m = 0; m < messages.length; m++) {
    const message = messages[m]!
    for (const fault of Send.faults(message, rules)) add(fault.rule, m, fault.part, fault.detail)
    if (message.role !== "system") {
      if (first === undefined) {
        first = message
        firstIndex = m
      }
      continue
    }
    systems++
    if (rules.system !== "anywhere" && first !== undefined) {
      add("system", m, undefined, "the system message stands after the conversation began")
    } else if (rules.system === "single" && systems > 1) {
      add("system", m, undefined, "there is more than one system message")
    }
  }
  if (rules.first === "user" && first?.role !== "user") {
    add("first", firstIndex, undefined, "the conversation does not begin with a user message")
  } else if (messages.length === 0) {
    add("first", 0, undefined, "there is no message")
  }

  const paired = Pairing.pair(messages)
  for (const { at, detail, rule } of paired.dropped) add(rule, at.message, at.part, detail)
  for (const call of paired.calls) {
    if (isAbandonedByProvider(call)) {
      const detail = `the call ${call.part.id} that the provider ran has no result`
      add("provider-executed", call.at.message, call.at.part, detail)
    } else if (!call.part.providerExecuted && lacksResult(call)) {
      add("pairing", call.at.message, call.at.part, `the call ${call.part.id} has no result`)
    }
  }
  for (const group of groupsOf(paired).values()) {
    for (const { at, detail, rule } of misplaced(group, messages, rules)) add(rule, at.message, at.part, detail)
  }
  return found.sort((a, b) => a.index - b.index || (a.part ?? -1) - (b.part ?? -1))
}

/** A message and its index in the prompt that was given. */
interface Entry {
  readonly index: number
  readonly message: Prompt.Message
}

/** What stands after a message whose results are put in order: a part of a tool message, or a synthetic result. */
type Member = Pairing.Place | Prompt.ToolResultPart

const isPlace = (member: Member): member is Pairing.Place => "message" in member

const membersOf = (group: Group): ReadonlyArray<Member> => {
  const members: Array<Member> = []
  const own = new Set(group.calls)
  for (const call of group.calls) {
    const request = call.request
    if (request?.response !== undefined && request.at.message === group.message) members.push(request.response)
    if (call.result !== undefined) members.push(call.result)
    else if (!call.asked) {
      members.push(call.passed ? Send.abandonedResult(call.part) : Send.runningResult(call.part))
    }
  }
  for (const { call, response } of group.requests) {
    if (response !== undefined && !own.has(call)) members.push(response)
  }
  return members
}

/** The messages that hold the members: parts that stood together in one message stay in one. */
const regionOf = (
  members: ReadonlyArray<Member>,
  entries: ReadonlyArray<Entry>
): ReadonlyArray<{ readonly source: number | undefined; readonly message: Prompt.Message }> => {
  const region: Array<{ source: number | undefined; message: Prompt.Message }> = []
  for (let i = 0; i < members.length;) {
    const member = members[i]!
    if (!isPlace(member)) {
      region.push({ source: undefined, message: Prompt.makeMessage("tool", { content: [member] }) })
      i++
      continue
    }
    const source = entries[member.message]!.message
    const parts: ReadonlyArray<Prompt.Part> = source.role === "system" ? [] : source.content
    const content: Array<Prompt.Part> = []
    let isWhole = true
    for (
      let next = members[i];
      next !== undefined && isPlace(next) && next.message === member.message;
      next = members[++i]
    ) {
      isWhole &&= next.part === content.length
      content.push(parts[next.part]!)
    }
    isWhole &&= content.length === parts.length
    region.push({ source: member.message, message: isWhole ? source : Send.withContent(source, content) })
  }
  return region
}

const reportFaults = (
  repairs: Array<Repair>,
  index: number,
  faults: ReadonlyArray<Send.Fault>
): void => {
  for (const { detail, rule } of faults) {
    repairs.push({ kind: rule === "reasoning" ? "reasoning" : "empty", messages: [index], detail })
  }
}

/** Pairs, drops, answers and moves: the results after their calls, everything else in its order. */
const repairPairing = (
  entries: ReadonlyArray<Entry>,
  rules: Rules,
  repairs: Array<Repair>
): ReadonlyArray<Prompt.Message> => {
  const messages = entries.map((_) => _.message)
  const paired = Pairing.pair(messages)
  const indexOf = (at: Pairing.Place): number => entries[at.message]!.index

  const drops = new Map<number, Set<number>>()
  const drop = (at: Pairing.Place) => {
    const parts = drops.get(at.message)
    if (parts === undefined) drops.set(at.message, new Set([at.part]))
    else parts.add(at.part)
  }
  for (const { at, detail, why } of paired.dropped) {
    drop(at)
    repairs.push({ kind: why, messages: [indexOf(at)], detail })
  }
  for (const call of paired.calls) {
    if (isAbandonedByProvider(call)) {
      drop(call.at)
      const detail = `the call ${call.part.id} that the provider ran has no result`
      repairs.push({ kind: "orphan", messages: [indexOf(call.at)], detail })
    } else if (!call.part.providerExecuted && lacksResult(call)) {
      const detail = call.passed
        ? `the call ${call.part.id} was passed by without a result`
        : `the call ${call.part.id} is still running`
      repairs.push({ kind: "synthetic", messages: [indexOf(call.at)], detail })
    }
  }

  // A group that is right stays as it is, byte for byte; another one is built again, in the order of its calls.
  const regions = new Map<number, ReadonlyArray<Prompt.Message>>()
  for (const group of groupsOf(paired).values()) {
    const wrong = misplaced(group, messages, rules)
    if (wrong.length === 0 && !group.calls.some((_) => _.repeated || lacksResult(_))) continue
    const members = membersOf(group)
    const region = regionOf(members, entries)
    for (const member of members) if (isPlace(member)) drop(member)
    const moved = new Set(wrong.map((_) => indexOf(_.at)))
    for (const { message, source } of region) {
      if (source !== undefined && message !== messages[source]) moved.add(entries[source]!.index)
    }
    if (moved.size > 0) {
      const detail = "put directly after the message of the call"
      repairs.push({ kind: "moved", messages: [...moved].sort((a, b) => a - b), detail })
    }
    regions.set(group.message, region.map((_) => _.message))
  }

  const out: Array<Prompt.Message> = []
  for (let m = 0; m < entries.length; m++) {
    const { index, message } = entries[m]!
    const parts = drops.get(m)
    if (parts === undefined || message.role === "system") out.push(message)
    else {
      const content: ReadonlyArray<Prompt.Part> = message.content
      const left = Send.withContent(message, content.filter((_, part) => !parts.has(part)))
      const fixed = Send.fixMessage(left, rules)
      // An emptied tool message is what the report already calls an orphan, a duplicate or moved.
      if (fixed !== left && message.role !== "tool") reportFaults(repairs, index, Send.faults(left, rules))
      if (fixed !== undefined) out.push(fixed)
    }
    const region = regions.get(m)
    if (region !== undefined) out.push(...region)
  }
  return out
}

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
): { readonly prompt: Prompt.Prompt; readonly repairs: ReadonlyArray<Repair> } => {
  if (check(self, rules).length === 0) return { prompt: self, repairs: [] }
  const repairs: Array<Repair> = []
  const systems: Array<Prompt.SystemMessage> = []
  const entries: Array<Entry> = []
  const systemIndexes: Array<number> = []
  const late: Array<number> = []
  for (let index = 0; index < self.content.length; index++) {
    const message = self.content[index]!
    // Before pairing: a message that is not sent can neither pass a call by nor stand between it and its results.
    const fixed = Send.fixMessage(message, rules)
    if (fixed !== message) reportFaults(repairs, index, Send.faults(message, rules))
    if (fixed === undefined) continue
    if (fixed.role === "system" && rules.system !== "anywhere") {
      if (entries.length > 0) late.push(index)
      systems.push(fixed)
      systemIndexes.push(index)
    } else entries.push({ index, message: fixed })
  }
  if (late.length > 0) repairs.push({ kind: "system-moved", messages: late, detail: "put before the conversation" })
  const merged = Send.mergeSystem(systems, rules)
  if (merged !== systems) repairs.push({ kind: "system-moved", messages: systemIndexes, detail: "made one message" })

  const messages = [...merged, ...repairPairing(entries, rules, repairs)]
  const first = messages.findIndex((_) => _.role !== "system")
  if (messages.length === 0 || rules.first === "user" && messages[first]?.role !== "user") {
    const at = first < 0 ? messages.length : first
    const before = self.content.indexOf(messages[at]!)
    const detail = "a user message that says that earlier messages were left out"
    repairs.push({ kind: "first-user", messages: before < 0 ? [] : [before], detail })
    messages.splice(at, 0, Send.firstUser())
  }
  return { prompt: Prompt.fromMessages(messages), repairs }
}

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
 *
 * @category repairing
 * @since 0.1.0
 */
export const repair = (self: Prompt.Prompt, rules: Rules): Prompt.Prompt => repairWithReport(self, rules).prompt
