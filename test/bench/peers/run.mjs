// One peer on one conversation, in a process of its own: `node --expose-gc run.mjs PEER FILE [OTHER]`. Prints one line of
// JSON. With OTHER, another conversation, it has shortened that one before.
//
// A file holds { target, messages }, each message { role, parts }, each part a text, a call, a result or an image. A peer
// makes its own messages of them (not timed), shortens them (timed), and says in the same terms what is left.
import { readFileSync } from "node:fs"

const [peer, file, other] = process.argv.slice(2)
const read = (path) => JSON.parse(readFileSync(path, "utf8"))
const target = file === undefined ? 0 : read(file).target

const textOf = (parts) => parts.filter((part) => part.type === "text").map((part) => part.text).join("\n")
const callsOf = (parts) => parts.filter((part) => part.type === "call")
const resultsOf = (parts) => parts.filter((part) => part.type === "result")
const imagesOf = (parts) => parts.filter((part) => part.type === "image")
const tokensOf = (value) => Math.ceil((typeof value === "string" ? value : JSON.stringify(value) ?? "").length / 4)
const words = (content) =>
  typeof content === "string" ? content : content.filter((part) => part.type === "text").map((part) => part.text).join("\n")
const text = (value) => value === "" ? [] : [{ type: "text", text: value }]

/** AI SDK model messages, which Mastra's prompts share. */
const sdk = {
  to: (image) => (messages) => messages.flatMap(({ parts, role }) => {
    if (role === "system") return [{ role, content: textOf(parts) }]
    if (role === "tool") {
      return [{
        role,
        content: resultsOf(parts).map(({ id, name, text: value }) =>
          ({ type: "tool-result", toolCallId: id, toolName: name, output: { type: "text", value } }))
      }]
    }
    return [{
      role,
      content: [
        ...text(textOf(parts)),
        ...(role === "user" ? imagesOf(parts).map(image) : []),
        ...callsOf(parts).map(({ args, id, name }) => ({ type: "tool-call", toolCallId: id, toolName: name, input: args }))
      ]
    }]
  }),
  from: (left) => left.map(({ content, role }) => ({
    role,
    parts: typeof content === "string" ? text(content) : content.flatMap((part) => {
      if (part.type === "text") return [part]
      if (part.type === "tool-call") return [{ type: "call", id: part.toolCallId, name: part.toolName, args: part.input }]
      if (part.type === "tool-result") {
        return [{ type: "result", id: part.toolCallId, name: part.toolName, text: String(part.output.value) }]
      }
      return part.type === "image" || part.type === "file" ? [{ type: "image" }] : []
    })
  }))
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const langchain = async () => {
  const core = await import("@langchain/core/messages")
  return {
    core,
    to: (messages) => messages.flatMap(({ parts, role }) => {
      if (role === "system") return [new core.SystemMessage(textOf(parts))]
      if (role === "tool") {
        return resultsOf(parts).map((part) => new core.ToolMessage({ content: part.text, tool_call_id: part.id, name: part.name }))
      }
      if (role === "user") {
        const images = imagesOf(parts).map(() => ({ type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } }))
        return [new core.HumanMessage({ content: images.length === 0 ? textOf(parts) : [...text(textOf(parts)), ...images] })]
      }
      return [new core.AIMessage({
        content: textOf(parts),
        tool_calls: callsOf(parts).map(({ args, id, name }) => ({ id, name, args, type: "tool_call" }))
      })]
    }),
    from: (left) => left.filter((message) => message !== undefined).map((message) => {
      const role = { system: "system", human: "user", ai: "assistant", tool: "tool" }[message.getType()]
      if (role === "tool") {
        return { role, parts: [{ type: "result", id: message.tool_call_id, name: message.name, text: words(message.content) }] }
      }
      const images = Array.isArray(message.content) ? message.content.filter((part) => part.type === "image_url") : []
      return {
        role,
        parts: [
          ...text(words(message.content)),
          ...images.map(() => ({ type: "image" })),
          ...(message.tool_calls ?? []).map(({ args, id, name }) => ({ type: "call", id, name, args }))
        ]
      }
    }),
    count: (list) => (Array.isArray(list) ? list : [list]).reduce(
      (sum, message) => sum + tokensOf(words(message.content)) + (message.tool_calls?.length ? tokensOf(message.tool_calls) : 0),
      0
    )
  }
}

