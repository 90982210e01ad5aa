/**
 * Every violation of some rules, and what a repair needs to know of them: the groups of calls and what stands in the wrong
 * place.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Wire from "../Wire.ts"
import * as Ids from "./ids.ts"
import * as Paired from "./paired.ts"
import * as Send from "./send.ts"

/** A message with calls or approval requests, and what must stand after it. */
export interface Group {
  readonly message: number
  readonly calls: Array<Paired.Call>
  readonly requests: Array<Paired.Request>
}

export const groupsOf = (paired: Paired.Paired): ReadonlyMap<number, Group> => {
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

export const lacksResult = (call: Paired.Call): boolean => call.result === undefined && call.request === undefined

/** A paused turn may end with a call that the provider is still running: it is sent back to be continued. */
export const isAbandonedByProvider = (call: Paired.Call): boolean =>
  call.part.providerExecuted && call.passed && lacksResult(call)

/** The calls whose ids may not be sent, and the results under an id that was made of that of their call. */
const idFaults = (
  paired: Paired.Paired,
  messages: ReadonlyArray<Prompt.Message>,
  rules: Wire.Rules
): ReadonlyArray<{ readonly at: Paired.Place; readonly detail: string }> => {
  const found: Array<{ at: Paired.Place; detail: string }> = []
  const used = new Set<string>()
  for (const { at, part: { id, providerExecuted }, result } of paired.calls) {
    const detail = Ids.faultOf(id, providerExecuted, rules.ids)
      ?? (used.has(id) ? `an earlier call has the id ${id}` : undefined)
    if (detail !== undefined) found.push({ at, detail })
    used.add(id)
    const answer = result === undefined ? undefined : partAt(messages, result)
    if (answer?.type === "tool-result" && answer.id !== id) {
      found.push({ at: result!, detail: `the result ${answer.id} answers the call ${id}` })
    }
  }
  return found
}

const partAt = (messages: ReadonlyArray<Prompt.Message>, { message, part }: Paired.Place): Prompt.Part | undefined => {
  const { content, role } = messages[message]!
  return role === "system" ? undefined : content[part]
}

/** What belongs after the message, and stands in the wrong place. */
export const misplaced = (
  group: Group,
  messages: ReadonlyArray<Prompt.Message>,
  rules: Wire.Rules
): ReadonlyArray<{ readonly at: Paired.Place; readonly rule: "results" | "resultOrder"; readonly detail: string }> => {
  const found: Array<{ at: Paired.Place; rule: "results" | "resultOrder"; detail: string }> = []
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
    let last: Paired.Place | undefined
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

export const check = (
  messages: ReadonlyArray<Prompt.Message>,
  rules: Wire.Rules
): ReadonlyArray<Wire.Violation> => {
  const found: Array<Wire.Violation> = []
  const add = (rule: Wire.RuleName, index: number, part: number | undefined, detail: string) => {
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

  const paired = Paired.pair(messages)
  for (const { at, detail, rule } of paired.dropped) add(rule, at.message, at.part, detail)
  for (const call of paired.calls) {
    if (isAbandonedByProvider(call)) {
      const detail = `the call ${call.part.id} that the provider ran has no result`
      add("provider-executed", call.at.message, call.at.part, detail)
    } else if (!call.part.providerExecuted && lacksResult(call)) {
      add("pairing", call.at.message, call.at.part, `the call ${call.part.id} has no result`)
    }
  }
  for (const { at, detail } of idFaults(paired, messages, rules)) add("ids", at.message, at.part, detail)
  for (const group of groupsOf(paired).values()) {
    for (const { at, detail, rule } of misplaced(group, messages, rules)) add(rule, at.message, at.part, detail)
  }
  return found.sort((a, b) => a.index - b.index || (a.part ?? -1) - (b.part ?? -1))
}
