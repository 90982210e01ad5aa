import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Gate from "effect-compaction/Gate"
import * as Marks from "effect-compaction/Marks"
import type * as Settings from "effect-compaction/Settings"
import * as Stage from "effect-compaction/Stage"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Payload from "../src/wire/payload.ts"
import { answers, assistant, bytesOf, calls, prompt, result, user, words } from "./core/conversation.ts"
import { seed, seeded } from "./seed.ts"

const file = (data: string | Uint8Array | URL, mediaType = "image/png") => Prompt.makePart("file", { mediaType, data })

const showing = (text: string, ...files: ReadonlyArray<Prompt.FilePart>) =>
  Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text }), ...files] })

/** A turn of a person with an image of `bytes` bytes, and an answer. */
const shot = (n: number, bytes = 1_000) => [showing(`shot ${n}`, file("A".repeat(bytes))), assistant(`seen ${n}`)]

const image = (bytes: number) => [{ type: "image", source: { type: "base64", data: "A".repeat(bytes) } }]

/** Calls of the assistant that each return a screenshot of `bytes` bytes. */
const screenshots = (count: number, bytes = 10) =>
  Arr.makeBy(count, (n) => [calls(`s${n}`), answers(result(`s${n}`, image(bytes)))]).flat()

const placed = (pass: Stage.Pass) =>
  pass.view.items.filter((item) => item.state === "placeholder").map((item) => item.seq)

const limited = (content: Prompt.Prompt, settings: Settings.Input) =>
  Effect.flatMap(Stage.fromPrompt(content, { settings: seed(settings), budget: 1_000_000 }), Gate.media)

const shots = prompt(...Arr.range(0, 9).flatMap((n) => shot(n)), user("and now?"))

describe("payload", () => {
  const rows: ReadonlyArray<readonly [name: string, message: Prompt.Message, media: number, bytes: number]> = [
    ["text", user("é\u{1f600}"), 0, 6],
    ["base64", showing("a", file("AAAA")), 1, 5],
    ["bytes become base64", showing("", file(new Uint8Array(4))), 1, 8],
    ["an address is sent as it is", showing("", file(new URL("https://a.b/c"))), 1, 13],
    ["inputs as JSON", calls("a"), 0, JSON.stringify({ path: "a" }).length],
    ["a result", answers(result("a", "text")), 0, 4],
    ["a structured result", answers(result("a", { b: 1 })), 0, 7],
    ["blocks", answers(result("a", [{ type: "image", data: "A" }, { type: "text", text: "b" }])), 1, 56],
    [
      "what the model reads of a result",
      answers(Prompt.makePart("tool-result", {
        id: "a",
        name: "read",
        isFailure: false,
        providerExecuted: false,
        result: "x".repeat(999),
        modelOutput: [file("AAAA"), Prompt.makePart("text", { text: "b" })]
      })),
      1,
      5
    ],
    ["system", Prompt.makeMessage("system", { content: "abc" }), 0, 3]
  ]
  for (const [name, message, media, bytes] of rows) {
    it(name, () => assert.deepStrictEqual(Payload.of(message), { media, bytes }))
  }
})

