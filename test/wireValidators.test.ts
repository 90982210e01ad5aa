import { assert, describe, it } from "@effect/vitest"
import * as Prompt from "effect/ai/Prompt"
import * as Validators from "./wireValidators.ts"

// Bodies that a provider takes, and bodies that it refuses with the message whose beginning is given: the validators are
// only worth something if they are right on their own.

const text = (value: string) => ({ type: "text", text: value }) as const
const use = (id: string) => ({ type: "tool_use", id, name: "look" }) as const
const used = (tool_use_id: string) => ({ type: "tool_result", tool_use_id, content: "ok" }) as const
const thinking = { type: "thinking", thinking: "", signature: "c2ln" } as const
const serverUse = { type: "server_tool_use", id: "w", name: "search" } as const
const serverResult = { type: "server_tool_result", tool_use_id: "w" } as const

type Turn = Validators.AnthropicBody["messages"][number]
const me = (...content: Turn["content"]): Turn => ({ role: "user", content })
const it_ = (...content: Turn["content"]): Turn => ({ role: "assistant", content })

const anthropic: ReadonlyArray<readonly [string, Partial<Validators.AnthropicBody>, string | undefined]> = [
  ["a tool loop", {
    system: [text("rules")],
    messages: [me(text("q")), it_(thinking, use("a"), use("b")), me(used("b"), used("a"), text("go")), it_(text("so"))]
  }, undefined],
  ["a paused turn", { messages: [me(text("q")), it_(serverUse)] }, undefined],
  [
    "a continued turn",
    { messages: [me(text("q")), it_(serverUse, use("a")), me(used("a")), it_(serverResult)] },
    undefined
  ],
  ["no message", { messages: [] }, "messages: at least one"],
  ["assistant first", { messages: [it_(text("so"))] }, "messages: first message"],
  ["empty system", { system: [text("")], messages: [me(text("q"))] }, "system: text content"],
  ["a second system prompt", { messages: [me(text("q"))], lost: 1 }, "system: a later"],
  ["an empty message", { messages: [me()] }, "messages.0: all messages"],
  ["a blank text", { messages: [me(text(" "))] }, "messages.0: text content"],
  ["an empty block in a result", {
    messages: [me(text("q")), it_(use("a")), me({ type: "tool_result", tool_use_id: "a", content: [text("")] })]
  }, "messages.2: tool_result: text"],
  ["no result", { messages: [me(text("q")), it_(use("a")), me(text("go"))] }, "messages.1: tool_use a without"],
  ["no result at the end", { messages: [me(text("q")), it_(use("a"))] }, "messages.1: tool_use a without"],
  ["one of two results", {
    messages: [me(text("q")), it_(use("a"), use("b")), me(used("b")), it_(text("so"))]
  }, "messages.1: tool_use a without"],
  ["an orphan", { messages: [me(text("q"), used("a"))] }, "messages.0: unexpected tool_use_id a"],
  ["a result twice", { messages: [me(text("q")), it_(use("a")), me(used("a"), used("a"))] }, "messages.2: unexpected"],
  [
    "text before the result",
    { messages: [me(text("q")), it_(use("a")), me(text("x"), used("a"))] },
    "messages.2: tool_result blocks"
  ],
  ["thinking last", { messages: [me(text("q")), it_(text("so"), thinking)] }, "messages.1: the final block"],
  [
    "a server tool passed by",
    { messages: [me(text("q")), it_(serverUse), me(text("go"))] },
    "messages.1: server_tool_use w"
  ],
  [
    "an id again",
    { messages: [me(text("q")), it_(use("a")), me(used("a")), it_(use("a")), me(used("a"))] },
    "messages.3: tool_use ids"
  ],
  ["a colon in an id", { messages: [me(text("q")), it_(use("ls:0")), me(used("ls:0"))] }, "messages.1: tool_use.id"],
  ["no id", { messages: [me(text("q")), it_(use("")), me(used(""))] }, "messages.1: tool_use.id"],
  ["a server tool's result alone", { messages: [me(text("q")), it_(serverResult)] }, "messages.1: server tool result w"]
]

type Chat = ReadonlyArray<Validators.ChatMessage>
const question: Validators.ChatMessage = { role: "user", content: ["q"] }
const calls = (...tool_calls: ReadonlyArray<string>): Validators.ChatMessage => ({
  role: "assistant",
  content: null,
  tool_calls
})
const answer = (tool_call_id: string): Validators.ChatMessage => ({ role: "tool", content: "ok", tool_call_id })

