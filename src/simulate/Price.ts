/**
 * What tokens cost, in US dollars.
 *
 * {@link presets} holds the list prices of a few models, each with the day it was read and the page it is from. They are
 * data to start from: spread one and change what your contract says.
 *
 * @since 0.1.0
 */
import type * as PromptCache from "./PromptCache.ts"

/**
 * Prices for a million tokens each. `cacheWriteHour` is for entries that live longer than five minutes, where a provider
 * sells those.
 *
 * @category models
 * @since 0.1.0
 */
export interface Price {
  readonly input: number
  readonly cacheWrite: number
  readonly cacheWriteHour?: number
  readonly cacheRead: number
  readonly output: number
}

/**
 * A list price: the day it was read (ISO 8601), and where.
 *
 * @category models
 * @since 0.1.0
 */
export interface Preset extends Price {
  readonly date: string
  readonly source: string
}

/**
 * Tokens that are billed: input by bucket, and output.
 *
 * @category models
 * @since 0.1.0
 */
export interface Billed extends PromptCache.Buckets {
  readonly output: number
}

const anthropicPage = "https://platform.claude.com/docs/en/about-claude/pricing"
const openaiPage = "https://developers.openai.com/api/docs/pricing"

/** Anthropic: writes cost 1.25 times the input price, 2 times for an hour; reads a tenth. */
const anthropic = (input: number, output: number): Preset => ({
  input,
  cacheWrite: input * 1.25,
  cacheWriteHour: input * 2,
  cacheRead: input / 10,
  output,
  date: "2026-11-30",
  source: anthropicPage
})

/** OpenAI before GPT-5.6: writes cost nothing beyond the input price. */
const openai = (input: number, cacheRead: number, output: number): Preset => ({
  input,
  cacheWrite: input,
  cacheRead,
  output,
  date: "2026-06-04",
  source: openaiPage
})

/**
 * List prices by model.
 *
 * @category presets
 * @since 0.1.0
 */
export const presets = {
  "claude-opus-4-8": anthropic(5, 25),
  "claude-opus-4-5": anthropic(5, 25),
  "claude-sonnet-4-5": anthropic(3, 15),
  "claude-haiku-4-5": anthropic(1, 5),
  "gpt-5.5": openai(5, 0.5, 30),
  "gpt-5.4": openai(2.5, 0.25, 15),
  "gpt-5.4-mini": openai(0.75, 0.075, 4.5)
} satisfies { readonly [model: string]: Preset }

/**
 * @category models
 * @since 0.1.0
 */
export type PresetName = keyof typeof presets

/** Longer lives are sold at another price; the shorter one is five minutes. */
const shortLife = 5 * 60_000

/**
 * The price under the rules of a cache: its `cacheWrite` is what entries of that life cost.
 *
 * @category combining
 * @since 0.1.0
 */
export const under = (self: Price, rules: PromptCache.Rules): Price =>
  rules._tag === "explicit" && rules.life > shortLife && self.cacheWriteHour !== undefined
    ? { ...self, cacheWrite: self.cacheWriteHour }
    : self

/**
 * What some tokens cost, in dollars.
 *
 * @category running
 * @since 0.1.0
 */
export const cost = (self: Price, { fresh, output, read, written }: Billed): number =>
  (fresh * self.input + written * self.cacheWrite + read * self.cacheRead + output * self.output) / 1_000_000

/**
 * What a boundary costs and spares in dollars where the cache is warm: the tokens that it rewrites are paid as a write where
 * they would have been a read, and those that it frees are not read.
 *
 * @category running
 * @since 0.1.0
 */
export const ofBoundary = (
  { cacheRead, cacheWrite }: Price,
  { freed, rewritten }: { readonly rewritten: number; readonly freed: number }
): { readonly cost: number; readonly spared: number } => ({
  cost: rewritten * (cacheWrite - cacheRead) / 1_000_000,
  spared: freed * cacheRead / 1_000_000
})
