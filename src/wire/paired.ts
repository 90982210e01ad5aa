/**
 * The rule of pairing over one list of messages: each call with its result, its approval request and the response.
 *
 * The place of a result decides what it can answer, not its flag: in a tool message it answers a call of the framework,
 * in an assistant message a call that the provider ran. Everything is found in one walk; each step is O(1).
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../Marks.ts"
import * as Pairing from "./pairing.ts"
import * as Traits from "./traits.ts"

/** Where a part stands. */
export interface Place {
  readonly message: number
  readonly part: number
}

/**
 * A call and what belongs to it: the index of its message, and its position among the calls there that are run where it
 * is. `passed` is whether a later assistant or human message exists.
 */
export interface Call extends Pairing.CallRef {
  readonly at: Place
  readonly part: Prompt.ToolCallPart
  readonly passed: boolean
  result: Place | undefined
  /** Whether an earlier result was replaced. */
  repeated: boolean
  request: Request | undefined
}

/** An approval request and the response that counts. */
export interface Request {
  readonly at: Place
  readonly approvalId: string
  readonly call: Call
  response: Place | undefined
}

/** A part that belongs to nothing, or that a later one replaces. */
interface Dropped {
  readonly at: Place
  readonly rule: "pairing" | "approval" | "provider-executed"
  readonly why: "orphan" | "duplicate"
  readonly detail: string
}

export interface Paired {
  /** In the order of the messages, and of the parts within one. */
  readonly calls: ReadonlyArray<Call>
  /** In the same order; those that a later request replaces are not among them. */
  readonly requests: ReadonlyArray<Request>
  readonly dropped: ReadonlyArray<Dropped>
}

const isPassing = (message: Prompt.Message): boolean =>
  message.role === "assistant" || message.role === "user" && Traits.isHuman(message)

/** What ends the running of a call: the last message that passes it by, and for calls of the provider the last turn. */
const ends = (messages: ReadonlyArray<Prompt.Message>): { readonly local: number; readonly remote: number } => {
  let local = -1
  let remote = -1
  for (let m = messages.length - 1; m >= 0 && (local < 0 || remote < 0); m--) {
    const message = messages[m]!
    if (local < 0 && isPassing(message)) local = m
    if (remote < 0 && (message.role === "assistant" || message.role === "user")) remote = m
  }
  return { local, remote }
}

/** The calls of every message, and the live requests that ask about them. */
const collect = (
  messages: ReadonlyArray<Prompt.Message>,
  dropped: Array<Dropped>
): { readonly calls: ReadonlyArray<Call>; readonly requests: ReadonlyArray<Request> } => {
  const end = ends(messages)
  const calls: Array<Call> = []
  const requests: Array<Request> = []
  const latest = new Map<string, Call>()
  for (let m = 0; m < messages.length; m++) {
    const message = messages[m]!
    if (message.role !== "assistant") continue
    const own: Array<Call> = []
    const asking: Array<{ readonly part: Prompt.ToolApprovalRequestPart; readonly at: Place }> = []
    for (let p = 0; p < message.content.length; p++) {
      const part = message.content[p]!
      const at = { message: m, part: p }
      if (part.type === "tool-approval-request") asking.push({ part, at })
      if (part.type !== "tool-call") continue
      const { providerExecuted } = part
      const passed = (providerExecuted ? end.remote : end.local) > m
      const index = own.filter((call) => call.part.providerExecuted === providerExecuted).length
      own.push({ seq: m, index, at, part, passed, result: undefined, repeated: false, request: undefined })
    }
    const meant = asking.length === 0
      ? []
      : Pairing.asked(own.map((call) => call.part.id), asking.map(({ part }) => part.toolCallId))
    for (const [nth, { at, part }] of asking.entries()) {
      const call = own[meant[nth]!] ?? latest.get(part.toolCallId)
      if (call === undefined) {
        const detail = `the approval request ${part.approvalId} has no call ${part.toolCallId}`
        dropped.push({ at, rule: "approval", why: "orphan", detail })
        continue
      }
      if (call.request !== undefined) {
        const detail = `the later approval request ${part.approvalId} asks about the same call`
        dropped.push({ at: call.request.at, rule: "approval", why: "duplicate", detail })
      }
      call.request = { at, approvalId: part.approvalId, call, response: undefined }
      requests.push(call.request)
    }
    calls.push(...own)
    for (const call of own) latest.set(call.part.id, call)
  }
  return { calls, requests: requests.filter((_) => _.call.request === _) }
}

/** Pairs the calls, results and approvals of a list of messages. */
export const pair = (messages: ReadonlyArray<Prompt.Message>): Paired => {
  const dropped: Array<Dropped> = []
  const { calls, requests } = collect(messages, dropped)
  const local = Pairing.none<Call>()
  // A call the provider ran is answered before its turn ends, and a message of role user ends it.
  let remote = Pairing.none<Call>()
  const asked = new Map<string, Request>()
  let nextCall = 0
  let nextRequest = 0

  const settle = (known: Pairing.Calls<Call>, at: Place, part: Prompt.ToolResultPart, rule: Dropped["rule"]): void => {
    const { id } = part
    const call = Pairing.answer(known, id, Marks.of(part).call)?.call
    if (call === undefined) {
      dropped.push({ at, rule, why: "orphan", detail: `the result ${id} has no call before it` })
      return
    }
    if (call.result !== undefined) {
      call.repeated = true
      const detail = `a later result of the call ${id} replaces this one`
      dropped.push({ at: call.result, rule, why: "duplicate", detail })
    }
    call.result = at
  }

  const respond = (at: Place, approvalId: string): void => {
    const request = asked.get(approvalId)
    if (request === undefined) {
      const detail = `the approval response ${approvalId} has no request before it`
      dropped.push({ at, rule: "approval", why: "orphan", detail })
      return
    }
    if (request.response !== undefined) {
      const detail = `a later response ${approvalId} replaces this one: together they would run the tool twice`
      dropped.push({ at: request.response, rule: "approval", why: "duplicate", detail })
    }
    request.response = at
  }

  for (let m = 0; m < messages.length; m++) {
    const message = messages[m]!
    if (message.role === "user") remote = Pairing.none()
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (let p = 0; p < message.content.length; p++) {
      const part = message.content[p]!
      const at = { message: m, part: p }
      if (part.type === "tool-call") {
        Pairing.add(part.providerExecuted ? remote : local, part.id, calls[nextCall++]!)
      } else if (part.type === "tool-result") {
        if (message.role === "tool") settle(local, at, part, "pairing")
        else settle(remote, at, part, "provider-executed")
      } else if (part.type === "tool-approval-response") {
        respond(at, part.approvalId)
      } else if (part.type === "tool-approval-request" && requests[nextRequest]?.at.message === m) {
        if (requests[nextRequest]!.at.part === p) asked.set(part.approvalId, requests[nextRequest++]!)
      }
    }
  }
  return { calls, requests, dropped }
}
