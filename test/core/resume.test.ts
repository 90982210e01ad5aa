import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as Marks from "effect-compaction/Marks"
import type * as Settings from "effect-compaction/Settings"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { seeded } from "../seed.ts"
import { answers, bytesOf, calls, prompt, result, session, system, user, words } from "./conversation.ts"
import { answersOf } from "./resume.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** What JSON cannot hold as it is: media in three forms, results that are no text, marks and options of providers. */
const rich: Prompt.Prompt = prompt(
  system("You are careful."),
  Prompt.makeMessage("user", {
    content: [
      Prompt.makePart("text", { text: `look \u{1f600} ${words("at", 300)}` }),
      Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([1, 2, 3]), fileName: "a.png" }),
      Prompt.makePart("file", { mediaType: "image/png", data: new URL("https://example.org/a.png") }),
      Prompt.makePart("file", { mediaType: "application/pdf", data: "JVBERi0x" })
    ],
    options: { anthropic: { cacheControl: { type: "ephemeral" } } }
  }),
  Marks.set(user("a hook"), { source: "hook", ephemeral: true }),
  Prompt.makeMessage("assistant", {
    content: [
      Prompt.makePart("reasoning", { text: "hm", options: { anthropic: { info: { signature: "s" } } } }),
      Prompt.makePart("tool-call", { id: "a", name: "read", params: { z: 1, a: [2] }, providerExecuted: false }),
      Prompt.makePart("tool-call", { id: "b", name: "read", params: { z: 2 }, providerExecuted: false }),
      Prompt.makePart("tool-call", { id: "c", name: "read", params: { z: 3 }, providerExecuted: false })
    ]
  }),
  answers(
    { ...result("a", undefined), isFailure: true },
    result("b", { rows: [1, null], gone: undefined, text: words("b", 2_000) }),
    {
      ...result("c", [{ type: "text", text: "x" }]),
      modelOutput: [Prompt.makePart("text", { text: words("c", 2_000) })]
    }
  ),
  calls("orphaned"),
  user("and now?")
)

const cases: ReadonlyArray<readonly [name: string, prompt: Prompt.Prompt, settings: Settings.Input, budget: number]> = [
  ["after a boundary", session, { protectedToolResults: 1, notice: false }, 4_000],
  ["before any", session, {}, 100_000],
  ["after a deep one", session, { protectedToolResults: 0, protectedRecent: 0, notice: false }, 1_200],
  ["after an infeasible one", session, { protectedToolResults: 12, notice: false }, 500],
  ["with everything a prompt holds", rich, { protectedToolResults: 0, notice: false }, 6_000],
  ["with other settings than it was made with", session, { truncateChars: 20, shape: "headTail", notice: false }, 4_000]
]

/** A session that was requested once, under the settings of the case but for how results are cut. */
const started = (history: Prompt.Prompt, settings: Settings.Input, budget: number) =>
  Effect.gen(function*() {
    const { shape: _, truncateChars: __, ...first } = settings
    const manager = yield* ContextManager.make(seeded({ settings: first }))
    yield* manager.append(history)
    const before = yield* manager.requestWith({ budget })
    return { manager, before, state: yield* manager.export }
  })

/** The fields of a saved session, whose type says no more than that it is JSON. */
const fieldsOf = (state: ContextManager.SessionState) =>
  state as { readonly messages: unknown; readonly decisions: unknown; readonly memory: object }

const inAnotherProcess = (file: string): Promise<string> =>
  new Promise((resolve, reject) =>
    execFile(
      process.execPath,
      [join(root, ".ci/ts.mjs"), join(root, "test/core/main.ts"), file],
      { cwd: root, maxBuffer: 1e8 },
      (error, stdout) => error === null ? resolve(stdout) : reject(error)
    )
  )

