import * as Prompt from "effect/ai/Prompt"
import * as Opaque from "../wire/opaque.ts"
import * as Json from "./json.ts"
import { capMarker, thousands } from "./marker.ts"

/** A content block of a tool result, as tools and importers write them. */
export interface Block {
  readonly type: string
  readonly text?: unknown
}

const isBlock = (value: unknown): value is Block =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** The types of content blocks whose payload is no text, as providers name them. */
const mediaTypes: ReadonlySet<string> = new Set([
  "image",
  "image_url",
  "input_image",
  "audio",
  "input_audio",
  "video",
  "document",
  "file",
  "input_file"
])

/** Whether a content block holds an image, a file, or other media. */
export const isMedia = (block: { readonly type?: unknown }): boolean =>
  typeof block.type === "string" && mediaTypes.has(block.type)

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
  return Json.textOf(part.result)
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
export const withoutItemReference = (options: Prompt.ProviderOptions): Prompt.ProviderOptions => {
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

/** The result holding something else, and nothing that its tool said the model reads. */
const withOther = (part: Prompt.ToolResultPart, result: unknown): Prompt.ToolResultPart => {
  const options = withoutItemReference(part.options)
  // The quickest copy of a part there is: a pass makes thousands.
  if (part.modelOutput === undefined) return Object.assign({}, part, { result, options })
  const { modelOutput: _, ...rest } = part
  return { ...rest, result, options }
}

/** The result with `text` in place of its text. Blocks that are not text keep their order, object by object. */
export const replaceResult = (part: Prompt.ToolResultPart, text: string): Prompt.ToolResultPart => {
  const blocks = blocksOf(part.result)
  const output = part.modelOutput
  const other = withOther(
    part,
    blocks !== undefined && hasOther(blocks)
      ? withText<Block>(blocks, (first) => ({ ...first, type: "text", text }))
      : text
  )
  if (output === undefined || !hasOther(output)) return other
  return {
    ...other,
    modelOutput: withText<Prompt.ToolModelOutputPart>(
      output,
      (first) => Prompt.makePart("text", { text, options: first?.options })
    )
  }
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

/** The cut at `at`, moved one unit earlier where it would split a surrogate pair. */
export const safeCut = (text: string, at: number): number =>
  at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at)) ? at - 1 : at

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

/** A message of a person with one text. */
export const textMessage = (text: string): Prompt.UserMessage =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text })] })

/** The text of a human message of which only these sentences are left, word for word. */
export const excerpt = (sentences: ReadonlyArray<string>): string =>
  `[earlier user message, shortened to what it asks for good:\n${sentences.join("\n")}]`

/** The text of a pasted human message of which both ends are left, so many code units each. */
export const excerptOfEnds = (text: string, chars: number): string => {
  const head = text.slice(0, safeCut(text, chars))
  const tail = text.slice(safeCut(text, text.length - chars))
  return `${head}\n[... ${
    thousands(text.length - head.length - tail.length)
  } characters of this message left out ...]\n${tail}`
}

/** The human message with `text` in place of its text; what is no text stays behind it. */
export const excerptMessage = (message: Prompt.Message, text: string): Prompt.Message => {
  if (message.role !== "user") return message
  return Prompt.makeMessage("user", {
    content: [
      Prompt.makePart("text", { text }),
      ...message.content.filter((part) => part.type !== "text" || Opaque.itemOf(part) !== undefined)
    ],
    options: message.options
  })
}

/** The human message with its text shortened to the first `k` code units; what is no text stays behind the stub. */
export const stubMessage = (message: Prompt.Message, k: number): Prompt.Message =>
  excerptMessage(message, stubbed(ofMessage(message), k))

/** The result with nothing but `text`, blocks that are not text gone too. */
export const clearResult = (part: Prompt.ToolResultPart, text: string): Prompt.ToolResultPart => withOther(part, text)

/**
 * The assistant's message without its reasoning, or with the inputs of its calls emptied. What followed the reasoning as
 * an item of the provider's loses its reference too: such an item is refused without its reasoning.
 */
