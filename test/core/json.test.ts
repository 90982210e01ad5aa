import { assert, describe, it } from "@effect/vitest"
import * as Estimator from "effect-compaction/Estimator"
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Extract from "../../src/text/extract.ts"
import * as Json from "../../src/text/json.ts"
import * as Text from "../../src/text/text.ts"
import { normalMessage } from "../../src/wire/normal.ts"
import * as Payload from "../../src/wire/payload.ts"
import { sameMessage } from "../../src/wire/sameMessage.ts"
import { make, type Random } from "../properties/Random.ts"
import { answers, result } from "./conversation.ts"

const nested = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

const circle = (): unknown => {
  const inner: { up?: unknown } = {}
  const outer = { list: [1, inner] }
  inner.up = outer
  return outer
}

const shared = { a: 1 }

class Point {
  readonly x: number
  constructor(x: number) {
    this.x = x
  }
}

class Money {
  readonly cents: number
  constructor(cents: number) {
    this.cents = cents
  }
  toJSON(key: string) {
    return { key, cents: this.cents }
  }
}

const rebuilt: ReadonlyArray<readonly [name: string, value: unknown, json: Schema.Json]> = [
  ["undefined", undefined, null],
  ["NaN", NaN, null],
  ["infinity", [Infinity, -Infinity], [null, null]],
  ["minus zero", { a: -0 }, { a: 0 }],
  ["an undefined field", { a: 1, b: undefined, c: 2 }, { a: 1, c: 2 }],
  ["an undefined element", [1, undefined, 2], [1, null, 2]],
  // eslint-disable-next-line no-sparse-arrays
  ["a hole", [1, , 2], [1, null, 2]],
  ["a date", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
  ["a date that is none", new Date(NaN), null],
  ["an address", new URL("https://example.com/a"), "https://example.com/a"],
  ["toJSON is told its key", { price: new Money(5) }, { price: { key: "price", cents: 5 } }],
  ["toJSON in a list", [new Money(5)], [{ key: "0", cents: 5 }]],
  ["toJSON without a value", { a: { toJSON: () => undefined }, b: 1 }, { b: 1 }],
  ["what toJSON returns is normalised", { toJSON: () => [NaN, -0] }, [null, 0]],
  ["what toJSON returns is not asked again", { toJSON: () => ({ a: 1, toJSON: undefined }) }, { a: 1 }],
  ["values made with new", [Object(1), Object("a"), Object(false)], [1, "a", false]],
  ["a map and a set", [new Map([[1, 2]]), new Set([1])], [{}, {}]],
  ["bytes", new Uint8Array([7, 8]), { 0: 7, 1: 8 }],
  ["an instance of a class", new Point(3), { x: 3 }],
  ["a key that is a symbol", { a: NaN, [Symbol.iterator]: 1 }, { a: null }],
  [
    "the key __proto__",
    JSON.parse("{\"__proto__\":{\"a\":1},\"b\":null}"),
    JSON.parse("{\"__proto__\":{\"a\":1},\"b\":null}")
  ],
  ["half a pair", "\ud83d", "\ud83d"],
  ["the same object twice", [shared, shared, NaN], [{ a: 1 }, { a: 1 }, null]]
]

const refused: ReadonlyArray<
  readonly [name: string, value: unknown, reason: Json.Fault["reason"], message: string]
> = [
  ["a BigInt", { total: 1n }, "bigint", "total is a BigInt"],
  ["a BigInt made with Object", [Object(1n)], "bigint", "[0] is a BigInt"],
  ["a function", { rows: [{ get: () => 1 }] }, "function", "rows[0].get is a function"],
  ["a function alone", () => 1, "function", "it is a function"],
  ["a symbol", { "a b": Symbol.iterator }, "symbol", "[\"a b\"] is a symbol"],
  ["toJSON returns a BigInt", { toJSON: () => 1n }, "bigint", "it is a BigInt"],
  ["a circle", circle(), "circular", "list[1].up is an object that contains itself"],
  ["a circle behind a value", { a: circle() }, "circular", "a.list[1].up is an object that contains itself"],
  [
    "too deep",
    nested(Json.maxDepth + 1),
    "deep",
    "[0].a[0].a[0].a[0].a… is more than 1000 objects or arrays within one another"
  ],
  [
    "a hundred thousand deep",
    nested(100_000),
    "deep",
    "a[0].a[0].a[0].a[0]… is more than 1000 objects or arrays within one another"
  ],
  [
    "a getter that throws",
    Object.defineProperty({}, "a", { enumerable: true, get: () => JSON.parse("{") }),
    "throws",
    "it is a value that cannot be read: "
  ]
]

describe("Json.normalise", () => {
  for (const [name, value, json] of rebuilt) {
    it(name, () => {
      const normal = Result.getOrThrow(Json.normalise(value))
      assert.deepStrictEqual(normal, json)
      assert.strictEqual(JSON.stringify(normal), JSON.stringify(value) ?? "null")
      assert.strictEqual(Result.getOrThrow(Json.normalise(normal)), normal)
    })
  }

  for (const [name, value, reason, message] of refused) {
    it(`refuses ${name}`, () => {
      const fault = Result.getOrThrow(Result.flip(Json.normalise(value)))
      assert.strictEqual(fault.reason, reason)
      assert.isTrue(fault.message.startsWith(message), fault.message)
      assert.isBelow(fault.message.length, 400)
    })
  }

  it("keeps what is JSON already, part by part", () => {
    const list = [1, "a", true, null, { b: [] }]
    assert.strictEqual(Result.getOrThrow(Json.normalise(list)), list)
    const deep = nested(Json.maxDepth)
    assert.strictEqual(Result.getOrThrow(Json.normalise(deep)), deep)
    const bare: object = Object.assign(Object.create(null), { a: 1 })
    assert.strictEqual<unknown>(Result.getOrThrow(Json.normalise(bare)), bare)
    const mixed = Result.getOrThrow(Json.normalise({ list, other: NaN }))
    assert.strictEqual((mixed as { readonly list: unknown }).list, list)
  })

  it("changes nothing of what it is given", () => {
    const given = { a: [NaN, { b: undefined, c: -0 }] }
    Json.normalise(given)
    assert.deepStrictEqual(given, { a: [NaN, { b: undefined, c: -0 }] })
  })
})

const leaves: readonly [unknown, ...ReadonlyArray<unknown>] = [
  -3,
  0.5,
  NaN,
  -0,
  1e300,
  -Infinity,
  "a",
  "\ud83d\n\u2028",
  null,
  true,
  undefined,
  new Date(0),
  Object(7)
]

const tree = (random: Random, levels: number): unknown => {
  if (levels === 0 || random.chance(0.4)) return random.pick(leaves)
  const within = Array.from({ length: random.below(5) }, () => tree(random, levels - 1))
  return random.chance(0.5)
    ? within
    : Object.fromEntries(within.map((value) => [random.pick(["a", "b", "7", "__proto__", ""]), value]))
}

describe("Json.normalise, any value", () => {
  it("is JSON.parse of JSON.stringify", () => {
    const random = make(7)
    for (let run = 0; run < 2_000; run++) {
      const value = tree(random, 5)
      const normal = Result.getOrThrow(Json.normalise(value))
      assert.deepStrictEqual(normal, JSON.parse(JSON.stringify(value) ?? "null"))
      assert.strictEqual(Result.getOrThrow(Json.normalise(normal)), normal)
    }
  })
})

describe("values that no session holds", () => {
  const deep = answers(result("a", nested(100_000)))
  const odd = answers(result("a", { n: 1n }), result("b", circle()))

  it("are measured, read and compared without an overflow", () => {
    for (const message of [deep, odd]) {
      assert.isAbove(Estimator.chars.price(message), 0)
      assert.isFalse(Estimator.chars.isPartial(message))
      assert.isAbove(Payload.of(message).bytes, 0)
      assert.isAbove(Text.ofMessage(message).length, 0)
      assert.isTrue(sameMessage(message, message))
    }
    assert.isFalse(sameMessage(deep, answers(result("a", nested(100_000)))))
    const call = (params: unknown) =>
      Prompt.makeMessage("assistant", {
        content: [Prompt.makePart("tool-call", { id: "a", name: "run", params, providerExecuted: false })]
      })
    assert.include(
      Extract.summary([call({ a: ["one", { b: "two" }], c: circle(), d: nested(100_000) })], 400),
      "one two"
    )
  })

  it("a deep value below the bound is measured to its end", () => {
    const inner = "x".repeat(4_000)
    let value: unknown = inner
    for (let level = 0; level < Json.maxDepth; level++) value = [value]
    assert.isAtLeast(Estimator.chars.price(answers(result("a", value))), 1_000)
  })
})

describe("messages that say the same in JSON", () => {
  const rows: ReadonlyArray<readonly [name: string, a: unknown, b: unknown, same: boolean]> = [
    ["NaN and null", { a: NaN }, { a: null }, true],
    ["infinity and NaN", [Infinity], [NaN], true],
    ["minus zero", -0, 0, true],
    ["undefined and null", undefined, null, true],
    ["an undefined field", { a: undefined, b: 1 }, { b: 1 }, true],
    // oxlint-disable-next-line no-sparse-arrays
    ["a hole and null", [1, , 2], [1, null, 2], true],
    // oxlint-disable-next-line no-sparse-arrays
    ["a hole and a value", [1, , 2], [1, 5, 2], false],
    ["a date and its text", new Date(0), "1970-01-01T00:00:00.000Z", true],
    ["zero and null", 0, null, false],
    ["a null field and none", { a: null }, {}, false]
  ]
  for (const [name, a, b, same] of rows) {
    it(name, () => {
      assert.strictEqual(sameMessage(answers(result("a", a)), answers(result("a", b))), same)
      assert.strictEqual(sameMessage(answers(result("a", b)), answers(result("a", a))), same)
    })
  }
})

describe("normalMessage", () => {
  const options = (value: unknown) => ({ own: value }) as Prompt.ProviderOptions
  const message = (value: unknown) =>
    Prompt.makeMessage("assistant", {
      content: [
        Prompt.makePart("text", { text: "a", options: options({ value }) }),
        Prompt.makePart("tool-call", { id: "c", name: "t", params: { value }, providerExecuted: true }),
        Prompt.makePart("tool-result", {
          id: "c",
          name: "t",
          isFailure: false,
          providerExecuted: true,
          result: value,
          modelOutput: [Prompt.makePart("text", { text: "b", options: options({ value }) })]
        })
      ],
      options: options({ value })
    })

  it("makes JSON of parameters, results and options, wherever they stand", () => {
    assert.deepStrictEqual(Result.getOrThrow(normalMessage(message(NaN))), message(null))
    assert.deepStrictEqual(Result.getOrThrow(normalMessage(message(new Date(0)))), message("1970-01-01T00:00:00.000Z"))
  })

  it("keeps a message that is JSON already", () => {
    const file = Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([1]) })
    for (
      const each of [
        message({ a: [1] }),
        Prompt.makeMessage("user", { content: [file] }),
        Prompt.makeMessage("system", { content: "s" })
      ]
    ) assert.strictEqual(Result.getOrThrow(normalMessage(each)), each)
  })

  const places: ReadonlyArray<readonly [name: string, message: Prompt.Message, place: string]> = [
    ["options of the message", message(1n), "options.own.value is a BigInt"],
    [
      "parameters",
      Prompt.makeMessage("assistant", {
        content: [Prompt.makePart("tool-call", { id: "c", name: "t", params: { a: 1n }, providerExecuted: false })]
      }),
      "content[0].params.a is a BigInt"
    ],
    ["a result", answers(result("a", circle())), "content[0].result.list[1].up is an object that contains itself"],
    ["a deep result", answers(result("a", nested(3_000))), "content[0].result.a[0].a[0].a… is more than 1000"]
  ]
  for (const [name, given, place] of places) {
    it(`names the place of what is no JSON: ${name}`, () => {
      const fault = Result.getOrThrow(Result.flip(normalMessage(given)))
      assert.isTrue(fault.message.startsWith(place), fault.message)
    })
  }
})
