/** No pattern of the sources takes more than linear time, whatever text it is given: a person's, a model's or a provider's. */
import { assert, describe, it } from "@effect/vitest"
import * as Checkpoint from "effect-compaction/Checkpoint"
import * as Overflow from "effect-compaction/Overflow"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Extract from "../src/text/extract.ts"
import * as Reply from "../src/text/reply.ts"
import { answers, assistant, result, turn, user } from "./core/conversation.ts"

interface Pattern {
  readonly source: string
  readonly flags: string
  readonly line: number
}

/** What a slash divides when it comes before one; after anything else a slash opens a pattern. */
const isValue = (token: string): boolean =>
  /[\w$)\]"]$/.test(token) && !/^(return|typeof|case|in|of|yield)$/.test(token)

/** The end of a pattern that begins at `from`, or -1 where the line ends first. */
const endOfPattern = (text: string, from: number): number => {
  let isInClass = false
  for (let at = from + 1; at < text.length && text[at] !== "\n"; at++) {
    if (text[at] === "\\") at++
    else if (text[at] === "[") isInClass = true
    else if (text[at] === "]") isInClass = false
    else if (text[at] === "/" && !isInClass) return at
  }
  return -1
}

/** Every regular expression literal of a source text: comments, strings and templates are passed over. */
const patternsOf = (text: string): ReadonlyArray<Pattern> => {
  const found: Array<Pattern> = []
  /** The braces that are open in each template around this place. */
  const templates: Array<number> = []
  let braces = 0
  let last = ""
  let at = 0
  const endOfString = (quote: string): number => {
    let end = at + 1
    while (end < text.length && text[end] !== quote) end += text[end] === "\\" ? 2 : 1
    return end + 1
  }
  const inTemplate = () => {
    while (at < text.length && text[at] !== "`" && !text.startsWith("${", at)) at += text[at] === "\\" ? 2 : 1
    if (text[at] === "`") {
      at++
      last = "\""
    } else {
      templates.push(braces)
      braces = 0
      at += 2
      last = "{"
    }
  }
  while (at < text.length) {
    const char = text[at]!
    if (/\s/.test(char)) at++
    else if (text.startsWith("//", at)) at = text.indexOf("\n", at)
    else if (text.startsWith("/*", at)) at = text.indexOf("*/", at) + 2
    else if (char === "\"" || char === "'") {
      at = endOfString(char)
      last = "\""
    } else if (char === "`") {
      at++
      inTemplate()
    } else if (char === "}" && braces === 0 && templates.length > 0) {
      braces = templates.pop()!
      at++
      inTemplate()
    } else if (char === "/" && !isValue(last) && endOfPattern(text, at) > 0) {
      const end = endOfPattern(text, at)
      const flags = /^[a-z]*/.exec(text.slice(end + 1, end + 9))![0]
      found.push({ source: text.slice(at + 1, end), flags, line: text.slice(0, at).split("\n").length })
      at = end + 1 + flags.length
      last = "\""
    } else {
      if (char === "{") braces++
      if (char === "}") braces--
      const word = /^[\w$]+/.exec(text.slice(at, at + 80))?.[0] ?? char
      last = word
      at += word.length
    }
  }
  return found
}

const root = fileURLToPath(new URL("../src/", import.meta.url))

const files = readdirSync(root, { recursive: true }).map(String).filter((file) => file.endsWith(".ts")).sort()

const collected = files.flatMap((file) =>
  patternsOf(readFileSync(join(root, file), "utf8")).map((pattern) => ({ ...pattern, file }))
)

