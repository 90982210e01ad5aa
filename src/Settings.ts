/**
 * Every number the ladder and its guards go by, with its default.
 *
 * One Schema holds keys, defaults and limits; decoding fails with the path of the bad key and says what to write instead.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Decision from "./Decision.ts"
import * as Options from "./ladder/options.ts"
import { capMinimum } from "./text/marker.ts"
import * as TokenMeter from "./TokenMeter.ts"

/**
 * Kept free in a window for what no estimate sees, the provider's own framing of a request; in tokens. A small window keeps
 * less free, see {@link reservesOf}.
 *
 * @category constants
 * @since 0.1.0
 */
export const windowMargin = 4_096

/**
 * What is kept free in a window, in tokens: `answer` for the answer of the model, `margin` for what no estimate sees, and
 * `notice` for the compaction notice.
 *
 * **Details**
 *
 * The answer is `outputReserve` × `maxOutput`, where an answer is no longer than the window, and at most three quarters of
 * the window. The margin is {@link windowMargin}, but at most half of what the answer leaves. The notice has `noticeReserve`, but at most a quarter of
 * what both leave. So with the defaults every window has a budget: from 12,288 tokens on all are whole, of 8,000 tokens
 * 2,000 are left before the notice, and of 1,000 tokens 250.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reserves {
  readonly answer: number
  readonly margin: number
  readonly notice: number
}

/**
 * What is kept free in a window of so many tokens.
 *
 * @category getters
 * @since 0.1.0
 */
export const reservesOf = (
  { maxOutput, noticeReserve, outputReserve }: {
    readonly maxOutput: number
    readonly noticeReserve: number
    readonly outputReserve: number
  },
  window: number
): Reserves => {
  const answer = Math.floor(Math.min(Math.min(maxOutput, window) * outputReserve, 0.75 * window))
  const margin = Math.min(windowMargin, Math.floor((window - answer) / 2))
  return { answer, margin, notice: Math.min(noticeReserve, Math.floor((window - answer - margin) / 4)) }
}

/**
 * The default of `noticeReserve`, in tokens.
 *
 * @category constants
 * @since 0.1.0
 */
export const usualNoticeReserve = 800

const share = (message: string) => Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }, { message }))

const positive = (message: string) => Schema.Int.check(Schema.isGreaterThan(0, { message }))

const natural = (message: string) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(0, { message }))

/**
 * What a summary is expected to cost, in tokens, before there is one: the median of 71 that a model wrote was 2,920.
 *
 * @category constants
 * @since 0.1.0
 */
export const summarySize = 3_000

/**
 * How summaries are made. Without it there are none.
 *
 * **Details**
 *
 * Ratios are of the budget, tokens where it says so.
 *
 * - `mode`: `background` never makes a turn wait; `between` summarises inside the request, after pruning (`prune`), when
 *   that is not enough, in at most `compactionRetries + 1` rounds.
 * - `trigger`: a summary is begun when the count reaches this ratio. `disarm`: with `hysteresis`, after a summary was
 *   absorbed, none is begun until the count fell below this ratio once. `cooldownRequests`, `cooldownGrowth`: nor before
 *   so many requests and so much growth of the count. `minSpan`: nor of a span that costs less.
 * - `maxSizes`: nor where a pass aims at a view of more than so many times the size of a summary, {@link summarySize}: there
 *   the ladder keeps as much. `null`: whatever the size. By hand and after an overflow a summary is made all the same.
 * - `retain`: what the newest entries keep at least, below 1 a ratio, else tokens. `heedProtection`: whether what the ladder
 *   protects stays out of the span. `mergeCheckpoints`: whether a summary absorbs the ones before it.
 * - `layout`: how the span is put before the model, see `Summarizer`. `placement`: whether the checkpoint stands where
 *   the span stood, or at the end. `eager`: whether a summary that is ready is a reason for a boundary of its own.
 * - `directive`: what a model is asked for, in place of `Summarizer.directive`; a summary must have one of the headings in it.
 * - `maxTokens`: how long a summary may be, in tokens. `resultChars`: how much of each tool result is shown to the
 *   summariser as text, in characters. `timeout`: how long it may take; when left out, 120 seconds, and 30 in `between`,
 *   where a turn waits.
 * - `ledger`: how much room the words of people have in a checkpoint, 0 for none. `faithful`: what happens to a summary
 *   that claims what its span does not say. `maxFailures`: how many failures in a row end summaries for the session.
 *
 * @category models
 * @since 0.1.0
 */
