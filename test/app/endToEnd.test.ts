/**
 * An agent with tools over HTTP, against a provider that judges each body: two hundred turns in a window that holds a few.
 */
import { assert, describe, it } from "@effect/vitest"
import * as CompactedModel from "effect-compaction/CompactedModel"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { seeded } from "../seed.ts"
import * as Adapters from "./adapters.ts"
import * as Server from "./server.ts"

const Read = Tool.make("read", {
  description: "Reads a file",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String
})
const Kit = Toolkit.make(Read)
const KitLayer = Kit.toLayer({
  read: ({ path }) =>
    Effect.succeed(`contents of ${path}\n${"some line of the file\n".repeat(20 + path.length % 7 * 30)}`)
})

const turns = 200
const window = 24_000

/** Even answers call a tool, every fourth one two at once; odd ones end the turn. */
const reply = (answered: number): Server.Reply => {
  if (answered % 2 === 1) return { text: `answer ${answered}: ${"as the file says, ".repeat(answered % 20)}done.` }
  const call = (which: string) => ({
    id: `call-${answered}-${which}`,
    name: "read",
    input: { path: `src/${"x".repeat(answered % 11)}${which}.ts` }
  })
  return {
    thinking: `thought ${answered} ${"hm ".repeat(answered % 9)}`,
    calls: answered % 4 === 0 ? [call("a"), call("b")] : [call("a")]
  }
}

/** An app that marks what the prompt cache is to keep: its system prompt, and always the newest message. */
const marking = Layer.effect(
  LanguageModel.LanguageModel,
  Effect.map(LanguageModel.LanguageModel, (inner) => {
    const mark = { anthropic: { cacheControl: { type: "ephemeral" } } }
    const marked = (given: Prompt.RawInput) => {
      const { content } = Prompt.make(given)
      return Prompt.fromMessages(
        content.map((message, at) =>
          at === 0 || at === content.length - 1 ? { ...message, options: { ...message.options, ...mark } } : message
        )
      )
    }
    return LanguageModel.LanguageModel.of({
      ...inner,
      generateText: ((given: { readonly prompt: Prompt.RawInput }) =>
        (inner.generateText as (options: unknown) => unknown)({ ...given, prompt: marked(given.prompt) })) as never,
      streamText: ((given: { readonly prompt: Prompt.RawInput }) =>
        (inner.streamText as (options: unknown) => unknown)({ ...given, prompt: marked(given.prompt) })) as never
    })
  })
)

interface Run {
  readonly wire: Server.Wire
  readonly settings?: Settings.Input
  readonly hasSummaries?: boolean
  readonly windowAt?: (answered: number) => number
}

const run = Effect.fnUntraced(function*({ hasSummaries = false, settings = {}, windowAt = () => window, wire }: Run) {
  const provider = yield* Server.start({
    wire,
    window: windowAt,
    reply,
    summary: "## Request\n- read files one after another\n\n## State\n- some were read\n\n## Next\n- read the next file"
  })
  const events: Array<CompactionEvent.CompactionEvent> = []
  const plain = (wire === "anthropic" ? Adapters.anthropic : Adapters.openai)(provider.url, "model-1")
  const model = marking.pipe(Layer.provideMerge(CompactedModel.withCompaction(plain, {
    windowOf: () => ({ window, maxOutput: 2_000 })
  })))
  const manager = ContextManager.make(seeded({ settings: { maxOutput: 2_000, ...settings } }))
  const summarizer = hasSummaries
    ? Summarizer.layerModel({ name: "model-1" }).pipe(Layer.provide(Layer.provide(marking, plain)))
    : Layer.empty
  const context = yield* Effect.provide(manager, summarizer)
  yield* Effect.forkScoped(
    Stream.runForEach(context.events, (event) => Effect.sync(() => events.push(event))),
    { startImmediately: true }
  )
  const agent = Effect.gen(function*() {
    const chat = yield* Chat.fromPrompt([{ role: "system", content: "You read files. ".repeat(300) }])
    for (let turn = 0; turn < turns; turn++) {
      let input: Prompt.RawInput = `turn ${turn}: read the next file, and keep to the rule of turn ${turn % 7}`
      while (true) {
        if (turn % 3 === 0) {
          let calls = 0
          yield* chat.streamText({ prompt: input, toolkit: Kit }).pipe(
            Stream.runForEach((part) => Effect.sync(() => part.type === "tool-call" && calls++))
          )
          if (calls === 0) break
        } else {
          const response = yield* chat.generateText({ prompt: input, toolkit: Kit })
          if (response.toolCalls.length === 0) break
        }
        input = []
      }
    }
  })
  yield* agent.pipe(
    Effect.provideService(ContextManager.Current, context),
    Effect.provide([KitLayer, model])
  )
  yield* Effect.yieldNow
  const status = yield* context.status
  return { seen: provider.seen, events, status }
}, Effect.provide(FetchHttpClient.layer))

