/**
 * What a recorded session holds, in numbers.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import type * as Estimator from "../Estimator.ts"
import type * as Session from "../format/Session.ts"
import * as Text from "../text/text.ts"
import * as Transcript from "../Transcript.ts"
import * as Wire from "../Wire.ts"
import * as Unheld from "./Unheld.ts"

/** Tool results: how many, and how large. Characters are UTF-16 code units of their text. */
interface Size {
  readonly count: number
  readonly characters: number
  readonly tokens: number
}

/**
 * The numbers of one session, as `--json` prints them.
 *
 * **Details**
 *
 * - `messages`, `roles`: of the session; `human` counts the user messages that a person wrote. `entries`: of the
 *   transcript, where each result of a tool message is one.
 * - `characters`, `tokens`: of everything; characters are those of texts, reasoning, call arguments and results, tokens
 *   are estimated.
 * - `results`: the tool results, their share of everything, the tools by tokens, the largest results first.
 * - `reasoning`: how much of it there is, and how much is signed or encrypted.
 * - `usage`: sums of what was billed, in tokens; a bucket is `null` where no response says it.
 * - `violations`: by rule, of the session as it was recorded. A request has none: it is repaired.
 * - `unheld`: by format, everything that the format has no place for.
 */
export interface Inspection {
  readonly file: string
  readonly format: Session.FormatName
  readonly why: string
  readonly model: string | null
  readonly messages: number
  readonly entries: number
  readonly roles: { readonly [R in Prompt.Message["role"] | "human"]: number }
  readonly characters: number
  readonly tokens: number
  readonly calls: number
  readonly results: Size & {
    readonly failures: number
    readonly ofCharacters: number
    readonly ofTokens: number
    readonly byTool: ReadonlyArray<Size & { readonly tool: string }>
    readonly largest: ReadonlyArray<
      { readonly seq: number; readonly tool: string; readonly characters: number; readonly tokens: number }
    >
  }
  readonly images: number
  readonly reasoning: { readonly parts: number; readonly signed: number; readonly encrypted: number }
  readonly usage:
    | { readonly responses: number } & { readonly [B in keyof Required<Session.Usage>]: number | null }
    | null
  readonly findings: ReadonlyArray<
    { readonly kind: string; readonly count: number; readonly line: number; readonly detail: string }
  >
  readonly violations: { readonly [provider: string]: { readonly [rule: string]: number } }
  readonly unheld: Unheld.ByFormat
}

const providers = [Wire.anthropic, Wire.openaiChat, Wire.openaiResponses, Wire.gemini]

const largestCount = 5

const partCharacters = (part: Prompt.Part): number => {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text.length
    case "tool-call":
      return typeof part.params === "string" ? part.params.length : (JSON.stringify(part.params) ?? "").length
    case "tool-result":
      return Text.ofResult(part).length
    case "file":
    case "tool-approval-request":
    case "tool-approval-response":
      return 0
  }
}

const isImage = (block: Text.Block): boolean => block.type === "image"

const imagesIn = (part: Prompt.Part): number => {
  if (part.type === "file") return part.mediaType.startsWith("image/") ? 1 : 0
  return part.type === "tool-result" ? (Text.blocksOf(part.result) ?? []).filter(isImage).length : 0
}

const has = (options: unknown, key: string): boolean =>
  typeof options === "object" && options !== null && key in options
  // The check above makes it an object; what it holds stays unknown.
  && typeof (options as { readonly [key: string]: unknown })[key] === "string"

const isSigned = ({ options: { anthropic } }: Prompt.ReasoningPart): boolean =>
  typeof anthropic === "object" && anthropic !== null && "info" in anthropic && has(anthropic.info, "signature")

const isEncrypted = ({ options: { anthropic, openai } }: Prompt.ReasoningPart): boolean =>
  has(openai, "encryptedContent")
  || (typeof anthropic === "object" && anthropic !== null && "info" in anthropic && has(anthropic.info, "redactedData"))

