/** A policy in a file: what it extends, its routes, and what is said of a file that is wrong. */
import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Kind from "effect-compaction/Kind"
import * as Policy from "effect-compaction/Policy"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as PlatformError from "effect/PlatformError"
import * as Schema from "effect/Schema"
import { session } from "./core/conversation.ts"

/** A folder of files by name, below `/team`. */
const folder = (files: { readonly [name: string]: unknown }) =>
  Layer.merge(
    Path.layer,
    FileSystem.layerNoop({
      readFileString: (path) => {
        const name = path.replace(/^.*\/team\//, "")
        const value = files[name]
        if (!Object.hasOwn(files, name)) {
          return Effect.fail(
            PlatformError.systemError({
              _tag: "NotFound",
              module: "FileSystem",
              method: "readFileString",
              pathOrDescriptor: path
            })
          )
        }
        return Effect.succeed(typeof value === "string" ? value : JSON.stringify(value))
      }
    })
  )

const load = (files: { readonly [name: string]: unknown }, over?: Parameters<typeof Policy.load>[1]) =>
  Policy.load("/team/policy.json", over).pipe(Effect.provide(folder(files)))

describe("a policy in a file", () => {
  it.effect("says only what differs from a preset, and may name its Schema", () =>
    Effect.gen(function*() {
      const policy = yield* load({
        "policy.json": {
          $schema: "./node_modules/effect-compaction/docs/policy.schema.json",
          extends: "openCode",
          window: 90_000
        }
      })
      assert.deepStrictEqual(policy, { ...Policy.openCode, window: 90_000 })
      assert.deepStrictEqual(yield* Policy.decode({ extends: "codex", notice: true }), {
        ...Policy.codex,
        notice: true
      })
    }))

  it.effect("says only what differs from another file, found from where it lies, through any number of them", () =>
    Effect.gen(function*() {
      const policy = yield* load({
        "policy.json": { extends: "shared/base.json", protectedToolResults: 7, summary: { maxTokens: 500 } },
        "shared/base.json": { extends: "../root.json", maxTokens: 50_000 },
        "root.json": { extends: "codex", maxTokens: 20_000, protectedRecent: 0.1 }
      })
      assert.deepStrictEqual(policy, {
        ...Policy.codex,
        maxTokens: 50_000,
        protectedRecent: 0.1,
        protectedToolResults: 7,
        summary: { ...Policy.codex.summary!, maxTokens: 500 }
      })
    }))

  it.effect("takes out with null what has no default", () =>
    Effect.gen(function*() {
      const { budgetTokens: _, summary: __, ...rest } = Policy.codex
      assert.deepStrictEqual(yield* Policy.decode({ extends: "codex", summary: null, budgetTokens: null }), rest)
    }))

  it.effect("settings given beside it come before what it says, in its routes too", () =>
    Effect.gen(function*() {
      const policy = yield* load(
        { "policy.json": { window: 90_000, byRoute: { "a/*": { window: 50_000 } } } },
        { window: 30_000 }
      )
      assert.strictEqual(policy.window, 30_000)
      assert.strictEqual(policy.byRoute?.["a/*"]?.window, 30_000)
      const preset = yield* Policy.load("codex", { maxTokens: 5_000, budgetTokens: 1_000 }).pipe(
        Effect.provide(folder({}))
      )
      assert.deepStrictEqual(preset, { ...Policy.codex, maxTokens: 5_000, budgetTokens: 1_000 })
    }))

  const wrong: ReadonlyArray<
    readonly [name: string, files: { readonly [name: string]: unknown }, message: string | ReadonlyArray<string>]
  > = [
    [
      "no file",
      {},
      "/team/policy.json: write one of contextSimple, contextSimpleHybrid, contextSimpleSummary, deepseekHarness, codex, "
      + "claudeCode, openCode, anthropicContextEditing, slidingWindow, none, recommended, or a JSON file: there is no such file"
    ],
    [
      "no JSON",
      { "policy.json": "{\n  \"window\": 1,\n  \"a\"" },
      "/team/policy.json:3: expected the JSON of a policy"
    ],
    [
      "no object",
      { "policy.json": [] },
      "/team/policy.json: write an object in braces, { … }, the policy as a whole (found [])"
    ],
    [
      "a bad key",
      { "policy.json": { windov: 1 } },
      "/team/policy.json: windov: there is no such key: write \"window\" (found 1)"
    ],
    [
      "nothing to extend",
      { "policy.json": { extends: "recomended" } },
      "/team/policy.json: extends: write one of contextSimple, contextSimpleHybrid, contextSimpleSummary, deepseekHarness, "
      + "codex, claudeCode, openCode, anthropicContextEditing, slidingWindow, none, recommended, or a JSON file: there is no "
      + "such file (found \"recomended\")"
    ],
    [
      "a number to extend",
      { "policy.json": { extends: 1 } },
      "/team/policy.json: extends: write a text in quotes (found 1)"
    ],
    [
      "a circle",
      { "policy.json": { extends: "b.json" }, "b.json": { extends: "c.json" }, "c.json": { extends: "b.json" } },
      "c.json: extends: extend another policy: this is a circle, b.json extends c.json extends b.json (found \"b.json\")"
    ],
    [
      "itself",
      { "policy.json": { extends: "./policy.json" } },
      "/team/policy.json: extends: extend another policy: this is a circle, policy.json extends policy.json (found \"./policy.json\")"
    ],
    [
      "a bad key in what it extends",
      { "policy.json": { extends: "b.json", notice: false }, "b.json": { notise: true, meter: "guess" } },
      "b.json: notise: there is no such key: write \"notice\" (found true)\n"
      + "b.json: meter: write \"estimate\", \"actual\", \"hybrid\" or \"calibrated\" (found \"guess\")"
    ],
    [
      "a bad key in a route",
      {
        "policy.json": {
          byRoute: { "a/*": { window: "1m" }, b: { byRoute: {} }, c: { ladder: [{ _tag: "removed" }] } }
        }
      },
      "/team/policy.json: byRoute[\"a/*\"].window: write a number (found \"1m\")\n"
      + "/team/policy.json: byRoute.b.byRoute: there is no such key: take it out, or write \"window\""
    ],
    [
      "routes that are none",
      { "policy.json": { byRoute: [] } },
      "/team/policy.json: byRoute: write an object in braces, { … } (found [])"
    ]
  ]
  for (const [name, files, message] of wrong) {
    it.effect(`${name} is said with the file and the path`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(load(files))
        assert.strictEqual(error._tag, "PolicyError")
        assert.strictEqual(error.message.slice(0, message.length), message)
      }))
  }

  it.effect("without files, what lies in one is refused and says who reads it", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Policy.decode({ extends: "./base.json" }))
      assert.include(error.message, "extends: write one of contextSimple")
      assert.include(error.message, "a file is read by Policy.load (found \"./base.json\")")
    }))
})

