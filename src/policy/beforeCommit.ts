import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "../CompactionEvent.ts"
import * as Stage from "../Stage.ts"
import { type Pass, passFrom } from "./pass.ts"

/**
 * What is answered to a preview: the pass is committed, it comes down to another price instead, in tokens, or it is taken
 * back for a reason.
 *
 * @category models
 * @since 0.1.0
 */
export type Answer =
  | { readonly _tag: "Accept" }
  | { readonly _tag: "Aim"; readonly tokens: number }
  | { readonly _tag: "Refuse"; readonly reason: string }

/**
 * Who is asked before a pass is committed, and what counts where no answer comes.
 *
 * **Details**
 *
 * - `ask`: is given what the pass would do. `deadline`: how long it may take, half a minute by default.
 * - `otherwise`: what counts after the deadline, `"accept"` by default.
 *
 * @category models
 * @since 0.1.0
 */
export interface Asking<out E = never, out R = never> {
  readonly ask: (preview: Stage.Preview) => Effect.Effect<Answer, E, R>
  readonly deadline?: Duration.Input
  readonly otherwise?: "accept" | "refuse"
}

/**
 * Commits the pass.
 *
 * @category answers
 * @since 0.1.0
 */
export const accept: Answer = { _tag: "Accept" }

/**
 * Takes the pass back: nothing is decided.
 *
 * @category answers
 * @since 0.1.0
 */
export const refuse = (reason: string): Answer => ({ _tag: "Refuse", reason })

/**
 * Has the pass come down to another price, in tokens. No pass aims above the budget, nor after an overflow above what may
 * fit; where the number is none, the pass is committed as it is.
 *
 * @category answers
 * @since 0.1.0
 */
export const aimAt = (tokens: number): Answer => ({ _tag: "Aim", tokens })

/**
 * How many passes of a session were refused before they were committed.
 *
 * @category memory
 * @since 0.1.0
 */
export const refusals = Stage.memory("Policy/beforeCommit", Schema.Natural, 0)

const publishAll = (events: ReadonlyArray<CompactionEvent.CompactionEvent>): Effect.Effect<void> =>
  Effect.forEach(events, CompactionEvent.publish, { discard: true })

/** Runs a pass, and keeps what it publishes until it is known whether it is committed. */
const held = <E, R>(pass: Pass<E, R>, given: Stage.Pass) =>
  Effect.suspend(() => {
    const told: Array<CompactionEvent.CompactionEvent> = []
    return pass(given).pipe(
      Effect.provideService(CompactionEvent.Publisher, (event) => Effect.sync(() => void told.push(event))),
      Effect.onError(() => publishAll(told)),
      Effect.map((after) => ({ after, told }))
    )
  })

/** A pass that was refused: nothing of it stays but that it was. */
const refused = Effect.fnUntraced(function*(given: Stage.Pass, { view }: Stage.Pass, reason: string) {
  const count = Stage.recall(given, refusals) + 1
  yield* CompactionEvent.publish({
    _tag: "CompactionDeclined",
    before: given.view.price,
    after: view.price,
    reason,
    refusals: count
  })
  return Stage.close(Stage.remember(given, refusals, count), `refused: ${reason}`)
})

/** The same pass with another aim. What a model was asked for in it is not asked for again. */
const aimed = (given: Stage.Pass, tokens: number): Stage.Pass => {
  const aim = Math.max(0, Math.min(Math.floor(tokens), given.aim ?? given.sizes.limit))
  return { ...given, aim, sizes: { ...given.sizes, target: aim }, summarise: null }
}

/**
 * Asks before a pass is committed: `ask` is given what the pass would do, and accepts it, gives it another aim, or refuses it.
 *
 * **Details**
 *
 * Only a pass that changes the view asks, once, whatever its cause, and a preview never does. Errors and services of `ask` are
 * those of the pass. A refusal takes the pass back, publishes `CompactionDeclined` and counts, see {@link refusals}; the next
 * request that has a reason to compact asks again. After an overflow it leaves `ContextCannotFit`.
 *
 * **Gotchas**
 *
 * The request waits for the answer. A call of the same manager from inside `ask` waits for the request, so it gets no answer
 * before the deadline.
 *
 * **Example** (Refusing what removes messages)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ContextManager from "effect-compaction/ContextManager"
 * import * as Ladder from "effect-compaction/Ladder"
 * import * as Policy from "effect-compaction/Policy"
 *
 * const pass = Policy.beforeCommit(Policy.passOf(Ladder.progressive), {
 *   ask: ({ entries }) =>
 *     Effect.succeed(entries.removed.length > 0 ? Policy.refuse("messages would be removed") : Policy.accept),
 *   deadline: "10 seconds",
 *   otherwise: "refuse"
 * })
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const manager = yield* ContextManager.make({ pass, settings: { maxTokens: 1_000, protectedRecent: 0 } })
 *   for (let at = 0; at < 20; at++) yield* manager.append(`Line ${at}: ${"warning ".repeat(40)}`)
 *   const { events, generation } = yield* manager.request
 *   const declined = events.find((event) => event._tag === "CompactionDeclined")
 *   return [generation, declined?.reason] // => [0, "messages would be removed"]
 * }))
 *
 * Effect.runPromise(program)
 * ```
 *
 * @category combining
 * @since 0.1.0
 */
export const beforeCommit = <E, R, E2 = never, R2 = never>(
  self: Pass<E, R>,
  { ask, deadline = "30 seconds", otherwise = "accept" }: Asking<E2, R2>
): Pass<E | E2, R | R2> => {
  const asking = Effect.fnUntraced(function*(given: Stage.Pass) {
    if (given.isPreview) return yield* self(given)
    const { after, told } = yield* held(self, given)
    if (after.view === given.view) {
      yield* publishAll(told)
      return after
    }
    const answer = yield* Effect.timeoutOrElse(ask(Stage.previewOf(after, self.ladder?.rungs)), {
      duration: deadline,
      orElse: () =>
        Effect.succeed(
          otherwise === "accept"
            ? accept
            : refuse(`no answer within ${Duration.format(Duration.fromInputUnsafe(deadline))}`)
        )
    })
    if (answer._tag === "Refuse") {
      const before = Stage.lasting(yield* refused(given, after, answer.reason))
      // Of a pass that is taken back, what its stages wrote is taken back too.
      given.written.memory = before.memory
      return before
    }
    if (answer._tag === "Aim" && Number.isFinite(answer.tokens)) {
      given.written.memory = given.memory
      return yield* self(aimed(Stage.lasting(given), answer.tokens))
    }
    yield* publishAll(told)
    return after
  })
  const pass = passFrom(asking)
  return self.ladder === undefined ? pass : Object.assign(pass, { ladder: self.ladder })
}