describe("Gate.media", () => {
  const rows: ReadonlyArray<
    readonly [name: string, content: Prompt.Prompt, settings: Settings.Input, expected: ReadonlyArray<number>]
  > = [
    ["off", shots, {}, []],
    ["at the limit", shots, { maxImages: 10 }, []],
    ["above it: down to half", shots, { maxImages: 9 }, [0, 2, 4, 6, 8, 10]],
    ["none allowed", shots, { maxImages: 0 }, Arr.range(0, 9).map((n) => 2 * n)],
    ["within the bytes", shots, { maxRequestBytes: 11_000 }, []],
    ["above the bytes: down to half", shots, { maxRequestBytes: 10_000 }, [0, 2, 4, 6, 8, 10]],
    [
      "the current turn stays",
      prompt(...shot(0), ...shot(1), showing("2", file("A"), file("A"), file("A"))),
      { maxImages: 2 },
      [0, 2]
    ],
    [
      "results of the current turn stay while earlier ones are enough",
      prompt(...shot(0), user("go"), ...screenshots(1)),
      { maxImages: 1 },
      [0]
    ],
    [
      "results of the current turn go from the oldest on, to half of the limit",
      prompt(user("go"), ...screenshots(6)),
      { maxImages: 4 },
      [2, 4, 6, 8]
    ],
    [
      "and after those of earlier turns",
      prompt(...shot(0), user("go"), ...screenshots(4)),
      { maxImages: 3 },
      [0, 4, 6, 8]
    ],
    ["the newest stays", prompt(user("go"), ...screenshots(3)), { maxImages: 1 }, [2, 4]],
    ["and goes where none may be sent", prompt(user("go"), ...screenshots(3)), { maxImages: 0 }, [2, 4, 6]],
    ["by bytes too", prompt(user("go"), ...screenshots(6, 1_000)), { maxRequestBytes: 5_000 }, [2, 4, 6, 8]],
    [
      "the newest goes where it alone is too large",
      prompt(user("go"), ...screenshots(1, 10), ...screenshots(1, 9_000)),
      { maxRequestBytes: 5_000 },
      [2, 4]
    ],
    [
      "results of one message count one by one",
      prompt(user("go"), calls("a", "b", "c"), answers(...["a", "b", "c"].map((id) => result(id, image(10))))),
      { maxImages: 2 },
      [2, 3]
    ],
    [
      "what a person shows now stays, what tools return beside it does not",
      prompt(showing("2", file("A"), file("A")), ...screenshots(2)),
      { maxImages: 2 },
      [2, 4]
    ],
    [
      "what a machine shows in the turn goes like a result",
      prompt(user("go"), Marks.set(shot(0)[0]!, { source: "hook" }), ...screenshots(2)),
      { maxImages: 2 },
      [1, 3]
    ],
    [
      "a pinned result of the current turn stays",
      prompt(user("go"), ...screenshots(1).map((each) => Marks.set(each, { pinned: true })), ...screenshots(2)),
      { maxImages: 2 },
      [4]
    ],
    [
      "results of earlier turns do not",
      prompt(user("go"), calls("a"), answers(result("a", [{ type: "image", data: "A" }])), ...shot(0), user("and?")),
      { maxImages: 1 },
      [2, 3]
    ],
    [
      "a pinned one stays",
      prompt(Marks.set(shot(0)[0]!, { pinned: true }), ...shot(1), ...shot(2), user("and?")),
      { maxImages: 2 },
      [1, 3]
    ],
    [
      "nobody has spoken: all is the current turn",
      prompt(...screenshots(3)),
      { maxImages: 2 },
      [1, 3]
    ],
    ["text alone is no media", prompt(user("x".repeat(5_000)), user("y")), { maxRequestBytes: 100 }, []]
  ]
  for (const [name, content, settings, expected] of rows) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const after = yield* limited(content, settings)
        assert.deepStrictEqual(placed(after), expected)
        if (expected.length === 0) assert.strictEqual(after.view, after.before, "the same view, the same object")
        for (const item of after.view.items) {
          if (!expected.includes(item.seq)) assert.strictEqual(item.message, item.entry!.message)
        }
      }))
  }

  it.effect("leaves words in the place of media, and the count goes down by what they cost", () =>
    Effect.gen(function*() {
      const after = yield* limited(shots, { maxImages: 1 })
      const [first] = after.view.items
      assert.deepStrictEqual(first!.message.role === "user" ? first!.message.content : [], [
        Prompt.makePart("text", { text: "shot 0" }),
        Prompt.makePart("text", { text: "[left out: image/png]" })
      ])
      assert.strictEqual(after.count.tokens, after.view.price)
    }))

  it.effect("files that the assistant made become words too", () =>
    Effect.gen(function*() {
      const made = Prompt.makeMessage("assistant", { content: [file("A", "image/webp")] })
      const after = yield* limited(prompt(user("draw"), made, user("and?")), { maxImages: 0 })
      assert.deepStrictEqual(placed(after), [1])
      assert.include(JSON.stringify(after.view.items[1]!.message), "[left out: image/webp]")
    }))
})

/** A session of turns, a request after each human message. */
const session = Effect.fnUntraced(function*(
  settings: Settings.Input,
  turns: ReadonlyArray<ReadonlyArray<Prompt.Message>>
) {
  const manager = yield* ContextManager.make(seeded({ settings: { notice: false, ...settings } }))
  const requests: Array<ContextManager.Request> = []
  for (const [human, answer] of turns) {
    yield* manager.append(prompt(human!))
    requests.push(yield* manager.request)
    yield* manager.append(prompt(answer!))
  }
  return { requests, status: yield* manager.status }
})

