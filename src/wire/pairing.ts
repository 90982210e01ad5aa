/**
 * Which result answers which call: the one rule, for views, wire checks, cuts and approvals.
 *
 * Providers reuse ids such as `call_0`, so an id is no identity: a result belongs to the nearest earlier call with its
 * id that is still unanswered (of several in one entry, the first). When all are answered it repeats the nearest call
 * with its id (of several in one entry, the last); when there is none it is an orphan. A result that comes back under the
 * id that was made for the wire belongs to the calls with the id it was made of.
 */
import * as Ids from "./ids.ts"

/** One call: the seq of the entry that makes it and its position among the calls of that entry, from 0. */
export interface CallRef {
  readonly seq: number
  readonly index: number
}

/** The calls that were made so far. It grows in the order of the entries: {@link add} and {@link answer} write to it. */
export interface Calls<A extends CallRef> {
  /** Unanswered calls by id, oldest first. */
  readonly open: Map<string, Array<A>>
  /** The last call made with an id. */
  readonly latest: Map<string, A>
  /** The ids by their hash, from when it is first asked for: hardly a conversation has a result under a made id. */
  hashes: Map<string, string> | undefined
}

export const none = <A extends CallRef>(): Calls<A> => ({ open: new Map(), latest: new Map(), hashes: undefined })

export const add = <A extends CallRef>(self: Calls<A>, id: string, call: A): void => {
  self.hashes?.set(Ids.hashOf(id), id)
  const open = self.open.get(id)
  if (open === undefined) self.open.set(id, [call])
  else open.push(call)
  self.latest.set(id, call)
}

/** The id of the calls that a result with an id may belong to. */
const meant = <A extends CallRef>(self: Calls<A>, id: string): string | undefined => {
  if (self.latest.has(id)) return id
  const hash = Ids.hashIn(id)
  if (hash === undefined) return undefined
  self.hashes ??= new Map(Array.from(self.latest.keys(), (each) => [Ids.hashOf(each), each]))
  return self.hashes.get(hash)
}

/**
 * The call that a result answers, and whether it repeats the answer; `undefined` for an orphan. `index` says which call of
 * its entry, for a result that was made for one.
 */
export const answer = <A extends CallRef>(
  self: Calls<A>,
  id: string,
  index?: number
): { readonly call: A; readonly isRepeated: boolean } | undefined => {
  const known = meant(self, id)
  if (known === undefined) return undefined
  const open = self.open.get(known)
  if (open === undefined) return { call: self.latest.get(known)!, isRepeated: true }
  let at = open.length - 1
  while (at > 0 && open[at - 1]!.seq === open[at]!.seq) at--
  const made = index === undefined ? -1 : open.findIndex((call, place) => place >= at && call.index === index)
  const [call] = open.splice(made < 0 ? at : made, 1)
  if (open.length === 0) self.open.delete(known)
  return { call: call!, isRepeated: false }
}

/**
 * Which of the calls of a message its approval requests ask about, by their ids: of the calls with an id the first that
 * nobody asked about yet, else the last of them; −1 where the message has none.
 */
export const asked = (
  calls: ReadonlyArray<string>,
  requests: ReadonlyArray<string>
): ReadonlyArray<number> => {
  const taken = new Set<number>()
  return requests.map((id) => {
    const free = calls.findIndex((each, at) => each === id && !taken.has(at))
    const call = free < 0 ? calls.lastIndexOf(id) : free
    taken.add(call)
    return call
  })
}

/** The calls of a transcript, and by seq of a calling entry the seq of the last result of each of its calls, or −1. */
export interface Pairing extends Calls<CallRef> {
  readonly answers: Map<number, Array<number>>
}

export const make = (): Pairing => ({ ...none<CallRef>(), answers: new Map() })

/** Records the calls of an entry, by id, in the order in which the entry makes them. */
export const addCalls = (self: Pairing, seq: number, ids: ReadonlyArray<string>): void => {
  if (ids.length === 0) return
  self.answers.set(seq, new Array<number>(ids.length).fill(-1))
  for (let index = 0; index < ids.length; index++) add(self, ids[index]!, { seq, index })
}

/**
 * Records a result and returns the call it belongs to with the seq of the result it had before (−1 for none), or
 * `undefined` for an orphan.
 */
export const settle = (
  self: Pairing,
  seq: number,
  id: string,
  index?: number
): { readonly call: CallRef; readonly before: number } | undefined => {
  const answered = answer(self, id, index)
  if (answered === undefined) return undefined
  const { call } = answered
  const results = self.answers.get(call.seq)!
  const before = results[call.index]!
  results[call.index] = seq
  return { call, before }
}

/** The seq of the last result of a call, −1 when it has none. */
export const resultOf = (self: Pairing, ref: CallRef): number => self.answers.get(ref.seq)?.[ref.index] ?? -1

/** Whether every call of an entry has a result. */
export const isSettled = (self: Pairing, seq: number): boolean => {
  const answers = self.answers.get(seq)
  return answers === undefined || !answers.includes(-1)
}