const chat: ReadonlyArray<readonly [string, Chat, string | undefined]> = [
  [
    "a tool loop",
    [question, calls("a", "b"), answer("b"), answer("a"), { role: "system", content: "" }, question],
    undefined
  ],
  ["nothing", [], "messages: empty"],
  ["an empty user message", [{ role: "user", content: [] }], "messages[0].content"],
  ["an empty assistant", [{ role: "assistant", content: null }], "messages[0]: content or"],
  ["no result", [question, calls("a"), question], "messages[1]: tool_call_id a"],
  ["no result at the end", [question, calls("a")], "messages[1]: tool_call_id a"],
  [
    "system between",
    [calls("a", "b"), answer("a"), { role: "system", content: "x" }, answer("b")],
    "messages[0]: tool_call_id b"
  ],
  ["an orphan", [question, answer("a")], "messages[1]: a tool message"],
  [
    "an id of 41 characters",
    [calls("a".repeat(41)), answer("a".repeat(41))],
    "messages[0].tool_calls[0].id: string too"
  ],
  ["no id", [calls(""), answer("")], "messages[0].tool_calls[0].id: empty"],
  ["a result twice", [calls("a"), answer("a"), answer("a")], "messages[2]: tool_call_id answers"]
]

const said = (role: "user" | "assistant" | "developer"): Validators.ResponsesItem => ({
  type: "message",
  role,
  content: ["x"]
})
const thought: Validators.ResponsesItem = { type: "reasoning", id: "rs_1" }
const fc = (call_id: string): Validators.ResponsesItem => ({ type: "function_call", call_id })
const fo = (call_id: string): Validators.ResponsesItem => ({ type: "function_call_output", call_id })

const responses: ReadonlyArray<readonly [string, ReadonlyArray<Validators.ResponsesItem>, string | undefined]> = [
  [
    "a tool loop",
    [said("user"), thought, fc("a"), fc("b"), fo("b"), said("user"), fo("a"), said("developer")],
    undefined
  ],
  ["an id again", [fc("a"), fo("a"), fc("a"), fo("a")], undefined],
  ["nothing", [], "input: one item"],
  ["an empty message", [{ type: "message", role: "user", content: [] }], "input[0].content"],
  ["no output", [fc("a"), said("user")], "input: no tool output found for function call a"],
  ["an output before its call", [fo("a"), fc("a")], "input[0]: no tool call"],
  ["an output twice", [fc("a"), fo("a"), fo("a")], "input[2]: no tool call"],
  ["an id of 65 characters", [fc("a".repeat(65)), fo("a".repeat(65))], "input[0].call_id: string too"],
  ["no id", [fc(""), fo("")], "input[0].call_id: empty"],
  ["reasoning last", [said("user"), thought], "input[1]: reasoning rs_1"],
  ["reasoning without its follower", [thought, said("user")], "input[0]: reasoning rs_1"]
]

type Content = Validators.GeminiBody["contents"][number]
const from = (role: "user" | "model", ...parts: Content["parts"]): Content => ({ role, parts })
const fCall = (functionCall: string) => ({ functionCall })
const fResponse = (functionResponse: string) => ({ functionResponse })
const q = from("user", { text: "q" })

const gemini: ReadonlyArray<readonly [string, Partial<Validators.GeminiBody>, string | undefined]> = [
  ["a tool loop", {
    contents: [q, from("model", fCall("a"), fCall("b")), from("user", fResponse("a"), fResponse("b"), { text: "go" })]
  }, undefined],
  ["nothing", { contents: [] }, "contents is not"],
  ["model first", { contents: [from("model", { text: "so" })] }, "contents: must begin"],
  ["two system prompts", { contents: [q], lost: 1 }, "systemInstruction: one"],
  [
    "an empty system prompt",
    { contents: [q], systemInstruction: { parts: [{ text: "" }] } },
    "systemInstruction: empty"
  ],
  ["no part", { contents: [from("user")] }, "contents[0].parts"],
  ["an empty text", { contents: [from("user", { text: "" })] }, "contents[0]: empty text"],
  [
    "too few responses",
    { contents: [q, from("model", fCall("a"), fCall("b")), from("user", fResponse("a"))] },
    "contents[2]: function"
  ],
  ["another order", {
    contents: [q, from("model", fCall("a"), fCall("b")), from("user", fResponse("b"), fResponse("a"))]
  }, "contents[2]: function"],
  ["an orphan", { contents: [from("user", { text: "q" }, fResponse("a"))] }, "contents[0]: function"],
  ["no response at the end", { contents: [q, from("model", fCall("a"))] }, "contents[1]: function call turn"]
]

