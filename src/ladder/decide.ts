import * as AiDecision from "effect/ai/Decision"
import * as DecisionModel from "effect/ai/DecisionModel"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as CompactionEvent from "../CompactionEvent.ts"
import type * as Decision from "../Decision.ts"
import type * as Stage from "../Stage.ts"
import * as Crc32 from "../text/crc32.ts"
import { reasonOf } from "../text/reason.ts"
import * as Written from "../text/written.ts"
import type * as View from "../View.ts"
import * as Draft from "./draft.ts"
import * as Memory from "./memory.ts"
import * as Options from "./options.ts"
import * as Protection from "./protection.ts"
import * as Units from "./units.ts"

const atLeastOne = (example: number) =>
  Schema.Int.check(
    Schema.isGreaterThanOrEqualTo(1, { message: `write a whole number, 1 or more, for example ${example}` })
  )

/**
 * How a model is asked whether old entries are still needed.
 *
 * **Details**
 *
 * - `batch`: how many units (a call with its results, or a single entry) one call asks about. `calls`: how many calls one
 *   boundary makes at most, and `timeout`: how long all of them may take.
 * - `keep`: so many entries at the end are not asked about, and stay.
 * - `chars`: how much of a unit the model is shown, in characters.
 * - `whenFailed`: what a call that fails or is late means. `"fallBack"`: what was not answered leaves oldest first, as
 *   `removeOthers` has it. `"fail"`: the pass fails with `DecideFailed`.
 *
 * @category models
 * @since 0.1.0
 */
export const Decide = Schema.Struct({
  batch: Options.key(atLeastOne(20), 20),
  calls: Options.key(Options.count(3), 3),
  timeout: Options.key(
    Options.duration("20 seconds"),
    "20 seconds"
  ),
  keep: Options.key(Options.count(12), 12),
  chars: Options.key(atLeastOne(1_000), 1_000),
  whenFailed: Options.key(Schema.Literals(["fallBack", "fail"]), "fallBack")
})

/**
 * @category models
 * @since 0.1.0
 */
export type Decide = typeof Decide.Type

/**
 * Fails a pass whose rung asks a model, where the policy says so: after `answered` answers the model failed, or was late.
 *
 * @category errors
 * @since 0.1.0
 */
export class DecideFailed extends Schema.TaggedError<DecideFailed>("effect-compaction/DecideFailed")("DecideFailed", {
  cause: Schema.Literals(["failed", "timedOut"]),
  reason: Schema.String,
  calls: Schema.Natural,
  answered: Schema.Natural
}) {
  override get message() {
    return `Asking whether old entries are still needed ${
      this.cause === "failed" ? "failed" : "took too long"
    } (${this.reason}) after ${this.calls} calls and ${this.answered} answers: leave whenFailed out of Rung.decide to `
      + "go on without the rest of the answers, or allow a longer timeout."
  }
}

/**
 * What was answered, by the seq of the first entry of a unit and a checksum of its text: the probability that it is needed,
 * and `null` where the model was asked and gave none. After a rewind the same seq is another entry.
 */
const answered = Memory.memory(
  "Rung/decide",
  Schema.Record(Schema.String, Schema.NullOr(Schema.Finite)),
  {},
  { isLasting: true }
)

/** Of entries that are in no view any more so many answers are kept, newest first: a boundary may be taken back. */
const answersKept = 1_000

interface Unit {
  readonly seqs: ReadonlyArray<number>
  readonly key: string
  readonly price: number
  readonly items: ReadonlyArray<View.Item>
}

const keyOf = (draft: Draft.Draft, seq: number): string => {
  const text = Written.message(draft.transcript.entries[seq]!.message, undefined)
  return `${seq}:${Crc32.hex(new TextEncoder().encode(text))}`
}

/** What may be asked about: what {@link Units.removals} would remove, oldest first. */
const unitsOf = (draft: Draft.Draft, keep: number): ReadonlyArray<Unit> => {
  const protection = Protection.make(draft, 0, { entries: keep, checkpoints: true })
  const items = new Map<number, View.Item>()
  for (const item of draft.items) if (item !== undefined && item.seq >= 0) items.set(item.seq, item)
  return Array.from(Units.removals(draft, protection), ({ seqs }) => {
    const members = seqs.flatMap((seq) => items.get(seq) ?? [])
    return {
      seqs,
      key: keyOf(draft, seqs[0]!),
      price: members.reduce((sum, { price }) => sum + price, 0),
      items: members
    }
  })
}

