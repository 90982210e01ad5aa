/** The names of elements in which models think before they answer, as templates and providers write them. */
const thinking =
  /<(\/?)(?:\w{1,12}:)?(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|inner_monologue)(?: [^<>]{0,80})?>|\[(\/?)think\]|◁(\/?)think▷/gi

/** Where a channel of its own begins, as gpt-oss writes it: what is meant for the reader is in the last one. */
const finalChannel = "<|channel|>final<|message|>"

/** A tag in a text: where it stands, and whether it closes. */
interface Tag {
  readonly from: number
  readonly to: number
  readonly closes: boolean
}

/** How much of a line is read before a tag, in characters. */
const backLength = 400

/** Whether a place stands within backticks of its line: there a tag is talked about. */
const isQuoted = (text: string, at: number): boolean => {
  const before = text.slice(Math.max(0, at - backLength), at)
  return before.slice(before.lastIndexOf("\n") + 1).split("`").length % 2 === 0
}

const tagsOf = (text: string): ReadonlyArray<Tag> =>
  Array.from(text.matchAll(thinking), (match) => ({
    from: match.index,
    to: match.index + match[0].length,
    closes: [match[1], match[2], match[3]].includes("/")
  })).filter(({ from }) => !isQuoted(text, from))

/** A text without what its model thought aloud. What was never closed goes to the end, what was never opened from the start. */
const withoutThinking = (text: string): string => {
  const parts: Array<string> = []
  let depth = 0
  let kept = 0
  for (const { closes, from, to } of tagsOf(text)) {
    if (!closes) {
      if (depth === 0) parts.push(text.slice(kept, from))
      depth++
    } else if (depth === 0) {
      // The opening tag was part of the prompt.
      parts.length = 0
    } else {
      depth--
    }
    kept = to
  }
  return depth > 0 ? parts.join("") : parts.join("") + text.slice(kept)
}

/** A text without an element or a fence around all of it. */
const unwrapped = (text: string): string => {
  const inner = /^<summary>([^]*)<\/summary>$/i.exec(text)?.[1]?.trim() ?? text
  return inner.startsWith("```") && inner.endsWith("```") && /^```(?:markdown|md|text)?\n/.test(inner)
    ? inner.slice(inner.indexOf("\n") + 1, -3).trim()
    : inner
}

/** What a model says to its reader: without its reasoning, and without what it wrapped the text in. */
export const said = (text: string): string => {
  const channel = text.lastIndexOf(finalChannel)
  const shown = channel < 0 ? text : text.slice(channel + finalChannel.length).replaceAll(/<\|(?:end|return)\|>/g, "")
  return unwrapped(withoutThinking(shown).trim())
}

/** What is read of a reply to tell whether it is a summary, in characters. */
const readLength = 20_000

const linesOf = (text: string): ReadonlyArray<string> =>
  text.slice(0, readLength).split("\n").map((line) => line.trim())

/** The words of a heading, in Markdown or in bold; `undefined` for any other line. */
const headingOf = (line: string): string | undefined => {
  const isHeading = /^#{1,6}\s/.test(line) || /^\*\*[^*]{1,80}\*\*:?$/.test(line) || /^[\w ,&-]{3,40}:$/.test(line)
  return isHeading ? line.replaceAll(/[#*:]|^[\s\d.)]{1,9}/g, "").trim().toLowerCase() : undefined
}

/** The headings of a text, in lower case. */
export const headingsOf = (text: string): ReadonlyArray<string> =>
  linesOf(text).flatMap((line) => headingOf(line) ?? [])

const emptyWords: ReadonlySet<string> = new Set(["none", "n/a", "nothing", "not applicable"])

/** What is said under the headings, line by line; the words for an empty section are none. */
const contentOf = (text: string): ReadonlyArray<string> =>
  linesOf(text).filter((line) => headingOf(line) === undefined && /[\p{L}\p{N}]/u.test(line))
    .map((line) => line.replace(/^[-*•>\s]{1,9}/, ""))
    .filter((line) => !emptyWords.has(line.replaceAll(/[().]/g, "").trim().toLowerCase()))

/** Whether a reply says nothing: it is empty, or has headings alone. */
export const saysNothing = (text: string): boolean =>
  text.length <= readLength && contentOf(text).length === 0 || text.trim() === ""

/** How an error begins that a framework handed on as if it were the answer. */
const errorStart =
  /^[\s"'[({<]{0,9}((\w{1,60}\.){0,9}[A-Z]\w{0,60}(Error|Exception)\b|errors?\b|exception\b|traceback\b|rate.?limit|too many requests|(http |status )?[45]\d\d\b)/i

/** A short text that begins like an error and has no heading. */
export const isErrorText = (text: string): boolean => text.length < 500 && errorStart.test(text) && !/^#/m.test(text)

/** How a model begins that declines. */
const refusal =
  /^(sorry\b|i['’]m (very |so |really )?(sorry|afraid|unable|not able)|i am (very |so |really )?(sorry|afraid|unable|not able)|(unfortunately|apologies|my apologies|i apologi[sz]e)\b|i (can['’]?t|cannot|can not|won['’]t|will not|must decline|have to decline)\b|as an ai\b|it seems (that )?(i|there)\b|(es tut mir leid|je suis désolé|lo siento|mi dispiace|desculpe|извините|抱歉|对不起|申し訳))/iu

/** What is short enough to be an answer to the request itself, in characters of content. */
const answerLength = 500

/** A summary has a token at least for so many tokens of its span. */
const spanPerToken = 10_000

const charsPerToken = 4

/**
 * Why a reply is no summary, in a few words; `undefined` for one. `headings` are those that were asked for, in lower
 * case, none where the summariser writes in a form of its own; `tokens` is what the span costs.
 */
export const faultOf = (
  text: string,
  asked: { readonly headings: ReadonlyArray<string>; readonly tokens: number }
): string | undefined => {
  const content = contentOf(text)
  const length = content.reduce((sum, line) => sum + line.length, 0)
  const first = content[0] ?? ""
  if (length < answerLength && refusal.test(first)) return `it declines: ${first.slice(0, 120)}`
  const found = headingsOf(text)
  const isAsked = (heading: string) => asked.headings.some((each) => heading.startsWith(each) || heading.endsWith(each))
  if (asked.headings.length > 0 && !found.some(isAsked)) {
    return `it has none of the sections that were asked for, and begins: ${first.slice(0, 120)}`
  }
  if (found.length === 0 && length < answerLength && content.at(-1)?.endsWith("?") === true) {
    return `it asks a question: ${content.at(-1)!.slice(-120)}`
  }
  return (text.length / charsPerToken) * spanPerToken < asked.tokens
    ? `${text.length} characters are too few for a span of ${asked.tokens} tokens`
    : undefined
}