describe("a policy by route", () => {
  const limits = {
    "anthropic/claude-haiku-*": 60_000,
    "anthropic/*": 120_000,
    "*/claude-*-4-5": 70_000,
    "openai/gpt-5.2": 80_000,
    "openai/gpt-5.2*": 81_000,
    "openai/gpt-*-mini": 30_000
  }
  const rows: ReadonlyArray<readonly [route: string | undefined, name: string]> = [
    ["anthropic/claude-haiku-4-5", "anthropic/claude-haiku-*"],
    ["anthropic/claude-opus-4-5", "*/claude-*-4-5"],
    ["anthropic/claude-opus-5", "anthropic/*"],
    ["bedrock/claude-haiku-4-5", "*/claude-*-4-5"],
    ["openai/gpt-5.2", "openai/gpt-5.2"],
    ["openai/gpt-5.2-pro", "openai/gpt-5.2*"],
    ["openai/gpt-5-mini", "openai/gpt-*-mini"],
    ["openai/gpt-mini", "default"],
    ["google/gemini", "default"],
    ["", "default"],
    [undefined, "default"]
  ]
  const numbers = { default: 90_000, ...limits }

  it.effect("the most exact pattern counts, in code and in JSON", () =>
    Effect.gen(function*() {
      const of = <A>(make: (maxTokens: number) => A) =>
        Object.fromEntries(Object.entries(limits).map(([pattern, maxTokens]) => [pattern, make(maxTokens)]))
      const inCode = Policy.byRoute({
        ...of((maxTokens) => ({ settings: { maxTokens } })),
        default: { settings: { maxTokens: 90_000 } }
      })
      const inJson = Policy.options(
        yield* Policy.decode({ maxTokens: 90_000, notice: false, byRoute: of((maxTokens) => ({ maxTokens })) })
      )
      const withDefault = Policy.options(
        yield* Policy.decode({ byRoute: { ...of((maxTokens) => ({ maxTokens })), default: { maxTokens: 90_000 } } })
      )
      for (const policy of [inCode, inJson, withDefault]) {
        const prepared = yield* Policy.prepare(policy)
        for (const [route, name] of rows) {
          const resolved = Policy.resolve(prepared, route)
          assert.strictEqual(resolved.name, name, route)
          assert.strictEqual(resolved.settings.maxTokens, numbers[name as keyof typeof numbers])
        }
      }
      const { settings } = Policy.resolve(yield* Policy.prepare(inJson), "anthropic/x")
      assert.isFalse(settings.notice, "what stands outside of the routes holds in each")
    }))

  it.effect("a route may extend another preset", () =>
    Effect.gen(function*() {
      const policy = yield* Policy.decode({ window: 90_000, byRoute: { "a/*": { extends: "codex" } } })
      assert.deepStrictEqual(policy.byRoute, { "a/*": Policy.codex })
    }))

  it.effect("a bad policy of a route fails the manager with the path", () =>
    Effect.gen(function*() {
      const policy = Policy.byRoute({ "a/*": { settings: { window: -1 } }, default: {} })
      const error = yield* Effect.flip(Effect.scoped(ContextManager.make(policy)))
      assert.strictEqual(
        error.message,
        "byRoute[\"a/*\"].settings.window: write the context window of the model in tokens, for example 200000 (found -1)"
      )
      // @ts-expect-error: a policy has no such key
      Policy.byRoute({ "a/*": { window: 1 }, default: {} })
      // @ts-expect-error: what no pattern fits needs a policy
      Policy.byRoute({ "a/*": {} })
    }))
})

