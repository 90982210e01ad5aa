import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { parts } from "./parts.ts"
import * as Play from "./Play.ts"

/** A change of a few words in a notice moves figures by less than this; one of a policy moves them by more. */
const tolerance = 0.03

const numbers = /\d[\d,]*(?:\.\d+)?/g

/** The figures of a text, and the text without them. */
const apart = (text: string) => ({
  figures: Array.from(text.matchAll(numbers), ([match]) => Number(match.replaceAll(",", ""))),
  words: text.replaceAll(numbers, "#")
})

describe("docs/evidence.md", () => {
  const text = readFileSync("docs/evidence.md", "utf8")
  const sections = new Map(
    text.split(/^(?=<!-- \w+ -->$)/m).slice(1).map((section) => {
      const end = section.indexOf("\n")
      return [section.slice(5, end - 4), section.slice(end + 1).trimEnd()]
    })
  )

  it("has its parts once, in order, the goals and those anybody can make among them", () => {
    const there = parts.filter(({ name, of }) => sections.has(name) || name === "goals" || of === "samples")
    assert.deepStrictEqual(Array.from(sections.keys()), there.map(({ name }) => name))
  })

  it("names no place of a machine", () => assert.notMatch(text, /\/(?:home|root|tmp|work|Users)\//))

  for (const part of parts.filter(({ of }) => of === "samples")) {
    it.effect(`says of ${part.name} what is so`, () =>
      Effect.gen(function*() {
        const now = apart((yield* part.lines(Play.samples())).join("\n").trimEnd())
        const written = apart(sections.get(part.name) ?? "")
        const advice = `run npm run evidence -- ${part.name}, and look at what changed`
        assert.strictEqual(now.words, written.words, advice)
        now.figures.forEach((figure, at) => {
          assert.closeTo(figure, written.figures[at]!, Math.max(1e-9, tolerance * Math.abs(figure)) + 0.005, advice)
        })
      }), 120_000)
  }
})
