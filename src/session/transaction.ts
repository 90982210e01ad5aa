import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/**
 * The steps of one attempt to compact.
 *
 * - `exclusively`: nobody else changes the log meanwhile.
 * - `begin`: looks whether anything is to be done and may be done, and marks the start; `undefined` writes nothing.
 * - `summarise`: takes any time.
 * - `commit`: looks whether all is still as it was, and writes.
 * - `close`: marks the end; it is told what went wrong, `undefined` for nothing.
 * - `flush`: after a close that succeeded; of an attempt that was interrupted too, since its marks are to be found again.
 */
export interface Attempt<
  in out Plan,
  in out Made,
  out Result,
  out Begin,
  out Summary,
  out Commit,
  out Close,
  out Flush,
  out R
> {
  readonly exclusively: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly begin: Effect.Effect<Plan | undefined, Begin>
  readonly summarise: (plan: Plan) => Effect.Effect<Made, Summary, R>
  readonly commit: (plan: Plan, made: Made) => Effect.Effect<Result, Commit>
  readonly close: (plan: Plan, failure: Cause.Cause<unknown> | undefined) => Effect.Effect<void, Close>
  readonly flush: Effect.Effect<void, Flush>
}

/** How an attempt ended, but for the interruption of the fiber that ran it. */
export type Ended<Result, E> =
  | { readonly _tag: "nothing" }
  | { readonly _tag: "done"; readonly result: Result }
  | { readonly _tag: "failed"; readonly cause: Cause.Cause<E> }

/**
 * Runs an attempt: what is written is written whole, everything before it can be interrupted, and a start that was marked
 * is closed exactly once, however the attempt ends.
 *
 * An interruption outranks all else; then come a close that failed, what stopped the attempt, and a flush that failed. An
 * interruption that comes after the commit undoes nothing.
 */
export const run = <Plan, Made, Result, Begin, Summary, Commit, Close, Flush, R>(
  attempt: Attempt<Plan, Made, Result, Begin, Summary, Commit, Close, Flush, R>
): Effect.Effect<Ended<Result, Begin | Summary | Commit | Close | Flush>, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      // Waiting for one's turn may be interrupted, what is done then may not: it is remembered before the mask is left.
      let plan: Plan | undefined
      let committed: { readonly result: Result } | undefined
      const begun = yield* Effect.exit(restore(attempt.exclusively(Effect.uninterruptible(
        Effect.tap(attempt.begin, (made) =>
          Effect.sync(() => {
            plan = made
          }))
      ))))
      if (plan === undefined) {
        yield* restore(Effect.void)
        return Exit.isSuccess(begun) ? { _tag: "nothing" } : { _tag: "failed", cause: begun.cause }
      }
      const started = plan
      const ended = yield* Effect.exit(Effect.gen(function*() {
        const made = yield* restore(attempt.summarise(started))
        yield* restore(attempt.exclusively(Effect.uninterruptible(
          Effect.tap(attempt.commit(started, made), (result) =>
            Effect.sync(() => {
              committed = { result }
            }))
        )))
      }))
      const failure = committed === undefined && Exit.isFailure(ended) ? ended.cause : undefined
      const closed = yield* Effect.exit(attempt.exclusively(attempt.close(started, failure)))
      const flushed = Exit.isSuccess(closed) ? yield* Effect.exit(attempt.flush) : Exit.void
      yield* restore(Effect.void)
      if (Exit.isFailure(closed)) return { _tag: "failed", cause: closed.cause }
      if (committed === undefined && Exit.isFailure(ended)) return { _tag: "failed", cause: ended.cause }
      if (Exit.isFailure(flushed)) return { _tag: "failed", cause: flushed.cause }
      return committed === undefined ? { _tag: "nothing" } : { _tag: "done", result: committed.result }
    })
  )

/** Whether an attempt was stopped from elsewhere: the fiber that ran it goes on, what it waited for was interrupted. */
export const isCancelled = (cause: Cause.Cause<unknown>): boolean => Cause.hasInterruptsOnly(cause)

/** Why an attempt failed, in a few words, for the mark of its end. */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  if (isCancelled(cause)) return "cancelled"
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}
