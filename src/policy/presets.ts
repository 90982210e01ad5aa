import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import type { Policy } from "../Policy.ts"
import * as Settings from "../Settings.ts"
import * as ToolResult from "../ToolResult.ts"

/** The eight rungs of `Ladder.progressive`. */
const progressive: Policy["ladder"] = [
  { _tag: "truncateToolResults", fraction: 0.25 },
  { _tag: "truncateToolResults", fraction: 0.5 },
  { _tag: "remove", relax: 1 },
  { _tag: "truncateToolResults", fraction: 0.75 },
  { _tag: "remove", relax: 0.6 },
  { _tag: "truncateToolResults", fraction: 1 },
  { _tag: "remove", relax: 0.3 },
  { _tag: "lastResort", relax: 0.3 }
]

/** The ladder of a policy that names none: the rungs of `Ladder.recommended`. */
export const standard: Policy["ladder"] = [
  { _tag: "truncateToolResults", fraction: 1 },
  { _tag: "clearToolResults", keep: 3, exclude: [], clearInputs: false },
  { _tag: "truncateLarge", over: 0.3, keep: 0.2 },
  { _tag: "removeOthers", relax: 1, keep: 12 },
  { _tag: "removeOthers", relax: 0.6, keep: 12 },
  { _tag: "removeOthers", relax: 0.3, keep: 12 },
  { _tag: "removeOthers", relax: 0, keep: 12 },
  { _tag: "shortenPeople", share: 0.1, above: 0.5 }
]

const { defaults } = Settings

/**
 * The Python module `context-simple`: its eight rungs, its numbers, the notice on, every size estimated.
 *
 * **Details**
 *
 * Where this library decides otherwise than the module, on purpose, it does so here too: see `Ladder`.
 *
 * Source: `microsoft/amplifier-module-context-simple`, its README and its configuration keys.
 *
 * @category presets
 * @since 0.1.0
 */
export const contextSimple: Policy = {
  ...defaults,
  maxOutput: 8_192,
  outputReserve: 0.5,
  notice: true,
  noticeReserve: 800,
  compactThreshold: 0.92,
  targetUsage: 0.5,
  protectedRecent: 0.3,
  protectedToolResults: 5,
  standingInstructions: 0,
  truncateChars: 250,
  shape: "head",
  meter: "estimate",
  sizing: "price",
  provenanceGate: false,
  clearAtLeast: null,
  maxConsecutiveSkips: 3,
  ladder: progressive
}

/**
 * `context-simple` with its hybrid meter: what the provider billed last, and the price of what came since. The provenance
 * gate comes with the meter: before the first usage nothing is compacted below the whole budget.
 *
 * Source: `token_meter: hybrid` of `microsoft/amplifier-module-context-simple`.
 *
 * @category presets
 * @since 0.1.0
 */
export const contextSimpleHybrid: Policy = { ...contextSimple, meter: "hybrid", provenanceGate: true }

/** Among the presets of systems to which a floor that is not reached is no error. */
const neverAnError = 1_000_000_000

/**
 * The summaries of systems that write them within the request, each time the limit is reached and with no guard of ours.
 * They carry no words of people beside the summary: by the second one most of what people said is gone.
 */
const withinRequest: Settings.Summary = {
  ...Schema.decodeSync(Settings.Summary)({}),
  mode: "between",
  hysteresis: false,
  cooldownRequests: 0,
  cooldownGrowth: 0,
  minSpan: 0,
  maxSizes: null,
  heedProtection: false,
  ledger: 0,
  faithful: "off"
}

/**
 * `context-simple` with its summary strategy: at 60 % of the budget the span is summarised beside the session, and the
 * checkpoint is appended.
 *
 * **Details**
 *
 * - Models: no merging of checkpoints, protected entries stay out, the span as text, 30 seconds, and nothing that keeps the
 *   next summary from starting at once; no words of people beside the summary (`ledger: 0`), which loses most of them at the
 *   second one.
 * - Does not model: the module's wording of the request for the summary.
 *
 * Source: `summary_strategy` of `microsoft/amplifier-module-context-simple`.
 *
 * @category presets
 * @since 0.1.0
 */
