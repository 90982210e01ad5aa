/**
 * A second opinion on wire validity: what each provider would refuse, judged on the body it is sent.
 *
 * Written from the providers' documented rules and shares no code with `Wire`. Each provider has two functions: `toX`
 * puts messages into its body the way an adapter does, `x` says what the provider would refuse in that body.
 */
import * as Prompt from "effect/ai/Prompt"

type Options = { readonly [key: string]: unknown }

const stateOf = (part: { readonly options: Options }, provider: string): { readonly [key: string]: unknown } => {
  const value = part.options[provider]
  return typeof value === "object" && value !== null ? value as { readonly [key: string]: unknown } : {}
}

/**
 * `LanguageModel` resolves approvals before an adapter sees the prompt: it makes the results of approved and denied
 * calls itself and strips requests and responses. So approval parts are left out, and for a call that waits stands a text.
 */
const withoutApprovals = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> => {
  interface Seen {
    readonly at: number
    readonly place: string
    readonly call: Prompt.ToolCallPart
  }
  const calls: Array<Seen> = []
  const asked = new Set<string>()
  messages.forEach((message, at) => {
    if (message.role !== "assistant") return
    message.content.forEach((part, i) =>
      part.type === "tool-call" && calls.push({ at, place: `${at}.${i}`, call: part })
    )
    // A request means the calls with its id in its own message; without one there, the last call with the id.
    for (const part of message.content) {
      if (part.type !== "tool-approval-request") continue
      const known = calls.filter((_) => _.call.id === part.toolCallId)
      const here = known.filter((_) => _.at === at)
      for (const { place } of here.length > 0 ? here : known.slice(-1)) asked.add(place)
    }
  })
  let open: ReadonlyArray<Seen> = []
  let turn = 0
  messages.forEach((message, at) => {
    if (message.role === "user") turn = at
    if (message.role !== "assistant" && message.role !== "tool") return
    message.content.forEach((part, i) => {
      if (part.type === "tool-call") open = [...open, calls.find((_) => _.place === `${at}.${i}`)!]
      if (part.type !== "tool-result") return
      const known = open.filter((_) =>
        _.call.id === part.id &&
        (message.role === "tool" ? !_.call.providerExecuted : _.call.providerExecuted && _.at >= turn)
      )
      const answered = known.find((_) => _.at === known.at(-1)!.at)
      open = open.filter((_) => _ !== answered)
    })
  })
  const waiting = new Set(open.filter((_) => asked.has(_.place)).map((_) => _.place))
  const result: Array<Prompt.Message> = []
  messages.forEach((message, at) => {
    if (message.role === "assistant" || message.role === "tool") {
      const parts: ReadonlyArray<Prompt.Part> = message.content
      const content = parts.flatMap((part, i): ReadonlyArray<Prompt.Part> =>
        part.type === "tool-approval-request" || part.type === "tool-approval-response"
          ? []
          : waiting.has(`${at}.${i}`)
          ? [Prompt.makePart("text", { text: "(waits for approval)" })]
          : [part]
      )
      // What was empty before stays and is judged; what became empty by resolving is stripped by `LanguageModel`.
      if (content.length > 0 || parts.length === 0) result.push({ ...message, content } as Prompt.Message)
    } else result.push(message)
  })
  return result
}

const resultText = (part: Prompt.ToolResultPart): string | ReadonlyArray<string> =>
  part.modelOutput === undefined
    ? JSON.stringify(part.result)
    : part.modelOutput.map((_) => _.type === "text" ? _.text : "(file)")

// ---------------------------------------------------------------------------------------------------------------------
// Anthropic Messages
// ---------------------------------------------------------------------------------------------------------------------

type AnthropicBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "tool_use" | "server_tool_use"; readonly id: string; readonly name: string }
  | {
    readonly type: "tool_result"
    readonly tool_use_id: string
    readonly content: string | ReadonlyArray<{ readonly type: "text"; readonly text: string }>
  }
  | { readonly type: "server_tool_result"; readonly tool_use_id: string }

export interface AnthropicBody {
  readonly system: ReadonlyArray<{ readonly type: "text"; readonly text: string }>
  readonly messages: ReadonlyArray<
    { readonly role: "user" | "assistant"; readonly content: ReadonlyArray<AnthropicBlock> }
  >
  /** System prompts that an adapter finds after the conversation began, and loses. */
  readonly lost: number
}

