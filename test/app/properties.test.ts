/**
 * Random apps: whatever an app does with a chat and a decorated model, each body is one that its provider accepts
 * (promise 2), and each extends the one before but where a change was published (promise 3).
 */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import * as RuntimeContext from "effect-compaction/RuntimeContext"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { user, words } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Validators from "../wireValidators.ts"
import { fromResponse } from "./errors.ts"
import * as Fake from "./fake.ts"

/** Mulberry32, so that a seed is a session. */
const randomOf = (seed: number) => {
  let state = seed >>> 0
  return (below: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor(((t ^ (t >>> 14)) >>> 0) / 4_294_967_296 * below)
  }
}

const Read = Tool.make("read", { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String })
const Kit = Toolkit.make(Read)
const KitLayer = Kit.toLayer({ read: ({ path }) => Effect.succeed(words(path, path.length * 157 % 3_000)) })

const operations = [
  "say",
  "say",
  "loop",
  "loop",
  "loop",
  "stream",
  "object",
  "rewind",
  "edit",
  "reload",
  "cut",
  "fail",
  "overflow"
] as const

const limit = 5_000

const refusals = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> => [
  ...Validators.anthropic(Validators.toAnthropic(messages)),
  ...Validators.chat(Validators.toChat(messages)),
  ...Validators.responses(Validators.toResponses(messages)),
  ...Validators.gemini(Validators.toGemini(messages))
]

/** Everything that a message says. */
const said = (message: Prompt.Message): string =>
  message.role === "system"
    ? message.content
    : (message.content as ReadonlyArray<Prompt.Part>).map((part) =>
      part.type === "text" || part.type === "reasoning"
        ? part.text
        : part.type === "tool-call"
        ? JSON.stringify(part.params)
        : part.type === "tool-result"
        ? JSON.stringify(part.modelOutput ?? part.result)
        : part.type
    ).join("\n")

