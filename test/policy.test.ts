import { assert, describe, it } from "@effect/vitest"
import * as CompactionEvent from "effect-compaction/CompactionEvent"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Decision from "effect-compaction/Decision"
import type * as Gate from "effect-compaction/Gate"
import type * as Guard from "effect-compaction/Guard"
import * as Kind from "effect-compaction/Kind"
import * as Ladder from "effect-compaction/Ladder"
import * as Policy from "effect-compaction/Policy"
import * as Rung from "effect-compaction/Rung"
import type * as SessionStore from "effect-compaction/SessionStore"
import type * as Settings from "effect-compaction/Settings"
import type * as Stage from "effect-compaction/Stage"
import * as Summarizer from "effect-compaction/Summarizer"
import * as Prompt from "effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { readFileSync } from "node:fs"
import { answers, assistant, calls, result, user, words } from "./core/conversation.ts"
import { policySchema } from "./generate/policySchema.ts"

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
/** Compiles only for `true`: the check is made by the compiler. */
const exactly = <_True extends true>() => {}

class Leaked extends Schema.TaggedError<Leaked>("test/Leaked")("Leaked", {}) {}
class Words extends Context.Service<Words, ReadonlyArray<string>>()("test/Words") {}

/** Leaves out the results of one tool, and fails on what must not be seen at all. */
const Redact = Kind.rung("test/redact", {
  options: Schema.Struct({
    tool: Schema.NonEmptyString,
    strict: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))
  }),
  build: ({ strict, tool }) =>
    Rung.make(
      "redact",
      Effect.fnUntraced(function*(pass: Stage.Pass): Effect.fn.Return<Stage.Pass, Leaked, Words> {
        const secrets = yield* Words
        const leaks = pass.view.items.some(({ message }) =>
          secrets.some((word) => JSON.stringify(message).includes(word))
        )
        if (strict && leaks) return yield* new Leaked()
        return yield* Rung.stage(Rung.propose("redact", function*(draft) {
          for (const item of draft.items) {
            const entry = item?.entry
            if (entry?.kind === "result" && entry.tool === tool) {
              yield { _tag: "Truncate", seq: entry.seq, at: draft.at, k: 0, shape: "head" }
            }
          }
        }))(pass)
      })
    )
})

const Own = Policy.withKinds(Redact)

type StandardError = Ladder.BudgetInfeasible | Guard.ClearFloorUnsatisfied | Gate.TargetBelowOverhead

describe("the types of a policy", () => {
  it("hold exactly the errors and services of its kinds", () => {
    const plain = Policy.options(Policy.codex)
    exactly<Equal<typeof plain, Policy.Written>>()
    const own = Own.options({ ...Policy.codex, ladder: [{ _tag: "test/redact", tool: "vault", strict: true }] })
    exactly<Equal<typeof own.ladder, Ladder.Ladder<Leaked, Words>>>()
    const manager = ContextManager.make(own)
    exactly<
      Equal<
        typeof manager,
        Effect.Effect<ContextManager.ContextManager<Leaked | StandardError>, Policy.PolicyError, Words | Scope.Scope>
      >
    >()
    class AppContext extends ContextManager.Service<AppContext>()("test/AppContext", own) {}
    exactly<Equal<typeof AppContext.layer, Layer.Layer<AppContext, ContextManager.OpenError, Words>>>()
    exactly<
      Equal<
        typeof AppContext["Service"],
        ContextManager.ContextManager<Leaked | StandardError | SessionStore.SessionLost>
      >
    >()
    class PresetContext extends ContextManager.Service<PresetContext>()(
      "test/PresetContext",
      Policy.options({ ...Policy.contextSimple, window: 200_000 })
    ) {}
    exactly<
      Equal<typeof PresetContext["Service"], ContextManager.ContextManager<StandardError | SessionStore.SessionLost>>
    >()
    const catalog = Kind.catalog(Redact)
    exactly<
      Equal<Kind.Spec<typeof catalog.kinds[number]>, {
        readonly _tag: "test/redact"
        readonly tool: string
        readonly strict: boolean
      }>
    >()
    exactly<
      Equal<Kind.SpecInput<typeof catalog.kinds[number]>, {
        readonly _tag: "test/redact"
        readonly tool: string
        readonly strict?: boolean
      }>
    >()
    const built = catalog.build([{ _tag: "test/redact", tool: "vault", strict: false }])
    exactly<Equal<typeof built, Ladder.Ladder<Leaked, Words>>>()
    // @ts-expect-error a kind that is not of this library is none of these policies
    Policy.options({ ...Policy.none, ladder: [{ _tag: "test/redact", tool: "vault", strict: true }] })
    // @ts-expect-error options of another kind
    Policy.options({ ...Policy.none, ladder: [{ _tag: "remove", fraction: 1 }] })
    // @ts-expect-error the options of a kind are decoded where a policy is used, so none is missing
    Own.options({ ...Policy.none, ladder: [{ _tag: "test/redact", tool: "vault" }] })
    // Compiled and built; nothing of it is run here.
    assert.strictEqual(built.rungs.length, 1)
  })
})

