import type * as Settings from "../Settings.ts"

/** What each key of a policy means, in one line with its unit; editors show it beside the key. */
export const descriptions: { readonly [K in keyof Settings.Settings | "ladder" | "pass"]: string } = {
  window: "The context window of the model, in tokens; left out, the budget is maxTokens or 200,000",
  maxOutput: "The longest answer of the model, in tokens",
  outputReserve: "The share of maxOutput that is kept free in the window, a ratio",
  maxTokens: "A cap on the budget, in tokens",
  notice: "Whether the model is told that something was left out, and room is kept for it",
  noticeReserve: "The room kept for the notice, in tokens",
  compactThreshold: "A pass runs when a request reaches this ratio of the budget",
  targetUsage: "A pass aims at this ratio of the budget",
  protectedRecent: "The share of the conversation's entries, counted from the end, that is not removed, a ratio",
  protectedToolResults: "How many of the newest tool results are neither truncated nor removed; 0 or less, none",
  standingInstructions:
    "The share of the budget in which people's lasting rules stay word for word when their message is shortened; 0, off",
  truncateChars: "What a truncated tool result keeps, in characters",
  shape: "Whether a truncated tool result keeps its beginning, or both ends",
  budgetTokens: "What a truncated tool result keeps, in tokens; comes before truncateChars",
  budgetByTool: "The same by the name of the tool, in tokens; comes before budgetTokens",
  exemptTools: "The tools whose results are never truncated, pruned or cleared, by name",
  clearAtLeast:
    "What a pass must free to be worth a cold prompt cache: below 1 a ratio of the budget, else tokens; \"auto\", what pays "
    + "for the cache; null, off",
  cacheLife:
    "How long the provider keeps a prefix that nobody asks for; with it a session knows when a boundary is free",
  whenCold: "Where the prefix is cold anyway: from which ratio of the budget on a pass runs, and which one it aims at",
  maxConsecutiveSkips: "How many refusals by clearAtLeast in a row become an error; below 1 reads as 1",
  countSkips:
    "Which refusals count: every one, or only those that say something new, once the view has grown so far that the pass "
    + "had to free enough",
  clearFloorWhenOverBudget: "Whether clearAtLeast also refuses a pass that brings a view over the budget back under it",
  whenInfeasible: "When nothing legal fits: send the smallest view, or fail the request",
  meter: "Which count drives the gates",
  sizing: "Whether a pass is sized in prices or in the provider's tokens; the default follows the meter",
  provenanceGate: "Whether a pass is only made on a count anchored on usage; the default follows the meter",
  strict: "Whether a target below the system prompt and the tools fails the request",
  maxMessages: "A second trigger: a pass also runs when the view has more entries than this",
  maxToolResultBytes: "A cap on each tool result when it comes in, in UTF-8 bytes; null, off",
  maxImages: "How many images and other media a request may have, the oldest become words; null, any",
  maxRequestBytes: "How large the payload of a request may be, in bytes, the oldest media become words; null, any",
  noticeVerbosity: "How much the notice says",
  noticeMinLevel: "The level of the ladder from which on the notice is shown",
  replayLastUser: "Whether the last human message is repeated at the end after a boundary",
  signedReasoning: "Whether signed reasoning whose prefix was changed is dropped",
  summary: "Whether and how spans are summarised; left out, they are not",
  pass:
    "The gates, stages and guards around the ladder, in the order in which they are run; left out, the standard ones",
  ladder: "The rungs, climbed first to last until the view is at its target; none, and nothing is ever compacted"
}
