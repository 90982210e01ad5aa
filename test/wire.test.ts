import { assert, describe, it } from "@effect/vitest"
import * as Estimator from "effect-compaction/Estimator"
import * as Marks from "effect-compaction/Marks"
import * as Wire from "effect-compaction/Wire"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Ids from "../src/wire/ids.ts"
import * as Opaque from "../src/wire/opaque.ts"
import * as Send from "../src/wire/send.ts"
import * as Validators from "./wireValidators.ts"

// ---------------------------------------------------------------------------------------------------------------------
// Messages in short
// ---------------------------------------------------------------------------------------------------------------------

type Options = Prompt.ProviderOptions

const text = (value: string, options: Options = {}) => Prompt.makePart("text", { text: value, options })
const reasoning = (value: string, options: Options = {}) => Prompt.makePart("reasoning", { text: value, options })
const call = (id: string, providerExecuted = false) =>
  Prompt.makePart("tool-call", { id, name: "look", params: {}, providerExecuted })
const result = (id: string, value: unknown = `result of ${id}`, providerExecuted = false) =>
  Prompt.makePart("tool-result", { id, name: "look", isFailure: false, result: value, providerExecuted })
const request = (approvalId: string, toolCallId: string) =>
  Prompt.makePart("tool-approval-request", { approvalId, toolCallId })
const response = (approvalId: string, approved = true) =>
  Prompt.makePart("tool-approval-response", { approvalId, approved })

const opaque = (type: string) => Marks.set(text(""), { raw: { type, data: "c2VjcmV0" } })

const system = (content: string, options: Options = {}) => Prompt.makeMessage("system", { content, options })
const user = (...parts: ReadonlyArray<string | Prompt.UserMessagePart>) =>
  Prompt.makeMessage("user", { content: parts.map((_) => typeof _ === "string" ? text(_) : _) })
const machine = (value: string) => Marks.set(user(value), { source: "hook" })
const assistant = (...parts: ReadonlyArray<string | Prompt.AssistantMessagePart>) =>
  Prompt.makeMessage("assistant", { content: parts.map((_) => typeof _ === "string" ? text(_) : _) })
const tool = (...parts: ReadonlyArray<string | Prompt.ToolMessagePart>) =>
  Prompt.makeMessage("tool", { content: parts.map((_) => typeof _ === "string" ? result(_) : _) })

const signature: Options = { anthropic: { signature: "c2ln" } }
const item: Options = { openai: { itemId: "rs_1" } }

/** A message in one line, to be compared by eye. */
const show = (message: Prompt.Message): string =>
  message.role === "system"
    ? `system ${message.content}`
    : `${message.role} ` + (message.content as ReadonlyArray<Prompt.Part>).map((part) => {
      switch (part.type) {
        case "text":
          return part.text
        case "reasoning":
          return `(${part.text})`
        case "file":
          return "file"
        case "tool-call":
          return `?${part.id}`
        case "tool-result":
          return typeof part.result === "string" && part.result.startsWith("[no result")
            ? `=${part.id} ${part.result === Send.runningText ? "running" : "abandoned"}`
            : `=${part.id}${part.result === `result of ${part.id}` ? "" : ` ${String(part.result)}`}`
        case "tool-approval-request":
          return `ask ${part.approvalId}`
        case "tool-approval-response":
          return `${part.approved ? "yes" : "no"} ${part.approvalId}`
      }
    }).join(", ")

const first = "user " + Send.firstUserText

// ---------------------------------------------------------------------------------------------------------------------
// Cases
// ---------------------------------------------------------------------------------------------------------------------

interface Case {
  readonly kind: string
  readonly rules?: Wire.Rules
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly rule: ReadonlyArray<string>
  readonly repaired: ReadonlyArray<string>
  readonly repairs: ReadonlyArray<string>
}

const u = user("hello")

/** The id under which a call goes whose own is refused, or taken. */
const made = (id: string, nth = 1) => Ids.make(id, nth, Wire.all.ids)