describe("Policy.decode", () => {
  it.effect("fills in the defaults, which are those of the settings and of the default ladder", () =>
    Effect.gen(function*() {
      const policy = yield* Policy.decode({})
      assert.deepStrictEqual(policy, Policy.recommended)
      const named = [[policy, Ladder.recommended], [Policy.contextSimple, Ladder.progressive]] as const
      for (const [each, ladder] of named) {
        assert.deepStrictEqual(
          Policy.options(each).ladder.rungs.map(({ name }) => name),
          ladder.rungs.map(({ name }) => name)
        )
      }
      const manager = yield* Policy.prepare({})
      assert.deepStrictEqual(manager.pass.ladder?.rungs, Ladder.recommended.rungs)
    }))

  it.effect("fills in what a rung leaves out", () =>
    Effect.gen(function*() {
      const { ladder } = yield* Policy.decode({
        ladder: [
          { _tag: "pruneToolResults" },
          { _tag: "clearToolResults", keep: 9 },
          { _tag: "dedupeReads", tool: "Read", key: "file_path" },
          { _tag: "clearReasoning" }
        ]
      })
      assert.deepStrictEqual(ladder, [
        {
          _tag: "pruneToolResults",
          thresholdChars: 8_192,
          headChars: 4_096,
          tailChars: 1_024,
          keepNewest: 1,
          stopAtTarget: true
        },
        { _tag: "clearToolResults", keep: 9, exclude: [], clearInputs: false },
        { _tag: "dedupeReads", tool: "Read", key: "file_path" },
        { _tag: "clearReasoning", keepTurns: 1 }
      ])
    }))

  it.effect("a summary is options of the manager again", () =>
    Effect.gen(function*() {
      const policy = yield* Policy.decode({ summary: { timeout: "5 seconds", trigger: 0.7 } })
      const { settings } = Policy.options(policy)
      assert.deepStrictEqual([settings.summary?.timeout, settings.summary?.trigger], [5_000, 0.7])
      yield* Effect.scoped(ContextManager.make(Policy.options(policy)))
    }))
})

/** A long session of calls, each result 4,000 characters, with an answer in the last line. */
const session = Prompt.fromMessages([
  user("Find out why the build fails, and do not touch the lock file."),
  ...Array.from({ length: 60 }, (_, at) => [
    calls(`c${at}`),
    answers(result(`c${at}`, `${words("log", 4_000)}\nanswer ${at}`)),
    assistant(words(`So it is not ${at}.`, 300))
  ]).flat(),
  user("Go on.")
])

interface Outcome {
  readonly decisions: ReadonlyArray<Decision.Decision>
  readonly events: ReadonlyArray<CompactionEvent.CompactionEvent>
  readonly messages: number
}

/** What one request over the session decides under a policy. */
const outcomeOf = (policy: Policy.Policy) =>
  Effect.gen(function*() {
    const manager = yield* ContextManager.make(Policy.options(policy))
    yield* manager.append(session)
    const { events, prompt } = yield* manager.request
    const { decisions } = yield* manager.view
    return { decisions, events, messages: prompt.content.length } satisfies Outcome
    // What a preset does where nobody writes summaries; else the extract would.
  }).pipe(Effect.scoped, Effect.provideService(Summarizer.Summarizer, undefined))

const kindsOf = ({ decisions }: Outcome): ReadonlyArray<string> =>
  Array.from(new Set(decisions.map(({ _tag }) => _tag))).sort()

/** For a session of 66,504 tokens. */
const small = { window: 50_000 }

