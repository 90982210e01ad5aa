import * as Schema from "effect/Schema"
import type { Pass } from "../Stage.ts"
import * as TokenMeter from "../TokenMeter.ts"
import type * as View from "../View.ts"

/**
 * What a pass would do, before anything of it is committed.
 *
 * **Details**
 *
 * - `cause`: why the pass is made. `generation`: how many boundaries the session has had before it.
 * - `outcome`: `compact`, the pass changes the view. `nothing`, it does not, and `reason` says why. `fail`, it fails, and
 *   `reason` says with what. `summary`, a model would be asked for a summary first; the rest of the preview is what the pass
 *   does without one.
 * - `before`, `after`: the price of the view, in tokens, and `freed` the difference. `rebuilt`: the price of what stands behind
 *   the first change, in tokens: a provider with a prompt cache has to write that anew.
 * - `count`, `kind`: what the meter says of the view now, in tokens. `budget`, `trigger`, `target`: what the pass goes by, in
 *   tokens; `aim`, what it came down to, `null` where it had none.
 * - `rungs`: the names of the rungs that decided something, in their order. `level`: the place of the last of them, from 1.
 * - `checkpoint`: what becomes of a summary that is ready; see `Stage.Report`.
 * - `entries`: of the view by fate. `kept`: how many stay as they are; `shortened`, `removed`, `covered` by a checkpoint: which,
 *   by seq.
 * - `summary`: the entries that a model would be asked to summarise, and their price in tokens; `null` for none.
 *
 * @category models
 * @since 0.1.0
 */
export const Preview = Schema.Struct({
  cause: Schema.Literals(["pressure", "manual", "overflow"]),
  outcome: Schema.Literals(["compact", "nothing", "fail", "summary"]),
  reason: Schema.NullOr(Schema.String),
  before: Schema.Natural,
  after: Schema.Natural,
  freed: Schema.Int,
  rebuilt: Schema.Natural,
  count: Schema.Natural,
  kind: TokenMeter.Kind,
  budget: Schema.Int,
  trigger: Schema.Finite,
  target: Schema.Int,
  aim: Schema.NullOr(Schema.Finite),
  level: Schema.Natural,
  rungs: Schema.Array(Schema.String),
  checkpoint: Schema.NullOr(Schema.Literals(["absorbed", "stale", "useless"])),
  generation: Schema.Natural,
  entries: Schema.Struct({
    kept: Schema.Natural,
    shortened: Schema.Array(Schema.Natural),
    removed: Schema.Array(Schema.Natural),
    covered: Schema.Array(Schema.Natural)
  }),
  summary: Schema.NullOr(Schema.Struct({ entries: Schema.Array(Schema.Natural), tokens: Schema.Natural }))
})

/**
 * @category models
 * @since 0.1.0
 */
export type Preview = typeof Preview.Type

const isSame = (a: View.Item, b: View.Item): boolean =>
  a === b || (a.seq === b.seq && a.price === b.price && a.alterations.length === b.alterations.length)

/** The price of what stands in front of the first change of a view. */
export const keptOf = (before: View.View, after: View.View): number => {
  const first = after.items.findIndex((item, at) => {
    const known = before.items[at]
    return known === undefined || !isSame(known, item)
  })
  return (first < 0 ? after.items : after.items.slice(0, first)).reduce((sum, { price }) => sum + price, 0)
}

/** The price of what stands behind the first change. */
const rebuiltOf = (before: View.View, after: View.View): number =>
  before === after ? 0 : after.price - keptOf(before, after)

/** What becomes of the entries of a view. */
const fatesOf = (before: View.View, after: View.View): Preview["entries"] => {
  const absorbed = new Set<number>()
  const decided = before === after ? [] : after.decisions.slice(before.decisions.length)
  for (const decision of decided) if (decision._tag === "Absorb") { for (const seq of decision.seqs) absorbed.add(seq) }
  const stays = new Map(after.items.map((item) => [item.seq, item]))
  const fates = { kept: 0, shortened: Array<number>(), removed: Array<number>(), covered: Array<number>() }
  for (const item of before.items) {
    if (item.seq < 0) continue
    const next = stays.get(item.seq)
    if (next !== undefined && isSame(item, next)) fates.kept++
    else if (next !== undefined) fates.shortened.push(item.seq)
    else if (absorbed.has(item.seq) || absorbed.has(item.group)) fates.covered.push(item.seq)
    else fates.removed.push(item.seq)
  }
  return fates
}

/** The rungs of a ladder, as far as their names go. */
export type Names = ReadonlyArray<{ readonly name: string }> | undefined

const nothing = "no smaller view is worth a boundary"

/**
 * What a pass did, in numbers: `after` is what the stages made of it. `rungs` are those of its ladder, for their names.
 *
 * @category converting
 * @since 0.1.0
 */
export const previewOf = (after: Pass, rungs?: Names): Preview => {
  const { before, budget, cause, closed, count, generation, report, sizes, view } = after
  const isChanged = view !== before
  return {
    cause,
    outcome: isChanged ? "compact" : "nothing",
    reason: isChanged ? null : closed ?? nothing,
    before: before.price,
    after: view.price,
    freed: before.price - view.price,
    rebuilt: rebuiltOf(before, view),
    count: count.tokens,
    kind: count.kind,
    budget: budget.limit,
    trigger: budget.trigger,
    target: sizes.target,
    aim: report.target,
    level: isChanged ? report.level : 0,
    rungs: isChanged ? report.levels.map((level) => rungs?.[level - 1]?.name ?? `rung ${level}`) : [],
    checkpoint: report.checkpoint,
    generation,
    entries: fatesOf(before, view),
    summary: null
  }
}
