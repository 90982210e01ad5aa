/** A call that ends without an answer leaves no request in flight: what is done by hand afterwards does not wait for it. */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { prompt, session, user } from "../core/conversation.ts"
import { seeded } from "../seed.ts"
import * as Fake from "./fake.ts"

const within = <E>(self: ContextManager.ContextManager<E>) => Effect.provideService(ContextManager.Current, self)

/** A session whose first call was answered and billed: from then on a request without an answer is one that is awaited. */
const billed = Effect.gen(function*() {
  const self = yield* ContextManager.make(seeded({ settings: { notice: false, protectedToolResults: 1 } }))
  yield* LanguageModel.generateText({ prompt: "hello" }).pipe(
    within(self),
    Effect.provide(
      CompactedModel.withCompaction(Fake.model(Fake.nothingSeen(), () => Effect.succeed(Fake.text("hi", 20))))
    )
  )
  return self
})

const assertNotBusy = Effect.fnUntraced(function*<E>(self: ContextManager.ContextManager<E>) {
  const compacted = yield* Effect.result(self.compactNow())
  assert.strictEqual(compacted._tag, "Success", compacted._tag === "Failure" ? String(compacted.failure) : "")
})

const next = prompt(user("hello"), ...session.content)

const calls = {
  generateText: LanguageModel.generateText({ prompt: next }),
  generateObject: LanguageModel.generateObject({ prompt: next, schema: Schema.Struct({ a: Schema.Int }) }),
  streamText: Stream.runDrain(LanguageModel.streamText({ prompt: next }))
}

describe("nothing is left in flight", () => {
  it.effect("while a call is awaited, compacting by hand says that it waits for it", () =>
    Effect.gen(function*() {
      const self = yield* billed
      yield* self.sync(next)
      assert.strictEqual((yield* Effect.flip(self.compactNow()))._tag, "CompactionBusy")
    }))

  for (const [method, call] of Object.entries(calls)) {
    it.effect(`${method}: after a call that failed`, () =>
      Effect.gen(function*() {
        const self = yield* billed
        const model = CompactedModel.withCompaction(Fake.model(Fake.nothingSeen(), () => Effect.fail(Fake.down)))
        yield* Effect.flip(call).pipe(within(self), Effect.provide(model))
        yield* assertNotBusy(self)
      }))

    it.effect(`${method}: after a call that was interrupted`, () =>
      Effect.gen(function*() {
        const self = yield* billed
        const asked = yield* Deferred.make<void>()
        const model = CompactedModel.withCompaction(
          Fake.model(Fake.nothingSeen(), () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never))
        )
        const fiber = yield* Effect.forkChild(call.pipe(within(self), Effect.provide(model)))
        yield* Deferred.await(asked)
        yield* Fiber.interrupt(fiber)
        yield* assertNotBusy(self)
      }))

    it.effect(`${method}: after the last of the refusals that are tried again`, () =>
      Effect.gen(function*() {
        const self = yield* billed
        const seen = Fake.nothingSeen()
        const model = CompactedModel.withCompaction(
          Fake.model(seen, (_, { prompt: { content } }): Effect.Effect<Fake.Answer, AiError.AiError> =>
            Effect.fail(Fake.tooLong(Math.ceil(JSON.stringify(content).length / 4), 300))),
          { maxOverflowRetries: 1 }
        )
        yield* Effect.flip(call).pipe(within(self), Effect.provide(model))
        assert.isAtMost(seen.prompts.length, 2)
        yield* assertNotBusy(self)
      }))
  }

  it.effect("after a refusal that is not tried again because the call has run a tool", () =>
    Effect.gen(function*() {
      const self = yield* billed
      const Write = Tool.make("write", {
        parameters: Schema.Struct({ path: Schema.String }),
        success: Schema.String,
        needsApproval: true
      })
      const kit = Toolkit.make(Write)
      const asked = Prompt.makeMessage("assistant", {
        content: [
          Prompt.makePart("tool-call", { id: "w", name: "write", params: { path: "a" }, providerExecuted: false }),
          Prompt.makePart("tool-approval-request", { approvalId: "ok", toolCallId: "w" })
        ]
      })
      const approved = Prompt.makeMessage("tool", {
        content: [Prompt.makePart("tool-approval-response", { approvalId: "ok", approved: true })]
      })
      yield* Effect.flip(
        LanguageModel.generateText({ prompt: prompt(...next.content, asked, approved), toolkit: kit }).pipe(
          within(self),
          Effect.provide([
            kit.toLayer({ write: () => Effect.succeed("written") }),
            CompactedModel.withCompaction(Fake.model(Fake.nothingSeen(), () => Effect.fail(Fake.tooLong(9_000, 8_000))))
          ])
        )
      )
      yield* assertNotBusy(self)
    }))

  it.effect("an error in the midst of a stream is given on: what was said is not said twice", () =>
    Effect.gen(function*() {
      let sent = 0
      const error = {
        type: "error" as const,
        error: { code: "context_length_exceeded", message: "Your input exceeds the context window of this model." }
      }
      const model = Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({
          generateText: () => Effect.succeed([]),
          streamText: () => {
            sent++
            return Stream.fromIterable<Response.StreamPartEncoded>([
              { type: "text-start", id: "a" },
              { type: "text-delta", id: "a", delta: "said" },
              error
            ])
          }
        })
      )
      const self = yield* billed
      const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: next })).pipe(
        within(self),
        Effect.provide(CompactedModel.withCompaction(model))
      )
      assert.strictEqual(sent, 1)
      assert.deepStrictEqual(parts.map(({ type }) => type), ["text-start", "text-delta", "error"])
      yield* assertNotBusy(self)
    }))
})
