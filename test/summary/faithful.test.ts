/** What a checkpoint keeps word for word, and what a summary claims that nobody said. */
import { assert, describe, it } from "@effect/vitest"
import * as Checkpoint from "effect-compaction/Checkpoint"
import * as Estimator from "effect-compaction/Estimator"
import * as Marks from "effect-compaction/Marks"
import type * as Settings from "effect-compaction/Settings"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Transcript from "effect-compaction/Transcript"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { answers, assistant, prompt, result, turn, user, words } from "../core/conversation.ts"
import * as Sessions from "./Sessions.ts"

const transcriptOf = (...texts: ReadonlyArray<string>) =>
  Transcript.fromPrompt(prompt(...texts.map((text) => user(text))), Estimator.chars.price)

const spanOf = (...seqs: ReadonlyArray<number>): Checkpoint.Span => ({ seqs, price: 1_000 })

describe("ledger", () => {
  const transcript = transcriptOf("first", "Use tabs.\nThe weather is nice today.", words("tale", 4_000), "only tests")

  it("carries human messages word for word, in their order", () => {
    assert.deepStrictEqual(Checkpoint.ledger(transcript, spanOf(1, 3), 1_000), {
      quotes: [{ seq: 1, text: "Use tabs.\nThe weather is nice today." }, { seq: 3, text: "only tests" }],
      lost: []
    })
  })

  it("keeps the newest first when there is no room, and records what is lost", () => {
    const room = Estimator.chars.price(user("only tests"))
    assert.deepStrictEqual(Checkpoint.ledger(transcript, spanOf(1, 2, 3), room), {
      quotes: [{ seq: 3, text: "only tests" }],
      lost: [1, 2]
    })
    assert.deepStrictEqual(Checkpoint.ledger(transcript, spanOf(1, 3), 0), { quotes: [], lost: [1, 3] })
  })

  it("is not empty where no message has room whole: the newest is carried by its beginning, and recorded as lost", () => {
    const long = transcriptOf("first", words("tale", 4_000), words("other", 4_000))
    const { lost, quotes } = Checkpoint.ledger(long, spanOf(1, 2), 60)
    assert.deepStrictEqual(quotes.map(({ seq }) => seq), [2])
    assert.match(quotes[0]!.text, /^other lorem .*…$/)
    assert.isAtMost(Estimator.chars.price(user(quotes[0]!.text)), 60)
    assert.deepStrictEqual(lost, [1, 2])
  })

  it("keeps the sentences that state a rule of a message that does not fit", () => {
    const long = transcriptOf("first", `${words("tale", 4_000)}. You must never push to main. ${words("tale", 4_000)}`)
    const { lost, quotes } = Checkpoint.ledger(long, spanOf(1), 100)
    assert.deepStrictEqual(quotes, [{ seq: 1, text: "You must never push to main." }])
    assert.deepStrictEqual(lost, [])
  })

  it("carries on what an earlier checkpoint carried, and quotes no machine and no assistant", () => {
    const later = transcriptOf("first")
    Transcript.append(
      later,
      Checkpoint.message("x", {
        span: spanOf(9),
        generation: 1,
        model: null,
        ledger: { quotes: [{ seq: 0, text: "never delete" }], lost: [] }
      }),
      "library"
    )
    for (const each of [user("a hook spoke", { source: "hook" }), assistant("I must say")]) {
      Transcript.append(later, each)
    }
    assert.deepStrictEqual(Checkpoint.ledger(later, spanOf(1, 2, 3), 1_000).quotes, [{ seq: 0, text: "never delete" }])
  })
})

describe("strays", () => {
  const source =
    "edited src/Budget.ts, 42 tests failed with \"no such file\"; parseArgs(retryCount) and MAX_SIZE are in use"
  const stated = ["You must never delete a file. Maybe avoid the cache."]
  const cases: ReadonlyArray<readonly [string, string, ReadonlyArray<string>, ReadonlyArray<string>]> = [
    ["nothing, of what is there", "src/Budget.ts: 42 failed, `parseArgs`, MAX_SIZE, \"no such file\"", [], []],
    ["a path", "see src/Other.ts", ["src/Other.ts"], []],
    ["a file", "see Other.ts", ["Other.ts"], []],
    ["an identifier", "call parseAll and MIN_SIZE", ["parseAll", "MIN_SIZE"], []],
    ["a number", "43 tests failed, then 7", ["43"], []],
    ["a number with separators that is there without", "1,042", ["1,042"], []],
    ["what stands in quotes", "it said \"no such dir\"", ["no such dir"], []],
    ["what stands in backticks", "run `rm -rf`", ["rm -rf"], []],
    ["no rule that a person stated", "Never delete a file.", [], []],
    ["a number that is part of another", "it has 042 of them", ["042"], []],
    ["nothing, of words joined by a slash that are all there", "edited/failed and tests/MAX_SIZE", [], []],
    ["words joined by a slash, one of them new", "tests/benchmarks", ["tests/benchmarks"], []],
    ["nothing, of another case, brackets and quotes", "`ParseArgs()` and [max_size]", [], []],
    ["nothing, of names in other words", "parse_args and the retry count", [], []],
    ["a hash", "fixed in 3fa85f6", ["3fa85f6"], []],
    ["no rule in a sentence about one", "- the cache must be warm before it is read", [], []],
    ["no rule in a section of the state", "## State\n\n- the old name was never used", [], []],
    ["a rule in a section of rules", "## Constraints\n\n- the linter must pass first", [], [
      "- the linter must pass first"
    ]],
    ["no rule that is put in other words", "## Constraints\n\n- files must not be deleted", [], []],
    ["a rule that nobody stated", "Always run the linter first.", [], ["Always run the linter first."]],
    ["a rule made of something else", "Never use a database.", [], ["Never use a database."]]
  ]
  for (const [name, summary, claims, rules] of cases) {
    it(name, () => {
      assert.deepStrictEqual(Checkpoint.strays(summary, source, stated), { claims, rules })
    })
  }
})

