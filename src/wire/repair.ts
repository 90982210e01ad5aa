/**
 * The repair of a prompt: what {@link check} finds is dropped, answered, moved, merged or renamed, and said.
 */
import * as Prompt from "effect/ai/Prompt"
import type * as Wire from "../Wire.ts"
import * as Check from "./check.ts"
import * as Names from "./names.ts"
import * as Paired from "./paired.ts"
import * as Send from "./send.ts"

/** A message and its index in the prompt that was given. */
interface Entry {
  readonly index: number
  readonly message: Prompt.Message
}

/** A message of the repaired prompt; without an index it was added. */
interface Repaired {
  readonly index: number | undefined
  readonly message: Prompt.Message
}

/** What stands after a message whose results are put in order: a part of a tool message, or a synthetic result. */
type Member = Paired.Place | Prompt.ToolResultPart

const isPlace = (member: Member): member is Paired.Place => "message" in member

const membersOf = (group: Check.Group): ReadonlyArray<Member> => {
  const members: Array<Member> = []
  const own = new Set(group.calls)
  const parts = group.calls.map((call) => call.part)
  for (const call of group.calls) {
    const request = call.request
    if (request?.response !== undefined && request.at.message === group.message) members.push(request.response)
    if (call.result !== undefined) members.push(call.result)
    else if (call.request === undefined) {
      members.push(call.passed ? Send.abandonedResult(parts, call.index) : Send.runningResult(parts, call.index))
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
  repairs: Array<Wire.Repair>,
  index: number,
  faults: ReadonlyArray<Send.Fault>
): void => {
  for (const { detail, rule } of faults) {
    repairs.push({ kind: rule === "text" ? "empty" : rule, messages: [index], detail })
  }
}

/** Pairs, drops, answers and moves: the results after their calls, everything else in its order. */
const repairPairing = (
  entries: ReadonlyArray<Entry>,
  rules: Wire.Rules,
  repairs: Array<Wire.Repair>
): ReadonlyArray<Repaired> => {
  const messages = entries.map((_) => _.message)
  const paired = Paired.pair(messages)
  const indexOf = (at: Paired.Place): number => entries[at.message]!.index

  const drops = new Map<number, Set<number>>()
  const drop = (at: Paired.Place) => {
    const parts = drops.get(at.message)
    if (parts === undefined) drops.set(at.message, new Set([at.part]))
    else parts.add(at.part)
  }
  for (const { at, detail, why } of paired.dropped) {
    drop(at)
    repairs.push({ kind: why, messages: [indexOf(at)], detail })
  }
  for (const call of paired.calls) {
    if (Check.isAbandonedByProvider(call)) {
      drop(call.at)
      const detail = `the call ${call.part.id} that the provider ran has no result`
      repairs.push({ kind: "orphan", messages: [indexOf(call.at)], detail })
    } else if (!call.part.providerExecuted && Check.lacksResult(call)) {
      const detail = call.passed
        ? `the call ${call.part.id} was passed by without a result`
        : `the call ${call.part.id} is still running`
      repairs.push({ kind: "synthetic", messages: [indexOf(call.at)], detail })
    }
  }

  // A group that is right stays as it is, byte for byte; another one is built again, in the order of its calls.
  const regions = new Map<number, ReadonlyArray<Repaired>>()
  for (const group of Check.groupsOf(paired).values()) {
    const wrong = Check.misplaced(group, messages, rules)
    if (wrong.length === 0 && !group.calls.some((_) => _.repeated || Check.lacksResult(_))) continue
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
    regions.set(
      group.message,
      region.map(({ message, source }) => ({
        index: source === undefined ? undefined : entries[source]!.index,
        message
      }))
    )
  }

  const out: Array<Repaired> = []
  for (let m = 0; m < entries.length; m++) {
    const { index, message } = entries[m]!
    const parts = drops.get(m)
    if (parts === undefined || message.role === "system") out.push({ index, message })
    else {
      const content: ReadonlyArray<Prompt.Part> = message.content
      const left = Send.withContent(message, content.filter((_, part) => !parts.has(part)))
      const fixed = Send.fixMessage(left, rules)
      // An emptied tool message is what the report already calls an orphan, a duplicate or moved.
      if (fixed !== left && message.role !== "tool") reportFaults(repairs, index, Send.faults(left, rules))
      if (fixed !== undefined) out.push({ index, message: fixed })
    }
    const region = regions.get(m)
    if (region !== undefined) out.push(...region)
  }
  return out
}

/** Gives each call an id of its own, which the provider takes. */
const rename = (
  paired: ReadonlyArray<Repaired>,
  rules: Wire.Rules,
  repairs: Array<Wire.Repair>
): ReadonlyArray<Prompt.Message> => {
  const names = Names.make(rules.ids)
  return paired.map(({ index, message }) => {
    const named = Names.name(names, message)
    if (named !== message && index !== undefined) {
      repairs.push({ kind: "renamed", messages: [index], detail: Names.changeOf(message, named) })
    }
    return named
  })
}

/** Repairs, and says what was done; see `Wire.repairWithReport`. */
export const repair = (
  self: Prompt.Prompt,
  rules: Wire.Rules
): { readonly prompt: Prompt.Prompt; readonly repairs: ReadonlyArray<Wire.Repair> } => {
  if (Check.check(self.content, rules).length === 0) return { prompt: self, repairs: [] }
  const repairs: Array<Wire.Repair> = []
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

  const messages = [...merged, ...rename(repairPairing(entries, rules, repairs), rules, repairs)]
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