const usageOf = ({ usage }: Session.Session): Inspection["usage"] => {
  if (usage.size === 0) return null
  const sums: { -readonly [B in keyof Required<Session.Usage>]: number | null } = {
    fresh: null,
    cacheRead: null,
    cacheWrite: null,
    output: null
  }
  const buckets = ["fresh", "cacheRead", "cacheWrite", "output"] as const
  for (const billed of usage.values()) {
    for (const bucket of buckets) {
      const tokens = billed[bucket]
      if (tokens !== undefined) sums[bucket] = (sums[bucket] ?? 0) + tokens
    }
  }
  return { responses: usage.size, ...sums }
}

const findingsOf = ({ findings }: Session.Session): Inspection["findings"] => {
  const kinds = new Map<string, { kind: string; count: number; line: number; detail: string }>()
  for (const { detail, kind, line } of findings) {
    const known = kinds.get(kind)
    if (known === undefined) kinds.set(kind, { kind, count: 1, line, detail })
    else known.count++
  }
  return [...kinds.values()].sort((a, b) => b.count - a.count)
}

const violationsOf = ({ messages }: Session.Session): Inspection["violations"] => {
  const found: { [provider: string]: { [rule: string]: number } } = {}
  for (const rules of providers) {
    const byRule: { [rule: string]: number } = found[rules.name] = {}
    for (const { rule } of Wire.check(messages, rules)) byRule[rule] = (byRule[rule] ?? 0) + 1
  }
  return found
}

/** Takes the numbers of a session, with prices by the estimator. */
export const make = (session: Session.Session, estimator: Estimator.Service): Inspection => {
  const { messages } = session
  const transcript = Transcript.fromPrompt(Prompt.fromMessages(messages), estimator.price)
  const roles = { system: 0, user: 0, human: 0, assistant: 0, tool: 0 }
  for (const { role } of messages) roles[role]++
  const reasoning = { parts: 0, signed: 0, encrypted: 0 }
  const tools = new Map<string, { tool: string; count: number; characters: number; tokens: number }>()
  const results: Array<Inspection["results"]["largest"][number]> = []
  let characters = 0
  let tokens = 0
  let calls = 0
  let images = 0
  let failures = 0
  for (const { human, kind, message, price, seq, tool } of transcript.entries) {
    tokens += price
    if (human) roles.human++
    if (message.role === "system") {
      characters += message.content.length
      continue
    }
    for (const part of message.content) {
      const length = partCharacters(part)
      characters += length
      images += imagesIn(part)
      if (part.type === "tool-call") calls++
      else if (part.type === "reasoning") {
        reasoning.parts++
        if (isSigned(part)) reasoning.signed++
        if (isEncrypted(part)) reasoning.encrypted++
      } else if (part.type === "tool-result" && kind === "result") {
        if (part.isFailure) failures++
        results.push({ seq, tool, characters: length, tokens: price })
        const sum = tools.get(tool) ?? { tool, count: 0, characters: 0, tokens: 0 }
        tools.set(tool, {
          tool,
          count: sum.count + 1,
          characters: sum.characters + length,
          tokens: sum.tokens + price
        })
      }
    }
  }
  const size = { count: results.length, characters: 0, tokens: 0 }
  for (const result of results) {
    size.characters += result.characters
    size.tokens += result.tokens
  }
  return {
    file: session.file,
    format: session.format,
    why: session.why,
    model: session.model ?? null,
    messages: messages.length,
    entries: transcript.entries.length,
    roles,
    characters,
    tokens,
    calls,
    results: {
      ...size,
      failures,
      ofCharacters: characters === 0 ? 0 : size.characters / characters,
      ofTokens: tokens === 0 ? 0 : size.tokens / tokens,
      byTool: [...tools.values()].sort((a, b) => b.tokens - a.tokens),
      largest: results.sort((a, b) => b.tokens - a.tokens || a.seq - b.seq).slice(0, largestCount)
    },
    images,
    reasoning,
    usage: usageOf(session),
    findings: findingsOf(session),
    violations: violationsOf(session),
    unheld: Unheld.of(messages)
  }
}