const adkEvents = (messages) => messages.flatMap(({ parts, role }, at) => role === "system" ? [] : [{
  id: `e${at}`,
  timestamp: at,
  author: role === "user" ? "user" : "agent",
  actions: {},
  content: {
    role: role === "assistant" ? "model" : "user",
    parts: parts.map((part) =>
      part.type === "call" ? { functionCall: { id: part.id, name: part.name, args: part.args } }
      : part.type === "result" ? { functionResponse: { id: part.id, name: part.name, response: { output: part.text } } }
      : { text: part.text ?? "" }
    )
  }
}])

const fromAdk = (events) => events.map(({ content }) => ({
  role: content.role === "model" ? "assistant" : content.parts.some((part) => part.functionResponse) ? "tool" : "user",
  parts: content.parts.map((part) =>
    part.functionCall ? { type: "call", id: part.functionCall.id, name: part.functionCall.name, args: part.functionCall.args }
    : part.functionResponse
    ? { type: "result", id: part.functionResponse.id, name: part.functionResponse.name, text: String(part.functionResponse.response.output) }
    : { type: "text", text: part.text ?? "" }
  )
}))

/** Blocks of Anthropic's shape, which Cline and (with other names) Strands use. */
const blocks = (messages) => messages.filter(({ role }) => role !== "system").map(({ parts, role }) => ({
  role: role === "assistant" ? "assistant" : "user",
  content: parts.map((part) =>
    part.type === "call" ? { type: "tool_use", id: part.id, name: part.name, input: part.args }
    : part.type === "result" ? { type: "tool_result", tool_use_id: part.id, name: part.name, content: part.text }
    : part.type === "image" ? { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }
    : part
  )
}))

const fromBlocks = (left) => left.map(({ content, role }) => {
  const list = typeof content === "string" ? text(content) : content
  return {
    role: list.some((part) => part.type === "tool_result") ? "tool" : role,
    parts: list.flatMap((part) => {
      if (part.type === "tool_use") return [{ type: "call", id: part.id, name: part.name, args: part.input }]
      if (part.type === "tool_result") {
        return [{ type: "result", id: part.tool_use_id, text: typeof part.content === "string" ? part.content : words(part.content) }]
      }
      if (part.type === "text") return [part]
      return part.type === "image" ? [{ type: "image" }] : []
    })
  }
})

const cline = async () => {
  const { createContextCompactionPrepareTurn } = await import("@cline/core")
  const config = { providerId: "anthropic", modelId: "m", compaction: { enabled: true, strategy: "basic" } }
  return () => createContextCompactionPrepareTurn(config)
}

const inTurn = (turn) => async (list) => {
  const info = { id: "m", contextWindow: target, maxInputTokens: target, maxTokens: 4_096 }
  const done = await turn({
    agentId: "a", conversationId: "c", parentAgentId: null, iteration: 1, messages: list, apiMessages: list,
    abortSignal: new AbortController().signal, systemPrompt: "", tools: [], model: { id: "m", provider: "anthropic", info }
  })
  return done?.messages ?? list
}

/**
 * Each peer: how it is loaded, and then the messages it works on; what it is within one conversation, from request to
 * request; and what is left in neutral terms. One that `keeps` what it made goes on from that, as its system does; the
 * others are given the whole conversation at each request.
 */