/** Lets a pass through only while a session is short, and says when it does not. */
class TooLong extends Schema.TaggedError<TooLong>("test/TooLong")("TooLong", { entries: Schema.Natural }) {}
const Short = Kind.gate("test/short", {
  options: Schema.Struct({ entries: Schema.Natural }),
  build: ({ entries }) => (pass) =>
    pass.entries > entries ? Effect.fail(new TooLong({ entries: pass.entries })) : Effect.succeed(pass)
})

/** Takes back what a pass did unless it frees so much. */
const Frees = Kind.guard("test/frees", {
  options: Schema.Struct({ tokens: Schema.Natural }),
  build: ({ tokens }) => (before, after) =>
    Effect.succeed(before.view.price - after.view.price < tokens ? before : after)
})

describe("the pass of a policy in a file", () => {
  const { decode, options } = Policy.withKinds(Short, Frees)
  const standard = [
    { _tag: "overhead" },
    { _tag: "signedReasoning" },
    { _tag: "media" },
    { _tag: "pressure" },
    { _tag: "provenance" },
    { _tag: "absorb" },
    { _tag: "summarise" },
    { _tag: "ladder" },
    { _tag: "clearAtLeast" }
  ]
  const small = { maxTokens: 4_000, notice: false, meter: "estimate" }
  const decided = (input: object) =>
    Effect.gen(function*() {
      const manager = yield* ContextManager.make(options(yield* decode({ ...small, ...input })))
      yield* manager.append(session)
      yield* manager.request
      return (yield* manager.view).decisions
    }).pipe(Effect.scoped)

  it.effect("is the standard one where it is written out", () =>
    Effect.gen(function*() {
      const decisions = yield* decided({})
      assert.isAbove(decisions.length, 0)
      assert.deepStrictEqual(yield* decided({ pass: standard }), decisions)
    }))

  it.effect("runs what it names, in its order, and nothing else", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* decided({ pass: [] }), [])
      assert.deepStrictEqual(yield* decided({ pass: [{ _tag: "pressure" }] }), [])
      assert.isAbove((yield* decided({ pass: [{ _tag: "pressure" }, { _tag: "ladder" }] })).length, 0)
      // Below the trigger the gate ends the pass.
      assert.deepStrictEqual(
        yield* decided({ maxTokens: 150_000, pass: [{ _tag: "pressure" }, { _tag: "ladder" }] }),
        []
      )
    }))

  it.effect("guards judge the stages before them, several the same ones", () =>
    Effect.gen(function*() {
      const gated = [{ _tag: "pressure" }, { _tag: "ladder" }]
      const freeing = (tokens: number) => ({ _tag: "test/frees", tokens })
      assert.isAbove((yield* decided({ pass: [...gated, freeing(1), freeing(1)] })).length, 0)
      assert.deepStrictEqual(yield* decided({ pass: [...gated, freeing(1_000_000)] }), [])
      assert.deepStrictEqual(yield* decided({ pass: [...gated, freeing(1_000_000), freeing(1)] }), [])
      assert.deepStrictEqual(yield* decided({ pass: [...gated, freeing(1), freeing(1_000_000)] }), [])
      // What comes after a guard is judged by the next one alone.
      assert.isAbove(
        (yield* decided({ pass: [...gated, freeing(1), { _tag: "absorb" }, freeing(1_000_000)] })).length,
        0
      )
    }))

  it.effect("fails with the errors of the kinds it names, which are in the type", () =>
    Effect.gen(function*() {
      const policy = yield* decode({ ...small, pass: [{ _tag: "test/short", entries: 3 }, ...standard] })
      const manager = yield* ContextManager.make(options(policy))
      yield* manager.append(session)
      const caught = yield* manager.request.pipe(
        Effect.as(0),
        Effect.catchTag("TooLong", ({ entries }) => Effect.succeed(entries))
      )
      assert.isAbove(caught, 3)
    }).pipe(Effect.scoped))

  it.effect("may be that of a route alone", () =>
    Effect.gen(function*() {
      const policy = yield* decode({ ...small, byRoute: { "a/*": { pass: [] } } })
      assert.deepStrictEqual([policy.pass, policy.byRoute?.["a/*"]?.pass], [undefined, []])
      assert.isUndefined(
        (yield* decode({ ...small, pass: [], byRoute: { "a/*": { pass: null } } })).byRoute?.["a/*"]?.pass
      )
    }))
})
