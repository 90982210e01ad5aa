/** Every recorded session beside the project, against the counts of the index that stands beside them. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import type * as Session from "effect-compaction/format/Session"
import * as Effect from "effect/Effect"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { billed, recorded } from "./recorded.ts"

interface Counts {
  readonly messages: number
  readonly calls: number
  readonly results: number
  readonly images: number
  readonly signatures: number
}

const count = (sessions: ReadonlyArray<Session.Session>): Counts => {
  const counts = { messages: 0, calls: 0, results: 0, images: 0, signatures: 0 }
  for (const message of sessions.flatMap((session) => session.messages)) {
    counts.messages++
    if (message.role === "system") continue
    for (const part of message.content) {
      if (part.type === "tool-call") counts.calls++
      if (part.type === "file") counts.images++
      if (part.type === "tool-result") {
        counts.results++
        const blocks: ReadonlyArray<unknown> = Array.isArray(part.result) ? part.result : []
        counts.images += blocks.filter((block) => JSON.stringify(block).startsWith("{\"type\":\"image\"")).length
      }
      // Google's stand on parts of any kind.
      if (/"(signature|thoughtSignature)":/.test(JSON.stringify(part.options))) counts.signatures++
    }
  }
  return counts
}

interface Row {
  readonly file: string
  readonly messages: number
  readonly calls: number
  readonly results: number
  readonly images: number
  readonly signatures: number
  readonly usage: boolean
}

/** The table of the index: file, size, messages, calls / results, share, usage, images, signatures, … */
const index = (): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  for (const line of readFileSync(recorded("INDEX.md"), "utf8").split("\n")) {
    const cells = line.split("|").map((cell) => cell.trim())
    const [, file = "", , messages, pair = "", , usage, images, signatures] = cells
    if (!file.includes("/")) continue
    const [calls, results] = pair.split("/").map(Number)
    const number = (cell: string | undefined) => cell === "no" ? 0 : Number(cell)
    rows.push({
      file,
      messages: number(messages),
      calls: calls ?? 0,
      results: results ?? 0,
      images: number(images),
      signatures: number(signatures),
      usage: usage === "yes"
    })
  }
  return rows
}

// What is counted otherwise here.
const others: { readonly [file: string]: Partial<Omit<Counts, "messages">> } = {
  // The index counts the task as an observation, since the file names it one; it answers no call.
  "swe-agent/marshmallow-1867-function-calling-from-source.traj": { results: 13 },
  // 482 of the 689 calls are made by the simulated user on its phone, and the agent is shown neither them nor their results.
  "tau-bench/tau2-gpt41-telecom.json": { calls: 207, results: 207 },
  // The thinking of the responses, which the index does not look for in a log of requests.
  "amplifier/real-opus48-events.jsonl": { signatures: 8 }
}

// The index counts messages of the file. Here what the model was shown counts, and results form messages of their own:
// so a user message of results and text is two, and the lines of one response are one.
const messages: { readonly [file: string]: number } = {
  // The last request of the log (17 messages, with two texts of the system) and the answer to it.
  "amplifier/real-opus48-events.jsonl": 19,
  "amplifier/real-opus48-transcript.jsonl": 18,
  // The text of the system is a message.
  "anthropic-messages/derived-amplifier-last-request-body.json": 18,
  "anthropic-messages/derived-claude-trace-longest-body.json": 29,
  // One line holds one block: the index counts lines, here those of one response are one message.
  "claude-code/opus45-3-compactions.jsonl": 489,
  "claude-code/opus45-compact-plus-microcompact.jsonl": 286,
  // And two messages that were typed while the model worked.
  "claude-code/opus45-image-compaction-orphan.jsonl": 296,
  "claude-code/opus45-malformed-line.jsonl": 89,
  "claude-code/opus45-orphan-result.jsonl": 96,
  "claude-code/opus45-small-compaction-a.jsonl": 46,
  "claude-code/opus47-image-in-tool-result.jsonl": 171,
  "claude-code/opus48-parallel-calls.jsonl": 706,
  // And the prompt of the system.
  "cline/session.messages.json": 33,
  // The index counts `message` items alone, without calls, outputs, reasoning and compactions.
  "codex/gpt54-591-calls-2-compactions.jsonl": 1090,
  "codex/gpt54-aborted-small.jsonl": 43,
  "codex/gpt54-reasoning-items.jsonl": 364,
  "codex/gpt55-543-calls-compaction-item.jsonl": 901,
  "codex/gpt55-image-orphan.jsonl": 277,
  // And the prompt of the system, which each log has in its request/header.
  "deepseek-harness/advanced-toolchain.session.jsonl": 13,
  "deepseek-harness/approval-composer.session.jsonl": 9,
  "deepseek-harness/compaction-recovery.session.jsonl": 6,
  "deepseek-harness/goal-multi-turn-actions.session.jsonl": 28,
  "deepseek-harness/permission-policy-context.session.jsonl": 20,
  "gemini/contents-eval-constraints-122-turns.json": 122,
  "gemini/contents-eval-tool-noise.json": 14,
  "gemini/contents-trajectory-105-turns.json": 105,
  // Results stand in the record of the call; a notice of the client is no message.
  "gemini-cli/chat-recording-a.json": 13 + 9 - 1,
  "gemini-cli/chat-recording-b.json": 8 + 4 - 1,
  // The message of role exit is for a person.
  "mini-swe-agent/sqlfluff-1733-316-messages.traj.json": 316 - 1,
  "openai-chat/derived-tau-airline-task2-trial1.json": 62,
  "openai-chat/derived-tau-airline-task33-trial0.json": 62,
  "openai-chat/tau-bench-gpt-4o-airline.json": 5308,
  "openai-responses/derived-codex-input-gpt54-591-calls-2-compactions.json": 248,
  "openai-responses/derived-codex-input-gpt55-image.json": 55,
  // Two calls of one response are one message.
  "openhands/openagentsafety-traj-metrics-202-events.json": 202 - 1,
  // And two compactions; in the other file one, and two records in the line that is torn: an answer and a compaction.
  "pi/before-compaction-990-messages.jsonl": 990 + 2,
  "pi/compact-1010-messages-images.jsonl": 1010 + 1 + 2,
  "swe-agent/marshmallow-1867-function-calling-from-source.traj": 28,
  // 40 times the policy of the agent; without the 433 messages of calls and 482 of results of the simulated user.
  "tau-bench/tau2-gpt41-telecom.json": 2238 + 40 - 433 - 482,
  "vercel-ai/derived-openpaw-modelmessages.json": 22,
  // Five answers hold calls with their results.
  "vercel-ai/derived-sqlrooms-uimessages-array.json": 10 + 5
}

