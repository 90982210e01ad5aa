/**
 * How much a model holds and how long it may answer, as dated data.
 *
 * A row counts for every model whose name begins with its prefix, so that dated snapshots need no row of their own. The
 * table is a convenience and ages: a row of your own goes before it, and a number in the settings before both. For a
 * model that is in no row nothing is guessed: the budget falls back, and {@link settingsFor} logs that it does.
 *
 * **Gotchas**
 *
 * Windows are those of the provider's own API. A host that serves the same model with a smaller window, or a larger one
 * that takes a flag, needs a row of its own.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Budget from "./Budget.ts"

/**
 * What a model holds, and how long it may answer, in tokens; `source` is where the numbers are from.
 *
 * @category models
 * @since 0.1.0
 */
export interface Row {
  readonly prefix: string
  readonly window: number
  readonly maxOutput: number
  readonly source: string
}

/**
 * The day on which the rows were last read from their sources.
 *
 * @category constants
 * @since 0.1.0
 */
export const asOf = "2026-11-30"

const claude = (name: string) => `https://platform.claude.com/docs/en/models/${name}/overview`

const gateway = (name: string) => `https://vercel.com/ai-gateway/models/${name}`

/**
 * The rows, in no order: of two prefixes that fit, the longer counts.
 *
 * @category constants
 * @since 0.1.0
 */
export const rows: ReadonlyArray<Row> = [
  { prefix: "claude-opus-4-5", window: 200_000, maxOutput: 64_000, source: claude("opus-4-5") },
  { prefix: "claude-opus-4-6", window: 1_000_000, maxOutput: 128_000, source: claude("opus-4-6") },
  { prefix: "claude-opus-4-8", window: 1_000_000, maxOutput: 128_000, source: claude("opus-4-8") },
  { prefix: "claude-opus-5", window: 1_000_000, maxOutput: 128_000, source: claude("opus-5") },
  { prefix: "claude-sonnet-4-5", window: 200_000, maxOutput: 64_000, source: claude("sonnet-4-5") },
  { prefix: "claude-sonnet-5", window: 1_000_000, maxOutput: 128_000, source: claude("sonnet-5") },
  { prefix: "claude-fable-5-1", window: 1_000_000, maxOutput: 128_000, source: claude("fable-5-1") },
  {
    prefix: "gpt-5-codex",
    window: 400_000,
    maxOutput: 128_000,
    source: "https://developers.openai.com/api/docs/models/gpt-5-codex"
  },
  { prefix: "gpt-5.2", window: 400_000, maxOutput: 128_000, source: gateway("gpt-5.2") },
  { prefix: "gpt-5.4", window: 1_050_000, maxOutput: 128_000, source: gateway("gpt-5.4") },
  {
    prefix: "gemini-2.5-pro",
    window: 1_048_576,
    maxOutput: 65_535,
    source: "https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/2-5-pro"
  },
  {
    prefix: "gemini-3-pro",
    window: 1_048_576,
    maxOutput: 65_536,
    source: "https://ai.google.dev/gemini-api/docs/models/gemini-3-pro-preview"
  }
]

/** Whether a name goes on after a prefix with another part of it: `gpt-5.2` is no `gpt-5.25`. */
const continues = (name: string, prefix: string): boolean =>
  name === prefix || (name.startsWith(prefix) && /^[-@:.[]/.test(name.slice(prefix.length)))

/**
 * The row of a model, `undefined` when there is none. What comes before a slash, the name of a provider, does not count.
 *
 * @category getters
 * @since 0.1.0
 */
export const find = (model: string, table: ReadonlyArray<Row> = rows): Row | undefined => {
  const name = model.toLowerCase().slice(model.lastIndexOf("/") + 1)
  let found: Row | undefined
  for (const row of table) {
    // Of two rows with the same prefix the first counts: one's own rows stand before those of this table.
    if (continues(name, row.prefix) && row.prefix.length > (found?.prefix.length ?? 0)) found = row
  }
  return found
}

/**
 * The settings `window` and `maxOutput` of a model, to be spread among one's own. An unknown model gives none, which
 * makes the budget {@link Budget.fallback}, and a warning says so.
 *
 * **Example** (Naming a model that the table does not know)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as ModelTable from "effect-compaction/ModelTable"
 *
 * const own = { prefix: "house-model", window: 64_000, maxOutput: 4_000, source: "our own host" }
 *
 * Effect.runSync(ModelTable.settingsFor("house-model-2", [own, ...ModelTable.rows])) // => { window: 64000, maxOutput: 4000 }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const settingsFor = Effect.fnUntraced(function*(model: string, table: ReadonlyArray<Row> = rows) {
  const row = find(model, table)
  if (row !== undefined) return { window: row.window, maxOutput: row.maxOutput }
  yield* Effect.logWarning(
    `the window of ${model} is not known: the budget is ${Budget.fallback} tokens; set window and maxOutput, or add a row`
  )
  return {}
})
