/**
 * A provider's own compaction as the summariser: its owner is sent what it made, every other route what can be read. The
 * answers have the shapes that the providers document; see `src/format/parts/{anthropic,openai}Compaction.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Checkpoint from "effect-compaction/Checkpoint"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as AnthropicMessages from "effect-compaction/format/AnthropicMessages"
import * as OpenAiResponses from "effect-compaction/format/OpenAiResponses"
import * as Marks from "effect-compaction/Marks"
import * as SessionStore from "effect-compaction/SessionStore"
import type * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Wire from "effect-compaction/Wire"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Owned from "../../src/policy/owned.ts"
import * as Adapters from "../app/adapters.ts"
import * as Fake from "../app/fake.ts"
import { bytesOf, user, words } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Sessions from "./Sessions.ts"

type Json = Schema.JsonObject

interface Sent {
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly body: Json
}

/** What a body of a request is, and what a test answers with. */
const bodyOf = ({ body }: HttpClientRequest.HttpClientRequest): Json =>
  body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(body.body)) as Json : {}

/** A client that answers as a function of the request says, and notes every request. */
const server = (answer: (sent: Sent, call: number) => Effect.Effect<Response, HttpClientError.HttpClientError>) => {
  const sent: Array<Sent> = []
  const client = HttpClient.make((request, url) => {
    const each = { url: url.href, headers: { ...request.headers }, body: bodyOf(request) }
    return Effect.map(
      Effect.suspend(() => answer(each, sent.push(each))),
      (response) => HttpClientResponse.fromWeb(request, response)
    )
  })
  return { sent, client }
}

/** Whether a request asks for a compaction. */
const isAsking = ({ body, url }: Sent): boolean => "compaction" in body || url.endsWith("/compact")

const json = (value: unknown, status = 200) =>
  Effect.succeed(new Response(typeof value === "string" ? value : JSON.stringify(value), { status }))

const block = (call = 1): Json => ({
  type: "compaction",
  content: `Summary ${call}: the user has all files read, and none of them deleted.`,
  signature: `EuYBCkQY${call}`
})

/** As documented for a compaction on demand. */
const anthropicAnswer = (call = 1): Json => ({
  id: `msg_${call}`,
  type: "message",
  role: "assistant",
  model: "claude-opus-5-5-20260901",
  content: [block(call)],
  stop_reason: "compaction",
  usage: {
    input_tokens: 0,
    output_tokens: 0,
    iterations: [{ type: "compaction", input_tokens: 144, output_tokens: 276, cache_read_input_tokens: 1_000 }]
  }
})

const retained: Json = {
  type: "message",
  id: "msg_1",
  role: "user",
  status: "completed",
  content: [{ type: "input_text", text: "Read all the files. You must never delete one." }]
}

const item = (call = 1): Json => ({ type: "compaction", id: `cmp_${call}`, encrypted_content: `gAAAAB${call}==` })

/** As documented for the compact endpoint. */
const openAiAnswer = (call = 1): Json => ({
  id: `resp_${call}`,
  object: "response.compaction",
  created_at: 1_764_967_971,
  output: [retained, item(call)],
  usage: {
    input_tokens: 139,
    input_tokens_details: { cached_tokens: 100 },
    output_tokens: 438,
    output_tokens_details: { reasoning_tokens: 64 },
    total_tokens: 577
  }
})

const providers = {
  anthropic: {
    route: "anthropic/claude-opus-5-5",
    layer: AnthropicMessages.layerCompaction,
    answer: anthropicAnswer,
    items: (call = 1) => [block(call)],
    messages: (prompt: Prompt.Prompt) => AnthropicMessages.write(prompt.content).value.messages as ReadonlyArray<Json>,
    sent: (body: Json) => body.messages as ReadonlyArray<Json>,
    // The item is the beginning, which is no user's.
    rules: { ...Wire.anthropic, first: "any" }
  },
  openai: {
    route: "openai/gpt-5.5",
    layer: OpenAiResponses.layerCompaction,
    answer: openAiAnswer,
    items: (call = 1) => [retained, item(call)],
    messages: (prompt: Prompt.Prompt) => OpenAiResponses.write(prompt.content).value.input as ReadonlyArray<Json>,
    sent: (body: Json) => body.input as ReadonlyArray<Json>,
    rules: Wire.openaiResponses
  }
} as const

type Provider = keyof typeof providers

const all = ["anthropic", "openai"] as const

const modelOf = (provider: Provider): string => providers[provider].route.split("/")[1]!

/** The summariser of a provider whose client answers so. */
const service = (
  provider: Provider,
  client: HttpClient.HttpClient,
  options: Partial<Summarizer.NativeOptions> = {}
): Effect.Effect<Summarizer.Service | undefined> =>
  Effect.provide(
    Summarizer.Summarizer,
    providers[provider].layer({ model: modelOf(provider), ...options }).pipe(
      Layer.provide(Layer.succeed(HttpClient.HttpClient, client))
    )
  )