/** No session: a recording of HTTP traffic in YAML, of which JSON bodies are a part. */
const unread = "openai-responses/vcr-responses-tools.yaml"

/** How many sessions the pools hold. */
const pools: { readonly [file: string]: number } = {
  "openai-chat/tau-bench-gpt-4o-airline.json": 200,
  "tau-bench/tau2-gpt41-telecom.json": 40
}

// What a request was billed, by the sums that the files tell themselves: `total` of gemini-cli, `totalTokens` of pi, the
// prompts of the chat APIs, the counts of DeepSeek Harness and Cline.
const bills: { readonly [file: string]: ReturnType<typeof billed> } = {
  "cline/session.messages.json": { responses: 16, fresh: 95_819, cacheRead: 534_435, cacheWrite: 0, output: 4395 },
  "deepseek-harness/approval-composer.session.jsonl": {
    responses: 4,
    fresh: 1193,
    cacheRead: 26_240,
    cacheWrite: 0,
    output: 1891
  },
  "deepseek-harness/goal-multi-turn-actions.session.jsonl": {
    responses: 12,
    fresh: 10_012,
    cacheRead: 103_040,
    cacheWrite: 0,
    output: 2384
  },
  // One record in each of them has counts of zero.
  "gemini-cli/chat-recording-a.json": {
    responses: 10,
    fresh: 133_187 - 113_854 - 1812,
    cacheRead: 113_854,
    cacheWrite: 0,
    output: 1812
  },
  "gemini-cli/chat-recording-b.json": {
    responses: 5,
    fresh: 63_668 - 50_471 - 773,
    cacheRead: 50_471,
    cacheWrite: 0,
    output: 773
  },
  "mini-swe-agent/sqlfluff-1733-316-messages.traj.json": {
    responses: 157,
    fresh: 44_814,
    cacheRead: 8_674_304,
    cacheWrite: 0,
    output: 61_187
  },
  "pi/before-compaction-990-messages.jsonl": {
    responses: 471,
    fresh: 3689,
    cacheRead: 54_693_675,
    cacheWrite: 1_685_320,
    output: 187_895
  }
}

describe("recorded sessions against their index", () => {
  if (!existsSync(recorded("INDEX.md"))) {
    it.skip("(the recorded sessions are not on this machine)", () => {})
    return
  }
  const rows = index()

  it("each of them has a row", () => {
    const folder = recorded("")
    const files = readdirSync(folder).filter((name) => statSync(`${folder}/${name}`).isDirectory()).flatMap((name) =>
      readdirSync(`${folder}/${name}`).map((file) => `${name}/${file}`)
    )
    assert.deepStrictEqual(files.toSorted(), rows.map(({ file }) => file).toSorted())
    assert.deepStrictEqual(Object.keys(messages).toSorted(), files.filter((file) => file !== unread).toSorted())
  })

  for (const { calls, file, images, results, signatures, usage } of rows) {
    it.effect(file, () =>
      Effect.gen(function*() {
        const all = Format.readAll(recorded(file))
        if (file === unread) {
          assert.match((yield* Effect.flip(all)).message, /expected JSON at column 1$/)
          return
        }
        const sessions = yield* all
        assert.strictEqual(sessions.length, pools[file] ?? 1)
        const expected = { messages: messages[file], calls, results, images, signatures, ...others[file] }
        assert.deepStrictEqual<object>(count(sessions), expected)
        // The index looks for no usage in the metrics of Cline.
        assert.strictEqual(sessions.some((session) => session.usage.size > 0), usage || file.startsWith("cline/"))
        const bill = bills[file]
        const [only] = sessions
        if (bill !== undefined && only !== undefined) assert.deepStrictEqual(billed(only), bill)
      }).pipe(Effect.provide(NodeServices.layer)), 60_000)
  }
})