const cases: ReadonlyArray<Case> = [
  {
    kind: "R4 one dead call stops everything: it is abandoned, repaired and reported",
    messages: [
      u,
      assistant(call("a")),
      ...Array.from({ length: 250 }, (_, i) => [user(`q${i}`), assistant(`a${i}`)]).flat()
    ],
    rule: ["pairing 1.0"],
    repaired: [
      "user hello",
      "assistant ?a",
      "tool =a abandoned",
      ...Array.from({ length: 250 }, (_, i) => [`user q${i}`, `assistant a${i}`]).flat()
    ],
    repairs: ["synthetic 1"]
  },
  {
    kind: "R6 reasoning cut from its follower goes whole",
    rules: Wire.openaiResponses,
    messages: [u, assistant("before", reasoning("thought", item)), user("next")],
    rule: ["reasoning 1.1"],
    repaired: ["user hello", "assistant before", "user next"],
    repairs: ["reasoning 1"]
  },
  {
    kind: "R6 an empty item that signed reasoning led to keeps its place",
    messages: [u, assistant(reasoning("thought", item), text("", { openai: { itemId: "msg_1" } }))],
    rule: ["text 1.1"],
    repaired: ["user hello", "assistant (thought), [empty]"],
    repairs: ["empty 1"]
  },
  {
    kind: "R26 replacement patterns in text are literal",
    messages: [system("$& $1"), user("$` $' $$"), system("$<x> $&"), assistant(call("$&")), user("$1")],
    rule: ["system 2", "pairing 3.0", "ids 3.0"],
    repaired: [
      "system $& $1\n\n$<x> $&",
      "user $` $' $$",
      `assistant ?${made("$&")}`,
      `tool =${made("$&")} abandoned`,
      "user $1"
    ],
    repairs: ["system-moved 2", "system-moved 0,2", "synthetic 3", "renamed 3"]
  },
  {
    kind: "R28 a prompt cut at the front: system first, no orphan result first",
    messages: [tool("a"), assistant("so"), system("rules"), user("next")],
    rule: ["first 0", "pairing 0.0", "system 2"],
    repaired: ["system rules", first, "assistant so", "user next"],
    repairs: ["system-moved 2", "orphan 0", "first-user 1"]
  },
  {
    kind: "a call still running",
    messages: [u, assistant(call("a"), call("b")), tool("b"), machine("hook")],
    rule: ["pairing 1.0"],
    repaired: ["user hello", "assistant ?a, ?b", "tool =a running", "tool =b", "user hook"],
    repairs: ["synthetic 1"]
  },
  {
    kind: "a call that a human passed by",
    messages: [u, assistant(call("a")), user("stop")],
    rule: ["pairing 1.0"],
    repaired: ["user hello", "assistant ?a", "tool =a abandoned", "user stop"],
    repairs: ["synthetic 1"]
  },
  {
    kind: "a call that waits for approval gets no result, answered or not",
    messages: [
      u,
      assistant(call("a"), request("r", "a"), call("b"), request("s", "b")),
      tool(response("s")),
      user("well?")
    ],
    rule: [],
    repaired: ["user hello", "assistant ?a, ask r, ?b, ask s", "tool yes s", "user well?"],
    repairs: []
  },
  {
    kind: "a resolved approval stays whole",
    messages: [u, assistant(call("a"), request("r", "a")), tool(response("r")), tool("a"), assistant("done")],
    rule: [],
    repaired: ["user hello", "assistant ?a, ask r", "tool yes r", "tool =a", "assistant done"],
    repairs: []
  },
  {
    kind: "a response without its request, and one given twice",
    messages: [u, assistant(call("a"), request("r", "a")), tool(response("x"), response("r"), response("r", false))],
    rule: ["approval 2.0", "approval 2.1"],
    repaired: ["user hello", "assistant ?a, ask r", "tool no r"],
    repairs: ["orphan 2", "duplicate 2"]
  },
  {
    kind: "a request without its call",
    messages: [u, assistant("hm", request("r", "gone")), tool(response("r")), user("go")],
    rule: ["approval 1.1", "approval 2.0"],
    repaired: ["user hello", "assistant hm", "user go"],
    repairs: ["orphan 1", "orphan 2"]
  },
  {
    kind: "a response behind a user message stays with its request",
    messages: [u, assistant(call("a"), request("r", "a")), user("wait"), tool(response("r"))],
    rule: ["results 3.0"],
    repaired: ["user hello", "assistant ?a, ask r", "tool yes r", "user wait"],
    repairs: ["moved 3"]
  },
  {
    kind: "results behind other messages",
    messages: [u, assistant(call("a"), call("b")), tool("a"), user("wait"), tool("b"), user("go")],
    rule: ["results 4.0"],
    repaired: ["user hello", "assistant ?a, ?b", "tool =a", "tool =b", "user wait", "user go"],
    repairs: ["moved 4"]
  },
  {
    kind: "results may come later in Responses",
    rules: Wire.openaiResponses,
    messages: [assistant(call("a"), call("b")), tool("b"), user("wait"), system("now"), tool("a")],
    rule: [],
    repaired: ["assistant ?a, ?b", "tool =b", "user wait", "system now", "tool =a"],
    repairs: []
  },
  {
    kind: "results in another order than their calls",
    messages: [u, assistant(call("a"), call("b")), tool("b"), tool("a")],
    rule: ["resultOrder 2.0"],
    repaired: ["user hello", "assistant ?a, ?b", "tool =a", "tool =b"],
    repairs: ["moved 2"]
  },
  {
    kind: "results of one message in another order than their calls",
    messages: [u, assistant(call("a"), call("b")), tool("b", "a"), user("go")],
    rule: ["resultOrder 2.0"],
    repaired: ["user hello", "assistant ?a, ?b", "tool =a, =b", "user go"],
    repairs: ["moved 2"]
  },
  {
    kind: "a call is asked about once: the later request stands, and what answers the earlier one goes",
    messages: [
      u,
      assistant(call("a"), request("r", "a"), request("s", "a")),
      tool(response("r")),
      tool(response("s", false)),
      user("so?")
    ],
    rule: ["approval 1.1", "approval 2.0"],
    repaired: ["user hello", "assistant ?a, ask s", "tool no s", "user so?"],
    repairs: ["duplicate 1", "orphan 2"]
  },
  {
    kind: "two calls of one message with one id: each has its own request",
    messages: [
      u,
      assistant(call("a"), call("a"), request("r", "a"), request("s", "a")),
      tool(response("r")),
      user("so?")
    ],
    rule: ["ids 1.1"],
    repaired: ["user hello", `assistant ?a, ?${made("a")}, ask r, ask s`, "tool yes r", "user so?"],
    repairs: ["renamed 1"]
  },
  {
    kind: "results in another order are fine by Anthropic",
    rules: Wire.anthropic,
    messages: [u, assistant(call("a"), call("b")), tool("b"), tool("a")],
    rule: [],
    repaired: ["user hello", "assistant ?a, ?b", "tool =b", "tool =a"],
    repairs: []
  },
  {
    kind: "a repeated result: the last one wins",
    messages: [u, assistant(call("a")), tool(result("a", "old")), user("on"), tool(result("a", "new"))],
    rule: ["pairing 2.0", "results 4.0"],
    repaired: ["user hello", "assistant ?a", "tool =a new", "user on"],
    repairs: ["duplicate 2", "moved 4"]
  },
  {
    kind: "a reused id: the nearest earlier unanswered call",
    messages: [u, assistant(call("a")), assistant(call("a")), tool(result("a", "1")), tool(result("a", "2"))],
    rule: ["ids 2.0", "results 4.0"],
    repaired: ["user hello", "assistant ?a", "tool =a 2", `assistant ?${made("a")}`, `tool =${made("a")} 1`],
    repairs: ["moved 4", "renamed 2", "renamed 3"]
  },
  {
    kind: "one id twice in one message: the first unanswered call",
    messages: [u, assistant(call("a"), call("a")), tool(result("a", "1"), result("a", "2")), tool(result("a", "3"))],
    rule: ["ids 1.1", "pairing 2.1"],
    repaired: ["user hello", `assistant ?a, ?${made("a")}`, "tool =a 1", `tool =${made("a")} 3`],
    repairs: ["duplicate 2", "moved 2", "renamed 1", "renamed 3"]
  },
  {
    kind: "what the provider ran stays in the assistant's turn",
    messages: [u, assistant(call("w", true)), assistant(result("w", "found", true), "so"), user("ok")],
    rule: [],
    repaired: ["user hello", "assistant ?w", "assistant =w found, so", "user ok"],
    repairs: []
  },
  {
    kind: "a paused turn may end with a call of the provider",
    messages: [u, assistant("searching", call("w", true))],
    rule: [],
    repaired: ["user hello", "assistant searching, ?w"],
    repairs: []
  },
  {
    kind: "a call of the provider that was passed by goes, its result elsewhere too",
    messages: [
      u,
      assistant("searching", call("w", true)),
      tool("w"),
      user("ok"),
      assistant(result("w", "late", true), "so")
    ],
    rule: ["provider-executed 1.1", "pairing 2.0", "provider-executed 4.0"],
    repaired: ["user hello", "assistant searching", "user ok", "assistant so"],
    repairs: ["orphan 2", "orphan 4", "orphan 1"]
  },
  {
    kind: "empty messages and texts",
    messages: [u, user(), assistant("", " \n", "yes"), user("😀", ""), assistant(" "), tool(), user("bye")],
    rule: ["empty 1", "text 2.0", "text 2.1", "text 3.1", "empty 4", "text 4.0", "empty 5"],
    repaired: ["user hello", "assistant yes", "user 😀", "user bye"],
    repairs: ["empty 1", "empty 2", "empty 2", "empty 3", "empty 4", "empty 4", "empty 5"]
  },
  {
    kind: "an empty text is fine by OpenAI, an empty message is not",
    rules: Wire.openaiChat,
    messages: [assistant(""), user(), user("")],
    rule: ["empty 1"],
    repaired: ["assistant ", "user "],
    repairs: ["empty 1"]
  },
  {
    kind: "reasoning that no provider takes back is no content",
    messages: [u, assistant(reasoning("just thinking")), user("bye")],
    rule: ["empty 1"],
    repaired: ["user hello", "user bye"],
    repairs: ["empty 1"]
  },
  {
    kind: "signed reasoning alone is content where nothing must follow it",
    rules: Wire.gemini,
    messages: [u, assistant(reasoning("", { google: { thoughtSignature: "c2ln" } }))],
    rule: [],
    repaired: ["user hello", "assistant ()"],
    repairs: []
  },
  {
    kind: "the result of a provider's call is no follower of reasoning: it is of the call's item",
    messages: [u, assistant("so", call("w", true)), assistant(reasoning("thought", item), result("w", "found", true))],
    rule: ["reasoning 2.0"],
    repaired: ["user hello", "assistant so, ?w", "assistant =w found"],
    repairs: ["reasoning 2"]
  },
  {
    kind: "an empty message between a call and its result does not separate them",
    messages: [u, assistant(call("a")), user(""), tool("a")],
    rule: ["empty 2", "text 2.0", "results 3.0"],
    repaired: ["user hello", "assistant ?a", "tool =a"],
    repairs: ["empty 2", "empty 2"]
  },
  {
    kind: "an empty output for the model gets a word",
    messages: [u, assistant(call("a")), tool({ ...result("a"), modelOutput: [] })],
    rule: ["text 2.0"],
    repaired: ["user hello", "assistant ?a", "tool =a"],
    repairs: ["empty 2"]
  },
  {
    kind: "an item that Prompt cannot hold is no empty text: words stand for it",
    messages: [u, assistant(opaque("compaction")), user(opaque("container_upload"), "see"), assistant("so")],
    rule: ["opaque 1.0", "opaque 2.0"],
    repaired: [
      "user hello",
      "assistant [left out: compaction]",
      "user [left out: container_upload], see",
      "assistant so"
    ],
    repairs: ["opaque 1", "opaque 2"]
  },
  {
    kind: "an item that Prompt cannot hold is sent as it came where a text may be empty",
    rules: Wire.openaiResponses,
    messages: [u, assistant(opaque("compaction")), user("go")],
    rule: [],
    repaired: ["user hello", "assistant ", "user go"],
    repairs: []
  },
  {
    kind: "an item follows signed reasoning like any other",
    messages: [u, assistant(reasoning("thought", item), opaque("web_search_call")), user("go")],
    rule: ["opaque 1.1"],
    repaired: ["user hello", "assistant (thought), [left out: web_search_call]", "user go"],
    repairs: ["opaque 1"]
  },
  {
    kind: "an empty prompt",
    rules: Wire.openaiChat,
    messages: [],
    rule: ["first 0"],
    repaired: [first],
    repairs: ["first-user "]
  },
  {
    kind: "nothing but system messages",
    messages: [system("rules")],
    rule: ["first 1"],
    repaired: ["system rules", first],
    repairs: ["first-user "]
  },
  {
    kind: "several system messages at the front are fine by Anthropic",
    rules: Wire.anthropic,
    messages: [system("one"), system("two"), u],
    rule: [],
    repaired: ["system one", "system two", "user hello"],
    repairs: []
  },
  {
    kind: "developer messages stay in place in Responses",
    rules: Wire.openaiResponses,
    messages: [u, system("mode: plan"), assistant("ok")],
    rule: [],
    repaired: ["user hello", "system mode: plan", "assistant ok"],
    repairs: []
  }
]