/** The blocks of a request that are no ephemeral tail. */
const stableOf = ({ blocks }: Server.Seen): ReadonlyArray<string> => {
  const texts = blocks.map((block) => block.text)
  let end = texts.length
  while (end > 0 && /<system-reminder source=\\"context-(compaction|replay)\\"/.test(texts[end - 1]!)) end--
  return texts.slice(0, end)
}

const isPrefix = (a: ReadonlyArray<string>, b: ReadonlyArray<string>) => a.every((text, at) => text === b[at])

const check = ({ events, seen, status }: Effect.Success<ReturnType<typeof run>>, wire: Server.Wire) => {
  const own = seen.filter((each) => !each.isSummary && !each.tooLong)
  assert.deepStrictEqual(seen.flatMap((each) => each.refused), [], "nothing is refused")
  assert.strictEqual(own.length, 2 * turns)
  assert.isAtLeast(status.generation, 10, "boundaries")
  // Promise 3: a prefix that changed was published.
  let broken = 0
  for (let at = 1; at < own.length; at++) {
    const before = own[at - 1]!
    const now = own[at]!
    if (!isPrefix(stableOf(before), stableOf(now))) {
      broken++
      continue
    }
    // What was cached is read again, whatever stands in the tail.
    const cached = before.read + before.written
    const known = wire === "anthropic" ? cached : Math.floor(stableTokens(before) / 128) * 128
    assert.isAtLeast(now.read, known, `request ${at}`)
  }
  // One that was refused for its length was published too, and never answered.
  const refused = seen.filter((each) => each.tooLong).length
  const published = events.filter((event) => event._tag === "PrefixChanged").length
  assert.isAtLeast(published, broken)
  assert.isAtMost(published, broken + refused)
  assert.isAtMost(broken, status.generation)
  return {
    own,
    read: own.reduce((sum, each) => sum + each.read, 0),
    all: own.reduce((sum, each) => sum + each.tokens, 0)
  }
}

const stableTokens = (seen: Server.Seen): number =>
  seen.blocks.slice(0, stableOf(seen).length).reduce((sum, block) => sum + block.tokens, 0)

const wires: ReadonlyArray<Server.Wire> = ["anthropic", "openai"]

describe("an agent over HTTP", () => {
  for (const wire of wires) {
    it.live(`${wire}, with the ladder: nothing is refused, what was cached is read`, () =>
      Effect.gen(function*() {
        const result = yield* run({ wire })
        assert.strictEqual(result.seen.filter((each) => each.tooLong).length, 0)
        const { all, read } = check(result, wire)
        assert.isAbove(read / all, 0.75)
      }), 120_000)

    it.live(`${wire}, with summaries`, () =>
      Effect.gen(function*() {
        const result = yield* run({ wire, settings: { summary: {} }, hasSummaries: true })
        assert.strictEqual(result.seen.filter((each) => each.tooLong).length, 0)
        assert.isAbove(result.events.filter((event) => event._tag === "SummaryAbsorbed").length, 0)
        const { all, read } = check(result, wire)
        assert.isAbove(read / all, 0.75)
      }), 120_000)

    it.live(`${wire}, with overflows: each is recovered in its call`, () =>
      Effect.gen(function*() {
        // The window that is really there is smaller for a while than what the app was told.
        const windowAt = (answered: number) => Math.floor(window * 0.7 ** Math.min(4, Math.floor(answered / 60)))
        const result = yield* run({ wire, windowAt })
        const tooLong = result.seen.filter((each) => each.tooLong).length
        assert.isAtLeast(tooLong, 3)
        const { all, read } = check(result, wire)
        assert.isAbove(read / all, 0.75)
      }), 120_000)

    it.live(`${wire}: notice and replay cost no cache reads`, () =>
      Effect.gen(function*() {
        // The same budget and so the same boundaries; only the tail differs.
        const without = yield* run({ wire, settings: { noticeMinLevel: 99 } })
        const withBoth = yield* run({ wire, settings: { replayLastUser: true } })
        const [a, b] = [check(without, wire), check(withBoth, wire)]
        assert.isTrue(withBoth.seen.some((each) => stableOf(each).length < each.blocks.length))
        assert.isTrue(withBoth.seen.some((each) => each.blocks.some((block) => block.text.includes("context-replay"))))
        assert.isTrue(without.seen.every((each) => stableOf(each).length === each.blocks.length))
        assert.strictEqual(b.read, a.read)
      }), 120_000)
  }
})
