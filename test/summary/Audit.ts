import * as Checkpoint from "effect-compaction/Checkpoint"
import type * as ContextManager from "effect-compaction/ContextManager"
import * as Marks from "effect-compaction/Marks"
import type * as View from "effect-compaction/View"
import * as Wire from "effect-compaction/Wire"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { bytesOf } from "../core/conversation.ts"
import * as Validators from "../wireValidators.ts"
import type { Manager } from "./Sessions.ts"

const bytes = (message: Prompt.Message): string => bytesOf(Prompt.fromMessages([message]))

/** The number of the messages that every provider would refuse, by the library's rules and by a second opinion. */
export const refusals = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> => [
  ...Wire.check(messages, Wire.all).map(({ rule, ...where }) => `${rule} ${JSON.stringify(where)}`),
  ...Validators.anthropic(Validators.toAnthropic(messages)),
  ...Validators.chat(Validators.toChat(messages)),
  ...Validators.responses(Validators.toResponses(messages)),
  ...Validators.gemini(Validators.toGemini(messages))
]

/** A group is whole in a view or not there at all; a synthetic result is part of it. */
const splitGroups = ({ items, transcript }: View.View): number => {
  const seen = new Set(items.map((item) => item.seq))
  let split = 0
  for (const entry of transcript.entries) {
    if (entry.group !== entry.seq || entry.calls.length === 0) continue
    const own = items.filter((item) => item.group === entry.seq)
    if (own.length > 0 && !seen.has(entry.seq)) split++
    // Together and in one place: nothing stands between a call and its results.
    const places = items.flatMap((item, at) => item.group === entry.seq ? [at] : [])
    if (places.length > 0 && places.at(-1)! - places[0]! !== places.length - 1) split++
  }
  return split
}

/** What holds for the receipts of a view: what is not in it has a checkpoint in it or a record of its loss. */
const unexplained = (view: View.View, receipts: ReadonlyArray<View.Receipt>): ReadonlyArray<string> => {
  const inView = new Set(view.items.map((item) => item.seq))
  const lost = new Set(view.decisions.flatMap((each) => each._tag === "Remove" ? each.seqs : []))
  return receipts.flatMap((receipt) => {
    const entry = view.transcript.entries[receipt.seq]!
    const isRight = receipt._tag === "Kept" || receipt._tag === "Altered"
      ? inView.has(receipt.seq)
      : receipt._tag === "Covered"
      ? !inView.has(receipt.seq) && inView.has(receipt.checkpoint)
        && covers(view, receipt.checkpoint, receipt.seq)
      : receipt._tag === "Lost"
      ? !inView.has(receipt.seq) && (lost.has(receipt.seq) || isLostWith(view, receipt.seq, lost))
      : receipt._tag === "Dropped"
      ? entry.kind !== "message" && !inView.has(receipt.seq)
      : receipt._tag === "Waiting"
      ? entry.origin === "library" && !inView.has(receipt.seq)
      : false
    return isRight ? [] : [`entry ${receipt.seq} is said to be ${receipt._tag}`]
  })
}

/** Whether the marks of a checkpoint, or of one that it merged, name the entry or the call it answers. */
const covers = (view: View.View, checkpoint: number, seq: number): boolean => {
  const { entries } = view.transcript
  const { group } = entries[seq]!
  const named = Marks.of(entries[checkpoint]!.message).checkpoint?.seqs ?? []
  return named.some((each) =>
    each === seq || each === group
    || (Checkpoint.isCheckpoint(entries[each]!) && covers(view, each, seq))
  )
}

/** Lost with its call, or with the checkpoint that stood for it. */
const isLostWith = (view: View.View, seq: number, lost: ReadonlySet<number>): boolean => {
  const { group } = view.transcript.entries[seq]!
  return lost.has(group) ||
    [...lost].some((each) => Checkpoint.isCheckpoint(view.transcript.entries[each]!) && covers(view, each, seq))
}

/** What one session shows from request to request, and what is wrong with it. */
export const make = () => {
  let before: ReadonlyArray<string> = []
  let system: string | undefined
  let last: Map<number, string> = new Map()
  return Effect.fnUntraced(function*(self: Manager, request: ContextManager.Request) {
    const wrong: Array<string> = [...refusals(request.prompt.content)]
    const messages = request.prompt.content.slice(0, request.stableLength).map(bytes)
    if (request.prefixChanged === null && before.some((each, at) => messages[at] !== each)) {
      wrong.push("the prefix changed and nothing said so")
    }
    if (request.prefixChanged === "boundary" && !request.events.some((event) => event._tag === "Compacted")) {
      // By hand a boundary is made outside of the request that carries it.
      wrong.push("by hand")
    }
    before = messages
    const head = JSON.stringify(request.prompt.content.filter((message) => message.role === "system").map(bytes))
    if (system !== undefined && system !== head) wrong.push("the system block is another one")
    system = head
    const view = yield* self.view
    for (const { entry } of view.items) {
      if (entry?.origin === "library" && entry.role !== "user") wrong.push(`a summary of role ${entry.role}`)
    }
    const split = splitGroups(view)
    if (split > 0) wrong.push(`${split} groups are split`)
    const rendered = new Map(view.items.flatMap((item) => item.seq < 0 ? [] : [[item.seq, bytes(item.message)]]))
    if (request.prefixChanged === null) {
      for (const [seq, text] of last) if (rendered.get(seq) !== text) wrong.push(`entry ${seq} was minted again`)
    }
    last = rendered
    // A tool message may be sent together with others: its part is what must be there.
    const sent = new Set(messages)
    for (const text of rendered.values()) {
      if (sent.has(text)) continue
      const part = text.slice(text.indexOf("\"content\"") + 11, -3)
      if (!messages.some((message) => message.includes(part))) wrong.push(`not sent: ${text.slice(0, 90)}`)
    }
    wrong.push(...unexplained(view, yield* self.receipts))
    return wrong.filter((each) => each !== "by hand")
  })
}
