import { assert, describe, it } from "@effect/vitest"
import * as Marks from "effect-compaction/Marks"
import * as Prompt from "effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Check from "./Check.ts"
import type * as Script from "./Script.ts"

const user = (text: string, options: Prompt.ProviderOptions = {}) =>
  Prompt.makeMessage("user", { content: text === "" ? [] : [Prompt.makePart("text", { text })], options })
const system = (content: string) => Prompt.makeMessage("system", { content })
const assistant = (...content: ReadonlyArray<Prompt.AssistantMessagePart>) =>
  Prompt.makeMessage("assistant", { content })
const text = (value: string) => Prompt.makePart("text", { text: value })
const tool = (...content: ReadonlyArray<Prompt.ToolMessagePart>) => Prompt.makeMessage("tool", { content })
const call = (id: string, providerExecuted = false) =>
  Prompt.makePart("tool-call", { id, name: "read", params: {}, providerExecuted })
const result = (id: string, value: unknown, providerExecuted = false) =>
  Prompt.makePart("tool-result", { id, name: "read", isFailure: false, result: value, providerExecuted })
const ask = (approvalId: string, toolCallId: string) =>
  Prompt.makePart("tool-approval-request", { approvalId, toolCallId })
const approve = (approvalId: string) => Prompt.makePart("tool-approval-response", { approvalId, approved: true })

const append = (...messages: ReadonlyArray<Prompt.Message>): Script.Operation => ({ _tag: "append", messages })
const request: Script.Operation = { _tag: "request" }
const restore: Script.Operation = { _tag: "restore" }

const script = (
  operations: ReadonlyArray<Script.Operation>,
  self: Partial<Script.Script> = {}
): Script.Script => ({
  seed: 1,
  settings: { notice: false },
  estimator: "chars",
  rules: "all",
  ladder: "progressive",
  owner: "manager",
  operations,
  ...self
})

/** What random sessions found once, made small. */
const found: { readonly [name: string]: Script.Script } = {
  "a result of the provider without its call": script([
    append(user("hello"), assistant(text("so"), result("srv", "found", true))),
    request
  ]),
  "a call of the provider that a user passed by": script([
    append(user("hello"), assistant(text("so"), call("srv", true))),
    request,
    append(user("go on")),
    request
  ]),
  "a call of the provider whose result came in its next message, taken out": script([
    append(user("hello"), assistant(call("srv", true))),
    request,
    append(assistant(result("srv", "x".repeat(4_000), true), text("so")), user("and?"), assistant(text("done"))),
    request
  ], { settings: { notice: false, maxTokens: 400, protectedRecent: 0 } }),
  "an approval request without its call": script([
    append(user("hello"), assistant(text("so"), ask("a", "gone")), tool(approve("a"))),
    request
  ]),
  "an approval given twice": script([
    append(assistant(call("c"), ask("a", "c")), tool(approve("a")), tool(approve("a"))),
    request
  ]),
  "an approval given twice, and between the two a request of its id that has no call": script([
    append(assistant(call("c"), ask("a", "c")), tool(approve("a"))),
    append(assistant(ask("a", "gone")), tool(approve("a"))),
    request
  ]),
  "nothing but an empty message, where anyone may begin": script([append(assistant()), request], {
    rules: "openaiChat"
  }),
  "a late result and a system entry before one request": script([
    append(user("hello"), assistant(call("c"))),
    request,
    append(user("still there?"), assistant(text("yes"))),
    request,
    append(system("rules"), tool(result("c", "late"))),
    request
  ]),
  "a list with undefined, restored and synced": script([
    append(user("x".repeat(900)), assistant(call("c")), tool(result("c", ["x".repeat(900), undefined])), user("go on")),
    request,
    restore,
    append(user("and on")),
    request
  ], { owner: "caller", settings: { notice: false, maxTokens: 300, protectedToolResults: 0 } }),
  "a rung that removes a result without its call": script([
    append(user("hello"), Marks.set(assistant(call("c")), { pinned: true }), tool(result("c", "x".repeat(900)))),
    append(user("go on")),
    request
  ], { ladder: "withCarelessRung", settings: { notice: false, maxTokens: 10, protectedRecent: 1 } }),
  "a budget in tokens for results that every rung meets": script([
    append(user("hello"), assistant(call("c"), call("d")), tool(result("c", "x".repeat(900)), result("d", "short"))),
    append(user("go on"), assistant(text("done"))),
    request
  ], { settings: { notice: false, maxTokens: 30, budgetTokens: 2, protectedToolResults: 0, protectedRecent: 1 } }),
  "the same request after a restore, infeasible": script([
    append(user(""), assistant(call("c")), tool(result("c", "x".repeat(2_000)))),
    append(user("", { [Marks.key]: { pinned: true } }), user(""), user("")),
    append(user("", { [Marks.key]: { source: "hook", pinned: true } }), user("")),
    request,
    restore,
    request
  ], { settings: { maxTokens: 2, protectedRecent: 0.9 } }),
  "a notice behind a turn that the provider paused": script([
    append(user("hello"), assistant(text("x".repeat(9_000))), user("and?"), assistant(text("so"), call("srv", true))),
    request
  ], { settings: { maxTokens: 2_035, protectedRecent: 0.5 } }),
  "a notice behind such a turn, with an empty user message that is not sent": script([
    append(user("hello"), assistant(text("x".repeat(9_000))), user("and?"), assistant(text("so"), call("srv", true))),
    append(user(" ")),
    request
  ], { settings: { maxTokens: 2_035, protectedRecent: 0.5 } }),
  "a rewind that takes a system entry back": script([
    append(user("hello"), system("rules")),
    request,
    { _tag: "rewind", at: 1 },
    request
  ], { owner: "caller" }),
  "a standing notice of a session with one entry, under budgets by turns": script([
    append(assistant(text("x".repeat(1_009)))),
    request,
    { _tag: "observe", ratio: 1.3 },
    { _tag: "request", budget: 5_000 },
    { _tag: "observe", ratio: 1 },
    request
  ], { settings: { maxTokens: 191 } })
}

describe("promises, over sessions that broke one once", () => {
  for (const [name, self] of Object.entries(found)) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const violations = yield* Check.script(self)
        assert.deepStrictEqual(violations.map(({ detail, property }) => `${property}: ${detail}`), [])
      }))
  }
})