const peers = {
  "ai pruneMessages": async () => {
    const { pruneMessages } = await import("ai")
    return {
      to: sdk.to(() => ({ type: "image", image: pixel, mediaType: "image/png" })),
      begin: () => (list) => pruneMessages({ messages: list, reasoning: "before-last-message", toolCalls: "before-last-6-messages", emptyMessages: "remove" }),
      from: sdk.from
    }
  },
  "@langchain/core trimMessages": async () => {
    const { core, count, from, to } = await langchain()
    return {
      to,
      begin: () => (list) => core.trimMessages(list, { maxTokens: target, tokenCounter: count, strategy: "last", includeSystem: true, startOn: "human" }),
      from
    }
  },
  "langchain ClearToolUsesEdit": async () => {
    const { count, from, to } = await langchain()
    const { ClearToolUsesEdit } = await import("langchain")
    return {
      to,
      keeps: true,
      begin: () => {
        const edit = new ClearToolUsesEdit({ trigger: { tokens: target }, keep: { messages: 3 } })
        return async (list) => {
          await edit.apply({ messages: list, countTokens: count, model: {} })
          return list
        }
      },
      from
    }
  },
  "@mastra/core TokenLimiterProcessor": async () => {
    const { TokenLimiterProcessor } = await import("@mastra/core/processors")
    return {
      to: (messages) => sdk.to(() => ({ type: "file", mediaType: "image/png", data: pixel }))(messages).map((message) =>
        message.role === "system" || message.content.length > 0 ? message : { ...message, content: [{ type: "text", text: "" }] }),
      begin: () => {
        const limiter = new TokenLimiterProcessor({ limit: target })
        return async (list) => (await limiter.processLLMRequest({ prompt: list }))?.prompt ?? list
      },
      from: sdk.from
    }
  },
  "@strands-agents/sdk SlidingWindow": async () => {
    const { Message, SlidingWindowConversationManager, TextBlock, ToolResultBlock, ToolUseBlock } = await import("@strands-agents/sdk")
    return {
      to: (messages) => messages.filter(({ role }) => role !== "system").map(({ parts, role }) =>
        new Message({
          role: role === "assistant" ? "assistant" : "user",
          content: parts.map((part) =>
            part.type === "call" ? new ToolUseBlock({ toolUseId: part.id, name: part.name, input: part.args })
            : part.type === "result"
            ? new ToolResultBlock({ toolUseId: part.id, status: "success", content: [new TextBlock(part.text)] })
            : new TextBlock(part.text ?? "")
          )
        })),
      keeps: true,
      begin: () => {
        const manager = new SlidingWindowConversationManager({ windowSize: 40 })
        return async (list) => {
          await manager.reduce({ agent: { messages: list } })
          return list
        }
      },
      from: (left) => left.map(({ content, role }) => ({
        role: content.some((part) => part.type === "toolResultBlock") ? "tool" : role,
        parts: content.map((part) =>
          part.type === "toolUseBlock" ? { type: "call", id: part.toolUseId, name: part.name, args: part.input }
          : part.type === "toolResultBlock" ? { type: "result", id: part.toolUseId, text: part.content.map((each) => each.text ?? "").join("\n") }
          : { type: "text", text: part.text ?? "" }
        )
      }))
    }
  },
  "@google/adk TruncatingContextCompactor": async () => {
    const { TruncatingContextCompactor } = await import("@google/adk")
    return {
      to: adkEvents,
      keeps: true,
      begin: () => {
        const compactor = new TruncatingContextCompactor({ threshold: 80 })
        return (events) => {
          const context = { session: { events } }
          if (compactor.shouldCompact(context)) compactor.compact(context)
          return context.session.events
        }
      },
      from: fromAdk
    }
  },
  "@llamaindex/core ChatMemoryBuffer": async () => {
    const { ChatMemoryBuffer } = await import("@llamaindex/core/memory")
    return {
      to: (messages) => messages.flatMap(({ parts, role }) =>
        role === "tool"
          ? resultsOf(parts).map((part) => ({ role: "user", content: part.text, options: { toolResult: { id: part.id, result: part.text, isError: false } } }))
          : [{
            role,
            content: textOf(parts),
            ...(callsOf(parts).length === 0 ? {} : { options: { toolCall: callsOf(parts).map(({ args, id, name }) => ({ id, name, input: args })) } })
          }]
      ),
      begin: () => (list) => new ChatMemoryBuffer({ tokenLimit: target, chatHistory: list, llm: { metadata: { contextWindow: target * 2 } } }).getMessages(),
      from: (left) => left.map(({ content, options, role }) => options?.toolResult
        ? { role: "tool", parts: [{ type: "result", id: options.toolResult.id, text: words(content) }] }
        : { role, parts: [...text(words(content)), ...(options?.toolCall ?? []).map(({ id, input, name }) => ({ type: "call", id, name, args: input }))] })
    }
  },
  "@cline/core basic": async () => {
    const turn = await cline()
    return { to: blocks, keeps: true, begin: () => inTurn(turn()), from: fromBlocks }
  },
  // As a session of Cline runs it: the whole conversation comes at each request, and what was compacted is put in its place.
  "@cline/core basic, in its session": async () => {
    const { createCompactionStateAwarePrepareTurn } = await import("@cline/core")
    const turn = await cline()
    return {
      to: blocks,
      begin: () => {
        let state
        const saveState = (next) => {
          state = next
        }
        return inTurn(createCompactionStateAwarePrepareTurn({ compact: turn(), getState: () => state, saveState }))
      },
      from: fromBlocks
    }
  },
  "pi findCutPoint": async () => {
    const { findCutPoint } = await import(new URL("node_modules/@mariozechner/pi-coding-agent/dist/core/compaction/compaction.js", import.meta.url).href)
    return {
      keeps: true,
      to: (messages) => messages.filter(({ role }) => role !== "system").flatMap(({ parts, role }) =>
        role === "tool"
          ? resultsOf(parts).map((part) => ({ role: "toolResult", toolCallId: part.id, toolName: part.name, content: text(part.text), isError: false }))
          : [{
            role,
            content: [
              ...text(textOf(parts)),
              ...callsOf(parts).map(({ args, id, name }) => ({ type: "toolCall", id, name, arguments: args })),
              ...imagesOf(parts).map(() => ({ type: "image", data: pixel, mimeType: "image/png" }))
            ]
          }]
      ).map((message, at) => ({ type: "message", id: `e${at}`, parentId: at === 0 ? null : `e${at - 1}`, timestamp: "2026-01-01T00:00:00Z", message })),
      begin: () => (entries) => entries.slice(findCutPoint(entries, 0, entries.length, target).firstKeptEntryIndex),
      from: (left) => left.map(({ message }) => message.role === "toolResult"
        ? { role: "tool", parts: [{ type: "result", id: message.toolCallId, text: words(message.content) }] }
        : {
          role: message.role,
          parts: message.content.flatMap((part) =>
            part.type === "toolCall" ? [{ type: "call", id: part.id, name: part.name, args: part.arguments }]
            : part.type === "image" ? [{ type: "image" }]
            : [part]
          )
        })
    }
  },
  "effect Tokenizer.truncate": async () => {
    const Prompt = await import("effect/ai/Prompt")
    const Tokenizer = await import("effect/ai/Tokenizer")
    const Effect = await import("effect/Effect")
    const tokenizer = Tokenizer.make({
      tokenize: (prompt) => Effect.sync(() => new Array(prompt.content.reduce((sum, message) => sum + tokensOf(message.content), 0)))
    })
    return {
      join: Prompt.concat,
      to: (messages) => Prompt.make(messages.map(({ parts, role }) => ({
        role,
        content: role === "system" ? textOf(parts) : parts.map((part) =>
          part.type === "call" ? { type: "tool-call", id: part.id, name: part.name, params: part.args, providerExecuted: false }
          : part.type === "result" ? { type: "tool-result", id: part.id, name: part.name, isFailure: false, result: part.text, providerExecuted: false }
          : part.type === "image" ? { type: "file", mediaType: "image/png", data: pixel }
          : { type: "text", text: part.text }
        )
      }))),
      begin: () => (prompt) => Effect.runPromise(tokenizer.truncate(prompt, target)),
      from: ({ content }) => content.map(({ content: parts, role }) => ({
        role,
        parts: typeof parts === "string" ? text(parts) : parts.flatMap((part) =>
          part.type === "tool-call" ? [{ type: "call", id: part.id, name: part.name, args: part.params }]
          : part.type === "tool-result" ? [{ type: "result", id: part.id, name: part.name, text: String(part.result) }]
          : part.type === "file" ? [{ type: "image" }]
          : part.type === "text" ? [part]
          : []
        )
      }))
    }
  }
}