/** A session that has absorbed what the provider made, and the last view of it. */
const absorbed = Effect.fnUntraced(function*(provider: Provider, options: Partial<Summarizer.NativeOptions> = {}) {
  const { client, sent } = server((_, call) => json(providers[provider].answer(call)))
  const summarizer = yield* service(provider, client, options)
  const watched = yield* Sessions.watched(Sessions.withSummary(), { summarizer })
  yield* Sessions.playToTrigger(watched.manager)
  const last = (yield* Sessions.play(watched.manager, 12, 7)).at(-1)!
  assert.deepStrictEqual(yield* watched.tags, ["SummaryStarted", "SummaryReady", "SummaryAbsorbed"])
  return { ...watched, sent, last, summarizer }
})

/** The conversation without its system messages. */
const conversation = ({ content }: Prompt.Prompt) => content.filter(({ role }) => role !== "system")

const bytes = (value: unknown): string => JSON.stringify(value)

/** The first of the items in a body, and how many of them are elsewhere in it. */
const itemsIn = (messages: ReadonlyArray<Json>): number => bytes(messages).split("\"type\":\"compaction\"").length - 1

describe("what is asked for", () => {
  it.effect("Anthropic: the conversation up to the end of the span, with the tools, and no directive", () =>
    Effect.gen(function*() {
      const { sent } = yield* absorbed("anthropic", { apiKey: Redacted.make("secret") })
      const [asked] = sent
      assert.strictEqual(sent.length, 1)
      assert.strictEqual(asked!.url, "https://api.anthropic.com/v1/messages")
      assert.strictEqual(asked!.headers["anthropic-beta"], "compact-2026-09-04")
      assert.strictEqual(asked!.headers["anthropic-version"], "2023-06-01")
      assert.strictEqual(asked!.headers["x-api-key"], "secret")
      const { messages, ...rest } = asked!.body
      assert.deepStrictEqual(rest, {
        model: "claude-opus-5-5",
        max_tokens: 4_096,
        system: "You are a careful engineer.",
        compaction: { type: "summarize" }
      })
      const [first, ...others] = messages as ReadonlyArray<Json>
      assert.deepStrictEqual(first, {
        role: "user",
        content: "Read all the files. You must never delete one."
      })
      assert.isAbove(others.length, 10)
      assert.isFalse(bytes(messages).includes("## Next"))
    }))

  it.effect("OpenAI: the same, the system prompt as instructions, so that it is not among what is kept", () =>
    Effect.gen(function*() {
      const { sent } = yield* absorbed("openai", { apiKey: Redacted.make("secret"), url: "https://eu.example/v1" })
      const [asked] = sent
      assert.strictEqual(asked!.url, "https://eu.example/v1/responses/compact")
      assert.strictEqual(asked!.headers.authorization, "Bearer secret")
      const { input, ...rest } = asked!.body
      assert.deepStrictEqual(rest, { model: "gpt-5.5", instructions: "You are a careful engineer." })
      assert.strictEqual((input as ReadonlyArray<Json>)[0]!.role, "user")
      assert.isFalse(bytes(input).includes("careful engineer"))
    }))

  it.effect("with the tools of the conversation, and what a person asked for", () =>
    Effect.gen(function*() {
      const { client, sent } = server((_, call) => json(anthropicAnswer(call)))
      const summarizer = yield* service("anthropic", client)
      const { manager } = yield* Sessions.watched(Sessions.withSummary({ trigger: 1 }), { summarizer })
      const read = Tool.make("read", {
        description: "Reads a file.",
        parameters: Schema.Struct({ path: Schema.String })
      })
      yield* Effect.provideService(Sessions.playToTrigger(manager), Summarizer.Tools, { read })
      yield* manager.compactNow({ focus: "the names" })
      const [{ body }] = sent as [Sent]
      assert.deepInclude((body.tools as ReadonlyArray<Json>)[0], { name: "read", description: "Reads a file." })
      assert.isTrue(bytes(body.compaction).endsWith("Keep an eye on: the names\"}"))
    }))

  it.effect("at a threshold, where a server knows no other way", () =>
    Effect.gen(function*() {
      const anthropic = yield* absorbed("anthropic", { method: "threshold" })
      assert.strictEqual(anthropic.sent[0]!.headers["anthropic-beta"], "compact-2026-01-12")
      assert.deepStrictEqual(anthropic.sent[0]!.body.context_management, {
        edits: [{
          type: "compact_20260112",
          trigger: { type: "input_tokens", value: 50_000 },
          pause_after_compaction: true
        }]
      })
      // The reply behind the item is no part of the conversation.
      const reply = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Go on?" }] }
      const { client, sent } = server(() => json({ ...openAiAnswer(), output: [item(0), item(1), reply] }))
      const made = yield* asking("openai", client, { method: "threshold" })
      assert.deepStrictEqual(made.native?.items, [item(1)])
      assert.strictEqual(sent[0]!.url, "https://api.openai.com/v1/responses")
      assert.deepStrictEqual(sent[0]!.body.context_management, [{ type: "compaction", compact_threshold: 1_000 }])
      assert.isFalse(sent[0]!.body.store)
    }))
})