export const trimMessage = (
  message: Prompt.Message,
  trim: { readonly reasoning: boolean; readonly inputs: boolean }
): Prompt.Message => {
  if (message.role !== "assistant") return message
  const content: Array<Prompt.AssistantMessagePart> = []
  let loses = false
  for (const part of message.content) {
    if (part.type === "reasoning" && trim.reasoning) {
      loses = true
      continue
    }
    const empty = part.type === "tool-call" && trim.inputs
    const options = empty || loses ? withoutItemReference(part.options) : part.options
    // A copy of the part, of its own type, with other options; the union of the parts loses that.
    const kept = options === part.options ? part : { ...part, options } as Prompt.AssistantMessagePart
    content.push(empty && kept.type === "tool-call" ? { ...kept, params: {} } : kept)
  }
  return Prompt.makeMessage("assistant", { content, options: message.options })
}

/** Stands where the middle of a pruned result was; 47 code points. */
export const pruneMarker = "\n\n[... middle of this tool result pruned ...]\n\n"

/** How many code units the first `count` code points of a text take, starting at `from`; a lone surrogate is one. */
const unitsOf = (text: string, from: number, count: number): number => {
  let at = from
  for (let n = 0; n < count && at < text.length; n++) {
    at += isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1)) ? 2 : 1
  }
  return at
}

/** The length of a text in code points. */
export const codePoints = (text: string): number => {
  let count = 0
  for (let at = 0; at < text.length; count++) {
    at += isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1)) ? 2 : 1
  }
  return count
}

/** The code points of the text blocks. */
export const sizeOfBlocks = (blocks: ReadonlyArray<Block>): number => {
  let size = 0
  for (const block of blocks) if (isText(block)) size += codePoints(block.text)
  return size
}

/** The code points of the text of a result, block by block: halves of a pair are not joined across blocks. */
export const sizeOfResult = (part: Prompt.ToolResultPart): number => {
  const blocks = part.modelOutput ?? blocksOf(part.result)
  return blocks === undefined ? codePoints(ofResult(part)) : sizeOfBlocks(blocks)
}

/** How many code points of a text are kept. */
export interface Ends {
  readonly head: number
  readonly tail: number
}

/**
 * The blocks with the middle of their text pruned: the first `head` and the last `tail` code points over all text blocks
 * stay, the marker stands where the first of them loses something, and text blocks that are left empty go. Other blocks
 * keep their place.
 */
export const pruneBlocks = <A extends Block>(blocks: ReadonlyArray<A>, ends: Ends): ReadonlyArray<A> => {
  const sizes = blocks.map((block) => isText(block) ? codePoints(block.text) : 0)
  const from = ends.head
  const to = sizes.reduce((sum, size) => sum + size, 0) - ends.tail
  const out: Array<A> = []
  let start = 0
  let marked = false
  for (let n = 0; n < blocks.length; n++) {
    const block = blocks[n]!
    if (!isText(block)) {
      out.push(block)
      continue
    }
    const end = start + sizes[n]!
    const before = unitsOf(block.text, 0, Math.max(0, from - start))
    const after = end <= to ? block.text.length : unitsOf(block.text, 0, Math.max(0, to - start))
    const loses = start < to && end > from
    const marker = loses && !marked ? pruneMarker : ""
    marked ||= loses
    const text = loses ? block.text.slice(0, before) + marker + block.text.slice(after) : block.text
    if (text !== "") out.push(text === block.text ? block : { ...block, text })
    start = end
  }
  return out
}

/** The result with `change` made to its text blocks; one that is text or any other structure counts as one block. */
const overBlocks = (
  part: Prompt.ToolResultPart,
  change: <A extends Block>(blocks: ReadonlyArray<A>) => ReadonlyArray<A>
): Prompt.ToolResultPart => {
  const blocks = blocksOf(part.result)
  const result = blocks === undefined
    ? textOfBlocks(
      change([{ type: "text", text: typeof part.result === "string" ? part.result : Json.textOf(part.result) }])
    )
    : change(blocks)
  return Prompt.makePart("tool-result", {
    id: part.id,
    name: part.name,
    isFailure: part.isFailure,
    providerExecuted: part.providerExecuted,
    result,
    ...(part.modelOutput === undefined ? undefined : { modelOutput: change(part.modelOutput) }),
    options: withoutItemReference(part.options)
  })
}

/** The result with the middle of its text pruned. */
export const pruneResult = (part: Prompt.ToolResultPart, ends: Ends): Prompt.ToolResultPart =>
  overBlocks(part, (blocks) => pruneBlocks(blocks, ends))