describe("Wire, case by case", () => {
  for (const { kind, messages, repaired, repairs, rule, rules = Wire.all } of cases) {
    it(kind, () => {
      const prompt = Prompt.fromMessages(messages)
      const violations = Wire.check(prompt, rules)
      assert.deepStrictEqual(
        violations.map((_) => `${_.rule} ${_.index}${_.part === undefined ? "" : `.${_.part}`}`),
        rule
      )
      const report = Wire.repairWithReport(prompt, rules)
      assert.deepStrictEqual(report.prompt.content.map(show), repaired)
      assert.deepStrictEqual(report.repairs.map((_) => `${_.kind} ${_.messages}`), repairs)
      if (rule.length === 0) assert.strictEqual(report.prompt, prompt)
    })
  }

  it("says in words what is wrong and what was done", () => {
    const prompt = Prompt.fromMessages([u, assistant(call("a")), user("stop"), tool("b")])
    assert.deepStrictEqual(Wire.check(prompt, Wire.all), [
      { rule: "pairing", index: 1, part: 0, detail: "the call a has no result" },
      { rule: "pairing", index: 3, part: 0, detail: "the result b has no call before it" }
    ])
    assert.deepStrictEqual(Wire.repairWithReport(prompt, Wire.all).repairs, [
      { kind: "orphan", messages: [3], detail: "the result b has no call before it" },
      { kind: "synthetic", messages: [1], detail: "the call a was passed by without a result" }
    ])
  })

  it("keeps the item under its mark, repaired and read by an exporter", () => {
    const part = opaque("compaction")
    const prompt = Wire.repair(Prompt.fromMessages([u, assistant(part)]), Wire.all)
    const message = prompt.content[1]!
    const sent = message.role === "assistant" ? message.content[0]! : undefined
    assert.deepStrictEqual(Marks.of(sent!).raw, Marks.of(part).raw)
    assert.deepStrictEqual(Opaque.itemOf(sent!), Marks.of(part).raw)
    assert.isUndefined(Opaque.itemOf(Marks.set(text("written by a person"), { raw: { type: "compaction" } })))
    assert.strictEqual(Opaque.wordsFor({ type: "a\u001b[31m" }), "[left out: an item]")
    const large = Marks.set(text(""), { raw: { type: "compaction", data: "x ".repeat(4_000) } })
    const price = Estimator.chars.price(assistant(large))
    assert.isAbove(price, 1_500)
    const [, repaired] = Wire.repair(Prompt.fromMessages([u, assistant(large)]), Wire.all).content
    assert.strictEqual(Estimator.chars.price(repaired!), price)
  })

  it("marks what it adds as a machine's", () => {
    const { content } = Wire.repair(Prompt.fromMessages([assistant(call("a"))]), Wire.all)
    assert.deepStrictEqual(Marks.of(content[0]!), { source: "context-compaction", ephemeral: true })
    const added = content[2]!
    assert.strictEqual(added.role, "tool")
    assert.deepStrictEqual(Marks.of((added as Prompt.ToolMessage).content[0]!), { source: "context-compaction" })
    assert.strictEqual(content[0], Send.firstUser())
  })

  it("fills an empty output of a result with one word", () => {
    const blank = { ...result("a"), modelOutput: [text(" "), text("")] }
    const half = { ...result("b"), modelOutput: [text(""), text("kept")] }
    const prompt = Prompt.fromMessages([u, assistant(call("a"), call("b")), tool(blank, half)])
    const message = Wire.repair(prompt, Wire.all).content[2]! as Prompt.ToolMessage
    assert.deepStrictEqual(
      message.content.map((_) => (_ as Prompt.ToolResultPart).modelOutput!.map((_) => (_ as Prompt.TextPart).text)),
      [["[empty]"], ["kept"]]
    )
  })

  it("merges system messages with their options, the last of a key winning", () => {
    const one = system("one", { anthropic: { cacheControl: { type: "ephemeral" } }, x: 1 })
    const two = system("two", { x: 2 })
    assert.deepStrictEqual(Send.mergeSystem([one, two], Wire.all), [
      system("one\n\ntwo", { anthropic: { cacheControl: { type: "ephemeral" } }, x: 2 })
    ])
    const single = [one]
    assert.strictEqual(Send.mergeSystem(single, Wire.all), single)
    const several = [one, two]
    assert.strictEqual(Send.mergeSystem(several, Wire.anthropic), several)
    assert.deepStrictEqual(Send.mergeSystem([system(" "), one], Wire.all), [one])
  })

  it("keeps the strictest of every rule in all", () => {
    const order = {
      results: ["later", "directly"],
      resultOrder: ["any", "call"],
      system: ["anywhere", "first", "single"],
      first: ["any", "user"],
      text: ["any", "nonEmpty", "nonBlank"],
      reasoning: ["any", "followed"]
    } as const
    for (const field of Object.keys(order) as Array<keyof typeof order>) {
      const values: ReadonlyArray<string> = order[field]
      const strictest = Math.max(...providers.map((_) => values.indexOf(_[field])))
      assert.strictEqual(values.indexOf(Wire.all[field]), strictest, field)
    }
  })

  it.effect("decodes rules from JSON and refuses a rule it does not know", () =>
    Effect.gen(function*() {
      const decode = Schema.decodeUnknownEffect(Wire.Rules)
      assert.deepStrictEqual(yield* decode(JSON.parse(JSON.stringify(Wire.all))), Wire.all)
      const error = yield* Effect.flip(decode({ ...Wire.all, system: "last" }))
      assert.include(String(error), "system")
    }))

  it("is linear: ten times the messages take about ten times as long", () => {
    // One id for all calls: the search for the nearest unanswered call must not walk over those that are answered.
    const best = (turns: number) => {
      const messages: Array<Prompt.Message> = [u]
      for (let i = 0; i < turns; i++) messages.push(assistant(call("call_0")), tool(result("call_0")))
      const times = Array.from({ length: 5 }, () => {
        const start = performance.now()
        assert.isTrue(Wire.check(messages, Wire.all).every(({ rule }) => rule === "ids"))
        return performance.now() - start
      })
      return Math.min(...times)
    }
    best(2000)
    // Quadratic work would be a hundred times as much.
    assert.isBelow(best(20000) / best(2000), 40)
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// Approvals, as the real LanguageModel resolves them
// ---------------------------------------------------------------------------------------------------------------------

describe("Wire before LanguageModel", () => {
  const Look = Tool.make("look", { success: Schema.String, needsApproval: true })

  /** What the provider is sent for the prompt, and how often the tool ran. */
  const send = Effect.fnUntraced(function*(prompt: Prompt.Prompt) {
    const runs = yield* Ref.make(0)
    const sent = yield* Ref.make(Prompt.empty)
    const model = yield* LanguageModel.make({
      generateText: (options) => Ref.set(sent, options.prompt).pipe(Effect.as([])),
      streamText: () => Stream.empty
    })
    const toolkit = yield* Toolkit.make(Look).pipe((kit) =>
      Effect.provide(kit, kit.toLayer({ look: () => Ref.update(runs, (_) => _ + 1).pipe(Effect.as("seen")) }))
    )
    yield* model.generateText({ prompt, toolkit })
    return { runs: yield* Ref.get(runs), sent: (yield* Ref.get(sent)).content }
  })

  const twice = Prompt.fromMessages([
    u,
    assistant(call("a"), call("b"), request("r", "a")),
    tool("b"),
    tool(response("r")),
    tool(response("r"))
  ])

  it.effect("an approval given twice runs the tool twice", () =>
    Effect.gen(function*() {
      const { runs, sent } = yield* send(twice)
      assert.strictEqual(runs, 2)
      assert.isNotEmpty(judges.anthropic!(sent))
    }))

  it.effect("repaired, the tool runs once and the provider takes what is sent", () =>
    Effect.gen(function*() {
      const { runs, sent } = yield* send(Wire.repair(twice, Wire.anthropic))
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual(sent.map(show), ["user hello", "assistant ?a, ?b", "tool =b", "tool =a seen"])
      assert.deepStrictEqual(judges.anthropic!(sent), [])
    }))

  it.effect("a call without a result is not run, its synthetic result is sent", () =>
    Effect.gen(function*() {
      const { runs, sent } = yield* send(Wire.repair(Prompt.fromMessages([u, assistant(call("a"))]), Wire.all))
      assert.strictEqual(runs, 0)
      assert.deepStrictEqual(sent.map(show), ["user hello", "assistant ?a", "tool =a running"])
    }))
})

// ---------------------------------------------------------------------------------------------------------------------
// Properties
// ---------------------------------------------------------------------------------------------------------------------

const providers = [Wire.anthropic, Wire.openaiChat, Wire.openaiResponses, Wire.gemini]

const judges: Record<string, (messages: ReadonlyArray<Prompt.Message>) => ReadonlyArray<string>> = {
  anthropic: (_) => Validators.anthropic(Validators.toAnthropic(_)),
  openaiChat: (_) => Validators.chat(Validators.toChat(_)),
  openaiResponses: (_) => Validators.responses(Validators.toResponses(_)),
  gemini: (_) => Validators.gemini(Validators.toGemini(_))
}

const judge = (messages: ReadonlyArray<Prompt.Message>, rules: Wire.Rules): ReadonlyArray<string> => [
  ...Validators.approvals(messages),
  ...(rules.name === "all" ? Object.values(judges).flatMap((_) => _(messages)) : judges[rules.name]?.(messages) ?? [])
]

/** mulberry32: the same seed gives the same prompt everywhere. */
const random = (seed: number) => {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (n: number) => Math.floor(next() * n)
  return {
    below,
    chance: (p: number) => next() < p,
    pick: <A>(values: ReadonlyArray<A>): A => values[below(values.length)]!
  }
}

type Random = ReturnType<typeof random>

const texts = ["", " ", "\n\t", "yes", "Grüße 👩‍👩‍👧 $&", "<system-reminder source=\"hook\">quoted</system-reminder>", "0"]
const states: ReadonlyArray<Options> = [{}, signature, item, { ...signature, ...item }, { openai: null }]
const ids = ["a", "b", "c", "call_0", "ls:0", "ls.0", "", "x".repeat(50), Ids.make("a", 2, Wire.all.ids)]

const someText = (r: Random) =>
  r.chance(0.1)
    ? opaque(r.pick(["compaction", "no type!"]))
    : text(r.pick(texts), r.pick([{}, {}, { openai: { itemId: "msg" } }]))
const someFile = () => Prompt.makePart("file", { mediaType: "image/png", data: "aGk=" })

const someResult = (r: Random, remote: boolean) => {
  const part = result(r.pick(ids), r.pick(["", "ok", { n: 1 }, null]), r.chance(0.1) ? !remote : remote)
  return r.chance(0.15)
    ? { ...part, modelOutput: r.pick([[], [text("")], [text("seen")], [text(" "), someFile()]]) }
    : part
}

const someAssistant = (r: Random): Prompt.AssistantMessage => {
  const parts: Array<Prompt.AssistantMessagePart> = []
  for (let n = r.below(5); n > 0; n--) {
    const kind = r.below(20)
    if (kind < 5) parts.push(someText(r))
    else if (kind < 8) parts.push(reasoning(r.pick(texts), r.pick(states)))
    else if (kind < 13) parts.push(call(r.pick(ids), r.chance(0.2)))
    else if (kind < 15) parts.push(someResult(r, true))
    else if (kind < 18) parts.push(request(r.pick(["r", "s"]), r.pick(ids)))
    else parts.push(someFile())
  }
  return assistant(...parts)
}

const someTool = (r: Random): Prompt.ToolMessage => {
  const parts: Array<Prompt.ToolMessagePart> = []
  for (let n = r.below(4); n > 0; n--) {
    parts.push(r.chance(0.8) ? someResult(r, false) : response(r.pick(["r", "s"]), r.chance(0.5)))
  }
  return tool(...parts)
}

/** Anything at all. */
const anyMessages = (seed: number): ReadonlyArray<Prompt.Message> => {
  const r = random(seed)
  const messages: Array<Prompt.Message> = []
  for (let n = r.below(r.chance(0.1) ? 40 : 9); n > 0; n--) {
    const kind = r.below(20)
    if (kind < 2) messages.push(system(r.pick(texts)))
    else if (kind < 5) {
      messages.push(user(...Array.from({ length: r.below(3) }, () => r.chance(0.9) ? someText(r) : someFile())))
    } else if (kind < 6) messages.push(machine(r.pick(texts)))
    else if (kind < 13) messages.push(someAssistant(r))
    else messages.push(someTool(r))
  }
  return messages
}

/** A conversation as an agent has it, valid under every rule; `damage` drops, copies and swaps messages of it. */
const conversation = (seed: number, damage: number, reuses = true): ReadonlyArray<Prompt.Message> => {
  const r = random(seed)
  const messages: Array<Prompt.Message> = r.chance(0.7) ? [system("rules")] : []
  let id = 0
  for (let turns = 1 + r.below(4); turns > 0; turns--) {
    messages.push(user("question 👍", ...(r.chance(0.2) ? [someFile()] : [])))
    if (r.chance(0.2)) messages.push(machine("hook"))
    for (let steps = r.below(4); steps > 0; steps--) {
      const parts: Array<Prompt.AssistantMessagePart> = []
      if (r.chance(0.4)) parts.push(reasoning(r.pick(["", "thought"]), r.pick([{}, signature, item])))
      if (r.chance(0.3)) parts.push(text("I will look"))
      if (r.chance(0.2)) parts.push(call(`w${id}`, true), result(`w${id}`, "found", true))
      // Ids are reused from step to step, as some providers do.
      const calls = Array.from(
        { length: 1 + r.below(3) },
        (_, i) => call(!reuses || r.chance(0.4) ? `x${id++}` : r.chance(0.8) ? `call_${i}` : `ls:${i}`)
      )
      const asked = calls.map((_, i) => r.chance(0.15) ? `approval_${id++}_${i}` : undefined)
      parts.push(...calls)
      asked.forEach((approval, i) => approval !== undefined && parts.push(request(approval, calls[i]!.id)))
      messages.push(assistant(...parts))
      const answers: Array<Prompt.ToolMessagePart> = []
      calls.forEach((_, i) => {
        if (asked[i] !== undefined) answers.push(response(asked[i]))
        answers.push(result(_.id, r.pick(["ok", "", "12 files"])))
      })
      if (r.chance(0.5)) messages.push(tool(...answers))
      else messages.push(...answers.map((_) => tool(_)))
    }
    messages.push(assistant(...(r.chance(0.3) ? [reasoning("thought", signature)] : []), text("answer")))
  }
  for (let n = damage; n > 0 && messages.length > 0; n--) {
    const at = r.below(messages.length)
    const kind = r.below(4)
    if (kind === 0) messages.splice(at, 1)
    else if (kind === 1) messages.splice(r.below(messages.length), 0, messages[at]!)
    else if (kind === 2) messages.splice(r.below(messages.length), 0, ...messages.splice(at, 1))
    else messages.splice(at, 0, r.pick([user(), user(" "), assistant(call("gone")), tool("orphan"), system("later")]))
  }
  return messages
}

const someRules = (seed: number): Wire.Rules => {
  const r = random(seed * 7919)
  return {
    name: "mixed",
    results: r.pick(["later", "directly"]),
    resultOrder: r.pick(["any", "call"]),
    system: r.pick(["anywhere", "first", "single"]),
    first: r.pick(["any", "user"]),
    text: r.pick(["any", "nonEmpty", "nonBlank"]),
    reasoning: r.pick(["any", "followed"]),
    ids: { characters: r.pick(["any", "word"]), length: r.pick([null, 24, 40, 64]) }
  }
}

const seeds = Array.from({ length: 600 }, (_, i) => i + 1)

/** Every seed: anything, an agent's conversation as it is, and one that was damaged. */
const forAll = (
  property: (messages: ReadonlyArray<Prompt.Message>, rules: Wire.Rules, label: string) => void
): void => {
  for (const seed of seeds) {
    const inputs = [anyMessages(seed), conversation(seed, 0), conversation(seed, 1 + seed % 6)]
    inputs.forEach((messages, kind) => {
      for (const rules of [Wire.all, providers[(seed + kind) % 4]!, someRules(seed)]) {
        property(
          messages,
          rules,
          `seed ${seed}, input ${kind}, ${JSON.stringify(rules)}\n${messages.map(show).join("\n")}`
        )
      }
    })
  }
}

describe("Wire, for every prompt", () => {
  it("repair leaves no violation, and is idempotent", () => {
    forAll((messages, rules, label) => {
      const once = Wire.repair(Prompt.fromMessages(messages), rules)
      const left = Wire.check(once, rules)
      if (left.length > 0) assert.fail(`${JSON.stringify(left)}\n${label}\n->\n${once.content.map(show).join("\n")}`)
      assert.strictEqual(Wire.repair(once, rules), once)
    })
  })

  it("a valid prompt comes back as the same object", () => {
    for (const seed of seeds) {
      const prompt = Prompt.fromMessages(conversation(seed, 0, false))
      for (const rules of [...providers, Wire.all]) {
        assert.deepStrictEqual(Wire.check(prompt, rules), [], `seed ${seed}`)
        assert.strictEqual(Wire.repair(prompt, rules), prompt)
      }
    }
  })

  it("the second opinion finds nothing in a repaired prompt", () => {
    forAll((messages, rules, label) => {
      const once = Wire.repair(Prompt.fromMessages(messages), rules)
      const refused = judge(once.content, rules)
      if (refused.length > 0) assert.fail(`${refused.join("\n")}\n${label}\n->\n${once.content.map(show).join("\n")}`)
    })
  })

  it("the check finds something whenever the second opinion does", () => {
    let both = 0
    forAll((messages, rules, label) => {
      const refused = judge(messages, rules)
      if (refused.length === 0) return
      both++
      if (Wire.check(messages, rules).length === 0) assert.fail(`${refused.join("\n")}\n${label}`)
    })
    assert.isAbove(both, seeds.length)
  })

  it("a message that no repair names is the same object in the result, once for each time it was given", () => {
    forAll((messages, rules, label) => {
      const { prompt, repairs } = Wire.repairWithReport(Prompt.fromMessages(messages), rules)
      const named = new Set(repairs.flatMap((_) => _.messages))
      const left = new Map<Prompt.Message, number>()
      for (const message of prompt.content) left.set(message, (left.get(message) ?? 0) + 1)
      messages.forEach((message, index) => {
        if (named.has(index)) return
        const count = left.get(message) ?? 0
        if (count === 0) assert.fail(`message ${index} is lost and not named\n${label}`)
        left.set(message, count - 1)
      })
      for (const index of named) assert.isBelow(index, messages.length)
    })
  })

  it("everything but results keeps its order; texts, calls and signed reasoning are never edited", () => {
    forAll((messages, rules, label) => {
      const { content } = Wire.repair(Prompt.fromMessages(messages), rules)
      const parts = new Set(messages.flatMap((_): ReadonlyArray<Prompt.Part> => _.role === "system" ? [] : _.content))
      const calls = new Map([...parts].flatMap((_) => _.type === "tool-call" ? [[_.params, _] as const] : []))
      const order = new Map<Prompt.Part, number>()
      messages.forEach((message, i) => {
        if (message.role === "system" || message.role === "tool") return
        for (const part of message.content) order.set(part, i)
      })
      // Damaged conversations hold a message twice: then the order of its parts says nothing.
      const twice = new Set(messages).size < messages.length
      let last = -1
      for (const message of content) {
        if (message.role === "system" || message === Send.firstUser()) continue
        for (const part of message.content) {
          const isWord = part.type === "text" &&
            (part.text === Send.placeholderText || part.text !== "" && Opaque.itemOf(part) !== undefined)
          if (part.type === "tool-result" || isWord) continue
          // Under another id a call is another object, with the same parameters.
          const own = part.type === "tool-call" ? calls.get(part.params) : undefined
          if (!parts.has(own ?? part) && part.type !== "tool-approval-request") {
            assert.fail(`an edited ${part.type}\n${label}`)
          }
          const at = order.get(own ?? part)
          if (at === undefined || twice) continue
          if (at < last) assert.fail(`message ${at} moved before message ${last}\n${label}`)
          last = at
        }
      }
    })
  })

  it("answers every call once, and only calls that an approval request names not at all", () => {
    forAll((messages, rules, label) => {
      const { content } = Wire.repair(Prompt.fromMessages(messages), rules)
      const parts = content.flatMap((_): ReadonlyArray<Prompt.Part> => _.role === "assistant" ? _.content : [])
      const named = new Set(parts.flatMap((_) => _.type === "tool-approval-request" ? [_.toolCallId] : []))
      const calls = parts.flatMap((_) => _.type === "tool-call" && !_.providerExecuted ? [_.id] : [])
      const results = content.flatMap((_) => _.role === "tool" ? _.content : []).filter((_) => _.type === "tool-result")
      const least = calls.filter((_) => !named.has(_)).length
      if (results.length > calls.length || results.length < least) {
        assert.fail(`${calls.length} calls, ${results.length} results\n${label}`)
      }
    })
  })

  it("is tested on every violation and every repair", () => {
    const rules = new Set<string>()
    const kinds = new Set<string>()
    forAll((messages, which) => {
      for (const { rule } of Wire.check(messages, which)) rules.add(rule)
      for (const { kind } of Wire.repairWithReport(Prompt.fromMessages(messages), which).repairs) kinds.add(kind)
    })
    assert.sameMembers([...rules], [
      "results",
      "resultOrder",
      "system",
      "first",
      "text",
      "reasoning",
      "pairing",
      "provider-executed",
      "approval",
      "empty",
      "ids",
      "opaque"
    ])
    assert.sameMembers([...kinds], [
      "orphan",
      "duplicate",
      "synthetic",
      "moved",
      "empty",
      "reasoning",
      "first-user",
      "system-moved",
      "renamed",
      "opaque"
    ])
  })
})