const judged = <A>(
  name: string,
  cases: ReadonlyArray<readonly [string, A, string | undefined]>,
  judge: (body: A) => ReadonlyArray<string>
) =>
  describe(`the rules of ${name}`, () => {
    for (const [label, body, refusal] of cases) {
      it(`${refusal === undefined ? "take" : "refuse"} ${label}`, () => {
        const refused = judge(body)
        if (refusal === undefined) assert.deepStrictEqual(refused, [])
        else assert.isTrue(refused[0]?.startsWith(refusal), refused.join("\n"))
      })
    }
  })

judged("Anthropic Messages", anthropic, (_) => Validators.anthropic({ system: [], messages: [], lost: 0, ..._ }))
judged("OpenAI chat completions", chat, Validators.chat)
judged("OpenAI Responses", responses, Validators.responses)
judged("Gemini", gemini, (_) => Validators.gemini({ systemInstruction: undefined, contents: [], lost: 0, ..._ }))

describe("bodies", () => {
  const messages = Prompt.make([
    { role: "system", content: "rules" },
    { role: "user", content: "q" },
    {
      role: "assistant",
      content: [
        {
          type: "reasoning",
          text: "hm",
          options: { anthropic: { signature: "c2ln" }, openai: { itemId: "rs_1" } }
        },
        { type: "tool-call", id: "a", name: "look", params: {} },
        { type: "tool-call", id: "b", name: "look", params: {} },
        { type: "tool-approval-request", approvalId: "r", toolCallId: "b" }
      ]
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", id: "a", name: "look", isFailure: false, result: 1 },
        { type: "tool-approval-response", approvalId: "r", approved: true }
      ]
    },
    { role: "user", content: "and?" }
  ]).content

  it("Anthropic: results and the next user message are one turn", () => {
    assert.deepStrictEqual(Validators.toAnthropic(messages), {
      system: [text("rules")],
      messages: [
        me(text("q")),
        it_({ ...thinking, thinking: "hm" }, use("a"), text("(waits for approval)")),
        me({ ...used("a"), content: "1" }, text("and?"))
      ],
      lost: 0
    })
  })

  it("OpenAI chat: a message for each result", () => {
    assert.deepStrictEqual(Validators.toChat(messages), [
      { role: "system", content: "rules" },
      question,
      { role: "assistant", content: ["(waits for approval)"], tool_calls: ["a"] },
      { role: "tool", content: "1", tool_call_id: "a" },
      { role: "user", content: ["and?"] }
    ])
  })

  it("OpenAI Responses: flat items", () => {
    assert.deepStrictEqual(Validators.toResponses(messages).map((_) => _.type), [
      "message",
      "message",
      "reasoning",
      "function_call",
      "message",
      "function_call_output",
      "message"
    ])
  })

  it("Gemini: results and the next user message are one content", () => {
    assert.deepStrictEqual(Validators.toGemini(messages).contents, [
      q,
      from("model", fCall("a"), { text: "(waits for approval)" }),
      from("user", fResponse("a"), { text: "and?" })
    ])
  })

  it("approvals: what LanguageModel would ignore, or run twice", () => {
    const judge = (...content: ReadonlyArray<Prompt.ToolMessagePartEncoded>) =>
      Validators.approvals(
        Prompt.make([{
          role: "assistant",
          content: [
            { type: "tool-call", id: "b", name: "look", params: {} },
            { type: "tool-approval-request", approvalId: "r", toolCallId: "b" }
          ]
        }, { role: "tool", content }]).content
      )
    const yes = (approvalId: string) => ({ type: "tool-approval-response", approvalId, approved: true }) as const
    assert.deepStrictEqual(judge(yes("r")), [])
    assert.deepStrictEqual(judge(yes("r"), yes("r")), ["response r given twice: the tool runs twice"])
    assert.deepStrictEqual(judge(yes("x")), ["response x without its request: ignored"])
    assert.deepStrictEqual(
      Validators.approvals(
        Prompt.make([{
          role: "assistant",
          content: [{ type: "tool-approval-request", approvalId: "r", toolCallId: "gone" }]
        }]).content
      ),
      ["request r without its call"]
    )
  })
})