export const toAnthropic = (messages: ReadonlyArray<Prompt.Message>): AnthropicBody => {
  const system: Array<{ type: "text"; text: string }> = []
  const out: Array<{ role: "user" | "assistant"; content: Array<AnthropicBlock>; empty: boolean }> = []
  let lost = 0
  for (const message of withoutApprovals(messages)) {
    if (message.role === "system") {
      if (out.length > 0) lost++
      system.push({ type: "text", text: message.content })
      continue
    }
    const role = message.role === "assistant" ? "assistant" : "user"
    const blocks: Array<AnthropicBlock> = []
    for (const part of message.content) {
      switch (part.type) {
        case "text":
          blocks.push({ type: "text", text: part.text })
          break
        case "file":
          blocks.push({ type: "image" })
          break
        case "reasoning": {
          const signature = stateOf(part, "anthropic").signature
          if (typeof signature === "string") blocks.push({ type: "thinking", thinking: part.text, signature })
          break
        }
        case "tool-call":
          blocks.push({ type: part.providerExecuted ? "server_tool_use" : "tool_use", id: part.id, name: part.name })
          break
        case "tool-result": {
          const content = resultText(part)
          blocks.push(
            message.role === "assistant"
              ? { type: "server_tool_result", tool_use_id: part.id }
              : {
                type: "tool_result",
                tool_use_id: part.id,
                content: typeof content === "string" ? content : content.map((text) => ({ type: "text", text }))
              }
          )
          break
        }
        case "tool-approval-request":
        case "tool-approval-response":
          break
      }
    }
    const last = out.at(-1)
    // The API counts consecutive messages of a role as one turn. An empty message stays on its own, to be refused.
    if (last?.role === role && blocks.length > 0 && !last.empty) last.content.push(...blocks)
    else out.push({ role, content: blocks, empty: blocks.length === 0 })
  }
  return { system, messages: out.map(({ content, role }) => ({ role, content })), lost }
}

const isBlank = (text: string) => text.trim().length === 0

export const anthropic = (body: AnthropicBody): ReadonlyArray<string> => {
  const refused: Array<string> = []
  if (body.lost > 0) refused.push("system: a later system prompt replaces the first")
  if (body.system.some((_) => isBlank(_.text))) refused.push("system: text content blocks must be non-empty")
  if (body.messages.length === 0) refused.push("messages: at least one message is required")
  else if (body.messages[0]!.role !== "user") refused.push("messages: first message must use the \"user\" role")
  const serverUses: Array<string> = []
  const uses = new Set<string>()
  body.messages.forEach(({ content, role }, at) => {
    for (const block of content) {
      if (block.type !== "tool_use" && block.type !== "server_tool_use") continue
      if (uses.has(block.id)) refused.push(`messages.${at}: tool_use ids must be unique`)
      if (!/^[a-zA-Z0-9_-]+$/.test(block.id)) {
        refused.push(`messages.${at}: ${block.type}.id: String should match pattern`)
      }
      uses.add(block.id)
    }
    if (content.length === 0) refused.push(`messages.${at}: all messages must have non-empty content`)
    for (const block of content) {
      if (block.type === "text" && isBlank(block.text)) {
        refused.push(`messages.${at}: text content blocks must contain non-whitespace text`)
      }
      if (
        block.type === "tool_result" && typeof block.content !== "string" &&
        (block.content.length === 0 || block.content.some((_) => isBlank(_.text)))
      ) {
        refused.push(`messages.${at}: tool_result: text content blocks must be non-empty`)
      }
    }
    const previous = at === 0 ? undefined : body.messages[at - 1]
    if (role === "user") {
      const asked = previous?.role === "assistant" ? previous.content.filter((_) => _.type === "tool_use") : []
      const left = asked.map((_) => _.type === "tool_use" ? _.id : "")
      let head = true
      for (const block of content) {
        if (block.type !== "tool_result") {
          head = false
          continue
        }
        const index = left.indexOf(block.tool_use_id)
        if (index < 0) {
          refused.push(`messages.${at}: unexpected tool_use_id ${block.tool_use_id} in tool_result`)
        } else {
          left.splice(index, 1)
          if (!head) refused.push(`messages.${at}: tool_result blocks must come first`)
        }
      }
      for (const id of left) refused.push(`messages.${at - 1}: tool_use ${id} without tool_result immediately after`)
    } else {
      if (content.at(-1)?.type === "thinking") {
        refused.push(`messages.${at}: the final block in an assistant message cannot be thinking`)
      }
      if (at === body.messages.length - 1) {
        for (const block of content) {
          if (block.type === "tool_use") refused.push(`messages.${at}: tool_use ${block.id} without tool_result`)
        }
      }
    }
    if (role === "user") {
      // Results of the user's side alone continue the assistant's turn: a server tool may still answer after them.
      const continues = content.every((_) => _.type === "tool_result")
      if (!continues) {
        for (const id of serverUses) refused.push(`messages.${at - 1}: server_tool_use ${id} without its result`)
        serverUses.length = 0
      }
    } else {
      for (const block of content) {
        if (block.type === "server_tool_use") serverUses.push(block.id)
        if (block.type === "server_tool_result") {
          const index = serverUses.indexOf(block.tool_use_id)
          if (index >= 0) serverUses.splice(index, 1)
          else refused.push(`messages.${at}: server tool result ${block.tool_use_id} without its use`)
        }
      }
    }
  })
  return refused
}