describe("a summary that claims what is not there", () => {
  const lie = "## State\n\n- edited src/Invented.ts\n- You must never use the network proxy"
  const play = Effect.fnUntraced(function*(faithful: NonNullable<Settings.Input["summary"]>["faithful"], text = lie) {
    const { service } = Sessions.saying(text)
    const { manager, told } = yield* Sessions.watched(
      Sessions.withSummary(faithful === undefined ? {} : { faithful }),
      { summarizer: service }
    )
    yield* Sessions.playToTrigger(manager)
    return { last: (yield* told).at(-1)!, status: yield* manager.status }
  })

  it.effect("is accepted with a report by default", () =>
    Effect.gen(function*() {
      const { last } = yield* play(undefined)
      assert.strictEqual(last._tag, "SummaryReady")
      if (last._tag !== "SummaryReady") return
      assert.deepStrictEqual(last.claims, ["src/Invented.ts"])
      assert.deepStrictEqual(last.rules, ["- You must never use the network proxy"])
    }))

  it.effect("is refused when the settings say so, and the session goes on", () =>
    Effect.gen(function*() {
      const { last, status } = yield* play("refuse")
      assert.deepStrictEqual(
        [last._tag, last._tag === "SummaryRefused" ? last.cause : ""],
        ["SummaryRefused", "unfaithful"]
      )
      assert.strictEqual(status.summary, "idle")
    }))

  it.effect("is not looked at when the settings say so", () =>
    Effect.gen(function*() {
      const { last } = yield* play("off")
      assert.deepStrictEqual(last._tag === "SummaryReady" ? [last.claims, last.rules] : [], [[], []])
    }))

  it.effect("a rule that a person stated is none, also when its message was absorbed long ago", () =>
    Effect.gen(function*() {
      const { service } = Sessions.saying("## Constraints\n\n- Never touch the billing tables\n\n## State\n\n- reading")
      const { manager, told } = yield* Sessions.watched(Sessions.withSummary({ faithful: "refuse" }), {
        summarizer: service
      })
      yield* Sessions.step(
        manager,
        ...Sessions.opening,
        user("Please never touch the billing tables."),
        assistant("ok")
      )
      yield* Sessions.play(manager, 0, 6)
      yield* Sessions.step(manager, user("go on"))
      yield* Sessions.play(manager, 6, 40)
      const events = yield* told
      assert.isAtLeast(events.filter((event) => event._tag === "SummaryAbsorbed").length, 2)
      assert.strictEqual(events.filter((event) => event._tag === "SummaryRefused").length, 0)
      // And the words themselves stand in the newest checkpoint.
      const view = yield* manager.view
      const checkpoint = view.items.find(({ entry }) => entry?.origin === "library")!
      const { ledger } = Marks.of(checkpoint.message).checkpoint!
      assert.include(ledger.map(({ text }) => text), "Please never touch the billing tables.")
      assert.isTrue(JSON.stringify(checkpoint.message).includes("- Please never touch the billing tables."))
    }))
})

