import { assert, describe, it } from "@effect/vitest"
import * as ContextManager from "effect-compaction/ContextManager"
import type * as Settings from "effect-compaction/Settings"
import * as SpillStore from "effect-compaction/SpillStore"
import * as ToolResult from "effect-compaction/ToolResult"
import * as Prompt from "effect/ai/Prompt"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import { answers, assistant, bytesOf, prompt, result, system, user, words } from "./core/conversation.ts"
import { seeded } from "./seed.ts"

const call = (id: string, name: string) =>
  Prompt.makePart("tool-call", { id, name, params: { path: id }, providerExecuted: false })

const thought = (id: string) =>
  Prompt.makePart("reasoning", {
    text: `thought ${id}`,
    options: { anthropic: { info: { type: "thinking", signature: id } } }
  })

const step = (id: string, length: number, name = "read") => [
  Prompt.makeMessage("assistant", { content: [thought(id), call(id, name)] }),
  answers({ ...result(id, words(id, length)), name })
]

const image = (text: string) =>
  Prompt.makeMessage("user", {
    content: [
      Prompt.makePart("text", { text }),
      Prompt.makePart("file", { mediaType: "image/png", data: "A".repeat(2_000) })
    ]
  })

/** A person's turn: a question, every third time with an image, two reads of different lengths, an answer. */
const round = (n: number, length: number): ReadonlyArray<Prompt.Message> => [
  n % 3 === 0 ? image(words(`question ${n}`, 300)) : user(words(`question ${n}`, 200)),
  ...step(`a${n}`, length),
  ...step(`b${n}`, length * 2, "grep"),
  assistant(words(`answer ${n}`, 150))
]

interface Scenario {
  readonly name: string
  readonly budget: number
  readonly length: number
  readonly rounds: number
}

/** From slight pressure to a budget that nothing fits. */
const scenarios: ReadonlyArray<Scenario> = [
  { name: "late", budget: 20_000, length: 1_500, rounds: 10 },
  { name: "slight", budget: 11_000, length: 1_500, rounds: 10 },
  { name: "steady", budget: 8_000, length: 1_500, rounds: 12 },
  { name: "hard", budget: 4_000, length: 1_500, rounds: 10 },
  { name: "harder", budget: 2_500, length: 2_000, rounds: 8 },
  { name: "hardest", budget: 1_200, length: 2_500, rounds: 6 },
  { name: "large results", budget: 22_000, length: 9_000, rounds: 6 },
  { name: "small results", budget: 3_000, length: 260, rounds: 16 }
]

/** Everything a session shows: each prompt, each event, the decisions, and what is counted. */
const dump = Effect.fnUntraced(function*(settings: Settings.Input, { budget, length, rounds }: Scenario) {
  const manager = yield* ContextManager.make(
    seeded({ settings: { targetUsage: 0.6, protectedToolResults: 2, ...settings } })
  )
  const lines: Array<string> = []
  yield* manager.append(prompt(system("You are a careful engineer.")))
  for (const n of Arr.range(0, rounds - 1)) {
    for (const message of round(n, length)) {
      yield* manager.append(prompt(message))
      if (message.role !== "tool" && message.role !== "user") continue
      const request = yield* Effect.result(manager.requestWith({ budget }))
      if (request._tag === "Failure") {
        lines.push(String(request.failure))
        continue
      }
      lines.push(bytesOf(request.success.prompt), JSON.stringify(request.success.events))
      yield* manager.observe({ inputTokens: { total: request.success.count.tokens + 500 } })
    }
  }
  const { decisions } = yield* manager.view
  const { budget: _, reading: __, ...status } = yield* manager.status
  return [...lines, JSON.stringify(decisions), JSON.stringify(status)]
}, Effect.scoped)

const all = (settings: Settings.Input) => Effect.forEach(scenarios, (scenario) => dump(settings, scenario))

/** In how many scenarios two dumps differ. */
const differing = (a: ReadonlyArray<ReadonlyArray<string>>, b: ReadonlyArray<ReadonlyArray<string>>): number =>
  a.filter((lines, at) => JSON.stringify(lines) !== JSON.stringify(b[at])).length

