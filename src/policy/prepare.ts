import * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Guard from "../Guard.ts"
import * as Ladder from "../Ladder.ts"
import * as Settings from "../Settings.ts"
import type * as Summarizer from "../Summarizer.ts"
import * as Wire from "../Wire.ts"
import * as Pass from "./pass.ts"
import * as Problems from "./problems.ts"

/**
 * What makes a policy in code.
 *
 * **Details**
 *
 * - `settings`: what the ladder and its guards go by; see `Settings`.
 * - `ladder`: what is climbed inside the standard pass, see {@link passOf}; the default is `Ladder.progressive`. With no
 *   rung at all nothing is ever compacted.
 * - `pass`: a whole pass in place of the standard one, without a ladder beside it; see {@link passFrom}.
 * - `wire`: the rules that every request satisfies; the default satisfies all providers' at once.
 * - `summaryRetry`: when a summary that could not be written is tried again, within its timeout; not at all by default.
 *
 * `E` and `R` are the errors and services of the rungs, or of the whole pass; `P` are the errors of the pass around a
 * ladder, and a whole pass has none beside its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out E = never, out R = never, out P = Pass.PassError> {
  readonly settings?: Settings.Input
  readonly ladder?: Ladder.Ladder<E, R>
  readonly pass?: Pass.Pass<P, R>
  readonly wire?: Wire.Rules
  readonly summaryRetry?: Schedule.Schedule<unknown, Summarizer.SummaryError | Guard.SummaryNotSmaller>
}

/**
 * A policy that was checked: what a manager goes by.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prepared<out E = never, out R = never> {
  readonly settings: Settings.Settings
  readonly pass: Pass.Pass<E, R>
  readonly wire: Wire.Rules
  readonly summaryRetry: Options["summaryRetry"]
}

const given = (isRight: (value: object) => boolean, message: string) =>
  Schema.optionalKey(
    Schema.Unknown.check(Schema.makeFilter((value) =>
      value === undefined || (Object(value) === value && isRight(Object(value))) ? undefined : message
    ))
  )

/** Options as they come from where types are erased. */
const Erased = Schema.Struct({
  settings: Schema.withDecodingDefaultKey<typeof Settings.Settings>(Effect.succeed({}))(Settings.Settings),
  ladder: given(
    (value) => "rungs" in value && typeof value === "function",
    "write what Ladder.make(…) gave"
  ),
  pass: given(
    Pass.isPass,
    "write the ladder as ladder: …, or make a whole pass of stages with Policy.passOf(…) or Policy.passFrom(…): a bare "
      + "ladder has no gate before it and would shorten every request"
  ),
  wire: Schema.optionalKey(Schema.Unknown),
  summaryRetry: Schema.optionalKey(Schema.Unknown)
}).check(Schema.makeFilter(({ ladder, pass }) =>
  ladder === undefined || pass === undefined ? undefined : {
    path: ["ladder"],
    issue: "take it out, or put it into the pass: a whole pass is run alone, without the ladder beside it"
  }
))

const names: Problems.Names = {
  tags: [],
  keysAt: (path) => {
    if (path.length === 0) return Object.keys(Erased.fields)
    if (path[0] !== "settings") return []
    return Object.keys(path.length === 1 ? Settings.Settings.fields : Settings.Summary.fields)
  },
  insteadOf: (path, name) =>
    path.length === 0 && Object.hasOwn(Settings.Settings.fields, name)
      ? `write it under settings, { settings: { ${name}: … } }`
      : undefined
}

/**
 * Checks a policy in code and gives what a manager goes by. Fails with all that is wrong: the path of each bad key, what
 * to write there instead, and what was found.
 *
 * @category converting
 * @since 0.1.0
 */
export const prepare = <E = never, R = never, P = Pass.PassError>(
  options: Options<E, R, P>
): Effect.Effect<Prepared<E | P, R>, Problems.PolicyError> =>
  Problems.decode(Erased, options, names).pipe(Effect.map(({ settings }) => ({
    settings,
    // Without a pass of the caller's, `P` are the errors of the standard one; without a ladder it needs nothing.
    pass: options.pass ?? Pass.passOf(options.ladder ?? Ladder.progressive) as Pass.Pass<E | P, R>,
    wire: options.wire ?? Wire.all,
    summaryRetry: options.summaryRetry
  })))