const join = (list, more) => [...list, ...more]

if (peer === undefined) {
  console.log(JSON.stringify(Object.keys(peers)))
} else {
  // What peers print is not ours.
  console.log = console.warn = console.info = () => {}
  const self = { join, keeps: false, ...await peers[peer]() }
  if (other !== undefined) await self.begin()(self.to(read(other).messages))
  let list = self.to(read(file).messages)
  const more = () => self.to([{ role: "user", parts: [{ type: "text", text: "Go on." }] }])
  const times = []
  let left
  let work
  const patience = 3_000
  // What was made to get here is no part of what is measured.
  globalThis.gc()
  const rounds = other === undefined ? 6 : 1
  for (let round = 0; round < rounds && times.reduce((sum, time) => sum + time, 0) < patience; round++) {
    const start = process.cpuUsage()
    work ??= self.begin()
    const done = await work(list)
    const { system, user } = process.cpuUsage(start)
    times.push((system + user) / 1_000)
    if (round === 0) left = self.from(done)
    list = self.join(self.keeps ? done : list, more())
  }
  const again = times.slice(1).sort((a, b) => a - b)
  const warm = again[Math.floor(again.length / 2)] ?? null
  process.stdout.write(`${JSON.stringify({ cold: times[0], warm, left })}\n`, () => process.exit(0))
}
