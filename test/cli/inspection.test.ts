import { assert, describe, it } from "@effect/vitest"
import * as Estimator from "effect-compaction/Estimator"
import * as Format from "effect-compaction/format/Format"
import type * as Session from "effect-compaction/format/Session"
import * as Marks from "effect-compaction/Marks"
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import * as Inspection from "../../src/cli/Inspection.ts"
import * as Unheld from "../../src/cli/Unheld.ts"
import { itReads } from "../format/recorded.ts"

const inspect = (session: Session.Session) => Inspection.make(session, Estimator.chars)

describe("Inspection", () => {
  it("counts a body by hand", () => {
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
    const body = {
      system: "Be brief.",
      messages: [
        { role: "user", content: [{ type: "text", text: "Look at this." }, image] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Which one?", signature: "c2ln" },
            { type: "redacted_thinking", data: "b3BhcXVl" },
            { type: "tool_use", id: "t1", name: "grep", input: { a: 1 } },
            { type: "tool_use", id: "t2", name: "view", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: "0123456789", is_error: true },
            { type: "tool_result", tool_use_id: "t2", content: [image, { type: "text", text: "0123456789abcdefghij" }] }
          ]
        },
        { role: "assistant", content: [{ type: "tool_use", id: "t3", name: "grep", input: {} }] },
        { role: "user", content: "Never mind." }
      ]
    }
    const inspection = inspect(Result.getOrThrow(Format.fromString(JSON.stringify(body), { file: "f" })))
    const { findings: _, results, tokens, unheld, violations, why: __, ...rest } = inspection
    assert.deepStrictEqual(rest, {
      file: "f",
      format: "anthropic-messages",
      model: null,
      messages: 6,
      entries: 7,
      roles: { system: 1, user: 2, human: 2, assistant: 2, tool: 1 },
      // Texts 9 + 13 + 11, reasoning 10, arguments 7 + 2 + 2, results 10 + 20.
      characters: 84,
      calls: 3,
      images: 2,
      reasoning: { parts: 2, signed: 1, encrypted: 1 },
      usage: null
    })
    const { byTool, largest, ofCharacters, ofTokens, ...size } = results
    assert.deepStrictEqual({ ...size, tokens: 0 }, { count: 2, failures: 1, characters: 30, tokens: 0 })
    assert.strictEqual(ofCharacters, 30 / 84)
    assert.strictEqual(ofTokens, size.tokens / tokens)
    assert.deepStrictEqual(largest.map(({ seq, tool }) => [seq, tool]), [[4, "view"], [3, "grep"]])
    assert.deepStrictEqual(byTool.map(({ count, tool }) => [tool, count]), [["view", 1], ["grep", 1]])
    assert.deepStrictEqual(violations, {
      anthropic: { pairing: 1 },
      openaiChat: { pairing: 1 },
      openaiResponses: { pairing: 1 },
      gemini: { pairing: 1 }
    })
    const signature = "no place for the options anthropic.info"
    assert.deepStrictEqual(unheld, {
      "openai-chat": [
        { kind: "options", what: signature, count: 2, messages: [2] },
        { kind: "reasoning", what: "2 reasoning parts are written as one", count: 1, messages: [2] },
        { kind: "failure-flag", what: "that the call failed has no place here", count: 1, messages: [3] },
        { kind: "result-block", what: "a result holds text only (image/png)", count: 1, messages: [3] }
      ],
      "openai-responses": [
        { kind: "options", what: signature, count: 2, messages: [2] },
        { kind: "failure-flag", what: "that the call failed has no place here", count: 1, messages: [3] }
      ],
      "anthropic-messages": [],
      prompt: []
    })
  })

  describe("names every item that a format cannot hold", () => {
    const items: ReadonlyArray<readonly [body: object, holder: keyof Unheld.ByFormat, types: ReadonlyArray<string>]> = [
      [
        {
          input: [
            {
              type: "message",
              role: "user",
              content: [{ type: "input_text", text: "go" }, { type: "input_file", file_id: "f" }]
            },
            { type: "compaction", id: "c", encrypted_content: "KEEPME" },
            { type: "web_search_call", id: "w", status: "completed" },
            { type: "item_reference", id: "r" },
            { type: "message", role: "user", content: "on" },
            { type: "compaction", id: "d", encrypted_content: "KEEPME" }
          ]
        },
        "openai-responses",
        ["input_file", "compaction", "web_search_call", "item_reference"]
      ],
      [
        {
          system: "x",
          messages: [
            { role: "user", content: [{ type: "container_upload", file_id: "f" }] },
            { role: "assistant", content: [{ type: "compaction", content: "KEEPME" }] }
          ]
        },
        "anthropic-messages",
        ["container_upload", "compaction"]
      ]
    ]
    for (const [body, holder, types] of items) {
      it(`of a body of ${holder}`, () => {
        const session = Result.getOrThrow(Format.fromString(JSON.stringify(body), { file: "f" }))
        const { unheld } = inspect(session)
        for (const to of Format.Target.literals) {
          const named = unheld[to].filter(({ kind }) => kind === "opaque-item").map(({ what }) =>
            /\((.*)\)$/.exec(what)?.[1]
          )
          const holds = to === holder || to === "prompt"
          assert.deepStrictEqual(named, holds ? [] : [...types], to)
          if (holds && to !== "prompt") {
            assert.include(JSON.stringify(Format.write(to, session.messages).value), "KEEPME")
          }
        }
        const text = Unheld.lines(unheld).join("\n")
        for (const type of types) assert.include(text, `(${type})`)
      })
    }

    it("of Gemini's contents, which no format that is written has", () => {
      const part = { functionCallExtension: { x: 1 } }
      const contents = [{ role: "user", parts: [{ text: "go" }, part] }, { role: "model", parts: [part] }]
      const { unheld } = inspect(Result.getOrThrow(Format.fromString(JSON.stringify(contents), { file: "f" })))
      for (const to of Format.Target.literals) {
        assert.deepStrictEqual(
          unheld[to].map(({ kind, messages }) => [kind, messages]),
          to === "prompt" ? [] : [["opaque-item", [0, 1]]],
          to
        )
      }
    })

    it("says where, as ranges, and all of it in the JSON", () => {
      const messages = Array.from({ length: 60 }, (_, at) =>
        at % 3 === 0 || at < 6
          ? Marks.set(
            Prompt.userMessage({ content: [Prompt.textPart({ text: "", options: { other: { a: 1 } } })] }),
            {}
          )
          : Prompt.userMessage({ content: [Prompt.textPart({ text: "x" })] }))
      const unheld = Unheld.of(messages)
      assert.deepStrictEqual(unheld["openai-chat"].map(({ count, messages }) => [count, messages.length]), [[24, 24]])
      assert.deepStrictEqual(Unheld.lines(unheld).slice(0, 1), [
        "  openai-chat: options 24: no place for the options other.a; messages 0–6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, "
        + "39 and more, see --json"
      ])
    })
  })

  // The parts of a request that stand for such items carry words; a format without a place for the item writes those.
  it("words that a request left in the place of an item are written, and the item is named as lost", () => {
    const item = { type: "compaction", encrypted_content: "KEEPME" }
    const words = Marks.set(Prompt.textPart({ text: "[left out: compaction]" }), { raw: item })
    const messages = [
      Prompt.userMessage({ content: [Prompt.textPart({ text: "go" })] }),
      Prompt.assistantMessage({ content: [words] })
    ]
    for (const to of Format.Target.literals) {
      const { losses, value } = Format.write(to, messages)
      const text = JSON.stringify(value)
      const holds = to === "openai-responses" || to === "prompt"
      assert.strictEqual(text.includes("KEEPME"), holds, to)
      assert.deepStrictEqual(losses.map(({ kind }) => kind), holds ? [] : ["opaque-item"], to)
      if (!holds) assert.include(text, "[left out: compaction]")
    }
    const block = Marks.set(Prompt.textPart({ text: "[left out: compaction]" }), {
      raw: { type: "compaction", content: "x" }
    })
    const { value } = Format.write("openai-responses", [Prompt.assistantMessage({ content: [block] })])
    assert.deepStrictEqual<unknown>(value, {
      input: [{
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "[left out: compaction]" }]
      }]
    })
  })

  // Calls, results, images and signatures as the index of the recorded sessions has them.
  itReads("claude-code/opus45-3-compactions.jsonl", (session) => {
    const { calls, images, reasoning, results, usage } = inspect(session)
    assert.deepStrictEqual([calls, results.count, images, reasoning.signed], [206, 206, 0, 225])
    assert.isAbove(usage!.cacheRead!, 1_000_000)
  })
  itReads("codex/gpt55-image-orphan.jsonl", (session) => {
    const { calls, images, results } = inspect(session)
    assert.deepStrictEqual([calls, results.count, images], [153, 152, 1])
  })
})