/** Asks once, beside any session. */
const asking = Effect.fnUntraced(function*(
  provider: Provider,
  client: HttpClient.HttpClient,
  options: Partial<Summarizer.NativeOptions> = {}
) {
  const made = yield* service(provider, client, options)
  const messages = Sessions.turnOf(1)
  return yield* made!.summarize({
    prompt: Prompt.fromMessages([...Sessions.opening, ...messages]),
    messages,
    text: "",
    layout: "conversation",
    fallback: null,
    focus: undefined,
    maxTokens: 400
  })
})

describe.each(all)("%s", (provider) => {
  const { items, messages, route, rules, sent: sentOf } = providers[provider]

  it.effect("its owner is sent the items in place of all that they stand for; every other route the twin", () =>
    Effect.gen(function*() {
      const { last, told } = yield* absorbed(provider)
      const own = Checkpoint.forOwner(last.prompt, route)
      const [first] = conversation(own)
      assert.strictEqual(first?.role, "assistant")
      const written = messages(own)
      const head = provider === "anthropic" ? written[0]!.content as ReadonlyArray<Json> : written.slice(1, 3)
      assert.deepStrictEqual(head.slice(0, items().length), items())
      assert.strictEqual(itemsIn(written), 1)
      assert.isFalse(bytes(written).includes("context-summary"))
      assert.deepStrictEqual(Wire.check(own, rules), [])
      assert.deepStrictEqual(Wire.check(last.prompt, rules), [])
      // What came behind the span is the same for both.
      const at = last.prompt.content.findLastIndex((message) => Marks.of(message).checkpoint !== undefined)
      assert.strictEqual(bytes(conversation(own).slice(1)), bytes(last.prompt.content.slice(at + 1)))
      for (const other of ["other/model", provider === "openai" ? "anthropic/claude-opus-5-5" : "openai/gpt-5.5"]) {
        const twin = Checkpoint.forOwner(last.prompt, other)
        assert.strictEqual(twin, last.prompt)
        const said = bytesOf(twin)
        assert.isTrue(said.includes("context-summary"))
        // The words of people are in it, and what the calls were about.
        assert.isTrue(said.includes("You must never delete one."))
        assert.isTrue(said.includes("file-3"))
        assert.deepStrictEqual(Wire.check(twin, Wire.all), [])
      }
      // And back, with nothing between that would have to remember.
      assert.strictEqual(bytesOf(Checkpoint.forOwner(last.prompt, route)), bytesOf(own))
      const ready = (yield* told).find((event) => event._tag === "SummaryReady")
      assert.deepInclude(ready, {
        provider,
        layout: "conversation",
        fallback: null,
        ...(provider === "anthropic"
          ? { model: "claude-opus-5-5-20260901", input: 1_144, cacheRead: 1_000, output: 276 }
          : { model: "gpt-5.5", input: 139, cacheRead: 100, output: 438 })
      })
    }))

  it.effect("an owner of more routes than one is named by a pattern", () =>
    Effect.gen(function*() {
      const { last } = yield* absorbed(provider, { owner: `${provider}/*` })
      assert.notStrictEqual(Checkpoint.forOwner(last.prompt, `${provider}/another-one`), last.prompt)
      const alone = yield* absorbed(provider)
      assert.strictEqual(Checkpoint.forOwner(alone.last.prompt, `${provider}/another-one`), alone.last.prompt)
    }))

  it.effect("the prefix is stable in both forms, and the next compaction is made of the items before", () =>
    Effect.gen(function*() {
      const { last, manager, sent } = yield* absorbed(provider)
      let own = conversation(Checkpoint.forOwner(last.prompt, route))
      let boundaries = last.generation
      while (sent.length < 2) {
        const [next] = yield* Sessions.play(manager, 20 + sent.length + own.length, 1)
        const after = conversation(Checkpoint.forOwner(next!.prompt, route))
        if (next!.generation === boundaries) assert.strictEqual(bytes(after.slice(0, own.length)), bytes(own))
        boundaries = next!.generation
        own = after
      }
      const again = sentOf(sent[1]!.body)
      assert.strictEqual(itemsIn(again), 1)
      assert.isTrue(bytes(again[0]).includes("\"type\":\"compaction\"") || bytes(again[0]) === bytes(retained))
      assert.isFalse(bytes(again).includes("context-summary"))
      // It is absorbed, and the newest one goes alone.
      let view = Prompt.empty
      do view = (yield* Sessions.play(manager, 100 + view.content.length, 1))[0]!.prompt
      while (!bytesOf(view).includes(provider === "anthropic" ? "EuYBCkQY2" : "cmp_2"))
      const written = messages(Checkpoint.forOwner(view, route))
      assert.strictEqual(itemsIn(written), 1)
      assert.isTrue(bytes(written).includes(provider === "anthropic" ? "EuYBCkQY2" : "cmp_2"))
    }))

  it.effect("lasts: exported and restored, forked, and opened again it is sent the same", () =>
    Effect.gen(function*() {
      const { last, manager, summarizer } = yield* absorbed(provider)
      const own = bytesOf(Checkpoint.forOwner(last.prompt, route))
      const same = Effect.fnUntraced(function*(other: Sessions.Manager) {
        const request = yield* other.request
        assert.isTrue(bytesOf(request.prompt) === bytesOf(last.prompt))
        assert.isTrue(bytesOf(Checkpoint.forOwner(request.prompt, route)) === own)
        assert.isTrue(bytesOf(Checkpoint.forOwner(request.prompt, "other/model")) === bytesOf(last.prompt))
      })
      const restored = yield* Sessions.manager(Sessions.withSummary(), { summarizer })
      yield* restored.restore(JSON.parse(JSON.stringify(yield* manager.export)))
      yield* same(restored)
      yield* same(yield* manager.fork)
      const options = seeded({ settings: Sessions.withSummary() })
      const again = yield* service(provider, server((_, call) => json(providers[provider].answer(call))).client)
      yield* Effect.gen(function*() {
        yield* Effect.scoped(Effect.gen(function*() {
          const first = yield* ContextManager.open("session", options)
          yield* Sessions.playToTrigger(first)
          yield* Sessions.play(first, 12, 7)
        }))
        yield* same(yield* ContextManager.open("session", options))
      }).pipe(Effect.provideService(Summarizer.Summarizer, again), Effect.provide(SessionStore.layerMemory))
    }))

  it.effect("words before the span that are others now: the items are not of them, so the twin goes", () =>
    Effect.gen(function*() {
      const { last } = yield* absorbed(provider)
      const changed = Prompt.fromMessages(
        last.prompt.content.map((message) =>
          bytes(message).includes("never delete one") && Marks.of(message).checkpoint === undefined
            ? user("Delete all of them.")
            : message
        )
      )
      assert.strictEqual(Checkpoint.forOwner(changed, route), changed)
      assert.notStrictEqual(Checkpoint.forOwner(last.prompt, route), last.prompt)
    }))
})

