import * as Prompt from "effect/ai/Prompt"

/** A content block of a tool result, as tools and importers write them. */
export interface Block {
  readonly type: string
  readonly text?: unknown
}

const isBlock = (value: unknown): value is Block =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** The content blocks of a result, or `undefined` when it is text or any other structure. */
export const blocksOf = (result: unknown): ReadonlyArray<Block> | undefined =>
  Array.isArray(result) && result.length > 0 && result.every(isBlock) ? result : undefined

const isText = (block: Block): block is Block & { readonly text: string } =>
  block.type === "text" && typeof block.text === "string"

const textOfBlocks = (blocks: ReadonlyArray<Block>): string => {
  let text = ""
  for (const block of blocks) if (isText(block)) text += block.text
  return text
}

/** The text of a tool result that a cut is made over: what the model reads, else the text of its blocks, else its JSON. */
export const ofResult = (part: Prompt.ToolResultPart): string => {
  if (part.modelOutput !== undefined) return textOfBlocks(part.modelOutput)
  if (typeof part.result === "string") return part.result
  const blocks = blocksOf(part.result)
  if (blocks !== undefined) return textOfBlocks(blocks)
  return JSON.stringify(part.result) ?? ""
}

/** The text of a message: its text parts, or its results, put together. Calls and reasoning are not text. */
export const ofMessage = (message: Prompt.Message): string => {
  if (message.role === "system") return message.content
  let text = ""
  for (const part of message.content) {
    if (part.type === "text") text += part.text
    else if (part.type === "tool-result" && message.role === "tool") text += ofResult(part)
  }
  return text
}

/**
 * The same options without a reference to an item that the provider stored: with it the provider would send the stored
 * original instead of the edited text.
 */
const withoutItemReference = (options: Prompt.ProviderOptions): Prompt.ProviderOptions => {
  const openai = options.openai
  if (typeof openai !== "object" || openai === null || Array.isArray(openai) || !("itemId" in openai)) return options
  const { itemId: _, ...rest } = openai
  return { ...options, openai: rest }
}

/** The blocks with the first text block holding `text`, the other text blocks gone, and the rest as it was. */
const withText = <A extends Block>(blocks: ReadonlyArray<A>, text: (first: A | undefined) => A): ReadonlyArray<A> => {
  const out: Array<A> = []
  let placed = false
  for (const block of blocks) {
    if (!isText(block)) {
      out.push(block)
    } else if (!placed) {
      out.push(text(block))
      placed = true
    }
  }
  if (!placed) out.unshift(text(undefined))
  return out
}

const hasOther = (blocks: ReadonlyArray<Block>): boolean => blocks.some((block) => !isText(block))

/** The result with `text` in place of its text. Blocks that are not text keep their order, object by object. */
export const replaceResult = (part: Prompt.ToolResultPart, text: string): Prompt.ToolResultPart => {
  const blocks = blocksOf(part.result)
  const output = part.modelOutput
  return Prompt.makePart("tool-result", {
    id: part.id,
    name: part.name,
    isFailure: part.isFailure,
    providerExecuted: part.providerExecuted,
    result: blocks !== undefined && hasOther(blocks)
      ? withText<Block>(blocks, (first) => ({ ...first, type: "text", text }))
      : text,
    ...(output !== undefined && hasOther(output)
      ? {
        modelOutput: withText<Prompt.ToolModelOutputPart>(
          output,
          (first) => Prompt.makePart("text", { text, options: first?.options })
        )
      }
      : undefined),
    options: withoutItemReference(part.options)
  })
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

/** The cut at `at`, moved one unit earlier where it would split a surrogate pair. */
const safeCut = (text: string, at: number): number =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at)) ? at - 1 : at

const thousands = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ",")

/** What a truncated text keeps. */
export interface Cut {
  readonly k: number
  readonly shape: "head" | "headTail"
  readonly locator?: string
}

/** The text of a truncated result: a notice with the size of the whole, then what is kept of it. */
export const truncated = (text: string, cut: Cut): string => {
  const tokens = thousands(Math.floor(text.length / 4))
  const notice = cut.locator === undefined
    ? `[truncated: ~${tokens} tokens] `
    : `[truncated: ~${tokens} tokens - read ${cut.locator} for the full result] `
  if (cut.shape === "head") return `${notice}${text.slice(0, safeCut(text, cut.k))}...`
  const first = Math.floor(cut.k / 2)
  const last = cut.k - first
  const head = text.slice(0, safeCut(text, first))
  const tail = text.slice(safeCut(text, text.length - last))
  return `${notice}${head}\n...[${thousands(text.length - cut.k)} chars omitted]...\n${tail}`
}

/** The text of a shortened human message. */
export const stubbed = (text: string, k: number): string =>
  `[earlier user message, shortened: ${text.slice(0, safeCut(text, k)).replaceAll("\n", " ").trim()}...]`
