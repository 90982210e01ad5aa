/**
 * What a message costs, in tokens, before anybody was billed for it.
 *
 * Prices add up: the price of a list is the sum of the prices of its messages, exactly. The ladder subtracts and adds
 * prices and never guesses what a change saves.
 *
 * **Gotchas**
 *
 * Images, files, audio and documents are never priced by the length of their payload: two screenshots priced as prose
 * once cost a session 663 of its 686 messages.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import * as Json from "./text/json.ts"
import { reasonOf } from "./text/reason.ts"
import { blocksOf, isMedia } from "./text/text.ts"
import { dimensions } from "./wire/imageSize.ts"
import * as Opaque from "./wire/opaque.ts"

/**
 * Prices messages.
 *
 * **Details**
 *
 * - `price`: of one message, in whole tokens, 0 or more; pure, and never throws.
 * - `isPartial`: whether the price leaves something out that could not be measured, such as an image of unknown size.
 * - `read`: the same price, and why the estimator could not read the message, where that is so: then it is priced by its
 *   characters. Absent where that cannot happen. A session publishes `EstimatorFailed` for the first fault it meets.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  readonly price: (message: Prompt.Message) => number
  readonly isPartial: (message: Prompt.Message) => boolean
  readonly read?: (message: Prompt.Message) => Priced
}

/**
 * A price in tokens, and why it is one by characters; `undefined` where it is the estimator's own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Priced {
  readonly price: number
  readonly fault: string | undefined
}

/**
 * What one part costs so far: characters at four a token, characters at one a token, and whole tokens. `read` adds a text
 * in the way of the estimator.
 */
interface Measure {
  readonly read: (measure: Measure, text: string) => void
  narrow: number
  wide: number
  flat: number
  partial: boolean
  fault: string | undefined
}

const perMessage = 4
const perPart = 4

/** Everything up to U+07FF. What is left of a text without it is found by the engine, not unit by unit. */
const narrowRuns = /[^\u0800-\uffff]+/g

/** Beyond U+07FF one character of text is about one token. */
const readCharacters = (measure: Measure, text: string): void => {
  const wide = text.replace(narrowRuns, "")
  measure.narrow += text.length - wide.length
  for (let i = 0; i < wide.length; i++) {
    const unit = wide.charCodeAt(i)
    // The second half of a pair is the same character.
    if (unit < 0xdc00 || unit > 0xdfff) measure.wide++
  }
}

const addText = (measure: Measure, text: string): void => measure.read(measure, text)

const tokens = (measure: Measure): number => Math.ceil(measure.narrow / 4 + measure.wide) + measure.flat

/** Anthropic: width × height / 750, at most about 1,600 tokens, since larger images are scaled down. */
const imageCap = 1_600
const pixelsPerToken = 750
/** A PDF of unknown length, and the share of each page of it. */
const pdfFlat = 8_000

const addImage = (measure: Measure, data: unknown): void => {
  const size = dimensions(data)
  if (size === undefined) {
    measure.flat += imageCap
    measure.partial = true
  } else {
    measure.flat += Math.min(imageCap, Math.ceil((size.width * size.height) / pixelsPerToken))
  }
}

const addMedia = (measure: Measure, mediaType: string, data: unknown): void => {
  if (mediaType.startsWith("image/")) return addImage(measure, data)
  measure.partial = true
  measure.flat += mediaType === "application/pdf" ? pdfFlat : imageCap
}

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The payload of a media block, wherever its provider puts it, and its media type where the block says it. */
const payloadOf = (
  block: { readonly [key: string]: unknown }
): { readonly data: unknown; readonly mediaType: string } => {
  const source = isObject(block.source) ? block.source : block
  const url = isObject(block.image_url) ? block.image_url.url : block.image_url
  const data = source.data ?? block.data ?? url ?? source.url
  const named = source.mediaType ?? source.media_type ?? block.mimeType
  const type = String(block.type)
  return { data, mediaType: typeof named === "string" ? named : type.includes("image") ? "image/*" : type }
}

/** Base64 of more than a few lines; shorter strings are priced as the text they may be. */
const opaqueLength = 1_024
const isOpaque = (text: string): boolean =>
  text.length > opaqueLength && /^(?:data:[^,]{0,128};base64,)?[A-Za-z0-9+/_=-]+$/.test(text)

/** The JSON of a value with opaque payloads left out, each of them priced flat. */
const jsonOf = (measure: Measure, value: unknown): string => {
  const json = Json.textOf(value)
  // A value this short holds no opaque payload, and a replacer makes the writer ten times slower.
  if (json.length <= opaqueLength) return json
  let payloads = 0
  const bare = (_: string, inner: unknown): unknown => {
    if (typeof inner !== "string" || !isOpaque(inner)) return inner
    payloads++
    return ""
  }
  try {
    const text = JSON.stringify(value, bare)
    measure.flat += payloads * imageCap
    measure.partial ||= payloads > 0
    return text
  } catch {
    // With a replacer the engine writes half as deep as without: such a value is no session's, and costs its whole text.
    return json
  }
}

const addBlocks = (measure: Measure, blocks: ReadonlyArray<unknown>): void => {
  for (const block of blocks) {
    if (isObject(block) && typeof block.type === "string" && isMedia(block)) {
      const { data, mediaType } = payloadOf(block)
      addMedia(measure, mediaType, data)
    } else {
      addText(measure, jsonOf(measure, block))
    }
  }
}

