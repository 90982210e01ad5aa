/**
 * Gives each result of a session its call: the name of it, and a place behind it.
 *
 * A result answers the nearest earlier message that has an unanswered call with its id, and of several calls there the
 * first, since ids are used again. The wire pairs by the same rule (`src/wire/pairing.ts`).
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Marks from "../../Marks.ts"
import type * as Session from "../Session.ts"
import * as Message from "./message.ts"

interface Call {
  readonly name: string
  readonly message: number
  answered: boolean
}

/** The calls with one id, in order; `open` are those without a result, by message. */
interface Calls {
  readonly all: Array<Call>
  readonly open: Array<Array<Call>>
}

interface Result {
  readonly part: Prompt.ToolResultPart
  readonly message: number
  /** The call that it answers. */
  call: Call | undefined
  /** The call that gives it a name: the one that it answers, else the latest before it with its id. */
  namesake: Call | undefined
}

const register = (byId: Map<string, Calls>, id: string, call: Call): void => {
  let calls = byId.get(id)
  if (calls === undefined) byId.set(id, calls = { all: [], open: [] })
  calls.all.push(call)
  const nearest = calls.open.at(-1)
  if (nearest?.[0]?.message === call.message) nearest.push(call)
  else calls.open.push([call])
}

const answer = (calls: Calls | undefined): Call | undefined => {
  const nearest = calls?.open.at(-1)
  const call = nearest?.shift()
  if (call !== undefined) call.answered = true
  if (nearest?.length === 0) calls?.open.pop()
  return call
}

const pair = (
  messages: ReadonlyArray<Prompt.Message>
): { readonly byId: ReadonlyMap<string, Calls>; readonly results: ReadonlyArray<Result> } => {
  const byId = new Map<string, Calls>()
  const results: Array<Result> = []
  for (const [message, { content, role }] of messages.entries()) {
    if (role !== "assistant" && role !== "tool") continue
    for (const part of content) {
      if (part.type === "tool-call") register(byId, part.id, { name: part.name, message, answered: false })
      else if (part.type === "tool-result") {
        const calls = byId.get(part.id)
        const call = answer(calls)
        results.push({ part, message, call, namesake: call ?? calls?.all.at(-1) })
      }
    }
  }
  return { byId, results }
}

const isHuman = (message: Prompt.Message): boolean =>
  message.role === "user" && !Marks.machineSources.has(Marks.of(message).source ?? "")

/**
 * The results that stand before their call. Only where no call with the id is before, and no person spoke between the
 * two: a result whose call was cut off must not answer another call that has the same id by chance.
 */
const earlyOf = (
  messages: ReadonlyArray<Prompt.Message>,
  byId: ReadonlyMap<string, Calls>,
  results: ReadonlyArray<Result>
): ReadonlyArray<Result> => {
  let turn = 0
  const turns = messages.map((message) => isHuman(message) ? ++turn : turn)
  const next = new Map<string, number>()
  return results.filter((result) => {
    const { id } = result.part
    const calls = byId.get(id)?.all
    if (result.call !== undefined || messages[result.message]?.role !== "tool" || calls === undefined) return false
    if ((calls[0]?.message ?? 0) < result.message) return false
    let at = next.get(id) ?? 0
    while (calls[at]?.answered === true) at++
    next.set(id, at)
    const call = calls[at]
    if (call === undefined || turns[call.message] !== turns[result.message]) return false
    call.answered = true
    result.call = result.namesake = call
    return true
  })
}

/** A message, and which message of the file it is or, for results that were moved, came from. */
interface Placed {
  readonly message: Prompt.Message
  readonly from: number
}

/** The messages with the early results behind their calls; what is left of their own messages stays in place. */
const moved = (messages: ReadonlyArray<Prompt.Message>, early: ReadonlyArray<Result>): ReadonlyArray<Placed> => {
  const gone = new Set<Prompt.Part>(early.map(({ part }) => part))
  const behind = new Map<number, Array<Result>>()
  for (const result of early) {
    const call = result.call?.message ?? result.message
    const known = behind.get(call)
    if (known === undefined) behind.set(call, [result])
    else known.push(result)
  }
  return messages.flatMap((message, from): ReadonlyArray<Placed> => {
    const added = (behind.get(from) ?? []).map((result) => ({
      message: Message.tool([result.part]),
      from: result.message
    }))
    if (message.role !== "tool" || !message.content.some((part) => gone.has(part))) {
      return [{ message, from }, ...added]
    }
    const content = message.content.filter((part) => !gone.has(part))
    return content.length === 0 ? added : [{ message: { ...message, content }, from }, ...added]
  })
}

const withNames = (placed: ReadonlyArray<Placed>, results: ReadonlyArray<Result>): ReadonlyArray<Placed> => {
  const names = new Map<Prompt.Part, string>()
  for (const { namesake, part } of results) {
    if (part.name === "" && namesake !== undefined && namesake.name !== "") names.set(part, namesake.name)
  }
  if (names.size === 0) return placed
  return placed.map(({ from, message }) =>
    message.role === "tool" && message.content.some((part) => names.has(part))
      ? {
        from,
        message: {
          ...message,
          content: message.content.map((part) => {
            const name = part.type === "tool-result" ? names.get(part) : undefined
            return name === undefined || part.type !== "tool-result" ? part : { ...part, name }
          })
        }
      }
      : { from, message }
  )
}

/**
 * The messages as the model was shown them, each with the number it had, and what is to be told: calls without a result
 * (`unanswered-call`), results without a call (`orphan-result`), results that stood before their call (`early-result`).
 *
 * `lineOf` gives the line of a message by its number.
 */
export const settle = (
  messages: ReadonlyArray<Prompt.Message>,
  lineOf: (index: number) => number
): { readonly placed: ReadonlyArray<Placed>; readonly findings: ReadonlyArray<Session.Finding> } => {
  const { byId, results } = pair(messages)
  const strays = results.some(({ call }) => call === undefined)
  const early = strays ? earlyOf(messages, byId, results) : []
  const findings: Array<Session.Finding> = []
  for (const { call, message, part } of results) {
    if (call !== undefined) continue
    findings.push({ kind: "orphan-result", line: lineOf(message), detail: `no call has the id ${part.id}` })
  }
  for (const { message, namesake, part } of early) {
    const detail = `the result of ${namesake?.name ?? ""} (${part.id}) stands before its call, and is read behind it`
    findings.push({ kind: "early-result", line: lineOf(message), detail })
  }
  for (const [id, { all }] of byId) {
    for (const { answered, message, name } of all) {
      if (answered) continue
      findings.push({ kind: "unanswered-call", line: lineOf(message), detail: `${name} (${id}) has no result` })
    }
  }
  const placed = early.length === 0 ? messages.map((message, from) => ({ message, from })) : moved(messages, early)
  return { placed: withNames(placed, results), findings }
}