describe("inside the request", () => {
  it.effect("is a stage of the pass: absorbed by the very request that it was made in", () =>
    Effect.gen(function*() {
      const { client, sent } = server((_, call) => json(openAiAnswer(call)))
      const summarizer = yield* service("openai", client)
      const { manager, tags } = yield* Sessions.watched(Sessions.withSummary({ mode: "between", prune: false }), {
        summarizer
      })
      yield* Sessions.playToTrigger(manager)
      const views = yield* Sessions.play(manager, 12, 7)
      assert.deepStrictEqual(yield* tags, ["SummaryStarted", "SummaryReady", "SummaryAbsorbed"])
      assert.strictEqual(sent.length, 1)
      const { prompt } = views.find(({ generation }) => generation === 1)!
      assert.strictEqual(itemsIn(providers.openai.messages(Checkpoint.forOwner(prompt, "openai/gpt-5.5"))), 1)
    }))
})

const refused = (request: HttpClientRequest.HttpClientRequest) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({ request, description: "ECONNRESET" })
  })

/** An adapter of the Responses API: it writes a body, and its answer says nothing. */
const responses = (model: string) =>
  Model.make(
    "openai",
    model,
    Layer.effect(
      LanguageModel.LanguageModel,
      Effect.flatMap(HttpClient.HttpClient, (client) =>
        LanguageModel.make({
          generateText: ({ prompt }) =>
            client.execute(
              HttpClientRequest.bodyJsonUnsafe(
                HttpClientRequest.post("https://api.example/v1/responses"),
                OpenAiResponses.write(prompt.content, { model }).value
              )
            ).pipe(Effect.orDie, Effect.as([...Fake.text("ok", 10)])),
          streamText: () => Stream.empty
        }))
    )
  )