describe("the presets", () => {
  it("are these, by the names they have everywhere", () =>
    assert.deepStrictEqual(Object.keys(Policy.presets), [
      "contextSimple",
      "contextSimpleHybrid",
      "contextSimpleSummary",
      "deepseekHarness",
      "codex",
      "claudeCode",
      "openCode",
      "anthropicContextEditing",
      "slidingWindow",
      "none",
      "recommended"
    ]))

  for (const [name, preset] of Object.entries<Policy.Policy>(Policy.presets)) {
    it.effect(`${name} is what its JSON decodes to`, () =>
      Effect.gen(function*() {
        const written = { ...Policy.options(preset).settings, ladder: preset.ladder }
        assert.deepStrictEqual(yield* Policy.decode(JSON.parse(JSON.stringify(written))), preset)
      }))
  }

  it.effect("recommended gives the bytes of a manager without a policy", () =>
    Effect.gen(function*() {
      const bytes = (options: Policy.Options) =>
        Effect.gen(function*() {
          const manager = yield* ContextManager.make(options)
          yield* manager.append(session)
          return JSON.stringify(yield* manager.request)
        }).pipe(Effect.scoped)
      const policy = { ...Policy.recommended, ...small }
      assert.strictEqual(yield* bytes(Policy.options(policy)), yield* bytes({ settings: small }))
    }))

  it.effect("contextSimpleHybrid decides nothing on an estimate below the whole budget", () =>
    Effect.gen(function*() {
      const near = { ...Policy.contextSimpleHybrid, maxTokens: 70_000, notice: false }
      const held = yield* outcomeOf(near)
      assert.deepStrictEqual(held.decisions, [])
      assert.isTrue(held.events.some(({ _tag }) => _tag === "PassRefused"))
      assert.isAbove((yield* outcomeOf({ ...near, provenanceGate: false })).decisions.length, 0)
    }))

  it.effect("anthropicContextEditing clears from 100,000 tokens on, all but the newest 3 results", () =>
    Effect.gen(function*() {
      const { compactThreshold } = Policy.anthropicContextEditing
      const { settings } = Policy.options(Policy.anthropicContextEditing)
      assert.strictEqual(settings.window, undefined)
      assert.strictEqual(compactThreshold * 200_000, 100_000)
      assert.deepStrictEqual((yield* outcomeOf(Policy.anthropicContextEditing)).decisions, [])
      const outcome = yield* outcomeOf({ ...Policy.anthropicContextEditing, maxTokens: 100_000 })
      assert.deepStrictEqual(kindsOf(outcome), ["Clear"])
      const seqs = outcome.decisions.flatMap((decision) => "seq" in decision ? [decision.seq] : [])
      assert.deepStrictEqual(seqs, Array.from({ length: seqs.length }, (_, at) => 2 + 3 * at), "oldest first")
      assert.isAtMost(seqs.length, 57)
    }))

  it.effect("openCode keeps the newest results, and refuses a small gain without an error", () =>
    Effect.gen(function*() {
      const policy = { ...Policy.openCode, maxTokens: 70_000 }
      const nothing = yield* outcomeOf(policy)
      assert.deepStrictEqual(kindsOf(nothing), [], "60 results are all among the newest 86")
      const few = {
        ...policy,
        ladder: [{ _tag: "clearToolResults", keep: 40, exclude: [], clearInputs: false }] as const
      }
      const refused = yield* outcomeOf(few)
      assert.deepStrictEqual(refused.decisions, [])
      assert.isTrue(
        refused.events.some(({ _tag }) => _tag === "CompactionSkipped"),
        "20 results are less than 20,000 tokens"
      )
      assert.isAbove(policy.maxConsecutiveSkips, 1_000_000)
    }))

  it.effect("codex cuts results to 10,000 tokens from both ends, and nothing else", () =>
    Effect.gen(function*() {
      const long = Prompt.fromMessages([
        user("Run it."),
        calls("a"),
        answers(result("a", `${words("log", 200_000)}\nthe answer`)),
        user("Go on.")
      ])
      const manager = yield* ContextManager.make(Policy.options({ ...Policy.codex, maxTokens: 50_000 }))
      yield* manager.append(long)
      const { prompt } = yield* manager.request
      const { decisions } = yield* manager.view
      assert.deepStrictEqual(decisions.map(({ _tag }) => _tag), ["Truncate"])
      const text = JSON.stringify(prompt.content)
      assert.include(text, "the answer")
      assert.isBelow(text.length, 45_000)
      assert.isAbove(text.length, 35_000)
      // Where nobody writes summaries; else the extract would.
    }).pipe(Effect.scoped, Effect.provideService(Summarizer.Summarizer, undefined)))

  it.effect("slidingWindow removes the oldest, and does nothing else", () =>
    Effect.gen(function*() {
      const outcome = yield* outcomeOf({ ...Policy.slidingWindow, ...small })
      assert.deepStrictEqual(kindsOf(outcome), ["Remove"])
      const seqs = outcome.decisions.flatMap((decision) => decision._tag === "Remove" ? decision.seqs : [])
      assert.deepStrictEqual(seqs, Array.from({ length: seqs.length }, (_, at) => at + 1))
    }))

  it.effect("none sends everything, over the budget too", () =>
    Effect.gen(function*() {
      const outcome = yield* outcomeOf({ ...Policy.none, maxTokens: 1_000 })
      assert.deepStrictEqual([outcome.decisions, outcome.messages], [[], session.content.length])
    }))
})