export const Summary = Schema.Struct({
  mode: Options.key(Schema.Literals(["background", "between"]), "background"),
  trigger: Options.key(share("write a ratio from 0 to 1, for example 0.6"), 0.6),
  hysteresis: Options.key(Schema.Boolean, true),
  disarm: Options.key(share("write a ratio from 0 to below trigger, for example 0.5"), 0.5),
  cooldownRequests: Options.key(natural("write a number of requests, 0 or more, for example 8"), 8),
  cooldownGrowth: Options.key(share("write a ratio from 0 to 1, for example 0.1"), 0.1),
  minSpan: Options.key(share("write a ratio from 0 to 1, for example 0.08"), 0.08),
  maxSizes: Options.key(
    Schema.NullOr(
      Schema.Finite.check(
        Schema.isGreaterThan(0, { message: "write null to turn it off, or a number of sizes above 0, for example 4" })
      )
    ),
    4
  ),
  retain: Options.key(
    Schema.Finite.check(
      Schema.isGreaterThanOrEqualTo(0, {
        message: "write a ratio from 0 to below 1, for example 0.16, or a number of tokens, for example 20000"
      })
    ),
    0.16
  ),
  heedProtection: Options.key(Schema.Boolean, true),
  mergeCheckpoints: Options.key(Schema.Boolean, true),
  layout: Options.key(Schema.Literals(["suffix", "standalone"]), "suffix"),
  placement: Options.key(Schema.Literals(["inPlace", "append"]), "inPlace"),
  eager: Options.key(Schema.Boolean, false),
  maxTokens: Options.key(positive("write a number of tokens of at least 1, for example 8192"), 8192),
  directive: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text) =>
        text.trim() === "" ? "write what a model is asked for, or leave the key out" : undefined
      )
    )
  ),
  resultChars: Options.key(natural("write a number of characters, 0 or more, for example 2000"), 2000),
  timeout: Schema.optionalKey(
    Options.duration("120 seconds")
  ),
  ledger: Options.key(share("write a ratio from 0 to 1, for example 0.02; 0 turns it off"), 0.02),
  faithful: Options.key(Schema.Literals(["off", "warn", "refuse"]), "warn"),
  maxFailures: Options.key(positive("write a number of failures of at least 1, for example 3"), 3),
  prune: Options.key(Schema.Boolean, true),
  compactionRetries: Options.key(natural("write a number of further rounds, 0 or more, for example 1"), 1)
}).check(
  Schema.makeFilter((summary) =>
    !summary.hysteresis || summary.disarm < summary.trigger ? undefined : {
      path: ["disarm"],
      issue: `write a ratio below trigger (${summary.trigger}), or turn hysteresis off`
    }
  )
)

/**
 * @category models
 * @since 0.1.0
 */
export type Summary = typeof Summary.Type

/**
 * How long a summary may take.
 *
 * @category getters
 * @since 0.1.0
 */
export const timeoutOf = ({ mode, timeout }: Summary): Duration.Duration =>
  timeout ?? (mode === "between" ? Duration.seconds(30) : Duration.seconds(120))

/**
 * What the newest entries keep at least, in tokens, of a budget of `limit` tokens.
 *
 * @category getters
 * @since 0.1.0
 */
export const retainOf = ({ retain }: Summary, limit: number): number => Math.floor(retain < 1 ? retain * limit : retain)

/**
 * Whether a summary is worth its call in a view that a pass brings down to `target` tokens.
 *
 * @category getters
 * @since 0.1.0
 */
export const isSummaryWorth = ({ maxSizes }: Summary, target: number): boolean =>
  maxSizes === null || target <= maxSizes * summarySize

/**
 * How a pass is made where the prompt cache of the provider is cold anyway, so that a boundary costs nothing: from which ratio
 * of the budget on (`threshold`), and down to which (`target`).
 *
 * @category models
 * @since 0.1.0
 */
export const WhenCold = Schema.Struct({
  threshold: Schema.Finite.check(
    Schema.isBetween(
      { minimum: 0, maximum: 1, exclusiveMinimum: true },
      { message: "write a ratio above 0 and up to 1, for example 0.5" }
    )
  ),
  target: share("write a ratio from 0 to below threshold, for example 0.3")
}).check(
  Schema.makeFilter(({ target, threshold }) =>
    target < threshold ? undefined : { path: ["target"], issue: `write a ratio below threshold (${threshold})` }
  )
)

/**
 * @category models
 * @since 0.1.0
 */
export type WhenCold = typeof WhenCold.Type