/** What was published of payloads that stay above a limit. */
const namedIn = (requests: ReadonlyArray<ContextManager.Request>) =>
  requests.flatMap(({ events }) => events.filter((event) => event._tag === "PayloadInfeasible"))

describe("what is above a limit and must stay", () => {
  const asked = Effect.fnUntraced(function*(settings: Settings.Input, ...turns: ReadonlyArray<Prompt.Prompt>) {
    const manager = yield* ContextManager.make(seeded({ settings: { notice: false, ...settings } }))
    const requests: Array<ContextManager.Request> = []
    for (const turn of turns) {
      yield* manager.append(turn)
      requests.push(yield* manager.request)
    }
    return { manager, requests }
  })

  const pinned = Marks.set(shot(0)[0]!, { pinned: true })
  const rows: ReadonlyArray<
    readonly [name: string, content: Prompt.Prompt, settings: Settings.Input, expected: object | undefined]
  > = [
    ["nothing within the limits", prompt(...shot(0)), { maxImages: 1 }, undefined],
    ["nothing that could go", prompt(...shot(0), ...shot(1), user("and?")), { maxImages: 1 }, undefined],
    [
      "images that a person pasted",
      prompt(showing("see", file("A".repeat(10)), file("AA"), file("AAA"))),
      { maxImages: 2 },
      { media: 3, maxImages: 2, maxRequestBytes: null, holders: [{ seq: 0, media: 3, bytes: 18 }] }
    ],
    [
      "a file that a person pasted, by its bytes",
      prompt(...shot(1), showing("", file("A".repeat(9_000), "application/pdf"))),
      { maxRequestBytes: 5_000 },
      { media: 1, maxImages: null, maxRequestBytes: 5_000 }
    ],
    ["a pinned one", prompt(pinned, user("go"), ...screenshots(1)), { maxImages: 0 }, { media: 1, maxImages: 0 }],
    ["a long text", prompt(user("x".repeat(6_000)), user("y")), { maxRequestBytes: 5_000 }, { media: 0, bytes: 6_001 }]
  ]
  for (const [name, content, settings, expected] of rows) {
    it.effect(`${expected === undefined ? "does not name" : "names"} ${name}`, () =>
      Effect.gen(function*() {
        const { requests } = yield* asked(settings, content)
        const events = namedIn(requests)
        assert.strictEqual(events.length, expected === undefined ? 0 : 1)
        if (expected !== undefined) assert.deepInclude({ ...events[0] }, expected)
      }).pipe(Effect.scoped))
  }

  it.effect("is named once, again when it is another, and after it was within the limits", () =>
    Effect.gen(function*() {
      const pasted = prompt(showing("see", file("A"), file("A")))
      const { manager, requests } = yield* asked(
        { maxImages: 1 },
        pasted,
        prompt(assistant("hm"), calls("a"), answers(result("a", "text"))),
        prompt(assistant("so"), showing("and these", file("A"), file("A"))),
        prompt(assistant("so"), user("thanks")),
        prompt(assistant("so"), showing("more", file("A"), file("A")))
      )
      const counts = requests.map((request) => namedIn([request]).length)
      assert.deepStrictEqual(counts, [1, 0, 1, 0, 1])
      const restored = yield* ContextManager.make(seeded({ settings: { notice: false, maxImages: 1 } }))
      yield* restored.restore(yield* manager.export)
      yield* restored.append(prompt(calls("b"), answers(result("b", "text"))))
      assert.strictEqual(namedIn([yield* restored.request]).length, 0, "it was named before")
    }).pipe(Effect.scoped))
})