// ---------------------------------------------------------------------------------------------------------------------
// OpenAI chat completions
// ---------------------------------------------------------------------------------------------------------------------

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: string | ReadonlyArray<string> | null
  readonly tool_calls?: ReadonlyArray<string>
  readonly tool_call_id?: string
}

export const toChat = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<ChatMessage> => {
  const out: Array<ChatMessage> = []
  for (const message of withoutApprovals(messages)) {
    if (message.role === "system") out.push({ role: "system", content: message.content })
    else if (message.role === "user") {
      out.push({ role: "user", content: message.content.map((_) => _.type === "text" ? _.text : "(file)") })
    } else if (message.role === "tool") {
      if (message.content.length === 0) out.push({ role: "tool", content: [] })
      for (const part of message.content) {
        if (part.type === "tool-result") out.push({ role: "tool", content: resultText(part), tool_call_id: part.id })
      }
    } else {
      // What the provider runs itself does not exist in this API, reasoning is not sent back.
      const texts = message.content.flatMap((_) => _.type === "text" ? [_.text] : _.type === "file" ? ["(file)"] : [])
      const calls = message.content.flatMap((_) => _.type === "tool-call" && !_.providerExecuted ? [_.id] : [])
      const foreign = message.content.some((_) =>
        (_.type === "tool-call" && _.providerExecuted) || _.type === "tool-result" ||
        (_.type === "reasoning" && Object.keys(_.options).length > 0)
      )
      out.push({
        role: "assistant",
        content: texts.length > 0 ? texts : foreign ? "(of another provider)" : null,
        ...(calls.length > 0 ? { tool_calls: calls } : undefined)
      })
    }
  }
  return out
}

export const chat = (messages: ReadonlyArray<ChatMessage>): ReadonlyArray<string> => {
  const refused: Array<string> = []
  if (messages.length === 0) refused.push("messages: empty array, expected at least one")
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!
    if (Array.isArray(message.content) && message.content.length === 0) {
      refused.push(`messages[${at}].content: empty array`)
    }
    if (message.role === "assistant" && message.content === null && message.tool_calls === undefined) {
      refused.push(`messages[${at}]: content or tool_calls must be set`)
    }
    for (const [index, id] of message.tool_calls?.entries() ?? []) {
      if (id === "") refused.push(`messages[${at}].tool_calls[${index}].id: empty string`)
      if (id.length > 40) refused.push(`messages[${at}].tool_calls[${index}].id: string too long`)
    }
    if (message.tool_calls !== undefined) {
      const left = [...message.tool_calls]
      for (let next = at + 1; next < messages.length && messages[next]!.role === "tool"; next++) {
        const index = left.indexOf(messages[next]!.tool_call_id ?? "")
        if (index >= 0) left.splice(index, 1)
        else refused.push(`messages[${next}]: tool_call_id answers no open tool call`)
      }
      for (const id of left) refused.push(`messages[${at}]: tool_call_id ${id} did not have a response message`)
    }
    if (message.role === "tool") {
      let first = at
      while (first > 0 && messages[first]!.role === "tool") first--
      if (messages[first]!.tool_calls === undefined) {
        refused.push(`messages[${at}]: a tool message must follow a message with tool_calls`)
      }
    }
  }
  return refused
}