const newMeasure = (read: Measure["read"]): Measure => ({
  read,
  narrow: 0,
  wide: 0,
  flat: 0,
  partial: false,
  fault: undefined
})

const addResult = (measure: Measure, result: unknown): void => {
  if (typeof result === "string") return addText(measure, JSON.stringify(result))
  const blocks = blocksOf(result)
  if (blocks !== undefined) return addBlocks(measure, blocks)
  addText(measure, jsonOf(measure, result))
}

/** Adds the larger of what a provider may send for a result: its JSON, or what its tool says the model reads. */
const addToolResult = (measure: Measure, part: Prompt.ToolResultPart): void => {
  addResult(measure, part.result)
  if (part.modelOutput === undefined) return
  const output = newMeasure(measure.read)
  for (const each of part.modelOutput) {
    if (each.type === "text") addText(output, each.text)
    else addMedia(output, each.mediaType, each.data)
  }
  if (tokens(output) > tokens(measure)) Object.assign(measure, output)
}

const addPart = (measure: Measure, part: Prompt.Part): void => {
  switch (part.type) {
    case "text": {
      // What `Prompt` cannot hold is priced like a structured result, whatever stands for it.
      const item = Opaque.itemOf(part)
      return addText(measure, item === undefined ? part.text : jsonOf(measure, item))
    }
    case "reasoning":
      return addText(measure, part.text)
    case "file":
      return addMedia(measure, part.mediaType, part.data)
    case "tool-call":
      addText(measure, part.name)
      return addText(measure, typeof part.params === "string" ? part.params : jsonOf(measure, part.params))
    case "tool-result":
      return addToolResult(measure, part)
    case "tool-approval-request":
    case "tool-approval-response":
      break
  }
}

const structured = (read: Measure["read"]) => {
  const measureOf = (part: Prompt.Part): Measure => {
    const measure = newMeasure(read)
    addPart(measure, part)
    return measure
  }
  const priced = (message: Prompt.Message): Priced => {
    if (message.role === "system") {
      const measure = newMeasure(read)
      addText(measure, message.content)
      return { price: perMessage + perPart + tokens(measure), fault: measure.fault }
    }
    let price = perMessage
    let fault: string | undefined
    for (const part of message.content) {
      const measure = measureOf(part)
      price += perPart + tokens(measure)
      fault ??= measure.fault
    }
    return { price, fault }
  }
  return {
    price: (message: Prompt.Message) => priced(message).price,
    isPartial: (message: Prompt.Message) =>
      message.role !== "system" && message.content.some((part) => measureOf(part).partial),
    read: priced
  }
}

/**
 * Four characters a token, four tokens a message and four a part, rounded up part by part; characters above U+07FF (CJK,
 * emoji) at one token each. Tool results are priced as their JSON or their model output, the larger of the two.
 *
 * Images cost width × height / 750 tokens where their header says how large they are, at most 1,600; else 1,600 flat.
 * Other media cost 1,600, a PDF 8,000, whatever their size.
 *
 * @category constructors
 * @since 0.1.0
 */
export const chars: Service = Struct.omit(structured(readCharacters), ["read"])

/** A number of tokens as a tokenizer or a function says it, or why it is none. */
const countOf = (count: () => unknown): Result.Result<number, string> =>
  Result.flatMap(
    Result.try({ try: count, catch: reasonOf }),
    (value) =>
      typeof value === "number" && Number.isFinite(value) && value >= 0
        ? Result.succeed(Math.ceil(value))
        : Result.fail(`${String(value)} is no number of tokens`)
  )

/** A text in the way of a tokenizer; by its characters where that one throws or counts nothing that is a number. */
const readTokens = (encode: (text: string) => ArrayLike<number> | number): Measure["read"] => (measure, text) => {
  const count = countOf(() => {
    const encoded = encode(text)
    return typeof encoded === "number" ? encoded : encoded.length
  })
  if (Result.isSuccess(count)) {
    measure.flat += count.success
  } else {
    measure.fault ??= count.failure
    readCharacters(measure, text)
  }
}

/**
 * The structure of {@link chars} around a tokenizer: `encode` returns the tokens of a text, or how many they are. A text that
 * it throws on, as some do on `<|endoftext|>`, costs what {@link chars} says.
 *
 * @category constructors
 * @since 0.1.0
 */
export const tokenizer = (encode: (text: string) => ArrayLike<number> | number): Service =>
  structured(readTokens(encode))

/**
 * Makes an estimator of a function that prices a message. One that it throws on, or whose price is no number of 0 or more,
 * costs what {@link chars} says.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (price: (message: Prompt.Message) => number): Service => {
  const read = (message: Prompt.Message): Priced =>
    Result.match(countOf(() => price(message)), {
      onSuccess: (price) => ({ price, fault: undefined }),
      onFailure: (fault) => ({ price: chars.price(message), fault })
    })
  return { price: (message) => read(message).price, isPartial: chars.isPartial, read }
}

/**
 * The estimator of a session: {@link chars} unless another is provided, so that nothing needs a layer for it.
 *
 * @category services
 * @since 0.1.0
 */
export const Estimator = Context.Reference<Service>("effect-compaction/Estimator", { defaultValue: () => chars })

/**
 * Provides an estimator.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (service: Service): Layer.Layer<never> => Layer.succeed(Estimator, service)
