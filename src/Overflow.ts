/**
 * Tells that a provider refused a request because it does not fit, from everything else it may refuse it for.
 *
 * Providers have no common code for it, and `AiError` has no reason: what is left are the codes of some and the words of
 * the rest. The bodies that this is tested on are in `test/fixtures/overflow`, each with its source.
 *
 * @since 0.1.0
 */
import * as AiError from "effect/ai/AiError"

/**
 * What a provider said that does not fit, in tokens, where it says so. `maximum` is what the input may be: what was asked
 * for the answer is off it where the provider counts both together.
 *
 * @category models
 * @since 0.1.0
 */
export interface Refused {
  readonly tokens?: number
  readonly maximum?: number
}

/** Codes and types that mean nothing else, wherever they stand in an error. */
const codes =
  /\b(context_length_exceeded|context_window_exceeded|model_context_window_exceeded|exceed_context_size_error|string_above_max_length)\b/i

/** How providers say it in words. */
const phrases: ReadonlyArray<RegExp> = [
  /context[ _-]?(length|window|size)( has been| is)? (exceeded|overflow)/i,
  /(maximum|max) (context|prompt) (length|window|size)/i,
  /maximum model length/i,
  /(prompt|input|conversation|messages?|request)( prompt)?( \([^)]*\))?( is| are)? too (long|large) (to fit|for (the |this )?(requested )?model)/i,
  /\bprompt is too long\b/i,
  /too large for model with \d+ maximum context/i,
  /input prompt \(\d+ tokens\) is too long/i,
  /exceeds? (the )?(available |model'?s? |maximum |this model'?s? )?context (window|length|size|limit)/i,
  /(greater|longer|larger) than (the |this )?(model'?s? )?context (window|length|size)/i,
  /context (window|length) exceeds limit/i,
  /(input|prompt) token count.{0,40}exceeds/i,
  /input (tokens|length).{0,60}exceeds? (the )?(configured|context|maximum) (limit|length)/i,
  /exceeded model token limit/i,
  /reduce the length of the (input )?(messages|prompt)/i
]

/**
 * What is about money, rate or something else that is too large, in words that are near. It wins over every phrase: a
 * limit of tokens a minute is not got round by sending less of this conversation for good.
 */
const others =
  /rate.?limit|per (minute|min|day|hour)|\b(TPM|RPM|TPD)\b|quota|billing|credits?\b|afford|pricing tier|too many (requests|tokens, please wait)|monthly limit|usage (limit|is required)/i

/**
 * The kinds of failure that a refusal may come as. Adapters make an `InvalidRequestError` of status 400, and something
 * unnamed of 413, 422, of an error in the midst of a stream, and of the 500 that some servers answer.
 */
const reasons: ReadonlySet<string> = new Set(["InvalidRequestError", "UnknownError", "InternalProviderError"])

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null

/** The texts in the metadata of the providers, such as OpenAI's `errorCode`. */
const metadataOf = (metadata: unknown): string => {
  const texts: Array<string> = []
  if (isRecord(metadata)) {
    for (const provider of Object.values(metadata)) {
      if (isRecord(provider)) texts.push(...Object.values(provider).filter((value) => typeof value === "string"))
    }
  }
  return texts.join("\n")
}

/**
 * What an error says, for a predicate and for {@link refusedOf}: its description, the codes in its metadata, and the body
 * of the response where the adapter kept it.
 *
 * @category getters
 * @since 0.1.0
 */
export const textOf = (error: AiError.AiError): string => {
  const { reason } = error
  const description = "description" in reason && typeof reason.description === "string" ? reason.description : ""
  const body = "http" in reason && reason.http?.body !== undefined ? reason.http.body : ""
  return [description, "metadata" in reason ? metadataOf(reason.metadata) : "", body].join("\n")
}

/**
 * Whether a text is a provider's refusal of a request that is too long.
 *
 * @category predicates
 * @since 0.1.0
 */
export const describes = (text: string): boolean =>
  !others.test(text) && (codes.test(text) || phrases.some((phrase) => phrase.test(text)))

/**
 * Whether an error is the refusal of a request that is too long for the model. Rate limits and quota errors never are,
 * nor is a body of too many bytes: nothing says that it holds too many tokens.
 *
 * @category predicates
 * @since 0.1.0
 */
export const isContextOverflow = (error: unknown): error is AiError.AiError =>
  AiError.isAiError(error) && reasons.has(error.reason._tag) && describes(textOf(error))