const clipped = (text: string, chars: number): string =>
  text.length <= chars ? text : `${text.slice(0, Math.ceil(chars * 0.75))}\n[…]\n${text.slice(-Math.ceil(chars / 4))}`

const textOf = (items: ReadonlyArray<View.Item>, chars: number): string =>
  clipped(items.map(({ message }) => Written.message(message, undefined)).join("\n"), chars)

const Input = Schema.Struct({
  now: Schema.Array(Schema.String),
  entries: Schema.Array(Schema.Struct({ id: Schema.String, text: Schema.String }))
})

const instructions = (id: string): string =>
  `The agent, whose newest messages are under "now", still needs what "${id}" says to finish its work`

const criteria = {
  false: "Done with, said again later, or easy to read again",
  true: "It will be used again, and stands nowhere else"
} as const

/** Of how many entries at the end the model is told what goes on, beside the last message of a person. */
const newest = 6

const nowOf = (draft: Draft.Draft, chars: number): ReadonlyArray<string> => {
  const items = draft.items.filter((item) => item?.entry !== undefined && item.entry.role !== "system")
  const person = items.findLast((item) => item!.entry!.human)
  const last = items.slice(-newest)
  const told = person === undefined || last.includes(person) ? last : [person, ...last]
  return told.map((item) => textOf([item!], chars))
}

/** From this probability on an entry counts as needed. */
const neededFrom = 0.5

type Answers = Map<string, number | null>

/** How much those free that were judged not to be needed. */
const spared = (units: ReadonlyArray<Unit>, answers: Answers): number =>
  units.reduce((sum, { key, price }) => sum + ((answers.get(key) ?? 1) < neededFrom ? price : 0), 0)

/** What came of asking; the answers of calls that were done count, whatever became of the next one. */
interface Asked {
  calls: number
  units: number
  answered: number
}

const ask = Effect.fnUntraced(function*(
  draft: Draft.Draft,
  { batch, chars }: Decide,
  { answers, calls, excess, told, units }: {
    readonly units: ReadonlyArray<Unit>
    readonly calls: number
    readonly answers: Answers
    readonly excess: number
    readonly told: Asked
  }
) {
  const open = units.filter(({ key }) => !answers.has(key))
  const now = nowOf(draft, chars)
  for (let at = 0; at < open.length && told.calls < calls && spared(units, answers) < excess; at += batch) {
    const some = open.slice(at, at + batch).map((unit) => ({ unit, id: `e${unit.seqs[0]}` }))
    told.calls++
    told.units += some.length
    const definition = AiDecision.make({
      input: Input,
      decisions: Object.fromEntries(
        some.map(({ id }) => [id, AiDecision.probability({ instructions: instructions(id), criteria })])
      )
    })
    const { outcomes } = yield* DecisionModel.decideSettled(definition, {
      input: { now, entries: some.map(({ id, unit }) => ({ id, text: textOf(unit.items, chars) })) }
    })
    for (const { id, unit } of some) {
      const outcome = outcomes[id]
      const probability = outcome !== undefined && Result.isSuccess(outcome) ? outcome.success.probability : null
      if (probability !== null) told.answered++
      answers.set(unit.key, probability)
    }
  }
})

const reasonOfCause = (cause: Cause.Cause<unknown>): string =>
  Cause.hasInterruptsOnly(cause) ? "interrupted" : reasonOf(Cause.squash(cause))

/**
 * What a pass has asked so far, by what it shares from stage to stage. It may climb a ladder twice: after it was counted
 * anew, or where a person asked for another aim.
 */
interface Spent {
  calls: number
  milliseconds: number
}

const spentIn = new WeakMap<Stage.Pass["written"], Spent>()

/** Asks within the deadline; why it came to no end, if so. */
const within = <E, R>(asking: Effect.Effect<void, E, R>, timeout: Duration.Duration) =>
  Effect.map(
    Effect.exit(Effect.timeoutOption(asking, timeout)),
    (exit): Pick<DecideFailed, "cause" | "reason"> | null =>
      Exit.isFailure(exit)
        ? { cause: "failed", reason: reasonOfCause(exit.cause) }
        : Option.isNone(exit.value)
        ? { cause: "timedOut", reason: `no answer within ${Duration.format(timeout)}` }
        : null
  )

