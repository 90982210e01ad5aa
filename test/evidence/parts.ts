/** The parts of docs/evidence.md. Each of them says how it was measured, and is generated alone by its name. */
import * as Cold from "./Cold.ts"
import * as Costs from "./Costs.ts"
import * as Floors from "./Floors.ts"
import * as Keeping from "./Keeping.ts"
import * as Summaries from "./Summaries.ts"
import { type Part, part } from "./Text.ts"

const counted = "The budget is 45,000 tokens (`maxTokens`), the cache Anthropic's, the prices those of Claude Opus 4.5."

/** All parts, in their order. */
export const parts: ReadonlyArray<Part> = [
  part(
    "goals",
    "kept",
    "The recommended policy, and its goals",
    "The reported half of the sessions at hand, by a hash of their names, and two public chats. *Before* is `recommended` as "
      + "it was before people's words went last. Reuse and words: see below. An interval is a bootstrap over sessions, 95 %. "
      + counted,
    Keeping.goals
  ),
  part(
    "equal",
    "kept",
    "Presets at equal cost",
    "The budget of each policy is set so that the reported half costs what `contextSimple` costs at 45,000 tokens: whoever "
      + "keeps more at equal cost keeps more. `none` has no budget to set, and `anthropicContextEditing` and `openCode` cost more at each (the latter is shown at 45,000). "
      + "The last rows are the controls, as large as the views of `recommended`: the newest messages, and random ones.",
    Keeping.equal
  ),
  part(
    "alone",
    "kept",
    "What each part earns, alone and together",
    `All sessions at hand, both halves. ${counted}`,
    Keeping.alone
  ),
  part(
    "summaries",
    "kept",
    "Summaries, by the size of the view",
    "`recommended` with `summary` and without, in views of one to eight sizes of a summary (3,000 tokens; a pass aims at half of "
      + "the budget), all sessions at hand, the gate off. The extract is free; *words* are messages of people that are whole, in "
      + "the ledger or outside. *Files edited*: of the files among the far identifiers that the answer changes.",
    Summaries.bySize
  ),
  part(
    "chains",
    "kept",
    "What is left at the second and the third compaction",
    "Of the messages of people (up to 2,000 characters) and the planted facts that were said before the first compaction, those "
      + "that stand word for word in the view right after the first, the second and the third one; sessions with three at "
      + "least. Summaries are extracts without anything of a model's own judgement, so what a system loses here is what its "
      + "settings lose. " + counted,
    Summaries.chains
  ),
  part(
    "samples",
    "samples",
    "The sample sessions",
    "The sessions of [examples/sessions](examples/sessions/) under a budget of 16,000 tokens. They are short, so these "
      + "figures say less than those below; anybody can make them again.",
    (subjects) => Costs.side(subjects, Costs.budget.samples)
  ),
  part(
    "sessions",
    "recorded",
    "Progressive, reference summary, recommended",
    `The same sessions, one by one. ${counted}`,
    (subjects) => Costs.side(subjects, Costs.budget.recorded)
  ),
  part(
    "presets",
    "recorded",
    "All presets",
    `What each preset models of another system, and what not, is said in \`Policy\`. ${counted}`,
    (subjects) => Costs.presets(subjects, Costs.budget.recorded)
  ),
  part(
    "windows",
    "recorded",
    "Other windows, and automatic caching",
    "`window` instead of a budget: 8,192 tokens come off it, and 800 for the notice. Prices are those of Claude Opus 4.5 "
      + "under both caches, so that only the rules differ; with automatic caching a write costs as much as with explicit.",
    Costs.windows
  ),
  part(
    "floors",
    "recorded",
    "Worth the rebuild: `clearAtLeast`",
    "Meter `hybrid`, a budget of 100,000 tokens, and over it a pass is let through (`clearFloorWhenOverBudget: "
      + "\"override\"`). The table is at `targetUsage` 0.85: a pass then frees about 7,000 tokens, less than each of the "
      + "floors, so that each of them matters; at 0.8 it frees 12,000 and the floor of 10,000 refuses nothing, at the "
      + "default 0.5 it frees 42,000 and none of them does. Floors of 20,000 and more are hardly met within the budget: the "
      + "pass waits until the view is over it, so the two highest differ little. `countSkips` is `\"whenGrown\"` and "
      + "`maxConsecutiveSkips` the default of 3; with `\"every\"` the views are the same, and each session ends in the "
      + "error under one of the floors. A floor mends a target that is too high and does not replace a lower one, which "
      + "costs less and retains less.",
    Floors.floors
  ),
  part(
    "cold",
    "kept",
    "Where the prefix is cold anyway",
    "Sessions whose files say when each message was written, and that paused for longer than Anthropic keeps a prefix; the "
      + "recorded pauses are played. *The optimum* knows no pauses. " + counted,
    Cold.sessions
  ),
  part(
    "meters",
    "recorded",
    "Meters and thresholds",
    "`contextSimple` with each meter, where the provider counts as the estimator does (1.0), where it counts 30 % more "
      + "(1.3), and where it counts twice as much (2.0). A budget of 45,000 tokens. What is freed is sized in prices, or, "
      + "where it says so and with `calibrated`, in the tokens of the provider: then the target is what it "
      + "says, whatever the provider counts. A target in prices keeps more and rewrites more often.",
    Costs.meters
  ),
  part(
    "heads",
    "recorded",
    "What survives a boundary",
    "What the recorded bills say was read from the cache by the first request, and by the first one after the agent cut "
      + "its own history: the system prompt and the tools, which no boundary changes. A boundary writes what it leaves anew; "
      + "it is worth that when reading what it frees would have cost more until the next one. `clearAtLeast` follows from "
      + "what `recommended` leaves at a window of 200,000 tokens and how many requests there are for each boundary: "
      + "left × (write − read) / (read × requests).",
    Costs.heads
  )
]