/** The bytes of one code unit, or of the pair that begins with it, in UTF-8; a lone surrogate is replaced by three. */
const bytesAt = (text: string, at: number): number => {
  const unit = text.charCodeAt(at)
  if (unit < 0x80) return 1
  if (unit < 0x800) return 2
  return isHigh(unit) && isLow(text.charCodeAt(at + 1)) ? 4 : 3
}

/** The length of a text in UTF-8 bytes. */
export const bytesOf = (text: string): number => {
  let bytes = 0
  for (let at = 0; at < text.length; at++) {
    const size = bytesAt(text, at)
    bytes += size
    if (size === 4) at++
  }
  return bytes
}

/** The longest start of a text that takes at most `bytes` bytes. */
const prefixOf = (text: string, bytes: number): string => {
  let left = bytes
  let at = 0
  while (at < text.length) {
    const size = bytesAt(text, at)
    if (size > left) break
    left -= size
    at += size === 4 ? 2 : 1
  }
  return text.slice(0, at)
}

/** The bytes of the text of a result. */
export const resultBytes = (part: Prompt.ToolResultPart): number => bytesOf(ofResult(part))

/** What a result is cut to when it comes in: so many bytes, and the place of the full text. */
export interface Cap {
  readonly bytes: number
  readonly locator?: string
}

const capBlocks = <A extends Block>(blocks: ReadonlyArray<A>, { bytes, locator }: Cap): ReadonlyArray<A> => {
  const total = bytesOf(textOfBlocks(blocks))
  if (total <= bytes) return blocks
  const located = capMarker(total, locator)
  // A cap that is too small for a long place goes without it.
  const marker = bytesOf(located) <= bytes ? located : capMarker(total)
  let left = bytes - bytesOf(marker)
  let isCut = false
  const out: Array<A> = []
  for (const block of blocks) {
    if (!isText(block)) {
      out.push(block)
    } else if (!isCut) {
      const size = bytesOf(block.text)
      isCut = size > left
      out.push(isCut ? { ...block, text: prefixOf(block.text, left) + marker } : block)
      left -= size
    }
  }
  return out
}

/** The result cut to so many bytes of text, the marker included; text blocks behind the cut are dropped. */
export const capResult = (part: Prompt.ToolResultPart, cap: Cap): Prompt.ToolResultPart =>
  overBlocks(part, (blocks) => capBlocks(blocks, cap))

const mediaWord = (mediaType: string): string => `[left out: ${mediaType}]`

/** What stands for a block that holds media, if it does. */
const wordOf = (block: Block): string | undefined => {
  const mediaType = "mediaType" in block && typeof block.mediaType === "string" ? block.mediaType : block.type
  return isMedia(block) ? mediaWord(mediaType) : undefined
}

/** The message with words in place of its images, files and other media. */
export const withoutMedia = (message: Prompt.Message): Prompt.Message => {
  if (message.role === "user") {
    return Prompt.makeMessage("user", {
      content: message.content.map((part) =>
        part.type === "file" ? Prompt.makePart("text", { text: mediaWord(part.mediaType) }) : part
      ),
      options: message.options
    })
  }
  if (message.role === "assistant") {
    return Prompt.makeMessage("assistant", {
      content: message.content.map((part) =>
        part.type === "file" ? Prompt.makePart("text", { text: mediaWord(part.mediaType) }) : part
      ),
      options: message.options
    })
  }
  if (message.role !== "tool") return message
  const words = (blocks: ReadonlyArray<Block>): ReadonlyArray<Block> =>
    blocks.map((block) => {
      const text = wordOf(block)
      return text === undefined ? block : { type: "text", text }
    })
  return Prompt.makeMessage("tool", {
    content: message.content.map((part) => {
      if (part.type !== "tool-result") return part
      const blocks = blocksOf(part.result)
      const output = part.modelOutput?.map((each) =>
        each.type === "file" ? Prompt.makePart("text", { text: mediaWord(each.mediaType) }) : each
      )
      return Prompt.makePart("tool-result", {
        ...part,
        result: blocks === undefined ? part.result : words(blocks),
        ...(output === undefined ? undefined : { modelOutput: output })
      })
    }),
    options: message.options
  })
}