/**
 * Where the numbers stand. `tokens` is the input, `total` the input with the answer that was asked for, `maximum` what
 * both may be together when `answer` is there, else what the input may be. The first that matches counts.
 */
const numbers: ReadonlyArray<RegExp> = [
  // Anthropic, with the answer: 178959 + 64000 > 200000
  /(?<tokens>\d[\d,]*) ?\+ ?(?<answer>\d[\d,]*) ?> ?(?<maximum>\d[\d,]*)/,
  // Anthropic, Bedrock: 210000 tokens > 200000 maximum
  /(?<tokens>\d[\d,]*) tokens ?> ?(?<maximum>\d[\d,]*)/i,
  // OpenAI, DeepSeek, vLLM, OpenRouter: maximum context length is M tokens … requested N tokens (A in the messages, B in the completion)
  /maximum context length is (?<maximum>\d[\d,]*).{0,40}requested (about )?(?<total>\d[\d,]*) tokens(.{0,80}?(?<answer>\d[\d,]*) (in|for) the (completion|output))?/is,
  // OpenAI, vLLM: maximum context length is M tokens … resulted in N tokens
  /maximum context length is (?<maximum>\d[\d,]*).{0,60}?(resulted in|has|contains) (?<tokens>\d[\d,]*) (input )?tokens/is,
  // OpenAI: configured limit of M tokens. Your messages resulted in N tokens
  /limit of (?<maximum>\d[\d,]*) tokens.{0,40}resulted in (?<tokens>\d[\d,]*) tokens/is,
  // xAI: maximum prompt length is M but the request contains N tokens
  /maximum prompt length is (?<maximum>\d[\d,]*).{0,40}contains (?<tokens>\d[\d,]*) tokens/i,
  // Mistral: contains N tokens … too large for model with M maximum context length
  /contains (?<tokens>\d[\d,]*) tokens.{0,60}too large for model with (?<maximum>\d[\d,]*)/i,
  // Gemini: token count (N) exceeds … (M); Copilot: token count of N exceeds the limit of M
  /token count (of )?\(?(?<tokens>\d[\d,]*)\)? exceeds.{0,50}?(?<maximum>\d[\d,]*)/i,
  // llama.cpp: request (N tokens) exceeds the available context size (M tokens)
  /\((?<tokens>\d[\d,]*) tokens\) exceeds.{0,40}?\((?<maximum>\d[\d,]*) tokens\)/i,
  // llama.cpp: "n_prompt_tokens":N,"n_ctx":M
  /"n_prompt_tokens": ?(?<tokens>\d+), ?"n_ctx": ?(?<maximum>\d+)/,
  // vLLM: (length N) is longer than the maximum model length of M; (total length N) … (context length M)
  /length (?<tokens>\d[\d,]*)\).{0,60}?length (of )?(?<maximum>\d[\d,]*)/i,
  // vLLM: Input prompt (N tokens) is too long and exceeds limit of M
  /\((?<tokens>\d[\d,]*) tokens\) is too long and exceeds limit of (?<maximum>\d[\d,]*)/i,
  // llama-cpp-python: Requested tokens (N) exceed context window of M
  /requested tokens \((?<tokens>\d[\d,]*)\) exceed context window of (?<maximum>\d[\d,]*)/i,
  // Moonshot: exceeded model token limit: M (requested: N)
  /token limit: (?<maximum>\d[\d,]*) \(requested: (?<tokens>\d[\d,]*)\)/i,
  // The maximum alone
  /maximum (context|prompt) length is (?<maximum>\d[\d,]*)/i
]

const whole = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text.replaceAll(",", ""))

/**
 * The numbers in a refusal, such as "210000 tokens > 200000 maximum"; empty where it names none. Where the provider
 * counts the answer that was asked for, it is taken off both; an answer that alone fills the window leaves no maximum.
 *
 * @category getters
 * @since 0.1.0
 */
export const refusedOf = (text: string): Refused => {
  for (const pattern of numbers) {
    const groups = pattern.exec(text)?.groups
    if (groups === undefined) continue
    const answer = whole(groups.answer) ?? 0
    const total = whole(groups.total)
    const tokens = whole(groups.tokens) ?? (total === undefined ? undefined : total - answer)
    const most = whole(groups.maximum)
    const maximum = most === undefined || most <= answer ? undefined : most - answer
    return {
      ...(tokens === undefined || tokens < 0 ? undefined : { tokens }),
      ...(maximum === undefined ? undefined : { maximum })
    }
  }
  return {}
}
