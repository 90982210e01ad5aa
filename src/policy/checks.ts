import * as Schema from "effect/Schema"
import * as Budget from "../Budget.ts"
import type * as Kind from "../Kind.ts"
import * as Settings from "../Settings.ts"
import * as Stages from "./stages.ts"

/** What the checks over several keys read of a policy. */
type Checked = Settings.Settings & { readonly ladder: ReadonlyArray<unknown> }

/** What is wrong at a place, and what to write there. */
interface Problem {
  readonly path: ReadonlyArray<PropertyKey>
  readonly issue: string
}

type Issue = Problem | ReadonlyArray<Problem>

/**
 * The checks over several keys. The advice of each names every other key that it reads: that is how a check is left out
 * when one of these keys is bad by itself.
 */
const checks: ReadonlyArray<(policy: Checked) => Issue | undefined> = [
  ({ notice, noticeReserve, ...settings }) => {
    const { limit, total } = Budget.resolve({ ...settings, notice, noticeReserve })
    // A small window shrinks the usual reserve; one that somebody made larger is meant to be kept.
    const isKept = noticeReserve < total || (limit < total && noticeReserve <= Settings.usualNoticeReserve)
    return !notice || isKept ? undefined : {
      path: ["noticeReserve"],
      issue: `write less than the budget of ${total} tokens (window, maxTokens), or set notice to false: a reserve as `
        + "large as the budget is not kept"
    }
  },
  (policy) => {
    const { limit } = Budget.resolve(policy)
    return policy.budgetTokens === undefined || policy.budgetTokens < limit ? undefined : {
      path: ["budgetTokens"],
      issue:
        `write less than the budget of ${limit} tokens (window, maxTokens, noticeReserve): one result of that size `
        + "would fill it"
    }
  },
  (policy) => {
    const { limit } = Budget.resolve(policy)
    return Object.entries(policy.budgetByTool).filter(([, tokens]) => tokens >= limit).map(([tool]) => ({
      path: ["budgetByTool", tool],
      issue:
        `write less than the budget of ${limit} tokens (window, maxTokens, noticeReserve): one result of that size `
        + "would fill it"
    }))
  },
  ({ budgetByTool, exemptTools }) =>
    exemptTools.flatMap((tool, at) =>
      Object.hasOwn(budgetByTool, tool)
        ? [{
          path: ["exemptTools", at],
          issue: `take ${JSON.stringify(tool)} out here or in budgetByTool: what is never truncated needs no budget`
        }]
        : []
    ),
  ({ meter, provenanceGate }) =>
    provenanceGate !== true || meter !== "estimate" ? undefined : {
      path: ["provenanceGate"],
      issue:
        "write false, or set meter to \"hybrid\", \"actual\" or \"calibrated\": with the meter \"estimate\" no count "
        + "is anchored on usage, and every pass below the budget would be refused"
    },
  ({ meter, sizing }) =>
    sizing !== "provider" || meter !== "estimate" ? undefined : {
      path: ["sizing"],
      issue:
        "write \"price\", or set meter to \"calibrated\", \"hybrid\" or \"actual\": with the meter \"estimate\" no "
        + "size in the provider's tokens is known"
    },
  (policy) => {
    const { clearAtLeast, compactThreshold, targetUsage } = policy
    // With an override what is over the budget is compacted all the same: the floor then only delays.
    if (clearAtLeast === null || clearAtLeast === "auto" || policy.clearFloorWhenOverBudget === "override") {
      return undefined
    }
    const isShare = clearAtLeast < 1
    // Without a window or a cap the budget comes with the call, and may be any.
    if (!isShare && policy.window === undefined && policy.maxTokens === undefined) return undefined
    const { target, trigger } = Budget.resolve(policy)
    // Decimal shares are not exact in binary: 0.92 − 0.5 is a little more than 0.42.
    const most = isShare ? Math.round((compactThreshold - targetUsage) * 1e6) / 1e6 : Math.floor(trigger - target)
    return clearAtLeast <= most ? undefined : {
      path: ["clearAtLeast"],
      issue:
        `write at most ${most}${
          isShare ? "" : " tokens"
        }, or set clearFloorWhenOverBudget to "override": a pass begins at `
        + `compactThreshold (${compactThreshold}) and stops at targetUsage (${targetUsage}) of the budget (window, `
        + "maxTokens, noticeReserve), and would free too little nearly every time"
    }
  },
  ({ maxMessages, targetUsage }) => {
    if (maxMessages === undefined || Math.floor(maxMessages * targetUsage) >= 1) return undefined
    return {
      path: ["maxMessages"],
      issue: targetUsage === 0
        ? "leave the key out, or raise targetUsage above 0: it aims at maxMessages × targetUsage messages, which is none"
        : `write at least ${Math.ceil(1 / targetUsage)}: it aims at maxMessages × targetUsage messages, which is none`
    }
  },
  ({ ladder, notice, noticeMinLevel }) =>
    !notice || ladder.length === 0 || noticeMinLevel <= ladder.length ? undefined : {
      path: ["noticeMinLevel"],
      issue:
        `write at most ${ladder.length}, the number of rungs in ladder, or set notice to false: no pass gets further`
    },
  ({ maxRequestBytes, maxToolResultBytes }) =>
    maxRequestBytes === null || maxToolResultBytes === null || maxRequestBytes > maxToolResultBytes ? undefined : {
      path: ["maxRequestBytes"],
      issue: `write more than maxToolResultBytes (${maxToolResultBytes}): one tool result may be as large as that`
    },
  ({ ladder }) =>
    ladder.flatMap((rung, at) =>
      at > 0 && JSON.stringify(rung) === JSON.stringify(ladder[at - 1])
        ? [{
          path: ["ladder", at],
          issue: `take it out, or change it: it repeats ladder[${at - 1}], and finds nothing left to do`
        }]
        : []
    )
]

/** What is wrong between the keys of a policy, each of which is right by itself. */
export const problemsOf = (policy: Checked): ReadonlyArray<Problem> =>
  // A window without room for a budget is named by the settings' own check.
  Budget.resolve(policy).total <= 0 ? [] : checks.flatMap((check) => check(policy) ?? [])

/** The same, of what is decoded. */
export const all = Schema.makeFilter(problemsOf)

/** That something says whether a pass has anything to do before its stages decide. */
export const gated = (kinds: ReadonlyMap<string, Kind.Any>) =>
  Schema.makeFilter((policy: { readonly pass?: ReadonlyArray<{ readonly _tag: string }> }) => {
    const at = Stages.ungated(policy.pass ?? [], kinds)
    return at === undefined ? undefined : {
      path: ["pass", at],
      issue: "write { \"_tag\": \"pressure\" }, or a gate of your own, before it: it would shorten every request"
    }
  })
