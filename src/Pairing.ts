/**
 * Which result answers which call.
 *
 * Providers reuse ids such as `call_0`, so an id is no identity: a result belongs to the nearest earlier call with its
 * id that is still unanswered (of several in one entry, the first). When all are answered it repeats the nearest call
 * with its id (of several in one entry, the last); when there is none it is an orphan. This is settled once, when the
 * entry is appended, and never changed.
 *
 * **Gotchas**
 *
 * A `Pairing` is an index that grows with its transcript: {@link addCalls} and {@link answer} write to it, in the order
 * of the entries.
 *
 * @since 0.1.0
 */

/**
 * One call: the seq of the entry that makes it and its position among the calls of that entry, from 0.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallRef {
  readonly seq: number
  readonly index: number
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Pairing {
  /** Unanswered calls by id, oldest first. */
  readonly open: Map<string, Array<CallRef>>
  /** The last call made with an id. */
  readonly latest: Map<string, CallRef>
  /** By seq of a calling entry: the seq of the last result of each of its calls, −1 where there is none. */
  readonly answers: Map<number, Array<number>>
}

/**
 * @category constructors
 * @since 0.1.0
 */
export const make = (): Pairing => ({ open: new Map(), latest: new Map(), answers: new Map() })

/**
 * Records the calls of an entry, by id, in the order in which the entry makes them.
 *
 * @category combining
 * @since 0.1.0
 */
export const addCalls = (self: Pairing, seq: number, ids: ReadonlyArray<string>): void => {
  if (ids.length === 0) return
  self.answers.set(seq, new Array<number>(ids.length).fill(-1))
  for (let index = 0; index < ids.length; index++) {
    const id = ids[index]!
    const ref: CallRef = { seq, index }
    const open = self.open.get(id)
    if (open === undefined) self.open.set(id, [ref])
    else open.push(ref)
    self.latest.set(id, ref)
  }
}

/**
 * Records a result and returns the call it belongs to with the seq of the result it had before (−1 for none), or
 * `undefined` for an orphan.
 *
 * @category combining
 * @since 0.1.0
 */
export const answer = (
  self: Pairing,
  seq: number,
  id: string
): { readonly call: CallRef; readonly before: number } | undefined => {
  const open = self.open.get(id)
  let ref: CallRef | undefined
  if (open !== undefined && open.length > 0) {
    let at = open.length - 1
    while (at > 0 && open[at - 1]!.seq === open[at]!.seq) at--
    ref = open[at]!
    open.splice(at, 1)
  } else {
    ref = self.latest.get(id)
  }
  if (ref === undefined) return undefined
  const results = self.answers.get(ref.seq)!
  const before = results[ref.index]!
  results[ref.index] = seq
  return { call: ref, before }
}

/**
 * The seq of the last result of a call, −1 when it has none.
 *
 * @category getters
 * @since 0.1.0
 */
export const resultOf = (self: Pairing, ref: CallRef): number => self.answers.get(ref.seq)?.[ref.index] ?? -1

/**
 * Tells whether every call of an entry has a result.
 *
 * @category getters
 * @since 0.1.0
 */
export const isSettled = (self: Pairing, seq: number): boolean => {
  const answers = self.answers.get(seq)
  return answers === undefined || !answers.includes(-1)
}
