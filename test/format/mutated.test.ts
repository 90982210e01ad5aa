import { assert, describe, it } from "@effect/vitest"
import * as Format from "effect-compaction/format/Format"
import * as Session from "effect-compaction/format/Session"
import * as Result from "effect/Result"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { chance, mutated } from "./wireBodies.ts"

const fixture = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../fixtures/format/${name}`, import.meta.url)), "utf8")

const files: ReadonlyArray<readonly [file: string, format: Session.FormatName]> = [
  ["gemini.json", "gemini"],
  ["gemini-cli.jsonl", "gemini-cli"],
  ["pi.jsonl", "pi"],
  ["vercel-ai-ui.json", "vercel-ai"],
  ["vercel-ai-model.json", "vercel-ai"],
  ["swe-agent.json", "swe-agent"],
  ["mini-swe-agent.json", "mini-swe-agent"],
  ["openhands.json", "openhands"],
  ["tau-bench.json", "tau-bench"],
  ["tau2-bench.json", "tau-bench"],
  ["deepseek-harness.jsonl", "deepseek-harness"],
  ["opencode.json", "opencode"],
  ["cline.json", "cline"],
  ["amplifier-events.jsonl", "amplifier-events"]
]

/** Whether a text is read; if not, the error has to say where. */
const survives = (text: string, format?: Session.FormatName): "read" | "failed" => {
  const read = Format.fromString(text, { file: "f", conversation: 0, ...(format === undefined ? {} : { format }) })
  if (Result.isSuccess(read)) {
    assert.isAbove(read.success.messages.length, 0)
    assert.isTrue(Array.from(read.success.usage.keys()).every((index) => index < read.success.messages.length))
    return "read"
  }
  assert.strictEqual(read.failure._tag, "FormatError")
  assert.match(read.failure.file, /^f(#0)?$/)
  assert.isAbove(read.failure.expected.length, 0)
  return "failed"
}

/** A text with a value of one of its records replaced, removed or doubled. */
const damaged = (text: string, lines: boolean, seed: number): string => {
  const random = chance(seed)
  if (!lines) return JSON.stringify(mutated(JSON.parse(text), random))
  const records = text.trimEnd().split("\n")
  // The last record of one fixture is torn.
  const index = random.below(records.length - 1)
  return records.map((record, i) => i === index ? JSON.stringify(mutated(JSON.parse(record), random)) : record).join(
    "\n"
  )
}

// A value of a wrong type, a member that is missing, an item twice: whatever it is, the answer is a session or an error.
describe("documents of which one or two values are wrong", () => {
  const each = 80
  for (const [file, format] of files) {
    it(`${file}: ${each} of them`, () => {
      const text = fixture(file)
      const seen = { read: 0, failed: 0 }
      for (let seed = 1; seed <= each; seed++) {
        const broken = damaged(text, file.endsWith(".jsonl"), seed)
        seen[survives(broken, format)]++
        survives(broken)
      }
      assert.isAbove(seen.read, 0)
      assert.isAbove(seen.failed, 0)
    })
  }

  it("every reader is among them, or has such a test of its own", () => {
    const own = ["claude-code", "codex", "amplifier", "openai-chat", "openai-responses", "anthropic-messages", "prompt"]
    assert.deepStrictEqual(
      Array.from(new Set([...own, ...files.map(([, format]) => format)])).toSorted(),
      [...Session.FormatName.literals].toSorted()
    )
  })
})
