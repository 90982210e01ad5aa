import type * as Decision from "effect-compaction/Decision"
import type * as Prompt from "effect/ai/Prompt"

/** Why an entry is not in the view, or that it must be there. `either` leaves it open. */
export type Place = "view" | "removed" | "orphan" | "superseded" | "either"

interface Plain {
  readonly role: Prompt.Message["role"]
  readonly message: Prompt.Message
  readonly part: Prompt.Part | undefined
}

interface Call {
  readonly id: string
  readonly seq: number
  answers: Array<number>
}

/** The entries of a history, as the specification counts them. */
export const entriesOf = (history: ReadonlyArray<Prompt.Message>): ReadonlyArray<Plain> =>
  history.flatMap((message): ReadonlyArray<Plain> =>
    message.role === "tool"
      ? message.content.map((part) => ({ role: message.role, message, part }))
      : [{ role: message.role, message, part: undefined }]
  )

/**
 * Where every entry must be, found again the slow way: a walk back over all calls for each result. Shares nothing with
 * the library but the shape of a decision.
 */
export const places = (
  history: ReadonlyArray<Prompt.Message>,
  decisions: ReadonlyArray<Decision.Decision>
): ReadonlyArray<Place> => {
  const entries = entriesOf(history)
  const removed = new Set(decisions.flatMap((decision) => "seqs" in decision ? decision.seqs : []))
  const calls: Array<Call> = []
  const asked = new Map<string, number>()
  // Requests without their call beside them: whose their responses are is left open.
  const unclear = new Set<string>()
  const callOf: Array<Call | undefined> = []
  const requestOf: Array<number | "unclear" | undefined> = []
  entries.forEach((entry, seq) => {
    if (entry.message.role === "assistant") {
      for (const part of entry.message.content) {
        if (part.type === "tool-call" && !part.providerExecuted) calls.push({ id: part.id, seq, answers: [] })
        if (part.type !== "tool-approval-request") continue
        if (calls.some((call) => call.seq === seq && call.id === part.toolCallId)) asked.set(part.approvalId, seq)
        else unclear.add(part.approvalId)
      }
    }
    if (entry.part?.type === "tool-approval-response") {
      const { approvalId } = entry.part
      requestOf[seq] = unclear.has(approvalId) ? "unclear" : asked.get(approvalId)
    }
    if (entry.part?.type !== "tool-result") return
    const { id } = entry.part
    const own = calls.filter((call) => call.id === id)
    const open = own.filter((call) => call.answers.length === 0)
    const nearest = open.at(-1)
    const call = nearest === undefined ? own.at(-1) : open.find((each) => each.seq === nearest.seq)
    call?.answers.push(seq)
    callOf[seq] = call
  })
  /** Whether a later response to the same approval is one to this request. */
  const isAnsweredAgain = (seq: number, approvalId: string, request: number | "unclear"): boolean =>
    entries.some(({ part }, later) =>
      later > seq && part?.type === "tool-approval-response" && part.approvalId === approvalId
      && requestOf[later] === request
    )
  return entries.map(({ part, role }, seq): Place => {
    if (role === "system") return "view"
    if (removed.has(seq)) return "removed"
    if (part?.type === "tool-result") {
      const call = callOf[seq]
      if (call === undefined || removed.has(call.seq)) return "orphan"
      return call.answers.at(-1) === seq ? "view" : "superseded"
    }
    if (part?.type === "tool-approval-response") {
      const request = requestOf[seq]
      if (request === "unclear") return "either"
      if (request === undefined || removed.has(request)) return "orphan"
      if (isAnsweredAgain(seq, part.approvalId, request)) return "superseded"
      return isAnsweredAgain(seq, part.approvalId, "unclear") ? "either" : "view"
    }
    return "view"
  })
}
