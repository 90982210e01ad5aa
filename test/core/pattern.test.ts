/** Regular expressions that are matched in linear time, beside those of the engine; and the case of letters. */
import { assert, describe, it } from "@effect/vitest"
import * as Fold from "../../src/text/fold.ts"
import * as Pattern from "../../src/text/pattern.ts"

const patterns = [
  "a",
  "a*b",
  "(a|b)*abb",
  "^ab$",
  "\\bab\\b",
  "\\Bb",
  "[^a-b]x",
  "[A-B]\\w*1",
  "a{2}b",
  "a{2,}$",
  "b{1,2}x",
  "(?:ab)+1",
  "(?<name>ab)x",
  "x?a?b",
  "x??1",
  "\\d+-",
  "a.b",
  "(a*)*b",
  "(|a)+b",
  "é",
  "[à-ý]",
  "a||1",
  "o{0}b",
  "[\\d-]x",
  "[]a]",
  "[^]",
  "[b-]1",
  "\\s$",
  "^$",
  "a|^b|1$",
  "\\x61\\u0062",
  "\\-",
  "{",
  "a{,2}"
]

/** Every text of at most four of these. */
const texts = (() => {
  const alphabet = ["a", "B", "b", "x", "1", "-", "\n", " ", "É"]
  let last = [""]
  const all = [""]
  for (let length = 1; length <= 4; length++) {
    last = last.flatMap((text) => alphabet.map((char) => `${text}${char}`))
    all.push(...last)
  }
  return all
})()

const compiled = (source: string): Pattern.Pattern => {
  const pattern = Pattern.compile(source)
  if ("reason" in pattern) assert.fail(`${source}: ${JSON.stringify(pattern)}`)
  return pattern
}

describe("a pattern", () => {
  for (const source of patterns) {
    it(`${source} matches what the engine's matches`, () => {
      const pattern = compiled(source)
      const engine = new RegExp(source, "im")
      const wrong = texts.filter((text) => engine.test(text) !== pattern.find(text) >= 0)
      assert.deepStrictEqual(wrong, [])
    })
  }

  it("tells where the first match ends, in whole characters", () => {
    assert.strictEqual(compiled("b+c").find("a bbc bc"), 5)
    assert.strictEqual(compiled("[😀-😂]x").find("😀 😁x"), 6)
    assert.strictEqual(compiled("(?i)B").find("ab"), 2)
    assert.strictEqual(compiled("ς").find("Σ"), 1)
  })

  it("takes twice the time for twice the text, whatever it is", () => {
    // Bits without a period: each place has other threads.
    let state = 7
    const bits = (length: number) =>
      Array.from({ length }, () => {
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
        return state > 1_073_741_824 ? "a" : "b"
      }).join("")
    for (
      const source of ["(a+)+$", "(a|a)*c", "(.*)*c", "(a|b)*a(a|b){12}c", "(a|b|ab)*(b{1,4}a{1,4}){8}c", "a*a*a*a*a*c"]
    ) {
      const [one, two] = [20_000, 40_000].map((length) => {
        const pattern = compiled(source)
        pattern.find(bits(length))
        return pattern.work()
      })
      assert.isBelow(two!, 2.2 * one!, source)
      assert.isBelow(two!, 40_000 * Pattern.mostSteps, source)
    }
  })

  it("is refused where it is none, or cannot be matched so", () => {
    const reasons = (sources: ReadonlyArray<string>) =>
      sources.map((source) => {
        const pattern = Pattern.compile(source)
        return "reason" in pattern ? pattern.reason : `${source} is taken`
      })
    const syntax = [
      "(",
      ")",
      "[a",
      "[b-a]",
      "[\\d-z]",
      "a**",
      "*a",
      "x{3,1}",
      "\\",
      "\\p{L}",
      "\\q",
      "(?x:a)",
      "a{99999}"
    ]
    assert.deepStrictEqual(new Set(reasons(syntax)), new Set(["syntax"]))
    const unsafe = ["(a)\\1", "(?<n>a)\\k<n>", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "a++"]
    assert.deepStrictEqual(new Set(reasons(unsafe)), new Set(["unsafe"]))
    assert.deepStrictEqual(reasons(["a{300}", "((((a{9}){9}){9}){9}){9}"]), ["size", "size"])
    assert.deepStrictEqual(reasons(["a".repeat(201)]), ["length"])
  })
})

describe("the case of letters", () => {
  it("is folded without moving anything", () => {
    const moved: Array<string> = []
    for (let code = 0; code <= 0x10ffff; code++) {
      const char = String.fromCodePoint(code)
      if (Fold.fold(char).length !== char.length) moved.push(code.toString(16))
    }
    assert.deepStrictEqual(moved, [])
    assert.strictEqual(Fold.fold("ΟΔΟΣ İ"), Fold.fold("οδος i"))
  })
})