/** A conversation of one manager through decorated models, and what a client of theirs was sent. */
const decorated = Effect.fnUntraced(
  function*(provider: Provider, edits: ReadonlyArray<AnthropicMessages.ContextEdit> = []) {
    const finished = { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
    const answer = { id: "msg", content: [{ type: "text", text: "ok" }], stop_reason: "end_turn", usage: finished }
    const { client, sent } = server((each) => json(isAsking(each) ? providers[provider].answer() : answer))
    const summarizer = yield* service(provider, client)
    const { manager, tags } = yield* Sessions.watched(Sessions.withSummary({}, { meter: "estimate" }), { summarizer })
    const through = (http: HttpClient.HttpClient, model: string) =>
      CompactedModel.withCompaction(
        provider === "anthropic" ? Adapters.anthropic("https://api.example", model) : responses(model)
      ).pipe(
        Layer.provide(Layer.succeed(HttpClient.HttpClient, http))
      )
    const carry = provider === "anthropic"
      ? (self: HttpClient.HttpClient) => AnthropicMessages.carry(self, { edits })
      : OpenAiResponses.carry
    const own = yield* Layer.build(through(carry(client), modelOf(provider)))
    const other = yield* Layer.build(through(carry(client), "another-model"))
    const plain = yield* Layer.build(through(client, modelOf(provider)))
    let history = Prompt.fromMessages(Sessions.opening)
    /** One call; what was sent for it. */
    const sending = <A, E>(model: typeof own, ask: Effect.Effect<A, E, LanguageModel.LanguageModel>) =>
      ask.pipe(
        Effect.provideContext(model),
        Effect.provideService(ContextManager.Current, manager),
        Effect.andThen(Sessions.settle),
        Effect.map(() => sent.findLast((each) => !isAsking(each))!)
      )
    const call = (model: typeof own) => sending(model, LanguageModel.generateText({ prompt: history }))
    const stream = (model: typeof own) =>
      sending(model, Stream.runDrain(Stream.suspend(() => LanguageModel.streamText({ prompt: history }))))
    for (let n = 0; (yield* tags).at(-1) !== "SummaryAbsorbed"; n++) {
      history = Prompt.concat(history, Prompt.fromMessages(Sessions.turnOf(n)))
      yield* call(own)
    }
    return { call, stream, own, other, plain, sent }
  }
)

describe("a decorated model", () => {
  it.effect.each(all)(
    "%s: sends the items to their owner through its client, the twin to every other one, and back",
    (provider) =>
      Effect.gen(function*() {
        const { call, other, own, plain, sent, stream } = yield* decorated(provider)
        const listOf = ({ body }: Sent) => providers[provider].sent(body)
        const before = sent.find((each) => !isAsking(each))!
        assert.isUndefined(before.headers["anthropic-beta"])
        const first = yield* call(own)
        const items = providers[provider].items()
        if (provider === "anthropic") {
          assert.deepStrictEqual(listOf(first)[0], { role: "assistant", content: items })
          assert.strictEqual(first.headers["anthropic-beta"], "compact-2026-09-04")
        } else {
          // The instructions before the conversation stay.
          assert.deepStrictEqual(listOf(first).slice(0, 3), [listOf(before)[0]!, ...items])
          assert.strictEqual(listOf(first)[0]!.role, "system")
        }
        assert.strictEqual(itemsIn(listOf(first)), 1)
        assert.isFalse(bytes(listOf(first)).includes("context-summary"))
        assert.deepStrictEqual(Object.keys(first.body), Object.keys(before.body))
        // Another route, and a client that carries nothing, are sent what can be read.
        for (const model of [other, plain]) {
          const twin = yield* call(model)
          assert.strictEqual(itemsIn(listOf(twin)), 0)
          assert.isTrue(bytes(listOf(twin)).includes("context-summary"))
          assert.isTrue(bytes(listOf(twin)).includes("Read all the files."))
          assert.isUndefined(twin.headers["anthropic-beta"])
        }
        assert.deepStrictEqual((yield* call(own)).body, first.body)
        const requests = sent.length
        assert.deepStrictEqual((yield* stream(own)).body, first.body)
        assert.strictEqual(sent.length, provider === "anthropic" ? requests + 1 : requests)
      })
  )

  it.effect("has the server clear what the edits say, beside the block and without one", () =>
    Effect.gen(function*() {
      const edit: AnthropicMessages.ContextEdit = {
        type: "clear_tool_uses_20250919",
        trigger: { type: "input_tokens", value: 30_000 },
        keep: { type: "tool_uses", value: 3 }
      }
      const { call, own, sent } = yield* decorated("anthropic", [edit])
      assert.deepStrictEqual(sent[0]!.body.context_management, { edits: [edit] })
      assert.strictEqual(sent[0]!.headers["anthropic-beta"], "context-management-2025-06-27")
      const { body, headers } = yield* call(own)
      assert.deepStrictEqual(body.context_management, { edits: [edit] })
      assert.strictEqual(itemsIn(body.messages as ReadonlyArray<Json>), 1)
      assert.strictEqual(headers["anthropic-beta"], "compact-2026-09-04,context-management-2025-06-27")
      // It is never asked for together with a compaction, which the API refuses.
      assert.isFalse(sent.filter(isAsking).some((each) => "context_management" in each.body))
    }))
})

describe("a client that carries", () => {
  /** What goes out of a client for a body, while its call has something for its owner. */
  const through = Effect.fnUntraced(function*(
    carry: (client: HttpClient.HttpClient) => HttpClient.HttpClient,
    body: Json,
    owned: Owned.Owned | undefined
  ) {
    const { client, sent } = server(() => json({}))
    const request = HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post("https://api.example"), body)
    yield* Effect.provideService(carry(client).execute(request), Owned.Carried, owned)
    return sent[0]!
  })
  const edit: AnthropicMessages.ContextEdit = { type: "clear_thinking_20251015", keep: "all" }
  const said = (text: string) => ({ type: "text", text })
  const signed: Owned.Owned = { items: [block()], text: "twin", at: 1 }
  const body: Json = {
    model: "claude",
    messages: [
      { role: "user", content: [said("first"), said("twin"), said("behind")] },
      { role: "assistant", content: "ok" }
    ]
  }

  it.effect("keeps what an adapter put in one message with the checkpoint", () =>
    Effect.gen(function*() {
      const sent = yield* through(AnthropicMessages.carry, body, signed)
      assert.deepStrictEqual(sent.body.messages, [
        { role: "assistant", content: [block()] },
        { role: "user", content: [said("behind")] },
        { role: "assistant", content: "ok" }
      ])
      assert.isUndefined(sent.body.context_management)
      const string = { ...body, messages: [{ role: "user", content: "twin" }] }
      const alone = yield* through(AnthropicMessages.carry, string, signed)
      assert.deepStrictEqual(alone.body.messages, [{ role: "assistant", content: [block()] }])
    }))

  it.effect("a block without a signature goes with its edit declared, which fires for no window", () =>
    Effect.gen(function*() {
      const { signature: _, ...unsigned } = block()
      const sent = yield* through(
        (client) => AnthropicMessages.carry(client, { edits: [edit] }),
        { ...body, context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } },
        { ...signed, items: [unsigned] }
      )
      assert.deepStrictEqual(sent.body.context_management, {
        edits: [
          { type: "clear_tool_uses_20250919" },
          { type: "compact_20260112", trigger: { type: "input_tokens", value: 10_000_000 } },
          edit
        ]
      })
      assert.strictEqual(sent.headers["anthropic-beta"], "compact-2026-01-12,context-management-2025-06-27")
    }))

  it.effect.each([[400, false], [400, true], [422, false]] as const)(
    "an item that its owner refuses: the twin goes in the same call, and from then on",
    ([status, isStrict]) =>
      Effect.gen(function*() {
        const twin = { model: "gpt-5.5", input: [{ role: "user", content: "twin" }, { role: "user", content: "next" }] }
        const owned: Owned.Owned = { items: [item()], text: "twin", at: 0 }
        const refusal = {
          error: {
            code: "invalid_encrypted_content",
            message: "The encrypted content for item cmp_1 could not be verified."
          }
        }
        const { client, sent } = server(({ body }) =>
          bytes(body).includes("cmp_1") ? json(refusal, status) : json({ ok: true })
        )
        // Whether the client lets such a status through or fails on it.
        const carried = OpenAiResponses.carry(isStrict ? HttpClient.filterStatusOk(client) : client)
        const ask = (of: Owned.Owned) =>
          HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post("https://api.example"), twin).pipe(
            carried.execute,
            Effect.provideService(Owned.Carried, of)
          )
        const first = yield* ask(owned)
        assert.strictEqual(first.status, 200)
        assert.deepStrictEqual(yield* first.json, { ok: true })
        assert.strictEqual(sent.length, 2)
        assert.deepStrictEqual(sent[0]!.body.input, [item(), { role: "user", content: "next" }])
        assert.deepStrictEqual(sent[1]!.body, twin)
        yield* ask(owned)
        assert.deepStrictEqual(sent[2]!.body, twin)
        // Of the next compaction nothing is known yet.
        yield* ask({ ...owned, items: [item(2)] })
        assert.strictEqual(sent.length, 4)
        assert.isTrue(bytes(sent[3]!.body).includes("cmp_2"))
      })
  )

  it.effect("any other refusal is the adapter's, with its body", () =>
    Effect.gen(function*() {
      const owned: Owned.Owned = { items: [item()], text: "twin", at: 0 }
      const twin = { model: "gpt-5.5", input: [{ role: "user", content: "twin" }] }
      for (const status of [400, 401, 429, 500, 529]) {
        const said = status === 400 ? "prompt is too long" : "compaction_unavailable"
        const { client, sent } = server(() => json(said, status))
        const response = yield* HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post("https://api.example"), twin)
          .pipe(OpenAiResponses.carry(client).execute, Effect.provideService(Owned.Carried, owned))
        assert.deepStrictEqual([response.status, yield* response.text, sent.length], [status, said, 1])
      }
    }))

  it.effect("leaves alone what is not its own", () =>
    Effect.gen(function*() {
      const edited = (client: HttpClient.HttpClient) => AnthropicMessages.carry(client, { edits: [edit] })
      const asking = { ...body, compaction: { type: "summarize" } }
      const cases: ReadonlyArray<
        readonly [(client: HttpClient.HttpClient) => HttpClient.HttpClient, Json, Owned.Owned | undefined]
      > = [
        [AnthropicMessages.carry, body, undefined],
        [AnthropicMessages.carry, body, { ...signed, text: "of another conversation" }],
        [OpenAiResponses.carry, body, signed],
        [OpenAiResponses.carry, { model: "gpt", input: "twin" }, signed],
        // A compaction that is asked for takes no edits beside it.
        [edited, asking, undefined],
        [edited, { model: "text-embedding", input: "words" }, undefined]
      ]
      for (const [carry, given, owned] of cases) {
        const sent = yield* through(carry, given, owned)
        assert.deepStrictEqual(sent.body, given)
        assert.isUndefined(sent.headers["anthropic-beta"])
      }
    }))
})

