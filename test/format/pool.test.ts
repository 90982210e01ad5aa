import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { fileURLToPath } from "node:url"
import { billed, kinds, lines, outline } from "./recorded.ts"

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/format/${name}`, import.meta.url))

const messageOf = (read: Effect.Effect<unknown, { readonly message: string }, FileSystem.FileSystem | Stdio.Stdio>) =>
  Effect.map(Effect.result(read), (result) => Result.isFailure(result) ? result.failure.message : "read")

describe("a file of many conversations", () => {
  const file = fixture("tau-bench.json")
  const other = fixture("tau2-bench.json")

  it.effect("gives a session for each conversation, by its number", () =>
    Effect.gen(function*() {
      const sessions = yield* Format.readAll(file)
      // The second one has no message.
      assert.deepStrictEqual(sessions.map((session) => session.file), [`${file}#0`, `${file}#2`])
      assert.deepStrictEqual(sessions.map((session) => outline(session)[1]), ["user First?", "user Third?"])
      assert.deepStrictEqual(sessions.flatMap(kinds), [])
      const one = yield* Format.read(`${file}#2`)
      assert.deepStrictEqual(one, sessions[1])
      assert.deepStrictEqual(yield* Format.readAll(`${file}#2`), [one])
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("of tau2-bench: the policy, the agent's calls, and its bill alone", () =>
    Effect.gen(function*() {
      const [first, second] = yield* Format.readAll(other)
      assert.deepStrictEqual(first === undefined ? [] : outline(first), [
        "system Be helpful.",
        "assistant Hi! How can I help you today?",
        "user My data is slow.",
        "assistant call(c1 get_customer) + call(c2 get_line)",
        "tool result(c1 get_customer: \"{\\\"id\\\": 1}\") + result(c2 get_line failed: \"Error: no line\")",
        "assistant Please check your phone.",
        "user It says ok."
      ])
      assert.deepStrictEqual(first?.findings.map(({ detail }) => detail), [
        "1 calls of the simulated user left out: the agent never saw them",
        "1 results of the simulated user left out: the agent never saw them"
      ])
      assert.deepStrictEqual(first === undefined ? {} : billed(first), {
        responses: 2,
        fresh: 1300,
        cacheRead: 0,
        cacheWrite: 0,
        output: 26
      })
      assert.deepStrictEqual(second === undefined ? [] : outline(second), [
        "system Be helpful.",
        "assistant Hi!",
        "user Bye."
      ])
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("says how to name one, and which there are", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* messageOf(Format.read(file)),
        `${file}: the file holds 3 conversations; name one of them, from ${file}#0 to ${file}#2`
      )
      assert.strictEqual(
        yield* messageOf(Format.read(`${file}#3`)),
        `${file}: no conversation 3; the file holds 3, from ${file}#0`
      )
      assert.strictEqual(
        yield* messageOf(Format.read(`${file}#1`)),
        `${file}#1: no message of the format tau-bench in the file`
      )
      assert.strictEqual(yield* messageOf(Format.read(`${file}x#1`)), `${file}x: no such file`)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("a file of one conversation is its own first, and has no second", () =>
    Effect.gen(function*() {
      const one = fixture("cline.json")
      const session = yield* Format.read(one)
      assert.deepStrictEqual(yield* Format.read(`${one}#0`), session)
      assert.deepStrictEqual(yield* Format.readAll(one), [session])
      assert.strictEqual(
        yield* messageOf(Format.read(`${one}#1`)),
        `${one}: no conversation 1; the file holds 1, from ${one}#0`
      )
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("a file whose own name ends like that is read as it is", () =>
    Effect.gen(function*() {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const named = `${folder}/session#1`
      yield* files.writeFileString(named, JSON.stringify([{ role: "user", content: "hi" }]))
      const session = yield* Format.read(named)
      assert.deepStrictEqual([session.file, outline(session)], [named, ["user hi"]])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  const task = (id: string, text: string) => ({
    instance_id: id,
    history: [{
      kind: "MessageEvent",
      id,
      timestamp: "t",
      source: "user",
      llm_message: { role: "user", content: [{ type: "text", text }] }
    }]
  })
  const pool = lines([task("a", "one"), { instance_id: "b", history: null }, task("c", "three")])

  it.effect("in lines, from standard input", () =>
    Effect.gen(function*() {
      const sessions = yield* Format.readAll("-")
      assert.deepStrictEqual(sessions.map((session) => [session.file, ...outline(session)]), [
        ["standard input#0", "user one"],
        ["standard input#2", "user three"]
      ])
      assert.deepStrictEqual(outline(yield* Format.read("-#2")), ["user three"])
    }).pipe(Effect.provide([
      Stdio.layerTest({ stdin: Stream.make(new TextEncoder().encode(pool)) }),
      FileSystem.layerNoop({})
    ])))

  it("an error names the conversation, and the others can be read", () => {
    const broken = JSON.stringify([{ traj: [{ role: "user", content: "hi" }] }, { traj: [{ role: "wizard" }] }])
    const read = (conversation: number) => Format.fromString(broken, { file: "f", conversation })
    assert.deepStrictEqual(outline(Result.getOrThrow(read(0))), ["user hi"])
    const failed = read(1)
    assert.include(
      Result.isFailure(failed) ? failed.failure.message : "read",
      "f#1: traj[0].role: unknown role \"wizard\""
    )
  })

  it("a torn line is found in every session", () => {
    const torn = [...lines([task("a", "one"), task("b", "two")]).split("\n"), "{\"instance_id\":\"c\",\"hist"].join(
      "\n"
    )
    const session = Result.getOrThrow(Format.fromString(torn, { file: "f", conversation: 1 }))
    assert.deepStrictEqual([outline(session), kinds(session)], [["user two"], ["3 torn-line"]])
  })
})
