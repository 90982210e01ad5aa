import { assert, describe, it } from "@effect/vitest"
import type * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Estimator from "effect-compaction/Estimator"
import * as Marks from "effect-compaction/Marks"
import * as Stage from "effect-compaction/Stage"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { seed, seeded } from "../seed.ts"
import * as OneLog from "../session/oneLog.ts"
import { answers, assistant, calls, prompt, result, system, turn, user } from "./conversation.ts"

const { isPartial, price } = Estimator.chars

/** What one part costs beyond the four tokens of its message and its own four. */
const partPrice = (message: Prompt.Message): number => price(message) - 8
const textPrice = (text: string): number => partPrice(assistant(text))
const resultPrice = (value: unknown): number => partPrice(answers(result("a", value)))

describe("Estimator.chars: text", () => {
  const rows: ReadonlyArray<readonly [name: string, text: string, tokens: number]> = [
    ["nothing", "", 0],
    ["one character", "a", 1],
    ["four characters", "abcd", 1],
    ["five characters", "abcde", 2],
    ["accents and Greek are narrow", "éüßαω\u07ff", 2],
    ["the first wide character", "\u0800", 1],
    ["Chinese: one each", "你好世界", 4],
    ["Japanese and Korean: one each", "こんにちは안녕", 7],
    ["mixed: rounded up once", "ab你c好", 3],
    ["an emoji is one character", "\u{1f600}", 1],
    ["emoji among letters", "ab\u{1f600}cd\u{1f600}", 3],
    ["joined emoji: one each, and one for each joiner", "\u{1f469}\u200d\u{1f469}\u200d\u{1f467}", 5],
    ["a lone high surrogate", "\ud83d", 1]
  ]
  for (const [name, text, tokens] of rows) it(name, () => assert.strictEqual(textPrice(text), tokens))

  it("four tokens a message and four a part, rounded up part by part", () => {
    assert.strictEqual(price(system("abcde")), 4 + 4 + 2)
    assert.strictEqual(price(Prompt.makeMessage("user", { content: [] })), 4)
    const parts = ["a", "b", "c"].map((text) => Prompt.makePart("text", { text }))
    assert.strictEqual(price(Prompt.makeMessage("user", { content: parts })), 4 + 3 * (4 + 1))
  })

  it("reasoning, and the name and the arguments of a call", () => {
    const reasoning = Prompt.makePart("reasoning", { text: "abcdefgh" })
    assert.strictEqual(partPrice(Prompt.makeMessage("assistant", { content: [reasoning] })), 2)
    // read{"path":"abc"}
    assert.strictEqual(partPrice(calls("abc")), Math.ceil(18 / 4))
    const call = { id: "a", name: "read", providerExecuted: false }
    const raw = Prompt.makePart("tool-call", { ...call, params: "not json" })
    assert.strictEqual(partPrice(Prompt.makeMessage("assistant", { content: [raw] })), 3)
    const none = Prompt.makePart("tool-call", { ...call, params: undefined })
    assert.strictEqual(partPrice(Prompt.makeMessage("assistant", { content: [none] })), 1)
  })

  it("what Prompt cannot hold, beside a part that says nothing itself", () => {
    const raw = { type: "web_search_call", query: "x".repeat(100) }
    const marked = (text: string) => Marks.set(Prompt.makePart("text", { text }), { raw })
    const message = (text: string) => Prompt.makeMessage("assistant", { content: [marked(text)] })
    assert.strictEqual(partPrice(message("")), Math.ceil(JSON.stringify(raw).length / 4))
    assert.strictEqual(partPrice(message("abcd")), 1)
  })
})

