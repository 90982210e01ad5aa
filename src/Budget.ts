/**
 * From the window of a model to the numbers a pass goes by: budget, trigger, target; and the windows of known models, as
 * dated data.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Settings from "./Settings.ts"
import * as TokenMeter from "./TokenMeter.ts"

/**
 * What a model is taken to hold when nothing says how much, in tokens.
 *
 * @category constants
 * @since 0.1.0
 */
export const fallback = TokenMeter.assumedWindow

/**
 * The smaller of the window in the settings and the one of the model, in tokens; `undefined` where neither is known.
 *
 * @category getters
 * @since 0.1.0
 */
export const smallerWindow = (
  settings: Settings.Settings,
  model: { readonly window?: number }
): number | undefined => {
  const known = [settings.window, model.window].filter((each) => each !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}

/**
 * What the model of a request is taken to hold, in tokens: the smaller of the windows that the call and the settings name,
 * else the fallback, and in any case the budget that the caller names. What is billed is believed up to there.
 *
 * @category getters
 * @since 0.1.0
 */
export const windowOf = (
  settings: Settings.Settings,
  call: { readonly window?: number; readonly budget?: number } = {}
): number => Math.max(smallerWindow(settings, call) ?? fallback, call.budget ?? 0)

/**
 * The budget of one request. All numbers but `trigger` are whole tokens.
 *
 * **Details**
 *
 * - `total`: what a request may occupy; `source` says where that comes from.
 * - `overhead`: what of a request is not in the view, such as the definitions of tools; it comes off the total.
 * - `limit`: the rest less the notice reserve, which is taken off when it is the smaller of the two. The ladder's `B`.
 * - `trigger`: `compactThreshold × limit`, not rounded: a pass runs when the count reaches it.
 * - `target`: `floor(limit × targetUsage)`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Budget extends Sizes {
  readonly total: number
  readonly source: "given" | "window" | "model" | "fallback" | "maxTokens" | "provider"
  readonly overhead: number
}

/**
 * The numbers a pass goes by.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sizes {
  readonly limit: number
  readonly trigger: number
  readonly target: number
}

/**
 * The sizes of a budget in prices, when a token of the provider's costs `1 / scale` of a price; rounded down.
 *
 * @category converting
 * @since 0.1.0
 */
export const inPrices = (self: Sizes, scale: number): Sizes =>
  scale === 1 ? self : {
    limit: Math.floor(self.limit / scale),
    trigger: Math.floor(self.trigger / scale),
    target: Math.floor(self.target / scale)
  }

/**
 * The sizes of a budget where the prompt cache is cold anyway: a pass begins no later and goes no less deep.
 *
 * @category converting
 * @since 0.1.0
 */
export const whenCold = (self: Budget, { target, threshold }: Settings.WhenCold): Budget => ({
  ...self,
  trigger: Math.min(self.trigger, threshold * self.limit),
  target: Math.min(self.target, Math.floor(self.limit * target))
})

/**
 * Resolves the budget of a request.
 *
 * **Details**
 *
 * `given` is a budget that the caller names for this request, rounded down; else the window less half of the longest answer
 * (`outputReserve`) and 4,096 tokens; a small window keeps less free, of the notice too (`Settings.reservesOf`); else the
 * fallback. `maxTokens` caps each of them, and so does the `maximum` that a provider named when it refused a request.
 *
 * `model` is what the model of the request holds, from the table or from the caller: of its window and the one in the
 * settings the smaller counts, and `source` says which. Its longest answer stands in place of the one in the settings.
 *
 * @category constructors
 * @since 0.1.0
 */
export const resolve = (
  settings: Settings.Settings,
  given?: number,
  overhead = 0,
  maximum: number | null = null,
  model: { readonly window?: number; readonly maxOutput?: number } = {}
): Budget => {
  let total = fallback
  let source: Budget["source"] = "fallback"
  let reserve = settings.noticeReserve
  if (given !== undefined) {
    total = Math.floor(given)
    source = "given"
  } else {
    const window = smallerWindow(settings, model)
    if (window !== undefined) {
      const { maxOutput = settings.maxOutput } = model
      const { answer, margin, notice } = Settings.reservesOf({ ...settings, maxOutput }, window)
      total = window - answer - margin
      reserve = notice
      source = window === settings.window ? "window" : "model"
    }
  }
  if (settings.maxTokens !== undefined && settings.maxTokens < total) {
    total = settings.maxTokens
    source = "maxTokens"
  }
  if (maximum !== null && maximum < total) {
    total = maximum
    source = "provider"
  }
  const room = total - overhead
  const limit = settings.notice && reserve < room ? room - reserve : room
  return {
    total,
    source,
    overhead,
    limit,
    trigger: settings.compactThreshold * limit,
    target: Math.floor(limit * settings.targetUsage)
  }
}

/**
 * What a model holds, and how long it may answer, in tokens; `source` is where the numbers are from. It counts for every
 * model whose name begins with `prefix`, so that dated snapshots need no row of their own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Model {
  readonly prefix: string
  readonly window: number
  readonly maxOutput: number
  readonly source: string
}

/**
 * The day on which the models were last read from their sources.
 *
 * @category constants
 * @since 0.1.0
 */
export const modelsAsOf = "2026-11-30"

const claude = (name: string) => `https://platform.claude.com/docs/en/models/${name}/overview`

const gateway = (name: string) => `https://vercel.com/ai-gateway/models/${name}`

/**
 * The known models, in no order: of two prefixes that fit, the longer counts.
 *
 * **Gotchas**
 *
 * The table is a convenience and ages: a row of your own goes before it, and a number in the settings before both. Windows
 * are those of the provider's own API; a host that serves the same model with another window needs a row of its own.
 *
 * @category constants
 * @since 0.1.0
 */
export const models: ReadonlyArray<Model> = [
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
export const modelOf = (model: string, table: ReadonlyArray<Model> = models): Model | undefined => {
  const name = model.toLowerCase().slice(model.lastIndexOf("/") + 1)
  let found: Model | undefined
  for (const row of table) {
    // Of two rows with the same prefix the first counts: one's own rows stand before those of this table.
    if (continues(name, row.prefix) && row.prefix.length > (found?.prefix.length ?? 0)) found = row
  }
  return found
}

/**
 * The settings `window` and `maxOutput` of a model, to be spread among one's own. An unknown model gives none, which
 * makes the budget {@link fallback}, and a warning says so.
 *
 * **Example** (Naming a model that the table does not know)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Budget from "effect-compaction/Budget"
 *
 * const own = { prefix: "house-model", window: 64_000, maxOutput: 4_000, source: "our own host" }
 *
 * Effect.runSync(Budget.settingsFor("house-model-2", [own, ...Budget.models])) // => { window: 64000, maxOutput: 4000 }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const settingsFor = Effect.fnUntraced(function*(model: string, table: ReadonlyArray<Model> = models) {
  const row = modelOf(model, table)
  if (row !== undefined) return { window: row.window, maxOutput: row.maxOutput }
  yield* Effect.logWarning(
    `the window of ${model} is not known: the budget is ${fallback} tokens; set window and maxOutput, or add a row`
  )
  return {}
})