// ---------------------------------------------------------------------------------------------------------------------
// OpenAI Responses
// ---------------------------------------------------------------------------------------------------------------------

export type ResponsesItem =
  | {
    readonly type: "message"
    readonly role: "user" | "assistant" | "developer"
    readonly content: ReadonlyArray<string>
  }
  | { readonly type: "reasoning"; readonly id: string }
  | { readonly type: "function_call" | "function_call_output"; readonly call_id: string }
  | { readonly type: "web_search_call"; readonly id: string }

export const toResponses = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<ResponsesItem> => {
  const out: Array<ResponsesItem> = []
  for (const message of withoutApprovals(messages)) {
    if (message.role === "system") out.push({ type: "message", role: "developer", content: [message.content] })
    else if (message.role === "user") {
      out.push({
        type: "message",
        role: "user",
        content: message.content.map((_) => _.type === "text" ? _.text : "(file)")
      })
    } else {
      if (message.content.length === 0) out.push({ type: "message", role: "assistant", content: [] })
      for (const part of message.content) {
        if (part.type === "text") out.push({ type: "message", role: "assistant", content: [part.text] })
        if (part.type === "file") out.push({ type: "message", role: "assistant", content: ["(file)"] })
        if (part.type === "reasoning") {
          const id = stateOf(part, "openai").itemId
          const last = out.at(-1)
          // The summaries of one reasoning item are parts of their own in a prompt.
          if (typeof id === "string" && !(last?.type === "reasoning" && last.id === id)) {
            out.push({ type: "reasoning", id })
          }
        }
        if (part.type === "tool-call") {
          out.push(
            part.providerExecuted
              ? { type: "web_search_call", id: part.id }
              : { type: "function_call", call_id: part.id }
          )
        }
        if (part.type === "tool-result" && message.role === "tool") {
          out.push({ type: "function_call_output", call_id: part.id })
        }
      }
    }
  }
  return out
}

export const responses = (items: ReadonlyArray<ResponsesItem>): ReadonlyArray<string> => {
  const refused: Array<string> = []
  if (items.length === 0) refused.push("input: one item is required")
  const open = new Map<string, number>()
  items.forEach((item, at) => {
    if (item.type === "message" && item.content.length === 0) refused.push(`input[${at}].content: empty array`)
    if (item.type === "function_call" && item.call_id === "") refused.push(`input[${at}].call_id: empty string`)
    if (item.type === "function_call" && item.call_id.length > 64) refused.push(`input[${at}].call_id: string too long`)
    if (item.type === "function_call") open.set(item.call_id, (open.get(item.call_id) ?? 0) + 1)
    if (item.type === "function_call_output") {
      const count = open.get(item.call_id) ?? 0
      if (count === 0) refused.push(`input[${at}]: no tool call found for function call output ${item.call_id}`)
      else open.set(item.call_id, count - 1)
    }
    if (item.type === "reasoning") {
      const next = items[at + 1]
      const follows = next !== undefined && (
        next.type === "reasoning" || next.type === "function_call" || next.type === "web_search_call" ||
        (next.type === "message" && next.role === "assistant")
      )
      if (!follows) refused.push(`input[${at}]: reasoning ${item.id} without its required following item`)
    }
  })
  for (const [id, count] of open) if (count > 0) refused.push(`input: no tool output found for function call ${id}`)
  return refused
}

// ---------------------------------------------------------------------------------------------------------------------
// Gemini generateContent
// ---------------------------------------------------------------------------------------------------------------------

type GeminiPart =
  | { readonly text: string }
  | { readonly inlineData: true }
  | { readonly functionCall: string }
  | { readonly functionResponse: string }

export interface GeminiBody {
  readonly systemInstruction: { readonly parts: ReadonlyArray<{ readonly text: string }> } | undefined
  readonly contents: ReadonlyArray<{ readonly role: "user" | "model"; readonly parts: ReadonlyArray<GeminiPart> }>
  /** Whether there was more than one system prompt, or one after the conversation began: the field holds one content. */
  readonly lost: number
}

