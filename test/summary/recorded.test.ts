/** How much of what the check of a summary says is true, and how much of what is false it finds, counted. */
import { assert, describe, it } from "@effect/vitest"
import * as Checkpoint from "effect-compaction/Checkpoint"
import * as Estimator from "effect-compaction/Estimator"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Transcript from "effect-compaction/Transcript"
import * as View from "effect-compaction/View"
import * as Effect from "effect/Effect"
import { prompt } from "../core/conversation.ts"
import * as Recorded from "./recorded.ts"

/** The text of a span as the check reads it, and what people and the system said in it. */
const sourceOf = ({ span }: Recorded.Recorded) => {
  const view = View.fromPrompt(prompt(...span), Estimator.chars.price)
  const { entries } = view.transcript
  const stated = entries.filter((entry) => entry.human || entry.role === "system").map(Transcript.textOf)
  return { text: Checkpoint.render(view, { seqs: entries.map(({ seq }) => seq), price: 0 }), stated }
}

const another = (digit: string): string => String((Number(digit) + 3) % 10)

/** A name with one letter or digit changed, near its end and near its beginning. */
const changed: { readonly [kind: string]: readonly [RegExp, (name: string) => ReadonlyArray<string>] } = {
  path: [
    /(?<![\w/.-])[\w/.-]*\/[\w/.-]*\w\.\w+/g,
    (path) => [path.replace(/(\w)\.(\w+)$/, "$1q.$2"), path.replace(/(\w)\/(?=[^/]*$)/, "$1q/")]
  ],
  symbol: [
    /\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\b[A-Z]+_[A-Z_]+\b|\b[a-z]+_[a-z_]+\b/g,
    (name) => [`${name.slice(0, -1)}${name.endsWith("x") ? "y" : "x"}`, `${name.slice(0, 2)}q${name.slice(3)}`]
  ],
  hash: [
    /\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b/g,
    (
      hash
    ) => [
      `${hash.slice(0, -1)}${hash.endsWith("b") ? "c" : "b"}`,
      `${hash.startsWith("d") ? "e" : "d"}${hash.slice(1)}`
    ]
  ],
  number: [
    /(?<![\w.,/-])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w,/-])/g,
    (number) => [number.slice(0, -1) + another(number.at(-1)!), another(number[0]!) + number.slice(1)]
  ]
}

describe("recorded summaries", () => {
  it("have at most one false claim in two of them", () => {
    const claims = Recorded.all.flatMap((each) => {
      const { stated, text } = sourceOf(each)
      const { claims, rules } = Checkpoint.strays(each.summary, text, stated)
      return [...claims, ...rules].map((claim) => ({ claim, isFalse: !each.invented.includes(claim) }))
    })
    const wrong = claims.filter(({ isFalse }) => isFalse)
    assert.isAtMost(wrong.length, Recorded.all.length / 2, JSON.stringify(wrong))
    assert.deepStrictEqual(claims.filter(({ isFalse }) => !isFalse).map(({ claim }) => claim), ["PostgreSQL/Postgres"])
  })

  for (const [kind, [pattern, change]] of Object.entries(changed)) {
    it(`every ${kind} that is changed is found`, () => {
      let tried = 0
      for (const each of Recorded.all) {
        const { text } = sourceOf(each)
        const names = new Set(each.summary.match(pattern) ?? [])
        for (const name of names) {
          if (kind === "number" && name.replaceAll(/\D/g, "").length < 3) continue
          for (const other of change(name)) {
            const said = each.summary.replace(name, other)
            assert.isNotEmpty(Checkpoint.strays(said, text, []).claims, `${each.name}: ${name} changed to ${other}`)
            tried++
          }
        }
      }
      assert.isAbove(tried, 5)
    })
  }

  it.effect("an extract of the same spans claims nothing that they do not say", () =>
    Effect.gen(function*() {
      for (const each of Recorded.all) {
        const { stated, text } = sourceOf(each)
        const reply = yield* Summarizer.extractive.summarize({
          prompt: prompt(),
          messages: each.span,
          text: "",
          layout: "standalone",
          fallback: null,
          focus: undefined,
          maxTokens: 600
        })
        assert.deepStrictEqual(Checkpoint.strays(reply.text, text, stated), { claims: [], rules: [] }, each.name)
      }
    }))
})