/** The messages that are no ephemeral tail, as they say it. */
const stableOf = (self: Prompt.Prompt): ReadonlyArray<string> => {
  const texts = self.content.map((message) => JSON.stringify(Validators.toResponses([message])) + said(message))
  let end = texts.length
  while (end > 0 && /<system-reminder source=\\"context-(compaction|replay)/.test(texts[end - 1]!)) end--
  return texts.slice(0, end)
}

const runApp = Effect.fnUntraced(function*(seed: number) {
  const random = randomOf(seed)
  const sent: Array<{ readonly prompt: Prompt.Prompt; readonly answered: boolean }> = []
  let mood: "answer" | "call" | "fail" | "overflow" | "hang" = "answer"
  const hanging = yield* Ref.make<Deferred.Deferred<void> | undefined>(undefined)
  let id = 0
  const answer = (options: LanguageModel.ProviderOptions) =>
    Effect.gen(function*() {
      const now = mood
      const size = JSON.stringify(options.prompt.content).length / 4
      const isRefused = now === "overflow" && size > 1_500
      sent.push({
        prompt: options.prompt,
        answered: now === "answer" || now === "call" || (now === "overflow" && !isRefused)
      })
      if (isRefused) {
        mood = "answer"
        return yield* fromResponse("anthropic", 400, {
          error: {
            type: "invalid_request_error",
            message: `prompt is too long: ${Math.ceil(size)} tokens > ${limit} maximum`
          }
        })
      }
      if (now === "fail") return yield* Fake.down
      if (now === "hang") {
        const started = yield* Ref.get(hanging)
        if (started !== undefined) yield* Deferred.succeed(started, undefined)
        return yield* Effect.never
      }
      if (now === "call" && options.tools.length > 0) {
        const count = 1 + random(3)
        const calls = Array.from({ length: count }, (): Response.PartEncoded => {
          const call = `c${id++}`
          return { type: "tool-call", id: call, name: "read", params: { path: "x".repeat(random(20)) + call } }
        })
        mood = random(3) === 0 ? "answer" : "call"
        return [
          { type: "reasoning", text: `thought ${id}`, metadata: { anthropic: { signature: `s${id}` } } } as const,
          ...calls,
          Fake.finish(Math.ceil(size), "tool-calls")
        ]
      }
      return Fake.text(
        `{"a":${random(9)}} ${words("answer", random(600))}`.slice(0, random(2) === 0 ? 7 : 600),
        Math.ceil(size)
      )
    })
  const inner = Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: (options) => Effect.map(answer(options), (parts) => [...parts]),
      streamText: (options) =>
        Stream.unwrap(
          Effect.map(answer(options), (parts) =>
            Stream.fromIterable(parts.flatMap((part, at): ReadonlyArray<Response.StreamPartEncoded> =>
              part.type === "text"
                ? [
                  { type: "text-start", id: `${at}` },
                  { type: "text-delta", id: `${at}`, delta: part.text },
                  { type: "text-end", id: `${at}` }
                ]
                : part.type === "reasoning"
                ? []
                : [part as Response.StreamPartEncoded]
            )))
        )
    })
  )
  const self = yield* ContextManager.make(seeded({
    settings: {
      maxTokens: limit,
      meter: (["estimate", "actual", "calibrated"] as const)[random(3)]!,
      replayLastUser: random(2) === 0,
      protectedRecent: random(4) / 10
    }
  }))
  let published = 0
  yield* Effect.forkScoped(
    Stream.runForEach(self.events, (event) => Effect.sync(() => event._tag === "PrefixChanged" && published++)),
    { startImmediately: true }
  )
  const script: Array<string> = []
  let chat = yield* Chat.fromPrompt(random(2) === 0 ? [] : [{ role: "system", content: "You are careful." }])
  const ask = (input: Prompt.RawInput) => chat.generateText({ prompt: input, toolkit: Kit })
  const say = () => `${words("question", random(900))} ${random(1_000)}`

  const step = Effect.fnUntraced(function*() {
    const operation = operations[random(operations.length)]!
    script.push(operation)
    switch (operation) {
      case "say":
        mood = "answer"
        yield* ask(say())
        break
      case "loop": {
        mood = "call"
        let input: Prompt.RawInput = say()
        for (let n = 0; n < 6; n++) {
          const response = yield* ask(input)
          if (response.toolCalls.length === 0) break
          input = []
        }
        break
      }
      case "stream":
        mood = random(2) === 0 ? "answer" : "call"
        yield* Stream.runDrain(chat.streamText({ prompt: say(), toolkit: Kit }))
        break
      case "object":
        mood = "answer"
        // Text that is no object fails the call: what was sent is in no history, as if it had not been answered.
        if (
          Exit.isFailure(
            yield* Effect.exit(chat.generateObject({ prompt: say(), schema: Schema.Struct({ a: Schema.Int }) }))
          )
        ) {
          sent[sent.length - 1] = { ...sent[sent.length - 1]!, answered: false }
        }
        break
      case "rewind":
        yield* Ref.update(
          chat.history,
          (history) => Prompt.fromMessages(history.content.slice(0, Math.max(1, history.content.length - random(6))))
        )
        mood = "answer"
        yield* ask(say())
        break
      case "edit":
        yield* Ref.update(chat.history, (history) => {
          const at = random(history.content.length + 1)
          return Prompt.fromMessages(
            history.content.map((each, index) =>
              index === at && each.role === "user" ? user(`edited ${random(99)}`) : each
            )
          )
        })
        mood = "answer"
        yield* ask(say())
        break
      case "reload":
        chat = yield* Chat.fromJson(yield* chat.exportJson)
        break
      case "cut": {
        mood = "hang"
        const started = yield* Deferred.make<void>()
        yield* Ref.set(hanging, started)
        const fiber = yield* Effect.forkChild(Effect.exit(ask(say())))
        yield* Deferred.await(started)
        yield* Fiber.interrupt(fiber)
        break
      }
      case "fail":
        mood = "fail"
        yield* Effect.exit(ask(say()))
        break
      case "overflow":
        mood = "overflow"
        yield* ask(say())
        break
    }
  })
  const app = Effect.gen(function*() {
    for (let n = 0; n < 14; n++) {
      const step_ = step()
      yield* random(2) === 0 ? step_ : RuntimeContext.provide(`mode ${random(3)}`)(step_)
    }
  })
  yield* app.pipe(
    Effect.provideService(ContextManager.Current, self),
    Effect.provide([KitLayer, CompactedModel.withCompaction(inner)])
  )
  yield* Effect.yieldNow

  const failures: Array<string> = []
  for (const [at, { prompt }] of sent.entries()) {
    const found = refusals(prompt.content)
    if (found.length > 0) failures.push(`request ${at}: ${found.join("; ")}`)
  }
  const answered = sent.filter((each) => each.answered)
  let broken = 0
  for (let at = 1; at < answered.length; at++) {
    const [before, now] = [stableOf(answered[at - 1]!.prompt), stableOf(answered[at]!.prompt)]
    if (!before.every((text, index) => text === now[index])) broken++
  }
  // A change is published with the request that has it first, which may be one that was not answered.
  if (broken > published) failures.push(`${broken} prefixes changed, ${published} were published`)
  return { failures, script, boundaries: (yield* self.status).generation, requests: sent.length }
})

describe("random apps", () => {
  it.effect("send nothing that is refused, and change no prefix unsaid", () =>
    Effect.gen(function*() {
      let boundaries = 0
      let requests = 0
      const wrong: Array<string> = []
      for (let seed = 1; seed <= 150; seed++) {
        const result = yield* Effect.scoped(runApp(seed))
        boundaries += result.boundaries
        requests += result.requests
        for (const failure of result.failures) wrong.push(`seed ${seed} (${result.script.join(" ")}): ${failure}`)
      }
      assert.deepStrictEqual(wrong, [])
      assert.isAbove(boundaries, 150)
      assert.isAbove(requests, 3_000)
    }), 120_000)
})