describe("Estimator.chars: tool results", () => {
  it("as JSON", () => {
    assert.strictEqual(resultPrice("a\nb"), Math.ceil("\"a\\nb\"".length / 4))
    assert.strictEqual(resultPrice({ rows: [1, 2, 3] }), Math.ceil("{\"rows\":[1,2,3]}".length / 4))
    assert.strictEqual(resultPrice(undefined), 0)
    assert.strictEqual(resultPrice(null), 1)
    assert.strictEqual(resultPrice("好".repeat(10)), 11)
  })

  it("or as what the model reads, the larger of the two", () => {
    const output = (text: string) => [Prompt.makePart("text", { text })]
    const part = result("a", { whole: "x".repeat(100) })
    const alone = partPrice(answers(part))
    assert.strictEqual(partPrice(answers({ ...part, modelOutput: output("short") })), alone)
    assert.strictEqual(partPrice(answers({ ...part, modelOutput: output("y".repeat(400)) })), 100)
    const file = Prompt.makePart("file", { mediaType: "image/png", data: new URL("https://example.org/a.png") })
    assert.strictEqual(partPrice(answers({ ...part, modelOutput: [file] })), 1_600)
  })

  it("a text block that merely contains the JSON of an image is text", () => {
    const text = JSON.stringify({ type: "image", source: { type: "base64", data: "A".repeat(8_000) } })
    const block = { type: "text", text }
    assert.strictEqual(resultPrice([block]), Math.ceil(JSON.stringify(block).length / 4))
    assert.isFalse(isPartial(answers(result("a", [block]))))
    assert.strictEqual(resultPrice(text), Math.ceil(JSON.stringify(text).length / 4))
  })

  it("opaque strings inside a structure are flat, whatever they are called", () => {
    const opaque = "QUJD".repeat(500)
    const rest = (value: unknown) => Math.ceil(JSON.stringify(value).length / 4)
    assert.strictEqual(resultPrice({ blob: opaque }), 1_600 + rest({ blob: "" }))
    assert.strictEqual(resultPrice([{ type: "custom", deep: [{ blob: opaque }] }]), 1_600 + 10)
    assert.strictEqual(resultPrice({ a: opaque, b: opaque }), 3_200 + rest({ a: "", b: "" }))
    assert.strictEqual(resultPrice({ blob: `data:image/png;base64,${opaque}` }), 1_600 + rest({ blob: "" }))
    assert.isTrue(isPartial(answers(result("a", { blob: opaque }))))
    const short = { blob: "QUJD".repeat(256) }
    assert.strictEqual(resultPrice(short), rest(short), "1,024 characters may be text")
    const prose = { blob: "QUJD ".repeat(500) }
    assert.strictEqual(resultPrice(prose), rest(prose), "what has spaces is text")
  })

  it("opaque arguments of a call are flat too", () => {
    const params = { content: "QUJD".repeat(500) }
    const part = Prompt.makePart("tool-call", { id: "a", name: "write", params, providerExecuted: false })
    assert.strictEqual(partPrice(Prompt.makeMessage("assistant", { content: [part] })), 1_600 + Math.ceil((5 + 14) / 4))
  })
})

const bytes = (...parts: ReadonlyArray<string | ReadonlyArray<number>>): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => typeof part === "string" ? Array.from(Buffer.from(part, "latin1")) : part))

const zeros = (length: number): ReadonlyArray<number> => new Array<number>(length).fill(0)