describe("every option at its default is as if it were not there", () => {
  it.effect("the scenarios hold truncations, removals, stubs and dropped reasoning", () =>
    Effect.gen(function*() {
      const dumps = yield* all({})
      assert.strictEqual(dumps.length, 8)
      const decisions = dumps.map((lines) => lines[lines.length - 2]!)
      for (const tag of ["Truncate", "Remove", "Stub", "Trim"]) {
        assert.isAtLeast(decisions.filter((each) => each.includes(`"${tag}"`)).length, 3, tag)
      }
    }))

  const options: ReadonlyArray<readonly [name: string, atDefault: Settings.Input, forced: Settings.Input]> = [
    ["maxToolResultBytes", { maxToolResultBytes: null }, { maxToolResultBytes: 500 }],
    ["maxImages", { maxImages: null }, { maxImages: 1 }],
    ["maxRequestBytes", { maxRequestBytes: null }, { maxRequestBytes: 4_000 }],
    ["signedReasoning", { signedReasoning: "strip" }, { signedReasoning: "keep" }],
    ["truncateChars", { truncateChars: 250 }, { truncateChars: 100 }],
    ["shape", { shape: "head" }, { shape: "headTail" }],
    ["budgetTokens", {}, { budgetTokens: 100 }],
    ["budgetByTool", { budgetByTool: {} }, { budgetByTool: { grep: 100 } }],
    ["exemptTools", { exemptTools: [] }, { exemptTools: ["grep"] }],
    ["notice", { notice: true }, { notice: false }],
    ["noticeVerbosity", { noticeVerbosity: "normal" }, { noticeVerbosity: "minimal" }],
    ["replayLastUser", { replayLastUser: false }, { replayLastUser: true }],
    ["clearAtLeast", { clearAtLeast: null }, { clearAtLeast: 0.5 }],
    ["meter", { meter: "estimate" }, { meter: "hybrid" }]
  ]
  it.effect("absent and at the default: the same bytes; forced on: others", () =>
    Effect.gen(function*() {
      const absent = yield* all({})
      for (const [name, atDefault, forced] of options) {
        assert.deepStrictEqual(yield* all(atDefault), absent, name)
        assert.isAtLeast(differing(yield* all(forced), absent), 4, `${name}, forced on, changes what sessions show`)
      }
      assert.deepStrictEqual(yield* Effect.provide(all({}), SpillStore.layerNone), absent)
      assert.isAtLeast(differing(yield* Effect.provide(all({}), SpillStore.layerMemory), absent), 4, "a spill store")
    }))
})

/** Results as tools write them: much text, and the answer in the last line. */
const workloads: ReadonlyArray<readonly [name: string, line: (n: number) => string, answer: (n: number) => string]> = [
  ["test run", (n) => `ok ${n} - handles case ${n} of the parser in ${n % 7} ms`, (n) => `FAILED 1 of 60: case-${n}`],
  [
    "search",
    (n) => `src/module${n % 13}.ts:${n}: const value = read(${n})`,
    (n) => `src/main.ts:${n}: const answer = 1`
  ],
  ["history", (n) => `commit ${n}a7f by somebody: change number ${n}`, (n) => `commit root-${n} introduced the fault`],
  ["build", (n) => `[${n}/99] compiling unit ${n} with the default flags`, (n) => `error TS${n}: cannot find a name`]
]

const output = (n: number, line: (n: number) => string, answer: (n: number) => string): string =>
  [...Arr.range(1, 60).map((each) => line(each + n)), answer(n)].join("\n")

/** Twelve calls of one kind, and a request under a budget that takes more than the mildest rung. */
const workload = Effect.fnUntraced(function*(
  settings: Settings.Input,
  line: (n: number) => string,
  answer: (n: number) => string
) {
  const manager = yield* ContextManager.make(seeded({
    settings: { notice: false, protectedToolResults: 1, targetUsage: 0.6, ...settings }
  }))
  yield* manager.append(prompt(user("find out what is wrong")))
  for (const n of Arr.range(0, 11)) {
    const made = Prompt.makeMessage("assistant", { content: [call(`w${n}`, "bash")] })
    yield* manager.append(prompt(made, answers({ ...result(`w${n}`, output(n, line, answer)), name: "bash" })))
  }
  yield* manager.append(prompt(user("and now?")))
  const whole = (yield* manager.view).price
  yield* manager.requestWith({ budget: whole })
  const { items } = yield* manager.view
  const truncated = items.filter((item) => item.state === "truncated")
  const kept = truncated.filter((item) => {
    const n = Number(JSON.stringify(item.message).match(/"id":"w(\d+)"/)?.[1])
    return JSON.stringify(item.message).includes(JSON.stringify(answer(n)).slice(1, -1))
  })
  const { counts, level } = yield* manager.status
  return { truncated: truncated.length, kept: kept.length, removed: counts.removed, level }
}, Effect.scoped)

describe("four workloads with the answer in the last line", () => {
  for (const [name, line, answer] of workloads) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const head = yield* workload({ budgetTokens: 62 }, line, answer)
        const both = yield* workload({ budgetTokens: 62, shape: "headTail" }, line, answer)
        const more = yield* workload({ budgetTokens: 250, shape: "headTail" }, line, answer)
        const said = JSON.stringify({ head, both, more })
        assert.isAbove(head.truncated, 3, said)
        assert.strictEqual(head.kept, 0, "a head of 62 tokens keeps none of them")
        assert.strictEqual(both.kept, both.truncated, "both ends keep all of them")
        assert.strictEqual(both.level, head.level)
        assert.strictEqual(both.truncated, head.truncated)
        assert.isBelow(more.truncated, both.truncated, `a larger budget at the same target truncates fewer: ${said}`)
        assert.isAbove(more.removed, both.removed, `and removes more: ${said}`)
      }))
  }

  it("both shapes keep the same number of characters", () => {
    const kept = (shape: ToolResult.Cut["shape"]) =>
      ToolResult.truncate("#".repeat(3_000), { k: 248, shape }).replaceAll(/[^#]/g, "").length
    assert.strictEqual(kept("head"), 248)
    assert.strictEqual(kept("headTail"), 248)
  })
})