/**
 * The order in which units leave: those judged not to be needed, the least needed first; then those nobody answered about,
 * oldest first; then the others, the least needed first. Of equals the older first.
 */
const ordered = (units: ReadonlyArray<Unit>, answers: Answers): ReadonlyArray<Unit> => {
  const rank = ({ key }: Unit): number => answers.get(key) ?? neededFrom - Number.EPSILON
  return [...units].sort((a, b) => rank(a) - rank(b))
}

const decisionOf = (draft: Draft.Draft, { key, seqs }: Unit, answers: Answers): Decision.Remove => {
  const needed = answers.get(key) ?? null
  const remove = { _tag: "Remove", seqs, at: draft.at } as const
  return needed === null ? remove : { ...remove, needed }
}

const pruned = (units: ReadonlyArray<Unit>, answers: Answers): { readonly [key: string]: number | null } => {
  const shown = new Set(units.map(({ key }) => key))
  const gone = Array.from(answers.keys()).filter((key) => !shown.has(key)).slice(-answersKept)
  return Object.fromEntries([...gone, ...Array.from(answers.keys()).filter((key) => shown.has(key))].map((key) => [
    key,
    answers.get(key) ?? null
  ]))
}

/** Asks what may be asked still, and remembers what was answered. */
const judge = Effect.fnUntraced(function*(
  given: Stage.Pass,
  draft: Draft.Draft,
  options: Decide,
  { answers, units }: { readonly units: ReadonlyArray<Unit>; readonly answers: Answers }
) {
  const spent = spentIn.get(given.written) ?? { calls: 0, milliseconds: 0 }
  const left = Duration.toMillis(options.timeout) - spent.milliseconds
  if (left <= 0) return given
  const told: Asked = { calls: 0, units: 0, answered: 0 }
  const began = yield* Clock.currentTimeMillis
  const excess = given.view.price - aimOf(given)
  const asking = ask(draft, options, { units, answers, calls: options.calls - spent.calls, excess, told })
  const failure = yield* within(asking, Duration.millis(left))
  const milliseconds = (yield* Clock.currentTimeMillis) - began
  spentIn.set(given.written, {
    // Whoever failed is not asked again in the same pass.
    calls: failure === null ? spent.calls + told.calls : options.calls,
    milliseconds: spent.milliseconds + milliseconds
  })
  if (told.calls === 0) return given
  const pass = Memory.remember(given, answered, pruned(units, answers))
  yield* CompactionEvent.publish({
    _tag: "EntriesJudged",
    calls: told.calls,
    asked: told.units,
    answered: told.answered,
    failure: failure?.cause ?? null,
    reason: failure?.reason ?? null
  })
  if (failure !== null && options.whenFailed === "fail") {
    return yield* new DecideFailed({ ...failure, calls: told.calls, answered: told.answered })
  }
  return pass
})

const aimOf = ({ aim, sizes }: Stage.Pass): number => aim ?? sizes.target

/** The stage of the rung: asks what it has to, and removes until the view is at its aim. */
export const stage = (
  options: Decide
): Stage.Stage<DecideFailed, DecisionModel.DecisionModel> =>
  Effect.fnUntraced(function*(given) {
    const { locate, settings, sizes, view } = given
    const aim = aimOf(given)
    if (view.price <= aim) return given
    const draft = Draft.make(view, { settings, limit: sizes.limit, locate })
    const units = unitsOf(draft, options.keep)
    if (units.length === 0) return given
    const answers: Answers = new Map(Object.entries(Memory.recall(given, answered)))
    // Nothing of a preview is committed, so an answer would be lost.
    const pass = given.isPreview ? given : yield* judge(given, draft, options, { units, answers })
    for (const unit of ordered(units, answers)) {
      if (draft.price <= aim) break
      Draft.apply(draft, 1, decisionOf(draft, unit, answers))
    }
    return draft.edits.length === 0 ? pass : { ...pass, view: Draft.toView(draft, draft.edits.length) }
  })