export const toGemini = (messages: ReadonlyArray<Prompt.Message>): GeminiBody => {
  const contents: Array<{ role: "user" | "model"; parts: Array<GeminiPart>; empty: boolean }> = []
  let systemInstruction: GeminiBody["systemInstruction"]
  let lost = 0
  for (const message of withoutApprovals(messages)) {
    if (message.role === "system") {
      if (systemInstruction !== undefined || contents.length > 0) lost++
      systemInstruction = { parts: [{ text: message.content }] }
      continue
    }
    const role = message.role === "assistant" ? "model" : "user"
    const parts: Array<GeminiPart> = []
    let foreign = false
    for (const part of message.content) {
      if (part.type === "text") parts.push({ text: part.text })
      if (part.type === "file") parts.push({ inlineData: true })
      if (part.type === "tool-call" && !part.providerExecuted) parts.push({ functionCall: part.id })
      if (part.type === "tool-result" && message.role === "tool") {
        parts.push({ functionResponse: part.id })
        // What the model sees in place of the result goes as parts beside the response.
        for (const shown of part.modelOutput ?? []) if (shown.type === "text") parts.push({ text: shown.text })
      }
      // What another provider ran, and its reasoning, do not exist in this API.
      if (
        (part.type === "tool-call" && part.providerExecuted) ||
        (part.type === "tool-result" && message.role === "assistant") ||
        (part.type === "reasoning" && Object.keys(part.options).length > 0)
      ) foreign = true
    }
    if (parts.length === 0 && foreign) parts.push({ text: "(of another provider)" })
    const last = contents.at(-1)
    if (last?.role === role && parts.length > 0 && !last.empty) last.parts.push(...parts)
    else contents.push({ role, parts, empty: parts.length === 0 })
  }
  return { systemInstruction, contents: contents.map(({ parts, role }) => ({ role, parts })), lost }
}

export const gemini = (body: GeminiBody): ReadonlyArray<string> => {
  const refused: Array<string> = []
  if (body.lost > 0) refused.push("systemInstruction: one content")
  if (body.systemInstruction?.parts.some((_) => _.text === "") === true) refused.push("systemInstruction: empty text")
  if (body.contents.length === 0) refused.push("contents is not specified")
  else if (body.contents[0]!.role !== "user") refused.push("contents: must begin with a user turn")
  const calls = (at: number) =>
    (body.contents[at]?.parts ?? []).flatMap((_) => "functionCall" in _ ? [_.functionCall] : [])
  body.contents.forEach((content, at) => {
    if (content.parts.length === 0) refused.push(`contents[${at}].parts: must include at least one part`)
    if (content.parts.some((_) => "text" in _ && _.text === "")) refused.push(`contents[${at}]: empty text parameter`)
    const responses = content.parts.flatMap((_) => "functionResponse" in _ ? [_.functionResponse] : [])
    const asked = content.role === "user" ? calls(at - 1) : []
    // Responses without ids are paired by position: the same number, in the order of the calls.
    if (responses.length !== asked.length || responses.some((id, i) => id !== asked[i])) {
      refused.push(`contents[${at}]: function responses [${responses}] do not match the calls [${asked}]`)
    }
  })
  const last = body.contents.length - 1
  if (calls(last).length > 0) refused.push(`contents[${last}]: function call turn without a response turn`)
  return refused
}

// ---------------------------------------------------------------------------------------------------------------------
// Approvals, as `LanguageModel` collects them before a request
// ---------------------------------------------------------------------------------------------------------------------

export const approvals = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> => {
  const refused: Array<string> = []
  const requests = new Set<string>()
  const calls = new Set<string>()
  const answered = new Set<string>()
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const part of message.content) if (part.type === "tool-call") calls.add(part.id)
      for (const part of message.content) {
        if (part.type !== "tool-approval-request") continue
        if (!calls.has(part.toolCallId)) refused.push(`request ${part.approvalId} without its call`)
        requests.add(part.approvalId)
        answered.delete(part.approvalId)
      }
    }
    if (message.role === "tool") {
      for (const part of message.content) {
        if (part.type !== "tool-approval-response") continue
        if (!requests.has(part.approvalId)) refused.push(`response ${part.approvalId} without its request: ignored`)
        else if (answered.has(part.approvalId)) {
          refused.push(`response ${part.approvalId} given twice: the tool runs twice`)
        }
        answered.add(part.approvalId)
      }
    }
  }
  return refused
}