describe("export and restore", () => {
  for (const [name, history, settings, budget] of cases) {
    it.effect(`${name}: the same bytes from a fresh manager`, () =>
      Effect.gen(function*() {
        const { before, manager, state } = yield* started(history, settings, budget)
        const json: ContextManager.SessionState = JSON.parse(JSON.stringify(state))
        assert.deepStrictEqual(json, state, "the state is plain JSON")
        const fresh = yield* ContextManager.make(seeded({ settings }))
        yield* fresh.append("what is replaced")
        yield* fresh.restore(json)
        assert.deepStrictEqual(yield* fresh.export, state)
        const again = yield* fresh.requestWith({ budget: 100_000 })
        assert.strictEqual(bytesOf(again.prompt), bytesOf((yield* manager.requestWith({ budget: 100_000 })).prompt))
        assert.strictEqual(again.generation, before.generation)
        assert.deepStrictEqual((yield* fresh.view).decisions, (yield* manager.view).decisions)
        assert.strictEqual((yield* fresh.view).price, (yield* manager.view).price)
      }))
  }

  it.effect("the same bytes from another process, now and later, memory included", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "resume-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      for (const [at, [name, history, settings, budget]] of cases.entries()) {
        if (name === "with other settings than it was made with") continue
        const { manager, state } = yield* started(history, settings, budget)
        const file = join(folder, `${at}.json`)
        writeFileSync(file, JSON.stringify({ settings, state }))
        const theirs: unknown = JSON.parse(yield* Effect.promise(() => inAnotherProcess(file)))
        assert.deepStrictEqual(theirs, JSON.parse(JSON.stringify(yield* answersOf(manager))), name)
      }
    }), 60_000)

  it.effect("a caller who passes the whole prompt finds its place again", () =>
    Effect.gen(function*() {
      for (const [name, history, settings, budget] of cases) {
        const { before, state } = yield* started(history, settings, budget)
        const fresh = yield* ContextManager.make(seeded({ settings: { ...settings, maxTokens: 100_000 } }))
        yield* fresh.restore(state)
        yield* fresh.sync(history)
        assert.strictEqual((yield* fresh.status).generation, before.generation, name)
        const decisions = (yield* fresh.view).decisions
        assert.deepStrictEqual(JSON.parse(JSON.stringify({ decisions })).decisions, fieldsOf(state).decisions, name)
      }
    }))

  it.effect("the streak of refusals ends with a restore, the rest of the memory stays", () =>
    Effect.gen(function*() {
      const settings: Settings.Input = { protectedToolResults: 1, notice: false, clearAtLeast: 50_000 }
      const { manager, state } = yield* started(session, settings, 4_000)
      assert.strictEqual((yield* manager.status).streak, 1)
      yield* manager.restore(state)
      assert.strictEqual((yield* manager.status).streak, 0)
    }))

  const bad: ReadonlyArray<
    readonly [name: string, change: (state: ReturnType<typeof fieldsOf>) => unknown, says: string]
  > = [
    ["nothing", () => null, "Expected"],
    ["another version", (state) => ({ ...state, version: 1 }), "version"],
    ["no messages", ({ messages: _, ...state }) => state, "messages"],
    ["a decision of no kind", (state) => ({ ...state, decisions: [{ _tag: "Forget", seq: 0 }] }), "decisions"],
    ["a negative seq", (state) => ({ ...state, decisions: [{ _tag: "Stub", seq: -1, at: 0, k: 1 }] }), "seq"],
    ["a level that is no number", (state) => ({ ...state, level: "8" }), "level"]
  ]
  for (const [name, change, says] of bad) {
    it.effect(`refuses a state with ${name}, and changes nothing`, () =>
      Effect.gen(function*() {
        const { manager, state } = yield* started(session, { protectedToolResults: 1, notice: false }, 4_000)
        // What is tested is what the type does not allow.
        const error = yield* Effect.flip(manager.restore(change(fieldsOf(state)) as ContextManager.SessionState))
        assert.strictEqual(error._tag, "SchemaError")
        assert.include(error.message, says)
        assert.deepStrictEqual(yield* manager.export, state)
      }))
  }
})