describe("extractive", () => {
  const request = (messages: Summarizer.Request["messages"], maxTokens = 2_000): Summarizer.Request => ({
    prompt: prompt(),
    messages,
    text: "",
    layout: "standalone",
    fallback: null,
    focus: undefined,
    maxTokens
  })

  it.effect("says the same of the same span, and nothing that is not in it", () =>
    Effect.gen(function*() {
      const messages = [
        user("Fix src/Budget.ts, but never change its name."),
        assistant("I decided to read src/Budget.ts first, because the test fails there."),
        ...turn("src/Budget.ts", 400),
        ...turn("Error: cannot find x", 200)
      ]
      const { text } = yield* Summarizer.extractive.summarize(request(messages))
      assert.strictEqual((yield* Summarizer.extractive.summarize(request(messages))).text, text)
      for (const part of ["never change its name", "I decided", "src/Budget.ts", "cannot find x"]) {
        assert.isTrue(text.includes(part), part)
      }
      const transcript = Transcript.fromPrompt(prompt(...messages), Estimator.chars.price)
      const said = transcript.entries.map((entry) => JSON.stringify(entry.message)).join("\n")
      assert.deepStrictEqual(Checkpoint.strays(text, said, [said]).claims, [])
    }))

  it.effect("is as long as it may be", () =>
    Effect.gen(function*() {
      const messages = Array.from({ length: 60 }, (_, n) => [user(words(`ask ${n}`, 300)), ...turn(`t${n}.ts`, 900)])
        .flat()
      for (const maxTokens of [100, 400, 2_000]) {
        const { text } = yield* Summarizer.extractive.summarize(request(messages, maxTokens))
        assert.isAtMost(text.length, maxTokens * 4)
        assert.isAtLeast(text.length, maxTokens * 4 * 0.85)
      }
    }))

  it.effect("has what was done and what is pending, from the calls and what was said of them", () =>
    Effect.gen(function*() {
      const call = (id: string, name: string, params: unknown) =>
        Prompt.makeMessage("assistant", {
          content: [Prompt.makePart("tool-call", { id, name, params, providerExecuted: false })]
        })
      const failed = Prompt.makePart("tool-result", {
        id: "b",
        name: "bash",
        isFailure: true,
        result: "2 tests failed",
        providerExecuted: false
      })
      const messages = [
        user("Mend the parser."),
        call("p", "TodoWrite", {
          todos: [
            { content: "Write the lexer", status: "completed" },
            { content: "Mend parseList", status: "in_progress" },
            { content: "Release it", status: "pending" }
          ]
        }),
        answers(result("p", "ok")),
        call("a", "edit", { path: "src/Parser.ts", old_string: "a", new_string: "parseList(b)" }),
        answers(result("a", "ok")),
        call("b", "bash", { command: "npm test" }),
        answers(failed),
        assistant("The list is parsed. We still need to cover empty lists.")
      ]
      const { text } = yield* Summarizer.extractive.summarize(request(messages))
      const section = (heading: string) => text.split("## ").find((each) => each.startsWith(heading)) ?? ""
      for (const part of ["Write the lexer", "edit: src/Parser.ts", "bash: npm test (failed)"]) {
        assert.include(section("Done"), part)
      }
      for (const part of ["Mend parseList", "Release it", "still need to cover empty lists"]) {
        assert.include(section("Pending"), part)
      }
      assert.include(section("Files"), "src/Parser.ts")
      assert.include(section("Names"), "parseList")
    }))

  it.effect("ranks names by use and recency where there is no room for all", () =>
    Effect.gen(function*() {
      const messages = Array.from({ length: 60 }, (_, n) => [
        ...turn(`src/once/number${n}/file${n}.ts`, 40),
        ...(n % 3 === 0 ? turn("src/often.ts", 40) : []),
        ...(n === 59 ? turn("src/lately.ts", 40) : [])
      ]).flat()
      const { text } = yield* Summarizer.extractive.summarize(request(messages, 150))
      assert.include(text, "src/often.ts")
      assert.include(text, "src/lately.ts")
      assert.notInclude(text, "src/once/number1/file1.ts")
    }))

  it.effect("is priced by the estimator as it says, also where characters are wide", () =>
    Effect.gen(function*() {
      const messages = Array.from(
        { length: 60 },
        (_, n) => [user(`${n} ${"修正".repeat(80)}`), assistant("だから".repeat(90))]
      ).flat()
      const { text } = yield* Summarizer.extractive.summarize(request(messages, 400))
      assert.isAtMost(Estimator.chars.price(user(text)), 420)
    }))

  it.effect("of nothing is SummaryEmpty", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(Summarizer.extractive.summarize(request([]))))._tag, "SummaryEmpty")
    }))
})

describe("layers", () => {
  it.effect("layerExtractive and layerFromFunction give the session its summariser", () =>
    Effect.gen(function*() {
      const service = yield* Summarizer.Summarizer
      assert.strictEqual(service, Summarizer.extractive)
    }).pipe(Effect.provide(Summarizer.layerExtractive)))

  it.effect("the error of a function is a typed failure with its reason", () =>
    Effect.gen(function*() {
      const service = (yield* Summarizer.Summarizer)!
      const asked = {
        prompt: prompt(),
        messages: [],
        text: "abc",
        layout: "standalone",
        fallback: null,
        focus: undefined,
        maxTokens: 9
      } as const
      const error = yield* Effect.flip(service.summarize(asked))
      assert.strictEqual(error._tag === "SummarizerFailed" ? error.reason : "", "no: abc")
    }).pipe(Effect.provide(Summarizer.layerFromFunction((text) => Effect.fail({ message: `no: ${text}` })))))
})