describe("when it fails", () => {
  /** What a provider answers, and how that is told. */
  const cases: ReadonlyArray<
    readonly [name: string, provider: Provider, answer: () => Effect.Effect<Response>, cause: string, said: string]
  > = [
    ["400", "anthropic", () => json({ type: "error", error: { message: "no" } }, 400), "failed", "answered 400"],
    ["401", "openai", () => json({ error: { message: "bad key" } }, 401), "failed", "bad key"],
    ["404, where there is no such endpoint", "openai", () => json("not found", 404), "failed", "answered 404"],
    ["429", "openai", () => json({ error: { message: "slow down" } }, 429), "failed", "answered 429"],
    ["500", "openai", () => json("<html>", 500), "failed", "answered 500"],
    [
      "529 compaction_unavailable",
      "anthropic",
      () => json({ error: { details: { error_code: "compaction_unavailable" } } }, 529),
      "failed",
      "compaction_unavailable"
    ],
    ["no JSON", "openai", () => json("<html>ok</html>"), "failed", "it is no JSON"],
    ["an empty body", "anthropic", () => json(""), "failed", "it is no JSON"],
    ["another shape", "anthropic", () => json({ content: "text" }), "failed", "it has no content"],
    ["another shape", "openai", () => json({ output: null }), "failed", "it has no output"],
    ["items that are none", "openai", () => json({ output: [1] }), "failed", "an item is no object"],
    ["nothing compacted", "openai", () => json({ output: [retained] }), "failed", "no compaction item"],
    [
      "an item without content",
      "openai",
      () => json({ output: [{ type: "compaction", id: "cmp" }] }),
      "failed",
      "no compaction item"
    ],
    [
      "a block without text",
      "anthropic",
      () => json({ content: [{ type: "compaction", content: 3 }] }),
      "failed",
      "its block holds no text"
    ],
    ["cut", "anthropic", () => json({ content: [], stop_reason: "max_tokens" }), "truncated", "4096"],
    ["nothing said", "anthropic", () => json({ content: [], stop_reason: "end_turn" }), "empty", "empty"],
    [
      "a block that failed",
      "anthropic",
      () => json({ content: [{ type: "compaction", content: null }], stop_reason: "compaction" }),
      "empty",
      "empty"
    ],
    ["a call", "anthropic", () => json({ content: [], stop_reason: "tool_use" }), "notSummary", "calls a tool"],
    ["declined", "anthropic", () => json({ content: [], stop_reason: "refusal" }), "notSummary", "declined"]
  ]
  for (const [name, provider, answer, cause, said] of cases) {
    it.effect(`${provider}, ${name}: told, and the ladder serves as if nothing had been asked`, () =>
      Effect.gen(function*() {
        const { client, sent } = server(answer)
        const summarizer = yield* service(provider, client)
        const { manager, told } = yield* Sessions.watched(Sessions.withSummary(), { summarizer })
        yield* Sessions.playToTrigger(manager)
        const views = yield* Sessions.play(manager, 12, 7)
        const alone = yield* Sessions.manager(Sessions.base)
        yield* Sessions.playToTrigger(alone)
        const ladder = yield* Sessions.play(alone, 12, 7)
        assert.deepStrictEqual(views.map(({ prompt }) => bytesOf(prompt)), ladder.map(({ prompt }) => bytesOf(prompt)))
        assert.isAtLeast(views.at(-1)!.generation, 1)
        const failure = (yield* told)[1]
        assert.isTrue(failure?._tag === "SummaryFailed" || failure?._tag === "SummaryRefused")
        assert.isTrue("cause" in failure! && failure.cause === cause, JSON.stringify(failure))
        assert.isTrue("reason" in failure! && failure.reason.includes(said), JSON.stringify(failure))
        assert.strictEqual("failures" in failure! ? failure.failures : 0, cause === "notSummary" ? 0 : 1)
        assert.isAtLeast(sent.length, 1)
      }))
  }

  it.effect("nobody answers: given up at exactly the deadline, the ladder serves meanwhile", () =>
    Effect.gen(function*() {
      let isInterrupted = false
      const { client } = server(() =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            isInterrupted = true
          }))
      )
      const summarizer = yield* service("openai", client)
      const { manager, tags, told } = yield* Sessions.watched(Sessions.withSummary({ timeout: "45 seconds" }), {
        summarizer
      })
      yield* Sessions.playToTrigger(manager)
      const views = yield* Sessions.play(manager, 12, 7)
      assert.strictEqual(views.at(-1)!.generation, 1)
      yield* TestClock.adjust("44999 millis")
      assert.deepStrictEqual(yield* tags, ["SummaryStarted"])
      yield* TestClock.adjust("1 millis")
      const failure = (yield* told).at(-1)
      assert.isTrue(failure?._tag === "SummaryFailed" && failure.cause === "timeout" && failure.failures === 1)
      assert.isTrue(isInterrupted)
    }))

  it.effect("the connection breaks: failed, with the error as its cause", () =>
    Effect.gen(function*() {
      const client = HttpClient.make((request) => Effect.fail(refused(request)))
      const failure = yield* Effect.flip(asking("openai", client))
      assert.strictEqual(failure._tag, "SummarizerFailed")
      assert.isTrue(failure._tag === "SummarizerFailed" && failure.reason.includes("ECONNRESET"))
      assert.isTrue(failure._tag === "SummarizerFailed" && HttpClientError.isHttpClientError(failure.cause))
    }))

  it.effect("too long for the provider: asked again with the older half, and only that is replaced", () =>
    Effect.gen(function*() {
      const tooLong = { error: { message: "prompt is too long: 210000 tokens > 200000 maximum" } }
      const { client, sent } = server((_, call) => call === 1 ? json(tooLong, 400) : json(anthropicAnswer(call)))
      const summarizer = yield* service("anthropic", client)
      const { manager, told } = yield* Sessions.watched(Sessions.withSummary(), { summarizer })
      yield* Sessions.playToTrigger(manager)
      yield* Sessions.play(manager, 12, 7)
      assert.strictEqual(sent.length, 2)
      const [whole, half] = sent.map(({ body }) => (body.messages as ReadonlyArray<Json>).length)
      assert.isBelow(half!, whole!)
      const ready = (yield* told).find((event) => event._tag === "SummaryReady")
      assert.deepInclude(ready, { layout: "conversation", fallback: "overflow" })
    }))

  it.effect("not smaller than what it stands for: refused, whatever the twin costs", () =>
    Effect.gen(function*() {
      const long = { type: "message", role: "user", content: [{ type: "input_text", text: words("kept", 40_000) }] }
      const { client } = server(() => json({ ...openAiAnswer(), output: [long, item()] }))
      const summarizer = yield* service("openai", client)
      const { manager, told } = yield* Sessions.watched(Sessions.withSummary(), { summarizer })
      yield* Sessions.playToTrigger(manager)
      const refusal = (yield* told).at(-1)
      assert.isTrue(refusal?._tag === "SummaryRefused" && refusal.cause === "notSmaller")
    }))

  it.effect("a checkpoint at the end of the view has no place for the items: the twin goes", () =>
    Effect.gen(function*() {
      const { client } = server((_, call) => json(openAiAnswer(call)))
      const summarizer = yield* service("openai", client)
      const { manager, tags } = yield* Sessions.watched(Sessions.withSummary({ placement: "append" }), { summarizer })
      yield* Sessions.playToTrigger(manager)
      const { prompt } = (yield* Sessions.play(manager, 12, 7)).at(-1)!
      assert.strictEqual((yield* tags).at(-1), "SummaryAbsorbed")
      assert.strictEqual(Checkpoint.forOwner(prompt, "openai/gpt-5.5"), prompt)
    }))

  it.effect("its own earlier item is refused: compacted again from what can be read", () =>
    Effect.gen(function*() {
      const refusal = { error: { code: "invalid_encrypted_content" } }
      const { client, sent } = server(({ body }, call) =>
        itemsIn(body.input as ReadonlyArray<Json>) > 0 ? json(refusal, 400) : json(openAiAnswer(call))
      )
      const summarizer = yield* service("openai", client)
      const { manager, told } = yield* Sessions.watched(Sessions.withSummary(), { summarizer })
      yield* Sessions.playToTrigger(manager)
      let view = Prompt.empty
      for (let n = 12; !bytesOf(view).includes("cmp_3"); n++) view = (yield* Sessions.play(manager, n, 1))[0]!.prompt
      assert.deepStrictEqual(sent.map(({ body }) => itemsIn(body.input as ReadonlyArray<Json>)), [0, 1, 0])
      assert.isTrue(bytes(sent[2]!.body).includes("context-summary"))
      assert.isFalse((yield* told).some((event) => event._tag === "SummaryFailed"))
    }))

  it.effect("a server that is down is no refusal for length, whatever it says", () =>
    Effect.gen(function*() {
      for (const [status, isOverflow] of [[400, true], [413, true], [500, false]] as const) {
        const { client } = server(() => json("prompt is too long: 210000 tokens > 200000 maximum", status))
        const failure = yield* Effect.flip(asking("openai", client))
        assert.isTrue(failure._tag === "SummarizerFailed" && failure.isOverflow === isOverflow, String(status))
      }
    }))

  it.effect("failures in a row stop it, as they stop any summariser", () =>
    Effect.gen(function*() {
      const { client, sent } = server(() => json("down", 503))
      const summarizer = yield* service("openai", client)
      const settings: Settings.Input = Sessions.withSummary({
        cooldownRequests: 0,
        cooldownGrowth: 0,
        hysteresis: false,
        maxFailures: 3
      })
      const { manager, told } = yield* Sessions.watched(settings, { summarizer })
      yield* Sessions.playToTrigger(manager)
      yield* Sessions.play(manager, 12, 12)
      assert.strictEqual(sent.length, 3)
      assert.deepStrictEqual((yield* told).at(-1), { _tag: "SummariesStopped", failures: 3 })
    }))
})