export const contextSimpleSummary: Policy = {
  ...contextSimple,
  summary: {
    ...withinRequest,
    mode: "background",
    timeout: Duration.seconds(30),
    mergeCheckpoints: false,
    heedProtection: true,
    layout: "standalone",
    placement: "append"
  }
}

/**
 * The compaction of the DeepSeek harness: at 80 % of the window every long tool result loses its middle, and what is left is
 * summarised if that is not enough.
 *
 * **Details**
 *
 * - Models: pruning without exemptions before the summary, a summary within the request as a suffix of the cached messages,
 *   a tail of 16 % that is kept whatever it holds, one further round, no cooldown.
 * - Does not model: a summary by another model in the same shape (it is given the span as text here). Where there is no
 *   summariser, what is over the budget after the prune is made to fit by the end of the ladder.
 *
 * Source: `compaction` and `compaction-tool-result-pruner` of the DeepSeek harness.
 *
 * @category presets
 * @since 0.1.0
 */
export const deepseekHarness: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  compactThreshold: 0.8,
  ladder: [{
    _tag: "pruneToolResults",
    ...ToolResult.pruneDefaults,
    keepNewest: 0,
    stopAtTarget: false
  }],
  summary: withinRequest
}

/**
 * The compaction of Claude Code: when the effective window less 13,000 tokens is full, the whole conversation is replaced
 * by a summary.
 *
 * **Details**
 *
 * - Models: the limit, for a window of 200,000 tokens with 20,000 for the answer (93 %); a summary within the request, as a
 *   suffix of the cached messages, that keeps no tail.
 * - Does not model: files and plans that are read again after it, and edits of the API beside it. Where there is no
 *   summariser, the oldest calls are removed with their results.
 *
 * Source: anthropics/claude-code#31806, and sessions it recorded.
 *
 * @category presets
 * @since 0.1.0
 */
export const claudeCode: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  outputReserve: 1,
  compactThreshold: 0.93,
  ladder: [{ _tag: "remove", relax: 1 }],
  summary: { ...withinRequest, prune: false, retain: 0 }
}

/**
 * The context editing of Anthropic's API, `clear_tool_uses_20250919` with its defaults: at 100,000 input tokens the old
 * tool results become a placeholder, all but those of the newest 3 uses.
 *
 * **Details**
 *
 * - Models: the trigger (half of a budget of 200,000 tokens; with another `window` or `maxTokens` it moves along), `keep` 3,
 *   a trigger that reads the tokens as the provider counts them. `clearAtLeast` is the `clear_at_least` of the API and off,
 *   as there; a pass that does not reach it is then no error. `exclude_tools` is `exclude`, `clear_tool_inputs`
 *   `clearInputs`, of the rung.
 * - Does not model: a trigger by the number of tool uses, the clearing of thinking (add the rung `clearReasoning`), and
 *   that the API clears all it may: the ladder stops a quarter of the way from the least possible to the trigger. The API
 *   leaves what is over the window to fail; here the end of the ladder makes it fit.
 *
 * Source: the public documentation of context editing, and the types of `@anthropic-ai/sdk` 1.14.0.
 *
 * @category presets
 * @since 0.1.0
 */
export const anthropicContextEditing: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  compactThreshold: 0.5,
  targetUsage: 0,
  protectedToolResults: 3,
  maxConsecutiveSkips: neverAnError,
  ladder: [{ _tag: "clearToolResults", keep: 3, exclude: [], clearInputs: false }]
}

/**
 * opencode: a summary when the window is full; its prune leaves old tool output out, and is not made when it frees less
 * than 20,000 tokens.
 *
 * **Details**
 *
 * - Models: the least gain of 20,000 tokens, refused without an error; the room of the longest answer kept free whole; a
 *   trigger that reads the last usage; a summary within the request, at most 4,096 tokens long, as a suffix of the cached
 *   messages, that keeps a quarter of the budget.
 * - Does not model: the protection of the newest 40,000 tokens of tool output and of two turns. The rung counts results: 86
 *   of them are 40,000 tokens at 464 each, the mean of 2,709 recorded ones. Nor the schedule: opencode prunes after
 *   every turn, here it is done when the threshold is reached; the summary comes first, and the prune serves where there is
 *   no summariser.
 *
 * Source: `session/compaction.ts` of opencode.
 *
 * @category presets
 * @since 0.1.0
 */
