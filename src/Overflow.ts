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
  /\b(context_length_exceeded|context_window_exceeded|model_context_window_exceeded|context_overflow|context_exceeded|exceed_context_size_error|string_above_max_length)\b|"code": ?"?1261\b/i

/**
 * How providers say it in words. What may stand between two words is bounded: a pattern takes linear time, whatever a
 * server answers.
 */
const phrases: ReadonlyArray<RegExp> = [
  /context[ _-]?(length|window|size|limit)?( has been| is)?[ _-](exceeded|overflow)/i,
  /(maximum|max) (context|prompt) (length|window|size)/i,
  /maximum model length/i,
  /(prompt|input|conversation|messages?|request)( prompt)?( \([^)]{0,40}\))?( is| are)? too (long|large) (to fit|for (the |this )?(requested )?model)/i,
  /\bprompt( is)? too long\b/i,
  /too large for model with \d{1,15} maximum context/i,
  /input prompt \(\d{1,15} tokens\) is too long/i,
  /exceeds? (the )?(available |model'?s? |maximum |this model'?s? )?context (window|length|size|limit)/i,
  /(greater|longer|larger) than (the |this )?(model'?s? )?context (window|length|size)/i,
  /context (window|length) exceeds limit/i,
  /(input|prompt) token count.{0,40}exceeds/i,
  /input (tokens|length).{0,60}exceeds? (the )?(configured|context|maximum) (limit|length)/i,
  /exceeded model token limit/i,
  /reduce the length of the (input )?(messages|prompt)/i,
  // Alibaba's DashScope
  /range of input length should be \[/i,
  // Zhipu's GLM, in English and in Chinese
  /prompt exceeds (the )?max(imum)? length/i,
  /prompt ?超长|超[过出].{0,8}(最大|上下文).{0,8}(长度|限制)/i,
  // Cohere
  /number of tokens (in the prompt |\(prompt and prediction\) )?cannot exceed/i,
  // vLLM
  /exceeds (the )?max_model_len/i,
  // Hugging Face's TGI
  /`inputs` tokens \+ `max_new_tokens` must be|`inputs` must have less than/i
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
export const describes = (text: string): boolean => {
  const read = bounded(text)
  return !others.test(read) && (codes.test(read) || phrases.some((phrase) => phrase.test(read)))
}

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
  /(?<tokens>\d[\d,]{0,15}) ?\+ ?(?<answer>\d[\d,]{0,15}) ?> ?(?<maximum>\d[\d,]{0,15})/,
  // Anthropic, Bedrock: 210000 tokens > 200000 maximum
  /(?<tokens>\d[\d,]{0,15}) tokens ?> ?(?<maximum>\d[\d,]{0,15})/i,
  // OpenAI, DeepSeek, vLLM, OpenRouter: maximum context length is M tokens … requested N tokens (A in the messages, B in the completion)
  /maximum context length is (?<maximum>\d[\d,]{0,15}).{0,40}requested (about )?(?<total>\d[\d,]{0,15}) tokens(.{0,80}?(?<answer>\d[\d,]{0,15}) (in|for) the (completion|output))?/is,
  // OpenAI, vLLM: maximum context length is M tokens … resulted in N tokens
  /maximum context length is (?<maximum>\d[\d,]{0,15}).{0,60}?(resulted in|has|contains) (?<tokens>\d[\d,]{0,15}) (input )?tokens/is,
  // OpenAI: configured limit of M tokens. Your messages resulted in N tokens
  /limit of (?<maximum>\d[\d,]{0,15}) tokens.{0,40}resulted in (?<tokens>\d[\d,]{0,15}) tokens/is,
  // xAI: maximum prompt length is M but the request contains N tokens
  /maximum prompt length is (?<maximum>\d[\d,]{0,15}).{0,40}contains (?<tokens>\d[\d,]{0,15}) tokens/i,
  // Mistral: contains N tokens … too large for model with M maximum context length
  /contains (?<tokens>\d[\d,]{0,15}) tokens.{0,60}too large for model with (?<maximum>\d[\d,]{0,15})/i,
  // Gemini: token count (N) exceeds … (M); Copilot: token count of N exceeds the limit of M
  /token count (of )?\(?(?<tokens>\d[\d,]{0,15})\)? exceeds.{0,50}?(?<maximum>\d[\d,]{0,15})/i,
  // llama.cpp: request (N tokens) exceeds the available context size (M tokens)
  /\((?<tokens>\d[\d,]{0,15}) tokens\) exceeds.{0,40}?\((?<maximum>\d[\d,]{0,15}) tokens\)/i,
  // llama.cpp: "n_prompt_tokens":N,"n_ctx":M
  /"n_prompt_tokens": ?(?<tokens>\d{1,15}), ?"n_ctx": ?(?<maximum>\d{1,15})/,
  // vLLM: engine prompt length N exceeds the max_model_len M
  /prompt length (?<tokens>\d[\d,]{0,15}) exceeds (the )?max_model_len (of )?(?<maximum>\d[\d,]{0,15})/i,
  // vLLM: (length N) is longer than the maximum model length of M; (total length N) … (context length M)
  /length (?<tokens>\d[\d,]{0,15})\).{0,60}?length (of )?(?<maximum>\d[\d,]{0,15})/i,
  // vLLM: Prompt length of N is longer than the maximum model length of M
  /length of (?<tokens>\d[\d,]{0,15}) is longer than.{0,30}?length of (?<maximum>\d[\d,]{0,15})/i,
  // vLLM: Input prompt (N tokens) is too long and exceeds limit of M
  /\((?<tokens>\d[\d,]{0,15}) tokens\) is too long and exceeds limit of (?<maximum>\d[\d,]{0,15})/i,
  // llama-cpp-python: Requested tokens (N) exceed context window of M
  /requested tokens \((?<tokens>\d[\d,]{0,15})\) exceed context window of (?<maximum>\d[\d,]{0,15})/i,
  // Moonshot: exceeded model token limit: M (requested: N)
  /token limit: (?<maximum>\d[\d,]{0,15}) \(requested: (?<tokens>\d[\d,]{0,15})\)/i,
  // DashScope: Range of input length should be [1, M]
  /input length should be \[\d{1,15}, ?(?<maximum>\d[\d,]{0,15})\]/i,
  // Cohere, of old: tokens (prompt and prediction) cannot exceed M - received N, the answer among them
  /\(prompt and prediction\) cannot exceed (?<maximum>\d[\d,]{0,15})( - received (?<total>\d[\d,]{0,15}))?/i,
  // Cohere: tokens in the prompt cannot exceed M - received N
  /cannot exceed (?<maximum>\d[\d,]{0,15})( - received (?<tokens>\d[\d,]{0,15}))?/i,
  // TGI: must be <= M. Given: N `inputs` tokens and A `max_new_tokens`
  /must be <= (?<maximum>\d[\d,]{0,15})\. given: (?<tokens>\d[\d,]{0,15}) `inputs`? ?tokens`? and (?<answer>\d[\d,]{0,15}) `max_new_tokens/i,
  // TGI: `inputs` must have less than M tokens. Given: N
  /must have less than (?<maximum>\d[\d,]{0,15}) tokens\. given: (?<tokens>\d[\d,]{0,15})/i,
  // The maximum alone
  /maximum (context|prompt) length is (?<maximum>\d[\d,]{0,15})/i
]