describe("a rung kind of one's own", () => {
  const json = {
    maxTokens: 20_000,
    ladder: [{ _tag: "test/redact", tool: "read" }, { _tag: "remove", relax: 1 }]
  }
  const secrets = (...list: ReadonlyArray<string>) => Effect.provideService(Words, list)

  it.effect("decodes, with the defaults of its options", () =>
    Effect.gen(function*() {
      const { ladder } = yield* Own.decode(json)
      assert.deepStrictEqual(ladder, [
        { _tag: "test/redact", tool: "read", strict: false },
        { _tag: "remove", relax: 1 }
      ])
    }))

  it.effect("is refused by policies that do not know it", () =>
    Effect.gen(function*() {
      const { problems } = yield* Effect.flip(Policy.decode(json))
      assert.deepStrictEqual(problems.map(({ path }) => path), ["ladder[0]._tag"])
    }))

  it("appears in the JSON Schema", () => {
    assert.include(JSON.stringify(Own.jsonSchema()), "\"enum\":[\"test/redact\"]")
    assert.notInclude(JSON.stringify(Policy.jsonSchema()), "test/redact")
  })

  it.effect("runs in a manager, before the rungs behind it", () =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(Own.options(yield* Own.decode(json)))
      yield* manager.append(session)
      yield* manager.request
      const { decisions } = yield* manager.view
      assert.strictEqual(decisions[0]?._tag, "Truncate")
    }).pipe(secrets(), Effect.scoped))

  it.effect("fails a request with its own error, which is in the type", () =>
    Effect.gen(function*() {
      const policy = yield* Own.decode({ ...json, ladder: [{ _tag: "test/redact", tool: "read", strict: true }] })
      const manager = yield* ContextManager.make(Own.options(policy))
      yield* manager.append(session)
      const caught = yield* manager.request.pipe(
        Effect.as("sent"),
        Effect.catchTag("Leaked", ({ _tag }) => Effect.succeed(_tag))
      )
      assert.strictEqual(caught, "Leaked")
    }).pipe(secrets("answer 7"), Effect.scoped))

  it.effect("takes the place of a kind with the same tag", () =>
    Effect.gen(function*() {
      const Stay = Kind.rung("remove", {
        options: Schema.Struct({}),
        build: () => Rung.make("stay", Effect.succeed)
      })
      const { decode, options } = Policy.withKinds(Stay)
      const policy = yield* decode({ ladder: [{ _tag: "remove" }] })
      assert.deepStrictEqual(options(policy).ladder.rungs.map(({ name }) => name), ["stay"])
    }))
})