/** The headers of images of 300 × 200 pixels, and JPEGs as cameras and editors write them. */
const images: ReadonlyArray<readonly [name: string, mediaType: string, data: Uint8Array]> = [
  ["PNG", "image/png", bytes("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 0, 1, 44, 0, 0, 0, 200], zeros(9))],
  ["GIF", "image/gif", bytes("GIF89a", [44, 1, 200, 0], zeros(3))],
  ["JPEG", "image/jpeg", bytes([0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0, 200, 1, 44], zeros(12))],
  [
    "JPEG, progressive, behind its metadata",
    "image/jpeg",
    bytes(
      [0xff, 0xd8, 0xff, 0xe1, 0x40, 0x00],
      zeros(0x3ffe),
      [0xff, 0xc4, 0, 4, 0, 0, 0xff, 0xc2, 0, 17, 8, 0, 200, 1, 44],
      zeros(12)
    )
  ],
  ["WebP, extended", "image/webp", bytes("RIFF", zeros(4), "WEBPVP8X", zeros(8), [43, 1, 0, 199, 0, 0], zeros(8))],
  ["WebP, lossy", "image/webp", bytes("RIFF", zeros(4), "WEBPVP8 ", zeros(10), [44, 0x41, 200, 0x40], zeros(8))],
  // 14 bits each, less one: 299 | 199 << 14.
  ["WebP, lossless", "image/webp", bytes("RIFF", zeros(4), "WEBPVP8L", zeros(4), [0x2f, 0x2b, 0xc1, 0x31, 0], zeros(8))]
]

const filePart = (mediaType: string, data: string | Uint8Array | URL) => Prompt.makePart("file", { mediaType, data })
const file = (mediaType: string, data: string | Uint8Array | URL): Prompt.Message =>
  Prompt.makeMessage("user", { content: [filePart(mediaType, data)] })

describe("Estimator.chars: media", () => {
  for (const [name, mediaType, data] of images) {
    const base64 = Buffer.from(data).toString("base64")
    const forms: ReadonlyArray<readonly [form: string, message: Prompt.Message]> = [
      ["bytes", file(mediaType, data)],
      ["base64", file(mediaType, base64)],
      ["a data URL", file(mediaType, `data:${mediaType};base64,${base64}`)],
      ["a URL object", file(mediaType, new URL(`data:${mediaType};base64,${base64}`))],
      [
        "a block of Anthropic",
        answers(result("a", [{ type: "image", source: { type: "base64", media_type: mediaType, data: base64 } }]))
      ],
      ["a block of MCP", answers(result("a", [{ type: "image", data: base64, mimeType: mediaType }]))],
      [
        "a block of OpenAI",
        answers(result("a", [{ type: "input_image", image_url: `data:${mediaType};base64,${base64}` }]))
      ],
      [
        "a block of OpenAI chat",
        answers(result("a", [{ type: "image_url", image_url: { url: `data:${mediaType};base64,${base64}` } }]))
      ]
    ]
    for (const [form, message] of forms) {
      it(`${name} as ${form}: width × height / 750`, () => {
        assert.strictEqual(partPrice(message), (300 * 200) / 750)
        assert.isFalse(isPartial(message))
      })
    }
  }

  it("at most 1,600 tokens", () => {
    const large = bytes("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 0, 16, 0, 0, 0, 16, 0], zeros(9))
    assert.strictEqual(partPrice(file("image/png", large)), 1_600)
    assert.isFalse(isPartial(file("image/png", large)))
  })

  it("8 MB of base64 cost what an image of unknown size costs, and little time", () => {
    const data = "A".repeat(8_000_000)
    const all = [
      file("image/png", data),
      file("image/png", `data:image/png;base64,${data}`),
      answers(result("a", [{ type: "image", source: { type: "base64", media_type: "image/png", data } }]))
    ]
    for (const message of all) {
      assert.strictEqual(partPrice(message), 1_600)
      assert.isTrue(isPartial(message))
    }
  })

  const flat: ReadonlyArray<readonly [name: string, message: Prompt.Message, tokens: number]> = [
    ["an image somewhere else", file("image/png", new URL("https://example.org/a.png")), 1_600],
    ["a header cut short", file("image/png", images[0]![2].subarray(0, 20)), 1_600],
    ["an image of no size", file("image/png", bytes("\x89PNG\r\n\x1a\n", zeros(24))), 1_600],
    ["no image at all", file("image/png", new Uint8Array(0)), 1_600],
    ["a PDF", file("application/pdf", "JVBERi0x".repeat(10_000)), 8_000],
    ["audio", file("audio/wav", new Uint8Array(1_000_000)), 1_600],
    ["another file", file("application/zip", new Uint8Array(10)), 1_600],
    [
      "a document in a result",
      answers(result("a", [{ type: "document", source: { media_type: "application/pdf" } }])),
      8_000
    ]
  ]
  for (const [name, message, tokens] of flat) {
    it(`${name}: flat`, () => {
      assert.strictEqual(partPrice(message), tokens)
      assert.isTrue(isPartial(message))
    })
  }

  it("every block of a result", () => {
    const image = { type: "image", data: "?", mimeType: "image/png" }
    const text = { type: "text", text: "four" }
    const each = Math.ceil((2 * JSON.stringify(text).length) / 4)
    assert.strictEqual(resultPrice([text, image, text, image]), 3_200 + each)
  })
})

describe("other estimators", () => {
  it("a tokenizer reads the texts, and the rest stays", () => {
    const read: Array<string> = []
    const byWords = Estimator.tokenizer((text) => {
      read.push(text)
      return text.split(" ").length
    })
    assert.strictEqual(byWords.price(assistant("one two three")), 4 + 4 + 3)
    assert.strictEqual(byWords.price(calls("a")), 4 + 4 + 1 + 1)
    assert.deepStrictEqual(read, ["one two three", "read", "{\"path\":\"a\"}"])
    assert.strictEqual(byWords.price(file("application/pdf", "x")), 4 + 4 + 8_000)
    assert.isTrue(byWords.isPartial(file("application/pdf", "x")))
    const tokens = Estimator.tokenizer((text) => Uint32Array.from(text, (_, at) => at))
    assert.strictEqual(tokens.price(user("abc")), 4 + 4 + 3)
  })

  it("a tokenizer that throws on a text leaves it to its characters, and says so", () => {
    const strict = Estimator.tokenizer((text) => {
      if (text.includes("<|endoftext|>")) throw new Error("disallowed special token")
      return text.length / 4
    })
    const special = user("what is <|endoftext|>?")
    const system = Prompt.makeMessage("system", { content: "Never say <|endoftext|>." })
    for (const message of [special, system, turn("<|endoftext|>", 90)[1]!]) {
      assert.strictEqual(strict.price(message), Estimator.chars.price(message))
      assert.strictEqual(strict.read?.(message).fault, "disallowed special token")
    }
    assert.strictEqual(strict.price(user("abcde")), 4 + 4 + 2, "whole tokens")
    assert.isUndefined(strict.read?.(user("abcde")).fault)
    for (const count of [NaN, Infinity, -1]) {
      const broken = Estimator.tokenizer(() => count)
      assert.strictEqual(broken.price(special), Estimator.chars.price(special))
      assert.include(broken.read?.(special).fault ?? "", "no number of tokens")
    }
  })

  it("a price that throws or is no number is that of the characters, and says so", () => {
    const strict = Estimator.make((message) => message.role === "system" ? 3 : JSON.parse("no"))
    assert.strictEqual(strict.price(user("abcd")), Estimator.chars.price(user("abcd")))
    assert.isString(strict.read?.(user("abcd")).fault)
    assert.strictEqual(strict.price(Prompt.makeMessage("system", { content: "x" })), 3)
    assert.strictEqual(Estimator.make(() => NaN).price(user("abcd")), Estimator.chars.price(user("abcd")))
  })

  it.effect("a session goes on over a text that its tokenizer throws on", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(seeded({ settings: { maxTokens: 1_000, notice: false } }))
      for (let n = 0; n < 30; n++) {
        yield* manager.append([{ role: "user", content: `<|endoftext|> ${n} ${"and so on ".repeat(20)}` }])
        assert.isAtMost((yield* manager.request).count.tokens, 1_000)
      }
    }).pipe(
      Effect.provide(Estimator.layer(Estimator.tokenizer((text) => {
        throw new Error(text)
      })))
    ))

  it.effect("and tells of it once, wherever the session goes on", () =>
    Effect.gen(function*() {
      const store = yield* OneLog.memory
      const told = (events: ReadonlyArray<CompactionEvent.CompactionEvent>) =>
        events.filter((event) => event._tag === "EstimatorFailed").length
      const settings = { settings: { maxTokens: 1_000 } }
      const once = Effect.gen(function*() {
        const manager = yield* ContextManager.open("session", settings).pipe(OneLog.provide(store))
        const heard = yield* Effect.forkChild(
          Stream.runHead(Stream.filter(manager.events, (event) => event._tag === "EstimatorFailed")),
          { startImmediately: true }
        )
        yield* manager.append("hello")
        assert.strictEqual(told((yield* manager.request).events), 0)
        yield* manager.append(`what is <|endoftext|>? ${"x".repeat(1_000)}`)
        const event = Option.getOrThrow(yield* Fiber.join(heard))
        assert.strictEqual(event._tag, "EstimatorFailed")
        if (event._tag === "EstimatorFailed") {
          assert.match(event.reason, /^disallowed in what is <\|endoftext\|>\? x+…$/)
          assert.isAtMost(event.reason.length, 301)
        }
        yield* manager.append("<|endoftext|>")
        assert.strictEqual(told((yield* manager.request).events), 0)
        return yield* manager.export
      })
      const saved = yield* Effect.scoped(once)
      const restored = yield* ContextManager.make(settings)
      yield* restored.restore(saved)
      const opened = yield* ContextManager.open("session", settings).pipe(OneLog.provide(store))
      for (const manager of [restored, opened, yield* opened.fork]) {
        yield* manager.append("again <|endoftext|>")
        assert.strictEqual(told((yield* manager.request).events), 0)
      }
    }).pipe(
      Effect.scoped,
      Effect.provide(Estimator.layer(Estimator.tokenizer((text) => {
        if (text.includes("<|endoftext|>")) throw new Error(`disallowed in ${text}`)
        return Math.ceil(text.length / 4)
      })))
    ))

  it.effect("one is provided as a service, and the default needs no layer", () =>
    Effect.gen(function*() {
      const said = prompt(user("abcd"), assistant("efgh"))
      assert.strictEqual((yield* Stage.fromPrompt(said, { settings: seed() })).view.price, 18)
      const constant = Estimator.make(() => 7)
      const pass = yield* Stage.fromPrompt(said, { settings: seed() }).pipe(Effect.provide(Estimator.layer(constant)))
      assert.strictEqual(pass.view.price, 14)
      assert.strictEqual(pass.count.tokens, 14)
    }))
})