/**
 * The settings of a session.
 *
 * **Details**
 *
 * - `window`, `maxOutput`, `outputReserve`, `maxTokens`: see `Budget`; tokens, and a ratio.
 * - `notice`, `noticeReserve`: whether room is kept for the compaction notice, and how much, in tokens.
 * - `compactThreshold`: a pass runs when the count reaches this ratio of the budget. `targetUsage`: it aims at this one.
 * - `protectedRecent`: the ratio of the conversation's entries, counted from the end, that is not removed.
 * - `protectedToolResults`: how many of the newest tool results are neither truncated nor removed; 0 or less, none.
 * - `standingInstructions`: the share of the budget in which sentences of people that state a lasting rule ("never push",
 *   "from now on …") stay word for word when their message is shortened, newest first; such a message is not removed. 0 is
 *   off. Which sentences these are is decided by lists of words, without a model.
 * - `truncateChars`: what a truncated result keeps, in characters. `budgetTokens`, `budgetByTool`: the same in tokens,
 *   for every tool and by tool name. `shape`: from the head alone, or from both ends. `exemptTools`: never truncated.
 * - `clearAtLeast`: what a pass must free to be worth a cold prompt cache, as a ratio of the budget below 1, else in
 *   tokens; `"auto"` works it out of what the rebuild costs and how long the view will last; `null` is off. `maxConsecutiveSkips`: how many refusals in a row become an error. `countSkips`: which of them
 *   count and are published: once one did, only those of a view that has grown to where a pass to the same aim must free
 *   enough, or that is over the budget (the default), or every one. `clearFloorWhenOverBudget`: whether a refusal also stands when the
 *   view is over the budget.
 * - `cacheLife`: how long the provider keeps a prefix that nobody asks for. With it a session knows when its prefix is cold
 *   anyway: nothing was sent yet, the last request is older than that, or another route, other tools or another system prompt
 *   are sent. There no floor is asked of a pass, and `whenCold` says from when on and how deep one goes.
 * - `whenInfeasible`: what to do when nothing legal fits: send the smallest view, or fail.
 * - `meter`: which count drives the gates; see `TokenMeter`. `sizing`: whether the amount is sized in prices or in the
 *   provider's tokens (the default with `calibrated`). `provenanceGate`: whether nothing is decided on an estimate (the
 *   default with `hybrid`).
 * - `strict`: whether a target below the system prompt and the tools is an error instead of a warning.
 * - `maxMessages`: a second trigger, by the number of the view's entries.
 * - `maxToolResultBytes`: a cap on each tool result when it comes in, in UTF-8 bytes. `maxImages`, `maxRequestBytes`: of
 *   images, files and other media in a request, and of its payload; the oldest media become words first.
 * - `noticeVerbosity`, `noticeMinLevel`: how much the notice says, and from which level on. `replayLastUser`: whether the
 *   last human message is repeated at the end after a boundary.
 * - `signedReasoning`: whether signed reasoning whose prefix was changed is dropped.
 * - `summary`: whether and how spans are summarised; see `Summary`.
 *
 * @category models
 * @since 0.1.0
 */
