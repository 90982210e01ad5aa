/**
 * A provider on loopback. It judges each request body by the provider's rules, refuses what does not fit with the
 * provider's own error body, and bills what its prompt cache reads and writes. What it answers is a script.
 *
 * Sizes are those of a tokenizer of four characters a token, with three tokens for the framing of each block.
 */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Validators from "../wireValidators.ts"
import type { AnthropicBlock, AnthropicRequest, ChatMessage, ChatRequest } from "./adapters.ts"

export type Wire = "anthropic" | "openai"

type Body = AnthropicRequest | ChatRequest

const isChat = (body: Body): body is ChatRequest => !("max_tokens" in body)

/** A stretch of a request as a prompt cache knows it: what it says, and whether a breakpoint stands behind it. */
export interface Block {
  readonly text: string
  readonly tokens: number
  readonly isMarked: boolean
}

const tokensOf = (text: string): number => 3 + Math.ceil(text.length / 4)

const wordsOf = (block: AnthropicBlock): string => {
  switch (block.type) {
    case "text":
      return block.text
    case "thinking":
      return block.thinking
    case "tool_use":
      return `${block.name}${JSON.stringify(block.input)}`
    case "tool_result":
      return block.content
  }
}

const wordsIn = (message: ChatMessage): string =>
  `${message.content ?? ""}${
    (message.tool_calls ?? []).map((call) => `${call.function.name}${call.function.arguments}`).join("")
  }`

/** The blocks of a request, in the order in which a prompt cache compares them: tools, system, messages. */
const blocksOf = (body: Body): ReadonlyArray<Block> => {
  const tools = body.tools.map((tool): Block => {
    const text = JSON.stringify(tool)
    return { text: `tool ${text}`, tokens: tokensOf(text), isMarked: false }
  })
  if (isChat(body)) {
    return [
      ...tools,
      ...body.messages.map((message): Block => ({
        text: JSON.stringify(message),
        tokens: tokensOf(wordsIn(message)),
        isMarked: false
      }))
    ]
  }
  const of = (where: string, { cache_control, ...block }: AnthropicBlock): Block => ({
    text: `${where} ${JSON.stringify(block)}`,
    tokens: tokensOf(wordsOf(block)),
    isMarked: cache_control !== undefined
  })
  return [
    ...tools,
    ...body.system.map((block) => of("system", block)),
    ...body.messages.flatMap((message) => message.content.map((block) => of(message.role, block)))
  ]
}

/** What the API would say about an Anthropic body, but for the window; `thoughts` are the signatures it gave out. */
const judgeAnthropic = (body: AnthropicRequest, thoughts: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  const messages: Array<{ role: "user" | "assistant"; content: Array<AnthropicBlock> }> = []
  for (const { content, role } of body.messages) {
    const last = messages.at(-1)
    if (last?.role === role) last.content.push(...content)
    else messages.push({ role, content: [...content] })
  }
  const refused = [...Validators.anthropic({ system: body.system, messages, lost: 0 })]
  const marks = blocksOf(body).filter((block) => block.isMarked).length
  if (marks > 4) refused.push(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`)
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === "thinking" && thoughts.get(block.signature) !== block.thinking) {
        refused.push("Invalid `signature` in `thinking` block")
      }
    }
  }
  const last = messages.at(-1)
  const before = messages.at(-2)
  // Words of a person after the results begin a new turn, which needs no thoughts of the one before.
  const isInTurn = last?.role === "user" && last.content.some((block) => block.type === "tool_result")
    && last.content.every((block) => block.type === "tool_result" || wordsOf(block).startsWith("<system-reminder"))
  if (thoughts.size > 0 && isInTurn && before?.content[0]?.type !== "thinking") {
    refused.push(`messages.${messages.length - 2}.content.0.type: Expected \`thinking\`, but found something else`)
  }
  return refused
}

const judgeChat = (body: ChatRequest): ReadonlyArray<string> =>
  Validators.chat(body.messages.map(({ content, role, tool_call_id, tool_calls }) => ({
    role,
    content,
    ...(tool_calls === undefined ? undefined : { tool_calls: tool_calls.map((call) => call.id) }),
    ...(tool_call_id === undefined ? undefined : { tool_call_id })
  })))

/** Everything that the API would refuse a body for, but its length. */
const judge = (body: Body, thoughts: ReadonlyMap<string, string> = new Map()): ReadonlyArray<string> =>
  isChat(body) ? judgeChat(body) : judgeAnthropic(body, thoughts)

const minimum = 1_024
const lookBack = 20
const step = 128

/** The prompt cache: the hashes of the prefixes that were kept. */
class Cache {
  private readonly entries = new Set<string>()

  /** What of a request is read, and what is new in the cache, in tokens. */
  send(wire: Wire, blocks: ReadonlyArray<Block>): { readonly read: number; readonly written: number } {
    const hashes: Array<string> = []
    const ends: Array<number> = []
    for (const block of blocks) {
      hashes.push(createHash("sha1").update(hashes.at(-1) ?? "").update(block.text).digest("base64"))
      ends.push((ends.at(-1) ?? 0) + block.tokens)
    }
    return wire === "anthropic" ? this.explicit(blocks, hashes, ends) : this.automatic(hashes, ends)
  }