/** The words in a pattern, in their order: what a text must hold for the pattern to get anywhere. */
const wordsOf = (source: string): ReadonlyArray<string> =>
  source
    .replaceAll(
      /\[\^?(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\[bBwWdDsS]|\(\?(?:<\w+>|<?[!=]|:)|\{\d+(?:,\d*)?\}/g,
      "|"
    )
    .replaceAll(/\\(.)/g, (_, char: string) => char === "n" ? "\n" : char === "/" ? "/" : char)
    .split(/[()|?*+^$.]+/)
    .filter((word) => word !== "")

/** What is repeated, between spaces; those with a space or an end of line stand behind. */
const pumps = [
  ..."a a- a. a/ a_ aA Aa A_ A1 a@ - _ . / ./ ../ 1 1, 1. , f \\ a: : + 1- a1 é 漢 ( ) [ ] { } < > <a \" \"a ' ` `a ``` ~ | ="
    .split(" "),
  ..." |\n|\t| \n|a |a\n|- |* |# |\r|\u00a0|\ud800|```\n|```\na".split("|")
]

const endings = ["", "x", " x", "\u0001", "!\n#"]

/** Texts that are made longer by repeating one part, of about the length that is asked for. */
type Attack = readonly [name: string, make: (length: number) => string]

const attacksOf = ({ source }: Pattern): ReadonlyArray<Attack> => {
  const words = wordsOf(source)
  const starts = ["", ...words, ...words.flatMap((_, at) => at === 0 ? [] : [words.slice(0, at + 1).join("")])].slice(
    0,
    24
  )
  const repeated = [...words, words.join(" 1 "), words.map((word) => `${word}1`).join(""), `${words.join("")}1 `]
  const pump = (start: string, unit: string, ending: string): Attack => [
    JSON.stringify([start, unit, ending]),
    (length) => start + unit.repeat(Math.ceil(length / unit.length)) + ending
  ]
  return [
    ...pumps.flatMap((unit) => endings.map((ending) => pump("", unit, ending))),
    ...starts.slice(1).flatMap((start) => pumps.map((unit) => pump(start, unit, "\u0001"))),
    ...repeated.filter((unit) => unit !== "").flatMap((unit) => [pump("", unit, ""), pump("", `${unit}\n`, "\u0001")])
  ]
}

/** The least work of some runs, in microseconds of the processor: what disturbs a run only ever adds to it. */
const least = (runs: number, run: () => unknown): number => {
  let best = Infinity
  for (let n = 0; n < runs; n++) {
    const begun = process.cpuUsage()
    run()
    const { system, user: own } = process.cpuUsage(begun)
    best = Math.min(best, own + system)
  }
  return best
}

/** Everywhere in the text, since a pattern that fails is tried at every place; a sticky one only where it is put. */
const everywhere = ({ flags, source }: Pattern) => {
  const expression = new RegExp(source, flags.includes("g") || flags.includes("y") ? flags : `${flags}g`)
  return (text: string) => {
    expression.lastIndex = 0
    return flags.includes("y") ? expression.test(text) : text.replaceAll(expression, "").length
  }
}

/** How much longer a text of eight times the length takes: about 8 when time is linear, about 64 when it is squared. */
const growthOf = (run: (text: string) => unknown, make: Attack[1], length: number, runs: number): number => {
  const [short, long] = [make(length), make(8 * length)]
  run(short)
  return least(runs, () => run(long)) / Math.max(least(3 * runs, () => run(short)), 1)
}

/** Between the two, with room for a cache that is smaller than the longer text. */
const allowed = 26

/** An attack under which a pattern takes more than linear time, or `undefined`; each is looked at again before it is said. */
const faultOf = (pattern: Pattern): string | undefined => {
  const run = everywhere(pattern)
  // What is linear is so at any length; a longer text stands out of the noise of a short one.
  return attacksOf(pattern).find(([, make]) =>
    [250, 500, 1_000].every((length) => growthOf(run, make, length, 2) >= allowed)
  )?.[0]
}

describe("patterns", () => {
  it("are all found", () => {
    const text =
      "const a = b / c / d; /* /no/ */ const e = /x[/]y\\//gi // /no/\n`${/in/.test(\"/no/\") ? `/no/${f / 2}` : 1}/no/`"
    assert.deepStrictEqual(patternsOf(text).map(({ flags, source }) => [source, flags]), [["x[/]y\\/", "gi"], [
      "in",
      ""
    ]])
    assert.isAbove(collected.length, 60)
    const made = files.filter((file) => /new RegExp\(|\bRegExp\(/.test(readFileSync(join(root, file), "utf8")))
    assert.deepStrictEqual(
      made,
      ["cli/Shown.ts", "policy/problems.ts"],
      "made of parts at run time: look at them by hand"
    )
  })

  it("the check finds what is squared", () => {
    for (const source of ["\\d+x", "(?:[\\w@.-]+\\/)+\\w", "^\\s*(#.*|[^\\p{L}]*)$", "a.*b.*c", "```\\n(.*?)\\n```"]) {
      assert.isDefined(faultOf({ source, flags: source.includes("\\p") ? "u" : "s", line: 0 }), source)
    }
    for (const source of ["\\d{1,12}x", "[\\w@.-]+", "\\S", "(?<!\\d)\\d{1,9}x"]) {
      assert.isUndefined(faultOf({ source, flags: "", line: 0 }), source)
    }
  })

  for (const { file, line, ...pattern } of collected) {
    it(`${file}:${line} /${pattern.source}/${pattern.flags}`, () => {
      assert.isUndefined(faultOf({ ...pattern, line }))
    })
  }
})

/** What reads texts of people, models, tools and providers, whatever patterns it is made of. */
const readers: ReadonlyArray<readonly [string, (text: string) => unknown]> = [
  ["Checkpoint.strays, of a summary", (text) => Checkpoint.strays(text, "the source", ["Never do it."])],
  ["Checkpoint.strays, of a source", (text) => Checkpoint.strays("src/a.ts, `b c`, parseArgs and 1,234", text, [text])],
  ["Overflow", (text) => Overflow.refusedOf(`prompt is too long ${text}`).tokens ?? Overflow.describes(text)],
  ["a reply", (text) => Reply.faultOf(Reply.said(text), { headings: ["state"], tokens: 1 }) ?? Reply.isErrorText(text)],
  ["an extract", (text) => Extract.summary([user(text), assistant(text), ...turn(text, 1), toolText(text)], 1_000)]
]

const toolText = (text: string) => answers(result("a", text))

describe("readers of foreign text", () => {
  for (const [name, read] of readers) {
    it(`${name}: time grows with the length, not with its square`, () => {
      const units = [
        ...pumps,
        "alpha1 ",
        "Beta_gamma ",
        "a/b.ts ",
        "must never ",
        "12345 ",
        "\"a b\" ",
        "<think>",
        "</think>"
      ]
      const squared = units.filter((unit) => {
        const make = (length: number) => `${unit.repeat(Math.ceil(length / unit.length))}x`
        return [2_000, 4_000, 8_000].every((length) => growthOf(read, make, length, 2) >= allowed)
      })
      assert.deepStrictEqual(squared, [])
    })
  }
})