describe("media limits in a session", () => {
  it.effect("edits come in batches: the prefix is stable between boundaries (R11)", () =>
    Effect.gen(function*() {
      const { requests } = yield* session({ maxImages: 8 }, Arr.range(0, 39).map((n) => shot(n)))
      const boundaries = requests.filter((request) => request.prefixChanged !== null)
      assert.isAtLeast(boundaries.length, 5)
      assert.isAtMost(boundaries.length, 8, "one in five turns, not one in each")
      for (let n = 1; n < requests.length; n++) {
        const media = Payload.sum(requests[n]!.prompt.content).media
        assert.isAtMost(media, 8)
        if (requests[n]!.prefixChanged !== null) {
          assert.strictEqual(requests[n]!.prefixChanged, "boundary")
          assert.strictEqual(media, 4)
          continue
        }
        const before = requests[n - 1]!.prompt.content
        assert.deepStrictEqual(requests[n]!.prompt.content.slice(0, before.length), before)
      }
    }).pipe(Effect.scoped))

  it.effect("an image of 1.6 MB is priced flat, not by its bytes, and stays in the current turn (R10)", () =>
    Effect.gen(function*() {
      const huge = "A".repeat(1_600_000)
      const { requests } = yield* session({ maxRequestBytes: 1_000_000 }, [
        [showing("look", file(huge)), assistant("seen")],
        shot(1),
        shot(2)
      ])
      assert.isAtMost(requests[0]!.count.tokens, 1_700)
      assert.isTrue(bytesOf(requests[0]!.prompt).includes(huge))
      assert.isNull(requests[0]!.prefixChanged)
      assert.isFalse(bytesOf(requests[1]!.prompt).includes(huge))
      assert.isTrue(bytesOf(requests[1]!.prompt).includes("look"), "the words that came with it stay")
      assert.strictEqual(requests[1]!.prefixChanged, "boundary")
    }).pipe(Effect.scoped))

  it.effect("42 screenshots of one turn: every request is within the limit, the newest are there (R46)", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { notice: false, maxRequestBytes: 8_000 } }))
      yield* manager.append("look around")
      let boundaries = 0
      for (let n = 0; n < 42; n++) {
        yield* manager.append(prompt(calls(`s${n}`), answers(result(`s${n}`, image(800)))))
        const request = yield* manager.request
        const { bytes, media } = Payload.sum(request.prompt.content)
        assert.isAtMost(bytes, 8_000)
        assert.isAtLeast(media, Math.min(n + 1, 2))
        assert.isTrue(JSON.stringify(request.prompt.content.at(-1)).includes("A".repeat(800)), "the newest stays")
        if (request.prefixChanged !== null) boundaries++
      }
      assert.isAtMost(boundaries, 12, "one in several requests, not one in each")
    }).pipe(Effect.scoped))

  it.effect("what a boundary freed calls for no second one by the ladder", () =>
    Effect.gen(function*() {
      const turns = [...Arr.range(0, 9).map((n) => shot(n)), [user("and?"), assistant("so")]]
      const { status } = yield* session({ maxImages: 9, maxTokens: 17_000 }, turns)
      assert.strictEqual(status.counts.altered, 6)
      assert.strictEqual(status.counts.truncated + status.counts.removed + status.counts.stubbed, 0)
    }).pipe(Effect.scoped))

  it.effect("a long session weighs each message once", () =>
    Effect.gen(function*() {
      let read = 0
      const counted = (n: number): Prompt.Message => {
        const part = Prompt.makePart("text", { text: "" })
        Object.defineProperty(part, "text", {
          enumerable: true,
          get: () => {
            read++
            return words(`turn ${n}`, 100)
          }
        })
        return Prompt.makeMessage("user", { content: [part] })
      }
      const reads = Effect.fnUntraced(function*(settings: Settings.Input) {
        read = 0
        const manager = yield* ContextManager.make(seeded({ settings: { notice: false, ...settings } })).pipe(
          Effect.provideService(Estimator.Estimator, Estimator.make(() => 1))
        )
        for (let n = 0; n < 300; n++) {
          yield* manager.append(Prompt.fromMessages([counted(n), assistant("ok")]))
          yield* manager.request
        }
        return read
      })
      const off = yield* reads({})
      const on = yield* reads({ maxRequestBytes: 1_000_000_000 })
      assert.isAbove(on, off)
      assert.isAtMost(on - off, 300 * 4, `${on} reads with a limit, ${off} without`)
    }).pipe(Effect.scoped))

  it.effect("restored, the session says the same", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { notice: false, maxImages: 4 } }))
      yield* manager.append(shots)
      const request = yield* manager.request
      const restored = yield* ContextManager.make(seeded({ settings: { notice: false } }))
      yield* restored.restore(yield* manager.export)
      assert.strictEqual(bytesOf((yield* restored.request).prompt), bytesOf(request.prompt))
    }).pipe(Effect.scoped))
})