export const openCode: Policy = {
  ...contextSimple,
  notice: false,
  meter: "actual",
  outputReserve: 1,
  clearAtLeast: 20_000,
  maxConsecutiveSkips: neverAnError,
  clearFloorWhenOverBudget: "override",
  ladder: [{ _tag: "clearToolResults", keep: 86, exclude: ["skill"], clearInputs: false }],
  summary: { ...withinRequest, prune: false, maxTokens: 4_096, retain: 0.25 }
}

/**
 * The compaction of codex: a summary of everything at 90 % of the window, and tool outputs of at most 10,000 tokens.
 *
 * **Details**
 *
 * - Models: the size and the shape of a cut output, for every tool; the limit of 90 % of the window, whatever the answer
 *   may take; a count of the last usage and the price of what came since; a summary within the request, of everything, as
 *   a suffix of the cached messages, with the words of people beside it (20,000 tokens of a window of 258,400).
 * - Does not model: that codex cuts an output when it is recorded, whatever the window holds; here it is cut where there is
 *   no summariser. Nor that every message of a person stays a message of its own.
 *
 * Source: `history.rs` and `compact.rs` of openai/codex.
 *
 * @category presets
 * @since 0.1.0
 */
export const codex: Policy = {
  ...contextSimple,
  notice: false,
  meter: "hybrid",
  provenanceGate: false,
  outputReserve: 0,
  compactThreshold: 0.9,
  protectedToolResults: 0,
  shape: "headTail",
  budgetTokens: 10_000,
  ladder: [{ _tag: "truncateToolResults", fraction: 1 }],
  summary: { ...withinRequest, prune: false, retain: 0, ledger: 0.08 }
}

/**
 * Removes the oldest calls with their results, and the oldest words of the assistant, and does nothing else.
 *
 * **Details**
 *
 * - Models: a window that slides over the conversation, whole groups at a time. Nothing but its length protects an entry:
 *   `protectedRecent` and `protectedToolResults` are 0.
 * - Does not model: sliding at every request. A pass frees down to `targetUsage`, or the cached prefix would be lost each
 *   time. Messages of a person are not removed; long ones are cut, all but the first and the last.
 *
 * @category presets
 * @since 0.1.0
 */
export const slidingWindow: Policy = {
  ...contextSimple,
  notice: false,
  protectedRecent: 0,
  protectedToolResults: 0,
  ladder: [{ _tag: "remove", relax: 1 }]
}

/**
 * Never compacts: every request is the whole conversation, however long. What others are measured against.
 *
 * @category presets
 * @since 0.1.0
 */
export const none: Policy = { ...contextSimple, notice: false, ladder: [] }

/**
 * The default, and what to begin with: cheaper than `contextSimple`, with fewer boundaries, and more of what will be needed stays in view,
 * the words of people above all. No summaries.
 *
 * **Details**
 *
 * - A pass begins later and goes deeper (`compactThreshold`, `targetUsage`): each boundary is a rebuild of the cache, so
 *   few large ones are cheaper.
 * - Results go before messages do. All old tool results are cut, from both ends: what a result began and ended with costs
 *   little. Then they are cleared: the call stays, and says what was asked. The newest 3 stay whole, unless one of them
 *   alone takes three tenths of the budget; it keeps two.
 * - The words of people go last. They are given up only where everything else that may leave has left and the view is
 *   still above half the budget, pasted material first; a tenth of the budget is theirs in any case.
 * - What people want for good ("never push", "from now on …") stays word for word, in 2 % of the budget.
 * - The meter is the hybrid one, which falls back on prices where no usage is reported. What a pass frees is sized in the
 *   provider's tokens: where a provider counts more than the estimator, a target in prices is nearer to the trigger than it
 *   says, and there are more boundaries.
 *
 * The numbers were chosen by measurement; `docs/evidence.md` says on what, and what it comes to.
 *
 * @category presets
 * @since 0.1.0
 */
export const recommended: Policy = { ...defaults, ladder: standard }

/**
 * The presets by name.
 *
 * @category presets
 * @since 0.1.0
 */
export const presets = {
  contextSimple,
  contextSimpleHybrid,
  contextSimpleSummary,
  deepseekHarness,
  codex,
  claudeCode,
  openCode,
  anthropicContextEditing,
  slidingWindow,
  none,
  recommended
} satisfies { readonly [name: string]: Policy }
