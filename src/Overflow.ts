/**
 * Tells that a provider refused a request because it does not fit, from everything else it may refuse it for.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"

/** What a provider said that does not fit, in tokens, where it says so. */
export interface Refused {
  readonly tokens?: number
  readonly maximum?: number
}

/**
 * How providers say that the context is too long. None of these words stands in a rate limit or a quota error, and those
 * are told apart by their reason before the words are read.
 */
const phrases: ReadonlyArray<RegExp> = [
  /context[_ -]?(length|window)[_ -]?(is )?(exceeded|overflow)/i,
  /maximum context (length|window)/i,
  /(prompt|input|request|messages?|conversation)( is| are)? too (long|large)/i,
  /(exceeds?|exceeded|larger than|longer than|over) (the )?(model'?s? )?(maximum |max |available )?(context|input token|prompt token|number of (input )?tokens)/i,
  /(input|prompt|request).{0,40}token count.{0,40}exceeds/i,
  /reduce the length of the (messages|prompt|input)/i,
  /tokens? (in|of) (the |your )?(prompt|input|request).{0,40}(exceed|more than)/i
]

/** A limit on the rate of tokens speaks of tokens too. */
const rate = /rate.?limit|per (minute|day|hour)|quota|TPM|RPM|billing/i

const describes = (text: string): boolean => !rate.test(text) && phrases.some((phrase) => phrase.test(text))

const codes: ReadonlySet<string> = new Set([
  "context_length_exceeded",
  "string_above_max_length",
  "model_context_window_exceeded"
])

const codeOf = (metadata: unknown): string | undefined => {
  if (typeof metadata !== "object" || metadata === null) return undefined
  for (const provider of Object.values(metadata)) {
    if (typeof provider === "object" && provider !== null && "errorCode" in provider) {
      return typeof provider.errorCode === "string" ? provider.errorCode : undefined
    }
  }
  return undefined
}

/**
 * Whether an error is the refusal of a request that is too long for the model. Rate limits and quota errors never are.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isContextOverflow = (error: unknown): error is AiError.AiError => {
  if (!AiError.isAiError(error) || error.reason._tag !== "InvalidRequestError") return false
  const code = codeOf(error.reason.metadata)
  if (code !== undefined && codes.has(code)) return true
  return describes(error.reason.description ?? "")
}

const whole = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text.replace(/[,_]/g, ""))

/**
 * The numbers in a refusal, such as "210000 tokens > 200000 maximum" or "maximum context length is 128000 tokens.
 * However, your messages resulted in 130000 tokens"; empty where it names none.
 *
 * @category getters
 * @since 0.1.0
 */
export const refusedOf = (text: string): Refused => {
  const compared = /(\d[\d,_]*)\s*tokens?\s*>\s*(\d[\d,_]*)/i.exec(text)
  const tokens = whole(
    compared?.[1] ?? /(?:resulted in|requested|contains?|is|got|count \()\s*(?:about )?(\d[\d,_]*)\)?\s*tokens?/i.exec(
      text.replace(/maximum[^.]*\d[\d,_]*\s*tokens?/i, "")
    )?.[1]
  )
  const maximum = whole(compared?.[2] ?? /maximum[^.\d]{0,60}(\d[\d,_]*)/i.exec(text)?.[1])
  return { ...(tokens === undefined ? undefined : { tokens }), ...(maximum === undefined ? undefined : { maximum }) }
}
