/** Finds out which format a file is of. */
import * as Amplifier from "../Amplifier.ts"
import * as AmplifierEvents from "../AmplifierEvents.ts"
import * as AnthropicMessages from "../AnthropicMessages.ts"
import * as ClaudeCode from "../ClaudeCode.ts"
import * as Cline from "../Cline.ts"
import * as Codex from "../Codex.ts"
import * as DeepSeekHarness from "../DeepSeekHarness.ts"
import * as Gemini from "../Gemini.ts"
import * as GeminiCli from "../GeminiCli.ts"
import * as MiniSweAgent from "../MiniSweAgent.ts"
import * as OpenAiChat from "../OpenAiChat.ts"
import * as OpenAiResponses from "../OpenAiResponses.ts"
import * as OpenCode from "../OpenCode.ts"
import * as OpenHands from "../OpenHands.ts"
import * as Pi from "../Pi.ts"
import * as PromptJson from "../PromptJson.ts"
import type * as Reader from "../Reader.ts"
import * as SweAgent from "../SweAgent.ts"
import * as TauBench from "../TauBench.ts"
import * as VercelAi from "../VercelAi.ts"
import * as Json from "./json.ts"

/** All readers, in the order in which they are asked whether a file is theirs. */
export const readers: ReadonlyArray<Reader.Reader> = [
  Codex.reader,
  ClaudeCode.reader,
  DeepSeekHarness.reader,
  Pi.reader,
  AmplifierEvents.reader,
  OpenHands.reader,
  GeminiCli.reader,
  OpenCode.reader,
  SweAgent.reader,
  TauBench.reader,
  MiniSweAgent.reader,
  Cline.reader,
  VercelAi.reader,
  Gemini.reader,
  Amplifier.reader,
  PromptJson.reader,
  OpenAiResponses.reader,
  AnthropicMessages.reader,
  OpenAiChat.reader
]

/** A reader, and why a file is its own. */
export interface Detected {
  readonly reader: Reader.Reader
  readonly why: string
}

const claim = (sample: Reader.Sample): Detected | undefined => {
  for (const reader of readers) {
    const why = reader.detect(sample)
    if (why !== undefined) return { reader, why }
  }
  return undefined
}

/** How many records or items of a list a sample has, and the sample with the first of them alone. */
const listed = (
  sample: Reader.Sample
): { readonly length: number; readonly head: (length: number) => Reader.Sample } => {
  const { first, kind } = sample
  if (kind === "lines") return { length: first.length, head: (length) => ({ kind, first: first.slice(0, length) }) }
  const [document] = first
  if (Json.isArray(document)) {
    return { length: document.length, head: (length) => ({ kind, first: [document.slice(0, length)] }) }
  }
  if (Json.isObject(document)) {
    for (const key of ["messages", "input", "content", "contents", "history"]) {
      const items = document[key]
      if (!Json.isArray(items)) continue
      return {
        length: items.length,
        head: (length) => ({ kind, first: [{ ...document, [key]: items.slice(0, length) }] })
      }
    }
  }
  return { length: 0, head: () => sample }
}

/**
 * Finds the reader of a sample, and why it is that one.
 *
 * What no reader takes as a whole belongs to the reader of what comes before the bad record: so that the error is that of
 * the record, which has a place, and not that the format is not known.
 */
export const detect = (sample: Reader.Sample): Detected | undefined => {
  const whole = claim(sample)
  if (whole !== undefined) return whole
  const { head, length } = listed(sample)
  let found: Detected | undefined
  for (let taken = 1; taken < length; taken *= 2) {
    const part = claim(head(taken))
    if (part === undefined && found !== undefined) break
    found = part ?? found
  }
  return found
}
