import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Html from "../../src/cli/report/Html.ts"
import * as Shown from "../../src/cli/Shown.ts"
import * as Table from "../../src/cli/Table.ts"

/** What must reach no terminal and no page: said in numbers here, as the standards have it, not by classes of Unicode. */
const isObeyed = (code: number): boolean =>
  code <= 0x1f || (code >= 0x7f && code <= 0x9f) || code === 0x061c || code === 0x200b
  || code === 0x200e || code === 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x2064) ||
  (code >= 0x2066 && code <= 0x206f)
  || code === 0xfeff || (code >= 0xd800 && code <= 0xdfff) || code === 0xe0001 || (code >= 0xe0020 && code <= 0xe007f)

/** Whole code points: half of a pair alone is one of those that are not shown. */
const obeyedIn = (text: string, but: ReadonlyArray<string> = []): ReadonlyArray<string> =>
  Array.from(text).filter((each) => isObeyed(each.codePointAt(0) ?? 0) && !but.includes(each))

const samples = [
  "\u001b]0;pwned\u0007",
  "\u009b31mred",
  "\u202egnp.exe",
  "two\nlines\r\n\ttab",
  "\u2028\u2029\u2066\u2069\ufeff\u200b",
  "\ud800 alone, and \udc00",
  "\u{e0041}\u{e007f}",
  "\u007f\u0000"
]

describe("shown text", () => {
  it("writes out every character of the Unicode that a terminal or a page obeys, and no letter", () => {
    for (let code = 0; code <= 0x10ffff; code++) {
      const character = String.fromCodePoint(code)
      if (isObeyed(code)) {
        assert.deepStrictEqual(obeyedIn(Shown.line(character)), [], code.toString(16))
        assert.deepStrictEqual(JSON.parse(Shown.json(character)), character)
      }
    }
    const kept = "Grüße, 文字, שלום, می‌خواهم, 👩‍👩‍👧, é, \u{1f1e9}\u{1f1ea}"
    assert.strictEqual(Shown.line(kept), kept)
    assert.strictEqual(Shown.lines(`${kept}\n\t${kept}`), `${kept}\n\t${kept}`)
  })

  it("is said in the notation of a string", () => {
    assert.strictEqual(Shown.line("\u001b]0;pwned\u0007"), "\\x1b]0;pwned\\x07")
    assert.strictEqual(Shown.line("a\nb\tc\r"), "a\\nb\\tc\\r")
    assert.strictEqual(Shown.line("\u009b\u202e\u{e0041}"), "\\x9b\\u202e\\u{e0041}")
    assert.strictEqual(Shown.lines("a\nb\u001b"), "a\nb\\x1b")
    assert.strictEqual(
      Shown.coloured("\u001b[1mbold\u001b[0m \u001b]0;x\u0007\n"),
      "\u001b[1mbold\u001b[0m \\x1b]0;x\\x07\n"
    )
  })

  it.prop("no text gets through", { before: Schema.String, at: Schema.Literals(samples), after: Schema.String }, ({
    after,
    at,
    before
  }) => {
    const text = before + at + after
    assert.deepStrictEqual(obeyedIn(Shown.line(text)), [])
    assert.deepStrictEqual(obeyedIn(Shown.lines(text), ["\n", "\t"]), [])
    assert.deepStrictEqual(obeyedIn(Html.text(text)), [])
    assert.deepStrictEqual(obeyedIn(Shown.json({ [text]: text })), [])
    assert.deepStrictEqual(JSON.parse(Shown.json({ [text]: [text] })), { [text]: [text] })
    const table = Table.lines([{ title: "tool", align: "left" }, { title: "n", align: "right" }], [[text, "1"], [
      "a",
      text
    ]])
    assert.strictEqual(table.length, 3)
    for (const line of table) assert.deepStrictEqual(obeyedIn(line), [])
  })
})