/** More than this is no number of tokens, in any window there is. */
const largest = 1e9

/** How much of an error is read, from both ends of it: what a provider has to say is a few lines. */
const readLength = 8_000

/** So many digits in a row are no number of tokens; what is left of a longer number would be taken for another number. */
const endless = /\d{13,}/g

const bounded = (text: string): string =>
  (text.length <= 2 * readLength ? text : `${text.slice(0, readLength)}\n${text.slice(-readLength)}`)
    .replaceAll(endless, "…")

const whole = (text: string | undefined): number | undefined => {
  const value = text === undefined ? undefined : Number(text.replaceAll(",", ""))
  return value === undefined || value > largest ? undefined : value
}

/**
 * The numbers in a refusal, such as "210000 tokens > 200000 maximum"; empty where it names none. Where the provider
 * counts the answer that was asked for, it is taken off both; an answer that alone fills the window leaves no maximum. A
 * number of more than a billion is none, and of a very long text the beginning and the end are read.
 *
 * @category getters
 * @since 0.1.0
 */
export const refusedOf = (text: string): Refused => {
  const read = bounded(text)
  for (const pattern of numbers) {
    const groups = pattern.exec(read)?.groups
    if (groups === undefined) continue
    const answer = whole(groups.answer) ?? 0
    const total = whole(groups.total)
    const tokens = whole(groups.tokens) ?? (total === undefined ? undefined : total - answer)
    const most = whole(groups.maximum)
    const maximum = most === undefined || most <= answer ? undefined : most - answer
    return {
      ...(tokens === undefined || tokens <= 0 ? undefined : { tokens }),
      ...(maximum === undefined ? undefined : { maximum })
    }
  }
  return {}
}