describe("what is generated or written about a policy", () => {
  it("docs/policy.schema.json is current: npm run schema", () =>
    assert.strictEqual(read("docs/policy.schema.json"), policySchema()))

  /** The part of a JSON Schema that is read here. */
  interface Described {
    readonly description?: string
    readonly default?: unknown
    readonly properties?: { readonly [key: string]: Described }
    readonly anyOf?: ReadonlyArray<Described>
    readonly enum?: ReadonlyArray<string>
  }
  const properties: { readonly [key: string]: Described } = JSON.parse(policySchema()).properties

  /** The rows of the tables below a heading that begin with a name in code, as cells. */
  const rowsOf = (text: string, heading: RegExp): ReadonlyArray<ReadonlyArray<string>> => {
    const sections = text.split(/^(?=## )/m).filter((section) => heading.test(section))
    return sections.flatMap((section) =>
      section.split("\n").filter((line) => line.startsWith("| `")).map((line) =>
        line.split("|").slice(1, -1).map((cell) => cell.trim().replace(/^`(.*)`$/, "$1"))
      )
    )
  }
  const shown = (value: unknown): string => value === undefined ? "—" : JSON.stringify(value)

  it("the JSON Schema says of every key what it means, and its default", () => {
    const defaults: { readonly [key: string]: unknown } = { ...Policy.recommended }
    for (const [key, { default: value, description }] of Object.entries(properties)) {
      assert.isString(description, key)
      assert.deepStrictEqual(value, defaults[key], key)
    }
  })

  it("docs/options.md has every key of a policy, with its default and a reason", () => {
    const rows = rowsOf(read("docs/options.md"), /^## (?!Summaries|The ladder)/)
    const rest = Object.entries(properties).filter(([key]) => key !== "ladder" && key !== "summary")
    assert.deepStrictEqual(
      Object.fromEntries(rows.map(([key, , value]) => [key, value])),
      Object.fromEntries(rest.map(([key, { default: value }]) => [key, shown(value)]))
    )
    assert.strictEqual(rows.length, rest.length)
    for (const [key, unit, , why] of rows) assert.isTrue(unit !== "" && (why ?? "").length > 10, key)
  })

  it.effect("docs/options.md has every option of a summary, with its default", () =>
    Effect.gen(function*() {
      const rows = rowsOf(read("docs/options.md"), /^## Summaries/)
      // A duration may be written in many ways; what decodes to the same is the same.
      const set = rows.filter(([, , value]) => value !== "—")
      const summary = Object.fromEntries(set.map(([key = "", , value = ""]) => [key, JSON.parse(value) as unknown]))
      assert.deepStrictEqual(yield* Policy.decode({ summary }), yield* Policy.decode({ summary: {} }))
      const keys = Object.keys(properties.summary?.anyOf?.[0]?.properties ?? {})
      assert.sameMembers(rows.map(([key]) => key), keys)
    }))

  it.effect("docs/options.md has every option of every kind of rung, with its default", () =>
    Effect.gen(function*() {
      const required = { fraction: 1, relax: 1, tool: "read", key: "path" }
      const options: Array<ReadonlyArray<string>> = []
      for (const { schema, tag } of Kind.builtIn.kinds) {
        const needed = Object.entries(required).filter(([key]) => key in schema.fields)
        const policy = yield* Policy.decode({ ladder: [{ _tag: tag, ...Object.fromEntries(needed) }] })
        for (const [key, value] of Object.entries(policy.ladder[0] ?? {})) {
          if (key !== "_tag") options.push([tag, key, key in required ? "required" : shown(value)])
        }
      }
      const rows = rowsOf(read("docs/options.md"), /^## The ladder/).filter(([name]) => name !== "ladder")
      assert.deepStrictEqual(rows.map(([tag = "", key = "", , value = ""]) => [tag, key, value]), options)
    }))

  it("docs/events.md has every event, with all its fields", () => {
    const text = read("docs/events.md")
    const fieldsOf = ({ anyOf = [], properties: own }: Described, path: string): ReadonlyArray<string> => {
      const nested = own ?? anyOf.find((each) => each.properties !== undefined)?.properties
      if (nested === undefined) return [path]
      return Object.entries(nested).flatMap(([key, value]) => fieldsOf(value, path === "" ? key : `${path}.${key}`))
    }
    const events = (Schema.toJsonSchemaDocument(CompactionEvent.CompactionEvent).schema as Described).anyOf ?? []
    const tags: Array<string> = []
    for (const event of events) {
      const [tag = ""] = event.properties?._tag?.enum ?? []
      tags.push(tag)
      const fields = fieldsOf(event, "").filter((field) => field !== "_tag")
      assert.deepStrictEqual(rowsOf(text, new RegExp(`^## ${tag}$`, "m")).map(([field]) => field), fields, tag)
    }
    assert.deepStrictEqual(Array.from(text.matchAll(/^## (\w+)$/gm), ([, tag]) => tag), tags)
    assert.deepStrictEqual(Array.from(text.matchAll(/^\| \[`(\w+)`\]/gm), ([, tag]) => tag), tags)
  })

  it.effect("the policies in docs/extending.md decode", () =>
    Effect.gen(function*() {
      const blocks = Array.from(read("docs/extending.md").matchAll(/^```json\n([^]*?)^```$/gm), ([, block]) =>
        block ?? "")
      assert.isAbove(blocks.length, 0)
      for (const block of blocks) {
        yield* Policy.decode(JSON.parse(block))
      }
    }))
})

// The settings of a policy are those of a manager; a key that were only in one of them would be lost in silence.
exactly<Equal<Omit<Policy.Policy, "ladder" | "pass" | "byRoute">, Omit<Settings.Settings, never>>>()
