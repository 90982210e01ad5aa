/** `session mcp`, as a client of the Model Context Protocol speaks to it: lines of JSON-RPC to a process. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import * as SessionStore from "effect-compaction/SessionStore"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { answers, assistant, calls, prompt, result, user, words } from "../core/conversation.ts"
import * as OneLog from "../session/oneLog.ts"
import * as Program from "./program.ts"

let program: Program.Program

beforeAll(async () => {
  program = await Program.make()
})

afterAll(() => program.remove())

/** A client that has shaken hands, and what becomes of the server when it is closed. */
const connect = (version: string, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, [program.bundle, "session", "mcp", ...args], { cwd: program.folder })
      const waiting = new Map<number, (message: unknown) => void>()
      let rest = ""
      let stderr = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const lines = `${rest}${text}`.split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          const message: { readonly id: number } = JSON.parse(line)
          waiting.get(message.id)?.(message)
        }
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
      const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
      const write = (message: object) => void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
      let id = 0
      const ask = (method: string, params: object) =>
        // What a server answers is looked at by the assertions.
        Effect.promise(() =>
          new Promise<any>((resolve) => {
            waiting.set(++id, resolve)
            write({ id, method, params })
          })
        )
      const about = await Effect.runPromise(
        ask("initialize", { protocolVersion: version, capabilities: {}, clientInfo: { name: "test", version: "1" } })
      )
      write({ method: "notifications/initialized" })
      const call = (name: string, args: object) => ask("tools/call", { name, arguments: args })
      const close = Effect.promise(async () => {
        child.stdin.end()
        return { code: await ended, stderr, rest }
      })
      return { about, ask, call, close, child }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

const directory = () => path.join(program.folder, "session")

const filesOf = (folder: string): ReadonlyArray<readonly [string, string, number]> =>
  fs.readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted().flatMap((name) => {
    const file = path.join(folder, name)
    const stat = fs.statSync(file)
    return stat.isFile() ? [[name, fs.readFileSync(file, "latin1"), stat.mtimeMs] as const] : []
  })

const open = Effect.gen(function*() {
  const log = yield* SessionStore.openDirectory(directory(), { fsync: "never" })
  return yield* ContextManager.open("session", {
    settings: { maxTokens: 4_000, notice: false, standingInstructions: 0, protectedToolResults: 0 }
  }).pipe(OneLog.provide(log))
})

const filler = prompt(...Array.from({ length: 30 }, (_, at) => assistant(`${at} ${"done ".repeat(150)}`)))

describe("session mcp", () => {
  it.live(
    "serves what left the view of a session that another process has open, and writes nothing",
    () =>
      Effect.gen(function*() {
        const manager = yield* open
        yield* manager.append(prompt(user("Begin."), calls("a"), answers(result("a", `needle ${words("x", 9_000)}`))))
        yield* manager.append(filler)
        yield* manager.request
        yield* manager.flush
        const before = filesOf(directory())
        assert.isAbove(before.length, 0)

        const client = yield* connect("2025-06-18", directory())
        assert.deepInclude(client.about.result, { protocolVersion: "2025-06-18" })
        assert.strictEqual(client.about.result.serverInfo.name, "effect-compaction")

        const { result: { tools } } = yield* client.ask("tools/list", {})
        assert.deepStrictEqual(tools.map(({ name }: { readonly name: string }) => name), [
          "recall_search",
          "recall_read"
        ])
        for (const { annotations, inputSchema } of tools) {
          assert.deepInclude(annotations, { readOnlyHint: true, destructiveHint: false })
          assert.strictEqual(inputSchema.type, "object")
        }
        assert.deepStrictEqual(tools[0].inputSchema.required, ["query"])

        const { result: searched } = yield* client.call("recall_search", { query: "NEEDLE" })
        assert.deepStrictEqual(JSON.parse(searched.content[0].text), searched.structuredContent)
        const { found } = searched.structuredContent
        assert.strictEqual(found.length, 1)
        assert.deepInclude(found[0], { seq: 2, role: "tool", tool: "read", age: 0 })
        assert.include(found[0].excerpt, "needle")
        const { result: matched } = yield* client.call("recall_search", { query: "^need\\w+ x", regex: true })
        assert.deepStrictEqual(matched.structuredContent.found.map(({ seq }: { readonly seq: number }) => seq), [2])

        const { result: first } = yield* client.call("recall_read", { seq: 2 })
        assert.strictEqual(first.structuredContent.text.length, 8_000)
        const { result: second } = yield* client.call("recall_read", { seq: 2, page: first.structuredContent.next })
        const text = first.structuredContent.text + second.structuredContent.text
        assert.strictEqual(text, `needle ${words("x", 9_000)}`)

        for (
          const [name, args, says] of [
            ["recall_read", { seq: 999 }, /There is no entry 999/],
            ["recall_search", { query: "(a)\\1", regex: true }, /a reference to a group/]
          ] as const
        ) {
          const { result: refused } = yield* client.call(name, args)
          assert.isTrue(refused.isError)
          assert.match(refused.content[0].text, says)
        }
        assert.isDefined((yield* client.call("recall_read", { seq: -1 })).error)
        assert.deepStrictEqual(filesOf(directory()), before)

        // The session goes on under its lock, and the next call sees it.
        yield* manager.append(prompt(user("the hay"), assistant(`haystack ${words("y", 900)}`)))
        yield* manager.append(filler)
        yield* manager.request
        yield* manager.flush
        const { result: later } = yield* client.call("recall_search", { query: "haystack" })
        assert.strictEqual(later.structuredContent.found.length, 1)

        assert.deepStrictEqual(yield* client.close, { code: 0, stderr: "", rest: "" })
      }).pipe(Effect.provide(NodeServices.layer)),
    60_000
  )

  it.live("speaks the version that the client asks for", () =>
    Effect.gen(function*() {
      for (const version of ["2024-11-05", "2025-03-26", "2025-11-25"]) {
        const client = yield* connect(version, directory())
        assert.strictEqual(client.about.result.protocolVersion, version)
        assert.strictEqual((yield* client.ask("tools/list", {})).result.tools.length, 2)
        assert.strictEqual((yield* client.close).code, 0)
      }
    }), 60_000)

  it.live("says what it cannot read, and ends", () =>
    Effect.gen(function*() {
      const ended = yield* Effect.promise(() => program.run(["session", "mcp", "nowhere"]))
      assert.strictEqual(ended.code, 1)
      assert.strictEqual(ended.stdout, "")
      assert.include(ended.stderr, "nowhere")
    }))
})