export const Settings = Schema.Struct({
  window: Schema.optionalKey(positive("write the context window of the model in tokens, for example 200000")),
  maxOutput: Options.key(natural("write the longest answer in tokens, 0 or more, for example 8192"), 8192),
  outputReserve: Options.key(
    share("write the share of maxOutput to keep free as a ratio from 0 to 1, for example 0.5"),
    0.5
  ),
  maxTokens: Schema.optionalKey(positive("write a budget of at least 1 token, or leave the key out")),
  notice: Options.key(Schema.Boolean, true),
  noticeReserve: Options.key(
    natural("write the reserve for the notice in tokens, 0 or more, for example 800"),
    usualNoticeReserve
  ),
  compactThreshold: Options.key(
    Schema.Finite.check(
      Schema.isBetween(
        { minimum: 0, maximum: 1, exclusiveMinimum: true },
        { message: "write a ratio above 0 and up to 1, for example 0.95" }
      )
    ),
    0.95
  ),
  targetUsage: Options.key(share("write a ratio from 0 to below compactThreshold, for example 0.43"), 0.43),
  protectedRecent: Options.key(share("write a ratio from 0 to 1, for example 0.3"), 0.3),
  protectedToolResults: Options.key(Schema.Int, 3),
  standingInstructions: Options.key(
    share("write a share of the budget from 0 to 1, for example 0.02; 0 turns it off"),
    0.02
  ),
  truncateChars: Options.key(natural("write a number of characters, 0 or more, for example 250"), 250),
  shape: Options.key(Decision.Shape, "headTail"),
  budgetTokens: Schema.optionalKey(natural("write a number of tokens, 0 or more, for example 2000")),
  budgetByTool: Options.key(
    Schema.Record(Schema.String, natural("write a number of tokens, 0 or more, for example 2000")),
    {}
  ),
  exemptTools: Options.key(Schema.Array(Schema.String), []),
  clearAtLeast: Options.key(
    Schema.Union([
      Schema.Null,
      Schema.Literal("auto"),
      Schema.Finite.check(
        Schema.isGreaterThan(0, {
          message: "write null to turn it off, \"auto\", a ratio below 1, or a number of tokens, for example 20000"
        })
      )
    ]),
    null
  ),
  cacheLife: Schema.optionalKey(
    Options.duration("5 minutes")
  ),
  whenCold: Schema.optionalKey(WhenCold),
  maxConsecutiveSkips: Options.key(Schema.Int, 3),
  countSkips: Options.key(Schema.Literals(["every", "whenGrown"]), "whenGrown"),
  clearFloorWhenOverBudget: Options.key(Schema.Literals(["refuse", "override"]), "refuse"),
  whenInfeasible: Options.key(Schema.Literals(["send", "fail"]), "send"),
  meter: Options.key(TokenMeter.Mode, "hybrid"),
  sizing: Schema.optionalKey(Schema.Literals(["price", "provider"])),
  provenanceGate: Schema.optionalKey(Schema.Boolean),
  strict: Options.key(Schema.Boolean, false),
  maxMessages: Schema.optionalKey(positive("write a number of messages of at least 1, or leave the key out")),
  maxToolResultBytes: Options.key(
    Schema.NullOr(
      Schema.Int.check(
        Schema.isGreaterThanOrEqualTo(capMinimum, {
          message: `write null to turn it off, or at least ${capMinimum} bytes, for example 131072`
        })
      )
    ),
    null
  ),
  maxImages: Options.key(
    Schema.NullOr(natural("write null to turn it off, or a number of images, for example 20")),
    null
  ),
  maxRequestBytes: Options.key(
    Schema.NullOr(positive("write null to turn it off, or a number of bytes, for example 30000000")),
    null
  ),
  noticeVerbosity: Options.key(Schema.Literals(["minimal", "normal"]), "normal"),
  noticeMinLevel: Options.key(natural("write a level of the ladder, 0 or more, for example 1"), 1),
  replayLastUser: Options.key(Schema.Boolean, false),
  signedReasoning: Options.key(Schema.Literals(["strip", "keep"]), "strip"),
  summary: Schema.optionalKey(Summary)
}).check(
  Schema.makeFilter((settings) =>
    settings.targetUsage < settings.compactThreshold ? undefined : {
      path: ["targetUsage"],
      issue: `write a ratio below compactThreshold (${settings.compactThreshold}): `
        + "a pass that aims where it is triggered would run at every request"
    }
  ),
  Schema.makeFilter(({ cacheLife, whenCold }) =>
    whenCold === undefined || cacheLife !== undefined ? undefined : {
      path: ["whenCold"],
      issue:
        "write cacheLife too, how long the provider keeps a prefix, for example \"5 minutes\": without it no prefix is "
        + "known to be cold"
    }
  )
)

/**
 * @category models
 * @since 0.1.0
 */
export type Settings = typeof Settings.Type

/**
 * The settings of a policy that says nothing.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaults: Settings = Schema.decodeSync(Settings)({})

/**
 * The settings as they are written: every key may be left out.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = typeof Settings.Encoded

/**
 * Decodes settings; a key that does not exist is an error too.
 *
 * @category constructors
 * @since 0.1.0
 */
export const decode: (input: Input) => Effect.Effect<Settings, Schema.SchemaError> = Schema.decodeEffect(Settings, {
  errors: "all",
  onExcessProperty: "error"
})

/**
 * An amount in tokens that is written as a ratio of the limit of a budget where it is below 1, else in tokens; rounded down.
 *
 * @category getters
 * @since 0.1.0
 */
export const amountOf = (amount: number, limit: number): number => Math.floor(amount < 1 ? amount * limit : amount)

/**
 * Whether a pass is only made on a count that is anchored on usage.
 *
 * @category getters
 * @since 0.1.0
 */
export const isGated = (self: Settings): boolean => self.provenanceGate ?? false

/**
 * Whether the ladder sizes its work in the provider's tokens instead of prices.
 *
 * @category getters
 * @since 0.1.0
 */
export const isSizedByProvider = (self: Settings): boolean =>
  (self.sizing ?? (self.meter === "estimate" ? "price" : "provider")) === "provider"