  private explicit(blocks: ReadonlyArray<Block>, hashes: ReadonlyArray<string>, ends: ReadonlyArray<number>) {
    const points = blocks.flatMap((block, at) => block.isMarked && ends[at]! >= minimum ? [at] : []).reverse()
    const hit = points.flatMap((point) =>
      Array.from({ length: Math.min(lookBack, point + 1) }, (_, back) => point - back)
    ).find((at) => this.entries.has(hashes[at]!))
    const read = hit === undefined ? 0 : ends[hit]!
    for (const point of points) this.entries.add(hashes[point]!)
    return { read, written: Math.max(0, (points[0] === undefined ? 0 : ends[points[0]]!) - read) }
  }

  private automatic(hashes: ReadonlyArray<string>, ends: ReadonlyArray<number>) {
    const hit = hashes.findLastIndex((hash) => this.entries.has(hash))
    const shared = hit < 0 ? 0 : ends[hit]!
    for (const hash of hashes) this.entries.add(hash)
    return { read: shared < minimum ? 0 : Math.floor(shared / step) * step, written: 0 }
  }
}

/** What the script answers: thoughts and calls, or words. */
export interface Reply {
  readonly thinking?: string
  readonly text?: string
  readonly calls?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly input: unknown }>
}

/** One request that was judged. `shared` is how many blocks it has in common with the last one that was answered. */
export interface Seen {
  readonly body: Body
  readonly blocks: ReadonlyArray<Block>
  readonly tokens: number
  readonly isSummary: boolean
  readonly refused: ReadonlyArray<string>
  readonly tooLong: boolean
  readonly read: number
  readonly written: number
}

export interface Options {
  readonly wire: Wire
  /** The window at the time of a request, by how many were answered before. */
  readonly window: (answered: number) => number
  readonly reply: (answered: number) => Reply
  /** What a request for a summary is answered with. */
  readonly summary: string
}

interface Provider {
  readonly url: string
  readonly seen: ReadonlyArray<Seen>
}

const tooLong = (wire: Wire, tokens: number, window: number) =>
  wire === "anthropic"
    ? {
      type: "error",
      error: { type: "invalid_request_error", message: `prompt is too long: ${tokens} tokens > ${window} maximum` }
    }
    : {
      error: {
        message:
          `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} `
          + "tokens. Please reduce the length of the messages.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded"
      }
    }

const invalid = (wire: Wire, reasons: ReadonlyArray<string>) =>
  wire === "anthropic"
    ? { type: "error", error: { type: "invalid_request_error", message: reasons.join("; ") } }
    : { error: { message: reasons.join("; "), type: "invalid_request_error", param: "messages", code: null } }

/** Starts the provider on a free port; it ends with the scope. */
export const start = Effect.fnUntraced(function*({ reply, summary, window, wire }: Options) {
  const seen: Array<Seen> = []
  const thoughts = new Map<string, string>()
  const cache = new Cache()
  let answered = 0

  const answerOf = (body: Body): { readonly status: number; readonly body: unknown } => {
    const blocks = blocksOf(body)
    const tokens = blocks.reduce((sum, block) => sum + block.tokens, 0)
    const isSummary = blocks.at(-1)?.text.includes("is going to be replaced by a summary") === true
    const refused = judge(body, thoughts)
    const most = window(answered)
    const note = { body, blocks, tokens, isSummary, refused }
    if (refused.length > 0) {
      seen.push({ ...note, tooLong: false, read: 0, written: 0 })
      return { status: 400, body: invalid(wire, refused) }
    }
    if (tokens > most) {
      seen.push({ ...note, tooLong: true, read: 0, written: 0 })
      return { status: 400, body: tooLong(wire, tokens, most) }
    }
    const { read, written } = cache.send(wire, blocks)
    seen.push({ ...note, tooLong: false, read, written })
    const { calls = [], text, thinking } = isSummary ? { text: summary } as Reply : reply(answered)
    if (!isSummary) answered++
    const id = `answer-${seen.length}`
    if (wire === "openai") {
      return {
        status: 200,
        body: {
          id,
          choices: [{
            message: {
              role: "assistant",
              content: text ?? null,
              ...(calls.length === 0 ? undefined : {
                tool_calls: calls.map((call) => ({
                  id: call.id,
                  type: "function",
                  function: { name: call.name, arguments: JSON.stringify(call.input) }
                }))
              })
            },
            finish_reason: calls.length === 0 ? "stop" : "tool_calls"
          }],
          usage: { prompt_tokens: tokens, completion_tokens: 50, prompt_tokens_details: { cached_tokens: read } }
        }
      }
    }
    const content: Array<AnthropicBlock> = []
    if (thinking !== undefined) {
      const signature = createHash("sha1").update(`signed ${thinking}`).digest("base64")
      thoughts.set(signature, thinking)
      content.push({ type: "thinking", thinking, signature })
    }
    if (text !== undefined) content.push({ type: "text", text })
    for (const call of calls) content.push({ type: "tool_use", ...call })
    return {
      status: 200,
      body: {
        id,
        content,
        stop_reason: calls.length === 0 ? "end_turn" : "tool_use",
        usage: {
          input_tokens: tokens - read - written,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written,
          output_tokens: 50
        }
      }
    }
  }

  const server = yield* Effect.acquireRelease(
    Effect.callback<Http.Server>((resume) => {
      const server = Http.createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          // The adapters of this folder write what is read here; anything else fails the test.
          const answer = answerOf(JSON.parse(Buffer.concat(chunks).toString("utf8")) as Body)
          response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body))
        })
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
  // A server that listens on a port of its own has an address with a port.
  const { port } = server.address() as AddressInfo
  const provider: Provider = { url: `http://127.0.0.1:${port}`, seen }
  return provider
})
